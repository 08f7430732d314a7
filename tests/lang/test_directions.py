"""Directions of array parameters, inferred from what a kernel does."""

import pytest

import pyarray as pa
from pyarray.dtypes import float64
from pyarray.lang.ir import ArrayType
from pyarray.lang.pipeline import lower


@pa.func
def put(v, i, x):
    v[i] = x


@pa.func
def fill(row, x):
    for j in range(len(row)):
        row[j] = x


@pa.func
def maybe(v, i, x):
    if x < 0:
        return 0.0
    v[i] = x
    return x


@pa.func
def chosen(a, b, n):
    return a if n > 2 else b


def by_helper(out, v):
    for i in range(out.size):
        put(out, i, v[i])


def by_rows(out):
    for i in range(out.shape[0]):
        fill(out[i], 2.0)


def by_a_view(out):
    for i in range(out.shape[0]):
        row = out[i]
        for j in range(out.shape[1]):
            row[j] = i + j


def by_transposed_loops(out):
    for j in range(out.shape[1]):
        for i in range(out.shape[0]):
            out[i, j] = i


def by_ndrange(out, v):
    for i, j in pa.ndrange(out.shape):
        out[i, j] = v[j]


def in_both_branches(out, v):
    for i in range(out.size):
        if v[i] > 0:
            out[i] = 1
        else:
            put(out, i, 2)


def in_one_branch(out, v):
    for i in range(out.size):
        if v[i] > 0:
            out[i] = 1


def behind_a_skip(out, v):
    for i in range(out.size):
        if v[i] < 0:
            continue
        out[i] = 1


def before_a_skip(out, v):
    for i in range(out.size):
        out[i] = 1
        if v[i] < 0:
            continue
        out[i] = 2


def then_updated(out, v):
    n = out.size
    for i in range(n):
        out[i] = v[i]
    for i in range(n):
        out[i] += out[n - 1 - i]


def read_in_its_iteration(out, v):
    for i in range(out.size):
        out[i] = v[i]
        out[i] *= 2


def read_before(out, v):
    for i in range(out.size):
        out[i] += v[i]


def neighbour(out, v):
    for i in range(out.size):
        out[i] = v[i]
        out[i] += out[i - 1] if i > 0 else 0


def other_size(out, v):
    for i in range(v.size):
        out[i] = v[i]


def a_part(out):
    for i in range(1, out.size):
        out[i] = 1


def every_other(out):
    for i in range(0, out.size, 2):
        out[i] = 1


def diagonal(out):
    for i in range(out.shape[0]):
        out[i, i] = 1


def one_column(out):
    for i, j in pa.ndrange(out.shape):
        if j == 0:
            out[i, 0] = j


def perhaps_no_columns(out):
    for i in range(out.shape[0]):
        for _ in range(out.shape[1]):
            fill(out[i], 1.0)


def by_early_return(out, v):
    for i in range(out.size):
        maybe(out, i, v[i])


def broken_off(out, v):
    for _ in range(1):
        for i in range(out.size):
            if v[i] < 0:
                break
            out[i] = 1


def rows_broken_off(out, v):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            if v[j] < 0:
                break
            out[i, j] = 1


def through_a_choice(out, v):
    for _ in range(1):
        w = chosen(out, v, len(v))
        w[0] = 1


def short_circuit(out, v):
    for i in range(out.size):
        if v[i] > 0 and maybe(out, i, v[i]) > 0:
            put(v, i, 1.0)


def scalar(out):
    out[()] = 1


def atomically(out):
    for i in range(out.size):
        pa.atomic_add(out, i, 1)


def untouched(out, v):
    for i in range(v.size):
        v[i] = out.size


ALL = {
    "OUT": [
        by_helper, by_rows, by_a_view, by_transposed_loops, by_ndrange, in_both_branches, before_a_skip,
        then_updated, read_in_its_iteration, scalar,
    ],
    "INOUT": [
        in_one_branch, behind_a_skip, read_before, neighbour, other_size, a_part, every_other, diagonal,
        one_column, perhaps_no_columns, by_early_return, broken_off, rows_broken_off, through_a_choice,
        short_circuit, atomically,
    ],
    "UNUSED": [untouched],
}  # fmt: skip
PLANES = (
    by_rows, by_a_view, by_transposed_loops, by_ndrange, diagonal, one_column, perhaps_no_columns, rows_broken_off,
)  # fmt: skip


CASES = [(function, direction) for direction, functions in ALL.items() for function in functions]


@pytest.mark.all_variants
@pytest.mark.parametrize(("function", "direction"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_inferred(function, direction):
    ndim = 2 if function in PLANES else 0 if function is scalar else 1
    params = [("out", ArrayType(float64, ndim, False)), ("v", ArrayType(float64, 1, True))]
    source = pa.kernel(function).source_text
    found = lower(source, params[: function.__code__.co_argcount], "cpu").directions
    assert found["out"] == direction
    written = function in (through_a_choice, short_circuit, untouched)
    assert (found.get("v") in ("OUT", "INOUT")) == written


def in_part(out, v):
    for i in range(1, v.size - 1):
        out[i] = v[i - 1] + v[i + 1]


def by_a_helper_in_part(out, v):
    for i in range(v.size // 2):
        put(out, i, v[i])


def added_up(out, v):
    for i in range(1, v.size):
        out[i] += v[i]


def atomically(out, v):
    for i in range(v.size):
        pa.atomic_add(out, 0, v[i])


def read_through_a_view(out, v):
    tail = out[1:]
    for i in range(v.size - 1):
        out[i] = tail[i]


def read_as_one_of_two(out, v):
    for i in range(v.size):
        out[i] = chosen(out, v, v.size)[0]


WRITE_ONLY = {in_part: True, by_a_helper_in_part: True, by_helper: True} | dict.fromkeys(
    (added_up, atomically, read_through_a_view, read_as_one_of_two), False
)


@pytest.mark.parametrize(("function", "write_only"), WRITE_ONLY.items(), ids=lambda x: getattr(x, "__name__", None))
def test_written_and_never_read(function, write_only):
    params = [("out", ArrayType(float64, 1, False)), ("v", ArrayType(float64, 1, True))]
    found = lower(pa.kernel(function).source_text, params, "cpu").write_only
    assert found == ({"out"} if write_only else set())
