"""Views by shape and strides: NumPy's `lib.stride_tricks`, with bounds."""

from __future__ import annotations

import math
import operator
from typing import Any

from .. import shapes
from ..array import ndarray
from ..array_convert import asarray
from ..typing import ArrayLike, AxisLike, ShapeLike

__all__ = ["as_strided", "sliding_window_view"]


def as_strided(
    x: ArrayLike,
    /,
    shape: ShapeLike | None = None,
    strides: ShapeLike | None = None,
    *,
    writeable: bool = True,
) -> ndarray:
    """The memory of `x` from its first element on as an array of `shape` and `strides` (bytes), which are
    those of `x` unless given. It is read-only where elements may stand in several places.

    Raises `ValueError` for elements outside the memory that `x` is a part of, for strides that leave elements
    unaligned, for more of them than can be counted, and for numbers of sizes and strides that differ.

    >>> as_strided(pa.arange(4), (2, 3), (8, 8)).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    x = asarray(x)
    sizes = x._shape if shape is None else shapes.resolve_shape(shape)
    steps = x._strides if strides is None else _integers(strides)
    if len(sizes) != len(steps):
        raise ValueError(f"as_strided() takes a stride for each axis, got shape {sizes} and strides {steps}")
    if (count := math.prod(sizes)) >= 1 << 63:
        raise ValueError(f"as_strided(): {sizes} has {count} elements, and an array at most 2**63 - 1")
    if any(step % x._dtype.numpy.alignment for step in steps):
        raise ValueError(f"as_strided(): strides {steps} leave elements of {x._dtype} unaligned")
    low, high = shapes.byte_bounds(sizes, steps, x._dtype.itemsize)
    start = x._ptr - x._buffer.ptr
    if shapes.size(sizes) and (start + low < 0 or start + high > x._buffer.nbytes):
        raise ValueError(
            f"as_strided(): shape {sizes} and strides {steps} reach from byte {start + low} to "
            f"{start + high} of memory of {x._buffer.nbytes} bytes"
        )
    view: ndarray = x._view(0, sizes, steps)
    if view._writeable and (not writeable or _may_repeat(sizes, steps, x._dtype.itemsize)):
        view.setflags(write=False)
    return view


def _integers(strides: Any) -> tuple[int, ...]:
    sequence = strides if isinstance(strides, (tuple, list)) else (strides,)
    return tuple(map(operator.index, sequence))


def _may_repeat(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether bytes may belong to several elements: unless each axis steps over all that the shorter steps
    reach."""
    extent = itemsize
    for step, n in sorted((abs(step), n) for n, step in zip(shape, strides, strict=True) if n > 1):
        if step < extent:
            return True
        extent += (n - 1) * step
    return False


def sliding_window_view(
    x: ArrayLike, /, window_shape: ShapeLike, axis: AxisLike = None, *, writeable: bool = False
) -> ndarray:
    """All windows of `window_shape` along `axis` (None: all axes, an int or a tuple, which may name one
    several times), as a view: axes of the places first, then those of a window.

    Raises `ValueError` for a window larger than the array, for numbers of sizes and axes that differ, and for
    `writeable` windows that overlap.

    >>> sliding_window_view(pa.arange(5), 3).sum(axis=-1).tolist()
    [3, 6, 9]
    """
    x = asarray(x)
    window = shapes.resolve_shape(window_shape)
    sequence = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(range(x.ndim)) if axis is None else tuple(shapes.normalize_axis(k, x.ndim) for k in sequence)
    if len(axes) != len(window):
        raise ValueError(f"sliding_window_view() takes a window's size for each axis, got {window} for axes {axes}")
    window_counts = list(x._shape)
    for k, n in zip(axes, window, strict=True):
        window_counts[k] -= n - 1
        if window_counts[k] < 1:
            raise ValueError(f"sliding_window_view(): a window of {window} is larger than an array of shape {x._shape}")
    steps = x._strides + tuple(x._strides[k] for k in axes)
    view = as_strided(x, (*window_counts, *window), steps, writeable=writeable)
    if writeable and not view._writeable:
        raise ValueError("sliding_window_view(): windows overlap, or x is read-only; assign to a copy")
    return view
