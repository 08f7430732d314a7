"""Distinct elements and membership against NumPy's: every dtype, layouts, NaN, zeros, slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, few_dtypes, known_to_numpy, numpy_views

import pyarray as pa
from pyarray.dtypes import ALL

FEW = examples(25)


def same(ours, theirs):
    ours, theirs = pa.asnumpy(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


@examples(13)
@given(numpy_views(few_dtypes))
def test_layouts(x):
    a = pa.asarray(x)
    plain = known_to_numpy(x)
    values, first, inverse, counts = np.unique(plain, True, True, True)
    values = values.astype(x.dtype)
    found = pa.unique_all(a)
    for ours, theirs in zip(found, (values, first, inverse, counts), strict=True):
        same(ours, theirs)
    assert found.values is found[0]
    same(pa.unique_values(a), values)
    for ours, theirs in zip(pa.unique_counts(a), (values, counts), strict=True):
        same(ours, theirs)
    for ours, theirs in zip(pa.unique_inverse(a), (values, inverse), strict=True):
        same(ours, theirs)
    same(pa.unique(a), values)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype(dtype):
    x = np.random.default_rng(1).integers(0, 2 if dtype.kind == "b" else 40, 500).astype(dtype.numpy)
    plain = known_to_numpy(x)
    theirs = np.unique(plain, True, True, True)
    for ours, expected in zip(pa.unique(pa.asarray(x), True, True, True), theirs, strict=True):
        np.testing.assert_array_equal(pa.asnumpy(ours).astype(expected.dtype), expected)
    same(pa.isin(pa.asarray(x), pa.asarray(x[:5])), np.isin(plain, plain[:5]))
    same(pa.isin(pa.asarray(x), pa.asarray(x[:5]), invert=True), np.isin(plain, plain[:5], invert=True))


@pytest.mark.slow
def test_large():
    x = np.random.default_rng(1).integers(0, 50_000, 300_000)
    for dtype in ("int64", "float32"):
        y = x.astype(dtype)
        for ours, theirs in zip(
            pa.unique(pa.asarray(y), True, True, True), np.unique(y, True, True, True), strict=True
        ):
            same(ours, theirs)
        same(pa.isin(pa.asarray(y), pa.asarray(y[:999])), np.isin(y, y[:999]))


def test_nan_and_zeros():
    x = np.array([np.nan, 0.0, -0.0, 1.0, np.nan, -np.nan])
    found = pa.unique_all(pa.asarray(x))
    same(found.values, np.unique(x, equal_nan=False))
    assert found.counts.tolist() == [2, 1, 1, 1, 1]
    assert sorted(found.inverse_indices.tolist()) == [0, 0, 1, 2, 3, 4]
    for equal_nan in (False, True):
        for ours, theirs in zip(
            pa.unique(pa.asarray(x), True, False, True, equal_nan=equal_nan),
            np.unique(x, True, False, True, equal_nan=equal_nan),
            strict=True,
        ):
            same(ours, theirs)
    assert pa.isin(pa.asarray(x), pa.asarray(x)).tolist() == [False, True, True, True, False, False]
    z = np.array([1 + 2j, complex(np.nan, 1), complex(1, np.nan), 1 + 2j, 0])
    same(pa.isin(pa.asarray(z), pa.asarray(z[2:])), np.isin(z, z[2:]))


@FEW
@given(st.data())
def test_slices(data):
    shape = data.draw(st.sampled_from([(6, 2), (4, 3, 2), (7,), (1, 4), (0, 3)]))
    x = np.array(data.draw(st.lists(st.integers(0, 2), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))))
    x = x.reshape(shape).astype(np.int32)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    theirs = np.unique(x, True, True, True, axis=axis)
    for ours, expected in zip(pa.unique(pa.asarray(x), True, True, True, axis), theirs, strict=True):
        same(ours, expected.reshape(ours.shape))


def test_isin_types():
    x = pa.asarray(np.array([1, 2, 255], np.uint8))
    assert pa.isin(x, -1).tolist() == [False, False, False]
    assert pa.isin(x, [1.5, 2.0]).tolist() == [False, True, False]
    assert pa.isin(x, 255).tolist() == [False, False, True]
    assert pa.isin(2, x).item() is True
    assert pa.isin(pa.asarray(np.float32([0.1])), 0.1).tolist() == [True]
    big = np.array([2**63, 5], np.uint64)
    same(pa.isin(pa.asarray(big), pa.asarray([5, -1])), np.isin(big, np.array([5, -1])))
    assert pa.isin(x, pa.asarray([])).tolist() == [False] * 3
    assert pa.isin(pa.ones((0, 2)), x).shape == (0, 2)
    same(np.isin(x, pa.asarray([2])), np.isin(np.array([1, 2, 255]), [2]))
    with pytest.raises(TypeError):
        pa.isin(x, "text")


def test_empty():
    found = pa.unique_all(pa.ones((0, 3)))
    assert [part.shape for part in found] == [(0,), (0,), (0, 3), (0,)]
    assert pa.unique(pa.ones(0)).shape == (0,)


@FEW
@given(
    st.lists(st.floats(width=32), max_size=30),
    st.lists(st.floats(width=32), max_size=10),
    st.sampled_from(["left", "right"]),
)
def test_searchsorted(given_values, keys, side):
    x, v = np.sort(np.array(given_values, np.float32)), np.array(keys, np.float32)
    same(pa.searchsorted(pa.asarray(x), pa.asarray(v), side=side), np.searchsorted(x, v, side=side))
    order = np.argsort(x[::-1], kind="stable")
    same(
        pa.searchsorted(pa.asarray(x[::-1]), pa.asarray(v), side=side, sorter=pa.asarray(order)),
        np.searchsorted(x[::-1], v, side=side, sorter=order),
    )


def test_searchsorted_types():
    x = np.array([1, 3, 3, 8])
    a = pa.asarray(x)
    for dtype in ("int8", "uint64", "float32", "bool"):
        v = np.array([[0, 3], [4, 9]]).astype(dtype)
        same(pa.searchsorted(a, pa.asarray(v)), np.searchsorted(x, v))
    same(pa.searchsorted(a, 3, side="right"), np.searchsorted(x, 3, side="right"))
    same(pa.searchsorted(pa.asarray(x.astype(np.uint8)), -1), np.int64(0))
    same(a[::2].searchsorted(pa.asarray([3, 4])[::-1]), np.searchsorted(x[::2], [4, 3]))
    assert pa.searchsorted(pa.ones(0), pa.ones(2)).tolist() == [0, 0]
    with pytest.raises(ValueError, match="1-D"):
        pa.searchsorted(pa.ones((2, 2)), 1.0)
    with pytest.raises(ValueError, match="'left'"):
        pa.searchsorted(a, 1, side="middle")
    with pytest.raises(TypeError, match="complex"):
        pa.searchsorted(a, 1j)
    with pytest.raises(ValueError, match="sorter"):
        pa.searchsorted(a, 1, sorter=pa.asarray([0]))
    with pytest.raises(IndexError):
        pa.searchsorted(a, 1, sorter=pa.asarray([0, 1, 2, 9]))


@pytest.mark.slow
def test_debug_gives_the_same():
    x = np.random.default_rng(1).integers(0, 20, 300)
    with pa.debug():
        for ours, theirs in zip(pa.unique_all(pa.asarray(x)), np.unique(x, True, True, True), strict=True):
            same(ours, theirs)
        same(pa.isin(pa.asarray(x), pa.asarray(x[:3])), np.isin(x, x[:3]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_isin_by_table(dtype):
    info = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(info.min, info.max, 70_000, dtype, endpoint=True)
    x[:6] = [info.min, info.max, 0, 1, 5, 7]
    for among in (
        [5],
        [1, 7, 7, 0],
        [info.max, info.max - 3],
        [info.min, info.min + 3],
        [info.min, info.max],
    ):
        among = np.array(among, dtype)
        for invert in (False, True):
            same(pa.isin(pa.asarray(x), pa.asarray(among), invert=invert), np.isin(x, among, invert=invert))


@pytest.mark.slow
@examples(13)
@given(st.data())
def test_blocks(data):
    """Runs of equal elements that begin and end anywhere in the blocks that are looked at by themselves."""
    n = data.draw(st.sampled_from([1, 2, 1023, 1024, 1025, 2048, 3000, 5000]))
    kind = data.draw(st.sampled_from(["int16", "float32", "uint64", "complex64"]))
    length = data.draw(st.sampled_from([1, 2, 700, 1024, 1025, 9999]))
    x = (np.arange(n) // length).astype(kind)
    if data.draw(st.booleans()):
        x[:: data.draw(st.integers(1, 50))] = 3
    if kind == "float32":
        x[n - data.draw(st.integers(0, n)) :] = np.nan
    with pa.debug(data.draw(st.booleans())):
        a = pa.asarray(x)
        same(pa.unique(a), np.unique(x))
        same(pa.unique_values(a), np.unique(x, equal_nan=False))
        for equal in (False, True):
            found = pa.unique(a, return_counts=True, equal_nan=equal)
            for ours, theirs in zip(found, np.unique(x, return_counts=True, equal_nan=equal), strict=True):
                same(ours, theirs)


@pytest.mark.parametrize("axis", [0, -1])
def test_nans_along_the_only_axis_are_one(axis):
    x = np.array([np.nan, 1, np.nan, 2])
    theirs = np.unique(x, True, True, True, axis=axis)
    for ours, expected in zip(pa.unique(pa.asarray(x), True, True, True, axis), theirs, strict=True):
        np.testing.assert_array_equal(pa.asnumpy(ours), expected)
    with pytest.raises(np.exceptions.AxisError):
        pa.unique(pa.asarray(x), axis=1)
