"""Who reads and who writes each array parameter, from the typed tree, through views and called functions.

Computed once per program; its readers are argument binding (read-only arrays), host transfers, dumps and the
tuner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..annotations import DIRECTIONS
from ..annotations import declared as declared_direction
from .definite_writes import Coverage, coverage
from .ir import (
    ArrayType,
    Assign,
    Atomic,
    Expr,
    Function,
    Invoke,
    Item,
    Let,
    Load,
    Loc,
    Local,
    Pack,
    Reshape,
    Return,
    Select,
    Slice,
    Store,
    SubView,
    Tree,
    TupleType,
    children,
    walk,
)
from .parse import FunctionSource

Roots = dict[str, frozenset[str]]  # array variable → the parameters that it may be a view of


@dataclass(frozen=True)
class Access:
    """The first place where an array parameter is read ("r") or written ("w"), and the function it is in."""

    how: str
    loc: Loc
    symbol: str


Accesses = dict[str, list[Access]]  # parameter → what is done with it, in order of evaluation; each kind once


def directions(
    tree: Tree, declared: Mapping[str, str] | None = None, known: Mapping[str, Accesses] | None = None
) -> dict[str, str]:
    """Kernel parameter → UNUSED, IN, OUT, INOUT or SCALAR, in parameter order; what was declared stands. OUT
    only where every element is proven written, and none is read before. `known` are its accesses, here and
    below, if they were asked for before."""
    results = result_roots(tree)
    covered: dict[str, Coverage] = {}
    for function in (*tree.functions, tree.kernel):
        roots = view_roots(function, results)
        covered[function.symbol] = coverage(function, covered, lambda x, r=roots: root(x, r, results))  # type: ignore[misc]
    facts, accesses = covered[tree.kernel.symbol], (known or accesses_of(tree))[tree.kernel.symbol]
    result = {}
    for name, kind in tree.kernel.params:
        if not isinstance(kind, ArrayType):
            result[name] = "SCALAR"
            continue
        found = {access.how for access in accesses.get(name, ())}
        whole = facts.whole(name) and name not in facts.early
        result[name] = "UNUSED" if not found else "IN" if found == {"r"} else "OUT" if whole else "INOUT"
    return result | dict(declared or {})


def write_only(tree: Tree, known: Mapping[str, Accesses] | None = None) -> frozenset[str]:
    """Kernel parameters that are written and never read: where they share no memory with others, a second run
    changes nothing in them."""
    accesses = (known or accesses_of(tree))[tree.kernel.symbol]
    return frozenset(name for name, found in accesses.items() if {access.how for access in found} == {"w"})


def written(tree: Tree) -> frozenset[str]:
    """Kernel parameters that are written."""
    accesses = accesses_of(tree)[tree.kernel.symbol]
    return frozenset(name for name, found in accesses.items() if any(a.how == "w" for a in found))


def accesses_of(tree: Tree) -> dict[str, Accesses]:
    """Function → accesses to its parameters, those by functions that it calls among them."""
    results, known = result_roots(tree), dict[str, Accesses]()
    for function in (*tree.functions, tree.kernel):  # callees first
        known[function.symbol] = _accesses(function, tree, known, results)
    return known


def result_roots(tree: Tree) -> dict[str, frozenset[int]]:
    """Function → positions of the parameters that its result may be a view of."""
    results: dict[str, frozenset[int]] = {}
    for function in tree.functions:
        roots, names = view_roots(function, results), [name for name, _ in function.params]
        returned = [
            n.value for s in function.body for n in walk(s) if isinstance(n, Return) and n.value is not None
        ]
        found = (root(value, roots, results) for value in returned if _holds_array(value.type))
        results[function.symbol] = frozenset(names.index(name) for part in found for name in part)
    return results


def root(expr: Any, roots: Roots, results: dict[str, frozenset[int]]) -> frozenset[str]:
    """The parameters that an array expression may be a view of."""
    if isinstance(expr, (Slice, SubView, Reshape)):
        return root(expr.array, roots, results)
    if isinstance(expr, Let):
        return root(expr.body, roots, results)
    if isinstance(expr, Select):
        return root(expr.a, roots, results) | root(expr.b, roots, results)
    if isinstance(expr, Item):
        return root(expr.pack, roots, results)
    if isinstance(expr, Pack):
        arrays = (x for x in expr.items if isinstance(x.type, ArrayType))
        return frozenset().union(*(root(x, roots, results) for x in arrays))
    if isinstance(expr, Invoke):
        return frozenset().union(*(root(expr.args[k], roots, results) for k in results[expr.function]))
    assert isinstance(expr, Local)
    return roots.get(expr.name, frozenset((expr.name,)))


def _holds_array(kind: Any) -> bool:
    return isinstance(kind, ArrayType) or (isinstance(kind, TupleType) and any(map(_holds_array, kind.items)))


def view_roots(function: Function, results: dict[str, frozenset[int]]) -> Roots:
    """Roots of the function's array variables: all of their assignments, until nothing is added."""
    sets = [
        n
        for s in function.body
        for n in walk(s)
        if isinstance(n, (Assign, Let)) and _holds_array(n.value.type)
    ]
    roots: Roots = {n.name: frozenset() for n in sets}
    while True:
        before = dict(roots)
        for n in sets:
            roots[n.name] |= root(n.value, roots, results)
        if roots == before:
            return roots


