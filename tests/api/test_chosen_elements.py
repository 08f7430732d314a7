"""`where=` and `initial=` of reductions, `mode=` of take, and NumPy's dtypes of quantiles and powers."""

import itertools
import warnings

import numpy as np
import pytest
from strategies import TIMES, device_subset

import pyarray as pa

RNG = np.random.default_rng(3)
MASKS = (RNG.random((3, 4)) < 0.5, np.array([True, False, True, True]), np.zeros((3, 1), bool), True)


def agrees(found: pa.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.get(), expected, rtol=2e-3 if expected.dtype == np.float16 else 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("turn", "dtype"), [*enumerate(["bool", "uint16", "float16", "complex64"])])
def test_reductions_of_chosen_elements(turn, dtype, device):
    x = (RNG.random((4, 3)) * 5 - 1).astype(dtype).T  # strided
    a = pa.asarray(x, device=device)
    names = ["sum", "prod", "any", "all", "mean", "std", "var", *(["min", "max"] if dtype[0] != "c" else [])]
    # Each function meets each mask with one dtype of the four, and each axis with half of the masks.
    cases = itertools.product(enumerate(names), enumerate(MASKS))
    some = [case for case in cases if TIMES > 1 or (case[0][0] + case[1][0] + turn) % 4 == 0]
    for (i, name), (j, mask) in device_subset(some, turn, device):
        axis = (None, 1)[(i + j // 2) % 2]
        options = {"axis": axis, "keepdims": axis == 1, "where": mask}
        if name in ("sum", "prod", "min", "max"):
            options["initial"] = 1 if dtype == "bool" else 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = np.asarray(getattr(np, name)(x, **options))
        options["where"] = mask if mask is True else pa.asarray(mask, device=device)
        agrees(getattr(pa, name)(a, **options), expected)


def test_initial_over_no_elements_and_out(device):
    x = np.zeros((0, 3))
    a = pa.asarray(x, device=device)
    assert pa.max(a, axis=0, initial=4).tolist() == np.max(x, axis=0, initial=4).tolist()
    assert pa.min(a, axis=1, initial=4).shape == (0,)
    out = pa.zeros(3, device=device)
    assert pa.max(a, axis=0, initial=-1, out=out) is out
    assert pa.sum(pa.ones((2, 3), device=device), axis=0, initial=np.float64(0.5), out=out) is out
    assert out.tolist() == [2.5] * 3
    assert np.isnan(pa.max(pa.ones(2, device=device), initial=np.nan).item())
    ours = pa.ones((2, 2), device=device)
    assert np.sum(ours, where=np.array([True, False]), initial=3).item() == 5
    assert np.add.reduce(ours, axis=None, initial=3).item() == 7
    assert np.maximum.reduce(ours, where=np.array([False, True]), initial=0).tolist() == [0, 1]


def test_chosen_elements_inside_fuse():
    x = np.arange(6.0).reshape(2, 3)
    a = pa.asarray(x)
    fused = pa.fuse(lambda v, m: pa.sum(v * 2, axis=1, where=m) + pa.max(v, axis=1, initial=4))
    assert fused(a, a > 1).tolist() == (np.sum(x * 2, 1, where=x > 1) + np.max(x, 1, initial=4)).tolist()


def test_choices_that_are_none():
    x = pa.ones(3)
    for call, error, message in (
        (lambda: pa.sum(x, where=np.ones((2, 3), bool)), ValueError, r"where= of shape \(2, 3\) doesn't bro"),
        (lambda: pa.max(x, where=[True, False, True]), ValueError, "with where= there may be no element; pa"),
        (lambda: pa.sum(x, initial=1j), TypeError, "initial= is a number that goes into float64, got 1j"),
        (lambda: pa.sum(x, initial=[1]), TypeError, "initial= is a number that goes into float64, got list"),
        (lambda: pa.max(pa.ones(3, "int8"), initial=300), OverflowError, "initial=300 is out of range for i"),
        (lambda: pa.take(x, 9, mode="skip"), ValueError, "mode is raise, wrap or clip, got 'skip'"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_positions_out_of_range(device):
    x = np.arange(12).reshape(3, 4)
    a = pa.asarray(x, device=device)
    for dtype, mode, axis in itertools.product(("int8", "uint8", "int64"), ("wrap", "clip"), (None, 0, 1)):
        index = np.array([[0, 200, 7], [3, 2, 100]]).astype(dtype)
        given = pa.asarray(index, device=device)
        assert pa.take(a, given, axis=axis, mode=mode).tolist() == x.take(index, axis, mode=mode).tolist()
        assert a.take(given, axis, mode=mode).tolist() == x.take(index, axis, mode=mode).tolist()
    out = pa.zeros(2, "int64", device=device)
    assert np.take(a, [-1, 15], mode="wrap", out=out) is out
    assert out.tolist() == [11, 3]
    assert pa.take(
        pa.arange(300, device=device), pa.asarray([-1, 99], "int8", device=device), mode="wrap"
    ).tolist() == [
        299,
        99,
    ]


@pytest.mark.slow
def test_dtypes_of_quantiles():
    fractions = [0.3, np.float64(0.3), np.float32(0.3), [0.3], np.float32([0.3]), np.float64([0.3, 0.4])]
    if np.lib.NumpyVersion(np.__version__) < "2.4.2":  # before, NumPy took some of its own numbers for Python's
        fractions = fractions[:1]
    for dtype, q in itertools.product(("float16", "float32", "float64", "int8", "int64"), fractions):
        x = np.array([1, 2, 4, 8]).astype(dtype)
        a = pa.asarray(x)
        for name, method in itertools.product(("quantile", "percentile", "nanquantile"), ("linear", "lower")):
            theirs = getattr(np, name)(x, q, method=method)
            ours = getattr(pa, name)(a, q, method=method)
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), (name, dtype, q)
    assert pa.percentile(pa.ones(3, "float32"), [25, 50]).dtype == pa.float64
    assert pa.quantile(pa.ones(3, "float32"), [0, 1]).dtype == pa.float32
    assert pa.quantile(pa.ones(3, "bfloat16"), 0.5).dtype == pa.bfloat16


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64"])
def test_powers_of_vander(dtype):
    x = np.array([0, 1, 1]).astype(dtype) + (np.array([0, 1, 2]).astype(dtype) if dtype != "bool" else False)
    for options in ({}, {"N": 2}, {"N": 4, "increasing": True}):
        theirs, ours = np.vander(x, **options), pa.vander(pa.asarray(x), **options)
        assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist())


def test_steps_of_linspace():
    for args, options in (
        ((0, 1, 5), {}),
        ((2, 3), {"num": 4, "endpoint": False}),
        ((0, 1j, 3), {}),
        ((1, 2, 1), {}),
    ):
        (ours, step), (theirs, expected) = (p.linspace(*args, retstep=True, **options) for p in (pa, np))
        assert ours.tolist() == theirs.tolist()
        np.testing.assert_equal(step, expected)
    assert pa.linspace(1, 2, 0, retstep=True)[0].size == 0
