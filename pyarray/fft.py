"""The array API's extension `fft`: discrete Fourier transforms, as NumPy's.

They are pocketfft's, as NumPy has it, on the memory of CPU arrays, and cuFFT's or hipFFT's on GPUs, on the
current stream. The result has the precision of the argument: complex64 of float32; integers are computed as
float64, float16, bfloat16 and float8 as float32.

`norm` says what is divided by: "backward" the inverse transform by the number of points, "forward" the
forward one, "ortho" both by its root. `n` or `s` are the numbers of points, to which axes are cut or filled
with zeros.

>>> import pyarray as pa
>>> pa.fft.fft(pa.asarray([1.0, 0.0, 0.0, 0.0])).tolist()
[(1+0j), (1+0j), (1+0j), (1+0j)]
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from . import shapes as _shapes
from .api.libraries.dispatch import library, promoted_for_library
from .api.standard.creation import arange
from .api.standard.elementwise import multiply
from .api.standard.manipulation import concat, roll
from .array import ndarray
from .array_convert import asarray
from .dtypes import DType, asdtype, complex_of, float64, real_of
from .typing import ArrayLike, AxisLike, DeviceLike, DTypeLike, ShapeLike

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
    "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_NORMS = ("backward", "ortho", "forward")
# those of real numbers alone, and what takes complex ones
_OF_REAL = {"rfft": "fft", "rfftn": "fftn", "ihfft": "ifft"}


def _computed(name: str, x: Any, result: Callable[[DType], DType], norm: Any, **sizes: Any) -> ndarray:
    (a,) = promoted_for_library(name, x)
    if norm is not None and norm not in _NORMS:
        raise ValueError(f"{name}(): norm is {', '.join(map(repr, _NORMS))}, got {norm!r}")
    if name in _OF_REAL and a._dtype.kind == "c":
        raise TypeError(f"{name}() takes real numbers, got {a._dtype}; use {_OF_REAL[name]}")
    transformed: ndarray = library("fft", name, a, norm=norm, **sizes)
    return transformed.astype(result(a._dtype), copy=False)


def fft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> ndarray:
    """Transform along `axis`.

    Raises `AxisError` for the axis, `ValueError` for no points or another `norm`.

    >>> pa.fft.fft(pa.asarray([1.0, 1.0])).tolist()
    [(2+0j), 0j]
    """
    return _computed("fft", x, complex_of, norm, n=n, axis=axis)


def ifft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> ndarray:
    """Inverse of `fft`.

    Raises `AxisError` for the axis, `ValueError` for no points or another `norm`.

    >>> pa.fft.ifft(pa.asarray([2.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """
    return _computed("ifft", x, complex_of, norm, n=n, axis=axis)


def rfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> ndarray:
    """Transform of real numbers along `axis`: the first n // 2 + 1 numbers of `fft`, the others are their
    conjugates.

    Raises `AxisError` for the axis, `ValueError` for no points or another `norm`, `TypeError` for complex
    numbers.

    >>> pa.fft.rfft(pa.ones(4)).shape
    (3,)
    """
    return _computed("rfft", x, complex_of, norm, n=n, axis=axis)


def irfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> ndarray:
    """Inverse of `rfft`, with real results. `n` is the number of points of the result, 2 (m - 1) of m
    unless given.

    Raises `AxisError` for the axis, `ValueError` for no points or another `norm`.

    >>> pa.fft.irfft(pa.fft.rfft(pa.ones(4))).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _computed("irfft", x, real_of, norm, n=n, axis=axis)


def hfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> ndarray:
    """Transform of numbers whose other half are their conjugates, with real results. `n` is the number of
    points of the result, 2 (m - 1) of m unless given.

    Raises `AxisError` for the axis, `ValueError` for no points or another `norm`.

    >>> pa.fft.hfft(pa.ones(3)).shape
    (4,)
    """
    return _computed("hfft", x, real_of, norm, n=n, axis=axis)


def ihfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> ndarray:
    """Inverse of `hfft`, of real numbers.

    Raises `AxisError` for the axis, `ValueError` for no points or another `norm`, `TypeError` for complex
    numbers.

    >>> pa.fft.ihfft(pa.ones(4)).shape
    (3,)
    """
    return _computed("ihfft", x, complex_of, norm, n=n, axis=axis)


def fftn(x: ArrayLike, /, s: ShapeLike | None = None, axes: AxisLike = None, norm: str = "backward") -> ndarray:
    """Transform over several axes (None: all, or the last ones that `s` has sizes of).

    Raises `AxisError` for an axis, `ValueError` for no points, numbers of sizes and axes that differ, or
    another `norm`.

    >>> pa.fft.fftn(pa.ones((2, 2)))[0, 0].item()
    (4+0j)
    """
    return _over_axes("fftn", x, complex_of, s, axes, norm)


def fft2(x: ArrayLike, /, s: ShapeLike | None = None, axes: AxisLike = (-2, -1), norm: str = "backward") -> ndarray:
    """`fftn` over two axes, the last ones unless given.

    >>> pa.fft.fft2(pa.ones((2, 2))).dtype
    dtype('complex128')
    """
    return fftn(x, s=s, axes=axes, norm=norm)


def ifftn(x: ArrayLike, /, s: ShapeLike | None = None, axes: AxisLike = None, norm: str = "backward") -> ndarray:
    """Inverse of `fftn`.

    Raises `AxisError` for an axis, `ValueError` for no points, numbers of sizes and axes that differ, or
    another `norm`.

    >>> pa.fft.ifftn(pa.ones((2, 2)))[0, 0].item()
    (1+0j)
    """
    return _over_axes("ifftn", x, complex_of, s, axes, norm)


def ifft2(x: ArrayLike, /, s: ShapeLike | None = None, axes: AxisLike = (-2, -1), norm: str = "backward") -> ndarray:
    """`ifftn` over two axes, the last ones unless given.

    >>> pa.fft.ifft2(pa.ones((2, 2))).dtype
    dtype('complex128')
    """
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfftn(x: ArrayLike, /, s: ShapeLike | None = None, axes: AxisLike = None, norm: str = "backward") -> ndarray:
    """Transform of real numbers over several axes: `rfft` along the last of them, `fft` along the others.

    Raises `AxisError` for an axis, `ValueError` for no points, numbers of sizes and axes that differ, or
    another `norm`, `TypeError` for complex numbers.

    >>> pa.fft.rfftn(pa.ones((4, 4))).shape
    (4, 3)
    """
    return _over_axes("rfftn", x, complex_of, s, axes, norm)


def rfft2(x: ArrayLike, /, s: ShapeLike | None = None, axes: AxisLike = (-2, -1), norm: str = "backward") -> ndarray:
    """`rfftn` over two axes, the last ones unless given.

    >>> pa.fft.rfft2(pa.ones((2, 2))).dtype
    dtype('complex128')
    """
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfftn(x: ArrayLike, /, s: ShapeLike | None = None, axes: AxisLike = None, norm: str = "backward") -> ndarray:
    """Inverse of `rfftn`, with real results; `s` are the sizes of the result.

    Raises `AxisError` for an axis, `ValueError` for no points, numbers of sizes and axes that differ, or
    another `norm`.

    >>> pa.fft.irfftn(pa.ones((4, 3))).shape
    (4, 4)
    """
    return _over_axes("irfftn", x, real_of, s, axes, norm)


def irfft2(x: ArrayLike, /, s: ShapeLike | None = None, axes: AxisLike = (-2, -1), norm: str = "backward") -> ndarray:
    """`irfftn` over two axes, the last ones unless given.

    >>> pa.fft.irfft2(pa.ones((2, 2))).dtype
    dtype('float64')
    """
    return irfftn(x, s=s, axes=axes, norm=norm)


def _over_axes(name: str, x: Any, result: Callable[[DType], DType], s: Any, axes: Any, norm: Any) -> ndarray:
    """NumPy gets each axis by its number, since it is to drop the choice of the last ones."""
    ndim, sizes = asarray(x).ndim, None if s is None else tuple(s)
    if axes is not None:
        chosen = _shapes.normalize_axes(tuple(axes), ndim)
    else:
        count = ndim if sizes is None else len(sizes)
        if count > ndim:
            raise ValueError(f"{name}(): s has {count} sizes, the array only {ndim} dimensions")
        chosen = tuple(range(ndim - count, ndim))
    return _computed(name, x, result, norm, s=sizes, axes=chosen)


def _points(name: str, n: Any, dtype: Any) -> tuple[int, DType]:
    count, kind = operator.index(n), float64 if dtype is None else asdtype(dtype)
    if count < 1:
        raise ValueError(f"{name}(): n is the number of points, 1 or more, got {n}")
    if kind.kind != "f":
        raise TypeError(f"{name}(): frequencies are of a floating dtype, got {kind}")
    return count, kind


def fftfreq(n: int, /, d: float = 1.0, *, dtype: DTypeLike = None, device: DeviceLike = None) -> ndarray:
    """The frequencies, in cycles per unit of the spacing `d`, of what `fft` of `n` points gives: 0 first,
    then the positive, then the negative ones. float64 unless another floating dtype is given.

    Raises `ValueError` for less than one point, `TypeError` for another dtype.

    >>> pa.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    count, kind = _points("fftfreq", n, dtype)
    middle = (count - 1) // 2 + 1
    runs = [arange(0, middle, device=device), arange(-(count // 2), 0, device=device)]
    return multiply(concat(runs), 1.0 / (count * d)).astype(kind, copy=False)


def rfftfreq(n: int, /, d: float = 1.0, *, dtype: DTypeLike = None, device: DeviceLike = None) -> ndarray:
    """The frequencies, in cycles per unit of the spacing `d`, of what `rfft` of `n` points gives. Raises as
    `fftfreq`.

    >>> pa.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    count, kind = _points("rfftfreq", n, dtype)
    return multiply(arange(count // 2 + 1, device=device), 1.0 / (count * d)).astype(kind, copy=False)


def _shifted(x: Any, axes: Any, back: bool) -> ndarray:
    x = asarray(x)
    chosen = _shapes.normalize_axes(tuple(axes) if hasattr(axes, "__iter__") else axes, x.ndim)
    if not chosen:
        return x.copy()
    return roll(x, [-(x._shape[k] // 2) if back else x._shape[k] // 2 for k in chosen], axis=list(chosen))


def fftshift(x: ArrayLike, /, axes: AxisLike = None) -> ndarray:
    """A copy with the frequency 0 moved to the middle of `axes` (None: all, an int, or several).

    >>> pa.fft.fftshift(pa.asarray([0, 1, -2, -1])).tolist()
    [-2, -1, 0, 1]
    """
    return _shifted(x, axes, False)


def ifftshift(x: ArrayLike, /, axes: AxisLike = None) -> ndarray:
    """Inverse of `fftshift`, from which it differs for odd sizes.

    >>> pa.fft.ifftshift(pa.asarray([-2, -1, 0, 1])).tolist()
    [0, 1, -2, -1]
    """
    return _shifted(x, axes, True)
