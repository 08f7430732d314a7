"""What functions of Python's `math` and of NumPy are in kernels: the ufunc's expression of the same name, or a function
of this file. They compute with the types of the language: integers wrap at 64 bits."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from ...dtypes import float64, int64
from ...jit.functions import func
from ...lang.builtins import name_of, register, register_source
from ...lang.markers import kernel_math as k
from ..standard import elementwise
from . import bits, comparison, float_parts, ufuncs

__all__: list[str] = []


@func
def _divmod(x: Any, y: Any) -> Any:
    return x // y, x % y


@func
def _modf(x: Any) -> Any:
    return k.copysign(x - k.trunc(x) if k.isfinite(x) or x != x else 1 / x, x), k.trunc(x * 1.0)


@func
def _isqrt(x: Any) -> Any:
    """A root in float64 is off by one at most. 0 for what has none."""
    n = int64(x)
    root = int64(k.sqrt(float64(max(n, 0))))
    root = root - 1 if root > 0 and root > n // root else root
    return root + 1 if root + 1 <= n // (root + 1) else root


@func
def _factorial(n: Any) -> Any:
    result = 1
    for i in range(2, n + 1):
        result *= i
    return result


@func
def _perm(n: Any, k: Any = None) -> Any:
    result = 1
    count = n if k is None else k
    for i in range(n - count, n):
        result *= i + 1
    return result if count <= n else 0


@func
def _greatest_common_divisor(x: Any, y: Any) -> Any:
    a, b = x, y
    while b != 0:
        a, b = b, a % b
    return a


@func
def _comb(n: Any, count: Any) -> Any:
    """Each factor is divided before the product is formed, which is then never larger than the result."""
    result = 1
    for i in range(1, min(count, n - count) + 1):
        common = _greatest_common_divisor(result, i)
        result = result // common * ((n - min(count, n - count) + i) // (i // common))
    return result if count <= n else 0


@func
def _power_of_two(exponent: Any) -> Any:
    """Exactly, for the exponent of a normal number."""
    return ((int64(exponent) + 1023) << 52).view(float64)


@func
def _ldexp(x: Any, exponent: Any) -> Any:
    """Rounded once: a result below the normal numbers is reached by one inexact product (musl's scalbn)."""
    y = float64(x)
    n = int64(exponent)
    for _ in range(2):
        if n > 1023:
            y *= 2.0**1023
            n -= 1023
        elif n < -1022:
            y *= 2.0**-1022 * 2.0**53
            n += 1022 - 53
    return y * _power_of_two(min(max(n, -1022), 1023))


@func
def _frexp(x: Any) -> Any:
    y = float64(x)
    small = k.abs(y) < 2.0**-1022
    scaled = y * 2.0**54 if small else y
    parts = scaled.view(int64)
    exponent = ((parts >> 52) & 2047) - 1022
    special = y == 0 or not k.isfinite(y)
    mantissa = ((parts & ~(2047 << 52)) | (1022 << 52)).view(float64)
    return y if special else mantissa, 0 if special else exponent - 54 if small else exponent


@func
def _remainder(x: Any, y: Any) -> Any:
    """x - n * y for the whole n that is nearest to x / y, the even one of two, as CPython computes it."""
    a, b = k.abs(float64(x)), k.abs(float64(y))
    if a != a or b != b or k.isinf(a) or b == 0:
        return a - a + (b - b) / 0.0
    if k.isinf(b):
        return float64(x)
    m = k.fmod(a, b)
    c = b - m
    r = m if m < c else -c if m > c else m - 2.0 * k.fmod(0.5 * (a - m), b)
    return k.copysign(1.0, float64(x)) * r


@func
def _ulp(x: Any) -> Any:
    y = k.abs(float64(x))
    last = y == 2.0**1023 * (2.0 - 2.0**-52)
    return y if k.isinf(y) else 2.0**971 if last else k.nextafter(y, math.inf) - y


@func
def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    near = k.abs(a - b) <= max(rel_tol * max(k.abs(a), k.abs(b)), abs_tol)
    return a == b or (near and k.isfinite(a) and k.isfinite(b))


@func
def _array_isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Any:
    y = b * 1.0
    near = k.isfinite(y) and k.abs(a - y) <= atol + rtol * k.abs(y)
    return near or a == y or (equal_nan and a != a and y != y)


@func
def _nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    largest = k.nextafter(x, 0.0)
    high = largest if posinf is None else posinf
    low = largest if neginf is None else neginf
    return x if k.isfinite(x) else nan if x != x else high if x > 0 else low


@func
def _iscomplex(x: Any) -> Any:
    return k.imag(x) != 0


@func
def _isreal(x: Any) -> Any:
    return k.imag(x) == 0


@func
def _float_power(x: Any, y: Any) -> Any:
    return float64(x) ** float64(y)


@func
def _gcd(x: Any = 0, y: Any = 0) -> Any:
    return ufuncs.gcd(x, y)


@func
def _lcm(x: Any = 1, y: Any = 1) -> Any:
    return ufuncs.lcm(x, y)


# function of Python's or NumPy's → what it is in kernels
_FUNCTIONS: dict[Any, Any] = {
    builtins.divmod: _divmod, np.divmod: _divmod, math.modf: _modf, np.modf: _modf, math.isqrt: _isqrt,
    math.factorial: _factorial, math.perm: _perm, math.comb: _comb, math.ldexp: _ldexp, np.ldexp: _ldexp,
    math.frexp: _frexp, np.frexp: _frexp, math.remainder: _remainder, math.ulp: _ulp, math.isclose: _isclose,
    math.gcd: _gcd, math.lcm: _lcm, math.degrees: ufuncs.degrees, math.radians: ufuncs.radians,
    np.float_power: _float_power, np.spacing: float_parts.spacing, np.bitwise_count: bits.bitwise_count,
    np.clip: elementwise.clip, np.sinc: ufuncs.sinc, np.i0: ufuncs.i0, np.isposinf: ufuncs.isposinf,
    np.isneginf: ufuncs.isneginf, np.isclose: _array_isclose, np.nan_to_num: _nan_to_num, np.iscomplex: _iscomplex,
    np.isreal: _isreal,
}  # fmt: skip
_NAMES = {"invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift"}

for _name, _ufunc in vars(np).items():
    if isinstance(_ufunc, np.ufunc) and name_of(_ufunc) is None:
        _own = _NAMES.get(_ufunc.__name__, _ufunc.__name__)
        _made = getattr(elementwise, _own, getattr(ufuncs, _own, None))
        if _made is not None:
            _FUNCTIONS.setdefault(_ufunc, _made)
for _function, _made in _FUNCTIONS.items():
    if hasattr(_made, "__pyarray_func__") and name_of(_function) is None:
        register_source(_function, _made.__pyarray_func__)
# The library's own: the public functions are made of these later, with their attributes.
_OWN: Any = (
    (comparison.isclose, _array_isclose), (comparison.nan_to_num, _nan_to_num), (comparison.iscomplex, _iscomplex),
    (comparison.isreal, _isreal), (ufuncs.float_power, _float_power), (float_parts.ldexp, _ldexp),
    (float_parts.frexp, _frexp), (float_parts.modf, _modf),
)  # fmt: skip
for _function, _made in _OWN:
    _function.__pyarray_func__ = _made.__pyarray_func__
for _function, _name in (
    (np.real, "real"), (np.imag, "imag"), (np.angle, "angle"), (np.fix, "trunc"), (np.round, "round"),
    (np.around, "round"),
):  # fmt: skip
    register(_function, _name)
