"""Torch's operators as expressions of the kernel language: one row each.

A row's text names its operands `{0}`, `{1}` ..., cast to the type it computes in: float32 for halves, as in
torch's own kernels. The result is rounded to the operator's dtype, so that a fused kernel gives what the
operators one by one give.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch.fx import Node

from ..dtypes import BY_NAME, DType
from .fusion_group import is_gpu

aten, prims = torch.ops.aten, torch.ops.prims

_NAMES = {getattr(torch, name): name for name in BY_NAME if hasattr(torch, name) and "complex" not in name}


def library_dtype(dtype: torch.dtype) -> DType | None:
    """The library's row of a torch dtype; None for one that kernels here don't compute with."""
    name = _NAMES.get(dtype)
    return BY_NAME[name] if name else None


def dtype_of(node: Any) -> DType:
    """The library's row of the dtype of a node that kernels here compute or read."""
    return BY_NAME[_NAMES[tensor(node).dtype]]


def opmath_dtype_of(node: Any) -> DType:
    """The dtype in which a node's elements are computed."""
    return BY_NAME[_NAMES[opmath_dtype(tensor(node).dtype)]]


def opmath_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type that elements of `dtype` are computed in."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


@dataclass(frozen=True)
class Pointwise:
    """`text` of the result. `kind` says what operands are cast to: "result" (the result's type), "common"
    (the operands' common one) or "bool"."""

    text: str | Callable[[Node], str | None]
    kind: str = "result"


def tensor(node: Any) -> torch.Tensor:
    """What a node stands for while it is traced."""
    value: torch.Tensor = node.meta["val"]
    return value


def argument(node: Node, position: int, name: str, default: Any = None) -> Any:
    """An argument by position or name."""
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def compute_dtype(node: Node, row: Pointwise) -> torch.dtype:
    """The type that a row's operands are cast to."""
    if row.kind == "bool":
        return torch.bool
    if row.kind == "common":
        return _promoted(node)[0]
    return opmath_dtype(tensor(node).dtype)


def rounded_dtype(node: Node, row: Pointwise, k: int) -> torch.dtype | None:
    """The type that torch rounds operand `k` to before it computes, if that isn't the type computed in: the
    operands' common type, where it is a half, and for logical operators, where a wide 0-d integer may be 0."""
    argument = node.args[k]
    operand = argument.meta["val"] if isinstance(argument, Node) else argument
    common = _promoted(node)[1]
    if not isinstance(operand, torch.Tensor):
        is_exact = common == opmath_dtype(common) or node.target in _EXACT_NUMBERS[tensor(node).device.type]
        return None if is_exact else common
    if operand.dtype == common or (row.kind != "bool" and common == opmath_dtype(common)):
        return None
    is_scalar = k == 1 and not operand.dim() and operand.device.type == "cpu"
    return None if is_scalar and node.target in _EXACT_NUMBERS["cpu"] else common


def _promoted(node: Node) -> tuple[torch.dtype, torch.dtype]:
    """The dtype that the first two operands are computed in, and their common one."""
    operands = [x.meta["val"] if isinstance(x, Node) else x for x in node.args[:2]]
    operands = [x for x in operands if not isinstance(x, torch.dtype)]  # of a cast
    return elementwise_dtypes(*operands, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)


def _scaled(sign: str) -> Callable[[Node], str | None]:
    def text(node: Node) -> str | None:
        if tensor(node).dtype == torch.bool:
            return None
        alpha = argument(node, 2, "alpha", 1)
        return f"{{0}} {sign} {{1}}" if alpha == 1 else f"{{0}} {sign} {{alpha}} * {{1}}"

    return text


def _divided(node: Node) -> str | None:
    mode = argument(node, 2, "rounding_mode")
    dtype = tensor(node).dtype
    if not dtype.is_floating_point:
        return None  # a division by 0 is an error there
    if mode is not None and dtype != opmath_dtype(dtype):
        return None  # each step of theirs is rounded to the half
    return {None: "{0} / {1}", "trunc": "trunc({0} / {1})", "floor": "{0} // {1}"}[mode]


