"""Variances of rows that stay on the chip: layouts, lengths, special values, values of all sizes."""

import ml_dtypes
import numpy as np
import pytest
from kernel_tools import asnumpy, on

import pyarray as pa
from pyarray.kernels.reduce.variance_gpu import supports_variances

DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
EPS = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


def check(device, x, dtype="float32", axis=-1, **options):
    there = on(device, x.astype(DTYPES[dtype]))
    wide = asnumpy(there).astype(np.float64)
    for name in ("var", "std"):
        found = getattr(pa, name)(there, axis=axis, **options)
        want = getattr(np, name)(wide, axis=axis, **options)
        assert (found.shape, found.dtype) == (want.shape, there.dtype)
        with np.errstate(over="ignore"):
            want = want.astype(DTYPES[dtype]).astype(np.float64)
        np.testing.assert_allclose(asnumpy(found).astype(np.float64), want, rtol=EPS[dtype], atol=1e-44)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("length", [2, 3, 63, 64, 257, 1024, 1026, 4096])
def test_lengths(device, dtype, length):
    x = np.random.default_rng(length).standard_normal((5, length)) * 3 + 7
    check(device, x, dtype)
    check(device, x, dtype, keepdims=True, ddof=1)


@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-20, 1e-16, 1.0, 1e15, 1e18, 1e30])
def test_scales(device, scale):
    """Squares that float32 doesn't have are summed in float64."""
    x = np.random.default_rng(1).standard_normal((4, 600)) * scale
    check(device, x)
    check(device, np.zeros_like(x) + 3e38)
    check(device, np.float32(1e4) + x if scale == 1 else x - x[:, :1])


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_special_values_and_what_is_left_to_divide_by(device):
    x = np.ones((6, 520), np.float32)
    x[0, 3], x[1, 519], x[2, 0], x[3, :] = np.nan, np.inf, -np.inf, 0
    x[4, 7], x[5, :2] = 2, [3e38, -3e38]
    check(device, x)
    check(device, x[3:5, :2], ddof=1)
    check(device, x[3:5, :2], ddof=2)


def test_layouts(device):
    x = np.random.default_rng(2).standard_normal((3, 4, 5, 260))
    for view in (x, x[::2, ::-1], x.transpose(1, 0, 2, 3), x[:, :, :, :1], x[0, 0], x[:0]):
        for axis in (-1, (-2, -1), None, 0) if view.size else (-1,):
            check(device, view, axis=axis)
    there = on(device, np.ascontiguousarray(x[0, 0], np.float32))
    part = there[:, 1:-1]
    np.testing.assert_allclose(asnumpy(pa.var(part, axis=1)), np.var(asnumpy(part), 1), rtol=1e-5)
    out = pa.empty(5, dtype="float32", device=there.device)
    assert pa.var(there, axis=1, out=out) is out
    np.testing.assert_allclose(asnumpy(out), np.var(asnumpy(there), 1), rtol=1e-5)


def test_which_rows_stay_on_the_chip(device):
    grid = pa.get_device(device).driver.grid
    rows = pa.ones((600, 128), dtype="float32", device=device)
    assert supports_variances(rows, (1,)) == grid
    assert not supports_variances(rows, (0,))
    assert not supports_variances(rows.astype("float64"), (1,))
    assert not supports_variances(pa.ones((2, 5000), dtype="float32", device=device), (1,))
    assert not supports_variances(pa.ones((2, (1 << 16) + 1), dtype="float16", device=device), (1,))
