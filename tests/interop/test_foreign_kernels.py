"""Arrays of other libraries as arguments of kernels: warm calls read them in place, with the results of ours."""

import sys
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import numpy_views

import pyarray as pa
from pyarray import config
from pyarray._core import foreign_uses
from pyarray.driver.base import get_device
from tests.interop.dlpack_capsules import exchanging


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pa.kernel
def copy_1d(o, x):
    for i in range(o.size):
        o[i] = x[i]


@pa.kernel
def copy_2d(o, x):
    for i in range(o.shape[0]):
        for j in range(o.shape[1]):
            o[i, j] = x[i, j]


@pa.kernel
def scaled(o, x, s: pa.float64):
    for i in range(o.size):
        o[i] = x[i] * s


def reads(call):
    """How many arguments a call reads in place."""
    before = foreign_uses()
    call()
    return foreign_uses() - before


@pytest.mark.slow
@given(st.integers(1, 2).flatmap(lambda n: numpy_views(shape=(3, 2)[:n])), st.booleans(), st.booleans())
def test_warm_calls_read_arrays_of_any_layout(x, readonly, own_output):
    if readonly:
        x.flags.writeable = False
    if x.ndim not in (1, 2):
        x = x.reshape(-1)
    kernel = copy_1d if x.ndim == 1 else copy_2d
    wanted = pa.asarray(x).tobytes()
    for call in range(3):
        o = np.zeros(x.shape, x.dtype)
        if own_output:
            o = pa.asarray(o)
        found = reads(lambda o=o: kernel(o, x))
        assert o.tobytes() == wanted
        assert not call or found == (1 if own_output else 2)


def test_other_kinds_of_arrays_follow_each_other():
    """The next call's arrays have another dtype, layout, rank or owner: each finds its own variant."""
    base = np.arange(24)
    made = [
        base.astype(kind).reshape(shape)[key]
        for kind in ("f4", "f8", "i4", "u1", ">f4")
        for shape, key in (((24,), slice(0, 6)), ((24,), slice(0, 24, 4)), ((24,), slice(23, None, -4)))
    ]
    for _ in range(3):
        for x in made:
            for as_given in (lambda y: y, pa.asarray):
                o = np.zeros(6)
                scaled(as_given(o), as_given(x), 2)
                assert o.tolist() == (2 * x.astype("f8")).tolist()


def test_read_only_arrays_are_not_written(torch):
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    outputs = (frozen, np.broadcast_to(np.zeros(1), (3,)), torch.zeros(1, dtype=torch.float64).expand(3))
    copy_1d(np.zeros(3), np.ones(3))
    for o in outputs:
        for _ in range(3):
            with pytest.raises(ValueError, match="read-only"):
                copy_1d(o, np.ones(3))
        assert o.tolist() == [0, 0, 0]
        copy_1d(into := np.ones(3), o)
        assert into.tolist() == [0, 0, 0]


def test_libraries_are_mixed_and_told(torch):
    kind = exchanging()
    for call in range(4):
        t = torch.zeros(6, dtype=torch.float64)
        producer = kind(np.arange(6.0).tobytes(), (6,), bits=64)
        found = reads(lambda t=t, x=producer: scaled(t, x, 3))
        assert t.tolist() == [0, 3, 6, 9, 12, 15]
        assert (t._version, producer.deleted) == (1, 1 if call else producer.deleted)
        found += reads(lambda t=t: scaled(pa.zeros(6), t, 3))
        found += reads(lambda t=t: scaled(np.zeros(6), t, 3))
        assert t._version == 1
        assert not call or found == 5


def test_keyword_arguments_and_many_parameters(torch):
    @pa.kernel
    def many(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, *, r):  # noqa: E741
        for z in range(a.size):
            a[z] = b[z] + c[z] + d[z] + e[z] + f[z] + g[z] + h[z] + i[z] + j[z] + k[z] + l[z]
            a[z] += m[z] + n[z] + o[z] + p[z] + q[z] + r[z]

    arrays = [np.full(3, float(n)) if n % 2 else torch.full((3,), float(n), dtype=torch.float64) for n in range(1, 17)]
    for call in range(3):
        out = np.zeros(3)
        found = reads(lambda out=out: many(out, *arrays, r=torch.ones(3, dtype=torch.float64)))
        assert out.tolist() == [137, 137, 137]
        assert not call or found == 18


@dataclass
class Pair:
    x: Any
    y: Any


@pa.kernel
def of_pair(o, pair, more):
    for i in range(o.size):
        o[i] = pair.x[i] - pair.y[i] + more[0][i]


def test_arrays_in_structures(torch):
    x, y, z = np.arange(3.0), torch.ones(3, dtype=torch.float64), np.full(3, 10.0)
    for call in range(3):
        o = pa.zeros(3)
        found = reads(lambda o=o: of_pair(o, Pair(x, y), (z,)))
        assert o.tolist() == [9, 10, 11]
        assert not call or found == 3


# where a kernel runs


