"""Searching functions."""

from __future__ import annotations

from typing import Any, overload

from ... import shapes
from ...array import empty, ndarray
from ...array_convert import asarray
from ...array_hooks import operation
from ...dtypes import bool_, float64, int64, result_type
from ...jit.functions import func
from ...jit.replay import replayable, replayable_by_types
from ...kernels.elementwise.elementwise import MapOp
from ...kernels.index import gather
from ...kernels.reduce.arg_extreme import arg_extreme
from ...kernels.reduce.reduce import COUNT, MAX, MIN, ReduceOp
from ...kernels.scan import nonzero as scans
from ...kernels.sort.binary_search import search
from ...typing import ArrayLike, AxisLike
from ..core.registry import ALL, REAL, method, precompiled
from ..core.ufunc import ARRAYS, as_array_like, as_operands, common_device, compute, device_of
from .elementwise import not_equal
from .statistical import as_operand, reduction

__all__ = ["argmax", "argmin", "count_nonzero", "nonzero", "searchsorted", "where"]

_WHERE = MapOp("where", func(lambda c, x, y: x if c else y), raw=(0,))


@precompiled(ALL, "where(mask, a, b)")
@precompiled(REAL, "where(mask, a, one)")
@overload
def where(condition: ArrayLike, /) -> tuple[ndarray, ...]: ...
@overload
def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> ndarray: ...
@replayable
def where(condition: ArrayLike, x1: ArrayLike | None = None, x2: ArrayLike | None = None, /) -> Any:
    """Elements of `x1` where `condition` is true (or not zero), else of `x2`; all three broadcast. One of x1
    and x2 may be a number.

    Without `x1` and `x2`, `nonzero(condition)`. Raises `TypeError` for dtypes without a common one,
    `ValueError` for shapes that don't broadcast, and for one choice alone.

    >>> pa.where(pa.asarray([True, False]), pa.asarray([1, 2]), 0).tolist()
    [1, 0]
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ValueError("where() takes a condition, or a condition and both choices; got one choice")
    mask: Any
    mask, *choices = as_operands("where", (condition, x1, x2))
    mask = mask if isinstance(mask, ARRAYS) else asarray(mask, device=device_of(choices))
    if mask._dtype.kind == "c":
        mask = not_equal(mask, 0)
    kind = result_type(*choices)
    return compute(_WHERE, kind, kind, (mask, *choices), None, ("condition", "x1", "x2"))


where.__pyarray_builtin__ = "where"  # type: ignore[attr-defined]  # in a kernel: a conditional expression


@precompiled(REAL, "argmax(a)", "argmax(m, axis=1)")
@method
@replayable
def argmax(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> ndarray:
    """Index (int64) of the first largest element along `axis`, of the flattened array if None; of the first
    NaN if there is one.

    Raises `ValueError` over no elements.

    >>> pa.argmax(pa.asarray([3, 9, 9])).item()
    1
    """
    return _arg_extreme("argmax", MAX, x, axis, keepdims)


@precompiled(REAL, "argmin(a)")
@method
@replayable
def argmin(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> ndarray:
    """Index (int64) of the first smallest element along `axis`, of the flattened array if None; of the first
    NaN if there is one.

    Raises `ValueError` over no elements.

    >>> pa.argmin(pa.asarray([3, 1, 1])).item()
    1
    """
    return _arg_extreme("argmin", MIN, x, axis, keepdims)


def _arg_extreme(name: str, op: ReduceOp, x: Any, axis: int | None, keepdims: bool) -> ndarray:
    x = as_operand(name, x, "biuf")
    lines = x.reshape(-1) if axis is None else x
    along = lines.ndim - 1 if axis is None else shapes.normalize_axis(axis, lines.ndim)
    if not lines.shape[along]:
        raise ValueError(f"{name}() over no elements has no answer: shape {x.shape}, axis {axis}")
    order = (*(k for k in range(lines.ndim) if k != along), along)
    lines = lines.transpose(order)
    out = empty(lines.shape[:-1], int64, x.device)
    if out._size:
        arg_extreme(op, out, lines)
    if not keepdims:
        return out
    return out.reshape((1,) * x.ndim if axis is None else tuple(1 if k == along else n for k, n in enumerate(x.shape)))


@precompiled(REAL, "nonzero(a)")
@method
def nonzero(x: ArrayLike, /) -> tuple[ndarray, ...]:
    """Positions of the elements that are not zero, in C order: one 1-D int64 array per axis. Raises
    `ValueError` for a 0-d array.

    >>> [i.tolist() for i in pa.nonzero(pa.asarray([[0, 5], [7, 0]]))]
    [[0, 1], [1, 0]]
    """
    return scans.nonzero(asarray(x))


@precompiled(REAL, "searchsorted(sort(a), b)")
@method
@replayable
def searchsorted(x1: ArrayLike, x2: ArrayLike, /, side: str = "left", sorter: ArrayLike | None = None) -> ndarray:
    """Positions (int64, in the shape of `x2`) at which elements of `x2` go into the 1-D array `x1` so that it
    stays sorted: before equal elements, or after them with `side="right"`. NaN is the largest.

    `sorter` are positions that sort `x1`, where it isn't. One of both may be a number. Raises
    `ValueError` for another rank or side, `TypeError` for complex numbers, `IndexError` for a `sorter` out of
    range.

    >>> pa.searchsorted(pa.asarray([1, 3, 5]), pa.asarray([0, 3, 9])).tolist()
    [0, 1, 3]
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted(): side is 'left' or 'right', got {side!r}")
    if sorter is not None:
        x1, sorter, _ = as_array_like(x1, sorter, x2)
    a, keys = comparable("searchsorted", x1, x2)
    if a._dtype.kind == "c":
        raise TypeError("searchsorted() is not defined for complex numbers, which have no order")
    if a.ndim != 1:
        raise ValueError(f"searchsorted() needs a 1-D array to search in, got shape {a.shape}")
    if sorter is not None:
        if sorter.shape != a.shape:
            raise ValueError(f"searchsorted(): sorter has shape {sorter.shape}, the array {a.shape}")
        a = gather.take(a, (sorter,))
    flat = keys.reshape(keys.size)
    a, flat = operation("contiguous")(a), operation("contiguous")(flat)
    return search(a, flat, side == "right").reshape(keys.shape)


