"""Infers arrays of records: structured arrays, whose leaves are the views of their fields.

`a[i]` is a record by value, which remembers its place: `a[i].x` is that element of the field's view, and what is
assigned to it is stored there. So `a[i].x` is inferred as `x[i]` is, and no pass knows of records."""

from __future__ import annotations

import ast
import functools
from dataclasses import replace
from typing import Any

from ..errors import with_article
from . import ir
from .aggregates import Aggregate, RecordPlace, as_tuple, is_records, leaves
from .infer_access import index_parts, slice_type
from .infer_elements import loaded
from .infer_places import check_store, store_view
from .infer_scope import Scope
from .infer_sequences import Sequence
from .infer_temporaries import assign_temporary, has_side_effect, nest_lets, new_temporary
from .infer_values import constant_shape, describe, is_array
from .promotion import binary, constant

_SIMPLE = (ir.Local, ir.Const, ir.Size, ir.Cast, ir.Binary, ir.Unary)  # what stores to a record don't change


def subscript_records(scope: Scope, node: ast.Subscript, owner: Aggregate) -> Any:
    """`a[i]`, a record; `a[1:]` and `m[i]`, views of records; `a["x"]`, the view of a field."""
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return owner.items[_number_of(scope, node, owner, node.slice.value)]
    ndim = _ndim(owner)
    parts = index_parts(scope, node, _first(owner), ndim)
    if len(parts) == ndim and not any(isinstance(p, ir.Range) for p in parts):
        lets: list[tuple[str, ir.Expr]] = []
        return _with_lets(_record(scope, node, owner, tuple(_bound(scope, p, lets) for p in parts)), tuple(lets))
    bounds = [x for p in parts for x in ((p.start, p.stop, p.step) if isinstance(p, ir.Range) else (p,))]
    if any(x is not None and has_side_effect(x) for x in bounds):
        what = "a slice of an array of records takes indices without calls"
        scope.fail(node, what, "assign the index to a variable first")

    def sliced(leaf: Any, whole: int) -> Any:
        if isinstance(leaf, Aggregate):
            return replace(leaf, items=tuple(sliced(x, _extra(leaf, k)) for k, x in enumerate(leaf.items)))
        full = (*parts, *(ir.WHOLE,) * whole)
        return ir.Slice(scope.loc(node), slice_type(leaf.type, full), leaf, full)

    return sliced(owner, 0)


def _bound(scope: Scope, index: ir.Expr, lets: list[tuple[str, ir.Expr]]) -> ir.Expr:
    """An index that is evaluated once, whatever fields are read."""
    if not has_side_effect(index):
        return index
    local = ir.Local(index.loc, index.type, new_temporary(scope, index.type))
    lets.append((local.name, index))
    return local


def _record(scope: Scope, where: ast.AST, owner: Aggregate, index: tuple[ir.Expr, ...]) -> Aggregate:
    loc, layout = scope.loc(where), owner.kind.__pyarray_layout__  # type: ignore[attr-defined]
    parts: list[Any] = []
    values: list[Any] = []
    for leaf in owner.items:
        if isinstance(leaf, Aggregate):
            parts.append(_record(scope, where, leaf, index))
        elif leaf.type.ndim == len(index):
            parts.append(ir.Load(loc, ir.ScalarType(leaf.type.dtype), leaf, index))
        else:
            full = (*index, *(ir.WHOLE,) * (leaf.type.ndim - len(index)))
            parts.append(ir.Slice(loc, slice_type(leaf.type, full), leaf, full))
        values.append(loaded(scope, where, parts[-1]) if is_array(parts[-1]) else parts[-1])
    origins = tuple(leaf.name for _, leaf in leaves("", owner) if isinstance(leaf, ir.Local))[:1]
    return Aggregate(layout.record, owner.names, tuple(values), True, origins, RecordPlace((), tuple(parts)))


