"""NumPy's functions on arrays of ours: `numpy.add(a, b)` computes here, or says that it can't."""

import numpy as np
import pytest

import pyarray as pa

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, a: m.add(a, 1),
        lambda m, a: m.add(1, a),
        lambda m, a: m.multiply(a, X),
        lambda m, a: m.sin(a),
        lambda m, a: m.arctan2(a, a + 1),
        lambda m, a: m.power(a, 2),
        lambda m, a: m.absolute(-a),
        lambda m, a: m.mean(a),
        lambda m, a: m.sum(a, axis=0),
        lambda m, a: m.concatenate([a, a]),
        lambda m, a: m.concatenate([a, a], axis=1),
        lambda m, a: m.maximum(a, 2),
        lambda m, a: m.matmul(a, a.T),
        lambda m, a: m.where(a > 2, a, 0),
        lambda m, a: m.argmax(a),
        lambda m, a: m.stack([a, a]),
        lambda m, a: m.true_divide(a, 2),
        lambda m, a: m.amax(a, axis=1),
        lambda m, a: m.isnan(a),
        lambda m, a: m.add.reduce(a),
        lambda m, a: m.add.reduce(a, axis=1),
        lambda m, a: m.add.reduce(a, axis=None),
        lambda m, a: m.maximum.reduce(a, axis=1, keepdims=True),
        lambda m, a: m.logical_and.reduce(a),
        lambda m, a: m.multiply.reduce(a),
        lambda m, a: m.sqrt(a),
        lambda m, a: m.any(a > 3),
        lambda m, a: m.clip(a, 1, 3),
        lambda m, a: m.add.accumulate(a, axis=1),
        lambda m, a: m.add.accumulate(a, 1),
        lambda m, a: m.multiply.accumulate(a),
        lambda m, a: m.subtract.outer(a, a[0]),
        lambda m, a: m.add.reduce(a, dtype=np.float64),
        lambda m, a: m.linalg.norm(a),
        lambda m, a: m.linalg.norm(a, axis=1),
        lambda m, a: m.pad(a, 1),
        lambda m, a: m.gradient(a[0]),
        lambda m, a: m.interp(a, a[0], a[1]),
        lambda m, a: m.take(a, [2, 0], axis=1),
        lambda m, a: m.fft.fft(a),
        lambda m, a: m.copy(a),
        lambda m, a: m.sum(a, 1),
        lambda m, a: m.argmax(a, 0),
        lambda m, a: m.ldexp(a, 3),
        lambda m, a: m.frexp(a)[1],
        lambda m, a: m.union1d(a, a),
        lambda m, a: m.apply_along_axis(m.sum, 0, a),
        lambda m, a: m.i0(a),
        lambda m, a: m.sort_complex(a),
    ],
)
def test_computed_here(call):
    ours, theirs = call(np, pa.asarray(X)), np.asarray(call(np, X))
    assert type(ours) is pa.ndarray
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=1e-6)


def test_facts_about_arrays():
    a = pa.asarray(X)
    assert (np.ndim(a), np.shape(a), np.size(a), np.size(a, 1)) == (2, (2, 3), 6, 3)
    assert np.result_type(a, a) == pa.float32


def test_refused_keywords_say_what_to_write():
    a = pa.asarray(X)
    with pytest.raises(TypeError, match=r"takes no where=; choose with pyarray.where"):
        np.add(a, 1, where=np.array([True]))
    with pytest.raises(TypeError, match=r"takes no dtype=; cast"):
        np.add(a, 1, dtype=np.float64)


def test_out():
    a, out, host = pa.asarray(X), pa.zeros((2, 3), dtype=pa.float32), np.zeros((2, 3), np.float32)
    assert np.add(a, 1, out=out) is out
    assert np.add(a, a, out=host) is host
    np.testing.assert_array_equal(pa.asnumpy(out), X + 1)
    np.testing.assert_array_equal(host, X + X)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: np.is_busday(a),
        lambda a: np.isnat(a),
        lambda a: np.float_power.reduce(a),
        lambda a: np.add(a, 1, where=np.array([True])),
        lambda a: np.add(a, 1, dtype=np.float64),
    ],
)
def test_refused(call):
    with pytest.raises(TypeError, match=r"pyarray|numpy"):
        call(pa.asarray(X))
