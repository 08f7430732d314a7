"""Quantiles, percentiles and medians, with and without NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import shapes
from ...array import empty, ndarray
from ...array_convert import asarray, asnumpy
from ...dtypes import DType, asdtype, float64
from ...jit.replay import replayable
from ...kernels.sort.quantile import element_indices, quantiles_of_sorted
from ...kernels.sort.sort import can_select, select_rows
from ...kernels.workspace import unchecked_empty
from ...typing import ArrayLike, AxisLike
from ..core.registry import FLOAT, precompiled
from ..core.ufunc import store_out
from ..standard.sorting import lines, sort
from ..standard.statistical import as_operand

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

# NumPy's name → how places between elements are treated, alpha, beta
_METHODS = {
    "inverted_cdf": ("step", 0.0, 1.0),
    "averaged_inverted_cdf": ("averaged", 0.0, 1.0),
    "closest_observation": ("even", -0.5, 1.5),
    "interpolated_inverted_cdf": ("between", 0.0, 1.0),
    "hazen": ("between", 0.5, 0.5),
    "weibull": ("between", 0.0, 0.0),
    "linear": ("between", 1.0, 1.0),
    "median_unbiased": ("between", 1 / 3, 1 / 3),
    "normal_unbiased": ("between", 3 / 8, 3 / 8),
    "lower": ("lower", 1.0, 1.0),
    "higher": ("higher", 1.0, 1.0),
    "midpoint": ("midpoint", 1.0, 1.0),
    "nearest": ("nearest", 1.0, 1.0),
}
_EXACT = ("step", "even", "lower", "higher", "nearest")  # the result is an element


@precompiled(FLOAT, "quantile(a, 0.3)")
@replayable
def quantile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: AxisLike = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> ndarray:
    """The elements below which fractions `q` (a number or an array of numbers from 0 to 1) of the elements
    over `axis` (None: all, an int or a tuple of ints) lie; the axes of `q` come first.

    `method` is one of NumPy's thirteen, by which a place between two elements is treated. Floats keep their
    dtype; integers become float64 unless the method gives one of the elements. NaN where there is a NaN.
    Raises `ValueError` for `q` out of range and another method, `IndexError` over no elements, `TypeError`
    for bools and complex numbers.

    >>> pa.quantile(pa.asarray([1, 2, 3, 4]), [0.25, 0.5]).tolist()
    [1.75, 2.5]
    """
    return _quantile("quantile", x, q, 1.0, axis, out, method, keepdims, False)


@precompiled(FLOAT, "percentile(a, 30)")
@replayable
def percentile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: AxisLike = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> ndarray:
    """`quantile` with `q` from 0 to 100.

    >>> pa.percentile(pa.asarray([1, 2, 3, 4]), 50, method="lower").item()
    2
    """
    return _quantile("percentile", x, q, 100.0, axis, out, method, keepdims, False)


@precompiled((*FLOAT, "uint8"), "median(a)")
@replayable
def median(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> ndarray:
    """The middle element over `axis` (None: all, an int or a tuple of ints), or the mean of both. NaN where
    there is one, and over no elements; integers and bools give float64.

    >>> pa.median(pa.asarray([3, 1, 2, 9])).item()
    2.5
    """
    return _quantile("median", x, 0.5, 1.0, axis, out, "linear", keepdims, False)


@replayable
def nanquantile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: AxisLike = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> ndarray:
    """`quantile` of the elements that are not NaN; NaN where there are none.

    >>> pa.nanquantile(pa.asarray([1.0, float("nan"), 3.0]), 0.5).item()
    2.0
    """
    return _quantile("nanquantile", x, q, 1.0, axis, out, method, keepdims, True)


@replayable
def nanpercentile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: AxisLike = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> ndarray:
    """`percentile` of the elements that are not NaN; NaN where there are none.

    >>> pa.nanpercentile(pa.asarray([1.0, float("nan"), 3.0]), 100).item()
    3.0
    """
    return _quantile("nanpercentile", x, q, 100.0, axis, out, method, keepdims, True)


@replayable
def nanmedian(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    out: ndarray | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> ndarray:
    """`median` of the elements that are not NaN; NaN where there are none.

    >>> pa.nanmedian(pa.asarray([1.0, float("nan"), 3.0])).item()
    2.0
    """
    return _quantile("nanmedian", x, 0.5, 1.0, axis, out, "linear", keepdims, True)


def _quantile(
    name: str,
    x: Any,
    q: Any,
    scale: float,
    axis: Any,
    out: ndarray | None,
    method: str,
    keepdims: bool,
    skip_nan: bool,
) -> ndarray:
    if method not in _METHODS:
        raise ValueError(f"{name}(): method is one of {', '.join(_METHODS)}, got {method!r}")
    fraction, alpha, beta = _METHODS[method]
    if name in ("median", "nanmedian"):
        fraction = "mean"
    x = as_operand(name, x, "biuf" if name.endswith("median") else "iuf")
    fractions, precision = _fractions(name, q, scale)
    axes = shapes.normalize_axes(axis, x.ndim)
    reduced_shape, full = shapes.reduced(x._shape, axes)
    dtype = x._dtype if fraction in _EXACT else _between(x._dtype, precision)
    rows = _rows(x, axes, math.prod(reduced_shape))
    shape = (*fractions.shape, *(full if keepdims else reduced_shape))
    if not rows._shape[1] and (dtype.kind != "f" or name in ("quantile", "percentile")):
        raise IndexError(f"{name}() over no elements has no answer: shape {x._shape}, axes {axes}")
    quantiles = empty((fractions.size, rows._shape[0]), dtype, x.device)
    if not rows._shape[1]:
        quantiles[...] = math.nan
    else:
        levels = asarray(fractions.reshape(-1), device=x.device)
        indices = element_indices(fractions, rows._shape[1], alpha, beta)
        ordered = sort(rows) if skip_nan else _selected(rows, indices)
        quantiles_of_sorted(quantiles, ordered, levels, fraction, alpha, beta, skip_nan)
    return store_out(name, quantiles.reshape(shape), out)


def _selected(rows: ndarray, indices: set[int]) -> ndarray:
    """The rows with what a sort puts at `indices` there, and a NaN, if there is one, at the end."""
    if rows._dtype.kind == "f":
        indices = indices | {rows._shape[1] - 1}
    kth = tuple(sorted(indices))
    if not can_select(rows, kth) or not rows._size:
        return sort(rows)
    out = unchecked_empty(rows._shape, rows._dtype, rows.device)
    select_rows(out, lines(rows, 1), kth)
    return out


def _between(kind: DType, precision: np.dtype[Any] | None) -> DType:
    """Type of what lies between elements, for fractions of a type; None is a Python number's."""
    if precision is None:
        return kind if kind.kind == "f" else float64
    return asdtype(np.promote_types(kind.numpy, precision))


