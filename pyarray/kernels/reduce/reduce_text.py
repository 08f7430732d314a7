"""Kernel text of reductions: rows and columns, for CPUs and for grids."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...dtypes import DType, complex128, float64

CHUNK = 2048  # elements reduced in 16 accumulators before they are combined
COUNTED = 1 << 15  # elements counted in 16-bit accumulators, which vectorise best
SUMMED = 256  # floats summed in 16 accumulators: as long chains of additions as in NumPy's blocks
# long rows of floats are read in four runs at once, far enough apart for the hardware to prefetch each
RUN = 4096
# outputs of a block: 16 KiB of float64 accumulators stay in the first-level cache, and rows are read in long
# runs
COLUMNS = 2048
ROWS = 4  # rows that columns add at once: accumulators are loaded and stored once for all of them
BLOCK_SUMMED = 1 << 13  # float64 summed without compensation: 8 times 4 by each thread of a block
THREAD_BYTES = 128  # of a column that a thread has in flight, as far as elements have 4 bytes or more
ELEMENT = re.compile(r"\bx\[([^\]]*)\]")  # a load of an element in a text


@dataclass(frozen=True, eq=False)
class ReduceOp:
    """`expression` combines an accumulator and a value; it is associative and commutative. `identity` None:
    there is none (min, max), and an element is taken.

    `double_accumulator`: floats are accumulated in the widest type of their kind. `transform`: a function of
    an element, whose result is reduced. `combine_op` reduces partial results, by default the operation
    itself. `short_circuit`: an expression of an accumulator; where it is true, no further element changes
    it. `count_dtype`: the accumulator type of counts.
    """

    name: str
    expression: str
    identity: Any
    double_accumulator: bool = False
    transform: Any = None
    combine_op: ReduceOp | None = None
    short_circuit: str | None = None
    count_dtype: DType | None = None

    def accumulator_type(self, dtype: DType) -> DType:
        """Type that elements of `dtype` are accumulated in."""
        if self.count_dtype is not None:
            return self.count_dtype
        if not self.double_accumulator or dtype.kind not in "fc":
            return dtype
        return float64 if dtype.kind == "f" else complex128

    def is_compensated(self, dtype: DType) -> bool:
        """Whether it is a sum of a type that nothing wider accumulates."""
        return (
            self.identity == 0
            and dtype.kind in "fc"
            and self.double_accumulator
            and dtype is self.accumulator_type(dtype)
        )


def rows_text(op: ReduceOp, keep: int, reduced: int, kind: DType) -> str:
    """out[k..., piece] from x[k..., r...]; the first reduced axis is cut into pieces, the last one into
    chunks."""
    exact = op.identity == 0 and op.double_accumulator and kind.kind in "fc"

    def inner(before: str, low: str, high: str) -> list[str]:
        if exact:
            return _sum_lines(before, low, high)
        if op.count_dtype is not None:
            return [
                f"for c in range({low}, {high}, {COUNTED}):",
                "    part = uint16(0)",
                f"    for r in range(c, min(c + {COUNTED}, {high})):",
                f"        part = part + uint16(kind(x[{before}r]))",
                "    acc = acc + acc_t(part)",
            ]
        part = "acc" if op.identity is None else f"acc_t({op.identity})"
        return [
            f"for c in range({low}, {high}, {CHUNK}):",
            f"    part = {part}",
            f"    for r in unordered(range(c, min(c + {CHUNK}, {high}))):",
            f"        part = {op.expression.format('part', f'acc_t(kind(x[{before}r]))')}",
            f"    acc = {op.expression.format('acc', 'part')}",
            *([f"    if {op.short_circuit}:", "        break"] if op.short_circuit else []),
        ]

    # pieces have whole chunks; the last ones may be empty
    return _pieces_text(f"{op.name}_rows", op, keep, reduced, exact, inner, 4 * RUN if exact else 1)


_ADD = [  # TwoSum
    "    more = part",
    "    total = acc + more",
    "    added = total - acc",
    "    lost = lost + ((acc - (total - added)) + (more - added))",
    "    acc = total",
]


def teams_text(op: ReduceOp, keep: int, reduced: int, kind: DType) -> str:
    """As `rows_text` for a grid: a team of threads reduces a piece, with coalesced loads."""
    exact = op.is_compensated(kind)

    def inner(before: str, low: str, high: str) -> list[str]:
        if not exact:
            return [
                f"for r in unordered(range({low}, {high})):",
                f"    acc = {op.expression.format('acc', f'acc_t(kind(x[{before}r]))')}",
            ]
        fours = "({} + {}) + ({} + {})".format(*(f"kind(x[{before}r + {n * BLOCK_SUMMED // 4}])" for n in range(4)))
        return [
            f"for c in range({low}, {high} - {BLOCK_SUMMED - 1}, {BLOCK_SUMMED}):",
            "    part = acc_t(0)",
            f"    for r in unordered(range(c, c + {BLOCK_SUMMED // 4})):",
            f"        part = part + ({fours})",
            *_ADD,
            f"rest = max({high} - ({high} - {low}) % {BLOCK_SUMMED}, {low})",
            f"for c in range(rest, {high}, {BLOCK_SUMMED}):",
            "    part = acc_t(0)",
            f"    for r in unordered(range(c, {high})):",
            f"        part = part + kind(x[{before}r])",
            *_ADD,
        ]

    return _pieces_text(f"{op.name}_teams", op, keep, reduced, exact, inner, 1)


def team_rows_text(op: ReduceOp, keep: int, reduced: int, kind: DType) -> str:
    """As `teams_text` of a single piece, out[k...]. The loop over the last axis has the array's bounds, so that teams
    read rows in vectors."""
    ks, rs = [f"k{n}" for n in range(keep)], [f"r{n}" for n in range(reduced - 1)]
    first, sizes = ", ".join([*ks, *["0"] * reduced]), ", ".join(f"out.shape[{n}]" for n in range(keep))
    lines = [
        f"def {op.name}_team_rows(out, x):",
        f"    for {', '.join(ks)} in ndrange({sizes}):" if keep else "    for once in range(1):",
        "        acc = " + (f"acc_t(kind(x[{first}]))" if op.identity is None else f"acc_t({op.identity})"),
    ]
    pad = "        "
    for n, r in enumerate(rs):
        lines.append(f"{pad}for {r} in range(x.shape[{keep + n}]):")
        pad += "    "
    element = f"acc_t(kind(x[{', '.join([*ks, *rs, 'r'])}]))"
    lines += [
        f"{pad}for r in unordered(range(x.shape[{keep + reduced - 1}])):",
        f"{pad}    acc = {op.expression.format('acc', element)}",
        f"        out[{', '.join(ks) or '()'}] = acc",
    ]
    return "\n".join(lines) + "\n"


def _pieces_text(
    name: str,
    op: ReduceOp,
    keep: int,
    reduced: int,
    exact: bool,
    inner: Callable[[str, str, str], list[str]],
    multiple: int,
) -> str:
    """`inner(before, low, high)`: the lines that add x[before..., low:high] to `acc`, with `exact` to
    `acc + lost`. Pieces of a single axis have a `multiple` of elements."""
    ks = [f"k{n}" for n in range(keep)]
    sizes, cut = ", ".join(f"out.shape[{n}]" for n in range(keep + 1)), f"x.shape[{keep}]"
    first = ", ".join([*ks, "low", *["0"] * (reduced - 1)])
    lines = [f"def {name}(out, x):", f"    step = ({cut} + out.shape[{keep}] - 1) // out.shape[{keep}]"]
    if multiple > 1 and reduced == 1:
        lines.append(f"    step = (step + {multiple - 1}) // {multiple} * {multiple}")
    lines += [
        f"    for {', '.join([*ks, 'piece'])} in ndrange({sizes}):" if keep else f"    for piece in range({sizes}):",
        f"        low = min(piece * step, {cut})",
        f"        high = min(low + step, {cut})",
        "        acc = " + (f"acc_t(kind(x[{first}]))" if op.identity is None else f"acc_t({op.identity})"),
    ]
    lines += ["        lost = acc_t(0)"] * exact
    loops, pad, low, high = _loops(keep, reduced, "high")
    before = "".join(f"{index}, " for index in [*ks, *(f"r{n}" for n in range(reduced - 1))])
    lines += loops + [pad + line for line in inner(before, low, high)]
    # after an overflow `lost` is NaN; `acc` is the result
    value = "acc + lost if lost == lost else acc" if exact else "acc"
    lines.append(f"        out[{', '.join([*ks, 'piece'])}] = {value}")
    return "\n".join(lines) + "\n"


def _loops(keep: int, reduced: int, stop: str) -> tuple[list[str], str, str, str]:
    """Loops over all reduced axes but the last, the indentation of their body, and the bounds of the last
    axis; those of the first one are `low` and `stop`."""
    lines, pad = [], "        "
    bounds = [("low", stop), *(("0", f"x.shape[{keep + n}]") for n in range(1, reduced))]
    for n, (low, high) in enumerate(bounds[:-1]):
        lines.append(f"{pad}for r{n} in range({high if n else f'{low}, {high}'}):")
        pad += "    "
    return lines, pad, *bounds[-1]


def _sum_lines(before: str, low: str, high: str) -> list[str]:
    """acc + lost = sum of x[before..., low:high]. Whole chunks are added by fours before they are converted to
    the accumulator type, which halves the work; the rest and short rows are converted first."""
    one, two, three, four = (f"quad_t(kind(x[{before}r + {n * RUN}]))" for n in range(4))
    return [
        f"main_end = {high} - ({high} - {low}) % {4 * RUN}",
        f"for run in range({low}, main_end, {4 * RUN}):",
        f"    for c in range(run, run + {RUN}, {SUMMED}):",
        "        part = acc_t(0)",
        f"        for r in unordered(range(c, c + {SUMMED})):",
        f"            part = part + acc_t(({one} + {two}) + ({three} + {four}))",
        *(f"    {line}" for line in _ADD),
        f"for c in range(main_end, {high}, {SUMMED}):",
        "    part = acc_t(0)",
        f"    for r in unordered(range(c, min(c + {SUMMED}, {high}))):",
        f"        part = part + acc_t(kind(x[{before}r]))",
        *_ADD,
    ]


def columns_text(op: ReduceOp, keep: int, reduced: int, _: DType) -> str:
    """out[k..., piece, c] from x[k..., r..., c], in blocks of columns."""
    ks = [f"k{n}" for n in range(keep)]
    rs = [f"r{n}" for n in range(reduced)]
    width, cut = f"out.shape[{keep + 1}]", f"x.shape[{keep}]"
    sizes = [f"out.shape[{n}]" for n in range(keep + 1)] + [f"({width} + {COLUMNS - 1}) // {COLUMNS}"]
    index = ", ".join([*ks, "piece", "c"])
    first = ", ".join([*ks, "low", *["0"] * (reduced - 1), "c"])
    start = f"kind(x[{first}])" if op.identity is None else f"{op.identity}"
    lines = [
        f"def {op.name}_columns(out, x):",
        f"    step = ({cut} + out.shape[{keep}] - 1) // out.shape[{keep}]",
        f"    for {', '.join([*ks, 'piece', 'b'])} in ndrange({', '.join(sizes)}):",
        "        low = piece * step",
        f"        high = min(low + step, {cut})",
        f"        left = b * {COLUMNS}",
        f"        right = min(left + {COLUMNS}, {width})",
        "        for c in range(left, right):",
        f"            out[{index}] = acc_t({start})",
    ]
    loops, pad, low, high = _loops(keep, reduced, "high")
    last = rs.pop()

    def combined(*rows: str) -> str:
        elements = [f"acc_t(kind(x[{', '.join([*ks, *rs, row, 'c'])}]))" for row in rows]
        total = functools.reduce(op.expression.format, elements)
        return op.expression.format(f"out[{index}]", f"({total})")

    lines += [
        *loops,
        f"{pad}for {last} in range({low}, {high} - {ROWS - 1}, {ROWS}):",
        f"{pad}    for c in range(left, right):",
        f"{pad}        out[{index}] = {combined(last, *(f'{last} + {n}' for n in range(1, ROWS)))}",
        f"{pad}for {last} in range({high} - ({high} - {low}) % {ROWS}, {high}):",
        f"{pad}    for c in range(left, right):",
        f"{pad}        out[{index}] = {combined(last)}",
    ]
    return "\n".join(lines) + "\n"


def few_rows_text(op: ReduceOp, keep: int, reduced: int, kind: DType) -> str:
    """As `threads_text`, of fewer rows than a thread takes at once, whose indices the host can test in debug mode."""
    return threads_text(op, keep, reduced, kind, "few_rows", 1)


def threads_text(op: ReduceOp, keep: int, reduced: int, kind: DType, name: str = "threads", together: int = 0) -> str:
    """As `columns_text`, a column per thread of a grid, which takes so many rows at once; 0: what memory needs."""
    ks, rs = [f"k{n}" for n in range(keep)], [f"r{n}" for n in range(reduced)]
    cut = f"x.shape[{keep}]"
    sizes = ", ".join(f"out.shape[{n}]" for n in range(keep + 2))
    first = ", ".join([*ks, "low", *["0"] * (reduced - 1), "c"])
    start = f"kind(x[{first}])" if op.identity is None else f"{op.identity}"
    lines = [
        f"def {op.name}_{name}(out, x):",
        f"    step = ({cut} + out.shape[{keep}] - 1) // out.shape[{keep}]",
        f"    for {', '.join([*ks, 'piece', 'c'])} in ndrange({sizes}):",
        "        low = piece * step",
        f"        acc = acc_t({start})",
    ]
    loops, pad, begin, end = _loops(keep, reduced, f"min(low + step, {cut})")
    last = rs.pop()

    def tree(rows: list[str]) -> str:
        if len(rows) == 1:
            return f"acc_t(kind(x[{', '.join([*ks, *rs, rows[0], 'c'])}]))"
        half = len(rows) // 2
        return f"({op.expression.format(tree(rows[:half]), tree(rows[half:]))})"

    together = together or THREAD_BYTES // max(kind.itemsize, 4)
    rows = [last, *(f"{last} + {n}" for n in range(1, together))]
    lines += [*loops, f"{pad}begin = {begin}", f"{pad}end = {end}"]
    if together > 1:
        lines += [
            f"{pad}for {last} in range(begin, end - {together - 1}, {together}):",
            f"{pad}    acc = {op.expression.format('acc', tree(rows))}",
        ]
    # written with max() to begin at `begin` at the least, it takes up to 1.6 times as long on sm_90
    rest = f"end - (end - begin) % {together}" if together > 1 else "begin"
    lines += [
        f"{pad}for {last} in range({rest}, end):",
        f"{pad}    acc = {op.expression.format('acc', tree([last]))}",
        f"        out[{', '.join([*ks, 'piece', 'c'])}] = acc",
    ]
    return "\n".join(lines) + "\n"


def slices_text(op: ReduceOp, keep: int, count: int, kind: DType) -> str:
    """out[k...] from x0[k...], x1[k...] and so on: the `count` slices along the reduced axis."""
    ks, names = [f"k{n}" for n in range(keep)], [f"x{n}" for n in range(count)]
    index = ", ".join(ks)
    loaded = "element({})" if op.transform is not None else "{}"
    start = [] if op.identity is None else [f"acc_t({op.identity})"]
    elements = [*start, *(f"acc_t(kind({loaded.format(f'{name}[{index}]')}))" for name in names)]
    return f"""def {op.name}_slices(out, {", ".join(names)}):
    for {index} in ndrange({", ".join(f"out.shape[{n}]" for n in range(keep))}):
        out[{index}] = {functools.reduce(op.expression.format, elements)}
"""
