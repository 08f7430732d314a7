"""Layouts with schedules of their own on a grid: vectors, tiles, transposed operands, teams of threads. Each
against NumPy, with checks and without."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray._core import clear_plans
from pyarray.kernels.matmul import gemm, gemm_bf16x6, gemm_key, split_k, thresholds

DTYPES = ("int8", "float32", "complex128")


def drawn(shape, dtype="float32"):
    return (np.random.default_rng(7).standard_normal(shape) * 5).astype(dtype)


@pytest.fixture(params=[False, True], ids=["release", "debug"], autouse=True)
def mode(request):
    with pa.debug(request.param):
        yield


def same(got, want, rtol=1e-5):
    """Sums of products that cancel have the error of the products, which are up to some hundreds."""
    np.testing.assert_allclose(pa.asnumpy(got), want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_misaligned_and_turned(device, dtype):
    x = drawn((65, 90), dtype)
    a = pa.asarray(x, device=device)
    flat, whole = a.reshape(-1), x.ravel()
    same(flat[1:] + flat[:-1], whole[1:] + whole[:-1])
    same(a.T.copy(), x.T)
    same(a[::-1, 1::2].T.copy(), x[::-1, 1::2].T)
    same(a.T + pa.ones((90, 65), dtype=dtype, device=device), x.T + np.ones(1, dtype))
    out = pa.zeros((90, 65), dtype=dtype, device=device)
    pa.add(a, a, out=out.T)
    same(out, (x + x).T)


def test_axes_around_the_tile(device):
    x = drawn((3, 40, 50), "float64")
    a = pa.asarray(x, device=device)
    same(pa.permute_dims(a, (0, 2, 1)) + 1, x.transpose(0, 2, 1) + 1)
    same(pa.permute_dims(a, (2, 1, 0)) + 1, x.transpose(2, 1, 0) + 1)
    same(a[:, 1:-1, :-1] * a[:, 2:, 1:], x[:, 1:-1, :-1] * x[:, 2:, 1:])
    same(a[:, :, :3] + a[:, :, 1:4], x[:, :, :3] + x[:, :, 1:4])  # too narrow for tiles


@pa.kernel
def turned_sum(x, o):
    for i, j in pa.ndrange(o.shape[0], o.shape[1]):
        t = x[j, i] * 2
        if t > 0:
            t = t + x[j, i]
        o[i, j] = t + o[i, j]


@pa.kernel
def turned_out(x, o):
    for i, j in pa.ndrange(x.shape[0], x.shape[1]):
        o[j, i] = x[i, j]


@pa.kernel
def scale(v, f, n):
    for i in range(1, n):
        v[i] = v[i] * f


def test_user_kernels(device):
    x = drawn((70, 130))
    a, o = pa.asarray(x, device=device), pa.ones((130, 70), dtype="float32", device=device)
    turned_sum(a, o)
    twice = x.T * 2
    same(o, np.where(twice > 0, twice + x.T, twice) + 1)
    turned_out(a, o)
    same(o, x.T)
    v = a.reshape(-1).copy()
    scale(v, 2.0, 1000)
    want = x.ravel().copy()
    want[1:1000] *= 2
    same(v, want)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "axes", "summed", "compared"),
    [
        ((100003,), 0, "float32", "float64"),
        ((70, 1300), 0, "float64", "float32"),
        ((70, 1300), 1, "float32", "float64"),
        ((4, 3, 5000), (0, 2), "float64", "float32"),
        ((7, 1300, 3), 1, "float32", "float64"),
        ((40000, 2), 0, "float64", "float32"),
    ],
)
def test_reductions(device, shape, axes, summed, compared):
    x = drawn(shape, summed)
    a = pa.asarray(x, device=device)
    same(pa.sum(a, axis=axes, dtype=a.dtype), x.sum(axes, dtype=summed), 1e-3)
    x = drawn(shape, compared)
    a = pa.asarray(x, device=device)
    same(pa.max(a, axis=axes), x.max(axes))
    same(pa.argmin(a.reshape(-1)), np.argmin(x))


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128"])
def test_products(device, dtype):
    for m, k, n in ((3, 5, 7), (300, 33, 140), (64, 0, 5)) + ((257, 129, 131),) * (dtype == "float32"):
        x, y = drawn((m, k), dtype), drawn((k, n), dtype)
        a, b = pa.asarray(x, device=device), pa.asarray(y, device=device)
        same(a @ b, x @ y, 1e-3)
        turned = (pa.asarray(np.ascontiguousarray(z.T), device=device).T for z in (x, y))
        same(next(turned) @ next(turned), x @ y, 1e-3)
        out = pa.zeros((n, m), dtype=dtype, device=device)
        pa.matmul(a, b, out=out.T)
        same(out, (x @ y).T, 1e-3)


TILES = range(gemm_key.TINY + 1)
TALL_AND_WIDE = ((300, 33, 140), (140, 33, 300), (257, 20, 129), (128, 64, 256))
KINDS = ("float32", "float16", "int8", "complex64")


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [(dtype, shape) for at, dtype in enumerate(KINDS) for shape in TALL_AND_WIDE[at % 2 :: 2]],
)
def test_large_tiles_tall_and_wide(device, dtype, shape, monkeypatch):
    monkeypatch.setattr(thresholds, "MIN_LARGE_TILES", 1000)
    tiles = split_k.WIDE if shape[1] % 2 else split_k.TALL
    monkeypatch.setattr(split_k, "float32_schedule", lambda *_: (1.0, tiles, 1))
    m, k, n = shape
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-2, 3, size).astype(dtype) for size in ((m, k), (k, n)))
    wide = "complex128" if dtype == "complex64" else "float64"
    expected = (a.astype(wide) @ b.astype(wide)).astype(dtype)
    there = [pa.asarray(x, device=device) for x in (a, b)]
    for _ in range(2):  # the second one goes the short way
        np.testing.assert_array_equal(pa.asnumpy(pa.matmul(*there)), expected)


@pytest.mark.all_variants
@pytest.mark.parametrize("tiles", TILES)
def test_parts_of_the_depth(device, tiles, monkeypatch):
    """Any layouts and batches, depths that the parts don't divide, and results that aren't contiguous."""
    rng = np.random.default_rng(tiles)
    for parts, batch, m, k, n in ((2, (), 70, 65, 131), (3, (2,), 5, 30, 7), (5, (2, 3), 9, 17, 4), (3, (), 6, 3, 8)):
        cut = lambda *arguments, parts=parts: (1.0, tiles, min(parts, arguments[-1]))  # noqa: E731
        monkeypatch.setattr(split_k, "float32_schedule", cut)
        x = rng.integers(-3, 4, (*batch, m, k)).astype("float32")
        y = rng.integers(-3, 4, (k, n)).astype("float32")
        a, b = pa.asarray(x, device=device), pa.asarray(y, device=device)
        turned = pa.asarray(np.ascontiguousarray(y.T), device=device).T
        reversed_ = pa.asarray(x[..., ::-1].copy(), device=device)[..., ::-1]
        out = pa.zeros((*batch, m, 2 * n), dtype="float32", device=device)
        pa.matmul(a, b, out=out[..., ::2])
        for result in (a @ b, a @ turned, reversed_ @ b, out[..., ::2]):
            np.testing.assert_array_equal(pa.asnumpy(result), x @ y)
        assert not pa.any(out[..., 1::2])


@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize("blocks", [1, 3])
@examples(6)
@given(data=st.data())
def test_blocks_that_have_several_tiles(device, tiles, blocks, data):
    """The slices of a block's tiles follow each other, those that aren't whole, too, and of any depth."""
    m, n = (data.draw(st.one_of(st.integers(2, 300), st.sampled_from([64, 128, 256, 512]))) for _ in "mn")
    k = data.draw(st.one_of(st.integers(1, 40), st.sampled_from([8, 16, 32, 64])))
    lead = data.draw(st.sampled_from([(), (3,), (2, 2)]))
    dtype = data.draw(st.sampled_from(["float32", "int32", "float64"]))
    rng = np.random.default_rng(m + n)
    x, y = (rng.integers(-3, 4, size).astype(dtype) for size in ((*lead, m, k), (*lead, k, n)))
    turns = data.draw(st.sampled_from([(False, False), (True, False), (False, True)]))
    a, b = (
        pa.asarray(np.ascontiguousarray(z.swapaxes(-1, -2)), device=device).mT
        if turned
        else pa.asarray(z, device=device)
        for z, turned in zip((x, y), turns, strict=True)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_k, "schedule", lambda *_: (tiles, 1))
        patch.setattr(split_k, "blocks", lambda *_: blocks)
        patch.setattr(gemm, "tile_for", lambda *_, **__: None)
        patch.setattr(split_k, "is_tiny", lambda *_: False)
        patch.setattr(gemm_bf16x6, "bf16x6_tile", lambda *_: None)
        np.testing.assert_array_equal(pa.asnumpy(a @ b), x @ y)


@pytest.mark.all_variants
@examples(40)
@given(data=st.data())
def test_stacks_of_tiny_matrices(device, data):
    """Of any type, layout and batch, by a kernel without tiles on grids; and with an epilogue."""
    m, k, n = (data.draw(st.one_of(st.integers(2, 48), st.sampled_from([2, 3, 4, 8, 16, 32]))) for _ in "mkn")
    lead = data.draw(st.sampled_from([(3,), (40,), (2, 3), (1,), (2, 1, 2, 2)]))
    names = ["float32", "float64", "complex64", "complex128", "float16", "bfloat16", "int32", "int8", "bool", "int64"]
    dtype, rng = data.draw(st.sampled_from(names)), np.random.default_rng(m * k + n)

    def drawn(*shape):
        x = rng.integers(0, 2, shape) if dtype in ("bool", "bfloat16", "float16") else rng.integers(-2, 3, shape)
        how = data.draw(st.sampled_from(["rows", "columns", "steps", "negative", "one for all", "unaligned"]))
        if how == "one for all":
            x = x[:1]
        there = pa.asarray(x.astype("float32"), device=device).astype(dtype)
        if how == "columns":
            return x, pa.asarray(x.swapaxes(-1, -2).copy(), device=device).astype(dtype).mT
        if how == "steps":
            wide = pa.zeros((*there.shape[:-1], 2 * there.shape[-1]), dtype=dtype, device=device)[..., ::2]
            wide[...] = there
            return x, wide
        if how == "unaligned":
            wide = pa.zeros((*there.shape[:-1], there.shape[-1] + 1), dtype=dtype, device=device)[..., 1:]
            wide[...] = there
            return x, wide
        return (x[..., ::-1], there[..., ::-1]) if how == "negative" else (x, there)

    (x, a), (y, b) = drawn(*lead, m, k), drawn(*lead, k, n)
    wide = "int64" if dtype == "bool" else "complex128" if dtype.startswith("complex") else "float64"
    expected = np.matmul(x.astype(wide), y.astype(wide))
    if dtype == "bool":
        expected = expected != 0
    elif dtype == "int8":
        expected = expected.astype("int64").astype("int8")
    with pytest.MonkeyPatch.context() as patch, pa.trace() as trace:
        patch.setattr(thresholds, "TINY_LEAST_THREADS", 0)
        clear_plans()
        result = a @ b
        np.testing.assert_array_equal(pa.asnumpy(result.astype(wide)), expected)
        if dtype == "float32":
            bias = rng.integers(-3, 4, n).astype(dtype)
            scaled = pa.gemm(a, b, bias=pa.asarray(bias, device=device), activation="relu")
            np.testing.assert_array_equal(pa.asnumpy(scaled), np.maximum(expected + bias, 0))
    clear_plans()
    assert trace.launches


@pytest.mark.parametrize("lead", [(7,), (1, 5), (4, 3), (2, 1, 3)])
def test_stacks_of_more_matrices_than_a_launch_takes(device, lead, monkeypatch):
    """They go by halves, with their epilogue."""
    monkeypatch.setattr(thresholds, "MOST_MATRICES", 2)
    rng = np.random.default_rng(len(lead))
    x, y = (rng.integers(-3, 4, size).astype("float32") for size in ((*lead, 3, 4), (*lead[1:], 4, 5)))
    bias = rng.integers(-3, 4, (*lead, 3, 5)).astype("float32")
    a, b, e = (pa.asarray(z, device=device) for z in (x, y, bias))
    with pa.trace() as trace:
        np.testing.assert_array_equal(pa.asnumpy(a @ b), x @ y)
    if device != "cpu":
        assert len(trace.launches) >= math.prod(lead) / 2
    np.testing.assert_array_equal(pa.asnumpy(pa.gemm(a, b, bias=e, activation="relu")), np.maximum(x @ y + bias, 0))


def test_few_tiles_are_cut_along_the_depth():
    """For 132 processors; and never where it is asked for the whole, or of few elements."""
    scheduled = split_k.float32_schedule
    assert [scheduled(n, n, 1, n, 132, 16)[2] for n in (64, 1024, 1536, 2048, 3072)] == [1, 4, 3, 1, 4]
    assert scheduled(1024, 1024, 1, 1024, 132, 1)[2] == 1
    assert scheduled(64, 64, 1, 100_000, 132, 16)[2] == 16


@examples(10)
@given(data=st.data())
def test_small_arrays_are_joined_by_one_launch(device, data):
    sizes = data.draw(st.lists(st.integers(0, 40), min_size=2, max_size=4))
    dtype = data.draw(st.sampled_from(["float32", "int32", "bool", "complex128"]))
    trail = data.draw(st.sampled_from([(), (3,)]))
    rng = np.random.default_rng(len(sizes))
    parts = [rng.integers(0, 9, (n, *trail)).astype(dtype) for n in sizes]
    ours = [pa.asarray(x, device=device) for x in parts]
    if data.draw(st.booleans()):  # an operand that comes twice
        parts.append(parts[0])
        ours.append(ours[0])
    for _ in range(6):
        np.testing.assert_array_equal(pa.asnumpy(pa.concat(ours)), np.concatenate(parts))
    with pa.trace() as t:
        pa.concat(ours)
    if device != "cpu":
        assert [row.kernel for row in t.launches] == ["concat"] * (sum(x.size for x in parts) > 0)


@pa.kernel
def fours(out, x):
    for i in range(x.shape[0]):
        y = x[i] * 2
        out[4 * i] = y
        out[4 * i + 1] = y + 1
        out[4 * i + 2] = y + 2
        out[4 * i + 3] = y + 3


@pa.kernel
def chained(out, x):
    for i in range(x.shape[0]):
        out[4 * i] = x[i] * 2
        out[4 * i + 1] = out[4 * i] + 1
        out[4 * i + 2] = out[4 * i + 1] + 1
        out[4 * i + 3] = out[4 * i + 2] + 1


@pa.kernel
def pairs(out, x):
    for i in range(x.shape[0]):
        out[3 * i] = x[i]
        out[1 + 3 * i] = -x[i]


@pytest.mark.parametrize("kind", [np.int32, np.float32, np.float64, np.int64, np.int16])
@pytest.mark.parametrize("begin", [0, 1, 4])
def test_adjacent_stores(device, kind, begin):
    x = np.arange(300).astype(kind)
    by_fours, by_pairs = (np.full(4 * x.size + 9, -1, kind) for _ in range(2))
    by_fours[begin : begin + 4 * x.size] = (2 * x[:, None] + np.arange(4).astype(kind)).ravel()
    by_pairs[begin : begin + 3 * x.size] = np.stack([x, -x, np.full_like(x, -1)], 1).ravel()
    for kernel, want in ((fours, by_fours), (chained, by_fours), (pairs, by_pairs)):
        out = pa.full(want.size, -1, dtype=kind, device=device)
        kernel(out[begin:], pa.asarray(x, device=device))
        same(out, want)


@pa.kernel
def products(out: pa.ndarray[pa.uint64, 1], x: pa.ndarray[pa.uint32, 1], y: pa.ndarray[pa.uint32, 1]):
    for i in range(out.shape[0]):
        out[i] = pa.uint64(x[i]) * pa.uint64(y[i]) + (pa.uint64(x[i]) * pa.uint64(0xD2511F53) >> pa.uint64(32))


def test_whole_products_of_words(device):
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 1 << 32, 500, dtype="u4") for _ in range(2))
    out = pa.zeros(500, dtype="uint64", device=device)
    products(out, pa.asarray(x, device=device), pa.asarray(y, device=device))
    wide = x.astype("u8")
    np.testing.assert_array_equal(pa.asnumpy(out), wide * y + (wide * 0xD2511F53 >> np.uint64(32)))


@pytest.mark.slow
def test_few_and_short_sums(device):
    rng = np.random.default_rng(8)
    for shape in ((1,), (63,), (129,), (2047,), (5000,), (3, 65), (200, 128), (600, 129)):
        x = rng.integers(-9, 9, shape).astype("float32")
        got = pa.asnumpy(pa.sum(pa.asarray(x, device=device), axis=-1))
        np.testing.assert_array_equal(got, x.sum(axis=-1))
