"""Evaluates expressions that follow from sizes, numbers and loop variables.

A value is a Python number, a vector with an element per unrolled iteration, or None if it isn't known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import ir
from .promotion import FOLD

_BUILTIN = {"min": np.minimum, "max": np.maximum, "abs": np.abs}


@dataclass(frozen=True)
class View:
    """An array or a part of it: the parameter that it is of, and its sizes."""

    base: str
    shape: tuple[Any, ...]

    def sliced(self, parts: Sequence[Any], transposed: bool = False) -> View:
        """`parts`: per axis 0 (dropped), (start, stop, step), or None (kept, of unknown size). Further axes
        are kept; `transposed`: in reverse order."""
        shape: list[Any] = []
        for extent, part in zip(self.shape, parts, strict=False):
            if part is None or extent is None:
                shape.append(None)
            elif part != 0:
                shape.append(_slice_length(extent, *part))
        shape += self.shape[len(parts) :]
        return View(self.base, tuple(shape[::-1] if transposed else shape))

    def reshaped(self, sizes: list[Any], missing: int | None) -> View:
        """`missing` is the axis whose size the others leave."""
        given_sizes = [n for k, n in enumerate(sizes) if k != missing]
        if missing is not None:
            unknown = None in (*given_sizes, *self.shape)
            remaining = None if unknown else math.prod(self.shape) // (math.prod(given_sizes) or 1)
            sizes = [*sizes[:missing], remaining, *sizes[missing + 1 :]]
        return View(self.base, tuple(sizes))


def at_points(value: Any, points: Any) -> Any:
    """A value at these points."""
    if isinstance(value, View):
        return View(value.base, tuple(at_points(n, points) for n in value.shape))
    return value[points] if isinstance(value, np.ndarray) else value


def trip_count(start: Any, stop: Any, step: Any) -> Any:
    """Iterations of `range(start, stop, step)`.

    >>> trip_count(0, 10, 3), trip_count(5, 0, -2), trip_count(3, 1, 1), trip_count(0, None, 1)
    (4, 3, 0, None)
    """
    if start is None or stop is None or step is None:
        return None
    if not any(isinstance(x, np.ndarray) for x in (start, stop, step)):
        return len(range(int(start), int(stop), int(step))) if step else None
    return np.where(np.equal(step, 0), 0, np.maximum(-((start - stop) // step), 0))


def _slice_length(extent: Any, start: Any, stop: Any, step: Any) -> Any:
    """The size of a slice of an axis."""
    if not any(isinstance(x, np.ndarray) for x in (extent, start, stop, step)):
        return len(range(*slice(start, stop, step).indices(int(extent))))
    if isinstance(step, np.ndarray) or (step is not None and step < 1):
        return None

    def end(value: Any, default: Any) -> Any:
        value = default if value is None else value
        return np.clip(np.where(np.less(value, 0), value + extent, value), 0, extent)

    return trip_count(end(start, 0), end(stop, extent), 1 if step is None else step)


def evaluate(node: Any, parts: Sequence[Any]) -> Any:
    """The value of an expression from those of its parts."""
    if isinstance(node, ir.Const):
        return node.value
    if any(x is None or isinstance(x, View) for x in parts):
        return None
    try:
        return _operate(node, parts)
    except (ArithmeticError, TypeError, ValueError):
        return None  # the kernel's own arithmetic says what becomes of it


def _operate(node: Any, parts: Sequence[Any]) -> Any:
    match node:
        case ir.Unary(op="neg"):
            return -parts[0]
        case ir.Unary(op="not"):
            return np.logical_not(parts[0]) if isinstance(parts[0], np.ndarray) else not parts[0]
        case ir.Unary(op="invert"):
            return ~parts[0]
        case ir.Binary(op=op) | ir.Compare(op=op) if op != "pow":
            return FOLD[op](*parts)
        case ir.Builtin(name=name) if name in _BUILTIN:
            return _python_number(_BUILTIN[name](*parts))
        case ir.Cast(type=kind):
            return _cast(kind.dtype.kind, parts[0])
        case ir.Convert(how="saturate"):
            return parts[0]
        case ir.Pack():
            return tuple(parts)
        case ir.Item(number=number):
            return parts[0][number]
    return None


def _python_number(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else value.item()


def _cast(kind: str, value: Any) -> Any:
    convert = {"b": bool, "i": int, "u": int, "f": float}.get(kind)
    if convert is None:
        return None
    return value.astype(convert) if isinstance(value, np.ndarray) else convert(value)
