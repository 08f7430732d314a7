"""Axis splits: a reshape inside a fused expression becomes strides of split axes, so that no loop divides.

An axis of size 12 that a reshape made from sizes (3, 4) has two digits, of 3 and of 4; each has a stride and a
loop. Where two operands split one axis differently, the common refinement is used. It exists where the splits
divide each other: 12 as (3, 4) and as (6, 2) has none, and one operand is copied.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .. import shapes

Digits = tuple[tuple[int, int], ...]  # (size, stride) from the slowest to the fastest; none of size 1


class SplitLayout(NamedTuple):
    """The layout of an operand with split axes: offset in bytes, and the digits of each axis."""

    offset: int
    axes: tuple[Digits, ...]


def split_layout(shape: Sequence[int], strides: Sequence[int]) -> SplitLayout:
    """The layout of an array: one digit per axis.

    >>> split_layout((3, 1, 4), (32, 32, 8)).axes
    (((3, 32),), (), ((4, 8),))
    """
    return SplitLayout(0, tuple(((n, s),) if n != 1 else () for n, s in zip(shape, strides, strict=True)))


def size_of(digits: Digits) -> int:
    """The size of the axis with these digits."""
    return shapes.size(n for n, _ in digits)


def common_refinement(cuts: Iterable[Sequence[int]]) -> tuple[int, ...] | None:
    """The coarsest sizes that refine all of these, each a factorisation of one number; None where there are
    none.

    >>> common_refinement([(12,), (4, 3)]), common_refinement([(4, 3), (2, 2, 3)]), common_refinement([(3, 2), (2, 3)])
    ((4, 3), (2, 2, 3), None)
    """
    points = {1}
    for sizes in cuts:
        step = 1
        for n in reversed(sizes):
            step *= n
            points.add(step)
    ordered = sorted(points)
    pairs = list(itertools.pairwise(ordered))
    if any(high % low for low, high in pairs):
        return None
    return tuple(high // low for low, high in reversed(pairs))


def refine(digits: Digits, sizes: Sequence[int]) -> Digits:
    """The same elements as digits of these sizes, which refine them.

    >>> refine(((6, 8),), (2, 3))
    ((2, 24), (3, 8))
    """
    result: list[tuple[int, int]] = []
    remaining = list(sizes)
    for n, stride in reversed(digits):
        while n > 1:
            m = remaining.pop()
            result.append((m, stride))
            stride *= m
            n //= m
    return tuple(reversed(result))


def merge(digits: Digits) -> Digits:
    """The fewest digits with the same elements in the same order.

    >>> merge(((2, 24), (3, 8), (4, 0)))
    ((6, 8), (4, 0))
    """
    sizes, (strides,) = shapes.collapse([n for n, _ in digits], [s for _, s in digits])
    return tuple(zip(sizes, strides, strict=True))


def reshape(x: SplitLayout, shape: Sequence[int]) -> SplitLayout | None:
    """The layout in another shape of the same size, in C order; None where that needs a copy."""
    digits = merge(tuple(d for axis in x.axes for d in axis))
    sizes = common_refinement([[n for n, _ in digits], [n for n in shape if n != 1]])
    if sizes is None:
        return None
    remaining, axes = list(refine(digits, sizes)), []
    for n in reversed(shape):
        axis: list[tuple[int, int]] = []
        while n > 1:
            axis.append(remaining.pop())
            n //= axis[-1][0]
        axes.append(merge(tuple(reversed(axis))) if axis else ())
    return SplitLayout(x.offset, tuple(reversed(axes)))


def broadcast(x: SplitLayout, shape: Sequence[int]) -> SplitLayout:
    """The layout broadcast to `shape`."""
    lead = len(shape) - len(x.axes)
    padded = ((),) * lead + x.axes
    axes = (a if a or n == 1 else ((n, 0),) for a, n in zip(padded, shape, strict=True))
    return SplitLayout(x.offset, tuple(axes))


def indexed(x: SplitLayout, items: Sequence[int | slice | None]) -> SplitLayout | None:
    """The layout behind a basic index, with an item for each axis and None for a new one. None where a slice
    takes a part of an axis of several digits."""
    offset, rest = x.offset, iter(x.axes)
    axes: list[Digits] = []
    for item in items:
        if item is None:
            axes.append(())
            continue
        digits = next(rest)
        n = size_of(digits)
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            count = len(range(start, stop, step))
            if (start, count, step) == (0, n, 1):
                axes.append(digits)
                continue
            if len(digits) > 1:
                return None
            stride = digits[0][1] if digits else 0
            offset += start * stride
            axes.append(((count, step * stride),) if count != 1 else ())
        else:
            remaining = item % n
            for size, stride in reversed(digits):
                remaining, digit = divmod(remaining, size)
                offset += digit * stride
    return SplitLayout(offset, tuple(axes))
