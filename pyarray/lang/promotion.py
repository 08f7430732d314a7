"""Builds typed expressions: promotion of operands, casts, constant folding."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import (
    DEFAULT,
    PYTHON_KIND,
    DType,
    asdtype,
    bool_,
    float32,
    float64,
    int8,
    int64,
    promote,
    promote_scalar,
    uint64,
)
from . import ir
from .builtins import FUNCTIONS

_PYTHON_TYPE = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def identity_of(op: str, dtype: DType) -> Any:
    """The number that changes no other by an operation, for parts of a reduction to start from: for sums of floats it
    is -0.0, since 0.0 + -0.0 is 0.0. None where there is none."""
    number = {"add": 0, "mul": 1, "xor": 0}.get(op)
    if number is None:
        return None
    if op == "add" and dtype.kind in "fc":
        return -0.0 if dtype.kind == "f" else complex(-0.0, -0.0)
    return _PYTHON_TYPE[dtype.kind](number)


def join(a: ir.ScalarType, b: ir.ScalarType) -> ir.ScalarType:
    """Type that holds both. A weak operand only lifts the kind of a strong one. Raises `TypeError` where
    there is none."""
    if a.weak and not b.weak:
        return ir.ScalarType(promote_scalar(b.dtype, _PYTHON_TYPE[a.dtype.kind]))
    if b.weak and not a.weak:
        return join(b, a)
    return ir.ScalarType(promote(a.dtype, b.dtype), weak=a.weak and b.weak)


def constant(loc: ir.Loc, value: Any) -> ir.Const:
    """A Python number (weak) or NumPy scalar (strong) as a node. An integer may be of any size, as in `2**64
    - 1`, until `cast` gives it a type."""
    if type(value) is int:
        return ir.Const(loc, ir.ScalarType(int64 if value < 1 << 63 else uint64, weak=True), value)
    if type(value) in PYTHON_KIND:
        return ir.Const(loc, ir.ScalarType(DEFAULT[PYTHON_KIND[type(value)]], weak=type(value) is not bool), value)
    dtype = asdtype(value.dtype)
    number = {"b": bool, "f": float, "c": complex}.get(dtype.kind, int)(value)
    return ir.Const(loc, ir.ScalarType(dtype), number)


def cast(expr: ir.Expr, dtype: DType, weak: bool = False) -> ir.Expr:
    """`expr` as `dtype`; constants are converted here, where no digits are lost. Raises `TypeError` for a
    literal integer that is out of range for an integer type."""
    target = ir.ScalarType(dtype, weak)
    if isinstance(expr, ir.Const) and expr.type.weak and type(expr.value) is int and not fits(expr.value, dtype):
        shown = expr.value if abs(expr.value) < 1 << 70 else f"of {expr.value.bit_length()} bits"
        raise TypeError(f"the number {shown} is out of range for {dtype}")
    if expr.type == target:
        return expr
    if isinstance(expr, ir.Const):
        value = expr.value
        if dtype.kind == "b":
            return ir.Const(expr.loc, target, bool(value))
        if dtype.kind == "f" and not isinstance(value, complex):
            return ir.Const(expr.loc, target, float(value) if weak else _rounded(float(value), dtype))
        if dtype.kind == "c":
            return ir.Const(expr.loc, target, complex(value) if weak else _rounded(complex(value), dtype))
        if dtype.kind in "iu" and isinstance(value, int):
            return ir.Const(expr.loc, target, _wrap(int(value), dtype))
    inner = expr.a if isinstance(expr, ir.Cast) and expr.type.dtype is dtype else expr  # only the weakness changes
    return ir.Cast(expr.loc, target, inner)


def _rounded(value: Any, dtype: DType) -> Any:
    """The number as `dtype` holds it: a wider type that it is cast to next must see no more digits."""
    with np.errstate(over="ignore"):
        return type(value)(dtype.numpy.type(value))


def _wrap(value: int, dtype: DType) -> int:
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


def fits(value: Any, dtype: DType) -> bool:
    """Whether a constant integer is in the range of an integer type; other kinds always fit."""
    return dtype.kind not in "iu" or not isinstance(value, int) or _wrap(int(value), dtype) == value


FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
    "mod": operator.mod, "div": operator.truediv, "pow": operator.pow, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor, "shl": operator.lshift, "shr": operator.rshift,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge,
}  # fmt: skip


def _folded(loc: ir.Loc, op: str, a: ir.Expr, b: ir.Expr) -> ir.Const | None:
    """Two weak constants, computed as Python would. Raises `TypeError` where Python raises or 64 bits are
    left."""
    if not (isinstance(a, ir.Const) and isinstance(b, ir.Const) and a.type.weak and b.type.weak):
        return None
    are_ints = isinstance(a.value, int) and isinstance(b.value, int)
    if are_ints and b.value > 256 and ((op == "shl" and a.value) or (op == "pow" and abs(a.value) > 1)):
        raise TypeError(f"{a.value} {SYMBOLS[op]} {b.value} doesn't fit into 64 bits")
    try:
        value = FOLD[op](a.value, b.value)
    except (ArithmeticError, ValueError) as error:
        raise TypeError(f"{error} (in constants)") from None
    except TypeError:
        return None
    return constant(loc, value)


BITWISE = frozenset(("and", "or", "xor"))
INTEGER_ONLY = frozenset(("shl", "shr"))
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "and": "&",
    "or": "|", "xor": "^", "shl": "<<", "shr": ">>", "neg": "-", "invert": "~",
}  # fmt: skip
NEGATED_COMPARISON = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
# of comparisons, for operands in the other order
SWAPPED_COMPARISON = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def binary(loc: ir.Loc, op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """`a op b` with NumPy's rules. Raises `TypeError` for operands that the operator doesn't take."""
    folded = _folded(loc, op, a, b)
    if folded is not None:
        return folded
    kind = join(a.type, b.type)
    dtype = kind.dtype
    if op == "pow" and dtype.kind in "biu" and isinstance(b, ir.Const) and b.value < 0:
        raise TypeError(f"an integer to the power {b.value} is a fraction; write float(x) ** {b.value}")
    if op == "div" and dtype.kind in "biu":
        dtype = float64
    if dtype.kind == "b" and op in ("floordiv", "mod", "pow", "shl", "shr"):
        dtype = int8
    refused = (
        (op in BITWISE and dtype.kind not in "biu")
        or (op in INTEGER_ONLY and dtype.kind not in "iu")
        or (op in ("floordiv", "mod") and dtype.kind == "c")
        or (op == "sub" and dtype.kind == "b")
    )
    if refused:
        raise TypeError(f"'{SYMBOLS[op]}' is not defined for {a.type} and {b.type}")
    result = ir.ScalarType(dtype, kind.weak)
    return _computed(result, [a, b], lambda t, x: ir.Binary(loc, t, op, *x))


def _computed(
    kind: ir.ScalarType, operands: list[ir.Expr], build: Callable[[ir.ScalarType, list[ir.Expr]], ir.Expr]
) -> ir.Expr:
    """What `build` makes of a type and the operands as that type. Narrow types are computed in float32 and rounded; the
    operands are rounded to the narrow type before, as in NumPy and ml_dtypes: float16(0.1) == 0.1 is true."""
    typed = [cast(x, kind.dtype, kind.weak) for x in operands]
    if kind.dtype.is_narrow:
        inner = build(ir.ScalarType(float32), [cast(x, float32) for x in typed])
        return inner if inner.type.dtype is bool_ else cast(inner, kind.dtype)
    return build(kind, typed)


def compare(loc: ir.Loc, op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """`a op b` as a bool; mixed signed and unsigned integers are compared by value."""
    folded = _folded(loc, op, a, b)
    if folded is not None:
        return folded
    for literal, other in ((a, b), (b, a)):
        if isinstance(literal, ir.Const) and literal.type.weak and not fits(literal.value, other.type.dtype):
            # beyond the range of the other's type, so that any number of that type compares alike
            below, above = (literal.value, 0) if literal is a else (0, literal.value)
            return constant(loc, FOLD[op](below, above))
    if {a.type.dtype.kind, b.type.dtype.kind} <= {"i", "u"}:
        # an index is weak, and yet it must not be cut down to the other's type here: comparisons are by value
        weak = [isinstance(x, ir.Const) and x.type.weak for x in (a, b)]
        a, b = cast(a, (b if weak[0] else a).type.dtype), cast(b, (a if weak[1] else b).type.dtype)
        if uint64 in (a.type.dtype, b.type.dtype) and "i" in (a.type.dtype.kind, b.type.dtype.kind):
            first, second = (x if x.type.dtype is uint64 else cast(x, int64) for x in (a, b))
            return ir.Compare(loc, ir.BOOL, op, first, second)
    dtype = join(a.type, b.type).dtype
    if dtype.kind == "c" and op not in ("eq", "ne"):
        raise TypeError("complex numbers have no order; compare real parts or absolute values")
    return _computed(ir.ScalarType(dtype), [a, b], lambda _, x: ir.Compare(loc, ir.BOOL, op, *x))


def unary(loc: ir.Loc, op: str, a: ir.Expr) -> ir.Expr:
    """`-a`, `+a`, `~a`. Raises `TypeError` for operands that the operator doesn't take."""
    dtype = a.type.dtype
    if op == "pos":
        return a
    if isinstance(a, ir.Const) and a.type.weak and (op == "neg" or isinstance(a.value, int)):
        return constant(loc, -a.value if op == "neg" else ~a.value)
    if (op == "invert" and dtype.kind not in "biu") or (op == "neg" and dtype.kind == "b"):
        raise TypeError(f"'{SYMBOLS[op]}' is not defined for {a.type}")
    if op == "neg" and dtype.kind == "f":  # of narrow floats, too: the sign is a bit
        return ir.Unary(loc, a.type, op, a)
    return _computed(a.type, [a], lambda t, x: ir.Unary(loc, t, op, *x))


