"""Further distributions, computed from the variates of `variates` with the functions of `rng_math`.

An element's value depends on its counter and parameters only, and has the same bits on every device. Each function
takes its parameters as float64, then the counter. Several variates of one counter differ by a lane number.
"""

from __future__ import annotations

from typing import Any

from ...array import ndarray
from ...dtypes import uint32
from ...jit.functions import func
from ...lang.markers import kernel_math, ndrange
from ..library_kernel import library_kernel
from .gamma_variates import gamma_by_rejection
from .rng_math import exp, log, log1p, log_binomial, normal_quantile
from .variates import binomial, lognormal, poisson, two_uniforms

HIGHEST = 9223372036854774784.0  # the largest float64 that int64 holds
PI = 3.141592653589793


# ---- one uniform variate, through the inverse of the distribution


@func
def uniform(counter: Any, stream: Any, key: Any) -> Any:
    u, _ = two_uniforms(counter, uint32(0), stream, key)
    return u


@func
def expm1(x: Any) -> Any:
    """exp(x) - 1, near 0 by its Taylor series."""
    if abs(x) > 0.5:
        return exp(x) - 1.0
    r = 1.0 + x / 13 * (1.0 + x / 14 * (1.0 + x / 15 * (1.0 + x / 16)))
    r = 1.0 + x / 9 * (1.0 + x / 10 * (1.0 + x / 11 * (1.0 + x / 12 * r)))
    r = 1.0 + x / 5 * (1.0 + x / 6 * (1.0 + x / 7 * (1.0 + x / 8 * r)))
    return x * (1.0 + x / 2 * (1.0 + x / 3 * (1.0 + x / 4 * r)))


@func
def laplace(loc: Any, scale: Any, counter: Any, stream: Any, key: Any) -> Any:
    u = uniform(counter, stream, key)
    return loc + scale * (log(2.0 * u) if u < 0.5 else -log(2.0 * (1.0 - u)))


@func
def logistic(loc: Any, scale: Any, counter: Any, stream: Any, key: Any) -> Any:
    u = uniform(counter, stream, key)
    return loc + scale * (log(u) - log(1.0 - u))


@func
def gumbel(loc: Any, scale: Any, counter: Any, stream: Any, key: Any) -> Any:
    return loc - scale * log(-log(uniform(counter, stream, key)))


@func
def rayleigh(scale: Any, counter: Any, stream: Any, key: Any) -> Any:
    return scale * kernel_math.sqrt(-2.0 * log(uniform(counter, stream, key)))


@func
def weibull(a: Any, counter: Any, stream: Any, key: Any) -> Any:
    if a == 0.0:
        return 0.0
    return exp(log(-log(uniform(counter, stream, key))) / a)


@func
def pareto(a: Any, counter: Any, stream: Any, key: Any) -> Any:
    return expm1(-log(uniform(counter, stream, key)) / a)


@func
def power(a: Any, counter: Any, stream: Any, key: Any) -> Any:
    return exp(log(uniform(counter, stream, key)) / a)


@func
def triangular(left: Any, mode: Any, right: Any, counter: Any, stream: Any, key: Any) -> Any:
    u = uniform(counter, stream, key)
    width = right - left
    if u * width <= mode - left:
        return left + kernel_math.sqrt(u * width * (mode - left))
    return right - kernel_math.sqrt((1.0 - u) * width * (right - mode))


@func
def geometric(p: Any, counter: Any, stream: Any, key: Any) -> Any:
    if p >= 1.0:
        return 1.0
    return min(max(kernel_math.ceil(log(uniform(counter, stream, key)) / log1p(-p)), 1.0), HIGHEST)


# ---- several variates of one counter


@func
def standard_cauchy(counter: Any, stream: Any, key: Any) -> Any:
    u, v = two_uniforms(counter, uint32(0), stream, key)
    return normal_quantile(u) / normal_quantile(v)


@func
def standard_t(df: Any, counter: Any, stream: Any, key: Any) -> Any:
    u, _ = two_uniforms(counter, uint32(1 << 31), stream, key)
    x, y = gamma_by_rejection(0.5 * df, counter, uint32(0), stream, key)
    return normal_quantile(u) * kernel_math.sqrt(0.5 * df / x) * exp(-0.5 * y)


@func
def f(dfnum: Any, dfden: Any, counter: Any, stream: Any, key: Any) -> Any:
    x, x_log = gamma_by_rejection(0.5 * dfnum, counter, uint32(0), stream, key)
    y, y_log = gamma_by_rejection(0.5 * dfden, counter, uint32(1 << 31), stream, key)
    return x / y * exp(x_log - y_log) * (dfden / dfnum)


