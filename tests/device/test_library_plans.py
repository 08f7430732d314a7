"""Plans of library functions: cold, captured and planned calls give the same bits and the same errors, whatever changes
between them; nothing is kept, and they are functions to all who ask."""

import copy
import inspect
import pickle
import pydoc
import struct
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from leak_check import check_references
from strategies import basic_keys, examples, few_dtypes, numpy_views
from test_call_plans import generally, outcome

import pyarray as pa
from pyarray._core import CAPTURED_AT, MOST_PLANS, CallPlan, clear_plans
from pyarray.array_host import host
from pyarray.jit.bound_launch import bind_launch
from pyarray.jit.replay import guard, replayable
from pyarray.kernels.reduce.reduce import PIECE

TIMES = CAPTURED_AT + 2
OF_TWO = {
    "concat": lambda x, y: pa.concat([x, y], axis=None),
    "stack": lambda x, y: pa.stack((x, y)),
    "where": lambda x, y: pa.where(x, x, y),
    "clip": lambda x, y: pa.clip(x, 1, 2.5),
    "clip by arrays": lambda x, y: pa.clip(x, y, 5),
    "sum": lambda x, y: pa.sum(x),
    "sum, kept": lambda x, y: pa.sum(x, axis=0, keepdims=True),
    "sum, out": lambda x, y: pa.sum(x, axis=None, out=pa.zeros((), dtype=pa.sum(x).dtype, device=x.device)),
    "max": lambda x, y: x.max(),
    "any": lambda x, y: pa.any(x),
    "all": lambda x, y: pa.all(x, axis=-1),
    "count_nonzero": lambda x, y: pa.count_nonzero(x),
    "argmin": lambda x, y: x.argmin(),
    "mean": lambda x, y: x.mean(axis=0),
    "cumulative_sum": lambda x, y: pa.cumsum(x, axis=0),
    "matmul": lambda x, y: pa.matmul(x, y),
    "@": lambda x, y: x @ y,
    "@, turned": lambda x, y: x @ x.T,
    "sort": lambda x, y: pa.sort(x, axis=-1),
    "flip": lambda x, y: pa.concat([pa.flip(x), x]),
    "copyto": lambda x, y: (pa.copyto(x, y), x)[1],
    "cumsum, out": lambda x, y: pa.cumsum(x, axis=0, out=y),
}


@given(st.sampled_from(sorted(OF_TWO)), numpy_views(few_dtypes), st.data())
@examples(150)
def test_what_changes_between_calls(device, name, drawn, data):
    """Layouts, types, overlaps, writability and identity of operands."""
    call, state = OF_TWO[name], []
    for _ in range(2):
        whole = pa.asarray(drawn.copy(order="K"), device=device)
        other = pa.asarray(drawn.copy(order="K"), device=device)
        other = other if drawn.dtype.kind == "c" else other.astype(pa.float64)
        state.append((whole, other))
    keys = [data.draw(st.sampled_from((..., data.draw(basic_keys(drawn.shape))))) for _ in range(2)]
    sources = [data.draw(st.sampled_from((0, 0, 1))) for _ in range(2)]
    same, locked = data.draw(st.booleans()), data.draw(st.integers(0, 3)) == 0
    turns = [(keys, sources, same, False), (keys[::-1], sources, False, False), (keys, sources, same, locked)]
    for turn, (where, which, is_same, is_locked) in enumerate(turns * TIMES):
        found = []
        for way, arrays in zip((lambda f, *x: f(*x), generally), state, strict=True):
            x, y = (arrays[k][key] for k, key in zip(which, where, strict=True))
            y = x if is_same else y
            y.flags.writeable = not is_locked
            found.append(outcome(lambda a, b, w=way: w(call, a, b), x, y))
        assert found[0] == found[1], (name, turn)
        assert [a.tobytes() for a in state[0]] == [a.tobytes() for a in state[1]]


SIZES = (0, 1, 2, 63, 2 * PIECE - 1, 2 * PIECE, 2 * PIECE + 1, 3 * PIECE + 5, 65 * PIECE + 7)


@pytest.mark.parametrize(
    "dtype", [pytest.param("float32", marks=pytest.mark.all_variants), "int8", "bool", "complex128"]
)
def test_reductions_of_changing_sizes(device, dtype):
    x = pa.asarray(np.arange(max(SIZES)) % 97 == 96, device=device).astype(dtype)
    functions = [pa.sum, pa.prod, pa.any, pa.all, pa.count_nonzero]
    functions += [] if dtype in ("bool", "complex128") else [pa.min, pa.max]
    for function in functions:
        for size in (SIZES if device == "cpu" else SIZES[:-1]) * 2:  # emulated GPUs take seconds for the largest
            for start in (0, 3):
                part = x[start : start + size]
                assert outcome(function, part) == outcome(lambda a, f=function: generally(f, a), part)
        plans = [plan for _, plan in function.plan_table.entries()] if hasattr(function, "plan_table") else []
        assert all(isinstance(plan, (CallPlan, str)) for plan in plans)


