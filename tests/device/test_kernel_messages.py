"""`print` and `assert` in kernels, on every device."""

import contextlib
import io
import pickle

import numpy as np
import pytest
from kernel_tools import on

import pyarray as pa


@pa.func
def noted(x, i):
    if x > 3:
        print("big", x, f"{x:.2f}|{i:>3}|{x!s}")
    for j in range(2):
        print(j, end=";")
    print()
    return x


@pa.kernel
def prints(v, w, n):
    print("before", n, v.size)
    for i in range(v.size):
        v[i] += noted(v[i] * 2, i)
        print(f"i={i}", w[i], v[i] > 2, sep="-")
    m = n + 1
    print("between", m, w[0] + 1j)
    for i, j in pa.ndrange(2, (1, n)):
        print((i, j), True, "const", 3)
    for i in range(v.size - 1, -1, -2):
        print("down", i)


def printed(function, *args):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function(*args)
    return out.getvalue()


def test_lines_are_those_of_python_in_order(device):
    v, w = np.arange(4.0), np.arange(4, dtype=np.float64) / 3
    expected = printed(prints.__wrapped__, v.copy(), w, 3)
    for checked in (False, True):
        with pa.debug(checked):
            assert printed(prints, on(device, v.copy()), on(device, w), 3) == expected


@pa.kernel
def numbers(a, b, c, d):
    for i in range(a.size):
        print(a[i], b[i], c[i], d[i])


def test_numbers_of_all_kinds(device):
    a = np.array([1.1, -0.0, np.nan], np.float32)
    b = np.array([2**64 - 1, 0, 7], np.uint64)
    c = np.array([-(2**63), -1, 5], np.int64)
    d = np.array([1 + 2j, 0, -1j], np.complex128)
    expected = printed(numbers.__wrapped__, a, b, c, d)
    assert printed(numbers, *(on(device, x) for x in (a, b, c, d))) == expected


@pa.kernel
def lots(v):
    for i in range(v.size):
        print(i, i, i)


def test_lines_that_find_no_room_are_counted(device):
    lines = printed(lots, on(device, np.zeros(50000))).splitlines()
    assert len(lines) == 21846
    assert lines[-1] == "kernel[lots]: 28155 lines were lost: there was no room for more than 131072 words"
    shown = [int(line.split()[0]) for line in lines[:-1]]
    assert shown == sorted(shown)
    assert printed(lots, on(device, np.zeros(2))) == "0 0 0\n1 1 1\n"


@pa.func
def checked(x, i):
    assert x < 5, f"x={x:.1f} at {i}"
    return x


@pa.kernel(asserts=True)
def always(v, n):
    for i in range(v.size):
        v[i] = checked(v[i], i) + n


@pa.kernel
def in_debug(v, n):
    for i in range(v.size):
        j = i * 2
        assert 0 <= j < n
        v[i] = j


def test_an_assertion_with_a_message(device):
    for on_debug in (False, True):
        with pa.debug(on_debug), pytest.raises(pa.KernelAssertionError) as caught:
            always(on(device, np.arange(8.0)), 1)
        error = caught.value
        assert isinstance(error, AssertionError)
        assert str(error).startswith("assertion failed: kernel[always] tid=5: x=5.0 at 5\nCallstack:\n  always (test_")
        assert (error.text, error.values, error.tid) == ("x=5.0 at 5", {"x": 5.0, "i": 5}, 5)
        assert [f.function for f in error.frames] == ["always", "checked"]
        assert error.launch[0] == __file__
        assert pickle.loads(pickle.dumps(error)).values == error.values
    v = on(device, np.arange(5.0))
    always(v, 1)
    assert pa.asnumpy(v).tolist() == [1, 2, 3, 4, 5]


def test_an_assertion_without_a_message_shows_its_variables(device):
    v = on(device, np.zeros(8))
    in_debug(v, 7)
    assert pa.asnumpy(v)[7] == 14  # release code has no assertions
    with pa.debug(), pytest.raises(pa.KernelAssertionError, match="tid=4: 0 <= j < n: j = 8, n = 7"):
        in_debug(v, 7)
    with pa.debug():
        in_debug(v, 100)


def test_what_prints_is_in_no_graph(device):
    v = on(device, np.zeros(2))
    lots(v)
    with pytest.raises(RuntimeError, match="prints, and what it prints is read after each launch"), pa.capture():
        lots(v)


@pa.kernel
def told(v, total):
    s = 0.0
    for i in range(v.size):
        if i % 2:
            print("odd", i, v[i])
        s += v[i]
    print("sum", s)
    for i in range(1):
        total[i] = s


def test_saved_and_replayed_kernels_print(device, tmp_path):
    v, total = np.arange(5.0), np.zeros(1)
    expected = printed(told.__wrapped__, v.copy(), total.copy())
    with pa.dump(tmp_path / "dump", level=2):
        assert printed(told, on(device, v), on(device, total)) == expected
    (recorded,) = pa.load_dump(tmp_path / "dump")
    found = {}
    assert printed(lambda: found.update(recorded.replay(trusted=True))) == expected
    assert found["total"].tolist() == [10]
    told.save(tmp_path / "told")
    again, total = pa.load_kernel(tmp_path / "told"), on(device, total)
    assert printed(again, on(device, v), total) == expected
    assert pa.asnumpy(total).tolist() == [10]


def test_saved_kernels_test_assertions(device, tmp_path):
    @pa.kernel(asserts=True)
    def bounded(v, most):
        for i in range(v.size):
            assert v[i] < most, f"{v[i]} is too much"
            v[i] += 1

    v = on(device, np.arange(3.0))
    bounded(v, 9.0)
    bounded.save(tmp_path / "bounded")
    again = pa.load_kernel(tmp_path / "bounded")
    again(v, 9.0)
    assert pa.asnumpy(v).tolist() == [2, 3, 4]
    with pytest.raises(pa.KernelAssertionError, match=r"kernel\[bounded\] tid=2: 4.0 is too much"):
        again(v, 4.0)
    assert [row["debug"] for row in again.manifest()["variants"]] == [False]
    assert bounded.source() == again.source()
    with pytest.raises(RuntimeError, match="tests assertions"), pa.capture():
        bounded(v, 9.0)


def test_arrays_of_numpy(device):
    """These go the general way, with the further arguments of launchers."""
    v, total = np.arange(4.0), np.zeros(1)
    with pa.default_device(device):
        assert printed(told, v, total) == printed(told.__wrapped__, np.arange(4.0), np.zeros(1))
    assert total[0] == 6
