"""Variates by rejection: integers below a bound, Poisson, binomial; and lognormal ones.

An element has a counter of its own, or a word of one, and its value depends on nothing else but the parameters.
These are arrays of one element, or of as many as the result has (`step` is 0 or 1).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import jit
from ...array import ndarray
from ...dtypes import uint32, uint64
from ...jit.functions import func
from ...lang.markers import kernel_math
from ...memory.host_access import on_host
from ..library_kernel import library_kernel
from ..scan.nonzero import unsigned_view
from .rng import STATE_PARAMS, PhiloxState, block, open_uniform
from .rng_math import exp, log, log1p, log_binomial, log_poisson, normal_quantile

CHUNK = 256  # blocks of words whose elements are looked at again together, on the CPU


def fill_words(out: ndarray, state: PhiloxState, low: int, count: int) -> None:
    """Integers from `low` on, `count` of them, at most 2**32, all equally likely. `out` is 1-D, contiguous,
    of a multiple of 4 elements (D. Lemire, Fast random integer generation in an interval, 2019)."""
    width = CHUNK if on_host(out) else 1
    random_integers()(unsigned_view(out), *state, low % (1 << 64), count, (1 << 32) % count, width)


def fill_between(out: ndarray, state: PhiloxState, low: ndarray, last: ndarray) -> None:
    """Integers from `low` to `low + last`, all equally likely; bounds are uint64, modulo 2**64."""
    random_integers_between()(unsigned_view(out), *state, low, int(low._size > 1), last, int(last._size > 1))


def fill_variates(kind: str, function: Any, out: ndarray, state: PhiloxState, parameters: list[ndarray]) -> None:
    """Fills the contiguous 1-D `out` with what `function` makes of `parameters`, which are float64, and a
    counter; `kind` names it."""
    arguments = [x for a in parameters for x in (a, int(a._size > 1))]
    _variate_kernel(kind, function, len(parameters))(out, *state, *arguments)


@func
def rejected_word(counter: Any, n: Any, count: Any, least: Any, stream: Any, key: Any) -> Any:
    """A word times `count` whose low half isn't one of those that come too often."""
    product = uint64(0)
    attempt = uint32(0)
    while attempt == 0 or uint32(product) < least:
        attempt += uint32(1)
        w0, w1, w2, w3 = block(counter, attempt, stream, key)
        product = uint64(w0 if n == 0 else w1 if n == 1 else w2 if n == 2 else w3) * count
    return product


