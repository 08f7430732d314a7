"""Data type functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from ... import dtypes as rows
from ...array import ndarray
from ...array_convert import asarray, to_device
from ...driver.base import get_device
from ...dtypes import EXTENSIONS, asdtype, dtype_of
from ...jit.replay import replayable
from ...typing import ArrayLike, DeviceLike, DTypeLike
from ..core.registry import REAL, precompiled

__all__ = ["astype", "can_cast", "dtype", "finfo", "iinfo", "isdtype", "result_type"]

# the standard's names of groups; the others in `CATEGORIES` are words for error messages
_STANDARD = (
    "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric",
)  # fmt: skip


dtype = np.dtype


@dataclass(frozen=True)
class FloatInfo:
    """What `finfo` returns: `bits` and limits of a floating type, as Python floats."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class IntegerInfo:
    """What `iinfo` returns: `bits` and limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


@precompiled((*REAL, "bool", "uint8"), "astype(a, float32)")
@precompiled((*REAL, "bool"), "astype(a, float64)", "astype(a, int64)")
@replayable
def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike = None) -> ndarray:
    """`x` cast to `dtype`: fresh, or with `copy=False` `x` itself where it has that dtype and device already.

    Raises `TypeError` for an unknown dtype, or complex numbers to a real one.

    >>> pa.astype(pa.asarray([1.7, -1.7]), pa.int8).tolist()
    [1, -1]
    """
    x = asarray(x)
    cast = x.astype(dtype, copy=copy)
    return cast if device is None else to_device(cast, get_device(device))


def can_cast(from_: ArrayLike | DTypeLike, to: ArrayLike | DTypeLike, /) -> bool:
    """Whether `to` holds every value of the dtype (or of the array's dtype) `from_`.

    Raises `TypeError` for what is neither.

    >>> pa.can_cast(pa.int8, pa.int32), pa.can_cast(pa.float64, pa.float32)
    (True, False)
    """
    return rows.can_cast(dtype_of(from_), asdtype(to))


def result_type(*operands: ArrayLike) -> np.dtype[Any]:
    """Common dtype of arrays, dtypes and Python scalars (weak). Raises `ValueError` for no operand and
    `TypeError` where there is no common dtype.

    >>> pa.result_type(pa.float32, 2.0), pa.result_type(pa.int8, "int64")
    (dtype('float32'), dtype('int64'))
    """
    return rows.result_type(*operands).numpy


def finfo(type: ArrayLike | DTypeLike, /) -> FloatInfo:
    """Limits of a floating dtype, of an array's dtype, or of a complex dtype's components. Raises `TypeError`
    for other types.

    >>> pa.finfo(pa.float32).bits, pa.finfo(pa.bfloat16).eps
    (32, 0.0078125)
    """
    kind = dtype_of(type)
    if kind.kind not in "fc":
        raise ValueError(f"finfo() takes a floating dtype, got {kind}; use iinfo for integers")
    part = rows.real_of(kind)
    info: Any = ml_dtypes.finfo(part.numpy) if part in EXTENSIONS else np.finfo(part.numpy)
    eps, high, low, normal = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(int(info.bits), eps, high, low, normal, part.numpy)


def iinfo(type: ArrayLike | DTypeLike, /) -> IntegerInfo:
    """Limits of an integer dtype or of an array's dtype. Raises `TypeError` for other types.

    >>> pa.iinfo(pa.int8).max
    127
    """
    kind = dtype_of(type)
    if kind.kind not in "iu":
        raise ValueError(f"iinfo() takes an integer dtype, got {kind}; use finfo for floating types")
    info = np.iinfo(kind.numpy)
    return IntegerInfo(int(info.bits), int(info.max), int(info.min), kind.numpy)


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether `dtype` is `kind`: a dtype, the name of a group of dtypes, or a tuple of these, any of which
    will do.

    The groups are "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex
    floating" and "numeric". Raises `ValueError` for another name and `TypeError` for what is no dtype.

    >>> pa.isdtype(pa.float32, "real floating"), pa.isdtype(pa.int8, (pa.int16, "bool"))
    (True, False)
    """
    row = asdtype(dtype)
    if isinstance(kind, tuple):
        return sum(isdtype(row, each) for each in kind) > 0  # each one is checked
    if isinstance(kind, str) and kind in _STANDARD:
        return row.kind in rows.CATEGORIES[kind]
    if isinstance(kind, str) and kind not in rows.BY_NAME:
        raise ValueError(f"isdtype(): {kind!r} is no group of dtypes; there are {', '.join(map(repr, _STANDARD))}")
    return row is asdtype(kind)
