"""Infers calls: atomics, functions of the language, casts, `@func` functions."""

from __future__ import annotations

import ast
import copy
import dataclasses
import math
import sys
import types as python_types
from typing import Any

import numpy as np

from ..annotations import is_structure
from ..dtypes import DType, asdtype, named_dtype
from ..errors import with_article
from . import ir
from .aggregates import as_tuple, is_aggregate, is_generator, is_records, leaves
from .builtins import ATOMICS, FUNCTIONS, advice_for, draws, name_of, source_for
from .infer_access import atomic, reshape, subview
from .infer_aggregates import call_special_method, user_method
from .infer_array_functions import array_function_of, call_array_function
from .infer_elements import elementwise, is_elementwise
from .infer_fields import replaced
from .infer_generators import Draw, draw, make_generator, refuse_generator
from .infer_invoke import construct, invoke, is_weak
from .infer_local_arrays import CREATION, create
from .infer_local_functions import call_local, is_function, lambda_source, refuse_changed
from .infer_messages import print_call
from .infer_operators import arithmetic, binary_operator, select
from .infer_records import records_length
from .infer_scope import Scope, rule
from .infer_temporaries import with_let_bound
from .infer_tile_calls import call_with_tiles, masked_store
from .infer_tiles import create_tile
from .infer_values import BoundFunction, BoundReplace, Method, advice_for_captured, describe, is_array, is_local_array
from .promotion import call, constant

_ARRAY_CREATION = ("arange", "linspace", "empty_like", "zeros_like", "ones_like", "full_like")


@rule(ast.Call)
def _call(scope: Scope, node: ast.Call) -> Any:
    callee = scope.infer(node.func)
    if user_method(scope, callee, "__call__") is not None and not node.keywords:
        return call_special_method(scope, node, callee, "__call__", *map(scope.infer, node.args))
    if not isinstance(callee, ir.Static) and not is_function(callee):
        advice = "define __call__ in the class with @pa.func, or pass a lambda" if is_aggregate(callee) else ""
        scope.fail(node.func, f"{describe(callee)} can't be called", advice)
    if isinstance(callee, ir.Static) and callee.value is print:
        return print_call(scope, node)
    function = callee.value if isinstance(callee, ir.Static) else None
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    of_library = package in ("pyarray", "numpy") and not hasattr(function, "__pyarray_func__")
    if of_library and (tile := create_tile(scope, node, str(getattr(function, "__name__", "")))) is not None:
        return tile
    if (done := masked_store(scope, node, function)) is not None:
        return done
    if of_library and getattr(function, "__name__", "") in CREATION:
        return create(scope, node, str(getattr(function, "__name__", "")))
    args = [scope.infer(a) for a in node.args]
    keywords = {str(k.arg): scope.infer(k.value) for k in node.keywords}
    for argument in (*args, *keywords.values()):
        if not is_generator(argument) or not _is_inferred(scope, callee):
            refuse_generator(scope, node, argument, "passed to this function")
    refuse_changed(scope, node, [callee, *args, *keywords.values()])
    if not isinstance(callee, ir.Static):
        return call_local(scope, node, callee, args, keywords)
    function, args = _unbound(callee.value, args)
    if (found := call_with_tiles(scope, node, function, args, keywords)) is not None:
        return found
    if isinstance(function, Method):
        return _call_method(scope, node, function, args, keywords)
    if isinstance(function, BoundReplace):
        return replaced(scope, node, [function.owner, *args], keywords, "_replace")
    if function is dataclasses.replace or (function is not None and function is getattr(copy, "replace", None)):
        return replaced(scope, node, args, keywords, "replace")
    if isinstance(function, Draw):
        return draw(scope, node, function, args, keywords)
    if hasattr(function, "__pyarray_rng__"):
        return make_generator(scope, node, function, args, keywords)
    if isinstance(function, BoundFunction):
        return invoke(scope, node, function.function.__pyarray_func__, [function.owner, *args], keywords)
    if isinstance(function, type) and is_structure(function):
        return construct(scope, node, function, args, keywords)
    source = source_for(function) or lambda_source(scope, function)
    if source is not None and _is_ufunc(function, source, args):
        return elementwise(scope, node, args, lambda *xs: invoke(scope, node, source, list(xs), keywords), source.name)
    if source is not None:
        return invoke(scope, node, source, args, keywords)
    if name_of(function) == "subview" and args:
        return subview(scope, node, args[0], args[1:], keywords)
    if draws(function):
        what = f"{getattr(function, '__name__', function)!r} draws random numbers, and a kernel can't"
        scope.fail(node.func, what, "draw them on the host, pa.random.default_rng(seed).random(n), and pass the array")
    if (name := array_function_of(function, args)) is not None:
        return call_array_function(scope, node, name, args, keywords)
    if node.keywords:
        scope.fail(node.keywords[0].value, "keyword arguments are for @pa.func functions", "pass it by position")
    return _call_builtin(scope, node, function, args)


