"""The common calls, made ahead of time so that their kernels are on disk: `python -m pyarray cache warm`,
which the build of the package runs for `pyarray/_warmed`.

A kernel belongs to dtypes, ranks and layouts, so a call on a thousand elements compiles what any other size
runs; calls of `MANY` elements are those that take another algorithm.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pyarray as pa

from . import config
from .api.core import registry
from .api.core.registry import ALL, FLOAT, MANY, REAL, SMALL, Call
from .driver.base import cores, get_device
from .jit import cache

COMPLEX = ("complex128",)
Rows = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

# Dtypes, and calls on arrays of each that no function declares (`api.core.registry.precompiled`): operators, indices,
# elementwise functions, arrays from numbers, draws. a, b are flat, m, w square, row and column are m's; i are indices,
# mask is bool, one is a number.
LARGE: Rows = ((FLOAT, ("m @ w", "asarray(m.T, copy=True)")),)
CALLS: Rows = (
    (("uint8",), ("a + b", "a // one")),
    (
        ("float64",),
        ("rng.beta(2.0, 3.0, size=9)", "rng.binomial(9, 0.5, size=9)", "rng.poisson(3.0, size=9)"),
    ),
    (("float64",), ("rng.exponential(size=9)", "rng.choice(9, 5, replace=False)", "rng.choice(9, size=5)")),
    (("float64",), ("rng.normal(size=9)", "rng.random(9)", "rng.integers(9, size=9)", "rng.permutation(9)")),
    (FLOAT, ("m @ w", "m @ row", "a @ b", "reshape(m, (4, 8, 32)) @ reshape(w, (4, 32, 8))")),
    (COMPLEX, ("abs(a)", "a + b", "a - b", "a * b", "a / b", "a + one", "a * one", "-a")),
    (("bool",), ("a & b", "a | b", "a ^ b", "~a")),
    (("int64",), ("a & b", "a | b", "a ^ b", "a << 1", "a >> 1")),
    (REAL, tuple(f"a {op} {b}" for op in ("+", "-", "*", "/", "==", "!=", "<", ">") for b in ("b", "one"))),
    (REAL, ("a // one", "a % one", "a >= one", "a <= one", "one - a", "one / a", "-a", "abs(a)", "a ** 2")),
    (REAL, ("maximum(a, b)", "minimum(a, b)", "maximum(a, one)", "square(a)", "sign(a)", "flip(a) + a")),
    (REAL, ("m + row", "m - row", "m * row", "m - column", "a += b", "a *= one")),
    (FLOAT, ("m / row", "m / column", "m + w.T", "m * column", "a ** b", "a ** 0.5")),
    (FLOAT, ("sqrt(a)", "exp(a)", "log(a)", "sin(a)", "cos(a)", "tanh(a)", "log1p(a)", "expm1(a)")),
    (FLOAT, ("floor(a)", "ceil(a)", "round(a)", "reciprocal(a)", "special.erf(a)", "linalg.norm(a)")),
    (FLOAT, ("isnan(a)", "isfinite(a)", "arctan2(a, b)", "trace(m)", "tril(m)", "meshgrid(a, b)")),
    (FLOAT, ("linspace(0, 1, 9, dtype=kind)",)),
    (REAL, ("arange(9, dtype=kind)", "eye(9, dtype=kind)", "clip(a, 0, 5)")),
    (ALL, ("a[:] = one", "a[::2] = b[::2]", "m[:, 0] = one", "m[:, 1:3] = w[:, 1:3]", "a[i]", "a[i] = b")),
    (ALL, ("asarray(a, copy=True)", "asarray(a[::2], copy=True)", "asarray(m[:, 2:], copy=True)")),
    (ALL, ("asarray(m.T, copy=True)", "a[mask]", "a[mask] = one")),
)


def common_calls() -> Iterator[Call]:
    """All of the registry and the tables; those of many elements first, which take longest, so that all cores end
    together."""
    tables = [
        Call(dtype, text, size)
        for rows, size in ((LARGE, MANY), (CALLS, SMALL))
        for dtypes, texts in rows
        for text in texts
        for dtype in dtypes
    ]
    yield from sorted([*registry.common_calls, *tables], key=lambda call: -call.size)


def make(call: Call) -> str | None:
    """Makes the call; says what it raised."""
    try:
        code = compile(call.text, "<precompiled>", "exec")
        public = {name: getattr(pa, name) for name in code.co_names if hasattr(pa, name)}  # imported on first use, too
        exec(code, public | _operands(call.dtype, call.size))
    except Exception as error:  # of a compiler, say; a kernel less is no reason to stop
        return f"{call.text} of {call.dtype}: {type(error).__name__}: {error}"
    return None


def _operands(dtype: str, size: int) -> dict[str, Any]:
    kind, side = getattr(pa, dtype), int(size**0.5)
    a, b = (pa.asarray((np.arange(n, n + size) % 7).astype(dtype)) for n in (0, 3))
    m, w = (x[: side * side].reshape(side, side) for x in (a, b))
    i = np.arange(size)[::-1].copy()
    arrays = {"a": a, "b": b, "m": m, "w": w, "row": m[0], "column": m[:, :1], "i": pa.asarray(i)}
    more = {"mask": pa.asarray(i % 2 == 0), "kind": kind, "one": kind(1).item()}
    return arrays | more | {"rng": pa.random.default_rng(0)}


class Warmed(NamedTuple):
    """What came of it: how many entries `directory` has, and what calls raised."""

    directory: Path
    entries: int
    failures: tuple[str, ...]


def warm(directory: Path | None = None, processes: int | None = None) -> Warmed:
    """Make the common calls on the CPU device, by as many processes as there are cores, so that what they
    compile is in `directory`: the user's cache if there is none given, else a directory that has nothing else
    afterwards and that everybody may read.

    Raises `DeviceError` without a compiler, `ValueError` where `directory` can't be used or the cache is off.
    """
    get_device("cpu").driver.compiler()
    # before the first entry; what has it already gets the time of its use
    began = time.time() - 1
    settings = {"PYARRAY_DEVICE": "cpu", "PYARRAY_NUM_THREADS": 1, "PYARRAY_DEBUG": False}
    settings["PYARRAY_AUTOTUNE"] = "off"  # whose folder would be one of the package
    if directory is not None:
        settings |= {"PYARRAY_CACHE": True, "PYARRAY_CACHE_DIR": directory, "PYARRAY_WARMED": False}
        settings |= {"PYARRAY_CACHE_MAX_BYTES": 1 << 40}
    for name, value in settings.items():
        config.set(name, value)
    try:
        folder = cache.directory()
        if folder is None:
            raise ValueError("the kernel cache is off, or its directory can't be used")
        failures = _all(processes or cores(), settings)
    finally:
        for name in settings:
            config.set(name, None)
    if directory is not None:
        _publish(folder, began)
    return Warmed(folder, len(list(folder.glob("*.kernel"))), failures)


def _all(processes: int, settings: dict[str, Any]) -> tuple[str, ...]:
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    with ProcessPoolExecutor(processes, context, _configure, (settings,)) as pool:
        return tuple(message for message in pool.map(make, common_calls()) if message)


def _configure(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        config.set(name, value)


def _publish(folder: Path, began: float) -> None:
    for path in folder.iterdir():
        if path.suffix == ".kernel" and path.stat().st_mtime >= began:
            path.chmod(0o644)
        elif path.suffix == ".kernel" or path.name.startswith(".new-"):
            path.unlink()
    folder.chmod(0o755)
