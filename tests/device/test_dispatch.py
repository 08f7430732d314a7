"""Calls of kernels that C dispatches give what the general call gives, in results and in errors: for drawn numbers,
bindings and structures, and with types, classes and captured values that change between calls."""

import enum
import fractions
import gc
import struct
import threading
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from leak_check import check_references
from strategies import examples, numpy_views

import pyarray as pa
from pyarray.dtypes import ALL
from pyarray.jit.launch import make_launcher, packer, slot_format
from pyarray.jit.launch_state import observing
from pyarray.lang.ir import ArrayType, Loc, ScalarType
from pyarray.lang.loop_extents import LoopExtents, are_too_many, sizes_of


def generally(call):
    """The call without C's dispatch: its launches are observed."""
    with observing(lambda launch: launch.run()):
        return call()


def outcome(call, *arrays):
    """What a call leaves in arrays, or its error."""
    for a in arrays:
        a.fill(7)
    try:
        call()
    except (TypeError, ValueError, OverflowError, AttributeError, KeyError, pa.CompileError) as error:
        return type(error), str(error)
    return [a.tobytes() for a in arrays]


def same_outcome(call, *arrays):
    expected = outcome(lambda: generally(call), *arrays)
    assert outcome(call, *arrays) == expected
    assert outcome(call, *arrays) == expected  # what is learnt changes nothing
    return expected


# ---- numbers


class Few(enum.IntEnum):
    THREE = 3


class Length(float):
    pass


def kernel_for(annotation: Any) -> Any:
    @pa.kernel
    def put(out, x: annotation):
        for i in range(out.size):
            out[i] = x

    return put


SCALARS = [np.float16(1.5), np.float32(2.5), np.longdouble(3.5), np.datetime64("2020-01-01"), np.str_("a")]
SCALARS += [row.numpy.type(1) for row in ALL]
INTEGERS = st.one_of(st.integers(-300, 300), st.integers(-(1 << 65), 1 << 65))
NUMBERS = st.one_of(
    INTEGERS,
    st.floats(),
    st.complex_numbers(),
    st.booleans(),
    st.sampled_from(SCALARS),
    st.sampled_from(
        [10**400, Few.THREE, Length(2.5), fractions.Fraction(1, 2), "1", b"1", None, [1], (1,), object, {}]
    ),
    st.integers(-128, 127).map(np.int8),
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.integers(0, 2).map(lambda n: pa.ones(n)),
)
ANNOTATED = {str(a): kernel_for(a) for a in (*ALL, bool, int, float, complex)}


@pytest.mark.parametrize("name", ANNOTATED)
def test_annotated_numbers(name):
    kernel, out = ANNOTATED[name], pa.zeros(2, dtype="complex128" if "complex" in name else "float64")
    kernel(out, True if "bool" in name else 1)  # the variant is there

    @given(NUMBERS)
    @examples(60)
    def check(x):
        same_outcome(lambda: kernel(out, x), out)

    check()


@pa.kernel
def put_anything(out, x):
    for i in range(out.size):
        out[i] = x


@given(NUMBERS)
@examples(150)
def test_numbers_without_an_annotation(device, x):
    out = pa.zeros(2, dtype="complex128", device=device)
    same_outcome(lambda: put_anything(out, x), out)


@pytest.mark.parametrize("row", ALL, ids=str)
def test_slots_are_those_of_struct(row):
    pack, form = packer((("x", ScalarType(row)),)), "@" + slot_format(ScalarType(row), False)
    drawn = {"b": st.booleans(), "f": st.floats(), "c": st.complex_numbers()}.get(row.kind, INTEGERS)

    @given(drawn)
    @examples(60)
    def check(x):
        try:
            expected = struct.pack(form, *((x.real, x.imag) if row.kind == "c" else (x,)))
        except struct.error:
            with pytest.raises(OverflowError):
                pack(x)
        else:
            assert pack(x) == expected

    check()


@given(numpy_views())
@examples(60)
def test_slots_of_arrays(drawn):
    x = pa.asarray(drawn)
    for strided in (True, False):
        kind = ArrayType(x._dtype, x.ndim, strided)
        numbers = (*x.shape, *(x.strides if strided else ()))
        assert packer((("x", kind),))(x) == struct.pack(f"@Q{len(numbers)}q", x._ptr, *numbers)
        offset = 0 if x.base is None else (x._ptr - x.base._ptr) // x.itemsize
        packed = packer((("x", kind),), True)(x)
        assert packed == struct.pack(f"@Qq{len(numbers)}q", x._ptr, offset, *numbers)


