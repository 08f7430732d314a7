"""Matrix decompositions, inverses and solutions of equations, also of stacks of matrices, by LAPACK (`libraries`).

Bools and integers are computed as float64, float16, bfloat16 and float8 as float32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import shapes
from ...array import ndarray
from ...dtypes import bool_, complex_of, real_of, result_type
from ...typing import ArrayLike
from ..libraries.dispatch import library, promoted_for_library
from ..standard.creation import zeros
from ..standard.elementwise import greater, multiply, reciprocal
from ..standard.linear_algebra import adjoint, matmul
from ..standard.manipulation import broadcast_to
from ..standard.searching import where
from ..standard.statistical import max as largest
from ..standard.statistical import sum as total

__all__ = [
    "EigResult", "EighResult", "LinAlgError", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "det",
    "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matrix_rank", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals",
]  # fmt: skip

LinAlgError = np.linalg.LinAlgError


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: ndarray
    eigenvectors: ndarray


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: ndarray
    eigenvectors: ndarray


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: ndarray
    R: ndarray


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: ndarray
    logabsdet: ndarray


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: ndarray
    S: ndarray
    Vh: ndarray


def matrices(name: str, x: ArrayLike, square: bool = False) -> ndarray:
    """An array of matrices of a type that LAPACK knows. Raises `LinAlgError`, a `ValueError`, for others."""
    (a,) = promoted_for_library(name, x)
    if a.ndim < 2:
        raise LinAlgError(f"{name}() takes matrices, an array of 2 or more dimensions, got shape {a._shape}")
    if square and a._shape[-1] != a._shape[-2]:
        raise LinAlgError(f"{name}() takes square matrices, got shape {a._shape}")
    return a


def cholesky(x: ArrayLike, /, *, upper: bool = False) -> ndarray:
    """The lower triangular L with L @ L^H = `x`, or the `upper` one U with U^H @ U = `x`, of Hermitian
    positive definite matrices; the other triangle isn't read.

    Raises `LinAlgError` where they aren't positive definite or not square.

    >>> pa.linalg.cholesky(pa.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    a = matrices("cholesky", x, square=True)
    return adjoint(library("linalg", "cholesky", adjoint(a))) if upper else library("linalg", "cholesky", a)


def det(x: ArrayLike, /) -> ndarray:
    """Determinants of square matrices. Raises `LinAlgError` for other shapes.

    >>> round(pa.linalg.det(pa.asarray([[1.0, 2.0], [3.0, 4.0]])).item(), 9)
    -2.0
    """
    return library("linalg", "det", matrices("det", x, square=True))


def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """`sign` (of modulus 1, or 0) and `logabsdet`, the logarithm of the magnitude, of determinants. Raises
    `LinAlgError` for what is not square.

    >>> pa.linalg.slogdet(pa.asarray([[0.0, 1.0], [1.0, 0.0]])).sign.item()
    -1.0
    """
    return SlogdetResult(*library("linalg", "slogdet", matrices("slogdet", x, square=True)))


def eig(x: ArrayLike, /) -> EigResult:
    """`eigenvalues` and, in the columns of a matrix, `eigenvectors` of square matrices; always complex, in no
    particular order.

    Raises `LinAlgError` for what is not square, holds NaN or infinities, or doesn't converge.

    >>> pa.linalg.eig(pa.asarray([[2.0, 0.0], [0.0, 3.0]])).eigenvalues.tolist()
    [(2+0j), (3+0j)]
    """
    a = matrices("eig", x, square=True)
    kind = complex_of(a._dtype)
    values, vectors = library("linalg", "eig", a)
    return EigResult(values.astype(kind, copy=False), vectors.astype(kind, copy=False))


def eigvals(x: ArrayLike, /) -> ndarray:
    """Eigenvalues of square matrices, as `eig` has them.

    >>> pa.linalg.eigvals(pa.asarray([[0.0, -1.0], [1.0, 0.0]])).dtype
    dtype('complex128')
    """
    a = matrices("eigvals", x, square=True)
    return library("linalg", "eigvals", a).astype(complex_of(a._dtype), copy=False)


def eigh(x: ArrayLike, /, UPLO: str = "L") -> EighResult:
    """`eigenvalues`, real and ascending, and `eigenvectors` of Hermitian matrices, of which only the lower
    triangle is read (the upper one for `UPLO="U"`).

    Raises `LinAlgError` for what is not square or doesn't converge.

    >>> pa.linalg.eigh(pa.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    return EighResult(*library("linalg", "eigh", matrices("eigh", x, square=True), UPLO=UPLO))


def eigvalsh(x: ArrayLike, /, UPLO: str = "L") -> ndarray:
    """Eigenvalues of Hermitian matrices, as `eigh` has them.

    >>> pa.linalg.eigvalsh(pa.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return library("linalg", "eigvalsh", matrices("eigvalsh", x, square=True), UPLO=UPLO)


def inv(x: ArrayLike, /) -> ndarray:
    """Inverses of square matrices. Raises `LinAlgError` for a singular one, or what is not square.

    >>> pa.linalg.inv(pa.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return library("linalg", "inv", matrices("inv", x, square=True))


def solve(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """The X with `x1` @ X = `x2`, for square matrices `x1`; `x2` is one vector, or matrices whose stack
    broadcasts with that of `x1`.

    Raises `LinAlgError` for a singular matrix, or what is not square; `ValueError` for shapes that don't fit.

    >>> pa.linalg.solve(pa.asarray([[2.0, 0.0], [0.0, 4.0]]), pa.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    a, b = promoted_for_library("solve", x1, x2)
    a = matrices("solve", a, square=True)
    vector = b.ndim == 1
    right = b[:, None] if vector else b
    if b.ndim == 0 or a._shape[-1] != right._shape[-2]:
        raise ValueError(
            f"solve(): shapes {a._shape} and {b._shape} don't fit: matrices of {a._shape[-1]} rows take as "
            f"many on the right"
        )
    stack = shapes.broadcast_shapes(a._shape[:-2], right._shape[:-2])
    kind = result_type(a, b)
    # the libraries of GPUs don't broadcast
    both = [broadcast_to(x.astype(kind, copy=False), stack + x._shape[-2:]) for x in (a, right)]
    solution = library("linalg", "solve", *both)
    return solution[..., 0] if vector else solution


def qr(x: ArrayLike, /, mode: str = "reduced") -> QRResult:
    """`Q` with orthonormal columns and the upper triangular `R` with Q @ R = `x`; for the mode "complete" Q
    is square.

    Raises `ValueError` for another mode, `LinAlgError` for fewer than 2 dimensions.

    >>> pa.linalg.qr(pa.ones((3, 2))).Q.shape, pa.linalg.qr(pa.ones((3, 2)), mode="complete").Q.shape
    ((3, 2), (3, 3))
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr(): mode is 'reduced' or 'complete', got {mode!r}")
    return QRResult(*library("linalg", "qr", matrices("qr", x), mode=mode))


def svd(x: ArrayLike, /, full_matrices: bool = True) -> SVDResult:
    """`U`, `S` (descending) and `Vh` with U @ diag(S) @ Vh = `x`; U and Vh are square, or have as many
    columns and rows as there are singular values without `full_matrices`.

    Raises `LinAlgError` for fewer than 2 dimensions, or where it doesn't converge.

    >>> pa.linalg.svd(pa.asarray([[3.0, 0.0], [0.0, 4.0]])).S.tolist()
    [4.0, 3.0]
    """
    return SVDResult(*library("linalg", "svd", matrices("svd", x), full_matrices=full_matrices))


def svdvals(x: ArrayLike, /) -> ndarray:
    """Singular values of matrices, descending. Raises as `svd`.

    >>> pa.linalg.svdvals(pa.asarray([[3.0, 0.0], [0.0, 4.0]])).tolist()
    [4.0, 3.0]
    """
    return library("linalg", "svd", matrices("svdvals", x), compute_uv=False)


def _large(values: ndarray, rtol: Any, sides: tuple[int, ...]) -> ndarray:
    """Which singular values count: those above `rtol` (None: the longer side times the type's precision)
    times the largest."""
    kind = values._dtype
    if not values.size:
        return zeros(values._shape, dtype=bool_, device=values.device)
    if rtol is None:
        limit: Any = max(sides) * float(np.finfo(kind.numpy).eps)
    else:
        limit = rtol
        if not isinstance(rtol, (int, float)):
            (limit,) = promoted_for_library("rtol", rtol)
            limit = limit.astype(kind, copy=False)[..., None]
    return greater(values, multiply(largest(values, axis=-1, keepdims=True), limit))


def pinv(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> ndarray:
    """Moore-Penrose inverses of matrices. Singular values up to `rtol` times the largest count as 0; it is a
    number or an array of the stack's shape, None: the longer side times the type's precision.

    Raises as `svd`.

    >>> pa.linalg.pinv(pa.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    a = matrices("pinv", x)
    u, s, vh = svd(a, full_matrices=False)
    inverse = where(_large(s, rtol, a._shape[-2:]), reciprocal(s), 0.0)
    return matmul(multiply(adjoint(vh), inverse[..., None, :]), adjoint(u))


def matrix_rank(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> ndarray:
    """Ranks (int64) of matrices: how many singular values are above `rtol` times the largest; see `pinv`.

    >>> pa.linalg.matrix_rank(pa.ones((3, 3))).item()
    1
    """
    a = matrices("matrix_rank", x)
    return total(_large(svdvals(a), rtol, a._shape[-2:]), axis=-1)


def lstsq(a: ArrayLike, b: ArrayLike, /, rcond: ArrayLike | None = None) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """The X that makes ``a @ X - b`` smallest in the least-squares sense, as NumPy's: X, sums of squared
    residuals (empty for a rank below the columns), the rank (0-d) and the singular values of the matrix `a`.

    Raises `LinAlgError` for shapes that don't fit, or where it doesn't converge.

    >>> pa.linalg.lstsq(pa.asarray([[1.0], [1.0]]), pa.asarray([1.0, 3.0]))[0].shape
    (1,)
    """
    left, right = promoted_for_library("lstsq", a, b)
    kind = result_type(left, right)
    if left.ndim != 2 or right.ndim not in (1, 2) or left.shape[0] != right.shape[0]:
        what = "a matrix takes as many rows on the right"
        raise LinAlgError(f"lstsq(): shapes {left.shape} and {right.shape} don't fit: {what}")
    cast = [x.astype(kind, copy=False) for x in (left, right)]
    solution, residuals, rank, values = library("linalg", "lstsq", *cast, rcond=rcond)
    return solution, residuals, rank, values.astype(real_of(kind), copy=False)
