"""Infers assignments: to names, tuples of names, elements."""

from __future__ import annotations

import ast
from typing import Any, NoReturn

from ..dtypes import asdtype
from ..errors import with_article
from . import ir
from .aggregates import is_aggregate, leaves, root_of, skeleton
from .infer_access import index_parts, load_element, slice_type
from .infer_aggregates import call_special_method, unpack, unpack_result
from .infer_elements import convert, is_whole_row, unshared
from .infer_fields import assign_field, check_no_record, note_aliases
from .infer_generators import refuse_generator
from .infer_local_arrays import items_of
from .infer_local_functions import bind, define, holds_function
from .infer_operators import DUNDER, arithmetic, binary_operator
from .infer_places import (
    Place,
    check_store,
    place_of,
    read_place,
    store_place,
    store_view,
    with_fixed_indices,
)
from .infer_record_stores import assign_record, assign_temporaries, record_target, refuse_widening, update_record
from .infer_scope import Scope, rule
from .infer_temporaries import assign_temporary, has_side_effect
from .infer_tile_functions import add_product
from .infer_tile_loops import unpack_tiles
from .infer_tiles import assign_tile_name, has_tile_index, load_tile, store_tile
from .infer_values import advice_for_captured, constant_shape, describe, is_array, is_local_array
from .tile_values import TileSpace, is_tile


def assign_name(scope: Scope, where: ast.AST, name: str, value: Any) -> list[ir.Stmt]:
    if name in scope.tile_indices:
        scope.fail(where, f"{name!r} is a tile index here and something else elsewhere", "use another name")
    if is_tile(value):
        return assign_tile_name(scope, where, name, value, _check_assignable)
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
    return [ir.Assign(scope.loc(where), name, convert(scope, where, value, kind))]


def _assign_aggregate(scope: Scope, where: ast.AST, name: str, value: Any) -> list[ir.Stmt]:
    """Assigns an aggregate: a variable for each leaf. All leaves are evaluated before the first is set, as `t =
    (t[1], t[0])` needs."""
    set_structure(scope, where, name, value)
    note_aliases(scope, where, name, value)
    if any(is_tile(leaf) for _, leaf in leaves(name, value)):
        scope.fail(where, f"{name!r} can't hold a tuple with tiles", "give each a name: a, b = ...")
    result: list[ir.Stmt] = []
    temporaries = list(leaves(name, assign_temporaries(scope, where, value, result)))
    scope.assigned |= {name, *(path for path, _ in temporaries)}
    for path, leaf in temporaries:
        if not isinstance(leaf, ir.Static):
            kind = scope.set_type(where, path, leaf.type)
            result.append(ir.Assign(scope.loc(where), path, convert(scope, where, leaf, kind)))
    return result


def set_structure(scope: Scope, where: ast.AST, name: str, value: Any) -> None:
    """Aggregate the structure of a variable, which is the same at each assignment."""
    new = skeleton(value) if is_aggregate(value) else None
    is_defined = name in scope.structures or name in scope.types
    if new != scope.structures.get(name) and is_defined:
        verb = "returns" if name == "return" else "is"
        what = "this function" if name == "return" else repr(name)
        before = f"{with_article(scope.types[name])}" if name in scope.types else describe(scope.structures[name])
        scope.fail(where, f"{what} {verb} {before} and here {describe(value)}", "use another name")
    if new is not None and not is_defined:
        scope.structures[name] = new


def _check_assignable(scope: Scope, where: ast.AST, name: str) -> None:
    if scope.before_parallel is not None and name in scope.before_parallel:
        if name in scope.params or not isinstance(scope.types.get(name), ir.ScalarType):
            refuse_assigned(scope, where, name)
        scope.reduced.setdefault(name, where)
    if name in scope.functions:
        scope.fail(where, f"{name!r} is a function here and something else elsewhere", "use another name")
    if name in scope.params and not isinstance(scope.params[name], (ir.ScalarType, ir.LocalArrayType)):
        kind = scope.params[name]
        what = describe(kind) if isinstance(kind, ir.Static) or is_aggregate(kind) else kind
        scope.fail(where, f"{name!r} is a parameter ({what}) and can't be assigned", "use another name")


def refuse_assigned(scope: Scope, where: ast.AST, name: str) -> NoReturn:
    """Refuses an assignment of a variable from before the parallel loop."""
    what = f"{name!r} is assigned before the parallel loop and again in it: its iterations run at the same time"
    if isinstance(scope.types.get(name), ir.LocalArrayType):
        scope.fail(where, what, "numbers are reduced, and no arrays: update one for each element, x += p[0]")
    if name in scope.structures:
        scope.fail(where, what, "reduce its parts as variables: s += x, or if x < best: best, where = x, i")
    scope.fail(
        where, what, "use another name inside the loop, or only update it, by one operator: s += x, m = max(m, x)"
    )


