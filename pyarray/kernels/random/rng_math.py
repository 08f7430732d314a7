"""Functions of random variates in + - * / and sqrt alone, which IEEE 754 rounds the same way everywhere.

So every device gets the same bits, which libraries' `log` and `exp` don't promise. All are in float64, but for
`normal_pair`. Arguments are what generators make: finite, and positive where a logarithm is taken. Errors are a
few units in the last place.
"""

from __future__ import annotations

from typing import Any

from ...dtypes import float32, float64, int32, uint32, uint64
from ...jit.functions import func
from ...lang.markers import kernel_math

LOG_TWO = 0.6931471805599453
LOG_TWO_REST = 2.3190468138462996e-17  # what the line above rounds away


@func
def twice_atanh(s: Any) -> Any:
    """log((1 + s) / (1 - s)) for |s| <= 0.1716, by its Taylor series."""
    z = s * s
    r = 1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19 + z * (1 / 21 + z * (1 / 23)))))
    return 2.0 * s + 2.0 * s * z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * r)))))


@func
def halved(x: Any, e: Any, width: Any) -> Any:
    """x over 2**width, and e more by as much, where x is that large. A select and no branch, so that what
    takes logarithms can be vectorised."""
    large = x >= 1.0 * (1 << width)
    return x * (1.0 / (1 << width)) if large else x, e + 1.0 * width if large else e


@func
def scaled_log(x: Any, e: Any) -> Any:
    """log(x * 2**e) for 2**-64 <= x <= 1 and a whole e: x = m * 2**n with m around 1."""
    x, e = halved(x * 2.0**64, e - 64.0, 32)
    x, e = halved(x, e, 16)
    x, e = halved(x, e, 8)
    x, e = halved(x, e, 4)
    x, e = halved(x, e, 2)
    x, e = halved(x, e, 1)
    above = x > 1.4142135623730951
    x = x * 0.5 if above else x
    e = e + 1.0 if above else e
    return e * LOG_TWO + (twice_atanh((x - 1.0) / (x + 1.0)) + e * LOG_TWO_REST)


@func
def log_unit(x: Any) -> Any:
    """log(x) for 2**-64 <= x <= 1."""
    return scaled_log(x, 0.0)


@func
def log(x: Any) -> Any:
    """log(x)."""
    e = 0.0
    while x < 2.0**-64:
        x *= 2.0**64
        e -= 64.0
    while x > 1.0:
        x *= 2.0**-32
        e += 32.0
    return scaled_log(x, e)


@func
def log1p(x: Any) -> Any:
    """log(1 + x) for -0.5 <= x <= 0."""
    return twice_atanh(x / (2.0 + x)) if x > -0.25 else log(1.0 + x)


@func
def scaled(y: Any, n: Any, power: Any, width: Any) -> Any:
    """y times or over `power` where n is at least +-width, and what remains of n."""
    up, down = n >= width, n <= -width
    y = y * (power if up else 1.0 / power if down else 1.0)
    return y, n - (width if up else -width if down else 0.0)


@func
def exp(x: Any) -> Any:
    """exp(x) = 2**n * exp(r) with |r| <= log(2) / 2, which its Taylor series gives."""
    x = min(max(x, -800.0), 800.0)
    n = kernel_math.floor(x / LOG_TWO + 0.5)
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    q = 1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * (1 / 3628800 + r * (1 / 39916800 + r / 479001600))))
    y = 1.0 + r * (1.0 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r * q))))))
    y, n = scaled(y, n, 2.0**512, 512.0)
    y, n = scaled(y, n, 2.0**512, 512.0)
    y, n = scaled(y, n, 2.0**256, 256.0)
    y, n = scaled(y, n, 2.0**128, 128.0)
    y, n = scaled(y, n, 2.0**64, 64.0)
    y, n = scaled(y, n, 2.0**32, 32.0)
    y, n = scaled(y, n, 2.0**16, 16.0)
    y, n = scaled(y, n, 2.0**8, 8.0)
    y, n = scaled(y, n, 2.0**4, 4.0)
    y, n = scaled(y, n, 2.0**2, 2.0)
    y, n = scaled(y, n, 2.0, 1.0)
    return y


