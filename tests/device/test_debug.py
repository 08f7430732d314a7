"""Debug mode: the report, what it finds, what it leaves alone."""

import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from kernel_tools import on

from pyarray import config
from pyarray.array_convert import asnumpy
from pyarray.buffer_view import BufferView
from pyarray.dtypes import float32
from pyarray.errors import BoundsError
from pyarray.jit.kernel import func, kernel
from pyarray.jit.launch_state import debug, launch_state
from pyarray.lang.markers import atomic_add, ndrange


@func
def damp(w, k, factor):
    return w[k] * factor


@func
def deeper(x, k):
    y = x[1:]
    return damp(y, k, 2.0)


@kernel
def scale(v: BufferView[float32], factor: float32, n: int):
    for i in range(n):
        v[i] = damp(v, i, factor)


@kernel
def nested(v, n: int):
    for i in range(n):
        v[i] = deeper(v[2:], i)


def line_of(text):
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def test_the_message_of_the_design(device):
    data = on(device, np.arange(32, dtype=np.float32))
    view = data[:16]
    with debug(), pytest.raises(BoundsError) as caught:
        scale(view, 2.0, 20)  # launched here
    assert str(caught.value) == (
        "BufferView out of range: kernel[scale] tid=16, argument 'v' axis 0: got index 16 (offset=0, size=16)\n"
        "Callstack:\n"
        f"  scale (test_debug.py:{line_of('v[i] = damp(v, i, factor)')})\n"
        f"    damp (test_debug.py:{line_of('return w[k] * factor')})\n"
        f"Launched at test_debug.py:{line_of('# launched here')}"
    )
    error = caught.value
    assert isinstance(error, IndexError)
    assert (error.kernel, error.argument, error.axis, error.index, error.extent) == ("scale", "v", 0, 16, 16)
    assert (error.offset, error.size, error.tid) == (0, 16, 16)
    assert [f.function for f in error.frames] == ["scale", "damp"]
    assert {f.path for f in error.frames} == {__file__}
    assert error.launch == (__file__, line_of("# launched here"))
    # outside the view nothing was touched, inside all was computed, and the next launch works
    assert asnumpy(data)[16:].tolist() == list(range(16, 32))
    with debug():
        scale(view, 2.0, 16)
    assert asnumpy(data)[:16].tolist() == [4.0 * i for i in range(16)]


def test_names_go_through_calls_and_views(device):
    v = on(device, np.arange(10.0))
    with debug(), pytest.raises(BoundsError) as caught:
        nested(v[1:], 9)
    error = caught.value
    assert [f.function for f in error.frames] == ["nested", "deeper", "damp"]
    assert (error.argument, error.index, error.offset, error.size, error.tid) == ("v", 6, 4, 6, 6)


@kernel
def stores(m, k):
    for i, j in ndrange(m.shape[0], m.shape[1]):
        m[i, j + k] = 1


@kernel
def adds(m, k):
    for i in range(m.shape[0]):
        atomic_add(m, (i + k, 0), 1)


@kernel
def cuts(m, k):
    for i in range(4):
        m[i, m[0].subview(k, 3).size - 3] = 1


@kernel
def rows(m, k):
    for i in range(4):
        m[i, 0] = m[i * k, 1:][0]


@kernel
def steps(m, k):
    for i in range(4):
        m[i, 0] = m[i, ::k].size


@kernel
def once(m, k):
    m[k, 0] = 2
    for i in range(4):
        m[i, 0] = 1


@kernel
def after(m, k):
    for i in range(4):
        m[i, 0] = 1
    m[0, k] = 2
    for i in range(4):
        m[i, k] = 1


@kernel
def tails(m, k):
    for i in range(4):
        row = m[i]
        row[4 + k] = 1


@func
def put(v, k):
    v[4 + k] = 1


@kernel
def passes(m, k):
    for i in range(4):
        put(m[i], k)


