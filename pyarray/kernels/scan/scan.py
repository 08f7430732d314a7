"""Scans along an axis: running sums and products.

The layout decides the schedule:

- *rows*: each line along the axis by itself. Long lines are cut into blocks: blocks are reduced, their totals
are scanned, and each block is scanned with the total before it. Floats are accumulated in the widest type of
their kind. On a grid, a line is scanned by many blocks (`scan_gpu.py`) if the dtype allows it.

- *columns*: the elements of another axis are dense. A block of them takes one step after the other along the
scanned axis.
"""

from __future__ import annotations

import functools
import math

from ... import jit, shapes
from ...array import ndarray
from ...dtypes import DType
from ...lang.markers import ndrange, unordered
from ..reduce.reduce import ReduceOp, on_grid
from ..workspace import unchecked_empty
from .scan_gpu import scan, supports_scan

BLOCK = 1 << 15  # elements of a line's block, at least: fewer don't pay for waking a thread
BLOCKS = 64  # at most
GRID_BLOCK = 1 << 8
GRID_BLOCKS = 1 << 13
GRID_PIECE = 1 << 6  # elements of a column's piece, at least
GRID_THREADS = 1 << 18
AHEAD = 8  # loads of a column that a thread has in flight
STRIP = 256  # elements summed in 16 accumulators
COLUMNS = 512  # columns of an iteration: their results stay in the first-level cache


def scan_into(op: ReduceOp, out: ndarray, x: ndarray, axis: int, kind: DType) -> None:
    """`out[..., k, ...]` = `op` over `x[..., :k + 1, ...]`; elements are cast to `kind` first. Both have one
    shape and share no memory."""
    if not x._size:
        return
    if x.ndim == 1:
        _rows(op, out, x, kind)
        return
    order = [k for k in range(x.ndim) if k != axis]
    sizes, columns = [x._shape[k] for k in order], [[a._strides[k] for k in order] for a in (out, x)]
    lead, (out_lead, x_lead) = shapes.collapse(sizes, *columns)
    n, along = x._shape[axis], (out._strides[axis], x._strides[axis])
    views = [
        a._view(0, (*lead, n), (*steps, step))
        for a, steps, step in zip((out, x), (out_lead, x_lead), along, strict=True)
    ]
    if lead and abs(out_lead[-1]) < abs(along[0]) and (on_grid(x) or lead[-1] >= 16):
        (_threads if on_grid(x) else _columns)(op, views[0], views[1], kind)
    else:
        _rows(op, views[0], views[1], kind)


def _columns(op: ReduceOp, out: ndarray, x: ndarray, kind: DType) -> None:
    _kernel(op, x.ndim - 1, "columns", op.accumulator_type(kind), kind)(out, x)