def comparable(name: str, x1: ArrayLike, x2: ArrayLike) -> tuple[ndarray, ndarray]:
    """Both as arrays of the type in which their elements are compared: float64 where no integer type holds
    both. Raises `TypeError` where there is none, `ValueError` for arrays on two devices."""
    operands = as_operands(name, (x1, x2))
    device = device_of(operands)
    # a number that the array's type doesn't hold is compared all the same
    operands = [asarray(x, device=device) if type(x) in (bool, int) else x for x in operands]
    kinds = {x._dtype.kind for x in operands if isinstance(x, ndarray)}
    try:
        kind = result_type(*operands)
    except TypeError:
        if kinds != {"i", "u"}:
            raise
        kind = float64
    first, second = (x if isinstance(x, ndarray) else asarray(x, device=device) for x in operands)
    common_device(name, (first, second))
    return first.astype(kind, copy=False), second.astype(kind, copy=False)


@precompiled((*REAL, "bool"), "count_nonzero(a)")
@replayable_by_types
def count_nonzero(x: ArrayLike, /, axis: AxisLike = None, *, keepdims: bool = False) -> ndarray:
    """Number of elements over `axis` (None: all, an int, or a tuple of ints) that are not zero, as int64.

    >>> pa.count_nonzero(pa.asarray([[0, 5], [7, 1]]), axis=0).tolist()
    [1, 2]
    """
    return reduction(COUNT, asarray(x), axis, keepdims, int64, kind=bool_, offers=True)
