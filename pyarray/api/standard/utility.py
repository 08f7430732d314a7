"""Utility functions: any, all."""

from __future__ import annotations

from typing import Any

from ...array import ndarray
from ...dtypes import bool_
from ...jit.replay import replayable
from ...kernels.reduce.reduce import ALL, ANY
from ...typing import ArrayLike, AxisLike
from ..core.registry import REAL, method, precompiled
from .statistical import as_operand, reduce_contiguous, reduction

__all__ = ["all", "any"]


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
    if plain and (fast := reduce_contiguous(ANY, x)) is not None:
        return fast
    return _along("any", x, axis, keepdims, out, plain, where)


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
    if plain and (fast := reduce_contiguous(ALL, x)) is not None:
        return fast
    return _along("all", x, axis, keepdims, out, plain, where)


@replayable
def _along(name: str, x: Any, axis: Any, keepdims: bool, out: ndarray | None, plain: bool, where: Any) -> ndarray:
    """Without the fast path, whose recorded launches would read all elements."""
    op = ANY if name == "any" else ALL
    return reduction(op, as_operand(name, x, "biufc"), axis, keepdims, bool_, None, out, plain, None, where)
