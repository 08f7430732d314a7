"""The versions of a GPU loop whose iterations are run by teams of threads."""

from __future__ import annotations

from typing import NamedTuple

from .cached_rows import CachedRow

Version = tuple[str, str, str]  # of an iteration: its condition, its declarations, its text


class CachedVersion(NamedTuple):
    """The version for contiguous rows of these `sizes` that teams cache, as `row`. `edges`: they may begin and end
    between vectors. `condition`: what else they need, as C text. `blocks`: how many a multiprocessor runs at a time,
    which limits registers."""

    name: str
    row: CachedRow
    edges: bool
    condition: str
    sizes: tuple[int, int]
    head: str
    text: str
    blocks: int

    @property
    def test(self) -> str:
        least, most = self.sizes
        return f"dense && {self.condition} && row_size >= {least} && row_size <= {most}"


class TeamVersions(NamedTuple):
    """What comes before, and the versions of an iteration. Each has its own loop over the iterations; otherwise each
    would take the registers of all. Those of `cached` rows come first; they may be kernels of their own."""

    before: list[str]
    others: list[Version]
    cached: tuple[CachedVersion, ...] = ()
