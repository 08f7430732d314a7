"""DLPack with NumPy, with torch where it is installed, and with capsules made by hand."""

import gc
import signal
import sys
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from strategies import numpy_views

from pyarray import dtypes
from pyarray.array import empty
from pyarray.array_convert import array, asarray, asnumpy
from pyarray.dlpack import from_dlpack
from tests.interop import dlpack_capsules as capsules
from tests.interop.dlpack_capsules import Producer

FLOATS = np.arange(6, dtype=np.float32)
NUMPYS = [row for row in dtypes.ALL if row not in dtypes.EXTENSIONS]


def address(x):
    return x.__array_interface__["data"][0]


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


# NumPy


@pytest.mark.parametrize("row", NUMPYS, ids=str)
def test_numpy_both_ways(row):
    x = np.arange(12).reshape(3, 4).astype(row.numpy)
    a = from_dlpack(x)
    assert a._ptr == address(x)
    assert a.dtype is row.numpy
    assert asarray(a).tolist() == x.tolist()
    back = np.from_dlpack(a[:, ::2])
    assert back.dtype == x.dtype
    assert address(back) == address(x)
    np.testing.assert_array_equal(back, x[:, ::2])


@given(numpy_views().filter(lambda x: dtypes.asdtype(x.dtype) not in dtypes.EXTENSIONS))
def test_layouts(x):
    a = asarray(x)
    if min((s for n, s in zip(x.shape, x.strides, strict=True) if n > 1), default=0) < 0 and x.size:
        with pytest.raises(BufferError, match="copy=True"):
            a.__dlpack__(max_version=(1, 0))
        y = np.from_dlpack(a, copy=True)
    else:
        y = np.from_dlpack(a)
        assert not x.size or address(y) == address(x)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(asnumpy(from_dlpack(x)), x)


def test_negative_strides_come_in():
    x = np.arange(4)[::-1]
    a = from_dlpack(x)
    assert a.tolist() == [3, 2, 1, 0]
    assert a.byte_offset == 24


def test_read_only():
    x = np.arange(3.0)
    x.flags.writeable = False
    a = from_dlpack(x)
    assert not a.flags.writeable
    assert not np.from_dlpack(a).flags.writeable
    with pytest.raises(BufferError, match="max_version"):
        a.__dlpack__()
    assert capsules.name(a.__dlpack__(copy=True)) == b"dltensor"
    assert from_dlpack(a, copy=True).flags.writeable
    if np.lib.NumpyVersion(np.__version__) >= "2.3.0":  # before, NumPy took all imports for read-only
        assert np.from_dlpack(array(x)).flags.writeable


def test_copy():
    x = np.arange(3.0)
    a = asarray(x)
    for b in (from_dlpack(x, copy=True), from_dlpack(a, copy=True), from_dlpack(a, device="cpu", copy=True)):
        assert b._ptr != a._ptr
        assert b.tolist() == [0, 1, 2]
    assert from_dlpack(x, copy=False)._ptr == a._ptr
    assert from_dlpack(a, device="cpu")._ptr == a._ptr


def test_memory_lives_as_long_as_either_side():
    x = np.arange(3.0)
    gone = weakref.ref(x)
    a = from_dlpack(x)
    del x
    y = np.from_dlpack(a)
    b = from_dlpack(y)
    del a, y
    gc.collect()
    assert gone() is not None
    assert b.tolist() == [0, 1, 2]
    del b
    assert gone() is None


# what we send


def test_capsule_of_each_version():
    a = asarray(FLOATS.copy().reshape(2, 3))
    for version, name in (
        (None, b"dltensor"),
        ((0, 8), b"dltensor"),
        ((1, 0), b"dltensor_versioned"),
        ((2, 5), b"dltensor_versioned"),
    ):
        capsule = a[:, 1:].__dlpack__(max_version=version)
        assert capsules.name(capsule) == name
        tensor = capsules.tensor_of(capsule)
        assert (tensor.ndim, tensor.code, tensor.bits, tensor.lanes) == (2, 2, 32, 1)
        assert (tensor.shape[:2], tensor.strides[:2]) == ([2, 2], [3, 1])
        assert (tensor.data, tensor.byte_offset) == (a._ptr + 4, 0)
        assert (tensor.device_type, tensor.device_id) == a.__dlpack_device__() == (1, 0)
    assert capsules.flags_of(a.__dlpack__(max_version=(1, 0))) == 0
    assert capsules.flags_of(a.__dlpack__(max_version=(1, 0), copy=True)) == 2
    a.flags.writeable = False
    assert capsules.flags_of(a.__dlpack__(max_version=(1, 0))) == 1


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 4)])
def test_empty_arrays_have_no_address(shape):
    a = empty(shape, "int16")
    tensor = capsules.tensor_of(capsule := a.__dlpack__())
    assert tensor.data is None
    assert capsules.name(capsule) == b"dltensor"
    assert np.from_dlpack(a).shape == shape
    assert from_dlpack(a).shape == shape


