"""Whether iterations of a parallel loop use elements of their own: by indices as polynomials of variables.

Elements of two iterations are others if an index of both is the loop's variable times a number, plus what is the same
in all iterations, or less than that number. In `y[i * n + j]`, with j from `range(n)`, that number is a symbol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import ir
from ..loop_dependences import structural_key

Monomial = tuple[str, ...]  # names, sorted; () is the number 1
Polynomial = dict[Monomial, int]


@dataclass(frozen=True)
class Access:
    """An access in a loop: the array as an expression, its index, and loop variables that a condition fixes, with what
    they equal. `kind`: load, store or atomic."""

    kind: str
    array: Any
    index: tuple[Any, ...]
    loc: ir.Loc
    fixed: frozenset[tuple[str, Any]] = frozenset()
    statement: Any = None

    @property
    def reads(self) -> bool:
        """Whether it gives a value that is used."""
        return self.kind == "load" or (self.kind == "atomic" and isinstance(self.statement, ir.Assign))


class Indices:
    """Indices of one parallel loop. `definitions`: variables that are assigned once, with their values; `changing`:
    names that the loop's body assigns."""

    def __init__(self, loop: ir.For, definitions: Mapping[str, Any], changing: Iterable[str]):
        self.loop, self.definitions, self.changing = loop, definitions, set(changing) | set(loop.variables)
        self.opaque: dict[str, set[str]] = {}  # what stands for another expression → the names in it
        self.ranges: dict[str, ir.Range | None] = dict(zip(loop.variables, loop.ranges, strict=True))
        for n in ir.walk(*loop.body):
            if isinstance(n, ir.For):
                for v, range_ in zip(n.variables, n.ranges, strict=True):
                    self.add_range(v, range_)
                self.changing |= set(n.variables)
        self.varying = {v for v in loop.variables if not self.is_single(self.ranges[v])}

    def add_range(self, name: str, range_: ir.Range) -> None:
        """Notes an inner loop's range; None where loops of several ranges share the variable."""
        known = self.ranges.setdefault(name, range_)
        if name in self.loop.variables or known is None or structural_key(known) != structural_key(range_):
            self.ranges[name] = None

    def is_single(self, range_: ir.Range | None) -> bool:
        if range_ is None:
            return False
        start = {} if range_.start is None else self.polynomial(range_.start)
        if range_.step is not None or start is None or range_.stop is None:
            return False
        span = _sum(self.polynomial(range_.stop), start, -1)
        return not span or (span.keys() == {()} and span[()] <= 1)

    # ---- polynomials

    def polynomial(self, e: Any) -> Polynomial:
        if isinstance(e, ir.Const):
            return {(): int(e.value)} if e.value else {}
        if isinstance(e, ir.Local):
            if e.name in self.definitions and e.name not in self.ranges:
                return self.polynomial(self.definitions[e.name])
            return {(e.name,): 1}
        if isinstance(e, ir.Cast) and e.type.dtype.name == "int64" and e.a.type.dtype.kind in "iu":
            return self.polynomial(e.a)
        if isinstance(e, ir.Unary) and e.op == "neg":
            return _sum({}, self.polynomial(e.a), -1)
        if isinstance(e, ir.Binary) and e.op in ("add", "sub") and e.type.dtype.itemsize == 8:
            return _sum(self.polynomial(e.a), self.polynomial(e.b), 1 if e.op == "add" else -1)
        if isinstance(e, ir.Binary) and e.op == "mul" and e.type.dtype.itemsize == 8:
            return _product(self.polynomial(e.a), self.polynomial(e.b))
        if isinstance(e, ir.Select) and isinstance(e.condition, ir.Compare) and e.condition.op == "lt":
            value = self.polynomial(e.b)  # an index that counts from the end where it is negative
            if (
                self.is_natural(value)
                and self.polynomial(e.condition.a) == value
                and not self.polynomial(e.condition.b)
            ):
                return value
        key = repr(structural_key(self.resolved(e)))
        self.opaque[key] = self.names(e)
        return {(key,): 1}

    def is_natural(self, p: Polynomial) -> bool:
        """Whether it is never negative, by the ranges of loops."""
        for m, c in p.items():
            ranges = [self.ranges.get(n) for n in m]
            ends = [(getattr(r, "start", None), getattr(r, "step", None)) for r in ranges]
            known = all(x is None or (isinstance(x, ir.Const) and x.value >= 0) for pair in ends for x in pair)
            if c < 0 or not known or None in ranges:
                return False
        return True

    def resolved(self, e: Any) -> Any:
        """The expression with the values of variables that are assigned once."""

        def change(n: Any) -> Any:
            if isinstance(n, ir.Local) and n.name in self.definitions and n.name not in self.ranges:
                return self.resolved(self.definitions[n.name])
            return n

        return ir.rewrite(e, change)

    def names(self, e: Any) -> set[str]:
        return {n.name for n in ir.walk(self.resolved(e)) if isinstance(n, ir.Local)}

    def is_fixed(self, name: str) -> bool:
        """Whether what a name stands for is the same in all iterations, and wherever it stands in them."""
        names = self.opaque.get(name, {name})
        return not names & self.changing

    # ---- views

    def element(self, array: Any, index: tuple[Any, ...]) -> tuple[Polynomial | None, ...]:
        """The index in the array parameter itself; None where it isn't known."""
        return self.through(array, tuple(self.polynomial(i) for i in index))

    def through(self, array: Any, index: tuple[Polynomial | None, ...]) -> tuple[Polynomial | None, ...]:
        if isinstance(array, ir.Local):
            view = self.definitions.get(array.name)
            return index if view is None else self.through(view, index)
        if isinstance(array, ir.SubView):
            (i,) = index
            return self.through(array.array, (None if i is None else _sum(self.polynomial(array.offset), i, 1),))
        if not isinstance(array, ir.Slice):
            return (None,)
        kept = list(index[::-1] if array.transposed else index)
        parts = [self.axis(p, kept) for p in array.parts]
        return self.through(array.array, tuple(parts))

    def axis(self, part: Any, kept: list[Polynomial | None]) -> Polynomial | None:
        if not isinstance(part, ir.Range):
            return self.polynomial(part)
        index = kept.pop(0)
        start, step = part.start, part.step
        if start is None and step is None:
            return index
        known = all(x is None or (isinstance(x, ir.Const) and x.value >= 0) for x in (start, step))
        if not known or index is None:
            return None
        scaled = index if step is None else _product(self.polynomial(step), index)
        return scaled if start is None else _sum(self.polynomial(start), scaled, 1)

    # ---- elements of iterations

    def are_apart(self, accesses: list[Access]) -> bool:
        """Whether no two iterations access one element."""
        if not accesses:
            return True
        fixed = frozenset.intersection(*(a.fixed for a in accesses))
        missing = self.varying - {name for name, _ in fixed}
        if not missing:
            return True
        if self.determined([self.element(a.array, a.index) for a in accesses]) >= missing:
            return True
        views = {repr(structural_key(self.resolved(a.array))) for a in accesses}
        if len(views) > 1 or self.names(accesses[0].array) & self.changing:
            return False
        return self.determined([tuple(self.polynomial(i) for i in a.index) for a in accesses]) >= missing

    def determined(self, indices: list[tuple[Polynomial | None, ...]]) -> set[str]:
        """The loop's variables that the element tells."""
        found: set[str] = set()
        for axis in zip(*indices, strict=False):
            if len({len(i) for i in indices}) == 1 and all(p is not None for p in axis):
                found |= self.told_by(list(axis))
        return found

    def told_by(self, axis: list[Any]) -> set[str]:
        found: set[str] = set()
        for v in self.varying:
            if self.ranges[v] is None:
                continue
            strides = [self.stride(p, v) for p in axis]
            if strides[0] is None or any(s != strides[0] for s in strides):
                continue
            factor, rest = strides[0]
            others = [{m: c if factor > 0 else -c for m, c in p.items() if v not in m} for p in axis]
            others, factor = self.without_common(others), abs(factor)
            if all(self.is_below(o, factor, rest) for o in others) or self.in_window(others, factor, rest):
                found.add(v)
                if all(o == others[0] for o in others):
                    found |= self.digits(others[0])
        return found

    def without_common(self, axis: list[Polynomial]) -> list[Polynomial]:
        """The polynomials without the terms that all of them have, and that are the same in all iterations."""
        common = {m for m, c in axis[0].items() if all(p.get(m) == c for p in axis)}
        fixed = {m for m in common if all(self.is_fixed(n) for n in m)}
        return [{m: c for m, c in p.items() if m not in fixed} for p in axis]

    def stride(self, p: Polynomial, v: str) -> tuple[int, Monomial] | None:
        """What a polynomial has the variable times."""
        terms = [(m, c) for m, c in p.items() if any(v == n or v in self.opaque.get(n, ()) for n in m)]
        if len(terms) != 1:
            return None
        (monomial, factor), rest = terms[0], list(terms[0][0])
        if monomial.count(v) != 1:
            return None
        rest.remove(v)
        return (factor, tuple(rest)) if all(self.is_fixed(n) for n in rest) else None

    def is_below(self, p: Polynomial, factor: int, rest: Monomial) -> bool:
        """Whether 0 <= p < factor * rest, by the ranges of variables: p is a number of digits. A symbol may be 0,
        unless a variable is below it."""
        if not p:
            return not rest
        for m, c in p.items():
            for w in m:
                range_ = self.ranges.get(w)
                if range_ is None or range_.start is not None or range_.step is not None or c < 0:
                    continue
                inner = list(m)
                inner.remove(w)
                limit = _product(self.polynomial(range_.stop), {tuple(inner): c})
                if limit == {rest: factor} and self.is_below({k: x for k, x in p.items() if k != m}, c, tuple(inner)):
                    return True
        return False

    def digits(self, p: Polynomial) -> set[str]:
        """The loop's variables in a number of digits, each of which it tells."""
        return {n for m in p for n in m if n in self.varying}

    def in_window(self, others: list[Polynomial], factor: int, rest: Monomial) -> bool:
        """Whether all these are within less than `factor` of each other, by constant ranges."""
        if rest:
            return False
        lows, highs, common = [], [], None
        for p in others:
            low = high = 0
            fixed: Polynomial = {}
            for m, c in p.items():
                bounds = self.constant_range(m)
                if m == ():
                    low, high = low + c, high + c
                elif bounds is not None:
                    ends = sorted((c * bounds[0], c * bounds[1]))
                    low, high = low + ends[0], high + ends[1]
                elif all(self.is_fixed(n) for n in m):
                    fixed[m] = c
                else:
                    return False
            if common is not None and fixed != common:
                return False
            common = fixed
            lows.append(low)
            highs.append(high)
        return max(highs) - min(lows) < abs(factor)

    def constant_range(self, m: Monomial) -> tuple[int, int] | None:
        """First and last value of an inner loop's variable, where they are constants."""
        range_ = self.ranges.get(m[0]) if len(m) == 1 else None
        if range_ is None or m[0] in self.varying:
            return None
        ends = [None if x is None else self.polynomial(x) for x in (range_.start, range_.stop)]
        if range_.step is not None or any(p is not None and p.keys() - {()} for p in ends):
            return None
        start, stop = (0 if p is None else p.get((), 0) for p in ends)
        return (start, stop - 1) if stop > start else (start, start)


def _sum(a: Polynomial, b: Polynomial, sign: int) -> Polynomial:
    made = dict(a)
    for m, c in b.items():
        made[m] = made.get(m, 0) + sign * c
    return {m: c for m, c in made.items() if c}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    made: Polynomial = {}
    for m, c in a.items():
        for n, d in b.items():
            key = tuple(sorted((*m, *n)))
            made[key] = made.get(key, 0) + c * d
    return {m: c for m, c in made.items() if c}
