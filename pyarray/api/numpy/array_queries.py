"""Queries of arrays and dtypes (`may_share_memory`, `require`, `ndenumerate` …), and their text."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ... import dtypes, shapes
from ...array import ndarray
from ...array_convert import asarray, asnumpy
from ...array_format import representation, text
from ...array_views import overlaps
from ...dtypes import asdtype, result_type
from ...memory.host_access import outline
from ...typing import ArrayLike, AxisLike, DeviceLike, DTypeLike
from ..core.ufunc import ARRAYS

__all__ = [
    "array2string", "array_repr", "array_str", "asfortranarray", "common_type", "einsum_path",
    "get_array_module", "isfortran", "isscalar", "issubdtype", "may_share_memory", "min_scalar_type",
    "ndenumerate", "ndim", "promote_types", "require", "shape", "shares_memory", "size",
]  # fmt: skip


def get_array_module(*args: Any) -> Any:
    """The module that computes with these: `pyarray` where one is an array of its own, else `numpy`.

    >>> import numpy, pyarray as pa
    >>> pa.get_array_module(pa.ones(2), 1) is pa, pa.get_array_module([1]) is numpy
    (True, True)
    """
    return sys.modules["pyarray"] if any(isinstance(x, ARRAYS) for x in args) else np


def ndim(a: ArrayLike, /) -> int:
    """Number of axes; of a number 0.

    >>> pa.ndim(pa.ones((2, 3))), pa.ndim(1.5)
    (2, 0)
    """
    x: Any = a
    return int(x.ndim if hasattr(a, "ndim") else np.ndim(x))


def shape(a: ArrayLike, /) -> tuple[int, ...]:
    """Sizes of the axes; of a number none.

    >>> pa.shape(pa.ones((2, 3))), pa.shape([1, 2])
    ((2, 3), (2,))
    """
    x: Any = a
    return tuple(x.shape if hasattr(a, "shape") else np.shape(x))


def size(a: ArrayLike, /, axis: AxisLike = None) -> int:
    """Number of elements, or of those along `axis` (an int or a tuple of ints).

    >>> pa.size(pa.ones((2, 3))), pa.size(pa.ones((2, 3)), 1)
    (6, 3)
    """
    sizes = shape(a)
    return shapes.size(sizes[k] for k in shapes.normalize_axes(axis, len(sizes)))


def isscalar(element: Any, /) -> bool:
    """Whether `element` is a Python or NumPy number, or a string. False for arrays, also 0-d ones.

    >>> pa.isscalar(3.0), pa.isscalar(pa.asarray(3.0))
    (True, False)
    """
    return bool(np.isscalar(element))


def isfortran(a: ndarray, /) -> bool:
    """Whether `a` is Fortran-contiguous (the first axis fastest) and not C-contiguous.

    >>> pa.isfortran(pa.ones((2, 3)).T)
    True
    """
    return bool(a.flags.f_contiguous and not a.flags.c_contiguous)


def asfortranarray(x: ArrayLike, dtype: DTypeLike = None, *, device: DeviceLike = None) -> ndarray:
    """The array itself if it is Fortran-contiguous (the first axis fastest in memory), else a copy that is
    so.

    >>> pa.asfortranarray(pa.ones((2, 3))).strides
    (8, 16)
    """
    x = asarray(x, dtype=dtype, device=device)
    x = x if x.ndim else x.reshape(1)
    return x if x.flags.f_contiguous else x.T.copy().T


def require(a: ArrayLike, dtype: DTypeLike = None, requirements: Any = None, *, device: DeviceLike = None) -> ndarray:
    """`a` as an array of `dtype` that fulfils `requirements`, letters or names: C and F (order), A (aligned,
    which all arrays are), W (writeable), O (memory of its own), E (no subclass). Raises `ValueError` for
    others, and for C and F together.

    >>> pa.require(pa.ones((2, 3)).T, requirements="C").strides
    (16, 8)
    """
    names = {"C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F_CONTIGUOUS": "F", "FORTRAN": "F", "WRITEABLE": "W"}
    names |= {"ALIGNED": "A", "OWNDATA": "O", "ENSUREARRAY": "E"}
    listed = [requirements] if isinstance(requirements, str) else requirements or ()
    flags = {names.get(str(name).upper(), str(name).upper()) for name in listed}
    if unknown := flags - set("CFAWOE"):
        raise ValueError(f"require(): requirements are of C, F, A, W, O and E, got {sorted(unknown)}")
    if flags >= {"C", "F"}:
        raise ValueError("require(): an array has one order, C or F; got both")
    x = asarray(a, dtype=dtype, device=device)
    if "C" in flags and not x.flags.c_contiguous:
        x = x.copy()
    if "F" in flags and not x.flags.f_contiguous:
        x = x.T.copy().T
    lacking = ("W" in flags and not x.flags.writeable) or ("O" in flags and not x.flags.owndata)
    return (x.T.copy().T if "F" in flags else x.copy()) if lacking else x


def may_share_memory(a: ArrayLike, b: ArrayLike, /, max_work: int | None = None) -> bool:
    """Whether the byte ranges of both overlap; elements may still not.

    >>> a = pa.arange(6); pa.may_share_memory(a[::2], a[1::2])
    True
    """
    return isinstance(a, ndarray) and isinstance(b, ndarray) and overlaps(a, b)


def shares_memory(a: ndarray, b: ndarray, /, max_work: int | None = None) -> bool:
    """Whether an element of `a` shares memory with one of `b`: exact, since NumPy computes it. Raises
    NumPy's `TooHardError` beyond `max_work`.

    >>> a = pa.arange(6); pa.shares_memory(a[::2], a[1::2])
    False
    """
    if not may_share_memory(a, b):
        return False
    first, second = outline(a), outline(b)
    most: Any = max_work
    return bool(np.shares_memory(first, second, max_work=most))


def promote_types(type1: ArrayLike | DTypeLike, type2: ArrayLike | DTypeLike, /) -> np.dtype[Any]:
    """`result_type` of two dtypes.

    >>> pa.promote_types("int8", "uint8")
    dtype('int16')
    """
    return result_type(asdtype(type1), asdtype(type2)).numpy


def common_type(*arrays: ArrayLike) -> type[np.generic]:
    """The floating type, of at least 16 bits, that holds all arrays, as NumPy's class of its numbers.
    Integers count as float64. Raises `TypeError` for bools.

    >>> pa.common_type(pa.ones(2, dtype="float32"), pa.arange(2))
    <class 'numpy.float64'>
    """
    kinds = [asarray(x)._dtype for x in arrays]
    if any(kind.kind == "b" for kind in kinds):
        raise TypeError("common_type() is for arrays of numbers, got bool; cast it with astype")
    wide = (dtypes.float64 if kind.kind in "iu" else kind for kind in kinds)
    return result_type(*wide, dtypes.float16).numpy.type


def min_scalar_type(a: ndarray | complex | np.generic, /) -> np.dtype[Any]:
    """The smallest dtype that holds the number `a`; of an array its own.

    >>> pa.min_scalar_type(300), pa.min_scalar_type(-1)
    (dtype('uint16'), dtype('int8'))
    """
    return a.dtype if isinstance(a, ndarray) else asdtype(np.min_scalar_type(a)).numpy


def issubdtype(arg1: DTypeLike, arg2: DTypeLike, /) -> bool:
    """Whether a dtype is of a kind: `integer`, `floating`, `number` ..., or another dtype.

    >>> pa.issubdtype(pa.float32, pa.floating), pa.issubdtype("int8", pa.floating)
    (True, False)
    """
    first, second = (
        x if isinstance(x, type) and issubclass(x, np.generic) else asdtype(x).numpy.type for x in (arg1, arg2)
    )
    if first in dtypes.EXTENSION_SCALARS:  # types that NumPy's kinds don't know
        return second in (first, np.floating, np.inexact, np.number, np.generic)
    return bool(np.issubdtype(first, second))


def ndenumerate(arr: ArrayLike, /) -> Any:
    """Pairs of an index and the element there, a Python number; elements come from the device at once.

    >>> list(pa.ndenumerate(pa.asarray([[5, 6]])))
    [((0, 0), 5), ((0, 1), 6)]
    """
    values = asnumpy(arr)
    return ((index, values[index].item()) for index in np.ndindex(values.shape))


def array_repr(arr: ArrayLike, /) -> str:
    """`repr(arr)`.

    >>> pa.array_repr(pa.asarray([1])) == repr(pa.asarray([1]))
    True
    """
    return representation(asarray(arr))


def array_str(a: ArrayLike, /) -> str:
    """`str(a)`: the elements alone.

    >>> pa.array_str(pa.asarray([1, 2]))
    '[1 2]'
    """
    return text(asarray(a))


def array2string(a: ArrayLike, /, **options: Any) -> str:
    """The elements as text: `numpy.array2string`, with its options.

    >>> pa.array2string(pa.asarray([1, 2]), separator=", ")
    '[1, 2]'
    """
    return np.array2string(asnumpy(a), **options)


def einsum_path(subscripts: str, /, *operands: ArrayLike, optimize: Any = "greedy") -> Any:
    """NumPy's answer in which order `einsum` contracts best, and text about it; from shapes alone.

    >>> pa.einsum_path("ij,jk->ik", pa.ones((2, 3)), pa.ones((3, 4)))[0]
    ['einsum_path', (0, 1)]
    """
    stand_ins = [np.broadcast_to(np.float64(0), shape(x)) for x in operands]
    return np.einsum_path(subscripts, *stand_ins, optimize=optimize)
