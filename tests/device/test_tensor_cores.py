"""Products of the types that tensor cores multiply, in every tile and layout: sums of small integers, which
are exact, against NumPy, and random numbers against products of other layouts. Devices without tensor cores
have one way only."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray._core import clear_plans
from pyarray.kernels.matmul import gemm, gemm_mma, split_k, thresholds

DTYPES = ("float16", "bfloat16", "float32", "float64")
LAYOUTS = ("rows", "columns", "odd rows", "odd columns", "padded", "steps", "backwards")


def tiles_of(device, dtype):
    """Those of the device's tensor cores; None alone where it has none."""
    empty = pa.empty(0, dtype=dtype, device=device)
    units, size = empty.device.driver.properties().get("tensor_cores"), empty.itemsize
    found = gemm_mma.TILES.get((units, size), ()) if units else ()
    if dtype == "float32" and units != "mfma":  # elsewhere tf32: test_tf32.py
        return [None]
    if units == "wgmma":  # the others, too: that is how other GPUs do it
        found += gemm_mma.TILES["mma", size]
    small = gemm_mma.STACKED, gemm_mma.STACKED_NARROW._replace(stages=3), gemm_mma.STACKED_ONE
    stacked = list(small) if (units, size) == ("wgmma", 2) else []
    return with_clusters([tile for tile, _ in dict.fromkeys(found)]) + stacked or [None]


def with_clusters(tiles):
    return [*tiles, *(tile._replace(cluster=2) for tile in tiles if tile.bulk)]


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


@pytest.fixture
def use(monkeypatch):
    """Products take this tile: also those that would be replayed with another one."""

    def patch(tile):
        monkeypatch.setattr(gemm, "tile_for", lambda c, depth, dtype=None: tile)
        monkeypatch.setattr(split_k, "is_tiny", lambda *_: False)
        clear_plans()

    yield patch
    clear_plans()


def laid(x, how, dtype, device):
    """An array like `x`, a NumPy array, that lies so."""
    *lead, m, n = x.shape
    a = {
        "rows": lambda: pa.empty((*lead, m, n), dtype=dtype, device=device),
        "columns": lambda: pa.empty((*lead, n, m), dtype=dtype, device=device).mT,
        "odd rows": lambda: pa.empty((*lead, m + 1, n + 3), dtype=dtype, device=device)[..., 1:, 1 : n + 1],
        "odd columns": lambda: pa.empty((*lead, n + 1, m + 3), dtype=dtype, device=device)[..., 1:, 1 : m + 1].mT,
        "padded": lambda: pa.empty((*lead, m, (n + 15) // 8 * 8), dtype=dtype, device=device)[..., :n],
        "steps": lambda: pa.empty((*lead, 2 * m, 3 * n), dtype=dtype, device=device)[..., ::2, ::3],
        "backwards": lambda: pa.empty((*lead, m, n), dtype=dtype, device=device)[..., ::-1, ::-1],
    }[how]()
    a[...] = pa.asarray(x, device=device)
    return a


def integers(shape, seed):
    return np.random.default_rng(seed).integers(-2, 4, shape).astype(np.float32)


def same(got, want):
    np.testing.assert_array_equal(pa.asnumpy(got.astype("float64")), want)


def exact(x, y, dtype):
    """The product as the type rounds it."""
    wide = pa.asarray(x.astype(np.float64) @ y.astype(np.float64))
    return pa.asnumpy(wide.astype(dtype).astype("float64"))


SHAPES = [(1, 1, 1), (3, 5, 7), (16, 16, 16), (64, 0, 5), (1, 130, 40), (40, 130, 1), (0, 5, 3),
          (70, 65, 300), (130, 64, 257), (256, 96, 256)]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(device, dtype, shape, use):
    m, k, n = shape
    x, y = integers((m, k), 1), integers((k, n), 2)
    want = exact(x, y, dtype)
    for tile in tiles_of(device, dtype):
        use(tile)
        for left, right in itertools.product(("rows", "columns"), repeat=2):
            out = laid(np.full((m, n), 7, np.float32), "rows", dtype, device)
            pa.matmul(laid(x, left, dtype, device), laid(y, right, dtype, device), out=out)
            same(out, want)


SIZES = st.one_of(st.integers(0, 40), st.sampled_from([63, 64, 65, 100, 127, 128, 129, 130]))


@examples(5)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), m=SIZES, n=SIZES, k=SIZES)
def test_drawn(device, data, dtype, m, n, k):
    batch = data.draw(st.sampled_from([(), (), (3,), (2, 2)]))
    x, y = integers((*batch, m, k), data.draw(st.integers(0, 99))), integers((*batch[1:], k, n), 8)
    a, b = (laid(z, data.draw(st.sampled_from(LAYOUTS)), dtype, device) for z in (x, y))
    out = laid(np.full((*batch, m, n), 7, np.float32), data.draw(st.sampled_from(LAYOUTS)), dtype, device)
    tile = data.draw(st.sampled_from(tiles_of(device, dtype)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm, "tile_for", lambda c, depth, dtype=None: tile)
        patch.setattr(split_k, "is_tiny", lambda *_: False)
        clear_plans()
        pa.matmul(a, b, out=out)
    clear_plans()
    same(out, exact(x, y, dtype))


def test_layouts(device, dtype, use):
    """The elements are the same bits however the operands and the result lie."""
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((75, 90), (90, 140)))
    for tile in tiles_of(device, dtype):
        use(tile)
        want = pa.asnumpy((laid(x, "rows", dtype, device) @ laid(y, "rows", dtype, device)).astype("float64"))
        kept = [pa.asnumpy(pa.asarray(v).astype(dtype).astype("float64")) for v in (x, y)]
        limit = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-14}[dtype]
        np.testing.assert_allclose(want, kept[0] @ kept[1], rtol=limit, atol=20 * limit)
        for how in LAYOUTS:
            same(laid(x, how, dtype, device) @ laid(y, "rows", dtype, device), want)
            same(laid(x, "columns", dtype, device) @ laid(y, how, dtype, device), want)
            out = laid(np.full((75, 140), 7, np.float32), how, dtype, device)
            pa.matmul(laid(x, "rows", dtype, device), laid(y, "columns", dtype, device), out=out)
            same(out, want)


