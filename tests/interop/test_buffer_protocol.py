"""Arrays as buffers of Python, and capsules of DLPack beyond what their consumers do to them."""

import array as std
import ctypes
import gc
import hashlib
import io
import pickle
import socket
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from strategies import numpy_views

import pyarray as pa
from pyarray import dtypes
from pyarray.memory.host_access import host_access
from tests.interop import dlpack_capsules as capsules

NUMPYS = [row for row in dtypes.ALL if row not in dtypes.EXTENSIONS]
BYTES = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release


@given(numpy_views().filter(lambda x: dtypes.asdtype(x.dtype) not in dtypes.EXTENSIONS))
def test_buffers_are_numpys(x):
    a = pa.asarray(x)
    view, theirs = memoryview(a), memoryview(x)
    assert (view.format, view.itemsize, view.ndim) == (theirs.format, theirs.itemsize, theirs.ndim)
    assert (view.shape, view.nbytes, view.readonly) == (theirs.shape, theirs.nbytes, not a.flags.writeable)
    assert view.tobytes() == theirs.tobytes() == bytes(a)
    assert (view.c_contiguous, view.f_contiguous) == (a.flags.c_contiguous, a.flags.f_contiguous)
    y = np.asarray(a)
    assert (y.dtype, y.dtype.char, y.shape) == (x.dtype, x.dtype.char, x.shape)
    assert not x.size or y.ctypes.data == a._ptr
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("row", NUMPYS, ids=str)
def test_elements_are_shared(row):
    a = pa.zeros((2, 3), dtype=row.numpy)
    np.asarray(a)[1, 2] = 1
    assert a[1, 2].item() == 1
    a.flags.writeable = False
    assert memoryview(a).readonly
    assert not np.asarray(a).flags.writeable


def test_what_reads_bytes_takes_memoryviews():
    a = pa.arange(6, dtype="int32")
    plain = struct.pack("6i", *range(6))
    assert hashlib.sha256(memoryview(a)).digest() == hashlib.sha256(plain).digest()
    one, other = socket.socketpair()
    with one, other:
        one.sendall(memoryview(a))
        assert other.recv(100) == plain
        b = pa.zeros(6, dtype="int32")
        other.sendall(plain)
        assert one.recv_into(memoryview(b)) == 24
    assert b.tolist() == list(range(6))
    assert io.BytesIO(plain).readinto(memoryview(b)) == 24
    assert bytearray(a) == plain
    assert std.array("i", bytes(a)).tolist() == list(range(6))
    assert pickle.loads(pickle.dumps(pickle.PickleBuffer(a), protocol=5)) == plain
    assert memoryview(a)[2] == 2
    assert memoryview(pa.asarray(2.5))[()] == 2.5


def test_plain_bytes_are_refused():
    """A consumer that asks for neither dtype nor shape would read what it thinks it is: torch.asarray floats."""
    a = pa.arange(6)
    with pytest.raises(BufferError, match=r"without their dtype and shape; write memoryview\(a\)"):
        hashlib.sha256(a)
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError):
        torch.asarray(a)
    assert torch.as_tensor(a).tolist() == torch.tensor(a).tolist() == torch.from_dlpack(a).tolist() == list(range(6))


def test_what_has_no_buffer(device):
    for row in dtypes.EXTENSIONS:
        with pytest.raises(BufferError, match=rf"{row} has no format .* a.view\('uint{8 * row.itemsize}'\)"):
            memoryview(pa.ones(3, dtype=row))
        assert np.asarray(pa.ones(3, dtype=row)).dtype == row.numpy
    a = pa.ones(3, device=device)
    if a.device.kind == "cpu":
        return
    with pytest.raises(BufferError, match=f"an array on {a.device} has no memory that the host can read"):
        memoryview(a)
    with pytest.raises(TypeError, match="not turned into a NumPy array silently"):
        np.asarray(a)


FLAGS = {"writable": 1, "format": 4, "nd": 8, "strides": 0x18, "c": 0x38, "f": 0x58, "any": 0x98, "full": 0x11D}


def request(a, flags):
    """Whether there is a buffer, or the error's text."""
    view = ctypes.create_string_buffer(256)
    try:
        BYTES[0](ctypes.py_object(a), view, flags)
    except (BufferError, ValueError) as error:  # NumPy's
        return str(error)
    BYTES[1](view)
    return True


@pytest.mark.parametrize("name", FLAGS)
def test_requests_are_answered_as_numpy_does(name):
    square = np.arange(12.0).reshape(3, 4)
    frozen = square.copy()
    frozen.flags.writeable = False
    for x in (square, square.T, square[:, ::2], square[::-1], square[:1], square[:0], square[0, 0:1], frozen, frozen.T):
        for more in (0, 1):
            flags = FLAGS[name] | more | 4
            ours, numpys = request(pa.asarray(x), flags), request(x, flags)
            assert (ours is True) == (numpys is True), (x.shape, x.strides, flags, ours, numpys)


