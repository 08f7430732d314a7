"""Quantiles and medians against NumPy's: methods, axes, layouts, types, NaN."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa
from pyarray.api.numpy.order_statistics import _METHODS

FEW = examples(20)
pytestmark = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    rtol = {2: 2e-3, 4: 1e-6}.get(ours.dtype.itemsize, 1e-12)
    np.testing.assert_allclose(pa.asnumpy(ours).astype(float), theirs.astype(float), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("method", _METHODS)
def test_methods(method):
    rng = np.random.default_rng(0)
    q = [0, 0.1, 0.25, 1 / 3, 0.5, 0.625, 0.75, 0.9, 1]
    for n in (1, 2, 3, 4, 5, 8, 9, 40):
        for x in (rng.standard_normal(n), rng.integers(-9, 9, n), rng.integers(0, 9, n).astype(np.uint8)):
            a = pa.asarray(x)
            found, theirs = pa.quantile(a, q, method=method), np.quantile(x, q, method=method)
            same(found, theirs)
            assert found.dtype == theirs.dtype
            for k in (0.25, 0.5, 0.75):
                same(pa.quantile(a, k, method=method), np.quantile(x, k, method=method))
            same(pa.nanquantile(a, q, method=method), theirs)


@FEW
@given(numpy_views(dtype=pa.float32), st.data())
def test_layouts(x, data):
    a = pa.asarray(x)
    axis = None
    if x.ndim:
        axis = data.draw(st.none() | st.sets(st.integers(0, x.ndim - 1), min_size=1).map(tuple))
    keepdims = data.draw(st.booleans())
    if x.size:
        same(pa.median(a, axis=axis, keepdims=keepdims), np.median(x, axis=axis, keepdims=keepdims))
    q = data.draw(st.sampled_from([0.3, [0.3], [[0.1, 0.7], [1, 0]]]))
    if 0 in (x.shape if axis is None else [x.shape[k] for k in axis]):
        with pytest.raises(IndexError, match="no elements"):
            pa.quantile(a, q, axis=axis, keepdims=keepdims)
        return
    found = pa.quantile(a, q, axis=axis, keepdims=keepdims)
    if x.size:
        same(found, np.quantile(x.astype(float), q, axis=axis, keepdims=keepdims))
    else:  # of which NumPy fails to merge axes
        assert found.shape == np.shape(q) + np.sum(x, axis=axis, keepdims=keepdims).shape


@FEW
@given(st.lists(st.sampled_from([np.nan, 1.0, -2.0, 5.5, 0.0]), min_size=12, max_size=12))
def test_nan(given_values):
    x = np.array(given_values).reshape(3, 4)
    a = pa.asarray(x)
    for axis in (None, 0, 1, (0, 1)):
        same(pa.median(a, axis=axis), np.median(x, axis=axis))
        same(pa.quantile(a, [0.2, 0.5], axis=axis), np.quantile(x, [0.2, 0.5], axis=axis))
        same(pa.nanmedian(a, axis=axis), np.nanmedian(x, axis=axis))
        same(pa.nanquantile(a, [0.2, 0.5], axis=axis), np.nanquantile(x, [0.2, 0.5], axis=axis))
        same(pa.nanpercentile(a, 70, axis=axis), np.nanpercentile(x, 70, axis=axis))


def test_types():
    x = np.array([3, 1, 2, 9])
    for dtype in ("bool", "int8", "uint64", "float16", "float32", "float64"):
        y = x.astype(dtype)
        found = pa.median(pa.asarray(y))
        same(found, np.median(y))
        assert found.dtype == np.median(y).dtype
    half = pa.asarray(x).astype(pa.bfloat16)
    assert pa.median(half).dtype == pa.bfloat16
    big = np.array([2**62 + 1, 2**62 + 3])
    assert pa.quantile(pa.asarray(big), 0.5, method="lower").item() == 2**62 + 1
    same(pa.percentile(pa.asarray(x), [0, 30, 100]), np.percentile(x, [0, 30, 100]))
    same(pa.percentile(pa.asarray(x), pa.asarray([0, 30])), np.percentile(x, [0, 30]))
    same(np.median(pa.asarray(x)), np.median(x))
    same(np.percentile(pa.asarray(x), 30), np.percentile(x, 30))
    infinite = np.array([1.0, np.inf, np.inf, -np.inf])
    assert pa.median(pa.asarray(infinite[1:3])).item() == np.inf
    assert pa.quantile(pa.asarray(infinite), 0).item() == -np.inf


def test_out_and_large():
    x = np.random.default_rng(0).standard_normal((3, 50_001))
    out = pa.zeros(3)
    assert pa.median(pa.asarray(x), axis=1, out=out) is out
    same(out, np.median(x, axis=1))
    same(pa.quantile(pa.asarray(x.T), 0.9, axis=0), np.quantile(x.T, 0.9, axis=0))
    same(pa.median(pa.asarray(x[:, ::-2])), np.median(x[:, ::-2]))


def test_bad_input():
    a = pa.asarray([1.0, 2.0])
    for q in (-0.1, 1.5, [0.5, 2], np.nan):
        with pytest.raises(ValueError, match="from 0 to 1"):
            pa.quantile(a, q)
    with pytest.raises(ValueError, match="from 0 to 100"):
        pa.percentile(a, 101)
    with pytest.raises(ValueError, match="linear"):
        pa.quantile(a, 0.5, method="cubic")
    with pytest.raises(TypeError, match="real number"):
        pa.quantile(a, "half")
    for bad in (pa.asarray([True]), pa.asarray([1j])):
        with pytest.raises(TypeError):
            pa.quantile(bad, 0.5)
    with pytest.raises(np.exceptions.AxisError):
        pa.median(a, axis=1)
    with pytest.raises(ValueError, match="shape"):
        pa.median(a, out=pa.zeros(3))
    assert np.isnan(pa.median(pa.ones(0)).item())
    assert np.isnan(pa.nanmedian(pa.asarray([np.nan])).item())
    assert pa.quantile(pa.ones((2, 3)), []).shape == (0,)
    with pa.debug():
        assert pa.median(a).item() == 1.5


def test_medians_between_infinities(device):
    rows = [[1, np.inf], [-np.inf, 1], [np.inf, np.inf], [-np.inf, np.inf], [2, 5]]
    wanted = [np.inf, -np.inf, np.inf, np.nan, 3.5]
    for dtype in ("float16", "float32", "float64"):
        x = pa.asarray(np.array(rows, dtype), device=device)
        np.testing.assert_array_equal(pa.asnumpy(pa.median(x, axis=1)), wanted)
        np.testing.assert_array_equal(pa.asnumpy(pa.nanmedian(x, axis=1)), wanted)
