"""Rows that a block keeps as a whole: the kernel for them, and the one for all rows beside it."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from kernel_tools import launch, on
from test_kept_rows import made, numbers, softmax
from test_row_kernels import close

import pyarray as pa
from pyarray.lang.markers import unordered


@pytest.fixture(params=["streamed", "cached"])
def cache(device, request):
    """Every array is too large for a GPU's cache, so that guards decide; or none is."""
    driver = pa.get_device(device).driver
    gpu = driver._gpu if driver.grid else SimpleNamespace(l2_bytes=0)
    kept, gpu.l2_bytes = gpu.l2_bytes, 0 if request.param == "streamed" else 1 << 60
    yield
    gpu.l2_bytes = kept


@pa.kernel
def norm(out, x, w):
    for i, j in pa.ndrange(out.shape[0], out.shape[1]):
        s = x[0, 0, 0] * 0
        for r in unordered(range(out.shape[2])):
            s = s + x[i, j, r]
        v = x[0, 0, 0] * 0
        for r in unordered(range(out.shape[2])):
            d = x[i, j, r] - s
            v = max(v, d * d)
        for r in unordered(range(out.shape[2])):
            out[i, j, r] = (x[i, j, r] - s) * w[r] + v


def check_norm(device, out, x, w):
    s = x.sum(2, keepdims=True, dtype=x.dtype)
    v = ((x - s) ** 2).max(2, keepdims=True, initial=0)
    np.testing.assert_array_equal(launch(norm, device, out, x, w)[0], (x - s) * w + v)


# what a block keeps of a row: 128 bytes for each of its threads, of which there are 64 to 1024
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize(("threads", "more"), [
    (32, -8), (32, -3), (32, 0), (32, 8), (64, -4), (64, 0), (64, 8), (128, -8), (128, 0), (128, 1), (128, 4),
    (128, 8), (256, -8), (256, -3), (256, 0), (256, 4), (256, 8), (512, -10), (512, -8), (512, 0), (512, 4),
    (1024, -9), (1024, -8), (1024, 0), (1024, 1),
])  # fmt: skip
def test_lengths(device, cache, dtype, threads, more):
    size = threads * min(64, 128 // np.dtype(dtype).itemsize) + more
    for shape in ((1, 1, size), (2, 2, size), (0, 1, size)):
        x, w = numbers(shape, dtype), numbers(shape[2:], dtype)
        check_norm(device, np.zeros(shape, dtype), x, w)


@pytest.mark.parametrize("gap", [1, 4])
@pytest.mark.parametrize("start", [0, 1, 4])
def test_layouts(device, cache, gap, start):
    """Rows that are not aligned, and others that are though they lie apart."""
    x = numbers((3, 2, 5000 + gap + start))[:, :, start : 5000 + start]
    w, out = numbers(5004), np.zeros(x.shape, np.float32)
    check_norm(device, out, x, w[4:])
    check_norm(device, out, x, w[3:-1])
    check_norm(device, x, np.ascontiguousarray(x), w[:5000])
    check_norm(device, out, x[::-1, ::-1], w[::-1][:5000])
    check_norm(device, out, np.broadcast_to(x[1, 0], x.shape), w[:5000])
    check_norm(device, out, x[:, :, ::-1], w[:5000])
    check_norm(device, x.transpose(1, 0, 2), out.transpose(1, 0, 2), w[:5000])


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 4100), (600, 4100), (3, 8192)])
def test_what_is_stored_and_loaded_again(device, cache, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    want = np.exp(x - x.max(1, keepdims=True))
    want /= want.sum(1, keepdims=True)
    out, there = on(device, np.zeros(shape, np.float32)), on(device, x.copy())
    softmax(out, there)
    close(pa.asnumpy(out), want, 2e-5)
    softmax(there, there)
    close(pa.asnumpy(there), want, 2e-5)


def test_elements_in_several_registers(device, cache):
    for size in (4096, 4092, 2052, 2048, 8192):
        x = numbers((3, size))
        want = (x * 2 + 1 + (x * 2 + 1).sum(1, keepdims=True)) * 2 - x
        np.testing.assert_array_equal(launch(made, device, np.zeros(x.shape, np.float32), x)[0], want)


@pa.kernel
def read_between(out, x, place: int):
    for i in range(out.shape[0]):
        s = x[0, 0] * 0
        for r in unordered(range(out.shape[1])):
            s = s + x[i, r]
        for r in unordered(range(out.shape[1])):
            out[i, r] = x[i, r] + s
        first = out[i, place]
        for r in unordered(range(out.shape[1])):
            out[i, r] = x[i, r] - first
        out[i, place] = 100


def test_stores_that_other_threads_load(device, cache):
    x = numbers((3, 8192))
    for place in (0, 1023, 8191):
        want = x - (x[:, place, None] + x.sum(1, keepdims=True))
        want[:, place] = 100
        np.testing.assert_array_equal(launch(read_between, device, np.zeros_like(x), x, place)[0], want)


SPECIAL = np.array(
    [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, 3e-39, 1e-31, 3.4e38, -3.4e38, 1 / 3, 2 - 2**-23],
    np.float32,
)


@pa.func
def over(a, b):
    return a / b


@pa.kernel
def divided(out, tops, x, w, by, how: pa.constexpr):
    for i in range(out.shape[0]):
        d = by[i]
        top = pa.float32(-math.inf)
        for j in unordered(range(out.shape[1])):
            top = max(top, pa.float32(x[i, j]))
        total = pa.float32(0)
        for j in unordered(range(out.shape[1])):
            wide, more = pa.float32(x[i, j]), pa.float32(w[j])
            if how == "function":
                quotient = over(wide, d)
            else:
                quotient = wide * pa.float32(2) / d if how == "operator" else wide / d if more > 0 else wide
            total = total + more
            out[i, j] = quotient + more
        tops[i, 0], tops[i, 1] = top, total


@pytest.mark.slow
@pytest.mark.parametrize("how", ["function", "operator", "condition"])
@pytest.mark.parametrize("length", [1020, 1024, 1028, 2048])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_quotients_have_the_bits_of_divisions(device, cache, how, length, dtype):
    """Of all pairs of special values, and of values of all sizes, where few vectors need no division."""
    by = np.concatenate([SPECIAL, np.float32([3, -7, 1e-18, 1e-19, 1e18, 1e19, 1.1754944e-38, 5e-5])])
    rng = np.random.default_rng(length)
    x = np.resize(SPECIAL, (len(by), length))
    x[:, 300:] = rng.standard_normal((len(by), length - 300))
    x[:, 600:800] *= np.float32(2) ** rng.integers(-120, 120, (len(by), 200))
    x[:, 800:900] = 0
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
        w = np.zeros(length, np.float32)
        w[::7] = 1
        wide = x.astype(np.float32) * np.float32(2 if how == "operator" else 1)
        quotient = wide / by[:, None]
        want = (np.where(w > 0, quotient, wide) if how == "condition" else quotient) + w
    out, tops = launch(divided, device, np.zeros_like(want), np.zeros((len(by), 2), np.float32), x, w, by, how)[:2]
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(np.signbit(out[want == 0]), np.signbit(want[want == 0]))
    np.testing.assert_array_equal(tops, [[np.nan, w.sum()]] * len(by))
