"""Refuses unordered loops whose iterations certainly depend on each other.

Refused are stores of several iterations to one element (`races`), and reads of an array that the loop stores
to, at an element that isn't the iteration's own: it is chance whether the store comes first. Two elements
are an iteration's own if one index of both is the loop's variable, or that plus or minus a loop invariant,
or if all their indices are the same expressions. Accesses in called functions and arrays that alias are not
looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from . import ir
from .directions import Bases, bases_of, result_bases, view_bases
from .parse import FunctionSource
from .races import RaceCheck
from .summaries import changing_in, has_any


def refuse_dependent(tree: ir.Tree, sources: Mapping[str, FunctionSource]) -> None:
    """Raises `CompileError` for an unordered loop that is an ordered one for sure."""
    results = result_bases(tree)
    for function in (*tree.functions, tree.kernel):
        nodes = ir.walk(*function.body) if has_any(function.body, ir.For) else ()
        loops = [n for n in nodes if isinstance(n, ir.For) and n.unordered]
        bases = view_bases(function, results) if loops else {}
        for loop in loops:
            RaceCheck(tree, function, sources, loop).check()
            _refuse_reads(function, loop, bases, results, sources[function.symbol])


def _refuse_reads(
    function: ir.Function, loop: ir.For, bases: Bases, results: dict[str, frozenset[int]], source: FunctionSource
) -> None:
    nodes = list(ir.walk(*loop.body))
    changing = {*changing_in(*loop.body), *loop.variables}
    stores = [(n, bases_of(n.array, bases, results)) for n in nodes if isinstance(n, ir.Store)]
    for load in (n for n in nodes if isinstance(n, ir.Load)):
        read = bases_of(load.array, bases, results)
        for store, stored in stores:
            if read & stored and not _same_element(store, load, loop.variables[0], changing):
                name = " or ".join(repr(n) for n in sorted(read & stored))
                what = f"the unordered loop stores into {name}, and this reads it at another place"
                source.fail(load.loc, what, "iterations run in any order: use range alone, or store into another array")


def _same_element(store: ir.Store, load: ir.Load, variable: str, changing: set[str]) -> bool:
    """Whether an iteration reads what it stores itself, or what no iteration stores."""
    if structural_key(store.array) != structural_key(load.array):
        return False
    pairs = [(a, structural_key(a) == structural_key(b)) for a, b in zip(store.index, load.index, strict=True)]
    return all(same for _, same in pairs) or any(same and _varies(a, variable, changing) for a, same in pairs)


def _varies(e: Any, variable: str, changing: set[str]) -> bool:
    """Whether an index is another one in each iteration."""
    if isinstance(e, ir.Local):
        return e.name == variable
    if not isinstance(e, ir.Binary) or e.op not in ("add", "sub"):
        return False
    varying = [_varies(x, variable, changing) for x in (e.a, e.b)]
    fixed = [not any(isinstance(n, ir.Local) and n.name in changing for n in ir.walk(x)) for x in (e.a, e.b)]
    return (varying[0] and fixed[1]) or (fixed[0] and varying[1])


def structural_key(node: Any) -> Any:
    """An expression without the places where it stands in the source: equal ones compute the same."""
    if isinstance(node, tuple):
        return tuple(map(structural_key, node))
    if not isinstance(node, ir.Node):
        return node
    return type(node), tuple(structural_key(getattr(node, f.name)) for f in fields(node) if f.name != "loc")
