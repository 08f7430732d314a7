"""Derivatives of operators and builtin functions, as expressions of operands and result.

A rule gives one factor per operand: what the gradient of the result is multiplied by. None: the derivative is 0. Where
a function has no derivative, at the kink of `abs`, `min` or `max`, it is the mean of those beside it, as in torch and
JAX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...dtypes import DType
from .. import ir
from ..promotion import binary, call, cast, compare, unary


class Terms:
    """Expressions in one floating dtype."""

    def __init__(self, loc: ir.Loc, dtype: DType):
        self.loc, self.dtype, self.kind = loc, dtype, ir.ScalarType(dtype)

    def number(self, x: float) -> ir.Expr:
        return ir.Const(self.loc, self.kind, float(x))

    def of(self, x: Any) -> ir.Expr:
        return self.number(x) if isinstance(x, float) else cast(x, self.dtype)

    def op(self, name: str, a: Any, b: Any) -> ir.Expr:
        return binary(self.loc, name, self.of(a), self.of(b))

    def add(self, a: Any, b: Any) -> ir.Expr:
        return self.op("add", a, b)

    def sub(self, a: Any, b: Any) -> ir.Expr:
        return self.op("sub", a, b)

    def mul(self, a: Any, b: Any) -> ir.Expr:
        return self.op("mul", a, b)

    def div(self, a: Any, b: Any) -> ir.Expr:
        return self.op("div", a, b)

    def neg(self, a: Any) -> ir.Expr:
        return unary(self.loc, "neg", self.of(a))

    def call(self, name: str, *args: Any) -> ir.Expr:
        return call(self.loc, name, [self.of(x) for x in args])

    def where(self, op: str, a: Any, b: Any, yes: Any, no: Any) -> ir.Expr:
        """`yes if a op b else no`."""
        test = compare(self.loc, op, self.of(a), self.of(b))
        return ir.Select(self.loc, self.kind, test, self.of(yes), self.of(no))


Rule = Callable[..., tuple[ir.Expr | float | None, ...]]


def _share(t: Terms, op: str, a: ir.Expr, b: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """Of `min` and `max`: the operand that is the result gets all, equal ones get half."""
    equal = t.where("eq", a, b, 0.5, 0.0)
    return t.where(op, a, b, 1.0, equal), t.where(op, b, a, 1.0, equal)


def _power(t: Terms, a: ir.Expr, b: ir.Expr, r: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """Of a to the power b: 0 for b = 0, and 0 by b at a = 0, where the logarithm is infinite."""
    by_a = t.where("eq", b, 0.0, 0.0, t.mul(b, t.op("pow", a, t.sub(b, 1.0))))
    return by_a, t.where("eq", a, 0.0, 0.0, t.mul(r, t.call("log", a)))


def _over(t: Terms, x: Any, r: ir.Expr) -> ir.Expr:
    """x / r, and 0 where r is 0."""
    return t.where("eq", r, 0.0, 0.0, t.div(x, r))


def _atan2(t: Terms, y: ir.Expr, x: ir.Expr, r: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    h = t.call("hypot", x, y)
    return _over(t, _over(t, x, h), h), t.neg(_over(t, _over(t, y, h), h))


_LN2, _LN10 = math.log(2.0), math.log(10.0)

OPERATORS: dict[str, Rule] = {
    "add": lambda t, a, b, r: (1.0, 1.0),
    "sub": lambda t, a, b, r: (1.0, -1.0),
    "mul": lambda t, a, b, r: (b, a),
    "div": lambda t, a, b, r: (t.div(1.0, b), t.neg(t.div(r, b))),
    "pow": _power,
    "mod": lambda t, a, b, r: (1.0, t.neg(t.op("floordiv", a, b))),
    "floordiv": lambda t, a, b, r: (None, None),
}

FUNCTIONS: dict[str, Rule] = {
    "sin": lambda t, x, r: (t.call("cos", x),),
    "cos": lambda t, x, r: (t.neg(t.call("sin", x)),),
    "tan": lambda t, x, r: (t.add(1.0, t.mul(r, r)),),
    "asin": lambda t, x, r: (t.div(1.0, t.call("sqrt", t.sub(1.0, t.mul(x, x)))),),
    "acos": lambda t, x, r: (t.div(-1.0, t.call("sqrt", t.sub(1.0, t.mul(x, x)))),),
    "atan": lambda t, x, r: (t.div(1.0, t.add(1.0, t.mul(x, x))),),
    "sinh": lambda t, x, r: (t.call("cosh", x),),
    "cosh": lambda t, x, r: (t.call("sinh", x),),
    "tanh": lambda t, x, r: (t.sub(1.0, t.mul(r, r)),),
    "asinh": lambda t, x, r: (t.div(1.0, t.call("sqrt", t.add(t.mul(x, x), 1.0))),),
    "acosh": lambda t, x, r: (t.div(1.0, t.call("sqrt", t.sub(t.mul(x, x), 1.0))),),
    "atanh": lambda t, x, r: (t.div(1.0, t.sub(1.0, t.mul(x, x))),),
    "exp": lambda t, x, r: (r,),
    "exp2": lambda t, x, r: (t.mul(r, _LN2),),
    "expm1": lambda t, x, r: (t.add(r, 1.0),),
    "log": lambda t, x, r: (t.div(1.0, x),),
    "log1p": lambda t, x, r: (t.div(1.0, t.add(x, 1.0)),),
    "log2": lambda t, x, r: (t.div(1.0 / _LN2, x),),
    "log10": lambda t, x, r: (t.div(1.0 / _LN10, x),),
    "sqrt": lambda t, x, r: (t.div(0.5, r),),
    "cbrt": lambda t, x, r: (t.div(1.0, t.mul(3.0, t.mul(r, r))),),
    "erf": lambda t, x, r: (t.mul(2.0 / math.sqrt(math.pi), t.call("exp", t.neg(t.mul(x, x)))),),
    "erfc": lambda t, x, r: (t.mul(-2.0 / math.sqrt(math.pi), t.call("exp", t.neg(t.mul(x, x)))),),
    "abs": lambda t, x, r: (t.call("sign", x),),
    "square": lambda t, x, r: (t.mul(2.0, x),),
    "recip": lambda t, x, r: (t.neg(t.mul(r, r)),),
    "conj": lambda t, x, r: (1.0,),
    "real": lambda t, x, r: (1.0,),
    "min": lambda t, a, b, r: _share(t, "lt", a, b),
    "max": lambda t, a, b, r: _share(t, "gt", a, b),
    "atan2": _atan2,
    "hypot": lambda t, a, b, r: (_over(t, a, r), _over(t, b, r)),
    "copysign": lambda t, a, b, r: (t.mul(t.call("copysign", 1.0, a), t.call("copysign", 1.0, b)), None),
    "fmod": lambda t, a, b, r: (1.0, t.neg(t.call("trunc", t.div(a, b)))),
    "logaddexp": lambda t, a, b, r: (t.call("exp", t.sub(a, r)), t.call("exp", t.sub(b, r))),
    "nextafter": lambda t, a, b, r: (1.0, None),
}

# Functions whose derivative is 0 wherever they have one.
STEPS = frozenset((
    "floor", "ceil", "trunc", "round", "sign", "isnan", "isinf", "isfinite", "signbit", "imag", "angle",
))  # fmt: skip
