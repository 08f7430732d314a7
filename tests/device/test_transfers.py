"""NumPy arrays and tensors as arguments: shared, or copied there and back by direction, and counted."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray import config, dtypes
from pyarray.driver import base
from pyarray.driver.cpu import CpuDriver
from pyarray.lang.dialect import DIALECTS


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


class Far(CpuDriver):
    """A device whose memory is the host's, and is never shared."""

    kind = "null"


@pytest.fixture
def far(monkeypatch):
    device = base.get_device("null:1")
    monkeypatch.setattr(device, "_driver", Far(1))
    monkeypatch.setitem(base._drivers, device, device._driver)
    monkeypatch.setitem(DIALECTS, "null", DIALECTS["cpu"])
    monkeypatch.delattr(device, "pool", raising=False)
    config.set("PYARRAY_DEVICE", "null:1")
    yield device
    config.set("PYARRAY_DEVICE", None)
    del device.pool  # its blocks came from the driver that goes


class Counted:
    """What the block transferred."""

    def __enter__(self):
        self.before = pa.transfer_info()
        return self

    def __exit__(self, *error):
        after = pa.transfer_info()
        self.facts = {name: after[name] - self.before[name] for name in after}

    @property
    def up(self):
        return self.facts["uploads"], self.facts["uploaded_bytes"]

    @property
    def down(self):
        return self.facts["downloads"], self.facts["downloaded_bytes"]


@pa.kernel
def update(out, v, acc, unused, f):
    for i in range(out.size):
        out[i] = v[i] * f
    for i in range(acc.size):
        acc[i] += v[i]


def misaligned(x):
    return np.frombuffer(bytearray(b"\0" + x.tobytes()), np.uint8)[1:].view(x.dtype)


LAYOUTS = {
    "plain": (lambda x: x.copy(), True),
    "reversed": (lambda x: x[::-1], True),
    "strided": (lambda x: np.repeat(x, 3)[::3], True),
    "big endian": (lambda x: x.astype(x.dtype.newbyteorder(">")), False),
    "misaligned": (misaligned, False),
    "column": (lambda x: np.stack([x, x], 1)[:, 1], True),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("place", ["cpu", "far"])
def test_layouts_and_counts(layout, place, request):
    if place == "far":
        request.getfixturevalue("far")
    make, shared = LAYOUTS[layout]
    x = make(np.arange(6.0))
    out, acc, unused = make(np.full(6, -1.0)), make(np.ones(6)), np.zeros(100)
    for k in range(2):
        with Counted() as counted:
            update(out, x, acc, unused, 2.0)
        assert out.tolist() == (2 * x).tolist()
        assert acc.tolist() == (1 + (k + 1) * x).tolist()
        copied = place == "far" or not shared
        assert counted.up == ((2, 96) if copied else (0, 0))  # v and acc
        assert counted.down == ((2, 96) if copied else (0, 0))  # out and acc


def test_a_saved_kernel_copies_what_the_kernel_copies(far, tmp_path):
    x, out, acc, unused = np.arange(6.0), np.full(6, -1.0), np.ones(6), np.zeros(100)
    update(out, x, acc, unused, 2.0)
    update.save(tmp_path / "update")
    saved = pa.load_kernel(tmp_path / "update")
    with Counted() as counted:
        saved(out, x, acc, unused, 3.0)
    assert out.tolist() == (3 * x).tolist()
    assert acc.tolist() == (1 + 2 * x).tolist()
    assert (counted.up, counted.down) == ((2, 96), (2, 96))


@examples(10)
@given(st.sampled_from(dtypes.ALL), st.integers(0, 5), st.sampled_from(list(LAYOUTS)))
def test_every_dtype(dtype, size, layout):
    x = LAYOUTS[layout][0](np.arange(size).astype(dtype.numpy))
    out = np.zeros(size, dtype.numpy)
    copy(out, x)
    assert out.tobytes() == np.ascontiguousarray(x).astype(dtype.numpy).tobytes()


@pa.kernel
def copy(out, v):
    for i in range(out.size):
        out[i] = v[i]


def test_tensors(far, torch):
    x, out = torch.arange(6.0), torch.zeros(6)[::1]
    with Counted() as counted:
        copy(out, x[::2].repeat(2))
    assert out.tolist() == [0, 2, 4, 0, 2, 4]
    assert (counted.up, counted.down) == ((1, 24), (1, 24))


def test_arrays_of_a_device_stay_there(far):
    x = np.arange(4.0)
    there = pa.asarray(x, device=far)
    with Counted() as counted:
        copy(there, there)
    assert counted.up == counted.down == (0, 0)
    with Counted() as counted:
        copy(there, x)
    assert (counted.up, counted.down) == ((1, 32), (0, 0))
    with pytest.raises(ValueError, match="all arrays must be on one device, got 'out' on cpu, 'v' on null:1"):
        copy(pa.zeros(4, device="cpu"), there)


def test_one_array_twice(far):
    x = np.arange(4.0)
    with Counted() as counted:
        update(x, x, x, x, 3.0)
    assert x.tolist() == [0, 6, 12, 18]
    assert (counted.up, counted.down) == ((1, 32), (1, 32))
    for out, v in ((x[1:], x[:-1]), (x[::2], x[1::2])):
        message = r"copy\(\): 'out' is written and overlaps 'v' in host memory; make one array of both"
        with pytest.raises(ValueError, match=message):
            copy(out, v)
    update(np.zeros(2), x[1:], np.zeros(2), x[:3], 1.0)  # nothing of these is written


def test_read_only(far):
    x = np.arange(3.0)
    x.flags.writeable = False
    copy(out := np.zeros(3), x)
    assert out.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"copy\(\): 'out' is written by the kernel, and this array is read-o"):
        copy(x, out)


