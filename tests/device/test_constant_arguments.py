"""None, strings, enums and functions as arguments are compiled in, one variant per value."""

import enum
import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from kernel_tools import on

import pyarray as pa


class Way(enum.Enum):
    UP = 1
    DOWN = 2


@pa.kernel
def weighted(out, v, w=None, way="sum", f=None):
    for i in range(out.size):
        x = v[i]
        if w is not None:
            x *= w[i]
        if way == "twice" or way == Way.UP:
            x *= 2
        if f is not None:
            x = f(x)
        out[i] = x


@pa.kernel
def annotated(out: pa.BufferView[pa.float64], w: pa.BufferView[pa.float64] = None, n: pa.int64 = None):
    for i in range(out.size):
        if w is None:
            out[i] = -1
        else:
            out[i] = w[i] + (0 if n is None else n)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def test_annotations_of_what_is_compiled_in_and_of_what_may_be_left_out(device):
    @pa.kernel
    def chosen(
        out, w: pa.ndarray[pa.float64, 1] | None = None, way: Way = Way.UP, text: str = "a",
        f: Callable[[float], float] = math.sqrt, n: float | None = None, level: int = Level.LOW,
    ):  # fmt: skip
        for i in range(out.size):
            x = 4.0 if w is None else w[i]
            x = f(x) + (10 if way is Way.UP else 20) + (100 if text == "a" else 200)
            out[i] = x + (0 if n is None else n) + 1000 * level

    out, w = on(device, np.zeros(2)), on(device, np.array([9.0, 16.0]))
    chosen(out)
    assert out.tolist() == [1112] * 2
    chosen(out, w, Way.DOWN, "b", lambda x: x, 0.5, Level.HIGH)
    assert out.tolist() == [2229.5, 2236.5]


@pytest.mark.parametrize("shape", ["n, 3", ("n", 3), None, 2.0, (None, 2.5)])
def test_annotations_of_what_is_no_shape(shape):
    expected = re.escape(f"a rank or a shape, got {shape!r}; write ndarray[float32, 2] or ndarray[float32, (None, 3)]")
    with pytest.raises(TypeError, match=expected):
        pa.ndarray[pa.float32, shape]


def test_constant_arguments(device):
    out, v, w = (on(device, np.array(x)) for x in ([0.0, 0.0], [1.0, 4.0], [2.0, 3.0]))
    calls = (
        ((), [1, 4]), ((w,), [2, 12]), ((None, "twice"), [2, 8]), ((w, "twice"), [4, 24]),
        ((w, Way.UP), [4, 24]), ((None, Way.DOWN), [1, 4]), ((None, "sum", math.sqrt), [1, 2]),
        ((w, "twice", math.sqrt), [2, 24**0.5]),
    )  # fmt: skip
    before = weighted.cache_info()["variants"]
    for _ in range(2):
        for given, expected in calls:
            weighted(out, v, *given)
            assert out.tolist() == expected
    assert weighted.cache_info()["variants"] - before == len(calls)
    weighted(out, v, w=w, f=None)
    assert out.tolist() == [2, 12]
    with pytest.raises(TypeError, match="'w' can't be a list"):
        weighted(out, v, [1.0, 2.0])


@pa.kernel
def scaled(out, v, by: pa.constexpr):
    for i in range(out.size):
        out[i] = v[i] * by


def test_numbers_keep_numpys_types(device):
    """All but the default ones, which are Python's numbers: those take the type of the other operand."""
    short, half, out = np.array([100], np.int8), np.array([100], np.float16), on(device, np.zeros(1))
    before = scaled.cache_info()["variants"]
    for v, by in ((short, np.int16(700)), (short, np.uint8(200)), (short, np.float32(0.1)), (half, np.float32(0.1))):
        scaled(out, on(device, v), by)
        assert out.tolist() == (v * by).tolist()
    for by in (3, np.int64(3)):
        scaled(out, on(device, short), by)
        assert out.tolist() == (short * 3).tolist()
    assert scaled.cache_info()["variants"] - before == 5


