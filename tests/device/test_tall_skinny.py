"""Tall-skinny products, of many rows with a few columns, next to NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import on
from strategies import examples

import pyarray as pa
from pyarray.kernels.matmul import tall_skinny, thresholds


def of_any_size(patch):
    patch.setattr(thresholds, "TALL_SKINNY_ELEMENTS", 1)
    patch.setattr(thresholds, "TALL_SKINNY_ROWS", 0)
    patch.setattr(thresholds, "TALL_SKINNY_MANY_ROWS", 0)


@pytest.fixture
def calls(monkeypatch):
    """The columns of the tiles of products that are computed so, of however many elements."""
    found, kernel = [], tall_skinny._kernel

    def counted(tile, wide):
        found.append(tile[1])
        return kernel(tile, wide)

    monkeypatch.setattr(tall_skinny, "_kernel", counted)
    of_any_size(monkeypatch)
    return found


def drawn(rng, shape, offset, extra, dtype):
    wide = rng.integers(-4, 5, (shape[0], shape[1] + offset + extra)).astype(np.float32)
    return pa.asarray(wide, dtype=dtype)[:, offset : offset + shape[1]]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@examples(12)
@given(
    rows=st.sampled_from([5, 64, 700]),
    columns=st.integers(2, 33),
    depth=st.one_of(st.integers(1, 80), st.integers(900, 1100)),
    height=st.sampled_from([64, 128, 256]),
    offset=st.integers(0, 8),
    extra=st.integers(0, 8),
    turned=st.booleans(),
    seed=st.integers(0, 99),
)
def test_products(device, dtype, rows, columns, depth, height, offset, extra, turned, seed):
    """Integers that no sum rounds, of any layout, into a part of an array, whose other elements stay."""
    rng = np.random.default_rng(seed)
    a, b = drawn(rng, (rows, depth), offset, extra, dtype), drawn(rng, (depth, columns), extra % 3, offset % 2, dtype)
    want = pa.asnumpy(a).astype(np.float64) @ pa.asnumpy(b).astype(np.float64)
    want = pa.asnumpy(pa.asarray(want, dtype=dtype))
    a, b = (x.to_device(device) for x in (a, b))
    wide = pa.full((rows, columns + 2), 99, dtype=dtype, device=device)
    with pytest.MonkeyPatch.context() as patch:
        of_any_size(patch)
        processors = {64: 1e9, 128: rows / (192 * thresholds.TALL_SKINNY_TILES), 256: 0}[height]
        patch.setattr(tall_skinny, "_processors", lambda x: processors)
        if turned:
            np.testing.assert_array_equal(pa.asnumpy(pa.matmul(b.mT, a.mT)), want.T)
        pa.matmul(a, b, out=wide[:, 1:-1])
    np.testing.assert_array_equal(pa.asnumpy(wide[:, 1:-1]), want)
    assert (pa.asnumpy(wide[:, [0, -1]]) == 99).all()


def test_which(device, calls):
    grid = pa.get_device(device).driver.grid
    a, b, other = (on(device, np.ones(shape, np.float32)) for shape in ((50, 64), (64, 4), (50, 3)))
    assert (pa.asnumpy(a @ b) == 64).all()
    assert (pa.asnumpy(b.T @ a.T) == 64).all()
    assert calls == [8, 8] * grid
    calls.clear()
    for x, y in ((a, a.T), (a.T, other), (a[None], b[None]), (a, b[:, :1])):
        x @ y
    with pa.debug():
        assert (pa.asnumpy(a @ b) == 64).all()
    assert not calls


def test_epilogues_and_wider_results(device, calls):
    """A pass of its own applies an epilogue."""
    grid = pa.get_device(device).driver.grid
    rng = np.random.default_rng(0)
    x, y, bias = (rng.integers(-4, 5, shape) for shape in ((90, 40), (40, 10), (10,)))
    a, b, c = (pa.asarray(v, dtype="float16", device=device) for v in (x, y, bias))
    got = pa.gemm(a, b, bias=c, activation="relu")
    np.testing.assert_array_equal(pa.asnumpy(got), np.maximum(x @ y + bias, 0))
    np.testing.assert_array_equal(pa.asnumpy(pa.gemm(a, b, dtype="float32")), x @ y)
    assert calls == [16, 16] * grid


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_epilogues_of_halves_take_wide_sums(device, calls, dtype):
    """Sums beyond float16."""
    a, b = (pa.full(shape, 50, dtype=dtype, device=device) for shape in ((500, 64), (64, 10)))
    got = pa.asnumpy(pa.gemm(a, b, alpha=1 / 1024))
    np.testing.assert_array_equal(got, np.full((500, 10), 64 * 2500 / 1024).astype(got.dtype))
    assert calls == [16] * pa.get_device(device).driver.grid


def test_overlapping_results(device, calls):
    """An operand that the result overwrites is copied."""
    a = pa.asarray(np.arange(70 * 8) % 7, dtype="float32", device=device).reshape(70, 8)
    b = pa.asarray(np.arange(16) % 5, dtype="float32", device=device).reshape(8, 2)
    want = pa.asnumpy(a) @ pa.asnumpy(b)
    pa.matmul(a, b, out=a[:, :2])
    np.testing.assert_array_equal(pa.asnumpy(a[:, :2]), want)
