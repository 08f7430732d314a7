"""Bounds that are written down as C: before a block of iterations it is tested once whether all of its
indices are inside. If they are, the block runs without the tests; if not, or if a bound overflows, it runs
with each test in its place, so that the report is exact.

Which tests can be said like that is decided here; `emit_loop` writes the two ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .emit_statements import cname
from .interval_analysis import (
    LEAST,
    MOST,
    Inside,
    Interval,
    Known,
    NotZero,
    Test,
    Unsaid,
    Walk,
    Within,
    opaque,
)
from .ir import ArrayType, Const, For, Invoke, Tree

_MOST_TESTS = 64  # more than a block of few iterations is worth
_NAME = re.compile(r"\bq\d+\b")
Bound = int | str


class Text:
    """The domain: a bound is a number or C text of an int64. `lines` compute what bounds name, and clear
    `inside` where that overflows; `tests` are the conditions."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}
        self.tests: dict[str, None] = {}
        self.needs: dict[str, list[str]] = {}  # name → others that it follows from, beside those in its text

    def statements(self) -> list[str]:
        """C that sets `inside`, without lines that no test follows from."""
        needed: set[str] = set()
        texts = list(self.tests)
        by_name = {name: text for text, name in self.lines.items()}
        while texts:
            new = set(_NAME.findall(texts.pop())) - needed
            needed |= new
            for name in new:
                texts += [by_name[name], *self.needs.get(name, [])]
        lines = [f"const int64_t {name} = {text};" for text, name in self.lines.items() if name in needed]
        tests = [f"inside = inside && {' && '.join(self.tests)};"] if self.tests else []
        return ["bool inside = true;", *lines, *tests]

    def name(self, text: str) -> str:
        return self.lines.setdefault(text, f"q{len(self.lines)}")

    def call(
        self, name: str, fold: Callable[[int, int], int], a: Bound, b: Bound, fits: bool = True
    ) -> Bound:
        if isinstance(a, int) and isinstance(b, int):
            value = fold(a, b)
            if LEAST <= value <= MOST:
                return value
        return self.name(f"pa_bound_{name}({_text(a)}, {_text(b)}{', &inside' if fits else ''})")

    def add(self, a: Bound, b: Bound) -> Bound:
        return a if b == 0 else b if a == 0 else self.call("add", int.__add__, a, b)

    def sub(self, a: Bound, b: Bound) -> Bound:
        return a if b == 0 else self.call("sub", int.__sub__, a, b)

    def mul(self, a: Bound, b: Bound) -> Bound:
        return a if b == 1 else b if a == 1 else self.call("mul", int.__mul__, a, b)

    def least(self, a: Bound, b: Bound) -> Bound:
        if a == b or LEAST in (a, b) or MOST in (a, b):
            return a if a in (b, LEAST) or b == MOST else b
        return self.call("min", min, a, b, fits=False)

    def most(self, a: Bound, b: Bound) -> Bound:
        if a == b or LEAST in (a, b) or MOST in (a, b):
            return a if a in (b, MOST) or b == LEAST else b
        return self.call("max", max, a, b, fits=False)

    # ---- the domain

    def constant(self, value: int) -> Interval:
        return Interval(value, value)

    def anything(self) -> Known:
        return Interval(LEAST, MOST)

    def extent(self, known: Known, most: Known = None) -> Known:
        return known

    def binary(self, op: str, a: Interval, b: Interval) -> Known:
        if op == "min":
            return Interval(self.least(a.low, b.low), self.least(a.high, b.high))
        if op == "max":
            return Interval(self.most(a.low, b.low), self.most(a.high, b.high))
        if any(end in (LEAST, MOST) for end in (*_ends(a), *_ends(b))):
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
            return Interval(*(self.call("floordiv", int.__floordiv__, x, b.low) for x in _ends(a)))
        if isinstance(b.low, int) and op == "and" and b.low >= 0:
            return Interval(0, b.low)
        if isinstance(b.low, int) and op in ("shl", "shr") and 0 <= b.low < 62:
            return self.binary("mul" if op == "shl" else "floordiv", a, self.constant(1 << b.low))
        return None

    def _product(self, a: Interval, b: Interval) -> Interval:
        corners = list(dict.fromkeys(self.mul(x, y) for x in _ends(a) for y in _ends(b)))
        low = high = corners[0]
        for corner in corners[1:]:
            low, high = self.least(low, corner), self.most(high, corner)
        return Interval(low, high)

    def union(self, a: Interval, b: Interval) -> Known:
        return Interval(self.least(a.low, b.low), self.most(a.high, b.high))

    def limited(self, op: str, a: Interval, b: Interval, whole: Known) -> Interval:
        if any(end in (LEAST, MOST) for end in _ends(b)):
            return a
        limit = self._limited(op, a, b)
        for bound in _ends(limit):
            if isinstance(bound, str) and bound not in _ends(a) and whole is not None:
                self.needs[bound] = [*self.needs.get(bound, []), *map(str, _ends(whole))]
        return limit

    def _limited(self, op: str, a: Interval, b: Interval) -> Interval:
        if op in ("lt", "le", "eq"):
            a = Interval(a.low, self.least(a.high, self.sub(b.high, int(op == "lt"))))
        if op in ("gt", "ge", "eq"):
            a = Interval(self.most(a.low, self.add(b.low, int(op == "gt"))), a.high)
        if op == "ne" and b.low == b.high and LEAST not in _ends(a) and MOST not in _ends(a):
            low, high, at = _text(a.low), _text(a.high), _text(b.low)
            a = Interval(
                self.name(f"pa_bound_past({low}, {at}, 1)"), self.name(f"pa_bound_past({high}, {at}, -1)")
            )
        return a

    def loop(self, start: Interval, stop: Interval, step: Interval) -> Known:
        if any(end in (LEAST, MOST) for x in (start, stop, step) for end in _ends(x)):
            return None
        up = step.low if step.low == step.high and isinstance(step.low, int) else 0
        if up == 1 or (up > 0 and not _points(start, stop)):
            return Interval(start.low, self.sub(stop.high, 1))
        if not _points(start, stop, step):
            return Interval(self.add(stop.low, 1), start.high) if up < 0 else None
        last = self.name(f"pa_bound_end({_text(start.low)}, {_text(stop.low)}, {_text(step.low)})")
        if isinstance(step.low, int):
            return Interval(start.low, last) if step.low > 0 else Interval(last, start.low)
        return Interval(self.least(start.low, last), self.most(start.low, last))

    def cut(self, part: tuple[Known, Known, Known], given: str, extent: Known) -> Known:
        bounds = [x for x, c in zip(part, "abs", strict=True) if c in given]  # points are never infinite
        if extent is None or any(x is None or x.low != x.high for x in (*bounds, extent)):
            return None
        a, b, s = (None if x is None else _text(x.low) for x in part)
        n, step = _text(extent.low), s or "1"
        first = f"pa_slice_start_step({a}, {n}, {step})" if a else f"pa_slice_start_none({n}, {step})"
        last = f"pa_slice_stop_step({b}, {n}, {step})" if b else f"pa_slice_stop_none({n}, {step})"
        count = self.name(f"pa_slice_len({first}, {last}, {step})")
        return Interval(count, count)

    def holds(self, test: Test) -> bool:
        if isinstance(test, NotZero):
            return (
                test.step is not None
                and test.step.low == test.step.high
                and self._test(f"{_text(test.step.low)} != 0")
            )
        if isinstance(test, Within):
            if test.offset is None or test.size is None or test.extent is None:
                return False
            if MOST in (test.offset.high, test.size.high):
                return False
            end = self.add(test.offset.high, test.size.high)
            return (
                self._natural(test.offset.low)
                and self._natural(test.size.low)
                and self._test(f"{_text(end)} <= {_text(test.extent.low)}")
            )
        assert isinstance(test, Inside)
        if test.index is None or test.extent is None or test.index.high == MOST:
            return False
        if not self._natural(test.index.low):
            return False
        return self._test(f"{_text(test.index.high)} < {_text(test.extent.low)}")

    def _natural(self, bound: Bound) -> bool:
        return bound >= 0 if isinstance(bound, int) else self._test(f"{bound} >= 0")

    def _test(self, text: str) -> bool:
        if len(self.tests) >= _MOST_TESTS or len(self.lines) >= 4 * _MOST_TESTS:
            return False
        self.tests[text] = None
        return True


