"""Infers calls of `@pa.func` functions with tiles: the function's statements stand in the place of the call.

A tile is where the threads of a block have it, so it can't be passed as a number is. What an error reports of the
function is its own line, and the calls around it (`Loc.caller`)."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from . import ir
from .aggregates import is_aggregate, transform
from .infer_invoke import argument_of, default_of
from .infer_scope import Scope
from .infer_temporaries import assign_temporary, new_temporary
from .infer_tile_loops import is_tiles
from .parse import FunctionSource
from .tile_values import (
    Done,
    TileIndex,
    copy_tile,
    is_axis_variable,
    is_tile,
)

_FINAL_RETURN = "a function of tiles returns at its end alone"


def inline(scope: Scope, node: ast.Call, source: FunctionSource, args: list[Any], keywords: dict[str, Any]) -> Any:
    """What the function returns, after its statements, which are pending."""
    if any(active is source for active in scope.instances.active):
        scope.fail(node, f"{source.name!r} calls itself", "write a loop: GPUs have no stack for recursion")
    if not isinstance(source.node, ast.FunctionDef):
        scope.fail(node, "a lambda takes no tiles here", "write a function with @pa.func")
    try:
        bound = source.signature.bind(*args, **keywords).arguments
    except TypeError as error:
        scope.fail(node, f"{source.name}(): {error}")
    inner = Scope(scope.instances, source, {}, False)
    inner.inlined, inner.before_parallel, inner.loop_depth = f"{scope.inlined}{_place(scope, node)}f", set(), 1
    names: dict[str, str] = {}  # variables of the function → those that stand for them here
    for name in source.signature.parameters:
        value = bound[name] if name in bound else default_of(scope, node, source, name)
        _bind(scope, node, inner, name, value, names)
    scope.instances.active.append(source)
    body: tuple[ir.Stmt, ...] = ()
    while inner.changed:
        inner.returned = None
        body = inner.infer_again()
    scope.instances.active.pop()
    for name, kind in inner.types.items():
        if is_axis_variable(name):
            scope.types[name] = kind
        elif name not in names:
            names[name] = new_temporary(scope, kind)
    change = _renamed(names, source.name, scope.loc(node))
    scope.pending += [ir.rewrite(s, change) for s in body]
    if node is scope.statement:
        return Done()
    if inner.returned is None:
        scope.fail(node, f"{source.name}() returns nothing", "write the call as a statement, or return a tile")
    return _returned(inner.returned, change, scope, node)


def uses_tiles(source: FunctionSource, seen: frozenset[Any] = frozenset()) -> bool:
    """Whether a function, or one that it calls by its name, has loops over tiles."""
    function: Any = source.function
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    known = dict[str, Any]()
    for name, cell in cells:
        with contextlib.suppress(ValueError):  # it has no value yet
            known[name] = cell.cell_contents
    for n in ast.walk(source.node):
        if not isinstance(n, ast.Call) or not isinstance(n.func, (ast.Name, ast.Attribute)):
            continue
        if isinstance(n.func, ast.Attribute):
            if n.func.attr == "tiles":
                return True
            continue
        callee = known.get(n.func.id, function.__globals__.get(n.func.id))
        if is_tiles(callee):
            return True
        called = getattr(callee, "__pyarray_func__", None)
        if called is not None and called not in seen and uses_tiles(called, seen | {called}):
            return True
    return False


def _place(scope: Scope, node: ast.AST) -> str:
    return f"{node.lineno - scope.source.node.lineno}_{node.col_offset}"  # type: ignore[attr-defined]


def _bind(scope: Scope, node: ast.Call, inner: Scope, name: str, value: Any, names: dict[str, str]) -> None:
    """Gives a parameter its value: variables of the caller, or copies where the function assigns it."""
    if isinstance(value, TileIndex):
        inner.given_indices[name] = value
        return
    if is_tile(value):
        local = value
        if not isinstance(value, ir.Local) or name in inner.source.stored:
            local, copied = copy_tile(scope, node, value)
            scope.pending += copied
        inner.params[name], names[name] = local.type, local.name
        return
    value = argument_of(scope, node, inner.source, name, value)

    def bound(path: str, leaf: Any) -> Any:
        if isinstance(leaf, ir.Static):
            return leaf
        if isinstance(leaf, ir.Const) and leaf.type.weak and type(leaf.value) in (bool, int, float):
            return ir.Static(leaf.value)
        if isinstance(leaf, ir.Local) and not inner.source.stored & {name, path}:
            names[path] = leaf.name
            return leaf.type
        names[path] = new_temporary(scope, leaf.type)
        scope.pending.append(ir.Assign(leaf.loc, names[path], leaf))
        return leaf.type

    inner.params[name] = transform(name, value, bound) if is_aggregate(value) else bound(name, value)


def _renamed(names: dict[str, str], function: str, call: ir.Loc) -> Callable[[Any], Any]:
    """The change of a node that makes it one of the caller's."""

    def moved(loc: ir.Loc) -> ir.Loc:
        if loc.caller is None:
            return replace(loc, caller=(function, call))
        return replace(loc, caller=(loc.caller[0], moved(loc.caller[1])))

    def change(node: Any) -> Any:
        if not isinstance(node, ir.Node):
            return node
        updates: dict[str, Any] = {"loc": moved(node.loc)}
        if isinstance(node, (ir.Local, ir.Assign, ir.SetElement, ir.Let)):
            updates["name"] = names.get(node.name, node.name)
        if isinstance(node, ir.For):
            updates["variables"] = tuple(names.get(n, n) for n in node.variables)
            updates["reductions"] = tuple((names.get(n, n), op) for n, op in node.reductions)
        return replace(node, **updates)

    return change


def return_tiles(scope: Scope, node: ast.Return) -> list[ir.Stmt]:
    """`return` in an inlined function: its value is kept in variables."""
    if node is not scope.source.node.body[-1]:  # type: ignore[index]
        scope.fail(node, _FINAL_RETURN, "assign the result in both branches, and return it behind them")
    if node.value is None:
        return []
    scope.returned = _kept(scope, node, scope.infer(node.value))
    return []


def _kept(scope: Scope, node: ast.AST, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_kept(scope, node, item) for item in value)
    if isinstance(value, TileIndex) or not is_tile(value):
        number = value if isinstance(value, TileIndex) else scope.number(node, value)
        return number if isinstance(number, (TileIndex, ir.Const)) else assign_temporary(scope, number, scope.pending)
    local, copied = copy_tile(scope, node, value)
    scope.pending += copied
    return local


def _returned(value: Any, change: Callable[[Any], Any], scope: Scope, node: ast.AST) -> Any:
    if isinstance(value, tuple):
        return tuple(_returned(item, change, scope, node) for item in value)
    if isinstance(value, ir.Node):
        return replace(ir.rewrite(value, change), loc=scope.loc(node))
    return value
