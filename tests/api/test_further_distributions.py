"""Distributions of `random/further.py` against SciPy's: the largest distance from the exact distribution, or
chi-square of counts, with fixed seeds; the same bits on every device; errors."""

import numpy as np
import pytest

import pyarray as pa
from pyarray.random import default_rng
from tests.api.test_random_distributions import far, unlike

stats = pytest.importorskip("scipy.stats")
N = 20_000

CONTINUOUS = {
    "laplace": ((1, 2), stats.laplace(1, 2)),
    "logistic": ((1, 2), stats.logistic(1, 2)),
    "gumbel": ((1, 2), stats.gumbel_r(1, 2)),
    "rayleigh": ((2.0,), stats.rayleigh(scale=2)),
    "weibull": ((1.5,), stats.weibull_min(1.5)),
    "pareto": ((3.0,), stats.lomax(3)),
    "power": ((2.5,), stats.powerlaw(2.5)),
    "triangular": ((1, 2, 4), stats.triang(1 / 3, 1, 3)),
    "standard_cauchy": ((), stats.cauchy()),
    "standard_t": ((3.0,), stats.t(3)),
    "f": ((4.0, 5.0), stats.f(4, 5)),
    "noncentral_chisquare": ((3.0, 2.0), stats.ncx2(3, 2)),
    "noncentral_f": ((3.0, 6.0, 2.0), stats.ncf(3, 6, 2)),
    "wald": ((2.0, 3.0), stats.invgauss(2 / 3, scale=3)),
    "vonmises": ((0.0, 2.0), stats.vonmises(2)),
}
COUNTS = {
    "geometric": ((0.1,), stats.geom(0.1)),
    "negative_binomial": ((3.5, 0.3), stats.nbinom(3.5, 0.3)),
    "logseries": ((0.8,), stats.logser(0.8)),
    "zipf": ((2.5,), stats.zipf(2.5)),
    "hypergeometric": ((20, 30, 35), stats.hypergeom(50, 20, 35)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CONTINUOUS, *COUNTS])
def test_distributions(name, device):
    args, exact = (CONTINUOUS | COUNTS)[name]
    x = getattr(default_rng(20), name)(*args, N, device=device)
    assert (x.dtype, x.shape) == (pa.float64 if name in CONTINUOUS else pa.int64, (N,))
    if device != "cpu":  # the same bits
        assert x.get().tobytes() == getattr(default_rng(20), name)(*args, N, device="cpu").tobytes()
    elif name in CONTINUOUS:
        assert far(x.get(), exact.cdf) < 2.3
    else:
        assert unlike(np.minimum(x.get(), 500), exact.pmf(np.arange(200))) < 6
    columns = [np.full((2, 1), value) for value in args]  # parameters as arrays: the same variates
    turn = [*CONTINUOUS, *COUNTS].index(name) % 3
    if columns and (not device.startswith("hip") or turn == 0):
        both = getattr(default_rng(20), name)(*[pa.asarray(c, device=device) for c in columns], (2, 8))
        assert both.tolist() == x[:16].reshape(2, 8).tolist()
    assert getattr(default_rng(1), name)(*args, (0, 3), device=device).shape == (0, 3)


@pytest.mark.slow
def test_other_ways_of_the_same_distribution():
    rng = default_rng(4)
    for kappa in (1e-9, 1e-6, 0.3, 1e4, 1e7):
        assert far(rng.vonmises(0.0, kappa, N).get(), stats.vonmises(max(kappa, 1e-12)).cdf) < 2.3
    turned = rng.vonmises(3.0, 1.0, N).get()
    assert (-np.pi <= turned).all()
    assert (turned < np.pi).all()
    assert far(rng.noncentral_chisquare(0.5, 2.0, N).get(), stats.ncx2(0.5, 2).cdf) < 2.3
    assert unlike(rng.logseries(0.2, N).get(), stats.logser(0.2).pmf(np.arange(20))) < 6
    assert rng.geometric(1e-300).item() == 9223372036854774784
    assert far(rng.hypergeometric(10**9, 10**9, 10**6, N).get(), stats.norm(500_000, 499.875).cdf) < 2.3
    assert rng.hypergeometric([5, 0, 7, 0], [0, 5, 3, 0], [2, 2, 10, 0]).tolist() == [2, 0, 7, 0]
    assert rng.zipf(2000.0, 2).tolist() == [1, 1]
    assert rng.weibull(0.0).item() == 0.0