def test_launchers_say_what_is_no_argument():
    pack = packer((("x", ArrayType(ALL[0], 2, False)), ("n", ScalarType(ALL[4]))))
    with pytest.raises(TypeError, match="expected an array as argument 0, got int"):
        pack(1, 2)
    with pytest.raises(TypeError, match="rank 2 as argument 0"):
        pack(pa.ones(3), 2)
    with pytest.raises(TypeError, match="expected 2 arguments by position, got 1"):
        pack(pa.ones(3))
    with pytest.raises(TypeError):
        pack(pa.ones((2, 2)), "x")


# ---- iteration counts

SIZES = st.recursive(
    st.one_of(
        st.sampled_from(["n", "u", "b"]), st.integers(-(1 << 64), 1 << 64), st.integers(-3, 9), st.just(("m", 1))
    ),
    lambda inner: st.tuples(st.sampled_from(["add", "sub", "mul"]), inner, inner),
    max_leaves=5,
)
LARGE = st.one_of(st.integers(-5, 5), st.integers(1 << 30, 1 << 33), st.just((1 << 63) - 1))


@given(st.lists(SIZES, min_size=2, max_size=3), LARGE, st.integers(0, 2**64 - 1), st.integers(-128, 127))
@examples(200)
def test_products_of_sizes(sizes, n, u, b):
    int8, int64, uint64 = (next(row for row in ALL if row.name == name) for name in ("int8", "int64", "uint64"))
    kinds = {"n": ScalarType(int64), "u": ScalarType(uint64), "b": ScalarType(int8), "m": ArrayType(int64, 2, True)}
    found = LoopExtents(Loc("file.py", 3, 1, 0), 0, tuple(sizes))
    launch = make_launcher(tuple(kinds.items()), tuple(kinds), (0, 0, bytes, None), False, extents=(found,))
    values = {"n": n, "u": u, "b": b, "m": pa.zeros((2, 3), dtype="int64")}
    now = sizes_of(found, values)
    if not are_too_many(now):
        assert launch(*values.values())
        return
    with pytest.raises(ValueError, match=r"parallel loop at file\.py:3 would have .* iterations"):
        launch(*values.values())


# ---- binding


@pa.kernel
def weigh(out, n: pa.int32, scale=2.0, *, shift: float = 0.5, times: pa.constexpr = 1):
    for i in range(out.size):
        out[i] = n * scale + shift + times


VALUES = st.one_of(st.integers(-3, 3), st.sampled_from([2.5, np.float32(1.5), True, "x", None, 1 << 40]))
NAMES = st.sampled_from(["out", "n", "scale", "shift", "times", "tims", "self", "args"])


@given(st.lists(VALUES, max_size=4), st.dictionaries(NAMES, VALUES, max_size=4), st.booleans())
@examples(200)
def test_binding(given_args, named, with_array):
    out = pa.zeros(2)
    args = [out, *given_args] if with_array else given_args
    if not with_array and "out" in named:
        named = named | {"out": out}
    same_outcome(lambda: weigh(*args, **named), out)


def test_names_that_are_no_interned_texts():
    out = pa.zeros(2)
    weigh(out, **{"".join(["sh", "ift"]): 1.0, "".join(["n"]): 2})
    assert out.tolist() == [6.0, 6.0]


def many(count: int) -> Any:
    names = ", ".join(f"x{k}" for k in range(count))
    text = f"def many(out, {names}):\n    for i in range(1):\n"
    text += "".join(f"        out[{k}] = x{k}\n" for k in range(count))
    return pa.jit.kernel.from_text("many", text, {})


def test_many_parameters():
    kernel = many(100)
    out = pa.zeros(100, dtype="complex128")
    for k in range(3):
        values = [complex(i, k) if i % 3 else float(i) for i in range(100)]
        kernel(out, *values)
        assert out.tolist() == values
    kernel(out=out, **{f"x{i}": 1j for i in range(100)})
    assert out.tolist() == [1j] * 100
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x99'"):
        kernel(out, *range(99))


# ---- structures


@dataclass
class Inner:
    v: Any
    n: Any


@dataclass
class Outer:
    inner: Any
    scale: Any = 1.0


