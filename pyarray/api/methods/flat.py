"""`a.flat`, and methods that change or write a whole array."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

from ... import shapes
from ...array import empty, ndarray, type_key, unchecked_array
from ...array_convert import asarray, asnumpy
from ...array_host import as_array
from ...memory.buffer import Buffer
from ...memory.host_access import Exposed, clear
from ...typing import ArrayLike, ShapeLike
from ..numpy.selection import put
from ..standard.creation import arange

__all__ = ["flat", "resize", "set_flat", "tofile"]


class Flat:
    """A flat iterator over an array's elements in C order. Indexing it copies, an integer gives a 0-d array;
    values that are assigned are repeated as needed."""

    __slots__ = ("base",)
    __hash__: Any = None

    def __init__(self, base: ndarray):
        self.base = base

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.base.reshape(self.base.size))

    def __getitem__(self, key: Any) -> Any:
        result = self.base.reshape(self.base.size)[key]
        return result if result.ndim == 0 else result.copy()

    def __setitem__(self, key: Any, value: Any) -> None:
        self.base._check_writeable()
        if isinstance(value, (bool, int, float, complex)) and self.base.flags.c_contiguous:
            self.base.reshape(self.base.size)[key] = value
        else:
            put(self.base, arange(self.base.size, device=self.base.device)[key], value)

    def copy(self) -> ndarray:
        """The elements as a fresh 1-D array."""
        return self.base.flatten()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        values = as_array(self.base, dtype, copy)
        if copy is False and not values.flags.c_contiguous:
            raise ValueError(
                f"the elements of an array with strides {self.base.strides} don't lie in a row, so that flat "
                "copies them; pass copy=None or copy=True"
            )
        return values.ravel()

    def __eq__(self, other: Any) -> Any:
        return self.base.ravel() == (other.base.ravel() if isinstance(other, Flat) else other)

    def __repr__(self) -> str:
        return f"<flat of {self.base.size} elements of {self.base._dtype}>"


def flat(self: ndarray) -> Flat:
    """The elements in C order, to iterate over, index and assign to."""
    return Flat(self)


def set_flat(self: ndarray, value: ArrayLike) -> None:
    """Assigns elements in C order, values repeated as needed."""
    values = asarray(value, device=self.device).ravel()
    self._check_writeable()
    if self.size and not values.size:
        raise ValueError(f"a.flat = values takes at least one value for {self.size} elements, got none; give a number")
    put(self, arange(self.size, device=self.device), values)


def resize(self: ndarray, *new_shape: ShapeLike, refcheck: bool = True) -> None:
    """Gives the array another shape in place: elements in C order are kept as far as they go, new ones are 0.

    Raises `ValueError` for a view, foreign memory, and what is not contiguous; for an array with views, or
    whose memory another library shares; for one with gradients; and for one whose address was given out by
    `__array_interface__` or `__cuda_array_interface__`, which may still be in use: `refcheck=False` says that it
    isn't.
    """
    shape = shapes.resolve_shape(new_shape[0] if len(new_shape) == 1 else new_shape)
    if type(self) is not ndarray or not (self.flags.owndata and self.flags.c_contiguous):
        raise ValueError("resize() is for arrays with memory of their own, in C order; use pyarray.resize(a, shape)")
    self._check_writeable()
    _check_unshared(self, refcheck)
    if self._buffer.gradient is not None:
        raise ValueError(
            "resize(): the array has gradients, of its size; write a = pyarray.resize(a, shape), which copies"
        )
    size, old = shapes.size(shape), self._buffer
    strides = shapes.contiguous_strides(shape, self.itemsize)
    key = type_key(self._dtype, len(shape), False, True, self.device)
    nbytes, used = size * self.itemsize, self.nbytes
    grown = old if nbytes <= old.nbytes else _larger(self, nbytes)
    if nbytes > used:
        clear(self.device, grown.ptr + used, nbytes - used)
    self._relayout(grown, grown.ptr, shape, strides, key)


def _larger(a: ndarray, nbytes: int) -> Buffer:
    """A buffer of at least `nbytes` with the elements of `a`, and of at least twice the old size: the old buffers,
    which it keeps alive since other threads may have launched with them, are then no larger together."""
    grown = Buffer.allocate(a.device, max(nbytes, 2 * a._buffer.nbytes))
    if a._size:
        unchecked_array(grown, a._shape, a._strides, a._size, a._dtype, a._key)[...] = a
    grown.previous = a._buffer
    return grown


def _holders(a: ndarray) -> int:
    return sys.getrefcount(a._buffer)


def _check_unshared(a: ndarray, refcheck: bool) -> None:
    """Raises `ValueError` if other arrays share the memory of `a`."""
    what = ""
    if _holders(a) > _holders(empty(0)):
        what = "another library has its memory (by DLPack)"
        if a._buffer.arrays > 1:
            what = "there is a view of it"
        elif any(isinstance(x, Exposed) for x in gc.get_referrers(a._buffer)):
            what = "a NumPy array shows its memory"
        what = f"{what}; drop that first, or write"
    elif refcheck and a._buffer.escaped:
        what = "its address was given out, as numpy.asarray(a) does; pass refcheck=False if that is over, or"
        what += " write"
    if what:
        raise ValueError(f"resize(): {what} a = pyarray.resize(a, shape), which copies")


def tofile(self: ndarray, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Writes the elements in C order to a file (a name, a path or an open one), as bytes, or as text with
    `sep` between them: `numpy.ndarray.tofile`."""
    asnumpy(self).tofile(fid, sep=sep, format=format)