def _power(node: Node) -> str | None:
    exponent = node.args[1]
    if not tensor(node).dtype.is_floating_point:
        return "{0} * {0}" if exponent == 2 else None
    plain: dict[Any, str] = {
        2: "{0} * {0}",
        3: "{0} * {0} * {0}",
        0.5: "sqrt({0})",
        1: "{0}",
        -1: "{one} / {0}",
        -0.5: "{one} / sqrt({0})",
    }
    if tensor(node).dtype == torch.float16 and exponent in (0.5, -0.5):
        return "{0} ** {1}"  # torch's has pow's -inf and -0
    if isinstance(exponent, (int, float)) and exponent in plain:
        return plain[exponent]
    return "{0} ** {1}"


def bounds(node: Node) -> tuple[Any, Any]:
    """The bounds of a clamp; arguments with their default value aren't in the graph."""
    default = (-1.0, 1.0) if node.target is aten.hardtanh.default else (None, None)
    names = ("min_val", "max_val") if node.target is aten.hardtanh.default else ("min", "max")
    return argument(node, 1, names[0], default[0]), argument(node, 2, names[1], default[1])


def _clamped(node: Node) -> str | None:
    low, high = bounds(node)
    text = "{0}" if low is None else "max({0}, {low})"
    return text if high is None else f"min({text}, {{high}})"


def _gelu(node: Node) -> str:
    if node.kwargs.get("approximate", "none") == "tanh":
        inner = "0.7978845608028654 * ({0} + 0.044715 * ({0} * {0} * {0}))"
        return f"{{half}} * {{0}} * ({{one}} + tanh({inner}))"
    return "{half} * {0} * ({one} + erf({0} * 0.7071067811865476))"


def _floats_only(text: str) -> Callable[[Node], str | None]:
    return lambda node: text if tensor(node).dtype.is_floating_point else None


def _not_bool(text: str) -> Callable[[Node], str | None]:
    return lambda node: text if tensor(node).dtype != torch.bool else None


def _either(text: str, of_bools: str) -> Callable[[Node], str]:
    return lambda node: of_bools if tensor(node).dtype == torch.bool else text


def _overloads(name: str, *overloads: str) -> list[Any]:
    packet = getattr(aten, name)
    return [getattr(packet, o) for o in overloads if o in packet.overloads()]


FLOAT_FUNCTIONS = (  # the same name, one operand, floats
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sqrt", "erf", "erfc",
)  # fmt: skip
_BOTH = ("Tensor", "Scalar")
# what isn't rounded correctly, as text of `POINTWISE`
_INEXACT_CALLS = (*(f"{name}(" for name in FLOAT_FUNCTIONS if name != "sqrt"), "atan2(", "hypot(", "**")

# whose second operand torch doesn't round to a half if it is a number, or 0-d on the CPU
_EXACT_NUMBERS = {
    device: {op for name in names.split() for op in _overloads(name, *_BOTH, "Tensor_mode", "Scalar_mode")}
    for device, names in {"cpu": "mul div true_divide", "cuda": "add sub mul div true_divide"}.items()
}

POINTWISE: dict[Any, Pointwise] = {}


def _register(names: str, text: Any, kind: str = "result", overloads: tuple[str, ...] = ("default",)) -> None:
    for name in names.split():
        for op in _overloads(name, *overloads):
            POINTWISE[op] = Pointwise(text, kind)


for _name in FLOAT_FUNCTIONS:
    _register(_name, f"{_name}({{0}})")
for _name, _text in {"add": "+", "sub": "-"}.items():
    _register(_name, _scaled(_text), overloads=_BOTH)
