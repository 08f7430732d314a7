"""Kernels and fused functions as a user writes them. Elements of `out` are written one by one: operands may overlap."""

from __future__ import annotations

from typing import NamedTuple

import pyarray as pa

WEIGHTS = pa.asarray([3])  # that a fused function captures


class Pair(NamedTuple):
    first: object
    second: object


@pa.kernel
def scaled(out, x, factor):
    for i in range(out.size):
        out[i] = x[i] * factor


@pa.kernel
def combined(out, x, y, n: pa.int64, weight: pa.float64 = 0.5):
    for i in range(out.size):
        out[i] = x[i] + n * y[i] + weight


@pa.kernel
def planes(out, x):
    for i, j in pa.ndrange(*out.shape):
        out[i, j] = x[i, j] + 1


@pa.kernel
def chosen(out, x, w=None, way="sum"):
    for i in range(out.size):
        y = x[i]
        if w is not None:
            y *= w[i]
        if way == "twice":
            y *= 2
        out[i] = y


@pa.kernel
def typed(out: pa.BufferView[pa.float32], x: pa.BufferView[pa.float32], factor: pa.float32):
    for i in range(out.size):
        out[i] = x[i] * factor


@pa.kernel
def of_pairs(out, pair, power: pa.constexpr):
    for i in range(out.size):
        out[i] = (pair.first[i] + pair.second[i]) * power


@pa.fuse
def polynomial(x, y, s=2):
    return x * x * s + y * 3 + 1


@pa.fuse
def moments(x):
    return pa.sum(x, axis=-1), pa.max(x * 2, axis=-1)


@pa.fuse
def normalized(x, t=2):
    e = pa.exp(x * t - pa.max(x * t, axis=-1, keepdims=True))
    return e / pa.sum(e * (t * t + x.shape[0]), axis=-1, keepdims=True), x * WEIGHTS


@pa.fuse
def compared(x, y):
    return pa.where(x > y, x - y, y - x), x == y
