"""Decompositions of `linalg` on GPUs, as NumPy's functions of these names, by `solver`.

Matrices are of the libraries' types, have elements, and are square where they must be; none is overwritten.
What LAPACK reports as an error is raised: `info` of all matrices is read, for which the host waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...array import empty, ndarray
from ...array_convert import asnumpy
from ...array_hooks import operation
from ...dtypes import complex_of, int32, real_of
from ..standard.creation import arange, eye, tril, triu, zeros
from ..standard.elementwise import abs as magnitude
from ..standard.elementwise import isfinite, log, not_equal, reciprocal, sign
from ..standard.linear_algebra import adjoint, matmul
from ..standard.manipulation import broadcast_to
from ..standard.searching import where
from ..standard.statistical import prod
from ..standard.statistical import sum as total
from ..standard.utility import all as every
from . import solver

LinAlgError = np.linalg.LinAlgError


def _checked(info: ndarray, message: str) -> None:
    if np.any(asnumpy(info)):
        raise LinAlgError(message)


def _packed(x: ndarray) -> ndarray:
    return operation("contiguous")(x)


def solve(a: ndarray, b: ndarray) -> ndarray:
    """`numpy.linalg.solve` of stacks of one shape and dtype; `b` is a stack of matrices."""
    factors, right = a.copy(), b.mT.copy()
    pivots, info = solver.lu(factors)
    _checked(info, "Singular matrix")
    if right._size:
        solver.lu_solve(factors, pivots, right, "transposed")
    return _packed(right.mT)


def inv(a: ndarray) -> ndarray:
    factors = a.copy()
    pivots, info = solver.lu(factors)
    _checked(info, "Singular matrix")
    inverse = broadcast_to(eye(a._shape[-1], dtype=a._dtype, device=a.device), a._shape).copy()
    solver.lu_solve(factors, pivots, inverse, "as_is")  # each row: the transpose of the transpose's inverse
    return inverse


def _factors(a: ndarray) -> tuple[ndarray, ndarray]:
    """From the LU factorisation, for determinants: the diagonal of U, and the sign of the permutation."""
    factors = a.copy()
    pivots, _ = solver.lu(factors)
    n = a._shape[-1]
    diagonal = factors.reshape((*a._shape[:-2], n * n))[..., :: n + 1]
    moved = not_equal(pivots, arange(1, n + 1, dtype=int32, device=a.device))
    odd = total(moved.astype(int32), axis=-1) % 2
    return diagonal, (1 - 2 * odd).astype(real_of(a._dtype))


def det(a: ndarray) -> ndarray:
    diagonal, parity = _factors(a)
    return prod(diagonal, axis=-1, dtype=a._dtype) * parity


def slogdet(a: ndarray) -> tuple[ndarray, ndarray]:
    diagonal, parity = _factors(a)
    return prod(sign(diagonal), axis=-1, dtype=a._dtype) * parity, total(log(magnitude(diagonal)), axis=-1)


def cholesky(a: ndarray) -> ndarray:
    factors = a.copy()
    _checked(solver.cholesky(factors), "Matrix is not positive definite")
    return tril(factors)


def qr(a: ndarray, mode: str) -> tuple[ndarray, ndarray]:
    *stack, m, n = a._shape
    k = min(m, n)
    columns = m if mode == "complete" else k
    work = a.mT.copy()
    factors, _ = solver.qr(work)
    r = triu(work.mT[..., :columns, :])
    if columns <= n:
        q = work[..., :columns, :].copy()
    else:
        q = zeros((*stack, columns, m), dtype=a._dtype, device=a.device)
        q[..., :n, :] = work
    solver.q_of(q, factors)
    return _packed(q.mT), r


def eigh(a: ndarray, UPLO: str) -> tuple[ndarray, ndarray]:
    values, rows = _eigh(a, UPLO, True)
    return values, _packed(adjoint(rows))


def eigvalsh(a: ndarray, UPLO: str) -> ndarray:
    return _eigh(a, UPLO, False)[0]


def _eigh(a: ndarray, UPLO: str, vectors: bool) -> tuple[ndarray, ndarray]:
    if UPLO.upper() not in ("L", "U"):
        raise ValueError(f"UPLO argument must be 'L' or 'U', got {UPLO!r}")
    rows = a.copy()
    values, info = solver.eigh(rows, real_of(a._dtype), UPLO.upper() == "L", vectors)
    _checked(info, "Eigenvalues did not converge")
    return values, rows


def eig(a: ndarray) -> tuple[ndarray, ndarray]:
    values, rows = _eig(a, True)
    return values, _packed(rows.mT)


def eigvals(a: ndarray) -> ndarray:
    return _eig(a, False)[0]


def _eig(a: ndarray, vectors: bool) -> tuple[ndarray, ndarray]:
    if not bool(every(isfinite(a))):
        raise LinAlgError("Array must not contain infs or NaNs")
    values, rows, info = solver.eig(a.mT.astype(complex_of(a._dtype)).copy(), vectors)
    _checked(info, "Eigenvalues did not converge")
    return values, rows


def svd(a: ndarray, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    m, n = a._shape[-2:]
    tall = m > n  # the libraries take matrices that are not wide: a's memory is that of its transpose
    work = a.mT.copy() if tall else a.copy()
    u, values, vh, info = solver.svd(work, real_of(a._dtype), full_matrices, compute_uv)
    _checked(info, "SVD did not converge")
    if not compute_uv:
        return values
    if tall:
        return _packed(u.mT), values, _packed(vh.mT)
    return _packed(vh), values, _packed(u)


def lstsq(a: ndarray, b: ndarray, rcond: Any) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    m, n = a._shape
    u, values, vh = svd(a, False)
    precision = float(np.finfo(values._dtype.numpy).eps)
    limit = max(m, n) * precision if rcond is None else precision if rcond == -1 else float(rcond)
    counted = values > values[:1] * limit
    rank = total(counted.astype(int32))
    right = b[:, None] if b.ndim == 1 else b
    inverse = where(counted, reciprocal(values), 0.0)
    solution = matmul(adjoint(vh), inverse[:, None] * matmul(adjoint(u), right))
    residuals = empty((0,), values._dtype, a.device)
    if int(rank) == n < m:
        residuals = total(magnitude(right - matmul(a, solution)) ** 2, axis=0)
    return (solution[:, 0] if b.ndim == 1 else solution), residuals, rank, values


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (cholesky, det, eig, eigh, eigvals, eigvalsh, inv, lstsq, qr, slogdet, solve, svd)
}


def compute(name: str, arrays: tuple[ndarray, ...], options: dict[str, Any]) -> Any:
    """As NumPy's function, whose results for a first array without elements follow from shapes alone."""
    if arrays[0]._size:
        return FUNCTIONS[name](*arrays, **options)
    host_arrays = [np.zeros(x._shape, x._dtype.numpy) for x in arrays]
    return getattr(np.linalg, name)(*host_arrays, **options)
