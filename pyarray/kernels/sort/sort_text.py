"""Kernel text of the radix and insertion sorts of `sort.py`, per type of keys."""

from __future__ import annotations

import functools
from typing import Any

from ... import jit
from ...dtypes import DType, int64
from ...lang.markers import ndrange
from ..library_kernel import library_kernel

MAX_INSERTION = 32  # elements of a row up to which insertion sort is faster than radix sort
MAX_TIED = 64  # elements of a run of equal digits up to which insertion sort sorts it


def _scope(word: DType) -> dict[str, Any]:
    return {"word": word, "ndrange": ndrange, "int64": int64}


# Loops over a block are nested: the cost model takes a launch with an inner loop for one worth several threads.
_CHUNK = 2048
_KEY = "v ^ (((word(0) - (v >> {top})) & sign_flip) ^ flip)"
_VALUE = "v ^ (((word(0) - ((v ^ flip) >> {top})) & sign_flip) ^ flip)"  # of the key v
_ORDER = "sign_flip: word, flip: word, limit: word, nan: word, zero: word"


def _compare_key(key: str, positions: bool) -> str:
    """The key to compare: that of 0.0 for -0.0. An argsort has replaced -0.0 before."""
    return key if positions else f"(zero_key if {key} == neg_zero_key else {key})"


# The text depends on these arguments alone; sizes and limits are arguments of the kernel.
@functools.cache
def keys_kernel(word: DType) -> jit.kernel.Kernel:
    """Computes keys, and `found[:, 0]`: the smallest key, the largest one, and whether there is a -0.0."""
    top = 8 * word.itemsize - 1
    text = f"""def sort_keys(keys, x, found, block: int, {_ORDER}, blank: word):
    for b in range(found.shape[1]):
        stop = min(b * block + block, x.shape[0])
        low = flip ^ flip
        low = ~low
        high = word(0)
        neg_zero = word(0)
        for chunk in range(b * block, stop, {_CHUNK}):
            for t in range(chunk, min(chunk + {_CHUNK}, stop)):
                v = x[t]
                neg_zero = neg_zero | word(v == zero)
                v = blank if v == zero else v
                v = nan if (v & sign_flip) > limit else v
                key = {_KEY.format(top=top)}
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
"""
    return jit.kernel.from_text("sort_keys", text, _scope(word))


# The text depends on these arguments alone; sizes and limits are arguments of the kernel.
@functools.cache
def pass_kernel(word: DType, positions: bool, last: bool) -> jit.kernel.Kernel:
    """A pass of the radix sort: scatters keys (and their positions) by a digit. The last pass writes only the
    result; in the first one, positions are indices."""
    top = 8 * word.itemsize - 1
    parameters, stores = "", ["out[r, at] = v"]
    if positions:
        parameters = ", positions, has_positions: bool" + ("" if last else ", to")
        position = "positions[r, t] if has_positions else positions.dtype(t)"
        stores = [f"out[r, at] = {position}"] if last else ["out[r, at] = v", f"to[r, at] = {position}"]
    else:
        parameters = ", neg_zero_key: word, zero_key: word"
        if last:
            parameters += ", sign_flip: word, flip: word"
            stores = [f"out[r, at] = {_VALUE.format(top=top)}"]
    digit = f"int64(({_compare_key('v', positions)} - low) >> shift) & mask"
    loops = f"""for chunk in range(b * block, stop, {_CHUNK}):
            for t in range(chunk, min(chunk + {_CHUNK}, stop)):"""
    text = f"""def sort_pass(out, keys, counts, totals, low: word, shift: word, mask: int, block: int{parameters}):
    for r, b in ndrange(counts.shape[0], counts.shape[1]):
        stop = min(b * block + block, keys.shape[1])
        for d in range(counts.shape[2]):
            counts[r, b, d] = 0
        {loops}
                v = keys[r, t]
                counts[r, b, {digit}] += 1
    for r, d in ndrange(counts.shape[0], counts.shape[2]):
        before = counts.dtype(0)
        for b in range(counts.shape[1]):
            count = counts[r, b, d]
            counts[r, b, d] = before
            before += count
        totals[r, d] = before
    for r in range(counts.shape[0]):
        before = counts.dtype(0)
        for d in range(counts.shape[2]):
            count = totals[r, d]
            totals[r, d] = before
            before += count
    for r, b in ndrange(counts.shape[0], counts.shape[1]):
        stop = min(b * block + block, keys.shape[1])
        for d in range(counts.shape[2]):
            counts[r, b, d] += totals[r, d]
        {loops}
                v = keys[r, t]
                d = {digit}
                at = counts[r, b, d]
                counts[r, b, d] = at + 1
"""
    text += "".join(f"                {line}\n" for line in stores)
    return jit.kernel.from_text("sort_pass", text, _scope(word))


