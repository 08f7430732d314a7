"""Where the smallest and the largest elements are.

Lines that lie dense are read once: chunk after chunk, of which the one with the extreme is looked at again.
Where nothing can be more extreme, that is the end. Long ones are cut into pieces.
Of other lines the extremes are found first (`reduce.py`), then their places.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from ... import shapes
from ...array import ndarray
from ...array_marks import unmarked
from ...dtypes import DType, bool_, int64, uint8
from ...jit.kernel import Kernel, from_text
from ...lang.markers import ndrange, unordered
from ..workspace import scratch
from .reduce import MAX, MIN, ReduceOp, on_grid, pieces_of, reduce_into

CHUNK = 256  # elements among which the place is looked for one by one
FIRST = 32  # the same of the first chunk of bools, which often end there; those after it double
BYTES = 1 << 12  # of a chunk of narrow integers in a long line

_SCOPE = {"ndrange": ndrange, "unordered": unordered}
_BETTER = {"min": "<", "max": ">"}


def arg_extreme(op: ReduceOp, out: ndarray, x: ndarray) -> None:
    """`out[k...]` = the first index along the last axis of `x` of its smallest (`op` MIN) or largest (MAX)
    element there, or of the first NaN."""
    x, grid = unmarked(x), on_grid(x)
    if x._dtype is bool_ and not grid:  # what is read as bool, gcc doesn't vectorise
        x, way = x._view(0, x._shape, x._strides, dtype=uint8), _Way(int(op is MAX), FIRST)
    else:
        way = _Way(_last(op, x._dtype))
    pieces = pieces_of(x._shape[-1], math.prod(x._shape[:-1]), x._size, grid)
    shape, (to, steps) = shapes.collapse(x._shape[:-1], out._strides, x._strides[:-1])
    lines = x._view(0, (*shape, x._shape[-1]), (*steps, x._strides[-1]))
    target = out._view(0, shape, to)
    if any(abs(step) < abs(x._strides[-1]) for step in steps):
        _by_columns(op, target, lines, pieces, grid)
    elif pieces == 1:
        _line_kernel(op, len(shape), grid, False, way)(target, lines)
    else:
        values = scratch((*shape, pieces), x._dtype, x.device)
        places = scratch((*shape, pieces), int64, x.device)
        if x._dtype.kind in "iu" and x.itemsize <= 2 and way.first == CHUNK:
            way = _Way(way.last, BYTES // x.itemsize, True)
        _line_kernel(op, len(shape), grid, True, way)(target, lines, values, places)


def _loop(names: list[str], array: str) -> str:
    sizes = ", ".join(f"{array}.shape[{n}]" for n in range(len(names)))
    return f"for {', '.join(names)} in ndrange({sizes}):" if names else "for once in range(1):"


class _Way(NamedTuple):
    """How a CPU looks at a line: nothing is more extreme than `last` (None: not known), the first chunk has
    so many elements; `fours`: elements are compared by fours first, which takes less than a chain of them."""

    last: int | None
    first: int = CHUNK
    fours: bool = False


def _last(op: ReduceOp, dtype: DType) -> int | None:
    """The integer that nothing is more extreme than; None for other types."""
    if dtype.kind not in "iu":
        return None
    limits = np.iinfo(dtype.numpy)
    return int(limits.max if op is MAX else limits.min)


# The text is made of the operation, the rank and the way; dtypes are in its variants' keys.
@functools.cache
def _line_kernel(op: ReduceOp, rank: int, grid: bool, cut: bool, way: _Way) -> Kernel:
    ks = [f"k{n}" for n in range(rank)]
    line, piece = "".join(f"{k}, " for k in ks), ", ".join([*ks, "piece"])
    if cut:
        text = f"""def first_{op.name}(out, x, values, places):
    step = (x.shape[{rank}] + values.shape[{rank}] - 1) // values.shape[{rank}]
    {_loop([*ks, "piece"], "values")}
        low = piece * step
        high = min(low + step, x.shape[{rank}])
{_search_text(op, "x", line, grid, way)}        values[{piece}] = best
        places[{piece}] = at
    {_loop(ks, "out")}
        low = 0
        high = values.shape[{rank}]
{_search_text(op, "values", line, grid, way)}        out[{line or "()"}] = places[{line}at]
"""
    else:
        text = f"""def first_{op.name}(out, x):
    {_loop(ks, "out")}
        low = 0
        high = x.shape[{rank}]
{_search_text(op, "x", line, grid, way)}        out[{line or "()"}] = at
"""
    return from_text(f"first_{op.name}", text, dict(_SCOPE))


def _search_text(op: ReduceOp, x: str, line: str, grid: bool, way: _Way) -> str:
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
    better = f"part {_BETTER[op.name]} best or (part != part and best == best)"
    return f"""        best = {x}[{line}low]
        at = low
        c = low
        width = {way.first}
        while c < high{"" if way.last is None else f" and best != {way.last}"}:
            part = best
            stop = min(c + width, high)
{_chunk_text(op, f"{x}[{line}", way.fours)}            if {better}:
                best = part
                at = c
            c = stop
            {f"width = min(2 * width, {4 * CHUNK})" if way.first < CHUNK else ""}
        value = {x}[{line}at]
        while at + 1 < high and value != best and value == value:
            at += 1
            value = {x}[{line}at]
"""


def _chunk_text(op: ReduceOp, x: str, fours: bool) -> str:
    """Lines after which `part` is the extreme of itself and x[c:stop]."""
    if not fours:
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


# The text is made of the rank, and whether blocks share a piece; dtypes are in its variants' keys.
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
