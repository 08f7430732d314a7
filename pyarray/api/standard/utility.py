"""Utility functions: any, all."""

from __future__ import annotations

from typing import Any

from ...array import STRIDED, ndarray
from ...array_host import on_host
from ...dtypes import bool_
from ...jit.launch_state import OBSERVED, launch_state
from ...jit.replay import replayable_by_types
from ...kernels.reduce.reduce import ALL, ANY, PIECE, ReduceOp
from ...typing import ArrayLike, AxisLike
from ..core.registry import REAL, method, precompiled
from .statistical import as_operand, reduction

__all__ = ["all", "any"]
FIRST = 1 << 11  # elements that are reduced first, where one may decide
LONG = 2 * PIECE  # elements, from which that pays


@precompiled(("bool",), "any(m, axis=0)", "any(m, axis=1)")
@precompiled((*REAL, "bool"), "any(a)")
@method
def any(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    *,
    keepdims: bool = False,
    out: ndarray | None = None,
    where: ArrayLike = True,
) -> ndarray:
    """Whether an element over `axis` (None: all axes), of those where `where` is true, is true; False over no
    elements. NaN is true.

    >>> pa.any(pa.asarray([0, 2])).item()
    True
    """
    plain = axis is None and not keepdims and out is None and where is True
    if plain and (first := _of_first(_any, x, True)) is not None:
        return first
    return _any(x) if plain else _any(x, axis, keepdims, out, where)


@precompiled(("bool",), "all(m, axis=0)", "all(m, axis=1)")
@precompiled((*REAL, "bool"), "all(a)")
@method
def all(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    *,
    keepdims: bool = False,
    out: ndarray | None = None,
    where: ArrayLike = True,
) -> ndarray:
    """Whether all elements over `axis` (None: all axes), of those where `where` is true, are true; True over
    no elements. NaN is true.

    >>> pa.all(pa.asarray([1, 0])).item()
    False
    """
    plain = axis is None and not keepdims and out is None and where is True
    if plain and (first := _of_first(_all, x, False)) is not None:
        return first
    return _all(x) if plain else _all(x, axis, keepdims, out, where)


def _of_first(function: Any, x: Any, decisive: bool) -> ndarray | None:
    """The result where the first elements of a long array on the CPU decide, which they do most often. Not in a call
    that is captured: a plan reads all."""
    if not isinstance(x, ndarray) or x._size < LONG or x._key & STRIDED or not on_host(x):
        return None
    if launch_state.key is OBSERVED:
        return None
    first: ndarray = function(x._view(0, (FIRST,), (x._dtype.itemsize,)))
    return first if first.item() is decisive else None


@replayable_by_types
def _any(x: Any, axis: Any = None, keepdims: bool = False, out: ndarray | None = None, where: Any = True) -> ndarray:
    return _along(ANY, x, axis, keepdims, out, where)


@replayable_by_types
def _all(x: Any, axis: Any = None, keepdims: bool = False, out: ndarray | None = None, where: Any = True) -> ndarray:
    return _along(ALL, x, axis, keepdims, out, where)


def _along(op: ReduceOp, x: Any, axis: Any, keepdims: bool, out: ndarray | None, where: Any) -> ndarray:
    x = as_operand(op.name, x, "biufc")
    return reduction(op, x, axis, keepdims, bool_, None, out, True, None, where)
