"""A row of the table: how one function is called, and what is drawn for it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pyarray as pa

from ..draw import Draw, dtypes_of

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Row:
    """`name` as a user writes it: "add", "linalg.inv", "ndarray.sum". `draw` gives the arguments of a call.
    `close` says how near results must be: "exact" (bits, but for those of NaN), "equal" (but for the signs of
    zeros), "ulp", "sum" (of as many elements as there are), "square" (of products), "loose" (decompositions).
    `shares`: operands may share memory."""

    name: str
    draw: Callable[[Draw], Arguments]
    dtypes: tuple[str, ...]
    close: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    shares: bool = True
    few: bool = True  # only some of the dtypes in one run
    there: bool = True  # NumPy has the function: not all versions have all


ROWS: list[Row] = []


def row(
    name: str,
    draw: Callable[[Draw], Arguments],
    kinds: str = "biufc",
    close: str = "exact",
    *,
    dtypes: tuple[str, ...] | None = None,
    ours: Callable[..., Any] | None = None,
    theirs: Callable[..., Any] | None = None,
    shares: bool = True,
    few: bool = True,
) -> None:
    """Puts a function into the table. `ours` and `theirs` are what its name says unless given."""
    mine, other = ours or function(pa, name), theirs or function(np, name)
    there = theirs is not None or _there(name)
    ROWS.append(Row(name, draw, dtypes or dtypes_of(kinds), close, mine, other, shares, few, there))


def rows(names: str, draw: Callable[[Draw], Arguments], kinds: str = "biufc", close: str = "exact", **how: Any) -> None:
    """`row` for each of several names."""
    for name in names.split():
        row(name, draw, kinds, close, **how)


def drawn(names: str, kinds: str = "biufc", close: str = "exact", **how: Any) -> Callable[..., Any]:
    """Decorator of what draws for these functions: `rows`."""

    def add(draw: Callable[[Draw], Arguments]) -> Callable[[Draw], Arguments]:
        rows(names, draw, kinds, close, **how)
        return draw

    return add


def shaped(
    make: Callable[[Draw, tuple[int, ...]], Arguments], least: int = 0, most: int = 3, empty: bool = True
) -> Callable[[Draw], Arguments]:
    """What draws a shape of `least` to `most` axes first, and then what `make` makes of it."""
    return lambda d: make(d, d.shape(least, most, empty))


def function(library: Any, name: str) -> Callable[..., Any]:
    """What `library` calls by this name, looked up when it is called; methods and operators take the array
    first."""
    if name.startswith("ndarray."):
        return functools.partial(_method, name.removeprefix("ndarray."))
    return functools.partial(_call, operator.attrgetter(name), library)


def _there(name: str) -> bool:
    try:
        operator.attrgetter(name)(np)
    except AttributeError:
        return False
    return True


def _call(get: Callable[[Any], Any], library: Any, *args: Any, **kwargs: Any) -> Any:
    return get(library)(*args, **kwargs)


def _method(name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
    return getattr(x, name)(*args, **kwargs)
