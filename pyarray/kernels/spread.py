"""Sums of squared distances from given means: what variances are made of."""

from __future__ import annotations

import functools
import math
from typing import Any

from .. import shapes
from ..array import ndarray
from ..dtypes import DType, float64
from ..jit.kernel import Kernel, from_text, func
from ..lang.markers import known, ndrange, unordered
from .map import MapOp, launch_map
from .reduce import SUM, on_grid, pieces_of, reduce_into
from .scratch import scratch

CHUNK = 256  # elements in 16 accumulators, which are added up before they grow
GRID_CHUNK = 1 << 13  # the same for a block of a grid


@func
def _real_square(x: Any, mean: Any) -> Any:
    return (x - mean) * (x - mean)


@func
def _complex_square(x: Any, mean: Any) -> Any:
    return known.real(x - mean) * known.real(x - mean) + known.imag(x - mean) * known.imag(x - mean)


_REAL = MapOp("squared_distance", _real_square, raw=(0, 1))
_COMPLEX = MapOp("squared_distance", _complex_square, raw=(0, 1))


def squares_into(out: ndarray, x: ndarray, mean: ndarray, axes: tuple[int, ...], kept: DType) -> None:
    """`out` = sum of |x - mean|² over `axes`; `mean`, in float64 or complex128, has size 1 along them, `out`,
    in float64, lacks them. Squares may be kept in the floating type `kept`."""
    if not x._size:
        out[...] = 0
        return
    keep = [k for k in range(x.ndim) if k not in axes]
    inner, (steps,) = shapes.collapse([x._shape[k] for k in axes], [x._strides[k] for k in axes])
    if x._dtype.kind == "c" or len(inner) > 1 or (inner and steps[0] != x.itemsize):
        apart = scratch(x._shape, kept, x.device)
        launch_map(_COMPLEX if x._dtype.kind == "c" else _REAL, float64, apart, (x, mean), fresh=True)
        reduce_into(SUM, out, apart, axes, kept)
        return
    lead, (x_lead, mean_lead) = shapes.collapse(
        [x._shape[k] for k in keep], [x._strides[k] for k in keep], [mean._strides[k] for k in keep]
    )
    n = inner[0] if inner else 1
    grid = on_grid(x)
    pieces = pieces_of(n, math.prod(lead), x._size, grid)
    partial = scratch((*lead, pieces), float64, x.device)
    source = x._view(0, (*lead, n), (*x_lead, x.itemsize))
    kernel = _squares_kernel(len(lead), GRID_CHUNK if grid else CHUNK)
    kernel(partial, source, mean._view(0, lead, mean_lead))
    target = partial.reshape((*(x._shape[k] for k in keep), pieces))
    reduce_into(SUM, out, target, (target.ndim - 1,), float64)


def in_one_pass(x: ndarray, axes: tuple[int, ...]) -> bool:
    """Whether `spread_into` takes `x`: floats on a grid, narrow enough for float64 to do without a mean,
    dense along `axes`."""
    if not on_grid(x) or x._dtype.kind != "f" or x.itemsize > 4 or not x._size:
        return False
    inner, (steps,) = shapes.collapse([x._shape[k] for k in axes], [x._strides[k] for k in axes])
    return len(inner) == 1 and steps[0] == x.itemsize


def spread_into(out: ndarray, x: ndarray, axes: tuple[int, ...]) -> None:
    """`out` = sum of |x - mean|² over `axes`, for what `in_one_pass` takes; `out`, in float64, lacks them.

    Distances are those from the first element, s: sum (x - s)² - (sum (x - s))² / n. What that loses is at
    most (mean - s)² / variance, and so n, times the last place of a float64, far below that of a float32.
    """
    keep = [k for k in range(x.ndim) if k not in axes]
    n = math.prod(x._shape[k] for k in axes)
    lead, (x_lead, out_lead) = shapes.collapse(
        [x._shape[k] for k in keep], [x._strides[k] for k in keep], out._strides
    )
    pieces = pieces_of(n, math.prod(lead), x._size, True)
    partial = scratch((*lead, pieces, 2), float64, x.device)
    source = x._view(0, (*lead, n), (*x_lead, x.itemsize))
    _spread_kernel(len(lead))(out._view(0, lead, out_lead), partial, source)


@functools.cache
def _spread_kernel(rank: int) -> Kernel:
    ks = [f"k{n}" for n in range(rank)]
    before = "".join(f"{k}, " for k in ks)
    sizes = [f"partial.shape[{n}]" for n in range(rank + 1)]
    lines = f"for {', '.join(ks)} in ndrange({', '.join(sizes[:-1])}):" if rank else "for once in range(1):"
    text = f"""def spread(out, partial, x):
    step = (x.shape[{rank}] + partial.shape[{rank}] - 1) // partial.shape[{rank}]
    for {before}piece in ndrange({", ".join(sizes)}):
        start = float64(x[{before}0])
        first, second = float64(0), float64(0)
        for t in unordered(range(piece * step, min(piece * step + step, x.shape[{rank}]))):
            far = float64(x[{before}t]) - start
            first = first + far
            second = second + far * far
        partial[{before}piece, 0] = first
        partial[{before}piece, 1] = second
    {lines}
        first, second = float64(0), float64(0)
        for piece in unordered(range(partial.shape[{rank}])):
            first = first + partial[{before}piece, 0]
            second = second + partial[{before}piece, 1]
        rest = second - first * first / float64(x.shape[{rank}])
        out[{", ".join(ks) or "()"}] = float64(0) if rest < float64(0) else rest
"""
    return from_text("spread", text, {"ndrange": ndrange, "unordered": unordered, "float64": float64})


@functools.cache
def _squares_kernel(rank: int, chunk: int) -> Kernel:
    ks = [f"k{n}" for n in range(rank)]
    sizes = ", ".join(f"out.shape[{n}]" for n in range(rank + 1))
    distance = f"(float64(x[{', '.join([*ks, 't'])}]) - middle)"
    text = f"""def sum_of_squares(out, x, mean):
    step = (x.shape[{rank}] + out.shape[{rank}] - 1) // out.shape[{rank}]
    for {", ".join([*ks, "piece"])} in ndrange({sizes}):
        middle = mean[{", ".join(ks) or "()"}]
        high = min(piece * step + step, x.shape[{rank}])
        total = float64(0)
        for c in range(piece * step, high, {chunk}):
            part = float64(0)
            for t in unordered(range(c, min(c + {chunk}, high))):
                part = part + {distance} * {distance}
            total = total + part
        out[{", ".join([*ks, "piece"])}] = total
"""
    return from_text("sum_of_squares", text, {"ndrange": ndrange, "unordered": unordered, "float64": float64})
