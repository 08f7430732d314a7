"""Draws few of many without replacement: draws with replacement, and drops what was drawn before."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import ndarray
from ..array_convert import asarray, asnumpy
from ..driver.base import get_device
from ..dtypes import int64
from ..kernels.random.variates import fill_words
from ..kernels.sort.unique import append_unique, hash_table_for
from ..kernels.workspace import unchecked_empty

Host = np.ndarray[Any, Any]
MIN_RATIO = 8  # elements per drawn one, from which on this is faster than a permutation of all
_ROUNDS = 4  # a distribution that a few elements dominate gives the same ones again and again


def first_few(generator: Any, count: int, wanted: int, odds: Host | None) -> ndarray:
    """`wanted` different numbers below `count` in random order, equally likely or with the probabilities
    `odds`; with these perhaps fewer. What is drawn next has the odds that are left, so that this is the
    distribution of draws one by one. Drawn on the host: it is the same for every device."""
    host = get_device("cpu")
    chosen, size, table = unchecked_empty((wanted,), int64, host), 0, hash_table_for(wanted, host)
    for _ in range(_ROUNDS if odds is not None else wanted):
        missing = wanted - size
        if not missing:
            break
        if odds is None:
            spare = 2 * missing * wanted // count + 4  # twice as many as are expected to come again
            more = _below(generator, count, missing + spare, host)
        else:
            remaining = odds.copy() if size else odds
            remaining[asnumpy(chosen)[:size]] = 0.0
            steps = np.cumsum(remaining)
            drawn = asnumpy(generator.random(missing, device=host))
            more = asarray(np.searchsorted(steps / steps[-1], drawn, side="right"), device=host)
        size = append_unique(chosen, size, more, table)
    return chosen if size == wanted else chosen[:size]


def _below(generator: Any, count: int, size: int, device: Any) -> ndarray:
    """`generator.integers(count, size=size)` on the host, without its checks; a few more than these."""
    if count > 1 << 32:
        return generator.integers(count, size=size, device=device)
    words = unchecked_empty((-(-size // 4) * 4,), int64, device)
    fill_words(words, generator.bit_generator.reserve(words._size // 4), 0, count)
    return words
