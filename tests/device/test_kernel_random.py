"""`pa.rng` in kernels: the published vectors of Philox 4x32-10, and the bits of plain Python on every device."""

import os
import subprocess
import sys

import numpy as np
import pytest
from kernel_tools import launch

import pyarray as pa
from pyarray.kernels.random.kernel_rng import block_of, philox_words

# counter, key, words: Random123's kat_vectors
VECTORS = [
    ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]  # fmt: skip


@pa.kernel
def words(out, seed: pa.uint64, sequence: pa.uint64, n: pa.uint64):
    for _ in range(1):
        a, b, c, d = block_of(seed, sequence, n)
        out[0] = a
        out[1] = b
        out[2] = c
        out[3] = d
        out[4] = pa.uint32(pa.rng(seed, sequence, n).bits() >> pa.uint64(32))


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_published_vectors(device, counter, key, expected):
    assert " ".join(f"{w:08x}" for w in philox_words(counter, key)) == expected
    numbers = (key[0] | key[1] << 32, counter[2] | counter[3] << 32, counter[0] | counter[1] << 32)
    (got,) = launch(words, device, np.zeros(5, np.uint32), *numbers)
    assert " ".join(f"{w:08x}" for w in got[:4].tolist()) == expected
    assert got[4] == got[0]


@pa.kernel
def draws(f8, f4, i8, u8, seed: int):
    for i in range(f8.shape[0]):
        rng = pa.rng(seed, i)
        for j in range(f8.shape[1]):
            f8[i, j] = rng.uniform() if j % 2 else rng.uniform(-2, 3) + rng.normal(1.0, 2.5) * rng.normal()
            f4[i, j] = rng.uniform(dtype=pa.float32) + rng.normal(0.5, 2, pa.float32) * rng.normal(dtype=pa.float32)
            i8[i, j] = rng.integers(10) + rng.integers(-5, 5) * 100 + rng.integers(0, 3000000000) + rng.integers(2**32)
            i8[i, j] -= rng.integers(2**62 + 5) + rng.integers(-(2**63), 2**63 - 1) + rng.integers(3, 3)
            u8[i, j] = rng.bits() ^ pa.rng(seed, j, 5).bits()
            if rng.uniform() < 0.3:
                rng = pa.rng(seed + 1, i, j)
            while rng.uniform() < 0.5:
                u8[i, j] += pa.uint64(1)


@pytest.mark.parametrize("seed", [0, 1, -3, 2**62])
def test_bits_of_plain_python(device, seed):
    outs = [np.zeros((20, 6), t) for t in (np.float64, np.float32, np.int64, np.uint64)]
    expected = [a.copy() for a in outs]
    with np.errstate(all="ignore"):
        draws.__wrapped__(*expected, seed)
    for checked in (False, True):
        with pa.debug(checked):
            got = launch(draws, device, *outs, seed)
        for a, b in zip(expected, got, strict=True):
            assert a.tobytes() == b.tobytes()


@pa.kernel
def many(u, x, k):
    for i in range(u.size):
        rng = pa.rng(11, i)
        u[i] = rng.uniform()
        x[i] = rng.normal()
        k[i] = rng.integers(6)


def test_moments(device):
    u, x, k = launch(many, device, np.zeros(40000), np.zeros(40000), np.zeros(40000, np.int64))
    assert u.min() >= 0 and u.max() < 1  # noqa: PT018
    assert abs(u.mean() - 0.5) < 0.01
    assert abs(x.mean()) < 0.03
    assert abs(x.std() - 1) < 0.02
    assert np.bincount(k, minlength=6).min() > 6300


THREADS = """
import numpy as np, pyarray as pa
@pa.kernel
def k(out):
    for i in range(out.size):
        rng = pa.rng(5, i)
        out[i] = rng.normal() + rng.uniform()
a = pa.zeros(100000)
k(a)
import hashlib
print(hashlib.sha256(pa.asnumpy(a).tobytes()).hexdigest())
"""


def test_any_number_of_threads(tmp_path):
    (tmp_path / "threads.py").write_text(THREADS)
    results = set()
    for threads in ("1", "2", "7"):
        env = {**os.environ, "PYARRAY_NUM_THREADS": threads}
        done = subprocess.run([sys.executable, str(tmp_path / "threads.py")], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        results.add(done.stdout)
    assert len(results) == 1


@pa.kernel
def outer(v):
    rng = pa.rng(1)
    for i in range(v.size):
        v[i] = rng.uniform()


def test_a_generator_from_before_the_loop():
    with pytest.raises(pa.CompileError, match="'rng' is made before the parallel loop"):
        outer(pa.zeros(3))