@func
def tail_quantile(r: Any) -> Any:
    """The normal quantile of 1 - exp(-r * r) for r above 1.6. Coefficients are selected rather than sums of
    branches, for vectors."""
    close = r <= 5.0
    r = r - 1.6 if close else r - 5.0
    top = 7.74545014278341407640e-4 if close else 2.01033439929228813265e-7
    top = r * top + (0.0227238449892691845833 if close else 2.71155556874348757815e-5)
    top = r * top + (0.241780725177450611770 if close else 1.24266094738807843860e-3)
    top = r * top + (1.27045825245236838258 if close else 0.0265321895265761230930)
    top = r * top + (3.64784832476320460504 if close else 0.296560571828504891230)
    top = r * top + (5.76949722146069140550 if close else 1.78482653991729133580)
    top = r * top + (4.63033784615654529590 if close else 5.46378491116411436990)
    top = r * top + (1.42343711074968357734 if close else 6.65790464350110377720)
    low = 1.05075007164441684324e-9 if close else 2.04426310338993978564e-15
    low = r * low + (5.47593808499534494600e-4 if close else 1.42151175831644588870e-7)
    low = r * low + (0.0151986665636164571966 if close else 1.84631831751005468180e-5)
    low = r * low + (0.148103976427480074590 if close else 7.86869131145613259100e-4)
    low = r * low + (0.689767334985100004550 if close else 0.0148753612908506148525)
    low = r * low + (1.67638483018380384940 if close else 0.136929880922735805310)
    low = r * low + (2.05319162663775882187 if close else 0.599832206555887937690)
    return top / (r * low + 1.0)


@func
def normal_quantile(p: Any) -> Any:
    """The x below which a standard normal variate is with probability p, 0 < p < 1. M. J. Wichura, Algorithm
    AS 241, PPND16: the percentage points of the normal distribution (1988)."""
    q = p - 0.5
    r = 0.180625 - q * q
    top = (
        r
        * (
            r * (r * (r * 2509.0809287301226727 + 33430.575583588128105) + 67265.770927008700853)
            + 45921.953931549871457
        )
        + 13731.693765509461125
    )
    top = r * (r * (r * top + 1971.5909503065514427) + 133.14166789178437745) + 3.3871328727963666080
    low = (
        r
        * (
            r * (r * (r * 5226.4952788528545610 + 28729.085735721942674) + 39307.895800092710610)
            + 21213.794301586595867
        )
        + 5394.1960214247511077
    )
    low = r * (r * (r * low + 687.18700749205790830) + 42.313330701600911252) + 1.0
    near = abs(q) <= 0.425
    far = tail_quantile(kernel_math.sqrt(-log_unit(min(p, 1.0 - p))))
    far = -far if q < 0.0 else far
    return q * top / low if near else far  # fmt: skip


@func
def normal_pair(a: Any, b: Any) -> Any:
    """Two independent standard normal variates (float32) of two words: a point whose distance from 0 the
    first word gives, and whose angle the second: 30 bits between -pi / 4 and pi / 4, one for the sign of the
    cosine, and one that swaps both (G. E. P. Box, M. E. Muller, A note on the generation of random normal
    deviates, 1958). In float32 throughout. The polynomials are the best of their degrees for
    the logarithm from sqrt(1/2) to sqrt(2), and for sine and cosine up to pi / 4."""
    # (a + 1) / 2**32 = x * 2**e with x in that range: e stands above the 23 bits of x's fraction
    bits = (float32(a) + float32(1.0)).view(int32)
    power = (bits + int32(0x800000 - 0x3504F4 - (159 << 23))) & int32(-0x800000)
    w = (bits - power - int32(31 << 23)).view(float32) - float32(2.0)  # 2 * (x - 1)
    p = float32(-0.16577502 / 32) + w * (
        float32(0.14791990 / 64) + w * (float32(-0.14246150 / 128) + w * float32(0.09018427 / 256))
    )
    p = float32(0.33333540 / 4) + w * (float32(-0.25001434 / 8) + w * (float32(0.19975681 / 16) + w * p))
    r = kernel_math.sqrt(float32(power) * float32(-1.38629436 / 2**23) - (w + w * w * (w * p - float32(0.25))))
    t = float32(int32(b << uint32(2))) * 3.65729529e-10
    s = t * t
    sine = t + t * s * (-0.16666651 + s * (0.0083320369 + s * -0.00019504021))
    cosine = 1.0 + s * (-0.49999857 + s * (0.041655027 + s * -0.0013585909))
    cosine = (cosine.view(uint32) ^ (b << uint32(1) & uint32(1 << 31))).view(float32)
    turned = int32(b) < 0
    x = sine if turned else cosine
    y = cosine if turned else sine
    return r * x, r * y


@func
def mantissa_bits(a: Any, b: Any) -> Any:
    """A float64 from 1 up to 2, in bits: 52 of two words, all but the lowest 12 of `b`."""
    return (uint64(a) << uint64(20)) | uint64(b >> uint32(12)) | uint64(0x3FF << 52)


