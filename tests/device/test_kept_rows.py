"""Kernels of rows whose loops load what an earlier loop of the iteration has stored."""

import contextlib

import numpy as np
import pytest
from kernel_tools import agree, on
from test_row_kernels import close

import pyarray as pa
from pyarray.lang.markers import unordered

SHAPES = [(1, 8), (3, 0), (3, 5), (2, 1100), (3, 2048), (9, 3000), (600, 40), (2, 4096), (1, 8192), (2, 9000)]


def numbers(shape, dtype="float32"):
    """Small integers: every order of a sum gives the same."""
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 11 % 5).astype(dtype)


@pa.kernel
def made(out, x):
    for i in range(out.shape[0]):
        s = x[0, 0] * 0
        for r in unordered(range(out.shape[1])):
            v = x[i, r] * 2 + 1
            out[i, r] = v
            s = s + v
        for r in unordered(range(out.shape[1])):
            v = out[i, r]
            out[i, r] = v + s
        for r in unordered(range(out.shape[1])):
            v = out[i, r]
            out[i, r] = v * 2 - x[i, r]


@pytest.mark.slow
@pytest.mark.parametrize("checked", [False, True], ids=["release", "debug"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex64"])
def test_made(device, dtype, checked):
    for shape in SHAPES:
        if not shape[1]:
            continue
        x = numbers(shape, dtype)
        with pa.debug() if checked else contextlib.nullcontext():
            agree(made, device, np.zeros(shape, dtype), x)
            agree(made, device, np.zeros((shape[0], shape[1] + 3), dtype)[:, 1:-2], x)


@pa.kernel
def softmax(out, x):
    for i in range(out.shape[0]):
        m = pa.float32(-pa.inf)
        for r in unordered(range(out.shape[1])):
            m = max(m, x[i, r])
        s = pa.float32(0)
        for r in unordered(range(out.shape[1])):
            e = pa.exp(x[i, r] - m)
            out[i, r] = e
            s = s + e
        for r in unordered(range(out.shape[1])):
            e = out[i, r]
            out[i, r] = e / s


@pytest.mark.parametrize("shape", [*SHAPES, (2, 17000)])
def test_softmax_of_stored_exponentials(device, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    want = np.exp(x - x.max(1, keepdims=True, initial=-np.inf))
    want /= want.sum(1, keepdims=True)
    out, there = on(device, np.zeros(shape, np.float32)), on(device, x.copy())
    softmax(out, there)
    close(pa.asnumpy(out), want, 2e-5)
    softmax(there, there)
    close(pa.asnumpy(there), want, 2e-5)


@pa.kernel
def weighted(out, more, x, w):
    for i in range(out.shape[0]):
        s = x[0, 0] * 0
        for r in unordered(range(out.shape[1])):
            v = x[i, r] + 1
            out[i, r] = v
            s = s + v
        for r in unordered(range(out.shape[1])):
            more[i, r] = out[i, r] * w[r] + s
            v = out[i, r]
            out[i, r] = v + 3


@pa.kernel
def read_between(out, x, place: int):
    for i in range(out.shape[0]):
        s = x[0, 0] * 0
        for r in unordered(range(out.shape[1])):
            v = x[i, r] + 1
            out[i, r] = v
            s = s + v
        first = out[i, place]
        for r in unordered(range(out.shape[1])):
            v = out[i, r]
            out[i, r] = v + first + s


@pa.kernel
def read_by_another_name(out, x, other, place: int):
    for i in range(out.shape[0]):
        s = x[0, 0] * 0
        for r in unordered(range(out.shape[1])):
            v = x[i, r] + 1
            out[i, r] = v
            s = s + v
        first = other[i, place]
        for r in unordered(range(out.shape[1])):
            v = out[i, r]
            out[i, r] = v + first + s


@pa.kernel
def read_by_a_view(out, x, place: int):
    named = out[:, 1:]
    for i in range(out.shape[0]):
        s = x[0, 0] * 0
        for r in unordered(range(out.shape[1])):
            v = x[i, r] + 1
            out[i, r] = v
            s = s + v
        first = named[i, place]
        for r in unordered(range(out.shape[1])):
            v = out[i, r]
            out[i, r] = v + first + s


@pa.kernel
def read_under_a_condition(out, x, other):
    for i in range(out.shape[0]):
        s = x[0, 0] * 0
        for r in unordered(range(out.shape[1])):
            v = x[i, r] + 1
            out[i, r] = v
            s = s + v
        for r in unordered(range(out.shape[1])):
            v = out[i, r]
            if r % 3 == 1:
                v = v + other[i, r]
            out[i, r] = v + s


@pa.func
def twice(a, i: int, j: int):
    return a[i, j] * 2


@pa.kernel
def read_by_a_function(out, x):
    for i in range(out.shape[0]):
        s = x[0, 0] * 0
        for r in unordered(range(out.shape[1])):
            v = x[i, r] + 1
            out[i, r] = v
            s = s + v
        for r in unordered(range(out.shape[1])):
            v = out[i, r]
            out[i, r] = v + s
        for r in unordered(range(out.shape[1])):
            v = out[i, r]
            out[i, r] = v + twice(x, i, r)


@pytest.mark.parametrize("shape", [(1, 8), (3, 2048), (2, 9000)])
def test_arrays_that_share_memory_and_other_names(device, shape):
    x, zeros, w = numbers(shape), np.zeros(shape, np.float32), numbers(shape[1:])
    agree(weighted, device, zeros, zeros, x, w)
    agree(read_between, device, zeros, x, 3)
    agree(read_by_a_view, device, zeros, x, 3)
    agree(read_by_another_name, device, zeros, x, x, 3)
    out = on(device, zeros.copy())
    read_by_another_name(out, on(device, x), out, 3)
    np.testing.assert_array_equal(pa.asnumpy(out), x + 1 + (x[:, 3:4] + 1) + (x + 1).sum(1, keepdims=True))
    agree(read_under_a_condition, device, zeros, x, x)
    out = on(device, zeros.copy())
    read_under_a_condition(out, on(device, x), out)
    more = np.where(np.arange(shape[1]) % 3 == 1, 2 * (x + 1), x + 1)
    np.testing.assert_array_equal(pa.asnumpy(out), more + (x + 1).sum(1, keepdims=True))
    agree(read_by_a_function, device, zeros, x)
    one, first = on(device, zeros[:1].copy()), x[:1] + 1
    weighted(one, on(device, zeros[:1].copy()), on(device, x[:1]), on(device, w))
    np.testing.assert_array_equal(pa.asnumpy(one), first + 3)
    # the weights are what the first loop stores
    more = on(device, zeros[:1].copy())
    weighted(one, more, on(device, x[:1]), one[0])
    np.testing.assert_array_equal(pa.asnumpy(one), first + 3)
    np.testing.assert_array_equal(pa.asnumpy(more), first * first + first.sum())
