"""Modules that are imported when they are first used, as attributes of their package (PEP 562).

A package whose `__getattr__` is made by `submodules` names, for type checkers, the modules that others use as
`jit.kernel.from_text`. Importing the package doesn't import them. What runs while a module is imported must not use
such an attribute.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable
from types import ModuleType

_changed = threading.Condition()
_importing: dict[int, int] = {}  # thread → how many imports it is in


def import_now(name: str) -> ModuleType:
    """The module of that full name. A fork in another thread waits until it is imported: the child would wait for
    ever for the lock of a module that a thread of its parent imports."""
    thread = threading.get_ident()
    with _changed:
        _importing[thread] = _importing.get(thread, 0) + 1
    try:
        return importlib.import_module(name)
    finally:
        with _changed:
            _importing[thread] -= 1
            if not _importing[thread]:
                del _importing[thread]
                _changed.notify_all()


def _before_fork() -> None:
    _changed.acquire()
    thread = threading.get_ident()
    _changed.wait_for(lambda: _importing.keys() <= {thread})


os.register_at_fork(before=_before_fork, after_in_parent=_changed.release, after_in_child=_changed.release)


def submodules(package: str) -> Callable[[str], ModuleType]:
    """The `__getattr__` of the package of that name: its modules, by name."""

    def find(name: str) -> ModuleType:
        module = f"{package}.{name}"
        try:
            return import_now(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None

    return find
