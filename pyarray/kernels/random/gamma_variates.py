"""Gamma and beta variates, by rejection.

A vectorised loop makes the first attempts, most of which are accepted; the others are tried again one by one. An
element's value depends on its counter and parameters only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...array import empty, ndarray
from ...array_convert import asarray
from ...dtypes import float64, uint32, uint64
from ...jit.functions import func
from ...lang.markers import kernel_math
from ...memory.host_access import on_host
from ..elementwise.elementwise import assign
from ..library_kernel import library_kernel
from ..workspace import unchecked_empty
from .rng import PhiloxState
from .rng_math import exp, log, log_unit, normal_quantile
from .variates import CHUNK, two_uniforms

_NAN = float("nan")
_SMALLEST = 1e-306  # shape by which a logarithm is divided: log(2**-64) over it is a finite number
_OTHER = 1 << 31  # first attempt of the second gamma variate of a counter
_TINY, _HUGE = 1 / 16, 1e300  # between them, gamma variates are no smaller than 1e-300, and sums are finite


def fill_gamma(out: ndarray, state: PhiloxState, shape: ndarray, scale: ndarray, substream: int = 0) -> None:
    """Fills the contiguous 1-D `out` with gamma variates. Parameters are float64, of one element or as many
    as `out`. Variates of one counter differ by a lane number."""
    wide = out if out._dtype is float64 else empty(out._shape, float64, out.device)
    width = CHUNK if on_host(out) else 1
    random_gamma()(wide, *state, substream, shape, int(shape._size > 1), scale, int(scale._size > 1), width)
    if wide is not out:
        assign(out, wide)


def fill_beta(out: ndarray, state: PhiloxState, a: ndarray, b: ndarray) -> None:
    """The same with beta variates; `out` is float64."""
    one, other = asarray([1.0], device=out.device), unchecked_empty(out._shape, float64, out.device)
    fill_gamma(out, state, a, one)
    fill_gamma(other, state, b, one, _OTHER)
    random_beta()(out, other, *state, a, int(a._size > 1), b, int(b._size > 1))


@func
def center(shape: Any) -> Any:
    """Marsaglia and Tsang's d = shape - 1/3, of the shape plus 1 if it is below 1."""
    return (shape + 1.0 if shape < 1.0 else shape) - 1 / 3


@func
def first_attempt(shape: Any, counter: Any, substream: Any, stream: Any, key: Any) -> Any:
    """What `gamma_by_rejection` gives, without the factor of small shapes, if its first attempt is accepted by a bound
    of the exact condition that takes no logarithm; else NaN. There are no branches, for vectors."""
    d = center(shape)
    u, v = two_uniforms(counter, substream, stream, key)
    z = normal_quantile(v)
    t = 1.0 + 1.0 / kernel_math.sqrt(9.0 * d) * z
    accepted = (t > 0.0) & (u < 1.0 - 0.0331 * (z * z) * (z * z))
    return d * (t * t * t) if accepted else _NAN


@func
def first_factor(shape: Any, counter: Any, substream: Any, stream: Any, key: Any) -> Any:
    """What a small shape multiplies an accepted first attempt by; 1 for others."""
    u, _ = two_uniforms(counter, substream + uint32(1), stream, key)
    factor = exp(log_unit(u) / (shape if shape > 0.0 else 1.0))
    return 1.0 if shape >= 1.0 else factor if shape > 0.0 else 0.0


@func
def gamma_by_rejection(shape: Any, counter: Any, substream: Any, stream: Any, key: Any) -> Any:
    """A gamma variate of scale 1 as x * exp(y), y <= 0 (G. Marsaglia, W. Tsang, A simple method for
    generating gamma variables, 2000). Two variates of one counter differ by a lane number."""
    d = center(shape)
    c = 1.0 / kernel_math.sqrt(9.0 * d)
    attempt = substream
    x = 0.0
    while x == 0.0:
        u, v = two_uniforms(counter, attempt, stream, key)
        z = normal_quantile(v)
        t = 1.0 + c * z
        cube = t * t * t
        if t > 0.0 and log(u) < 0.5 * z * z + d - d * cube + d * log(cube):
            x = d * cube
        attempt += uint32(1)
    y = 0.0
    if shape < 1.0:
        u, v = two_uniforms(counter, attempt, stream, key)
        y = log(u) / max(shape, _SMALLEST)
    return x, y


@func
def gamma(shape: Any, counter: Any, substream: Any, stream: Any, key: Any) -> Any:
    if shape == 0.0:
        return 0.0
    x, y = gamma_by_rejection(shape, counter, substream, stream, key)
    return x * exp(y)


@func
def beta_by_logs(a: Any, b: Any, counter: Any, stream: Any, key: Any) -> Any:
    """x / (x + y) of two gamma variates, by their logarithms: small parameters make them underflow."""
    x, x_log = gamma_by_rejection(a, counter, uint32(0), stream, key)
    y, y_log = gamma_by_rejection(b, counter, uint32(_OTHER), stream, key)
    return 1.0 / (1.0 + exp(log(y) - log(x) + y_log - x_log))


@library_kernel
def random_gamma(
    out: Any, key: np.uint64, start: np.uint64, stream: np.uint32, lane: np.uint32,
    a: Any, a_step: int, scale: Any, scale_step: int, width: int,
) -> None:  # fmt: skip
    for c in range((out.shape[0] + width - 1) // width):
        stop = min(c * width + width, out.shape[0])
        small = uint32(0)
        for i in range(c * width, stop):
            out[i] = first_attempt(a[i * a_step], start + uint64(i), lane, stream, key)
            small = small | uint32(a[i * a_step] < 1.0)
        if small != 0:
            for i in range(c * width, stop):
                out[i] = out[i] * first_factor(a[i * a_step], start + uint64(i), lane, stream, key)
        for i in range(c * width, stop):
            x = out[i]
            if x != x:
                x = gamma(a[i * a_step], start + uint64(i), lane, stream, key)
            out[i] = x * scale[i * scale_step]


@library_kernel
def random_beta(
    out: Any, other: Any, key: np.uint64, start: np.uint64, stream: np.uint32, a: Any, a_step: int, b: Any, b_step: int
) -> None:
    for i in range(out.shape[0]):
        p = a[i * a_step]
        q = b[i * b_step]
        value = out[i] / (out[i] + other[i])
        if min(p, q) < _TINY or max(p, q) > _HUGE:
            value = beta_by_logs(p, q, start + uint64(i), stream, key)
        out[i] = value
