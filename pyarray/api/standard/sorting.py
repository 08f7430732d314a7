"""Sorting functions. All sorts are stable; NaN is last, in descending order too; 0.0 and -0.0 are equal;
complex numbers are ordered by their real, then by their imaginary part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import shapes
from ...array import STRIDED, ndarray
from ...array_convert import asarray
from ...dtypes import complex64, complex128, int8, int64
from ...jit.replay import replayable
from ...kernels.sort import sort as kernels
from ...kernels.workspace import unchecked_empty
from ...typing import ArrayLike
from ..core.registry import MANY, REAL, method, precompiled
from ..core.ufunc import as_array_like, axis_or_flat
from .elementwise import add, imag, isnan, negative, real
from .statistical import as_operand
from .utility import any as any_of

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort", "sort_complex"]

_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


@precompiled(REAL, "sort(a)", size=MANY)
@precompiled(REAL, "sort(a)", "sort(m, axis=0)")
@replayable
def sort(
    x: ArrayLike,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    order: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> ndarray:
    """A copy of `x` with the elements in order along `axis` (None: flattened first).

    Always stable, so `stable` and NumPy's `kind` change nothing; `order` is NumPy's and None. NaN is last.
    Raises `AxisError` for an axis that isn't there, of a 0-d array too.

    >>> pa.sort(pa.asarray([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    x, along = _operand("sort", x, axis, kind, order)
    rows = lines(x, along)
    out = unchecked_empty(rows._shape, x._dtype, x._buffer.device)
    if out._size and x._dtype.kind == "c":
        kernels.gather_rows(out, rows, _complex_order(rows, bool(descending)))
    elif out._size:
        kernels.sort_rows(out, rows, bool(descending))
    return from_lines(out, x._shape, along)


def sort_complex(a: ArrayLike, /) -> ndarray:
    """A copy of `a` in order along the last axis, by real and then by imaginary parts, as complex numbers:
    complex64 of integers of up to 16 bits, complex128 of other real types.

    Raises `AxisError` for a 0-d array.

    >>> pa.sort_complex(pa.asarray([2, 1 + 1j, 1])).tolist()
    [(1+0j), (1+1j), (2+0j)]
    """
    ordered = sort(a)
    narrow = ordered._dtype.kind in "iu" and ordered.itemsize <= 2
    kind = ordered._dtype if ordered._dtype.kind == "c" else complex64 if narrow else complex128
    return ordered.astype(kind, copy=False)


@precompiled(REAL, "argsort(a)", size=MANY)
@precompiled(REAL, "argsort(a)")
@method
@replayable
def argsort(
    x: ArrayLike,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    order: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> ndarray:
    """Positions (int64) along `axis` (None: in the flattened array) that bring `x` in order; equal elements
    stay in the order in which they are.

    Options and errors are those of `sort`.

    >>> pa.argsort(pa.asarray([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    x, along = _operand("argsort", x, axis, kind, order)
    return from_lines(order_rows(lines(x, along), bool(descending)), x._shape, along)


def order_rows(rows: ndarray, descending: bool = False) -> ndarray:
    """Positions (int64) that sort each row of a contiguous 2-D array."""
    if rows._size and rows._dtype.kind == "c":
        return _complex_order(rows, descending)
    out = unchecked_empty(rows._shape, int64, rows._buffer.device)
    if out._size:
        kernels.argsort_rows(out, rows, descending)
    return out


def _complex_order(rows: ndarray, descending: bool) -> ndarray:
    """A NaN part is after all numbers, and a NaN real part weighs more."""
    keys = [imag(rows), real(rows)]
    if any_of(isnan(keys[0])):
        last, least = (isnan(part).astype(int8) for part in reversed(keys))
        weight = add(add(last, last), least)
        keys.append(negative(weight) if descending else weight)
    return by_keys(keys, descending)


def by_keys(keys: Sequence[ndarray], descending: bool = False) -> ndarray:
    """Positions that sort rows by the last key, where equal by the one before, and so on."""
    order = order_rows(keys[0], descending)
    for key in keys[1:]:
        moved = unchecked_empty(key._shape, key._dtype, key.device)
        step = unchecked_empty(key._shape, int64, key.device)
        kernels.gather_rows(moved, key, order)
        kernels.gather_rows(step, order, order_rows(moved, descending))
        order = step
    return order


def lexsort(keys: Any, axis: int = -1) -> ndarray:
    """Positions (int64) along `axis` that sort by several keys, the last one first: a sequence of arrays of
    one shape, or the rows of an array.

    Raises `TypeError` for no key, `ValueError` for shapes that differ.

    >>> pa.lexsort((pa.asarray([2, 1, 0]), pa.asarray([1, 1, 0]))).tolist()
    [2, 1, 0]
    """
    columns = [as_operand("lexsort", key, "biufc") for key in as_array_like(*keys)]
    if not columns:
        raise TypeError("lexsort() takes a sequence of one or more keys, got none")
    if any(key._shape != columns[0]._shape for key in columns):
        raise ValueError(f"lexsort() needs keys of one shape, got {', '.join(str(k._shape) for k in columns)}")
    shape = columns[0]._shape
    if not shape:
        return asarray(0, device=columns[0].device)
    along = shapes.normalize_axis(axis, len(shape))
    parts = [part for key in columns for part in ((imag(key), real(key)) if key._dtype.kind == "c" else (key,))]
    return from_lines(by_keys([lines(part, along) for part in parts]), shape, along)


@replayable
def partition(x: ArrayLike, /, kth: ArrayLike, axis: int | None = -1) -> ndarray:
    """A copy of `x` in which the elements at `kth` (an int or several) along `axis` are those that a sort
    puts there, smaller ones before them and larger ones after them.

    Raises `ValueError` for a `kth` out of range.

    >>> pa.partition(pa.asarray([3, 1, 2]), 1)[1].item()
    2
    """
    x, along = _operand("partition", x, axis, None, None)
    positions = _positions("partition", x, kth, along)
    rows = lines(x, along)
    if not kernels.can_select(rows, positions):
        return sort(x, along)
    out = unchecked_empty(rows._shape, x._dtype, x._buffer.device)
    if out._size:
        kernels.select_rows(out, rows, positions)
    return from_lines(out, x._shape, along)


@method
@replayable
def argpartition(x: ArrayLike, /, kth: ArrayLike, axis: int | None = -1) -> ndarray:
    """Positions (int64) that partition `x` as `partition` does.

    >>> pa.argpartition(pa.asarray([3, 1, 2]), 0)[0].item()
    1
    """
    x, along = _operand("argpartition", x, axis, None, None)
    positions = _positions("argpartition", x, kth, along)
    rows = lines(x, along)
    if not kernels.can_select(rows, positions):
        return argsort(x, along)
    out = unchecked_empty(rows._shape, int64, x._buffer.device)
    if out._size:
        kernels.argselect_rows(out, rows, positions)
    return from_lines(out, x._shape, along)


def _positions(name: str, x: ndarray, kth: Any, axis: int) -> tuple[int, ...]:
    """The different places among `kth`, from 0 on and in order."""
    n = x._shape[axis]
    values = [kth] if isinstance(kth, int) else asarray(kth).reshape(-1).tolist()
    for k in values:
        if not isinstance(k, int):
            raise TypeError(f"{name}(): kth must be integers, got {k!r}")
        if not -n <= k < n:
            raise ValueError(f"{name}(): kth={k} is out of bounds for {n} elements along axis {axis}")
    return tuple(sorted({k + n if k < 0 else k for k in values}))


def _operand(name: str, x: Any, axis: int | None, kind: Any, order: Any) -> tuple[ndarray, int]:
    """The array, flattened where no axis is given, and the axis from 0 on."""
    if kind not in _KINDS:
        raise ValueError(f"{name}(): kind is one of {', '.join(map(repr, _KINDS))}, got {kind!r}")
    if order is not None:
        raise ValueError(f"{name}(): order= is for arrays with fields, which pyarray hasn't; got {order!r}")
    return axis_or_flat(as_operand(name, x, "biufc"), axis)


def lines(x: ndarray, axis: int) -> ndarray:
    """`x` as a contiguous 2-D array with a row for each line along `axis`."""
    if axis == x.ndim - 1 and not x._key & STRIDED:
        moved = x
    else:
        moved = x.transpose((*(k for k in range(x.ndim) if k != axis), axis))
        moved = moved.copy() if moved._key & STRIDED else moved
    n = x._shape[axis]
    return moved._view(0, (math.prod(moved._shape[:-1]), n), (n * x.itemsize, x.itemsize))


def from_lines(rows: ndarray, shape: tuple[int, ...], axis: int) -> ndarray:
    """The array of which these are the `lines`, in C order; its length along the axis is theirs."""
    front = (*shape[:axis], *shape[axis + 1 :], rows._shape[1])
    result: ndarray = rows._view(0, front, shapes.contiguous_strides(front, rows.itemsize))
    result._base = None
    if axis == len(shape) - 1:
        return result
    order = (*range(axis), len(shape) - 1, *range(axis, len(shape) - 1))
    return result.transpose(order).copy()


def sort_in_place(
    self: ndarray,
    axis: int = -1,
    kind: str | None = None,
    order: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = True,
) -> None:
    """Put this array's elements in order along `axis`, as `pyarray.sort` does. Raises `ValueError` for a
    read-only array."""
    self[...] = sort(self, axis, kind, order, descending=descending, stable=stable)


def partition_in_place(self: ndarray, kth: ArrayLike, axis: int = -1) -> None:
    """Partition this array along `axis`, as `pyarray.partition` does. Raises `ValueError` for a read-only
    array."""
    self[...] = partition(self, kth, axis)
