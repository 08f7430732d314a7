"""Parameters of several parts: tuples, named tuples, dataclasses, objects; methods."""

from __future__ import annotations

import dataclasses
import enum
import linecache
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import on
from strategies import examples

import pyarray as pa


class Pair(NamedTuple):
    v: pa.BufferView[pa.float32]
    factor: float


@dataclass
class Inner:
    v: Any
    shift: pa.int64 = 2


@dataclass(frozen=True)
class Params:
    v: pa.BufferView[pa.float32]
    factor: float
    inner: Inner
    mode: str = "add"
    log: list = dataclasses.field(default_factory=list)

    LIMIT = 100

    def total(self):
        return self.factor

    @property
    def half(self):
        return self.factor / 2


class Mode(enum.Enum):
    FAST = 1
    SAFE = 2


def floats(device, *values):
    return on(device, np.array(values, np.float32))


@pa.func
def moved(p, i):
    return p.v[i] * p.factor + p.inner.shift


@pa.func
def annotated(p: Params, i):
    return p.inner.v[i] + p.LIMIT


@pa.kernel
def whole(p: Params, out):
    inner = p.inner
    for i in range(out.size):
        out[i] = moved(p, i) + inner.v[i] + annotated(p, i)


@pa.kernel
def open_struct(p, out):
    for i in range(out.size):
        out[i] = p.v[i] * p.factor


def test_nested_dataclasses(device):
    v, w = floats(device, 1, 2, 3), floats(device, 10, 20, 30)
    p, out = Params(v, 2.0, Inner(w)), on(device, np.zeros(3))
    whole.forget()
    before = whole.cache_info()
    for _ in range(2):
        whole(p, out)
        assert pa.asnumpy(out).tolist() == [2 + 2 + 20 + 100, 4 + 2 + 40 + 100, 6 + 2 + 60 + 100]
    p.inner.shift = 5
    p.inner.v = w[1:]
    whole(p, out[:2])
    assert pa.asnumpy(out).tolist()[:2] == [2 + 5 + 40 + 100, 4 + 5 + 60 + 100]
    info = {name: count - before[name] for name, count in whole.cache_info().items()}
    assert (info["variants"], info["misses"], info["hits"]) == (1, 1, 2)
    assert {n: row.direction for n, row in whole.signature.items()} == {
        "p.v": "IN", "p.factor": "SCALAR", "p.inner.v": "IN", "p.inner.shift": "SCALAR", "out": "OUT",
    }  # fmt: skip
    assert list(whole.signature.arrays) == ["p.v", "p.inner.v", "out"]
    p.inner.v = on(device, np.arange(6)[::2])  # another dtype and layout
    whole(p, out)
    assert pa.asnumpy(out).tolist() == [2 + 5 + 100, 4 + 5 + 4 + 100, 6 + 5 + 8 + 100]


def test_one_parameter_of_many_classes(device):
    @dataclass
    class Other:
        factor: float
        v: Any

    class Plain:
        def __init__(self, v, factor):
            self.v, self.factor = v, factor

    class Slots:
        __slots__ = ("factor", "v")

        def __init__(self, v, factor):
            self.v, self.factor = v, factor

    v, out = floats(device, 1, 2), on(device, np.zeros(2))
    before = open_struct.cache_info()["variants"]
    for _ in range(3):
        for k, p in enumerate((Pair(v, 2), Other(3, v), Plain(v, 4.0), Slots(v, 5), Inner, 6)):
            if k < 4:
                open_struct(p, out)
                assert pa.asnumpy(out).tolist() == [k + 2, 2 * k + 4]
    info = open_struct.cache_info()
    assert info["variants"] - before == 4
    assert info["hits"] >= 8


