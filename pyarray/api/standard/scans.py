"""Scans along an axis: cumulative sums and products; and differences."""

from __future__ import annotations

import operator
from typing import Any

from ... import shapes
from ...array import ndarray
from ...array_convert import asarray
from ...jit.replay import replayable
from ...kernels.elementwise.elementwise import copy_if_aliased
from ...kernels.reduce.reduce import PROD, SUM, ReduceOp
from ...kernels.scan.scan import scan_into
from ...typing import ArrayLike, DTypeLike
from ..core.registry import FLOAT, REAL, method, precompiled
from ..core.ufunc import PYTHON, as_array_like, axis_or_flat, compute_out
from .elementwise import not_equal, subtract
from .manipulation import broadcast_to, concat
from .statistical import as_operand, total_dtype

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "diff"]


@precompiled(REAL, "cumulative_sum(m, axis=1)", "cumulative_sum(a)")
@replayable
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: ndarray | None = None,
) -> ndarray:
    """Sums of the elements up to each one along `axis`, which may be None for 1-D arrays only; with
    `include_initial` there is a 0 in front of them.

    Integers are added up in 64 bits unless `dtype` is given. Raises `ValueError` without an axis for other
    ranks, `AxisError` for an axis that isn't there.

    >>> pa.cumulative_sum(pa.asarray([1, 2, 3]), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _cumulative("cumulative_sum", SUM, x, axis, dtype, include_initial, out)


@replayable
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    include_initial: bool = False,
    out: ndarray | None = None,
) -> ndarray:
    """Products of the elements up to each one along `axis`; with `include_initial` there is a 1 in front of
    them. Types and errors are those of `cumulative_sum`.

    >>> pa.cumulative_prod(pa.asarray([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    return _cumulative("cumulative_prod", PROD, x, axis, dtype, include_initial, out)


@method
@replayable
def cumsum(x: ArrayLike, /, axis: int | None = None, dtype: DTypeLike = None, out: ndarray | None = None) -> ndarray:
    """NumPy's `cumulative_sum`: without an axis, along the flattened array.

    >>> pa.cumsum(pa.asarray([[1, 2], [3, 4]])).tolist()
    [1, 3, 6, 10]
    """
    return _scan("cumsum", SUM, x, axis, dtype, False, out)


@method
@replayable
def cumprod(x: ArrayLike, /, axis: int | None = None, dtype: DTypeLike = None, out: ndarray | None = None) -> ndarray:
    """NumPy's `cumulative_prod`: without an axis, along the flattened array.

    >>> pa.cumprod(pa.asarray([[1, 2], [3, 4]]), 1).tolist()
    [[1, 2], [3, 12]]
    """
    return _scan("cumprod", PROD, x, axis, dtype, False, out)


def _cumulative(name: str, op: ReduceOp, x: Any, axis: Any, dtype: Any, initial: bool, out: ndarray | None) -> ndarray:
    x = as_operand(name, x, "biufc")
    if axis is None and x.ndim != 1:
        raise ValueError(f"{name}() needs an axis for an array of {x.ndim} dimensions; give axis=, or flatten it first")
    return _scan(name, op, x, 0 if axis is None else axis, dtype, initial, out)


def _scan(name: str, op: ReduceOp, x: Any, axis: Any, dtype: Any, initial: bool, out: ndarray | None) -> ndarray:
    x, along = axis_or_flat(as_operand(name, x, "biufc"), axis)
    kind = total_dtype(x, dtype)
    shape = (*x._shape[:along], x._shape[along] + bool(initial), *x._shape[along + 1 :])
    result = compute_out(name, out, shape, kind, x.device)
    if x._dtype.kind == "c" and kind.kind not in "cb":
        raise TypeError(f"{name}(): {x._dtype} can't be added up in {kind}; take .real, .imag or abs() first")
    if out is not None:
        x = copy_if_aliased(x, out)
        x = x.copy() if x._buffer is out._buffer else x  # a scan reads blocks again after it has written some
    target = result
    if initial:
        before = (slice(None),) * along
        result[(*before, slice(0, 1))] = op.identity
        target = result[(*before, slice(1, None))]
    scan_into(op, target, x, along, kind)
    return result


@precompiled(FLOAT, "diff(a)")
@replayable
def diff(
    x: ArrayLike,
    /,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> ndarray:
    """Differences of neighbours along `axis`, `n` times; `!=` of bools. `prepend` and `append` are arrays, or
    numbers that stand for one element along the axis, to put before and after `x` first.

    Raises `ValueError` for a 0-d array and a negative `n`.

    >>> pa.diff(pa.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    x, prepend, append = _as_arrays_like(x, prepend, append)
    x = as_operand("diff", x, "biufc")
    if not x.ndim:
        raise ValueError("diff() takes an array of 1 or more dimensions, got a 0-d array; use x.reshape(1)")
    times = operator.index(n)
    if times < 0:
        raise ValueError(f"diff() takes n of 0 or more, got {n}")
    if not times:
        return x
    along = shapes.normalize_axis(axis, x.ndim)
    parts = [_neighbor(x, prepend, along), x, _neighbor(x, append, along)]
    present = [part for part in parts if part is not None]
    x = concat(present, axis=along) if len(present) > 1 else x
    before = (slice(None),) * along
    for _ in range(times):
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = not_equal(later, earlier) if x._dtype.kind == "b" else subtract(later, earlier)
    return x


def _as_arrays_like(*values: Any) -> list[Any]:
    """Arrays, where the first one is; numbers and None as they are."""
    plain = [x is None or type(x) in PYTHON for x in values]
    arrays = iter(as_array_like(*(x for x, is_plain in zip(values, plain, strict=True) if not is_plain)))
    return [x if is_plain else next(arrays) for x, is_plain in zip(values, plain, strict=True)]


def _neighbor(x: ndarray, value: Any, axis: int) -> ndarray | None:
    if value is None:
        return None
    if type(value) in PYTHON:
        value = asarray(value, device=x.device)
    if not value.ndim:
        value = broadcast_to(value, (*x._shape[:axis], 1, *x._shape[axis + 1 :]))
    return value
