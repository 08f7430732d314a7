"""Elementwise functions against NumPy: every row, every dtype, every layout, `out=`, overlap and errors."""

import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import TIMES, examples, numpy_views

import pyarray as pa
from pyarray import dtypes
from pyarray.api.standard.elementwise import UFUNCS
from pyarray.dtypes import ALL, of_kinds

FEW = examples(30)
INT_EDGES = (0, 1, 2, 3, 7, -1, -2, -7)
INTS = [d for d in ALL if d.kind in "iu"]
FLOAT_EDGES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.5,
    3.0,
    -3.5,
    1e-5,
    700.0,
    -700.0,
    math.inf,
    -math.inf,
    math.nan,
)
# Where the reference has the same algorithm to the bit; the others may differ in the last places.
EXACT = {
    "abs", "add", "ceil", "conj", "copysign", "floor", "fmod", "imag", "maximum", "minimum", "multiply",
    "negative", "nextafter", "positive", "real", "round", "sign", "square", "sqrt", "subtract", "trunc",
    "divide", "reciprocal", "remainder", "floor_divide",
}  # fmt: skip


EXTREME = {  # a subnormal, and about the greatest number
    "float16": (6e-8, 65504.0), "bfloat16": (1e-40, 3e38), "float32": (1e-45, 3e38), "float64": (5e-324, 1e308),
    "float8_e4m3fn": (4e-3, 448.0), "float8_e5m2": (2e-5, 57344.0),
}  # fmt: skip


EPS8 = {"float8_e4m3fn": 0.125, "float8_e5m2": 0.25}


