"""Masks, index arrays and nonzero of few elements, which CPUs may select without a launch: against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import examples, few_dtypes, numpy_views

import pyarray as pa
from pyarray import dtypes

INDEX_DTYPES = dtypes.of_kinds("iu")
views = numpy_views(dtype=few_dtypes).filter(lambda x: 0 < x.ndim < 5)


def masks(shape):
    """Masks of a shape, of any layout: of no, few, half or all elements."""
    full = st.sampled_from((False, True)).map(lambda value: np.full(shape, value))
    some = hnp.arrays(bool, shape, elements=st.booleans(), fill=st.just(False))
    return st.one_of(full, some, hnp.arrays(bool, shape[::-1]).map(np.transpose))


@st.composite
def index_arrays(draw, size, shape=None):
    """Index arrays of an axis with `size` elements, strided and reversed ones among them."""
    row = draw(st.sampled_from(INDEX_DTYPES))
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)) if shape is None else shape
    low = -size if row.kind == "i" else 0
    sizes = shape if size else (0, *shape[1:])
    index = draw(hnp.arrays(row.numpy, sizes, elements=st.integers(low, size - 1) if size else None))
    step = draw(st.sampled_from((1, -1, 2)))
    return np.repeat(index, 2, axis=0)[::2] if step == 2 else index[::step]


@st.composite
def keys(draw, shape):
    """One mask of leading axes, one index array, several of one shape, or one among integers and slices."""
    kind = draw(st.sampled_from(("mask", "index", "list", "indices", "mixed")))
    if kind == "mask":
        return draw(masks(shape[: draw(st.integers(1, len(shape)))]))
    if kind == "list":
        mask = draw(st.booleans()) and shape[0] > 0
        return draw(masks(shape[:1]) if mask else index_arrays(shape[0], (3,))).tolist()
    if kind == "index" or 0 in shape:
        return draw(index_arrays(shape[0]))
    if kind == "indices":
        sizes = draw(st.sampled_from(((3,), (2, 2), (1,))))
        return tuple(draw(index_arrays(n, sizes)) for n in shape[: draw(st.integers(1, len(shape)))])
    axis = draw(st.integers(0, len(shape) - 1))
    others = [draw(st.sampled_from((slice(None), slice(None, None, -1), n - 1))) for n in shape[:axis]]
    return (*others, draw(st.one_of(masks(shape[axis : axis + 1]), index_arrays(shape[axis], (3,)))))


def on_device(key, device):
    if isinstance(key, tuple):
        return tuple(on_device(item, device) for item in key)
    return pa.asarray(key, device=device) if isinstance(key, np.ndarray) else key


def copied(x, device):
    """An array with the elements and the axes' order in memory of `x`."""
    order = np.argsort([-abs(step) for step in x.strides], kind="stable")
    return pa.asarray(x.transpose(order), copy=True, device=device).transpose(np.argsort(order).tolist())


def same(result, expected):
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(pa.asnumpy(result), expected)


def assigned(x, key, value):
    """What an assignment leaves: of several values for one element the last in C order."""
    result = np.array(x, order="C")
    places = np.arange(x.size).reshape(x.shape)[key]
    for place, element in zip(places.flat, np.broadcast_to(value, places.shape).reshape(-1), strict=True):
        result.reshape(-1)[place] = element
    return result


@examples(60)
@given(case=views.flatmap(lambda x: st.tuples(st.just(x), keys(x.shape))))
def test_reading(device, case):
    x, key = case
    result = pa.asarray(x, device=device)[on_device(key, device)]
    same(result, x[key])
    assert type(result) is pa.ndarray
    assert result.flags.c_contiguous
    assert result.flags.writeable
    assert result.base is None


@examples(60)
@given(case=views.flatmap(lambda x: st.tuples(st.just(x), keys(x.shape))), data=st.data())
def test_writing(device, case, data):
    x, key = case
    shape = x[key].shape
    form = data.draw(st.sampled_from(("whole", "strided", "row", "one", "number")))
    one = data.draw(st.sampled_from(((), (1,))))
    sizes = {"whole": shape, "strided": shape[::-1], "row": shape[-1:]}.get(form, one)
    value = (np.arange(int(np.prod(sizes))) % 100).reshape(sizes).astype(x.dtype)
    value = value.T if form == "strided" else value
    places = np.arange(x.size).reshape(x.shape)[key]
    if not device.startswith("cpu") and np.unique(places).size < places.size:
        value, form = np.ones((), x.dtype), "one"  # any of several values may stay there
    a = copied(x, device)
    a[on_device(key, device)] = True if form == "number" else pa.asarray(value, device=device)
    same(a, assigned(x, key, np.ones((), x.dtype) if form == "number" else value))


@examples(40)
@given(x=views, data=st.data())
def test_numbers_that_fit_are_cast_and_others_refused(device, x, data):
    mask = data.draw(masks(x.shape))
    a, expected = copied(x, device), x.copy()
    value = data.draw(st.sampled_from((True, 7, 2.0, -1, 300, 1 << 70, 1j)))
    chosen = pa.asarray(mask, device=device)
    if x.dtype.kind not in "c" and isinstance(value, complex):
        with pytest.raises(TypeError, match="complex"):
            a[chosen] = value
    elif x.dtype.kind in "iu" and not np.iinfo(x.dtype).min <= value <= np.iinfo(x.dtype).max:
        with pytest.raises(OverflowError):
            a[chosen] = value
    else:
        a[chosen] = value
        # bfloat16's own assignment takes no large integer
        expected[mask] = value if x.dtype.kind in "biuc" else np.float64(value)
    same(a, expected)