# The text depends on these arguments alone; sizes and limits are arguments of the kernel.
@functools.cache
def neighbours_kernel(word: DType) -> jit.kernel.Kernel:
    """Sorts runs of keys that are equal from bit `shift` on by insertion, each by the block in which it begins,
    and writes their positions; sets `wrong` where runs are too long for that."""

    def tied(one: str, other: str) -> str:
        return f"(keys[r, {one}] - low) >> shift == (keys[r, {other}] - low) >> shift"

    text = f"""def sort_neighbours(out, keys, wrong, low: word, shift: word, block: int, positions):
    for r, b in ndrange(wrong.shape[0], wrong.shape[1]):
        n = keys.shape[1]
        bad = False
        s = b * block
        stop = min(s + block, n)
        while s < n and s > 0 and {tied("s", "s - 1")}:
            s += 1
        for chunk in range(0, stop - s, {_CHUNK}):
            for each in range(min({_CHUNK}, stop - s)):
                if s >= stop:
                    break
                first = s
                e = s + 1
                rising = True
                while e < n and {tied("e", "first")}:
                    rising = rising and keys[r, e - 1] <= keys[r, e]
                    e += 1
                after = e
                bad = bad or (not rising and after - first > {MAX_TIED})
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
"""
    return jit.kernel.from_text("sort_neighbours", text, _scope(word))


def _digits_text(word: DType, positions: bool) -> str:
    """A radix sort of a row, which skips digits that all its keys have in common."""
    move = "positions[w, 1 - side, at] = positions[w, side, t]" if positions else ""
    return f"""                for p in range({word.itemsize}):
                    shift = word(8 * p)
                    for d in range(256):
                        counts[w, d] = 0
                    for t in range(n):
                        counts[w, int64((keys[w, side, t] >> shift) & word(255))] += 1
                    if counts[w, int64((keys[w, side, 0] >> shift) & word(255))] < n:
                        before = counts.dtype(0)
                        for d in range(256):
                            count = counts[w, d]
                            counts[w, d] = before
                            before += count
                        for t in range(n):
                            key = keys[w, side, t]
                            d = int64((key >> shift) & word(255))
                            at = counts[w, d]
                            counts[w, d] = at + 1
                            keys[w, 1 - side, at] = key
                            {move}
                        side = 1 - side
"""


def _rows_text(word: DType, positions: bool) -> str:
    """A row at a time by each worker: `keys[w, side]` are the keys, `positions[w, side]` their positions."""
    top = 8 * word.itemsize - 1

    def pairs(text: str) -> str:  # and the same for positions
        return f"{text}; {text.replace('keys', 'positions').replace('key', 'position')}" if positions else text

    lines = f"""def sort_rows(out, x, keys, counts, per: int, {_ORDER}{", positions" if positions else ""}):
    for w in range(keys.shape[0]):
        n = x.shape[1]
        for turn in range(per):
            r = w * per + turn
            if r >= x.shape[0]:
                break
            neg_zero = False
            for t in range(n):
                v = x[r, t]
                neg_zero = neg_zero or v == zero
                v = word(0) if v == zero else v
                v = nan if (v & sign_flip) > limit else v
                keys[w, 0, t] = {_KEY.format(top=top)}
                {"positions[w, 0, t] = t" if positions else ""}
            side = 0
            if n <= {MAX_INSERTION}:
                for t in range(1, n):
                    {pairs("key = keys[w, 0, t]")}
                    s = t
                    while s > 0 and keys[w, 0, s - 1] > key:
                        {pairs("keys[w, 0, s] = keys[w, 0, s - 1]")}
                        s -= 1
                    {pairs("keys[w, 0, s] = key")}
            else:
{_digits_text(word, positions)}"""
    if positions:
        return (
            lines
            + """            for t in range(n):
                out[r, t] = positions[w, side, t]
"""
        )
    # If there is a -0.0, the zeros are written again with their signs, in the order of the input.
    return (
        lines
        + f"""            for t in range(n):
                v = keys[w, side, t]
                out[r, t] = {_VALUE.format(top=top)}
            if neg_zero and zero != word(0):
                s = 0
                while out[r, s] != word(0):
                    s += 1
                for t in range(n):
                    if (x[r, t] & sign_flip) == word(0):
                        out[r, s] = x[r, t]
                        s += 1
"""
    )


# The text depends on these arguments alone; sizes and limits are arguments of the kernel.
@functools.cache
def rows_kernel(word: DType, positions: bool) -> jit.kernel.Kernel:
    return jit.kernel.from_text("sort_rows", _rows_text(word, positions), _scope(word))


