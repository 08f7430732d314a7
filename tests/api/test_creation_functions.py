"""Creation functions against NumPy's."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa
from pyarray import dtypes

POOL = st.sampled_from((dtypes.int32, dtypes.float32, dtypes.float64))
FEW = examples(40)
SHAPES = st.one_of(st.integers(0, 5), st.lists(st.integers(0, 4), max_size=3).map(tuple))


def same(a: pa.ndarray, expected: np.ndarray) -> None:
    assert a.dtype == expected.dtype
    assert a.shape == expected.shape
    np.testing.assert_array_equal(pa.asnumpy(a), expected)


@FEW
@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-4, 4).filter(bool), st.one_of(st.none(), POOL))
def test_arange_of_integers(start, stop, step, dtype):
    same(pa.arange(start, stop, step, dtype=dtype), np.arange(start, stop, step, dtype=dtype and dtype.numpy))


@examples(300)
@given(st.floats(-9, 9), st.floats(-9, 9), st.floats(0.1, 3), st.one_of(st.none(), POOL))
@example(-1.0, 0.0, 0.9950277024918829, dtypes.float32)  # the second number, which a sum would round away
def test_arange_of_floats(start, stop, step, dtype):
    same(pa.arange(start, stop, step, dtype=dtype), np.arange(start, stop, step, dtype=dtype and dtype.numpy))


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.kind != "b"], ids=str)
def test_ramps_of_every_dtype(dtype):
    same(pa.arange(3, 100, 7, dtype=dtype), np.arange(3, 100, 7).astype(dtype.numpy))
    if dtype not in dtypes.EXTENSIONS:  # NumPy's floor refuses them; they are float32 rounded
        same(pa.linspace(0, 50, 11, dtype=dtype), np.linspace(0, 50, 11, dtype=dtype.numpy))
    same(pa.ones((2, 3), dtype=dtype), np.ones((2, 3), dtype.numpy))
    same(pa.eye(3, 4, k=-1, dtype=dtype), np.eye(3, 4, k=-1, dtype=dtype.numpy))


def test_arange_ends():
    same(pa.arange(5), np.arange(5))
    same(pa.arange(5.0), np.arange(5.0))
    same(pa.arange(2, dtype="bool"), np.arange(2, dtype=bool))
    same(pa.arange(10, 0, -3, dtype="uint64"), np.arange(10, 0, -3, dtype="uint64"))
    same(pa.arange(0, 5, 0.5, dtype="int64"), np.arange(0, 5, 0.5, dtype="int64"))
    with pytest.raises(ZeroDivisionError, match="step must not be 0"):
        pa.arange(0, 1, 0)
    with pytest.raises(ValueError, match="no finite number of steps"):
        pa.arange(float("inf"))
    with pytest.raises(TypeError, match="stop is a real number, got str"):
        pa.arange("3")


@FEW
@given(
    st.floats(-1e9, 1e9),
    st.floats(-1e9, 1e9),
    st.integers(0, 40),
    st.booleans(),
    st.sampled_from((None, dtypes.float32, dtypes.int64)),
)
def test_linspace(start, stop, num, endpoint, dtype):
    expected = np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype and dtype.numpy)
    same(pa.linspace(start, stop, num, endpoint=endpoint, dtype=dtype), expected)


def test_linspace_ends():
    tiny = 5e-324
    same(pa.linspace(0, tiny, 5), np.linspace(0, tiny, 5))
    same(pa.linspace(0, 1 + 2j, 5), np.linspace(0, 1 + 2j, 5))
    same(pa.linspace(2, 3, 1, endpoint=False), np.linspace(2, 3, 1, endpoint=False))
    with pytest.raises(ValueError, match="0 or more, got -1"):
        pa.linspace(0, 1, -1)
    with pytest.raises(TypeError, match="complex numbers don't go into float64"):
        pa.linspace(0, 1j, 3, dtype=pa.float64)


@FEW
@given(SHAPES, POOL)
def test_filled(shape, dtype):
    same(pa.zeros(shape, dtype=dtype), np.zeros(shape, dtype.numpy))
    same(pa.ones(shape, dtype=dtype), np.ones(shape, dtype.numpy))
    same(pa.full(shape, 3, dtype=dtype), np.full(shape, 3, dtype.numpy))
    assert pa.empty(shape, dtype=dtype).shape == np.empty(shape).shape


@FEW
@given(numpy_views(dtype=pa.float32))
def test_like(x):
    a = pa.asarray(x)
    same(pa.zeros_like(a), np.zeros(x.shape, np.float32))
    same(pa.ones_like(a, dtype=pa.int32), np.ones(x.shape, np.int32))
    same(pa.full_like(a, 2.5), np.full(x.shape, 2.5, np.float32))
    assert pa.empty_like(a, order="C").flags["C_CONTIGUOUS"]
    steps = zip(x.shape, pa.empty_like(a).strides, np.empty_like(x).strides, strict=True)
    assert not x.size or all(ours == theirs for n, ours, theirs in steps if n > 1)


def test_types_of_full():
    assert [pa.full(1, v).dtype for v in (True, 1, 1.0, 1j)] == [pa.bool, pa.int64, pa.float64, pa.complex128]
    same(pa.full((2, 3), pa.asarray([1, 2, 3])), np.full((2, 3), [1, 2, 3]))


@FEW
@given(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 5)), st.integers(-6, 6))
def test_eye(rows, columns, k):
    same(pa.eye(rows, columns, k=k), np.eye(rows, columns, k=k))


@pytest.mark.parametrize("k", [2**80, -(2**80), 2**63 - 1, -(2**63), 2, 3, -3, -4])
def test_diagonals_far_outside(k):
    x = np.ones((2, 3, 2))
    near = max(min(k, 9), -9)
    same(pa.eye(3, 2, k=k), np.eye(3, 2, k=near))
    same(pa.tril(pa.asarray(x), k=k), np.tril(x, near))
    same(pa.triu(pa.asarray(x), k=k), np.triu(x, near))
    assert pa.linalg.diagonal(pa.asarray(x), offset=k).shape == np.diagonal(x, near, 1, 2).shape
    assert pa.linalg.trace(pa.asarray(x), offset=k).tolist() == np.trace(x, near, 1, 2).tolist()


@FEW
@given(numpy_views(dtype=pa.float64), st.integers(-4, 4))
def test_triangles_and_diagonals(x, k):
    a = pa.asarray(x)
    if x.ndim < 2:
        with pytest.raises(ValueError, match="2 or more dimensions"):
            pa.tril(a, k=k)
    else:
        same(pa.tril(a, k=k), np.tril(x, k))
        same(pa.triu(a, k=k), np.triu(x, k))
    if x.ndim in (1, 2):
        same(pa.diag(a, k), np.diag(x, k))


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_triangle_of_every_dtype(dtype):
    x = np.ones((3, 3), dtype.numpy)
    same(pa.tril(pa.asarray(x)), np.tril(np.ones((3, 3))).astype(dtype.numpy))


@FEW
@given(
    st.lists(numpy_views(dtype=pa.int64).filter(lambda x: x.ndim == 1), max_size=3),
    st.sampled_from(("xy", "ij")),
)
def test_meshgrid(xs, indexing):
    made = pa.meshgrid(*map(pa.asarray, xs), indexing=indexing)
    expected = np.meshgrid(*xs, indexing=indexing)
    assert len(made) == len(expected)
    for a, b in zip(made, expected, strict=True):
        same(a, b)
        assert a.flags.writeable


def test_meshgrid_errors():
    with pytest.raises(ValueError, match="'xy' or 'ij', got 'yx'"):
        pa.meshgrid(pa.ones(2), indexing="yx")
    with pytest.raises(ValueError, match="1-D arrays"):
        pa.meshgrid(pa.ones((2, 2)))
