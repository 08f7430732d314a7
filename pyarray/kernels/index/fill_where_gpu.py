"""Masked fill of dense arrays on grids, `v[mask] = x`: launches csrc/device/pa_fill_where_gpu.h."""

from __future__ import annotations

import os
from typing import Any

from ... import lang
from ...array import ndarray
from ...driver.kernel_step import KernelStep
from ...dtypes import BY_NAME, bool_, int64
from ...jit.text_kernel import TextKernel
from ..argument_slots import slot_fields

THREADS = 256  # of a block: PA_FILL_THREADS
GROUP = 16  # bytes
ROWS = 4  # groups that a thread has, at most


def fill_where_dense(v: ndarray, mask: ndarray, x: ndarray) -> None:
    """`v[mask] = x` of contiguous 1-D arrays of one size that share no memory. `x` has one element, of the type of
    `v`."""
    _KERNEL.launch(v._dtype.name, v._buffer.device, v._size, v, mask, x, checked=False)


def _program(key: Any, target: str, debug: bool) -> lang.pipeline.Program:
    """`key`: the element type."""
    kind = BY_NAME[key]
    rows = min(kind.itemsize, ROWS)  # each element of a group takes registers
    arrays = ("v", kind), ("mask", bool_), ("x", kind)
    params: list[tuple[str, Any]] = [("count", lang.ir.ScalarType(int64))]
    params += [(n, lang.ir.ArrayType(row, 1, strided=False)) for n, row in arrays]
    text = f"""#include <pa_base.h>
#define PA_T {kind.ctype}
#define PA_FILL_ROWS {rows}
#include <pa_fill_where_gpu.h>

typedef struct {{
{slot_fields(params, debug)}}} fill_where_slots;

extern "C" __global__ void __launch_bounds__({THREADS}) kernel_fill_where(const fill_where_slots memory)
{{
    const fill_where_slots *s = &memory;
    pa_fill_where((PA_T *)s->v_data, (const uint8_t *)s->mask_data, *s->x_data, s->count);
}}
"""
    loc = lang.ir.Loc(os.path.join("pyarray", "kernels", "index", "fill_where_gpu.py"), 1, 1, 0)
    sites = tuple(lang.bounds_checks.Site("index", loc, "fill_where", (n,), 0, 1) for n, _ in arrays)
    directions = {n: "INOUT" if n == "v" else "IN" for n, _ in arrays}
    step = KernelStep("kernel_fill_where", (0,), per_thread=GROUP // kind.itemsize * rows)
    return lang.pipeline.Program("fill_where", text, (step,), tuple(params), directions, sites)


_KERNEL = TextKernel("fill_where", _program)
