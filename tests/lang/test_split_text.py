"""Which loops count the digits of their variable, as the text says, and why others don't."""

import re

import pytest

from pyarray.dtypes import float32, int64
from pyarray.jit.kernel import func, kernel
from pyarray.lang.ir import ArrayType, ScalarType
from pyarray.lang.markers import ndrange
from pyarray.lang.pipeline import lower

FLAT, MATRIX, CUBE = (ArrayType(float32, n, False) for n in (1, 2, 3))
NUMBER = ScalarType(int64, weak=True)
PLAIN = [("out", FLAT), ("n", NUMBER), ("m", NUMBER)]
PAIRS = [("out", MATRIX), *PLAIN[1:]]


@kernel
def product(out, a):
    for i in range(a.shape[0] * a.shape[1]):
        out[i] = a[i // a.shape[1], i % a.shape[1]]


@kernel
def levels(out, a):
    for i in range(a.size):
        z = i // a.shape[2] // a.shape[1]
        rest = i % (a.shape[1] * a.shape[2])
        out[i] = a[z, rest // a.shape[2], rest % a.shape[2]]


@kernel
def unknown(out, n, m):
    for i in range(1, out.size + 1):
        out[i - 1] = i // n % (2 * m)


@func
def half(x):
    return x / 2


@kernel
def inner(out, n, m):
    for i, j in ndrange(out.shape[0], n * m):
        out[i, j] = half(j // n)


@kernel
def nested(out, n, m):
    for i in range(out.size):
        for j in range(m):
            out[i] = j % n


@kernel
def uneven(out, n, m):
    for i in range(n * m):
        out[i] = i % n + i % m


@kernel
def mixed(out, n, m):
    for i in range(out.size):
        out[i] = i // (2 * n) + i % 3 + i % m + i // (6 * n)


@kernel
def numbers(out, n, m):
    for i in range(out.size):
        out[i] = i % 2 + i % 3


@kernel
def not_nested(out, n, m):
    for i in range(out.size):
        out[i] = i % (n * m) // (2 * n)


@kernel
def several(out, n, m):
    for i, j in ndrange(out.shape[0], m):
        out[i, j] = (i * m + j) // n


@kernel
def changing(out, n, m):
    for i in range(out.size):
        k = n + i
        out[i] = i // k


@kernel
def indirect(out, n, m):
    for i in range(out.size):
        out[i] = (i + m) % n


@kernel
def stepped(out, n, m):
    for i in range(0, out.size, 2):
        out[i] = i % n


@kernel
def leaving(out, n, m):
    for i in range(out.size):
        for j in range(m):
            if j % n == 3:
                break
            out[i] = j


@kernel
def around(out, n, m):
    for i in range(out.size):
        x = i % n
        for j in range(m):
            out[i] = j + x


@kernel
def masked(out, n, m):
    for i in range(out.size):
        out[i] = i // 4 % 2


@kernel
def real(out, n, m):
    for i in range(out.size):
        out[i] = out[i] % 3.0 + i % n % 1


@kernel
def constant_length(out, n, m):
    for i in range(out.size):
        for j in range(9):
            out[i] = j // n


SPLIT = [
    (product, [("out", FLAT), ("a", MATRIX)], "i at 1 | a.shape[1], of which the range is a multiple"),
    (
        levels,
        [("out", FLAT), ("a", CUBE)],
        "i at 1 | a.shape[2] | a.shape[1] * a.shape[2], of which the range is a multiple",
    ),
    (unknown, PLAIN, "i at 1 | n | m * n * 2"),
    (inner, PAIRS, "j at 1 | n, of which the range is a multiple"),
    (nested, PLAIN, "j at 1 | n"),
    (real, PLAIN, "i at 1 | n"),
    (uneven, PLAIN, "i at 1 | n, and at 1 | m, of which the range is a multiple"),
    (mixed, PLAIN, "i at 1 | n * 2 | n * 6, and at 1 | m"),
    (not_nested, PLAIN, "i at 1 | m * n; a division stays: the divisors don't divide each other"),
]
NOT = [
    (numbers, "i: the divisors don't divide each other"),
    (several, "j: it divides a sum of several loop variables"),
    (changing, "i: the divisor changes in the loop"),
    (indirect, "i: it divides something else than the variable"),
    (stepped, "i: the loop has a step"),
    (leaving, "j: a break leaves it"),
    (around, "i: its iterations have loops of their own"),
    (masked, None),
    (constant_length, None),
]


GRID = {stepped: "i at 1 | n", around: "i at 1 | n"}  # what splits where there needn't be rows


def remarks(k, params, how, debug=False, target="cpu"):
    text = lower(k.source_text, params, target, debug).text
    return re.findall(rf"/\* {how}: (.*?) \*/", text)


@pytest.mark.parametrize(("k", "params", "expected"), SPLIT, ids=lambda x: getattr(x, "__name__", ""))
def test_axis_splits(k, params, expected):
    assert remarks(k, params, "split") == [expected]
    assert remarks(k, params, "split", debug=True) == []
    assert remarks(k, params, "not split") == []


@pytest.mark.parametrize(("k", "expected"), NOT, ids=lambda x: getattr(x, "__name__", ""))
def test_not_split(k, expected):
    params = PAIRS if k is several else PLAIN
    assert remarks(k, params, "split") == []
    assert remarks(k, params, "not split") == ([] if expected is None else [expected])


@pytest.mark.parametrize("target", ["cuda", "hip"])
def test_threads_take_their_number_apart(target):
    for k, params, expected in SPLIT:
        assert remarks(k, params, "split", target=target) == [expected]
        # debug mode takes the number of an iteration apart; an inner loop is as it is written there
        assert remarks(k, params, "split", debug=True, target=target) == ([] if k is nested else [expected])
    for k, expected in NOT:
        params = PAIRS if k is several else PLAIN
        found = [GRID[k]] if k in GRID else []
        assert remarks(k, params, "split", target=target) == found
        why = [] if k in GRID or expected is None else [expected]
        assert remarks(k, params, "not split", target=target) == why


def test_a_digit_of_a_thread_is_one_division():
    text = lower(levels.source_text, SPLIT[1][1], "cuda").text
    line = next(line for line in text.splitlines() if "pa_shape_over(" in line and "const bool own" in line)
    assert line.count("pa_shape_over(") == 2
    assert not re.search(r"pa_mod|pa_floordiv|%", line)


def test_rows_of_a_split_loop_divide_nothing():
    text = lower(levels.source_text, SPLIT[1][1], "cpu").text
    rows = text[text.index("for (int64_t at1_") : text.index("} else {")]
    assert not re.search(r"pa_mod|pa_floordiv|[^/*]/[^/*]|%", rows)
    assert re.search(r"pa_mod|pa_floordiv", text[text.index("} else {") :])