Pair = namedtuple("Pair", ["v", "n"])


class Plain:
    def __init__(self, v, n):
        self.v, self.n = v, n


class Lazy:
    def __init__(self, v, n):
        self.v, self._n = v, n

    @property
    def n(self):
        if isinstance(self._n, Exception):
            raise self._n
        return self._n


@pa.kernel
def by_fields(out, p):
    for i in range(out.size):
        out[i] = p.v[i] * p.n


@pa.kernel
def nested(out, p):
    for i in range(out.size):
        out[i] = p.inner.v[i] * p.inner.n + p.scale


@pa.kernel
def by_items(out, t):
    for i in range(out.size):
        out[i] = t[0][i] * t[1]


FIELDS = st.one_of(st.sampled_from([2, 2.5, True, np.float32(1.5), "x", None]), st.just([1]))
ERRORS = st.sampled_from([KeyError("n"), AttributeError("n"), ValueError("n"), TypeError("n")])


@given(st.sampled_from([Inner, Pair, Plain, Lazy]), st.sampled_from(["int32", "float64"]), st.one_of(FIELDS, ERRORS))
@examples(150)
def test_fields(kind, dtype, n):
    out, v = pa.zeros(4), pa.arange(4, dtype=dtype)
    if isinstance(n, Exception) and kind is not Lazy:
        n = 3
    p = kind(v, n)
    same_outcome(lambda: by_fields(out, p), out)
    same_outcome(lambda: by_fields(out, kind(v[::-1], n)), out)


@given(st.sampled_from([Inner, Pair]), FIELDS, st.sampled_from([1.0, 3, "x"]))
@examples(60)
def test_nested_structures(kind, n, scale):
    out, v = pa.zeros(4), pa.arange(4.0)
    same_outcome(lambda: nested(out, Outer(kind(v, n), scale)), out)


@given(st.lists(FIELDS, max_size=3), st.booleans())
@examples(60)
def test_tuples(items, with_array):
    out = pa.zeros(4)
    t = (pa.arange(4.0), *items) if with_array else tuple(items)
    same_outcome(lambda: by_items(out, t), out)


def test_other_exceptions_of_fields_come_through():
    out = pa.zeros(4)
    by_fields(out, Lazy(out, 2))
    with pytest.raises(RuntimeError, match="not now"):
        by_fields(out, Lazy(out, RuntimeError("not now")))
    by_fields(out, Lazy(pa.ones(4), 2))
    assert out.tolist() == [2.0] * 4


# ---- keys


@pa.kernel
def compiled_in(out, c: pa.constexpr):
    for i in range(out.size):
        out[i] += 1


class Hostile:
    """Its comparison drops all variants."""

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return 1

    def __eq__(self, other):
        compiled_in.forget()
        return isinstance(other, Hostile) and self.name == other.name

    def __bool__(self):
        return True


def test_constants_of_all_kinds():
    constants = [
        1,
        True,
        1.0,
        0,
        False,
        0.0,
        -0.0,
        None,
        "a",
        "",
        1 << 70,
        (1, 2),
        (1, 2.0),
        np.int64(1),
        np.float32(1),
    ]
    out = pa.zeros(1)
    for _ in range(2):
        for c in constants:
            compiled_in(out, c)
    assert out.item() == 2 * len(constants)
    assert len(constants) - 2 <= compiled_in.cache_info()["variants"] <= len(constants)


@pa.kernel
def put_constant(out, c: pa.constexpr):
    out[0] = c


def test_each_number_that_is_compiled_in_has_a_variant():
    out = pa.zeros(1)
    for c in (3, 4, 0, 1, True, False, 2.5, -4, 3, 4.0, 1 << 40):
        for _ in range(2):
            put_constant(out, c)
            assert out.item() == c


def test_comparing_constants_may_change_the_table():
    out = pa.zeros(1)
    for k in range(4):
        for name in ("a", "b", "a"):
            compiled_in(out, Hostile(name))
        compiled_in(out, k)
    assert out.item() == 16


def test_marked_arrays_have_keys_of_their_own():
    @pa.kernel
    def double(v):
        for i in range(v.size):
            v[i] = 2 * v[i]

    a = pa.ones(6)
    for marked in (a, a.mark_static(), a.assume(0, multiple_of=2), a.assume(0, multiple_of=3)) * 2:
        double(marked)
    assert a.tolist() == [2.0**8] * 6
    assert double.cache_info()["variants"] == 4
    b = pa.ones(4)
    double(b.assume(0, multiple_of=2))
    double(b.mark_static())  # of another size
    assert b.tolist() == [4.0] * 4
    assert double.cache_info()["variants"] == 5


