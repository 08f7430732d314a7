"""Kernels of the radix and insertion sorts of `sort.py`. Elements are unsigned bits, whose type is that of the keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...array import ndarray
from ...dtypes import int64, uint64
from ...jit.functions import func
from ...lang.markers import constexpr, ndrange
from ..library_kernel import library_kernel
from .sort_keys import KeyTransform

MAX_INSERTION = 32  # elements of a row up to which insertion sort is faster than radix sort
MAX_TIED = 64  # elements of a run of equal digits up to which insertion sort sorts it
# Loops over a block are nested: the cost model takes a launch with an inner loop for one worth several threads.
_CHUNK = 2048


@func
def key_of(v: Any, order: Any, zero: Any) -> Any:
    """The key of an element; `zero` are the bits that stand for those of -0.0."""
    word = v.dtype(zero) if v == v.dtype(order.zero) else v
    word = v.dtype(order.nan) if (word & v.dtype(order.sign_flip)) > v.dtype(order.limit) else word
    turned = (v.dtype(0) - (word >> (8 * v.dtype.itemsize - 1))) & v.dtype(order.sign_flip)
    return word ^ (turned ^ v.dtype(order.flip))


@func
def value_of(key: Any, order: Any) -> Any:
    """The bits of an element, of its key."""
    flip = key.dtype(order.flip)
    turned = (key.dtype(0) - ((key ^ flip) >> (8 * key.dtype.itemsize - 1))) & key.dtype(order.sign_flip)
    return key ^ (turned ^ flip)


@library_kernel
def make_keys(keys: ndarray, x: ndarray, found: ndarray, block: int, order: KeyTransform, zero: np.uint64) -> None:
    """Computes keys, and `found[:, 0]`: the smallest key, the largest one, and whether there is a -0.0."""
    for b in range(found.shape[1]):
        stop = min(b * block + block, x.shape[0])
        low = ~found.dtype.type(0)
        high = found.dtype.type(0)
        neg_zero = found.dtype.type(0)
        for chunk in range(b * block, stop, _CHUNK):
            for t in range(chunk, min(chunk + _CHUNK, stop)):
                v = x[t]
                neg_zero = neg_zero | x.dtype.type(v == x.dtype.type(order.zero))
                key = key_of(v, order, zero)
                keys[t] = key
                low = min(low, key)
                high = max(high, key)
        found[0, b] = low
        found[1, b] = high
        found[2, b] = neg_zero
    for once in range(1):
        for b in range(1, found.shape[1]):
            found[0, once] = min(found[0, once], found[0, b])
            found[1, once] = max(found[1, once], found[1, b])
            found[2, once] = found[2, once] | found[2, b]


@func
def digit_of(key: Any, order: Any, low: Any, shift: Any, mask: Any, kind: Any) -> Any:
    """A digit of a key, that of 0.0 for -0.0; an argsort has replaced -0.0 before."""
    if kind == "values":
        compared = key.dtype(order.flip) if key == key.dtype(order.zero ^ order.sign_flip ^ order.flip) else key
        return int64((compared - key.dtype(low)) >> key.dtype(shift)) & mask
    else:
        return int64((key - key.dtype(low)) >> key.dtype(shift)) & mask


@library_kernel
def radix_pass(
    out: ndarray, keys: ndarray, counts: ndarray, totals: ndarray,
    low: np.uint64, shift: np.uint64, mask: int, block: int, order: KeyTransform,
    indices: ndarray, has_indices: bool, to: ndarray, kind: constexpr, last: constexpr,
) -> None:  # fmt: skip
    """Scatters keys (and their positions) by a digit. The last pass writes only the result; in the first one,
    positions are indices."""
    for r, b in ndrange(counts.shape[0], counts.shape[1]):
        stop = min(b * block + block, keys.shape[1])
        for d in range(counts.shape[2]):
            counts[r, b, d] = 0
        for chunk in range(b * block, stop, _CHUNK):
            for t in range(chunk, min(chunk + _CHUNK, stop)):
                counts[r, b, digit_of(keys[r, t], order, low, shift, mask, kind)] += 1
    for r, d in ndrange(counts.shape[0], counts.shape[2]):
        before = counts.dtype.type(0)
        for b in range(counts.shape[1]):
            count = counts[r, b, d]
            counts[r, b, d] = before
            before += count
        totals[r, d] = before
    for r in range(counts.shape[0]):
        before = counts.dtype.type(0)
        for d in range(counts.shape[2]):
            count = totals[r, d]
            totals[r, d] = before
            before += count
    for r, b in ndrange(counts.shape[0], counts.shape[1]):
        stop = min(b * block + block, keys.shape[1])
        for d in range(counts.shape[2]):
            counts[r, b, d] += totals[r, d]
        for chunk in range(b * block, stop, _CHUNK):
            for t in range(chunk, min(chunk + _CHUNK, stop)):
                v = keys[r, t]
                d = digit_of(v, order, low, shift, mask, kind)
                at = counts[r, b, d]
                counts[r, b, d] = at + 1
                if kind == "values":
                    out[r, at] = value_of(v, order) if last else v
                elif last:
                    out[r, at] = indices[r, t] if has_indices else indices.dtype.type(t)
                else:
                    out[r, at] = v
                    to[r, at] = indices[r, t] if has_indices else indices.dtype.type(t)


@func
def tied(a: Any, b: Any, low: Any, shift: Any) -> Any:
    return (a - a.dtype(low)) >> a.dtype(shift) == (b - b.dtype(low)) >> b.dtype(shift)


@library_kernel
def sort_ties(
    out: ndarray, keys: Any, wrong: ndarray, low: np.uint64, shift: np.uint64, block: int, positions: ndarray
) -> None:
    """Sorts runs of keys that are equal from bit `shift` on by insertion, each by the block in which it begins,
    and writes their positions; sets `wrong` where runs are too long for that."""
    for r, b in ndrange(wrong.shape[0], wrong.shape[1]):
        n = keys.shape[1]
        bad = False
        s = b * block
        stop = min(s + block, n)
        while s < n and s > 0 and tied(keys[r, s], keys[r, s - 1], low, shift):
            s += 1
        for _chunk in range(0, stop - s, _CHUNK):
            for _each in range(min(_CHUNK, stop - s)):
                if s >= stop:
                    break
                first = s
                e = s + 1
                rising = True
                while e < n and tied(keys[r, e], keys[r, first], low, shift):
                    rising = rising and keys[r, e - 1] <= keys[r, e]
                    e += 1
                after = e
                bad = bad or (not rising and after - first > MAX_TIED)
                for e in range(first + 1, first if rising or bad else after):
                    key = keys[r, e]
                    position = positions[r, e]
                    s = e
                    while s > first and keys[r, s - 1] > key:
                        keys[r, s] = keys[r, s - 1]
                        positions[r, s] = positions[r, s - 1]
                        s -= 1
                    keys[r, s] = key
                    positions[r, s] = position
                for e in range(first, after):
                    out[r, e] = positions[r, e]
                s = after
        wrong[r, b] = bad


@func
def sort_digits(keys: Any, positions: Any, counts: Any) -> Any:
    """A radix sort of the row `keys[0]`, which skips digits that all keys have in common; gives the index of the
    sorted row. Positions, if there are any, go with the keys."""
    n = keys.shape[1]
    side = 0
    for p in range(keys.itemsize):
        shift = keys.dtype.type(8 * p)
        for d in range(256):
            counts[d] = 0
        for t in range(n):
            counts[int64((keys[side, t] >> shift) & keys.dtype.type(255))] += 1
        if counts[int64((keys[side, 0] >> shift) & keys.dtype.type(255))] < n:
            before = counts.dtype.type(0)
            for d in range(256):
                count = counts[d]
                counts[d] = before
                before += count
            for t in range(n):
                key = keys[side, t]
                d = int64((key >> shift) & keys.dtype.type(255))
                at = counts[d]
                counts[d] = at + 1
                keys[1 - side, at] = key
                if positions is not None:
                    positions[1 - side, at] = positions[side, t]
            side = 1 - side
    return side


@func
def insert_each(keys: Any, positions: Any) -> None:
    """An insertion sort of the row `keys`; positions, if there are any, go with the keys."""
    for t in range(1, keys.shape[0]):
        key = keys[t]
        position = 0 if positions is None else positions[t]
        s = t
        while s > 0 and keys[s - 1] > key:
            keys[s] = keys[s - 1]
            if positions is not None:
                positions[s] = positions[s - 1]
            s -= 1
        keys[s] = key
        if positions is not None:
            positions[s] = position


@library_kernel
def sort_each_row(
    out: ndarray, x: ndarray, keys: ndarray, counts: ndarray, per: int, order: KeyTransform, positions: ndarray,
    kind: constexpr,
) -> None:  # fmt: skip
    """A row at a time by each worker: `keys[w, side]` are the keys, `positions[w, side]` their positions."""
    for w in range(keys.shape[0]):
        n = x.shape[1]
        for turn in range(per):
            r = w * per + turn
            if r >= x.shape[0]:
                break
            neg_zero = False
            for t in range(n):
                neg_zero = neg_zero or x[r, t] == x.dtype.type(order.zero)
                keys[w, 0, t] = key_of(x[r, t], order, 0)
                if kind == "positions":
                    positions[w, 0, t] = t
            side = 0
            if n <= MAX_INSERTION:
                insert_each(keys[w, 0], positions[w, 0] if kind == "positions" else None)
            else:
                side = sort_digits(keys[w], positions[w] if kind == "positions" else None, counts[w])
            for t in range(n):
                out[r, t] = positions[w, side, t] if kind == "positions" else value_of(keys[w, side, t], order)
            # if there is a -0.0, the zeros are written again with their signs, in the order of the input
            if kind == "values" and neg_zero and order.zero != 0:
                s = 0
                while out[r, s] != out.dtype.type(0):
                    s += 1
                for t in range(n):
                    if (x[r, t] & x.dtype.type(order.sign_flip)) == x.dtype.type(0):
                        out[r, s] = x[r, t]
                        s += 1


@library_kernel
def pack_words(words: ndarray, x: ndarray, order: KeyTransform) -> None:
    """Words with the elements' keys in the upper half and their positions in the lower."""
    for r, t in ndrange(x.shape[0], x.shape[1]):
        key = words.dtype.type(key_of(x[r, t], order, 0))
        words[r, t] = (key << words.dtype.type(4 * words.itemsize)) | words.dtype.type(t)


