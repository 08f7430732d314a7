"""How a block of threads keeps tiles: which elements belong to which thread, and which tiles are in registers.

The elements of a nest of loops over tile axes are rows along the last axis. A power of two of lanes takes a row;
groups of lanes take rows, one after the other. A tile that is only ever used at the element at hand of nests over its
own axes is in registers: each thread has what belongs to it. Others are in shared memory. All this follows from the
text of the kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeGuard

from . import ir
from .parse import FunctionSource
from .summaries import has_any, names_in

WARP = 32  # lanes that combine by shuffles, on every device
MOST_THREADS, FEWEST_THREADS = 512, 64  # of a block
MOST_PRODUCT_THREADS = 256  # where there is a product: of more elements of a thread what it reads serves more
MOST_REGISTERS = 128  # words of one tile in a thread
MOST_SHARED = 64 << 10  # bytes of a block, which every GPU has
MOST_VECTOR = 8  # neighbours along a row that a thread has
SCRATCH = 4 << 10  # of these, by which warps combine their results
MOST_STACK = 1 << 20  # bytes of all tiles of a kernel on a CPU
_ELEMENTS = 16  # of a tile, for a thread
HALVES = ("float16", "bfloat16")
FEWEST_ROWS = 64  # of a product by matrix instructions, 16 for each of four warps
PADDING = 8  # halves after a row that matrix instructions read, so that rows begin in different banks

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

    @property
    def row(self) -> str:
        """C text of a thread's row."""
        return f"rank / {self.lanes} + row_step * {self.groups}"


@dataclass(frozen=True)
class Fragments(Layout):
    """Elements as matrix instructions leave them (PTX ISA, "Matrix fragments for mma.m16n8k16"): a warp has rows one
    below the other, 16 for each instruction, and four lanes have two neighbours each of 8 columns."""

    @property
    def lanes(self) -> int:
        return 4

    @property
    def row(self) -> str:
        warp_rows = self.rows * WARP // self.threads
        return f"rank / {WARP} * {warp_rows} + rank % {WARP} / 4 + row_step * 8"


@dataclass(frozen=True)
class Rows(Fragments):
    """One element for each row of fragments; the four lanes of a row have the same."""

    @property
    def is_exact(self) -> bool:
        return True


@dataclass(frozen=True)
class TilePlan:
    """`blocks` of so many `threads` run on a multiprocessor at a time, 0 if that is left open. `registers`: the tiles
    that are there, with their layout. `shared`: the others, with their offsets in bytes. `products`: the axes of nests
    whose elements are fragments, and of those along their rows. `operands`: the tiles that matrix instructions read,
    whose rows are padded; `second` has the offsets of those whose next tile is loaded while one is in use."""

    threads: int
    vector: int
    blocks: int
    registers: Mapping[str, Layout]
    shared: Mapping[str, int]
    shared_bytes: int
    products: frozenset[Axes] = frozenset()
    operands: frozenset[str] = frozenset()
    second: Mapping[str, int] = field(default_factory=dict)

    def layout(self, axes: Axes) -> Layout:
        return _layout_in(axes, self.threads, self.vector, self.products)

    def pitch(self, name: str, columns: int) -> int:
        """The elements between rows of a tile in shared memory."""
        return columns + PADDING if name in self.operands else columns


def layout_of(axes: Axes, threads: int, vector: int) -> Layout:
    columns = axes[-1][1]
    return Layout(math.prod(n for _, n in axes[:-1]), columns, threads, math.gcd(vector, columns))


def _layout_in(axes: Axes, threads: int, vector: int, products: frozenset[Axes]) -> Layout:
    if axes in products:
        return Rows(axes[0][1], 1, threads) if len(axes) == 1 else Fragments(axes[0][1], axes[1][1], threads, 2)
    return layout_of(axes, threads, vector)


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
    depth = a.array.type.shape[first.index(along)]
    if axes[0][1] % FEWEST_ROWS or axes[1][1] % 16 or depth % 16:
        return None
    return Product(a, b, depth, first[0] == along, second[0] == along)


def _is_operand(x: Any) -> TypeGuard[Any]:
    return isinstance(x, ir.Element) and isinstance(x.array.type, ir.TileType) and x.type.dtype.name in HALVES


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
    return has_any(loop.body, ir.For) and any(isinstance(n, ir.For) and n.capacity for n in ir.walk(*loop.body))


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


def plan_of(loop: ir.For, variables: Mapping[str, Any], matrix_units: bool = False) -> TilePlan:
    """The plan of a parallel loop, whose variables have these types; with `matrix_units`, for matrix instructions,
    where its products are of halves and the padded tiles fit."""
    if matrix_units and (found := _products(loop)):
        plan = _plan(loop, variables, _warps(found) * WARP, found)
        if plan.shared_bytes <= MOST_SHARED - SCRATCH:
            return _double(plan, loop, variables)
    return _plan(loop, variables, 0, {})


