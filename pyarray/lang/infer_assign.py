"""Infers assignments: to names, tuples of names, elements."""

from __future__ import annotations

import ast
from typing import Any, NoReturn

from ..dtypes import asdtype
from . import ir
from .aggregates import is_aggregate, leaves, skeleton, transform
from .infer_access import index_parts, load_element
from .infer_aggregates import call_special_method, unpack, unpack_result
from .infer_generators import refuse_generator
from .infer_local_functions import bind, define, holds_function
from .infer_operators import DUNDER, arithmetic, binary_operator
from .infer_scope import Scope, rule
from .infer_temporaries import assign_temporary, has_side_effect
from .infer_values import advice_for_captured, describe, is_array


def assign_name(scope: Scope, where: ast.AST, name: str, value: Any) -> list[ir.Stmt]:
    if isinstance(value, ir.Static):
        advice = advice_for_captured(value) or "variables are numbers, views of arrays and tuples of them"
        scope.fail(where, f"{name!r} can't hold {describe(value)}", advice)
    _check_assignable(scope, where, name)
    refuse_generator(scope, where, value, "kept")
    if holds_function(value):
        scope.fail(where, "a function can't be kept in a variable", "give it a name by def, call it, or pass it on")
    if is_aggregate(value):
        return _assign_aggregate(scope, where, name, value)
    if value.type is None:
        scope.fail(where, "this call returns nothing that could be assigned")
    set_structure(scope, where, name, value)
    kind = scope.set_type(where, name, value.type)
    scope.assigned.add(name)  # pyright: ignore[reportAttributeAccessIssue]
    return [ir.Assign(scope.loc(where), name, scope.coerce(where, value, kind))]


def _assign_aggregate(scope: Scope, where: ast.AST, name: str, value: Any) -> list[ir.Stmt]:
    """Assigns an aggregate: a variable for each leaf. All leaves are evaluated before the first is set, as `t =
    (t[1], t[0])` needs."""
    set_structure(scope, where, name, value)
    result: list[ir.Stmt] = []
    temporaries = list(leaves(name, _assign_temporaries(scope, where, value, result)))
    scope.assigned |= {name, *(path for path, _ in temporaries)}
    for path, leaf in temporaries:
        if not isinstance(leaf, ir.Static):
            kind = scope.set_type(where, path, leaf.type)
            result.append(ir.Assign(scope.loc(where), path, scope.coerce(where, leaf, kind)))
    return result


def set_structure(scope: Scope, where: ast.AST, name: str, value: Any) -> None:
    """Aggregate the structure of a variable, which is the same at each assignment."""
    new = skeleton(value) if is_aggregate(value) else None
    is_defined = name in scope.structures or name in scope.types
    if new != scope.structures.get(name) and is_defined:
        verb = "returns" if name == "return" else "is"
        what = "this function" if name == "return" else repr(name)
        before = f"a {scope.types[name]}" if name in scope.types else describe(scope.structures[name])
        scope.fail(where, f"{what} {verb} {before} and here {describe(value)}", "use another name")
    if new is not None and not is_defined:
        scope.structures[name] = new
        scope.changed = True


def _check_assignable(scope: Scope, where: ast.AST, name: str) -> None:
    if scope.before_parallel is not None and name in scope.before_parallel:
        if name in scope.params or not isinstance(scope.types.get(name), ir.ScalarType):
            refuse_assigned(scope, where, name)
        scope.reduced.setdefault(name, where)
    if name in scope.functions:
        scope.fail(where, f"{name!r} is a function here and something else elsewhere", "use another name")
    if name in scope.params and not isinstance(scope.params[name], ir.ScalarType):
        kind = scope.params[name]
        what = describe(kind) if isinstance(kind, ir.Static) or is_aggregate(kind) else kind
        scope.fail(where, f"{name!r} is a parameter ({what}) and can't be assigned", "use another name")


def refuse_assigned(scope: Scope, where: ast.AST, name: str) -> NoReturn:
    """Refuses an assignment of a variable from before the parallel loop."""
    what = f"{name!r} is assigned before the parallel loop and again in it: its iterations run at the same time"
    advice = "use another name inside the loop, or only update it, by one operator: s += x, m = max(m, x)"
    scope.fail(where, what, advice)


def assign(scope: Scope, target: ast.expr, value: Any) -> list[ir.Stmt]:
    if isinstance(target, ast.Name):
        return assign_name(scope, target, target.id, value)
    if isinstance(target, ast.Subscript):
        array = _target_array(scope, target)
        if has_side_effect(array):  # evaluated once, after the value
            before: list[ir.Stmt] = []
            value = assign_temporary(scope, scope.number(target, value), before)
            array = assign_temporary(scope, array, before)
            index = _element_index(scope, target, array)
            return [*before, _store_element(scope, target, array, index, value)]
        index = _element_index(scope, target, array)
        return [_store_element(scope, target, array, index, scope.number(target, value))]
    if isinstance(target, ast.Tuple):
        return _assign_tuple(scope, target, value)
    _refuse_target(scope, target)


def _refuse_target(scope: Scope, target: ast.expr) -> NoReturn:
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        owner = scope.infer(target.value)
        if is_aggregate(owner):
            item = isinstance(target, ast.Subscript)
            what = f"an item of {describe(owner)}" if item else f"the field {target.attr!r}"  # type: ignore[union-attr]
            advice = "its values are copies: use a variable, or store into an element of an array field"
            scope.fail(target, f"{what} can't be assigned in a kernel", advice)
    scope.fail(target, "this can't be assigned", "assign to a name or to an element: v[i] = x")


