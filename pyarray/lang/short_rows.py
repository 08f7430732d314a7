"""Short rows that aren't multiples of 16-byte vectors, cached in registers: threads of a warp and vector widths.

Rows are cached in pairs, or element by element: with wider vectors, edges would take as long as the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from .cached_rows import CachedRow
from .emit_team_width import team


class ShortForm(NamedTuple):
    """1 << `bits` threads have a row in vectors of `width` elements, so many `elements` each at most. `sizes`: of the
    row, at least and at most. With `edges` it may begin and end between vectors."""

    name: str
    width: int
    bits: int
    elements: int
    sizes: tuple[int, int]
    edges: bool = False

    @property
    def condition(self) -> str:
        """What rows need to be: pairs, or at multiples of their elements' size (`emit_cached_rows.row_tests`)."""
        return "even" if self.width > 1 and not self.edges else "aligned"

    @property
    def head(self) -> str:
        """The team. With a constant number of threads addresses are constants apart, which is up to twice as fast."""
        if self.edges:
            return team("PA_WARP_BITS", "1")
        vectors = f"const int stride = team * {self.width}, begin = rank * {self.width}, end = (int)row_size;\n"
        return team(str(self.bits), "1") + vectors

    def row(self, row: CachedRow) -> CachedRow:
        return replace(row, elements=self.elements, widest=self.width, ends_early=not self.edges)


def short_forms(row: CachedRow) -> Iterator[ShortForm]:
    """Those of rows of narrow elements, and of wide ones if some are stored; rows take the first one that they may.
    Shorter ones have none: most threads would have nothing in their last turn."""
    narrow, pairs = row.width > 4, min(row.elements, 32)
    if row.width < 2 or not (narrow or any(row.stores)):
        return
    few = min(160, 8 * pairs)
    forms = [ShortForm("single16_", 1, 4, 16, (24, 256))]
    if row.width > 2:
        even8 = ShortForm("even8_", 2, 3, pairs, (16 if narrow else 96, few))
        forms = [even8, ShortForm("even16_", 2, 4, pairs, (few + 1, 16 * pairs)), *forms]
    if narrow:
        forms.append(ShortForm("even32_", 2, 5, pairs, (16 * pairs + 1, 32 * pairs)))
        forms.append(ShortForm("single32_", 1, 5, 16, (257, 512)))
        forms += [
            ShortForm(f"edged{elements}_", 2, 5, elements, (16 * elements + 1, 32 * elements), edges=True)
            for elements in (32, 64)
            if elements <= row.elements
        ]
    yield from (form for form in forms if form.sizes[0] <= form.sizes[1])
