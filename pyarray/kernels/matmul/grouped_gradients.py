"""Gradients of the matrices of a grouped product (grouped GEMM): a group's rows, transposed, times their gradients.

On CPUs they are products one after the other. On GPUs they are one launch of a product's kernel, whose depth is in
groups, as only the device may know where these begin (csrc/device/pa_gemm_tiles.h)."""

from __future__ import annotations

from ...array import ndarray
from ...jit.launch_state import launch_state
from .. import matmul
from .gemm import buffer_range, gemm
from .gemm_key import ProductKey
from .gemm_mma import Tile, copy_if_unaligned, tile_for
from .gemm_text import KERNEL
from .grouped import ranges


def multiply(out: ndarray, a: ndarray, grad: ndarray, ends: ndarray) -> None:
    """`out[...]`, (groups, depth, columns) and new, of `a`, (rows, depth), `grad`, (rows, columns), and the `ends` of
    groups, integers."""
    if not out._size:
        return
    if not a._shape[0]:
        out[...] = 0
    elif out._buffer.device.driver.grid:
        _by_tiles(out, a, grad, ends)
    else:
        _one_by_one(out, a, grad, ends)


def _one_by_one(out: ndarray, a: ndarray, grad: ndarray, ends: ndarray) -> None:
    for group, (begin, end) in enumerate(ranges(ends)):
        if begin < end:
            gemm(out[group], a[begin:end].mT, grad[begin:end])
        else:
            out[group] = 0


def _by_tiles(out: ndarray, a: ndarray, grad: ndarray, ends: ndarray) -> None:
    checked, (groups, rows, columns) = launch_state.debug, out._shape
    depth = a._shape[0] // groups + 1  # as many groups of equal sizes, by whose shape tiles are chosen
    tiles: int | Tile = matmul.split_k.schedule(out, depth, True)[0]
    x, y = a.mT, grad
    if not checked and (tile := tile_for(out, depth)):
        x, y, tiles = copy_if_unaligned(x, columns), copy_if_unaligned(y, rows), tile
    x, y = (v._view(0, (groups, *v._shape), (0, *v._strides)) for v in (x, y))
    ranges = [end for v in (x, y, out) for end in buffer_range(v)] if checked else []
    key = ProductKey(out._dtype.name, 1, tiles, ends=ends._dtype.name, grouped_depth=True)
    grid = matmul.split_k.blocks(tiles, out, out._dtype)
    KERNEL.launch(key, out.device, x, y, out, *ranges, ends, grid, checked=checked)
