"""Masked fill of dense arrays on grids, `v[mask] = x`: launches csrc/device/pa_fill_where_gpu.h."""

from __future__ import annotations

import os
from typing import Any

from ... import lang
from ...array import ndarray
from ...driver.kernel_step import KernelStep
from ...dtypes import BY_NAME, bool_, complex128, float64, int64, uint64
from ...jit.text_kernel import TextKernel
from ..argument_slots import slot_fields
from ..matmul.gemm_types import headers
from ..scan.nonzero import unsigned_view

THREADS = 128  # of a block: PA_FILL_THREADS
GROUP = 16  # bytes
ROWS = 2  # groups that a thread has, at most


def fill_where_dense(v: ndarray, mask: ndarray, x: Any) -> None:
    """`v[mask] = x` of contiguous 1-D arrays of one size that share no memory. `x` is a number, or an array of one
    element of the type of `v`."""
    if isinstance(x, ndarray):
        v, x = unsigned_view(v), unsigned_view(x)
    key = v._dtype.name, not isinstance(x, ndarray)
    _KERNEL.launch(key, v._buffer.device, v._size, v, mask, x, checked=False)


def _program(key: Any, target: str, debug: bool) -> lang.pipeline.Program:
    """`key`: the element type, and whether the number is an argument."""
    name, by_value = key
    kind = BY_NAME[name]
    rows = min(kind.itemsize, ROWS)  # each element of a group takes registers
    arrays = ("v", kind), ("mask", bool_), *(() if by_value else (("x", kind),))
    params: list[tuple[str, Any]] = [("count", lang.ir.ScalarType(int64))]
    params += [(n, lang.ir.ArrayType(row, 1, strided=False)) for n, row in arrays]
    x = "*s->x_data"
    if by_value:
        wide = {"f": float64, "c": complex128, "u": uint64}.get(kind.kind, int64)
        params.append(("x", lang.ir.ScalarType(wide)))
        x = f"pa_{kind.suffix}_from_f64(s->x)" if kind.is_narrow else "(PA_T)s->x"
        if kind.kind == "c":
            part = "float" if kind.itemsize == 8 else "double"
            x = f"PA_T{{({part})s->x_re, ({part})s->x_im}}"
    text = f"""#include <pa_base.h>
{headers(kind)}{"#include <pa_complex.h>" if kind.kind == "c" else ""}
#define PA_T {kind.ctype}
#define PA_FILL_ROWS {rows}
#include <pa_fill_where_gpu.h>

typedef struct {{
{slot_fields(params, debug)}}} fill_where_slots;

extern "C" __global__ void __launch_bounds__({THREADS}) kernel_fill_where(const fill_where_slots memory)
{{
    const fill_where_slots *s = &memory;
    pa_fill_where((PA_T *)s->v_data, (const uint8_t *)s->mask_data, {x}, s->count);
}}
"""
    loc = lang.ir.Loc(os.path.join("pyarray", "kernels", "index", "fill_where_gpu.py"), 1, 1, 0)
    sites = tuple(lang.bounds_checks.Site("index", loc, "fill_where", (n,), 0, 1) for n, _ in arrays)
    directions = {n: "INOUT" if n == "v" else "IN" for n, _ in arrays}
    step = KernelStep("kernel_fill_where", (0,), per_thread=GROUP // kind.itemsize * rows, threads=THREADS)
    return lang.pipeline.Program("fill_where", text, (step,), tuple(params), directions, sites)


_KERNEL = TextKernel("fill_where", _program)
