"""Kernels of rows: an iteration whose unordered loops reduce and store, in one kernel."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import agree, launch, on
from strategies import examples

import pyarray as pa
from pyarray.lang.markers import unordered

WIDTHS = [0, 1, 2, 31, 32, 33, 64, 257, 1000, 1024, 2048, 3000, 5000, 8192, 17000]
DTYPES = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-12}


@pa.kernel
def softmax(out, x):
    for i in range(out.shape[0]):
        m = pa.float32(-math.inf)
        for r in unordered(range(x.shape[1])):
            m = max(m, x[i, r])
        s = pa.float64(0)
        for r in unordered(range(x.shape[1])):
            s = s + pa.exp(x[i, r] - m)
        for r in unordered(range(x.shape[1])):
            out[i, r] = pa.exp(x[i, r] - m) / s


@pa.kernel
def layer_norm(out, mean, scale, x, w):
    for i in range(out.shape[0]):
        s = pa.float64(0)
        for r in unordered(range(x.shape[1])):
            s = s + x[i, r]
        mean[i] = s / x.shape[1]
        v = pa.float64(0)
        for r in unordered(range(x.shape[1])):
            d = x[i, r] - mean[i]
            v = v + d * d
        scale[i] = 1 / pa.sqrt(v / x.shape[1] + 1e-5)
        for r in unordered(range(x.shape[1])):
            out[i, r] = (x[i, r] - mean[i]) * scale[i] * w[r]


@st.composite
def rows(draw, dtype, width=None):
    """A matrix in any layout: dense, with gaps, reversed, turned, broadcast, off alignment."""
    n = draw(st.sampled_from(WIDTHS)) if width is None else width
    m = draw(st.sampled_from([0, 1, 2, 5] if n > 1000 else [0, 1, 3, 40]))
    values = np.random.default_rng(n + m).standard_normal((m, 2 * n + 1)).astype("float32").astype(dtype)
    layout = draw(st.sampled_from(["dense", "gaps", "reversed", "turned", "broadcast", "off", "rows"]))
    if layout == "dense":
        return np.ascontiguousarray(values[:, :n])
    if layout == "turned":
        return np.ascontiguousarray(values[:, :n].T).T
    if layout == "broadcast":
        return np.broadcast_to(values[:1, :n], (min(m, 1) * 3, n))
    step = {"gaps": slice(0, 2 * n, 2), "off": slice(1, n + 1), "rows": slice(0, n)}
    return values[:, step.get(layout, slice(None, n, -1))]


def close(got, want, tolerance):
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)


def empty_rows(shape, dtype):
    """Memory that the test writes, with gaps between rows."""
    return np.zeros((shape[0], shape[1] + 3), dtype)[:, : shape[1]]


@pytest.mark.parametrize("checked", [False, True], ids=["release", "debug"])
@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
@examples(4)
def test_softmax(device, dtype, checked, data):
    kind = np.dtype(getattr(pa, dtype))
    x = data.draw(rows(kind))
    wide = x.astype(np.float64)
    want = np.exp(wide - wide.max(1, keepdims=True, initial=-np.inf))
    want /= want.sum(1, keepdims=True)
    out = data.draw(st.sampled_from([np.zeros(x.shape, kind), empty_rows(x.shape, kind)]))
    with pa.debug() if checked else contextlib.nullcontext():
        close(launch(softmax, device, out, x)[0], want, DTYPES[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
@examples(3)
def test_layer_norm(device, dtype, data):
    kind = np.dtype(getattr(pa, dtype))
    x = data.draw(rows(kind, data.draw(st.sampled_from(WIDTHS[1:]))))
    w = np.linspace(-1, 2, x.shape[1]).astype(kind)
    wide = x.astype(np.float64)
    mean, var = wide.mean(1, keepdims=True), wide.var(1, keepdims=True)
    want = (wide - mean) / np.sqrt(var + 1e-5) * w.astype(np.float64)
    stats = np.zeros((2, x.shape[0]))
    got = launch(layer_norm, device, np.zeros(x.shape, kind), stats[0], stats[1], x, w)
    close(got[0], want, 4 * DTYPES[dtype])
    close(got[1], mean[:, 0], 1e-6)


def test_in_place(device):
    x = np.random.default_rng(0).standard_normal((9, 3000)).astype(np.float32)
    there = on(device, x.copy())
    softmax(there, there)
    want = np.exp(x - x.max(1, keepdims=True))
    close(pa.asnumpy(there), want / want.sum(1, keepdims=True), 2e-5)


@pa.kernel
def running(out, total, x, low: int, high: int):
    for i in range(out.shape[0]):
        first = x[i, low]
        s = x[i, 0] * 0
        for r in unordered(range(low, high)):
            out[i, r] = x[i, r] * 3 + first
            s = s + x[i, r]
        total[i] = s
        for r in unordered(range(low, high)):
            x[i, r] = out[i, high - 1 - (r - low)] - s


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float32", "complex64"])
@pytest.mark.parametrize("width", [2, 33, 700, 5000])
def test_stores_beside_a_sum_and_between_loops(device, dtype, width):
    x = (np.arange(4 * width).reshape(4, width) * 7 % 19).astype(dtype)
    agree(running, device, np.zeros((4, width), dtype), np.zeros(4, dtype), x, 1, width)
    agree(running, device, np.zeros((4, width), dtype), np.zeros(4, dtype), x, width - 1, width - 1)


@pa.kernel
def nested(out, x):
    for i in range(out.shape[0]):
        for p in unordered(range(out.shape[1])):
            for q in unordered(range(out.shape[2])):
                out[i, p, q] = x[i, q, p] + p
        for p in unordered(range(out.shape[1])):
            for q in range(1, out.shape[2]):
                out[i, p, q] += out[i, p, q - 1]
        top = out[i, 0, 0]
        for p in range(out.shape[1]):
            for q in unordered(range(out.shape[2])):
                top = max(top, out[i, p, q])
            out[i, p, 0] = top


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 4, 70), (3, 300, 5), (70, 2, 3), (2, 0, 3)])
def test_several_inner_axes(device, shape):
    x = np.arange(math.prod(shape)).reshape(shape[0], shape[2], shape[1]) % 23
    if math.prod(shape):
        agree(nested, device, np.zeros(shape, np.int64), x)


@pa.kernel
def planes(out, total, most, x, w, low: int):
    for i in range(out.shape[0]):
        s, top = x[i, 0, 0] * 0, x[i, 0, 0]
        for p in unordered(range(low, x.shape[1])):
            for q in unordered(range(x.shape[2])):
                s = s + x[i, p, q]
                top = max(top, x[i, p, q])
        total[i], most[i] = s, top
        for p in unordered(range(low, x.shape[1])):
            for q in unordered(range(x.shape[2])):
                out[i, p, q] = x[i, p, q] * w[p] - s


@pytest.mark.parametrize("checked", [False, True], ids=["release", "debug"])
@pytest.mark.parametrize(("shape", "low"), [((3, 4, 70), 1), ((2, 70, 5), 0), ((40, 9, 9), 3), ((2, 3, 4), 3)])
def test_nests_are_one_loop(device, checked, shape, low):
    x = (np.arange(math.prod(shape)).reshape(shape) * 7 % 23 - 11).astype(np.int64)
    w = np.arange(shape[1])
    with pa.debug() if checked else contextlib.nullcontext():
        agree(planes, device, np.zeros(shape, np.int64), *np.zeros((2, shape[0]), np.int64), x, w, low)


@pa.func
def put(v, j, x):
    v[j] = x


@pa.kernel
def scattered(out, counts, x):
    for i in range(out.shape[0]):
        row = out[i]
        for r in unordered(range(x.shape[1])):
            put(row, r, x[i, r] * 2)
            pa.atomic_add(counts, (i, x[i, r] % 5), 1)
        for r in unordered(range(x.shape[1])):
            if row[r] > 10:
                row[r] = counts[i, x[i, r] % 5]


@pytest.mark.parametrize("width", [1, 40, 3000])
def test_functions_and_atomics(device, width):
    x = (np.arange(3 * width) * 7 % 31).reshape(3, width)
    agree(scattered, device, np.zeros((3, width), np.int64), np.zeros((3, 5), np.int64), x)


@pa.kernel
def picked(out, loss, x, label):
    for i in range(out.shape[0]):
        s = pa.float64(0)
        for r in unordered(range(x.shape[1])):
            s = s + pa.exp(x[i, r])
        loss[i] = pa.log(s) - x[i, label[i]]
        for r in unordered(range(x.shape[1])):
            out[i, r] = pa.exp(x[i, r]) / s - (1 if r == label[i] else 0)


@pytest.mark.parametrize("width", [5, 2000])
def test_failures_of_shared_loops_are_recorded(device, width):
    x = np.linspace(-1, 1, 4 * width).reshape(4, width)
    label = np.array([0, 1, width + 7, 2])
    there = [on(device, a) for a in (np.zeros((4, width)), np.zeros(4), x, label)]
    with pa.debug(), pytest.raises(pa.BoundsError) as found:
        picked(*there)
    assert (found.value.tid, found.value.argument, found.value.index) == (2, "x", width + 7)
    plain = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    want = plain.copy()
    others = [0, 1, 3]
    want[others, [0, 1, 2]] -= 1
    close(pa.asnumpy(there[0])[others], want[others], 1e-12)
    narrow = on(device, np.zeros((4, width - 2)))
    with pa.debug(), pytest.raises(pa.BoundsError) as found:
        softmax(narrow, there[2])
    assert (found.value.tid, found.value.argument, found.value.index) == (0, "out", width - 2)
    close(pa.asnumpy(narrow), plain[:, :-2], 1e-6)


@pa.kernel
def normalized(mean, out, scaled, x):
    for i in range(out.shape[0]):
        s = pa.float32(0)
        for r in unordered(range(x.shape[1])):
            s = s + x[i, r]
        mean[i, 0] = s / x.shape[1]
        q = pa.float32(0)
        for r in unordered(range(out.shape[1])):
            out[i, r] = x[i, r] - mean[i, 0]
            q = q + x[i, r] * x[i, r]
        for r in unordered(range(x.shape[1])):
            scaled[i, r] = x[i, r] / (1 + q) + out[i, r]


@pytest.mark.parametrize("width", [32, 500, 4096, 9000])
def test_a_row_is_read_again_after_a_store_that_may_change_it(device, width):
    x = np.random.default_rng(width).integers(-4, 5, (3, width)).astype(np.float32)
    zeros = [np.zeros((3, width), np.float32) for _ in range(3)]
    got = launch(normalized, device, *zeros, x)
    s, q = x.sum(1, keepdims=True), (x * x).sum(1, keepdims=True)
    close(got[0][:, :1], s / width, 1e-5)
    close(got[1], x - s / width, 1e-5)
    close(got[2], x / (1 + q) + x - s / width, 1e-5)
    changed = x.copy()
    changed[:, :1] = s / width  # the mean becomes an element of the row
    q = (changed * changed).sum(1, keepdims=True)
    out = on(device, zeros[0].copy())
    scaled = on(device, zeros[0].copy())
    there = on(device, x.copy())
    normalized(there, out, scaled, there)
    close(pa.asnumpy(there), changed, 1e-5)
    close(pa.asnumpy(out), changed - s / width, 1e-5)
    close(pa.asnumpy(scaled), changed / (1 + q) + changed - s / width, 1e-5)


@pa.kernel
def twice(out, x):
    for i in range(out.shape[0]):
        s = x[i, 0] * 0
        for r in unordered(range(x.shape[1])):
            s = s + x[i, r]
        for r in unordered(range(x.shape[1])):
            out[i, r] = x[i, r] + s
            y = out[i, r]
            out[i, r] = y * 2


def test_what_an_iteration_stores_it_reads(device):
    x = np.arange(3 * 64).reshape(3, 64)
    agree(twice, device, np.zeros((3, 64), np.int64), x)
