"""A row of constant shape that is outside an array, in debug mode: the report is that of the row, and what is then read
from it and stored into it is nobody's memory, though its own accesses aren't tested. Nor does an operand of `and` that
Python doesn't evaluate touch anything."""

import numpy as np
import pytest
from kernel_tools import on

import pyarray as pa
from pyarray.array_convert import asarray, asnumpy
from pyarray.errors import BoundsError
from pyarray.jit.kernel import func, kernel
from pyarray.jit.launch_state import debug

V3 = pa.ndarray[pa.float32, (None, 3)]
M3 = pa.ndarray[pa.float32, (None, 3, 3)]
AROUND = 4  # rows before and behind the array


@func
def scaled(row, f: float):
    for k in range(3):
        row[k] = f * row[k] + row[(k + 1) % 3]
    return row[0] + row[1] + row[2]


@kernel
def rows(v: V3, index, out):
    for i in range(index.size):
        row = v[index[i]]
        row[1] += 1
        out[i] = scaled(row, 2.0)


@kernel
def rows_of_matrices(m: M3, index, out):
    for i in range(index.size):
        matrix = m[index[i]]
        matrix[2, 1] = 5
        row = matrix[1]
        row[2] = 7
        out[i] = scaled(row, 2.0) + matrix[0, 0]


@kernel
def long_rows(v: pa.ndarray[pa.float64, (None, 40)], index, out):
    for i in range(index.size):
        row = v[index[i]]
        for k in range(40):
            row[k] = k
        out[i] = row[39]


@kernel
def partly_constant(m: pa.ndarray[pa.float32, (None, None, 3)], index, out):
    for i in range(index.size):
        plane = m[index[i]]
        s = 0.0
        for j in range(plane.shape[0]):
            plane[j, 2] = 1
            s += plane[j, 1]
        plane[0, 0] = 3
        out[i] = s


def surrounded(shape, dtype, order, device):
    """An array inside a larger one whose other elements are -1, and that one."""
    outer = asarray(np.full((shape[0] + 2 * AROUND, *shape[1:]), -1, dtype), device=device)
    inner = outer[AROUND : AROUND + shape[0]]
    inner[...] = 0
    return (inner if order == "C" else inner[::-1]), outer


CASES = [(rows, (3,), np.float32), (rows_of_matrices, (3, 3), np.float32), (long_rows, (40,), np.float64)]
CASES += [(partly_constant, (2, 3), np.float32)]


@pytest.mark.parametrize("order", ["C", "reversed"])
@pytest.mark.parametrize("n", [0, 5])
@pytest.mark.parametrize(("made", "row", "dtype"), CASES)
@pytest.mark.parametrize("at", [-1, 5, 1 << 40])
def test_a_row_outside(device, made, row, dtype, n, order, at):
    inner, outer = surrounded((n, *row), dtype, order, device)
    index = np.zeros(40, np.int64)
    index[17] = at
    if n == 0:
        index[:17] = at
    first = 0 if n == 0 else 17
    with debug(True), pytest.raises(BoundsError) as caught:
        made(inner, asarray(index, device=device), asarray(np.zeros(40, dtype), device=device))
    error = caught.value
    assert (error.tid, error.index, error.axis, error.size) == (first, at, 0, n * int(np.prod(row)))
    left = asnumpy(outer)
    assert np.all(left[:AROUND] == -1)
    assert np.all(left[AROUND + n :] == -1)


@kernel
def rows_inside(v: V3, out):
    for i in range(v.shape[0]):
        out[i] = v[i][0] + v[i][1] * v[i][2] + scaled(v[i], 0.5)


def test_rows_inside_are_as_without_debug_mode(device):
    x = np.arange(30, dtype=np.float32).reshape(10, 3)
    found = []
    for checked in (False, True):
        v, out = on(device, x.copy()), on(device, np.zeros(10, np.float32))
        with debug(checked):
            rows_inside(v, out)
        found.append(asnumpy(out))
    np.testing.assert_array_equal(*found)


@kernel
def guarded(v, index, out):
    for i in range(index.size):
        k = index[i]
        local = pa.array([1, 2, 3])
        hits = 0
        if k >= 0 and k < v.size and v[k] > 0:
            hits += 1
        if 0 <= k < 3 and local[k] > 1:
            hits += 10
        for j in range(3):
            if (j > 0 and local[j] > local[(j + 1) % 3]) or local[j] == k:
                hits += 100
        out[i] = hits


def test_what_is_guarded_is_not_touched(device):
    v, index = np.array([1, -1, 1, 1, 1]), np.array([-(1 << 50), -1, 0, 1, 2, 4, 5, 1 << 50])
    expected = []
    for k in index:
        hits = int(0 <= k < 5 and v[k] > 0) + 10 * int(0 <= k < 3 and k + 1 > 1)
        local = [1, 2, 3]
        hits += 100 * sum((j > 0 and local[j] > local[(j + 1) % 3]) or local[j] == k for j in range(3))
        expected.append(hits)
    for checked in (False, True):
        out = on(device, np.zeros(len(index), np.int64))
        with debug(checked):
            guarded(on(device, v), on(device, index), out)
        assert asnumpy(out).tolist() == expected
