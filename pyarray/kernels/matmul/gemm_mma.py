"""Tile shapes of matrix products on tensor cores (csrc/device/pa_gemm_mma.h), chosen by a cost model."""

from __future__ import annotations

import functools
from typing import NamedTuple

from ...array import ndarray
from ...driver.kernel_step import THREADS
from ...dtypes import DType
from ...errors import OutOfMemoryError
from ..elementwise.elementwise import COPY, launch_map
from ..workspace import unchecked_empty
from . import thresholds as th

_TYPES = {"float16": "f16", "bfloat16": "bf16", "float64": "f64"}


class Tile(NamedTuple):
    """The tile of C, a warp's part of it, the depth of a stage, and the number of stages in shared memory. `bulk`:
    with bulk tensor copies (csrc/device/pa_gemm_tma.h)."""

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int
    depth: int
    stages: int
    bulk: bool = False

    def macros(self, dtype: DType) -> str:
        """The macros that the header needs."""
        text = f'#define PA_MMA "{_TYPES[dtype.name]}"\n'
        for name, value in self._asdict().items():
            text += f"#define PA_M_{name.upper()} {int(value)}\n"
        return text

    def shared(self, dtype: DType) -> int:
        """Bytes of shared memory; with bulk copies also for a part of C, 128 columns wide, and what these need."""
        slices = self.stages * (self.rows + self.columns) * self.depth * dtype.itemsize
        return slices + (self.rows * 128 * dtype.itemsize + 512 if self.bulk else 0)

    @property
    def threads(self) -> int:
        """Of a block: a warpgroup more for bulk copies."""
        return THREADS + 128 if self.bulk else THREADS

    def blocks(self, c: ndarray) -> int:
        """The grid for a product `c`: a block per tile, or with bulk copies no more than processors."""
        m, n = c._shape[-2:]
        tiles = -(-m // self.rows) * -(-n // self.columns) * (c._size // (m * n)) if c._size else 0
        return min(tiles, c._buffer.device.driver.properties()["processors"]) if self.bulk else tiles


# By a device's instructions and bytes of an element: tiles with their TFLOP/s on an H100, those of "wgmma" on an
# H200, with all processors busy (measured). "mma" has 99 KiB of shared memory on every device, "wgmma" 227.
TILES: dict[tuple[str, int], tuple[tuple[Tile, int], ...]] = {
    ("mma", 2): (
        (Tile(128, 256, 64, 64, 32, 4), 315),
        (Tile(256, 128, 64, 64, 32, 4), 310),
        (Tile(64, 64, 16, 32, 64, 3), 210),
    ),
    ("wgmma", 2): (
        (Tile(128, 256, 16, 256, 64, 4, True), 700),
        (Tile(128, 128, 16, 128, 64, 6, True), 650),
        (Tile(128, 64, 16, 64, 64, 4), 390),
    ),
    ("mma", 8): (
        (Tile(128, 128, 64, 32, 16, 3), 50),
        (Tile(128, 64, 32, 32, 16, 4), 47),
        (Tile(64, 64, 16, 32, 16, 3), 42),
    ),
}
TILES["wgmma", 8] = ((Tile(128, 128, 64, 32, 32, 3), 52), *TILES["mma", 8][1:])


def tile_for(c: ndarray) -> Tile | None:
    """The tile for a product `c`, the fastest by the cost model; None without tensor cores for its dtype."""
    properties = c._buffer.device.driver.properties()
    units = properties.get("tensor_cores")
    if not units or c._dtype.name not in _TYPES:
        return None
    m, n = c._shape[-2:]
    matrices = c._size // (m * n) if c._size else 0
    return _cheapest_tile(m, n, matrices, properties["processors"], units, c.itemsize)


# A function of sizes and the processors' number and units; the tiles are constants.
@functools.lru_cache(maxsize=4096)
def _cheapest_tile(m: int, n: int, matrices: int, processors: int, units: str, size: int) -> Tile:
    """The tile of the least cost: the work of the busiest processor, and the bytes that all fetch."""

    fetch_cost = th.BULK_FETCH_COST if TILES[units, size][0][0].bulk else th.FETCH_COST

    def cost(entry: tuple[Tile, int]) -> float:
        tile, speed = entry
        count = -(-m // tile.rows) * -(-n // tile.columns) * matrices
        fetched = count * (tile.rows + tile.columns) * size
        return -(-count // processors) * tile.rows * tile.columns / speed + fetched * fetch_cost

    return min(TILES[units, size], key=cost)[0]


def copy_if_unaligned(x: ndarray, uses: int) -> ndarray:
    """`x`, or a copy with aligned rows, which are loaded by vectors, if its elements have enough `uses` and
    there is memory for it. Broadcast matrices are copied once."""
    rs, cs = x._strides[-2:]
    size = x.itemsize
    pitch = rs if cs == size else cs
    unaligned = any(step % th.VECTOR_BYTES for step in (x._ptr, pitch, *x._strides[:-2]))
    if uses < th.COPY_USES or min(x._shape[-2:]) < th.COPY_MIN_SIDE or ((cs == size or rs == size) and not unaligned):
        return x
    *_, rows, columns = x._shape
    lead = tuple(n if step else 1 for n, step in zip(x._shape[:-2], x._strides[:-2], strict=True))
    each = th.VECTOR_BYTES // size
    try:
        padded = unchecked_empty((*lead, rows, -(-columns // each) * each), x._dtype, x.device)
    except OutOfMemoryError:
        return x
    unbroadcast = (*lead, rows, columns)
    launch_map(COPY, x._dtype, padded._view(0, unbroadcast, padded._strides), (x._view(0, unbroadcast, x._strides),))
    steps = (stride if step else 0 for stride, step in zip(padded._strides[:-2], x._strides[:-2], strict=True))
    return padded._view(0, x._shape, (*steps, *padded._strides[-2:]))
