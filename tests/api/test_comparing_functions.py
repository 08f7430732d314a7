"""Nearness, replaced NaN, and the further elementwise functions, against NumPy's."""

import decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa

FEW = examples(40)
SPECIAL = np.array([0.0, -0.0, 1.0, 1 + 1e-9, 1.1, np.nan, np.inf, -np.inf, -3.5, 1e300, 2.5])


def same(ours, theirs, rtol=1e-12):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=rtol, atol=1e-15)


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int32"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_isclose(equal_nan, dtype, device):
    x = np.where(np.isfinite(SPECIAL), SPECIAL, 7.0).clip(-9, 9) if dtype == "int32" else SPECIAL
    x = x.astype(dtype)
    a = pa.asarray(x, device=device)
    same(pa.isclose(a[:, None], a, equal_nan=equal_nan), np.isclose(x[:, None], x, equal_nan=equal_nan))
    same(pa.isclose(a, 1, rtol=0.2), np.isclose(x, 1, rtol=0.2))
    same(pa.isclose(a, a, atol=pa.ones(x.size, device=device)), np.isclose(x, x, atol=np.ones(x.size)))
    assert pa.allclose(a, x, equal_nan=equal_nan) is bool(np.allclose(x, x, equal_nan=equal_nan))
    assert pa.array_equal(a, x, equal_nan=equal_nan) is bool(np.array_equal(x, x, equal_nan=equal_nan))
    assert pa.array_equiv(a, x) is bool(np.array_equiv(x, x))


def test_equal_shapes():
    assert not pa.array_equal([1, 2], [[1, 2]])
    assert pa.array_equal(["a" == "a"], [1], equal_nan=True)
    assert pa.array_equiv([1, 2], [[1, 2], [1, 2]])
    assert not pa.array_equiv([1, 2], [1, 2, 3])
    assert pa.isclose(1.0, 1.0).shape == ()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex64", "int8", "bool"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nan_to_num(dtype):
    x = (SPECIAL if dtype[0] in "fc" else np.arange(4)).astype(dtype)
    same(pa.nan_to_num(pa.asarray(x)), np.nan_to_num(x))
    options = {"nan": 5.0, "posinf": 1.0, "neginf": -2.0}
    same(pa.nan_to_num(pa.asarray(x), **options), np.nan_to_num(x, **options))
    a = pa.array(x)
    assert pa.nan_to_num(a, copy=False) is a
    same(a, np.nan_to_num(x))


