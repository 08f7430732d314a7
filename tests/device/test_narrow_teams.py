"""Kernels whose short iterations are shared by a part of a warp: loops and branches that differ between iterations of
one warp, stores that the team reads again, nests, functions, chosen rows; next to plain Python."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import agree, on
from strategies import examples

import pyarray as pa
from pyarray.lang import emit_team_width
from pyarray.lang.markers import unordered


@pytest.fixture(autouse=True, scope="module")
def few_iterations_fill_the_device():
    """Otherwise thousands of iterations would be needed. It changes the text, and so has to precede compilation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(emit_team_width, "_MANY_BITS", 6)
        yield


def numbers(shape, dtype="float32"):
    """Small integers: every order of a sum gives the same."""
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 11 % 5 - 1).astype(dtype)


@pa.kernel
def totals(out, x):
    for i in range(out.shape[0]):
        total, top = x[0, 0] * 0, x[i, 0]
        for r in unordered(range(x.shape[1])):
            total = total + x[i, r]
        for r in unordered(range(x.shape[1])):
            top = max(top, x[i, r])
        out[i] = total * 8 + top


@pa.kernel
def rounds(out, x):
    """In as many rounds as the row's number says."""
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for k in range(i % 3):
            for r in unordered(range(x.shape[1])):
                total = total + x[i, r] * k
        if i % 2 == 1:
            for r in unordered(range(x.shape[1])):
                total = total + x[i, r]
            out[i] = total
        else:
            out[i] = total * 2


@pa.kernel
def triangle(out, x):
    """Rows of all lengths."""
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for r in unordered(range(i % x.shape[1])):
            total = total + x[i, r]
        out[i] = total


@pa.kernel
def chosen(out, x, ends):
    """An element says how long a row is."""
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for r in unordered(range(ends[i])):
            total = total + x[i, r]
        out[i] = total


@pa.kernel
def again(out, x):
    """What the threads of a team store, others of it load."""
    for i in range(out.shape[0]):
        for r in unordered(range(x.shape[1])):
            out[i, r] = x[i, r] * 2
        first = out[i, x.shape[1] - 1]
        while first > 0:
            first = first - 1
            for r in unordered(range(x.shape[1])):
                out[i, r] = out[i, r] + 1
            out[i, 0] = out[i, x.shape[1] - 1] + out[i, 0]


@pa.kernel
def kept(out, x):
    """A row that is cached, with stores that stay in registers."""
    for i in range(out.shape[0]):
        total = x[0, 0] * 0
        for r in unordered(range(x.shape[1])):
            out[i, r] = x[i, r] * 2 + 1
            total = total + out[i, r]
        for r in unordered(range(x.shape[1])):
            out[i, r] = out[i, r] + total
        for r in unordered(range(x.shape[1])):
            out[i, r] = out[i, r] - x[i, r]


@pa.func
def mixed(a, b):
    return a * 2 - b if a > b else b


@pa.kernel
def nested(out, x):
    for i in range(out.shape[0]):
        total = x[0, 0, 0] * 0
        for p in unordered(range(x.shape[1])):
            for q in unordered(range(x.shape[2])):
                total = total + mixed(x[i, p, q], x[0, p, q])
        out[i] = total


@pa.kernel
def products(out, a, b):
    """Few elements for each iteration, of loops that are longer than that."""
    for i, j in pa.ndrange(out.shape[0], out.shape[1]):
        total = a[0, 0] * 0
        for k in unordered(range(a.shape[1])):
            total = total + a[i, k] * b[j, k]
        out[i, j] = total


LENGTHS = st.one_of(st.integers(1, 70), st.sampled_from([1, 2, 3, 4, 8, 16, 17, 32, 33, 64, 128, 129, 256, 300]))


@pytest.mark.parametrize("checked", [False, True], ids=["release", "debug"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
@examples(12)
@given(rows=st.sampled_from([1, 5, 64, 300]), n=LENGTHS, step=st.sampled_from([1, 2]), extra=st.integers(0, 4))
def test_rows(device, checked, dtype, rows, n, step, extra):
    x = numbers((rows, step * n + extra), dtype)[:, : step * n : step]
    with pa.debug() if checked else contextlib.nullcontext():
        agree(totals, device, np.zeros(rows, dtype), x)
        agree(kept, device, np.zeros((rows, n + extra), dtype)[:, :n], x)
        agree(again, device, np.zeros((rows, n + extra), dtype)[:, :n], np.minimum(x, 2))


@pytest.mark.parametrize("checked", [False, True], ids=["release", "debug"])
@examples(12)
@given(rows=st.sampled_from([1, 7, 64, 200]), n=LENGTHS, data=st.data())
def test_iterations_that_differ(device, checked, rows, n, data):
    x = numbers((rows, n), "int32")
    ends = np.asarray(data.draw(st.lists(st.integers(0, n), min_size=rows, max_size=rows)), np.int64)
    with pa.debug() if checked else contextlib.nullcontext():
        agree(rounds, device, np.zeros(rows, np.int32), x)
        agree(triangle, device, np.zeros(rows, np.int32), x)
        agree(chosen, device, np.zeros(rows, np.int32), x, ends)


@examples(10)
@given(rows=st.sampled_from([1, 7, 64, 200]), p=st.integers(1, 9), q=st.integers(0, 9))
def test_nests(device, rows, p, q):
    agree(nested, device, np.zeros(rows, np.float32), numbers((rows, p, max(q, 1))))
    agree(products, device, np.zeros((rows, 16), np.float32), numbers((rows, 8 * q + 1)), numbers((16, 8 * q + 1)))


def test_teams_are_narrow(device):
    """Where iterations are short and many; a warp has those whose lengths differ."""
    if not pa.get_device(device).driver.grid:
        return
    kind = pa.get_device(device).kind
    for kernel, arrays, narrow in (
        (totals, (np.zeros(64, np.float32), numbers((64, 5))), True),
        (rounds, (np.zeros(64, np.int32), numbers((64, 5), "int32")), True),
        (triangle, (np.zeros(64, np.int32), numbers((64, 5), "int32")), False),
        (chosen, (np.zeros(64, np.int32), numbers((64, 5), "int32"), np.zeros(64, np.int64)), False),
    ):
        bound = kernel.bind(tuple(on(device, a) for a in arrays))
        assert ("--narrow" in kernel._lowered(bound, False, kind).text) == narrow
