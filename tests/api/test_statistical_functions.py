"""Reductions against NumPy's: axes, layouts, types, `out=`, NaN, rounding, sizes around every split."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa
from pyarray.dtypes import ALL

FEW = examples(30)
SIZES = [1, 2, 3, 15, 16, 17, 2047, 2048, 2049, 32767, 32768, 32769, 65537, 999983]


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    if theirs.dtype.kind in "fc":
        np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=1e-6 if theirs.itemsize < 8 else 1e-13)
    else:
        np.testing.assert_array_equal(pa.asnumpy(ours), theirs)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype(dtype):
    x = np.array([3, 1, 4, 1, 5]).astype(dtype.numpy)
    a, wide = pa.asarray(x), {"b": np.int64, "i": np.int64, "u": np.uint64}.get(dtype.kind, dtype.numpy)
    for name in ("sum", "prod"):
        total = getattr(pa, name)(a)
        assert total.dtype == wide
        exact = getattr(np, name)(x.astype(complex))
        assert complex(total) == complex(exact.real.astype(dtype.numpy) if dtype.is_narrow else exact)
    # of two whose kernels differ in a comparison, neighbours among the types take one each
    odd = ALL.index(dtype) % 2
    if dtype.kind == "c":
        for name in ("min", "max", "argmin", "argmax"):
            with pytest.raises(TypeError, match="complex"):
                getattr(pa, name)(a)
    else:
        name, place = (("min", "argmax"), ("max", "argmin"))[odd]
        assert getattr(pa, name)(a).dtype is dtype.numpy
        assert getattr(pa, name)(a).item() == getattr(x.astype(np.float64), name)().astype(dtype.numpy)
        assert getattr(pa, place)(a).item() == getattr(x.astype(float), place)()
    mean = pa.mean(a)
    assert mean.dtype == (dtype.numpy if dtype.kind in "fc" else np.float64)
    assert abs(complex(mean) - x.astype(complex).mean()) < (0.3 if dtype.is_narrow else 0.02)
    for function in (pa.all, pa.any)[odd : odd + 1] if dtype.kind != "c" else (pa.all, pa.any):
        assert function(a).item() is True
        assert function(pa.zeros(3, dtype=dtype)).item() is False


AXES = [None, (), *(c for n in (1, 2, 3) for c in itertools.permutations(range(3), n)), -1, (-1, 0)]


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_axes(axis):
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5) % 7 - 3
    for keepdims, ours, theirs in ((False, pa.sum, np.sum), (True, pa.max, np.max)):
        for y in (x, x.T):
            same(ours(pa.asarray(y), axis=axis, keepdims=keepdims), theirs(y, axis=axis, keepdims=keepdims))
        same(pa.mean(pa.asarray(x), axis=axis, keepdims=keepdims), np.mean(x, axis=axis, keepdims=keepdims))
        for name in ("min", "max"):
            ours = getattr(pa, name)(pa.asarray(x.T > 0), axis=axis, keepdims=keepdims)
            same(ours, getattr(np, name)(x.T > 0, axis=axis, keepdims=keepdims))
    with pytest.raises(ValueError, match=r"max\(\) over no elements"):
        pa.max(pa.asarray(x[:0] > 0))


@examples(15)
@given(numpy_views(dtype=pa.int32), st.data())
def test_layouts(x, data):
    axis = (
        data.draw(st.lists(st.integers(-x.ndim, x.ndim - 1), unique_by=lambda k: k % x.ndim).map(tuple))
        if x.ndim
        else None
    )
    keepdims, a = data.draw(st.booleans()), pa.asarray(x)
    for name in ("sum", "all"):
        same(
            getattr(pa, name)(a, axis=axis, keepdims=keepdims),
            getattr(np, name)(x, axis=axis, keepdims=keepdims),
        )
    try:
        least = np.min(x, axis=axis, keepdims=keepdims)
    except ValueError:
        with pytest.raises(ValueError, match="no elements"):
            pa.min(a, axis=axis, keepdims=keepdims)
    else:
        same(pa.min(a, axis=axis, keepdims=keepdims), least)
    along = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
    try:
        place = np.argmax(x, axis=along, keepdims=keepdims)
    except ValueError:
        with pytest.raises(ValueError, match="no elements"):
            pa.argmax(a, axis=along, keepdims=keepdims)
    else:
        same(pa.argmax(a, axis=along, keepdims=keepdims), place)


@pytest.mark.parametrize("n", SIZES)
def test_sizes(n):
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    a = pa.asarray(x)
    exact = math.fsum(x.tolist())
    ours, theirs = abs(float(pa.sum(a)) - exact), abs(float(np.sum(x)) - exact)
    assert ours <= max(theirs, np.spacing(np.float32(abs(exact))))
    for k in (0, n // 2, n - 1):
        y = x.copy()
        y[k] = 100
        assert pa.max(pa.asarray(y)).item() == 100
        assert pa.argmax(pa.asarray(y)).item() == k
        y[k] = np.nan
        assert math.isnan(pa.min(pa.asarray(y)).item())
        assert pa.argmin(pa.asarray(y)).item() == k
    strided = pa.asarray(np.repeat(x, 2))[::-2]
    assert abs(float(pa.sum(strided)) - exact) <= 1e-6 * n**0.5 + abs(exact) * 1e-6
    flags = np.ones(n, bool)
    flags[-1] = False
    assert not pa.all(pa.asarray(flags))
    assert bool(pa.any(pa.asarray(~flags)))
    whole = np.arange(n, dtype=np.int32)
    assert pa.sum(pa.asarray(whole)).item() == n * (n - 1) // 2


def test_float64_rounding():
    x = np.random.default_rng(0).standard_normal(1000003)
    exact = math.fsum(x.tolist())
    bound = np.finfo(np.float64).eps * math.fsum(abs(x).tolist())  # of a pairwise sum: log2(n) times as much
    assert abs(float(pa.sum(pa.asarray(x))) - exact) <= bound
    y = np.full(100000, 0.1, np.float32)
    assert float(pa.mean(pa.asarray(y))) == np.float32(0.1)
    h = pa.ones(100000, dtype=pa.bfloat16)
    assert float(pa.mean(h)) == 1.0
    assert float(pa.sum(h)) == 99840.0  # the nearest bfloat16


@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 2049), (2049, 3), (5, 4097), (1000, 70), (40000, 3), (7, 1, 2050), (300, 20, 30)]
)
def test_splits(shape):
    x = (np.arange(math.prod(shape)) % 1009).astype(np.int64).reshape(shape)
    for axis in range(len(shape)):
        same(pa.sum(pa.asarray(x), axis=axis), x.sum(axis))
        same(pa.max(pa.asarray(x), axis=axis), x.max(axis))
        same(pa.argmin(pa.asarray(x), axis=axis), x.argmin(axis))
        f = x.astype(np.float32)
        same(pa.sum(pa.asarray(f), axis=axis), x.sum(axis).astype(np.float32))
        same(pa.mean(pa.asarray(f), axis=axis), (x.sum(axis) / shape[axis]).astype(np.float32))


def test_nothing():
    for shape, axis in [
        ((0,), None),
        ((0, 3), 0),
        ((3, 0), 1),
        ((0, 3), 1),
        ((2, 0, 3), (0, 1)),
        ((0, 2), None),
    ]:
        x = np.ones(shape, np.float32)
        a = pa.asarray(x)
        same(pa.sum(a, axis=axis), x.sum(axis))
        same(pa.prod(a, axis=axis), x.prod(axis))
        same(pa.all(a, axis=axis), x.all(axis))
        same(pa.any(a, axis=axis), x.any(axis))
    assert math.isnan(pa.mean(pa.ones(0)).item())
    assert pa.max(pa.ones((0, 3)), axis=1).shape == (0,)
    for name in ("min", "max", "argmin", "argmax"):
        with pytest.raises(ValueError, match="no elements"):
            getattr(pa, name)(pa.ones((0, 3)))


def test_types_asked_for():
    x = np.array([200, 100], np.uint8)
    assert pa.sum(pa.asarray(x), dtype=pa.uint8).item() == 44
    assert pa.sum(pa.asarray(x), dtype="float32").dtype == pa.float32
    assert pa.prod(pa.asarray(x), dtype=pa.float64).item() == 20000.0
    big = pa.asarray(np.full(3, 2**63, np.uint64))
    assert pa.sum(big).item() == 2**63
    assert pa.sum(pa.ones(5, dtype=pa.bool)).item() == 5


def test_out():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    a = pa.asarray(x)
    for host in (np.zeros(4, np.float32), np.zeros(8, np.float64)[::2], np.zeros(4, np.complex64)[::-1]):
        out = pa.asarray(host)
        assert pa.sum(a, axis=0, out=out) is out
        np.testing.assert_array_equal(host, x.sum(0))
        assert pa.mean(a, axis=0, out=out) is out
        np.testing.assert_array_equal(host, x.mean(0))
    kept = pa.zeros((1, 4), dtype=pa.float32)
    assert pa.max(a, axis=0, keepdims=True, out=kept) is kept
    assert kept.tolist() == [[8, 9, 10, 11]]
    b = pa.array(x)
    assert pa.sum(b, axis=0, out=b[0]).tolist() == x.sum(0).tolist()
    b = pa.array(np.arange(16.0).reshape(4, 4))
    assert pa.sum(b, axis=1, out=b[:, 0]).tolist() == np.arange(16.0).reshape(4, 4).sum(1).tolist()
    b = pa.array(np.arange(16.0).reshape(4, 4))
    assert pa.max(b, axis=0, out=b[:, 1]).tolist() == [12, 13, 14, 15]
    with pytest.raises(ValueError, match="shape"):
        pa.sum(a, out=out)
    with pytest.raises(TypeError, match="float32"):
        pa.max(a, axis=0, out=pa.zeros(4, dtype=pa.int32))
    out.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        pa.sum(a, axis=0, out=out)


def test_nan():
    x = np.array([[1.0, np.nan], [np.inf, -np.inf]], np.float32)
    a = pa.asarray(x)
    for axis in (None, 0, 1):
        with np.errstate(invalid="ignore"):
            same(pa.sum(a, axis=axis), x.sum(axis))
        same(pa.max(a, axis=axis), x.max(axis))
        same(pa.min(a, axis=axis), x.min(axis))
        same(pa.argmax(a, axis=axis), x.argmax(axis))
        same(pa.argmin(a, axis=axis), x.argmin(axis))
    assert pa.any(pa.asarray([np.nan])).item()


def test_axis_errors():
    a = pa.ones((2, 3))
    for name in ("sum", "max", "mean", "any", "argmax"):
        for axis in (2, -3):
            with pytest.raises(np.exceptions.AxisError):
                getattr(pa, name)(a, axis=axis)
    with pytest.raises(ValueError, match="twice"):
        pa.sum(a, axis=(0, 0))
    with pytest.raises(TypeError):
        pa.sum(a, axis=1.5)
    with pytest.raises(TypeError):
        pa.sum("x")
    assert pa.sum(5).item() == 5
    assert pa.max(pa.asarray(3.0), axis=()).item() == 3.0


def test_methods():
    x = np.arange(6.0).reshape(2, 3)
    a = pa.asarray(x)
    for name in ("sum", "max", "mean", "argmin", "any"):
        same(getattr(a, name)(), getattr(x, name)())
        same(getattr(a, name)(0), getattr(x, name)(0))


@pytest.mark.slow
def test_debug_gives_the_same():
    x = np.arange(6000, dtype=np.float32).reshape(60, 100) % 31
    a = pa.asarray(x)
    with pa.debug():
        for _ in range(2):
            for axis in (None, 0, 1):
                same(pa.sum(a, axis=axis), x.sum(axis))
                same(pa.max(a[::2], axis=axis), x[::2].max(axis))
                same(pa.argmax(a, axis=axis), x.argmax(axis))


def test_broken_launches_are_caught():
    from pyarray.kernels.reduce import arg_extreme

    kernel = arg_extreme._find_kernel(1)
    x, extreme, out = pa.ones((4, 3)), pa.zeros(2), pa.zeros((4, 1), dtype=pa.int64)
    with pa.debug():
        with pytest.raises(pa.BoundsError, match="got index 2"):
            kernel(out, x, extreme)
        assert pa.sum(x).item() == 12


@pytest.mark.parametrize("shape", [(2, 65536), (4, 32768), (7, 40000), (17, 70000), (300, 2100)], ids=str)
def test_few_long_rows(shape):
    x = np.random.default_rng(1).integers(0, 9, shape)
    same(pa.sum(pa.asarray(x), axis=0), x.sum(axis=0))
    same(pa.max(pa.asarray(x), axis=0), x.max(axis=0))


@pytest.mark.parametrize("place", [0, 255, 256, 35_000, 69_999])
def test_places_in_long_lines(place):
    x = np.zeros((2, 70_000), np.float32)
    x[:, [place, -1]] = 3
    for name, value in (("argmax", x), ("argmin", -x)):
        ours = getattr(pa, name)
        same(ours(pa.asarray(value), axis=1), getattr(np, name)(value, axis=1))
        same(ours(pa.asarray(value[0])), getattr(np, name)(value[0]))
        value[0, place] = np.nan
        value[0, -1] = np.nan
        same(ours(pa.asarray(value), axis=1), getattr(np, name)(value, axis=1))


def test_any_and_all_stop_early():
    for place in (0, 3000, 69_999, None):
        x = np.zeros(70_000, bool)
        if place is not None:
            x[place] = True
        for _ in range(3):
            same(pa.any(pa.asarray(x)), x.any())
            same(pa.all(pa.asarray(~x)), (~x).all())
            same(pa.max(pa.asarray(x)), x.max())
            same(pa.nanmin(pa.asarray(~x)), (~x).min())
            same(~pa.asarray(x), ~x)
            same(pa.count_nonzero(pa.asarray(x)), np.int64(x.sum()))
