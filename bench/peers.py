"""The libraries that pyarray is compared with, where they are installed."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import io
import os
import sys
from typing import Any

NAMES = ("numpy", "torch", "numexpr", "numba", "quadrants", "warp")
DISTRIBUTIONS = {"warp": "warp-lang"}  # where the name to install is another
missing: dict[str, str] = {}  # what was asked for and can't be imported → why


@functools.cache
def peer(name: str) -> Any:
    """The module, or None when it can't be imported, which is said once. What imports print is dropped."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module(name)
    except Exception as error:  # a broken installation raises whatever it likes
        missing[name] = f"{type(error).__name__}: {error}"
        print(f"({name} is not measured: {missing[name]})", file=sys.stderr)
        return None


@functools.cache
def quadrants() -> Any:
    """Quadrants, started on the CPU."""
    qd = peer("quadrants")
    if qd is not None:
        with contextlib.redirect_stdout(io.StringIO()):
            threads = os.environ.get("PYARRAY_NUM_THREADS")
            qd.init(arch=qd.cpu, log_level=qd.ERROR, **({"cpu_max_num_threads": int(threads)} if threads else {}))
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
    """Version of each peer that is installed, and of pyarray. Nothing is imported for it."""
    installed = {}
    for name in ("pyarray", *NAMES, "cupy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(DISTRIBUTIONS.get(name, name))
    return installed
