"""Which reductions of rows of float16 and bfloat16 are compiled to packed max and min instructions."""

import math

import numpy as np
import pytest

import pyarray as pa
from pyarray.lang.markers import unordered


def text(kernel, dtype, target="cuda"):
    out, x = pa.zeros((2, 1)), pa.zeros((2, 64), dtype)
    return kernel._lowered(kernel.bind((out, x)), False, target).text


@pa.kernel
def greatest(out, x):
    for i in range(x.shape[0]):
        top, total = pa.float32(-math.inf), pa.float32(0)
        for j in unordered(range(x.shape[1])):
            v = x[i, j]
            w = pa.float32(v)
            top = max(top, pa.float64(w))
        for j in unordered(range(x.shape[1])):
            total += x[i, j]
        out[i, 0] = top + total


@pa.kernel
def of_products(out, x):
    for i in range(x.shape[0]):
        top, total = pa.float32(-math.inf), pa.float32(0)
        for j in unordered(range(x.shape[1])):
            top = max(top, pa.float32(x[i, j]) * 2)
        for j in unordered(range(x.shape[1])):
            total += x[i, j]
        out[i, 0] = top + total


@pa.kernel
def of_integers(out, x):
    for i in range(x.shape[0]):
        top, total = pa.int32(0), pa.float32(0)
        for j in unordered(range(x.shape[1])):
            top = max(top, pa.int32(x[i, j]))
        for j in unordered(range(x.shape[1])):
            total += x[i, j]
        out[i, 0] = top + total


@pa.kernel
def of_two(out, x):
    for i in range(x.shape[0]):
        top, low = pa.float32(-math.inf), pa.float32(math.inf)
        for j in unordered(range(x.shape[1])):
            top = max(top, pa.float32(x[i, j]))
            low = min(low, pa.float32(x[i, j]))
        for j in unordered(range(x.shape[1])):
            low += x[i, j]
        out[i, 0] = top + low


@pa.kernel
def beside_others(out, x):
    for i in range(x.shape[0]):
        top, total = pa.float32(-math.inf), pa.float32(0)
        for j in unordered(range(x.shape[1])):
            k = j + 1  # noqa: F841 - nothing reads it
            top = max(top, pa.float32(x[i, j]))
        for j in unordered(range(x.shape[1])):
            total += x[i, j]
        out[i, 0] = top + total


@pytest.mark.parametrize(("dtype", "suffix"), [("float16", "f16"), ("bfloat16", "bf16")])
def test_casts_of_halves(dtype, suffix):
    assert f"pa_vector_max_{suffix}(" in text(greatest, dtype)
    assert f"pa_vector_max_{suffix}(" in text(greatest, dtype, "hip")
    assert "pa_vector_max" not in text(greatest, dtype, "cpu")


@pytest.mark.parametrize("kernel", [of_products, of_integers, of_two, beside_others], ids=lambda k: k.__name__)
def test_anything_else_takes_elements_one_by_one(kernel):
    assert "pa_vector_m" not in text(kernel, "float16")


def test_other_types_take_elements_one_by_one():
    for dtype in ("float32", "int16"):
        assert "pa_vector_m" not in text(greatest, np.dtype(dtype))
