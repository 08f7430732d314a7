"""Histograms against NumPy's: bins, ranges, weights, types, blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa
from pyarray.kernels.scan import histogram as kernels

FEW = examples(20)


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    if theirs.dtype.kind in "fc":
        np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=1e-6 if theirs.itemsize < 8 else 1e-12)
    else:
        np.testing.assert_array_equal(pa.asnumpy(ours), theirs)


def both(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        same(one, other)


@FEW
@given(st.lists(st.integers(0, 30), max_size=50), st.integers(0, 40), st.booleans())
def test_bincount(given_values, minlength, reverse):
    x = np.array(given_values, np.int64)[:: -1 if reverse else 1]
    same(pa.bincount(pa.asarray(x), minlength=minlength), np.bincount(x, minlength=minlength))
    w = np.arange(x.size) / 4
    same(pa.bincount(pa.asarray(x), pa.asarray(w)), np.bincount(x, w))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "bool"])
def test_bincount_types(dtype):
    x = np.array([1, 0, 1, 1]).astype(dtype)
    theirs = np.bincount(x.astype(np.int64))
    same(pa.bincount(pa.asarray(x)), theirs)
    same(np.bincount(pa.asarray(x)), theirs)


def test_bincount_large(monkeypatch):
    x = np.random.default_rng(0).integers(0, 1000, 300_000)
    w = np.random.default_rng(0).standard_normal(x.size)
    same(pa.bincount(pa.asarray(x)), np.bincount(x))
    np.testing.assert_allclose(pa.asnumpy(pa.bincount(pa.asarray(x), w)), np.bincount(x, w), atol=1e-9)
    monkeypatch.setattr(kernels, "BINS", 1 << 12)
    same(pa.bincount(pa.asarray(x), minlength=9000), np.bincount(x, minlength=9000))


def test_bincount_errors():
    for bad in (pa.asarray([-1]), pa.ones((2, 2), dtype=pa.int64)):
        with pytest.raises(ValueError, match="bincount"):
            pa.bincount(bad)
    with pytest.raises(ValueError, match="minlength"):
        pa.bincount(pa.asarray([1]), minlength=-1)
    with pytest.raises(ValueError, match="weights have shape"):
        pa.bincount(pa.asarray([1]), weights=[1.0, 2.0])
    with pytest.raises(TypeError, match="integers"):
        pa.bincount(pa.asarray([1.0]))


@examples(10)
@given(numpy_views(dtype=pa.float32), st.data())
def test_layouts(x, data):
    bins = data.draw(st.sampled_from([1, 7, 10, [0, 1, 5, 5, 20.5], np.array([3, 50, 200])]))
    span = data.draw(st.none() | st.sampled_from([(0, 10), (2.5, 60)]))
    a = pa.asarray(x)
    both(pa.histogram(a, bins, span), np.histogram(x, bins, span))
    w = np.arange(x.size, dtype=float).reshape(x.shape)
    both(pa.histogram(a, bins, span, weights=pa.asarray(w)), np.histogram(x, bins, span, weights=w))
    ours, theirs = pa.histogram(a, bins, span)[0], np.histogram(x, bins, span)[0]
    if ours.shape == (10,) and theirs.any():
        same(pa.histogram(a, bins, span, density=True)[0], np.histogram(x, bins, span, density=True)[0])


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float64", "float32", "bool"])
def test_histogram_types(dtype):
    x = np.random.default_rng(0).integers(0, 50, 1000).astype(dtype)
    if dtype == "bool":
        both(pa.histogram(pa.asarray(x), [0, 0.5, 1]), np.histogram(x, np.array([0, 0.5, 1])))
    else:
        both(pa.histogram(pa.asarray(x)), np.histogram(x))
        both(pa.histogram(pa.asarray(x), 13, (3, 44)), np.histogram(x, 13, (3, 44)))
        both(pa.histogram(pa.asarray(x), [0, 3, 44]), np.histogram(x, [0, 3, 44]))
        same(pa.histogram_bin_edges(pa.asarray(x), 5), np.histogram_bin_edges(x, 5))
    for kind in ("int32", "float32", "complex128"):
        w = (np.arange(1000) % 7).astype(kind)
        ours = pa.histogram(pa.asarray(x), [0, 10, 60], weights=pa.asarray(w))[0]
        theirs = np.histogram(x, [0, 10, 60], weights=w)[0]
        np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=1e-6)


def test_large():
    x = np.random.default_rng(0).standard_normal(300_001)
    for y in (x, x.astype(np.float32)):
        both(pa.histogram(pa.asarray(y), 100), np.histogram(y, 100))
        edges = np.sort(x[:50])
        both(pa.histogram(pa.asarray(y), edges), np.histogram(y, edges))
    steps = np.linspace(0, 1, 11)
    both(pa.histogram(pa.asarray(steps), 10, (0, 1)), np.histogram(steps, 10, (0, 1)))


def test_corners():
    both(pa.histogram(pa.ones(0)), np.histogram(np.ones(0)))
    both(pa.histogram(pa.ones(3)), np.histogram(np.ones(3)))
    both(pa.histogram(pa.asarray([np.nan, 1.0]), 2, (0, 2)), np.histogram([np.nan, 1.0], 2, (0, 2)))
    a = pa.asarray([1.0, 2.0])
    for bins in (0, -1, [1], [2, 1], [[1, 2]]):
        with pytest.raises(ValueError, match="histogram"):
            pa.histogram(a, bins)
    for span in ((2, 1), (0, np.inf)):
        with pytest.raises(ValueError, match="range"):
            pa.histogram(a, range=span)
    close = pa.asarray([1.0, np.nextafter(1.0, 2.0)])
    for call in (pa.histogram, pa.histogram_bin_edges):
        with pytest.raises(ValueError, match="5 bins are too many for the range"):
            call(close, 5)
    with pytest.raises(ValueError, match="not finite"):
        pa.histogram(pa.asarray([np.nan]))
    with pytest.raises(ValueError, match="weights have shape"):
        pa.histogram(a, weights=[1.0])
    with pytest.raises(TypeError):
        pa.histogram(a, "auto")
    with pytest.raises(TypeError, match="complex"):
        pa.histogram(pa.asarray([1j]))
    with pa.debug():
        both(pa.histogram(a), np.histogram([1.0, 2.0]))


@FEW
@given(st.lists(st.floats(-5, 25, width=32), max_size=20), st.booleans(), st.booleans())
def test_digitize(given_values, right, falling):
    x, bins = np.array(given_values, np.float32), np.array([0, 2, 2, 10.5, 20])
    bins = bins[::-1] if falling else bins
    same(pa.digitize(pa.asarray(x), pa.asarray(bins), right=right), np.digitize(x, bins, right=right))
    with pytest.raises(ValueError, match="rise or fall"):
        pa.digitize(pa.asarray(x), [1.0, 3.0, 2.0])
    with pytest.raises(ValueError, match="1-D"):
        pa.digitize(pa.asarray(x), [[1.0]])
