"""Debug mode tests an innermost loop before it runs: the loops that are inside compute what they do without checks, and
of the others the report is that of the first access that fails, in Python's order."""

import random

import numpy as np
import pytest

import pyarray as pa
from pyarray.errors import BoundsError


@pa.func
def row_times(start, columns, values, i, x):
    total = 0
    for k in range(start[i], start[i + 1]):
        total += values[k] * x[columns[k]]
    return total


@pa.kernel
def products(out, start, columns, values, x, shift, log):
    for i in range(out.size):
        out[i] = row_times(start, columns, values, i, x)
        view, at = values[1:], shift[i]
        for k in range(start[i], start[i + 1]):
            if k % 3:
                log[i] += view[k] + values[k + at]  # not reached where k % 3 is 0
            at += log[i] - log[i]
        for k in range(columns.size - 2, columns.size):
            log[i] += columns[k]


class Outside(Exception):
    pass


def products_in_python(out, start, columns, values, x, shift, log):
    def at(name, array, i, tid):
        if not 0 <= i < len(array):
            raise Outside(name, tid, i)
        return array[i]

    for i in range(len(out)):
        first, last = at("start", start, i, i), at("start", start, i + 1, i)
        total = 0
        for k in range(first, last):
            value = at("values", values, k, i)
            total += value * at("x", x, at("columns", columns, k, i), i)
        out[i] = total
        view, shifted = values[1:], at("shift", shift, i, i)
        for k in range(first, last):
            if k % 3:
                log[i] += at("values", view, k, i) + at("values", values, k + shifted, i)
        for k in range(len(columns) - 2, len(columns)):
            log[i] += at("columns", columns, k, i)


def drawn(seed):
    draw = random.Random(seed)
    n, size = draw.randrange(1, 6), draw.randrange(1, 12)
    low, high = (0, size - 2) if draw.random() < 0.6 else (-2, size + 2)
    start = sorted(draw.randint(low, max(high, low)) for _ in range(n + 1))
    if draw.random() < 0.1:
        start[-1] = draw.choice([1 << 62, -(1 << 63), (1 << 63) - 1])
    columns = [draw.randrange(size) for _ in range(size + draw.randrange(2))]
    if draw.random() < 0.3:
        columns[draw.randrange(len(columns))] = draw.choice([-1, size, 1 << 40])
    shift = [draw.choice([0, 0, 0, 1, -1, 3]) for _ in range(n)]
    values, x = (np.arange(1, size + 1) for _ in range(2))
    made = [np.zeros(n), np.array(start), np.array(columns), values, x, np.array(shift), np.zeros(n)]
    return [a.astype(np.int64) for a in made]


@pytest.mark.parametrize("seed", range(60))
def test_loops_that_are_tested_before_they_run(device, seed):
    arrays = drawn(seed)
    expected, failure = [a.copy() for a in arrays], None
    try:
        products_in_python(*expected)
    except Outside as outside:
        failure = outside.args
    there = [pa.array(a, device=device) for a in arrays]
    if failure is not None:
        with pa.debug(), pytest.raises(BoundsError) as caught:
            products(*there)
        assert (caught.value.argument, caught.value.tid, caught.value.index) == failure
        return
    with pa.debug():
        products(*there)
    for got, right in zip(there, expected, strict=True):
        assert got.tolist() == right.tolist()
