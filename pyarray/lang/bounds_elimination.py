"""Bounds that are compared at compile time: sums of sizes and a number. `for i in range(1, v.size - 1)`
proves `v[i - 1]` and `v[i + 1]` for every size there is.

Integers wrap, so a sum of sizes is a claim about the value modulo 2**64. A claim that ends inside of
[0, extent) holds for the value itself, whatever wrapped on the way; only comparisons on the way (loop bounds,
min, max) must be of values that cannot have wrapped, which is what `_exact` asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .interval_analysis import Inside, Interval, Known, NotZero, Test, Walk, Within, opaque
from .ir import Binary, Const, Function, If, Invoke, Range, Size, Slice, Tree
from .parse import FunctionSource
from .specializations import Specializations

_FAR = 1 << 62
_TURN = 1 << 31  # a loop's end may be that far past a size: a sum that wraps is negative, and the loop empty


@dataclass(frozen=True, slots=True)
class Sum:
    """`number` + the sum of factor * size over `terms`; sizes are 0 or more."""

    number: int
    terms: tuple[tuple[Any, int], ...] = ()

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        terms = dict(self.terms)
        for size, times in other.terms:
            terms[size] = terms.get(size, 0) + factor * times
        kept = sorted(((size, n) for size, n in terms.items() if n), key=repr)
        return Sum(self.number + factor * other.number, tuple(kept))

    def natural(self) -> bool:
        """Whether it is never negative."""
        return self.number >= 0 and all(times > 0 for _, times in self.terms)


def _exact(s: Sum, beyond: int = 0) -> bool:
    """Whether 64 bits hold the sum: a number, or one size and a number."""
    if not s.terms:
        return abs(s.number) < _FAR
    return len(s.terms) == 1 and s.terms[0][1] == 1 and -_FAR < s.number <= beyond


class Symbolic:
    """The domain."""

    def __init__(self) -> None:
        self.sizes = 0
        self.most: dict[int, int] = {}  # the largest that a size can be, where that is known

    def constant(self, value: int) -> Interval:
        return Interval(Sum(value), Sum(value))

    def anything(self) -> Known:
        return None

    def fresh(self) -> Interval:
        self.sizes += 1
        size = Sum(0, ((self.sizes, 1),))
        return Interval(size, size)

    def extent(self, known: Known, most: Known = None) -> Known:
        """A size is something, if only that it is 0 or more."""
        plain = known is not None and known.low == known.high and _exact(known.low) and known.low.natural()
        if plain:
            return known
        size = self.fresh()
        if most is not None and not most.high.terms:
            self.most[self.sizes] = max(most.high.number, 0)
        return size

    def below(self, extent: Interval) -> int | None:
        """A number that the extent can't exceed."""
        high = extent.high
        if not high.terms:
            return int(high.number)
        ((size, times), *others) = high.terms
        return None if others or times != 1 or size not in self.most else self.most[size] + int(high.number)

    def binary(self, op: str, a: Interval, b: Interval) -> Known:
        if op == "add":
            return Interval(a.low.plus(b.low), a.high.plus(b.high))
        if op == "sub":
            return Interval(a.low.plus(b.high, -1), a.high.plus(b.low, -1))
        if op in ("min", "max"):
            return self._extreme(op, a, b)
        return None

    def _extreme(self, op: str, a: Interval, b: Interval) -> Known:
        if not all(_exact(s) for s in (a.low, a.high, b.low, b.high)):
            return None
        sign = 1 if op == "min" else -1
        bounds = []
        for x, y in ((a.low, b.low), (a.high, b.high)):
            if y.plus(x, -1).natural():
                bounds.append(x if sign > 0 else y)
            elif x.plus(y, -1).natural():
                bounds.append(y if sign > 0 else x)
            else:
                return None
        return Interval(*bounds)

    def union(self, a: Interval, b: Interval) -> Known:
        low, high = self._extreme("min", a, b), self._extreme("max", a, b)
        return Interval(low.low, high.high) if low and high else None

    def limited(self, op: str, a: Interval, b: Interval, whole: Known) -> Interval:
        return a

    def loop(self, start: Interval, stop: Interval, step: Interval) -> Known:
        upwards = step.low == step.high and not step.low.terms and step.low.number > 0
        ends = (
            _exact(start.low) and _exact(start.high) and _exact(stop.low, _TURN) and _exact(stop.high, _TURN)
        )
        return Interval(start.low, stop.high.plus(Sum(-1))) if upwards and ends else None

    def cut(self, part: tuple[Known, Known, Known], given: str, extent: Known) -> Known:
        start, stop = (
            None if x is None or x.low.terms or x.low != x.high else x.low.number for x in part[:2]
        )
        start = start if "a" in given else 0
        if start is None or stop is None or start < 0 <= stop or stop < 0 <= start or "s" in given:
            return None
        return self.extent(None, self.constant(stop - start))

    def holds(self, test: Test) -> bool:
        if isinstance(test, Inside):
            return (
                test.index is not None and test.extent is not None and self._inside(test.index, test.extent)
            )
        if isinstance(test, NotZero):
            step = test.step
            return step is not None and step.low == step.high and not step.low.terms and step.low.number != 0
        assert isinstance(test, Within)
        offset, size, extent = test.offset, test.size, test.extent
        if offset is None or size is None or extent is None:
            return False
        if not (_exact(offset.low) and _exact(offset.high) and _exact(size.low) and _exact(size.high)):
            return False
        end = offset.high.plus(size.high)
        return offset.low.natural() and size.low.natural() and extent.low.plus(end, -1).natural()

    @staticmethod
    def _inside(index: Interval, extent: Interval) -> bool:
        return index.low.natural() and extent.low.plus(index.high, -1).plus(Sum(-1)).natural()


