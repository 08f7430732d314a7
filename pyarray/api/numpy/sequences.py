"""Arrays from rules: geometric sequences, grids of indices, triangles, powers; and from memory of the
host."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import shapes
from ...array import empty, ndarray
from ...array_convert import asarray
from ...dtypes import asdtype, complex128, float64, int64, uint64
from ...typing import ArrayLike, DeviceLike, DTypeLike, ShapeLike
from ..core.ufunc import as_array_like
from ..standard.creation import arange, diag, linspace
from ..standard.elementwise import less_equal, multiply, pow
from ..standard.scans import cumulative_prod
from ..standard.searching import nonzero

__all__ = [
    "asanyarray",
    "ascontiguousarray",
    "copy",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "frombuffer",
    "fromfunction",
    "fromiter",
    "geomspace",
    "indices",
    "ix_",
    "logspace",
    "ravel_multi_index",
    "tri",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
    "vander",
]  # fmt: skip


def logspace(
    start: complex, stop: complex, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: DTypeLike = None,
    *, device: DeviceLike = None,
) -> ndarray:  # fmt: skip
    """`num` numbers from `base ** start` to `base ** stop` with equal ratios; values as NumPy's.

    >>> pa.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    powers = pow(float(base), linspace(start, stop, num, endpoint=endpoint, device=device))
    return powers if dtype is None else powers.astype(dtype)


