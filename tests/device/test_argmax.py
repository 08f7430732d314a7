"""argmax and argmin, whose elements are compared together with their places on grids, against NumPy."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray._core import clear_plans
from pyarray.kernels.reduce import reduce

NAN, INF = float("nan"), float("inf")
FLOATS = [0.0, -0.0, 1.0, -1.0, 6e-8, -6e-8, 65504.0, -65504.0, INF, -INF, NAN]
TINY = np.array([1, 0x80000001, 0x007FFFFF, 0x807FFFFF], np.uint32).view(np.float32)


@contextlib.contextmanager
def pieces_of(elements):
    """Lines are cut into pieces of so many elements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduce, "BLOCK_PIECE", elements)
        clear_plans()
        yield
    clear_plans()


def check(device, x, want):
    """`want` has the values of x as a type that NumPy compares."""
    there = pa.asarray(x, device=device)
    for axis in (None, -1):
        for name in ("argmax", "argmin"):
            got = getattr(pa, name)(there, axis=axis)
            np.testing.assert_array_equal(pa.asnumpy(got), getattr(np, name)(want, axis=axis))


@pytest.mark.parametrize("pieces", [16, 1 << 13])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@examples(25)
@given(
    rows=st.integers(1, 4),
    columns=st.one_of(st.integers(1, 40), st.integers(41, 900)),
    kinds=st.lists(st.sampled_from(FLOATS), min_size=1, max_size=4),
    seed=st.integers(0, 999),
    reverse=st.booleans(),
)
def test_floats(device, pieces, dtype, rows, columns, kinds, seed, reverse):
    """NaN comes first, and zeros of both signs are equal."""
    x = pa.asarray(np.random.default_rng(seed).choice(np.array(kinds), (rows, columns)), dtype=dtype)
    there = pa.asnumpy(x)[:, :: -1 if reverse else 1]
    with pieces_of(pieces):
        check(device, there, there.astype(np.float64))


def test_subnormal_numbers(device):
    for x in (TINY, TINY[::-1], np.concatenate([TINY[:2], np.zeros(5, np.float32), -TINY])):
        check(device, x, x)


@pytest.mark.parametrize("pieces", [16, 1 << 13])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@examples(15)
@given(
    rows=st.integers(1, 4),
    columns=st.one_of(st.integers(1, 40), st.integers(41, 900)),
    few=st.booleans(),
    seed=st.integers(0, 999),
)
def test_integers(device, pieces, dtype, rows, columns, few, seed):
    """Of all bits, and of a few extremes."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        x = rng.integers(0, 2, (rows, columns)).astype(bool)
    elif few:
        limits = np.iinfo(dtype)
        x = rng.choice(np.array([limits.min, limits.max, 0, 1, limits.max - 1], dtype), (rows, columns))
    else:
        size = np.dtype(dtype).itemsize
        x = rng.integers(0, 256, (rows, columns * size), np.uint8).view(dtype)
    with pieces_of(pieces):
        check(device, x, x)


def test_the_first_of_equal_elements(device):
    for n in (1, 33, 1000, 70_001):
        check(device, np.full((2, n), 7, np.float32), np.full((2, n), 7))
        x = np.zeros((2, n), np.int16)
        x[:, n // 2 :] = 1
        check(device, x, x)
