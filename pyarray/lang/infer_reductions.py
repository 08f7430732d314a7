"""Infers reductions: of parallel loops what `parallel_reductions` finds, or the error of what is none; of unordered
loops which variables carry values from one iteration to the next."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import NoReturn

from . import ir
from .collapse_loops import sole_inner_loop
from .infer_assign import refuse_assigned
from .infer_scope import Scope
from .infer_temporaries import assign_temporary, new_temporary
from .parallel_reductions import Element, around, find_reductions, reduced_elements, uncast, update_operator
from .promotion import compare, constant
from .summaries import assigned_in, names_in


def reducing_loop(scope: Scope, loop: ir.For) -> list[ir.Stmt]:
    """The parallel loop with its reductions, and the statements around it that those into elements need."""

    def new_name(kind: ir.ScalarType) -> str:
        return new_temporary(scope, kind)

    body, elements = loop.body, list[Element]()
    if _has_constant_steps(loop):
        body, elements = reduced_elements(loop.body, loop.variables, new_name)
    names = {*scope.reduced, *(name for e in elements for name in (e.name, e.reached) if name)}
    if not names:
        return [loop]
    found = find_reductions(body, names)
    if isinstance(found, str):
        if found not in scope.reduced:
            return [loop]  # `races` says what is wrong
        if scope.changed:
            return [loop]  # casts to types that aren't the last ones
        if found != find_reductions(body, names, any_cast=True):
            _refuse_cast(scope, scope.reduced[found], found)
        refuse_assigned(scope, scope.reduced[found], found)
    if not _has_constant_steps(loop):
        what = "the step of a parallel loop that reduces is a constant"
        scope.fail(loop.loc, what, "write range(n), and compute the number from its variable")
    made = replace(loop, body=body, reductions=found.entries())
    if not elements:
        return [made]
    # the bounds are asked behind the loop, too, which may have changed what they read
    bounds: list[ir.Stmt] = []
    changing = assigned_in(*body)
    made = replace(made, ranges=tuple(_fixed_bounds(scope, r, changing, bounds) for r in made.ranges))
    before, after = around(made, elements, _runs(made))
    return [*bounds, *before, made, *after]


def _refuse_cast(scope: Scope, where: ast.AST, name: str) -> NoReturn:
    what = f"{name!r} is cast at each update, and what rounds or wraps at each step can't be reduced in parts"
    advice = "before the loop give it a type that holds its updates, as in s = pa.float64(0); cast the result behind it"
    scope.fail(where, what, advice)


def _fixed_bounds(scope: Scope, range_: ir.Range, changing: set[str], into: list[ir.Stmt]) -> ir.Range:
    """The range, with temporaries for those bounds that may be others behind the loop."""
    plain = (ir.Local, ir.Const, ir.Size, ir.Cast, ir.Unary, ir.Binary, ir.Builtin)

    def fixed(x: ir.Expr | None) -> ir.Expr | None:
        if x is None or (all(isinstance(n, plain) for n in ir.walk(x)) and not names_in(x) & changing):
            return x
        return assign_temporary(scope, x, into)

    return ir.Range(fixed(range_.start), fixed(range_.stop), range_.step)


def _has_constant_steps(loop: ir.For) -> bool:
    return all(r.step is None or isinstance(r.step, ir.Const) for r in loop.ranges)


def _runs(loop: ir.For) -> ir.Expr:
    """Whether a loop has an iteration."""
    loc, result = loop.loc, None
    for r in loop.ranges:
        start, stop = constant(loc, 0) if r.start is None else r.start, r.stop
        assert stop is not None
        down = isinstance(r.step, ir.Const) and r.step.value < 0
        runs = compare(loc, "gt" if down else "lt", start, stop)
        result = runs if result is None else ir.Logic(loc, ir.BOOL, "and", result, runs)
    assert result is not None
    return result


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
        value = uncast(statement.value)
        operands = value.args if isinstance(value, ir.Builtin) else ir.children(value)
        op = getattr(value, "op", getattr(value, "name", ""))
        reads = [n for n in ir.walk(*body) if isinstance(n, ir.Local) and n.name == statement.name]
        plain = isinstance(value, (ir.Binary, ir.Builtin)) and op == update_operator(statement.value, statement.name)
        is_first = plain and len(reads) == 1 and reads[0] is uncast(operands[0])
        if not is_first or statement not in body or statement.name in operators:
            if scope.changed:
                return ()  # casts to types that aren't the last ones
            what = f"{statement.name!r} is not a plain reduction, so the loop's order matters"
            scope.fail(node, what, "use range alone")
        operators[statement.name] = op
    if any(isinstance(n, (ir.Break, ir.Continue, ir.Return)) for n in ir.walk(*body)):
        scope.fail(node, "an unordered loop runs all of its iterations", "use range alone")
    return tuple(operators.items())