def values_of(dtype):
    """Special and ordinary values of a dtype, as a NumPy array."""
    t = dtype.numpy
    if dtype.kind == "b":
        return np.array([True, False, True, True, False], t)
    if dtype.kind in "iu":
        info = np.iinfo(t)
        small = [v for v in INT_EDGES if v >= info.min]
        return np.array([*small, info.min, info.max, info.max - 1, info.max // 2], t)
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            tiny, huge = EXTREME[dtype.name]
            return np.array([*FLOAT_EDGES, tiny, -tiny, huge, -huge]).astype(t)
        finite = [0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-3]
        return np.array([complex(a, b) for a in finite for b in finite], t)


def reference(name, operands, domain, result):
    """NumPy's answer in the type that pyarray computes in; half types in float32 and rounded."""
    half = domain.is_narrow and name != "nextafter"  # the next number of the type itself
    wide = np.dtype(np.float32) if half else domain.numpy
    if domain is dtypes.complex64:
        wide = np.dtype(np.complex128)
    function = getattr(np, name, None) or (lambda x: 1 / np.sqrt(x))  # rsqrt
    with np.errstate(all="ignore"):
        return np.asarray(function(*(x.astype(wide) for x in operands))).astype(result)


def close(name, ours, theirs, dtype, exact):
    with np.errstate(all="ignore"):
        if dtype.kind in "biu":
            np.testing.assert_array_equal(ours, theirs)
            return
        if name in EXACT and dtype.kind != "c" and exact:
            ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
            np.testing.assert_array_equal(ours, theirs)
            plain = ~np.isnan(theirs) & ((theirs != 0) | (name not in ("maximum", "minimum", "nextafter")))
            np.testing.assert_array_equal(np.signbit(ours[plain]), np.signbit(theirs[plain]))
            return
        eps = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "complex64": 3e-6, **EPS8}.get(dtype.name, 1e-14)
        kind = np.complex128 if dtype.kind == "c" else np.float64
        np.testing.assert_allclose(ours.astype(kind), theirs.astype(kind), rtol=8 * eps, atol=eps * 1e-3)


PARTS = {"modf_rest", "modf_whole", "spacing"}  # whose answers depend on the dtype: test_bits_functions.py


# Rows whose kernels of integers differ in one operator, or in none: they take turns at the integers, so that
# of a few rows in succession each size and sign has its kernel. Behind them the number of turns.
ALIKE = (
    (("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"), 4),
    (("logical_and", "logical_or", "logical_xor", "logical_not"), 4),
    (("bitwise_and", "bitwise_or", "bitwise_xor"), 2),
    (("bitwise_left_shift", "bitwise_right_shift"), 2),
    (("maximum", "minimum", "fmax", "fmin"), 4),
    (("add", "subtract", "multiply"), 2),
    (("gcd", "lcm"), 2),
    (("ceil", "floor", "trunc", "round", "conj", "positive", "real"), 4),
    (("isfinite", "isinf", "isnan", "isposinf", "isneginf", "imag"), 4),
)
DIVIDE = ("floor_divide", "remainder", "fmod", "pow")  # each size and sign has edges of its own


def integers_of(name):
    """The integers with which a row is called."""
    row = UFUNCS[name]
    if not set("iu") & set(row.kinds) and row.promote_to:  # the cast to `promote_to` is the same for all rows
        return [INTS[list(UFUNCS).index(name) % len(INTS)]]
    rows, turns = next(((rows, turns) for rows, turns in ALIKE if name in rows), (tuple(UFUNCS), 2))
    if TIMES > 1 or name in DIVIDE:
        return INTS
    spread = [d for size in (1, 4, 2, 8) for d in INTS if d.itemsize == size]
    return [d for k, d in enumerate(spread) if (k + k // 2 + rows.index(name)) % turns == 0]


# Rows whose kernels of narrow types read and write the bits; in the others the one function of float32 stands
# between two conversions, which are the same for all rows: they take turns at the types.
OF_NARROW = {
    *("abs", "copysign", "isfinite", "isinf", "isnan", "less", "maximum", "negative", "nextafter", "sign"),
}
NARROW = (dtypes.float16, dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2)
# Rows with a text for each width of complex numbers. That of the others is one macro, with a function of libm for
# each width (pa_complex.h): they take turns at the two.
OF_COMPLEX = {"tanh", "tan", "expm1", "log1p", "log2", "log10", "pow", "abs", "sign", "multiply", "divide"}
COMPLEX = (dtypes.complex64, dtypes.complex128)


def is_anothers_turn(name, dtype):
    """Whether a neighbouring row is called with this dtype, whose kernel differs from this row's in no more than the
    function."""
    at, kinds = list(UFUNCS).index(name) % 2, UFUNCS[name].kinds
    if TIMES > 1:
        return False
    if dtype is COMPLEX[at]:
        return name not in OF_COMPLEX and "c" in kinds
    here = NARROW[list(UFUNCS).index(name) % len(NARROW)]
    return dtype in NARROW and dtype is not here and name not in OF_NARROW and "f" in kinds


def test_the_turns_reach_all_integers():
    for rows, turns in ALIKE:
        for at in range(len(rows) - turns + 1):
            assert {d for name in rows[at : at + turns] for d in integers_of(name)} == set(INTS)


@pytest.mark.parametrize("name", [name for name in UFUNCS if name not in PARTS])
def test_every_dtype(name):
    row, integers = UFUNCS[name], integers_of(name)
    for dtype in ALL:
        if dtype.kind in "iu" and dtype not in integers and (row.promote_to or set("iu") & set(row.kinds)):
            continue
        if is_anothers_turn(name, dtype):
            continue
        if dtype.kind not in row.kinds and (row.promote_to is None or dtype.kind not in "biu"):
            with pytest.raises(TypeError, match=name):
                getattr(pa, name)(*[pa.zeros(2, dtype=dtype)] * row.arity)
            continue
        values = values_of(dtype)
        operands = [values]
        if row.arity == 2:
            grid = np.meshgrid(values, values)
            operands = [g.ravel() for g in grid]
        if name == "pow" and dtype.kind == "i":
            operands[1] = abs(operands[1] % 9)
        if name == "pow" and dtype.kind == "b":
            operands = [x.astype(np.int8) for x in operands]
        if "shift" in name:
            operands[1] = operands[1] % np.array(8 * dtype.itemsize, dtype.numpy)
        arrays = [pa.asarray(x) for x in operands]
        result = getattr(pa, name)(*arrays)
        domain = row.domain(arrays)
        assert result.dtype is row.dtype_of_result(domain).numpy
        if dtype.kind == "c" and name in (
            "sign",
            "pow",
            "tan",
            "tanh",
            "acosh",
            "log",
            "log1p",
            "reciprocal",
            "divide",
        ):
            keep = np.all([(np.abs(x) > 0.1) & (np.abs(x + 1) > 0.1) for x in operands], axis=0)
        else:
            keep = np.ones(operands[0].shape, bool)
        ours, theirs = pa.asnumpy(result)[keep], reference(name, operands, domain, result.dtype)[keep]
        if dtype.kind in "biu" and name in ("remainder", "floor_divide") and dtype.kind == "i":
            least = np.iinfo(dtype.numpy).min
            fine = ~((operands[0] == least) & (operands[1] == -1))  # NumPy's answer depends on its build
            ours, theirs = ours[fine], theirs[fine]
        if name == "i0":  # NumPy's has no answer at infinity
            theirs = np.where(np.isinf(operands[0]), np.inf, theirs).astype(ours.dtype)
        if name == "sinc":  # ours is 0 at whole numbers, where NumPy's sine of an inexact pi x isn't
            x = operands[0]
            whole = np.isfinite(x) & (x != 0) & (x == np.round(np.real(x)))
            theirs = np.where(whole, 0, theirs).astype(ours.dtype)
            if dtype.kind == "c":  # nor is it close by, in one of the components
                ours, theirs = ours[abs(theirs) > 1e-3], theirs[abs(theirs) > 1e-3]
        try:
            close(name, ours, theirs, result.dtype, exact=dtype.kind != "c")
        except AssertionError as error:
            raise AssertionError(f"{name} of {dtype}: {error}") from None


# ---- layouts

LAYOUT_DTYPES = st.sampled_from([dtypes.float32, dtypes.int16, dtypes.complex128])


def all_same(ours, theirs):
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(pa.asnumpy(ours), theirs)


@st.composite
def broadcasting(draw, dtype):
    """Two NumPy arrays of any layout that broadcast together."""
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    pair = []
    for _ in range(2):
        sizes = [draw(st.sampled_from([n, n, 1])) for n in shape][draw(st.integers(0, len(shape))) :]
        x = draw(numpy_views(dtype=dtype, shape=tuple(sizes)))
        while x.shape != tuple(sizes):  # a view of another shape: one of the right one, in a drawn order
            order = draw(st.permutations(range(len(sizes))))
            flat = np.arange(math.prod(sizes)).astype(dtype.numpy)
            x = flat.reshape([sizes[k] for k in order]).transpose(np.argsort(order) if order else None)
            x = x[tuple(slice(None, None, draw(st.sampled_from([1, -1]))) for _ in sizes)] if sizes else x
        pair.append(x)
    return pair


@FEW
@given(LAYOUT_DTYPES.flatmap(broadcasting))
def test_layouts(pair):
    x, y = pair
    all_same(pa.asarray(x) + pa.asarray(y), np.asarray(x + y))
    all_same(pa.asarray(x) == pa.asarray(y), np.asarray(x == y))
    all_same(-pa.asarray(x), np.asarray(-x))


@examples(8)
@given(numpy_views(dtype=pa.float32))
def test_any_view(x):
    a = pa.asarray(x)
    all_same(a * a, np.asarray(x * x))
    all_same(2 - a, np.asarray(2 - x))
    all_same(pa.sqrt(a), np.asarray(np.sqrt(x)))


@pytest.mark.parametrize("n", [1, 2, 31, 33, 200])
def test_large_transposes(n):
    x = np.arange(200 * n, dtype=np.float32).reshape(200, n)
    y = np.arange(200 * n, dtype=np.float32).reshape(n, 200)
    a, b = pa.asarray(x), pa.asarray(y)
    all_same(a + b.T, x + y.T)
    all_same(a.T * b, x.T * y)
    all_same(a[::-1, ::2] - b.T[:, ::2], x[::-1, ::2] - y.T[:, ::2])


def test_results_keep_the_order_that_all_operands_have():
    x = np.arange(24.0).reshape(2, 3, 4)
    a = pa.asarray(x)
    for order in [(2, 1, 0), (1, 0, 2), (0, 2, 1)]:
        total = a.transpose(order) + a.transpose(order)
        all_same(total, (x + x).transpose(order))
        assert total.strides == (x + x).transpose(order).strides
    assert (a.T + pa.asarray(np.ascontiguousarray(x.T))).strides == (48, 16, 8)[:0] + (48, 16, 8)
    assert pa.exp(a.T).strides == np.exp(x.T).strides
    assert (a.T + pa.ones(2)).strides == a.T.strides
    all_same((a.T + a.T) * 2, (x.T + x.T) * 2)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2), (), (1,), (1, 1), (2, 1)])
