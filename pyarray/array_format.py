"""`str` and `repr` of arrays: NumPy's text with the device and, for a view, its offset. Only the printed
corners are copied to the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyarray.array_host import host
from pyarray.dtypes import EXTENSIONS


def text(a: Any) -> str:
    """`str(a)`: the elements alone, as NumPy prints them."""
    return str(host(a)) if a.size <= 1 else _elements(a, "", " ")


def representation(a: Any) -> str:
    """`repr(a)`: elements, shape where it can't be seen, dtype, device and, for a view with a base, offset
    and size."""
    name = "BufferView" if hasattr(a, "offset") else "array"
    tail = [f"dtype={a._dtype}", f"device={str(a.device)!r}"]
    if a.size == 0 and a.shape != (0,):
        tail.insert(0, f"shape={a.shape}")
    if name == "BufferView":
        tail += [f"offset={a.offset}", f"size={a.size}"]
    body = "[]" if a.size == 0 else _elements(a, f"{name}(", ", ")
    end = ", ".join(tail)
    fits = len(name) + len(body) + len(end) + 4 <= np.get_printoptions()["linewidth"]
    glue = ", " if fits and "\n" not in body else ",\n" + " " * (len(name) + 1)
    return f"{name}({body}{glue}{end})"


def _elements(a: Any, prefix: str, separator: str) -> str:
    options = np.get_printoptions()
    edge, threshold = options["edgeitems"], options["threshold"]
    summarize = a.size > threshold
    values = _corners(a, edge) if summarize else host(a)
    if a._dtype in EXTENSIONS:
        values = values.astype(np.float32)  # NumPy's printer knows the types it was born with
    shown = 0 if summarize else threshold
    return np.array2string(values, separator=separator, prefix=prefix, suffix=",", threshold=shown, edgeitems=edge)


def _corners(a: Any, edge: int, axis: int = 0) -> np.ndarray[Any, Any]:
    """`a` with at most 2 * edge + 1 elements along `axis` and those after it; the middle one stands for those that
    NumPy prints as dots."""
    if axis == a.ndim:
        return host(a)
    n, before = a.shape[axis], (slice(None),) * axis
    if n <= 2 * edge + 1:
        return _corners(a, edge, axis + 1)
    ends = (a[(*before, slice(0, edge + 1))], a[(*before, slice(n - edge, n))])
    return np.concatenate([_corners(end, edge, axis + 1) for end in ends], axis)


class Flags:
    """Memory layout of an array, as NumPy's `flags`. `writeable` can be set; the others are facts."""

    __slots__ = ("_array",)

    def __init__(self, array: Any):
        self._array = array

    @property
    def writeable(self) -> bool:
        """Whether elements can be assigned. Setting it to True needs a writeable base, or memory of our own:
        else `ValueError`."""
        return self._array._writeable

    @writeable.setter
    def writeable(self, value: bool) -> None:
        self._array.setflags(write=value)

    @property
    def c_contiguous(self) -> bool:
        """Whether the elements follow each other, last axis fastest."""
        return not self._array._key >> 16 & 1

    @property
    def f_contiguous(self) -> bool:
        """Whether the elements follow each other, first axis fastest."""
        return self._array.T.flags.c_contiguous

    @property
    def owndata(self) -> bool:
        """Whether this array is no view, and its memory was not made elsewhere."""
        return self._array._base is None and self._array._buffer.owner is None

    def __getitem__(self, name: str) -> bool:
        try:
            return getattr(
                self,
                {"C": "c_contiguous", "F": "f_contiguous", "O": "owndata", "W": "writeable"}.get(name, name.lower()),
            )
        except AttributeError:
            raise KeyError(
                f"unknown flag {name!r}; there are writeable, c_contiguous, f_contiguous and owndata"
            ) from None

    def __repr__(self) -> str:
        names = ("c_contiguous", "f_contiguous", "owndata", "writeable")
        return "\n".join(f"  {name.upper()} : {getattr(self, name)}" for name in names)
