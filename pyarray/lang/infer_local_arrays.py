"""Infers local arrays: how they are made, indexed, sliced and assigned, and their attributes.

Shapes, slices and dtypes are known when the kernel is compiled; only indices of elements may be computed at run
time. A slice is a copy that remembers whose memory it would share in Python (`ir.Shared`)."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ..dtypes import DType, asdtype, float64, uint64
from . import ir
from .aggregates import as_tuple
from .infer_elements import (
    Index,
    bind,
    build,
    convert,
    element,
    elementwise,
    generate,
    indices,
    local_type,
    memory_of,
)
from .infer_scope import Scope
from .infer_temporaries import has_side_effect, let_bind, with_let_bound
from .infer_values import Method, constant_shape, describe, is_array
from .promotion import binary, cast, compare, constant, join

CREATION = ("array", "asarray", "empty", "zeros", "ones", "full", "eye", "identity")
_NEW_AXIS = "new"


# ---- making them


def create(scope: Scope, node: ast.Call, name: str) -> ir.Expr:
    """`pa.array(...)`, `pa.zeros(...)` and the like, from the call itself: lists are no values elsewhere."""
    dtype, args = _dtype_argument(scope, node, name)
    if name in ("array", "asarray"):
        if len(args) != 1:
            scope.fail(node, f"{name}() takes the elements", "write pa.array([x, y, z])")
        value = _nested(scope, args[0])
        shape = constant_shape(value)
        if name == "asarray" and shape is not None:  # no copy, where none is needed
            return convert(scope, node, value, ir.LocalArrayType(dtype or value.type.dtype, shape))
        return _array(scope, node, value, dtype)
    if name == "full":
        if len(args) != 2:
            scope.fail(node, "full() takes a shape and a value", "write pa.full(3, x)")
        value = scope.number(args[1], scope.infer(args[1]))
    elif len(args) != 1:
        scope.fail(node, f"{name}() takes a shape", f"write pa.{name}(3), or pa.{name}((3, 3), dtype=pa.float32)")
    else:
        value = constant(scope.loc(node), 1 if name == "ones" else 0)
    shape = _constant_shape_of(scope, args[0], scope.infer(args[0]))
    if name in ("eye", "identity"):
        return _identity(scope, node, shape, dtype or float64)
    if name != "full":
        dtype = dtype or float64
    value = scope.coerce(node, value, ir.ScalarType(dtype or value.type.dtype))
    return ir.Fill(scope.loc(node), local_type(scope, node, value.type.dtype, shape), value)


def _dtype_argument(scope: Scope, node: ast.Call, name: str) -> tuple[DType | None, list[ast.expr]]:
    """The dtype, by name or behind the other arguments, and these."""
    args, given = list(node.args), None
    for keyword in node.keywords:
        if keyword.arg != "dtype":
            scope.fail(keyword.value, f"{name}() in a kernel has no argument {keyword.arg!r}", "there is dtype")
        given = keyword.value
    if given is None and len(args) == 2 + (name == "full"):
        given = args.pop()
    if given is None:
        return None, args
    value = scope.infer(given)
    try:
        return asdtype(value.value), args
    except (TypeError, AttributeError):
        scope.fail(given, f"{name}() takes a dtype, got {describe(value)}", "write dtype=pa.float32")


def _constant_shape_of(scope: Scope, where: ast.AST, value: Any) -> tuple[int, ...]:
    items = as_tuple(value)
    sizes = (value,) if items is None else items
    for n in sizes:
        if not isinstance(n, ir.Const) or type(n.value) is not int:
            what = f"the shape of a local array is constant, got {describe(n)}"
            scope.fail(where, what, "use a number, a captured value or a pa.constexpr; or pass an array")
        if n.value < 0:
            scope.fail(where, f"a size can't be negative, got {n.value}")
    if not sizes:
        scope.fail(where, "a local array has one axis or more", "a variable holds a number")
    return tuple(n.value for n in sizes)


def _identity(scope: Scope, node: ast.AST, shape: tuple[int, ...], dtype: DType) -> ir.Expr:
    if len(shape) != 1:
        scope.fail(node, "eye() takes one size", "write pa.eye(3)")
    n, kind = shape[0], ir.ScalarType(dtype)
    bits = [cast(constant(scope.loc(node), k), dtype) for k in (0, 1)]

    def at(_: list[ir.Expr], index: Index) -> ir.Expr:
        if all(isinstance(i, ir.Const) for i in index):
            return bits[index[0].value == index[1].value]  # type: ignore[union-attr]
        return ir.Select(bits[0].loc, kind, compare(bits[0].loc, "eq", *index), bits[1], bits[0])

    return generate(scope, node, (n, n), [], at, "eye")


def _nested(scope: Scope, node: ast.expr) -> Any:
    """Elements as nested tuples: of lists only here."""
    return tuple(_nested(scope, x) for x in node.elts) if isinstance(node, (ast.List, ast.Tuple)) else scope.infer(node)


def _array(scope: Scope, node: ast.Call, value: Any, dtype: DType | None) -> ir.Expr:
    """An array of nested items. A weak number doesn't widen what stands beside it."""
    if as_tuple(value) is None:
        if constant_shape(value) is None:
            what = f"a local array is made of numbers, got {describe(value)}"
            scope.fail(node, what, "write pa.array([x, y, z]), or pa.zeros(n) with a constant n")
        own = ir.ScalarType(value.type.dtype if dtype is None else dtype)
        return elementwise(scope, node, [value], lambda x: scope.coerce(node, x, own), "array")
    shape, items = _flattened(scope, node, value)
    if not items:
        scope.fail(node, "an array of nothing has no dtype", "write pa.zeros(0, dtype=pa.float32)")
    kind = items[0].type
    for item in items[1:]:
        kind = scope.apply(node, join, kind, item.type)
    target = ir.ScalarType(dtype or kind.dtype)
    return build(scope, node, shape, tuple(scope.coerce(node, x, target) for x in items))


