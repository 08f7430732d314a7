"""Exchange with libraries that have streams: whose work comes first, and how streams are numbered."""

import pytest

import pyarray as pa
from pyarray import dtypes
from pyarray.array import array_at
from pyarray.dlpack import consumer_stream, from_dlpack
from pyarray.driver.base import KINDS, Device
from pyarray.driver.null import NullDriver
from pyarray.memory.buffer import Buffer
from tests.interop import dlpack_capsules as capsules

OWN = 0x7F00  # a stream of ours that is current


class FakeDriver(NullDriver):
    """Records what the null driver does; `current` is its current stream, `first` DLPack's default one."""

    current, first = 0, 0

    def current_stream(self):
        return self.current

    def stream(self):
        return self.current or self.first


def fake(kind, current=0):
    """A device of any kind, without a driver library, and an array on it."""
    device = Device(KINDS[kind], 0)
    device._driver = driver = FakeDriver(0)
    driver.current, driver.first = current, int(kind == "cuda")
    return driver, array_at(Buffer.wrap(device, 4096, 64, driver), 4096, (8,), (8,), dtypes.float64, True)


LEGAL = [
    # kind, what the consumer says, the stream that waits
    ("cuda", None, 1),
    ("cuda", 1, 1),
    ("cuda", 2, 2),
    ("cuda", 0x5500, 0x5500),
    ("cuda", -1, None),
    ("hip", None, 0),
    ("hip", 0, 0),
    ("hip", 3, 3),
    ("hip", 0x5500, 0x5500),
    ("hip", -1, None),
    ("null", 0, 0),
    ("cpu", None, None),
]
ILLEGAL = [
    *[("cuda", stream) for stream in (0, -2, True, "1", 1.0)],
    *[("hip", stream) for stream in (1, 2, -2, False, "0", 0.0)],
    *[("cpu", stream) for stream in (-1, 0, 1)],
]


@pytest.mark.parametrize(("kind", "stream", "waiting"), LEGAL)
def test_streams_of_consumers(kind, stream, waiting):
    assert consumer_stream(Device(KINDS[kind], 0), stream) == waiting


@pytest.mark.parametrize(("kind", "stream"), ILLEGAL)
def test_streams_that_a_kind_does_not_have(kind, stream):
    with pytest.raises(ValueError, match=f"stream of a consumer on {kind}.* is None.*; got {stream!r}"):
        fake(kind)[1].__dlpack__(stream=stream)


@pytest.mark.parametrize(
    ("kind", "current", "stream", "calls"),
    [
        ("cuda", 0, 1, []),  # the same stream: nothing to wait for
        ("cuda", 0, None, []),
        ("cuda", 0, 2, [("stream_wait", (2, 0))]),
        ("cuda", 0, 0x5500, [("stream_wait", (0x5500, 0))]),
        ("cuda", OWN, None, [("stream_wait", (1, OWN))]),
        ("cuda", OWN, OWN, []),
        ("cuda", OWN, -1, []),
        ("hip", 0, 0, []),
        ("hip", 0, 0x5500, [("stream_wait", (0x5500, 0))]),
        ("hip", OWN, None, [("stream_wait", (0, OWN))]),
        ("hip", OWN, -1, []),
    ],
)
def test_the_consumer_waits_on_the_device_and_the_host_never(kind, current, stream, calls):
    driver, a = fake(kind, current)
    for version in (None, (1, 0)):
        driver.calls.clear()
        capsule = a.__dlpack__(stream=stream, max_version=version)
        assert driver.calls == calls
        tensor = capsules.tensor_of(capsule)
        assert (tensor.device_type, tensor.device_id) == a.__dlpack_device__()
        assert tensor.data == 4096


def test_device_types():
    assert [fake(kind)[1].__dlpack_device__() for kind in ("cpu", "cuda", "hip")] == [(1, 0), (2, 0), (10, 0)]


def test_a_copy_is_ordered_too():
    driver = pa.get_device("null:0").driver
    a = pa.empty(0, device="null:0")
    driver.calls.clear()
    capsule = a.__dlpack__(stream=5, copy=True, max_version=(1, 0))
    assert capsules.flags_of(capsule) == 2
    assert driver.calls[-1] == ("stream_wait", (5, 0))
    assert ("synchronize", ()) not in driver.calls


class Foreign(capsules.Producer):
    """A producer that remembers what it was asked for."""

    def __dlpack__(self, **wishes):
        self.wishes = wishes
        return super().__dlpack__(**wishes)


def test_producers_are_told_our_stream(monkeypatch):
    driver = pa.get_device("null:1").driver
    for current in (0, OWN):
        monkeypatch.setattr(driver, "current_stream", lambda current=current: current)
        producer = Foreign(bytes(24), (6,), device=(12, 1))
        a = from_dlpack(producer)
        assert a.device == "null:1"
        assert producer.wishes["stream"] == current


@pytest.mark.parametrize("code", [1, 3, 11])
def test_pinned_memory_is_host_memory(code):
    producer = Foreign(bytes(24), (6,), device=(code, 0))
    a = from_dlpack(producer)
    assert a.device == "cpu"
    assert a.tolist() == [0] * 6
    assert "stream" not in producer.wishes


def test_devices_that_are_not_there():
    kinds = [kind for kind in ("cuda", "hip") if not _there(kind)]
    for code in [{"cuda": 2, "hip": 10}[kind] for kind in kinds]:
        producer = Foreign(bytes(24), (6,), device=(code, 0))
        with pytest.raises(pa.DeviceError, match=r"cuda|hip"):
            from_dlpack(producer)
        assert capsules.name(producer.capsule) == b"dltensor_versioned"  # not consumed


def _there(kind):
    try:
        return bool(pa.get_device(f"{kind}:0"))
    except pa.DeviceError:
        return False
