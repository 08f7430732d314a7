"""Traces: what ran, on how much, how long; and the timeline that viewers read."""

import json
import re
import threading

import numpy as np
import pytest
from dump_tools import observed
from kernel_tools import on

import pyarray as pa
from pyarray.debug import trace as tracing
from pyarray.jit import launch_state as module
from pyarray.jit.launch_state import OBSERVED, launch_state

HEAD = ["kernel", "launches", "total ms", "mean us", "read MB", "written MB", "GB/s", "operations"]


@pa.kernel
def blend(out, v, w, factor: pa.float64):
    for i in range(out.size):
        out[i] = v[i] * factor + w[i]


@pa.kernel
def grow(v, spare):
    for i in range(v.size):
        v[i] = v[i] + 1


@pa.kernel(debug=True)
def past(v):
    for i in range(v.size):
        v[i + 1] = 0


def test_work_scales_with_the_size_and_the_code_is_one(device):
    compiled = None
    with pa.trace() as t:
        for n in (1024, 2048, 1000, 1, 0):
            v = on(device, np.ones(n))
            blend(on(device, np.zeros(n)), v, v, 2.0)
            compiled = compiled or blend.cache_info()["compiles"]
    work = [(row.bytes_read, row.bytes_written) for row in t.launches]
    assert work == [(16 * n, 8 * n) for n in (1024, 2048, 1000, 1, 0)]
    assert len({row.key for row in t.launches}) == 1
    assert blend.cache_info()["compiles"] == compiled
    assert [row.sizes for row in t.launches][1] == {"out": (2048,), "v": (2048,), "w": (2048,)}
    assert all(row.kernel == "blend" and row.device == device for row in t.launches)


def test_bytes_follow_directions_and_layouts(device):
    v = on(device, np.zeros((6, 4), np.int16))
    with pa.trace() as t:
        grow(v[0], v)
        blend(on(device, np.zeros(3)), v[::2, 1], v[1:4, 0], 1.0)
        wide = pa.broadcast_to(on(device, np.ones(1)), (3,))
        blend(on(device, np.zeros(3)), wide, wide, 1.0)
    moved = [(row.bytes_read, row.bytes_written) for row in t.launches]
    assert moved == [(8, 8), (12, 24), (16, 24)]  # unused: nothing; strided: its elements; repeated: once


def test_the_librarys_kernels_are_in_it():
    a, b = pa.ones((30, 20), dtype=pa.float32), pa.ones((20, 10), dtype=pa.float32)
    _ = a @ b, a + a, pa.sum(a)  # the short ways are known
    with pa.trace() as t:
        c = a @ b
        d = a + a
        e = pa.sum(a)
        f = a[pa.asarray([1, 2])]
    assert (c[0, 0].item(), d[0, 0].item(), e.item(), f.shape) == (20.0, 2.0, 600.0, (2, 20))
    kernels = [row.kernel for row in t.launches]
    assert kernels[:3] == ["matmul", "add", "sum_rows"]
    assert "gather" in kernels
    matmul, add = t.launches[:2]
    assert matmul.sizes == {"a": (30, 20), "b": (20, 10), "c": (30, 10)}
    assert (matmul.bytes_read, matmul.bytes_written) == (3200, 1200)
    assert (add.bytes_read, add.bytes_written) == (4800, 2400)


