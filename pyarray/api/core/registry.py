"""The registry of the API: what chapters declare in `__all__`, and which functions arrays have as methods."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_CHAPTERS = ("pyarray.api.standard.", "pyarray.api.numpy.")

methods: dict[str, Callable[..., Any]] = {}  # of `ndarray`, by name


def method(function: _F, name: str | None = None) -> _F:
    """Decorator: the public function is a method of `ndarray`, too, whose first parameter is the array. The
    method has the same name unless `name` is given."""
    methods[name or function.__name__] = function
    return function


def chapters() -> Iterator[ModuleType]:
    """The modules whose `__all__` is public in the package."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_CHAPTERS) and hasattr(module, "__all__"):
            yield module


def functions() -> dict[str, Callable[..., Any]]:
    """All public functions of the chapters by name; without classes, and what is NumPy's own."""
    public = {name: getattr(chapter, name) for chapter in chapters() for name in chapter.__all__}
    return {
        name: value
        for name, value in public.items()
        if callable(value) and not isinstance(value, type) and value.__module__.startswith("pyarray")
    }