def _with_lets(record: Aggregate, lets: tuple[tuple[str, ir.Expr], ...]) -> Aggregate:
    """The record, whose first leaf evaluates the index."""
    if not lets:
        return record
    first, *others = record.items
    first = _with_lets(first, lets) if isinstance(first, Aggregate) else nest_lets(first, list(lets))
    assert record.place is not None
    return replace(record, items=(first, *others), place=RecordPlace(lets, record.place.parts))


def field_of_record(scope: Scope, where: ast.AST, record: Aggregate, name: str) -> Any:
    """`a[i].x`: where it is stored, for reading, and for what is done to it."""
    place = record.place
    assert place is not None
    part = place.parts[_number_of(scope, where, record, name)]
    if isinstance(part, Aggregate):
        return _with_lets(part, place.lets)
    return nest_lets(part, list(place.lets))


def is_record(owner: Any, node: ast.Subscript) -> bool:
    """Whether `p["x"]` is a field of a dataclass, as of NumPy's records."""
    named = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    return isinstance(owner, Aggregate) and not is_records(owner) and named


def record_item(scope: Scope, node: ast.Subscript, owner: Aggregate) -> Any:
    """`p["x"]` of a record, as of NumPy's."""
    assert isinstance(node.slice, ast.Constant)
    name = str(node.slice.value)
    if owner.place is not None:
        return field_of_record(scope, node, owner, name)
    return owner.items[_number_of(scope, node, owner, name)]


def _number_of(scope: Scope, where: ast.AST, owner: Aggregate, name: str) -> int:
    if name not in owner.names:
        scope.fail(where, f"{describe(owner)} has no field {name!r}", f"there are: {', '.join(owner.names)}")
    return owner.names.index(name)


# ---- arrays of records


def _extra(owner: Aggregate, k: int) -> int:
    """Axes that the k-th field has of its own."""
    return len(list(owner.kind.__pyarray_layout__.fields.values())[k].shape)  # type: ignore[attr-defined]


def _first(owner: Aggregate) -> Any:
    return next(leaf for _, leaf in leaves("", owner))


def _ndim(owner: Aggregate) -> int:
    layout = owner.kind.__pyarray_layout__  # type: ignore[attr-defined]
    ndim: int = _first(owner).type.ndim - len(next(layout.leaves()).shape)
    return ndim


def records_attribute(scope: Scope, node: ast.Attribute, owner: Aggregate) -> Any:
    """`shape`, `size`, `ndim`, `itemsize` and `dtype` of an array of records."""
    loc, first, layout = scope.loc(node), _first(owner), owner.kind.__pyarray_layout__  # type: ignore[attr-defined]
    sizes = tuple(ir.Size(loc, ir.INDEX, first, axis) for axis in range(_ndim(owner)))
    if node.attr == "shape":
        return sizes
    if node.attr == "size":
        return functools.reduce(lambda a, b: binary(loc, "mul", a, b), sizes or (constant(loc, 1),))
    if node.attr in ("ndim", "itemsize"):
        return constant(loc, len(sizes) if node.attr == "ndim" else layout.dtype.itemsize)
    if node.attr == "dtype":
        return ir.Static(layout.dtype)
    if node.attr in owner.names:
        what = f"{node.attr!r} is a field of the records"
        array = ast.unparse(node.value)
        scope.fail(node, what, f'write {array}["{node.attr}"] for its view, or {array}[i].{node.attr} of one record')
    there = 'there are shape, size, ndim, itemsize, dtype, and fields: a[i].x, a["x"]'
    scope.fail(node, f"an array of records in a kernel has no attribute {node.attr!r}", there)


def records_length(scope: Scope, where: ast.AST, owner: Aggregate) -> ir.Expr:
    """`len(a)`."""
    if not _ndim(owner):
        scope.fail(where, "a 0-d array has no len()")
    return ir.Size(scope.loc(where), ir.INDEX, _first(owner), 0)


