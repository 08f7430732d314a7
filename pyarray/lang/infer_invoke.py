"""Infers calls of `@func` functions and of classes of aggregates: binds arguments and casts them to annotations."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from typing import Any

from ..annotations import (
    ArrayAnnotation,
    declared,
    field_annotations,
    field_names,
    is_plain,
    is_structure,
    without_none,
)  # fmt: skip
from ..dtypes import DType, asdtype, named_dtype
from ..errors import CompileError, with_article
from ..structured_dtypes import StructuredAnnotation
from . import ir
from .aggregates import Aggregate, is_aggregate, is_records, leaves, transform
from .infer_counters import counting_call, take_counters
from .infer_elements import convert
from .infer_scope import Scope
from .infer_temporaries import evaluate_in_order, expand_result
from .infer_values import describe, is_array, is_local_array
from .parse import FunctionSource, is_internal

_KINDS = "bifc"  # each kind holds the values of those before it


def invoke(scope: Scope, node: ast.AST, source: FunctionSource, args: list[Any], keywords: dict[str, Any]) -> Any:
    if any(active is source for active in scope.instances.active):
        scope.fail(node, f"{source.name!r} calls itself", "write a loop: GPUs have no stack for recursion")
    try:
        bound = source.signature.bind(*args, **keywords).arguments
    except TypeError as error:
        scope.fail(node, f"{_shown_name(scope, node, source)}(): {error}")
    params: list[tuple[str, Any]] = []
    values: list[ir.Expr] = []
    bound, counters = take_counters(scope, node, bound)
    bound = _arguments_in_call_order(scope, source.signature, bound, keywords)
    for name in source.signature.parameters:
        value = bound[name] if name in bound else default_of(scope, node, source, name)
        value = argument_of(scope, node, source, name, value)
        for _, leaf in leaves(name, value):
            if not isinstance(leaf, ir.Static):
                if isinstance(leaf.type, ir.TileType):
                    advice = "define it outside of the kernel, with @pa.func"
                    scope.fail(node, f"{source.name!r} takes no tiles: it is defined in a kernel", advice)
                if not isinstance(leaf.type, (ir.ScalarType, ir.ArrayType, ir.LocalArrayType)):
                    advice = "assign what a call returns first" if leaf.type is not None else ""
                    scope.fail(node, f"{name!r} of {source.name}(): expected a value, got {describe(leaf)}", advice)
                values.append(leaf)
        types = transform(name, value, lambda _, x: x if isinstance(x, ir.Static) else x.type)
        params.append((name, types))
    callee = _instance(scope, node, source, tuple(params))
    # a parameter that the function assigns may be wider than the argument
    passed = [convert(scope, node, value, kind) for value, (_, kind) in zip(values, callee.params, strict=True)]
    if callee.symbol in scope.instances.counters:
        return counting_call(scope, node, callee, passed, counters)
    return ir.Invoke(scope.loc(node), callee.result, callee.symbol, tuple(passed))


def _instance(scope: Scope, node: ast.AST, source: FunctionSource, params: tuple[tuple[str, Any], ...]) -> ir.Function:
    """The function for these types. What a function of the library refuses is said of the user's call."""
    try:
        return scope.instances.function(source, params)
    except CompileError as error:
        if error._said is None or not is_internal(source.path) or is_internal(scope.source.path):
            raise
        what, instead = error._said
        scope.fail(node, f"{_shown_name(scope, node, source)}(): {what}", instead)


def _shown_name(scope: Scope, node: ast.AST, source: FunctionSource) -> str:
    """The function's name; of one of the library's what the user's call has, which Python's and NumPy's have, too."""
    internal = is_internal(source.path) and not is_internal(scope.source.path)
    return ast.unparse(node.func) if internal and isinstance(node, ast.Call) else source.name


def _arguments_in_call_order(
    scope: Scope, signature: inspect.Signature, bound: dict[str, Any], keywords: dict[str, Any]
) -> dict[str, Any]:
    """The arguments, evaluated in the order of the call: positional ones first."""
    names = [*(name for name in bound if name not in keywords), *keywords]
    called = {name: expand_result(scope, bound[name]) for name in names}
    return evaluate_in_order(scope, called, signature.parameters)


def default_of(scope: Scope, node: ast.AST, source: FunctionSource, name: str) -> Any:
    """A parameter's default as it is now: a captured value."""
    function = source.function
    if source.is_nested:
        return scope.from_python(node, source.signature.parameters[name].default)
    for attribute in ("__defaults__", "__kwdefaults__"):
        if getattr(function, attribute):
            scope.instances.capture(function, attribute, getattr(function, attribute))
    return scope.from_python(node, inspect.signature(function).parameters[name].default)


