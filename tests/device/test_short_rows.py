"""Reductions of many short rows, of few slices, and of many rows of few columns, on grids, against NumPy."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray._core import clear_plans
from pyarray.kernels.reduce import arg_extreme, columns_gpu, reduce, softmax, variance_gpu
from pyarray.lang import emit_team_width

REDUCTIONS = ["sum", "prod", "min", "max", "any", "all", "mean", "count_nonzero"]
DTYPES = ["float32", "float16", "int8", "int64", "bool", "complex64"]
KERNELS = [
    reduce._kernel,
    softmax._kernel,
    arg_extreme._line_kernel,
    arg_extreme._packed_kernel,
    variance_gpu._rows_kernel,
    variance_gpu._shifted_kernel,
    variance_gpu._combine_kernel,
]


@contextlib.contextmanager
def values(*changes):
    """With other values of modules' variables, and kernels that are compiled with them."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in changes:
            patch.setattr(module, name, value)
        for kernel in KERNELS:
            kernel.cache_clear()
        clear_plans()
        yield
    for kernel in KERNELS:
        kernel.cache_clear()
    clear_plans()


@pytest.fixture(autouse=True, scope="module")
def few_rows_are_many():
    with values(
        (emit_team_width, "_MANY_BITS", 6),
        (reduce, "MANY_ROWS", 1),
        (reduce, "PIECE_ROWS", 4),
        (softmax, "MANY_ROWS", 1),
        (softmax, "MOST_LONG_ROWS", 2),
        (softmax, "LONG_ROW", 30),
        (columns_gpu, "LEAST", 4),
    ):
        yield


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
    with values((emit_team_width, "_MANY_BITS", 40), (softmax, "MANY_ROWS", 1 << 20), (softmax, "MOST_LONG_ROWS", 0)):
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


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool", "float64"])
@examples(8)
@given(data=st.data())
def test_columns_against_numpy(device, dtype, data):
    """Of few columns, of few rows, and of several axes that don't merge."""
    shape, axis = data.draw(
        st.one_of(
            st.tuples(st.tuples(st.integers(1, 90), st.integers(1, 9)), st.just(0)),
            st.tuples(st.tuples(st.integers(1, 9), st.integers(1, 90)), st.just(0)),
            st.tuples(
                st.tuples(st.integers(1, 4), st.integers(1, 40), st.integers(1, 5)), st.sampled_from([1, (0, 2)])
            ),
            st.tuples(
                st.tuples(st.integers(1, 4), st.integers(1, 20), st.integers(1, 4), st.integers(1, 5)),
                st.sampled_from([(0, 2, 3), (1, 2), (0, 1, 2), (1, 3)]),
            ),
        )
    )
    name = data.draw(st.sampled_from(["sum", "min", "max", "any", "count_nonzero", "argmax", "var", "std"]))
    if dtype == "bool" and name in ("var", "std"):
        name = "sum"
    if name == "argmax":
        axis = axis if isinstance(axis, int) else axis[0]
    rng = np.random.default_rng(shape[0])
    x = rng.integers(-3, 4, shape).astype(dtype)
    a = laid(x, data.draw(st.sampled_from(["rows", "columns", "steps", "negative"])), device)
    wide = x.astype(np.float64) if dtype == "float16" else x
    got, want = getattr(pa, name)(a, axis=axis), getattr(np, name)(wide, axis=axis)
    np.testing.assert_allclose(pa.asnumpy(got), want, rtol=2e-3 if dtype == "float16" else 1e-6, atol=1e-6)


@examples(6)
@given(n=st.integers(1, 80), rows=st.sampled_from([1, 3, 70, 300]), dtype=st.sampled_from(["float32", "float16"]))
def test_rows_that_are_read_twice(device, n, rows, dtype):
    x = np.random.default_rng(n).integers(-9, 9, (rows, n)).astype(dtype)
    x[rows // 2, n // 3] = np.nan if n % 5 == 0 else 9
    a = pa.asarray(x, device=device)
    for name in ("argmax", "argmin"):
        np.testing.assert_array_equal(pa.asnumpy(getattr(pa, name)(a, axis=-1)), getattr(np, name)(x, axis=-1))
    want = np.var(x.astype(np.float64), axis=-1)
    np.testing.assert_allclose(
        pa.asnumpy(pa.var(a, axis=-1)), want, rtol=3e-3 if dtype == "float16" else 1e-5, atol=1e-6
    )


@pytest.mark.parametrize(("shape", "axis"), [((300, 3), 0), ((3, 300), 0), ((4, 300, 2), 1), ((70, 3, 9), (0, 2))])
def test_variances_of_a_large_mean(device, shape, axis):
    x = (np.random.default_rng(0).normal(size=shape) + 1e4).astype(np.float32)
    want = np.var(x.astype(np.float64), axis=axis)
    np.testing.assert_allclose(pa.asnumpy(pa.var(pa.asarray(x, device=device), axis=axis)), want, rtol=1e-5)
    want = np.std(x.astype(np.float64), axis=axis, ddof=1)
    np.testing.assert_allclose(pa.asnumpy(pa.std(pa.asarray(x, device=device), axis=axis, ddof=1)), want, rtol=1e-5)
