"""Tall-skinny products on grids, of many rows with a few columns: a block has a tile of rows with all columns."""

from __future__ import annotations

import functools

import numpy as np

from ... import jit
from ...array import ndarray
from ...dtypes import DType, float32
from ...lang.markers import tiles
from . import thresholds as th


def multiply(a: ndarray, b: ndarray, c: ndarray) -> None:
    """`c[...] = a @ b` of what `fits`. `c` shares no memory with the others."""
    a, b, c = _tall(a, b, c)
    kernel = _kernel(_tile(a, c), a._dtype if a.itemsize > 4 else float32)
    kernel(c, a, b)


def fits(a: ndarray, b: ndarray, c: ndarray) -> bool:
    """Whether this is the fastest way to compute `c = a @ b`."""
    if not a.ndim == b.ndim == c.ndim == 2:
        return False
    a, b, c = _tall(a, b, c)
    (rows, columns), depth, single = c._shape, a._shape[1], a._dtype is float32
    return (
        1 < columns <= (th.TALL_SKINNY_COLUMNS if single else th.TALL_SKINNY_NARROW)
        and columns < depth
        and a._size >= th.TALL_SKINNY_ELEMENTS
        and a._strides[1] == a.itemsize
        and a._dtype.kind == "f"
        and a.itemsize > 1
        and (a.itemsize > 2 or depth <= th.TALL_SKINNY_UNEVEN_DEPTH or depth % 64 == 0)
        and (c._dtype is a._dtype or (a.itemsize == 2 and c._dtype is float32))
        and rows >= _processors(c) * (th.TALL_SKINNY_ROWS if single else th.TALL_SKINNY_MANY_ROWS)
    )


def _tall(a: ndarray, b: ndarray, c: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """The operands of `c = a @ b`, or of `c.T = b.T @ a.T`, of which the result has more rows than columns."""
    return (a, b, c) if c._shape[0] >= c._shape[1] else (b.mT, a.mT, c.mT)


def _processors(x: ndarray) -> int:
    count: int = x._buffer.device.driver.properties()["processors"]
    return count


def _tile(a: ndarray, c: ndarray) -> tuple[int, int, int]:
    """Rows, columns and depth of a tile; timed on an H200."""
    size, (rows, depth) = a.itemsize, a._shape
    across = next(n for n in (16 if size == 2 else 8, 16, 32) if n >= c._shape[1])
    most = min({2: 64, 4: 32, 8: 16}[size], depth // 2 if size == 2 or across == 8 else depth)
    padded = {n: -(-depth // n) * n for n in (64, 32, 16) if n <= max(most, 16)}
    deep = next(n for n in padded if padded[n] <= (1 if size == 2 else th.TALL_SKINNY_PADDING) * padded[16])
    high = (128,) if size == 4 and deep == 16 else (256, 128)
    return next((n for n in high if rows >= th.TALL_SKINNY_TILES * _processors(c) * n), 64), across, deep


# The text depends on these; dtypes are in its variants' keys.
@functools.cache
def _kernel(tile: tuple[int, int, int], wide: DType) -> jit.kernel.Kernel:
    rows, columns, depth = tile
    text = f"""def tall_skinny(c, a, b):
    for i in tiles(c.shape[0], {rows}):
        (j,) = tiles(c.shape[1], {columns})
        total = zeros((i, j), wide)
        for k in tiles(a.shape[1], {depth}):
            total += a[i, k] @ b[k, j]
        c[i, j] = total
"""
    return jit.kernel.from_text("tall_skinny", text, {"wide": wide, "tiles": tiles, "zeros": np.zeros})