def construct(scope: Scope, node: ast.Call, kind: type, args: list[Any], keywords: dict[str, Any]) -> Aggregate:
    """A named tuple or dataclass from its fields."""
    names = field_names(kind)
    if hasattr(kind, "__post_init__") or not is_plain(kind):
        advice = "a kernel runs no __init__, __new__ or __post_init__; use a tuple, or a plain dataclass"
        scope.fail(node, f"{with_article(kind.__name__)} can't be made here", advice)
    try:
        bound = inspect.signature(kind).bind(*args, **keywords)
    except TypeError as error:
        scope.fail(node, f"{kind.__name__}(): {error}")
    values = _arguments_in_call_order(scope, bound.signature, bound.arguments, keywords)
    defaults = bound.signature.parameters
    items = []
    annotations = field_annotations(kind)
    for name in names:
        if name not in values and not _has_default(kind, defaults, name):
            what = f"{name!r} of {kind.__name__} is made by Python, which a kernel can't run"
            scope.fail(node, what, f"give it a value: {name}=...")
        value = values[name] if name in values else scope.from_python(node, defaults[name].default)
        items.append(coerce_to_annotation(scope, node, annotations.get(name), f"{name!r} of {kind.__name__}", value))
    return Aggregate(kind, names, tuple(items))


def argument_of(scope: Scope, node: ast.AST, source: FunctionSource, name: str, value: ir.Expr) -> ir.Expr:
    """The argument as the type that the parameter's annotation names."""
    annotation = scope.apply(node, source.annotation, name)
    return coerce_to_annotation(scope, node, annotation, f"{name!r} of {source.name}()", value)


def coerce_to_annotation(scope: Scope, node: ast.AST, annotation: Any, what: str, value: Any) -> Any:
    """The value as the type that an annotation names; other annotations change nothing."""
    if isinstance(value, ir.Static) or getattr(value, "type", value) is None:
        return value
    annotation = without_none(annotation)
    direction = declared(annotation)
    annotation = annotation if direction is None else direction.inner
    if isinstance(annotation, type) and is_structure(annotation):
        if not isinstance(value, Aggregate) or not issubclass(value.kind, annotation):
            scope.fail(node, f"{what} is {with_article(annotation.__name__)}, got {describe(value)}")
        return value
    if isinstance(annotation, StructuredAnnotation):
        found = value.kind.__pyarray_layout__ if is_records(value) else None
        if found is not annotation.layout:
            scope.fail(node, f"{what} is annotated {annotation!r}, got {describe(value)}")
        return value
    if isinstance(annotation, ArrayAnnotation):
        kind: Any = getattr(value, "type", None)
        fits = (
            (is_array(value) or (is_local_array(value) and not annotation.view))
            and annotation.ndim in (None, kind.ndim)
            and annotation.dtype in (None, kind.dtype)
        )
        if not fits or (annotation.view and kind.strided) or not _has_sizes(annotation, value):
            other = is_local_array(value) and not annotation.view and annotation.dtype not in (None, kind.dtype)
            advice = f"convert it: p.astype(pa.{annotation.dtype})" if other else ""
            scope.fail(node, f"{what} is annotated {annotation!r}, got {describe(value)}", advice)
        return value
    element = _element_type(annotation)
    if element is not None:
        if is_array(value) or is_local_array(value) or is_aggregate(value):
            advice = "pass one of its items" if is_aggregate(value) else "index it: v[i]"
            scope.fail(node, f"{what} is a number, got {describe(value)}", advice)
        kind = scope.number(node, value).type.dtype.kind
        if _KINDS.index(kind.replace("u", "i")) > _KINDS.index(element.kind.replace("u", "i")):
            name = getattr(annotation, "__name__", annotation)
            advice = f"convert it: {name}(x)" if kind != "c" else "take its .real, .imag or abs()"
            scope.fail(node, f"{what} is annotated {name}, got {describe(value)}", advice)
        return scope.coerce(node, value, ir.ScalarType(element, is_weak(annotation)))
    return value


def _has_sizes(annotation: ArrayAnnotation, value: Any) -> bool:
    """Whether an array is known to have the sizes that its annotation declares."""
    if annotation.sizes is None:
        return True
    found = value.type.shape if is_local_array(value) else value.type.sizes
    pairs = zip(annotation.sizes, found, strict=False)
    return bool(found) and all(n is None or n == m for n, m in pairs)


def _has_default(kind: type, parameters: Any, name: str) -> bool:
    """Whether a field's default is a value in the class, not one that Python makes anew."""
    if dataclasses.is_dataclass(kind):
        field = next(f for f in dataclasses.fields(kind) if f.name == name)
        return field.init and field.default_factory is dataclasses.MISSING
    return name in parameters


def _element_type(annotation: Any) -> DType | None:
    """The dtype that an annotation names: a dtype, a scalar type of NumPy, a number type of Python; else None."""
    number = any(annotation is kind for kind in (bool, int, float, complex))
    return asdtype(annotation) if number else named_dtype(annotation)


def is_weak(kind: Any) -> bool:
    """Python's int, float and complex; by identity, since NumPy's dtypes equal them."""
    return any(kind is weak for weak in (int, float, complex))
