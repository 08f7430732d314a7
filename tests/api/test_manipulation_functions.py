"""Manipulation functions against NumPy's: values, dtypes, and that views are views."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import as_view, examples, numpy_views

import pyarray as pa

FEW = examples(40)
VIEWS = numpy_views(dtype=pa.float32)


def same(a: pa.ndarray, expected: np.ndarray) -> None:
    assert a.dtype == expected.dtype
    assert a.shape == expected.shape
    np.testing.assert_array_equal(pa.asnumpy(a), expected)


def same_view(a: pa.ndarray, expected: np.ndarray) -> None:
    """The same memory, too, and the same strides wherever they mean something."""
    same(a, expected)
    if expected.size > 1:
        steps = [(s, t) for s, t, n in zip(a.strides, expected.strides, a.shape, strict=True) if n > 1]
        assert all(s == t for s, t in steps)
        assert pa.asnumpy(a).__array_interface__["data"][0] == expected.__array_interface__["data"][0]


def axes_of(x: np.ndarray) -> st.SearchStrategy:
    return st.lists(st.integers(-x.ndim, x.ndim - 1), unique_by=lambda k: k % x.ndim).map(tuple)


@FEW
@given(VIEWS, st.data())
def test_views(x, data):
    a = pa.asarray(x)
    same_view(pa.permute_dims(a, tuple(range(x.ndim))[::-1]), x.T)
    same_view(pa.flip(a), as_view(x, (*(slice(None, None, -1),) * x.ndim,)))
    place = data.draw(st.integers(-x.ndim - 1, x.ndim))
    same_view(pa.expand_dims(a, axis=place), np.expand_dims(x, place))
    same_view(pa.squeeze(a), np.squeeze(x))
    for ours, theirs in (
        (pa.atleast_1d, np.atleast_1d),
        (pa.atleast_2d, np.atleast_2d),
        (pa.atleast_3d, np.atleast_3d),
    ):
        same_view(ours(a), theirs(x))
    if x.ndim:
        source = data.draw(axes_of(x))
        target = data.draw(st.permutations(range(x.ndim)))[: len(source)]
        same_view(pa.moveaxis(a, source, tuple(target)), np.moveaxis(x, source, target))
        same_view(pa.flip(a, axis=source), np.flip(x, source))
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        for one, other in zip(pa.unstack(a, axis=axis), np.moveaxis(x, axis, 0), strict=True):
            same(one, other)


@FEW
@given(VIEWS, st.data())
def test_reshape(x, data):
    a = pa.asarray(x)
    flat = pa.reshape(a, (-1,)) if x.size else pa.reshape(a, (0,))
    same(flat, x.reshape(x.size))
    wanted = data.draw(st.permutations(x.shape))
    same(pa.reshape(a, tuple(wanted)), x.reshape(wanted))
    copied = pa.reshape(a, tuple(wanted), copy=True)
    assert copied.base is None or copied.base is not a
    assert not x.size or not np.shares_memory(pa.asnumpy(copied), x)


@FEW
@given(VIEWS, st.lists(st.integers(1, 3), max_size=2))
def test_broadcast_to(x, lead):
    shape = (*lead, *x.shape)
    a = pa.broadcast_to(pa.asarray(x), shape)
    same_view(a, np.broadcast_to(x, shape))
    assert not a.flags.writeable
    assert [b.shape for b in pa.broadcast_arrays(pa.asarray(x), pa.zeros((*lead, *(1,) * x.ndim)))] == [shape] * 2


def test_broadcast_errors():
    with pytest.raises(ValueError, match=r"\(3,\) doesn't broadcast to \(2,\)"):
        pa.broadcast_to(pa.ones(3), (2,))
    with pytest.raises(ValueError, match="read-only"):
        pa.broadcast_to(pa.ones(1), (2,))[0] = 1
    assert pa.broadcast_shapes((2, 1), (3,), ()) == (2, 3)


@examples(20)
@given(st.data(), st.sampled_from((pa.float32, pa.int32)))
def test_concat_and_stack(data, dtype):
    first = data.draw(VIEWS)
    second = data.draw(numpy_views(dtype=dtype, shape=first.shape).filter(lambda y: y.shape == first.shape))
    pair, ours = (first, second), (pa.asarray(first), pa.asarray(second))
    for axis in range(-first.ndim, first.ndim):
        same(pa.concat(ours, axis=axis), np.concatenate(pair, axis=axis).astype(pa.result_type(*ours)))
    flat = np.concatenate(pair, axis=None).astype(pa.result_type(*ours))
    same(pa.concat(ours, axis=None), flat)
    for axis in range(-first.ndim - 1, first.ndim + 1):
        same(pa.stack(ours, axis=axis), np.stack(pair, axis=axis).astype(pa.result_type(*ours)))


def test_joining_errors():
    with pytest.raises(ValueError, match=r"array 1 has \(3,\)"):
        pa.stack([pa.ones(2), pa.ones(3)])
    with pytest.raises(ValueError, match="off axis 0: array 0 has shape"):
        pa.concat([pa.ones((2, 2)), pa.ones((2, 3))])
    with pytest.raises(ValueError, match="needs at least one array"):
        pa.concat([])
    with pytest.raises(ValueError, match="0-d"):
        pa.concat([pa.asarray(1), pa.asarray(2)])
    with pytest.raises(TypeError, match="takes a sequence of arrays"):
        pa.concat(3)
    with pytest.raises(TypeError, match="no common type"):
        pa.concat([pa.ones(1, dtype=pa.uint64), pa.ones(1, dtype=pa.int8)])


@FEW
@given(VIEWS, st.data())
def test_repeat_tile_roll(x, data):
    a = pa.asarray(x)
    count = data.draw(st.integers(0, 3))
    same(pa.repeat(a, count), np.repeat(x, count))
    times = tuple(data.draw(st.lists(st.integers(0, 2), max_size=3)))
    same(pa.tile(a, times), np.tile(x, times))
    same(pa.roll(a, count), np.roll(x, count))
    if not x.ndim:
        return
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=x.shape[axis], max_size=x.shape[axis]))
    if counts:
        same(pa.repeat(a, pa.asarray(counts), axis=axis), np.repeat(x, counts, axis=axis))
    axes = data.draw(axes_of(x))
    shifts = tuple(data.draw(st.lists(st.integers(-7, 7), min_size=len(axes), max_size=len(axes))))
    if axes:
        same(pa.roll(a, shifts, axis=axes), np.roll(x, shifts, axis=axes))


def test_repeating_errors():
    with pytest.raises(ValueError, match="0 or more, got -1"):
        pa.repeat(pa.ones(2), -1)
    with pytest.raises(ValueError, match="one for each of the 2"):
        pa.repeat(pa.ones(2), pa.asarray([1, 2, 3]))
    with pytest.raises(TypeError, match="counts are integers"):
        pa.repeat(pa.ones(2), pa.asarray([1.0, 2.0]))
    with pytest.raises(ValueError, match="2 shifts for 3 axes"):
        pa.roll(pa.ones((1, 1, 1)), (1, 2), axis=(0, 1, 2))
    with pytest.raises(ValueError, match="a place for each axis"):
        pa.moveaxis(pa.ones((2, 2)), (0, 1), (0,))


def test_numpy_calls_ours():
    a = pa.arange(4)
    assert isinstance(np.concatenate([a, a]), pa.ndarray)
    assert np.expand_dims(a, 0).shape == (1, 4)


def test_more_elements_than_can_be_counted_are_refused():
    one = pa.ones(1)
    for shape in ((2**32, 2**32), (2**40, 2**40), (2**63,)):
        with pytest.raises(ValueError, match="elements, and an array at most"):
            pa.broadcast_to(one, shape)
    assert pa.broadcast_to(one, (2**31, 2**31)).size == 2**62
