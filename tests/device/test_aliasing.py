"""Arguments may overlap: kernels do what the same loops do in Python, one statement after the other.

Loops are free of races: each iteration keeps to elements that no other one writes, or there is one iteration.
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import on
from strategies import examples

from pyarray.array_convert import asnumpy
from pyarray.jit.kernel import func, kernel
from pyarray.jit.launch_state import debug


@kernel
def forwarded(a, b, out):
    for _ in range(1):
        a[0] = 1
        b[0] = 5
        out[0] = a[0] + b[0]


@kernel
def shifted(a, b):
    for _ in range(1):
        for i in range(b.size):
            b[i] = a[i] + 1


@kernel
def running(a, b, c):
    for _ in range(1):
        for i in range(min(a.size, b.size, c.size)):
            c[i] = a[i] + b[i]
            a[i] = c[i] * 2 - b[i]


@func
def swap(a, i, b, j):
    t = a[i]
    a[i] = b[j]
    b[j] = t
    return a[i] - b[j]


@kernel
def called(a, b, out):
    for _ in range(1):
        for i in range(min(a.size, b.size)):
            out[0] += swap(a, i, b, b.size - 1 - i)


@kernel
def sub_views(v, n: int):
    for _ in range(1):
        a, b = v[:n], v[1:]
        for i in range(min(a.size, b.size)):
            b[i] = a[i] + b[i]
        c = v[::-1]
        for i in range(c.size):
            c[i] += v[i]


@kernel
def summed(a, b):
    for _ in range(1):
        s = 0
        for i in range(a.size):
            s += a[i]
            b[0] = s
            s += b[b.size - 1]
        b[b.size - 1] = s


@kernel
def own_elements(a, b, c):
    for i in range(c.size):
        x = a[i]
        c[i] = x * 3
        b[i] = c[i] + a[i]
        c[i] = b[i] - x


@dataclasses.dataclass
class Pair:
    first: object
    second: object


@kernel
def of_structures(pair, out):
    for _ in range(1):
        for i in range(min(pair.first.size, pair.second.size)):
            pair.first[i] += 1
            pair.second[i] *= 2
            out[0] += pair.first[i]


def _same(device, k, views, size=40, numbers=()):
    """The kernel on overlapping views of one array, against its text as plain Python."""
    expected, got = np.arange(1, size + 1), np.arange(1, size + 1)
    there = on(device, got)
    with np.errstate(over="ignore"):
        k.__wrapped__(*views(expected), *numbers)
    k(*views(there), *numbers)
    np.testing.assert_array_equal(asnumpy(there), expected)
    checked = on(device, np.arange(1, size + 1))
    with debug():
        k(*views(checked), *numbers)
    np.testing.assert_array_equal(asnumpy(checked), expected)


def test_the_case_of_the_specification(device):
    out, data = on(device, np.zeros(1, np.int64)), on(device, np.zeros(8, np.int64))
    forwarded(data[2:6], data[2:4], out)
    assert asnumpy(out).tolist() == [10]
    forwarded(data[2:6], data[3:4], out)
    assert asnumpy(out).tolist() == [6]


def _cut(a, start, count, step):
    """A view of `count` elements at most; the same for NumPy's and ours."""
    return a[start:][::step][:count]


VIEWS = st.tuples(st.integers(0, 24), st.integers(1, 12), st.sampled_from([1, 1, 2, 3, -1, -2]))


@given(st.data(), st.sampled_from([shifted, running, called, summed]))
@examples(15)
def test_overlapping_views(data, k):
    cuts = [data.draw(VIEWS) for _ in range(len(k.parameters))]
    if k is shifted:  # the longer one is read
        cuts[0] = (*cuts[0][:1], 40, cuts[0][2])
        cuts[1] = (
            cuts[1][0],
            min(cuts[1][1], (40 - cuts[0][0] + abs(cuts[0][2]) - 1) // abs(cuts[0][2])),
            cuts[1][2],
        )
    _same("cpu", k, lambda a: [_cut(a, *cut) for cut in cuts])


@given(st.integers(0, 12))
@examples(13)
def test_views_made_in_the_kernel(n):
    _same("cpu", sub_views, lambda a: [a[3:15]], numbers=(n,))


@given(st.integers(0, 4), st.integers(0, 4))
@examples(20)
def test_fields_of_a_structure(first, second):
    _same("cpu", of_structures, lambda a: [Pair(a[first : first + 8], a[second : second + 8]), a[20:21]])


@pytest.mark.parametrize("order", [(0, 0, 0), (0, 1, 1), (0, 0, 1), (0, 1, 0), (1, 0, 0)])
@pytest.mark.parametrize("step", [1, 2])
def test_one_array_several_times(device, order, step):
    """Many iterations on many threads; each keeps to its own elements."""
    size = 100_000
    blocks = [slice(k * size, (k + 1) * size, step) for k in range(3)]
    _same(device, own_elements, lambda a: [a[blocks[k]] for k in order], 3 * size)


@pytest.mark.parametrize("k", [shifted, running, summed], ids=lambda k: k.__name__)
@pytest.mark.parametrize("shift", [0, 1, 3, 8, 33])
def test_long_views(device, k, shift):
    """Long enough for vectors: a compiler that took them for apart would use them here."""
    _same(
        device,
        k,
        lambda a: [a[:1000], a[shift : shift + 1000], a[2 * shift : 2 * shift + 1000]][: len(k.parameters)],
        1200,
    )


@kernel
def transposed(m, t):
    for _ in range(1):
        for i in range(m.shape[0]):
            for j in range(m.shape[1]):
                m[i, j] += t[i, j]


def test_a_matrix_and_its_transpose(device):
    expected, got = np.arange(36).reshape(6, 6), np.arange(36).reshape(6, 6)
    transposed.__wrapped__(expected, expected.T)
    there = on(device, got)
    transposed(there, there.T)
    np.testing.assert_array_equal(asnumpy(there), expected)


# ---- inner loops that store: where nothing overlaps they run without looking, and else as they stand


@kernel
def accumulated(a, b, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


PLACES = [(0, 36, 72), (0, 36, 0), (0, 36, 36), (0, 36, 35), (0, 36, 30), (0, 0, 36), (40, 5, 4)]


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("order", ["rows", "columns", "backwards"])
def test_products_in_overlapping_memory(device, places, order):
    """One row of results, so that one iteration does all; shapes and strides of several kinds."""

    def views(memory):
        result = []
        for place in places:
            m = memory[place : place + 36].reshape(6, 6)
            m = {"rows": m, "columns": m.T, "backwards": m[::-1, ::-1]}[order]
            result.append(m)
        a, b, c = result
        return a[:1], b, c[:1]

    expected = np.arange(120.0) % 7
    memory = on(device, expected.copy())
    accumulated.__wrapped__(*views(expected))
    accumulated(*views(memory))
    np.testing.assert_array_equal(asnumpy(memory), expected)


def test_the_ways_of_an_inner_loop(device):
    accumulated(*(on(device, np.ones((3, 3))) for _ in range(3)))
    if device == "cpu":
        assert "__restrict__" in accumulated.source(device)
        own_elements(*(on(device, np.ones(3)) for _ in range(3)))
        assert "__restrict__" not in own_elements.source(device)


@kernel
def empty_or_not(a, b, c):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += 1
            if a.size and c.size:
                b[i, j] += a[i, 0] + c[i, 0]


def test_empty_arguments_are_apart(device):
    data = on(device, np.zeros((4, 4)))
    empty_or_not(data[:0], data, data[:, :0])
    empty_or_not(data, data, data[::-1, ::-1][:0])
    assert (asnumpy(data) == 2).all()
