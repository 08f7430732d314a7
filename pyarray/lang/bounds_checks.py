"""Debug mode: numbers each access that may be out of bounds, and keeps the table of these sites.

The check itself is part of the emitted access. `bounds_elimination` proves accesses; `hoisted_checks` tests
many accesses at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

from . import ir
from .bounds_elimination import proven_sites
from .directions import bases_of, result_bases, view_bases
from .loop_extents import extents


@dataclass(frozen=True)
class Site:
    """One number of the failure record. `argument` names the parameters of `function` that the array may be a
    view of; of a call, `roots` maps the callee's array parameters to the caller's. `view` is None for a
    parameter itself, else the variable that holds the view, or ""; `views` are these of a call's arrays.
    `unsigned`: the index was a uint64, which the record holds as an int64. `from_end`: the index as it is written, a
    negative constant, to which the size is added."""

    kind: str
    loc: ir.Loc
    function: str
    argument: tuple[str, ...] = ()
    axis: int | None = None
    ndim: int = 1
    roots: tuple[tuple[str, tuple[str, ...]], ...] = ()
    view: str | None = None
    views: tuple[tuple[str, str | None], ...] = ()
    unsigned: bool = False
    from_end: int | None = None
    text: tuple[Any, ...] = ()  # of an assertion: a template of `messages`


def insert_checks(tree: ir.Tree, asserts_only: bool = False) -> tuple[ir.Tree, tuple[Site, ...]]:
    """The tree with `site` set on each call and assertion, and on each access and on what is tested of each loop if
    it isn't proven, and the sites by number."""
    sites: list[Site] = []
    by_symbol, results = {f.symbol: f for f in tree.functions}, result_bases(tree)
    functions = tuple(_numbered(f, by_symbol, results, sites, asserts_only) for f in tree.functions)
    numbered = ir.Tree(_numbered(tree.kernel, by_symbol, results, sites, asserts_only), functions)
    if asserts_only:
        return numbered, tuple(sites)
    return _drop_proven(numbered, sites, proven_sites(numbered))


def _drop_proven(tree: ir.Tree, sites: list[Site], proven_sites: frozenset[int]) -> tuple[ir.Tree, tuple[Site, ...]]:
    """The tree without the proven sites, the others numbered anew."""
    remaining: list[Site] = []

    def change(node: Any) -> Any:
        old = getattr(node, "site", None)
        if old is None:
            return node
        if old in proven_sites:
            return replace(node, site=None)
        new = len(remaining)
        remaining.extend(sites[old : old + _site_count(node)])
        return replace(node, site=new)

    functions = tuple(replace(f, body=tuple(ir.rewrite(s, change) for s in f.body)) for f in tree.functions)
    body = tuple(ir.rewrite(s, change) for s in tree.kernel.body)
    return ir.Tree(replace(tree.kernel, body=body), functions), tuple(remaining)


def _site_count(node: Any) -> int:
    """The number of a node's sites: one for each axis that is checked."""
    if isinstance(node, (ir.Load, ir.Store, ir.Atomic, ir.Element, ir.SetElement)):
        return len(node.index)
    return len(node.parts) if isinstance(node, ir.Slice) else 1


