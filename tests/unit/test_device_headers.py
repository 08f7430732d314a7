"""csrc/device on the CPU against NumPy, ml_dtypes and Python: integers, reals, halves, checks."""

import ctypes
import itertools
import math
import subprocess

import numpy as np
import pytest
from device_headers import (  # beside this file
    CC,
    CXX,
    I64,
    INCLUDE,
    INTS,
    NARROW,
    REALS,
    SOURCE,
    call,
    close,
    drawn,
    inf,
    library,
    nan,
    pairs,
    same,
    special,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

HEADERS = ["pa_base.h", "pa_check.h", "pa_shape.h", "pa_int.h", "pa_real.h", "pa_half.h", "pa_float8.h",
           "pa_complex.h", "pa_atomic.h"]  # fmt: skip
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")


@pytest.fixture(scope="module")
def lib():
    return library()


# ---- the headers as text -----------------------------------------------------------------------------------


@pytest.mark.parametrize("header", HEADERS)
def test_each_header_compiles_alone(header, tmp_path):
    text = tmp_path / "one.c"
    text.write_text(f'#include "{header}"\n#include "{header}"\nint f(void);\nint f(void) {{ return 0; }}\n')
    subprocess.run([CC, "-std=c11", "-fsyntax-only", *INCLUDE, str(text)], check=True)


@pytest.mark.skipif(CXX is None, reason="no C++ compiler")
@pytest.mark.parametrize("extra", [[], ["-DPA_COMPLEX_OWN"]])
def test_all_is_cxx17_too(extra):
    subprocess.run([CXX, "-x", "c++", "-std=c++17", "-fsyntax-only", *INCLUDE, *extra, str(SOURCE)], check=True)


# ---- pa_int.h, pa_check.h ----------------------------------------------------------------------------------


def int_values(dtype):
    info, bits = np.iinfo(dtype), dtype.itemsize * 8
    wanted = [
        0,
        1,
        2,
        3,
        5,
        7,
        10,
        bits - 1,
        bits,
        bits + 1,
        info.max,
        info.max - 1,
        info.max // 2,
        info.min,
        info.min + 1,
        -1,
        -2,
        -3,
        -7,
    ]
    return np.array(sorted({v for v in wanted if info.min <= v <= info.max}), dtype)


def int_want(name, a, b, dtype):
    bits, signed = dtype.itemsize * 8, dtype.kind == "i"
    outside = not 0 <= b < bits
    value = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "min": lambda: min(a, b),
        "max": lambda: max(a, b),
        "floordiv": lambda: a // b if b else 0,
        "mod": lambda: a % b if b else 0,
        "fmod": lambda: abs(a) % abs(b) * (-1 if a < 0 else 1) if b else 0,
        "shl": lambda: 0 if outside else a << b,
        "shr": lambda: (-1 if a < 0 else 0) if outside else a >> b,
        "pow": lambda: pow(a, b, 1 << bits) if b >= 0 else {1: 1, -1: -1 if b % 2 else 1}.get(a, 0),
        "neg": lambda: -a,
        "abs": lambda: abs(a),
        "square": lambda: a * a,
        "sign": lambda: (a > 0) - (a < 0),
    }[name]() % (1 << bits)
    return value - (1 << bits) if signed and value >> (bits - 1) else value


INT_FUNCTIONS = [
    "add",
    "sub",
    "mul",
    "min",
    "max",
    "floordiv",
    "mod",
    "fmod",
    "shl",
    "shr",
    "pow",
    "neg",
    "abs",
    "square",
    "sign",
]


@pytest.mark.parametrize("suffix", INTS)
@pytest.mark.parametrize("name", INT_FUNCTIONS)
def test_int(lib, name, suffix):
    dtype = INTS[suffix]
    a, b = pairs(
        np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)[::3]
        if dtype.itemsize == 1
        else int_values(dtype)
    )
    want = [int_want(name, int(x), int(y), dtype) for x, y in zip(a, b, strict=False)]
    np.testing.assert_array_equal(call(lib, name, a, b), np.array(want, dtype))