def test_fields_of_structures(far):
    x, out = np.arange(3.0), np.zeros(3)

    @pa.kernel
    def k(t):
        for i in range(t[0].size):
            t[0][i] = t[1][i] + t[2]

    with Counted() as counted:
        k((out, x, 1.5))
    assert out.tolist() == [1.5, 2.5, 3.5]
    assert (counted.up, counted.down) == ((1, 24), (1, 24))


def test_a_failed_launch_downloads_nothing_and_the_next_is_sound(far):
    @pa.kernel(debug=True)
    def k(out, n):
        for i in range(n):
            out[i] = 5

    x = np.zeros(3)
    with pytest.raises(pa.BoundsError, match="argument 'out' axis 0: got index 3"):
        k(x, 4)
    assert x.tolist() == [0, 0, 0]
    k(x, 2)
    assert x.tolist() == [5, 5, 0]


def test_declared_out_is_not_uploaded(far):
    @pa.kernel
    def k(out: pa.Out, v: pa.In):
        for i in range(v.size):
            out[i] = v[i]

    x, out = np.arange(3.0), np.zeros(3)
    with Counted() as counted:
        k(out, x)
    assert out.tolist() == x.tolist()
    assert (counted.up, counted.down) == ((1, 24), (1, 24))


@pytest.mark.parametrize("place", ["cpu", "far"])
def test_what_is_no_array_is_named(place, request, torch):
    if place == "far":
        request.getfixturevalue("far")
    x = np.arange(3.0)
    gradient = torch.ones(3, dtype=torch.float64, requires_grad=True)
    for wrong, error, message in (
        (gradient, ValueError, r"copy\(\): 'v' is a tensor that requires grad, .*; pass .detach\(\) of it"),
        ([1.0, 2.0], TypeError, r"'v' can't be a list; make an array of it with pa.asarray\(...\)"),
        (np.array(["a"]), TypeError, r"'v' is an array of <U1, which kernels don't have; convert it"),
        (np.array([None]), TypeError, "'v' is an array of object, which kernels don't have"),
        (np.zeros(2, np.longdouble), TypeError, "'v' is an array of .*, which kernels don't have"),
        (np.zeros(2, "f4,i4"), pa.CompileError, "expected a number, got a record"),
        (torch.ones(2).to_sparse(), ValueError, "'v' is a Tensor that can't be used: "),
        ({}, TypeError, "'v' can't be a dict; pass an array or a number"),
        ("text", pa.CompileError, "the Python object 'text' can't be indexed"),
    ):
        for _ in range(2):
            with pytest.raises(error, match=message):
                copy(x, wrong)
    copy(x, gradient.detach())
    assert x.tolist() == [1, 1, 1]


def test_numbers_are_read_by_many_threads(device):
    values = [pa.asarray(np.full(1, k, "int64"), device=device) for k in range(80)]
    pairs = [pa.asarray(np.array([k, -k], "complex128"), device=device) for k in range(80)]

    def read(k):
        return [(values[k].item(), pairs[k].tolist()) for _ in range(5)]

    with ThreadPoolExecutor(80) as pool:
        found = list(pool.map(read, range(80)))
    assert found == [[(k, [complex(k), complex(-k)])] * 5 for k in range(80)]
