"""Arrays and streams of other libraries on each device: memory is shared, and work is in order. The emulated
GPU runs work as late as it may, so that a missing order shows."""

import gc
import weakref

import numpy as np
import pytest

import pyarray as pa

N = 1 << 16


class Other:
    """Another library's array on the same device, which computes in a stream of its own."""

    def __init__(self, array, stream):
        self.array, self.stream = array, stream

    def __dlpack__(self, **wishes):
        with self.stream:
            return self.array.__dlpack__(**wishes)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.fixture
def gpu(device):
    if device == "cpu":
        pytest.skip("the CPU has one stream")
    return device


@pa.kernel
def slow(out, v, rounds: int):
    for i in range(out.size):
        x = v[i]
        for _ in range(rounds):
            x = x * 0.5 + 1
        out[i] = x


def slow_of(values, rounds=200):
    for _ in range(rounds):
        values = values * 0.5 + 1
    return values


def started(device, values):
    """A result whose kernel may still wait to be run, in the current stream."""
    out = pa.zeros(values.shape, dtype=values.dtype, device=device)
    slow(out, pa.asarray(values, device=device), 200)
    return out


VALUES = np.linspace(-4, 4, N)


def test_memory_is_shared(device):
    a = pa.asarray(np.arange(24.0).reshape(4, 6), device=device)
    for view in (a, a[1:, ::2], a[2], a.T, a[:0]):
        b = pa.from_dlpack(view)
        assert (b._ptr, b.shape, b.strides) == (view._ptr, view.shape, view.strides) or not view.size
        assert b.device == device
        assert b.tolist() == view.tolist()
    with pytest.raises(BufferError, match="copy=True"):
        pa.from_dlpack(a[::-1])
    assert pa.from_dlpack(a[::-1], copy=True).tolist() == a.tolist()[::-1]
    pa.from_dlpack(a)[1:3, 1] = -1
    assert a[:, 1].tolist() == [1, -1, -1, 19]


def test_memory_lives_as_long_as_its_users(device):
    a = pa.ones(N, device=device)
    gone = weakref.ref(a._buffer)
    b = pa.from_dlpack(a)
    del a
    gc.collect()
    assert gone() is not None
    pa.zeros(N, device=device)  # would take the memory of an array that is gone
    assert float(pa.sum(b)) == N
    del b
    gc.collect()
    assert gone() is None


def test_to_the_cpu(device):
    a = pa.asarray(VALUES, device=device)
    for b in (pa.from_dlpack(a, device="cpu"), pa.from_dlpack(a, device="cpu", copy=True)):
        assert b.device == "cpu"
        np.testing.assert_array_equal(pa.asnumpy(b), VALUES)
    there = np.from_dlpack(a, device="cpu") if device != "cpu" else np.from_dlpack(a)
    np.testing.assert_array_equal(there, VALUES)
    if device != "cpu":
        with pytest.raises(BufferError, match="by a copy"):
            a.__dlpack__(dl_device=(1, 0), copy=False)


def test_read_only_stays_read_only(device):
    a = pa.ones(4, device=device)
    a.flags.writeable = False
    b = pa.from_dlpack(a)
    assert not b.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        b[0] = 1


def test_what_we_export_is_ready_for_the_consumers_stream(gpu):
    ours, theirs = pa.Stream(gpu, non_blocking=True), pa.Stream(gpu, non_blocking=True)
    for versions in ({}, {"max_version": (1, 0)}, {"max_version": (1, 0), "copy": True}):
        with ours:
            capsule = started(gpu, VALUES).__dlpack__(stream=theirs.handle, **versions)
        with theirs:
            found = pa.asnumpy(pa.from_dlpack(capsule) * 2)
        np.testing.assert_array_equal(found, slow_of(VALUES) * 2)


