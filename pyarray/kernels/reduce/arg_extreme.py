"""Kernels of argmin and argmax.

On CPUs, dense lines are read once, chunk by chunk; only the chunk with the extreme is read again. The search ends at
an element that nothing can exceed. On grids, dense lines are read as a whole: once, if an element of up to four bytes
and its position are compared as one integer, else twice. Long lines are cut into pieces. Of other lines the extremes
are reduced first (`reduce.py`), then their positions are searched for; on grids a thread searches a piece of a line,
once.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from ... import jit, shapes
from ...array import ndarray
from ...array_marks import unmarked
from ...dtypes import DType, bool_, float32, int32, int64, uint8, uint32
from ...lang.markers import ndrange, unordered
from ..workspace import unchecked_empty
from .columns_gpu import column_pieces, cut_columns
from .reduce import MAX, MIN, ReduceOp, on_grid, piece_count, reduce_into

CHUNK = 256  # elements of a chunk, in which the position is searched for one by one
FIRST = 32  # elements of the first chunk of bools, where the search often ends; the next ones double
TOGETHER = 8  # elements of a column that a thread of a grid loads at once
BYTES = 1 << 12  # of a chunk of narrow integers in a long line

_SCOPE = {"ndrange": ndrange, "unordered": unordered}
_BETTER = {"min": "<", "max": ">"}


def arg_extreme(op: ReduceOp, out: ndarray, x: ndarray) -> None:
    """`out[k...]` = the first index along the last axis of `x` of its smallest (`op` MIN) or largest (MAX)
    element there, or of the first NaN."""
    x, grid = unmarked(x), on_grid(x)
    if x._dtype is bool_ and not grid:  # gcc doesn't vectorise loads of _Bool
        x, config = x._view(0, x._shape, x._strides, dtype=uint8), _LineConfig(int(op is MAX), FIRST)
    else:
        config = _LineConfig(_bound(op, x._dtype))
    pieces = piece_count(x._shape[-1], math.prod(x._shape[:-1]), x._size, grid)
    shape, (to, steps) = shapes.collapse(x._shape[:-1], out._strides, x._strides[:-1])
    lines = x._view(0, (*shape, x._shape[-1]), (*steps, x._strides[-1]))
    target = out._view(0, shape, to)
    if any(abs(step) < abs(x._strides[-1]) for step in steps):
        if grid:
            _by_threads(op, target, lines)
        else:
            _by_columns(op, target, lines, pieces)
    elif grid and x.itemsize <= 4 and lines._shape[-1] < 1 << 32:
        _packed(op, target, lines, pieces)
    elif pieces == 1:
        _line_kernel(op, len(shape), grid, False, config)(target, lines)
    else:
        values = unchecked_empty((*shape, pieces), x._dtype, x.device)
        positions = unchecked_empty((*shape, pieces), int64, x.device)
        if x._dtype.kind in "iu" and x.itemsize <= 2 and config.first_chunk == CHUNK:
            config = _LineConfig(config.bound, BYTES // x.itemsize, True)
        _line_kernel(op, len(shape), grid, True, config)(target, lines, values, positions)


def _packed(op: ReduceOp, out: ndarray, x: ndarray, pieces: int) -> None:
    kind = x._dtype.kind
    if pieces == 1:
        _packed_kernel(op, out.ndim, kind, False)(out, x)
        return
    keys = unchecked_empty((*out._shape, pieces), int64, x.device)
    _packed_kernel(op, out.ndim, kind, True)(out, x, keys)


# The text depends on the operation, the rank, the pieces and the kind; other dtypes are in its variants' keys.
@functools.cache
def _packed_kernel(op: ReduceOp, rank: int, kind: str, cut: bool) -> jit.kernel.Kernel:
    """Reduces keys: an element's order in the upper half, and the complement of its position in the lower one."""
    ks = [f"k{n}" for n in range(rank)]
    line, piece = "".join(f"{k}, " for k in ks), ", ".join([*ks, "piece"])
    best = f"best = int64({np.iinfo(np.int64).min})"

    def keys_of(low: str, high: str) -> str:
        return f"""        {best}
        for r in unordered(range({low}, {high})):
            value = x[{line}r]
{_order_text(op, kind)}            best = max(best, int64(order) << 32 | int64(~uint32(r)))
"""

    place = f"out[{line or '()'}] = int64(~uint32(best))"
    if cut:
        text = f"""def first_{op.name}_packed(out, x, keys):
    step = (x.shape[{rank}] + keys.shape[{rank}] - 1) // keys.shape[{rank}]
    {_loop([*ks, "piece"], "keys")}
        low = piece * step
        high = min(low + step, x.shape[{rank}])
{keys_of("low", "high")}        keys[{piece}] = best
    {_loop(ks, "out")}
        {best}
        for r in unordered(range(keys.shape[{rank}])):
            best = max(best, keys[{line}r])
        {place}
"""
    else:
        text = f"""def first_{op.name}_packed(out, x):
    {_loop(ks, "out")}
{keys_of("0", f"x.shape[{rank}]")}        {place}
"""
    scope = _SCOPE | {"float32": float32, "int32": int32, "uint32": uint32, "int64": int64}
    return jit.kernel.from_text(f"first_{op.name}_packed", text, scope)


