"""Buffers and the pool: sizes, reuse, limit, out of memory, threads, fork."""

import ctypes
import gc
import os
import signal
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


def test_what_a_driver_raises_when_a_block_comes_back(device, monkeypatch):
    """Nobody can catch it, and the buffer isn't given back again."""
    pool, said, freed = limited(device, 0), [], []

    def free(ptr, nbytes):
        freed.append(ptr)
        raise RuntimeError("lost")

    monkeypatch.setattr(device.driver, "free", free)
    monkeypatch.setattr(sys, "unraisablehook", lambda found: said.append((str(found.exc_value), found.object)))
    buffer = Buffer.allocate(device, 1 << 20)
    ptr, references = buffer.ptr, sys.getrefcount(device)
    del buffer
    assert freed == [ptr]
    assert sys.getrefcount(device) == references - 1
    assert said == [("lost", pool.lists[1 << 20])]


def test_an_interrupt_when_a_block_comes_back(device, monkeypatch):
    limited(device, 0)

    def free(ptr, nbytes):
        raise KeyboardInterrupt

    monkeypatch.setattr(device.driver, "free", free)
    buffer = Buffer.allocate(device, 1 << 20)
    live = [buffer]
    del buffer
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's job in the background ignores
    try:
        with pytest.raises(KeyboardInterrupt):
            live.clear()
    finally:
        signal.signal(signal.SIGINT, before)


INTERRUPTED = """
import signal
import pyarray as pa

def work():
    while True:
        b = a + 1
        c = b * 2
        b += c

signal.signal(signal.SIGALRM, signal.default_int_handler)
a, interrupted = pa.ones(10_000), 0
for k in range(150):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4 + k % 7 * 2e-4)
        work()
    except KeyboardInterrupt:
        interrupted += 1
assert interrupted == 150
made = [pa.full(10_000, i) for i in range(20)]
assert len({x._ptr for x in made}) == 20 and all((x == i).all() for i, x in enumerate(made))
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
@pytest.mark.parametrize("limit", ["", "0"])
def test_programs_that_are_interrupted(limit):
    env = os.environ | {"PYARRAY_POOL_LIMIT": limit}
    run = subprocess.run([sys.executable, "-c", INTERRUPTED], env=env, timeout=300, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("limit", ["", "0"])
def test_arrays_that_live_to_the_end_of_the_process(limit):
    code = "import sys, pyarray as pa; sys.kept = [pa.zeros(100), pa.zeros(1 << 20)]"
    env = os.environ | {"PYARRAY_POOL_LIMIT": limit}
    run = subprocess.run([sys.executable, "-c", code], env=env, timeout=300, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_block_that_comes_back_waits_for_no_other_thread(device):
    pool = limited(device, 0)
    buffer, held, end = Buffer.allocate(device, 1 << 20), threading.Event(), threading.Event()

    def hold():
        with pool._lock:
            held.set()
            end.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    ptr = buffer.ptr
    del buffer
    assert holder.is_alive()
    assert pool.lists[1 << 20].take() == ptr
    end.set()
    holder.join()


def test_a_block_that_another_thread_took_first(device):
    pool = Pool(device, 1 << 40)
    pool.use_stream_order()
    free_list = pool.find_free_list(1 << 20)
    assert pool._take_ordered(free_list)
    assert pool.stats().in_use == 1 << 20


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
