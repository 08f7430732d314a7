"""What a flat kernel does with arrays and floats: which variables gradients flow through, which elements iterations
share, and what is overwritten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from .. import ir
from .derivatives import STEPS
from .elements import Access, Indices
from .flatten import Accumulate, Reduce

NO_RULE = "compute it in a kernel of its own, and give that one's gradient by hand"
_VIEWS = (ir.Slice, ir.SubView, ir.Reshape)


def is_float(kind: Any) -> bool:
    """Of numbers and arrays that have gradients."""
    return getattr(getattr(kind, "dtype", None), "kind", "") == "f"


def keeps_integers(e: ir.Cast) -> bool:
    """Whether a cast leaves different integers different."""
    old, new = e.a.type.dtype, e.type.dtype
    return old.kind in "iu" and new.kind in "iu" and new.itemsize >= old.itemsize


def operands(node: Any) -> list[str]:
    """Names of the variables that a statement or value reads."""
    return [n.name for n in ir.walk(*ir.children(node)) if isinstance(n, ir.Local)]


class Analysis:
    """`gradients`: parameter → that of its gradient. `bases`: array variable → the parameters that it may be a view of.
    `active`: variables that depend on a parameter with a gradient, differentiably."""

    def __init__(
        self, body: tuple[Any, ...], params: Mapping[str, Any], types: Mapping[str, Any],
        gradients: Mapping[str, str], fail: Callable[..., NoReturn],
    ):  # fmt: skip
        self.body, self.params, self.types, self.gradients, self.fail = body, params, types, gradients, fail
        self.nodes = [n for n in ir.walk(*body) if isinstance(n, ir.Node)]
        written = (ir.Assign, ir.SetElement, Accumulate, Reduce)
        self.assigned = Counter(n.name for n in self.nodes if isinstance(n, written))
        self.loops_over = Counter(v for n in self.nodes if isinstance(n, ir.For) for v in n.variables)
        self.bases = self._bases()
        self.active = self._active()
        self._check_bits()
        self.phases = [list(self._accesses((s,), frozenset())) for s in body]
        self.unshared: set[tuple[int, str]] = set()  # phases and parameters whose elements belong to one iteration
        self._check_stores_and_loads()
        for k, s in enumerate(body):
            self._check_phase(k, s)

    # ---- arrays and activity

    def _bases(self) -> dict[str, frozenset[str]]:
        bases = {name: frozenset((name,)) for name, kind in self.params.items() if isinstance(kind, ir.ArrayType)}
        views = [n for n in self.nodes if isinstance(n, ir.Assign) and isinstance(n.value.type, ir.ArrayType)]
        while True:
            before = dict(bases)
            for n in views:
                bases[n.name] = bases.get(n.name, frozenset()) | self.bases_of(n.value, bases)
            if bases == before:
                return bases

    def bases_of(self, e: Any, bases: Mapping[str, frozenset[str]] | None = None) -> frozenset[str]:
        """The parameters that an array expression is a view of."""
        while isinstance(e, _VIEWS):
            e = e.array
        return (self.bases if bases is None else bases).get(e.name, frozenset())

    def has_gradient(self, array: Any) -> bool:
        return is_float(array.type) and any(b in self.gradients for b in self.bases_of(array))

    def _active(self) -> set[str]:
        active = {name for name in self.gradients if isinstance(self.params[name], ir.ScalarType)}
        while True:
            before = len(active)
            for n in self.nodes:
                if isinstance(n, (ir.Assign, ir.SetElement, Accumulate, Reduce)) and n.name not in active:
                    kind = self.types[n.name]
                    if getattr(getattr(kind, "dtype", None), "kind", "") in "fc" and self._carries(n, active):
                        active.add(n.name)
            if len(active) == before:
                return active

    def _carries(self, n: Any, active: set[str]) -> bool:
        values = n.values if isinstance(n, Reduce) else (n.value,)
        return any(self.is_differentiable(v, active) for v in values)

    def is_differentiable(self, e: Any, active: set[str]) -> bool:
        """Whether a value depends on an active variable or an element with a gradient."""
        if isinstance(e, (ir.Load, ir.Atomic)):
            return self.has_gradient(e.array)
        if isinstance(e, ir.Builtin) and e.name in STEPS:
            return False
        if isinstance(e, ir.Local):
            return e.name in active
        return any(n.name in active for n in ir.walk(*ir.children(e)) if isinstance(n, ir.Local))

    # ---- accesses

    def _accesses(self, body: tuple[Any, ...], fixed: frozenset[Any]) -> Iterator[Access]:
        for s in body:
            if isinstance(s, (ir.For, ir.While)):
                yield from self._accesses(s.body, fixed)
            elif isinstance(s, ir.If):
                yield from self._accesses(s.then, fixed | self._fixed_by(s.condition))
                yield from self._accesses(s.orelse, fixed)
            elif isinstance(s, ir.Store):
                yield Access("store", s.array, s.index, s.loc, fixed, s)
            else:
                for n in ir.walk(s):
                    if isinstance(n, ir.Load):
                        yield Access("load", n.array, n.index, n.loc, fixed, s)
                    elif isinstance(n, ir.Atomic):
                        yield Access("atomic", n.array, n.index, n.loc, fixed, s)

    def _fixed_by(self, condition: Any) -> frozenset[Any]:
        """Loop variables that equal a constant where the condition holds."""
        if isinstance(condition, ir.Local) and self.assigned[condition.name] == 1:
            values = [n.value for n in self.nodes if isinstance(n, ir.Assign) and n.name == condition.name]
            return self._fixed_by(values[0])
        if isinstance(condition, ir.Logic) and condition.op == "and":
            return self._fixed_by(condition.a) | self._fixed_by(condition.b)
        if not isinstance(condition, ir.Compare) or condition.op != "eq":
            return frozenset()
        for a, b in ((condition.a, condition.b), (condition.b, condition.a)):
            while isinstance(a, ir.Cast) and keeps_integers(a):
                a = a.a
            if isinstance(a, ir.Local) and self.loops_over[a.name] == 1 and isinstance(b, ir.Const):
                return frozenset(((a.name, b.value),))
        return frozenset()

    def indices(self, loop: ir.For) -> Indices:
        inside = {id(n) for n in ir.walk(loop)}
        definitions: dict[str, Any] = {}
        for n in self.nodes:
            if not isinstance(n, ir.Assign) or self.assigned[n.name] != 1 or n.name in self.params:
                continue
            if isinstance(n.value.type, ir.ArrayType) or not is_float(n.value.type):
                names = operands(ir.Evaluate(n.loc, n.value))
                if all(self._is_steady(x, id(n) in inside) for x in names):
                    definitions[n.name] = n.value
        changing = {n.name for n in ir.walk(*loop.body) if isinstance(n, (ir.Assign, ir.SetElement, Accumulate))}
        return Indices(loop, definitions, changing | {v for v, count in self.loops_over.items() if count > 1})

    def _is_steady(self, name: str, inside: bool) -> bool:
        loops = self.loops_over[name]
        return self.assigned[name] <= (name not in self.params) and (loops == 0 or (loops == 1 and inside))

    # ---- what is refused

    def _check_bits(self) -> None:
        """Refuses bits of a differentiable number as an integer: they are no step, and may become a float again."""
        for n in self.nodes:
            if isinstance(n, ir.Convert) and n.how == "bitcast" and self.is_differentiable(n.a, self.active):
                self.fail(n.loc, "no gradient flows through the bits of a number", NO_RULE)

    def stores_of(self, name: str) -> list[tuple[int, Access]]:
        """Phases in which a parameter is written, and where."""
        return [
            (k, a) for k, phase in enumerate(self.phases) for a in phase
            if a.kind != "load" and name in self.bases_of(a.array)
        ]  # fmt: skip

    def _check_stores_and_loads(self) -> None:
        """Refuses to lose what flows through an array without a gradient."""
        for phase in self.phases:
            for a in phase:
                value = getattr(a.statement, "value", None)
                value = value.value if isinstance(value, ir.Atomic) else value
                if a.kind == "load" or not is_float(a.array.type) or not self.is_differentiable(value, self.active):
                    continue
                for name in self.bases_of(a.array) - self.gradients.keys():
                    loads = [b for p in self.phases for b in p if b.reads and name in self.bases_of(b.array)]
                    if loads:
                        what = f"{name!r} is written here and read in line {loads[0].loc.line}, and has no gradient"
                        self.fail(a.loc, what, f"what flows through it would be lost: pass grad_{name}, zeros at first")

    def _check_phase(self, k: int, s: Any) -> None:
        is_parallel = isinstance(s, ir.For) and s.loop is not None
        names = {b for a in self.phases[k] for b in self.bases_of(a.array) if is_float(a.array.type)}
        indices = self.indices(s) if is_parallel else None
        for name in sorted(names & self.gradients.keys()):
            accesses = [a for a in self.phases[k] if name in self.bases_of(a.array)]
            if indices is None or indices.are_apart(accesses):
                self.unshared.add((k, name))
                continue
            stores = [a for a in accesses if a.kind == "store"]
            others = [a for a in accesses if a.kind != "store"]
            active = [a for a in stores if self.is_differentiable(a.statement.value, self.active)]
            if stores and (others or active):
                self._refuse_stores(name, indices, stores, others)
            loads = [a for a in accesses if a.kind == "load"]
            if loads and len(loads) < len(accesses):
                what = f"iterations read {name!r} here, and others may add to it"
                self.fail(loads[0].loc, what, "what they read is chance: keep what is added and what is read apart")

    def _refuse_stores(self, name: str, indices: Indices, stores: list[Access], others: list[Access]) -> None:
        which = " and ".join(repr(v) for v in sorted(indices.varying) if not v.startswith(".")) or "the loop's variable"
        if not indices.are_apart(stores):
            what = f"two iterations may store into one element of {name!r}: its index isn't shown to tell {which}"
            advice = f"store at an index of the loop's own, or add: pa.atomic_add({name}, index, x)"
            self.fail(stores[0].loc, f"{what}, so that its gradient may belong to either", advice)
        where = others[0].loc
        what = f"an iteration may read or update an element of {name!r} that another one stores in line"
        advice = "store into another array, or in a loop of its own"
        self.fail(where, f"{what} {stores[0].loc.line}", advice)
