"""`Buffer`, a block of device memory that arrays share: the last of them returns it to its pool."""

from __future__ import annotations

from .._core import Buffer
from . import pool as pool  # from which buffers are allocated

__all__ = ["Buffer"]
