"""Expressions of `infer`: names, attributes. `infer_operate` adds operators, `infer_access` subscripts and
`infer_call` calls, `infer` the statements; each is the layer below's client, in one object per function."""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import types as python_types
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..dtypes import PYTHON_KIND, bool_, int64, named_dtype, uint64
from .aggregates import Aggregate, UnreadableField, is_aggregate, leaves
from .infer_temporaries import Temporaries, has_effect
from .ir import (
    INDEX,
    ArrayType,
    Const,
    Convert,
    Expr,
    Loc,
    Local,
    Range,
    ScalarType,
    Size,
    Slice,
    Static,
    Stride,
    TupleType,
    Type,
)
from .parse import FunctionSource
from .promotion import binary, call, cast, constant, join

if TYPE_CHECKING:
    from .infer import Instances

MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}  # of comparisons, with their operands exchanged
_T = TypeVar("_T")
WHOLE = Range(None, None, None)
_ELSEWHERE = {  # what other kernel languages have
    "tid": "the variable of a parallel loop is the thread: for i in range(v.size)",
    "shared": "there is no shared memory: pass an array for intermediate results, or use pa.RawKernel",
    "syncthreads": "parallel loops run one after the other: end the loop and begin another one",
}
_PASS_IT = "arrays are not captured: pass it as a parameter"
_PASS_LIST = "pass it as an array, pa.asarray(...); numbers that never change may be a tuple, or lst[0]"


@dataclass(frozen=True, eq=False)
class Method:
    """`v.subview`, `v.reshape` or `v.ravel` of an array, or `x.view` of a number, before its call."""

    owner: Expr
    name: str

    def __repr__(self) -> str:
        return self.name


