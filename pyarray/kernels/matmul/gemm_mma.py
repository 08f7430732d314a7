"""Matrix products on tensor cores: which, in which tiles. The kernel is csrc/device/pa_gemm_mma.h."""

from __future__ import annotations

import functools
from typing import NamedTuple

from ...array import ndarray
from ...dtypes import DType
from ...errors import OutOfMemoryError
from ..elementwise.elementwise import COPY, launch_map
from ..workspace import scratch

_TYPES = {"float16": "f16", "bfloat16": "bf16", "float64": "f64"}
CHUNK = 16  # bytes that are fetched at once
FETCH = 0.001  # of a byte, where an H100 computes an element in 1 / its TFLOP/s (fits 512 to 8192 there)
REUSED = 1024  # times that an element is used: from there on a copy in aligned chunks is paid back


class Tile(NamedTuple):
    """Of C; a warp's rectangle in it; the depth of a slice, and how many of them are in shared memory."""

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int
    depth: int
    stages: int

    def macros(self, dtype: DType) -> str:
        """What the header asks for."""
        text = f'#define PA_MMA "{_TYPES[dtype.name]}"\n'
        for name, value in self._asdict().items():
            text += f"#define PA_M_{name.upper()} {value}\n"
        return text

    def shared(self, dtype: DType) -> int:
        """Bytes of shared memory."""
        return self.stages * (self.rows + self.columns) * self.depth * dtype.itemsize


# By a device's instructions and bytes of an element: tiles with the TFLOP/s that an H100 reaches where all
# processors have them. "mma" has 99 KiB of shared memory on every device, "wgmma" 227.
TILES: dict[tuple[str, int], tuple[tuple[Tile, int], ...]] = {
    ("mma", 2): (
        (Tile(128, 256, 64, 64, 32, 4), 315),
        (Tile(256, 128, 64, 64, 32, 4), 310),
        (Tile(64, 64, 16, 32, 64, 3), 210),
    ),
    ("wgmma", 2): (
        (Tile(128, 256, 16, 256, 64, 4), 590),
        (Tile(128, 128, 16, 128, 64, 6), 525),
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
    """The tile for a product `c`, by which all processors together are done first; None where there are no
    tensor cores for it."""
    facts = c._buffer.device.driver.properties()
    units = facts.get("tensor_cores")
    if not units or c._dtype.name not in _TYPES:
        return None
    m, n = c._shape[-2:]
    matrices = c._size // (m * n) if c._size else 0
    return _least(m, n, matrices, facts["processors"], units, c.itemsize)


# A function of sizes and the processors' number and units; the tiles are constants.
@functools.lru_cache(maxsize=4096)
def _least(m: int, n: int, matrices: int, processors: int, units: str, size: int) -> Tile:
    """The tile of the least work: of the processor that has most, and of the cache that all fetch from."""

    def cost(entry: tuple[Tile, int]) -> float:
        tile, speed = entry
        count = -(-m // tile.rows) * -(-n // tile.columns) * matrices
        fetched = count * (tile.rows + tile.columns) * size
        return -(-count // processors) * tile.rows * tile.columns / speed + fetched * FETCH

    return min(TILES[units, size], key=cost)[0]


def in_chunks(x: ndarray, used: int) -> ndarray:
    """An operand whose elements are used so many times: a copy of it if it doesn't lie in aligned chunks,
    which are fetched many times faster, is used often enough, and there is memory for it. What is broadcast
    is copied once."""
    rs, cs = x._strides[-2:]
    size = x.itemsize
    apart = rs if cs == size else cs
    odd = any(step % CHUNK for step in (x._ptr, apart, *x._strides[:-2]))
    if used < REUSED or min(x._shape[-2:]) < REUSED // 4 or ((cs == size or rs == size) and not odd):
        return x
    *_, rows, columns = x._shape
    lead = tuple(n if step else 1 for n, step in zip(x._shape[:-2], x._strides[:-2], strict=True))
    each = CHUNK // size
    try:
        room = scratch((*lead, rows, -(-columns // each) * each), x._dtype, x.device)
    except OutOfMemoryError:
        return x
    once = (*lead, rows, columns)
    launch_map(COPY, x._dtype, room._view(0, once, room._strides), (x._view(0, once, x._strides),))
    steps = (own if step else 0 for own, step in zip(room._strides[:-2], x._strides[:-2], strict=True))
    return room._view(0, x._shape, (*steps, *room._strides[-2:]))
