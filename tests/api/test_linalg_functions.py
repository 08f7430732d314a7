"""The extension linalg: what comes out is checked by what it means, or against NumPy's; types, stacks,
layouts, errors, and the ways of GPUs."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from strategies import device_subset

import pyarray as pa
from pyarray.api.libraries import bindings

FLOATS = (np.float32, np.float64, np.complex64, np.complex128)
SQUARE = [(3, 3), (1, 1), (0, 0), (2, 3, 3), (0, 3, 3), (2, 0, 0)]
SHAPES = [*SQUARE, (4, 2), (2, 4), (3, 4, 2), (0, 2), (2, 0), (5, 0, 3)]
dtypes = pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.__name__)


def drawn(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def definite(shape, dtype):
    x = drawn(shape, dtype)
    return x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1], dtype=dtype)


def close(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    tolerance = 2e-4 if theirs.dtype.itemsize == 4 or theirs.dtype == np.complex64 else 1e-9
    np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=tolerance, atol=tolerance)


def real(dtype):
    return np.empty(0, dtype).real.dtype


def views(x, device="cpu"):
    """Arrays with the elements of `x` in several layouts."""
    yield pa.asarray(x, device=device)
    yield pa.asarray(np.ascontiguousarray(np.swapaxes(x, -1, -2)), device=device).mT
    yield pa.asarray(np.repeat(x, 2, axis=-1), device=device)[..., ::2]
    yield pa.asarray(x[..., ::-1].copy(), device=device)[..., ::-1]


@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_of_square_matrices(shape, device):
    for dtype in device_subset(FLOATS, SQUARE.index(shape), device):
        of_square_matrices(shape, dtype, device)


def of_square_matrices(shape, dtype, device):
    x = definite(shape, dtype)
    for a in views(x, device):
        close(pa.linalg.inv(a), np.linalg.inv(x))
        close(pa.linalg.det(a), np.asarray(np.linalg.det(x), dtype))
        close(pa.linalg.cholesky(a), np.linalg.cholesky(x))
        close(pa.linalg.cholesky(a, upper=True), np.conj(np.swapaxes(np.linalg.cholesky(x), -1, -2)))
        close(pa.linalg.eigvalsh(a), np.linalg.eigvalsh(x))
        sign, size = pa.linalg.slogdet(a)
        close(sign, np.asarray(np.linalg.slogdet(x)[0], dtype))
        close(size, np.asarray(np.linalg.slogdet(x)[1], real(dtype)))
    for triangle, kept in (("L", np.tril), ("U", np.triu)):  # the other one isn't read
        result = pa.linalg.eigh(pa.asarray(kept(x), device=device), triangle)
        assert result._fields == ("eigenvalues", "eigenvectors")
        scaled = result.eigenvectors * pa.astype(result.eigenvalues, result.eigenvectors.dtype)[..., None, :]
        close(scaled @ pa.conj(result.eigenvectors.mT), x)
        close(pa.linalg.eigvalsh(pa.asarray(kept(x), device=device), triangle), np.linalg.eigvalsh(x))
    close(pa.linalg.cholesky(pa.asarray(np.tril(x), device=device)), np.linalg.cholesky(x))


@dtypes
def test_eig_is_always_complex(dtype, device):
    for x in (drawn((2, 3, 3), dtype), np.eye(3, dtype=dtype), drawn((0, 0), dtype)):
        a = pa.asarray(x, device=device)
        values, vectors = pa.linalg.eig(a)
        kind = np.result_type(dtype, np.complex64)
        assert values.dtype == vectors.dtype == kind
        close(pa.astype(a, kind) @ vectors, pa.asnumpy(vectors * values[..., None, :]))
        alone = pa.linalg.eigvals(a)
        assert alone.dtype == kind
        close(pa.sum(alone, axis=-1), np.trace(x, axis1=-2, axis2=-1).astype(kind))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_of_any_matrices(shape, device):
    for dtype in device_subset(FLOATS, SHAPES.index(shape), device):
        of_any_matrices(shape, dtype, device)


def of_any_matrices(shape, dtype, device):
    x = drawn(shape, dtype)
    k = min(shape[-2:])
    for a in views(x, device):
        close(pa.linalg.svdvals(a), np.linalg.svd(x, compute_uv=False))
        close(pa.linalg.pinv(a), np.linalg.pinv(x) if x.size else np.zeros((*shape[:-2], *shape[:-3:-1]), dtype))
        assert np.all(pa.asnumpy(pa.linalg.matrix_rank(a)) == k)
    a = pa.asarray(x, device=device)
    for full in (True, False):
        u, s, vh = pa.linalg.svd(a, full_matrices=full)
        assert (u.shape[-1], s.shape[-1], vh.shape[-2]) == ((shape[-2], k, shape[-1]) if full else (k, k, k))
        close((u[..., :k] * pa.astype(s, u.dtype)[..., None, :]) @ vh[..., :k, :], x)
        q, r = pa.linalg.qr(a, mode="complete" if full else "reduced")
        assert q.shape[-1] == r.shape[-2] == (shape[-2] if full else k)
        close(q @ r, x)


def test_rank_and_inverse_with_a_tolerance():
    a = pa.asarray([[[1.0, 0.0], [0.0, 0.01]], [[1.0, 0.0], [0.0, 1e-20]]])
    assert pa.linalg.matrix_rank(a).tolist() == [2, 1]
    assert pa.linalg.matrix_rank(a, rtol=0.1).tolist() == [1, 1]
    assert pa.linalg.matrix_rank(a, rtol=pa.asarray([0.1, 0.0])).tolist() == [1, 2]
    close(pa.linalg.pinv(a, rtol=pa.asarray([0.1, 0.1]))[0], [[1.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (2, 3, 1)), ((3, 3), (2, 3, 4)),
     ((2, 1, 3, 3), (4, 3, 2)), ((2, 3, 3), (3, 2)), ((0, 0), (0, 2)), ((2, 0, 0), (0,))],
)  # fmt: skip
@dtypes
def test_solve(left, right, dtype, device):
    x, b = definite(left, dtype), pa.asarray(drawn(right, dtype, 1), device=device)
    y = b.get()
    for a in views(x, device):
        found = pa.linalg.solve(a, b)
        back = a @ (found[..., None] if len(right) == 1 else found)
        expected = y[..., None] if len(right) == 1 else y
        close(back, np.broadcast_to(expected, back.shape))


@pytest.mark.parametrize(
    ("left", "right"),
    [((0, 0), (0,)), ((2, 2), (2, 0)), ((0, 2, 2), (2,)), ((3, 0, 0), (0,)), ((0, 2, 2), (2, 3))],
)  # fmt: skip
def test_solve_for_nothing(left, right, device):
    x, y = np.ones(left) + np.eye(left[-1]), np.ones(right)
    found = pa.linalg.solve(pa.asarray(x, device=device), pa.asarray(y, device=device))
    assert (found.shape, found.dtype) == (np.linalg.solve(x, y).shape, pa.float64)


def test_types_are_lifted_and_promoted():
    for kind, expected in (
        ("int8", "float64"),
        ("bool", "float64"),
        ("float16", "float32"),
        ("bfloat16", "float32"),
    ):
        assert pa.linalg.inv(pa.eye(2, dtype=kind)).dtype == expected
        assert pa.linalg.vector_norm(pa.ones(2, dtype=kind)).dtype == expected
    assert pa.linalg.solve(pa.eye(2, dtype="float32"), pa.ones(2, dtype="complex64")).dtype == pa.complex64
    assert pa.linalg.solve(pa.eye(2, dtype="float32"), pa.ones(2)).dtype == pa.float64


def test_no_copy_goes_to_lapack():
    shown = []
    a = pa.asarray(drawn((3, 3)))

    def inv(x):
        shown.append(x.__array_interface__["data"][0])
        return x

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.linalg, "inv", inv)
        result = pa.linalg.inv(a)
    assert shown == [a._ptr]
    assert result._ptr == a._ptr


ORDERS = [2, 1, 0, -1, -2, 3, 0.5, -2.5, np.inf, -np.inf]


@pytest.mark.parametrize(
    ("order", "dtype"),
    # two types in turn: a real one and a complex one, of different sizes
    [(order, dtype) for at, order in enumerate(ORDERS) for dtype in (FLOATS[at % 2], FLOATS[3 - at % 2])],
    ids=str,
)
def test_vector_norm(order, dtype):
    x = drawn((2, 3, 4), dtype)

    def expected(axis, keepdims):
        with np.errstate(all="ignore"):
            sizes = np.abs(x)
            if order == 0:
                return np.sum(x != 0, axis=axis, keepdims=keepdims).astype(real(dtype))
            if abs(order) == np.inf:
                return (np.max if order > 0 else np.min)(sizes, axis=axis, keepdims=keepdims)
            return np.sum(sizes**order, axis=axis, keepdims=keepdims) ** real(dtype).type(1 / order)

    for axis, keepdims in (
        (None, False), (None, True), (0, True), (-1, False), ((0, 2), False), ((0, 2), True),
        ((2, 1, 0), False), ((), True),
    ):  # fmt: skip
        found = pa.linalg.vector_norm(pa.asarray(x), axis=axis, keepdims=keepdims, ord=order)
        close(found, expected(axis, keepdims))


def test_norms_of_large_and_of_no_numbers():
    big = pa.asarray(np.full(4, 1e30, np.float32))
    assert pa.linalg.vector_norm(big).item() == pytest.approx(2e30)
    assert pa.linalg.vector_norm(big * 1e-37 * 1e-30).item() > 0
    none = pa.ones((0, 3))
    for order in (2, 1, 0, np.inf, 3):
        assert pa.linalg.vector_norm(none, ord=order, axis=0).tolist() == [0, 0, 0]
    for order in ("fro", "nuc", 1, 2, np.inf):
        assert pa.linalg.matrix_norm(none, ord=order).item() == 0
    for order in (-1, -2):
        with pytest.raises(ValueError, match="no elements"):
            pa.linalg.matrix_norm(none.mT, ord=order)
    with pytest.raises(ValueError, match="no elements"):
        pa.linalg.vector_norm(none, ord=-np.inf)


@dtypes
@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf], ids=str)
def test_matrix_norm(order, dtype):
    x = drawn((2, 3, 4), dtype)
    close(pa.linalg.matrix_norm(pa.asarray(x), ord=order), np.linalg.norm(x, order, axis=(-2, -1)))
    assert pa.linalg.matrix_norm(pa.asarray(x), ord=order, keepdims=True).shape == (2, 1, 1)
    close(pa.linalg.norm(pa.asarray(x), order, (2, 0)), np.linalg.norm(x, order, axis=(2, 0)))


def test_norm_and_cond_as_numpys():
    x = drawn((3, 3))
    a = pa.asarray(x)
    for arguments in ((), (2,), (1, 0), (None, 1), ("fro",), (None, (0, 1)), (3, -1)):
        close(pa.linalg.norm(a, *arguments), np.linalg.norm(x, *arguments))
        close(np.linalg.norm(a, *arguments), np.linalg.norm(x, *arguments))
    assert pa.linalg.norm(a, 1, (0, 1), keepdims=True).shape == (1, 1)
    for p in (None, 2, -2, 1, np.inf, "fro"):
        close(pa.linalg.cond(a, p), np.linalg.cond(x, p))
    with pytest.raises(ValueError, match="one or two axes"):
        pa.linalg.norm(pa.ones((2, 2, 2)), 2)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 10, -1, -3])
def test_matrix_power(n):
    for x in (drawn((2, 3, 3)), drawn((3, 3), np.complex64), definite((1, 1), np.float32)):
        close(pa.linalg.matrix_power(pa.asarray(x), n), np.linalg.matrix_power(x, n))
    if n >= 0:
        x = np.asarray([[1, 2], [3, 4]], np.int32)
        close(pa.linalg.matrix_power(pa.asarray(x), n), np.linalg.matrix_power(x, n))
    a = pa.ones((2, 2))
    assert pa.linalg.matrix_power(a, 1) is not a


@pytest.mark.parametrize(("shape", "right"), [((5, 2), (5, 3)), ((5, 2), (5,)), ((2, 5), (2, 1)), ((3, 3), (3,))])
@dtypes
def test_lstsq(shape, right, dtype, device):
    deficient = np.ones(shape, dtype)
    for x in (drawn(shape, dtype), deficient):
        y = drawn(right, dtype, seed=1)
        given = [pa.asarray(z, device=device) for z in (x, y)]
        for rcond in (None, 0.5):
            ours, theirs = pa.linalg.lstsq(*given, rcond=rcond), np.linalg.lstsq(x, y, rcond=rcond)
            for k in (0, 1, 3):
                close(ours[k], theirs[k])
            assert ours[2].item() == theirs[2]


NOT_SQUARE = ("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet")


@pytest.mark.parametrize("name", NOT_SQUARE)
def test_square_matrices_only(name):
    for shape, said in (((2, 3), "square"), ((3,), "2 or more dimensions"), ((), "2 or more")):
        with pytest.raises(pa.linalg.LinAlgError, match=rf"{name}\(\).*{said}"):
            getattr(pa.linalg, name)(pa.ones(shape))


def test_what_else_is_refused(device):
    linalg, zero = pa.linalg, pa.zeros((2, 2), device=device)
    stack = pa.asarray(np.stack([np.eye(2), np.zeros((2, 2))]), device=device)
    for a in (zero, stack):
        for call, said in (
            (lambda a: linalg.inv(a), "Singular matrix"),
            (lambda a: linalg.cholesky(a), "not positive definite"),
            (lambda a: linalg.solve(a, pa.ones((2, 1), device=device)), "Singular matrix"),
            (lambda a: linalg.eig(a / 0.0), "infs or NaNs"),
        ):
            with np.errstate(all="ignore"), pytest.raises(linalg.LinAlgError, match=said):
                call(a)
        with pytest.raises(ValueError, match="UPLO"):
            linalg.eigh(a, "X")
    with pytest.raises(ValueError, match=r"\(2, 2\) and \(3,\) don't fit"):
        linalg.solve(zero, pa.ones(3, device=device))
    with pytest.raises(ValueError, match="'reduced' or 'complete'"):
        linalg.qr(zero, mode="raw")
    with pytest.raises(ValueError, match="ord is 'fro'"):
        linalg.matrix_norm(zero, ord=3)
    with pytest.raises(ValueError, match="ord is a real number"):
        linalg.vector_norm(zero, ord="fro")
    with pytest.raises(ValueError, match="takes vectors"):
        linalg.outer(zero, pa.ones(2, device=device))
    with pytest.raises(TypeError):
        linalg.matrix_power(zero, 0.5)
    assert linalg.det(zero).item() == 0


def test_numpys_functions_come_here():
    x = definite((3, 3), np.float32)
    a = pa.asarray(x)
    for name in ("inv", "det", "cholesky", "eigvalsh", "pinv", "matrix_rank", "slogdet", "svd"):
        ours = getattr(np.linalg, name)(a)
        assert type(ours[0] if isinstance(ours, tuple) else ours) is pa.ndarray
    close(np.linalg.solve(a, a), np.eye(3, dtype=np.float32))


@pytest.mark.slow
def test_large_matrices_and_stacks(device):
    """One matrix, and each side of the sizes at which stacks are computed together."""
    for shape in ((2, 40, 40), (300, 300), (2, 520, 520), (100, 4, 4)):
        x = definite(shape, np.float64) / shape[-1]
        a = pa.asarray(x, device=device)
        close(pa.linalg.inv(a) @ a, np.broadcast_to(np.eye(shape[-1]), shape))
        close(pa.linalg.slogdet(a)[1], np.linalg.slogdet(x)[1])
        lower = pa.linalg.cholesky(a)
        close(lower @ lower.mT, x)
        values, vectors = pa.linalg.eigh(a)
        close(vectors * values[..., None, :] @ vectors.mT, x)
        u, s, vh = pa.linalg.svd(a[..., :-1], full_matrices=False)
        close(u * s[..., None, :] @ vh, x[..., :-1])


def test_views_that_dont_begin_at_a_block(device):
    for kind in FLOATS:
        one, whole = definite((2, 2), kind), np.zeros(5, kind)
        whole[1:] = one.ravel()
        off = pa.asarray(whole, device=device)[1:].reshape(2, 2)
        close(pa.linalg.inv(off), np.linalg.inv(one))
        close(off, one)
        close(pa.linalg.inv(pa.broadcast_to(off, (3, 2, 2))), np.broadcast_to(np.linalg.inv(one), (3, 2, 2)))


@pytest.fixture
def gpu(device):
    if device == "cpu":
        pytest.skip("the CPU has NumPy")
    return device


def test_without_a_binding_the_error_says_what_to_install(gpu, monkeypatch):
    a = pa.ones((2, 2), device=gpu)
    vendor = bindings.VENDORS[a.device.kind]
    monkeypatch.setitem(bindings.VENDORS, a.device.kind, dataclasses.replace(vendor, load=lambda module: None))
    bindings._function.cache_clear()
    try:
        for call in (lambda: pa.linalg.svd(a), lambda: pa.fft.fft(a)):
            with pytest.raises(pa.DeviceError, match=r"isn't installed: pip install 'pyarray-kernels\[\w+\]'"):
                call()
    finally:
        bindings._function.cache_clear()


def test_a_library_that_fails_is_an_error_of_the_device(gpu, monkeypatch):
    kind = pa.get_device(gpu).kind

    def fails(*args):
        raise RuntimeError("no memory")

    monkeypatch.setattr(bindings, "_function", lambda kind, part, name: fails)
    with pytest.raises(pa.DeviceError, match=rf"{kind}:\d: .*'s \w+ failed: RuntimeError: no memory"):
        pa.fft.fft(pa.ones(32, device=gpu))


def test_calls_are_on_the_current_stream(gpu):
    """What a stream computes is there for the library, and its results for the next stream."""
    first, second = (pa.Stream(gpu, non_blocking=True) for _ in range(2))
    with first:
        a = pa.full((64, 64), 1.0, device=gpu) + pa.eye(64, device=gpu) * 63
        inverse = pa.linalg.inv(a)
    with second:
        product = inverse @ a
        spectrum = pa.fft.fft(product)
    np.testing.assert_allclose(product.get(), np.eye(64), atol=1e-12)
    np.testing.assert_allclose(spectrum.get(), np.fft.fft(np.eye(64)), atol=1e-12)


def test_threads_dont_share_handles_and_plans(device):
    x = definite((6, 6), np.float64)

    def work(k):
        a = pa.asarray(x * (k + 1), device=device)
        for _ in range(5):
            close(pa.linalg.inv(a), np.linalg.inv(x) / (k + 1))
            close(pa.fft.ifft(pa.fft.fft(a)), (x * (k + 1)).astype(complex))
        return k

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(8))) == list(range(8))


def test_arguments_are_left_as_they_are(device):
    x = definite((2, 5, 5), np.complex128)
    a = pa.asarray(x, device=device)
    for name in ("inv", "det", "cholesky", "eigh", "eig", "svd", "qr", "slogdet", "svdvals", "eigvalsh"):
        getattr(pa.linalg, name)(a)
    for name in ("fft", "ifftn", "irfft", "hfft", "irfftn"):
        getattr(pa.fft, name)(a)
    np.testing.assert_array_equal(a.get(), x)
