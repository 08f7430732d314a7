"""Products of groups of rows with matrices of their own.

On CPUs they are products one after the other. On GPUs they are one launch of a product's kernel, as only the device may
know where groups begin: it makes a table of tiles first (csrc/device/pa_gemm_groups.h)."""

from __future__ import annotations

from ...array import ndarray
from ...array_host import host
from ...dtypes import int64
from ...jit.launch_state import launch_state
from ...memory.host_access import not_repeatable
from .. import matmul
from ..workspace import unchecked_empty
from . import thresholds as th
from .gemm import buffer_range, gemm
from .gemm_key import ProductKey
from .gemm_mma import Tile, along_depth, copy_if_unaligned, is_aligned, tile_for
from .gemm_text import KERNEL
from .gemm_types import is_tf32


def multiply(c: ndarray, a: ndarray, b: ndarray, ends: ndarray) -> None:
    """`c[...]`, (rows, columns) and new, of `a`, (rows, depth), `b`, (groups, depth, columns), and their `ends`,
    integers."""
    if not c._size:
        return
    if not a._size or not b._size:
        c[...] = 0
    elif c._buffer.device.driver.grid:
        _by_tiles(c, a, b, ends)
    else:
        _one_by_one(c, a, b, ends)


def ranges(ends: ndarray) -> list[tuple[int, int]]:
    """The rows of each group, where the host has their ends: the first, and the one behind the last."""
    not_repeatable()  # what is computed depends on the elements of `ends`
    stops = host(ends).tolist()
    return list(zip([0, *stops], stops, strict=False))


def _one_by_one(c: ndarray, a: ndarray, b: ndarray, ends: ndarray) -> None:
    behind = 0
    for group, (begin, end) in enumerate(ranges(ends)):
        if begin < end:
            gemm(c[begin:end], a[begin:end], b[group])
        behind = end
    if behind < c._shape[0]:
        c[behind:] = 0


def _by_tiles(c: ndarray, a: ndarray, b: ndarray, ends: ndarray) -> None:
    checked, groups, depth = launch_state.debug, b._shape[0], b._shape[1]
    # as many groups of equal sizes, by whose shape tiles are chosen; of each group's last tile half is full
    rows = c._shape[0] // groups + th.LEAST_TILE_ROWS
    like = c._view(0, (groups, rows, c._shape[1]), (0, *c._strides))
    plain = matmul.split_k.schedule(like, depth, True)[0]
    a, b, tiles = (a, b, plain) if checked else _for_tensor_cores(a, b, like, plain)
    table = unchecked_empty((_tile_rows(c, groups, th.LEAST_TILE_ROWS) + 1, 3), int64, c.device)
    grid = _blocks(tiles, c, groups)
    if isinstance(tiles, Tile) and tiles.bf16x6:
        grids = grid, _blocks(plain, c, groups)
        if matmul.gemm_bf16x6.multiply(KERNEL, (a, b, c), (tiles, plain), groups=(ends, table), grids=grids):
            return
        tiles, grid = plain, grids[1]
    ranges = [end for x in (a, b, c) for end in buffer_range(x)] if checked else []
    key = ProductKey(c._dtype.name, 0, tiles, ends=ends._dtype.name)
    KERNEL.launch(key, c.device, a, b, c, *ranges, ends, table, grid, checked=checked)


def _for_tensor_cores(a: ndarray, b: ndarray, c: ndarray, plain: int) -> tuple[ndarray, ndarray, int | Tile]:
    """The operands as tiles of tensor cores take them, and these; `plain` ones where there are none. `c` has the shape
    of groups of equal sizes."""
    rows, columns, depth = c._shape[1], c._shape[2], b._shape[1]
    float32 = c._dtype.name == "float32"
    if float32 and is_tf32(None) and (tile := tile_for(c, depth, True)):
        aligned = copy_if_unaligned(a, columns)
        if is_aligned(aligned) and (rows >= th.COPY_USES or (b._strides[1] == b.itemsize and is_aligned(b))):
            return aligned, along_depth(a, b)[1], tile._replace(cluster=1)
    if tile := matmul.gemm_bf16x6.bf16x6_tile(a, b, c):
        return a, b, tile
    if tile := tile_for(c, depth):
        # clusters' tiles are twice as high: more of their rows are of no use than the clusters save
        return copy_if_unaligned(a, columns), copy_if_unaligned(b, rows), tile._replace(cluster=1)
    return a, b, plain


def _blocks(tiles: int | Tile, c: ndarray, groups: int) -> int:
    """The grid."""
    if not isinstance(tiles, Tile):
        return matmul.split_k.blocks(tiles, c, c._dtype)
    down = _tile_rows(c, groups, tiles.rows * tiles.cluster)
    return tiles.blocks_of(down * tiles.cluster * -(-c._shape[1] // tiles.columns), c._buffer.device)


def _tile_rows(c: ndarray, groups: int, rows: int) -> int:
    """Tiles of so many rows, at most: each group, and what is behind the last one, may have one that isn't full."""
    return c._shape[0] // rows + groups + 1