def test_empty_and_single(shape):
    x = np.ones(shape, np.float32)
    a = pa.asarray(x)
    for _ in range(3):  # the short way, too
        all_same(a + a, np.asarray(x + x))
        all_same(a + 1, np.asarray(x + 1))
        all_same(1 / a, np.asarray(1 / x))
        all_same(-a, np.asarray(-x))
    b = pa.asarray(np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (1, 1), (64, 4)))
    assert (b + b).strides == (4, 4)


# ---- numbers


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_weak_numbers(dtype):
    x = np.ones(3, dtype.numpy)
    a = pa.asarray(x)
    for number in (True, 3, 2.5, 1j):
        expected = pa.result_type(dtype, number)
        assert (a + number).dtype is expected
        assert (number + a).dtype is expected
        theirs = x.astype(expected) + expected.type(number)
        np.testing.assert_array_equal(pa.asnumpy(a + number), theirs)


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integers_out_of_range(dtype):
    info = np.iinfo(dtype.numpy)
    values = np.array([info.min, 0, info.max], dtype.numpy)
    a = pa.asarray(values)
    compares = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
    if dtype.itemsize < 8:  # beyond every integer of 64 bits, which are all the same
        compares = compares[INTS.index(dtype) % 3 :: 3]
    for _ in range(2):
        all_same(a + info.max, values + np.array(info.max, dtype.numpy))
        for number in (info.max + 1, info.min - 1, 1 << 70, -(1 << 70)):
            with pytest.raises(OverflowError, match=str(abs(number))):
                a + number
            with pytest.raises(OverflowError):
                number * a
            target = a.copy()
            with pytest.raises(OverflowError):
                target += number
            all_same(target, values)
            for compare in compares:
                ours = getattr(pa, compare.__name__)
                all_same(ours(a, number), np.array([compare(int(v), number) for v in values], bool))
                all_same(ours(number, a), np.array([compare(number, int(v)) for v in values], bool))
        all_same(a > 0, values > 0)
        all_same(a <= 1, values <= 1)
        all_same(a == info.max, values == info.max)