def test_products_of_changing_sizes(device):
    rng = np.random.default_rng(5)
    whole = pa.asarray(rng.integers(-4, 4, (12, 12)).astype("float64"), device=device)
    for n in range(150):
        m, k, columns = (int(v) for v in rng.integers(0, 6, 3))
        x, y = whole[m : 2 * m, : 2 * k : 2], whole[:k, columns : 2 * columns].copy()
        bad = whole[: k + 1, :columns]
        out = pa.zeros((m, columns), device=device) if n % 2 else pa.zeros((columns, m), device=device).T
        wanted = host(x) @ host(y)
        assert (x @ y).tolist() == pa.matmul(x, y, out=out).tolist() == out.tolist() == wanted.tolist()
        for function in (pa.matmul, pa.ndarray.__matmul__):
            with pytest.raises(ValueError, match="don't fit"):
                function(x, bad)
    square, numpys = whole[:4, :4].copy(), host(whole[:4, :4]).copy()
    for _ in range(TIMES):
        assert pa.matmul(square, square, out=square) is square
        numpys = numpys @ numpys
        assert square.tolist() == numpys.tolist()
        square %= 7.0  # so that all sums are exact
        numpys %= 7.0


def test_a_composed_function_is_no_plan_by_types():
    """What it does for one size is not what it does for another, though it calls functions that have such plans."""
    chosen = replayable(lambda x: pa.sum(x) if x.size < 5 else pa.max(x))
    for _ in range(TIMES):
        assert chosen(pa.full(3, 2.0)).item() == 6
    for _ in range(TIMES):
        assert chosen(pa.full(7, 2.0)).item() == 2


def test_a_check_that_raises_leaves_nothing():
    x, index = pa.arange(50.0), pa.asarray([1, 2, 3])
    for _ in range(TIMES):
        pa.take(x, index)
    assert pa.take.explain_miss(x, index) is None
    index[1] = 50

    def fails():
        for _ in range(40):
            with pytest.raises(IndexError, match="index 50 is out of bounds"):
                pa.take(x, index)

    check_references(fails, (x, index, x._buffer, index._buffer, x.device))


def test_checks_come_between_the_launches_around_them():
    """What a failed check is to prevent isn't done."""

    def change(x, index):
        guard(pa.max(index, keepdims=True), refuse)
        pa.add(x, 1, out=x)

    def refuse(largest):
        if largest > 3:
            raise IndexError(largest)

    planned, x, index = replayable(change), pa.zeros(4), pa.asarray([1, 2])
    for _ in range(TIMES):
        planned(x, index)
    assert planned.cache_info()["hits"] == 2
    index[0] = 9
    with pytest.raises(IndexError):
        planned(x, index)
    assert x.tolist() == [TIMES] * 4


def test_references_of_calls_are_given_back():
    a, b, mask = pa.arange(16.0), pa.asarray(np.arange(16.0), copy=False), pa.arange(16) % 3 == 0
    pieces = [a, b]

    def calls():
        for _ in range(30):
            pa.concat(pieces, axis=0)
            pa.where(mask, a, b)
            pa.sum(a, dtype=pa.float32)
            a.reshape(4, 4) @ b.reshape(4, 4)
            pa.clip(a, 1, 2, out=b)
            pa.divmod(a, 3.0)
            with pytest.raises(ValueError, match="equal shapes"):
                pa.concat([a, mask.reshape(4, 4)])

    check_references(calls, (a, b, mask, pieces, a._buffer, b._buffer, a.device, pa.float32), blocks=300)


def test_a_table_starts_anew_when_it_is_full():
    twice = replayable(lambda x, n: pa.multiply(x, n))
    x = pa.arange(3.0)
    for n in range(MOST_PLANS + 50):
        for _ in range(CAPTURED_AT + 1):
            assert twice(x, n).tolist() == [0, n, 2 * n]
    assert 1 <= twice.cache_info()["plans"] <= MOST_PLANS
    for n in range(20000):  # kinds that don't come back leave nothing
        twice(x, -n)
    assert twice.cache_info()["plans"] <= MOST_PLANS


def test_plans_are_dropped_while_they_run():
    def change(x):
        guard(pa.count_nonzero(x, axis=0, keepdims=True), clear)
        return pa.add(x, 1)

    def clear(_):
        clear_plans()
        if depth:
            depth.pop()
            planned(pa.arange(4.0))

    depth: list[int] = []
    planned = replayable(change)
    for _ in range(3 * TIMES):
        depth.append(0)
        assert planned(pa.arange(4.0)).tolist() == [1, 2, 3, 4]


def test_settings_drop_plans():
    x = pa.arange(4.0)
    for _ in range(TIMES):
        pa.cumsum(x)
    assert pa.cumsum.cache_info()["plans"]
    clear_plans()
    assert pa.cumsum.cache_info()["plans"] == 0
    assert pa.cumsum(x).tolist() == [0, 1, 3, 6]