@func
def noncentral_chisquare(df: Any, nonc: Any, counter: Any, stream: Any, key: Any) -> Any:
    """Of more than one degree of freedom, one shifted square more than chi-square; else a mixture."""
    shape = 0.5 * df
    square = 0.0
    if df > 1.0:
        u, _ = two_uniforms(counter, uint32(0), stream, key)
        z = normal_quantile(u) + kernel_math.sqrt(nonc)
        square = z * z
        shape = 0.5 * (df - 1.0)
    elif nonc > 0.0:
        shape += poisson(0.5 * nonc, counter, stream, key)
    x, y = gamma_by_rejection(shape, counter, uint32(1 << 31), stream, key)
    return 2.0 * x * exp(y) + square


@func
def noncentral_f(dfnum: Any, dfden: Any, nonc: Any, counter: Any, stream: Any, key: Any) -> Any:
    x = noncentral_chisquare(dfnum, nonc, counter, stream, key)
    y, y_log = gamma_by_rejection(0.5 * dfden, counter, uint32(3 << 30), stream, key)
    return x * dfden / (dfnum * 2.0 * y * exp(y_log))


@func
def wald(mean: Any, scale: Any, counter: Any, stream: Any, key: Any) -> Any:
    """J. Michael, W. Schucany, R. Haas, Generating random variates using transformations with multiple roots
    (1976); the smaller root without cancellation."""
    u, v = two_uniforms(counter, uint32(0), stream, key)
    z = normal_quantile(u)
    y = mean * z * z
    if y == 0.0:
        return mean
    root = y + kernel_math.sqrt(y * y + 4.0 * scale * y)
    x = mean * (4.0 * scale * y / (root * root))
    return x if v * (mean + x) <= mean else mean * (mean / x)


@func
def arc_cosine(x: Any) -> Any:
    """acos(x) as twice the arc tangent of sqrt((1 - x) / (1 + x)), whose angle is halved twice for the Taylor
    series."""
    t = kernel_math.sqrt(max(1.0 - x, 0.0) / max(1.0 + x, 1e-300))
    far = t > 1.0
    t = 1.0 / t if far else t
    t = t / (1.0 + kernel_math.sqrt(1.0 + t * t))
    t = t / (1.0 + kernel_math.sqrt(1.0 + t * t))
    z = t * t
    r = 1 / 17 - z * (1 / 19 - z * (1 / 21 - z * (1 / 23 - z / 25)))
    r = 1 / 9 - z * (1 / 11 - z * (1 / 13 - z * (1 / 15 - z * r)))
    angle = 4.0 * t * (1.0 - z * (1 / 3 - z * (1 / 5 - z * (1 / 7 - z * r))))
    return 2.0 * (0.5 * PI - angle if far else angle)


@func
def vonmises(mu: Any, kappa: Any, counter: Any, stream: Any, key: Any) -> Any:
    """D. Best, N. Fisher, Efficient simulation of the von Mises distribution (1979). The cosine of a uniform
    angle comes from a point of the unit disk."""
    attempt = uint32(0)
    angle = 0.0
    if kappa < 1e-8:
        angle = PI * (2.0 * uniform(counter, stream, key) - 1.0)
    elif kappa > 1e6:  # nearly normal
        angle = min(max(normal_quantile(uniform(counter, stream, key)) / kernel_math.sqrt(kappa), -PI), PI)
    else:
        r = 1.0 + kernel_math.sqrt(1.0 + 4.0 * kappa * kappa)
        rho = (r - kernel_math.sqrt(2.0 * r)) / (2.0 * kappa)
        s = (1.0 + rho * rho) / (2.0 * rho) if kappa > 1e-5 else 1.0 / kappa + kappa
        done = False
        while not done:
            a, b = two_uniforms(counter, attempt, stream, key)
            u, v = two_uniforms(counter, attempt + uint32(1), stream, key)
            attempt += uint32(2)
            a = 2.0 * a - 1.0
            square = a * a + b * b
            if square <= 1.0:
                z = (a * a - b * b) / square
                w = min(max((1.0 + s * z) / (s + z), -1.0), 1.0)
                y = kappa * (s - w)
                if y * (2.0 - y) - v >= 0.0 or (y > 0.0 and log(y / v) + 1.0 - y >= 0.0):
                    done = True
                    angle = arc_cosine(w) if u >= 0.5 else -arc_cosine(w)
    angle += mu
    return angle - 2.0 * PI * kernel_math.floor((angle + PI) / (2.0 * PI))


@func
def negative_binomial(n: Any, p: Any, counter: Any, stream: Any, key: Any) -> Any:
    """Poisson variates of a gamma-distributed mean."""
    if p >= 1.0:
        return 0.0
    x, y = gamma_by_rejection(n, counter, uint32(1 << 31), stream, key)
    return poisson(x * exp(y) * ((1.0 - p) / p), counter, stream, key)


