"""Device memory: blocks, and the pool they come from."""

from .buffer import Buffer
from .pool import Pool, Stats, get_pool

__all__ = ["Buffer", "Pool", "Stats", "get_pool"]
