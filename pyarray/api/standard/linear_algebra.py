"""Linear algebra of the main namespace: matmul, matrix_transpose."""

from __future__ import annotations

from ... import dtypes, shapes
from ...array import ndarray
from ...jit.replay import replayable_by_types
from ...kernels.matmul.gemm import gemm, product_plan
from ...kernels.matmul.gemm_types import check_precision
from ...kernels.reduce.dot import is_narrow, narrow_matvec
from ...memory.host_access import host_access
from ...typing import ArrayLike
from ..core.ufunc import as_operands, common_device, compute_out
from .elementwise import conj
from .statistical import as_operand

__all__ = ["matmul", "matrix_transpose"]


@replayable_by_types
def matmul(x1: ArrayLike, x2: ArrayLike, /, *, out: ndarray | None = None, precision: str | None = None) -> ndarray:
    """Matrix product of (..., M, K) and (..., K, N): (..., M, N); leading axes broadcast. A 1-D operand is a
    row on the left and a column on the right, and its axis is dropped from the result. K = 0 gives zeros.

    Float16, bfloat16 and float8 are accumulated in float32, integers wrap, bools are or-ed. CPUs that multiply pairs
    of bfloat16 (AVX-512 BF16 without AMX) take numbers below 1.2e-38 for 0 there. With `precision` "tf32"
    operands of float32 may be rounded to 11 bits, for speed, and sums stay float32: GPUs of sm_90 do so. With
    "float32" errors are at most those of float32's arithmetic; None is what the setting
    PYARRAY_FLOAT32_MATMUL_PRECISION says, by default "float32". Raises `TypeError` for 0-d operands and types
    without a common one, `ValueError` for shapes that don't fit.

    >>> pa.matmul(pa.asarray([[1, 2], [3, 4]]), pa.asarray([1, 1])).tolist()
    [3, 7]
    """
    if precision is not None:
        check_precision("matmul", precision)
    a, b = (as_operand("matmul", x, "biufc") for x in as_operands("matmul", (x1, x2)))
    if not a._shape or not b._shape:
        raise ValueError(
            f"matmul(): 0-d operands have no matrix product, got shapes {a._shape} and {b._shape}; multiply with *"
        )
    dtype = dtypes.result_type(a, b)
    rows, columns = a.ndim > 1, b.ndim > 1
    left = a if rows else a._view(0, (1, *a._shape), (0, *a._strides))
    right = b if columns else b._view(0, (*b._shape, 1), (*b._strides, 0))
    if left._shape[-1] != right._shape[-2]:
        raise ValueError(
            f"matmul(): shapes {a._shape} and {b._shape} don't fit: the last axis of the first "
            f"({left._shape[-1]}) must equal the {'second to last' if columns else 'only'} axis of the "
            f"second ({right._shape[-2]})"
        )
    batch = shapes.broadcast_shapes(left._shape[:-2], right._shape[:-2])
    m, n = left._shape[-2], right._shape[-1]
    shape = (*batch, *((m,) if rows else ()), *((n,) if columns else ()))
    result = compute_out("matmul", out, shape, dtype, common_device("matmul", [a, b]))
    target = result if out is None or out._dtype is dtype else compute_out("matmul", None, shape, dtype, result.device)
    steps = list(target._strides)
    full = (*steps[: len(batch)], steps[len(batch)] if rows else 0, steps[-1] if columns else 0)
    left, right = left.astype(dtype, copy=False), right.astype(dtype, copy=False)
    if a.ndim == 2 and not columns and out is None and is_narrow(left):
        narrow_matvec(result, left, right._view(0, right._shape[:1], right._strides[:1]))
        return result
    gemm(target._view(0, (*batch, m, n), full), left, right, precision=precision)
    if target is not result:
        result[...] = target
    elif a.ndim == b.ndim == 2 and a._dtype is b._dtype:
        _offer(a, b, out, result)
    return result


def _offer(a: ndarray, b: ndarray, out: ndarray | None, result: ndarray) -> None:
    """Offers a plan for all sizes to a capture of a product of two matrices."""
    operands = (a, b) if out is None else (a, b, out)
    if (capture := host_access.capture) is not None:
        capture.offer(operands, lambda: product_plan(a._dtype, a.device, result._key, out is not None))


def adjoint(x: ndarray) -> ndarray:
    """The conjugated transposes of matrices; of real ones a view."""
    return conj(x.mT) if x._dtype.kind == "c" else x.mT


def matrix_transpose(x: ndarray, /) -> ndarray:
    """The array with its last two axes exchanged; a view. Raises `ValueError` for fewer than two axes."""
    return x.mT