def test_floats_with_large_integers():
    a = pa.ones(3, dtype=pa.float32)
    for _ in range(2):
        assert pa.asnumpy(a * (1 << 100)).tolist() == [2.0**100] * 3
        with pytest.raises(OverflowError):
            a + 10**400


def test_powers():
    a = pa.asarray(np.arange(1, 5))
    for _ in range(2):
        assert (a**2).tolist() == [1, 4, 9, 16]
        assert (a**0).tolist() == [1, 1, 1, 1]
        assert (2**a).tolist() == [2, 4, 8, 16]
        with pytest.raises(ValueError, match="negative"):
            a**-1
        with pytest.raises(ValueError, match="negative"):
            a **= -1
        assert a.tolist() == [1, 2, 3, 4]
        assert (a**-1.0).tolist() == [1 / 1, 1 / 2, 1 / 3, 1 / 4]
        assert (a.astype("float32") ** -1).tolist()[1] == 0.5
    x = np.array([np.inf, -np.inf, -0.0, np.nan, 1e-30, -3.0, 1e30], np.float32)
    ours = pa.asarray(x)
    with np.errstate(all="ignore"):
        for _ in range(3):
            for two, one in ((2, -1), (2.0, -1.0)):
                np.testing.assert_array_equal(pa.asnumpy(ours**two), x * x)
                np.testing.assert_array_equal(pa.asnumpy(ours[::-1] ** one), 1 / x[::-1])
                out = pa.empty_like(ours)
                assert pa.pow(ours, two, out=out) is out
                np.testing.assert_array_equal(pa.asnumpy(out), x * x)
            close("pow", pa.asnumpy(ours**1.5), x**1.5, dtypes.float32, exact=False)


