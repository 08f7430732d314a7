"""Infers functions of tiles that compute nothing: what changes axes, tiles of one value, and parts of numbers."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from . import ir
from .infer_scope import Scope
from .infer_values import describe
from .promotion import call
from .tile_values import Tile, as_tile, elementwise_tile

_LIKE = {"zeros_like": 0, "ones_like": 1}
_NAMES = {"permute_dims": "transpose", "conjugate": "conj"}
FUNCTIONS = (
    "transpose", "permute_dims", "matrix_transpose", "swapaxes", "expand_dims", "squeeze", *_LIKE, "full_like", "clip",
    "round", "conj", "conjugate",
)  # fmt: skip
# arguments behind the tile, by position or keyword
_PARAMETERS = {
    "transpose": ("axes",), "matrix_transpose": (), "swapaxes": ("axis1", "axis2"), "expand_dims": ("axis",),
    "squeeze": ("axis",), "clip": ("min", "max"), "round": (), "conj": (),
}  # fmt: skip


def call_axes_function(scope: Scope, node: ast.Call, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    name = _NAMES.get(name, name)
    tile = as_tile(scope, node, args[0])
    if name == "transpose" and len(args) > 2:
        args = [args[0], tuple(args[1:])]  # t.transpose(1, 0)
    given = _bound(scope, node, name, args[1:], keywords)
    if name in ("round", "conj"):
        return elementwise_tile(scope, node, [tile], lambda x: scope.apply(node, call, scope.loc(node), name, [x]))
    if name == "clip":
        return _clip(scope, node, tile, given)
    ndim = tile.type.ndim
    if name == "matrix_transpose":
        if ndim < 2:
            scope.fail(node, f"a matrix has two axes, got {describe(tile)}", "write t[:, None] for a column")
        return with_axes(tile, [*range(ndim - 2), ndim - 1, ndim - 2])
    if name == "swapaxes":
        order = list(range(ndim))
        a, b = (_axis(scope, node, given.get(x), ndim) for x in ("axis1", "axis2"))
        order[a], order[b] = b, a
        return with_axes(tile, order)
    axes = given.get("axis" if name != "transpose" else "axes")
    if name == "transpose":
        return with_axes(tile, _order(scope, node, tile, axes))
    return _expand(scope, node, tile, axes) if name == "expand_dims" else _squeeze(scope, node, tile, axes)


def _bound(scope: Scope, node: ast.Call, name: str, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """The arguments behind the tile by their names."""
    names = _PARAMETERS[name]
    given = {"min": "a_min", "max": "a_max"} if name == "clip" else {}
    keywords = {next((n for n, other in given.items() if other == k), k): x for k, x in keywords.items()}
    if len(args) > len(names) or set(keywords) - set(names[len(args) :]):
        takes = ", ".join(f"{n}=" for n in names)
        scope.fail(node, f"{name}() of tiles takes a tile{' and ' * bool(names)}{takes}")
    return dict(zip(names, args, strict=False)) | keywords


def _axis(scope: Scope, node: ast.AST, value: Any, ndim: int) -> int:
    """The number of an axis, from 0 on."""
    if not isinstance(value, ir.Const) or type(value.value) is not int:
        found = "nothing" if value is None else describe(value)
        scope.fail(node, f"an axis is a constant, got {found}")
    if not -ndim <= value.value < ndim:
        scope.fail(node, f"axis {value.value} is out of range for {ndim} axes")
    return value.value % ndim


def _order(scope: Scope, node: ast.AST, tile: Tile, axes: Any) -> list[int]:
    if axes is None or (isinstance(axes, ir.Static) and axes.value is None):
        return list(range(tile.type.ndim))[::-1]
    order = [_axis(scope, node, x, tile.type.ndim) for x in (axes if isinstance(axes, tuple) else (axes,))]
    if sorted(order) != list(range(tile.type.ndim)):
        scope.fail(node, f"{tuple(order)} is no order of the axes of {describe(tile)}")
    return order


def with_axes(tile: Tile, order: Sequence[int]) -> Tile:
    axes, shape = tile.type.axes, tile.type.shape
    kind = replace(tile.type, axes=tuple(axes[k] for k in order), shape=tuple(shape[k] for k in order))
    return Tile(kind, tile.element)


def _expand(scope: Scope, node: ast.AST, tile: Tile, axis: Any) -> Tile:
    axes = list(zip(tile.type.axes, tile.type.shape, strict=True))
    axes.insert(_axis(scope, node, axis, tile.type.ndim + 1), ("", 1))
    return Tile(replace(tile.type, axes=tuple(a for a, _ in axes), shape=tuple(n for _, n in axes)), tile.element)


def _squeeze(scope: Scope, node: ast.AST, tile: Tile, axis: Any) -> Any:
    """Without axes of size 1: those that keepdims= and None make, since a tile index may have any size."""
    given = axis if isinstance(axis, tuple) else (axis,)
    ones = [k for k, a in enumerate(tile.type.axes) if not a]
    gone = ones if axis is None else [_axis(scope, node, x, tile.type.ndim) for x in given]
    if not set(gone) <= set(ones):
        scope.fail(node, f"squeeze() removes axes of size 1, and {describe(tile)} has others", "write t.sum(axis=...)")
    return with_axes(tile, [k for k in range(tile.type.ndim) if k not in gone])


def squeezed(tile: Tile) -> Tile:
    """Without any axes of size 1."""
    return with_axes(tile, [k for k, axis in enumerate(tile.type.axes) if axis])


def _clip(scope: Scope, node: ast.AST, tile: Tile, given: dict[str, Any]) -> Any:
    value: Any = tile
    for which, name in (("min", "max"), ("max", "min")):
        limit = given.get(which)
        if limit is not None and not (isinstance(limit, ir.Static) and limit.value is None):
            both = [value, limit]
            value = elementwise_tile(
                scope, node, both, lambda *xs, name=name: scope.apply(node, call, scope.loc(node), name, [*xs])
            )
    return value


def tile_like(scope: Scope, node: ast.Call, name: str, args: list[Any], keywords: dict[str, Any], dtype: Any) -> Tile:
    """`pa.zeros_like(t)`: a tile of one value with the axes of another; of its dtype if none is given."""
    count = 1 + (name == "full_like")
    if len(args) != count or set(keywords) - {"dtype"}:
        scope.fail(node, f"{name}() of tiles takes a tile{', a value' * (count - 1)} and dtype=")
    tile = as_tile(scope, node, args[0])
    value = as_tile(scope, node, args[1] if count > 1 else scope.from_python(node, _LIKE[name]))
    if value.type.ndim:
        scope.fail(node, f"full_like() takes a number, got {describe(value)}", "write t * 0 + x")
    kind = replace(tile.type, dtype=dtype or tile.type.dtype)
    return Tile(kind, scope.coerce(node, value.element, ir.ScalarType(kind.dtype)))
