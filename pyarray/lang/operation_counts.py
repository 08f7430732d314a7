"""What a kernel does at given sizes, from its typed tree: operations, loads and stores, without running it.

Loops are counted by their trip counts. A loop whose variable decides a branch, or the bounds of a loop inside
it, is unrolled over its iterations, as vectors. What depends on data is assumed, and the assumption is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import ir
from .static_evaluation import View, evaluate, kept, length

ASSUMED_TRIPS = 64  # of a loop whose trip count depends on data
MOST_STEPS = 1024  # of a while loop that follows from sizes
MOST_POINTS = 1 << 20  # iterations that are told apart; of more, the middle one stands for all


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
    walk = _Walk(tree)
    for name, kind in tree.kernel.params:
        value = values.get(name)
        walk.env[name] = View(name, tuple(value or ())) if isinstance(kind, ir.ArrayType) else value
    with np.errstate(all="ignore"):
        walk.block(tree.kernel.body, _Weight(1))
    sums = walk.sums
    loads, stores = ({n: sums[what, n] for w, n in sums if w == what} for what in ("load", "store"))
    operations, iterations = sums["operation", ""], sums["iteration", ""]
    return OperationCounts(operations, loads, stores, iterations, tuple(walk.assumptions))


class _Weight:
    """How often something is executed: a number, or one per point."""

    def __init__(self, value: Any):
        self.value = value

    @cached_property
    def total(self) -> int:
        if not isinstance(self.value, np.ndarray):
            return int(self.value)
        near = float(np.sum(self.value, dtype=np.float64))
        return int(np.sum(self.value)) if near < 2.0**62 else sum(map(int, self.value))

    def times(self, factor: Any) -> _Weight:
        return _Weight(self.value * factor)


class _Walk:
    def __init__(self, tree: ir.Tree):
        self.functions = {f.symbol: f for f in tree.functions}
        self.env: dict[str, Any] = {}  # of the function that is walked; None: not known
        self.sums: Counter[tuple[str, str]] = Counter()
        self.assumptions: dict[str, None] = {}
        self.deciding = _deciding((tree.kernel, *tree.functions))
        self.points = 1
        self.loops = 0  # around what is walked, in this function
        self.guessed = 0  # branches around it, inside the same loop, that depend on data

    # ---- statements

    def block(self, body: Iterable[ir.Stmt], weight: _Weight) -> Any:
        """How often the block is left before its end, by `continue` or `return`."""
        left: Any = 0
        if not weight.total:
            return left
        for node in body:
            gone = self.statement(node, weight)
            if gone is not None:
                weight, left = _Weight(weight.value - gone), left + gone
        return left

    def statement(self, node: Any, weight: _Weight) -> Any:
        """As `block`; None where it isn't left."""
        match node:
            case ir.Assign(name=name, value=value):
                self.env[name] = self.value(value, weight)
            case ir.Store(array=array, index=index, value=value):
                self.value(value, weight)
                self.access("store", array, index, weight)
            case ir.For():
                self.loop(node, weight)
            case ir.While():
                self.repeat(node, weight)
            case ir.If():
                return self.branch(node, weight)
            case ir.Break() | ir.Continue() | ir.Return():
                return self.leave(node, weight)
            case ir.Evaluate(value=value):
                self.value(value, weight)
        return None

    def leave(self, node: ir.Break | ir.Continue | ir.Return, weight: _Weight) -> Any:
        if isinstance(node, ir.Return) and node.value is not None:
            self.env[".result"] = self.value(node.value, weight)
        known = isinstance(node, ir.Continue) or (isinstance(node, ir.Return) and not self.loops)
        if known and not self.guessed:
            return weight.value
        if weight.total:
            self.assume(node, f"{type(node).__name__.lower()} is never taken")
        return None

    def loop(self, node: ir.For, weight: _Weight) -> None:
        bounds = []
        for r in node.ranges:
            start, stop, step = (
                default if x is None else self.value(x, weight, counted=False)
                for x, default in ((r.start, 0), (r.stop, None), (r.step, 1))
            )
            bounds.append((start, step, length(start, stop, step)))
        with self.scope(node, weight) as place:
            for name, (start, step, trips) in zip(node.variables, bounds, strict=True):
                if trips is None:
                    self.assume(node, f"the loop runs {ASSUMED_TRIPS} times")
                    trips = ASSUMED_TRIPS
                self.expand(node, place, name, (start, step, trips))
            if node.loop is not None:
                self.sums["iteration", ""] += place.weight.total
            self.block(node.body, place.weight)

    def expand(self, node: ir.For, place: _Place, name: str, run: tuple[Any, Any, Any]) -> None:
        """The loop's variable, and the weight inside."""
        start, step, trips = run
        if place.repeats is not None:  # an outer variable of the same statement has been unrolled
            start, step, trips = (
                x[place.repeats] if isinstance(x, np.ndarray) else x for x in (start, step, trips)
            )
        self.env[name] = None
        whole = int(np.sum(trips)) if isinstance(trips, np.ndarray) else int(trips) * self.points
        if name not in self.deciding or start is None or step is None or not whole:
            place.weight = place.weight.times(trips)
            return
        if whole > MOST_POINTS:
            self.assume(node, f"the middle value of {name} stands for its {whole} values")
            self.env[name] = start + step * (trips // 2)
            place.weight = place.weight.times(trips)
            return
        each = np.broadcast_to(np.asarray(trips, np.int64), (self.points,))
        repeats = np.repeat(np.arange(self.points), each)
        number = np.arange(whole) - np.repeat(np.cumsum(each) - each, each)
        for key, value in self.env.items():
            self.env[key] = kept(value, repeats)
        self.env[name] = _at(start, repeats) + _at(step, repeats) * number
        place.weight = _Weight(np.broadcast_to(np.asarray(_at(place.weight.value, repeats)), (whole,)))
        place.repeats = repeats if place.repeats is None else place.repeats[repeats]
        self.points = whole

    def repeat(self, node: ir.While, weight: _Weight) -> None:
        """Step by step, as long as the condition follows from sizes."""
        self.loops, guessed, self.guessed = self.loops + 1, self.guessed, 0
        for _ in range(MOST_STEPS):
            before = self.sums.copy()
            known = self.value(node.condition, weight)
            if known is None or isinstance(known, np.ndarray):
                self.sums = before
                break
            if not known:
                self.loops, self.guessed = self.loops - 1, guessed
                return
            self.block(node.body, weight)
        self.loops, self.guessed = self.loops - 1, guessed
        self.assume(node, f"the loop runs {ASSUMED_TRIPS} times")
        with self.scope(node, weight):
            self.value(node.condition, weight.times(ASSUMED_TRIPS + 1))
            self.block(node.body, weight.times(ASSUMED_TRIPS))

    @contextmanager
    def scope(self, node: ir.For | ir.While, weight: _Weight) -> Iterator[_Place]:
        """Inside a loop, and after it nothing is known of what it assigns."""
        self.env |= dict.fromkeys(ir.assigned(*node.body))
        outside = dict(self.env), self.points, self.guessed
        self.loops, self.guessed = self.loops + 1, 0
        yield _Place(weight)
        self.loops -= 1
        self.env, self.points, self.guessed = outside

    def branch(self, node: ir.If, weight: _Weight) -> Any:
        known = self.value(node.condition, weight)
        if known is None:
            self.costlier(node, (node.then, node.orelse), lambda part: self.block(part, weight))
            return None
        if isinstance(known, np.ndarray):
            before = dict(self.env)
            left = self.block(node.then, weight.times(known))
            self.env = before
            left = left + self.block(node.orelse, weight.times(~known))
            self.env |= dict.fromkeys(ir.assigned(*node.then, *node.orelse))
            return left
        return self.block(node.then if known else node.orelse, weight)

    def costlier(self, node: Any, sides: tuple[Any, Any], walk: Any) -> None:
        """Both sides, of which the one that does more is counted."""
        before, found = self.sums, []
        names = ir.assigned(*(n for side in sides for n in (side if isinstance(side, tuple) else (side,))))
        for side in sides:
            self.sums = Counter()
            env = dict(self.env)
            self.guessed += 1
            walk(side)
            self.env = env
            self.guessed -= 1
            found.append(self.sums)
        self.env |= dict.fromkeys(names)
        if found[0] != found[1]:
            self.assume(node, "the costlier side of the branch is always taken")
        self.sums = before + max(found, key=lambda s: sum(s.values()))

    # ---- expressions

    def value(self, node: Any, weight: _Weight, counted: bool = True) -> Any:
        """What is known of an expression's value. Its loads are counted, its operations if `counted`."""
        match node:
            case ir.Load(array=array, index=index):
                return self.access("load", array, index, weight)
            case ir.Atomic(array=array, index=index):
                for x in (node.value, *(() if node.desired is None else (node.desired,))):
                    self.value(x, weight, counted)
                self.sums["operation", ""] += weight.total
                self.access("store", array, index, weight, count_index=False)
                return self.access("load", array, index, weight)
            case ir.Select():
                return self.select(node, weight, counted)
            case ir.Logic(op=op, a=a, b=b):
                first = self.value(a, weight, counted)
                second = self.value(b, self.after(node, first, weight), counted)
                self.sums["operation", ""] += weight.total if counted else 0
                return _logic(op, first, second)
            case ir.Let(name=name, value=value, body=body):
                self.env[name] = self.value(value, weight, counted)
                return self.value(body, weight, counted)
            case ir.Invoke():
                return self.invoke(node, weight, counted)
            case ir.Slice(parts=parts, array=array, turned=turned):
                given = self.value(array, weight, False)
                ends = [self.part(p, weight) for p in parts]
                return given.sliced(ends, turned) if isinstance(given, View) else None
            case ir.SubView(array=array, offset=offset, size=size):
                given = self.value(array, weight, False)
                self.value(offset, weight, False)
                extent = self.value(size, weight, False)
                return View(given.root, (extent,)) if isinstance(given, View) else None
            case ir.Reshape(array=array, shape=shape):
                given = self.value(array, weight, False)
                sizes = [self.value(n, weight, False) for n in shape]
                return given.reshaped(sizes, node.missing) if isinstance(given, View) else None
            case ir.Local(name=name):
                return self.env.get(name)
            case ir.Size(array=array, axis=axis):
                given = self.value(array, weight, False)
                return given.shape[axis] if isinstance(given, View) and axis < len(given.shape) else None
        below = [self.value(x, weight, counted) for x in ir.children(node)]
        if counted and isinstance(node, (ir.Unary, ir.Binary, ir.Compare, ir.Builtin)):
            self.sums["operation", ""] += weight.total
        return evaluate(node, below)

    def part(self, part: Any, weight: _Weight) -> Any:
        if not isinstance(part, ir.Range):
            self.value(part, weight, False)
            return 0
        ends = (part.start, part.stop, part.step)
        known = [None if x is None else self.value(x, weight, False) for x in ends]
        unknown = any(x is not None and v is None for x, v in zip(ends, known, strict=True))
        return None if unknown else tuple(known)

    def after(self, node: ir.Logic, first: Any, weight: _Weight) -> _Weight:
        """How often the second operand is evaluated."""
        if first is None:
            if any(isinstance(x, ir.Load) for x in ir.walk(node.b)):
                self.assume(node, "both operands of and, or are always evaluated")
            return weight
        reached = first if node.op == "and" else np.logical_not(first)
        return weight.times(reached if isinstance(reached, np.ndarray) else int(reached))

    def select(self, node: ir.Select, weight: _Weight, counted: bool) -> Any:
        known = self.value(node.condition, weight, counted)
        if known is None:
            self.costlier(node, (node.a, node.b), lambda part: self.value(part, weight, counted))
            return None
        if not isinstance(known, np.ndarray):
            return self.value(node.a if known else node.b, weight, counted)
        a = self.value(node.a, weight.times(known), counted)
        b = self.value(node.b, weight.times(~known), counted)
        return None if a is None or b is None else np.where(known, a, b)

    def access(
        self, what: str, array: Any, index: Iterable[Any], weight: _Weight, count_index: bool = True
    ) -> None:
        if count_index:
            for x in index:
                self.value(x, weight, counted=False)
        place = self.value(array, weight, counted=False)
        self.sums[what, place.root if isinstance(place, View) else ""] += weight.total

    def invoke(self, node: ir.Invoke, weight: _Weight, counted: bool) -> Any:
        function = self.functions[node.function]
        given = [self.value(x, weight, counted) for x in node.args]
        outside = self.env, self.loops, self.guessed
        self.loops = self.guessed = 0
        self.env = dict(zip((n for n, _ in function.params), given, strict=True))
        self.block(function.body, weight)
        several = any(isinstance(x, ir.Return) for s in function.body[:-1] for x in ir.walk(s))
        result = None if several else self.env.get(".result")
        self.env, self.loops, self.guessed = outside
        return result

    def assume(self, node: Any, what: str) -> None:
        self.assumptions[f"line {node.loc.line}: {what}"] = None


@dataclass
class _Place:
    """Inside a loop: how often, and the point outside of each point there."""

    weight: _Weight
    repeats: Any = None


def _at(value: Any, repeats: Any) -> Any:
    return value[repeats] if isinstance(value, np.ndarray) else value


def _logic(op: str, a: Any, b: Any) -> Any:
    for x in (a, b):
        if x is not None and not isinstance(x, np.ndarray) and bool(x) == (op == "or"):
            return bool(x)
    if a is None or b is None:
        return None
    found = (np.logical_or if op == "or" else np.logical_and)(a, b)
    return found if isinstance(found, np.ndarray) else bool(found)


def _deciding(functions: Iterable[ir.Function]) -> set[str]:
    """Names of variables whose values decide how often something runs. Names are those of all functions, so
    that an argument decides where its parameter does."""
    found: set[str] = set()
    carriers: list[tuple[str, Any]] = []
    for f in functions:
        for node in (n for s in f.body for n in ir.walk(s)):
            match node:
                case ir.For(ranges=ranges):
                    found |= _named(*ranges)
                case ir.If(condition=x) | ir.Select(condition=x) | ir.Logic(a=x):
                    found |= _named(x)
                case ir.Slice() | ir.SubView() | ir.Reshape():
                    found |= _named(node)
                case ir.Assign(name=name, value=value) | ir.Let(name=name, value=value):
                    carriers.append((name, value))
                case ir.Invoke(args=args):
                    callee = next(g for g in functions if g.symbol == node.function)
                    carriers += [(name, x) for (name, _), x in zip(callee.params, args, strict=True)]
    size = -1
    while size < len(found):
        size = len(found)
        for name, value in carriers:
            if name in found:
                found |= _named(value)
    return found


def _named(*nodes: Any) -> set[str]:
    """Variables in expressions, but for those that only say where something is loaded from."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ir.Local):
            found.add(node.name)
        if not isinstance(node, (ir.Load, ir.Atomic)):
            found |= _named(*ir.children(node))
    return found
