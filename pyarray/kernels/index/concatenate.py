"""Concatenates a few small arrays in one launch: on GPUs, launches take longer than such copies."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from ... import jit
from ...array import STRIDED, ndarray
from ..reduce.reduce import on_grid
from ..scan.nonzero import unsigned_view

PIECES = 8  # at most
SMALL = 1 << 22  # elements; above, one copy per piece is as fast


def can_concatenate(out: ndarray, pieces: Sequence[ndarray], axis: int) -> bool:
    """Whether `launch_concat` takes them: small contiguous arrays of `out`'s type, each one run of `out`."""
    if not (1 < len(pieces) <= PIECES and 0 < out._size <= SMALL and on_grid(out)):
        return False
    contiguous = all(a._dtype is out._dtype and not a._key & STRIDED for a in pieces)
    return contiguous and math.prod(out._shape[:axis]) == 1


def launch_concat(out: ndarray, pieces: Sequence[ndarray]) -> None:
    """Copy the elements of all pieces into `out`, in order."""
    flat = [unsigned_view(a.reshape(a._size)) for a in (out, *pieces)]
    _kernel(len(pieces))(*flat)


# The number of operands is all that differs in the text; dtypes are in its variants' keys.
@functools.cache
def _kernel(count: int) -> jit.kernel.Kernel:
    ends = "".join(f"    n{k} = {f'n{k - 1} + ' if k else ''}x{k}.shape[0]\n" for k in range(count - 1))
    element = f"x{count - 1}[t - n{count - 2}]"
    for k in reversed(range(count - 1)):
        element = f"(x{k}[{f't - n{k - 1}' if k else 't'}] if t < n{k} else {element})"
    names = ", ".join(f"x{k}" for k in range(count))
    text = f"def concat(out, {names}):\n{ends}    for t in range(out.shape[0]):\n        out[t] = {element}\n"
    return jit.kernel.from_text("concat", text, {})
