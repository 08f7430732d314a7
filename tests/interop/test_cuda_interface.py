"""`__cuda_array_interface__` in and out. The null device stands for a GPU: nothing here reads its memory."""

import gc
import weakref

import numpy as np
import pytest

import pyarray as pa
from pyarray import cuda_interface, dtypes
from pyarray.array import array_at
from pyarray.driver.base import KINDS, Device
from pyarray.driver.null import NullDriver
from pyarray.memory.buffer import Buffer

LOW = 2 << 48  # an address of null:1


@pytest.fixture
def null(monkeypatch):
    """The driver of null:1, whose kind is taken for CUDA's."""
    monkeypatch.setattr(cuda_interface, "KIND", "null")
    driver = pa.get_device("null:1").driver
    driver.calls.clear()
    return driver


class Foreign:
    """An array of a library without DLPack; a fact that is `...` is absent."""

    def __init__(self, **facts):
        usual = {"version": 3, "shape": (2, 3), "typestr": "<f4", "data": (LOW, False), "strides": None}
        facts = {**usual, "stream": None, **facts}
        self.facts = {name: fact for name, fact in facts.items() if fact is not ...}

    @property
    def __cuda_array_interface__(self):
        return self.facts


# ---- in


def test_memory_is_shared_and_kept(null):
    x = Foreign()
    gone = weakref.ref(x)
    a = pa.asarray(x)
    assert (a.device, a.shape, a.strides, a.dtype, a._ptr) == ("null:1", (2, 3), (12, 4), pa.float32, LOW)
    assert a.flags.writeable
    view = a[1:]
    del x, a
    gc.collect()
    assert gone() is not None
    del view
    gc.collect()
    assert gone() is None
    assert null.calls == []


def test_layouts(null):
    assert pa.asarray(Foreign(strides=...)).strides == (12, 4)
    assert pa.asarray(Foreign(strides=(4, 8))).strides == (4, 8)
    back = pa.asarray(Foreign(strides=(-12, 4), data=(LOW + 12, False)))
    assert (back.strides, back.byte_offset) == ((-12, 4), 12)
    assert pa.asarray(Foreign(shape=[np.int64(6)])).shape == (6,)
    assert pa.asarray(Foreign(shape=())).shape == ()
    empty = pa.asarray(Foreign(shape=(0, 3), data=(0, False)))
    assert (empty.shape, empty.device) == ((0, 3), "null:0")
    assert not pa.asarray(Foreign(data=(LOW, True))).flags.writeable
    for version in (0, 1, 2):  # which had no stream
        assert pa.asarray(Foreign(version=version, stream=...)).shape == (2, 3)


@pytest.mark.parametrize("row", [row for row in pa.dtypes.ALL if row not in pa.dtypes.EXTENSIONS], ids=str)
def test_dtypes(row, null):
    assert pa.asarray(Foreign(typestr=row.numpy.str)).dtype is row.numpy


def test_the_producers_stream_comes_first(null, monkeypatch):
    for stream in (1, 2, 0x5500):
        null.calls.clear()
        pa.asarray(Foreign(stream=stream))
        assert null.calls == [("stream_wait", (0, stream))]
    null.calls.clear()
    pa.asarray(Foreign(stream=None))
    pa.asarray(Foreign(stream=...))
    monkeypatch.setattr(null, "current_stream", lambda: 0x5500)
    pa.asarray(Foreign(stream=0x5500))
    assert null.calls == []


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"mask": Foreign()}, "of Foreign has a mask, and arrays have none"),
        ({"stream": 0}, "has stream 0; legal are None, 1"),
        ({"stream": True}, "has stream True"),
        ({"stream": "x"}, "has stream 'x'"),
        ({"stream": -1}, "has stream -1"),
        ({"version": 4}, "has version 4, this reads 3"),
        ({"version": ...}, r"KeyError: 'version'"),
        ({"shape": ...}, "is not as version 3 asks"),
        ({"shape": (2.0,)}, "is not as version 3 asks"),
        ({"data": LOW}, "is not as version 3 asks"),
        ({"typestr": "nonsense"}, "is not as version 3 asks"),
        ({"shape": (-1, 3)}, r"has shape \(-1, 3\)"),
        ({"strides": (4,)}, r"with strides \(4,\)"),
        ({"typestr": ">f4"}, "other byte order"),
        ({"data": (LOW + 2, False)}, "not aligned for float32"),
        ({"data": (4096, False)}, "address 0x1000, which is no memory of a null device"),
        ({"data": (0, False)}, "address 0x0"),
    ],
)
def test_what_is_refused(facts, text, null):
    with pytest.raises(BufferError, match=text):
        pa.asarray(Foreign(**facts))


