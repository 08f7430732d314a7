"""What a reshape becomes, and what `explain` says of it."""

import re

import numpy as np
import pytest

from pyarray.dtypes import float32, int64
from pyarray.jit.kernel import func, kernel
from pyarray.lang.ir import ArrayType, ScalarType
from pyarray.lang.markers import ndrange, unordered
from pyarray.lang.pipeline import lower

OUT, CUBE, DENSE = ArrayType(float32, 2, False), ArrayType(float32, 3, True), ArrayType(float32, 3, False)
NUMBER = ScalarType(int64, weak=True)
OWN = "an element of a reshape, by the indices of the array"
ROWS = "a.shape[2]: rows, in which the digits are counted"
THREAD = "a.shape[2]: one division a digit in each thread"


@kernel
def merged(out, a, n):
    t = a.reshape(a.shape[0], a.shape[1] * a.shape[2])
    for i, j in ndrange(t.shape[0], t.shape[1]):
        out[i, j] = t[i, j]


@kernel
def left(out, a, n):
    t = a.reshape(-1, a.shape[2])
    for i in range(t.shape[0]):
        for j in range(t.shape[1]):
            out[i, j] = t.T[j, i]


@kernel
def cut(out, a, n):
    for i, j in ndrange(a.shape[0], a.shape[1] * a.shape[2]):
        out[i, j] = a.reshape(a.shape[0], a.shape[1], -1, n)[i, 0, 0, 0]


@kernel
def uneven(out, a, n):
    t = a.reshape(n, -1)
    for i, j in ndrange(t.shape[0], t.shape[1]):
        out[i, j] = t[i, j]


@kernel
def elsewhere(out, a, n):
    t = a.ravel()
    for i in range(n):
        out[i, 0] = t[(i * 5) % n]


@func
def first(v):
    return v[0]


@kernel
def handed(out, a, n):
    t = a.reshape(n, -1)
    for i in range(n):
        out[i, 0] = first(t[i])


@kernel
def leaving(out, a, n):
    t = a.reshape(a.shape[0], -1)
    for i in range(t.shape[0]):
        for j in range(t.shape[1]):
            if t[i, j] > 3:
                break
            out[i, j] = 1


@kernel
def summed(out, a, n):
    t = a.reshape(a.shape[0], -1)
    for i in range(t.shape[0]):
        total = 0.0
        for j in unordered(range(t.shape[1])):
            total += t[i, j]
        for _, k in ndrange(2, t.shape[1]):
            total += t[i, k]
        out[i, 0] = total


@kernel
def together(out, a, b):
    s, t = a.ravel(), b.ravel()
    for i in range(s.size):
        s[i] = t[i]


NUMBERED = [
    (uneven, "the sizes don't divide each other"),
    (elsewhere, "an index of merged axes is no loop variable that has digits"),
    (leaving, "an index of merged axes is no loop variable that has digits"),
    (handed, "it was cut, reshaped again or handed on"),
]


def remarks(k, target, array=CUBE, debug=False):
    found = lower(k.source_text, [("out", OUT), ("a", array), ("n", NUMBER)], target, debug)
    return [text for _, text in found.remarks], found.text


def loops(text):
    """The text behind the helper functions."""
    return text[text.index("_body0(") if "_body0(" in text else text.index('extern "C"') :]


@pytest.mark.parametrize(("target", "how"), [("cpu", ROWS), ("cuda", THREAD)])
def test_merged_axes_are_digits_of_the_loop(target, how):
    said, text = remarks(merged, target)
    assert said == [f"loop over j at 1 | {how}", OWN]
    assert "numbered_" not in loops(text)


@pytest.mark.parametrize("target", ["cpu", "hip"])
def test_axes_that_stay_divide_nothing(target):
    said, text = remarks(cut, target)
    assert said == [OWN]
    assert not re.search(r"numbered_|pa_shape_over|pa_mod|pa_floordiv", loops(text))


def test_the_size_that_is_left_is_a_product():
    said, _ = remarks(left, "cpu")
    assert said == ["loop over i: its divisions stay: its iterations have loops of their own", OWN]
    said, _ = remarks(left, "hip")
    assert said == ["loop over i at 1 | a.shape[1]: one division a digit in each thread", OWN]


@pytest.mark.parametrize(("target", "how"), [("cpu", ROWS), ("cuda", THREAD)])
def test_reduced_axes_are_split(target, how):
    said, _ = remarks(summed, target)
    team = "loop over k: its divisions stay: a team of threads shares the iteration around it"
    last = team if target == "cuda" else f"loop over k at 1 | {ROWS}"
    assert said == [f"loop over j at 1 | {how}", OWN, last, OWN]


def test_arrays_of_any_shapes_are_walked_together():
    said = lower(together.source_text, [("out", OUT), ("a", CUBE), ("b", CUBE)], "cpu").remarks
    places = "a.shape[2] | a.shape[1] * a.shape[2], and at 1 | b.shape[2] | b.shape[1] * b.shape[2]"
    assert said[0][1] == f"loop over i at 1 | {places}: rows, in which the digits are counted"


@pytest.mark.parametrize(("k", "why"), NUMBERED)
def test_numbered(k, why):
    said, text = remarks(k, "cpu")
    assert [line for line in said if line.endswith(why)]
    assert "numbered_f32_3s(" in text


@pytest.mark.parametrize("k", [merged, uneven, handed])
def test_contiguous_arrays_are_only_views(k):
    said, text = remarks(k, "cpu", DENSE)
    assert not said
    assert "numbered_" not in text
    assert "pa_shape_strides" not in text


def test_debug_mode_has_the_strides_or_the_number():
    said, text = remarks(merged, "cpu", debug=True)
    assert not said
    assert "numbered_f32_3s(" in text


def test_explain():
    a, out = np.zeros((2, 3, 8), np.float32)[..., ::2], np.zeros((2, 12), np.float32)
    line = merged.source_text.first_line
    assert merged.explain(out, a, 1).splitlines() == [
        "kernel 'merged' on cpu:",
        f"  line {line + 3}: loop over j at 1 | {ROWS}",
        f"  line {line + 4}: {OWN}",
    ]
    assert "there are no divisions" in merged.explain(out, np.zeros((2, 3, 4), np.float32), 1)
