"""Further elementwise functions that NumPy has."""

from __future__ import annotations

import math
import operator
from typing import Any

from ...array import ndarray
from ...array_convert import asarray
from ...dtypes import complex128, float32, float64, result_type
from ...jit.functions import func
from ...jit.replay import replayable
from ...lang.markers import kernel_math as k
from ...typing import ArrayLike
from ..core.registry import method
from ..core.ufunc import as_operands
from ..standard import elementwise
from ..standard.elementwise import INT, REAL, divide, floor_divide, multiply, pow, remainder, trunc, ufunc

__all__ = [
    "angle", "around", "deg2rad", "degrees", "divmod", "fabs", "fix", "float_power", "fmax", "fmin", "gcd",
    "heaviside", "i0", "isneginf", "isposinf", "lcm", "logaddexp2", "rad2deg", "radians", "rint", "round",
    "rsqrt", "sinc",
]  # fmt: skip


def _gcd(x: Any, y: Any) -> Any:
    while y != 0:
        x, y = y, x - y * (x // y)
    return k.abs(x)


def _lcm(x: Any, y: Any) -> Any:
    a, b = x, y
    while b != 0:
        a, b = b, a - b * (a // b)
    return k.abs(x) // (k.abs(a) if a != 0 else a + 1) * k.abs(y)


@func
def _wide(x: Any) -> Any:
    """A float that no step of a computation rounds to a narrow type. Types are known when a kernel is compiled: numbers
    that are not narrow stay as they are, weak ones too."""
    return float32(x) if (x * 1.0).dtype.itemsize < 4 else x * 1.0


@func
def _rounded(result: Any, x: Any) -> Any:
    """The result as the type of the operand if that is narrow."""
    return x.dtype(result) if (x * 1.0).dtype.itemsize < 4 else result


def _logaddexp2(x: Any, y: Any) -> Any:
    a, b = _wide(x), _wide(y)  # differences may be more than narrow types hold
    top = max(a, b)
    result = top + 1 if a == b else top + k.log1p(k.exp2(min(a, b) - top)) * (1 / math.log(2))
    return _rounded(result, x + y)


def _sinc(x: Any) -> Any:
    n = k.round(k.real(x))  # the sine of what is left of a whole number is exact where that of pi x is not
    sign = 1 - 2 * (n - 2 * k.floor(n / 2))
    wide = _wide(x)  # pi x may be more than a narrow type holds
    return _rounded(sign * k.sin((wide - n) * math.pi) / (wide * math.pi) if x != 0 else wide + 1, x)


# The modified Bessel function I0 as polynomials by rising powers: for |x| <= 9 of (I0(x) - 1) / y with
# y = x**2 / 4, beyond that of I0(x) sqrt(x) exp(-x) in 1 / x (Abramowitz and Stegun, 9.6.12 and 9.7.1).
# They are the terms down to 1e-17 of Chebyshev series, which were computed in 40 digits.
# fmt: off
_SMALL = (
    (1.0000000000000002, 0.24999999999999362, 0.027777777777801285, 0.0017361111110770103,
     6.944444447033416e-05),
    (1.929012333852628e-06, 3.9367602413261205e-08, 6.151180146373296e-10, 7.594161653459553e-12,
     7.592996003852705e-14),
    (6.283931814848265e-16, 4.3171833112763275e-18, 2.728202837794297e-20, 9.644815715932805e-23,
     1.0540686535219307e-24),
)
_LARGE = (
    (0.39894228040143265, 0.049867785050226855, 0.02805062902301139, 0.029219442534591612,
     0.044731589815054665),
    (0.09242542015397662, 0.023366848383858677, 16.69374288995365, -897.840460795712, 37447.71907519425),
    (-1170277.1794243748, 27763420.841664266, -501369062.75115514, 6870068807.181205, -70687387915.46452),
    (535484625373.0798, -2888225987272.472, 10469258664850.492, -22821469655695.008, 22586557496747.76),
)
# fmt: on


@func
def _terms(x: Any, c: Any, tail: Any) -> Any:
    return c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * tail))))


def _i0(x: Any) -> Any:
    size = _wide(k.abs(x))  # half precision has no such numbers
    y = min(size, 9) * min(size, 9) / 4
    small = _terms(y, _SMALL[0], _terms(y, _SMALL[1], _terms(y, _SMALL[2], 0)))
    t = 1 / max(size, 9)
    tail = _terms(t, _LARGE[2], _terms(t, _LARGE[3], 0))
    scaled = _terms(t, _LARGE[0], _terms(t, _LARGE[1], tail)) / k.sqrt(min(size, 1e4))
    large = k.exp(size) * scaled  # infinite before 1e4, and stays so
    return _rounded(1 + y * small if size <= 9 else large, x)


