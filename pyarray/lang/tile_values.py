"""Tiles during type inference: what one is at one position, and the loops over its positions.

A tile index stands for a run of consecutive indices, of constant capacity and any length up to it. A tile has an axis
for each of its tile indices, by name. While an expression is inferred, a tile is the expression of its element as a
number, in terms of the variables that run over its axes; so broadcasting and transposing are nothing, and each element
computes as a number does. Variables keep tiles in memory (`ir.TileType`)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from . import ir
from .infer_scope import Scope
from .infer_temporaries import assign_temporary, new_temporary
from .infer_values import describe
from .promotion import binary, cast, constant
from .types import axis_label

MOST_BYTES = 1 << 17  # of a tile: the registers of half a multiprocessor, and a few of them are on a thread's stack

Where = ast.AST | ir.Loc


@dataclass(frozen=True, eq=False)
class TileIndex:
    """The consecutive indices from `start` to `stop` that a loop over tiles gives a name."""

    axis: str
    capacity: int

    def __repr__(self) -> str:
        return f"tile index {axis_label(self.axis)!r}"

    @property
    def type(self) -> TileIndex:
        """What messages call it; it has no type of the tree's."""
        return self


@dataclass(frozen=True, eq=False)
class Tile:
    """The value of an expression that is a tile: its element in terms of the variables of its axes."""

    type: ir.TileType
    element: ir.Expr

    @property
    def loc(self) -> ir.Loc:
        return self.element.loc


@dataclass(frozen=True, eq=False)
class TileSpace:
    """`pa.tiles(...)` before it is looped over or unpacked: sizes and capacities of its axes."""

    sizes: tuple[ir.Expr, ...]
    capacities: tuple[int, ...]

    def __repr__(self) -> str:
        return "loop over tiles"

    @property
    def type(self) -> TileSpace:
        """As that of a tile index."""
        return self


@dataclass(frozen=True)
class Done:
    """The value of a call that is a statement by itself; what it does is pending."""

    type: None = None


def axis_name(scope: Scope, node: ast.Name) -> str:
    """The axis of a tile index, which its place in the source tells from others of that name."""
    return f"{scope.inlined}{node.lineno - scope.source.node.lineno}_{node.col_offset}:{node.id}"


def run_variable(axis: str) -> str:
    """The variable that runs over an axis."""
    return f".x{axis.partition(':')[0]}"


def start_variable(axis: str) -> str:
    return f".a{axis.partition(':')[0]}"


def stop_variable(axis: str) -> str:
    return f".b{axis.partition(':')[0]}"


def is_axis_variable(name: str) -> bool:
    """Whether it is one of these three; temporaries are numbers."""
    return name[:2] in (".x", ".a", ".b")


def index_local(loc: ir.Loc, name: str) -> ir.Local:
    return ir.Local(loc, ir.INDEX, name)


def define_index(scope: Scope, node: ast.Name, capacity: int) -> str:
    """Gives a tile index its name; its axis."""
    axis = axis_name(scope, node)
    if node.id in scope.types or node.id in scope.structures:
        scope.fail(node, f"{node.id!r} is a tile index here and something else elsewhere", "use another name")
    scope.tile_indices[node.id] = TileIndex(axis, capacity)
    for name in (run_variable(axis), start_variable(axis), stop_variable(axis)):
        scope.types[name] = ir.INDEX
    scope.assigned |= {node.id, start_variable(axis), stop_variable(axis)}
    return axis


# ---- values


def is_tile(value: Any) -> bool:
    return isinstance(value, (Tile, TileIndex)) or isinstance(getattr(value, "type", None), ir.TileType)


def tile_type(scope: Scope, where: Where, dtype: Any, axes: Sequence[str], capacities: Sequence[int]) -> ir.TileType:
    named = [axis for axis in axes if axis]
    if len(set(named)) < len(named):
        twice = next(axis_label(axis) for axis in named if named.count(axis) > 1)
        what = f"a tile has each tile index once, this one has {twice!r} twice"
        scope.fail(where, what, "take the second one from a loop of its own, for k in pa.tiles(...)")
    return ir.TileType(dtype, tuple(capacities), tuple(axes))


def as_tile(scope: Scope, where: Where, value: Any) -> Tile:
    """A tile, a tile index or a number as the expression of an element."""
    loc = scope.loc(where)
    if isinstance(value, Tile):
        return value
    if isinstance(value, TileIndex):
        kind = ir.TileType(ir.INDEX.dtype, (value.capacity,), (value.axis,))
        return Tile(kind, index_local(loc, run_variable(value.axis)))
    if isinstance(getattr(value, "type", None), ir.TileType):
        kind = value.type
        return Tile(kind, ir.Element(loc, ir.ScalarType(kind.dtype), value, positions(loc, kind.axes)))
    if not isinstance(getattr(value, "type", None), ir.ScalarType):
        what = f"expected a tile or a number, got {describe(value)}"
        scope.fail(where, what, "load a tile by its indices: a[i, j]")
    return Tile(ir.TileType(value.type.dtype, (), ()), hoisted(scope, value))


