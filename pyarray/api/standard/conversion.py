"""`asarray` and `array`: arrays of numbers (`array_convert`), and structured arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...array import ndarray
from ...array_convert import asarray as _asarray
from ...keywords import quick
from ...structured_array import StructuredArray, as_structured
from ...structured_dtypes import structured
from ...typing import ArrayLike, DeviceLike, DTypeLike

__all__ = ["array", "asarray"]


@quick("asarray")
def array(obj: ArrayLike, dtype: DTypeLike = None, copy: bool | None = True, device: DeviceLike = None) -> ndarray:
    """`asarray` that copies unless told otherwise: `copy=None` copies where it must, `copy=False` raises
    `ValueError` there.

    >>> pa.array([[1, 2], [3, 4]], dtype="float32").shape
    (2, 2)
    """
    return asarray(obj, dtype=dtype, copy=copy, device=device)


@quick("asarray")
def asarray(obj: ArrayLike, dtype: DTypeLike = None, copy: bool | None = None, device: DeviceLike = None) -> ndarray:
    """`obj` as an array: an array, a NumPy array, anything with `__dlpack__`, `__cuda_array_interface__` or a
    buffer, a scalar or nested sequences of them. Records of NumPy, and a structured dtype or a dataclass as `dtype`,
    make a `StructuredArray`.

    On the CPU the memory of NumPy arrays (of subclasses too) and buffers is shared where dtype, alignment and
    byte order allow; read-only memory, and axes of stride 0, give a read-only array; a bytearray can't grow
    meanwhile. `copy=True` always copies, `copy=False` raises `ValueError` where a copy is needed. Dtypes of
    Python scalars are bool, int64, float64, complex128. Raises `TypeError` for unsupported dtypes and for
    masked arrays, `OverflowError` for integers out of the dtype's range.

    >>> pa.asarray([1, 2.5]).dtype
    dtype('float64')
    """
    layout = structured(dtype)
    if layout is not None or isinstance(obj, StructuredArray) or _has_records(obj, dtype):
        found: Any = as_structured(obj, layout, copy, device)
        return found
    return _asarray(obj, dtype=dtype, copy=copy, device=device)


def _has_records(obj: Any, dtype: Any) -> bool:
    return dtype is None and isinstance(obj, (np.ndarray, np.void)) and obj.dtype.names is not None
