"""Reductions without NaN against NumPy's: axes, layouts, types, what is NaN altogether."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa

FEW = examples(7)  # an example is twenty functions
pytestmark = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
NAMES = ["nansum", "nanprod", "nanmin", "nanmax", "nanmean", "nanvar", "nanstd"]


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    rtol = 1e-5 if theirs.dtype.itemsize < 8 or theirs.dtype.name == "complex64" else 1e-12
    np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=rtol, atol=1e-12)


@pytest.mark.slow
@examples(4)
@given(st.lists(st.sampled_from([np.nan, 1.0, -2.0, 5.5, 0.0, np.inf]), min_size=12, max_size=12), st.data())
def test_drawn(given_values, data):
    x = np.array(given_values).reshape(3, 2, 2)[data.draw(st.sampled_from([slice(None), slice(None, None, -2)]))]
    x = x.transpose(data.draw(st.permutations(range(3))))
    axis = data.draw(st.none() | st.sets(st.integers(0, 2), min_size=1).map(tuple))
    keepdims = data.draw(st.booleans())
    a = pa.asarray(x)
    for name in NAMES:
        theirs = getattr(np, name)(x, axis=axis, keepdims=keepdims)
        same(getattr(pa, name)(a, axis=axis, keepdims=keepdims), theirs)
    for name in ("nanvar", "nanstd"):
        same(getattr(pa, name)(a, axis=axis, correction=1), getattr(np, name)(x, axis=axis, ddof=1))
        same(getattr(pa, name)(a, axis=axis, ddof=5), getattr(np, name)(x, axis=axis, ddof=5))
    for name in ("nancumsum", "nancumprod"):
        along = data.draw(st.sampled_from([None, 0, -1]))
        same(getattr(pa, name)(a, along), getattr(np, name)(x, along))
    along = data.draw(st.sampled_from([None, 0, 1, 2]))
    for name in ("nanargmin", "nanargmax"):
        if np.isnan(x).all(axis=along).any():
            with pytest.raises(ValueError, match="all elements are NaN"):
                getattr(pa, name)(a, axis=along)
        elif not np.isinf(x).any():
            same(getattr(pa, name)(a, axis=along), getattr(np, name)(x, axis=along))


TYPES = ["int16", "uint8", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype):
    """Along the last axis here, along the first one by NumPy's name: each function in half of the types."""
    x = np.array([[3, 1, 4], [1, 5, 9]]).astype(dtype)
    if x.dtype.kind in "fc":
        x[0, 1] = np.nan
    if x.dtype.kind == "c":
        x[1, 1] += 2j
    for at, name in enumerate(NAMES):
        if x.dtype.kind == "c" and name in ("nanmin", "nanmax"):
            with pytest.raises(TypeError, match="complex"):
                getattr(pa, name)(pa.asarray(x))
        elif (at + TYPES.index(dtype)) % 2:
            same(getattr(pa, name)(pa.asarray(x), 1), getattr(np, name)(x, 1))
        else:
            same(getattr(np, name)(pa.asarray(x), axis=0), getattr(np, name)(x, axis=0))


@pytest.mark.slow
@examples(4)
@given(numpy_views(dtype=pa.float32))
def test_without_nan(x):
    for name in NAMES:
        # where products of some elements are infinite, a 0 among the others makes NaN in some orders
        given = 1.5 - x % 2 if name == "nanprod" else x
        if x.size or name in ("nansum", "nanprod"):
            theirs = np.asarray(getattr(np, name)(given.astype(float))).astype(np.float32)
            same(getattr(pa, name)(pa.asarray(given)), theirs)


@pytest.mark.slow
def test_long():
    x = np.random.default_rng(0).standard_normal((3, 100_001)).astype(np.float32)
    x[x > 1] = np.nan
    wide = x.astype(float)
    for axis in (None, 0, 1):
        for name in ("nanmin", "nanmax", "nanmean", "nanvar"):
            same(
                getattr(pa, name)(pa.asarray(x), axis),
                np.asarray(getattr(np, name)(wide, axis)).astype(np.float32),
            )
        if axis != 0:
            same(pa.nanargmax(pa.asarray(x), axis), np.nanargmax(x, axis))


def test_corners():
    nan = pa.asarray([np.nan, np.inf])
    assert pa.nanargmin(nan).item() == 1
    assert np.isnan(pa.nanmean(pa.ones(0)).item())
    with pytest.raises(ValueError, match="no elements"):
        pa.nanmin(pa.ones(0))
    with pytest.raises(np.exceptions.AxisError):
        pa.nanvar(nan, 1)
    out = pa.zeros(())
    assert pa.nanmax(nan, out=out) is out
    assert out.item() == np.inf
    assert pa.nansum(pa.asarray([1, 2], dtype=pa.uint8), dtype=pa.float32).dtype == pa.float32
    with pa.debug():
        assert pa.nansum(pa.asarray([1.0, np.nan])).item() == 1.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_extremes_among_infinities(dtype):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((7, 9000)).astype(dtype)
    x[rng.random(x.shape) < 0.3] = np.nan
    x[1] = np.where(rng.random(9000) < 0.5, np.nan, -np.inf)
    x[2] = np.where(rng.random(9000) < 0.5, np.nan, np.inf)
    x[:, 5] = np.nan
    for name, plain in (("nanmin", np.fmin), ("nanmax", np.fmax)):
        for axis in (None, 0, 1):
            found = pa.asnumpy(getattr(pa, name)(pa.asarray(x), axis=axis))
            np.testing.assert_array_equal(found, plain.reduce(x, axis=axis))
            assert found.dtype == x.dtype
