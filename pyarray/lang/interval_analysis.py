"""Interval analysis, generic over the domain of bounds: an interval per integer, the extents of each array.

`bounds_elimination` compares bounds at compile time; `hoisted_checks` writes them as C that a block of
iterations evaluates once. An interval is a claim about values that occur: for code that never runs, any
claim is true."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from . import ir
from .promotion import NEGATED_COMPARISON, SWAPPED_COMPARISON
from .summaries import assigned_in
from .types import is_axis_bound, lasting_sizes

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Interval:
    """low <= value <= high, in bounds of the domain."""

    low: Any
    high: Any


Bounds = Interval | None  # None: anything
Shape = tuple[Bounds, ...]  # extents of an array


@dataclass(frozen=True, slots=True)
class InRange:
    """The test 0 <= index < extent."""

    index: Bounds
    extent: Bounds


@dataclass(frozen=True, slots=True)
class SubViewFits:
    """The test of a sub-view: 0 <= offset, 0 <= size, offset + size <= extent."""

    offset: Bounds
    size: Bounds
    extent: Bounds


@dataclass(frozen=True, slots=True)
class NonZero:
    """The test of a slice's step."""

    step: Bounds


UNPROVABLE = NonZero(None)  # never satisfied
Test = InRange | SubViewFits | NonZero


class BoundDomain(Protocol):
    """Arithmetic of bounds; None: unknown. `narrowed`: `a` where `a op b` holds. The condition compared
    `compared`, a sum with `a` that must not have wrapped."""

    def constant(self, value: int) -> Interval: ...
    def top(self) -> Bounds: ...
    def binary(self, op: str, a: Interval, b: Interval) -> Bounds: ...
    def union(self, a: Interval, b: Interval) -> Bounds: ...
    def narrowed(self, op: str, a: Interval, b: Interval, compared: Bounds) -> Interval: ...
    def loop(self, start: Interval, stop: Interval, step: Interval) -> Bounds: ...
    def slice_length(self, part: tuple[Bounds, Bounds, Bounds], present: str, extent: Bounds) -> Bounds: ...
    def extent(self, bounds: Bounds, at_most: Bounds = None) -> Bounds: ...
    def satisfy(self, test: Test) -> bool: ...


class NotExpressible(Exception):
    """A requested test can't be expressed in bounds."""


