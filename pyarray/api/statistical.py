"""Statistical functions: sum, prod, min, max, mean."""

from __future__ import annotations

import math
from typing import Any

from .. import shapes
from ..array import STRIDED, empty, fresh, ndarray
from ..array_convert import asarray
from ..array_hooks import StandIn
from ..array_marks import MARKED
from ..dtypes import DType, asdtype, float64, int64, uint64
from ..jit.mode import OBSERVED, mode, table
from ..jit.repeat import repeatable
from ..kernels.map import apart
from ..kernels.reduce import (
    BLOCK_PIECE,
    MAX,
    MIN,
    PIECE,
    PROD,
    SUM,
    ReduceOp,
    Whole,
    pieces_of,
    reduce_into,
)
from ..memory.buffer import Buffer
from .elementwise import ROWS
from .ufunc import compute, compute_out, operand

__all__ = ["max", "mean", "min", "prod", "sum"]


def reduction(
    op: ReduceOp,
    x: Any,
    axis: Any,
    keepdims: bool,
    dtype: DType,
    kind: DType | None = None,
    out: ndarray | None = None,
    plain: bool = False,
) -> ndarray:
    """`op` over `axis` (None: all, an int, or a tuple of ints) into an array of `dtype`; elements are cast to
    `kind` first.

    `plain` says that only `x` was given, so that `whole` may do it the next time.
    Raises `ValueError` or `IndexError` for an axis that isn't there (`numpy.exceptions.AxisError` is both).
    """
    if isinstance(x, StandIn):
        given: ndarray = x._reduce(op, axis, keepdims, dtype, kind or dtype, out)
        return given
    if plain:
        _remember(op, x, dtype, kind or dtype)
    axes = shapes.normalize_axes(axis, x.ndim)
    kept, full = shapes.reduced(x._shape, axes)
    result = compute_out(op.name, out, full if keepdims else kept, dtype, x.device)
    target = result
    if keepdims:
        target = result._view(0, kept, tuple(s for k, s in enumerate(result._strides) if k not in axes))
    if out is not None:
        x = apart(x, out)
    reduce_into(op, target, x, axes, kind or dtype)
    return result


GLANCE = 1 << 11  # elements that are looked at first
_plans = table()


def whole(op: ReduceOp, x: Any) -> ndarray | None:
    """`op` over all of a contiguous array of a type that `_remember` has seen; None where that has no
    answer."""
    try:
        plan, dtype, key = _plans[op.name, mode.key, x._key]
        size = x._size
    except (KeyError, AttributeError):
        return None
    if not size:
        return None
    device = x._buffer.device
    out = fresh(Buffer.allocate(device, dtype.itemsize), (), (), 1, dtype, key)
    grid = device.driver.grid
    if size < 2 * (BLOCK_PIECE if grid else PIECE):
        failure = plan.direct(out, x)
    else:
        if op.settled and not grid:  # mostly a few elements settle it
            few = x._view(0, (GLANCE,), (x._dtype.itemsize,))
            if plan.direct(out, few) is None and out.item() is not op.start:
                return out
        launch, source, failure = plan.first, x, None
        while failure is None and (pieces := pieces_of(size, 1, size, grid)) > 1:
            width = plan.partial._dtype.itemsize
            buffer = Buffer.allocate(device, pieces * width)
            partial = fresh(buffer, (pieces,), (width,), pieces, plan.partial._dtype, plan.partial._key)
            failure = launch(partial, source)
            launch, source, size = plan.middle, partial, pieces
        failure = failure or plan.last(out, source)
    return None if failure else out  # the long way says what failed


def _remember(op: ReduceOp, x: ndarray, dtype: DType, kind: DType) -> None:
    place = op.name, mode.key, x._key
    if place not in _plans and mode.key is not OBSERVED and x._size and not x._key & (STRIDED | MARKED):
        out = empty((), dtype, x.device)
        _plans[place] = Whole(op, out, x, kind), dtype, out._key