def test_what_we_import_is_ready_for_our_stream(gpu):
    ours, theirs = pa.Stream(gpu, non_blocking=True), pa.Stream(gpu, non_blocking=True)
    for take in (pa.from_dlpack, pa.asarray, lambda x: x):  # and as an argument of a kernel
        with ours:
            out = pa.zeros(N, device=gpu)  # before: a new block of memory would wait for all streams
        with theirs:
            x = Other(started(gpu, VALUES), theirs)
        with ours:
            slow(out, take(x), 1)
            np.testing.assert_array_equal(pa.asnumpy(out), slow_of(slow_of(VALUES), 1))


def test_streams_of_this_device(gpu):
    a = pa.ones(4, device=gpu)
    code = a.__dlpack_device__()
    wrong = {(2, 0): (0,), (10, 0): (1, 2)}[code]
    for stream in wrong:
        with pytest.raises(ValueError, match=f"stream of a consumer on {gpu} is None, -1"):
            a.__dlpack__(stream=stream)
    for stream in (None, -1, {(2, 0): 1, (10, 0): 0}[code]):
        assert pa.from_dlpack(a.__dlpack__(stream=stream)).tolist() == [1] * 4


def test_another_device_of_the_kind(gpu):
    try:
        second = pa.get_device(gpu.replace(":0", ":1"))
    except pa.DeviceError:
        pytest.skip("there is one device of this kind")
    a = pa.arange(4, device=second)
    assert a.__dlpack_device__()[1] == 1
    b = pa.from_dlpack(a)
    assert (b._ptr, b.device) == (a._ptr, second)
    with pytest.raises(ValueError, match=f"got x1 on {gpu}, x2 on {second}; move them with"):
        _ = pa.ones(4, device=gpu) + b
    with pytest.raises(ValueError, match=f"got 'out' on {gpu}, 'v' on {second}"):
        slow(pa.ones(4, device=gpu), b, 1)
    with pytest.raises(BufferError, match="exports to itself and to the CPU"):
        a.__dlpack__(dl_device=(a.__dlpack_device__()[0], 0))
    assert (b.to_device(gpu) + 1).tolist() == [1, 2, 3, 4]


def test_the_default_device(device):
    with pa.default_device(device):
        a = pa.arange(5)
        assert a.device == device
        assert (a * 2).tolist() == [0, 2, 4, 6, 8]
        x = np.zeros(5)
        slow(x, np.ones(5), 1)
        assert x.tolist() == [1.5] * 5
    assert pa.arange(5).device == "cpu"


def test_numpy_values_beside_an_array(device):
    a = pa.asarray([1.0, 2.0, 4.0], dtype="float32", device=device)
    assert (a * np.float32(2)).tolist() == (np.float32(2) * a).tolist() == [2, 4, 8]
    assert (a + np.ones(3, np.float32)).tolist() == [2, 3, 5]
    assert (a @ [1, 1, 1]).tolist() == 7
    assert pa.where(np.array([True, False, True]), a, 0).tolist() == [1, 0, 4]
    assert pa.concat([a, [9.0]]).device == (a * np.float32(2)).device == device


def test_the_host_reads_when_asked(device):
    a = pa.asarray([[1.5, 0.0], [3.0, 4.0]], device=device)
    assert pa.asarray([a[0], [7, a[1, 1]]], "int16").tolist() == [[1, 0], [7, 4]]
    assert (float(a[0, 0]), int(a[1, 0]), bool(a[0, 1]), a[1, 1].item()) == (1.5, 3, False, 4.0)
    assert [row.tolist() for row in a] == [[1.5, 0], [3, 4]]
    assert a.get().tolist() == pa.asnumpy(a).tolist() == [[1.5, 0], [3, 4]]
    if device != "cpu":
        for read in (np.asarray, lambda a: np.zeros(2).__setitem__(..., a[0])):
            with pytest.raises(TypeError, match=r"asnumpy\(a\) or a.get\(\), or a.item\(\)"):
                read(a)


# ---- with the libraries themselves, on NVIDIA GPUs