def _double(plan: TilePlan, loop: ir.For, variables: Mapping[str, Any]) -> TilePlan:
    """The plan with a second place for each tile that loops load ahead, as far as memory goes."""
    for n in ir.walk(*loop.body):
        second, offset = dict(plan.second), plan.shared_bytes
        for name in loaded_ahead(n, plan, loop) if isinstance(n, ir.For) else ():
            second[name] = offset
            offset += _padded_bytes(variables[name], True)
        if offset <= MOST_SHARED - SCRATCH:
            plan = replace(plan, second=second, shared_bytes=offset)
    return plan


def loaded_ahead(s: ir.For, plan: TilePlan, loop: ir.For | None = None) -> list[str]:
    """The operands that the iterations of a loop begin with loading, and that nothing else writes; `loop` is the
    parallel one around it."""
    if s.capacity or s.loop is not None or len(s.variables) != 1:
        return []
    kinds = (ir.Store, ir.Atomic, ir.Invoke, ir.Break, ir.Continue, ir.Return)
    if any(isinstance(n, kinds) for n in ir.walk(*s.body)):
        return []
    names = [copied[0].name for x in leading_statements(s) if (copied := copied_tile(x, plan))]
    if loop is None:
        return [name for name in names if name in plan.second]
    uses, own = ([name for name, *_ in _accesses(body, (), plan.products)] for body in (loop.body, s.body))
    sets = [n.name for n in ir.walk(*s.body) if isinstance(n, ir.SetElement)]
    return [name for name in names if uses.count(name) == own.count(name) and sets.count(name) == 1]


def leading_statements(s: ir.For) -> list[Any]:
    """What the body of a loop begins with, and what can be done for the next iteration before the one at hand:
    assignments of numbers, and nests that copy elements into tiles. They read nothing that the body assigns, but for
    numbers that stand before them and that it assigns nowhere else."""
    assigned = [n.name for n in ir.walk(*s.body) if isinstance(n, (ir.Assign, ir.Let, ir.SetElement))]
    taken, unknown = list[Any](), set(assigned)
    for x in s.body:
        number, loads = "", has_any((x,), ir.Load, ir.Element)
        if isinstance(x, ir.Assign) and isinstance(x.value.type, ir.ScalarType) and not loads:
            number = x.name
        elif not (isinstance(x, ir.For) and x.capacity and copied_elements(x)):
            break
        if names_in(x) & unknown or assigned.count(number) > 1:
            break
        unknown.discard(number)
        taken.append(x)
    return taken


def copied_tile(s: Any, plan: TilePlan) -> tuple[Any, Any] | None:
    """The element of an operand that a nest sets, and the one of an array that it loads for that, if it does no
    more."""
    copied = copied_elements(s) if isinstance(s, ir.For) and s.capacity else None
    return copied if copied and copied[0].name in plan.operands and copied[0].name in plan.shared else None


def copied_elements(s: ir.For) -> tuple[Any, Any] | None:
    """The element of a tile that a nest over its axes sets, and the one of an array that it loads for that, if it does
    no more."""
    loops, body = nest_of(s)
    if len(body) != 1 or not isinstance(body[0], ir.SetElement) or not isinstance(body[0].value, ir.Load):
        return None
    own = tuple(v for v, _ in axes_of(loops))
    return (body[0], body[0].value) if run_names(body[0].index) == own and len(own) == 2 else None


def _products(loop: ir.For) -> dict[Axes, list[Product]]:
    """By the axes of their nests."""
    found: dict[Axes, list[Product]] = {}
    for n in ir.walk(*loop.body):
        if isinstance(n, ir.For) and n.capacity:
            loops, body = nest_of(n)
            if product := product_of(loops, body):
                found.setdefault(axes_of(loops), []).append(product)
    return found


def _warps(products: Iterable[Axes]) -> int:
    """Warps that have the same number of rows of each product: as few as have registers for their sums, since each
    reads all of the second operand."""
    rows, elements = math.gcd(*(axes[0][1] for axes in products)), sum(a[0][1] * a[1][1] for a in products)
    return 8 if rows % 128 == 0 and elements > 4 * WARP * MOST_REGISTERS else 4


def _row_axes(loop: ir.For, products: Iterable[Axes]) -> set[Axes]:
    """The first axes of products whose nests are reductions of rows, or set elements one by one."""
    first = {axes[:1] for axes in products}
    for n in ir.walk(*loop.body):
        if isinstance(n, ir.For) and n.capacity and axes_of(nest_of(n)[0]) in first:
            loops, body = nest_of(n)
            plain = len(body) == 1 and isinstance(body[0], (ir.SetElement, ir.Store)) and not loops[-1].reductions
            if not plain and not is_reduction(body):
                first.discard(axes_of(loops))
    return first


