"""Nests of loops over the axes of tiles: what they compute.

Inference makes a nest of each statement on tiles (`infer_tiles.py`); here are the forms that the emitters have texts
for: reductions, contractions, products by matrix instructions, copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

from . import ir
from .summaries import has_any, names_in

HALVES = ("float16", "bfloat16")
_FEWEST_ROWS = 64  # of a product by matrix instructions, 16 for each of four warps

Axes = tuple[tuple[str, int], ...]  # variables that run over the axes of a nest, with their capacities


def nest_of(s: ir.For) -> tuple[list[ir.For], tuple[Any, ...]]:
    """The loops over axes that stand directly in each other, and the body of the innermost one."""
    loops = [s]
    while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], ir.For) and loops[-1].body[0].capacity:
        loops.append(loops[-1].body[0])
    return loops, loops[-1].body


def axes_of(loops: list[ir.For]) -> Axes:
    return tuple((s.variables[0], s.capacity) for s in loops)


def is_reduction(body: tuple[Any, ...]) -> bool:
    """Whether the body of a nest is a reduction that threads share: start, loops, result."""
    return len(body) == 3 and isinstance(body[1], ir.For) and bool(body[1].capacity)


def is_contraction(body: tuple[Any, ...]) -> bool:
    """Whether it is one that a thread runs along: start, a loop that updates the accumulator, result."""
    if len(body) != 3 or not isinstance(body[0], ir.Assign) or not isinstance(body[1], ir.For):
        return False
    loop, last = body[1], body[2]
    update = loop.body[0] if len(loop.body) == 1 else None
    if loop.capacity or not isinstance(update, ir.Assign) or not isinstance(last, ir.SetElement):
        return False
    same = isinstance(last.value, ir.Local) and last.value.name == body[0].name == update.name
    return same and not any(isinstance(n, ir.Let) for n in ir.walk(*body))


class Product(NamedTuple):
    """A contraction of two tiles of halves, in float32: the operands, and whether the rows in shared memory of each are
    along the axis that goes."""

    a: Any
    b: Any
    depth: int
    transposed_a: bool
    transposed_b: bool


def product_of(loops: list[ir.For], body: tuple[Any, ...]) -> Product | None:
    """The product that a contraction is, if matrix instructions compute it: its sizes are multiples of theirs."""
    if len(loops) != 2 or not is_contraction(body):
        return None
    along, value = body[1].variables[0], body[1].body[0].value
    if not isinstance(value, ir.Builtin) or value.name != "fma" or value.type.dtype.name != "float32":
        return None
    a, b = (x.a if isinstance(x, ir.Cast) else None for x in value.args[:2])
    (rows, _), (columns, _) = axes = axes_of(loops)
    if not _is_operand(a) or not _is_operand(b) or a.type != b.type or not isinstance(value.args[2], ir.Local):
        return None
    first, second = run_names(a.index), run_names(b.index)
    if first not in ((rows, along), (along, rows)) or second not in ((along, columns), (columns, along)):
        return None
    if len(a.index) != 2 or len(b.index) != 2:
        return None
    depth = a.array.type.shape[first.index(along)]
    if axes[0][1] % _FEWEST_ROWS or axes[1][1] % 16 or depth % 16:
        return None
    return Product(a, b, depth, first[0] == along, second[0] == along)


def _is_operand(x: Any) -> TypeGuard[Any]:
    return isinstance(x, ir.Element) and isinstance(x.array.type, ir.TileType) and x.type.dtype.name in HALVES


def has_tiles(loop: ir.For) -> bool:
    """Whether a parallel loop has loops over axes of tiles."""
    return has_any(loop.body, ir.For) and any(isinstance(n, ir.For) and n.capacity for n in ir.walk(*loop.body))


def is_product_of_tiles(loop: ir.For) -> bool:
    """Whether the last two axes of a parallel loop are those of a product by matrix instructions in it."""
    starts = {n.name: names_in(n.value) for n in ir.walk(*loop.body) if isinstance(n, ir.Assign)}
    for n in ir.walk(*loop.body):
        loops, body = nest_of(n) if isinstance(n, ir.For) and n.capacity else ([], ())
        if len(loop.variables) > 1 and product_of(loops, body):
            of_axes: list[Any] = [starts.get(getattr(x.ranges[0].start, "name", ""), frozenset()) for x in loops]
            if all(v in names for v, names in zip(loop.variables[-2:], of_axes, strict=True)):
                return True
    return False


def run_names(index: tuple[Any, ...]) -> tuple[str, ...] | None:
    """The variables at whose element a tile is used; None of another index."""
    names = []
    for position in index:
        if isinstance(position, ir.Const):
            continue
        if not isinstance(position, ir.Binary) or not isinstance(position.a, ir.Local):
            return None
        names.append(position.a.name)
    return tuple(names)


def copied_elements(s: ir.For) -> tuple[Any, Any] | None:
    """The element of a tile that a nest over its axes sets, and the one of an array that it loads for that, if it does
    no more."""
    loops, body = nest_of(s)
    if len(body) != 1 or not isinstance(body[0], ir.SetElement) or not isinstance(body[0].value, ir.Load):
        return None
    own = tuple(v for v, _ in axes_of(loops))
    return (body[0], body[0].value) if run_names(body[0].index) == own and len(own) == 2 else None


def transposed_copy(s: ir.For) -> ir.For:
    """The same copy into a tile of two axes that is kept transposed."""
    (outer, inner), (store,) = nest_of(s)
    store = replace(store, shape=store.shape[::-1], index=store.index[::-1])
    return replace(inner, body=(replace(outer, body=(store,)),))


def first_operand_axes(loops: list[ir.For], product: Product) -> Axes | None:
    """The axes of a product's first operand, if its rows are those of the product: it may be fragments."""
    if product.transposed_a:
        return None
    names = run_names(product.a.index)
    assert names is not None
    return axes_of(loops[:1]) + ((names[1], product.depth),)
