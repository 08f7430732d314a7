"""Direction analysis: which array parameters a kernel reads and writes, through views and called functions.

Computed once per program. Argument binding (read-only arrays), host transfers, dumps and the tuner use it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..annotations import DIRECTIONS
from ..annotations import declared as declared_direction
from . import ir
from .definite_writes import DefiniteWrites, definite_writes
from .parse import FunctionSource

Bases = dict[str, frozenset[str]]  # array variable → the parameters that it may be a view of


@dataclass(frozen=True)
class Access:
    """The first read ("r") or write ("w") of an array parameter, and the function it is in."""

    mode: str
    loc: ir.Loc
    symbol: str


Accesses = dict[str, list[Access]]  # parameter → what is done with it, in order of evaluation; each kind once


def directions(
    tree: ir.Tree, declared: Mapping[str, str] | None = None, by_function: Mapping[str, Accesses] | None = None
) -> dict[str, str]:
    """Kernel parameter → UNUSED, IN, OUT, INOUT or SCALAR, in parameter order; declared directions are kept. OUT
    only where every element is proven written, and none is read before. `by_function` is `accesses_of(tree)`, here
    and below, where the caller has it."""
    results = result_bases(tree)
    writes: dict[str, DefiniteWrites] = {}
    for function in (*tree.functions, tree.kernel):
        bases = view_bases(function, results)
        owners = functools.partial(bases_of, bases=bases, results=results)
        writes[function.symbol] = definite_writes(function, writes, owners)
    definite, accesses = writes[tree.kernel.symbol], (by_function or accesses_of(tree))[tree.kernel.symbol]
    result = {}
    for name, kind in tree.kernel.params:
        if not isinstance(kind, ir.ArrayType):
            result[name] = "SCALAR"
            continue
        modes = {access.mode for access in accesses.get(name, ())}
        writes_all = definite.writes_all(name) and name not in definite.read_early
        result[name] = "UNUSED" if not modes else "IN" if modes == {"r"} else "OUT" if writes_all else "INOUT"
    return result | dict(declared or {})


def write_only(tree: ir.Tree, by_function: Mapping[str, Accesses] | None = None) -> frozenset[str]:
    """Kernel parameters that are written and never read: a second run changes nothing in them if they don't
    alias others."""
    accesses = (by_function or accesses_of(tree))[tree.kernel.symbol]
    return frozenset(name for name, recorded in accesses.items() if {access.mode for access in recorded} == {"w"})


def written(tree: ir.Tree) -> frozenset[str]:
    """Kernel parameters that are written."""
    accesses = accesses_of(tree)[tree.kernel.symbol]
    return frozenset(name for name, recorded in accesses.items() if any(a.mode == "w" for a in recorded))


def accesses_of(tree: ir.Tree) -> dict[str, Accesses]:
    """Function → accesses to its parameters, those by functions that it calls among them."""
    results, by_function = result_bases(tree), dict[str, Accesses]()
    for function in (*tree.functions, tree.kernel):  # callees first
        by_function[function.symbol] = _accesses(function, tree, by_function, results)
    return by_function


def result_bases(tree: ir.Tree) -> dict[str, frozenset[int]]:
    """Function → positions of the parameters that its result may be a view of."""
    results: dict[str, frozenset[int]] = {}
    for function in tree.functions:
        bases, names = view_bases(function, results), [name for name, _ in function.params]
        returns = ir.walk(*function.body) if function.result is not None and _holds_array(function.result) else ()
        returned = [n.value for n in returns if isinstance(n, ir.Return) and n.value is not None]
        bases_of_values = (bases_of(value, bases, results) for value in returned if _holds_array(value.type))
        results[function.symbol] = frozenset(names.index(name) for part in bases_of_values for name in part)
    return results


def bases_of(expr: Any, bases: Bases, results: dict[str, frozenset[int]]) -> frozenset[str]:
    """The parameters that an array expression may be a view of."""
    if isinstance(expr, (ir.Slice, ir.SubView, ir.Reshape)):
        return bases_of(expr.array, bases, results)
    if isinstance(expr, ir.Let):
        return bases_of(expr.body, bases, results)
    if isinstance(expr, ir.Select):
        return bases_of(expr.a, bases, results) | bases_of(expr.b, bases, results)
    if isinstance(expr, ir.Item):
        return bases_of(expr.pack, bases, results)
    if isinstance(expr, ir.Pack):
        arrays = (x for x in expr.items if isinstance(x.type, ir.ArrayType))
        return frozenset().union(*(bases_of(x, bases, results) for x in arrays))
    if isinstance(expr, ir.Invoke):
        return frozenset().union(*(bases_of(expr.args[k], bases, results) for k in results[expr.function]))
    assert isinstance(expr, ir.Local)
    return bases.get(expr.name, frozenset((expr.name,)))


def _holds_array(kind: Any) -> bool:
    return isinstance(kind, ir.ArrayType) or (isinstance(kind, ir.TupleType) and any(map(_holds_array, kind.items)))


def view_bases(function: ir.Function, results: dict[str, frozenset[int]]) -> Bases:
    """Bases of the function's array variables, by a fixed point over their assignments."""
    if not any(_holds_array(kind) for _, kind in function.variables):
        return {}
    sets = [n for n in ir.walk(*function.body) if isinstance(n, (ir.Assign, ir.Let)) and _holds_array(n.value.type)]
    bases: Bases = {n.name: frozenset() for n in sets}
    while True:
        before = dict(bases)
        for n in sets:
            bases[n.name] |= bases_of(n.value, bases, results)
        if bases == before:
            return bases