def test_annotated_ones_may_be_left_out(device):
    out, w = on(device, np.zeros(2)), on(device, np.array([2.0, 3.0]))
    for given, expected in (((), [-1, -1]), ((w,), [2, 3]), ((w, 5), [7, 8]), ((None,), [-1, -1])):
        annotated(out, *given)
        assert out.tolist() == expected
    with pytest.raises(TypeError, match="'w' must be a 1-D contiguous array of float64, got str"):
        annotated(out, "w")


@pa.kernel
def converted(out: pa.ndarray[np.float64, 1], x: np.float32, kind, wanted: pa.constexpr):
    for i in range(out.size):
        if out.dtype == wanted:
            out[i] = kind(x) + out.dtype.type(1)
        elif wanted == "float32" or out.dtype != np.float64:
            out[i] = -1
        else:
            out[i] = out.dtype(x) + pa.int8(x)


WIDE = pa.int8


@pa.kernel
def through(out: pa.BufferView, x: float):
    for i in range(out.size):
        y: WIDE = x
        out[i] = y


def test_types_are_constants_by_whichever_name(device):
    out = on(device, np.zeros(2))
    before = converted.cache_info()["variants"]
    for kind, expected in ((pa.int8, 4), (pa.float32, 4.75), (pa.bfloat16, 4.75), (pa.bool, 2)):
        for name in (kind, np.dtype(kind)):
            for wanted in (pa.float64, np.dtype("float64")):
                converted(out, 3.75, name, wanted)
                assert out.tolist() == [expected] * 2
        converted(out, 3.75, kind, np.int32)
        assert out.tolist() == [6.75] * 2
    # a dtype and its class are arguments of two classes, but one value of a constexpr
    assert converted.cache_info()["variants"] - before == 4 * (2 + 1)
    assert converted.explain_miss(out, 3.75, pa.int8, np.dtype("int32")) is None
    assert "int64, there" in converted.explain_miss(out, 3.75, pa.int64, pa.int32)
    assert [row.dtype for row in converted.signature.values()] == [np.float64, np.float32]


def test_a_class_and_its_dtype_are_told_apart(device):
    @pa.kernel
    def filled(out, kind):
        for i in range(out.size):
            out[i] = kind(3.75)

    out = on(device, np.zeros(2))
    filled(out, pa.int8)
    assert filled.explain_miss(out, pa.int8) is None
    told = filled.explain_miss(out, np.dtype("int8"))
    assert told.endswith("of its 1 variant:\n  kind.given: a dtype, there a class")


def test_a_captured_type_that_changes_is_compiled_anew(device, monkeypatch):
    out = on(device, np.zeros(2))
    for kind, expected in ((pa.int8, 3), (np.dtype("float32"), 3.75), (pa.float32, 3.75), (pa.bool, 1)):
        monkeypatch.setitem(globals(), "WIDE", kind)
        through(out, 3.75)
        assert out.tolist() == [expected] * 2


def test_types_in_errors_have_their_names(device):
    @pa.kernel(on_global_change="raise")
    def fixed(out):
        for i in range(out.size):
            out[i] = kind(1)

    out, kind = on(device, np.zeros(2)), pa.float32
    fixed(out)
    kind = np.dtype("int8")
    with pytest.raises(RuntimeError, match="kind = float32, which is now int8;"):
        fixed(out)

    @pa.kernel
    def added(out):
        for i in range(out.size):
            out[i] = pa.float32 + 1

    with pytest.raises(pa.CompileError, match="expected a number, got the dtype float32"):
        added(out)
    with pytest.raises(TypeError, match="'x' must be a number of type float32, got str"):
        converted(out, "x", pa.int8, pa.int8)
    with pytest.raises(TypeError, match="must be a 1-D array of float64, got an array of float32"):
        converted(out.astype(np.float32), 1, pa.int8, pa.int8)
