"""Kernels of `interp` and `convolve`: piecewise linear interpolation and 1-D convolution."""

from __future__ import annotations

import functools
from typing import Any

from ... import jit
from ...array import empty, ndarray
from ...dtypes import DType, complex128, float64, int64
from ..elementwise.elementwise import contiguous
from ..library_kernel import library_kernel
from ..reduce.reduce import on_grid


def interpolate(x: ndarray, xs: ndarray, ys: ndarray, left: float, right: float) -> ndarray:
    """NumPy's `interp`: 1-D contiguous float64 arrays, `xs` increasing and not empty."""
    out = empty(x._shape, float64, x.device)
    if out._size:
        interpolate_linear()(out, x, xs, ys, left, right)
    return out


@library_kernel
def interpolate_linear(out: Any, x: Any, xs: Any, ys: Any, left: float, right: float) -> None:
    for i in range(out.shape[0]):
        at = x[i]
        n = int64(xs.shape[0])
        low = int64(0)
        rest = n
        while rest > 0:
            half = (rest + 1) >> 1
            low += half * int64(xs[low + half - 1] <= at)
            rest -= half
        j = max(low - 1, 0)
        k = min(j + 1, n - 1)
        slope = (ys[k] - ys[j]) / (xs[k] - xs[j])
        y = slope * (at - xs[j]) + ys[j]
        if y != y:
            y = slope * (at - xs[k]) + ys[k]
        if y != y and ys[j] == ys[k]:
            y = ys[j]
        if at == xs[j] or k == j:
            y = ys[j]
        if at < xs[0]:
            y = left
        if at > xs[n - 1]:
            y = right
        out[i] = at if at != at and n > 1 else y


BLOCK = 512  # accumulators of a block: they and their operands fit in the first-level cache
TAPS = 8  # products that are added to an accumulator each time it is loaded


def convolve(a: ndarray, v: ndarray, first: int, count: int) -> ndarray:
    """`sum over j of a[i - j] * v[j]` for `count` values of i from `first` on, in the order of j. Both are
    1-D, of one dtype; floats are added up in float64, complex numbers in complex128."""
    kind, accumulator = a._dtype, _accumulator_type(a._dtype)
    if on_grid(a):
        out = empty(count, kind, a.device)
        if count:
            _convolve_kernel(accumulator)(out, a, v, first)
        return out
    sums = empty(count, accumulator, a.device)
    if count:
        a, v = (contiguous(x.astype(accumulator, copy=False)) for x in (a, v))
        _convolve_block_kernel(accumulator)(sums, a, v, first)
    return sums.astype(kind, copy=False)


def _accumulator_type(kind: DType) -> DType:
    return {"f": float64, "c": complex128}.get(kind.kind, kind)


# The type of the sums is all that differs in the text; sizes are arguments.
@functools.cache
def _convolve_kernel(accumulator: DType) -> jit.kernel.Kernel:
    text = """def convolve(out, a, v, first: int):
    for t in range(out.shape[0]):
        i = first + t
        total = accumulator(0)
        for j in range(max(0, i - a.shape[0] + 1), min(i + 1, v.shape[0])):
            total += accumulator(a[i - j]) * accumulator(v[j])
        out[t] = total
"""
    return jit.kernel.from_text("convolve", text, {"accumulator": accumulator})


# The type of the sums is all that differs in the text; sizes are arguments.
@functools.cache
def _convolve_block_kernel(accumulator: DType) -> jit.kernel.Kernel:
    taps = "\n".join(f"            w{n} = v[j + {n}]" for n in range(TAPS))
    total = "out[t]"
    for n in range(TAPS):
        total = f"({total} + a[first + t - j - {n}] * w{n})"
    text = f"""def convolve_blocks(out, a, v, first: int):
    for c in range((out.shape[0] + {BLOCK - 1}) // {BLOCK}):
        low = c * {BLOCK}
        high = min(low + {BLOCK}, out.shape[0])
        for t in range(low, high):
            out[t] = accumulator(0)
        inside = first + low >= v.shape[0] - 1 and first + high <= a.shape[0]
        whole = v.shape[0] // {TAPS} * {TAPS} if inside else 0
        for j in range(0, whole, {TAPS}):
{taps}
            for t in range(low, high):
                out[t] = {total}
        for j in range(whole, v.shape[0]):
            w = v[j]
            for t in range(max(low, j - first), min(high, a.shape[0] + j - first)):
                out[t] = out[t] + a[first + t - j] * w
"""
    return jit.kernel.from_text("convolve_blocks", text, {"accumulator": accumulator})
