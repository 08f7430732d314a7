"""Operators with a row of their own, and the steps that a random graph is drawn from."""

from __future__ import annotations

from typing import Any

import torch

from pyarray.torch import operators as ours

from .draw import DTYPES, FLOATS, Drawing, Value, broadcast_shape
from .reductions import between, creation, norm, reduction
from .unusual import change, unusual
from .views import view

aten = torch.ops.aten

# Rounded as IEEE says, or whole: the same bits everywhere.
_EXACT = {
    "add", "sub", "mul", "div", "sqrt", "neg", "abs", "floor", "ceil", "trunc", "round", "sign", "relu",
    "maximum", "minimum", "clamp", "hardtanh", "clamp_min", "clamp_max", "copysign", "remainder", "fmod",
    "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "logical_not", "logical_and", "logical_or",
    "logical_xor", "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "where", "clone",
    "reciprocal", "true_divide", "positive", "fmax", "fmin",
}  # fmt: skip
# A last digit more or less changes the result.
_JUMPS = {
    "floor", "ceil", "trunc", "round", "sign", "copysign", "remainder", "fmod", "eq", "ne", "lt", "le", "gt",
    "ge", "isnan", "isinf", "logical_not", "logical_and", "logical_or", "logical_xor", "atan2",
}  # fmt: skip
_POINTWISE = [op for op in ours.POINTWISE if op.namespace == "aten" and "_to_copy" not in str(op)]


def _name(op: Any) -> str:
    return str(op.name().rpartition("::")[2].partition(".")[0])


def _number(d: Drawing, kind: str, dtype: torch.dtype) -> Any:
    if kind == "float":
        return d.rng.choice((0.5, 1.0, 0.01, 2.0, -1.5))
    if dtype.is_floating_point and d.rng.random() < 0.7:
        return d.rng.choice((0.5, 2.0, -1.0, 3.0, -0.5, 0.0, 1.0, 0.25, -2.5))
    return d.rng.choice((0, 1, 2, 3, -1, -2, 5))


def pointwise(d: Drawing) -> bool:
    """Any overload of any operator that has a row of its own."""
    op = d.rng.choice(_POINTWISE)
    name = _name(op)
    mode = d.rng.choice((None, "trunc", "floor")) if "mode" in op._overloadname else None
    jumps = name in _JUMPS or mode is not None
    operands: list[Value] = []
    made: list[Any] = []  # places of operands, numbers
    named: dict[str, Any] = {}
    for argument in op._schema.arguments:
        kind = str(argument.type)
        if argument.name == "memory_format":
            continue
        if "Tensor" in kind:
            if kind.startswith("Optional") and d.rng.random() < 0.3:
                made.append(None)
                continue
            wanted = _accepts(name, op, len(operands), jumps)
            x = d.broadcast(operands[-1]) if operands else d.pick(wanted)
            if x is None or not wanted(x):
                return False
            operands.append(x)
            made.append(("v", len(operands) - 1))
        elif argument.name == "rounding_mode":
            named["rounding_mode"] = mode
        elif argument.name == "approximate":
            named["approximate"] = d.rng.choice(("none", "tanh"))
        elif argument.name == "alpha":
            if d.rng.random() < 0.3:
                named["alpha"] = _number(d, "number", operands[0].dtype if operands else torch.float32)
        elif argument.name in ("scale", "input_scale"):
            break
        elif kind.startswith("Optional") and d.rng.random() < 0.3:
            made.append(None)
        else:
            made.append(_number(d, kind, operands[0].dtype if operands else torch.float32))
    if name == "hardtanh":
        made[1:3] = sorted(made[1:3])  # torch 2.11 refuses others
    shapes = [v.shape for v in operands]
    shape = shapes[0]
    for other in shapes[1:]:
        if any(m != n and m != () and n != () for m, n in zip(reversed(shape), reversed(other), strict=False)):
            return False
        shape = broadcast_shape(shape, other)
    unbounded = name in ("exp", "exp2", "expm1", "sinh", "cosh", "pow", "tan") and not operands[0].exact

    def apply(sizes: Any, *xs: torch.Tensor) -> torch.Tensor:
        if unbounded:  # of what may already be large: a rounded argument would change all digits
            xs = (torch.clamp(xs[0], -4, 4), *xs[1:])
        if name == "gelu":  # torch's vector loop makes NaN of infinities, its scalar loop doesn't
            xs = (torch.clamp(xs[0], -1e4, 1e4),)
        if name == "copysign" and len(xs) > 1:  # a NaN's sign differs between processors
            xs = (xs[0], torch.where(torch.isnan(xs[1]), 1, xs[1]))
        if mode == "trunc" and xs[0].dtype.is_signed and not xs[0].is_floating_point():
            xs = (torch.clamp(xs[0], min=torch.iinfo(xs[0].dtype).min + 1), *xs[1:])  # over -1, it ends torch's process
        given = [xs[x[1]] if isinstance(x, tuple) else x for x in made]
        return op(*given, **named)  # type: ignore[no-any-return]

    written = ", ".join("_" if isinstance(x, tuple) else repr(x) for x in made)
    text = f"{op.name()} [{written}; {named}]"
    # torch rounds a sum and the product in it once, where it has an instruction for both
    exact = name in _EXACT and abs(named.get("alpha", 1)) == 1
    return d.add(text, operands, apply, [shape], exact=exact, noisy=not exact)


def _accepts(name: str, op: Any, position: int, jumps: bool) -> Any:
    def wanted(v: Value) -> bool:
        if name == "where" and position == 0:
            return v.dtype == torch.bool
        return v.exact or not jumps or v.dtype == torch.bool

    return wanted


def cast(d: Drawing) -> bool:
    """To another dtype; to integers only what fits them."""
    to = d.rng.choice(DTYPES)
    x = d.pick(lambda v: v.exact or to in FLOATS)
    if x is None:
        return False
    bounded = x.dtype in FLOATS and to not in FLOATS and to != torch.bool

    def apply(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        if bounded:
            x = torch.clamp(torch.where(torch.isnan(x), 0, x), 0, 100)
        return x.to(to)

    return d.add(f"to {to}", [x], apply, [x.shape])


STEPS = (
    (pointwise,) * 9 + (cast,) + (view,) * 5 + (reduction,) * 3 + (norm, between, between, creation, unusual)
)  # fmt: skip
WITH_CHANGES = STEPS + (change,) * 2
