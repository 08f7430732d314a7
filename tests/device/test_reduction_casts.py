"""Reductions whose updates cast: those that round or wrap at each step have no parts."""

import math

import numpy as np
import pytest
from kernel_tools import agree
from test_control import as_python

import pyarray as pa
from pyarray.jit.launch_state import debug


@pa.kernel
def cast_at_each_step(out, v):
    s = pa.int64(0)
    for i in range(v.size):
        s = pa.uint8(s + v[i])
    out[0] = s


@pa.kernel
def truncated_at_each_step(out, v):
    s = 5000
    for i in range(v.size):
        s = int(s - v[i] / 2)
    out[0] = s


@pa.kernel
def stored_at_each_step(out, v):
    for i in range(v.size):
        out[0] += v[i]


@pa.kernel
def number_or_truth(out, v):
    s = 4
    for i in range(v.size):
        s = s or v[i] > 3
    out[0] = s


@pa.kernel
def operand_cast_at_each_step(out, v):
    s = 0.5
    for i in range(v.size):
        s = int(s) + v[i]
    out[0] = s


@pa.kernel
def most_stored_at_each_step(out, v):
    for i in range(v.size):
        out[0] = max(out[0], v[i])


@pa.kernel
def most_cast_at_each_step(out, v):
    best: pa.int8 = 0
    for i in range(v.size):
        if v[i] > best:
            best = v[i]
    out[0] = best


@pa.kernel
def most_read_as_another_type(out, v):
    m = pa.float64(0.1)
    for i in range(v.size):
        m = max(pa.float32(m), v[i])
    out[0] = m


@pa.kernel
def best_cast_at_each_step(out, v):
    best, where = 0, -1
    for i in range(v.size):
        if v[i] < best:
            best = int(v[i])
            where = i
    out[0] = where


@pa.kernel
def best_rounded_at_each_step(out, v):
    best: pa.float32 = 1.0
    where = -1
    for i in range(v.size):
        if v[i] < best:
            best, where = v[i], i
    out[0] = where


@pa.kernel
def best_compared_as_another_type(out, v):
    best, where = 0, -1
    for i in range(v.size):
        if pa.float64(v[i]) > pa.float64(best):
            best, where = v[i], i
    out[0] = where


@pytest.mark.parametrize(("kernel", "out", "dtype"), [
    (cast_at_each_step, "int64", "int64"),
    (truncated_at_each_step, "int64", "int64"),
    (stored_at_each_step, "int64", "float64"),
    (stored_at_each_step, "bool", "int64"),
    (number_or_truth, "int64", "int64"),
    (operand_cast_at_each_step, "float64", "int64"),
    (most_stored_at_each_step, "uint8", "int64"),
    (most_stored_at_each_step, "uint8", "int8"),
    (most_stored_at_each_step, "int64", "float64"),
    (most_stored_at_each_step, "bool", "int8"),
    (most_cast_at_each_step, "int64", "int64"),
    (most_read_as_another_type, "float64", "float32"),
    (best_cast_at_each_step, "int64", "float64"),
    (best_rounded_at_each_step, "int64", "float64"),
    (best_compared_as_another_type, "int64", "int64"),
])  # fmt: skip
def test_what_is_rounded_at_each_step_has_no_parts(kernel, out, dtype):
    """Parts that are rounded one by one would make another number than Python's."""
    with pytest.raises(pa.CompileError, match=r"at the same time|cast at each update"):
        kernel(pa.zeros(1, dtype=out), pa.ones(3000, dtype=dtype))


@pa.kernel
def narrow(out, least, v):
    for i in range(v.size):
        out[0] += v[i]
        least[0] = max(least[0], v[i])


def test_high_bits_may_be_lost_at_each_step(device):
    v = np.arange(3000)
    as_python(narrow, device, np.zeros(1, np.uint8), np.zeros(1, np.int64), v)
    as_python(most_stored_at_each_step, device, np.zeros(1, np.int64), v.astype(np.uint32))
    as_python(most_stored_at_each_step, device, np.zeros(1, np.float32), v / 7)
    as_python(most_stored_at_each_step, device, np.zeros(1, np.float16), v)


