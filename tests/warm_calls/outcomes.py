"""What a call gives, as plain data that compares equal where it is the same to the bit: results, errors, warnings,
and what all operands are afterwards."""

from __future__ import annotations

import importlib.util
import re
import warnings
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
from differential.operands import Case, Operand, Run, _as_numpy

import pyarray as pa

HAS_TORCH = importlib.util.find_spec("torch") is not None
_ADDRESS = re.compile(r"0x[0-9a-f]+")


class Labelled(np.ndarray):
    """A subclass of NumPy's that adds nothing."""


class Made(Run):
    """Arrays and arguments of one run of a case: the same values for the same number `values`."""

    def __init__(self, case: Case, values: int, device: str):
        rng = np.random.default_rng([zlib.crc32(case.row.name.encode()), values])
        super().__init__(case, rng, device)
        self.args, self.kwargs = self.arguments(ours=True)

    def _mine(self, x: Operand) -> Any:
        if x.given == "marked":
            return super()._mine(replace(x, given="array")).mark_static()
        if x.given not in ("subclass", "tensor"):
            return super()._mine(x)
        own = _as_numpy(self._theirs(x), "numpy", self.case.memories[x.memory].dtype)
        if x.given == "subclass":
            return own.view(Labelled)
        return _tensor(own)

    def refill(self, values: int) -> bool:
        """The same arrays with other values; False where they can't be had: NumPy's and torch's, what isn't writeable,
        and what a call has resized."""
        if any(x.given not in ("array", "view", "returned", "marked") for x in self.case.operands()):
            return False
        pairs = list(zip(self.ours, self.case.memories, strict=True))
        if not all(own.flags.writeable and own.shape == memory.shape for own, memory in pairs):
            return False
        other = Made(self.case, values, self.device)
        for mine, new in zip(self.ours, other.ours, strict=True):
            pa.copyto(mine, new)
        return True


def _tensor(own: np.ndarray) -> Any:
    """As a tensor where torch has the dtype."""
    if HAS_TORCH:
        import torch

        try:
            return torch.from_numpy(own)
        except TypeError:
            pass
    return own


def outcome(made: Made) -> tuple[Any, dict[str, Any]]:
    """(what the call returns, what is said of it)"""
    result: Any = None
    error: tuple[str, ...] = ()
    with warnings.catch_warnings(record=True) as warned, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            result = made.case.row.ours(*made.args, **made.kwargs)
        except Exception as raised:
            text = str(raised).partition(" bytes: ")[0]  # how many are free changes meanwhile
            error = type(raised).__name__, _ADDRESS.sub("", text)
    return result, {
        "error": error,
        "warnings": tuple((w.category.__name__, str(w.message)) for w in warned),
        "result": described(result, made),
        "operands": described((made.args, made.kwargs), made),
        "memory": tuple(_bits(memory.get()) for memory in made.ours),
    }


def described(x: Any, made: Made) -> Any:
    """A value as nested tuples."""
    if isinstance(x, pa.ndarray):
        return _described_array(x, made)
    if isinstance(x, np.ndarray):
        return type(x).__name__, x.dtype.str, x.shape, x.strides, x.flags.writeable, _bits(np.asarray(x))
    if isinstance(x, (tuple, list)):
        return type(x).__name__, *(described(item, made) for item in x)
    if isinstance(x, dict):
        return "dict", *((name, described(item, made)) for name, item in x.items())
    if isinstance(x, (bool, int, str, bytes, type(None), slice)):
        return type(x).__name__, repr(x)
    if isinstance(x, (float, complex, np.generic)):
        return type(x).__name__, _bits(np.asarray(x))
    if hasattr(x, "numpy"):  # a tensor
        return type(x).__name__, described(x.numpy(), made)
    return type(x).__name__, _ADDRESS.sub("", str(x))


def _described_array(x: Any, made: Made) -> tuple[Any, ...]:
    base = x.base
    return (
        type(x).__name__, x.dtype.name, x.shape, x.strides, str(x.device), str(x.flags), x.byte_offset,
        ("is", _which(x, made)),
        ("base", base is not None and (_which(base, made), base.shape, base.strides, base.dtype.name)),
        ("in memory of", next((k for k, own in enumerate(made.ours) if own._buffer is x._buffer), None)),
        _bits(x.get()),
    )  # fmt: skip


def _which(x: Any, made: Made) -> tuple[str, int] | None:
    """Which operand or memory this very array is."""
    for name, arrays in (("operand", made.args), ("keyword", made.kwargs.values()), ("memory", made.ours)):
        for k, own in enumerate(arrays):
            if own is x:
                return name, k
    return None


def _bits(values: np.ndarray) -> bytes:
    """Elements in C order; all NaNs are one."""
    plain = np.ascontiguousarray(values)
    if plain.dtype.kind == "c":
        plain = plain.view(np.float32 if plain.itemsize == 8 else np.float64)
    if plain.dtype.kind == "f" or plain.dtype.name == "bfloat16":
        wrong = np.isnan(plain)
        if wrong.any():
            plain = np.where(wrong, plain.dtype.type(np.nan), plain)
    return plain.tobytes()


def difference(found: Any, wanted: Any, where: str = "") -> tuple[str, str]:
    """Where two outcomes differ first, and how; ("", "") where they don't."""
    if found == wanted:
        return "", ""
    if isinstance(found, dict):
        for name in found:
            if found[name] != wanted[name]:
                return difference(found[name], wanted[name], name)
    if isinstance(found, tuple) and isinstance(wanted, tuple) and len(found) == len(wanted):
        for k, (mine, other) in enumerate(zip(found, wanted, strict=True)):
            if mine != other:
                return difference(mine, other, f"{where}.{k}")
    shown = [x.hex(" ")[:120] if isinstance(x, bytes) else repr(x)[:300] for x in (found, wanted)]
    return where, f"{shown[0]} for {shown[1]}"
