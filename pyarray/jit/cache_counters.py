"""Counters of compiles, hits and misses, and the sums of kernels that were garbage-collected."""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from typing import Any

from ..locks import new_lock

COUNTED = ("compiles", "disk_hits", "misses")
_READS = "reads"  # of the ticks, each of which takes one
_retired: Counter[str] = Counter()
_lock = new_lock()


def counts_of(counts: Counter[str], ticks: itertools.count[int]) -> dict[str, int]:
    """`compiles`, `disk_hits`, `misses`, and `hits`: how often `ticks` was taken. The caller holds a lock."""
    hits = next(ticks) - counts[_READS]
    counts[_READS] += 1
    return {name: counts[name] for name in COUNTED} | {"hits": hits}


def retire_counts(kernel: Any, counts: Counter[str], ticks: itertools.count[int]) -> None:
    """When `kernel` is collected, what it counted goes to `retired`, so that sums over kernels don't fall."""
    weakref.finalize(kernel, _retire, counts, ticks).atexit = False


def _retire(counts: Counter[str], ticks: itertools.count[int]) -> None:
    with _lock:
        _retired.update(counts_of(counts, ticks))


def retired() -> dict[str, int]:
    """Counts of the kernels that were collected."""
    with _lock:
        return dict(_retired)
