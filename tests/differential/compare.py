"""One run of a case on both sides, and what differs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import pyarray as pa

from .operands import Case, Operand, Run, mapped
from .values import rounded

EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
TINY = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
REFUSALS = (ValueError, TypeError, LookupError, ArithmeticError)  # an argument is wrong; LinAlgError is one


@dataclass
class Difference:
    """`aspect` is "raises", "type", "shape", "dtype", "values" or "memory"."""

    aspect: str
    text: str


def outcome(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Exception | None]:
    """(result, what was raised)"""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs), None
        except Exception as error:
            return None, error


def run(case: Case, rng: np.random.Generator, device: str) -> list[Difference] | None:
    """What differs in one run of `case`, with fresh memory and values. None: both sides refuse it."""
    made = Run(case, rng, device)
    args, kwargs = made.arguments(ours=True)
    result, error = outcome(case.row.ours, args, kwargs)
    theirs, options = made.arguments(ours=False)
    wanted, refusal = outcome(case.row.theirs, theirs, options)
    if refusal is not None or error is not None:
        if (refusal is None) == (error is None):
            return None if isinstance(error, REFUSALS) else [Difference("raises", f"{error!r} for {refusal!r}")]
        return [Difference("raises", f"{error!r}" if error is not None else f"nothing for {refusal!r}")]
    scale = _scale(made)
    differences = list(_compare(case, result, wanted, scale))
    for k, (block, host) in enumerate(zip(made.ours, made.hosts, strict=True)):
        now = pa.asnumpy(block)
        wanted_now = rounded(host, case.memories[k].dtype)
        if text := _values(case, now, wanted_now, case.memories[k].dtype, scale):
            differences.append(Difference("memory", f"memory {k}: {text}"))
    return differences


def _scale(made: Run) -> tuple[float, int]:
    """The largest finite value of the operands, and the number of elements of the largest."""
    most, size = 1.0, 1
    for x in made.case.operands():
        values = made.before[x.memory]
        size = max(size, int(np.prod(x.shape)))
        if values.size and values.dtype.kind in "fciu":
            with np.errstate(all="ignore"):
                sizes = np.abs(values.astype(np.complex128 if values.dtype.kind == "c" else np.float64))
            most = max(most, float(np.max(sizes, where=np.isfinite(sizes), initial=1.0)))
    return most, size


def _compare(case: Case, result: Any, wanted: Any, scale: tuple[float, int]) -> Any:
    if isinstance(wanted, (tuple, list)) and not isinstance(result, pa.ndarray):
        if not isinstance(result, (tuple, list)) or len(result) != len(wanted):
            yield Difference("type", f"{type(result).__name__} for {type(wanted).__name__}")
            return
        for mine, theirs in zip(result, wanted, strict=True):
            yield from _compare(case, mine, theirs, scale)
        return
    if wanted is None or isinstance(wanted, (str, bytes, slice)) or result is None:
        if result is not wanted and result != wanted:
            yield Difference("values", f"{result!r} for {wanted!r}")
        return
    mine = pa.asnumpy(result) if isinstance(result, pa.ndarray) else np.asarray(result)
    theirs = np.asarray(wanted)
    if mine.shape != theirs.shape:
        yield Difference("shape", f"{mine.shape} for {theirs.shape}")
        return
    if text := _dtype(case, mine.dtype, theirs.dtype):
        yield Difference("dtype", text)
    if text := _values(case, mine, theirs, mine.dtype.name, scale):
        yield Difference("values", text)


def _dtype(case: Case, mine: np.dtype, theirs: np.dtype) -> str:
    if mine == theirs or (mine.str == theirs.str and mine.kind in "iu"):  # int64 has two names in NumPy
        return ""
    if (
        "bfloat16" in case.dtypes
        and theirs.name in ("float32", "float64", "complex64")
        and (mine.name in ("bfloat16", "float32", "complex64"))
    ):
        return ""
    return f"{mine} for {theirs}"


def _values(case: Case, mine: np.ndarray, theirs: np.ndarray, dtype: str, scale: tuple[float, int]) -> str:
    """Where the values differ, the first place; "" where they don't."""
    if mine.size == 0:
        return ""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if dtype == "bfloat16":
            mine, theirs = mine.astype(np.float32), rounded(theirs.astype(np.float32), dtype)
        if mine.dtype.kind not in "fc" and theirs.dtype.kind not in "fc":
            wrong = mine != theirs
        else:
            wrong = _apart(case, mine, theirs, dtype, scale)
    wrong = np.asarray(wrong)
    if not wrong.any():
        return ""
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    count = int(wrong.sum())
    return f"{count} of {mine.size}, at {index} {mine[index]!r} for {theirs[index]!r}"


def _apart(case: Case, mine: np.ndarray, theirs: np.ndarray, dtype: str, scale: tuple[float, int]) -> np.ndarray:
    names = [dtype, mine.dtype.name, theirs.dtype.name, *case.dtypes]
    if mine.dtype.kind == "c" or theirs.dtype.kind == "c":
        names += ["float32" if mine.dtype.itemsize == 8 else "float64"]
        magnitude = np.abs(theirs)
        real, imag = (_reals(case, part(mine), part(theirs), names, scale, magnitude) for part in (np.real, np.imag))
        return real | imag
    return _reals(case, mine, theirs, names, scale, np.abs(theirs))


def _reals(
    case: Case,
    mine: np.ndarray,
    theirs: np.ndarray,
    names: list[str],
    scale: tuple[float, int],
    size: np.ndarray,
) -> np.ndarray:
    """Where real numbers differ by more than the coarsest dtype lets them; `size` is a complex one's, too."""
    close = case.row.close
    nan = np.isnan(mine) & np.isnan(theirs)
    if close in ("exact", "equal") and mine.dtype == theirs.dtype:
        signs = (np.signbit(mine) != np.signbit(theirs)) & (mine == 0) & (close == "exact")
        return ~nan & ((mine != theirs) | signs)
    coarse = max((name for name in names if name in EPS), key=EPS.__getitem__, default="float64")
    kind = {"float64": np.float64, "float16": np.float16}.get(coarse, np.float32)
    x, y = (values.astype(kind).astype(np.float64) for values in (mine, theirs))
    size = np.where(np.isfinite(size), size, 0.0).astype(np.float64)
    allowed = 8 * EPS[coarse] * size + 8 * TINY[coarse]
    most, count = scale
    if close in ("sum", "square"):
        allowed = allowed + EPS[coarse] * (16 + 4 * count) * (most if close == "sum" else most * most)
    elif close == "loose":
        allowed = allowed + EPS[coarse] * (1000 + 100 * count) * max(1.0, most * most) * np.maximum(1.0, size)
    return ~((x == y) | nan) & ~(np.abs(x - y) <= allowed)


def shown(case: Case, seed: str, device: str) -> str:
    """The call as a line: operands by dtype, shape, steps, memory and first element."""

    def text(x: Operand) -> Any:
        m = case.memories[x.memory]
        extra = "" if x.given == "array" else f" {x.given}"
        extra += "" if x.writeable else " read-only"
        extra += " foreign" if m.foreign else ""
        return _Text(f"<{m.dtype}{list(x.shape)} steps {list(x.steps)} m{x.memory}+{x.start} {m.values}{extra}>")

    args, kwargs = mapped((case.args, case.kwargs), text)
    parts = [repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
    return f"{case.row.name}({', '.join(parts)}) on {device} [{seed}]"


class _Text(str):
    def __repr__(self) -> str:
        return str(self)