def proven(tree: Tree) -> frozenset[int]:
    """Sites whose tests hold in every launch."""
    found: set[int] = set()
    for function in (*tree.functions, tree.kernel):
        found |= _proven(function)
    return frozenset(found)


def _proven(function: Function) -> set[int]:
    domain = Symbolic()
    env = opaque(function, lambda _: None, lambda _name, _axis: domain.fresh())
    walk = Walk(domain, env, _unknown)
    walk.block(function.body)
    return walk.held


class _Refutation(Walk):
    """Looks for constant indices that no array there is can have, where nothing decides whether they are
    used."""

    wrong: tuple[Any, Any, int] | None = None  # access, index, and what it must stay below

    def __init__(self, domain: Symbolic, env: dict[str, Any]):
        super().__init__(domain, env, _unknown)
        self.symbolic, self.deciding = domain, 0

    def test(self, node: Any, tests: list[Test]) -> bool:
        parts = [p for p in node.parts if not isinstance(p, Range)] if isinstance(node, Slice) else None
        inside = [t for t in tests if isinstance(t, Inside)]
        for index, test in zip(
            parts if parts is not None else getattr(node, "index", ()), inside, strict=True
        ):
            if self.wrong is None and not self.deciding and _constant(index) and test.index and test.extent:
                low, high = test.index.low, self.symbolic.below(test.index)
                most = self.symbolic.below(test.extent)
                beyond = most is not None and not low.terms and low.number >= most
                if beyond or (high is not None and high < 0):
                    self.wrong = node, index, most or 0
        return not tests

    def branches(self, s: If) -> bool:
        self.deciding += 1
        try:
            return super().branches(s)
        finally:
            self.deciding -= 1

    def conditional(self, e: Any) -> Any:
        self.deciding += 1
        try:
            return super().conditional(e)
        finally:
            self.deciding -= 1


def _constant(index: Any) -> bool:
    """A number in the source, or one that counts from the end."""
    from_end = isinstance(index, Binary) and isinstance(index.a, Size) and isinstance(index.b, Const)
    return isinstance(index, Const) or from_end


def refute(tree: Tree, specs: Mapping[str, Specializations], sources: Mapping[str, FunctionSource]) -> None:
    """Raises `CompileError` at a constant index that is wrong for every array that these types and pins let
    through."""
    for function in (*tree.functions, tree.kernel):
        domain = Symbolic()
        env = opaque(function, lambda _: None, lambda _name, _axis: domain.fresh())  # noqa: B023
        for name, promised in specs.items() if function is tree.kernel else ():
            shape = list(env.get(name, ()))
            for specialization in promised if shape else ():
                if specialization.size is not None:
                    shape[specialization.axis] = domain.constant(specialization.size)
            env[name] = tuple(shape)
        walk = _Refutation(domain, env)
        walk.block(function.body)
        if walk.wrong is not None:
            node, index, most = walk.wrong
            shown = index.value if isinstance(index, Const) else index.b.value
            what = f"index {shown} is out of range: this axis has {most} element{'s' * (most != 1)} at most"
            sources[function.symbol].fail(node.loc, what)


def _unknown(call: Invoke, args: list[Any]) -> tuple[bool, Any]:
    return False, None
