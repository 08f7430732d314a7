"""Aggregates during type inference: their fields, special methods, and several values that a function returns."""

from __future__ import annotations

import ast
import functools
import inspect
import types as python_types
from typing import Any

from ..errors import with_article
from . import ir
from .aggregates import Aggregate, UnreadableField, as_tuple, is_aggregate, is_records, transform, with_origins
from .infer_generators import Draw
from .infer_invoke import invoke
from .infer_scope import Scope
from .infer_temporaries import (
    assign_temporary,
    build_result,
    evaluate_in_order,
    expand_result,
    result_item,
    select_part,
)
from .infer_values import BoundFunction, BoundReplace, describe
from .promotion import SWAPPED_COMPARISON, unary


def load_aggregate(scope: Scope, where: ast.AST, name: str, structure: Any) -> Any:
    """The aggregate whose leaves are the variables at their paths."""

    def leaf(path: str, value: Any) -> Any:
        if isinstance(value, ir.Static):
            return scope.from_python(where, value.value)
        return ir.Local(scope.loc(where), scope.types[path], path)

    return with_origins(transform(name, structure, leaf), path=name)


def user_method(scope: Scope, value: Any, name: str) -> Any:
    """The method that the user wrote in the class of `value`, else None. Those of tuples, and those that Python
    generates for dataclasses, do what the language does."""
    returned = isinstance(value, ir.Invoke) and isinstance(value.type, ir.TupleType)
    structure = scope.instances.results[value.function] if returned else value
    if not isinstance(structure, Aggregate) or is_records(structure):
        return None
    method = inspect.getattr_static(structure.kind, name, None)
    builtin = isinstance(method, python_types.WrapperDescriptorType)
    generated = getattr(getattr(method, "__code__", None), "co_filename", None) == "<string>"
    return None if builtin or generated else method


def call_special_method(scope: Scope, where: ast.AST, owner: Any, name: str, *args: Any) -> Any:
    """`owner.name(*args)` if the user wrote that method, else None."""
    method, owner = user_method(scope, owner, name), expand_result(scope, owner)
    if method is None:
        return None
    if not hasattr(method, "__pyarray_func__"):
        scope.fail(where, f"{name!r} is a plain method of {owner.kind.__name__}", "decorate it with @pa.func")
    return invoke(scope, where, method.__pyarray_func__, [owner, *args], {})


def binary_method(scope: Scope, where: ast.AST, name: str, reflected: str, left: Any, right: Any) -> Any:
    """An operator by a user's method of one of the operands, else None. As in Python the left one goes first,
    unless the right one's class derives from it and overrides the method."""
    left, right = expand_result(scope, left), expand_result(scope, right)
    candidates = [(left, name, right), (right, reflected, left)]
    if isinstance(left, Aggregate) and isinstance(right, Aggregate):
        derived = right.kind is not left.kind and issubclass(right.kind, left.kind)
        other = user_method(scope, right, reflected)
        if derived and other is not None and other is not user_method(scope, left, reflected):
            candidates.reverse()
        elif right.kind is left.kind and reflected.startswith("__r"):
            candidates.pop()
    for owner, method, other in candidates:
        if user_method(scope, owner, method) is None:
            continue
        if owner is right:
            operands = evaluate_in_order(scope, {"left": left, "right": right}, ("right", "left"))
            owner, other = operands["right"], operands["left"]
        return call_special_method(scope, where, owner, method, other)
    return None


def comparison_method(scope: Scope, where: ast.AST, name: str, left: Any, right: Any) -> Any:
    """A comparison by a user's method of one of the operands, else None."""
    left, swapped = expand_result(scope, left), SWAPPED_COMPARISON.get(name, name)
    if isinstance(left, Aggregate) and _inherits(left, name) and name in SWAPPED_COMPARISON:
        return binary_method(scope, where, f"__{name}__", f"__{swapped}__", left, right)  # a > b is b < a
    if isinstance(left, Aggregate) and user_method(scope, left, f"__{name}__") is None:
        if name != "ne" or user_method(scope, left, "__eq__") is None:
            return None
        equal = scope.truth(where, call_special_method(scope, where, left, "__eq__", right))
        return scope.apply(where, unary, scope.loc(where), "invert", equal)
    return binary_method(scope, where, f"__{name}__", f"__{swapped}__", left, right)


def _inherits(value: Aggregate, name: str) -> bool:
    """Whether the class has the comparison from `object`, which leaves it to the other operand."""
    return inspect.getattr_static(value.kind, f"__{name}__") is inspect.getattr_static(object, f"__{name}__")