def test_tuples(device):
    @pa.kernel
    def k(t, out, scales: tuple[pa.float32, int] = (2, 3)):
        a, (b, c) = t
        for i in range(out.size):
            out[i] = a[i] * scales[0] + b[i] * scales[1] + c + len(t) + t[1][1]

    a, out = floats(device, 1, 2), on(device, np.zeros(2))
    for _ in range(2):
        k((a, (a, 5)), out)
        assert pa.asnumpy(out).tolist() == [17, 22]
    k((a, (a[::-1], 5)), out, (1, 0))
    k((a, (a[::-1], 5)), out, scales=(1, 0))
    assert pa.asnumpy(out).tolist() == [13, 14]
    with pytest.raises(TypeError, match=r"k\(\): 'scales' must be a tuple of 2, got a tuple of 3"):
        k((a, (a, 5)), out, (1, 2, 3))
    with pytest.raises(TypeError, match=r"'scales\[1\]' must be a number of type int, got float"):
        k((a, (a, 5)), out, (1, 2.5))
    with pytest.raises(pa.CompileError, match="2 names can't be assigned from 3 values"):
        k((a, (a, 5, 6)), out)
    with pytest.raises(pa.CompileError, match="2 names can't be assigned from 1 values"):
        k((a,), out)
    with pytest.raises(pa.CompileError, match="names can't be assigned from"):
        k(a, out)


def test_what_functions_return(device):
    @pa.func
    def split(v, i):
        return v[:i], v[i:], i

    @pa.func
    def pair(v, factor):
        return Pair(v, factor=factor)

    @pa.func
    def both(p: Pair, t):
        x, y = t[1], p.factor
        x, y = y, x
        return x, y

    @pa.kernel
    def k(v, out):
        for i in range(out.size):
            low, high, n = split(v, i)
            p = pair(high, 2.0)
            t = (1, n)
            t = (t[1], t[0] + 10)
            x, y = both(p, t)
            if x > 1:
                t = both(p, (1, 2))
            out[i] = len(low) + 10 * len(p.v) + 100 * x + 1000 * y + p.v[0] + split(v, 1)[2] + t[0]

    v, out = floats(device, 1, 2, 3), on(device, np.zeros(3))
    k(v, out)
    assert k.signature["v"].direction == "IN"
    host, expected = np.array([1.0, 2, 3], np.float32), np.zeros(3)
    k.__wrapped__(host, expected)
    assert pa.asnumpy(out).tolist() == expected.tolist()
    with pa.debug():
        k(v, out)
    assert pa.asnumpy(out).tolist() == expected.tolist()


def test_bounds_errors_name_the_field(device):
    @pa.kernel(debug=True)
    def k(p: Params, t):
        for i in range(p.v.size):
            p.v[i] = moved(p, i) + t[0][i + 1]

    v = floats(device, 1, 2)
    k(Params(v, 1, Inner(v)), (floats(device, 1, 2, 3),))
    with pytest.raises(pa.BoundsError, match=r"argument 't\[0\]' axis 0: got index 2 \(offset=0, size=2\)"):
        k(Params(v, 1, Inner(v)), (v,))
    assert k.signature["p.v"].direction == "INOUT"


def test_stores_through_fields(device):
    @pa.kernel
    def k(p):
        for i in range(p.v.size):
            p.v[i] = 7
            p.inner.v[i] += 1

    v, w = floats(device, 0, 0), floats(device, 1, 2)
    k(Params(v, 1, Inner(w)))
    assert (pa.asnumpy(v).tolist(), pa.asnumpy(w).tolist()) == ([7, 7], [2, 3])
    assert [k.signature[n].direction for n in ("p.v", "p.inner.v")] == ["OUT", "INOUT"]
    w.flags.writeable = False
    with pytest.raises(ValueError, match=r"k\(\): 'p.inner.v' is written by the kernel, and this array is"):
        k(Params(v, 1, Inner(w)))


def _sets(out, n: int, x: float):
    for i in range(1):
        out[i] = n + x


