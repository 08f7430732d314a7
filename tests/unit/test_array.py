"""Creation from and conversion to NumPy and Python."""

import array as std
import copy

import numpy as np
import pytest
from hypothesis import given
from strategies import numpy_views

from pyarray import dtypes
from pyarray.array import empty, ndarray, numpy_functions, operations
from pyarray.array_convert import array, asarray, asnumpy


@given(numpy_views())
def test_asarray_shares_memory(x):
    a = asarray(x)
    assert a.dtype == x.dtype
    assert (a.shape, a.size, a.ndim, a.nbytes, a.itemsize) == (x.shape, x.size, x.ndim, x.nbytes, x.itemsize)
    back = asnumpy(a)
    assert back.dtype == x.dtype
    for strides in (a.strides, back.strides):  # that of an axis with one element is never used
        lengths = zip(x.shape, strides, x.strides, strict=True)
        assert not x.size or all(ours == theirs for n, ours, theirs in lengths if n > 1)
    np.testing.assert_array_equal(back, x)
    np.testing.assert_array_equal(np.asarray(a), x)
    assert not x.size or np.shares_memory(back, x)
    assert not np.shares_memory(a.get(), x)
    assert not np.shares_memory(asnumpy(array(x)), x)
    np.testing.assert_array_equal(asnumpy(array(x)), x)
    assert a.byte_offset == a._ptr - a._buffer.ptr
    assert 0 <= a.byte_offset <= max(a._buffer.nbytes - a.itemsize, 0)


@pytest.mark.parametrize(
    ("obj", "dtype", "value"),
    [
        (True, "bool", True),
        (3, "int64", 3),
        (2.5, "float64", 2.5),
        (1j, "complex128", 1j),
        ([1, 2.5], "float64", [1.0, 2.5]),
        ([[True], [False]], "bool", [[True], [False]]),
        ([], "float64", []),
        (np.float32(2), "float32", 2.0),
        (range(3), "int64", [0, 1, 2]),
        (b"ab"[0], "int64", 97),
    ],
)
def test_asarray_of_python_objects(obj, dtype, value):
    a = asarray(obj)
    assert a.dtype == dtype
    assert a.tolist() == value
    with pytest.raises(ValueError, match="can't be shared"):
        asarray(obj, copy=False)


def test_asarray_of_sequences_of_arrays():
    a = asarray([1, 2])
    assert asarray([a, [3, a[0]]]).tolist() == [[1, 2], [3, 1]]


@pytest.mark.parametrize(
    "x",
    [
        np.array(["a"]),
        np.array([1], "datetime64[s]"),
        np.zeros(2, "i4,f4"),
        np.zeros(2, np.longdouble),
        "text",
    ],
    ids=["text array", "times", "fields", "long double", "text"],
)
def test_unsupported_dtypes(x):
    message = r"dtype .* is not supported|is a dtype of records, and numbers are needed here: pass a field"
    with pytest.raises(TypeError, match=message):
        asarray(x)


@pytest.mark.parametrize(
    ("obj", "dtype", "error", "message"),
    [
        (None, None, TypeError, r"an element is a number or a bool, got None; write math\.nan"),
        ([1, None], None, TypeError, r"got None; write math\.nan"),
        ([1, None], "int32", TypeError, r"got None; write math\.nan"),
        ([{}], None, TypeError, "got dict; convert it to a number"),
        (np.array([1, object()]), None, TypeError, "got object; convert it to a number"),
        (np.array([1, 2], object), None, TypeError, "an array of objects can't be shared or copied"),
        ((k for k in range(3)), None, TypeError, "a generator is no sequence; make a list of it"),
        ((k for k in range(3)), "float32", TypeError, "a generator is no sequence; make a list of it"),
        ({1, 2}, None, TypeError, "a set is no sequence; make a list of it"),
        (b"ab", None, TypeError, "bytes are text to NumPy; write frombuffer"),
        (
            [2**64],
            None,
            OverflowError,
            "18446744073709551616 is out of range for int64 and uint64; pass it",
        ),
        (-(2**63) - 1, None, OverflowError, "-9223372036854775809 is out of range"),
        ([300], "uint8", OverflowError, "the list can't become an array of uint8: .* 300 .* name a dtype"),
        ([float("nan")], "int64", ValueError, "can't become an array of int64: cannot convert float NaN"),
        ([1j], "float64", TypeError, "can't become an array of float64: .* 'complex'"),
    ],
)
def test_what_is_no_number(obj, dtype, error, message):
    with pytest.raises(error, match=message):
        asarray(obj, dtype)


class Labelled(np.ndarray):
    """A subclass that adds nothing."""


def test_subclasses_are_shared(tmp_path):
    for x in (np.zeros(4).view(Labelled), np.zeros((2, 2)).view(np.matrix)):
        a = asarray(x, copy=False)
        assert a.shape == x.shape
        asnumpy(a)[...] = 3
        assert (np.asarray(x) == 3).all()
    path = tmp_path / "values"
    file = np.memmap(path, np.float32, "w+", shape=4)
    asnumpy(asarray(file))[3] = 7
    file.flush()
    a = asarray(np.memmap(path, np.float32, "r"))
    assert a.tolist() == [0, 0, 0, 7]
    assert not a.flags.writeable


