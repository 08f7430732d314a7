"""Arrays from slices: `r_`, `c_`, `mgrid`, `ogrid`; and windows of signal processing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...array import ndarray
from ...array_convert import asarray
from ...dtypes import result_type
from ...typing import DeviceLike
from ..core.ufunc import device_of
from ..standard.creation import arange, linspace
from ..standard.manipulation import broadcast_to, concat, stack

__all__ = ["bartlett", "blackman", "c_", "hamming", "hanning", "kaiser", "mgrid", "ogrid", "r_"]


def _line(item: slice) -> ndarray:
    """The numbers of a slice: an imaginary step says how many, with the stop as the last."""
    start, step = item.start or 0, 1 if item.step is None else item.step
    if item.stop is None:
        raise ValueError(f"a slice of numbers needs its end, got {item}")
    if isinstance(step, complex):
        return linspace(start, item.stop, int(abs(step)))
    return arange(start, item.stop, step)


class _Grid:
    """`mgrid` and `ogrid`."""

    def __init__(self, sparse: bool):
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _line(key)
        lines = [_line(item) for item in key]
        kind = result_type(*lines)
        grids = [
            x.astype(kind, copy=False).reshape((1,) * k + (-1,) + (1,) * (len(lines) - k - 1))
            for k, x in enumerate(lines)
        ]
        if self._sparse:
            return tuple(grids)
        shape = tuple(x.size for x in lines)
        return stack([broadcast_to(x, shape) for x in grids])

    def __repr__(self) -> str:
        return "<pyarray.ogrid>" if self._sparse else "<pyarray.mgrid>"


class _Joined:
    """`r_` and `c_`."""

    def __init__(self, columns: bool):
        self._columns = columns

    def __getitem__(self, key: Any) -> ndarray:
        items = key if isinstance(key, tuple) else (key,)
        device = device_of(items)
        return concat([self._part(item, device) for item in items], axis=-1 if self._columns else 0)

    def _part(self, item: Any, device: Any) -> ndarray:
        if isinstance(item, str):
            raise ValueError(f"{self!r} takes slices, numbers and arrays, got {item!r}; use concat or stack")
        x = _line(item).to_device(device) if isinstance(item, slice) and device else item
        x = _line(x) if isinstance(x, slice) else x if isinstance(x, ndarray) else asarray(x, device=device)
        least = 2 if self._columns else 1
        return x.reshape(x.shape + (1,) * (least - x.ndim))

    def __repr__(self) -> str:
        return "pyarray.c_" if self._columns else "pyarray.r_"


mgrid = _Grid(False)
"""Coordinates of a grid: `mgrid[0:2, 0:3]` has shape (2, 2, 3); `0:1:5j` are 5 numbers up to 1."""
ogrid = _Grid(True)
"""Coordinates of a grid as arrays that broadcast: `ogrid[0:2, 0:3]` has shapes (2, 1) and (1, 3)."""
r_ = _Joined(False)
"""Slices, numbers and arrays one after the other: `r_[0:3, 7]`."""
c_ = _Joined(True)
"""1-D arrays and slices as the columns of a matrix: `c_[0:3, 4:7]`."""


def bartlett(M: int, /, *, device: DeviceLike = None) -> ndarray:
    """The triangular window of `M` points, as NumPy's.

    >>> pa.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return asarray(np.bartlett(M), device=device)


def blackman(M: int, /, *, device: DeviceLike = None) -> ndarray:
    """The Blackman window of `M` points, as NumPy's.

    >>> pa.blackman(5).shape
    (5,)
    """
    return asarray(np.blackman(M), device=device)


def hamming(M: int, /, *, device: DeviceLike = None) -> ndarray:
    """The Hamming window of `M` points, as NumPy's.

    >>> round(pa.hamming(5)[0].item(), 6)
    0.08
    """
    return asarray(np.hamming(M), device=device)


def hanning(M: int, /, *, device: DeviceLike = None) -> ndarray:
    """The Hann window of `M` points, as NumPy's.

    >>> pa.hanning(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return asarray(np.hanning(M), device=device)


def kaiser(M: int, beta: float, /, *, device: DeviceLike = None) -> ndarray:
    """The Kaiser window of `M` points with the shape `beta`, as NumPy's.

    >>> pa.kaiser(3, 0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    return asarray(np.kaiser(M, beta), device=device)
