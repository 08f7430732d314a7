"""`@kernel` and `@func`: a Python function as device code.

A call looks its variant up by the types of its arguments; a miss runs the front end, finds or compiles the artifact, and keeps
a launcher. Variants are keyed by types alone, so a temporary view costs what a held one costs and can't be stale.
"""

from __future__ import annotations

import itertools
import linecache
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .. import config
from ..array import ndarray
from ..driver.base import Device, get_device
from ..lang.infer_expr import Static
from ..lang.ir import ArrayType, ScalarType
from ..lang.parse import FunctionSource, source_of
from ..lang.pipeline import Program, lower
from . import compile as compiler
from .launch import make_dispatcher, make_launcher
from .report import raise_bounds
from .signature import (
    Argument,
    Parameter,
    Signature,
    as_argument,
    bind_type,
    check_number,
    constexpr,
    is_readonly,
    parameters_of,
    type_key,
)


class _Mode(threading.local):
    debug: bool = config.get("PYARRAY_DEBUG")


mode = _Mode()


@contextmanager
def debug(on: bool = True) -> Iterator[None]:
    """Bounds checks in every kernel that this thread launches inside the block, user's and library's alike.

    `@kernel(debug=...)` goes before it; it goes before PYARRAY_DEBUG, which is read when pyarray is imported.

    >>> import pyarray as pa
    >>> with pa.debug():
    ...     pa.sum(pa.ones(3)).item()
    3.0
    """
    before = mode.debug
    mode.debug = bool(on)
    try:
        yield
    finally:
        mode.debug = before


@dataclass(frozen=True, eq=False)
class Variant:
    """A kernel compiled for one set of types: the program it was made from, its artifact, its launcher."""

    program: Program
    artifact: compiler.Artifact
    launch: Callable[..., Any]
    device: Device


