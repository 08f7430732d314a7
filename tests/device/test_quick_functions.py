"""Methods and creation functions that C does where it can give what their functions in Python give, to the bit, the
layout and the error: for drawn arrays and arguments, right and wrong."""

import copy as copying
import inspect
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from leak_check import check_references
from strategies import basic_keys, dtype_rows, examples, few_dtypes, numpy_views

import pyarray as pa
from pyarray import array_host, array_views, dtypes
from pyarray._core import QuickFunction
from pyarray.array import empty as new_empty
from pyarray.array import ndarray
from pyarray.jit.launch_state import observing

ERRORS = (
    TypeError,
    ValueError,
    OverflowError,
    ZeroDivisionError,
    IndexError,
    AttributeError,
    pa.OutOfMemoryError,
    pa.DeviceError,
)


def general(function):
    """The function in Python alone."""
    assert inspect.unwrap(function) is not function
    return inspect.unwrap(function)


def described(result, operand=None):
    """All that callers see of a result."""
    if not isinstance(result, ndarray):
        return type(result), repr(result)
    base = result.base
    whole = operand if operand is None or operand.base is None else operand.base
    shared = None if base is None else "operand" if base is whole else described(base)
    offset = result._ptr - base._ptr if base is not None else 0
    layout = (result.shape, result.strides, result._key, result.size, offset)
    return type(result), result.dtype, layout, str(result.device), result.flags.writeable, shared


def outcome(function, *args, filled=True, **options):
    """What a call gives, or its error."""
    try:
        result = function(*args, **options)
    except ERRORS as error:
        return type(error), str(error).partition(" bytes: ")[0]  # how many are free changes meanwhile
    operand = args[0] if args and isinstance(args[0], ndarray) else None
    read = isinstance(result, ndarray) and filled and result.size and result.device == "cpu"
    elements = result.tobytes() if read else b""
    return described(result, operand), elements, result is operand


def same(function, *args, **options):
    expected = outcome(general(function), *args, **options)
    assert outcome(function, *args, **options) == expected
    return expected


def draw_array(data, device, dtype=few_dtypes):
    x = pa.asarray(data.draw(numpy_views(dtype)).copy(order="K"), device=device)
    x = x[data.draw(basic_keys(x.shape))]
    if x.ndim and data.draw(st.booleans()):
        x = x.transpose(data.draw(st.permutations(range(x.ndim))))
    if data.draw(st.booleans()) and x.size:
        x = x.mark_static()
    if data.draw(st.booleans()):
        x = x[...]
        x.flags.writeable = False
    return x


STRANGE = (None, True, 1.0, "1", (1,), [0], 2**70, -(2**70), np.int64(1), np.uint8(0), np.float64(0), slice(1), (0, 0))
integers = st.integers(-7, 7) | st.sampled_from(STRANGE)


@given(st.data())
@examples(150)
def test_shapes(device, data):
    a = draw_array(data, device)
    sizes = data.draw(st.permutations([n for n in (*a.shape, 1) if n or a.size == 0]))
    if data.draw(st.booleans()):
        sizes = [int(np.prod([n for n in sizes if n > 0])), *([0] if not a.size else [])]
    if sizes and data.draw(st.booleans()):
        sizes[data.draw(st.integers(0, len(sizes) - 1))] = data.draw(st.just(-1) | integers)
    for shape in (tuple(sizes), list(sizes)):
        same(array_views.reshape, a, shape)
        same(pa.reshape, a, shape)
    same(array_views.reshape, a, *sizes)
    same(array_views.reshape, a, -1)
    same(array_views.reshape, a, tuple(sizes), order=data.draw(st.sampled_from("CFAK")))
    same(array_views.reshape, a, -1, copy=data.draw(st.sampled_from((True, False, None))))
    for function in (array_views.ravel, array_views.flatten, ndarray.copy):
        same(function, a)
        same(function, a, data.draw(st.sampled_from("CFAKx")))
    same(pa.ravel, a)


