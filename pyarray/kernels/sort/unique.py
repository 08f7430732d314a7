"""Unique elements: of a sorted array, by counting and compacting blocks; of a stream of integers, by a hash
table."""

from __future__ import annotations

from typing import Any

from ... import array_host
from ...array import ndarray, unchecked_array
from ...dtypes import int64, uint64
from ...lang.markers import constexpr
from ..library_kernel import library_kernel
from ..reduce.reduce import on_grid
from ..scan import scan_gpu
from ..scan.nonzero import unsigned_view
from ..workspace import unchecked_empty
from .binary_search import differ, lengths

BLOCK = 1 << 10  # elements of a block
BLOCKS = 1 << 12  # at most, before blocks get longer
LATER = 1 << 20  # elements from which on the host doesn't wait for the count before the elements are written


def unique_sorted(x: ndarray, equal_nan: bool, counted: bool) -> tuple[ndarray, ndarray | None]:
    """The unique elements of the sorted 1-D contiguous array `x`, which isn't empty, and with `counted` their
    counts (int64). With `equal_nan` NaNs are equal. Waits for the device."""
    source = x if x._dtype.kind in "fc" else unsigned_view(x)
    if on_grid(x):
        return _by_blocks(x, source, "differ_nan" if equal_nan else "differ", counted)
    block = max(BLOCK, -(-x._size // BLOCKS))
    found = unchecked_empty((-(-x._size // block) + 1,), int64, x.device)
    count_distinct()(found, source, block, equal_nan)
    total = array_host.result_size(found)
    values = unchecked_empty((total,), x._dtype, x.device)
    target = values if source is x else unsigned_view(values)
    if not counted:
        distinct()(target, source, found, block, equal_nan, found, found, False)
        return values, None
    starts, counts = (unchecked_empty((total,), int64, x.device) for _ in range(2))
    distinct()(target, source, found, block, equal_nan, starts, counts, True)
    return values, counts


def hash_table_for(most: int, device: Any) -> ndarray:
    """The hash table of `append_unique` for up to `most` unique numbers."""
    return unchecked_empty((1 << (2 * most).bit_length(),), uint64, device)


def append_unique(out: ndarray, begun: int, x: ndarray, table: ndarray) -> int:
    """Append those elements of `x`, int64 of 0 or more, that are not among the first `begun` of `out`, each
    once and in order, until `out` is full; the number of elements then. `table` is that of earlier calls with
    the same `out`. On the host only."""
    count = unchecked_empty((1,), int64, out.device)
    first_of_each()(out, begun, x, table, count)
    return int(count.item())


@library_kernel
def first_of_each(out: Any, begun: int, x: Any, table: Any, found: Any) -> None:
    # open addressing: an entry is the element + 1, since 0 is a free slot
    for once in range(1):
        mask = uint64(table.shape[0] - 1)
        if begun == 0:
            for t in range(table.shape[0]):
                table[t] = uint64(0)
        n = int64(begun)
        for i in range(x.shape[0]):
            if n == out.shape[0]:
                break
            v = uint64(x[i]) + uint64(1)
            at = ((v * uint64(0x9E3779B97F4A7C15)) >> uint64(32)) & mask
            while table[int64(at)] != uint64(0) and table[int64(at)] != v:
                at = (at + uint64(1)) & mask
            if table[int64(at)] == uint64(0):
                table[int64(at)] = v
                out[n] = x[i]
                n += 1
        found[once] = n


def _by_blocks(x: ndarray, source: ndarray, test: str, counted: bool) -> tuple[ndarray, ndarray | None]:
    """`unique_sorted` on a grid; `source` is `x` or its bits."""
    counts = scan_gpu.count(source, test)
    if x._size < LATER:
        total = array_host.result_size(counts)
        values = unchecked_empty((total,), x._dtype, x.device)
        scan_gpu.compact_into(values if source is x else unsigned_view(values), source, source, counts, test)
    else:  # they are written while their number is copied to the host, into room for all
        buffer = unchecked_empty((x._size,), x._dtype, x.device)
        size = array_host.result_size_later(counts)
        scan_gpu.compact_into(buffer if source is x else unsigned_view(buffer), source, source, counts, test)
        total = size()
        values = unchecked_array(buffer._buffer, (total,), x._strides, total, x._dtype, buffer._key)
        if 2 * total < x._size:
            values = values.copy()
    if not counted:
        return values, None
    starts = unchecked_empty((1, total), int64, x.device)
    scan_gpu.positions_into(starts, source, counts, x._shape, test)
    return values, lengths(starts.reshape(total), x._size)


@library_kernel
def count_distinct(found: ndarray, x: ndarray, block: int, equal_nan: bool) -> None:
    for b in range(found.shape[0] - 1):
        first = b * block
        n = int64(first == 0)
        for t in range(max(first, 1), min(first + block, x.shape[0])):
            n += int64(differ(x[t], x[t - 1], equal_nan))
        found[b + 1] = n
    for zero in range(1):
        found[zero] = 0
        for b in range(2, found.shape[0]):
            found[b] += found[b - 1]


@library_kernel
def distinct(
    values: ndarray, x: ndarray, found: ndarray, block: int, equal_nan: bool,
    starts: ndarray, counts: ndarray, counted: constexpr,
) -> None:  # fmt: skip
    # each element is stored unconditionally and kept by advancing: a branch would often be mispredicted
    for b in range(found.shape[0] - 1):
        t = b * block
        at = found[b]
        n = min(block, x.shape[0] - t)
        if found[b + 1] - at == n:
            for k in range(n):
                values[at + k] = x[t + k]
                if counted:
                    starts[at + k] = t + k
        else:
            while at < found[b + 1]:
                values[at] = x[t]
                if counted:
                    starts[at] = t
                at += int64(t == 0 or differ(x[t], x[t - 1], equal_nan))
                t += 1
    if counted:
        for k in range(counts.shape[0]):
            counts[k] = (starts[k + 1] if k + 1 < counts.shape[0] else x.shape[0]) - starts[k]