def _flattened(scope: Scope, node: ast.AST, value: Any) -> tuple[tuple[int, ...], list[ir.Expr]]:
    """(shape, numbers in C order) of nested tuples and arrays of constant shape."""
    items = as_tuple(value)
    if items is None:
        shape = constant_shape(value)
        if shape is None:
            return (), [scope.number(node, value)]
        if 0 in shape and has_side_effect(value):
            scope.fail(node, f"{describe(value)} has no elements, and a call that makes it", "assign it first")
        first, again = let_bind(scope, value)
        places = indices(scope.loc(node), shape)
        return shape, [element(scope, node, again if k else first, index) for k, index in enumerate(places)]
    parts = [_flattened(scope, node, item) for item in items]
    shapes = {shape for shape, _ in parts}
    if len(shapes) > 1:
        found = ", ".join(map(str, sorted(shapes)))
        scope.fail(node, f"the rows of an array have one shape, got {found}")
    return (len(parts), *(shapes.pop() if shapes else ())), [x for _, part in parts for x in part]


# ---- indices


@dataclass(frozen=True)
class Selection:
    """What a subscript selects: per axis of the array an index or a `range`, and `_NEW_AXIS` between them."""

    parts: tuple[Any, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(p) if isinstance(p, range) else 1 for p in self.parts if isinstance(p, (range, str)))

    @property
    def is_element(self) -> bool:
        return not any(isinstance(p, (range, str)) for p in self.parts)

    def index(self, loc: ir.Loc, inner: Index) -> Index:
        """The array's index of the element at `inner` of what is selected."""
        rest, found = iter(inner), list[ir.Expr]()
        for part in self.parts:
            if isinstance(part, str):
                next(rest)
            elif isinstance(part, range):
                found.append(_affine(loc, next(rest), part))
            else:
                found.append(part)
        return tuple(found)