def _target_array(scope: Scope, target: ast.Subscript) -> ir.Expr:
    """The array whose element is assigned."""
    value = scope.infer(target.value)
    if is_aggregate(value):
        _refuse_target(scope, target)
    if not is_array(value):
        scope.fail(target.value, f"expected an array, got {describe(value)}", advice_for_captured(value))
    return value


def _assign_tuple(scope: Scope, target: ast.Tuple, value: Any) -> list[ir.Stmt]:
    """All right-hand sides are evaluated before the first name is set."""
    items = unpack(scope, target, value)
    if items is None or len(items) != len(target.elts):
        assigned = f"{len(items)} values" if items is not None else describe(value)
        scope.fail(target, f"{len(target.elts)} names can't be assigned from {assigned}", advice_for_captured(value))
    result: list[ir.Stmt] = []
    temporaries = [_assign_temporaries(scope, target, item, result) for item in items]
    for element, item in zip(target.elts, temporaries, strict=True):
        result += assign(scope, element, item)
    return result


def _assign_temporaries(scope: Scope, where: ast.AST, value: Any, into: list[ir.Stmt]) -> Any:
    if is_aggregate(value):
        return transform("", value, lambda _, item: _assign_temporaries(scope, where, item, into))
    if isinstance(value, ir.Static):
        return value
    return assign_temporary(scope, value if is_array(value) else scope.number(where, value), into)


def _element_index(scope: Scope, target: ast.Subscript, array: ir.Expr) -> tuple[Any, ...]:
    parts = index_parts(scope, target, array)
    if any(isinstance(p, ir.Range) for p in parts):
        scope.fail(target, "a slice can't be assigned as a whole", "write a for loop over its elements")
    return parts


def _store_element(scope: Scope, where: ast.AST, array: ir.Expr, index: tuple[Any, ...], value: ir.Expr) -> ir.Stmt:
    dtype = array.type.dtype
    if value.type.dtype.kind == "c" and dtype.kind not in "cb":
        scope.fail(where, f"a {value.type} can't be stored in an array of {dtype}", "store its .real, .imag or abs()")
    return ir.Store(scope.loc(where), array, index, scope.coerce(where, value, ir.ScalarType(dtype)))


@rule(ast.Assign)
def _assign(scope: Scope, node: ast.Assign) -> list[ir.Stmt]:
    result: list[ir.Stmt] = []
    if _defines(scope, node):
        return result
    value = unpack_result(scope, scope.infer(node.value), result)
    if len(node.targets) > 1:
        value = _assign_temporaries(scope, node, value, result)
    for target in node.targets:
        result += assign(scope, target, value)
    return result


def _defines(scope: Scope, node: ast.Assign) -> bool:
    """Gives names to a lambda, or to a function that has one."""
    value = node.value
    known = isinstance(value, ast.Name) and value.id in scope.functions and value.id in scope.assigned
    if not isinstance(value, ast.Lambda) and not known:
        return False
    for target in node.targets:
        if not isinstance(target, ast.Name):
            scope.fail(target, "a function can't be stored", "give it a name: f = lambda x: ...")
        if isinstance(value, ast.Lambda):
            define(scope, value, target.id)
        else:
            bind(scope, target, target.id, scope.functions[value.id])  # type: ignore[attr-defined]
    return True


@rule(ast.AnnAssign)
def _ann_assign(scope: Scope, node: ast.AnnAssign) -> list[ir.Stmt]:
    advice = "write x: pa.float32 = 0"
    if node.value is None or not isinstance(node.target, ast.Name):
        scope.fail(node, "a declaration is of a name, with a value", advice)
    annotation = scope.infer(node.annotation)
    try:
        dtype = asdtype(annotation.value)
    except (TypeError, AttributeError):
        scope.fail(node.annotation, "the annotation of a variable is an element type", advice)
    name, kind = node.target.id, ir.ScalarType(dtype)
    if scope.declared.get(name, kind) != kind:
        scope.fail(node, f"{name!r} is declared {scope.declared[name].dtype} elsewhere", "declare it once")
    scope.changed |= name not in scope.declared
    scope.declared[name] = kind
    return assign_name(scope, node.target, name, scope.number(node, scope.infer(node.value)))


@rule(ast.AugAssign)
def _aug_assign(scope: Scope, node: ast.AugAssign) -> list[ir.Stmt]:
    if isinstance(node.target, ast.Name):
        old = scope.infer(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        right = scope.infer(node.value)
        result = call_special_method(scope, node, old, f"__i{DUNDER[type(node.op)]}__", right)
        if result is None:
            result = binary_operator(scope, node, node.op, old, right)
        before: list[ir.Stmt] = []
        result = unpack_result(scope, result, before)
        return [*before, *assign_name(scope, node.target, node.target.id, result)]
    if not isinstance(node.target, ast.Subscript):
        _refuse_target(scope, node.target)
    before = []
    array = _target_array(scope, node.target)
    changes = any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.value))  # a variable, which may be read here
    array = array if isinstance(array, ir.Local) and not changes else assign_temporary(scope, array, before)
    parts = _element_index(scope, node.target, array)
    parts = tuple(p if _is_repeatable(p) and not changes else assign_temporary(scope, p, before) for p in parts)
    old = load_element(scope, node.target, array, parts)
    value = arithmetic(scope, node, node.op, old, scope.infer(node.value))
    return [*before, _store_element(scope, node, array, parts, value)]


def _is_repeatable(index: ir.Expr) -> bool:
    """Whether it may be evaluated twice: no side effects, and the statement doesn't change it."""
    return all(isinstance(n, (ir.Local, ir.Const, ir.Size, ir.Cast, ir.Binary, ir.Unary)) for n in ir.walk(index))