def _ends(a: Interval) -> tuple[Bound, Bound]:
    return a.low, a.high


def _walked(start: Bound, t: str, step: Bound) -> str:
    """Where the loop's variable is in iteration t."""
    if step == 1:
        return t if start == 0 else f"{_text(start)} + {t}"
    way = f"pa_mul_i64({t}, {_text(step)})"
    return way if start == 0 else f"pa_add_i64({_text(start)}, {way})"


def _points(*intervals: Interval) -> bool:
    return all(x.low == x.high for x in intervals)


def _text(bound: Bound) -> str:
    return bound if isinstance(bound, str) else f"{bound}" if abs(bound) < 1 << 31 else f"INT64_C({bound})"


def _point(text: str) -> Interval:
    return Interval(text, text)


class Hoist:
    """What can be hoisted in a program."""

    def __init__(self, tree: Tree):
        self.functions = {f.symbol: f for f in tree.functions}
        self.kernel = tree.kernel
        self.within: dict[str, frozenset[int]] = {}
        for function in tree.functions:  # callees first
            env = opaque(
                function,
                lambda name: _point(cname(name)),
                lambda name, axis: _point(f"{cname(name)}.n{axis}"),
            )
            walk = self._walk(Text(), env)
            walk.block(function.body)
            self.within[function.symbol] = frozenset(walk.held)

    def _walk(self, text: Text, env: dict[str, Any], wanted: frozenset[int] | None = None) -> Walk:
        return Walk(text, env, lambda call, args: self._call(text, call, args), wanted)

    def _call(self, text: Text, call: Invoke, args: list[Any]) -> tuple[bool, Any]:
        """All that the function can have hoisted, with these arguments: all of it or nothing."""
        function = self.functions[call.function]
        env = opaque(function, lambda _: None, lambda _name, _axis: None)
        env.update(zip((name for name, _ in function.params), args, strict=True))
        walk = self._walk(text, env, self.within[call.function])
        before = dict(text.lines), dict(text.tests), dict(text.needs)
        try:
            walk.block(function.body)
        except Unsaid:
            text.lines, text.tests, text.needs = before
            return False, None
        results = walk.returned
        for other in results[1:]:
            results[0] = walk.either(results[0], other)
        return True, results[0] if results else None

    def loop(self, loop: For, known: dict[str, Any]) -> tuple[frozenset[int], list[str]]:
        """Sites of the loop's body that are tested per block, and the C statements that do it: they declare
        `inside`. `known`: the names that the environment holds, with their types."""
        text = Text()
        env = opaque(self.kernel, lambda _: None, lambda _name, _axis: None)
        for name, kind in known.items():
            shape = isinstance(kind, ArrayType)
            here = f"env->{cname(name)}"
            env[name] = tuple(_point(f"{here}.n{k}") for k in range(kind.ndim)) if shape else _point(here)
        ranges = self._block(text, loop)
        env.update(zip(loop.variables, ranges, strict=True))
        walk = self._walk(text, env)
        walk.block(loop.body)
        if not text.tests:
            return frozenset(), []
        return frozenset(walk.held), text.statements()

    def _block(self, text: Text, loop: For) -> list[Known]:
        """Where the loop's variables lie while t runs over [begin, end)."""
        number = loop.loop
        if len(loop.ranges) == 1:
            reach = loop.ranges[0]
            step = _field(reach.step, f"env->step{number}") or 1
            start = _field(reach.start, f"env->from{number}") or 0
            ends = [text.name(_walked(start, t, step)) for t in ("begin", "(end - 1)")]
            if isinstance(step, int):
                return [Interval(*(ends if step > 0 else ends[::-1]))]
            return [Interval(text.least(*ends), text.most(*ends))]
        sizes = [f"env->size{number}_{axis}" for axis in range(len(loop.ranges))]
        rows = " * ".join(sizes[1:])
        first = Interval(text.name(f"begin / ({rows})"), text.name(f"(end - 1) / ({rows})"))
        return [first, *(Interval(0, text.sub(size, 1)) for size in sizes[1:])]


def _field(bound: Any, name: str) -> Bound | None:
    return None if bound is None else bound.value if isinstance(bound, Const) else name