@given(st.data())
@examples(150)
def test_axes(device, data):
    a = draw_array(data, device)
    axes = [k - a.ndim * data.draw(st.booleans()) for k in data.draw(st.permutations(range(a.ndim)))]
    if axes and data.draw(st.booleans()):
        axes[data.draw(st.integers(0, len(axes) - 1))] = data.draw(integers)
    for function in (array_views.transpose, pa.transpose, pa.permute_dims):
        same(function, a, tuple(axes))
        same(function, a, list(axes))
        same(function, a, data.draw(integers))
    same(array_views.transpose, a, *axes)
    same(array_views.transpose, a)
    same(pa.transpose, a)
    same(ndarray.T.fget, a)
    same(ndarray.mT.fget, a)
    first, second = data.draw(integers), data.draw(integers)
    for swapped in (array_views.swapaxes, pa.swapaxes):
        same(swapped, a, first, second)
    ones = a[tuple(data.draw(st.lists(st.just(None), max_size=2))) + (...,)]
    for x in (a, ones):
        for squeezed in (array_views.squeeze, pa.squeeze):
            same(squeezed, x)
            same(squeezed, x, data.draw(integers))
    same(pa.expand_dims, a)
    same(pa.expand_dims, a, data.draw(integers))


def test_ranks_at_the_limit(device):
    a = pa.zeros((1,) * 64, device=device)
    for function, *args in (
        (pa.expand_dims, 0),
        (array_views.reshape, (1,) * 65),
        (array_views.reshape, (1,) * 64),
        (array_views.reshape, *(1,) * 65),
        (array_views.transpose, *range(64)),
        (array_views.transpose, *range(65)),
    ):
        same(function, a, *args)
    with pytest.raises(IndexError):
        pa.expand_dims(a, 0)


@given(st.data())
@examples(100)
def test_numbers(device, data):
    a = draw_array(data, device, dtype_rows)
    if not data.draw(st.integers(0, 3)) and a.size:
        a = a.ravel()[:1].reshape(data.draw(st.sampled_from(((), (1,), (1, 1)))))
    names = ("to_float", "to_int", "to_complex", "to_index", "truth", "item", "tolist")
    for name in names:
        same(getattr(array_host, name), a)
    index = data.draw(st.lists(integers | st.integers(-30, 30), max_size=a.ndim + 1))
    same(array_host.item, a, *index)
    same(array_host.item, a, tuple(index))
    if a.size:
        same(array_host.item, a, *(n - 1 for n in a.shape))
        same(array_host.item, a, -a.size)
    if device == "cpu":
        assert repr(a.tolist()) == repr(pa.asnumpy(a).tolist())


@pytest.mark.parametrize("name", [row.name for row in dtypes.ALL])
@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, float("nan"), float("inf"), 1e30])
def test_numbers_of_each_dtype(device, name, value):
    with np.errstate(all="ignore"):
        a = pa.asarray(np.array(value).astype(name if name != "bfloat16" else dtypes.bfloat16.numpy), device=device)
    for function in ("to_float", "to_int", "to_complex", "to_index", "truth", "item", "tolist"):
        same(getattr(array_host, function), a)


@given(st.data())
@examples(60)
def test_rows(device, data):
    a = draw_array(data, device)
    if not a.ndim:
        with pytest.raises(TypeError, match=r"iteration over a 0-d array; its one element is a\.item\(\)"):
            iter(a)
        return
    expected = [described(a[k], a) for k in range(len(a))]
    assert [described(row, a) for row in a] == expected
    assert [described(row, a) for row in general(ndarray.__iter__)(a)] == expected
    assert iter(a).__length_hint__() == len(a)


def test_rows_of_an_array_that_is_resized():
    a = pa.arange(4)
    rows = iter(a)
    assert next(rows).item() == 0
    del rows
    a = pa.zeros(4)
    rows = iter(a)
    a.resize(2)
    assert [next(rows).item(), next(rows).item()] == [0, 0]
    with pytest.raises(IndexError, match="index 2 is out of bounds"):
        next(rows)


@given(dtype_rows, st.data())
@examples(60)  # most need a kernel of their own
def test_casts(device, row, data):
    a = draw_array(data, device, dtype_rows)
    for dtype in (row, row.numpy, row.numpy.type, row.name, row.numpy.str, bool, int, float, complex, "text", None, 3):
        same(ndarray.astype, a, dtype)
        same(ndarray.astype, a, dtype, copy=data.draw(st.booleans()))


