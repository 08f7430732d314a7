"""Sums of products over named axes: tensordot, vecdot, einsum. Each is views around one matrix product."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes, shapes
from ...array import empty, ndarray
from ...jit.replay import replayable
from ...kernels.matmul.gemm import gemm
from ...kernels.reduce.dot import dots, prefers_dots
from ...typing import ArrayLike, DTypeLike
from ..core.registry import FLOAT, precompiled
from ..core.ufunc import as_operands, common_device, store_out
from ..standard import statistical, utility
from ..standard.elementwise import conj, multiply
from ..standard.statistical import as_operand

__all__ = ["einsum", "tensordot", "vecdot"]

Labels = tuple[int, ...]  # names of an array's axes


@replayable
def tensordot(x1: ArrayLike, x2: ArrayLike, /, axes: int | Sequence[Any] = 2) -> ndarray:
    """Sum of products over pairs of axes: the last `axes` ones of `x1` with the first ones of `x2`, or axes
    `axes[0]` of `x1` with `axes[1]` of `x2`. The result has the other axes of `x1`, then those of `x2`.

    The dtype is the common one; types as in `matmul`. Raises `ValueError` for sizes or numbers of axes that
    differ, `AxisError` for an axis out of range, `TypeError` for dtypes without a common one.

    >>> pa.tensordot(pa.ones((2, 3, 4)), pa.ones((3, 4, 5)), axes=2).shape
    (2, 5)
    """
    a, b = _operands("tensordot", (x1, x2))
    first, second = _pairs(axes, a, b)
    for i, j in zip(first, second, strict=True):
        if a._shape[i] != b._shape[j]:
            raise ValueError(
                f"tensordot(): shapes {a._shape} and {b._shape} don't fit: axis {i} of the first has size "
                f"{a._shape[i]}, axis {j} of the second {b._shape[j]}"
            )
    names = tuple(range(a.ndim))
    partner = dict(zip(second, first, strict=True))
    others = tuple(partner.get(k, a.ndim + k) for k in range(b.ndim))
    free = [*(n for n in names if n not in first), *(n for n in others if n >= a.ndim)]
    return _contract(a, names, b, others, tuple(free))


def _pairs(axes: Any, a: ndarray, b: ndarray) -> tuple[Labels, Labels]:
    """The axes of `a` that are summed, and those of `b` in the same order."""
    if hasattr(axes, "__len__"):
        if len(axes) != 2:
            raise ValueError(f"tensordot(): axes is a number, or the axes of each array, got {axes!r}")
        first, second = ([k] if hasattr(k, "__index__") else list(k) for k in axes)
        if len(first) != len(second):
            raise ValueError(
                f"tensordot() sums pairs of axes, got {len(first)} of the first array and {len(second)} of "
                f"the second: {axes!r}"
            )
        return shapes.normalize_axes(first, a.ndim), shapes.normalize_axes(second, b.ndim)
    count = operator.index(axes)
    if not 0 <= count <= min(a.ndim, b.ndim):
        raise ValueError(
            f"tensordot(): arrays of {a.ndim} and {b.ndim} dimensions have no {count} axes in common; "
            f"axes is between 0 and {min(a.ndim, b.ndim)}"
        )
    return tuple(range(a.ndim - count, a.ndim)), tuple(range(count))


@replayable
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> ndarray:
    """Sum of conj(x1) * x2 over `axis`, which both have in one size; the others broadcast.

    The dtype is the common one; types as in `matmul`. Raises `ValueError` for sizes that differ or don't
    broadcast, `AxisError` for an axis that one of them lacks, `TypeError` for dtypes without a common one.

    >>> pa.vecdot(pa.asarray([[1, 2], [3, 4]]), pa.asarray([1, 10])).tolist()
    [21, 43]
    """
    a, b = _operands("vecdot", (x1, x2))
    k = operator.index(axis)
    if k >= 0:  # counted from the front, it is an axis of both only where they are alike
        k -= max(a.ndim, b.ndim)
    for x in (a, b):
        shapes.normalize_axis(k, x.ndim)
    if a._shape[k] != b._shape[k]:
        raise ValueError(
            f"vecdot(): shapes {a._shape} and {b._shape} don't fit: axis {axis} has sizes {a._shape[k]} and "
            f"{b._shape[k]}"
        )
    if a._dtype.kind == "c":
        a = conj(a)
    shape = list(shapes.broadcast_shapes(a._shape, b._shape))
    a, b = (x._view(0, tuple(shape), shapes.broadcast_strides(x._shape, x._strides, shape)) for x in (a, b))
    names = tuple(range(len(shape)))
    return _contract(a, names, b, names, tuple(n for n in names if n != k + len(shape)))


@precompiled(FLOAT, "einsum('ij,jk->ik', m, w)", "einsum('ij,ij->i', m, w)")
@replayable
def einsum(
    subscripts: str,
    /,
    *operands: ArrayLike,
    out: ndarray | None = None,
    dtype: DTypeLike = None,
    casting: str = "safe",
    optimize: Any = True,
) -> ndarray:
    """Sum of products by Einstein's convention, as NumPy's: a letter names an axis, letters that the result
    lacks are summed over, and "..." stands for axes that broadcast.

    Pairs of arrays are multiplied in the order that keeps results small, or from left to right with
    `optimize=False`. What only picks or reorders axes of one array is a view. The dtype is the common one, or
    `dtype`, to which operands are cast first if `casting` ("no", "equiv", "safe", "same_kind" or "unsafe", as
    in NumPy) allows it. Raises `ValueError` for subscripts that don't fit the operands or say nothing,
    `TypeError` for dtypes without a common one, or that may not be cast.

    >>> pa.einsum("ij,kj->ik", pa.ones((2, 3)), pa.ones((4, 3))).shape
    (2, 4)
    """
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum() takes subscripts as text, such as 'ij,jk->ik', got {type(subscripts).__name__}")
    arrays = _operands("einsum", operands, dtype, casting)
    terms, result = _parse(subscripts, arrays)
    sizes = _sizes(subscripts, terms, arrays)
    parts = [_named(a, term, sizes) for a, term in zip(arrays, terms, strict=True)]
    while len(parts) > 1:
        i, j = _next_pair(parts, result, sizes) if optimize else (0, 1)
        (b, right), (a, left) = parts.pop(j), parts.pop(i)
        needed = {*result, *itertools.chain.from_iterable(labels for _, labels in parts)}
        a, left = _summed(a, left, needed | set(right))
        b, right = _summed(b, right, needed | set(left))
        product_labels = tuple(n for n in dict.fromkeys(left + right) if n in needed)
        if not parts:
            product_labels = result
        parts.append((_contract(a, left, b, right, product_labels), product_labels))
    last, labels = _summed(*parts[0], set(result))
    transposed = last.transpose([labels.index(n) for n in result]) if labels != result else last
    return store_out("einsum", transposed, out)


def _operands(name: str, args: Sequence[Any], dtype: Any = None, casting: str = "safe") -> list[ndarray]:
    """Arrays of `dtype`, or of their common one, on one device."""
    if not args:
        raise ValueError(f"{name}() needs at least one array, got none")
    arrays = [as_operand(name, x, "biufc") for x in as_operands(name, args)]
    common_device(name, arrays, [f"operand {n + 1}" for n in range(len(arrays))])
    kind = dtypes.result_type(*arrays) if dtype is None else dtypes.asdtype(dtype)
    for x in arrays:
        if not np.can_cast(x._dtype.numpy, kind.numpy, casting):  # type: ignore[arg-type]
            rule = f"{x._dtype} isn't cast to {kind} by casting={casting!r}"
            raise TypeError(f"{name}(): {rule}; cast the operand with astype, or give casting='unsafe'")
    return [a.astype(kind, copy=False) for a in arrays]


# ---- one product


def _contract(a: ndarray, left: Labels, b: ndarray, right: Labels, result: Labels) -> ndarray:
    """The sum of a * b over the labels that both have and `result` lacks; each other label is in `result`."""
    kind = a._dtype
    sizes = dict(zip(left + right, a._shape + b._shape, strict=True))
    inner = [n for n in left if n in right and n not in result]
    if not inner:
        return multiply(_align_labels(a, left, result), _align_labels(b, right, result))
    batch = [n for n in result if n in left and n in right]
    shape = tuple(sizes[n] for n in result)
    c = empty(shape, kind, a.device)
    rows, columns = [n for n in left if n not in right], [n for n in right if n not in left]
    orders = itertools.product(
        _orders(rows, result), _orders(columns, result), _orders(inner, [n for n in right if n in inner])
    )
    used = ((a, left), (b, right), (c, result))

    def copied(order: tuple[list[int], ...]) -> int:
        m, n, k = order
        groups = ((m, k), (k, n), (m, n))
        return sum(
            x._size
            for (x, labels), pair in zip(used, groups, strict=True)
            if any(_merged(x, labels, group) is None for group in pair)
        )

    m, n, k = min(orders, key=copied)
    left_matrix, right_matrix = _matrix(a, left, batch, m, k), _matrix(b, right, batch, k, n)
    if not m and not n and prefers_dots(c._size, left_matrix._shape[-1]):
        if c._size:
            dots(c, left_matrix[..., 0, :], right_matrix[..., 0])
        return c
    if all(_merged(c, result, group) is not None for group in (m, n)):
        gemm(_matrix(c, result, batch, m, n), left_matrix, right_matrix)
        return c
    order = (*batch, *m, *n)
    c = empty(tuple(sizes[name] for name in order), kind, a.device)
    gemm(_matrix(c, order, batch, m, n), left_matrix, right_matrix)
    return c.transpose([order.index(name) for name in result])


def _orders(labels: list[int], other: Sequence[int]) -> list[list[int]]:
    """`labels` as they are, and in the order in which they come in `other`."""
    reordered = [n for n in other if n in labels]
    return [labels] if reordered == labels else [labels, reordered]


def _merged(x: ndarray, labels: Labels, group: list[int]) -> int | None:
    """The stride of the axes `group` merged into one, in this order; None if that would take a copy."""
    axes_of_group = [labels.index(n) for n in group]
    sizes = [x._shape[k] for k in axes_of_group]
    strides = shapes.reshape_strides(
        sizes, [x._strides[k] for k in axes_of_group], (math.prod(sizes),), x._dtype.itemsize
    )
    return None if strides is None else strides[0]


def _matrix(x: ndarray, labels: Labels, batch: list[int], m: list[int], n: list[int]) -> ndarray:
    """`x` as (batch..., m, n): a view where strides allow."""
    first, second = _merged(x, labels, m), _merged(x, labels, n)
    if first is None or second is None:
        order = (*batch, *m, *n)
        return _matrix(x.transpose([labels.index(name) for name in order]).copy(), order, batch, m, n)
    batch_axes = [labels.index(name) for name in batch]
    ends = (math.prod(x._shape[labels.index(name)] for name in group) for group in (m, n))
    return x._view(
        0, (*(x._shape[k] for k in batch_axes), *ends), (*(x._strides[k] for k in batch_axes), first, second)
    )


def _align_labels(x: ndarray, labels: Labels, result: Labels) -> ndarray:
    """A view with the axes in the order of `result`, of size 1 where `x` has none."""
    source_axes = [labels.index(n) if n in labels else None for n in result]
    return x._view(
        0,
        tuple(1 if k is None else x._shape[k] for k in source_axes),
        tuple(0 if k is None else x._strides[k] for k in source_axes),
    )


# ---- subscripts


def _parse(subscripts: str, arrays: Sequence[ndarray]) -> tuple[list[Labels], Labels]:
    """Labels of the operands' axes and of the result's. Letters are their code; the axes of "..." are
    negative, -1 the last one."""

    def wrong(what: str) -> ValueError:
        return ValueError(f"einsum({subscripts!r}): {what}")

    text = "".join(subscripts.split())
    inputs, arrow, output = text.partition("->")
    texts = inputs.split(",")
    if len(texts) != len(arrays):
        raise wrong(f"the subscripts are of {len(texts)} operands, but {len(arrays)} were passed")
    for part in (*texts, output):
        letters = part.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            raise wrong(f"a term is made of letters and at most one '...', got {part!r}")
    terms = []
    for n, (part, a) in enumerate(zip(texts, arrays, strict=True)):
        dots = a.ndim - len(part.replace("...", ""))
        if dots < 0 or (dots and "..." not in part):
            raise wrong(f"operand {n + 1} has shape {a._shape}, but its subscripts are {part!r}")
        terms.append(_labels(part, dots))
    named = list(itertools.chain.from_iterable(terms))
    dots = -min([0, *named])
    if not arrow:
        unrepeated = sorted(n for n in set(named) if n > 0 and named.count(n) == 1)
        return terms, (*range(-dots, 0), *unrepeated)
    result = _labels(output, dots)
    if len(set(result)) < len(result):
        raise wrong(f"a letter comes twice in the result {output!r}")
    for n in result:
        if n not in named:
            raise wrong(f"{chr(n)!r} of the result is in no operand")
    return terms, result


def _labels(part: str, dots: int) -> Labels:
    before, _, after = part.partition("...")
    middle = range(-dots, 0) if "..." in part else ()
    return (*map(ord, before), *middle, *map(ord, after))


def _sizes(subscripts: str, terms: Sequence[Labels], arrays: Sequence[ndarray]) -> dict[int, int]:
    """The size of each label; 1 goes with any other."""
    sizes: dict[int, int] = {}
    for term, a in zip(terms, arrays, strict=True):
        for label, n in zip(term, a._shape, strict=True):
            size = sizes.setdefault(label, n)
            if n != size and 1 not in (n, size):
                all_shapes = " and ".join(str(each._shape) for each in arrays)
                name = repr(chr(label)) if label > 0 else "an axis of '...'"
                raise ValueError(f"einsum({subscripts!r}): {name} has sizes {size} and {n} in {all_shapes}")
            sizes[label] = n if size == 1 else size
    return sizes


def _named(a: ndarray, labels: Labels, sizes: dict[int, int]) -> tuple[ndarray, Labels]:
    """A view whose axes have a label each: a diagonal where a letter comes twice. Axes of size 1 that stand
    for longer ones are left out."""
    steps: dict[int, int] = {}
    for label, n, step in zip(labels, a._shape, a._strides, strict=True):
        if n == sizes[label]:
            steps[label] = steps.get(label, 0) + step
    labels_once = tuple(steps)
    view: ndarray = a._view(0, tuple(sizes[n] for n in labels_once), tuple(steps[n] for n in labels_once))
    return view, labels_once


def _summed(a: ndarray, labels: Labels, needed: set[int]) -> tuple[ndarray, Labels]:
    """`a` summed over the labels that are not needed, in its own type."""
    axes = tuple(k for k, n in enumerate(labels) if n not in needed)
    if not axes:
        return a, labels
    remaining = tuple(n for n in labels if n in needed)
    if a._dtype.kind == "b":
        return utility.any(a, axis=axes), remaining
    return statistical.sum(a, axis=axes, dtype=a._dtype), remaining


def _next_pair(parts: Sequence[tuple[ndarray, Labels]], result: Labels, sizes: dict[int, int]) -> tuple[int, int]:
    """The two parts whose product is smallest; of several such, those that share most."""

    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        i, j = pair
        both = {*parts[i][1], *parts[j][1]}
        others = itertools.chain.from_iterable(p[1] for k, p in enumerate(parts) if k not in pair)
        remaining = both & {*result, *others}
        return math.prod(sizes[n] for n in remaining), -math.prod(sizes[n] for n in both - remaining)

    return min(itertools.combinations(range(len(parts)), 2), key=cost)
