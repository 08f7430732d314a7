"""Basic and advanced indices against NumPy: values, shape, strides and addresses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import as_view, basic_keys, few_dtypes, numpy_views

import pyarray as pa
from pyarray import dtypes
from pyarray.array import empty
from pyarray.array_convert import asarray, asnumpy
from pyarray.buffer_view import BufferView


def check_same_window(mine, theirs):
    assert mine.shape == theirs.shape
    assert mine.size == theirs.size
    assert mine.ndim == theirs.ndim
    if theirs.size:
        assert mine.strides == theirs.strides
        assert mine._ptr == theirs.__array_interface__["data"][0]
    np.testing.assert_array_equal(asnumpy(mine), theirs)


@given(st.data())
def test_basic_index(data):
    x = data.draw(numpy_views(few_dtypes))
    key = data.draw(basic_keys(x.shape))
    a = asarray(x)
    check_same_window(a, x)
    mine, theirs = a[key], as_view(x, key)
    check_same_window(mine, theirs)
    run = mine.ndim == 1 and (theirs.flags.c_contiguous or theirs.size <= 1)
    assert type(mine) is (BufferView if run else type(empty(0)))
    assert mine.base is a
    assert mine.flags.c_contiguous == (theirs.flags.c_contiguous or theirs.size <= 1)
    second = data.draw(basic_keys(mine.shape))
    check_same_window(mine[second], as_view(theirs, second))
    assert mine[second].base is a


@given(st.data())
def test_basic_assignment(data):
    x = data.draw(numpy_views(few_dtypes)).copy()
    key = data.draw(basic_keys(x.shape))
    shape = as_view(x, key).shape
    rows = dtypes.ALL if x.dtype.kind == "c" else dtypes.of_kinds("biuf")  # NumPy warns of complex to real
    values = numpy_views(data.draw(st.sampled_from(rows)), shape)
    value = data.draw(values.filter(lambda v: v.shape == shape))
    a = asarray(x, copy=True)
    with np.errstate(all="ignore"):
        expected = x.copy()
        np.copyto(as_view(expected, key), value, casting="unsafe")
        a[key] = asarray(value)
    np.testing.assert_array_equal(asnumpy(a), expected)


@given(numpy_views(few_dtypes))
def test_whole_reversed_and_transposed(x):
    a = asarray(x)
    check_same_window(a.T, x.T)
    check_same_window(a[...], x[...])
    if x.ndim > 1:
        check_same_window(a.mT, x.mT)
        check_same_window(a.swapaxes(0, -1), x.swapaxes(0, -1))
    assert a.T.flags.f_contiguous == a.flags.c_contiguous
    check_same_window(a.squeeze(), x.squeeze())
    np.testing.assert_array_equal(asnumpy(a.ravel()), x.ravel())
    np.testing.assert_array_equal(asnumpy(a.reshape(-1, order="F")) if x.size else x.ravel(), x.ravel(order="F"))
    assert a.tolist() == x.tolist()


@given(st.integers(0, 20), st.slices(20))
def test_the_fast_slice_is_the_general_one(n, key):
    x = np.arange(n, dtype=np.float32)
    for mine, theirs in ((asarray(x), x), (asarray(x)[:], x), (asarray(x[::2]), x[::2])):
        check_same_window(mine[key], theirs[key])


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (4, IndexError, "index 4 is out of bounds for axis 0 with size 4"),
        (-5, IndexError, "index -5 is out of bounds for axis 0 with size 4"),
        (np.int64(4), IndexError, "index 4 is out of bounds for axis 0 with size 4"),
        ((0, 6), IndexError, "index 6 is out of bounds for axis 1 with size 6"),
        ((..., 6), IndexError, "index 6 is out of bounds for axis 1 with size 6"),
        ((0, 0, 0), IndexError, "too many indices"),
        ((..., ...), IndexError, "single ellipsis"),
        (1.0, IndexError, "float 1.0"),
        ("x", IndexError, "str 'x'"),
        (slice(0, 2, 0), ValueError, "step cannot be zero"),
        ((0, slice(0, 2, 0)), ValueError, "step cannot be zero"),
        (slice(0.0, 2), TypeError, "slice indices"),
        ((None,) * 70, IndexError, "at most 64 dimensions"),
    ],
)
def test_bad_index(key, error, text):
    a = asarray(np.zeros((4, 6)))
    with pytest.raises(error, match=text):
        a[key]
    with pytest.raises(error, match=text):
        a[key] = 0


def test_bad_index_of_the_fast_paths():
    a = asarray(np.zeros(4))
    for key, error in (
        (slice(0, 2, 0), ValueError),
        (slice(0.0, 2), TypeError),
        (4, IndexError),
        (-5, IndexError),
    ):
        with pytest.raises(error):
            a[key]
    with pytest.raises(IndexError, match="too many"):
        asarray(np.zeros(()))[0]


def test_indices_are_anything_with_index():
    class Two:
        def __index__(self):
            return 2

    a = asarray(np.arange(6))
    for two in (Two(), np.int8(2), np.array(2), asarray(np.array(2))):
        assert a[two].item() == 2
        assert a[two:].tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize(
    "key",
    [[0, 2], np.array([1, 1]), np.array([True, False, True, False]), ([0, 1], slice(1, 3)), True, np.True_],
)
def test_advanced_index_is_a_copy(key):
    x = np.arange(24).reshape(4, 6)
    a = asarray(x.copy())
    np.testing.assert_array_equal(asnumpy(a[key]), x[key])
    ours = tuple(asarray(k) if isinstance(k, np.ndarray) else k for k in key) if isinstance(key, tuple) else key
    np.testing.assert_array_equal(asnumpy(a[asarray(ours) if isinstance(ours, np.ndarray) else ours]), x[key])
    a[key] = 7
    x[key] = 7
    np.testing.assert_array_equal(asnumpy(a), x)


def test_assignment_takes_what_broadcasts():
    a = asarray(np.zeros((2, 3)))
    a[0] = [1, 2, 3]
    a[1, 1:] = np.ones((1, 1, 2))
    a[1, 0] = 5
    assert a.tolist() == [[1, 2, 3], [5, 1, 1]]
    with pytest.raises(ValueError, match="broadcast"):
        a[0] = [1, 2]


@pytest.mark.parametrize("key", [slice(None), [0, 1]], ids=["basic", "list"])
def test_sequences_must_fit_integers(key):
    a = pa.zeros(2, dtype="uint8")
    for value, error in (([300, -1], OverflowError), ([-1.0, 0.5], OverflowError), ([0, np.nan], ValueError)):
        with pytest.raises(error, match="can't become an array of uint8"):
            a[key] = value
        assert not pa.any(a)
    a[key] = [255, 1.5]
    assert a.tolist() == [255, 1]
    a[key] = (True, np.int64(258))  # what has a dtype is cast, as an array is
    assert a.tolist() == [1, 2]
    with pytest.raises(TypeError, match=r"complex128 can't be assigned to uint8: take \.real"):
        a[key] = [1j, 0]
    wide = pa.zeros(2, dtype="float32")
    wide[key] = [2**70, 1e300]
    assert wide.tolist() == [2**70, np.inf]
    with pytest.raises(OverflowError, match="can't become an array of int64"):
        pa.zeros(2, dtype="int64")[key] = [1e30, 0]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("value", [np.uint8(200), np.int64(-1), np.uint64(2**64 - 1), np.float64(2.5), np.float64(300)])
def test_numbers_of_numpy_fit_where_they_do_in_numpy(dtype, value):
    ways = {
        "element": lambda x: x.__setitem__(0, value),
        "view": lambda x: x.__setitem__(slice(None), value),
        "fill": lambda x: x.fill(value),
        "list": lambda x: x.__setitem__([0, 1], value),  # here NumPy takes it modulo
    }
    for way, assign in ways.items():
        mine, theirs = pa.zeros(2, dtype=dtype), np.zeros(2, dtype)
        try:
            assign(theirs)
        except OverflowError:
            with pytest.raises(OverflowError):
                assign(mine)
        else:
            assign(mine)
        assert mine.tolist() == theirs.tolist(), way


def test_floats_of_numpy_without_an_integer():
    a = pa.zeros(2, dtype="int32")
    for value, error in (np.float64("nan"), ValueError), (np.float32("inf"), OverflowError), (1e300, OverflowError):
        with pytest.raises(error):
            a[:] = np.float64(value)
        with pytest.raises(error):
            a[0] = np.float64(value)
    assert a.tolist() == [0, 0]


def test_one_element_of_an_enormous_step():
    a = pa.arange(12).reshape(3, 4)
    for step in (2**60, -(2**60), 2**200):
        got = a[::step, ::-step]
        want = asnumpy(a)[:: np.sign(step) * 9, :: -np.sign(step) * 9]
        assert got.tolist() == want.tolist()
        assert str(got) == str(want)
        np.testing.assert_array_equal(np.from_dlpack(got + 0), want)
        np.testing.assert_array_equal(np.asarray(got), want)
        assert got[::step, ::step].tolist() == want.tolist()


def test_read_only():
    x = np.zeros(4)
    x.flags.writeable = False
    a = asarray(x)
    assert not a.flags.writeable
    assert a._key >> 17 & 1
    for change in (lambda: a.__setitem__(0, 1), lambda: a[1:].__setitem__([0], 1), lambda: a.fill(1)):
        with pytest.raises(ValueError, match=r"destination is read-only; assign to a\.copy"):
            change()
    with pytest.raises(ValueError, match="cannot set writeable"):
        a.flags.writeable = True
    assert a.copy().flags.writeable
    b = empty(3)
    key = b._key
    b.flags.writeable = False
    assert not b[1:].flags.writeable
    with pytest.raises(ValueError, match="cannot set writeable"):
        b[1:].flags.writeable = True
    b.flags.writeable = True
    assert b._key == key


def test_iteration_and_length():
    a = asarray(np.arange(6).reshape(2, 3))
    assert [row.tolist() for row in a] == [[0, 1, 2], [3, 4, 5]]
    assert len(a) == 2
    for function in (len, iter):
        with pytest.raises(TypeError, match="0-d"):
            function(a[0, 0])
