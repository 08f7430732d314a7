"""Manipulation functions: views of other shapes wherever NumPy gives views, joined and repeated arrays."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import shapes
from ...array import empty, ndarray
from ...array_convert import asarray, asnumpy
from ...array_hooks import Tracer, on_several_devices, operation
from ...array_host import need_data
from ...dtypes import asdtype, result_type
from ...jit.replay import replayable
from ...kernels.index.concatenate import can_concatenate, launch_concat
from ...keywords import quick
from ...typing import ArrayLike, AxisLike, DTypeLike, ShapeLike
from ..core.registry import ALL, REAL, method, precompiled
from ..core.ufunc import as_array_like, axis_or_flat

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "concatenate", "expand_dims", "flip",
    "moveaxis", "permute_dims", "ravel", "repeat", "reshape", "roll", "squeeze", "stack", "swapaxes", "tile",
    "transpose", "unstack",
]  # fmt: skip


def _at(axis: int, item: Any) -> tuple[Any, ...]:
    """Index that applies `item` to one axis and leaves the others whole."""
    return (slice(None),) * axis + (item,)


# ---- broadcasting


def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """The shape that all of the shapes broadcast to. Raises `ValueError` naming all of them where they don't.

    >>> pa.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return shapes.broadcast_shapes(*map(shapes.resolve_shape, args))


