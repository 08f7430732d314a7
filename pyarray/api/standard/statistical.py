"""Statistical functions: sum, prod, min, max, mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import shapes
from ...array import STRIDED, ndarray
from ...array_convert import asarray
from ...array_hooks import Tracer
from ...dtypes import DType, asdtype, bool_, float64, int64, uint64
from ...jit.functions import func
from ...jit.replay import replayable, replayable_by_types
from ...kernels.elementwise.elementwise import MapOp, copy_if_aliased
from ...kernels.reduce.reduce import MAX, MIN, PROD, SUM, ReduceOp, full_reduction_plan, reduce_into
from ...memory.host_access import host_access
from ...typing import ArrayLike, AxisLike, DTypeLike
from ..core.registry import ALL, FLOAT, MANY, REAL, method, precompiled
from ..core.ufunc import PYTHON, can_hold, compute, compute_out, operand
from .elementwise import UFUNCS, not_equal
from .manipulation import broadcast_to

__all__ = ["max", "mean", "min", "prod", "sum"]


def reduction(
    op: ReduceOp,
    x: Any,
    axis: Any,
    keepdims: bool,
    dtype: DType,
    kind: DType | None = None,
    out: ndarray | None = None,
    offers: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """`op` over `axis` (None: all, an int, or a tuple of ints) into an array of `dtype`; elements are cast to
    `kind` first. Those where `where` is false are left out, and `initial` is one more.

    `offers`: it is all that a function does which offers plans by types.
    Raises `ValueError` or `IndexError` for an axis that isn't there (`numpy.exceptions.AxisError` is both).
    """
    if initial is not None or where is not True:
        return _of_chosen(op, x, axis, keepdims, dtype, kind or dtype, out, initial, where)
    if isinstance(x, Tracer):
        return x._reduce(op, axis, keepdims, dtype, kind or dtype, out)
    axes = shapes.normalize_axes(axis, x.ndim)
    reduced_shape, full = shapes.reduced(x._shape, axes)
    result = compute_out(op.name, out, full if keepdims else reduced_shape, dtype, x.device)
    target = result
    if keepdims:
        target = result._view(0, reduced_shape, tuple(s for k, s in enumerate(result._strides) if k not in axes))
    if out is not None:
        x = copy_if_aliased(x, out)
    reduce_into(op, target, x, axes, kind or dtype)
    if offers and out is None and not keepdims and len(axes) == x.ndim:
        _offer(op, x, result, kind or dtype)
    return result


_SELECT = MapOp("where", func(lambda x, mask, start: x if mask else start), raw=(1,))
# the operation that combines two results
_COMBINE = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum"}


def _of_chosen(
    op: ReduceOp,
    x: Any,
    axis: Any,
    keepdims: bool,
    dtype: DType,
    kind: DType,
    out: ndarray | None,
    initial: Any,
    where: Any,
) -> ndarray:
    """`reduction` with `initial` and `where`."""
    first = None if initial is None else _as_number(op.name, initial, dtype)
    if where is not True:
        start = first if op.identity is None else op.identity
        if start is None:
            raise ValueError(f"{op.name}(): with where= there may be no element; pass initial=, the result then")
        operands = x, mask_of(op.name, x, where), _number(x._dtype, start)
        x = compute(_SELECT, x._dtype, x._dtype, operands, None)
    if first is None:
        return reduction(op, x, axis, keepdims, dtype, kind, out)
    axes = shapes.normalize_axes(axis, x.ndim)
    if op.identity is None and isinstance(x, ndarray) and not all(x._shape[k] for k in axes):
        reduced_shape, full = shapes.reduced(x._shape, axes)
        result = compute_out(op.name, out, full if keepdims else reduced_shape, dtype, x.device)
        result[...] = first
        return result
    result = reduction(op, x, axis, keepdims, dtype, kind)
    return compute(UFUNCS[_COMBINE[op.name]].op, dtype, dtype, (result, first), out, larger=False)


def mask_of(name: str, x: Any, where: Any) -> Any:
    """The elements of `x` that are chosen, as an array of bools that broadcasts to it. Raises `ValueError`
    for one that doesn't."""
    mask: Any = where if isinstance(where, Tracer) else asarray(where, device=x.device)
    mask = mask if mask._dtype is bool_ else not_equal(mask, 0)
    if isinstance(x, ndarray) and isinstance(mask, ndarray):
        sizes = shapes.broadcast_shapes(x._shape, mask._shape)
        if sizes != x._shape:
            raise ValueError(f"{name}(): where= of shape {mask._shape} doesn't broadcast to {x._shape}")
    return mask


def _as_number(name: str, initial: Any, dtype: DType) -> Any:
    """`initial=` as a Python number for `dtype`."""
    if isinstance(initial, (ndarray, np.ndarray, np.generic)) and initial.ndim == 0:
        initial = initial.item()
    if type(initial) not in PYTHON or (isinstance(initial, complex) and dtype.kind != "c"):
        got = initial if type(initial) in PYTHON else type(initial).__name__
        raise TypeError(f"{name}(): initial= is a number that goes into {dtype}, got {got}")
    number = _number(dtype, initial)
    if type(number) is int and not can_hold(dtype, number):
        raise OverflowError(f"{name}(): initial={number} is out of range for {dtype}; name a wider dtype")
    return number


def _number(dtype: DType, value: Any) -> Any:
    """A Python number as one of the kind of `dtype`."""
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[dtype.kind](value)


