"""csrc/device/pa_complex.h, by libm and by its own formulas, against NumPy and the standard."""

import math

import numpy as np
import pytest
from device_headers import CC, COMPLEX, call, close, inf, library, nan, pairs, pi, same  # beside this file

pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")


@pytest.fixture(scope="module")
def lib():
    return library()


@pytest.fixture(scope="module")
def own():
    return library("-DPA_COMPLEX_OWN", "-O1")


CUNARY = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}


@pytest.fixture(params=["libm", "own"])
def clib(request):
    return request.getfixturevalue("lib" if request.param == "libm" else "own")


def complex_draw(dtype, n=3000):
    r = np.random.default_rng(3)
    parts = [r.standard_normal(n) * s + 1j * r.standard_normal(n) * s for s in (1e-3, 1, 1, 20)]
    circle = np.exp(1j * r.uniform(-pi, pi, n)) * (1 + r.standard_normal(n) / 1000)
    return np.concatenate([*parts, circle]).astype(dtype)


def cclose(got, want, ulps):
    """error relative to |want|, as complex accuracy is counted"""
    eps = np.finfo(got.dtype).eps
    error = np.abs(got.astype(want.dtype) - want) / np.abs(want) / eps
    assert np.all((error <= ulps) | (got == want)), np.nanmax(error)


@pytest.mark.parametrize("suffix", COMPLEX)
@pytest.mark.parametrize("name", CUNARY)
@np.errstate(all="ignore")
def test_complex(clib, name, suffix):
    dtype = COMPLEX[suffix]
    z = complex_draw(dtype)
    cclose(call(clib, name, z), CUNARY[name](z.astype(np.clongdouble)), 12)


def special_grid():
    v = [0.0, 0.5, 1.0, 2.0, 1e-300, 1e200, 1e308, 800.0, inf, nan]
    a, b = pairs(np.array(v + [-x for x in v]))
    z = np.empty(a.size, complex)
    z.real, z.imag = a, b
    return z


# C11 Annex G leaves the sign of these open, or the parts of a NaN
@pytest.mark.parametrize("name", sorted(set(CUNARY) - {"tan", "tanh"}))
@np.errstate(all="ignore")
def test_complex_own_matches_libm(lib, own, name):
    z = special_grid()
    got, want = call(own, name, z), call(lib, name, z)
    for part in ("real", "imag"):
        g, w = getattr(got, part), getattr(want, part)
        ok = np.isclose(g, w, rtol=1e-12, atol=0, equal_nan=True) | ((g == 0) & (np.abs(w) < 1e-300))
        infinite = np.isinf(g) & np.isinf(w) & (np.isnan(got.real) | np.isnan(got.imag) | np.isnan(want.real))
        scale = np.abs(g - w) <= 1e-15 * np.maximum(np.abs(want.real), np.abs(want.imag))
        ok |= infinite | scale
        assert ok.all(), [
            (complex(a), complex(b), complex(c)) for a, b, c in zip(z[~ok][:6], got[~ok], want[~ok], strict=False)
        ]


def czeros(got, want, sign=True):
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        near = g == pytest.approx(w, rel=1e-6) or (not sign and abs(g) == pytest.approx(abs(w), rel=1e-6))
        assert (math.isnan(g) and math.isnan(w)) or near, (got, want)
        if sign and not math.isnan(w):
            assert math.copysign(1, g) == math.copysign(1, w), (got, want)


