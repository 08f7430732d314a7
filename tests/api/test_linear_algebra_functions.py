"""Matrix products against NumPy's: every dtype, rank, layout and size class, `out=`, debug mode, errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import device_subset, examples

import pyarray as pa
from pyarray import dtypes
from pyarray.dtypes import ALL

FEW = examples(40)


def reference(x, y, dtype):
    """In a wider type where rounding matters."""
    if dtype.kind == "f":
        return np.matmul(x.astype(np.float64), y.astype(np.float64))
    return np.matmul(x, y)


EPS = {
    "float16": 1e-3, "bfloat16": 8e-3, "float8_e4m3fn": 0.125, "float8_e5m2": 0.25, "float32": 1e-6, "complex64": 3e-6,
}  # fmt: skip


def check(a, b, x, y):
    result = pa.matmul(a, b)
    expected = reference(x, y, a.dtype)
    assert result.shape == expected.shape
    assert result.dtype is a.dtype
    ours = pa.asnumpy(result)
    if a.dtype.kind in "biu":
        np.testing.assert_array_equal(ours, expected)
        return
    eps = EPS.get(a.dtype.name, 1e-14)
    kind = np.complex128 if a.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(ours.astype(kind), expected, rtol=4 * eps, atol=eps * max(x.shape[-1:] or 1))


def drawn(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.random(shape) < 0.3
    if dtype.kind in "iu":
        info = np.iinfo(dtype.numpy)
        return rng.integers(info.min, info.max, shape, dtype.numpy, endpoint=True)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype(dtype):
    for m, k, n in ((1, 1, 1), (3, 5, 4), (17, 33, 19), (40, 7, 65)):
        x, y = drawn((m, k), dtype), drawn((k, n), dtype, 1)
        check(pa.asarray(x), pa.asarray(y), x, y)
        check(pa.asarray(x.T.copy()).T, pa.asarray(y)[:, ::-1], x, y[:, ::-1])


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.int32], ids=str)
def test_larger(dtype):
    x, y = drawn((257, 129), dtype), drawn((129, 65), dtype, 1)
    check(pa.asarray(x), pa.asarray(y), x, y)
    check(pa.asarray(y).T, pa.asarray(x).T, y.T, x.T)
    check(pa.asarray(x)[::-2, 1:], pa.asarray(y)[1:, ::3], x[::-2, 1:], y[1:, ::3])


RANKS = [
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((4, 1, 2, 3), (5, 3, 2)),
    ((3,), (5, 3, 2)),
    ((5, 2, 3), (3,)),
    ((2, 0, 2, 3), (3, 2)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((0,), (0,)),
    ((2, 3), (3, 0)),
    ((4, 2, 0), (0, 3)),
    ((0,), (0, 2)),
]


@pytest.mark.parametrize("shapes", RANKS, ids=str)
def test_ranks(shapes):
    x, y = (drawn(shape, dtypes.int64, k) % 100 for k, shape in enumerate(shapes))
    for _ in range(2):
        check(pa.asarray(x), pa.asarray(y), x, y)


@FEW
@given(st.data())
def test_layouts(data):
    def view(rows, columns):
        x = np.arange(400, dtype=np.float64).reshape(20, 20) % 13
        step = st.sampled_from([-3, -2, -1, 1, 2, 3])
        x = x[:: data.draw(step), :: data.draw(step)][:rows, :columns]
        if data.draw(st.booleans()):
            x = np.ascontiguousarray(x.T).T
        if data.draw(st.booleans()):
            x = np.broadcast_to(x[:1], x.shape)
        return x

    m, k, n = (data.draw(st.integers(0, 6)) for _ in range(3))
    x, y = view(m, k), view(k, n)
    check(pa.asarray(x), pa.asarray(y), x, y)
    stack = np.broadcast_to(x, (3, m, k))
    check(pa.asarray(stack), pa.asarray(y), stack, y)


def test_out():
    x, y = drawn((4, 4), dtypes.float32), drawn((4, 4), dtypes.float32, 1)
    a, b = pa.asarray(x), pa.asarray(y)
    for make in (
        lambda: np.zeros((4, 4), np.float32),
        lambda: np.zeros((4, 4), np.float32).T,
        lambda: np.zeros((8, 4), np.float32)[::-2],
        lambda: np.zeros((4, 4), np.float64),
        lambda: np.zeros((4, 4), np.complex64),
    ):
        host = make()
        out = pa.asarray(host)
        assert pa.matmul(a, b, out=out) is out
        np.testing.assert_allclose(host, x @ y, rtol=1e-5, atol=1e-6)
    for place in (lambda c: c, lambda c: c.T, lambda c: c[::-1]):
        c = pa.array(x)
        pa.matmul(c, b, out=place(c))
        np.testing.assert_allclose(pa.asnumpy(place(c)), x @ y, rtol=1e-5, atol=1e-6)
        c = pa.array(y)
        pa.matmul(a, c, out=place(c))
        np.testing.assert_allclose(pa.asnumpy(place(c)), x @ y, rtol=1e-5, atol=1e-6)
    c = pa.array(x)
    pa.matmul(c, c, out=c)
    np.testing.assert_allclose(pa.asnumpy(c), x @ x, rtol=1e-5, atol=1e-6)
    fixed = pa.zeros((4, 4), dtype=pa.float32)
    fixed.setflags(write=False)
    for wrong, error in (
        (fixed, ValueError),
        (pa.zeros((4, 5)), ValueError),
        (pa.zeros((4, 4), dtype="int8"), TypeError),
    ):
        with pytest.raises(error, match="matmul"):
            pa.matmul(a, b, out=wrong)
    with pytest.raises(TypeError, match="out="):
        pa.matmul(a, b, out=x)


@pytest.mark.parametrize("shift", [-64, -63, -1, 0, 1, 8, 63, 64])
def test_out_in_memory_of_an_operand(shift):
    """Products that came before take a quick way, which must see what overlaps: also where NumPy's memory is
    imported twice, so that nothing tells but addresses."""
    turn = np.eye(8)[::-1].copy()
    for _ in range(2):
        memory = np.arange(200.0)
        x, z = memory[64:128].reshape(8, 8), memory[64 + shift :][:64].reshape(8, 8)
        want = x @ turn
        a, b, out = (pa.asarray(v, copy=False) for v in (x, turn, z))
        assert pa.matmul(a, b, out=out) is out
        np.testing.assert_array_equal(z, want)
        own = pa.array(np.arange(200.0))
        a, out = (own[start : start + 64].reshape(8, 8) for start in (64, 64 + shift))
        assert pa.matmul(a, b, out=out) is out
        np.testing.assert_array_equal(pa.asnumpy(out), want)


def test_mixed_types_promote():
    x, y = drawn((3, 4), dtypes.int16), drawn((4, 2), dtypes.float32)
    assert pa.matmul(pa.asarray(x), pa.asarray(y)).dtype == pa.float32
    np.testing.assert_allclose(pa.asnumpy(pa.asarray(x) @ pa.asarray(y)), x.astype(np.float64) @ y, rtol=1e-4)
    with pytest.raises(TypeError, match="uint64"):
        pa.asarray(x) @ pa.zeros((4, 2), dtype=pa.uint64)


def test_errors_name_both_shapes():
    a = pa.ones((2, 3))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 3\)"):
            a @ a
        assert (a @ a.T).shape == (2, 2)
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(4,\)"):
        a @ pa.ones(4)
    with pytest.raises(ValueError, match="broadcast"):
        pa.ones((2, 2, 3)) @ pa.ones((3, 3, 2))
    with pytest.raises(ValueError, match="0-d"):
        pa.matmul(a, pa.asarray(1.0))


def test_debug_gives_the_same():
    x, y = drawn((3, 17, 5), dtypes.float32), drawn((5, 9), dtypes.float32, 1)
    a, b = pa.asarray(x), pa.asarray(y)
    plain = pa.asnumpy(a @ b)
    with pa.debug():
        np.testing.assert_allclose(pa.asnumpy(a @ b), plain, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(pa.asnumpy(a[0] @ b), plain[0], rtol=1e-5, atol=1e-6)


def test_broken_launches_are_caught():
    from pyarray.kernels.matmul.gemm import gemm

    a, c = pa.ones((4, 4)), pa.zeros((4, 4))
    wrong = a._view(0, (4, 4), (1 << 20, 8))
    with pa.debug():
        with pytest.raises(pa.BoundsError, match="matmul"):
            gemm(c, wrong, a)
        assert pa.all(a @ a == 4.0)


def test_matrix_transpose():
    x = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_array_equal(pa.asnumpy(pa.matrix_transpose(pa.asarray(x))), np.swapaxes(x, 1, 2))
    with pytest.raises(ValueError, match="dimensions"):
        pa.matrix_transpose(pa.ones(3))


def test_trace_of_an_array_is_numpys(device):
    x = np.arange(24).reshape(2, 3, 4)
    ways = ({}, {"offset": 1}, {"offset": -1, "axis1": 1, "axis2": 2}, {"axis1": -1, "axis2": 0})
    for turn, n in enumerate((x, x[:, ::-1], x > 5, x * 1j, x[:0])):
        ours = pa.asarray(n, device=device)
        for options in device_subset(ways, turn, device):
            expected = np.trace(n, **options)
            for found in (pa.trace(ours, **options), ours.trace(**options)):
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found.get(), expected)
    ours, out = pa.asarray(x, device=device), pa.zeros(4, device=device)
    assert pa.trace(ours, dtype="float32").dtype == pa.float32
    assert pa.trace(ours, 1, 0, 1, None, out) is out
    assert out.tolist() == np.trace(x, 1).tolist()
    assert np.trace(ours, axis1=1, axis2=2).tolist() == np.trace(x, axis1=1, axis2=2).tolist()
    with pytest.raises(ValueError, match=r"out= has shape \(4,\), the result has shape \(\)"):
        pa.trace(ours[0], out=out)
    with pytest.raises(TypeError, match="the sum of a diagonal needs an array; without one, trace"):
        pa.trace(offset=1)
    with pytest.raises(TypeError, match=r"trace\(\) has no keyword 'ofset'; did you mean 'offset'"):
        pa.trace(ours, ofset=1)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.slow
def test_short_rows_times_a_vector(dtype, device):
    rng = np.random.default_rng(0)
    for length in (1, 3, 8, 9) if dtype == "float32" else (2, 9):
        x, y = (rng.integers(0, 9, shape).astype(dtype) for shape in ((70_000 // length, length), 2 * length))
        a, b = pa.asarray(x, device=device), pa.asarray(y, device=device)
        for found, expected in (
            (a @ b[::2], x @ y[::2]), (a[::-1] @ b[::-2], x[::-1] @ y[::-2]),
            (a @ b[:length], x @ y[:length]),
            (pa.matmul(a, b[:length], out=pa.empty(x.shape[0], dtype=dtype, device=device)), x @ y[:length]),
            (a.astype("float64") @ b[:length], x.astype(float) @ y[:length]),
        ):  # fmt: skip
            np.testing.assert_array_equal(pa.asnumpy(found), expected)
            assert found.dtype == expected.dtype