class IntervalAnalysis:
    """One pass over a function's statements. `satisfied` collects the sites whose tests the domain satisfies. With
    `wanted`, only those sites are tried, and one that fails raises `NotExpressible`. `call` analyses a call and
    returns whether all of its tests hold, and its value."""

    def __init__(
        self,
        domain: BoundDomain,
        env: dict[str, Any],
        call: Callable[[ir.Invoke, list[Any]], tuple[bool, Any]],
        wanted: frozenset[int] | None = None,
    ):
        self.domain, self.env, self.call, self.wanted = domain, env, call, wanted
        self.satisfied: set[int] = set()
        self.returned: list[Any] = []

    # ---- statements

    def block(self, statements: Iterable[ir.Stmt]) -> bool:
        """Analyses statements; returns whether the end is never reached."""
        for s in statements:
            if isinstance(s, (ir.Break, ir.Continue)):
                return True
            if isinstance(s, ir.Return):
                self.returned.append(None if s.value is None else self.value(s.value))
                return True
            if isinstance(s, ir.If):
                if self.branches(s):
                    return True
            elif isinstance(s, (ir.For, ir.While)):
                self.loop(s)
            elif isinstance(s, ir.Assign):
                found = self.value(s.value)
                self.env[s.name] = self.tile_bound(s.value) if is_axis_bound(s.name) else found
            elif isinstance(s, ir.Store):
                self.value(s.value)
                self.access(s)
            elif isinstance(s, ir.SetElement):
                self.value(s.value)
                self.element(s, s.shape)
            elif isinstance(s, ir.Evaluate):
                self.value(s.value)
        return False

    def tile_bound(self, e: Any) -> Any:
        """Of the start or the stop of a tile index: 0, or `min(…, size)` of what isn't negative."""
        if not isinstance(e, ir.Builtin):
            return self.value(e)
        size = self.value(e.args[1])
        return Interval(self.domain.constant(0).low, size.high) if isinstance(size, Interval) else None

    def branches(self, s: ir.If) -> bool:
        self.value(s.condition)
        before = dict(self.env)
        self.refine(s.condition, True)
        then_leaves = self.block(s.then)
        after, self.env = self.env, before
        self.refine(s.condition, False)
        else_leaves = self.block(s.orelse)
        if else_leaves:
            self.env = after
        elif not then_leaves:
            self.merge(after)
        return then_leaves and else_leaves

    def merge(self, other: dict[str, Any]) -> None:
        """What holds after either branch: joins `other` into `env`."""
        for name, value in self.env.items():
            self.env[name] = self.merged(value, other.get(name))

    def merged(self, a: Any, b: Any) -> Any:
        if isinstance(a, tuple) and isinstance(b, tuple):
            return tuple(self.domain.extent(x if x == y else None) for x, y in zip(a, b, strict=True))
        if not isinstance(a, Interval) or not isinstance(b, Interval):
            return None
        return a if a == b else self.domain.union(a, b)

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            old = self.env.get(name)
            self.env[name] = tuple(self.domain.extent(None) for _ in old) if isinstance(old, tuple) else None

    def loop(self, s: ir.For | ir.While) -> None:
        """One pass stands for all iterations: what the body assigns is unknown at its beginning."""
        ranges: list[Any] = []
        if isinstance(s, ir.For):
            bounds = [self.bounds(r) for r in s.ranges]
            ranges = [self.domain.loop(*range_bounds) if all(range_bounds) else None for range_bounds in bounds]
            self.test(s, [NonZero(bounds[0][2]) if len(s.ranges) == 1 else UNPROVABLE])
        assigned = assigned_in(s)
        self.forget(assigned)
        if isinstance(s, ir.For):
            self.env.update(zip(s.variables, ranges, strict=True))
        else:
            self.value(s.condition)
        before = dict(self.env)
        if isinstance(s, ir.While):
            self.refine(s.condition, True)
        self.block(s.body)
        self.env = before
        self.forget(assigned)

    def bounds(self, r: ir.Range) -> list[Any]:
        """Intervals of start, stop and step."""
        parts = ((r.start, 0), (r.stop, 0), (r.step, 1))
        return [self.domain.constant(default) if x is None else self.value(x) for x, default in parts]

    # ---- expressions

    def value(self, e: Any) -> Any:
        """An `Interval`, a `Shape`, or None."""
        found = self.inferred(e)
        sizes = lasting_sizes(e.type) if isinstance(e.type, ir.ArrayType) else ()
        if not sizes:
            return found
        shape = found or (None,) * len(sizes)
        return tuple(x if n is None else self.domain.constant(n) for x, n in zip(shape, sizes, strict=True))

    def inferred(self, e: Any) -> Any:
        """What follows from its operands."""
        if isinstance(e, ir.Const):
            is_int64 = type(e.value) is int and INT64_MIN <= e.value <= INT64_MAX
            return self.domain.constant(e.value) if is_int64 else None
        if isinstance(e, ir.Local):
            return self.env.get(e.name) if _fits_int64(e.type) else None
        if isinstance(e, ir.Size):
            shape = self.value(e.array)
            return shape[e.axis] if shape is not None else None
        if isinstance(e, ir.Let):
            self.env[e.name] = self.value(e.value)
            return self.value(e.body)
        if isinstance(e, (ir.Load, ir.Atomic)):
            if isinstance(e, ir.Atomic):
                for part in (e.value, *([e.desired] if e.desired else [])):
                    self.value(part)
            return self.access(e)
        if isinstance(e, ir.Element):
            self.value(e.array)
            self.element(e, e.array.type.shape)
            return None
        if isinstance(e, (ir.Slice, ir.SubView)):
            return self.view(e)
        if isinstance(e, ir.Reshape):
            return self.reshape(e)
        if isinstance(e, ir.Invoke):
            return self.invoke(e)
        if isinstance(e, (ir.Logic, ir.Select)):
            return self.conditional(e)
        parts = [self.value(child) for child in ir.children(e)]
        if isinstance(e, ir.Item):  # tuples aren't analysed
            array = isinstance(e.type, ir.ArrayType)
            return tuple(self.domain.extent(None) for _ in range(e.type.ndim)) if array else None
        return self.arithmetic(e, parts) if _fits_int64(e.type) else None

    def arithmetic(self, e: Any, parts: list[Any]) -> Bounds:
        if isinstance(e, ir.Builtin) and e.name in ("min", "max") and e.type.dtype.name == "int64":
            ends: list[Any] = [p or self.domain.top() for p in parts]
            return self.domain.binary(e.name, *ends) if all(ends) else None
        if any(not isinstance(p, Interval) for p in parts):
            return None
        if isinstance(e, ir.Cast):
            return parts[0] if _keeps_value(e) else None
        if e.type.dtype.name != "int64":
            return None
        if isinstance(e, ir.Binary):
            return self.domain.binary(e.op, *parts)
        if isinstance(e, ir.Unary) and e.op == "neg":
            return self.domain.binary("sub", self.domain.constant(0), parts[0])
        return None

    def conditional(self, e: ir.Logic | ir.Select) -> Any:
        """The second operand is evaluated only where the first one lets it."""
        first = e.a if isinstance(e, ir.Logic) else e.condition
        self.value(first)
        before, results = dict(self.env), []
        alternatives = [(e.b, e.op == "and")] if isinstance(e, ir.Logic) else [(e.a, True), (e.b, False)]
        for part, truth in alternatives:
            self.env = dict(before)
            self.refine(first, truth)
            results.append(self.value(part))
        self.env = before
        self.forget(assigned_in(e))
        return self.merged(*results) if isinstance(e, ir.Select) else None

    def invoke(self, e: ir.Invoke) -> Any:
        args = [self.value(a) for a in e.args]
        is_checked = self.wanted is None or e.site in self.wanted
        satisfied, result = self.call(e, args) if is_checked else (False, None)
        if satisfied and e.site is not None:
            self.satisfied.add(e.site)
        if not satisfied and is_checked and self.wanted is not None:
            raise NotExpressible
        if isinstance(e.type, ir.ArrayType):
            bounds = result if isinstance(result, tuple) else (None,) * e.type.ndim
            return tuple(self.domain.extent(x) for x in bounds)
        return result

    # ---- accesses

    def access(self, node: ir.Load | ir.Store | ir.Atomic) -> None:
        shape = self.value(node.array)
        index = [self.value(i) for i in node.index]
        self.test(node, [InRange(i, n) for i, n in zip(index, shape, strict=True)])

    def element(self, node: ir.Element | ir.SetElement, shape: tuple[int, ...]) -> None:
        index = [self.value(i) for i in node.index]
        self.test(node, [InRange(i, self.domain.constant(n)) for i, n in zip(index, shape, strict=True)])

    def view(self, e: ir.Slice | ir.SubView) -> Shape:
        shape = self.value(e.array)
        if isinstance(e, ir.SubView):
            offset, size = self.value(e.offset), self.value(e.size)
            satisfied = self.test(e, [SubViewFits(offset, size, shape[0])])
            return (self.domain.extent(size if satisfied else None, size),)
        tests: list[Test] = []
        sizes: list[Any] = []
        for part, extent in zip(e.parts, shape, strict=True):
            if not isinstance(part, ir.Range):
                tests.append(InRange(self.value(part), extent))
                continue
            start, stop, step = (None if x is None else self.value(x) for x in (part.start, part.stop, part.step))
            if part.step is not None:
                tests.append(NonZero(step))
            cut = part != ir.WHOLE
            sizes.append(self.domain.slice_length((start, stop, step), part.present, extent) if cut else extent)
        satisfied = self.test(e, tests)  # a slice out of range gives an empty view
        shape = tuple(self.domain.extent(x if satisfied else None) for x in sizes)
        return shape[::-1] if e.transposed else shape

    def reshape(self, e: ir.Reshape) -> Shape:
        """A shape of one axis, of inferred size, always fits; of others nothing is known at compile time."""
        self.value(e.array)
        sizes = [None if k == e.missing else self.value(n) for k, n in enumerate(e.shape)]
        self.test(e, [] if len(sizes) == 1 and e.missing == 0 else [UNPROVABLE])
        return tuple(self.domain.extent(None, n) for n in sizes)

    def test(self, node: Any, tests: list[Test]) -> bool:
        if node.site is None:
            return True
        if self.wanted is not None and node.site not in self.wanted:
            return False
        if all(self.domain.satisfy(t) for t in tests):
            self.satisfied.add(node.site)
            return True
        if self.wanted is not None:
            raise NotExpressible
        return False

    # ---- conditions narrow variables

    def refine(self, condition: Any, truth: bool) -> None:
        if isinstance(condition, ir.Unary) and condition.op == "invert":
            self.refine(condition.a, not truth)
        elif isinstance(condition, ir.Logic) and (condition.op == "and") == truth:
            if not _assigns(condition.b):  # else a variable may have another value than the first operand saw
                self.refine(condition.a, truth)
            self.refine(condition.b, truth)
        elif isinstance(condition, ir.Compare) and not _assigns(condition):
            op = condition.op if truth else NEGATED_COMPARISON[condition.op]
            self.narrow(condition.a, op, condition.b)
            self.narrow(condition.b, SWAPPED_COMPARISON.get(op, op), condition.a)

    def narrow(self, operand: Any, op: str, other: Any) -> None:
        """`operand op other` holds: `operand` may be a variable, or one plus or minus a constant."""
        variable = _offset_variable(operand)
        if variable is None:
            return
        name, shift = variable
        value, bound = self.env.get(name) or self.domain.top(), self.value(other)
        if not isinstance(value, Interval) or not isinstance(bound, Interval):
            return
        moved = self.domain.binary("sub", bound, self.domain.constant(shift)) if shift else bound
        if moved is not None:
            self.env[name] = self.domain.narrowed(op, value, moved, self.value(operand))


