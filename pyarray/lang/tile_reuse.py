"""Buffer reuse for CPUs: a tile that is computed of another one, element by element, has the memory of that one. A row
that is normalized in three steps then takes a third of the cache.

`d = t - mean` needs no memory beside that of `t`, if `t` isn't used any more: each element is read where its successor
is written. On GPUs tiles that are used in this way are in registers, which the compiler gives to others by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from . import ir
from .summaries import assigned_in, names_in
from .tile_nests import axes_of, has_tiles, nest_of, run_names
from .traversal import rewrite


def reuse_tiles(tree: ir.Tree) -> ir.Tree:
    """The tree with fewer tiles."""
    kernel = tree.kernel
    if not any(isinstance(s, ir.For) and s.loop is not None and has_tiles(s) for s in kernel.body):
        return tree
    tiles = {name: kind for name, kind in kernel.variables if isinstance(kind, ir.TileType)}
    while (pair := _find(kernel.body, tiles, _uses(kernel.body))) is not None:
        old, new = pair
        kernel = replace(kernel, body=tuple(_renamed(s, old, new) for s in kernel.body))
        del tiles[old]
    kept = tuple(x for x in kernel.variables if x[0] in tiles or not isinstance(x[1], ir.TileType))
    return replace(tree, kernel=replace(kernel, variables=kept))


def _find(statements: tuple[Any, ...], tiles: dict[str, Any], uses: Counter[str]) -> tuple[str, str] | None:
    """A tile of these statements, or of loops in them, and one whose memory it can have."""
    here = _uses(statements)
    own = {name for name in tiles if here[name] and here[name] == uses[name]}  # used nowhere else
    for k, s in enumerate(statements):
        if not isinstance(s, ir.For):
            continue
        if not s.capacity:
            if pair := _find(s.body, tiles, uses):
                return pair
            continue
        tile, sources = _computed(s, tiles)
        later = statements[k + 1 :]
        for source in sources if tile in own and not _uses(statements[:k])[tile] else ():
            if source in own and source not in names_in(*later) | assigned_in(*later):
                return tile, source
    return None


def _computed(s: ir.For, tiles: dict[str, Any]) -> tuple[str, list[str]]:
    """The tile that a nest sets, and those of the same type of which it reads the element at hand alone."""
    loops, body = nest_of(s)
    axes = tuple(name for name, _ in axes_of(loops))
    store: Any = body[0]
    if len(body) != 1 or not isinstance(store, ir.SetElement) or run_names(store.index) != axes:
        return "", []
    others = names_in(*(x.ranges[0] for x in loops))
    elements: list[Any] = [
        n for n in ir.walk(store.value) if isinstance(n, ir.Element) and isinstance(n.array, ir.Local)
    ]
    names = dict.fromkeys(n.array.name for n in elements)  # in the order of the text
    same = [x for x in names if x in tiles and tiles[x] == tiles.get(store.name) and x not in others]
    at_hand = {x for x in same if all(run_names(n.index) == axes for n in elements if n.array.name == x)}
    whole = Counter(n.name for n in ir.walk(store.value) if isinstance(n, ir.Local))
    return store.name, [x for x in same if x in at_hand and whole[x] == sum(n.array.name == x for n in elements)]


def _uses(statements: tuple[Any, ...]) -> Counter[str]:
    """How often each name is read, or set."""
    nodes: Iterator[Any] = ir.walk(*statements)
    return Counter(n.name for n in nodes if isinstance(n, (ir.Local, ir.SetElement, ir.Assign, ir.Let)))


def _renamed(statement: Any, old: str, new: str) -> Any:
    def change(n: Any) -> Any:
        return replace(n, name=new) if isinstance(n, (ir.Local, ir.SetElement)) and n.name == old else n

    return rewrite(statement, change)
