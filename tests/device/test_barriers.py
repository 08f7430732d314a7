"""Memory that threads of a block share, where loops have no iterations and branches aren't taken: the barriers in them
are for nobody then. The emulated GPU runs each thread as far as the next barrier."""

import numpy as np
import pytest

import pyarray as pa

M = pa.ndarray[pa.float32, 2]
V = pa.ndarray[pa.float32, 1]
C = pa.ndarray[pa.int32, 1]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f")


def on(device, *arrays):
    return [pa.asarray(a.copy(), device=device) for a in arrays]


@pa.kernel
def below(c: M, a: M, w: V):
    for i, j in pa.tiles(c, (32, 32)):
        v = w[i]
        acc = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(i.start, 32):
            acc += a[i, k] @ a[j, k].T
        y = acc + v[:, None]
        c[i, j] = y * y


def test_what_was_written_before_a_loop_without_iterations(device):
    a, w = numbers(64, 64), numbers(64, seed=1)
    c, at, wt = on(device, np.zeros((64, 64), "f"), a, w)
    below(c, at, wt)
    acc = np.zeros((64, 64), "f")
    acc[32:] = a[32:, :32] @ a[:, :32].T
    np.testing.assert_allclose(pa.asnumpy(c), (acc + w[:, None]) ** 2, rtol=1e-4, atol=1e-5)


@pa.kernel
def mirrored(c: M, a: M, w: V):
    for i, j in pa.tiles(c, (32, 32)):
        v = w[i]
        y = a[i, j]
        n = 0
        while n < i.start:
            u = a[j, i]
            y = y + u.T
            n += 32
        y = y + v[:, None]
        c[i, j] = y * y


def test_what_was_written_before_a_while_without_iterations(device):
    a, w = numbers(64, 64), numbers(64, seed=1)
    c, at, wt = on(device, np.zeros((64, 64), "f"), a, w)
    mirrored(c, at, wt)
    y = a.copy()
    y[32:] += a.T[32:]
    np.testing.assert_allclose(pa.asnumpy(c), (y + w[:, None]) ** 2, rtol=1e-4, atol=1e-5)


@pa.kernel
def numbered(out: M, x: M, count: C):
    for i, j in pa.tiles(x, (32, 32)):
        y = x[i, j]
        first = pa.atomic_add(count, 0, 1)
        if i.start > 0:
            y = y - y.sum(axis=1)[:, None]
        second = pa.atomic_add(count, 1, 10)
        out[i, j] = y * 0 + first + second


@pa.kernel
def numbered_otherwise(out: M, x: M, count: C):
    for i, j in pa.tiles(x, (32, 32)):
        y = x[i, j]
        first, second = pa.atomic_add(count, 0, 1), 0
        if i.start > 0:
            y = y - y.sum(axis=1)[:, None]
        else:
            second = pa.atomic_add(count, 1, 10)
        out[i, j] = y * 0 + first + second


