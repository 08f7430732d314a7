"""Reductions and scans that skip NaN; for bools and integers they are those without `nan`."""

from __future__ import annotations

import functools
import math
from typing import Any

from ... import shapes
from ...array import empty, ndarray
from ...dtypes import DType, asdtype, bool_, complex128, float64, int8, int16, int32, int64, real_of
from ...jit.functions import func
from ...jit.replay import replayable
from ...kernels.elementwise.elementwise import MapOp, launch_map
from ...kernels.reduce.reduce import MAX, MIN, PROD, SUM, ReduceOp
from ...kernels.reduce.variance import squared_deviations
from ...lang.markers import kernel_math as k
from ...typing import ArrayLike, AxisLike, DTypeLike
from ..core.registry import FLOAT, precompiled
from ..core.ufunc import compute, compute_out
from ..standard import scans, searching, statistical
from ..standard.elementwise import UFUNCS, divide, equal, isnan, subtract
from ..standard.statistical import as_operand, reduction
from ..standard.utility import any as any_of
from .moments import std, var

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd",
    "nansum", "nanvar",
]  # fmt: skip

_SUM = ReduceOp(
    "nansum",
    SUM.expression,
    0,
    double_accumulator=True,
    transform=func(lambda x: 0 if x != x else x),
    combine_op=SUM,
)
_PROD = ReduceOp(
    "nanprod",
    PROD.expression,
    1,
    double_accumulator=True,
    transform=func(lambda x: 1 if x != x else x),
    combine_op=PROD,
)
_COUNT = ReduceOp("numbers", SUM.expression, 0, transform=func(lambda x: x == x), combine_op=SUM, count_dtype=int64)
_FILL = MapOp("fill_nan", func(lambda x, value: value if x != x else x))


def _filled(x: ndarray, value: float) -> ndarray:
    """`x` with `value` in the place of NaN."""
    if x._dtype.kind not in "fc":
        return x
    out = empty(x._shape, x._dtype, x.device)
    launch_map(_FILL, x._dtype, out, (x, value), fresh=True)
    return out


@precompiled(FLOAT, "nansum(a)")
@replayable
def nansum(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    *,
    keepdims: bool = False,
    out: ndarray | None = None,
) -> ndarray:
    """`sum` with 0 in the place of NaN.

    >>> pa.nansum(pa.asarray([1.0, float("nan"), 2.0])).item()
    3.0
    """
    x = as_operand("nansum", x, "biufc")
    if x._dtype.kind not in "fc":
        return statistical.sum(x, axis=axis, dtype=dtype, keepdims=keepdims, out=out)
    return reduction(_SUM, x, axis, keepdims, x._dtype if dtype is None else asdtype(dtype), out=out)


@replayable
def nanprod(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    *,
    keepdims: bool = False,
    out: ndarray | None = None,
) -> ndarray:
    """`prod` with 1 in the place of NaN.

    >>> pa.nanprod(pa.asarray([2.0, float("nan"), 3.0])).item()
    6.0
    """
    x = as_operand("nanprod", x, "biufc")
    if x._dtype.kind not in "fc":
        return statistical.prod(x, axis=axis, dtype=dtype, keepdims=keepdims, out=out)
    return reduction(_PROD, x, axis, keepdims, x._dtype if dtype is None else asdtype(dtype), out=out)


@replayable
def nancumsum(x: ArrayLike, /, axis: int | None = None, dtype: DTypeLike = None, out: ndarray | None = None) -> ndarray:
    """`cumsum` with 0 in the place of NaN.

    >>> pa.nancumsum(pa.asarray([1.0, float("nan"), 2.0])).tolist()
    [1.0, 1.0, 3.0]
    """
    return scans.cumsum(_filled(as_operand("nancumsum", x, "biufc"), 0), axis, dtype, out)


