"""`v[mask] = x` of dense arrays on grids: launches csrc/device/pa_fill_where_gpu.h."""

from __future__ import annotations

import os
from typing import Any

from ... import lang
from ...array import ndarray
from ...driver.kernel_step import KernelStep
from ...dtypes import BY_NAME, bool_, int64, uint64
from ...jit.text_kernel import TextKernel
from ..argument_slots import slot_fields

THREADS = 256  # of a block: PA_FILL_THREADS
GROUP = 16  # bytes
ROWS = 4  # groups that a thread has, at most


def fill_where_dense(v: ndarray, mask: ndarray, x: ndarray | int) -> None:
    """`v[mask] = x` of contiguous 1-D arrays of one size that share no memory. `x` is an array of one element, of the
    type of `v`, or the bits of an element."""
    key, device = (v._dtype.name, isinstance(x, int)), v._buffer.device
    if isinstance(x, int):
        _KERNEL.launch(key, device, v._size, x & (1 << 64) - 1, x >> 64, v, mask, checked=False)
    else:
        _KERNEL.launch(key, device, v._size, v, mask, x, checked=False)


def _program(key: Any, target: str, debug: bool) -> lang.pipeline.Program:
    """`key`: the element type, and whether the value is given by its bits."""
    name, by_bits = key
    kind = BY_NAME[name]
    rows = min(kind.itemsize, ROWS)  # each element of a group takes registers
    numbers = [("count", int64), *((n, uint64) for n in ("low", "high") if by_bits)]
    params: list[tuple[str, Any]] = [(n, lang.ir.ScalarType(row)) for n, row in numbers]
    arrays = [("v", kind), ("mask", bool_), *([] if by_bits else [("x", kind)])]
    params += [(n, lang.ir.ArrayType(row, 1, strided=False)) for n, row in arrays]
    bits = "union { uint64_t words[2]; PA_T x; } value = {{s->low, s->high}};"
    text = f"""#include <pa_base.h>
#define PA_T {kind.ctype}
#define PA_FILL_ROWS {rows}
#include <pa_fill_where_gpu.h>

typedef struct {{
{slot_fields(params, debug)}}} fill_where_slots;

extern "C" __global__ void __launch_bounds__({THREADS}) kernel_fill_where(const fill_where_slots memory)
{{
    const fill_where_slots *s = &memory;
    {bits if by_bits else ""}
    pa_fill_where((PA_T *)s->v_data, (const uint8_t *)s->mask_data, {"value.x" if by_bits else "*s->x_data"}, s->count);
}}
"""
    loc = lang.ir.Loc(os.path.join("pyarray", "kernels", "index", "fill_where_gpu.py"), 1, 1, 0)
    sites = tuple(lang.bounds_checks.Site("index", loc, "fill_where", (n,), 0, 1) for n, _ in arrays)
    directions = {n: "INOUT" if n == "v" else "IN" for n, _ in arrays}
    step = KernelStep("kernel_fill_where", (0,), per_thread=GROUP // kind.itemsize * rows)
    return lang.pipeline.Program("fill_where", text, (step,), tuple(params), directions, sites)


_KERNEL = TextKernel("fill_where", _program)
