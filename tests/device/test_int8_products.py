"""Matrix products of int8 and int16 into 32 bits, which tensor cores of some devices and pairs of words of CPUs
multiply, in every tile and layout, against NumPy's of int32. Elsewhere operands are cast first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from test_tensor_cores import LAYOUTS, laid, same, with_clusters

import pyarray as pa
from pyarray._core import clear_plans
from pyarray.kernels.matmul import gemm, gemm_mma, split_k

DTYPES = ("int8", "uint8")
SIZES = st.one_of(st.integers(0, 40), st.sampled_from([64, 100, 127, 128, 129, 200, 256, 257, 400]))


def tiles_of(device):
    units = pa.empty(0, device=device).device.driver.properties().get("tensor_cores")
    return with_clusters([tile for tile, _ in gemm_mma.TILES.get((units, 1), ())]) or [None]


def drawn(rng, shape, dtype):
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(np.int32)


@examples(6)
@given(
    data=st.data(), dtype=st.sampled_from([*DTYPES, "int16"]), result=st.sampled_from(["int32", "uint32"]),
    m=SIZES, n=SIZES, k=SIZES,
)  # fmt: skip
def test_drawn(device, data, dtype, result, m, n, k):
    """Also without copies: then the device loads what isn't along the depth by elements. Sums of int16 wrap around."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    batch = data.draw(st.sampled_from([(), (), (3,), (2, 2), (2, 1, 2, 2)]))
    x, y = (drawn(rng, (*batch, *s), dtype) for s in ((m, k), (k, n)))
    a, b = (laid(v, data.draw(st.sampled_from(LAYOUTS)), dtype, device) for v in (x, y))
    out = laid(np.full((*batch, m, n), 7), data.draw(st.sampled_from(LAYOUTS)), result, device)
    tile, copies = data.draw(st.sampled_from(tiles_of(device))), data.draw(st.booleans())
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
        pa.gemm(a, b, dtype=result, out=out)
    clear_plans()
    same(out, (x @ y).astype(result))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_with_a_last_step_and_of_several_blocks(device, dtype, monkeypatch):
    """In calls that are repeated, too."""
    monkeypatch.setattr(gemm_mma.Tile, "blocks", lambda tile, c: tile.cluster)
    rng = np.random.default_rng(3)
    x, y, z = drawn(rng, (2, 264, 136), dtype), drawn(rng, (136, 520), dtype), np.arange(520)
    a, b = (laid(v, "rows", dtype, device) for v in (x, y))
    want = 3 * (x @ y) + z
    for _ in range(5):
        same(pa.gemm(a, b, dtype="int32"), x @ y)
        got = pa.gemm(a, b, alpha=3, bias=pa.asarray(z, device=device), activation="relu", dtype="int32")
        same(got, np.maximum(want, 0))
    clear_plans()


@pytest.mark.slow
def test_sums_wrap(device):
    """At 32 bits, as int32 does."""
    a = pa.full((2, 1 << 17), -128, dtype="int8", device=device)
    assert pa.gemm(a, a.T, dtype="int32").tolist() == [[-(1 << 31)] * 2] * 2


@pytest.mark.slow
def test_only_where_it_is_asked(device):
    """Bytes times bytes are bytes, as in NumPy, and other types are what they were."""
    rng = np.random.default_rng(4)
    x, y = drawn(rng, (70, 40), "int8"), drawn(rng, (40, 50), "int8")
    a, b = (laid(v, "rows", "int8", device) for v in (x, y))
    same(a @ b, (x @ y).astype(np.int8))
    same(pa.gemm(a, b), (x @ y).astype(np.int8))
    for dtype in ("int16", "int64", "uint32", "float32"):
        same(pa.gemm(a, b, dtype=dtype), (x @ y).astype(dtype))
    same(pa.gemm(a, laid(abs(y), "rows", "uint8", device), dtype="int32"), x @ abs(y))
    with pa.debug():
        same(pa.gemm(a, b, dtype="int32"), x @ y)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dot_products_wrap(device, dtype, debug):
    """Sums of products of bytes in bytes: LLVM 19 crashed at what it made of these loops."""
    rng = np.random.default_rng(6)
    for shape in ((3,), (40,), (5, 19)):
        x, y = (drawn(rng, shape, dtype).astype(dtype) for _ in range(2))
        a, b = (pa.asarray(v, device=device) for v in (x, y))
        with pa.debug(debug):
            got = pa.asnumpy(pa.vecdot(a, b))
        np.testing.assert_array_equal(got, (x * y).sum(axis=-1, dtype=dtype))
