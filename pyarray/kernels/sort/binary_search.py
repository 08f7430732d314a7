"""Binary search in sorted arrays, and the runs of equal elements in them."""

from __future__ import annotations

import functools
from typing import Any

from ... import jit
from ...array import ndarray
from ...dtypes import bool_, int64, uint8
from ...lang.markers import kernel_math
from ..library_kernel import library_kernel
from ..workspace import unchecked_empty

# Whether x is before the key, without branches: half of them would be mispredicted. NaN is the largest.
_BEFORE = {
    ("i", "left"): "x < key",
    ("i", "right"): "x <= key",
    ("f", "left"): "(x < key) | ((key != key) & (x == x))",
    ("f", "right"): "(x <= key) | (key != key)",
    # NaNs are at the end, and no key equals them
    ("c", "left"): "(x == x) & ((real(x) < real(key)) | ((real(x) == real(key)) & (imag(x) < imag(key))))",
}


def search(a: ndarray, keys: ndarray, right: bool) -> ndarray:
    """For each key its insertion position in the sorted 1-D array `a`; with `right`, after equal elements.
    NaN is the largest. Both are contiguous, 1-D and of one real dtype."""
    out = unchecked_empty(keys._shape, int64, keys.device)
    if out._size:
        _search_kernel(a._dtype.kind, "right" if right else "left", False)(out, a, keys, False)
    return out


def contains(a: ndarray, keys: ndarray, invert: bool) -> ndarray:
    """Whether each key is in the sorted 1-D array `a`, or with `invert` isn't. Both are contiguous, 1-D and of
    one dtype."""
    out = unchecked_empty(keys._shape, bool_, keys.device)
    if out._size:
        _search_kernel(a._dtype.kind, "left", True)(out, a, keys, invert)
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


# The text depends on the kind (how NaNs compare), side and result; dtypes are in its variants' keys.
@functools.cache
def _search_kernel(kind: str, side: str, found: bool) -> jit.kernel.Kernel:
    before = _BEFORE[kind if kind in "fc" else "i", side]
    result = "(low < a.shape[0] and a[min(low, a.shape[0] - 1)] == key) != invert" if found else "low"
    text = f"""def search(out, a, keys, invert: bool):
    for t in range(out.shape[0]):
        key = keys[t]
        low = int64(0)
        left = int64(a.shape[0])
        while left > 0:
            half = (left + 1) >> 1
            x = a[low + half - 1]
            low += half * int64({before})
            left -= half
        out[t] = {result}
"""
    return jit.kernel.from_text("search", text, {"int64": int64, "real": kernel_math.real, "imag": kernel_math.imag})


def edges(x: ndarray, equal_nan: bool) -> ndarray:
    """Whether each element of the sorted 1-D array `x` differs from the one before; the first one does."""
    out = unchecked_empty(x._shape, bool_, x.device)
    if out._size:
        _edges_kernel(x._dtype.kind)(out, x, equal_nan)
    return out


# How NaNs compare follows from the kind; dtypes are in its variants' keys.
@functools.cache
def _edges_kernel(kind: str) -> jit.kernel.Kernel:
    same = "x[t] == x[t - 1]"
    if kind in "fc":
        same += " or (equal_nan and x[t] != x[t] and x[t - 1] != x[t - 1])"
    text = f"""def edges(out, x, equal_nan: bool):
    for t in range(x.shape[0]):
        out[t] = t == 0 or not ({same})
"""
    return jit.kernel.from_text("edges", text, {})


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
