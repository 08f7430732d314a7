"""The registry of the API: what chapters declare in `__all__`, which functions arrays have as methods, and which calls
are compiled ahead."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_CHAPTERS = ("pyarray.api.standard.", "pyarray.api.numpy.")

FLOAT, REAL = ("float32", "float64"), ("float32", "float64", "int64")
ALL = (*REAL, "complex128", "bool")
SMALL, MANY = 1 << 10, 1 << 18  # elements

methods: dict[str, Callable[..., Any]] = {}  # of `ndarray`, by name
common_calls: list[Call] = []  # that `pyarray.warm` makes


def method(function: _F, name: str | None = None) -> _F:
    """Decorator: the public function is a method of `ndarray`, too, whose first parameter is the array. The
    method has the same name unless `name` is given."""
    methods[name or function.__name__] = function
    return function


class Call(NamedTuple):
    """A call as text, for operands of one dtype and a number of elements; `pyarray.warm` has the operands' names."""

    dtype: str
    text: str
    size: int


def precompiled(dtypes: tuple[str, ...], *calls: str, size: int = SMALL) -> Callable[[_F], _F]:
    """Decorator: these calls of the public function are made ahead of time for each of the dtypes, so that their
    kernels are on disk (`pyarray.warm`)."""

    def record(function: _F) -> _F:
        common_calls.extend(Call(dtype, text, size) for text in calls for dtype in dtypes)
        return function

    return record


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
