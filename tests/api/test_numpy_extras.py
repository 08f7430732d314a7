"""Polynomials, blocks, grids, facts about arrays, `flat` and their like, against NumPy's."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, few_dtypes, numpy_views

import pyarray as pa
from pyarray import dtypes

FEW = examples(15)


def same(ours, theirs, rtol=0.0):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=rtol, atol=rtol)


# ---- polynomials


@FEW
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=5), st.lists(st.integers(-9, 9), min_size=1, max_size=5))
def test_polynomials(p, q):
    a, b = np.array(p), np.array(q, float)
    for name in ("polyadd", "polysub", "polymul"):
        same(getattr(pa, name)(pa.asarray(a), b), getattr(np, name)(a, b))
    same(pa.polyval(a, pa.asarray(b)), np.polyval(a, b))
    for m in (0, 1, 2):
        same(pa.polyder(a, m), np.polyder(a, m))
        same(pa.polyint(b, m, k=2), np.polyint(b, m, k=2))
    if b.any():
        for ours, theirs in zip(pa.polydiv(a, b), np.polydiv(a, b), strict=True):
            same(ours, theirs)
    same(pa.roots(a), np.roots(a))
    same(pa.poly(b), np.poly(b))


@pytest.mark.parametrize("columns", [0, 2])
def test_polyfit(columns):
    x = np.linspace(-1, 2, 9)[::-1]
    y = np.cos(x) if not columns else np.stack([np.cos(x), x**3], axis=1)
    w = np.arange(1.0, 10.0)
    a, b = pa.asarray(x), pa.asarray(y)
    same(pa.polyfit(a, b, 3), np.polyfit(x, y, 3), 1e-9)
    same(pa.polyfit(a, b, 2, w=w), np.polyfit(x, y, 2, w=w), 1e-9)
    for cov in (True, "unscaled"):
        for ours, theirs in zip(pa.polyfit(a, b, 2, cov=cov), np.polyfit(x, y, 2, cov=cov), strict=True):
            same(ours, theirs, 1e-9)
    ours, theirs = pa.polyfit(a, b, 2, full=True), np.polyfit(x, y, 2, full=True)
    same(ours[1], theirs[1], 1e-9)
    same(ours[3], theirs[3], 1e-9)
    assert (int(ours[2].item() if hasattr(ours[2], "item") else ours[2]), ours[4]) == (theirs[2], theirs[4])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pa.polyfit([1.0], [1.0, 2.0], 1), TypeError, r"got shapes \(1,\) and \(2,\)"),
        (lambda: pa.polyfit([1.0], [1.0], -1), ValueError, "the degree is 0 or more"),
        (lambda: pa.polyfit([1.0, 2.0], [1.0, 2.0], 1, w=[1.0]), TypeError, r"shapes \(1,\) and \(2,\)"),
        (lambda: pa.polyfit([1.0, 2.0], [1.0, 2.0], 1, cov=True), ValueError, "pass cov='unscaled'"),
        (lambda: pa.polyder([1, 2], -1), ValueError, "the order is 0 or more"),
        (lambda: pa.polyint([1, 2], 3, [1, 2]), ValueError, "has as many constants"),
        (lambda: pa.polyval([[1]], 2), ValueError, r"1-D, got shape \(1, 1\)"),
    ],
)
def test_polynomials_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- lines and blocks


@FEW
@given(numpy_views(dtypes.float32), st.data())
def test_along_axes(x, data):
    if not x.ndim:
        return
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    a = pa.asarray(x)
    if x.size:
        same(
            pa.apply_along_axis(lambda v: v[::-1] * 2, axis, a),
            np.apply_along_axis(lambda v: v[::-1] * 2, axis, x),
        )
        same(pa.apply_along_axis(lambda v: v[0], axis, a), np.apply_along_axis(lambda v: v[0], axis, x))
        outer = (lambda v: pa.multiply(v[:, None], v), lambda v: v[:, None] * v)
        same(pa.apply_along_axis(outer[0], axis, a), np.apply_along_axis(outer[1], axis, x))
    same(
        pa.apply_over_axes(lambda v, k: pa.sum(v, axis=k), a, [0, axis]),
        np.apply_over_axes(lambda v, k: np.sum(v, axis=k, dtype=np.float32), x, [0, axis]),
        1e-6,
    )


def decide(x, y):
    return x if x > 3 else y + 1


KINDS = (dtypes.bool_, dtypes.int8, dtypes.uint64, dtypes.float16, dtypes.float64)


@FEW
@given(st.sampled_from(KINDS).flatmap(numpy_views), st.sampled_from((None, "d", [float])))
def test_vectorize(x, otypes):
    y = np.arange(2.0).reshape(2, *[1] * x.ndim)
    ours, theirs = pa.vectorize(decide, otypes), np.vectorize(decide, otypes)
    if not x.size and otypes is None:
        with pytest.raises(ValueError, match="size 0"):
            ours(pa.asarray(x), y)
        return
    same(ours(pa.asarray(x), pa.asarray(y)), theirs(x, y))
    same(ours(x, y=pa.asarray(y)), theirs(x, y))


def test_vectorize_keeps_the_device(device):
    a = pa.asarray([[1, 5], [7, 0]], device=device)

    @pa.vectorize(otypes=[pa.float32, "int8"], excluded=["table", 1])
    def split(x, where, table=()):
        """Two parts."""
        assert where is a
        return table[0] * x, x // 2

    half, whole = split(a, a, table=(0.5,))
    assert (split.__doc__, split.__name__) == ("Two parts.", "split")
    assert half.device == whole.device == a.device
    same(half, np.float32([[0.5, 2.5], [3.5, 0]]))
    same(whole, np.int8([[0, 2], [3, 0]]))
    lines = pa.vectorize(np.dot, signature="(n),(n)->()")
    same(lines(a, [1, 2]), [11, 7])
    assert lines(a, a).device == a.device
    assert pa.vectorize(abs)(-3).shape == ()


def test_vectorize_refuses():
    with pytest.raises(TypeError, match=r"dtype .* is not supported"):
        pa.vectorize(str)(pa.ones(2))
    with pytest.raises(TypeError, match=r"dtype .* is not supported"):
        pa.vectorize(abs, otypes=["O"])
    with pytest.raises(pa.CompileError, match="not known while the function is traced"):
        pa.fuse(lambda x: pa.vectorize(abs)(x))(pa.ones(2))


@pytest.mark.slow
@FEW
@given(numpy_views(dtypes.float64), st.data())
def test_unwrap(x, data):
    if not x.ndim:
        return
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    same(pa.unwrap(pa.asarray(x), axis=axis), np.unwrap(x, axis=axis), 1e-12)
    same(pa.unwrap(pa.asarray(x), 4.0, axis, period=7.0), np.unwrap(x, 4.0, axis, period=7.0), 1e-12)
    whole = x.astype(np.int64) * 3
    for period in (4, 5):
        same(pa.unwrap(pa.asarray(whole), axis=axis, period=period), np.unwrap(whole, axis=axis, period=period))


def test_block():
    x, y = np.arange(6).reshape(2, 3), np.ones((2, 1))
    for nested in (
        [[x, y], [y.T @ x, 5]],
        [x, y],
        [[x], [x]],
        x,
        3,
        [1, 2.5],
        [[[x]]],
        [np.arange(3)[::-1], 7],
    ):
        try:
            theirs = np.block(nested)
        except ValueError:
            with pytest.raises(ValueError, match="equal shapes"):
                pa.block(nested)
            continue
        same(pa.block(nested), theirs)
    a = pa.asarray(x)
    assert not pa.shares_memory(pa.block(a), a)
    for wrong, error in (([], ValueError), ([[1], 2], ValueError), ((1, 2), TypeError)):
        with pytest.raises(error, match="block"):
            pa.block(wrong)


def test_grids():
    for key in (np.s_[0:2, 0:3], np.s_[0:1:5j], np.s_[1:7:2, 0:1:3j, -2:0], np.s_[3:0]):
        same(pa.mgrid[key], np.mgrid[key])
    for ours, theirs in zip(pa.ogrid[0:2, 0:3], np.ogrid[0:2, 0:3], strict=True):
        same(ours, theirs)
    x = np.arange(6).reshape(2, 3)[:, ::-1]
    for key in (np.s_[0:3, 7], np.s_[1, 2.5, 0:1:3j], (x, x), np.s_[[1, 2], 3]):
        same(pa.r_[key], np.r_[key])
    for key in (np.s_[0:3, 4:7], (x, x), (np.arange(2), x)):
        same(pa.c_[key], np.c_[key])
    with pytest.raises(ValueError, match="use concat or stack"):
        pa.r_["0,2", [1]]
    for name, args in (
        ("bartlett", ()),
        ("blackman", ()),
        ("hamming", ()),
        ("hanning", ()),
        ("kaiser", (8.0,)),
    ):
        for n in (0, 1, 6):
            same(getattr(pa, name)(n, *args), getattr(np, name)(n, *args))


# ---- histograms, products


def test_histograms_of_points():
    rng = np.random.default_rng(5)
    x, y, w = rng.normal(size=(3, 40))
    a, b = pa.asarray(x)[::-1], pa.asarray(y)[::-1]
    for options in (
        {},
        {"bins": 3},
        {"bins": [2, 5]},
        {"bins": [[-1, 0, 1.5], 4]},
        {"range": [[0, 1], [-1, 1]]},
        {"density": True},
        {"weights": w[::-1]},
        {"bins": np.array([-1.0, 0.0, 2.0])},
    ):
        for ours, theirs in zip(
            pa.histogram2d(a, b, **options), np.histogram2d(x[::-1], y[::-1], **options), strict=True
        ):
            same(ours, theirs, 1e-12)
    points = rng.normal(size=(30, 3))
    (ours, edges), (theirs, lines) = pa.histogramdd(points, 3), np.histogramdd(points, 3)
    same(ours, theirs)
    for one, other in zip(edges, lines, strict=True):
        same(one, other, 1e-15)
    for wrong in ({"bins": [1, 2]}, {"bins": 0}, {"bins": [[2, 1], 1, 1]}, {"range": [[1, 0]] * 3}):
        with pytest.raises(ValueError, match="histogramdd"):
            pa.histogramdd(points, **wrong)


def test_products_of_vectors_and_chains():
    rng = np.random.default_rng(3)
    m, v = rng.normal(size=(2, 3, 4)), rng.normal(size=(4,))
    z = rng.normal(size=(2, 3)) + 1j
    same(pa.matvec(m, v), np.matvec(m, v), 1e-12)
    same(pa.vecmat(z, m), np.vecmat(z, m), 1e-12)
    chain = [rng.normal(size=s) for s in ((3,), (3, 9), (9, 2), (2, 5), (5, 4))]
    same(pa.linalg.multi_dot(chain), np.linalg.multi_dot(chain), 1e-12)
    same(pa.linalg.multi_dot(chain[1:3]), np.linalg.multi_dot(chain[1:3]), 1e-12)
    t = rng.normal(size=(2, 3, 6))
    same(pa.linalg.tensorinv(t), np.linalg.tensorinv(t), 1e-9)
    same(
        pa.linalg.tensorsolve(t, v[:1] * np.ones((2, 3))),
        np.linalg.tensorsolve(t, v[:1] * np.ones((2, 3))),
        1e-9,
    )
    u = rng.normal(size=(6, 2, 3))
    right = np.ones((2, 3))
    same(pa.linalg.tensorsolve(u, right, axes=(0,)), np.linalg.tensorsolve(u, right, axes=(0,)), 1e-9)
    with pytest.raises(ValueError, match=r"shapes \(4,\) and \(4,\)"):
        pa.matvec(v, v)


# ---- flat, resize, tofile


@FEW
@given(numpy_views(few_dtypes), st.data())
def test_flat(x, data):
    a, x = pa.asarray(x.copy())[...], x.copy()
    if x.ndim:
        a, x = a[..., ::-1], x[..., ::-1]
    assert len(a.flat) == len(x.flat)
    assert [v.item() for v in a.flat] == [v.item() for v in x.flat]
    same(a.flat.copy(), x.flat.copy())
    if x.size:
        n = data.draw(st.integers(-x.size, x.size - 1))
        assert a.flat[n].item() == x.flat[n].item()
        part = slice(*sorted(data.draw(st.tuples(*[st.integers(0, x.size)] * 2))))
        same(a.flat[part], x.flat[part])
        same(a.flat[[0, n]], x.flat[[0, n]])
        a.flat[part] = x.flat[part] = 1
        a.flat[[n, 0]] = x.flat[[n, 0]] = [3, 2]
        same(a, x)
        a.flat = x.flat = [1, 0, 1]
        same(a, x)


def test_flat_as_a_numpy_array():
    a = pa.asarray(np.arange(6.0).reshape(2, 3))
    copied = np.array(a.flat)
    copied[0] = 9
    assert a[0, 0].item() == 0
    assert np.shares_memory(np.asarray(a.flat), pa.asnumpy(a))
    assert np.asarray(a.T.flat, dtype=np.int8).tolist() == [0, 3, 1, 4, 2, 5]
    assert a.flat.__array__(copy=False).tolist() == a.ravel().tolist()
    with pytest.raises(ValueError, match="pass copy=None"):
        a.T.flat.__array__(copy=False)
    with pytest.raises(ValueError, match="pass copy=None"):
        a.flat.__array__(np.int8, copy=False)
    with pytest.raises(ValueError, match="at least one value for 6 elements, got none"):
        a.flat = []


def test_resize_and_files(tmp_path):
    a, x = pa.arange(6).reshape(2, 3).copy(), np.arange(6).reshape(2, 3).copy()
    for shape in ((3, 3), (2,), (0,), (2, 1), ()):
        a.resize(shape, refcheck=False)  # the address was given out when it was compared
        x.resize(shape, refcheck=False)
        same(a, x)
        same(a + 1, x + 1)
    a.resize(2, 2, refcheck=False)
    assert a.shape == (2, 2)
    with pytest.raises(ValueError, match="memory of their own"):
        a[0].resize(4)
    b = pa.asarray(np.arange(6.0).reshape(2, 3)[:, ::-1])
    b.tofile(tmp_path / "raw")
    same(pa.fromfile(tmp_path / "raw", dtype="float64"), pa.asnumpy(b).ravel())
    b.tofile(tmp_path / "text", sep=" ")
    same(pa.fromfile(tmp_path / "text", sep=" "), pa.asnumpy(b).ravel())
    same(pa.fromstring("1 2 3", dtype=int, sep=" "), np.array([1, 2, 3]))
    (tmp_path / "table").write_text("1,2\n3,\n")
    same(pa.genfromtxt(tmp_path / "table", delimiter=","), np.array([[1, 2], [3, np.nan]]))


# ---- facts


@FEW
@given(numpy_views(few_dtypes), numpy_views(few_dtypes), st.data())
def test_facts(x, y, data):
    a, b = pa.asarray(x), pa.asarray(y)
    assert (pa.ndim(a), pa.size(a), pa.shape(a)) == (np.ndim(x), np.size(x), np.shape(x))
    assert pa.isfortran(a) == np.isfortran(x)
    parts = [data.draw(st.sampled_from([z, z[..., ::-1], z[:1]] if z.ndim else [z])) for z in (x, x, y)]
    ours = [pa.asarray(p) for p in parts]
    for n, m in ((0, 1), (0, 2)):
        assert pa.may_share_memory(ours[n], ours[m]) == np.may_share_memory(parts[n], parts[m])
        assert pa.shares_memory(ours[n], ours[m]) == np.shares_memory(parts[n], parts[m])
    assert pa.asfortranarray(a).flags.f_contiguous
    same(pa.asfortranarray(a), np.asfortranarray(x))
    assert pa.promote_types(a.dtype, b.dtype) is pa.result_type(a, b) if a.dtype is b.dtype else True
    assert list(pa.ndenumerate(a)) == [(k, v.item()) for k, v in np.ndenumerate(x)]


def test_gaps_between_elements_are_nobodys():
    a = pa.arange(10)
    assert pa.may_share_memory(a[::2], a[1::2])
    assert not pa.shares_memory(a[::2], a[1::2])
    assert pa.shares_memory(a[::2], a[::3])


def test_kinds_of_dtypes():
    for name in ("int8", "uint16", "float32", "complex64", "bool"):
        for kind in (
            "integer",
            "signedinteger",
            "unsignedinteger",
            "floating",
            "inexact",
            "number",
            "generic",
        ):
            assert pa.issubdtype(name, getattr(pa, kind)) == np.issubdtype(name, getattr(np, kind))
    assert pa.issubdtype(pa.bfloat16, pa.floating)
    assert not pa.issubdtype(pa.bfloat16, pa.integer)
    for number in (0, 255, 256, -1, -129, 1.5, True):
        assert pa.min_scalar_type(number) == np.min_scalar_type(number)
    assert (pa.single, pa.double, pa.intp) == (pa.float32, pa.float64, pa.int64)
    assert pa.common_type(np.float16([1]), np.int8([1])) == np.common_type(np.float16([1]), np.int8([1]))
    with pytest.raises(TypeError, match="got bool"):
        pa.common_type(np.bool_([1]))


def test_required():
    a = pa.ones((2, 3)).T
    assert pa.require(a, requirements=["C", "W"]).flags.c_contiguous
    assert pa.require(a[::2], requirements="F").flags.f_contiguous
    assert pa.require(a, requirements="A") is a
    assert pa.require(pa.broadcast_to(a, (3, 2)), requirements="W").flags.writeable
    for wrong in ("Q", ["C", "F"]):
        with pytest.raises(ValueError, match="require"):
            pa.require(a, requirements=wrong)


def test_text_is_numpys():
    a = pa.asarray([1.5, 2.25])
    assert pa.array_repr(a) == repr(a)
    assert pa.array_str(a) == str(a) == np.array_str(pa.asnumpy(a))
    with pa.printoptions(precision=1):
        assert pa.array2string(a) == "[1.5 2.2]"
    with warnings.catch_warnings(), pa.errstate(all="raise"):
        assert (a / 0).tolist() == [np.inf, np.inf]
    assert pa.einsum_path("ij,jk->ik", pa.ones((2, 3)), pa.ones((3, 4)))[0] == ["einsum_path", (0, 1)]
    for ours, theirs in zip(pa.mask_indices(3, pa.triu, 1), np.mask_indices(3, np.triu, 1), strict=True):
        same(ours, theirs)