@library_kernel
def unpack_words(out: ndarray, words: ndarray, x: ndarray, kind: constexpr) -> None:
    """The positions in such words, or the elements at them."""
    for r, t in ndrange(words.shape[0], words.shape[1]):
        position = int64(words[r, t] & words.dtype.type((1 << 4 * words.itemsize) - 1))
        out[r, t] = position if kind == "positions" else x[r, position]


@library_kernel
def pack_rows(words: ndarray, lost: ndarray, x: ndarray, below: np.uint64, order: KeyTransform) -> None:
    """As `pack_words` for elements of 8 bytes: the lowest `below` bits are the position; above are the
    bits of the key's distance from the row's minimum, without the last `lost[r]` bits, which don't fit. The
    extremes of integers may be outliers (sentinels of missing values): they are clamped to their neighbours."""
    for r in range(x.shape[0]):
        ones = ~uint64(0)
        low = ones
        high = uint64(0)
        for t in range(x.shape[1]):
            key = key_of(x[r, t], order, 0)
            words[r, t] = key
            low = min(low, key)
            high = max(high, key)
        top = uint64(63) - below
        if order.sign_flip == 0 and (high - low) >> top > uint64(1):
            second = ones
            last = uint64(0)
            for t in range(x.shape[1]):
                key = words[r, t]
                second = min(second, ones if key == low else key)
                last = max(last, uint64(0) if key == high else key)
            high = last + uint64(1) if second <= last else low + uint64(1)
            low = second - uint64(1) if second <= last else low
        left_out = uint64(0)
        while (high - low) >> left_out >> top > uint64(1):
            left_out += uint64(1)
        lost[r] = left_out
        for t in range(x.shape[1]):
            key = min(max(words[r, t], low), high) - low
            words[r, t] = ((key >> left_out) << below) | uint64(t)


@library_kernel
def unpack_rows(out: ndarray, words: ndarray, lost: ndarray, x: ndarray, below: np.uint64, order: KeyTransform) -> None:
    """The positions in such words. Where bits were lost, ties are sorted by whole keys."""
    for r in range(words.shape[0]):
        mask = (uint64(1) << below) - uint64(1)
        for t in range(words.shape[1]):
            out[r, t] = int64(words[r, t] & mask)
        for t in range(1, words.shape[1] if lost[r] != uint64(0) else 1):
            if words[r, t] >> below == words[r, t - 1] >> below:
                position = out[r, t]
                mine = key_of(x[r, position], order, 0)
                s = t
                while s > 0 and words[r, s - 1] >> below == words[r, t] >> below:
                    if key_of(x[r, out[r, s - 1]], order, 0) <= mine:
                        break
                    out[r, s] = out[r, s - 1]
                    s -= 1
                out[r, s] = position


@library_kernel
def sort_gather(out: Any, x: Any, positions: Any) -> None:
    for r, t in ndrange(x.shape[0], x.shape[1]):
        out[r, t] = x[r, positions[r, t]]
