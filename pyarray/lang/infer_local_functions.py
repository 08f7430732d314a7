"""Functions and lambdas that a kernel defines. What they use of the variables around them is passed at each call, as
further parameters: Python, too, sees these variables as they are then, since nothing but the outer function sets
them."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from . import ir
from .aggregates import Aggregate, is_aggregate
from .infer_generators import refuse_generator
from .infer_invoke import invoke
from .infer_scope import Scope
from .infer_values import describe
from .parse import FunctionSource, own_nodes, source_of, stored_name

_Node = ast.FunctionDef | ast.Lambda


class LocalFunction:
    """Base of the classes whose values are local functions, one class for each: `Aggregate.kind`."""

    definition: Definition


@dataclass(frozen=True, eq=False)
class Definition:
    """A function that is defined in another one; `used` are the variables around it that it reads."""

    source: FunctionSource
    used: tuple[str, ...]
    kind: type


def define(scope: Scope, node: _Node, name: str) -> None:
    """`def name(...)` or `name = lambda ...` inside a function."""
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        scope.fail(node.decorator_list[0], "a function inside a kernel has no decorator", "it needs no @pa.func")
    bind(scope, node, name, definition_of(scope, node))


def bind(scope: Scope, where: ast.AST, name: str, definition: Definition) -> None:
    """Give a name to a local function, the only one that it ever has."""
    taken = name in scope.types or name in scope.params or name in scope.structures
    if taken or scope.functions.get(name, definition) is not definition:
        scope.fail(where, f"{name!r} is a function here and something else elsewhere", "use another name")
    scope.functions[name] = definition
    scope.assigned.add(name)


def definition_of(scope: Scope, node: _Node) -> Definition:
    known = scope.instances.local_functions
    if node not in known:
        used = _used_variables(scope, node)
        source = scope.source.nested(node, _signature(scope, node, used))
        kind = type(f"function {source.name!r}", (LocalFunction,), {})
        known[node] = kind.definition = Definition(source, used, kind)  # type: ignore[attr-defined]
    return known[node]  # type: ignore[no-any-return]


def _free_names(node: _Node) -> set[str]:
    """Names that a function reads and doesn't set, and so those of functions in it."""
    arguments = node.args
    parameters = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    read, stored = set[str](), set[str]()
    for inner in (n for statement in _body(node) for n in _nodes_of(statement)):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            read.add(inner.id)
        elif (name := stored_name(inner)) is not None:
            stored.add(name)
        if isinstance(inner, (ast.FunctionDef, ast.Lambda)):
            read |= _free_names(inner)
    return read - stored - parameters


def _body(node: _Node) -> list[Any]:
    return node.body if isinstance(node, ast.FunctionDef) else [node.body]


def _nodes_of(statement: ast.AST) -> list[ast.AST]:
    """The nodes of a statement but for the bodies of functions in it, which may be the statement."""
    return [statement] if isinstance(statement, (ast.FunctionDef, ast.Lambda)) else list(own_nodes(statement))


def _used_variables(scope: Scope, node: _Node) -> tuple[str, ...]:
    return tuple(sorted(n for n in _free_names(node) if n in scope.source.stored or n in scope.params))


def _signature(scope: Scope, node: _Node, used: tuple[str, ...]) -> inspect.Signature:
    """The function's parameters, and `used` as keyword-only ones."""
    arguments, empty = node.args, inspect.Parameter.empty
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
    kinds = [inspect.Parameter.POSITIONAL_ONLY] * len(arguments.posonlyargs)
    kinds += [inspect.Parameter.POSITIONAL_OR_KEYWORD] * len(arguments.args)
    kinds += [inspect.Parameter.KEYWORD_ONLY] * len(arguments.kwonlyargs)
    parameters = []
    defaults += arguments.kw_defaults
    for a, d, kind in zip([*positional, *arguments.kwonlyargs], defaults, kinds, strict=True):
        annotation = empty if a.annotation is None else scope.infer(a.annotation).value
        default = empty if d is None else _default(scope, d)
        parameters.append(inspect.Parameter(a.arg, kind, default=default, annotation=annotation))
    hidden = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in used]
    return inspect.Signature([*parameters, *hidden])


def _default(scope: Scope, node: ast.expr) -> Any:
    value = scope.infer(node)
    if not isinstance(value, (ir.Const, ir.Static)):
        what = f"a default of a function inside a kernel is a constant, got {describe(value)}"
        scope.fail(node, what, "leave it out: the function sees the variables around it")
    return value.value


def local_function(scope: Scope, where: ast.AST, definition: Definition, around: tuple[Definition, ...] = ()) -> Any:
    """The function as a value: with the variables that it uses, as they are now. `around`: functions that use it."""
    if definition in around:
        scope.fail(where, f"{definition.source.name!r} calls itself", "write a loop: GPUs have no stack for recursion")
    around = (*around, definition)
    items: list[Any] = []
    for name in definition.used:
        if name in scope.functions:
            items.append(local_function(scope, where, scope.functions[name], around))
        elif isinstance(scope.params.get(name), ir.Static):
            items.append(scope.params[name])
        else:
            value = scope.infer(ast.copy_location(ast.Name(name, ast.Load()), where))
            refuse_generator(scope, where, value, "used by a function inside a kernel")
            items.append(value)
    return Aggregate(definition.kind, definition.used, tuple(items))


def is_function(value: Any) -> bool:
    return isinstance(value, Aggregate) and issubclass(value.kind, LocalFunction)


def holds_function(value: Any) -> bool:
    """Whether it is a local function, or has one among its parts."""
    if not is_aggregate(value):
        return False
    items = value.items if isinstance(value, Aggregate) else value
    return is_function(value) or any(map(holds_function, items))


def call_local(scope: Scope, node: ast.Call, callee: Aggregate, args: list[Any], keywords: dict[str, Any]) -> ir.Expr:
    source = callee.kind.definition.source  # type: ignore[attr-defined]
    hidden = dict(zip(callee.names, callee.items, strict=True))
    if wrong := keywords.keys() & hidden.keys():
        scope.fail(node, f"{source.name}() has no parameter {min(wrong)!r}")
    return invoke(scope, node, source, args, {**keywords, **hidden})


def lambda_source(scope: Scope, function: Any) -> FunctionSource | None:
    """What a lambda of Python's is compiled from; None of what is no lambda."""
    if not isinstance(function, FunctionType) or function.__name__ != "<lambda>":
        return None
    known = scope.instances.local_functions
    if function not in known:
        known[function] = source_of(function)
    return known[function]  # type: ignore[no-any-return]
