"""float8_e4m3fn and float8_e5m2 on devices: all numbers against ml_dtypes, and products into wider types, which tensor
cores of some devices multiply."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from test_tensor_cores import LAYOUTS, laid, same

import pyarray as pa
from pyarray._core import clear_plans
from pyarray.kernels.matmul import gemm, gemm_mma, split_k

DTYPES = ("float8_e4m3fn", "float8_e5m2")
WIDER = ("float32", "bfloat16", "float16")
SIZES = st.one_of(st.integers(0, 40), st.sampled_from([64, 100, 127, 128, 129, 200, 256, 257, 400]))


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


def every(dtype):
    """All numbers of the type."""
    return np.arange(256, dtype=np.uint8).view(getattr(pa, dtype))


def agree(got, want):
    got, want = pa.asnumpy(got), np.asarray(want)
    assert got.dtype == want.dtype
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


@np.errstate(all="ignore")
def test_conversions(device, dtype):
    x, rng = every(dtype), np.random.default_rng(1)
    a = pa.asarray(x, device=device)
    np.testing.assert_array_equal([a[k].item() for k in range(256)], x.astype(np.float64))
    for wide in ("float16", "bfloat16", "float32", "float64"):
        agree(a.astype(wide), x.astype(np.float32).astype(getattr(pa, wide)))
    exact = np.sort(x[np.isfinite(x.astype(np.float32))].astype(np.float32))
    middle = (exact[1:] + exact[:-1]) / 2
    near = np.concatenate([f(m, np.float32(s)) for f, m in ((np.nextafter, middle),) for s in (-np.inf, np.inf)])
    bits = rng.integers(0, 1 << 32, 3000, dtype=np.uint32).view(np.float32)
    edges = np.float32([463.9, 464, 464.1, 480, 512, 61439, 61440, 61441, 65536, 1e30, np.inf, -np.inf, np.nan])
    for y in (exact, middle, near, bits, edges, -edges):
        agree(pa.asarray(y, device=device).astype(dtype), y.astype(x.dtype))
    numbers = np.arange(-500, 500)
    agree(pa.asarray(numbers, device=device).astype(dtype), numbers.astype(x.dtype))


@np.errstate(all="ignore")
def test_arithmetic_of_all_pairs(device, dtype):
    """Each operation is done in float32 and rounded once."""
    x, y = (v.ravel() for v in np.meshgrid(every(dtype), every(dtype)))
    a, b = pa.asarray(x, device=device), pa.asarray(y, device=device)
    for name in ("add", "multiply", "divide", "less", "maximum"):
        agree(getattr(pa, name)(a, b), getattr(np, name)(x, y))
    wide = x.astype(np.float32)
    agree(pa.isnan(a), np.isnan(wide))
    agree(pa.isinf(a), np.isinf(wide))
    agree(pa.isfinite(a), np.isfinite(wide))


@pytest.mark.slow
def test_what_compares_and_adds(device, dtype):
    rng = np.random.default_rng(2)
    x = rng.integers(-6, 7, 3000).astype(getattr(pa, dtype))
    a, wide = pa.asarray(x, device=device), x.astype(np.float32)
    agree(pa.sort(a), np.sort(wide).astype(x.dtype))
    agree(pa.argsort(a), np.argsort(wide, kind="stable"))
    agree(pa.unique_values(a), np.unique(wide).astype(x.dtype))
    agree(pa.nonzero(a)[0], np.nonzero(wide)[0])
    agree(pa.cumulative_sum(a[:20]), np.cumsum(wide[:20]).astype(x.dtype))
    agree(pa.sum(a), wide.sum().astype(x.dtype))
    agree(pa.max(a), wide.max().astype(x.dtype))
    # without an infinity, the least number begins
    least = pa.full(5, pa.finfo(dtype).min, dtype=dtype, device=device)
    agree(pa.max(least), np.asarray(least[0]) if least.device.kind == "cpu" else pa.asnumpy(least)[0])
    agree(pa.nanmax(pa.asarray(every(dtype), device=device)), np.nanmax(every(dtype).astype("f4")).astype(x.dtype))


@pa.kernel
def halved(out, total, v):
    for i in range(v.shape[0]):
        out[i] = v[i] / 2
        pa.atomic_add(total, 0, v[i])


@pytest.mark.parametrize("checked", [False, True])
def test_kernels(device, dtype, checked):
    x = np.float32([1, 1, 2, -1, -2]).astype(getattr(pa, dtype))
    out, total = pa.zeros(5, dtype=dtype, device=device), pa.zeros(1, dtype=dtype, device=device)
    with pa.debug(checked):
        halved(out, total, pa.asarray(x, device=device))
    agree(out, (x.astype(np.float32) / 2).astype(x.dtype))
    assert total.tolist() == [1]


def tiles_of(device):
    units = pa.empty(0, device=device).device.driver.properties().get("tensor_cores")
    return [tile for tile, _ in gemm_mma.TILES.get((units, 1), ())] or [None]


@examples(5)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), wide=st.sampled_from(WIDER), m=SIZES, n=SIZES, k=SIZES)
def test_drawn_products(device, data, dtype, wide, m, n, k):
    """Sums of small integers, which are exact. Also without copies: then the device loads what isn't along the depth by
    elements."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    batch = data.draw(st.sampled_from([(), (), (3,), (2, 2), (2, 1, 2, 2)]))
    x, y = (rng.integers(-4, 5, (*batch, *s)) for s in ((m, k), (k, n)))
    y[..., 8:, :] = 0  # bfloat16 holds the sums
    a, b = (laid(v, data.draw(st.sampled_from(LAYOUTS)), dtype, device) for v in (x, y))
    out = laid(np.full((*batch, m, n), 7), data.draw(st.sampled_from(LAYOUTS)), wide, device)
    bias = data.draw(st.sampled_from([None, np.arange(n) % 5]))
    tile, copies = data.draw(st.sampled_from(tiles_of(device))), data.draw(st.booleans())
    more = {} if bias is None else {"bias": laid(bias[None], "rows", wide, device), "alpha": 2}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            gemm,
            "tile_for",
            lambda c, depth, tf32=False, dtype=None: tile if getattr(dtype, "itemsize", 0) == 1 else None,
        )
        patch.setattr(split_k, "is_tiny", lambda *_: False)
        if not copies:
            patch.setattr(gemm, "along_depth", lambda a, b: (a, b))
        clear_plans()
        pa.gemm(a, b, dtype=wide, out=out, **more)
    clear_plans()
    same(out, x @ y if bias is None else 2 * (x @ y) + bias)


