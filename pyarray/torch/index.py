"""Symbolic indexing: indices as expressions of loop indices, through views and reshapes.

A loop over an axis is one *digit* at first. An index that a reshape merges from several axes, or cuts in
several, stays a sum of digits times factors as long as the factors fit: a digit is split where a factor of
the new shape lies inside it. Where factors don't divide each other the index is written with `//` and `%`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
from torch.utils._sympy.functions import FloorDiv, Mod

from ..lang.delinearization import reshape_groups
from .sizes import ONE, ZERO, equal, product, quotient

Index = tuple[sympy.Expr, ...]
Shape = tuple[sympy.Expr, ...]


@dataclass(eq=False)
class Digits:
    """The loops of a kernel: symbols with their sizes, slowest first. `split` replaces one by two."""

    sizes: dict[sympy.Symbol, sympy.Expr] = field(default_factory=dict)
    replaced: dict[sympy.Symbol, sympy.Expr] = field(default_factory=dict)

    def add(self, size: sympy.Expr) -> sympy.Symbol:
        """A loop over `size`, inside the others."""
        digit = sympy.Symbol(f"i{len(self.sizes) + 2 * len(self.replaced)}", integer=True, nonnegative=True)
        self.sizes[digit] = size
        return digit

    def split(self, digit: sympy.Symbol, inner: sympy.Expr) -> None:
        """Two loops for one: the inner one has `inner` steps."""
        outer = quotient(self.sizes[digit], inner)
        assert outer is not None
        count = len(self.sizes) + 2 * len(self.replaced)
        high, low = (sympy.Symbol(f"i{count + k}", integer=True, nonnegative=True) for k in range(2))
        self.replaced[digit] = high * inner + low
        sizes: dict[sympy.Symbol, sympy.Expr] = {}
        for other, size in self.sizes.items():
            sizes |= {high: outer, low: inner} if other == digit else {other: size}
        self.sizes = sizes

    def current(self, index: Sequence[sympy.Expr]) -> Index:
        """An index with the digits that there are now."""
        result = tuple(index)
        while any(x.free_symbols & self.replaced.keys() for x in result):
            result = tuple(sympy.expand(x.xreplace(self.replaced)) for x in result)
        return result

    def linear(self, x: sympy.Expr) -> tuple[dict[sympy.Symbol, sympy.Expr], sympy.Expr] | None:
        """The factor of each digit, and the rest; None where it isn't a sum of digits times factors."""
        x, factors = sympy.expand(x), dict[sympy.Symbol, sympy.Expr]()
        for digit in [d for d in self.sizes if d in x.free_symbols]:
            factor = x.coeff(digit, 1)
            x = sympy.expand(x - factor * digit)
            if digit in x.free_symbols or factor.free_symbols & self.sizes.keys():
                return None
            factors[digit] = factor
        return factors, x


def reshaped(digits: Digits, index: Index, shape: Shape, target: Shape) -> Index:
    """The index into an array of shape `target` of the element that `index` means in one of shape `shape`,
    both in C order. Splits digits."""
    result: list[sympy.Expr] = []
    for source, target_group in reshape_groups(shape, target, product, quotient):
        part = digits.current(index[source])
        if len(part) == 1 and len(target[target_group]) == 1:
            result += part
        else:
            result += _regrouped(digits, part, shape[source], target[target_group])
    return digits.current(result)


Term = tuple[sympy.Expr, sympy.Expr, sympy.Expr]  # an index, its factor, and how many values it has


def _regrouped(digits: Digits, index: Index, shape: Shape, target: Shape) -> Index:
    """As `reshaped`, of axes that are merged and cut."""
    inner = [product(target[k + 1 :]) for k in range(len(target))]
    factors = [product(shape[k + 1 :]) for k in range(len(shape))]
    while True:
        terms: list[Term] = list(zip(index, factors, shape, strict=True))
        fitted = _fitted(digits, terms, target, inner)
        if isinstance(fitted, tuple):
            return fitted
        if fitted is None:
            flat = sympy.expand(sum((x * factor for x, factor, _ in terms), ZERO))
            return _divided(flat, target, inner)
        digits.split(*fitted)
        index = digits.current(index)


def _divided(flat: sympy.Expr, target: Shape, inner: Sequence[sympy.Expr]) -> Index:
    """The indices by `//` and `%`, for sizes that don't divide each other."""
    quotients = [FloorDiv(flat, low) if low != 1 else flat for low in inner]
    return tuple(x if k == 0 else Mod(x, n) for k, (x, n) in enumerate(zip(quotients, target, strict=True)))


def _fitted(digits: Digits, terms: list[Term], target: Shape, inner: Sequence[sympy.Expr]) -> Any:
    """The index where each term lies inside one axis (a tuple), a digit to split and where (a list), or None.
    A term that doesn't is taken apart into digits first."""
    digits_of, remaining = [ZERO] * len(target), list(terms)
    while remaining:
        x, factor, extent = remaining.pop()
        if x == 0 or extent == 1:
            continue
        axis = _axis_of(factor, extent, target, inner)
        if axis is not None:
            digits_of[axis[0]] += axis[1] * x
            continue
        linear = digits.linear(x)
        if linear is None or linear[1] != 0:
            return None
        if len(linear[0]) == 1 and x in linear[0]:
            cut = _cut(factor, digits.sizes[x], target, inner)  # of a slice, the loop is shorter than the axis
            return None if cut is None else [x, cut]
        remaining += [(d, sympy.expand(factor * f), digits.sizes[d]) for d, f in linear[0].items()]
    return tuple(digits_of)


def _axis_of(
    factor: sympy.Expr, extent: sympy.Expr, target: Shape, inner: Sequence[sympy.Expr]
) -> tuple[int, sympy.Expr] | None:
    """The axis that a term stays in, and its factor there."""
    end = sympy.expand(factor * extent)
    for k, low in enumerate(inner):
        within = quotient(factor, low)
        if within is not None:
            fits = k == 0 or quotient(product(target[k:]), end) is not None
            return (k, within) if fits else None
    return None


def _cut(factor: sympy.Expr, extent: sympy.Expr, target: Shape, inner: Sequence[sympy.Expr]) -> sympy.Expr | None:
    """The factor at which a digit is split, since its parts belong to two axes."""
    for low in inner:
        cut = quotient(low, factor)
        if cut is not None and cut != 1 and not equal(cut, extent) and quotient(extent, cut) is not None:
            return cut
    return None


# ---- views


def broadcast(index: Index, shape: Shape, source: Shape) -> Index:
    """Into an array of shape `source` that is broadcast to `shape`."""
    lead = len(shape) - len(source)
    return tuple(
        ZERO if n == 1 and not equal(m, ONE) else i for i, m, n in zip(index[lead:], shape[lead:], source, strict=True)
    )
