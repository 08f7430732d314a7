"""Applies Python functions along axes or to elements, and assembles arrays from blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import shapes
from ...array import empty, ndarray
from ...array_convert import asarray, asnumpy
from ...dtypes import asdtype, float64, result_type
from ...typing import ArrayLike, AxisLike, DeviceLike
from ..core.ufunc import common_device, device_of
from ..standard.creation import ones
from ..standard.elementwise import abs as absolute
from ..standard.elementwise import add, equal, greater, less, logical_and, remainder, subtract
from ..standard.manipulation import concat, expand_dims, moveaxis
from ..standard.scans import cumsum, diff
from ..standard.searching import nonzero, where

__all__ = ["apply_along_axis", "apply_over_axes", "block", "mask_indices", "unwrap", "vectorize"]


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, /, *args: Any, **kwargs: Any) -> ndarray:
    """Applies `func1d` to each 1-D slice of `arr` along `axis`; its results, numbers or arrays of one shape, take
    the place of the axis. Python is called for each slice: a function with `axis=` is faster.

    Raises `ValueError` for an array without slices, `AxisError` for an axis out of range.

    >>> pa.apply_along_axis(lambda line: line[::-1], 1, pa.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    x = asarray(arr)
    k = shapes.normalize_axis(axis, x.ndim)
    lines: Any = moveaxis(x, k, -1)
    outer = lines.shape[:-1]
    if 0 in outer:
        raise ValueError(f"apply_along_axis(): there are no lines along axis {k} in an array of {x.shape}")
    results = [
        asarray(func1d(lines[index], *args, **kwargs), device=x.device)
        for index in itertools.product(*map(range, outer))
    ]
    shape, kind = results[0].shape, result_type(*results[:1])
    out: Any = empty((len(results), *shape), kind, x.device)
    for n, part in enumerate(results):
        out[n] = part
    out = out.reshape(*outer, *shape)
    inner = tuple(range(len(outer), out.ndim))
    return moveaxis(out, inner, tuple(range(k, k + len(inner))))


def apply_over_axes(func: Callable[..., Any], a: ArrayLike, axes: AxisLike, /) -> ndarray:
    """Applies `func(a, axis)` to one axis after the other; an axis that it removes is put back with size 1. Raises
    `ValueError` for a result of another rank.

    >>> pa.apply_over_axes(pa.sum, pa.ones((2, 3, 4)), [0, 2]).shape
    (1, 3, 1)
    """
    x = asarray(a)
    ndim = x.ndim
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        k = shapes.normalize_axis(axis, ndim)
        result = asarray(func(x, k), device=x.device)
        x = expand_dims(result, axis=k) if result.ndim == ndim - 1 else result
        if x.ndim != ndim:
            raise ValueError(
                f"apply_over_axes(): the function takes axis {k} of {ndim} away or keeps it, "
                f"got an array of shape {result.shape}"
            )
    return x


_UNSET: Any = np._NoValue


class vectorize(np.vectorize):
    """A function of Python that takes numbers, for arrays that broadcast together; of a tuple that it gives,
    an array for each. A decorator, too, with keywords or without.

    It is NumPy's loop, on the host: a call of Python per element, hundreds of times as slow as what `fuse`
    or `kernel` make of the function. Arrays of a GPU are copied to the host, and the results back.

    `otypes`, dtypes or NumPy's letters, spare the call that asks the first element for them. `excluded` are
    names and positions of arguments that are passed as they are. With a `signature` like `"(n),(n)->()"`, the
    function takes and gives NumPy's arrays.

    Raises `TypeError` for results that no dtype holds, `ValueError` for empty arrays without `otypes` and for
    arrays on several devices.

    >>> import pyarray as pa
    >>> halves = pa.vectorize(lambda n, most: min(n // 2, most))
    >>> halves(pa.asarray([[3], [9]]), [1, 5]).tolist()
    [[1, 1], [1, 4]]
    """

    def __init__(
        self,
        pyfunc: Any = _UNSET,
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ):
        kinds = [asdtype(t).numpy for t in otypes] if isinstance(otypes, (list, tuple)) else otypes
        super().__init__(pyfunc, kinds, doc, excluded, cache, signature)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's results for these arguments."""
        if self.pyfunc is _UNSET:
            return super().__call__(*args, **kwargs)
        arguments = (*enumerate(args), *kwargs.items())
        arrays = {k: x for k, x in arguments if isinstance(x, ndarray) and k not in self.excluded}
        names = [f"argument {k}" for k in arrays]
        device = common_device("vectorize", list(arrays.values()), names) if arrays else None
        results = super().__call__(
            *[asnumpy(x) if k in arrays else x for k, x in enumerate(args)],
            **{k: asnumpy(x) if k in arrays else x for k, x in kwargs.items()},
        )
        if isinstance(results, tuple):
            return tuple(asarray(x, device=device) for x in results)
        return asarray(results, device=device)


def block(arrays: Sequence[ArrayLike] | ndarray, /) -> ndarray:
    """An array of nested lists of blocks: the innermost lists are joined along the last axis, those around
    them along the one before, and so on. Raises `ValueError` for shapes that don't fit, lists of unequal
    depth, and empty ones; `TypeError` for tuples.

    >>> pa.block([[pa.eye(2), pa.zeros((2, 1))], [pa.ones((1, 3))]]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    depth = _depth(arrays)
    device = device_of(_leaves(arrays))
    ndim = max(depth, *(getattr(x, "ndim", 0) for x in _leaves(arrays)), 0)
    result = _joined(arrays, depth, ndim, device)
    return result if isinstance(arrays, list) else result.copy()


def _depth(arrays: Any) -> int:
    if isinstance(arrays, tuple):
        raise TypeError("block() takes nested lists, got a tuple; write lists")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("block(): a list of blocks is empty")
    depths = {_depth(x) for x in arrays}
    if len(depths) > 1:
        raise ValueError(f"block(): lists are nested equally deep, got depths {sorted(depths)} side by side")
    return 1 + depths.pop()


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for x in arrays for leaf in _leaves(x)] if isinstance(arrays, list) else [arrays]


def _joined(arrays: Any, depth: int, ndim: int, device: Any) -> ndarray:
    if not isinstance(arrays, list):
        x = arrays if isinstance(arrays, ndarray) else asarray(arrays, device=device)
        return x.reshape((1,) * (ndim - x.ndim) + x.shape)
    return concat([_joined(x, depth - 1, ndim, device) for x in arrays], axis=ndim - depth)


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: ArrayLike = 0, *, device: DeviceLike = None
) -> tuple[ndarray, ...]:
    """Where `mask_func(a, k)` of an `n` by `n` array is not 0: `triu` and `tril` are such functions.

    >>> [i.tolist() for i in pa.mask_indices(2, pa.triu)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return nonzero(mask_func(ones((n, n), "int64", device=device), k))


def unwrap(p: ArrayLike, /, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> ndarray:
    """`p` with multiples of `period` added so that neighbours along `axis` differ by no more than half of it,
    where they differ by `discont` (half a period unless given) or more.

    The dtype is that of `p` and `period` together: integers stay integers for an integer period.

    >>> pa.unwrap(pa.asarray([0, 1, 3, 0, 1]), period=4).tolist()
    [0, 1, 3, 4, 5]
    """
    x = asarray(p)
    k = shapes.normalize_axis(axis, x.ndim)
    kind = result_type(x, period)
    is_integer = kind.kind in "iu" and isinstance(period, int)
    kind = kind if is_integer or kind.kind == "f" else float64
    x = x.astype(kind, copy=False)
    high: Any = period // 2 if is_integer else period / 2
    ambiguous = not is_integer or period % 2 == 0
    steps: Any = diff(x, axis=k)
    inside: Any = add(remainder(add(steps, high), period), -high)
    if ambiguous:
        inside = where(logical_and(equal(inside, -high), greater(steps, 0)), high, inside)
    change: Any = subtract(inside, steps)
    limit = period / 2 if discont is None else discont
    change = where(less(absolute(steps), limit), 0, change).astype(kind, copy=False)
    out = x.copy()
    later = (slice(None),) * k + (slice(1, None),)
    out[later] = add(x[later], cumsum(change, axis=k))
    return out
