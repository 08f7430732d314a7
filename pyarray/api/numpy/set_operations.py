"""Sets as sorted 1-D arrays: unions, intersections and differences, as NumPy has them."""

from __future__ import annotations

from typing import Any

from ...array import ndarray
from ...array_convert import asarray
from ...array_hooks import operation
from ...dtypes import result_type
from ...typing import ArrayLike
from ..core.ufunc import as_array_like
from ..standard.creation import full
from ..standard.elementwise import equal, logical_and, not_equal
from ..standard.manipulation import concat
from ..standard.searching import nonzero
from ..standard.sets import isin, unique
from ..standard.sorting import argsort, sort

__all__ = ["ediff1d", "in1d", "intersect1d", "setdiff1d", "setxor1d", "union1d"]


def _pair(x1: Any, x2: Any) -> tuple[ndarray, ndarray]:
    """Both flattened, on one device and in their common type."""
    first, second = as_array_like(x1, x2)
    kind = result_type(first, second)
    return first.ravel().astype(kind, copy=False), second.ravel().astype(kind, copy=False)


def _chosen(x: ndarray, mask: ndarray) -> Any:
    return operation("take")(x, nonzero(mask)[0])


def union1d(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """The distinct elements of both arrays, in order, as a 1-D array of their common type.

    Raises `TypeError` for dtypes without a common one, `ValueError` for arrays on two devices.

    >>> pa.union1d([3, 1], [[2, 3]]).tolist()
    [1, 2, 3]
    """
    return unique(concat(_pair(x1, x2)))


def intersect1d(x1: ArrayLike, x2: ArrayLike, /, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that are in both arrays, in order. With `return_indices` also where the first of
    each is in the flattened `x1` and `x2` (int64). `assume_unique` says that no array has an element twice.

    Raises as `union1d`.

    >>> pa.intersect1d([3, 1, 3, 4], [1, 3, 5]).tolist()
    [1, 3]
    >>> [r.tolist() for r in pa.intersect1d([3, 1, 3, 4], [1, 3, 5], return_indices=True)]
    [[1, 3], [1, 0], [0, 1]]
    """
    first, second = _pair(x1, x2)
    order_of_inputs: list[Any] = []
    if not assume_unique:
        first, *order_of_inputs = _distinct(first, return_indices)
        second, *others = _distinct(second, return_indices)
        order_of_inputs += others
    both = concat([first, second])
    if not return_indices:
        both = sort(both)
        return _chosen(both[:-1], equal(both[1:], both[:-1]))
    order = argsort(both)
    both = operation("take")(both, order)
    same = equal(both[1:], both[:-1])
    where: list[Any] = [_chosen(order[:-1], same), _chosen(order[1:], same)]
    where[1] = where[1] - first.size
    if order_of_inputs:
        where = [operation("take")(indices, index) for indices, index in zip(order_of_inputs, where, strict=True)]
    return _chosen(both[:-1], same), *where


def _distinct(x: ndarray, with_places: bool) -> tuple[Any, ...]:
    result = unique(x, return_index=with_places)
    return result if with_places else (result,)


def setdiff1d(x1: ArrayLike, x2: ArrayLike, /, assume_unique: bool = False) -> ndarray:
    """The distinct elements of `x1` that are not in `x2`, in order; with `assume_unique` all that are not, as
    they come.

    Raises as `union1d`.

    >>> pa.setdiff1d([4, 1, 4, 2], [1, 3]).tolist()
    [2, 4]
    """
    first, second = as_array_like(x1, x2)
    first = first.ravel() if assume_unique else unique(first)
    return _chosen(first, isin(first, second, invert=True))


def setxor1d(x1: ArrayLike, x2: ArrayLike, /, assume_unique: bool = False) -> ndarray:
    """The distinct elements that are in one of the arrays only, in order. `assume_unique` says that no array
    has an element twice.

    Raises as `union1d`.

    >>> pa.setxor1d([1, 2, 3], [2, 3, 4]).tolist()
    [1, 4]
    """
    first, second = _pair(x1, x2)
    if not assume_unique:
        first, second = unique(first), unique(second)
    both = sort(concat([first, second]))
    if not both.size:
        return both
    end = full(1, True, device=both.device)
    changes = concat([end, not_equal(both[1:], both[:-1]), end])
    return _chosen(both, logical_and(changes[1:], changes[:-1]))


def in1d(x1: ArrayLike, x2: ArrayLike, /, assume_unique: bool = False, invert: bool = False) -> ndarray:
    """`isin` of the flattened `x1`: NumPy's older name.

    >>> pa.in1d([[1, 2]], [2]).tolist()
    [False, True]
    """
    return isin(as_array_like(x1, x2)[0].ravel(), x2, assume_unique, invert)


def ediff1d(x: ArrayLike, /, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> ndarray:
    """Differences between neighbours of the flattened `x`, with `to_begin` put before and `to_end` after
    them, in the type of `x`.

    Raises `TypeError` for bools, and for ends that don't fit its type.

    >>> pa.ediff1d([1, 4, 9], to_end=[0, 0]).tolist()
    [3, 5, 0, 0]
    """
    x = asarray(x).ravel()
    differences: Any = x[1:]
    parts: list[ndarray] = [differences - x[:-1]]
    for name, values, position in (("to_begin", to_begin, 0), ("to_end", to_end, 1)):
        if values is not None:
            end = asarray(values, device=x.device).ravel()
            if "biufc".index(end._dtype.kind) > "biufc".index(x._dtype.kind):
                what = f"ediff1d(): {name} is {end._dtype}, which doesn't go into {x._dtype}"
                raise TypeError(f"{what}; cast it")
            parts.insert(position * len(parts), end.astype(x._dtype, copy=False))
    return concat(parts)