def _fractions(name: str, q: Any, scale: float) -> tuple[np.ndarray[Any, Any], np.dtype[Any] | None]:
    """`q` as fractions, on the host, and the floating type that they came in: None for Python numbers, which
    take the elements', as do the integers that `quantile` is given."""
    levels = asnumpy(q) if isinstance(q, ndarray) else np.asarray(q)
    precision: np.dtype[Any] | None = levels.dtype if levels.dtype.kind == "f" else np.dtype(np.float64)
    if type(q) in (bool, int, float) or (levels.dtype.kind != "f" and scale == 1.0):
        precision = None
    if levels.dtype.kind not in "biuf":
        raise TypeError(f"{name}(): q is a real number or an array of them, got {levels.dtype}")
    fractions = levels.astype(np.float64) / scale
    if not ((fractions >= 0) & (fractions <= 1)).all():
        raise ValueError(f"{name}(): q must be from 0 to {scale:g}, got {levels.tolist()}")
    return fractions, precision


def _rows(x: ndarray, axes: tuple[int, ...], count: int) -> ndarray:
    """A 2-D array with a contiguous row for each index of the other axes: the elements over `axes`."""
    if len(axes) == 1:
        return lines(x, axes[0])
    order = (*(k for k in range(x.ndim) if k not in axes), *axes)
    n = math.prod(x._shape[k] for k in axes)
    return x.transpose(order).reshape((count, n))