def test_buffers_are_shared():
    for buffer in (bytearray(b"ab"), memoryview(bytearray(b"ab")), std.array("B", b"ab")):
        a = asarray(buffer, copy=False)
        assert (a.tolist(), a.dtype) == ([97, 98], "uint8")
        asnumpy(a)[1] = 7
        assert buffer[1] == 7
        assert not np.shares_memory(asnumpy(array(buffer)), asnumpy(a))
        assert asarray(buffer, "int32").tolist() == [97, 7]
        with pytest.raises(ValueError, match=r"the .* can't be shared"):
            asarray(buffer, "int32", copy=False)
    assert not asarray(memoryview(b"ab")).flags.writeable
    assert asarray(std.array("d", [1.5]), "float64", copy=False).tolist() == [1.5]


def test_repeated_elements_are_read_only():
    x = np.lib.stride_tricks.as_strided(np.ones(3), (2, 3), (0, 8))
    assert x.flags.writeable
    a = asarray(x)
    assert not a.flags.writeable
    assert a.tolist() == [[1, 1, 1], [1, 1, 1]]
    for row in (a, a[:, 1:]):
        with pytest.raises(ValueError, match=r"cannot set writeable: elements repeat \(strides \(0, 8\)\)"):
            row.flags.writeable = True
    with pytest.raises(ValueError, match=r"read-only: elements repeat .* assign to a\.copy\(\)"):
        a[0, 0] = 1
    for harmless in (x[:1], x[:, :0]):  # nothing repeats in what has one element along the axis, or none
        assert asarray(harmless).flags.writeable
    assert a.copy().flags.writeable


@pytest.mark.parametrize(
    "x",
    [
        np.arange(3, dtype=">i4"),
        np.zeros(9, np.uint8)[1:].view(np.float64),
        np.frombuffer(b"x" * 9, np.int8)[1:].view(np.int64),
    ],
)
def test_foreign_layouts_are_copied(x):
    a = asarray(x)
    np.testing.assert_array_equal(asnumpy(a), x)
    assert not np.shares_memory(asnumpy(a), x)
    assert a.flags.writeable
    with pytest.raises(ValueError, match="can't be shared"):
        asarray(x, copy=False)


def test_asarray_converts():
    x = np.array([1.5, 2.5])
    assert asarray(x, dtype="int32").tolist() == [1, 2]
    assert asarray(asarray(x), dtype=dtypes.bfloat16).tolist() == [1.5, 2.5]
    with pytest.raises(ValueError, match="copies"):
        asarray(asarray(x), dtype="int32", copy=False)
    a = asarray(x)
    assert asarray(a) is a
    assert asarray(a, copy=True) is not a
    assert array(a, copy=False) is a
    for x, dtype in (([1, 2], None), (np.arange(3), "float32"), (3, None)):
        with pytest.raises(ValueError, match=r"can't be shared .* pass copy=None or copy=True"):
            array(x, dtype, copy=False)
        assert array(x, dtype, copy=None).tolist() == np.array(x).tolist()
    x = np.arange(3)
    assert np.shares_memory(asnumpy(array(x, copy=False)), x)
    assert not np.shares_memory(asnumpy(array(x)), x)
    with pytest.raises(ValueError, match="unknown device"):
        asarray(x, device="tpu")
    with pytest.raises(ValueError, match="equal lengths"):
        asarray([[1], [1, 2]])


def test_empty():
    a = empty((2, 3), np.int16)
    assert (a.shape, a.strides, a.dtype, str(a.device), a.base) == ((2, 3), (6, 2), dtypes.int16, "cpu", None)
    assert a.flags.owndata
    assert a._key == dtypes.int16.code | 2 << 8
    assert empty(()).size == 1
    for bad in (-1, (2, -1)):
        with pytest.raises(ValueError, match="0 or more"):
            empty(bad)
    with pytest.raises(ValueError, match="at most 64"):
        empty((1,) * 65)


def test_scalars():
    a = asarray(np.array(3, np.int16))
    assert (int(a), float(a), complex(a), bool(a), a.item()) == (3, 3.0, 3 + 0j, True, 3)
    assert [10, 20, 30, 40][a] == 40
    assert type(asarray(np.array(1.5, dtypes.bfloat16.numpy)).item()) is float
    assert bool(asarray([[1]]))
    for wrong in (
        lambda: int(asarray([1])),
        lambda: float(asarray(1j)),
        lambda: [1][asarray(0.0)],
        lambda: complex(empty(2)),
    ):
        with pytest.raises(TypeError):
            wrong()
    for size in (0, 2):
        with pytest.raises(ValueError, match="ambiguous"):
            bool(empty(size))
    with pytest.raises(ValueError, match="NaN"):
        int(asarray(float("nan")))


