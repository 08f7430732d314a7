"""Reductions over any axes and strides: sum, prod, min, max, any, all.

The kept axes K and the reduced axes R are each merged as far as strides allow. The layout decides the
schedule:

- *rows*: R is dense. Each output is reduced in chunks with 16 accumulators, so that rounding errors grow with
the chunk and not with the length; the rounding errors of a sum of chunks are summed too (Knuth's TwoSum, The
Art of Computer Programming vol. 2, 4.2.2).
- *columns*: K is dense. A block of outputs accumulates one row after the other. On grids a thread computes an output.
- *slices*, on grids: there are few elements of R. Slices along R are operands of an elementwise kernel.

A reduction with few outputs is split along R into pieces, which run in parallel and are reduced again.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from ... import jit, shapes
from ..._core import CallPlan
from ...array import empty, ndarray
from ...dtypes import DType, bool_, int64, uint8, uint16, uint32, uint64
from ...jit.launch_state import launch_state
from ...lang.markers import ndrange, unordered
from .columns_gpu import cut_columns
from .reduce_text import (
    BLOCK_SUMMED,
    COLUMNS,
    ELEMENT,
    THREAD_BYTES,
    ReduceOp,
    columns_text,
    few_rows_text,
    rows_text,
    slices_text,
    team_rows_text,
    teams_text,
    threads_text,
)

PIECE = 1 << 15  # elements of a piece, at least: fewer don't pay for waking a thread
PIECES = 64  # at most
# the same for grids, where a block reduces a piece; the partial results are one piece of the next launch
BLOCK_PIECE = 1 << 13
BLOCK_PIECES = 1 << 10
COLUMN_PIECES = 1 << 12  # at most, of columns
BLOCK_COLUMNS = 48  # columns whose threads count as a block
NARROW = 32  # columns of which a warp's threads would have several pieces
PIECE_ROWS = 64  # of a column, in a piece, at least
FEW_SLICES = 8  # slices along a reduced axis, of which a thread reduces an element each
FEW_ELEMENTS = 3  # the same of rows
MANY_ROWS = 1 << 14  # whose threads fill a device
FEW_ROWS = THREAD_BYTES // 4  # that a thread takes at once
MOST_ELEMENTS = 1 << 62


SUM = ReduceOp("sum", "{0} + {1}", 0, double_accumulator=True)
PROD = ReduceOp("prod", "{0} * {1}", 1, double_accumulator=True)
MIN = ReduceOp("min", "min({0}, {1})", None)
MAX = ReduceOp("max", "max({0}, {1})", None)
ANY = ReduceOp("any", "{0} | {1}", False, short_circuit="acc")
ALL = ReduceOp("all", "{0} & {1}", True, short_circuit="not acc")
# the same of integers, on their bits: whole vector registers at a time
ANY_BIT = ReduceOp("any", "{0} | {1}", 0, short_circuit="acc != 0")
ALL_BIT = ReduceOp("all", "min({0}, {1})", None, short_circuit="acc == 0")
_WORDS = {1: uint8, 2: uint16, 4: uint32, 8: uint64}
COUNT = ReduceOp("count", "{0} + {1}", 0, combine_op=SUM, count_dtype=int64)  # of true bools


def reduce_into(op: ReduceOp, out: ndarray, x: ndarray, axes: tuple[int, ...], kind: DType) -> None:
    """Reduce `x` over `axes` into `out`, whose shape is that of the other axes in order; elements are cast to
    `kind` first.

    Raises `ValueError` for min and max over no element.
    """
    if not x._size:
        if op.identity is None and not all(x._shape[k] for k in axes):
            raise ValueError(f"{op.name}() over no elements has no answer: shape {x._shape}, axes {axes}")
        if out._size:
            out[...] = op.identity
        return
    op, x, kind = _integer_form(op, x, kind)
    merged = _merged_axes(x._shape, x._strides, axes, out._strides)
    if on_grid(x) and _reduces_slices(merged):
        _slices(op, out, x, merged, kind)
    elif merged.by_columns:
        _columns(op, out, x, merged, kind)
    else:
        _rows(op, out, x, merged, kind)


def _integer_form(op: ReduceOp, x: ndarray, kind: DType) -> tuple[ReduceOp, ndarray, DType]:
    """The operation and operand with bools as uint8, since gcc doesn't vectorise `_Bool`: sums are counts, min
    is all, max is any. On CPUs, any and all of integers are computed on their bits."""
    if x._dtype is bool_ and (op is COUNT or (op is SUM and kind is int64)):
        return COUNT, x._view(0, x._shape, x._strides, dtype=uint8), uint8
    if x._dtype is bool_ and kind is bool_ and op in (MIN, MAX):
        op = ALL if op is MIN else ANY
    if op in (ANY, ALL) and x._dtype.kind in "biu" and not on_grid(x):
        word = _WORDS[x._dtype.itemsize]
        return ANY_BIT if op is ANY else ALL_BIT, x._view(0, x._shape, x._strides, dtype=word), word
    return op, x, kind


def on_grid(x: ndarray) -> bool:
    return x._buffer.device.driver.grid


class _MergedAxes(NamedTuple):
    """The kept axes (`outer`) and the reduced ones (`inner`), merged, with the strides of output and input
    along them."""

    outer: tuple[int, ...]
    out_steps: tuple[int, ...]
    x_outer: tuple[int, ...]
    inner: tuple[int, ...]
    x_inner: tuple[int, ...]
    by_columns: bool


# A function of its arguments alone: shapes, strides and axes, no array.
@functools.lru_cache(maxsize=4096)
def _merged_axes(
    shape: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...], out_strides: tuple[int, ...]
) -> _MergedAxes:
    keep = [k for k in range(len(shape)) if k not in axes]
    sizes = [shape[k] for k in keep]
    outer, (out_steps, x_outer) = shapes.collapse(sizes, out_strides, [strides[k] for k in keep])
    inner, (x_inner,) = shapes.collapse([shape[k] for k in axes], [strides[k] for k in axes])
    if not inner:
        inner, x_inner = (1,), (0,)
    by_columns = bool(outer) and _distance(x_outer) < _distance(x_inner)
    return _MergedAxes(outer, out_steps, x_outer, inner, x_inner, by_columns)


def _distance(steps: tuple[int, ...]) -> float:
    return min((abs(s) for s in steps if s), default=math.inf)


def piece_count(count: int, outputs: int, total: int, grid: bool, most_on_grid: int | None = None) -> int:
    """The number of pieces into which the first reduced axis, of length `count`, is cut."""
    piece, most = (BLOCK_PIECE, most_on_grid or BLOCK_PIECES) if grid else (PIECE, PIECES)
    pieces = min(max(total // piece, 1), max(most // max(outputs, 1), 1))
    step = -(-count // min(pieces, count))
    return -(-count // step)


def _rows(op: ReduceOp, out: ndarray, x: ndarray, merged: _MergedAxes, kind: DType) -> None:
    outer, inner = merged.outer, merged.inner
    pieces = piece_count(inner[0], math.prod(outer), x._size, on_grid(x))
    source = x._view(0, outer + inner, merged.x_outer + merged.x_inner)
    short = math.prod(inner) <= BLOCK_SUMMED or not op.is_compensated(kind)
    whole = pieces == 1 and on_grid(x) and short
    schedule = "team_rows" if whole else _row_schedule(x)
    kernel = _kernel(op, len(outer), len(inner), schedule, op.accumulator_type(kind), kind)
    if pieces == 1:
        # results of the kernels of pieces have an axis for these
        kernel(out._view(0, outer + (1,) * (not whole), merged.out_steps + (0,) * (not whole)), source)
        return
    partial = empty((*outer, pieces), op.accumulator_type(kind), x.device)
    kernel(partial, source)
    reduce_into(op.combine_op or op, out._view(0, outer, merged.out_steps), partial, (len(outer),), partial._dtype)


def _row_schedule(x: ndarray) -> str:
    return "teams" if on_grid(x) else "rows"


def _columns(op: ReduceOp, out: ndarray, x: ndarray, merged: _MergedAxes, kind: DType) -> None:
    """Accumulates in the output itself, or in a workspace if it has another type or pieces are needed."""
    outer, inner, grid = merged.outer, merged.inner, on_grid(x)
    accumulator, target = op.accumulator_type(kind), out._view(0, outer, merged.out_steps)
    if grid and outer[-1] < NARROW:
        narrow_pieces = min(COLUMN_PIECES * BLOCK_COLUMNS // math.prod(outer), inner[0] // PIECE_ROWS)
        if narrow_pieces > 1:
            _narrow_columns(op, target, x, merged, kind, narrow_pieces)
            return
    blocks = math.prod(outer[:-1]) * -(-outer[-1] // (BLOCK_COLUMNS if grid else COLUMNS))
    # with this many rows in a piece, each launch leaves fewer rows
    pieces = piece_count(inner[0], blocks, x._size, grid, COLUMN_PIECES)
    pieces = min(pieces, max(inner[0] // (PIECE_ROWS if grid else 8), 1))
    pieces = -(-inner[0] // -(-inner[0] // pieces))
    source = x._view(0, outer[:-1] + inner + outer[-1:], merged.x_outer[:-1] + merged.x_inner + merged.x_outer[-1:])
    loops = (inner[0] // pieces, *inner[1:])  # of a thread
    few = launch_state.debug and loops[-1] < FEW_ROWS
    schedule = ("few_rows" if few else "threads") if grid else "columns"
    kernel = _kernel(op, len(outer) - 1, len(inner), schedule, accumulator, kind)
    if pieces == 1 and (grid or out._dtype is accumulator):
        steps = (*merged.out_steps[:-1], 0, merged.out_steps[-1])
        kernel(target._view(0, (*outer[:-1], 1, outer[-1]), steps), source)
        return
    partial = empty((*outer[:-1], pieces, outer[-1]), accumulator, x.device)
    kernel(partial, source)
    if pieces == 1:
        target[...] = partial.reshape(outer)
    else:
        reduce_into(op.combine_op or op, target, partial, (len(outer) - 1,), accumulator)


def _reduces_slices(merged: _MergedAxes) -> bool:
    """Whether a thread takes an element of each slice along the reduced axis: there are few slices."""
    most = FEW_SLICES if merged.by_columns else FEW_ELEMENTS
    many = bool(merged.outer) and math.prod(merged.outer) >= MANY_ROWS
    return many and len(merged.inner) == 1 and merged.inner[0] <= most


def _slices(op: ReduceOp, out: ndarray, x: ndarray, merged: _MergedAxes, kind: DType) -> None:
    """As sums of the slices: neighbouring elements are loaded and stored at once."""
    (count,), (step,), outer = merged.inner, merged.x_inner, merged.outer
    slices = [x._view(k * step, outer, merged.x_outer) for k in range(count)]
    kernel = _kernel(op, len(outer), count, "slices", op.accumulator_type(kind), kind)
    kernel(out._view(0, outer, merged.out_steps), *slices)


def _narrow_columns(op: ReduceOp, out: ndarray, x: ndarray, merged: _MergedAxes, kind: DType, pieces: int) -> None:
    """Reduces the pieces of `cut_columns`, and then each column's."""
    outer, first, axes = merged.outer, len(merged.outer) - 1, len(merged.inner)
    source, rest = cut_columns(x, outer, merged.x_outer, merged.inner, merged.x_inner, pieces)
    left = rest._shape[-2]
    partial = empty((*outer, pieces + left), op.accumulator_type(kind), x.device)
    by_rows = partial.swapaxes(-1, -2)
    reduce_into(op, by_rows[..., :pieces, :], source, tuple(range(first, first + axes)), kind)
    if left:
        reduce_into(op, by_rows[..., pieces:, :], rest, tuple(range(first, first + axes - 1)), kind)
    reduce_into(op.combine_op or op, out, partial, (len(outer),), partial._dtype)


