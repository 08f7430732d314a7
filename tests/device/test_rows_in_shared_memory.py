"""Rows of which a block keeps a part in registers, and the rest in shared memory."""

import dataclasses
import math

import ml_dtypes
import numpy as np
import pytest
from kernel_tools import launch
from test_kept_rows import numbers
from test_row_kernels import close

import pyarray as pa
from pyarray.driver.kernel_step import ROW_SHARED
from pyarray.lang.dialect import DIALECTS
from pyarray.lang.markers import unordered


@pytest.fixture(autouse=True)
def large_blocks(device, monkeypatch):
    """Arrays are too large for a GPU's cache, and a block asks for no more shared memory than there is."""
    driver = pa.get_device(device).driver
    if not driver.grid:
        yield
        return
    kept, driver._gpu.l2_bytes = driver._gpu.l2_bytes, 0
    if driver.most_shared() < ROW_SHARED:
        less = dataclasses.replace(DIALECTS[driver.kind], shared_rows=48 << 10)
        monkeypatch.setitem(DIALECTS, driver.kind, less)
    yield
    driver._gpu.l2_bytes = kept


@pa.kernel
def softmax(out, x):
    for i in range(out.shape[0]):
        top = pa.float32(-math.inf)
        for j in unordered(range(out.shape[1])):
            top = max(top, pa.float32(x[i, j]))
        total = pa.float32(0)
        for j in unordered(range(out.shape[1])):
            total = total + pa.exp(pa.float32(x[i, j]) - top)
        for j in unordered(range(out.shape[1])):
            out[i, j] = pa.exp(pa.float32(x[i, j]) - top) / total


@pa.kernel
def weighted(out, x, y, w):
    for i in range(out.shape[0]):
        s = x[0, 0] * 0
        for j in unordered(range(out.shape[1])):
            s = s + (x[i, j] - y[i, j])
        for j in unordered(range(out.shape[1])):
            out[i, j] = (x[i, j] + s) * w[j] - y[i, j]


@pa.kernel
def stored(out, x):
    for i in range(out.shape[0]):
        s = x[0, 0] * 0
        for j in unordered(range(out.shape[1])):
            v = x[i, j] * 2 + 1
            out[i, j] = v
            s = s + v
        for j in unordered(range(out.shape[1])):
            out[i, j] = out[i, j] * 2 - s


# registers of 1024 threads keep 128 KiB of a row, and shared memory 208, or 48
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("size", [-1, 0, 1, 4, 7, 8, 12284, 12288, 12289, 17489, 53240, 53248, 53249])
def test_softmax(device, dtype, size):
    rng, columns = np.random.default_rng(3), (32768 + size) * 4 // np.dtype(dtype).itemsize
    x = (rng.standard_normal((3, columns)) * 4).astype(dtype)
    wide = x.astype(np.float64)
    want = np.exp(wide - wide.max(1, keepdims=True))
    want /= want.sum(1, keepdims=True)
    unaligned = np.concatenate([x[:, :1], x], 1)[:, 1:]
    for rows in (x, unaligned):
        got = launch(softmax, device, np.zeros(x.shape, dtype), rows)[0]
        close(got.astype(np.float64), want, 2e-5 if dtype is np.float32 else 1e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("size", [0, 4, 5, 4096, 10001])
def test_two_arrays_and_weights(device, dtype, size):
    columns = 65536 // np.dtype(dtype).itemsize + size
    x, y, w = numbers((2, columns), dtype), numbers((2, columns), dtype)[:, ::-1].copy(), numbers(columns + 3, dtype)
    s = (x - y).sum(1, keepdims=True, dtype=dtype)
    for start in (0, 1):
        of = w[start : start + columns]
        got = launch(weighted, device, np.zeros_like(x), x, y, of)[0]
        np.testing.assert_array_equal(got, ((x + s) * of - y).astype(dtype))


@pytest.mark.parametrize("size", [0, 1, 8, 12288, 20000, 53248])
def test_elements_that_are_stored_and_loaded_again(device, size):
    x = numbers((2, 32768 + size))
    want = (x * 2 + 1) * 2 - (x * 2 + 1).sum(1, keepdims=True)
    np.testing.assert_array_equal(launch(stored, device, np.zeros_like(x), x)[0], want)
    np.testing.assert_array_equal(launch(stored, device, x.copy(), x)[0], want)
