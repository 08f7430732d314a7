"""Piecewise linear interpolation, and products of windows along a line."""

from __future__ import annotations

import functools

from ..array import empty, ndarray
from ..dtypes import DType, complex128, float64, int64
from ..jit.kernel import Kernel, from_text


def interpolate(x: ndarray, xs: ndarray, ys: ndarray, left: float, right: float) -> ndarray:
    """NumPy's `interp`: 1-D contiguous float64 arrays, `xs` increasing and not empty."""
    out = empty(x._shape, float64, x.device)
    if out._size:
        _interpolate_kernel()(out, x, xs, ys, left, right)
    return out


@functools.cache
def _interpolate_kernel() -> Kernel:
    text = """def interpolate(out, x, xs, ys, left: float, right: float):
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
"""
    return from_text("interpolate", text, {"int64": int64})


def convolve(a: ndarray, v: ndarray, first: int, count: int) -> ndarray:
    """`sum over j of a[i - j] * v[j]` for `count` values of i from `first` on. Both are 1-D, of one dtype;
    floats are added up in float64, complex numbers in complex128."""
    out = empty(count, a._dtype, a.device)
    if count:
        _convolve_kernel(_wide(a._dtype))(out, a, v, first)
    return out


def _wide(kind: DType) -> DType:
    return {"f": float64, "c": complex128}.get(kind.kind, kind)


@functools.cache
def _convolve_kernel(wide: DType) -> Kernel:
    text = """def convolve(out, a, v, first: int):
    for t in range(out.shape[0]):
        i = first + t
        total = wide(0)
        for j in range(max(0, i - a.shape[0] + 1), min(i + 1, v.shape[0])):
            total += wide(a[i - j]) * wide(v[j])
        out[t] = total
"""
    return from_text("convolve", text, {"wide": wide})
