"""Variances, weighted means and covariances against NumPy's: axes, layouts, types, rounding, options."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa
from pyarray.dtypes import ALL

FEW = examples(20)


def same(ours, theirs, rtol=1e-6):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    rtol = {2: 2e-2, 4: max(rtol, 1e-5)}.get(theirs.dtype.itemsize, rtol)
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(pa.asnumpy(ours).astype(wide), theirs.astype(wide), rtol=rtol, atol=1e-9)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype(dtype):
    x = np.array([3, 1, 0, 4, 1, 5]).astype(dtype.numpy)
    z = x + x[::-1] * dtype.numpy.type(1j) if dtype.kind == "c" else x
    rtol = {1: 0.15, 2: 1e-2}[dtype.itemsize] if dtype.is_narrow else 1e-6
    for name in ("var", "std")[ALL.index(dtype) % 2 :: 2]:
        found = getattr(pa, name)(pa.asarray(z))
        real = {"complex64": pa.float32, "complex128": pa.float64}.get(dtype.name, dtype.numpy)
        assert found.dtype == (pa.float64 if dtype.kind in "biu" else real)
        wide = z.astype(np.complex128 if dtype.kind == "c" else np.float64)
        np.testing.assert_allclose(found.item(), getattr(np, name)(wide), rtol=rtol)


@examples(10)
@given(numpy_views(dtype=pa.float32), st.data())
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_layouts(x, data):
    a = pa.asarray(x)
    axis = None
    if x.ndim:
        axis = data.draw(st.none() | st.sets(st.integers(0, x.ndim - 1)).map(tuple))
    keepdims, correction = data.draw(st.booleans()), data.draw(st.sampled_from([0, 1, 0.5, 3]))
    for name in ("var", "std"):
        theirs = getattr(np, name)(x.astype(np.float64), axis=axis, keepdims=keepdims, ddof=correction)
        ours = getattr(pa, name)(a, axis=axis, keepdims=keepdims, correction=correction)
        same(ours, np.asarray(theirs).astype(np.float32))
    if x.size:
        same(pa.ptp(a, axis=axis, keepdims=keepdims), np.ptp(x, axis=axis, keepdims=keepdims))


def test_long():
    x = (np.random.default_rng(0).standard_normal((3, 200_001)) + 1e4).astype(np.float32)
    for axis in (None, 0, 1):
        theirs = np.var(x.astype(np.float64), axis=axis).astype(np.float32)
        same(pa.var(pa.asarray(x), axis=axis), theirs, rtol=1e-6)
        same(
            pa.std(pa.asarray(x.T), axis=axis, ddof=1),
            np.std(x.T.astype(np.float64), axis=axis, ddof=1).astype(np.float32),
        )
    same(pa.var(pa.asarray(x[:, ::3])), np.var(x[:, ::3].astype(np.float64)).astype(np.float32))
    whole = np.random.default_rng(0).integers(0, 99, 100_000)
    same(pa.std(pa.asarray(whole)), np.std(whole), rtol=1e-13)


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_corners():
    assert np.isnan(pa.var(pa.ones(0)).item())
    assert np.isnan(pa.var(pa.ones(1), correction=1).item())
    assert pa.var(pa.ones((0, 3)), axis=1).shape == (0,)
    assert pa.var(pa.asarray(3.0)).item() == 0.0
    assert np.isnan(pa.std(pa.asarray([1.0, np.nan])).item())
    assert np.isnan(pa.std(pa.asarray([1.0, np.inf])).item())
    x = np.arange(6.0).reshape(2, 3)
    out = pa.zeros(3)
    assert pa.var(pa.asarray(x), 0, out=out) is out
    same(out, np.var(x, 0))
    same(pa.asarray(x).std(1, ddof=1), x.std(1, ddof=1))
    same(pa.asarray(x).var(), x.var())
    same(np.var(pa.asarray(x), axis=0, ddof=1), np.var(x, axis=0, ddof=1))
    for axis in (2, (0, 3)):
        with pytest.raises(np.exceptions.AxisError):
            pa.var(pa.asarray(x), axis=axis)
    with pytest.raises(TypeError):
        pa.std("text")


def test_ptp():
    x = np.array([[3, 9, 4], [1, 1, 1]], np.uint8)
    same(pa.asarray(x).ptp(1), np.ptp(x, 1))
    with pytest.raises(TypeError, match="bool"):
        pa.ptp(pa.asarray([True]))
    with pytest.raises(ValueError, match="no elements"):
        pa.ptp(pa.ones(0))


def test_average():
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    a = pa.asarray(x)
    same(pa.average(a), np.average(x))
    same(pa.average(a, axis=1), np.average(x, axis=1))
    w = np.arange(1, 5)
    same(pa.average(a, axis=1, weights=pa.asarray(w)), np.average(x, axis=1, weights=w))
    same(pa.average(a, 1, w, keepdims=True), np.average(x, 1, w, keepdims=True))
    both = np.arange(1.0, 16).reshape(3, 5)
    same(pa.average(a, (0, 2), both), np.average(x, (0, 2), both))
    same(pa.average(a, (2, 0), both.T), np.average(x, (2, 0), both.T))
    ours, theirs = (
        pa.average(a, weights=np.abs(x), returned=True),
        np.average(x, weights=np.abs(x), returned=True),
    )
    for one, other in zip(ours, theirs, strict=True):
        same(one, other)
    same(pa.average(a, axis=0, returned=True)[1], np.average(x, axis=0, returned=True)[1])
    same(pa.average(pa.asarray([1, 2, 4])), np.average([1, 2, 4]))
    with pytest.raises(TypeError, match="axis"):
        pa.average(a, weights=w)
    with pytest.raises(ValueError, match="weights have shape"):
        pa.average(a, axis=0, weights=w)
    with pytest.raises(ZeroDivisionError, match="zero"):
        pa.average(a, axis=1, weights=[1, -1, 0, 0])


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_cov():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 20)), rng.standard_normal((2, 20))
    z = x + 1j * rng.standard_normal((3, 20))
    for ours, theirs in ((pa.cov, np.cov), (pa.corrcoef, np.corrcoef)):
        for m in (x, z, x[0], x.astype(np.float32), (x * 9).astype(np.int32)):
            same(ours(pa.asarray(m)), theirs(m))
        same(ours(pa.asarray(x), pa.asarray(y)), theirs(x, y))
        same(ours(pa.asarray(x.T), pa.asarray(y.T), rowvar=False), theirs(x.T, y.T, rowvar=False))
        with pytest.raises(ValueError, match="2 dimensions"):
            ours(pa.ones((2, 2, 2)))
    same(pa.cov(pa.asarray(x), bias=True), np.cov(x, bias=True))
    # columns of one row are variables with one observation
    assert pa.cov(pa.asarray(x[:1]), rowvar=False, ddof=0).tolist() == np.zeros((20, 20)).tolist()
    same(pa.cov(pa.asarray(x.T), pa.asarray(y[:1]), rowvar=False), np.cov(x.T, y[:1], rowvar=False))
    same(pa.cov(pa.asarray(x), ddof=3), np.cov(x, ddof=3))
