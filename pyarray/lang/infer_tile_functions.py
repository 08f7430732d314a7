"""Infers functions of tiles that combine elements: reductions, products, scans.

Each is a nest of loops over the axes that stay, which has the loop over the axis that goes. Where that is the last
one, its order is free, and the threads of a block share it; else a thread goes along it."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..dtypes import DType, asdtype, bool_, float64, int64, uint64
from . import ir
from .infer_scope import Scope
from .infer_temporaries import new_temporary
from .infer_tile_axes import FUNCTIONS as AXES_FUNCTIONS
from .infer_tile_axes import call_axes_function, squeezed, tile_like
from .infer_tiles import REDUCTIONS, length
from .infer_values import describe
from .promotion import binary, call, cast, compare, constant, join
from .tile_values import (
    Tile,
    as_tile,
    broadcast_axes,
    check_size,
    elementwise_tile,
    hoisted,
    index_local,
    is_tile,
    loops_over,
    materialized,
    named_axes,
    positions,
    run_variable,
    start_variable,
    stop_variable,
    tile_type,
)
from .types import axis_label

_SCANS = {"cumsum": "add", "cumprod": "mul", "cumulative_sum": "add", "cumulative_prod": "mul"}
_ALIASES = {"amin": "min", "amax": "max"}
_TYPED = ("sum", "prod", "mean", *_SCANS)  # these take dtype=
FUNCTIONS = (*REDUCTIONS, "count_nonzero", *_SCANS, "matmul", "dot", "copy", "astype", *AXES_FUNCTIONS)
Axes = list[tuple[str, int]]


def call_tile_function(scope: Scope, node: ast.Call, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A function of tiles that isn't elementwise, or a method of a tile."""
    name = _ALIASES.get(name, name)
    if name in ("matmul", "dot"):
        left, right = _two(scope, node, name, args)
        return tile_matmul(scope, node, left, right, _dtype_of(scope, node, name, keywords))
    if name == "astype":
        args += [keywords[k] for k in ("dtype",) if set(keywords) == {"dtype"}]
        if len(args) != 2 or set(keywords) - {"dtype"}:
            scope.fail(node, "astype() takes a dtype", "write t.astype(pa.float32)")
        dtype = _dtype(scope, node, args[1])
        return elementwise_tile(scope, node, [args[0]], lambda x: scope.coerce(node, x, ir.ScalarType(dtype)))
    if name.endswith("_like"):
        return tile_like(scope, node, name, args, keywords, _dtype_of(scope, node, name, keywords))
    if name in AXES_FUNCTIONS:
        return call_axes_function(scope, node, name, args, keywords)
    if name == "copy":
        return args[0]
    given = _arguments(scope, node, name, args, keywords)
    if name in _SCANS:
        return _scan(scope, node, name, as_tile(scope, node, args[0]), given)
    return _reduce_by_name(scope, node, name, args[0], given)


def _two(scope: Scope, node: ast.Call, name: str, args: list[Any]) -> list[Any]:
    if len(args) != 2:
        scope.fail(node, f"{name}() takes two tiles, got {len(args)}")
    return args


def _dtype(scope: Scope, node: ast.AST, value: Any) -> DType:
    try:
        return asdtype(value.value)
    except (TypeError, AttributeError):
        scope.fail(node, f"expected a dtype, got {describe(value)}", "write dtype=pa.float32")


def _dtype_of(scope: Scope, node: ast.Call, name: str, keywords: dict[str, Any]) -> DType | None:
    if name in ("matmul", "dot") and set(keywords) - {"dtype"}:
        scope.fail(node, f"{name}() of tiles takes two tiles and dtype=")
    if not isinstance(keywords.get("dtype"), (ir.Static, ir.Node)):
        return None
    return _dtype(scope, node, keywords["dtype"])


@dataclass(frozen=True)
class _Arguments:
    """What reductions and scans take behind the tile."""

    axis: Any
    keepdims: bool
    dtype: DType | None
    correction: Any  # what is subtracted from the count of a variance's elements


