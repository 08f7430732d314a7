"""Many elements to one: sum, prod, min, max, any, all over any axes and strides, and the place of an extreme.

The kept axes K and the reduced axes R are each merged as far as strides allow. Two forms, as the memory lies:

- *rows*: R is dense. Each output runs over its elements with 16 accumulators side by side, in chunks, so that
rounding errors grow with the chunk and not with the length; what a sum of chunks rounds away is summed too
(Knuth's TwoSum, The Art of Computer Programming vol. 2, 4.2.2).
- *columns*: K is dense. A block of outputs takes one row after the other.

A reduction with few outputs is split in pieces along R, which run in parallel and are reduced again.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import shape as shapes
from ..array import empty, ndarray
from ..array_marks import unmarked
from ..dtypes import DType, complex128, float32, float64, int64
from ..jit.kernel import Kernel, from_text
from ..lang.markers import ndrange, unordered

CHUNK = 2048  # elements reduced in 16 accumulators before they are combined
SUMMED = 256  # floats summed in 16 accumulators: as many additions one after the other as in NumPy's blocks
# long rows of floats are read in four runs at once, far enough apart for the hardware to prefetch each
RUN = 4096
# outputs of a block: float64 accumulators of 16 KiB stay in the first-level cache, and rows are read in long
# runs
COLUMNS = 2048
ROWS = 4  # rows that columns take at once: accumulators are loaded and stored once for all of them
PIECE = 1 << 15  # elements that make another piece, and with it a thread, worth while
PIECES = 64
# the same for grids, where a warp takes a piece
WARP_PIECE = 1 << 11
WARP_PIECES = 1 << 13


@dataclass(frozen=True, eq=False)
class ReduceOp:
    """`expression`, of an accumulator and a value, is associative and commutative; `start` is its identity,
    None: an element is (min, max).

    `element` prepares one element; `wide` says that floats are accumulated in the widest type of their kind.
    """

    name: str
    expression: str
    start: Any
    wide: bool = False

    def accumulator(self, dtype: DType) -> DType:
        """Type that elements of `dtype` are accumulated in."""
        if not self.wide or dtype.kind not in "fc":
            return dtype
        return float64 if dtype.kind == "f" else complex128


SUM = ReduceOp("sum", "{0} + {1}", 0, wide=True)
PROD = ReduceOp("prod", "{0} * {1}", 1, wide=True)
MIN = ReduceOp("min", "min({0}, {1})", None)
MAX = ReduceOp("max", "max({0}, {1})", None)
ANY = ReduceOp("any", "{0} | {1}", False)
ALL = ReduceOp("all", "{0} & {1}", True)


def reduce_into(op: ReduceOp, out: ndarray, x: ndarray, axes: tuple[int, ...], kind: DType) -> None:
    """Reduce `x` over `axes` into `out`, whose shape is that of the other axes in order; elements are cast to
    `kind` first.

    Raises `ValueError` for min and max over no element.
    """
    if not x._size:
        if op.start is None and not all(x._shape[k] for k in axes):
            raise ValueError(f"{op.name}() over no elements has no answer: shape {x._shape}, axes {axes}")
        if out._size:
            out[...] = op.start
        return
    walk = _walk(x._shape, x._strides, axes, out._strides)
    if walk.by_columns:
        _columns(op, out, x, walk, kind)
    else:
        _rows(op, out, x, walk, kind)


def on_grid(x: ndarray) -> bool:
    return x._buffer.device.driver.grid


class _Walk(NamedTuple):
    """The kept axes (`outer`) and the reduced ones (`inner`), merged, with the strides of output and input
    along them."""

    outer: tuple[int, ...]
    out_steps: tuple[int, ...]
    x_outer: tuple[int, ...]
    inner: tuple[int, ...]
    x_inner: tuple[int, ...]
    by_columns: bool


@functools.lru_cache(maxsize=4096)
def _walk(
    shape: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...], out_strides: tuple[int, ...]
) -> _Walk:
    keep = [k for k in range(len(shape)) if k not in axes]
    kept = [shape[k] for k in keep]
    outer, (out_steps, x_outer) = shapes.collapse(kept, out_strides, [strides[k] for k in keep])
    inner, (x_inner,) = shapes.collapse([shape[k] for k in axes], [strides[k] for k in axes])
    if not inner:
        inner, x_inner = (1,), (0,)
    by_columns = bool(outer) and _distance(outer, x_outer) < _distance(inner, x_inner)
    return _Walk(outer, out_steps, x_outer, inner, x_inner, by_columns)


def _distance(shape: tuple[int, ...], steps: tuple[int, ...]) -> float:
    return min((abs(s) for s in steps if s), default=math.inf)


def pieces_of(count: int, outputs: int, total: int, grid: bool) -> int:
    """Into how many pieces the first reduced axis of length `count` is cut."""
    piece, most = (WARP_PIECE, WARP_PIECES) if grid else (PIECE, PIECES)
    wanted = min(max(total // piece, 1), max(most // max(outputs, 1), 1))
    step = -(-count // min(wanted, count))
    return -(-count // step)


def _rows(op: ReduceOp, out: ndarray, x: ndarray, walk: _Walk, kind: DType) -> None:
    outer, inner = walk.outer, walk.inner
    pieces = pieces_of(inner[0], math.prod(outer), x._size, on_grid(x))
    source = x._view(0, outer + inner, walk.x_outer + walk.x_inner)
    kernel = _kernel(op, len(outer), len(inner), "rows", op.accumulator(kind), kind)
    if pieces == 1:
        kernel(out._view(0, (*outer, 1), (*walk.out_steps, 0)), source)
        return
    partial = empty((*outer, pieces), op.accumulator(kind), x.device)
    kernel(partial, source)
    reduce_into(op, out._view(0, outer, walk.out_steps), partial, (len(outer),), partial.dtype)


def _columns(op: ReduceOp, out: ndarray, x: ndarray, walk: _Walk, kind: DType) -> None:
    """Accumulates in the output itself, or in a fresh array where that has another type or pieces are
    needed."""
    outer, inner, grid = walk.outer, walk.inner, on_grid(x)
    blocks = math.prod(outer[:-1]) * -(-outer[-1] // (32 if grid else COLUMNS))
    # with 8 rows a piece, what is left to reduce gets shorter each time
    pieces = min(pieces_of(inner[0], blocks, x._size, grid), max(inner[0] // 8, 1))
    pieces, accumulator = -(-inner[0] // -(-inner[0] // pieces)), op.accumulator(kind)
    source = x._view(0, outer[:-1] + inner + outer[-1:], walk.x_outer[:-1] + walk.x_inner + walk.x_outer[-1:])
    target = out._view(0, outer, walk.out_steps)
    form = "threads" if grid else "columns"
    kernel = _kernel(op, len(outer) - 1, len(inner), form, accumulator, kind)
    if pieces == 1 and out.dtype is accumulator:
        steps = (*walk.out_steps[:-1], 0, walk.out_steps[-1])
        kernel(target._view(0, (*outer[:-1], 1, outer[-1]), steps), source)
        return
    partial = empty((*outer[:-1], pieces, outer[-1]), accumulator, x.device)
    kernel(partial, source)
    if pieces == 1:
        target[...] = partial.reshape(outer)
    else:
        reduce_into(op, target, partial, (len(outer) - 1,), accumulator)


@functools.cache
def _kernel(op: ReduceOp, keep: int, reduced: int, form: str, accumulator: DType, kind: DType) -> Kernel:
    write = {"rows": _rows_text, "columns": _columns_text, "threads": _threads_text}[form]
    text = write(op, keep, reduced, kind)
    scope = {
        "acc_t": accumulator,
        "quad_t": float32 if kind.itemsize == 2 and kind.kind == "f" else kind,
        "kind": kind,
        "ndrange": ndrange,
        "unordered": unordered,
    }
    return from_text(f"{op.name}_{form}", text, scope)


def _rows_text(op: ReduceOp, keep: int, reduced: int, kind: DType) -> str:
    """out[k..., piece] from x[k..., r...]; the first reduced axis is cut into pieces, the last one into
    chunks."""
    ks = [f"k{n}" for n in range(keep)]
    rs = [f"r{n}" for n in range(reduced)]
    sizes = [f"out.shape[{n}]" for n in range(keep + 1)]
    exact = op.name == "sum" and kind.kind in "fc"
    lines = [
        f"def {op.name}_rows(out, x):",
        f"    step = (x.shape[{keep}] + out.shape[{keep}] - 1) // out.shape[{keep}]",
    ]
    if exact and reduced == 1:  # pieces of whole chunks; the last ones may be left with nothing
        lines.append(f"    step = (step + {4 * RUN - 1}) // {4 * RUN} * {4 * RUN}")
    lines.append(
        f"    for {', '.join([*ks, 'piece'])} in ndrange({', '.join(sizes)}):"
        if keep
        else f"    for piece in range({sizes[0]}):"
    )
    cut = f"x.shape[{keep}]"
    lines += [f"        low = min(piece * step, {cut})", f"        high = min(low + step, {cut})"]
    first = ", ".join([*ks, "low", *["0"] * (reduced - 1)])
    start = f"acc_t(kind(x[{first}]))" if op.start is None else f"acc_t({op.start})"
    lines.append(f"        acc = {start}")
    if exact:
        lines.append("        lost = acc_t(0)")
    pad = "        "
    for n in range(reduced - 1):
        bounds = "low, high" if n == 0 else f"x.shape[{keep + n}]"
        lines.append(f"{pad}for r{n} in range({bounds}):")
        pad += "    "
    low, high = ("low", "high") if reduced == 1 else ("0", f"x.shape[{keep + reduced - 1}]")
    before = "".join(f"{name}, " for name in ks + rs[:-1])
    if exact:
        lines += [pad + line for line in _sum_lines(before, low, high)]
    else:
        part = "acc" if op.start is None else f"acc_t({op.start})"
        lines += [
            f"{pad}for c in range({low}, {high}, {CHUNK}):",
            f"{pad}    part = {part}",
            f"{pad}    for r in unordered(range(c, min(c + {CHUNK}, {high}))):",
            f"{pad}        part = {op.expression.format('part', f'acc_t(kind(x[{before}r]))')}",
            f"{pad}    acc = {op.expression.format('acc', 'part')}",
        ]
    # beyond the largest number `lost` is NaN, and `acc` says it all
    value = "acc + lost if lost == lost else acc" if exact else "acc"
    lines.append(f"        out[{', '.join([*ks, 'piece'])}] = {value}")
    return "\n".join(lines) + "\n"


def _sum_lines(before: str, low: str, high: str) -> list[str]:
    """acc + lost = sum of x[before..., low:high]. Whole chunks are added up by fours before they become wide,
    which halves the work; the rest and short rows are wide from the start."""
    one, two, three, four = (f"quad_t(kind(x[{before}r + {n * RUN}]))" for n in range(4))
    add = [
        "    more = part",
        "    total = acc + more",
        "    added = total - acc",
        "    lost = lost + ((acc - (total - added)) + (more - added))",
        "    acc = total",
    ]
    return [
        f"whole = {high} - ({high} - {low}) % {4 * RUN}",
        f"for run in range({low}, whole, {4 * RUN}):",
        f"    for c in range(run, run + {RUN}, {SUMMED}):",
        "        part = acc_t(0)",
        f"        for r in unordered(range(c, c + {SUMMED})):",
        f"            part = part + acc_t(({one} + {two}) + ({three} + {four}))",
        *(f"    {line}" for line in add),
        f"for c in range(whole, {high}, {SUMMED}):",
        "    part = acc_t(0)",
        f"    for r in unordered(range(c, min(c + {SUMMED}, {high}))):",
        f"        part = part + acc_t(kind(x[{before}r]))",
        *add,
    ]


def _columns_text(op: ReduceOp, keep: int, reduced: int, _: DType) -> str:
    """out[k..., piece, c] from x[k..., r..., c], in blocks of columns."""
    ks = [f"k{n}" for n in range(keep)]
    rs = [f"r{n}" for n in range(reduced)]
    width, cut = f"out.shape[{keep + 1}]", f"x.shape[{keep}]"
    sizes = [f"out.shape[{n}]" for n in range(keep + 1)] + [f"({width} + {COLUMNS - 1}) // {COLUMNS}"]
    place = ", ".join([*ks, "piece", "c"])
    first = ", ".join([*ks, "low", *["0"] * (reduced - 1), "c"])
    start = f"kind(x[{first}])" if op.start is None else f"{op.start}"
    lines = [
        f"def {op.name}_columns(out, x):",
        f"    step = ({cut} + out.shape[{keep}] - 1) // out.shape[{keep}]",
        f"    for {', '.join([*ks, 'piece', 'b'])} in ndrange({', '.join(sizes)}):",
        "        low = piece * step",
        f"        high = min(low + step, {cut})",
        f"        left = b * {COLUMNS}",
        f"        right = min(left + {COLUMNS}, {width})",
        "        for c in range(left, right):",
        f"            out[{place}] = acc_t({start})",
    ]
    pad = "        "
    for n in range(reduced - 1):
        lines.append(f"{pad}for r{n} in range({'low, high' if n == 0 else f'x.shape[{keep + n}]'}):")
        pad += "    "
    last = rs.pop()
    low, high = ("low", "high") if reduced == 1 else ("0", f"x.shape[{keep + reduced - 1}]")

    def combined(*rows: str) -> str:
        elements = [f"acc_t(kind(x[{', '.join([*ks, *rs, row, 'c'])}]))" for row in rows]
        total = functools.reduce(op.expression.format, elements)
        return op.expression.format(f"out[{place}]", f"({total})")

    lines += [
        f"{pad}for {last} in range({low}, {high} - {ROWS - 1}, {ROWS}):",
        f"{pad}    for c in range(left, right):",
        f"{pad}        out[{place}] = {combined(last, *(f'{last} + {n}' for n in range(1, ROWS)))}",
        f"{pad}for {last} in range({high} - ({high} - {low}) % {ROWS}, {high}):",
        f"{pad}    for c in range(left, right):",
        f"{pad}        out[{place}] = {combined(last)}",
    ]
    return "\n".join(lines) + "\n"


def _threads_text(op: ReduceOp, keep: int, reduced: int, _: DType) -> str:
    """As `_columns_text`, a column per thread of a grid."""
    ks, rs = [f"k{n}" for n in range(keep)], [f"r{n}" for n in range(reduced)]
    cut = f"x.shape[{keep}]"
    sizes = ", ".join(f"out.shape[{n}]" for n in range(keep + 2))
    first = ", ".join([*ks, "low", *["0"] * (reduced - 1), "c"])
    start = f"kind(x[{first}])" if op.start is None else f"{op.start}"
    lines = [
        f"def {op.name}_threads(out, x):",
        f"    step = ({cut} + out.shape[{keep}] - 1) // out.shape[{keep}]",
        f"    for {', '.join([*ks, 'piece', 'c'])} in ndrange({sizes}):",
        "        low = piece * step",
        f"        acc = acc_t({start})",
    ]
    pad = "        "
    for n, r in enumerate(rs):
        bounds = f"low, min(low + step, {cut})" if n == 0 else f"x.shape[{keep + n}]"
        lines.append(f"{pad}for {r} in range({bounds}):")
        pad += "    "
    element = f"acc_t(kind(x[{', '.join([*ks, *rs, 'c'])}]))"
    lines.append(f"{pad}acc = {op.expression.format('acc', element)}")
    lines.append(f"        out[{', '.join([*ks, 'piece', 'c'])}] = acc")
    return "\n".join(lines) + "\n"


class Whole(NamedTuple):
    """What reduces all of a contiguous array: `pieces` of it into numbers of type `partial`, and these into
    one."""

    first: Any  # launches (partial, array of any rank)
    middle: Any  # launches (partial, partial)
    last: Any  # launches (0-d output, partial)
    direct: Any  # launches (0-d output, array of any rank)
    partial: ndarray


def whole_plan(op: ReduceOp, out: ndarray, x: ndarray, kind: DType) -> Whole:
    """The launches for `x`'s type into `out`'s, for every size."""
    partial = empty(1, op.accumulator(kind), x.device)
    kernel = _kernel(op, 0, 1, "rows", op.accumulator(kind), kind)
    total = _kernel(op, 0, 1, "rows", op.accumulator(kind), partial.dtype)
    flat, one = x._view(0, (x._size,), (x._dtype.itemsize,)), out._view(0, (1,), (out._dtype.itemsize,))
    return Whole(
        kernel.variant((partial, flat)).launch,
        total.variant((partial, partial)).launch,
        total.variant((one, partial)).launch,
        kernel.variant((one, flat)).launch,
        partial,
    )


def arg_extreme(x: ndarray, extreme: ndarray, out: ndarray) -> None:
    """`out[k...]` = first index along the last axis of `x` at which `x` equals `extreme[k...]`, or is NaN
    where that is NaN."""
    x, rank = unmarked(x), x.ndim - 1
    pieces = pieces_of(x._shape[-1], math.prod(x._shape[:-1]), x._size, on_grid(x))
    kernel = _find_kernel(rank)
    if pieces == 1:
        kernel(out._view(0, (*out._shape, 1), (*out._strides, 0)), x, extreme)
        return
    partial = empty((*x._shape[:-1], pieces), int64, x.device)
    kernel(partial, x, extreme)
    reduce_into(MIN, out, partial, (rank,), int64)


@functools.cache
def _find_kernel(rank: int) -> Kernel:
    ks = [f"k{n}" for n in range(rank)]
    sizes = ", ".join(f"out.shape[{n}]" for n in range(rank + 1))
    places = f"{', '.join([*ks, 'piece'])} in ndrange({sizes})" if rank else f"piece in range({sizes})"
    text = f"""def find_first(out, x, extreme):
    step = (x.shape[{rank}] + out.shape[{rank}] - 1) // out.shape[{rank}]
    for {places}:
        wanted = extreme[{", ".join(ks) or "()"}]
        found = x.shape[{rank}]
        for i in range(piece * step, min(piece * step + step, x.shape[{rank}])):
            value = x[{", ".join([*ks, "i"])}]
            if value == wanted or value != value:
                found = i
                break
        out[{", ".join([*ks, "piece"])}] = found
"""
    return from_text("find_first", text, {"ndrange": ndrange})
