"""Matrix-vector products on grids, y = M x: launches csrc/device/pa_gemv_gpu.h."""

from __future__ import annotations

import functools
import os
from functools import partial
from typing import Any

from ... import lang
from ...array import ndarray
from ...driver.kernel_step import KernelStep
from ...dtypes import BY_NAME, DType, float32, int64, uint8, uint16
from ...jit.text_kernel import TextKernel
from ..aligned_rows import VECTOR_BYTES
from ..argument_slots import slot_fields
from ..workspace import unchecked_empty
from . import thresholds as th
from .gemm_key import SMALL, tile_macros
from .gemm_types import gemm_operations, headers, macros

THREADS = 512  # of a block
WARP = 32

_SUMS = {
    "bool": uint8, "int8": uint16, "uint8": uint16, "float16": float32, "bfloat16": float32, "float8_e4m3fn": float32,
    "float8_e5m2": float32,
}  # fmt: skip
_NUMBERS = ("work", "total_threads", "parts", "part_depth", "lanes", "team", "row")


def _is_across(a: ndarray, b: ndarray, c: ndarray) -> bool:
    """Whether the matrix is contiguous across its rows."""
    row = c._shape[-1] != 1
    m = b if row else a
    row_step, step = m._strides[-2:][:: -1 if row else 1]
    return (c._shape[-1] if row else c._shape[-2]) > 1 and (a._shape[-1] == 1 or abs(row_step) < abs(step))


def tiny_operands(a: ndarray, b: ndarray, c: ndarray) -> tuple[ndarray, ndarray, ndarray] | None:
    """The operands and the result, or those of `c.T = b.T @ a.T`, for the kernel of tiny matrices
    (csrc/device/pa_gemm_tiny.h), where that is faster: for a row times matrices of a short depth."""
    rows = max(c._shape[-2:])
    threads = c._size // rows * -(-rows * max(c.itemsize, 4) // th.TINY_BYTES)
    processors = c._buffer.device.driver.properties()["processors"]
    if a._shape[-1] > th.GEMV_TINY_DEPTH or not processors * th.GEMV_TINY_LEAST <= threads < th.TINY_MOST_THREADS:
        return None
    if not _is_across(a, b, c):
        return None
    return (a, b, c) if c._shape[-1] != 1 else (b.mT, a.mT, c.mT)


def gemv(a: ndarray, b: ndarray, c: ndarray) -> None:
    """`c[...] = a @ b` without checks, of (batch..., m, k), (batch..., k, n) and (batch..., m, n) with m or n
    equal to 1, which have elements and a depth. `c` shares no memory with the others."""
    device, shape = c._buffer.device, c._shape
    row = shape[-1] != 1
    m = b if row else a
    rows, depth = (shape[-1], b._shape[-2]) if row else m._shape[-2:]
    row_step, step = m._strides[-2:][:: -1 if row else 1]
    steps = m._ptr, step, *m._strides[:-2]
    has_vectors = row_step == m.itemsize and not any(x % VECTOR_BYTES for x in steps)
    processors, across = device.driver.properties()["processors"], _is_across(a, b, c)
    work, parts, part_depth, lanes, team = _schedule(
        rows, depth, c._size // rows, m.itemsize, across, has_vectors, processors
    )
    total_threads = c._size if parts > 1 else 0
    part = unchecked_empty((total_threads * parts,), _SUMS.get(m._dtype.name, m._dtype), device)
    key = m._dtype.name, len(shape) - 2, c._dtype.name
    numbers = work, total_threads, parts, part_depth, lanes, team, int(row)
    _KERNEL.launch(key, device, *numbers, a, b, c, part, checked=False)


