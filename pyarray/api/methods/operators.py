"""Operators of `ndarray`, installed from a table: plain, reflected and in-place forms of the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..._core import register_operator, register_power
from ...array import ndarray, operations
from ...array_host import to_whole
from ...jit.replay import replayable_by_types
from ..core.ufunc import POWERS, is_operand_type
from ..core.ufunc_functions import in_place_function, make_function, ufunc_map
from ..numpy import ufuncs
from ..standard import utility
from ..standard.elementwise import UFUNCS
from ..standard.linear_algebra import matmul

BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
COMPARISON = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}


@replayable_by_types
def _matmul(self: ndarray, other: Any) -> Any:
    """`self @ other`."""
    return matmul(self, other) if is_operand_type(type(other)) else NotImplemented


def _of_operands(compute: Callable[[Any, Any], Any]) -> Callable[[ndarray, Any], Any]:
    """An operator that calls `compute`, and returns NotImplemented for types that are no operands here."""
    return lambda self, other: compute(self, other) if is_operand_type(type(other)) else NotImplemented


_PRODUCTS = {
    "__matmul__": _matmul,
    "__rmatmul__": _of_operands(lambda x, y: matmul(y, x)),
    "__imatmul__": _of_operands(lambda x, y: matmul(x, y, out=x)),
}


def _round(self: ndarray, ndigits: int | None = None) -> Any:
    """The rounded array; `round(a)` of a 0-d one is a Python int, which `range` and indices take, as for Python's
    numbers."""
    if ndigits is None and not self.ndim and self._dtype.kind != "c":
        return to_whole(self, round) if isinstance(self, ndarray) else int(self)
    return ufuncs.around(self, ndigits or 0)


def _to_integer(rounded: Callable[[Any], int]) -> Callable[[ndarray], int]:
    return lambda self: to_whole(self, rounded)


_NUMBERS = {
    "__divmod__": _of_operands(ufuncs.divmod),
    "__rdivmod__": _of_operands(lambda x, y: ufuncs.divmod(y, x)),
    "__round__": _round,
    **{f"__{rounded.__name__}__": _to_integer(rounded) for rounded in (math.trunc, math.floor, math.ceil)},
}


def _reflected(forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: forward(other, self)


# Operators by name as functions of any operands: those of arrays are slots of their type.
general_operators: dict[str, Callable[..., Any]] = {}
in_place_operators: dict[str, Callable[..., Any]] = {}


def install() -> None:
    """Give `ndarray` its operators."""
    operations["any"] = utility.any  # what `in` asks of a comparison
    for short, name in (BINARY | COMPARISON | UNARY).items():
        ufunc = UFUNCS[name]
        plans, general = ufunc_map(ufunc), make_function(ufunc, foreign=True)
        register_operator(short, plans, general)
        general_operators[f"__{short}__"] = general
        if short in BINARY:
            in_place_operators[f"__i{short}__"] = in_place_function(ufunc)
            register_operator(f"i{short}", plans, in_place_operators[f"__i{short}__"])
            general_operators[f"__r{short}__"] = _reflected(general)
    for exponent, power in POWERS.items():
        register_power(exponent, ufunc_map(UFUNCS[power.function.__name__]))
    for name, method in (_PRODUCTS | _NUMBERS).items():
        setattr(ndarray, name, method)
