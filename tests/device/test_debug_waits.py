"""Debug launches on GPUs: nobody waits for those whose accesses the sizes prove, and others fail in their call."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.lang import pipeline
from pyarray.lang.markers import unordered


@pa.func
def neighbour(v, i, by):
    return v[i + by]


@pa.func
def looked_up(v, index, i):
    return v[index[i]]


@pa.kernel
def added(out, a, b):
    for i in range(out.shape[0]):
        out[i] = a[i] + b[i]


@pa.kernel
def shifted(out, v, by: pa.int64):
    for i in range(out.shape[0]):
        out[i] = neighbour(v, i, by)


@pa.kernel
def gathered(out, v, index):
    for i in range(out.shape[0]):
        out[i] = looked_up(v, index, i)


@pa.kernel
def halves(out, v):
    half = (v.shape[0] + 1) // 2
    for i in range(out.shape[0]):
        out[i] = v[i] + v[i + half]


@pa.kernel
def backwards(out, v, n: pa.int64):
    last = n % 4
    for i in range(out.shape[0]):
        out[i] = v[last - i]


@pa.kernel
def lines(out, m):
    for i, j in pa.ndrange(out.shape[0], out.shape[1]):
        s = m[0, 0] * 0
        for k in unordered(range(m.shape[1])):
            s = s + m[j, k]
        out[i, j] = s


@pa.kernel
def flattened(out, m):
    for i in range(out.shape[0]):
        out[i] = m[i // m.shape[1], i % m.shape[1]]


def sizes(*numbers):
    return [np.zeros(n) for n in numbers]


SIZES = (0, 1, 2, 3, 5)
CASES = {
    "added": (
        added,
        [sizes(*n) for n in itertools.product(SIZES, repeat=3)],
        lambda o, a, b: len(o) <= min(len(a), len(b)),
    ),
    "shifted": (
        shifted,
        [(*sizes(n, m), by) for n, m, by in itertools.product(SIZES, SIZES, (-1, 0, 2, 2**62, 2**63 - 1))],
        lambda o, v, by: not len(o) or (by >= 0 and len(o) - 1 + by < len(v)),
    ),
    "halves": (
        halves,
        [sizes(*n) for n in itertools.product(SIZES, SIZES)],
        lambda o, v: not len(o) or len(o) - 1 + (len(v) + 1) // 2 < len(v),
    ),
    "backwards": (
        backwards,
        [(*sizes(k, m), n) for k, m, n in itertools.product(SIZES, (3, 4), (-1, 0, 3, 4, 6))],
        lambda o, v, n: not len(o) or len(o) - 1 <= n % 4 < len(v),
    ),
    "lines": (
        lines,
        [[np.zeros((n, m)), np.zeros((k, 2))] for n, m, k in itertools.product((0, 1, 3), repeat=3)],
        lambda o, m: not o.size or (len(m) > 0 and o.shape[1] <= len(m)),
    ),
}  # fmt: skip


def slots_of(arguments):
    """As a debug launch packs them: pointer, offset, sizes of each array."""
    packed = []
    for x in arguments:
        packed += [0, 0, *x.shape] if isinstance(x, np.ndarray) else [x]
    return packed


CASES["flattened"] = (
    flattened,
    [[np.zeros(k), np.zeros((n, m))] for k, n, m in itertools.product((0, 1, 3, 6, 7), (0, 1, 2, 3), (0, 1, 2))],
    lambda o, m: not o.size or (m.shape[1] > 0 and (o.size - 1) // m.shape[1] < len(m)),
)


@pytest.fixture(scope="module")
def tests():
    """Of each kernel the test for the host."""
    found = {}
    for name, (kernel, cases, _) in {**CASES, "gathered": (gathered, [(*sizes(1, 1), np.zeros(1, int))], None)}.items():
        types = [pa.asarray(x) if isinstance(x, np.ndarray) else x for x in cases[0]]
        key = kernel.variant(tuple(types), True).program.params
        found[name] = pipeline.lower(kernel.source_text, key, "cuda", True).inside
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_host_finds_what_the_sizes_prove(tests, name):
    """It may be too strict where a loop has no iteration, and is never too lax."""
    _, cases, is_inside = CASES[name]
    answers = {(tests[name](slots_of(x)), is_inside(*x)) for x in cases}
    assert answers in ({(True, True), (False, False)}, {(True, True), (False, False), (False, True)})


def test_what_memory_decides_is_waited_for(tests):
    assert tests["gathered"] is None


@examples(30)
@given(st.sampled_from(sorted(CASES)), st.data())
def test_calls_fail_when_they_did(device, name, data):
    kernel, cases, is_inside = CASES[name]
    arguments = data.draw(st.sampled_from(cases))
    there = [pa.asarray(x, device=device) if isinstance(x, np.ndarray) else x for x in arguments]
    with pa.debug():
        if is_inside(*arguments):
            kernel(*there)
        else:
            with pytest.raises(pa.BoundsError):
                kernel(*there)


def test_nobody_waits(device, monkeypatch):
    driver = pa.get_device(device).driver
    if not driver.grid:
        pytest.skip("a CPU's launches are over when they return")
    out, a = pa.empty(50, device=device), pa.ones(50, device=device)
    index = pa.zeros(50, dtype=pa.int64, device=device)
    with pa.debug():
        added(out, a, a), gathered(out, a, index), a + a  # compiled
        waits = []
        wait = driver.synchronize
        monkeypatch.setattr(driver, "synchronize", lambda: (waits.append(1), wait()))
        added(out, a, a)
        sums = a + a
        assert not waits
        gathered(out, a, index)
        assert waits == [1]
        waits.clear()
        with pytest.raises(pa.BoundsError):
            added(out, a[1:], a)
        assert waits
    assert sums.tolist() == [2.0] * 50


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("rows", [3, 40, 3000])
def test_nobody_waits_for_sums(device, monkeypatch, rows, axis):
    """Of few rows, which are less than a thread takes at once, too."""
    driver = pa.get_device(device).driver
    if not driver.grid:
        pytest.skip("a CPU's launches are over when they return")
    a = pa.ones((rows, 70), device=device)
    with pa.debug():
        pa.sum(a, axis=axis)  # compiled
        waits = []
        wait = driver.synchronize
        monkeypatch.setattr(driver, "synchronize", lambda: (waits.append(1), wait()))
        total = pa.sum(a, axis=axis)
        assert not waits
    assert pa.sum(total).item() == rows * 70


@pytest.mark.parametrize("shape", [(5, 40), (40, 5), (3, 33)])
def test_sums_of_several_axes_have_the_same_bits(device, shape):
    x = np.random.default_rng(6).normal(size=(shape[0], 2 * shape[1], 70))
    a = pa.asarray(x, device=device)[:, : shape[1]]
    plain = pa.asnumpy(pa.sum(a, axis=(0, 1)))
    with pa.debug():
        np.testing.assert_array_equal(pa.asnumpy(pa.sum(a, axis=(0, 1))), plain)


def test_what_the_host_has_tested_is_not_launched_to_be_tested(device):
    """The kernel that runs iterations whose accesses may fail: it would only end at once."""
    driver = pa.empty(0, device=device).device.driver
    if not driver.grid:
        pytest.skip("a CPU's launches are calls of one function")

    @pa.kernel
    def doubled(out, v):
        for i in range(v.shape[0]):
            out[i] = v[i] + v[i]

    known, v = set(driver._without_fallbacks), pa.arange(5, device=device)
    out = pa.zeros(5, dtype=v.dtype, device=device)
    with pa.debug():
        doubled(out, v)
        assert out.tolist() == [0, 2, 4, 6, 8]
        with pytest.raises(pa.BoundsError):
            doubled(out[:4], v)
    (made,) = set(driver._without_fallbacks) - known
    count, proven = (driver._functions[number][1] for number in (made, driver._without_fallbacks[made]))
    assert (count, proven) == (2, 1)
