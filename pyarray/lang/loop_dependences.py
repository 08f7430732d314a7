"""Unordered loops whose iterations depend on each other for sure.

Refused are stores that several iterations send to one element (`races`), and reads of an array that the loop
stores to at another place than the iteration's own: whether the one that stores there comes before is chance.
Two places are an iteration's own where an index of both is the loop's variable, or that plus or minus what
stays the same, or where their indices are one and the same expression. What functions read or store, and
arrays that share memory, are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from .directions import Roots, result_roots, root, view_roots
from .ir import Binary, For, Function, Load, Local, Store, Tree, assigned, walk
from .parse import FunctionSource
from .races import Races


def refuse_dependent(tree: Tree, sources: Mapping[str, FunctionSource]) -> None:
    """Raises `CompileError` for an unordered loop that is an ordered one for sure."""
    results = result_roots(tree)
    for function in (*tree.functions, tree.kernel):
        loops = [n for s in function.body for n in walk(s) if isinstance(n, For) and n.unordered]
        roots = view_roots(function, results) if loops else {}
        for loop in loops:
            Races(tree, function, sources, loop).check()
            _refuse_reads(function, loop, roots, results, sources[function.symbol])


def _refuse_reads(
    function: Function, loop: For, roots: Roots, results: dict[str, frozenset[int]], source: FunctionSource
) -> None:
    nodes = [n for s in loop.body for n in walk(s)]
    loops = {name for n in nodes if isinstance(n, For) for name in n.variables}
    changing = {*assigned(*loop.body), *loops, *loop.variables}
    stores = [(n, root(n.array, roots, results)) for n in nodes if isinstance(n, Store)]
    for load in (n for n in nodes if isinstance(n, Load)):
        read = root(load.array, roots, results)
        for store, stored in stores:
            if read & stored and not _own(store, load, loop.variables[0], changing):
                name = " or ".join(repr(n) for n in sorted(read & stored))
                what = f"the unordered loop stores into {name}, and this reads it at another place"
                advice = "iterations run in any order: use range alone, or store into another array"
                source.fail(load.loc, what, advice)


def _own(store: Store, load: Load, variable: str, changing: set[str]) -> bool:
    """Whether an iteration reads what it stores itself, or what no iteration stores."""
    if key_of(store.array) != key_of(load.array):
        return False
    pairs = [(a, key_of(a) == key_of(b)) for a, b in zip(store.index, load.index, strict=True)]
    return all(same for _, same in pairs) or any(
        same and _determines(a, variable, changing) for a, same in pairs
    )


def _determines(e: Any, variable: str, changing: set[str]) -> bool:
    """Whether an index is another one in each iteration."""
    if isinstance(e, Local):
        return e.name == variable
    if not isinstance(e, Binary) or e.op not in ("add", "sub"):
        return False
    found = [_determines(x, variable, changing) for x in (e.a, e.b)]
    fixed = [not any(isinstance(n, Local) and n.name in changing for n in walk(x)) for x in (e.a, e.b)]
    return (found[0] and fixed[1]) or (fixed[0] and found[1])


def key_of(node: Any) -> Any:
    """An expression without the places where it stands in the source: equal ones compute the same."""
    if isinstance(node, tuple):
        return tuple(map(key_of, node))
    if not is_dataclass(node) or not hasattr(node, "loc"):
        return node
    return type(node), tuple(key_of(getattr(node, f.name)) for f in fields(node) if f.name != "loc")
