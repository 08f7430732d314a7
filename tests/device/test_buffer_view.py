"""Views into a sub-range of an array: construction, limits, immutability."""

import copy
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyarray import dtypes
from pyarray.annotations import ArrayAnnotation
from pyarray.array import empty, ndarray
from pyarray.array_convert import array, asarray, asnumpy
from pyarray.buffer_view import BufferView


@pytest.fixture
def data():
    return asarray(np.arange(32, dtype=np.float32))


def test_a_slice_is_a_view_without_a_copy(data):
    view = data[8:24]
    assert type(view) is BufferView
    assert (view.offset, view.size, view.shape, view.byte_offset) == (8, 16, (16,), 32)
    assert view.base is data
    assert view._ptr == data._ptr + 32
    view[0] = -1
    assert data[8].item() == -1


@given(st.slices(40))
def test_slices_clamp_as_pythons_do(key):
    data = asarray(np.arange(32))
    view = data[key]
    assert view.tolist() == list(range(32))[key]
    if view.size > 1 and key.step not in (None, 1):
        assert type(view) is ndarray
    else:
        assert type(view) is BufferView


def test_empty_views(data):
    for key, offset in ((slice(40, 50), 32), (slice(5, 2), 5), (slice(3, 3), 3), (slice(-50, -40), 0)):
        assert (data[key].size, data[key].offset) == (0, offset)
    assert data[:].size == 32


def test_rows_are_views():
    m = asarray(np.arange(12).reshape(3, 4))
    assert type(m[1]) is BufferView
    assert m[1].offset == 4
    assert type(m[:, 1]) is ndarray
    assert type(m.T[1]) is ndarray
    assert type(m[0:1]) is ndarray
    assert m[1][1:].offset == 5
    assert m[1][1:].base is m


@given(st.integers(-3, 12), st.integers(-3, 12))
def test_constructor_and_subview_are_strict(offset, size):
    parent = asarray(np.arange(20))[5:14]
    for make in (lambda: BufferView(parent, offset, size), lambda: parent.subview(offset, size)):
        if offset >= 0 and size >= 0 and offset + size <= 9:
            view = make()
            assert (view.offset, view.size) == (5 + offset, size)
            assert view.base is parent.base
        else:
            with pytest.raises(ValueError, match=f"offset={offset}, size={size} leaves its parent of size 9"):
                make()


@pytest.mark.parametrize("bad", [1.0, 1.9, "1", None, np.float32(1)])
def test_offsets_are_integers(data, bad):
    for arguments in ((bad, 1), (1, bad)):
        with pytest.raises(TypeError, match="is an integer, got"):
            BufferView(data, *arguments)
        with pytest.raises(TypeError, match="is an integer, got"):
            data.subview(*arguments)
    assert BufferView(data, np.int64(3), np.uint8(2)).offset == 3


def test_only_runs_have_views(data):
    with pytest.raises(TypeError, match="1D array, got shape"):
        BufferView(empty((2, 3)), 0, 1)
    with pytest.raises(TypeError, match="contiguous run, got a 1D array with a stride of 8 bytes"):
        BufferView(data[::2], 0, 1)
    with pytest.raises(TypeError, match=r"pyarray\.asarray"):
        BufferView(np.zeros(3), 0, 1)
    with pytest.raises(TypeError, match="not constructed directly"):
        ndarray((3,))


def test_view_of_a_view_is_flattened(data):
    view = BufferView(BufferView(data, 4, 20), 3, 5)
    assert view.base is data
    assert view.offset == 7
    assert data.subview(offset=16, size=16).subview(2, 3)[1:].offset == 19


def test_elements(data):
    view = data[4:8]
    assert view[0].item() == 4
    assert view[-1].item() == 7
    view[-1] = 0
    assert asnumpy(data)[7] == 0
    assert len(view) == 4
    assert [float(item) for item in view] == [4, 5, 6, 0]
    assert view.dtype is np.dtype("float32")
    assert type(view.copy()) is ndarray
    assert view.copy().base is None


def test_a_view_is_immutable(data):
    view = data[4:8]
    for name in ("size", "offset", "shape", "base", "dtype", "device", "strides", "anything"):
        with pytest.raises(AttributeError):
            setattr(view, name, 3)
        with pytest.raises(AttributeError):
            delattr(view, name)
    with pytest.raises(TypeError, match="unhashable"):
        hash(view)


def test_a_view_keeps_its_base_alive():
    x = np.arange(8.0)
    gone = weakref.ref(x)
    view = asarray(x)[2:4]
    del x
    assert gone() is not None
    assert view.tolist() == [2, 3]
    del view
    assert gone() is None


def test_pickle_holds_the_range_only():
    data = array(np.arange(100_000))
    text = pickle.dumps(data[10:13])
    assert len(text) < 1000
    view = pickle.loads(text)
    assert type(view) is BufferView
    assert view.tolist() == [10, 11, 12]
    assert view.base.size == 3
    for other in (
        copy.copy(view),
        copy.deepcopy(view),
        pickle.loads(pickle.dumps(data.reshape(100, 1000)[::50, 3])),
    ):
        assert type(other) is ndarray
        assert other.base is None


def test_annotations():
    assert BufferView[dtypes.float32] == ArrayAnnotation(True, dtypes.float32, 1)
    assert BufferView["int8"] == ArrayAnnotation(True, dtypes.int8, 1)
    assert ndarray[dtypes.float32, 2] == ArrayAnnotation(False, dtypes.float32, 2)
    assert ndarray[np.float32] == ArrayAnnotation(False, dtypes.float32, None)
    assert ndarray[..., 3] == ArrayAnnotation(False, None, 3)
    assert repr(ndarray[float, 2]) == "ndarray[float64, 2]"
    for wrong in (
        lambda: BufferView[dtypes.float32, 2],
        lambda: ndarray["object"],
        lambda: ndarray["f4", 1, 2],
        lambda: ndarray["f4", 1.5],
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="0 or more"):
        ndarray["float32", -1]


def test_reinterpreted_memory(data):
    bits = data.view("int16")
    assert bits.shape == (64,)
    assert bits.base is data
    assert bits[4:6].offset == 4
    half = data[1:3].view("complex64")  # it starts inside a complex element of the base, so it counts from itself
    assert half.base is None
    assert half[:].offset == 0
    assert half.tolist() == [1 + 2j]
    for wrong, text in (
        (lambda: data[1:4].view("int64"), "multiple"),
        (lambda: data[::2].view("int64"), "contiguous last axis"),
    ):
        with pytest.raises(ValueError, match=text):
            wrong()
    with pytest.raises(ValueError, match="not aligned"):
        asarray(np.zeros(9, np.int8))[1:9].view("float64")