ROWS = {
    "deg2rad": 1, "rad2deg": 1, "degrees": 1, "radians": 1, "isposinf": 1, "isneginf": 1, "fix": 1,
    "fmax": 2, "fmin": 2, "heaviside": 2, "logaddexp2": 2, "float_power": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows(name, device):
    for dtype in ("float64", "float32"):
        x = SPECIAL[:-2].astype(dtype)
        a = pa.asarray(x, device=device)
        if ROWS[name] == 1:
            same(getattr(pa, name)(a), getattr(np, name)(x), 1e-6)
        else:
            same(getattr(pa, name)(a[:, None], a), getattr(np, name)(x[:, None], x), 1e-6)
    if name not in ("fix", "isposinf", "isneginf"):
        whole = np.array([3, 1, 2], np.int16)
        args = (whole,) if ROWS[name] == 1 else (whole, whole[::-1])
        ours = getattr(pa, name)(*args)
        np.testing.assert_allclose(ours.get(), getattr(np, name)(*args), rtol=1e-6)


def bessel(x):
    """I0 in 40 digits, by its Taylor series."""
    with decimal.localcontext(prec=40):
        y, k, total, term = decimal.Decimal(x) ** 2 / 4, 0, decimal.Decimal(1), decimal.Decimal(1)
        while term > total * decimal.Decimal("1e-30"):
            k += 1
            term *= y / k**2
            total += term
    return total


@given(st.lists(st.floats(-700, 700) | st.floats(-12, 12), min_size=1, max_size=30))
def test_bessel_function(drawn):
    x = np.array([*drawn, 0.0, 9.0, np.nextafter(9, 10), 709.0])
    exact = [bessel(v) for v in x.tolist()]
    ours = pa.i0(pa.asarray(x))
    worst = max(abs(decimal.Decimal(a) / b - 1) for a, b in zip(ours.tolist(), exact, strict=True))
    assert worst < 1e-15
    same(ours, np.i0(x), 2e-15)


def test_bessel_function_elsewhere(device):
    x = np.array([0.0, -0.0, -3.0, 8.999, 9.001, 80.0])
    for dtype, rtol in (("float64", 1e-14), ("float32", 1e-6), ("float16", 2e-3), ("int8", 1e-14)):
        y = x.clip(-11, 11).astype(dtype)
        wanted = np.i0(y.astype("float64")).astype(pa.i0(pa.asarray(y)).dtype)
        same(pa.i0(pa.asarray(y, device=device)), wanted, rtol)
    a = pa.asarray([np.inf, -np.inf, 1e308, np.nan, 80.0], device=device)
    np.testing.assert_array_equal(pa.isnan(pa.i0(a)).get(), [False, False, False, True, False])
    np.testing.assert_array_equal(pa.i0(a)[:3].get(), np.inf)
    with pytest.raises(TypeError, match=r"i0\(\) is not defined for complex128"):
        pa.i0(pa.asarray([1j], device=device))


@FEW
@given(st.lists(st.integers(-128, 127), min_size=1, max_size=5), st.integers(-20, 20))
def test_divisors(x, y):
    for dtype in ("int64", "int32"):
        z = np.array(x, dtype)
        same(pa.gcd(pa.asarray(z), y), np.gcd(z, np.array(y, dtype)))
        same(pa.lcm(pa.asarray(z), y), np.lcm(z, np.array(y, dtype)))


@FEW
@given(numpy_views(dtype=pa.float64), st.integers(-3, 4))
def test_round(x, decimals):
    x = x / 7
    for name in ("round", "around"):
        same(getattr(pa, name)(pa.asarray(x), decimals), np.round(x, decimals))
    same(pa.asarray(x).round(decimals), x.round(decimals))
    whole = (x * 1000).astype(np.int64)
    same(pa.round(pa.asarray(whole), decimals), np.round(whole, decimals))
    out = pa.zeros(x.shape)
    assert pa.round(pa.asarray(x), decimals, out=out) is out
    same(out, np.round(x, decimals))


def test_complex_parts():
    z = np.array([1 + 2j, -1, 3j, 0])
    same(pa.angle(z), np.angle(z))
    same(pa.angle(z, deg=True), np.angle(z, deg=True))
    same(pa.angle([1.0, -1.0]), np.angle([1.0, -1.0]))
    for name in ("iscomplex", "isreal"):
        same(getattr(pa, name)(z), getattr(np, name)(z))
        same(getattr(pa, name)([1, 2]), getattr(np, name)([1, 2]))
    for x in (z, z.real, z.real + 1e-20j):
        same(pa.real_if_close(x), np.real_if_close(x))
        assert pa.iscomplexobj(x) is np.iscomplexobj(x)
        assert pa.isrealobj(x) is np.isrealobj(x)
    same(pa.real_if_close(z, tol=0.5), np.real_if_close(z, tol=0.5))
    same(pa.divmod([7, -7], 3)[1], np.divmod([7, -7], 3)[1])


@pytest.mark.slow
def test_names_of_numpy():
    x = np.array([0.25, 0.5])
    for name in pa.api.numpy.aliases.__all__:
        args = {"amax": 1, "amin": 1, "invert": 0, "bitwise_not": 0}.get(name)
        ours, theirs = getattr(pa, name), getattr(np, name)
        if args == 0:
            same(ours([1, 2]), theirs([1, 2]))
        elif name in ("left_shift", "right_shift"):
            same(ours([9, 2], [1, 2]), theirs([9, 2], [1, 2]))
        elif name in ("arctan2", "mod", "power", "true_divide"):
            same(ours(x, x), theirs(x, x))
        else:
            y = x + 1 if name == "arccosh" else x
            same(ours(pa.asarray(y)), theirs(y))


def test_numpy_dispatches(device):
    a = pa.asarray([1.0, np.nan, 3.0], device=device)
    assert np.nan_to_num(a).tolist() == [1.0, 0.0, 3.0]
    assert np.pad(a, 1).shape == (5,)
    assert np.heaviside(a, 1.0).device == a.device
    assert np.around(a[:1], 1).tolist() == [1.0]
    assert np.allclose(a[:1], 1.0) is True
    assert np.absolute(a)[0].item() == 1.0
    assert np.arcsin(a[:1]).tolist() == [np.pi / 2]
    assert [p.tolist() for p in np.array_split(a[::2], 2)] == [[1.0], [3.0]]
