"""Shapes, strides and basic indices as plain integers. Strides and offsets are in bytes; no function here
sees an array.

>>> basic_index((4, 6), (48, 8), (1, slice(None, None, -2)))
(88, (3,), (-16,))
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from numpy.exceptions import AxisError

Ints = tuple[int, ...]


def size(shape: Iterable[int]) -> int:
    """Number of elements; 1 for the 0-d shape."""
    return math.prod(shape)


def resolve_shape(shape: Any, total: int | None = None) -> Ints:
    """`shape` (an integer or a sequence of them) as a tuple of ints; with `total`, one -1 is what is left of
    `total` elements.

    Raises `TypeError` for what is no integer and `ValueError` for negative sizes or where `total` does not
    fit.

    >>> resolve_shape((2, -1), 6)
    (2, 3)
    """
    if type(shape) is int and shape >= 0 and total is None:
        return (shape,)
    try:
        sizes_given: Any = shape if hasattr(shape, "__iter__") else (shape,)
        sizes = tuple(map(operator.index, sizes_given))
    except TypeError:
        raise TypeError(f"a shape is an integer or a sequence of integers, got {shape!r}") from None
    unknown = sizes.count(-1) if total is not None else 0
    if min(sizes, default=0) < 0 and (unknown != 1 or min(sizes) < -1):
        advice = "" if total is None else "; one size, and only one, may be -1 for what is left"
        raise ValueError(f"sizes of a shape are 0 or more, got {sizes}{advice}")
    if total is None:
        return sizes
    product = size(n for n in sizes if n != -1) if unknown else size(sizes)
    fits = product != 0 and total % product == 0 if unknown else product == total
    if not fits:
        verb = "divide" if unknown else "be"
        raise ValueError(f"cannot reshape {total} elements into shape {sizes}; the sizes' product must {verb} {total}")
    return tuple(total // product if n == -1 else n for n in sizes) if unknown else sizes


def normalize_axis(axis: Any, ndim: int) -> int:
    """`axis` counted from the front. Raises NumPy's `AxisError` (a `ValueError` and an `IndexError`) when
    outside -ndim to ndim - 1.

    >>> normalize_axis(-1, 3)
    2
    """
    number = operator.index(axis)
    if not -ndim <= number < ndim:
        raise AxisError(number, ndim)
    return number % ndim


def normalize_axes(axes: Any, ndim: int) -> Ints:
    """`axes` (None for all, an integer, or several) counted from the front, in the given order.

    Raises `AxisError` when one is out of range and `ValueError` when one comes twice.

    >>> normalize_axes((-1, 0), 3), normalize_axes(None, 2)
    ((2, 0), (0, 1))
    """
    if axes is None:
        return tuple(range(ndim))
    normalized = tuple(normalize_axis(axis, ndim) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,)))
    if len(set(normalized)) != len(normalized):
        raise ValueError(f"an axis comes twice in {axes!r} for an array of {ndim} dimensions; name each once")
    return normalized


@functools.lru_cache(maxsize=4096)
def reduced(shape: Ints, axes: Ints) -> tuple[Ints, Ints]:
    """`shape` without `axes`, and with size 1 there.

    >>> reduced((2, 3, 4), (1,))
    ((2, 4), (2, 1, 4))
    """
    remaining = tuple(n for k, n in enumerate(shape) if k not in axes)
    return remaining, tuple(1 if k in axes else n for k, n in enumerate(shape))


def column_shape(axis: int, ndim: int) -> Ints:
    """The shape by which `reshape` lays a vector along `axis` of an array of `ndim` dimensions.

    >>> column_shape(1, 3)
    (1, -1, 1)
    """
    return (1,) * axis + (-1,) + (1,) * (ndim - axis - 1)


def permute(axes: Any, *sequences: Sequence[int]) -> tuple[Ints, ...]:
    """Each of `sequences` (all as long as the rank) reordered by `axes`; `axes` None reverses.

    Raises `ValueError` unless `axes` names every axis once.

    >>> permute((1, 2, 0), (4, 5, 6))
    ((5, 6, 4),)
    """
    ndim = len(sequences[0])
    order = tuple(range(ndim - 1, -1, -1)) if axes is None else normalize_axes(tuple(axes), ndim)
    if len(order) != ndim:
        raise ValueError(f"axes {order} don't match an array of {ndim} dimensions; name every axis once")
    return tuple(tuple(sequence[axis] for axis in order) for sequence in sequences)


def contiguous_strides(shape: Sequence[int], itemsize: int) -> Ints:
    """Byte strides of a fresh array in C order.

    >>> contiguous_strides((2, 3), 8)
    (24, 8)
    """
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n or 1
    return tuple(reversed(strides))


def axis_order(shape: Sequence[int], strides: Sequence[int], itemsize: int, order: Any) -> Ints:
    """The axes, the slowest first, in which an array is walked in the memory order "C", "F", "A" ("F" where
    that alone has no gaps) or "K" (by their strides, whatever the sign). Raises `ValueError` for another one.

    >>> axis_order((2, 3), (8, 16), 8, "K")
    (1, 0)
    """
    axes = tuple(range(len(shape)))
    if order == "K":  # axes of one element may lie anywhere
        return tuple(sorted(axes, key=lambda k: -abs(strides[k]) if shape[k] > 1 else 0))
    if order not in ("C", "F", "A"):
        raise ValueError(f"order is 'C', 'F', 'A' or 'K', got {order!r}")
    if order == "A" and not is_contiguous(shape, strides, itemsize):
        order = "F" if is_contiguous(shape[::-1], strides[::-1], itemsize) else "C"
    return axes[::-1] if order == "F" else axes


def iteration_order(shape: Sequence[int], strides: Sequence[int]) -> Ints:
    """The axes, the slowest first, in which NumPy's iterators walk an array in the order "K": by their strides,
    whatever the sign. Axes that repeat an element (stride 0) or have one only stay where they are.

    >>> iteration_order((2, 3, 4), (8, 0, 16))
    (1, 2, 0)
    >>> iteration_order((2, 3), (0, 8))
    (0, 1)
    """
    steps = [abs(stride) if n > 1 else 0 for n, stride in zip(shape, strides, strict=True)]
    order: list[int] = []  # the fastest first
    for axis in reversed(range(len(steps))):
        at = len(order)
        for k in reversed(range(len(order))):
            if steps[axis] and steps[order[k]]:
                if steps[order[k]] <= steps[axis]:
                    break
                at = k
        order.insert(at, axis)
    return tuple(reversed(order))


def is_contiguous(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether the elements follow each other in C order without gaps; always so for 0 or 1 elements."""
    step, contiguous = itemsize, True
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n == 0:
            return True
        if n != 1:
            contiguous = contiguous and stride == step
            step *= n
    return contiguous


