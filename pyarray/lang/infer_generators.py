"""Infers `pa.rng(seed, i)` and its draws. Its state is three variables, `rng.seed`, `rng.sequence` and `rng.counter`;
a draw is a function of them, and counts the last one up in the same expression."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..dtypes import uint64
from ..errors import with_article
from . import ir
from .aggregates import Aggregate, is_aggregate, is_generator
from .infer_counters import counted_variable, variable_of
from .infer_invoke import invoke
from .infer_scope import Scope
from .infer_temporaries import let_bind, with_let_bound
from .promotion import binary, cast, constant

_NAMES = ("seed", "sequence", "counter")
_ADVICE = "its draws count up its own variable: pass it to a function by its name, or make another one"


@dataclass(frozen=True, eq=False)
class Draw:
    """A method of a generator, before its call."""

    source: Any
    counts: bool
    owner: Aggregate


def make_generator(scope: Scope, node: ast.Call, function: Any, args: list[Any], keywords: dict[str, Any]) -> Aggregate:
    try:
        bound = inspect.signature(function).bind(*args, **keywords)
    except TypeError as error:
        scope.fail(node, f"rng(): {error}", "write pa.rng(seed, i)")
    zero = constant(scope.loc(node), 0)
    values = [bound.arguments.get(name, zero) for name in ("seed", "sequence", "offset")]
    items = tuple(
        _unsigned(scope, node, name, x) for name, x in zip(("seed", "sequence", "offset"), values, strict=True)
    )
    return Aggregate(function.__pyarray_rng__, _NAMES, items)


def _unsigned(scope: Scope, node: ast.AST, name: str, value: Any) -> ir.Expr:
    value = scope.number(node, value)
    if isinstance(value, ir.Const) and type(value.value) is int:
        return ir.Const(value.loc, ir.ScalarType(uint64), value.value & ((1 << 64) - 1))
    if value.type.dtype.kind not in "iu":
        what = f"the {name} of rng() is an integer, got {with_article(value.type)}"
        scope.fail(node, what, "convert it with int(...)")
    return cast(value, uint64)


def refuse_generator(scope: Scope, where: ast.AST, value: Any, what: str) -> None:
    """Refuses to copy a generator, or to hand it on: Python would hand on the generator itself."""
    items = value.items if isinstance(value, Aggregate) else value if is_aggregate(value) else ()
    if is_generator(value):
        if what == "kept" and variable_of(scope, value) is None:
            return  # it has just been made
        scope.fail(where, f"a random number generator can't be {what}", _ADVICE)
    for item in items:
        refuse_generator(scope, where, item, "a part of another value" if what == "kept" else what)


def refuse_parameters(scope: Scope, node: ast.AST) -> None:
    """Refuses generators of Python's among a kernel's arguments, whose counters no launch would set."""
    for name, value in scope.params.items():
        if any(map(is_generator, _parts(value))):
            scope.fail(node, f"{name!r} is a generator of Python's", "pass its seed, and write rng = pa.rng(seed, i)")


def _parts(value: Any) -> Iterator[Any]:
    """The value and its parts of all depths."""
    yield value
    for item in value.items if isinstance(value, Aggregate) else value if isinstance(value, tuple) else ():
        yield from _parts(item)


def draw(scope: Scope, node: ast.Call, method: Draw, args: list[Any], keywords: dict[str, Any]) -> ir.Expr:
    """A draw; with the counter behind it assigned, where the generator is a variable."""
    variable = counted_variable(scope, node, method.owner)

    def made(*values: Any) -> ir.Expr:  # the counter is read behind the arguments, which may draw, too
        named = dict(zip(keywords, values[len(args) :], strict=True))
        return _drawn(scope, node, method, variable, list(values[: len(args)]), named)

    result: ir.Expr = with_let_bound(scope, [*args, *keywords.values()], made)
    return result


def _drawn(
    scope: Scope, node: ast.Call, method: Draw, variable: ir.Local | None, args: list[Any], keywords: dict[str, Any]
) -> ir.Expr:
    loc = scope.loc(node)
    value: ir.Expr = invoke(scope, node, method.source, [*method.owner.items, *args], keywords)
    counter: ir.Expr = method.owner.items[2]
    if method.counts:
        first, again = let_bind(scope, value)
        if variable is None:
            return ir.Item(loc, value.type.items[0], value, 0)
        used: ir.Expr = ir.Item(loc, value.type.items[1], first, 1)
        result: ir.Expr = ir.Item(loc, value.type.items[0], again, 0)
        return ir.Let(loc, result.type, variable.name, _next(loc, used), result)
    if variable is None:
        return value
    # the result is held while the counter is counted up
    name, result = _held(scope, value)
    return ir.Let(loc, value.type, name, value, ir.Let(loc, value.type, variable.name, _next(loc, counter), result))


def _held(scope: Scope, value: ir.Expr) -> tuple[str, ir.Local]:
    first, again = let_bind(scope, value)
    assert isinstance(first, ir.Let)
    assert isinstance(again, ir.Local)
    return first.name, again


def _next(loc: ir.Loc, counter: ir.Expr) -> ir.Expr:
    return binary(loc, "add", counter, ir.Const(loc, ir.ScalarType(uint64), 1))