def _offset_variable(operand: Any) -> tuple[str, int] | None:
    """The variable, and the constant that is added to it."""
    shift = 0
    while isinstance(operand, (ir.Cast, ir.Binary)):
        if isinstance(operand, ir.Binary):
            by: Any = operand.b
            if operand.op not in ("add", "sub") or not isinstance(by, ir.Const) or operand.type.dtype.name != "int64":
                return None
            shift += by.value if operand.op == "add" else -by.value
        elif not _keeps_value(operand):
            return None
        operand = operand.a
    return (operand.name, shift) if isinstance(operand, ir.Local) and _fits_int64(operand.type) else None


def _assigns(condition: Any) -> bool:
    """Whether a comparison sets a variable of the user's, which an operand before may have read."""
    return any(not name.startswith(".") for name in assigned_in(condition))


def _fits_int64(kind: Any) -> bool:
    """Whether all values of the type are int64 values, or it is an array."""
    return isinstance(kind, ir.ArrayType) or (
        isinstance(kind, ir.ScalarType) and kind.dtype.kind in "iu" and kind.dtype.name != "uint64"
    )


def _keeps_value(e: ir.Cast) -> bool:
    source, target = e.a.type.dtype, e.type.dtype
    if source.kind not in "iu" or target.kind not in "iu" or source.name == "uint64":
        return False
    return target.name == "int64" or source is target


def unknown_variables(
    function: ir.Function, number: Callable[[str], Bounds], extent: Callable[[str, int], Bounds]
) -> Any:
    """An environment in which nothing is known of a function's variables."""
    env: dict[str, Any] = {}
    for name, kind in (*function.params, *function.variables):
        if isinstance(kind, ir.ArrayType):
            env[name] = tuple(extent(name, axis) for axis in range(kind.ndim))
        else:
            env[name] = number(name) if name in dict(function.params) and _fits_int64(kind) else None
    return env
