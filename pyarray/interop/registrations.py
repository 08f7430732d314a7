"""Registers the plug-ins: which one is imported and called when which library's module is."""

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
    for theirs, ours, function in _ROWS:
        when_imported(theirs, partial(_call, ours, function))


def _call(ours: str, function: str, theirs: ModuleType) -> None:
    getattr(importlib.import_module(f"{__package__}.{ours}"), function)(theirs)