def _arguments(scope: Scope, node: ast.Call, name: str, args: list[Any], keywords: dict[str, Any]) -> _Arguments:
    given = dict(keywords)
    if len(args) == 2 and "axis" not in given:
        given["axis"] = args[1]
    names = ["axis", *(["keepdims"] if name not in _SCANS else []), *(["dtype"] if name in _TYPED else [])]
    names += ["ddof"] if name in ("var", "std") else []
    if name in ("var", "std") and "correction" in given:
        given["ddof"] = given.pop("correction")
    keepdims = given.get("keepdims")
    if set(given) - set(names) or len(args) > 2 or (keepdims is not None and not isinstance(keepdims, ir.Const)):
        takes = ", ".join(f"{n}=" for n in names[:-1]) + f" and {names[-1]}=" if names[1:] else "axis="
        advice = "choose elements by pa.where(mask, t, 0) first" if "where" in given else ""
        scope.fail(node, f"{name}() of tiles takes a tile, {takes}", advice)
    dtype = None if given.get("dtype") in (None, ir.Static(None)) else _dtype(scope, node, given["dtype"])
    correction = scope.number(node, given["ddof"]) if "ddof" in given else None
    return _Arguments(given.get("axis"), keepdims is not None and bool(keepdims.value), dtype, correction)


# ---- reductions


