"""Max and min reductions of rows of float16 and bfloat16, which GPUs compute by packed instructions; softmax."""

import math

import ml_dtypes
import numpy as np
import pytest
from kernel_tools import launch

import pyarray as pa
from pyarray.lang.markers import unordered

SPECIAL = [0.0, -0.0, np.inf, -np.inf, 6e-8, -6e-8, 1e-40, -1e-40, 65504.0, -65504.0, 1.0, -1.0]


@pa.kernel
def extremes(out, x):
    for i in range(x.shape[0]):
        top, low = pa.float32(-math.inf), pa.float32(math.inf)
        for j in unordered(range(x.shape[1])):
            v = pa.float32(x[i, j])
            top = max(top, v)
        for j in unordered(range(x.shape[1])):
            low = min(low, pa.float32(x[i, j]))
        apart = pa.float32(-math.inf)
        for j in unordered(range(x.shape[1])):
            apart = max(apart, pa.float32(x[i, j]) * pa.float32(-1))
        out[i, 0], out[i, 1], out[i, 2] = top, low, apart


def drawn(rng, shape, dtype):
    """Random numbers, all of one sign in some rows, with special ones between, and NaN in every fifth row."""
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 5, shape)
    x[::3] = -np.abs(x[::3])
    x[1::3] = np.abs(x[1::3])
    places = rng.random(shape) < 0.05
    x[places] = rng.choice(SPECIAL, places.sum())
    x[::5, rng.integers(shape[1])] = math.nan
    with np.errstate(over="ignore"):
        return x.astype(dtype)


@pytest.mark.parametrize("checked", [False, True], ids=["release", "debug"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_extremes_of_rows(device, dtype, checked):
    rng = np.random.default_rng(5)
    for shape in ((11, 8), (700, 24), (12, 250), (7, 1000), (9, 2047), (6, 4096), (5, 16384), (4, 16389)):
        x = drawn(rng, shape, dtype)
        wide = x.astype(np.float32)
        want = np.stack([wide.max(1), wide.min(1), -wide.min(1)], 1)
        with pa.debug() if checked else pa.debug(False):
            out = launch(extremes, device, np.zeros_like(want), x)[0]
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_softmax_of_halves(device, dtype):
    """To the bit but where the quotient is next to the middle of two halves."""
    rng = np.random.default_rng(6)
    for shape in ((40, 24), (300, 3), (50, 25), (20, 100), (9, 511), (6, 513), (6, 1000), (5, 4096), (3, 16384)):
        x = (rng.standard_normal((shape[0], shape[1] + 1)) * 4).astype(dtype)[:, shape[1] % 2 :][:, : shape[1]]
        x[0, : shape[1] // 3] = -np.inf
        wide = x.astype(np.float64)
        e = np.exp(wide - wide.max(1, keepdims=True))
        want = e / e.sum(1, keepdims=True)
        got = pa.asnumpy(pa.special.softmax(pa.asarray(x, device=device), axis=-1))
        rounding = float(ml_dtypes.finfo(dtype).eps) / 2
        # halves below the smallest normal one are further apart
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=rounding * 1.01, atol=3.1e-8)
        total = pa.asnumpy(pa.special.logsumexp(pa.asarray(x, device=device), axis=-1)).astype(np.float64)
        np.testing.assert_allclose(total, np.log(e.sum(1)) + wide.max(1), rtol=rounding * 1.01)
