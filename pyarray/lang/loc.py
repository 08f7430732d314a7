"""Source locations in the user's code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loc:
    """Lines and columns are 1-based; `end` is the column after the construct, 0 if that is on another line. `caller`:
    of an inlined function its name, and where it is called."""

    path: str
    line: int
    column: int
    end: int
    caller: tuple[str, Loc] | None = None
