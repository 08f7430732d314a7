"""Counts the operations, loads and stores of a launch from the typed tree, without running it.

A loop multiplies what is in it by its trip count. A loop whose variable decides a branch, or the bounds of an
inner loop, is unrolled over its iterations, as vectors. What depends on data is assumed, and the assumption is
reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import ir
from .static_evaluation import View, at_points, evaluate, trip_count
from .summaries import assigned_in

ASSUMED_TRIPS = 64  # of a loop whose trip count depends on data
MAX_STEPS = 1024  # of a while loop that follows from sizes
MAX_POINTS = 1 << 20  # iterations that are told apart; of more, the middle one stands for all


@dataclass(frozen=True)
class OperationCounts:
    """Operations of a launch, elements loaded and stored by parameter, iterations of the parallel loops.
    `assumptions` say what depends on data; without any, the numbers are exact."""

    operations: int
    loads: Mapping[str, int]
    stores: Mapping[str, int]
    iterations: int
    assumptions: tuple[str, ...] = ()


CountOperations = Callable[[Mapping[str, Any]], OperationCounts]  # by numbers and shapes of parameters


def count(tree: ir.Tree, values: Mapping[str, Any]) -> OperationCounts:
    """Of a launch with these values of the kernel's parameters: numbers, and shapes (tuples) of arrays."""
    counter = _Counter(tree)
    for name, kind in tree.kernel.params:
        value = values.get(name)
        counter.env[name] = View(name, tuple(value or ())) if isinstance(kind, ir.ArrayType) else value
    with np.errstate(all="ignore"):
        counter.block(tree.kernel.body, _Frequency(1))
    sums = counter.sums
    loads, stores = ({n: sums[what, n] for w, n in sums if w == what} for what in ("load", "store"))
    operations, iterations = sums["operation", ""], sums["iteration", ""]
    return OperationCounts(operations, loads, stores, iterations, tuple(counter.assumptions))


class _Frequency:
    """How often something is executed: a number, or one per point."""

    def __init__(self, value: Any):
        self.value = value

    @cached_property
    def total(self) -> int:
        if not isinstance(self.value, np.ndarray):
            return int(self.value)
        near = float(np.sum(self.value, dtype=np.float64))
        return int(np.sum(self.value)) if near < 2.0**62 else sum(map(int, self.value))

    def times(self, factor: Any) -> _Frequency:
        return _Frequency(self.value * factor)


