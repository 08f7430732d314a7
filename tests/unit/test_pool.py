"""Buffers and the pool: sizes, reuse, limit, out of memory, threads, fork."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyarray.driver.base import KINDS, Device, get_device
from pyarray.driver.null import NullDriver
from pyarray.errors import OutOfMemoryError
from pyarray.memory import Buffer, Pool, get_pool
from pyarray.memory.pool import class_size


@pytest.fixture
def device():
    """A null device of its own, so that its pool is empty."""
    made = Device(KINDS["null"], 7)
    made._driver = NullDriver(7)
    return made


def limited(device, limit):
    pool = Pool(device, limit)
    device.pool = pool.classes
    return pool


@given(st.integers(0, 1 << 50))
def test_class_sizes(nbytes):
    size = class_size(nbytes)
    assert size >= max(nbytes, 1)
    assert size % 64 == 0
    assert class_size(size) == size
    if nbytes > 512:
        assert size - nbytes <= nbytes / 8


def test_a_freed_block_is_used_again(device):
    first = Buffer.allocate(device, 100)
    ptr = first.ptr
    del first
    assert Buffer.allocate(device, 128).ptr == ptr
    assert [name for name, _ in device.driver.calls] == ["allocate"]


def test_live_blocks_are_apart(device):
    live = [Buffer.allocate(device, 100) for _ in range(50)]
    assert len({buffer.ptr for buffer in live}) == 50


def test_attributes(device):
    buffer = Buffer.allocate(device, 100)
    assert (buffer.device, buffer.nbytes, buffer.owner) == (device, 100, None)
    assert weakref.ref(buffer)() is buffer
    assert "100 bytes" in repr(buffer)


def test_size_zero_has_an_address():
    buffer = Buffer.allocate(get_device("cpu"), 0)
    assert buffer.nbytes == 0
    assert buffer.ptr
    ctypes.memset(buffer.ptr, 1, 64)


@pytest.mark.parametrize(
    ("nbytes", "error"), [(-1, ValueError), (1.5, TypeError), ("8", TypeError), (1 << 63, OutOfMemoryError)]
)
def test_what_is_no_size(device, nbytes, error):
    with pytest.raises(error):
        Buffer.allocate(device, nbytes)
    assert device.driver.calls == []


def test_stats(device):
    small, large = Buffer.allocate(device, 64), Buffer.allocate(device, 1 << 20)
    pool = get_pool(device)
    assert pool.stats().in_use == 64 + (1 << 20)
    del large
    stats = pool.stats()
    assert (stats.in_use, stats.pooled, stats.reserved, stats.peak) == (
        64,
        1 << 20,
        64 + (1 << 20),
        64 + (1 << 20),
    )
    pool.trim()
    stats = pool.stats()
    assert (stats.in_use, stats.pooled, stats.reserved, stats.peak) == (64, 0, 64, 64 + (1 << 20))
    del small


def test_limit_keeps_large_blocks_out(device):
    pool = limited(device, 3 << 20)
    live = [Buffer.allocate(device, 1 << 20) for _ in range(5)]
    live.clear()
    assert pool.stats().pooled == 3 << 20
    assert pool.stats().in_use == 0


def test_limit_zero_keeps_nothing(device):
    pool = limited(device, 0)
    Buffer.allocate(device, 64)
    assert pool.stats().reserved == 0


def test_small_blocks_above_the_limit_go_at_the_next_miss(device):
    pool = limited(device, 100_000)
    live = [Buffer.allocate(device, 64) for _ in range(2000)]
    live.clear()
    assert pool.stats().pooled == 128_000
    Buffer.allocate(device, 1000)
    assert pool.stats().pooled == 1024


def test_limit_comes_from_the_setting(device, monkeypatch):
    monkeypatch.setenv("PYARRAY_POOL_LIMIT", "2M")
    assert get_pool(device).limit == 2 << 20


def test_out_of_memory_trims_once_and_then_tells_the_figures(device):
    limited(device, 1 << 40)
    half = NullDriver.memory // 2
    del [Buffer.allocate(device, half + 64)][:]
    kept = Buffer.allocate(device, half)  # fits only because the pooled block is given back
    with pytest.raises(OutOfMemoryError, match="in use by arrays") as caught:
        Buffer.allocate(device, NullDriver.memory)
    assert caught.value.asked == NullDriver.memory
    assert caught.value.free == half
    assert caught.value.pooled == 0
    assert kept.ptr


def test_wrap_keeps_the_owner_and_frees_nothing(device):
    class Owner:
        pass

    owner = Owner()
    alive = weakref.ref(owner)
    buffer = Buffer.wrap(device, 4096, 10, owner)
    del owner
    gc.collect()
    assert alive() is buffer.owner
    del buffer
    gc.collect()
    assert alive() is None
    assert device.driver.calls == []


def test_wrap_refuses_what_is_no_memory(device):
    assert Buffer.wrap(device, 0, 0, None).ptr == 0
    for ptr, nbytes in ((0, 1), (4096, -1), (-4096, 1)):
        with pytest.raises(ValueError, match="no such memory"):
            Buffer.wrap(device, ptr, nbytes, None)


def test_a_cycle_is_collected_into_the_pool(device):
    cycle = [Buffer.allocate(device, 1 << 20)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert get_pool(device).stats().in_use == 0


def test_threads_share_the_pool():
    device = get_device("cpu")
    wrong = []

    def work(mark):
        for step in range(3000):
            size = (64, 1000, 100_000)[step % 3]
            buffer = Buffer.allocate(device, size)
            ctypes.memset(buffer.ptr, mark, size)
            other = Buffer.allocate(device, size)
            ctypes.memset(other.ptr, mark + 100, size)
            if set(ctypes.string_at(buffer.ptr, 64)) != {mark}:
                wrong.append(step)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_allocates():
    device = get_device("cpu")
    kept = Buffer.allocate(device, 1 << 20)
    pool = get_pool(device)
    inside, end = threading.Event(), threading.Event()

    def hold():
        with pool._lock:
            inside.set()
            end.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        thread = threading.Thread(target=lambda: Buffer.allocate(device, 3 << 20))
        thread.start()
        thread.join(300)
        os._exit(thread.is_alive())
    end.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept.ptr


def test_buffers_alive_at_exit_are_silent():
    code = """
from pyarray.driver import get_device
from pyarray.memory import Buffer
cpu = get_device("cpu")
class Late:
    buffer = Buffer.allocate(cpu, 64)
    large = Buffer.allocate(cpu, 1 << 22)
    def __del__(self):
        self.mine = Buffer.allocate(cpu, 64)
import builtins
builtins.late = Late()
cycle = [Buffer.allocate(cpu, 1 << 20)]
cycle.append(cycle)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
