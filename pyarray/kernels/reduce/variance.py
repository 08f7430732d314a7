"""Sums of squared distances from given means: what variances are made of."""

from __future__ import annotations

import functools
import math
from typing import Any

from ... import shapes
from ...array import ndarray
from ...dtypes import DType, float64
from ...jit.kernel import Kernel, from_text, func
from ...lang.markers import kernel_math as k
from ...lang.markers import ndrange, unordered
from ..elementwise.elementwise import MapOp, launch_map
from ..workspace import scratch
from .reduce import SUM, on_grid, pieces_of, reduce_into

CHUNK = 256  # elements in 16 accumulators, which are added up before they grow


@func
def _real_square(x: Any, mean: Any) -> Any:
    return (x - mean) * (x - mean)


@func
def _complex_square(x: Any, mean: Any) -> Any:
    return k.real(x - mean) * k.real(x - mean) + k.imag(x - mean) * k.imag(x - mean)


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
    pieces = pieces_of(n, math.prod(lead), x._size, on_grid(x))
    partial = scratch((*lead, pieces), float64, x.device)
    source = x._view(0, (*lead, n), (*x_lead, x.itemsize))
    _squares_kernel(len(lead))(partial, source, mean._view(0, lead, mean_lead))
    target = partial.reshape((*(x._shape[k] for k in keep), pieces))
    reduce_into(SUM, out, target, (target.ndim - 1,), float64)


# The rank is all that differs in the text; dtypes are in its variants' keys.
@functools.cache
def _squares_kernel(rank: int) -> Kernel:
    ks = [f"k{n}" for n in range(rank)]
    sizes = ", ".join(f"out.shape[{n}]" for n in range(rank + 1))
    distance = f"(float64(x[{', '.join([*ks, 't'])}]) - middle)"
    text = f"""def sum_of_squares(out, x, mean):
    step = (x.shape[{rank}] + out.shape[{rank}] - 1) // out.shape[{rank}]
    for {", ".join([*ks, "piece"])} in ndrange({sizes}):
        middle = mean[{", ".join(ks) or "()"}]
        high = min(piece * step + step, x.shape[{rank}])
        total = float64(0)
        for c in range(piece * step, high, {CHUNK}):
            part = float64(0)
            for t in unordered(range(c, min(c + {CHUNK}, high))):
                part = part + {distance} * {distance}
            total = total + part
        out[{", ".join([*ks, "piece"])}] = total
"""
    return from_text("sum_of_squares", text, {"ndrange": ndrange, "unordered": unordered, "float64": float64})
