"""How this thread launches: with bounds checks or without, observed or not.

Short ways are looked up with `mode.key` in their keys, so that what changes how a launch is done leads past
them at no cost to the others.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from .. import config
from ..locks import new_lock
from ..memory.host_access import touch

OBSERVED = "observed"  # the key under which no short way is kept


class _Mode(threading.local):
    debug: bool = config.get("PYARRAY_DEBUG")
    key: Any = debug  # `debug`, or OBSERVED
    own: Observer | None = None  # of this thread's launches only


mode = _Mode()


@dataclass(frozen=True, eq=False)
class Launch:
    """One launch as an observer sees it. `args` are the live arguments by parameter; `run` does it and raises
    what it raises. `marked` names the parameters that the kernel's `dump` was given. `made` are results by
    name, after `run`, of what is no kernel (`jit.external_call`)."""

    kernel: str
    variant: Any  # jit.kernel.Variant
    args: Mapping[str, Any]
    run: Callable[[], None]
    marked: frozenset[str] = frozenset()
    made: Mapping[str, Any] = field(default_factory=dict)


Observer = Callable[[Launch], None]  # must call `launch.run()` once
_observers: tuple[Observer, ...] = ()  # the innermost first
_lock = new_lock()
_inside: dict[int, dict[str, Any]] = {}  # of threads in a `debug()`: their own attributes


class _Table(dict[Any, Any]):
    """A dictionary that can be in a WeakSet."""

    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__  # type: ignore[assignment]


# Weak, since functions that have tables are made while a program runs, and their launches keep kernels alive
_tables: weakref.WeakSet[_Table] = weakref.WeakSet()


def table() -> dict[Any, Any]:
    """A new dictionary for short ways to launch what was compiled: `empty_tables` empties it."""
    made = _Table()
    _tables.add(made)
    return made


def empty_tables() -> None:
    """Forget all short ways."""
    for made in list(_tables):
        made.clear()


class _Hidden(threading.local):
    on: bool = False


_hidden = _Hidden()


@contextmanager
def unobserved() -> Iterator[None]:
    """No observer sees what this thread launches inside the block."""
    before, _hidden.on = _hidden.on, True
    try:
        yield
    finally:
        _hidden.on = before


def observe(launch: Launch) -> None:
    """Run a launch through all observers."""
    if _hidden.on:
        touch.seen = True  # what nobody sees can't be written down
        launch.run()
        return
    for observer in _observers if mode.own is None else (mode.own, *_observers):
        launch = replace(launch, run=partial(observer, launch))
    launch.run()


def add_observer(observer: Observer, inner: bool = False) -> None:
    """From now on `observer` runs every launch of the process. It stands around the other observers, or,
    `inner`, nearest to the launch."""
    with _lock:
        _set_observers((observer, *_observers) if inner else (*_observers, observer))


def remove_observer(observer: Observer) -> None:
    """The end of `add_observer`; nothing if it has ended."""
    with _lock:
        _set_observers(tuple(o for o in _observers if o != observer))


def _set_observers(observers: tuple[Observer, ...]) -> None:
    global _observers
    _observers = observers
    _Mode.key = OBSERVED if observers else _Mode.debug
    for own in _inside.values():
        if "own" not in own:  # else its launches are observed in any case
            own["key"] = OBSERVED if observers else own["debug"]


def observed() -> bool:
    """Whether this thread's launches go through observers."""
    return bool(_observers) or mode.own is not None


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """`observer` runs every launch of this thread inside the block. Blocks don't nest."""
    own, thread = vars(mode), threading.get_ident()
    with _lock:
        own.update(own=observer, key=OBSERVED)
    try:
        yield
    finally:
        with _lock:
            del own["own"], own["key"]
            if thread in _inside:
                own["key"] = OBSERVED if _observers else own["debug"]


@contextmanager
def debug(on: bool = True) -> Iterator[None]:
    """Bounds checks in every kernel that this thread launches inside the block, user's and library's alike.

    `@kernel(debug=...)` goes before it; it goes before PYARRAY_DEBUG, which is read when pyarray is imported
    and when `config.set` changes it.

    >>> import pyarray as pa
    >>> with pa.debug():
    ...     pa.sum(pa.ones(3)).item()
    3.0
    """
    before = vars(mode).get("debug")
    _set(bool(on))
    try:
        yield
    finally:
        _set(before)


def _set(checked: bool | None) -> None:
    """What this thread does; None: what the process does, for which the class speaks."""
    own, thread = vars(mode), threading.get_ident()
    with _lock:
        own.pop("debug", None)
        own.pop("key", None)
        _inside.pop(thread, None)
        if checked is not None:
            own.update(debug=checked, key=OBSERVED if _observers else checked)
            _inside[thread] = own
        if "own" in own:
            own["key"] = OBSERVED


def _follow(setting: str) -> None:
    if setting == "PYARRAY_DEBUG":
        with _lock:
            _Mode.debug = bool(config.get(setting))
            _set_observers(_observers)


config.watchers.append(_follow)


def _after_fork() -> None:
    """The other threads are gone."""
    own = _inside.pop(threading.get_ident(), None)
    _inside.clear()
    if own is not None:
        _inside[threading.get_ident()] = own


os.register_at_fork(after_in_child=_after_fork)