def _accesses(
    function: Function, tree: Tree, known: dict[str, Accesses], results: dict[str, frozenset[int]]
) -> Accesses:
    roots = view_roots(function, results)
    params = {f.symbol: [name for name, _ in f.params] for f in tree.functions}
    found: Accesses = {}

    def note(array: Expr, accesses: Iterable[Access]) -> None:
        for name in root(array, roots, results):
            have = found.setdefault(name, [])
            have += [a for a in accesses if a.how not in {b.how for b in have}]

    def visit(node: Any) -> None:
        parts = (node.value, node.array, *node.index) if isinstance(node, Store) else children(node)
        for part in parts:  # operands are evaluated first, and of a store its value
            visit(part)
        if isinstance(node, Invoke):
            for name, argument in zip(params[node.function], node.args, strict=True):
                if isinstance(argument.type, ArrayType):
                    note(argument, known[node.function].get(name, ()))
        elif isinstance(node, (Load, Store, Atomic)):
            hows = "w" if isinstance(node, Store) else "r" if isinstance(node, Load) else "rw"
            note(node.array, [Access(how, node.loc, function.symbol) for how in hows])

    for statement in function.body:
        visit(statement)
    return found


def enforce(
    tree: Tree, declared: Mapping[str, str], sources: Mapping[str, FunctionSource],
    known: Mapping[str, Accesses] | None = None,
) -> None:  # fmt: skip
    """Raises `CompileError` where a function does with an array what its signature excludes. `declared` is
    the kernel's, by path; that of other functions is found in their annotations."""
    known = known or accesses_of(tree)
    for function in (*tree.functions, tree.kernel):
        source = sources[function.symbol]
        said = declared if function is tree.kernel else _declared(source)
        for name, direction in said.items():
            accesses = known[function.symbol].get(name, [])
            what = f"{name!r} of {function.name}() is declared {DIRECTIONS[direction]}"
            written = next((a for a in accesses if a.how == "w"), None)
            if direction == "IN" and written is not None:
                advice = "declare it InOut, or store into another array"
                sources[written.symbol].fail(written.loc, f"{what} and is written here", advice)
            if direction == "OUT" and accesses and accesses[0].how == "r":
                advice = "declare it InOut"
                sources[accesses[0].symbol].fail(
                    accesses[0].loc, f"{what} and is read here before it is written", advice
                )
            if direction == "OUT" and written is None:
                source.fail(function.loc, f"{what} and is never written", "declare it In")


def _declared(source: FunctionSource) -> dict[str, str]:
    found = ((name, declared_direction(source.annotation(name))) for name in source.signature.parameters)
    return {name: direction.direction for name, direction in found if direction is not None}
