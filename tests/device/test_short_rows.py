"""Reductions of many short rows, of which a thread of a grid takes one, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray._core import clear_plans
from pyarray.kernels.reduce import reduce

REDUCTIONS = ["sum", "prod", "min", "max", "any", "all", "mean", "count_nonzero"]
DTYPES = ["float32", "float16", "int8", "int64", "bool", "complex64"]


@pytest.fixture(autouse=True)
def any_number_of_rows(monkeypatch):
    monkeypatch.setattr(reduce, "SHORT_ROWS", 1)
    clear_plans()
    yield
    clear_plans()


def laid(x, how, device):
    """An array like `x`, which lies so."""
    if how == "columns":
        return pa.asarray(np.asfortranarray(x).T.copy(), device=device).T
    if how == "steps":
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return pa.asarray(wide, device=device)[..., ::2]
    there = pa.asarray(x[..., ::-1].copy() if how == "negative" else x, device=device)
    return there[..., ::-1] if how == "negative" else there


@pytest.mark.parametrize("debug", [False, True], ids=["release", "debug"])
@pytest.mark.parametrize("dtype", DTYPES)
@examples(5)
@given(data=st.data())
def test_against_numpy(device, dtype, debug, data):
    lead = data.draw(st.sampled_from([(1,), (5,), (300,), (3, 40), (2, 3, 4)]))
    n = data.draw(st.one_of(st.integers(1, 40), st.sampled_from([1, 2, 3, 4, 8, 16, 31, 32, 33])))
    name = data.draw(st.sampled_from(REDUCTIONS))
    if dtype == "complex64" and name in ("min", "max"):
        name = "sum"
    if dtype == "bool" and name == "mean":
        name = "sum"
    rng = np.random.default_rng(n)
    x = rng.integers(0, 2, (*lead, n)) if name in ("prod", "any", "all") else rng.integers(-3, 4, (*lead, n))
    x = x.astype(dtype)
    a = laid(x, data.draw(st.sampled_from(["rows", "columns", "steps", "negative"])), device)
    axis = data.draw(st.sampled_from([-1, x.ndim - 1, tuple(range(1, x.ndim))]))
    with pa.debug(debug):
        got = getattr(pa, name)(a, axis=axis)
    want = getattr(np, name)(x, axis=axis)
    np.testing.assert_allclose(pa.asnumpy(got), want, rtol=1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@examples(4)
@given(n=st.integers(1, 40), rows=st.sampled_from([1, 7, 300]), special=st.sampled_from([0, np.inf, -np.inf, np.nan]))
def test_softmax(device, dtype, n, rows, special):
    x = np.random.default_rng(n).normal(size=(rows, n))
    x[0, n // 2] += special
    x = x.astype(dtype)
    with np.errstate(invalid="ignore"):
        wide = x.astype("float64")
        top = wide.max(axis=1, keepdims=True)
        e = np.exp(wide - np.where(np.isfinite(top), top, 0))
        want = {
            "softmax": e / e.sum(axis=1, keepdims=True),
            "log_softmax": wide - top - np.log(e.sum(axis=1, keepdims=True)),
        }
    rows_of_numbers = np.isfinite(x).all(axis=1)
    for name, expected in want.items():
        got = pa.asnumpy(getattr(pa.special, name)(pa.asarray(x, device=device), axis=-1))
        tolerance = 2e-3 if dtype == "float16" else 2e-6
        np.testing.assert_allclose(got[rows_of_numbers], expected[rows_of_numbers], rtol=tolerance, atol=tolerance)
        by_long_rows = longer(device, name, x)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(by_long_rows))
        np.testing.assert_allclose(got, by_long_rows, rtol=tolerance, atol=tolerance)


def longer(device, name, x):
    """The same by the kernel of long rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduce, "SHORT_ROW", 0)
        clear_plans()
        return pa.asnumpy(getattr(pa.special, name)(pa.asarray(x, device=device), axis=-1))


def test_not_a_number_and_overflow(device):
    x = np.array([[1, np.nan, 2], [np.inf, -np.inf, 0], [3e38, 3e38, -3e38], [1, 2, 3]], "float32")
    a = pa.asarray(x, device=device)
    with np.errstate(all="ignore"):
        for name in ("sum", "prod", "min", "max", "mean"):
            want = getattr(np, name)(x, axis=1)
            got = pa.asnumpy(getattr(pa, name)(a, axis=1))
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=name)
            np.testing.assert_array_equal(got[3], want[3])
