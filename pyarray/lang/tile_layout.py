"""How a block of threads keeps tiles: in registers or in shared memory, and which of these are loaded ahead.

A tile that is only ever used at the element at hand of nests over its own axes is in registers: each thread has what
belongs to it (`element_layout.py`). Others are in shared memory. All this follows from the text of the kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..driver.kernel_step import shared_up_to
from . import ir
from .element_layout import WARP, Fragments, Layout, Rows, Waves, layout_of
from .parse import FunctionSource
from .summaries import has_any, names_in
from .tile_nests import (
    Axes,
    Product,
    axes_of,
    copied_elements,
    first_operand_axes,
    has_tiles,
    is_contraction,
    is_reduction,
    nest_of,
    product_of,
    run_names,
)

MOST_THREADS, FEWEST_THREADS = 512, 64  # of a block
MOST_PRODUCT_THREADS = 256  # where there is a product: of more elements of a thread what it reads serves more
MOST_REGISTERS = 128  # words of one tile in a thread
MOST_SHARED = 64 << 10  # bytes of a block, which every GPU has
MOST_VECTOR = 8  # neighbours along a row that a thread has
SCRATCH = 4 << 10  # of these, by which warps combine their results
MOST_STACK = 1 << 20  # bytes of all tiles of a kernel on a CPU
_ELEMENTS = 16  # of a tile, for a thread
SWIZZLE = 1 << 10  # bytes: where operands of matrix instructions begin, whose lines are swizzled
MOST_STAGED = 98 << 10  # bytes of a block with two stages, which every GPU with asynchronous copies has
SHARED_OF_SM90 = 227 << 10, 228 << 10  # bytes of a block and of a multiprocessor
STAGES = 4  # of tiles that are loaded ahead, where memory goes that far


@dataclass(frozen=True)
class TilePlan:
    """`blocks` of so many `threads` run on a multiprocessor at a time, 0 if that is left open. `registers`: the tiles
    that are there, with their layout. `shared`: the others, with their offsets in bytes. `products`: the axes of nests
    whose elements are fragments, and of those along their rows. `operands`: the tiles that matrix instructions read;
    `contracted`: those that other products read, of elements that threads can copy one by one, with how many follow a
    row where loops load them ahead, so that neighbours of a column are in different banks. `staged`: those of both that
    loops load ahead, with their offsets in a stage of `stage_bytes`. `waves`: fragments are those of AMD GPUs.
    `turned`: operands that are kept transposed, so that their rows are along the depth."""

    threads: int
    vector: int
    blocks: int
    registers: Mapping[str, Layout]
    shared: Mapping[str, int]
    shared_bytes: int
    products: frozenset[Axes] = frozenset()
    operands: frozenset[str] = frozenset()
    contracted: Mapping[str, int] = field(default_factory=dict)
    staged: Mapping[str, int] = field(default_factory=dict)
    stage_bytes: int = 0
    pure: frozenset[str] = frozenset()  # functions without effects
    waves: bool = False
    turned: frozenset[str] = frozenset()

    @property
    def exchanged(self) -> frozenset[str]:
        """The tiles in shared memory."""
        return frozenset(self.shared) | frozenset(self.staged)

    def padding(self, name: str) -> int:
        """Elements behind a row of a tile."""
        return self.contracted.get(name, 0) if name in self.staged else 0

    def layout(self, axes: Axes) -> Layout:
        return _layout_in(axes, self.threads, self.vector, self.products, self.waves)

    def has_two_in_flight(self, scratch_bytes: int) -> bool:
        """Whether sm_90 has memory for four stages: two products at a time, and what is loaded for the next two."""
        least, most = self.shared_in_all(scratch_bytes)
        return shared_up_to(least, most, self.threads, *SHARED_OF_SM90) == most

    def shared_in_all(self, scratch_bytes: int) -> tuple[int, int]:
        """The bytes of shared memory that a block needs, and the most that it uses, 0 for no more than it needs."""
        if not self.staged:
            return scratch_bytes, 0
        first = self.stages_at(scratch_bytes)
        stages = 2 if self.blocks else STAGES  # with two blocks the other one computes meanwhile, too
        return first + 2 * self.stage_bytes, first + stages * self.stage_bytes

    def stages_at(self, scratch_bytes: int) -> int:
        """Where stages begin, behind all else that threads share, which has so many bytes."""
        return _aligned(scratch_bytes, SWIZZLE)


def _layout_in(axes: Axes, threads: int, vector: int, products: frozenset[Axes], waves: bool) -> Layout:
    if axes in products and waves:
        return Waves(axes[0][1], axes[1][1], threads)
    if axes in products:
        return Rows(axes[0][1], 1, threads) if len(axes) == 1 else Fragments(axes[0][1], axes[1][1], threads, 2)
    return layout_of(axes, threads, vector)


def stack_bytes(variables: Mapping[str, Any]) -> int:
    """Of the tiles among variables."""
    return sum(k.size * k.dtype.itemsize for k in variables.values() if isinstance(k, ir.TileType))


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
    nbytes = stack_bytes(variables)
    if nbytes > MOST_STACK:
        what = f"the tiles of a kernel have {nbytes} bytes, and a thread has {MOST_STACK} for them"
        source.fail(tree.kernel.loc, what, "choose smaller tile sizes, or make two kernels of it")


def plan_of(
    loop: ir.For,
    variables: Mapping[str, Any],
    matrix_units: str = "",
    ahead: bool = False,
    pure: frozenset[str] = frozenset(),
) -> TilePlan:
    """The plan of a parallel loop, whose variables have these types; with `matrix_units` (see `Dialect`), for these
    instructions, where its products are of halves and the tiles fit; with `ahead`, tiles are loaded ahead. `pure` are
    the functions without effects."""
    if matrix_units and (found := _products(loop)):
        plan = _plan(loop, variables, _warps(found) * WARP, found, matrix_units == "waves")
        if plan.shared_bytes <= MOST_SHARED - SCRATCH:
            return _staged(replace(plan, pure=pure), loop, variables) if ahead else plan
    plan = _plan(loop, variables, 0, {})
    return _staged(replace(plan, pure=pure), loop, variables) if ahead else plan


def _staged(plan: TilePlan, loop: ir.For, variables: Mapping[str, Any]) -> TilePlan:
    """The plan with stages for the tiles that loops load ahead, as far as memory goes."""
    nodes = list(ir.walk(*loop.body))
    calls = [n for n in nodes if isinstance(n, (ir.Atomic, ir.Invoke)) and n.type is not None]
    scratch = max((most_bytes(n.type) for n in calls), default=0)
    scratch = max(scratch, SCRATCH if any(getattr(n, "reductions", ()) for n in nodes) else 0)
    for n in nodes:
        staged, nbytes = dict(plan.staged), plan.stage_bytes
        for name in loaded_ahead(n, plan, loop) if isinstance(n, ir.For) else ():
            staged[name] = nbytes
            nbytes += _bytes_of(variables[name], SWIZZLE, plan.contracted.get(name, 0))
        if nbytes == plan.stage_bytes:
            continue
        shared, offset = dict[str, int](), 0
        for name in plan.shared:
            if name not in staged:
                shared[name] = offset = _aligned(offset, SWIZZLE if name in plan.operands else 16)
                offset += _bytes_of(variables[name], SWIZZLE if name in plan.operands else 16)
        if _aligned(offset + scratch, SWIZZLE) + 2 * nbytes <= MOST_STAGED:
            plan = replace(plan, staged=staged, stage_bytes=nbytes, shared=shared, shared_bytes=offset)
    return plan


def loaded_ahead(s: ir.For, plan: TilePlan, loop: ir.For | None = None) -> list[str]:
    """The operands that the iterations of a loop begin with loading, and that nothing else writes; `loop` is the
    parallel one around it."""
    if s.capacity or s.loop is not None or len(s.variables) != 1 or s.ranges[0].step is not None:
        return []
    kinds, nodes = (ir.Store, ir.Atomic, ir.Break, ir.Continue, ir.Return), list(ir.walk(*s.body))
    if any(isinstance(n, kinds) or (isinstance(n, ir.Invoke) and n.function not in plan.pure) for n in nodes):
        return []
    names = [copied[0].name for x in leading_statements(s) if (copied := copied_tile(x, plan))]
    if loop is None:
        return [name for name in names if name in plan.staged]
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
    """The element of a product's operand that a nest sets, and the one of an array that it loads for that, if it does
    no more."""
    copied = copied_elements(s) if isinstance(s, ir.For) and s.capacity else None
    operands = plan.operands | set(plan.contracted)
    return copied if copied and copied[0].name in operands and copied[0].name not in plan.registers else None


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


def _plan(
    loop: ir.For,
    variables: Mapping[str, Any],
    threads: int,
    found: Mapping[Axes, list[Product]],
    waves: bool = False,
) -> TilePlan:
    """The plan for so many threads, 0 if their number follows from the sizes."""
    largest, most, widest, contracted = 1, MOST_THREADS, 16 // MOST_VECTOR, set[str]()
    products = frozenset(found) | (_row_axes(loop, found) if not waves else set())
    operands = frozenset(x.array.name for group in found.values() for p in group for x in (p.a, p.b))
    for n in ir.walk(*loop.body):
        if isinstance(n, ir.For) and n.capacity:
            loops, body = nest_of(n)
            largest = max(largest, math.prod(capacity for _, capacity in axes_of(loops)))
            if is_contraction(body):
                most = MOST_PRODUCT_THREADS
                contracted |= {getattr(n.array, "name", "") for n in ir.walk(body[1]) if isinstance(n, ir.Element)}
        elif isinstance(n, (ir.Load, ir.Store)):
            widest = max(widest, n.array.type.dtype.itemsize)
    threads = threads or min(most, max(FEWEST_THREADS, 1 << max(largest // _ELEMENTS, 1).bit_length() - 1))
    vector = max(16 // widest, 1)
    registers, shared, offset = dict[str, Layout](), dict[str, int](), 0
    for name, axes in _own_axes(loop, products).items():
        kind = variables[name]
        if not isinstance(kind, ir.TileType):
            continue  # a local array, which each thread has
        if axes and not (waves and name in operands):
            layout = _layout_in(axes, threads, vector, products, waves)
            if layout.elements * max(kind.dtype.itemsize // 4, 1) <= MOST_REGISTERS:
                registers[name] = layout
                continue
        to = SWIZZLE if name in operands else 16
        shared[name] = offset = _aligned(offset, to)
        offset += _bytes_of(kind, to)
    # one computes while the other waits; products by matrix instructions take the registers of both, but on AMD GPUs,
    # where it is waves of a unit that share them, and with more than half of them sums would be moved
    blocks = 2 if waves or (most == MOST_PRODUCT_THREADS == threads and not found) else 0
    padding = {name: _padding_of(variables[name]) for name in contracted & set(shared) - operands}
    padding = {name: elements for name, elements in padding.items() if elements}
    plan = TilePlan(threads, vector, blocks, registers, shared, offset, products, operands, padding, waves=waves)
    return replace(plan, turned=_across_the_depth(found)) if waves else plan


def _across_the_depth(found: Mapping[Axes, list[Product]]) -> frozenset[str]:
    """The operands whose rows are across the depth of each product that reads them."""
    ways: dict[str, set[bool]] = {}
    for p in (p for group in found.values() for p in group):
        for x, transposed in ((p.a, p.transposed_a), (p.b, p.transposed_b)):
            ways.setdefault(x.array.name, set()).add(transposed)
    return frozenset(name for name, transposed in ways.items() if transposed == {True})


def _padding_of(kind: Any) -> int:
    """Elements behind a row, whose next one begins with a whole vector in other banks; 0 if elements are of a size that
    can't be copied one by one."""
    each = 16 // kind.dtype.itemsize
    return each + -kind.shape[-1] % each if each in (2, 4) else 0


