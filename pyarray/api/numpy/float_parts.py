"""Parts of floats: fraction and whole, mantissa and exponent, and the distance to the next number."""

from __future__ import annotations

import math
from typing import Any

from ...array import ndarray
from ...array_convert import asarray
from ...dtypes import DType, asdtype, float64, int32, int64
from ...lang.markers import kernel_math as k
from ...typing import ArrayLike
from ..standard.data_types import finfo
from ..standard.elementwise import clip, equal, logical_or, multiply, ufunc
from ..standard.searching import where
from ..standard.statistical import as_operand

__all__ = ["frexp", "ldexp", "modf", "spacing"]


def _spacing(x: Any) -> Any:
    distance = k.nextafter(k.abs(x), x - x + math.inf) - k.abs(x)
    return -distance if x < 0 else distance


# fmt: off
_rest = ufunc("modf_rest", "f", lambda x: k.copysign(x - k.trunc(x) if k.isfinite(x) or x != x else 1 / x, x),
            promote_to=float64, doc="fraction, with the sign of x")
_whole = ufunc("modf_whole", "f", lambda x: k.trunc(x), promote_to=float64, doc="x without its fraction")
spacing = ufunc("spacing", "f", _spacing, promote_to=float64,
              doc="distance to the next number away from 0, with the sign of x")
# fmt: on


def modf(x: ArrayLike, /) -> tuple[ndarray, ndarray]:
    """Fraction and whole part of each element, both with its sign; integers are computed as float64.

    >>> [r.tolist() for r in pa.modf(pa.asarray([1.25, -3.5]))]
    [[0.25, -0.5], [1.0, -3.0]]
    """
    x = _float("modf", x)
    return _rest(x), _whole(x)


def _float(name: str, x: Any) -> ndarray:
    x = as_operand(name, x, "biuf")
    return x if x._dtype.kind == "f" else x.astype(float64)


class _Format:
    """Where the parts of a float type are in its bits."""

    def __init__(self, dtype: DType):
        self.digits = -round(math.log2(float(finfo(dtype).eps)))  # of the mantissa, without the first 1
        self.bits = asdtype(f"int{8 * dtype.itemsize}")
        self.most = (1 << 8 * dtype.itemsize - 1 - self.digits) - 1  # exponent of what is not finite
        self.bias = self.most >> 1

    def power(self, exponent: ndarray, dtype: DType) -> ndarray:
        """2 ** exponent, exactly; the exponent is one of a normal number."""
        shifted: Any = exponent.astype(self.bits)
        return ((shifted + self.bias) << self.digits).view(dtype)


def frexp(x: ArrayLike, /) -> tuple[ndarray, ndarray]:
    """Mantissa m, 0.5 <= |m| < 1 or 0, and exponent e (int32) of each element: x = m * 2**e. What is not
    finite is its own mantissa, with the exponent 0. Integers are computed as float64.

    >>> [r.tolist() for r in pa.frexp(pa.asarray([8.0, -0.3]))]
    [[0.5, -0.6], [4, -1]]
    """
    x = _float("frexp", x)
    layout = _Format(x._dtype)
    digits, most, least = layout.digits, layout.most, float(finfo(x._dtype).smallest_normal)
    small = (abs(x) < least) & (x != 0)
    scaled: Any = where(small, multiply(x, 2.0 ** (digits + 1)), x)
    bits: Any = scaled.view(layout.bits)
    exponent: Any = (bits >> digits) & most
    special = logical_or(equal(exponent, most), equal(x, 0))
    mantissa = ((bits & ~(most << digits)) | (layout.bias - 1 << digits)).view(x._dtype)
    lowered = where(small, exponent - (digits + 1), exponent).astype(int32) - (layout.bias - 1)
    return where(special, x, mantissa), where(special, asarray(0, int32, device=x.device), lowered)


def ldexp(x: ArrayLike, exponent: ArrayLike, /) -> ndarray:
    """x * 2**exponent for integers `exponent`, rounded once; both broadcast. Raises `TypeError` for exponents
    that are no integers.

    >>> pa.ldexp(pa.asarray([0.75, 1.0]), [3, -1]).tolist()
    [6.0, 0.5]
    """
    x = _float("ldexp", x)
    powers = as_operand("ldexp", asarray(exponent, device=x.device), "biu")
    layout = _Format(x._dtype)
    mantissa, own_exponent = frexp(x)
    total: Any = clip(powers.astype(int64), -5000, 5000)
    total = total + own_exponent - 1
    first = clip(total, 1 - layout.bias, layout.bias)
    remaining = clip(total - first, -layout.digits - 2, 1)
    scaled = multiply(multiply(mantissa, 2.0), layout.power(first, x._dtype))
    return multiply(scaled, layout.power(remaining, x._dtype))
