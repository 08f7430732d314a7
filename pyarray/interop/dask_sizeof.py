"""`dask.sizeof` of arrays, by which dask schedules and spills to disk."""

from __future__ import annotations

import math
from typing import Any

from ..array import ndarray


def register(module: Any) -> None:
    """`module` is `dask.sizeof`."""
    module.sizeof.register(ndarray, size_of)


def size_of(a: ndarray) -> int:
    """Bytes of the elements of `a`, those that lie at one place (stride 0) once."""
    return a.itemsize * math.prod(1 if s == 0 else n for n, s in zip(a.shape, a.strides, strict=True))
