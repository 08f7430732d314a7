"""What shares results among the threads of a block on a grid: running sums, what isn't zero, bins, spreads.
Each against NumPy, with lines cut into many segments and into one, with checks and without."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import TIMES, examples

import pyarray as pa
from pyarray.errors import BoundsError
from pyarray.kernels.reduce import columns_gpu, variance_gpu
from pyarray.kernels.scan import scan, scan_gpu
from pyarray.kernels.scan.nonzero import unsigned_view
from pyarray.kernels.sort import unique

FEW = examples(8)
SIZES = st.sampled_from((1, 2, 31, 33, 1023, 1025, 4096, 4099, 9000)) | st.integers(1, 6000)
LAYOUTS = (lambda x: x, lambda x: x[..., ::2], lambda x: x[::-1, 1:], lambda x: x.T)


@pytest.fixture
def device(device):
    if device == "cpu":
        pytest.skip("blocks share nothing on a CPU")
    return device


@pytest.fixture(params=["whole", "cut", "checked"], autouse=True)
def segment_sizes(device, request, monkeypatch):
    if request.param != "whole":
        for module, name, value in (
            (scan_gpu, "MAX_WHOLE", 1000),
            (scan_gpu, "MAX_WARP", 40),
            (scan_gpu, "MAX_SEGMENTS", 5),
            (scan, "GRID_PIECE", 4),
            (variance_gpu, "PIECE", 9),
            (columns_gpu, "THREADS", 700),
        ):
            monkeypatch.setattr(module, name, value)
    with pa.debug(request.param == "checked"):
        yield


def drawn(shape, dtype, seed=0, zeros=False):
    rng = np.random.default_rng(seed)
    x = rng.random(shape) < 0.5 if dtype == "bool" else (rng.standard_normal(shape) * 5).astype(dtype)
    return np.where(rng.random(shape) < 0.4, x, np.zeros_like(x)) if zeros else x


def same(got, want, rtol=1e-6):
    got = pa.asnumpy(got)
    assert got.shape == np.shape(want)
    if got.dtype.kind in "fc":
        rtol = 2e-3 if got.dtype.itemsize == 2 else rtol
        np.testing.assert_allclose(got, want.astype(got.dtype), rtol=rtol, atol=rtol * 10)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "float32", "complex64", "complex128"])
@examples(4)
@given(SIZES)
def test_long_lines(device, dtype, n):
    x = drawn(n, dtype, n)
    a = pa.asarray(x, device=device)
    wide = {"f": "f8", "c": "c16"}.get(x.dtype.kind)
    want = np.cumsum(x.astype(wide) if wide else x)
    same(pa.cumsum(a), want)
    same(pa.cumulative_sum(a[::-1], include_initial=True)[1:], np.cumsum(x[::-1].astype(want.dtype)))
    if dtype == "int8":
        same(pa.cumprod(a | 1), np.cumprod(x | 1))
        same(pa.cumsum(a, dtype="float32"), np.cumsum(x, dtype="f8"))


@pytest.mark.parametrize(("dtype", "decades", "rtol"), [("float64", 290, 1e-10), ("float32", 30, 1e-6)])
def test_products_whose_parts_leave_the_range(device, dtype, decades, rtol):
    reached = 10 ** (-decades * np.cos(np.arange(5000, dtype=np.longdouble) / 150))
    x = np.concatenate([reached[:1], reached[1:] / reached[:-1]]).astype(dtype)
    x[1::7] *= -1
    want = np.cumprod(x.astype(np.longdouble)).astype("f8")
    got = pa.asnumpy(pa.cumprod(pa.asarray(x, device=device)))
    np.testing.assert_allclose(got, want, rtol=rtol)


LOOK_BACK = """
#define PA_ACC double
#define PA_COMBINE(a, b) ((a) + (b))
#define PA_IDENTITY 0.0
#define PA_TEAM 256
#include "pa_look_back_gpu.h"
extern "C" __global__ void look_back(double *out, char *states, long long tiles, long long tile, double own)
{
    const pa_operand at = {states, 0, 0, 0};
    const pa_line_states line = {&at, 0, tile, pa_offsets_of_line(0, 1, tiles), tiles};
    const bool last = threadIdx.x == 0 && line.publish_tile(tile, own);
    if (PA_SHFL((int)last, 0)) line.complete(tile / PA_GROUP);
    pa_look_back back(line, tile, own);
    const double before = back.prefix(line, tile);
    if (threadIdx.x == 0) *out = before;
}
"""


def published(values, flags):
    """States of tiles or groups: in each word half of a value, and the flag."""
    halves = np.asarray(values, "f8").view("u4").astype("u8").reshape(-1, 2)
    return (halves | np.asarray(flags, "u8")[:, None] << 32).ravel()


@given(st.data())
def check_look_back(device, data):
    groups, place = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 31))
    tile, rng = 32 * groups + place, np.random.default_rng(data.draw(st.integers(0, 99)))
    tiles = tile + data.draw(st.integers(1, 40))
    aggregates = rng.standard_normal(tiles + 1) * 10.0 ** rng.integers(-9, 9, tiles + 1)
    totals = rng.standard_normal(groups) * 10.0 ** rng.integers(-9, 9, groups)
    prefixes = np.cumsum(totals)  # from left to right
    known = data.draw(st.integers(max(groups - 31, 0), groups))  # the last of so many has published its prefix
    flags = np.where(np.arange(groups) < known, data.draw(st.sampled_from((1, 2))), 1)
    flags[known - 1 : known] = 2
    all_groups = -(-tiles // 32)
    first = 16 + all_groups  # after counters
    states = np.zeros(first + 2 * (tiles + all_groups), "u8")
    states[16:first][: groups + 1] = np.append(np.full(groups, 32), place)
    states[first : first + 2 * tile] = published(aggregates[:tile], np.ones(tile))
    states[first + 2 * tiles :][: 2 * groups] = published(np.where(flags == 2, prefixes, totals), flags)
    out, memory = pa.zeros(1, device=device), pa.asarray(states, device=device)
    pa.RawKernel(LOOK_BACK, "look_back")(1, 32, (out, memory, tiles, tile, float(aggregates[tile])))
    inside, lanes = np.append(aggregates[tile - place : tile + 1], np.zeros(31 - place)), np.arange(32)
    for d in (1, 2, 4, 8, 16):
        inside = np.where(lanes >= d, np.roll(inside, d) + inside, inside)
    before = prefixes[-1] if groups else 0.0
    assert out.item() == before + (inside[place - 1] if place else 0.0)
    left = pa.asnumpy(memory)
    np.testing.assert_array_equal(left[first + 2 * tile :][:2], published(aggregates[tile : tile + 1], [1]))
    assert left[16 + groups] == place + 1
    expected = published([before + inside[31]], [2]) if place == 31 else np.zeros(2)  # of the group, if it is complete
    np.testing.assert_array_equal(left[first + 2 * (tiles + groups) :][:2], expected)


@pytest.mark.filterwarnings("ignore:pyarray")
def test_what_comes_before_a_tile_is_the_same_whatever_is_published(device):
    check_look_back(device)


@pytest.mark.parametrize("dtype", ["int8", "int32", "float16", "float32", "float64", "complex64", "complex128"])
def test_lines_of_several_groups_of_tiles(device, dtype):
    x = drawn((2, 150001), dtype, 5)
    x = x / 30 if dtype == "float16" else x
    a = pa.asarray(x.astype(dtype), device=device)
    x = pa.asnumpy(a).astype({"f": "f8", "c": "c16"}.get(x.dtype.kind, "i8"))
    got = pa.cumulative_sum(a, axis=1)
    same(got, np.cumsum(x, 1))
    assert pa.asnumpy(got).tobytes() == pa.asnumpy(pa.cumulative_sum(a, axis=1)).tobytes()
    same(pa.cumulative_sum(a[:, ::-3], axis=1), np.cumsum(x[:, ::-3], 1))


@pa.debug(False)
def test_replayed_scans_start_anew(device):
    n = 50000  # more tiles than a group has, where they are cut small
    x = pa.arange(n, dtype="int32", device=device)
    with pa.capture(x=x) as graph:
        result = pa.cumulative_sum(pa.cumulative_sum(x))
    for factor in (1, 3):
        given_array = pa.arange(n, dtype="int32", device=device) * factor
        graph.launch(x=given_array)
        same(result, np.cumsum(np.cumsum(pa.asnumpy(given_array), dtype="i8")))


def test_products_with_zero_and_infinity(device):
    same(pa.cumprod(pa.arange(3000.0, device=device)), np.zeros(3000))
    x = np.array([2.0, 0.0, 3.0, np.inf, 1.0])
    same(pa.cumprod(pa.asarray(x, device=device)), np.array([2, 0, 0, np.nan, np.nan]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_axes_and_layouts(device, dtype):
    x = drawn((37, 5, 70), dtype)
    a = pa.asarray(x, device=device)
    for turn, (cut, axis) in enumerate(product(LAYOUTS, range(3))):
        if dtype != "float32" and turn % 2 != (dtype == "int32"):
            continue  # a dtype is read and written in one way, whatever the layout and axis
        wide = "f8" if dtype != "int32" else "i8"
        got = pa.cumulative_sum(cut(a), axis=axis)
        np.testing.assert_allclose(
            pa.asnumpy(got).astype("f8"),
            np.cumsum(cut(x), axis, dtype=wide),
            rtol=2e-3,
            atol=5e-2 if dtype == "float16" else 1e-4,
        )


@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "float32", "float64", "complex128"])
@examples(4)
@given(SIZES)
def test_what_is_not_zero(device, dtype, n):
    x = drawn(n, dtype, n, zeros=True)
    a = pa.asarray(x, device=device)
    same(pa.nonzero(a)[0], np.nonzero(x)[0])
    mask = drawn(n, "bool", n + 1)
    same(a[pa.asarray(mask, device=device)], x[mask])
    same(a[::-1][pa.asarray(mask, device=device)], x[::-1][mask])


def test_places_along_several_axes(device):
    x = drawn((7, 60, 11), "float32", zeros=True)
    a = pa.asarray(x, device=device)
    for cut in LAYOUTS:
        for got, want in zip(pa.nonzero(cut(a)), np.nonzero(cut(x)), strict=True):
            same(got, want)
        same(cut(a)[cut(a) > 1], cut(x)[cut(x) > 1])
    assert a[pa.zeros(x.shape, dtype="bool", device=device)].shape == (0,)
    same(a[pa.asarray(x[:, :, 0] > 0, device=device)], x[x[:, :, 0] > 0])


@pytest.mark.slow
@pytest.mark.parametrize("bins", [1, 10, 3000, 9000, 13000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_bins(device, bins, dtype):
    x = drawn(5001, dtype)
    a = pa.asarray(x, device=device)
    same(pa.histogram(a, bins)[0], np.histogram(x, bins)[0])
    edges = np.sort(drawn(bins + 1, "float64", 5))
    same(pa.histogram(a, pa.asarray(edges, device=device))[0], np.histogram(x, edges)[0])
    whole = np.random.default_rng(1).integers(0, bins, 5001)
    same(pa.bincount(pa.asarray(whole, device=device)), np.bincount(whole))


SPREAD = [("bool", 0), ("int16", 500), ("float16", 0), ("float32", 500), ("float64", 500)]


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "far"), SPREAD)
def test_spreads(device, dtype, far):
    x = (drawn((24, 5, 33), dtype) + far).astype(dtype)
    a = pa.asarray(x, device=device)
    for turn, (cut, axis) in enumerate(product(LAYOUTS, (None, 0, 2, (0, 1), (0, 2)))):
        if TIMES == 1 and turn % 3 != SPREAD.index((dtype, far)) % 3:
            continue  # a dtype is read and written in one way, whatever the layout and axis
        want = np.var(cut(x).astype("f8"), axis=axis)
        rtol = {"float16": 2e-3, "float32": 1e-6}.get(dtype, 1e-11)
        got = pa.asnumpy(pa.var(cut(a), axis=axis)).astype("f8")
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-12)
    first = np.zeros(5000, "float32")
    first[0] = 1e8  # what distances are taken from is far from all else
    first[1:] += np.arange(4999, dtype="float32")
    got = pa.var(pa.asarray(first, device=device)).item()
    np.testing.assert_allclose(got, np.var(first.astype("f8")), rtol=1e-6)
    spoilt = pa.asarray(np.array([1.0, np.nan, 2.0], "float32"), device=device)
    assert np.isnan(pa.var(spoilt).item())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16"])
def test_distinct_elements(device, dtype):
    rng = np.random.default_rng(4)
    for n, different in ((1, 1), (4096, 3), (4097, 9000), (30001 if dtype == "float32" else 9001, 9000)):
        x = (rng.integers(0, different, n) - 1).astype(dtype)
        x[::5] = np.nan
        x[1::7] = -0.0
        a = pa.asarray(x, device=device)
        for equal_nan in (True, False):
            want = np.unique(x, return_counts=True, equal_nan=equal_nan)
            got = pa.unique(a, return_counts=True, equal_nan=equal_nan)
            for ours, theirs in zip(got, want, strict=True):
                np.testing.assert_array_equal(pa.asnumpy(ours), theirs)
        np.testing.assert_array_equal(pa.asnumpy(pa.unique(a)), np.unique(x))


@pytest.mark.parametrize("segments", [1, 2])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex128"])
def test_segments_of_several_tiles(device, dtype, segments, monkeypatch):
    """Tiles whose elements are counted together, and those that are left."""
    monkeypatch.setattr(scan_gpu, "MAX_SEGMENTS", segments)
    rng = np.random.default_rng(segments)
    for n, first in product((16383, 16384, 16385, 40000, 70003), (0, 1, 8, 16)):
        x = (rng.random(n + first) < 0.3).astype(dtype)
        a = pa.asarray(x, device=device)[first:]
        same(pa.nonzero(a)[0], np.nonzero(x[first:])[0])
        if dtype == "bool":
            values = rng.integers(-99, 99, n + 3).astype(("int8", "float32", "float16", "complex128")[n % 4])
            same(pa.asarray(values, device=device)[3:][a], values[3:][x[first:]])


def test_an_access_outside_is_found(device):
    mask = pa.ones(9000, dtype="bool", device=device)
    flat, x = unsigned_view(mask), pa.ones(9000, dtype="uint32", device=device)
    with pa.debug():
        line, states = pa.ones(99000, device=device), pa.zeros(20, dtype="uint64", device=device)
        key = "float64", "float64", "sum", 0, scan_gpu.THREADS, True
        with pytest.raises(BoundsError, match="scan"):
            scan_gpu._launch("scan", key, [line + 0, line, states], (512, 20, -(-99000 // 2048)))
        counts = scan_gpu.count(flat)
        short = pa.zeros(100, dtype="uint32", device=device)
        for out, values in ((short, x), (x, short)):
            with pytest.raises(BoundsError, match="compact"):
                scan_gpu.compact_into(out, values, flat, counts)
        rising = pa.arange(9000, dtype="uint32", device=device)
        counts = scan_gpu.count(rising, "differ")
        with pytest.raises(BoundsError, match="compact"):
            scan_gpu.compact_into(short, rising, rising, counts, "differ")


@pytest.mark.parametrize(("different", "most"), [(100, 800), (20000, 2 * 8 * 20000), (60000, 8 * 60000)])
def test_distinct_elements_hold_at_most_twice_their_memory(device, different, most, monkeypatch):
    monkeypatch.setattr(unique, "LATER", 1000)
    x = np.arange(60000) % different
    got = pa.unique(pa.asarray(x, device=device))
    np.testing.assert_array_equal(pa.asnumpy(got), np.unique(x))
    assert got.base is None
    assert got._buffer.nbytes <= most
    got.resize(7)
    np.testing.assert_array_equal(pa.asnumpy(got), np.arange(7))
