"""Calculus on samples: interpolation, derivatives, integrals, convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import shapes
from ...array import empty, ndarray
from ...array_convert import asarray, asnumpy
from ...array_hooks import operation
from ...dtypes import bool_, complex128, float64, int64, result_type
from ...jit.replay import replayable
from ...kernels.index.interpolation import convolve as convolve_kernel
from ...kernels.index.interpolation import interpolate
from ...typing import ArrayLike, AxisLike
from ..core.registry import FLOAT, precompiled
from ..core.ufunc import as_array_like, as_arrays
from ..standard.elementwise import add, conj, divide, imag, multiply, real, remainder, subtract
from ..standard.manipulation import concat
from ..standard.scans import diff
from ..standard.sorting import argsort
from ..standard.statistical import sum as sum_of

__all__ = ["convolve", "correlate", "gradient", "interp", "trapezoid"]


@precompiled(FLOAT, "interp(a, sort(b[:9]), a[:9])")
@replayable
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: complex | None = None,
    right: complex | None = None,
    period: float | None = None,
) -> ndarray:
    """Values at `x` (of any shape) of the piecewise linear function through the points (`xp`, `fp`), 1-D
    arrays with `xp` increasing; `left` and `right` (the first and last of `fp` unless given) outside them.

    With a `period`, points are sorted and repeated. The result is float64, or complex128. Raises `ValueError`
    for no points, for lengths that differ, and for a period of 0.

    >>> pa.interp(2.5, [1, 2, 3], [3, 2, 0]).item()
    1.0
    """
    at, xs, ys = as_arrays("interp", x, xp, fp)
    if xs.ndim != 1 or xs.shape != ys.shape or not xs.size:
        raise ValueError(
            f"interp(): xp and fp are 1-D, of one length of 1 or more, got shapes {xs.shape} and {ys.shape}"
        )
    at, xs = at.astype(float64, copy=False), xs.astype(float64, copy=False)
    if period is not None:
        period = abs(float(period))
        if not period:
            raise ValueError("interp(): the period must not be 0")
        left = right = None
        at, xs = remainder(at, period), remainder(xs, period)
        order = argsort(xs)
        xs, ys = xs[order], ys[order]
        xs = concat([xs[-1:] - period, xs, xs[:1] + period])
        ys = concat([ys[-1:], ys, ys[:1]])
    return _interp(at, xs, ys, left, right)


def _interp(at: ndarray, xs: ndarray, ys: ndarray, left: Any, right: Any) -> ndarray:
    if ys._dtype.kind == "c" or isinstance(left, complex) or isinstance(right, complex):
        both = [
            _interp(at, xs, part(ys), *(None if v is None else getattr(complex(v), name) for v in (left, right)))
            for part, name in ((real, "real"), (imag, "imag"))
        ]
        result: Any = empty(at.shape, complex128, at.device)
        result.real[...], result.imag[...] = both
        return result
    contiguous = operation("contiguous")
    ys = contiguous(ys.astype(float64, copy=False))
    ends = (float(ys[k].item()) if v is None else float(v) for k, v in ((0, left), (-1, right)))
    return interpolate(contiguous(at).reshape(at.size), contiguous(xs), ys, *ends).reshape(at.shape)


@replayable
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> ndarray:
    """Integral along `axis` of the piecewise linear function through `y`, at the points `x` (1-D, or as `y`),
    or `dx` apart.

    >>> pa.trapezoid([1, 2, 3], x=[4, 6, 8]).item()
    8.0
    """
    y, *samples = as_array_like(y, *([] if x is None else [x]))
    k = shapes.normalize_axis(axis, y.ndim)
    step: Any = dx
    for points in samples:
        step = diff(points, axis=0 if points.ndim == 1 else k)
        if points.ndim == 1:
            step = step.reshape(shapes.column_shape(k, y.ndim))
    leading = (slice(None),) * k
    pairs = add(y[(*leading, slice(1, None))], y[(*leading, slice(None, -1))])
    return sum_of(divide(multiply(pairs, step), 2.0), axis=k)


@precompiled(FLOAT, "gradient(a)", "gradient(m)")
@replayable
def gradient(f: ArrayLike, *varargs: Any, axis: AxisLike = None, edge_order: int = 1) -> Any:
    """Derivatives of samples by differences of second order inside, of `edge_order` (1 or 2) at the ends: an
    array for one axis, a tuple for several (`axis`: None for all, an int, or a tuple).

    `varargs` are the distances: none (1), one number for all axes, or for each axis a number or the 1-D
    coordinates. Integers give float64. Raises `ValueError` for too few samples or coordinates that don't fit,
    `TypeError` for another number of distances.

    >>> pa.gradient([1.0, 2.0, 4.0, 7.0]).tolist()
    [1.0, 1.5, 2.5, 3.0]
    """
    f = asarray(f)
    axes = tuple(shapes.normalize_axes(axis, f.ndim))
    if edge_order not in (1, 2):
        raise ValueError(f"gradient(): edge_order is 1 or 2, got {edge_order!r}")
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"gradient() takes no distance, one, or one for each of {len(axes)} axes")
    spacings = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    if f._dtype.kind in "biu":
        f = f.astype(float64)
    gradients = tuple(_along(f, k, _distance(f, k, h), edge_order) for k, h in zip(axes, spacings, strict=True))
    return gradients[0] if len(gradients) == 1 else gradients


def _distance(f: ndarray, axis: int, spacing: Any) -> Any:
    """The spacing along an axis: a Python number, or a NumPy array of the steps if they differ."""
    h = asnumpy(spacing)
    if h.ndim == 0:
        return h.item()
    if h.shape != (f.shape[axis],):
        raise ValueError(
            f"gradient(): coordinates of axis {axis} are 1-D, one for each of {f.shape[axis]}, got {h.shape}"
        )
    steps = np.diff(h.astype(np.float64) if h.dtype.kind in "biu" else h)
    return steps[0].item() if steps.size and (steps == steps[0]).all() else steps


def _along(f: ndarray, axis: int, h: Any, edge_order: int) -> ndarray:
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ValueError(f"gradient(): {edge_order + 1} samples or more along axis {axis}, got {n}")
    result = empty(f.shape, f._dtype, f.device)

    def part(a: ndarray, start: int | None, stop: int | None) -> ndarray:
        return a[(slice(None),) * axis + (slice(start, stop),)]

    def weighted(first: int, weights: list[Any], count: int) -> ndarray:
        """Sums of weighted neighbours, for `count` places from `first` on."""
        total: Any = None
        for k, w in enumerate(weights):
            if isinstance(w, np.ndarray):
                w = asarray(w.reshape(shapes.column_shape(axis, f.ndim)), f._dtype, device=f.device)
            term = multiply(part(f, first + k, first + k + count), w)
            total = term if total is None else add(total, term)
        return total

    if isinstance(h, np.ndarray):
        a, b = h[:-1], h[1:]
        inner = [-b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b))]
    else:
        a = b = np.asarray(h)
        inner = []
    if n > 2 and inner:
        part(result, 1, -1)[...] = weighted(0, inner, n - 2)
    elif n > 2:
        part(result, 1, -1)[...] = divide(subtract(part(f, 2, None), part(f, None, -2)), 2.0 * h)
    for position, first, (near, far) in ((0, 0, _ends(h, 0)), (n - 1, n - edge_order - 1, _ends(h, -1))):
        weights = _edge_weights(near, far, edge_order)
        weights = weights if position == 0 else [-w for w in reversed(weights)]
        part(result, position, position + 1)[...] = weighted(first, weights, 1)
    return result


def _ends(h: Any, end: int) -> tuple[float, float]:
    """The steps next to one end, the outer one first."""
    if not isinstance(h, np.ndarray):
        return h, h
    return h[end].item(), h[1 if end == 0 else -2].item() if h.size > 1 else h[end].item()


def _edge_weights(near: float, far: float, order: int) -> list[Any]:
    """Weights of the first samples for the derivative at the first one."""
    if order == 1:
        return [-1.0 / near, 1.0 / near]
    both = near + far
    return [-(2.0 * near + far) / (near * both), both / (near * far), -near / (far * both)]


def _lines(name: str, a: Any, v: Any) -> tuple[ndarray, ndarray]:
    first, second = (x if x.ndim else x.reshape(1) for x in as_arrays(name, a, v))
    if first.ndim != 1 or second.ndim != 1 or not first.size or not second.size:
        raise ValueError(
            f"{name}() takes two 1-D arrays that are not empty, got shapes {first.shape} and {second.shape}"
        )
    kind = result_type(first, second)
    return first.astype(kind, copy=False), second.astype(kind, copy=False)


_MODES = ("full", "same", "valid")


@precompiled(FLOAT, "convolve(a, b[:5])")
def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full") -> ndarray:
    """Convolution of two 1-D arrays, by its definition: all places where they overlap ("full"), as many as
    the longer one has ("same"), or those where the shorter one lies inside ("valid").

    Floats are added up in float64. Raises `ValueError` for other ranks, empty arrays, another mode.

    >>> pa.convolve([1, 2, 3], [0, 1, 0.5]).tolist()
    [0.0, 1.0, 2.5, 4.0, 1.5]
    """
    return _convolved("convolve", *_lines("convolve", a, v), mode)


def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid") -> ndarray:
    """Cross-correlation of two 1-D arrays: sums of `a[n + k] * conj(v[n])`. Modes and errors as `convolve`.

    >>> pa.correlate([1, 2, 3], [0, 1, 0.5]).tolist()
    [3.5]
    """
    first, second = _lines("correlate", a, v)
    second = conj(second) if second._dtype.kind == "c" else second
    return _convolved("correlate", first, second[::-1], mode)


def _convolved(name: str, a: ndarray, v: ndarray, mode: str) -> ndarray:
    if mode not in _MODES:
        raise ValueError(f"{name}(): mode is one of {', '.join(_MODES)}, got {mode!r}")
    short, long = sorted((a.size, v.size))
    first, count = {
        "full": (0, short + long - 1),
        "same": ((short - 1) // 2, long),
        "valid": (short - 1, long - short + 1),
    }[mode]
    if name == "correlate" and mode == "same" and a.size < v.size:
        first = short // 2  # NumPy correlates the longer one with the shorter and turns the result around
    if a._dtype is bool_:
        a, v = a.astype(int64), v.astype(int64)
        return _convolved(name, a, v, mode).astype(bool_)
    return convolve_kernel(a, v, first, count) if a.size >= v.size else convolve_kernel(v, a, first, count)
