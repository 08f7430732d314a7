"""Methods of ufuncs: `add.reduce`, `maximum.accumulate`, `subtract.outer`, `add.at`, `multiply.reduceat`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import pyarray as pa

from ..draw import Draw
from ..operands import Operand
from .base import Arguments, row
from .indexing import advanced
from .totals import total, wider

# names, values, kinds, closeness
_FOLDED = (
    ("add multiply", "unit", "f", "sum"),
    ("add multiply", "finite", "biu", "exact"),
    ("add multiply", "unit", "c", "sum"),
    ("maximum minimum fmax fmin", "specials", "iuf", "equal"),
    ("logical_and logical_or logical_xor", "few", "biuf", "exact"),
    ("bitwise_and bitwise_or bitwise_xor", "any", "biu", "exact"),
    ("gcd lcm subtract", "1:5", "iu", "exact"),
    ("subtract hypot logaddexp logaddexp2", "unit", "f", "sum"),
    ("copysign", "specials", "f", "exact"),
)
_ONE_AXIS = "subtract copysign logical_xor"  # the order matters, or NumPy says so
_INITIAL = {"add": (0, 3), "multiply": (1, 3), "maximum": (0, 1), "minimum": (0, 1)}


def _of(library: Any, method: str) -> Callable[..., Any]:
    return functools.partial(_called, library, method)


def _called(library: Any, method: str, name: str, *args: Any, **options: Any) -> Any:
    return getattr(getattr(library, name), method)(*args, **options)


def _fold(names: str, values: str) -> Callable[[Draw], Arguments]:
    def draw(d: Draw) -> Arguments:
        name = d.one_of(names.split())
        how = "where" if name in _INITIAL or name.startswith("logical_a") else ""
        args, options = total(values, how, _INITIAL.get(name, ()), axes=name not in _ONE_AXIS, empty=d.chance(0.3))(d)
        if options["axis"] is None and (name in _ONE_AXIS or d.chance(0.3)):
            del options["axis"]
        return (name, *args), options

    return draw


def _running(names: str, values: str) -> Callable[[Draw], Arguments]:
    def draw(d: Draw) -> Arguments:
        name, shape = d.one_of(names.split()), d.shape(least=1)
        options: dict[str, Any] = {"axis": d.axis(shape)} if d.chance(0.7) else {}
        if name in ("add", "multiply") and d.dtype not in ("bfloat16", "bool") and d.chance(0.2):
            options["dtype"] = wider(d)
        return (name, d.array(shape, values=values)), options

    return draw


def _segments(names: str, values: str) -> Callable[[Draw], Arguments]:
    def draw(d: Draw) -> Arguments:
        name, shape = d.one_of(names.split()), d.shape(least=1, empty=False)
        axis = d.axis(shape)
        starts = [d.integer(0, shape[axis] - 1) for _ in range(d.integer(0, 5))]
        given = d.array((len(starts),), "int64", f"0:{shape[axis]}") if d.chance(0.5) and starts else starts
        return (name, d.array(shape, values=values), given), {"axis": axis}

    return draw


def _outer(names: str, values: str) -> Callable[[Draw], Arguments]:
    def draw(d: Draw) -> Arguments:
        shapes = [tuple(n for n in d.shape(most=2) if n < 20) for _ in range(2)]
        return (d.one_of(names.split()), *(d.array(shape, values=values) for shape in shapes)), {}

    return draw


def _at(names: str, values: str) -> Callable[[Draw], Arguments]:
    def draw(d: Draw) -> Arguments:
        shape = d.shape(least=1, empty=False)
        x = d.array(shape, values=values, write=True, ours=True)
        key = advanced(d, shape)
        if d.chance(0.4) and d.dtype != "uint64":  # `at` takes a number for int64
            return (d.one_of(names.split()), x, key, True if d.dtype == "bool" else 1), {}
        target = _indexed(d, shape, key)
        return (d.one_of(names.split()), x, key, d.array(d.broadcastable(target), values=values)), {}

    return draw


def _indexed(d: Draw, shape: tuple[int, ...], key: Any) -> tuple[int, ...]:
    """A shape that broadcasts to what `key` chooses."""
    plain = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, Operand) and d.memories[k.memory].dtype == "bool" for k in plain):
        return ()  # the number of elements isn't known yet
    zeros = tuple(np.zeros(k.shape, int) if isinstance(k, Operand) else k for k in plain)
    return np.empty(shape, np.int8)[zeros].shape


for _names, _values, _kinds, _close in _FOLDED:
    for _method, _make in (
        ("reduce", _fold), ("accumulate", _running), ("reduceat", _segments), ("outer", _outer), ("at", _at),
    ):  # fmt: skip
        row(f"ufunc.{_method}", _make(_names, _values), _kinds, _close,
            ours=_of(pa, _method), theirs=_of(np, _method))  # fmt: skip


def _at_one(d: Draw) -> Arguments:
    shape = d.shape(least=1, empty=False)
    # squares of squares grow what rounding to bfloat16 changes, and NumPy's side rounds once
    squares = () if d.dtype == "bfloat16" else ("square",)
    name = d.one_of(("negative", "absolute", *squares))
    return (name, d.array(shape, values="specials", write=True, ours=True), advanced(d, shape)), {}


row("ufunc.at", _at_one, "if", ours=_of(pa, "at"), theirs=_of(np, "at"))
