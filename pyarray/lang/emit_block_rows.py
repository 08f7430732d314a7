"""GPU text of a kernel of its own for cached rows that a block keeps as a whole, which the host launches for them.

The number of threads is a constant, nothing is tested that the host has tested (`KernelStep.guards`), and a
block takes one row, so the kernel has fewer registers than the one for all rows, and more blocks run at once.
It is for arrays that don't fit into the cache: rows are loaded past the first level and stored to be evicted
first. Of the longest rows a part is in shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..driver.kernel_step import MOST_GUARDS, THREADS, Guard, KernelStep
from . import ir
from .cached_rows import CachedRow, Ref
from .emit_cached_rows import MIN_BLOCKS, shared_memory_lines, vector_bytes
from .loop_dependences import structural_key

# Reductions of an iteration, at most, for whose results there is room in shared memory beside a row: up to 16 bytes of
# each warp.
_MOST_REDUCTIONS = 32


@dataclass(frozen=True)
class BlockShape:
    """`threads` of a block, and how many `blocks` a multiprocessor runs at a time, which limits registers. `edges`:
    rows may begin and end between vectors. `shared_vectors`: those of each cached element that a thread has in shared
    memory, at most, of rows for which registers don't suffice; a block has `shared_bytes` for them."""

    threads: int
    blocks: int
    edges: bool = False
    shared_vectors: int = 0
    shared_bytes: int = 0

    @property
    def name(self) -> str:
        """The end of the kernel's name."""
        return f"{self.threads}{'_shared' * bool(self.shared_vectors)}{'_edges' * self.edges}"


_SIZES = (
    (THREADS // 4, 4 * MIN_BLOCKS),
    (THREADS // 2, 2 * MIN_BLOCKS),
    (THREADS, MIN_BLOCKS),
    (2 * THREADS, 2),
    (4 * THREADS, 1),
)


def block_row_step(
    row: CachedRow, loop: ir.For, step: KernelStep, shape: BlockShape, slots: Mapping[str, int]
) -> KernelStep | None:
    """The step of the kernel for such blocks, which comes before `step`, for all rows; None where slots can't tell
    whether the kernel may take the rows. `slots` are the first ones of the parameters."""
    streamed = streamed_elements(row, loop)
    if step.row_slot is None or step.size_slots is None or not streamed:
        return None
    if shape.threads > 2 * THREADS and row.width > 4 and not any(row.stores):
        return None  # what is computed of narrow elements takes longer than to read them twice
    capacity = shape.threads * row.elements
    size = Guard(step.row_slot, -1, capacity // 2, capacity)
    if shape.shared_vectors:
        size = Guard(step.row_slot, -1, capacity + 1, capacity + shape.threads * shape.shared_vectors * row.width)
    guards = _row_guards(row, size, shape.edges, step.row_slot, slots)
    if guards is None:
        return None
    row_bytes = sum(row.kinds[ref].dtype.itemsize for ref in streamed)
    symbol, _, number = step.symbol.rpartition("_")
    return replace(
        step,
        symbol=f"{symbol}_block{number}_{shape.name}",
        guards=guards,
        row_bytes=row_bytes,
        per_thread=1,
        threads=shape.threads,
        shared=shape.shared_bytes,
    )


def cached_row_step(
    row: CachedRow, name: str, sizes: tuple[int, int], edges: bool, step: KernelStep, slots: Mapping[str, int]
) -> KernelStep | None:
    """The step of the kernel for rows that teams cache, of these sizes, which comes before `step`, for other rows.
    `edges`: rows may begin and end between vectors. None where slots can't tell whether all rows are such. `slots` are
    the first ones of the parameters."""
    if step.row_slot is None or step.size_slots is None:
        return None
    guards = _row_guards(row, Guard(step.row_slot, -1, *sizes), edges, step.row_slot, slots)
    symbol, _, number = step.symbol.rpartition("_")
    return None if guards is None else replace(step, symbol=f"{symbol}_{name}{number}", guards=guards)


def _row_guards(
    row: CachedRow, size: Guard, edges: bool, row_slot: int, slots: Mapping[str, int]
) -> tuple[Guard, ...] | None:
    """The conditions on the argument slots under which the rows have that `size`, in `row_slot`, are contiguous and,
    without `edges`, begin and end with vectors. `slots` are the first ones of the parameters. None if slots alone can't
    tell."""
    bounds = {structural_key((s.ranges[0].start, s.ranges[0].stop)) for s in row.loops}
    if len(bounds) > 1 or any(a != b for a in row.reloaded for b in row.stored):
        return None
    guards = {size} if edges else {size, Guard(row_slot, row.width - 1, 0, 0)}
    for (name, index), kind in row.kinds.items():
        of_array = _array_guards(kind, slots[name], index.index(""), 1 if edges else row.width)
        if of_array is None:
            return None
        guards |= of_array
    used = tuple(sorted(g for g in guards if g.mask))  # without those of elements of a byte, which are always aligned
    return used if len(used) <= MOST_GUARDS else None


def _array_guards(kind: ir.ArrayType, slot: int, row_axis: int, width: int) -> set[Guard] | None:
    """That each row of an array is contiguous along `row_axis` and aligned to its vectors."""
    size = kind.dtype.itemsize
    mask = min(size * width, 16) - 1
    guards = {Guard(slot, mask, 0, 0)}
    if kind.strided:
        strides = slot + 1 + kind.ndim
        aligned = {Guard(strides + axis, mask, 0, 0) for axis in range(kind.ndim) if axis != row_axis}
        return guards | aligned | {Guard(strides + row_axis, -1, size, size)}
    if row_axis != kind.ndim - 1:
        return None
    return guards | ({Guard(slot + kind.ndim, mask // size, 0, 0)} if kind.ndim > 1 else set())


def block_shapes(row: CachedRow, loop: ir.For, shared_rows: int) -> Iterator[BlockShape]:
    """The kernels of a row that a loop's iteration caches, in the order in which their guards are tested.
    `shared_rows`: bytes of a row in shared memory."""
    shapes = [BlockShape(threads, blocks) for threads, blocks in _SIZES]
    vectors = shared_rows // (shapes[-1].threads * vector_bytes(row))
    reductions = sum(len(s.reductions) for s in ir.walk(*loop.body) if isinstance(s, ir.For))
    if vectors > 0 and reductions <= _MOST_REDUCTIONS:
        # all of the bytes, also where vectors leave some: by these the host knows the devices that it is compiled for
        shapes.append(replace(shapes[-1], shared_vectors=vectors, shared_bytes=shared_rows))
    yield from shapes
    yield from (replace(shape, edges=True) for shape in shapes if row.width > 1)


def streamed_elements(row: CachedRow, loop: ir.For) -> frozenset[Ref]:
    """Those that differ in each iteration of the parallel loop: no other block uses them."""
    return frozenset(ref for ref in row.kinds if set(loop.variables) <= set(ref[1]))


def block_row_head(row: CachedRow, shape: BlockShape, stop: str) -> str:
    """The names that an iteration's text uses; `t` is the iteration. Rows without edges begin with the thread's first
    element, so that all of its addresses are one pointer and constants."""
    first = "0" if shape.edges else f"rank * {row.width}"
    shared = shared_memory_lines(row, shape.threads, shape.shared_vectors) if shape.shared_vectors else ""
    return f"""\
const int rank = (int)threadIdx.x, row_low = {first}, row_size = (int)({stop}) - row_low;
const int64_t t = blockIdx.x;
const int team = {shape.threads}, warps = team >> PA_WARP_BITS;
const pa_lanes lanes = pa_lanes_of(team);
{shared}"""
