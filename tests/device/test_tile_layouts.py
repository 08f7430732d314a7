"""Products of tiles of arrays in all layouts, on every device, against NumPy: what a tile is copied from may have its
neighbours in memory along the tile's rows, across them, or nowhere."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from test_tensor_cores import LAYOUTS, integers, laid
from test_tile_narrow_products import product

import pyarray as pa
from pyarray.lang.dialect import DIALECTS

SUMS = {
    "float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64", "int8": "int32",
    "int32": "int32",
}  # fmt: skip
TILES = (64, 64, 32), (64, 128, 16), (128, 48, 64), (5, 12, 7)


@pa.kernel
def of_both(c, a, b, rows: pa.constexpr, columns: pa.constexpr, depth: pa.constexpr):
    """An operand is also read by its elements."""
    for i, j in pa.tiles(c, (rows, columns)):
        total = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[1], depth):
            x = a[i, k]
            y = b[1, k, j]
            total += x @ y
            total += pa.float32(x).sum(axis=1)[:, None]
        c[i, j] = total


@pa.kernel
def nested(c, a, b, d, e, depth: pa.constexpr):
    """A loop that loads ahead in another one, whose operand is used behind it."""
    for i, j in pa.tiles(c, (64, 64)):
        total = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[1], depth):
            x = a[i, k]
            y = b[k, j]
            for p in pa.tiles(d.shape[1], depth):
                total += d[i, p] @ e[p, j]
            total += x @ y
        c[i, j] = total


SIZES = st.one_of(st.integers(1, 20), st.sampled_from([63, 64, 65, 127, 128, 130, 200]))


@examples(25)
@given(data=st.data(), m=SIZES, k=st.one_of(st.just(0), SIZES), n=SIZES)
def test_drawn(device, data, m, k, n):
    dtype = data.draw(st.sampled_from(list(SUMS)))
    tile = data.draw(st.sampled_from(TILES[::3] if dtype == "float64" else TILES))  # which a block has room for
    x, y = integers((m, k), 1), integers((k, n), 2)
    a, b = (laid(v, data.draw(st.sampled_from(LAYOUTS)), dtype, device) for v in (x, y))
    c = laid(np.full((m, n), 7, np.float32), data.draw(st.sampled_from(LAYOUTS)), SUMS[dtype], device)
    with pa.debug(data.draw(st.sampled_from([False, False, True]))):
        product(c, a, b, getattr(pa, SUMS[dtype]), *tile)
    np.testing.assert_array_equal(pa.asnumpy(c), x @ y)


@pytest.mark.parametrize("turned", [False, True])
def test_complex_numbers_that_are_aligned_as_their_parts(device, turned, monkeypatch):
    if device.startswith("hip"):
        monkeypatch.setitem(DIALECTS, "hip", DIALECTS["cuda"])
    x, y = integers((70, 50), 1), integers((50, 66), 2)
    a, b = (pa.zeros(2 * v.size + 1, "float32", device=device)[1:].view("complex64") for v in (x, y))
    a, b = (v.reshape(w.shape[::-1]).T if turned else v.reshape(w.shape) for v, w in ((a, x), (b, y)))
    a[...], b[...] = (pa.asarray(v * (1 + 1j), device=device) for v in (x, y))
    c = pa.empty((70, 66), "complex64", device=device)
    product(c, a, b, pa.complex64, 32, 32, 16)
    np.testing.assert_array_equal(pa.asnumpy(c), x @ y * 2j)


@pytest.mark.parametrize("layouts", [("rows", "columns"), ("columns", "rows"), ("columns", "columns")], ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_an_operand_that_is_read_otherwise_too(device, dtype, layouts, monkeypatch):
    if device.startswith("hip"):
        monkeypatch.setitem(DIALECTS, "hip", DIALECTS["cuda"])
    x, y = integers((150, 100), 1), integers((2, 100, 70), 2)
    a, b = (laid(v, layout, dtype, device) for v, layout in zip((x, y), layouts, strict=True))
    c = pa.empty((150, 70), dtype="float32", device=device)
    of_both(c, a, b, 64, 64, 32)
    want = x @ y[1] + x.sum(1, keepdims=True)
    np.testing.assert_array_equal(pa.asnumpy(c), want)


@pytest.mark.parametrize("layouts", list(itertools.product(("odd rows", "columns"), repeat=4)), ids=str)
@pytest.mark.parametrize(("dtype", "depth"), [("float16", 32), ("float32", 16)])
def test_a_loop_in_a_loop(device, dtype, depth, layouts, monkeypatch):
    if device.startswith("hip"):  # on the emulated device by the text for matrix instructions
        monkeypatch.setitem(DIALECTS, "hip", DIALECTS["cuda"])
    shapes = (70, 64), (64, 130), (70, 40), (40, 130)
    x, y, z, w = (integers(shape, seed) for seed, shape in enumerate(shapes))
    operands = (laid(v, layout, dtype, device) for v, layout in zip((x, y, z, w), layouts, strict=True))
    c = pa.empty((70, 130), dtype="float32", device=device)
    nested(c, *operands, depth)
    np.testing.assert_array_equal(pa.asnumpy(c), x @ y + 64 // depth * (z @ w))
