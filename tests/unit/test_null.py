"""The null device: everything is recorded, nothing happens."""

import pytest

import pyarray as pa
from pyarray.driver import get_device
from pyarray.driver.kernel_step import KernelStep
from pyarray.errors import DeviceError
from pyarray.memory import Buffer


def test_calls_are_recorded():
    driver = get_device("null:1").driver
    driver.calls.clear()
    first, second = driver.allocate(100), driver.allocate(1)
    assert second >= first + 100
    driver.copy_in(first, 4096, 100)
    driver.fill(second, 0, 1)
    driver.free(first, 100)
    assert driver.calls == [
        ("allocate", (100,)),
        ("allocate", (1,)),
        ("copy_in", (first, 4096, 100)),
        ("fill", (second, 0, 1)),
        ("free", (first, 100)),
    ]


def test_compile_and_launch():
    driver = get_device("null").driver
    module = driver.load(driver.compiler().compile("text"))
    function = driver.function(module, [KernelStep("scale")])
    driver.calls.clear()
    assert driver.launcher(function)(b"12345678") is None
    assert driver.checked_launcher(function)(b"12345678") is None
    assert driver.calls == [("launch", (function, b"12345678"))] * 2
    assert driver.compiler().compiled[-1] == "text"


def test_devices_do_not_share():
    first, second = get_device("null:0"), get_device("null:1")
    assert first.driver is not second.driver
    assert Buffer.allocate(first, 8).ptr != Buffer.allocate(second, 8).ptr


@pa.kernel
def double(v):
    for i in range(v.size):
        v[i] = 2 * v[i]


@pa.fuse
def fused(x):
    return x * 2 + 1


@pa.autotune(configs=[pa.Config(TILE=1), pa.Config(TILE=2)])
@pa.kernel
def tuned(v, TILE: pa.constexpr):
    for i in range(v.size):
        v[i] = v[i] * TILE


RAW = pa.RawKernel('extern "C" __global__ void one(float *x) { *x = 1; }', "one")
TWICE = pa.ElementwiseKernel("T x", "T y", "y = x * 2", "twice")
TOTAL = pa.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
CALLS = {
    "kernel": lambda a, m, i: double(a),
    "tuned": lambda a, m, i: tuned(a),
    "fused": lambda a, m, i: fused(a),
    "raw": lambda a, m, i: RAW(1, 1, (m,)),
    "text": lambda a, m, i: [TWICE(a), TOTAL(a)],
    "created": lambda a, m, i: [pa.ones(3), pa.arange(3), pa.full(3, 2), pa.linspace(0, 1, 5), pa.eye(3)],
    "elementwise": lambda a, m, i: [a + 1, a + a, a.__iadd__(1), pa.exp(a[::2]), pa.where(a > 0, a, 0)],
    "assigned": lambda a, m, i: [a.__setitem__(key, 1) for key in (0, slice(1, 4), i, ...)],
    "reduced": lambda a, m, i: [pa.sum(a), pa.max(m, axis=0), pa.any(a > 0), pa.argmax(a), pa.median(a)],
    "products": lambda a, m, i: [m @ m, m @ m[0], m[0] @ m[1], m[None] @ m[None], m.astype("int32") @ m.T],
    "sorted": lambda a, m, i: [pa.sort(a), pa.argsort(a), pa.searchsorted(a, a)],
    "scanned": lambda a, m, i: [pa.cumulative_sum(a), pa.count_nonzero(a)],
    "gathered": lambda a, m, i: [pa.take(a, i), a[i], m[i % 4]],
    "arranged": lambda a, m, i: [pa.concat([a, a]), pa.stack([a, a]), m.T.copy(), a.astype("int32")],
    "moved": lambda a, m, i: [a.to_device("cpu"), a.to_device("null:1"), a.get(), repr(a), a[0].item()],
    "random": lambda a, m, i: [pa.random.default_rng(1).normal(size=5), pa.random.default_rng(1).random(5)],
    "transformed": lambda a, m, i: [pa.fft.fft(a), pa.linalg.svd(m)],
    "solved": lambda a, m, i: [pa.linalg.inv(m), pa.linalg.cholesky(m), pa.linalg.solve(m, m)],
    "exchanged": lambda a, m, i: [pa.from_dlpack(a), pa.empty(3, device="cpu").to_device(a.device)],
}


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:pyarray")
def test_launches_are_recorded_and_compute_nothing(name, checked):
    driver = get_device("null:0").driver
    with pa.default_device("null:0"), pa.debug(checked):
        a, m = pa.empty(6), pa.empty((4, 4), dtype="float32")
        i = pa.zeros(6, dtype="int64")
        for _ in range(6):  # some have short ways after some calls
            CALLS[name](a, m, i)
        driver.calls.clear()
        a += 1
    assert "launch" in [method for method, _ in driver.calls]
    assert a.tolist() == [0] * 6


SIZED_BY_DATA = {
    "nonzero": lambda a, i: pa.nonzero(a),
    "where": lambda a, i: pa.where(a > 0),
    "mask": lambda a, i: a[a > 0],
    "compress": lambda a, i: pa.compress(a > 0, a),
    "unique_values": lambda a, i: pa.unique_values(a),
    "unique_counts": lambda a, i: pa.unique_counts(a),
    "unique_inverse": lambda a, i: pa.unique_inverse(a),
    "repeat": lambda a, i: pa.repeat(a, i),
    "trim_zeros": lambda a, i: pa.trim_zeros(a),
    "bincount": lambda a, i: pa.bincount(i),
    "intersect1d": lambda a, i: pa.intersect1d(a, a),
    "setdiff1d": lambda a, i: pa.setdiff1d(a, a),
    "union1d": lambda a, i: pa.union1d(a, a),
}


@pytest.mark.parametrize("name", SIZED_BY_DATA)
def test_a_size_that_depends_on_data_is_an_error(name):
    a, i = pa.empty(6, device="null:0"), pa.zeros(6, dtype="int64", device="null:0")
    with pytest.raises(DeviceError, match="depends on the elements of an array on null:0, where nothing"):
        SIZED_BY_DATA[name](a, i)
