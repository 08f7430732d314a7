"""`reduce`, `accumulate`, `reduceat`, `outer` and `at` against NumPy's ufuncs, on every device."""

import itertools

import numpy as np
import pytest

import pyarray as pa

RNG = np.random.default_rng(1)
TYPES = {
    "add": ("int8", "float16", "bool"), "multiply": ("complex64",), "subtract": ("int64",),
    "divide": ("float64",),
    "maximum": ("float32", "uint8"), "fmax": ("float64",), "logaddexp": ("float64",),
    "bitwise_xor": ("uint8",),
    "logical_xor": ("float32",), "gcd": ("int64",), "equal": ("bool",), "power": ("int64",),
}  # fmt: skip


def agrees(found, expected):
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.get(), expected, rtol=1e-5 if expected.dtype.itemsize > 2 else 2e-3)


@pytest.mark.parametrize("name", TYPES)
def test_methods(name, device):
    theirs, ours = getattr(np, name), getattr(pa, name)
    for dtype in TYPES[name]:
        x = RNG.integers(0 if dtype == "bool" else 1, 2 if dtype == "bool" else 4, (3, 5)).astype(dtype)[::-1]
        a = pa.asarray(x, device=device)
        for axis in (0, 1) if dtype == TYPES[name][0] else (1,):
            agrees(ours.reduce(a, axis=axis), theirs.reduce(x, axis=axis))
            agrees(ours.accumulate(a, axis=axis), theirs.accumulate(x, axis=axis))
            agrees(ours.reduceat(a, [0, 2, 1], axis=axis), theirs.reduceat(x, [0, 2, 1], axis=axis))
        agrees(ours.outer(a[0], a), theirs.outer(x[0], x))
        index = np.array([0, 2, 2, 1, 0, 0])
        values = RNG.integers(1, 3, (6, 5)).astype(dtype)
        expected, found = x.copy(), pa.asarray(x.copy(), copy=True, device=device)
        theirs.at(expected, index, values)
        assert ours.at(found, pa.asarray(index, device=device), pa.asarray(values, device=device)) is None
        agrees(found, expected)
        expected, found = x.copy().T, pa.asarray(x.copy(), copy=True, device=device).T  # strided
        theirs.at(expected, (slice(None), [2, 0, 2]), x[0, 0])
        ours.at(found, (slice(None), [2, 0, 2]), x[0, 0])
        agrees(found, expected)


def test_numpys_own_ufuncs_and_options(device):
    x = RNG.random((4, 6)).astype("float32")
    a = pa.asarray(x, device=device)
    for call in (
        lambda v: np.add.reduceat(v, [0, 3], axis=1),
        lambda v: np.maximum.accumulate(v, axis=1),
        lambda v: np.minimum.reduce(v, axis=None),
        lambda v: np.logaddexp.reduce(v),
        lambda v: np.hypot.reduce(v, axis=(0, 1)),
        lambda v: np.add.accumulate(v, dtype="float64"),
    ):
        agrees(call(a), call(x))
    a = pa.asarray(x, copy=True, device=device)
    np.add.at(a, (pa.asarray([1, 1, 0], device=device), [0, 0, 5]), 2)
    np.negative.at(a, [3, 3, 2])
    np.add.at(x, ([1, 1, 0], [0, 0, 5]), 2)
    np.negative.at(x, [3, 3, 2])
    agrees(a, x)
    mask = x > 0.5
    pa.multiply.at(a, pa.asarray(mask, device=device), 3)
    np.multiply.at(x, mask, 3)
    agrees(a, x)
    out = pa.zeros(6, "float32", device=device)
    assert pa.logaddexp.reduce(a, out=out) is out
    agrees(out, np.logaddexp.reduce(x))
    for count in (1, 2, 1000):  # lines that are longer than a block
        long = RNG.integers(0, 1 << 30, count)
        agrees(pa.maximum.accumulate(pa.asarray(long, device=device)), np.maximum.accumulate(long))
        where = RNG.integers(0, 7, count)
        ours, theirs = pa.zeros(7, "int64", device=device), np.zeros(7, "int64")
        pa.add.at(ours, pa.asarray(where, device=device), pa.asarray(long, device=device))
        np.add.at(theirs, where, long)
        agrees(ours, theirs)


