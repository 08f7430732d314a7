"""Uninitialized arrays for the library's own functions, most of them workspaces."""

from __future__ import annotations

import functools
from typing import Any

from .. import shapes
from ..array import ndarray, type_key, unchecked_array
from ..dtypes import DType
from ..memory.buffer import Buffer


def unchecked_empty(shape: tuple[int, ...], dtype: DType, device: Any) -> ndarray:
    """As `array.empty`, without checks: `shape` is a tuple of ints that are 0 or more."""
    strides, size = _layout(shape, dtype.itemsize)
    key = type_key(dtype, len(shape), False, True, device)
    return unchecked_array(Buffer.allocate(device, size * dtype.itemsize), shape, strides, size, dtype, key)


# A function of its arguments alone.
@functools.lru_cache(maxsize=4096)
def _layout(shape: tuple[int, ...], itemsize: int) -> tuple[tuple[int, ...], int]:
    return shapes.contiguous_strides(shape, itemsize), shapes.size(shape)