SHAPES = (
    0, 3, np.int64(2), True, -1, 2.0, None, "2", (), (2, 3), [2, 3], (0, 2**40), (2**40, 2**40, 0), (2**62,), (2**70,),
    (1,) * 64, (1,) * 65, (2, -1), ((2,), 3), np.array([2, 3]), range(2),
)  # fmt: skip
KINDS = (None, "float32", "f4", "<i8", float, bool, np.int16, np.dtype("u1"), dtypes.bfloat16, pa.complex64, "text", 3)
NUMBERS = (0, 1, True, 2.5, -3, 300, 2**40, 2**70, float("nan"), 1j, np.float32(2), "x", [1, 2])


@given(st.sampled_from(SHAPES), st.sampled_from(KINDS), st.sampled_from(NUMBERS), st.data())
@examples(250)
def test_new_arrays(device, shape, dtype, number, data):
    options = data.draw(st.sampled_from(({}, {"device": None}, {"device": device}, {"device": pa.get_device(device)})))
    wrong = data.draw(st.sampled_from(({}, {}, {"order": "F"}, {"device": "cpu:7"}, {"device": 3})))
    options = options | wrong
    same(pa.empty, shape, dtype, filled=False, **options)
    same(pa.empty, shape, filled=False, dtype=dtype, **options)
    place = options.get("device", device)
    same(new_empty, shape, dtype, place, filled=False)
    same(new_empty, shape, dtype=dtype, device=place, filled=False)
    for function in (pa.zeros, pa.ones):
        same(function, shape, **options)
        same(function, shape, dtype, **options)
        same(function, shape, dtype=dtype, **options)
    same(pa.full, shape, number, **options)
    same(pa.full, shape, number, dtype, **options)
    same(pa.full, shape, number, dtype=dtype, **options)


@given(dtype_rows, st.sampled_from(NUMBERS), st.data())
@examples(100)
def test_arrays_like_another(device, row, number, data):
    a = draw_array(data, device)
    options = data.draw(
        st.sampled_from(({}, {"device": "cpu"}, {"order": "C"}, {"shape": (2, 2)}, {"order": "x"}, {"shape": -1}))
    )
    for dtype in (None, row, row.name, "text"):
        same(pa.empty_like, a, dtype, filled=False, **options)
        for function in (pa.zeros_like, pa.ones_like):
            same(function, a, dtype=dtype, **options)
        same(pa.full_like, a, number, dtype, **options)
    same(pa.zeros_like, [1, 2])
    same(pa.ones_like, np.ones((2, 1), "f4"))


ITEMS = st.one_of(
    st.sampled_from((True, False, 0, 1, -3, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2.5, -0.0, float("nan"), 1e300)),
    st.sampled_from((1j, None, "a", np.float32(2), np.int8(3), pa.arange(2), [], [1.0])),
)


@given(st.data())
@examples(250)
def test_sequences(data):
    """Of numbers of one kind mostly, some of other kinds, at several depths, and ragged."""
    kinds = st.sampled_from((st.integers(-5, 5), st.floats(), st.booleans(), st.integers(-(2**64), 2**64), ITEMS))
    item = data.draw(st.one_of(kinds, st.just(st.one_of(st.integers(-5, 5), st.floats()))))
    size = data.draw(st.integers(0, 5))
    sequence = item.flatmap(lambda x: st.just(x))
    for _ in range(data.draw(st.integers(1, 5))):
        exact = st.lists(sequence, min_size=size, max_size=size)
        sequence = data.draw(st.sampled_from((exact, exact.map(tuple), st.lists(sequence, max_size=4))))
        size = data.draw(st.integers(0, 3))
    value = data.draw(sequence)
    same(pa.asarray, value)
    same(pa.array, value)
    same(pa.asarray, value, dtype="float32")
    same(pa.asarray, [value, value])


def test_long_sequences():
    for value in (list(range(4096)), list(range(4097)), [[1.5] * 64] * 64, [[1.5] * 64] * 65, [1] * 100 + [2.5]):
        same(pa.asarray, value)


