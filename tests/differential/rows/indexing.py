"""Indexing and assignment: basic, by arrays of integers, by masks; functions that take indices."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..draw import Draw
from ..operands import Operand
from .base import Arguments, drawn, row, shaped
from .elementwise import scalar


def _get(x: Any, key: Any) -> Any:
    result = x[key]
    return result.copy() if hasattr(result, "copy") else result


def _set(x: Any, key: Any, value: Any) -> Any:
    x[key] = value


def basic(d: Draw, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Integers, slices, an ellipsis, a new axis."""
    key: list[Any] = []
    for n in shape[: d.integer(0, len(shape))]:
        if n and d.chance(0.3):
            key.append(d.integer(-n, n - 1))
        else:
            ends = [None if d.chance(0.4) else d.integer(-n - 1, n + 1) for _ in range(2)]
            key.append(slice(*ends, d.one_of((None, 1, 2, -1, -2, 3))))
    if d.chance(0.2):
        key.insert(d.integer(0, len(key)), None)
    if d.chance(0.3):
        key.append(Ellipsis)
    return tuple(key)


def advanced(d: Draw, shape: tuple[int, ...], unique: bool = False) -> Any:
    """Arrays of integers, among slices; or a mask. `unique`: no element twice."""
    if d.chance(0.3):
        return d.array(shape[: d.integer(1, len(shape))], "bool")
    if unique:
        n = shape[0]
        return [int(k) for k in d.rng.permutation(n)[: d.integer(0, n)]]
    key: list[Any] = []
    common = d.shape(1, 2)
    for n in shape[: d.integer(1, len(shape))]:
        if key and d.chance(0.3):
            key.append(slice(None, None, d.one_of((1, -1, 2))))
        else:
            key.append(_index(d, d.broadcastable(common) if key else common, n))
    return tuple(key) if len(key) > 1 or d.chance(0.5) else key[0]


def _index(d: Draw, shape: tuple[int, ...], n: int) -> Operand:
    return d.array(shape, d.one_of(("int64", "int64", "int32", "uint8")), f"0:{n}")


def _filled(d: Draw) -> tuple[int, ...]:
    return d.shape(1, empty=False)


row(
    "ndarray.__getitem__",
    shaped(lambda d, x: ((d.array(x, ours=True), basic(d, x)), {})),
    ours=_get,
    theirs=_get,
)
row(
    "ndarray.__getitem__",
    shaped(lambda d, x: ((d.array(x, ours=True), advanced(d, x)), {}), 1, empty=False),
    ours=_get,
    theirs=_get,
)


@drawn("ndarray.__setitem__", ours=_set, theirs=_set)
def _set_basic(d: Draw) -> Arguments:
    shape = d.shape()
    x = d.array(shape, write=True, ours=True)
    key = basic(d, shape)
    if d.chance(0.4):
        return (x, key, scalar(d, "finite")), {}
    target = np.empty(shape, "int8")[key].shape
    return (x, key, d.array(target if d.chance(0.6) else d.broadcastable(target))), {}


@drawn("ndarray.__setitem__", ours=_set, theirs=_set)
def _set_advanced(d: Draw) -> Arguments:
    shape = _filled(d)
    x = d.array(shape, write=True, ours=True)
    key = advanced(d, shape, unique=True)
    if d.chance(0.5) or not isinstance(key, list):
        return (x, key, scalar(d, "finite")), {}
    target = (len(key), *shape[1:])
    return (x, key, d.array(target if d.chance(0.6) else d.broadcastable(target))), {}


@drawn("ndarray.__setitem__", ours=_set, theirs=_set)
def _set_masked(d: Draw) -> Arguments:
    shape = _filled(d)
    mask = d.array(shape, "bool")
    return (d.array(shape, write=True, ours=True), mask, scalar(d, "finite")), {}


@drawn("take ndarray.take")
def _take(d: Draw) -> Arguments:
    shape = _filled(d)
    if len(shape) == 1 or d.chance(0.3):
        n = math.prod(shape)
        return (d.array(shape, ours=True), d.array(d.shape(0, 2), "int64", f"{-n}:{n}")), {}
    axis = d.axis(shape)
    return (d.array(shape, ours=True), d.array(d.shape(0, 1), "int64", f"0:{shape[axis]}")), {"axis": axis}


