"""Infers names, attributes and literals."""

from __future__ import annotations

import ast
import builtins
import functools
import types as python_types
from typing import Any

from ..dtypes import named_dtype
from . import ir
from .aggregates import Aggregate, is_aggregate, is_records
from .infer_aggregates import field, load_aggregate
from .infer_local_arrays import METHODS
from .infer_local_arrays import attribute as local_attribute
from .infer_local_functions import local_function
from .infer_records import field_of_record, records_attribute
from .infer_scope import Scope, rule
from .infer_temporaries import expand_result, has_side_effect, let_bind, with_let_bound
from .infer_tiles import tile_attribute
from .infer_values import Method, constant_shape, describe, is_array, is_local_array
from .promotion import binary, call, constant
from .tile_values import is_tile

_OTHER_LANGUAGES = {  # names that kernel languages of others have
    "tid": "the variable of a parallel loop is the thread: for i in range(v.size)",
    "shared": "there is no shared memory: pass an array for intermediate results, or use pa.RawKernel",
    "syncthreads": "parallel loops run one after the other: end the loop and begin another one",
}
_OF_NUMBERS = {  # methods of numbers of Python and NumPy, and what does the same
    "conjugate": "write pa.conj(x)",
    "conj": "write pa.conj(x)",
    "astype": "write the dtype as a function: pa.float32(x)",
    "item": "leave it out: it is a number",
    "copy": "leave it out: it is a number",
    "round": "write round(x)",
    "is_integer": "write x == pa.floor(x)",
}


@rule(ast.Constant)
def _constant(scope: Scope, node: ast.Constant) -> Any:
    return scope.from_python(node, node.value)


@rule(ast.List)
def _list(scope: Scope, node: ast.List) -> Any:
    what = "a list is not part of the kernel language"
    scope.fail(node, what, "pa.array([x, y, z]) makes an array of it; otherwise use a tuple")


@rule(ast.Tuple)
def _tuple(scope: Scope, node: ast.Tuple) -> Any:
    return tuple(expand_result(scope, scope.infer(item)) for item in node.elts)


@rule(ast.Name)
def _name(scope: Scope, node: ast.Name) -> Any:
    name = node.id
    if name in scope.constants:
        return constant(scope.loc(node), scope.constants[name])
    if name in scope.tile_indices and name in scope.assigned:
        return scope.tile_indices[name]
    if name in scope.functions and name in scope.assigned:
        return local_function(scope, node, scope.functions[name])
    structure = scope.params.get(name, scope.structures.get(name))
    if is_aggregate(structure) and (name in scope.assigned or name in scope.params):
        return load_aggregate(scope, node, name, structure)
    if name in scope.types and (name in scope.source.stored or name in scope.params):
        if name not in scope.assigned:
            advice = "give it a value before the loop or in both branches"
            scope.fail(node, f"{name!r} may be read before it is assigned", advice)
        return ir.Local(scope.loc(node), scope.types[name], name)
    if name in scope.params:
        return scope.from_python(node, scope.params[name].value)
    if name in scope.source.stored:
        scope.fail(node, f"{name!r} is read before it is assigned")
    return scope.from_python(node, _captured(scope, node, name))


def _captured(scope: Scope, node: ast.AST, name: str) -> Any:
    """What the name stands for in Python now; recorded, so that launches see when it is rebound."""
    function = scope.source.function
    code = function.__code__
    if name in code.co_freevars and function.__closure__ is not None:
        cell = function.__closure__[code.co_freevars.index(name)]
        try:
            value = cell.cell_contents
        except ValueError:
            scope.fail(node, f"{name!r} has no value yet")
        scope.instances.capture(cell, name, value)
        return value
    if name in function.__globals__:
        scope.instances.capture(function.__globals__, name, function.__globals__[name])
        return function.__globals__[name]
    if hasattr(builtins, name):
        return getattr(builtins, name)
    scope.fail(node, f"{name!r} is not defined")


