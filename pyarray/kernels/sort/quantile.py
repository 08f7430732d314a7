"""Quantiles of sorted rows, with the interpolation methods of NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import jit
from ...array import ndarray
from ...dtypes import float64, int64
from ...lang.markers import kernel_math, ndrange

# By method, the weight of the upper neighbour at the virtual index v = count * q + alpha + q * (1 - alpha -
# beta) - 1, of which g is the fractional part (Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996)
FRACTIONS = {
    "between": "g",
    "mean": "g",  # of the two middle elements: a median is infinite where one of them is
    "lower": "0.0",
    "higher": "1.0 if g > 0.0 else 0.0",
    "nearest": "1.0 if g > 0.5 or (g == 0.5 and odd) else 0.0",
    "midpoint": "0.5 if g > 0.0 else 0.0",
    "step": "1.0 if g > 0.0 else 0.0",
    "averaged": "1.0 if g > 0.0 else 0.5",
    "even": "0.0 if g == 0.0 and odd else 1.0",
}

_BETWEEN = """a = float64(rows[r, low])
        b = float64(rows[r, min(low + 1, count - 1)])
        value = b if weight == 1.0 else a if weight == 0.0 or a == b else a + (b - a) * weight
        if weight >= 0.5 and weight < 1.0 and a != b:
            value = b - (b - a) * (1.0 - weight)"""
_MEAN = """a = float64(rows[r, low])
        b = float64(rows[r, min(low + 1, count - 1)])
        value = a if weight == 0.0 or a == b else (a + b) * 0.5"""


def element_indices(q: np.ndarray[Any, Any], count: int, alpha: float, beta: float) -> set[int]:
    """The elements of a sorted row of `count` numbers that `quantiles_of_sorted` reads for the quantiles `q`,
    besides the last one; computed step by step as in the kernel."""
    v = float(count - 1) * q
    if alpha != 1.0 or beta != 1.0:
        v = float(count) * q + (alpha + q * (1.0 - alpha - beta)) - 1.0
    low = np.clip(np.floor(v).astype(np.int64), 0, count - 1)
    return {*low.reshape(-1).tolist(), *np.minimum(low + 1, count - 1).reshape(-1).tolist()}


def quantiles_of_sorted(
    out: ndarray, rows: ndarray, q: ndarray, fraction: str, alpha: float, beta: float, skip_nan: bool
) -> None:
    """`out[i, r]` = the quantile `q[i]` of the sorted row `rows[r]`; NaN if the row has a NaN, which
    `skip_nan` leaves out, or no number. Without `skip_nan`, only the elements at `element_indices` and the last
    one are read."""
    if out._size:
        floating = rows._dtype.kind == "f"
        kernel = _pick_kernel(fraction, floating, out._dtype.kind == "f")
        kernel(out, rows, q, alpha, beta, skip_nan)


# The text depends on the method, NaNs and interpolation; dtypes are in its variants' keys.
@functools.cache
def _pick_kernel(fraction: str, floating: bool, mixed: bool) -> jit.kernel.Kernel:
    """Elements of a floating type are computed in float64."""
    exact = "out[i, r] = rows[r, min(low + 1, count - 1)] if weight > 0.5 else rows[r, low]"
    between = _MEAN if fraction == "mean" else _BETWEEN
    nan = "skip_nan" if floating else "True"
    store = exact
    if mixed:
        store = f"""{between}
        if count == 0 or (not {nan} and last != last):
            value = nan
        out[i, r] = value"""
    search = (
        """
        if last != last:
            left = count
            count = int64(0)
            while left > 0:
                half = left >> 1
                x = rows[r, count + half]
                if x == x:
                    count += half + 1
                    left -= half + 1
                else:
                    left = half"""
        if floating
        else ""
    )
    text = f"""def quantile(out, rows, q, alpha: float64, beta: float64, skip_nan: bool):
    for i, r in ndrange(out.shape[0], out.shape[1]):
        count = int64(rows.shape[1])
        last = rows[r, rows.shape[1] - 1]{search}
        v = float64(count - 1) * q[i]
        if alpha != 1.0 or beta != 1.0:
            v = float64(count) * q[i] + (alpha + q[i] * (1.0 - alpha - beta)) - 1.0
        f = floor(v)
        g = v - f
        odd = (int64(f) & 1) == 1
        weight = {FRACTIONS[fraction]}
        low = int64(f)
        if f < 0.0:
            low = int64(0)
            weight = 0.0
        low = max(min(low, count - 1), 0)
        {store}
"""
    scope = {
        "ndrange": ndrange,
        "float64": float64,
        "int64": int64,
        "floor": kernel_math.floor,
        "nan": float("nan"),
    }
    return jit.kernel.from_text("quantile", text, scope)