LIMITS = st.one_of(
    st.integers(-20, 20), st.floats(-20, 20), st.sampled_from((2**31, 2**31 - 1, -(2**31), 2**63, 1e308, 1e-300)),
    st.sampled_from((True, None, "a", float("nan"), float("inf"), np.int64(4), np.float32(0.5), 1j)),
)  # fmt: skip


def count(first, last, by):
    """How many elements these limits ask for; 0 for what are no limits."""
    try:
        return abs((float(last) - float(first)) / float(by))
    except (TypeError, ValueError, ZeroDivisionError):
        return 0


@example([5, None, 2], {})
@example([0, -1, 5e-324], {})  # more steps than a float64 counts, in the wrong direction
@given(st.lists(LIMITS, min_size=1, max_size=3), st.sampled_from(({}, {"dtype": "float32"}, {"device": "cpu"})))
@examples(400)
def test_ranges(limits, options):
    stops_first = len(limits) == 1 or limits[1] is None  # the only limit is where it stops
    first, last, by = (0, limits[0], *limits[2:], 1)[:3] if stops_first else (*limits, 1)[:3]
    if 1e5 < count(first, last, by) < float("inf"):
        return  # takes memory
    same(pa.arange, *limits, **options)


@pytest.mark.parametrize("size", [0, 1, 7, 8191, 8193, 70000, 300000])
def test_new_memory_is_filled_whole(device, size):
    """Blocks that had other contents, below and above the sizes at which the way changes."""
    for name in ("bool", "int16", "float16", "float32", "float64", "complex128"):
        pa.full(size, True if name == "bool" else 7, dtype=name, device=device)
        assert not pa.asnumpy(pa.zeros(size, dtype=name, device=device)).any()
        assert (pa.asnumpy(pa.ones(size, dtype=name, device=device)) == 1).all()
        full = pa.full(size, True if name == "bool" else 5, dtype=name, device=device)
        assert (pa.asnumpy(full) == (1 if name == "bool" else 5)).all()
        assert (pa.asnumpy(full.copy()) == pa.asnumpy(full)).all()
        np.testing.assert_array_equal(pa.asnumpy(full[::2].copy()), pa.asnumpy(full)[::2])


def test_new_pages_are_zeros():
    """Large blocks that the system has just given aren't cleared, those of the pool are."""
    size = (4 << 20) // 8 + 1
    pa.full(size, 7.0)
    assert not pa.asnumpy(pa.zeros(size)).any()  # a block that was used
    pa.get_default_memory_pool("cpu").free_all_blocks()
    for shape in (size, size - 2, (3, size), (size,)):
        made = [pa.zeros(shape) for _ in range(2)]
        assert not any(pa.asnumpy(a).any() for a in made)
        for a in made:
            a[...] = 7.0
        del made, a
        assert not pa.asnumpy(pa.zeros_like(pa.empty(shape))).any()


def test_the_default_device(monkeypatch):
    assert str(pa.zeros(2).device) == "cpu"
    with pa.default_device("null:0"):
        assert str(pa.empty(2).device) == str(new_empty(2).device) == str(pa.ones(2).device) == "null:0"
        assert str(pa.zeros_like(pa.zeros(2, device="cpu")).device) == "cpu"
    assert str(pa.empty(2).device) == "cpu"
    monkeypatch.setenv("PYARRAY_DEVICE", "null:1")
    assert str(pa.empty(2).device) == str(pa.zeros(2).device) == "null:1"
    monkeypatch.delenv("PYARRAY_DEVICE")
    assert str(pa.empty(2).device) == "cpu"
    pa.set_default_device("null:0")
    try:
        assert str(pa.zeros(2).device) == "null:0"
    finally:
        pa.set_default_device(None)
    monkeypatch.setenv("PYARRAY_DEVICE", "no device")
    with pytest.raises(ValueError, match="PYARRAY_DEVICE"):
        pa.zeros(2)


