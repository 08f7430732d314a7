"""Products of tall and skinny matrices, of all layouts and with each dimension the long one, next to NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa

DTYPES = ["float32", "float64", "int32", "int64", "uint8", "int16", "bool", "float16"]
LONG = st.sampled_from([1, 700, 1023, 1024, 1025, 1500, 4097, 9000])
SHORT = st.integers(1, 5) | st.integers(1, 40)  # the few columns of a matrix are often less than a vector


def laid(rng, shape, dtype, how, device):
    """A matrix of small integers, which lies so."""
    rows, columns = shape
    numbers = rng.integers(0, 2 if dtype == "bool" else 4, (rows, columns)).astype(dtype)
    if how == "columns":
        numbers = np.asfortranarray(numbers)
        return numbers, pa.asarray(np.ascontiguousarray(numbers.T), device=device).mT
    wide = np.full((2 * rows, columns + 3), 1, dtype)
    part = {
        "rows": np.s_[:rows, :columns],
        "part": np.s_[:rows, 2 : columns + 2],
        "steps": np.s_[1::2, :columns],
        "reversed": np.s_[rows - 1 :: -1, columns - 1 :: -1],
    }[how]
    if how == "rows":
        return numbers, pa.asarray(numbers, device=device)
    whole = pa.asarray(wide, device=device)
    whole[part] = pa.asarray(numbers, device=device)
    return numbers, whole[part]


HOW = st.sampled_from(["rows", "rows", "part", "columns", "steps", "reversed"])


def product(x, y):
    wide = np.float64 if x.dtype.kind == "f" else np.int64
    found = x.astype(wide) @ y.astype(wide)
    return (found != 0) if x.dtype.kind == "b" else found.astype(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@examples(20)
@given(
    sizes=st.permutations([0, 1, 2]),
    lengths=st.tuples(LONG, SHORT, SHORT),
    how=st.tuples(HOW, HOW, HOW),
    seed=st.integers(0, 99),
)
def test_layouts(device, dtype, sizes, lengths, how, seed):
    """One of rows, depth and columns is long. The result is a part of an array, whose other elements stay."""
    rng = np.random.default_rng(seed)
    m, k, n = (lengths[i] for i in sizes)
    (x, a), (y, b) = laid(rng, (m, k), dtype, how[0], device), laid(rng, (k, n), dtype, how[1], device)
    frame = pa.full((n + 2, m + 2) if how[2] == "columns" else (m + 2, n + 2), 1, dtype=dtype, device=device)
    c = frame[1:-1, 1:-1].mT if how[2] == "columns" else frame[1:-1, 1:-1]
    pa.matmul(a, b, out=c)
    np.testing.assert_array_equal(pa.asnumpy(c), product(x, y))
    around = pa.asnumpy(frame)
    around[1:-1, 1:-1] = 1
    assert (around == 1).all()
    np.testing.assert_array_equal(pa.asnumpy(a @ b), product(x, y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 3, 16, 17, 31])
def test_numbers_of_neighbours_are_not_added(device, dtype, columns):
    """Vectors reach into the next rows: what is there changes nothing."""
    x = np.ones((5000, 3 * columns), dtype)
    x[:, :columns], x[::2, 2 * columns :], x[1::2, 2 * columns :] = np.nan, np.inf, 1e-42
    x[:, columns] = np.arange(5000) % 5
    a = pa.asarray(x, device=device)[:, columns : 2 * columns]
    y = x[:, columns : 2 * columns]
    np.testing.assert_array_equal(pa.asnumpy(a.mT @ a), y.T @ y)
    np.testing.assert_array_equal(pa.asnumpy(a @ a[:columns]), y @ y[:columns])
    rows = pa.asarray(y, device=device)
    rows[-1, 0] = np.nan
    got = pa.asnumpy(rows @ rows[:columns])
    np.testing.assert_array_equal(got[:-1], (y @ y[:columns])[:-1])
    assert np.isnan(got[-1]).all()


@pytest.mark.parametrize("shape", [(300_000, 3), (100_000, 20)])
def test_long_sums(device, shape):
    """Runs and slices: errors don't grow with the depth; and results are the same each time."""
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    a = pa.asarray(x, device=device)
    got = pa.asnumpy(a.mT @ a)
    want = x.T.astype(np.float64) @ x
    assert np.abs(got - want).max() < 1e-6 * shape[0]
    np.testing.assert_array_equal(pa.asnumpy(a.mT @ a), got)
