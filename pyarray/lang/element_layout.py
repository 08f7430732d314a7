"""Which elements of a nest of loops over tile axes belong to which thread of a block: rows along the last axis, each of
which a power of two of lanes takes; or as matrix instructions leave them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .tile_nests import Axes

WARP = 32  # lanes that combine by shuffles, on every device


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
    """Elements as matrix instructions leave them (PTX ISA, "Matrix fragments for mma.m16n8k16"): warps have 16 rows
    below each other, as often as there are rows for it, and four lanes have two neighbours each of 8 columns."""

    @property
    def lanes(self) -> int:
        return 4

    @property
    def row(self) -> str:
        rows = self.threads // WARP * 16
        return f"row_step / 2 * {rows} + rank / {WARP} * 16 + rank % {WARP} / 4 + row_step % 2 * 8"


@dataclass(frozen=True)
class Rows(Fragments):
    """One element for each row of fragments; the four lanes of a row have the same."""

    @property
    def is_exact(self) -> bool:
        return True


@dataclass(frozen=True)
class Waves(Layout):
    """Elements as the matrix instructions of AMD GPUs leave them (`pa_tile_waves.h`): 16 lanes have 16 columns of a
    row; which one depends on the target."""

    @property
    def lanes(self) -> int:
        return 16

    @property
    def row(self) -> str:
        return f"pa_tile_row<{self.threads}>(rank, row_step)"


def layout_of(axes: Axes, threads: int, vector: int) -> Layout:
    columns = axes[-1][1]
    return Layout(math.prod(n for _, n in axes[:-1]), columns, threads, math.gcd(vector, columns))
