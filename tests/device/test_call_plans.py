"""Plans of elementwise calls and assignments give what the general call gives, bit for bit, cold and warm: for drawn
layouts, types, overlaps and numbers, with operands that change between calls."""

import gc
import itertools
import operator
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from leak_check import check_references
from strategies import basic_keys, examples, few_dtypes, numpy_views

import pyarray as pa
from pyarray._core import CAPTURED_AT, clear_plans
from pyarray.array import array_at
from pyarray.dtypes import asdtype
from pyarray.jit.launch_state import observing
from pyarray.jit.replay import replayable
from pyarray.memory import Buffer, Pool, get_pool

BINARY = (operator.add, operator.mul, operator.gt, operator.eq, operator.and_, operator.truediv)
IN_PLACE = (operator.iadd, operator.imul, operator.ior)
NUMBERS = (True, 0, 3, -1, 2.5, -0.0, float("nan"), 1j, 2**40, 10**30)


def generally(function, *operands):
    """The call without a plan: its launches are observed."""
    with observing(lambda launch: launch.run()):
        return function(*operands)


def outcome(function, *operands):
    """What a call gives, or its error."""
    try:
        result = function(*operands)
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        return type(error), str(error)
    return type(result), result.dtype, result.shape, result.strides, result.flags.writeable, result.tobytes()


def draw_operand(data, device, like):
    kind = data.draw(st.sampled_from(("array", "number", "same shape", "part")))
    if kind == "number":
        return data.draw(st.sampled_from(NUMBERS))
    if kind == "array":
        return pa.asarray(np.ascontiguousarray(data.draw(numpy_views(few_dtypes))), device=device)
    if kind == "same shape":
        return pa.ones(like.shape, dtype=data.draw(few_dtypes).name, device=device)
    return like[data.draw(basic_keys(like.shape))]


@pytest.mark.slow
@given(numpy_views(few_dtypes), st.sampled_from(BINARY), st.data())
@examples(60)
def test_operators(device, drawn, function, data):
    x = pa.asarray(drawn.copy(order="K"), device=device)
    for _ in range(data.draw(st.integers(1, 3))):
        view = x[data.draw(basic_keys(x.shape))]
        operands = [view, draw_operand(data, device, view)]
        if data.draw(st.booleans()):
            operands.reverse()
        expected = outcome(lambda a, b: generally(function, a, b), *operands)
        assert outcome(function, *operands) == expected
        assert outcome(function, *operands) == expected


@given(numpy_views(few_dtypes), st.sampled_from(IN_PLACE), st.data())
@examples(60)
def test_in_place(device, drawn, function, data):
    first, second = (pa.asarray(drawn.copy(order="K"), device=device) for _ in range(2))
    for _ in range(data.draw(st.integers(1, 3))):
        key, other = data.draw(basic_keys(drawn.shape)), data.draw(st.sampled_from(NUMBERS))
        if data.draw(st.booleans()):
            part = data.draw(basic_keys(drawn.shape))  # which may overlap the target
            results = [outcome(lambda a, k=key, p=part: function(a[k], a[p]), first)]
            results.append(outcome(lambda a, k=key, p=part: generally(function, a[k], a[p]), second))
        else:
            results = [outcome(lambda a, k=key, n=other: function(a[k], n), first)]
            results.append(outcome(lambda a, k=key, n=other: generally(function, a[k], n), second))
        assert results[0] == results[1]
        assert first.tobytes() == second.tobytes()


@given(numpy_views(few_dtypes), st.data())
@examples(80)
def test_assignments(device, drawn, data):
    # what is assigned is no part of `first`, which has changed when `second` gets it
    first, second, third = (pa.asarray(drawn.copy(order="K"), device=device) for _ in range(3))
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(basic_keys(drawn.shape))
        value = draw_operand(data, device, third)
        shared = data.draw(basic_keys(drawn.shape)) if data.draw(st.booleans()) else None

        def assign(a, key=key, value=value, shared=shared):
            a[key] = value if shared is None else a[shared]
            return a

        assert outcome(assign, first) == outcome(lambda a, f=assign: generally(f, a), second)


LAYOUTS = {
    "without gaps": np.s_[1:5, :8],
    "rows apart": np.s_[::2, :8],
    "elements apart": np.s_[:4, ::2],
    "reversed": np.s_[3::-1, 7::-1],
    "one row": np.s_[:1, :8],
    "one column": np.s_[:4, :1],
    "one axis": np.s_[0, :8],
}


def test_layouts_that_take_turns(device):
    """Of equal types: each layout and each axis of one element, after plans for the others."""
    theirs = np.arange(128.0).reshape(8, 16)
    ours = pa.asarray(theirs, device=device)
    for _ in range(2):
        for first in LAYOUTS.values():
            for second in (*LAYOUTS.values(), first):
                total = ours[first] + ours[second]
                np.testing.assert_array_equal(pa.asnumpy(total), theirs[first] + theirs[second])