def _accesses(
    function: ir.Function, tree: ir.Tree, by_function: dict[str, Accesses], results: dict[str, frozenset[int]]
) -> Accesses:
    bases = view_bases(function, results)
    params = {f.symbol: [name for name, _ in f.params] for f in tree.functions}
    by_array: Accesses = {}

    def record(array: ir.Expr, accesses: Iterable[Access]) -> None:
        for name in bases_of(array, bases, results):
            recorded = by_array.setdefault(name, [])
            recorded += [a for a in accesses if a.mode not in {b.mode for b in recorded}]

    def visit(node: Any) -> None:
        parts = (node.value, node.array, *node.index) if isinstance(node, ir.Store) else ir.children(node)
        for part in parts:  # operands are evaluated first, and of a store its value
            visit(part)
        if isinstance(node, ir.Invoke):
            for name, argument in zip(params[node.function], node.args, strict=True):
                if isinstance(argument.type, ir.ArrayType):
                    record(argument, by_function[node.function].get(name, ()))
        elif isinstance(node, (ir.Load, ir.Store, ir.Atomic)):
            modes = "w" if isinstance(node, ir.Store) else "r" if isinstance(node, ir.Load) else "rw"
            record(node.array, [Access(mode, node.loc, function.symbol) for mode in modes])

    for statement in function.body:
        visit(statement)
    return by_array


def check_declared(
    tree: ir.Tree, declared: Mapping[str, str], sources: Mapping[str, FunctionSource],
    by_function: Mapping[str, Accesses] | None = None,
) -> None:  # fmt: skip
    """Raises `CompileError` where a function reads or writes an array against its declared direction. `declared` is
    the kernel's, by path; that of other functions is found in their annotations."""
    by_function = by_function or accesses_of(tree)
    for function in (*tree.functions, tree.kernel):
        source = sources[function.symbol]
        expected = declared if function is tree.kernel else _declared(source)
        for name, direction in expected.items():
            accesses = by_function[function.symbol].get(name, [])
            what = f"{name!r} of {function.name}() is declared {DIRECTIONS[direction]}"
            store = next((a for a in accesses if a.mode == "w"), None)
            if direction == "IN" and store is not None:
                advice = "declare it InOut, or store into another array"
                sources[store.symbol].fail(store.loc, f"{what} and is written here", advice)
            if direction == "OUT" and accesses and accesses[0].mode == "r":
                sources[accesses[0].symbol].fail(
                    accesses[0].loc, f"{what} and is read here before it is written", "declare it InOut"
                )
            if direction == "OUT" and store is None:
                source.fail(function.loc, f"{what} and is never written", "declare it In")


def _declared(source: FunctionSource) -> dict[str, str]:
    declared = ((name, declared_direction(source.annotation(name))) for name in source.signature.parameters)
    return {name: direction.direction for name, direction in declared if direction is not None}
