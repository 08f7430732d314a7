"""What bounds checks cost: the same kernel with and without them, in one process, taking turns.

The ratio is debug's throughput over release's. `proven`: the loop's text says that every index is inside.
`tested once`: a block of iterations is tested before it runs. `each`: nothing can be said before, since the
index depends on memory; every access is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pyarray as pa

from .timing import Figure, Row, race, table

ABOUT = """Kernels with bounds checks next to the same kernels without: what debug mode costs."""
SIZES = (10**5, 10**7)


@pa.kernel
def in_place(a, b, c, f: pa.float32, k, index):
    for i in range(c.size):
        c[i] = f * c[i] + c[i] * c[i]


@pa.kernel
def by_size(a, b, c, f: pa.float32, k, index):
    for i in range(c.size):
        c[i] = f * a[i] + b[i]


@pa.kernel
def by_number(a, b, c, f: pa.float32, k, index):
    for i in range(k[0], index.size):
        c[i] = f * a[i] + b[i]


@pa.kernel
def shifted(a, b, c, f: pa.float32, k, index):
    for i in range(c.size):
        j = i + k[0]
        c[j] = f * a[j] + b[j]


@pa.kernel
def gathered(a, b, c, f: pa.float32, k, index):
    for i in range(c.size):
        j = index[i]
        c[i] = f * a[j] + b[j]


@pa.kernel
def guarded(a, b, c, f: pa.float32, k, index):
    for i in range(c.size):
        j = index[i]
        if 0 <= j < a.size and j < b.size:
            c[i] = f * a[j] + b[j]


@pa.kernel
def stencil(a, b, c, f: pa.float32, k, index):
    for i in range(1, c.size - 1):
        c[i] = f * (a[i - 1] + a[i + 1]) + b[i]


CASES: dict[str, tuple[Any, float]] = {  # kernel, and the ratio to reach
    "proven: c[i] = f * c[i] + c[i]**2": (in_place, 0.97),
    "tested once: i < c.size": (by_size, 0.97),
    "tested once: i < a number": (by_number, 0.97),
    "tested once: i - 1 and i + 1": (stencil, 0.97),
    "tested once: guarded gather": (guarded, 0.6),
    "each: i + k[0]": (shifted, 0.6),
    "each: gather": (gathered, 0.6),
}


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes."""
    for size in SIZES:
        made = [_row(name, kernel, target, size, quick) for name, (kernel, target) in CASES.items()]
        print(f"n = {size}: minimum (median)\n{table(made)}\n", flush=True)
        yield from made


def _row(name: str, kernel: Any, target: float, size: int, quick: bool) -> Row:
    a, b, c = (pa.asarray(np.full(size, 0.5, np.float32)) for _ in range(3))
    arguments = a, b, c, 0.5, pa.asarray(np.zeros(1, np.int64)), pa.asarray(np.arange(size))
    checked, plain = pa.kernel(kernel, debug=True), pa.kernel(kernel, debug=False)
    candidates: dict[str, Callable[[], Any]] = {
        "pyarray": lambda: checked(*arguments),
        "release": lambda: plain(*arguments),
    }
    wanted = target if size == SIZES[-1] else None  # a short launch pays for its record, too
    return Row(f"{size} elements", name, race(candidates, 0.1 if quick else 0.6), wanted, n=size)


if __name__ == "__main__":
    from .part import alone

    alone("debug")