@func
def log_radius(x: Any) -> Any:
    """sqrt(-2 * log(x)) for x = m * 2**n, 2**-52 <= x <= 1, by 4 * atanh(s) = 2 * log(m), s = (m - 1) / (m + 1),
    for m from sqrt(1/2) to sqrt(2): a polynomial whose error is 5e-18 of the logarithm."""
    bits = x.view(uint64)
    exponent = bits + uint64((0x3FF00000 - 0x3FE6A09E) << 32)  # n + 1023 stands above the 52 bits of a fraction
    m = (bits - (exponent & uint64(0xFFF << 52)) + uint64(0x3FF << 52)).view(float64)
    # an integer below 2**52 is the fraction of 2**52 and itself: no conversion, which vectors of 64 bits may lack
    n = ((exponent >> uint64(52)) | uint64(0x433 << 52)).view(float64) - (2.0**52 + 1023.0)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 0.4444442225144562 + z * (0.36365779572382084 + z * (0.30663399267087715 + z * 0.2923344235972363))
    p = 1.333333333333334 + z * (0.7999999999979877 + z * (0.5714285725206213 + z * p))
    return kernel_math.sqrt(n * (-2.0 * LOG_TWO) - s * (4.0 + z * p))


@func
def normal_pair_64(w0: Any, w1: Any, w2: Any, w3: Any) -> Any:
    """Two independent standard normal variates (float64) of four words, as `normal_pair` makes them: 52 bits for
    the distance from 0, 52 for the angle between -pi / 4 and pi / 4, two for sign and swap. Polynomials of this
    and of `log_radius` agree with their functions at the Chebyshev points of the interval, in the square of the
    argument. Those of sin and cos of pi / 2 * v are in error by less than 2e-17; with the roundings, variates
    are within 1e-15 of their value, relatively."""
    r = log_radius(2.0 - mantissa_bits(w0, w1).view(float64))
    v = mantissa_bits(w2, w3).view(float64) - 1.5
    z = v * v
    p = 0.00016044116661409423 + z * (-3.5987029509735105e-06 + z * 5.642225369163528e-08)
    p = -0.6459640975062462 + z * (0.07969262624614423 + z * (-0.004681754134254207 + z * p))
    sine = v * (1.5707963267948966 + z * p)
    q = -2.5202039028029178e-05 + z * (4.710678405505227e-07 + z * -6.329396344967424e-09)
    q = -0.020863480763340773 + z * (0.0009192602745468447 + z * q)
    cosine = 1.0 + z * (-1.2337005501361697 + z * (0.2536695079010478 + z * q))
    cosine = (cosine.view(uint64) ^ (uint64(w3) << uint64(63))).view(float64)
    turned = (w3 & uint32(2)) != 0
    x = sine if turned else cosine
    y = cosine if turned else sine
    return r * x, r * y


@func
def stirling_error(k: Any) -> Any:
    """log(k!) - log(sqrt(2 pi k) * (k / e)**k) for a whole k >= 1 (C. Loader, Fast and accurate computation
    of binomial probabilities, 2000)."""
    if k < 16.0:
        product = 1.0
        j = 2.0
        while j <= k:
            product *= j
            j += 1.0
        return log(product) - (k + 0.5) * log(k) + k - 0.9189385332046728
    z = 1.0 / (k * k)
    return (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680)))) / k


@func
def deviance(x: Any, m: Any) -> Any:
    """x * log(x / m) + m - x for positive x and m, also where they nearly agree (Loader's bd0)."""
    f = x - m
    v = f / (x + m)
    if abs(v) < 0.1:
        z = v * v
        r = 1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17))))
        return f * v + 2.0 * x * v * z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * r)))
    return x * log(x / m) + m - x


@func
def log_poisson(k: Any, mean: Any) -> Any:
    """Logarithm of the probability of k events."""
    if k < 1.0:
        return -mean
    return -stirling_error(k) - deviance(k, mean) - 0.5 * log(6.283185307179586 * k)


@func
def log_binomial(k: Any, n: Any, p: Any) -> Any:
    """Logarithm of the probability of k successes in n trials, p <= 1/2."""
    if k < 1.0:
        return n * log1p(-p)
    if k >= n:
        return n * log(p)
    failures = n - k
    errors = stirling_error(n) - stirling_error(k) - stirling_error(failures)
    away = deviance(k, n * p) + deviance(failures, n * (1.0 - p))
    return errors - away - 0.5 * log(6.283185307179586 * k * (failures / n))