def _order_text(op: ReduceOp, kind: str) -> str:
    """Lines that set `order` to an int32 that is greatest for what is searched for: NaN, or the extreme."""
    sign = "" if op is MAX else "~"
    if kind == "u":
        return f"            order = {sign}(uint32(value) ^ uint32(1 << 31)).view(int32)\n"
    if kind in "bi":
        return f"            order = {sign}int32(value)\n"
    # zeros of both signs are equal; other bits, but for the sign, count upwards from zero
    return f"""            bits = (float32(value) + float32(0)).view(int32)
            order = {sign}(bits ^ ((bits >> 31) & {(1 << 31) - 1}))
            order = int32({(1 << 31) - 1}) if value != value else order
"""


def _loop(names: list[str], array: str) -> str:
    sizes = ", ".join(f"{array}.shape[{n}]" for n in range(len(names)))
    return f"for {', '.join(names)} in ndrange({sizes}):" if names else "for once in range(1):"


class _LineConfig(NamedTuple):
    """How a CPU searches a line: `bound`: the integer that nothing exceeds, None for other types; the size of
    the first chunk; `by_fours`: elements are combined by fours first, which shortens the dependency chain."""

    bound: int | None
    first_chunk: int = CHUNK
    by_fours: bool = False


def _bound(op: ReduceOp, dtype: DType) -> int | None:
    """The integer that nothing exceeds; None for other types."""
    if dtype.kind not in "iu":
        return None
    limits = np.iinfo(dtype.numpy)
    return int(limits.max if op is MAX else limits.min)


# The text depends on the operation, the rank and the config; dtypes are in its variants' keys.
@functools.cache
def _line_kernel(op: ReduceOp, rank: int, grid: bool, cut: bool, config: _LineConfig) -> jit.kernel.Kernel:
    ks = [f"k{n}" for n in range(rank)]
    line, piece = "".join(f"{k}, " for k in ks), ", ".join([*ks, "piece"])
    if cut:
        text = f"""def first_{op.name}(out, x, values, places):
    step = (x.shape[{rank}] + values.shape[{rank}] - 1) // values.shape[{rank}]
    {_loop([*ks, "piece"], "values")}
        low = piece * step
        high = min(low + step, x.shape[{rank}])
{_search_text(op, "x", line, ("low", "high"), grid, config)}        values[{piece}] = best
        places[{piece}] = at
    {_loop(ks, "out")}
{_search_text(op, "values", line, ("0", f"values.shape[{rank}]"), grid, config)}\
        out[{line or "()"}] = places[{line}at]
"""
    else:
        text = f"""def first_{op.name}(out, x):
    {_loop(ks, "out")}
{_search_text(op, "x", line, ("0", f"x.shape[{rank}]"), grid, config)}        out[{line or "()"}] = at
"""
    return jit.kernel.from_text(f"first_{op.name}", text, dict(_SCOPE))


def _search_text(op: ReduceOp, x: str, line: str, bounds: tuple[str, str], grid: bool, config: _LineConfig) -> str:
    """Lines that set `at` to the position of `best` in x[line, low:high], within these bounds."""
    low, high = bounds
    if grid:  # a team reads all elements twice
        return f"""        best = {x}[{line}{low}]
        for r in unordered(range({low}, {high})):
            best = {op.expression.format("best", f"{x}[{line}r]")}
        at = {high}
        for r in unordered(range({low}, {high})):
            value = {x}[{line}r]
            at = min(at, r if value == best or value != value else {high})
"""
    better = f"part {_BETTER[op.name]} best or (part != part and best == best)"
    return f"""        best = {x}[{line}{low}]
        at = {low}
        c = {low}
        width = {config.first_chunk}
        while c < {high}{"" if config.bound is None else f" and best != {config.bound}"}:
            part = best
            stop = min(c + width, {high})
{_chunk_text(op, f"{x}[{line}", config.by_fours)}            if {better}:
                best = part
                at = c
            c = stop
            {f"width = min(2 * width, {4 * CHUNK})" if config.first_chunk < CHUNK else ""}
        value = {x}[{line}at]
        while at + 1 < {high} and value != best and value == value:
            at += 1
            value = {x}[{line}at]
"""


def _chunk_text(op: ReduceOp, x: str, by_fours: bool) -> str:
    """Lines that reduce x[c:stop] into `part`."""
    if not by_fours:
        return f"""            for r in unordered(range(c, stop)):
                part = {op.expression.format("part", f"{x}r]")}
"""
    pairs = (op.expression.format(f"{x}r + {k} * four]", f"{x}r + {k + 1} * four]") for k in (0, 2))
    return f"""            four = (stop - c) // 4
            for r in unordered(range(c, c + four)):
                part = {op.expression.format("part", op.expression.format(*pairs))}
            for r in range(c + 4 * four, stop):
                part = {op.expression.format("part", f"{x}r]")}
"""


