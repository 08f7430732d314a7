"""Summaries of subtrees of the IR: classes of nodes, names read and assigned, calls, operators, sites. One is computed
once for each statement, which is immutable, so that a pass asks instead of walking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from . import ir

_STATEMENTS = frozenset(get_args(ir.Stmt))
_ASSIGNING = (ir.Assign, ir.Let, ir.SetElement)


@dataclass(frozen=True, slots=True)
class Summary:
    """Of a node and all below it: the classes of nodes, the names that are read, those that get a value, the functions
    that are called, the operators of `Binary`, and the sites."""

    kinds: frozenset[type]
    names: frozenset[str]
    assigned: frozenset[str]
    called: frozenset[str]
    operators: frozenset[str]
    sites: frozenset[int]


def summary(node: Any) -> Summary:
    """The node's summary. A node that isn't an `ir.Node`, such as a range, has no room for it."""
    try:
        found: Summary = node.found
    except AttributeError:
        found = _summarise(node)
        if isinstance(node, ir.Node):
            object.__setattr__(node, "found", found)
    return found


def _summarise(node: Any) -> Summary:
    kinds, names, assigned, called = set[type](), set[str](), set[str](), set[str]()
    operators, sites = set[str](), set[int]()
    stack = [node]
    while stack:
        n = stack.pop()
        kind = type(n)
        if kind in _STATEMENTS and n is not node:
            below = summary(n)
            kinds |= below.kinds
            names |= below.names
            assigned |= below.assigned
            called |= below.called
            operators |= below.operators
            sites |= below.sites
            continue
        kinds.add(kind)
        if kind is ir.Local:
            names.add(n.name)
            continue
        if kind in _ASSIGNING:
            assigned.add(n.name)
        elif kind is ir.Binary:
            operators.add(n.op)
        elif kind is ir.Invoke:
            called.add(n.function)
        if (site := getattr(n, "site", None)) is not None:
            sites.add(site)
        stack += ir.children(n)
    of_names = frozenset(names), frozenset(assigned), frozenset(called), frozenset(operators)
    return Summary(frozenset(kinds), *of_names, frozenset(sites))


def assigned_in(*nodes: Any) -> set[str]:
    """Names that get a value somewhere in these nodes, other than loop variables; of local arrays also those of
    which an element is assigned."""
    return set[str]().union(*(summary(n).assigned for n in nodes))


def changing_in(*nodes: Any) -> set[str]:
    """`assigned_in`, and the variables of the loops in these nodes."""
    loops = (n for n in ir.walk(*nodes) if isinstance(n, ir.For)) if has_any(nodes, ir.For) else ()
    return assigned_in(*nodes).union(*(loop.variables for loop in loops))


def names_in(*nodes: Any) -> set[str]:
    """Names of the parameters and variables that are read in these nodes."""
    return set[str]().union(*(summary(n).names for n in nodes))


def kinds_in(*nodes: Any) -> set[type]:
    """The classes of these nodes and of those below them."""
    return set[type]().union(*(summary(n).kinds for n in nodes))


def called_in(*nodes: Any) -> set[str]:
    """Symbols of the functions that are called in these nodes."""
    return set[str]().union(*(summary(n).called for n in nodes))


def operators_in(*nodes: Any) -> set[str]:
    """Operators of `Binary` in these nodes."""
    return set[str]().union(*(summary(n).operators for n in nodes))


def sites_in(*nodes: Any) -> frozenset[int]:
    """The sites of all accesses and calls in these nodes."""
    return frozenset[int]().union(*(summary(n).sites for n in nodes))


def has_any(nodes: Any, *kinds: type) -> bool:
    """Whether a node of one of these classes is among the nodes or below them."""
    return not all(summary(n).kinds.isdisjoint(kinds) for n in nodes)


def rewrite_where(node: Any, change: Callable[[Any], Any], holds: Callable[[Summary], bool]) -> Any:
    """`ir.rewrite` for a `change` that concerns only statements whose summary `holds`."""
    return ir.rewrite(node, change, lambda n: type(n) in _STATEMENTS and not holds(summary(n)))