def _affine(loc: ir.Loc, k: ir.Expr, values: range) -> ir.Expr:
    if isinstance(k, ir.Const):
        # of an empty axis only the type of an element is asked
        return constant(loc, values[k.value] if values else values.start)
    if values.step != 1:
        k = binary(loc, "mul", k, constant(loc, values.step))
    return binary(loc, "add", k, constant(loc, values.start)) if values.start else k


def select_items(scope: Scope, node: ast.Subscript, shape: tuple[int, ...]) -> Selection:
    """The selection that a subscript is, of an array of constant shape."""
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    wide = [isinstance(x, ast.Constant) and x.value is ... for x in items]
    count = len(items) - sum(wide) - sum(map(_is_none, items))
    if count > len(shape) or sum(wide) > 1:
        scope.fail(node, f"{count} indices for an array of shape {shape}")
    parts, axis = list[Any](), 0
    for item, ellipsis in zip(items, wide, strict=True):
        if ellipsis:
            skipped = len(shape) - count
            parts += map(range, shape[axis : axis + skipped])
            axis += skipped
        elif _is_none(item):
            parts.append(_NEW_AXIS)
        else:
            parts.append(_part(scope, item, shape[axis], axis))
            axis += 1
    return Selection((*parts, *map(range, shape[axis:])))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _part(scope: Scope, item: ast.expr, size: int, axis: int) -> Any:
    if isinstance(item, ast.Slice):
        return range(*slice(*(_slice_bound(scope, n) for n in (item.lower, item.upper, item.step))).indices(size))
    index = scope.integer(item, scope.infer(item), "an index")
    if isinstance(index, ir.Const):
        if not -size <= index.value < size:
            scope.fail(item, f"index {index.value} is out of range for axis {axis} with size {size}")
        return constant(index.loc, index.value % size)
    unsigned = isinstance(index, ir.Cast) and index.a.type.dtype is uint64
    if unsigned or not scope.instances.wraparound:
        return index
    first, again = let_bind(scope, index)
    negative = compare(index.loc, "lt", first, constant(index.loc, 0))
    return ir.Select(index.loc, ir.INDEX, negative, binary(index.loc, "add", again, constant(index.loc, size)), again)


def _slice_bound(scope: Scope, node: ast.expr | None) -> int | None:
    if node is None:
        return None
    value = scope.integer(node, scope.infer(node), "a slice bound")
    if not isinstance(value, ir.Const):
        what = f"a slice of a local array has constant bounds, got {describe(value)}"
        scope.fail(node, what, "write a loop over its elements")
    return int(value.value)


def subscript(scope: Scope, node: ast.Subscript, array: ir.Expr) -> ir.Expr:
    """`p[i]`, `m[0]`, `m[:, 1]`, `p[::-1]`, `p[:, None]`."""
    assert isinstance(array.type, ir.LocalArrayType)
    selection = select_items(scope, node, array.type.shape)
    return bind(scope, [array], lambda bound: _selected(scope, node, bound, selection, memory_of(bound)))


def _selected(scope: Scope, node: ast.AST, array: ir.Expr, selection: Selection, names: tuple[str, ...]) -> ir.Expr:
    loc = scope.loc(node)
    if selection.is_element:
        return element(scope, node, array, selection.parts)
    fixed = [p for p in selection.parts if isinstance(p, ir.Node) and not isinstance(p, ir.Const)]

    def at(operands: list[ir.Expr], inner: Index) -> ir.Expr:
        given = iter(operands[1:])
        parts = tuple(next(given) if any(p is x for x in fixed) else p for p in selection.parts)
        return element(scope, node, operands[0], Selection(parts).index(loc, inner))

    def build_slice(*bound: ir.Expr) -> ir.Expr:
        return generate(scope, node, selection.shape, [array, *bound], at, "slice")

    copied = bind(scope, list(fixed), build_slice)
    return ir.Shared(loc, copied.type, copied, names) if names else copied


