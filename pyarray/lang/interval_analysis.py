"""Where integers can lie: one walk over a function's statements, with an interval for each integer and the
extents of each array.

What a bound is, is the domain's business: `prove` compares bounds at compile time, `hoist` writes them as C
that a block of iterations evaluates once. An interval is a claim about the values that really come: of code
that never runs, any claim is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from .ir import (
    WHOLE,
    ArrayType,
    Assign,
    Atomic,
    Binary,
    Break,
    Builtin,
    Cast,
    Compare,
    Const,
    Continue,
    Evaluate,
    For,
    Function,
    If,
    Invoke,
    Item,
    Let,
    Load,
    Local,
    Logic,
    Range,
    Reshape,
    Return,
    ScalarType,
    Select,
    Size,
    Slice,
    Stmt,
    Store,
    SubView,
    Unary,
    While,
    assigned,
    children,
)
from .promotion import SWAPPED_COMPARISON

LEAST, MOST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Interval:
    """low <= value <= high, in bounds of the domain."""

    low: Any
    high: Any


Known = Interval | None  # None: anything
Shape = tuple[Known, ...]  # extents of an array


@dataclass(frozen=True, slots=True)
class Inside:
    """The test 0 <= index < extent."""

    index: Known
    extent: Known


@dataclass(frozen=True, slots=True)
class Within:
    """The test of a sub-view: 0 <= offset, 0 <= size, offset + size <= extent."""

    offset: Known
    size: Known
    extent: Known


@dataclass(frozen=True, slots=True)
class NotZero:
    """The test of a slice's step."""

    step: Known


UNKNOWN = NotZero(None)  # never known to hold
Test = Inside | Within | NotZero


class Domain(Protocol):
    """Arithmetic of bounds. None wherever nothing can be said. `limited`: `a` where `a op b`
    holds, known from `whole`, a sum with `a` that must not have wrapped."""

    def constant(self, value: int) -> Interval: ...
    def anything(self) -> Known: ...
    def binary(self, op: str, a: Interval, b: Interval) -> Known: ...
    def union(self, a: Interval, b: Interval) -> Known: ...
    def limited(self, op: str, a: Interval, b: Interval, whole: Known) -> Interval: ...
    def loop(self, start: Interval, stop: Interval, step: Interval) -> Known: ...
    def cut(self, part: tuple[Known, Known, Known], given: str, extent: Known) -> Known: ...
    def extent(self, known: Known, most: Known = None) -> Known: ...
    def holds(self, test: Test) -> bool: ...


class Unsaid(Exception):
    """A test that was asked for can't be put into bounds."""