class Expressions(Temporaries):
    """Values of expressions: a node of the tree, a group of values (`record`), or a `Static`.

    `types`, `declared` and `groups` (the structure of variables that are tuples) live on between passes over
    the function; `changed` says that another pass is needed.
    """

    def __init__(
        self,
        program: Instances,
        source: FunctionSource,
        params: dict[str, Any],
        types: dict[str, Type],
        declared: dict[str, ScalarType],
        groups: dict[str, Any],
    ):
        self.program, self.source, self.params = program, source, params
        self.types, self.declared, self.groups = types, declared, groups
        self.changed = False
        self.assigned = {name for name, p in params.items() if not isinstance(p, Static)}
        for name in [n for n in types if n.startswith(".")]:
            del types[name]  # temporaries are numbered anew in each pass
        for name, p in params.items():
            for path, leaf in leaves(name, p):
                if not isinstance(leaf, Static):
                    types.setdefault(path, leaf)
                    self.assigned.add(path)
        self.local_names = source.stored
        self.temporaries = 0

    # ---- helpers

    def loc(self, node: ast.AST | Loc) -> Loc:
        return node if isinstance(node, Loc) else self.source.loc(node)

    def typed(self, where: ast.AST | Loc, function: Callable[..., _T], *args: Any) -> _T:
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
            if is_foreign_array(value):
                return "an array of Python's"
            if isinstance(value.value, python_types.ModuleType):
                return f"the module {value.value.__name__}"
            if (dtype := named_dtype(value.value)) is not None:
                return f"the dtype {dtype}"
            what = "a Python object" if isinstance(value.value, UnreadableField) else "the Python object"
            return f"{what} {value.value!r}"
        if isinstance(value, Aggregate):
            return f"a {value.kind.__name__}"
        if isinstance(value, tuple):
            return f"a tuple of {len(value)}"
        return "nothing" if value.type is None else f"a {value.type}"

    def number(self, where: ast.AST, value: Any) -> Expr:
        if isinstance(getattr(value, "type", None), ScalarType):
            return value
        hint = "index it: v[i]" if self.is_array(value) else advice_for_captured(value)
        if isinstance(getattr(value, "type", None), TupleType):
            hint = "assign it first: a, b = ..."
        elif is_aggregate(value):
            hint = "take one of its items or fields"
        self.source.fail(where, f"expected a number, got {self.describe(value)}", hint)

    def integer(self, where: ast.AST, value: Any, what: str, saturating: bool = False) -> Expr:
        """An int64. A uint64 from 2**63 on wraps, which makes a negative of it, or saturates."""
        value = self.number(where, value)
        if value.type.dtype.kind not in "iu":
            self.source.fail(
                where, f"{what} must be an integer, got {self.describe(value)}", "convert it with int(...)"
            )
        if saturating and value.type.dtype is uint64 and not isinstance(value, Const):
            return Convert(value.loc, INDEX, value, "saturate")
        return self.typed(where, cast, value, int64, True)

    def truth(self, where: ast.AST, value: Any) -> Expr:
        return cast(self.number(where, value), bool_)

    def array(self, node: ast.expr) -> Expr:
        value = self.value(node)
        if not self.is_array(value):
            hint = advice_for_captured(value)
            self.source.fail(node, f"expected an array, got {self.describe(value)}", hint)
        return value

    # ---- variables

    def set_type(self, where: ast.AST, name: str, new: Type) -> Type:
        """Join `new` into the variable's type."""
        old = self.types.get(name)
        try:
            wanted = self.declared.get(name)
            if wanted is not None and not isinstance(new, ScalarType):
                join_types(wanted, new)
            joined = wanted or (new if old is None else join_types(old, new))
        except TypeError as error:
            what = "this function" if name == "return" else repr(name)
            verb = "returns" if name == "return" else "is"
            detail = f": {error}" if isinstance(new, ScalarType) and isinstance(old, ScalarType) else ""
            self.source.fail(where, f"{what} {verb} a {old} and here a {new}{detail}", "use another name")
        if joined != old:
            self.types[name] = joined
            self.changed = True
        return joined

    def coerce(self, where: ast.AST, value: Expr, kind: Type) -> Expr:
        """`value` as a variable of type `kind` holds it."""
        if isinstance(kind, ScalarType):
            if value.type.dtype.kind == "c" and kind.dtype.kind not in "cb":
                self.source.fail(
                    where, f"a {value.type} can't become a {kind}", "take its .real, .imag or abs()"
                )
            return self.typed(where, cast, value, kind.dtype, kind.weak)
        assert isinstance(kind, ArrayType)
        return value if value.type == kind else Slice(value.loc, kind, value, (WHOLE,) * kind.ndim)

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
        elif isinstance(value, enum.Enum) and isinstance(value, (int, float)):
            value = value.value
        if type(value) in PYTHON_KIND or isinstance(value, np.generic):
            return self.typed(node, constant, self.loc(node), value)
        if type(value) is tuple:
            return tuple(self.lift(node, item) for item in value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            items = tuple(self.lift(node, item) for item in value)
            return Aggregate(type(value), tuple(value._fields), items)  # pyright: ignore
        return Static(value)

    def eval_Constant(self, node: ast.Constant) -> Any:
        return self.lift(node, node.value)

    def eval_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.value(item) for item in node.elts)

    # ---- names and attributes

    def eval_Name(self, node: ast.Name) -> Any:
        name = node.id
        if name in self.types and (name in self.local_names or name in self.params):
            if name not in self.assigned:
                advice = "give it a value before the loop or in both branches"
                self.source.fail(node, f"{name!r} may be read before it is assigned", advice)
            return Local(self.loc(node), self.types[name], name)
        if name in self.params:
            return self.lift(node, self.params[name].value)
        if name in self.local_names:
            self.source.fail(node, f"{name!r} is read before it is assigned")
        return self.lift(node, self.captured(node, name))

    def captured(self, node: ast.AST, name: str) -> Any:
        """What the name means in Python, now; noted, so that a launch can see when it has become something
        else."""
        function = self.source.function
        code = function.__code__
        if name in code.co_freevars and function.__closure__ is not None:
            cell = function.__closure__[code.co_freevars.index(name)]
            try:
                value = cell.cell_contents
            except ValueError:
                self.source.fail(node, f"{name!r} has no value yet")
            self.program.capture(cell, name, value)
            return value
        if name in function.__globals__:
            self.program.capture(function.__globals__, name, function.__globals__[name])
            return function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        self.source.fail(node, f"{name!r} is not defined")

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(node, self.value(node.value))

    def attribute(self, node: ast.Attribute, owner: Any) -> Any:
        if self.is_array(owner):
            return self.array_attribute(node, owner)
        if isinstance(owner, Static):
            try:
                value = getattr(owner.value, node.attr)
            except AttributeError:
                here = getattr(owner.value, "__name__", "") == "pyarray"
                advice = _ELSEWHERE.get(node.attr, "") if here else ""
                self.source.fail(node, f"{self.describe(owner)} has no attribute {node.attr!r}", advice)
            module = owner.value.__name__ if isinstance(owner.value, python_types.ModuleType) else ""
            known = module.partition(".")[0] in ("math", "cmath", "numpy", "pyarray")
            if not known and named_dtype(owner.value) is None:  # those are constants for good
                self.program.capture(owner.value, node.attr, value)
            return self.lift(node, value)
        if not is_aggregate(owner) and owner.type is not None:
            if node.attr == "dtype":
                return Static(owner.type.dtype.numpy)
            if node.attr in ("real", "imag"):
                return self.typed(node, call, self.loc(node), node.attr, [owner])
            if node.attr == "view" and isinstance(owner.type, ScalarType) and not owner.type.weak:
                return Static(Method(owner, "view"))
        self.source.fail(node, f"{self.describe(owner)} has no attribute {node.attr!r}")

    def array_attribute(self, node: ast.Attribute, array: Expr) -> Any:
        loc, kind = self.loc(node), array.type
        if node.attr in ("shape", "strides"):
            first, again = self.kept(array) if has_effect(array) else (array, array)
            if node.attr == "strides" and kind.over is not None:
                advice = "take those of the array that it is a reshape of"
                self.source.fail(node, "a reshape of a strided array may have no strides", advice)
            made = Size if node.attr == "shape" else Stride
            return tuple(made(loc, INDEX, again if axis else first, axis) for axis in range(kind.ndim))
        if node.attr == "size":

            def total(array: Expr) -> Expr:
                sizes: list[Expr] = [Size(loc, INDEX, array, axis) for axis in range(kind.ndim)]
                return functools.reduce(lambda a, b: binary(loc, "mul", a, b), sizes or [constant(loc, 1)])

            return self.evaluated([array], total)
        if node.attr == "T":
            turned = ArrayType(kind.dtype, kind.ndim, True, over=kind.over)
            whole = (WHOLE,) * kind.ndim
            return array if kind.ndim < 2 else Slice(loc, turned, array, whole, turned=True)
        if node.attr in ("ndim", "itemsize"):
            found = kind.ndim if node.attr == "ndim" else kind.dtype.itemsize
            return self.evaluated([array], lambda _: constant(loc, found))
        if node.attr == "dtype":
            return Static(kind.dtype.numpy)
        if node.attr in ("subview", "reshape", "ravel"):
            return Static(Method(array, node.attr))
        known = "there are shape, strides, size, ndim, itemsize, dtype, T, reshape, ravel, subview"
        self.source.fail(node, f"an array in a kernel has no attribute {node.attr!r}", known)


def join_types(a: Type, b: Type) -> Type:
    """Type of a variable that is both. Raises `TypeError` where there is none."""
    if a == b:
        return a
    if isinstance(a, ScalarType) and isinstance(b, ScalarType):
        return join(a, b)
    if isinstance(a, ArrayType) and isinstance(b, ArrayType) and replace(a, strided=b.strided) == b:
        return replace(a, strided=a.strided or b.strided)
    raise TypeError(f"a {a} and a {b} have no common type")


def is_trackable(value: Any) -> bool:
    """Whether a launch should look if the name still stands for this: not for what nobody rebinds."""
    return not isinstance(value, python_types.ModuleType) and not hasattr(value, "__pyarray_builtin__")


def advice_for_captured(value: Any) -> str:
    """How an array or a list that was taken from Python's names gets into a kernel; "" for other values."""
    if isinstance(value, Static) and type(value.value) is list:
        return _PASS_LIST
    return _PASS_IT if is_foreign_array(value) else ""


def is_foreign_array(value: Any) -> bool:
    """Whether it is an array that was taken from Python's names."""
    found = value.value if isinstance(value, Static) else None
    return not isinstance(found, type) and hasattr(found, "__dlpack__")
