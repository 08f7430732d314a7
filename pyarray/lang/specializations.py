"""Specializations: promises about an array's sizes and strides that generated text relies on.

They are part of the array's type key and are folded into the text from there, never from an array, so that
key and text can't disagree."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

_RECORD = struct.Struct("<qqqB")  # size or -1, stride, multiple, and last, never zero, axis + 1
LINE = 64  # elements: the longest vectors of today have as many


@dataclass(frozen=True, slots=True, order=True)
class Specialization:
    """A promise about one axis: its `size` and its `stride` (bytes) are these, or, where they are None, its
    size is a multiple of `multiple`."""

    axis: int
    size: int | None = None
    stride: int | None = None
    multiple: int = 1

    def __str__(self) -> str:
        if self.size is None:
            return f"axis {self.axis}: size a multiple of {self.multiple}"
        return f"axis {self.axis}: size {self.size}, stride {self.stride}"

    @property
    def factor(self) -> int:
        """The power of two, at most `LINE`, that divides the size for sure."""
        multiple = self.multiple if self.size is None else self.size
        return min(multiple & -multiple, LINE) if multiple else LINE


Specializations = tuple[Specialization, ...]


def encode(specs: Iterable[Specialization]) -> int:
    """The specializations as one number, 0 for none: equal promises give equal numbers.

    >>> encode([]), decode(encode([Specialization(1, 3, 8)]))
    (0, (Specialization(axis=1, size=3, stride=8, multiple=1),))
    """
    records = [
        _RECORD.pack(-1 if p.size is None else p.size, p.stride or 0, p.multiple, p.axis + 1)
        for p in sorted(specs, key=lambda p: p.axis)
        if p.size is not None or p.multiple != 1
    ]
    return int.from_bytes(b"".join(records), "little")


def decode(number: int) -> Specializations:
    """The specializations that `encode` made the number from."""
    count = -(-number.bit_length() // (8 * _RECORD.size))
    data = number.to_bytes(count * _RECORD.size, "little")
    specs = []
    for size, stride, multiple, axis in _RECORD.iter_unpack(data):
        spec = Specialization(axis - 1, multiple=multiple)
        specs.append(spec if size < 0 else Specialization(axis - 1, size, stride))
    return tuple(specs)


def fold(specs: Specializations, view: str, ndim: int, itemsize: int, strided: bool) -> list[str]:
    """C statements that write the promises into the struct `view`, where the compiler takes them for
    constants."""
    sizes = _sizes(specs, ndim, itemsize, strided)
    lines = [f"{view}.n{axis} = {size};" for axis, size in sorted(sizes.items())]
    for p in specs:
        if p.size is None and p.axis not in sizes:
            lines.append(f"{view}.n{p.axis} = {view}.n{p.axis} / {p.multiple} * {p.multiple};")
        elif strided and p.stride is not None:
            lines.append(f"{view}.s{p.axis} = {p.stride};")
    return lines


def _sizes(specs: Specializations, ndim: int, itemsize: int, strided: bool) -> dict[int, int]:
    """Known sizes: those promised and, in contiguous arrays, the one that a stride implies."""
    sizes = {p.axis: p.size for p in specs if p.size is not None}
    for p in () if strided else specs:
        inner = [axis for axis in range(p.axis + 1, ndim) if axis not in sizes]
        inner_bytes = itemsize
        for axis in range(p.axis + 1, ndim):
            inner_bytes *= sizes.get(axis, 1)
        if p.stride is not None and len(inner) == 1 and inner_bytes and p.stride % inner_bytes == 0:
            sizes[inner[0]] = p.stride // inner_bytes
    return sizes
