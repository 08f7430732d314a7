"""What is drawn follows its distribution: moments, and the largest distance from the exact distribution (a
Kolmogorov-Smirnov or chi-square test), with fixed seeds and bounds that a right generator misses once in
10 000 seeds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.kernels.random import rng_math
from pyarray.random import default_rng

FEW = examples(40)
N = 100_000

phi = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))


def far(x, cdf):
    """sqrt(n) times the largest distance between the distribution of the sample and the exact one: above 2.3
    by chance once in 20 000 times."""
    x = np.sort(np.asarray(x, float))
    exact, n = cdf(x), len(x)
    steps = np.arange(n + 1) / n
    return math.sqrt(n) * max((exact - steps[:-1]).max(), (steps[1:] - exact).max())


def unlike(x, probabilities):
    """How many standard deviations the chi-square statistic of counts of 0, 1, ... is above its mean; what is
    rare is lumped."""
    odds = np.asarray(probabilities)
    counts = np.bincount(x, minlength=len(odds)).astype(float)
    common = odds * len(x) >= 10
    expected = np.append(odds[common], max(1 - odds[common].sum(), 0)) * len(x)
    found = np.append(counts[: len(odds)][common], len(x) - counts[: len(odds)][common].sum())
    if expected[-1] < 1:
        expected, found = expected[:-1], found[:-1]
    degrees = max(len(expected) - 1, 1)
    return (((found - expected) ** 2 / expected).sum() - degrees) / math.sqrt(2 * degrees)


CONTINUOUS = {
    "random": (lambda g: g.random(N), lambda x: x),
    "random32": (lambda g: g.random(N, "float32"), lambda x: x),
    "uniform": (lambda g: g.uniform(-3, 5, N), lambda x: (x + 3) / 8),
    "normal": (lambda g: g.normal(1, 2, N), lambda x: phi((x - 1) / 2)),
    "standard_normal": (lambda g: g.standard_normal(N), phi),
    "normal32": (lambda g: g.standard_normal(N, "float32"), phi),
    "exponential": (lambda g: g.exponential(3.0, N), lambda x: -np.expm1(-x / 3)),
    "exponential32": (lambda g: g.standard_exponential(N, "float32"), lambda x: -np.expm1(-x)),
    "lognormal": (lambda g: g.lognormal(0.5, 0.25, N), lambda x: phi((np.log(x) - 0.5) / 0.25)),
    "gamma of 1": (lambda g: g.gamma(1.0, 2.0, N), lambda x: -np.expm1(-x / 2)),
    "gamma of 2": (lambda g: g.gamma(2.0, 1.0, N), lambda x: 1 - np.exp(-x) * (1 + x)),
    "gamma of a half": (lambda g: g.gamma(0.5, 1.0, N), lambda x: 2 * phi(np.sqrt(2 * x)) - 1),
    "chisquare": (lambda g: g.chisquare(2, N), lambda x: -np.expm1(-x / 2)),
    "beta of 2 and 1": (lambda g: g.beta(2.0, 1.0, N), lambda x: x**2),
    "arcsine": (lambda g: g.beta(0.5, 0.5, N), lambda x: 2 / np.pi * np.arcsin(np.sqrt(x))),
}


@pytest.mark.parametrize(("draw", "cdf"), CONTINUOUS.values(), ids=CONTINUOUS)
def test_continuous(draw, cdf):
    assert far(draw(default_rng(20)).get(), cdf) < 2.3


def test_gamma_of_a_large_shape_is_nearly_normal():
    x = default_rng(1).gamma(1e6, 1.0, N).get()
    assert far((x - 1e6) / 1e3, phi) < 2.6


def test_bounds_of_uniform_variates_in_any_order():
    x = pa.random.RandomState(1).uniform(1, -1, 1000).get()
    assert ((x > -1) & (x <= 1)).all()
    assert abs(x.mean()) < 0.1


@pytest.mark.parametrize("shape", [1e-300, 2.3e-308, 1e-308, 5e-324])
def test_beta_of_shapes_whose_quotients_overflow(shape):
    x = default_rng(2).beta(shape, shape, 2000).get()
    assert set(x) == {0.0, 1.0}
    assert abs(x.mean() - 0.5) < 0.1
    assert set(default_rng(2).dirichlet([shape] * 2, 50).get().reshape(-1)) == {0.0, 1.0}


@pytest.mark.slow
def test_beta_of_tiny_parameters_is_at_the_ends():
    x = default_rng(1).beta(1e-3, 1e-3, N).get()
    assert not np.isnan(x).any()
    assert abs(x.mean() - 0.5) < 0.01
    assert ((x < 0.01) | (x > 0.99)).mean() > 0.98


@pytest.mark.parametrize("mean", [0.3, 4.0, 9.99, 10.0, 37.5, 400.0])
def test_poisson(mean):
    x = default_rng(30).poisson(mean, N).get()
    k = np.arange(int(mean + 12 * math.sqrt(mean) + 12))
    assert unlike(x, [math.exp(-mean + n * math.log(mean) - math.lgamma(n + 1)) for n in k.tolist()]) < 5
    assert abs(x.mean() - mean) < 5 * math.sqrt(mean / N)


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (20, 0.1), (20, 0.9), (30, 0.5), (100, 0.37), (2000, 0.995)])
def test_binomial(n, p):
    x = default_rng(30).binomial(n, p, N).get()
    odds = [
        math.exp(
            math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
            + k * math.log(p) + (n - k) * math.log1p(-p)
        )
        for k in range(n + 1)
    ]  # fmt: skip
    assert unlike(x, odds) < 5
    assert abs(x.mean() - n * p) < 5 * math.sqrt(n * p * (1 - p) / N)


@pytest.mark.parametrize(("name", "args", "mean"), [("poisson", (1e14,), 1e14), ("binomial", (10**15, 0.25), 2.5e14)])
def test_counts_of_many(name, args, mean):
    x = getattr(default_rng(4), name)(*args, N).get()
    deviation = math.sqrt(mean if name == "poisson" else mean * 0.75)
    assert far((x - mean) / deviation, phi) < 2.3


@pytest.mark.parametrize(("low", "high"), [(0, 2), (-3, 4), (0, 1000), (5, 100_000)])
def test_integers_are_equally_likely(low, high):
    x = default_rng(40).integers(low, high, N).get() - low
    assert x.min() >= 0
    assert x.max() < high - low
    assert unlike(x, np.full(high - low, 1 / (high - low))) < 5 if high - low < 9000 else far(
        (x + 0.5) / (high - low), lambda u: u) < 2.3  # fmt: skip


@pytest.mark.parametrize("width", [3 << 30, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 3 << 61, 1 << 64])
def test_wide_ranges(width):
    """Where plain scaling of a word would make some values twice as likely as others."""
    x = default_rng(50).integers(0, width - 1, N, "uint64", endpoint=True).get()
    assert far(x.astype(float) / width, lambda u: u) < 2.3
    if width == 3 << 30:
        assert unlike((x % 3).astype(int), [1 / 3] * 3) < 5


@FEW
@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 63), (1 << 63) - 1), st.booleans())
def test_integers_stay_within_bounds(a, b, endpoint):
    low, high = min(a, b), max(a, b) + (not endpoint and max(a, b) < (1 << 63) - 1)
    if low == high and not endpoint:
        return
    x = default_rng(1).integers(low, high, 20, endpoint=endpoint).tolist()
    assert all(low <= v < high + endpoint for v in x)


@examples(20)
@given(st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]))
def test_whole_ranges(dtype):
    low, high = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = default_rng(2).integers(int(low), int(high), 2000, dtype, endpoint=True)
    assert str(x.dtype) == dtype
    middle = (int(low) + int(high)) / 2
    assert abs((x.get() > middle).mean() - 0.5) < 0.06


@pytest.mark.slow
def test_parameters_that_are_arrays(device):
    g = default_rng(3)
    low, high = pa.asarray([[0], [100]], device=device), pa.asarray([5, 10, 200], device=device) + 100
    x = g.integers(low, high, device=device)
    assert x.shape == (2, 3)
    assert x.device == low.device
    assert bool(pa.all((x >= low) & (x < high)))
    assert g.integers(pa.asarray([1, 2]), pa.asarray([1, 2]), endpoint=True).tolist() == [1, 2]
    assert g.integers(0, pa.asarray([1, 1]), size=(3, 2)).tolist() == [[0, 0]] * 3
    loc, scale = pa.asarray([0.0, 1000.0], device=device), pa.asarray([[1.0], [0.0]], device=device)
    y = g.normal(loc, scale)
    assert y.shape == (2, 2)
    assert y[1].tolist() == [0.0, 1000.0]
    assert abs(y[0, 1].item() - 1000) < 9
    assert g.normal(loc, 1.0, size=(4, 2), dtype="float32").dtype == pa.float32
    assert g.poisson(pa.asarray([0.0, 1e6], device=device)).tolist()[0] == 0
    assert g.binomial([5, 7], [[0.0], [1.0]]).tolist() == [[0, 0], [5, 7]]
    assert g.exponential([0.0, 1.0])[0].item() == 0.0
    assert g.gamma(pa.asarray([0.0, 5.0], device=device), 2.0, size=(3, 2)).shape == (3, 2)


def test_normal_quantiles_are_exact_to_a_few_units():
    @pa.kernel
    def quantiles(out, p):
        for i in range(out.shape[0]):
            out[i] = rng_math.normal_quantile(p[i])

    known = {0.5: 0.0, 0.975: 1.959963984540054, 0.001: -3.090232306167813, 1e-8: -5.612001244174789}
    out = pa.zeros(len(known))
    quantiles(out, pa.asarray(list(known)))
    np.testing.assert_allclose(out.get(), list(known.values()), rtol=1e-14, atol=0)


def test_logarithms_and_powers():
    @pa.kernel
    def both(logs, powers, x):
        for i in range(x.shape[0]):
            logs[i] = rng_math.log(x[i])
            powers[i] = rng_math.exp(rng_math.log(x[i]))

    x = np.concatenate([np.exp(np.linspace(-700, 700, 2001)), np.linspace(0.5, 2, 2001)])
    logs, powers = pa.zeros(x.size), pa.zeros(x.size)
    both(logs, powers, pa.asarray(x))
    np.testing.assert_allclose(logs.get(), np.log(x), rtol=1e-15, atol=0)
    np.testing.assert_allclose(powers.get(), x, rtol=5e-13)


# ---- order


def test_permutations_are_equally_likely():
    g, seen = default_rng(6), np.zeros(24, int)
    orders = [g.permutation(4).tolist() for _ in range(2400)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    seen = [int(sum(x * 4**k for k, x in enumerate(order))) for order in orders]
    assert unlike(np.unique(seen, return_inverse=True)[1], np.full(24, 1 / 24)) < 5


@examples(20)
@given(st.integers(0, 40), st.integers(0, 3))
def test_order_keeps_the_elements(n, axis):
    x = np.arange(n * 6).reshape(n, 2, 3) if axis < 3 else np.arange(n)
    k = axis if axis < 3 else 0
    g = default_rng(9)
    y = g.permutation(x, axis=k).get()
    assert sorted(np.moveaxis(y, k, 0).tolist()) == np.moveaxis(x, k, 0).tolist()
    z = pa.array(x)
    g.shuffle(z[..., ::-1], axis=k)
    assert sorted(z.ravel().tolist()) == sorted(x.ravel().tolist())
    w = g.permuted(x, axis=k)
    np.testing.assert_array_equal(np.sort(w.get(), k), np.sort(x, k))
    assert sorted(g.permuted(x).ravel().tolist()) == sorted(x.ravel().tolist())


def test_shuffle_and_permuted_into():
    x = np.arange(50)
    default_rng(1).shuffle(x)
    assert sorted(x) == list(range(50))
    assert x.tolist() != list(range(50))
    out = pa.zeros(50, dtype=pa.int64)
    assert default_rng(1).permuted(pa.arange(50), out=out) is out
    assert sorted(out.tolist()) == list(range(50))
    frozen = pa.arange(3)
    frozen.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        default_rng(1).shuffle(frozen)


def test_choice():
    g, odds = default_rng(7), [0.5, 0.0, 0.2, 0.3]
    x = g.choice(4, N, p=odds).get()
    assert unlike(x, odds) < 5
    assert not (x == 1).any()
    first = [g.choice(4, 3, False, odds).tolist() for _ in range(2000)]
    assert all(sorted(c) == [0, 2, 3] for c in first)
    assert unlike(np.array([c[0] for c in first]), odds) < 5
    # the second, given the first one
    second = np.array([c[1] for c in first if c[0] == 0])
    assert unlike(second, [0, 0, 0.4, 0.6]) < 5
    m = pa.asarray([[1, 2, 3], [4, 5, 6]])
    assert g.choice(m, (2, 2), axis=1).shape == (2, 2, 2)
    assert sorted(g.choice(m, 3, replace=False, axis=1)[0].tolist()) == [1, 2, 3]
    assert g.choice(5).shape == ()
    assert g.choice(5, ()).shape == ()
    assert len(set(g.choice(1000, 1000, replace=False).tolist())) == 1000


def test_few_of_many_without_replacement():
    g, n = default_rng(8), 4000
    pairs = np.array([g.choice(16, 2, replace=False).tolist() for _ in range(n)])
    assert (pairs[:, 0] != pairs[:, 1]).all()
    first, step = pairs[:, 0], (pairs[:, 1] - pairs[:, 0]) % 16 - 1  # every pair once
    assert unlike(first * 15 + step, np.full(240, 1 / 240)) < 5
    odds = np.array([0.5, 0.0, 0.2, *[0.3 / 21] * 21])
    pairs = np.array([g.choice(24, 3, False, odds).tolist() for _ in range(n)])
    assert all(len(set(row)) == 3 for row in pairs.tolist())
    assert unlike(pairs[:, 0], odds) < 5
    rest = np.where(np.arange(24) == 0, 0.0, odds) / 0.5
    assert unlike(pairs[pairs[:, 0] == 0, 1], rest) < 5
    for count, wanted in ((10**5, 12_500), (10**12, 1000), (8, 1), (1, 0)):
        drawn = g.choice(count, wanted, replace=False).get()
        assert len(set(drawn.tolist())) == wanted
        assert ((drawn >= 0) & (drawn < count)).all()
    steep = 0.5 ** np.arange(1, 65)  # the same few again and again
    steep[-1] += 1 - steep.sum()
    assert len(set(g.choice(64, 8, False, steep).tolist())) == 8


def test_parameters_of_neighbours_do_not_matter(device):
    shapes = np.resize([0.5, 3.0, 0.0, 1.0, 1e-3, 40.0, 0.2], 2000)
    for draw in (lambda g, a: g.gamma(a, 2.0, 2000), lambda g, a: g.beta(np.maximum(a, 1e-3), 0.7, 2000)):
        together = draw(default_rng(3), pa.asarray(shapes, device=device)).get()
        for shape in set(shapes.tolist()):
            alone = draw(default_rng(3), pa.asarray(shape, device=device)).get()
            np.testing.assert_array_equal(together[shapes == shape], alone[shapes == shape])
    single = default_rng(3).gamma(0.5, 1e-30, 500, "float32", device=device).get()
    np.testing.assert_array_equal(single, default_rng(3).gamma(0.5, 1e-30, 500).get().astype("float32"))


def test_bytes():
    data = default_rng(1).bytes(10_001)
    assert isinstance(data, bytes)
    assert len(data) == 10_001
    assert unlike(np.frombuffer(data, np.uint8), np.full(256, 1 / 256)) < 5


def test_pairs_of_normal_variates_are_points_of_a_radius_and_an_angle(device):
    @pa.kernel
    def points(out, a, b):
        for i in range(a.size):
            x, y = rng_math.normal_pair(a[i], b[i])
            out[0, i] = x
            out[1, i] = y

    words = np.random.default_rng(1).integers(0, 1 << 32, (2, 50000), dtype=np.uint32)
    words[0, :6] = 0, 1, (1 << 32) - 1, (1 << 32) - 2, 1 << 31, 1 << 30
    words[1, 6:14] = 0, (1 << 32) - 1, 1 << 29, (1 << 29) - 1, 1 << 30, 1 << 31, 3 << 29, 3 << 30
    found = pa.empty((2, 50000), dtype="float32", device=device)
    points(found, *(pa.asarray(w, device=device) for w in words))
    radius = np.sqrt(-2 * np.log((words[0] + 1.0) / 2.0**32))
    angle = (words[1] << np.uint32(2)).view(np.int32) * (np.pi / 2**33)
    point = np.stack([np.where(words[1] >> 30 & 1, -1, 1) * np.cos(angle), np.sin(angle)])
    point = radius * np.where(words[1] >> 31, point[::-1], point)
    got = found.get()
    np.testing.assert_allclose(got, point, atol=1e-4, rtol=1e-5)
    assert np.abs(got).max() < 6.67


def test_pairs_of_normal_variates_in_float64_are_exact_to_a_few_units(device):
    @pa.kernel
    def points(out, words):
        for i in range(out.shape[1]):
            x, y = rng_math.normal_pair_64(words[0, i], words[1, i], words[2, i], words[3, i])
            out[0, i] = x
            out[1, i] = y

    w = np.random.default_rng(1).integers(0, 1 << 32, (4, 50000), dtype=np.uint32)
    w[:2, :6] = [[(1 << 32) - 1, 0, 1 << 31, 3 << 30, 0x4AFB0CCC, 1], [(1 << 32) - 1, 0, 0, 1 << 12, 0, 5]]
    w[2:, 6:10] = [[0, (1 << 32) - 1, 1 << 31, (1 << 31) - 1], [2, 1, 1 << 12, (1 << 32) - 1]]
    w[2:, 0] = 0, 2
    found = pa.empty((2, 50000), device=device)
    points(found, pa.asarray(w, device=device))
    high, low = w[::2].astype(np.uint64), w[1::2].astype(np.uint64)
    u, v = (high << np.uint64(20) | low >> np.uint64(12)).astype(np.longdouble) / np.longdouble(2**52)
    radius, angle = np.sqrt(-2 * np.log(1 - u)), (v - 0.5) * np.arccos(np.longdouble(0))
    x, y = np.where(w[3] & 1, -1, 1) * np.cos(angle), np.sin(angle)
    point = radius * np.where(w[3] & 2, [y, x], [x, y])
    np.testing.assert_allclose(found.get(), point.astype(float), atol=0, rtol=1e-15)
    far_out = np.hypot(*found.get()[:, 0])
    assert abs(far_out - math.sqrt(104 * math.log(2))) < 1e-14
