"""Further elementwise functions that NumPy has."""

from __future__ import annotations

import math
import operator
from typing import Any

from ..array import ndarray
from ..array_convert import asarray
from ..dtypes import complex128, float64, result_type
from ..jit.repeat import repeatable
from ..lang.markers import known as k
from . import elementwise
from .elementwise import INT, REAL, divide, floor_divide, multiply, pow, remainder, row, trunc
from .ufunc import operands_of

__all__ = [
    "angle", "around", "deg2rad", "degrees", "divmod", "fix", "float_power", "fmax", "fmin", "gcd",
    "heaviside", "isneginf", "isposinf", "lcm", "logaddexp2", "rad2deg", "radians", "round", "sinc",
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


def _logaddexp2(x: Any, y: Any) -> Any:
    top = max(x, y)
    return top + 1 if x == y else top + k.log1p(k.exp2(min(x, y) - top)) * (1 / math.log(2))


def _sinc(x: Any) -> Any:
    n = k.round(k.real(x))  # the sine of what is left of a whole number is exact where that of pi x is not
    sign = 1 - 2 * (n - 2 * k.floor(n / 2))
    return sign * k.sin((x - n) * math.pi) / (x * math.pi) if x != 0 else x + 1


# fmt: off
deg2rad = row("deg2rad", "f", lambda x: x * (math.pi / 180), lift=float64, doc="degrees in radians")
fmax = row("fmax", "biuf", lambda x, y: y if x != x else x if y != y else max(x, y),
           doc="larger one; the other one where one is NaN")
fmin = row("fmin", "biuf", lambda x, y: y if x != x else x if y != y else min(x, y),
           doc="smaller one; the other one where one is NaN")
gcd = row("gcd", INT, _gcd, doc="greatest common divisor of |x1| and |x2|")
heaviside = row("heaviside", "f", lambda x, y: x if x != x else y if x == 0 else 1 if x > 0 else 0,
                lift=float64, doc="0 below 0, x2 at 0, 1 above it")
isneginf = row("isneginf", REAL, lambda x: k.isinf(x) and x < 0, "bool", float64,
               "whether x is minus infinity")
isposinf = row("isposinf", REAL, lambda x: k.isinf(x) and x > 0, "bool", float64,
               "whether x is plus infinity")
lcm = row("lcm", INT, _lcm, doc="least common multiple of |x1| and |x2|")
logaddexp2 = row("logaddexp2", "f",
                 _logaddexp2, lift=float64, doc="log2(2**x1 + 2**x2) without overflow")
rad2deg = row("rad2deg", "f", lambda x: x * (180 / math.pi), lift=float64, doc="radians in degrees")
sinc = row("sinc", "fc", _sinc, lift=float64, doc="sin(pi x) / (pi x); 1 at 0")
_angle = row("angle", "fc", lambda x: k.angle(x), "real", float64, doc="argument in radians")
# fmt: on
fix, radians, degrees = trunc, deg2rad, rad2deg


@repeatable
def angle(z: Any, /, deg: bool = False) -> ndarray:
    """Argument of complex numbers in radians, or degrees with `deg`; of real ones 0 or pi.

    >>> import pyarray as pa
    >>> pa.angle(pa.asarray([1j, -1.0]), deg=True).tolist()
    [90.0, 180.0]
    """
    return rad2deg(_angle(z)) if deg else _angle(z)


@repeatable
def divmod(x1: Any, x2: Any, /) -> tuple[ndarray, ndarray]:
    """`floor_divide` and `remainder`.

    >>> import pyarray as pa
    >>> [r.tolist() for r in pa.divmod(pa.asarray([7, -7]), 3)]
    [[2, -3], [1, 2]]
    """
    return floor_divide(x1, x2), remainder(x1, x2)


@repeatable
def around(x: Any, /, decimals: int = 0, *, out: ndarray | None = None) -> ndarray:
    """Elements rounded to `decimals` places behind the point, in front of it where negative; ties to even.

    As NumPy's, it scales, rounds and scales back. Raises `TypeError` for bools.

    >>> import pyarray as pa
    >>> pa.around([1.25, 123.456], 1).tolist(), pa.around([15, 25, 1234], -1).tolist()
    ([1.2, 123.5], [20, 20, 1230])
    """
    places = operator.index(decimals)
    if not places or (places > 0 and asarray(x).dtype.kind in "iu"):
        return elementwise.round(x, out=out)
    x = asarray(x)
    scale = 10.0 ** abs(places)
    if places > 0:
        found = divide(elementwise.round(multiply(x, scale)), scale)
    else:
        found = multiply(elementwise.round(divide(x, scale)), scale)
    found = found.astype(x.dtype, copy=False)
    return found if out is None else elementwise.positive(found, out=out)


around.__pyarray_builtin__ = "round"  # type: ignore[attr-defined]
round = around


@repeatable
def float_power(x1: Any, x2: Any, /, *, out: ndarray | None = None) -> ndarray:
    """`pow` in float64, or complex128.

    >>> import pyarray as pa
    >>> pa.float_power([2, 3], -1).dtype
    float64
    """
    given = operands_of("float_power", (x1, x2))
    kind = complex128 if result_type(*given, float64).kind == "c" else float64
    first, second = (x.astype(kind, copy=False) if isinstance(x, ndarray) else x for x in given)
    if not isinstance(first, ndarray) and not isinstance(second, ndarray):
        first = asarray(first, kind)
    return pow(first, second, out=out)
