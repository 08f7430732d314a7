"""Views made inside kernels: what NumPy's slices give, for any bounds, layout and nesting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import agree, launch, on
from strategies import examples

from pyarray.array import ndarray
from pyarray.array_convert import asnumpy
from pyarray.buffer_view import BufferView
from pyarray.dtypes import float64, int64
from pyarray.errors import BoundsError, CompileError
from pyarray.jit.kernel import func, kernel
from pyarray.jit.launch_state import debug

ROOM = 24


@func
def note(w, out, row):
    """Size, step and elements of a view."""
    out[row, 0] = w.size + 100 * len(w) + 10_000 * w.shape[0] + 1_000_000 * w.ndim
    out[row, 1] = w.strides[0] if w.size > 1 else 0
    for i in range(w.size):
        out[row, 2 + i] = w[i]


@kernel
def every_slice(v, out, a: int, b: int, c: int):
    for i in range(1):
        note(v[:], out, i)
        note(v[a:], out, 1)
        note(v[:b], out, 2)
        note(v[a:b], out, 3)
        note(v[::c], out, 4)
        note(v[a::c], out, 5)
        note(v[:b:c], out, 6)
        note(v[a:b:c], out, 7)
        note(v[2:-3], out, 8)
        note(v[-4::-1], out, 9)
        note(v[a:b:1], out, 10)
        note(v[a:b][c:], out, 11)
        note(v[::c][a:b], out, 12)
        note(v[::-1][::c][:b], out, 13)


BOUND = st.one_of(st.integers(-30, 30), st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)]))
STEP = st.one_of(st.integers(-6, 6).filter(bool), st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)]))


@given(BOUND, BOUND, STEP, st.integers(0, 20), st.sampled_from([1, 2, -1, -3]))
@examples(30)
def test_slices_of_one_axis(a, b, c, size, step):
    v = np.arange(100)[10:][::step][:size] if step > 0 else np.arange(100)[::step][:size]
    expected = np.zeros((14, ROOM), np.int64)
    views = [
        v[:], v[a:], v[:b], v[a:b], v[::c], v[a::c], v[:b:c], v[a:b:c], v[2:-3], v[-4::-1], v[a:b:1],
        v[a:b][c:], v[::c][a:b], v[::-1][::c][:b],
    ]  # fmt: skip
    for row, w in zip(expected, views, strict=True):
        row[:2] = w.size * 10_101 + 1_000_000, w.strides[0] if w.size > 1 else 0
        row[2 : 2 + w.size] = w
    for checked in (False, True):
        with debug(checked):
            out = launch(every_slice, "cpu", v, np.zeros_like(expected), a, b, c)[1]
        np.testing.assert_array_equal(out, expected)


@func
def note_plane(w, out, row):
    out[row, 0] = w.shape[0] * 100 + w.shape[1]
    s = 0
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            s = s * 3 + w[i, j]
    out[row, 1] = s


@kernel
def planes(m, out, a: int, b: int, c: int):
    for _ in range(1):
        note_plane(m[1], out, 0)
        note_plane(m[:, 0], out, 1)
        note_plane(m[..., -1], out, 2)
        note_plane(m[a:b, 1], out, 3)
        note_plane(m[-1, ::c, a:], out, 4)
        note_plane(m[:b, -2, ::c], out, 5)
        note_plane(m[a:b, :, 1:][..., 0], out, 6)
        note_plane(m[::c][:, 1, a:b], out, 7)
        out[8, 0] = m[a:b, ::c, 1:].size
        out[8, 1] = m[1, 1][a:b].size + m[1, 1][c:].ndim


@given(st.integers(-7, 7), st.integers(-7, 7), st.integers(-3, 3).filter(bool), st.permutations(range(3)))
@examples(10)
def test_slices_of_several_axes(a, b, c, axes):
    m = np.arange(4 * 3 * 5).reshape(4, 3, 5).transpose(axes)
    parts = [
        m[1], m[:, 0], m[..., -1], m[a:b, 1], m[-1, ::c, a:], m[:b, -2, ::c], m[a:b, :, 1:][..., 0],
        m[::c][:, 1, a:b],
    ]  # fmt: skip
    expected = np.zeros((9, 2), np.int64)
    with np.errstate(over="ignore"):
        for row, w in zip(expected, parts, strict=False):
            row[0] = w.shape[0] * 100 + w.shape[1]
            total = np.int64(0)
            for x in w.ravel():
                total = total * 3 + x
            row[1] = total
    expected[8] = m[a:b, ::c, 1:].size, m[1, 1][a:b].size + 1
    for checked in (False, True):
        with debug(checked):
            out = launch(planes, "cpu", m, np.zeros_like(expected), a, b, c)[1]
        np.testing.assert_array_equal(out, expected)


@kernel
def nested(v: BufferView[int64], out, o: int, n: int):
    for i in range(out.size):
        a = v.subview(o, n)
        b = BufferView(a, 1, n - 1)
        c = b.subview(offset=1, size=n - 2)[1:]
        out[i] = a[0] * 10**6 + b[0] * 10**4 + c[0] * 100 + c.size


@given(st.integers(-3, 12), st.integers(-2, 12))
@examples(60)
def test_nested_sub_views(o, n):
    v, out = np.arange(10, 20), np.zeros(2, np.int64)
    outside = o < 0 or n < 0 or o + n > 8
    with debug():
        if not outside and n >= 4:
            nested(on("cpu", v)[1:9], out, o, n)
            a = v[1:9][o : o + n]
            assert out.tolist() == [a[0] * 10**6 + a[1] * 10**4 + a[3] * 100 + n - 3] * 2
            return
        with pytest.raises(BoundsError) as caught:
            nested(on("cpu", v)[1:9], out, o, n)
    if outside:
        assert (caught.value.index, caught.value.size, caught.value.extent) == (o, n, 8)


@kernel
def negatives(v, m, out):
    for i in range(1):
        out[0] = v[-1] + v[-3]
        out[1] = m[-1, i] + m[i, -2] + m[-2][-1]
        v[-2] = 7
        out[2] = v[-2:][0] + v[: -(1 + 1)].size


def test_constant_negatives_count_from_the_end(device):
    agree(negatives, device, np.arange(5), np.arange(12).reshape(3, 4), np.zeros(3, np.int64))
    text = negatives.source()
    assert "< 0" not in text.partition("body0")[2]  # known when compiled


@kernel
def at(v, m, out, k: int):
    for i in range(out.size):
        out[i] = v[k] + m[k, -1] + m[i + k][k]


wrapping = kernel(at, wraparound=True)


@pytest.mark.parametrize("k", [-4, -3, -1, 0, 1, 2, 3])
def test_negatives_at_run_time(device, k):
    v, m = np.arange(3), np.arange(9).reshape(3, 3)
    args = on(device, v), on(device, m), on(device, np.zeros(1, np.int64))
    inside = -3 <= k < 3
    for made, good in ((wrapping, inside), (at, 0 <= k < 3)):
        with debug():
            if good:
                made(*args, k)
                assert asnumpy(args[2])[0] == v[k] + m[k, -1] + m[k][k]
            else:
                with pytest.raises(BoundsError) as caught:
                    made(*args, k)
                assert caught.value.argument == "v"
    if inside:  # without checks, too
        wrapping(*args, k)
        assert asnumpy(args[2])[0] == v[k] + m[k, -1] + m[k][k]


@kernel
def values_of(v, out):
    for x in v:
        for _ in range(1):
            out[x] += x
    for _ in range(1):
        for x in v[::-2]:
            out[0] = out[0] * 10 + x
    for _ in range(1):
        for i in range(len(v)):
            out[i] += len(v)


@pytest.mark.parametrize("size", [0, 1, 4, 7])
def test_for_over_values_and_len(device, size):
    agree(values_of, device, np.arange(size), np.zeros(8, np.int64))


@kernel
def strict(v: BufferView[float64], w: ndarray[float64, 1]):
    for i in range(v.size):
        v[i] += w[i]


def test_views_and_arrays_are_interchangeable(device):
    """An array, a view that covers it, a row and a NumPy array: one variant, whichever came first."""
    for first in range(3):
        made = kernel(strict)
        data = on(device, np.arange(8.0))
        forms = [data, data[:], on(device, np.arange(8.0).reshape(1, 8))[0]]
        for form in forms[first:] + forms[:first]:
            made(form, on(device, np.ones(8)))
        assert asnumpy(data).tolist() == [i + 2.0 for i in range(8)]
        assert made.cache_info()["variants"] == 1
        made(data, on(device, np.ones(16))[::2])
        assert made.cache_info()["variants"] == 2


def test_what_a_parameter_refuses(device):
    data = on(device, np.arange(8.0))
    with pytest.raises(TypeError, match=r"'v' is a BufferView, .* annotate it pa.ndarray\[pa.float64, 1\]"):
        strict(data[::2], data)
    for wrong in (on(device, np.arange(8)), on(device, np.ones((2, 4)))):
        with pytest.raises(TypeError, match="'v'"):
            strict(wrong, data)


@kernel
def beyond(v):
    for i in range(v.size):
        v[i] = v[2**70]


def test_an_index_that_no_array_has():
    with pytest.raises(CompileError, match="out of range for int64"):
        beyond(np.zeros(3))


@kernel
def sizes(m, out):
    for i in range(1):
        out[i] = m.size
        out[1] = m.shape[0] * m.shape[1]
        out[2] = m[2**31 - 1, 2**31 - 1]
        out[3] = m[2**31 - 5 :, 1:].size
        out[4] = m[-1, -(2**20) :].size + m.strides[0] + m.strides[1]


def test_sizes_beyond_32_bits(device):
    """No memory stands behind them: all elements are one."""
    one = on(device, np.full((1, 1), 3, np.int8))
    wide = one._view(0, (2**31, 2**31), (0, 0))
    out = on(device, np.zeros(5, np.int64))
    for checked in (False, True):
        with debug(checked):
            sizes(wide, out)
        assert asnumpy(out).tolist() == [2**62, 2**62, 3, 5 * (2**31 - 1), 2**20]


@kernel
def far(v, out, n: int):
    for i in range(out.size):
        v[n + i] = 7
        w = v[n:]
        out[i] = w.size  # a number of int8 would take it for one of its own
        out[i] += w[i] + v[::-1][v.size - 1 - n - i]


def test_addresses_beyond_32_bits(device):
    if device != "cpu":
        pytest.skip("takes address space, not memory: the host's pages come with the first touch")
    size = 3 * 2**31
    v, out = np.zeros(size, np.int8), np.zeros(2, np.int64)
    n = 2**32 + 5
    for checked in (False, True):
        with debug(checked):
            far(v, out, n)
        assert out.tolist() == [size - n + 14] * 2
        assert v[n - 1 : n + 3].tolist() == [0, 7, 7, 0]
    with debug(), pytest.raises(BoundsError) as caught:
        far(v, out, size - 1)
    assert (caught.value.index, caught.value.extent, caught.value.tid) == (size, size, 1)
