"""Reductions and running sums in which NaN doesn't count. Of bools and integers they are the plain ones."""

from __future__ import annotations

import math
from typing import Any

from .. import shape as shapes
from ..array import empty, ndarray
from ..dtypes import complex64, complex128, float32, float64, int64
from ..jit.kernel import func
from ..jit.repeat import repeatable
from ..kernels.map import MapOp, launch_map
from ..kernels.reduce import MAX, MIN, SUM, ReduceOp
from ..lang.markers import known
from . import scans, searching, statistical
from .elementwise import ROWS, divide, equal, isnan, subtract
from .libraries import real_of
from .moments import std, var
from .searching import where
from .statistical import as_operand, reduction
from .ufunc import compute, delivered
from .utility import all as all_of
from .utility import any as any_of

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd",
    "nansum", "nanvar",
]  # fmt: skip

_FILL = MapOp("fill_nan", func(lambda x, value: value if x != x else x))


def _filled(x: ndarray, value: float) -> ndarray:
    """`x` with `value` in the place of NaN."""
    if x._dtype.kind not in "fc":
        return x
    out = empty(x._shape, x._dtype, x.device)
    launch_map(_FILL, x._dtype, out, (x, value), fresh=True)
    return out


@repeatable
def nansum(
    x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, out: ndarray | None = None
) -> ndarray:
    """`sum` with 0 in the place of NaN.

    >>> import pyarray as pa
    >>> pa.nansum(pa.asarray([1.0, float("nan"), 2.0])).item()
    3.0
    """
    x = _filled(as_operand("nansum", x, "biufc"), 0)
    return statistical.sum(x, axis=axis, dtype=dtype, keepdims=keepdims, out=out)


@repeatable
def nanprod(
    x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, out: ndarray | None = None
) -> ndarray:
    """`prod` with 1 in the place of NaN.

    >>> import pyarray as pa
    >>> pa.nanprod(pa.asarray([2.0, float("nan"), 3.0])).item()
    6.0
    """
    x = _filled(as_operand("nanprod", x, "biufc"), 1)
    return statistical.prod(x, axis=axis, dtype=dtype, keepdims=keepdims, out=out)


@repeatable
def nancumsum(x: Any, /, axis: int | None = None, dtype: Any = None, out: ndarray | None = None) -> ndarray:
    """`cumsum` with 0 in the place of NaN.

    >>> import pyarray as pa
    >>> pa.nancumsum(pa.asarray([1.0, float("nan"), 2.0])).tolist()
    [1.0, 1.0, 3.0]
    """
    return scans.cumsum(_filled(as_operand("nancumsum", x, "biufc"), 0), axis, dtype, out)


@repeatable
def nancumprod(x: Any, /, axis: int | None = None, dtype: Any = None, out: ndarray | None = None) -> ndarray:
    """`cumprod` with 1 in the place of NaN.

    >>> import pyarray as pa
    >>> pa.nancumprod(pa.asarray([2.0, float("nan"), 3.0])).tolist()
    [2.0, 2.0, 6.0]
    """
    return scans.cumprod(_filled(as_operand("nancumprod", x, "biufc"), 1), axis, dtype, out)


@repeatable
def nanmin(x: Any, /, axis: Any = None, *, keepdims: bool = False, out: ndarray | None = None) -> ndarray:
    """The smallest element over `axis` that is not NaN; NaN where there is none. Raises `ValueError` over no
    elements.

    >>> import pyarray as pa
    >>> pa.nanmin(pa.asarray([2.0, float("nan"), 1.0])).item()
    1.0
    """
    return _extreme("nanmin", MIN, x, axis, keepdims, out)


@repeatable
def nanmax(x: Any, /, axis: Any = None, *, keepdims: bool = False, out: ndarray | None = None) -> ndarray:
    """The largest element over `axis` that is not NaN; NaN where there is none. Raises `ValueError` over no
    elements.

    >>> import pyarray as pa
    >>> pa.nanmax(pa.asarray([2.0, float("nan"), 1.0])).item()
    2.0
    """
    return _extreme("nanmax", MAX, x, axis, keepdims, out)


def _extreme(name: str, op: ReduceOp, x: Any, axis: Any, keepdims: bool, out: ndarray | None) -> ndarray:
    """Where a NaN is found, an infinity stands for it; slices of nothing else stay NaN."""
    x = as_operand(name, x, "biuf")
    found = reduction(op, x, axis, keepdims, x._dtype)
    if x._dtype.kind == "f" and any_of(isnan(found)):
        numbers = reduction(op, _filled(x, math.inf if op is MIN else -math.inf), axis, keepdims, x._dtype)
        found = where(all_of(isnan(x), axis=axis, keepdims=keepdims), math.nan, numbers)
    return delivered(name, found, out)


def nanargmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> ndarray:
    """Index (int64) of the first smallest element along `axis` (None: of all in C order) that is not NaN.

    Raises `ValueError` where all are NaN, and over no elements.

    >>> import pyarray as pa
    >>> pa.nanargmin(pa.asarray([float("nan"), 2.0, 1.0])).item()
    2
    """
    return _arg_extreme("nanargmin", x, axis, keepdims)


def nanargmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> ndarray:
    """Index (int64) of the first largest element along `axis` (None: of all in C order) that is not NaN.

    Raises `ValueError` where all are NaN, and over no elements.

    >>> import pyarray as pa
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
    return reduction(SUM, equal(x, x), axes, True, float64, kind=int64)


@repeatable
def nanmean(x: Any, /, axis: Any = None, *, keepdims: bool = False, out: ndarray | None = None) -> ndarray:
    """`mean` of the elements that are not NaN; NaN where there are none.

    >>> import pyarray as pa
    >>> pa.nanmean(pa.asarray([1.0, float("nan"), 3.0])).item()
    2.0
    """
    x = as_operand("nanmean", x, "biufc")
    if x._dtype.kind not in "fc":
        return statistical.mean(x, axis=axis, keepdims=keepdims, out=out)
    axes = shapes.normalize_axes(axis, x.ndim)
    wide = complex128 if x._dtype.kind == "c" else float64
    total, count = reduction(SUM, _filled(x, 0), axes, True, wide, kind=x._dtype), _counted(x, axes)
    if not keepdims:
        total, count = total.squeeze(axes), count.squeeze(axes)
    return compute(ROWS["divide"].op, wide, x._dtype, (total, count), out)


@repeatable
def nanvar(
    x: Any,
    /,
    axis: Any = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """`var` of the elements that are not NaN; NaN where too few are left.

    >>> import pyarray as pa
    >>> pa.nanvar(pa.asarray([1.0, float("nan"), 3.0])).item()
    1.0
    """
    return _spread("nanvar", x, axis, correction if ddof is None else ddof, keepdims, out)


@repeatable
def nanstd(
    x: Any,
    /,
    axis: Any = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """`std` of the elements that are not NaN; NaN where too few are left.

    >>> import pyarray as pa
    >>> pa.nanstd(pa.asarray([1.0, float("nan"), 3.0])).item()
    1.0
    """
    return _spread("nanstd", x, axis, correction if ddof is None else ddof, keepdims, out)


def _square(x: Any, mean: Any) -> Any:
    return 0.0 if x != x else (x - mean) * (x - mean)


def _complex_square(x: Any, mean: Any) -> Any:
    return (
        0.0
        if x != x
        else known.real(x - mean) * known.real(x - mean) + known.imag(x - mean) * known.imag(x - mean)
    )


_SQUARE = {
    "f": MapOp("nan_square", func(_square), raw=(0, 1)),
    "c": MapOp("nan_square", func(_complex_square), raw=(0, 1)),
}
_LAST = {
    "nanvar": MapOp("nanvar", func(lambda total, left: total / left if left > 0 else math.nan)),
    "nanstd": MapOp("nanstd", func(lambda total, left: known.sqrt(total / left) if left > 0 else math.nan)),
}


def _spread(name: str, x: Any, axis: Any, correction: float, keepdims: bool, out: ndarray | None) -> ndarray:
    x = as_operand(name, x, "biufc")
    if x._dtype.kind not in "fc":
        plain = var if name == "nanvar" else std
        return plain(x, axis, correction=correction, keepdims=keepdims, out=out)
    axes = shapes.normalize_axes(axis, x.ndim)
    squares = empty(x._shape, float64 if x.itemsize >= 8 and x._dtype is not complex64 else float32, x.device)
    wide = complex128 if x._dtype.kind == "c" else float64
    count = _counted(x, axes)
    mean = divide(reduction(SUM, _filled(x, 0), axes, True, wide, kind=x._dtype), count)
    launch_map(_SQUARE[x._dtype.kind], float64, squares, (x, mean), fresh=True)
    total = reduction(SUM, squares, axes, True, float64, kind=squares._dtype)
    left = subtract(count, float(correction))
    if not keepdims:
        total, left = total.squeeze(axes), left.squeeze(axes)
    kind = real_of(x._dtype)
    return compute(_LAST[name], float64, kind, (total, left), out)
