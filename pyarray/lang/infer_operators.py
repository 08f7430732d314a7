"""Infers operators: arithmetic, comparisons, conditions."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from ..dtypes import asdtype, named_dtype
from . import ir
from .aggregates import as_tuple
from .infer_aggregates import binary_method, call_special_method, comparison_method, refuse_comparison, truth
from .infer_array_functions import matmul
from .infer_elements import convert, elementwise, is_elementwise
from .infer_scope import Scope, rule
from .infer_temporaries import has_side_effect, let_bind, with_let_bound
from .infer_tile_functions import tile_matmul
from .infer_values import describe, is_array, is_local_array, join_types
from .promotion import binary, call, cast, compare, constant, join, unary
from .tile_values import elementwise_tile, is_tile

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl",
    ast.RShift: "shr",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
DUNDER = _BINARY | {ast.Div: "truediv", ast.LShift: "lshift", ast.RShift: "rshift", ast.MatMult: "matmul"}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}


def arithmetic(scope: Scope, node: ast.AST, op: ast.operator, left: Any, right: Any) -> ir.Expr:
    a, b, name = scope.number(node, left), scope.number(node, right), _BINARY[type(op)]
    loc = scope.loc(node)
    two = isinstance(b, ir.Const) and b.type.weak and type(b.value) in (int, float) and b.value == 2
    if name == "pow" and two and not isinstance(a, ir.Const) and a.type.dtype.kind != "b":
        promoted = join(a.type, b.type)  # i ** 2.0 is a float
        return scope.apply(node, call, loc, "square", [cast(a, promoted.dtype, promoted.weak)])
    return scope.apply(node, binary, loc, name, a, b)


@rule(ast.BinOp)
def _bin_op(scope: Scope, node: ast.BinOp) -> Any:
    left = scope.infer(node.left)
    return binary_operator(scope, node, node.op, left, scope.infer(node.right))


def binary_operator(scope: Scope, node: ast.AST, op: ast.operator, left: Any, right: Any) -> Any:
    name = DUNDER[type(op)]
    result = binary_method(scope, node, f"__{name}__", f"__r{name}__", left, right)
    if result is not None:
        return result
    first, second = as_tuple(left), as_tuple(right)
    if first is not None and second is not None and isinstance(op, ast.Add):
        return first + second
    if isinstance(op, ast.MatMult):
        return (tile_matmul if is_tile(left) or is_tile(right) else matmul)(scope, node, left, right)
    if is_tile(left) or is_tile(right):
        return elementwise_tile(scope, node, [left, right], lambda a, b: arithmetic(scope, node, op, a, b))
    if is_elementwise(left, right):
        return elementwise(scope, node, [left, right], lambda a, b: arithmetic(scope, node, op, a, b), name)
    return arithmetic(scope, node, op, left, right)


@rule(ast.UnaryOp)
def _unary_op(scope: Scope, node: ast.UnaryOp) -> Any:
    value = scope.infer(node.operand)
    if not isinstance(node.op, ast.Not):
        result = call_special_method(scope, node, value, f"__{_UNARY[type(node.op)]}__")
        if result is not None:
            return result
        if is_tile(value):
            return elementwise_tile(scope, node, [value], lambda x: unary(scope.loc(node), _UNARY[type(node.op)], x))
        if is_elementwise(value):
            name = _UNARY[type(node.op)]
            return elementwise(scope, node, [value], lambda x: unary(scope.loc(node), name, x), name)
    if isinstance(node.op, ast.Not):
        holds = truth(scope, node, value)
        if isinstance(holds, ir.Const):
            return constant(scope.loc(node), not holds.value)
        return scope.apply(node, unary, scope.loc(node), "invert", holds)
    value = scope.number(node, value)
    return scope.apply(node, unary, scope.loc(node), _UNARY[type(node.op)], value)


@rule(ast.Compare)
def _compare(scope: Scope, node: ast.Compare) -> Any:
    left = scope.infer(node.left)
    result: ir.Expr | None = None
    always = scope.assigned  # operands behind the second one may not be evaluated
    for position, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
        scope.assigned = set(scope.assigned) if position else always
        right = scope.infer(right_node)
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = constant(scope.loc(node), _is_same(scope, node, left, right) == isinstance(op, ast.Is))
            operands = [x for x in (left, right) if isinstance(x, ir.Node) and not isinstance(x, ir.Static)]
            part: ir.Expr = with_let_bound(scope, operands, lambda *_, result=same: result)
            again: Any = right
        elif isinstance(left, ir.Static) and isinstance(right, ir.Static):
            part, again = compare_objects(scope, node, op, left, right), right
        elif (method := comparison_method(scope, node, _COMPARE[type(op)], left, right)) is not None:
            part, again = method if len(node.ops) == 1 else scope.truth(node, method), right
        elif (is_tile(left) or is_tile(right)) and len(node.ops) == 1:
            how = partial(compare, scope.loc(node), _COMPARE[type(op)])
            return elementwise_tile(scope, node, [left, right], how)
        elif is_elementwise(left, right) and len(node.ops) == 1:
            return _compare_elements(scope, node, _COMPARE[type(op)], left, right)
        else:
            refuse_comparison(scope, node, _COMPARE[type(op)], left, right)
            if is_tile(left) or is_tile(right):
                scope.fail(node, "a chain of comparisons is of numbers, not of tiles", "write (0 < t) & (t < 3)")
            a, b = scope.number(node, left), scope.number(node, right)
            first, again = let_bind(scope, b) if position + 1 < len(node.ops) else (b, b)
            part = scope.apply(node, compare, scope.loc(node), _COMPARE[type(op)], a, first)
            if isinstance(part, ir.Const):  # for any values of the operands
                again = again if has_side_effect(b) else b
                part = with_let_bound(scope, [a, first], lambda *_, result=part: result)
        result = part if result is None else logical(scope, node, result, part, "and")
        if isinstance(result, ir.Const) and not result.value:
            break
        left = again
    scope.assigned = always
    return result


def _is_same(scope: Scope, node: ast.Compare, left: Any, right: Any) -> bool:
    """`is` between what is known when the kernel is compiled: None, members of enumerations, functions, dtypes."""
    if isinstance(left, ir.Static) and isinstance(right, ir.Static):
        return left.value is right.value
    none = ir.Static(None)
    if none not in (left, right):
        what = "'is' between numbers or arrays is not part of the kernel language"
        scope.fail(node, what, "compare numbers with ==; x is None may be asked, and members of an Enum")
    return False  # a number or an array is not None


def _compare_elements(scope: Scope, node: ast.Compare, name: str, left: Any, right: Any) -> ir.Expr:
    return elementwise(scope, node, [left, right], lambda a, b: compare(scope.loc(node), name, a, b), name)


def compare_objects(scope: Scope, node: ast.AST, op: ast.cmpop, left: ir.Static, right: ir.Static) -> ir.Expr:
    """Element types, mostly: `v.dtype == pa.float32`."""
    if not isinstance(op, (ast.Eq, ast.NotEq)):
        scope.fail(node, f"{describe(left)} has no order")
    return constant(scope.loc(node), _equal(left.value, right.value) == isinstance(op, ast.Eq))


def logical(scope: Scope, node: ast.AST, a: ir.Expr, b: ir.Expr, op: str) -> ir.Expr:
    if isinstance(a, ir.Const):
        return b if bool(a.value) == (op == "and") else a
    return ir.Logic(scope.loc(node), ir.BOOL, op, a, b)


def select(scope: Scope, node: ast.AST, condition: ir.Expr, then: Any, orelse: Any) -> ir.Expr:
    if all(is_array(x) or is_local_array(x) for x in (then, orelse)):
        kind: Any = scope.apply(node, join_types, then.type, orelse.type)
        return ir.Select(scope.loc(node), kind, condition, *(convert(scope, node, x, kind) for x in (then, orelse)))
    a, b = scope.number(node, then), scope.number(node, orelse)
    kind = scope.apply(node, join, a.type, b.type)
    return ir.Select(scope.loc(node), kind, condition, scope.coerce(node, a, kind), scope.coerce(node, b, kind))


def _equal(a: Any, b: Any) -> bool:
    """Whether two Python objects are equal; if one names a dtype, whether both name the same."""
    if named_dtype(a) is None and named_dtype(b) is None:
        return bool(a == b)
    try:
        return asdtype(a) is asdtype(b)
    except TypeError:
        return False
