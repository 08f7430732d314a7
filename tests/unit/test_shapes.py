"""`shape` against NumPy, which is right by definition here."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import array_shapes, basic_keys, numpy_views

from pyarray import shapes

small_shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def addresses(shape, strides):
    return [sum(i * s for i, s in zip(index, strides, strict=True)) for index in itertools.product(*map(range, shape))]


@given(st.lists(small_shapes, max_size=4))
def test_broadcast_shapes(all_shapes):
    try:
        expected = np.broadcast_shapes(*all_shapes)
    except ValueError:
        with pytest.raises(ValueError, match="don't broadcast") as caught:
            shapes.broadcast_shapes(*all_shapes)
        assert all(str(each) in str(caught.value) for each in all_shapes)
    else:
        assert shapes.broadcast_shapes(*all_shapes) == expected


@given(numpy_views(), small_shapes)
def test_broadcast_strides(x, target):
    try:
        expected = np.broadcast_to(x, target)
    except ValueError:
        with pytest.raises(ValueError, match="doesn't broadcast"):
            shapes.broadcast_strides(x.shape, x.strides, target)
    else:
        strides = shapes.broadcast_strides(x.shape, x.strides, target)
        assert addresses(target, strides) == addresses(target, expected.strides)


@given(array_shapes, st.sampled_from((1, 2, 4, 8, 16)))
def test_contiguous_strides(shape, itemsize):
    if 0 not in shape:
        assert shapes.contiguous_strides(shape, itemsize) == np.empty(shape, f"V{itemsize}").strides
    assert shapes.is_contiguous(shape, shapes.contiguous_strides(shape, itemsize), itemsize)


@given(numpy_views())
def test_is_contiguous(x):
    assert shapes.is_contiguous(x.shape, x.strides, x.itemsize) == (x.flags.c_contiguous or x.size <= 1)


@given(numpy_views())
def test_byte_bounds(x):
    low, high = shapes.byte_bounds(x.shape, x.strides, x.itemsize)
    if x.size:
        start = x.__array_interface__["data"][0]
        assert (start + low, start + high) == np.lib.array_utils.byte_bounds(x)
    else:
        assert (low, high) == (0, 0)


@given(numpy_views(), numpy_views())
def test_collapse_visits_the_same_elements_in_the_same_order(x, y):
    shape = x.shape
    other = np.broadcast_to(np.zeros((), y.dtype), shape)
    merged, (first, second) = shapes.collapse(shape, x.strides, other.strides)
    assert addresses(merged, first) == addresses(shape, x.strides)
    assert addresses(merged, second) == addresses(shape, other.strides)
    assert 1 not in merged
    assert len(merged) <= max(len(shape), 1)


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((), ((),), ((), ((),))),
        ((1, 1), ((8, 8),), ((), ((),))),
        ((2, 3, 4), ((96, 32, 8),), ((24,), ((8,),))),
        ((2, 3, 4), ((96, 32, 8), (32, 64, 8)), ((2, 3, 4), ((96, 32, 8), (32, 64, 8)))),
        ((3, 0), ((8, 8),), ((0,), ((0,),))),
    ],
)
def test_collapse(shape, strides, expected):
    assert shapes.collapse(shape, *strides) == expected


@given(numpy_views(), st.data())
def test_reshape_strides(x, data):
    target = (
        data.draw(
            hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=12).filter(lambda s: np.prod(s) == x.size)
        )
        if x.size == 0
        else data.draw(st.sampled_from(factorings(x.size)))
    )
    mine = shapes.reshape_strides(x.shape, x.strides, target, x.itemsize)
    theirs = x.reshape(target)
    if x.size > 1 and np.shares_memory(theirs, x):
        assert addresses(target, mine) == addresses(target, theirs.strides)
    elif x.size > 1:
        assert mine is None


def factorings(n):
    pairs = [(k, n // k) for k in range(1, n + 1) if n % k == 0]
    return [
        (n,),
        *pairs,
        *((a, b, c) for a, rest in pairs for b, c in [(k, rest // k) for k in range(1, rest + 1) if rest % k == 0]),
    ]


@given(numpy_views(), st.data())
def test_basic_index(x, data):
    key = data.draw(basic_keys(x.shape))
    key = key if isinstance(key, tuple) else (key,)
    expected = x[key if Ellipsis in key else (*key, ...)]
    offset, sizes, strides = shapes.basic_index(x.shape, x.strides, key)
    assert sizes == expected.shape
    if expected.size:
        assert offset == expected.__array_interface__["data"][0] - x.__array_interface__["data"][0]
        for n, ours, theirs in zip(sizes, strides, expected.strides, strict=True):
            assert n == 1 or ours == theirs


def test_basic_index_out_of_range():
    for n, index in itertools.product(range(4), range(-6, 6)):
        if -n <= index < n:
            assert shapes.basic_index((2, n), (8 * n, 8), (1, index)) == (8 * n + 8 * (index % n), (), ())
        else:
            with pytest.raises(IndexError):
                shapes.basic_index((2, n), (8 * n, 8), (slice(None), index))
    with pytest.raises(IndexError):
        shapes.basic_index((2,), (8,), (0, 0))


def test_resolve_shape():
    assert shapes.resolve_shape(3) == (3,)
    assert shapes.resolve_shape([np.int64(2), -1], 6) == (2, 3)
    assert shapes.resolve_shape((), 1) == ()
    for bad in ((-1, -1), (4, -1), (7,), (0, -1), (-2, 3)):
        with pytest.raises(ValueError, match=r"reshape|sizes of a shape"):
            shapes.resolve_shape(bad, 6)
    for bad in (-1, (2, -3)):
        with pytest.raises(ValueError, match="0 or more"):
            shapes.resolve_shape(bad)
    for bad in (1.5, (2, 1.0), "ab", None):
        with pytest.raises(TypeError, match="sequence of integers"):
            shapes.resolve_shape(bad)


def test_axes():
    assert shapes.normalize_axis(np.int32(-1), 3) == 2
    assert shapes.normalize_axes([0, -1], 3) == (0, 2)
    for axis in (3, -4):
        with pytest.raises(np.exceptions.AxisError, match=f"axis {axis} is out of bounds"):
            shapes.normalize_axis(axis, 3)
    with pytest.raises(ValueError, match="twice"):
        shapes.normalize_axes((0, -3), 3)
    with pytest.raises(TypeError):
        shapes.normalize_axis(1.0, 3)
    assert shapes.permute(None, (1, 2, 3)) == ((3, 2, 1),)
    with pytest.raises(ValueError, match="every axis once"):
        shapes.permute((0,), (1, 2))


def test_may_overlap():
    assert shapes.may_overlap((0, 8), (7, 9))
    assert not shapes.may_overlap((0, 8), (8, 16))
    assert not shapes.may_overlap((4, 4), (0, 8))
