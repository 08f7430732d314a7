"""All kernels of the process: their counters summed up, and their variants dropped when a setting that changes
compiled code is set."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .. import config
from .._core import clear_plans
from ..weak_set import ThreadSafeWeakSet
from .cache_counters import retired

_kernels = ThreadSafeWeakSet[Any]()  # Kernel, TextKernel


def register(kernel: Any) -> None:
    """A new kernel: called by its constructor."""
    _kernels.add(kernel)


def all_kernels() -> list[Any]:
    """The kernels of this process, the library's own too."""
    return list(_kernels)


def cache_info() -> dict[str, int]:
    """As a kernel's `cache_info()`, summed over the library's own kernels (elementwise functions, reductions,
    products, copies …), collected ones included in all but
    `variants`. Launches by fast paths and replays, which look no variant up, are not in `hits`.

    >>> _ = pa.ones(3) + 1
    >>> pa.cache_info()["variants"] > 0
    True
    """
    kernels = [k for k in all_kernels() if getattr(k, "on_global_change", None) is None]
    total = Counter({"compiles": 0, "disk_hits": 0, "misses": 0, "hits": 0, "variants": 0})
    for counts in (retired(), *(k.cache_info() for k in kernels)):
        total.update(counts)
    return dict(total)


def _forget(setting: str) -> None:
    """Drops all variants that were compiled with the old value of a setting."""
    if config.SETTINGS[setting].code:
        for k in all_kernels():
            k.forget()
        clear_plans()


config.watchers.append(_forget)
