"""Products of vectors and matrices as NumPy has them, diagonals and traces."""

from __future__ import annotations

import operator

from ... import shapes
from ...array import ndarray
from ...array_convert import asarray
from ...jit.replay import replayable
from ...typing import ArrayLike, DTypeLike
from ..core.registry import FLOAT, REAL, method, precompiled
from ..core.ufunc import as_operands
from ..standard.creation import diagonal as diagonal_view
from ..standard.elementwise import multiply, subtract
from ..standard.linear_algebra import matmul
from ..standard.manipulation import concat, moveaxis
from ..standard.statistical import as_operand
from ..standard.statistical import sum as total
from .einsum import tensordot, vecdot

# without `trace`, which in pyarray itself is also what kernels did: debug/trace.py
__all__ = ["cross", "diagonal", "dot", "inner", "kron", "outer", "vdot"]


@precompiled(FLOAT, "cross(m[:, :3], w[:, :3])")
@replayable
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> ndarray:
    """Cross products of the vectors of three elements along `axis`; the other axes broadcast.

    Raises `ValueError` for vectors of another length or shapes that don't broadcast, `TypeError` for bools.

    >>> pa.linalg.cross(pa.asarray([1, 0, 0]), pa.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    a, b = (as_operand("cross", x, "iufc") for x in as_operands("cross", (x1, x2)))
    vector_axes = [shapes.normalize_axis(axis, x.ndim) for x in (a, b)]
    if any(x._shape[k] != 3 for x, k in zip((a, b), vector_axes, strict=True)):
        raise ValueError(f"cross(): vectors have 3 elements, got shapes {a._shape} and {b._shape} for axis {axis}")
    a, b = (moveaxis(x, k, -1) for x, k in zip((a, b), vector_axes, strict=True))
    parts = [
        subtract(multiply(a[..., i], b[..., j]), multiply(a[..., j], b[..., i]))[..., None]
        for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    result = concat(parts, axis=-1)
    back = operator.index(axis)
    return moveaxis(result, -1, back if back < 0 or a.ndim == b.ndim else back - min(a.ndim, b.ndim))


@method
def diagonal(x: ArrayLike, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """The diagonal `offset` to the right of the main one of the matrices in two axes, as the last axis of a
    read-only view.

    Raises `ValueError` for fewer than 2 dimensions or equal axes, `AxisError` for one out of range.

    >>> pa.diagonal(pa.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    x = asarray(x)
    if x.ndim < 2:
        raise ValueError(f"diagonal() takes matrices, an array of 2 or more dimensions, got shape {x._shape}")
    first, second = shapes.normalize_axes((axis1, axis2), x.ndim)
    other_axes = [k for k in range(x.ndim) if k not in (first, second)]
    view = diagonal_view(x.transpose([*other_axes, first, second]), operator.index(offset))
    view.setflags(write=False)
    return view


@method
@replayable
def trace(
    x: ArrayLike,
    /,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike = None,
    out: ndarray | None = None,
) -> ndarray:
    """The sum of `diagonal`; integers are summed in 64 bits unless a `dtype` is given.

    >>> import pyarray as pa
    >>> pa.asarray([[1, 2], [3, 4]]).trace().item()
    5
    """
    return total(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


@method
@replayable
def dot(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """NumPy's dot: `matmul` of vectors and matrices, the product with a 0-d array, else the last axis of `x1`
    with the second to last of `x2`.

    >>> pa.dot(pa.ones((2, 3, 4)), pa.ones((5, 4, 6))).shape
    (2, 3, 5, 6)
    """
    a, b = (as_operand("dot", x, "biufc") for x in as_operands("dot", (x1, x2)))
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    return matmul(a, b) if b.ndim <= 2 else tensordot(a, b, axes=((-1,), (-2,)))


@replayable
def inner(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """The sum of products over the last axes, or the product with a 0-d array.

    >>> pa.inner(pa.ones((2, 4)), pa.ones((3, 4))).shape
    (2, 3)
    """
    a, b = (as_operand("inner", x, "biufc") for x in as_operands("inner", (x1, x2)))
    return tensordot(a, b, axes=((-1,), (-1,))) if a.ndim and b.ndim else multiply(a, b)


@precompiled(REAL, "outer(a, b)")
@replayable
def outer(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """The products of each element of `x1` with each of `x2`, both flattened: a matrix.

    >>> pa.outer(pa.asarray([1, 2]), pa.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    a, b = (as_operand("outer", x, "biufc") for x in as_operands("outer", (x1, x2)))
    return multiply(a.reshape(-1, 1), b.reshape(1, -1))


@replayable
def vdot(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """The sum of conj(x1) * x2 over all elements, in C order. Raises `ValueError` for sizes that differ.

    >>> pa.vdot(pa.asarray([1j]), pa.asarray([1j])).item()
    (1+0j)
    """
    a, b = (as_operand("vdot", x, "biufc") for x in as_operands("vdot", (x1, x2)))
    return vecdot(a.reshape(-1), b.reshape(-1))


@precompiled(FLOAT, "kron(m, w)")
@replayable
def kron(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """Kronecker product: each element of `x1`, times all of `x2`, in the place of the element.

    >>> pa.kron(pa.asarray([1, 10]), pa.asarray([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    a, b = (as_operand("kron", x, "biufc") for x in as_operands("kron", (x1, x2)))
    ndim = max(a.ndim, b.ndim)
    a_shape, b_shape = ((1,) * (ndim - x.ndim) + x._shape for x in (a, b))
    product = multiply(
        a.reshape([n for size in a_shape for n in (size, 1)]),
        b.reshape([n for size in b_shape for n in (1, size)]),
    )
    return product.reshape([m * n for m, n in zip(a_shape, b_shape, strict=True)])
