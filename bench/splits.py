"""Reshapes of strided arrays and divided loop variables in kernels, next to loops nested by hand.

`divided` finds each element by two divisions, of a sum, which no loop counts. Where two arrays are walked
together and their sizes differ, kernels divide; that is a row, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pyarray as pa

from .timing import Figure, Row, race, table

ABOUT = """Reshaped views and divided loop variables in kernels, next to nested loops and next to divisions."""
SIDE = 1000


@pa.kernel
def line(out, a, b, zero):
    t = a.ravel()
    for i in range(out.size):
        out[i] = t[i]


@pa.kernel
def nested(out, a, b, zero):
    for i, j in pa.ndrange(a.shape[0], a.shape[1]):
        out[i * a.shape[1] + j] = a[i, j]


@pa.kernel
def divided(out, a, b, zero):
    for i in range(out.size):
        k = i + zero
        out[i] = a[k // a.shape[1], k % a.shape[1]]


@pa.kernel
def lines(out, a, b, zero):
    s, t = a.ravel(), b.ravel()
    for i in range(out.size):
        out[i] = s[i] + t[i]


@pa.kernel
def both_nested(out, a, b, zero):
    for i, j in pa.ndrange(a.shape[0], a.shape[1]):
        out[i * a.shape[1] + j] = a[i, j] + b[i, j]


@pa.kernel
def both_divided(out, a, b, zero):
    for i in range(out.size):
        k = i + zero
        out[i] = a[k // a.shape[1], k % a.shape[1]] + b[k // b.shape[1], k % b.shape[1]]


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes."""
    wide = pa.asarray(np.random.default_rng(0).random((SIDE, SIDE + 10), dtype=np.float32))
    a = wide[:, :SIDE]
    other = pa.asarray(np.random.default_rng(1).random((SIDE // 2, 2 * SIDE + 10), dtype=np.float32))
    cases = {
        "rows of a matrix": (a, a, line, nested, divided),
        "rows backwards": (a[:, ::-1], a, line, nested, divided),
        "two matrices of one shape": (a, a[::-1], lines, both_nested, both_divided),
        "two of other shapes": (a, other[:, : 2 * SIDE], lines, None, both_divided),
    }
    rows = list[Row]()
    for name, (x, y, ours, by_hand, division) in cases.items():
        arguments = pa.empty(SIDE * SIDE, dtype=pa.float32), x, y, 0
        candidates: dict[str, Callable[[], Any]] = {"pyarray": _call(ours, arguments)}
        if by_hand is not None:
            candidates["nested"] = _call(by_hand, arguments)
        candidates["divided"] = _call(division, arguments)
        rows.append(Row("10**6 elements", name, race(candidates, 0.1 if quick else 0.6), None, n=SIDE * SIDE))
    print(f"minimum (median)\n{table(rows)}\n", flush=True)
    yield from rows


def _call(kernel: Any, arguments: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: kernel(*arguments)


if __name__ == "__main__":
    from .part import alone

    alone("splits")
