"""Hoists bounds checks: one test per block of iterations, with bounds as C text.

If the test holds, the block runs without checks. If it fails, or a bound overflows, the block runs with each
check in its place, so that the report is exact. This pass decides which checks can be hoisted; `emit_loop`
writes both versions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..dtypes import int64
from . import ir
from .emit_statements import cname
from .emit_views import slice_ends
from .interval_analysis import (
    INT64_MAX,
    INT64_MIN,
    Bounds,
    InRange,
    Interval,
    IntervalAnalysis,
    NonZero,
    NotExpressible,
    SubViewFits,
    Test,
    unknown_variables,
)
from .summaries import assigned_in, sites_in

_MAX_TESTS = 64  # more than a block of few iterations is worth
_NAME = re.compile(r"\bq\d+\b")
_SUM = re.compile(r"pa_bound_add\((\w+), (\d+), &inside\)")  # of a bound and a number that isn't negative
Bound = int | str


class CTextDomain:
    """The domain: a bound is a number or C text of an int64. `lines` compute what bounds name, and clear
    `inside` where that overflows; `tests` are the conditions."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}
        self.tests: dict[str, None] = {}
        self.dependencies: dict[str, list[str]] = {}  # name → others that it follows from, beside those in its text

    def statements(self) -> list[str]:
        """C that sets `inside`, without lines that no test follows from."""
        needed: set[str] = set()
        kept = self._highest()
        texts = list(kept)
        by_name = {name: text for text, name in self.lines.items()}
        while texts:
            new = set(_NAME.findall(texts.pop())) - needed
            needed |= new
            for name in new:
                texts += [by_name[name], *self.dependencies.get(name, [])]
        lines = [f"const int64_t {name} = {text};" for text, name in self.lines.items() if name in needed]
        tests = [f"inside = inside && {' && '.join(kept)};"] if kept else []
        return ["bool inside = true;", *lines, *tests]

    def _highest(self) -> list[str]:
        """The tests, but of neighbours r, r + 1 .. below one extent that of the highest alone."""
        by_name = {name: text for text, name in self.lines.items()}
        places: dict[str, tuple[tuple[str, str], int]] = {}
        highest: dict[tuple[str, str], int] = {}
        for test in self.tests:
            index, less, extent = test.partition(" < ")
            if less:
                sum_ = _SUM.fullmatch(by_name.get(index, ""))
                base, number = (sum_[1], int(sum_[2])) if sum_ else (index, 0)
                places[test] = (base, extent), number
                highest[base, extent] = max(highest.get((base, extent), 0), number)
        return [t for t in self.tests if t not in places or places[t][1] == highest[places[t][0]]]

    def name(self, text: str) -> str:
        return self.lines.setdefault(text, f"q{len(self.lines)}")

    def call(self, name: str, fold: Callable[[int, int], int], a: Bound, b: Bound, fits: bool = True) -> Bound:
        if isinstance(a, int) and isinstance(b, int):
            value = fold(a, b)
            if INT64_MIN <= value <= INT64_MAX:
                return value
        return self.name(f"pa_bound_{name}({_c_text(a)}, {_c_text(b)}{', &inside' if fits else ''})")

    def add(self, a: Bound, b: Bound) -> Bound:
        return a if b == 0 else b if a == 0 else self.call("add", int.__add__, a, b)

    def sub(self, a: Bound, b: Bound) -> Bound:
        return a if b == 0 else self.call("sub", int.__sub__, a, b)

    def mul(self, a: Bound, b: Bound) -> Bound:
        return a if b == 1 else b if a == 1 else self.call("mul", int.__mul__, a, b)

    def minimum(self, a: Bound, b: Bound) -> Bound:
        if a == b or INT64_MIN in (a, b) or INT64_MAX in (a, b):
            return a if a in (b, INT64_MIN) or b == INT64_MAX else b
        return self.call("min", min, a, b, fits=False)

    def maximum(self, a: Bound, b: Bound) -> Bound:
        if a == b or INT64_MIN in (a, b) or INT64_MAX in (a, b):
            return a if a in (b, INT64_MAX) or b == INT64_MIN else b
        return self.call("max", max, a, b, fits=False)

    # ---- the domain

    def constant(self, value: int) -> Interval:
        return Interval(value, value)

    def top(self) -> Bounds:
        return Interval(INT64_MIN, INT64_MAX)

    def extent(self, bounds: Bounds, at_most: Bounds = None) -> Bounds:
        return bounds

    def binary(self, op: str, a: Interval, b: Interval) -> Bounds:
        if op == "min":
            return Interval(self.minimum(a.low, b.low), self.minimum(a.high, b.high))
        if op == "max":
            return Interval(self.maximum(a.low, b.low), self.maximum(a.high, b.high))
        if any(end in (INT64_MIN, INT64_MAX) for end in (*_bounds(a), *_bounds(b))):
            return None
        if op == "add":
            return Interval(self.add(a.low, b.low), self.add(a.high, b.high))
        if op == "sub":
            return Interval(self.sub(a.low, b.high), self.sub(a.high, b.low))
        if op == "mul":
            return self._product(a, b)
        if b.low != b.high:
            return None
        if op in ("mod", "floordiv"):  # a divisor that isn't positive clears `inside`
            if isinstance(b.low, int) and b.low <= 0:
                return None
            if op == "mod":
                return Interval(0, self.call("mod", lambda _, d: d - 1, 0, b.low))
            return Interval(*(self.call("floordiv", int.__floordiv__, x, b.low) for x in _bounds(a)))
        if isinstance(b.low, int) and op == "and" and b.low >= 0:
            return Interval(0, b.low)
        if isinstance(b.low, int) and op in ("shl", "shr") and 0 <= b.low < 62:
            return self.binary("mul" if op == "shl" else "floordiv", a, self.constant(1 << b.low))
        return None

    def _product(self, a: Interval, b: Interval) -> Interval:
        corners = list(dict.fromkeys(self.mul(x, y) for x in _bounds(a) for y in _bounds(b)))
        low = high = corners[0]
        for corner in corners[1:]:
            low, high = self.minimum(low, corner), self.maximum(high, corner)
        return Interval(low, high)

    def union(self, a: Interval, b: Interval) -> Bounds:
        return Interval(self.minimum(a.low, b.low), self.maximum(a.high, b.high))

    def narrowed(self, op: str, a: Interval, b: Interval, compared: Bounds) -> Interval:
        if any(end in (INT64_MIN, INT64_MAX) for end in _bounds(b)):
            return a
        limit = self._narrowed(op, a, b)
        for bound in _bounds(limit):
            if isinstance(bound, str) and bound not in _bounds(a) and compared is not None:
                self.dependencies[bound] = [*self.dependencies.get(bound, []), *map(str, _bounds(compared))]
        return limit

    def _narrowed(self, op: str, a: Interval, b: Interval) -> Interval:
        if op in ("lt", "le", "eq"):
            a = Interval(a.low, self.minimum(a.high, self.sub(b.high, int(op == "lt"))))
        if op in ("gt", "ge", "eq"):
            a = Interval(self.maximum(a.low, self.add(b.low, int(op == "gt"))), a.high)
        if op == "ne" and b.low == b.high and INT64_MIN not in _bounds(a) and INT64_MAX not in _bounds(a):
            low, high, at = _c_text(a.low), _c_text(a.high), _c_text(b.low)
            ends = (f"pa_bound_exclude({end}, {at}, {inwards})" for end, inwards in ((low, 1), (high, -1)))
            a = Interval(*map(self.name, ends))
        return a

    def loop(self, start: Interval, stop: Interval, step: Interval) -> Bounds:
        if any(end in (INT64_MIN, INT64_MAX) for x in (start, stop, step) for end in _bounds(x)):
            return None
        up = step.low if step.low == step.high and isinstance(step.low, int) else 0
        if up == 1 or (up > 0 and not _are_points(start, stop)):
            return Interval(start.low, self.sub(stop.high, 1))
        if not _are_points(start, stop, step):
            return Interval(self.add(stop.low, 1), start.high) if up < 0 else None
        last = self.name(f"pa_bound_end({_c_text(start.low)}, {_c_text(stop.low)}, {_c_text(step.low)})")
        if isinstance(step.low, int):
            return Interval(start.low, last) if step.low > 0 else Interval(last, start.low)
        return Interval(self.minimum(start.low, last), self.maximum(start.low, last))

    def slice_length(self, part: tuple[Bounds, Bounds, Bounds], present: str, extent: Bounds) -> Bounds:
        bounds = [x for x, c in zip(part, "abs", strict=True) if c in present]  # points are never infinite
        if extent is None or any(x is None or x.low != x.high for x in (*bounds, extent)):
            return None
        a, b, s = (None if x is None else _c_text(x.low) for x in part)
        n, step = _c_text(extent.low), s or "1"
        first, last = slice_ends(a, b, n, step)
        count = self.name(f"pa_slice_len({first}, {last}, {step})")
        return Interval(count, count)

    def satisfy(self, test: Test) -> bool:
        if isinstance(test, NonZero):
            step = test.step
            return step is not None and _are_points(step) and self._test(f"{_c_text(step.low)} != 0")
        if isinstance(test, SubViewFits):
            if test.offset is None or test.size is None or test.extent is None:
                return False
            if INT64_MAX in (test.offset.high, test.size.high):
                return False
            end = self.add(test.offset.high, test.size.high)
            natural = self._is_natural(test.offset.low) and self._is_natural(test.size.low)
            return natural and self._test(f"{_c_text(end)} <= {_c_text(test.extent.low)}")
        assert isinstance(test, InRange)
        if test.index is None or test.extent is None or test.index.high == INT64_MAX:
            return False
        if not self._is_natural(test.index.low):
            return False
        return self._test(f"{_c_text(test.index.high)} < {_c_text(test.extent.low)}")

    def _is_natural(self, bound: Bound) -> bool:
        if isinstance(bound, int):
            return bound >= 0
        # of neighbours r, r + 1 .. the first is tested; that r + 1 fits shows in the test of the highest index
        text = next((text for text, name in self.lines.items() if name == bound), "")
        sum_ = _SUM.fullmatch(text)
        return (sum_ is not None and f"{sum_[1]} >= 0" in self.tests) or self._test(f"{bound} >= 0")

    def _test(self, text: str) -> bool:
        if len(self.tests) >= _MAX_TESTS or len(self.lines) >= 4 * _MAX_TESTS:
            return False
        self.tests[text] = None
        return True


