"""What the text does so that gcc vectorises a loop, and what it leaves out."""

import numpy as np
import pytest

from pyarray.dtypes import bool_, float32, float64
from pyarray.jit.kernel import kernel
from pyarray.lang.emit_noalias import NO_ALIAS
from pyarray.lang.ir import ArrayType
from pyarray.lang.markers import unordered
from pyarray.lang.pipeline import lower


@kernel
def masked_sum(out, x, mask):
    for i in range(x.shape[0]):
        total = 0.0
        for j in unordered(range(x.shape[1])):
            total += x[i, j] if mask[i, j] else 0.0
        out[i] = total


def text_for(mask, target="cpu"):
    kinds = [ArrayType(float64, 1, False), ArrayType(float32, 2, False), ArrayType(mask, 2, False)]
    return lower(masked_sum.source_text, list(zip(("out", "x", "mask"), kinds, strict=True)), target).text


def test_loads_of_bool():
    """As bytes, since gcc vectorises no loop that loads a _Bool; with a register's bytes side by side."""
    text = text_for(bool_)
    assert "*(const uint8_t *)&v_mask.data" in text
    assert "lane < 32" in text
    assert "lane < 16" in text_for(float32)
    assert "uint8_t" not in text_for(bool_, "cuda")


@pytest.mark.parametrize("value", [1, 255])
def test_any_byte_but_0_is_true(value):
    """Another library's mask may hold what C calls no bool."""
    mask = np.array([[0, value, value]], np.uint8).view(np.bool_)
    out = np.zeros(1)
    masked_sum(out, np.array([[1, 2, 4]], np.float32), mask)
    assert out[0] == 6


@kernel
def pairs(out, x):
    for i in range(x.shape[0]):
        out[2 * i] = x[i]
        out[2 * i + 1] = x[i] * 2


@kernel
def pairs_of_registers(out, x):
    for i in range(x.shape[0]):
        y = x[i]
        out[2 * i] = y
        out[2 * i + 1] = y * 2


def test_adjacent_stores_are_one_where_no_load_stands_between_them():
    kinds = [("out", ArrayType(float64, 1, False)), ("x", ArrayType(float64, 1, False))]
    for source, target, debug, expected in (
        (pairs_of_registers, "cuda", False, True),
        (pairs_of_registers, "cuda", True, False),
        (pairs_of_registers, "cpu", False, False),
        (pairs, "hip", False, False),
    ):
        assert ("pa_vector<double, 2> adjacent" in lower(source.source_text, kinds, target, debug).text) == expected


@kernel(flags=(NO_ALIAS,))
def shifted(out, x):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = x[i, j] + 1


def test_a_promise_of_separate_memory():
    """The other way through the loop is dead code."""
    matrix = ArrayType(float32, 2, False)
    text = lower(shifted.source_text, [("out", matrix), ("x", matrix)], "cpu").text
    assert "if (PA_NO_ALIAS || env->no_alias) kernel_shifted_noalias0" in text


@kernel
def row_sums(out, x):
    for i in range(out.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
        for j in range(out.shape[1]):
            out[i, j] = total


def test_inner_loops_that_load_or_store_repeat_nothing():
    """One text is enough: none of these loops both loads and stores."""
    matrix = ArrayType(float32, 2, False)
    text = lower(row_sums.source_text, [("out", matrix), ("x", matrix)], "cpu").text
    assert "__restrict" not in text
    assert "kernel_row_sums_body0(env, begin, end);" in text


def test_checked_blocks_that_are_inside_have_it_too():
    matrix = ArrayType(float32, 2, False)
    text = lower(shifted.source_text, [("out", matrix), ("x", matrix)], "cpu", debug=True).text
    assert "if ((PA_NO_ALIAS || env->no_alias) && inside) kernel_shifted_noalias0" in text


@kernel
def scaled(out, x):
    for i in range(out.shape[0]):
        out[i] = 2 * x[i]


@pytest.mark.parametrize(("dtype", "size", "found"), [(float32, 3, True), (float32, 2, False), (float64, 3, False)])
def test_vectors_of_three_are_not_split_into_pairs(dtype, size, found):
    rows = ArrayType(dtype, 2, False, sizes=(None, size))
    text, gpu = (lower(scaled.source_text, [("out", rows), ("x", rows)], target).text for target in ("cpu", "cuda"))
    assert text.startswith("#define PA_NO_SLP\n") == found
    assert "PA_NO_SLP" not in gpu