def _unbound(function: Any, args: list[Any]) -> tuple[Any, list[Any]]:
    """The `@pa.func` of a class's method, with the class or the object that Python has bound as its first argument."""
    if not (isinstance(function, python_types.MethodType) and hasattr(function, "__pyarray_func__")):
        return function, args
    return function.__func__, [ir.Static(function.__self__), *args]


def _call_method(scope: Scope, node: ast.Call, method: Method, args: list[Any], keywords: dict[str, Any]) -> Any:
    if method.name == "subview":
        return subview(scope, node, method.owner, args, keywords)
    if method.name == "view":
        return _bitcast(scope, node, method.owner, args, keywords)
    if is_local_array(method.owner) or method.name not in ("reshape", "ravel"):
        return call_array_function(scope, node, method.name, [method.owner, *args], keywords)
    return reshape(scope, node, method, args, keywords)


def _is_inferred(scope: Scope, callee: Any) -> bool:
    """Whether a call is of a function of the user's, which may take generators."""
    if is_function(callee) or isinstance(callee.value, BoundFunction) or hasattr(callee.value, "__pyarray_func__"):
        return True
    return lambda_source(scope, callee.value) is not None


def _is_ufunc(function: Any, source: Any, args: list[Any]) -> bool:
    """Whether a call is of a ufunc of the library's or NumPy's on arrays: what it is compiled from is of elements.
    A `@func` of the library (pyarray.quaternion) is compiled from itself."""
    of_library = (getattr(function, "__module__", None) or "").partition(".")[0] in ("pyarray", "numpy")
    return of_library and getattr(function, "__wrapped__", None) is not source.function and is_elementwise(*args)


# what Python's functions of one number ask of an object
_SPECIAL = (
    (abs, "__abs__"), (round, "__round__"), (int, "__int__"), (float, "__float__"), (complex, "__complex__"),
    (bool, "__bool__"),
)  # fmt: skip


