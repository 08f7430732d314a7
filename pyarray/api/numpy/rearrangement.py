"""Rearranging functions that the standard lacks: rotations, splits, stacks of columns, insertion and deletion."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import shapes
from ...array import empty, ndarray
from ...array_convert import asarray, asnumpy
from ...array_hooks import operation
from ...jit.replay import replayable
from ...typing import ArrayLike, ShapeLike
from ..core.registry import FLOAT, precompiled
from ..core.ufunc import PYTHON, as_array_like, axis_or_flat
from ..standard.indexing import take
from ..standard.manipulation import concat, flip, moveaxis, swapaxes
from ..standard.searching import nonzero

__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "column_stack", "delete", "dsplit",
    "dstack", "fliplr", "flipud", "hsplit", "hstack", "insert", "resize", "rollaxis", "rot90", "row_stack",
    "split", "trim_zeros", "vsplit", "vstack",
]  # fmt: skip


def flipud(x: ArrayLike, /) -> ndarray:
    """View with axis 0 reversed. Raises `ValueError` for a 0-d array.

    >>> pa.flipud([1, 2]).tolist()
    [2, 1]
    """
    return _flipped("flipud", x, 0)


def fliplr(x: ArrayLike, /) -> ndarray:
    """View with axis 1 reversed. Raises `ValueError` for fewer than 2 dimensions.

    >>> pa.fliplr([[1, 2], [3, 4]]).tolist()
    [[2, 1], [4, 3]]
    """
    return _flipped("fliplr", x, 1)


def _flipped(name: str, x: Any, axis: int) -> ndarray:
    x = asarray(x)
    if x.ndim <= axis:
        raise ValueError(f"{name}() takes an array of {axis + 1} or more dimensions, got shape {x.shape}")
    return flip(x, axis=axis)


def rot90(x: ArrayLike, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> ndarray:
    """View turned by `k` times 90 degrees, from the first of two `axes` towards the second. Raises
    `ValueError` for axes that aren't two.

    >>> pa.rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """
    x = asarray(x)
    plane = tuple(shapes.normalize_axis(axis, x.ndim) for axis in axes)
    if len(plane) != 2 or plane[0] == plane[1]:
        raise ValueError(f"rot90(): axes are two different ones, got {axes!r}")
    k %= 4
    if k == 2:
        return flip(x, axis=plane)
    if k == 1:
        return swapaxes(flip(x, axis=plane[1]), *plane)
    return flip(swapaxes(x, *plane), axis=plane[1]) if k else x[...]


def rollaxis(x: ArrayLike, /, axis: int, start: int = 0) -> ndarray:
    """View with `axis` before the axis that is at `start` now. `moveaxis` is clearer.

    >>> pa.rollaxis(pa.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = asarray(x)
    k = shapes.normalize_axis(axis, x.ndim)
    target = start + x.ndim if start < 0 else start
    if not 0 <= target <= x.ndim:
        raise np.exceptions.AxisError(f"rollaxis(): start is from {-x.ndim} to {x.ndim}, got {start}")
    return moveaxis(x, k, target - (target > k))


# ---- joining


@replayable
def column_stack(arrays: Sequence[ArrayLike] | ndarray, /) -> ndarray:
    """1-D arrays as the columns of a matrix; others are joined along axis 1 as they are.

    >>> pa.column_stack([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    columns = as_array_like(*arrays)
    return concat([a.reshape((a.size, 1)) if a.ndim < 2 else a for a in columns], axis=1)


def _at_least(x: Any, ndim: int) -> ndarray:
    x = asarray(x)
    missing = max(ndim - x.ndim, 0)
    # NumPy puts the third axis last
    after = 1 if ndim == 3 and missing and x.ndim else 0
    return x[(None,) * (missing - after) + (..., *(None,) * after)] if missing else x


def atleast_1d(*arrays: ArrayLike) -> Any:
    """Views of 1 or more dimensions; one array gives an array, several give a tuple.

    >>> pa.atleast_1d(2.0).shape
    (1,)
    """
    results = tuple(_at_least(a, 1) for a in arrays)
    return results[0] if len(results) == 1 else results


def atleast_2d(*arrays: ArrayLike) -> Any:
    """Views of 2 or more dimensions, new axes first; one array gives an array, several give a tuple.

    >>> pa.atleast_2d(pa.ones(3)).shape
    (1, 3)
    """
    results = tuple(_at_least(a, 2) for a in arrays)
    return results[0] if len(results) == 1 else results


def atleast_3d(*arrays: ArrayLike) -> Any:
    """Views of 3 or more dimensions; (n,) becomes (1, n, 1) and (m, n) becomes (m, n, 1), as in NumPy.

    >>> pa.atleast_3d(pa.ones((2, 3))).shape
    (2, 3, 1)
    """
    results = tuple(_at_least(a, 3) for a in arrays)
    return results[0] if len(results) == 1 else results


@replayable
def vstack(arrays: Sequence[ArrayLike] | ndarray, /) -> ndarray:
    """`concat` along axis 0 of arrays that have 2 or more dimensions; 1-D arrays are rows.

    >>> pa.vstack([pa.ones(2), pa.zeros(2)]).shape
    (2, 2)
    """
    return concat([_at_least(a, 2) for a in as_array_like(*arrays)], axis=0)


@replayable
def hstack(arrays: Sequence[ArrayLike] | ndarray, /) -> ndarray:
    """`concat` along axis 1, of 1-D arrays along axis 0.

    >>> pa.hstack([pa.ones(2), pa.zeros(1)]).tolist()
    [1.0, 1.0, 0.0]
    """
    parts = [_at_least(a, 1) for a in as_array_like(*arrays)]
    return concat(parts, axis=min(parts[0].ndim - 1, 1) if parts else 0)


row_stack = vstack


@replayable
def dstack(arrays: Sequence[ArrayLike] | ndarray, /) -> ndarray:
    """`concat` along axis 2 of arrays that have 3 or more dimensions; (m, n) becomes (m, n, 1).

    >>> pa.dstack([[1, 2], [3, 4]]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concat([atleast_3d(a) for a in as_array_like(*arrays)], axis=2)


@replayable
def append(x: ArrayLike, values: ArrayLike, /, axis: int | None = None) -> ndarray:
    """`x` and after it `values` along `axis`, both flattened for None: a copy.

    >>> pa.append([1, 2], [[3]]).tolist()
    [1, 2, 3]
    """
    return concat(as_array_like(x, values), axis=axis)


# ---- splitting


def array_split(x: ArrayLike, /, indices_or_sections: ArrayLike, axis: int = 0) -> list[ndarray]:
    """Parts of `x` along `axis`, as views: so many of nearly equal size, the first ones longer by one, or cut
    at the given indices.

    >>> [a.tolist() for a in pa.array_split(pa.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    x = asarray(x)
    k = shapes.normalize_axis(axis, x.ndim)
    n = x.shape[k]
    sections = asnumpy(indices_or_sections)
    if sections.ndim:
        cuts = [0, *(operator.index(c) for c in sections.tolist()), n]
    else:
        count = operator.index(sections.item())
        if count < 1:
            raise ValueError(f"array_split(): the number of parts is 1 or more, got {count}")
        each, more = divmod(n, count)
        cuts = [part * each + min(part, more) for part in range(count + 1)]
    leading = (slice(None),) * k
    return [x[(*leading, slice(a, b))] for a, b in itertools.pairwise(cuts)]


def split(x: ArrayLike, /, indices_or_sections: ArrayLike, axis: int = 0) -> list[ndarray]:
    """`array_split`, but a number of parts must divide the size: `ValueError` where it doesn't.

    >>> [a.tolist() for a in pa.split(pa.arange(4), [1, 3])]
    [[0], [1, 2], [3]]
    """
    return _split("split", x, indices_or_sections, axis, 1)


def _split(name: str, x: Any, parts: Any, axis: int, least: int) -> list[ndarray]:
    x = asarray(x)
    if x.ndim < least:
        raise ValueError(f"{name}() takes an array of {least} or more dimensions, got shape {x.shape}")
    sections, n = asnumpy(parts), x.shape[shapes.normalize_axis(axis, x.ndim)]
    if not sections.ndim and (sections.item() < 1 or n % sections.item()):
        raise ValueError(f"{name}(): {n} elements don't make {sections.item()} equal parts; use array_split")
    return array_split(x, parts, axis)


def hsplit(x: ArrayLike, /, indices_or_sections: ArrayLike) -> list[ndarray]:
    """`split` along axis 1, of 1-D arrays along axis 0.

    >>> [a.shape for a in pa.hsplit(pa.ones((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    x = asarray(x)
    return _split("hsplit", x, indices_or_sections, 1 if x.ndim > 1 else 0, 1)


def vsplit(x: ArrayLike, /, indices_or_sections: ArrayLike) -> list[ndarray]:
    """`split` along axis 0, of 2 or more dimensions.

    >>> [a.shape for a in pa.vsplit(pa.ones((2, 4)), 2)]
    [(1, 4), (1, 4)]
    """
    return _split("vsplit", x, indices_or_sections, 0, 2)


def dsplit(x: ArrayLike, /, indices_or_sections: ArrayLike) -> list[ndarray]:
    """`split` along axis 2, of 3 or more dimensions.

    >>> [a.shape for a in pa.dsplit(pa.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split("dsplit", x, indices_or_sections, 2, 3)


# ---- putting in, leaving out

_RUNS = 32  # runs of elements that are copied one by one; more are gathered or scattered by index


def _runs(left_out: np.ndarray[Any, Any], size: int) -> list[tuple[int, int]] | None:
    """What remains of range(size) without the sorted integers `left_out`, which may come twice, as runs
    (start, stop); None if there are more than `_RUNS`."""
    gaps = np.flatnonzero(np.diff(left_out) > 1)
    if len(gaps) >= _RUNS:
        return None
    starts = [0, *(left_out[gaps] + 1).tolist(), *(left_out[-1:] + 1).tolist()]
    stops = [*left_out[:1].tolist(), *left_out[gaps + 1].tolist(), size]
    return [(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]


def _positions(name: str, where: Any, size: int, n: int) -> np.ndarray[Any, Any]:
    """A slice, mask or integers as indices from 0 to `n` - 1, on the host: they decide the shape."""
    if isinstance(where, slice):
        return np.arange(size)[where]
    if type(where) is int and -size <= where < n:
        return np.array(where if where >= 0 else where + size)
    positions = asnumpy(where)
    if positions.dtype.kind == "b":
        if positions.shape != (size,):
            raise ValueError(f"{name}(): a mask has {size} elements, got shape {positions.shape}")
        return np.flatnonzero(positions)
    if positions.size and positions.dtype.kind not in "iu":
        raise IndexError(f"{name}(): indices are integers, a slice or a mask, got {positions.dtype}")
    positions = positions.astype(np.int64)
    bad = positions[(positions < -size) | (positions >= n)]
    if bad.size:
        raise IndexError(f"{name}(): index {bad.flat[0]} is out of bounds for an axis of size {size}")
    return np.where(positions < 0, positions + size, positions)


def delete(x: ArrayLike, obj: ArrayLike | slice, /, axis: int | None = None) -> ndarray:
    """A copy of `x` without the elements `obj` (an int, a slice, integers, or a mask) along `axis`, flattened
    for None. Raises `IndexError` for an index out of range.

    >>> pa.delete(pa.arange(4), [1, -1]).tolist()
    [0, 2]
    """
    x, k = axis_or_flat(asarray(x), axis)
    n = x.shape[k]
    positions = np.sort(_positions("delete", obj, n, n), axis=None)
    runs = _runs(positions, n)
    if runs is None:
        mask = np.ones(n, bool)
        mask[positions] = False
        return take(x, asarray(np.flatnonzero(mask), device=x.device), axis=k)
    remaining = sum(stop - start for start, stop in runs)
    out = empty(x.shape[:k] + (remaining,) + x.shape[k + 1 :], x._dtype, x.device)
    at = 0
    for start, stop in runs:
        out[_along(k, at, at + stop - start)] = x[_along(k, start, stop)]
        at += stop - start
    return out


def _along(axis: int, start: int, stop: int) -> tuple[slice, ...]:
    """The key of a range of an axis."""
    return (*(slice(None),) * axis, slice(start, stop))


@precompiled(FLOAT, "insert(a, 3, one)")
def insert(x: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, /, axis: int | None = None) -> ndarray:
    """A copy of `x` with `values` before the indices `obj` (an int, a slice, integers, or a mask) along
    `axis`, flattened for None. Values broadcast and are cast to the dtype of `x`. Raises `IndexError` for an
    index out of range.

    >>> pa.insert(pa.asarray([1, 2, 3]), 1, 9).tolist()
    [1, 9, 2, 3]
    """
    if type(values) not in PYTHON:
        x, values = as_array_like(x, values)
    x, k = axis_or_flat(asarray(x), axis)
    n = x.shape[k]
    positions = _positions("insert", obj, n, n + 1)
    if positions.size == 1:
        return _inserted_at(x, positions, values, k)
    positions, count = positions.reshape(-1), positions.size
    order = np.argsort(positions, kind="stable")
    new = np.empty(count, np.int64)
    new[order] = positions[order] + np.arange(count)
    runs = _runs(new[order], n + count)
    out = empty(x.shape[:k] + (n + count,) + x.shape[k + 1 :], x._dtype, x.device)
    at = 0
    for start, stop in runs or ():
        out[_along(k, start, stop)] = x[_along(k, at, at + stop - start)]
        at += stop - start
    leading = (slice(None),) * k
    if runs is None:
        old = np.ones(n + count, bool)
        old[new] = False
        out[(*leading, asarray(np.flatnonzero(old), device=x.device))] = x
    out[(*leading, asarray(new, device=x.device))] = values
    return out


def _inserted_at(x: ndarray, positions: np.ndarray, values: Any, k: int) -> ndarray:
    """`insert` at one position of axis `k`: the parts before and behind it are copied in one launch."""
    first, count = int(positions.item()), 1
    if isinstance(values, ndarray):
        values = values[(None,) * (x.ndim - values.ndim)] if values.ndim < x.ndim else values
        # before an int, elements along the axis stand first
        values = moveaxis(values, 0, k) if k and not positions.ndim else values
        count = values.shape[k]
    new = empty((*x._shape[:k], count, *x._shape[k + 1 :]), x._dtype, x.device)
    new[...] = values
    return concat([x[_along(k, 0, first)], new, x[_along(k, first, x._shape[k])]], axis=k)


def resize(x: ArrayLike, new_shape: ShapeLike, /) -> ndarray:
    """The elements of `x` in C order, repeated as needed, in a new shape; zeros where `x` has none.

    >>> pa.resize([1, 2, 3], (2, 2)).tolist()
    [[1, 2], [3, 1]]
    """
    x = asarray(x)
    shape = shapes.resolve_shape(new_shape)
    size = math.prod(shape)
    out = empty(size, x._dtype, x.device)
    if not x.size:
        out[...] = 0
    elif size:
        flat, full = x.reshape(x.size), size // x.size
        if full:
            operation("assign")(out[: full * x.size].reshape((full, x.size)), flat)
        operation("assign")(out[full * x.size :], flat[: size - full * x.size]) if size % x.size else None
    return out.reshape(shape)


def trim_zeros(x: ArrayLike, /, trim: str = "fb") -> ndarray:
    """View of the 1-D `x` without the zeros in front ("f") and at the back ("b"). Waits for the device.

    >>> pa.trim_zeros(pa.asarray([0, 1, 0, 2, 0])).tolist()
    [1, 0, 2]
    """
    x = asarray(x)
    if x.ndim != 1:
        raise ValueError(f"trim_zeros() takes a 1-D array, got shape {x.shape}")
    if not isinstance(trim, str) or not set(trim.lower()) <= {"f", "b"}:
        raise ValueError(f"trim_zeros(): trim is 'f', 'b' or 'fb', got {trim!r}")
    positions = nonzero(x)[0]
    if not positions.size:
        return x[:0] if trim else x[:]
    first = positions[0].item() if "f" in trim.lower() else 0
    last = positions[-1].item() + 1 if "b" in trim.lower() else x.size
    return x[first:last]
