"""Interpolation, gradients, integrals and convolutions against NumPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, known_to_numpy, numpy_views

import pyarray as pa

FEW = examples(40)
numbers = st.one_of(st.integers(-8, 8).map(float), st.sampled_from([np.nan, np.inf, -np.inf, 0.5, 2.25]))


def same(ours, theirs, rtol=1e-6):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=rtol, atol=1e-9)


@FEW
@given(st.lists(numbers, max_size=20), st.sets(st.integers(-5, 5), min_size=1), st.data())
def test_interp(x, xp, data):
    xp = np.array(sorted(xp), float)
    fp = np.array(data.draw(st.lists(numbers, min_size=xp.size, max_size=xp.size)))
    ends = {"left": data.draw(st.sampled_from([None, -7.0])), "right": data.draw(st.sampled_from([None, 7]))}
    with np.errstate(all="ignore"):
        same(pa.interp(np.array(x), xp, fp, **ends), np.interp(np.array(x, float), xp, fp, **ends))


def test_interp_of_a_period_of_complex_numbers_and_of_views(device):
    x = np.array([[-180, -170, -185], [185, -10, -5]])
    xp, fp = np.array([190, -190, 350, -350]), np.array([5, 10, 3, 4])
    same(pa.interp(pa.asarray(x, device=device), xp, fp, period=360), np.interp(x, xp, fp, period=360))
    z = np.array([1 + 2j, 3 - 1j, 0])
    same(pa.interp([0.5, 1.5, 9], [0, 1, 2], z, left=1j), np.interp([0.5, 1.5, 9], [0, 1, 2], z, left=1j))
    at = np.linspace(0, 3, 20)
    line = pa.asarray(np.arange(10.0), device=device)[::3]
    same(
        pa.interp(pa.asarray(at, device=device)[::-2], line, line),
        np.interp(at[::-2], np.arange(10.0)[::3], np.arange(10.0)[::3]),
    )
    assert pa.interp(2.5, [1, 2, 3], [3, 2, 0]).shape == ()
    with pytest.raises(ValueError, match="one length"):
        pa.interp(1, [1, 2], [1])
    with pytest.raises(ValueError, match="period"):
        pa.interp(1, [1], [1], period=0)


@FEW
@given(numpy_views(), st.data())
def test_gradient(x, data):
    if x.ndim == 0 or min(x.shape) < 3 or x.dtype.kind == "b" or x.dtype.itemsize == 2 or x is not known_to_numpy(x):
        return
    order = data.draw(st.sampled_from([1, 2]))
    steps = data.draw(st.sampled_from(["none", "one", "each", "coordinates"]))
    given = {
        "none": (), "one": (0.5,), "each": tuple(range(1, x.ndim + 1)),
        "coordinates": tuple(np.arange(n) ** 2 * 1.0 for n in x.shape),
    }[steps]  # fmt: skip
    wide = x.astype(float) if x.dtype.kind in "biu" else x
    ours = pa.gradient(pa.asarray(x), *given, edge_order=order)
    theirs = np.gradient(wide, *given, edge_order=order)
    ours, theirs = (v if isinstance(v, tuple) else (v,) for v in (ours, theirs))
    for a, b in zip(ours, theirs, strict=True):
        same(a, b, 1e-4)


def test_gradient_of_one_axis(device):
    x = np.random.default_rng(0).random((4, 5))
    a = pa.asarray(x, device=device)
    same(pa.gradient(a, axis=1), np.gradient(x, axis=1))
    same(pa.gradient(a, 2.0, axis=-2), np.gradient(x, 2.0, axis=-2))
    assert len(pa.gradient(a, axis=(0, 1))) == 2
    with pytest.raises(ValueError, match="samples"):
        pa.gradient(pa.ones(1))
    with pytest.raises(ValueError, match="edge_order"):
        pa.gradient(a, edge_order=3)
    with pytest.raises(TypeError, match="2 axes"):
        pa.gradient(a, 1, 2, 3)
    with pytest.raises(ValueError, match="coordinates"):
        pa.gradient(a, pa.ones(3), axis=0)


@examples(20)
@given(numpy_views(dtype=pa.float64), st.data())
def test_trapezoid(y, data):
    if y.ndim == 0:
        return
    axis = data.draw(st.integers(-y.ndim, y.ndim - 1))
    a = pa.asarray(y)
    same(pa.trapezoid(a, axis=axis, dx=0.5), np.trapezoid(y, axis=axis, dx=0.5))
    x = np.arange(y.shape[axis]) ** 2.0
    same(pa.trapezoid(a, x, axis=axis), np.trapezoid(y, x, axis=axis))
    same(pa.trapezoid(a, y, axis=axis), np.trapezoid(y, y, axis=axis))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(1, 1), (5, 3), (3, 5), (6, 4), (4, 6), (7, 7), (300, 20)], ids=str)
def test_convolve_and_correlate(mode, sizes):
    rng = np.random.default_rng(0)
    for dtype in ("int32", "float32", "float64", "complex128", "bool"):
        a, v = (
            rng.integers(0, 9, n).astype(dtype)
            + rng.integers(0, 9, n).astype(dtype) * (1j if dtype == "complex128" else False)
            for n in sizes
        )
        same(pa.convolve(a, v, mode), np.convolve(a, v, mode))
        same(pa.correlate(a, v, mode), np.correlate(a, v, mode))


def test_convolve_layouts_and_errors(device):
    a, v = np.arange(10.0), np.array([1.0, -2.0, 0.5, 3.0])
    b, w = (pa.asarray(x, device=device) for x in (a, v))
    same(pa.convolve(b[::-2], w[::2]), np.convolve(a[::-2], v[::2]))
    same(pa.correlate(b[1:], w, "full"), np.correlate(a[1:], v, "full"))
    with pytest.raises(ValueError, match="full, same, valid"):
        pa.convolve(a, v, "some")
    with pytest.raises(ValueError, match="1-D"):
        pa.convolve(pa.ones((2, 2)), w)
    with pytest.raises(ValueError, match="empty"):
        pa.convolve([], w)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex64"])
def test_long_convolutions(dtype, device):
    rng = np.random.default_rng(3)
    long, short = (rng.integers(-4, 5, n).astype(dtype) for n in (1700, 77))
    if dtype == "complex64":
        long, short = long + 1j * long[::-1], short - 2j * short[::-1]
    a, v = (pa.asarray(x, device=device) for x in (long, short))
    for mode in ("full", "same", "valid"):
        for ours, theirs in (((a, v), (long, short)), ((v[::-1], a), (short[::-1], long))):
            for name in ("convolve", "correlate"):
                found, expected = getattr(pa, name)(*ours, mode), getattr(np, name)(*theirs, mode)
                np.testing.assert_array_equal(pa.asnumpy(found), expected)
                assert found.dtype == expected.dtype
