"""Calls of `infer`: builtins, casts, `@func` functions."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import types as python_types
from typing import Any

import numpy as np

from ..annotations import ArrayAnnotation, declared, field_annotations, field_names, is_plain, is_structure
from ..dtypes import DType, asdtype, named_dtype
from .aggregates import Aggregate, as_tuple, is_aggregate, leaves, transform
from .builtins import ATOMICS, FUNCTIONS, advice_for, draws, name_of
from .infer_access import Accesses
from .infer_aggregates import BoundFunction
from .infer_names import Method, advice_for_captured
from .ir import INDEX, ArrayType, Convert, Expr, Invoke, ScalarType, Size, Static
from .parse import FunctionSource
from .promotion import call, constant

_MAKING = ("empty", "zeros", "ones", "full", "array", "asarray", "arange", "linspace", "eye")
_KINDS = "bifc"  # each holds the numbers of those before it


class Calls(Accesses):
    """Adds calls to `Accesses`."""

    def eval_Call(self, node: ast.Call) -> Any:
        callee = self.value(node.func)
        if self.own_method(callee, "__call__") is not None and not node.keywords:
            return self.special(node, callee, "__call__", *map(self.value, node.args))
        if not isinstance(callee, Static):
            self.source.fail(node.func, f"{self.describe(callee)} can't be called")
        function = callee.value
        args = [self.value(a) for a in node.args]
        keywords = {str(k.arg): self.value(k.value) for k in node.keywords}
        if isinstance(function, Method):
            if function.name == "subview":
                return self.subview(node, function.owner, args, keywords)
            if function.name == "view":
                return self.bitcast(node, function.owner, args, keywords)
            return self.reshape(node, function, args, keywords)
        if isinstance(function, BoundFunction):
            return self.invoke(node, function.function.__pyarray_func__, [function.owner, *args], keywords)
        if isinstance(function, type) and is_structure(function):
            return self.construct(node, function, args, keywords)
        source = getattr(function, "__pyarray_func__", None)
        if source is not None:
            return self.invoke(node, source, args, keywords)
        if name_of(function) == "subview" and args:
            return self.subview(node, args[0], args[1:], keywords)
        if draws(function):
            what = f"{getattr(function, '__name__', function)!r} draws random numbers, and a kernel can't"
            advice = "draw them on the host, pa.random.default_rng(seed).random(n), and pass the array"
            self.source.fail(node.func, what, advice)
        if node.keywords:
            advice = "pass it by position"
            self.source.fail(node.keywords[0].value, "keyword arguments are for @pa.func functions", advice)
        return self.call_known(node, function, args)

    def call_known(self, node: ast.Call, function: Any, args: list[Any]) -> Any:
        loc, name = self.loc(node), name_of(function)
        if name in ATOMICS:
            return self.atomic(node, ATOMICS[name], args)
        if name == "where" and len(args) == 3:
            return self.evaluated(args, lambda c, a, b: self.select(node, self.truth(node, c), a, b))
        if name == "pow" and len(args) == 2:
            return self.operate(node, ast.Pow(), args[0], args[1])
        if name in FUNCTIONS:
            return self.typed(node, call, loc, name, [self.number(node, a) for a in args])
        if function is len and len(args) == 1:
            made = self.special(node, args[0], "__len__")
            if made is not None:
                return made
            items = as_tuple(args[0])
            if items is not None:
                values = [leaf for _, leaf in leaves("", args[0])]
                return self.evaluated(values, lambda *_: constant(loc, len(items)))
            if self.is_array(args[0]) and args[0].type.ndim:
                return Size(loc, INDEX, args[0], 0)
            self.source.fail(node, f"{self.describe(args[0])} has no len()", advice_for_captured(args[0]))
        if len(args) == 1 and isinstance(function, (DType, np.dtype, type)):
            return self.convert(node, function, self.number(node, args[0]))
        self.refuse(node, function)

    def refuse(self, node: ast.Call, function: Any) -> Any:
        shown = getattr(function, "__name__", function)
        if hasattr(function, "__pyarray_kernel__"):
            advice = "call it from the host, or make what both share a @pa.func"
            self.source.fail(node.func, f"{shown!r} is a kernel, and a kernel can't call a kernel", advice)
        home = (getattr(function, "__module__", None) or "").split(".")[0]
        if home in ("pyarray", "numpy") and shown in _MAKING:
            advice = "make it on the host and pass it; a few numbers may be a tuple"
            self.source.fail(node.func, f"a kernel can't make arrays, and {shown!r} does", advice)
        if home == "pyarray":
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

    def bitcast(self, node: ast.Call, value: Expr, args: list[Any], keywords: dict[str, Any]) -> Expr:
        """`x.view(int32)`: its bits as another type, as numbers of NumPy have it."""
        alone = len(args) == 1 and not keywords and isinstance(args[0], Static)
        dtype = named_dtype(args[0].value) if alone else None
        if dtype is None:
            self.source.fail(node, "view() of a number takes a dtype", "write x.view(int32)")
        here = value.type.dtype
        if here.itemsize != dtype.itemsize or {here.kind, dtype.kind} - set("iuf"):
            what = f"a {here} has no view as {dtype}"
            self.source.fail(node, what, "both are integers or floats of the same size")
        return value if dtype is here else Convert(self.loc(node), ScalarType(dtype), value, "bitcast")

    # ---- @func

    def invoke(
        self, node: ast.AST, source: FunctionSource, args: list[Any], keywords: dict[str, Any]
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
        bound = self.in_call_order(source.signature, bound, keywords)
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

    def in_call_order(
        self, signature: inspect.Signature, bound: dict[str, Any], keywords: dict[str, Any]
    ) -> dict[str, Any]:
        """The arguments, evaluated as the call has them: those by position first."""
        called = {name: value for name, value in bound.items() if name not in keywords}
        return self.in_order({**called, **{name: bound[name] for name in keywords}}, signature.parameters)

    def default(self, node: ast.AST, source: FunctionSource, name: str) -> Any:
        """A parameter's default as it is now, noted as any captured value."""
        function = source.function
        for attribute in ("__defaults__", "__kwdefaults__"):
            if getattr(function, attribute):
                self.program.capture(function, attribute, getattr(function, attribute))
        return self.lift(node, inspect.signature(function).parameters[name].default)

    def construct(self, node: ast.Call, kind: type, args: list[Any], keywords: dict[str, Any]) -> Aggregate:
        """A named tuple or dataclass from its fields."""
        names = field_names(kind)
        if hasattr(kind, "__post_init__") or not is_plain(kind):
            advice = "a kernel runs no __init__, __new__ or __post_init__; use a tuple, or a plain dataclass"
            self.source.fail(node, f"a {kind.__name__} can't be made here", advice)
        try:
            bound = inspect.signature(kind).bind(*args, **keywords)
        except TypeError as error:
            self.source.fail(node, f"{kind.__name__}(): {error}")
        given = self.in_call_order(bound.signature, bound.arguments, keywords)
        defaults = bound.signature.parameters
        items = []
        wanted = field_annotations(kind)
        for name in names:
            if name not in given and not _has_default(kind, defaults, name):
                what = f"{name!r} of {kind.__name__} is made by Python, which a kernel can't run"
                self.source.fail(node, what, f"give it a value: {name}=...")
            value = given[name] if name in given else self.lift(node, defaults[name].default)
            items.append(self.as_annotated(node, wanted.get(name), f"{name!r} of {kind.__name__}", value))
        return Aggregate(kind, names, tuple(items))

    def annotated(self, node: ast.AST, source: FunctionSource, name: str, value: Expr) -> Expr:
        """The argument as the function's annotation wants it."""
        wanted = self.typed(node, source.annotation, name)
        return self.as_annotated(node, wanted, f"{name!r} of {source.name}()", value)

    def as_annotated(self, node: ast.AST, wanted: Any, what: str, value: Any) -> Any:
        """The value as an annotation wants it; one that says nothing to this layer is left alone."""
        if isinstance(value, Static) or getattr(value, "type", self) is None:
            return value
        direction = declared(wanted)
        wanted = wanted if direction is None else direction.inner
        if isinstance(wanted, type) and is_structure(wanted):
            if not isinstance(value, Aggregate) or not issubclass(value.kind, wanted):
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
        element = _element_type(wanted)
        if element is not None:
            if self.is_array(value) or is_aggregate(value):
                hint = "index it: v[i]" if self.is_array(value) else "pass one of its items"
                self.source.fail(node, f"{what} is a number, got {self.describe(value)}", hint)
            kind = self.number(node, value).type.dtype.kind
            if _KINDS.index(kind.replace("u", "i")) > _KINDS.index(element.kind.replace("u", "i")):
                said = getattr(wanted, "__name__", wanted)
                advice = f"convert it: {said}(x)" if kind != "c" else "take its .real, .imag or abs()"
                self.source.fail(node, f"{what} is annotated {said}, got {self.describe(value)}", advice)
            return self.coerce(node, value, ScalarType(element, _is_weak(wanted)))
        return value


def _has_default(kind: type, parameters: Any, name: str) -> bool:
    """Whether a field's default is a value that stands in the class, and nothing that Python makes anew."""
    if dataclasses.is_dataclass(kind):
        field = next(f for f in dataclasses.fields(kind) if f.name == name)
        return field.init and field.default_factory is dataclasses.MISSING
    return name in parameters


def _element_type(wanted: Any) -> DType | None:
    """The number's type that an annotation says, if any: a dtype, NumPy's scalar types, Python's numbers."""
    number = any(wanted is kind for kind in (bool, int, float, complex))
    return asdtype(wanted) if number else named_dtype(wanted)


def _is_weak(function: Any) -> bool:
    """Python's own int, float and complex; by identity, since NumPy's dtypes equal Python's types of
    numbers."""
    return any(function is kind for kind in (int, float, complex))