class Walk:
    """The walk. `held` collects the sites whose tests the domain holds; with `wanted`, just those are tried,
    and one that doesn't hold is `Unsaid`. `call` walks into a function and returns its value, or None where
    its tests don't hold."""

    def __init__(
        self,
        domain: Domain,
        env: dict[str, Any],
        call: Callable[[Invoke, list[Any]], tuple[bool, Any]],
        wanted: frozenset[int] | None = None,
    ):
        self.domain, self.env, self.call, self.wanted = domain, env, call, wanted
        self.held: set[int] = set()
        self.returned: list[Any] = []

    # ---- statements

    def block(self, statements: Iterable[Stmt]) -> bool:
        """Whether the end is never reached."""
        for s in statements:
            if isinstance(s, (Break, Continue)):
                return True
            if isinstance(s, Return):
                self.returned.append(None if s.value is None else self.value(s.value))
                return True
            if isinstance(s, If):
                if self.branches(s):
                    return True
            elif isinstance(s, (For, While)):
                self.loop(s)
            elif isinstance(s, Assign):
                self.env[s.name] = self.value(s.value)
            elif isinstance(s, Store):
                self.value(s.value)
                self.access(s)
            elif isinstance(s, Evaluate):
                self.value(s.value)
        return False

    def branches(self, s: If) -> bool:
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
            self.join(after)
        return then_leaves and else_leaves

    def join(self, other: dict[str, Any]) -> None:
        """What holds on either way: in `env` or in `other`."""
        for name, value in self.env.items():
            self.env[name] = self.either(value, other.get(name))

    def either(self, a: Any, b: Any) -> Any:
        if isinstance(a, tuple) and isinstance(b, tuple):
            return tuple(self.domain.extent(x if x == y else None) for x, y in zip(a, b, strict=True))
        if not isinstance(a, Interval) or not isinstance(b, Interval):
            return None
        return a if a == b else self.domain.union(a, b)

    def forget(self, *nodes: Any) -> None:
        for name in assigned(*nodes):
            old = self.env.get(name)
            self.env[name] = tuple(self.domain.extent(None) for _ in old) if isinstance(old, tuple) else None

    def loop(self, s: For | While) -> None:
        """One walk stands for all iterations: what the body assigns may be anything when it begins."""
        ranges: list[Any] = []
        if isinstance(s, For):
            bounds = [self.bounds(r) for r in s.ranges]
            ranges = [self.domain.loop(*known) if all(known) else None for known in bounds]
            self.test(s, [NotZero(bounds[0][2]) if len(s.ranges) == 1 else UNKNOWN])
        self.forget(s)
        if isinstance(s, For):
            self.env.update(zip(s.variables, ranges, strict=True))
        else:
            self.value(s.condition)
        before = dict(self.env)
        if isinstance(s, While):
            self.refine(s.condition, True)
        self.block(s.body)
        self.env = before
        self.forget(s)

    def bounds(self, r: Range) -> list[Any]:
        """What is known of start, stop and step."""
        parts = ((r.start, 0), (r.stop, 0), (r.step, 1))
        return [self.domain.constant(default) if x is None else self.value(x) for x, default in parts]

    # ---- expressions

    def value(self, e: Any) -> Any:
        """An `Interval`, a `Shape`, or None."""
        if isinstance(e, Const):
            whole = type(e.value) is int and LEAST <= e.value <= MOST
            return self.domain.constant(e.value) if whole else None
        if isinstance(e, Local):
            return self.env.get(e.name) if _counts(e.type) else None
        if isinstance(e, Size):
            shape = self.value(e.array)
            return shape[e.axis] if shape is not None else None
        if isinstance(e, Let):
            self.env[e.name] = self.value(e.value)
            return self.value(e.body)
        if isinstance(e, (Load, Atomic)):
            if isinstance(e, Atomic):
                for part in (e.value, *([e.desired] if e.desired else [])):
                    self.value(part)
            return self.access(e)
        if isinstance(e, (Slice, SubView)):
            return self.view(e)
        if isinstance(e, Reshape):
            return self.reshape(e)
        if isinstance(e, Invoke):
            return self.invoke(e)
        if isinstance(e, (Logic, Select)):
            return self.conditional(e)
        parts = [self.value(child) for child in children(e)]
        if isinstance(e, Item):  # what comes in a tuple isn't followed
            array = isinstance(e.type, ArrayType)
            return tuple(self.domain.extent(None) for _ in range(e.type.ndim)) if array else None
        return self.arithmetic(e, parts) if _counts(e.type) else None

    def arithmetic(self, e: Any, parts: list[Any]) -> Known:
        if isinstance(e, Builtin) and e.name in ("min", "max") and e.type.dtype.name == "int64":
            ends: list[Any] = [p or self.domain.anything() for p in parts]
            return self.domain.binary(e.name, *ends) if all(ends) else None
        if any(not isinstance(p, Interval) for p in parts):
            return None
        if isinstance(e, Cast):
            return parts[0] if _widens(e) else None
        if e.type.dtype.name != "int64":
            return None
        if isinstance(e, Binary):
            return self.domain.binary(e.op, *parts)
        if isinstance(e, Unary) and e.op == "neg":
            return self.domain.binary("sub", self.domain.constant(0), parts[0])
        return None

    def conditional(self, e: Logic | Select) -> Any:
        """The second operand is evaluated only where the first one lets it."""
        first = e.a if isinstance(e, Logic) else e.condition
        self.value(first)
        before, results = dict(self.env), []
        ways = [(e.b, e.op == "and")] if isinstance(e, Logic) else [(e.a, True), (e.b, False)]
        for part, truth in ways:
            self.env = dict(before)
            self.refine(first, truth)
            results.append(self.value(part))
        self.env = before
        self.forget(e)
        return self.either(*results) if isinstance(e, Select) else None

    def invoke(self, e: Invoke) -> Any:
        args = [self.value(a) for a in e.args]
        wanted = self.wanted is None or e.site in self.wanted
        held, result = self.call(e, args) if wanted else (False, None)
        if held and e.site is not None:
            self.held.add(e.site)
        if not held and wanted and self.wanted is not None:
            raise Unsaid
        if isinstance(e.type, ArrayType):
            known = result if isinstance(result, tuple) else (None,) * e.type.ndim
            return tuple(self.domain.extent(x) for x in known)
        return result

    # ---- accesses

    def access(self, node: Load | Store | Atomic) -> None:
        shape = self.value(node.array)
        index = [self.value(i) for i in node.index]
        self.test(node, [Inside(i, n) for i, n in zip(index, shape, strict=True)])

    def view(self, e: Slice | SubView) -> Shape:
        shape = self.value(e.array)
        if isinstance(e, SubView):
            offset, size = self.value(e.offset), self.value(e.size)
            held = self.test(e, [Within(offset, size, shape[0])])
            return (self.domain.extent(size if held else None, size),)
        tests: list[Test] = []
        kept: list[Any] = []
        for part, extent in zip(e.parts, shape, strict=True):
            if not isinstance(part, Range):
                tests.append(Inside(self.value(part), extent))
                continue
            bounds = [None if x is None else self.value(x) for x in (part.start, part.stop, part.step)]
            given = "".join(c for c, x in zip("abs", (part.start, part.stop, part.step), strict=True) if x)
            if part.step is not None:
                tests.append(NotZero(bounds[2]))
            kept.append(extent if part == WHOLE else self.domain.cut(tuple(bounds), given, extent))  # type: ignore[arg-type]
        held = self.test(e, tests)  # one that isn't inside gives an empty view
        shape = tuple(self.domain.extent(x if held else None) for x in kept)
        return shape[::-1] if e.turned else shape

    def reshape(self, e: Reshape) -> Shape:
        """One axis has whatever elements there are; of other shapes nothing is known before."""
        self.value(e.array)
        sizes = [None if k == e.missing else self.value(n) for k, n in enumerate(e.shape)]
        self.test(e, [] if len(sizes) == 1 and e.missing == 0 else [UNKNOWN])
        return tuple(self.domain.extent(None, n) for n in sizes)

    def test(self, node: Any, tests: list[Test]) -> bool:
        if node.site is None:
            return True
        if self.wanted is not None and node.site not in self.wanted:
            return False
        if all(self.domain.holds(t) for t in tests):
            self.held.add(node.site)
            return True
        if self.wanted is not None:
            raise Unsaid
        return False

    # ---- what a condition says about variables

    def refine(self, condition: Any, truth: bool) -> None:
        if isinstance(condition, Unary) and condition.op == "invert":
            self.refine(condition.a, not truth)
        elif isinstance(condition, Logic) and (condition.op == "and") == truth:
            self.refine(condition.a, truth)
            self.refine(condition.b, truth)
        elif isinstance(condition, Compare):
            op = condition.op if truth else _NEGATED[condition.op]
            self.limit(condition.a, op, condition.b)
            self.limit(condition.b, SWAPPED_COMPARISON.get(op, op), condition.a)

    def limit(self, place: Any, op: str, other: Any) -> None:
        """`place op other` holds: `place` may be a variable, or one plus or minus a constant."""
        found = _shifted(place)
        if found is None:
            return
        name, shift = found
        value, bound = self.env.get(name) or self.domain.anything(), self.value(other)
        if not isinstance(value, Interval) or not isinstance(bound, Interval):
            return
        moved = self.domain.binary("sub", bound, self.domain.constant(shift)) if shift else bound
        if moved is not None:
            self.env[name] = self.domain.limited(op, value, moved, self.value(place))