def test_nothing_beside_the_result_is_written(device, dtype, use):
    x, y = integers((70, 20), 4), integers((20, 75), 5)
    for tile in tiles_of(device, dtype):
        use(tile)
        frame = pa.full((72, 80), 9, dtype=dtype, device=device)
        pa.matmul(laid(x, "rows", dtype, device), laid(y, "rows", dtype, device), out=frame[1:71, 2:77])
        want = np.full((72, 80), 9.0)
        want[1:71, 2:77] = exact(x, y, dtype)
        same(frame, want)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["rows", "columns", "odd rows"])
def test_batches(device, dtype, how, use):
    x, y = integers((3, 2, 40, 33), 6), integers((2, 33, 70), 7)
    for tile in tiles_of(device, dtype):
        use(tile)
        same(laid(x, how, dtype, device) @ laid(y, how, dtype, device), exact(x, y, dtype))
        once = pa.broadcast_to(laid(x[0, 0], how, dtype, device), (4, 40, 33))
        same(once @ laid(y[0], how, dtype, device), np.stack([exact(x[0, 0], y[0], dtype)] * 4))


@pytest.mark.parametrize("how", ["rows", "columns", "odd columns"])
@pytest.mark.slow
def test_blocks_that_take_several_tiles(device, dtype, how, use, monkeypatch):
    """As few blocks as there can be take all tiles of a batch one after the other."""
    monkeypatch.setattr(gemm_mma.Tile, "blocks", lambda tile, c: tile.cluster)
    x, y = integers((2, 264, 136), 12), integers((2, 136, 520), 13)
    want = exact(x, y, dtype)
    for tile in tiles_of(device, dtype):
        use(tile)
        for _ in range(3):
            same(laid(x, how, dtype, device) @ laid(y, how, dtype, device), want)