# Array API standard 2024.12, "Special cases" of complex operands. None: the sign is not specified.
STANDARD = {
    "expm1": [
        ((0, 0), (0, 0)),
        ((-0.0, 0), (0, 0)),
        ((3, inf), (nan, nan)),
        ((3, nan), (nan, nan)),
        ((inf, 0), (inf, 0)),
        ((-inf, 2), (-1, 0)),
        ((-inf, -2), (-1, -0.0)),
        ((inf, 2), (-inf, inf)),
        ((-inf, inf), (-1, 0)),
        ((inf, inf), (inf, nan)),
        ((-inf, nan), (-1, 0)),
        ((inf, nan), (inf, nan)),
        ((nan, 0), (nan, 0)),
        ((nan, 2), (nan, nan)),
        ((nan, nan), (nan, nan)),
    ],
    "tanh": [
        ((0, 0), (0, 0)),
        ((-0.0, -0.0), (-0.0, -0.0)),
        ((2, inf), (nan, nan)),
        ((2, nan), (nan, nan)),
        ((inf, 2), (1, 0)),
        ((inf, 1), (1, 0)),
        ((inf, -2), (1, -0.0)),
        ((-inf, 2), (-1, 0)),
        ((inf, inf), (1, 0)),
        ((inf, nan), (1, 0)),
        ((nan, 0), (nan, 0)),
        ((nan, 2), (nan, nan)),
        ((nan, nan), (nan, nan)),
        ((0, nan), (0, nan)),
        ((0, inf), (0, nan)),
    ],
    "log1p": [
        ((-1, 0), (-inf, 0)),
        ((2, inf), (inf, pi / 2)),
        ((2, nan), (nan, nan)),
        ((-inf, 2), (inf, pi)),
        ((inf, 2), (inf, 0)),
        ((-inf, inf), (inf, 3 * pi / 4)),
        ((inf, inf), (inf, pi / 4)),
        ((inf, nan), (inf, nan)),
        ((-inf, nan), (inf, nan)),
        ((nan, 2), (nan, nan)),
        ((nan, inf), (inf, nan)),
        ((nan, nan), (nan, nan)),
        ((0, 0), (0, 0)),
        ((0, -0.0), (0, -0.0)),
    ],
    "exp": [
        ((0, 0), (1, 0)),
        ((-0.0, 0), (1, 0)),
        ((2, inf), (nan, nan)),
        ((inf, 0), (inf, 0)),
        ((-inf, inf), (0, 0)),
        ((inf, inf), (inf, nan)),
        ((-inf, nan), (0, 0)),
        ((inf, nan), (inf, nan)),
        ((nan, 0), (nan, 0)),
        ((nan, 2), (nan, nan)),
    ],
    "log": [
        ((-0.0, 0), (-inf, pi)),
        ((0, 0), (-inf, 0)),
        ((2, inf), (inf, pi / 2)),
        ((-inf, 1), (inf, pi)),
        ((inf, 1), (inf, 0)),
        ((-inf, inf), (inf, 3 * pi / 4)),
        ((inf, nan), (inf, nan)),
        ((nan, inf), (inf, nan)),
        ((nan, 1), (nan, nan)),
    ],
    "sqrt": [
        ((0, 0), (0, 0)),
        ((-0.0, 0), (0, 0)),
        ((0, -0.0), (0, -0.0)),
        ((nan, inf), (inf, inf)),
        ((1, nan), (nan, nan)),
        ((-inf, 1), (0, inf)),
        ((inf, 1), (inf, 0)),
        ((-inf, nan), (nan, inf)),
        ((inf, nan), (inf, nan)),
        ((nan, 1), (nan, nan)),
        ((-4, -0.0), (0, -2)),
    ],
    "sinh": [
        ((0, 0), (0, 0)),
        ((0, inf), (0, nan)),
        ((0, nan), (0, nan)),
        ((2, inf), (nan, nan)),
        ((inf, 0), (inf, 0)),
        ((inf, inf), (inf, nan)),
        ((inf, nan), (inf, nan)),
        ((nan, 0), (nan, 0)),
        ((nan, 2), (nan, nan)),
        ((-0.0, 0), (-0.0, 0)),
    ],
    "cosh": [
        ((0, 0), (1, 0)),
        ((0, inf), (nan, 0)),
        ((0, nan), (nan, 0)),
        ((2, inf), (nan, nan)),
        ((inf, 0), (inf, 0)),
        ((inf, inf), (inf, nan)),
        ((nan, 0), (nan, 0)),
        ((nan, 2), (nan, nan)),
    ],
    "asinh": [
        ((0, 0), (0, 0)),
        ((2, inf), (inf, pi / 2)),
        ((2, nan), (nan, nan)),
        ((inf, 2), (inf, 0)),
        ((inf, inf), (inf, pi / 4)),
        ((inf, nan), (inf, nan)),
        ((nan, 0), (nan, 0)),
        ((nan, 2), (nan, nan)),
        ((nan, inf), (inf, nan)),
    ],
    "acosh": [
        ((0, 0), (0, pi / 2)),
        ((-0.0, 0), (0, pi / 2)),
        ((2, inf), (inf, pi / 2)),
        ((0, nan), (nan, pi / 2)),
        ((2, nan), (nan, nan)),
        ((-inf, 2), (inf, pi)),
        ((inf, 2), (inf, 0)),
        ((-inf, inf), (inf, 3 * pi / 4)),
        ((inf, inf), (inf, pi / 4)),
        ((inf, nan), (inf, nan)),
        ((nan, 2), (nan, nan)),
    ],
    "acos": [
        ((0, 0), (pi / 2, -0.0)),
        ((0, nan), (pi / 2, nan)),
        ((2, inf), (pi / 2, -inf)),
        ((2, nan), (nan, nan)),
        ((-inf, 2), (pi, -inf)),
        ((inf, 2), (0, -inf)),
        ((-inf, inf), (3 * pi / 4, -inf)),
        ((inf, inf), (pi / 4, -inf)),
        ((nan, inf), (nan, -inf)),
        ((nan, 2), (nan, nan)),
    ],
    "atanh": [
        ((0, 0), (0, 0)),
        ((0, nan), (0, nan)),
        ((1, 0), (inf, 0)),
        ((2, inf), (0, pi / 2)),
        ((2, nan), (nan, nan)),
        ((inf, 2), (0, pi / 2)),
        ((inf, inf), (0, pi / 2)),
        ((inf, nan), (0, nan)),
        ((nan, 2), (nan, nan)),
        ((nan, inf), (0, pi / 2)),
        ((nan, nan), (nan, nan)),
    ],
    "sign": [
        ((0, 0), (0, 0)),
        ((-0.0, -0.0), (0, 0)),
        ((3, 4), (0.6, 0.8)),
        ((nan, 1), (nan, nan)),
        ((inf, 5), (1, 0)),
        ((1, -inf), (0, -1)),
        ((3e-320, 4e-320), (0.6, 0.8)),
        ((1e308, 1e308), (0.5**0.5, 0.5**0.5)),
    ],
}


