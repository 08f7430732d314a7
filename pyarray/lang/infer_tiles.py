"""Infers tiles: how they are loaded, made, indexed and stored.

An index of an array that is a tile index loads the elements at all its values; one that is a tile of integers loads
the elements at these. Indices with the same axis go together, those with different axes are combined."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..dtypes import asdtype, float64
from . import ir
from .aggregates import as_tuple
from .infer_access import load_element, wrap_index
from .infer_scope import Scope
from .infer_temporaries import assign_temporary
from .infer_tile_axes import with_axes
from .infer_values import Method, describe
from .promotion import binary, call, cast, constant
from .tile_values import (
    Tile,
    TileIndex,
    Where,
    as_tile,
    assign_tile,
    broadcast_axes,
    check_size,
    elementwise_tile,
    hoisted,
    index_local,
    is_tile,
    materialized,
    named_axes,
    over_tile,
    run_variable,
    start_variable,
    stop_variable,
    tile_type,
)
from .types import axis_label

CREATION = {"zeros": 0, "ones": 1, "full": None}
REDUCTIONS = ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "argmin", "argmax")
METHODS = (
    *REDUCTIONS, "cumsum", "cumprod", "astype", "copy", "dot", "transpose", "swapaxes", "squeeze", "clip", "round",
    "conj", "conjugate",
)  # fmt: skip


# ---- elements of arrays


def has_tile_index(scope: Scope, node: ast.Subscript) -> bool:
    """Whether a subscript of an array is by tiles."""
    if not scope.tile_indices:
        return False
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    names = {n.id for item in items for n in ast.walk(item) if isinstance(n, ast.Name)}
    if not any(n in scope.tile_indices or isinstance(scope.types.get(n), ir.TileType) for n in names):
        return False
    return any(not isinstance(item, (ast.Slice, ast.Constant)) and is_tile(_value_of(scope, item)) for item in items)


def _value_of(scope: Scope, item: ast.expr) -> Any:
    """The value of an index, whose statements are left out."""
    count, pending = scope.temporary_count, list(scope.pending)
    value = scope.infer(item)
    scope.pending[:] = pending
    scope.temporary_count = count
    return value


def indexed(
    scope: Scope, node: ast.Subscript, array: ir.Expr, stored: bool = False
) -> tuple[ir.Expr, tuple[ir.Expr, ...], ir.TileType]:
    """(array, index of the element at hand, type of the tile) of a subscript by tiles. If elements are stored, the
    index is of what the array was before."""
    if not isinstance(array, ir.Local):
        array = assign_temporary(scope, array, scope.pending)
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    items = [x for x in items if not (isinstance(x, ast.Constant) and x.value is ...)]  # there is no axis to stand for
    index, axes, capacities = list[ir.Expr](), list[str](), list[int]()
    count = sum(not is_new_axis(scope, x) for x in items)
    if count != array.type.ndim:
        scope.fail(node, f"{count} indices for a {array.type}", "an access by tiles has an index for each axis")
    for item in items:
        if is_new_axis(scope, item):
            axes.append("")
            capacities.append(1)
            continue
        if isinstance(item, (ast.Slice, ast.Constant)) and not isinstance(getattr(item, "value", None), int):
            what = "an access by tiles has no slices"
            scope.fail(item, what, "name the axis: (k,) = pa.tiles(a.shape[1], 64)")
        value = scope.infer(item)
        tile = as_tile(scope, item, value)
        _check_integers(scope, item, tile)
        if stored and reads_array(scope, tile.element, array):
            tile = materialized(scope, item, tile)
        element = scope.integer(item, tile.element, "an index")
        index.append(wrap_index(scope, item, element, array, len(index)))
        for axis, n in zip(tile.type.axes, tile.type.shape, strict=True):
            if not axis:
                scope.fail(item, f"an index has no axis of size 1, got {describe(value)}", "index without the None")
            if axis not in axes:
                axes.append(axis)
                capacities.append(n)
    return array, tuple(index), ir.TileType(array.type.dtype, tuple(capacities), tuple(axes))


def is_new_axis(scope: Scope, item: ast.expr) -> bool:
    """Whether an index is None, or pa.newaxis."""
    if isinstance(item, (ast.Name, ast.Attribute)):
        value = _value_of(scope, item)
        return isinstance(value, ir.Static) and value.value is None
    return isinstance(item, ast.Constant) and item.value is None


def _check_integers(scope: Scope, item: ast.expr, tile: Tile) -> None:
    kind = tile.type.dtype.kind
    if named_axes(tile.type) and kind not in "iu":
        advice = "write pa.int64(t)"
        if kind == "b":
            advice = "select by pa.where(mask, a[i], 0), and store by pa.copyto(a[i], x, where=mask)"
        scope.fail(item, f"an index is a tile of integers, got {describe(tile)}", advice)


def load_tile(scope: Scope, node: ast.Subscript, array: ir.Expr) -> Tile:
    array, index, kind = indexed(scope, node, array)
    kind = tile_type(scope, node, kind.dtype, kind.axes, kind.shape)
    return Tile(kind, load_element(scope, node, array, index))


def store_tile(
    scope: Scope, node: ast.Subscript, array: ir.Expr, value: Any, condition: Any = None, where: ast.AST | None = None
) -> list[ir.Stmt]:
    """`a[i, j] = value`, of the elements for which the condition holds."""
    before, scope.pending = scope.pending, []
    array, index, target = indexed(scope, node, array, stored=True)
    tile = as_tile(scope, where or node, value)
    mask = None if condition is None else as_tile(scope, where or node, condition)
    for part in (tile, mask):
        if part is not None:
            _check_fits(scope, where or node, part, target)
    if _reads_elsewhere(scope, tile.element, array, index, target):
        tile = materialized(scope, where or node, tile)
    if mask is not None and _reads_elsewhere(scope, mask.element, array, index, target):
        mask = materialized(scope, where or node, mask)
    loc = scope.loc(node)
    dtype = array.type.dtype
    if tile.type.dtype.kind == "c" and dtype.kind not in "cb":
        scope.fail(node, f"a {tile.type.dtype} can't be stored in an array of {dtype}", "store its .real or .imag")
    stored: ir.Stmt = ir.Store(loc, array, index, scope.coerce(node, tile.element, ir.ScalarType(dtype)))
    if mask is not None:
        stored = ir.If(loc, scope.truth(where or node, mask.element), (stored,), ())
    result = [*scope.pending, *over_tile(loc, target, [stored])]
    scope.pending = before
    return result


def _check_fits(scope: Scope, where: ast.AST, tile: Tile, target: ir.TileType) -> None:
    """A tile may be broadcast to the axes that are stored, and has no others."""
    axes, _ = broadcast_axes(scope, where, [target, tile.type])
    if tuple(axes) != target.axes:
        own, there = (", ".join(map(axis_label, k.axes)) for k in (tile.type, target))
        scope.fail(where, f"a tile of ({own}) can't be stored into elements of ({there})", "reduce it, or transpose it")


def _reads_elsewhere(
    scope: Scope, element: ir.Expr, array: ir.Expr, index: tuple[ir.Expr, ...], target: ir.TileType
) -> bool:
    """Whether other elements of the array are read than the one that is stored, which then may have changed; or this
    one, where it is stored more than once."""
    own = [n for n in ir.walk(element) if isinstance(n, ir.Load) and _may_be(scope, n.array, array)]
    if not all(isinstance(n.array, ir.Local) and n.array.name == array.name for n in own):  # type: ignore[union-attr]
        return True  # a view
    return not all(_same(n.index, index) for n in own) or (bool(own) and not _is_once(index, target))


def reads_array(scope: Scope, element: ir.Expr, array: ir.Expr) -> bool:
    return any(isinstance(n, ir.Load) and _may_be(scope, n.array, array) for n in ir.walk(element))


def _may_be(scope: Scope, read: ir.Expr, array: ir.Expr) -> bool:
    """Whether an array is another one, or a view of it. Parameters of a kernel are different arrays, those of a
    function may be one."""
    if not isinstance(read, ir.Local) or not isinstance(array, ir.Local):
        return True
    roots = {x.name.partition(".")[0] for x in (read, array)}
    return read.name == array.name or not scope.is_kernel or not roots <= scope.params.keys()


def _is_once(index: tuple[ir.Expr, ...], target: ir.TileType) -> bool:
    """Whether all elements of a tile have different indices: each axis is an index by itself, or with a number."""
    runs = {run_variable(axis) for axis, _ in named_axes(target)}
    plain = set[str]()
    for item in index:
        parts = (item.a, item.b) if isinstance(item, ir.Binary) and item.op in ("add", "sub") else (item,)
        names = [n.name for part in parts for n in ir.walk(part) if isinstance(n, ir.Local) and n.name in runs]
        if len(names) == 1 and any(isinstance(part, ir.Local) and part.name == names[0] for part in parts):
            plain.add(names[0])
    return plain == runs


def _same(a: Sequence[ir.Expr], b: Sequence[ir.Expr]) -> bool:
    """Whether two indices are equal, wherever they stand."""
    plain = ir.Loc("", 0, 0, 0)

    def without_loc(node: Any) -> Any:
        return replace(node, loc=plain) if isinstance(node, ir.Node) else node

    return all(ir.rewrite(x, without_loc) == ir.rewrite(y, without_loc) for x, y in zip(a, b, strict=True))


# ---- making tiles


def create_tile(scope: Scope, node: ast.Call, name: str) -> Tile | None:
    """`pa.zeros((i, j), pa.float32)` of tile indices; None for other shapes."""
    if not scope.tile_indices or not node.args or name not in ("zeros", "ones", "full", "empty"):
        return None
    names = {n.id for n in ast.walk(node.args[0]) if isinstance(n, ast.Name)}
    if not names & scope.tile_indices.keys():
        return None
    shape = scope.infer(node.args[0])
    indices = as_tuple(shape) if as_tuple(shape) is not None else (shape,)
    if not all(isinstance(x, TileIndex) for x in indices or ()):
        scope.fail(node.args[0], "the shape of a tile is made of tile indices", "write pa.zeros((i, j), pa.float32)")
    if name == "empty":
        scope.fail(node, "empty() makes no tiles", "write pa.zeros((i, j), pa.float32)")
    arguments, given = list(node.args[1:]), None
    for keyword in node.keywords:
        if keyword.arg != "dtype":
            scope.fail(keyword.value, f"{name}() of tiles has no argument {keyword.arg!r}", "there is dtype")
        given = keyword.value
    value: Any = constant(scope.loc(node), CREATION[name] or 0)
    if name == "full":
        if not arguments:
            scope.fail(node, "full() takes a shape and a value", "write pa.full((i, j), x)")
        value = hoisted(scope, scope.number(arguments[0], scope.infer(arguments.pop(0))))
    given = arguments.pop() if arguments and given is None else given
    if arguments:
        scope.fail(node, f"{name}() of tiles takes a shape{' and a value' if name == 'full' else ''} and a dtype")
    dtype = value.type.dtype if name == "full" else float64
    if given is not None:
        found = scope.infer(given)
        try:
            dtype = asdtype(found.value)
        except (TypeError, AttributeError):
            scope.fail(given, f"{name}() takes a dtype, got {describe(found)}", "write dtype=pa.float32")
    kind = tile_type(scope, node, dtype, [x.axis for x in indices or ()], [x.capacity for x in indices or ()])
    return Tile(kind, scope.coerce(node, value, ir.ScalarType(dtype)))


# ---- indices and attributes of tiles


def subscript_tile(scope: Scope, node: ast.Subscript, value: Any) -> Tile:
    """`m[:, None]`: a tile with further axes of size 1."""
    tile = as_tile(scope, node, value)
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    kept = [isinstance(x, ast.Slice) and x.lower is x.upper is x.step is None for x in items]
    new = [is_new_axis(scope, x) for x in items]
    wide = [isinstance(x, ast.Constant) and x.value is ... for x in items]
    if not all(a or b or c for a, b, c in zip(kept, new, wide, strict=True)) or sum(wide) > 1:
        scope.fail(node, "of a tile no elements are taken", "an index of a tile has : and None; where() selects")
    missing = tile.type.ndim - sum(kept)
    if missing < 0:
        scope.fail(node, f"{sum(kept)} axes of a {tile.type}")
    rest = iter(zip(tile.type.axes, tile.type.shape, strict=True))
    axes = list[tuple[str, int]]()
    for is_new, is_wide in zip(new, wide, strict=True):
        for _ in range(missing if is_wide else 1):
            axes.append(("", 1) if is_new else next(rest))
    axes += rest
    return Tile(replace(tile.type, axes=tuple(a for a, _ in axes), shape=tuple(n for _, n in axes)), tile.element)


def length(scope: Scope, where: Where, axis: str) -> ir.Expr:
    """How many values a tile index has."""
    loc = scope.loc(where)
    bounds = (index_local(loc, name(axis)) for name in (stop_variable, start_variable))
    return ir.Binary(loc, ir.INDEX, "sub", *bounds) if axis else constant(loc, 1)


def tile_attribute(scope: Scope, node: ast.Attribute, value: Any) -> Any:
    """An attribute or method of a tile, or of a tile index."""
    loc, name = scope.loc(node), node.attr
    if isinstance(value, TileIndex):
        if name in ("start", "stop"):
            return index_local(loc, (start_variable if name == "start" else stop_variable)(value.axis))
        if name == "size":
            return length(scope, node, value.axis)
        if name not in ("T", "shape", "ndim", "dtype", *METHODS):
            advice = "there are start, stop and size, and what tiles have"
            scope.fail(node, f"a tile index has no attribute {name!r}", advice)
        value = as_tile(scope, node, value)
    tile = as_tile(scope, node, value)
    if name == "T":
        return with_axes(tile, range(tile.type.ndim)[::-1])
    if name == "mT" and (ndim := tile.type.ndim) > 1:
        return with_axes(tile, (*range(ndim - 2), ndim - 1, ndim - 2))
    if name in ("real", "imag"):
        return elementwise_tile(scope, node, [tile], lambda x: scope.apply(node, call, loc, name, [x]))
    if name == "size":
        lengths = [length(scope, node, axis) for axis in tile.type.axes]
        return functools.reduce(lambda a, b: binary(loc, "mul", a, b), lengths)
    if name == "shape":
        return tuple(length(scope, node, axis) for axis in tile.type.axes)
    if name == "ndim":
        return constant(loc, tile.type.ndim)
    if name == "dtype":
        return ir.Static(tile.type.dtype.numpy)
    if name in METHODS:
        return ir.Static(Method(value, name))
    there = ", ".join(("shape", "size", "ndim", "dtype", "T", "mT", "real", "imag", *METHODS))
    scope.fail(node, f"a tile has no attribute {name!r}", f"there are {there}")


# ---- variables


def assign_tile_name(
    scope: Scope, where: ast.AST, name: str, value: Any, check: Callable[[Scope, ast.AST, str], None]
) -> list[ir.Stmt]:
    """`x = tile`: its elements go into the variable's memory."""
    check(scope, where, name)
    tile = as_tile(scope, where, value)
    if name in scope.structures:
        scope.fail(where, f"{name!r} is {describe(scope.structures[name])} and here a {tile.type}", "use another name")
    kind: Any = check_size(scope, where, scope.set_type(where, name, tile.type))  # type: ignore[arg-type]
    scope.assigned.add(name)
    if not named_axes(kind):
        loc = scope.loc(where)
        value = cast(tile.element, kind.dtype)
        return [ir.SetElement(loc, name, kind.shape, (constant(loc, 0),) * kind.ndim, value)]
    return assign_tile(scope, where, name, tile, kind)
