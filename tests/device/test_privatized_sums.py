"""Privatized sums: integers that a loop only adds to, collected by each block of iterations."""

import numpy as np
import pytest

import pyarray as pa

N = 200_000
X = np.random.default_rng(0).integers(-5, 300, N)


@pa.kernel
def histogram(x: pa.ndarray, counts: pa.ndarray, table: pa.ndarray, total: pa.ndarray):
    for i in range(x.shape[0]):
        if x[i] >= 0 and x[i] < counts.shape[0]:
            pa.atomic_add(counts, x[i], 1)
        else:
            pa.atomic_sub(table, (i % 2, i % 3), x[i])
        pa.atomic_add(total, 0, i)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int16", "uint32"])
def test_collected(dtype, device):
    given = [np.arange(n).reshape(shape).astype(dtype) for n, shape in ((250, 250), (6, (2, 3)), (1, 1))]
    expected = [g.copy() for g in given]
    inside = (X >= 0) & (X < 250)
    i = np.arange(N)
    with np.errstate(over="ignore"):
        np.add.at(expected[0], X[inside], np.asarray(1, dtype))
        rest = i[~inside]
        np.subtract.at(expected[1], (rest % 2, rest % 3), X[~inside].astype(dtype))
        expected[2] += i.sum().astype(dtype)
    for x in (X, np.repeat(X, 2)[::2]):
        arrays = [pa.array(g, device=device) for g in given]
        histogram(pa.asarray(x, device=device), *arrays)
        for found, wanted in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(pa.asnumpy(found), wanted)
    if device == "cpu":
        assert "_sums0" in histogram.source("cpu")


@pa.kernel
def two(a: pa.BufferView[pa.int64], b: pa.BufferView[pa.int64], n: int):
    for i in range(n):
        pa.atomic_add(a, i % 10, 1)
        pa.atomic_add(b, i % 7, 2)
    for i in range(5):
        a[i] = a[i] * 3


@pytest.mark.parametrize(("first", "second"), [(0, 20), (0, 5), (3, 3)])
def test_arrays_that_share_memory(first, second, device):
    memory, n = pa.zeros(40, dtype="int64", device=device), 70_000
    two(memory[first : first + 10], memory[second : second + 10], n)
    expected = np.zeros(40, np.int64)
    expected[first : first + 10] += n // 10
    expected[second : second + 7] += 2 * n // 7
    expected[first : first + 5] *= 3
    assert memory.tolist() == expected.tolist()


@pa.func
def counted(v, k):
    pa.atomic_add(v, k, 1)


@pa.kernel
def old_values(v: pa.BufferView[pa.int64], seen: pa.BufferView[pa.int64]):
    for i in range(seen.size):
        seen[pa.atomic_add(v, 0, 1)] = i


@pa.kernel
def read_back(v: pa.BufferView[pa.int64], out: pa.BufferView[pa.int64]):
    for i in range(out.size):
        pa.atomic_add(v, i % 3, 1)
        out[i] = v[i % 3 + 3]


@pa.kernel
def by_function(v: pa.BufferView[pa.int64], n: int):
    for i in range(n):
        counted(v, i % 3)


@pa.kernel
def into_no_axes(v: pa.ndarray[pa.int64, 0], n: int):
    for i in range(n):
        pa.atomic_add(v, (), i)


def test_an_array_of_no_axes(device):
    for n in (5, 70_000):
        v = pa.zeros((), dtype="int64", device=device)
        into_no_axes(v, n)
        with pa.debug():
            into_no_axes(v, n)
        assert v.item() == n * (n - 1)


@pa.kernel
def of_a_view(v: pa.BufferView[pa.int64], n: int):
    for i in range(n):
        w = v[1:]
        pa.atomic_add(w, i % 3, 1)


def test_others_are_not_collected(device):
    n = 60_000
    v, out = pa.zeros(6, dtype="int64", device=device), pa.zeros(n, dtype="int64", device=device)
    old_values(v, out)
    assert sorted(out.tolist()) == list(range(n))
    read_back(v, out)
    by_function(v, n)
    of_a_view(v, n)
    assert v.tolist() == [n + 2 * n // 3, n, n, n // 3, 0, 0]
    for kernel in (old_values, read_back, by_function, of_a_view):
        assert "_sums0" not in kernel.source(device)


@pa.kernel
def of_floats(x: pa.ndarray, sums: pa.ndarray, counts: pa.ndarray, n: int):
    for i in range(n):
        for k in range(3):
            pa.atomic_add(sums, (x[i] % sums.shape[0], k), k * 0.5)
            pa.atomic_sub(counts, x[i] % 5, 1)


@pytest.mark.parametrize("size", [2, 3000, 70_000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_floats(dtype, size, device):
    """All sums are exact, so that each order gives the same: a few per block, as many as larger blocks are worth, and
    too many."""
    n = N if dtype != "float16" else 900
    x = np.abs(X)[:n] * 7
    expected = np.full((size, 3), -0.25)
    np.add.at(expected, x % size, [0, 0.5, 1])
    for checked in (False, True):
        sums, counts = pa.full((size, 3), -0.25, dtype=dtype, device=device), pa.zeros(5, dtype="int32", device=device)
        with pa.debug(checked):
            of_floats(pa.asarray(x, device=device), sums, counts, n)
        np.testing.assert_array_equal(pa.asnumpy(sums), expected.astype(dtype))
        assert counts.tolist() == (-3 * np.bincount(x % 5, minlength=5)).tolist()
    if device == "cpu":
        assert "_sums0" in of_floats.source("cpu")


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_an_index_outside_in_debug_mode(dtype, device):
    """The report is that of other loops, and nothing outside is touched."""
    memory = pa.zeros(300, dtype=dtype, device=device)
    x = pa.asarray(X % 100, device=device)
    x[1234] = 100
    with pa.debug(), pytest.raises(pa.BoundsError, match="got index 100") as caught:
        gathered(x, memory[100:200])
    assert caught.value.tid == 1234
    assert not pa.asnumpy(memory)[:100].any()
    assert not pa.asnumpy(memory)[200:].any()


@pa.kernel
def gathered(x: pa.ndarray, counts: pa.ndarray):
    for i in range(x.shape[0]):
        pa.atomic_add(counts, x[i], 1)
