"""Infers `x[...]` where it is read: of arrays, tuples, records, local arrays and what is captured."""

from __future__ import annotations

import ast
from typing import Any

from . import ir
from .aggregates import as_tuple, is_records, leaves
from .infer_access import index_parts, load_element, slice_type
from .infer_aggregates import call_special_method, take_part, user_method
from .infer_local_arrays import subscript
from .infer_records import is_record, record_item, subscript_records
from .infer_scope import Scope, rule
from .infer_temporaries import expand_result, has_side_effect, with_let_bound
from .infer_tiles import has_tile_index, load_tile, subscript_tile
from .infer_values import advice_for_captured, describe, is_array, is_local_array
from .tile_values import is_tile


@rule(ast.Subscript)
def _subscript(scope: Scope, node: ast.Subscript) -> Any:
    owner = scope.infer(node.value)
    if is_records(owner):
        return subscript_records(scope, node, owner)
    if is_record(owner, node):
        return record_item(scope, node, owner)
    if user_method(scope, owner, "__getitem__") is not None:
        if any(isinstance(n, ast.Slice) for n in getattr(node.slice, "elts", [node.slice])):
            scope.fail(node, "a kernel has no slice objects", "pass the bounds to a method of their own")
        return call_special_method(scope, node, owner, "__getitem__", scope.infer(node.slice))
    owner = expand_result(scope, owner)
    items = as_tuple(owner)
    if items is not None and isinstance(node.slice, ast.Slice):
        if any(has_side_effect(x) for _, x in leaves("", owner)):  # each part would evaluate it
            advice = "assign the tuple to a variable first, and slice that"
            scope.fail(node, "a slice of a tuple that is made by calls", advice)
        return tuple(take_part(scope, node, owner, item) for item in items[_constant_slice(scope, node.slice)])
    if items is not None:
        index = scope.number(node.slice, scope.infer(node.slice))
        if not isinstance(index, ir.Const) or not isinstance(index.value, int):
            scope.fail(node.slice, "a tuple needs a constant index")
        if not -len(items) <= index.value < len(items):
            scope.fail(node.slice, f"index {index.value} is out of range for a tuple of {len(items)}")
        return take_part(scope, node, owner, items[index.value])
    if isinstance(owner, ir.Static):
        return _captured_item(scope, node, owner.value)
    if is_tile(owner) or (scope.tile_indices and _is_number_with_axes(node, owner)):
        return subscript_tile(scope, node, owner)
    if is_array(owner) and has_tile_index(scope, node):
        return load_tile(scope, node, owner)
    if is_local_array(owner):
        return subscript(scope, node, owner)
    if not is_array(owner):
        scope.fail(node, f"{describe(owner)} can't be indexed")
    return with_let_bound(scope, [owner], lambda array: _index_array(scope, node, array))


def _is_number_with_axes(node: ast.Subscript, owner: Any) -> bool:
    """`t.max()[None]`: a number as a tile of size 1."""
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    has_none = any(isinstance(x, ast.Constant) and x.value is None for x in items)
    return has_none and isinstance(getattr(owner, "type", None), ir.ScalarType)


def _constant_slice(scope: Scope, node: ast.Slice) -> slice:
    """Of a tuple, whose length is known when the kernel is compiled."""
    bounds = [None if n is None else scope.number(n, scope.infer(n)) for n in (node.lower, node.upper, node.step)]
    if any(n is not None and not (isinstance(n, ir.Const) and isinstance(n.value, int)) for n in bounds):
        scope.fail(node, "a slice of a tuple needs constant bounds")
    start, stop, step = (n.value if isinstance(n, ir.Const) else None for n in bounds)
    if step == 0:
        scope.fail(node, "slice step must not be 0")
    return slice(start, stop, step)


def _index_array(scope: Scope, node: ast.Subscript, array: ir.Expr) -> ir.Expr:
    parts = index_parts(scope, node, array)
    if len(parts) == array.type.ndim and not any(isinstance(p, ir.Range) for p in parts):
        return load_element(scope, node, array, parts)
    return ir.Slice(scope.loc(node), slice_type(array.type, parts), array, parts)


def _captured_item(scope: Scope, node: ast.Subscript, owner: Any) -> Any:
    """An item of a captured list or dict, by a constant index or key; recorded as captured."""
    if type(owner) not in (list, dict):
        scope.fail(node, f"{describe(ir.Static(owner))} can't be indexed", advice_for_captured(ir.Static(owner)))
    key = scope.infer(node.slice)
    index = key.value if isinstance(key, (ir.Const, ir.Static)) else None
    if not isinstance(index, (int, str)):
        what = f"a captured {type(owner).__name__} needs a constant index or key"
        scope.fail(node.slice, what, advice_for_captured(ir.Static(owner)))
    try:
        value = owner[index]
    except (LookupError, TypeError) as error:
        scope.fail(node.slice, f"no such item: {type(error).__name__}: {error}")
    scope.instances.capture(owner, index, value)
    return scope.from_python(node, value)