# fmt: off
deg2rad = ufunc("deg2rad", "f", lambda x: _rounded(_wide(x) * (math.pi / 180), x), promote_to=float64,
                doc="degrees in radians")
fabs = ufunc("fabs", "f", lambda x: k.abs(x), promote_to=float64, doc="absolute value, of integers as a float")
fmax = ufunc("fmax", "biuf", lambda x, y: y if x != x else x if y != y else max(x, y),
           doc="larger one; the other one where one is NaN")
fmin = ufunc("fmin", "biuf", lambda x, y: y if x != x else x if y != y else min(x, y),
           doc="smaller one; the other one where one is NaN")
gcd = ufunc("gcd", INT, _gcd, doc="greatest common divisor of |x1| and |x2|")
heaviside = ufunc("heaviside", "f", lambda x, y: x if x != x else y if x == 0 else 1 if x > 0 else 0,
                promote_to=float64, doc="0 below 0, x2 at 0, 1 above it")
i0 = ufunc("i0", "f", _i0, promote_to=float64, doc="modified Bessel function of the first kind, order 0")
isneginf = ufunc("isneginf", REAL, lambda x: k.isinf(x) and x < 0, "bool", float64,
               "whether x is minus infinity")
isposinf = ufunc("isposinf", REAL, lambda x: k.isinf(x) and x > 0, "bool", float64,
               "whether x is plus infinity")
lcm = ufunc("lcm", INT, _lcm, doc="least common multiple of |x1| and |x2|")
logaddexp2 = ufunc("logaddexp2", "f",
                 _logaddexp2, promote_to=float64, doc="log2(2**x1 + 2**x2) without overflow")
rad2deg = ufunc("rad2deg", "f", lambda x: _rounded(_wide(x) * (180 / math.pi), x), promote_to=float64,
                doc="radians in degrees")
rint = ufunc("rint", "fc", lambda x: k.round(x), promote_to=float64,
           doc="nearest integer, ties to even, of integers as a float")
rsqrt = ufunc("rsqrt", "f", lambda x: 1 / k.sqrt(x), promote_to=float64, doc="1 / sqrt(x)")
sinc = ufunc("sinc", "fc", _sinc, promote_to=float64, doc="sin(pi x) / (pi x); 1 at 0")
_angle = ufunc("angle", "fc", lambda x: k.angle(x), "real", float64, doc="argument in radians")
# fmt: on
fix, radians, degrees = trunc, deg2rad, rad2deg


@replayable
def angle(z: ArrayLike, /, deg: bool = False) -> ndarray:
    """Argument of complex numbers in radians, or degrees with `deg`; of real ones 0 or pi.

    >>> pa.angle(pa.asarray([1j, -1.0]), deg=True).tolist()
    [90.0, 180.0]
    """
    return rad2deg(_angle(z)) if deg else _angle(z)


@replayable
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[ndarray, ndarray]:
    """`floor_divide` and `remainder`.

    >>> [r.tolist() for r in pa.divmod(pa.asarray([7, -7]), 3)]
    [[2, -3], [1, 2]]
    """
    return floor_divide(x1, x2), remainder(x1, x2)


@replayable
def around(x: ArrayLike, /, decimals: int = 0, *, out: ndarray | None = None) -> ndarray:
    """Elements rounded to `decimals` places after the point, in front of it where negative; ties to even.

    As NumPy's, it scales, rounds and scales back. Raises `TypeError` for bools.

    >>> pa.around([1.25, 123.456], 1).tolist(), pa.around([15, 25, 1234], -1).tolist()
    ([1.2, 123.5], [20, 20, 1230])
    """
    digits = operator.index(decimals)
    if not digits or (digits > 0 and asarray(x)._dtype.kind in "iu"):
        return elementwise.round(x, out=out)
    x = asarray(x)
    scale = 10.0 ** abs(digits)
    if digits > 0:
        result = divide(elementwise.round(multiply(x, scale)), scale)
    else:
        result = multiply(elementwise.round(divide(x, scale)), scale)
    result = result.astype(x._dtype, copy=False)
    return result if out is None else elementwise.positive(result, out=out)


around.__pyarray_builtin__ = "round"  # type: ignore[attr-defined]
round = method(around, "round")


@replayable
def float_power(x1: ArrayLike, x2: ArrayLike, /, *, out: ndarray | None = None) -> ndarray:
    """`pow` in float64, or complex128.

    >>> pa.float_power([2, 3], -1).dtype
    dtype('float64')
    """
    operands = as_operands("float_power", (x1, x2))
    kind = complex128 if result_type(*operands, float64).kind == "c" else float64
    first, second = (x.astype(kind, copy=False) if isinstance(x, ndarray) else x for x in operands)
    if not isinstance(first, ndarray) and not isinstance(second, ndarray):
        first = asarray(first, kind)
    return pow(first, second, out=out)
