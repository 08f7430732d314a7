"""Infers assignments to local arrays and to views of constant shape, whole or in part, element by element."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..dtypes import DType, float64
from ..errors import with_article
from . import ir
from .infer_elements import UNROLLED, Index, broadcast_element, build, element, generate, indices, loaded
from .infer_local_arrays import Selection, select_items
from .infer_scope import Scope
from .infer_temporaries import new_temporary
from .infer_values import constant_shape, is_local_array
from .promotion import constant


@dataclass(frozen=True)
class Place:
    """What is assigned: the part `selections` of a variable that is a local array, each of the one before."""

    local: ir.Local
    selections: tuple[Selection, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        kind: Any = self.local.type
        return self.selections[-1].shape if self.selections else kind.shape

    @property
    def is_element(self) -> bool:
        return bool(self.selections) and self.selections[-1].is_element

    def index(self, loc: ir.Loc, inner: Index) -> Index:
        for selection in reversed(self.selections):
            inner = selection.index(loc, inner)
        return inner


def place_of(scope: Scope, node: ast.expr) -> Place | None:
    """The place that an expression is; None for what is no part of a variable."""
    if isinstance(node, ast.Subscript):
        outer = place_of(scope, node.value)
        if outer is None:
            return None
        if outer.is_element:
            scope.fail(node, "an element of a local array is a number and can't be indexed")
        return Place(outer.local, (*outer.selections, select_items(scope, node, outer.shape)))
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    value = scope.infer(node)
    return Place(value) if is_local_array(value) and isinstance(value, ir.Local) else None


def with_fixed_indices(scope: Scope, place: Place, into: list[ir.Stmt], assign: Callable[..., ir.Expr]) -> Place:
    """The place with its computed indices in temporaries, by `assign(scope, value, into)`."""

    def fixed(part: Any) -> Any:
        plain = isinstance(part, (range, str, ir.Const))
        return part if plain else assign(scope, part, into)

    return Place(place.local, tuple(Selection(tuple(map(fixed, s.parts))) for s in place.selections))


def read_place(scope: Scope, where: ast.AST, place: Place) -> ir.Expr:
    """Its value now; the indices are evaluated any number of times."""
    loc = scope.loc(where)
    if place.is_element:
        return element(scope, where, place.local, place.index(loc, ()))
    read = lambda operands, index: element(scope, where, operands[0], place.index(loc, index))  # noqa: E731
    computed = any(not isinstance(p, (range, str, ir.Const)) for s in place.selections for p in s.parts)
    if computed and 0 not in place.shape:
        items = tuple(read([place.local], index) for index in indices(loc, place.shape))
        return build(scope, where, place.shape, items)
    return generate(scope, where, place.shape, [place.local], read, "slice")


def store_place(scope: Scope, where: ast.AST, place: Place, value: ir.Expr) -> list[ir.Stmt]:
    """Assigns a number or a local array, which is a variable or constant, to each element of the place."""
    loc, kind = scope.loc(where), ir.ScalarType(place.local.type.dtype)

    def set_at(index: Index) -> ir.Stmt:
        item = scope.coerce(where, broadcast_element(scope, where, value, index), kind)
        return ir.SetElement(loc, place.local.name, place.local.type.shape, place.index(loc, index), item)

    return _each_element(scope, where, place.shape if not place.is_element else (), set_at)


def store_view(scope: Scope, where: ast.AST, view: ir.Expr, value: ir.Expr) -> list[ir.Stmt]:
    """The same for a view of constant shape."""
    loc, kind, shape = scope.loc(where), ir.ScalarType(view.type.dtype), constant_shape(view)
    assert shape is not None

    def set_at(index: Index) -> ir.Stmt:
        item = scope.coerce(where, broadcast_element(scope, where, value, index), kind)
        place: Any = element(scope, where, view, index)
        return ir.Store(loc, place.array, place.index, item)

    return _each_element(scope, where, shape, set_at)


def _each_element(
    scope: Scope, where: ast.AST, shape: tuple[int, ...], set_at: Callable[[Index], ir.Stmt]
) -> list[ir.Stmt]:
    loc = scope.loc(where)
    if ir.LocalArrayType(float64, shape).size <= UNROLLED:
        return [set_at(index) for index in indices(loc, shape)]
    names = [_counter(scope) for _ in shape]
    body = set_at(tuple(ir.Local(loc, ir.INDEX, n) for n in names))
    for name, size in reversed(list(zip(names, shape, strict=True))):
        body = ir.For(loc, (name,), (ir.Range(None, constant(loc, size), None),), (body,))
    return [body]


def _counter(scope: Scope) -> str:
    return new_temporary(scope, ir.INDEX)


def check_store(scope: Scope, where: ast.AST, shape: tuple[int, ...], dtype: DType, value: Any) -> ir.Expr:
    """What is stored into a place of this shape, as a value. A number is any shape."""
    own = constant_shape(value)
    if own is None:
        value, found = scope.number(where, value), tuple[int, ...]()
    else:
        value, found = loaded(scope, where, value), own
    try:
        fits = not found or found == shape or _broadcasts(found, shape)
    except ValueError:
        fits = False
    if not fits:
        scope.fail(where, f"an array of shape {found} can't be stored where {shape} is")
    if value.type.dtype.kind == "c" and dtype.kind not in "cb":
        what = f"{with_article(value.type)} can't be stored in an array of {dtype}"
        scope.fail(where, what, "store its .real, .imag or abs()")
    return value


def _broadcasts(found: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether `found` is broadcast to `shape`."""
    if len(found) > len(shape):
        return False
    own = shape[len(shape) - len(found) :]
    return all(n in (1, m) for n, m in zip(found, own, strict=True))