@pytest.mark.parametrize("size", [9, 5000])
def test_operands_that_overlap_what_is_written(device, size):
    """After plans for arrays apart, which need no copies."""
    forward, back, reverse = np.s_[1:], np.s_[:-1], np.s_[-2::-1]
    pa.add(pa.zeros(size, device=device), 1, out=pa.zeros(size, device=device))
    for write, read in itertools.product((forward, back), (forward, back, reverse)):
        theirs = np.arange(float(size))
        ours = pa.asarray(theirs, device=device, copy=True)
        for x, add in ((theirs, np.add), (ours, pa.add)):
            x[write] += x[read]
            x[write] = x[read]
            add(x[read], x[write], out=x[write])
            add(x[write], x[read], out=x[write])
        np.testing.assert_array_equal(pa.asnumpy(ours), theirs)


@pytest.mark.all_variants
@pytest.mark.parametrize("function", [pa.add, pa.clip])
def test_plans_are_dropped_when_settings_change(function):
    def call(dtype):
        x = pa.ones(3, dtype=dtype)
        for _ in range(CAPTURED_AT + 2):
            function(x, x) if function is pa.add else function(x, 0, 2)

    for dtype in ("float32", "int16", "uint8"):
        call(dtype)
    assert function.cache_info()["plans"] >= 3
    clear_plans()
    assert function.cache_info()["plans"] == 0
    call("float32")
    assert function.cache_info()["plans"] == 1


def test_settings_that_change_between_calls(device):
    """Debug mode and observers are asked at each call."""
    a, seen = pa.arange(5.0, device=device), []
    for _ in range(3):
        assert (a + 1).tolist() == [1, 2, 3, 4, 5]
        with pa.debug():
            assert (a + 1).tolist() == [1, 2, 3, 4, 5]
        with observing(lambda launch: (seen.append(launch.kernel), launch.run())):
            assert (a + 1).tolist() == [1, 2, 3, 4, 5]
    assert len(seen) == 3


def test_attributes_that_change_between_calls(device):
    a = pa.zeros(4, device=device)
    a[1:3] = 1.0
    for k in (1, 2, 3):
        a.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            a[1:3] = 2.0
        with pytest.raises(ValueError, match="read-only"):
            a += 1
        with pytest.raises(ValueError, match="read-only"):
            pa.add(a, 1, out=a)
        a.flags.writeable = True
        a += 1
        assert a.tolist() == [k, k + 1, k + 1, k]
    b = a.mark_static()
    assert (b + 1).tolist() == (a + 1).tolist()


def test_results_of_more_elements_than_memory():
    one = pa.ones((1, 1))
    row, column = pa.broadcast_to(one, (1, 1 << 40)), pa.broadcast_to(one, (1 << 40, 1))
    for _ in range(2):
        with pytest.raises(pa.OutOfMemoryError):
            row + column


def test_a_function_that_takes_less_memory_where_there_is_none(device, monkeypatch):
    """It is asked again where there is no memory for what its plan allocates."""
    calls = []

    @replayable
    def doubled(x):
        calls.append(1)
        try:
            wide = pa.empty((2, *x.shape), dtype=x.dtype, device=x.device)
        except pa.OutOfMemoryError:
            return pa.add(x, x)
        pa.add(x, x, out=wide[0])
        return wide[0].copy()

    x = pa.arange(50_000, dtype=pa.float32, device=device)
    want = 2 * np.arange(50_000, dtype=np.float32)
    for _ in range(5):
        np.testing.assert_array_equal(pa.asnumpy(doubled(x)), want)
    warm = len(calls)
    assert warm < 5, "it has no plan"
    pool, none = get_pool(x.device), []
    allocate = pool.allocate

    def refuse(free_list):
        if free_list.size >= 2 * x.nbytes:
            none.append(1)
            raise pa.OutOfMemoryError("no memory", free_list.size)
        return allocate(free_list)

    pool.trim()
    monkeypatch.setattr(Pool, "allocate", lambda _, free_list: refuse(free_list))
    np.testing.assert_array_equal(pa.asnumpy(doubled(x)), want)
    assert (len(none), len(calls)) == (2, warm + 1)
    monkeypatch.undo()
    np.testing.assert_array_equal(pa.asnumpy(doubled(x)), want)
    assert len(calls) == warm + 1


def test_references_are_given_back():
    """Objects that calls made are gone after them."""
    a, mask, index = pa.arange(64.0), pa.arange(64) % 3 == 0, pa.asarray([1, 5])

    def calls():
        for _ in range(50):
            b = a + a * 2.0
            b[3:9] = a[2:8]
            b[2] = 1.5
            b[mask] = 0.0
            b += a[index].sum()
            assert a[mask].size == 22
            with pytest.raises(IndexError):
                b[99]

    check_references(calls, (a, mask, index, a.dtype, a.device, a._buffer))


def test_cycles_through_an_owner_are_collected():
    class Owner:
        pass

    owner, gone = Owner(), []
    owner.values = np.ones(4)
    address = owner.values.__array_interface__["data"][0]
    device = pa.asarray(1.0).device
    whole = array_at(Buffer.wrap(device, address, 32, owner), address, (4,), (8,), asdtype("float64"), True)
    owner.array = whole[1:]
    del whole
    owner.last = type("Last", (), {"__del__": lambda self: gone.append(True)})()
    del owner
    gc.collect()
    assert gone


def test_threads_use_one_plan():
    a, wrong = pa.arange(20000.0), []

    def work(k):
        for n in range(200):
            x = a[: 100 + 97 * n] + float(k)
            if x[-1].item() != 99 + 97 * n + k:
                wrong.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
    assert not wrong