def test_item():
    a = asarray(np.arange(6).reshape(2, 3))
    assert (a.item(4), a.item(-1), a.item(1, 0), a.item((0, 2)), a.T.item(1)) == (4, 5, 3, 2, 3)
    with pytest.raises(ValueError, match="size 1"):
        a.item()
    for index in ((6,), (2, 0), (0, 0, 0)):
        with pytest.raises(IndexError):
            a.item(*index)


def test_array_protocol():
    a = asarray(np.arange(3.0))
    assert np.shares_memory(np.asarray(a), asnumpy(a))
    assert not np.shares_memory(np.array(a), asnumpy(a))
    assert a.__array__(np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="copies"):
        a.__array__(np.float32, copy=False)
    assert np.asarray(asarray([1.5], dtype="bfloat16")).dtype == dtypes.bfloat16.numpy


def test_arrays_elsewhere_are_not_read_silently():
    a = empty(4, device="null:0")
    with pytest.raises(TypeError, match=r"asnumpy\(a\) or a.get\(\), or a.item\(\)"):
        np.asarray(a)
    assert a._key >> 20 == 3
    assert str(a[1:].device) == "null:0"


def test_copies_are_fresh():
    x = np.arange(6).reshape(2, 3)
    for other in (asarray(x.T).copy(), copy.copy(asarray(x.T)), copy.deepcopy(asarray(x.T))):
        assert other.tolist() == x.T.tolist()
        assert other.flags.c_contiguous
        assert other.flags.owndata
    a = asarray(x)
    assert a.flatten()._ptr != a._ptr
    assert a.ravel()._ptr == a._ptr
    assert a.astype("int64", copy=False) is a
    assert a.astype("int64") is not a
    with pytest.raises(ValueError, match="needs a copy"):
        a.T.reshape(6, copy=False)
    assert a.reshape(6, copy=True)._ptr != a._ptr
    assert a.to_device("cpu") is a


def test_flags():
    a = asarray(np.zeros((2, 3)).T)
    assert (a.flags.c_contiguous, a.flags.f_contiguous, a.flags.owndata, a.flags["WRITEABLE"]) == (
        False,
        True,
        False,
        True,
    )
    assert "F_CONTIGUOUS : True" in repr(a.flags)
    with pytest.raises(KeyError):
        a.flags["X"]


def test_contains(monkeypatch):
    monkeypatch.setattr(ndarray, "__eq__", lambda self, other: asarray(asnumpy(self) == other))
    assert 3 in asarray([1, 3])
    assert 4 not in asarray([1, 3])


def test_namespace():
    assert asarray(1).__array_namespace__(api_version="2024.12").__name__ == "pyarray"
    with pytest.raises(ValueError, match="unknown"):
        asarray(1).__array_namespace__(api_version="1999")


def test_numpy_functions(monkeypatch):
    monkeypatch.setitem(numpy_functions, "add", lambda a, b: asarray(asnumpy(a) + asnumpy(b)))
    monkeypatch.setitem(numpy_functions, "sum", lambda a, axis=None: asarray(asnumpy(a).sum(axis)))
    monkeypatch.setitem(
        numpy_functions, "concatenate", lambda parts: asarray(np.concatenate([asnumpy(p) for p in parts]))
    )
    a, out = asarray([1.0, 2.0]), empty(2)
    assert isinstance(np.add(a, 1), ndarray)
    assert np.add(np.array([1.0, 1.0]), a).tolist() == [2, 3]
    assert np.add(a, a, out=out) is out
    assert out.tolist() == [2, 4]
    target = np.zeros(2)
    assert np.add(a, a, out=target) is target
    assert target.tolist() == [2, 4]
    assert np.concatenate([a, a]).shape == (4,)
    monkeypatch.delitem(numpy_functions, "hypot", raising=False)
    monkeypatch.delitem(numpy_functions, "kron", raising=False)
    for call, name in (
        (lambda: np.hypot(a, a), "hypot"),
        (lambda: np.kron(a, a), "kron"),
        (lambda: np.add.reduceat(a, [0]), "add.reduceat"),
    ):
        with pytest.raises(TypeError, match=rf"numpy\.{name} has no pyarray"):
            call()
    with pytest.raises(TypeError, match=r"takes where= with out= alone, .*pyarray\.where"):
        np.add(a, a, where=np.array([True, False]))


def test_what_computes_is_provided_from_above(monkeypatch):
    monkeypatch.delitem(operations, "assign")
    with pytest.raises(RuntimeError, match="'assign'"):
        empty(3, "int32")[0] = 1.0  # a number that is cast: no plan has that


def test_moving_to_another_device_is_one_copy():
    a = asarray(np.arange(4, dtype=np.int32), device="null:0")
    assert a.device.driver.calls[-1][0] == "copy_in"
    assert a.device.driver.calls[-1][1][0::2] == (a._ptr, 16)
    a[1:3].get()
    assert a.device.driver.calls[-1][0] == "copy_out"
    assert a.device.driver.calls[-1][1][1:] == (a._ptr + 4, 8)
    assert a.to_device("null:1").device == "null:1"
    assert a.to_device("null:0") is a
