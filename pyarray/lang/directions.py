"""Who reads and who writes each array parameter, from the typed tree, through views and called functions.

Computed once per program; its readers are argument binding (read-only arrays), host transfers, dumps and the
tuner.
"""

from __future__ import annotations

from typing import Any

from .ir import (
    ArrayType,
    Assign,
    Atomic,
    Continue,
    Expr,
    For,
    Function,
    Invoke,
    Item,
    Let,
    Load,
    Local,
    Pack,
    Return,
    Select,
    Size,
    Slice,
    Store,
    SubView,
    Tree,
    TupleType,
    walk,
)

Roots = dict[str, frozenset[str]]  # array variable → the parameters that it may be a view of


def directions(tree: Tree) -> dict[str, str]:
    """Kernel parameter → UNUSED, IN, OUT, INOUT or SCALAR, in parameter order. OUT only where every element
    is proven written."""
    results = result_roots(tree)
    known: dict[str, list[frozenset[str]]] = {}
    for function in tree.functions:  # callees first
        accesses = _accesses(function, known, results)
        known[function.symbol] = [accesses.get(name, frozenset()) for name, _ in function.params]
    accesses = _accesses(tree.kernel, known, results)
    result = {}
    for name, kind in tree.kernel.params:
        if not isinstance(kind, ArrayType):
            result[name] = "SCALAR"
            continue
        found = accesses.get(name, frozenset())
        whole = found == {"w"} and any(_covers(s, name, kind) for s in tree.kernel.body)
        result[name] = "UNUSED" if not found else "IN" if found == {"r"} else "OUT" if whole else "INOUT"
    return result


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
    if isinstance(expr, (Slice, SubView)):
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
    function: Function, known: dict[str, list[frozenset[str]]], results: dict[str, frozenset[int]]
) -> dict[str, frozenset[str]]:
    """Parameter → "r", "w" or both."""
    roots = view_roots(function, results)
    found: dict[str, frozenset[str]] = {}

    def note(array: Expr, how: frozenset[str]) -> None:
        for name in root(array, roots, results):
            found[name] = found.get(name, frozenset()) | how

    for statement in function.body:
        for node in walk(statement):
            if isinstance(node, Load):
                note(node.array, frozenset("r"))
            elif isinstance(node, Store):
                note(node.array, frozenset("w"))
            elif isinstance(node, Atomic):
                note(node.array, frozenset("rw"))
            elif isinstance(node, Invoke):
                for argument, how in zip(node.args, known[node.function], strict=True):
                    if isinstance(argument.type, ArrayType):
                        note(argument, how)
    return found


def _covers(loop: Any, name: str, kind: ArrayType) -> bool:
    """Whether a top-level loop stores to each element: its variables run over all sizes and index the store
    one by one."""
    if not isinstance(loop, For) or any(isinstance(n, Continue) for n in walk(loop)):
        return False
    stores = [
        s for s in loop.body if isinstance(s, Store) and isinstance(s.array, Local) and s.array.name == name
    ]
    variables = [i.name for s in stores[:1] for i in s.index if isinstance(i, Local)]
    if len(variables) != kind.ndim or sorted(variables) != sorted(loop.variables):
        return False
    for variable, reach in zip(loop.variables, loop.ranges, strict=True):
        stop = reach.stop
        whole = (
            isinstance(stop, Size)
            and isinstance(stop.array, Local)
            and (stop.array.name, stop.axis) == (name, variables.index(variable))
        )
        if not whole or reach.start is not None or reach.step is not None:
            return False
    return True
