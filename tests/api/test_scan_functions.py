"""Running sums and products and differences against NumPy's: axes, layouts, types, blocks, `out=`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa
from pyarray.dtypes import ALL
from pyarray.kernels.scan import scan as kernels

FEW = examples(25)


def same(ours, theirs, rtol=1e-6):
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    if theirs.dtype.kind in "fc":
        rtol = rtol if theirs.dtype.itemsize > 2 else 2e-2
        np.testing.assert_allclose(pa.asnumpy(ours).astype(complex), theirs.astype(complex), rtol=rtol, atol=1e-12)
    else:
        np.testing.assert_array_equal(pa.asnumpy(ours), theirs)


@pytest.fixture
def blocks(monkeypatch):
    """Short lines are cut into blocks as long ones are."""
    monkeypatch.setattr(kernels, "BLOCK", 8)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype(dtype):
    x = np.array([3, 1, 0, 4, 1, 5]).astype(dtype.numpy)
    a, wide = pa.asarray(x), {"b": np.int64, "i": np.int64, "u": np.uint64}.get(dtype.kind, dtype.numpy)
    for ours, theirs in ((pa.cumulative_sum, np.cumsum), (pa.cumulative_prod, np.cumprod)):
        expected = theirs(x.astype(np.complex128 if dtype.kind == "c" else np.float64)).astype(wide)
        same(ours(a), expected)
        start = np.full(1, ours is pa.cumulative_prod).astype(wide)
        same(ours(a, include_initial=True), np.concatenate([start, expected]))


@examples(13)
@given(numpy_views(dtype=pa.int16), st.data())
def test_layouts(x, data):
    a = pa.asarray(x)
    same(pa.cumsum(a), np.cumsum(x))
    if x.ndim:
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        same(pa.cumulative_sum(a, axis=axis), np.cumsum(x, axis))
        same(pa.cumprod(a, axis), np.cumprod(x, axis))
        first = data.draw(st.booleans())
        same(
            pa.cumulative_sum(a, axis=axis, include_initial=first),
            np.cumulative_sum(x, axis=axis, include_initial=first),
        )
        n = data.draw(st.integers(0, 3))
        same(pa.diff(a, n=n, axis=axis), np.diff(x, n=n, axis=axis))


@pytest.mark.parametrize("shape", [(7, 1000), (1000, 7), (3, 20, 40), (600, 30), (20, 3, 5), (1, 3000)], ids=str)
def test_forms(shape, blocks):
    x = np.random.default_rng(0).integers(-9, 9, shape)
    for dtype in ("int32", "float32"):
        y = x.astype(dtype)
        for axis in range(len(shape)):
            for z in (y, y.T.copy().T, y[..., ::-1]):
                same(pa.cumsum(pa.asarray(z), axis), np.cumsum(z, axis))
        same(pa.cumsum(pa.asarray(y.T)), np.cumsum(y.T))


@pytest.mark.parametrize("n", [1, 255, 256, 257, 32767, 32768, 32769, 500001])
def test_long_lines(n):
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    exact = np.cumsum(x.astype(np.longdouble))
    ours = np.abs(pa.asnumpy(pa.cumsum(pa.asarray(x))) - exact).max()
    theirs = np.abs(np.cumsum(x) - exact).max()
    assert ours <= max(theirs, 1e-6 * np.abs(exact).max())
    whole = np.random.default_rng(n).integers(0, 9, n)
    same(pa.cumsum(pa.asarray(whole)), np.cumsum(whole))
    same(pa.cumsum(pa.asarray(whole)[::-1]), np.cumsum(whole[::-1]))


def test_types_asked_for():
    x = np.array([200, 100, 50], np.uint8)
    same(pa.cumulative_sum(pa.asarray(x), dtype=pa.uint8), np.cumsum(x, dtype=np.uint8))
    same(pa.cumsum(pa.asarray(x), dtype="float32"), np.cumsum(x, dtype=np.float32))
    same(pa.asarray(x).cumsum(0, "int32"), np.cumsum(x, dtype=np.int32))
    same(pa.asarray(x).cumprod(), np.cumprod(x))
    same(np.cumsum(pa.asarray(x)), np.cumsum(x))


def test_out():
    x = np.arange(1.0, 13).reshape(3, 4)
    out = pa.zeros((3, 4))
    assert pa.cumsum(pa.asarray(x), 1, out=out) is out
    same(out, np.cumsum(x, 1))
    a = pa.array(x)
    pa.cumsum(a, 0, out=a)
    same(a, np.cumsum(x, 0))
    line = pa.ones(100_000)
    pa.cumsum(line, out=line[::-1])
    assert line[0].item() == 100_000
    for ours, theirs, start in ((pa.cumulative_sum, np.cumsum, 0), (pa.cumulative_prod, np.cumprod, 1)):
        memory = pa.array(np.arange(1.0, 31))
        before = memory.get()[:12].reshape(3, 4)
        out = memory[:15].reshape(3, 5)  # the initial elements are some of the operand's
        assert ours(memory[:12].reshape(3, 4), axis=1, include_initial=True, out=out) is out
        same(out, np.concatenate([np.full((3, 1), start), theirs(before, 1)], axis=1))
    with pytest.raises(ValueError, match="shape"):
        pa.cumulative_sum(pa.asarray(x), axis=0, include_initial=True, out=out)
    with pytest.raises(TypeError, match="float64"):
        pa.cumsum(pa.asarray(x), 0, out=pa.zeros((3, 4), dtype=pa.int64))


def test_nan_and_infinities():
    x = np.array([1.0, np.inf, -np.inf, 2.0, np.nan, 1.0], np.float32)
    with np.errstate(invalid="ignore"):
        same(pa.cumsum(pa.asarray(x)), np.cumsum(x))
        same(pa.cumprod(pa.asarray(x)), np.cumprod(x))


def test_empty():
    for shape, axis in (((0,), 0), ((0, 3), 0), ((3, 0), 1), ((2, 0, 3), 2)):
        x = np.ones(shape, np.float32)
        same(pa.cumulative_sum(pa.asarray(x), axis=axis), np.cumsum(x, axis))
        same(
            pa.cumulative_prod(pa.asarray(x), axis=axis, include_initial=True),
            np.cumulative_prod(x, axis=axis, include_initial=True),
        )


def test_diff():
    x = np.array([[1, 5, 2], [7, 0, 0]], np.uint8)
    a = pa.asarray(x)
    same(pa.diff(a, prepend=3), np.diff(x, prepend=3))
    same(pa.diff(a, append=1.5), np.diff(x, append=1.5))
    halves = x.astype(np.float16)
    same(pa.diff(pa.asarray(halves), append=0.1), np.diff(halves, append=0.1))  # float64, as concatenated
    assert pa.diff(pa.asarray(halves), append=1).dtype == np.float16
    same(pa.diff(a, axis=0, append=a[:1]), np.diff(x, axis=0, append=x[:1]))
    same(pa.diff(pa.asarray([1.5, 2.0]), prepend=0, append=9), np.diff([1.5, 2.0], prepend=0, append=9))
    same(pa.diff(pa.asarray([True, False, False])), np.array([True, False]))
    assert pa.diff(pa.ones(1)).shape == (0,)
    assert pa.diff(pa.ones(3), n=5).shape == (0,)
    with pytest.raises(ValueError, match="0 or more"):
        pa.diff(a, n=-1)
    with pytest.raises(ValueError, match="0-d"):
        pa.diff(pa.asarray(1))


def test_bad_input():
    a = pa.ones((2, 3))
    for function in (pa.cumulative_sum, pa.cumulative_prod):
        with pytest.raises(ValueError, match="needs an axis"):
            function(a)
        with pytest.raises(np.exceptions.AxisError):
            function(a, axis=2)
        with pytest.raises(ValueError, match="needs an axis"):
            function(pa.asarray(1.0))
        with pytest.raises(TypeError, match="complex"):
            function(a.astype("complex64"), axis=0, dtype=pa.float32)


def test_debug_gives_the_same(blocks):
    x = np.arange(600.0).reshape(6, 100)
    with pa.debug():
        for axis in (None, 0, 1):
            same(pa.cumsum(pa.asarray(x), axis), np.cumsum(x, axis))
