"""Marks: handles on the same memory that let kernels rely on sizes.

They are part of the handle's type key, so that kernels compiled for one promise are never run on an array
that made another. A handle's shape never changes, so that a promise checked when the handle is made holds at
each launch of it. Views, copies and results of a marked array have other sizes, or nothing to do with it:
they are unmarked.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pyarray import shapes
from pyarray.lang.specializations import Specialization, Specializations, decode, encode

if TYPE_CHECKING:
    from pyarray.array import ndarray

MARKED = 1 << 18  # of a key; the specializations then stand above `SHIFT`
SHIFT = 32
_PLAIN = (1 << SHIFT) - 1 & ~MARKED
_LARGEST = (1 << 63) - 1


def specializations_of(key: int) -> Specializations:
    """The promises in an array's type key."""
    return decode(key >> SHIFT)


def mark_static(a: ndarray, dims: int | Iterable[int] | None = None) -> ndarray:
    """A handle on the same memory whose sizes and strides along `dims` (an axis, several, or None: all) are
    compiled into the kernels it is passed to.

    The array itself stays as it is; marks of a handle add up, in any order. Each new combination of pinned
    numbers is compiled anew. Raises `AxisError` (an `IndexError`) for an axis out of range.

    >>> from pyarray.array import empty
    >>> a = empty((4, 6))
    >>> a.mark_static(-1)._key == a.mark_static(1)._key != a._key
    True
    """
    ndim = len(a._shape)
    axes = range(ndim) if dims is None else [shapes.normalize_axis(d, ndim) for d in _several(dims)]
    # A size of 1 may have any stride, which kernels for contiguous arrays don't read.
    strides = a._strides if a._key >> 16 & 1 else shapes.contiguous_strides(a._shape, a._dtype.itemsize)
    return _marked(a, [Specialization(axis, a._shape[axis], strides[axis]) for axis in axes])


def assume(a: ndarray, dim: int, *, multiple_of: int) -> ndarray:
    """A handle on the same memory for whose size along `dim` kernels may rely on being a multiple of
    `multiple_of`, any positive number; said again for the same axis, the last one counts.

    Raises `ValueError` where the size is no such multiple, `AxisError` (an `IndexError`) for an axis out of
    range.

    >>> from pyarray.array import empty
    >>> empty(30).assume(0, multiple_of=8)
    Traceback (most recent call last):
    ...
    ValueError: assume(): axis 0 of shape (30,) has size 30, which is no multiple of 8
    """
    axis = shapes.normalize_axis(dim, len(a._shape))
    factor = operator.index(multiple_of)
    if not 1 <= factor <= _LARGEST:
        raise ValueError(f"assume(): multiple_of must be a positive integer, got {multiple_of!r}")
    size = a._shape[axis]
    if size % factor:
        what = f"axis {axis} of shape {a._shape} has size {size}"
        raise ValueError(f"assume(): {what}, which is no multiple of {factor}")
    return _marked(a, [Specialization(axis, multiple=factor)])


def unmarked(a: Any) -> Any:
    """The array without its marks; itself when it has none."""
    return a if not a._key & MARKED else a._handle(a._key & _PLAIN)


def _several(dims: Any) -> Iterable[Any]:
    return dims if isinstance(dims, Iterable) else (dims,)


def _marked(a: Any, more: list[Specialization]) -> Any:
    specs = {p.axis: p for p in specializations_of(a._key)}
    for p in more:
        # A pinned size says more than any multiple of it.
        if p.size is not None or p.axis not in specs or specs[p.axis].size is None:
            specs[p.axis] = p
    code = encode(specs.values())
    return a._handle(a._key & _PLAIN | ((MARKED | code << SHIFT) if code else 0))
