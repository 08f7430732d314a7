"""Kernels whose loops run over tiles: the same text on every device, against NumPy."""

import numpy as np
import pytest

import pyarray as pa
from pyarray.errors import BoundsError
from pyarray.jit.launch_state import debug

M = pa.ndarray[pa.float32, 2]
V = pa.ndarray[pa.float32, 1]


@pa.kernel
def add(c: M, a: M, b: M):
    for i, j in pa.tiles(c, (4, 8)):
        c[i, j] = a[i, j] * 2 + b[j, i].T


@pa.kernel
def softmax(y: M, x: M, rows: pa.constexpr, columns: pa.constexpr):
    for i in pa.tiles(x.shape[0], rows):
        (j,) = pa.tiles(x.shape[1], columns)
        t = x[i, j]
        e = pa.exp(t - t.max(axis=1)[:, None])
        y[i, j] = e / e.sum(axis=1, keepdims=True)


@pa.kernel
def gemm(c: M, a: M, b: M, rows: pa.constexpr, columns: pa.constexpr, depth: pa.constexpr):
    for i, j in pa.tiles(c, (rows, columns)):
        acc = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[1], depth):
            acc += a[i, k] @ b[k, j]
        c[i, j] = acc


def drawn(shape, device, seed=0, strided=False):
    """An array of NumPy and the same on the device."""
    values = np.random.default_rng(seed).normal(size=shape).astype("f")
    if strided:
        return values, pa.asarray(np.ascontiguousarray(values.T), device=device).T
    return values, pa.asarray(values, device=device)


@pytest.mark.parametrize("shape", [(13, 21), (1, 1), (0, 5), (8, 8)])
def test_elementwise(device, shape):
    (a, at), (b, bt) = drawn(shape, device), drawn(shape[::-1], device, 1, strided=True)
    c = pa.empty(shape, dtype=pa.float32, device=device)
    add(c, at, bt)
    np.testing.assert_allclose(pa.asnumpy(c), a * 2 + b.T, rtol=1e-6)


@pytest.mark.parametrize(("shape", "tile"), [((13, 21), (4, 32)), ((3, 300), (1, 512)), ((40, 3), (16, 4))])
def test_softmax(device, shape, tile):
    x, xt = drawn(shape, device)
    y = pa.empty(shape, dtype=pa.float32, device=device)
    softmax(y, xt, *tile)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(pa.asnumpy(y), e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("tile", [(8, 8, 4), (16, 32, 16), (3, 5, 7), (16, 64, 8), (32, 64, 16)])
def test_product(device, tile):
    (a, at), (b, bt) = drawn((33, 21), device), drawn((21, 40), device, 1, strided=True)
    c = pa.empty((33, 40), dtype=pa.float32, device=device)
    gemm(c, at, bt, *tile)
    np.testing.assert_allclose(pa.asnumpy(c), a @ b, rtol=1e-4, atol=1e-5)


@pa.kernel
def shifted(y: V, x: V):
    for i in pa.tiles(y, 8):
        t = x[i + 1]
        y[i] = t


def test_outside_is_reported_in_debug_mode(device):
    y, x = pa.zeros(20, dtype=pa.float32, device=device), pa.ones(20, dtype=pa.float32, device=device)
    with debug(True), pytest.raises(BoundsError) as caught:
        shifted(y, x)
    assert (caught.value.argument, caught.value.index, caught.value.extent) == ("x", 20, 20)


@pytest.mark.parametrize("tile", [(8, 8, 4), (3, 5, 7)])
def test_debug_mode_agrees(device, tile):
    with debug(True):
        test_product(device, tile)
        test_softmax(device, (13, 21), (4, 32))
        test_elementwise(device, (13, 21))


def test_an_axis_longer_than_its_tile(device):
    x, y = pa.ones((2, 9), dtype=pa.float32, device=device), pa.ones((2, 9), dtype=pa.float32, device=device)
    with debug(True), pytest.raises(AssertionError) as caught:
        softmax(y, x, 1, 8)
    assert "one tile of 8 elements for an axis of 9" in str(caught.value)
