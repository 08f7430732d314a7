"""Functions of elements: one operand, two, operators, `out=`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import pyarray as pa

from ..draw import Draw
from .base import Arguments, drawn, row, rows, shaped

_WIDE = ("float16", "float32", "float64")  # of bfloat16 the next number isn't float32's
_TESTS = "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"


def unary(values: str = "any", out: str = "same") -> Callable[[Draw], Arguments]:
    """One operand; now and then `out=`, of the operand's type (`same`), bool, or never (``)."""

    def draw(d: Draw) -> Arguments:
        x = d.array(d.shape(), values=values)
        if out and d.chance(0.2) and x.shape:
            return (x,), {"out": d.array(x.shape, "bool" if out == "bool" else None, values, write=True, ours=True)}
        return (x,), {}

    return draw


def other_dtype(d: Draw, kinds: str = "biufc") -> str:
    """The case's dtype, or one that promotes with it as NumPy's do."""
    if d.chance(0.85) or len(d.dtypes) < 2:
        return d.dtype
    other = str(d.one_of(d.dtypes))
    if "bfloat16" in (d.dtype, other):
        return d.dtype
    try:
        same = pa.result_type(d.dtype, other).name == np.result_type(d.dtype, other).name
    except TypeError:
        return d.dtype
    return other if same else d.dtype


def scalar(d: Draw, values: str) -> Any:
    """A Python number that is weak beside the case's dtype."""
    kind = np.dtype("float32" if d.dtype == "bfloat16" else d.dtype).kind
    if kind == "b":
        return d.one_of((True, False))
    whole = d.integer(0 if values == "bits" or kind == "u" else -3, 7)
    if values in ("positive", "bits"):
        whole = abs(whole) + 1
    if kind in "iu" or d.chance(0.3):
        return whole
    extra = () if values in ("positive", "unit", "finite") else (-0.0, 0.0, float("inf"), float("nan"))
    return d.one_of((whole / 4, whole / 4, *extra))


def binary(
    values: str = "any", second: str = "", out: str = "same", numbers: bool = True
) -> Callable[[Draw], Arguments]:
    """Two operands that broadcast, either may be a number."""

    def draw(d: Draw) -> Arguments:
        shape = d.shape()
        mine = "0:8" if values == "bits" else values
        theirs = "0:7" if (second or values) == "bits" else second or values
        shapes = [shape, d.broadcastable(shape)]
        dtypes = [d.dtype, other_dtype(d)]
        if d.chance(0.5):
            shapes.reverse()
        x, y = d.array(shapes[0], dtypes[0], mine), d.array(shapes[1], dtypes[1], theirs)
        if numbers and d.chance(0.2):
            number = scalar(d, second or values)
            return ((x, number) if second or d.chance(0.6) else (scalar(d, values), y)), {}
        if out and d.chance(0.2) and dtypes[0] == dtypes[1]:
            joint = np.broadcast_shapes(*shapes)
            dtype = "bool" if out == "bool" else None
            return (x, y), {"out": d.array(joint, dtype, values, write=True, ours=True)} if joint else {}
        return (x, y), {}

    return draw


def in_place(values: str = "any", second: str = "") -> Callable[[Draw], Arguments]:
    """An array that is written, and what broadcasts to it."""

    def draw(d: Draw) -> Arguments:
        shape = d.shape(least=1)
        mine = "0:8" if values == "bits" else values
        theirs = "0:7" if (second or values) == "bits" else second or values
        x = d.array(shape, values=mine, write=True, ours=True)
        if d.chance(0.25):
            return (x, scalar(d, second or values)), {}
        y = d.array(shape if d.chance(0.6) else d.broadcastable(shape), values=theirs)
        return (x, y), {}

    return draw


def _not_into(name: str, x: Any, out: Any = None) -> Any:
    """NumPy's function, whose vectors don't write a strided `out` right."""
    result = getattr(np, name)(x)
    if out is None:
        return result
    out[...] = result
    return out


# ---- one operand

rows("positive negative square", unary(), "iuf")
rows("abs absolute", unary(), "biuf")
rows("negative positive", unary(), "c")
rows("abs square", unary("finite", ""), "c", "ulp")
rows("sign", unary(out=""), "iuf")
rows("floor ceil trunc rint fix", unary(), "f")
rows("floor ceil trunc", unary(out=""), "biu")
for _name in ("isnan", "isinf", "isfinite", "signbit"):
    row(_name, unary(out="bool"), "f", theirs=functools.partial(_not_into, _name))
