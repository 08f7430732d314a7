"""The common calls, made ahead of time so that their kernels are on disk: `python -m pyarray cache warm`,
which the build of the package runs for `pyarray/_warmed`.

A kernel belongs to dtypes, ranks and layouts, so a call on a thousand elements compiles what any other size
runs; `LARGE` are those that take another way for many.
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
from .driver.base import get_device
from .driver.cpu import cores
from .jit import cache

FLOAT, INT, BOOL, COMPLEX = ("float32", "float64"), ("int64",), ("bool",), ("complex128",)
REAL, NUMBERS = (*FLOAT, *INT), (*FLOAT, *INT, *COMPLEX)
ALL = (*NUMBERS, *BOOL)
SMALL, MANY = 1 << 10, 1 << 18  # elements
Rows = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

# Dtypes, and calls on arrays of each: a, b are flat, m, w square, row and column are m's; i are indices, mask
# is bool, one is a number. What takes longest stands first, so that all cores end together.
LARGE: Rows = (
    (REAL, ("sort(a)", "argsort(a)", "sum(a)")),
    (FLOAT, ("m @ w", "asarray(m.T, copy=True)")),
)
CALLS: Rows = (
    (("float64", "int64"), ("unique(m, axis=0)",)),
    (("uint8",), ("median(a)", "sum(a)", "mean(m, axis=0)", "a + b", "a // one", "astype(a, float32)")),
    (
        ("float64",),
        ("rng.beta(2.0, 3.0, size=9)", "rng.binomial(9, 0.5, size=9)", "rng.poisson(3.0, size=9)"),
    ),
    (("float64",), ("rng.exponential(size=9)", "rng.choice(9, 5, replace=False)", "rng.choice(9, size=5)")),
    (FLOAT, ("reshape(m, (4, 8, 32)) @ reshape(w, (4, 32, 8))", "nanstd(m, axis=0)", "cov(m)", "pad(m, 1)")),
    (FLOAT, ("gradient(a)", "gradient(m)", "nanmax(a)", "percentile(a, 30)", "average(a, weights=b)")),
    (
        FLOAT,
        ("interp(a, sort(b[:9]), a[:9])", "convolve(a, b[:5])", "pad(a, 3)", "meshgrid(a, b)", "kron(m, w)"),
    ),
    (REAL, ("cumulative_sum(m, axis=1)", "outer(a, b)", "digitize(a, sort(b[:5]))", "unique_counts(a)")),
    (("float64",), ("rng.normal(size=9)", "rng.random(9)", "rng.integers(9, size=9)", "rng.permutation(9)")),
    (FLOAT, ("m @ w", "m @ row", "a @ b", "einsum('ij,jk->ik', m, w)", "einsum('ij,ij->i', m, w)")),
    (REAL, ("sum(a)", "sum(m, axis=0)", "sum(m, axis=1)", "prod(a)", "mean(a)", "mean(m, axis=0)")),
    (REAL, ("max(a)", "max(m, axis=0)", "max(m, axis=1)", "min(a)", "min(m, axis=0)", "min(m, axis=1)")),
    (REAL, ("argmax(a)", "argmin(a)", "argmax(m, axis=1)", "sort(a)", "sort(m, axis=0)", "argsort(a)")),
    (REAL, ("unique_values(a)", "searchsorted(sort(a), b)", "isin(a, b[:50])")),
    (REAL, ("cumulative_sum(a)", "repeat(a, 2)", "tile(a, (2,))", "roll(a, 7)", "flip(a) + a")),
    (FLOAT, ("mean(m, axis=1)", "var(a)", "std(m, axis=0)", "std(m, axis=1)", "median(a)", "histogram(a)")),
    (FLOAT, ("quantile(a, 0.3)", "nansum(a)", "nanmean(a)", "linalg.norm(a)", "isclose(a, b)", "diff(a)")),
    (COMPLEX, ("sum(a)", "abs(a)", "a + b", "a - b", "a * b", "a / b", "a + one", "a * one", "-a")),
    (BOOL, ("sum(a)", "mean(a)", "any(m, axis=0)", "any(m, axis=1)", "all(m, axis=0)", "all(m, axis=1)")),
    (BOOL, ("a & b", "a | b", "a ^ b", "~a", "any(a)", "all(a)", "count_nonzero(a)")),
    (INT, ("a & b", "a | b", "a ^ b", "a << 1", "a >> 1", "bincount(a)")),
    (REAL, ("any(a)", "all(a)", "nonzero(a)", "count_nonzero(a)")),
    (REAL, tuple(f"a {op} {b}" for op in ("+", "-", "*", "/", "==", "!=", "<", ">") for b in ("b", "one"))),
    (REAL, ("a // one", "a % one", "a >= one", "a <= one", "one - a", "one / a", "-a", "abs(a)", "a ** 2")),
    (REAL, ("maximum(a, b)", "minimum(a, b)", "maximum(a, one)", "clip(a, 0, 5)", "square(a)", "sign(a)")),
    (REAL, ("m + row", "m - row", "m * row", "m - column", "a += b", "a *= one")),
    (FLOAT, ("m / row", "m / column", "m + w.T", "m * column", "a ** b", "a ** 0.5")),
    (FLOAT, ("sqrt(a)", "exp(a)", "log(a)", "sin(a)", "cos(a)", "tanh(a)", "log1p(a)", "expm1(a)")),
    (FLOAT, ("floor(a)", "ceil(a)", "round(a)", "reciprocal(a)", "special.erf(a)", "allclose(a, b)")),
    (FLOAT, ("cross(m[:, :3], w[:, :3])", "trace(m)", "insert(a, 3, one)", "array_equal(a, b)")),
    (FLOAT, ("isnan(a)", "isfinite(a)", "arctan2(a, b)", "linspace(0, 1, 9, dtype=kind)", "tril(m)")),
    (REAL, ("arange(9, dtype=kind)", "eye(9, dtype=kind)", *(f"astype(a, {kind})" for kind in REAL))),
    (BOOL, tuple(f"astype(a, {kind})" for kind in REAL)),
    (ALL, ("a[:] = one", "a[::2] = b[::2]", "m[:, 0] = one", "m[:, 1:3] = w[:, 1:3]", "a[i]", "a[i] = b")),
    (ALL, ("asarray(a, copy=True)", "asarray(a[::2], copy=True)", "asarray(m[:, 2:], copy=True)")),
    (ALL, ("asarray(m.T, copy=True)", "concat([a, b])", "concat([m, w], axis=1)", "stack([a, b])")),
    (ALL, ("take(a, i)", "take(m, i[:8] % 30, axis=1)", "a[mask]", "a[mask] = one", "where(mask, a, b)")),
    (REAL, ("where(mask, a, one)",)),
)


class Call(NamedTuple):
    """A text of the tables, for one dtype and a number of elements."""

    dtype: str
    text: str
    size: int


def common_calls() -> Iterator[Call]:
    """All of the tables."""
    for rows, size in ((LARGE, MANY), (CALLS, SMALL)):
        for dtypes, texts in rows:
            yield from (Call(dtype, text, size) for text in texts for dtype in dtypes)


def make(call: Call) -> str | None:
    """Makes the call; says what it raised."""
    try:
        exec(call.text, vars(pa) | _operands(call.dtype, call.size))
    except Exception as error:  # of a compiler, say; a kernel less is no reason to stop
        return f"{call.text} of {call.dtype}: {type(error).__name__}: {error}"
    return None


def _operands(dtype: str, size: int) -> dict[str, Any]:
    kind, side = getattr(pa, dtype), int(size**0.5)
    a, b = (pa.asarray((np.arange(n, n + size) % 7).astype(dtype)) for n in (0, 3))
    m, w = (x[: side * side].reshape(side, side) for x in (a, b))
    i = np.arange(size)[::-1].copy()
    own = {"a": a, "b": b, "m": m, "w": w, "row": m[0], "column": m[:, :1], "i": pa.asarray(i)}
    more = {"mask": pa.asarray(i % 2 == 0), "kind": kind, "one": kind(1).item()}
    return own | more | {"rng": pa.random.default_rng(0)}


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
        place = cache.directory()
        if place is None:
            raise ValueError("the kernel cache is off, or its directory can't be used")
        failures = _all(processes or cores(), settings)
    finally:
        for name in settings:
            config.set(name, None)
    if directory is not None:
        _publish(place, began)
    return Warmed(place, len(list(place.glob("*.kernel"))), failures)


def _all(processes: int, settings: dict[str, Any]) -> tuple[str, ...]:
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    with ProcessPoolExecutor(processes, context, _configure, (settings,)) as pool:
        return tuple(message for message in pool.map(make, common_calls()) if message)


def _configure(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        config.set(name, value)


def _publish(place: Path, began: float) -> None:
    for path in place.iterdir():
        if path.suffix == ".kernel" and path.stat().st_mtime >= began:
            path.chmod(0o644)
        elif path.suffix == ".kernel" or path.name.startswith(".new-"):
            path.unlink()
    place.chmod(0o755)
