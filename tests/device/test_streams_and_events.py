"""Streams order work; memory that one still uses is not given to another."""

import ctypes
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import pyarray as pa
from pyarray.memory.pool import get_pool

N = 1 << 16


@pa.kernel
def mixed(out, a, rounds: int):
    for i in range(out.size):
        x = a[i]
        for _ in range(rounds):
            x = x * 0.5 + 1
        out[i] = x


def mixed_of(values, rounds):
    for _ in range(rounds):
        values = values * 0.5 + 1
    return values


def test_work_in_a_stream(device):
    stream = pa.Stream(device)
    with stream as entered:
        assert entered is stream
        assert pa.current_stream(device).handle == stream.handle
        a = pa.arange(N, dtype="float32", device=device)
        b = a * 2 + 1
    assert pa.current_stream(device).handle == 0
    stream.synchronize()
    assert stream.done
    np.testing.assert_array_equal(pa.asnumpy(b), np.arange(N, dtype=np.float32) * 2 + 1)


def test_the_stream_is_the_threads_own(device):
    seen = []

    def other():
        seen.append(pa.current_stream(device).handle)
        with pa.Stream(device) as stream:
            seen.append(pa.current_stream(device).handle == stream.handle)
            seen.append(float(pa.sum(pa.ones(N, device=device))))

    with pa.Stream(device) as outer, pa.Stream(device) as inner:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert pa.current_stream(device).handle == inner.handle
    assert seen == [0, True, N]
    assert outer.device == device


def test_a_failure_inside_leaves_the_stream(device):
    with pytest.raises(KeyError), pa.Stream(device):
        raise KeyError
    assert pa.current_stream(device).handle == 0


def test_a_stream_that_cannot_be_entered_is_not_entered(device, monkeypatch):
    driver = pa.get_device(device).driver
    with pa.Stream(device) as outer:
        broken = pa.Stream(device)
        monkeypatch.setattr(driver, "enter_stream", lambda handle: 1 / 0)
        with pytest.raises(ZeroDivisionError), broken:
            pass
        monkeypatch.undo()
        assert pa.current_stream(device).handle == outer.handle
    assert pa.current_stream(device).handle == 0


def test_pinned_host_memory_may_change_after_a_copy(device):
    """The device reads pinned memory when the copy's turn comes, which the host then waits for."""
    driver = pa.get_device(device).driver
    if not driver.grid:
        pytest.skip("only a GPU's driver pins memory")
    room = (ctypes.c_char * (1 << 20)).from_address(driver.pinned(1 << 20))
    host = np.frombuffer(room, dtype="int32")
    for k in range(4):
        host[:] = k
        a = pa.asarray(host, device=device)
        host[:] = -1
        assert (pa.asnumpy(a) == k).all()


@pytest.mark.parametrize("non_blocking", [False, True])
def test_memory_is_not_given_away_while_a_stream_uses_it(device, non_blocking):
    """Two streams with temporaries that come and go; the blocks of one must not reach the other too early."""
    streams = [pa.Stream(device, non_blocking=non_blocking) for _ in range(2)]
    start = np.random.default_rng(0).random(N)
    a = pa.asarray(start, device=device)
    pa.synchronize(device)
    results = []
    for turn in range(12):
        with streams[turn % 2]:
            temporary, result = pa.empty(N, device=device), pa.empty(N, device=device)
            mixed(temporary, a, 40 + turn)
            mixed(result, temporary, 3)
            del temporary  # the stream still works on it
            results.append(result)
    for stream in streams:
        stream.synchronize()
    for turn, result in enumerate(results):
        expected = mixed_of(start, 43 + turn)
        np.testing.assert_allclose(pa.asnumpy(result), expected, rtol=1e-12)


def test_one_stream_waits_for_another(device):
    first, second = pa.Stream(device, non_blocking=True), pa.Stream(device, non_blocking=True)
    a = pa.ones(N, device=device)
    out, last = pa.zeros(N, device=device), pa.zeros(N, device=device)
    pa.synchronize(device)
    for order in (second.wait, lambda stream: second.wait(stream.record())):
        with first:
            mixed(out, a, 50)
        order(first)
        with second:
            mixed(last, out, 50)
        second.synchronize()
        np.testing.assert_allclose(pa.asnumpy(last), mixed_of(np.ones(N), 100), rtol=1e-12)
        a, last = last, pa.zeros(N, device=device)
        a = pa.ones(N, device=device)
        pa.synchronize(device)