@functools.lru_cache(maxsize=4096)
def contiguity_and_size(shape: Ints, strides: Ints, itemsize: int) -> tuple[bool, int]:
    """`is_contiguous` and `size`, remembered: views of the same form come again and again."""
    return is_contiguous(shape, strides, itemsize), size(shape)


def broadcast_shapes(*shapes: Sequence[int]) -> Ints:
    """The shape that all of `shapes` broadcast to. Raises `ValueError` naming all of them.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for axis, n in enumerate(shape, ndim - len(shape)):
            if n != 1 and result[axis] not in (1, n):
                names = " and ".join(str(tuple(each)) for each in shapes)
                raise ValueError(f"shapes {names} don't broadcast: sizes must be equal or 1")
            if n != 1:
                result[axis] = n
    return tuple(result)


def broadcast_strides(shape: Sequence[int], strides: Sequence[int], target: Sequence[int]) -> Ints:
    """Strides that read an array of `shape` as one of shape `target`: 0 along repeated axes. Raises
    `ValueError` where it doesn't fit.

    >>> broadcast_strides((3, 1), (8, 8), (2, 3, 4))
    (0, 8, 0)
    """
    lead = len(target) - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, target[lead:], strict=True)):
        raise ValueError(f"shape {tuple(shape)} doesn't broadcast to {tuple(target)}: sizes must be equal or 1")
    strides_of_axes = (0 if n == 1 != m else stride for n, m, stride in zip(shape, target[lead:], strides, strict=True))
    return (0,) * lead + tuple(strides_of_axes)


def reshape_strides(
    shape: Sequence[int], strides: Sequence[int], new_shape: Sequence[int], itemsize: int
) -> Ints | None:
    """Strides that read the same elements, in C order, as `new_shape` (of the same size); None when only a
    copy can.

    >>> reshape_strides((4, 6), (48, 8), (2, 2, 6), 8), reshape_strides((4, 6), (8, 32), (24,), 8)
    ((96, 48, 8), None)
    """
    if size(new_shape) <= 1 or is_contiguous(shape, strides, itemsize):
        return contiguous_strides(new_shape, itemsize)
    runs, (steps,) = collapse(shape, strides)
    result: list[int] = []
    new = list(new_shape)
    for n, step in zip(reversed(runs), reversed(steps), strict=True):
        while n > 1:
            m = new.pop()
            if n % m:
                return None
            result.append(step)
            step *= m
            n //= m
    result.extend([result[-1] if result else itemsize] * len(new))  # what is left are sizes of 1
    return tuple(reversed(result))


def collapse(shape: Sequence[int], *strides: Sequence[int]) -> tuple[Ints, tuple[Ints, ...]]:
    """Fewest axes that visit the same elements in the same order in every operand: drops axes of size 1,
    merges neighbours where each operand's outer stride is its inner stride times the inner size. Returns the
    shape and each operand's strides.

    >>> collapse((2, 3, 4), (96, 32, 8), (0, 32, 8))
    ((2, 12), ((96, 8), (0, 8)))
    """
    if 0 in shape:
        return (0,), tuple((0,) for _ in strides)
    sizes: list[int] = []
    steps: list[Ints] = []
    for n, *column_shape in zip(shape, *strides, strict=True):
        if n == 1:
            continue
        if sizes and all(outer == inner * n for outer, inner in zip(steps[-1], column_shape, strict=True)):
            sizes[-1] *= n
            steps[-1] = tuple(column_shape)
        else:
            sizes.append(n)
            steps.append(tuple(column_shape))
    return tuple(sizes), tuple(tuple(step[k] for step in steps) for k in range(len(strides)))


def byte_bounds(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """First byte and byte after the last one, counted from the first element; (0, 0) for no elements.

    >>> byte_bounds((3,), (-8,), 8)
    (-16, 8)
    """
    low = high = 0
    for n, stride in zip(shape, strides, strict=True):
        if n == 0:
            return 0, 0
        if stride < 0:
            low += (n - 1) * stride
        else:
            high += (n - 1) * stride
    return low, high + itemsize


def repeats(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether an axis of several places has a stride of 0: what is written there is written more than once.

    >>> repeats((3, 1), (0, 8)), repeats((3, 1), (8, 0))
    (True, False)
    """
    if 0 not in strides or 0 in shape:
        return False
    return any(n > 1 and s == 0 for n, s in zip(shape, strides, strict=True))


