"""The builtin functions of the kernel language, a table row each.

A row has the function's name, its number of arguments, the kinds of element types it takes, and what it
returns. Its C name is `pa_<name>_<suffix>` of the domain type (csrc/device). Half types are computed in
float32 and rounded. An argument of a kind outside the domain is promoted: bool → int8, integer → float64."""

from __future__ import annotations

import builtins as python
import cmath
import copy
import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BuiltinFunction:
    """`result`: "same", "bool", or "real" (the component type of a complex domain). `cost`: in units of an
    addition, per element."""

    name: str
    arity: int
    kinds: str
    result: str = "same"
    cost: int = 1
    doc: str = ""


_FLOAT_UNARY = {
    "sin": "sine", "cos": "cosine", "tan": "tangent", "asin": "inverse sine", "acos": "inverse cosine",
    "atan": "inverse tangent", "sinh": "hyperbolic sine", "cosh": "hyperbolic cosine",
    "tanh": "hyperbolic tangent", "asinh": "inverse hyperbolic sine", "acosh": "inverse hyperbolic cosine",
    "atanh": "inverse hyperbolic tangent", "exp": "e to the power x", "expm1": "exp(x) - 1",
    "log": "natural logarithm", "log1p": "log(1 + x)", "log2": "logarithm to base 2",
    "log10": "logarithm to base 10",
}  # fmt: skip

_ROWS = (
    *(BuiltinFunction(name, 1, "fc", cost=12, doc=doc) for name, doc in _FLOAT_UNARY.items()),
    BuiltinFunction("sqrt", 1, "fc", cost=6, doc="square root"),
    BuiltinFunction("exp2", 1, "f", cost=12, doc="2 to the power x"),
    BuiltinFunction("approx_exp2", 1, "f", doc="2 to the power x; of float32 on GPUs within 2^-21, relatively"),
    BuiltinFunction("approx_recip", 1, "f", doc="1 / x; of float32 on GPUs within 2^-21, or 0 for large x"),
    BuiltinFunction("cbrt", 1, "f", cost=16, doc="cube root"),
    BuiltinFunction("erf", 1, "f", cost=16, doc="error function"),
    BuiltinFunction("erfc", 1, "f", cost=16, doc="complementary error function"),
    BuiltinFunction("lgamma", 1, "f", cost=30, doc="logarithm of the gamma function's absolute value"),
    BuiltinFunction("tgamma", 1, "f", cost=30, doc="gamma function"),
    BuiltinFunction("floor", 1, "iuf", doc="largest integer not above x"),
    BuiltinFunction("ceil", 1, "iuf", doc="smallest integer not below x"),
    BuiltinFunction("trunc", 1, "iuf", doc="x without its fraction"),
    BuiltinFunction("round", 1, "iufc", doc="nearest integer, ties to even"),
    BuiltinFunction("abs", 1, "iufc", "real", doc="absolute value"),
    BuiltinFunction("square", 1, "iufc", doc="x * x"),
    BuiltinFunction("recip", 1, "fc", cost=4, doc="1 / x"),
    BuiltinFunction("sign", 1, "iufc", doc="-1, 0 or 1; z / |z| of a complex number"),
    BuiltinFunction("isnan", 1, "iufc", "bool", doc="whether x is not a number"),
    BuiltinFunction("isinf", 1, "iufc", "bool", doc="whether x is an infinity"),
    BuiltinFunction("isfinite", 1, "iufc", "bool", doc="whether x is neither NaN nor an infinity"),
    BuiltinFunction("signbit", 1, "f", "bool", doc="whether the sign bit is set"),
    BuiltinFunction("conj", 1, "iufc", doc="complex conjugate"),
    BuiltinFunction("real", 1, "iufc", "real", doc="real part"),
    BuiltinFunction("imag", 1, "iufc", "real", doc="imaginary part"),
    BuiltinFunction("angle", 1, "fc", "real", cost=20, doc="argument of a complex number, radians"),
    BuiltinFunction("min", 2, "biuf", doc="smaller one; NaN if either is"),
    BuiltinFunction("max", 2, "biuf", doc="larger one; NaN if either is"),
    BuiltinFunction("atan2", 2, "f", cost=20, doc="angle of the point (x2, x1), radians"),
    BuiltinFunction("fma", 3, "f", doc="x1 * x2 + x3, rounded once"),
    BuiltinFunction("hypot", 2, "f", cost=12, doc="sqrt(x1**2 + x2**2) without overflow"),
    BuiltinFunction("copysign", 2, "f", doc="x1 with the sign of x2"),
    BuiltinFunction("nextafter", 2, "f", cost=6, doc="next number from x1 towards x2"),
    BuiltinFunction("fmod", 2, "iuf", cost=12, doc="remainder with the sign of x1"),
    BuiltinFunction("logaddexp", 2, "f", cost=30, doc="log(exp(x1) + exp(x2)) without overflow"),
)
FUNCTIONS = {row.name: row for row in _ROWS}

