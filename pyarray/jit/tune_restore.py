"""What a search changes of a call's arguments, and how it is put back.

What some candidate reads and writes is saved; so is what it only writes where that shares memory with another
argument. Only the view is saved. What is only written is filled, so that no candidate passes with another's
results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import shapes
from ..array import ndarray
from ..array_hooks import operation

_WRITES = ("OUT", "INOUT")


def merged(directions: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Directions of all candidates: what one reads and another writes is read and written."""
    found: dict[str, set[str]] = {}
    for of_one in directions:
        for name, how in of_one.items():
            found.setdefault(name, set()).add(how)
    return {name: _joined(hows - {"UNUSED"}) for name, hows in found.items()}


def _joined(hows: set[str]) -> str:
    if not hows:
        return "UNUSED"
    return hows.pop() if len(hows) == 1 else "INOUT"


class Arguments:
    """The arrays of a call, by name, while candidates run on them. `restore` None infers what is saved; names
    say it, and then nothing else is. `zeroed` are set to zero before each run.

    `save` before the first run, `prepare` before each, `restore` at the end.
    """

    def __init__(
        self,
        arrays: Mapping[str, ndarray],
        directions: Mapping[str, str],
        restore: Sequence[str] | None,
        zeroed: Sequence[str],
    ):
        self.arrays = {name: a for name, a in arrays.items() if a._size}
        self.written = [n for n in self.arrays if directions.get(n) in _WRITES or n in zeroed]
        self.zeroed = [self.arrays[n] for n in zeroed if n in self.arrays]
        if restore is None:
            names = [n for n in self.written if directions.get(n) != "OUT" or self._shared(n)]
            self._filled = [n for n in self.written if n not in names]
        else:
            names = [n for n in restore if n in self.arrays]
            self._filled = (
                [n for n in self.written if n not in names and not self._shared(n)] if restore else []
            )
        self._targets = _distinct([self.arrays[n] for n in names])
        self._saved: list[tuple[ndarray, ndarray]] = []

    def _shared(self, name: str) -> bool:
        mine = self.arrays[name]
        return any(n != name and _overlap(mine, a) for n, a in self.arrays.items())

    @property
    def repeatable(self) -> bool:
        """Whether a run leaves the arguments of the next one as they are, so that several may be timed as
        one."""
        return not self._targets and not self.zeroed

    @property
    def saved_bytes(self) -> int:
        return sum(a.nbytes for a in self._targets)

    def save(self) -> None:
        """Copies of what will be put back. Raises `OutOfMemoryError`."""
        self._saved = [(a, a.copy()) for a in self._targets]

    def restore(self) -> None:
        """The arguments as they were."""
        for a, copy in self._saved:
            operation("assign")(a, copy)

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


def poison(a: ndarray) -> Any:
    """A value that no result is likely to be."""
    kind = a._dtype.kind
    if kind in "fc":
        return float("nan")
    return True if kind == "b" else 0x5A


def zero(a: ndarray) -> None:
    """Set every element to zero."""
    operation("assign")(a, 0)


def _distinct(arrays: Sequence[ndarray]) -> list[ndarray]:
    """Each memory once: a view that another one covers is left out."""
    kept: list[ndarray] = []
    for a in sorted(arrays, key=lambda a: -a.nbytes):
        if not any(_covers(other, a) for other in kept):
            kept.append(a)
    return kept


def _covers(a: ndarray, b: ndarray) -> bool:
    if (a._ptr, a._shape, a._strides) == (b._ptr, b._shape, b._strides) and a.itemsize == b.itemsize:
        return True
    (low, high), (first, last) = _range(a), _range(b)
    whole = a.nbytes == high - low and shapes.is_contiguous(a._shape, a._strides, a.itemsize)
    return whole and low <= first and last <= high


def _overlap(a: ndarray, b: ndarray) -> bool:
    return shapes.may_overlap(_range(a), _range(b))


def _range(a: ndarray) -> tuple[int, int]:
    low, high = shapes.byte_bounds(a._shape, a._strides, a.itemsize)
    return a._ptr + low, a._ptr + high
