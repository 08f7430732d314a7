"""Values during type inference: a node of the typed tree, an aggregate of values, or a `Static` (a Python object
that is known when the kernel is compiled). What they are called in messages, and the types that they share."""

from __future__ import annotations

import types as python_types
from dataclasses import dataclass, replace
from typing import Any

from ..dtypes import named_dtype
from ..errors import with_article
from . import ir
from .aggregates import Aggregate, UnreadableField, is_records
from .promotion import join

_PASS_IT = "arrays are not captured: pass it as a parameter"
_PASS_LIST = "pass it as an array, pa.asarray(...); numbers that never change may be a tuple, or lst[0]"


@dataclass(frozen=True, eq=False)
class Method:
    """`v.subview`, `v.reshape` or `v.ravel` of an array, `x.view` of a number, or a function of local arrays as
    their method, before its call."""

    owner: ir.Expr
    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class BoundFunction:
    """A `@pa.func` of a class, before its call on an object."""

    function: Any
    owner: Aggregate


@dataclass(frozen=True, eq=False)
class BoundReplace:
    """`_replace` of a named tuple, before its call."""

    owner: Aggregate

    def __repr__(self) -> str:
        return "_replace"


def is_array(value: Any) -> bool:
    return isinstance(getattr(value, "type", None), ir.ArrayType)


def is_local_array(value: Any) -> bool:
    return isinstance(getattr(value, "type", None), ir.LocalArrayType) and not isinstance(value.type, ir.TileType)


def constant_shape(value: Any) -> tuple[int, ...] | None:
    """The shape of a local array, or of a view whose sizes are all constant; None for other values."""
    kind = getattr(value, "type", None)
    if isinstance(kind, ir.LocalArrayType):
        return None if isinstance(kind, ir.TileType) else kind.shape
    if isinstance(kind, ir.ArrayType) and kind.sizes and None not in kind.sizes:
        return kind.sizes  # type: ignore[return-value]
    return None


def describe(value: Any) -> str:
    if isinstance(value, ir.Static):
        if _is_foreign_array(value):
            return "an array of Python's"
        if isinstance(value.value, python_types.ModuleType):
            return f"the module {value.value.__name__}"
        if (dtype := named_dtype(value.value)) is not None:
            return f"the dtype {dtype}"
        what = "a Python object" if isinstance(value.value, UnreadableField) else "the Python object"
        return f"{what} {value.value!r}"
    if isinstance(value, Aggregate):
        if is_records(value):
            return f"an array of {value.kind.__pyarray_layout__}"  # type: ignore[attr-defined]
        return f"{with_article(value.kind.__name__)}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return "nothing" if value.type is None else f"{with_article(value.type)}"


def join_types(a: ir.Type, b: ir.Type) -> ir.Type:
    """Type of a variable that is both. Raises `TypeError` where there is none."""
    if a == b:
        return a
    if isinstance(a, ir.ScalarType) and isinstance(b, ir.ScalarType):
        return join(a, b)
    if (
        isinstance(a, ir.ArrayType)
        and isinstance(b, ir.ArrayType)
        and replace(a, strided=b.strided, sizes=b.sizes) == b
    ):
        return replace(a, strided=a.strided or b.strided, sizes=a.sizes if a.sizes == b.sizes else ())
    if isinstance(a, ir.TileType) and isinstance(b, ir.TileType) and replace(a, dtype=b.dtype) == b:
        return replace(a, dtype=join(ir.ScalarType(a.dtype), ir.ScalarType(b.dtype)).dtype)
    if isinstance(a, ir.TileType) or isinstance(b, ir.TileType):
        raise TypeError(f"a {a} and a {b} have no common type")
    if isinstance(a, ir.LocalArrayType) or isinstance(b, ir.LocalArrayType):  # the variable has copies of views
        shapes = [x.shape if isinstance(x, ir.LocalArrayType) else getattr(x, "sizes", ()) for x in (a, b)]
        if shapes[0] and shapes[0] == shapes[1] and not isinstance(a, ir.TupleType) and not isinstance(b, ir.TupleType):
            return ir.LocalArrayType(join(ir.ScalarType(a.dtype), ir.ScalarType(b.dtype)).dtype, shapes[0])
    raise TypeError(f"{with_article(a)} and {with_article(b)} have no common type")


def advice_for_captured(value: Any) -> str:
    """Advice for an error message on a captured array or list: how to pass it; "" for other values."""
    if isinstance(value, ir.Static) and type(value.value) is list:
        return _PASS_LIST
    return _PASS_IT if _is_foreign_array(value) else ""


def _is_foreign_array(value: Any) -> bool:
    """Whether it is a captured array."""
    captured = value.value if isinstance(value, ir.Static) else None
    return not isinstance(captured, type) and hasattr(captured, "__dlpack__")