def broadcast_to(x: ArrayLike, /, shape: ShapeLike) -> ndarray:
    """`x` as an array of `shape`: a read-only view with a stride of 0 along repeated axes. Raises
    `ValueError` where it doesn't fit, and for more elements than can be counted.

    >>> pa.broadcast_to(pa.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    x = asarray(x)
    target = shapes.resolve_shape(shape)
    if isinstance(x, Tracer):
        return x._broadcast(shape)
    if (count := math.prod(target)) >= 1 << 63:
        raise ValueError(f"broadcast_to(): {target} has {count} elements, and an array at most 2**63 - 1")
    view: ndarray = x._view(0, target, shapes.broadcast_strides(x._shape, x._strides, target))
    view.setflags(write=False)
    return view


def broadcast_arrays(*arrays: ArrayLike) -> tuple[ndarray, ...]:
    """The arrays broadcast together, as read-only views. Raises `ValueError` where they don't fit.

    >>> [a.shape for a in pa.broadcast_arrays(pa.ones((3, 1)), pa.ones(4))]
    [(3, 4), (3, 4)]
    """
    operands = as_array_like(*arrays)
    target = shapes.broadcast_shapes(*(a._shape for a in operands))
    return tuple(broadcast_to(a, target) for a in operands)


# ---- views


@quick("reshape")
def reshape(x: ArrayLike, /, shape: ShapeLike, order: str = "C", *, copy: bool | None = None) -> ndarray:
    """The same elements in another shape, one size of which may be -1: a view where strides allow, else a
    copy. `order` is the one in which elements are read and written: "C", "F" or "A" (as they lie).

    `copy=True` always copies, `copy=False` raises `ValueError` where a copy is needed, as do sizes that don't
    fit.

    >>> pa.reshape(pa.arange(6), (2, -1)).shape
    (2, 3)
    """
    return asarray(x).reshape(shape, order=order, copy=copy)


@quick("ravel")
def ravel(x: ArrayLike, /, order: str = "C") -> ndarray:
    """All elements as a contiguous 1-D array: a view where they follow each other in memory, else a copy.
    `order` is "C" (the last axis fastest), "F" (the first), "A" ("F" where that alone is a view) or "K" (as
    they lie in memory).

    >>> pa.ravel(pa.ones((2, 3))).shape
    (6,)
    """
    return asarray(x).ravel(order)


@quick("expand_dims")
def expand_dims(x: ArrayLike, /, axis: AxisLike = 0) -> ndarray:
    """View with new axes of size 1 at `axis` (an int or a tuple of ints), counted in the result.

    Raises `AxisError` (an `IndexError` and a `ValueError`) for an axis out of range.

    >>> pa.expand_dims(pa.ones(3), axis=-1).shape
    (3, 1)
    """
    x = asarray(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    new = shapes.normalize_axes(axis, x.ndim + count)
    return x[tuple(None if k in new else slice(None) for k in range(x.ndim + count))]


@quick("squeeze")
def squeeze(x: ArrayLike, /, axis: AxisLike = None) -> ndarray:
    """View without the axes of size 1, or without those named. Raises `ValueError` when one of them has
    another size.

    >>> pa.squeeze(pa.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    return asarray(x).squeeze(axis)


@quick("permute_dims")
def permute_dims(x: ArrayLike, /, axes: Sequence[int]) -> ndarray:
    """View with the axes in the order `axes`. Raises `ValueError` unless each axis comes once.

    >>> pa.permute_dims(pa.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return asarray(x).transpose(tuple(axes))


@quick("transpose")
def transpose(x: ArrayLike, /, axes: AxisLike = None) -> ndarray:
    """View with the axes in the order `axes`, reversed without one.

    >>> pa.transpose(pa.ones((2, 3))).shape
    (3, 2)
    """
    return asarray(x).transpose(axes)


@quick("swapaxes")
def swapaxes(x: ArrayLike, /, axis1: int, axis2: int) -> ndarray:
    """View with two axes exchanged.

    >>> pa.swapaxes(pa.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return asarray(x).swapaxes(axis1, axis2)


def moveaxis(x: ArrayLike, source: AxisLike, destination: AxisLike, /) -> ndarray:
    """View with the axes `source` at the places `destination`; the others keep their order.

    Raises `AxisError` for an axis out of range, `ValueError` for numbers of axes that differ or an axis named
    twice.

    >>> pa.moveaxis(pa.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = asarray(x)
    moved, targets = (shapes.normalize_axes(axes, x.ndim) for axes in (source, destination))
    if len(moved) != len(targets):
        raise ValueError(f"moveaxis() needs a place for each axis, got axes {source!r} and places {destination!r}")
    order = [k for k in range(x.ndim) if k not in moved]
    for target, axis in sorted(zip(targets, moved, strict=True)):
        order.insert(target, axis)
    return permute_dims(x, order)


def flip(x: ArrayLike, /, axis: AxisLike = None) -> ndarray:
    """View with the elements in reverse order along `axis` (None: all, an int, or a tuple of ints).

    >>> pa.flip(pa.arange(3)).tolist()
    [2, 1, 0]
    """
    x = asarray(x)
    axes = shapes.normalize_axes(axis, x.ndim)
    return x[(*(slice(None, None, -1) if k in axes else slice(None) for k in range(x.ndim)), ...)]


def unstack(x: ArrayLike, /, axis: int = 0) -> tuple[ndarray, ...]:
    """The slices of `x` along `axis`, which they lack, as views. Raises `ValueError` for a 0-d array.

    >>> [a.tolist() for a in pa.unstack(pa.asarray([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
    """
    x = asarray(x)
    k = shapes.normalize_axis(axis, x.ndim)
    return tuple(x[_at(k, n)] for n in range(x._shape[k]))


# ---- joining


def _arrays(name: str, sequence: Any) -> list[ndarray]:
    if isinstance(sequence, ndarray):
        operands = list(sequence)
    elif isinstance(sequence, (tuple, list)):
        operands = as_array_like(*sequence)
    else:
        raise TypeError(f"{name}() takes a sequence of arrays, got {type(sequence).__name__}; write {name}([a, b])")
    if not operands:
        raise ValueError(f"{name}() needs at least one array, got none")
    if any(a.device is not operands[0].device for a in operands):
        raise on_several_devices(name, ((f"arrays[{n}]", a) for n, a in enumerate(operands)))
    return operands


@precompiled(ALL, "concat([a, b])", "concat([m, w], axis=1)")
@replayable
def concat(arrays: Sequence[ArrayLike] | ndarray, /, axis: AxisLike = 0, *, dtype: DTypeLike = None) -> ndarray:
    """The arrays one after the other along `axis`, flattened first for None; in their common dtype unless one
    is given.

    Raises `ValueError` for sizes that differ along another axis, for ranks that differ or are 0, and for no
    array.

    >>> pa.concat([pa.asarray([1, 2]), pa.asarray([3.5])]).tolist()
    [1.0, 2.0, 3.5]
    """
    operands = _arrays("concat", arrays)
    kind = result_type(*operands) if dtype is None else asdtype(dtype)
    if axis is None:
        operands, axis = [a if a.ndim == 1 else a.reshape(a.size) for a in operands], 0
    first = operands[0]._shape
    if not first:
        raise ValueError("concat() can't join 0-d arrays; use stack, or axis=None")
    k = shapes.normalize_axis(axis, len(first))
    for n, a in enumerate(operands):
        if a.ndim != len(first) or a._shape[:k] + a._shape[k + 1 :] != first[:k] + first[k + 1 :]:
            raise ValueError(
                f"concat() needs equal shapes off axis {k}: array 0 has shape {first} and array {n} has {a._shape}"
            )
    out = empty(first[:k] + (sum(a._shape[k] for a in operands),) + first[k + 1 :], kind, operands[0].device)
    if can_concatenate(out, operands, k):
        launch_concat(out, operands)
        return out
    start = 0
    for a in operands:
        if a.size:
            operation("assign")(out[_at(k, slice(start, start + a._shape[k]))], a)
        start += a._shape[k]
    return out


concatenate = concat


@precompiled(ALL, "stack([a, b])")
@replayable
def stack(arrays: Sequence[ArrayLike] | ndarray, /, axis: int = 0) -> ndarray:
    """The arrays, of one shape, side by side along a new axis, in their common dtype. Raises `ValueError` for
    other shapes or no array.

    >>> pa.stack([pa.asarray([1, 2]), pa.asarray([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    operands = _arrays("stack", arrays)
    first = operands[0]._shape
    for n, a in enumerate(operands):
        if a._shape != first:
            raise ValueError(
                f"stack() needs equal shapes: array 0 has shape {first} and array {n} has {a._shape}; "
                "broadcast them first"
            )
    k = shapes.normalize_axis(axis, len(first) + 1)
    return concat([a[_at(k, None)] for a in operands], axis=k)


# ---- repeating


@precompiled(REAL, "repeat(a, 2)")
@method
@replayable
def repeat(x: ArrayLike, repeats: ArrayLike, /, axis: AxisLike = None) -> ndarray:
    """Each element of `x` along `axis` `repeats` times: an int, or one per element. `axis=None` flattens.

    Counts are read from the device when they are in an array, since they decide the shape. Raises
    `ValueError` for negative counts or another number of them, `TypeError` for what are no integers.

    >>> pa.repeat(pa.asarray([1, 2]), 2).tolist(), pa.repeat(pa.asarray([1, 2]), pa.asarray([0, 3])).tolist()
    ([1, 1, 2, 2], [2, 2, 2])
    """
    x, k = axis_or_flat(asarray(x), axis)
    counts = _counts(repeats, x._shape[k])
    if isinstance(counts, int):
        sizes = x._shape[: k + 1] + (counts,) + x._shape[k + 1 :]
        out = empty(sizes, x._dtype, x.device)
        if out.size:
            operation("assign")(out, x[_at(k + 1, None)])
        return out.reshape(x._shape[:k] + (x._shape[k] * counts,) + x._shape[k + 1 :])
    return operation("take")(x, _at(k, np.repeat(np.arange(x._shape[k]), counts)))


def _counts(repeats: Any, size: int) -> Any:
    """One count as an int, or a NumPy array of `size` counts."""
    if isinstance(repeats, ndarray):
        need_data(repeats, "the size of what repeat() returns")
    counts = asnumpy(repeats) if not isinstance(repeats, int) else np.asarray(repeats)
    if counts.dtype.kind not in "iu" and counts.size:
        raise TypeError(f"repeat(): counts are integers, got {counts.dtype}")
    if counts.ndim > 1 or (counts.ndim == 1 and counts.size not in (1, size)):
        raise ValueError(f"repeat() takes one count, or one for each of the {size} elements, got shape {counts.shape}")
    if counts.size and counts.min() < 0:
        raise ValueError(f"repeat(): counts are 0 or more, got {counts.min()}")
    return int(counts.item()) if counts.size == 1 and counts.ndim < 2 else counts.astype(np.int64)


@precompiled(REAL, "tile(a, (2,))")
@replayable
def tile(x: ArrayLike, repetitions: ShapeLike, /) -> ndarray:
    """Copies of `x` side by side, `repetitions` times along each axis; the shorter of shape and repetitions
    is led by ones.

    Raises `ValueError` for a negative count, `TypeError` for what is no integer.

    >>> pa.tile(pa.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x = asarray(x)
    times = shapes.resolve_shape(repetitions)
    ndim = max(x.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    sizes = (1,) * (ndim - x.ndim) + x._shape
    out = empty(tuple(itertools.chain(*zip(times, sizes, strict=True))), x._dtype, x.device)
    if out.size:
        source = x._view(0, sizes, (0,) * (ndim - x.ndim) + x._strides)
        operation("assign")(out, source[tuple(itertools.chain(*((None, slice(None)) for _ in sizes)))])
    return out.reshape(tuple(map(operator.mul, times, sizes)))


@precompiled(REAL, "roll(a, 7)")
@replayable
def roll(x: ArrayLike, /, shift: AxisLike, axis: AxisLike = None) -> ndarray:
    """A copy whose elements are moved on by `shift` places along `axis`, around the end; `axis=None` rolls
    the flattened array.

    Several axes take a shift each, or share one; an axis named twice is rolled twice. Raises `ValueError` for
    numbers of shifts and axes that differ, `AxisError` for an axis out of range.

    >>> pa.roll(pa.arange(4), 1).tolist()
    [3, 0, 1, 2]
    """
    x = asarray(x)
    if axis is None:
        return roll(x.reshape(x.size), shift, axis=0).reshape(x._shape)
    axes: list[Any] = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    steps: list[Any] = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    if len(steps) == 1:
        steps *= len(axes)
    elif len(axes) == 1:
        axes *= len(steps)
    if len(steps) != len(axes):
        raise ValueError(
            f"roll() takes a shift for each axis, or one for all, got {len(steps)} shifts for {len(axes)} axes"
        )
    total = [0] * x.ndim
    for k, step in zip(axes, steps, strict=True):
        total[shapes.normalize_axis(k, x.ndim)] += operator.index(step)
    out = empty(x._shape, x._dtype, x.device)
    if out.size:
        for parts in itertools.product(*map(_halves, total, x._shape)):
            target, source = (tuple(part[n] for part in parts) for n in (0, 1))
            operation("assign")(out[(*target, ...)], x[(*source, ...)])
    return out


# A function of its arguments alone.
@functools.lru_cache(maxsize=256)
def _halves(shift: int, size: int) -> tuple[tuple[slice, slice], ...]:
    """(where to, where from) of the one or two runs that move together along an axis."""
    shift %= size
    if not shift:
        return ((slice(None), slice(None)),)
    return (slice(shift, None), slice(None, -shift)), (slice(None, shift), slice(-shift, None))