@pytest.mark.parametrize("exponent", [2, -1.0, 0.5])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_powers_that_are_other_functions(exponent, device):
    fused = pa.fuse(lambda x, n: (x**n, x**exponent))

    @FEW
    @given(
        st.lists(st.floats(width=16), max_size=20),
        st.sampled_from(("float64", "float32")),
        st.sampled_from((1, -2)),
    )
    def check(drawn, dtype, step):
        x = np.array([-0.0, -math.inf, math.nan, 5e-324, 2, -2, *drawn]).astype(dtype)[::step]
        a, expected = pa.asarray(x, device=device), x**exponent
        sign = np.signbit(expected) & ~np.isnan(expected)
        for _ in range(3):  # the general way, by layout, by types
            out, changed = pa.empty_like(a), a.copy()
            changed **= exponent
            given = (a**exponent, pa.pow(a, exponent, out=out), changed)
            for ours in map(pa.asnumpy, (*given, *fused(a, exponent))):
                np.testing.assert_array_equal(ours, expected, strict=True)
                np.testing.assert_array_equal(np.signbit(ours) & ~np.isnan(ours), sign)

    check()
    whole = pa.asarray([0, 2, 9], device=device)
    np.testing.assert_array_equal(pa.asnumpy(whole**0.5), np.sqrt([0, 2, 9]), strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool"])
def test_squares_of_integers(dtype, device):
    x = np.array([0, 1, -1, 12, 100, -(2**33) - 3]).astype(dtype)
    a, wide = pa.asarray(x, device=device), x.astype("int64") if dtype == "bool" else x
    for _ in range(3):  # the general way, by layout, by types
        np.testing.assert_array_equal(pa.asnumpy(a**2), wide * wide, strict=True)
        np.testing.assert_array_equal(pa.asnumpy(a**2.0), x.astype("float64") ** 2, strict=True)
        np.testing.assert_array_equal(pa.asnumpy(a**3), wide * wide * wide, strict=True)


def test_errors_of_powers_name_the_power():
    with pytest.raises(ValueError, match=r"^pow\(\): out= has shape"):
        pa.pow(pa.ones(3), 0.5, out=pa.ones(2))


def test_mixed_kinds():
    i, u, f, h = (pa.ones(2, dtype=t) for t in ("int64", "uint64", "float32", "float16"))
    assert (i + f).dtype == pa.float32
    assert (h + i).dtype == pa.float16
    assert (u * f).dtype == pa.float32
    assert (h + pa.ones(2, dtype="bfloat16")).dtype == pa.float32
    assert (pa.ones(2, dtype="int8") + pa.ones(2, dtype="uint8")).dtype == pa.int16
    for _ in range(2):
        with pytest.raises(TypeError, match="uint64"):
            u + i
        with pytest.raises(TypeError):
            u += i


def test_uint64_compares_with_signed_by_value():
    u = np.array([0, 1, 1 << 63, (1 << 64) - 1, (1 << 63) - 1], np.uint64)
    s = np.array([0, -1, -(1 << 63), -1, (1 << 63) - 1])
    for dtype in (np.int8, np.int64):
        t = s.astype(dtype)
        for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
            compare = getattr(np, name)
            expected = np.array([compare(int(a), int(b)) for a, b in zip(u, t, strict=True)])
            for _ in range(2):
                all_same(getattr(pa, name)(pa.asarray(u), pa.asarray(t)), expected)
    all_same(pa.asarray(u)[:, None] == pa.asarray(s)[None, :], np.array([[int(a) == int(b) for b in s] for a in u]))
    all_same(pa.logical_and(pa.asarray(u), pa.asarray(s)), np.logical_and(u, s))


def test_bools():
    t, f = pa.asarray([True, True]), pa.asarray([True, False])
    assert (t + f).dtype == pa.bool
    assert (t + f).tolist() == [True, True]
    assert (t * f).tolist() == [True, False]
    assert (t ^ f).tolist() == [False, True]
    assert (~f).tolist() == [False, True]
    assert (t + 1).tolist() == [2, 2]
    assert ((t << f).dtype, (t << t).tolist()) == (pa.int8, [2, 2])
    assert (t / 2).dtype == pa.float64
    for refused in (lambda: t - f, lambda: -t, lambda: +t, lambda: pa.sign(t)):
        with pytest.raises(TypeError, match="bool"):
            refused()


def test_wrong_types():
    a = pa.ones(3, dtype=pa.float32)
    for refused in (
        lambda: pa.add(a, "x"),
        lambda: pa.add(a, None),
        lambda: pa.sin({}),
    ):
        with pytest.raises(TypeError):
            refused()
    with pytest.raises(TypeError, match="float32"):
        a & a
    with pytest.raises(TypeError, match="complex"):
        pa.less(a.astype("complex64"), a)
    with pytest.raises(ValueError, match=r"\(3,\).*\(2,\)"):
        a + pa.ones(2, dtype=pa.float32)
    with pytest.raises(TypeError):
        pa.add(a)
    assert pa.add(1, 2).tolist() == 3
    assert pa.sin(0).dtype == pa.float64


# ---- out=


@pytest.mark.parametrize("to", ["float32", "float64", "complex128"])
def test_out_of_other_types_and_strides(to):
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(4, dtype=np.float32)
    for make in (
        lambda: np.zeros((3, 4), to), lambda: np.zeros((4, 3), to).T, lambda: np.zeros((3, 8), to)[:, ::-2],
        lambda: np.zeros((4, 4), to)[1:],
    ):  # fmt: skip
        out = make()
        result = pa.asarray(out)
        assert pa.add(pa.asarray(x), pa.asarray(y), out=result) is result
        np.testing.assert_array_equal(out, x + y)


def test_out_of_another_kind():
    a = pa.asarray(np.array([1, 2], np.int16))
    wide, narrow = pa.zeros(2, dtype=pa.int64), pa.zeros(2, dtype=pa.int8)
    assert pa.add(a, a, out=wide).tolist() == [2, 4]
    assert pa.add(a, a, out=narrow).tolist() == [2, 4]
    assert pa.less(a, 2, out=pa.zeros(2, dtype=pa.float32)).tolist() == [1.0, 0.0]
    with pytest.raises(TypeError, match="float64"):
        pa.sin(a, out=wide)
    with pytest.raises(TypeError, match="bool"):
        pa.add(a, a, out=pa.zeros(2, dtype=pa.bool))
    with pytest.raises(TypeError):
        a /= 2


def test_outputs_of_the_same_kind():
    """As NumPy's in-place operators: signed into unsigned is refused, a narrower type of the kind is not."""
    small, wide = pa.ones(2, dtype="uint8"), pa.asarray([-1, 300])
    for _ in range(3):
        with pytest.raises(TypeError, match="int64 can't be stored in out= of uint8"):
            small += wide
        with pytest.raises(TypeError, match="can't be stored in out= of uint64"):
            pa.add(wide, wide, out=pa.zeros(2, dtype="uint64"))
    assert small.tolist() == [1, 1]
    small += 1
    narrow = pa.ones(2, dtype="int8")
    narrow += wide
    narrow += small
    assert (narrow.tolist(), narrow.dtype) == ([2, 47], pa.int8)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_clip_between_limits_that_the_type_cannot_hold(dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 5, info.min, info.max], dtype)
    a = pa.asarray(x)
    low, high = int(info.min) - 1, 2**70
    for limits, want in (
        ((low, 3), x.clip(info.min, 3)),
        ((1, high), x.clip(1, info.max)),
        ((low, high), x),
        ((low, None), x),
        ((None, high), x),
        ((high, None), np.full_like(x, info.max)),
    ):
        got = pa.clip(a, *limits)
        assert got.dtype == dtype
        np.testing.assert_array_equal(pa.asnumpy(got), want)
        np.testing.assert_array_equal(pa.asnumpy(a.clip(*limits)), want)
    assert pa.clip(pa.asarray([1.5, np.inf]), 2, 10**400).tolist() == [2, np.inf]
    with pytest.raises(TypeError, match=r"clip\(\) is not defined for complex128; cast x, min and max"):
        pa.clip(a * 1j, 0, 1)