@drawn("take_along_axis")
def _take_along_axis(d: Draw) -> Arguments:
    shape = _filled(d)
    axis = d.axis(shape)
    sizes = list(shape)
    sizes[axis] = d.integer(1, 5)
    return (d.array(shape), d.array(tuple(sizes), "int64", f"0:{shape[axis]}")), {"axis": axis}


@drawn("put_along_axis")
def _put_along_axis(d: Draw) -> Arguments:
    shape = _filled(d)
    axis = d.axis(shape)
    sizes = list(shape)
    sizes[axis] = 1
    return (
        d.array(shape, write=True, ours=True),
        d.array(tuple(sizes), "int64", f"0:{shape[axis]}"),
        scalar(d, "finite"),
        axis,
    ), {}


@drawn("compress")
def _compress(d: Draw) -> Arguments:
    shape = _filled(d)
    axis = d.axis(shape)
    return (d.array((d.integer(0, shape[axis]),), "bool"), d.array(shape, ours=True)), {"axis": axis}


row(
    "ndarray.compress",
    _compress,
    ours=lambda condition, x, axis: x.compress(condition, axis=axis),
    theirs=lambda condition, x, axis: x.compress(condition, axis=axis),
)
row("extract", shaped(lambda d, x: ((d.array(x, "bool"), d.array(x)), {})))


@drawn("copyto")
def _copyto(d: Draw) -> Arguments:
    shape = d.shape()
    source = d.array(shape if d.chance(0.7) else d.broadcastable(shape))
    options = {"where": d.array(d.broadcastable(shape), "bool")} if d.chance(0.5) else {}
    return (d.array(shape, write=True, ours=True), source), options


@drawn("putmask")
def _putmask(d: Draw) -> Arguments:
    shape = d.shape(1)
    return (d.array(shape, write=True, ours=True), d.array(shape, "bool"), d.array(shape)), {}


@drawn("place")
def _place(d: Draw) -> Arguments:
    shape = d.shape(1)
    return (d.array(shape, write=True, ours=True), d.array(shape, "bool"), d.array((d.integer(1, 3),))), {}


@drawn("put ndarray.put")
def _put(d: Draw) -> Arguments:
    shape = _filled(d)
    n = math.prod(shape)
    positions = [int(k) for k in d.rng.permutation(n)[: d.integer(0, min(n, 9))]]
    return (d.array(shape, write=True, ours=True), positions, scalar(d, "finite")), {}


@drawn("choose")
def _choose(d: Draw) -> Arguments:
    shape = d.shape(1)
    choices = [d.array(d.broadcastable(shape)) for _ in range(3)]
    return (d.array(shape, "int64", "0:3"), choices), {}


@drawn("ndarray.choose")
def _choose_method(d: Draw) -> Arguments:
    shape = d.shape(1)
    return (d.array(shape, "int64", "0:3", ours=True), [d.array(shape) for _ in range(3)]), {}


@drawn("select")
def _select(d: Draw) -> Arguments:
    shape = d.shape(1)
    return ([d.array(shape, "bool") for _ in range(2)], [d.array(shape) for _ in range(2)]), {}


@drawn("fill_diagonal")
def _fill_diagonal(d: Draw) -> Arguments:
    return (d.array((d.integer(1, 6), d.integer(1, 6)), write=True, ours=True), scalar(d, "finite")), {}


row("ndarray.fill", lambda d: ((d.array(d.shape(), write=True, ours=True), scalar(d, "finite")), {}))
row("unravel_index", lambda d: ((d.array(d.shape(0, 2), "int64", "0:24"), (2, 3, 4)), {}), "i")
row(
    "ravel_multi_index",
    shaped(lambda d, x: (((d.array(x, "int64", "0:3"), d.array(x, "int64", "0:4")), (3, 4)), {}), 1, 2),
    "i",
)
row(
    "ndarray.__contains__",
    lambda d: ((d.array(d.shape(), values="few"), 1), {}),
    "iuf",
    ours=operator.contains,
    theirs=operator.contains,
)