@pytest.mark.parametrize("program", [numbered, numbered_otherwise], ids=["then", "otherwise"])
def test_what_a_thread_says_to_the_others_before_a_branch(device, program):
    """All threads of a tile have the same numbers, and each tile has its own."""
    out, x, count = on(device, np.zeros((64, 64), "f"), numbers(64, 64), np.array([1, 10], "i4"))
    program(out, x, count)
    tiles = pa.asnumpy(out).reshape(2, 32, 2, 32).swapaxes(1, 2).reshape(4, -1)
    np.testing.assert_array_equal(tiles, np.repeat(tiles[:, :1], 1024, axis=1))
    assert sorted(tiles[:, 0] % 10) == [1, 2, 3, 4]
    assert sorted(tiles[:, 0] // 10) == ([1, 2, 3, 4] if program is numbered else [0, 0, 1, 2])


@pa.func
def next_number(count):
    return pa.atomic_add(count, 2, 1)


@pa.kernel
def numbered_in_heads(out: M, x: M, count: C):
    for i, j in pa.tiles(x, (32, 32)):
        y = x[i, j]
        if pa.atomic_add(count, 0, 1) < 2:
            y = y + 100
        elif pa.atomic_add(count, 1, 1) < 1:
            y = y + 200
        own = 3 + i.start // 16 + j.start // 32
        while pa.atomic_add(count, own, 1) < 3:
            if count[own] == 2:
                continue
            y = y + 10
        for _ in range(next_number(count)):
            y = y + 1
        out[i, j] = y


def test_conditions_and_ranges_with_effects(device):
    """One thread of a tile evaluates them, for all."""
    out, x, count = on(device, np.zeros((64, 64), "f"), np.zeros((64, 64), "f"), np.zeros(7, "i4"))
    numbered_in_heads(out, x, count)
    tiles = pa.asnumpy(out).reshape(2, 32, 2, 32).swapaxes(1, 2).reshape(4, -1)
    np.testing.assert_array_equal(tiles, np.repeat(tiles[:, :1], 1024, axis=1))
    np.testing.assert_array_equal(pa.asnumpy(count), [4, 2, 4, 4, 4, 4, 4])
    assert sorted(tiles[:, 0] // 100) == [0, 1, 1, 2]
    assert set(tiles[:, 0] // 10 % 10) == {2}
    assert sorted(tiles[:, 0] % 10) == [0, 1, 2, 3]


@pa.kernel
def counted(a: V, c: V):
    for i in pa.tiles(a, 256):
        x = a[i]
        while c[i.stop - 1] < 10:
            c[i] += 1
            x = x * 2
        a[i] = x


@pa.kernel
def counted_on(a: V, c: V):
    for i in pa.tiles(a, 256):
        x = a[i]
        while c[i.stop - 1] < 10:
            if c[i.start] > 5:
                c[i] += 2
                continue
            c[i] += 1
            x = x * 2
        a[i] = x


@pytest.mark.parametrize(
    ("program", "turns", "last"),
    [(counted, [10, 7, 0], 10), (counted_on, [6, 3, 0], 10)],
    ids=["to its end", "continue"],
)
def test_a_condition_that_the_body_changes(device, program, turns, last):
    a, c = numbers(700), np.repeat(np.array([0, 3, 12], "f"), 256)[:700]
    at, ct = on(device, a, c)
    program(at, ct)
    np.testing.assert_array_equal(pa.asnumpy(ct), np.maximum(c, last))
    np.testing.assert_array_equal(pa.asnumpy(at), a * np.repeat(np.array([2.0**n for n in turns], "f"), 256)[:700])


@pa.kernel
def marked(x: M, y: V, z: M):
    for i in range(x.shape[0]):
        v = x[i, 0]
        if v > 0:
            y[i] = 5.0
        x[i, 0] = 2 * v
        for j in pa.unordered(range(z.shape[1])):
            z[i, j] = v


@pa.kernel
def marked_otherwise(x: M, y: V, z: M):
    for i in range(x.shape[0]):
        v = x[i, 0]
        if v > 0:
            y[i] = 5.0
        else:
            x[i, 0] = 2 * v
        for j in pa.unordered(range(z.shape[1])):
            z[i, j] = v


@pa.kernel
def filled(x: M, y: M, z: M, n: pa.int64):
    for i in range(x.shape[0]):
        v = x[i, 0]
        for k in range(n):
            y[i, k] = 5.0
        x[i, 0] = 2 * v
        for j in pa.unordered(range(z.shape[1])):
            z[i, j] = v


@pytest.mark.parametrize("program", [marked, marked_otherwise], ids=["then", "otherwise"])
def test_what_a_team_has_read_before_a_branch(device, program):
    x = numbers(6, 3)
    xt, y, z = on(device, x, np.zeros(6, "f"), np.zeros((6, 200), "f"))
    program(xt, y, z)
    doubled = (x[:, 0] <= 0) | (program is marked)
    np.testing.assert_array_equal(pa.asnumpy(z), np.repeat(x[:, :1], 200, axis=1))
    np.testing.assert_array_equal(pa.asnumpy(xt)[:, 0], np.where(doubled, 2 * x[:, 0], x[:, 0]))
    np.testing.assert_array_equal(pa.asnumpy(y), np.where(x[:, 0] > 0, 5, 0))


@pytest.mark.parametrize("n", [0, 2])
def test_what_a_team_has_read_before_a_loop(device, n):
    x = numbers(6, 3)
    xt, y, z = on(device, x, np.zeros((6, 4), "f"), np.zeros((6, 200), "f"))
    filled(xt, y, z, n)
    np.testing.assert_array_equal(pa.asnumpy(z), np.repeat(x[:, :1], 200, axis=1))
    np.testing.assert_array_equal(pa.asnumpy(xt)[:, 0], 2 * x[:, 0])