# functions whose bits follow from the bits of narrow floats: no detour through float32 is needed, and for
# nextafter none would do
_ON_NARROW_BITS = frozenset(("abs", "copysign", "isfinite", "isinf", "isnan", "nextafter", "signbit"))


def call(loc: ir.Loc, name: str, args: list[ir.Expr]) -> ir.Expr:
    """A row of `FUNCTIONS` applied to arguments. Raises `TypeError` for a wrong count or types."""
    row = FUNCTIONS[name]
    if row.arity == 2 and name in ("min", "max") and len(args) > 2:
        return call(loc, name, [call(loc, name, args[:-1]), args[-1]])
    if len(args) != row.arity:
        raise TypeError(f"{name}() takes {row.arity} argument{'s' * (row.arity != 1)}, got {len(args)}")
    kind = args[0].type
    for argument in args[1:]:
        kind = join(kind, argument.type)
    dtype = kind.dtype
    if dtype.kind not in row.kinds:
        promoted = {"b": int8 if "i" in row.kinds else float64, "i": float64, "u": float64}.get(dtype.kind)
        if promoted is None or promoted.kind not in row.kinds:
            raise TypeError(f"{name}() is not defined for {kind}")
        dtype = promoted
    if name in _ON_NARROW_BITS and dtype.is_narrow:
        result = ir.BOOL if row.result == "bool" else ir.ScalarType(dtype, kind.weak)
        return ir.Builtin(loc, result, name, dtype, tuple(cast(a, dtype, kind.weak) for a in args))
    if row.result == "bool":
        of_type: ir.ScalarType | None = ir.BOOL
    elif row.result == "same" or dtype.kind != "c":
        of_type = None  # the domain's
    else:
        of_type = ir.ScalarType(float32 if dtype.itemsize == 8 else float64)
    domain = ir.ScalarType(dtype, kind.weak and of_type is None)
    return _computed(domain, args, lambda t, x: ir.Builtin(loc, of_type or t, name, t.dtype, tuple(x)))
