"""Gradients of the matrices of a grouped product (grouped GEMM): a group's rows, transposed, times their gradients.

On CPUs they are products one after the other. On GPUs they are one kernel in tiles, each of which reads where its group
begins and ends, as only the device may know that."""

from __future__ import annotations

import functools

import numpy as np

from ... import jit
from ...array import ndarray
from ...dtypes import DType, float32, int64
from ...lang.markers import tiles
from .gemm import gemm
from .grouped import ranges

# by bytes of an element: the most rows and columns of a tile, and its depth
_TILES = {2: (128, 256, 64), 4: (128, 128, 16), 8: (64, 64, 16)}
_LEAST_SIDE = 16


def multiply(out: ndarray, a: ndarray, grad: ndarray, ends: ndarray) -> None:
    """`out[...]`, (groups, depth, columns) and new, of `a`, (rows, depth), `grad`, (rows, columns), and the `ends` of
    groups, integers."""
    if not out._size:
        return
    if not a._shape[0]:
        out[...] = 0
    elif out._buffer.device.driver.grid:
        rows, columns, depth = _TILES[out.itemsize]
        tile = _side(out._shape[1], rows), _side(out._shape[2], columns), depth
        kernel = _kernel(tile, out._dtype if out.itemsize == 8 else float32)
        kernel(out, a, grad, ends)
    else:
        _one_by_one(out, a, grad, ends)


def _one_by_one(out: ndarray, a: ndarray, grad: ndarray, ends: ndarray) -> None:
    for group, (begin, end) in enumerate(ranges(ends)):
        if begin < end:
            gemm(out[group], a[begin:end].mT, grad[begin:end])
        else:
            out[group] = 0


def _side(size: int, most: int) -> int:
    """The side of a tile for an axis of so many elements."""
    return min(max(1 << (size - 1).bit_length(), _LEAST_SIDE), most)


# The text depends on these; dtypes are in its variants' keys.
@functools.cache
def _kernel(tile: tuple[int, int, int], wide: DType) -> jit.kernel.Kernel:
    rows, columns, depth = tile
    text = f"""def grouped_gradients(out, a, grad, ends):
    for e, i, j in tiles(out, (1, {rows}, {columns})):
        group, count = e.start, a.shape[0]
        begin = min(max(int64(ends[group - 1]), 0), count) if group > 0 else 0
        end = min(max(int64(ends[group]), begin), count)
        x, y = a[begin:end], grad[begin:end]
        total = zeros((i, j), wide)
        for k in tiles(end - begin, {depth}):
            total += x[k, i].T @ y[k, j]
        out[group, i, j] = total
"""
    names = {"wide": wide, "int64": int64, "tiles": tiles, "zeros": np.zeros}
    return jit.kernel.from_text("grouped_gradients", text, names)