@examples(40)
@given(x=views, data=st.data())
def test_nothing_is_written_by_a_wrong_index(x, data):
    index = np.array(data.draw(st.permutations([0, 0, x.shape[0]])), data.draw(st.sampled_from(INDEX_DTYPES)).numpy)
    a = copied(x, "cpu")
    for key in (index, (index, ...), index.tolist()):
        with pytest.raises(IndexError, match="out of bounds for axis 0"):
            a[on_device(key, "cpu")]
        with pytest.raises(IndexError, match="out of bounds for axis 0"):
            a[on_device(key, "cpu")] = 1
    same(a, x)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_dtype(dtype):
    x = (np.arange(40) % 3).reshape(5, 8).astype(dtype.numpy)
    mask, index, one = x != 0, np.array([4, -5, 2, 4]), np.ones((), dtype.numpy)
    for view in (x, x[::-1, ::-2], x.T[::2].T):
        a, chosen = pa.asarray(view), pa.asarray(mask[:, : view.shape[1]])
        same(a[chosen], view[mask[:, : view.shape[1]]])
        same(a[pa.asarray(index)], view[index])
        same(a[:, pa.asarray(index % 4)], view[:, index % 4])
        b = a.copy()
        b[pa.asarray(index), pa.asarray(index % 4)] = pa.asarray(one)
        b[chosen] = pa.asarray(one)
        expected = view.copy()
        expected[index, index % 4] = expected[mask[:, : view.shape[1]]] = one
        same(b, expected)


@examples(40)
@given(x=views, rare=st.booleans())
def test_nonzero(device, x, rare):
    x = np.where(np.arange(x.size).reshape(x.shape) % 7 == 0, x, np.zeros((), x.dtype)) if rare else x
    for mine, theirs in zip(pa.nonzero(pa.asarray(x, device=device)), np.nonzero(x), strict=True):
        same(mine, theirs)


@pytest.mark.parametrize("dtype", dtypes.of_kinds("fc"), ids=str)
def test_zeros_have_signs_and_nan_is_none(dtype):
    x = np.array([0.0, -0.0, np.nan, np.inf, 1.0, -1.0]).astype(dtype.numpy)
    x = np.concatenate([x, -x])
    expected = np.nonzero(x.astype(complex))[0]
    assert pa.nonzero(pa.asarray(x))[0].tolist() == expected.tolist()
    assert pa.nonzero(pa.asarray(x)[::-1])[0].tolist() == np.nonzero(x[::-1].astype(complex))[0].tolist()
    if dtype.kind == "c":
        assert pa.nonzero(pa.asarray(np.array([1j, -0j, complex(-0.0, -0.0)], x.dtype)))[0].tolist() == [0]


@pytest.mark.parametrize("count", [7, 8, 255, 257, 2041, 2049, 16_385, 32_768, 32_769])
@pytest.mark.parametrize("rare", [2, 100])
def test_sizes_around_the_limits(count, rare):
    rng = np.random.default_rng(count)
    x, mask, index = rng.random(count), rng.integers(0, rare, count) == 0, rng.integers(-count, count, count)
    a, chosen = pa.asarray(x.copy()), pa.asarray(mask)
    same(a[chosen], x[mask])
    same(pa.asarray(x[::-1])[chosen], x[::-1][mask])
    same(a[pa.asarray(index)], x[index])
    same(pa.nonzero(chosen)[0], np.flatnonzero(mask))
    a[chosen] = pa.asarray(-x[mask])
    x[mask] *= -1
    same(a, x)
    a[pa.asarray(index)] = 2.0
    x[index] = 2.0
    same(a, x)


def test_masks_that_were_bytes():
    flags = np.array([2, 0, 255, 0, 128, 1] * 5, np.uint8)
    mask = pa.asarray(flags.view(bool))
    assert pa.nonzero(mask)[0].tolist() == np.flatnonzero(flags).tolist()
    assert pa.arange(30)[mask].tolist() == np.flatnonzero(flags).tolist()


def test_read_only_arrays_are_read_and_not_written():
    a = pa.arange(6)
    a.setflags(write=False)
    assert a[pa.asarray([5, 0])].tolist() == [5, 0]
    for key in (pa.asarray([1]), pa.asarray([True] * 6), [1]):
        with pytest.raises(ValueError, match="read-only"):
            a[key] = 0
    assert a.tolist() == list(range(6))


def test_shared_memory_acts_as_a_copy():
    a = pa.arange(6)
    a[pa.asarray([0, 1, 2, 3, 4])] = a[1:]
    assert a.tolist() == [1, 2, 3, 4, 5, 5]
    a[a[::-1]] = a
    assert a.tolist() == [1, 5, 5, 4, 3, 2]
    mask = pa.asarray([True, False, True, True])
    mask[mask[::-1]] = mask[1:]
    assert mask.tolist() == [False, True, True, True]
