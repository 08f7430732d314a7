"""Rows that don't begin or end with whole vectors: all offsets of all arrays, next to plain Python."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import agree
from strategies import examples

import pyarray as pa
from pyarray.lang.markers import unordered


@pa.kernel
def weighted(out, copied, x, w):
    """Of arrays whose rows begin differently: loads and stores in vectors, or of single elements."""
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for r in unordered(range(x.shape[1])):
            total = total + x[i, r] * w[r]
        for r in unordered(range(x.shape[1])):
            copied[i, r] = x[i, r]
            out[i, r] = x[i, r] * w[r] + total


@pa.kernel
def once(out, x, w):
    """A row that is loaded once isn't cached."""
    for i in range(out.shape[0]):
        total, top = x[0, 0] * 0, x[i, 0]
        for r in unordered(range(x.shape[1])):
            total = total + w[r] * x[i, r]
            top = max(top, x[i, r])
        out[i] = total + top


@pa.kernel
def part(out, x, first: int, last: int):
    """Rows whose first element isn't the array's."""
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for r in unordered(range(first, last)):
            total = total + x[i, r]
        for r in unordered(range(first, last)):
            out[i, r] = x[i, r] - total


def rows_from(shape, offset, extra, dtype):
    """A matrix of small integers whose rows begin `offset` elements behind those of a wider one."""
    rows, columns = shape
    wide = (np.arange(rows * (columns + offset + extra)) * 7 % 11 % 5 - 1).astype(dtype)
    return wide.reshape(rows, columns + offset + extra)[:, offset : offset + columns]


OFFSETS = st.integers(0, 8)


@pytest.mark.parametrize("checked", [False, True], ids=["release", "debug"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "uint16"])
@examples(20)
@given(
    rows=st.sampled_from([1, 3, 40]),
    n=st.one_of(st.integers(1, 80), st.integers(81, 700), st.integers(701, 2100), st.sampled_from([8191, 8193, 20001])),
    offsets=st.tuples(OFFSETS, OFFSETS, OFFSETS, OFFSETS),
    extra=OFFSETS,
)
def test_offsets(device, checked, dtype, rows, n, offsets, extra):
    rows = min(rows, 1 + 100_000 // n)
    x, out, copied = (rows_from((rows, n), k, extra, dtype) for k in offsets[:3])
    w = rows_from((1, n), offsets[3], 0, dtype)[0]
    with pa.debug() if checked else contextlib.nullcontext():
        agree(weighted, device, out, copied, x, w)
        agree(once, device, np.zeros(rows, dtype), x, w)
        agree(part, device, rows_from((rows, n), 0, extra, dtype), x, min(offsets[0], n), n - min(offsets[1], n) // 2)


def test_no_element_of_a_neighbour_is_stored(device):
    """The elements before and behind a row keep their values."""
    for n in range(16, 60, 7):
        wide = np.full((5, n + 9), 99, np.float32)
        for offset in range(9):
            out, x = wide.copy(), rows_from((5, n), offset, 2, np.float32)
            there = pa.asarray(out, device=device)
            weighted(there[:, offset : offset + n], pa.zeros((5, n), dtype="float32", device=device),
                     pa.asarray(x, device=device), pa.ones(n, dtype="float32", device=device))  # fmt: skip
            out[:, offset : offset + n] = x + x.sum(axis=1, keepdims=True)
            np.testing.assert_array_equal(pa.asnumpy(there), out)


@pa.kernel
def single(out, x, low: int, high: int):
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for r in unordered(range(low, high)):
            total = total + x[i, r]
        out[i] = total


@pa.kernel
def stepped(out, x, count: int):
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for r in unordered(range(count)):
            total = total + x[i, r * 2]
        out[i] = total


@pytest.mark.parametrize(("low", "high"), [(2**32, 64), (5, -(2**62)), (2**62, 0), (7, 7), (3, 2)])
def test_empty_ranges(device, low, high):
    x, out = rows_from((70, 80), 0, 0, "float32"), np.zeros(70, np.float32)
    agree(single, device, out, x, low, high)
    agree(part, device, np.zeros((70, 80), np.float32), x, low, high)
    for count in (-(2**63), -(2**62), -1, 0):
        agree(stepped, device, out, x, count)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_that_lie_as_their_parts(device, dtype):
    size = np.dtype(dtype).itemsize // 2
    flat = (np.arange(70 * 160 + 4) % 7).astype(f"float{8 * size}")
    for offset in range(4):
        part_of = pa.asarray(flat, device=device)[offset : offset + 70 * 160]
        x = flat[offset : offset + 70 * 160].view(dtype).reshape(70, 80)
        there = part_of.view(dtype).reshape(70, 80)
        np.testing.assert_allclose(pa.asnumpy(pa.sum(there, axis=1)), x.sum(axis=1))
        w, outs = np.arange(80).astype(dtype), [np.zeros((70, 80), dtype) for _ in range(2)]
        results = [pa.asarray(out, device=device) for out in outs]
        weighted(*results, there, pa.asarray(w, device=device))
        weighted.__wrapped__(*outs, x, w)
        for out, got in zip(outs, results, strict=True):
            np.testing.assert_allclose(pa.asnumpy(got), out)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("axis", [-1, 0])
def test_many_halves(device, dtype, axis):
    """The sum of their exponentials is no half."""
    for name, want in (("softmax", 1 / 70000), ("log_softmax", -np.log(70000)), ("logsumexp", np.log(70000))):
        x = pa.zeros((1, 70000) if axis else (70000, 1), dtype=dtype, device=device)
        got = getattr(pa.special, name)(x, axis=axis)
        assert got.dtype == x.dtype
        np.testing.assert_allclose(pa.asnumpy(got).astype(np.float64), want, rtol=8e-3)
