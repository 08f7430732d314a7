"""`pad`: adds margins to arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import shapes
from ...array import empty, ndarray
from ...array_convert import asarray
from ...array_hooks import operation
from ...dtypes import complex128, float64, int64
from ...jit.replay import replayable
from ...typing import ArrayLike
from ..core.registry import FLOAT, precompiled
from ..standard import elementwise
from ..standard.creation import arange
from ..standard.indexing import take
from ..standard.statistical import max as maximum_of
from ..standard.statistical import mean
from ..standard.statistical import min as minimum_of
from .order_statistics import median

__all__ = ["pad"]

Region = tuple[slice, ...]
_BY_POSITION = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS: dict[str, Callable[..., ndarray]] = {
    "maximum": maximum_of,
    "mean": mean,
    "median": median,
    "minimum": minimum_of,
}
# the further arguments that a mode has
_OPTIONS = {
    "constant": ("constant_values",),
    "linear_ramp": ("end_values",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    **dict.fromkeys(_STATISTICS, ("stat_length",)),
    **dict.fromkeys(("edge", "wrap", "empty"), ()),
}


@precompiled(FLOAT, "pad(m, 1)", "pad(a, 3)")
@replayable
def pad(x: ArrayLike, pad_width: Any, mode: str = "constant", **options: Any) -> ndarray:
    """A copy of `x` with margins: `pad_width` is a number, a pair (before, after), a pair per axis, or a dict
    of pairs by axis.

    `mode` says what is in them: "constant" (`constant_values`, 0), "edge", "linear_ramp" (to `end_values`,
    0), "maximum", "mean", "median", "minimum" (of `stat_length` elements at that end, all for None),
    "reflect" and "symmetric" (`reflect_type` "even" or "odd"), "wrap", or "empty" (anything). Later axes
    continue the margins of earlier ones. Raises `ValueError` for negative widths, another mode, and an empty
    axis that nothing can be taken from; `TypeError` for an argument that the mode doesn't have.

    >>> pa.pad([1, 2, 3], (1, 2), mode="edge").tolist()
    [1, 1, 2, 3, 3, 3]
    """
    x = asarray(x)
    _check_options(mode, options)
    widths = _pairs("pad_width", pad_width, x.ndim)
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError(f"pad(): widths are 0 or more, got {pad_width!r}")
    bare = not x.size and mode not in ("constant", "empty")
    for axis, pair in enumerate(widths):
        if bare and any(pair) and not x.shape[axis]:
            raise ValueError(f"pad(): axis {axis} is empty, so that mode {mode!r} has nothing to take")
    out = empty(tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)), x._dtype, x.device)
    if bare:
        return out
    inner = tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True))
    if x.size:
        operation("assign")(out[(*inner, ...)], x)
    for axis, (before, after) in enumerate(widths):
        if (before or after) and mode != "empty":
            # after this axis only the middle has been filled
            around = (slice(None),) * axis, inner[axis + 1 :]
            _pad_axis(out, axis, inner[axis], around, mode, options)
    return out


def _check_options(mode: str, options: dict[str, Any]) -> None:
    if not isinstance(mode, str) or mode not in _OPTIONS:
        raise ValueError(f"pad(): mode is one of {', '.join(sorted(_OPTIONS))}, got {mode!r}")
    for name in options:
        if name not in _OPTIONS[mode]:
            legal = ", ".join(_OPTIONS[mode]) or "no further argument"
            raise TypeError(f"pad(): mode {mode!r} takes {legal}, got {name}")


def _pairs(name: str, value: Any, ndim: int) -> list[tuple[int, int]]:
    """A pair of integers per axis."""
    if isinstance(value, dict):
        pairs: list[Any] = [(0, 0)] * ndim
        for axis, pair in value.items():
            pairs[shapes.normalize_axis(axis, ndim)] = pair if isinstance(pair, (tuple, list)) else (pair, pair)
        value = pairs
    widths = _per_axis(name, value, ndim)
    if widths.size and widths.dtype.kind not in "iu":
        raise TypeError(f"pad(): {name} holds integers, got {value!r}")
    return [(operator.index(a), operator.index(b)) for a, b in widths.tolist()]


def _per_axis(name: str, value: Any, ndim: int) -> np.ndarray[Any, Any]:
    """What is given for all axes, for both ends, or for each, as a pair per axis."""
    values = np.asarray(value)
    try:
        return np.broadcast_to(values, (ndim, 2))
    except ValueError:
        raise ValueError(
            f"pad(): {name} is a number, a pair, or a pair for each of {ndim} axes, got shape {values.shape}"
        ) from None


def _pad_axis(
    out: ndarray, axis: int, middle: slice, around: tuple[Region, Region], mode: str, options: dict[str, Any]
) -> None:
    def part(start: int, stop: int) -> ndarray:
        return out[(*around[0], slice(start, stop), *around[1], ...)]

    first, last, end = middle.start, middle.stop, out.shape[axis]
    if mode in _BY_POSITION and (options.get("reflect_type", "even") == "even" or last - first == 1):
        width = (first, end - last)
        indices = np.pad(np.arange(last - first), width, mode=mode)  # type: ignore[call-overload]
        for start, stop in ((0, first), (last, end)):
            if start < stop:
                index = asarray(indices[start:stop], device=out.device)
                part(start, stop)[...] = take(part(first, last), index, axis=axis)
    elif mode in _BY_POSITION:
        _pad_odd(part, axis, middle, end, mode, options)
    elif mode in _STATISTICS:
        lengths = options.get("stat_length")
        n = last - first
        counts = (n, n) if lengths is None else _pairs("stat_length", lengths, out.ndim)[axis]
        for (start, stop), count, front in (((0, first), counts[0], True), ((last, end), counts[1], False)):
            if start < stop:
                count = min(count, n)
                source = part(first, first + count) if front else part(last - count, last)
                part(start, stop)[...] = _statistic(mode, source, axis)
    else:
        name = "constant_values" if mode == "constant" else "end_values"
        values = _per_axis(name, options.get(name, 0), out.ndim)[axis].tolist()
        for (start, stop), value, front in (((0, first), values[0], True), ((last, end), values[1], False)):
            if start < stop and mode == "constant":
                part(start, stop)[...] = value
            elif start < stop:
                edge = part(first, first + 1) if front else part(last - 1, last)
                part(start, stop)[...] = _ramp(edge, value, stop - start, axis, front)


def _statistic(mode: str, source: ndarray, axis: int) -> ndarray:
    if not source.shape[axis]:
        raise ValueError(f"pad(): stat_length is 1 or more for mode {mode!r}")
    values = _STATISTICS[mode](source, axis=axis, keepdims=True)
    round_to_int = source._dtype.kind in "iu" and values._dtype.kind == "f"
    return elementwise.round(values) if round_to_int else values


def _ramp(edge: ndarray, value: Any, count: int, axis: int, front: bool) -> ndarray:
    """From `value`, outermost, to just before `edge`; rounded down for integers, as NumPy's."""
    kind = complex128 if edge._dtype.kind == "c" else float64
    steps = arange(count, dtype=int64, device=edge.device)
    steps = steps.reshape(shapes.column_shape(axis, edge.ndim)).astype(kind)
    step = elementwise.divide(elementwise.subtract(edge.astype(kind), value), count)
    ramp = elementwise.add(elementwise.multiply(steps, step), value)
    if edge._dtype.kind in "iu":
        ramp = elementwise.floor(ramp)
    if not front:
        ramp = ramp[(slice(None),) * axis + (slice(None, None, -1),)]
    return ramp.astype(edge._dtype)


def _pad_odd(
    part: Callable[[int, int], ndarray],
    axis: int,
    middle: slice,
    end: int,
    mode: str,
    options: dict[str, Any],
) -> None:
    """A margin of odd reflection: twice the edge minus the mirrored elements, repeated as often as needed."""
    if options["reflect_type"] != "odd":
        raise ValueError(f"pad(): reflect_type is 'even' or 'odd', got {options['reflect_type']!r}")
    turned = (slice(None),) * axis + (slice(None, None, -1),)
    gap = mode == "reflect"  # the edge itself is not repeated
    period = middle.stop - middle.start - gap
    low, high = middle.start, middle.stop
    while low > 0:
        n = min(period, low)
        edge, source = part(low, low + 1), part(low + gap, low + gap + n)
        part(low - n, low)[...] = elementwise.subtract(elementwise.multiply(edge, 2), source[turned])
        low -= n
    while high < end:
        n = min(period, end - high)
        edge, source = part(high - 1, high), part(high - gap - n, high - gap)
        part(high, high + n)[...] = elementwise.subtract(elementwise.multiply(edge, 2), source[turned])
        high += n
