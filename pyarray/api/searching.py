"""Searching functions."""

from __future__ import annotations

from typing import Any

from .. import shape as shapes
from ..array import empty, ndarray
from ..array_convert import asarray
from ..dtypes import bool_, int64, result_type
from ..jit.kernel import func
from ..kernels import nonzero as scans
from ..kernels.map import MapOp, launch_map
from ..kernels.reduce import MAX, MIN, SUM, ReduceOp, arg_extreme
from .elementwise import not_equal
from .statistical import as_operand, reduction
from .ufunc import common_device, operands_of

__all__ = ["argmax", "argmin", "count_nonzero", "nonzero", "where"]

_WHERE = MapOp("where", func(lambda c, x, y: x if c else y), raw=(0,))


def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any:
    """Elements of `x1` where `condition` is true (or not zero), else of `x2`; all three broadcast. One of x1
    and x2 may be a number.

    Without `x1` and `x2`, `nonzero(condition)`. Raises `TypeError` for dtypes without a common one,
    `ValueError` for shapes that don't broadcast.

    >>> import pyarray as pa
    >>> pa.where(pa.asarray([True, False]), pa.asarray([1, 2]), 0).tolist()
    [1, 0]
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise TypeError("where() takes a condition, or a condition and both choices; got one choice")
    where_true, *choices = operands_of("where", (condition, x1, x2))
    where_true = (
        where_true if isinstance(where_true, ndarray) else asarray(where_true, device=_device_of(choices))
    )
    if where_true.dtype.kind == "c":
        where_true = not_equal(where_true, 0)
    arrays = [x for x in (where_true, *choices) if isinstance(x, ndarray)]
    place = common_device("where", (where_true, *choices), ("condition", "x1", "x2"))
    kind = result_type(*choices)
    out = empty(shapes.broadcast_shapes(*(a._shape for a in arrays)), kind, place)
    launch_map(_WHERE, kind, out, (where_true, *choices))
    return out


where.__pyarray_builtin__ = "where"  # type: ignore[attr-defined]  # in a kernel: a conditional expression


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> ndarray:
    """Index (int64) of the first largest element along `axis`, of the flattened array if None; of the first
    NaN if there is one.

    Raises `ValueError` over no elements.

    >>> import pyarray as pa
    >>> pa.argmax(pa.asarray([3, 9, 9])).item()
    1
    """
    return _arg_extreme("argmax", MAX, x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> ndarray:
    """Index (int64) of the first smallest element along `axis`, of the flattened array if None; of the first
    NaN if there is one.

    Raises `ValueError` over no elements.

    >>> import pyarray as pa
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
    extreme = reduction(op, lines, -1, False, lines.dtype)
    arg_extreme(lines, extreme, out)
    if not keepdims:
        return out
    return out.reshape(
        (1,) * x.ndim if axis is None else tuple(1 if k == along else n for k, n in enumerate(x.shape))
    )


def _device_of(choices: list[Any]) -> Any:
    return next((x.device for x in choices if isinstance(x, ndarray)), None)


def nonzero(x: Any, /) -> tuple[ndarray, ...]:
    """Positions of the elements that are not zero, in C order: one 1-D int64 array per axis. Raises
    `ValueError` for a 0-d array.

    >>> import pyarray as pa
    >>> [i.tolist() for i in pa.nonzero(pa.asarray([[0, 5], [7, 0]]))]
    [[0, 1], [1, 0]]
    """
    return scans.nonzero(asarray(x))


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> ndarray:
    """Number of elements over `axis` (None: all, an int, or a tuple of ints) that are not zero, as int64.

    >>> import pyarray as pa
    >>> pa.count_nonzero(pa.asarray([[0, 5], [7, 1]]), axis=0).tolist()
    [1, 2]
    """
    x = asarray(x)
    return reduction(SUM, x if x.dtype is bool_ else not_equal(x, 0), axis, keepdims, int64)
