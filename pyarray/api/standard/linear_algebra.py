"""Linear algebra of the main namespace: matmul, matrix_transpose."""

from __future__ import annotations

from typing import Any

from ... import dtypes, shapes
from ...array import ndarray, type_key, unchecked_array
from ...array_marks import MARKED
from ...jit.launch_state import fast_path_table, launch_state
from ...jit.replay import replayable
from ...kernels.matmul.gemm import gemm, gemm_2d_launcher
from ...kernels.reduce.dot import is_narrow, narrow_matvec
from ...memory.buffer import Buffer
from ...typing import ArrayLike
from ..core.ufunc import STRIDES, as_operands, common_device, compute_out
from .elementwise import conj
from .statistical import as_operand

__all__ = ["matmul", "matrix_transpose"]

# By mode and the type keys of two matrices of one dtype, from which the result's dtype and device follow. A
# launch reads sizes, strides and addresses of its operands; each call tests that they fit and are apart.
_plans = fast_path_table()


def quick_product(a: Any, b: Any, out: ndarray | None = None) -> ndarray | None:
    """The product of two nonempty matrices of types that were multiplied before; else None. It is written to
    `out` if that is contiguous, of the product's type and in other memory."""
    try:
        launch, dtype, key = _plans[launch_state.key, a._key, b._key]
        (m, k), (rows, n) = a._shape, b._shape
    except (KeyError, AttributeError):
        return None
    if k != rows or not m * n or a._buffer.device is not b._buffer.device:
        return None
    shape, size = (m, n), m * n
    if out is not None:
        fits = type(out) is ndarray and out._key == key and out._shape == shape
        if not fits or not (_in_other_memory(a, out) and _in_other_memory(b, out)):
            return None
        launch(a, b, out)
        return out
    buffer = Buffer.allocate(a._buffer.device, size * dtype.itemsize)
    c = unchecked_array(buffer, shape, STRIDES[dtype.itemsize][shape], size, dtype, key)
    launch(a, b, c)
    return c


def _in_other_memory(x: ndarray, out: ndarray) -> bool:
    """Whether the buffers don't overlap; buffers of other libraries' memory may."""
    memory, target = x._buffer, out._buffer
    if memory.owner is None and target.owner is None:
        return memory is not target
    return bool(memory.ptr + memory.nbytes <= target.ptr or target.ptr + target.nbytes <= memory.ptr)


def matmul(x1: ArrayLike, x2: ArrayLike, /, *, out: ndarray | None = None) -> ndarray:
    """Matrix product of (..., M, K) and (..., K, N): (..., M, N); leading axes broadcast. A 1-D operand is a
    row on the left and a column on the right, and its axis is dropped from the result. K = 0 gives zeros.

    Float16 and bfloat16 are accumulated in float32, integers wrap, bools are or-ed. CPUs that multiply pairs
    of bfloat16 (AVX-512 BF16 without AMX) take numbers below 1.2e-38 for 0 there. Raises `TypeError` for
    0-d operands and types without a common one, `ValueError` for shapes that don't fit.

    >>> pa.matmul(pa.asarray([[1, 2], [3, 4]]), pa.asarray([1, 1])).tolist()
    [3, 7]
    """
    if (product := quick_product(x1, x2, out)) is not None:
        return product
    return _matmul(x1, x2, out)


@replayable
def _matmul(x1: Any, x2: Any, out: ndarray | None) -> ndarray:
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
    gemm(target._view(0, (*batch, m, n), full), left, right)
    if a.ndim == b.ndim == 2 and a._dtype is b._dtype and launch_state.key is False and not (a._key | b._key) & MARKED:
        key = type_key(dtype, 2, False, True, target.device)
        _plans[False, a._key, b._key] = gemm_2d_launcher(dtype, target.device), dtype, key
    if target is not result:
        result[...] = target
    return result


def adjoint(x: ndarray) -> ndarray:
    """The conjugated transposes of matrices; of real ones a view."""
    return conj(x.mT) if x._dtype.kind == "c" else x.mT


def matrix_transpose(x: ndarray, /) -> ndarray:
    """The array with its last two axes exchanged; a view. Raises `ValueError` for fewer than two axes."""
    return x.mT