def may_overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two address ranges (first byte, byte after the last) have a byte in common. Strided gaps
    count as covered."""
    return a[0] < b[1] and b[0] < a[1] and a[0] < a[1] and b[0] < b[1]


def basic_index(shape: Sequence[int], strides: Sequence[int], key: Any) -> tuple[int, Ints, Ints]:
    """NumPy's basic index: byte offset, shape and strides of `a[key]`. An empty slice starts at its clamped
    start.

    Raises `IndexError` for an integer out of range, too many indices or what is no index, `ValueError` for a
    slice step of 0 and `TypeError` for slice bounds that are no integers.

    >>> basic_index((5,), (8,), slice(1, 99, 2))
    (8, (2,), (16,))
    """
    items = key if type(key) is tuple else (key,)
    missing = _missing_axes(items, len(shape))
    offset = axis = 0
    new_shape: list[int] = []
    new_strides: list[int] = []
    for item in items:
        if item is None:
            new_shape.append(1)
            new_strides.append(0)
            continue
        if item is Ellipsis:
            new_shape.extend(shape[axis : axis + missing])
            new_strides.extend(strides[axis : axis + missing])
            axis += missing
            continue
        n, stride = shape[axis], strides[axis]
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            count = len(range(start, stop, step))
            new_shape.append(count)
            # of one element any stride is true, also where the product is too large for a machine's integer
            steps = count > 1 or (count and -(1 << 62) < stride * step < 1 << 62)
            new_strides.append(stride * step if steps else stride)
            offset += stride * max(start, 0)
        else:
            index = item if type(item) is int else _as_index(item)
            if not -n <= index < n:
                raise IndexError(f"index {index} is out of bounds for axis {axis} with size {n}")
            offset += stride * (index + n if index < 0 else index)
        axis += 1
    return offset, (*new_shape, *shape[axis:]), (*new_strides, *strides[axis:])


def _missing_axes(items: tuple[Any, ...], ndim: int) -> int:
    """How many axes an index leaves to its Ellipsis, or to the end. Raises `IndexError` for two, or too many
    indices."""
    used, dots = 0, 0
    for item in items:
        if item is Ellipsis:
            dots += 1
        elif item is not None:
            used += 1
    if dots > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > ndim:
        raise IndexError(f"too many indices: the array has {ndim} dimensions, but {used} were indexed")
    return ndim - used


def _as_index(item: Any) -> int:
    if isinstance(item, bool):
        raise IndexError("a bool is a mask, not an integer index; write int(index) to count with it")
    try:
        return operator.index(item)
    except TypeError:
        raise IndexError(
            "an index is an integer, slice, `...`, newaxis (`None`), or an integer or boolean array, "
            f"got {type(item).__name__} {item!r}"
        ) from None


def stored_shape(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The shape without repetition: an axis of stride 0 shows the same elements again and again."""
    return tuple(1 if n and not step else n for n, step in zip(shape, strides, strict=True))
