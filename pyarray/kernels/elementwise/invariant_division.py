"""Division of 64-bit integers by a loop-invariant divisor: products with its reciprocal, which vectorise.

A float64 product has an error of less than 2**13 / |y| in a quotient below 2**63. A second product, of the
remainder, is exact but for its rounding to the nearest integer, which the sign of the last remainder tells.
The rest is arithmetic modulo 2**64.
"""

from __future__ import annotations

from typing import Any

from ...dtypes import float64, int64, uint64
from ...jit.functions import func
from ...lang.markers import kernel_math


@func
def _nearest_quotient(x: Any, y: Any) -> Any:
    """The integer nearest to x / y and its remainder, for int64 and y other than -1, 0 and 1."""
    inverse = 0.0 if y == 0 or y == 1 or y == -1 else 1.0 / float64(y)
    q = int64(kernel_math.round(float64(x) * inverse))
    r = x - q * y
    correction = int64(kernel_math.round(float64(r) * inverse))
    return q + correction, r - correction * y


@func
def _floor(x: Any, y: Any) -> Any:
    q, r = _nearest_quotient(x, y)
    q -= int64(r != 0 and (r ^ y) < 0)
    return x if y == 1 else -x if y == -1 else 0 if y == 0 else q


@func
def _mod(x: Any, y: Any) -> Any:
    _, r = _nearest_quotient(x, y)
    r += y if r != 0 and (r ^ y) < 0 else 0
    return 0 if y == 0 or y == 1 or y == -1 else r


HALF = uint64(1 << 63)


@func
def _nearest_quotient_unsigned(x: Any, y: Any) -> Any:
    """The same for uint64 and 1 < y < 2**63; the remainder is an int64."""
    inverse = 0.0 if y < 2 else 1.0 / float64(y)
    q = uint64(kernel_math.round(float64(x) * inverse))
    r = int64(x - q * y)
    correction = int64(kernel_math.round(float64(r) * inverse))
    return q + uint64(correction), r - correction * int64(y)


@func
def _floor_unsigned(x: Any, y: Any) -> Any:
    q, r = _nearest_quotient_unsigned(x, y)
    q -= uint64(r < 0)
    return uint64(x >= y) if y >= HALF else x if y == 1 else uint64(0) if y == 0 else q


@func
def _mod_unsigned(x: Any, y: Any) -> Any:
    _, r = _nearest_quotient_unsigned(x, y)
    remainder = uint64(r) + (y if r < 0 else uint64(0))
    above = x - y if x >= y else x
    return above if y >= HALF else uint64(0) if y < 2 else remainder


FLOOR_BY_NUMBER = {int64: _floor, uint64: _floor_unsigned}
MOD_BY_NUMBER = {int64: _mod, uint64: _mod_unsigned}
