"""Norms of vectors and matrices, condition numbers, powers of matrices."""

from __future__ import annotations

import math
import operator
from typing import Any

from ... import shapes
from ...array import ndarray
from ...dtypes import float64, real_of
from ...jit.functions import func
from ...jit.replay import replayable
from ...kernels.reduce.reduce import SUM, ReduceOp
from ...lang.markers import kernel_math as k
from ...typing import ArrayLike, AxisLike
from ..core.ufunc import compute
from ..libraries.dispatch import promoted_for_library
from ..standard.creation import eye, zeros
from ..standard.elementwise import UFUNCS, divide, multiply, not_equal, pow
from ..standard.elementwise import abs as magnitudes
from ..standard.linear_algebra import matmul
from ..standard.manipulation import broadcast_to
from ..standard.statistical import max as largest
from ..standard.statistical import min as smallest
from ..standard.statistical import reduction
from ..standard.statistical import sum as total
from .decompositions import inv, matrices, svdvals

__all__ = ["cond", "matrix_norm", "matrix_power", "norm", "vector_norm"]


def _complex_square(x: Any) -> Any:
    return float64(k.real(x)) * float64(k.real(x)) + float64(k.imag(x)) * float64(k.imag(x))


_SQUARES, _COMPLEX_SQUARES = (
    ReduceOp("sum_of_squares", SUM.expression, 0, double_accumulator=True, transform=func(element), combine_op=SUM)
    for element in (lambda x: float64(x) * float64(x), _complex_square)
)


@replayable
def vector_norm(x: ArrayLike, /, *, axis: AxisLike = None, keepdims: bool = False, ord: float | str = 2) -> ndarray:
    """Norms of the vectors along `axis` (None: of all elements, an int, or a tuple of ints):
    (sum |x|**ord)**(1/ord), the largest |x| for inf, the smallest for -inf, the number of elements other than
    0 for an `ord` of 0.

    The result is real, of the precision of `x`. Raises `AxisError` for the axis, `TypeError` for an `ord`
    that is no real number, `ValueError` for -inf over no elements.

    >>> pa.linalg.vector_norm(pa.asarray([3.0, 4.0])).item()
    5.0
    """
    (x,) = promoted_for_library("vector_norm", x)
    if isinstance(ord, bool) or not isinstance(ord, (int, float)):
        refused = ValueError if isinstance(ord, str) else TypeError
        raise refused(f"vector_norm(): ord is a real number or an infinity, got {ord!r}")
    kind = real_of(x._dtype)
    axes = shapes.normalize_axes(axis, x.ndim)
    if ord == 2:  # the squares are float64, so that those of float32 neither overflow nor vanish
        squares = reduction(_COMPLEX_SQUARES if x._dtype.kind == "c" else _SQUARES, x, axes, keepdims, float64)
        return compute(UFUNCS["sqrt"].op, float64, kind, (squares,), None)
    if ord == 0:
        return total(not_equal(x, 0).astype(kind), axis=axes, keepdims=keepdims)
    sizes = magnitudes(x)
    if ord == math.inf:
        return _largest(sizes, axes, keepdims)
    if ord == -math.inf:
        return smallest(sizes, axis=axes, keepdims=keepdims)
    if ord == 1:
        return total(sizes, axis=axes, keepdims=keepdims)
    powers = total(pow(sizes, float(ord)), axis=axes, keepdims=keepdims)
    return pow(powers, 1.0 / ord)


def _largest(sizes: ndarray, axes: tuple[int, ...], keepdims: bool) -> ndarray:
    """0 over no elements."""
    if all(sizes._shape[n] for n in axes):
        return largest(sizes, axis=axes, keepdims=keepdims)
    reduced_shape, full = shapes.reduced(sizes._shape, axes)
    return zeros(full if keepdims else reduced_shape, dtype=sizes._dtype, device=sizes.device)


