"""Special functions, under SciPy's names: `pyarray.special.erf`. Kernels can call the elementwise ones, too.

>>> import pyarray as pa
>>> pa.special.erf(pa.asarray([0.0, 1.0])).round(6).tolist()
[0.0, 0.842701]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from . import docstrings, keywords
from .api.core import missing_names
from .api.core.ufunc import PYTHON, as_array_like
from .api.core.ufunc_functions import UfuncFunction, make_function
from .api.numpy.ufuncs import i0 as i0
from .api.standard.elementwise import describe_ufunc, divide, exp, log, multiply, subtract
from .api.standard.searching import where
from .api.standard.statistical import as_operand
from .api.standard.statistical import max as largest
from .api.standard.statistical import sum as total
from .array import ndarray
from .array_hooks import Tracer
from .dtypes import DType, float32, float64, result_type
from .jit.functions import func
from .jit.replay import replayable
from .kernels.random.rng_math import tail_quantile
from .kernels.reduce.softmax import row_function, rows_of
from .lang.markers import kernel_math as k
from .typing import ArrayLike, AxisLike

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcinv", "erfinv", "expit", "gamma", "gammaln", "i0", "kl_div",
    "log_expit", "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr", "ndtri", "psi", "rel_entr",
    "softmax", "xlog1py", "xlogy",
]  # fmt: skip

ROOT_HALF = math.sqrt(0.5)


def _ufunc(name: str, body: Callable[..., Any], doc: str) -> UfuncFunction:
    return make_function(describe_ufunc(name, "f", body, promote_to=float64, doc=doc, namespace="pa.special"))


# ---- the normal distribution. M. J. Wichura, Algorithm AS 241, PPND16 (1988)


@func
def _quantile(q: Any, tail: Any) -> Any:
    """The x of the probability 0.5 + q, of which `tail` is the distance from the nearer end."""
    r = 0.180625 - q * q
    top = (r * 2509.0809287301226727 + 33430.575583588128105) * r + 67265.770927008700853
    top = ((top * r + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427
    top = (top * r + 133.14166789178437745) * r + 3.3871328727963666080
    low = (r * 5226.4952788528545610 + 28729.085735721942674) * r + 39307.895800092710610
    low = ((low * r + 21213.794301586595867) * r + 5394.1960214247511077) * r + 687.18700749205790830
    low = (low * r + 42.313330701600911252) * r + 1.0
    far = tail_quantile(k.sqrt(-k.log(tail))) if tail > 0 else tail + math.inf
    far = tail * math.nan if tail < 0 else far
    return q * top / low if k.abs(q) <= 0.425 else -far if q < 0 else far


def _ndtri(p: Any) -> Any:
    p = p * float64(1)
    return _quantile(p - 0.5, min(p, 1 - p))


def _erfinv(x: Any) -> Any:
    x = x * float64(1)
    return _quantile(x / 2, (1 - k.abs(x)) / 2) * ROOT_HALF


def _erfcinv(x: Any) -> Any:
    x = x * float64(1)
    return -_quantile(x / 2 - 0.5, min(x / 2, 1 - x / 2)) * ROOT_HALF


def _log_ndtr(x: Any) -> Any:
    x = x * float64(1)
    y = 1 / (min(x, -20) * min(x, -20))
    rest = 1 - 9 * y * (1 - 11 * y * (1 - 13 * y * (1 - 15 * y)))
    series = 1 - y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y * rest)))
    far = -x * x / 2 - k.log(-min(x, -20)) - 0.9189385332046727 + k.log(series)
    near = k.log(k.erfc(-max(x, -20) * ROOT_HALF) / 2)
    above = k.log1p(-k.erfc(x * ROOT_HALF) / 2)
    return above if x > 0 else far if x < -20 else near


# ---- others


def _digamma(x: Any) -> Any:
    """digamma(x): arguments are reflected to positive numbers and shifted to 10 and above for the asymptotic
    series."""
    x = x * float64(1)
    mirrored = x < 0
    part = x - k.round(x)
    y = 1 - x if mirrored else x
    result = y * 0 if y < math.inf else y
    if y < math.inf:
        while y < 10:
            result -= 1 / y
            y += 1
    z = 1 / (y * y)
    series = 1 / 252 - z * (1 / 240 - z * (1 / 132 - z * (691 / 32760 - z * (1 / 12 - z * (3617 / 8160)))))
    result += k.log(y) - 0.5 / y - z * (1 / 12 - z * (1 / 120 - z * series))
    if mirrored:
        result = result - math.pi / k.tan(math.pi * part) if part != 0 else part * math.nan
    return -1 / x if x == 0 else result


def _expit(x: Any) -> Any:
    e = k.exp(-k.abs(x))
    return 1 / (1 + e) if x >= 0 else e / (1 + e)


def _logit(x: Any) -> Any:
    middle = x > 0.3 and x < 0.65
    return k.log1p((2 * x - 1) / (1 - x)) if middle else k.log(x / (1 - x))


def _xlogy(x: Any, y: Any) -> Any:
    return x if x == 0 and y == y else x * k.log(y)


def _xlog1py(x: Any, y: Any) -> Any:
    return x if x == 0 and y == y else x * k.log1p(y)


@func
def _log_ratio(x: Any, y: Any) -> Any:
    """log(x / y), also where the quotient leaves the range of float64 or rounds close to 1."""
    ratio = x / y
    inside = ratio > 2.2250738585072014e-308 and ratio < math.inf
    near = ratio > 0.5 and ratio < 2
    return k.log1p((x - y) / y) if near else k.log(ratio) if inside else k.log(x) - k.log(y)


def _rel_entr(x: Any, y: Any) -> Any:
    x, y = x * float64(1), y * float64(1)
    both = x > 0 and y > 0
    least = x == 0 and y >= 0
    nan = x != x or y != y
    return x + y if nan else x * _log_ratio(x, y) if both else x if least else math.inf


def _kl_div(x: Any, y: Any) -> Any:
    x, y = x * float64(1), y * float64(1)
    both = x > 0 and y > 0
    least = x == 0 and y >= 0
    nan = x != x or y != y
    return x + y if nan else x * _log_ratio(x, y) - x + y if both else y if least else math.inf


def _entr(x: Any) -> Any:
    return -x * k.log(x) if x > 0 else x * 0 if x == 0 else x if x != x else -math.inf


# fmt: off
digamma = psi = _ufunc("psi", _digamma, "derivative of the logarithm of the gamma function")
entr = _ufunc("entr", _entr, "-x log(x); 0 at 0, minus infinity below")
erf = _ufunc("erf", lambda x: k.erf(x), "error function")
erfc = _ufunc("erfc", lambda x: k.erfc(x), "1 - erf(x), accurate for large x")
erfcinv = _ufunc("erfcinv", _erfcinv, "inverse of erfc")
erfinv = _ufunc("erfinv", _erfinv, "inverse of erf; odd, so that of -0.0 it is -0.0 (SciPy: 0.0)")
expit = _ufunc("expit", _expit, "1 / (1 + exp(-x)), the logistic function")
gamma = _ufunc("gamma", lambda x: k.tgamma(x), "gamma function")
_GAMMALN = "logarithm of the gamma function's absolute value; inf at -inf, as C has it (SciPy: -inf)"
gammaln = _ufunc("gammaln", lambda x: k.lgamma(x), _GAMMALN)
kl_div = _ufunc("kl_div", _kl_div, "x1 log(x1 / x2) - x1 + x2, infinite outside the positive numbers")
log_expit = _ufunc("log_expit", lambda x: min(x, 0) - k.log1p(k.exp(-k.abs(x))), "log(expit(x))")
log_ndtr = _ufunc("log_ndtr", _log_ndtr, "log(ndtr(x)), accurate for small x")
logit = _ufunc("logit", _logit, "log(x / (1 - x)), the inverse of expit")
ndtr = _ufunc("ndtr", lambda x: k.erfc(x * float64(-ROOT_HALF)) / 2,
            "probability that a normal variate is below x")
ndtri = _ufunc("ndtri", _ndtri, "inverse of ndtr")
rel_entr = _ufunc("rel_entr", _rel_entr, "x1 log(x1 / x2), infinite outside the positive numbers")
xlog1py = _ufunc("xlog1py", _xlog1py, "x1 log(1 + x2); 0 where x1 is 0")
xlogy = _ufunc("xlogy", _xlogy, "x1 log(x2); 0 where x1 is 0")
# fmt: on


def _shifted(name: str, a: Any, axis: Any) -> tuple[ndarray, ndarray, DType]:
    """`a` less its largest element over `axis`, and that; 0 where it is infinite; both are float32 for narrower floats,
    in which sums of exponentials would overflow. The last is the type of the result."""
    a = as_operand(name, a, "biuf")
    kind = a._dtype if a._dtype.kind == "f" else float64
    a = a.astype(float32 if kind.itemsize < 4 else kind, copy=False)
    top = largest(a, axis=axis, keepdims=True)
    top = where(subtract(top, top) == 0, top, 0.0)
    return subtract(a, top), top, kind


def _by_rows(name: str, a: Any, axis: Any) -> ndarray | None:
    """The result by one kernel, in which a row is read once; None where several calls compute it, as in `fuse`."""
    a = as_operand(name, a, "biuf")
    if isinstance(a, Tracer) or (rows := rows_of(a, axis)) is None:
        return None
    return row_function(name, a, rows)


@replayable
def logsumexp(a: ArrayLike, /, axis: AxisLike = None, b: ArrayLike | None = None, keepdims: bool = False) -> ndarray:
    """log(sum(b * exp(a))) over `axis` (None: all axes) without overflow; `b` is 1 unless given.

    >>> pa.special.logsumexp(pa.asarray([1000.0, 1000.0])).round(3).item()
    1000.693
    """
    if b is not None and type(b) not in PYTHON:
        a, b = as_array_like(a, b)
    result = _by_rows("logsumexp", a, axis) if b is None else None
    if result is not None:
        return result if keepdims else result.squeeze(-1)
    shifted, top, kind = _shifted("logsumexp", a, axis)
    weights = exp(shifted) if b is None else multiply(b, exp(shifted))
    result = log(total(weights, axis=axis, keepdims=True)) + top
    result = result.astype(kind if b is None else result_type(kind, b), copy=False)
    return result if keepdims else result.squeeze(axis)


@replayable
def softmax(x: ArrayLike, /, axis: AxisLike = None) -> ndarray:
    """exp(x) over its sum over `axis` (None: all axes).

    >>> pa.special.softmax(pa.asarray([5.0, 5.0])).tolist()
    [0.5, 0.5]
    """
    if (result := _by_rows("softmax", x, axis)) is not None:
        return result
    shifted, _, kind = _shifted("softmax", x, axis)
    weights = exp(shifted)
    return divide(weights, total(weights, axis=axis, keepdims=True)).astype(kind, copy=False)


@replayable
def log_softmax(x: ArrayLike, /, axis: AxisLike = None) -> ndarray:
    """log(softmax(x)), accurate where that is small.

    >>> pa.special.log_softmax(pa.asarray([0.0, -1000.0])).tolist()
    [0.0, -1000.0]
    """
    if (result := _by_rows("log_softmax", x, axis)) is not None:
        return result
    shifted, _, kind = _shifted("log_softmax", x, axis)
    return subtract(shifted, log(total(exp(shifted), axis=axis, keepdims=True))).astype(kind, copy=False)


keywords.install(globals())
docstrings.install(globals())
missing_names.list_public(sys.modules[__name__])
