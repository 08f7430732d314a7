"""Registers plug-ins of other libraries: each is imported and called once its library's module is."""

from __future__ import annotations

import importlib
from functools import partial
from types import ModuleType

from .import_hooks import when_imported

_ROWS = (
    ("torch._dynamo.trace_rules", "torch_compile", "skip_tracing"),
    ("dask.sizeof", "dask_sizeof", "register"),
    ("dask.array.backends", "dask_array", "register"),
    ("distributed.protocol", "dask_distributed", "register"),
)


def install() -> None:
    """Let the other libraries know of pyarray: those that are imported now, the others when they are."""
    for registry, type_path, function in _ROWS:
        when_imported(registry, partial(_call, type_path, function))


def _call(function_path: str, function: str, module: ModuleType) -> None:
    getattr(importlib.import_module(f"{__package__}.{function_path}"), function)(module)