@pytest.mark.parametrize("suffix", COMPLEX)
@pytest.mark.parametrize("name", STANDARD)
def test_complex_special(clib, name, suffix):
    cases = [c for c in STANDARD[name] if suffix == "c128" or name != "sign" or abs(c[0][0]) not in (3e-320, 1e308)]
    z, z_conj = np.empty((2, len(cases)), COMPLEX[suffix])
    z.real, z.imag = zip(*(c[0] for c in cases), strict=False)
    z_conj.real, z_conj.imag = z.real, -z.imag
    for got, mirrored, (arg, want) in zip(call(clib, name, z), call(clib, name, z_conj), cases, strict=False):
        free = (
            any(math.isnan(v) for v in (*arg, *want))
            or (name in ("exp", "expm1") and math.isinf(arg[1]))
            or name == "sign"
        )
        czeros(got, complex(*want), not free)
        czeros(mirrored, complex(*want).conjugate(), not free)


@pytest.mark.parametrize("suffix", COMPLEX)
@np.errstate(all="ignore")
def test_complex_arithmetic(lib, suffix):
    dtype = COMPLEX[suffix]
    real = np.dtype(f"f{dtype.itemsize // 2}")
    z = np.concatenate([complex_draw(dtype, 300), special_grid().astype(dtype)])
    w = np.roll(z, 7)
    for name, f in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}.items():
        got, want = call(lib, name, z, w), f(z, w)
        both = np.isnan(got.real) & np.isnan(want.real) | np.isnan(got.imag) & np.isnan(want.imag)
        cclose(got[~both & np.isfinite(want)], want[~both & np.isfinite(want)].astype(np.clongdouble), 4)
        # a product that overflows: inf - inf where both are rounded, inf where one is fused (GCC 12, NumPy)
        known = (np.abs(z) < 1e100) & (np.abs(w) < 1e100) if name == "mul" else np.full(z.shape, True)
        np.testing.assert_array_equal(np.isnan(got)[known], np.isnan(want)[known])
    for name, f in {"eq": np.equal, "ne": np.not_equal}.items():
        np.testing.assert_array_equal(call(lib, name, z, w, out=bool), f(z, w))
        np.testing.assert_array_equal(call(lib, name, z, z, out=bool), f(z, z))
    for name, f in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}.items():
        np.testing.assert_array_equal(call(lib, name, z, out=bool), f(z))
    for name, f in {"neg": np.negative, "conj": np.conj, "round": np.rint}.items():
        same(call(lib, name, z), f(z))
    for name, f in {"real": np.real, "imag": np.imag}.items():
        same(call(lib, name, z, out=real), f(z))
    close(call(lib, "abs", z, out=real), np.abs(z.astype(np.clongdouble)), 4)
    close(call(lib, "angle", z, out=real), np.angle(z.astype(np.clongdouble)), 4)
    z = complex_draw(dtype, 300)
    big = z.astype(np.clongdouble)
    cclose(call(lib, "square", z), big * big, 4)
    cclose(call(lib, "recip", z), 1 / big, 4)
    cclose(call(lib, "sign", z), big / np.abs(big), 4)
    cclose(call(lib, "log2", z), np.log(big) / np.log(np.longdouble(2)), 6)
    cclose(call(lib, "log10", z), np.log(big) / np.log(np.longdouble(10)), 6)
    cclose(call(lib, "expm1", z), np.expm1(big), 6)
    if suffix == "c64":  # log1p of NumPy cancels where ours does not
        cclose(call(lib, "log1p", z), np.log1p(big), 4)
    w = np.roll(z, 5)
    want = np.exp(w.astype(np.clongdouble) * np.log(big))
    info = np.finfo(dtype)
    fits = (np.abs(want) < info.max / 4) & (np.abs(want) > info.tiny / info.eps)
    cclose(call(lib, "pow", z, w)[fits], want[fits], 4 if suffix == "c64" else 600)
    np.testing.assert_array_equal(
        call(lib, "pow", np.array([1j, 1j, 2, 0, 0, 0, 5], dtype), np.array([2, -1, 10, 0, 2, -1, 0], dtype)),
        np.array([-1, -1j, 1024, 1, 0, complex(nan, nan), 1], dtype),
    )


def test_log1p_near_the_circle(lib):
    mpmath = pytest.importorskip("mpmath")
    angle = np.random.default_rng(1).uniform(-3, 3, 40)
    z = np.exp(1j * angle) - 1
    with mpmath.workprec(200):
        want = np.array([complex(mpmath.log(1 + mpmath.mpc(complex(v)))) for v in z])
    got = call(lib, "log1p", z)
    np.testing.assert_allclose(got.imag, want.imag, 1e-14)
    np.testing.assert_allclose(got.real, want.real, 1e-6, 1e-31)