@pytest.fixture
def torch(device):
    torch = pytest.importorskip("torch")
    if not device.startswith("cuda") or not torch.cuda.is_available():
        pytest.skip("needs torch with CUDA and an NVIDIA GPU")
    return torch


@pytest.fixture
def cupy(device):
    if not device.startswith("cuda"):
        pytest.skip("needs CuPy and an NVIDIA GPU")
    return pytest.importorskip("cupy")


def test_torch_both_ways(torch, device):
    for name in ("float16", "bfloat16", "float32", "int64", "bool", "complex64"):
        t = torch.arange(12, device=device).reshape(3, 4).to(getattr(torch, name))
        a = pa.from_dlpack(t)
        assert (a._ptr, a.device, a.dtype.name) == (t.data_ptr(), device, name)
        u = torch.from_dlpack(a[:, 1:])
        assert (u.device, u.data_ptr()) == (t.device, a[:, 1:]._ptr)
        assert torch.equal(u, t[:, 1:])
        assert pa.asarray(t)._ptr == t.data_ptr()


def test_torch_streams(torch, device):
    theirs, ours = torch.cuda.Stream(), pa.Stream(device, non_blocking=True)
    x = torch.linspace(-4, 4, 1 << 22, device=device, dtype=torch.float64)
    torch.cuda.synchronize()
    host = x.cpu().numpy()
    for _ in range(5):
        with torch.cuda.stream(theirs):
            t = x
            for _ in range(50):
                t = t * 0.5 + 1
            with ours:
                a = pa.from_dlpack(t) * 2  # after torch's loop
                u = torch.from_dlpack(a) + 1  # after ours
        theirs.synchronize()  # which torch's current stream doesn't wait for
        np.testing.assert_allclose(u.cpu().numpy(), slow_of(host, 50) * 2 + 1, rtol=1e-12)
        with pa.Stream.of(theirs.cuda_stream, device):
            assert pa.current_stream(device).handle == theirs.cuda_stream
            b = pa.from_dlpack(x) + 1
        theirs.synchronize()
        np.testing.assert_array_equal(pa.asnumpy(b), host + 1)


def test_torch_by_the_cuda_array_interface(torch, device):
    class Only:
        """A tensor of a library without DLPack."""

        def __init__(self, t):
            self.__cuda_array_interface__ = {**t.__cuda_array_interface__, "version": 3, "stream": 1}

    t = torch.arange(24.0, device=device).reshape(4, 6)
    a = pa.asarray(Only(t[:, 1::2]))
    assert (a._ptr, a.device) == (t[:, 1:].data_ptr(), device)
    assert a.tolist() == t[:, 1::2].tolist()
    back = torch.as_tensor(pa.arange(6, dtype="int32", device=device)[1::2], device=device)
    assert back.tolist() == [1, 3, 5]
    with pytest.raises(BufferError, match="no memory of a cuda device"):
        pa.asarray(_at(np.zeros(4)))


def _at(x):
    class Host:
        def __init__(self):
            self.__cuda_array_interface__ = {**x.__array_interface__, "version": 3}

    return Host()


def test_cupy_both_ways(cupy, device):
    x = cupy.arange(12, dtype=cupy.float32).reshape(3, 4)
    a = pa.from_dlpack(x)
    assert (a._ptr, a.device) == (x.data.ptr, device)
    assert pa.asarray(x)._ptr == x.data.ptr
    for take in (cupy.from_dlpack, cupy.asarray):  # asarray goes by __cuda_array_interface__
        y = take(a[:, 1:])
        assert y.data.ptr == a[:, 1:]._ptr
        assert cupy.array_equal(y, x[:, 1:])
    stream = cupy.cuda.Stream(non_blocking=True)
    for _ in range(5):
        with stream:
            z = cupy.linspace(-4, 4, 1 << 22)
            for _ in range(50):
                z = z * 0.5 + 1
            host = pa.asnumpy(pa.asarray(z) * 2)
        np.testing.assert_allclose(host, slow_of(np.linspace(-4, 4, 1 << 22), 50) * 2, rtol=1e-12)
