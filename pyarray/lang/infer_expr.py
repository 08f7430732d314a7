"""Expressions of `infer`: names, arithmetic, calls, subscripts. `infer.FunctionBody` adds the statements."""

from __future__ import annotations

import ast
import builtins
import inspect
import types as python_types
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..dtypes import PYTHON_KIND, DType, asdtype, bool_, int64
from .builtins import ATOMICS, FUNCTIONS, name_of
from .ir import (
    BOOL,
    INDEX,
    ArrayType,
    Atomic,
    Const,
    Expr,
    Invoke,
    Load,
    Local,
    Loc,
    Logic,
    Range,
    ScalarType,
    Select,
    Size,
    Slice,
    Stride,
    SubView,
    Type,
)
from .parse import FunctionSource
from .scalar import binary, call, cast, compare, constant, join, unary

if TYPE_CHECKING:
    from .infer import Program

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_T = TypeVar("_T")


@dataclass(frozen=True)
class Static:
    """A value known at compile time that is no number: a module, an element type, a function, a string."""

    value: Any

    def key(self) -> Any:
        """What distinguishes instances that were compiled with different constants."""
        try:
            hash(self.value)
        except TypeError:
            return (type(self.value), repr(self.value))
        return (type(self.value), self.value)


class Expressions:
    """Values of expressions: a node of the tree, a tuple of values, or a `Static`."""

    def __init__(
        self, program: Program, source: FunctionSource, params: dict[str, Any], types: dict[str, Type]
    ):
        self.program, self.source, self.params, self.types = program, source, params, types
        self.assigned = {name for name, p in params.items() if not isinstance(p, Static)}
        for name, p in params.items():
            if not isinstance(p, Static):
                types.setdefault(name, p)
        self.local_names = _assigned_names(source.node)
        self.temporaries = 0

    # ---- helpers

    def loc(self, node: ast.AST | Loc) -> Loc:
        return node if isinstance(node, Loc) else self.source.loc(node)

    def typed(self, where: ast.AST, function: Callable[..., _T], *args: Any) -> _T:
        """`function(*args)`, with a `TypeError` turned into the message at this place."""
        try:
            return function(*args)
        except TypeError as error:
            self.source.fail(where, str(error))

    @staticmethod
    def is_array(value: Any) -> bool:
        return isinstance(getattr(value, "type", None), ArrayType)

    def describe(self, value: Any) -> str:
        if isinstance(value, Static):
            return f"the Python object {value.value!r}"
        if isinstance(value, tuple):
            return f"a tuple of {len(value)}"
        return f"a {getattr(value, 'type', value)}"

    def number(self, where: ast.AST, value: Any) -> Expr:
        if isinstance(getattr(value, "type", None), ScalarType):
            return value  # type: ignore[no-any-return]
        hint = "index it: v[i]" if self.is_array(value) else ""
        self.source.fail(where, f"expected a number, got {self.describe(value)}", hint)

    def integer(self, where: ast.AST, value: Any, what: str) -> Expr:
        value = self.number(where, value)
        if value.type.dtype.kind not in "iu":
            self.source.fail(
                where, f"{what} must be an integer, got {self.describe(value)}", "convert it with int(...)"
            )
        return cast(value, int64, weak=True)

    def truth(self, where: ast.AST, value: Any) -> Expr:
        return cast(self.number(where, value), bool_)

    def array(self, node: ast.expr) -> Expr:
        value = self.value(node)
        if not self.is_array(value):
            self.source.fail(node, f"expected an array, got {self.describe(value)}")
        return value  # type: ignore[no-any-return]

    # ---- the dispatch

    def value(self, node: ast.expr) -> Any:
        handler = getattr(self, f"eval_{type(node).__name__}", None)
        if handler is None:
            self.source.fail(node, f"{type(node).__name__} is not part of the kernel language")
        return handler(node)

    def lift(self, node: ast.AST, value: Any) -> Any:
        """A Python object as a value of the language."""
        if isinstance(value, np.bool_):
            value = bool(value)
        if type(value) in PYTHON_KIND or isinstance(value, np.generic):
            return self.typed(node, constant, self.loc(node), value)
        if isinstance(value, tuple):
            return tuple(self.lift(node, item) for item in value)
        return Static(value)

    def eval_Constant(self, node: ast.Constant) -> Any:
        return self.lift(node, node.value)

    def eval_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.value(item) for item in node.elts)

    def eval_Name(self, node: ast.Name) -> Any:
        name = node.id
        if name in self.types and name != "return" and (name in self.local_names or name in self.params):
            if name not in self.assigned:
                self.source.fail(
                    node,
                    f"{name!r} may be read before it is assigned",
                    "give it a value before the loop or in both branches",
                )
            return Local(self.loc(node), self.types[name], name)
        if name in self.params:
            return self.lift(node, self.params[name].value)
        if name in self.local_names:
            self.source.fail(node, f"{name!r} is read before it is assigned")
        return self.lift(node, self.captured(node, name))

    def captured(self, node: ast.AST, name: str) -> Any:
        function = self.source.function
        code = function.__code__
        if name in code.co_freevars:
            try:
                return function.__closure__[code.co_freevars.index(name)].cell_contents
            except ValueError:
                self.source.fail(node, f"{name!r} has no value yet")
        if name in function.__globals__:
            return function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        self.source.fail(node, f"{name!r} is not defined")

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        loc = self.loc(node)
        if self.is_array(owner):
            return self.array_attribute(node, owner)
        if isinstance(owner, Static):
            try:
                return self.lift(node, getattr(owner.value, node.attr))
            except AttributeError:
                self.source.fail(node, f"{self.describe(owner)} has no attribute {node.attr!r}")
        if node.attr == "dtype" and not isinstance(owner, tuple):
            return Static(owner.type.dtype)
        if node.attr in ("real", "imag") and not isinstance(owner, tuple):
            return self.typed(node, call, loc, node.attr, [owner])
        self.source.fail(node, f"{self.describe(owner)} has no attribute {node.attr!r}")

    def array_attribute(self, node: ast.Attribute, array: Expr) -> Any:
        loc, kind = self.loc(node), array.type
        if node.attr == "shape":
            return tuple(Size(loc, INDEX, array, axis) for axis in range(kind.ndim))
        if node.attr == "strides":
            return tuple(Stride(loc, INDEX, array, axis) for axis in range(kind.ndim))
        if node.attr == "size":
            total: Expr = Size(loc, INDEX, array, 0) if kind.ndim else constant(loc, 1)
            for axis in range(1, kind.ndim):
                total = binary(loc, "mul", total, Size(loc, INDEX, array, axis))
            return total
        if node.attr in ("ndim", "itemsize"):
            return constant(loc, kind.ndim if node.attr == "ndim" else kind.dtype.itemsize)
        if node.attr == "dtype":
            return Static(kind.dtype)
        if node.attr == "subview":
            return Static(_Method(self, array, node.attr))
        self.source.fail(
            node,
            f"an array in a kernel has no attribute {node.attr!r}",
            "there are shape, strides, size, ndim, itemsize, dtype, subview",
        )

    # ---- arithmetic

    def operate(self, node: ast.AST, op: ast.operator, left: Any, right: Any) -> Expr:
        a, b, name = self.number(node, left), self.number(node, right), _BINARY[type(op)]
        loc = self.loc(node)
        if (
            name == "pow"
            and isinstance(b, Const)
            and b.value == 2
            and b.type.weak
            and not isinstance(a, Const)
            and a.type.dtype.kind != "b"
        ):
            return self.typed(node, call, loc, "square", [a])
        return self.typed(node, binary, loc, name, a, b)

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, tuple) and isinstance(right, tuple) and isinstance(node.op, ast.Add):
            return left + right
        return self.operate(node, node.op, left, right)

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.number(node, self.value(node.operand))
        if isinstance(node.op, ast.Not):
            truth = self.truth(node, value)
            if isinstance(truth, Const):
                return constant(self.loc(node), not truth.value)
            return self.typed(node, unary, self.loc(node), "invert", truth)
        return self.typed(node, unary, self.loc(node), _UNARY[type(node.op)], value)

    def eval_Compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Expr | None = None
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            if isinstance(left, Static) and isinstance(right, Static):  # element types: v.dtype == pa.float32
                equal = left.value == right.value
                part: Expr = constant(self.loc(node), equal if isinstance(op, ast.Eq) else not equal)
            else:
                a, b = self.number(node, left), self.number(node, right)
                part = self.typed(node, compare, self.loc(node), _COMPARE[type(op)], a, b)
            result = part if result is None else self.both(node, result, part)
            left = right
        assert result is not None
        return result

    def both(self, node: ast.AST, a: Expr, b: Expr, op: str = "and") -> Expr:
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
        assert result is not None
        return result

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.truth(node.test, self.value(node.test))
        if isinstance(condition, Const):
            return self.value(node.body if condition.value else node.orelse)
        return self.select(node, condition, self.value(node.body), self.value(node.orelse))

    def select(self, node: ast.AST, condition: Expr, then: Any, orelse: Any) -> Expr:
        a, b = self.number(node, then), self.number(node, orelse)
        kind = self.typed(node, join, a.type, b.type)
        return Select(
            self.loc(node), kind, condition, cast(a, kind.dtype, kind.weak), cast(b, kind.dtype, kind.weak)
        )

    # ---- subscripts

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, tuple):
            index = self.number(node.slice, self.value(node.slice))
            if not isinstance(index, Const) or not -len(owner) <= index.value < len(owner):
                self.source.fail(
                    node.slice,
                    f"a tuple of {len(owner)} needs a constant index from {-len(owner)} to {len(owner) - 1}",
                )
            return owner[index.value]
        if not self.is_array(owner):
            self.source.fail(node, f"{self.describe(owner)} can't be indexed")
        parts = self.index_parts(node, owner)
        if len(parts) == owner.type.ndim and not any(isinstance(p, Range) for p in parts):
            return self.element(node, owner, parts)
        return Slice(self.loc(node), _slice_type(owner.type, parts), owner, parts)

    def element(self, node: ast.AST, array: Expr, index: tuple[Any, ...]) -> Expr:
        return Load(self.loc(node), ScalarType(array.type.dtype), array, index)

    def index_parts(self, node: ast.Subscript, array: Expr) -> tuple[Any, ...]:
        """One expression or `Range` per axis; fewer indices than axes are filled with whole ranges."""
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        ndim = array.type.ndim
        dots = [k for k, item in enumerate(items) if isinstance(item, ast.Constant) and item.value is ...]
        count = len(items) - len(dots)
        if count > ndim or len(dots) > 1:
            self.source.fail(node, f"{count} indices for a {array.type}")
        parts: list[Any] = []
        for item in items:
            if isinstance(item, ast.Constant) and item.value is ...:
                parts += [Range(None, None, None)] * (ndim - count)
            elif isinstance(item, ast.Slice):
                parts.append(self.slice_range(item))
            else:
                parts.append(
                    self.wrapped(item, self.integer(item, self.value(item), "an index"), array, len(parts))
                )
        return (*parts, *[Range(None, None, None)] * (ndim - len(parts)))

    def slice_range(self, item: ast.Slice) -> Range:
        bounds = [
            None if n is None else self.integer(n, self.value(n), "a slice bound")
            for n in (item.lower, item.upper, item.step)
        ]
        step = bounds[2]
        if isinstance(step, Const) and step.value == 0:
            self.source.fail(item, "slice step must not be 0")
        return Range(bounds[0], bounds[1], None if isinstance(step, Const) and step.value == 1 else step)

    def wrapped(self, node: ast.AST, index: Expr, array: Expr, axis: int) -> Expr:
        """Constant negatives count from the end; run-time ones only with @kernel(wraparound=True)."""
        size = Size(self.loc(node), INDEX, array, axis)
        if isinstance(index, Const):
            return binary(index.loc, "add", size, index) if index.value < 0 else index
        if not self.program.wraparound or (isinstance(index, Local) and index.name not in self.local_names):
            return index
        negative = compare(index.loc, "lt", index, constant(index.loc, 0))
        return Select(index.loc, INDEX, negative, binary(index.loc, "add", index, size), index)

    # ---- calls

    def eval_Call(self, node: ast.Call) -> Any:
        callee = self.value(node.func)
        if not isinstance(callee, Static):
            self.source.fail(node.func, f"{self.describe(callee)} can't be called")
        function = callee.value
        if isinstance(function, _Method):
            return self.subview(
                node,
                function.array,
                [self.value(a) for a in node.args],
                {k.arg: self.value(k.value) for k in node.keywords},
            )
        source = getattr(function, "__pyarray_func__", None)
        args = [self.value(a) for a in node.args]
        if source is not None:
            return self.invoke(node, source, args, {str(k.arg): self.value(k.value) for k in node.keywords})
        if node.keywords:
            self.source.fail(
                node.keywords[0].value, "keyword arguments are for @pa.func functions", "pass it by position"
            )
        return self.call_known(node, function, args)

    def call_known(self, node: ast.Call, function: Any, args: list[Any]) -> Any:
        loc, name = self.loc(node), name_of(function)
        if name in ATOMICS:
            return self.atomic(node, ATOMICS[name], args)
        if name == "subview":
            return self.subview(node, args[0], args[1:], {})
        if name == "where" and len(args) == 3:
            return self.select(node, self.truth(node, args[0]), args[1], args[2])
        if name == "pow" and len(args) == 2:
            return self.operate(node, ast.Pow(), args[0], args[1])
        if name in FUNCTIONS:
            return self.typed(node, call, loc, name, [self.number(node, a) for a in args])
        if function is len and len(args) == 1:
            if isinstance(args[0], tuple):
                return constant(loc, len(args[0]))
            if self.is_array(args[0]) and args[0].type.ndim:
                return Size(loc, INDEX, args[0], 0)
        if len(args) == 1 and (isinstance(function, DType) or isinstance(function, type)):
            return self.convert(node, function, self.number(node, args[0]))
        if isinstance(function, python_types.FunctionType):
            self.source.fail(
                node.func, f"{function.__name__!r} is a plain Python function", "decorate it with @pa.func"
            )
        self.source.fail(
            node.func, f"{getattr(function, '__name__', function)!r} is not part of the kernel language"
        )

    def convert(self, node: ast.Call, function: Any, value: Expr) -> Expr:
        try:
            dtype = asdtype(function)
        except TypeError:
            self.source.fail(
                node.func, f"{getattr(function, '__name__', function)!r} is not part of the kernel language"
            )
        if value.type.dtype.kind == "c" and dtype.kind not in "cb":
            self.source.fail(
                node, f"a {value.type} can't be converted to {dtype}", "take its .real, .imag or abs()"
            )
        return cast(value, dtype, weak=function in (int, float, complex))

    def atomic(self, node: ast.Call, op: str, args: list[Any]) -> Expr:
        if len(args) != 3 or not self.is_array(args[0]):
            self.source.fail(
                node, f"atomic_{op}() takes an array, an index and a value", f"write pa.atomic_{op}(v, i, x)"
            )
        array, index = args[0], args[1] if isinstance(args[1], tuple) else (args[1],)
        if len(index) != array.type.ndim:
            self.source.fail(node, f"{len(index)} indices for a {array.type}")
        parts = tuple(
            self.wrapped(node, self.integer(node, i, "an index"), array, k) for k, i in enumerate(index)
        )
        value = cast(self.number(node, args[2]), array.type.dtype)
        return Atomic(self.loc(node), ScalarType(array.type.dtype), op, array, parts, value)

    def subview(self, node: ast.Call, array: Any, args: list[Any], keywords: dict[Any, Any]) -> Expr:
        names = ["offset", "size"][len(args) :]
        if len(args) > 2 or sorted(keywords) != sorted(names) or not self.is_array(array):
            self.source.fail(
                node, "a sub-view needs an array, an offset and a size", "write v.subview(offset, size)"
            )
        values = [*args, *(keywords[n] for n in names)]
        if array.type.ndim != 1:
            self.source.fail(
                node,
                f"only a 1-D array has sub-views, this is a {array.type}",
                "index the other axes first: m[i].subview(o, n)",
            )
        offset, size = (
            self.integer(node, v, what) for v, what in zip(values, ("an offset", "a size"), strict=True)
        )
        return SubView(self.loc(node), array.type, array, offset, size)

    def invoke(
        self, node: ast.Call, source: FunctionSource, args: list[Any], keywords: dict[str, Any]
    ) -> Expr:
        if any(active is source for active in self.program.active):
            self.source.fail(
                node, f"{source.name!r} calls itself", "write a loop: GPUs have no stack for recursion"
            )
        try:
            bound = inspect.signature(source.function).bind(*args, **keywords)
        except TypeError as error:
            self.source.fail(node, f"{source.name}(): {error}")
        for name, parameter in inspect.signature(source.function).parameters.items():
            if name not in bound.arguments:
                bound.arguments[name] = self.lift(node, parameter.default)
        ordered = [(name, bound.arguments[name]) for name in inspect.signature(source.function).parameters]
        params = []
        for name, value in ordered:
            if isinstance(value, tuple):
                self.source.fail(
                    node, f"{name!r} of {source.name}(): a tuple can't be passed", "pass its items one by one"
                )
            params.append((name, value if isinstance(value, Static) else value.type))
        made = self.program.function(source, tuple(params))
        live = tuple(value for _, value in ordered if not isinstance(value, Static))
        return Invoke(self.loc(node), made.result, made.symbol, live)


@dataclass(frozen=True, eq=False)
class _Method:
    owner: Expressions
    array: Expr
    name: str


def _slice_type(array: ArrayType, parts: tuple[Any, ...]) -> ArrayType:
    """Contiguous if the array is, its leading axes are indexed, at most one range is cut, and the rest is whole."""
    kept = [p for p in parts if isinstance(p, Range)]
    lead = next(k for k, p in enumerate(parts) if isinstance(p, Range))
    tail = parts[lead:]
    whole = all(isinstance(p, Range) and p == Range(None, None, None) for p in tail[1:])
    strided = array.strided or not whole or kept[0].step is not None
    return ArrayType(array.dtype, len(kept), strided)


def _assigned_names(node: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