def _bounds(a: Interval) -> tuple[Bound, Bound]:
    return a.low, a.high


def _variable_at(start: Bound, t: str, step: Bound) -> str:
    """The loop's variable in iteration t, as C text."""
    if step == 1:
        return t if start == 0 else f"{_c_text(start)} + {t}"
    product = f"pa_mul_i64({t}, {_c_text(step)})"
    return product if start == 0 else f"pa_add_i64({_c_text(start)}, {product})"


def _are_points(*intervals: Interval) -> bool:
    return all(x.low == x.high for x in intervals)


def _c_text(bound: Bound) -> str:
    return bound if isinstance(bound, str) else f"{bound}" if abs(bound) < 1 << 31 else f"INT64_C({bound})"


def _point(text: str) -> Interval:
    return Interval(text, text)


class Hoisting:
    """The checks of a program that can be hoisted."""

    def __init__(self, tree: ir.Tree):
        self.functions = {f.symbol: f for f in tree.functions}
        self.kernel = tree.kernel
        self.hoistable: dict[str, frozenset[int]] = {}
        for function in tree.functions:  # callees first
            names = lambda name: _point(cname(name)), lambda name, axis: _point(f"{cname(name)}.n{axis}")
            analysis = self._walk(CTextDomain(), unknown_variables(function, *names))
            analysis.block(function.body)
            self.hoistable[function.symbol] = frozenset(analysis.satisfied)

    def covers_calls(self) -> bool:
        """Whether the tests of calls are for all accesses of the functions."""
        return all(sites_in(*f.body) <= self.hoistable[f.symbol] for f in self.functions.values())

    def _walk(self, text: CTextDomain, env: dict[str, Any], wanted: frozenset[int] | None = None) -> IntervalAnalysis:
        return IntervalAnalysis(text, env, lambda call, args: self._call(text, call, args), wanted)

    def _call(self, text: CTextDomain, call: ir.Invoke, args: list[Any]) -> tuple[bool, Any]:
        """Hoists the checks of a call with these arguments: all of them, or none."""
        function = self.functions[call.function]
        env = unknown_variables(function, lambda _: None, lambda _name, _axis: None)
        env.update(zip((name for name, _ in function.params), args, strict=True))
        analysis = self._walk(text, env, self.hoistable[call.function])
        before = dict(text.lines), dict(text.tests), dict(text.dependencies)
        try:
            analysis.block(function.body)
        except NotExpressible:
            text.lines, text.tests, text.dependencies = before
            return False, None
        results = analysis.returned
        for other in results[1:]:
            results[0] = analysis.merged(results[0], other)
        return True, results[0] if results else None

    def loop(self, loop: ir.For, invariant: dict[str, Any]) -> tuple[frozenset[int], list[str]]:
        """Sites of the loop's body that are tested per block, and the C statements that do it: they declare
        `inside`. `invariant`: the names that the environment holds, with their types."""
        text = CTextDomain()
        env = unknown_variables(self.kernel, lambda _: None, lambda _name, _axis: None)
        for name, kind in invariant.items():
            shape = isinstance(kind, ir.ArrayType)
            variable = f"env->{cname(name)}"
            env[name] = tuple(_point(f"{variable}.n{k}") for k in range(kind.ndim)) if shape else _point(variable)
        ranges = self._block(text, loop)
        env.update(zip(loop.variables, ranges, strict=True))
        analysis = self._walk(text, env)
        analysis.block(loop.body)
        if not text.tests:
            return frozenset(), []
        return frozenset(analysis.satisfied), text.statements()

    def _block(self, text: CTextDomain, loop: ir.For) -> list[Bounds]:
        """Intervals of the loop's variables while t runs over [begin, end)."""
        number = loop.loop
        if len(loop.ranges) == 1:
            range_ = loop.ranges[0]
            step = _field(range_.step, f"env->step{number}") or 1
            start = _field(range_.start, f"env->from{number}") or 0
            ends = [text.name(_variable_at(start, t, step)) for t in ("begin", "(end - 1)")]
            if isinstance(step, int):
                return [Interval(*(ends if step > 0 else ends[::-1]))]
            return [Interval(text.minimum(*ends), text.maximum(*ends))]
        sizes = [f"env->size{number}_{axis}" for axis in range(len(loop.ranges))]
        rows = " * ".join(sizes[1:])
        first = Interval(text.name(f"begin / ({rows})"), text.name(f"(end - 1) / ({rows})"))
        return [first, *(Interval(0, text.sub(size, 1)) for size in sizes[1:])]


