"""The table: a row for each public function that takes arrays."""

from __future__ import annotations

from . import elementwise, indexing, keywords, linear, methods, reductions, shaping, totals  # noqa: F401  (they fill the table)
from .base import ROWS, Row

__all__ = ["ROWS", "Row"]