def test_outputs_that_do_not_fit():
    a = pa.ones(3, dtype=pa.float32)
    readonly = pa.asarray(np.broadcast_to(np.float32(1), (3,)))
    fixed = pa.ones(3, dtype=pa.float32)
    fixed.setflags(write=False)
    repeated = pa.asarray(np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (3,), (0,)))
    for out in (readonly, fixed, repeated):
        for _ in range(2):
            with pytest.raises(ValueError, match="copy"):
                pa.add(a, a, out=out)
    with pytest.raises(ValueError, match=r"out= is read-only: elements repeat \(strides \(0,\)\)"):
        pa.add(a, a, out=repeated)
    for target in (fixed, repeated):
        with pytest.raises(ValueError, match=r"read-only|broadcast"):
            target += 1
        with pytest.raises(ValueError, match=r"read-only|broadcast"):
            target += a
    with pytest.raises(ValueError, match="shape"):
        pa.add(a, a, out=pa.zeros(4, dtype=pa.float32))
    with pytest.raises(ValueError, match="shape"):
        a += pa.ones((2, 3), dtype=pa.float32)
    with pytest.raises(TypeError, match="out="):
        pa.add(a, a, out=np.zeros(3, np.float32))
    assert (fixed + readonly).tolist() == [2.0] * 3


# ---- overlap


def both(change, x):
    """The same in-place change of a NumPy array and of its twin."""
    a = pa.array(x)
    for _ in range(3):
        change(x)
        change(a)
        np.testing.assert_array_equal(pa.asnumpy(a), x)


def _shift(a):
    a[1:] += a[:-1]


def _shift_back(a):
    a[:-1] *= a[1:]


def _reverse(a):
    a += a[::-1]


