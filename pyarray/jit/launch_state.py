"""How this thread launches: with bounds checks or without, observed or not.

Call plans ask in C whether debug mode or an observer is on (`pac_plain`), so that other launches pay nothing. What is
kept in Python for launches has `launch_state.key` in its key.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from .. import config
from .._core import set_process_state, set_thread_debug, set_thread_observed
from ..locks import new_lock
from ..memory.host_access import not_repeatable

OBSERVED = "observed"  # the key under which no fast path is kept


class _LaunchState(threading.local):
    debug: bool = config.get("PYARRAY_DEBUG")
    key: Any = debug  # `debug`, or OBSERVED
    observer: Observer | None = None  # of this thread's launches only


launch_state = _LaunchState()


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
_debug_overrides: dict[int, dict[str, Any]] = {}  # the attributes of threads that are in a `debug()`


class _Unobserved(threading.local):
    on: bool = False


_unobserved = _Unobserved()


@contextmanager
def unobserved() -> Iterator[None]:
    """No observer sees what this thread launches inside the block."""
    before, _unobserved.on = _unobserved.on, True
    try:
        yield
    finally:
        _unobserved.on = before


def observe(launch: Launch) -> None:
    """Run a launch through all observers."""
    if _unobserved.on:
        not_repeatable()
        launch.run()
        return
    for observer in _observers if launch_state.observer is None else (launch_state.observer, *_observers):
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
    set_process_state(len(observers), bool(_LaunchState.debug))
    _LaunchState.key = OBSERVED if observers else _LaunchState.debug
    for state in _debug_overrides.values():
        if "observer" not in state:  # else its launches are observed in any case
            state["key"] = OBSERVED if observers else state["debug"]


def observed() -> bool:
    """Whether this thread's launches go through observers."""
    return bool(_observers) or launch_state.observer is not None


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """`observer` runs every launch of this thread inside the block. Blocks don't nest."""
    state, thread = vars(launch_state), threading.get_ident()
    with _lock:
        state.update(observer=observer, key=OBSERVED)
    set_thread_observed(True)
    try:
        yield
    finally:
        set_thread_observed(False)
        with _lock:
            del state["observer"], state["key"]
            if thread in _debug_overrides:
                state["key"] = OBSERVED if _observers else state["debug"]


@contextmanager
def debug(on: bool = True) -> Iterator[None]:
    """Bounds checks in every kernel that this thread launches inside the block, user's and library's alike.

    `@kernel(debug=...)` goes before it; it goes before PYARRAY_DEBUG, which is read when pyarray is imported
    and when `config.set` changes it.

    >>> with pa.debug():
    ...     pa.sum(pa.ones(3)).item()
    3.0
    """
    before = vars(launch_state).get("debug")
    _set_debug(bool(on))
    try:
        yield
    finally:
        _set_debug(before)


def _set_debug(checked: bool | None) -> None:
    """Set this thread's debug override; None restores the process default."""
    state, thread = vars(launch_state), threading.get_ident()
    set_thread_debug(checked)
    with _lock:
        state.pop("debug", None)
        state.pop("key", None)
        _debug_overrides.pop(thread, None)
        if checked is not None:
            state.update(debug=checked, key=OBSERVED if _observers else checked)
            _debug_overrides[thread] = state
        if "observer" in state:
            state["key"] = OBSERVED


def _on_setting(setting: str) -> None:
    if setting == "PYARRAY_DEBUG":
        with _lock:
            _LaunchState.debug = bool(config.get(setting))
            _set_observers(_observers)


config.watchers.append(_on_setting)
set_process_state(0, bool(_LaunchState.debug))


def _after_fork() -> None:
    """The other threads are gone."""
    state = _debug_overrides.pop(threading.get_ident(), None)
    _debug_overrides.clear()
    if state is not None:
        _debug_overrides[threading.get_ident()] = state


os.register_at_fork(after_in_child=_after_fork)
