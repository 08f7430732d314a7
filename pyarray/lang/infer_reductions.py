"""Infers the reductions of unordered loops: which variables carry values from one iteration to the next."""

from __future__ import annotations

import ast

from . import ir
from .collapse_loops import sole_inner_loop
from .infer_scope import Scope

_REDUCTION_OPS = ("add", "mul", "and", "or", "xor", "min", "max")


def reductions_of(
    scope: Scope, node: ast.For, body: tuple[ir.Stmt, ...], outer: set[str]
) -> tuple[tuple[str, str], ...]:
    """Variables of an unordered loop that carry a value from one iteration to the next, with the operator
    that combines them. If the body is another unordered loop, those of that loop."""
    operators: dict[str, str] = {}
    while (inner := sole_inner_loop(body)) is not None:
        body = inner.body
    for statement in ir.walk(*body):
        if isinstance(statement, ir.SetElement) and statement.name in outer:
            what = f"elements of {statement.name!r} carry values from one iteration to the next"
            scope.fail(statement.loc, what, "use range alone")
    assignments = [n for n in ir.walk(*body) if isinstance(n, (ir.Assign, ir.Let)) and n.name in outer]
    for statement in assignments:
        value = _uncast(statement.value)
        operands: tuple[ir.Expr, ...] = ()
        if isinstance(value, (ir.Binary, ir.Builtin)):
            operands = (value.a, value.b) if isinstance(value, ir.Binary) else value.args
        op = getattr(value, "op", getattr(value, "name", ""))
        reads = [n for n in ir.walk(*body) if isinstance(n, ir.Local) and n.name == statement.name]
        first = _uncast(operands[0]) if operands else None
        plain = op in _REDUCTION_OPS and len(reads) == 1 and reads[0] is first
        if not plain or statement not in body or statement.name in operators:
            what = f"{statement.name!r} is not a plain reduction, so the loop's order matters"
            scope.fail(node, what, "use range alone")
        operators[statement.name] = op
    if any(isinstance(n, (ir.Break, ir.Continue, ir.Return)) for n in ir.walk(*body)):
        scope.fail(node, "an unordered loop runs all of its iterations", "use range alone")
    return tuple(operators.items())


def _uncast(expr: ir.Expr) -> ir.Expr:
    while isinstance(expr, ir.Cast):
        expr = expr.a
    return expr
