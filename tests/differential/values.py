"""What is in memory: pools of values by dtype and kind, of which each call takes another stretch."""

from __future__ import annotations

import functools
import zlib

import numpy as np

LENGTH = 1 << 15
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0)
_EXTREME = {"float16": (6e4, 6e-8, 2e-5), "bfloat16": (3e38, 1e-38, 1e-40), "float32": (3e38, 1e-38, 1e-44)}


def storage(dtype: str) -> np.dtype:
    """The type in which NumPy computes: bfloat16 is float32 there, and rounded where it is stored."""
    return np.dtype("float32" if dtype == "bfloat16" else dtype)


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """`values` as they are stored."""
    if dtype != "bfloat16":
        return values
    from ml_dtypes import bfloat16

    with np.errstate(all="ignore"):
        return values.astype(bfloat16).astype(np.float32)


@functools.cache
def pool(dtype: str, kind: str) -> np.ndarray:
    """`LENGTH` values of a kind. `any`: all that the type has; `specials`: ordinary ones, NaN and infinities;
    `finite`; `positive`; `unit`: from -1 to 1; `few`: many equal ones; `LOW:HIGH`: integers."""
    rng = np.random.default_rng(zlib.crc32(f"{dtype} {kind}".encode()))
    np_dtype = storage(dtype)
    if np_dtype.kind == "c":
        part = "float32" if np_dtype.itemsize == 8 else "float64"
        real, imag = pool(part, kind), np.roll(pool(part, kind), 7919)
        return (real + np.complex128(0)).astype(np_dtype) if kind == "real" else _complex(real, imag, np_dtype)
    if ":" in kind:
        low, high = map(int, kind.split(":"))
        return rng.integers(low, high, LENGTH).astype(np_dtype)
    if np_dtype.kind == "b":
        return rng.integers(0, 2, LENGTH).astype(bool)
    found = _integers(rng, np_dtype, kind) if np_dtype.kind in "iu" else _floats(rng, dtype, kind)
    return rounded(found, dtype)


def _complex(real: np.ndarray, imag: np.ndarray, dtype: np.dtype) -> np.ndarray:
    found = np.empty(LENGTH, dtype)
    found.real, found.imag = real, imag
    return found


def _integers(rng: np.random.Generator, dtype: np.dtype, kind: str) -> np.ndarray:
    info, signed = np.iinfo(dtype), dtype.kind == "i"
    if kind == "few":
        return rng.integers(0, 5, LENGTH).astype(dtype)
    if kind == "positive":
        return rng.integers(1, 20, LENGTH).astype(dtype)
    if kind == "unit":
        return rng.integers(-1 if signed else 0, 2, LENGTH).astype(dtype)
    found = rng.integers(-20 if signed else 0, 21, LENGTH).astype(dtype)
    if kind == "any":
        wide = rng.integers(info.min, info.max, LENGTH, dtype=dtype, endpoint=True)
        ends = rng.choice(np.array([info.min, info.min + 1, info.max, info.max - 1], dtype), LENGTH)
        which = rng.integers(0, 4, LENGTH)
        found = np.where(which == 0, wide, np.where(which == 1, ends, found))
    return found


def _floats(rng: np.random.Generator, dtype: str, kind: str) -> np.ndarray:
    np_dtype = storage(dtype)
    found = rng.normal(0, 3, LENGTH)
    whole = rng.integers(0, 3, LENGTH) == 0
    found[whole] = np.round(found[whole])
    if kind == "few":
        return rng.integers(-2, 3, LENGTH).astype(np_dtype)
    if kind == "positive":
        found = np.abs(found) + 0.125
    elif kind == "unit":
        found = rng.uniform(-1, 1, LENGTH)
    elif kind in ("any", "specials"):
        extra = list(SPECIAL)
        if kind == "any":
            large, small, tiny = _EXTREME.get(dtype, (1.5e308, 2.3e-308, 5e-324))
            extra += [large, -large, small, tiny, -tiny, 0.5, 2.5, -1.5]
        at = rng.integers(0, 5 if kind == "any" else 12, LENGTH) == 0
        found[at] = rng.choice(np.array(extra), LENGTH)[at]
    return found.astype(np_dtype)


def fill(rng: np.random.Generator, size: int, dtype: str, kind: str) -> np.ndarray:
    """Fresh values: another stretch of the pool."""
    if size > LENGTH:
        return np.resize(fill(rng, LENGTH, dtype, kind), size)
    start = int(rng.integers(0, LENGTH - size + 1))
    return pool(dtype, kind)[start : start + size].copy()