def most_bytes(kind: Any) -> int:
    """Of a value that a variable holds: a number, a view, a local array or several of them."""
    if isinstance(kind, ir.TupleType):
        return sum(_aligned(most_bytes(item), 16) for item in kind.items)
    if isinstance(kind, ir.ArrayType):
        return 64 + 16 * kind.ndim  # a pointer, sizes and strides
    return int(kind.dtype.itemsize * (kind.size if isinstance(kind, ir.LocalArrayType) else 1))


def _bytes_of(kind: Any, to: int, padding: int = 0) -> int:
    """Of a tile with padded rows, up to the next multiple."""
    return _aligned((kind.size + padding * math.prod(kind.shape[:-1])) * kind.dtype.itemsize, to)


def _aligned(nbytes: int, to: int) -> int:
    return -(-nbytes // to) * to


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
    yield from _accesses((body[0], body[2]), nest if {whole, nest} <= products else None, products)
    yield from _accesses(update, whole if len(inner) == 1 else None, products)


def _expression_accesses(parts: Any, axes: Axes | None) -> Iterator[tuple[str, Axes | None, tuple[str, ...] | None]]:
    for n in ir.walk(*parts):
        if isinstance(n, ir.Element) and isinstance(n.array, ir.Local) and isinstance(n.array.type, ir.TileType):
            yield n.array.name, axes, run_names(n.index)