rows("isposinf isneginf", unary(out=""), "f")
rows("isnan isinf isfinite", unary(out="bool"), "iuc")
rows("isreal iscomplex", unary(out=""))
rows("logical_not", unary(out="bool"))
rows("invert bitwise_not bitwise_invert", unary(), "biu")
row("bitwise_count", unary(out=""), "biu")
rows("real imag conj conjugate", unary(out=""), "iufc")
rows("sqrt", unary(), "f")
rows("reciprocal", unary(out=""), "iuf")
rows("fabs", unary(), "f")
row("rsqrt", unary("any", ""), "f", "ulp", theirs=lambda x: 1 / np.sqrt(x))
row("spacing", unary(), dtypes=_WIDE)
rows("sqrt exp log sin", unary("positive", ""), "biu", "ulp")
rows("exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt", unary(), "f", "ulp")
rows("asin acos atan asinh acosh atanh", unary(), "f", "ulp")
rows("arcsin arccos arctan arcsinh arccosh arctanh", unary("unit"), "f", "ulp")
rows(
    "exp log sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh",
    unary("finite", ""),
    "c",
    "ulp",
)
rows("deg2rad rad2deg radians degrees", unary("specials"), "f", "ulp")
rows("sinc i0", unary("finite", ""), "f", "sum")


def _rounded(d: Draw) -> Arguments:
    """The number times ten is rounded to bfloat16; what that is compared with is computed in float32."""
    return (d.array(d.shape(), values="finite"), 0 if d.dtype == "bfloat16" else d.integer(0, 2)), {}


rows("around round", _rounded, "if", "ulp")
row("angle", lambda d: ((d.array(d.shape(), values="finite"), d.one_of((True, False))), {}), "fc", "ulp")
rows("modf frexp", unary("specials", ""), "f")
row(
    "nan_to_num",
    lambda d: ((d.array(d.shape()),), d.options(nan=(0.0, 2.5), posinf=(7.0,), neginf=(-7.0,))),
    dtypes=_WIDE,
)
row("real_if_close", unary("finite", ""), "fc")


def mixed(d: Draw) -> Arguments:
    """Two dtypes of any kinds."""
    shape = d.shape()
    return (d.array(shape, values="few"), d.array(d.broadcastable(shape), str(d.one_of(d.dtypes)), "few")), {}


rows("add multiply maximum divide less equal", mixed, "biuf", "sum", few=False)
rows("less maximum", shaped(lambda d, x: ((d.array(x, values="few"), d.array(x, values="few")), {})), "c")

# ---- two operands

rows("add subtract multiply", binary(), "iuf")
rows("add multiply", binary(), "b")
rows("add subtract", binary(), "c")
rows("multiply divide", binary("finite"), "c", "ulp")
rows("divide true_divide", binary(), "f")
rows("divide", binary(out=""), "iu")
rows("floor_divide remainder mod fmod", binary("finite", "positive"), "f")
rows("floor_divide remainder mod fmod", binary(), "iu")
row("divmod", binary("any", out=""), "iu")
row("divmod", binary("finite", "positive", out=""), "f")
rows("maximum minimum fmax fmin", binary(), "biuf", "equal")
rows(_TESTS, binary(out="bool"), "biuf")
rows("equal not_equal logical_and logical_or logical_xor", binary(out="bool"), "c")
rows("bitwise_and bitwise_or bitwise_xor", binary(), "biu")
rows("left_shift right_shift bitwise_left_shift bitwise_right_shift", binary("bits"), "iu")
rows("copysign heaviside", binary(), "f")
row("nextafter", binary(), dtypes=_WIDE)
rows("hypot arctan2 atan2", binary("specials"), "f", "ulp")
rows("logaddexp logaddexp2", binary("specials"), "f", "sum")
rows("gcd lcm", binary("finite"), "iu")
rows("pow power", binary("positive", "unit"), "f", "ulp")
rows("pow power", binary("finite", "0:5", out=""), "iu")
row("pow", binary("finite", "unit", numbers=False, out=""), "c", "ulp")
row("float_power", binary("positive", "unit", out=""), "f", "ulp")


@drawn("ldexp", "f")
def _ldexp(d: Draw) -> Arguments:
    shape = d.shape()
    return (d.array(shape), d.array(d.broadcastable(shape), "int32", "-8:8")), {}


