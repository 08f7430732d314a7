"""What the text of a matrix product depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .gemm_mma import Tile

if TYPE_CHECKING:
    from .gemm_epilogue import Epilogue

# Tiles of 256 x 128, 64 x 64, 128 x 256, 128 x 128 and, of stacks, 64 x 64 elements: csrc/device/pa_gemm_gpu.h; and no
# tiles, for stacks of tiny matrices: csrc/device/pa_gemm_tiny.h
TALL, SMALL, WIDE, SQUARE, STACKED, TINY = range(6)
STACKED_THREADS = 128  # of a block; others have as many as a launch has by default


class ProductKey(NamedTuple):
    """What the text depends on besides the target: the type of the operands, the axes of the batch, the tiles of a grid
    (`TALL` to `TINY`, or tensor cores'), an epilogue; on CPUs whether `blocks`' sizes are arguments. On grids
    `flagged`: flags say whether it computes; `ends`: the type of the ends of groups, '': without groups. Groups are of
    rows, each with a matrix of b, of which there is an axis more then, and a table of tiles is made first; with
    `grouped_depth` they are of the depth, and each gives a matrix of the batch."""

    dtype: str
    batch_axes: int
    tiles: int | Tile = 0
    epilogue: Epilogue | None = None
    blocks: bool = False
    flagged: bool = False
    ends: str = ""
    grouped_depth: bool = False

    @property
    def grouped_rows(self) -> bool:
        return bool(self.ends) and not self.grouped_depth


def tile_macros(tiles: int | Tile) -> str:
    """The macros that select a tile in pa_gemm_gpu.h; a `Tile` of tensor cores selects none of them."""
    kinds = {"SMALL": SMALL, "WIDE": WIDE, "SQUARE": SQUARE, "STACKED": STACKED}
    return "".join(f"#define PA_G_{name} {int(tiles == kind)}\n" for name, kind in kinds.items())
