"""Who reads and who writes each array parameter, from the typed tree, through views and called functions.

Computed once per program; its readers are argument binding (read-only arrays), host transfers, dumps and the tuner.
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
    Load,
    Local,
    Size,
    Slice,
    Store,
    SubView,
    Tree,
    walk,
)

Access = frozenset  # of "r" and "w"


def directions(tree: Tree) -> dict[str, str]:
    """Kernel parameter → UNUSED, IN, OUT, INOUT or SCALAR, in parameter order. OUT only where every element is proven written."""
    known: dict[str, list[frozenset[str]]] = {}
    for function in tree.functions:  # callees first
        accesses = _accesses(function, known)
        known[function.symbol] = [accesses.get(name, frozenset()) for name, _ in function.params]
    accesses = _accesses(tree.kernel, known)
    result = {}
    for name, kind in tree.kernel.params:
        if not isinstance(kind, ArrayType):
            result[name] = "SCALAR"
            continue
        found = accesses.get(name, frozenset())
        whole = found == {"w"} and any(_covers(s, name, kind) for s in tree.kernel.body)
        result[name] = "UNUSED" if not found else "IN" if found == {"r"} else "OUT" if whole else "INOUT"
    return result


def root(expr: Expr, roots: dict[str, str]) -> str:
    """The parameter that an array expression is a view of."""
    while isinstance(expr, (Slice, SubView)):
        expr = expr.array
    assert isinstance(expr, (Local, Invoke))
    if isinstance(expr, Invoke):
        return root(next(a for a in expr.args if isinstance(a.type, ArrayType)), roots)
    return roots.get(expr.name, expr.name)


def view_roots(function: Function) -> dict[str, str]:
    """Array variable → parameter it is a view of."""
    roots: dict[str, str] = {}
    for statement in function.body:
        for node in walk(statement):
            if isinstance(node, Assign) and isinstance(node.value.type, ArrayType):
                roots[node.name] = root(node.value, roots)
    return roots


def _accesses(function: Function, known: dict[str, list[frozenset[str]]]) -> dict[str, frozenset[str]]:
    roots = view_roots(function)
    found: dict[str, frozenset[str]] = {}

    def note(array: Expr, how: str) -> None:
        name = root(array, roots)
        found[name] = found.get(name, frozenset()) | frozenset(how)

    for statement in function.body:
        for node in walk(statement):
            if isinstance(node, Load):
                note(node.array, "r")
            elif isinstance(node, Store):
                note(node.array, "w")
            elif isinstance(node, Atomic):
                note(node.array, "rw")
            elif isinstance(node, Invoke):
                for argument, how in zip(node.args, known[node.function], strict=True):
                    if isinstance(argument.type, ArrayType):
                        note(argument, "".join(how))
    return found


def _covers(loop: Any, name: str, kind: ArrayType) -> bool:
    """Whether a top-level loop stores to each element: its variables run over all sizes and index the store one by one."""
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
