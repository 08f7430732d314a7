"""Binding and launching: what an argument may be, what is keyed, threads, forks, failures."""

import os
import threading

import numpy as np
import pytest
from kernel_tools import on

import pyarray as pa
from pyarray.array import ndarray
from pyarray.array_convert import asarray, asnumpy
from pyarray.buffer_view import BufferView
from pyarray.dtypes import float32, int8, int64, uint8
from pyarray.errors import CompileError
from pyarray.jit.kernel import func, kernel
from pyarray.lang.markers import constexpr


@kernel
def fill(v: BufferView[float32], x: float32 = 1.0):
    for i in range(v.size):
        v[i] = x


@kernel
def typed(v: ndarray[int64, 1], a: int8, b: uint8, flag: bool, n: int):
    for i in range(v.size):
        v[i] = int64(n) + a + b if flag else -1


@kernel
def total(v, out):
    for i in range(out.size):
        out[i] = v[i]


def test_wrong_arguments_are_named(device):
    f32, f64 = on(device, np.zeros(8, np.float32)), on(device, np.zeros(8))
    m = on(device, np.zeros((2, 2), np.float32))
    for bad, message in (
        (
            f64,
            r"fill\(\): 'v' must be a 1-D contiguous array of float32, got an array of float64; convert",
        ),
        (m, r"'v' must be a 1-D contiguous array of float32, got a 2-D array of shape \(2, 2\)"),
        (f32[::2], r"'v' is a BufferView, which is contiguous, and got strides \(8,\)"),
        ([1, 2], r"'v' must be .*, got list"),
        (3, r"'v' must be .*, got int"),
    ):
        with pytest.raises(TypeError, match=message):
            fill(bad)
    for call in (lambda: fill(), lambda: fill(f32, 1, 2), lambda: fill(f32, y=1), lambda: fill(f32, v=f32)):
        with pytest.raises(TypeError, match=r"^fill\(\) (missing|takes|got|has no keyword)"):
            call()
    with pytest.raises(pa.CompileError, match="the Python object 'abc' has no attribute 'size'"):
        total(f32, "abc")  # texts are compiled in


def test_scalars(device):
    v = on(device, np.zeros(2, np.int64))
    for _ in range(2):  # the first call binds, the second only packs
        typed(v, -128, 255, True, 2**40)
        assert asnumpy(v).tolist() == [-128 + 255 + 2**40] * 2
        typed(v, np.int8(1), np.uint64(2), np.True_, np.int32(4))
        assert asnumpy(v).tolist() == [7, 7]
        typed(v, True, 2, False, n=np.bool_(1))
        assert asnumpy(v).tolist() == [-1, -1]
        for bad, error, message in (
            ((128, 0, True, 1), OverflowError, "'a' = 128 is out of range for int8"),
            ((0, -1, True, 1), OverflowError, "'b' = -1 is out of range for uint8"),
            ((0, 0, True, 2**63), OverflowError, "'n' = 9223372036854775808 is out of range for int64"),
            ((0.5, 0, True, 1), TypeError, "'a' must be a number of type int8, got float"),
            ((0, 0, "yes", 1), TypeError, "'flag' must be a number of type bool, got str"),
            ((0, 0, 1, 1), TypeError, "'flag' must be a number of type bool, got int"),
            ((0, 0, True, None), TypeError, "'n' must be a number of type int, got NoneType"),
        ):
            with pytest.raises(error, match=message):
                typed(v, *bad)
    fill(f := on(device, np.zeros(1, np.float32)), 1e300)
    assert asnumpy(f)[0] == np.inf
    fill(f, float("nan"))
    assert np.isnan(asnumpy(f)[0])
    with pytest.raises(TypeError, match="'x' must be a number of type float32, got complex"):
        fill(f, 1j)


def test_read_only_arrays(device):
    x = np.zeros(4, np.float32)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="'v' is written by the kernel, and this array is read-only"):
        fill(asarray(x))
    (v := on(device, x)).flags.writeable = False
    with pytest.raises(ValueError, match="'v' is written by the kernel, and this array is read-only"):
        fill(v)
    total(v, out := on(device, np.ones(4)))
    assert asnumpy(out).tolist() == [0] * 4


