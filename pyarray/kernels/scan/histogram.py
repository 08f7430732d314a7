"""Histograms: counts or sums of weights by bin.

Each block of elements has private bins, which are added up at the end: no atomics, and sums of weights are
deterministic.
"""

from __future__ import annotations

import functools

from ... import jit
from ...array import ndarray
from ...dtypes import DType, float64, int64
from ..reduce.reduce import SUM, on_grid, reduce_into
from ..workspace import unchecked_empty
from .scan_gpu import count_bins, supports_bins

BLOCK = 1 << 15  # elements of a block, at least
BLOCKS = 64
GRID_BLOCK = 1 << 9
GRID_BLOCKS = 1 << 12
BINS = 1 << 22  # of all blocks together
STRIP = 2048

# Which bin v belongs to, from 0 on; none below 0 and from out.shape[1] on.
_BINNINGS = {
    "value": "bin = int64(v)",
    # the division may round to a neighbour of the bin whose edges say that it is the one
    "even": """bin = int64(-1)
                if v >= edges[0] and v <= edges[bins]:
                    bin = max(min(int64((v - edges[0]) * scale), bins - 1), 0)
                    if v < edges[bin]:
                        bin -= 1
                    elif v >= edges[bin + 1] and bin < bins - 1:
                        bin += 1""",
    # no branches in the search: half of them would be mispredicted
    "edges": """bin = int64(-1)
                if v >= edges[0] and v <= edges[bins]:
                    left = bins - 1
                    bin = int64(0)
                    while left > 0:
                        half = (left + 1) >> 1
                        bin += half * int64(edges[bin + half] <= v)
                        left -= half""",
}


def count_into(out: ndarray, x: ndarray, binning: str, edges: ndarray, scale: float, weights: ndarray | None) -> None:
    """`out[k]` = the number of elements of the 1-D array `x` in bin k, or the sum of their `weights`. `binning`:
    "value": an element is its bin; else bin k is between `edges[k]` and `edges[k + 1]`, which are evenly
    spaced, `scale` bins per unit ("even"), or not ("edges")."""
    bins = out._size
    if on_grid(x) and weights is None and supports_bins(x if binning == "value" else edges):
        count_bins(out, x, binning, edges, scale)
        return
    least, most = (GRID_BLOCK, GRID_BLOCKS) if on_grid(x) else (BLOCK, BLOCKS)
    blocks = max(min(-(-x._size // least), most, BINS // max(bins, 1)), 1)
    block = -(-max(x._size, 1) // blocks)
    partial = unchecked_empty((blocks, bins), out._dtype, x.device)
    kind = x._dtype if binning == "value" else edges._dtype
    _count_kernel(binning, kind, weights is not None)(
        partial, x, edges, x if weights is None else weights, block, scale
    )
    reduce_into(SUM, out, partial, (0,), out._dtype)


# The text depends on the binning, the computing type and weights; dtypes are in its variants' keys.
@functools.cache
def _count_kernel(binning: str, kind: DType, weighted: bool) -> jit.kernel.Kernel:
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
                {_BINNINGS[binning]}
                if bin >= 0 and bin < bins:
                    out[b, bin] += {added}
"""
    return jit.kernel.from_text("histogram", text, {"kind": kind, "float64": float64, "int64": int64})
