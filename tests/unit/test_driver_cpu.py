"""The CPU driver through its contract: memory, modules, launches, failures."""

import ctypes
import itertools
import pickle
import struct
import tempfile
from copy import copy, deepcopy

import numpy as np
import pytest

from pyarray.driver import Device, Failure, get_device
from pyarray.errors import DeviceError

KERNELS = """
#include "pyarray.h"

void increment(const void *slots, pa_runtime *rt) { **(int64_t *const *)slots += 1; }

static void mark(void *context, int64_t begin, int64_t end)
{
    pa_runtime *rt = (pa_runtime *)context;
    for (int64_t i = begin; i < end; i++) {
        pa_failure failure = {1, 7, (int32_t)(i % 2), 3, i, -1, 10, 4, 2, 2, {5, 6}};
        if (i >= 100) rt->fail(rt, &failure);
    }
}
void fail_above_100(const void *slots, pa_runtime *rt)
{
    rt->parallel_for(rt, mark, rt, *(const int64_t *)slots, 7);
}

void deep(const void *slots, pa_runtime *rt)
{
    pa_failure failure = {1, 0, 0, 0, 0, 0, 0, 0, 0, 1000, {1}};
    rt->fail(rt, &failure);
}

void scratch(const void *slots, pa_runtime *rt)
{
    int64_t *out = *(int64_t *const *)slots;
    char *small = (char *)rt->scratch(rt, 100);
    small[99] = 1;
    char *large = (char *)rt->scratch(rt, 10000000);
    large[9999999] = 1;
    out[0] = (int64_t)small % 64 + (int64_t)large % 64;
    out[1] = rt->scratch(rt, 5000000) == (void *)large;
}
"""


@pytest.fixture(scope="module")
def driver():
    return get_device("cpu").driver


@pytest.fixture(scope="module")
def module(driver):
    return driver.load(driver.compiler().compile(KERNELS))


def words(*values):
    """A C array of int64 and the slots that point to it."""
    array = (ctypes.c_int64 * len(values))(*values)
    return array, struct.pack("q", ctypes.addressof(array))


def test_launch_runs_the_kernel(driver, module):
    launch = driver.launcher(driver.symbol(module, "increment"))
    array, slots = words(41)
    assert launch(slots) is None
    assert array[0] == 42


def test_checked_launch_without_failure_is_none(driver, module):
    launch = driver.checked_launcher(driver.symbol(module, "fail_above_100"))
    assert launch(struct.pack("q", 100)) is None


def test_the_lowest_loop_and_tid_win_and_the_next_launch_works(driver, module):
    launch = driver.checked_launcher(driver.symbol(module, "fail_above_100"))
    for _ in range(20):
        failure = launch(struct.pack("q", 10007))
        assert failure == Failure(
            kind=7, loop=0, site=3, tid=100, index=-1, extent=10, offset=4, size=2, depth=2, frames=(5, 6)
        )
    assert launch(struct.pack("q", 3)) is None


def test_release_launcher_drops_failures(driver, module):
    assert driver.launcher(driver.symbol(module, "fail_above_100"))(struct.pack("q", 10007)) is None


def test_frames_beyond_the_record_are_counted_only(driver, module):
    failure = driver.checked_launcher(driver.symbol(module, "deep"))(b"\0" * 8)
    assert failure.depth == 1000
    assert len(failure.frames) == 64
    assert failure.frames[0] == 1


def test_scratch_is_aligned_and_grows(driver, module):
    array, slots = words(-1, -1)
    driver.launcher(driver.symbol(module, "scratch"))(slots)
    assert list(array) == [0, 1]


def test_unknown_symbol_and_bad_module(driver, module, tmp_path):
    with pytest.raises(DeviceError, match="no function 'absent'"):
        driver.symbol(module, "absent")
    with pytest.raises(DeviceError, match="can't load"):
        driver.load(b"this is no shared object")
    with pytest.raises(DeviceError, match="nowhere"):
        driver.load_file(tmp_path / "nowhere.so")


