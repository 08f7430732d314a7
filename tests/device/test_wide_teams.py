"""Iterations that two or four warps share, next to NumPy. On AMD's GPUs, parts of a block have no barrier of their own;
here they take the block's."""

import dataclasses

import numpy as np
import pytest
from kernel_tools import launch

import pyarray as pa
from pyarray.lang.dialect import DIALECTS
from pyarray.lang.markers import unordered

STEP = "#define PA_TEAM_STEP (8 - PA_WARP_BITS)"


@pytest.fixture(autouse=True)
def parts_of_a_block(monkeypatch):
    hip = DIALECTS["hip"]
    assert STEP in hip.prelude
    monkeypatch.setitem(
        DIALECTS, "hip", dataclasses.replace(hip, prelude=hip.prelude.replace(STEP, "#define PA_TEAM_STEP 1"))
    )


def reduced(out, x):
    for i in range(out.shape[0]):
        total, top = x[0, 0] * 0, x[i, 0]
        for r in unordered(range(x.shape[1])):
            total = total + x[i, r]
            top = max(top, x[i, r])
        out[i] = total + top


def ended(out, x, ends):
    """Rows of which each team has another part."""
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for r in unordered(range(ends[i])):
            total = total + x[i, r]
        out[i] = total


def centred(out, x):
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for r in unordered(range(x.shape[1])):
            total = total + x[i, r]
        for r in unordered(range(x.shape[1])):
            out[i, r] = x[i, r] - total


@pytest.mark.parametrize("columns", [1025, 2048, 2600, 5001])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_rows(device, columns, dtype):
    """More rows than have a block each, by few or many elements of all."""
    rng = np.random.default_rng(columns)
    for rows in (3, 600):
        x = rng.integers(-3, 4, (rows, columns)).astype(dtype)
        sums = x.sum(axis=1, dtype=dtype)
        got = launch(pa.kernel(reduced), device, np.zeros(rows, dtype), x)[0]
        np.testing.assert_array_equal(got, sums + x.max(axis=1))
        ends = rng.integers(0, columns + 1, rows)
        want = np.array([row[:end].sum(dtype=dtype) for row, end in zip(x, ends, strict=True)])
        np.testing.assert_array_equal(launch(pa.kernel(ended), device, np.zeros(rows, dtype), x, ends)[0], want)
        got = launch(pa.kernel(centred), device, np.zeros_like(x), x)[0]
        np.testing.assert_array_equal(got, x - sums[:, None])
