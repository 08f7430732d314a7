"""Scans, stream compaction and histograms on GPUs: launches csrc/device/pa_scan_gpu.h and pa_compact_gpu.h.

A line is an array's last axis. Long lines are cut into tiles, which blocks take in order, and scanned in one pass over
memory, by look-back; elements that are counted or compacted, into segments of whole tiles, one for each block."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from ... import lang, shapes
from ...array import ndarray
from ...driver.kernel_step import KernelStep
from ...dtypes import BY_NAME, DType, bool_, float64, int64, uint8, uint64
from ...jit.launch_state import launch_state
from ...jit.text_kernel import Address, TextKernel, contiguous_operands
from ..argument_slots import slot_fields
from ..reduce.reduce import SUM, ReduceOp
from ..workspace import unchecked_empty

THREADS = 256  # of a block
MAX_SEGMENTS = 1 << 12  # of counted elements; so many lines are scanned by a block each
MAX_WHOLE = 1 << 14  # elements of a line that a block scans
MAX_WARP = 1 << 10  # elements of a line that one warp scans
TILE_BYTES = 128  # of a thread's elements in a tile, as far as registers hold them
TILE_BLOCKS = 2  # of a processor, that take tiles at the same time
GROUP = 32  # tiles: PA_GROUP of pa_look_back_gpu.h
FIRST_COUNTER = 16  # words: PA_FIRST_COUNTER
COMPACT_TILE = 1 << 12  # elements: PA_TILE of pa_compact_gpu.h
SHARED_COUNTERS = (1 << 12, 3 << 12)  # a histogram's counters that fit in a block's shared memory

_BINNINGS = {"value": 0, "even": 1, "edges": 2}


def supports_scan(op: ReduceOp, x: DType, kind: DType) -> bool:
    """Whether `scan` supports elements of type `x`, computed as `kind`."""
    if kind.kind in "iu":
        return x.kind in "biu" and kind.itemsize >= 4
    return x is kind and (kind.kind == "f" or (op is SUM and kind.kind == "c"))


def scan(op: ReduceOp, out: ndarray, x: ndarray, kind: DType) -> None:
    """`out[..., k]` = `op` over `x[..., :k + 1]`, both of one shape; `out` may be `x`. Products of floats are
    computed with an unbounded exponent."""
    n = x._shape[-1]
    lead, (out_lead, x_lead) = shapes.collapse(x._shape[:-1], out._strides[:-1], x._strides[:-1])
    views = [
        a._view(0, (*lead, n), (*steps, a._strides[-1]))
        for a, steps in ((out, out_lead), (x, x_lead))
    ]  # fmt: skip
    if x._dtype is bool_:
        views[1] = views[1]._view(0, views[1]._shape, views[1]._strides, dtype=uint8)
    lines, team = math.prod(lead), 32 if n <= MAX_WARP else THREADS
    key = views[1]._dtype.name, kind.name, op.name, len(lead), team
    if n <= MAX_WHOLE or lines >= MAX_SEGMENTS:
        _launch("scan", (*key, False), views, (lines * team,))
        return
    items, rows = _items(views[1]._dtype, kind, op.name, True)
    tiles = -(-n // (THREADS * items * rows))
    groups = -(-tiles // GROUP)
    words = FIRST_COUNTER + lines * (groups + (tiles + groups) * (_accumulator_bytes(kind, op.name) // 4))
    blocks = min(lines * tiles, TILE_BLOCKS * x.device.driver.properties()["processors"])
    states = unchecked_empty((words,), uint64, x.device)
    _launch("scan", (*key, True), [*views, states], (blocks * THREADS, words, tiles))


def _items(x: DType, kind: DType, op: str, look_back: bool) -> tuple[int, int]:
    """(adjacent elements of a thread, rows of them) in a tile: few where a team scans a line, which may be short.
    Products of floats need registers, and so does what comes before a thread's elements in each row."""
    size = max(x.itemsize, kind.itemsize)
    if not look_back:
        return 4, max(4 // max(size // 4, 1), 1)
    items = 8 if size <= 2 else 4
    count = TILE_BYTES // size // (2 if op == "prod" and kind.kind == "f" else 1)
    return items, min(count // items, 4 if size <= 2 else 8)


def _segments(n: int, tile: int, most: int) -> tuple[int, int]:
    """(number of segments, elements of a segment)"""
    length = -(-n // (min(-(-n // tile), most) * tile)) * tile
    return -(-n // length), length


def count(flat: ndarray, test: str = "true") -> ndarray:
    """For each segment of a contiguous 1-D array, the number of elements up to its end that pass a test of
    `_test_macro`."""
    segments, length = _segments(flat._size, COMPACT_TILE, MAX_SEGMENTS)
    counts = unchecked_empty((segments,), int64, flat.device)
    _launch("count", (flat._dtype.name, test), [flat, counts], (segments * THREADS, length))
    scan(SUM, counts, counts, int64)
    return counts


def positions_into(out: ndarray, flat: ndarray, counts: ndarray, sizes: Sequence[int], test: str = "true") -> None:
    """The positions of the elements that pass the test: a row of `out` per axis of an array of `sizes`."""
    segments, length = _segments(flat._size, COMPACT_TILE, MAX_SEGMENTS)
    key = flat._dtype.name, test, None, len(sizes)
    _launch("compact", key, [flat, counts, out], (segments * THREADS, length, *sizes[1:]))


def compact_into(out: ndarray, x: ndarray, flat: ndarray, counts: ndarray, test: str = "true") -> None:
    """The elements of `x`, 1-D and contiguous as `flat`, where `flat` passes the test."""
    segments, length = _segments(flat._size, COMPACT_TILE, MAX_SEGMENTS)
    key = flat._dtype.name, test, x._dtype.name, 0
    _launch("compact", key, [flat, counts, out, x], (segments * THREADS, length))


def supports_bins(edges: ndarray) -> bool:
    """Whether `count_bins` supports edges of this type."""
    return not edges._dtype.is_narrow


def count_bins(out: ndarray, x: ndarray, binning: str, edges: ndarray, scale: float) -> None:
    """As `histogram.count_into`, without weights."""
    out[...] = 0
    kind = x._dtype if binning == "value" else edges._dtype
    counters = next((c for c in SHARED_COUNTERS if out._size <= c), 0)
    key = x._dtype.name, kind.name, binning, counters
    _launch("bins", key, [x, edges, out], (scale,))


def _launch(name: str, key: tuple[Any, ...], arrays: Sequence[ndarray], numbers: Sequence[Any]) -> None:
    kernel, device, checked = _KERNELS[name], arrays[0].device, launch_state.debug
    arrays = contiguous_operands(kernel.variant(key, device, checked).program, arrays)
    ends: list[Address] = []
    if checked:
        buffers = [a._buffer for a in arrays]
        ends = [Address(e) for b in buffers for e in (b.ptr, b.ptr + b.nbytes)]
    kernel.launch(key, device, *numbers, *arrays, *ends, checked=checked)


def _program(
    name: str,
    arrays: Sequence[tuple[str, DType, int]],
    numbers: Sequence[tuple[str, DType]],
    macros: dict[str, Any],
    body: str,
    debug: bool,
    steps: Sequence[KernelStep],
    blocks: int = 1,
) -> lang.pipeline.Program:
    """The program of kernels whose arrays are (name, type, rank; 0: contiguous, one axis). Numbers come first.
    A processor has room for so many `blocks`."""
    params: list[tuple[str, Any]] = [(n, lang.ir.ScalarType(kind)) for n, kind in numbers]
    params += [(n, lang.ir.ArrayType(kind, rank or 1, strided=rank > 0)) for n, kind, rank in arrays]
    if debug:
        params += [(f"{n}_{end}", lang.ir.ScalarType(int64)) for n, _, _ in arrays for end in ("low", "high")]
    slots = slot_fields(params, debug) + ("    pa_runtime run;\n" if debug else "")
    operands = ""
    for site, (n, _, _) in enumerate(arrays):
        ends = f"(const char *)s->{n}_low, (const char *)s->{n}_high" if debug else "0, 0"
        operands += f"    const pa_operand at_{n} = {{(char *)s->{n}_data, {ends}, {site}}};\n"
        operands += f"    g.{n} = at_{n};\n"
    defined = macros | {name.upper(): 1}
    defines = "".join(f"#define PA_{macro} {value}\n" for macro, value in defined.items())
    kernels = "".join(
        f"""
extern "C" __global__ void __launch_bounds__({THREADS}, {blocks}) {step.symbol}(const {name}_slots memory)
{{
    const {name}_slots *s = &memory;
    pa_runtime run = {{0}};
    pa_{name} g = {{}};
{"    run = s->run;" if debug else ""}
{operands}{body}    pa_{step.symbol.removeprefix("kernel_")}_all(&g, &run);
}}
"""
        for step in steps
    )
    text = f"""#include "pa_base.h"
{"#define PA_DEBUG_CHECKS 1" if debug else ""}
{defines}#include "pa_{"scan" if name == "scan" else "compact"}_gpu.h"

typedef struct {{
{slots}}} {name}_slots;
{kernels}"""
    loc = lang.ir.Loc(os.path.join("pyarray", "kernels", "scan", "scan_gpu.py"), 1, 1, 0)
    sites = tuple(lang.bounds_checks.Site("index", loc, name, (n,), 0, 1) for n, _, _ in arrays)
    directions = {n: "IN" for n, _, _ in arrays}
    directions |= {n: "INOUT" for n in ("out", "states", "counts") if n in directions}
    return lang.pipeline.Program(name, text, tuple(steps), tuple(params), directions, sites)


def _scan_program(key: Any, target: str, debug: bool) -> lang.pipeline.Program:
    """`key`: the types of elements and results, the operation, leading axes, threads of a team, whether blocks take
    tiles."""
    element_type, result, op, lead, team, look_back = key
    x, kind = BY_NAME[element_type], BY_NAME[result]
    items, rows = _items(x, kind, op, look_back)
    macros = _arithmetic(x, kind, op) | {"LEAD": lead, "TEAM": team, "ITEMS": items, "ROWS": rows}
    macros["LOOK_BACK"] = int(look_back)
    arrays = [("out", kind, lead + 1), ("x", x, lead + 1)]
    body = f"    g.lines = 1, g.n = s->x_n{lead}, g.x_step = s->x_s{lead}, g.out_step = s->out_s{lead};\n"
    for k in range(lead):
        body += f"    g.lead[{k}] = s->x_n{k}, g.lines *= s->x_n{k};\n"
        body += f"    g.x_lead[{k}] = s->x_s{k}, g.out_lead[{k}] = s->out_s{k};\n"
    numbers, steps = [("work", int64)], [KernelStep("kernel_scan", (0,))]
    if look_back:
        arrays.append(("states", uint64, 0))
        numbers += [("state_words", int64), ("tiles", int64)]
        body += "    g.state_words = s->state_words, g.tiles = s->tiles;\n"
        clear = KernelStep("kernel_scan_clear", (1,), per_thread=4, dependent_launch=True)
        steps = [clear, KernelStep("kernel_scan", (0,), dependent_launch=True)]
    return _program("scan", arrays, numbers, macros, body, debug, steps, TILE_BLOCKS if look_back else 1)


def _accumulator_bytes(kind: DType, op: str) -> int:
    """The size of PA_ACC."""
    if kind.kind in "iu":
        return kind.itemsize
    return 16 if kind.kind == "c" or op == "prod" else 8


def _arithmetic(x: DType, kind: DType, op: str) -> dict[str, str]:
    """Macros that load, combine and store."""
    sign = "+" if op == "sum" else "*"
    types = {"T": x.ctype, "U": kind.ctype}
    if kind.kind == "c":
        load = "(x)" if kind.itemsize == 16 else "pa_c128_from_c64(x)"
        store = "(x)" if kind.itemsize == 16 else "pa_c64_from_c128(x)"
        return types | {
            "ACC": "pa_c128", "IDENTITY": "pa_make_c128(0, 0)", "COMBINE(a, b)": "pa_add_c128(a, b)",
            "LOAD(x)": load, "STORE(x)": store,
        }  # fmt: skip
    if kind.kind == "f":
        narrow = kind.is_narrow
        load = f"(double)pa_f32_from_{kind.suffix}(x)" if narrow else f"(double)({kind.ctype})(x)"
        store = f"pa_{kind.suffix}_from_f64(x)" if narrow else f"({kind.ctype})(x)"
        if op == "prod":
            return types | {
                "ACC": "pa_scaled", "IDENTITY": "pa_scaled_from(1.0)", "COMBINE(a, b)": "pa_scaled_mul(a, b)",
                "LOAD(x)": f"pa_scaled_from({load})", "STORE(x)": store.replace("(x)", "(pa_scaled_value(x))"),
            }  # fmt: skip
        return types | {
            "ACC": "double", "IDENTITY": "0.0", "COMBINE(a, b)": "((a) + (b))", "LOAD(x)": load, "STORE(x)": store,
        }  # fmt: skip
    acc = "uint64_t" if kind.itemsize == 8 else "uint32_t"  # what overflows wraps
    return types | {
        "ACC": acc, "IDENTITY": "0" if sign == "+" else "1", "COMBINE(a, b)": f"({acc})((a) {sign} (b))",
        "LOAD(x)": f"({acc})({kind.ctype})(x)", "STORE(x)": f"({kind.ctype})(x)",
    }  # fmt: skip


def _test_macro(x: DType, test: str) -> dict[str, str]:
    """The macro of a test: "true": not zero; "differ", "differ_nan": differs from the element before, the
    latter with NaNs equal."""
    parts = ("re", "im") if x.kind == "c" else ()
    if test == "true":
        if x.is_narrow:
            return {"NONZERO(x)": f"(((x).bits & {(1 << 8 * x.itemsize - 1) - 1:#x}) != 0)"}
        return {"NONZERO(x)": "(((x).re != 0) | ((x).im != 0))" if parts else "((x) != 0)"}

    def differ(a: str, b: str) -> str:
        if x.is_narrow:
            a, b = (f"pa_f32_from_{x.suffix}({v})" for v in (a, b))
        return " || ".join(f"{a}.{p} != {b}.{p}" for p in parts) if parts else f"{a} != {b}"

    macro = f"({differ('(x)', '(y)')})"
    if test == "differ_nan" and x.kind in "fc":
        macro = f"({macro} && !(({differ('(x)', '(x)')}) && ({differ('(y)', '(y)')})))"
    return {"DIFFER(x, y)": macro}


def _count_program(key: Any, target: str, debug: bool) -> lang.pipeline.Program:
    x = BY_NAME[key[0]]
    body = "    g.n = s->x_n0, g.length = s->length;\n"
    macros = {"T": x.ctype, **_test_macro(x, key[1])}
    numbers = [("work", int64), ("length", int64)]
    arrays = [("x", x, 0), ("counts", int64, 0)]
    return _program("count", arrays, numbers, macros, body, debug, [KernelStep("kernel_count", (0,))])


def _compact_program(key: Any, target: str, debug: bool) -> lang.pipeline.Program:
    """`key`: the tested type, the test, the type of the selected elements or None, and the axes of positions."""
    x, chosen, rank = BY_NAME[key[0]], key[2], key[3]
    out = BY_NAME[chosen] if chosen else int64
    arrays = [("x", x, 0), ("counts", int64, 0), ("out", out, 0 if chosen else 2)]
    arrays += [("values", out, 0)] if chosen else []
    macros = {"T": x.ctype, **_test_macro(x, key[1]), "U": out.ctype, "RANK": rank}
    body = f"    g.n = s->x_n0, g.length = s->length, g.total = s->out_n{0 if chosen else 1};\n"
    body += "".join(f"    g.sizes[{k}] = s->size{k};\n" for k in range(1, rank))
    numbers = [(n, int64) for n in ("work", "length", *(f"size{k}" for k in range(1, rank)))]
    return _program("compact", arrays, numbers, macros, body, debug, [KernelStep("kernel_compact", (0,))])


def _bins_program(key: Any, target: str, debug: bool) -> lang.pipeline.Program:
    """`key`: the types of elements and edges, the binning, counters in shared memory."""
    x, kind, binning = BY_NAME[key[0]], BY_NAME[key[1]], _BINNINGS[key[2]]
    load = f"pa_f32_from_{x.suffix}(x)" if x.is_narrow else "(x)"
    macros = {"T": x.ctype, "KIND": kind.ctype, "LOAD(x)": load, "BINNING": binning, "COUNTERS": key[3]}
    edges = x if key[2] == "value" else kind
    arrays = [("x", x, 0), ("edges", edges, 0), ("out", int64, 0)]
    body = "    g.n = s->x_n0, g.bins = s->out_n0, g.scale = s->scale;\n"
    return _program("bins", arrays, [("scale", float64)], macros, body, debug, [KernelStep("kernel_bins", None)])


_KERNELS = {
    "scan": TextKernel("scan", _scan_program),
    "count": TextKernel("count", _count_program),
    "compact": TextKernel("compact", _compact_program),
    "bins": TextKernel("bins", _bins_program),
}
