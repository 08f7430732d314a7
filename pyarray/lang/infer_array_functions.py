"""Infers functions of arrays of constant shape: reductions, products, small linear algebra. Their loops are in
`array_functions`, written in the kernel language."""

from __future__ import annotations

import ast
import builtins as python
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import DType, asdtype, float32, float64, int64, uint64
from . import array_functions, ir
from .infer_elements import UNROLLED, Index, bind, convert, element, elementwise, generate, is_elementwise, loaded
from .infer_invoke import invoke
from .infer_local_arrays import reshaped, transposed
from .infer_scope import Scope
from .infer_values import constant_shape, describe
from .parse import FunctionSource, source_of
from .promotion import binary, cast, constant, join

MOST_ROWS = 4  # of a matrix that is solved or inverted
_COMBINATIONS = {
    "sum": np.add, "mean": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "any": np.logical_or,
    "all": np.logical_and,
}  # fmt: skip
_ORDERS = {"argmin": np.less, "argmax": np.greater}
_REDUCTIONS = (*_COMBINATIONS, *_ORDERS)
_ALIASES = {"amin": "min", "amax": "max", "matrix_transpose": "transpose"}
_OF_ONE = (*_REDUCTIONS, "norm", "det", "inv", "trace", "transpose", "copy", "ravel")
_OF_TWO = ("dot", "matmul", "vecdot", "cross", "outer", "solve")
_PYTHON = {python.sum: "sum", python.any: "any", python.all: "all", python.min: "min", python.max: "max"}


def array_function_of(function: Any, args: list[Any]) -> str | None:
    """The function of local arrays that a call is, None for others."""
    if not is_elementwise(*args[:2]):
        return None
    try:
        name = _PYTHON.get(function) if len(args) == 1 else None
    except TypeError:
        return None
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    if name is None and package in ("pyarray", "numpy") and not hasattr(function, "__pyarray_func__"):
        name = getattr(function, "__name__", None)
        name = _ALIASES.get(str(name), name)
    return name if name in (*_OF_ONE, *_OF_TWO) else None