def as_operand(name: str, x: Any, kinds: str) -> ndarray:
    x = operand(name, x)
    x = asarray(x)
    if x._dtype.kind not in kinds:
        raise TypeError(
            f"{name}() is not defined for {x._dtype}"
            + ("; complex numbers have no order" if x._dtype.kind == "c" else "")
        )
    return x


def total_dtype(x: ndarray, dtype: Any) -> DType:
    """The type in which elements are added up: 64 bits for integers, as the standard asks."""
    if dtype is not None:
        return asdtype(dtype)
    return {"b": int64, "i": int64, "u": uint64}.get(x._dtype.kind, x._dtype)


@repeatable
def sum(
    x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, out: ndarray | None = None
) -> ndarray:
    """Sum over `axis` (None: all axes, an int or a tuple of ints). Integers are summed in 64 bits, floats in
    float64 accumulators.

    >>> import pyarray as pa
    >>> pa.sum(pa.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    plain = axis is None and dtype is None and not keepdims and out is None
    if plain and (quick := whole(SUM, x)) is not None:
        return quick
    x = as_operand("sum", x, "biufc")
    total = total_dtype(x, dtype)
    return reduction(SUM, x, axis, keepdims, total, out=out, plain=plain)


@repeatable
def prod(
    x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, out: ndarray | None = None
) -> ndarray:
    """Product over `axis` (None: all axes, an int or a tuple of ints); types as in `sum`.

    >>> import pyarray as pa
    >>> pa.prod(pa.asarray([2.0, 3.0])).item()
    6.0
    """
    plain = axis is None and dtype is None and not keepdims and out is None
    if plain and (quick := whole(PROD, x)) is not None:
        return quick
    x = as_operand("prod", x, "biufc")
    return reduction(PROD, x, axis, keepdims, total_dtype(x, dtype), out=out, plain=plain)


@repeatable
def max(x: Any, /, axis: Any = None, *, keepdims: bool = False, out: ndarray | None = None) -> ndarray:
    """Largest element over `axis` (None: all axes); NaN if there is one. Raises `ValueError` over no
    elements.

    >>> import pyarray as pa
    >>> pa.max(pa.asarray([3, 1, 2])).item()
    3
    """
    plain = axis is None and not keepdims and out is None
    if plain and (quick := whole(MAX, x)) is not None:
        return quick
    x = as_operand("max", x, "biuf")
    return reduction(MAX, x, axis, keepdims, x._dtype, out=out, plain=plain)


@repeatable
def min(x: Any, /, axis: Any = None, *, keepdims: bool = False, out: ndarray | None = None) -> ndarray:
    """Smallest element over `axis` (None: all axes); NaN if there is one. Raises `ValueError` over no
    elements.

    >>> import pyarray as pa
    >>> pa.min(pa.asarray([3, 1, 2])).item()
    1
    """
    plain = axis is None and not keepdims and out is None
    if plain and (quick := whole(MIN, x)) is not None:
        return quick
    x = as_operand("min", x, "biuf")
    return reduction(MIN, x, axis, keepdims, x._dtype, out=out, plain=plain)


@repeatable
def mean(
    x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, out: ndarray | None = None
) -> ndarray:
    """Arithmetic mean over `axis` (None: all axes); of bools and integers as float64; NaN over no elements.
    `dtype` is the type of the result, to which elements are cast first. Raises `TypeError` for one that isn't
    floating.

    >>> import pyarray as pa
    >>> pa.mean(pa.asarray([1, 2, 6])).item()
    3.0
    """
    x = as_operand("mean", x, "biufc")
    if dtype is None:
        dtype = x._dtype if x._dtype.kind in "fc" else float64
    elif (dtype := asdtype(dtype)).kind not in "fc":
        raise TypeError(f"mean(): a mean is of a floating type, got dtype {dtype}; round the result")
    axes = shapes.normalize_axes(axis, x.ndim)
    count = math.prod(x._shape[k] for k in axes)
    wide = SUM.accumulator(dtype)
    total = reduction(SUM, x, axis, keepdims, wide, kind=dtype)
    return compute(ROWS["divide"].op, wide, dtype, (total, 1.0 * count), out, larger=False)