def test_reduce_of_one_element(device):
    for name, value in (("add", 3), ("hypot", -2.5), ("gcd", -6), ("lcm", -6), ("bitwise_or", 5)):
        a = pa.asarray(value, device=device)
        agrees(getattr(pa, name).reduce(a), getattr(np, name).reduce(np.asarray(value)))
        agrees(getattr(pa, name).reduce(a, axis=-1), getattr(np, name).reduce(np.asarray(value), axis=-1))
    with pytest.raises(np.exceptions.AxisError):
        pa.add.reduce(a, axis=1)


def test_over_no_elements(device):
    for name, dtype in itertools.product(("add", "bitwise_and", "hypot", "logaddexp"), ("uint8", "float64")):
        x = np.zeros((0, 3), dtype)
        if name != "bitwise_and" or dtype == "uint8":
            found = getattr(pa, name).reduce(pa.asarray(x, device=device)).get()
            np.testing.assert_array_equal(found, getattr(np, name).reduce(x))
    empty = pa.zeros((0, 3), device=device)
    assert pa.subtract.accumulate(empty).shape == (0, 3)
    pa.add.at(empty, pa.zeros(0, "int64", device=device), 1)
    with pytest.raises(ValueError, match=r"subtract.reduce\(\) over no elements has no answer"):
        pa.subtract.reduce(empty)


def test_calls_that_are_wrong():
    a = pa.ones((2, 3))
    frozen = pa.ones(2)
    frozen.setflags(write=False)
    for call, error, message in (
        (
            lambda: pa.subtract.reduce(a, axis=None),
            ValueError,
            "goes along one axis, since the order of its el",
        ),
        (lambda: pa.lcm.reduce(a.astype("int32"), axis=(0, 1)), ValueError, r"lcm.reduce\(\) goes along one"),
        (lambda: pa.add.reduceat(a, [0, 9]), IndexError, r"indices are from 0 to 1, got \[0, 9\]"),
        (lambda: pa.add.reduceat(a, [0.5]), TypeError, "takes a 1-D array of integers, got float64"),
        (lambda: pa.add.at(np.ones(3), [0], 1), TypeError, "changes a pyarray array, got ndarray"),
        (lambda: pa.add.at(a, [0]), TypeError, r"add.at\(\) takes a second operand"),
        (lambda: pa.negative.at(a, [0], 1), TypeError, r"negative.at\(\) takes no second operand"),
        (lambda: pa.add.at(frozen, [0], 1), ValueError, "read-only"),
        (lambda: pa.add.at(a, [7], 1), IndexError, "7"),
        (lambda: pa.divide.at(pa.ones(3, "int64"), [0], 2), TypeError, "float64 can't be stored in"),
        (lambda: pa.less.reduce(a), TypeError, "less gives bools, which can't be combined with float64"),
        (lambda: np.add.reduce(a, casting="safe"), TypeError, "casting"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_an_array_of_numpys_is_not_changed_on_another_device(device):
    x, index = np.zeros(3), pa.asarray([1, 1], device=device)
    if device == "cpu":
        np.add.at(x, index, 2)
        assert x.tolist() == [0, 4, 0]
    else:
        with pytest.raises(TypeError, match="the array that it changes is NumPy's"):
            np.add.at(x, index, 2)


def test_operands_of_numpy_go_to_the_arrays_device(device):
    x, y = np.arange(1.0, 4.0), np.arange(1.0, 3.0).astype(">f8")
    a = pa.asarray(x, device=device)
    for found, wanted in (
        (pa.copysign.outer(a, y), np.copysign.outer(x, y)),
        (pa.subtract.outer(y, a), np.subtract.outer(y, x)),
        (pa.add.outer(a, [1.0, 2.0]), np.add.outer(x, [1.0, 2.0])),
        (pa.cov(a, x[::-1]), np.cov(x, x[::-1])),
        (pa.average(a, weights=x), np.average(x, weights=x)),
        (pa.diff(a, prepend=y), np.diff(x, prepend=y)),
    ):
        assert found.device == a.device
        np.testing.assert_allclose(pa.asnumpy(found), wanted)