class Clock:
    """In the place of `time`: it goes on where the test says so."""

    def __init__(self):
        self.now = 10**12

    def perf_counter_ns(self):
        return self.now

    def work(self, seconds):
        self.now += int(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(tracing, "time", clock)
    return clock


def test_times_are_those_of_the_launches(clock):
    a = pa.ones(3)
    with pa.trace() as t:
        clock.work(1)
        observed({"a": (a, "IN")}, lambda: clock.work(0.5))
        clock.work(2)
        observed({"a": (a, "IN")}, lambda: None)
    assert [(row.start, row.duration) for row in t.launches] == [(1, 0.5), (3.5, 0)]
    assert [row.number for row in t.launches] == [0, 1]


def test_a_dump_is_not_in_the_times(tmp_path):
    a, order = pa.ones(3), []
    for first, second in ((pa.trace(), pa.dump(tmp_path / "a")), (pa.dump(tmp_path / "b"), pa.trace())):
        with first, second:
            order += [type(observer.__self__).__name__ for observer in module._observers]  # innermost first
            observed({"a": (a, "IN")}, lambda: None)
    assert order == ["Trace", "Dump"] * 2
    assert len(second.launches) == first.counters["recorded"] == 1


def test_failed_launches_are_in_it_with_the_reason():
    v = pa.ones(4)
    with pa.trace() as t, pytest.raises(pa.BoundsError):
        past(v)
    (row,) = t.launches
    assert row.error.startswith("BoundsError: BufferView out of range: kernel[past]")
    assert not module.observed()
    assert launch_state.key is False
    lines = t.summary().splitlines()
    assert len(lines) == 2
    assert lines[1].split()[:2] == ["past", "1"]


def test_off_means_off():
    v = pa.ones(4)
    with pa.trace() as t:
        assert launch_state.key is OBSERVED
        grow(v, v)
    grow(v, v)
    assert len(t.launches) == 1
    assert not module.observed()
    assert launch_state.key is False
    with t:  # goes on
        grow(v, v)
    assert [row.number for row in t.launches] == [0, 1]
    assert t.launches[1].start > t.launches[0].start


def test_threads_have_rows_of_their_own(tmp_path):
    def work(k):
        v = arrays[k]
        for _ in range(20):
            grow(v, v)

    arrays = [pa.zeros(k + 1) for k in range(4)]
    with pa.trace() as t:
        threads = [threading.Thread(target=work, args=(k,), name=f"worker {k}") for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(row.number for row in t.launches) == list(range(80))
    for row in t.launches:
        assert row.thread == f"worker {row.sizes['v'][0] - 1}"


def test_the_file_is_what_viewers_read(tmp_path):
    v = pa.ones((3, 5), dtype=pa.float32)
    with pa.trace() as t:
        v + v
        with pytest.raises(pa.BoundsError):
            past(v[0])
    path = tmp_path / "trace.json"
    t.save(path)
    document = json.loads(path.read_text())
    assert document["displayTimeUnit"] == "ms"
    meta = [e for e in document["traceEvents"] if e["ph"] == "M"]
    events = [e for e in document["traceEvents"] if e["ph"] == "X"]
    assert len(meta) + len(events) == len(document["traceEvents"])
    assert {e["name"] for e in meta} == {"process_name", "thread_name"}
    assert all(set(e) == {"name", "ph", "pid", "tid", "args"} and e["args"]["name"] for e in meta)
    for event, row in zip(events, t.launches, strict=True):
        assert set(event) == {"name", "cat", "ph", "pid", "tid", "ts", "dur", "args"}
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["ts"] == pytest.approx(row.start * 1e6)
        assert event["dur"] == pytest.approx(row.duration * 1e6)
        assert event["args"]["bytes_read"] == row.bytes_read
        assert event["args"]["key"] == row.key
    assert [e["name"] for e in events] == ["add", "past"]
    assert events[0]["args"]["sizes"]["out"] == [15]
    assert "BoundsError" in events[1]["args"]["error"]


def test_the_summary_is_a_line_per_kernel(clock):
    a = pa.ones(1000)
    with pa.trace() as t:
        grow(a, a)
        observed({"a": (a, "OUT")}, lambda: clock.work(0.01))
        grow(a, a)
    head, slow, quick = t.summary().splitlines()
    assert re.split("  +", head) == HEAD
    assert slow.split()[:2] == ["made_up", "1"]
    assert slow.split()[4:6] == ["0.000", "0.008"]
    assert quick.split()[:2] == ["grow", "2"]
    assert quick.split()[4:6] == ["0.016", "0.016"]
    assert re.split("  +", pa.trace().summary()) == HEAD
