"""Debug mode: numbers every access that isn't proven to be inside, and keeps the table that turns numbers
into words.

The check itself stands inside the access that `emit` writes. Proven, and so unchecked: an index that is a
loop variable which runs over that very size (`for i in range(v.size): v[i]`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .directions import result_roots, root, view_roots
from .ir import (
    ArrayType,
    Assign,
    Atomic,
    Const,
    For,
    Function,
    Invoke,
    Let,
    Load,
    Loc,
    Local,
    Size,
    Slice,
    Store,
    SubView,
    Tree,
    rewrite,
    walk,
)


@dataclass(frozen=True)
class Site:
    """One number of the failure record. `argument` names the parameters of `function` that the array may be a
    view of; of a call, `roots` maps the callee's array parameters to the caller's."""

    kind: str
    loc: Loc
    function: str
    argument: tuple[str, ...] = ()
    axis: int | None = None
    ndim: int = 1
    roots: tuple[tuple[str, tuple[str, ...]], ...] = ()


def check(tree: Tree) -> tuple[Tree, tuple[Site, ...]]:
    """The tree with `site` set on each checked access and call, and the sites by number."""
    sites: list[Site] = []
    by_symbol, results = {f.symbol: f for f in tree.functions}, result_roots(tree)
    functions = tuple(_check_function(f, by_symbol, results, sites) for f in tree.functions)
    return Tree(_check_function(tree.kernel, by_symbol, results, sites), functions), tuple(sites)


def _check_function(
    function: Function, functions: dict[str, Function], results: dict[str, frozenset[int]], sites: list[Site]
) -> Function:
    roots = view_roots(function, results)
    facts = _facts(function)

    def names_of(array: Any) -> tuple[str, ...]:
        return tuple(sorted(root(array, roots, results)))

    def number(node: Any, kind: str, count: int = 1) -> int:
        first, array = len(sites), names_of(node.array)
        for axis in range(count):
            sites.append(Site(kind, node.loc, function.name, array, axis, node.array.type.ndim))
        return first

    def change(node: Any) -> Any:
        if isinstance(node, (Load, Store, Atomic)):
            if not node.index or all(_proven(node, axis, facts) for axis in range(len(node.index))):
                return node
            return replace(node, site=number(node, "index", len(node.index)))
        if isinstance(node, Slice):
            return replace(node, site=number(node, "slice", len(node.parts)))
        if isinstance(node, SubView):
            return replace(node, site=number(node, "subview"))
        if isinstance(node, Invoke):
            callee = functions[node.function]
            pairs = zip(callee.params, node.args, strict=True)
            names = tuple((name, names_of(a)) for (name, kind), a in pairs if isinstance(kind, ArrayType))
            sites.append(Site("call", node.loc, function.name, roots=names))
            return replace(node, site=len(sites) - 1)
        return node

    return replace(function, body=tuple(rewrite(s, change) for s in function.body))


def _facts(function: Function) -> dict[str, set[tuple[str, int]]]:
    """Loop variable → (array, axis) whose size it stays below, in every loop of that name."""
    assigned = [n.name for s in function.body for n in walk(s) if isinstance(n, (Assign, Let))]
    facts: dict[str, set[tuple[str, int]]] = {}
    for statement in function.body:
        for loop in walk(statement):
            if not isinstance(loop, For):
                continue
            for variable, reach in zip(loop.variables, loop.ranges, strict=True):
                known: set[tuple[str, int]] = set()
                from_zero = reach.start is None or (isinstance(reach.start, Const) and reach.start.value >= 0)
                upwards = reach.step is None or (isinstance(reach.step, Const) and reach.step.value > 0)
                stop = reach.stop
                if from_zero and upwards and isinstance(stop, Size) and isinstance(stop.array, Local):
                    name = stop.array.name
                    if variable not in assigned and assigned.count(name) == (
                        name not in dict(function.params)
                    ):
                        known.add((name, stop.axis))
                facts[variable] = known & facts.get(variable, known)
    return facts


def _proven(node: Any, axis: int, facts: dict[str, set[tuple[str, int]]]) -> bool:
    index = node.index[axis]
    return (
        isinstance(index, Local)
        and isinstance(node.array, Local)
        and (node.array.name, axis) in facts.get(index.name, ())
    )
