"""Attention by the matrix instructions of sm_90a (csrc/device/pa_attention_*.h): halves, heads of 64 and 128 elements,
any mask."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ... import jit, lang
from ...array import ndarray
from ...driver.kernel_step import KernelStep
from ...dtypes import BY_NAME, float32, float64, int64
from ...jit.launch_state import launch_state
from ...jit.text_kernel import TextKernel
from ..aligned_rows import VECTOR_BYTES, copied_rows
from ..argument_slots import slot_fields
from ..workspace import unchecked_empty

HEADS = (64, 128)
_TYPES = {"float16": "f16", "bfloat16": "bf16"}
_MOST = 1 << 30  # elements along an axis
_MASKS = {"": 0, "bool": 1}  # PA_A_MASK, 2 for numbers
_LEAST = 1e-30  # factor of scores, which the kernels have in float32
_LONG = 32  # tiles of a head, whose work differs much, and is long beside a block's start
_CACHED = 24 << 20  # bytes of operands that stay in the cache while tiles of their heads are taken
_ROWS = 128  # keys of a block, and queries of one of the forward pass


class _Key(NamedTuple):
    """What the text depends on."""

    dtype: str
    head: int
    causal: bool
    mask: str  # its type, "" without one


def fits(arrays: Sequence[ndarray], scale: float) -> bool:
    """Whether these, of four axes each, are what the kernels take: queries, keys and values, the last ones, and arrays
    like queries."""
    q, k, v = arrays[-3:]
    driver = q._buffer.device.driver
    if not driver.grid or driver.properties().get("tensor_cores") != "wgmma" or launch_state.debug:
        return False
    if q._dtype.name not in _TYPES or not _LEAST < scale < 1 / _LEAST:
        return False
    head = q._shape[-1]
    if head not in HEADS or v._shape[-1] != head or not k._size or not q._size:
        return False
    return all(
        x._strides[-1] == x.itemsize
        and not any(n % VECTOR_BYTES for n in (x._ptr, *x._strides[:-1]))
        and max(x._shape) < _MOST
        for x in arrays
    )


def _order(processors: int, causal: bool, heads: int, tiles: int, bytes_of_head: int) -> tuple[int, int]:
    """Heads whose tiles a causal kernel takes together, those with the most work first, and blocks. A block for each
    processor takes tiles in turn, forth and back: with a whole number of both all have the same work. Where no such
    number of heads fits the cache, and the work of tiles differs much, there is a block for each tile, which processors
    take as they get free."""
    blocks, each = min(tiles, processors), tiles // heads
    if not causal:
        return heads, blocks
    fit = max(_CACHED // bytes_of_head, 1)
    whole = 2 * blocks // math.gcd(2 * blocks, each)
    if 2 * whole <= 3 * fit:
        return min(max(fit // whole, 1) * whole, heads), blocks
    return min(fit, heads), tiles if each >= _LONG else blocks


def aligned_mask(mask: ndarray) -> ndarray | None:
    """The mask as the kernels take it, with lines of whole aligned vectors in memory; None if there is no memory for
    a copy."""
    ends = (mask._ptr, *mask._strides[:-1], mask._shape[-1] * mask.itemsize)
    if mask._strides[-1] == mask.itemsize and not any(n % VECTOR_BYTES for n in ends):
        return mask
    return copied_rows(mask, 1)


def _key(q: ndarray, causal: bool, masks: Sequence[ndarray]) -> _Key:
    return _Key(q._dtype.name, q._shape[3], causal, masks[0]._dtype.name if masks else "")


def forward(arrays: Sequence[ndarray], masks: Sequence[ndarray], scale: float, causal: bool) -> None:
    """The result, its logsumexp, which is contiguous, and the operands; an `aligned_mask` or none."""
    q = arrays[2]
    tiles = -(-q._shape[2] // _ROWS) * q._shape[0] * q._shape[1]
    processors = q._buffer.device.driver.properties()["processors"]
    order = _order(processors, causal, q._shape[0] * q._shape[1], tiles, arrays[3]._shape[2] * q._shape[3] * 4)
    _FORWARD.launch(_key(q, causal, masks), q._buffer.device, *arrays, *masks, scale, *order)


def backward(arrays: Sequence[ndarray], masks: Sequence[ndarray], scale: float, causal: bool) -> None:
    """Gradients of q, k and v, that of the result, the result, its logsumexp, which is contiguous, and q, k and v; an
    `aligned_mask` or none."""
    q, k, _ = arrays[-3:]
    batch, heads, queries, head = q._shape
    padded, device = -(-queries // _ROWS) * _ROWS, q._buffer.device
    statistics = unchecked_empty((batch * heads, 2, padded), float32, device)
    sums = unchecked_empty((batch * heads, padded * head), float32, device)
    processors = device.driver.properties()["processors"]
    tiles = -(-k._shape[2] // _ROWS) * batch * heads
    prepared, finished = min(batch * heads * padded // 8, 8 * processors), min(sums._size >> 12, 1 << 16)
    group, blocks = _order(processors, causal, batch * heads, tiles, queries * head * 8)
    key, numbers = _key(q, causal, masks), (scale, group, prepared, blocks, finished)
    _BACKWARD.launch(key, device, *arrays, *masks, statistics, sums, *numbers)


def _operations(causal: bool, each: int, values: Mapping[str, Any]) -> lang.operation_counts.OperationCounts:
    """`each` operations for a query, a key and an element of the head: two for a product. A causal mask leaves half."""
    batch, heads, queries, head = values["q"]
    pairs = batch * heads * queries * values["k"][2] // (2 if causal else 1)
    arrays = {name: math.prod(shape) for name, shape in values.items() if isinstance(shape, tuple)}
    written = ("grad_q", "grad_k", "grad_v") if "grad" in arrays else ("out", "logsumexp")
    loads = {name: n for name, n in arrays.items() if name not in written}
    stores = {name: arrays[name] for name in written}
    notes = ("exponentials are not counted",)
    return lang.operation_counts.OperationCounts(each * pairs * head, loads, stores, batch * heads * queries, notes)


def _params(key: _Key, halves: tuple[str, ...], floats: Mapping[str, int], steps: tuple[str, ...]) -> Any:
    """(name, type) of each parameter, and the slots of the numbers of blocks."""
    kinds = {n: lang.ir.ArrayType(BY_NAME[key.dtype], 4, strided=True) for n in halves}
    if key.mask:
        kinds["mask"] = lang.ir.ArrayType(BY_NAME[key.mask], 4, strided=True)
    kinds |= {n: lang.ir.ArrayType(float32, ndim, strided=True) for n, ndim in floats.items()}
    numbers = {"scale": lang.ir.ScalarType(float64)} | {n: lang.ir.ScalarType(int64) for n in steps}
    return kinds, numbers


def _text(
    key: _Key, header: str, params: list[tuple[str, Any]], halves: tuple[str, ...], floats: tuple[str, ...],
    kernels: Mapping[str, tuple[str, str]], debug: bool,
) -> str:  # fmt: skip
    """The text of kernels, by their symbols: what each calls, and its bounds."""
    body = "".join(
        f"    o.{n} = (char *)s->{n}_data;\n" + "".join(f"    o.{n}_steps[{d}] = s->{n}_s{d};\n" for d in range(3))
        for n in (*halves, *_mask_names(key))
    )
    body += "".join(f"    o.{n} = (float *)s->{n}_data;\n" for n in floats)
    text = f"""#include <pa_base.h>
