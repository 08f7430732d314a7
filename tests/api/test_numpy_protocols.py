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
        lambda m, a: m.add(a, 1, dtype=np.float64),
        lambda m, a: m.multiply(a, a, dtype=np.float16, casting="same_kind"),
        lambda m, a: m.modf(a, dtype=np.float64)[1],
        lambda m, a: m.equal(a, 1, dtype=bool),
        lambda m, a: m.subtract.outer(a, a, dtype=np.float64),
        lambda m, a: m.einsum("ij,ij->i", a, a, dtype=np.float64),
        lambda m, a: m.std(a, axis=0, dtype=np.float64),
        lambda m, a: m.nanvar(a, 1, np.float64),
        lambda m, a: m.nanmean(a, axis=0, dtype=np.float64),
        lambda m, a: m.digitize(a, bins=np.array([1.0, 3.0])),
        lambda m, a: m.searchsorted(a=a[0], v=a, side="right"),
        lambda m, a: m.clip(a=a, a_max=3, a_min=None),
        lambda m, a: m.nanquantile(q=0.25, a=a, axis=1),
        lambda m, a: m.moveaxis(a, source=0, destination=1),
        lambda m, a: m.tile(A=a, reps=(2, 1)),
        lambda m, a: m.linalg.solve(a=a[:, :2] + 1, b=a[:, :2]),
        lambda m, a: m.fft.fft(a=a, n=2),
    ],
)
def test_computed_here(call):
    ours, theirs = call(np, pa.asarray(X)), np.asarray(call(np, X))
    assert type(ours) is pa.ndarray
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("array", ([],), {"ndmin": 2, "dtype": "f8"}),
        ("array", ([1, 2],), {"copy": None, "subok": True}),
        ("asarray", (X,), {"order": "F"}),
        ("asanyarray", (X,), {"order": "C"}),
        ("ascontiguousarray", (3,), {}),
        ("asfortranarray", (X,), {}),
        ("arange", (4,), {}),
        ("eye", (2,), {"M": 3}),
        ("identity", (2,), {}),
        ("full", (3, 1.5), {}),
        ("ones", ((2, 3),), {"dtype": "i4"}),
        ("tri", (2,), {"M": 3}),
        ("zeros", (3,), {}),
    ],
)
def test_made_like_an_array_they_are_on_its_device(name, args, options, device):
    made, want = (getattr(np, name)(*args, **options, **x) for x in ({"like": pa.ones(2, device=device)}, {}))
    assert isinstance(made, pa.ndarray)
    assert str(made.device) == device
    assert (made.shape, made.dtype) == (want.shape, want.dtype)
    assert made.flags["F_CONTIGUOUS"] == want.flags["F_CONTIGUOUS"]
    np.testing.assert_array_equal(pa.asnumpy(made), want)


def test_where_keeps_the_other_elements_of_out(device):
    a, out, host = pa.asarray(X, device=device), pa.full((2, 3), 9.0, device=device), np.full((2, 3), 9.0)
    assert np.divide(6, a, out=out, where=a > 2) is out
    np.divide(6, X, out=host, where=X > 2)
    np.testing.assert_array_equal(pa.asnumpy(out), host)
    assert np.divide(6, a, out=out, where=X[0] > 1) is out
    np.divide(6, X, out=host, where=X[0] > 1)
    np.testing.assert_array_equal(pa.asnumpy(out), host)


def test_facts_about_arrays():
    a = pa.asarray(X)
    assert (np.ndim(a), np.shape(a), np.size(a), np.size(a, 1)) == (2, (2, 3), 6, 3)
    assert np.result_type(a, a) == pa.float32


def test_refused_keywords_say_what_to_write():
    a = pa.asarray(X)
    with pytest.raises(TypeError, match=r"takes where= with out= alone.*pyarray.where"):
        np.add(a, 1, where=np.array([True]))
    with pytest.raises(TypeError, match=r"takes no order="):
        np.add(a, 1, order="F")


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
        lambda a: np.add(a, a, dtype=np.int32),
        lambda a: np.add(a, a, dtype=np.float16, casting="safe"),
        lambda a: np.einsum("ij->i", a, dtype=np.int32),
    ],
)
def test_refused(call):
    with pytest.raises(TypeError, match=r"pyarray|numpy|cast"):
        call(pa.asarray(X))
