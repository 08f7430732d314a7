"""The libraries that pyarray is compared with, where they are installed."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import sys
from types import ModuleType
from typing import Any

NAMES = ("numpy", "torch", "numexpr", "numba", "quadrants", "warp")


@functools.cache
def peer(name: str) -> Any:
    """The module, or None when it can't be imported, which is said once. What imports print is dropped."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module(name)
    except Exception as error:  # a broken installation raises whatever it likes
        print(f"({name} is not measured: {type(error).__name__}: {error})", file=sys.stderr)
        return None


@functools.cache
def quadrants() -> Any:
    """Quadrants, started on the CPU."""
    qd = peer("quadrants")
    if qd is not None:
        with contextlib.redirect_stdout(io.StringIO()):
            qd.init(arch=qd.cpu, log_level=qd.ERROR)
    return qd


@functools.cache
def warp() -> Any:
    """Warp, started quietly."""
    wp = peer("warp")
    if wp is not None:
        wp.config.quiet = True
        with contextlib.redirect_stdout(io.StringIO()):
            wp.init()
    return wp


def versions() -> dict[str, str]:
    """Version of each peer that is there, and of pyarray."""
    found = {name: peer(name) for name in ("pyarray", *NAMES)}
    return {name: _version(module) for name, module in found.items() if module is not None}


def _version(module: ModuleType) -> str:
    version = getattr(module, "__version__", "?")
    return ".".join(map(str, version)) if isinstance(version, tuple) else str(version)
