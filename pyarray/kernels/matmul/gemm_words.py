"""Products of 8- and 16-bit integers into 32-bit ones on CPUs, by a kernel in tiles: instructions add two products of
16-bit words, in vectors (csrc/device/pa_products_words.h)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ... import jit
from ...array import ndarray
from ...dtypes import int8, int16, int32, uint8, uint32
from ...lang.markers import tiles
from . import thresholds as th

if TYPE_CHECKING:
    from .gemm_epilogue import Epilogue

_LARGE, _SMALL = (128, 192), (64, 96)  # rows and columns; small ones where each thread would have few
_DEPTH = 96


def fits(views: Sequence[ndarray], epilogue: Epilogue | None) -> bool:
    """Whether `multiply` computes the product of `views`, a, b, c and an epilogue's arrays, and faster than the kernel
    of all types, which multiplies 32 bits each."""
    a, b, c = views[:3]
    return (
        a._dtype is b._dtype
        and a._dtype in (int8, uint8, int16)
        and c._dtype in (int32, uint32)
        and c.ndim <= 3
        and not (epilogue is not None and epilogue.computes)
        and min(*c._shape[-2:], a._shape[-1]) >= th.WORDS_MIN_SIDE
        and c._shape[-2] * c._shape[-1] * a._shape[-1] >= th.WORDS_MIN_WORK
    )


def multiply(views: Sequence[ndarray]) -> None:
    """`c[...] = a @ b` of matrices, or of stacks of as many, whose sums wrap around: int32 has the bits of uint32."""
    a, b, c = views[:3]
    threads = c._buffer.device.driver.properties()["threads"]
    large = c._size >= 2 * threads * _LARGE[0] * _LARGE[1]
    _product(c.ndim - 2, *(_LARGE if large else _SMALL))(c, a, b)


# The text depends on the axes of a stack and the sizes of tiles.
@functools.cache
def _product(axes: int, rows: int, columns: int) -> jit.kernel.Kernel:
    matrix = "matrix.start, " * axes
    text = f"""def product(c, a, b):
    for {"matrix, " * axes}i, j in tiles(c, ({"1, " * axes}{rows}, {columns})):
        total = zeros((i, j), int32)
        for k in tiles(a.shape[{axes + 1}], {_DEPTH}):
            total += a[{matrix}i, k] @ b[{matrix}k, j]
        c[{matrix}i, j] = total
"""
    return jit.kernel.from_text("product", text, {"tiles": tiles, "zeros": np.zeros, "int32": int32})
