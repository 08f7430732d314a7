"""Serialized launches: kernels whose statements outside of loops leave values for the loops, in streams and threads."""

import threading

import numpy as np
import pytest

import pyarray as pa

N = 1 << 14


@pa.kernel
def around(v, out, rounds: int):
    s, k = 0.0, 0
    while k < 3:
        s += v[k]
        k += 1
    for i in range(out.size):
        x = s + i
        for _ in range(rounds):
            x = x * 1.0
        out[i] = x


@pa.kernel
def plain(v, out, rounds: int):
    for i in range(out.size):
        out[i] = v[0] + rounds


def expected(number):
    return 3.0 * number + np.arange(N)


def test_several_streams(device):
    streams = [pa.Stream(device, non_blocking=True) for _ in range(4)]
    sources = [pa.asarray(np.full(5, float(number)), device=device) for number in range(4)]
    outs = [pa.zeros(N, device=device) for _ in range(4)]
    pa.synchronize(device)
    for _ in range(10):
        for stream, v, out in zip(streams, sources, outs, strict=True):
            with stream:
                around(v, out, 100)
        for number, (stream, out) in enumerate(zip(streams, outs, strict=True)):
            stream.synchronize()
            np.testing.assert_array_equal(pa.asnumpy(out), expected(number))


def test_several_threads(device):
    around(pa.zeros(3, device=device), pa.zeros(N, device=device), 1)
    wrong = []

    def work(number):
        v, out = pa.asarray(np.full(5, float(number)), device=device), pa.zeros(N, device=device)
        for _ in range(20):
            around(v, out, 1)
        if not np.array_equal(pa.asnumpy(out), expected(number)):
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_who_waits_for_whom(device, monkeypatch):
    if device == "cpu":
        pytest.skip("the CPU has one stream")
    driver, waits = pa.get_device(device).driver, []
    v, out = pa.ones(3, device=device), pa.zeros(N, device=device)
    for kernel in (around, plain):
        kernel(v, out, 1)
    first, second = pa.Stream(device), pa.Stream(device)
    monkeypatch.setattr(driver, "stream_wait_event", lambda stream, event: waits.append(stream))
    with first:
        waits.clear()  # a stream that got the handle of one that is gone waits for that
        for _ in range(3):
            around(v, out, 1)
        assert waits == [first.handle]
        with second:
            waits.clear()
            plain(v, out, 1)
            assert waits == []
            around(v, out, 1)
            assert waits == [second.handle]
        around(v, out, 1)  # after a stream that was left
    assert waits == [second.handle, first.handle]
