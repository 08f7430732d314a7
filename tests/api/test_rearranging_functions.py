"""What turns, splits, joins, puts in and leaves out, against NumPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, few_dtypes, numpy_views

import pyarray as pa

FEW = examples(25)


def same(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
        return
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(pa.asnumpy(ours).astype(complex), theirs.astype(complex))


@FEW
@given(numpy_views(few_dtypes), st.data())
def test_turned(x, data):
    a = pa.asarray(x)
    if x.ndim:
        same(pa.flipud(a), np.flipud(x))
        axis, start = data.draw(st.integers(-x.ndim, x.ndim - 1)), data.draw(st.integers(-x.ndim, x.ndim))
        same(pa.rollaxis(a, axis, start), np.rollaxis(x, axis, start))
    if x.ndim > 1:
        same(pa.fliplr(a), np.fliplr(x))
        axes = data.draw(st.permutations(range(x.ndim)))[:2]
        k = data.draw(st.integers(-5, 5))
        same(pa.rot90(a, k, axes), np.rot90(x, k, axes))


@FEW
@given(numpy_views(few_dtypes), st.data())
def test_split(x, data):
    if not x.ndim:
        return
    a, axis = pa.asarray(x), data.draw(st.integers(-x.ndim, x.ndim - 1))
    parts = data.draw(st.one_of(st.integers(1, 7), st.lists(st.integers(-6, 6), max_size=4)))
    same(pa.array_split(a, parts, axis), np.array_split(x, parts, axis))
    for name in ("split", "hsplit", "vsplit", "dsplit"):
        args = (parts, axis) if name == "split" else (parts,)
        try:
            theirs = getattr(np, name)(x, *args)
        except ValueError:
            with pytest.raises(ValueError, match=name):
                getattr(pa, name)(a, *args)
            continue
        same(getattr(pa, name)(a, *args), theirs)


@examples(13)
@given(numpy_views(few_dtypes), st.data())
def test_stacks(x, data):
    y = x[..., ::-1] if x.ndim else x
    for name, theirs in (("column_stack", np.column_stack), ("dstack", np.dstack), ("row_stack", np.vstack)):
        same(getattr(pa, name)([pa.asarray(x), y]), theirs([x, y]))
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1))) if x.ndim else None
    same(pa.append(pa.asarray(x), y, axis=axis), np.append(x, y, axis=axis))


@FEW
@given(numpy_views(few_dtypes), st.data())
def test_delete(x, data):
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1))) if x.ndim else None
    n = x.size if axis is None else x.shape[axis]
    places = st.integers(-n, n - 1) if n else st.nothing()
    masks = st.lists(st.booleans(), min_size=n, max_size=n).map(lambda m: np.array(m, bool))
    keys = [st.lists(places, max_size=4) if n else st.just([]), st.slices(n), masks]
    key = data.draw(st.one_of(*keys, *([places] if n else [])))
    if isinstance(key, list):
        key = np.array(key, int)
    same(pa.delete(pa.asarray(x), key, axis), np.delete(x, key, axis))


@FEW
@given(numpy_views(dtype=pa.int32), st.data())
def test_insert(x, data):
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1))) if x.ndim else None
    n = x.size if axis is None else x.shape[axis]
    place = st.integers(-n, n)
    key = data.draw(st.one_of(place, st.lists(place, min_size=1, max_size=4)))
    values = data.draw(st.sampled_from([7, 2.9]))
    same(pa.insert(pa.asarray(x), key, values, axis), np.insert(x, key, values, axis))


@pytest.mark.parametrize(
    ("key", "values", "axis"),
    [
        (1, [[7], [8]], 1), (1, [7, 8], 1), ([1], [[7], [8]], 1), ([2, 0], [[1, 2], [3, 4]], 1),
        (slice(0, 2), 5, 1), (np.array([True, False, True]), [9, 8], 1), (0, [1, 2, 3], 0),
        ([0, 0, 2], [1, 2, 3], None), ([1], [7, 8], None), ([1], [7, 8], 1), ([-1], [[7, 8], [9, 6]], 1),
        ([1], [[7, 8]], 1), (slice(1, 2), [7, 8], 1), (np.array([False, True]), [[7], [8]], 0),
    ],
)  # fmt: skip
def test_insert_values(key, values, axis, device):
    x = np.arange(6).reshape(2, 3)
    same(pa.insert(pa.asarray(x, device=device), key, values, axis), np.insert(x, key, values, axis))


@pytest.mark.parametrize("key", [slice(None, None, 2), slice(90, 7, -1), [5, 5, 0, -1, 99, 6], np.arange(40)])
def test_few_and_many_runs(key, device):
    x = np.arange(600).reshape(2, 100, 3)
    a = pa.asarray(x, device=device)
    same(pa.delete(a, key, 1), np.delete(x, key, 1))
    same(pa.insert(a, key, 7, 1), np.insert(x, key, 7, 1))


@FEW
@given(numpy_views(few_dtypes), st.lists(st.integers(0, 6), max_size=3))
def test_resize(x, shape):
    same(pa.resize(pa.asarray(x), tuple(shape)), np.resize(x, tuple(shape)))


@FEW
@given(st.lists(st.integers(0, 1), max_size=8), st.sampled_from(["fb", "f", "b", "FB"]))
def test_trim_zeros(values, trim):
    x = np.array(values, np.int64)
    same(pa.trim_zeros(pa.asarray(x), trim), np.trim_zeros(x, trim))


def test_errors():
    m = pa.ones((2, 3))
    for call, error in (
        (lambda: pa.flipud(pa.asarray(1)), ValueError), (lambda: pa.fliplr([1]), ValueError),
        (lambda: pa.rot90(m, axes=(0, 0)), ValueError), (lambda: pa.rollaxis(m, 0, 5), IndexError),
        (lambda: pa.array_split(m, 0), ValueError), (lambda: pa.split(m, 3, 0), ValueError),
        (lambda: pa.delete(m, 5, 0), IndexError), (lambda: pa.delete(m, [0.5], 0), IndexError),
        (lambda: pa.insert(m, 4, 1, 1), IndexError), (lambda: pa.delete(m, np.array([True]), 0), ValueError),
        (lambda: pa.trim_zeros(m), ValueError), (lambda: pa.trim_zeros([1], "x"), ValueError),
    ):  # fmt: skip
        with pytest.raises(error):
            call()
