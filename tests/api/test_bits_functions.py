"""Bits and parts of numbers against NumPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa
from pyarray import dtypes

FEW = examples(12)
INTEGERS = st.sampled_from(dtypes.of_kinds("iu"))
FLOATS = st.sampled_from([dtypes.float16, dtypes.float32, dtypes.float64])


def same(ours, theirs):
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(pa.asnumpy(ours), theirs)


@FEW
@given(st.data())
def test_bits(data):
    x = data.draw(numpy_views(data.draw(INTEGERS)))
    x = x - np.asarray(60).astype(x.dtype)
    same(pa.bitwise_count(pa.asarray(x)), np.bitwise_count(x))


@examples(6)
@given(numpy_views(dtypes.uint8), st.sampled_from(["big", "little"]), st.data())
def test_packed(x, bitorder, data):
    axes = st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1)) if x.ndim else st.none()
    axis = data.draw(axes)
    a = pa.asarray(x)
    if 0 not in x.shape or axis is not None:
        same(pa.packbits(a % 3, axis, bitorder), np.packbits(x % 3, axis, bitorder))
    same(pa.unpackbits(a, axis, None, bitorder), np.unpackbits(x, axis, None, bitorder))
    size = np.unpackbits(x, axis).shape[axis or 0]
    count = data.draw(st.integers(-size, size + 9 if x.size else 0))  # NumPy leaves those of nothing unset
    same(pa.unpackbits(a, axis, count, bitorder), np.unpackbits(x, axis, count, bitorder))


@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_packed_from_any_address(bitorder, device):
    x = np.arange(400) % 7 % 3 == 1
    a, most = pa.asarray(x, device=device), 1 << np.arange(64) % 31
    for start, stop in ((0, 400), (8, 72), (3, 83), (5, 400), (399, 400)):
        same(pa.packbits(a[start:stop], None, bitorder), np.packbits(x[start:stop], None, bitorder))
    same(pa.packbits(a.reshape(20, 20).T, 0, bitorder), np.packbits(x.reshape(20, 20).T, 0, bitorder))
    values = pa.asarray(most, device=device)
    same(pa.packbits(values, None, bitorder), np.packbits(most, None, bitorder))
    every = np.arange(256, dtype=np.uint8)
    given = pa.asarray(every, device=device)
    same(pa.unpackbits(given, None, 2045, bitorder), np.unpackbits(every, None, 2045, bitorder))
    same(pa.packbits(pa.unpackbits(given)), every)


def test_bits_refused():
    with pytest.raises(TypeError, match="takes uint8, got int64"):
        pa.unpackbits(pa.asarray([1]))
    with pytest.raises(ValueError, match="bitorder is 'big' or 'little'"):
        pa.packbits(pa.asarray([1]), bitorder="middle")
    with pytest.raises(TypeError, match="not defined for float64"):
        pa.packbits(pa.asarray([1.0]))
    with pytest.raises(TypeError, match="not defined for float32"):
        pa.bitwise_count(pa.asarray([1], dtype="float32"))
    with pytest.raises(ValueError, match="leaves out 9 of 8"):
        pa.unpackbits(pa.asarray([1], dtype="uint8"), count=-9)


SPECIAL = [0.0, -0.0, 1.0, -1.5, 0.3, np.inf, -np.inf, np.nan, 6e-8, 3e-6, 1e-3, 6e4, 65504.0]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "kind"), [(1, "float16"), (1, "float32"), (1, "float64"), (-2, "float32")])
def test_parts_of_floats(kind, step):
    info = np.finfo(kind)
    tiny = [float(info.smallest_subnormal), float(info.smallest_normal), -3 * float(info.smallest_subnormal)]
    x = np.array([*SPECIAL, *tiny, float(info.max)], kind)[::step]
    a = pa.asarray(x)
    for ours, theirs in zip((*pa.frexp(a), *pa.modf(a)), (*np.frexp(x), *np.modf(x)), strict=True):
        same(ours, theirs)
        np.testing.assert_array_equal(np.signbit(pa.asnumpy(ours)), np.signbit(theirs))
    with np.errstate(all="ignore"):
        # of NumPy's float16 the sign depends on the bits
        found = pa.spacing(a), np.spacing(x)
        same(*(map(abs, found) if kind == "float16" else found))
        for exponent in (-2000, -1074, -1030, -160, -30, -20, -1, 0, 5, 20, 127, 1100):
            same(pa.ldexp(a, exponent), np.ldexp(x, exponent))
        powers = np.arange(x.size) - 9
        same(pa.ldexp(a[:, None], powers), np.ldexp(x[:, None], powers))


@pytest.mark.slow
def test_parts_of_integers():
    x = np.arange(-3, 4)
    for ours, theirs in zip((*pa.frexp(x), *pa.modf(x)), (*np.frexp(x), *np.modf(x)), strict=True):
        same(ours, theirs)
    same(pa.ldexp(pa.asarray(3), 2), np.asarray(np.ldexp(3, 2)))
    with pytest.raises(TypeError, match=r"ldexp\(\) is not defined for float64"):
        pa.ldexp(1.0, 0.5)
    empty = pa.frexp(pa.zeros((0, 2)))
    assert [part.shape for part in empty] == [(0, 2), (0, 2)]