@drawn("clip", "iuf", "equal")
def _clip(d: Draw) -> Arguments:
    shape = d.shape()
    x = d.array(shape)
    ends = [scalar(d, "finite"), scalar(d, "finite")]
    if d.chance(0.5):
        ends = [d.array(d.broadcastable(shape), values="finite") for _ in range(2)]
    if d.chance(0.2):
        ends[d.integer(0, 1)] = None
    out = {"out": d.array(shape, write=True, ours=True)} if shape and d.chance(0.2) else {}
    return (x, *ends), out


@drawn("where")
def _where(d: Draw) -> Arguments:
    shape = d.shape()
    condition = d.array(d.broadcastable(shape), "bool")
    x, y = d.array(shape), d.array(d.broadcastable(shape))
    if d.chance(0.2):
        return (condition, x, scalar(d, "any")), {}
    if d.chance(0.2):
        return (condition, scalar(d, "any"), y), {}
    return (condition, x, y), {}


@drawn("isclose allclose", "if")
def _isclose(d: Draw) -> Arguments:
    shape = d.shape()
    options = d.options(rtol=(0.1, 0.0), atol=(0.5,), equal_nan=(True,))
    return (d.array(shape, values="specials"), d.array(d.broadcastable(shape), values="specials")), options


@drawn("array_equal array_equiv", "biuf")
def _array_equal(d: Draw) -> Arguments:
    shape = d.shape()
    return (d.array(shape, values="few"), d.array(d.broadcastable(shape), values="few")), {}


# ---- operators

_OPERATORS: dict[str, tuple[str, str, str, str, str]] = {
    # of two operands: values, those of the second, kinds, closeness
    "add": ("any", "", "biuf", "exact", "i"),
    "sub": ("any", "", "iuf", "exact", "i"),
    "mul": ("any", "", "iuf", "exact", "i"),
    "truediv": ("any", "", "f", "exact", "i"),
    "floordiv": ("any", "", "iu", "exact", "i"),
    "mod": ("any", "", "iu", "exact", "i"),
    "pow": ("finite", "0:5", "iu", "exact", "i"),
    "and": ("any", "", "biu", "exact", "i"),
    "or": ("any", "", "biu", "exact", "i"),
    "xor": ("any", "", "biu", "exact", "i"),
    "lshift": ("bits", "", "iu", "exact", "i"),
    "rshift": ("bits", "", "iu", "exact", "i"),
    "lt": ("any", "", "biuf", "exact", ""),
    "le": ("any", "", "biuf", "exact", ""),
    "gt": ("any", "", "biuf", "exact", ""),
    "ge": ("any", "", "biuf", "exact", ""),
    "eq": ("any", "", "biufc", "exact", ""),
    "ne": ("any", "", "biufc", "exact", ""),
}
_FUNCTIONS = {"and": operator.and_, "or": operator.or_}


def _operator(name: str) -> Any:
    return _FUNCTIONS.get(name) or getattr(operator, name)


def _reflected(values: str, second: str) -> Callable[[Draw], Arguments]:
    def draw(d: Draw) -> Arguments:
        first = "finite" if values == "bits" else values
        y = d.array(d.shape(least=1), values="0:7" if (second or values) == "bits" else second or first)
        return (scalar(d, values), y), {}

    return draw


for _name, (_values, _second, _kinds, _close, _inplace) in _OPERATORS.items():
    _f = _operator(_name)
    row(f"ndarray.__{_name}__", binary(_values, _second, out=""), _kinds, _close, ours=_f, theirs=_f)
    if _inplace:
        _g = getattr(operator, f"i{_name}")
        row(f"ndarray.__i{_name}__", in_place(_values, _second), _kinds, _close, ours=_g, theirs=_g)
        row(f"ndarray.__r{_name}__", _reflected(_values, _second), _kinds, _close, ours=_f, theirs=_f)
row("ndarray.__divmod__", binary("any", out=""), "iu", ours=divmod, theirs=divmod)
row("ndarray.__rdivmod__", _reflected("any", ""), "iu", ours=divmod, theirs=divmod)
for _name in ("neg", "pos", "abs", "invert"):
    _f = abs if _name == "abs" else getattr(operator, _name)
    row(f"ndarray.__{_name}__", unary(out=""), "iu" if _name == "invert" else "iuf", ours=_f, theirs=_f)
rows("ndarray.conj ndarray.conjugate", unary(out=""), "iufc")
rows("ndarray.clip", lambda d: ((d.array(d.shape()), scalar(d, "finite"), scalar(d, "finite")), {}), "iuf")
rows("ndarray.round", _rounded, "if", "ulp")
