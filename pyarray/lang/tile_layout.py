"""How a block of threads keeps tiles: which elements belong to which thread, and which tiles are in registers.

The elements of a nest of loops over tile axes are rows along the last axis. A power of two of lanes takes a row;
groups of lanes take rows, one after the other. A tile that is only ever used at the element at hand of nests over its
own axes is in registers: each thread has what belongs to it. Others are in shared memory. All this follows from the
text of the kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import ir
from .parse import FunctionSource

WARP = 32  # lanes that combine by shuffles, on every device
MOST_THREADS, FEWEST_THREADS = 512, 64  # of a block
MOST_PRODUCT_THREADS = 256  # where there is a product: of more elements of a thread what it reads serves more
MOST_REGISTERS = 128  # words of one tile in a thread
MOST_SHARED = 64 << 10  # bytes of a block, which every GPU has
MOST_VECTOR = 8  # neighbours along a row that a thread has
SCRATCH = 4 << 10  # of these, by which warps combine their results
MOST_STACK = 1 << 20  # bytes of all tiles of a kernel on a CPU
_ELEMENTS = 16  # of a tile, for a thread

Axes = tuple[tuple[str, int], ...]  # variables that run over the axes of a nest, with their capacities


@dataclass(frozen=True)
class Layout:
    """Elements in rows, for so many threads, each of which has `vector` neighbours."""

    rows: int
    columns: int
    threads: int
    vector: int = 1

    @property
    def lanes(self) -> int:
        """Of a row: a warp's if there is a row for each warp, and no more than the row has elements."""
        rows = 1 << max(self.rows.bit_length() - 1, 0)
        columns = 1 << max(self.columns // self.vector - 1, 0).bit_length()
        return min(columns, max(WARP, self.threads // rows), self.threads)

    @property
    def groups(self) -> int:
        return self.threads // self.lanes

    @property
    def row_steps(self) -> int:
        return -(-self.rows // self.groups)

    @property
    def column_steps(self) -> int:
        return -(-self.columns // (self.lanes * self.vector))

    @property
    def elements(self) -> int:
        """Of a thread."""
        return self.row_steps * self.column_steps * self.vector

    @property
    def is_exact(self) -> bool:
        """Whether each thread has as many elements as any other."""
        return self.rows % self.groups == 0 and self.columns % (self.lanes * self.vector) == 0


@dataclass(frozen=True)
class TilePlan:
    """`blocks` of so many `threads` run on a multiprocessor at a time, 0 if that is left open. `registers`: the tiles
    that are there, with their layout. `shared`: the others, with their offsets in bytes."""

    threads: int
    vector: int
    blocks: int
    registers: Mapping[str, Layout]
    shared: Mapping[str, int]
    shared_bytes: int

    def layout(self, axes: Axes) -> Layout:
        return layout_of(axes, self.threads, self.vector)


def layout_of(axes: Axes, threads: int, vector: int) -> Layout:
    columns = axes[-1][1]
    return Layout(math.prod(n for _, n in axes[:-1]), columns, threads, math.gcd(vector, columns))


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


def check_tiles(tree: ir.Tree, source: FunctionSource) -> None:
    """Refuses a kernel whose tiles don't fit a block of a GPU, or the stack of a thread; on every device alike, so that
    a kernel that runs on one runs on all."""
    variables = dict(tree.kernel.variables)
    for loop in tree.kernel.body:
        if not isinstance(loop, ir.For) or loop.loop is None or not has_tiles(loop):
            continue
        nbytes = plan_of(loop, variables).shared_bytes
        if nbytes > MOST_SHARED - SCRATCH:
            what = f"the tiles that threads exchange have {nbytes} bytes, and {MOST_SHARED - SCRATCH} is the most"
            source.fail(loop.loc, what, "choose smaller tile sizes")
    nbytes = sum(k.size * k.dtype.itemsize for k in variables.values() if isinstance(k, ir.TileType))
    if nbytes > MOST_STACK:
        what = f"the tiles of a kernel have {nbytes} bytes, and a thread has {MOST_STACK} for them"
        source.fail(tree.kernel.loc, what, "choose smaller tile sizes, or make two kernels of it")


def has_tiles(loop: ir.For) -> bool:
    """Whether a parallel loop has loops over axes of tiles."""
    return any(isinstance(n, ir.For) and n.capacity for n in ir.walk(*loop.body))


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


def plan_of(loop: ir.For, variables: Mapping[str, Any]) -> TilePlan:
    """The plan of a parallel loop, whose variables have these types."""
    uses: dict[str, Any] = {}  # name → axes of the nests that it is used in, None if it can't be in registers
    largest, most, widest = 1, MOST_THREADS, 16 // MOST_VECTOR
    for n in ir.walk(*loop.body):
        if isinstance(n, ir.For) and n.capacity:
            loops, body = nest_of(n)
            largest = max(largest, math.prod(capacity for _, capacity in axes_of(loops)))
            most = MOST_PRODUCT_THREADS if is_contraction(body) else most
        elif isinstance(n, (ir.Load, ir.Store)):
            widest = max(widest, n.array.type.dtype.itemsize)
    threads = min(most, max(FEWEST_THREADS, 1 << max(largest // _ELEMENTS, 1).bit_length() - 1))
    vector = max(16 // widest, 1)
    for name, axes, index in _accesses(loop.body, ()):
        own = None if axes is None or index is None or tuple(v for v, _ in axes) != index else axes
        if uses.setdefault(name, own) != own:
            uses[name] = None
    registers, shared, offset = dict[str, Layout](), dict[str, int](), 0
    for name, axes in uses.items():
        kind = variables[name]
        if axes:
            layout = layout_of(axes, threads, vector)
            if layout.elements * max(kind.dtype.itemsize // 4, 1) <= MOST_REGISTERS:
                registers[name] = layout
                continue
        shared[name] = offset
        offset += -(-kind.size * kind.dtype.itemsize // 16) * 16
    blocks = 2 if most == MOST_PRODUCT_THREADS == threads else 0  # one computes while the other waits
    return TilePlan(threads, vector, blocks, registers, shared, offset)


def _accesses(body: tuple[Any, ...], axes: Axes | None) -> Iterator[tuple[str, Axes | None, tuple[str, ...] | None]]:
    """(tile, axes of the nest around, variables of the index) of each use; no axes where another thread may use it."""
    for s in body:
        if isinstance(s, ir.For):
            yield from _accesses_of_loop(s, axes)
            continue
        if isinstance(s, (ir.If, ir.While)):
            yield from _expression_accesses((s.condition,), axes)
            for inner in (s.body,) if isinstance(s, ir.While) else (s.then, s.orelse):
                yield from _accesses(inner, axes)
            continue
        if isinstance(s, ir.SetElement):
            yield s.name, axes, run_names(s.index)
        yield from _expression_accesses(ir.children(s), axes)


def _accesses_of_loop(s: ir.For, axes: Axes | None) -> Iterator[tuple[str, Axes | None, tuple[str, ...] | None]]:
    if not s.capacity:
        yield from _accesses(s.body, axes)
        return
    loops, body = nest_of(s)
    nest = axes_of(loops)
    if not is_reduction(body):
        yield from _accesses(body, nest)
        return
    inner, update = nest_of(body[1])
    yield from _accesses((body[0], body[2]), None)
    yield from _accesses(update, (*nest, *axes_of(inner)) if len(inner) == 1 else None)


def _expression_accesses(parts: Any, axes: Axes | None) -> Iterator[tuple[str, Axes | None, tuple[str, ...] | None]]:
    for n in ir.walk(*parts):
        if isinstance(n, ir.Element) and isinstance(n.array, ir.Local) and isinstance(n.array.type, ir.TileType):
            yield n.array.name, axes, run_names(n.index)
