"""Subscripts, slices, sub-views and atomics of `infer`."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from ..dtypes import uint64
from .aggregates import as_tuple
from .infer_names import WHOLE, Method, advice_for_captured
from .infer_operators import Operations
from .ir import (
    INDEX,
    ArrayType,
    Atomic,
    Cast,
    Const,
    Expr,
    Load,
    Local,
    Range,
    Reshape,
    ScalarType,
    Select,
    Size,
    Slice,
    Static,
    SubView,
    TupleType,
)
from .promotion import binary, compare, constant

_ATOMIC_KINDS = {
    "add": "iufc",
    "sub": "iufc",
    "min": "iuf",
    "max": "iuf",
    "exchange": "biuf",
    "cas": "biuf",
}  # others: "biu"


class Accesses(Operations):
    """Adds the ways into arrays to `Operations`."""

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        owner = self.value(node.value)
        if self.own_method(owner, "__getitem__") is not None:
            if any(isinstance(n, ast.Slice) for n in ast.walk(node.slice)):
                self.source.fail(
                    node, "a kernel has no slice objects", "pass the bounds to a method of their own"
                )
            return self.special(node, owner, "__getitem__", self.value(node.slice))
        items = as_tuple(owner)
        returned = isinstance(getattr(owner, "type", None), TupleType)
        if items is not None or returned:
            index = self.number(node.slice, self.value(node.slice))
            if not isinstance(index, Const) or not isinstance(index.value, int):
                self.source.fail(node.slice, "a tuple needs a constant index")
            if items is None:
                return self.returned_item(node.slice, owner, index.value)
            if not -len(items) <= index.value < len(items):
                self.source.fail(
                    node.slice, f"index {index.value} is out of range for a tuple of {len(items)}"
                )
            return self.part(node, owner, items[index.value])
        if isinstance(owner, Static):
            return self.captured_item(node, owner.value)
        if not self.is_array(owner):
            self.source.fail(node, f"{self.describe(owner)} can't be indexed")
        return self.evaluated([owner], lambda array: self.indexed(node, array))

    def indexed(self, node: ast.Subscript, array: Expr) -> Expr:
        parts = self.index_parts(node, array)
        if len(parts) == array.type.ndim and not any(isinstance(p, Range) for p in parts):
            return self.element(node, array, parts)
        return Slice(self.loc(node), _slice_type(array.type, parts), array, parts)

    def captured_item(self, node: ast.Subscript, owner: Any) -> Any:
        """An item of a captured list or dict, by a constant index or key; noted, as any captured value."""
        if type(owner) not in (list, dict):
            hint = advice_for_captured(Static(owner))
            self.source.fail(node, f"{self.describe(Static(owner))} can't be indexed", hint)
        found = self.value(node.slice)
        index = found.value if isinstance(found, (Const, Static)) else None
        if not isinstance(index, (int, str)):
            what = f"a captured {type(owner).__name__} needs a constant index or key"
            self.source.fail(node.slice, what, advice_for_captured(Static(owner)))
        try:
            value = owner[index]
        except (LookupError, TypeError) as error:
            self.source.fail(node.slice, f"no such item: {type(error).__name__}: {error}")
        self.program.capture(owner, index, value)
        return self.lift(node, value)

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
                parts += [WHOLE] * (ndim - count)
            elif isinstance(item, ast.Slice):
                parts.append(self.slice_range(item))
            else:
                index = self.integer(item, self.value(item), "an index")
                parts.append(self.wrapped(item, index, array, len(parts)))
        return (*parts, *[WHOLE] * (ndim - len(parts)))

    def slice_range(self, item: ast.Slice) -> Range:
        given = (item.lower, item.upper, item.step)
        start, stop, step = (
            None if n is None else self.integer(n, self.value(n), "a slice bound", saturating=True)
            for n in given
        )
        if isinstance(step, Const) and step.value == 0:
            self.source.fail(item, "slice step must not be 0")
        return Range(start, stop, None if isinstance(step, Const) and step.value == 1 else step)

    def wrapped(self, node: ast.AST, index: Expr, array: Expr, axis: int) -> Expr:
        """Constant negatives count from the end; run-time ones only with @kernel(wraparound=True)."""
        size = Size(self.loc(node), INDEX, array, axis)
        if isinstance(index, Const):
            return binary(index.loc, "add", size, index) if index.value < 0 else index
        if isinstance(index, Size) and index.axis == axis and _same(index.array, array):
            self.source.fail(
                node, "this index is the size itself, one past the last element", "write size - 1"
            )
        unsigned = isinstance(index, Cast) and index.a.type.dtype is uint64
        if unsigned or not self.program.wraparound:  # no uint64 is negative
            return index
        first, again = self.kept(index)
        negative = compare(index.loc, "lt", first, constant(index.loc, 0))
        return Select(index.loc, INDEX, negative, binary(index.loc, "add", again, size), again)

    # ---- atomics and sub-views: called by name

    def atomic(self, node: ast.Call, op: str, args: list[Any]) -> Expr:
        swaps = op == "cas"
        if len(args) != 3 + swaps or not self.is_array(args[0]):
            advice = f"write pa.atomic_{op}(v, i, {'expected, desired' if swaps else 'x'})"
            what = f"atomic_{op}() takes an array, an index and {'two values' if swaps else 'a value'}"
            self.source.fail(node, what, advice)
        index, dtype = self.items(node, args[1]), args[0].type.dtype
        if index is None:
            index = (args[1],)
        if dtype.kind not in _ATOMIC_KINDS.get(op, "biu"):
            self.source.fail(node, f"atomic_{op}() is not defined for {dtype}")
        if len(index) != args[0].type.ndim:
            self.source.fail(node, f"{len(index)} indices for a {args[0].type}")
        values = [self.coerce(node, self.number(node, x), ScalarType(dtype)) for x in args[2:]]
        desired = values[1] if swaps else None

        def update(array: Expr) -> Expr:
            parts = tuple(
                self.wrapped(node, self.integer(node, i, "an index"), array, k) for k, i in enumerate(index)
            )
            return Atomic(self.loc(node), ScalarType(dtype), op, array, parts, values[0], desired=desired)

        return self.evaluated([args[0]], update)

    def subview(self, node: ast.Call, array: Any, args: list[Any], keywords: dict[Any, Any]) -> Expr:
        names = ["offset", "size"]
        if len(args) > 2 or sorted(keywords) != sorted(names[len(args) :]) or not self.is_array(array):
            advice = "write v.subview(offset, size)"
            self.source.fail(node, "a sub-view needs an array, an offset and a size", advice)
        given = self.in_order({**dict(zip(names, args, strict=False)), **keywords}, names)
        values = [given[n] for n in names]
        if array.type.ndim != 1:
            advice = "index the other axes first: m[i].subview(o, n)"
            self.source.fail(node, f"only a 1-D array has sub-views, this is a {array.type}", advice)
        bounds = [
            self.integer(node, v, what) for v, what in zip(values, ("an offset", "a size"), strict=True)
        ]
        for bound, what in zip(bounds, ("offset", "size"), strict=True):
            if isinstance(bound, Const) and bound.value < 0:
                self.source.fail(node, f"the {what} of a sub-view can't be negative, got {bound.value}")
        return SubView(self.loc(node), array.type, array, bounds[0], bounds[1])

    def reshape(self, node: ast.Call, method: Method, args: list[Any], keywords: dict[str, Any]) -> Expr:
        """`v.reshape(n, m)`, `v.reshape((n, m))` and `v.ravel()`."""
        array, name = method.owner, method.name
        if keywords or (name == "ravel" and args) or (name == "reshape" and not args):
            advice = f"write v.{name}({'n, m' if name == 'reshape' else ''}): elements are in C order"
            self.source.fail(node, f"{name}() takes {'sizes' if name == 'reshape' else 'nothing'}", advice)
        if name == "ravel":
            given: tuple[Any, ...] = (constant(self.loc(node), -1),)
        else:
            group = self.items(node, args[0]) if len(args) == 1 else None
            given = tuple(args) if group is None else group
        sizes = tuple(self.integer(node, n, "a size") for n in given)
        known = [n.value for n in sizes if isinstance(n, Const) and n.value < 0]
        if any(n != -1 for n in known):
            self.source.fail(node, f"a size can't be negative, got {min(known)}")
        if len(known) > 1:
            self.source.fail(node, "only one size can be -1", "it is what the others leave")
        return Reshape(self.loc(node), _reshaped_type(array.type, len(sizes)), array, sizes)


def _reshaped_type(array: ArrayType, ndim: int) -> ArrayType:
    """Contiguous if the array is. The elements of one axis have strides in any shape; of several axes they
    may have none."""
    if not array.strided or array.ndim < 2:
        return replace(array, ndim=ndim)
    return ArrayType(array.dtype, ndim, True, over=array)


def _same(a: Expr, b: Expr) -> bool:
    return isinstance(a, Local) and isinstance(b, Local) and a.name == b.name


def _slice_type(array: ArrayType, parts: tuple[Any, ...]) -> ArrayType:
    """Contiguous if the array is, its leading axes are indexed, at most one range is cut, and the rest is
    whole."""
    kept = [p for p in parts if isinstance(p, Range)]
    lead = next(k for k, p in enumerate(parts) if isinstance(p, Range))
    whole = all(p == WHOLE for p in parts[lead + 1 :])
    strided = array.strided or not whole or kept[0].step is not None
    return ArrayType(array.dtype, len(kept), strided, over=array.over)
