"""Products of float32 by parts of bfloat16, where a device has them: in every tile and layout sums of integers, which
are exact, and the errors of other numbers next to those of float32's own arithmetic. Elsewhere the same numbers come
from the only kernel."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from test_tensor_cores import LAYOUTS, integers, laid, same

import pyarray as pa
from pyarray._core import clear_plans
from pyarray.errors import OutOfMemoryError
from pyarray.kernels.matmul import gemm_bf16x6

TILES = [tile for tile, _ in gemm_bf16x6.TILES]
SIZES = st.one_of(st.integers(1, 40), st.sampled_from([64, 100, 127, 128, 129, 200, 256, 257]))


@pytest.fixture
def use(monkeypatch):
    """Products of all sizes take this tile."""

    def patch(tile):
        monkeypatch.setattr(gemm_bf16x6, "_faster_tile", lambda *sizes: tile)
        clear_plans()

    yield patch
    clear_plans()


def on(device, *arrays):
    return [pa.asarray(x, device=device) for x in arrays]


def errors(got, x, y):
    """In places of float32, of the largest sum that rounding could make an error in."""
    wide, scale = x.astype(np.float64) @ y, np.abs(x).astype(np.float64) @ np.abs(y)
    return np.abs(pa.asnumpy(got) - wide) / np.maximum(scale, np.finfo(float).tiny) * 2**24


@examples(10)
@given(data=st.data(), m=SIZES, n=SIZES, k=SIZES)
def test_drawn(device, data, m, n, k):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    lead = data.draw(st.sampled_from([(), (), (3,), (2, 2), (2, 1, 2)]))
    most = data.draw(st.sampled_from([4, 500, 70_000]))  # one, two and three parts
    x = rng.integers(-most, most + 1, (*lead, m, k)).astype(np.float32)
    y = rng.integers(-4, 5, (*data.draw(st.sampled_from([lead, ()])), k, n)).astype(np.float32)
    a, b, out = (
        laid(v, data.draw(st.sampled_from(LAYOUTS)), "float32", device)
        for v in (x, y, np.full((*lead, m, n), 7, np.float32))
    )
    with pytest.MonkeyPatch.context() as patch:
        tile = data.draw(st.sampled_from(TILES))
        patch.setattr(gemm_bf16x6, "_faster_tile", lambda *sizes: tile)
        clear_plans()
        if data.draw(st.booleans()):
            pa.matmul(a, b, out=out)
            same(out, x @ y)
        else:
            pa.gemm(a, b, alpha=2, bias=out, activation="relu", out=out)
            same(out, np.maximum(2 * (x @ y) + 7, 0))
    clear_plans()


KINDS = {
    "normal": lambda rng, s: rng.standard_normal(s),
    "positive": lambda rng, s: rng.uniform(1, 2, s),
    "one number": lambda rng, s: np.full(s, 1.23456789),
    "many sizes": lambda rng, s: rng.standard_normal(s) * 2.0 ** rng.integers(-20, 20, s),
    "odd bits": lambda rng, s: rng.integers(1 << 23, 1 << 24, s) | 0x8081,
}


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_those_of_float32(device, use, kind):
    """About as large as those of sums in order, one by one, at most."""
    rng = np.random.default_rng(3)
    for m, depth, n in ((64, 40, 70), (130, 2000, 140), (20, 9000, 24)):
        x, y = (KINDS[kind](rng, s).astype(np.float32) for s in ((m, depth), (depth, n)))
        in_order = np.zeros((m, n), np.float32)
        for k in range(depth):
            in_order += x[:, k, None] * y[k]
        allowed = 1.5 * errors(in_order, x, y).max() + 2
        for tile in TILES:
            use(tile)
            a, b = on(device, x, y)
            assert errors(a @ b, x, y).max() <= allowed


def test_numbers_out_of_range(device, use):
    """One number decides for the product: its kernel is then that of float32."""
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((130, 70), (70, 140)))
    for tile, value in itertools.product(TILES, (np.inf, -np.inf, np.nan, 1e30, 3e38, 1e-30, 1e-40, -0.0)):
        use(tile)
        for left in (True, False):
            u, v = x.copy(), y.copy()
            (u if left else v)[61, 7] = value
            found = pa.asnumpy(pa.matmul(*on(device, u, v)))
            with np.errstate(all="ignore"):
                wide, scale = u.astype(float) @ v, np.abs(u).astype(float) @ np.abs(v)
                wanted = wide.astype(np.float32)
                finite, off = np.isfinite(wanted), np.abs(found - wide)
            np.testing.assert_array_equal(found[~finite], wanted[~finite])
            assert (off[finite] <= 2e-6 * scale[finite]).all()


def test_products_at_the_ends_of_the_range(device, use):
    for tile, (low, high) in itertools.product(TILES, ((2.0**-48, 2.0**50), (2.0**-48, 2.0**-48), (2.0**50, 2.0**50))):
        use(tile)
        x, y = (np.float32(v) * (1 + integers((64, 64), seed) / 2**20).astype(np.float32)
                for seed, v in enumerate((low, high)))  # fmt: skip
        assert errors(pa.matmul(*on(device, x, y)), x, y).max() <= 16


def test_repeated_calls_see_the_numbers_of_each(device, use):
    """The same arrays, in range and out of it, by plans and by a graph."""
    use(TILES[1])
    a, b = on(device, integers((72, 64), 5), integers((64, 136), 6))
    out, again = (pa.empty((72, 136), dtype="float32", device=device) for _ in range(2))
    with pa.capture(a=a) as graph:
        pa.matmul(a, b, out=again)
    for value in (1.0, 1e30, 2.0, np.inf, 3.0):
        a[5, 6] = value
        for _ in range(3):
            pa.matmul(a, b, out=out)
            again[...] = 0
            graph.launch()
            with np.errstate(all="ignore"):
                wanted = pa.asnumpy(a) @ pa.asnumpy(b)
            for found in (out, again):
                np.testing.assert_allclose(pa.asnumpy(found), wanted, rtol=1e-6)


def test_nothing_beside_the_result_is_written(device, use):
    x, y = integers((70, 20), 4), integers((20, 76), 5)
    for tile, how in itertools.product(TILES, ("rows", "columns")):
        use(tile)
        frame = pa.full((72, 80), 9, dtype="float32", device=device)
        pa.matmul(laid(x, "rows", "float32", device), laid(y, how, "float32", device), out=frame[1:71, 2:78])
        want = np.full((72, 80), 9.0)
        want[1:71, 2:78] = x @ y
        same(frame, want)


def test_without_memory_for_the_parts(device, use, monkeypatch):
    use(TILES[0])

    def none(*_):
        raise OutOfMemoryError("no memory", 1)

    monkeypatch.setattr(gemm_bf16x6, "_empty_parts", none)
    x, y = integers((70, 20), 4), integers((20, 76), 5)
    for _ in range(3):
        same(pa.matmul(*on(device, x, y)), x @ y)
        same(pa.gemm(*on(device, x, y), activation="relu"), np.maximum(x @ y, 0))


def test_which_products_are_split():
    """Large ones; not those whose time is that of reading an operand, or of a small depth."""
    choose = gemm_bf16x6._faster_tile.__wrapped__
    for size in (1024, 2048, 4096, 8192):
        assert choose(size, size, size, 1, 2 * size**2, 132).bf16x6
    for m, n, k in ((64, 64, 64), (4096, 4096, 16), (16, 8192, 8192), (256, 256, 256), (8192, 8192, 0)):
        assert choose(m, n, k, 1, m * k + k * n, 132) is None
    assert choose(1 << 31, 1024, 1024, 1, 1 << 41, 132) is None
    for matrices in (1 << 28, (1 << 28) + 5):  # more tiles than its kernel counts
        assert choose(2, 2, 64, matrices, 1 << 22, 132) is None
        assert choose(8, 8, 128, matrices, 1 << 22, 132) is None