def test_events(device):
    start, end = pa.Event(device), pa.Event(device)
    assert start.done  # nothing was recorded
    with pa.Stream(device) as stream:
        start.record()
        mixed(pa.empty(N, device=device), pa.ones(N, device=device), 10)
        end.record(stream)
    end.synchronize()
    assert start.done
    assert end.done
    assert start.elapsed(end) >= 0


def test_a_stream_of_another_library(device):
    """It is only borrowed: leaving it ends all that is remembered of it."""
    owner = pa.Stream(device)
    with pa.Stream.of(owner.handle, device):
        a = pa.ones(N, device=device) + 1
    del owner
    with pa.Stream(device):
        b = pa.ones(N, device=device) * 3
    pa.synchronize(device)
    assert pa.asnumpy(a).tolist() == [2] * N
    assert pa.asnumpy(b).tolist() == [3] * N


def test_wrong_devices(device):
    with pytest.raises(ValueError, match="can't wait for work on null:0"):
        pa.Stream(device).wait(pa.Stream("null:0"))
    with pytest.raises(ValueError, match="recorded on its own streams, got one of null:0"):
        pa.Event(device).record(pa.Stream("null:0"))
    with pytest.raises(ValueError, match="have no time between them"):
        pa.Event(device).elapsed(pa.Event("null:0"))


def test_out_of_memory_names_the_figures(device):
    free, total = pa.get_device(device).driver.memory_info()
    with pytest.raises(pa.OutOfMemoryError, match=f"{device} has no memory for") as caught:
        pa.empty(1 << 60, dtype="uint8", device=device)
    assert caught.value.asked >= 1 << 60
    assert 0 < caught.value.free <= total
    assert f"of {total} bytes are free" in str(caught.value)
    assert float(pa.sum(pa.ones(8, device=device))) == 8  # the device goes on
    assert free <= total


def test_trimmed_memory_is_free_again(device):
    block = pa.empty(1 << 24, dtype="uint8", device=device)
    pool = get_pool(block.device)
    del block
    assert pool.pooled() >= 1 << 24
    pool.trim()
    assert pool.pooled() == 0
    assert pa.asnumpy(pa.full(1 << 20, 7, dtype="uint8", device=device)).sum() == 7 << 20


@pytest.mark.parametrize("nbytes", [1, 70_000, 16 << 20, (16 << 20) + 1, (23 << 20) + 5])
def test_copies_of_all_sizes(device, nbytes):
    values = np.random.default_rng(1).integers(0, 256, nbytes, np.uint8)
    there = pa.asarray(values.copy(), device=device)
    values[:] = values  # what was uploaded is on its way already
    np.testing.assert_array_equal(pa.asnumpy(there), values)
    with pa.Stream(device, non_blocking=True):
        again = pa.asarray(values.copy(), device=device)
        np.testing.assert_array_equal(pa.asnumpy(again[::-1]), values[::-1])


def test_after_a_fork(device):
    """A child of a process that used a GPU can't use it, and is told so; the CPU goes on."""
    a = pa.ones(4, device=device) + 1
    grid = pa.get_device(device).driver.grid
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = str(pa.asnumpy(a + 1).tolist())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    if grid:
        assert answer.startswith(f"DeviceError: {device} can't be used in a process forked from one that used it")
        assert "spawn" in answer
    else:
        assert answer == "[3.0, 3.0, 3.0, 3.0]"
    assert pa.asnumpy(a + 1).tolist() == [3] * 4


@pytest.mark.slow
@pytest.mark.parametrize("blocking", [False, True])
def test_a_failure_on_the_device_names_the_launch(device, blocking, tmp_path):
    """Far outside its memory a kernel ends with the device, which only a process of its own survives."""
    far = 1 << 44 if pa.get_device(device).driver.grid else 0  # and the CPU with the process
    code = f"""
        import pyarray as pa

        @pa.kernel
        def fine(v):
            for i in range(v.size):
                v[i] = 1

        @pa.kernel
        def wild(v, far: int):
            for i in range(v.size):
                v[i + far] = 2

        v = pa.zeros(64, device={device!r})
        fine(v)
        pa.synchronize({device!r})
        try:
            fine(v)
            wild(v, {far})
            fine(v)
            print(v.tolist()[0])
        except pa.DeviceError as error:
            print(error)
    """
    environment = os.environ | {"PYARRAY_LAUNCH_BLOCKING": str(int(blocking))}
    script = tmp_path / "wild.py"
    script.write_text(textwrap.dedent(code))
    ran = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    said = ran.stdout
    if not far:
        assert said == "1.0\n", ran
    elif blocking:
        assert "a launch failed" in said, ran
        assert "it is that of the launch of wild" in said
    else:
        assert "failed" in said, ran
        assert "wild" in said
        assert "fine (3 times)" not in said  # the first was waited for
