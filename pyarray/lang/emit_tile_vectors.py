"""Vectors of 16 bytes in nests of loops over tile axes: elements of arrays that a thread loads and stores together.

A nest has a second text for arrays whose neighbours in memory are along the nest's last axis, and aligned; which one
runs is tested once, for the whole tile. Of strided arrays that may be any of theirs."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from . import ir
from .emit_statements import Emitter, cname
from .emit_vectorized import always_evaluated
from .summaries import assigned_in, kinds_in, names_in

Ref = tuple[str, tuple[str, ...]]  # an element, by `element_ref`
_NUMBERS = frozenset((ir.Const, ir.Local, ir.Unary, ir.Binary, ir.Cast, ir.Builtin, ir.Size))


@dataclass(frozen=True)
class Vectors:
    """The elements that a nest loads unconditionally, and the one that it stores, at the variables of its loops."""

    loads: dict[Ref, ir.Load]
    store: ir.Store | None
    stored: Ref | None
    count: int

    def type(self, node: Any) -> str:
        return f"pa_vector<{node.array.type.dtype.ctype}, {self.count}>"

    def registers(self) -> dict[Ref, str]:
        return {ref: f"in{k}.v[v]" for k, ref in enumerate(self.loads)}

    def results(self) -> dict[Ref, str]:
        return {} if self.stored is None else {self.stored: "result.v[v]"}


def find_vectors(code: Emitter, loops: list[ir.For], body: Any, count: int) -> Vectors | None:
    """What a nest could take in vectors; None if that is nothing, or if accesses are checked."""
    nodes = list(ir.walk(*body))
    checked = any(getattr(n, "site", None) not in (None, *code.hoisted) for n in nodes)
    if count == 1 or checked or any(isinstance(n, (ir.Atomic, ir.For)) for n in nodes):
        return None
    variable, changed = loops[-1].variables[0], assigned_in(*body) | {loops[-1].variables[0]}
    stores = [n for n in nodes if isinstance(n, ir.Store)]
    found = [n for s in body for n in always_evaluated(s) if isinstance(n, ir.Load) and _fits(n, variable, changed)]
    loads = {code.element_ref(n): n for n in found}
    alone = bool(stores) and body == (stores[0],) and not stores[0].marks
    store = stores[0] if alone and _fits(stores[0], variable, changed) else None
    if stores and store is None:
        return None  # a load behind the store of a neighbour would be before it
    stored = None if store is None else code.element_ref(store)
    return Vectors(loads, store, stored, count) if loads or store is not None else None


def _fits(node: Any, variable: str, changed: Set[str]) -> bool:
    """Whether neighbours along the variable's axis may be an access's in memory, whose other positions don't change
    meanwhile."""
    kind = node.array.type
    if not isinstance(node.array, ir.Local) or kind.reshape_of is not None or not kind.ndim:
        return False
    axis = _axis_of(node, variable)
    others = [i for k, i in enumerate(node.index) if k != axis]
    unchanged = all(kinds_in(i) <= _NUMBERS and not names_in(i) & changed for i in others)
    may_be_dense = axis == kind.ndim - 1 or (kind.strided and isinstance(node, ir.Load))
    return axis >= 0 and may_be_dense and unchanged


def _axis_of(node: Any, variable: str) -> int:
    """The axis of an access's array whose position is the variable; -1 if there is none."""
    return next((k for k, i in enumerate(node.index) if isinstance(i, ir.Local) and i.name == variable), -1)


def vector_test(code: Emitter, loops: list[ir.For], vectors: Vectors, aligned: bool = True) -> str:
    """Whether a tile has whole vectors alone: their length, their strides and, if they are to be `aligned`, where the
    first one is."""
    last = f"length_{cname(loops[-1].variables[0])}"
    tests = [f"{last} % {vectors.count} == 0"]
    accesses: list[Any] = [*vectors.loads.values(), *([vectors.store] if vectors.store else [])]
    for node in accesses:
        kind, array = node.array.type, code.expr(node.array)
        size = kind.dtype.itemsize
        nbytes = min(16, size * vectors.count)
        start = code.expr(loops[-1].ranges[0].start)  # type: ignore[arg-type]
        axis = _axis_of(node, loops[-1].variables[0])
        tests += [f"{array}.s{axis} == {size}"] if kind.strided else []
        if not aligned:
            continue
        tests.append(f"((uint64_t){array}.data + (uint64_t)({start} * {size})) % {nbytes} == 0")
        if kind.strided:
            tests += [f"{array}.s{k} % {nbytes} == 0" for k in range(kind.ndim) if k != axis]
        elif kind.ndim > 1:
            tests.append(f"{array}.n{kind.ndim - 1} * {size} % {nbytes} == 0")
    return " && ".join(dict.fromkeys(tests))


def load_vectors(code: Any, loops: list[ir.For], vectors: Vectors, at: str) -> None:
    """Loads what the elements at hand need, the first of which is `first`."""
    for k, node in enumerate(vectors.loads.values()):
        code.out.line(f"{vectors.type(node)} in{k};")
    if vectors.store is not None:
        code.out.line(f"{vectors.type(vectors.store)} result;")
    if not vectors.loads:
        return
    with code.out.block():
        code.out.line(f"const int {at} = first;")
        code.bind_variables(loops)
        for k, node in enumerate(vectors.loads.values()):
            code.out.line(f"in{k} = *(const {vectors.type(node)} *)&{code.lvalue(node)};")


def store_vectors(code: Any, loops: list[ir.For], vectors: Vectors, at: str) -> None:
    if vectors.store is None:
        return
    with code.out.block():
        code.out.line(f"const int {at} = first;")
        code.bind_variables(loops)
        code.out.line(f"*({vectors.type(vectors.store)} *)&{code.lvalue(vectors.store)} = result;")
