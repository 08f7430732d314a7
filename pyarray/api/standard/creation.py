"""Creation functions."""

from __future__ import annotations

import math
import operator
from typing import Any, Literal, overload

import numpy as np

from ... import shapes
from ...array import empty as _empty
from ...array import ndarray
from ...array_convert import asarray as _asarray
from ...array_hooks import operation
from ...array_views import lay_out
from ...dlpack import from_dlpack
from ...driver.base import get_device
from ...dtypes import DEFAULT, PYTHON_KIND, asdtype, complex128, float64, int64, result_type
from ...jit.replay import replayable
from ...kernels.elementwise import creation
from ...keywords import quick
from ...memory.host_access import clear
from ...structured_array import StructuredArray
from ...structured_array import empty as _empty_records
from ...structured_dtypes import structured
from ...typing import ArrayLike, DeviceLike, DTypeLike, ShapeLike
from ..core.ufunc import as_array_like
from .conversion import array, asarray

__all__ = [
    "arange",
    "array",
    "asarray",
    "diag",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "identity",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


@quick("arange")
def arange(
    start: ArrayLike, /, stop: ArrayLike | None = None, step: ArrayLike = 1, dtype: DTypeLike = None, *,
    device: DeviceLike = None,
) -> ndarray:  # fmt: skip
    """Evenly spaced numbers from `start` (0 when only one number is given) up to, but without, `stop`; values
    as NumPy's.

    The dtype is int64 when all numbers are integers, else float64. Raises `ZeroDivisionError` for a step of
    0, `ValueError` for a length that isn't finite, `TypeError` for what is no real number.

    >>> pa.arange(2, 8, 3).tolist()
    [2, 5]
    """
    limits = (0, start, step) if stop is None else (start, stop, step)
    first, last, by = (_real("arange", *x) for x in zip(("start", "stop", "step"), limits, strict=True))
    default = int64 if all(isinstance(x, int) for x in (first, last, by)) else float64
    kind = default if dtype is None else asdtype(dtype)
    if by == 0:
        raise ZeroDivisionError("arange(): the step must not be 0; use full for equal numbers")
    count = (last - first) / by
    if not math.isfinite(count):
        raise ValueError(f"arange(): no finite number of steps of {by!r} leads from {first!r} to {last!r}")
    out = _empty(max(math.ceil(count), 0), kind, device)
    if out.size > 2 and kind.kind == "b":
        raise TypeError(f"arange(): {out.size} numbers don't fit into bool, which has two; name an integer dtype")
    # the difference of the first two numbers in the array's own type is the step, as in NumPy
    two = np.empty(2, kind.numpy)
    two[:] = first
    if out.size > 1:
        two[1] = first + by
    wide = two.astype(kind.arithmetic.numpy)
    if kind.kind in "biu":
        creation.ramp(out, int(two[0]), int(two[1]))
    else:
        creation.ramp(out, wide[0].item(), wide[1].item())
    return out


def _real(name: str, parameter: str, x: Any) -> Any:
    """A Python int or float. Raises `TypeError` for anything else."""
    if isinstance(x, (np.generic, ndarray, np.ndarray)) and x.ndim == 0:
        x = x.item()
    if isinstance(x, (bool, int)):
        return int(x)
    if isinstance(x, float):
        return x
    raise TypeError(f"{name}(): {parameter} is a real number, got {type(x).__name__} {x!r}")


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, /, num: int = 50, *, dtype: DTypeLike = None, device: DeviceLike = None,
    endpoint: bool = True, retstep: Literal[False] = False,
) -> ndarray: ...  # fmt: skip
@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, /, num: int = 50, *, dtype: DTypeLike = None, device: DeviceLike = None,
    endpoint: bool = True, retstep: Literal[True],
) -> tuple[ndarray, Any]: ...  # fmt: skip
def linspace(
    start: ArrayLike, stop: ArrayLike, /, num: int = 50, *, dtype: DTypeLike = None, device: DeviceLike = None,
    endpoint: bool = True, retstep: bool = False,
) -> Any:  # fmt: skip
    """`num` evenly spaced numbers from `start` to `stop`, which is the last one unless `endpoint` is False;
    values as NumPy's. With `retstep`, these and the step, a Python number: NaN where there is none.

    The dtype is float64, or complex128 when a number is complex; integers are rounded down. Raises
    `ValueError` for a negative `num`, `TypeError` for what is no number, or complex numbers into a real
    dtype.

    >>> pa.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    count = operator.index(num)
    if count < 0:
        raise ValueError(f"linspace(): num is the number of elements, 0 or more, got {count}")
    first, last = _number("start", start), _number("stop", stop)
    is_complex = isinstance(first, complex) or isinstance(last, complex)
    kind = asdtype(dtype) if dtype is not None else complex128 if is_complex else float64
    if is_complex and kind.kind != "c":
        raise TypeError(f"linspace(): complex numbers don't go into {kind}; name a complex dtype, or pass real numbers")
    out = _empty(count, kind, device)
    wide = np.complex128 if is_complex else np.float64
    divisor = count - 1 if endpoint else count
    with np.errstate(all="ignore"):
        a, b = wide(first), wide(last)  # pyright: ignore[reportArgumentType]
        step = (b - a) / divisor if divisor > 0 else wide(0)
        if count:
            creation.line(out, a.item(), b.item(), step.item(), float(divisor or 1), endpoint and count > 1)
    return (out, step.item() if divisor > 0 else math.nan) if retstep else out


def _number(parameter: str, x: Any) -> Any:
    if isinstance(x, (np.generic, ndarray, np.ndarray)) and x.ndim == 0:
        x = x.item()
    if not isinstance(x, (bool, int, float, complex)):
        raise TypeError(f"linspace(): {parameter} is a number, got {type(x).__name__} {x!r}")
    return x if isinstance(x, complex) else float(x)


@quick("empty")
def empty(shape: ShapeLike, dtype: DTypeLike = None, order: str = "C", *, device: DeviceLike = None) -> ndarray:
    """A new array of `shape` with arbitrary contents; dtype float64 unless given. `order` is "C" (the last
    axis fastest in memory) or "F" (the first one).

    Raises `ValueError` for a negative size, `TypeError` for what is no shape or dtype, `OutOfMemoryError`.

    >>> pa.empty((2, 3), dtype="float32").shape
    (2, 3)
    """
    return _new(shape, dtype, order, device)


def _new(shape: Any, dtype: Any, order: str, device: Any) -> Any:
    if (layout := structured(dtype)) is not None:
        return _empty_records(shape, layout, device, order)
    if order not in ("C", "F"):
        raise ValueError(f"order is 'C' or 'F', got {order!r}")
    return lay_out(_empty(shape, dtype, device), order)


@quick("zeros")
def zeros(shape: ShapeLike, dtype: DTypeLike = None, order: str = "C", *, device: DeviceLike = None) -> ndarray:
    """A new array of `shape` filled with 0; dtype float64 unless given. Raises as `empty`.

    >>> pa.zeros(2, dtype="int8").tolist()
    [0, 0]
    """
    return _zeroed(_new(shape, dtype, order, device))


def _zeroed(a: Any) -> Any:
    """A fresh array with all bytes cleared, which is 0 in every dtype."""
    if isinstance(a, StructuredArray):
        _zeroed(a._words)
        return a
    if a.nbytes:
        clear(a.device, a._ptr, a.nbytes)
    return a


@quick("ones")
def ones(shape: ShapeLike, dtype: DTypeLike = None, order: str = "C", *, device: DeviceLike = None) -> ndarray:
    """A new array of `shape` filled with 1; dtype float64 unless given. Raises as `empty`.

    >>> pa.ones((1, 2)).tolist()
    [[1.0, 1.0]]
    """
    return _filled(_new(shape, dtype, order, device), 1)


@quick("full")
def full(
    shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike = None, order: str = "C", *,
    device: DeviceLike = None,
) -> ndarray:  # fmt: skip
    """A new array of `shape` filled with `fill_value`: a number or an array that broadcasts. Its type decides
    the dtype unless given.

    Raises as `empty`, and `TypeError` for complex numbers in a real dtype.

    >>> pa.full(2, True).dtype
    dtype('bool')
    """
    value = fill_value
    if (layout := structured(dtype)) is not None or isinstance(value, StructuredArray):
        return _full_records(shape, value, layout, order, device)
    if type(value) not in PYTHON_KIND:
        value = _asarray(value, device=device)
    if dtype is not None:
        kind = asdtype(dtype)
    else:
        kind = value._dtype if isinstance(value, ndarray) else DEFAULT[PYTHON_KIND[type(value)]]
    target = value.device if isinstance(value, ndarray) and device is None else device
    return _filled(_new(shape, kind, order, target), value)


def _full_records(shape: Any, value: Any, layout: Any, order: str, device: Any) -> Any:
    layout = value.__pyarray_layout__ if layout is None else layout
    result = _empty_records(shape, layout, device, order)
    result[...] = value
    return result


def _filled(a: Any, value: Any) -> Any:
    if isinstance(a, StructuredArray):
        a[...] = value
    elif a.size:
        operation("assign")(a, value)
    return a


def _like(x: Any, shape: Any, dtype: Any, order: str, device: Any) -> Any:
    x = asarray(x)
    layout = x.__pyarray_layout__ if isinstance(x, StructuredArray) and dtype is None else structured(dtype)
    if layout is not None:
        target = x.device if device is None else device
        return _empty_records(x.shape if shape is None else shape, layout, target, "F" if order == "F" else "C")
    target = x.device if device is None else get_device(device)
    result = _empty(x.shape if shape is None else shape, x._dtype if dtype is None else dtype, target)
    return lay_out(result, order, x)


@quick("empty_like")
def empty_like(
    x: ArrayLike, /, dtype: DTypeLike = None, order: str = "K", *, device: DeviceLike = None,
    shape: ShapeLike | None = None,
) -> ndarray:  # fmt: skip
    """As `empty`, with shape, dtype and device of `x` unless given. `order` is "K" (axes lie as those of
    `x`), "C", "F", or "A" ("F" where `x` is, else "C").

    >>> pa.empty_like(pa.ones(3)).shape
    (3,)
    """
    return _like(x, shape, dtype, order, device)


@quick("zeros_like")
def zeros_like(
    x: ArrayLike, /, dtype: DTypeLike = None, order: str = "K", *, device: DeviceLike = None,
    shape: ShapeLike | None = None,
) -> ndarray:  # fmt: skip
    """As `zeros`, with shape, dtype and device of `x` unless given.

    >>> pa.zeros_like(pa.ones(2)).tolist()
    [0.0, 0.0]
    """
    return _zeroed(_like(x, shape, dtype, order, device))


@quick("ones_like")
def ones_like(
    x: ArrayLike, /, dtype: DTypeLike = None, order: str = "K", *, device: DeviceLike = None,
    shape: ShapeLike | None = None,
) -> ndarray:  # fmt: skip
    """As `ones`, with shape, dtype and device of `x` unless given.

    >>> pa.ones_like(pa.zeros(2), dtype="int8").tolist()
    [1, 1]
    """
    return _filled(_like(x, shape, dtype, order, device), 1)


@quick("full_like")
def full_like(
    x: ArrayLike, /, fill_value: ArrayLike, dtype: DTypeLike = None, order: str = "K", *,
    device: DeviceLike = None, shape: ShapeLike | None = None,
) -> ndarray:  # fmt: skip
    """As `full`, with shape, dtype and device of `x` unless given.

    >>> pa.full_like(pa.zeros(2), 7).tolist()
    [7.0, 7.0]
    """
    out = _like(x, shape, dtype, order, device)
    if type(fill_value) in PYTHON_KIND or isinstance(out, StructuredArray):
        return _filled(out, fill_value)
    return _filled(out, _asarray(fill_value, device=out.device))


def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: DTypeLike = None, order: str = "C", *,
    device: DeviceLike = None,
) -> ndarray:  # fmt: skip
    """A matrix of `n_rows` by `n_cols` (as many unless given) with 1 on the diagonal `k` to the right of the
    main one, 0 elsewhere.

    The dtype is float64 unless given. Raises `ValueError` for negative sizes.

    >>> pa.eye(2, 3, k=1, dtype="int64").tolist()
    [[0, 1, 0], [0, 0, 1]]
    """
    out = _new((n_rows, n_rows if n_cols is None else n_cols), dtype, order, device)
    creation.diagonal_ones(out, operator.index(k))
    return out


def identity(n: int, dtype: DTypeLike = None, *, device: DeviceLike = None) -> ndarray:
    """The identity matrix of `n` rows: `eye(n)`.

    >>> pa.identity(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype, device=device)


