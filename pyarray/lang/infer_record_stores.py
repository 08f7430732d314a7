"""Infers stores into records of arrays, and into their fields."""

from __future__ import annotations

import ast
from typing import Any

from ..dtypes import DType
from . import ir
from .aggregates import is_aggregate, is_records, transform
from .infer_aggregates import call_special_method, unpack_result
from .infer_elements import loaded, unshared
from .infer_operators import DUNDER, binary_operator
from .infer_records import (
    field_of_record,
    fixed_place,
    is_place,
    is_record,
    record_item,
    store_record,
    subscript_records,
)
from .infer_scope import Scope
from .infer_temporaries import assign_temporary, has_side_effect
from .infer_values import constant_shape, is_array, is_local_array
from .tile_values import copy_tile, is_tile

_ORDER = "buifc"  # of kinds: each holds those before it, and signed integers hold unsigned ones as NumPy casts them


def record_target(scope: Scope, target: ast.expr) -> Any:
    """The record in an array that is assigned, or its field; None where something else is."""
    if not isinstance(target, (ast.Subscript, ast.Attribute)):
        return None
    owner = scope.infer(target.value)
    if is_records(owner) and isinstance(target, ast.Subscript):
        found = subscript_records(scope, target, owner)
        if not is_place(found):
            scope.fail(target, "records are assigned one by one", "write a for loop over them")
        return found
    if not is_place(owner):
        return None
    if isinstance(target, ast.Attribute):
        return field_of_record(scope, target, owner, target.attr)
    return record_item(scope, target, owner) if is_record(owner, target) else None


def assign_record(scope: Scope, target: ast.expr, place: Any, value: Any) -> list[ir.Stmt]:
    """Stores into a record. The value is evaluated before the place."""
    before: list[ir.Stmt] = []
    indices: list[ir.Stmt] = []
    place = fixed_place(scope, place, indices, False)
    if indices or not isinstance(place, ir.Load):  # else a number, which may be a reduction
        value = _assign_parts(scope, target, value, before)
    return [*before, *indices, *store_record(scope, target, place, value)]


def _assign_parts(scope: Scope, where: ast.AST, value: Any, into: list[ir.Stmt]) -> Any:
    """What is stored into a record in temporaries: all of it is read before the first field is stored."""

    def read(_: str, part: Any) -> Any:
        if constant_shape(part) is None:
            return assign_temporaries(scope, where, part, into)
        return assign_temporary(scope, unshared(loaded(scope, where, part)), into)

    return transform("", value, read)


def update_record(scope: Scope, node: ast.AugAssign, place: Any) -> list[ir.Stmt]:
    """`a[i].x += y` and `a[i] += p`, whose place is evaluated once, before the value."""
    before: list[ir.Stmt] = []
    place = fixed_place(scope, place, before, any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.value)))
    right = scope.infer(node.value)
    # a number that is read where it is updated may be a reduction
    plain = isinstance(place, ir.Load) and not is_aggregate(right) and not has_side_effect(right)
    old = place if is_array(place) or plain else assign_temporaries(scope, node, place, before)
    value = call_special_method(scope, node, old, f"__i{DUNDER[type(node.op)]}__", right)
    if value is None:
        value = binary_operator(scope, node, node.op, old, right)
    if constant_shape(place) is not None:
        refuse_widening(scope, node, place.type.dtype, value)
    if not plain:
        value = _assign_parts(scope, node, unpack_result(scope, value, before), before)
    return [*before, *store_record(scope, node, place, value)]


def assign_temporaries(scope: Scope, where: ast.AST, value: Any, into: list[ir.Stmt]) -> Any:
    if is_aggregate(value):
        return transform("", value, lambda _, item: assign_temporaries(scope, where, item, into))
    if isinstance(value, ir.Static):
        return value
    if is_tile(value):
        local, copied = copy_tile(scope, where, value)
        into += copied
        return local
    is_value = is_array(value) or is_local_array(value)
    return assign_temporary(scope, value if is_value else scope.number(where, value), into)


def refuse_widening(scope: Scope, node: ast.AugAssign, dtype: DType, value: Any) -> None:
    """An array keeps its dtype, whose kind has to hold the result."""
    found = value.type.dtype
    if _ORDER.index(found.kind) > _ORDER.index(dtype.kind):
        advice = "write p = p + ..., or convert the result with .astype(...)"
        scope.fail(node, f"an array of {dtype} can't hold {found} in place", advice)
