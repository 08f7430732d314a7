"""GPU text of max and min reductions of rows of float16 and bfloat16, by packed instructions for two elements.

The casts of halves have the order of the halves, so the greatest cast is the cast of the greatest half, which is found
for a vector at a time (csrc/device/pa_extremes_gpu.h)."""

from __future__ import annotations

from dataclasses import dataclass

from ..dtypes import DType, bfloat16, float16, float32, float64
from . import ir

_HALVES = (float16, bfloat16)
EXTREME = ".extreme"  # the variable that stands for the element


@dataclass(frozen=True)
class VectorExtreme:
    """A loop whose iterations reduce one element by `op`, with the `body` that does so for an extreme of several:
    `EXTREME`, in the place of the element that `load` loads."""

    op: str
    load: ir.Load
    body: tuple[ir.Stmt, ...]

    def line(self, vector: str, name: str) -> str:
        """The extreme of a C variable, a vector of elements."""
        kind = self.load.type.dtype
        return f"const {kind.ctype} {name} = pa_vector_{self.op}_{kind.suffix}({vector});"


def find_vector_extreme(s: ir.For) -> VectorExtreme | None:
    """The maximum or minimum of casts of halves, where the loop computes nothing else; None if it isn't such."""
    loads = [n for n in ir.walk(*s.body) if isinstance(n, ir.Load)]
    if len(s.reductions) != 1 or len(loads) != 1 or loads[0].type.dtype not in _HALVES:
        return None
    (accumulator, op), (load,), values = s.reductions[0], loads, dict[str, ir.Expr]()
    for k, statement in enumerate(s.body):
        if not isinstance(statement, ir.Assign):
            return None
        if k < len(s.body) - 1:
            values[statement.name] = statement.value
        elif statement.name != accumulator or not _is_extreme(statement.value, accumulator, op, load, values):
            return None
    if values:  # of other variables
        return None
    element = ir.Local(load.loc, load.type, EXTREME)
    body = tuple(ir.rewrite(statement, lambda n: element if n is load else n) for statement in s.body)
    return VectorExtreme(op, load, body)


def _is_extreme(value: ir.Expr, accumulator: str, op: str, load: ir.Load, values: dict[str, ir.Expr]) -> bool:
    if op not in ("max", "min") or not isinstance(value, ir.Builtin) or value.name != op:
        return False
    first, element = value.args
    exact = load.type.dtype, float32, float64
    return isinstance(first, ir.Local) and first.name == accumulator and _is_cast(element, load, values, exact)


def _is_cast(x: ir.Expr, load: ir.Load, values: dict[str, ir.Expr], exact: tuple[DType, ...]) -> bool:
    """Whether an expression is the loaded element, cast to types that have all of its values."""
    while x is not load:
        if isinstance(x, ir.Cast) and x.type.dtype in exact:
            x = x.a
        elif isinstance(x, ir.Local) and x.name in values:
            x = values.pop(x.name)
        else:
            return False
    return True