def _threads(op: ReduceOp, out: ndarray, x: ndarray, kind: DType) -> None:
    """A column per thread of a grid, or a piece of it if there are too few columns."""
    (*lead, n), accumulator = x._shape, op.accumulator_type(kind)
    pieces = max(min(n // GRID_PIECE, GRID_THREADS // math.prod(lead)), 1)
    length = -(-n // pieces)
    pieces = -(-n // length)
    if pieces == 1:
        _kernel(op, len(lead), "threads", accumulator, kind)(out, x)
        return
    before = unchecked_empty((*lead[:-1], pieces, lead[-1]), accumulator, x.device)
    _kernel(op, len(lead), "pieces", accumulator, kind)(out, x, before, length)


def _rows(op: ReduceOp, out: ndarray, x: ndarray, kind: DType) -> None:
    lead, n = x._shape[:-1], x._shape[-1]
    if on_grid(x) and supports_scan(op, x._dtype, kind):
        scan(op, out, x, kind)
        return
    least, most = (GRID_BLOCK, GRID_BLOCKS) if on_grid(x) else (BLOCK, BLOCKS)
    blocks = min(-(-n // least), max(most // max(math.prod(lead), 1), 1))
    accumulator = op.accumulator_type(kind)
    if blocks == 1:
        _kernel(op, len(lead), "line", accumulator, kind)(out, x)
    else:
        totals = unchecked_empty((*lead, blocks), accumulator, x.device)
        _kernel(op, len(lead), "blocks", accumulator, kind)(out, x, totals, -(-n // blocks))


# By the operation (its identity), the rank, the schedule and two types; dtypes are in its variants' keys.
@functools.cache
def _kernel(op: ReduceOp, rank: int, schedule: str, accumulator: DType, kind: DType) -> jit.kernel.Kernel:
    write = {
        "line": _line_text,
        "blocks": _blocks_text,
        "columns": _columns_text,
        "threads": _threads_text,
        "pieces": _pieces_text,
    }[schedule]
    scope = {"acc_t": accumulator, "kind": kind, "ndrange": ndrange, "unordered": unordered}
    return jit.kernel.from_text(f"running_{op.name}", write(op, rank), scope)


def _loop(names: list[str], sizes: list[str]) -> str:
    return f"for {', '.join(names)} in ndrange({', '.join(sizes)}):"


def _line_text(op: ReduceOp, rank: int) -> str:
    ks = [f"k{n}" for n in range(rank)]
    at = ", ".join([*ks, "t"])
    more = op.expression.format("acc", f"acc_t(kind(x[{at}]))")
    head = _loop(ks, [f"x.shape[{n}]" for n in range(rank)]) if rank else "for once in range(1):"
    return f"""def running_{op.name}(out, x):
    {head}
        acc = acc_t({op.identity})
        for t in range(x.shape[{rank}]):
            acc = {more}
            out[{at}] = acc
"""


def _blocks_text(op: ReduceOp, rank: int) -> str:
    ks = [f"k{n}" for n in range(rank)]
    at, total = ", ".join([*ks, "t"]), ", ".join([*ks, "b"])
    sizes = [f"totals.shape[{n}]" for n in range(rank + 1)]
    element = f"acc_t(kind(x[{at}]))"
    each, lines = _loop([*ks, "b"], sizes), _loop(ks, sizes[:-1]) if rank else "for once in range(1):"
    strips = f"""stop = min(b * block + block, x.shape[{rank}])
        for strip in range(b * block, stop, {STRIP}):"""
    return f"""def running_{op.name}(out, x, totals, block: int):
    {each}
        acc = acc_t({op.identity})
        {strips}
            part = acc_t({op.identity})
            for t in unordered(range(strip, min(strip + {STRIP}, stop))):
                part = {op.expression.format("part", element)}
            acc = {op.expression.format("acc", "part")}
        totals[{total}] = acc
    {lines}
        acc = acc_t({op.identity})
        for b in range(totals.shape[{rank}]):
            total = totals[{total}]
            totals[{total}] = acc
            acc = {op.expression.format("acc", "total")}
    {each}
        acc = totals[{total}]
        {strips}
            for t in range(strip, min(strip + {STRIP}, stop)):
                acc = {op.expression.format("acc", element)}
                out[{at}] = acc
"""


def _columns_text(op: ReduceOp, rank: int) -> str:
    """The last of the leading axes is the dense one."""
    ks, width = [f"k{n}" for n in range(rank - 1)], f"x.shape[{rank - 1}]"
    sizes = [f"x.shape[{n}]" for n in range(rank - 1)] + [f"({width} + {COLUMNS - 1}) // {COLUMNS}"]
    first, now, before = (", ".join([*ks, "c", t]) for t in ("0", "t", "t - 1"))
    return f"""def running_{op.name}(out, x):
    {_loop([*ks, "b"], sizes)}
        left = b * {COLUMNS}
        right = min(left + {COLUMNS}, {width})
        for c in range(left, right):
            out[{first}] = acc_t(kind(x[{first}]))
        for t in range(1, x.shape[{rank}]):
            for c in range(left, right):
                out[{now}] = {op.expression.format(f"acc_t(out[{before}])", f"acc_t(kind(x[{now}]))")}
"""


def _threads_text(op: ReduceOp, rank: int) -> str:
    """A column per thread of a grid; neighbouring threads have neighbouring columns."""
    ks = [f"k{n}" for n in range(rank)]
    return f"""def running_{op.name}(out, x):
    {_loop(ks, [f"x.shape[{n}]" for n in range(rank)])}
        low, high, acc = 0, x.shape[{rank}], acc_t({op.identity})
{_along(op, ks, True)}"""


def _pieces_text(op: ReduceOp, rank: int) -> str:
    """The same in pieces: reduce each piece, scan their totals, scan each piece with the total before it."""
    ks = [f"k{n}" for n in range(rank - 1)]
    sizes, piece = [f"before.shape[{n}]" for n in range(rank + 1)], ", ".join([*ks, "b", "c"])
    each = f"""{_loop([*ks, "b", "c"], sizes)}
        low, high = b * length, min(b * length + length, x.shape[{rank}])"""
    return f"""def running_{op.name}(out, x, before, length: int):
    {each}
        acc = acc_t({op.identity})
{_along(op, [*ks, "c"], False)}        before[{piece}] = acc
    {_loop([*ks, "c"], [*sizes[:-2], sizes[-1]])}
        acc = acc_t({op.identity})
        for b in range(before.shape[{rank - 1}]):
            total = before[{piece}]
            before[{piece}] = acc
            acc = {op.expression.format("acc", "total")}
    {each}
        acc = before[{piece}]
{_along(op, [*ks, "c"], True)}"""


def _along(op: ReduceOp, ks: list[str], stores: bool) -> str:
    """Lines that add elements `low` to `high` of a line to `acc`, with `AHEAD` loads in flight."""

    def step(index: str, value: str) -> list[str]:
        store = [f"out[{', '.join([*ks, index])}] = acc"] if stores else []
        return [f"acc = {op.expression.format('acc', value)}", *store]

    indices = [f"t + {n}" for n in range(AHEAD)]
    lines = [f"whole = max(high - (high - low) % {AHEAD}, low)", f"for t in range(low, whole, {AHEAD}):"]
    lines += [f"    x{n} = acc_t(kind(x[{', '.join([*ks, p])}]))" for n, p in enumerate(indices)]
    lines += [f"    {line}" for n, p in enumerate(indices) for line in step(p, f"x{n}")]
    lines += ["for t in range(whole, high):"]
    lines += [f"    {line}" for line in step("t", f"acc_t(kind(x[{', '.join([*ks, 't'])}]))")]
    return "".join(f"        {line}\n" for line in lines)
