"""Sorts and selections (partition, argpartition) of elements of 2, 4 and 8 bytes on CPUs: launches
csrc/device/pa_sort_cpu.h."""

from __future__ import annotations

import os
from typing import Any

from ... import lang
from ...array import ndarray
from ...driver.kernel_step import KernelStep
from ...dtypes import DType, int64, uint16, uint32, uint64
from ...jit.text_kernel import TextKernel
from ..argument_slots import slot_fields
from ..workspace import unchecked_empty
from .sort_keys import KeyTransform

KEY_TYPES: dict[int, DType] = {4: uint32, 8: uint64}
MAX_TASKS = 64  # rows that are sorted at a time, each with its own workspace
MAX_NETWORK = 16  # elements of a row that a sorting network sorts in registers, whatever their width: no workspace
MAX_SELECTED = 8  # positions of a partition
MAX_NARROW = 1 << 19  # elements of a row of 2-byte elements that are sorted as upper halves of 4-byte keys

_SIZES = ("rows", "n", "tasks", "sign_flip", "flip", "limit", "nan", "zero", "kths")
_KTH = tuple(f"k{k}" for k in range(MAX_SELECTED))
_ARRAYS = ("out", "x", "tmp", "positions")


def sort_rows(out: ndarray, x: ndarray, order: KeyTransform, kth: tuple[int, ...] = ()) -> None:
    """`out[r] = sorted(x[r])`, or with `kth`, up to MAX_SELECTED distinct ascending positions, a partition at these.

    Both are 2-D, contiguous, and don't alias; their elements are unsigned integers of 4 or 8 bytes (of 2 in
    sorts), which `order` transforms to keys.
    """
    _launch(out, x, unchecked_empty((0,), int64, x.device), order, kth)


def select_positions(out: ndarray, x: ndarray, order: KeyTransform, kth: tuple[int, ...]) -> None:
    """The positions (int64) of the elements that `sort_rows` writes with `kth`, which isn't empty."""
    _launch(unchecked_empty(x._shape, x._dtype, x.device), x, out, order, kth)


def _launch(out: ndarray, x: ndarray, positions: ndarray, order: KeyTransform, kth: tuple[int, ...]) -> None:
    rows, n = x._shape
    tasks = min(rows, MAX_TASKS)
    size = tasks * n if n > MAX_NETWORK else 0
    if x.itemsize == 2:
        size += 2 * x._size
    tmp = unchecked_empty((size,), _array_types(x.itemsize)["tmp"], x.device)
    padded_kth = kth + (0,) * (MAX_SELECTED - len(kth))
    flat = (_flat(a) for a in (out, x, tmp, positions))
    _KERNEL.launch(
        x.itemsize,
        x.device,
        rows,
        n,
        tasks,
        *_signed_transform(order, x.itemsize),
        len(kth),
        *padded_kth,
        *flat,
    )


def _signed_transform(order: KeyTransform, itemsize: int) -> tuple[int, ...]:
    """`order` for the text's keys, which are signed; keys of 2 bytes are in the upper half."""
    top, shift = 1 << 8 * itemsize - 1, 16 if itemsize == 2 else 0
    limit = order.limit if order.sign_flip else top - 1
    bits = order.sign_flip, order.flip ^ top, limit, order.nan, order.zero
    return tuple(((value ^ top) - top) << shift for value in bits)


def _array_types(itemsize: int) -> dict[str, DType]:
    """The types of the arrays of elements."""
    if itemsize == 2:
        return {"out": uint16, "x": uint16, "tmp": uint32}
    return dict.fromkeys(_ARRAYS[:3], KEY_TYPES[itemsize])


def _flat(x: ndarray) -> ndarray:
    flat: ndarray = x._view(0, (x._size,), (x.itemsize,))
    return flat


def _program(itemsize: int, target: str, debug: bool) -> lang.pipeline.Program:
    kinds = _array_types(itemsize) | {"positions": int64}
    params: list[tuple[str, Any]] = [(name, lang.ir.ScalarType(int64)) for name in _SIZES + _KTH]
    params += [(name, lang.ir.ArrayType(kind, 1, strided=False)) for name, kind in kinds.items()]
    loc = lang.ir.Loc(os.path.join("pyarray", "kernels", "sort", "sort_cpu.py"), 1, 1, 0)
    sites = [lang.bounds_checks.Site("index", loc, "sort", (name,), 0, 1) for name in _ARRAYS]
    sites += [lang.bounds_checks.Site("index", loc, "sort", ("x",), axis, 2) for axis in range(2)]
    directions = {"out": "OUT", "x": "IN", "tmp": "INOUT", "positions": "OUT"}
    text = _text(itemsize, params, debug)
    return lang.pipeline.Program("sort", text, (KernelStep("kernel_sort"),), tuple(params), directions, tuple(sites))


def _text(itemsize: int, params: Any, debug: bool) -> str:
    fields = "".join(f"    job.{name} = (pa_key)s->{name};\n" for name in _SIZES[3:8])
    fields += "".join(f"    job.{name} = s->{name};\n" for name in ("rows", "n", "tasks", "kths"))
    narrow, checks = itemsize == 2, ""
    sort = "pa_sort_all(&job)"
    if narrow:
        sort = "pa_sort_all_narrow(&job, (const uint16_t *)s->x_data, (uint16_t *)s->out_data)"
    if debug:
        needed = {"out": "rows * job.n", "x": "rows * job.n", "tmp": f"tasks * (job.n > {MAX_NETWORK} ? job.n : 0)"}
        needed["tmp"] += " + 2 * job.rows * job.n" if narrow else ""
        needed["positions"] = "rows * (job.positions ? job.n : 0)"
        checks = "".join(
            f"    if (!pa_sort_check_size(rt, {site}, job.{needed[name]}, s->{name}_n0)) return;\n"
            for site, name in enumerate(_ARRAYS)
        )
    return f"""#include <pa_base.h>
{"#define PA_DEBUG_CHECKS 1" if debug else ""}
#define PA_S_BITS {32 if narrow else 8 * itemsize}
#define PA_S_SITE {len(_ARRAYS)}
#include <{"pa_sort_narrow.h" if narrow else "pa_sort_cpu.h"}>

typedef struct {{
{slot_fields(params, debug)}}} sort_slots;

__attribute__((visibility("default"))) void kernel_sort(const void *memory, pa_runtime *rt)
{{
    const sort_slots *s = (const sort_slots *)memory;
    const int64_t kth[] = {{{", ".join(f"s->{name}" for name in _KTH)}}};
    pa_sort job = {{0}};
{fields}    job.kth = kth, job.rt = rt;
    job.out = (pa_key *)s->out_data, job.x = (const pa_key *)s->x_data, job.tmp = (pa_key *)s->tmp_data;
    job.positions = s->positions_n0 ? (int64_t *)s->positions_data : 0;
{checks}    {sort};
}}
"""


# the text has explicit vectors: more than -O1 takes twice as long to compile and is no faster
_KERNEL = TextKernel("sort", _program, flags=("-O1",), cpu_only=True)