FAILING = {
    stores: (2, "ndarray out of range: kernel[stores] tid=3, argument 'm' axis 1: got index 5 (offset=0, size=20, axis extent 5)"),  # noqa: E501
    adds: (2, "tid=2, argument 'm' axis 0: got index 4 "),
    cuts: (3, "sub-view out of range: kernel[cuts] tid=0, a view of argument 'm': got sub-view offset=3, size=3 of a view of size 5"),  # noqa: E501
    rows: (2, "kernel[rows] tid=2, argument 'm' axis 0: got index 4 "),
    tails: (2, "kernel[tails] tid=0, view 'row' of argument 'm', axis 0: got index 6 "),
    passes: (2, "kernel[passes] tid=0, a view of argument 'm', axis 0: got index 6 "),
    steps: (0, "slice step 0: kernel[steps] tid=0, argument 'm' axis 1"),
    once: (-1, "kernel[once] tid=0, argument 'm' axis 0: got index -1 "),
    after: (7, "kernel[after] tid=0, argument 'm' axis 1: got index 7 "),
}  # fmt: skip


@func
def first_negative(v, j):
    while v[j] >= 0:
        j += 1
    return j


@kernel
def searching(out, v):
    for i in range(out.size):
        out[i] = first_negative(v, i)


@kernel
def waiting(out, v):
    for i in range(out.size):
        n = v[i + 3]
        while n != 7:  # what a failed access answers never changes
            n = n + 0 * v[i]
        for j in range(n - 7, 1 << 62, n - 6):
            if v[j] == 7:
                break
        out[i] = n


@pytest.mark.parametrize(("k", "tid"), [(searching, 0), (waiting, 3)], ids=lambda x: getattr(x, "__name__", None))
def test_loops_of_an_iteration_end_after_a_failure(device, k, tid):
    v = np.array([1, 2, 3, 7, 7, 7])
    with debug(), pytest.raises(BoundsError, match="got index 6") as caught:
        k(on(device, np.zeros(4, np.int64)), on(device, v))
    assert caught.value.tid == tid
    assert caught.value.frames[-1].function == ("first_negative" if k is searching else "waiting")


@pytest.mark.parametrize("k", FAILING, ids=lambda k: k.__name__)
@pytest.mark.parametrize("layout", ["C", "F"])
def test_every_access_is_checked(device, k, layout):
    value, message = FAILING[k]
    guard = np.full((6, 7), -7, np.int64)
    inner = guard[1:5, 1:6] if layout == "F" else np.full((4, 5), -7, np.int64)
    m = on(device, inner)
    with (
        debug(),
        pytest.raises(BoundsError, match=re.escape(message.replace("offset=0", "offset="))[:40]) as caught,
    ):
        k(m, value)
    expected = message if layout == "C" else message.partition("(offset")[0]
    assert expected in str(caught.value)
    with debug():
        if k is not steps:
            k(m, 0)
    edge = np.concatenate([guard[0], guard[-1], guard[:, 0], guard[:, -1]])
    assert (edge == -7).all()


@func
def fill(v, i, step):
    for j in range(i, v.size, step):
        v[j] += 1


@kernel
def inner_steps(m, k):
    for i in range(4):
        fill(m[i], i, k + i - 2)


@kernel
def outer_step(m, k):
    for i in range(0, 4, k):
        m[i, i] += 1


@kernel
def read_step(m, k):
    for i in range(0, 4, int(m[0, 4]) + k):
        m[i, i] += 1


@pytest.mark.parametrize("k", [inner_steps, outer_step, read_step], ids=lambda k: k.__name__)
def test_a_step_of_0_is_reported(device, k):
    m = on(device, np.zeros((4, 5), np.int64))
    with debug(), pytest.raises(BoundsError, match=r"^range step 0: kernel.*a step is negative or") as caught:
        k(m, 0)
    assert caught.value.tid == (2 if k is inner_steps else 0)
    assert [f.function for f in caught.value.frames] == [k.__name__, "fill"][: 1 + (k is inner_steps)]
    before = asnumpy(m).copy()
    k(m, 0)  # without checks such a loop is empty
    after = asnumpy(m).copy()
    assert (after[2] == before[2]).all()
    assert k is inner_steps or (after == before).all()
    with debug():
        k(m, 3)
    assert asnumpy(m)[0, 0] == after[0, 0] + 1


@kernel
def order(a, b, out, i, j, k):
    for t in range(out.size):
        out[t + k] = a[t + i] + b[t + j]


@pytest.mark.parametrize(("offsets", "name"), [((9, 9, 9), "a"), ((0, 9, 9), "b"), ((0, 0, 9), "out")])
def test_the_first_failure_is_pythons(device, offsets, name):
    arrays = [on(device, np.zeros(4, np.int32)) for _ in range(3)]
    with debug(), pytest.raises(BoundsError) as caught:
        order(*arrays, *offsets)
    assert (caught.value.argument, caught.value.tid) == (name, 0)


