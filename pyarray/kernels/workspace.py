"""Workspaces: new arrays for the library's own functions, without checks of their arguments."""

from __future__ import annotations

import functools
from typing import Any

from .. import shapes
from ..array import ndarray, type_key, unchecked_array
from ..dtypes import DType
from ..memory.buffer import Buffer


def scratch(shape: tuple[int, ...], dtype: DType, device: Any) -> ndarray:
    """As `array.empty`, of a tuple of Python's ints that are 0 or more, without looking at them."""
    strides, size = _layout(shape, dtype.itemsize)
    key = type_key(dtype, len(shape), False, True, device)
    return unchecked_array(Buffer.allocate(device, size * dtype.itemsize), shape, strides, size, dtype, key)


# A function of its arguments alone.
@functools.lru_cache(maxsize=4096)
def _layout(shape: tuple[int, ...], itemsize: int) -> tuple[tuple[int, ...], int]:
    return shapes.contiguous_strides(shape, itemsize), shapes.size(shape)
