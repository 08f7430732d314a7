"""What loops run over besides ranges: arrays, and `enumerate`, `zip` and `reversed` of arrays and ranges. Each is a
length and a function of the index, so that all of them are one counted loop."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ..dtypes import int64, uint64
from . import ir
from .infer_local_arrays import row
from .infer_scope import Scope
from .infer_temporaries import assign_temporary
from .infer_values import is_local_array
from .promotion import binary, call, cast, compare, constant

Item = Callable[[ir.Expr], Any]


@dataclass(frozen=True)
class Sequence:
    """`item` gives the item at an index, `from_end` that at an index from the end, where there is such an order.
    `is_numbered`: items are pairs of the index itself and something."""

    length: ir.Expr
    item: Item
    from_end: Item | None = None
    is_numbered: bool = False


def array_sequence(scope: Scope, node: ast.AST, array: ir.Expr, before: list[ir.Stmt], names: set[str]) -> Sequence:
    """The elements of a 1-D array, or the rows of a local array, as it is before the loop, which assigns `names`."""
    if not isinstance(array, ir.Local) or array.name.partition(".")[0].partition("[")[0] in names:
        array = assign_temporary(scope, array, before)
    loc = scope.loc(node)
    local = is_local_array(array)
    length: ir.Expr = constant(loc, array.type.shape[0]) if local else ir.Size(loc, ir.INDEX, array, 0)
    last = binary(loc, "sub", length, constant(loc, 1))
    return Sequence(
        length,
        lambda index: row(scope, node, array, index),
        lambda index: row(scope, node, array, binary(loc, "sub", last, index)),
    )


def range_sequence(
    scope: Scope, node: ast.AST, range_: ir.Range, before: list[ir.Stmt], names: set[str]
) -> Sequence:  # fmt: skip
    """The numbers of a range."""
    loc = scope.loc(node)
    step = constant(loc, 1) if range_.step is None else range_.step
    if not isinstance(step, ir.Const):
        what = "the step of a range in enumerate, zip or reversed is a constant"
        scope.fail(node, what, "write range(n), and compute the number from its variable")
    start = constant(loc, 0) if range_.start is None else range_.start
    assert range_.stop is not None
    start, stop = (x if _is_fixed(x, names) else assign_temporary(scope, x, before) for x in (start, range_.stop))
    if isinstance(start, ir.Const) and start.value == 0 and step.value == 1:
        length, last = stop, binary(loc, "sub", stop, constant(loc, 1))
    else:
        length, last = length_and_last(loc, start, stop, step.value)

    def from_first(index: ir.Expr) -> ir.Expr:
        return binary(loc, "add", start, binary(loc, "mul", index, step))

    def from_last(index: ir.Expr) -> ir.Expr:
        return binary(loc, "sub", last, binary(loc, "mul", index, step))

    if step.value == 1:
        return Sequence(length, lambda i: _sum(start, i), lambda i: binary(loc, "sub", last, i))
    return Sequence(length, from_first, from_last)


def _sum(start: ir.Expr, index: ir.Expr) -> ir.Expr:
    is_zero = isinstance(start, ir.Const) and start.value == 0
    return index if is_zero else binary(index.loc, "add", start, index)


def length_and_last(loc: ir.Loc, start: ir.Expr, stop: ir.Expr, step: int) -> tuple[ir.Expr, ir.Expr]:
    """How many numbers a range has, 2**63 - 1 at most, and its last one, by differences of 64 bits without sign: no
    number in between is too large for them."""

    low, high = (start, stop) if step > 0 else (stop, start)
    one, size = (cast(constant(loc, n), uint64) for n in (1, abs(step)))
    span = binary(loc, "sub", binary(loc, "sub", cast(high, uint64), cast(low, uint64)), one)
    steps = binary(loc, "floordiv", span, size)
    count = ir.Convert(loc, ir.INDEX, binary(loc, "add", steps, one), "saturate")
    holds = compare(loc, "lt", low, high)
    if isinstance(holds, ir.Const):
        if not holds.value:
            return constant(loc, 0), start
        ends: Any = (low, high, start)
        lowest, highest, first = (x.value for x in ends)
        number = (highest - lowest - 1) // abs(step) + 1
        return constant(loc, min(number, (1 << 63) - 1)), constant(loc, first + (number - 1) * step)
    length = ir.Select(loc, ir.INDEX, holds, count, cast(constant(loc, 0), int64, True))
    walked = binary(loc, "mul", cast(steps, int64, True), constant(loc, step))
    return length, binary(loc, "add", start, walked)


def _is_fixed(expr: ir.Expr, names: set[str]) -> bool:
    """Whether a bound means the same in each iteration of a loop that assigns `names`."""
    nodes = list(ir.walk(expr))
    plain = all(isinstance(n, (ir.Local, ir.Const, ir.Size, ir.Cast, ir.Binary)) for n in nodes)
    used = {n.name.partition(".")[0].partition("[")[0] for n in nodes if isinstance(n, ir.Local)}
    return plain and not used & names and not any(isinstance(n, ir.Local) and n.name.startswith(".") for n in nodes)


def sequence_of(
    scope: Scope, node: ast.Call, function: Any, inner: Callable[[ast.expr], Sequence]
) -> Sequence | None:  # fmt: skip
    """`enumerate(x)`, `zip(x, y)` and `reversed(x)`; None of other calls. `inner` gives their arguments."""
    if function is enumerate:
        return _enumerate(scope, node, inner)
    if function is zip:
        return _zip(scope, node, inner)
    if function is not reversed:
        return None
    if len(node.args) != 1 or node.keywords:
        scope.fail(node, "reversed() takes a range or a 1-D array")
    sequence = inner(node.args[0])
    if sequence.from_end is None:
        scope.fail(node, "reversed() takes a range or a 1-D array", "write enumerate(reversed(v))")
    return Sequence(sequence.length, sequence.from_end)


def _enumerate(scope: Scope, node: ast.Call, inner: Callable[[ast.expr], Sequence]) -> Sequence:
    keywords = {k.arg: k.value for k in node.keywords}
    if not 1 <= len(node.args) + len(keywords) <= 2 or not node.args or keywords.keys() - {"start"}:
        scope.fail(node, "enumerate() takes what to count, and the first number", "write enumerate(v, 1)")
    sequence, loc = inner(node.args[0]), scope.loc(node)
    start_node = node.args[1] if len(node.args) == 2 else keywords.get("start")
    start = constant(loc, 0) if start_node is None else scope.integer(node, scope.infer(start_node), "a first number")
    if not isinstance(start, ir.Const):
        scope.fail(node, "the first number of enumerate() is a constant", "add to the index in the loop")
    numbered = start.value == 0
    return Sequence(sequence.length, lambda i: (_sum(start, i), sequence.item(i)), None, numbered)


def _zip(scope: Scope, node: ast.Call, inner: Callable[[ast.expr], Sequence]) -> Sequence:
    if not node.args or node.keywords:
        scope.fail(node, "zip() takes arrays and ranges", "zip(v, w) ends with the shorter one; strict has no meaning")
    sequences, loc = [inner(x) for x in node.args], scope.loc(node)
    length = reduce(lambda a, b: call(loc, "min", [a, b]), (s.length for s in sequences))
    return Sequence(length, lambda i: tuple(s.item(i) for s in sequences))
