"""Loops that only read, whose bounds differ between the iterations around them, next to plain Python."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import agree, launch
from strategies import examples

import pyarray as pa
from pyarray.errors import BoundsError
from pyarray.lang.markers import unordered


@pa.func
def doubled(value):
    return value + value


@pa.kernel
def segments(out, x, starts):
    """Of one array, from each start to the next."""
    for i in range(out.shape[0]):
        total, top = x[0] * 0, x[0] * 0
        for r in unordered(range(starts[i], starts[i + 1])):
            total = total + x[r]
            top = max(top, doubled(x[r]))
        out[i] = total + top


@pa.kernel
def segments_of_rows(out, x, w, starts):
    """Of rows that lie apart, beside weights that begin elsewhere; and what only some iterations load."""
    for i, p in pa.ndrange(out.shape[0], out.shape[1]):
        low = starts[p]
        high = starts[p + 1]
        total = x[0, 0] * 0
        for r in unordered(range(low, high)):
            total = total + x[i, r] * w[r]
        for r in unordered(range(low, high)):
            total = total + (w[r] if x[i, r] > 1 else x[i, r])
        out[i, p] = total


@pa.kernel
def gathered(out, x, rows):
    """Rows whose numbers are elements of an array."""
    for i in range(out.shape[0]):
        row = rows[i]
        total = x[0, 0] * 0
        for r in unordered(range(x.shape[1])):
            total = total + x[row, r]
        out[i] = total


@pa.kernel
def planes(out, x):
    """An inner axis for each value of an outer one."""
    for i in range(out.shape[0]):
        total = x[0, 0, 0] * 0
        for a in range(x.shape[1]):
            for r in unordered(range(x.shape[2])):
                total = total + x[i, a, r]
            total = total + 1
        out[i] = total


@pa.kernel
def halves(out, x):
    """A row that one loop reads, and its beginning, which another does."""
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for r in unordered(range(x.shape[1])):
            total = total + x[i, r]
        for r in unordered(range(i % (x.shape[1] + 1))):
            total = total + x[i, r] * x[i, r]
        out[i] = total


def integers(shape, offset, dtype):
    """Small integers that begin `offset` elements behind the beginning of their memory."""
    size = int(np.prod(shape))
    return (np.arange(size + offset) * 7 % 11 % 5 - 1).astype(dtype)[offset:].reshape(shape)


@pytest.mark.parametrize("checked", [False, True], ids=["release", "debug"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "uint16", "complex64"])
@examples(15)
@given(
    cuts=st.lists(st.one_of(st.integers(0, 60), st.integers(0, 3000)), min_size=2, max_size=7),
    ordered=st.booleans(),
    offset=st.integers(0, 8),
    other=st.integers(0, 8),
    extra=st.integers(0, 8),
)
def test_segments(device, checked, dtype, cuts, ordered, offset, other, extra):
    """Those that end before they begin are empty."""
    starts = np.array(sorted(cuts) if ordered else cuts, np.int64)
    count, width = len(cuts) - 1, max(cuts) + 1
    with pa.debug() if checked else contextlib.nullcontext():
        if dtype != "complex64":
            agree(segments, device, np.zeros(count, dtype), integers(width, offset, dtype), starts)
            wide = integers((2, width + extra), offset, dtype)[:, :width]
            rows = np.array([1, 0, 1, 1], np.int64)
            agree(gathered, device, np.zeros(4, dtype), integers((2, width + extra), offset, dtype)[:, :width], rows)
            agree(segments_of_rows, device, np.zeros((2, count), dtype), wide, integers(width, other, dtype), starts)
        agree(planes, device, np.zeros(3, dtype), integers((3, count, width), offset, dtype))
        agree(halves, device, np.zeros(5, dtype), integers((5, width + extra), offset, dtype)[:, :width])
        reversed_ = integers((3, count, width), offset, dtype)[:, :, ::-1]
        agree(planes, device, np.zeros(3, dtype), reversed_)


def test_debug_mode_has_the_same_bits(device):
    rng = np.random.default_rng(3)
    for width, offset in ((40, 1), (700, 3), (5000, 2)):
        starts = np.array([0, 7, width // 2, width - 1, width], np.int64)
        x = rng.standard_normal(width + offset).astype(np.float32)[offset:]
        w = rng.standard_normal(width).astype(np.float32)
        cases = [
            (segments, np.zeros(4, np.float32), x, starts),
            (segments_of_rows, np.zeros((1, 4), np.float32), x[None], w, starts),
            (gathered, np.zeros(2, np.float32), np.stack([x, x]), np.array([1, 0])),
            (planes, np.zeros(1, np.float32), x[None, None]),
            (halves, np.zeros(3, np.float32), np.stack([x, x, x])),
        ]
        for kernel, *args in cases:
            released = launch(kernel, device, *args)[0]
            with pa.debug():
                np.testing.assert_array_equal(launch(kernel, device, *args)[0], released)


def test_what_leaves_the_array_is_reported(device):
    args = np.zeros(2, np.float32), np.ones(100, np.float32), np.array([0, 50, 104])
    with pa.debug(), pytest.raises(BoundsError, match="got index 100"):
        launch(segments, device, *args)
