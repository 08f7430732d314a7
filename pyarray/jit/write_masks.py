"""Write masks in debug mode, on the host: which elements of an `Out` array a launch wrote (`lang.write_mask`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import shapes
from ..array import empty
from ..array_convert import asnumpy
from ..dtypes import bool_
from ..lang.write_mask import mask_itemsize
from ..memory.host_access import clear


class Mask:
    """Which elements of `array` a launch has written. `low` is the lowest address of the array, `array._ptr`
    and so on those of the mask."""

    def __init__(self, array: Any):
        self._array, self._step = array, mask_itemsize(array.itemsize, array._dtype.kind)
        low, high = shapes.byte_bounds(array.shape, array.strides, array.itemsize) if array.size else (0, 0)
        self.low = array._ptr + low
        self.mask = empty((high - low) // self._step, bool_, array.device)
        if self.mask.size:
            clear(array.device, self.mask._ptr, self.mask.nbytes)

    def check(self, kernel: str, name: str) -> None:
        """Raises `ValueError` where an element wasn't written."""
        a = self._array
        if not a.size:
            return
        strides = tuple(s // self._step for s in a.strides)
        written = np.ndarray(a.shape, bool, asnumpy(self.mask), (a._ptr - self.low) // self._step, strides)
        if written.all():
            return
        index = tuple(int(i) for i in np.argwhere(~written)[0])
        raise ValueError(
            f"{kernel}(): {name!r} is declared Out, and this launch left {a.size - int(written.sum())} of its "
            f"{a.size} elements unwritten, the first at index {index}; write all of them, or declare it InOut"
        )
