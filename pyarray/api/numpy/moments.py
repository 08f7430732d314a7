"""Statistical functions of second order, and means with weights: var, std, ptp, average, cov, corrcoef."""

from __future__ import annotations

import math
from typing import Any

from ... import shapes
from ...array import empty, ndarray
from ...array_convert import asarray
from ...array_hooks import Tracer
from ...dtypes import complex128, float64, real_of, result_type
from ...jit.replay import replayable
from ...kernels.reduce.reduce import SUM
from ...kernels.reduce.variance import squared_deviations
from ...kernels.reduce.variance_gpu import supports_variances, variances_into
from ...typing import ArrayLike, AxisLike, DTypeLike
from ..core.registry import FLOAT, method, precompiled
from ..core.ufunc import as_array_like, compute
from ..standard.elementwise import UFUNCS, add, clip, conj, divide, imag, multiply, real, sqrt, subtract
from ..standard.linear_algebra import matmul
from ..standard.manipulation import broadcast_to, concat
from ..standard.statistical import as_operand, cast_floating, chosen_count, mask_of, mean, reduction
from ..standard.statistical import max as largest
from ..standard.statistical import min as smallest
from ..standard.statistical import sum as total
from ..standard.utility import any as any_of

__all__ = ["average", "corrcoef", "cov", "ptp", "std", "var"]


@precompiled(FLOAT, "var(a)")
@method
@replayable
def var(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    out: ndarray | None = None,
    where: ArrayLike = True,
) -> ndarray:
    """Variance over `axis` (None: all axes, an int or a tuple of ints): the sum of squared distances from the
    mean, divided by the number of elements less `correction` (NumPy's name: `ddof`); of the elements where
    `where` is true.

    Of integers and bools in float64, of complex numbers their real component type; with `dtype` elements are
    cast to that first. NaN where nothing is left to divide by.
    Raises `TypeError` for a `dtype` that isn't floating.

    >>> pa.var(pa.asarray([1, 2, 3, 4])).item(), pa.var(pa.asarray([1.0, 3.0]), correction=1).item()
    (1.25, 2.0)
    """
    x = cast_floating("var", x, dtype)
    return _variance("var", x, axis, correction if ddof is None else ddof, keepdims, out, where)


@precompiled(FLOAT, "std(m, axis=0)", "std(m, axis=1)")
@method
@replayable
def std(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    out: ndarray | None = None,
    where: ArrayLike = True,
) -> ndarray:
    """Standard deviation over `axis`: the square root of `var`, whose options and types it has.

    >>> pa.std(pa.asarray([1.0, 3.0])).item()
    1.0
    """
    x = cast_floating("std", x, dtype)
    return _variance("std", x, axis, correction if ddof is None else ddof, keepdims, out, where)


def _variance(
    name: str, x: ndarray, axis: Any, correction: float, keepdims: bool, out: ndarray | None, where: Any
) -> ndarray:
    kind = x._dtype if x._dtype.kind in "fc" else float64
    wide = complex128 if kind.kind == "c" else float64
    dof: Any
    if where is True:
        axes = shapes.normalize_axes(axis, x.ndim)
        count = math.prod(x._shape[k] for k in axes)

        def center() -> ndarray:
            return divide(reduction(SUM, x, axes, True, wide, kind=kind), 1.0 * count)

        if isinstance(x, Tracer):  # as two passes, which are fused
            far = subtract(x, center())
            squares = reduction(SUM, real(multiply(far, conj(far))), axes, keepdims, float64)
            dof = clip(1.0 * count - correction, 0.0, None)
        else:
            shape, kept_shape = shapes.reduced(x._shape, axes)
            dof = float(count - correction) if count > correction else 0.0
            if out is None and supports_variances(x, axes):
                found = empty(shape, kind, x.device)
                variances_into(found, x, axes, dof, name == "std")
                return found.reshape(kept_shape) if keepdims else found
            squares = squared_deviations(x, axes, center)
            squares = squares.reshape(kept_shape) if keepdims else squares
    else:
        mask, x = mask_of(name, x, where), x.astype(wide, copy=False)
        centered = subtract(x, mean(x, axis, keepdims=True, where=mask))
        squares = total(real(multiply(centered, conj(centered))), axis, keepdims=keepdims, where=mask)
        dof = clip(subtract(chosen_count(x, axis, keepdims, mask), float(correction)), 0.0, None)
    op, operands = ("divide", (squares, dof)) if name == "var" else ("sqrt", (divide(squares, dof),))
    return compute(UFUNCS[op].op, float64, real_of(kind), operands, out, larger=False)


@method
@replayable
def ptp(x: ArrayLike, /, axis: AxisLike = None, *, keepdims: bool = False, out: ndarray | None = None) -> ndarray:
    """The largest element over `axis` less the smallest one. Raises as `max`, and `TypeError` for bools.

    >>> pa.ptp(pa.asarray([3, 9, 4])).item()
    6
    """
    x = as_operand("ptp", x, "iuf")
    return subtract(largest(x, axis=axis, keepdims=keepdims), smallest(x, axis=axis, keepdims=keepdims), out=out)


