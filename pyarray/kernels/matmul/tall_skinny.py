"""Tall-skinny products on grids, of many rows with two to four columns: teams of threads read the rows in vectors."""

from __future__ import annotations

import functools

from ... import jit
from ...array import ndarray
from ...dtypes import DType, float32
from ...lang.markers import unordered
from . import thresholds as th


def multiply(a: ndarray, b: ndarray, c: ndarray) -> bool:
    """`c[...] = a @ b`, or `c.T[...] = b.T @ a.T`, if this is the fastest way: whether it is. `c` shares no memory with
    the others."""
    if a.ndim != 2 or b.ndim != 2 or c.ndim != 2:
        return False
    if c._shape[0] < c._shape[1]:
        a, b, c = b.mT, a.mT, c.mT
    if not _fits(a, b):
        return False
    columns = b.mT.copy()
    kernel = _kernel(c._shape[1], a._dtype if a.itemsize > 4 else float32)
    kernel(c, a, *(columns[n] for n in range(c._shape[1])))
    return True


def _fits(a: ndarray, b: ndarray) -> bool:
    depth, columns = b._shape
    return (
        a._size >= th.TALL_SKINNY_ELEMENTS
        and 1 < columns <= th.TALL_SKINNY_COLUMNS
        and a._dtype.kind == "f"
        and a.itemsize > 1
        and 2 * columns**2 <= depth <= (th.TALL_SKINNY_DEPTH if a._dtype is float32 else th.TALL_SKINNY_SHORT_DEPTH)
        and a._strides[1] == a.itemsize
    )


# The text depends on these; dtypes are in its variants' keys.
@functools.cache
def _kernel(count: int, wide: DType) -> jit.kernel.Kernel:
    columns = range(count)
    starts = "".join(f"        s{n} = wide(0)\n" for n in columns)
    sums = "".join(f"            s{n} = s{n} + x * wide(b{n}[d])\n" for n in columns)
    stores = "".join(f"        out[i, {n}] = s{n}\n" for n in columns)
    text = f"""def tall_skinny(out, a, {", ".join(f"b{n}" for n in columns)}):
    for i in range(out.shape[0]):
{starts}        for d in unordered(range(a.shape[1])):
            x = wide(a[i, d])
{sums}{stores}"""
    return jit.kernel.from_text("tall_skinny", text, {"wide": wide, "unordered": unordered})
