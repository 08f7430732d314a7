"""Choosing and replacing by conditions, masks and positions, against NumPy's; on every device."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa

FEW = examples(40)


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(pa.asnumpy(ours), theirs)


@examples(20)
@given(numpy_views(dtype=pa.int32), st.data())
def test_found(x, data):
    x = x % 3
    a = pa.asarray(x)
    same(pa.argwhere(a), np.argwhere(x))
    same(pa.flatnonzero(a), np.flatnonzero(x))
    same(pa.extract(a > 1, a), np.extract(x > 1, x))
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1))) if x.ndim else None
    n = x.size if axis is None else x.shape[axis]
    mask = np.array(data.draw(st.lists(st.booleans(), max_size=n)), bool)
    same(pa.compress(mask, a, axis), np.compress(mask, x, axis))
    same(a.compress(mask, axis), x.compress(mask, axis))


@examples(5)  # a dozen kernels for each rank
@given(numpy_views(dtype=pa.float32))
def test_select_and_piecewise(x):
    a = pa.asarray(x)
    same(pa.select([a < 3, a > 9], [a, a * 2], -1), np.select([x < 3, x > 9], [x, x * 2], -1))
    same(pa.select([a < 3], [1], 0), np.select([x < 3], [1], 0))
    ours = pa.piecewise(a, [a < 3, a > 9], [-1, lambda v: v * 2, lambda v: v + 1])
    same(ours, np.piecewise(x, [x < 3, x > 9], [-1, lambda v: v * 2, lambda v: v + 1]))
    if x.ndim == 1 and x.size:
        same(
            pa.piecewise(a, a < 3, [lambda v, n: v * n], 7.0),
            np.piecewise(x, x < 3, [lambda v, n: v * n], 7.0),
        )


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_choose(mode, device):
    which = np.array([[0, 1, 2], [2, 1, 0]]) + (0 if mode == "raise" else np.array([[-4], [3]]))
    choices = [np.arange(3), np.full((2, 1), 10), np.float64(7)]
    ours = pa.choose(pa.asarray(which, device=device), [pa.asarray(c, device=device) for c in choices], mode)
    same(ours, np.choose(which, choices, mode=mode))
    same(pa.asarray(which, device=device).choose([5, 6, 7], mode="clip"), which.choose([5, 6, 7], mode="clip"))


@FEW
@given(numpy_views(dtype=pa.int32), st.data())
def test_put(x, data):
    if not x.size or 0 in x.strides:
        return
    places = data.draw(st.lists(st.integers(-x.size, x.size - 1), max_size=5))
    values = data.draw(st.lists(st.integers(0, 99), min_size=1, max_size=7))
    mode = data.draw(st.sampled_from(["raise", "wrap", "clip"]))
    ours, theirs = pa.asarray(x.copy(order="K")), x.copy(order="K")
    pa.put(ours, places, values, mode=mode)
    np.put(theirs, np.array(places, int), values, mode=mode)
    same(ours, theirs)
    mask = theirs % 2 == 0
    pa.place(ours, mask, values)
    np.place(theirs, mask, values)
    same(ours, theirs)
    pa.putmask(ours, mask, values)
    np.putmask(theirs, mask, values)
    same(ours, theirs)
    pa.copyto(ours, 2.0, where=mask)
    np.copyto(theirs, 2, where=mask)
    same(ours, theirs)


@FEW
@given(numpy_views(dtype=pa.int32, shape=(3, 4)), st.integers(-2, 1))
def test_put_along_axis(x, axis):
    if x.ndim != 2 or not x.size or 0 in x.strides:
        return
    ours, theirs = pa.array(x), x.copy()
    index = np.argmax(x, axis=axis, keepdims=True)
    pa.put_along_axis(ours, index, -1, axis=axis)
    np.put_along_axis(theirs, index, -1, axis=axis)
    same(ours, theirs)
    pa.put_along_axis(ours, [0], 5, axis=None)
    np.put_along_axis(theirs, np.array([0]), 5, axis=None)
    same(ours, theirs)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (7, 3), (3, 3, 3)], ids=str)
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape, wrap, device):
    for value in (5, [1, 2]):
        ours, theirs = pa.zeros(shape, device=device), np.zeros(shape)
        pa.fill_diagonal(ours, value, wrap)
        np.fill_diagonal(theirs, value, wrap)
        same(ours, theirs)


def test_errors():
    a = pa.arange(4)
    frozen = pa.arange(4)
    frozen.setflags(write=False)
    for call, error, words in (
        (lambda: pa.put([1, 2], 0, 1), TypeError, "pyarray array"),
        (lambda: pa.put(a, 9, 1), IndexError, "out of bounds"),
        (lambda: pa.put(a, 0, 1, mode="some"), ValueError, "raise, wrap"),
        (lambda: pa.put(frozen, 0, 1), ValueError, "read-only"),
        (lambda: pa.place(a, a > 1, []), ValueError, "no values"),
        (lambda: pa.copyto(frozen, 1, where=a > 1), ValueError, "read-only"),
        (lambda: pa.put(frozen, [], 1), ValueError, "read-only"),  # nothing to write
        (lambda: pa.place(frozen, a > 9, [1]), ValueError, "read-only"),
        (lambda: pa.putmask(frozen, a > 9, 1), ValueError, "read-only"),
        (lambda: pa.put_along_axis(frozen, a[:0], 1, axis=0), ValueError, "read-only"),
        (lambda: pa.fill_diagonal(pa.broadcast_to(a[:0], (0, 0)), 1), ValueError, "read-only"),
        (lambda: pa.fill_diagonal(a, 1), ValueError, "matrix"),
        (lambda: pa.choose([3], [1, 2]), ValueError, "out of range"),
        (lambda: pa.choose([0.5], [1, 2]), TypeError, "integers"),
        (lambda: pa.select([a > 1], []), ValueError, "as many"),
        (lambda: pa.select([a], [a]), TypeError, "bool"),
        (lambda: pa.piecewise(a, [a > 1], [1, 2, 3]), ValueError, "as many"),
        (lambda: pa.compress([[True]], a), ValueError, "1-D"),
        (lambda: pa.put_along_axis(a, [[0]], 1, axis=0), ValueError, "axes"),
    ):
        with pytest.raises(error, match=words):
            call()