@pytest.mark.parametrize("wide", WIDER)
def test_long_sums_are_float32(device, dtype, wide):
    """Of positive numbers, which tensor cores alone would sum with 14 bits: several percent less."""
    rng = np.random.default_rng(3)
    x, y = (rng.random(s).astype(np.float32).astype(getattr(pa, dtype)) for s in ((40, 6000), (6000, 130)))
    got = pa.gemm(pa.asarray(x, device=device), pa.asarray(y, device=device), dtype=wide)
    want = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(pa.asnumpy(got).astype(np.float64), want, rtol=8e-3 if wide == "bfloat16" else 1e-3)


@pytest.mark.slow
def test_products_of_their_own_type_and_of_others(device, dtype):
    """What is no pair of one float8 type is cast, as in other products."""
    rng = np.random.default_rng(4)
    x, y = rng.integers(-2, 3, (70, 40)), rng.integers(-2, 3, (40, 50))
    y[4:] = 0
    a, b = (laid(v, "rows", dtype, device) for v in (x, y))
    for got in (a @ b, pa.gemm(a, b), pa.matmul(a[None], b)[0]):
        assert got.dtype == dtype
        same(got, (x @ y).astype(np.float32).astype(getattr(pa, dtype)).astype(np.float32))
    same(a[0] @ b, (x[0] @ y).astype(np.float32).astype(getattr(pa, dtype)).astype(np.float32))
    assert pa.gemm(a, b, dtype="float64").dtype == pa.float64
    same(pa.gemm(a, b, dtype="float64"), x @ y)
    other = laid(y, "rows", DTYPES[dtype == DTYPES[0]], device)
    mixed = pa.gemm(a, other)
    assert mixed.dtype == pa.float32
    same(mixed, x @ y)
    with pa.debug():
        same(pa.gemm(a, b, dtype="float32"), x @ y)
    same(pa.gemm(a, b, dtype="float32", activation="gelu", alpha=0.0), np.zeros((70, 50)))
