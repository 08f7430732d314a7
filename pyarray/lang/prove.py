"""Bounds that are compared at compile time: sums of sizes and a number. `for i in range(1, v.size - 1)`
proves `v[i - 1]` and `v[i + 1]` for every size there is.

Integers wrap, so a sum of sizes is a claim about the value modulo 2**64. A claim that ends inside of
[0, extent) holds for the value itself, whatever wrapped on the way; only comparisons on the way (loop bounds,
min, max) must be of values that cannot have wrapped, which is what `_exact` asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .ir import Function, Invoke, Tree
from .reach import Inside, Interval, Known, NotZero, Test, Walk, Within, opaque

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

    def constant(self, value: int) -> Interval:
        return Interval(Sum(value), Sum(value))

    def anything(self) -> Known:
        return None

    def fresh(self) -> Interval:
        self.sizes += 1
        size = Sum(0, ((self.sizes, 1),))
        return Interval(size, size)

    def extent(self, known: Known) -> Known:
        """A size is something, if only that it is 0 or more."""
        plain = known is not None and known.low == known.high and _exact(known.low) and known.low.natural()
        return known if plain else self.fresh()

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
        return None

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


def _unknown(call: Invoke, args: list[Any]) -> tuple[bool, Any]:
    return False, None
