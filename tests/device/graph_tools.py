"""Kernels and arrays of the tests of graphs."""

import numpy as np
from kernel_tools import on

import pyarray as pa


@pa.kernel
def scale(v, out, factor: pa.float32):
    for i in range(v.size):
        out[i] = v[i] * factor


@pa.kernel
def add_to(v, out):
    for i in range(v.size):
        out[i] += v[i]


def numbers(device, n=100, seed=0):
    return on(device, np.random.default_rng(seed).standard_normal(n).astype(np.float32))


def same(got, expected):
    for a, b in zip(got, expected, strict=True):
        assert pa.asnumpy(a).tobytes() == pa.asnumpy(b).tobytes()