#define PA_MMA "{_TYPES[key.dtype]}"
#define PA_T {BY_NAME[key.dtype].ctype}
#define PA_LOAD pa_f32_from_{_TYPES[key.dtype]}
#define PA_A_HEAD {key.head}
#define PA_A_CAUSAL {int(key.causal)}
#define PA_A_MASK {_MASKS.get(key.mask, 2)}
#include <{header}>

typedef struct {{
{slot_fields(params, debug)}}} attention_slots;
PA_FN pa_attention operands(const attention_slots *s)
{{
    pa_attention o;
{body}    o.batch = (int)s->q_n0, o.heads = (int)s->q_n1, o.queries = (int)s->q_n2, o.keys = (int)s->k_n2;
    o.scale = (float)s->scale, o.group = (int)s->group;
    return o;
}}
"""
    for symbol, (function, bounds) in kernels.items():
        text += f"""
extern "C" __global__ void __launch_bounds__({bounds}) {symbol}(const attention_slots memory)
{{
    {function}(operands(&memory));
}}
"""
    return text


def _mask_names(key: _Key) -> tuple[str, ...]:
    return ("mask",) if key.mask else ()


def _sites(names: Any) -> Any:
    loc = lang.ir.Loc(os.path.join("pyarray", "kernels", "attention", "wgmma.py"), 1, 1, 0)
    return tuple(lang.bounds_checks.Site("index", loc, "attention", (n,), 0, 2) for n in names)


def _forward_program(key: _Key, target: str, debug: bool) -> lang.pipeline.Program:
    kinds, numbers = _params(key, ("out", "q", "k", "v"), {"logsumexp": 3}, ("group", "blocks"))
    order = ("out", "logsumexp", "q", "k", "v", *_mask_names(key))
    params = [(n, kinds[n]) for n in order] + list(numbers.items())
    *_, blocks = jit.bound_launch.first_slots(params)
    kernels = {"kernel_attention": ("pa_attention_forward", "PA_A_THREADS, 1")}
    text = _text(key, "pa_attention_forward.h", params, ("q", "k", "v", "out"), ("logsumexp",), kernels, debug)
    shared = (12 if key.head == 64 else 6) * _ROWS * key.head * 2 + 256
    step = KernelStep("kernel_attention", (blocks,), team=True, shared=shared, threads=384)
    directions = dict.fromkeys(kinds, "IN") | {"out": "OUT", "logsumexp": "OUT"}
    count = functools.partial(_operations, key.causal, 4)
    return lang.pipeline.Program(
        "attention", text, (step,), tuple(params), directions, _sites(kinds), count_operations=count,
        alignment=VECTOR_BYTES,
    )  # fmt: skip


def _backward_program(key: _Key, target: str, debug: bool) -> lang.pipeline.Program:
    halves, floats = ("grad_q", "grad_k", "grad_v", "grad", "out", "q", "k", "v"), ("logsumexp", "statistics", "sums")
    shapes, steps = {"logsumexp": 3, "statistics": 3, "sums": 2}, ("group", "prepared", "blocks", "finished")
    kinds, numbers = _params(key, halves, shapes, steps)
    order = (*halves[:5], "logsumexp", *halves[5:], *_mask_names(key), "statistics", "sums")
    params = [(n, kinds[n]) for n in order] + list(numbers.items())
    *_, prepared, blocks, finished = jit.bound_launch.first_slots(params)
    kernels = {
        "kernel_attention_prepare": ("pa_attention_prepare", "256"),
        "kernel_attention_backward": ("pa_attention_backward", "PA_A_THREADS, 1"),
        "kernel_attention_finish": ("pa_attention_finish", "128"),
    }
    text = _text(key, "pa_attention_backward.h", params, halves, floats, kernels, debug)
    rows = 128 if key.head == 64 else 64
    shared = 2 * _ROWS * key.head * 2 + 4 * rows * key.head * 2 + 2 * _ROWS * rows * 2 + 2 * 2 * rows * 4 + 128
    symbols = iter(kernels)
    launches = (
        KernelStep(next(symbols), (prepared,), team=True),
        KernelStep(next(symbols), (blocks,), team=True, shared=shared, threads=384),
        KernelStep(next(symbols), (finished,), team=True, threads=128),
    )
    directions = dict.fromkeys(order, "IN") | dict.fromkeys(("statistics", "sums", *halves[:3]), "OUT")
    count = functools.partial(_operations, key.causal, 10)
    return lang.pipeline.Program(
        "attention_backward", text, launches, tuple(params), directions, _sites(order), count_operations=count,
        alignment=VECTOR_BYTES,
    )  # fmt: skip


_FORWARD = TextKernel("attention", _forward_program)
_BACKWARD = TextKernel("attention_backward", _backward_program)
