"""`pyarray.special` against SciPy's, in every floating type, in kernels, and by SciPy's own names."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from strategies import device_subset

import pyarray as pa

scipy = pytest.importorskip("scipy.special")
ALONG = ("logsumexp", "softmax", "log_softmax")
EDGES = [
    0.0,
    -0.0,
    1,
    -1,
    0.5,
    2,
    0.25,
    1e-10,
    -1e-10,
    0.999999,
    30,
    -30,
    100,
    -1.5,
    -2,
    np.inf,
    -np.inf,
    np.nan,
]
VALUES = np.concatenate([np.linspace(-6, 6, 201), EDGES])
LOOSE = {
    "kl_div": 3e-11,
    "rel_entr": 3e-13,
    "ndtr": 3e-13,
    "log_ndtr": 3e-13,
}  # for float64, of |values| > 1e-9


NAMES = sorted(set(pa.special.__all__) - set(ALONG))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_functions(name, device):
    ours, theirs = getattr(pa.special, name), getattr(scipy, name)
    count = len(inspect.signature(ours).parameters) - 1
    given = [VALUES] if count == 1 else [g.ravel() for g in np.meshgrid(VALUES[::9], VALUES[::7])]
    for dtype in device_subset(("float64", "float32", "float16"), NAMES.index(name), device):
        operands = [x.astype(dtype) for x in given]
        with np.errstate(all="ignore"):
            expected = theirs(*[x.astype("float64") for x in operands]).astype(dtype)
        found = ours(*[pa.asarray(x, device=device) for x in operands]).get()
        assert found.dtype == expected.dtype
        keep = ~np.isneginf(operands[0]) if name == "gammaln" else np.isfinite(operands[0])
        tolerance = LOOSE.get(name, 5e-15) if dtype == "float64" else 16 * np.finfo(dtype).eps
        near_roots = name in ("digamma", "psi", "gammaln")
        least = 1.0 if near_roots else 1e-9 if dtype == "float64" and name in LOOSE else 1e-30
        np.testing.assert_allclose(found[keep], expected[keep], rtol=tolerance, atol=least * tolerance)
    assert ours(*[pa.ones(2, "int8", device=device)] * count).dtype == pa.float64
    assert ours(*[pa.ones((0, 2), device=device)] * count).shape == (0, 2)


def test_quotients_beyond_the_range_of_float64(device):
    x, y = np.array([[1.0, 1e-300, 1e300, 1e-320], [1e-320, 1e300, 1e-300, 2.0]])
    a, b = (pa.asarray(v, device=device) for v in (x, y))
    expected = x * (np.log(x) - np.log(y))
    np.testing.assert_allclose(pa.special.rel_entr(a, b).get(), expected, rtol=1e-13)
    np.testing.assert_allclose(pa.special.kl_div(a, b).get(), expected - x + y, rtol=1e-13)
    close = pa.special.rel_entr(pa.ones(1, device=device), 1 + 2.0**-40).item()
    assert abs(close / -np.log1p(2.0**-40) - 1) < 1e-15
    assert pa.special.digamma(pa.asarray([np.inf], device=device)).tolist() == [np.inf]


@pytest.mark.parametrize("name", ALONG)
def test_functions_along_axes(name, device):
    x = np.random.default_rng(0).random((3, 4)) * 1000
    a = pa.asarray(x.T, device=device)
    for axis in (None, 0, -1, (0, 1)):
        found = getattr(pa.special, name)(a, axis=axis)
        np.testing.assert_allclose(found.get(), getattr(scipy, name)(x.T, axis=axis), rtol=1e-12)
    assert pa.special.logsumexp(pa.full(2, -np.inf)).item() == -np.inf
    ours = pa.special.logsumexp(a, axis=1, b=[1, 2, 3], keepdims=True)
    np.testing.assert_allclose(ours.get(), scipy.logsumexp(x.T, axis=1, b=[1, 2, 3], keepdims=True), rtol=1e-12)


def test_in_kernels_in_fuse_and_by_scipys_name(device):
    @pa.kernel
    def both(out, v):
        for i in range(v.size):
            out[i] = pa.special.erf(v[i]) + pa.special.ndtri(v[i]) + pa.rsqrt(v[i])

    x = np.array([0.5, 0.25, 0.9])
    a, out = pa.asarray(x, device=device), pa.zeros(3, device=device)
    both(out, a)
    expected = scipy.erf(x) + scipy.ndtri(x) + 1 / np.sqrt(x)
    np.testing.assert_allclose(out.get(), expected, rtol=1e-14)
    fused = pa.fuse(lambda v: pa.special.erf(v) + pa.special.ndtri(v) + pa.rsqrt(v))
    np.testing.assert_allclose(fused(a).get(), expected, rtol=1e-14)
    np.testing.assert_allclose(scipy.erf(a).get(), scipy.erf(x), rtol=1e-15)
    np.testing.assert_allclose(pa.rsqrt(pa.asarray([4, 16], device=device)).get(), [0.5, 0.25])
    with pytest.raises(TypeError, match=r"erf\(\) is not defined for complex128; it takes float"):
        pa.special.erf(1j)


def test_a_ufunc_of_scipy_imports_the_functions():
    code = (
        "import sys, scipy.special, pyarray as pa\n"
        "x = pa.asarray([3.0, 5.0])\n"
        "assert 'pyarray.special' not in sys.modules\n"
        "assert scipy.special.gamma(x).tolist() == [2.0, 24.0]\n"
        "try: scipy.special.jv(x, x)\n"
        "except TypeError as error: assert 'numpy.jv has no pyarray ufunc' in str(error), error\n"
        "else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_where_signs_are_those_of_c(device):
    x = pa.asarray([-np.inf, -0.0, 0.0, np.inf], device=device)
    assert pa.special.gammaln(x).tolist() == [np.inf] * 4
    assert np.signbit(pa.asnumpy(pa.special.erfinv(x[1:3]))).tolist() == [True, False]
