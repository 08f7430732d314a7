"""Nothing is stale: temporaries, structures, recycled addresses, captured values, threads."""

import enum
import gc
import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from kernel_tools import on

import pyarray as pa

SIZE, COUNT = 256, 16


@dataclass
class Mutable:
    v: Any
    x: float


@dataclass(frozen=True)
class Frozen:
    v: Any
    x: float


class Named(NamedTuple):
    v: Any
    x: float


@pa.kernel
def direct(v, x):
    for i in range(v.size):
        v[i] = x


@pa.kernel
def through(p):
    for i in range(p.v.size):
        p.v[i] = p.x


@pa.kernel
def typed(p: Frozen):
    for i in range(p.v.size):
        p.v[i] = p.x


WAYS = {
    "direct": (direct, lambda v, x: (v, x)),
    "mutable": (through, lambda v, x: (Mutable(v, x),)),
    "frozen": (through, lambda v, x: (Frozen(v, x),)),
    "annotated": (typed, lambda v, x: (Frozen(v, x),)),
    "named": (through, lambda v, x: (Named(v, x),)),
}


@pytest.mark.parametrize("way", WAYS)
def test_sixteen_temporaries(device, way):
    kernel, pack = WAYS[way]
    data = on(device, np.zeros(SIZE, np.float32))
    kernel(*pack(data[:1], 0.0))  # warm
    step, seen, repeats, before = SIZE // COUNT, set(), 0, kernel.cache_info()
    for n in range(COUNT):
        args = pack(data[n * step : (n + 1) * step], float(n))
        key = id(args[0])
        repeats += key in seen
        seen.add(key)
        kernel(*args)
        del args
    assert repeats  # or the loop proves nothing
    assert pa.asnumpy(data).tolist() == [float(i // step) for i in range(SIZE)]
    after = kernel.cache_info()
    assert after["variants"] == before["variants"]
    assert after["hits"] - before["hits"] == COUNT


def test_one_structure_rebound(device):
    data = on(device, np.zeros(SIZE))
    p = Mutable(data[:8], 0.0)
    through(p)
    before = through.cache_info()
    for n in range(SIZE // 8):
        p.v, p.x = data[8 * n : 8 * n + 8], n + 0.5
        through(p)
    assert pa.asnumpy(data).tolist() == [i // 8 + 0.5 for i in range(SIZE)]
    after = through.cache_info()
    assert (after["variants"], after["hits"] - before["hits"]) == (before["variants"], SIZE // 8)
    p.x = 3  # an integer: another type, another variant
    through(p)
    assert data[-1].item() == 3
    p.v = on(device, np.zeros((2, 2), np.int16))[0]
    through(p)
    assert pa.asnumpy(p.v).tolist() == [3, 3]


def test_recycled_addresses_with_another_type(device):
    """Views and structures are freed and made again, so that addresses of objects and of memory come back."""
    kinds = [np.float32, np.int64, np.uint8, np.float64]
    seen, repeats = set(), 0
    for n in range(200):
        size = n * 7 % 13 + 1
        a = on(device, np.zeros(2 * size, kinds[n % 4]))
        p = Frozen(a[::2] if n % 3 else a[:size], n % 100)
        repeats += id(p) in seen
        seen.add(id(p))
        through(p)
        expected = np.zeros(2 * size)
        expected[: None if n % 3 else size : 2 if n % 3 else 1] = n % 100
        assert pa.asnumpy(a).tolist() == expected.tolist()
        del a, p
    assert repeats


def test_threads(device):
    launches, wrong = 10_000, []

    def work(n):
        data = on(device, np.zeros(1024, np.float32))
        for k in range(launches):
            view = data[k % 1000 : k % 1000 + 4]
            if k % 2:
                direct(view, float(n))
            else:
                through(Frozen(view, float(-n)))
        if set(pa.asnumpy(data).tolist()) - {0.0, float(n), float(-n)}:
            wrong.append(n)
        end = pa.asnumpy(data)[(launches - 1) % 1000 :][:4]
        if (end != n).any():
            wrong.append((n, end))

    direct(on(device, np.zeros(4, np.float32)), 0.0)
    before = direct.cache_info()
    threads = [threading.Thread(target=work, args=(n + 1,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    after = direct.cache_info()
    assert after["hits"] - before["hits"] >= 4 * launches // 2 - 4
    assert after["variants"] == before["variants"]


def test_a_structure_that_changes_while_it_is_launched(device):
    """What was looked up is what is launched: the field is read once."""
    small, large = on(device, np.zeros(4, np.int8)), on(device, np.zeros(4000))
    p, stop = Mutable(small, 1.0), threading.Event()

    def swap():
        while not stop.is_set():
            p.v = large
            p.v = small

    other = threading.Thread(target=swap)
    other.start()
    try:
        for _ in range(3000):
            through(p)
    finally:
        stop.set()
        other.join()
    assert set(pa.asnumpy(small).tolist()) <= {0, 1}
    assert set(pa.asnumpy(large).tolist()) <= {0.0, 1.0}


def test_many_threads_and_one_cold_kernel(device):
    @pa.kernel
    def cold(v):
        for i in range(v.size):
            v[i] = 987654

    arrays = [on(device, np.zeros(4)) for _ in range(32)]
    gate = threading.Barrier(32)

    def work(a):
        gate.wait()
        cold(a)

    threads = [threading.Thread(target=work, args=(a,)) for a in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    info = cold.cache_info()
    assert (info["variants"], info["compiles"] + info["disk_hits"]) == (1, 1)
    assert all(pa.asnumpy(a).tolist() == [987654] * 4 for a in arrays)


def test_structures_keep_nothing_alive(device):
    """Neither arguments nor their classes' instances are held by what a launch leaves behind."""
    deleted = []

    class Watched:
        def __init__(self, v):
            self.v, self.x = v, 1.0

        def __del__(self):
            deleted.append(1)

    through(Watched(on(device, np.zeros(2))))
    gc.collect()
    assert deleted


def test_an_error_leaves_the_next_launch_sound(device):
    v = on(device, np.zeros(2))
    through(Mutable(v, 1.0))
    for bad in (Mutable(v, 1j), Mutable(None, 1.0), Mutable(v, "x"), None, (1,), Mutable(3, 1.0)):
        with pytest.raises((TypeError, pa.CompileError)):
            through(bad)
    through(Mutable(v, 2.0))
    assert pa.asnumpy(v).tolist() == [2, 2]


# ---- captured values


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Options:
    scale: float = 1.0
    weights: list = field(default_factory=lambda: [1, 2])


class Holder:
    RATE = 1


OPTIONS, TABLE, LIST, PAIR = Options(), {"a": 1, 2: (1, 2)}, [1, 2], Named(1, 2.0)
NUMBER, LEVEL, CAST, FUNCTION = np.float32(1), Level.LOW, np.float64, np.sqrt


@pa.func
def helper(x, y=1.0):
    return x * y + Holder.RATE


@pa.kernel
def captured(out):
    for _ in range(1):
        out[0] = OPTIONS.scale
        out[1] = OPTIONS.weights[1]
        out[2] = TABLE["a"] + TABLE[2][1]
        out[3] = LIST[-1]
        out[4] = PAIR.v + PAIR[1]
        out[5] = NUMBER + LEVEL
        out[6] = CAST(0.1)
        out[7] = FUNCTION(4.0)
        out[8] = helper(1.0)


def changes(patch):
    """(index of the result, its value) after each change."""
    module = globals()
    patch.setattr(OPTIONS, "scale", 3.0)
    yield 0, 3.0
    patch.setattr(OPTIONS, "scale", 3)
    yield 0, 3
    patch.setitem(module, "OPTIONS", Options(5.0, [0, 9]))
    yield 0, 5.0
    yield 1, 9
    patch.setitem(TABLE, "a", 10)
    yield 2, 12
    patch.setitem(TABLE, 2, (0, 20))
    yield 2, 30
    LIST[1] = 7
    yield 3, 7
    LIST.append(8)
    yield 3, 8
    LIST.pop()
    yield 3, 7
    patch.setitem(module, "PAIR", Named(2, 3.5))
    yield 4, 5.5
    patch.setitem(module, "NUMBER", np.float32(0.5))
    yield 5, 1.5
    patch.setitem(module, "LEVEL", Level.HIGH)
    yield 5, 2.5
    patch.setitem(module, "CAST", np.float32)
    yield 6, float(np.float32(0.1))
    patch.setitem(module, "FUNCTION", np.square)
    yield 7, 16
    patch.setattr(Holder, "RATE", 4)
    yield 8, 5
    patch.setattr(helper.__wrapped__, "__defaults__", (3.0,))
    yield 8, 7
    patch.setitem(module, "helper", pa.func(lambda x: x + 100))
    yield 8, 101


def test_every_captured_value_is_watched(device, monkeypatch):
    out = on(device, np.zeros(9))

    def run():
        captured(out)
        return pa.asnumpy(out).tolist()

    assert run() == [1, 2, 3, 2, 3, 2, 0.1, 2, 2]
    for index, expected in changes(monkeypatch):
        assert run()[index] == expected
    before = captured.cache_info()
    assert run() == run()
    after = captured.cache_info()
    assert (after["misses"], after["hits"] - before["hits"]) == (before["misses"], 2)
    LIST[1] = 2  # for the next device


def test_an_equal_value_is_not_compiled_again(device, monkeypatch):
    out = on(device, np.zeros(9))
    captured(out)
    before = captured.cache_info()["misses"]
    monkeypatch.setitem(globals(), "PAIR", Named(1, 2.0))
    monkeypatch.setattr(OPTIONS, "scale", float("1.0"))
    captured(out)
    captured(out)
    assert captured.cache_info()["misses"] == before


def test_constants_that_are_equal_and_differ(device):
    @dataclass(frozen=True)
    class Config:
        x: Any

    @pa.kernel
    def k(out, c: pa.constexpr):
        for i in range(out.size):
            out[i] = c.x

    values = (1, 1.0, np.float32(1), np.int8(1), 0.0, -0.0, np.float32(0.0), np.float32(-0.0))
    for value in values:
        k(out := on(device, np.full(1, 5.0)), Config(value))
        assert np.array_equal(pa.asnumpy(out), [value])
        assert np.signbit(pa.asnumpy(out)[0]) == np.signbit(value)
    assert k.cache_info()["variants"] == len(values)


def test_captured_arrays_are_refused(device):
    array = on(device, np.zeros(3))

    @pa.kernel
    def k(v):
        for i in range(v.size):
            v[i] = array[i]

    with pytest.raises(pa.CompileError, match=r"can't be indexed(.*\n)*arrays are not captured: pass it as"):
        k(array)


RULES = {"a": 1}


@pa.kernel(on_global_change="raise")
def pinned(v):
    for i in range(v.size):
        v[i] = RULES["a"] + Holder.RATE + helper(1.0)


def test_changes_that_are_refused(device, monkeypatch):
    v = on(device, np.zeros(2))
    pinned.forget()
    pinned(v)
    for change, message in (
        (lambda p: p.setitem(RULES, "a", 2), "item 'a' of a captured dict = 1, which is now 2; pass it as"),
        (lambda p: p.setitem(RULES, "b", 2), None),
        (lambda p: p.delitem(RULES, "a"), "item 'a' of a captured dict = 1, which is now nothing"),
        (lambda p: p.setattr(Holder, "RATE", 9), r"Holder\.RATE = 1, which is now 9"),
        (
            lambda p: p.setattr(helper.__wrapped__, "__defaults__", (5,)),
            r"helper.__defaults__ = \(1.0,\), which",
        ),
        (
            lambda p: p.setitem(globals(), "helper", pa.func(lambda x: x)),
            "helper = <func helper>, which is now",
        ),
    ):
        with monkeypatch.context() as patch:
            change(patch)
            if message is None:
                pinned(v)
                continue
            with pytest.raises(RuntimeError, match=f"kernel 'pinned' was compiled with {message}"):
                pinned(v)
        pinned(v)
        assert pa.asnumpy(v).tolist() == [4, 4]
    assert pinned.cache_info()["variants"] == 1
