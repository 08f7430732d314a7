"""Unions, intersections and differences against NumPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa
from pyarray import dtypes

FEW = examples(30)
KINDS = st.sampled_from((dtypes.int8, dtypes.uint32, dtypes.float64, dtypes.complex64))


@st.composite
def pairs(draw):
    """Two arrays of one dtype and of any layout, with elements in common."""
    kind = draw(KINDS)
    x, y = draw(numpy_views(kind)), draw(numpy_views(kind))
    return x % 11 if kind.kind != "c" else x, y % 7 if kind.kind != "c" else y


def same(ours, theirs):
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(pa.asnumpy(ours), theirs)


@examples(15)
@given(pairs())
@pytest.mark.slow
def test_as_numpys(pair):
    x, y = pair
    a, b = pa.asarray(x), pa.asarray(y)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        same(getattr(pa, name)(a, b), getattr(np, name)(x, y))
    for ours, theirs in zip(
        pa.intersect1d(a, b, return_indices=True), np.intersect1d(x, y, return_indices=True), strict=True
    ):
        same(ours, theirs)
    same(pa.in1d(a, b), np.isin(x.ravel(), y))
    u, v = np.unique(x)[::-1], np.unique(y)  # what is no set has no answer then
    same(pa.setdiff1d(pa.asarray(u), v, assume_unique=True), np.setdiff1d(u, v, assume_unique=True))
    ends = {"to_begin": np.array([1, 2], x.dtype), "to_end": x.dtype.type(3)}
    same(pa.ediff1d(a, **ends), np.ediff1d(x, **ends))


def test_ends_that_do_not_fit():
    with pytest.raises(TypeError, match=r"to_end is float64, which doesn't go into int64"):
        pa.ediff1d([1, 2], to_end=0.5)


def test_dtypes_have_a_common_one():
    same(pa.union1d(np.int8([3]), np.float32([1.5])), np.union1d(np.int8([3]), np.float32([1.5])))
    same(pa.setxor1d(np.int8([3, 4]), np.int64([3])), np.setxor1d(np.int8([3, 4]), np.int64([3])))


@pytest.mark.parametrize("shape", [(3, 0, 2), (0, 3), (3, 0), (0, 0), (1, 0)])
def test_slices_without_elements_are_equal(shape, device):
    x = np.zeros(shape)
    for axis in range(x.ndim):
        options = {"axis": axis, "return_index": True, "return_inverse": True, "return_counts": True}
        found = pa.unique(pa.asarray(x, device=device), **options)
        for got, expected in zip(found, np.unique(x, **options), strict=True):
            assert pa.asnumpy(got).tolist() == expected.tolist()
            assert got.shape == expected.shape
