"""take, take_along_axis, where, nonzero and count_nonzero against NumPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import examples, numpy_views

import pyarray as pa

FEW = examples(25)
VIEWS = numpy_views(dtype=pa.float32)


def same(a: pa.ndarray, expected: np.ndarray) -> None:
    assert a.dtype == expected.dtype
    assert a.shape == expected.shape
    np.testing.assert_array_equal(pa.asnumpy(a), expected)


@examples(13)
@given(VIEWS.filter(lambda x: x.ndim and x.size), st.data())
def test_take(x, data):
    a, axis = pa.asarray(x), data.draw(st.integers(-x.ndim, x.ndim - 1))
    n = x.shape[axis]
    index = data.draw(
        hnp.arrays(
            np.int64,
            hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4),
            elements=st.integers(-n, n - 1),
        )
    )
    same(pa.take(a, pa.asarray(index), axis=axis), np.take(x, index, axis=axis))
    flat = data.draw(st.integers(-x.size, x.size - 1))
    same(pa.take(a, [flat]), np.take(x, [flat]))


@FEW
@given(VIEWS.filter(lambda x: x.ndim and x.size), st.data())
def test_take_along_axis(x, data):
    a, axis = pa.asarray(x), data.draw(st.integers(-x.ndim, x.ndim - 1))
    sizes = [data.draw(st.sampled_from((1, n))) for n in x.shape]
    sizes[axis] = data.draw(st.integers(0, 3))
    n = x.shape[axis]
    index = data.draw(hnp.arrays(np.int64, tuple(sizes), elements=st.integers(-n, n - 1)))
    same(pa.take_along_axis(a, pa.asarray(index), axis=axis), np.take_along_axis(x, index, axis=axis))


def test_take_errors():
    a = pa.ones((2, 3))
    with pytest.raises(IndexError, match="index 2 is out of bounds for axis 0 with size 2"):
        pa.take(a, pa.asarray([2]), axis=0)
    with pytest.raises(IndexError, match="indices are integers, got float64; for a mask"):
        pa.take(a, pa.ones(1), axis=0)
    with pytest.raises(IndexError, match="index -4 is out of bounds for axis 1 with size 3"):
        pa.take_along_axis(a, pa.asarray([[-4]]), axis=1)
    with pytest.raises(ValueError, match="as many dimensions"):
        pa.take_along_axis(a, pa.asarray([1]), axis=1)


@examples(6)  # an example is a dozen kernels
@given(VIEWS, st.data())
def test_where(x, data):
    other = data.draw(numpy_views(dtype=pa.int32, shape=x.shape).filter(lambda y: y.shape == x.shape))
    condition = x > 3
    a, b, c = pa.asarray(x), pa.asarray(other), pa.asarray(condition)
    kind = pa.result_type(a, b)
    same(pa.where(c, a, b), np.where(condition, x, other).astype(kind))
    same(pa.where(c, a, 7), np.where(condition, x, np.float32(7)))
    same(pa.where(a, 1.5, a), np.where(x, np.float32(1.5), x))
    same(pa.count_nonzero(a), np.asarray(np.count_nonzero(x)))
    for axis in range(x.ndim):
        same(pa.count_nonzero(a, axis=axis), np.asarray(np.count_nonzero(x, axis=axis)))


def test_where_without_choices():
    assert [i.tolist() for i in pa.where(pa.asarray([0, 3, 0, 4]))] == [[1, 3]]
    with pytest.raises(ValueError, match="both choices"):
        pa.where(pa.asarray([True]), 1)
    with pytest.raises(ValueError, match="don't broadcast"):
        pa.where(pa.asarray([True, False]), pa.ones(3), 0)


@pytest.mark.parametrize(
    ("shape", "mask"),
    [((0, 1), (0, 0)), ((3,), (0,)), ((3, 2), (0,)), ((3, 2), (3, 0)), ((3, 2), (0, 2)), ((3, 2, 4), (0, 2))],
    ids=str,
)
def test_masks_without_elements_fit_any_size(shape, mask):
    x, chosen = np.ones(shape), np.zeros(mask, bool)
    a, key = pa.asarray(x.copy()), pa.asarray(chosen)
    assert a[key].shape == x[chosen].shape
    a[key] = 7
    a[key] = pa.ones(x[chosen].shape)
    assert pa.all(a == 1)


@pytest.mark.parametrize(("shape", "mask"), [((3, 2), (0, 3)), ((0, 1), (0, 2)), ((3,), (2,)), ((3,), (1,))], ids=str)
def test_masks_of_another_shape(shape, mask):
    with pytest.raises(IndexError, match="boolean index did not match"):
        pa.ones(shape)[pa.zeros(mask, dtype=bool)]
    with pytest.raises(IndexError, match="boolean index did not match"):
        pa.ones(shape)[pa.zeros(mask, dtype=bool)] = 1
