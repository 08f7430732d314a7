"""Operators of `infer`: arithmetic, comparisons, conditions."""

from __future__ import annotations

import ast
from typing import Any

from ..dtypes import asdtype, named_dtype
from .aggregates import as_tuple
from .infer_aggregates import Groups
from .infer_names import join_types
from .infer_temporaries import has_effect
from .ir import BOOL, Const, Expr, Logic, Select, Static
from .promotion import binary, call, cast, compare, constant, join, unary

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl",
    ast.RShift: "shr",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
DUNDER = _BINARY | {ast.Div: "truediv", ast.LShift: "lshift", ast.RShift: "rshift"}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}


class Operations(Groups):
    """Adds operators to `Groups`."""

    def operate(self, node: ast.AST, op: ast.operator, left: Any, right: Any) -> Expr:
        a, b, name = self.number(node, left), self.number(node, right), _BINARY[type(op)]
        loc = self.loc(node)
        two = isinstance(b, Const) and b.type.weak and type(b.value) in (int, float) and b.value == 2
        if name == "pow" and two and not isinstance(a, Const) and a.type.dtype.kind != "b":
            lifted = join(a.type, b.type)  # i ** 2.0 is a float
            return self.typed(node, call, loc, "square", [cast(a, lifted.dtype, lifted.weak)])
        return self.typed(node, binary, loc, name, a, b)

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        left = self.value(node.left)
        return self.operator(node, node.op, left, self.value(node.right))

    def operator(self, node: ast.AST, op: ast.operator, left: Any, right: Any) -> Any:
        name = DUNDER[type(op)]
        made = self.reflected(node, f"__{name}__", f"__r{name}__", left, right)
        if made is not None:
            return made
        first, second = as_tuple(left), as_tuple(right)
        if first is not None and second is not None and isinstance(op, ast.Add):
            return first + second
        return self.operate(node, op, left, right)

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if not isinstance(node.op, ast.Not):
            made = self.special(node, value, f"__{_UNARY[type(node.op)]}__")
            if made is not None:
                return made
        value = self.number(node, value)
        if isinstance(node.op, ast.Not):
            truth = self.truth(node, value)
            if isinstance(truth, Const):
                return constant(self.loc(node), not truth.value)
            return self.typed(node, unary, self.loc(node), "invert", truth)
        return self.typed(node, unary, self.loc(node), _UNARY[type(node.op)], value)

    def eval_Compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Expr | None = None
        for position, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = self.value(right_node)
            if isinstance(op, (ast.Is, ast.IsNot)):
                none = isinstance(left, Static) and left.value is None
                part: Expr = constant(self.loc(node), none == isinstance(op, ast.Is))
                again: Any = right
            elif isinstance(left, Static) and isinstance(right, Static):
                part, again = self.compare_objects(node, op, left, right), right
            elif (made := self.compared(node, _COMPARE[type(op)], left, right)) is not None:
                part, again = made if len(node.ops) == 1 else self.truth(node, made), right
            else:
                a, b = self.number(node, left), self.number(node, right)
                first, again = self.kept(b) if position + 1 < len(node.ops) else (b, b)
                part = self.typed(node, compare, self.loc(node), _COMPARE[type(op)], a, first)
                if isinstance(part, Const):  # whatever the operands are
                    again = again if has_effect(b) else b
                    part = self.evaluated([a, first], lambda *_, known=part: known)
            result = part if result is None else self.both(node, result, part, "and")
            if isinstance(result, Const) and not result.value:
                return result
            left = again
        return result

    def compare_objects(self, node: ast.Compare, op: ast.cmpop, left: Static, right: Static) -> Expr:
        """Element types, mostly: `v.dtype == pa.float32`."""
        if not isinstance(op, (ast.Eq, ast.NotEq)):
            self.source.fail(node, f"{self.describe(left)} has no order")
        return constant(self.loc(node), _equal(left.value, right.value) == isinstance(op, ast.Eq))

    def both(self, node: ast.AST, a: Expr, b: Expr, op: str) -> Expr:
        if isinstance(a, Const):
            return b if bool(a.value) == (op == "and") else a
        return Logic(self.loc(node), BOOL, op, a, b)

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        op = "and" if isinstance(node.op, ast.And) else "or"
        result: Expr | None = None
        for item in node.values:
            if isinstance(result, Const) and bool(result.value) != (op == "and"):
                break  # short-circuit at compile time: what follows needn't fit
            value = self.truth(item, self.value(item))
            result = value if result is None else self.both(node, result, value, op)
        return result

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.truth(node.test, self.value(node.test))
        if isinstance(condition, Const):
            return self.value(node.body if condition.value else node.orelse)
        return self.select(node, condition, self.value(node.body), self.value(node.orelse))

    def select(self, node: ast.AST, condition: Expr, then: Any, orelse: Any) -> Expr:
        if self.is_array(then) and self.is_array(orelse):
            kind: Any = self.typed(node, join_types, then.type, orelse.type)
            return Select(
                self.loc(node), kind, condition, *(self.coerce(node, x, kind) for x in (then, orelse))
            )
        a, b = self.number(node, then), self.number(node, orelse)
        kind = self.typed(node, join, a.type, b.type)
        return Select(self.loc(node), kind, condition, self.coerce(node, a, kind), self.coerce(node, b, kind))


def _equal(a: Any, b: Any) -> bool:
    """Whether two Python objects are equal: where one is a dtype, whether both name the same."""
    if named_dtype(a) is None and named_dtype(b) is None:
        return bool(a == b)
    try:
        return asdtype(a) is asdtype(b)
    except TypeError:
        return False