@replayable
def nancumprod(
    x: ArrayLike, /, axis: int | None = None, dtype: DTypeLike = None, out: ndarray | None = None
) -> ndarray:
    """`cumprod` with 1 in the place of NaN.

    >>> pa.nancumprod(pa.asarray([2.0, float("nan"), 3.0])).tolist()
    [2.0, 2.0, 6.0]
    """
    return scans.cumprod(_filled(as_operand("nancumprod", x, "biufc"), 1), axis, dtype, out)


@replayable
def nanmin(x: ArrayLike, /, axis: AxisLike = None, *, keepdims: bool = False, out: ndarray | None = None) -> ndarray:
    """The smallest element over `axis` that is not NaN; NaN where there is none. Raises `ValueError` over no
    elements.

    >>> pa.nanmin(pa.asarray([2.0, float("nan"), 1.0])).item()
    1.0
    """
    return _extreme("nanmin", MIN, x, axis, keepdims, out)


@precompiled(FLOAT, "nanmax(a)")
@replayable
def nanmax(x: ArrayLike, /, axis: AxisLike = None, *, keepdims: bool = False, out: ndarray | None = None) -> ndarray:
    """The largest element over `axis` that is not NaN; NaN where there is none. Raises `ValueError` over no
    elements.

    >>> pa.nanmax(pa.asarray([2.0, float("nan"), 1.0])).item()
    2.0
    """
    return _extreme("nanmax", MAX, x, axis, keepdims, out)


def _extreme(name: str, op: ReduceOp, x: Any, axis: Any, keepdims: bool, out: ndarray | None) -> ndarray:
    """By way of integers in the order of the floats, NaN before (or after) all of them."""
    x = as_operand(name, x, "biuf")
    if x._dtype.kind != "f":
        return reduction(op, x, axis, keepdims, x._dtype, out=out)
    order, turn, word = _orders(x._dtype)
    keys = x._view(0, x._shape, x._strides, dtype=word)
    extreme = reduction(order[op.name], keys, axis, keepdims, word)
    result = compute_out(name, out, extreme._shape, x._dtype, x.device)
    launch_map(turn, word, result._view(0, result._shape, result._strides, dtype=word), (extreme,), fresh=True)
    return result


# A function of the type alone, which says where its infinity is.
@functools.cache
def _orders(dtype: DType) -> tuple[dict[str, ReduceOp], MapOp, DType]:
    """The minimum and maximum of a floating type by its bits as integers: the reductions, and how results become
    bits."""
    word = {1: int8, 2: int16, 4: int32, 8: int64}[dtype.itemsize]
    greatest, shift = (1 << 8 * dtype.itemsize - 1) - 1, 8 * dtype.itemsize - 1
    infinity = dtype.greatest_bits

    def bits_of(op: ReduceOp, nan: int) -> ReduceOp:
        def key(v: Any) -> Any:  # without a choice, which wouldn't vectorise
            wrong = word(0) - word((v & greatest) > infinity)
            return ((v ^ ((v >> shift) & greatest)) & ~wrong) | (wrong & nan)

        return ReduceOp(f"nan{op.name}", op.expression, None, transform=func(key), combine_op=op)

    turn = MapOp("turned", func(lambda v: v ^ ((v >> shift) & greatest)))
    return {"min": bits_of(MIN, greatest), "max": bits_of(MAX, -greatest - 1)}, turn, word