def geomspace(
    start: complex,
    stop: complex,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> ndarray:
    """`num` numbers from `start` to `stop` with equal ratios; both ends are exact. Raises `ValueError` for 0,
    and for real numbers of opposite signs.

    >>> pa.geomspace(1, 1000, 4).tolist()
    [1.0, 10.0, 100.0, 1000.0]
    """
    if not start or not stop:
        raise ValueError(f"geomspace(): a geometric sequence has no 0, got {start!r} and {stop!r}")
    kind = complex128 if isinstance(start, complex) or isinstance(stop, complex) else float64
    if kind is float64 and (start < 0) != (stop < 0):  # type: ignore[operator]
        raise ValueError(f"geomspace(): {start!r} and {stop!r} have opposite signs; name complex numbers")
    values = np.geomspace(start, stop, num, endpoint=endpoint)
    if dtype is not None:
        values = np.geomspace(start, stop, num, endpoint=endpoint, dtype=asdtype(dtype).numpy)
    return asarray(values, device=device)


def tri(
    n: int, m: int | None = None, /, k: int = 0, dtype: DTypeLike = float64, *, device: DeviceLike = None
) -> ndarray:
    """A matrix of `n` by `m` (as many unless given) with 1 up to diagonal `k`, 0 above it.

    >>> pa.tri(2, 3, dtype="int8").tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    return _below(n, n if m is None else m, k, device).astype(dtype)


def _below(rows: int, columns: int, k: int, device: Any = None) -> ndarray:
    down: Any = arange(rows, device=device)
    return less_equal(arange(columns, device=device), (down + operator.index(k))[:, None])


def vander(x: ArrayLike, /, N: int | None = None, increasing: bool = False) -> ndarray:
    """Matrix whose columns are the powers of the 1-D `x`: the highest, N - 1, first unless `increasing`;
    int64, float64 or complex128.

    >>> pa.vander([2, 3], 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    x = asarray(x)
    if x.ndim != 1:
        raise ValueError(f"vander() takes a 1-D array, got shape {x.shape}")
    count = x.size if N is None else operator.index(N)
    wide = {"f": float64, "c": complex128}.get(x._dtype.kind, int64)
    kind = float64 if x._dtype is uint64 else wide
    out = empty((x.size, count), kind, x.device)
    powers = out if increasing else out[:, ::-1]
    if count:
        powers[:, 0] = 1
    if count > 1:
        powers[:, 1:] = x[:, None]
        cumulative_prod(powers[:, 1:], axis=1, dtype=kind, out=powers[:, 1:])
    return out


def diagflat(v: ArrayLike, /, k: int = 0) -> ndarray:
    """The matrix with the flattened `v` on its diagonal `k`, 0 elsewhere.

    >>> pa.diagflat([[1, 2]]).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(asarray(v).ravel(), k)


# ---- indices


def indices(dimensions: ShapeLike, dtype: DTypeLike = int64, sparse: bool = False, *, device: DeviceLike = None) -> Any:
    """The index of each element of a grid: an array of shape (axes, *dimensions), or with `sparse` a tuple of
    arrays that broadcast.

    >>> pa.indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    shape = shapes.resolve_shape(dimensions)
    lines = tuple(
        arange(n, dtype=dtype, device=device).reshape(shapes.column_shape(axis, len(shape)))
        for axis, n in enumerate(shape)
    )
    if sparse:
        return lines
    out = empty((len(shape), *shape), dtype, device)
    for k, line in enumerate(lines):
        out[k] = line
    return out


def ix_(*arrays: ArrayLike) -> tuple[ndarray, ...]:
    """1-D arrays of indices, or masks, as index arrays of the grid over them: `a[ix_(rows, columns)]`.

    >>> pa.arange(9).reshape(3, 3)[pa.ix_([0, 2], [1, 2])].tolist()
    [[1, 2], [7, 8]]
    """
    result = []
    for axis, indices in enumerate(arrays):
        a = asarray(indices)
        if a.ndim != 1:
            raise ValueError(f"ix_() takes 1-D arrays, got shape {a.shape}")
        if a._dtype.kind == "b":
            a = nonzero(a)[0]
        a = a if a.size else a.astype(int64)
        result.append(a.reshape(shapes.column_shape(axis, len(arrays))))
    return tuple(result)


def fromfunction(
    function: Callable[..., Any],
    shape: ShapeLike,
    *,
    dtype: DTypeLike = float64,
    device: DeviceLike = None,
    **kwargs: Any,
) -> Any:
    """`function` of the index arrays of a grid of `shape`, in `dtype`.

    >>> pa.fromfunction(lambda i, j: i + j, (2, 2)).tolist()
    [[0.0, 1.0], [1.0, 2.0]]
    """
    return function(*indices(shape, dtype=dtype, device=device), **kwargs)


def unravel_index(positions: ArrayLike, shape: ShapeLike, order: str = "C") -> tuple[ndarray, ...]:
    """Indices, an array per axis of `shape`, of flat positions in C order, or with `order` "F" in Fortran's. Waits
    for the device to raise `ValueError` for positions out of range.

    >>> [i.tolist() for i in pa.unravel_index([3, 5], (2, 3))]
    [[1, 1], [0, 2]]
    """
    remaining, sizes = _integers("unravel_index", positions), shapes.resolve_shape(shape)
    _check_range("unravel_index", remaining, math.prod(sizes))
    backward = _from_the_last("unravel_index", order)
    coordinates = []
    for n in reversed(sizes) if backward else sizes:
        coordinates.append(remaining % n if n else remaining)
        remaining = remaining // n if n else remaining
    return tuple(reversed(coordinates) if backward else coordinates)


def _from_the_last(name: str, order: str) -> bool:
    """Whether the last axis is the fastest in memory."""
    if order not in ("C", "F"):
        raise ValueError(f"{name}(): order is 'C' or 'F', got {order!r}")
    return order == "C"


def ravel_multi_index(
    multi_index: Sequence[ArrayLike], dims: ShapeLike, mode: Any = "raise", order: str = "C"
) -> ndarray:
    """Flat positions in C order, or with `order` "F" in Fortran's, of indices, an array per axis of `dims`.
    Indices out of range: `mode`, which may be one for each axis, "raise" (`ValueError`), "wrap" around, or
    "clip" to the ends.

    >>> pa.ravel_multi_index(([1, 1], [0, 2]), (2, 3)).tolist()
    [3, 5]
    """
    name, sizes = "ravel_multi_index", shapes.resolve_shape(dims)
    if len(multi_index) != len(sizes):
        raise ValueError(f"{name}(): {len(sizes)} axes need as many index arrays, got {len(multi_index)}")
    modes = tuple(mode) if isinstance(mode, (tuple, list)) else (mode,) * len(sizes)
    if len(modes) != len(sizes):
        raise ValueError(f"{name}(): {len(sizes)} axes need one mode or as many, got {len(modes)}")
    axes = list(zip(as_array_like(*multi_index), sizes, modes, strict=True))
    total: Any = 0
    for indices, n, how in axes if _from_the_last(name, order) else reversed(axes):
        if how not in ("raise", "wrap", "clip"):
            raise ValueError(f"{name}(): mode is raise, wrap or clip, got {how!r}")
        index: Any = _integers(name, indices)
        if how == "raise":
            _check_range(name, index, n)
        else:
            index = index % n if how == "wrap" else index.clip(0, n - 1)
        total = index + multiply(total, n) if isinstance(total, ndarray) else index
    return asarray(total)


def _integers(name: str, x: Any) -> Any:
    index = asarray(x)
    if index._dtype.kind not in "iu" and index.size:
        raise TypeError(f"{name}(): indices are integers, got {index._dtype}")
    return index.astype(int64, copy=False)


def _check_range(name: str, index: Any, size: int) -> None:
    if index.size and bool(((index < 0) | (index >= size)).any()):
        raise ValueError(f"{name}(): an index is out of bounds, they run from 0 to {size - 1}")


def diag_indices(n: int, ndim: int = 2, *, device: DeviceLike = None) -> tuple[ndarray, ...]:
    """Index arrays of the main diagonal of an array whose `ndim` axes have size `n`.

    >>> [i.tolist() for i in pa.diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    return (arange(n, device=device),) * ndim


def diag_indices_from(x: ArrayLike) -> tuple[ndarray, ...]:
    """`diag_indices` for the array `x`, whose axes are of one size. Raises `ValueError` for other shapes.

    >>> len(pa.diag_indices_from(pa.ones((2, 2, 2))))
    3
    """
    x = asarray(x)
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ValueError(f"diag_indices_from() takes 2 or more axes of one size, got shape {x.shape}")
    return diag_indices(x.shape[0], x.ndim, device=x.device)


def tril_indices(n: int, k: int = 0, m: int | None = None, *, device: DeviceLike = None) -> tuple[ndarray, ...]:
    """Index arrays of the elements of an `n` by `m` matrix up to diagonal `k`. Waits for the device.

    >>> [i.tolist() for i in pa.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return nonzero(_below(n, n if m is None else m, k, device))


def triu_indices(n: int, k: int = 0, m: int | None = None, *, device: DeviceLike = None) -> tuple[ndarray, ...]:
    """Index arrays of the elements of an `n` by `m` matrix from diagonal `k` on. Waits for the device.

    >>> [i.tolist() for i in pa.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return nonzero(~_below(n, n if m is None else m, k - 1, device))


def _matrix(name: str, x: Any) -> ndarray:
    x = asarray(x)
    if x.ndim != 2:
        raise ValueError(f"{name}() takes a matrix, got shape {x.shape}")
    return x


def tril_indices_from(x: ArrayLike, k: int = 0) -> tuple[ndarray, ...]:
    """`tril_indices` for the matrix `x`. Raises `ValueError` for another rank.

    >>> pa.tril_indices_from(pa.ones((2, 2)))[0].tolist()
    [0, 1, 1]
    """
    x = _matrix("tril_indices_from", x)
    return tril_indices(x.shape[0], k, x.shape[1], device=x.device)


def triu_indices_from(x: ArrayLike, k: int = 0) -> tuple[ndarray, ...]:
    """`triu_indices` for the matrix `x`. Raises `ValueError` for another rank.

    >>> pa.triu_indices_from(pa.ones((2, 2)))[0].tolist()
    [0, 0, 1]
    """
    x = _matrix("triu_indices_from", x)
    return triu_indices(x.shape[0], k, x.shape[1], device=x.device)


# ---- what is there


def copy(x: ArrayLike, /, order: str = "K") -> ndarray:
    """A dense copy of `x`. `order` is its memory layout: "K" (that of `x`), "C", "F", or "A" ("F" if `x` is
    Fortran-contiguous, else "C").

    >>> pa.copy([1, 2]).tolist()
    [1, 2]
    """
    return asarray(x).copy(order)


def asanyarray(x: ArrayLike, dtype: DTypeLike = None, *, device: DeviceLike = None) -> ndarray:
    """`asarray`: there are no other kinds of array.

    >>> pa.asanyarray([1, 2]).shape
    (2,)
    """
    return asarray(x, dtype=dtype, device=device)


def ascontiguousarray(x: ArrayLike, dtype: DTypeLike = None, *, device: DeviceLike = None) -> ndarray:
    """`x` as a C-contiguous array of 1 or more dimensions: itself where it is one, else a copy.

    >>> pa.ascontiguousarray(pa.ones((2, 3)).T).flags.c_contiguous
    True
    """
    a = asarray(x, dtype=dtype, device=device)
    a = a if a.flags.c_contiguous else a.copy()
    return a if a.ndim else a.reshape(1)


def frombuffer(
    buffer: Any, dtype: DTypeLike = float64, count: int = -1, offset: int = 0, *, device: DeviceLike = None
) -> ndarray:
    """The bytes of a host buffer as a 1-D array: `count` elements (-1: all) from byte `offset` on. On the CPU
    it shares the buffer's memory. Raises `ValueError` where the sizes don't fit.

    >>> pa.frombuffer(b"abc", dtype="uint8").tolist()
    [97, 98, 99]
    """
    return asarray(np.frombuffer(buffer, asdtype(dtype).numpy, count, offset), device=device)


def fromiter(iterable: Any, dtype: DTypeLike, count: int = -1, *, device: DeviceLike = None) -> ndarray:
    """A 1-D array of what an iterable gives, at most `count` of it.

    >>> pa.fromiter((n * n for n in range(3)), "int64").tolist()
    [0, 1, 4]
    """
    return asarray(np.fromiter(iterable, asdtype(dtype).numpy, count), device=device)
