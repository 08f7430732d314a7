"""Infers control flow: blocks, conditions, loops, returns."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from . import ir
from .aggregates import is_aggregate, leaves
from .infer_aggregates import unpack_result
from .infer_assign import set_structure
from .infer_conditions import Condition, infer_condition
from .infer_counters import discarded, return_counters
from .infer_elements import convert
from .infer_fields import returns_argument
from .infer_generators import refuse_generator, refuse_parameters
from .infer_local_functions import define, definition_of, holds_function, local_function
from .infer_scope import Scope, rule
from .infer_temporaries import has_side_effect, new_temporary
from .infer_tile_inlining import return_tiles
from .infer_values import describe, is_array, is_local_array
from .loop_exits import ReturnLowering, has_return, set_flag
from .tile_values import Done


@rule(ast.FunctionDef)
def _function_def(scope: Scope, node: ast.FunctionDef) -> Any:
    if node is not scope.source.node:
        define(scope, node, node.name)
        return []
    if scope.is_kernel:
        refuse_parameters(scope, node)
    body = infer_block(scope, node.body)
    if scope.is_kernel and has_return(*body):
        body = ReturnLowering(new_temporary(scope, ir.BOOL)).kernel(scope.loc(node), body)
    if ("return" in scope.types or "return" in scope.structures) and not _always_returns(body):
        advice = "end with a return that gives the value for the other cases"
        scope.fail(node, f"{scope.source.name}() returns a value on some paths only", advice)
    return return_counters(scope, node, body, ends_in_jump(body) or _always_returns(body))


@rule(ast.Lambda)
def _lambda(scope: Scope, node: ast.Lambda) -> Any:
    if node is not scope.source.node:
        return local_function(scope, node, definition_of(scope, node))
    if scope.is_kernel:
        scope.fail(node, "a lambda returns a value, and a kernel returns nothing", "write def k(v): ...")
    body = tuple(_return_value(scope, node.body, scope.infer(node.body)))
    return return_counters(scope, node, body, ends=True)


def infer_block(scope: Scope, statements: list[ast.stmt]) -> tuple[ir.Stmt, ...]:
    """What never runs needn't fit: the rest of a block behind a jump, also in a branch that constants choose."""
    result: list[ir.Stmt] = []
    around, scope.pending = scope.pending, []
    for statement in statements:
        inferred = scope.infer(statement)
        result += [*scope.pending, *inferred]
        scope.pending.clear()
        if ends_in_jump(tuple(result)):
            break
    scope.pending = around
    return tuple(result)


# ---- simple statements


@rule(ast.Break)
def _break(scope: Scope, node: ast.Break) -> list[ir.Stmt]:
    if scope.before_parallel is not None and scope.loop_depth == 1:
        what = "'break' can't leave a parallel loop: its iterations run at the same time"
        scope.fail(node, what, "skip with continue")
    loop, loc = scope.loops[-1], scope.loc(node)
    loop.at_breaks.append(set(scope.assigned))
    return [*([set_flag(loc, loop.flag, True)] if loop.flag else []), ir.Break(loc)]


@rule(ast.Continue)
def _continue(scope: Scope, node: ast.Continue) -> list[ir.Stmt]:
    return [ir.Continue(scope.loc(node))]


@rule(ast.Pass)
def _pass(scope: Scope, node: ast.Pass) -> list[ir.Stmt]:
    return []


@rule(ast.Expr)
def _expr(scope: Scope, node: ast.Expr) -> list[ir.Stmt]:
    if isinstance(node.value, ast.Constant):  # a docstring
        return []
    scope.statement = node.value
    value = scope.infer(node.value)
    if isinstance(value, Done):
        return []
    value = discarded(value)
    effects = [value] if isinstance(value, (ir.Atomic, ir.Invoke, ir.Let, ir.Print)) else []
    if is_aggregate(value) and isinstance(node.value, ast.Call):  # a call that returns several values
        effects = [x for _, x in leaves("", value) if has_side_effect(x)]
    if not effects:
        scope.fail(node, "this statement has no effect")
    return [ir.Evaluate(scope.loc(node), x) for x in effects]


