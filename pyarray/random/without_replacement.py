"""Draws without replacement of few among many: drawn with replacement, of which first appearances count."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import empty
from ..array_convert import asnumpy
from ..dtypes import int64
from ..kernels.variates import fill_words

Host = np.ndarray[Any, Any]
FEW = 8  # elements for each one that is drawn, from which on this is faster than an order of all of them
_ROUNDS = 4  # a distribution that a few elements dominate gives the same ones again and again


def first_few(generator: Any, count: int, wanted: int, odds: Host | None) -> Host:
    """`wanted` different numbers below `count` in random order, equally likely or with the probabilities
    `odds`; with these perhaps fewer. What is drawn next has the odds that are left, so that this is the
    distribution of draws one by one. Drawn on the host: it is the same for every device."""
    found = np.empty(0, np.int64)
    for _ in range(_ROUNDS if odds is not None else wanted):
        missing = wanted - found.size
        if not missing:
            break
        if odds is None:
            spare = 2 * missing * wanted // count + 4  # twice as many as are expected to come again
            more = _below(generator, count, missing + spare)
        else:
            left = odds.copy() if found.size else odds
            left[found] = 0.0
            steps = np.cumsum(left)
            drawn = asnumpy(generator.random(missing, device="cpu"))
            more = np.searchsorted(steps / steps[-1], drawn, side="right")
        found = _first_appearances(np.concatenate([found, more]) if found.size else more)[:wanted]
    return found


def _below(generator: Any, count: int, size: int) -> Host:
    """`generator.integers(count, size=size)` on the host, without its checks."""
    if count > 1 << 32:
        return asnumpy(generator.integers(count, size=size, device="cpu"))
    words = empty(-(-size // 4) * 4, int64, "cpu")
    fill_words(words, generator.bit_generator.reserve(words.size // 4), 0, count)
    return asnumpy(words)[:size]


def _first_appearances(x: Host) -> Host:
    """`x`, integers of 0 or more, without what came before."""
    ordered = np.sort(x)
    again = ordered[1:] == ordered[:-1]
    values = ordered[1:][again]
    if not values.size:
        return x
    kept = np.ones(x.size, bool)
    if values.size <= 8:
        for value in values.tolist():
            kept[np.flatnonzero(x == value)[1:]] = False
    elif int(ordered[-1]) < 1 << 63 - (bits := x.size.bit_length()):
        ordered = np.sort(x << bits | np.arange(x.size))  # equal ones as they came
        kept[(ordered[1:] & ((1 << bits) - 1))[again]] = False
    else:
        kept[np.argsort(x, kind="stable")[1:][again]] = False
    found: Host = x[kept]
    return found