def diag(x: ArrayLike, /, k: int = 0) -> ndarray:
    """The diagonal `k` of a matrix, as a copy; or the matrix that has the 1-D `x` there and 0 elsewhere.

    Raises `ValueError` for other ranks.

    >>> pa.diag(pa.asarray([1, 2])).tolist(), pa.diag(pa.eye(2)).tolist()
    ([[1, 0], [0, 2]], [1.0, 1.0])
    """
    x, k = _asarray(x), operator.index(k)
    if x.ndim == 1:
        n = x.size + abs(k)
        out = zeros((n, n), dtype=x._dtype, device=x.device)
        diagonal(out, k)[...] = x
        return out
    if x.ndim != 2:
        raise ValueError(
            f"diag() takes an array of 1 or 2 dimensions, got shape {x.shape}; index the leading axes first"
        )
    return diagonal(x, k).copy()


def diagonal(x: ndarray, k: int) -> ndarray:
    """The diagonal `k` of the last two axes, as a view."""
    rows, columns = x._shape[-2:]
    down, right = x._strides[-2:]
    count = max(min(rows + min(k, 0), columns - max(k, 0)), 0)
    offset = (k * right if k > 0 else -k * down) if count else 0
    return x._view(offset, x._shape[:-2] + (count,), x._strides[:-2] + (down + right,))