def test_the_default_device_decides_where_arrays_of_the_host_go(monkeypatch):
    """On the CPU only where that is the default device, or an array of ours is there."""
    x = np.ones(3)

    def call(*more):
        before = pa.transfer_info()
        scaled(*more, x, 2.0) if more else scaled(np.zeros(3), x, 2.0)
        uploads, used = (pa.transfer_info()[name] - before[name] for name in ("uploads", "read_in_place"))
        assert not (uploads and used)
        return uploads

    own = pa.zeros(3)
    for _ in range(3):
        assert (call(), call(own)) == (0, 0)
    with pa.default_device("null"):
        assert (call(), call(own)) == (1, 0)
        with pa.default_device("cpu"):
            assert call() == 0
    pa.set_default_device("null")
    try:
        assert (call(), call(own)) == (1, 0)
    finally:
        pa.set_default_device(None)
    for text, uploads in (("null", 1), ("cpu", 0), ("cpu:0", 0), ("", 0), (" ", 0)):
        monkeypatch.setenv("PYARRAY_DEVICE", text)
        assert call() == uploads
    config.set("PYARRAY_DEVICE", "cpu")
    monkeypatch.setenv("PYARRAY_DEVICE", "null")
    try:
        assert call() == 0
    finally:
        config.set("PYARRAY_DEVICE", None)


def test_arrays_of_the_host_go_to_the_device_of_ours(device):
    x = np.arange(3.0)
    for _ in range(3):
        o = pa.zeros(3, device=device)
        scaled(o, x, 2.0)
        assert o.tolist() == [0, 2, 4]
        into = np.zeros(3)
        scaled(into, pa.ones(3, device=device), 2.0)
        assert into.tolist() == [2, 2, 2]


def test_tables_of_arrays_on_a_device_in_one_stream():
    ours = get_device("null").driver.current_stream()
    kind, elsewhere = exchanging(ours), exchanging(ours + 8)
    o = pa.zeros(6, device="null")
    for call in range(3):
        x = kind(np.arange(6.0).tobytes(), (6,), bits=64, device=(12, 0))
        y = elsewhere(np.arange(6.0).tobytes(), (6,), bits=64, device=(12, 0))
        assert reads(lambda x=x: scaled(o, x, 2.0)) == 1 or not call
        assert reads(lambda y=y: scaled(o, y, 2.0)) == 0


# what is wrong


def test_errors_are_those_of_the_general_way(torch):
    scaled(np.zeros(3), np.ones(3), 2.0)
    leaf = torch.ones(3, requires_grad=True)
    for _ in range(3):
        with pytest.raises(ValueError, match="'x' is a tensor that requires grad"):
            scaled(np.zeros(3), leaf, 2.0)
        with pytest.raises(TypeError, match="'x' can't be used: a masked array"):
            scaled(np.zeros(3), np.ma.masked_array([1.0, 2, 3]), 2.0)
        with pytest.raises(TypeError, match=r"'x' is an array of object|array of object"):
            scaled(np.zeros(3), np.array([None] * 3), 2.0)
        with pytest.raises(TypeError):
            scaled(np.zeros(3), [1.0, 2, 3], 2.0)
        with pytest.raises(TypeError):
            scaled(np.zeros(3), np.ones(3), "text")
        with pytest.raises(TypeError):
            scaled(np.zeros(3), np.ones(3))


def test_bounds_of_other_libraries_arrays_are_checked():
    @pa.kernel(debug=True)
    def too_far(o, x):
        for i in range(o.size):
            o[i] = x[i + 1]

    for _ in range(3):
        with pytest.raises(IndexError, match="x"):
            too_far(np.zeros(3), np.ones(3))
        too_far(np.zeros(3), np.ones(4))


def test_iterations_that_are_too_many():
    @pa.kernel
    def touch(o, x, y):
        for i, j in pa.ndrange(x.size, y.size):
            if i + j == 0:
                o[0] = x[0] + y[0]

    wide = np.lib.stride_tricks.as_strided(np.zeros(1), (1 << 33,), (0,))
    o = np.zeros(1)
    touch(o, wide[:5], wide[:5])
    for _ in range(3):
        with pytest.raises(ValueError, match=r"iterations, and 2.*63 - 1 is the most"):
            touch(o, wide, wide)
        touch(o, wide[:5], wide[:7])


# lifetimes and threads


def test_nothing_is_left_behind(torch):
    kind = exchanging()
    x, t, producer = np.ones(6), torch.ones(6, dtype=torch.float64), kind(np.ones(6).tobytes(), (6,), bits=64)
    odd = np.ones(6).astype(">f8")
    everything = (x, t, producer, odd, kind, None)
    for _ in range(2):
        scaled(x, t, 1.0)
        scaled(t, producer, 1.0)
    deleted = producer.deleted
    before = [sys.getrefcount(y) for y in everything]
    for _ in range(200):
        scaled(x, t, 1.0)
        scaled(t, producer, 1.0)
        with pytest.raises(TypeError):
            scaled(t, producer, "text")
    after = [sys.getrefcount(y) for y in everything]
    assert [b - a < 50 for a, b in zip(before, after, strict=True)] == [True] * len(everything)
    assert producer.deleted >= deleted + 400


def test_threads_call_with_arrays_of_their_own(torch):
    wrong = []

    def work(k):
        x, t = np.full(20000, float(k)), torch.zeros(20000, dtype=torch.float64)
        for n in range(50):
            scaled(t, x[: 10000 + n], 2.0) if n % 2 else scaled(x, t, 1.0) or x.fill(k)
            if n % 2 and not (t[0] == 2 * k == t[9999]):
                wrong.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_captures_see_these_launches(torch):
    x, t = np.ones(3), torch.zeros(3, dtype=torch.float64)
    for _ in range(3):
        scaled(t, x, 2.0)
    a, o = pa.asarray(x), pa.zeros(3)
    with pa.capture() as graph:
        scaled(o, x, 2.0)
    x[:] = 4
    graph.launch()
    assert (o.tolist(), a.tolist()) == ([8, 8, 8], [4, 4, 4])
