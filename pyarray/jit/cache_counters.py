"""Counters of compiles, hits and misses, and the sums of kernels that were garbage-collected."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from ..locks import new_lock

COUNTED = ("compiles", "disk_hits", "misses")
_retired: Counter[str] = Counter()
_lock = new_lock()


def counts_of(counts: Counter[str], hits: int) -> dict[str, int]:
    """`compiles`, `disk_hits`, `misses`, and `hits`."""
    return {name: counts[name] for name in COUNTED} | {"hits": hits}


def retire_counts(kernel: Any, counts: Counter[str], hits: Callable[[], int]) -> None:
    """When `kernel` is collected, what it counted goes to `retired`, so that sums over kernels don't fall."""
    weakref.finalize(kernel, _retire, counts, hits).atexit = False


def _retire(counts: Counter[str], hits: Callable[[], int]) -> None:
    with _lock:
        _retired.update(counts_of(counts, hits()))


def retired() -> dict[str, int]:
    """Counts of the kernels that were collected."""
    with _lock:
        return dict(_retired)
