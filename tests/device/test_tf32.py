"""Products of float32 with precision="tf32", in every tile and layout: sums of small integers, which are exact, and
random numbers. Devices without such tensor cores give the exact product."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from test_tensor_cores import LAYOUTS, integers, laid, same, with_clusters

import pyarray as pa
from pyarray._core import clear_plans
from pyarray.kernels.matmul import gemm, gemm_mma, split_k, thresholds
from pyarray.kernels.matmul.gemm_types import PRECISION

SIZES = st.one_of(st.integers(0, 40), st.sampled_from([64, 100, 127, 128, 129, 200, 256, 257]))


def tiles_of(device):
    units = pa.empty(0, device=device).device.driver.properties().get("tensor_cores")
    rounds = units == "wgmma"  # AMD's multiply float32 as it is
    return with_clusters([tile for tile, _ in gemm_mma.TILES.get((units, 4), ()) if rounds]) or [None]


@pytest.fixture
def use(monkeypatch):
    """Products take this tile, and operands go to it as they lie: the device decides how it loads them."""

    def patch(tile, arranged=True):
        monkeypatch.setattr(gemm, "tile_for", lambda c, depth, tf32=False, dtype=None: tile if tf32 else None)
        monkeypatch.setattr(split_k, "is_tiny", lambda *_: False)
        monkeypatch.setattr(
            gemm, "k_major_operands", gemm_mma.k_major_operands if arranged else lambda a, b, c: (a, b, c)
        )
        clear_plans()

    yield patch
    clear_plans()


def product(a, b, **options):
    return pa.matmul(a, b, precision="tf32", **options)


@examples(5)
@given(data=st.data(), m=SIZES, n=SIZES, k=SIZES)
def test_drawn(device, data, m, n, k):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    batch = data.draw(st.sampled_from([(), (), (3,), (2, 2), (2, 1, 2, 2)]))
    x, y = (rng.integers(-4, 5, (*batch, *s)).astype(np.float32) for s in ((m, k), (k, n)))
    a, b, out = (
        laid(v, data.draw(st.sampled_from(LAYOUTS)), "float32", device)
        for v in (x, y, np.full((*batch, m, n), 7, np.float32))
    )
    tile, arranged = data.draw(st.sampled_from(tiles_of(device))), data.draw(st.booleans())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm, "tile_for", lambda c, depth, tf32=False, dtype=None: tile if tf32 else None)
        patch.setattr(split_k, "is_tiny", lambda *_: False)
        if not arranged:
            patch.setattr(gemm, "k_major_operands", lambda a, b, c: (a, b, c))
        clear_plans()
        product(a, b, out=out)
    clear_plans()
    same(out, x @ y)


def rounded(x):
    """To 11 bits, to nearest even."""
    bits = x.view(np.uint32)
    return ((bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000).view(np.float32)


def test_operands_are_rounded_to_nearest_in_every_layout(device, use):
    """Sums aside, which are exact: each has one product. Ties are among them."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((136, 136)).astype(np.float32)
    x.view(np.uint32)[:9] = x.view(np.uint32)[:9] & 0xFFFFE000 | 0x1000
    one = np.eye(136, dtype=np.float32)
    for tile, arranged in itertools.product(tiles_of(device), (True, False)):
        use(tile, arranged)
        for how in ("rows", "columns", "odd rows"):
            for got in (
                product(laid(x, how, "float32", device), laid(one, "columns", "float32", device)),
                product(laid(one, "rows", "float32", device), laid(x, how, "float32", device)),
            ):
                found = pa.asnumpy(got)
                exact = (found == x).all()
                assert exact or (found == rounded(x)).all()
                assert exact or tile
                assert not exact or arranged or not tile


def test_errors_are_those_of_eleven_bits(device, use):
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((300, 512), (512, 200)))
    want = x.astype(float) @ y
    for tile in tiles_of(device):
        use(tile)
        got = pa.asnumpy(product(pa.asarray(x, device=device), pa.asarray(y, device=device)))
        assert np.abs(got - want).max() < 2**-10 * math.sqrt(512) * 2


def test_where_neither_operand_is_along_the_depth(device, use, monkeypatch):
    """One is copied, if its elements are used often enough."""
    monkeypatch.setattr(thresholds, "COPY_USES", 16)
    for m, n in ((160, 40), (40, 160)):
        x, y = integers((2, m, 45), 1), integers((2, 45, n), 2)
        for tile in tiles_of(device):
            use(tile)
            a, b = laid(x, "columns", "float32", device), laid(y, "padded", "float32", device)
            same(product(a, b), x @ y)