def _steps(a):
    a[::2] -= a[: (len(a) + 1) // 2]


@pytest.mark.parametrize("change", [_shift, _shift_back, _reverse, _steps])
@pytest.mark.parametrize("n", [1, 2, 37, 5000])
def test_overlap_in_place(change, n):
    both(change, np.arange(n, dtype=np.int32))


def test_transposed_in_place():
    for n in (3, 130):
        x = np.arange(n * n, dtype=np.int64).reshape(n, n)
        a = pa.array(x)
        for _ in range(2):
            x += x.T
            a += a.T
            np.testing.assert_array_equal(pa.asnumpy(a), x)


def test_overlap_through_numpy_and_other_types():
    memory = np.arange(20, dtype=np.int32)
    a, b = pa.asarray(memory), pa.asarray(memory[4:])
    expected = memory[4:] + memory[:-4]
    for _ in range(2):
        expected = memory[4:] + memory[:-4]
        b += a[:16]
        np.testing.assert_array_equal(memory[4:], expected)
    memory = np.arange(16, dtype=np.int32)
    expected = memory[:8] + memory.view(np.int16)[4:12]
    c = pa.asarray(memory)
    pa.add(c[:8], pa.asarray(memory.view(np.int16))[4:12], out=c[:8])
    np.testing.assert_array_equal(memory[:8], expected)
    memory = np.arange(8, dtype=np.float32)
    c = pa.asarray(memory)
    bits = pa.asarray(memory.view(np.int32))
    expected = memory + memory.view(np.int32).astype(np.float32)
    c += bits
    np.testing.assert_array_equal(memory, expected)


@FEW
@given(st.data())
def test_overlap_drawn(data):
    n = data.draw(st.integers(1, 12))
    size = data.draw(st.integers(0, n))
    x = np.arange(2 * n, dtype=np.int64)
    a = pa.array(x)

    def window():
        step = data.draw(st.sampled_from([1, 2, -1, -2]))
        low = data.draw(st.integers(0, 2 * n - 1))
        return slice(low, None, step)

    first, second, third = window(), window(), window()
    size = min(size, *(len(x[w]) for w in (first, second, third)))
    np.subtract(x[first][:size], x[second][:size], out=x[third][:size])
    pa.subtract(a[first][:size], a[second][:size], out=a[third][:size])
    np.testing.assert_array_equal(pa.asnumpy(a), x)


# ---- the ways in agree


def test_debug_gives_the_same():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    a = pa.asarray(x)
    with pa.debug():
        for _ in range(2):
            all_same(a + a, x + x)
            all_same(a.T + a[:1].T, x.T + x[:1].T)
            all_same(pa.sqrt(a[::2]), np.sqrt(x[::2]))
            b = a.copy()
            b += 1
            all_same(b, x + 1)
    all_same(a + a, x + x)


def test_broken_launches_are_caught():
    from pyarray.kernels.elementwise.elementwise import map_kernel

    kernel = map_kernel(UFUNCS["add"].op, dtypes.float32, 1, ((0,), (0,)))
    out, short = pa.zeros(20, dtype=pa.float32), pa.zeros(4, dtype=pa.float32)
    with pa.debug():
        with pytest.raises(pa.BoundsError, match="got index 4") as caught:
            kernel(out, short, out)
        assert caught.value.argument == "x0"
        assert caught.value.extent == 4
        assert (out + 1).tolist() == [1.0] * 20


def test_short_ways_are_kept_apart():
    """Types come and go; shapes, read-only flags, numbers and modes that differ never meet a wrong short
    way."""
    a = pa.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    b = a.copy()
    b.setflags(write=False)
    row = pa.ones((1, 3), dtype=pa.float32)
    column = pa.ones((2, 1), dtype=pa.float32)
    for _ in range(2):
        for x in (a, b):
            for y in (a, b, row, column):
                np.testing.assert_array_equal(pa.asnumpy(x + y), pa.asnumpy(x) + pa.asnumpy(y))
                assert (x + y).flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            b += a
        with pytest.raises(ValueError, match="broadcast"):
            a + pa.ones((3, 2), dtype=pa.float32)
        c = a.copy()
        c += row
        np.testing.assert_array_equal(pa.asnumpy(c), pa.asnumpy(a) + 1)
        with pytest.raises(ValueError, match="shape"):
            row += a
        with pa.debug():
            assert (a + b).tolist() == (a + a).tolist()


def test_threads():
    def work(k, results):
        x = np.full((50, 40), k, np.float32)
        a = pa.asarray(x)
        fine = True
        for _ in range(60):
            fine &= bool(pa.all(a + a == 2 * k)) and float(pa.sum(a)) == 2000 * k
            fine &= bool(pa.all(a.T @ a == 50 * k * k))
        results[k] = fine

    results = {}
    threads = [threading.Thread(target=work, args=(k, results)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(1, 5), True)


def test_rows_are_documented():
    for name in UFUNCS.keys() - PARTS - {"round", "angle"}:  # which take more than their rows
        assert getattr(pa, name).__doc__.startswith(f"{name}(")
    assert len(of_kinds("biufc")) == len(ALL)


def test_lists_are_operands():
    a = pa.asarray([1, 2, 3])
    assert (a == [1, 2, 4]).tolist() == [True, True, False]
    assert ([1, 1, 1] + a).tolist() == [2, 3, 4]
    assert (a * ((1,), (2,))).tolist() == [[1, 2, 3], [2, 4, 6]]
    a += (1, 0, 0)
    assert a.tolist() == [2, 2, 3]
    assert pa.sqrt([1, 4]).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"\(3,\) and \(2,\) don't broadcast"):
        a == [1, 2]  # noqa: B015 - the comparison is what raises


def test_larger_outputs_get_the_result_broadcast(device):
    x = np.arange(3.0)
    a = pa.asarray(x, device=device)
    calls = (
        lambda p, v, o: p.add(v, 1, out=o),
        lambda p, v, o: p.multiply(v, v, out=o),
        lambda p, v, o: p.sqrt(v, out=o),
        lambda p, v, o: p.power(v, 2, out=o),
        lambda p, v, o: p.clip(v, 0.5, 1.5, out=o),
        lambda p, v, o: p.add(v[:, None], v, out=o),
    )
    for call in (*calls, *calls, *calls):  # the short ways, too
        expected = call(np, x, np.zeros((2, 3, 3)))
        out = pa.zeros((2, 3, 3), device=device)
        assert call(pa, a, out) is out
        np.testing.assert_allclose(out.get(), expected, rtol=1e-15)
    for _ in range(3):  # an operand that the output overlaps
        base = pa.asarray(np.arange(6.0).reshape(2, 3), copy=True, device=device)
        assert pa.add(base[1], 1, out=base).tolist() == [[4, 5, 6]] * 2
    for shape in ((1,), (3, 2), ()):
        with pytest.raises(ValueError, match=r"add\(\): out= has shape .* the result has shape \(3,\)"):
            pa.add(a, 1, out=pa.zeros(shape, device=device))
    for reduction in (pa.sum, pa.mean, pa.std, pa.max, pa.any, pa.nanmean, pa.nanvar):
        with pytest.raises(ValueError, match=r"out= has shape \(2,\), the result has shape \(\)"):
            reduction(a, out=pa.zeros(2, device=device))


def test_dtypes_of_results_are_numpys():
    """Of all ufuncs over bools and integers, but for what the guide lists: floats are float64."""
    for name in np.__all__:  # other libraries add names of their own to the module
        ufunc = getattr(np, name)
        if not isinstance(ufunc, np.ufunc) or ufunc.signature or name in ("reciprocal", "isnat"):
            continue
        for dtype in (np.bool_, np.int8, np.uint8, np.int16, np.uint32, np.int64):
            x = np.zeros(0, dtype)  # for which nothing is compiled
            with np.errstate(all="ignore"):
                try:
                    expected = ufunc(*[x] * ufunc.nin)
                except TypeError:
                    with pytest.raises(TypeError):
                        getattr(pa, name)(*[pa.asarray(x)] * ufunc.nin)
                    continue
            found = getattr(pa, name)(*[pa.asarray(x)] * ufunc.nin)
            for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True):
                wanted = np.dtype(np.float64) if b.dtype.kind == "f" else b.dtype
                assert a.dtype == wanted, (name, dtype)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_bits_of_half_floats(dtype, device):
    bits = np.arange(1 << 16, dtype=np.uint16)
    other = bits[::-1] * np.uint16(77)
    x, y = (pa.asarray(b.view(dtype.numpy), device=device) for b in (bits, other))
    for found, expected in (
        (pa.abs(x), bits & 0x7FFF), (-x, bits ^ 0x8000),
        (pa.copysign(x, y), bits & 0x7FFF | other & 0x8000),
    ):  # fmt: skip
        np.testing.assert_array_equal(pa.asnumpy(found).view(np.uint16), expected)
    wide = bits.view(dtype.numpy).astype(np.float32)
    for name in ("isnan", "isinf", "isfinite", "signbit"):
        np.testing.assert_array_equal(pa.asnumpy(getattr(pa, name)(x)), getattr(np, name)(wide))

    @pa.kernel
    def together(v: pa.BufferView, out: pa.BufferView):
        for i in range(v.size):
            out[i] = v[i] if pa.isnan(v[i]) or abs(v[i]) > 1 else -v[i] * 2

    out = pa.empty_like(x)
    together(x, out)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.where(np.abs(wide) <= 1, -2 * wide, wide).astype(dtype.numpy)
    np.testing.assert_array_equal(pa.asnumpy(out).astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.uint64, dtypes.int32, dtypes.uint8], ids=str)
