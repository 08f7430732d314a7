"""Split-K products, of few results that have a long depth each, next to NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.kernels.matmul import deep_products, thresholds


def drawn(rng, shape, turned, extra, dtype):
    """Small integers; `turned`: with the last two axes the other way round in memory; rows have more elements."""
    *lead, rows, columns = shape
    wide = rng.integers(-2, 3, (*lead, columns, rows + extra) if turned else (*lead, rows, columns + extra))
    array = pa.asarray(wide.astype(np.float32), dtype=dtype)
    return array[..., :rows].mT if turned else array[..., :columns]


def product(a, b):
    return np.matmul(*(pa.asnumpy(x).astype(complex if x.dtype.kind == "c" else np.float64) for x in (a, b)))


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "float64", "int32", "complex64", "int8", "float8_e4m3fn"]
)
@examples(10)
@given(
    m=st.one_of(st.integers(2, 4), st.integers(2, 40)),
    n=st.sampled_from([2, 3, 4, 16, 33, 65, 130]),
    depth=st.integers(330, 700),
    count=st.integers(2, 20),
    turned=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    extra=st.integers(0, 8),
    stack=st.sampled_from([(), (1,), (3,)]),
    broadcast=st.booleans(),
    seed=st.integers(0, 99),
)
def test_products(device, dtype, m, n, depth, count, turned, extra, stack, broadcast, seed):
    """Integers that no sum rounds, of any layout, into a part of an array, whose other elements stay."""
    rng = np.random.default_rng(seed)
    a, b = drawn(rng, (*stack, m, depth), turned[0], extra, dtype), drawn(rng, (*stack, depth, n), turned[1], 1, dtype)
    a = a[0] if stack and broadcast else a
    out = {"int8": "int32", "float8_e4m3fn": "float32"}.get(dtype, dtype)
    want = pa.asnumpy(
        pa.asarray(product(a, b), dtype=out) if out != "bfloat16" else pa.asarray(product(a, b)).astype(out)
    )
    shape = (*stack, n + 2, m) if turned[2] else (*stack, m, n + 2)
    wide = pa.full(shape, 9, dtype=out, device=device)
    wide = wide.mT if turned[2] else wide
    a, b = (x.to_device(device) for x in (a, b))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deep_products, "parts", lambda a, c: count if c.ndim == 2 + len(stack) else 1)
        if dtype == out:
            pa.matmul(a, b, out=wide[..., 1:-1])
        else:
            wide[..., 1:-1] = pa.gemm(a, b, dtype=out)
    np.testing.assert_array_equal(pa.asnumpy(wide[..., 1:-1]), want)
    assert (pa.asnumpy(wide[..., [0, -1]]) == 9).all()


@pytest.fixture
def calls(monkeypatch):
    """The parts of the products that are computed so, where launches cost nothing."""
    monkeypatch.setattr(thresholds, "DEEP_LAUNCHES_TIME", 0)
    monkeypatch.setattr(thresholds, "DEEP_PART_TIME", 0)
    for choice in (deep_products._parts_of_stack, deep_products._parts_in_tiles):
        monkeypatch.setattr(deep_products, choice.__name__, choice.__wrapped__)
    found, multiply = [], deep_products.multiply

    def counted(a, b, c, count, product):
        found.append(count)
        multiply(a, b, c, count, product)

    monkeypatch.setattr(deep_products, "multiply", counted)
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
@pytest.mark.parametrize("columns", [3, 12, 40])
def test_which(device, calls, dtype, columns):
    grid = pa.get_device(device).driver.grid
    x = pa.asarray(np.random.default_rng(0).integers(-1, 2, (40_000, columns)), dtype=dtype, device=device)[:39_997]
    want = product(x.T, x).astype(dtype)
    np.testing.assert_array_equal(pa.asnumpy(x.T @ x), want)
    assert len(calls) == grid
    assert all(count > 1 for count in calls)
    calls.clear()
    short = x[:500]
    np.testing.assert_array_equal(pa.asnumpy(short.T @ short), product(short.T, short))
    with pa.debug():
        np.testing.assert_array_equal(pa.asnumpy(x.T @ x), want)
    assert (pa.asnumpy(x[:, :1].T @ x) == want[:1]).all()
    assert (pa.asnumpy((x != 0).T @ (x != 0))).all()
    assert not calls


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("columns", [3, 40])
def test_epilogues_of_halves_take_wide_sums(device, calls, dtype, columns):
    """A sum beyond float16, and one that bfloat16 would round."""
    x = pa.full((90_000, columns), 1, dtype=dtype, device=device)
    got = pa.asnumpy(pa.gemm(x.T, x, alpha=1 / 8192))
    np.testing.assert_array_equal(got, np.full((columns, columns), 90_000 / 8192).astype(got.dtype))
    assert len(calls) == pa.get_device(device).driver.grid


def test_epilogues(device, calls):
    rng = np.random.default_rng(0)
    x, y, bias = (rng.integers(-2, 3, shape) for shape in ((20_000, 20), (20_000, 40), (40,)))
    a, b, c = (pa.asarray(v, dtype="float32", device=device) for v in (x, y, bias))
    got = pa.gemm(a.T, b, bias=c, activation="relu")
    np.testing.assert_array_equal(pa.asnumpy(got), np.maximum(x.T @ y + bias, 0))
    assert len(calls) == pa.get_device(device).driver.grid


def test_what_is_no_number(device):
    x = np.ones((30_000, 3), np.float32)
    x[20_000, 1], x[7, 2] = np.inf, np.nan
    a = pa.asarray(x, device=device)
    for n in (3, 20):
        y = pa.asarray(np.tile(x, 7)[:, :n], device=device)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(pa.asnumpy(a.T @ y), x.T @ pa.asnumpy(y))