@pytest.mark.slow
@examples(10)
@given(data=st.data(), m=st.integers(1, 600), n=st.integers(1, 700), k=st.integers(1, 200))
def test_results_that_are_stored_while_the_next_tile_is_multiplied(device, data, m, n, k):
    """To all layouts, by epilogues of whole and cut parts, which may read C itself."""
    dtype = data.draw(st.sampled_from(["float16", "bfloat16"]))
    batch = data.draw(st.sampled_from([(), (2,)]))
    x, y, z = integers((*batch, m, k), 1), integers((k, n), 2), integers((*batch, m, n), data.draw(st.integers(0, 99)))
    a, b = (laid(v, data.draw(st.sampled_from(["rows", "columns", "padded"])), dtype, device) for v in (x, y))
    out = laid(z, data.draw(st.sampled_from(LAYOUTS)), dtype, device)
    epilogue = data.draw(st.sampled_from(["none", "c", "bias", "both"]))
    more = {"c": out, "beta": 2} if epilogue in ("c", "both") else {}
    want = x.astype(np.float64) @ y + (2 * z if more else 0)
    if epilogue in ("bias", "both"):
        start = data.draw(st.sampled_from([0, 1, 2, 8]))  # of its memory, which isn't aligned then
        rows = pa.asarray(np.pad(z[..., 0, :], [*[(0, 0)] * len(batch), (start, 0)]), device=device).astype(dtype)
        more["bias"] = rows[..., start:].reshape(*batch, 1, n)
        want = np.maximum(want + z[..., :1, :], 0)
        more["activation"] = "relu"
    tile = data.draw(st.sampled_from(tiles_of(device, dtype)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm_mma.Tile, "blocks", lambda tile, c: tile.cluster)
        patch.setattr(gemm, "tile_for", lambda c, depth, dtype=None: tile)
        patch.setattr(split_k, "is_tiny", lambda *_: False)
        clear_plans()
        pa.gemm(a, b, out=out, **more)
    clear_plans()
    same(out, pa.asnumpy(pa.asarray(want).astype(dtype).astype("float64")))


@pytest.mark.slow
@pytest.mark.parametrize("axes", [1, 2, 3, 4])
@pytest.mark.parametrize("steps", [1, -1])
def test_batches_of_several_axes(device, dtype, axes, steps, use):
    """None of them can be joined, one is broadcast, and all go backwards or forwards."""
    lead = (2, 3, 2, 2)[:axes]
    x, y = integers((*lead, 24, 40), 14), integers((*lead[:-1], 1, 40, 136), 15)
    want = exact(x, y, dtype)

    def spread(z):
        parts = tuple(slice(None, None, 2 * steps) for _ in lead)
        a = pa.zeros((*(2 * n for n in z.shape[:axes]), *z.shape[axes:]), dtype=dtype, device=device)[parts]
        a[...] = pa.asarray(z, device=device)
        return a

    for tile in tiles_of(device, dtype):
        use(tile)
        same(spread(x) @ spread(y), want)


def test_products_of_two_streams_at_the_same_time(device, dtype, use):
    """Blocks of both run beside each other, and each reads its own operands."""
    x, y = integers((8, 300, 72), 16), integers((72, 264), 17)
    a, b = (laid(z, "rows", dtype, device) for z in (x, y))
    want = exact(x, y, dtype)
    streams = [pa.Stream(device) for _ in range(2)]
    for tile in tiles_of(device, dtype):
        use(tile)
        got = []
        for k in range(16):
            with streams[k % 2]:
                got.append((k % 8, a[k % 8] @ b))
        for k, c in got:
            same(c, want[k])


def test_nan_and_infinity_stay_in_their_rows_and_columns(device, dtype, use):
    x, y = integers((70, 65), 8) + 5, integers((65, 75), 9) + 5
    x[3, 64], y[10, 74] = np.nan, np.inf
    for tile in tiles_of(device, dtype):
        use(tile)
        got = pa.asnumpy((laid(x, "rows", dtype, device) @ laid(y, "rows", dtype, device)).astype("float64"))
        assert np.isnan(got[3]).all()
        assert np.isposinf(np.delete(got[:, 74], 3)).all()
        assert np.isfinite(np.delete(got, 3, 0)[:, :74]).all()


def test_sums_beyond_float16_are_infinite(device, use):
    ones = pa.full((40, 40), 200, dtype="float16", device=device)
    for tile in tiles_of(device, "float16"):
        use(tile)
        assert np.isposinf(pa.asnumpy(ones @ ones)).all()
        assert (pa.asnumpy(ones @ (ones * 0.005)) == 8000).all()  # the sums of two parts are not rounded


def test_operands_that_are_used_often_are_copied_to_aligned_places(device, dtype, use, monkeypatch):
    monkeypatch.setattr(thresholds, "COPY_USES", 16)
    monkeypatch.setattr(thresholds, "COPY_MIN_SIDE", 4)
    x, y = integers((2, 67, 45), 10), integers((45, 83), 11)
    want = exact(x, y, dtype)
    for how in LAYOUTS:
        a, b = laid(x, how, dtype, device), laid(y, how, dtype, device)
        same(gemm_mma.copy_if_unaligned(b, 67), y)
        copied = gemm_mma.copy_if_unaligned(a, 83)
        assert a.itemsize in copied.strides[-2:]
        assert all(step % 16 == 0 or step == a.itemsize for step in copied.strides)
        assert (how != "padded") or copied is a
        same(a @ b, want)
    many = pa.broadcast_to(laid(y, "odd rows", dtype, device), (3, 45, 83))
    copied = gemm_mma.copy_if_unaligned(many, 67)
    assert copied.strides[0] == 0
    same(copied, np.broadcast_to(y, (3, 45, 83)))


def test_the_default_tiles_cover_all_sizes(device, dtype):
    if tiles_of(device, dtype) == [None]:
        assert gemm_mma.tile_for(pa.empty((3, 3), dtype=dtype, device=device), 3) is None
        return
    chosen = {gemm_mma.tile_for(pa.empty(s, dtype=dtype, device=device), 64) for s in ((8, 8), (4096, 4096))}
    assert len(chosen) == 2
    assert None not in chosen


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_epilogues_of_a_long_depth(device, dtype, use):
    """Blocks may have several tiles, and warps at the edges store otherwise."""
    for tile in tiles_of(device, dtype):
        use(tile)
        for m, k, n in ((70, 1100, 130), (2600, 577, 2050)) if tile and tile.bulk else ((70, 600, 40),):
            x, y, bias = integers((m, k), 1), integers((k, n), 2), integers(n, 3)
            a, b, c = (pa.asarray(v, device=device).astype(dtype) for v in (x, y, bias))
            want = pa.asarray(np.maximum(x.astype(np.float64) @ y + bias, 0)).astype(dtype)
            same(pa.gemm(a, b, bias=c, activation="relu"), pa.asnumpy(want.astype("float64")))
