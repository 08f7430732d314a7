"""Reductions of parallel loops: what Python says, the same bits for any number of threads."""

import os
import subprocess
import sys

import numpy as np
import pytest
from kernel_tools import launch
from test_control import as_python

import pyarray as pa


@pa.kernel
def several(out, v, w, n):
    s = 0
    c = 3
    m = -1000
    low = 10**9
    x = 5
    every = True
    some = False
    for i in range(v.size):
        s += v[i]
        if v[i] % 3 == 1:
            c += 1
            continue
        m = max(m, v[i] * 2)
        low = min(v[i], low)
        x ^= v[i]
        every = every and v[i] < 90
        some |= v[i] == 42
        for _ in range(2):
            s -= i
        w[i] = v[i] + 1
    out[0] = s
    out[1] = c
    out[2] = m
    out[3] = low
    out[4] = x
    out[5] = every + 2 * some
    for i in range(v.size - 1, -1, -2):
        s += v[i] * i
    out[6] = s
    q = 0
    for i, j in pa.ndrange(n, (1, 5)):
        q += i * j + v[0]
    out[7] = q
    top = 7
    for x2 in v:
        if x2 > top:
            top = x2
    out[8] = top


SIZES = [1, 2, 5, 255, 256, 257, 1000, 5000]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_several_variables(device, size):
    v = np.random.default_rng(size).integers(-5, 100, size)
    as_python(several, device, np.zeros(9, np.int64), v, np.zeros(size, np.int64), size % 9)


@pa.kernel
def records(out, v, w):
    best = 10**6
    where = -1
    value = 0
    for i in range(1, v.size):
        y = v[i]
        if y < best:
            best = y
            where = i
            value = w[i]
    out[0] = best
    out[1] = where
    out[2] = value
    best, where = 50, -5
    for i in range(v.size):
        if v[i] >= best:
            best, where = v[i], i
    out[3] = best
    out[4] = where


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("top", [3, 60, 10**6])
def test_records_keep_the_order(device, size, top):
    v = np.random.default_rng(size).integers(0, top, size)
    as_python(records, device, np.zeros(5, np.int64), v, np.arange(size) * 3)


@pa.kernel
def elements(out, v, n):
    for i in range(v.size):
        out[0] += v[i]
        out[1] = max(out[1], v[i])
        out[2] += 1
    for i in range(n):
        out[n + 2] += i
    for i, j in pa.ndrange(n, 3):
        out[4] -= i * j


@pytest.mark.parametrize("size", [0, *SIZES])
def test_elements(device, size):
    v = np.random.default_rng(size).integers(-5, 100, size)
    as_python(elements, device, np.zeros(6, np.int64), v, 1)


@pa.kernel
def nothing(out, v):
    for i in range(v.size):
        out[7] += v[i]


def test_a_loop_without_iterations_touches_no_element(device):
    as_python(nothing, device, np.zeros(2), np.zeros(0))


@pa.kernel
def out_of_range(v, w):
    s = 0.0
    for i in range(v.size):
        s += w[i]
    v[0] = s


def test_a_failure_names_its_iteration(device):
    v, w = pa.zeros(3000, device=device), pa.zeros(1234, device=device)
    with pa.debug(), pytest.raises(pa.BoundsError, match=r"tid=1234, argument 'w' axis 0: got index 1234") as caught:
        out_of_range(v, w)
    assert caught.value.tid == 1234


@pa.kernel
def sums(out, v):
    s = pa.float32(0)
    t = 0.0
    for i in range(v.size):
        s += v[i]
        if v[i] > 0.5:
            t += v[i] * v[i]
    out[0] = s
    out[1] = t


def test_release_and_debug_have_the_same_bits(device):
    v = np.random.default_rng(1).random(100000).astype(np.float32)
    results = set()
    for checked in (False, True, False):
        with pa.debug(checked):
            results.add(launch(sums, device, np.zeros(2), v)[0].tobytes())
    assert len(results) == 1
    got = np.frombuffer(results.pop())
    np.testing.assert_allclose(got, [v.sum(dtype=float), (v[v > 0.5].astype(float) ** 2).sum()], rtol=1e-6)


