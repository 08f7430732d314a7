"""distributed takes our arrays apart into bytes, between processes and to disk, and puts them together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import numpy_views

import pyarray as pa

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
protocol = distributed.protocol


def assert_equal(made, a):
    assert isinstance(made, pa.ndarray)
    assert (made.dtype, made.shape, made.device) == (a.dtype, a.shape, a.device)
    assert pa.asnumpy(made).tobytes() == pa.asnumpy(a).tobytes()
    made[...] = 1  # it may be written


@given(values=numpy_views(), copied=st.booleans(), offset=st.integers(0, 3))
def test_frames(values, copied, offset):
    a = pa.asarray(values)
    header, frames = protocol.serialize(a)
    assert header["serializer"] == "dask"
    if a.flags.c_contiguous and a.size:
        assert np.shares_memory(np.frombuffer(frames[0], np.uint8), pa.asnumpy(a))
    assert sum(frame.nbytes for frame in frames) == a.nbytes
    if copied:  # what comes from elsewhere is read-only, or begins anywhere
        frames = [memoryview(bytes(offset) + bytes(frame))[offset:] for frame in frames]
    else:
        frames = [bytearray(frame) for frame in frames]
    assert_equal(protocol.deserialize(header, frames), a)


def test_frames_of_each_device(device):
    a = pa.arange(12.0, device=device).reshape((3, 4)).T
    assert_equal(protocol.deserialize(*protocol.serialize(a)), a)
    assert_equal(protocol.deserialize_bytes(protocol.serialize_bytes(a)), a)


def test_device_memory_goes_as_it_is(device):
    a = pa.arange(12, dtype="float32", device=device).reshape((3, 4)).T
    header, frames = protocol.serialize(a, serializers=("cuda", "dask"))
    assert header["serializer"] == ("cuda" if device.startswith("cuda") else "dask")
    assert all(isinstance(frame, pa.ndarray) for frame in frames) == device.startswith("cuda")
    assert_equal(protocol.deserialize(header, frames), a)


@pytest.mark.slow
def test_workers_spill_by_true_size():
    settings = {
        "distributed.worker.memory.target": 0.01,  # of the limit: 20 MB
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "array.backend": "pyarray",
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="2GB", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        x = da.arange(8_000_000, chunks=500_000, dtype="float64").persist()  # 16 chunks of 4 MB
        distributed.wait(x)
        spilled = client.run(lambda dask_worker: len(dask_worker.data.disk))
        total = (x * 2).sum().compute()
        assert sum(spilled.values()) >= 4
        assert isinstance(total, pa.ndarray)
        assert float(total) == 8_000_000 * 7_999_999