class Kernel:
    """A compiled-on-demand kernel; made by `kernel`. Call it with arrays and numbers; it returns nothing."""

    def __init__(self, source: FunctionSource, debug: bool | None, wraparound: bool, flags: tuple[str, ...]):
        self.__name__, self.__doc__ = source.name, source.function.__doc__
        self.__wrapped__ = source.function
        self.source_text = source
        self.debug, self.wraparound, self.flags = debug, wraparound, flags
        self.counts: Counter[str] = Counter()
        self._variants: dict[Any, Callable[..., Any]] = {}
        self._programs: dict[Callable[..., Any], Variant] = {}
        self._lock = threading.RLock()
        self._ticks = itertools.count()
        self._parameters: tuple[Parameter, ...] | None = None
        self._dispatch: Callable[..., Any] = self._first_call

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self._dispatch(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<kernel {self.__name__} ({self.source_text.path}:{self.source_text.first_line}), {len(self._variants)} variants>"

    # ---- binding

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The function's parameters; annotations are read at the first use, so that they may name what is defined later."""
        if self._parameters is None:
            self._parameters = parameters_of(self.source_text.function)
        return self._parameters

    def _first_call(self, *args: Any, **kwargs: Any) -> None:
        scope = {
            "variants": self._variants, "mode": mode, "tick": self._ticks.__next__, "miss": self._miss, "refused": self._refused,
            "report": self._report, "type_key": type_key,
        }  # fmt: skip
        with self._lock:
            if self._dispatch == self._first_call:
                self._dispatch = make_dispatcher(self.__name__, self.parameters, self.debug, scope)
        self._dispatch(*args, **kwargs)

    def _miss(self, args: tuple[Any, ...]) -> None:
        """The slow way in: host arrays become arrays, a new combination of types becomes a variant."""
        converted = tuple(map(as_argument, args))
        if any(new is not old for new, old in zip(converted, args, strict=True)):
            return self._dispatch(*converted)
        variant = self.variant(converted)
        for p, a in zip(self.parameters, converted, strict=True):
            self._check_scalar(p, a)
        failure = variant.launch(*converted)
        if failure:
            self._report(failure, variant.launch, converted)

    def variant(self, args: tuple[Any, ...]) -> Variant:
        """The variant for arguments of these types, compiled if need be."""
        key = self._key(args)
        with self._lock:
            launch = self._variants.get(key)
            if launch is None:
                made = self._compile(args)
                launch = self._variants[key] = made.launch
                self._programs[launch] = made
                self.counts["misses"] += 1
            return self._programs[launch]

    def _key(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        parts: list[Any] = [mode.debug if self.debug is None else self.debug]
        for p, a in zip(self.parameters, args, strict=True):
            if p.annotation is constexpr:
                parts.append((type(a), a))
            elif isinstance(a, ndarray) and (p.annotation is None or not _is_scalar(p.annotation)):
                parts.append(a._key)
            elif p.annotation is None:
                parts.append(_loose_key(a))
        return tuple(parts)

    def _types(self, args: tuple[Any, ...]) -> list[tuple[str, Any]]:
        return [(p.name, bind_type(self.__name__, p, a)) for p, a in zip(self.parameters, args, strict=True)]

    def _compile(self, args: tuple[Any, ...]) -> Variant:
        checked = mode.debug if self.debug is None else self.debug
        types = self._types(args)
        device = self._device(args)
        program = lower(self.source_text, types, device.kind, checked, self.wraparound)
        self._check_writeable(program, args)
        artifact = compiler.load(self.__name__, program.text, program.entry, device, self.flags, self.counts)
        driver = device.driver
        run = driver.checked_launcher(artifact.function) if checked else driver.launcher(artifact.function)
        names = tuple(p.name for p in self.parameters)
        return Variant(program, artifact, make_launcher(program.params, names, run, checked), device)

    def _device(self, args: tuple[Any, ...]) -> Device:
        devices = {
            a.device: name
            for a, name in zip(args, (p.name for p in self.parameters), strict=True)
            if isinstance(a, ndarray)
        }
        if len(devices) > 1:
            where = ", ".join(f"{name!r} on {device}" for device, name in devices.items())
            raise ValueError(
                f"{self.__name__}(): all arrays must be on one device, got {where}; move them with .to_device(...)"
            )
        return next(iter(devices), None) or get_device(None)

    def _check_writeable(self, program: Program, args: tuple[Any, ...]) -> None:
        for p, a in zip(self.parameters, args, strict=True):
            if (
                program.directions.get(p.name) in ("OUT", "INOUT")
                and isinstance(a, ndarray)
                and is_readonly(a._key)
            ):
                raise ValueError(
                    f"{self.__name__}(): {p.name!r} is written by the kernel, and this array is read-only; pass a copy"
                )

    # ---- failures

    def _check_scalar(self, p: Parameter, value: Any) -> None:
        if p.annotation is not None and _is_scalar(p.annotation):
            bind_type(self.__name__, p, value)
        elif p.annotation is None and type(value) is int:
            check_number(self.__name__, p.name, int, ScalarType(_INT64).dtype, value)

    def _refused(self, args: tuple[Any, ...]) -> None:
        """Packing refused a value: say which parameter, what was expected, what came."""
        for p, a in zip(self.parameters, args, strict=True):
            self._check_scalar(p, a)
        self.variant(args).launch(*args)  # what it was, if it comes again

    def _report(self, failure: Any, launch: Callable[..., Any], args: tuple[Any, ...]) -> None:
        raise_bounds(self.__name__, self._programs[launch].program.sites, failure)

    # ---- introspection

    @property
    def signature(self) -> Signature:
        """Parameter → `Argument(direction, dtype, ndim)` of the variant compiled last. Raises `RuntimeError` before the first."""
        if not self._programs:
            raise RuntimeError(
                f"kernel {self.__name__!r} has no signature before its first launch: types come with the arguments"
            )
        program = list(self._programs.values())[-1].program
        types = dict(program.params)
        return Signature(
            (
                name,
                Argument(
                    how, types[name].dtype, types[name].ndim if isinstance(types[name], ArrayType) else 0
                ),
            )
            for name, how in program.directions.items()
        )

    def cache_info(self) -> dict[str, int]:
        """`compiles` (runs of the compiler), `disk_hits`, `hits` and `misses` of the variant table, `variants`."""
        hits = int(self._ticks.__reduce__()[1][0])  # the only way to read a count without taking from it
        return {
            "compiles": self.counts["compiles"], "disk_hits": self.counts["disk_hits"], "hits": hits, "misses": self.counts["misses"],
            "variants": len(self._variants),
        }  # fmt: skip

    def source(self, device: Any = None) -> str:
        """Text of the variant compiled last for that kind of device (default: any). Raises `RuntimeError` if there is none."""
        kind = None if device is None else get_device(device).kind
        for variant in reversed(list(self._programs.values())):
            if kind in (None, variant.device.kind):
                return variant.program.text
        raise RuntimeError(
            f"kernel {self.__name__!r} has not been compiled"
            + (f" for {kind}" if kind else "")
            + "; launch it once"
        )


_INT64 = bind_type.__globals__["DEFAULT"]["i"]


def _is_scalar(annotation: Any) -> bool:
    return annotation in (bool, int, float, complex) or type(annotation).__name__ == "DType"


def _loose_key(argument: Any) -> Any:
    try:
        return type_key(argument)
    except AttributeError:
        return type(argument)


def kernel(
    function: Any = None, *, debug: bool | None = None, wraparound: bool = False, flags: tuple[str, ...] = ()
) -> Any:
    """Compile a Python function for devices: each top-level `for` is a parallel loop.

    `debug` fixes bounds checks on or off for this kernel, `wraparound` lets run-time negative indices count from the end.
    Raises `TypeError` for what is no Python function; what is outside the language is a `CompileError` at the first call.

    >>> import pyarray as pa
    >>> @pa.kernel
    ... def double(v):
    ...     for i in range(v.size):
    ...         v[i] = 2 * v[i]
    >>> a = pa.ones(3)
    >>> double(a)
    >>> a.tolist()
    [2.0, 2.0, 2.0]
    """
    if function is None:
        return lambda f: kernel(f, debug=debug, wraparound=wraparound, flags=flags)
    if isinstance(function, Kernel):
        function = function.__wrapped__
    return Kernel(
        source_of(getattr(function, "__pyarray_func__", None) and function.__wrapped__ or function),
        debug,
        wraparound,
        flags,
    )


class Func:
    """A function that kernels can call; made by `func`. On the host it is the plain Python function."""

    def __init__(self, source: FunctionSource):
        self.__pyarray_func__ = source
        self.__wrapped__ = source.function
        self.__name__, self.__doc__ = source.name, source.function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<func {self.__name__}>"


def func(function: Any) -> Func:
    """Make a Python function callable from kernels. It is compiled with each kernel, for the types of each call.

    >>> import pyarray as pa
    >>> @pa.func
    ... def half(x):
    ...     return x / 2
    >>> half(3)
    1.5
    """
    return function if isinstance(function, Func) else Func(source_of(function))


def from_text(name: str, text: str, scope: dict[str, Any], flags: tuple[str, ...] = ()) -> Kernel:
    """A kernel from the text of its `def`: the library's own kernels are written by rank. The text shows in error messages."""
    path = f"<pyarray kernel {name}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), scope)
    made: Kernel = kernel(scope[name], flags=flags)
    return made


__all__ = ["Kernel", "Static", "Variant", "debug", "from_text", "func", "kernel", "mode"]
