"""Registers plug-ins of other libraries: each is imported, and its function is called, once its library's module is
imported."""

from __future__ import annotations

import importlib
from functools import partial
from types import ModuleType

from .import_hooks import when_imported

_ROWS = (
    ("torch._dynamo.trace_rules", "torch_compile", "skip_tracing"),
    ("dask.sizeof", "dask_distributed", "register_size"),
    ("dask.array.backends", "dask_array", None),  # its import is all: it imports dask, too
    ("distributed.protocol", "dask_distributed", "register"),
)


def install() -> None:
    """Let the other libraries know of pyarray: those that are imported now, the others when they are."""
    for registry, plug_in, function in _ROWS:
        when_imported(registry, partial(_call, plug_in, function))


def _call(plug_in: str, function: str | None, module: ModuleType) -> None:
    plug_in_module = importlib.import_module(f"{__package__}.{plug_in}")
    if function is not None:
        getattr(plug_in_module, function)(module)
