"""Kernels over several axes whose arrays are dense along the last one."""

import numpy as np
import pytest
from kernel_tools import agree

import pyarray as pa


@pa.kernel
def biased(out, x, by_column, by_row):
    for i, j in pa.ndrange(out.shape[0], out.shape[1]):
        out[i, j] = x[i, j] * by_row[i] + by_column[j]


@pa.kernel
def in_place(x, seen, scale):
    for i, j, k in pa.ndrange(x.shape[0], x.shape[1], x.shape[2]):
        x[i, j, k] = x[i, j, k] * scale[j] if seen[i, j, k] else scale[j]


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
@pytest.mark.parametrize("shape", [(3, 64), (5, 63), (70, 48), (2, 0)])
def test_rows_and_columns_are_broadcast(device, dtype, shape):
    x = (np.arange(shape[0] * (shape[1] + 16)).reshape(shape[0], -1) % 5).astype(dtype)
    for taken in (x[:, 16:], x[:, 3 : 3 + shape[1]], x[::-1, :-16], np.asfortranarray(x[:, 16:])):
        columns, rows = (np.arange(n).astype(dtype) % 7 for n in shape[::-1])
        agree(biased, device, np.zeros(shape, dtype), taken, columns, rows)


@pytest.mark.parametrize("shape", [(2, 3, 32), (4, 5, 6), (1, 40, 64)])
def test_a_filled_array_that_is_read(device, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    agree(in_place, device, x, x > 0, np.arange(shape[1], dtype=np.float32))