def test_division_by_one_number_is_exact(dtype, device):
    ends, rng = np.iinfo(dtype.numpy), np.random.default_rng(0)
    powers = [(1 << s) + t for s in range(64) for t in (-1, 0, 1)]
    numbers = [*powers, *(-p for p in powers), 3, 7, 10**18, 1000003, *rng.integers(2, 1 << 62, 8).tolist()]
    numbers = sorted({n for n in numbers if ends.min <= n <= ends.max})
    drawn = rng.integers(ends.min, ends.max, 300, dtype.numpy, endpoint=True).tolist()
    for number in numbers[:: 1 if device == "cpu" else 9]:
        near = [m * number + t for m in (-5, 2, 1 << 20, ends.max // (number or 1)) for t in (-1, 0, 1)]
        halves = [m * number // 2 + t for m in (-3, 1, 7) for t in (-1, 0, 1)]
        least = ends.min + (number == -1)  # NumPy's own answer to that depends on its build
        values = [v for v in (*drawn, *numbers, *near, *halves) if least <= v <= ends.max]
        x = np.array(values, dtype.numpy)
        a, divisor = pa.asarray(x, device=device), np.array(number, dtype.numpy)
        with np.errstate(all="ignore"):
            whole, rest = x // divisor, x % divisor
        np.testing.assert_array_equal(pa.asnumpy(a // number), whole)
        np.testing.assert_array_equal(pa.asnumpy(a % number), rest)
    for found in divmod(a[::-2], pa.asarray(number, dtype, device=device)):
        np.testing.assert_array_equal(pa.asnumpy(found), (whole if found[0] == whole[-1] else rest)[::-2])
    whole = x // np.array(7, dtype.numpy)
    a //= 7
    np.testing.assert_array_equal(pa.asnumpy(a), whole)