def _plan(loop: ir.For, variables: Mapping[str, Any], threads: int, found: Mapping[Axes, list[Product]]) -> TilePlan:
    """The plan for so many threads, 0 if their number follows from the sizes."""
    largest, most, widest = 1, MOST_THREADS, 16 // MOST_VECTOR
    products = frozenset(found) | _row_axes(loop, found)
    operands = frozenset(x.array.name for group in found.values() for p in group for x in (p.a, p.b))
    for n in ir.walk(*loop.body):
        if isinstance(n, ir.For) and n.capacity:
            loops, body = nest_of(n)
            largest = max(largest, math.prod(capacity for _, capacity in axes_of(loops)))
            most = MOST_PRODUCT_THREADS if is_contraction(body) else most
        elif isinstance(n, (ir.Load, ir.Store)):
            widest = max(widest, n.array.type.dtype.itemsize)
    threads = threads or min(most, max(FEWEST_THREADS, 1 << max(largest // _ELEMENTS, 1).bit_length() - 1))
    vector = max(16 // widest, 1)
    registers, shared, offset = dict[str, Layout](), dict[str, int](), 0
    for name, axes in _own_axes(loop, products).items():
        kind = variables[name]
        if not isinstance(kind, ir.TileType):
            continue  # a local array, which each thread has
        if axes:
            layout = _layout_in(axes, threads, vector, products)
            if layout.elements * max(kind.dtype.itemsize // 4, 1) <= MOST_REGISTERS:
                registers[name] = layout
                continue
        shared[name] = offset
        offset += _padded_bytes(kind, name in operands)
    blocks = 2 if most == MOST_PRODUCT_THREADS == threads else 0  # one computes while the other waits
    return TilePlan(threads, vector, blocks, registers, shared, offset, products, operands)


def _padded_bytes(kind: Any, is_operand: bool) -> int:
    return -(-(kind.size + (kind.shape[0] * PADDING if is_operand else 0)) * kind.dtype.itemsize // 16) * 16


def _own_axes(loop: ir.For, products: frozenset[Axes]) -> dict[str, Axes | None]:
    """By tile: the axes of the nests that it is used in at the element at hand, None if it is used otherwise."""
    uses: dict[str, Axes | None] = {}
    for name, axes, index in _accesses(loop.body, (), products):
        own = None
        if axes is not None and index is not None:
            names = tuple(v for v, _ in axes)
            by_row = axes in products and index == names[:1] and axes[:1] in products
            own = axes if names == index else axes[:1] if by_row else None
        if uses.setdefault(name, own) != own:
            uses[name] = None
    return uses


Access = tuple[str, Axes | None, tuple[str, ...] | None]


def _accesses(body: tuple[Any, ...], axes: Axes | None, products: frozenset[Axes]) -> Iterator[Access]:
    """(tile, axes of the nest around, variables of the index) of each use; no axes where another thread may use it."""
    for s in body:
        if isinstance(s, ir.For):
            yield from _accesses_of_loop(s, axes, products)
            continue
        if isinstance(s, (ir.If, ir.While)):
            yield from _expression_accesses((s.condition,), axes)
            for inner in (s.body,) if isinstance(s, ir.While) else (s.then, s.orelse):
                yield from _accesses(inner, axes, products)
            continue
        if isinstance(s, ir.SetElement):
            yield s.name, axes, run_names(s.index)
        yield from _expression_accesses(ir.children(s), axes)


def _accesses_of_loop(s: ir.For, axes: Axes | None, products: frozenset[Axes]) -> Iterator[Access]:
    if not s.capacity:
        yield from _accesses(s.body, axes, products)
        return
    loops, body = nest_of(s)
    nest = axes_of(loops)
    if nest in products and (product := product_of(loops, body)):
        own = first_operand_axes(loops, product)
        yield product.a.array.name, own if own in products else None, run_names(product.a.index)
        yield product.b.array.name, None, None
        yield from _accesses((body[0], body[2]), nest, products)
        return
    if not is_reduction(body):
        yield from _accesses(body, nest, products)
        return
    inner, update = nest_of(body[1])
    whole = (*nest, *axes_of(inner))
    yield from _accesses((body[0], body[2]), nest if whole in products else None, products)
    yield from _accesses(update, whole if len(inner) == 1 else None, products)


def first_operand_axes(loops: list[ir.For], product: Product) -> Axes | None:
    """The axes of a product's first operand, if its rows are those of the product: it may be fragments."""
    if product.transposed_a:
        return None
    names = run_names(product.a.index)
    assert names is not None
    return axes_of(loops[:1]) + ((names[1], product.depth),)


def _expression_accesses(parts: Any, axes: Axes | None) -> Iterator[tuple[str, Axes | None, tuple[str, ...] | None]]:
    for n in ir.walk(*parts):
        if isinstance(n, ir.Element) and isinstance(n.array, ir.Local) and isinstance(n.array.type, ir.TileType):
            yield n.array.name, axes, run_names(n.index)