@pa.kernel
def records_of_other_types(out, rounded, v, w):
    best, where = math.inf, -1
    top, at = pa.float64(-1), -1
    for i in range(v.size):
        if v[i] < best:
            best, where = v[i], i
        if top < w[i]:
            top, at = w[i], i
    out[0], out[1], out[2], out[3] = best, where, top, at
    alone: pa.float32 = 0
    for i in range(v.size):
        if v[i] / 7 > alone:
            alone = v[i] / 7
    rounded[0] = alone


def test_the_best_of_a_record_may_have_a_wider_type(device):
    v = np.random.default_rng(1).integers(-1000, 1000, 3000)
    as_python(records_of_other_types, device, np.zeros(4), np.zeros(1, np.float32), v, (v / 7).astype(np.float32))
    as_python(records_of_other_types, device, np.zeros(4), np.zeros(1, np.float32), v * 2**50 + v, v.astype(np.int16))


UNORDERED = {
    "s = int(pa.int8(s + v[j]))": "int64",
    "s = int(s + v[j] / 2)": "int64",
    "m = max(m, v[j])": "int64",
    "m = min(m, v[j] / 2)": "int64",
    "x = max(pa.float32(x), v[j])": "float32",
}


@pytest.mark.parametrize("statement", UNORDERED)
def test_an_unordered_loop_rounds_no_parts(statement):
    from linecache import cache

    text = (
        "def k(out, v):\n    for i in range(1):\n        s, x = 0, pa.float64(0.5)\n        m: pa.uint8 = 0\n"
        f"        for j in pa.unordered(range(v.size)):\n            {statement}\n        out[0] = s + m + x\n"
    )
    path = f"<unordered {statement}>"
    cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := {"pa": pa})
    with pytest.raises(pa.CompileError, match="is not a plain reduction, so the loop's order matters"):
        pa.kernel(space["k"])(pa.zeros(1), pa.zeros(80, dtype=UNORDERED[statement]))


@pa.kernel
def unordered_in_other_types(out, v, w):
    for _ in range(1):
        s = pa.int16(0)
        m, low = pa.float32(-math.inf), pa.int64(0)
        for j in pa.unordered(range(v.size)):
            s = pa.int16(s + v[j])
            m = pa.float32(max(m, v[j] / 3))
            low = min(low, w[j])
        out[0], out[1], out[2] = s, m, low


def test_an_unordered_loop_may_cast_what_keeps_the_result(device):
    v = np.arange(1000) * 7
    with np.errstate(over="ignore"):
        as_python(unordered_in_other_types, device, np.zeros(3), v, (v - 500).astype(np.int16))


@pa.kernel
def from_literals(out, v):
    least, most, last, where, total, product = math.inf, 0, -1, -1, 0.0, 1
    for i in range(v.size):
        least = min(v[i], least)
        most = max(most, v[i])
        if v[i] >= last:
            last, where = v[i], i
        total += v[i]
        product = product * v[i]
        out[6] = max(out[6], v[i])
    out[0], out[1], out[2], out[3], out[4], out[5] = least, most, last, where, total, product


@pa.kernel
def in_lanes(out, v):
    for i in range(out.size):
        most, least, total = -1, math.inf, 0
        for j in pa.unordered(range(v.size)):
            most = max(most, v[j])
            least = min(least, v[j])
            total += v[j]
        out[i] = most + 10 * least + 100 * total


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_literal_is_of_the_type_of_what_it_is_reduced_with(device, dtype):
    v = np.array([1.5, 0.5, 2.0, 2.0, 1.0], dtype)
    for checked in (False, True):
        with debug(checked):
            agree(from_literals, device, np.full(7, 0.25, dtype), v)
            agree(in_lanes, device, np.zeros(2, dtype), v)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_so_is_an_integer(device, dtype):
    @pa.kernel
    def extremes(out, v):
        most, count, where = -1, 0, -1
        for i in range(v.size):
            most = max(most, v[i])
            if v[i] > count:
                count, where = v[i], i
        out[0], out[1], out[2] = most, count, where

    for checked in (False, True):
        with debug(checked):
            agree(extremes, device, np.zeros(3, np.int64), np.array([3, 9, -4, 9], dtype))
