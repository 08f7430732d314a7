"""Bounds elimination: proves accesses in range when the kernel is compiled, by bounds that are sums of sizes.

`for i in range(1, v.size - 1)` proves `v[i - 1]` and `v[i + 1]` for every size.

Integers wrap, so a sum of sizes is a claim modulo 2**64. A claim that ends in [0, extent) holds for the value
itself, whatever wrapped on the way. Comparisons on the way (loop bounds, min, max) need values that can't
have wrapped; `_exact` tests that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import ir
from .interval_analysis import (
    Bounds,
    InRange,
    Interval,
    IntervalAnalysis,
    NonZero,
    SubViewFits,
    Test,
    unknown_variables,
)
from .parse import FunctionSource, is_internal
from .specializations import Specializations

_SAFE = 1 << 62
_PAST = 1 << 31  # a loop may end that far past a size: a sum that wraps is negative, the loop empty


@dataclass(frozen=True, slots=True)
class Affine:
    """`number` + the sum of factor * size over `terms`; sizes are 0 or more."""

    number: int
    terms: tuple[tuple[Any, int], ...] = ()

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        terms = dict(self.terms)
        for size, times in other.terms:
            terms[size] = terms.get(size, 0) + factor * times
        nonzero = sorted(((size, n) for size, n in terms.items() if n), key=repr)
        return Affine(self.number + factor * other.number, tuple(nonzero))

    def natural(self) -> bool:
        """Whether it is never negative."""
        return self.number >= 0 and all(times > 0 for _, times in self.terms)


def _exact(s: Affine, beyond: int = 0) -> bool:
    """Whether 64 bits hold the sum: a number, or one size and a number."""
    if not s.terms:
        return abs(s.number) < _SAFE
    return len(s.terms) == 1 and s.terms[0][1] == 1 and -_SAFE < s.number <= beyond


class SymbolicDomain:
    """The domain."""

    def __init__(self) -> None:
        self.sizes = 0
        self.max_sizes: dict[int, int] = {}  # the largest that a size can be, where that is known

    def constant(self, value: int) -> Interval:
        return Interval(Affine(value), Affine(value))

    def top(self) -> Bounds:
        return None

    def new_size(self) -> Interval:
        self.sizes += 1
        size = Affine(0, ((self.sizes, 1),))
        return Interval(size, size)

    def extent(self, bounds: Bounds, at_most: Bounds = None) -> Bounds:
        """A known size, or a new symbol of one: a size is 0 or more."""
        plain = bounds is not None and bounds.low == bounds.high and _exact(bounds.low) and bounds.low.natural()
        if plain:
            return bounds
        size = self.new_size()
        if at_most is not None and not at_most.high.terms:
            self.max_sizes[self.sizes] = max(at_most.high.number, 0)
        return size

    def upper_bound(self, extent: Interval) -> int | None:
        """A number that the extent can't exceed, if one is known."""
        high = extent.high
        if not high.terms:
            return int(high.number)
        ((size, times), *others) = high.terms
        most = None if others or times != 1 else self.max_sizes.get(size)
        return None if most is None else most + int(high.number)

    def binary(self, op: str, a: Interval, b: Interval) -> Bounds:
        if op == "add":
            return Interval(a.low.plus(b.low), a.high.plus(b.high))
        if op == "sub":
            return Interval(a.low.plus(b.high, -1), a.high.plus(b.low, -1))
        if op in ("min", "max"):
            return self._min_or_max(op, a, b)
        return None

    def _min_or_max(self, op: str, a: Interval, b: Interval) -> Bounds:
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

    def union(self, a: Interval, b: Interval) -> Bounds:
        low, high = self._min_or_max("min", a, b), self._min_or_max("max", a, b)
        return Interval(low.low, high.high) if low and high else None

    def narrowed(self, op: str, a: Interval, b: Interval, compared: Bounds) -> Interval:
        return a

    def loop(self, start: Interval, stop: Interval, step: Interval) -> Bounds:
        upwards = step.low == step.high and not step.low.terms and step.low.number > 0
        ends = _exact(start.low) and _exact(start.high) and _exact(stop.low, _PAST) and _exact(stop.high, _PAST)
        return Interval(start.low, stop.high.plus(Affine(-1))) if upwards and ends else None

    def slice_length(self, part: tuple[Bounds, Bounds, Bounds], present: str, extent: Bounds) -> Bounds:
        start, stop = (None if x is None or x.low.terms or x.low != x.high else x.low.number for x in part[:2])
        start = start if "a" in present else 0
        if start is None or stop is None or start < 0 <= stop or stop < 0 <= start or "s" in present:
            return None
        return self.extent(None, self.constant(stop - start))

    def satisfy(self, test: Test) -> bool:
        if isinstance(test, InRange):
            return test.index is not None and test.extent is not None and self._in_range(test.index, test.extent)
        if isinstance(test, NonZero):
            step = test.step
            return step is not None and step.low == step.high and not step.low.terms and step.low.number != 0
        assert isinstance(test, SubViewFits)
        offset, size, extent = test.offset, test.size, test.extent
        if offset is None or size is None or extent is None:
            return False
        if not (_exact(offset.low) and _exact(offset.high) and _exact(size.low) and _exact(size.high)):
            return False
        end = offset.high.plus(size.high)
        return offset.low.natural() and size.low.natural() and extent.low.plus(end, -1).natural()

    @staticmethod
    def _in_range(index: Interval, extent: Interval) -> bool:
        return index.low.natural() and extent.low.plus(index.high, -1).plus(Affine(-1)).natural()


