"""The exceptions of pyarray's own. Everything else raises the built-in that NumPy raises."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "AutotuneError", "BoundsError", "CompileError", "DeviceError", "EndlessLoopError", "KernelAssertionError",
    "OutOfMemoryError",
]  # fmt: skip


class Frame(NamedTuple):
    """One line of a kernel's call stack: `function`, full `path` and `line` of the user's source."""

    function: str
    path: str
    line: int


def with_article(what: object) -> str:
    """The name of a class or type with its article.

    >>> with_article("int64"), with_article("uint64"), with_article("ndarray")
    ('an int64', 'a uint64', 'an ndarray')
    """
    name = str(what)
    return f"{'an' if name[:1] in 'aeioAEIO' or name[:2] == 'nd' else 'a'} {name}"


class CompileError(Exception):
    """A kernel can't be compiled: a construct outside the language, a type that doesn't fit, or the
    compiler's own complaint.

    The message holds file, line, the source line with a caret under the construct, and what to write instead.
    `path`, `line` and `column` (1-based) say the same to programs; they are None when there is no source.
    """

    def __init__(self, message: str, path: str | None = None, line: int | None = None, column: int | None = None):
        super().__init__(message)
        self.path, self.line, self.column = path, line, column
        self._said: tuple[str, str] | None = None  # what is wrong and what to write instead, without the place

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


class _Reported(Exception):
    """What a kernel reported: exceptions with attributes, which pickles keep."""

    kernel: str
    tid: int
    frames: tuple[Frame, ...]
    launch: tuple[str, int] | None

    def __init__(self, message: str, **attributes: object):
        super().__init__(message)
        self.__dict__.update(attributes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


class BoundsError(_Reported, IndexError):
    """An access outside an array, found on the device in debug mode.

    Attributes: `kernel`, `argument` (name of the array parameter), `axis`, `index`, `extent` (legal are 0 to
    extent - 1), `offset` and `size` (elements) of the view that was accessed, whose axis it is, `tid`
    (0-based linear iteration of the parallel loop), `frames` (`Frame`s, outermost first) and `launch` (path
    and line of the call).
    """

    argument: str | None
    axis: int | None
    index: int
    extent: int
    offset: int
    size: int


class EndlessLoopError(_Reported, RuntimeError):
    """A `while` loop of a kernel that took more than PYARRAY_DEBUG_TURNS turns, found in debug mode.

    Attributes: `kernel`, `turns`, `tid` (0-based linear iteration of the parallel loop), `frames` (`Frame`s,
    outermost first; the last one is the loop's) and `launch` (path and line of the call).
    """

    turns: int


class KernelAssertionError(_Reported, AssertionError):
    """An `assert` of a kernel that failed on the device.

    Attributes: `kernel`, `text` (what the assertion says), `values` (its numbers by their expressions), `tid`
    (0-based linear iteration of the parallel loop), `frames` (`Frame`s, outermost first; the last one is the
    assertion's) and `launch` (path and line of the call).
    """

    text: str
    values: dict[str, Any]


class DeviceError(RuntimeError):
    """A device, its driver or its compiler is missing or failed."""


class OutOfMemoryError(MemoryError):
    """A device has no memory left. `asked`, `free` and `pooled` are bytes (None where the device can't
    tell)."""

    def __init__(self, message: str, asked: int, free: int | None = None, pooled: int | None = None):
        super().__init__(message)
        self.asked, self.free, self.pooled = asked, free, pooled

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


class AutotuneError(RuntimeError):
    """A search found no configuration that runs."""


def _rebuilt(kind: type[Exception], args: tuple[Any, ...], attributes: dict[str, Any]) -> Exception:
    """An exception from its pickle: it crosses process pools with its attributes."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error