def call_array_function(scope: Scope, node: ast.Call, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A call of one of them, or of a method of a local array."""
    if name == "reshape":
        return reshaped(scope, node, args[0], args[1:])
    if name == "astype":
        return _astype(scope, node, args, keywords)
    expected = 2 if name in _OF_TWO else 1
    if name in _REDUCTIONS and len(args) == 2 and not keywords:
        keywords = {"axis": args.pop()}
    allowed = {"axis"} if name in _REDUCTIONS else set()
    if len(args) != expected or set(keywords) - allowed:
        takes = "two arrays" if expected == 2 else "an array" + (" and an axis" if allowed else "")
        scope.fail(node, f"{name}() of local arrays takes {takes}")
    if name in _REDUCTIONS:
        return _reduce(scope, node, name, args[0], keywords.get("axis"))
    return _FUNCTIONS[name](scope, node, *args)


def _astype(scope: Scope, node: ast.Call, args: list[Any], keywords: dict[str, Any]) -> Any:
    try:
        dtype = asdtype(args[1].value)
    except (TypeError, AttributeError, IndexError):
        scope.fail(node, "astype() takes a dtype", "write p.astype(pa.float32)")
    if len(args) > 2 or keywords:
        scope.fail(node, "astype() takes a dtype", "write p.astype(pa.float32)")
    return elementwise(scope, node, [args[0]], lambda x: scope.coerce(node, x, ir.ScalarType(dtype)), "astype")


@functools.cache
def _source(name: str) -> FunctionSource:
    return source_of(getattr(array_functions, name))


def _invoke(scope: Scope, node: ast.AST, name: str, *args: Any) -> Any:
    return invoke(scope, node, _source(name), list(args), {})


def _typed(scope: Scope, node: ast.AST, value: int, dtype: DType) -> ir.Expr:
    return cast(constant(scope.loc(node), value), dtype)


def _shape(value: Any) -> tuple[int, ...]:
    shape = constant_shape(value)
    assert shape is not None
    return shape


def _array(scope: Scope, node: ast.AST, name: str, value: Any) -> ir.Expr:
    if constant_shape(value) is None:
        scope.fail(node, f"{name}() takes arrays of constant shape, got {describe(value)}")
    return loaded(scope, node, value)


def _item(scope: Scope, node: ast.AST, array: ir.Expr) -> ir.Expr:
    """The one element."""
    return ir.Element(scope.loc(node), ir.ScalarType(array.type.dtype), array, _zeros(scope, node, array.type.ndim))


def _zeros(scope: Scope, node: ast.AST, count: int) -> Index:
    return tuple(constant(scope.loc(node), 0) for _ in range(count))


def _as(scope: Scope, node: ast.AST, array: ir.Expr, *shape: int) -> ir.Expr:
    """The array in another shape."""
    return reshaped(scope, node, array, [constant(scope.loc(node), n) for n in shape])


def _with_dtype(scope: Scope, node: ast.AST, array: ir.Expr, dtype: DType) -> ir.Expr:
    return convert(scope, node, array, ir.LocalArrayType(dtype, array.type.shape))


def unrolled_values(scope: Scope, node: ast.For) -> range | None:
    """The values of the variable of a short loop in `array_functions`, which is unrolled: compilers unroll the
    innermost loop alone, and elements at computed places aren't in registers."""
    if scope.source.function.__module__ != array_functions.__name__ or not isinstance(node.iter, ast.Call):
        return None
    bounds = [scope.infer(x) for x in node.iter.args]
    if not all(isinstance(x, ir.Const) for x in bounds):
        return None
    values = range(*(x.value for x in bounds))
    innermost = not any(isinstance(n, ast.For) for statement in node.body for n in ast.walk(statement))
    return values if len(values) <= (UNROLLED if innermost else MOST_ROWS) else None


def unrolled(scope: Scope, node: ast.For, values: range, infer_block: Callable[..., Any]) -> list[ir.Stmt]:
    """The body once per value of the loop's variable, which is a constant there."""
    assert isinstance(node.target, ast.Name)
    outer, result = scope.constants, list[ir.Stmt]()
    for k in values:
        scope.constants = outer | {node.target.id: k}
        result += infer_block(scope, node.body)
    scope.constants = outer
    return result


# ---- reductions


def _reduce(scope: Scope, node: ast.AST, name: str, value: Any, axis: Any) -> Any:
    array = _array(scope, node, name, value)
    shape, dtype = array.type.shape, array.type.dtype
    if dtype.kind == "c" and name in ("min", "max", "argmin", "argmax"):
        scope.fail(node, f"{name}() is not defined for {dtype}", "complex numbers have no order")
    whole = axis is None or (isinstance(axis, ir.Static) and axis.value is None)
    number = 0 if whole else _axis(scope, node, axis, len(shape))
    before, n, behind = (1, math.prod(shape), 1) if whole else _around(shape, number)
    if not n and name in ("min", "max", "argmin", "argmax"):
        scope.fail(node, f"{name}() of no elements has no value")
    grouped = _as(scope, node, array, before, n, behind)
    if name in _ORDERS:
        reduced = _invoke(scope, node, "find", grouped, ir.Static(_ORDERS[name]))
    else:
        start = _start(scope, node, name, dtype)
        reduced = _invoke(scope, node, "reduce", grouped, start, ir.Static(_COMBINATIONS[name]))
    result = _item(scope, node, reduced) if whole else _as(scope, node, reduced, *shape[:number], *shape[number + 1 :])
    if not whole and len(shape) == 1:
        result = _item(scope, node, reduced)
    if name != "mean":
        return result
    count = constant(scope.loc(node), n)
    divide: Callable[..., Any] = lambda x: binary(scope.loc(node), "div", x, count)  # noqa: E731
    return elementwise(scope, node, [result], divide, "mean") if constant_shape(result) else divide(result)


def _start(scope: Scope, node: ast.AST, name: str, dtype: DType) -> Any:
    """What a reduction starts from; None for its first element."""
    if name in ("min", "max"):
        return ir.Static(None)
    if name in ("any", "all"):
        return ir.Const(scope.loc(node), ir.BOOL, name == "all")
    kind = float64 if name == "mean" and dtype.kind in "biu" else _sum_type(dtype)
    return _typed(scope, node, int(name == "prod"), kind)


def _axis(scope: Scope, node: ast.AST, axis: Any, ndim: int) -> int:
    if not isinstance(axis, ir.Const) or type(axis.value) is not int:
        scope.fail(node, f"an axis is a constant, got {describe(axis)}")
    if not -ndim <= axis.value < ndim:
        scope.fail(node, f"axis {axis.value} is out of range for an array of {ndim} axes")
    return int(axis.value) % ndim


def _around(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _sum_type(dtype: DType) -> DType:
    """Integers are summed in 64 bits, as NumPy does."""
    return {"b": int64, "i": int64, "u": uint64}.get(dtype.kind, dtype)


# ---- products


def _product_type(scope: Scope, node: ast.AST, a: ir.Expr, b: ir.Expr) -> DType:
    kind: ir.ScalarType = scope.apply(node, join, ir.ScalarType(a.type.dtype), ir.ScalarType(b.type.dtype))
    return kind.dtype


def matmul(scope: Scope, node: ast.AST, left: Any, right: Any) -> Any:
    """`left @ right` of vectors and matrices."""
    for x in (left, right):
        if constant_shape(x) is None:
            what = f"'@' in a kernel takes arrays of constant shape, got {describe(x)}"
            scope.fail(node, what, "use @ on the host, or write the loops")
    a, b = loaded(scope, node, left), loaded(scope, node, right)
    first, second = a.type.shape, b.type.shape
    if len(first) > 2 or len(second) > 2 or first[-1] != second[0]:
        scope.fail(node, f"'@' is not defined for shapes {first} and {second}")
    dtype = _product_type(scope, node, a, b)
    rows = first[0] if len(first) == 2 else 1
    columns = second[1] if len(second) == 2 else 1
    left, right = _as(scope, node, a, rows, first[-1]), _as(scope, node, b, second[0], columns)
    product = _invoke(
        scope, node, "matmul", _with_dtype(scope, node, left, dtype), _with_dtype(scope, node, right, dtype),
        _typed(scope, node, 0, dtype),
    )  # fmt: skip
    if len(first) == len(second) == 1:
        return _item(scope, node, product)
    return _as(scope, node, product, *first[:-1], *second[1:])


def _dot(scope: Scope, node: ast.AST, a: Any, b: Any) -> Any:
    if constant_shape(a) is not None and constant_shape(b) is not None:
        return matmul(scope, node, a, b)
    return elementwise(scope, node, [a, b], lambda x, y: binary(scope.loc(node), "mul", x, y), "multiply")


def _vecdot(scope: Scope, node: ast.AST, a: Any, b: Any) -> Any:
    a, b = _array(scope, node, "vecdot", a), _array(scope, node, "vecdot", b)
    if a.type.ndim != 1 or a.type.shape != b.type.shape:
        scope.fail(node, f"vecdot() of local arrays takes two vectors, got {a.type.shape} and {b.type.shape}")
    if a.type.dtype.kind == "c":
        a = elementwise(scope, node, [a], lambda x: ir.Builtin(x.loc, x.type, "conj", x.type.dtype, (x,)), "conj")
    return matmul(scope, node, a, b)


def _cross(scope: Scope, node: ast.AST, a: Any, b: Any) -> Any:
    a, b = _array(scope, node, "cross", a), _array(scope, node, "cross", b)
    if a.type.shape != (3,) or b.type.shape != (3,):
        scope.fail(node, f"cross() takes two vectors of 3 elements, got shapes {a.type.shape} and {b.type.shape}")
    dtype = _product_type(scope, node, a, b)
    return _invoke(scope, node, "cross", _with_dtype(scope, node, a, dtype), _with_dtype(scope, node, b, dtype))


def _outer(scope: Scope, node: ast.AST, a: Any, b: Any) -> Any:
    a, b = _array(scope, node, "outer", a), _array(scope, node, "outer", b)
    a, b = _as(scope, node, a, -1), _as(scope, node, b, -1)
    shape = (a.type.size, b.type.size)

    def at(operands: list[ir.Expr], index: Index) -> ir.Expr:
        x, y = element(scope, node, operands[0], index[:1]), element(scope, node, operands[1], index[1:])
        return scope.apply(node, binary, scope.loc(node), "mul", x, y)

    return bind(scope, [a, b], lambda *bound: generate(scope, node, shape, list(bound), at, "outer"))


# ---- linear algebra


def _floating(scope: Scope, node: ast.AST, array: ir.Expr, other: ir.Expr | None = None) -> DType:
    dtype = array.type.dtype if other is None else _product_type(scope, node, array, other)
    return float64 if dtype.kind in "biu" else dtype


def _norm(scope: Scope, node: ast.AST, value: Any) -> Any:
    array = _array(scope, node, "norm", value)
    dtype = _floating(scope, node, array)
    flat = _as(scope, node, _with_dtype(scope, node, array, dtype), array.type.size)
    if dtype.kind != "c":
        return _invoke(scope, node, "norm_of_reals", flat, _typed(scope, node, 0, dtype))
    return _invoke(scope, node, "norm", flat, _typed(scope, node, 0, float32 if dtype.itemsize == 8 else float64))


def _matrix(scope: Scope, node: ast.AST, name: str, value: Any) -> ir.Expr:
    array = _array(scope, node, name, value)
    shape = array.type.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        scope.fail(node, f"{name}() takes a square matrix, got an array of shape {shape}")
    if shape[0] > MOST_ROWS or not shape[0]:
        what = f"{name}() in a kernel takes matrices of 1 to {MOST_ROWS} rows, got {shape[0]}"
        scope.fail(node, what, "call pa.linalg on the host")
    return array


def _trace(scope: Scope, node: ast.AST, value: Any) -> Any:
    array = _array(scope, node, "trace", value)
    if array.type.ndim != 2:
        scope.fail(node, f"trace() takes a matrix, got an array of shape {array.type.shape}")
    return _invoke(scope, node, "trace", array, _typed(scope, node, 0, _sum_type(array.type.dtype)))


def _det(scope: Scope, node: ast.AST, value: Any) -> Any:
    array = _matrix(scope, node, "det", value)
    dtype = _floating(scope, node, array)
    return _invoke(scope, node, "det", _with_dtype(scope, node, array, dtype), _typed(scope, node, 1, dtype))


def _solve(scope: Scope, node: ast.AST, left: Any, right: Any) -> Any:
    a, b = _matrix(scope, node, "solve", left), _array(scope, node, "solve", right)
    shape = b.type.shape
    if len(shape) > 2 or shape[0] != a.type.shape[0]:
        scope.fail(node, f"solve() is not defined for shapes {a.type.shape} and {shape}")
    dtype = _floating(scope, node, a, b)
    columns = _as(scope, node, _with_dtype(scope, node, b, dtype), shape[0], math.prod(shape[1:]))
    solved = _invoke(scope, node, "solve", _with_dtype(scope, node, a, dtype), columns)
    return _as(scope, node, solved, *shape)


def _inv(scope: Scope, node: ast.AST, value: Any) -> Any:
    array = _matrix(scope, node, "inv", value)
    n, dtype = array.type.shape[0], _floating(scope, node, array)
    ones = tuple(_typed(scope, node, int(i == j), dtype) for i in range(n) for j in range(n))
    identity = ir.Build(scope.loc(node), ir.LocalArrayType(dtype, (n, n)), ones)
    return _solve(scope, node, array, identity)


def _transpose(scope: Scope, node: ast.AST, value: Any) -> Any:
    return transposed(scope, node, _array(scope, node, "transpose", value))


def copy(scope: Scope, node: ast.AST, value: Any) -> Any:
    """Memory of its own, which shares nothing."""
    return elementwise(scope, node, [value], lambda x: x, "copy")


def _ravel(scope: Scope, node: ast.AST, value: Any) -> Any:
    return _as(scope, node, _array(scope, node, "ravel", value), -1)


_FUNCTIONS: dict[str, Callable[..., Any]] = {  # by name, of functions that are no reductions
    "dot": _dot, "matmul": matmul, "vecdot": _vecdot, "cross": _cross, "outer": _outer, "norm": _norm, "det": _det,
    "inv": _inv, "solve": _solve, "trace": _trace, "transpose": _transpose, "copy": copy, "ravel": _ravel,
}  # fmt: skip