def nanargmin(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> ndarray:
    """Index (int64) of the first smallest element along `axis` (None: of all in C order) that is not NaN.

    Raises `ValueError` where all are NaN, and over no elements.

    >>> pa.nanargmin(pa.asarray([float("nan"), 2.0, 1.0])).item()
    2
    """
    return _arg_extreme("nanargmin", x, axis, keepdims)


def nanargmax(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> ndarray:
    """Index (int64) of the first largest element along `axis` (None: of all in C order) that is not NaN.

    Raises `ValueError` where all are NaN, and over no elements.

    >>> pa.nanargmax(pa.asarray([float("nan"), 2.0, 1.0])).item()
    1
    """
    return _arg_extreme("nanargmax", x, axis, keepdims)


def _arg_extreme(name: str, x: Any, axis: int | None, keepdims: bool) -> ndarray:
    """The first place of what the reduction finds: no NaN is equal to it."""
    x = as_operand(name, x, "biuf")
    plain = searching.argmin if name == "nanargmin" else searching.argmax
    if x._dtype.kind != "f":
        return plain(x, axis=axis, keepdims=keepdims)
    extreme = _extreme(name, MIN if name == "nanargmin" else MAX, x, axis, True, None)
    if any_of(isnan(extreme)):
        raise ValueError(f"{name}(): all elements are NaN in a slice along axis {axis} of shape {x._shape}")
    return searching.argmax(equal(x, extreme), axis=axis, keepdims=keepdims)


def _counted(x: ndarray, axes: tuple[int, ...]) -> ndarray:
    """How many elements over `axes`, which stay with size 1, are not NaN, in float64."""
    return reduction(_COUNT, x, axes, True, float64, kind=bool_)


@precompiled(FLOAT, "nanmean(a)")
@replayable
def nanmean(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    *,
    keepdims: bool = False,
    out: ndarray | None = None,
) -> ndarray:
    """`mean` of the elements that are not NaN; NaN where there are none. With `dtype` elements are cast to
    that first. Raises `TypeError` for one that isn't floating.

    >>> pa.nanmean(pa.asarray([1.0, float("nan"), 3.0])).item()
    2.0
    """
    x = statistical.cast_floating("nanmean", x, dtype)
    if x._dtype.kind not in "fc":
        return statistical.mean(x, axis=axis, keepdims=keepdims, out=out)
    axes = shapes.normalize_axes(axis, x.ndim)
    wide = complex128 if x._dtype.kind == "c" else float64
    total, count = reduction(_SUM, x, axes, True, wide, kind=x._dtype), _counted(x, axes)
    if not keepdims:
        total, count = total.squeeze(axes), count.squeeze(axes)
    return compute(UFUNCS["divide"].op, wide, x._dtype, (total, count), out, larger=False)


@replayable
def nanvar(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """`var` of the elements that are not NaN; NaN where too few are left.

    >>> pa.nanvar(pa.asarray([1.0, float("nan"), 3.0])).item()
    1.0
    """
    x = statistical.cast_floating("nanvar", x, dtype)
    return _nan_variance("nanvar", x, axis, correction if ddof is None else ddof, keepdims, out)


@precompiled(FLOAT, "nanstd(m, axis=0)")
@replayable
def nanstd(
    x: ArrayLike,
    /,
    axis: AxisLike = None,
    dtype: DTypeLike = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """`std` of the elements that are not NaN; NaN where too few are left.

    >>> pa.nanstd(pa.asarray([1.0, float("nan"), 3.0])).item()
    1.0
    """
    x = statistical.cast_floating("nanstd", x, dtype)
    return _nan_variance("nanstd", x, axis, correction if ddof is None else ddof, keepdims, out)


_LAST = {
    "nanvar": MapOp("nanvar", func(lambda total, left: total / left if left > 0 else math.nan)),
    "nanstd": MapOp("nanstd", func(lambda total, left: k.sqrt(total / left) if left > 0 else math.nan)),
}


def _nan_variance(name: str, x: ndarray, axis: Any, correction: float, keepdims: bool, out: ndarray | None) -> ndarray:
    if x._dtype.kind not in "fc":
        plain = var if name == "nanvar" else std
        return plain(x, axis, correction=correction, keepdims=keepdims, out=out)
    axes = shapes.normalize_axes(axis, x.ndim)
    wide = complex128 if x._dtype.kind == "c" else float64
    count = _counted(x, axes)
    mean = divide(reduction(_SUM, x, axes, True, wide, kind=x._dtype), count)
    total = squared_deviations(x, axes, lambda: mean, skip_nan=True)
    dof = subtract(count, float(correction))
    total, dof = (total.reshape(dof._shape), dof) if keepdims else (total, dof.squeeze(axes))
    kind = real_of(x._dtype)
    return compute(_LAST[name], float64, kind, (total, dof), out, larger=False)