def hoisted(scope: Scope, value: ir.Expr) -> ir.Expr:
    """A value that all elements have, evaluated once, before the statement."""
    if isinstance(value, (ir.Const, ir.Local)):
        return value
    return assign_temporary(scope, value, scope.pending)


def positions(loc: ir.Loc, axes: Iterable[str]) -> tuple[ir.Expr, ...]:
    """Where the element at hand is in a tile."""
    return tuple(
        binary(loc, "sub", index_local(loc, run_variable(axis)), index_local(loc, start_variable(axis)))
        if axis
        else constant(loc, 0)
        for axis in axes
    )


def elementwise_tile(scope: Scope, where: Where, values: Sequence[Any], compute: Callable[..., ir.Expr]) -> Any:
    """The tile of `compute(*elements)`, broadcast as NumPy does: axes are aligned from the last one."""
    tiles = [as_tile(scope, where, value) for value in values]
    axes, capacities = broadcast_axes(scope, where, [tile.type for tile in tiles])
    element = scope.apply(where, compute, *(tile.element for tile in tiles))
    if not axes:
        return element
    if not isinstance(getattr(element, "type", None), ir.ScalarType):
        what = f"a function that is called for each element returns a number, this one {describe(element)}"
        scope.fail(where, what, "leave out the annotations of its parameters: then it takes tiles")
    return Tile(tile_type(scope, where, element.type.dtype, axes, capacities), element)


def broadcast_axes(scope: Scope, where: Where, kinds: Sequence[ir.TileType]) -> tuple[list[str], list[int]]:
    count = max(kind.ndim for kind in kinds)
    axes, capacities = [""] * count, [1] * count
    for kind in kinds:
        for k, (axis, capacity) in enumerate(zip(kind.axes, kind.shape, strict=True), count - kind.ndim):
            if axis and axes[k] and axis != axes[k]:
                found = " and ".join(f"({', '.join(map(axis_label, x.axes))})" for x in kinds if x.axes)
                what = f"tiles of {found} don't broadcast: axes are aligned from the last one"
                scope.fail(where, what, "of a tile that lacks the last axis write m[:, None], or keepdims=True")
            if axis:
                axes[k], capacities[k] = axis, capacity
    return axes, capacities


# ---- statements


def loops_over(
    loc: ir.Loc, axes: Sequence[tuple[str, int]], body: Sequence[ir.Stmt], reductions: tuple[tuple[str, str], ...] = ()
) -> ir.Stmt:
    """The nest of loops over these axes (name, capacity); the innermost one has the reductions."""
    made = tuple(body)
    for axis, capacity in reversed(axes):
        range_ = ir.Range(index_local(loc, start_variable(axis)), index_local(loc, stop_variable(axis)), None)
        name = run_variable(axis)
        made = (ir.For(loc, (name,), (range_,), made, None, reductions, unordered=bool(reductions), capacity=capacity),)
        reductions = ()
    (nest,) = made
    return nest


def named_axes(kind: ir.TileType) -> list[tuple[str, int]]:
    return [(axis, n) for axis, n in zip(kind.axes, kind.shape, strict=True) if axis]


def over_tile(loc: ir.Loc, kind: ir.TileType, body: Sequence[ir.Stmt]) -> list[ir.Stmt]:
    """What is done for each element of a tile; once if all its axes have size 1."""
    axes = named_axes(kind)
    return [loops_over(loc, axes, body)] if axes else list(body)


def assign_tile(scope: Scope, where: Where, name: str, tile: Tile, kind: ir.TileType) -> list[ir.Stmt]:
    """The loop that stores a tile into a variable of that type."""
    loc = scope.loc(where)
    value = cast(tile.element, kind.dtype)
    return over_tile(loc, kind, [ir.SetElement(loc, name, kind.shape, positions(loc, kind.axes), value)])


def check_size(scope: Scope, where: Where, kind: ir.TileType) -> ir.TileType:
    """The type, if a tile of it may be a variable."""
    if (size := kind.size * kind.dtype.itemsize) > MOST_BYTES:
        what = f"a tile of {kind.dtype} of shape {kind.shape} has {size} bytes, and {MOST_BYTES} is the most"
        scope.fail(where, what, "choose smaller tile sizes")
    return kind


def copy_tile(scope: Scope, where: Where, value: Any) -> tuple[ir.Local, list[ir.Stmt]]:
    """A variable with the elements of a tile, and the statements that set it."""
    tile = as_tile(scope, where, value)
    loc, kind = scope.loc(where), check_size(scope, where, tile.type)
    name = new_temporary(scope, kind)
    return ir.Local(loc, kind, name), assign_tile(scope, where, name, tile, kind)


def materialized(scope: Scope, where: Where, value: Any) -> Tile:
    """A tile whose elements are in memory, from where they may be read any number of times."""
    tile = as_tile(scope, where, value)
    if isinstance(tile.element, ir.Element) or not named_axes(tile.type):
        return tile
    kind = check_size(scope, where, tile.type)
    name = new_temporary(scope, kind)
    scope.pending += assign_tile(scope, where, name, tile, kind)
    return as_tile(scope, where, ir.Local(scope.loc(where), kind, name))