def proven_sites(tree: ir.Tree) -> frozenset[int]:
    """Sites whose tests hold in every launch."""
    sites: set[int] = set()
    for function in (*tree.functions, tree.kernel):
        sites |= _proven_in(function)
    return frozenset(sites)


def _proven_in(function: ir.Function) -> set[int]:
    domain = SymbolicDomain()
    env = unknown_variables(function, lambda _: None, lambda _name, _axis: domain.new_size())
    analysis = IntervalAnalysis(domain, env, _unknown_call)
    analysis.block(function.body)
    return analysis.satisfied


class _ConstantIndexCheck(IntervalAnalysis):
    """Finds constant indices that are out of range for every array, outside of conditions."""

    violation: tuple[Any, Any, int] | None = None  # access, index, and what it must stay below

    def __init__(self, domain: SymbolicDomain, env: dict[str, Any]):
        super().__init__(domain, env, _unknown_call)
        self.symbolic, self.depth = domain, 0

    def test(self, node: Any, tests: list[Test]) -> bool:
        parts = [p for p in node.parts if not isinstance(p, ir.Range)] if isinstance(node, ir.Slice) else None
        inside = [t for t in tests if isinstance(t, InRange)]
        for index, test in zip(parts if parts is not None else getattr(node, "index", ()), inside, strict=True):
            if self.violation is None and not self.depth and _constant(index) and test.index and test.extent:
                low, high = test.index.low, self.symbolic.upper_bound(test.index)
                at_most = self.symbolic.upper_bound(test.extent)
                beyond = at_most is not None and not low.terms and low.number >= at_most
                if beyond or (high is not None and high < 0):
                    self.violation = node, index, at_most or 0
        return not tests

    def branches(self, s: ir.If) -> bool:
        self.depth += 1
        try:
            return super().branches(s)
        finally:
            self.depth -= 1

    def conditional(self, e: Any) -> Any:
        self.depth += 1
        try:
            return super().conditional(e)
        finally:
            self.depth -= 1


def _constant(index: Any) -> bool:
    """A number in the source, or one that counts from the end."""
    from_end = isinstance(index, ir.Binary) and isinstance(index.a, ir.Size) and isinstance(index.b, ir.Const)
    return isinstance(index, ir.Const) or from_end


def reject_constant_indices(
    tree: ir.Tree, specs: Mapping[str, Specializations], sources: Mapping[str, FunctionSource]
) -> None:
    """Raises `CompileError` at a constant index that is out of range for every array of these types and specializations
    through."""
    for function in (*tree.functions, tree.kernel):
        domain = SymbolicDomain()
        env = unknown_variables(function, lambda _: None, lambda _name, _axis: domain.new_size())  # noqa: B023
        for name, known_sizes in specs.items() if function is tree.kernel else ():
            shape = list(env.get(name, ()))
            for specialization in known_sizes if shape else ():
                if specialization.size is not None:
                    shape[specialization.axis] = domain.constant(specialization.size)
            env[name] = tuple(shape)
        analysis = _ConstantIndexCheck(domain, env)
        analysis.block(function.body)
        if analysis.violation is not None:
            node, index, at_most = analysis.violation
            shown = index.value if isinstance(index, ir.Const) else index.b.value
            what = f"index {shown} is out of range: this axis has {at_most} element{'s' * (at_most != 1)} at most"
            source, loc = sources[function.symbol], node.loc
            if is_internal(source.path):
                source, loc = _call_of(tree, function.symbol, sources) or (source, loc)
                what = f"{sources[function.symbol].name}(): {what}"
            source.fail(loc, what)


def _call_of(tree: ir.Tree, symbol: str, sources: Mapping[str, FunctionSource]) -> tuple[FunctionSource, ir.Loc] | None:
    """Where the user calls a function of the library, perhaps by way of another one."""
    for function in (*tree.functions, tree.kernel):
        for node in ir.walk(*function.body):
            if isinstance(node, ir.Invoke) and node.function == symbol:
                source = sources[function.symbol]
                return _call_of(tree, function.symbol, sources) if is_internal(source.path) else (source, node.loc)
    return None


def _unknown_call(call: ir.Invoke, args: list[Any]) -> tuple[bool, Any]:
    return False, None