_register("mul", _either("{0} * {1}", "{0} & {1}"), overloads=_BOTH)
_register("div true_divide", _divided, overloads=("Tensor", "Scalar", "Tensor_mode", "Scalar_mode"))
_register("pow", _power, overloads=("Tensor_Scalar", "Tensor_Tensor"))
_register("pow", _floats_only("{0} ** {1}"), overloads=("Scalar",))
_register("rsqrt", "{one} / sqrt({0})")
_register("reciprocal", "{one} / {0}")
_register("sigmoid", "{one} / ({one} + exp(-{0}))")
_register("neg", _not_bool("-{0}"))
_register("positive", _not_bool("{0}"))
_register("abs", _not_bool("abs({0})"))
for _name in ("floor", "ceil", "trunc", "round"):
    _register(_name, _floats_only(f"{_name}({{0}})"))
# 0 of NaN, as in torch
_register("sign", _floats_only("({one} if {0} > {zero} else -{one} if {0} < {zero} else {zero})"))
_register("relu", _not_bool("max({0}, {zero})"))
_register("gelu", _gelu)
_register("maximum", _not_bool("max({0}, {1})"))
_register("minimum", _not_bool("min({0}, {1})"))
for _name in ("max", "min"):  # of NaN and a number, the number
    _number = f"({{1}} if isnan({{0}}) else {{0}} if isnan({{1}}) else {_name}({{0}}, {{1}}))"
    _register(f"f{_name}", _floats_only(_number))
_register("clamp hardtanh", _clamped)
_register("clamp", _clamped, overloads=("Tensor",))
_register("clamp_min", "max({0}, {1})", overloads=("default", "Tensor"))
_register("clamp_max", "min({0}, {1})", overloads=("default", "Tensor"))
_register("leaky_relu", lambda node: f"({{0}} if {{0}} > {{zero}} else {{0}} * {argument(node, 1, 's', 0.01)!r})")
_register(
    "elu",
    lambda node: (
        None
        if len(node.args) > 2
        else f"({{0}} if {{0}} > {{zero}} else expm1({{0}}) * {argument(node, 1, 'alpha', 1.0)!r})"
    ),
)
_register("atan2", "atan2({0}, {1})")
_register("copysign", _floats_only("copysign({0}, {1})"), overloads=_BOTH)
_register("hypot", "hypot({0}, {1})")
# a zero has the dividend's sign, as in torch; NumPy's has the divisor's
_remainder = "copysign({0} % {1}, {0} if {0} % {1} == {zero} else {1})"
_register("remainder", _floats_only(_remainder), overloads=(*_BOTH, "Scalar_Tensor"))
_register("fmod", _floats_only("fmod({0}, {1})"), overloads=_BOTH)
for _name, _text in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    _register(_name, f"{{0}} {_text} {{1}}", "common", overloads=_BOTH)
_register("isnan", "isnan({0})", "common")
_register("isinf", "isinf({0})", "common")
_register("logical_not", "not {0}", "bool")
_register("logical_and", "{0} & {1}", "bool")
_register("logical_or", "{0} | {1}", "bool")
_register("logical_xor", "{0} ^ {1}", "bool")
_register("bitwise_not", _either("~{0}", "not {0}"))
for _name, _text in {"and": "&", "or": "|", "xor": "^"}.items():
    _register(f"bitwise_{_name}", f"{{0}} {_text} {{1}}", overloads=(*_BOTH, "Scalar_Tensor"))
_register("where", "({1} if {c} else {2})", overloads=("self",))
_register("clone", "{0}")
_register("_to_copy", "{0}")
POINTWISE[prims.convert_element_type.default] = Pointwise("{0}")
CREATIONS = {
    aten.full.default, aten.full_like.default, aten.scalar_tensor.default, aten.zeros_like.default,
    aten.ones_like.default, aten.zeros.default, aten.ones.default, aten.arange.start_step,
    aten.arange.default,
    aten.arange.start, prims.iota.default,
}  # fmt: skip


