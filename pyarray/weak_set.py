"""A thread-safe weak set."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class ThreadSafeWeakSet(Generic[T]):
    """Objects, as long as they live. One may be added, or die, while another thread iterates, which `weakref.WeakSet`
    answers with a `RuntimeError`.

    >>> a, b = frozenset({1}), frozenset({2})
    >>> living = ThreadSafeWeakSet()
    >>> for x in (a, b):
    ...     living.add(x)
    >>> sorted(map(tuple, living))
    [(1,), (2,)]
    """

    def __init__(self) -> None:
        self._references: set[weakref.ref[T]] = set()

    def add(self, item: T) -> None:
        """Adds an object that can be hashed and referred to weakly."""
        self._references.add(weakref.ref(item, self._references.discard))

    def __iter__(self) -> Iterator[T]:
        """Those that live when this is called. The interpreter's lock is held while the set is copied."""
        living = [reference() for reference in self._references.copy()]
        return iter([item for item in living if item is not None])