def transposed(scope: Scope, node: ast.AST, array: ir.Expr) -> ir.Expr:
    shape = array.type.shape
    if len(shape) < 2:
        return array

    def build_transpose(bound: ir.Expr) -> ir.Expr:
        at = lambda operands, index: element(scope, node, operands[0], index[::-1])  # noqa: E731
        copied = generate(scope, node, shape[::-1], [bound], at, "transpose")
        return ir.Shared(copied.loc, copied.type, copied, memory_of(bound))

    return bind(scope, [array], build_transpose)


def reshaped(scope: Scope, node: ast.AST, array: ir.Expr, args: list[Any]) -> ir.Expr:
    """The same elements in another constant shape; one size may be -1."""
    shape = list(args) if len(args) != 1 else list(as_tuple(args[0]) or args)
    sizes = [n.value if isinstance(n, ir.Const) else None for n in shape]
    size = array.type.size
    if any(type(n) is not int for n in sizes) or sum(n == -1 for n in sizes) > 1:
        scope.fail(node, "a local array is reshaped to constant sizes, of which one may be -1")
    known = 1
    for n in sizes:
        known *= 1 if n == -1 else n  # type: ignore[operator]
    found = tuple(size // known if n == -1 and known else n for n in sizes)
    if any(n < 0 for n in found) or _product(found) != size:  # type: ignore[operator,arg-type]
        scope.fail(node, f"an array of {size} elements can't have the shape {tuple(sizes)}")
    kind = ir.LocalArrayType(array.type.dtype, found)  # type: ignore[arg-type]
    return array if kind == array.type else ir.Convert(scope.loc(node), kind, array, "reshape")


def _product(sizes: tuple[int, ...]) -> int:
    return ir.LocalArrayType(float64, sizes).size


ATTRIBUTES = ("shape", "size", "ndim", "itemsize", "dtype", "T")
METHODS = (
    "reshape",
    "ravel",
    "copy",
    "astype",
    "sum",
    "prod",
    "mean",
    "min",
    "max",
    "any",
    "all",
    "argmin",
    "argmax",
    "dot",
    "trace",
)


def attribute(scope: Scope, node: ast.Attribute, array: ir.Expr) -> Any:
    """An attribute or method of a local array."""
    loc, kind, name = scope.loc(node), array.type, node.attr
    if name == "shape":
        return tuple(constant(loc, n) for n in kind.shape)
    if name == "dtype":
        return ir.Static(kind.dtype.numpy)
    if name == "T":
        return transposed(scope, node, array)
    if name in ATTRIBUTES:
        value = kind.dtype.itemsize if name == "itemsize" else getattr(kind, name)
        return with_let_bound(scope, [array], lambda _: constant(loc, value))
    if name in METHODS:
        return ir.Static(Method(array, name))
    there = ", ".join((*ATTRIBUTES, *METHODS))
    scope.fail(node, f"a local array has no attribute {name!r}", f"there are {there}")


def items_of(scope: Scope, where: ast.AST, array: ir.Expr) -> tuple[Any, ...]:
    """What a variable unpacks to: its elements, or the rows of a matrix."""
    shape = constant_shape(array)
    assert shape is not None
    return tuple(row(scope, where, array, constant(scope.loc(where), k)) for k in range(shape[0]))


def row(scope: Scope, where: ast.AST, array: ir.Expr, k: ir.Expr) -> ir.Expr:
    """`array[k]` for an index that is in range."""
    if is_array(array):
        if array.type.ndim == 1:
            return element(scope, where, array, (k,))
        kind = ir.ArrayType(array.type.dtype, array.type.ndim - 1, array.type.strided, (), None, array.type.sizes[1:])
        return ir.Slice(scope.loc(where), kind, array, (k, *(ir.WHOLE,) * (array.type.ndim - 1)))
    selection = Selection((k, *map(range, array.type.shape[1:])))
    return _selected(scope, where, array, selection, memory_of(array))