@library_kernel
def random_integers(
    out: ndarray, key: np.uint64, start: np.uint64, stream: np.uint32,
    low: np.uint64, count: np.uint64, least: np.uint32, width: int,
) -> None:  # fmt: skip
    for c in range((out.shape[0] // 4 + width - 1) // width):
        stop = min(c * width + width, out.shape[0] // 4)
        again = uint32(0)
        for i in range(c * width, stop):
            w0, w1, w2, w3 = block(start + uint64(i), uint32(0), stream, key)
            m0, m1, m2, m3 = uint64(w0) * count, uint64(w1) * count, uint64(w2) * count, uint64(w3) * count
            out[4 * i] = low + (m0 >> uint64(32))
            out[4 * i + 1] = low + (m1 >> uint64(32))
            out[4 * i + 2] = low + (m2 >> uint64(32))
            out[4 * i + 3] = low + (m3 >> uint64(32))
            again = again | uint32(uint32(m0) < least) | uint32(uint32(m1) < least)
            again = again | uint32(uint32(m2) < least) | uint32(uint32(m3) < least)
        if again != 0:
            for j in range(4 * c * width, 4 * stop):
                at = start + uint64(j // 4)
                n = j % 4
                w0, w1, w2, w3 = block(at, uint32(0), stream, key)
                m = uint64(w0 if n == 0 else w1 if n == 1 else w2 if n == 2 else w3) * count
                if uint32(m) < least:
                    out[j] = low + (rejected_word(at, n, count, least, stream, key) >> uint64(32))


@library_kernel
def random_integers_between(
    out: ndarray, key: np.uint64, start: np.uint64, stream: np.uint32,
    low: ndarray, low_step: int, last: ndarray, last_step: int,
) -> None:  # fmt: skip
    for i in range(out.shape[0]):
        limit = last[i * last_step]
        mask = limit | (limit >> uint64(1))
        mask = mask | (mask >> uint64(2))
        mask = mask | (mask >> uint64(4))
        mask = mask | (mask >> uint64(8))
        mask = mask | (mask >> uint64(16))
        mask = mask | (mask >> uint64(32))
        attempt = uint32(0)
        x = uint64(0)
        while attempt == 0 or x > limit:
            w0, w1, w2, w3 = block(start + uint64(i), attempt, stream, key)
            x = (uint64(w0) << uint64(32) | uint64(w1)) & mask
            x = (uint64(w2) << uint64(32) | uint64(w3)) & mask if x > limit else x
            attempt += uint32(1)
        out[i] = low[i * low_step] + x


@func
def two_uniforms(counter: Any, attempt: Any, stream: Any, key: Any) -> Any:
    """Two uniform variates in (0, 1)."""
    w0, w1, w2, w3 = block(counter, attempt, stream, key)
    return open_uniform(w0, w1), open_uniform(w2, w3)


@func
def poisson(mean: Any, counter: Any, stream: Any, key: Any) -> Any:
    """Products of uniform variates for a small mean (D. Knuth), else PTRS (W. Hörmann, The transformed
    rejection method for generating Poisson random variables, 1993)."""
    attempt = uint32(0)
    k = 0.0
    if mean < 10.0:
        limit = exp(-mean)
        product, _ = two_uniforms(counter, attempt, stream, key)
        while product > limit:
            k += 1.0
            attempt += uint32(1)
            u, _ = two_uniforms(counter, attempt, stream, key)
            product *= u
        return k
    root = kernel_math.sqrt(mean)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2.0)
    done = False
    while not done:
        u, v = two_uniforms(counter, attempt, stream, key)
        u -= 0.5
        us = 0.5 - abs(u)
        k = kernel_math.floor((2.0 * a / us + b) * u + mean + 0.43)
        if us >= 0.07 and v <= squeeze:
            done = True
        elif k >= 0.0 and (us >= 0.013 or v <= us):
            done = log(v * inverse / (a / (us * us) + b)) <= log_poisson(k, mean)
        attempt += uint32(1)
    return k


@func
def binomial_by_inversion(n: Any, p: Any, counter: Any, stream: Any, key: Any) -> Any:
    """Binomial by inversion, for n * p < 10."""
    first = exp(n * log1p(-p))
    bound = min(n, n * p + 10.0 * kernel_math.sqrt(n * p * (1.0 - p) + 1.0))
    attempt = uint32(0)
    k = bound + 1.0
    while k > bound:
        u, _ = two_uniforms(counter, attempt, stream, key)
        attempt += uint32(1)
        k = 0.0
        x = first
        while u > x and k <= bound:
            u -= x
            k += 1.0
            x *= (n - k + 1.0) * p / (k * (1.0 - p))
    return k


@func
def binomial_by_rejection(n: Any, p: Any, counter: Any, stream: Any, key: Any) -> Any:
    """Binomial by BTRS, for n * p >= 10 and p <= 1/2 (W. Hörmann, The generation of binomial random variates,
    1993)."""
    root = kernel_math.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * root
    a = -0.0873 + 0.0248 * b + 0.01 * p
    squeeze = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * root
    mode = kernel_math.floor((n + 1.0) * p)
    highest = log_binomial(mode, n, p)
    attempt = uint32(0)
    k = 0.0
    done = False
    while not done:
        u, v = two_uniforms(counter, attempt, stream, key)
        u -= 0.5
        us = 0.5 - abs(u)
        k = kernel_math.floor((2.0 * a / us + b) * u + n * p + 0.5)
        if us >= 0.07 and v <= squeeze:
            done = True
        elif k >= 0.0 and k <= n:
            done = log(v * alpha / (a / (us * us) + b)) <= log_binomial(k, n, p) - highest
        attempt += uint32(1)
    return k


@func
def binomial(n: Any, p: Any, counter: Any, stream: Any, key: Any) -> Any:
    rare = min(p, 1.0 - p)
    k = 0.0
    if rare > 0.0 and n > 0.0:
        if n * rare < 10.0:
            k = binomial_by_inversion(n, rare, counter, stream, key)
        else:
            k = binomial_by_rejection(n, rare, counter, stream, key)
    return n - k if p > 0.5 else k


@func
def lognormal(mean: Any, sigma: Any, counter: Any, stream: Any, key: Any) -> Any:
    u, _ = two_uniforms(counter, uint32(0), stream, key)
    return exp(mean + sigma * normal_quantile(u))


# By the function, which is one of this package's and captures constants only.
@functools.cache
def _variate_kernel(kind: str, function: Any, count: int) -> jit.kernel.Kernel:
    names = [f"p{n}" for n in range(count)]
    params = ", ".join(["out", STATE_PARAMS, *(f"{p}, {p}_step: int" for p in names)])
    values = "".join(f"{p}[i * {p}_step], " for p in names)
    text = f"""def random_{kind}({params}):
    for i in range(out.shape[0]):
        out[i] = variate({values}start + uint64(i), stream, key)
"""
    scope = {"uint32": uint32, "uint64": uint64, "variate": function}
    return jit.kernel.from_text(f"random_{kind}", text, scope)