def test_calls_that_are_repeated_with_other_addresses(device, use):
    """The same sizes and strides, aligned or not."""
    x, y = integers((72, 64), 5), integers((64, 136), 6)
    for tile in tiles_of(device):
        use(tile)
        room = pa.zeros(72 * 64 + 8, dtype="float32", device=device)
        b = pa.asarray(y, device=device)
        for _ in range(3):
            for start in (0, 1, 2, 4, 3):
                a = room[start : start + 72 * 64].reshape(72, 64)
                a[...] = pa.asarray(x, device=device)
                same(product(a, b), x @ y)


def test_blocks_that_take_several_tiles(device, use, monkeypatch):
    monkeypatch.setattr(gemm_mma.Tile, "blocks", lambda tile, c: tile.cluster)
    x, y = integers((2, 264, 136), 12), integers((2, 136, 520), 13)
    for tile in tiles_of(device):
        use(tile)
        for left, right in itertools.product(("rows", "columns"), repeat=2):
            a, b = laid(x, left, "float32", device), laid(y, right, "float32", device)
            for _ in range(3):
                same(product(a, b), x @ y)


def test_nothing_beside_the_result_is_written(device, use):
    x, y = integers((70, 20), 4), integers((20, 76), 5)
    for tile, how in itertools.product(tiles_of(device), ("rows", "columns")):
        use(tile)
        frame = pa.full((72, 80), 9, dtype="float32", device=device)
        product(laid(x, "rows", "float32", device), laid(y, how, "float32", device), out=frame[1:71, 2:78])
        want = np.full((72, 80), 9.0)
        want[1:71, 2:78] = x @ y
        same(frame, want)


def test_the_setting_changes_calls_that_are_repeated(device):
    """Of all products of float32, and never where a call says otherwise."""
    rng = np.random.default_rng(8)
    x, y = (rng.standard_normal((264, 264)).astype(np.float32) for _ in range(2))
    a, b = pa.asarray(x, device=device), pa.asarray(y, device=device).mT.copy().mT
    plain = pa.asnumpy(a @ b)
    exact = tiles_of(device) == [None]
    np.testing.assert_allclose(plain, x.astype(float) @ y, atol=1e-3)
    pa.config.set(PRECISION, "tf32")
    try:
        for _ in range(6):
            for got in (a @ b, pa.einsum("ij,jk->ik", a, b), pa.gemm(a, b)):
                assert (pa.asnumpy(got) == plain).all() == exact
            for got in (pa.matmul(a, b, precision="float32"), pa.gemm(a, b, precision="float32")):
                assert (pa.asnumpy(got) == plain).all()
            with pa.debug():
                np.testing.assert_allclose(pa.asnumpy(a @ b), plain, atol=1e-3)
    finally:
        pa.config.set(PRECISION, None)
    for _ in range(6):
        assert (pa.asnumpy(a @ b) == plain).all()
        assert (pa.asnumpy(pa.gemm(a, b, precision="tf32", activation="relu")) == np.maximum(plain, 0)).all() == exact


def test_nan_and_infinity_stay_in_their_rows_and_columns(device, use):
    x, y = integers((70, 68), 8) + 5, integers((68, 76), 9) + 5
    x[3, 64], y[10, 74] = np.nan, np.inf
    for tile in tiles_of(device):
        use(tile)
        got = pa.asnumpy(product(laid(x, "rows", "float32", device), laid(y, "rows", "float32", device)))
        assert np.isnan(got[3]).all()
        assert np.isposinf(np.delete(got[:, 74], 3)).all()
        assert np.isfinite(np.delete(np.delete(got, 3, 0), 74, 1)).all()


def test_bias_of_one_column_and_no_depth(device):
    """The transposed product is computed, whose steps are those of the product."""
    x, y = (pa.ones((64, 64), dtype="float32", device=device) for _ in "xy")
    for columns in (1, 3):
        bias = pa.asarray(np.arange(1, columns + 1, dtype=np.float32), device=device)
        got = pa.gemm(x[:40, :0], y[:0, :columns], bias=bias, precision="tf32")
        same(got, np.broadcast_to(np.arange(1.0, columns + 1), (40, columns)))


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "complex64"])
def test_other_types_have_their_precision(device, dtype):
    a = pa.asarray([[1, 2], [3, 4097]], dtype=dtype, device=device)
    same(product(a, a).real, pa.asnumpy((a @ a).real.astype("float64")))


def test_what_is_refused():
    a = pa.ones((2, 2), dtype="float32")
    for call in (pa.matmul, pa.gemm):
        with pytest.raises(
            ValueError, match=rf"expected precision to be 'float32', 'tf32' or None, got 'high'; .*{PRECISION}"
        ):
            call(a, a, precision="high")
    with pytest.raises(ValueError, match=r"expected float32 \(as accurate as its arithmetic\) or tf32"):
        pa.config.set(PRECISION, "highest")
