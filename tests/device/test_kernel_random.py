"""`pa.rng` in kernels: the published vectors of Philox 4x32-10, and the bits of plain Python on every device."""

import os
import subprocess
import sys
from typing import NamedTuple

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


@pytest.mark.slow
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


@pytest.mark.slow
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


# ---- generators that are passed to functions


class Point(NamedTuple):
    x: float
    y: float

    @pa.func
    def moved(self, rng):
        return Point(self.x + rng.uniform(), self.y + rng.normal())

    @pa.func
    def __call__(self, rng):
        return self.x * rng.uniform()


@pa.func
def die(rng, sides):
    return rng.integers(1, sides + 1)


@pa.func
def skip(rng, count):
    if count == 3:
        return
    for _ in range(count):
        rng.bits()


@pa.func
def early(r, scale=1.0):
    if r.uniform() < 0.3:
        return r.normal() * scale, die(r, 6)
    skip(r, 2)
    return r.uniform(), die(sides=20, rng=r)


@pa.func
def rejected(rng):
    while True:
        x, y = rng.uniform(-1, 1), rng.uniform(-1, 1)
        if x * x + y * y < 1:
            return x


@pa.func
def crossed(a, x, b):
    return a.uniform() * x + b.uniform() - a.uniform()


@pa.func
def mixed(x, rng, y):
    return x - 2 * y + rng.uniform()


@pa.func
def rest_of(rng, v):
    v[0] += rng.uniform()
    return v[1:]


@pa.func
def chosen(f, rng, x):
    return f(rng, x)


@pa.func
def untouched(rng, x):
    return x


@pa.kernel
def passed(out, seed: int):
    for i in range(out.shape[0]):
        rng, other = pa.rng(seed, i), pa.rng(seed, i, 1000)
        out[i, 0] = die(rng, 6) + die(rng, 6) * 100 + untouched(rng, 0.5)
        skip(rng, i % 5)
        a, b = early(rng)
        out[i, 1] = a + b + early(rng, scale=3.0)[1] + rng.uniform()
        out[i, 2] = crossed(rng, 2.0, other) + other.uniform()
        out[i, 3] = rejected(rng) if i % 2 else rejected(other)
        out[i, 4] = mixed(rng.uniform(), rng, rng.uniform()) + mixed(y=rng.uniform(), rng=rng, x=rng.uniform())
        early(rng)
        pick = lambda g: g.uniform() + die(g, 3)  # noqa: E731
        out[i, 5] = pick(rng) - pick(pa.rng(seed, i, rng.integers(5))) + chosen(mixed_up, rng, die(rng, 3))

        def discard(r, never):
            if never:
                return
            r.normal()

        discard(rng, i % 2)
        while die(rng, 6) < 5 and die(rng, 6) < 6:
            out[i, 6] += 1
        point = Point(1.0, 2.0).moved(rng).moved(rng)
        point.moved(rng)
        out[i, 6] += point.x + 3 * point.y + point(rng) * 10
        rest_of(rng, rest_of(rng, out[i]))[0] += die(rng, 4)
        out[i, 7] = mixed(out[i, 0], rng, die(rng, 5)) + rng.uniform()


@pa.func
def mixed_up(rng, x):
    return rng.uniform() * x + die(rng, 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, -3])
def test_functions_draw_as_those_of_python(device, seed):
    expected = np.zeros((40, 8))
    passed.__wrapped__(expected, seed)
    for checked in (False, True):
        with pa.debug(checked):
            (got,) = launch(passed, device, np.zeros((40, 8)), seed)
        assert got.tobytes() == expected.tobytes()


@pa.func
def noisy(rng, x):
    return x * x * rng.uniform() + die(rng, 6) * x


@pa.kernel
def by_function(v, out):
    for i in range(v.size):
        rng = pa.rng(3, i)
        out[i] = noisy(rng, v[i]) * rng.uniform() + noisy(rng, v[i])


@pa.kernel
def in_place(v, out):
    for i in range(v.size):
        rng = pa.rng(3, i)
        first = (v[i] * v[i] * rng.uniform() + rng.integers(1, 7) * v[i]) * rng.uniform()
        out[i] = first + (v[i] * v[i] * rng.uniform() + rng.integers(1, 7) * v[i])


@pytest.mark.slow
def test_gradients_of_functions_that_draw(device):
    v, results = np.linspace(1, 2, 7), []
    for k in (by_function, in_place):
        x, out, grad = (pa.asarray(a, device=device) for a in (v, np.zeros(7), np.zeros(7)))
        k(x, out)
        k.grad(x, out, grad_v=grad, grad_out=pa.ones(7, device=device))
        results.append((pa.asnumpy(out), pa.asnumpy(grad)))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-13)


@pa.func
def returned(rng):
    return rng


@pa.func
def kept(rng):
    again = rng
    return again.uniform()


@pa.func
def first_of(pair):
    return pair[0].uniform()


@pa.func
def on_some_paths(rng):
    if rng.uniform() < 0.5:
        return 1.0
    return


REFUSED = [
    (lambda r: crossed(r, 1.0, r), "'r' is passed twice in one call"),
    (lambda r: first_of((r, 1)), "can't be passed to this function"),
    (lambda r: min(r, r), "can't be passed to this function"),
    (lambda r: pa.sqrt(r), "can't be passed to this function"),
    (lambda r: returned(r).uniform(), "can't be returned"),
    (lambda r: kept(r), "can't be kept"),
    (lambda r: 1.0 + skip(r, 1), "expected a number, got nothing"),
    (lambda r: on_some_paths(r), "returns a value on some paths only"),
    (lambda r: (lambda: r.uniform())(), "can't be used by a function inside a kernel"),
]


@pa.kernel
def of(f, v):
    for i in range(v.size):
        rng = pa.rng(1, i)
        v[i] = f(rng)


@pytest.mark.parametrize(("f", "message"), REFUSED)
def test_what_would_copy_a_generator_is_refused(f, message):
    with pytest.raises(pa.CompileError, match=message):
        of(f, pa.zeros(3))


@pa.kernel
def outer_passed(v):
    rng = pa.rng(1)
    for i in range(v.size):
        v[i] = die(rng, 6)


@pa.kernel
def of_python(v, rng):
    for i in range(v.size):
        v[i] = rng.uniform()


def test_generators_of_other_iterations_are_refused():
    with pytest.raises(pa.CompileError, match="'rng' is made before the parallel loop"):
        outer_passed(pa.zeros(3))
    with pytest.raises(pa.CompileError, match="'rng' is a generator of Python's"):
        of_python(pa.zeros(3), pa.rng(1))


def test_bounds_are_int64(device):
    @pa.kernel
    def drawn(out, low, high):
        for i in range(out.size):
            rng = pa.rng(7, i)
            out[i] = rng.integers(low[i], high[i]) ^ rng.integers(high[i])

    low = np.array([0, 5, 2**63, 2**64 - 10, 2**63 + 9], np.uint64)
    high = np.array([2**64 - 1, 2**63 + 5, 2**64 - 1, 2**64 - 1, 3], np.uint64)
    (got, _, _) = launch(drawn, device, np.zeros(5, np.int64), low, high)
    expected = np.zeros(5, np.int64)
    drawn.__wrapped__(expected, low, high)
    assert got.tolist() == expected.tolist()


def test_a_seed_is_an_integer():
    with pytest.raises(TypeError, match="integer"):
        pa.rng(1.5)
