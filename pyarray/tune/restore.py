"""Saves and restores the arguments that a search overwrites.

What some candidate reads and writes is saved; so is what it only writes where that shares memory with another
argument. Only the view is saved. What is only written is filled, so that no candidate passes with another's
results, and is put back at the end alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from .. import shapes
from ..array import ndarray
from ..array_hooks import operation
from ..array_views import memory_range, overlaps
from ..errors import OutOfMemoryError

_WRITES = ("OUT", "INOUT")


def union_of_directions(directions: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Directions of all candidates: what one reads and another writes is read and written."""
    modes: dict[str, set[str]] = {}
    for of_one in directions:
        for name, how in of_one.items():
            modes.setdefault(name, set()).add(how)
    return {name: _joined(hows - {"UNUSED"}) for name, hows in modes.items()}


def _joined(hows: set[str]) -> str:
    if not hows:
        return "UNUSED"
    return hows.pop() if len(hows) == 1 else "INOUT"


def is_part_of(name: str, path: str) -> bool:
    """Whether the leaf `path` is the parameter `name`, or in it: `p` has `p`, `p.v` and `p[0]`."""
    return path == name or path.startswith((f"{name}.", f"{name}["))


class SavedArguments:
    """The arrays of a call, by path, while candidates run on them. `restore` None infers what is saved; names
    of parameters say it, and then nothing else is. `zeroed` are set to zero before each run; `write_only` are
    those that no candidate reads.

    `save` before the first run, `prepare` before each, `restore_all` at the end. `comparable` says whether every
    run finds what the first one found: else results of candidates differ by right.
    """

    def __init__(
        self,
        arrays: Mapping[str, ndarray],
        directions: Mapping[str, str],
        restore: Sequence[str] | None,
        zeroed: Sequence[str],
        write_only: Collection[str] = (),
    ):
        self.arrays = {name: a for name, a in arrays.items() if a._size}
        self.written = [n for n in self.arrays if directions.get(n) in _WRITES or n in zeroed]
        self.zeroed = [self.arrays[n] for n in zeroed if n in self.arrays]
        if restore is None:
            names = [n for n in self.written if directions.get(n) != "OUT" or self._shared(n)]
        else:
            names = [n for n in self.arrays if any(is_part_of(r, n) for r in restore)]
        off = restore is not None and not restore
        self.comparable = all(directions.get(n) == "OUT" or n in names or n in zeroed for n in self.written)
        self._filled = [] if off else [n for n in self._results(directions) if n not in names]
        self._targets = _distinct([self.arrays[n] for n in names])
        self._repeatable = all(n in write_only and not self._shared(n) for n in names)
        self._saved: list[tuple[ndarray, ndarray]] = []
        self._before: list[tuple[ndarray, ndarray]] = []

    def _results(self, directions: Mapping[str, str]) -> list[str]:
        """What is only written, and shares no memory: a run doesn't depend on what it was."""
        return [n for n in self.written if directions.get(n) == "OUT" and not self._shared(n)]

    def _shared(self, name: str) -> bool:
        array = self.arrays[name]
        return any(n != name and overlaps(array, a) for n, a in self.arrays.items())

    @property
    def repeatable(self) -> bool:
        """Whether a run leaves the arguments of the next one as they are, so that several may be timed as
        one."""
        return self._repeatable and not self.zeroed

    @property
    def saved_bytes(self) -> int:
        return sum(a.nbytes for a in self._targets)

    def save(self) -> None:
        """Copies of what will be put back. Raises `OutOfMemoryError`; where there is none left for what is
        only written, that stays as the last run left it."""
        self._saved = [(a, a.copy()) for a in self._targets]
        with contextlib.suppress(OutOfMemoryError):
            self._before = [(a, a.copy()) for a in _distinct([self.arrays[n] for n in self._filled])]

    def restore(self) -> None:
        """What runs read, as it was."""
        _assign(self._saved)

    def restore_all(self) -> None:
        """The arguments as they were, also where this is interrupted."""
        try:
            _assign(self._saved + self._before)
        except BaseException:
            _assign(self._saved + self._before)
            raise

    def prepare(self) -> None:
        """What comes before a run: restore, then reset."""
        self.restore()
        for a in self.zeroed:
            zero(a)

    def fill(self) -> None:
        """Poison what is only written."""
        for name in self._filled:
            a = self.arrays[name]
            operation("assign")(a, poison(a))


def _assign(pairs: Iterable[tuple[ndarray, ndarray]]) -> None:
    for a, copy in pairs:
        operation("assign")(a, copy)


def poison(a: ndarray) -> Any:
    """A value for the elements of `a` that results are unlikely to have."""
    kind = a._dtype.kind
    if kind in "fc":
        return float("nan")
    return True if kind == "b" else 0x5A


def zero(a: ndarray) -> None:
    """Set every element to zero."""
    operation("assign")(a, 0)


def _distinct(arrays: Sequence[ndarray]) -> list[ndarray]:
    """The arrays without those whose memory another one covers."""
    distinct: list[ndarray] = []
    for a in sorted(arrays, key=lambda a: -a.nbytes):
        if not any(_covers(other, a) for other in distinct):
            distinct.append(a)
    return distinct


def _covers(a: ndarray, b: ndarray) -> bool:
    if (a._ptr, a._shape, a._strides) == (b._ptr, b._shape, b._strides) and a.itemsize == b.itemsize:
        return True
    (low, high), (first, last) = memory_range(a), memory_range(b)
    is_covered = a.nbytes == high - low and shapes.is_contiguous(a._shape, a._strides, a.itemsize)
    return is_covered and low <= first and last <= high
