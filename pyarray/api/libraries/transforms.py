"""Fourier transforms on GPUs, as NumPy's functions of these names, by cuFFT or hipFFT.

A transform is one call for up to three axes, which then are the last ones of memory without gaps; a plan is
kept for the next call of its sizes. Its work space is the pool's, for the time of the call.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ... import shapes
from ...array import empty, ndarray
from ...array_hooks import operation
from ...driver.base import Device
from ...dtypes import complex_of, real_of, uint8
from ...locks import new_lock
from ..standard.creation import zeros
from ..standard.elementwise import conj, real
from ..standard.manipulation import permute_dims
from .bindings import call, constant, working

MAX_AXES = 3  # axes of one plan
PLANS = 64  # kinds of transforms that are remembered
ALIGNED = 16  # bytes: cuFFT reads real numbers in pairs
FORWARD, INVERSE = -1, 1
# by kind, of double and of single precision
_KINDS = {"c2c": ("z2z", "c2c"), "r2c": ("d2z", "r2c"), "c2r": ("z2d", "c2r")}


class _Plan(NamedTuple):
    handle: Any
    nbytes: int  # of work space


_Key = tuple[Device, int, str, tuple[int, ...], int]
_plans: dict[_Key, list[_Plan]] = {}  # free ones, the kind that was used last at the end
_lock = new_lock()


def _new(key: _Key) -> _Plan:
    device, stream, kind, sizes, batch = key
    handle = call(device, "fft", "create")
    call(device, "fft", "set_auto_allocation", handle, 0)
    counts = (ctypes.c_int64 * len(sizes))(*sizes)
    code = constant(device.kind, kind)
    nbytes = call(
        device, "fft", "make_plan_many64", handle, len(sizes), ctypes.addressof(counts), 0, 1, 1, 0, 1, 1,
        code, batch,
    )  # fmt: skip
    call(device, "fft", "set_stream", handle, stream)
    return _Plan(handle, int(nbytes))


@contextmanager
def _plan(device: Device, kind: str, sizes: tuple[int, ...], batch: int) -> Iterator[_Plan]:
    """A plan on the current stream for this thread alone; the device is current in the block."""
    with device.driver.current():
        key = (device, device.driver.current_stream(), kind, sizes, batch)
        with _lock:
            free = _plans.pop(key, [])
            _plans[key] = free
            leased = free.pop() if free else None
        leased = leased or _new(key)
        yield leased
        with _lock:
            _plans.setdefault(key, []).append(leased)
            old = [_plans.pop(each) for each in list(_plans)[: max(0, len(_plans) - PLANS)]]
        for plan in (plan for plans in old for plan in plans):
            call(device, "fft", "destroy", plan.handle)


def _run(kind: str, x: ndarray, out: ndarray, sizes: Sequence[int], direction: int) -> None:
    """Runs a plan from `x` to `out`, along their last axes. `sizes` are those of the real array."""
    name = _KINDS[kind][x._dtype.name in ("float32", "complex64")]
    batch = math.prod(x._shape[: x.ndim - len(sizes)])
    device = x.device
    with _plan(device, name, tuple(sizes), batch) as plan:
        work = empty((plan.nbytes,), uint8, device)
        args = (direction,) if kind == "c2c" else ()
        with working(x, out, work):
            call(device, "fft", "set_work_area", plan.handle, work._ptr)
            call(device, "fft", f"exec_{name}", plan.handle, x._ptr, out._ptr, *args)


def _last(x: ndarray, axes: Sequence[int]) -> tuple[ndarray, list[int]]:
    """A contiguous copy or view of `x` with `axes` at the end, and the permutation that undoes it."""
    order = [k for k in range(x.ndim) if k not in axes] + list(axes)
    packed: ndarray = operation("contiguous")(_moved(x, order))
    if packed._ptr % ALIGNED:
        packed = packed.copy()
    return packed, sorted(range(x.ndim), key=order.__getitem__)


def _moved(x: ndarray, order: list[int]) -> ndarray:
    return x if order == list(range(x.ndim)) else permute_dims(x, order)


def _complex(x: ndarray, axes: Sequence[int], direction: int) -> ndarray:
    """The complex-to-complex transform along `axes`."""
    for first in range(0, len(axes), MAX_AXES):
        some = axes[first : first + MAX_AXES]
        packed, back = _last(x, some)
        out = empty(packed._shape, x._dtype, x.device)
        _run("c2c", packed, out, packed._shape[-len(some) :], direction)
        x = _moved(out, back)
    return x


def _of_real(x: ndarray, axes: Sequence[int]) -> ndarray:
    """The real-to-complex transform: the last of `axes` has the first half of the result."""
    some = axes[-MAX_AXES:]
    packed, back = _last(x, some)
    half = packed._shape[-1] // 2 + 1
    out = empty((*packed._shape[:-1], half), complex_of(x._dtype), x.device)
    _run("r2c", packed, out, packed._shape[-len(some) :], FORWARD)
    return _complex(_moved(out, back), axes[:-MAX_AXES], FORWARD)


def _to_real(x: ndarray, axes: Sequence[int], points: int) -> ndarray:
    """The complex-to-real transform, the inverse of `_of_real`, with `points` along the last of `axes`."""
    packed, back = _last(_complex(x, axes[:-1], INVERSE), axes[-1:])
    packed = packed.copy()  # the library overwrites it
    # numbers that are their own conjugates: NumPy doesn't look at what imaginary part is given
    for at in (0, points // 2) if points % 2 == 0 else (0,):
        packed[..., at] = real(packed[..., at])
    out = empty((*packed._shape[:-1], points), real_of(x._dtype), x.device)
    _run("c2r", packed, out, (points,), INVERSE)
    return _moved(out, back)


def _resized(x: ndarray, axes: Sequence[int], sizes: Sequence[int]) -> ndarray:
    """`x` cropped, or padded with zeros, to `sizes` along `axes`."""
    shape = list(x._shape)
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    if tuple(shape) == x._shape:
        return x
    part = x[tuple(slice(min(size, n)) for size, n in zip(shape, x._shape, strict=True))]
    if part._shape == tuple(shape):
        return part
    out = zeros(tuple(shape), dtype=x._dtype, device=x.device)
    out[tuple(map(slice, part._shape))] = part
    return out


def transform(name: str, x: ndarray, axes: Sequence[int], sizes: Any, norm: str | None) -> ndarray:
    """The Fourier transform `name` of NumPy, other than the 2-D ones. Raises `ValueError` for no points."""
    inverse, to_real = name.startswith("i"), name.startswith("ir")
    points: list[int] = []
    for axis, size in zip(axes, sizes or [None] * len(axes), strict=True):
        n = x._shape[axis]
        usual = 2 * (n - 1) if to_real and len(points) == len(axes) - 1 else n
        points.append(usual if size is None else int(size))
        if points[-1] < 1:
            raise ValueError(f"{name}(): invalid number of data points ({points[-1]}) along axis {axis}")
    if not axes:
        return x.copy()
    kind = complex_of(x._dtype)
    transform_sizes = [*points[:-1], points[-1] // 2 + 1] if to_real else points
    x = _resized(x, axes, transform_sizes)
    result = real_of(kind) if to_real else kind
    if not x._size:
        shape = list(x._shape)
        shape[axes[-1]] = points[-1] // 2 + 1 if name.startswith("r") else points[-1]
        return empty(tuple(shape), result, x.device)
    if name.startswith("r"):
        transformed = _of_real(x, axes)
    elif to_real:
        transformed = _to_real(x.astype(kind, copy=False), axes, points[-1])
    else:
        transformed = _complex(x.astype(kind, copy=False), axes, INVERSE if inverse else FORWARD)
    transformed = operation("contiguous")(transformed)
    scale = math.prod(points)
    if norm == "ortho":
        transformed *= 1.0 / math.sqrt(scale)
    elif (norm == "forward") != inverse:
        transformed *= 1.0 / scale
    return transformed


_SWAPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def compute(name: str, arrays: tuple[ndarray, ...], options: dict[str, Any]) -> ndarray:
    """As NumPy's function of one array: `norm`, and `n` and `axis`, or `s` and `axes`, which are given as numbers."""
    (x,), norm = arrays, options["norm"]
    if "axis" in options:
        axes, sizes = shapes.normalize_axes(options["axis"], x.ndim), [options["n"]]
    else:
        axes, sizes = shapes.normalize_axes(options["axes"], x.ndim), options["s"]
        if sizes is not None and len(sizes) != len(axes):
            raise ValueError(f"{name}(): s has {len(sizes)} sizes, but there are {len(axes)} axes")
    if name == "hfft":
        return transform("irfft", conj(x), axes, sizes, _SWAPPED[norm])
    if name == "ihfft":
        return conj(transform("rfft", x, axes, sizes, _SWAPPED[norm]))
    return transform(name, x, axes, sizes, norm)
