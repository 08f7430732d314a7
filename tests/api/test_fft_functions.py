"""The extension fft against NumPy's, in double precision; types, layouts, sizes, errors, devices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa

FEW = examples(40)
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
REAL_ONLY = ("rfft", "ihfft", "rfftn", "rfft2")
REAL_RESULT = ("irfft", "hfft", "irfftn", "irfft2")


def drawn(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def compare(name, x, *arguments, device="cpu", **options):
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    expected = getattr(np.fft, name)(wide, *arguments, **options)
    single = x.dtype in (np.float32, np.complex64)
    for whole, step in ((x, 1), (np.repeat(x, 2, axis=0), 2), (x[::-1].copy(), -1)):
        a = pa.asarray(whole, device=device)[::step]
        found = getattr(pa.fft, name)(a, *arguments, **options)
        kind = ("float" if name in REAL_RESULT else "complex", 1 if name in REAL_RESULT else 2)
        assert found.dtype == f"{kind[0]}{(32 if single else 64) * kind[1]}"
        assert found.shape == expected.shape
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(pa.asnumpy(found), expected, atol=scale * (1e-5 if single else 1e-12))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", ONE + MANY)
def test_every_function(name, dtype, device):
    if name in REAL_ONLY and np.dtype(dtype).kind == "c":
        with pytest.raises(TypeError, match="takes real numbers, got complex"):
            getattr(pa.fft, name)(pa.ones((2, 2), dtype=dtype, device=device))
        return
    for norm in ("backward", "ortho", "forward"):
        compare(name, drawn((3, 4, 6), dtype), norm=norm, device=device)
    compare(name, drawn((2, 1, 3, 2, 5), dtype), device=device)


@FEW
@given(data=st.data())
def test_sizes_of_one_axis(device, data):
    x = drawn([data.draw(st.integers(2, 5)) for _ in range(data.draw(st.integers(1, 3)))], np.float32)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    count = data.draw(st.none() | st.integers(1, 9))
    compare(data.draw(st.sampled_from(ONE)), x, n=count, axis=axis, device=device)


@FEW
@given(data=st.data())
def test_sizes_of_several_axes(device, data):
    x = drawn([data.draw(st.integers(2, 5)) for _ in range(data.draw(st.integers(2, 4)))], np.float64)
    count = data.draw(st.integers(1, x.ndim))
    axes = data.draw(st.permutations(range(x.ndim)))[:count]
    sizes = data.draw(st.none() | st.tuples(*[st.integers(1, 7)] * count))
    compare(data.draw(st.sampled_from(MANY[:4])), x, s=sizes, axes=axes, device=device)


def test_the_last_axes_are_those_that_have_sizes(device):
    a = pa.ones((2, 3, 4), device=device)
    assert pa.fft.fftn(a, s=(5, 6)).shape == (2, 5, 6)
    assert pa.fft.fftn(pa.asarray(1.5, device=device)).item() == 1.5


def test_lower_types_are_lifted(device):
    for kind, expected in (
        ("int8", "complex128"),
        ("bool", "complex128"),
        ("float16", "complex64"),
        ("bfloat16", "complex64"),
    ):
        assert pa.fft.fft(pa.ones(4, dtype=kind, device=device)).dtype == expected
    assert pa.fft.irfft(pa.ones(4, dtype="float32", device=device)).dtype == pa.float32


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
def test_frequencies(n):
    for ours, theirs in ((pa.fft.fftfreq, np.fft.fftfreq), (pa.fft.rfftfreq, np.fft.rfftfreq)):
        np.testing.assert_array_equal(pa.asnumpy(ours(n)), theirs(n))
        np.testing.assert_array_equal(pa.asnumpy(ours(n, 0.1)), theirs(n, 0.1))
        found = ours(n, d=2.0, dtype=pa.float32)
        assert found.dtype == pa.float32
        np.testing.assert_array_equal(pa.asnumpy(found), theirs(n, 2.0).astype(np.float32))


def test_shifts():
    x = np.arange(30).reshape(5, 6)
    for axes in (None, 0, -1, (0, 1), (1,), ()):
        for name in ("fftshift", "ifftshift"):
            np.testing.assert_array_equal(
                pa.asnumpy(getattr(pa.fft, name)(pa.asarray(x), axes=axes)),
                getattr(np.fft, name)(x, axes=axes),
            )
    assert pa.fft.fftshift(pa.ones((0, 2))).shape == (0, 2)


def test_what_is_refused(device):
    def ones(shape):
        return pa.ones(shape, device=device)

    for call, error, said in (
        (lambda: pa.fft.fft(ones(3), norm="both"), ValueError, "norm is 'backward'"),
        (lambda: pa.fft.fft(ones(3), axis=1), IndexError, "axis|range"),
        (lambda: pa.fft.fft(ones(3), n=0), ValueError, "points"),
        (lambda: pa.fft.fft(ones(0)), ValueError, "points"),
        (lambda: pa.fft.fftn(ones(3), s=(1, 2)), ValueError, "2 sizes"),
        (lambda: pa.fft.fftn(ones((3, 3)), axes=(0, 2)), IndexError, "axis 2"),
        (lambda: pa.fft.fftfreq(0), ValueError, "1 or more"),
        (lambda: pa.fft.rfftfreq(3, dtype="int8"), TypeError, "floating"),
    ):
        with pytest.raises(error, match=said):
            call()


def test_nothing_and_what_is_filled_up(device):
    for shape, name, options in (
        ((0, 4), "fft", {}), ((0, 4), "rfft", {}), ((0, 4), "irfft", {}),
        ((2, 0, 3), "fftn", {"axes": (0, 2)}),
        ((0, 3), "fft", {"n": 4, "axis": 0}), ((2, 0, 3), "irfftn", {"axes": (0, 2)}),
    ):  # fmt: skip
        found = getattr(pa.fft, name)(pa.ones(shape, device=device), **options)
        expected = getattr(np.fft, name)(np.ones(shape), **options)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(found.get(), expected)


def test_many_kinds_of_plans_and_again(device):
    """More sizes than plans are kept of, the first ones twice."""
    for n in (*range(1, 80), *range(1, 5)):
        x = drawn((2, n), np.complex128, n)
        compare("fft", x, device=device)


def test_devices(device):
    x = drawn((4, 6), np.float32)
    found = pa.fft.fft2(pa.asarray(x, device=device))
    assert found.device == device
    np.testing.assert_allclose(found.get(), np.fft.fft2(x), atol=1e-4)
    assert pa.fft.fftfreq(5, device=device).device == device
    assert pa.fft.fftshift(pa.asarray(x, device=device)).device == device
    compare("fft", x)
    np.testing.assert_allclose(np.fft.fft(pa.asarray(x), 8, 0).get(), np.fft.fft(x, 8, 0), atol=1e-5)
