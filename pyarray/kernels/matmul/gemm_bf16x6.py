"""Products of float32 by tensor cores of bfloat16: operands are split into three parts each
(csrc/device/pa_gemm_bf16x6.h), whose products are as accurate as float32's own. Numbers far from 1 take the kernel of
float32, which is launched behind and ends at once where there are none."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any

from ... import lang
from ...array import ndarray
from ...driver.kernel_step import KernelStep
from ...dtypes import bfloat16, float32, int64, uint32
from ...errors import OutOfMemoryError
from ...jit.text_kernel import TextKernel
from ..argument_slots import slot_fields
from ..workspace import unchecked_empty
from . import split_k
from . import thresholds as th
from .gemm_epilogue import Epilogue
from .gemm_key import ProductKey
from .gemm_mma import Tile, tile_cost
from .gemm_types import BF16X6_PARTS, BF16X6_PRODUCTS

MOST_TILES = 1 << 28  # as pa_tma_fits in csrc/device/pa_gemm_bulk_copies.h
_CHUNK = 8  # elements of a thread, as PA_BF16X6_CHUNK
_DEPTH = 64  # of a stage
# with their TFLOP/s of bfloat16 on an H200 with all processors busy; measured
TILES: tuple[tuple[Tile, int], ...] = (
    (Tile(128, 256, 16, 256, _DEPTH, 4, bulk=True, bf16x6=True), 700),
    (Tile(128, 128, 16, 128, _DEPTH, 6, bulk=True, bf16x6=True), 650),
    (Tile(128, 64, 16, 64, _DEPTH, 8, bulk=True, bf16x6=True), 450),
)


def bf16x6_tile(a: ndarray, b: ndarray, c: ndarray) -> Tile | None:
    """The tile of a product of float32 that is faster by parts; None for others."""
    properties = c._buffer.device.driver.properties()
    if c._dtype is not float32 or properties.get("tensor_cores") != "wgmma" or not c._size:
        return None
    if len(c._shape) > 2 + th.BULK_BATCH_AXES:
        return None
    (m, n), depth = c._shape[-2:], a._shape[-1]
    return _faster_tile(m, n, depth, c._size // (m * n), a._size + b._size, properties["processors"])


# A function of sizes and the processors' number.
@functools.lru_cache(maxsize=4096)
def _faster_tile(m: int, n: int, depth: int, matrices: int, elements: int, processors: int) -> Tile | None:
    if max(m, n, BF16X6_PARTS * _padded(depth)) >= 1 << 31 or m * n * matrices >= 1 << 40:
        return None
    costs = ((tile_cost(*entry, m, n, matrices, processors, 2, th.BULK_FETCH_COST), entry[0]) for entry in TILES)
    cost, tile = min(costs)
    if tile.tiles_of(m, n, matrices) >= MOST_TILES:
        return None
    work = 2e-6 * cost * processors * _padded(depth) * BF16X6_PRODUCTS  # microseconds, as all that follows
    by_parts = work + elements * th.BF16X6_SPLIT_TIME + th.BF16X6_LAUNCHES_TIME
    plain = th.FLOAT32_TILE_TIME * split_k.float32_schedule(m, n, matrices, depth, processors, th.MAX_PARTS)[0]
    return tile if by_parts < plain else None


def _padded(depth: int) -> int:
    """The depth of a part: whole slices of the product's tiles."""
    return -(-depth // _DEPTH) * _DEPTH


def multiply(
    kernel: TextKernel,
    views: Sequence[ndarray],
    tiles: tuple[Tile, int],
    epilogue: Epilogue | None = None,
    numbers: tuple[Any, ...] = (),
    groups: tuple[ndarray, ndarray] | None = None,
    grids: tuple[int, int] | None = None,
) -> bool:
    """The product of `views`, which are a, b, c and the arrays of an epilogue that takes `numbers`. Of the product by
    parts and that of float32, whose `tiles` are given, one does it. `groups` of rows: their ends, and room for a table
    of tiles; their `grids` depend on these. False if there is no memory for the parts."""
    (a, b, c, *addends), device = views, views[2]._buffer.device
    split_a = a if groups is None else a._view(0, (1, *a._shape), (0, *a._strides))  # with the axes of b
    operands, each = (split_a, b.mT), _padded(a._shape[-1])
    blocks = th.BF16X6_BLOCKS_OF_PROCESSOR * device.driver.properties()["processors"]
    flags = unchecked_empty((blocks,), uint32, device)
    try:
        parts = [_empty_parts(x, each) for x in operands]
    except OutOfMemoryError:
        return False
    _SPLIT.launch(len(b._shape) - 2, device, blocks, *operands, *parts, flags, checked=False)
    left, right = (_as_operand(x, like) for x, like in zip(parts, operands, strict=True))
    more: tuple[Any, ...] = (*addends, *numbers, flags)
    of_parts, plain = grids or (tiles[0].blocks(c), split_k.blocks(tiles[1], c, c._dtype))
    key = ProductKey("bfloat16", len(c._shape) - 2, tiles[0], epilogue or Epilogue(c._dtype.name), flagged=True)
    if groups is not None:
        left = left._view(0, left._shape[1:], left._strides[1:])
        more, key = (*more, *groups), key._replace(ends=groups[0]._dtype.name)
    kernel.launch(key, device, left, right.mT, c, *more, of_parts, checked=False)
    key = key._replace(dtype=c._dtype.name, tiles=tiles[1])
    kernel.launch(key, device, a, b, c, *more, plain, checked=False)
    return True


def _empty_parts(x: ndarray, each: int) -> ndarray:
    """An array for the parts of x, (batch..., rows, depth): lines along the axis along which x has neighbours, a matrix
    of a broadcast axis once. (batch..., rows, parts * each), whatever its strides."""
    *_, rows, _ = x._shape
    lead = tuple(n if step else 1 for n, step in zip(x._shape[:-2], x._strides[:-2], strict=True))
    if abs(x._strides[-1]) <= abs(x._strides[-2]):
        return unchecked_empty((*lead, rows, BF16X6_PARTS * each), bfloat16, x.device)
    lines = unchecked_empty((*lead, BF16X6_PARTS * each, -(-rows // _CHUNK) * _CHUNK), bfloat16, x.device)
    return lines._view(0, (*lead, BF16X6_PARTS * each, rows), lines._strides).mT


def _as_operand(parts: ndarray, x: ndarray) -> ndarray:
    """The parts with the batch of x."""
    steps = [step if like else 0 for step, like in zip(parts._strides[:-2], x._strides[:-2], strict=True)]
    return parts._view(0, (*x._shape[:-2], *parts._shape[-2:]), (*steps, *parts._strides[-2:]))


def _program(key: Any, target: str, debug: bool) -> lang.pipeline.Program:
    """`key`: the axes of the batch."""
    nb = key
    params: list[tuple[str, Any]] = [("blocks", lang.ir.ScalarType(int64))]
    params += [(n, lang.ir.ArrayType(float32, nb + 2, strided=True)) for n in "ab"]
    params += [(n, lang.ir.ArrayType(bfloat16, nb + 2, strided=True)) for n in ("left", "right")]
    params.append(("flags", lang.ir.ArrayType(uint32, 1, strided=False)))
    body = ""
    for n, to in (("a", "left"), ("b", "right")):
        r, k = nb, nb + 1
        body += f"    {n}.from = (const char *)s->{n}_data, {n}.to = s->{to}_data;\n"
        body += f"    {n}.rows = s->{n}_n{r}, {n}.depth = s->{n}_n{k}, {n}.rs = s->{n}_s{r}, {n}.cs = s->{n}_s{k};\n"
        body += f"    {n}.each = s->{to}_n{k} / PA_BF16X6_PARTS, {n}.along = s->{to}_s{k} == 2;\n"
        body += f"    {n}.pitch = ({n}.along ? s->{to}_s{r} : s->{to}_s{k}) / 2;\n"
        body += "".join(f"    {n}.batch[{i}] = s->{to}_n{i}, {n}.steps[{i}] = s->{n}_s{i};\n" for i in range(nb))
        body += "" if nb else f"    {n}.batch[0] = 1;\n"
    text = f"""#include <pa_base.h>
#define PA_GEMM_BATCHES {max(nb, 1)}
#include <pa_gemm_bf16x6.h>

typedef struct {{
{slot_fields(params, debug)}}} bf16x6_slots;
extern "C" __global__ void __launch_bounds__(256) kernel_bf16x6(const bf16x6_slots memory)
{{
    const bf16x6_slots *s = &memory;
    pa_bf16x6_operand a = {{0}}, b = {{0}};
{body}    pa_bf16x6_operands(&a, &b, s->flags_data);
}}
"""
    loc = lang.ir.Loc(os.path.join("pyarray", "kernels", "matmul", "gemm_bf16x6.py"), 1, 1, 0)
    sites = tuple(lang.bounds_checks.Site("index", loc, "split", (n,), 0, 1) for n, _ in params[1:])
    directions = {"a": "IN", "b": "IN", "left": "OUT", "right": "OUT", "flags": "OUT"}
    step = KernelStep("kernel_bf16x6", (0,), team=True)
    return lang.pipeline.Program("split", text, (step,), tuple(params), directions, sites)


_SPLIT = TextKernel("split_float32", _program)
