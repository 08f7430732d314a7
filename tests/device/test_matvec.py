"""Products with a matrix of one row or one column, against NumPy: a grid has a kernel of its own for them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, known_to_numpy

import pyarray as pa
from pyarray.kernels.matmul import gemv
from pyarray.kernels.matmul import thresholds as th

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int32",
    "uint64",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
SIZES = st.sampled_from((1, 2, 7, 8, 31, 64, 127, 128, 257, 512, 1024, 1100)) | st.integers(1, 700)


def drawn(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, shape)
    if dtype == "bool":
        return x > 3
    if dtype.startswith("complex"):
        return (x + 1j * rng.integers(-4, 5, shape)).astype(dtype)
    return x.astype(pa.dtypes.asdtype(dtype).numpy)


LAYOUTS = {
    "as it is": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(np.swapaxes(x, -1, -2)).swapaxes(-1, -2),
    "reversed": lambda x: x[..., ::-1, ::-1],
    "off": lambda x: np.pad(x, [(0, 0)] * (x.ndim - 2) + [(1, 2), (1, 2)])[..., 1:-2, 1:-2],
    "stepped": lambda x: np.repeat(np.repeat(x, 2, -1), 3, -2)[..., 1::3, ::2],
    "repeated": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
}


def on(device, x):
    """The array as it lies."""
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    place = x.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return pa.asarray(np.array(base.reshape(-1)), device=device)._view(place, x.shape, x.strides)


def product(a, b):
    kind = a.dtype
    if kind.kind == "b":
        return (a.astype(int) @ b.astype(int)) > 0
    wide = {"f": "f8", "V": "f8", "c": "c16"}.get(kind.kind, kind)
    return (a.astype(wide) @ b.astype(wide)).astype(kind)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@examples(6)
@given(data=st.data())
def test_rows_and_columns(device, dtype, data):
    """Sums are small whole numbers, so every order of addition gives the same."""
    n, k = data.draw(SIZES), data.draw(SIZES)
    batch = data.draw(st.sampled_from(((), (3,), (2, 1))))
    few = batch if data.draw(st.booleans()) else ()
    shapes = ((*few, 1, k), (*batch, k, n)) if data.draw(st.booleans()) else ((*batch, n, k), (*few, k, 1))
    seed = data.draw(st.integers(0, 99))
    a, b = (
        LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)))](drawn(s, dtype, seed + i)) for i, s in enumerate(shapes)
    )
    got = pa.matmul(on(device, a), on(device, b))
    want = product(a, b)
    assert got.shape == want.shape
    np.testing.assert_array_equal(known_to_numpy(pa.asnumpy(got)), known_to_numpy(want))


@pytest.mark.parametrize("dtype", DTYPES)
@examples(6)
@given(data=st.data())
def test_stacks_of_tiny_matrices(device, dtype, data):
    """Whose rows a part of a warp adds up, or which are multiplied without tiles."""
    n, k, count = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 70)), data.draw(st.sampled_from([3, 50]))
    shapes = ((count, 1, k), (count, k, n)) if data.draw(st.booleans()) else ((count, n, k), (count, k, 1))
    seed = data.draw(st.integers(0, 99))
    a, b = (
        LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)))](drawn(s, dtype, seed + i)) for i, s in enumerate(shapes)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(th, "GEMV_TINY_LEAST", 0)
        got = pa.matmul(on(device, a), on(device, b))
    np.testing.assert_array_equal(known_to_numpy(pa.asnumpy(got)), known_to_numpy(product(a, b)))


def test_into_a_strided_result_and_debug(device):
    a, b = drawn((300, 500), "float32", 1), drawn((500, 1), "float32", 2)
    x, y = pa.asarray(a, device=device), pa.asarray(b, device=device)
    out = pa.zeros((300, 3), dtype="float32", device=device)
    pa.matmul(x, y, out=out[:, 1:2])
    expected = np.zeros((300, 3), np.float32)
    expected[:, 1:2] = a @ b
    np.testing.assert_array_equal(pa.asnumpy(out), expected)
    with pa.debug():
        np.testing.assert_array_equal(pa.asnumpy(x @ y), a @ b)
    np.testing.assert_array_equal(pa.asnumpy(x @ y[:, 0]), a @ b[:, 0])
    np.testing.assert_array_equal(pa.asnumpy(y[:, 0] @ x.T), b[:, 0] @ a.T)
    assert pa.matmul(x[:, :0], y[:0]).shape == (300, 1)
    assert not pa.asnumpy(pa.matmul(x[:, :0], y[:0])).any()


def test_the_same_bits_each_time(device):
    a = np.random.default_rng(0).standard_normal((1, 70000)).astype("float32")
    b = np.random.default_rng(1).standard_normal((70000, 40)).astype("float32")
    x, y = pa.asarray(a, device=device), pa.asarray(b, device=device)
    first = pa.asnumpy(x @ y)
    np.testing.assert_allclose(first, a.astype("f8") @ b, rtol=1e-4, atol=1e-2)
    for _ in range(7):
        np.testing.assert_array_equal(pa.asnumpy(x @ y), first)


@pytest.mark.parametrize(("layout", "few"), [("as it is", 0), ("off", 3)])
@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32", "complex128"])
def test_many_rows_and_a_long_depth(device, dtype, layout, few):
    """So many rows that the depth is cut into few parts, or none."""
    lanes = 32 * max(16 // pa.dtypes.asdtype(dtype).itemsize, 1)
    for batch, groups in (((2,), 8), ((), 32), ((), 128)):
        n = lanes * groups - few
        a, b = drawn((*batch, 1, 1100), dtype, 1), LAYOUTS[layout](drawn((*batch, 1100, n), dtype, 2))
        got = pa.matmul(on(device, a), on(device, b))
        np.testing.assert_array_equal(known_to_numpy(pa.asnumpy(got)), known_to_numpy(product(a, b)))


@pytest.mark.parametrize("dtype", DTYPES)
@examples(4)
@given(data=st.data())
def test_any_schedule(device, dtype, data):
    """A row times a matrix, by whatever schedule another number of processors would have, and with fewer blocks than it
    asks for, as a grid may have."""
    vector = max(16 // pa.dtypes.asdtype(dtype).itemsize, 1)
    lanes = data.draw(st.sampled_from([n for n in (0, 8, 16, 32, 64, 128, 512) if n * vector <= gemv.THREADS]))
    team, most = data.draw(st.sampled_from([1, 2, 4, 8, 16, 32])), data.draw(st.integers(1, 1 << 8))
    parts, k, n = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 1500)), data.draw(SIZES)

    def schedule(rows, depth, count, *rest):
        unit = 1 if lanes else vector  # vectors along the depth begin with a part
        part_depth = -(-depth // (parts * unit)) * unit
        cut = -(-depth // part_depth)
        teams = gemv.THREADS // team
        blocks = -(-rows // (lanes * vector)) * count * cut if lanes else -(-rows * count * cut // teams)
        return min(blocks, most) * gemv.THREADS, cut, part_depth, lanes, team

    layout = LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)))]
    a, b = drawn((2, 1, k), dtype, k), layout(drawn((2, k, n + 1), dtype, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemv, "_schedule", schedule)
        got = pa.matmul(on(device, a), on(device, b))
    np.testing.assert_array_equal(known_to_numpy(pa.asnumpy(got)), known_to_numpy(product(a, b)))


@given(
    st.integers(1, 70000), st.integers(1, 70000), st.integers(1, 9), st.sampled_from((1, 2, 4, 8, 16)),
    st.booleans(), st.booleans(), st.integers(1, 300),
)  # fmt: skip
def test_a_schedule_covers_the_matrix(rows, depth, count, size, across, has_vectors, processors):
    threads, parts, part_depth, lanes, team = gemv._schedule(rows, depth, count, size, across, has_vectors, processors)
    vector = max(16 // size, 1)
    assert team == gemv.WARP if across else team == 1 or team // 2 * vector < depth
    assert team == gemv.WARP or 4 * team * vector >= depth
    assert (parts - 1) * part_depth < depth <= parts * part_depth
    assert parts <= th.GEMV_MAX_PARTS
    assert across or parts == 1 or part_depth % vector == 0  # vectors of a part are aligned as those of the row
    width = lanes * vector
    assert (lanes in (8, 16, 32, 64, 128, 256, 512) and width <= gemv.THREADS) if across else lanes == 0
    blocks = -(-rows // width) * count * parts if across else -(-rows * count * parts // (gemv.THREADS // team))
    assert threads == blocks * gemv.THREADS


def test_narrow_strips_need_no_parts():
    for size, lanes in ((2, 8), (4, 8), (8, 16)):
        assert gemv._schedule(8192, 8192, 1, size, True, True, 132)[1:4] == (1, 8192, lanes)
    assert gemv._schedule(4096, 8192, 1, 2, True, True, 132)[3] == 32  # too few
    assert gemv._schedule(8192, 256, 1, 2, True, True, 132)[3] == 32  # too short
    assert gemv._schedule(8192, 8192, 1, 2, True, False, 132)[3] == 32  # without vectors
    assert gemv._schedule(8191, 8192, 1, 2, True, True, 132)[3] == 32
    assert gemv._schedule(10000, 3, 7, 4, True, True, 132)[3] == 128  # a line of threads for each of the depth
