"""Buffer reuse on CPUs: which tiles have the memory of one that isn't used any more, and which must not."""

import re

import numpy as np
import pytest

import pyarray as pa


@pa.kernel
def chain(y, x):
    for i in pa.tiles(x.shape[0], 1):
        (j,) = pa.tiles(x.shape[1], 64)
        t = x[i, j]
        d = t - t.mean(axis=1, keepdims=True)
        e = d * d + d
        y[i, j] = e / e.sum(axis=1, keepdims=True)


@pa.kernel
def used_later(y, x):
    for i in pa.tiles(x.shape[0], 1):
        (j,) = pa.tiles(x.shape[1], 64)
        t = x[i, j]
        d = t - t.mean(axis=1, keepdims=True)
        y[i, j] = d * d.sum(axis=1, keepdims=True) + t


@pa.kernel
def of_two(y, x):
    for i in pa.tiles(x.shape[0], 1):
        (j,) = pa.tiles(x.shape[1], 64)
        t = x[i, j]
        u = pa.abs(x[i, j]) + 1
        s = t.sum(axis=1, keepdims=True) / u.sum(axis=1, keepdims=True)
        d = t * u
        y[i, j] = d / d.sum(axis=1, keepdims=True) + s


@pa.kernel
def of_another_type(y, x):
    for i in pa.tiles(x.shape[0], 1):
        (j,) = pa.tiles(x.shape[1], 64)
        t = pa.int64(x[i, j])
        s = t.sum(axis=1, keepdims=True)
        d = t * 0.5
        y[i, j] = d + d.sum(axis=1, keepdims=True) + s


@pa.kernel
def carried(y, x):
    for i in pa.tiles(x.shape[0], 1):
        (j,) = pa.tiles(x.shape[1], 64)
        t = x[i, j]
        for _ in range(3):
            d = t * 2
            t = d + d.sum(axis=1, keepdims=True)
        y[i, j] = t


@pa.kernel
def in_a_branch(y, x):
    for i in pa.tiles(x.shape[0], 1):
        (j,) = pa.tiles(x.shape[1], 64)
        t = x[i, j]
        if i.start % 2 == 0:
            d = t * 3
            y[i, j] = d + d.sum(axis=1, keepdims=True)
        else:
            y[i, j] = t


def rows(t):
    return t.sum(axis=1, keepdims=True)


def expected_chain(x):
    d = x - x.mean(axis=1, keepdims=True)
    e = d * d + d
    return e / rows(e)


def expected_carried(x):
    for _ in range(3):
        x = 2 * x + rows(2 * x)
    return x


def expected_branch(x):
    return np.where(np.arange(len(x))[:, None] % 2 == 0, 3 * x + rows(3 * x), x)


# the kernel, its result, and how many tiles of 64 columns its CPU text has
CASES = [
    (chain, expected_chain, 1),
    (used_later, lambda x: (lambda d: d * rows(d) + x)(x - x.mean(axis=1, keepdims=True)), 2),
    (of_two, lambda x: (lambda u: x * u / rows(x * u) + rows(x) / rows(u))(abs(x) + 1), 2),
    (of_another_type, lambda x: x / 2 + 1.5 * rows(x), 2),
    (carried, expected_carried, 2),
    (in_a_branch, expected_branch, 2),
]


@pytest.mark.parametrize(("kernel", "expected", "count"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_which_tiles_share_memory(device, kernel, expected, count):
    x = np.random.default_rng(1).integers(-4, 5, (64, 64)).astype("float64")
    x[:, 0] += 300  # sums of rows are not near 0
    a = pa.asarray(x, device=device)
    y = pa.zeros_like(a)
    for debug in (False, True):
        with pa.debug(debug):
            kernel(y, a)
            np.testing.assert_allclose(pa.asnumpy(y), expected(x), rtol=1e-12, atol=1e-9)
    text = kernel._lowered(kernel.bind((y, a)), False, "cpu").text
    assert len(re.findall(r"^ *local_[fi]64_64 v_", text, re.MULTILINE)) == count
