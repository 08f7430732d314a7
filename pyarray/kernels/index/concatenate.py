"""Few small arrays one after the other by one launch: on a grid that takes longer than the copy."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from ...array import STRIDED, ndarray
from ...jit.kernel import Kernel, from_text
from ..reduce.reduce import on_grid
from ..scan.nonzero import bits

PIECES = 8  # at most
SMALL = 1 << 22  # elements, for which this takes no longer than a copy for each piece


def joins(out: ndarray, pieces: Sequence[ndarray], axis: int) -> bool:
    """Whether `join` does it: small contiguous arrays of `out`'s type, each of which is one run of it."""
    if not (1 < len(pieces) <= PIECES and 0 < out._size <= SMALL and on_grid(out)):
        return False
    alike = all(a._dtype is out._dtype and not a._key & STRIDED for a in pieces)
    return alike and math.prod(out._shape[:axis]) == 1


def join(out: ndarray, pieces: Sequence[ndarray]) -> None:
    """The elements of all pieces, in order."""
    flat = [bits(a.reshape(a._size)) for a in (out, *pieces)]
    _kernel(len(pieces))(*flat)


# The number of operands is all that differs in the text; dtypes are in its variants' keys.
@functools.cache
def _kernel(count: int) -> Kernel:
    ends = "".join(f"    n{k} = {f'n{k - 1} + ' if k else ''}x{k}.shape[0]\n" for k in range(count - 1))
    element = f"x{count - 1}[t - n{count - 2}]"
    for k in reversed(range(count - 1)):
        element = f"(x{k}[{f't - n{k - 1}' if k else 't'}] if t < n{k} else {element})"
    names = ", ".join(f"x{k}" for k in range(count))
    text = f"def concat(out, {names}):\n{ends}    for t in range(out.shape[0]):\n        out[t] = {element}\n"
    return from_text("concat", text, {})
