"""Elementwise functions: a declaration each, whose body is an expression of the kernel language.

What they have in common (promotion, broadcasting, `out=`, the launch) is in `ufunc.py`; element arithmetic in
`csrc/device`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...array import ndarray
from ...array_convert import asarray
from ...dtypes import DType, float64, int8, result_type
from ...jit.functions import Func, func
from ...jit.replay import replayable
from ...kernels.elementwise.elementwise import MapOp
from ...kernels.elementwise.invariant_division import FLOOR_BY_NUMBER, MOD_BY_NUMBER
from ...lang.markers import kernel_math as k
from ...typing import ArrayLike
from ..core.registry import method
from ..core.ufunc import POWERS, Power, Ufunc, as_operands, can_hold, compute
from ..core.ufunc_functions import UfuncFunction, make_function

# All ufuncs by name: no decisions.
UFUNCS: dict[str, Ufunc] = {}


def ufunc(
    name: str,
    kinds: str,
    body: Callable[..., Any],
    result: str = "same",
    promote_to: DType | None = None,
    doc: str = "",
    by_number: Mapping[DType, Func] | None = None,
) -> UfuncFunction:
    """Declare a ufunc and return its function."""
    UFUNCS[name] = describe_ufunc(name, kinds, body, result, promote_to, doc, by_number=by_number)
    return make_function(UFUNCS[name])


def describe_ufunc(
    name: str,
    kinds: str,
    body: Callable[..., Any],
    result: str = "same",
    promote_to: DType | None = None,
    doc: str = "",
    namespace: str = "pa",
    by_number: Mapping[DType, Func] | None = None,
) -> Ufunc:
    """A ufunc with the docstring of its function, which is found in `namespace`."""
    arity = body.__code__.co_argcount
    operands, example = ("x", "[1, 2]") if arity == 1 else ("x1, x2", "[1, 2], 3")
    returns = {"same": "their common type", "bool": "bool", "real": "the real component type"}[result]
    kind = returns if arity > 1 else returns.replace("their common", "the operand’s")
    lifted = f"; bools and integers are computed as {promote_to}" if promote_to is not None else ""
    errors = "`TypeError` for types it isn't defined over, `ValueError` for shapes that don't broadcast"
    if arity > 1 and result != "bool":
        errors += ",\n    `OverflowError` for a Python integer that the array's type can't hold"
    of_integers = "bool" if result == "bool" else "int64" if "i" in kinds else promote_to
    text = f"""{name}({operands}, /, *, out=None): {doc}.

    Elementwise over arrays that broadcast together; at most one operand may be a Python number.
    The result's dtype is {kind}{lifted}.
    Raises {errors}.

    >>> {namespace}.{name}({example}).dtype
    dtype('{of_integers}')
    """
    return Ufunc(name, kinds, func(body), result, promote_to, text, by_number or {})


INT, REAL, NUMERIC, FLOATING = "iu", "iuf", "iufc", "fc"
ANY_REAL, ALL = "biuf", "biufc"

# fmt: off
abs = ufunc("abs", ALL, lambda x: k.abs(x), "real", doc="absolute value")
acos = ufunc("acos", FLOATING, lambda x: k.acos(x), promote_to=float64, doc="inverse cosine, radians")
acosh = ufunc("acosh", FLOATING, lambda x: k.acosh(x), promote_to=float64, doc="inverse hyperbolic cosine")
add = ufunc("add", ALL, lambda x, y: x + y, doc="x1 + x2")
asin = ufunc("asin", FLOATING, lambda x: k.asin(x), promote_to=float64, doc="inverse sine, radians")
asinh = ufunc("asinh", FLOATING, lambda x: k.asinh(x), promote_to=float64, doc="inverse hyperbolic sine")
atan = ufunc("atan", FLOATING, lambda x: k.atan(x), promote_to=float64, doc="inverse tangent, radians")
atan2 = ufunc("atan2", "f", lambda x, y: k.atan2(x, y), promote_to=float64,
            doc="angle of the point (x2, x1), radians")
atanh = ufunc("atanh", FLOATING, lambda x: k.atanh(x), promote_to=float64, doc="inverse hyperbolic tangent")
bitwise_and = ufunc("bitwise_and", "biu", lambda x, y: x & y, doc="bits set in both")
bitwise_invert = ufunc("bitwise_invert", "biu", lambda x: ~x, doc="bits flipped; logical not of bools")
bitwise_left_shift = ufunc("bitwise_left_shift", INT, lambda x, y: x << y, promote_to=int8,
                         doc="x1 shifted left by x2 bits; 0 from the type's width on")
bitwise_or = ufunc("bitwise_or", "biu", lambda x, y: x | y, doc="bits set in either")
bitwise_right_shift = ufunc("bitwise_right_shift", INT, lambda x, y: x >> y, promote_to=int8,
                          doc="x1 shifted right by x2 bits; the sign is kept")
bitwise_xor = ufunc("bitwise_xor", "biu", lambda x, y: x ^ y, doc="bits set in one of them")
cbrt = ufunc("cbrt", "f", lambda x: k.cbrt(x), promote_to=float64, doc="cube root")
ceil = ufunc("ceil", ANY_REAL, lambda x: k.ceil(x), doc="smallest integer not below x")
conj = method(ufunc("conj", NUMERIC, lambda x: k.conj(x), promote_to=int8, doc="complex conjugate"))
copysign = ufunc("copysign", "f", lambda x, y: k.copysign(x, y), promote_to=float64, doc="x1 with the sign of x2")
cos = ufunc("cos", FLOATING, lambda x: k.cos(x), promote_to=float64, doc="cosine of x in radians")
cosh = ufunc("cosh", FLOATING, lambda x: k.cosh(x), promote_to=float64, doc="hyperbolic cosine")
divide = ufunc("divide", FLOATING, lambda x, y: x / y, promote_to=float64, doc="x1 / x2")
equal = ufunc("equal", ALL, lambda x, y: x == y, "bool", doc="x1 == x2")
exp = ufunc("exp", FLOATING, lambda x: k.exp(x), promote_to=float64, doc="e to the power x")
exp2 = ufunc("exp2", "f", lambda x: k.exp2(x), promote_to=float64, doc="2 to the power x")
expm1 = ufunc("expm1", FLOATING, lambda x: k.expm1(x), promote_to=float64, doc="exp(x) - 1, accurate near 0")
floor = ufunc("floor", ANY_REAL, lambda x: k.floor(x), doc="largest integer not above x")
floor_divide = ufunc("floor_divide", REAL, lambda x, y: x // y, promote_to=int8,
                   doc="x1 / x2 rounded down; 0 for an integer divided by 0", by_number=FLOOR_BY_NUMBER)
fmod = ufunc("fmod", REAL, lambda x, y: k.fmod(x, y), promote_to=int8,
           doc="remainder with the sign of x1; 0 for an integer divided by 0")
greater = ufunc("greater", "biuf", lambda x, y: x > y, "bool", doc="x1 > x2")
greater_equal = ufunc("greater_equal", "biuf", lambda x, y: x >= y, "bool", doc="x1 >= x2")
hypot = ufunc("hypot", "f", lambda x, y: k.hypot(x, y), promote_to=float64,
            doc="sqrt(x1**2 + x2**2) without overflow")
imag = ufunc("imag", ALL, lambda x: k.imag(x), "real", doc="imaginary part")
isfinite = ufunc("isfinite", NUMERIC, lambda x: k.isfinite(x), "bool", int8,
               "whether x is neither NaN nor an infinity")
isinf = ufunc("isinf", NUMERIC, lambda x: k.isinf(x), "bool", int8, "whether x is an infinity")
isnan = ufunc("isnan", NUMERIC, lambda x: k.isnan(x), "bool", int8, "whether x is not a number")
less = ufunc("less", "biuf", lambda x, y: x < y, "bool", doc="x1 < x2")
less_equal = ufunc("less_equal", "biuf", lambda x, y: x <= y, "bool", doc="x1 <= x2")
log = ufunc("log", FLOATING, lambda x: k.log(x), promote_to=float64, doc="natural logarithm")
log10 = ufunc("log10", FLOATING, lambda x: k.log10(x), promote_to=float64, doc="logarithm to base 10")
log1p = ufunc("log1p", FLOATING, lambda x: k.log1p(x), promote_to=float64, doc="log(1 + x), accurate near 0")
log2 = ufunc("log2", FLOATING, lambda x: k.log2(x), promote_to=float64, doc="logarithm to base 2")
logaddexp = ufunc("logaddexp", "f", lambda x, y: k.logaddexp(x, y), promote_to=float64,
                doc="log(exp(x1) + exp(x2)) without overflow")
logical_and = ufunc("logical_and", ALL, lambda x, y: bool(x) and bool(y), "bool", doc="whether both are true")
logical_not = ufunc("logical_not", ALL, lambda x: not x, "bool", doc="whether x is false")
logical_or = ufunc("logical_or", ALL, lambda x, y: bool(x) or bool(y), "bool", doc="whether either is true")
logical_xor = ufunc("logical_xor", ALL, lambda x, y: bool(x) != bool(y), "bool",
                  doc="whether one of them is true")
maximum = ufunc("maximum", "biuf", lambda x, y: max(x, y), doc="larger one; NaN if either is")
minimum = ufunc("minimum", "biuf", lambda x, y: min(x, y), doc="smaller one; NaN if either is")
multiply = ufunc("multiply", ALL, lambda x, y: x * y, doc="x1 * x2")
negative = ufunc("negative", NUMERIC, lambda x: -x, doc="-x")
nextafter = ufunc("nextafter", "f", lambda x, y: k.nextafter(x, y), promote_to=float64,
                doc="next representable number from x1 towards x2")
not_equal = ufunc("not_equal", ALL, lambda x, y: x != y, "bool", doc="x1 != x2")
positive = ufunc("positive", NUMERIC, lambda x: +x, doc="a copy of x")
pow = ufunc("pow", NUMERIC, lambda x, y: x ** y, promote_to=int8,
          doc="x1 to the power x2; of floats, the numbers 2, -1 and 0.5 are square, reciprocal and sqrt")
real = ufunc("real", ALL, lambda x: k.real(x), "real", doc="real part")
reciprocal = ufunc("reciprocal", FLOATING, lambda x: k.recip(x), promote_to=float64, doc="1 / x")
remainder = ufunc("remainder", REAL, lambda x, y: x % y, promote_to=int8,
                doc="x1 - x2 * floor(x1 / x2); 0 for an integer divided by 0", by_number=MOD_BY_NUMBER)
round: Any = ufunc("round", NUMERIC, lambda x: k.round(x), promote_to=int8, doc="nearest integer, ties to even")
sign = ufunc("sign", NUMERIC, lambda x: k.sign(x), doc="-1, 0 or 1; z / |z| of a complex number")
signbit = ufunc("signbit", "f", lambda x: k.signbit(x), "bool", float64, "whether the sign bit is set")
sin = ufunc("sin", FLOATING, lambda x: k.sin(x), promote_to=float64, doc="sine of x in radians")
sinh = ufunc("sinh", FLOATING, lambda x: k.sinh(x), promote_to=float64, doc="hyperbolic sine")
sqrt = ufunc("sqrt", FLOATING, lambda x: k.sqrt(x), promote_to=float64, doc="square root")
square = ufunc("square", NUMERIC, lambda x: x * x, promote_to=int8, doc="x * x")
subtract = ufunc("subtract", NUMERIC, lambda x, y: x - y, doc="x1 - x2")
tan = ufunc("tan", FLOATING, lambda x: k.tan(x), promote_to=float64, doc="tangent of x in radians")
tanh = ufunc("tanh", FLOATING, lambda x: k.tanh(x), promote_to=float64, doc="hyperbolic tangent")
trunc = ufunc("trunc", ANY_REAL, lambda x: k.trunc(x), doc="x without its fraction")
# fmt: on

for _exponent, _function in ((2, square), (-1, reciprocal), (0.5, sqrt)):
    POWERS[_exponent] = Power(MapOp("pow", UFUNCS[_function.__name__].function), _function)

_CLIP = MapOp("clip", func(lambda x, a_min, a_max: min(max(x, a_min), a_max)))


@method
@replayable
def clip(
    x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None, *, out: ndarray | None = None
) -> ndarray:
    """`x` with elements below `min` raised to it and elements above `max` lowered to it; None: no limit on
    that side. NaN stays NaN.

    `min` and `max` are numbers, or arrays that broadcast with `x`; of a Python integer that the type of `x`
    can't hold, the type's own end is the limit. Where `min > max`, the result is `max`.
    Raises `TypeError` for bools and complex numbers.

    >>> pa.clip(pa.asarray([1, 5, 9]), 2, 6).tolist()
    [2, 5, 6]
    """
    if min is None and max is None:
        return positive(x, out=out)
    limits = [limit for limit in (min, max) if limit is not None]
    x, *limits = as_operands("clip", (x, *limits))
    dtype = result_type(x := asarray(x), *limits)
    limits = [_within(dtype, limit) for limit in limits]
    if min is None or max is None:
        return (minimum if min is None else maximum)(x, limits[0], out=out)
    if dtype.kind in "bc":
        raise TypeError(f"clip() is not defined for {dtype}; cast x, min and max to a real type")
    return compute(_CLIP, dtype, dtype, [x, *limits], out, ("x", "min", "max"))


def _within(dtype: DType, limit: Any) -> Any:
    """A limit of `clip` that bounds the same values of `dtype`: of a Python integer outside its range, the
    range's end."""
    if type(limit) is not int or can_hold(dtype, limit):
        return limit
    if dtype.kind not in "iu":
        return math.inf if limit > 0 else -math.inf
    ends = np.iinfo(dtype.numpy)
    return ends.min if limit < 0 else ends.max


clip.__pyarray_func__ = _CLIP.function.__pyarray_func__  # type: ignore[attr-defined]

# all ufuncs of this file and clip, written out for type checkers; the public `round` is that of numpy/ufuncs.py
__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "cbrt",
    "ceil", "clip", "conj", "copysign", "cos", "cosh", "divide", "equal", "exp", "exp2", "expm1", "floor",
    "floor_divide", "fmod", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan",
    "less", "less_equal", "log", "log1p", "log2", "log10", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter", "not_equal",
    "positive", "pow", "real", "reciprocal", "remainder", "sign", "signbit", "sin", "sinh",
    "sqrt", "square", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip
