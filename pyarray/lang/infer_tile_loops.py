"""Infers loops over tiles: `for i, j in pa.tiles(c, (BM, BN))`, and `(k,) = pa.tiles(n, BK)`, which is all of an axis.

A loop over tiles is a loop over their numbers, whose body begins with the bounds of each tile index."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from . import ir
from .aggregates import as_tuple
from .infer_scope import Scope
from .infer_temporaries import assign_temporary, new_temporary
from .infer_values import describe, is_array
from .messages import number
from .promotion import binary, call, compare, constant, unary
from .tile_values import MOST_BYTES, TileSpace, define_index, index_local, start_variable, stop_variable

_ADVICE = "write pa.tiles(c, (BM, BN)) or pa.tiles(n, B)"


@dataclass(frozen=True)
class TileLoop:
    """The ranges of the numbers of tiles, and what gives the tile indices their bounds."""

    ranges: tuple[ir.Range, ...]
    space: TileSpace

    def variables(self, scope: Scope, node: ast.For) -> tuple[tuple[str, ...], list[ir.Stmt]]:
        """The counters of tiles, and the assignments that begin the body."""
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        _check_targets(scope, node.target, targets, len(self.ranges))
        names, prefix = list[str](), list[ir.Stmt]()
        for target, size, capacity in zip(targets, self.space.sizes, self.space.capacities, strict=True):
            assert isinstance(target, ast.Name)
            loc, axis = scope.loc(target), define_index(scope, target, capacity)
            names.append(new_temporary(scope, ir.INDEX))
            product = binary(loc, "mul", index_local(loc, names[-1]), constant(loc, capacity))
            start = call(loc, "min", [product, size])  # which it is: bounds elimination takes it from here
            prefix.append(ir.Assign(loc, start_variable(axis), start))
            end = binary(loc, "add", index_local(loc, start_variable(axis)), constant(loc, capacity))
            prefix.append(ir.Assign(loc, stop_variable(axis), call(loc, "min", [end, size])))
        return tuple(names), prefix


def _check_targets(scope: Scope, where: ast.AST, targets: list[ast.expr], count: int) -> None:
    if len(targets) != count or not all(isinstance(t, ast.Name) for t in targets):
        scope.fail(where, f"these tiles need {count} name{'s' * (count > 1)}", _ADVICE)


def is_tiles(function: Any) -> bool:
    return getattr(function, "__pyarray_builtin__", None) == "tiles"


def tile_space(scope: Scope, node: ast.Call, args: list[Any]) -> TileSpace:
    """`pa.tiles(c, (BM, BN))` of an array, of a shape or of a number."""
    if len(args) != 2 or node.keywords:
        scope.fail(node, "tiles() takes an array or sizes, and the sizes of a tile", _ADVICE)
    if is_array(args[0]):
        loc, array = scope.loc(node), args[0]
        sizes: tuple[Any, ...] = tuple(ir.Size(loc, ir.INDEX, array, k) for k in range(array.type.ndim))
    else:
        sizes = as_tuple(args[0]) if as_tuple(args[0]) is not None else (args[0],)  # type: ignore[assignment]
    capacities = as_tuple(args[1]) if as_tuple(args[1]) is not None else (args[1],)
    assert capacities is not None
    if len(sizes) != len(capacities) or not sizes:
        what = f"tiles() of {len(sizes)} axes takes as many sizes of a tile, got {len(capacities)}"
        scope.fail(node, what, _ADVICE)
    for n in capacities:
        if not isinstance(n, ir.Const) or type(n.value) is not int or n.value < 1:
            found = n.value if isinstance(n, ir.Const) else describe(n)
            what = f"the size of a tile is a constant from 1 on, got {found}"
            scope.fail(node.args[1], what, "use a number, a captured value or a parameter that is a pa.constexpr")
        if n.value > MOST_BYTES:
            scope.fail(node.args[1], f"a tile of {n.value} elements doesn't fit a block", "choose a smaller size")
    bounds = tuple(scope.integer(node.args[0], n, "a size", saturating=True) for n in sizes)
    return TileSpace(bounds, tuple(n.value for n in capacities))


def tile_loop(scope: Scope, node: ast.For, before: list[ir.Stmt]) -> TileLoop | None:
    """How a loop over `pa.tiles(...)` runs; None for other loops. Its sizes are evaluated before it."""
    if not isinstance(node.iter, ast.Call):
        return None
    callee = scope.infer(node.iter.func)
    if not isinstance(callee, ir.Static) or not is_tiles(callee.value):
        return None
    in_tiles = scope.before_parallel is not None
    if not in_tiles and (not scope.is_kernel or scope.loop_depth or scope.branch_depth):
        what = "a loop over tiles stands at the top level of a kernel, or in a parallel loop"
        scope.fail(node, what, "move it there")
    space = tile_space(scope, node.iter, [scope.infer(x) for x in node.iter.args])
    sizes = tuple(n if _is_plain(n) else assign_temporary(scope, n, before) for n in space.sizes)
    ranges = []
    for n, capacity in zip(sizes, space.capacities, strict=True):
        # rounded up: of a negative number, so that nothing overflows
        tiles = binary(n.loc, "floordiv", unary(n.loc, "neg", n), constant(n.loc, capacity))
        ranges.append(ir.Range(None, unary(n.loc, "neg", tiles), None))
    return TileLoop(tuple(ranges), TileSpace(sizes, space.capacities))


def _is_plain(size: ir.Expr) -> bool:
    return isinstance(size, (ir.Const, ir.Local)) or (isinstance(size, ir.Size) and isinstance(size.array, ir.Local))


def unpack_tiles(scope: Scope, target: ast.expr, space: TileSpace) -> list[ir.Stmt]:
    """`(k,) = pa.tiles(n, BK)`: one tile for all of an axis, which debug mode checks."""
    if not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) != 1 or len(space.sizes) != 1:
        scope.fail(target, "tiles are looped over, or one tile of one axis is unpacked", "write (k,) = pa.tiles(n, 64)")
    (name,), (size,), (capacity,) = target.elts, space.sizes, space.capacities
    if scope.before_parallel is None:
        scope.fail(target, "a tile index belongs to an iteration of a parallel loop", "write it in the loop")
    _check_targets(scope, target, [name], 1)
    assert isinstance(name, ast.Name)
    loc, axis, result = scope.loc(name), define_index(scope, name, capacity), list[ir.Stmt]()
    size = assign_temporary(scope, size, result)
    fits = compare(loc, "le", size, constant(loc, capacity))
    text = (f"one tile of {capacity} elements for an axis of ", number(ir.INDEX, "", "", ast.unparse(target)), "")
    result += [
        ir.Evaluate(loc, ir.Assert(loc, None, fits, (size,), text)),
        ir.Assign(loc, start_variable(axis), constant(loc, 0)),
        ir.Assign(loc, stop_variable(axis), call(loc, "min", [constant(loc, capacity), size])),
    ]
    return result
