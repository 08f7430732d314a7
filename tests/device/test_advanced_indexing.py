"""Index arrays and masks: reading and writing, against NumPy."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import as_view, examples, numpy_views

import pyarray as pa
from pyarray import dtypes
from pyarray.array import is_advanced

MANY = examples(90)


@st.composite
def keys(draw, shape):
    """Keys that mix integers, slices, newaxis, Ellipsis, masks, lists and index arrays that broadcast."""
    broadcast = draw(st.sampled_from(((3,), (2, 3), (1,), (0,))))
    key, axis, dots = [], 0, False
    while axis < len(shape) and len(key) < 6:
        kinds = ["slice", "new", "array", "array", "mask", "integer"] + ["dots"] * (not dots) + ["end"]
        kind = draw(st.sampled_from(kinds))
        n = shape[axis]
        if kind == "end":
            break
        if kind == "slice":
            key.append(
                slice(*draw(st.tuples(*[st.one_of(st.none(), st.integers(-3, 3))] * 2, st.sampled_from((None, 2, -1)))))
            )
            axis += 1
        elif kind == "new":
            key.append(None)
        elif kind == "dots":
            key.append(Ellipsis)
            axis, dots = draw(st.integers(axis, len(shape))), True
        elif kind == "mask":
            rank = draw(st.integers(0, min(2, len(shape) - axis)))
            key.append(draw(hnp.arrays(bool, shape[axis : axis + rank])) if rank else draw(st.booleans()))
            axis += rank
        elif n:
            sizes = draw(st.sampled_from((broadcast, broadcast[-1:], (1,))))
            dtype = draw(st.sampled_from((np.int64, np.int8)))
            index = draw(hnp.arrays(dtype, sizes, elements=st.integers(-n, n - 1)))
            key.append(
                draw(st.integers(-n, n - 1)) if kind == "integer"
                else index.tolist() if index.size and draw(st.booleans()) else index
            )  # fmt: skip
            axis += 1
        else:
            axis += 1
            key.append(slice(None))
    assume(
        any(not isinstance(k, (slice, int)) or isinstance(k, bool) for k in key if k is not None and k is not Ellipsis)
    )
    return tuple(key)


def as_pyarray_key(key):
    return tuple(pa.asarray(k) if isinstance(k, np.ndarray) else k for k in key)


def cases():
    views = numpy_views(dtype=pa.int64).filter(lambda x: 0 < x.ndim < 5)
    return views.flatmap(lambda x: st.tuples(st.just(x), keys(x.shape)))


@examples(45)
@given(cases())
def test_reading(case):
    x, key = case
    assume(is_advanced(key))
    try:
        expected = x[key]
    except IndexError:
        with pytest.raises(IndexError):
            pa.asarray(x)[as_pyarray_key(key)]
        return
    try:
        result = pa.asarray(x)[as_pyarray_key(key)]
    except IndexError:
        assert 0 in x.shape  # NumPy takes some masks of a wrong shape where nothing can be met
        return
    assert result.shape == expected.shape
    np.testing.assert_array_equal(pa.asnumpy(result), expected)
    assert not np.shares_memory(pa.asnumpy(result), x)


@examples(45)
@given(cases(), st.data())
def test_writing(case, data):
    x, key = case
    assume(is_advanced(key))
    x = x.copy()
    try:
        shape = x[key].shape
    except IndexError:
        assume(False)
    form = data.draw(st.sampled_from(("whole", "last", "scalar", "float", "number")))
    sizes = {"whole": shape, "last": shape[-1:], "float": shape}.get(form, ())
    value = np.arange(1000, 1000 + int(np.prod(sizes))).reshape(sizes)
    value = value + 0.5 if form == "float" else value
    expected, a = x.copy(), pa.asarray(x)
    expected[key] = value
    try:
        a[as_pyarray_key(key)] = 1000 if form == "number" else pa.asarray(value)
    except IndexError:
        assert 0 in x.shape
        return
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_dtype(dtype):
    x = (np.arange(12) % 5).reshape(3, 4).astype(dtype.numpy)
    a, index = pa.asarray(x.copy()), [2, -3, 1]
    np.testing.assert_array_equal(pa.asnumpy(a[pa.asarray(index)]), x[index])
    np.testing.assert_array_equal(pa.asnumpy(a[a != 0]), x[x.astype(bool)])
    assert [i.tolist() for i in pa.nonzero(a)] == [i.tolist() for i in np.nonzero(x)]
    a[:, pa.asarray([0, 3])] = a[:, :2]
    x[:, [0, 3]] = x[:, :2].copy()
    np.testing.assert_array_equal(pa.asnumpy(a), x)


@pytest.mark.parametrize("dtype", dtypes.of_kinds("iu"), ids=str)
def test_every_index_dtype(dtype):
    x = np.arange(10.0)
    index = np.array([1, 9, 3], dtype.numpy)
    assert pa.asarray(x)[pa.asarray(index)].tolist() == x[index].tolist()


@pytest.mark.parametrize("count", [1, 127, 128, 129, 5000, 300_000])
def test_sizes_around_blocks(count):
    rng = np.random.default_rng(count)
    x = rng.integers(0, 3, count)
    a = pa.asarray(x)
    assert (pa.asnumpy(pa.nonzero(a)[0]) == np.nonzero(x)[0]).all()
    order = rng.permutation(count)
    np.testing.assert_array_equal(pa.asnumpy(a[pa.asarray(order)]), x[order])
    rows = rng.integers(0, 2, (2, count))
    np.testing.assert_array_equal(pa.asnumpy(pa.asarray(rows)[pa.asarray([1, 0, 1])]), rows[[1, 0, 1]])
    with pytest.raises(IndexError, match=f"index {count} is out of bounds"):
        a[pa.asarray(np.append(order, count))]


def test_last_write_wins():
    a = pa.zeros(4, dtype=pa.int64)
    a[pa.asarray(np.arange(1000) % 3)] = pa.arange(1000)
    assert a.tolist() == [999, 997, 998, 0]


def test_overlap_acts_as_a_copy():
    a = pa.arange(6)
    a[pa.asarray([5, 4, 3, 2, 1, 0])] = a
    assert a.tolist() == [5, 4, 3, 2, 1, 0]
    b = pa.asarray([2, 0, 1])
    b[b] = pa.asarray([7, 8, 9])
    assert b.tolist() == [8, 9, 7]
    mask = pa.asarray([True, False, True])
    mask[mask] = False
    assert mask.tolist() == [False, False, False]


@pytest.mark.all_variants
@pytest.mark.parametrize(
    ("key", "message"),
    [
        (([0, 7],), r"index 7 is out of bounds for axis 0 with size 3; indices run from -3 to 2"),
        ((slice(None), np.array([-5])), r"index -5 is out of bounds for axis 1 with size 4"),
        (np.array([1.0]), "integer \\(or boolean\\) type, got float64"),
        ([0.5], "integer \\(or boolean\\) type, got list"),
        (np.ones(4, bool), "along axis 0; size of axis is 3 but size of corresponding boolean axis is 4"),
        (
            np.ones((3, 3), bool),
            "along axis 1; size of axis is 4 but size of corresponding boolean axis is 3",
        ),
        (([0, 1], [0, 1, 2]), r"could not be broadcast together with shapes \(2,\) \(3,\)"),
        (([0], [0], [0]), "too many indices for array: array is 2-dimensional, but 3 were indexed"),
    ],
)
def test_errors_before_anything_is_written(key, message):
    x = np.zeros((3, 4))
    a = pa.asarray(x)
    for form in (
        key,
        as_pyarray_key(key) if isinstance(key, tuple) else pa.asarray(key) if isinstance(key, np.ndarray) else key,
    ):
        with pytest.raises(IndexError, match=message):
            a[form]
        with pytest.raises(IndexError, match=message):
            a[form] = 1.0
    assert not x.any()


def test_other_errors():
    a = pa.zeros(3)
    with pytest.raises(
        ValueError,
        match=r"value array of shape \(2,\) could not be broadcast to indexing result of shape \(3,\)",
    ):
        a[[0, 1, 2]] = pa.ones(2)
    with pytest.raises(ValueError, match="read-only"):
        pa.broadcast_to(a, (2, 3))[[0]] = 1
    with pytest.raises(TypeError, match="complex"):
        a[[0]] = pa.asarray([1j])
    with pytest.raises(ValueError, match="0-d array"):
        pa.nonzero(pa.asarray(1))
    with pytest.raises(IndexError, match="axis 0 with size 0; there is nothing to index"):
        pa.zeros(0)[[0]]


@examples(60)
@given(numpy_views(dtype=pa.float32))
def test_nonzero(x):
    a = pa.asarray(x)
    if not x.ndim:
        return
    for mine, theirs in zip(pa.nonzero(a), np.nonzero(x), strict=True):
        assert (mine.dtype, mine.tolist()) == (pa.int64, theirs.tolist())
    assert a[a > 3].tolist() == x[x > 3].tolist()
    assert as_view(x, ...).size == x.size


def test_nan_and_negative_zero():
    assert pa.nonzero(pa.asarray([0.0, -0.0, np.nan, 1e-300]))[0].tolist() == [2, 3]


def test_checked_in_debug_mode():
    with pa.debug():
        a = pa.arange(12).reshape(3, 4)
        assert a[[2, 0], :].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
        a[a > 5] = 0
        assert a[[0, 1], [3, 1]].tolist() == [3, 5]
        with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0"):
            a[pa.asarray([3])]


TYPES = ("bool", "int16", "bfloat16", "float32", "int64", "complex64", "complex128")


@examples(12)
@given(data=st.data())
def check_sets_by_a_mask(device, data):
    """Runs that begin anywhere, rows and strided arrays; what is beside them stays."""
    dtype = pa.asarray([0], dtype=data.draw(st.sampled_from(TYPES))).dtype
    n = data.draw(st.sampled_from((0, 1, 15, 16, 700, 5000)))
    first, mask_first = data.draw(st.integers(0, 17)), data.draw(st.integers(0, 17))
    chosen, step = data.draw(st.sampled_from((0.0, 0.05, 0.5, 1.0))), data.draw(st.sampled_from((1, 1, 1, 2, -1)))
    rng = np.random.default_rng(n)
    x, whole = (rng.integers(0, 9, 2 * n + 60).astype(dtype) for _ in range(2))
    m, got = rng.random(x.size) < chosen, pa.asarray(x, device=device)
    mask, value = pa.asarray(m, device=device), data.draw(st.sampled_from((True, 1, "array", "row", "own")))
    shape = data.draw(st.sampled_from(((n,), (n // 5, 5))))
    length = shape[0] * (shape[1] if len(shape) > 1 else 1)

    def part(v, begin):
        return v[begin : begin + length * abs(step)][::step].reshape(shape)

    given_value = {"array": whole[5], "row": whole[6:7], "own": x[first]}.get(value, value)
    ours = (
        got[first] if value == "own" else pa.asarray(given_value, device=device) if value in ("array", "row") else value
    )
    want, target = part(x, first), part(got, first)
    want[part(m, mask_first)] = given_value
    target[part(mask, mask_first)] = ours
    if step == 1:  # else the reshaped part may be a copy
        assert pa.asnumpy(got).tobytes() == x.tobytes()
    assert pa.asnumpy(target).tobytes() == want.tobytes()


@pytest.mark.parametrize("checked", [False, True])
def test_sets_by_a_mask(device, checked):
    with pa.debug(checked):
        check_sets_by_a_mask(device)


@pytest.mark.parametrize("wrong", [(300, OverflowError), (float("nan"), ValueError), (1j, TypeError)])
def test_numbers_that_dont_fit_are_refused_before_a_mask_sets_them(device, wrong):
    a = pa.zeros(40, dtype="int8", device=device)
    with pytest.raises(wrong[1]):
        a[a == 0] = wrong[0]
    assert not pa.any(a).item()


def test_sets_by_a_mask_are_captured(device):
    x, m = np.arange(100, dtype="float32"), np.arange(100) % 3 == 0
    a, mask = pa.asarray(x, device=device), pa.asarray(m, device=device)
    with pa.capture(a=a) as graph:
        a[mask] = 1.5
    a[...] = pa.asarray(x, device=device)
    graph.launch()
    np.testing.assert_array_equal(pa.asnumpy(a), np.where(m, np.float32(1.5), x))
    for value in (2, 3, 2, 4):  # again and again, as calls that are replayed
        for _ in range(3):
            a[mask] = value
        assert set(pa.asnumpy(a)[m]) == {value}


def test_a_mask_on_the_memory_that_it_sets(device):
    a = pa.asarray(np.arange(100) % 3 == 0, device=device)
    a[a] = False
    assert not pa.any(a).item()
    a[:99][~a[1:]] = True
    assert a.tolist() == [True] * 99 + [False]


def test_masks_of_no_axes_on_one_element(device):
    a = pa.asarray(3.0, copy=True, device=device)
    for mask, count in ((True, 1), (False, 0)):
        chosen = pa.asarray(mask, device=device)
        assert a[chosen].tolist() == [3.0] * count
        a[chosen] = pa.full(count, 3.0, device=device)
        assert a.item() == 3.0
    a[pa.asarray(True, device=device)] = pa.asarray([4.0], device=device)
    assert a.item() == 4.0