THREADS = """
import numpy as np, pyarray as pa, hashlib
@pa.kernel
def k(out, v):
    s = 0.0
    for i in range(v.size):
        s += v[i] * v[i]
    out[0] = s
a, v = pa.zeros(1), pa.asarray(np.random.default_rng(3).random(300000))
k(a, v)
print(a.item().hex())
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


REFUSED = {
    "s = v[i] - s": "assigned before the parallel loop",
    "s += v[i]\n        s *= 2": "assigned before the parallel loop",
    "s += v[i]\n        out[i] = s": "assigned before the parallel loop",
    "s = v[i]": "assigned before the parallel loop",
    "s += s": "assigned before the parallel loop",
    "x = (s := s + v[i])": "assigned before the parallel loop",
    "if v[i] > s:\n            s = v[i] + 1": "assigned before the parallel loop",
    "n += 1": "assigned before the parallel loop",
    "if v[i] > 0: out[0] += v[i]": "update one element of 'out'",
    "out[0] += out[1]": "update one element of 'out'",
    "out[n] += 1\n        out[0] += 1": "update one element of 'out'",
    "if n > 2: continue\n        out[n] = min(out[n], v[i])": "update one element of 'out'",
    "if v[i] > 0:\n            if n > 2: continue\n        out[n] = max(out[n], v[i])": "update one element of 'out'",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_no_reduction(statement):
    from linecache import cache

    text = f"def k(out, v, n):\n    s = 0.0\n    for i in range(v.size):\n        {statement}\n    out[0] = s\n"
    path = f"<no reduction {statement}>"
    cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := {})
    with pytest.raises(pa.CompileError, match=REFUSED[statement]):
        pa.kernel(space["k"])(pa.zeros(3), pa.zeros(3), 1)


def test_iterations_have_arrays_of_their_own(device):
    @pa.kernel
    def counted(out, v):
        s = 0
        for i in range(v.size):
            c = pa.zeros(8, dtype=pa.int64)
            for j in range(16):
                c[(v[i] + j * j) % 8] += j
            for j in range(8):
                s += c[(j * 3 + i) % 8] * j
        out[0] = s

    v = np.random.default_rng(3).integers(0, 100, 5000)
    expected = 0
    for i, x in enumerate(v.tolist()):
        c = [0] * 8
        for j in range(16):
            c[(x + j * j) % 8] += j
        expected += sum(c[(j * 3 + i) % 8] * j for j in range(8))
    for checked in (False, True):
        with pa.debug(checked):
            assert launch(counted, device, np.zeros(1, np.int64), v)[0].tolist() == [expected]


@pa.kernel
def late(out, start, stop):
    for i in range(out.size):
        s = 0
        for j in pa.unordered(range(start, stop)):
            s += j & 7
        out[i] = s


_STARTS, _STOPS = (2**63 - 40, 2**63 - 17, 2**63 - 1, -(2**63), 20), (2**63 - 1, 2**63 - 5, -(2**63) + 50, -(2**63))


@pytest.mark.parametrize(("start", "stop"), [(a, b) for a in _STARTS for b in _STOPS if b - a < 100])
def test_unordered_ranges_at_the_ends_of_int64(device, start, stop):
    for checked in (False, True):
        with pa.debug(checked):
            got = launch(late, device, np.zeros(3, np.int64), np.int64(start), np.int64(stop))[0]
        assert got.tolist() == [sum(j & 7 for j in range(start, stop))] * 3


def test_an_unordered_reduction_ends_with_its_first_failure(device):
    """The rest of its iterations doesn't go on in lanes that it hasn't."""

    @pa.kernel
    def gather(out, x, places):
        for i in range(out.size):
            s = 0.0
            for j in pa.unordered(range(places.size)):
                s += x[places[j]]
            out[i] = s

    for first in (0, 7, 99_990):
        places = np.zeros(100_000, np.int64)
        places[first:] = 10
        with pa.debug(), pytest.raises(pa.BoundsError, match="got index 10"):
            launch(gather, device, np.zeros(3), np.ones(10), places)


REFUSED_ARRAYS = ("s[0] += v[i]", "s += v[i]", "s = s + v[i]", "s[1:] = v[i]")


@pytest.mark.parametrize("statement", REFUSED_ARRAYS)
def test_a_local_array_is_no_reduction(statement):
    from linecache import cache

    text = f"def k(out, v):\n    s = pa.zeros(3)\n    for i in range(v.size):\n        {statement}\n    out[0] = s[0]\n"
    path = f"<no reduction of an array {statement}>"
    cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := {"pa": pa})
    expected = "'s' is assigned before the parallel loop.*\n.*\n.*\nnumbers are reduced, and no arrays"
    with pytest.raises(pa.CompileError, match=expected):
        pa.kernel(space["k"])(pa.zeros(3), pa.zeros(3))


def test_what_else_is_no_reduction():
    @pa.kernel
    def pair(out, v):
        best = (9.0, -1)
        for i in range(v.size):
            if v[i] < best[0]:
                best = (v[i], i)
        out[0] = best[0]

    @pa.kernel
    def neighbours(out, v, k: int):
        for i in range(v.size):
            out[k] += v[i]
            out[k + 1] += 1

    with pytest.raises(pa.CompileError, match=r"'best' is assigned .*\n.*\n.*\nreduce its parts as variables"):
        pair(pa.zeros(3), pa.zeros(3))
    with pytest.raises(pa.CompileError, match="doesn't use 'out' otherwise, as in line"):
        neighbours(pa.zeros(3), pa.zeros(3), 1)


@pa.kernel
def from_negative_zero(out, v, n):
    s, z = -0.0, -pa.complex128(0)
    for i in range(n):
        s += v[i]
        z += v[i]
    out[0], out[1] = pa.copysign(1.0, s), pa.copysign(1.0, z.real)
    for j in range(2, 4):
        inner = -0.0
        for i in pa.unordered(range(n)):
            inner += v[i]
        out[j] = pa.copysign(1.0, inner)


@pytest.mark.parametrize("n", [0, 1, 20, 3000])
@pytest.mark.parametrize("value", [-0.0, 0.0])
def test_sums_of_nothing_and_of_zeros_have_their_sign(device, n, value):
    out = pa.asarray(np.zeros(4), device=device)
    from_negative_zero(out, pa.asarray(np.full(max(n, 1), value), device=device), n)
    sign = 1.0 if n and not np.signbit(value) else -1.0
    assert pa.asnumpy(out).tolist() == [sign] * 4


@pa.kernel
def bound_is_reduced(out, v, n0):
    n = n0
    for i in range(n):
        n -= 1
        out[0] += v[i] * v[i]


@pa.kernel
def bound_is_stored(out, v, count):
    for i in range(1, count[0]):
        out[0] += v[i]
        count[0] = 0
    for i in range(0, -count[1], -1):
        count[1] = 0
        out[1] = max(out[1], v[-i])


@pa.kernel
def left_behind_the_element(out, v):
    for i in range(v.size):
        for j in range(3):
            if v[j] > i:
                break
            if v[j] > 1:
                continue
        out[1] += v[i]
        if v[i] > 2:
            continue
        v[i] = 0


def test_elements_before_continue(device):
    as_python(left_behind_the_element, device, np.zeros(2), np.arange(500) % 4)


def test_bounds_are_evaluated_before_the_loop(device):
    v = np.arange(300.0)
    as_python(bound_is_reduced, device, np.zeros(1), v, 300)
    as_python(bound_is_stored, device, np.zeros(2), v, np.array([300, 300]))
    gradients = pa.zeros(300, device=device), pa.ones(1, device=device)
    out = pa.zeros(1, device=device)
    bound_is_reduced.grad(out, pa.asarray(v, device=device), 300, grad_v=gradients[0], grad_out=gradients[1])
    np.testing.assert_array_equal(pa.asnumpy(gradients[0]), 2 * v)


@pa.kernel
def behind_continue(out, w, v, k: int, n: int):
    for i in range(v.size):
        out[0] += 1
        if v[i] < 0:
            continue
        out[1] -= v[i]
        if v[i] > 3 or k >= n:
            continue
        w[k] *= v[i]


@pa.kernel
def stored_before(w, out, v):
    for i in range(v.size):
        w[i] = v[i]
        if v[i] < 100:
            continue
        out[0] += v[i]


@pa.kernel
def squares_of_some(out, x, n: int):
    for i in range(x.size):
        if i % 2 == n:
            continue
        out[0] += x[i] * x[i]


def test_elements_behind_continue(device):
    """One that no iteration reaches need not exist, and stays as it is."""
    v = np.arange(700) % 9 - 2.0
    for dtype in (np.float64, np.int64, np.int16):
        as_python(behind_continue, device, *np.ones((2, 4), dtype), np.maximum(v, -1).astype(dtype), 2, 4)
    for k in (4, 1 << 40, -9):
        as_python(behind_continue, device, np.arange(4.0), np.arange(4.0), v, k, -9)
    as_python(behind_continue, device, np.zeros(0), np.zeros(0), v[:0], 2, 4)
    for same in (np.full(700, 7.0), np.full(700, 7)):
        for checked in (False, True):
            w = pa.asarray(same.copy(), device=device)
            with pa.debug(checked):
                stored_before(w, w, pa.asarray(v.astype(same.dtype), device=device))
            np.testing.assert_array_equal(pa.asnumpy(w), v)


def test_gradients_of_elements_behind_continue(device):
    x, out = pa.arange(9.0, device=device), pa.zeros(1, device=device)
    for n in (0, 1, 2):
        gradient = pa.zeros(9, device=device)
        squares_of_some.grad(out, x, n, grad_x=gradient, grad_out=pa.ones(1, device=device))
        assert gradient.tolist() == [2.0 * i if i % 2 != n else 0.0 for i in range(9)]