def test_wrong_fields_are_named_by_their_path(device):
    v, out = floats(device, 1, 2), on(device, np.zeros(2))
    for wrong, error, message in (
        (3, TypeError, r"^whole\(\): 'p' must be a Params, got int"),
        (None, TypeError, "'p' must be a Params, got NoneType"),
        (Params, TypeError, "'p' must be a Params, got type"),
        (Pair(v, 1), TypeError, "'p' must be a Params, got Pair"),
        (Params(on(device, np.zeros(2)), 1, Inner(v)), TypeError, r"'p.v' must .* of float32, got an array"),
        (Params([1], 1, Inner(v)), TypeError, r"'p.v' must be .*, got list; make an array of it"),
        (Params(v, "1", Inner(v)), TypeError, "'p.factor' must be a number of type float, got str"),
        (Params(v, 1, Inner(v, 2**63)), OverflowError, "'p.inner.shift' = 9223372036854775808 is out of"),
        (Params(v, 1, Inner(v, 1.5)), TypeError, "'p.inner.shift' must be a number of type int64"),
        (Params(v, 1, 3), TypeError, "'p.inner' must be an Inner, got int"),
    ):
        for _ in range(2):
            with pytest.raises(error, match=message):
                whole(wrong, out)
    for wrong, error, message in (
        (np.array(1.5), TypeError, r"'n' must be a number of type int, got an array of float64 of shape \(\)"),
        (1 << 2000, OverflowError, "'n' = an integer of 2001 bits is out of range for int64"),
    ):
        with pytest.raises(error, match=message):
            pa.kernel(_sets)(out, wrong, 1)
    with pytest.raises(OverflowError, match=r"_sets\(\): 'x' = an integer of 2001 bits is out of range for float64"):
        pa.kernel(_sets)(out, 1, 1 << 2000)
    half = object.__new__(Params)
    with pytest.raises(TypeError, match=r"'p\.v' has no value"):
        whole(half, out)


class Body:
    GRAVITY = 10.0

    def __init__(self, v):
        self.v, self.dt, self.bias, self.log = v, 0.5, None, ["what no kernel reads"]

    @pa.func
    def speed(self, i):
        return self.v[i] + self.dt * self.GRAVITY

    @pa.kernel
    def advance(self, w):
        for i in range(self.v.size):
            self.v[i] = self.speed(i) * w[i]
            if self.bias is not None:
                self.v[i] += self.bias[i]

    @property
    def half(self):
        return self.dt / 2

    def plain(self):
        return 1

    @pa.kernel
    def halves(self):
        for i in range(self.v.size):
            self.v[i] = self.half

    @pa.kernel
    def wrong(self):
        for i in range(self.v.size):
            self.v[i] = self.plain()

    @pa.kernel
    def unreadable(self):
        for i in range(self.v.size):
            self.v[i] = self.log[0]

    @staticmethod
    @pa.kernel
    def fixed(v):
        for i in range(v.size):
            v[i] = 7

    @classmethod
    @pa.kernel
    def constant(cls, v):
        for i in range(v.size):
            v[i] = cls.GRAVITY


def test_methods(device, monkeypatch):
    Body.advance.forget()
    body, w = Body(on(device, np.zeros(2))), floats(device, 1, 2)

    def run():
        body.advance(w)
        return pa.asnumpy(body.v).tolist()

    assert run() == [5, 10]
    body.dt = 1.0
    assert run() == [15, 40]
    monkeypatch.setattr(Body, "GRAVITY", 0.0)
    assert run() == [15, 80]
    body.v = on(device, np.ones(1))
    assert run() == [1]
    assert body.advance.cache_info()["variants"] == Body.advance.cache_info()["variants"] == 1
    body.bias = floats(device, 30)
    assert run() == [31]
    body.halves()
    assert pa.asnumpy(body.v).tolist() == [0.5]
    for call in (body.fixed, Body.fixed):
        call(body.v)
    assert pa.asnumpy(body.v).tolist() == [7]
    for value in (1.5, 2.5):
        monkeypatch.setattr(Body, "GRAVITY", value)
        Body.constant(body.v)
        assert pa.asnumpy(body.v).tolist() == [value]
    with pytest.raises(pa.CompileError, match=r"'plain' is a plain method of Body(.*\n){3}decorate it with"):
        body.wrong()
    with pytest.raises(pa.CompileError, match="'log' is list and no value of the kernel language"):
        body.unreadable()