def refuse_comparison(scope: Scope, where: ast.AST, name: str, left: Any, right: Any) -> None:
    """Says of a tuple or an object what to write instead."""
    found = next((x for x in (left, right) if is_aggregate(x)), None)
    if found is not None:
        method = f", or define __{name}__ in the class with @pa.func" if isinstance(found, Aggregate) else ""
        what = f"a kernel compares no tuples or objects, got {describe(left)} and {describe(right)}"
        scope.fail(where, what, f"compare their items or fields{method}")


def truth(scope: Scope, where: ast.AST, value: Any) -> ir.Expr:
    """Whether a condition holds; an object says it by its __bool__."""
    result = call_special_method(scope, where, value, "__bool__")
    if result is None and is_aggregate(value):
        method = ", or define __bool__ in the class with @pa.func" if isinstance(value, Aggregate) else ""
        what = f"a condition is a number, got {describe(value)}"
        scope.fail(where, what, f"test one of its items or fields{method}")
    return scope.truth(where, value if result is None else result)


def unpack(scope: Scope, where: ast.AST, value: Any) -> tuple[Any, ...] | None:
    """The items of a value that Python can unpack, None for what is no tuple."""
    if user_method(scope, value, "__iter__") is not None:
        what = f"{value.kind.__name__} has an __iter__ of its own, which a kernel can't run"
        scope.fail(where, what, "take its fields by name")
    return as_tuple(value)


def take_part(scope: Scope, where: ast.AST, aggregate: Any, chosen: Any) -> Any:
    """An item or field of an aggregate, which is evaluated as a whole."""
    part = select_part(scope, scope.loc(where), aggregate, chosen)
    if part is None:
        what = f"the other parts of {describe(aggregate)} would not be evaluated here"
        scope.fail(where, what, "assign it to a variable first, and take the part of that")
    return part


def unpack_result(scope: Scope, value: Any, into: list[ir.Stmt]) -> Any:
    """What a call returned: several values as an aggregate, after an assignment of the call."""
    if not isinstance(getattr(value, "type", None), ir.TupleType):
        return value
    local = assign_temporary(scope, value, into)
    parts = [result_item(local, k) for k in range(len(value.type.items))]
    return build_result(scope, value.function, value.args, parts)


def field(scope: Scope, node: ast.AST, owner: Aggregate, name: str) -> Any:
    """A field of a named tuple, dataclass or object; an attribute of its class is a captured value."""
    hidden = isinstance(inspect.getattr_static(owner.kind, name, None), property)
    if user_method(scope, owner, "__getattribute__") or (hidden and name in owner.names and owner.complete):
        what = f"{name!r} of {with_article(owner.kind.__name__)} is computed by Python, which a kernel can't run"
        scope.fail(node, what, "make it a plain field")
    if name in owner.names:
        value = owner.items[owner.names.index(name)]
        if isinstance(value, ir.Static) and isinstance(value.value, UnreadableField):
            what = f"{name!r} is {value.value.kind.__name__} and no value of the kernel language"
            scope.fail(node, what, "fields are numbers, arrays, tuples, dataclasses, strings or None")
        return take_part(scope, node, owner, value)
    attribute = inspect.getattr_static(owner.kind, name, UnreadableField)
    own = hasattr(attribute, "__pyarray_func__")
    if name in ("_replace", "__replace__") and issubclass(owner.kind, tuple) and not own:
        return ir.Static(BoundReplace(owner))
    if hasattr(attribute, "__pyarray_func__"):
        return ir.Static(BoundFunction(attribute, owner))
    if hasattr(attribute, "__pyarray_draw__"):
        source, counts = attribute.__pyarray_draw__
        return ir.Static(Draw(source, counts, owner))
    if isinstance(attribute, python_types.FunctionType):
        scope.fail(node, f"{name!r} is a plain method of {owner.kind.__name__}", "decorate it with @pa.func")
    if attribute is UnreadableField or not owner.complete:
        what = f"{describe(owner)} has no field {name!r} here"
        fields = f"there are: {', '.join(owner.names)}" if owner.names else ""
        if not owner.complete:
            fields = "the kernel itself reads attributes of objects, and passes those on"
        scope.fail(node, what, fields)
    if isinstance(attribute, (property, functools.cached_property)):
        advice = f"make it a field, or pass its value as a parameter: {name}=..."
        scope.fail(node, f"{name!r} is computed by Python, which a kernel can't run", advice)
    value = getattr(owner.kind, name)
    scope.instances.capture(owner.kind, name, value)
    return scope.from_python(node, value)