def test_free_strides_are_tame():
    """Strides of axes with one element may be anything in memory; consumers see those of a fresh array."""
    x = np.arange(6.0)[::-2][:1]
    tensor = capsules.tensor_of(capsule := asarray(x).__dlpack__())
    assert tensor.strides[0] == 1
    assert capsule is not None


def test_bad_requests():
    a = empty(3)
    for stream in (0, 1, -1, "x"):
        with pytest.raises(ValueError, match="stream of a consumer on cpu is None"):
            a.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="exports to itself and to the CPU"):
        a.__dlpack__(dl_device=(2, 0))
    odd = np.zeros(4, np.dtype([("a", "f4"), ("b", "i2")]))["a"]
    with pytest.raises(BufferError, match="no multiples"):
        array_like_shared(odd).__dlpack__()


def array_like_shared(x):
    """The field of a packed record is not aligned, so `asarray` would copy it: this one takes it as it is."""
    a = asarray(x[:1].copy())
    return a._view(0, (2,), (6,))


def test_unconsumed_capsules_free_what_they_hold():
    a = empty(3)
    buffer = a._buffer
    before = sys.getrefcount(buffer)
    held = [a.__dlpack__(max_version=version) for version in (None, (1, 0))]
    assert sys.getrefcount(buffer) == before + 2
    del held
    assert sys.getrefcount(buffer) == before


def test_no_leak_over_many_rounds():
    a = empty(16)
    buffer = a._buffer
    before = sys.getrefcount(buffer)
    for _ in range(200):
        from_dlpack(a)
        np.from_dlpack(a)
        a.__dlpack__()
        with pytest.raises(BufferError):
            a[::-1].__dlpack__()
    assert sys.getrefcount(buffer) == before


def test_the_last_reference_may_die_in_another_thread():
    a = empty(3)
    buffer = a._buffer
    before = sys.getrefcount(buffer)
    box = [np.from_dlpack(a), from_dlpack(a)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert sys.getrefcount(buffer) == before


def test_two_threads_share_no_capsule():
    """One of them gets the tensor, the other an error; the deleter is called once."""
    for _ in range(200):
        producer = Producer(FLOATS.tobytes(), (6,))
        barrier, found = threading.Barrier(2), []

        def take(capsule=producer.capsule, barrier=barrier, found=found):
            barrier.wait()
            try:
                found.append(from_dlpack(capsule).tolist())
            except BufferError as error:
                found.append(str(error))

        threads = [threading.Thread(target=take) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found, key=str) == [
            FLOATS.tolist(),
            "the capsule was consumed before; ask its producer for another",
        ]
        assert producer.deleted == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_imports_in_a_signal_handler():
    """One that comes in the middle of an import changes nothing in it."""
    inner, outer = np.arange(8.0).reshape(2, 2, 2), np.arange(3, dtype=np.int16)
    seen = []

    def handle(*_):
        seen.append(from_dlpack(inner).tolist() == inner.tolist())

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    try:
        while len(seen) < 300:
            a = from_dlpack(outer)
            assert (a.shape, a.dtype, a._ptr) == ((3,), dtypes.int16, address(outer))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert all(seen)


# what we are sent


def test_a_tensor_without_a_shape():
    producer = Producer(FLOATS.tobytes(), (2, 3))
    producer.managed.tensor.shape = None
    for _ in range(2):
        with pytest.raises(BufferError, match="has 2 dimensions and no shape; its producer is broken"):
            from_dlpack(producer)
    scalar = Producer(FLOATS.tobytes(), ())
    scalar.managed.tensor.shape = None
    assert from_dlpack(scalar).tolist() == 0


@pytest.mark.parametrize("versioned", [True, False])
def test_hand_made_capsule(versioned):
    producer = Producer(FLOATS.tobytes(), (2, 2), (3, 1), byte_offset=4, versioned=versioned)
    a = from_dlpack(producer)
    assert a.tolist() == [[1, 2], [4, 5]]
    assert a.strides == (12, 4)
    assert capsules.name(producer.capsule) == (b"used_dltensor_versioned" if versioned else b"used_dltensor")
    view = a[0]
    del a
    gc.collect()
    assert producer.deleted == 0
    del view
    assert producer.deleted == 1


def test_null_strides_are_contiguous():
    assert from_dlpack(Producer(FLOATS.tobytes(), (2, 3))).strides == (12, 4)


def test_null_pointer_needs_size_0():
    assert from_dlpack(Producer(b"", (2, 0), null=True)).shape == (2, 0)
    with pytest.raises(BufferError, match="no memory"):
        from_dlpack(Producer(b"", (2,), null=True))


def test_a_capsule_is_consumed_once():
    producer = Producer(FLOATS.tobytes(), (6,))
    a = from_dlpack(producer.capsule)
    for again in (producer, producer.capsule):
        with pytest.raises(BufferError, match="consumed before"):
            from_dlpack(again)
    del a
    assert producer.deleted == 1


def test_flags_of_the_producer():
    assert not from_dlpack(Producer(FLOATS.tobytes(), (6,), flags=1)).flags.writeable
    assert from_dlpack(Producer(FLOATS.tobytes(), (6,), flags=2)).flags.writeable


def test_unaligned_memory_is_copied():
    a = from_dlpack(Producer(b"x" + FLOATS.tobytes(), (6,), byte_offset=1))
    assert a.tolist() == FLOATS.tolist()
    assert a._ptr % 4 == 0


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"lanes": 4}, "4 lanes"),
        ({"lanes": 0}, "0 lanes"),
        ({"code": 99}, "code 99 of 32 bits is not supported; there are"),
        ({"code": 3, "bits": 64}, "code 3"),
        ({"bits": 4}, "of 4 bits"),
        ({"major": 2}, "speaks DLPack 2.0"),
        ({"ndim": -1}, "has -1"),
        ({"ndim": 65}, "has 65"),
        ({"device": (8, 0)}, "device type 8"),
    ],
)
def test_refused_capsules_stay_unconsumed(fields, text):
    producer = Producer(FLOATS.tobytes(), (6,), **fields)
    with pytest.raises(BufferError, match=text):
        from_dlpack(producer)
    assert capsules.name(producer.capsule) == b"dltensor_versioned"
    assert producer.deleted == 0