class _Counter:
    def __init__(self, tree: ir.Tree):
        self.functions = {f.symbol: f for f in tree.functions}
        self.env: dict[str, Any] = {}  # of the function that is walked; None: not known
        self.sums: Counter[tuple[str, str]] = Counter()
        self.assumptions: dict[str, None] = {}
        self.control_variables = _control_variables((tree.kernel, *tree.functions))
        self.points = 1
        self.loops = 0  # around what is walked, in this function
        self.unknown_branches = 0  # branches around it, inside the same loop, that depend on data

    # ---- statements

    def block(self, body: Iterable[ir.Stmt], freq: _Frequency) -> Any:
        """How often the block is left before its end, by `continue` or `return`."""
        leaving: Any = 0
        if not freq.total:
            return leaving
        for node in body:
            left = self.statement(node, freq)
            if left is not None:
                freq, leaving = _Frequency(freq.value - left), leaving + left
        return leaving

    def statement(self, node: Any, freq: _Frequency) -> Any:
        """As `block`; None where it isn't left."""
        match node:
            case ir.Assign(name=name, value=value):
                self.env[name] = self.value(value, freq)
            case ir.Store(array=array, index=index, value=value):
                self.value(value, freq)
                self.access("store", array, index, freq)
            case ir.SetElement(index=index, value=value):
                self.value(value, freq)
                for x in index:
                    self.value(x, freq, counted=False)
                self.env[node.name] = None
            case ir.For():
                self.loop(node, freq)
            case ir.While():
                self.repeat(node, freq)
            case ir.If():
                return self.branch(node, freq)
            case ir.Break() | ir.Continue() | ir.Return():
                return self.leave(node, freq)
            case ir.Evaluate(value=value):
                self.value(value, freq)
        return None

    def leave(self, node: ir.Break | ir.Continue | ir.Return, freq: _Frequency) -> Any:
        if isinstance(node, ir.Return) and node.value is not None:
            self.env[".result"] = self.value(node.value, freq)
        is_supported = isinstance(node, ir.Continue) or (isinstance(node, ir.Return) and not self.loops)
        if is_supported and not self.unknown_branches:
            return freq.value
        if freq.total:
            self.assume(node, f"{type(node).__name__.lower()} is never taken")
        return None

    def loop(self, node: ir.For, freq: _Frequency) -> None:
        bounds = []
        for r in node.ranges:
            start, stop, step = (
                default if x is None else self.value(x, freq, counted=False)
                for x, default in ((r.start, 0), (r.stop, None), (r.step, 1))
            )
            bounds.append((start, step, trip_count(start, stop, step)))
        with self.scope(node, freq) as inner:
            for name, (start, step, trips) in zip(node.variables, bounds, strict=True):
                if trips is None:
                    self.assume(node, f"the loop runs {ASSUMED_TRIPS} times")
                    trips = ASSUMED_TRIPS
                self.expand(node, inner, name, (start, step, trips))
            if node.loop is not None:
                self.sums["iteration", ""] += inner.freq.total
            self.block(node.body, inner.freq)

    def expand(self, node: ir.For, inner: _LoopScope, name: str, run: tuple[Any, Any, Any]) -> None:
        """The loop's variable, and the weight inside."""
        start, step, trips = run
        if inner.repeats is not None:  # an outer variable of the same statement has been unrolled
            start, step, trips = (x[inner.repeats] if isinstance(x, np.ndarray) else x for x in (start, step, trips))
        self.env[name] = None
        total_points = int(np.sum(trips)) if isinstance(trips, np.ndarray) else int(trips) * self.points
        if name not in self.control_variables or start is None or step is None or not total_points:
            inner.freq = inner.freq.times(trips)
            return
        if total_points > MAX_POINTS:
            self.assume(node, f"the middle value of {name} stands for its {total_points} values")
            self.env[name] = start + step * (trips // 2)
            inner.freq = inner.freq.times(trips)
            return
        each = np.broadcast_to(np.asarray(trips, np.int64), (self.points,))
        repeats = np.repeat(np.arange(self.points), each)
        number = np.arange(total_points) - np.repeat(np.cumsum(each) - each, each)
        for key, value in self.env.items():
            self.env[key] = at_points(value, repeats)
        self.env[name] = _at(start, repeats) + _at(step, repeats) * number
        inner.freq = _Frequency(np.broadcast_to(np.asarray(_at(inner.freq.value, repeats)), (total_points,)))
        inner.repeats = repeats if inner.repeats is None else inner.repeats[repeats]
        self.points = total_points

    def repeat(self, node: ir.While, freq: _Frequency) -> None:
        """Step by step, as long as the condition follows from sizes."""
        self.loops, unknown_branches, self.unknown_branches = self.loops + 1, self.unknown_branches, 0
        for _ in range(MAX_STEPS):
            before = self.sums.copy()
            condition = self.value(node.condition, freq)
            if condition is None or isinstance(condition, np.ndarray):
                self.sums = before
                break
            if not condition:
                self.loops, self.unknown_branches = self.loops - 1, unknown_branches
                return
            self.block(node.body, freq)
        self.loops, self.unknown_branches = self.loops - 1, unknown_branches
        self.assume(node, f"the loop runs {ASSUMED_TRIPS} times")
        with self.scope(node, freq):
            self.value(node.condition, freq.times(ASSUMED_TRIPS + 1))
            self.block(node.body, freq.times(ASSUMED_TRIPS))

    @contextmanager
    def scope(self, node: ir.For | ir.While, freq: _Frequency) -> Iterator[_LoopScope]:
        """Inside a loop, and after it nothing is known of what it assigns."""
        self.env |= dict.fromkeys(assigned_in(*node.body))
        outside = dict(self.env), self.points, self.unknown_branches
        self.loops, self.unknown_branches = self.loops + 1, 0
        yield _LoopScope(freq)
        self.loops -= 1
        self.env, self.points, self.unknown_branches = outside

    def branch(self, node: ir.If, freq: _Frequency) -> Any:
        condition = self.value(node.condition, freq)
        if condition is None:
            self.costlier(node, (node.then, node.orelse), lambda part: self.block(part, freq))
            return None
        if isinstance(condition, np.ndarray):
            before = dict(self.env)
            leaving = self.block(node.then, freq.times(condition))
            self.env = before
            leaving = leaving + self.block(node.orelse, freq.times(~condition))
            self.env |= dict.fromkeys(assigned_in(*node.then, *node.orelse))
            return leaving
        return self.block(node.then if condition else node.orelse, freq)

    def costlier(self, node: Any, sides: tuple[Any, Any], walk: Any) -> None:
        """Both sides, of which the one that does more is counted."""
        before, counted = self.sums, []
        names = assigned_in(*(n for side in sides for n in (side if isinstance(side, tuple) else (side,))))
        for side in sides:
            self.sums = Counter()
            env = dict(self.env)
            self.unknown_branches += 1
            walk(side)
            self.env = env
            self.unknown_branches -= 1
            counted.append(self.sums)
        self.env |= dict.fromkeys(names)
        if counted[0] != counted[1]:
            self.assume(node, "the costlier side of the branch is always taken")
        self.sums = before + max(counted, key=lambda s: sum(s.values()))

    # ---- expressions

    def value(self, node: Any, freq: _Frequency, counted: bool = True) -> Any:
        """What is known of an expression's value. Its loads are counted, its operations if `counted`."""
        match node:
            case ir.Load(array=array, index=index):
                return self.access("load", array, index, freq)
            case ir.Atomic(array=array, index=index):
                for x in (node.value, *(() if node.desired is None else (node.desired,))):
                    self.value(x, freq, counted)
                self.sums["operation", ""] += freq.total
                self.access("store", array, index, freq, count_index=False)
                return self.access("load", array, index, freq)
            case ir.Select():
                return self.select(node, freq, counted)
            case ir.Logic(op=op, a=a, b=b):
                first = self.value(a, freq, counted)
                second = self.value(b, self.after(node, first, freq), counted)
                self.sums["operation", ""] += freq.total if counted else 0
                return _logic(op, first, second)
            case ir.Let(name=name, value=value, body=body):
                self.env[name] = self.value(value, freq, counted)
                return self.value(body, freq, counted)
            case ir.Invoke():
                return self.invoke(node, freq, counted)
            case ir.Slice(parts=parts, array=array, transposed=transposed):
                view = self.value(array, freq, False)
                ends = [self.part(p, freq) for p in parts]
                return view.sliced(ends, transposed) if isinstance(view, View) else None
            case ir.SubView(array=array, offset=offset, size=size):
                view = self.value(array, freq, False)
                self.value(offset, freq, False)
                extent = self.value(size, freq, False)
                return View(view.base, (extent,)) if isinstance(view, View) else None
            case ir.Reshape(array=array, shape=shape):
                view = self.value(array, freq, False)
                sizes = [self.value(n, freq, False) for n in shape]
                return view.reshaped(sizes, node.missing) if isinstance(view, View) else None
            case ir.Local(name=name):
                return self.env.get(name)
            case ir.Size(array=array, axis=axis):
                view = self.value(array, freq, False)
                return view.shape[axis] if isinstance(view, View) and axis < len(view.shape) else None
        below = [self.value(x, freq, counted) for x in ir.children(node)]
        if counted and isinstance(node, (ir.Unary, ir.Binary, ir.Compare, ir.Builtin)):
            self.sums["operation", ""] += freq.total
        return evaluate(node, below)

    def part(self, part: Any, freq: _Frequency) -> Any:
        if not isinstance(part, ir.Range):
            self.value(part, freq, False)
            return 0
        ends = (part.start, part.stop, part.step)
        values = [None if x is None else self.value(x, freq, False) for x in ends]
        unknown = any(x is not None and v is None for x, v in zip(ends, values, strict=True))
        return None if unknown else tuple(values)

    def after(self, node: ir.Logic, first: Any, freq: _Frequency) -> _Frequency:
        """How often the second operand is evaluated."""
        if first is None:
            if any(isinstance(x, ir.Load) for x in ir.walk(node.b)):
                self.assume(node, "both operands of and, or are always evaluated")
            return freq
        reached = first if node.op == "and" else np.logical_not(first)
        return freq.times(reached if isinstance(reached, np.ndarray) else int(reached))

    def select(self, node: ir.Select, freq: _Frequency, counted: bool) -> Any:
        condition = self.value(node.condition, freq, counted)
        if condition is None:
            self.costlier(node, (node.a, node.b), lambda part: self.value(part, freq, counted))
            return None
        if not isinstance(condition, np.ndarray):
            return self.value(node.a if condition else node.b, freq, counted)
        a = self.value(node.a, freq.times(condition), counted)
        b = self.value(node.b, freq.times(~condition), counted)
        return None if a is None or b is None else np.where(condition, a, b)

    def access(self, what: str, array: Any, index: Iterable[Any], freq: _Frequency, count_index: bool = True) -> None:
        if count_index:
            for x in index:
                self.value(x, freq, counted=False)
        view = self.value(array, freq, counted=False)
        self.sums[what, view.base if isinstance(view, View) else ""] += freq.total

    def invoke(self, node: ir.Invoke, freq: _Frequency, counted: bool) -> Any:
        function = self.functions[node.function]
        args = [self.value(x, freq, counted) for x in node.args]
        outside = self.env, self.loops, self.unknown_branches
        self.loops = self.unknown_branches = 0
        self.env = dict(zip((n for n, _ in function.params), args, strict=True))
        self.block(function.body, freq)
        several = any(isinstance(x, ir.Return) for x in ir.walk(*function.body[:-1]))
        result = None if several else self.env.get(".result")
        self.env, self.loops, self.unknown_branches = outside
        return result

    def assume(self, node: Any, what: str) -> None:
        self.assumptions[f"line {node.loc.line}: {what}"] = None


@dataclass
class _LoopScope:
    """Inside a loop: how often, and the point outside of each point there."""

    freq: _Frequency
    repeats: Any = None


def _at(value: Any, repeats: Any) -> Any:
    return value[repeats] if isinstance(value, np.ndarray) else value


def _logic(op: str, a: Any, b: Any) -> Any:
    for x in (a, b):
        if x is not None and not isinstance(x, np.ndarray) and bool(x) == (op == "or"):
            return bool(x)
    if a is None or b is None:
        return None
    result = (np.logical_or if op == "or" else np.logical_and)(a, b)
    return result if isinstance(result, np.ndarray) else bool(result)


def _control_variables(functions: Iterable[ir.Function]) -> set[str]:
    """Names of variables whose values decide how often something runs. Names are those of all functions, so
    that an argument decides where its parameter does."""
    control: set[str] = set()
    carriers: list[tuple[str, Any]] = []
    for f in functions:
        for node in ir.walk(*f.body):
            match node:
                case ir.For(ranges=ranges):
                    control |= _named(*ranges)
                case ir.If(condition=x) | ir.Select(condition=x) | ir.Logic(a=x):
                    control |= _named(x)
                case ir.Slice() | ir.SubView() | ir.Reshape():
                    control |= _named(node)
                case (
                    ir.Assign(name=name, value=value)
                    | ir.Let(name=name, value=value)
                    | ir.SetElement(name=name, value=value)
                ):
                    carriers.append((name, value))
                case ir.Invoke(args=args):
                    callee = next(g for g in functions if g.symbol == node.function)
                    carriers += [(name, x) for (name, _), x in zip(callee.params, args, strict=True)]
    size = -1
    while size < len(control):
        size = len(control)
        for name, value in carriers:
            if name in control:
                control |= _named(value)
    return control


def _named(*nodes: Any) -> set[str]:
    """Variables in expressions, but for those that only say where something is loaded from."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ir.Local):
            names.add(node.name)
        if not isinstance(node, (ir.Load, ir.Atomic)):
            names |= _named(*ir.children(node))
    return names