def test_buffers_outlive_names_and_tell_of_host_access():
    a = pa.arange(5.0)
    count = sys.getrefcount(a)
    views = [memoryview(a) for _ in range(10)]
    assert sys.getrefcount(a) == count + 10
    del views
    assert sys.getrefcount(a) == count
    host_access.occurred = False
    view = memoryview(a)
    assert host_access.occurred
    assert a._buffer.escaped
    del a
    gc.collect()
    assert view.tolist() == [0, 1, 2, 3, 4]
    a = pa.arange(5.0)
    view = memoryview(a)
    a.resize(100, refcheck=False)
    others = [pa.full(5, -1.0) for _ in range(10)]
    assert (view.shape, view.tolist(), len(others)) == ((5,), [0, 1, 2, 3, 4], 10)


# capsules


def deleter_of(capsule):
    """The address of a versioned tensor, and its deleter, called as another library's thread does: without the GIL."""
    address = capsules._pointer(capsule, b"dltensor_versioned")
    managed = ctypes.cast(address, ctypes.POINTER(capsules.Versioned)).contents
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.cast(managed.deleter, ctypes.c_void_p).value)
    return address, release


def consumed(a):
    """The tensor of a capsule, taken over."""
    capsule = a.__dlpack__(max_version=(1, 0))
    found = deleter_of(capsule)
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    rename(capsule, b"used_dltensor_versioned")
    return found


def test_deleters_run_without_the_gil_and_in_other_threads():
    a = pa.ones(3)
    buffer = a._buffer
    count = sys.getrefcount(buffer)
    held = [consumed(a) for _ in range(200)]
    assert sys.getrefcount(buffer) == count + 200
    parts = [held[k::4] for k in range(4)]
    threads = [threading.Thread(target=lambda part: [free(p) for p, free in part], args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getrefcount(buffer) == count


@pytest.mark.parametrize(
    "ending",
    [
        "",  # the last references die with the modules
        "atexit.register(held.clear)",
        "threading.Thread(target=lambda: [time.sleep(0.001) or held.append(np.from_dlpack(a)) for _ in range(10**6)],"
        " daemon=True).start(); time.sleep(0.05)",
    ],
)
def test_the_end_of_the_interpreter(ending):
    text = (
        "import atexit, threading, time\nimport numpy as np, pyarray as pa\n"
        "a = pa.ones(3)\nheld = [np.from_dlpack(a), a.__dlpack__(), a.__dlpack__(max_version=(1, 0)), memoryview(a),\n"
        f"        np.asarray(a), pa.asarray(np.ones(3))]\n{ending}\nprint('done')\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


def test_more_bytes_than_a_buffer_counts():
    a = pa.broadcast_to(pa.zeros(1), (2**62,))
    assert a.nbytes == 2**65
    with pytest.raises(BufferError, match="more bytes than a buffer counts"):
        memoryview(a)
    assert memoryview(a[: 2**20]).nbytes == 2**23


def test_arguments_of_exports():
    a = pa.ones(3)
    with pytest.raises(TypeError, match="no positional arguments"):
        a.__dlpack__(None)
    with pytest.raises(TypeError, match="takes stream, max_version, dl_device and copy, got 'version'"):
        a.__dlpack__(version=3)
    for version in ((1,), (1, 0), [1, 0], (np.int64(1), 0), (1 << 40, 0)):
        assert capsules.name(a.__dlpack__(max_version=version)) == b"dltensor_versioned"
    for version in (None, (0, 8), (-1, 0)):
        assert capsules.name(a.__dlpack__(max_version=version)) == b"dltensor"
    with pytest.raises(OverflowError):
        a.__dlpack__(max_version=(1 << 80, 0))
    assert a.__dlpack_device__() == (1, 0)


def test_errors_leave_nothing_behind():
    a = pa.ones((3, 3))
    a.flags.writeable = False
    buffer = a._buffer
    count = sys.getrefcount(buffer), sys.getrefcount(a)
    for _ in range(100):
        for wrong in ({}, {"stream": 5}, {"dl_device": (2, 0)}, {"max_version": "x"}, {"copy": True, "stream": 1}):
            with pytest.raises((BufferError, ValueError, TypeError)):
                a.__dlpack__(**wrong)
        with pytest.raises(BufferError):
            a[::-1].__dlpack__(max_version=(1, 0))
        with pytest.raises(BufferError):
            hashlib.sha256(a)
    assert (sys.getrefcount(buffer), sys.getrefcount(a)) == count