@precompiled(FLOAT, "average(a, weights=b)")
@replayable
def average(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Mean over `axis` (None: all axes), in which `weights` of `x`'s shape, or of its length along one axis,
    count each element; with `returned`, a tuple of it and the sum of weights.

    Raises `TypeError` for 1-D weights without an axis, `ValueError` for other shapes, `ZeroDivisionError`
    where weights add up to 0.

    >>> pa.average(pa.asarray([1.0, 4.0]), weights=[2, 1]).item()
    2.0
    """
    if weights is not None:
        x, weights = as_array_like(x, weights)
    x = as_operand("average", x, "biufc")
    if weights is None:
        result = mean(x, axis=axis, keepdims=keepdims)
        count = math.prod(x._shape[k] for k in shapes.normalize_axes(axis, x.ndim))
        scale: Any = asarray(float(count), dtype=result._dtype, device=x.device)
    else:
        weight = _weights(x, weights, axis)
        kind = result_type(x._dtype, weight._dtype)
        kind = float64 if kind.kind in "biu" else kind
        weight = broadcast_to(weight.astype(kind, copy=False), x._shape)
        scale = total(weight, axis=axis, keepdims=keepdims)
        if any_of(scale == 0):
            raise ZeroDivisionError("average(): weights add up to zero, so that they can't be normalized")
        result = divide(total(multiply(x.astype(kind, copy=False), weight), axis=axis, keepdims=keepdims), scale)
    return (result, broadcast_to(scale, result._shape).copy()) if returned else result


def _weights(x: ndarray, weights: ndarray, axis: Any) -> ndarray:
    if weights._shape == x._shape:
        return weights
    if axis is None:
        raise TypeError(f"average() needs an axis where weights have another shape, {weights._shape} for {x._shape}")
    axes = shapes.normalize_axes(axis, x.ndim)
    if weights._shape != tuple(x._shape[k] for k in axes):
        raise ValueError(f"average(): weights have shape {weights._shape}; expected {x._shape}, or that of axes {axes}")
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    transposed = weights.transpose(order)
    return transposed.reshape(tuple(n if k in axes else 1 for k, n in enumerate(x._shape)))


@precompiled(FLOAT, "cov(m)")
@replayable
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    /,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
) -> ndarray:
    """Covariance matrix of variables, which are the rows of `m` (columns without `rowvar`) and of `y`; their
    columns are the observations.

    Divided by the number of observations less `ddof`, which is 1 by default, 0 with `bias`. Raises
    `ValueError` for more than 2 dimensions.

    >>> pa.cov(pa.asarray([[0.0, 2.0], [2.0, 0.0]])).tolist()
    [[2.0, -2.0], [-2.0, 2.0]]
    """
    if y is not None:
        m, y = as_array_like(m, y)
    rows = _variables("cov", m, rowvar)
    if y is not None:
        other = as_operand("cov", y, "biufc")
        # one row is one variable either way, as NumPy has it of `y`
        rows = concat([rows, _variables("cov", other, rowvar or other._shape[:1] == (1,))])
    kind = result_type(rows._dtype, float64)
    rows = rows.astype(kind, copy=False)
    dof = rows._shape[1] - (int(not bias) if ddof is None else ddof)
    centered = subtract(rows, mean(rows, axis=1, keepdims=True))
    covariance = divide(matmul(centered, conj(centered).T), float(dof) if dof > 0 else 0.0)
    return covariance.squeeze()


def _variables(name: str, m: Any, rowvar: bool) -> ndarray:
    m = as_operand(name, m, "biufc")
    if m.ndim > 2:
        raise ValueError(f"{name}() takes arrays of up to 2 dimensions, got shape {m._shape}")
    if m.ndim < 2:
        return m.reshape((1, m._size))
    return m if rowvar else m.T


@replayable
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, /, rowvar: bool = True) -> ndarray:
    """Correlation coefficients of variables as in `cov`, from -1 to 1: their covariances divided by their
    standard deviations.

    >>> pa.corrcoef(pa.asarray([[0.0, 2.0, 1.0], [4.0, 0.0, 2.0]])).round().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    covariance = cov(x, y, rowvar)
    if not covariance.ndim:
        return divide(covariance, covariance)
    n = covariance._shape[0]
    deviation = sqrt(real(covariance._view(0, (n,), (covariance._strides[0] + covariance._strides[1],))))
    scaled = divide(divide(covariance, deviation.reshape((n, 1))), deviation)
    if scaled._dtype.kind != "c":
        return clip(scaled, -1, 1)
    return add(clip(real(scaled), -1, 1), multiply(clip(imag(scaled), -1, 1), 1j))
