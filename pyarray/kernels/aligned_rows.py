"""Copies whose rows begin at aligned addresses, for kernels that load vectors."""

from __future__ import annotations

from ..array import ndarray
from ..errors import OutOfMemoryError
from .elementwise.elementwise import COPY, launch_map
from .workspace import unchecked_empty

VECTOR_BYTES = 16  # of a vector load, and of cp.async; the hardware's widest


def copied_rows(x: ndarray, kept: int) -> ndarray | None:
    """A copy whose rows are aligned, and are whole vectors in memory; None if there is no memory. Axes along which `x`
    is broadcast have one element there, but for the last `kept`."""
    first = x.ndim - kept
    repeats = [step == 0 and axis < first for axis, step in enumerate(x._strides)]
    *lead, columns = (1 if repeated else n for n, repeated in zip(x._shape, repeats, strict=True))
    each = VECTOR_BYTES // x.itemsize
    try:
        padded = unchecked_empty((*lead, -(-columns // each) * each), x._dtype, x.device)
    except OutOfMemoryError:
        return None
    unbroadcast = (*lead, columns)
    launch_map(COPY, x._dtype, padded._view(0, unbroadcast, padded._strides), (x._view(0, unbroadcast, x._strides),))
    steps = (0 if repeated else step for step, repeated in zip(padded._strides, repeats, strict=True))
    return padded._view(0, x._shape, tuple(steps))
