"""Kernels of creation functions: arange, linspace, eye, tril and triu."""

from __future__ import annotations

import functools
from typing import Any

from ... import jit, shapes
from ...array import empty, ndarray
from ...dtypes import DType, uint64
from ...lang.markers import constexpr, kernel_math, ndrange
from ..library_kernel import library_kernel
from ..scan.nonzero import unsigned_view


def ramp(out: ndarray, first: Any, second: Any) -> None:
    """`out[i] = first + i * (second - first)`, in `out`'s arithmetic: modulo its width for integers, in
    float32 for halves. `out[1]` is `second` itself, which the sum rounds away from when `first` is large.
    """
    if out._size:
        if out._dtype is uint64:  # numbers that no annotation makes unsigned are int64
            first, second = ((x ^ 1 << 63) - (1 << 63) for x in (first, second))
        ramp_numbers()(out, first, second, _arithmetic(out._dtype))


def line(out: ndarray, start: Any, stop: Any, step: Any, divisor: float, endpoint: bool) -> None:
    """`out[i] = start + i * step`, rounded down for integers; the last one is `stop` if `endpoint`.

    Computed in float64, or complex128 for complex numbers. A step of 0 is an underflow of (stop - start) /
    divisor; then i is divided first, as in NumPy.
    """
    by = stop - start if step == 0 else step
    line_numbers()(out, start, stop, by, divisor, out._size - 1 if endpoint else -1, step == 0)


def diagonal_ones(out: ndarray, k: int) -> None:
    """`out[i, j] = 1` where j - i = k, else 0."""
    if out._size:
        ones_on_diagonal()(out, _clamped_diagonal(k, out))


def triangle(x: ndarray, k: int, lower: bool) -> ndarray:
    """A new array with the elements of `x` at j - i <= k (`lower`) or j - i >= k, and 0 elsewhere; i, j are
    the last two axes.
    """
    out = empty(x._shape, x._dtype, x.device)
    if out._size:
        lead, (into, source) = shapes.collapse(x._shape[:-2], out._strides[:-2], x._strides[:-2])
        last = x._shape[-2:]
        kernel = _triangle_kernel(len(lead), lower)
        kernel(
            unsigned_view(out)._view(0, lead + last, into + out._strides[-2:]),
            unsigned_view(x)._view(0, lead + last, source + x._strides[-2:]),
            _clamped_diagonal(k, x),
        )
    return out


def _clamped_diagonal(k: int, x: ndarray) -> int:
    """Diagonal `k`, clamped to one just outside of the matrix: further ones may not fit into 64 bits."""
    return max(-x._shape[-2], min(k, x._shape[-1]))


def _arithmetic(dtype: DType) -> DType:
    return uint64 if dtype.kind in "biu" else dtype.arithmetic


@library_kernel
def ramp_numbers(out: ndarray, first: Any, second: Any, kind: constexpr) -> None:
    for i in range(out.shape[0]):
        out[i] = kind(second) if i == 1 else kind(first) + kind(i) * (kind(second) - kind(first))


@library_kernel
def line_numbers(out: ndarray, start: Any, stop: Any, step: Any, divisor: float, last: int, divided: constexpr) -> None:
    for i in range(out.shape[0]):
        x = (start.dtype(i) / start.dtype(divisor) if divided else start.dtype(i)) * step + start
        if i == last:
            x = stop
        out[i] = kernel_math.floor(x) if out.dtype.kind == "i" or out.dtype.kind == "u" else x


@library_kernel
def ones_on_diagonal(out: Any, offset: int) -> None:
    for i, j in ndrange(out.shape[0], out.shape[1]):
        out[i, j] = 1 if j - i == offset else 0


# Leading axes and the side are all that differs in the text; dtypes are in its variants' keys.
@functools.cache
def _triangle_kernel(lead: int, lower: bool) -> jit.kernel.Kernel:
    names = [*(f"p{n}" for n in range(lead)), "i", "j"]
    at = ", ".join(names)
    text = f"""def triangle(out, x, offset: int):
    for {at} in ndrange({", ".join(f"out.shape[{n}]" for n in range(lead + 2))}):
        out[{at}] = x[{at}] if j - i {"<=" if lower else ">="} offset else 0
"""
    return jit.kernel.from_text("triangle", text, {"ndrange": ndrange})