def _triangle(name: str, x: Any, k: Any, lower: bool) -> ndarray:
    x = _asarray(x)
    if x.ndim < 2:
        raise ValueError(f"{name}() takes matrices, an array of 2 or more dimensions, got shape {x.shape}")
    return creation.triangle(x, operator.index(k), lower)


@replayable
def tril(x: ArrayLike, /, k: int = 0) -> ndarray:
    """A copy of the matrices in the last two axes with 0 above diagonal `k`. Raises `ValueError` for fewer
    than 2 dimensions.

    >>> pa.tril(pa.ones((2, 2))).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return _triangle("tril", x, k, True)


@replayable
def triu(x: ArrayLike, /, k: int = 0) -> ndarray:
    """A copy of the matrices in the last two axes with 0 below diagonal `k`. Raises `ValueError` for fewer
    than 2 dimensions.

    >>> pa.triu(pa.ones((2, 2))).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return _triangle("triu", x, k, False)


def meshgrid(*arrays: ArrayLike, indexing: str = "xy") -> tuple[ndarray, ...]:
    """Coordinate arrays of the grid over 1-D `arrays`: copies whose axis n belongs to the n-th array, the
    first two exchanged for "xy".

    Raises `ValueError` for other ranks or another `indexing`, `TypeError` for dtypes without a common type.

    >>> pa.meshgrid(pa.arange(2), pa.arange(3), indexing="ij")[1].tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(): indexing is 'xy' or 'ij', got {indexing!r}")
    vectors = as_array_like(*arrays)
    for a in vectors:
        if a.ndim > 1:
            raise ValueError(f"meshgrid() takes 1-D arrays, got shape {a.shape}; ravel() it")
    if vectors:
        result_type(*vectors)
    swap = indexing == "xy" and len(vectors) > 1
    order = [1, 0, *range(2, len(vectors))] if swap else list(range(len(vectors)))
    shape = tuple(vectors[k].size for k in order)
    result = []
    for n, a in enumerate(vectors):
        axis = order.index(n)
        lone = tuple(a.size if k == axis else 1 for k in range(len(vectors)))
        lone_steps = tuple(a._strides[0] if a.ndim and k == axis else 0 for k in range(len(vectors)))
        result.append(a._view(0, shape, shapes.broadcast_strides(lone, lone_steps, shape)).copy())
    return tuple(result)
