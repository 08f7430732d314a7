"""Indexing functions."""

from __future__ import annotations

from typing import Any

from ... import shapes
from ...array import ndarray
from ...dtypes import int64
from ...jit.replay import replayable
from ...kernels.index import gather
from ...typing import ArrayLike
from ..core.registry import ALL, method, precompiled
from ..core.ufunc import as_array_like, axis_or_flat, store_out
from .elementwise import clip, remainder

__all__ = ["take", "take_along_axis"]


@precompiled(ALL, "take(a, i)", "take(m, i[:8] % 30, axis=1)")
@method
@replayable
def take(
    x: ArrayLike,
    indices: ArrayLike,
    /,
    axis: int | None = None,
    out: ndarray | None = None,
    mode: str = "raise",
) -> ndarray:
    """Elements of `x` at integer `indices` (of any shape, negative ones count from the end) along `axis`;
    None flattens `x`.

    The result has the shape of `x` with that of `indices` in the place of the axis. Of indices out of range,
    `mode` "raise" raises `IndexError` (on a GPU in debug mode; else they are clamped), "wrap" counts on
    around the end, and "clip" takes the nearest, 0 for negative ones. Raises `IndexError` for indices that
    are no integers, `AxisError` for the axis.

    >>> pa.take(pa.asarray([[1, 2], [3, 4]]), pa.asarray([1, 0, 1]), axis=1).tolist()
    [[2, 1, 2], [4, 3, 4]]
    """
    x, index = as_array_like(x, indices)
    x, k = axis_or_flat(x, axis)
    if index._dtype.kind not in "iu":
        if index.size:
            raise IndexError(f"take(): indices are integers, got {index._dtype}; for a mask write x[mask]")
        index = index.astype("int64")
    index = within("take", index, x._shape[k], mode)
    return store_out("take", gather.take(x, (slice(None),) * k + (index,)), out)


def within(name: str, index: Any, size: int, mode: str) -> Any:
    """Indices of an axis of `size` with those out of range as `mode` says."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"{name}(): mode is raise, wrap or clip, got {mode!r}")
    if mode == "raise" or not size:
        return index
    # as int64, since a narrow type may not hold the size
    index = index.astype(int64, copy=False) if index._dtype.kind == "i" else index
    return clip(index, 0, size - 1) if mode == "clip" else remainder(index, size)


@replayable
def take_along_axis(x: ArrayLike, indices: ArrayLike, /, axis: int = -1) -> ndarray:
    """Elements of `x` at `indices` along `axis`, where the other axes run along: what `argmax` and `argsort`
    give can be passed.

    `indices` has as many axes as `x`, and the others broadcast. Raises as `take`, and `ValueError` for other
    shapes.

    >>> x = pa.asarray([[3, 1], [2, 4]])
    >>> pa.take_along_axis(x, pa.asarray([[1], [0]]), axis=1).tolist()
    [[1], [2]]
    """
    x, index = as_array_like(x, indices)
    return gather.take_along_axis(x, index, shapes.normalize_axis(axis, x.ndim))