@pytest.mark.parametrize("draws", ["any", "the same"])
def test_two_modules_with_the_same_symbol(driver, monkeypatch, draws):
    if draws == "the same":  # the loader takes known names for known files
        monkeypatch.setattr(tempfile, "_get_candidate_names", lambda: itertools.repeat("drawn"))
    make = '#include "pyarray.h"\nvoid k(const void *s, pa_runtime *rt) {{ **(int64_t *const *)s = {}; }}'
    launches = []
    for value in (1, 2):
        loaded = driver.load(driver.compiler().compile(make.format(value)))
        launches.append(driver.launcher(driver.symbol(loaded, "k")))
    array, slots = words(0)
    seen = []
    for launch in launches:
        launch(slots)
        seen.append(array[0])
    assert seen == [1, 2]


@pytest.mark.parametrize("nbytes", [1, 63, 64, 4 << 20, (4 << 20) + 1, 9_000_001])
def test_memory_is_aligned_and_usable_to_its_last_byte(driver, nbytes):
    ptr = driver.allocate(nbytes)
    assert ptr % 64 == 0
    if nbytes >= 4 << 20:
        assert ptr % (2 << 20) == 0
    driver.fill(ptr, 0xAB, nbytes)
    assert ctypes.string_at(ptr, nbytes) == b"\xab" * nbytes
    driver.free(ptr, nbytes)


def test_copies(driver):
    source = ctypes.create_string_buffer(bytes(range(64)), 64)
    target = ctypes.create_string_buffer(64)
    ptr = driver.allocate(64)
    driver.copy_in(ptr, ctypes.addressof(source), 64)
    driver.copy_out(ctypes.addressof(target), ptr, 64)
    driver.free(ptr, 64)
    assert target.raw == bytes(range(64))


@pytest.mark.parametrize("nbytes", [0, 1, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, (3 << 20) + 7])
def test_copies_by_all_cores(driver, nbytes):
    source = np.random.default_rng(0).integers(0, 256, nbytes + 2, np.uint8)
    target = np.zeros(nbytes + 2, np.uint8)
    driver.copy_disjoint(target.ctypes.data + 1, source.ctypes.data + 1, nbytes)
    np.testing.assert_array_equal(target[1:-1], source[1:-1])
    assert target[0] == target[-1] == 0


def test_absurd_size_gives_no_memory(driver):
    assert driver.allocate(1 << 62) == 0


def test_facts(driver):
    free, total = driver.memory_info()
    assert 0 < free <= total
    assert driver.properties()["threads"] >= 1
    assert driver.name()
    assert driver.target()


# ---- the Device object ----


def test_one_object_per_device():
    cpu = get_device("cpu")
    assert str(cpu) == "cpu"
    assert cpu is get_device("cpu:0") is get_device(cpu)
    assert cpu == "cpu"
    assert cpu in {"cpu"}
    assert "cpu" in {cpu}
    assert cpu != "cpu:0"  # of which the hash is another
    assert cpu != "null"
    assert cpu != get_device("null")
    assert {cpu: 1}["cpu"] == 1
    assert (cpu.kind, cpu.code, cpu.index) == ("cpu", 0, 0)
    assert str(get_device("null")) == "null:0"
    assert get_device("null:1").index == 1


def test_devices_survive_pickle_and_copy():
    for name in ("cpu", "null:1"):
        device = get_device(name)
        assert pickle.loads(pickle.dumps(device)) is device
        assert copy(device) is device
        assert deepcopy(device) is device


def test_default_device_follows_the_setting(monkeypatch):
    monkeypatch.setenv("PYARRAY_DEVICE", "null:1")
    assert str(get_device()) == "null:1"
    monkeypatch.delenv("PYARRAY_DEVICE")
    assert str(get_device(None)) == "cpu"


@pytest.mark.parametrize("name", ["gpu", "", "cpu:", "cpu:x", "cuda:-1", "CPU", "cpu:1:2", "cpu: 0", "cpu:²"])
def test_unknown_names_list_the_legal_ones(name):
    with pytest.raises(ValueError, match="expected one of 'cpu', 'cuda:0'"):
        get_device(name)


def test_a_device_that_is_not_there():
    with pytest.raises(ValueError, match="1 of kind 'cpu'"):
        get_device("cpu:1")
    with pytest.raises(DeviceError, match="2 of kind 'null'"):
        get_device("null:2")
    with pytest.raises(TypeError, match="not int"):
        get_device(0)
    assert isinstance(get_device("cpu"), Device)
