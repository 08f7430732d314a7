"""Split-K products on grids without tensor cores: which tiles, and into how many parts the depth is cut."""

from __future__ import annotations

import functools

from ...array import ndarray
from ...driver.kernel_step import BLOCKS
from ...dtypes import DType, float32
from ...jit.text_kernel import TextKernel
from ..reduce.reduce import reduce_into
from ..reduce.reduce_text import ReduceOp
from ..workspace import unchecked_empty
from . import thresholds as th
from .gemm_key import SMALL, SQUARE, STACKED, TALL, TINY, WIDE, ProductKey
from .gemm_mma import Tile, tile_for

PART_SUM = ReduceOp("part_sum", "{0} + {1}", 0)


def schedule(c: ndarray, depth: int, whole: bool, dtype: DType | None = None) -> tuple[int, int]:
    """The tiles and the number of parts that take the least time for a product into `c` of operands of `dtype`, None:
    of its own: parts of the depth, which are computed side by side, as products of a batch, and then added. `whole`:
    without parts."""
    if not c._size:
        return SMALL, 1
    processors = c._buffer.device.driver.properties()["processors"]
    m, n = c._shape[-2:]
    if c._dtype is not float32 or dtype not in (None, float32):
        few = c._size < th.MIN_LARGE_TILES
        return SMALL if few else _large(m, n, c._size // (m * n), processors, c.itemsize > 4)[1], 1
    return float32_schedule(m, n, c._size // (m * n), depth, processors, 1 if whole else th.MAX_PARTS)[1:]


def blocks(tiles: int | Tile, c: ndarray, dtype: DType) -> int:
    """The grid for a product `c` of operands of `dtype`. Those that load a tile while they compute another one are
    persistent, no more than run at the same time; of others there are many, so that no processor is idle for long."""
    if isinstance(tiles, Tile):
        return tiles.blocks(c)
    properties = c._buffer.device.driver.properties()
    persistent = dtype.itemsize == 4 and properties.get("tensor_cores") in ("mma", "wgmma")
    of_processor = th.BLOCKS_OF_PROCESSOR[tiles] if persistent and tiles != TINY else BLOCKS
    return properties["processors"] * of_processor


def is_tiny(c: ndarray, depth: int, dtype: DType) -> bool:
    """Whether a product into `c` of operands of `dtype` is best without tiles, which would be padding for the most
    part: that of so many matrices, or rows, that there are threads for all processors."""
    m, n = c._shape[-2:]
    widened = dtype is not c._dtype and not dtype.is_narrow
    if not c._size or widened:
        return False
    matrices, columns = c._size // (m * n), max(1, th.TINY_BYTES // max(c.itemsize, 4))
    tiles = -(-m // th.LEAST_TILE_ROWS) * -(-n // th.LEAST_TILE_ROWS)
    fill = m * n / (tiles * th.LEAST_TILE_ROWS**2)
    threads = matrices * -(-m // th.TINY_ROWS) * -(-n // columns)
    processors = c._buffer.device.driver.properties()["processors"]
    if fill >= max(th.TINY_FILL) or not processors * th.TINY_LEAST_THREADS <= threads < th.TINY_MOST_THREADS:
        return False
    if matrices * tiles < th.TINY_TILES * processors and threads * th.TINY_THREAD_DEPTH < processors * depth:
        return False  # tiles are few, too, but are cut along the depth
    units = c._dtype is not float32 and tile_for(c, depth, dtype=dtype) is not None
    return not units or (fill < th.TINY_FILL[units] and depth <= th.TINY_DEPTH)


def _large(m: int, n: int, batch: int, processors: int, tall: bool = False) -> tuple[float, int]:
    """The waves of large tiles, in those of wide ones, and their kind."""
    kinds = ((128, 256, WIDE, 1.0), (256, 128, TALL, th.TALL_TILE_TIME))[tall:]
    tiles = ((-(-m // rows) * -(-n // columns) * batch, kind, time) for rows, columns, kind, time in kinds)
    waves = [(-(-count // processors) * time, kind) for count, kind, time in tiles]
    return min(waves, key=lambda found: found[0])


# A function of its arguments alone.
@functools.lru_cache(maxsize=4096)
def float32_schedule(m: int, n: int, batch: int, depth: int, processors: int, most: int) -> tuple[float, int, int]:
    """The time, in that of a large tile for an element of the depth, the tiles and the number of parts, `most` at
    most."""
    small = -(-m // 64) * -(-n // 64) * batch
    square = -(-m // 128) * -(-n // 128) * batch
    times = [
        (depth * max(-(-small // processors) * th.SMALL_TILE_TIME, th.SMALL_LEAST_TIME), SMALL, 1),
        (-(-square // (2 * processors)) * (depth + th.TILE_TIME) * th.SQUARE_TILES_TIME, SQUARE, 1),
    ]
    if small >= th.BLOCKS_OF_PROCESSOR[STACKED] * processors:
        times.append((-(-small // processors) * (depth + th.TILE_TIME) * th.STACKED_TILE_TIME, STACKED, 1))
    for parts in range(1, max(1, min(most, depth // th.MIN_PART_DEPTH)) + 1):
        waves, kind = _large(m, n, batch * parts, processors)
        added = th.SUM_TIME + parts * m * n * batch * th.PART_TIME if parts > 1 else 0
        added += th.REST_TIME if depth % parts else 0
        times.append((waves * (depth // parts + th.TILE_TIME) + added, kind, parts))
    return min(times)


def add_parts(kernel: TextKernel, a: ndarray, b: ndarray, c: ndarray, tiles: int, parts: int) -> None:
    """The product as the sum of those of `parts` of the depth, and of what is left over: `c` has too few tiles for all
    processors. The arrays have the same batch axes."""
    each, rest = divmod(a._shape[-1], parts)
    along, down, end = a._strides[-1], b._strides[-2], parts * each
    sums = unchecked_empty((parts + bool(rest), *c._shape), c._dtype, c.device)
    left = a._view(0, (parts, *a._shape[:-1], each), (each * along, *a._strides))
    right = b._view(0, (parts, *b._shape[:-2], each, b._shape[-1]), (each * down, *b._strides))
    key = ProductKey(a._dtype.name, len(c._shape) - 1, tiles)
    target, grid = sums._view(0, (parts, *c._shape), sums._strides), blocks(tiles, c, a._dtype)
    kernel.launch(key, c.device, left, right, target, grid)
    if rest:
        left = a._view(end * along, (*a._shape[:-1], rest), a._strides)
        right = b._view(end * down, (*b._shape[:-2], rest, b._shape[-1]), b._strides)
        last = sums._view(parts * sums._strides[0], c._shape, sums._strides[1:])
        kernel.launch(key._replace(batch_axes=len(c._shape) - 2), c.device, left, right, last, grid)
    reduce_into(PART_SUM, c, sums, (0,), c._dtype)
