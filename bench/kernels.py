"""`c = f * a + b` on views, in each library's own way; each function takes the library's module.

No `from __future__ import annotations` here: Quadrants and Warp evaluate annotations as globals.
"""

from collections.abc import Callable
from typing import Any


def of_pyarray(pa: Any) -> Any:
    @pa.kernel
    def scaled_sum(
        a: pa.BufferView[pa.float32],
        b: pa.BufferView[pa.float32],
        c: pa.BufferView[pa.float32],
        f: pa.float32,
    ):
        for i in range(c.size):
            c[i] = f * a[i] + b[i]

    return scaled_sum


def of_quadrants(qd: Any) -> Callable[..., Any]:
    @qd.kernel
    def scaled_sum(a: qd.BufferView[qd.f32], b: qd.BufferView[qd.f32], c: qd.BufferView[qd.f32], f: qd.f32):
        for i in range(c.size):
            c[i] = f * a[i] + b[i]

    return scaled_sum


def of_warp(wp: Any) -> Callable[..., Any]:
    @wp.kernel
    def scaled_sum(
        a: wp.array(dtype=wp.float32),
        b: wp.array(dtype=wp.float32),
        c: wp.array(dtype=wp.float32),
        f: wp.float32,
    ):
        i = wp.tid()
        c[i] = f * a[i] + b[i]

    return lambda a, b, c, f: wp.launch(scaled_sum, dim=c.shape[0], inputs=[a, b, c, f], device="cpu")


def of_numba(nb: Any) -> Callable[..., Any]:
    @nb.njit(cache=True)
    def scaled_sum(a, b, c, f):
        for i in range(c.size):
            c[i] = f * a[i] + b[i]

    return scaled_sum


def wave_of_pyarray(pa: Any) -> Callable[..., Any]:
    """`c = a*b + sin(a)*exp(-b*b)`."""

    @pa.kernel
    def wave(a: pa.BufferView[pa.float32], b: pa.BufferView[pa.float32], c: pa.BufferView[pa.float32]):
        for i in range(c.size):
            c[i] = a[i] * b[i] + pa.sin(a[i]) * pa.exp(-b[i] * b[i])

    return wave
