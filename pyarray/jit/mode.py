"""How this thread launches: with bounds checks or without, observed or not.

Short ways are looked up with `mode.key` in their keys, so that what changes how a launch is done leads past
them at no cost to the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .. import config

OBSERVED = "observed"  # the key under which no short way is kept


class _Mode(threading.local):
    debug: bool = config.get("PYARRAY_DEBUG")
    key: Any = debug  # `debug`, or OBSERVED


mode = _Mode()


@dataclass(frozen=True, eq=False)
class Launch:
    """One launch as an observer sees it. `args` are the live arguments by parameter; `run` does it and raises
    what it raises."""

    kernel: str
    variant: Any  # jit.kernel.Variant
    args: Mapping[str, Any]
    run: Callable[[], None]


Observer = Callable[[Launch], None]  # must call `launch.run()` once
_observers: tuple[Observer, ...] = ()
_lock = threading.Lock()


def observe(launch: Launch) -> None:
    """Run a launch through all observers, the last one outermost."""
    for observer in _observers:
        launch = Launch(launch.kernel, launch.variant, launch.args, lambda o=observer, inner=launch: o(inner))  # type: ignore[misc]
    launch.run()


def add_observer(observer: Observer) -> None:
    """From now on `observer` runs every launch of the process; a thread that is inside `debug()` joins when
    it leaves that block."""
    global _observers
    with _lock:
        _observers = (*_observers, observer)
        _Mode.key = OBSERVED
        _set(mode.debug)


def remove_observer(observer: Observer) -> None:
    """The end of `add_observer`."""
    global _observers
    with _lock:
        _observers = tuple(o for o in _observers if o is not observer)
        if not _observers:
            _Mode.key = _Mode.debug
            _set(mode.debug)


def observed() -> bool:
    """Whether launches go through observers."""
    return bool(_observers)


@contextmanager
def debug(on: bool = True) -> Iterator[None]:
    """Bounds checks in every kernel that this thread launches inside the block, user's and library's alike.

    `@kernel(debug=...)` goes before it; it goes before PYARRAY_DEBUG, which is read when pyarray is imported.

    >>> import pyarray as pa
    >>> with pa.debug():
    ...     pa.sum(pa.ones(3)).item()
    3.0
    """
    before = mode.debug
    _set(bool(on))
    try:
        yield
    finally:
        _set(before)


def _set(checked: bool) -> None:
    """A thread has attributes of its own only where they differ: then the class speaks for all threads."""
    own = vars(mode)
    own.clear()
    if checked is not _Mode.debug:
        own.update(debug=checked, key=OBSERVED if _observers else checked)