# By the operation (its identity), the axes, the schedule and two types; dtypes are in its variants' keys.
@functools.cache
def _kernel(op: ReduceOp, keep: int, reduced: int, schedule: str, accumulator: DType, kind: DType) -> jit.kernel.Kernel:
    write = {
        "rows": rows_text,
        "teams": teams_text,
        "team_rows": team_rows_text,
        "columns": columns_text,
        "threads": threads_text,
        "few_rows": few_rows_text,
        "slices": slices_text,
    }[schedule]
    text = write(op, keep, reduced, kind)
    if op.transform is not None:
        text = ELEMENT.sub(r"element(x[\1])", text)
    scope = {
        "element": op.transform,
        "uint16": uint16,
        "acc_t": accumulator,
        "quad_t": kind.arithmetic,
        "kind": kind,
        "ndrange": ndrange,
        "unordered": unordered,
    }
    return jit.kernel.from_text(f"{op.name}_{schedule}", text, scope)


def full_reduction_plan(op: ReduceOp, x: ndarray, dtype: DType, kind: DType, key: int) -> CallPlan:
    """The plan of a call that reduces all of a contiguous array of `x`'s type into a new 0-d array, of that dtype and
    type key: for as many elements as `x` has, in one launch or by partial results."""
    op, x, kind = _integer_form(op, x, kind)
    device, grid, accumulator = x.device, on_grid(x), op.accumulator_type(kind)
    piece, most = (BLOCK_PIECE, BLOCK_PIECES) if grid else (PIECE, PIECES)
    few, size = x._size < 2 * piece, ("size", 0, 0)
    run = _kernel(op, 0, 1, _row_schedule(x), accumulator, kind)
    result = ("array", 0, key, (), None, None)
    if few:
        step = _full_step(run, x, dtype, device, ("operand", 0, 0), size, ("buffer", 0, 0), 1)
        return CallPlan(1, ((dtype.itemsize,),), (step,), result, (), ((1, 2 * piece - 1, (size,)),))
    # `piece_count` of so many elements, of which each piece has more than there are pieces
    pieces = ("quotient", 0, piece, most)
    total = _kernel(op.combine_op or op, 0, 1, _row_schedule(x), accumulator, accumulator)
    steps = (
        _full_step(run, x, accumulator, device, ("operand", 0, 0), size, ("buffer", 1, 0), pieces),
        _full_step(total, empty(1, accumulator, device), dtype, device, ("buffer", 1, 0), pieces, ("buffer", 0, 0), 1),
    )
    buffers = (dtype.itemsize,), (accumulator.itemsize, pieces)
    return CallPlan(1, buffers, steps, result, (), ((2 * piece, MOST_ELEMENTS, (size,)),))


def _full_step(
    kernel: jit.kernel.Kernel, x: ndarray, dtype: DType, device: Any, source: Any, size: Any, target: Any, pieces: Any
) -> tuple[Any, ...]:
    """The step that reduces `size` elements of `x`'s type at `source` into `pieces` of `dtype` at `target`."""
    variant = kernel.variant((empty(1, dtype, device), empty(1, x._dtype, device)), False)
    layouts = ((1,), (dtype.itemsize,)), ((1,), (x._dtype.itemsize,))
    out, operand = jit.bound_launch.first_slots(variant.program.params)
    fills = (out, target), (out + 1, pieces), (operand, source), (operand + 1, size)
    return jit.bound_launch.bind_launch(variant, layouts), fills, (size,)