# A function of sizes and the number of processors; the rest are constants.
@functools.lru_cache(maxsize=4096)
def _schedule(
    rows: int, depth: int, count: int, size: int, across: bool, has_vectors: bool, processors: int
) -> tuple[int, int, int, int, int]:
    """(threads, parts of the depth, elements of a part, lanes of a strip, 0 for sums along the depth, lanes of a row
    then), so that all processors have work."""
    vector, team = max(16 // size, 1), WARP
    if not across:
        while team > 1 and team // 2 * vector >= depth:
            team //= 2  # lanes without elements
        # with so many rows that each lane can have several vectors, but not less than a sector of the cache at once
        while team > 2 and team * 2 * vector >= depth and rows * count * team > processors * th.GEMV_MANY_THREADS:
            team //= 2
        teams = THREADS // team
        parts, part_depth = _split_depth(
            depth, -(-rows * count // teams), team * vector, th.GEMV_MIN_VECTORS, processors
        )
        return -(-rows * count * parts // teams) * THREADS, parts, part_depth, 0, team
    lanes = 32
    for narrow in (8, 16):  # one part, in as many strips as can be computed at the same time
        strips = -(-rows // (narrow * vector)) * count
        busy = th.GEMV_MIN_STRIPS * processors <= strips <= th.GEMV_BLOCKS * processors
        if has_vectors and rows % vector == 0 and busy and depth >= th.GEMV_STRIP_DEPTH * THREADS // narrow:
            return strips * THREADS, 1, depth, narrow, team
    while lanes * vector < THREADS and THREADS // lanes > depth and rows > lanes * vector:
        lanes *= 2  # lines of threads without elements of the depth
    groups = -(-rows // (lanes * vector)) * count
    parts, part_depth = _split_depth(depth, groups, THREADS // lanes, th.GEMV_MIN_DEPTH, processors)
    return groups * parts * THREADS, parts, part_depth, lanes, team


def _split_depth(depth: int, groups: int, unit: int, least: int, processors: int) -> tuple[int, int]:
    """(parts of the depth, elements of a part) of so many blocks for each part, which take `unit` elements at a time; a
    part has so many of them at least."""
    target_parts = min(processors * th.GEMV_BLOCKS // groups, th.GEMV_MAX_PARTS)
    parts = max(min(target_parts, depth // (least * unit)), 1)
    part_depth = -(-depth // (parts * unit)) * unit
    return -(-depth // part_depth), part_depth


def _program(key: Any, target: str, debug: bool) -> lang.pipeline.Program:
    """`key`: the element type, the axes of the batch, and the type of the results."""
    name, nb, result = key
    dtype: DType = BY_NAME[name]
    out: DType = BY_NAME[result]
    kind = _SUMS.get(name, dtype)
    params: list[tuple[str, Any]] = [(n, lang.ir.ScalarType(int64)) for n in _NUMBERS]
    types = (("a", dtype), ("b", dtype), ("c", out))
    params += [(n, lang.ir.ArrayType(one, nb + 2, strided=True)) for n, one in types]
    params.append(("part", lang.ir.ArrayType(kind, 1, strided=False)))
    r, c = nb, nb + 1  # the axes of rows and columns
    body = f"    g.rows = s->row ? s->c_n{c} : s->c_n{r}, g.depth = s->a_n{c};\n"
    body += f"    g.rs = s->row ? s->b_s{c} : s->a_s{r}, g.cs = s->row ? s->b_s{r} : s->a_s{c};\n"
    body += f"    g.xs = s->row ? s->a_s{c} : s->b_s{r}, g.ys = s->row ? s->c_s{c} : s->c_s{r};\n"
    body += "    g.parts = s->parts, g.part_depth = s->part_depth, g.lanes = s->lanes, g.team = s->team;\n"
    body += "    g.m = (const char *)(s->row ? s->b_data : s->a_data), g.y = (char *)s->c_data;\n"
    body += "    g.x = (const char *)(s->row ? s->a_data : s->b_data);\n"
    body += "    g.part = (PA_G_ELEMENT *)s->part_data;\n"
    body += "".join(f"    g.batch[{k}] = s->c_n{k}, g.batch_y[{k}] = s->c_s{k};\n" for k in range(nb))
    for n, (one, other) in (("m", "ba"), ("x", "ab")):
        body += "".join(f"    g.batch_{n}[{k}] = s->row ? s->{one}_s{k} : s->{other}_s{k};\n" for k in range(nb))
    body += "" if nb else "    g.batch[0] = 1;\n"
    kernels = "".join(
        f"""
extern "C" __global__ void __launch_bounds__({THREADS}, 2) kernel_{call}(const gemv_slots memory)
{{
    const gemv_slots *s = &memory;
    pa_gemv_grid g = {{}};
{body}    pa_{call}(&g);
}}
"""
        for call in ("gemv", "gemv_total")
    )
    text = f"""#include <pa_base.h>
{headers(dtype, out)}{macros(dtype, out)}{tile_macros(SMALL)}#define PA_GEMM_BATCHES {max(nb, 1)}
#include <pa_gemv_gpu.h>

typedef struct {{
{slot_fields(params, debug)}}} gemv_slots;
{kernels}"""
    loc = lang.ir.Loc(os.path.join("pyarray", "kernels", "matmul", "gemv.py"), 1, 1, 0)
    sites = tuple(lang.bounds_checks.Site("index", loc, "matmul", (n,), 0, 1) for n in "abc")
    directions = {"a": "IN", "b": "IN", "c": "OUT", "part": "INOUT"}
    steps = (
        KernelStep("kernel_gemv", (0,), threads=THREADS, dependent_launch=True),
        KernelStep("kernel_gemv_total", (1,), threads=THREADS, dependent_launch=True),
    )
    count = partial(gemm_operations, False)
    return lang.pipeline.Program("matmul", text, steps, tuple(params), directions, sites, count_operations=count)


_KERNEL = TextKernel("matvec", _program)
