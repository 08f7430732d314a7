"""Where the smallest and the largest elements are.

Lines that lie dense are read once: chunk after chunk, of which the one with the extreme is looked at again.
Long ones are cut into pieces. Of other lines the extremes are found first (`reduce.py`), then their places.
"""

from __future__ import annotations

import functools
import math

from .. import shapes
from ..array import ndarray
from ..array_marks import unmarked
from ..dtypes import int64
from ..jit.kernel import Kernel, from_text
from ..lang.markers import ndrange, unordered
from .reduce import MIN, ReduceOp, on_grid, pieces_of, reduce_into
from .scratch import scratch

CHUNK = 256  # elements among which the place is looked for one by one

_SCOPE = {"ndrange": ndrange, "unordered": unordered}
_BETTER = {"min": "<", "max": ">"}


def arg_extreme(op: ReduceOp, out: ndarray, x: ndarray) -> None:
    """`out[k...]` = the first index along the last axis of `x` of its smallest (`op` MIN) or largest (MAX)
    element there, or of the first NaN."""
    x, grid = unmarked(x), on_grid(x)
    pieces = pieces_of(x._shape[-1], math.prod(x._shape[:-1]), x._size, grid)
    shape, (to, steps) = shapes.collapse(x._shape[:-1], out._strides, x._strides[:-1])
    lines = x._view(0, (*shape, x._shape[-1]), (*steps, x._strides[-1]))
    target = out._view(0, shape, to)
    if any(abs(step) < abs(x._strides[-1]) for step in steps):
        _by_columns(op, target, lines, pieces, grid)
    elif pieces == 1:
        _line_kernel(op, len(shape), grid, False)(target, lines)
    else:
        values = scratch((*shape, pieces), x._dtype, x.device)
        places = scratch((*shape, pieces), int64, x.device)
        _line_kernel(op, len(shape), grid, True)(target, lines, values, places)


def _loop(names: list[str], array: str) -> str:
    sizes = ", ".join(f"{array}.shape[{n}]" for n in range(len(names)))
    return f"for {', '.join(names)} in ndrange({sizes}):" if names else "for once in range(1):"


@functools.cache
def _line_kernel(op: ReduceOp, rank: int, grid: bool, cut: bool) -> Kernel:
    ks = [f"k{n}" for n in range(rank)]
    line, piece = "".join(f"{k}, " for k in ks), ", ".join([*ks, "piece"])
    if cut:
        text = f"""def first_{op.name}(out, x, values, places):
    step = (x.shape[{rank}] + values.shape[{rank}] - 1) // values.shape[{rank}]
    {_loop([*ks, "piece"], "values")}
        low = piece * step
        high = min(low + step, x.shape[{rank}])
{_search_text(op, "x", line, grid)}        values[{piece}] = best
        places[{piece}] = at
    {_loop(ks, "out")}
        low = 0
        high = values.shape[{rank}]
{_search_text(op, "values", line, grid)}        out[{line or "()"}] = places[{line}at]
"""
    else:
        text = f"""def first_{op.name}(out, x):
    {_loop(ks, "out")}
        low = 0
        high = x.shape[{rank}]
{_search_text(op, "x", line, grid)}        out[{line or "()"}] = at
"""
    return from_text(f"first_{op.name}", text, dict(_SCOPE))


def _search_text(op: ReduceOp, x: str, line: str, grid: bool) -> str:
    """Lines after which `at` is the place of `best` in x[line, low:high]."""
    if grid:  # all elements twice, by a team
        return f"""        best = {x}[{line}low]
        for r in unordered(range(low, high)):
            best = {op.expression.format("best", f"{x}[{line}r]")}
        at = high
        for r in unordered(range(low, high)):
            value = {x}[{line}r]
            at = min(at, r if value == best or value != value else high)
"""
    return f"""        best = {x}[{line}low]
        at = low
        for c in range(low, high, {CHUNK}):
            part = best
            for r in unordered(range(c, min(c + {CHUNK}, high))):
                part = {op.expression.format("part", f"{x}[{line}r]")}
            if part {_BETTER[op.name]} best or (part != part and best == best):
                best = part
                at = c
        value = {x}[{line}at]
        while at + 1 < high and value != best and value == value:
            at += 1
            value = {x}[{line}at]
"""


def _by_columns(op: ReduceOp, out: ndarray, x: ndarray, pieces: int, grid: bool) -> None:
    rank = x.ndim - 1
    extreme = scratch(x._shape[:-1], x._dtype, x.device)
    reduce_into(op, extreme, x, (rank,), x._dtype)
    kernel = _find_kernel(rank, grid)
    if pieces == 1:
        kernel(out._view(0, (*out._shape, 1), (*out._strides, 0)), x, extreme)
        return
    partial = scratch((*x._shape[:-1], pieces), int64, x.device)
    kernel(partial, x, extreme)
    reduce_into(MIN, out, partial, (rank,), int64)


@functools.cache
def _find_kernel(rank: int, grid: bool) -> Kernel:
    ks = [f"k{n}" for n in range(rank)]
    place = ", ".join([*ks, "i"])
    search = f"""for i in range(piece * step, min(piece * step + step, x.shape[{rank}])):
            value = x[{place}]
            if value == wanted or value != value:
                found = i
                break"""
    if grid:  # a block looks at all elements of its piece
        search = f"""for i in unordered(range(piece * step, min(piece * step + step, x.shape[{rank}]))):
            value = x[{place}]
            found = min(found, i if value == wanted or value != value else x.shape[{rank}])"""
    text = f"""def find_first(out, x, extreme):
    step = (x.shape[{rank}] + out.shape[{rank}] - 1) // out.shape[{rank}]
    {_loop([*ks, "piece"], "out")}
        wanted = extreme[{", ".join(ks)}]
        found = x.shape[{rank}]
        {search}
        out[{", ".join([*ks, "piece"])}] = found
"""
    return from_text("find_first", text, dict(_SCOPE))