def tests_ahead(loop: ir.For, name: Callable[[str], str], first: str, stop: str) -> tuple[frozenset[int], list[str]]:
    """Sites in the body of a loop over [first, stop) that a test before it covers, and the C statements that do it,
    which declare `inside`. `name` is what a variable is called in C."""
    text, env = CTextDomain(), dict[str, Any]()
    changed = assigned_in(*loop.body)
    for n in ir.walk(*loop.body):
        if not isinstance(n, ir.Local) or n.name in env:
            continue
        kind, known = n.type, n.name not in changed
        if isinstance(kind, ir.ArrayType):
            env[n.name] = tuple(_point(f"{name(n.name)}.n{axis}") if known else None for axis in range(kind.ndim))
        elif isinstance(kind, ir.ScalarType) and kind.dtype is int64:
            env[n.name] = _point(name(n.name)) if known else None
    env[loop.variables[0]] = Interval(first, text.sub(stop, 1))
    analysis = IntervalAnalysis(text, env, lambda call, args: (False, None))
    analysis.block(loop.body)
    return (frozenset(analysis.satisfied), text.statements()) if text.tests else (frozenset(), [])


def _field(bound: Any, name: str) -> Bound | None:
    return None if bound is None else bound.value if isinstance(bound, ir.Const) else name
