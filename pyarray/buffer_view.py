"""`BufferView`: an array that is one contiguous 1-D run of another."""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

from pyarray._core import register_view
from pyarray.annotations import ArrayAnnotation, view_annotation
from pyarray.array import _CONTIGUOUS_1D, _NDIM_STRIDED, ndarray
from pyarray.array_hooks import operations


class BufferView(ndarray):
    """The `size` elements of the 1-D contiguous `array` from element `offset` on, without a copy; `array`
    may itself be a view.

    Raises `ValueError` when the range leaves `array`, and `TypeError` when an argument is no integer or
    `array` is not 1-D and contiguous. Slices of contiguous 1-D arrays are views, too; they clamp, as
    Python's slices do.

    >>> from pyarray.array import empty
    >>> view = BufferView(empty(32, "float32"), 8, 16)
    >>> view.offset, view.size, view.subview(4, 2).offset
    (8, 16, 12)
    """

    __slots__ = ()

    def __new__(cls, array: ndarray, offset: SupportsIndex, size: SupportsIndex) -> BufferView:
        if not isinstance(array, ndarray):
            raise TypeError(f"BufferView takes a pyarray array, got {type(array).__name__}; use pyarray.asarray")
        if array._key & _NDIM_STRIDED != _CONTIGUOUS_1D:
            raise _no_run(array)
        first, count = _integer("offset", offset), _integer("size", size)
        length = array._size
        if first < 0 or count < 0 or first + count > length:
            raise ValueError(
                f"a view of offset={first}, size={count} leaves its parent of size {length}; "
                f"offset and size must be 0 or more and offset + size at most {length}"
            )
        return array[first : first + count]

    def __class_getitem__(cls, item: Any) -> ArrayAnnotation:
        return view_annotation(item)

    @property
    def offset(self) -> int:
        """Elements from the first element of `base` to the first of this view."""
        base = self._base
        return 0 if base is None else (self._ptr - base._ptr) // self._dtype.itemsize


def _integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name} of a view is an integer, got {type(value).__name__} {value!r}; round it first"
        ) from None


def _no_run(array: ndarray) -> TypeError:
    if array.ndim != 1:
        return TypeError(f"a BufferView is a view of a 1D array, got shape {array.shape}; index a row, or ravel() it")
    return TypeError(
        f"a BufferView is a contiguous run, got a 1D array with a stride of {array.strides[0]} bytes "
        f"for {array._dtype}; slice it (any step gives a view), or use array.copy()"
    )


register_view(BufferView)
operations["buffer_view"] = BufferView