@func
def logseries(p: Any, counter: Any, stream: Any, key: Any) -> Any:
    """A. Kemp, Efficient generation of logarithmically distributed pseudo-random variables (1981)."""
    attempt = uint32(0)
    k = 0.0
    while k < 1.0:
        u, v = two_uniforms(counter, attempt, stream, key)
        attempt += uint32(1)
        if v >= p:
            k = 1.0
        else:
            q = -expm1(log1p(-p) * u)
            k = 1.0 if v >= q else 2.0
            if v <= q * q:
                k = min(kernel_math.floor(1.0 + log(v) / log(q)), HIGHEST)
    return k


@func
def zipf(a: Any, counter: Any, stream: Any, key: Any) -> Any:
    """L. Devroye, Non-uniform random variate generation (1986), X.6.1; what int64 doesn't hold is left
    out."""
    if a >= 1025.0:
        return 1.0
    less = a - 1.0
    b = exp(less * 0.6931471805599453)
    least = exp(-less * 43.66827237527655)
    attempt = uint32(0)
    k = 0.0
    done = False
    while not done:
        u, v = two_uniforms(counter, attempt, stream, key)
        attempt += uint32(1)
        k = kernel_math.floor(exp(-log(u * (1.0 - least) + least) / less))
        if k >= 1.0 and k <= HIGHEST:
            t = less * (log(1.0 + 1.0 / k) if k < 4.0 else log1p(1.0 / k))
            done = v * k * expm1(t) / (b - 1.0) <= exp(t) / b
    return k


@func
def log_hypergeometric(k: Any, good: Any, bad: Any, sample: Any) -> Any:
    """Logarithm of the probability of k good ones, from three binomial ones (C. Loader)."""
    p = sample / (good + bad)
    return log_binomial(k, good, p) + log_binomial(sample - k, bad, p) - log_binomial(sample, good + bad, p)


@func
def hypergeometric_by_inversion(good: Any, bad: Any, sample: Any, counter: Any, stream: Any, key: Any) -> Any:
    """Hypergeometric by inversion that goes out from the mode to both sides, for sample <= half of all."""
    low, high = max(0.0, sample - bad), min(sample, good)
    mode = min(max(kernel_math.floor((sample + 1.0) * (good + 1.0) / (good + bad + 2.0)), low), high)
    u = uniform(counter, stream, key)
    up = exp(log_hypergeometric(mode, good, bad, sample))
    down = up
    above, below, k = mode, mode, mode
    u -= up
    while u > 0.0 and (up > 1e-30 or down > 1e-30):
        up *= (good - above) * (sample - above) / ((above + 1.0) * (bad - sample + above + 1.0))
        above += 1.0
        u -= up
        k = above
        if u > 0.0:
            down *= below * (bad - sample + below) / ((good - below + 1.0) * (sample - below + 1.0))
            below -= 1.0
            u -= down
            k = below
    return min(max(k, low), high)


@func
def hypergeometric(good: Any, bad: Any, sample: Any, counter: Any, stream: Any, key: Any) -> Any:
    remaining = good + bad - sample
    few = min(sample, remaining)
    k = 0.0
    if few > 0.0 and good > 0.0:
        k = few if bad == 0.0 else hypergeometric_by_inversion(good, bad, few, counter, stream, key)
    return k if sample <= remaining else good - k


# by name; gamma and beta have kernels of their own
VARIATES: dict[str, Any] = {
    "binomial": binomial, "f": f, "geometric": geometric, "gumbel": gumbel,
    "hypergeometric": hypergeometric, "laplace": laplace, "logistic": logistic, "lognormal": lognormal,
    "logseries": logseries, "negative_binomial": negative_binomial,
    "noncentral_chisquare": noncentral_chisquare, "noncentral_f": noncentral_f, "pareto": pareto,
    "poisson": poisson, "power": power, "rayleigh": rayleigh, "standard_cauchy": standard_cauchy,
    "standard_t": standard_t, "triangular": triangular, "vonmises": vonmises, "wald": wald,
    "weibull": weibull, "zipf": zipf,
}  # fmt: skip


# ---- rows of variates


def normalize_rows(x: ndarray) -> None:
    """Divides each row of the matrix `x` by its sum, added up from the left."""
    divide_by_sums()(x)


def combine_rows(out: ndarray, x: ndarray, factor: ndarray, start: ndarray) -> None:
    """`out = start + x @ factor`, products added up from the left; `start` is a row."""
    add_products()(out, x, factor, start)


@library_kernel
def divide_by_sums(x: Any) -> None:
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
        for j in range(x.shape[1]):
            x[i, j] = x[i, j] / total


@library_kernel
def add_products(out: Any, x: Any, factor: Any, start: Any) -> None:
    for i, j in ndrange(out.shape[0], out.shape[1]):
        total = start[j]
        for k in range(x.shape[1]):
            total += x[i, k] * factor[k, j]
        out[i, j] = total