@kernel
def scattered(v, index):
    for i in range(index.size):
        v[index[i]] = i


def test_the_lowest_thread_wins(device):
    index = np.zeros(300_000, np.int64)
    index[7::9] = 100
    for _ in range(5):
        with debug(), pytest.raises(BoundsError) as caught:
            scattered(on(device, np.zeros(10)), on(device, index))
        assert caught.value.tid == 7


@kernel
def guarded(v, out, n):
    for i in range(out.size):
        out[i] = v[i] if i < n else 0
        if i < n and v[i] > 0:
            out[i] += 1


def test_short_circuit_evaluates_nothing(device):
    out = on(device, np.zeros(10))
    with debug():
        guarded(on(device, np.ones(4)), out, 4)
    assert asnumpy(out).tolist() == [2.0] * 4 + [0.0] * 6


def test_which_switch_wins(device):
    always, never = kernel(scale, debug=True), kernel(scale, debug=False)
    view = on(device, np.zeros(32, np.float32))[:16]
    with pytest.raises(BoundsError):
        always(view, 1.0, 17)
    with debug():
        never(view, 1.0, 17)
        with debug(False):
            scale(view, 1.0, 17)
        with pytest.raises(BoundsError):
            scale(view, 1.0, 17)
    scale(view, 1.0, 17)
    assert "pa_check" not in never.source()
    assert "pa_check" in always.source()


@kernel
def proven(v):
    for i in range(v.size):
        v[i] = v[i] + 1


def test_a_proven_index_costs_nothing(device):
    with debug():
        proven(on(device, np.zeros(3)))
    assert "pa_check_index" not in proven.source(debug=True)


def test_empty_views(device):
    with debug():
        scale(on(device, np.zeros(4, np.float32))[2:2], 1.0, 0)
        with pytest.raises(BoundsError, match=r"got index 0 \(offset=2, size=0\)"):
            scale(on(device, np.zeros(4, np.float32))[2:2], 1.0, 1)


@kernel
def either(a, b, n):
    for i in range(n):
        w = a
        if i > 2:
            w = b
        w[i] = 1


@kernel
def row_of_none(m, out):
    for i in range(out.size):
        row = m[i]
        row[0] = 5
        out[i] = row[1]


def test_a_row_that_is_not_there(device):
    guard = np.full((3, 4), -7.0)
    with debug(), pytest.raises(BoundsError, match=r"axis 0: got index 1 .*axis extent 1"):
        row_of_none(on(device, guard)[1:2], on(device, np.zeros(3)))
    assert (guard[[0, 2]] == -7).all()
    assert (guard[1, 1:] == -7).all()


def test_a_view_of_either(device):
    with debug(), pytest.raises(BoundsError) as caught:
        either(on(device, np.zeros(4)), on(device, np.zeros(4)), 6)
    assert caught.value.argument == "a or b"


# ---- again and again, from everywhere


@kernel
def two_loops(v, index, n: int):
    for i in range(index.size):
        v[index[i]] = i
    for i in range(n):
        v[i] = 0


def test_the_lowest_loop_and_iteration_every_time(device):
    """Failures all over the place, on all threads: fifty launches say the same."""
    index = np.full(100_000, 100, np.int64)
    index[:4321] = 3
    v, there = on(device, np.zeros(10)), on(device, index)
    seen = set()
    for _ in range(50):
        with debug(), pytest.raises(BoundsError) as caught:
            two_loops(v, there, 100_000)
        seen.add((caught.value.tid, caught.value.index, caught.value.frames))
    assert [(tid, index) for tid, index, _ in seen] == [(4321, 100)]
    with debug(), pytest.raises(BoundsError) as caught:
        two_loops(v, there[:4321], 100_000)
    assert (caught.value.tid, caught.value.index) == (10, 10)


def test_off_on_off(device):
    """In one process, as often as one likes; what failed before changes nothing."""
    v = on(device, np.zeros(32, np.float32))
    for _ in range(3):
        scale(v[:16], 2.0, 17)  # past the view, inside the array
        with debug():
            with pytest.raises(BoundsError):
                scale(v[:16], 2.0, 17)
            scale(v[:16], 2.0, 16)
        with debug(False):
            scale(v[:16], 2.0, 17)
    assert scale.cache_info()["variants"] >= 2


