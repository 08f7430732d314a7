"""Passes `pa.rng` generators to functions. Python hands on the generator itself, and a kernel its three numbers: so a
function returns the counters of its generators behind what it returns, and a call assigns them to its variables."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..dtypes import uint64
from . import ir
from .aggregates import Aggregate, counters_of, is_generator
from .infer_scope import Scope
from .infer_temporaries import build_result, let_bind, names_of, nest_lets, new_temporary, result_item

_COUNTER = ir.ScalarType(uint64)


def variable_of(scope: Scope, owner: Aggregate) -> ir.Local | None:
    """The variable that counts a generator's draws; None of one that has no name."""
    counter = owner.items[2]
    root = counter.name.rpartition(".")[0] if isinstance(counter, ir.Local) else None
    named = root is not None and (root in scope.structures or is_generator(scope.params.get(root)))
    return counter if named else None


def counted_variable(scope: Scope, node: ast.AST, owner: Aggregate) -> ir.Local | None:
    """`variable_of` a generator that is drawn from here."""
    variable = variable_of(scope, owner)
    if variable is not None and scope.before_parallel is not None:
        root = variable.name.rpartition(".")[0]
        if root in scope.before_parallel:
            what = f"{root!r} is made before the parallel loop, whose iterations run at the same time"
            scope.fail(node, what, "make one in each iteration: rng = pa.rng(seed, i)")
    return variable


def take_counters(scope: Scope, node: ast.AST, bound: dict[str, Any]) -> tuple[dict[str, Any], dict[str, ir.Local]]:
    """The arguments of a call with a constant in place of the counter of each generator that is a variable, and
    these variables by the names of the counters' parameters: the call reads them behind all other arguments, which
    may draw, too."""
    variables: dict[str, ir.Local] = {}
    for name, value in bound.items():
        variable = counted_variable(scope, node, value) if is_generator(value) else None
        if variable is None:
            continue
        if variable.name in {v.name for v in variables.values()}:
            what = f"{variable.name.rpartition('.')[0]!r} is passed twice in one call"
            scope.fail(node, what, "both parameters would be one generator: pass it once, or make another one")
        variables[f"{name}.counter"] = variable
        zero = ir.Const(scope.loc(node), _COUNTER, 0)
        bound = {**bound, name: replace(value, items=(*value.items[:2], zero))}
    return bound, variables


def counting_call(
    scope: Scope, node: ast.AST, callee: ir.Function, passed: list[ir.Expr], variables: dict[str, ir.Local]
) -> Any:
    """A call of a function that takes generators: what it returns, with the counters assigned behind it. The value
    of one that returns nothing is of type None."""
    loc, lets = scope.loc(node), list[tuple[str, ir.Expr]]()
    changed = names_of(ir.Let, passed)
    if changed & {v.name for v in variables.values()}:
        passed = [_bound(scope, x, changed, lets) for x in passed]
    names = [name for name, _ in callee.params]
    passed = [variables.get(name, x) for name, x in zip(names, passed, strict=True)]
    call = nest_lets(ir.Invoke(loc, callee.result, callee.symbol, tuple(passed)), lets)
    first, again = let_bind(scope, call)
    counters = [name for name in names if name in scope.instances.counters[callee.symbol]]
    count = len(callee.result.items) - len(counters)
    items = [result_item(again, k) for k in range(len(callee.result.items))]
    # the first item evaluates the call, and sets the variables
    sets = [(variables[name].name, items[count + k]) for k, name in enumerate(counters) if name in variables]
    value: ir.Expr = nest_lets(items[0], sets)
    assert isinstance(first, ir.Let)
    value = ir.Let(loc, value.type, first.name, first.value, value)
    if callee.symbol in scope.instances.results:
        return build_result(scope, callee.symbol, passed, [value, *items[1:count]])
    return value if count else replace(value, type=None)


def _bound(scope: Scope, value: ir.Expr, changed: set[str], lets: list[tuple[str, ir.Expr]]) -> ir.Expr:
    """The argument, evaluated into a temporary before the call."""
    if isinstance(value, ir.Const) or (isinstance(value, ir.Local) and value.name not in changed):
        return value
    lets.append((new_temporary(scope, value.type), value))
    return ir.Local(value.loc, value.type, lets[-1][0])


def discarded(value: Any) -> Any:
    """A call that is a statement. One of type None evaluates to a counter."""
    if isinstance(value, ir.Let) and value.type is None:
        return replace(value, type=value.body.type)
    return value


def return_counters(scope: Scope, node: ast.AST, body: tuple[ir.Stmt, ...], ends: bool) -> tuple[ir.Stmt, ...]:
    """The body of a function that takes generators, whose returns give their counters, too. `ends`: whether its end
    is never reached."""
    names = () if scope.is_kernel else tuple(counters_of(scope.params.items()))
    if not names:
        return body

    def packed(loc: ir.Loc, parts: Iterable[ir.Expr]) -> ir.Return:
        items = (*parts, *(ir.Local(loc, _COUNTER, name) for name in names))
        return ir.Return(loc, ir.Pack(loc, ir.TupleType(tuple(x.type for x in items)), items))

    def change(s: Any) -> Any:
        if not isinstance(s, ir.Return):
            return s
        return packed(s.loc, s.value.items if isinstance(s.value, ir.Pack) else () if s.value is None else (s.value,))

    body = tuple(ir.rewrite(s, change) for s in body)
    return body if ends else (*body, packed(scope.loc(node), ()))
