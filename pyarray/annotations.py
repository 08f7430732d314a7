"""What `BufferView[float32]` and `ndarray[float32, 2]` mean in a kernel's signature."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from pyarray.dtypes import DType, asdtype


@dataclass(frozen=True)
class ArrayAnnotation:
    """An array parameter: `view` says a contiguous 1-D run, `dtype` and `ndim` are None where any will do."""

    view: bool
    dtype: DType | None
    ndim: int | None

    def __repr__(self) -> str:
        if self.view:
            return f"BufferView[{self.dtype}]"
        return f"ndarray[{self.dtype}]" if self.ndim is None else f"ndarray[{self.dtype}, {self.ndim}]"


def view_annotation(item: Any) -> ArrayAnnotation:
    """Annotation for `BufferView[item]`. Raises `TypeError` unless `item` names one dtype.

    >>> view_annotation("float32")
    BufferView[float32]
    """
    if isinstance(item, tuple):
        raise TypeError(
            f"BufferView[...] takes one dtype, got {len(item)} items; else write ndarray[dtype, ndim]"
        )
    return ArrayAnnotation(True, asdtype(item), 1)


def array_annotation(item: Any) -> ArrayAnnotation:
    """Annotation for `ndarray[dtype]` or `ndarray[dtype, ndim]`; a dtype of `...` is any.

    Raises `TypeError` for anything but a dtype and an integer rank, `ValueError` for a negative rank.

    >>> array_annotation(("float32", 2))
    ndarray[float32, 2]
    """
    dtype, *rest = item if isinstance(item, tuple) else (item,)
    if len(rest) > 1:
        raise TypeError(
            f"ndarray[...] takes a dtype and a rank, got {len(rest) + 1} items; write ndarray[float32, 2]"
        )
    ndim = operator.index(rest[0]) if rest else None
    if ndim is not None and ndim < 0:
        raise ValueError(f"ndarray[dtype, ndim] takes a rank of 0 or more, got {ndim}")
    return ArrayAnnotation(False, None if dtype is Ellipsis else asdtype(dtype), ndim)
