"""The table: a row for each public function that takes arrays."""

from __future__ import annotations

from fnmatch import fnmatchcase

from . import elementwise, indexing, keywords, linear, methods, reductions, shaping, totals  # noqa: F401  (they fill the table)
from .base import ROWS, Row

__all__ = ["ROWS", "Row", "matching"]


def matching(pattern: str) -> list[Row]:
    """Rows whose names match a shell's pattern."""
    return [row for row in ROWS if any(fnmatchcase(row.name, part) for part in pattern.split(","))]
