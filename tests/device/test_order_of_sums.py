"""Sums of floats have the same bits in release and in debug mode, however a loop is written in C."""

import numpy as np
import pytest
from kernel_tools import launch

import pyarray as pa
from pyarray.lang.markers import ndrange, unordered


@pa.func
def is_small(x):
    n = 0
    for k in range(2, 5):
        n += x < k * 1e9
    return n == 3


@pa.func
def later(v, n):
    while n < 0:
        n += v.size
    return True


@pa.kernel
def by_row(out, m, v, n):
    s = 0.0
    for k in range(m.size):
        s += m[k // m.shape[1], k % m.shape[1]]
    out[0] = s


@pa.kernel
def periodic(out, m, v, n):
    s = 0.0
    p = 1.0
    for k in range(m.size):
        s += v[k % 100] * v[k % v.shape[0]]
        if k % n > 3:
            p *= 1 + v[k // n % 7] * 1e-3
    out[0] = s
    out[1] = p


@pa.kernel
def element(out, m, v, n):
    for k in range(m.size):
        out[0] += v[k % 77] * 1.1


@pa.kernel
def raveled(out, m, v, n):
    s = 0.0
    for k in range(m.size):
        s += m.ravel()[k]
    out[0] = s


@pa.kernel
def pairs(out, m, v, n):
    s = 0.0
    for i, j in ndrange(m.shape[0], m.shape[1]):
        s += m[i, j] * v[j % n]
    out[0] = s


@pa.kernel
def inner(out, m, v, n):
    for i in range(out.size):
        s = 0.0
        for k in unordered(range(i, m.size)):
            s += m[k // m.shape[1], k % m.shape[1]] * v[k % n]
        out[i] = s


@pa.kernel
def asserted(out, m, v, n):
    s = 0.0
    for k in range(m.size):
        assert is_small(v[k % 50])
        assert later(v, k % 3 - 5)
        assert k % 7 < 7
        assert pa.bool(v[k % v.size] > -100)
        s += v[k % n]
    out[0] = s


@pytest.mark.parametrize("width", [1, 5, 7, 16, 40, 100, 257])
@pytest.mark.parametrize("kernel", [by_row, periodic, element, raveled, pairs, inner, asserted])
def test_release_and_debug_have_the_same_bits(device, kernel, width):
    rng = np.random.default_rng(1)
    v = rng.standard_normal(300)
    rows = rng.standard_normal((40_000 // width, 2 * width))
    for m in (rows[:, :width].copy(), rows[:, ::2]):
        results = set()
        for checked in (False, True):
            with pa.debug(checked):
                results.add(launch(kernel, device, np.zeros(5), m, v, width)[0].tobytes())
        assert len(results) == 1


@pa.kernel
def masked(out, flags, x):
    for i in range(x.shape[0]):
        s = 0.0
        for k in unordered(range(x.shape[1])):
            assert flags[k]
            s += x[i, k]
        out[i] = s


def test_what_only_assertions_read_changes_no_sum(device):
    x = np.random.default_rng(2).standard_normal((100, 300))
    results = set()
    for checked in (False, True):
        with pa.debug(checked):
            results.add(launch(masked, device, np.zeros(100), np.ones(300, bool), x)[0].tobytes())
    assert len(results) == 1


def test_failures_in_rows_and_lanes_are_reported(device):
    for kernel in (periodic, element):
        with pa.debug(), pytest.raises(pa.BoundsError, match="got index 70"):
            launch(kernel, device, np.zeros(2), np.ones((50, 30)), np.ones(70), 9)


@pa.kernel
def softened(out, x, f):
    """Rows that are cached, with stores that stay in registers, and assertions on what is read and stored."""
    for i in range(x.shape[0]):
        s = 0.0
        for k in unordered(range(x.shape[1])):
            e = x[i, k] * x[i, k]
            assert x[i, k] < 1e30
            s += e
            out[i, k] = e
        assert s < 1e30
        for k in unordered(range(x.shape[1])):
            assert out[i, k] >= 0
            assert f[k]
            out[i, k] = out[i, k] / s
            assert out[i, k] * s >= 0


@pa.kernel
def narrower(out, x, f):
    """An assertion behind the store, whose type decides how many elements a vector has."""
    for i in range(x.shape[0]):
        s = 0.0
        for k in unordered(range(x.shape[1])):
            s += x[i, k]
        for k in unordered(range(x.shape[1])):
            out[i, k] = x[i, k] - s
            assert s < 1e30


@pa.kernel
def replaced(out, x, f):
    """Assertions read what was stored just before, also under another name."""
    for i in range(x.shape[0]):
        s = 0.0
        for k in unordered(range(x.shape[1])):
            s += x[i, k]
        for k in unordered(range(x.shape[1])):
            x[i, k] = abs(x[i, k]) + 1
            assert x[i, k] > 0
            assert out[i, k] > 0


@pytest.mark.parametrize("columns", [16, 24, 33, 300, 1000, 3000, 9000])
@pytest.mark.parametrize("kernel", [softened, narrower, replaced], ids=lambda k: k.__name__)
def test_assertions_in_rows_change_no_sum(device, kernel, columns):
    rng = np.random.default_rng(columns)
    for dtype in ("float64", "float32"):
        results, values = set(), rng.standard_normal((40, columns))
        for checked in (False, True):
            x = pa.asarray(values.copy(), device=device)
            out = x if kernel is replaced else pa.zeros((40, columns), dtype=dtype, device=device)
            with pa.debug(checked):
                kernel(out, x, pa.ones(columns, dtype=bool, device=device))
            results.add(pa.asnumpy(out).tobytes())
        assert len(results) == 1


def test_library_sums(device):
    for x in (np.random.default_rng(3).standard_normal((300, 10))[:, 1:8], np.random.default_rng(4).random((20, 7))):
        there, results = pa.asarray(x, device=device), set()
        for checked in (False, True):
            with pa.debug(checked):
                results.add(pa.asnumpy(pa.sum(there)).tobytes() + pa.asnumpy(pa.sum(there.T, axis=(0, 1))).tobytes())
        assert len(results) == 1