def test_constants_in_fields(device):
    @dataclass
    class Options:
        mode: Mode
        name: str
        bias: Any = None
        function: Any = None
        dtype: Any = pa.float32

    @pa.kernel
    def k(o, v):
        for i in range(v.size):
            x = 1.0
            if o.mode == Mode.FAST:
                x = 2.0
            if o.name == "b":
                x += 10
            if o.bias is not None:
                x += o.bias[i]
            if o.function is None:
                v[i] = x
            else:
                v[i] = o.function(o.dtype(x))

    v = on(device, np.zeros(2))
    for options, expected in (
        (Options(Mode.FAST, "a"), 2),
        (Options(Mode.SAFE, "a"), 1),
        (Options(Mode.SAFE, "b"), 11),
        (Options(Mode.FAST, "a", bias=floats(device, 5, 5)), 7),
        (Options(Mode.FAST, "a", function=pa.func(lambda x: x * 3)), 6),
        (Options(Mode.FAST, "a", function=np.sqrt, dtype=pa.float64), np.sqrt(2)),
    ):
        for _ in range(2):
            k(options, v)
            assert pa.asnumpy(v).tolist() == [expected] * 2
    assert k.cache_info()["variants"] == 6


def test_what_a_class_computes_is_refused(device):
    v = floats(device, 1)

    @pa.kernel
    def k(p: Params):
        p.v[0] = p.half

    @pa.kernel
    def log(p: Params):
        p.v[0] = p.log[0]

    @pa.kernel
    def method(p: Params):
        p.v[0] = p.total()

    @pa.kernel
    def field(p: Params):
        p.factor = 3

    @pa.kernel
    def rebound(p: Params):
        p = p.inner

    p = Params(v, 1, Inner(v))
    for made, message in (
        (k, "'half' is computed by Python, which a kernel can't run.*\n.*\n.*\nmake it a field"),
        (log, "'log' is list and no value of the kernel language.*\n.*\n.*\nfields are numbers, arrays"),
        (method, "'total' is a plain method of Params"),
        (field, "the field 'factor' can't be assigned in a kernel"),
        (rebound, "'p' is a parameter .a Params. and can't be assigned"),
    ):
        with pytest.raises(pa.CompileError, match=message):
            made(p)


leaf = st.sampled_from(["array", "int", "float"])
trees = st.recursive(leaf, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=5)


@examples(6)
@given(tree=st.lists(trees, min_size=1, max_size=2).map(tuple), seed=st.integers(0, 100))
def test_any_nesting_of_tuples(tree, seed):
    """A kernel that sums all leaves, written for the drawn nesting, against the sum."""
    values = iter(range(seed, seed + 100))
    reads, total = [], 0.0

    def make(node, path):
        nonlocal total
        if isinstance(node, tuple):
            return tuple(make(item, f"{path}[{k}]") for k, item in enumerate(node))
        x = next(values)
        total += x
        reads.append(f"{path}[0]" if node == "array" else path)
        return pa.asarray([float(x)]) if node == "array" else x if node == "int" else float(x)

    argument = make(tree, "t")
    text = f"def k(out, t):\n    for i in range(1):\n        out[i] = {' + '.join(reads)}\n"
    path = f"<drawn {hash(tree)}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    space: dict = {}
    exec(compile(text, path, "exec"), space)
    k, out = pa.kernel(space["k"]), pa.zeros(1)
    for _ in range(2):
        k(out, argument)
        assert out[0].item() == total