def _offer(op: ReduceOp, x: ndarray, result: ndarray, kind: DType) -> None:
    """Offers a plan for all sizes to a capture of a reduction of all elements of a contiguous array."""
    capture = host_access.capture
    if capture is not None and x._size and not x._key & STRIDED:
        capture.offer((x,), lambda: full_reduction_plan(op, x, result._dtype, kind, result._key))


def as_operand(name: str, x: Any, kinds: str) -> ndarray:
    x = asarray(operand(name, x))
    if x._dtype.kind not in kinds:
        why = "; complex numbers have no order" if x._dtype.kind == "c" else ""
        raise TypeError(f"{name}() is not defined for {x._dtype}{why}")
    return x


def _floating(name: str, dtype: Any) -> DType:
    if (kind := asdtype(dtype)).kind not in "fc":
        raise TypeError(f"{name}(): the result is of a floating type, got dtype {kind}; round the result")
    return kind


def cast_floating(name: str, x: Any, dtype: Any) -> ndarray:
    """The operand, cast to `dtype` where one is given. Raises `TypeError` for one that isn't floating."""
    x = as_operand(name, x, "biufc")
    return x if dtype is None else x.astype(_floating(name, dtype), copy=False)


def total_dtype(x: ndarray, dtype: Any) -> DType:
    """The type in which elements are added up: 64 bits for integers, as the standard asks."""
    if dtype is not None:
        return asdtype(dtype)
    return {"b": int64, "i": int64, "u": uint64}.get(x._dtype.kind, x._dtype)


@precompiled(REAL, "sum(a)", size=MANY)
@precompiled((*ALL, "uint8"), "sum(a)")
@precompiled(REAL, "sum(m, axis=0)", "sum(m, axis=1)")
@method
@replayable_by_types
def sum(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    *,
    keepdims: bool = False,
    out: ndarray | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> ndarray:
    """Sum over `axis` (None: all axes, an int or a tuple of ints) of the elements where `where` is true, and
    of the number `initial`. Integers are summed in 64 bits, floats in float64 accumulators.

    >>> pa.sum(pa.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    x = as_operand("sum", x, "biufc")
    total = total_dtype(x, dtype)
    return reduction(SUM, x, axis, keepdims, total, None, out, True, initial, where)


@precompiled(REAL, "prod(a)")
@method
@replayable_by_types
def prod(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    *,
    keepdims: bool = False,
    out: ndarray | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> ndarray:
    """Product over `axis` (None: all axes, an int or a tuple of ints); types, `initial` and `where` as in
    `sum`.

    >>> pa.prod(pa.asarray([2.0, 3.0])).item()
    6.0
    """
    x = as_operand("prod", x, "biufc")
    return reduction(PROD, x, axis, keepdims, total_dtype(x, dtype), None, out, True, initial, where)


@precompiled(REAL, "max(a)", "max(m, axis=0)", "max(m, axis=1)")
@method
@replayable_by_types
def max(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    *,
    keepdims: bool = False,
    out: ndarray | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> ndarray:
    """Largest element over `axis` (None: all axes) of those where `where` is true, and of the number
    `initial`; NaN if there is one. Raises `ValueError` over no elements, and for `where` without `initial`.

    >>> pa.max(pa.asarray([3, 1, 2])).item()
    3
    """
    x = as_operand("max", x, "biuf")
    return reduction(MAX, x, axis, keepdims, x._dtype, None, out, True, initial, where)


@precompiled(REAL, "min(a)", "min(m, axis=0)", "min(m, axis=1)")
@method
@replayable_by_types
def min(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    *,
    keepdims: bool = False,
    out: ndarray | None = None,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> ndarray:
    """Smallest element over `axis` (None: all axes) of those where `where` is true, and of the number
    `initial`; NaN if there is one. Raises `ValueError` over no elements, and for `where` without `initial`.

    >>> pa.min(pa.asarray([3, 1, 2])).item()
    1
    """
    x = as_operand("min", x, "biuf")
    return reduction(MIN, x, axis, keepdims, x._dtype, None, out, True, initial, where)


@precompiled((*REAL, "uint8"), "mean(m, axis=0)")
@precompiled((*REAL, "bool"), "mean(a)")
@precompiled(FLOAT, "mean(m, axis=1)")
@method
@replayable
def mean(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    *,
    keepdims: bool = False,
    out: ndarray | None = None,
    where: ArrayLike = True,
) -> ndarray:
    """Arithmetic mean over `axis` (None: all axes) of the elements where `where` is true; of bools and
    integers as float64; NaN over no elements. `dtype` is the type of the result, to which elements are cast
    first. Raises `TypeError` for one that isn't floating.

    >>> pa.mean(pa.asarray([1, 2, 6])).item()
    3.0
    """
    x = as_operand("mean", x, "biufc")
    dtype = (x._dtype if x._dtype.kind in "fc" else float64) if dtype is None else _floating("mean", dtype)
    axes = shapes.normalize_axes(axis, x.ndim)
    count = math.prod(x._shape[k] for k in axes)
    wide = SUM.accumulator_type(dtype)
    total = reduction(SUM, x, axis, keepdims, wide, kind=dtype, where=where)
    counts = 1.0 * count if where is True else chosen_count(x, axis, keepdims, mask_of("mean", x, where))
    return compute(UFUNCS["divide"].op, wide, dtype, (total, counts), out, larger=False)


def chosen_count(x: Any, axis: Any, keepdims: bool, mask: Any) -> ndarray:
    """How many elements of `x` over `axis` a mask chooses."""
    return reduction(SUM, broadcast_to(mask, x.shape), axis, keepdims, int64)
