"""Counting elements, or adding up their weights, by bin.

Each block of elements has bins of its own, which are added up at the end: nothing waits for anything, and
sums of weights are the same each time.
"""

from __future__ import annotations

import functools

from ...array import ndarray
from ...dtypes import DType, float64, int64
from ...jit.kernel import Kernel, from_text
from ..reduce.reduce import SUM, on_grid, reduce_into
from ..workspace import scratch
from .scan_gpu import count_bins, counts_bins

BLOCK = 1 << 15  # elements that make another block worth while
BLOCKS = 64
GRID_BLOCK = 1 << 9
GRID_BLOCKS = 1 << 12
BINS = 1 << 22  # of all blocks together
STRIP = 2048

# Which bin v belongs to, from 0 on; none below 0 and from out.shape[1] on.
_PLACES = {
    "value": "place = int64(v)",
    # the division may round to a neighbour of the bin whose edges say that it is the one
    "even": """place = int64(-1)
                if v >= edges[0] and v <= edges[bins]:
                    place = max(min(int64((v - edges[0]) * scale), bins - 1), 0)
                    if v < edges[place]:
                        place -= 1
                    elif v >= edges[place + 1] and place < bins - 1:
                        place += 1""",
    # without branches in the search: half of them would be guessed wrong
    "edges": """place = int64(-1)
                if v >= edges[0] and v <= edges[bins]:
                    left = bins - 1
                    place = int64(0)
                    while left > 0:
                        half = (left + 1) >> 1
                        place += half * int64(edges[place + half] <= v)
                        left -= half""",
}


def count_into(
    out: ndarray, x: ndarray, form: str, edges: ndarray, scale: float, weights: ndarray | None
) -> None:
    """`out[k]` = how many elements of the 1-D array `x` are in bin k, or the sum of their `weights`: bin
    x itself (`form` "value"), or between `edges[k]` and `edges[k + 1]`, which are `scale` bins a unit apart
    ("even") or anyhow ("edges")."""
    bins = out._size
    if on_grid(x) and weights is None and counts_bins(x if form == "value" else edges):
        count_bins(out, x, form, edges, scale)
        return
    least, most = (GRID_BLOCK, GRID_BLOCKS) if on_grid(x) else (BLOCK, BLOCKS)
    blocks = max(min(-(-x._size // least), most, BINS // max(bins, 1)), 1)
    block = -(-max(x._size, 1) // blocks)
    found = scratch((blocks, bins), out._dtype, x.device)
    kind = x._dtype if form == "value" else edges._dtype
    _count_kernel(form, kind, weights is not None)(
        found, x, edges, x if weights is None else weights, block, scale
    )
    reduce_into(SUM, out, found, (0,), out._dtype)


# The text is made of the form, the type that is computed in, and weights; dtypes are in its variants' keys.
@functools.cache
def _count_kernel(form: str, kind: DType, weighted: bool) -> Kernel:
    added = "weights[t]" if weighted else "1"
    text = f"""def histogram(out, x, edges, weights, block: int, scale: float64):
    for b in range(out.shape[0]):
        bins = int64(out.shape[1])
        for k in range(bins):
            out[b, k] = 0
        stop = min(b * block + block, x.shape[0])
        for strip in range(b * block, stop, {STRIP}):
            for t in range(strip, min(strip + {STRIP}, stop)):
                v = kind(x[t])
                {_PLACES[form]}
                if place >= 0 and place < bins:
                    out[b, place] += {added}
"""
    return from_text("histogram", text, {"kind": kind, "float64": float64, "int64": int64})