def test_sizes_that_no_array_has_are_refused():
    with pytest.raises(BufferError, match="0 or more"):
        from_dlpack(Producer(b"", (-1,)))
    with pytest.raises(BufferError, match=r"at most 2.*63 - 1 elements, the tensor's shape is"):
        from_dlpack(Producer(FLOATS.tobytes(), (1 << 62, 2), (0, 0)))


def test_what_is_no_producer():
    for thing in (3, [1.0], object()):
        with pytest.raises(TypeError, match="__dlpack__"):
            from_dlpack(thing)


def test_producers_that_know_no_newer_arguments():
    class Old:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, stream=None):
            return self.x.__dlpack__(stream=stream)

        def __dlpack_device__(self):
            return (1, 0)

    x = np.arange(3.0)
    assert from_dlpack(Old(x))._ptr == address(x)
    assert asarray(Old(x))._ptr == address(x)
    assert from_dlpack(Old(x), copy=True)._ptr != address(x)


# torch


def torch_rows(torch):
    return {row: getattr(torch, row.name) for row in dtypes.ALL if hasattr(torch, row.name)}


def test_torch_both_ways(torch):
    for row, kind in torch_rows(torch).items():
        t = torch.arange(6).reshape(2, 3).to(kind)
        a = from_dlpack(t)
        assert a._ptr == t.data_ptr()
        assert a.dtype is row.numpy
        u = torch.from_dlpack(a[:, 1:])
        assert u.dtype == kind
        assert u.data_ptr() == a[:, 1:]._ptr
        assert torch.equal(u, t[:, 1:])
        assert asarray(t)._ptr == t.data_ptr()


def test_torch_sees_writes_and_keeps_memory(torch):
    a = array([1.0, 2.0, 3.0])
    t = torch.from_dlpack(a)
    a[0] = 5
    t[1] = 7
    assert a.tolist() == t.tolist() == [5, 7, 3]
    gone = weakref.ref(a._buffer)
    del a
    gc.collect()
    assert gone() is not None
    assert t.tolist() == [5, 7, 3]
    del t
    gc.collect()
    assert gone() is None


def test_torch_empty_and_0d(torch):
    assert torch.from_dlpack(empty((0, 3))).shape == (0, 3)
    assert from_dlpack(torch.empty((2, 0))).shape == (2, 0)
    assert from_dlpack(torch.tensor(2.5)).item() == 2.5
    assert torch.from_dlpack(asarray(np.float32(2.5))).item() == 2.5


def test_torch_refuses_gradients(torch):
    with pytest.raises(BufferError):
        from_dlpack(torch.ones(3, requires_grad=True))
    assert from_dlpack(torch.ones(3, requires_grad=True).detach()).shape == (3,)
