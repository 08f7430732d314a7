"""Infers subscripts, slices, sub-views and atomics."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from ..dtypes import uint64
from ..errors import with_article
from . import ir
from .infer_aggregates import unpack
from .infer_scope import Scope
from .infer_temporaries import evaluate_in_order, let_bind, with_let_bound
from .infer_values import Method, is_array
from .promotion import binary, compare, constant

ATOMIC_KINDS = {
    "add": "iufc",
    "sub": "iufc",
    "min": "iuf",
    "max": "iuf",
    "exchange": "biuf",
    "cas": "biuf",
}  # others: "biu"


def load_element(scope: Scope, node: ast.AST, array: ir.Expr, index: tuple[Any, ...]) -> ir.Expr:
    return ir.Load(scope.loc(node), ir.ScalarType(array.type.dtype), array, index)


def index_parts(scope: Scope, node: ast.Subscript, array: ir.Expr, records: int | None = None) -> tuple[Any, ...]:
    """One expression or `Range` per axis; fewer indices than axes are filled with whole ranges. `records`: the number
    of axes of an array of records, of which `array` is a field."""
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    ndim = array.type.ndim if records is None else records
    ellipses = [k for k, item in enumerate(items) if isinstance(item, ast.Constant) and item.value is ...]
    count = len(items) - len(ellipses)
    if count > ndim or len(ellipses) > 1:
        scope.fail(node, f"{count} indices for a {array.type if records is None else f'{ndim}-D array of records'}")
    parts: list[Any] = []
    for item in items:
        if isinstance(item, ast.Constant) and item.value is ...:
            parts += [ir.WHOLE] * (ndim - count)
        elif isinstance(item, ast.Slice):
            parts.append(_slice_range(scope, item))
        else:
            index = scope.integer(item, scope.infer(item), "an index")
            parts.append(wrap_index(scope, item, index, array, len(parts)))
    return (*parts, *[ir.WHOLE] * (ndim - len(parts)))


def _slice_range(scope: Scope, item: ast.Slice) -> ir.Range:
    bounds = (item.lower, item.upper, item.step)
    start, stop, step = (
        None if n is None else scope.integer(n, scope.infer(n), "a slice bound", saturating=True) for n in bounds
    )
    if isinstance(step, ir.Const) and step.value == 0:
        scope.fail(item, "slice step must not be 0")
    return ir.Range(start, stop, None if isinstance(step, ir.Const) and step.value == 1 else step)


def wrap_index(scope: Scope, node: ast.AST, index: ir.Expr, array: ir.Expr, axis: int) -> ir.Expr:
    """Negative constants count from the end; negative run-time indices only with @kernel(wraparound=True)."""
    size = ir.Size(scope.loc(node), ir.INDEX, array, axis)
    if isinstance(index, ir.Const):
        return binary(index.loc, "add", size, index) if index.value < 0 else index
    if isinstance(index, ir.Size) and index.axis == axis and _is_same_variable(index.array, array):
        scope.fail(node, "this index is the size itself, one past the last element", "write size - 1")
    unsigned = isinstance(index, ir.Cast) and index.a.type.dtype is uint64
    if unsigned or not scope.instances.wraparound:  # no uint64 is negative
        return index
    first, again = let_bind(scope, index)
    negative = compare(index.loc, "lt", first, constant(index.loc, 0))
    return ir.Select(index.loc, ir.INDEX, negative, binary(index.loc, "add", again, size), again)


# ---- calls: atomics, sub-views, reshapes


def atomic(scope: Scope, node: ast.Call, op: str, args: list[Any]) -> ir.Expr:
    swaps = op == "cas"
    if len(args) != 3 + swaps or not is_array(args[0]):
        advice = f"write pa.atomic_{op}(v, i, {'expected, desired' if swaps else 'x'})"
        scope.fail(node, f"atomic_{op}() takes an array, an index and {'two values' if swaps else 'a value'}", advice)
    index, dtype = unpack(scope, node, args[1]), args[0].type.dtype
    if index is None:
        index = (args[1],)
    if dtype.kind not in ATOMIC_KINDS.get(op, "biu"):
        scope.fail(node, f"atomic_{op}() is not defined for {dtype}")
    if len(index) != args[0].type.ndim:
        scope.fail(node, f"{len(index)} indices for {with_article(args[0].type)}")
    values = [scope.coerce(node, scope.number(node, x), ir.ScalarType(dtype)) for x in args[2:]]
    desired = values[1] if swaps else None

    def update(array: ir.Expr) -> ir.Expr:
        parts = tuple(
            wrap_index(scope, node, scope.integer(node, i, "an index"), array, k) for k, i in enumerate(index)
        )
        return ir.Atomic(scope.loc(node), ir.ScalarType(dtype), op, array, parts, values[0], desired=desired)

    return with_let_bound(scope, [args[0]], update)


def subview(scope: Scope, node: ast.Call, array: Any, args: list[Any], keywords: dict[Any, Any]) -> ir.Expr:
    names = ["offset", "size"]
    if len(args) > 2 or sorted(keywords) != sorted(names[len(args) :]) or not is_array(array):
        scope.fail(node, "a sub-view needs an array, an offset and a size", "write v.subview(offset, size)")
    ordered = evaluate_in_order(scope, {**dict(zip(names, args, strict=False)), **keywords}, names)
    values = [ordered[n] for n in names]
    if array.type.ndim != 1:
        advice = "index the other axes first: m[i].subview(o, n)"
        scope.fail(node, f"only a 1-D array has sub-views, this is a {array.type}", advice)
    bounds = [scope.integer(node, v, what) for v, what in zip(values, ("an offset", "a size"), strict=True)]
    for bound, what in zip(bounds, ("offset", "size"), strict=True):
        if isinstance(bound, ir.Const) and bound.value < 0:
            scope.fail(node, f"the {what} of a sub-view can't be negative, got {bound.value}")
    return ir.SubView(scope.loc(node), replace(array.type, sizes=()), array, bounds[0], bounds[1])


def reshape(scope: Scope, node: ast.Call, method: Method, args: list[Any], keywords: dict[str, Any]) -> ir.Expr:
    """`v.reshape(n, m)`, `v.reshape((n, m))` and `v.ravel()`."""
    array, name = method.owner, method.name
    if keywords or (name == "ravel" and args) or (name == "reshape" and not args):
        advice = f"write v.{name}({'n, m' if name == 'reshape' else ''}): elements are in C order"
        scope.fail(node, f"{name}() takes {'sizes' if name == 'reshape' else 'nothing'}", advice)
    if name == "ravel":
        shape: tuple[Any, ...] = (constant(scope.loc(node), -1),)
    else:
        items = unpack(scope, node, args[0]) if len(args) == 1 else None
        shape = tuple(args) if items is None else items
    sizes = tuple(scope.integer(node, n, "a size") for n in shape)
    negative = [n.value for n in sizes if isinstance(n, ir.Const) and n.value < 0]
    if any(n != -1 for n in negative):
        scope.fail(node, f"a size can't be negative, got {min(negative)}")
    if len(negative) > 1:
        scope.fail(node, "only one size can be -1", "it is what the others leave")
    return ir.Reshape(scope.loc(node), reshaped_type(array.type, len(sizes)), array, sizes)


def reshaped_type(array: ir.ArrayType, ndim: int) -> ir.ArrayType:
    """Contiguous if the array is. One strided axis has strides in any shape; several axes may have none."""
    if not array.strided or array.ndim < 2:
        return replace(array, ndim=ndim, sizes=())
    return ir.ArrayType(array.dtype, ndim, True, reshape_of=array)


def _is_same_variable(a: ir.Expr, b: ir.Expr) -> bool:
    return isinstance(a, ir.Local) and isinstance(b, ir.Local) and a.name == b.name


def slice_type(array: ir.ArrayType, parts: tuple[Any, ...]) -> ir.ArrayType:
    """Contiguous if the array is, its leading axes are indexed, at most one range is cut, and the other
    axes are whole."""
    ranges = [p for p in parts if isinstance(p, ir.Range)]
    lead = next(k for k, p in enumerate(parts) if isinstance(p, ir.Range))
    is_full = all(p == ir.WHOLE for p in parts[lead + 1 :])
    strided = array.strided or not is_full or ranges[0].step is not None
    pairs = zip(parts, array.sizes, strict=True) if array.sizes else ()
    sizes = tuple(_constant_length(p, n) for p, n in pairs if isinstance(p, ir.Range))
    known = sizes if any(n is not None for n in sizes) else ()
    return ir.ArrayType(array.dtype, len(ranges), strided, (), array.reshape_of, known)


def _constant_length(part: ir.Range, size: int | None) -> int | None:
    """The length of a slice with constant bounds of an axis of constant size."""
    bounds = [None if x is None else getattr(x, "value", "") for x in (part.start, part.stop, part.step)]
    if size is None or "" in bounds:
        return None
    start, stop, step = bounds
    return len(range(*slice(start, stop, step).indices(size)))
