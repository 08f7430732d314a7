"""Infers `match` over constants: an `if` for each case, in order. What is compared may be a number, a tuple, or an
object that is known when the kernel is compiled, as a text or a member of an Enum is."""

from __future__ import annotations

import ast
from typing import Any

from . import ir
from .aggregates import as_tuple, is_aggregate, transform
from .infer_assign import assign_name
from .infer_conditions import Condition, infer_condition, let
from .infer_flow import branches, infer_block
from .infer_operators import compare_objects, logical
from .infer_scope import Scope, rule
from .infer_temporaries import assign_temporary, expand_result
from .infer_values import describe, is_array
from .promotion import compare, constant

_ADVICE = "match constants, dotted names, _, names and tuples of these"
_Captures = list[tuple[ast.pattern, str, Any]]


@rule(ast.Match)
def _match(scope: Scope, node: ast.Match) -> list[ir.Stmt]:
    before: list[ir.Stmt] = []

    def held(_: str, part: Any) -> Any:
        return part if isinstance(part, ir.Static) else assign_temporary(scope, part, before)

    subject = expand_result(scope, scope.infer(node.subject))
    if getattr(subject, "type", subject) is None:
        scope.fail(node.subject, f"{describe(subject)} can't be matched", "assign what a call returns first")
    subject = transform("", subject, held)
    return [*before, *_cases(scope, subject, node.cases)]


def _cases(scope: Scope, subject: Any, cases: list[ast.match_case]) -> list[ir.Stmt]:
    if not cases:
        return []
    case, *rest = cases
    captures: _Captures = []
    before = set(scope.assigned)
    fits = _fits(scope, case.pattern, subject, captures)
    if captures and case.guard is None and isinstance(fits, ir.Const) and fits.value:
        names = [s for where, name, value in captures for s in assign_name(scope, where, name, value)]
        return [*names, *infer_block(scope, case.body)]
    condition = _condition(scope, case, fits, captures, before)
    statements = branches(
        scope, case.pattern, condition,
        lambda: infer_block(scope, case.body), lambda: tuple(_cases(scope, subject, rest)),
    )  # fmt: skip
    return statements


def _condition(scope: Scope, case: ast.match_case, result: ir.Expr, captures: _Captures, before: set[str]) -> Condition:
    """Whether a case is taken, whose pattern fits if `result`. Names are bound then, before the guard is evaluated."""
    if isinstance(result, ir.Const) and not result.value:
        return Condition(result, before, before)
    for where, name, value in captures:
        true = constant(scope.loc(where), True)
        result = logical(scope, where, result, let(scope, where, name, value, true), "and")
    when_true = set(scope.assigned)
    if case.guard is not None:
        guard = infer_condition(scope, case.guard)
        result, when_true = logical(scope, case.guard, result, guard.value, "and"), guard.when_true
    return Condition(result, when_true, before)


def _fits(scope: Scope, pattern: ast.pattern, subject: Any, captures: _Captures) -> ir.Expr:
    loc = scope.loc(pattern)
    if isinstance(pattern, ast.MatchValue):
        return _equals(scope, pattern, subject, scope.infer(pattern.value))
    if isinstance(pattern, ast.MatchSingleton):
        if pattern.value is None:
            return constant(loc, isinstance(subject, ir.Static) and subject.value is None)
        kind = getattr(subject, "type", None)
        is_bool = isinstance(kind, ir.ScalarType) and kind.dtype.kind == "b"
        return _equals(scope, pattern, subject, constant(loc, pattern.value)) if is_bool else constant(loc, False)
    if isinstance(pattern, ast.MatchOr):
        inner: _Captures = []
        result: ir.Expr = constant(loc, False)
        for alternative in pattern.patterns:
            result = logical(scope, pattern, result, _fits(scope, alternative, subject, inner), "or")
        if inner:
            scope.fail(pattern, "names in alternatives of a pattern are not part of the kernel language", _ADVICE)
        return result
    if isinstance(pattern, ast.MatchAs):
        fits = constant(loc, True) if pattern.pattern is None else _fits(scope, pattern.pattern, subject, captures)
        if pattern.name is not None:
            if is_aggregate(subject) or isinstance(subject, ir.Static):
                scope.fail(pattern, f"{pattern.name!r} can't hold {describe(subject)}", _ADVICE)
            captures.append((pattern, pattern.name, subject))
        return fits
    if isinstance(pattern, ast.MatchSequence) and not any(isinstance(p, ast.MatchStar) for p in pattern.patterns):
        return _sequence_fits(scope, pattern, subject, captures)
    scope.fail(pattern, "this pattern is not part of the kernel language", _ADVICE)


def _sequence_fits(scope: Scope, pattern: ast.MatchSequence, subject: Any, captures: _Captures) -> ir.Expr:
    items, loc = as_tuple(subject), scope.loc(pattern)
    if is_array(subject):
        scope.fail(pattern, "an array can't be matched", "match its elements: match (v[0], v[1]):")
    result: ir.Expr = constant(loc, items is not None and len(items) == len(pattern.patterns))
    if items is None or len(items) != len(pattern.patterns):
        return result
    for inner, item in zip(pattern.patterns, items, strict=True):
        result = logical(scope, pattern, result, _fits(scope, inner, item, captures), "and")
    return result


def _equals(scope: Scope, where: ast.pattern, subject: Any, value: Any) -> ir.Expr:
    loc = scope.loc(where)
    if isinstance(subject, ir.Static) and isinstance(value, ir.Static):
        return compare_objects(scope, where, ast.Eq(), subject, value)
    if isinstance(subject, ir.Static) or isinstance(value, ir.Static) or is_aggregate(subject):
        return constant(loc, False)
    return scope.apply(where, compare, loc, "eq", scope.number(where, subject), scope.number(where, value))