def test_arrays_that_become_read_only():
    @pa.kernel
    def fill(v):
        for i in range(v.size):
            v[i] = 3

    a = pa.zeros(3)
    fill(a)
    fill(a)
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        fill(a)
    a.flags.writeable = True
    fill(a)


def test_hits_are_counted_as_before(device):
    @pa.kernel
    def fill(v, x):
        for i in range(v.size):
            v[i] = x

    a = pa.zeros(4, device=device)
    for k in range(5):
        fill(a[k % 2 :], 1.0)
    for k in range(3):
        fill(a, k)
    info = fill.cache_info()
    assert (info["hits"], info["misses"], info["variants"]) == (6, 2, 2)


# ---- threads, memory

FACTOR = 1.0


@pytest.mark.filterwarnings("ignore:kernel 'scale' is compiled again")
def test_captured_values_change_while_threads_launch():
    """A launch computes with a value that was there during it."""
    global FACTOR

    @pa.kernel
    def scale(out, v):
        for i in range(out.size):
            out[i] = FACTOR * v[i]

    values, wrong, stop = (1.0, 2.0, 3.0), [], threading.Event()

    def launch():
        v, out = pa.ones(64), pa.zeros(64)
        while not stop.is_set():
            try:
                scale(out, v)
                if set(out.tolist()) - set(values) or len(set(out.tolist())) != 1:
                    wrong.append(out.tolist())
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=launch) for _ in range(3)]
    for t in threads:
        t.start()
    for k in range(60):
        FACTOR = values[k % 3]
        out = pa.zeros(1)
        scale(out, pa.ones(1))
        if out[0] != FACTOR:
            wrong.append((out[0], FACTOR))
    stop.set()
    for t in threads:
        t.join(60)
    assert not wrong


def test_structures_change_while_threads_launch():
    p, wrong = Plain(pa.ones(16), 1.0), []

    def launch(dtype):
        out = pa.zeros(16)
        for k in range(200):
            p.v = pa.full(16, float(k % 5), dtype=dtype)
            by_fields(out, p)
            if len(set(out.tolist())) != 1:
                wrong.append(out.tolist())

    threads = [threading.Thread(target=launch, args=(dtype,)) for dtype in ("float64", "int32", "float64")]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not wrong


def test_references_are_given_back():
    out, v = pa.zeros(8), pa.arange(8.0)
    p, t, marked, text = Plain(v, 2), (v, 3.0), v.mark_static(), "some text that is a constant"

    def calls():
        for _ in range(30):
            weigh(out[2:6], 3, scale=2.5, shift=np.float32(1), times=2)
            by_fields(out, p)
            nested(out, Outer(Inner(v, 2.5), 1.0))
            by_items(out, t)
            put_anything(out, 1.5)
            by_fields(out, Inner(marked, 1))
            compiled_in(out, text)
            for wrong in (
                lambda: weigh(out, 1 << 40),
                lambda: weigh(out),
                lambda: weigh(out, 1, nothing=1),
                lambda: by_fields(out, Lazy(v, TypeError())),
                lambda: put_anything(out, "x"),
            ):
                with pytest.raises((TypeError, OverflowError, pa.CompileError)):
                    wrong()

    held = (out, v, p, t, marked, text, Plain, Outer, Lazy, weigh, by_fields, out._buffer, v._buffer)
    check_references(calls, held, times=10, blocks=300)


def test_kernels_are_collected():
    import weakref

    def used():
        @pa.kernel
        def fill(v, p):
            for i in range(v.size):
                v[i] = p.n

        fill(pa.zeros(2), Plain(1, 2))
        return weakref.ref(fill)

    gone = used()
    gc.collect()
    assert gone() is None


def test_subclasses_with_a_call_of_their_own():
    class Loud(pa.jit.kernel.Kernel):
        def __call__(self, *args):
            calls.append(args)
            return super().__call__(*args)

    calls: list[Any] = []
    plain = weigh
    loud = Loud(plain.source_text, None, False, (), "recompile")
    out = pa.zeros(2)
    loud(out, 3)
    assert len(calls) == 1
    assert out.tolist() == [7.5, 7.5]
