"""Products of groups of rows with matrices of their own.

On CPUs they are products one after the other. On GPUs they are one loop over tiles, as only the device may know where
groups begin. A group may begin at any row. Group g has the tiles from number begin // size + g on, of `size` rows:
these numbers are enough for its rows, and less than those of the next group, so a tile finds its group by a binary
search among the ends, and no table of tiles is made first. What is behind the last group is one more, of depth 0. A
tile at the end of the array begins earlier, so that no row outside is read; rows of other groups aren't stored."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ... import jit
from ...array import ndarray
from ...array_host import host
from ...dtypes import DType, float32
from ...jit.functions import func
from ...lang.markers import tiles
from ...memory.host_access import not_repeatable
from .gemm import gemm


class Sides(NamedTuple):
    """Of a tile of the result, and the depth of a step."""

    rows: int
    columns: int
    depth: int


# By the bytes of an element. Those of 2 are as matrix instructions take them (docs/guide/tiles.md).
SIDES = {2: Sides(128, 128, 64), 4: Sides(64, 128, 16), 8: Sides(64, 64, 16)}
SMALL_GROUP = 32  # rows of a group on the average, up to which tiles have so many, by the bytes of an element:
ROWS_OF_SMALL = {2: 64, 4: 16, 8: 16}


def multiply(c: ndarray, a: ndarray, b: ndarray, ends: ndarray) -> None:
    """`c[...]`, (rows, columns) and new, of `a`, (rows, depth), `b`, (groups, depth, columns), and their `ends`."""
    if not c._size:
        return
    if not c._buffer.device.driver.grid:
        _one_by_one(c, a, b, ends)
        return
    sides = SIDES[c.itemsize]
    if a._shape[0] <= SMALL_GROUP * b._shape[0]:
        sides = sides._replace(rows=ROWS_OF_SMALL[c.itemsize])
    _kernel(c._dtype, sides)(c, a, b, ends)


def _one_by_one(c: ndarray, a: ndarray, b: ndarray, ends: ndarray) -> None:
    not_repeatable()  # the products depend on the elements of `ends`
    begin = 0
    for group, end in enumerate(host(ends).tolist()):
        if begin < end:
            gemm(c[begin:end], a[begin:end], b[group])
            begin = end
    if begin < c._shape[0]:
        c[begin:] = 0


@func
def _find_group(ends, tile: int, rows: int):  # type: ignore[no-untyped-def]
    low = 0
    high = ends.size
    while low < high:
        middle = (low + high) // 2
        if ends[middle] // rows + middle < tile:
            low = middle + 1
        else:
            high = middle
    return low


# The text depends on these alone.
@functools.cache
def _kernel(dtype: DType, sides: Sides) -> jit.kernel.Kernel:
    rows, columns, depth = sides
    text = f"""def grouped_matmul(c, a, b, ends):
    for tile, j in tiles((a.shape[0] // {rows} + ends.size + 1, c.shape[1]), (1, {columns})):
        g = find_group(ends, tile.start, {rows})
        begin = min(max(ends[g - 1], 0), a.shape[0]) if g > 0 else 0
        end = min(ends[g], a.shape[0]) if g < ends.size else a.shape[0]
        first = begin + (tile.start - begin // {rows} - g) * {rows}
        if begin <= first < end:
            (i,) = tiles(min(a.shape[0], {rows}), {rows})
            start = max(min(first, a.shape[0] - {rows}), 0)
            matrix = max(min(g, b.shape[0] - 1), 0)
            total = zeros((i, j), wide)
            for k in tiles(a.shape[1] if g < b.shape[0] else 0, {depth}):
                total += a[start + i, k] @ b[matrix, k, j]
            own = (start + i >= first) & (start + i < end)
            copyto(c[start + i, j], total, where=own[:, None])
"""
    wide = float32 if dtype.itemsize < 8 else dtype
    scope = {"tiles": tiles, "wide": wide, "zeros": np.zeros, "copyto": np.copyto, "find_group": _find_group}
    return jit.kernel.from_text("grouped_matmul", text, scope)