def _call_builtin(scope: Scope, node: ast.Call, function: Any, args: list[Any]) -> Any:
    loc, name = scope.loc(node), name_of(function)
    if name in ATOMICS:
        return atomic(scope, node, ATOMICS[name], args)
    if name == "where" and len(args) == 3 and is_elementwise(*args):
        choose = lambda c, a, b: select(scope, node, scope.truth(node, c), a, b)  # noqa: E731
        return elementwise(scope, node, args, choose, "where")
    if name == "where" and len(args) == 3:
        return with_let_bound(scope, args, lambda c, a, b: select(scope, node, scope.truth(node, c), a, b))
    if name == "pow" and len(args) == 2:
        return binary_operator(scope, node, ast.Pow(), args[0], args[1])
    if name in FUNCTIONS and is_elementwise(*args):
        if function in (min, max):
            advice = f"write pa.{name}imum(a, b) for their elements, or pa.{name}(a) of one array"
            scope.fail(node, f"{name}() of Python doesn't compare arrays", advice)
        return elementwise(scope, node, args, lambda *xs: call(loc, name, list(xs)), name)
    if function is math.log and len(args) == 2:
        x, base = (scope.apply(node, call, loc, "log", [scope.number(node, a)]) for a in args)
        return arithmetic(scope, node, ast.Div(), x, base)
    special = next((method for known, method in _SPECIAL if function is known), None)
    if special is not None and len(args) == 1:
        found = call_special_method(scope, node, args[0], special)
        if found is not None:
            return found if special in ("__abs__", "__round__") else _convert(scope, node, function, found)
    if name in FUNCTIONS:
        return scope.apply(node, call, loc, name, [scope.number(node, a) for a in args])
    if function is len and len(args) == 1:
        length = call_special_method(scope, node, args[0], "__len__")
        if length is not None:
            return length
        if is_records(args[0]):
            return records_length(scope, node, args[0])
        items = as_tuple(args[0])
        if items is not None:
            values = [leaf for _, leaf in leaves("", args[0])]
            return with_let_bound(scope, values, lambda *_: constant(loc, len(items)))
        if is_local_array(args[0]):
            return with_let_bound(scope, [args[0]], lambda a: constant(loc, a.type.shape[0]))
        if is_array(args[0]) and args[0].type.ndim:
            return ir.Size(loc, ir.INDEX, args[0], 0)
        scope.fail(node, f"{describe(args[0])} has no len()", advice_for_captured(args[0]))
    if len(args) == 1 and named_dtype(function) is not None and is_elementwise(args[0]):
        return elementwise(scope, node, args, lambda x: _convert(scope, node, function, x), "convert")
    if len(args) == 1 and isinstance(function, (DType, np.dtype, type)):
        return _convert(scope, node, function, scope.number(node, args[0]))
    _refuse(scope, node, function)


def _refuse(scope: Scope, node: ast.Call, function: Any) -> Any:
    name = getattr(function, "__name__", function)
    if hasattr(function, "__pyarray_kernel__"):
        advice = "call it from the host, or make what both share a @pa.func"
        scope.fail(node.func, f"{name!r} is a kernel, and a kernel can't call a kernel", advice)
    package = (getattr(function, "__module__", None) or "").split(".")[0]
    if package in ("pyarray", "numpy") and name in _ARRAY_CREATION:
        advice = "write pa.zeros(n) with a constant n, or pa.array([x, y, z]); or make it on the host and pass it"
        if name == "arange":
            advice += "; the indices of a block are a tile index, for i in pa.tiles(n, 64)"
        if scope.tile_indices:
            advice = "a tile is made by pa.zeros((i, j), pa.float32), and a tile index is the tile of its numbers"
        scope.fail(node.func, f"{name!r} makes no local arrays", advice)
    if package == "pyarray":
        scope.fail(node.func, f"{name!r} works on whole arrays", "call it on the host; in a kernel write the loop")
    if isinstance(function, python_types.FunctionType) and package not in {"numpy", *sys.stdlib_module_names}:
        scope.fail(node.func, f"{name!r} is a plain Python function", "decorate it with @pa.func")
    scope.fail(node.func, f"{name!r} is not part of the kernel language", advice_for(function))


def _convert(scope: Scope, node: ast.Call, function: Any, value: ir.Expr) -> ir.Expr:
    try:
        dtype = asdtype(function)
    except TypeError:
        _refuse(scope, node, function)
    return scope.coerce(node, value, ir.ScalarType(dtype, is_weak(function)))  # pyright: ignore


def _bitcast(scope: Scope, node: ast.Call, value: ir.Expr, args: list[Any], keywords: dict[str, Any]) -> ir.Expr:
    """`x.view(int32)`: the bits as another type, as NumPy scalars do."""
    single = len(args) == 1 and not keywords and isinstance(args[0], ir.Static)
    dtype = named_dtype(args[0].value) if single else None
    if dtype is None:
        scope.fail(node, "view() of a number takes a dtype", "write x.view(int32)")
    source = value.type.dtype
    if source.itemsize != dtype.itemsize or {source.kind, dtype.kind} - set("iuf"):
        what = f"{with_article(source)} has no view as {dtype}"
        scope.fail(node, what, "both are integers or floats of the same size")
    return value if dtype is source else ir.Convert(scope.loc(node), ir.ScalarType(dtype), value, "bitcast")