_OPERATIONS = ("add", "sub", "min", "max", "and", "or", "xor", "exchange", "cas")
ATOMICS = {f"atomic_{op}": op for op in _OPERATIONS}

# Python's own functions and other names of the same thing. Functions of pyarray carry `__pyarray_builtin__`.
_PYTHON: dict[Any, str] = {
    python.abs: "abs", python.min: "min", python.max: "max", python.round: "round", python.pow: "pow",
    math.fabs: "abs", math.ceil: "ceil", math.gamma: "tgamma", math.pow: "pow",
}  # fmt: skip
for _module in (math, cmath):
    for _name in FUNCTIONS:
        if hasattr(_module, _name):
            _PYTHON.setdefault(getattr(_module, _name), _name)

ALIASES = {
    "absolute": "abs", "minimum": "min", "maximum": "max", "negative": "neg", "reciprocal": "recip",
    "fabs": "abs", "rint": "round", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "conjugate": "conj",
    "power": "pow",
}  # fmt: skip


def name_of(function: Any) -> str | None:
    """Row name of a Python, math, NumPy or pyarray function; None for any other object.

    >>> name_of(math.sin), name_of(abs), name_of(print)
    ('sin', 'abs', None)
    """
    marked = getattr(function, "__pyarray_builtin__", None)
    if marked is not None:
        return str(marked)
    try:
        if function in _PYTHON:
            return _PYTHON[function]
    except TypeError:
        return None
    if getattr(function, "__module__", None) == "numpy" and getattr(function, "__name__", "") == "where":
        return "where"
    if type(function).__module__ == "numpy" and type(function).__name__ == "ufunc":
        name = ALIASES.get(function.__name__, function.__name__)
        return name if name in FUNCTIONS or name == "pow" else None
    return None


_LOOP = "write the loop"
_ADVICE: dict[Any, str] = {
    python.sum: _LOOP, python.any: _LOOP, python.all: _LOOP,
    python.enumerate: "write it in a for loop", python.zip: "write it in a for loop",
    python.sorted: "sort on the host, before the launch", python.reversed: "write it in a for loop",
    python.map: _LOOP, python.filter: _LOOP,
    python.complex: "write x + y * 1j, or pa.complex64(x)", python.int: "give it a number",
    python.float: "give it a number; math.inf and math.nan are known", python.pow: "write x ** y",
    python.range: "write it in a for loop", python.isinstance: "compare element types: v.dtype == pa.float32",
    python.type: "compare element types: v.dtype == pa.float32", python.str: "print(f'{x}') shows a number",
    math.fsum: _LOOP, math.prod: _LOOP, math.dist: _LOOP, copy.copy: "write dataclasses.replace(p), or p.copy()",
}  # fmt: skip


def advice_for(function: Any) -> str:
    """What to write in the place of a function that kernels don't have; "" where there is nothing to say."""
    try:
        advice = _ADVICE.get(function)
    except TypeError:
        return ""
    if advice is None and (getattr(function, "__module__", None) or "").partition(".")[0] == "numpy":
        return "call it on the host; in a kernel write the loop"
    return advice or ""


def draws(function: Any) -> bool:
    """Whether it is one of the functions, methods and classes that draw random numbers: of Python, of NumPy,
    or of pyarray."""
    homes = (function, type(getattr(function, "__self__", None)))
    names = [getattr(home, "__module__", None) or "" for home in homes]
    return any(f"{name}.".startswith(("random.", "numpy.random.", "pyarray.random.")) for name in names)


def register(function: Any, name: str) -> None:
    """Registers a Python object of a module above as the builtin `name`."""
    _PYTHON[function] = name


# function of Python's or NumPy's → the source of the `@func` that it is in kernels
_SOURCES: dict[Any, Any] = {}


def register_source(function: Any, source: Any) -> None:
    """Registers what a function of a module above is compiled from."""
    _SOURCES[function] = source


def source_for(function: Any) -> Any:
    """What a call of a function in a kernel is compiled from; None where that is no `@func`."""
    try:
        return getattr(function, "__pyarray_func__", None) or _SOURCES.get(function)
    except TypeError:
        return None
