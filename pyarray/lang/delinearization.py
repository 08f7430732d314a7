"""Delinearization: `i // n` and `i % n` of a loop's variable as digits that the loop counts.

`i // n` and `i % n`, at any depth (`(i // n) % m`), are digits of `i` if their cut points divide each other:
1 | n | n * m. The loop then runs in rows of n iterations, in which only the last digit changes. Cut points
that don't divide each other form several chains, which are counted side by side. Sizes stay symbolic: cut
points are products of numbers, parameters and sizes of arrays. This pass reads the typed tree;
`emit_delinearized` writes the rows, and the division in case a cut point isn't positive."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from . import ir
from .summaries import changing_in, has_any, operators_in

_PLAIN = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}
_SHORTEST_ROW = 8  # iterations of a row from which on it is as fast as a mask
_MAX_CHAINS = 4
SEVERAL, CHANGING = "it divides a sum of several loop variables", "the divisor changes in the loop"
INDIRECT, UNEVEN = "it divides something else than the variable", "the divisors don't divide each other"
_OUTER = "its iterations have loops of their own"


@dataclass(frozen=True, slots=True)
class Product:
    """`number` times the symbols, each a pair of its name in the source and an expression; sorted."""

    number: int
    symbols: tuple[Symbol, ...] = ()

    def times(self, other: Product) -> Product:
        return Product(self.number * other.number, tuple(sorted((*self.symbols, *other.symbols))))

    def divided_by(self, other: Product) -> Product | None:
        """The quotient; None unless it is a whole number for all values of the symbols.

        >>> Product(12).divided_by(Product(3)), Product(12).divided_by(Product(5))
        (Product(number=4, symbols=()), None)
        """
        remaining = list(self.symbols)
        for symbol in other.symbols:
            if symbol not in remaining:
                return None
            remaining.remove(symbol)
        return None if self.number % other.number else Product(self.number // other.number, tuple(remaining))

    def __str__(self) -> str:
        names = [s.name for s in self.symbols]
        return " * ".join(names if names and self.number == 1 else [*names, str(self.number)])


@dataclass(frozen=True, slots=True, order=True)
class Symbol:
    """A value that stays as it is in the loop; the name says all of it."""

    name: str

    def __repr__(self) -> str:
        return self.name


ONE = Product(1)


def chain(points: Iterable[Product]) -> tuple[Product, ...] | None:
    """1 and these, each a divisor of the next; None where two of them don't divide each other.

    >>> [str(p) for p in chain([Product(12), Product(4)])], chain([Product(2), Product(3)])
    (['1', '4', '12'], None)
    """
    products = sorted({ONE, *points}, key=lambda p: (len(p.symbols), p.number))
    pairs = itertools.pairwise(products)
    return None if any(b.divided_by(a) is None for a, b in pairs) else tuple(products)


def cut_points(extent: Product, points: Iterable[Product]) -> tuple[Product, ...] | None:
    """The chain from 1 to the extent through the points that divide it; None where there are none, or they
    don't divide each other.

    >>> [str(p) for p in cut_points(Product(12), [Product(3), Product(5)])]
    ['1', '3', '12']
    """
    inner = {p for p in points if extent.divided_by(p) is not None} - {ONE, extent}
    return chain((*inner, extent)) if inner else None


T = TypeVar("T")


def reshape_groups(
    shape: Sequence[T],
    target: Sequence[T],
    product: Callable[[Sequence[T]], T],
    divided_by: Callable[[T, T], T | None],
) -> list[tuple[slice, slice]]:
    """Runs of axes with the same number of elements on both sides; the last one is what is left. `divided_by` is a
    quotient, None where it isn't known to be a whole number.

    >>> import math
    >>> found = reshape_groups([4, 6, 5], [24, 5, 1], math.prod, lambda a, b: None if a % b else a // b)
    >>> [(source.stop, wanted.stop) for source, wanted in found]
    [(2, 1), (3, 2), (3, 3)]
    """
    groups: list[tuple[slice, slice]] = []
    a = b = first_a = first_b = 0
    while a < len(shape) or b < len(target):
        left, right = product(shape[first_a:a]), product(target[first_b:b])
        if left == right and (a > first_a or b > first_b):
            groups.append((slice(first_a, a), slice(first_b, b)))
            first_a, first_b = a, b
        elif a < len(shape) and (a == first_a or b >= len(target) or divided_by(right, left) is not None):
            a += 1
        elif b < len(target):
            b += 1
        else:
            a += 1
    if first_a < len(shape) or first_b < len(target):
        groups.append((slice(first_a, len(shape)), slice(first_b, len(target))))
    return groups


_Term = tuple[Product, Product | None]  # (variable % high) // low


@dataclass(frozen=True, slots=True)
class Split:
    """`chains` of cut points, from 1 on: those of each divide each other. `terms` are the expressions that are
    digits: `(i % high) // low`, by the number of a chain and those of its cut points; no `high` stands for
    `i // low`. `symbols` are the expressions of the names. `is_multiple`: the loop's range is certainly a
    multiple of all cut points. `remaining`: why other divisions stay, if some do."""

    chains: tuple[tuple[Product, ...], ...]
    terms: dict[Any, tuple[int, int, int | None]]
    symbols: dict[str, Any]
    is_multiple: bool
    remaining: str | None


def find_split(loop: ir.For, rows: bool = True) -> Split | str | None:
    """How the last variable of a loop is split; why it isn't; None where it isn't divided. `rows`: its
    iterations are to run in rows."""
    if operators_in(*loop.body).isdisjoint(("floordiv", "mod")):
        return None
    divisions = _Terms(loop)
    divisions.block(loop.body)
    if not divisions.terms:
        return divisions.reason
    if rows and (reason := _without_rows(loop)):
        return reason
    chains = _chains(divisions.terms.values())
    if len(chains) > 1:  # one kind of short rows is enough
        chains = [c for c in chains if c[1].symbols or c[1].number >= _SHORTEST_ROW]
        if not chains or len(chains) > _MAX_CHAINS:
            return UNEVEN
    if not chains or _is_masked(chains[0]):
        return None
    terms = dict[Any, tuple[int, int, int | None]]()
    for node, (low, high) in divisions.terms.items():
        matching = (k for k, c in enumerate(chains) if low in c and (high is None or high in c))
        if (k := next(matching, None)) is not None:
            terms[node] = k, chains[k].index(low), None if high is None else chains[k].index(high)
    stop = divisions.product(loop.ranges[-1].stop) if loop.ranges[-1].start is None else None
    is_multiple = stop is not None and all(_covers(stop, c) for c in chains)
    return Split(tuple(chains), terms, divisions.symbols, is_multiple, divisions.reason)


def _chains(terms: Iterable[_Term]) -> list[tuple[Product, ...]]:
    """The fewest chains that have all cut points of each term, without those of 1 alone."""
    chains: list[tuple[Product, ...]] = []
    for term in terms:
        cuts = [p for p in term if p is not None]
        for k, existing in enumerate(chains):
            if (merged := chain([*existing, *cuts])) is not None:
                chains[k] = merged
                break
        else:
            merged = chain(cuts)
            chains += [merged] if merged is not None and len(merged) > 1 else []
    return chains


def _covers(extent: Product, points: tuple[Product, ...]) -> bool:
    cuts = cut_points(extent, points)
    return extent == points[-1] or (cuts is not None and set(points) <= set(cuts))


def _without_rows(loop: ir.For) -> str | None:
    """Why a loop can't, or needn't, run in rows."""
    if not unit_step(loop.ranges[-1]):
        return "the loop has a step"
    if has_any(loop.body, ir.For, ir.While):
        return _OUTER  # beside which a division is little
    return "a break leaves it" if has_any(loop.body, ir.Break) else None


def has_cheap_divisions(loop: ir.For, blocks: bool) -> bool:
    """Whether divisions of the loop's last variable cost little. `blocks`: the iterations of a parallel loop
    come in blocks, not in threads of their own."""
    if loop.loop is not None and not blocks:
        return True
    if loop.loop is None and isinstance(loop.ranges[-1].stop, ir.Const):  # which unrolls
        return False
    return _without_rows(loop) in (None, _OUTER)


def _is_masked(points: tuple[Product, ...]) -> bool:
    """Whether all of them are powers of two, which are shifts and masks: short rows would be slower."""
    return points[1].number < _SHORTEST_ROW and all(not p.symbols and not p.number & (p.number - 1) for p in points)


def unit_step(range_: ir.Range) -> bool:
    """Whether each number of the range is one more than the last."""
    return range_.step is None or (isinstance(range_.step, ir.Const) and range_.step.value == 1)


class Symbols:
    """Expressions as products. The names of `changing` are variables that don't stay as they are."""

    def __init__(self, changing: set[str]):
        self.changing = changing
        self.symbols: dict[str, Any] = {}

    def product(self, e: Any) -> Product | None:
        """A divisor as a product; None of what changes in the loop, or is never positive."""
        e = _uncast(e)
        if isinstance(e, ir.Const):
            return Product(e.value) if type(e.value) is int and e.value > 0 else None
        if isinstance(e, ir.Binary) and e.op == "mul":
            a, b = self.product(e.a), self.product(e.b)
            return None if a is None or b is None else a.times(b)
        name = self.name(e)
        if name is None:
            return None
        self.symbols[name] = e
        return Product(1, (Symbol(name),))

    def name(self, e: Any) -> str | None:
        """The source of an expression that stays as it is in the loop; None of others."""
        if isinstance(e, ir.Cast):
            inner = self.name(e.a) if e.type.dtype.kind in "iu" and e.a.type.dtype.kind in "iu" else None
            return inner and (inner if e.type.dtype is e.a.type.dtype else f"{e.type.dtype}({inner})")
        if isinstance(e, ir.Const):
            return str(e.value) if type(e.value) is int else None
        if isinstance(e, ir.Local):
            return None if e.name in self.changing else e.name
        if isinstance(e, ir.Size) and isinstance(e.array, ir.Local):
            return None if e.array.name in self.changing else f"{e.array.name}.shape[{e.axis}]"
        if isinstance(e, ir.Binary) and e.op in _PLAIN and _is_index(e):
            a, b = self.name(e.a), self.name(e.b)
            return None if a is None or b is None else f"({a} {_PLAIN[e.op]} {b})"
        return None


class _Terms(Symbols):
    """What the body of a loop makes of its last variable."""

    def __init__(self, loop: ir.For):
        super().__init__({*changing_in(*loop.body), *loop.variables})
        self.variables = loop.variables
        stores = Counter(n.name for n in ir.walk(*loop.body) if isinstance(n, (ir.Assign, ir.Let)))
        self.once = {name for name, count in stores.items() if count == 1}
        self.terms: dict[Any, _Term] = {}
        self.terms_by_name: dict[str, _Term] = {}
        self.reason: str | None = None

    def block(self, statements: Iterable[Any]) -> None:
        for s in statements:
            for node in _after_operands(s):
                if isinstance(node, ir.Binary) and node.op in ("floordiv", "mod") and _is_index(node):
                    self.record(node)
            if isinstance(s, ir.Assign) and s.name in self.once and (term := self.term(s.value)) is not None:
                self.terms_by_name[s.name] = term

    def record(self, node: ir.Binary) -> None:
        term = self.term(node)
        if term is not None:
            self.terms[node] = term
            return
        names = {n.name for n in ir.walk(node.a) if isinstance(n, ir.Local)}
        if names & {*self.variables, *self.terms_by_name}:
            self.reason = self.reason_for(node, names)

    def reason_for(self, node: ir.Binary, names: set[str]) -> str:
        if len(names & {*self.variables}) > 1:
            return SEVERAL
        if self.product(node.b) is None:
            return CHANGING
        return UNEVEN if self.term(node.a) is not None else INDIRECT

    def term(self, e: Any) -> _Term | None:
        """The expression as digits of the variable, or None."""
        e = _uncast(e)
        if isinstance(e, ir.Local):
            return (ONE, None) if e.name == self.variables[-1] else self.terms_by_name.get(e.name)
        if not isinstance(e, ir.Binary) or e.op not in ("floordiv", "mod") or not _is_index(e):
            return None
        above, by = self.term(e.a), self.product(e.b)
        if above is None or by is None:
            return None
        low, high = above
        point = low.times(by)
        if high is not None and high.divided_by(point) is None:
            return None
        return (point, high) if e.op == "floordiv" else (low, point)


def _is_index(e: Any) -> bool:
    return bool(e.type.dtype.name == "int64")


def _uncast(e: Any) -> Any:
    while isinstance(e, ir.Cast) and _is_index(e) and _is_index(e.a):
        e = e.a
    return e


def _after_operands(node: Any) -> Iterator[Any]:
    """`node` and everything below it, operands first."""
    for child in ir.children(node):
        yield from _after_operands(child)
    yield node
