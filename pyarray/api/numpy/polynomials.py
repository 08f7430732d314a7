"""Polynomials as 1-D arrays of coefficients, the highest power first: NumPy's older functions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...array import ndarray
from ...array_convert import asarray, asnumpy
from ...dtypes import float64, result_type
from ...typing import ArrayLike
from ..core.ufunc import as_array_like, device_of
from ..standard.creation import arange, ones, zeros
from ..standard.elementwise import add, divide, multiply, sqrt, square
from ..standard.manipulation import concat
from ..standard.statistical import sum as sum_of
from .calculus import convolve
from .decompositions import inv, lstsq
from .products import outer
from .sequences import vander

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots",
]  # fmt: skip


def _coefficients(name: str, *polynomials: Any) -> list[Any]:
    arrays = [p if p.ndim else p.reshape(1) for p in as_array_like(*polynomials)]
    for p in arrays:
        if p.ndim != 1:
            raise ValueError(f"{name}(): coefficients are 1-D, got shape {p.shape}")
    return arrays


def polyval(p: ArrayLike, x: ArrayLike, /) -> ndarray:
    """The polynomial with coefficients `p` at each element of `x`, by Horner's rule.

    >>> pa.polyval([1, 0, -2], pa.asarray([0.0, 2.0])).tolist()
    [-2.0, 2.0]
    """
    points, coefficients = as_array_like(x, p)
    (factors,) = _coefficients("polyval", coefficients)
    value = zeros(points.shape, result_type(factors, points), device=points.device)
    for k in range(factors.size):
        value = value * points + factors[k]
    return value


def _sum(name: str, p: Any, q: Any, sign: int) -> ndarray:
    p, q = _coefficients(name, p, q)
    size = max(p.size, q.size)
    long = [concat([zeros(size - a.size, a._dtype, device=a.device), a]) for a in (p, q)]
    return add(long[0], long[1] if sign > 0 else multiply(long[1], -1))


def polyadd(a1: ArrayLike, a2: ArrayLike, /) -> ndarray:
    """Sum of two polynomials.

    >>> pa.polyadd([1, 2], [3, 0, 0]).tolist()
    [3, 1, 2]
    """
    return _sum("polyadd", a1, a2, 1)


def polysub(a1: ArrayLike, a2: ArrayLike, /) -> ndarray:
    """Difference of two polynomials.

    >>> pa.polysub([1, 2], [3, 0, 0]).tolist()
    [-3, 1, 2]
    """
    return _sum("polysub", a1, a2, -1)


def polymul(a1: ArrayLike, a2: ArrayLike, /) -> ndarray:
    """Product of two polynomials, without leading zeros of the factors.

    >>> pa.polymul([1, 1], [1, -1]).tolist()
    [1, 0, -1]
    """
    p, q = _coefficients("polymul", a1, a2)
    return convolve(_trimmed(p), _trimmed(q))


def _trimmed(p: Any) -> ndarray:
    """Without leading zeros; their number is read from the device."""
    filled = np.flatnonzero(asnumpy(p))
    return p[int(filled[0]) :] if filled.size else p[:1] * 0


def polydiv(u: ArrayLike, v: ArrayLike, /) -> tuple[ndarray, ndarray]:
    """Quotient and remainder of two polynomials; computed on the host, since there are few coefficients.

    >>> [r.tolist() for r in pa.polydiv([1.0, 0.0, -1.0], [1.0, 1.0])]
    [[1.0, -1.0], [0.0]]
    """
    device = device_of((u, v))
    quotient, remainder = np.polydiv(asnumpy(u), asnumpy(v))
    return asarray(quotient, device=device), asarray(remainder, device=device)


def polyder(p: ArrayLike, /, m: int = 1) -> ndarray:
    """The derivative of order `m`. Raises `ValueError` for a negative order.

    >>> pa.polyder([1, 0, 5]).tolist()
    [2, 0]
    """
    (terms,) = _coefficients("polyder", p)
    for _ in range(_order("polyder", m)):
        terms = multiply(terms[:-1], arange(max(terms.size - 1, 0), 0, -1, device=terms.device))
    return terms


def _order(name: str, m: Any) -> int:
    order = operator.index(m)
    if order < 0:
        raise ValueError(f"{name}(): the order is 0 or more, got {order}")
    return order


def polyint(p: ArrayLike, /, m: int = 1, k: ArrayLike | None = None) -> ndarray:
    """The antiderivative of order `m`, with the constants `k` (a number, or one for each order; 0 unless
    given). Raises `ValueError` for a negative order or another number of constants.

    >>> pa.polyint([2.0, 0.0], k=3).tolist()
    [1.0, 0.0, 3.0]
    """
    (terms,), order = _coefficients("polyint", p), _order("polyint", m)
    constants = np.atleast_1d(0.0 if k is None else asnumpy(k)).tolist()
    constants = constants * order if len(constants) == 1 else constants
    if len(constants) < order:
        raise ValueError(f"polyint(): an antiderivative of order {order} has as many constants, got {k!r}")
    for n in range(order):
        risen = divide(terms, arange(terms.size, 0, -1, dtype=float64, device=terms.device))
        terms = concat([risen, asarray([constants[n]], device=terms.device)])
    return terms


def poly(seq_of_zeros: ArrayLike, /) -> ndarray:
    """The polynomial with these zeros and the first coefficient 1, or with a square matrix's eigenvalues;
    computed on the host. Raises `ValueError` for other shapes.

    >>> pa.poly([1.0, 2.0]).tolist()
    [1.0, -3.0, 2.0]
    """
    return asarray(np.asarray(np.poly(asnumpy(seq_of_zeros))), device=device_of((seq_of_zeros,)))


def roots(p: ArrayLike, /) -> ndarray:
    """The zeros of a polynomial: eigenvalues of its companion matrix, computed on the host. Raises
    `ValueError` for coefficients that are not 1-D.

    >>> sorted(pa.roots([1.0, -3.0, 2.0]).tolist())
    [1.0, 2.0]
    """
    return asarray(np.roots(asnumpy(p)), device=device_of((p,)))


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """Coefficients of the polynomial of degree `deg` with the least squares of `y` (1-D, or 2-D with a
    polynomial per column) from its values at the 1-D `x`, each weighted by `w`.

    With `full` also residuals, rank, singular values and `rcond`; with `cov` the covariance matrix of the
    coefficients, scaled by chi-squared over degrees of freedom, or as the weights say for "unscaled".
    Raises `ValueError` for a negative degree, `TypeError` for shapes that don't fit, as NumPy.

    >>> [round(c, 9) for c in pa.polyfit([0.0, 1.0, 2.0], [1.0, 4.0, 9.0], 2).tolist()]
    [1.0, 2.0, 1.0]
    """
    order = operator.index(deg) + 1
    if order < 1:
        raise ValueError(f"polyfit(): the degree is 0 or more, got {deg}")
    at, targets = as_array_like(x, y)
    kind = result_type(at, targets, float64) if at.itemsize > 4 or targets.itemsize > 4 else float64
    at, right = at.astype(kind), targets.astype(kind)
    if at.ndim != 1 or not at.size or right.ndim not in (1, 2):
        raise TypeError(f"polyfit() takes a 1-D x with elements and a 1-D or 2-D y, got {at.shape} and {right.shape}")
    if right.shape[0] != at.size:
        raise TypeError(f"polyfit(): x and y have equal lengths, got shapes {at.shape} and {right.shape}")
    rcond = at.size * float(np.finfo(kind.numpy).eps) if rcond is None else rcond
    matrix: Any = vander(at, order)
    if w is not None:
        matrix, right = _weighted(matrix, right, asarray(w, device=at.device))
    scale: Any = sqrt(sum_of(square(matrix), axis=0))
    solution, residuals, rank, values = lstsq(divide(matrix, scale), right, rcond)
    coefficients = divide(solution.T, scale).T
    if full:
        return coefficients, residuals, rank, values, rcond
    if not cov:
        return coefficients
    return coefficients, _covariance(divide(matrix, scale), scale, residuals, right, order, cov)


def _weighted(matrix: ndarray, right: ndarray, w: ndarray) -> tuple[ndarray, ndarray]:
    if w.shape != right.shape[:1]:
        raise TypeError(f"polyfit(): w has a weight for each y, got shapes {w.shape} and {right.shape}")
    return multiply(matrix, w[:, None]), multiply(right, w if right.ndim == 1 else w[:, None])


def _covariance(matrix: Any, scale: Any, residuals: Any, right: ndarray, order: int, cov: Any) -> ndarray:
    base = divide(inv(matrix.T @ matrix), outer(scale, scale))
    factor: Any = ones(1, device=matrix.device)
    if cov != "unscaled":
        if right.shape[0] <= order:
            raise ValueError(
                f"polyfit(): {right.shape[0]} points give no covariance of {order} coefficients; pass cov='unscaled'"
            )
        factor = divide(residuals, float(right.shape[0] - order))
    return multiply(base, factor) if right.ndim == 1 else multiply(base[:, :, None], factor)