def _shifted(place: Any) -> tuple[str, int] | None:
    """The variable, and the constant that is added to it."""
    shift = 0
    while isinstance(place, (Cast, Binary)):
        if isinstance(place, Binary):
            by: Any = place.b
            if (
                place.op not in ("add", "sub")
                or not isinstance(by, Const)
                or place.type.dtype.name != "int64"
            ):
                return None
            shift += by.value if place.op == "add" else -by.value
        elif not _widens(place):
            return None
        place = place.a
    return (place.name, shift) if isinstance(place, Local) and _counts(place.type) else None


_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def _counts(kind: Any) -> bool:
    """Whether all values of the type are int64 values, or it is an array."""
    return isinstance(kind, ArrayType) or (
        isinstance(kind, ScalarType) and kind.dtype.kind in "iu" and kind.dtype.name != "uint64"
    )


def _widens(e: Cast) -> bool:
    source, target = e.a.type.dtype, e.type.dtype
    if source.kind not in "iu" or target.kind not in "iu" or source.name == "uint64":
        return False
    return target.name == "int64" or source is target


def opaque(function: Function, number: Callable[[str], Known], extent: Callable[[str, int], Known]) -> Any:
    """The variables of a function of which nothing is known but that they are there."""
    env: dict[str, Any] = {}
    for name, kind in (*function.params, *function.variables):
        if isinstance(kind, ArrayType):
            env[name] = tuple(extent(name, axis) for axis in range(kind.ndim))
        else:
            env[name] = number(name) if name in dict(function.params) and _counts(kind) else None
    return env