@examples(60)
@given(st.data())
def test_int_drawn(lib, data):
    dtype = INTS[data.draw(st.sampled_from(list(INTS)))]
    info = np.iinfo(dtype)
    number = st.integers(int(info.min), int(info.max)) | st.integers(max(-9, int(info.min)), 70)
    cases = data.draw(st.lists(st.tuples(number, number), min_size=1, max_size=40))
    a, b = (np.array(c, dtype) for c in zip(*cases, strict=False))
    for name in INT_FUNCTIONS:
        np.testing.assert_array_equal(
            call(lib, name, a, b), np.array([int_want(name, x, y, dtype) for x, y in cases], dtype), name
        )


def test_range_and_slice(lib):
    def fn(name, *args):
        f = getattr(lib, name)
        f.restype, f.argtypes = ctypes.c_int64, [ctypes.c_int64] * len(args)
        return f(*args)

    edges = [0, 1, 2, 3, 7, -1, -2, -5, 10, I64, I64 - 1, -I64, -I64 - 1, 1 << 62, -(1 << 62)]
    for a, b, s in itertools.product(edges, repeat=3):
        want = 0 if s == 0 else max(0, -((a - b) // s) if s > 0 else -((b - a) // -s))
        assert fn("x_range_len", a, b, s) == min(want, I64), (a, b, s)
        assert fn("x_in_view", a, b, max(s, 0)) == (a >= 0 and b >= 0 and a + b <= max(s, 0))
    for n, a, b in itertools.product([0, 1, 2, 7, I64 - 1, I64], edges + [None], edges + [None]):
        for s in [1, 2, 3, -1, -2, -3, I64, -I64, -I64 - 1]:
            start, stop, _ = slice(a, b, s).indices(n)
            got = (
                fn("x_slice_start_none", n, s) if a is None else fn("x_slice_start_step", a, n, s),
                fn("x_slice_stop_none", n, s) if b is None else fn("x_slice_stop_step", b, n, s),
            )
            assert got == (start, stop), (a, b, s, n)
            length = max(0, -((start - stop) // s) if s > 0 else -((stop - start) // -s))
            assert fn("x_slice_len", *got, s) == length
            if s == 1 and a is not None and b is not None:
                assert (fn("x_slice_start", a, n), fn("x_slice_stop", b, n)) == (start, stop)
        assert fn("x_slice_len", 0, n, 0) == 0


class Failure(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int32) for n in ("set", "kind", "loop", "site")]
    _fields_ += [(n, ctypes.c_int64) for n in ("tid", "index", "extent", "offset", "size")]
    _fields_ += [("depth", ctypes.c_int32), ("frames", ctypes.c_int32 * 64)]


@pytest.mark.parametrize("depth", [0, 1, 3, 64, 70])
def test_check_reports(lib, depth):
    def check(kind, index, extent, offset, size):
        out = Failure()
        args = [ctypes.c_int64(v) for v in (index, extent, offset, size)]
        return lib.x_check(ctypes.byref(out), kind, depth, *args), out

    for index in (0, 15):
        assert check(1, index, 16, 0, 16)[0] == 0
    for index in (16, -1, I64, -I64 - 1):
        failed, out = check(1, index, 16, 4, 16)
        assert failed
        assert (out.kind, out.site, out.loop, out.tid) == (1, 7, 2, 16)
        assert (out.index, out.extent, out.offset, out.size, out.depth) == (index, 16, 4, 16, depth)
        assert list(out.frames[: min(depth, 64)]) == list(range(depth, 0, -1))[:64]
    assert check(2, 0, 16, 16, 0)[0] == 0
    assert check(3, 0, 16, 0, 16)[0] == 0
    for offset, size in ((0, 17), (17, 0), (-1, 1), (1, -1), (I64, I64)):
        failed, out = check(2, 0, 16, offset, size)
        assert failed
        assert (out.kind, out.index, out.size, out.extent) == (2, offset, size, 16)
    assert check(4, 1, 0, 0, 0)[0] == 0
    assert check(4, 0, 0, 0, 0)[1].kind == 4


# ---- pa_real.h ---------------------------------------------------------------------------------------------

UNARY = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "cbrt": np.cbrt,
}
EXACT = {
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "round": np.rint,
    "fabs": np.abs,
    "abs": np.abs,
    "sign": np.sign,
    "square": np.square,
    "recip": np.reciprocal,
    "neg": np.negative,
}
EXACT2 = {
    "mod": np.remainder,
    "floordiv": np.floor_divide,
    "fmod": np.fmod,
    "max": np.maximum,
    "min": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "heaviside": np.heaviside,
}
BINARY = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", REALS)
@pytest.mark.parametrize("name", [*UNARY, "erf", "erfc"])
@np.errstate(all="ignore")
def test_libm_within_4_ulp(lib, name, suffix):
    dtype = REALS[suffix]
    x = np.concatenate([special(dtype), drawn(dtype, 8000)])
    x = x[: x.size // 16 * 16]
    if name in UNARY:
        want = UNARY[name](x.astype(np.float64 if suffix == "f32" else np.longdouble))
    else:
        want = np.array([getattr(math, name)(float(v)) for v in x])
    close(call(lib, name, x), want, 4)


@pytest.mark.parametrize("suffix", REALS)
@pytest.mark.parametrize("name", BINARY)
@np.errstate(all="ignore")
def test_libm2_within_4_ulp(lib, name, suffix):
    dtype = REALS[suffix]
    a, b = pairs(special(dtype))
    a = np.concatenate([a, drawn(dtype, 4000)])
    b = np.concatenate([b, drawn(dtype, 4000, 1)])
    close(call(lib, name, a, b), BINARY[name](a.astype(np.longdouble), b.astype(np.longdouble)), 4)


@pytest.mark.parametrize("suffix", REALS)
@np.errstate(all="ignore")
def test_real_exact(lib, suffix):
    dtype = REALS[suffix]
    x = np.concatenate([special(dtype), drawn(dtype, 500)])
    for name, f in EXACT.items():
        same(call(lib, name, x), f(x))
    for name, f in {
        "isnan": np.isnan,
        "isinf": np.isinf,
        "isfinite": np.isfinite,
        "signbit": np.signbit,
    }.items():
        np.testing.assert_array_equal(call(lib, name, x, out=bool), f(x))
    a, b = pairs(special(dtype))
    a = np.concatenate([a, drawn(dtype, 3000), drawn(dtype, 3000)])
    b = np.concatenate([b, drawn(dtype, 3000, 1), drawn(dtype, 3000, 1) / 1000])
    for name, f in EXACT2.items():
        got, want = call(lib, name, a, b), f(a, b)
        if name in ("max", "min", "fmax", "fmin"):  # the sign of a zero among zeros is open
            got, want = got + 0, want + 0
        same(got, want)
    for name, f in {"logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2}.items():
        np.testing.assert_allclose(
            call(lib, name, a, b),
            f(a.astype(np.longdouble), b).astype(dtype),
            8 * np.finfo(dtype).eps,
            np.finfo(dtype).eps,
        )
    for name in ("lgamma", "tgamma"):
        x = np.abs(drawn(dtype, 50)[50:]) % 30 + dtype.type(0.1)
        want = [getattr(math, "lgamma" if name == "lgamma" else "gamma")(float(v)) for v in x]
        np.testing.assert_allclose(call(lib, name, x), want, 16 * np.finfo(dtype).eps, 8 * np.finfo(dtype).eps)


@examples(100)
@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=20))
def test_divmod_drawn(lib, cases):
    a, b = (np.array(c) for c in zip(*cases, strict=False))
    with np.errstate(all="ignore"):
        for dtype in REALS.values():
            x, y = a.astype(dtype), b.astype(dtype)
            for name in ("mod", "floordiv", "fmod"):
                same(call(lib, name, x, y), EXACT2[name](x, y))


@pytest.mark.parametrize("suffix", REALS)
def test_casts(lib, suffix):
    dtype = REALS[suffix]
    for to, target in INTS.items():
        info = np.iinfo(target)
        low, high = (max(-(2**31), -(2**63) if target.itemsize > 4 else 0), float(info.max))
        if target.itemsize < 4:
            low, high = float(info.min) if target.kind == "i" else -200.0, float(info.max)
        x = np.concatenate(
            [
                np.linspace(low, np.nextafter(dtype.type(high), dtype.type(0)), 999),
                [0.0, -0.0, 0.9, 1.5, 2.5, 127.99],
            ]
        ).astype(dtype)
        want = np.array(
            [math.trunc(float(v)) % 2 ** (8 * target.itemsize) for v in x], np.dtype(f"u{target.itemsize}")
        ).view(target)
        np.testing.assert_array_equal(call(lib, f"pa_cast_{suffix}_{to}", x, out=target), want)
        call(lib, f"pa_cast_{suffix}_{to}", special(dtype), out=target)  # out of range: no trap
        if target.kind == "u":
            assert call(lib, f"pa_cast_{suffix}_{to}", np.full(9, -1, dtype), out=target)[8] == info.max
    x = special(dtype)
    np.testing.assert_array_equal(call(lib, f"pa_cast_{suffix}_b", x, out=bool), x.astype(bool))


# ---- pa_half.h, pa_float8.h --------------------------------------------------------------------------------


def same_bits(got, want):
    nan, bits = np.isnan(want.astype(np.float32)), f"u{want.dtype.itemsize}"
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), nan)
    np.testing.assert_array_equal(got.view(bits)[~nan], want.view(bits)[~nan])


