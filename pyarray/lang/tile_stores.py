"""Stores of tiles that read other parameters: arguments may overlap, and a statement reads all before it writes.

Inference knows of reads of the array itself (`infer_tiles.store_tile`). What is read of other parameters goes through a
tile where they share memory: on a CPU that is asked at run time, on a GPU such a tile is in registers anyway. Tiles of
more elements than fit there are left alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from . import ir
from .tile_nests import has_tiles, nest_of

MOST_ELEMENTS, MOST_BYTES = 1 << 13, 1 << 16


def separate_stores(tree: ir.Tree, ask: bool) -> ir.Tree:
    """The tree with these tiles; `ask`: for arguments that overlap alone."""
    kernel = tree.kernel
    if not any(isinstance(s, ir.For) and s.loop is not None and has_tiles(s) for s in kernel.body):
        return tree
    separation = _Separation({n for n, kind in kernel.params if isinstance(kind, ir.ArrayType)}, ask)
    body = separation.block(kernel.body)
    variables = (*kernel.variables, *((name, kind) for (kind, _), name in separation.tiles.items()))
    return replace(tree, kernel=replace(kernel, body=body, variables=variables))


class _Separation:
    def __init__(self, arrays: set[str], ask: bool):
        self.arrays, self.ask = arrays, ask
        self.tiles: dict[tuple[ir.TileType, int], str] = {}  # by type, and which one of a store it is

    def block(self, statements: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(x for s in statements for x in self.statement(s))

    def statement(self, s: Any) -> list[Any]:
        if isinstance(s, ir.For) and s.capacity:
            parts = self.separated(s)
            if parts and self.ask:
                return [ir.If(s.loc, ir.NoAlias(s.loc, ir.BOOL), (s,), tuple(parts))]
            return parts or [s]
        if isinstance(s, (ir.For, ir.While)):
            return [replace(s, body=self.block(s.body))]
        if isinstance(s, ir.If):
            return [replace(s, then=self.block(s.then), orelse=self.block(s.orelse))]
        return [s]

    def separated(self, s: ir.For) -> list[Any]:
        """A nest for each part of the store that is read of other arrays, and one that stores."""
        loops, body = nest_of(s)
        condition = body[0].condition if isinstance(body[0], ir.If) and not body[0].orelse else None
        inner = body[0].then if condition is not None else body
        if len(body) != 1 or len(inner) != 1 or not isinstance(inner[0], ir.Store) or loops[-1].reductions:
            return []
        store: Any = inner[0]
        result: list[Any] = []
        if not isinstance(store.array, ir.Local) or store.array.name not in self.arrays:
            return []
        if condition is not None and self.is_read(condition, store.array.name):
            condition = self.copied(loops, condition, None, result)
        index = tuple(
            self.copied(loops, x, condition, result) if self.is_read(x, store.array.name) else x for x in store.index
        )
        value = store.value
        if self.is_read(value, store.array.name):
            value = self.copied(loops, value, condition, result)
        too_large = [x for x in (value, *index) if x is None] or (body[0] is not store and condition is None)
        if not result or too_large:
            return []
        return [*result, _nest(loops, replace(store, index=index, value=value), condition)]

    def is_read(self, e: ir.Expr, stored: str) -> bool:
        """Whether another parameter is."""
        names = [n.array.name for n in ir.walk(e) if isinstance(n, ir.Load) and isinstance(n.array, ir.Local)]
        return any(name != stored and name in self.arrays for name in names)

    def copied(self, loops: list[ir.For], value: Any, condition: Any, into: list[Any]) -> Any:
        """The element of a tile, and before it the nest that sets it; None if the tile is too large."""
        axes, shape = tuple(x.variables[0] for x in loops), tuple(x.capacity for x in loops)
        kind = ir.TileType(value.type.dtype, shape, axes)
        if math.prod(shape) > MOST_ELEMENTS or math.prod(shape) * kind.dtype.itemsize > MOST_BYTES:
            return None
        name = self.tiles.setdefault((kind, len(into)), f".kept{len(self.tiles)}")
        index = tuple(_position(value.loc, x) for x in loops)
        into.append(_nest(loops, ir.SetElement(value.loc, name, shape, index, value), condition))
        local = ir.Local(value.loc, kind, name)
        return ir.Element(value.loc, ir.ScalarType(kind.dtype), local, index)


def _position(loc: ir.Loc, loop: ir.For) -> ir.Expr:
    start: Any = loop.ranges[0].start
    return ir.Binary(loc, ir.INDEX, "sub", ir.Local(loc, ir.INDEX, loop.variables[0]), start)


def _nest(loops: list[ir.For], statement: Any, condition: Any) -> Any:
    made: Any = statement if condition is None else ir.If(statement.loc, condition, (statement,), ())
    for loop in reversed(loops):
        made = replace(loop, body=(made,))
    return made
