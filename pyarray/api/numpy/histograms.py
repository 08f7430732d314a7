"""Histograms: bincount, histogram, histogram_bin_edges, digitize."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ...array import empty, ndarray
from ...array_convert import asarray, asnumpy
from ...array_hooks import operation
from ...array_host import need_data
from ...dtypes import complex128, float64, int64
from ...jit.replay import replayable
from ...kernels.scan.histogram import count_into
from ...typing import ArrayLike
from ..core.registry import FLOAT, REAL, precompiled
from ..core.ufunc import as_array_like, as_arrays
from ..standard.elementwise import divide, subtract
from ..standard.manipulation import flip
from ..standard.scans import diff
from ..standard.searching import comparable, searchsorted
from ..standard.statistical import as_operand
from ..standard.statistical import max as largest
from ..standard.statistical import min as smallest
from ..standard.statistical import sum as total

__all__ = ["bincount", "digitize", "histogram", "histogram_bin_edges"]


@precompiled(("int64",), "bincount(a)")
def bincount(x: ArrayLike, /, weights: ArrayLike | None = None, minlength: int = 0) -> ndarray:
    """How often each number from 0 on occurs in a 1-D array of natural numbers (int64), or with `weights` the
    sum of those of its elements (float64); at least `minlength` of them.

    Waits for the device. Raises `ValueError` for negative elements, another rank, or weights of another
    length; `TypeError` for elements that are no integers.

    >>> pa.bincount(pa.asarray([1, 3, 1])).tolist()
    [0, 2, 0, 1]
    """
    if weights is not None:
        x, weights = as_array_like(x, weights)
    x = as_operand("bincount", x, "biufc")
    if x.ndim != 1:
        raise ValueError(f"bincount() takes a 1-D array, got shape {x._shape}")
    if x._dtype.kind not in "biu" and x._size:
        raise TypeError(f"bincount() takes integers, got {x._dtype}; cast them with astype")
    length = operator.index(minlength)
    if length < 0:
        raise ValueError(f"bincount(): minlength must not be negative, got {minlength}")
    weight = None if weights is None else _weights("bincount", x, weights).astype(float64, copy=False)
    if x._size:
        need_data(x, "the size of what bincount() returns")
        low, high = int(smallest(x)), int(largest(x))
        if low < 0:
            raise ValueError(f"bincount() takes natural numbers, got {low}")
        length = max(length, high + 1)
    out = empty(length, float64 if weight is not None and x._size else int64, x.device)
    if not x._size:
        out[...] = 0
    elif length:
        flat = operation("contiguous")(x)
        count_into(out, flat, "value", flat, 1.0, weight)
    return out


def _weights(name: str, x: ndarray, weight: ndarray) -> ndarray:
    if weight._shape != x._shape:
        raise ValueError(f"{name}(): weights have shape {weight._shape}, the elements {x._shape}")
    return weight


@precompiled(FLOAT, "histogram(a)")
def histogram(
    x: ArrayLike,
    /,
    bins: ArrayLike | str = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[ndarray, ndarray]:
    """How many elements are in each bin (int64), or the sum of their `weights`, and the edges of the bins;
    the last bin has its upper edge.

    `bins` is a number of bins of one width over `range` (default: from the smallest to the largest element),
    or the edges. With `density` the result's integral is 1. Elements outside don't count. Raises `ValueError`
    for edges that fall, no bins, and a range that isn't finite; `TypeError` for complex numbers.

    >>> [a.tolist() for a in pa.histogram(pa.asarray([1, 2, 1]), bins=[0, 1, 2, 3])]
    [[0, 2, 1], [0, 1, 2, 3]]
    """
    x, weights = _with_weights(x, bins, weights)
    x = as_operand("histogram", x, "biuf")
    flat = operation("contiguous")(x.reshape(x._size))
    weight = None
    if weights is not None:
        weight = _weights("histogram", x, weights)
        weight = operation("contiguous")(weight.reshape(weight._size))
    edges, even = _edges(flat, bins, range)
    kind = int64 if weight is None else _sum_dtype(weight)
    counts = empty(edges._size - 1, kind, x.device)
    points = edges if even else comparable("histogram", edges, flat)[0]
    if not flat._size:
        counts[...] = 0
    else:
        ends = asnumpy(edges[:: max(edges._size - 1, 1)]).astype(np.float64) if even else (0.0, 1.0)
        scale = (edges._size - 1) / float(ends[1] - ends[0])
        count_into(counts, flat, "even" if even else "edges", points, scale, weight)
    if density:
        widths = diff(edges).astype(float64)
        return divide(divide(counts, widths), total(counts)), edges
    return counts, edges


def _sum_dtype(weight: ndarray) -> Any:
    """Integers are added up in 64 bits, floats in float64, bools are counted."""
    return {"c": complex128, "f": float64}.get(weight._dtype.kind, int64)


def histogram_bin_edges(
    x: ArrayLike, /, bins: ArrayLike | str = 10, range: tuple[float, float] | None = None
) -> ndarray:
    """The edges of the bins of `histogram`, whose options and errors it has.

    >>> pa.histogram_bin_edges(pa.asarray([0.0, 4.0]), bins=2).tolist()
    [0.0, 2.0, 4.0]
    """
    x = as_operand("histogram_bin_edges", _with_weights(x, bins, None)[0], "biuf")
    return _edges(x.reshape(x._size), bins, range)[0]


def _with_weights(x: Any, bins: Any, weights: Any) -> tuple[ndarray, ndarray | None]:
    """The elements and their weights, where the first array of all three is."""
    edges = [bins] if isinstance(bins, ndarray) and bins.ndim else []
    x, *others = as_array_like(x, *edges, *([] if weights is None else [weights]))
    return x, None if weights is None else others[-1]


def _edges(x: ndarray, bins: Any, span: Any) -> tuple[ndarray, bool]:
    """The edges, and whether all bins have one width."""
    if isinstance(bins, str):
        raise TypeError(f"histogram(): bins is a number or edges, got {bins!r}; choose a number of bins")
    bin_edges = bins if isinstance(bins, ndarray) else np.asarray(bins)
    if bin_edges.ndim == 0:
        count = operator.index(bins if not isinstance(bins, ndarray) else bins.item())
        if count < 1:
            raise ValueError(f"histogram() needs 1 or more bins, got {count}")
        low, high = _span(x, span)
        kind = x._dtype if x._dtype.kind == "f" and x.itemsize >= 4 else float64
        if span is None:  # in the elements' own arithmetic, as NumPy has it
            low, high = kind(low), kind(high)
        edges = np.linspace(low, high, count + 1, dtype=kind.numpy)
        if (edges[1:] <= edges[:-1]).any():
            span = f"[{low}, {high}] in {kind}"
            raise ValueError(f"histogram(): {count} bins are too many for the range {span}; pass fewer")
        return asarray(edges, device=x.device), True
    if bin_edges.ndim != 1:
        raise ValueError(f"histogram(): edges are 1-D, got shape {bin_edges.shape}")
    host = asnumpy(bin_edges) if isinstance(bin_edges, ndarray) else bin_edges
    if host.size < 2 or (host[1:] < host[:-1]).any():
        raise ValueError("histogram(): edges must be 2 or more, and must not fall")
    return (bin_edges if isinstance(bin_edges, ndarray) else asarray(host, device=x.device)), False


def _span(x: ndarray, span: Any) -> tuple[float, float]:
    if span is not None:
        low, high = span
        if low > high:
            raise ValueError(f"histogram(): range must not fall, got {span}")
    elif not x._size:
        low, high = 0.0, 1.0
    else:
        low, high = smallest(x).item(), largest(x).item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"histogram(): the range [{low}, {high}] is not finite; give range=")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


@precompiled(REAL, "digitize(a, sort(b[:5]))")
@replayable
def digitize(x: ArrayLike, bins: ArrayLike | str, /, right: bool = False) -> ndarray:
    """For each element the number (int64) of the bin it is in: i where bins[i - 1] <= x < bins[i], or with
    `right` bins[i - 1] < x <= bins[i]; the other way round where `bins`, 1-D, fall.

    Raises `ValueError` for bins that neither rise nor fall.

    >>> pa.digitize(pa.asarray([0.2, 6.4]), pa.asarray([0.0, 1.0, 2.5])).tolist()
    [1, 3]
    """
    x, edges = (as_operand("digitize", v, "biuf") for v in as_arrays("digitize", x, bins))
    if edges.ndim != 1:
        raise ValueError(f"digitize(): bins are 1-D, got shape {edges._shape}")
    host = asnumpy(edges)
    if (host[1:] >= host[:-1]).all():
        return searchsorted(edges, x, side="left" if right else "right")
    if not (host[1:] <= host[:-1]).all():
        raise ValueError("digitize(): bins must rise or fall throughout")
    from_end = searchsorted(flip(edges), x, side="left" if right else "right")
    return subtract(edges._size, from_end)
