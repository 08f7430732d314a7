"""Memory usage of devices, under CuPy's names: `MemoryPool`, `get_default_memory_pool`."""

from __future__ import annotations

from ..driver.base import Device, get_device
from .pool import Pool, get_pool

__all__ = ["MemoryPool", "get_default_memory_pool"]


class MemoryPool:
    """The memory of one device: what arrays use, and freed blocks that are kept for the next ones."""

    def __init__(self, device: Device):
        self.device = device

    @property
    def _pool(self) -> Pool:
        return get_pool(self.device)

    def used_bytes(self) -> int:
        """Bytes of the blocks that arrays use."""
        return self._pool.stats().in_use

    def free_bytes(self) -> int:
        """Bytes of the blocks that are kept for reuse."""
        return self._pool.stats().pooled

    def total_bytes(self) -> int:
        """Bytes reserved from the device: used and free."""
        return self._pool.stats().reserved

    def peak_bytes(self) -> int:
        """The most that `total_bytes` has been."""
        return self._pool.stats().peak

    def n_free_blocks(self) -> int:
        """How many blocks are kept for reuse."""
        return sum(map(len, list(self._pool.lists.values())))

    def free_all_blocks(self) -> None:
        """Gives all blocks that no array uses back to the device."""
        self._pool.trim()

    def __repr__(self) -> str:
        return f"<memory pool of {self.device}: {self.used_bytes()} bytes used, {self.free_bytes()} free>"


def get_default_memory_pool(device: Device | str | None = None) -> MemoryPool:
    """The memory pool of a device, the default one unless given.

    >>> pool = pa.get_default_memory_pool("cpu")
    >>> pool.free_all_blocks()
    >>> pool.free_bytes(), pool.total_bytes() == pool.used_bytes()
    (0, True)
    """
    return MemoryPool(get_device(device))