@rule(ast.Return)
def _return(scope: Scope, node: ast.Return) -> list[ir.Stmt]:
    if scope.inlined:
        return return_tiles(scope, node)
    if scope.is_kernel:
        _check_kernel_return(scope, node)
    bare = node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
    return _return_value(scope, node, None if bare or node.value is None else scope.infer(node.value))


def _check_kernel_return(scope: Scope, node: ast.Return) -> None:
    if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        advice = "store results into an array parameter; skip an iteration with continue"
        scope.fail(node, "a kernel returns nothing", advice)
    if scope.before_parallel is not None:
        what = "'return' can't leave a parallel loop: its iterations run at the same time"
        scope.fail(node, what, "skip with continue, or make the iteration a function, which may return")


def _return_value(scope: Scope, node: ast.AST, value: Any) -> list[ir.Stmt]:
    loc = scope.loc(node)
    if value is None:
        return [ir.Return(loc, None)]
    result: list[ir.Stmt] = []
    value = unpack_result(scope, value, result)
    if getattr(value, "type", value) is None:
        scope.fail(node, "this call returns nothing that could be returned")
    refuse_generator(scope, node, value, "returned")
    if holds_function(value):
        scope.fail(node, "a function that is defined in another one can't be returned", "return what it computes")
    set_structure(scope, node, "return", value)
    scope.returns_argument |= returns_argument(scope, value)
    parts: list[ir.Expr] = []
    for path, part in leaves("return", value):
        if isinstance(part, ir.Static) and is_aggregate(value):
            continue
        returned: Any = part if is_array(part) or is_local_array(part) else scope.number(node, part)
        parts.append(convert(scope, node, returned, scope.set_type(node, path, returned.type)))
    if not is_aggregate(value):
        return [*result, ir.Return(loc, parts[0])]
    if not parts:
        scope.fail(node, f"{describe(value)} without numbers or arrays can't be returned")
    return [*result, ir.Return(loc, ir.Pack(loc, ir.TupleType(tuple(p.type for p in parts)), tuple(parts)))]


# ---- conditions


@rule(ast.If)
def _if(scope: Scope, node: ast.If) -> list[ir.Stmt]:
    condition = infer_condition(scope, node.test)
    return branches(
        scope, node, condition, lambda: infer_block(scope, node.body), lambda: infer_block(scope, node.orelse)
    )


def branches(
    scope: Scope, node: ast.AST, condition: Condition,
    infer_then: Callable[[], tuple[ir.Stmt, ...]], infer_else: Callable[[], tuple[ir.Stmt, ...]],
) -> list[ir.Stmt]:  # fmt: skip
    value, when_true, when_false, _ = condition
    if isinstance(value, ir.Const):  # a branch that isn't taken may have type errors: specializations by constexpr
        scope.assigned = when_true if value.value else when_false
        return list(infer_then() if value.value else infer_else())
    scope.branch_depth += 1
    scope.assigned = set(when_true)
    then = infer_then()
    after_then, scope.assigned = scope.assigned, set(when_false)
    orelse = infer_else()
    scope.branch_depth -= 1
    if orelse and ends_in_jump(orelse):
        scope.assigned = after_then
    elif not ends_in_jump(then):
        scope.assigned &= after_then
    return [ir.If(scope.loc(node), value, then, orelse)]


def ends_in_jump(block: tuple[ir.Stmt, ...]) -> bool:
    return bool(block) and isinstance(block[-1], (ir.Return, ir.Break, ir.Continue))


def leaves_by_break(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a `break` in the body leaves this loop, not an inner one."""
    return any(
        isinstance(s, ir.Break) or (isinstance(s, ir.If) and (leaves_by_break(s.then) or leaves_by_break(s.orelse)))
        for s in body
    )


def _always_returns(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether every path ends in a return of a value."""
    if any(isinstance(n, ir.Return) and n.value is None for n in ir.walk(*body)):
        return False
    for s in body:
        if isinstance(s, ir.Return):
            return True
        if isinstance(s, ir.If) and _always_returns(s.then) and _always_returns(s.orelse):
            return True
        endless = isinstance(s, ir.While) and not leaves_by_break(s.body) and s.condition
        if isinstance(endless, ir.Const) and endless.value:
            return True
    return False
