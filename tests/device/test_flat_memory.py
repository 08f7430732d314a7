"""Memory stays flat over many launches and over many kinds of calls: what is remembered of them has a bound."""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest
from strategies import TIMES

import pyarray as pa

MIB, PAGE = 1 << 20, 4096
LAUNCHES, KINDS = (1_000_000, 100_000) if TIMES > 1 else (20_000, 7200)
AGAIN = 5  # calls of one kind that are captured


@pa.kernel
def scaled(out, x, factor):
    for i in range(out.size):
        out[i] = x[i] * factor


def used():
    """Blocks of Python's memory, objects that the garbage collector looks at, and resident bytes."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    return sys.getallocatedblocks(), len(gc.get_objects()), resident


@pytest.mark.slow
def test_launches(device):
    a, b = (pa.asarray(np.arange(64.0), device=device) for _ in range(2))
    mask, index, host = a > 40, pa.asarray([1, 5], device=device), np.arange(64.0)

    def calls(k):
        scaled(b[1:9], a[: 8 + k % 3][:8], 0.5 + k)
        scaled(b, host if device == "cpu" else a, 2.0)
        c = a[1:-1] + b[:-2] * 2.0
        c += 1
        c[2:4] = a[:2]
        pa.concat([a, c])
        pa.cumsum(a)
        assert a.sum().shape == ()
        assert (a[mask].size, a[index].size, (a.reshape(8, 8) @ a[:8]).size) == (23, 2, 8)
        b[index] = 1.0
        assert a[3].item() == 3

    turns = LAUNCHES // 12 if device == "cpu" else 20_000 // 12
    for k in range(turns // 4):
        calls(k)
    blocks, objects, memory = used()
    for k in range(turns):
        calls(k)
    now = used()
    assert now[0] - blocks < 500
    assert now[1] - objects < 200
    assert now[2] - memory < 4 * MIB


A, B = np.ones((1, 1)), np.ones(3000)
# Calls of kind `k`, which differ in shapes, strides, dtypes or numbers; as often as a capture needs, or once.
CALLS_OF_KINDS = {
    "shapes": (AGAIN, lambda a, b, k: pa.concat([b[: 1 + k % 2000], pa.broadcast_to(a, (1 + k // 2000, 1))[:, 0]])),
    "numbers": (AGAIN, lambda a, b, k: pa.clip(b[:3], -k, k)),
    "shifts and axes": (1, lambda a, b, k: pa.roll(pa.broadcast_to(a, (2, 1 + k % 3000)), k, axis=k % 2)),
    "shapes of sums": (1, lambda a, b, k: pa.sum(pa.broadcast_to(a, (1 + k % 250, 1 + k // 250)), axis=k % 2)),
    "shapes, elementwise": (1, lambda a, b, k: pa.flip(b[: 1 + k % 3000]) * (1.0 + k)),
    "kernels": (1, lambda a, b, k: scaled(b[-7:], b[k % 1000 :: 1 + k % 17][:7], k)),
    "numbers of assignments": (1, lambda a, b, k: b.__setitem__(slice(k % 1000, None, 1 + k % 3), k)),
    "index arrays": (1, lambda a, b, k: b[[k % 2000, *range(k % 7)]]),
    "products": (1, lambda a, b, k: b[: 1 + k % 3000] @ b[: 1 + k % 3000]),
}
SAMPLE = 16  # kinds between two looks


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS_OF_KINDS)
def test_kinds_of_calls(name):
    """Tables fill in the first kinds; then the most that is used stays the same."""
    times, call = CALLS_OF_KINDS[name]
    a, b = pa.asarray(A.copy()), pa.asarray(B.copy())
    last, peaks, (start, *_) = KINDS // 4, [], used()
    for phase in (range(2 * last), range(2 * last, 3 * last), range(3 * last, KINDS)):
        most, *_ = used()
        for k in phase:
            for _ in range(times):
                call(a, b, k)
            if k % SAMPLE == 0:
                most = max(most, sys.getallocatedblocks())
        peaks.append((most, used()[2]))
    (blocks, resident), (later, resident_later) = peaks[1:]
    assert later - blocks < 300 + max(blocks - start, 0) // 6  # what grows with each kind grows by a third
    assert resident_later - resident < MIB
