"""Definite-write analysis: which array parameters a function writes wholly, and which it may read before that.

Writes are kept as patterns: `m[i, *]` means that all elements of row `i` are written. A loop over all of an
axis turns its variable into `*`. Of the branches of an `if`, what both write counts. What the analysis can't
follow counts as not written, or as read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from . import ir

ALL = "*"
Index = tuple[Any, ...]  # per axis of a parameter: ALL, the name of a variable, a number, or an `Axis` of a view
State = set[tuple[str, Index]]  # what is written: (parameter, index)


@dataclass(frozen=True)
class Axis:
    """An axis of a view that is whole."""

    number: int


@dataclass(frozen=True)
class DefiniteWrites:
    """The definite writes of one function: what is `written`, in terms of its parameters, and the arrays that it
    may read before."""

    params: tuple[str, ...]
    written: frozenset[tuple[str, Index]]
    read_early: frozenset[str]

    def writes_all(self, name: str) -> bool:
        return any(n == name and all(i == ALL for i in index) for n, index in self.written)


def definite_writes(
    function: ir.Function, callees: dict[str, DefiniteWrites], bases: Callable[[Any], Iterable[str]]
) -> DefiniteWrites:
    """The definite writes of a function. `callees`: those of called functions, by symbol. `bases(expr)`: the
    parameters that an array may be a view of."""
    analysis = _Analysis(function, callees, bases)
    end = analysis.block(function.body, set())
    ends = [*analysis.returns, *([end] if end is not None else [])]
    definite = frozenset(set.intersection(*ends)) if ends else frozenset()
    return DefiniteWrites(tuple(n for n, _ in function.params), definite, frozenset(analysis.read_early))


class _Analysis:
    def __init__(
        self, function: ir.Function, callees: dict[str, DefiniteWrites], bases: Callable[[Any], Iterable[str]]
    ):
        self.callees, self.bases = callees, bases
        self.read_early: set[str] = set()
        self.returns: list[State] = []
        self.loop_exits: list[tuple[list[State], list[State]]] = []  # per loop: states at break, at continue
        nodes = list(ir.walk(*function.body))
        sets = Counter(n.name for n in nodes if isinstance(n, (ir.Assign, ir.Let)))
        self.values = {n.name: n.value for n in nodes if isinstance(n, (ir.Assign, ir.Let)) and sets[n.name] == 1}
        params = {n for n, _ in function.params}
        self.fixed = {v for n in nodes if isinstance(n, ir.For) for v in n.variables} | params - set(sets)

    # ---- arrays and indices

    def base_index(self, array: Any) -> tuple[str, Index] | None:
        """The parameter that the array is a view of, and per axis of it what is fixed and what is whole."""
        if isinstance(array, ir.Local):
            value = self.values.get(array.name)
            if value is not None:
                return self.base_index(value)
            if array.name not in self.fixed:
                return None
            return array.name, tuple(Axis(k) for k in range(array.type.ndim))
        if not isinstance(array, ir.Slice) or array.transposed:
            return None
        base = self.base_index(array.array)
        if base is None:
            return None
        items: list[Any] = []
        for part in array.parts:
            is_full = isinstance(part, ir.Range) and part.start is part.stop is part.step is None
            items.append(Axis(sum(isinstance(i, Axis) for i in items)) if is_full else self.index(part))
        return _compose(base, items)

    def index(self, part: Any) -> Any:
        """A variable that is never reassigned, or a number; None for others."""
        if isinstance(part, ir.Local) and part.name in self.fixed:
            return part.name
        return part.value if isinstance(part, ir.Const) and part.value >= 0 else None

    def element(self, array: Any, index: Iterable[Any]) -> tuple[str, Index] | None:
        base = self.base_index(array)
        return None if base is None else _compose(base, [self.index(i) for i in index])

    def axes(self, range_: ir.Range) -> set[tuple[str, int]]:
        """Axes that the range runs over, all of them."""
        stop, first, step = range_.stop, range_.start, range_.step
        if isinstance(stop, ir.Local):
            stop = self.values.get(stop.name)
        zero = first is None or (isinstance(first, ir.Const) and first.value == 0)
        one = step is None or (isinstance(step, ir.Const) and step.value == 1)
        if not isinstance(stop, ir.Size) or not zero or not one:
            return set()
        base = self.base_index(stop.array)
        return set() if base is None else {(base[0], k) for k, i in enumerate(base[1]) if i == Axis(stop.axis)}

    # ---- expressions

    def read(self, array: Any, index: Iterable[Any], state: State) -> None:
        element = self.element(array, index)
        for name in self.bases(array):
            is_full = any(n == name and all(i == ALL for i in at) for n, at in state)
            if not is_full and (element is None or element not in state):
                self.read_early.add(name)

    def expr(self, node: Any, state: State) -> None:
        if isinstance(node, (ir.Select, ir.Logic)):
            first, *others = ir.children(node)
            self.expr(first, state)
            for other in others:  # which may not be evaluated
                self.expr(other, set(state))
            return
        for child in ir.children(node):
            self.expr(child, state)
        if isinstance(node, (ir.Load, ir.Atomic)):
            self.read(node.array, node.index, state)
        elif isinstance(node, ir.Invoke):
            self.call(node, state)

    def call(self, node: ir.Invoke, state: State) -> None:
        callee = self.callees[node.function]
        args = dict(zip(callee.params, node.args, strict=True))
        for name in callee.read_early:
            if isinstance(args[name].type, ir.ArrayType):
                self.read(args[name], [None] * args[name].type.ndim, state)
        for name, index in callee.written:
            base = self.base_index(args[name])
            indices = [self.index(args[i]) if isinstance(i, str) and i != ALL else i for i in index]
            composed = None if base is None else _compose(base, indices)
            if composed is not None:
                state.add(composed)

    # ---- statements

    def block(self, statements: tuple[ir.Stmt, ...], state: State) -> State | None:
        """What is written after them; None if their end is never reached."""
        for s in statements:
            if isinstance(s, ir.If):
                self.expr(s.condition, state)
                ends = [self.block(s.then, set(state)), self.block(s.orelse, set(state))]
                reached = [end for end in ends if end is not None]
                if not reached:
                    return None
                state = set.intersection(*reached)
            elif isinstance(s, ir.For):
                state |= self.loop(s, state)
            elif isinstance(s, ir.While):
                self.expr(s.condition, state)
                self.loop_exits.append(([], []))
                self.block(s.body, set(state))
                self.loop_exits.pop()
            elif isinstance(s, (ir.Break, ir.Continue)):
                self.loop_exits[-1][isinstance(s, ir.Continue)].append(state)
                return None
            else:
                self.simple(s, state)
                if isinstance(s, ir.Return):
                    self.returns.append(state)
                    return None
        return state

    def simple(self, s: Any, state: State) -> None:
        if not isinstance(s, ir.Store):
            for child in ir.children(s):
                self.expr(child, state)
            return
        for part in (s.value, s.array, *s.index):
            self.expr(part, state)
        element = self.element(s.array, s.index)
        if element is not None:
            state.add(element)

    def loop(self, s: ir.For, state: State) -> State:
        for range_ in s.ranges:
            self.expr(range_, state)
        self.loop_exits.append(([], []))
        end = self.block(s.body, set(state))
        broken, continued = self.loop_exits.pop()
        ends = [*continued, *([end] if end is not None else [])]
        if broken or not ends:
            return set()
        axes = [self.axes(range_) for range_ in s.ranges]
        result: State = set()
        for name, index in set.intersection(*ends):
            where = [[k for k, i in enumerate(index) if i == v] for v in s.variables]
            if all(len(w) == 1 and (name, w[0]) in a for w, a in zip(where, axes, strict=True)):
                swept = {w[0] for w in where}
                result.add((name, tuple(ALL if k in swept else i for k, i in enumerate(index))))
        return result


def _compose(base: tuple[str, Index], items: list[Any]) -> tuple[str, Index] | None:
    """The index `items` of a view, in terms of the parameter; None where it isn't known."""
    name, outer = base
    composed = tuple(items[i.number] if isinstance(i, Axis) else i for i in outer)
    return None if None in composed else (name, composed)