@rule(ast.Attribute)
def _attribute(scope: Scope, node: ast.Attribute) -> Any:
    owner = expand_result(scope, scope.infer(node.value))
    if is_records(owner):
        return records_attribute(scope, node, owner)
    if isinstance(owner, Aggregate):
        if owner.place is not None and node.attr in owner.names:
            return field_of_record(scope, node, owner, node.attr)
        return field(scope, node, owner, node.attr)
    if is_tile(owner):
        return tile_attribute(scope, node, owner)
    if is_local_array(owner):
        return local_attribute(scope, node, owner)
    if is_array(owner):
        return _array_attribute(scope, node, owner)
    if isinstance(owner, ir.Static):
        try:
            value = getattr(owner.value, node.attr)
        except AttributeError:
            is_package = getattr(owner.value, "__name__", "") == "pyarray"
            advice = _OTHER_LANGUAGES.get(node.attr, "") if is_package else ""
            scope.fail(node, f"{describe(owner)} has no attribute {node.attr!r}", advice)
        module = owner.value.__name__ if isinstance(owner.value, python_types.ModuleType) else ""
        constant_module = module.partition(".")[0] in ("math", "cmath", "numpy", "pyarray")
        if not constant_module and named_dtype(owner.value) is None:
            scope.instances.capture(owner.value, node.attr, value)
        return scope.from_python(node, value)
    if not is_aggregate(owner) and owner.type is not None:
        if node.attr == "dtype":
            return ir.Static(owner.type.dtype.numpy)
        if node.attr in ("real", "imag"):
            return scope.apply(node, call, scope.loc(node), node.attr, [owner])
        if node.attr == "view" and isinstance(owner.type, ir.ScalarType) and not owner.type.weak:
            return ir.Static(Method(owner, "view"))
    advice = _OF_NUMBERS.get(node.attr, "") if isinstance(getattr(owner, "type", None), ir.ScalarType) else ""
    scope.fail(node, f"{describe(owner)} has no attribute {node.attr!r}", advice)


def _array_attribute(scope: Scope, node: ast.Attribute, array: ir.Expr) -> Any:
    loc, kind = scope.loc(node), array.type
    if node.attr in ("shape", "strides"):
        first, again = let_bind(scope, array) if has_side_effect(array) else (array, array)
        if node.attr == "strides" and kind.reshape_of is not None:
            advice = "take those of the array that it is a reshape of"
            scope.fail(node, "a reshape of a strided array may have no strides", advice)
        extent = ir.Size if node.attr == "shape" else ir.Stride
        found = [extent(loc, ir.INDEX, again if axis else first, axis) for axis in range(kind.ndim)]
        if node.attr == "shape" and kind.sizes and not has_side_effect(array):
            return tuple(x if n is None else constant(loc, n) for x, n in zip(found, kind.sizes, strict=True))
        return tuple(found)
    if node.attr == "size":

        def total(array: ir.Expr) -> ir.Expr:
            sizes: list[ir.Expr] = [ir.Size(loc, ir.INDEX, array, axis) for axis in range(kind.ndim)]
            for axis, n in enumerate(kind.sizes):
                sizes[axis] = sizes[axis] if n is None else constant(loc, n)
            return functools.reduce(lambda a, b: binary(loc, "mul", a, b), sizes or [constant(loc, 1)])

        return with_let_bound(scope, [array], total)
    if node.attr == "T":
        transposed = ir.ArrayType(kind.dtype, kind.ndim, True, (), kind.reshape_of, kind.sizes[::-1])
        full_index = (ir.WHOLE,) * kind.ndim
        return array if kind.ndim < 2 else ir.Slice(loc, transposed, array, full_index, transposed=True)
    if node.attr in ("ndim", "itemsize"):
        value = kind.ndim if node.attr == "ndim" else kind.dtype.itemsize
        return with_let_bound(scope, [array], lambda _: constant(loc, value))
    if node.attr == "dtype":
        return ir.Static(kind.dtype.numpy)
    if node.attr in ("subview", "reshape", "ravel"):
        return ir.Static(Method(array, node.attr))
    if node.attr in METHODS and constant_shape(array) is not None:
        return ir.Static(Method(array, node.attr))
    attributes = "there are shape, strides, size, ndim, itemsize, dtype, T, reshape, ravel, subview"
    scope.fail(node, f"an array in a kernel has no attribute {node.attr!r}", attributes)
