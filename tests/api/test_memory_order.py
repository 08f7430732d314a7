"""Where elements lie: the memory order of what NumPy promises one for, and what is a view."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa

FEW = examples(60)
ORDERS = st.sampled_from("CFAK")


def same(a: pa.ndarray, expected: np.ndarray) -> None:
    """The same elements, in the same places of memory wherever that means something."""
    assert a.shape == expected.shape
    np.testing.assert_array_equal(pa.asnumpy(a), expected)
    if expected.size > 1:
        assert [s for s, n in zip(a.strides, a.shape, strict=True) if n > 1] == [
            s for s, n in zip(expected.strides, expected.shape, strict=True) if n > 1
        ]


@FEW
@given(numpy_views(dtype=pa.int32), ORDERS)
def test_flattened(x, order):
    a = pa.asarray(x)
    for ours, theirs in ((a.ravel(order), x.ravel(order)), (pa.ravel(a, order=order), np.ravel(x, order))):
        same(ours, theirs)
        assert ours.flags.c_contiguous
        if x.size:
            assert np.shares_memory(pa.asnumpy(ours), x) == np.shares_memory(theirs, x)
    same(a.flatten(order), x.flatten(order))
    assert not np.shares_memory(pa.asnumpy(a.flatten(order)), x)


@FEW
@given(numpy_views(dtype=pa.int32), ORDERS, st.data())
def test_copies_and_other_shapes(x, order, data):
    a = pa.asarray(x)
    same(a.copy(order), x.copy(order))
    same(pa.copy(a), np.copy(x))
    same(np.copy(a, order=order), np.copy(x, order=order))
    if order != "K":
        shape = data.draw(st.permutations(x.shape)) if x.ndim else (1, 1)
        for ours in (a.reshape(shape, order=order), pa.reshape(a, shape, order)):
            np.testing.assert_array_equal(pa.asnumpy(ours), x.reshape(shape, order=order))
    same(pa.ascontiguousarray(a), np.ascontiguousarray(x))
    same(pa.asfortranarray(a), np.asfortranarray(x))


@FEW
@given(numpy_views(dtype=pa.int32), ORDERS)
def test_new_arrays_like_others(x, order):
    a = pa.asarray(x)
    same(pa.zeros_like(a, order=order), np.zeros_like(x, order=order))
    same(pa.ones_like(a, "int8", order), np.ones_like(x, "int8", order))
    same(pa.full_like(a, 7), np.full_like(x, 7))
    assert pa.empty_like(a, order=order, shape=(2, 3)).shape == (2, 3)


def test_new_arrays(device):
    for order in "CF":
        options = {"order": order, "device": device}
        for ours, theirs in (
            (pa.zeros((2, 3), "int16", **options), np.zeros((2, 3), "int16", order)),
            (pa.ones((2, 3, 4), **options), np.ones((2, 3, 4), order=order)),
            (pa.full((2, 3), [1, 2, 3], **options), np.full((2, 3), [1, 2, 3], order=order)),
            (pa.eye(2, 3, k=1, **options), np.eye(2, 3, k=1, order=order)),
        ):
            assert (ours.strides, ours.tolist()) == (theirs.strides, theirs.tolist())
            assert ours.flags.owndata
        assert pa.empty((2, 3), order=order).strides == np.empty((2, 3), order=order).strides
    with pytest.raises(ValueError, match="order is 'C' or 'F', got 'K'"):
        pa.zeros(3, order="K")


def test_a_layout_belongs_to_its_array(device):
    a = pa.ones((2, 3), dtype="int8", device=device).copy("F")
    assert a.flags.owndata
    assert (a.flags.f_contiguous, a.flags.c_contiguous, a.base) == (True, False, None)
    a[0, 2] = 7
    assert (a + a.T.copy().T).tolist() == [[2, 2, 14], [2, 2, 2]]
    assert a.ravel("F").tolist() == [1, 1, 1, 1, 7, 1]


def test_orders_that_are_none():
    a = pa.zeros((2, 2))
    for call in (lambda: a.ravel("B"), lambda: a.flatten("B"), lambda: a.copy("B"), lambda: pa.copy(a, "B")):
        with pytest.raises(ValueError, match="order is 'C', 'F', 'A' or 'K', got 'B'"):
            call()
    with pytest.raises(ValueError, match="order is 'C', 'F' or 'A', got 'K'"):
        a.reshape(4, order="K")


def test_orders_inside_fuse():
    x = np.arange(6.0).reshape(2, 3)
    wave = pa.fuse(lambda v: (v + 1).ravel("F") * 2)
    np.testing.assert_array_equal(pa.asnumpy(wave(pa.asarray(x))), (x + 1).ravel("F") * 2)
    with pytest.raises(pa.CompileError, match=r"order='A' goes by strides.* write order='C' or order='F'"):
        pa.fuse(lambda v: (v + 1).ravel("A"))(pa.asarray(x))


def test_axes_that_repeat_an_element_stay_where_they_are(device):
    memory = np.arange(300, dtype=np.int32)
    whole = pa.asarray(memory, device=device)
    for shape in ((3, 2, 4), (1, 3, 4)):
        for steps in itertools.product((0, 1, 5, 17, -5), repeat=3):
            strides = [4 * step for step in steps]
            x = np.lib.stride_tricks.as_strided(memory[150:], shape, strides)
            a = pa.lib.stride_tricks.as_strided(whole[150:], shape, strides)
            np.testing.assert_array_equal(pa.asnumpy(a.flatten("K")), x.flatten("K"))
            np.testing.assert_array_equal(pa.asnumpy(a.ravel("K")), x.ravel("K"))
