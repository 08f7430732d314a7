"""Locks that are free in the child of a fork."""

from __future__ import annotations

import os
import threading

from .weak_set import ThreadSafeWeakSet

_locks = ThreadSafeWeakSet[threading.RLock]()


def new_lock() -> threading.RLock:
    """A lock that is free in the child of a fork if another thread held it; the forking thread keeps the locks that
    it holds.

    It is re-entrant: a signal handler and a garbage collection may come in the locked part, and launch.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _after_fork() -> None:
    for lock in _locks:
        if not lock._is_owned():  # type: ignore[attr-defined]
            lock._at_fork_reinit()  # type: ignore[attr-defined]


os.register_at_fork(after_in_child=_after_fork)
