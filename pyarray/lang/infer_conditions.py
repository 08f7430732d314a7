"""Infers conditions and assignments in expressions, which may happen or not: names have a value where a condition
holds, or where it doesn't, that they don't have elsewhere."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any, NamedTuple

from . import ir
from .aggregates import Aggregate, fields_of, is_aggregate, is_generator, is_records, key
from .infer_aggregates import truth
from .infer_assign import assign_name
from .infer_operators import logical, select
from .infer_scope import Scope, rule
from .infer_temporaries import expand_result, let_bind
from .infer_values import describe, is_array
from .tile_values import TileIndex, as_tile, elementwise_tile, is_tile


class Condition(NamedTuple):
    """A truth value, the names that are assigned where it holds, and those where it doesn't."""

    value: ir.Expr
    when_true: set[str]
    when_false: set[str]
    chosen: Any = None  # where it is asked for, the operand that `and` and `or` are


def infer_condition(scope: Scope, node: ast.expr, choose: bool = False) -> Condition:
    """Behind it those names are assigned that are in either case."""
    if isinstance(node, ast.BoolOp):
        return _operands(scope, node, choose)
    chosen = scope.infer(node)
    value = truth(scope, node, chosen)
    return Condition(value, set(scope.assigned), set(scope.assigned), chosen)


def _operands(scope: Scope, node: ast.BoolOp, choose: bool) -> Condition:
    """Each operand is evaluated where those before it let it."""
    is_and = isinstance(node.op, ast.And)
    result: ir.Expr | None = None
    candidates: list[Any] = []
    whole, left = set(scope.assigned), []  # where all operands are evaluated; where one of them decides
    for item in node.values:
        if isinstance(result, ir.Const) and bool(result.value) != is_and:
            break  # short-circuit at compile time: the operands after it may have type errors
        scope.assigned = set(whole)
        pending = len(scope.pending)
        value, when_true, when_false, chosen = infer_condition(scope, item, choose)
        if item is not node.values[0]:
            scope.refuse_pending(item, pending)
        if isinstance(result, ir.Const):
            candidates.clear()  # what is constant and lets this one be evaluated is never chosen
        candidates.append(chosen)
        whole, decided = (when_true, when_false) if is_and else (when_false, when_true)
        left.append(decided)
        result = value if result is None else logical(scope, node, result, value, "and" if is_and else "or")
    assert result is not None
    some = set.intersection(*left)
    scope.assigned = whole & some
    names = (whole, some) if is_and else (some, whole)
    kinds = [getattr(x, "type", None) for x in candidates]
    if not choose or all(isinstance(kind, ir.ScalarType) and kind.dtype.kind == "b" for kind in kinds):
        return Condition(result, *names, result)
    return Condition(result, *names, _choose(scope, node, candidates, is_and))


def _choose(scope: Scope, node: ast.BoolOp, candidates: list[Any], is_and: bool) -> Any:
    """The first operand that is false (`and`) or true (`or`), else the last one. Each is evaluated once."""
    *others, result = candidates
    for candidate in reversed(others):
        first, again = let_bind(scope, scope.number(node, candidate))
        then, orelse = (result, again) if is_and else (again, result)
        result = select(scope, node, scope.truth(node, first), then, orelse)
    return result


@rule(ast.BoolOp)
def _bool_op(scope: Scope, node: ast.BoolOp) -> Any:
    return infer_condition(scope, node, choose=True).chosen


@rule(ast.IfExp)
def _if_exp(scope: Scope, node: ast.IfExp) -> Any:
    condition, when_true, when_false, _ = infer_condition(scope, node.test)
    if isinstance(condition, ir.Const):
        scope.assigned = when_true if condition.value else when_false
        return scope.infer(node.body if condition.value else node.orelse)
    scope.assigned, pending = when_true, len(scope.pending)
    then = scope.infer(node.body)
    after_then, scope.assigned = scope.assigned, when_false
    orelse = scope.infer(node.orelse)
    scope.refuse_pending(node, pending)
    scope.assigned &= after_then
    then, orelse = expand_result(scope, then), expand_result(scope, orelse)
    if is_aggregate(then) or is_aggregate(orelse):
        first, again = let_bind(scope, condition)
        return _select_group(scope, node, [first, again], then, orelse)
    if any(is_tile(x) and not isinstance(x, TileIndex) for x in (then, orelse)):
        return _select_tile(scope, node, condition, then, orelse)
    return select(scope, node, condition, then, orelse)


def _select_tile(scope: Scope, node: ast.IfExp, condition: ir.Expr, then: Any, orelse: Any) -> Any:
    """A choice of tiles by a number. Both have the same axes: nothing is broadcast."""
    axes = {as_tile(scope, node, x).type.axes for x in (then, orelse)}
    if len(axes) > 1:
        what = f"a condition chooses between {describe(then)} and {describe(orelse)}"
        scope.fail(node, what, "both have the same axes; pa.where() broadcasts them")
    return elementwise_tile(scope, node, [condition, then, orelse], lambda c, a, b: select(scope, node, c, a, b))


def _select_group(scope: Scope, node: ast.IfExp, conditions: list[ir.Expr], then: Any, orelse: Any) -> Any:
    """A choice of tuples or objects, as one of each leaf: the first one evaluates the condition. It may be either
    object in Python, and so is known by the names of both."""
    then, orelse = expand_result(scope, then), expand_result(scope, orelse)
    if not is_aggregate(then) and not is_aggregate(orelse):
        if isinstance(then, ir.Static) and isinstance(orelse, ir.Static) and key(then) == key(orelse):
            return then
        condition = conditions.pop(0) if len(conditions) > 1 else conditions[0]
        return select(scope, node, condition, then, orelse)
    kinds = [x.kind if isinstance(x, Aggregate) else type(x) for x in (then, orelse)]
    names = [[name for name, _ in fields_of("", x)] if is_aggregate(x) else [] for x in (then, orelse)]
    if (
        any(is_records(x) or is_generator(x) for x in (then, orelse))
        or kinds[0] is not kinds[1]
        or names[0] != names[1]
    ):
        what = f"a condition chooses between {describe(then)} and {describe(orelse)}"
        scope.fail(node, what, "both are numbers, arrays, or tuples or objects of the same class; or write an if")
    items = [
        _select_group(scope, node, conditions, a, b)
        for (_, a), (_, b) in zip(fields_of("", then), fields_of("", orelse), strict=True)
    ]
    if not isinstance(then, Aggregate):
        return tuple(items)
    return replace(then, items=tuple(items), origins=(*then.origins, *orelse.origins), place=None)


@rule(ast.NamedExpr)
def _named_expr(scope: Scope, node: ast.NamedExpr) -> ir.Expr:
    value = scope.infer(node.value)
    if not is_array(value) and not isinstance(getattr(value, "type", None), ir.ScalarType):
        what = f"':=' assigns a number or a view of an array, got {describe(value)}"
        scope.fail(node, what, "assign it on a line of its own")
    return let(scope, node, node.target.id, value, None)


def let(scope: Scope, where: ast.AST, name: str, value: Any, body: ir.Expr | None) -> ir.Let:
    """The assignment as an expression, whose value is `body`, or else the variable."""
    (assignment,) = assign_name(scope, where, name, value)
    assert isinstance(assignment, ir.Assign)
    loc, kind = assignment.loc, assignment.value.type
    return ir.Let(loc, kind if body is None else body.type, name, assignment.value, body or ir.Local(loc, kind, name))
