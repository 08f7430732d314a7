"""Binary search in sorted arrays, and the runs of equal elements in them."""

from __future__ import annotations

from typing import Any

from ...array import ndarray
from ...dtypes import bool_, int64, uint8
from ...jit.functions import func
from ...lang.markers import constexpr, kernel_math
from ..library_kernel import library_kernel
from ..workspace import unchecked_empty


def search(a: ndarray, keys: ndarray, right: bool) -> ndarray:
    """For each key its insertion position in the sorted 1-D array `a`; with `right`, after equal elements.
    NaN is the largest. Both are contiguous, 1-D and of one real dtype."""
    out = unchecked_empty(keys._shape, int64, keys.device)
    if out._size:
        search_each()(out, a, keys, False, "right" if right else "left")
    return out


def contains(a: ndarray, keys: ndarray, invert: bool) -> ndarray:
    """Whether each key is in the sorted 1-D array `a`, or with `invert` isn't. Both are contiguous, 1-D and of
    one dtype."""
    out = unchecked_empty(keys._shape, bool_, keys.device)
    if out._size:
        search_each()(out, a, keys, invert, "left")
    return out


def contains_by_table(a: ndarray, low: int, high: int, keys: ndarray, invert: bool) -> ndarray:
    """As `contains`, for unsorted integers from `low` (within 2**62 of 0) to `high`: by a lookup table."""
    table = unchecked_empty((high - low + 1,), uint8, keys.device)
    table[...] = 0
    out = unchecked_empty(keys._shape, bool_, keys.device)
    mark()(table, a, low)
    look_up()(out, table, keys, low, invert)
    return out


@library_kernel
def mark(table: Any, a: Any, low: int) -> None:
    for t in range(a.shape[0]):
        table[int64(a[t]) - low] = 1


@library_kernel
def look_up(out: Any, table: Any, keys: Any, low: int, invert: bool) -> None:
    for t in range(out.shape[0]):
        at = int64(keys[t]) - low
        inside = (at >= 0) & (at < table.shape[0])
        out[t] = (inside & (table[at if inside else 0] != 0)) != invert


@library_kernel
def search_each(out: ndarray, a: ndarray, keys: ndarray, invert: bool, side: constexpr) -> None:
    """Stores the positions, or whether the element there is the key where `out` is of bools."""
    for t in range(out.shape[0]):
        key = keys[t]
        low = int64(0)
        left = int64(a.shape[0])
        while left > 0:
            half = (left + 1) >> 1
            low += half * int64(is_before(a[low + half - 1], key, side))
            left -= half
        if out.dtype == bool_:
            out[t] = (low < a.shape[0] and a[min(low, a.shape[0] - 1)] == key) != invert
        else:
            out[t] = low


@func
def is_before(x: Any, key: Any, side: Any) -> Any:
    """Whether the place of a key is after x. There are no branches: half of them would be mispredicted. NaN is the
    largest, and no complex key equals one."""
    if key.dtype.kind == "c":
        less = (kernel_math.real(x) == kernel_math.real(key)) & (kernel_math.imag(x) < kernel_math.imag(key))
        return (x == x) & ((kernel_math.real(x) < kernel_math.real(key)) | less)
    elif side == "right":
        return (x <= key) | (key != key)
    else:
        return (x < key) | ((key != key) & (x == x))


def edges(x: ndarray, equal_nan: bool) -> ndarray:
    """Whether each element of the sorted 1-D array `x` differs from the one before; the first one does."""
    out = unchecked_empty(x._shape, bool_, x.device)
    if out._size:
        mark_edges()(out, x, equal_nan)
    return out


@library_kernel
def mark_edges(out: ndarray, x: ndarray, equal_nan: bool) -> None:
    for t in range(x.shape[0]):
        out[t] = t == 0 or differ(x[t], x[t - 1], equal_nan)


@func
def differ(a: Any, b: Any, equal_nan: Any) -> Any:
    return (a != b) & (not (equal_nan & (a != a) & (b != b)))


def lengths(starts: ndarray, size: int) -> ndarray:
    """The lengths of runs that begin at `starts`; the last one ends at `size` (int64)."""
    out = unchecked_empty(starts._shape, int64, starts.device)
    if out._size:
        run_lengths()(out, starts, size)
    return out


@library_kernel
def run_lengths(out: Any, starts: Any, size: int) -> None:
    for k in range(out.shape[0]):
        out[k] = (starts[k + 1] if k + 1 < out.shape[0] else size) - starts[k]


def number_groups(order: ndarray, group: ndarray) -> ndarray:
    """`out[order[t]] = group[t] - 1`, where `order` has each position once."""
    out = unchecked_empty(order._shape, int64, order.device)
    if out._size:
        scatter_numbers()(out, order, group)
    return out


@library_kernel
def scatter_numbers(out: Any, order: Any, group: Any) -> None:
    for t in range(order.shape[0]):
        out[order[t]] = group[t] - 1