def test_repeated_elements_are_read_only():
    @kernel
    def raised(x, by):
        for i in range(x.shape[0]):
            x[i] += by

    repeated = np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (4,), (0,))
    for given in (repeated, asarray(repeated), pa.broadcast_to(pa.ones(1), 4)):
        with pytest.raises(ValueError, match=r"'x' .* read-only: elements repeat .*; pass a copy"):
            raised(given, 1.0)
    total(repeated, out := pa.zeros(4))
    assert out.tolist() == [1] * 4


def test_signature_and_repr(device):
    with pytest.raises(RuntimeError, match="before its first launch"):
        _ = kernel(total.__wrapped__).signature
    total(on(device, np.zeros(4)), on(device, np.zeros(4)))
    assert [row.direction for row in total.signature.values()] == ["IN", "OUT"]
    assert "total" in repr(total)
    with pytest.raises(RuntimeError, match="has not been compiled"):
        kernel(total.__wrapped__).source()


# ---- nothing is stale


def test_temporary_views_are_never_stale(device):
    base = np.zeros(256, np.float32)
    data = on(device, base)
    fill(data[:8], 0)
    before, ids = fill.cache_info(), set()
    repeats = 0
    for n in range(32):
        view = data[8 * n : 8 * n + 8]
        repeats += id(view) in ids
        ids.add(id(view))
        fill(view, n)
        del view
    assert repeats
    assert asnumpy(data).tolist() == [float(i // 8) for i in range(256)]
    after = fill.cache_info()
    assert after["variants"] == before["variants"]
    assert after["hits"] - before["hits"] == 32


SCALE = 2


@kernel
def captured(v):
    for i in range(v.size):
        v[i] = SCALE


@kernel(on_global_change="raise")
def pinned(v):
    for i in range(v.size):
        v[i] = SCALE


def test_captured_values(device, monkeypatch):
    v = on(device, np.zeros(2))

    def run():
        captured(v)
        return asnumpy(v)[0]

    assert run() == 2
    pinned(v)
    for value in (3, 2.5, True, 3):
        monkeypatch.setitem(globals(), "SCALE", value)
        assert [run(), run()] == [value, value]
    with pytest.raises(RuntimeError, match="was compiled with SCALE = 2, which is now 3"):
        pinned(v)
    monkeypatch.setitem(globals(), "SCALE", 2)
    pinned(v)
    monkeypatch.delitem(globals(), "SCALE")
    with pytest.raises(CompileError, match="'SCALE' is not defined"):
        captured(v)


def test_a_redefined_function(device):
    v = on(device, np.zeros(2))
    f = func(lambda x: x + 1)

    @kernel
    def k(v):
        for i in range(v.size):
            v[i] = f(v[i])

    k(v)
    f = func(lambda x: x * 10)
    k(v)
    assert asnumpy(v)[0] == 10


@kernel
def static(v, c: constexpr, keep: constexpr = None):
    for i in range(v.size):
        v[i] = v[i] + c


def test_constexpr_values_are_told_apart(device):
    static.forget()
    for value in (0.0, -0.0, 1, True, 1.0, np.float32(1)):
        v = on(device, np.full(2, -0.0))
        static(v, value)
        assert np.signbit(asnumpy(v)[0]) == np.signbit(-0.0 + value)
    assert static.cache_info()["variants"] == 6
    with pytest.raises(CompileError, match="expected a number"):
        static(v, [1, 2])


def test_kernels_of_one_name(device):
    made = []
    for n in (1, 2):

        @kernel
        def same(v):
            for i in range(v.size):
                v[i] = n  # noqa: B023

        made.append(same)
        v = on(device, np.zeros(1))
        same(v)
        assert asnumpy(v)[0] == n


# ---- threads, forks, failures


def test_threads_with_arrays_of_their_own(device):
    def work(n, wrong):
        data = on(device, np.zeros(1000, np.float32))
        for k in range(300):
            view = data[k : k + 16]
            fill(view, n * 1000 + k)
            if (asnumpy(view) != n * 1000 + k).any():
                wrong.append((n, k))

    wrong: list = []
    threads = [threading.Thread(target=work, args=(n, wrong)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_threads_compile_once(device):
    @kernel
    def fresh(v):
        for i in range(v.size):
            v[i] = 123454321

    results = []
    arrays = [on(device, np.zeros(4)) for _ in range(4)]
    threads = [threading.Thread(target=lambda a=a: results.append(fresh(a))) for a in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    info = fresh.cache_info()
    assert (len(results), info["variants"], info["compiles"] + info["disk_hits"]) == (4, 1, 1)
    assert all(asnumpy(a)[3] == 123454321 for a in arrays)


def test_fork(device):
    if device != "cpu":
        pytest.skip("a driver of a GPU doesn't survive a fork")
    v = on(device, np.zeros(100_000, np.float32))
    fill(v, 1)
    child = os.fork()
    if child == 0:
        fill(v, 2)
        kernel(total.__wrapped__)(v, w := asarray(np.zeros(4)))
        os._exit(0 if asnumpy(v)[-1] == 2 and asnumpy(w)[0] == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, CompileError])
def test_a_failed_compile_leaves_nothing(device, error, monkeypatch):
    from pyarray.jit import compile as compiler

    @kernel
    def fragile(v):
        for i in range(v.size):
            v[i] = 77

    def fail(*args):
        raise error("in the middle")

    v = on(device, np.zeros(2))
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "load", fail)
        with pytest.raises(error, match="in the middle"):
            fragile(v)
    assert fragile.cache_info()["variants"] == 0
    fragile(v)
    assert asnumpy(v)[0] == 77


def test_zero_sizes(device):
    for shape in ((0,), (0, 3), (3, 0)):
        total(on(device, np.zeros(shape[:1])), on(device, np.zeros(0)))
    whole = on(device, np.zeros(4, np.float32))
    fill(whole[2:2])
    assert asnumpy(whole).tolist() == [0.0] * 4
    out = on(device, np.arange(4.0))
    total(on(device, np.zeros(0)), out[4:])
    assert asnumpy(out).tolist() == [0.0, 1.0, 2.0, 3.0]


def test_functions_on_the_host():
    assert func(lambda x: x + 1)(2) == 3
    with pytest.raises(ValueError, match="on_global_change is"):
        kernel(on_global_change="ignore")


@kernel
def three_times(v, out):
    for i in range(out.size):
        x = v[i]
        out[i] = x + x + x


def test_large_results_are_whole(device):
    """Past some size results are stored past the cache, in blocks: none is lost, none lands elsewhere."""
    n = (16 << 20) // 4
    source = np.arange(n + 40, dtype=np.float32)
    v, base = on(device, source), on(device, np.full(n + 40, -1, np.float32))
    for start, count in ((0, n), (1, n + 7), (13, n - 1), (16, n + 16)):
        base[...] = -1
        three_times(v[3:], base[start : start + count])
        expected = np.full(n + 40, -1, np.float32)
        expected[start : start + count] = 3 * source[3 : 3 + count]
        assert np.array_equal(asnumpy(base), expected)
    three_times(base, base)  # in place
    expected[...] *= 3
    assert np.array_equal(asnumpy(base), expected)
    wide = on(device, np.arange(n, dtype=np.float64))
    out = on(device, np.zeros(n + 1, np.int8))[1:]
    three_times(wide, out)  # too small to be stored so, but read from what is large
    assert np.array_equal(asnumpy(out), (3 * np.arange(n)).astype(np.int64).astype(np.int8))


def test_a_kernel_whose_arguments_are_all_unused(device):
    @pa.kernel
    def nothing(v):
        for i in range(3):
            if i > 5:
                v[0] = 1

    @pa.kernel
    def empty(v):
        for _ in range(3):
            pass

    v = pa.zeros(2, device=device)
    for k in (nothing, empty):
        k(v)
        with pa.debug():
            k(v)
        with pa.capture(v=v) as graph:
            k(v)
        graph.launch()
        pa.synchronize(device)
    assert pa.asnumpy(v).tolist() == [0, 0]
