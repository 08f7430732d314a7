"""Softmax and its relatives along rows: one launch, in which a row is read from memory once.

Rows are loops over elements, which the threads of a GPU's block share and keep in registers; of many short rows a
thread takes one. CPUs keep exponentials in the result instead of computing them twice."""

from __future__ import annotations

import functools
import math

from ... import jit, shapes
from ...array import ndarray
from ...dtypes import DType, float32
from ...lang.markers import kernel_math, unordered
from ..workspace import unchecked_empty
from .reduce import MANY_ROWS

# up to so few rows, each longer than that, are computed by several calls: a kernel of rows has a block for each
MOST_LONG_ROWS, LONG_ROW = 32, 1 << 16
ALONE = 7  # elements of a row that a thread takes alone, if they aren't whole vectors
_EXP = "exp(value - top)"
_EXP_OF_HALVES = "exp2((value - top) * log2_e)"  # within 2**-17, and 0 below 2**-126
_RESULTS = {
    "softmax": "{exp} / total",
    "log_softmax": "value - top - log(total)",
    "logsumexp": "log(total) + top",
}


def rows_of(x: ndarray, axis: object) -> ndarray | None:
    """The rows along the axis as a matrix, where `row_function` takes them; else None."""
    if not x._size or x._dtype.kind != "f" or not x._shape:
        return None
    last = len(x._shape) - 1
    if axis not in (last, -1) and not (axis is None and last == 0):
        return None
    if x._shape[-1] > 1 and x._strides[-1] != x.itemsize:
        return None
    shape, (strides,) = shapes.collapse(x._shape[:-1], x._strides[:-1])
    if len(shape) > 1:
        return None
    if x._buffer.device.driver.grid and x._shape[-1] > LONG_ROW and x._size // x._shape[-1] <= MOST_LONG_ROWS:
        return None
    return x._view(0, (*(shape or (1,)), x._shape[-1]), (*(strides or (0,)), x.itemsize))


def row_function(name: str, x: ndarray, rows: ndarray) -> ndarray:
    """`softmax` or `log_softmax` of x, or `logsumexp` with the last axis of size 1; `rows` is `rows_of` x."""
    reduced = name == "logsumexp"
    out = unchecked_empty(x._shape[:-1] + (1,) if reduced else x._shape, x._dtype, x._buffer.device)
    length = rows._shape[1]
    wide = float32 if x._dtype.itemsize < 8 else x._dtype
    matrix = out.reshape(rows._shape[0], 1 if reduced else length)
    grid = x._buffer.device.driver.grid
    keeps = name == "softmax" and wide is x._dtype and not grid
    alone = grid and length <= ALONE and length * x.itemsize % 16 != 0 and rows._shape[0] >= MANY_ROWS
    _kernel(name, wide, keeps, alone, grid and x.itemsize == 2)(matrix, rows)
    return out


# The text depends on these; dtypes are in its variants' keys.
@functools.cache
def _kernel(name: str, wide: DType, keeps: bool, alone: bool, halves: bool) -> jit.kernel.Kernel:
    """`keeps`: exponentials in the result; `alone`: a thread takes a row; `halves`: on a GPU, where memory brings so
    many that instructions are the limit."""
    exp = _EXP_OF_HALVES if halves else _EXP
    each = f"for j in {'range(x.shape[1])' if alone else 'unordered(range(x.shape[1]))'}:"
    result, sum_ = _RESULTS[name].format(exp=exp), exp
    if name == "logsumexp":
        store = f"out[i, 0] = {result}"
    elif keeps:
        sum_ = "out[i, j]"
        store = f"{each}\n            out[i, j] = out[i, j] / total"
    else:
        store = f"{each}\n            value = wide(x[i, j])\n            out[i, j] = {result}"
    keep = f"\n            out[i, j] = {exp}" if keeps else ""
    text = f"""def {name}(out, x):
    for i in range(x.shape[0]):
        top = wide(-inf)
        {each}
            top = max(top, wide(x[i, j]))
        top = top if top - top == 0 else wide(0)
        total = wide(0)
        {each}
            value = wide(x[i, j]){keep}
            total = total + {sum_}
        {store}
"""
    names = {"wide": wide, "inf": math.inf, "unordered": unordered, "log2_e": math.log2(math.e)}
    functions = {"exp": kernel_math.exp, "exp2": kernel_math.approx_exp2, "log": kernel_math.log}
    return jit.kernel.from_text(name, text, names | functions)