def assign(scope: Scope, target: ast.expr, value: Any) -> list[ir.Stmt]:
    if isinstance(target, ast.Name):
        return assign_name(scope, target, target.id, value)
    if isinstance(target, ast.Subscript):
        if (place := place_of(scope, target)) is not None:
            return _assign_place(scope, target, place, value)
        if (records := record_target(scope, target)) is not None:
            return assign_record(scope, target, records, value)
        array = _target_array(scope, target)
        if is_tile(value) or has_tile_index(scope, target):
            return store_tile(scope, target, array, value)
        view = _target_view(scope, target, array)
        if view is not None:
            return _assign_view(scope, target, view, value)
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
    if isinstance(target, ast.Attribute):
        if (records := record_target(scope, target)) is not None:
            return assign_record(scope, target, records, value)
        return assign_field(scope, target, value)
    _refuse_target(scope, target)


def _assign_place(scope: Scope, target: ast.Subscript, place: Place, value: Any) -> list[ir.Stmt]:
    """Assigns a part of a local array. The value is evaluated before the place."""
    _check_assignable(scope, target, root_of(place.local.name))
    check_no_record(scope, place.local.name)
    value = check_store(scope, target, () if place.is_element else place.shape, place.local.type.dtype, value)
    if place.is_element:
        return store_place(scope, target, place, value)
    before: list[ir.Stmt] = []
    value = assign_temporary(scope, unshared(value), before)
    place = with_fixed_indices(scope, place, before, assign_temporary)
    return [*before, *store_place(scope, target, place, value)]


def _assign_view(scope: Scope, where: ast.AST, view: ir.Expr, value: Any) -> list[ir.Stmt]:
    """Stores into each element of a view of constant shape."""
    shape = constant_shape(view)
    assert shape is not None
    before: list[ir.Stmt] = []
    value = assign_temporary(scope, unshared(check_store(scope, where, shape, view.type.dtype, value)), before)
    view = view if is_whole_row(view) else assign_temporary(scope, view, before)
    return [*before, *store_view(scope, where, view, value)]


def _target_view(scope: Scope, target: ast.Subscript, array: ir.Expr) -> ir.Expr | None:
    """The view that is assigned, if it is one of constant shape; None of elements and of other views."""
    if not array.type.sizes:
        return None
    parts = index_parts(scope, target, array)
    if not any(isinstance(p, ir.Range) for p in parts):
        return None
    view = ir.Slice(scope.loc(target), slice_type(array.type, parts), array, parts)
    return view if constant_shape(view) is not None else None


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
        advice = advice_for_captured(value)
        if is_tile(value):
            advice = "tiles are values: write t = pa.where(mask, x, t), or store into an array"
        scope.fail(target.value, f"expected an array, got {describe(value)}", advice)
    return value


def _assign_tuple(scope: Scope, target: ast.Tuple, value: Any) -> list[ir.Stmt]:
    """All right-hand sides are evaluated before the first name is set."""
    result: list[ir.Stmt] = []
    items = unpack(scope, target, value)
    if items is None and constant_shape(value) is not None:
        array = value if isinstance(value, ir.Local) or is_whole_row(value) else assign_temporary(scope, value, result)
        items = items_of(scope, target, array)
    if items is None or len(items) != len(target.elts):
        assigned = f"{len(items)} values" if items is not None else describe(value)
        scope.fail(target, f"{len(target.elts)} names can't be assigned from {assigned}", advice_for_captured(value))
    temporaries = [assign_temporaries(scope, target, item, result) for item in items]
    for element, item in zip(target.elts, temporaries, strict=True):
        result += assign(scope, element, item)
    return result


def _element_index(scope: Scope, target: ast.Subscript, array: ir.Expr) -> tuple[Any, ...]:
    parts = index_parts(scope, target, array)
    if any(isinstance(p, ir.Range) for p in parts):
        scope.fail(target, "a slice can't be assigned as a whole", "write a for loop over its elements")
    return parts


def _store_element(scope: Scope, where: ast.AST, array: ir.Expr, index: tuple[Any, ...], value: ir.Expr) -> ir.Stmt:
    dtype = array.type.dtype
    if value.type.dtype.kind == "c" and dtype.kind not in "cb":
        what = f"{with_article(value.type)} can't be stored in an array of {dtype}"
        scope.fail(where, what, "store its .real, .imag or abs()")
    return ir.Store(scope.loc(where), array, index, scope.coerce(where, value, ir.ScalarType(dtype)))


