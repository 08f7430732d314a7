"""Histograms: counts or sums of weights by bin.

Each block of elements has private bins, which are added up at the end: no atomics, and sums of weights are
deterministic.
"""

from __future__ import annotations

from typing import Any

from ...array import ndarray
from ...dtypes import int64
from ...lang.markers import constexpr
from ..library_kernel import library_kernel
from ..reduce.reduce import SUM, on_grid, reduce_into
from ..workspace import unchecked_empty
from .scan_gpu import count_bins, supports_bins

BLOCK = 1 << 15  # elements of a block, at least
BLOCKS = 64
GRID_BLOCK = 1 << 9
GRID_BLOCKS = 1 << 12
BINS = 1 << 22  # of all blocks together
STRIP = 2048


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
    added = x if weights is None else weights
    add_to_bins()(partial, x, edges, added, block, scale, binning, weights is not None)
    reduce_into(SUM, out, partial, (0,), out._dtype)


@library_kernel
def add_to_bins(
    out: ndarray, x: ndarray, edges: Any, weights: ndarray, block: int, scale: float,
    binning: constexpr, weighted: constexpr,
) -> None:  # fmt: skip
    for b in range(out.shape[0]):
        bins = int64(out.shape[1])
        for k in range(bins):
            out[b, k] = 0
        stop = min(b * block + block, x.shape[0])
        for strip in range(b * block, stop, STRIP):
            for t in range(strip, min(strip + STRIP, stop)):
                v = x[t] if binning == "value" else edges.dtype(x[t])
                bin = int64(v) if binning == "value" else int64(-1)
                if binning == "even" and v >= edges[0] and v <= edges[bins]:
                    # the division may round to a neighbour of the bin whose edges say that it is the one
                    bin = max(min(int64((v - edges[0]) * scale), bins - 1), 0)
                    if v < edges[bin]:
                        bin -= 1
                    elif v >= edges[bin + 1] and bin < bins - 1:
                        bin += 1
                if binning == "edges" and v >= edges[0] and v <= edges[bins]:
                    # no branches in the search: half of them would be mispredicted
                    left = bins - 1
                    bin = int64(0)
                    while left > 0:
                        half = (left + 1) >> 1
                        bin += half * int64(edges[bin + half] <= v)
                        left -= half
                if bin >= 0 and bin < bins:
                    out[b, bin] += weights[t] if weighted else 1
