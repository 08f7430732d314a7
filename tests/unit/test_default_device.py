"""The default device: what wins over what, and what can be said wrongly."""

import threading

import numpy as np
import pytest

import pyarray as pa
from pyarray.jit.signature import as_argument


@pytest.fixture(autouse=True)
def _as_it_was():
    yield
    pa.set_default_device(None)


def test_what_wins(monkeypatch):
    assert pa.get_default_device() == "cpu"
    monkeypatch.setenv("PYARRAY_DEVICE", "null:1")
    assert pa.get_default_device() == pa.empty(2).device == "null:1"
    pa.set_default_device("cpu")
    assert pa.get_default_device() == pa.empty(2).device == "cpu"
    with pa.default_device("null:0") as device:
        assert device == pa.get_default_device() == pa.asarray([1, 2]).device == "null:0"
        with pa.default_device(pa.get_device("cpu")):
            assert pa.empty(2).device == "cpu"
        assert pa.zeros(2).device == "null:0"
        assert pa.zeros(2, device="cpu").device == "cpu"
        assert pa.__array_namespace_info__().default_device() == "null:0"
        x = pa.asarray([1.0, 2.0], device="cpu")
        assert (x + 1).device == pa.zeros_like(x).device == "cpu"  # where the operands are
    assert pa.empty(2).device == "cpu"
    pa.set_default_device(None)
    assert pa.empty(2).device == "null:1"


def test_a_block_is_its_threads_own():
    pa.set_default_device("null:1")
    found = []
    with pa.default_device("null:0"):
        thread = threading.Thread(target=lambda: found.append(pa.empty(1).device))
        thread.start()
        thread.join()
    assert found == ["null:1"]


def test_a_block_ends_with_an_exception():
    with pytest.raises(RuntimeError, match="inside"), pa.default_device("null:0"):
        raise RuntimeError("inside")
    assert pa.get_default_device() == "cpu"


def test_numpy_arrays_are_where_they_are():
    x = np.arange(3.0)
    with pa.default_device("null:0"):
        assert pa.dump_tag(x) is x
        assert as_argument(x).device == "cpu"
        assert np.shares_memory(pa.asnumpy(as_argument(x)), x)


def test_kernels_take_host_arrays_there():
    @pa.kernel
    def count(v):
        for i in range(v.size):
            v[i] += 1

    with pa.default_device("cpu"):
        count(x := np.zeros(2))
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:-1", "", "hip:"])
def test_what_is_no_device(name, monkeypatch):
    for use in (pa.set_default_device, pa.get_device, lambda name: pa.empty(2, device=name)):
        with pytest.raises(ValueError, match=f"unknown device '{name}': expected one of 'cpu', 'cuda:0', "):
            use(name)
    with pytest.raises(ValueError, match="unknown device"), pa.default_device(name):
        pass
    assert pa.get_default_device() == "cpu"
    monkeypatch.setenv("PYARRAY_DEVICE", name)
    if name:
        with pytest.raises(ValueError, match=f"PYARRAY_DEVICE='{name}': (unknown|expected the name)"):
            pa.empty(2)
    else:  # a variable that is empty is unset
        assert pa.empty(2).device == "cpu"
    assert pa.empty(2, device="cpu").device == "cpu"


def test_what_is_not_there(monkeypatch):
    with pytest.raises(pa.DeviceError, match="no device 'null:7'"):
        pa.set_default_device("null:7")
    with pytest.raises(TypeError, match="a device is a string"):
        pa.set_default_device(3)
    with pytest.raises(ValueError, match="no device 'cpu:1'"):
        pa.get_device("cpu:1")
    monkeypatch.setenv("PYARRAY_DEVICE", "null:7")
    with pytest.raises(pa.DeviceError, match="PYARRAY_DEVICE='null:7': no device"):
        pa.empty(2)