def _by_columns(op: ReduceOp, out: ndarray, x: ndarray, pieces: int) -> None:
    rank = x.ndim - 1
    extreme = unchecked_empty(x._shape[:-1], x._dtype, x.device)
    reduce_into(op, extreme, x, (rank,), x._dtype)
    kernel = _find_kernel(rank)
    if pieces == 1:
        kernel(out._view(0, (*out._shape, 1), (*out._strides, 0)), x, extreme)
        return
    partial = unchecked_empty((*x._shape[:-1], pieces), int64, x.device)
    kernel(partial, x, extreme)
    reduce_into(MIN, out, partial, (rank,), int64)


# The rank is all that differs in the text; dtypes are in its variants' keys.
@functools.cache
def _find_kernel(rank: int) -> jit.kernel.Kernel:
    ks = [f"k{n}" for n in range(rank)]
    index = ", ".join([*ks, "i"])
    text = f"""def find_first(out, x, extreme):
    step = (x.shape[{rank}] + out.shape[{rank}] - 1) // out.shape[{rank}]
    {_loop([*ks, "piece"], "out")}
        wanted = extreme[{", ".join(ks)}]
        found = x.shape[{rank}]
        for i in range(piece * step, min(piece * step + step, x.shape[{rank}])):
            value = x[{index}]
            if value == wanted or value != value:
                found = i
                break
        out[{", ".join([*ks, "piece"])}] = found
"""
    return jit.kernel.from_text("find_first", text, dict(_SCOPE))


def _by_threads(op: ReduceOp, out: ndarray, x: ndarray) -> None:
    sizes, n, step = out._shape, x._shape[-1], x._strides[-1]
    pieces = column_pieces(n, out._size)
    cut, rest = cut_columns(x, sizes, x._strides[:-1], (n,), (step,), pieces)
    if pieces == 1:
        _columns_kernel(op, len(sizes), True)(out, cut)
        return
    values = unchecked_empty((*sizes, pieces), x._dtype, x.device)
    places = unchecked_empty((*sizes, pieces), int64, x.device)
    _columns_kernel(op, len(sizes), False)(values, cut, rest, places)
    _nearest_kernel(op, len(sizes))(out, values, places, n)


# The text depends on the operation, the rank and the pieces; dtypes are in its variants' keys.
@functools.cache
def _columns_kernel(op: ReduceOp, rank: int, whole: bool) -> jit.kernel.Kernel:
    """The first extreme of a piece of a column, x[k..., :, piece, c], and of rest[k..., piece, c] where there is one;
    and its place. A column of one piece, `whole`, needs the place alone."""
    before, last = "".join(f"k{n}, " for n in range(rank - 1)), rank - 1
    sizes = [*(f"x.shape[{n}]" for n in range(last)), f"x.shape[{rank}]", f"x.shape[{rank + 1}]"]

    def update(value: str, at: str, pad: str) -> str:
        better = f"{value} {_BETTER[op.name]} best or ({value} != {value} and best == best)"
        return f"{pad}better = {better}\n{pad}best = {value} if better else best\n{pad}at = {at} if better else at\n"

    pad = " " * 12
    loads = "".join(f"{pad}x{n} = x[{before}t + {n}, piece, c]\n" for n in range(TOGETHER))
    updates = "".join(update(f"x{n}", f"t + {n}", pad) for n in range(TOGETHER))
    if whole:
        params, stores = "out, x", f"        out[{before}c] = at\n"
    else:
        params, pieces = "values, x, rest, places", f"x.shape[{rank}]"
        stores = f"""        at = at * {pieces} + piece
        if piece < rest.shape[{last}]:
            value = rest[{before}piece, c]
{update("value", f"x.shape[{last}] * {pieces} + piece", pad)}        values[{before}c, piece] = best
        places[{before}c, piece] = at
"""
    text = f"""def first_{op.name}_columns({params}):
    main_end = x.shape[{last}] - x.shape[{last}] % {TOGETHER}
    for {before}piece, c in ndrange({", ".join(sizes)}):
        best = x[{before}0, piece, c]
        at = 0
        for t in range(0, main_end, {TOGETHER}):
{loads}{updates}        for t in range(main_end, x.shape[{last}]):
            value = x[{before}t, piece, c]
{update("value", "t", pad)}{stores}"""
    return jit.kernel.from_text(f"first_{op.name}_columns", text, dict(_SCOPE))


# The text depends on the operation and the rank; dtypes are in its variants' keys.
@functools.cache
def _nearest_kernel(op: ReduceOp, rank: int) -> jit.kernel.Kernel:
    """The least of the places of the pieces' extremes that none exceeds."""
    ks = [f"k{n}" for n in range(rank)]
    line = ", ".join(ks)
    text = f"""def nearest_{op.name}(out, values, places, n: int):
    {_loop(ks, "out")}
        best = values[{line}, 0]
        for r in unordered(range(values.shape[{rank}])):
            best = {op.expression.format("best", f"values[{line}, r]")}
        at = n
        for r in unordered(range(values.shape[{rank}])):
            value = values[{line}, r]
            at = min(at, places[{line}, r] if value == best or value != value else n)
        out[{line}] = at
"""
    return jit.kernel.from_text(f"nearest_{op.name}", text, dict(_SCOPE))