# The text depends on these arguments alone; sizes and limits are arguments of the kernel.
@functools.cache
def pack_kernel(word: DType, wide: DType) -> jit.kernel.Kernel:
    """Words of type `wide` with the elements' keys in the upper half and their positions in the lower."""
    key = _KEY.format(top=8 * word.itemsize - 1)
    text = f"""def sort_pack(keys, x, {_ORDER}):
    for r, t in ndrange(x.shape[0], x.shape[1]):
        v = x[r, t]
        v = word(0) if v == zero else v
        v = nan if (v & sign_flip) > limit else v
        keys[r, t] = (wide({key}) << wide({4 * wide.itemsize})) | wide(t)
"""
    return jit.kernel.from_text("sort_pack", text, _scope(word) | {"wide": wide})


# The text depends on these arguments alone; sizes and limits are arguments of the kernel.
@functools.cache
def unpack_kernel(wide: DType, positions: bool) -> jit.kernel.Kernel:
    """The positions in such words, or the elements at them."""
    position = f"int64(keys[r, t] & wide({(1 << 4 * wide.itemsize) - 1}))"
    text = f"""def sort_unpack(out, keys{"" if positions else ", x"}):
    for r, t in ndrange(keys.shape[0], keys.shape[1]):
        out[r, t] = {position if positions else f"x[r, {position}]"}
"""
    return jit.kernel.from_text("sort_unpack", text, {"ndrange": ndrange, "int64": int64, "wide": wide})


# The text depends on the type of the keys alone.
@functools.cache
def pack_rows_kernel(word: DType) -> jit.kernel.Kernel:
    """As `pack_kernel` for elements as wide as a word: the lowest `below` bits are the position; above are the
    bits of the key's distance from the row's minimum, without the last `lost[r]` bits, which don't fit. The
    extremes of integers may be outliers (sentinels of missing values): they are clamped to their neighbours."""
    bits = 8 * word.itemsize
    text = f"""def sort_pack_rows(keys, lost, x, below: word, {_ORDER}):
    for r in range(x.shape[0]):
        ones = ~(flip ^ flip)
        low = ones
        high = word(0)
        for t in range(x.shape[1]):
            v = x[r, t]
            v = word(0) if v == zero else v
            v = nan if (v & sign_flip) > limit else v
            key = {_KEY.format(top=bits - 1)}
            keys[r, t] = key
            low = min(low, key)
            high = max(high, key)
        top = word({bits - 1}) - below
        if sign_flip == word(0) and (high - low) >> top > word(1):
            second = ones
            last = word(0)
            for t in range(x.shape[1]):
                key = keys[r, t]
                second = min(second, ones if key == low else key)
                last = max(last, word(0) if key == high else key)
            high = last + word(1) if second <= last else low + word(1)
            low = second - word(1) if second <= last else low
        left_out = word(0)
        while (high - low) >> left_out >> top > word(1):
            left_out += word(1)
        lost[r] = left_out
        for t in range(x.shape[1]):
            key = min(max(keys[r, t], low), high) - low
            keys[r, t] = ((key >> left_out) << below) | word(t)
"""
    return jit.kernel.from_text("sort_pack_rows", text, _scope(word))


# The text depends on these arguments alone; sizes and limits are arguments of the kernel.
@functools.cache
def unpack_rows_kernel(word: DType) -> jit.kernel.Kernel:
    """The positions in such words. Where bits were lost, ties are sorted by whole keys."""
    key = _KEY.format(top=8 * word.itemsize - 1)

    def key_at(name: str, index: str) -> str:
        lines = [f"v = x[r, {index}]", "v = word(0) if v == zero else v"]
        return "; ".join([*lines, "v = nan if (v & sign_flip) > limit else v", f"{name} = {key}"])

    text = f"""def sort_unpack_rows(out, keys, lost, x, below: word, {_ORDER}):
    for r in range(keys.shape[0]):
        mask = (word(1) << below) - word(1)
        for t in range(keys.shape[1]):
            out[r, t] = int64(keys[r, t] & mask)
        for t in range(1, keys.shape[1] if lost[r] != word(0) else 1):
            if keys[r, t] >> below == keys[r, t - 1] >> below:
                position = out[r, t]
                {key_at("mine", "position")}
                s = t
                while s > 0 and keys[r, s - 1] >> below == keys[r, t] >> below:
                    {key_at("other", "out[r, s - 1]")}
                    if other <= mine:
                        break
                    out[r, s] = out[r, s - 1]
                    s -= 1
                out[r, s] = position
"""
    return jit.kernel.from_text("sort_unpack_rows", text, _scope(word))


@library_kernel
def sort_gather(out: Any, x: Any, positions: Any) -> None:
    for r, t in ndrange(x.shape[0], x.shape[1]):
        out[r, t] = x[r, positions[r, t]]