def _numbered(
    function: ir.Function, functions: dict[str, ir.Function], results: dict[str, frozenset[int]], sites: list[Site],
    asserts_only: bool,
) -> ir.Function:  # fmt: skip
    roots, kinds = view_bases(function, results), dict(function.variables)
    launched = {loop_extents.loop for loop_extents in extents(function)}

    def view_of(array: Any) -> str | None:
        """`Site.view` of an array: its axes are then not those of the argument."""
        if isinstance(array, ir.Let):
            return view_of(array.body)
        if isinstance(array, ir.Select):
            return None if view_of(array.a) is view_of(array.b) is None else ""
        if not isinstance(array, ir.Local):
            return ""
        if array.name not in roots:
            return None
        return "" if array.name.startswith(".") else array.name

    def names_of(array: Any) -> tuple[str, ...]:
        return tuple(sorted(bases_of(array, roots, results)))

    def number(node: Any, kind: str, index: tuple[Any, ...] = (None,)) -> int:
        first, array, view = len(sites), names_of(node.array), view_of(node.array)
        for axis, part in enumerate(index):
            unsigned = isinstance(part, ir.Cast) and part.a.type.dtype.name == "uint64"
            site = Site(kind, node.loc, function.name, array, axis, node.array.type.ndim, view=view, unsigned=unsigned)
            sites.append(replace(site, from_end=_from_end(part)))
        return first

    def change(node: Any) -> Any:
        if (kind := _check_without_array(node, launched, asserts_only)) is not None:
            sites.append(Site(kind, node.loc, function.name, text=getattr(node, "text", ())))
            return replace(node, site=len(sites) - 1)
        if asserts_only and not isinstance(node, ir.Invoke):
            return node
        if isinstance(node, (ir.Load, ir.Store, ir.Atomic)):
            return replace(node, site=number(node, "index", node.index)) if node.index else node
        if isinstance(node, (ir.Element, ir.SetElement)):
            if isinstance(kinds[node.name] if isinstance(node, ir.SetElement) else node.array.type, ir.TileType):
                return node  # its position follows from the loop
            return _local_site(node, function.name, sites)
        if isinstance(node, ir.Slice):
            return replace(node, site=number(node, "slice", node.parts))
        if isinstance(node, (ir.SubView, ir.Reshape)):
            return replace(node, site=number(node, "subview" if isinstance(node, ir.SubView) else "shape"))
        if isinstance(node, ir.Invoke):
            callee = functions[node.function]
            pairs = zip(callee.params, node.args, strict=True)
            arrays = [(name, a) for (name, kind), a in pairs if isinstance(kind, ir.ArrayType)]
            names = tuple((name, names_of(a)) for name, a in arrays)
            views = tuple((name, view_of(a)) for name, a in arrays)
            sites.append(Site("call", node.loc, function.name, roots=names, views=views))
            return replace(node, site=len(sites) - 1)
        return node

    return replace(function, body=tuple(ir.rewrite(s, change) for s in function.body))


def _from_end(part: Any) -> int | None:
    """The negative constant of `size + constant` as `wrap_index` makes it, which has the place of the constant."""
    if isinstance(part, ir.Binary) and isinstance(part.a, ir.Size) and isinstance(part.b, ir.Const):
        return part.b.value if part.op == "add" and part.b.loc == part.loc else None
    return None


def _check_without_array(node: Any, launched: set[int], asserts_only: bool) -> str | None:
    """What is tested of an assertion or a loop."""
    if isinstance(node, ir.Assert):
        return "assert"
    if asserts_only:
        return None
    return "while" if isinstance(node, ir.While) else _loop_check(node, launched) if isinstance(node, ir.For) else None


def _local_site(node: ir.Element | ir.SetElement, function: str, sites: list[Site]) -> Any:
    """The node with sites of its indices; of constant ones nothing is left to test."""
    if all(isinstance(i, ir.Const) for i in node.index):
        return node
    array = node.name if isinstance(node, ir.SetElement) else getattr(node.array, "name", ".")
    first, view = len(sites), "" if array.startswith(".") else array
    for axis, part in enumerate(node.index):
        unsigned = isinstance(part, ir.Cast) and part.a.type.dtype.name == "uint64"
        sites.append(Site("local", node.loc, function, (), axis, len(node.index), view=view, unsigned=unsigned))
    return replace(node, site=first)


def _loop_check(node: ir.For, launched: set[int]) -> str | None:
    """What is tested of a loop; the launch tests the sizes of the loops `launched`."""
    if len(node.ranges) != 1:  # several have no steps
        return None if node.loop is None or node.loop in launched else "sizes"
    return None if isinstance(node.ranges[0].step, (ir.Const, NoneType)) else "step"