def test_dtypes_that_are_not_here(null):
    for text in ("<f16", "|V2", "<M8[s]"):
        with pytest.raises(TypeError, match="dtype"):
            pa.asarray(Foreign(typestr=text))


def test_it_needs_the_device():
    try:
        pa.get_device("cuda:0")
    except pa.DeviceError:
        with pytest.raises(pa.DeviceError, match="cuda"):
            pa.asarray(Foreign())
    else:
        with pytest.raises(BufferError, match="no memory of a cuda device"):
            pa.asarray(Foreign())


def test_dlpack_comes_first():
    class Both(Foreign):
        def __dlpack__(self, **wishes):
            return np.arange(3.0).__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    assert pa.asarray(Both()).tolist() == [0, 1, 2]


def test_operands_and_arguments(null):
    """Functions and kernels take such arrays as they take tensors: what is wrong is the other device."""
    with pytest.raises(ValueError, match="all arrays must be on one device"):
        pa.add(pa.ones(3), Foreign())
    with pytest.raises(ValueError, match="all arrays must be on one device"):
        _ = pa.ones(3) + Foreign()

    @pa.kernel
    def copied(out, v):
        for i in range(out.size):
            out[i] = v[i]

    with pytest.raises(ValueError, match="'v' on null:1"):
        copied(pa.ones(3), Foreign(shape=(3,)))
    with pytest.raises(ValueError, match=r"'v' is a Foreign that can't be used: .* mask"):
        copied(pa.ones(3), Foreign(mask=1))


# ---- out


def on_kind(kind, stream=1):
    device = Device(KINDS[kind], 0)
    device._driver = driver = NullDriver(0)
    driver.stream = lambda: stream
    return array_at(Buffer.wrap(device, 4096, 64, driver), 4096, (2, 4), (32, 8), dtypes.float64, True)


def test_what_consumers_see():
    a = on_kind("cuda")
    assert a.__cuda_array_interface__ == {
        "version": 3, "shape": (2, 4), "strides": None, "typestr": "<f8", "data": (4096, False), "stream": 1
    }  # fmt: skip
    part = a[:, 1::2]
    part.flags.writeable = False
    facts = part.__cuda_array_interface__
    assert (facts["shape"], facts["strides"], facts["data"]) == ((2, 2), (32, 16), (4104, True))
    assert a[:0].__cuda_array_interface__["data"] == (0, False)
    assert on_kind("cuda", stream=0x5500).__cuda_array_interface__["stream"] == 0x5500


def test_where_there_is_none():
    half = on_kind("cuda").view(pa.bfloat16)
    for a in (pa.ones(3), pa.empty(3, device="null:0"), on_kind("hip"), half):
        assert not hasattr(a, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match=r"on cuda devices, this is float64 on cpu; .* by DLPack"):
        _ = pa.ones(3).__cuda_array_interface__


def test_there_and_back(null):
    a = pa.empty((4, 6), dtype=pa.int16, device="null:1")[::2, 1:]
    box = Foreign()
    box.facts = a.__cuda_array_interface__ | {"stream": 1}
    b = pa.asarray(box)
    assert (b._ptr, b.shape, b.strides, b.dtype, b.device) == (a._ptr, a.shape, a.strides, a.dtype, a.device)
