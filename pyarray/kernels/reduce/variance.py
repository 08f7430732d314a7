"""Sums of squared deviations from the mean, of which variances are made."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ... import jit, shapes
from ...array import empty, ndarray
from ...dtypes import float32, float64
from ...jit.functions import func
from ...lang.markers import kernel_math, ndrange, unordered
from ..elementwise.elementwise import MapOp, launch_map
from ..workspace import unchecked_empty
from .reduce import SUM, on_grid, piece_count, reduce_into
from .variance_gpu import one_pass_into, supports_one_pass

CHUNK = 256  # elements summed in 16 accumulators before they are combined


@func
def _real_square(x: Any, mean: Any) -> Any:
    return (x - mean) * (x - mean)


@func
def _complex_square(x: Any, mean: Any) -> Any:
    re, im = kernel_math.real(x - mean), kernel_math.imag(x - mean)
    return re * re + im * im


@func
def _real_square_of_number(x: Any, mean: Any) -> Any:
    return 0.0 if x != x else (x - mean) * (x - mean)


@func
def _complex_square_of_number(x: Any, mean: Any) -> Any:
    return 0.0 if x != x else _complex_square(x, mean)


# by whether elements are complex, and whether NaNs are skipped
_SQUARES = {
    (False, False): MapOp("squared_deviation", _real_square, raw=(0, 1)),
    (True, False): MapOp("squared_deviation", _complex_square, raw=(0, 1)),
    (False, True): MapOp("nan_squared_deviation", _real_square_of_number, raw=(0, 1)),
    (True, True): MapOp("nan_squared_deviation", _complex_square_of_number, raw=(0, 1)),
}


def squared_deviations(
    x: ndarray, axes: tuple[int, ...], mean: Callable[[], ndarray], skip_nan: bool = False
) -> ndarray:
    """The sum of |x - mean|² over `axes` in float64, of the shape of the other axes; with `skip_nan` of the
    elements that are not NaN. `mean()`, in float64 or complex128, has size 1 along `axes`; it is called unless
    the kernel computes means itself."""
    out = empty(shapes.reduced(x._shape, axes)[0], float64, x.device)
    if not x._size:
        out[...] = 0
    elif not skip_nan and supports_one_pass(x, axes):
        one_pass_into(out, x, axes)
    else:
        _two_passes_into(out, x, axes, mean(), skip_nan)
    return out


def _two_passes_into(out: ndarray, x: ndarray, axes: tuple[int, ...], mean: ndarray, skip_nan: bool) -> None:
    keep = [k for k in range(x.ndim) if k not in axes]
    inner, (steps,) = shapes.collapse([x._shape[k] for k in axes], [x._strides[k] for k in axes])
    is_complex = x._dtype.kind == "c"
    if skip_nan or is_complex or len(inner) > 1 or (inner and steps[0] != x.itemsize):
        narrow = x._dtype.kind in "fc" and x.itemsize <= (8 if is_complex else 4)
        squared = unchecked_empty(x._shape, float32 if narrow else float64, x.device)
        launch_map(_SQUARES[is_complex, skip_nan], float64, squared, (x, mean), fresh=True)
        reduce_into(SUM, out, squared, axes, squared._dtype)
        return
    lead, (x_lead, mean_lead) = shapes.collapse(
        [x._shape[k] for k in keep], [x._strides[k] for k in keep], [mean._strides[k] for k in keep]
    )
    n = inner[0] if inner else 1
    pieces = piece_count(n, math.prod(lead), x._size, on_grid(x))
    partial = unchecked_empty((*lead, pieces), float64, x.device)
    source = x._view(0, (*lead, n), (*x_lead, x.itemsize))
    _squares_kernel(len(lead))(partial, source, mean._view(0, lead, mean_lead))
    target = partial.reshape((*(x._shape[k] for k in keep), pieces))
    reduce_into(SUM, out, target, (target.ndim - 1,), float64)


# The rank is all that differs in the text; dtypes are in its variants' keys.
@functools.cache
def _squares_kernel(rank: int) -> jit.kernel.Kernel:
    ks = [f"k{n}" for n in range(rank)]
    sizes = ", ".join(f"out.shape[{n}]" for n in range(rank + 1))
    distance = f"(float64(x[{', '.join([*ks, 't'])}]) - center)"
    text = f"""def sum_of_squares(out, x, mean):
    step = (x.shape[{rank}] + out.shape[{rank}] - 1) // out.shape[{rank}]
    for {", ".join([*ks, "piece"])} in ndrange({sizes}):
        center = mean[{", ".join(ks) or "()"}]
        high = min(piece * step + step, x.shape[{rank}])
        total = float64(0)
        for c in range(piece * step, high, {CHUNK}):
            part = float64(0)
            for t in unordered(range(c, min(c + {CHUNK}, high))):
                part = part + {distance} * {distance}
            total = total + part
        out[{", ".join([*ks, "piece"])}] = total
"""
    return jit.kernel.from_text(
        "sum_of_squares", text, {"ndrange": ndrange, "unordered": unordered, "float64": float64}
    )