def test_vectors(device):
    rng = default_rng(5)
    counts = rng.multinomial(100, [0.2, 0.3, 0.5], N, device=device)
    assert (counts.shape, counts.dtype) == ((N, 3), pa.int64)
    found = counts.get()
    assert (found.sum(1) == 100).all()
    np.testing.assert_allclose(found.mean(0), [20, 30, 50], rtol=0.01)
    np.testing.assert_allclose(found.var(0), [16, 21, 25], rtol=0.05)
    several = rng.multinomial([10, 20], [[0.5, 0.5], [0.1, 0.9]], device=device)
    assert several.sum(axis=1).tolist() == [10, 20]
    colors = rng.multivariate_hypergeometric([16, 8, 4], 6, N, device=device).get()
    assert (colors.sum(1) == 6).all()
    np.testing.assert_allclose(colors.mean(0), np.array([16, 8, 4]) * 6 / 28, rtol=0.02)
    shares = rng.dirichlet([1.0, 2.0, 3.0], N, device=device).get()
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-15)
    assert far(shares[:, 0], stats.beta(1, 5).cdf) < 2.3
    tiny = rng.dirichlet([0.01, 0.02, 0.03], N, device=device).get()
    np.testing.assert_allclose(tiny.mean(0), [1 / 6, 1 / 3, 1 / 2], atol=0.02)
    for method in ("svd", "eigh", "cholesky"):
        x = rng.multivariate_normal([1, 2], [[2, 0.5], [0.5, 1]], N, method=method, device=device).get()
        np.testing.assert_allclose(np.cov(x.T), [[2, 0.5], [0.5, 1]], atol=0.08)
        np.testing.assert_allclose(x.mean(0), [1, 2], atol=0.05)
    a, b = (default_rng(6).multivariate_normal([1, 2], np.eye(2), 50, device=d) for d in (device, "cpu"))
    assert a.get().tobytes() == b.tobytes()
    a, b = (default_rng(6).dirichlet([0.5, 2.0], 50, device=d) for d in (device, "cpu"))
    assert a.get().tobytes() == b.tobytes()


def test_parameters_that_are_none():
    rng = default_rng(1)
    for call, message in (
        (lambda: rng.laplace(0, -1), r"laplace\(\): scale is from 0 to inf, got -1"),
        (lambda: rng.geometric(0.0), r"geometric\(\): p is more than 0, and at most 1, got 0.0"),
        (lambda: rng.logseries(1.0), r"logseries\(\): p is from 0 to 1, got 1.0"),
        (lambda: rng.zipf(1.0), r"zipf\(\): a is more than 1 and finite, got 1.0"),
        (lambda: rng.wald([1.0, 0.0], 1), r"wald\(\): mean is more than 0"),
        (lambda: rng.negative_binomial(1e300, 0.5), "n is too large or p too small"),
        (lambda: rng.vonmises(0, np.inf), "kappa is from 0 to"),
        (lambda: rng.triangular(3, 2, 4), "left <= mode <= right and left < right are needed, got 3, 2, 4"),
        (lambda: rng.hypergeometric(1, 1, 3), "nsample is at most ngood"),
        (lambda: rng.multinomial(1, [0.9, 0.9, 0.1]), "sum is at most 1"),
        (lambda: rng.multinomial(-1, [1.0]), "n is from 0 to"),
        (lambda: rng.uniform(-1e308, 1e308), "high - low is from 0 to"),
        (lambda: rng.uniform([0, 1], [1, 0]), "high - low is from 0 to"),
        (lambda: pa.random.uniform(0, np.inf), "high - low is from 0 to"),
        (lambda: rng.multivariate_hypergeometric([1, 1], 3), "nsample is from 0 to the sum of colors"),
        (lambda: rng.dirichlet([1.0, 0.0]), "alpha is a vector of numbers of more than 0"),
        (lambda: rng.multivariate_normal([1, 2], np.eye(3)), r"got shapes \(2,\) and \(3, 3\)"),
        (lambda: rng.multivariate_normal([0], [[1]], method="qr"), "method is svd, eigh or cholesky"),
        (lambda: rng.multivariate_normal([0, 0], [[1, 2], [0, 1]], check_valid="raise"), "not symmetric"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.warns(RuntimeWarning, match="not symmetric positive-semidefinite"):
        rng.multivariate_normal([0, 0], [[1, 2], [0, 1]])