def record_sequence(scope: Scope, node: ast.AST, owner: Aggregate, before: list[ir.Stmt], names: set[str]) -> Sequence:
    """The records of a 1-D array, as it is before the loop, which assigns `names`."""
    if _ndim(owner) != 1:
        scope.fail(node, f"a loop over a {_ndim(owner)}-D array of records", "loop over range(a.shape[0])")

    def held(value: Any) -> Any:
        if isinstance(value, Aggregate):
            return replace(value, items=tuple(map(held, value.items)))
        root = value.name.partition(".")[0].partition("[")[0] if isinstance(value, ir.Local) else None
        return value if root is not None and root not in names else assign_temporary(scope, value, before)

    array, loc = held(owner), scope.loc(node)
    length = ir.Size(loc, ir.INDEX, _first(array), 0)
    last = binary(loc, "sub", length, constant(loc, 1))
    return Sequence(
        length,
        lambda index: _record(scope, node, array, (index,)),
        lambda index: _record(scope, node, array, (binary(loc, "sub", last, index),)),
    )


# ---- assignment


def fixed_place(scope: Scope, value: Any, into: list[ir.Stmt], always: bool) -> Any:
    """What is assigned, a record, a load or a view: with indices that may be evaluated again, `always` in temporaries
    since a variable of theirs may change."""
    known: dict[int, ir.Expr] = {}

    def fixed(x: Any) -> Any:
        plain = isinstance(x, ir.Const) or (not always and all(isinstance(n, _SIMPLE) for n in ir.walk(x)))
        if plain or isinstance(x, ir.Range):
            return x
        if id(x) not in known:
            known[id(x)] = assign_temporary(scope, x, into)
        return known[id(x)]

    def changed(part: Any) -> Any:
        if isinstance(part, ir.Let):
            into.append(ir.Assign(part.loc, part.name, part.value))
            return changed(part.body)
        if isinstance(part, Aggregate):
            assert part.place is not None
            into.extend(ir.Assign(x.loc, name, x) for name, x in part.place.lets)
            return _from_place(scope, part, tuple(map(changed, part.place.parts)))
        array = part.array if isinstance(part.array, ir.Local) and not always else fixed(part.array)
        if isinstance(part, ir.Load):
            return replace(part, array=array, index=tuple(map(fixed, part.index)))
        return replace(part, array=array, parts=tuple(map(fixed, part.parts)))

    return changed(value)


def _from_place(scope: Scope, record: Aggregate, parts: tuple[Any, ...]) -> Aggregate:
    values = tuple(loaded(scope, p.loc, p) if is_array(p) else p for p in parts)
    return replace(record, items=values, place=RecordPlace((), parts))


def store_record(scope: Scope, where: ast.AST, part: Any, value: Any) -> list[ir.Stmt]:
    """Stores a value into a place that is fixed: a record, a number of it or an array of it. The value is made of
    variables and constants."""
    if isinstance(part, Aggregate):
        items = _items_for(scope, where, part, value)
        assert part.place is not None
        pairs = zip(part.place.parts, items, strict=True)
        return [statement for inner, item in pairs for statement in store_record(scope, where, inner, item)]
    shape = constant_shape(part)
    if shape is not None:
        return store_view(scope, where, part, check_store(scope, where, shape, part.type.dtype, value))
    value, dtype = scope.number(where, value), part.type.dtype
    if value.type.dtype.kind == "c" and dtype.kind not in "cb":
        advice = "store its .real, .imag or abs()"
        scope.fail(where, f"{with_article(value.type)} can't be stored in a field of {dtype}", advice)
    return [ir.Store(scope.loc(where), part.array, part.index, scope.coerce(where, value, ir.ScalarType(dtype)))]


def _items_for(scope: Scope, where: ast.AST, part: Aggregate, value: Any) -> tuple[Any, ...]:
    """What is stored into the fields of a record, in their order."""
    items = as_tuple(value)
    if isinstance(value, Aggregate) and not is_records(value) and value.names == part.names:
        items = value.items
    if items is None or len(items) != len(part.names):
        name = part.kind.__name__
        advice = f"{name}(...), another record or a tuple of {len(part.names)} values can"
        scope.fail(where, f"{describe(value)} can't be stored as a {name}", advice)
    return items


def is_place(value: Any) -> bool:
    """Whether it is a record in an array, or a part of one, by its index."""
    return isinstance(value, Aggregate) and value.place is not None
