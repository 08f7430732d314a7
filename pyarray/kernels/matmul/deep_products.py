"""Split-K products on grids, of few results that have a long depth each, of all types: parts of the depth are computed
side by side, as a stack of products, and then added. A weight's gradient and `x.T @ x` of many rows are such."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ... import jit
from ...array import ndarray
from ...dtypes import DType, bool_, float32
from ...lang.markers import tiles, unordered
from ..aligned_rows import VECTOR_BYTES
from ..reduce.reduce import reduce_into
from ..workspace import unchecked_empty
from . import split_k
from . import thresholds as th
from .gemm_mma import TILES, least_cost, tile_for


def parts(a: ndarray, c: ndarray) -> int:
    """The number of parts of the depth in which `c = a @ b` takes the least time; 1 if that is as a whole."""
    depth = a._shape[-1]
    if depth < th.DEEP_LEAST or a._dtype is bool_ or not c._size:
        return 1
    m, n = c._shape[-2:]
    properties = c._buffer.device.driver.properties()
    processors: int = properties["processors"]
    if _is_tiny(c):
        return min(th.DEEP_BLOCKS * processors, depth // th.DEEP_LEAST_PART)
    if _in_tiles(a, c):
        return _parts_in_tiles(m, n, depth, processors)
    if a._dtype is float32:
        return 1
    units = properties.get("tensor_cores", "") if tile_for(c, depth, dtype=a._dtype) else ""
    return _parts_of_stack(m, n, c._size // (m * n), depth, processors, units, a.itemsize)


def multiply(
    a: ndarray, b: ndarray, c: ndarray, count: int, product: Callable[[ndarray, ndarray, ndarray], None]
) -> None:
    """`c[...] = a @ b` as the sum of so many parts, or of up to a quarter less that leave less of the depth.
    `product(c, a, b)` computes stacks. A part is deeper than a vector has elements."""
    step = VECTOR_BYTES // a.itemsize if a.itemsize in (a._strides[-1], b._strides[-2]) else 1
    count, each = _even_parts(a._shape[-1], count, step)
    rest = a._shape[-1] - count * each
    kind = float32 if a._dtype.is_narrow else c._dtype
    sums = unchecked_empty((count + bool(rest), *c._shape), kind, c._buffer.device)
    left, right = (_cut(a, -1, c.ndim, count, each), _cut(b, -2, c.ndim, count, each))
    stack = sums._view(0, (count, *c._shape), sums._strides)
    if _is_tiny(c):
        _sums(*c._shape, kind)(stack, left, right)
    elif _in_tiles(a, c):
        _multiply_in_tiles(left, right, stack)
    else:
        product(stack, left, right)
    if rest:
        last = sums._view(count * sums._strides[0], (1, *c._shape), sums._strides)
        left, right = (_cut(x, axis, c.ndim, 1, rest, count * each) for x, axis in ((a, -1), (b, -2)))
        product(last, left, right)
    reduce_into(split_k.PART_SUM, c, sums, (0,), kind)


def _cut(x: ndarray, axis: int, ndim: int, count: int, each: int, first: int = 0) -> ndarray:
    """Parts of this axis, from an element on, as the first of `ndim` + 1 axes."""
    step, missing = x._strides[axis], ndim - x.ndim
    shape = *x._shape[:axis], each, *x._shape[x.ndim + axis + 1 :]
    return x._view(first * step, (count, *(1,) * missing, *shape), (each * step, *(0,) * missing, *x._strides))


# A function of its arguments alone.
@functools.lru_cache(maxsize=4096)
def _even_parts(depth: int, count: int, step: int) -> tuple[int, int]:
    """The number of parts and the depth of one, a multiple of `step`, that leave the least of the depth."""
    found = ((depth - n * (depth // n // step * step), -n) for n in range(max(1, count - count // 4), count + 1))
    number = -min(found)[1]
    return number, depth // number // step * step


def _is_tiny(c: ndarray) -> bool:
    """Whether a thread has sums of all results."""
    return c.ndim == 2 and max(c._shape) <= th.DEEP_TINY


def _in_tiles(a: ndarray, c: ndarray) -> bool:
    """Whether the parts are products in tiles of the kernel language: of float32, which has no matrix instructions, and
    where the tiles of others would be padding for the most part."""
    narrow = a._dtype.kind == "f" and a.itemsize > 1 and max(c._shape) <= th.DEEP_NARROW
    return c.ndim == 2 and (a._dtype is float32 or narrow)


# A function of sizes and the processors' number and units; the tiles are constants.
@functools.lru_cache(maxsize=4096)
def _parts_of_stack(m: int, n: int, matrices: int, depth: int, processors: int, units: str, size: int) -> int:
    """The number of parts of a product that is computed as a stack."""
    small = -(-m // 64) * -(-n // 64) * matrices
    entries = TILES[units, size] if units else ()
    counts = {processors * (1 if t.bulk else 2) // t.tiles_of(m, n, matrices) for t, _ in entries}
    counts = counts or {2 * processors // small}

    def microseconds(count: int) -> float:
        added = th.DEEP_LAUNCHES_TIME + th.DEEP_PART_TIME * count * m * n * matrices if count > 1 else 0
        if not units:
            return -(-small * count // processors) * depth / count * th.DEEP_SMALL_TIME + added
        cost, _ = least_cost(m, n, matrices * count, processors, units, size)
        return 2e-6 * cost * processors * depth / count + added

    most = depth // th.DEEP_LEAST_PART
    return min((microseconds(n), n) for n in {1, *(max(1, min(n, most)) for n in counts)})[1]


# A function of sizes and the processors' number.
@functools.lru_cache(maxsize=4096)
def _parts_in_tiles(m: int, n: int, depth: int, processors: int) -> int:
    """The number of parts of a product in tiles."""
    rows, columns, _ = _tile(min(m, n), max(m, n))
    blocks = 8 if rows * columns <= 1024 else 4 if rows * columns <= 2048 else 2  # of a processor
    count = min(processors * blocks // (-(-min(m, n) // rows) * -(-max(m, n) // columns)), depth // th.DEEP_LEAST_PART)
    if count < 2:
        return 1
    each = -(-depth // count) * th.DEEP_TILE_TIME * rows * columns * blocks / (64 * 64 * 2)
    whole = split_k.float32_schedule(m, n, 1, depth, processors, th.MAX_PARTS)[0]
    return count if each + th.DEEP_LAUNCHES_TIME < whole * th.FLOAT32_TILE_TIME else 1


def _multiply_in_tiles(a: ndarray, b: ndarray, c: ndarray) -> None:
    """A stack of products."""
    if c._shape[1] > c._shape[2]:
        a, b, c = b.mT, a.mT, c.mT
    _products(_tile(*c._shape[1:]), c._dtype)(c, a, b)


def _tile(m: int, n: int) -> tuple[int, int, int]:
    """Rows, columns and depth of a tile of a product with more columns than rows; timed on an H200."""
    rows = next((size for size in (16, 32) if size >= m), 64)
    columns = next((size for size in (16, 32, 64) if size >= n), 128)
    return rows, columns, 64 if rows == 16 else 32


# The text depends on these; dtypes are in its variants' keys.
@functools.cache
def _products(tile: tuple[int, int, int], wide: DType) -> jit.kernel.Kernel:
    rows, columns, depth = tile
    text = f"""def deep_products(c, a, b):
    for p, i, j in tiles(c, (1, {rows}, {columns})):
        total = zeros((i, j), wide)
        for k in tiles(a.shape[2], {depth}):
            total += a[p.start, i, k] @ b[p.start, k, j]
        c[p.start, i, j] = total
"""
    return jit.kernel.from_text("deep_products", text, {"wide": wide, "tiles": tiles, "zeros": np.zeros})


# The same.
@functools.cache
def _sums(m: int, n: int, wide: DType) -> jit.kernel.Kernel:
    pairs = [(i, j) for i in range(m) for j in range(n)]
    starts = "".join(f"        s{i}{j} = wide(0)\n" for i, j in pairs)
    loads = "".join(f"            x{i} = wide(a[p, {i}, k])\n" for i in range(m))
    loads += "".join(f"            y{j} = wide(b[p, k, {j}])\n" for j in range(n))
    added = "".join(f"            s{i}{j} = s{i}{j} + x{i} * y{j}\n" for i, j in pairs)
    stores = "".join(f"        c[p, {i}, {j}] = s{i}{j}\n" for i, j in pairs)
    text = f"""def deep_sums(c, a, b):
    for p in range(c.shape[0]):
{starts}        for k in unordered(range(a.shape[2])):
{loads}{added}{stores}"""
    return jit.kernel.from_text("deep_sums", text, {"wide": wide, "unordered": unordered})