@pytest.mark.parametrize("suffix", NARROW)
@np.errstate(all="ignore")
def test_narrow(lib, suffix):
    dtype = NARROW[suffix]
    every = np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}").view(dtype)
    for to, wide in REALS.items():
        same(call(lib, f"pa_{to}_from_{suffix}", every, out=wide), every.astype(np.float32).astype(wide))
        got = call(lib, f"pa_{suffix}_from_{to}", every.astype(np.float32).astype(wide), out=dtype)
        same_bits(got, every)
    # each number, the middle to the next one, and the neighbours of both
    finite = np.sort(every[np.isfinite(every.astype(np.float32))].astype(np.float64))
    middle = (finite[1:] + finite[:-1]) / 2
    top = finite[-1] + (finite[-1] - finite[-2]) / 2
    x = np.concatenate([finite, middle, [top, -top, np.nextafter(top, 0), math.inf, -math.inf, math.nan]])
    f32 = np.concatenate([x, np.nextafter(x.astype(np.float32), np.float32(9e9)), drawn(np.dtype("f4"), 20000)]).astype(
        np.float32
    )
    same_bits(call(lib, f"pa_{suffix}_from_f32", f32, out=dtype), f32.astype(dtype))
    # float64 is rounded once: each middle decides by neighbours that float32 does not have
    want = np.concatenate([finite, finite, finite])
    near = np.concatenate([finite, np.nextafter(finite, math.inf), np.nextafter(finite, -math.inf)])
    same(call(lib, f"pa_{suffix}_from_f64", near, out=dtype).astype(np.float64) + 0, want + 0)
    up, down = np.nextafter(middle, math.inf), np.nextafter(middle, -math.inf)
    same(call(lib, f"pa_{suffix}_from_f64", up, out=dtype).astype(np.float64) + 0, finite[1:] + 0)
    same(call(lib, f"pa_{suffix}_from_f64", down, out=dtype).astype(np.float64) + 0, finite[:-1] + 0)
    ends = np.array([top, -top, np.nextafter(top, 0), 1e308, inf, -inf, nan])
    same_bits(
        call(lib, f"pa_{suffix}_from_f64", ends, out=dtype),
        np.array([top, -top, finite[-1], inf, inf, -inf, nan]).astype(dtype),  # the middle to the next one is a tie
    )
    f64 = special(np.dtype("f8"))
    if suffix == "f16":
        same_bits(call(lib, "pa_f16_from_f64", f64, out=dtype), f64.astype(dtype))