def _axes_to_reduce(scope: Scope, node: ast.AST, kind: ir.TileType, axis: Any) -> set[int]:
    """The numbers of the axes."""
    if axis is None or (isinstance(axis, ir.Static) and axis.value is None):
        return set(range(kind.ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    found = set[int]()
    for n in given:
        if not isinstance(n, ir.Const) or type(n.value) is not int:
            scope.fail(node, f"an axis is a constant, got {describe(n)}")
        if not -kind.ndim <= n.value < kind.ndim:
            scope.fail(node, f"axis {n.value} is out of range for a {kind}")
        if n.value % kind.ndim in found:
            scope.fail(node, f"axis {n.value} of a {kind} is given twice")
        found.add(n.value % kind.ndim)
    return found


def _reduce_by_name(scope: Scope, node: ast.AST, name: str, value: Any, given: _Arguments) -> Any:
    tile, axis, keepdims = as_tile(scope, node, value), given.axis, given.keepdims
    if given.dtype is not None:
        tile = _as(scope, node, tile, given.dtype)
    dtype = tile.type.dtype
    if dtype.kind == "c" and name not in ("sum", "prod", "mean", "any", "all", "count_nonzero"):
        scope.fail(node, f"{name}() of tiles is not defined for {dtype}")
    if name in ("argmin", "argmax"):
        return _arg_extreme(scope, node, name, tile, axis, keepdims)
    numbers = _axes_to_reduce(scope, node, tile.type, axis)
    if name in ("mean", "var", "std"):
        return _moments(scope, node, name, tile, numbers, given)
    if name == "count_nonzero":
        tile, name, dtype = _as(scope, node, tile, bool_), "sum", bool_
    if name in ("any", "all"):
        tile = _as(scope, node, tile, bool_)
        return reduce_tile(scope, node, tile, numbers, keepdims, "or" if name == "any" else "and", bool_, bool_)
    if name in ("min", "max"):
        if not named_axes(tile.type):
            scope.fail(node, f"{name}() takes a tile, got {describe(value)}")
        return reduce_tile(scope, node, tile, numbers, keepdims, name, dtype, dtype)
    result = given.dtype or _sum_dtype(dtype)
    op = "add" if name == "sum" else "mul"
    return reduce_tile(scope, node, tile, numbers, keepdims, op, _accumulator(result), result)


def _accumulator(dtype: DType) -> DType:
    """Halves are summed in float32."""
    return dtype.arithmetic


def _sum_dtype(dtype: DType) -> DType:
    return {"b": int64, "i": int64, "u": uint64}.get(dtype.kind, dtype)


def _as(scope: Scope, node: ast.AST, tile: Tile, dtype: DType) -> Tile:
    return Tile(replace(tile.type, dtype=dtype), scope.coerce(node, tile.element, ir.ScalarType(dtype)))


def _moments(scope: Scope, node: ast.AST, name: str, tile: Tile, numbers: set[int], given: _Arguments) -> Any:
    """Means, and variances as means of squared deviations."""
    loc, dtype, keepdims = scope.loc(node), tile.type.dtype, given.keepdims
    result = float64 if dtype.kind in "biu" else dtype
    wide = _accumulator(result)
    if name != "mean":
        tile = materialized(scope, node, tile)
    count: ir.Expr = constant(loc, 1)
    for k in sorted(numbers):
        count = binary(loc, "mul", count, length(scope, node, tile.type.axes[k]))

    def mean(x: Tile, keep: bool) -> Any:
        element = cast(x.element, wide)
        total = reduce_tile(scope, node, Tile(replace(x.type, dtype=wide), element), numbers, keep, "add", wide, wide)
        return elementwise_tile(scope, node, [total], lambda s: binary(loc, "div", s, count))

    if given.dtype is not None:
        result, wide = given.dtype, _accumulator(given.dtype)
    middle = mean(tile, keepdims if name == "mean" else True)
    if name != "mean":
        deviation = elementwise_tile(scope, node, [tile, middle], lambda a, b: binary(loc, "sub", cast(a, wide), b))
        square: Callable[[ir.Expr], ir.Expr] = lambda x: call(loc, "square", [x])  # noqa: E731
        if given.correction is not None:
            less = binary(loc, "sub", count, hoisted(scope, given.correction))
            count = hoisted(scope, call(loc, "max", [less, constant(loc, 0)]))
        middle = mean(elementwise_tile(scope, node, [deviation], square), keepdims)
    if name == "std":
        middle = elementwise_tile(scope, node, [middle], lambda x: call(loc, "sqrt", [x]))
    return elementwise_tile(scope, node, [middle], lambda x: cast(x, result))


def _identity(loc: ir.Loc, op: str, dtype: DType) -> ir.Expr:
    """What leaves every element of a reduction as it is."""
    if op in ("min", "max") and dtype.kind == "f":
        return cast(constant(loc, math.inf if op == "min" else -math.inf), dtype)
    if op in ("min", "max") and dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        low, high = (0, 2**bits - 1) if dtype.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return ir.Const(loc, ir.ScalarType(dtype), high if op == "min" else low)
    if dtype.kind == "b":
        return ir.Const(loc, ir.ScalarType(dtype), op in ("min", "and"))
    return cast(constant(loc, 1 if op == "mul" else 0), dtype)


def _split(kind: ir.TileType, numbers: set[int]) -> tuple[Axes, Axes, bool]:
    """(axes that stay, axes that go, whether all that go are behind those that stay)."""
    pairs = list(enumerate(zip(kind.axes, kind.shape, strict=True)))
    kept = [pair for k, pair in pairs if k not in numbers and pair[0]]
    gone = [pair for k, pair in pairs if k in numbers and pair[0]]
    last_kept = max((k for k, pair in pairs if k not in numbers and pair[0]), default=-1)
    return kept, gone, all(k > last_kept for k, pair in pairs if k in numbers and pair[0])


def reduce_tile(
    scope: Scope, where: ast.AST, tile: Tile, numbers: set[int], keepdims: bool, op: str, wide: DType, result: DType
) -> Any:
    """The tile without the axes with these numbers, or a number; accumulated as `wide`."""
    loc, kind = scope.loc(where), ir.ScalarType(wide)
    kept, gone, trailing = _split(tile.type, numbers)
    name = new_temporary(scope, kind)
    accumulator = ir.Local(loc, kind, name)
    begin = ir.Assign(loc, name, _identity(loc, op, wide))
    element = cast(tile.element, wide)
    combined = call(loc, op, [accumulator, element]) if op in ("min", "max") else binary(loc, op, accumulator, element)
    if wide.kind == "b":
        combined = ir.Binary(loc, ir.BOOL, {"max": "or", "min": "and"}.get(op, op), accumulator, element)
        op = combined.op
    update = ir.Assign(loc, name, combined)
    axes = [
        ("", 1) if k in numbers else pair
        for k, pair in enumerate(zip(tile.type.axes, tile.type.shape, strict=True))
        if keepdims or k not in numbers
    ]
    if not gone:
        shape = replace(tile.type, dtype=result, axes=tuple(a for a, _ in axes), shape=tuple(n for _, n in axes))
        return Tile(shape, cast(tile.element, result))
    inner = loops_over(loc, gone, [update], ((name, op),)) if trailing else plain_loops(loc, gone, [update])
    if not kept:
        scope.pending += [begin, inner]
        value: Any = cast(accumulator, result)
        if not axes:
            return value
        return Tile(ir.TileType(result, (1,) * len(axes), ("",) * len(axes)), value)
    reduced = check_size(scope, where, tile_type(scope, where, wide, [a for a, _ in kept], [n for _, n in kept]))
    target = new_temporary(scope, reduced)
    stored = ir.SetElement(loc, target, reduced.shape, positions(loc, reduced.axes), accumulator)
    scope.pending.append(loops_over(loc, kept, [begin, inner, stored]))
    found = as_tile(scope, where, ir.Local(loc, reduced, target))
    shape = replace(reduced, dtype=result, axes=tuple(a for a, _ in axes), shape=tuple(n for _, n in axes))
    return Tile(shape, cast(found.element, result))


def plain_loops(loc: ir.Loc, axes: Axes, body: Sequence[ir.Stmt]) -> ir.Stmt:
    """A nest of loops that one thread runs, in order."""
    nest: ir.Stmt | None = None
    for axis, _ in reversed(axes):
        range_ = ir.Range(index_local(loc, start_variable(axis)), index_local(loc, stop_variable(axis)), None)
        nest = ir.For(loc, (run_variable(axis),), (range_,), tuple(body) if nest is None else (nest,))
    assert nest is not None
    return nest


def _arg_extreme(scope: Scope, node: ast.AST, name: str, tile: Tile, axis: Any, keepdims: bool) -> Any:
    """The first position of the extreme value within the tile; a NaN is one."""
    loc, kind = scope.loc(node), tile.type
    numbers = _axes_to_reduce(scope, node, kind, axis)
    if len([a for k, a in enumerate(kind.axes) if a and k in numbers]) != 1 or kind.dtype.kind == "b":
        scope.fail(node, f"{name}() of a {kind} takes one axis", f"write {name}(t, axis=-1)")
    ((number, gone),) = [(k, a) for k, a in enumerate(kind.axes) if a and k in numbers]
    kept = [(a, n) for k, (a, n) in enumerate(zip(kind.axes, kind.shape, strict=True)) if a and k != number]
    best, place = new_temporary(scope, ir.ScalarType(kind.dtype)), new_temporary(scope, ir.ScalarType(int64))
    value, at = ir.Local(loc, ir.ScalarType(kind.dtype), best), ir.Local(loc, ir.ScalarType(int64), place)
    tile = materialized(scope, node, tile)
    here = cast(positions(loc, (gone,))[0], int64)
    better = compare(loc, "lt" if name == "argmin" else "gt", tile.element, value)
    if kind.dtype.kind == "f":
        nan, was = call(loc, "isnan", [tile.element]), call(loc, "isnan", [value])
        is_first = ir.Logic(loc, ir.BOOL, "and", nan, ir.Unary(loc, ir.BOOL, "invert", was))
        better = ir.Logic(loc, ir.BOOL, "or", better, is_first)
    first = compare(loc, "eq", here, constant(loc, 0))
    taken = (ir.Assign(loc, best, tile.element), ir.Assign(loc, place, here))
    update = ir.If(loc, ir.Logic(loc, ir.BOOL, "or", first, better), taken, ())
    zero = constant(loc, 0)
    begin = [ir.Assign(loc, best, cast(zero, kind.dtype)), ir.Assign(loc, place, cast(zero, int64))]
    inner = plain_loops(loc, [(gone, kind.shape[number])], [update])
    axes = [
        ("", 1) if k in numbers else pair
        for k, pair in enumerate(zip(kind.axes, kind.shape, strict=True))
        if keepdims or k not in numbers
    ]
    shape = ir.TileType(int64, tuple(n for _, n in axes), tuple(a for a, _ in axes))
    if not kept:
        scope.pending += [*begin, inner]
        return Tile(shape, at) if axes else at
    reduced = check_size(scope, node, tile_type(scope, node, int64, [a for a, _ in kept], [n for _, n in kept]))
    target = new_temporary(scope, reduced)
    stored = ir.SetElement(loc, target, reduced.shape, positions(loc, reduced.axes), at)
    scope.pending.append(loops_over(loc, kept, [*begin, inner, stored]))
    return Tile(shape, as_tile(scope, node, ir.Local(loc, reduced, target)).element)


def _scan(scope: Scope, node: ast.AST, name: str, tile: Tile, given: _Arguments) -> Tile:
    """`cumsum` and `cumprod` along an axis."""
    if given.dtype is not None:
        tile = _as(scope, node, tile, given.dtype)
    loc, kind, axis = scope.loc(node), tile.type, given.axis
    numbers = _axes_to_reduce(scope, node, kind, axis) if axis is not None or kind.ndim != 1 else {0}
    if len(numbers) != 1:
        scope.fail(node, f"{name}() of a {kind} takes one axis", f"write {name}(t, axis=-1)")
    (number,) = numbers
    result = given.dtype or _sum_dtype(kind.dtype)
    wide, op = _accumulator(result), _SCANS[name]
    if not kind.axes[number]:
        return Tile(replace(kind, dtype=result), cast(tile.element, result))
    running = new_temporary(scope, ir.ScalarType(wide))
    local = ir.Local(loc, ir.ScalarType(wide), running)
    scanned = check_size(scope, node, replace(kind, dtype=result))
    target = new_temporary(scope, scanned)
    element = materialized(scope, node, tile).element
    body: list[ir.Stmt] = [
        ir.Assign(loc, running, binary(loc, op, local, cast(element, wide))),
        ir.SetElement(loc, target, scanned.shape, positions(loc, scanned.axes), cast(local, result)),
    ]
    inner = plain_loops(loc, [(kind.axes[number], kind.shape[number])], body)
    begin = ir.Assign(loc, running, _identity(loc, op, wide))
    kept = [(a, n) for k, (a, n) in enumerate(zip(kind.axes, kind.shape, strict=True)) if a and k != number]
    scope.pending += [loops_over(loc, kept, [begin, inner])] if kept else [begin, inner]
    return as_tile(scope, node, ir.Local(loc, scanned, target))


# ---- products


def tile_matmul(scope: Scope, node: ast.AST, left: Any, right: Any, dtype: DType | None = None) -> Any:
    """`left @ right`, accumulated as `dtype`; halves in float32."""
    kind, axes, gone, operands = _product(scope, node, left, right, dtype)
    wide, kept = _accumulator(kind), [pair for pair in axes if pair[0]]
    multiply = lambda a, b: binary(scope.loc(node), "mul", cast(a, wide), cast(b, wide))  # noqa: E731
    if not gone:
        return _as(scope, node, elementwise_tile(scope, node, operands, multiply), kind)
    if not kept or (operands[1].type.ndim == 1 and len(kept) == 1):  # a row's elements, which threads share
        both = elementwise_tile(scope, node, [squeezed(x) for x in operands], multiply)
        found = reduce_tile(scope, node, both, {both.type.ndim - 1}, False, "add", wide, kind)
    else:
        found = _accumulate(scope, node, kept, gone, operands, wide, None)
        found = Tile(replace(found.type, dtype=kind), cast(found.element, kind))
    if not axes:
        return found
    element = found.element if isinstance(found, Tile) else found
    return Tile(ir.TileType(kind, tuple(n for _, n in axes), tuple(a for a, _ in axes)), element)


def add_product(scope: Scope, node: ast.AST, target: Any, left: Any, right: Any) -> list[ir.Stmt] | None:
    """`target += left @ right` in place; None where the result is another tile than that."""
    _, kept, gone, operands = _product(scope, node, left, right, None)
    if named_axes(target.type) != kept or len(kept) != target.type.ndim or operands[1].type.ndim == 1 or not gone:
        return None
    wide = target.type.dtype
    joined = [join(ir.ScalarType(wide), ir.ScalarType(x.type.dtype)).dtype for x in operands]
    if any(kind is not wide for kind in joined) or wide.is_narrow:
        return None
    _accumulate(scope, node, kept, gone, operands, wide, target)
    return []


def _product(
    scope: Scope, node: ast.AST, left: Any, right: Any, dtype: DType | None
) -> tuple[DType, Axes, Axes, list[Tile]]:
    """(dtype, axes of the result, the axis that goes, if it isn't one of size 1, operands)."""
    for x in (left, right):
        if not is_tile(x):
            scope.fail(node, f"'@' takes two tiles, got {describe(x)}", "load both: a[i, k] @ b[k, j]")
    a, b = as_tile(scope, node, left), as_tile(scope, node, right)
    first, second = (list(zip(x.type.axes, x.type.shape, strict=True)) for x in (a, b))
    inner, row = first.pop(), second.pop() if len(second) > 1 else None
    if second.pop()[0] != inner[0]:
        own, other = (", ".join(map(axis_label, x.type.axes)) for x in (a, b))
        what = f"'@' is not defined for tiles of ({own}) and ({other})"
        scope.fail(node, what, "the last axis of the one is the last but one of the other: a[i, k] @ b[k, j]")
    kind = dtype or scope.apply(node, join, ir.ScalarType(a.type.dtype), ir.ScalarType(b.type.dtype)).dtype
    ends = [first.pop()] if first and row else []
    batches = [tile_type(scope, node, kind, [x for x, _ in p], [n for _, n in p]) for p in (first, second)]
    axes = [*zip(*broadcast_axes(scope, node, batches), strict=True), *ends, *([row] if row else [])]
    tile_type(scope, node, kind, [x for x, _ in axes], [n for _, n in axes])  # each index once
    return kind, axes, [inner] if inner[0] else [], [a, b]


def _accumulate(
    scope: Scope, node: ast.AST, kept: Axes, gone: Axes, operands: list[Tile], wide: DType, target: Any
) -> Tile:
    """The sums of products along the axis that goes, onto the elements of `target` if there is one."""
    loc, number = scope.loc(node), ir.ScalarType(wide)
    a, b = (cast(materialized(scope, node, x).element, wide) for x in operands)
    name = new_temporary(scope, number)
    local = ir.Local(loc, number, name)
    if wide.kind == "f":
        added: ir.Expr = call(loc, "fma", [a, b, local])
    elif wide.kind == "b":
        added = ir.Binary(loc, number, "or", local, ir.Binary(loc, number, "and", a, b))
    else:
        added = binary(loc, "add", local, binary(loc, "mul", a, b))
    if target is None:
        kind = check_size(scope, node, tile_type(scope, node, wide, [x for x, _ in kept], [n for _, n in kept]))
        target = ir.Local(loc, kind, new_temporary(scope, kind))
        begin = _identity(loc, "or" if wide.kind == "b" else "add", wide)
    else:
        begin = as_tile(scope, node, target).element
    kind = target.type
    body = [
        ir.Assign(loc, name, begin),
        plain_loops(loc, gone, [ir.Assign(loc, name, added)]),
        ir.SetElement(loc, target.name, kind.shape, positions(loc, kind.axes), local),
    ]
    scope.pending.append(loops_over(loc, kept, body))
    return as_tile(scope, node, target)
