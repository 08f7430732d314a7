"""Calls of `infer`: builtins, casts, `@func` functions."""

from __future__ import annotations

import ast
import inspect
import types as python_types
from typing import Any

from ..annotations import ArrayAnnotation, declared, field_names, is_plain, is_structure
from ..dtypes import PYTHON_KIND, DType, asdtype
from .builtins import ATOMICS, FUNCTIONS, advice_for, name_of
from .infer_access import Accesses
from .infer_expr import Method
from .infer_group import BoundFunction
from .ir import INDEX, ArrayType, Expr, Invoke, ScalarType, Size, Static
from .parse import FunctionSource
from .record import Record, as_tuple, is_group, leaves, transform
from .scalar import call, constant


class Calls(Accesses):
    """Adds calls to `Accesses`."""

    def eval_Call(self, node: ast.Call) -> Any:
        callee = self.value(node.func)
        if not isinstance(callee, Static):
            self.source.fail(node.func, f"{self.describe(callee)} can't be called")
        function = callee.value
        args = [self.value(a) for a in node.args]
        keywords = {str(k.arg): self.value(k.value) for k in node.keywords}
        if isinstance(function, Method):
            return self.subview(node, function.array, args, keywords)
        if isinstance(function, BoundFunction):
            return self.invoke(node, function.function.__pyarray_func__, [function.owner, *args], keywords)
        if isinstance(function, type) and is_structure(function):
            return self.construct(node, function, args, keywords)
        source = getattr(function, "__pyarray_func__", None)
        if source is not None:
            return self.invoke(node, source, args, keywords)
        if name_of(function) == "subview" and args:
            return self.subview(node, args[0], args[1:], keywords)
        if node.keywords:
            advice = "pass it by position"
            self.source.fail(node.keywords[0].value, "keyword arguments are for @pa.func functions", advice)
        return self.call_known(node, function, args)

    def call_known(self, node: ast.Call, function: Any, args: list[Any]) -> Any:
        loc, name = self.loc(node), name_of(function)
        if name in ATOMICS:
            return self.atomic(node, ATOMICS[name], args)
        if name == "where" and len(args) == 3:
            return self.select(node, self.truth(node, args[0]), args[1], args[2])
        if name == "pow" and len(args) == 2:
            return self.operate(node, ast.Pow(), args[0], args[1])
        if name in FUNCTIONS:
            return self.typed(node, call, loc, name, [self.number(node, a) for a in args])
        if function is len and len(args) == 1:
            items = as_tuple(args[0])
            if items is not None:
                return constant(loc, len(items))
            if self.is_array(args[0]) and args[0].type.ndim:
                return Size(loc, INDEX, args[0], 0)
            self.source.fail(node, f"{self.describe(args[0])} has no len()")
        if len(args) == 1 and isinstance(function, (DType, type)):
            return self.convert(node, function, self.number(node, args[0]))
        self.refuse(node, function)

    def refuse(self, node: ast.Call, function: Any) -> Any:
        shown = getattr(function, "__name__", function)
        if hasattr(function, "__pyarray_kernel__"):
            advice = "call it from the host, or make what both share a @pa.func"
            self.source.fail(node.func, f"{shown!r} is a kernel, and a kernel can't call a kernel", advice)
        if (getattr(function, "__module__", None) or "").split(".")[0] == "pyarray":
            advice = "call it on the host; in a kernel write the loop"
            self.source.fail(node.func, f"{shown!r} works on whole arrays", advice)
        if isinstance(function, python_types.FunctionType):
            self.source.fail(node.func, f"{shown!r} is a plain Python function", "decorate it with @pa.func")
        if function is print:
            self.source.fail(
                node.func, "a kernel can't print", "store the value into an array and print that"
            )
        self.source.fail(node.func, f"{shown!r} is not part of the kernel language", advice_for(function))

    def convert(self, node: ast.Call, function: Any, value: Expr) -> Expr:
        try:
            dtype = asdtype(function)
        except TypeError:
            self.refuse(node, function)
        return self.coerce(node, value, ScalarType(dtype, _is_weak(function)))  # pyright: ignore

    # ---- @func

    def invoke(
        self, node: ast.Call, source: FunctionSource, args: list[Any], keywords: dict[str, Any]
    ) -> Expr:
        if any(active is source for active in self.program.active):
            self.source.fail(
                node, f"{source.name!r} calls itself", "write a loop: GPUs have no stack for recursion"
            )
        try:
            bound = source.signature.bind(*args, **keywords).arguments
        except TypeError as error:
            self.source.fail(node, f"{source.name}(): {error}")
        params: list[tuple[str, Any]] = []
        live: list[Expr] = []
        for name in source.signature.parameters:
            value = bound[name] if name in bound else self.default(node, source, name)
            value = self.annotated(node, source, name, value)
            for _, leaf in leaves(name, value):
                if not isinstance(leaf, Static):
                    if not isinstance(leaf.type, (ScalarType, ArrayType)):
                        came = self.describe(leaf)
                        advice = "assign what a call returns first" if leaf.type is not None else ""
                        what = f"{name!r} of {source.name}(): expected a value, got {came}"
                        self.source.fail(node, what, advice)
                    live.append(leaf)
            types = transform(name, value, lambda _, x: x if isinstance(x, Static) else x.type)
            params.append((name, types))
        made = self.program.function(source, tuple(params))
        # a parameter that the function assigns may be wider than what is passed
        given = (self.coerce(node, value, kind) for value, (_, kind) in zip(live, made.params, strict=True))
        return Invoke(self.loc(node), made.result, made.symbol, tuple(given))

    def default(self, node: ast.AST, source: FunctionSource, name: str) -> Any:
        """A parameter's default as it is now, noted as any captured value."""
        function = source.function
        for attribute in ("__defaults__", "__kwdefaults__"):
            if getattr(function, attribute):
                self.program.capture(function, attribute, getattr(function, attribute))
        return self.lift(node, inspect.signature(function).parameters[name].default)

    def construct(self, node: ast.Call, kind: type, args: list[Any], keywords: dict[str, Any]) -> Record:
        """A named tuple or dataclass from its fields."""
        names = field_names(kind)
        if hasattr(kind, "__post_init__") or not is_plain(kind):
            advice = "a kernel runs no __init__, __new__ or __post_init__; use a tuple, or a plain dataclass"
            self.source.fail(node, f"a {kind.__name__} can't be made here", advice)
        try:
            bound = inspect.signature(kind).bind(*args, **keywords)
        except TypeError as error:
            self.source.fail(node, f"{kind.__name__}(): {error}")
        given = bound.arguments
        defaults = inspect.signature(kind).parameters
        items = tuple(given[n] if n in given else self.lift(node, defaults[n].default) for n in names)
        return Record(kind, names, items)

    def annotated(self, node: ast.Call, source: FunctionSource, name: str, value: Expr) -> Expr:
        """The argument as the function's annotation wants it; one that says nothing to this layer is left
        alone."""
        wanted = self.typed(node, source.annotation, name)
        what = f"{name!r} of {source.name}()"
        if isinstance(value, Static) or getattr(value, "type", self) is None:
            return value
        direction = declared(wanted)
        wanted = wanted if direction is None else direction.inner
        if isinstance(wanted, type) and is_structure(wanted):
            if not isinstance(value, Record) or not issubclass(value.kind, wanted):
                self.source.fail(node, f"{what} is a {wanted.__name__}, got {self.describe(value)}")
            return value
        if isinstance(wanted, ArrayAnnotation):
            kind = value.type
            fits = (
                self.is_array(value)
                and wanted.ndim in (None, kind.ndim)
                and wanted.dtype in (None, kind.dtype)
            )
            if not fits or (wanted.view and kind.strided):
                self.source.fail(node, f"{what} is annotated {wanted!r}, got {self.describe(value)}")
            return value
        if isinstance(wanted, DType) or (isinstance(wanted, type) and wanted in PYTHON_KIND):
            if self.is_array(value) or is_group(value):
                hint = "index it: v[i]" if self.is_array(value) else "pass one of its items"
                self.source.fail(node, f"{what} is a number, got {self.describe(value)}", hint)
            return self.coerce(node, value, ScalarType(asdtype(wanted), _is_weak(wanted)))
        return value


def _is_weak(function: Any) -> bool:
    """Python's own int, float and complex; by identity, since a `DType` equals the Python type of its
    width."""
    return any(function is kind for kind in (int, float, complex))