@replayable
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: float | str = "fro") -> ndarray:
    """Norms of the matrices in the last two axes: "fro" (Frobenius), "nuc" (nuclear), 1 or inf (largest sum
    of a column's or a row's magnitudes), 2 (largest singular value), or the smallest such for -1, -inf, -2.

    The result is real, of the precision of `x`. Raises `ValueError` for another `ord`, or a smallest one of
    none; `LinAlgError` for fewer than 2 dimensions.

    >>> pa.linalg.matrix_norm(pa.asarray([[1.0, -2.0], [3.0, 4.0]]), ord=1).item()
    6.0
    """
    a = matrices("matrix_norm", x)
    if ord == "fro":
        return vector_norm(a, axis=(-2, -1), keepdims=keepdims)
    if (isinstance(ord, str) and ord != "nuc") or ord not in ("nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise ValueError(f"matrix_norm(): ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")
    summed = -2 if ord in (1, -1) else -1
    values = svdvals(a) if ord in ("nuc", 2, -2) else total(magnitudes(a), axis=summed)
    last = (values.ndim - 1,)
    if ord == "nuc":
        result = total(values, axis=last)
    else:
        result = _largest(values, last, False) if float(ord) > 0 else smallest(values, axis=last)
    return result[..., None, None] if keepdims else result


def norm(x: ArrayLike, /, ord: float | str | None = None, axis: AxisLike = None, keepdims: bool = False) -> ndarray:
    """NumPy's norm: of all elements, of vectors along one axis (`vector_norm`), or of matrices in two
    (`matrix_norm`); an array of 1 or 2 dimensions with an `ord` is a vector or a matrix.

    Raises `ValueError` for an `ord` that doesn't go with the number of axes.

    >>> pa.linalg.norm(pa.asarray([[3.0, 0.0], [0.0, 4.0]]), 2).item()
    4.0
    """
    (x,) = promoted_for_library("norm", x)
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keepdims)
    axes = shapes.normalize_axes(axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError(f"norm() with an ord takes one or two axes, got {len(axes)} of shape {x._shape}")
    other_axes = [n for n in range(x.ndim) if n not in axes]
    result = matrix_norm(x.transpose([*other_axes, *axes]), ord="fro" if ord is None else ord)
    if keepdims:
        return result.reshape(shapes.reduced(x._shape, axes)[1])
    return result


def cond(x: ArrayLike, /, p: float | str | None = None) -> ndarray:
    """Condition numbers of matrices in the norm `p` (None: 2): the norm times that of the inverse; inf for a
    singular matrix, where the norm is 2 or -2.

    Raises `LinAlgError` for other norms of singular matrices, and for what is not square.

    >>> pa.linalg.cond(pa.asarray([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    a = matrices("cond", x)
    if p is None or p in (2, -2):
        values = svdvals(a)
        first, last = (values[..., 0], values[..., -1]) if p != -2 else (values[..., -1], values[..., 0])
        return divide(first, last)
    return multiply(matrix_norm(a, ord=p), matrix_norm(inv(a), ord=p))


def matrix_power(x: ArrayLike, n: int, /) -> ndarray:
    """`x` multiplied by itself `n` times, by squaring; the identity for 0, the inverse's power for a negative
    `n`. Integers stay integers, and wrap, unless `n` is negative.

    Raises `LinAlgError` for what is not square, or a negative power of a singular matrix; `TypeError` for an
    `n` that is no integer.

    >>> pa.linalg.matrix_power(pa.asarray([[1, 1], [0, 1]]), 5).tolist()
    [[1, 5], [0, 1]]
    """
    count = operator.index(n)
    checked = matrices("matrix_power", x, square=True)
    a = inv(checked) if count < 0 else x if isinstance(x, ndarray) else checked
    if count == 0:
        return broadcast_to(eye(a._shape[-1], dtype=a._dtype, device=a.device), a._shape).copy()
    count = abs(count)
    while not count & 1:
        a, count = matmul(a, a), count >> 1
    result: ndarray = a
    while count := count >> 1:
        a = matmul(a, a)
        if count & 1:
            result = matmul(result, a)
    return result.copy() if result is x else result