@rule(ast.Assign)
def _assign(scope: Scope, node: ast.Assign) -> list[ir.Stmt]:
    result: list[ir.Stmt] = []
    if _defines(scope, node):
        return result
    value = scope.infer(node.value)
    if isinstance(value, TileSpace):
        return unpack_tiles(scope, node.targets[0], value)
    value = unpack_result(scope, value, result)
    if len(node.targets) > 1:
        value = assign_temporaries(scope, node, value, result)
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
    value = scope.infer(node.value)
    if is_tile(value):
        scope.fail(node, f"a declaration is of a number, got {describe(value)}", f"write t = pa.{dtype}(a[i, j])")
    return assign_name(scope, node.target, name, scope.number(node, value))


@rule(ast.AugAssign)
def _aug_assign(scope: Scope, node: ast.AugAssign) -> list[ir.Stmt]:
    if isinstance(node.target, ast.Name):
        old = scope.infer(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        if (product := _added_product(scope, node, old)) is not None:
            return product
        right = scope.infer(node.value)
        result = call_special_method(scope, node, old, f"__i{DUNDER[type(node.op)]}__", right)
        if result is None:
            result = binary_operator(scope, node, node.op, old, right)
            if constant_shape(old) is not None:
                return _update_array(scope, node, old, result)
        before: list[ir.Stmt] = []
        result = unpack_result(scope, result, before)
        return [*before, *assign_name(scope, node.target, node.target.id, result)]
    if (records := record_target(scope, node.target)) is not None:
        return update_record(scope, node, records)
    if isinstance(node.target, ast.Attribute):
        field = ast.copy_location(ast.Attribute(node.target.value, node.target.attr, ast.Load()), node.target)
        old = scope.infer(field)
        if is_local_array(old):
            return _update_array(scope, node, old, binary_operator(scope, node, node.op, old, scope.infer(node.value)))
        return assign_field(scope, node.target, binary_operator(scope, node, node.op, old, scope.infer(node.value)))
    if not isinstance(node.target, ast.Subscript):
        _refuse_target(scope, node.target)
    before = []
    if (place := place_of(scope, node.target)) is not None:
        place = with_fixed_indices(scope, place, before, assign_temporary)
        value = binary_operator(scope, node, node.op, read_place(scope, node, place), scope.infer(node.value))
        if not place.is_element:
            refuse_widening(scope, node, place.local.type.dtype, value)
        return [*before, *_assign_place(scope, node.target, place, value)]
    array = _target_array(scope, node.target)
    if has_tile_index(scope, node.target):
        loaded = load_tile(scope, node.target, array)
        value = binary_operator(scope, node, node.op, loaded, scope.infer(node.value))
        return store_tile(scope, node.target, array, value)
    changes = any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.value))  # a variable, which may be read here
    if (view := _target_view(scope, node.target, array)) is not None:
        view = view if is_whole_row(view) and not changes else assign_temporary(scope, view, before)
        value = binary_operator(scope, node, node.op, view, scope.infer(node.value))
        refuse_widening(scope, node, view.type.dtype, value)
        return [*before, *_assign_view(scope, node, view, value)]
    array = array if isinstance(array, ir.Local) and not changes else assign_temporary(scope, array, before)
    parts = _element_index(scope, node.target, array)
    parts = tuple(p if _is_repeatable(p) and not changes else assign_temporary(scope, p, before) for p in parts)
    old = load_element(scope, node.target, array, parts)
    value = arithmetic(scope, node, node.op, old, scope.infer(node.value))
    return [*before, _store_element(scope, node, array, parts, value)]


def _added_product(scope: Scope, node: ast.AugAssign, old: Any) -> list[ir.Stmt] | None:
    """`acc += a @ b` of tiles, summed in place; None of other updates."""
    value = node.value
    if not isinstance(node.op, ast.Add) or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.MatMult):
        return None
    if not isinstance(old, ir.Local) or not is_tile(old):
        return None
    _check_assignable(scope, node, old.name)
    pending = list(scope.pending)
    left = scope.infer(value.left)
    added = add_product(scope, value, old, left, scope.infer(value.right))
    if added is None:
        scope.pending[:] = pending
    return added


def _update_array(scope: Scope, node: ast.AugAssign, old: ir.Expr, value: Any) -> list[ir.Stmt]:
    """`p += x` of an array, which changes it in place."""
    refuse_widening(scope, node, old.type.dtype, value)
    if is_array(old):
        return _assign_view(scope, node, old, value)
    assert isinstance(old, ir.Local)
    _check_assignable(scope, node.target, root_of(old.name))
    check_no_record(scope, old.name)
    before: list[ir.Stmt] = []
    value = assign_temporary(scope, check_store(scope, node, old.type.shape, old.type.dtype, value), before)
    return [*before, *store_place(scope, node, Place(old), value)]


def _is_repeatable(index: ir.Expr) -> bool:
    """Whether it may be evaluated twice: no side effects, and the statement doesn't change it."""
    return all(isinstance(n, (ir.Local, ir.Const, ir.Size, ir.Cast, ir.Binary, ir.Unary)) for n in ir.walk(index))
