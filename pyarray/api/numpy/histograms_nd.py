"""Histograms of points in several dimensions."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from ...array import ndarray
from ...array_convert import asarray
from ...dtypes import float64, int64
from ...typing import ArrayLike
from ..core.ufunc import as_array_like
from ..standard.creation import linspace
from ..standard.elementwise import divide, equal, less
from ..standard.manipulation import stack
from ..standard.scans import diff
from ..standard.searching import searchsorted
from ..standard.statistical import max as max_of
from ..standard.statistical import min as min_of
from ..standard.statistical import sum as sum_of
from ..standard.utility import any as any_of
from .histograms import bincount

__all__ = ["histogram2d", "histogramdd"]


def histogramdd(
    sample: ArrayLike,
    /,
    bins: ArrayLike = 10,
    range: ArrayLike | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[ndarray, tuple[ndarray, ...]]:
    """How many points (rows of `sample`, or a sequence of their coordinates) are in each bin, as float64, and
    the edges of the bins of each axis.

    `bins` is a number, or a number or edges for each axis; `range` a pair of ends for each, or None for what
    the points span. With `weights` points count as much as they say, with `density` the integral is 1.
    Raises `ValueError` for edges that fall, and numbers of bins, ends or weights that don't fit.

    >>> found, edges = pa.histogramdd(pa.asarray([[0.0, 0.0], [1.0, 1.0], [1.0, 0.9]]), bins=2)
    >>> found.tolist(), edges[0].tolist()
    ([[1.0, 0.0], [0.0, 2.0]], [0.0, 0.5, 1.0])
    """
    if isinstance(sample, (list, tuple)):
        sample = stack(as_array_like(*sample)).T
    points: Any = asarray(sample)
    points = points.reshape(-1, 1) if points.ndim < 2 else points
    if points.ndim != 2:
        raise ValueError(f"histogramdd(): points are rows of a matrix, got shape {points.shape}")
    count = points.shape[1]
    edges = [
        _edges(k, points[:, k], one, ends)
        for k, (one, ends) in enumerate(zip(_each("bins", bins, count), _each("range", range, count), strict=True))
    ]
    place_of: Any = 0
    for k, line in enumerate(edges):
        values = points[:, k]
        number: Any = searchsorted(line, values, side="right")
        number = number - equal(values, line[-1]).astype(int64)
        place_of = place_of * (line.size + 1) + number
    sizes = tuple(line.size + 1 for line in edges)
    counted = bincount(place_of, weights, minlength=math.prod(sizes)).astype(float64).reshape(sizes)
    counts: Any = counted[(slice(1, -1),) * count].copy()
    if density:
        for k, line in enumerate(edges):
            widths = diff(line).reshape((1,) * k + (-1,) + (1,) * (count - k - 1))
            counts = divide(counts, widths)
        counts = divide(counts, sum_of(counted[(slice(1, -1),) * count]))
    return counts, tuple(edges)


def _each(what: str, value: Any, count: int) -> Sequence[Any]:
    """A value for each axis: of those that are given, or the one that is."""
    if isinstance(value, (list, tuple, ndarray)):
        if len(value) != count:
            raise ValueError(f"histogramdd(): {what} has one for each of {count} axes, got {len(value)}")
        return list(value)
    return [value] * count


def _edges(axis: int, values: ndarray, bins: Any, ends: Any) -> ndarray:
    """The edges of the bins of an axis."""
    lines = bins if isinstance(bins, ndarray) else asarray(bins, device=values.device)
    if lines.ndim > 1:
        raise ValueError(f"histogramdd(): the edges of axis {axis} are 1-D, got shape {lines.shape}")
    if lines.ndim == 1:
        if bool(any_of(less(diff(lines), 0)).item()):
            raise ValueError(f"histogramdd(): the edges of axis {axis} rise")
        return lines
    number = operator.index(bins)
    if number < 1:
        raise ValueError(f"histogramdd(): axis {axis} has 1 bin or more, got {number}")
    if ends is None:
        ends = (0.0, 1.0) if not values.size else (min_of(values).item(), max_of(values).item())
    low, high = ends
    if low > high or not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"histogramdd(): the ends of axis {axis} are finite and rise, got {ends}")
    low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
    return linspace(low, high, number + 1, device=values.device)


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    /,
    bins: ArrayLike = 10,
    range: ArrayLike | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """`histogramdd` of the points (x, y), and the edges of both axes; `bins` may also be the edges of both.

    Raises `ValueError` as it does, and for `x` and `y` of different lengths.

    >>> pa.histogram2d([0.0, 1.0, 1.0], [0.0, 1.0, 0.9], bins=2)[0].tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    first, second = as_array_like(x, y)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"histogram2d() takes two 1-D arrays of one length, got {first.shape} and {second.shape}")
    if getattr(bins, "ndim", 0) == 1 or (isinstance(bins, (list, tuple)) and len(bins) not in (1, 2)):
        bins = [bins, bins]
    elif isinstance(bins, (list, tuple)) and len(bins) == 1:
        bins = [bins[0], bins[0]]
    counts, edges = histogramdd([first, second], bins, range, density, weights)
    return counts, edges[0], edges[1]
