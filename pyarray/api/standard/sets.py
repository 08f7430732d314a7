"""Set functions: the distinct elements of an array, in order, and which elements are among others."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from ... import shapes
from ...array import empty, ndarray
from ...array_convert import asarray
from ...array_hooks import operation
from ...dtypes import int64
from ...jit.replay import replayable
from ...kernels.index.gather import take
from ...kernels.scan.nonzero import nonzero
from ...kernels.sort import binary_search as kernels
from ...kernels.sort.unique import unique_sorted
from ...typing import ArrayLike
from ..core.registry import REAL, precompiled
from .creation import arange
from .elementwise import not_equal
from .manipulation import concat
from .scans import cumsum
from .searching import comparable
from .sorting import by_keys, order_rows, sort
from .statistical import as_operand
from .statistical import max as largest
from .statistical import min as smallest
from .utility import any as any_of

__all__ = ["isin", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

TABLE_SIZE = 1 << 16  # elements from which on the other array's range is read, for a look-up by a table


class UniqueAll(NamedTuple):
    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


class UniqueCounts(NamedTuple):
    values: ndarray
    counts: ndarray


class UniqueInverse(NamedTuple):
    values: ndarray
    inverse_indices: ndarray


def unique_all(x: ArrayLike, /) -> UniqueAll:
    """The distinct elements of `x` in order, the index of the first of each in the flattened array, the index
    of each element of `x` among them (in `x`'s shape), and how often each occurs; all indices are int64.

    Each NaN is distinct; 0.0 and -0.0 are not.

    >>> [a.tolist() for a in pa.unique_all(pa.asarray([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    x = as_operand("unique_all", x, "biufc")
    groups = _Groups(x.reshape(x._size), False)
    return UniqueAll(groups.values(), groups.first(), groups.inverse().reshape(x._shape), groups.counts())


@precompiled(REAL, "unique_counts(a)")
def unique_counts(x: ArrayLike, /) -> UniqueCounts:
    """The distinct elements of `x` in order, and how often each occurs (int64). Each NaN is distinct.

    >>> [a.tolist() for a in pa.unique_counts(pa.asarray([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    return UniqueCounts(*_sorted_groups(as_operand("unique_counts", x, "biufc"), False, True))


def unique_inverse(x: ArrayLike, /) -> UniqueInverse:
    """The distinct elements of `x` in order, and the index (int64) of each element of `x` among them, in
    `x`'s shape. Each NaN is distinct.

    >>> [a.tolist() for a in pa.unique_inverse(pa.asarray([3, 1, 3]))]
    [[1, 3], [1, 0, 1]]
    """
    x = as_operand("unique_inverse", x, "biufc")
    groups = _Groups(x.reshape(x._size), False)
    return UniqueInverse(groups.values(), groups.inverse().reshape(x._shape))


@precompiled(REAL, "unique_values(a)")
def unique_values(x: ArrayLike, /) -> ndarray:
    """The distinct elements of `x` in order, as a 1-D array. Each NaN is distinct.

    >>> pa.unique_values(pa.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    return _sorted_groups(as_operand("unique_values", x, "biufc"), False, False)[0]


@precompiled(("float64", "int64"), "unique(m, axis=0)")
def unique(
    x: ArrayLike,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """NumPy's unique: the distinct elements, or slices along `axis`, in order. With options a tuple: these, then
    the indices of the first ones, the index of each element among them, and counts.

    With `equal_nan` all NaNs are one (of slices of several elements never). The result is sorted in any case. Raises
    `AxisError`.

    >>> pa.unique(pa.asarray([[1, 2], [1, 2], [0, 5]]), axis=0).tolist()
    [[0, 5], [1, 2]]
    """
    x = as_operand("unique", x, "biufc")
    if axis is not None and x.ndim == 1:
        shapes.normalize_axis(axis, 1)
        axis = None
    if axis is None and not (return_index or return_inverse):
        values, counts = _sorted_groups(x, equal_nan, return_counts)
        return (values, counts) if return_counts else values
    groups: _Groups = _Groups(x.reshape(x._size), equal_nan) if axis is None else _Slices(x, axis)
    inverse = groups.inverse().reshape(x._shape) if axis is None else groups.inverse()
    parts = (groups.values(), groups.first(), inverse, groups.counts())
    results = tuple(itertools.compress(parts, (True, return_index, return_inverse, return_counts)))
    return results if len(results) > 1 else results[0]  # pyright: ignore[reportGeneralTypeIssues]


def _sorted_groups(x: ndarray, equal_nan: bool, counted: bool) -> Any:
    """The distinct elements, and with `counted` how often each occurs, for which values are enough."""
    ordered = sort(x, None)
    if not ordered._size:
        return ordered, empty(0, int64, ordered.device) if counted else None
    return unique_sorted(ordered, equal_nan, counted)


class _Groups:
    """Groups of equal elements of a 1-D array."""

    def __init__(self, x: ndarray, equal_nan: bool):
        self.order = order_rows(x.copy().reshape(1, x._size)).reshape(x._size)
        self.ordered = take(x, (self.order,))
        self.edges = kernels.edges(self.ordered, equal_nan)
        (self.starts,) = nonzero(self.edges)

    def values(self) -> ndarray:
        return take(self.ordered, (self.starts,))

    def first(self) -> ndarray:
        return take(self.order, (self.starts,))

    def inverse(self) -> ndarray:
        return kernels.number_groups(self.order, cumsum(self.edges))

    def counts(self) -> ndarray:
        return kernels.lengths(self.starts, self.order._size)


class _Slices(_Groups):
    """Groups of equal slices of an array along an axis. They are ordered by their elements, the first ones first."""

    def __init__(self, x: ndarray, axis: int):
        self.axis = shapes.normalize_axis(axis, x.ndim)
        front = x.transpose((self.axis, *(k for k in range(x.ndim) if k != self.axis)))
        n = front._shape[0]
        rows = front.reshape(n, x._size // n if n else 0)
        width = rows._shape[1]
        columns = [rows[:, k].copy().reshape(1, n) for k in reversed(range(width))]
        self.order = by_keys(columns).reshape(n) if columns else arange(n, device=x.device)  # equal all
        self.source, ordered = front, take(rows, (self.order,))
        changed = any_of(not_equal(ordered[1:], ordered[:-1]), axis=1)
        self.edges = concat([asarray([True] * min(n, 1), dtype="bool", device=x.device), changed])
        (self.starts,) = nonzero(self.edges)

    def values(self) -> ndarray:
        taken = take(self.source, (self.first(),))
        order = (*range(1, self.axis + 1), 0, *range(self.axis + 1, taken.ndim))
        return taken.transpose(order)


@precompiled(REAL, "isin(a, b[:50])")
@replayable
def isin(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> ndarray:
    """For each element of `x1` whether it is an element of `x2`, or with `invert` whether it isn't: bools in
    the shape of `x1`. NaN is in nothing.

    One of both may be a number. NumPy's `assume_unique` and `kind` change nothing here. Raises `TypeError`
    for dtypes without a common one, `ValueError` for arrays on two devices.

    >>> pa.isin(pa.asarray([1, 2, 3]), pa.asarray([3, 1])).tolist()
    [True, False, True]
    """
    x, among = comparable("isin", x1, x2)
    keys = operation("contiguous")(x.reshape(x._size))
    if keys._size >= TABLE_SIZE and among._size and keys._dtype.kind in "iu":
        low, high = int(smallest(among)), int(largest(among))
        if high - low < keys._size and max(-low, high) < 1 << 62:
            flat = operation("contiguous")(among).reshape(among._size)
            return kernels.contains_by_table(flat, low, high, keys, bool(invert)).reshape(x._shape)
    return kernels.contains(sort(among, None), keys, bool(invert)).reshape(x._shape)