def pointwise_text(node: Node) -> str | None:
    """The text of a pointwise node; None where it has none here."""
    row = POINTWISE.get(node.target)
    if row is None:
        return None
    return row.text if isinstance(row.text, str) else row.text(node)


def computed_once(node: Node) -> bool:
    """Whether only one place may compute each element of a pointwise node. On CPUs, functions that aren't rounded
    correctly have other last bits in a loop of vectors than in one of single elements, and `x - x` isn't 0 then."""
    text = pointwise_text(node)
    return text is not None and any(call in text for call in _INEXACT_CALLS) and not is_gpu(tensor(node).device)


@dataclass(frozen=True)
class Reduction:
    """`update` of an accumulator `{0}` by an element `{1}`; `identity` by type. `boolean`: of truth values.
    `mean`: divided by the count. `order_dependent`: in another order floats may give NaN in the place of a number,
    since one partial result overflows and another is 0."""

    update: str
    identity: Callable[[DType], str]
    boolean: bool = False
    mean: bool = False
    order_dependent: bool = False


def _lowest(dtype: DType) -> str:
    if dtype.kind == "f":
        return "-inf"
    return "0" if dtype.kind in "ub" else str(-(1 << (8 * dtype.itemsize - 1)))


def _highest(dtype: DType) -> str:
    if dtype.kind == "f":
        return "inf"
    bits = 8 * dtype.itemsize
    return str((1 << bits) - 1 if dtype.kind == "u" else (1 << (bits - 1)) - 1)


_SUM = Reduction("{0} + {1}", lambda _: "0")
_MEAN = Reduction("{0} + {1}", lambda _: "0", mean=True)
_MAX, _MIN = Reduction("max({0}, {1})", _lowest), Reduction("min({0}, {1})", _highest)
_ANY = Reduction("max({0}, {1})", lambda _: "0", boolean=True)
_ALL = Reduction("min({0}, {1})", lambda _: "1", boolean=True)
_PROD = Reduction("{0} * {1}", lambda _: "1", order_dependent=True)
REDUCTIONS: dict[Any, Reduction] = {
    **dict.fromkeys(_overloads("sum", "default", "dim_IntList"), _SUM),
    **dict.fromkeys(_overloads("mean", "default", "dim"), _MEAN),
    **dict.fromkeys(_overloads("amax", "default") + _overloads("max", "default"), _MAX),
    **dict.fromkeys(_overloads("amin", "default") + _overloads("min", "default"), _MIN),
    **dict.fromkeys(_overloads("any", "default", "dim", "dims"), _ANY),
    **dict.fromkeys(_overloads("all", "default", "dim", "dims"), _ALL),
    **dict.fromkeys(_overloads("prod", "default", "dim_int"), _PROD),
}


def reduced_axes(node: Node) -> tuple[int, ...]:
    """The axes that a reduction takes away."""
    rank = tensor(node.args[0]).dim()
    dim = argument(node, 1, "dim") if node.target not in _FULL_REDUCTIONS else None
    if not rank or (dim == [] and node.target in _OF_NO_AXIS):
        return ()
    if dim is None or dim == []:
        return tuple(range(rank))
    listed = [dim] if isinstance(dim, int) else list(dim)
    return tuple(sorted(k + rank if k < 0 else k for k in listed))


_OF_NO_AXIS = _overloads("any", "dims") + _overloads("all", "dims")  # for which [] isn't all axes
_FULL_REDUCTIONS = {
    aten.sum.default, aten.mean.default, aten.max.default, aten.min.default, aten.any.default,
    aten.all.default, aten.prod.default,
}  # fmt: skip


def keeps_dims(node: Node) -> bool:
    """Whether reduced axes stay, with size 1."""
    return node.target not in _FULL_REDUCTIONS and bool(argument(node, 2, "keepdim", False))


def number_text(value: float | bool) -> str:
    """A Python number in the kernel language, whose scope has `inf` and `nan`."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)