def test_threads_share_a_table():
    wrong = []

    def work(k):
        for n in range(300):
            x = pa.full(1 + (n + k) % 7, float(k))
            if pa.concat([x, x]).sum().item() != 2 * k * x.size or pa.sum(x).item() != k * x.size:
                wrong.append((k, n))
            if n % 100 == 50:
                clear_plans()
        large = pa.full(300_000, 1.0)  # a launch that lets others run
        for _ in range(TIMES):
            if pa.sum(large).item() != 300_000 or pa.cumsum(large)[-1].item() != 300_000:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
    assert not wrong


def test_fused_functions_with_numbers():
    @pa.fuse
    def line(x, factor, offset):
        return x * factor + offset

    x = pa.arange(6.0)
    for factor in (1.5, 2.0, -0.0, 3.0, float("inf"), 4.0):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(pa.asnumpy(line(x, factor, 1)), np.arange(6.0) * factor + 1)
    assert line.cache_info()["hits"] == 2
    assert line(x, 2.0, 10**30).tolist() == (x * 2.0 + 10**30).tolist()  # an integer that no slot holds


@pa.kernel
def fill(out: pa.Out[pa.BufferView[pa.float64]], value: float, whole: int, flag: bool):
    for i in range(out.size):
        out[i] = value + whole if flag else 0.0


def test_numbers_of_bound_launches():
    x = pa.zeros(3)
    launch = bind_launch(fill.variant((x, 1.0, 1, True), checked=False), [(x.shape, x.strides), None, None, None])
    for value, whole, flag in ((1.5, 2, True), (np.float32(1.5), np.int8(2), np.True_), (True, True, True)):
        launch(x, value, whole, flag)
        assert x.tolist() == [float(value) + int(whole)] * 3
        launch(x._ptr, 1, 1, np.False_)
        assert x.tolist() == [0] * 3
    for wrong in ((1j, 1, True), (1.0, 1.5, True), (1.0, 2**63, True), (1.0, 1, 1), ("1", 1, True), (10**400, 1, True)):
        with pytest.raises((TypeError, OverflowError, struct.error)):
            launch(x, *wrong)
    for addresses in ((), (x,), (-1, 1.0, 1, True), (None, 1.0, 1, True)):
        with pytest.raises((TypeError, OverflowError)):
            launch(*addresses)


def test_they_are_functions():
    assert pa.concat.__name__ == pa.concat.__qualname__ == "concat"
    assert "Join" in pa.concat.__doc__ or "arrays" in pa.concat.__doc__
    for function in (pa.concat, pa.sum, pa.matmul):
        assert pickle.loads(pickle.dumps(function)) is copy.copy(function) is copy.deepcopy(function) is function
        assert weakref.ref(function)() is function
        assert function.__name__ in pydoc.plain(pydoc.render_doc(function))
    assert list(inspect.signature(pa.matmul).parameters) == ["x1", "x2", "out", "precision"]
    assert inspect.isroutine(pa.sum)
    assert repr(pa.sum).startswith("<function sum at ")

    class Holder:
        total = pa.sum

    with pytest.raises(TypeError, match="takes arrays"):
        Holder().total()  # it binds
    assert Holder.total(pa.ones(2)).item() == 2
    with pytest.raises(TypeError, match="did you mean 'axis'"):
        pa.sum(pa.ones(3), axs=0)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(replayable(lambda x: x))


def test_counts_and_explanations():
    def double(x, n=2):
        return pa.multiply(x, n)

    planned, x = replayable(double), pa.ones(3)
    assert planned.cache_info() == {"plans": 0, "hits": 0, "misses": 0, "captures": 0}
    assert "no plan yet" in planned.explain_miss(x)
    for _ in range(TIMES):
        planned(x, n=3)
    assert planned.cache_info() == {"plans": 1, "hits": 2, "misses": CAPTURED_AT, "captures": 1}
    assert planned.explain_miss(x, n=3) is None
    assert "n: 4, there 3" in planned.explain_miss(x, n=4)
    assert "of shape (4,)" in planned.explain_miss(pa.ones(4), n=3)
    assert "type ndarray can't be compared" in planned.explain_miss(np.ones(3))
    assert "there is no array" in planned.explain_miss(3)
    assert "an array is marked" in planned.explain_miss(x.mark_static())
    with pa.debug():
        assert "debug mode" in planned.explain_miss(x, n=3)
    looks = replayable(lambda x: pa.multiply(x, float(x[0])))
    for _ in range(TIMES):
        looks(x)
    assert "the host reads or writes elements" in looks.explain_miss(x)
    assert pa.add.explain_miss(x, 1) is None
    assert "number" in pa.add.explain_miss(x, np.ones(3))
    before = pa.add.cache_info()["hits"]
    pa.add(x, 1)
    assert pa.add.cache_info()["hits"] == before + 1