def test_observers_see_copies_and_fills(device):
    a, seen = pa.arange(6, device=device).reshape(2, 3), []
    with observing(lambda launch: (seen.append(launch.kernel), launch.run())):
        calls = [
            a.copy,
            lambda: a.T.reshape(6),
            a.flatten,
            lambda: a.astype("float32"),
            lambda: pa.ones(3, device=device),
        ]
        for call in calls:
            before = len(seen)
            call()
            assert len(seen) == before + 1
        views = [lambda: a.T, lambda: a.reshape(3, 2), lambda: pa.zeros(3, device=device), lambda: list(a)]
        for call in views:
            call()
        assert len(seen) == len(calls)
    with pa.debug():
        assert a.copy().tolist() == a.tolist()
        assert a.T.ravel().tolist() == [0, 3, 1, 4, 2, 5]


def test_what_is_no_array():
    """The functions are plain functions, whose first argument may be anything."""
    for function in (array_views.reshape, ndarray.copy, array_host.item, array_host.to_float):
        same(function, 3)
        same(function)
    x = np.arange(6.0)
    assert pa.reshape(x, (2, 3)).tolist() == x.reshape(2, 3).tolist()
    assert pa.transpose([[1, 2]]).tolist() == [[1], [2]]


def test_a_subclass_of_arrays():
    class Named(ndarray):
        __slots__ = ()

        def __getitem__(self, key):
            return "own"

    a = pa.arange(3)
    named = a._handle(a._key)
    assert type(named) is ndarray
    for function in (array_views.reshape, array_host.tolist, ndarray.copy):
        assert general(vars(ndarray)[general(function).__name__]) is general(function)
    with pytest.raises(TypeError, match="not constructed directly"):
        Named()


# ---- the functions as objects


@pytest.mark.parametrize("path", ["pa.zeros", "pa.full_like", "pa.reshape", "array_views.reshape", "ndarray.copy"])
def test_it_is_a_function_for_users(path):
    function = eval(path)  # now: Dynamo has other methods
    plain = inspect.unwrap(function)
    assert inspect.signature(function) == inspect.signature(plain)
    assert (function.__name__, function.__module__) == (plain.__name__, plain.__module__)
    assert function.__doc__ is plain.__doc__
    assert "Returns" in function.__doc__
    assert callable(function)
    assert inspect.isroutine(function)
    assert repr(function).startswith("<function ")
    assert copying.copy(function) is copying.deepcopy(function) is function
    assert weakref.ref(function)() is function
    assert pickle.loads(pickle.dumps(function)) is function


def test_methods_are_bound():
    a = pa.arange(6)
    bound = a.reshape
    assert bound.__self__ is a
    assert bound(2, 3).shape == (2, 3)
    assert list(inspect.signature(bound).parameters) == ["shape", "order", "copy"]
    assert next(map(ndarray.copy, [a])).tolist() == a.tolist()
    with pytest.raises(TypeError, match="reshape\\(\\) has no keyword 'copi'; did you mean 'copy'"):
        a.reshape(2, 3, copi=True)


def test_an_unknown_quick_way():
    with pytest.raises(ValueError, match="no quick way of the name nothing"):
        QuickFunction("nothing", len)


def test_an_exception_in_the_function_is_the_callers():
    def broken(*args):
        raise KeyError("broken")

    function = QuickFunction("copy", broken)
    with pytest.raises(KeyError, match="broken"):
        function(3)
    function.note = 5
    assert broken.note == 5
    del function.note
    assert not hasattr(broken, "note")
    assert function(pa.arange(2)).tolist() == [0, 1]


def test_references_are_given_back():
    a, m = pa.arange(16.0), pa.arange(16.0).reshape(4, 4)

    def calls():
        for _ in range(20):
            assert m.T.reshape(16).size == m.ravel().size == m.flatten().size == 16
            b = pa.zeros(16) + pa.full((16,), 2.5) + pa.ones_like(a) + a.copy() + a.astype("float32")
            assert float(b[3]) == b.item(3) == b.tolist()[3]
            for row in m:
                assert row.size == 4
            assert pa.expand_dims(a, 0).squeeze().shape == m.swapaxes(0, 1).transpose(1, 0).reshape(-1).shape
            with pytest.raises(ValueError, match="cannot reshape"):
                a.reshape(3, 5)
            with pytest.raises(pa.OutOfMemoryError):
                pa.zeros(1 << 60)

    # not the device: what is prepared for later calls has it
    check_references(calls, (a, m, a.dtype, a._buffer, m._buffer))