MODULE = """
from pyarray.jit.kernel import func

@func
def far(v, i):
    x = v[i]
    return x
"""


def test_a_function_of_another_module(device, tmp_path, monkeypatch):
    (tmp_path / "helpers_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    from helpers_of_a_test import far

    @kernel
    def caller(v, out):
        for i in range(out.size):
            out[i] = far(v, i) + far(out, i + 2)

    with debug(), pytest.raises(BoundsError) as caught:
        caller(on(device, np.zeros(2)), on(device, np.zeros(5)))
    assert [(f.function, os.path.basename(f.path)) for f in caught.value.frames] == [
        ("caller", "test_debug.py"),
        ("far", "helpers_of_a_test.py"),
    ]
    assert (caught.value.frames[1].line, caught.value.argument, caught.value.tid) == (6, "v", 2)
    with debug(), pytest.raises(BoundsError) as caught:
        caller(on(device, np.zeros(9)), on(device, np.zeros(5)))
    assert (caught.value.argument, caught.value.tid, caught.value.index) == ("out", 3, 5)


@func
def mixed(x, y, i):
    return x[i] - y[i + 1]


@kernel
def two_views(v, out):
    for i in range(out.size):
        out[i] = mixed(v[4:8], v[2:6], i) + mixed(v[:2], out, i)


def test_two_views_of_one_array_in_one_call(device):
    """The argument has one name, the offset tells which view it was."""
    with debug(), pytest.raises(BoundsError) as caught:
        two_views(on(device, np.zeros(20))[1:], on(device, np.zeros(6)))
    error = caught.value
    assert (error.argument, error.index, error.offset, error.size, error.tid) == ("v", 2, 1, 2, 2)


@kernel
def by_value(v, out):
    for i in range(out.size):
        x = v[i]
        out[int(x) if x == x else 0] = 1


def test_numbers_that_are_none(device):
    out = on(device, np.zeros(3))
    with debug():
        by_value(on(device, np.array([np.nan, 1.0, 2.0])), out)
        assert asnumpy(out).tolist() == [1, 1, 1]
        for bad in (np.inf, -np.inf, 1e30, -1.0):
            with pytest.raises(BoundsError) as caught:
                by_value(on(device, np.array([0.0, bad, 0.0])), out)
            assert caught.value.tid == 1


def test_the_environment_variable_in_a_fresh_process():
    text = (
        "import pyarray as pa; print(pa.jit.launch_state.launch_state.debug); pa.config.set('PYARRAY_DEBUG', False)\n"
        "print(pa.jit.launch_state.launch_state.debug)"
    )
    for value in ("1", "0"):
        done = subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYARRAY_DEBUG": value},
            capture_output=True,
            text=True,
        )
        assert done.stdout.split() == [str(value == "1"), "False"], done.stderr


def test_the_setting_while_the_process_runs():
    seen = []

    def both():
        """Of this thread and of another one."""
        thread = threading.Thread(target=lambda: seen.append(launch_state.debug))
        thread.start()
        thread.join()
        assert launch_state.key is launch_state.debug
        return launch_state.debug, seen.pop()

    before = launch_state.debug
    try:
        config.set("PYARRAY_DEBUG", True)
        assert both() == (True, True)
        with debug(False):
            assert both() == (False, True)
            config.set("PYARRAY_DEBUG", False)
            config.set("PYARRAY_DEBUG", True)
            assert both() == (False, True)
        assert both() == (True, True)
        with debug():
            config.set("PYARRAY_DEBUG", False)
            assert both() == (True, False)
        assert both() == (False, False)
    finally:
        config.set("PYARRAY_DEBUG", None)
    assert both() == (before, before)


def test_negative_constants_are_reported_as_they_are_written(device):
    @kernel(debug=True)
    def behind_the_start(v, m):
        for i in range(1):
            v[i] = m[2, -6]

    arrays = on(device, np.zeros(5)), on(device, np.zeros((3, 5)))
    with pytest.raises(BoundsError, match="axis 1: got index -6 ") as caught:
        behind_the_start(*arrays)
    assert caught.value.index == -6
