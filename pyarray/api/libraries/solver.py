"""Factorisations by cuSOLVER and cuBLAS, or AMD's libraries, in place.

Matrices are stacks without gaps, the last axis running along the columns: what the libraries, which count
along the columns first, take for the transposed matrix. Each function says which of the two it factors. All
give `info`, int32, one number per matrix, 0 where all went well.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

from ...array import empty, ndarray
from ...dtypes import DType, int32, uint8, uint64
from ..standard.creation import arange
from .bindings import call, constant, handle, opened, working

BATCHED = 512  # rows: larger matrices of a stack are factored one after the other, which then is faster
JACOBI = 32  # rows and columns: the limit of the libraries' batched Jacobi methods


def _empty_like(like: ndarray, shape: tuple[int, ...], dtype: DType | None = None) -> ndarray:
    return empty(shape, dtype or like._dtype, like.device)


def _count(a: ndarray) -> int:
    return math.prod(a._shape[:-2])


def _addresses(a: ndarray) -> ndarray:
    """The address of each matrix, on the device."""
    step = a._shape[-1] * a._shape[-2] * a.itemsize
    end = a._ptr + _count(a) * step
    return arange(a._ptr, end, step, dtype=uint64, device=a.device)


def _each(*arrays: ndarray) -> Any:
    """The addresses of each matrix' block in every array. The number of blocks is that of the first array's
    elements."""
    count = arrays[0]._size
    sizes = [x._size // count * x.itemsize for x in arrays]
    for k in range(count):
        yield [x._ptr + k * size for x, size in zip(arrays, sizes, strict=True)]


def _complex(a: ndarray) -> bool:
    return a._dtype.kind == "c"


def lu(a: ndarray) -> tuple[ndarray, ndarray]:
    """Replaces the transposes of square matrices `a` by their factors L and U. Gives the pivots, int32 and
    counted from 1, and `info`."""
    n, count = a._shape[-1], _count(a)
    pivots, info = _empty_like(a, (*a._shape[:-2], n), int32), _empty_like(a, (count,), int32)
    if count > 1 and n <= BATCHED:
        addresses = _addresses(a)
        with opened("blas", a, pivots, info, addresses) as lib:
            lib("getrf_batched", n, addresses._ptr, n, pivots._ptr, info._ptr, count)
        return pivots, info
    with opened("solver", a, pivots, info) as lib:
        work = _empty_like(a, (lib("getrf_buffer_size", n, n, a._ptr, n),))
        with working(work):
            for ok, matrix, pivot in _each(info, a, pivots):
                lib("getrf", n, n, matrix, n, work._ptr, pivot, ok)
    return pivots, info


def lu_solve(a: ndarray, pivots: ndarray, b: ndarray, how: str) -> None:
    """Replaces each row of `b` by the solution for it, `a` and `pivots` being of `lu`: of the matrix that was
    given there for `how` "transposed", of its transpose for "as_is"."""
    n, right, count = a._shape[-1], b._shape[-2], _count(a)
    trans = constant(a.device.kind, how)
    if count > 1 and n <= BATCHED:
        wrong, left, addresses = ctypes.c_int(0), _addresses(a), _addresses(b)
        with opened("blas", a, pivots, b, left, addresses) as lib:
            at = ctypes.addressof(wrong)
            lib("getrs_batched", trans, n, right, left._ptr, n, pivots._ptr, addresses._ptr, n, at, count)
        return
    info = _empty_like(a, (count,), int32)
    with opened("solver", a, pivots, b, info) as lib:
        for ok, matrix, pivot, rows in _each(info, a, pivots, b):
            lib("getrs", trans, n, right, matrix, n, pivot, rows, n, ok)


def cholesky(a: ndarray) -> ndarray:
    """Replaces the lower triangles of Hermitian matrices by their factors; the others are left as they are.
    Gives `info`."""
    n, count = a._shape[-1], _count(a)
    info = _empty_like(a, (count,), int32)
    upper = constant(a.device.kind, "upper")  # of the transpose
    if count > 1 and n <= BATCHED:
        addresses = _addresses(a)
        with opened("solver", a, info, addresses) as lib:
            lib("potrf_batched", upper, n, addresses._ptr, n, info._ptr, count)
        return info
    with opened("solver", a, info) as lib:
        size = lib("potrf_buffer_size", upper, n, a._ptr, n)
        work = _empty_like(a, (size,))
        with working(work):
            for ok, matrix in _each(info, a):
                lib("potrf", upper, n, matrix, n, work._ptr, size, ok)
    return info


def qr(a: ndarray) -> tuple[ndarray, ndarray]:
    """Replaces the transposes of matrices `a` by R and the reflectors below it. Gives the factors of the
    reflectors and `info`."""
    n, m = a._shape[-2:]
    info, factors = _empty_like(a, (_count(a),), int32), _empty_like(a, (*a._shape[:-2], min(m, n)))
    with opened("solver", a, factors, info) as lib:
        size = lib("geqrf_buffer_size", m, n, a._ptr, m)
        work = _empty_like(a, (size,))
        with working(work):
            for ok, matrix, tau in _each(info, a, factors):
                lib("geqrf", m, n, matrix, m, tau, work._ptr, size, ok)
    return factors, info


def q_of(a: ndarray, factors: ndarray) -> ndarray:
    """Replaces reflectors of `qr`, as many as there are `factors`, by the transposed Q, with as many rows as
    `a`. Gives `info`."""
    n, m = a._shape[-2:]
    k, name = factors._shape[-1], "ungqr" if _complex(a) else "orgqr"
    info = _empty_like(a, (_count(a),), int32)
    with opened("solver", a, factors, info) as lib:
        size = lib(f"{name}_buffer_size", m, n, k, a._ptr, m, factors._ptr)
        work = _empty_like(a, (size,))
        with working(work):
            for ok, matrix, tau in _each(info, a, factors):
                lib(name, m, n, k, matrix, m, tau, work._ptr, size, ok)
    return info


def eigh(a: ndarray, real: DType, lower: bool, vectors: bool) -> tuple[ndarray, ndarray]:
    """Eigenvalues, ascending, of Hermitian matrices of which one triangle is read, and `info`. `a` is
    replaced by eigenvectors of its transpose, one in each row."""
    n, count, device = a._shape[-1], _count(a), a.device
    values, info = _empty_like(a, (*a._shape[:-2], n), real), _empty_like(a, (count,), int32)
    name, batched = ("heevd", "heevj_batched") if _complex(a) else ("syevd", "syevj_batched")
    job = constant(device.kind, "vectors" if vectors else "values")
    triangle = constant(device.kind, "upper" if lower else "lower")  # of the transpose
    with opened("solver", a, values, info) as lib:
        if count > 1 and n <= JACOBI:
            setting = call(device, "solver", "create_syevj_info")
            size = lib(f"{batched}_buffer_size", job, triangle, n, a._ptr, n, values._ptr, setting, count)
            work = _empty_like(a, (size,))
            with working(work):
                lib(
                    batched, job, triangle, n, a._ptr, n, values._ptr, work._ptr, size, info._ptr, setting,
                    count,
                )  # fmt: skip
            call(device, "solver", "destroy_syevj_info", setting)
            return values, info
        size = lib(f"{name}_buffer_size", job, triangle, n, a._ptr, n, values._ptr)
        work = _empty_like(a, (size,))
        with working(work):
            for ok, matrix, eigenvalues in _each(info, a, values):
                lib(name, job, triangle, n, matrix, n, eigenvalues, work._ptr, size, ok)
    return values, info


def svd(a: ndarray, real: DType, full: bool, vectors: bool) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """Of the transposes A of matrices `a`, which have as many rows as columns or more and are overwritten,
    with A = U S Vh: the transposed U (square if `full`), S, the transposed Vh, and `info`."""
    n, m = a._shape[-2:]
    stack, count = a._shape[:-2], _count(a)
    values, info = _empty_like(a, (*stack, n), real), _empty_like(a, (count,), int32)
    if count > 1 and m <= JACOBI:
        return _small_svd(a, values, info, full, vectors)
    rows = (m if full else n) if vectors else 0
    u, vh = _empty_like(a, (*stack, rows, m)), _empty_like(a, (*stack, n if vectors else 0, n))
    job = ord("N" if not vectors else "A" if full else "S")
    with opened("solver", a, values, u, vh, info) as lib:
        size = lib("gesvd_buffer_size", m, n)
        work = _empty_like(a, (size,))
        with working(work):
            for ok, matrix, s, left, right in _each(info, a, values, u, vh):
                lib("gesvd", job, job, m, n, matrix, m, s, left, m, right, n, work._ptr, size, 0, ok)
    return u, values, vh, info


def _small_svd(
    a: ndarray, values: ndarray, info: ndarray, full: bool, vectors: bool
) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    n, m = a._shape[-2:]
    stack, count, device = a._shape[:-2], _count(a), a.device
    u, v = _empty_like(a, (*stack, m, m)), _empty_like(a, (*stack, n, n))
    job = constant(device.kind, "vectors" if vectors else "values")
    with opened("solver", a, values, u, v, info) as lib:
        setting = call(device, "solver", "create_gesvdj_info")
        args = (job, m, n, a._ptr, m, values._ptr, u._ptr, m, v._ptr, n)
        size = lib("gesvdj_batched_buffer_size", *args, setting, count)
        work = _empty_like(a, (size,))
        with working(work):
            lib("gesvdj_batched", *args, work._ptr, size, info._ptr, setting, count)
        call(device, "solver", "destroy_gesvdj_info", setting)
    # the libraries give V here, not its adjoint
    vh = v.mT.conj() if _complex(a) else v.mT
    return (u if full else u[..., :n, :]), values, vh, info


def eig(a: ndarray, vectors: bool) -> tuple[ndarray, ndarray, ndarray]:
    """Of the transposes of complex matrices `a`, which are overwritten: eigenvalues, eigenvectors, one in
    each row, and `info`."""
    n, device = a._shape[-1], a.device
    values = _empty_like(a, a._shape[:-1])
    right = _empty_like(a, a._shape if vectors else (*a._shape[:-2], 0, 0))
    info, kind = _empty_like(a, (_count(a),), int32), constant(device.kind, a._dtype.name)
    jobs = (constant(device.kind, "values"), constant(device.kind, "vectors" if vectors else "values"))
    with handle(device, "solver") as solver, working(a, values, right, info):
        params = call(device, "solver", "create_params")
        for ok, matrix, w, v in _each(info, a, values, right):
            args = (solver, params, *jobs, n, kind, matrix, n, kind, w, kind, 0, n, kind, v, n, kind)
            device_bytes, host_bytes = call(device, "solver", "xgeev_buffer_size", *args)
            work = _empty_like(a, (max(1, device_bytes),), uint8)
            host = ctypes.create_string_buffer(max(1, host_bytes))
            with working(work):
                at = ctypes.addressof(host)
                call(device, "solver", "xgeev", *args, work._ptr, device_bytes, at, host_bytes, ok)
                device.driver.synchronize()  # the host's work space ends here
        call(device, "solver", "destroy_params", params)
    return values, right, info
