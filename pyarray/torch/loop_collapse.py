"""Loop collapse: neighbouring loops become one where the strides of every array allow it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy

from .index import Digits
from .sizes import ONE, ZERO, equal, hint, product

Factors = Mapping[sympy.Symbol, sympy.Expr]


@dataclass(frozen=True)
class Axis:
    """One loop of a kernel, over these digits of the index, the slowest first."""

    digits: tuple[sympy.Symbol, ...]
    size: sympy.Expr


@dataclass(frozen=True)
class ArrayLayout:
    """The layout of an array in a kernel: the offset of its first element, and its axes with their strides, in
    elements."""

    offset: sympy.Expr
    axes: tuple[int, ...]
    sizes: tuple[sympy.Expr, ...]
    strides: tuple[sympy.Expr, ...]

    @property
    def contiguous(self) -> bool:
        """Whether it is C-contiguous for all values of the symbols."""
        step: sympy.Expr = ONE
        for n, s in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            if n == 1:
                continue
            if not equal(s, step):
                return False
            step = step * n
        return True


def by_stride(
    digits: Sequence[sympy.Symbol], factors: Factors, hints: Mapping[sympy.Symbol, int]
) -> list[sympy.Symbol]:
    """Digits sorted by an array's strides, the largest first; digits without a stride come before all."""

    def step(digit: sympy.Symbol) -> float:
        factor = factors.get(digit, ZERO)
        return -hint(factor, hints) if factor != 0 else float("-inf")

    return sorted(digits, key=step)


def collapse_loops(
    digits: Digits, order: Sequence[sympy.Symbol], arrays: Sequence[Factors], alone: set[sympy.Symbol]
) -> list[Axis]:
    """Collapses loops over the digits in `order` into as few as possible; those in `alone` aren't collapsed."""
    axes: list[Axis] = []
    for digit in order:
        size = digits.sizes[digit]
        if (
            axes
            and digit not in alone
            and not alone & set(axes[-1].digits)
            and all(_joins(f, axes[-1], digit, size, digits) for f in arrays)
        ):
            axes[-1] = Axis((*axes[-1].digits, digit), product((axes[-1].size, size)))
        else:
            axes.append(Axis((digit,), size))
    return axes


def _joins(factors: Factors, axis: Axis, digit: sympy.Symbol, size: sympy.Expr, digits: Digits) -> bool:
    if axis.size == 1 or size == 1:  # a stride of one element's axis says nothing
        return True
    return equal(stride_of(factors, axis, digits), factors.get(digit, ZERO) * size)


def stride_of(factors: Factors, axis: Axis, digits: Digits) -> sympy.Expr:
    """An array's stride along an axis: that of its fastest digit with more than one step."""
    for digit in reversed(axis.digits):
        if digits.sizes[digit] != 1:
            return factors.get(digit, ZERO)
    return factors.get(axis.digits[-1], ZERO)


def array_layout(factors: Factors, offset: sympy.Expr, axes: Sequence[Axis], digits: Digits) -> ArrayLayout:
    """The layout of an array whose axes are these loops."""
    steps = [stride_of(factors, axis, digits) for axis in axes]
    axes_of_array = tuple(k for k, s in enumerate(steps) if s != 0)
    return ArrayLayout(
        offset,
        axes_of_array,
        tuple(axes[k].size for k in axes_of_array),
        tuple(steps[k] for k in axes_of_array),
    )


@dataclass(frozen=True)
class LoopNest:
    """The loop structure of a written kernel: how many loops each part has, the axes of each array and whether it
    is contiguous, and whether the loops are tiled."""

    counts: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...]
    contiguous: tuple[bool, ...]
    tiled: bool


def fit_loop_nest(
    nest: LoopNest, parts: Sequence[Sequence[Axis]], layouts: Sequence[ArrayLayout]
) -> tuple[list[list[Axis]], list[ArrayLayout]] | None:
    """The same loops and arrays in the loop nest of a known kernel, with loops of one step where that has more;
    None where they don't fit. So a size of 1, with which axes merge that otherwise don't, needs no kernel of
    its own."""
    choices = [
        itertools.combinations(range(count), len(part))
        for count, part in zip(nest.counts, parts, strict=True)
        if len(part) <= count
    ]
    if len(choices) < len(parts):
        return None
    for chosen in itertools.product(*choices):
        fit = _assigned(nest, parts, layouts, chosen)
        if fit is not None:
            return fit
    return None


def _assigned(
    nest: LoopNest,
    parts: Sequence[Sequence[Axis]],
    layouts: Sequence[ArrayLayout],
    chosen: Sequence[tuple[int, ...]],
) -> tuple[list[list[Axis]], list[ArrayLayout]] | None:
    target: list[int] = []  # the known kernel's axis of each of ours
    loops: list[list[Axis]] = []
    first = 0
    for positions, count, part in zip(chosen, nest.counts, parts, strict=True):
        target += [first + k for k in positions]
        by_position = dict(zip(positions, part, strict=True))
        loops.append([by_position.get(k, Axis((), ONE)) for k in range(count)])
        first += count
    sizes = [axis.size for part in loops for axis in part]
    result: list[ArrayLayout] = []
    for layout, pattern, contiguous in zip(layouts, nest.patterns, nest.contiguous, strict=True):
        steps = {target[k]: s for k, s in zip(layout.axes, layout.strides, strict=True)}
        if any(k not in pattern and sizes[k] != 1 for k in steps):
            return None
        chosen_sizes = tuple(sizes[k] for k in pattern)
        natural = [product(chosen_sizes[n + 1 :]) for n in range(len(pattern))]
        strides = tuple(natural[n] if sizes[k] == 1 else steps.get(k, ZERO) for n, k in enumerate(pattern))
        new = ArrayLayout(layout.offset, pattern, chosen_sizes, strides)
        if contiguous and not new.contiguous:
            return None
        result.append(new)
    return loops, result
