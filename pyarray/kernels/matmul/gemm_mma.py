"""Tile shapes of matrix products on tensor cores (csrc/device/pa_gemm_mma.h, and pa_gemm_amd.h for AMD's matrix
instructions), chosen by a cost model."""

from __future__ import annotations

import functools
from typing import NamedTuple

from ...array import ndarray
from ...driver.base import Device
from ...driver.kernel_step import THREADS
from ...dtypes import DType, int32
from ..aligned_rows import VECTOR_BYTES, copied_rows
from . import thresholds as th

_TYPES = {
    "float16": "f16", "bfloat16": "bf16", "float64": "f64", "float32": "tf32", "int8": "s8", "uint8": "u8",
    "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
}  # fmt: skip


class Tile(NamedTuple):
    """The tile of C, a warp's part of it, the depth of a stage, and the number of stages in shared memory. `bulk`:
    with bulk tensor copies (csrc/device/pa_gemm_tma.h). `bf16x6`: of operands that are parts of float32
    (csrc/device/pa_gemm_bf16x6.h). `cluster`: blocks that share B, with tiles below each other. `header` has the
    kernel."""

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int
    depth: int
    stages: int
    bulk: bool = False
    bf16x6: bool = False
    cluster: int = 1
    header: str = "pa_gemm_mma.h"

    def macros(self, dtype: DType, out: DType) -> str:
        """The macros that the header needs, for operands and a result of these types."""
        text = f'#define PA_MMA "{_TYPES[dtype.name]}"\n'
        text += f"#define PA_M_FLOAT8 {int(dtype.kind == 'f' and dtype.itemsize == 1)}\n"
        text += f"#define PA_M_HALF_C {int(_has_half_results(dtype, out))}\n"
        for name, value in self._asdict().items():
            if name != "header":
                text += f"#define PA_M_{name.upper()} {int(value)}\n"
        return text

    def shared(self, dtype: DType, out: DType) -> int:
        """Bytes of shared memory; with bulk copies also what these need, and of halves two parts of C, 64 columns of
        it, and rows of an epilogue's two arrays for each warpgroup."""
        slices = self.stages * (self.rows + self.columns) * self.depth * dtype.itemsize
        staged = self.rows * 128 * 2 + 2 * 2 * self.columns * 2 if _has_half_results(dtype, out) else 0
        return slices + (staged + 768 if self.bulk else 0)

    @property
    def threads(self) -> int:
        """Of a block: on NVIDIA GPUs a warp for each part of the tile, and a warpgroup more for bulk copies."""
        warps = self.rows // self.warp_rows * (self.columns // self.warp_columns)
        return warps * 32 + 128 * self.bulk if self.header == "pa_gemm_mma.h" else THREADS

    def tiles_of(self, m: int, n: int, matrices: int) -> int:
        """The number of tiles; a cluster has all of its own."""
        return -(-m // (self.rows * self.cluster)) * self.cluster * -(-n // self.columns) * matrices

    def blocks(self, c: ndarray) -> int:
        """The grid for a product `c`: a block per tile, or with bulk copies no more than processors."""
        m, n = c._shape[-2:]
        return self.blocks_of(self.tiles_of(m, n, c._size // (m * n)) if c._size else 0, c._buffer.device)

    def blocks_of(self, tiles: int, device: Device) -> int:
        """The same for so many tiles."""
        if not self.bulk:
            return tiles
        processors = device.driver.properties()["processors"]
        return min(tiles, processors - processors % self.cluster)


def _has_half_results(dtype: DType, out: DType) -> bool:
    return out.itemsize == 2 and dtype.itemsize <= 2


# By a device's instructions and bytes of an element: tiles with their TFLOP/s on an H100, those of "wgmma" but for
# doubles on an H200, with all processors busy (measured). "mma" has 99 KiB of shared memory on every device, "wgmma"
# 227.
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
    ("wgmma", 4): (
        (Tile(128, 256, 16, 256, 32, 4, True), 355),
        (Tile(128, 128, 16, 128, 32, 6, True), 290),
        (Tile(128, 64, 16, 64, 32, 6, True), 225),
    ),
    ("wgmma", 1): (
        (Tile(128, 256, 16, 256, 128, 4, True), 1270),
        (Tile(128, 128, 16, 128, 128, 6, True), 1230),
        (Tile(128, 64, 16, 64, 128, 6, True), 860),
    ),
    ("mma", 8): (
        (Tile(128, 128, 64, 32, 16, 3), 50),
        (Tile(128, 64, 32, 32, 16, 4), 47),
        (Tile(64, 64, 16, 32, 16, 3), 42),
    ),
}
TILES["wgmma", 8] = (
    (Tile(128, 128, 64, 32, 16, 6, True), 57),
    (Tile(128, 64, 32, 32, 16, 6, True), 55),
    (Tile(64, 64, 16, 32, 16, 6, True), 54),
)
# Of stacks of small matrices of halves, whose operands are read once: memory decides, and with more or fewer copies on
# their way it is slower (measured). A block for each matrix of one tile: those that end take the next one, wherever
# memory answers first.
STACKED = Tile(128, 128, 16, 128, 64, 4, True)
STACKED_NARROW = Tile(128, 64, 16, 64, 64, 5, True)
STACKED_ONE = Tile(64, 64, 16, 64, 64, 3)


def _amd(rows: int, columns: int, warp_rows: int, warp_columns: int, size: int) -> Tile:
    return Tile(rows, columns, warp_rows, warp_columns, 64 // size, 2, header="pa_gemm_amd.h")


# AMD's: "mfma" of waves of 64, "wmma" of waves of 32. Speeds are not measured: half of an MI300X' or a 7900 XTX' peak,
# and a third for small tiles, which read twice as much of LDS for as many products.
TILES |= {
    ("mfma", 2): ((_amd(128, 128, 64, 64, 2), 650), (_amd(64, 64, 32, 32, 2), 430)),
    ("mfma", 4): ((_amd(128, 128, 64, 64, 4), 80), (_amd(64, 64, 32, 32, 4), 54)),
    ("mfma", 8): ((_amd(128, 64, 64, 32, 8), 75), (_amd(64, 64, 32, 32, 8), 54)),
    ("wmma", 2): ((_amd(128, 128, 32, 64, 2), 60), (_amd(64, 64, 16, 32, 2), 40)),
}


def tile_for(c: ndarray, depth: int, tf32: bool = False, dtype: DType | None = None) -> Tile | None:
    """The tile for a product `c` of operands of `dtype`, None: of its own, and of this depth: the fastest by the cost
    model. None without tensor cores for them. NVIDIA's take float32 only as `tf32`, AMD's only as it is."""
    dtype = c._dtype if dtype is None else dtype
    properties = c._buffer.device.driver.properties()
    units = properties.get("tensor_cores")
    if not units or dtype.name not in _TYPES or (units, dtype.itemsize) not in TILES:
        return None
    if dtype.name == "float32" and tf32 == (units == "mfma"):
        return None
    if dtype.itemsize == 1 and (dtype.kind != c._dtype.kind if dtype.is_narrow else c._dtype is not int32):
        return None
    m, n = c._shape[-2:]
    matrices = c._size // (m * n) if c._size else 0
    processors = properties["processors"]
    if (units, dtype.itemsize) == ("wgmma", 2) and matrices >= processors and max(m, n, depth) <= th.SMALL_MATRIX:
        return _stacked_tile(m, n, depth)
    return _cheapest_tile(m, n, matrices, processors, units, dtype.itemsize)


def _stacked_tile(m: int, n: int, depth: int) -> Tile:
    """The tile for a stack of small matrices."""
    shallow = depth <= th.STACKED_DEPTH
    if shallow and m <= STACKED_ONE.rows and n <= STACKED_ONE.columns:
        return STACKED_ONE
    tile = STACKED_NARROW if n <= STACKED_NARROW.columns else STACKED
    return tile._replace(stages=3) if shallow else tile


# A function of sizes and the processors' number and units; the tiles are constants.
@functools.lru_cache(maxsize=4096)
def _cheapest_tile(m: int, n: int, matrices: int, processors: int, units: str, size: int) -> Tile:
    """The tile of the least cost."""
    return clustered(least_cost(m, n, matrices, processors, units, size)[1], m, n, matrices, processors)


def least_cost(m: int, n: int, matrices: int, processors: int, units: str, size: int) -> tuple[float, Tile]:
    """The least cost of so many products, and its tile: the work of the busiest processor, and the bytes that all
    fetch. It is the time for an element of the depth, at 1 TFLOP/s of a multiplication and an addition each."""
    fetch_cost = th.BULK_FETCH_COST if TILES[units, size][0][0].bulk else th.FETCH_COST
    entries = TILES[units, size]
    return min((tile_cost(*entry, m, n, matrices, processors, size, fetch_cost), entry[0]) for entry in entries)


def clustered(tile: Tile, m: int, n: int, matrices: int, processors: int) -> Tile:
    """The tile, with clusters where these save more than they cost: of many tiles, and where none is added for its
    neighbour."""

    def waves(tile: Tile) -> float:
        return tile.tiles_of(m, n, matrices) / (processors - processors % tile.cluster)

    pairs = tile._replace(cluster=2)
    many = tile.bulk and waves(pairs) >= th.CLUSTER_WAVES
    return pairs if many and -(-waves(pairs) // 1) <= -(-waves(tile) // 1) else tile


def tile_cost(
    tile: Tile, speed: int, m: int, n: int, matrices: int, processors: int, size: int, fetch_cost: float
) -> float:
    """See `least_cost`."""
    count = tile.tiles_of(m, n, matrices)
    fetched = count * (tile.rows + tile.columns) * size
    return -(-count // processors) * tile.rows * tile.columns / speed + fetched * fetch_cost


def k_major_operands(a: ndarray, b: ndarray, c: ndarray) -> tuple[ndarray, ndarray, ndarray] | None:
    """The operands for a tile of tf32, or those of `c.T = b.T @ a.T`: rows that are aligned, the second ones' along the
    depth. None where copies wouldn't pay; and if what is launched gets other addresses, it is only slower."""
    a, b = copy_if_unaligned(a, b._shape[-1]), copy_if_unaligned(b, a._shape[-2])
    if len(c._shape) > 2 + th.BULK_BATCH_AXES or not (is_aligned(a) and is_aligned(b)):
        return None
    size = c.itemsize
    if b._strides[-2] == size:
        return a, b, c
    if a._strides[-1] == size:
        return b.mT, a.mT, c.mT
    if min(a._shape[-2], b._shape[-1]) < th.COPY_USES:
        return None
    if a._size <= b._size:
        copied = copied_rows(a, 2)
        return None if copied is None else (b.mT, copied.mT, c.mT)
    copied = copied_rows(b.mT, 2)
    return None if copied is None else (a, copied.mT, c)


def is_turned_faster(b: ndarray, tile: Tile) -> bool:
    """Whether `c.T = b.T @ a.T` is faster on this tile: fragments of doubles of the first operand are read fastest
    across the depth, and of the second one along it."""
    return tile.header == "pa_gemm_mma.h" and b.itemsize == 8 and b._strides[-2] != b.itemsize


def along_depth(a: ndarray, b: ndarray) -> tuple[ndarray, ndarray]:
    """The operands, or copies of those whose lines aren't aligned and along the depth, as instructions take int8. Else
    they would be cast, which writes four times as much. Without memory they stay, and are loaded by elements."""
    return _with_aligned_rows(a), _with_aligned_rows(b.mT).mT


def _with_aligned_rows(x: ndarray) -> ndarray:
    return x if x._strides[-1] == x.itemsize and is_aligned(x) else _copied_or_same(x)


def is_aligned(x: ndarray) -> bool:
    """Whether bulk tensor copies load it: the same as pa_tma_fits_operand in
    csrc/device/pa_gemm_bulk_copies.h."""
    *lead, rs, cs = x._strides
    pitch = rs if cs == x.itemsize else cs
    steps = (x._ptr, pitch, *lead)
    return x.itemsize in (rs, cs) and pitch > 0 and not any(step < 0 or step % VECTOR_BYTES for step in steps)


def copy_if_unaligned(x: ndarray, uses: int) -> ndarray:
    """`x`, or a copy with aligned rows, which are loaded by vectors, if its elements have enough `uses` and
    there is memory for it. Broadcast matrices are copied once."""
    rs, cs = x._strides[-2:]
    size = x.itemsize
    pitch = rs if cs == size else cs
    unaligned = any(step % VECTOR_BYTES for step in (x._ptr, pitch, *x._strides[:-2]))
    if uses < th.COPY_USES or min(x._shape[-2:]) < th.COPY_MIN_SIDE or ((cs == size or rs == size) and not unaligned):
        return x
    return _copied_or_same(x)


def _copied_or_same(x: ndarray) -> ndarray:
    copied = copied_rows(x, 2)
    return x if copied is None else copied
