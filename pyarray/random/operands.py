"""Checks and converts parameters, sizes and outputs of distributions."""

from __future__ import annotations

import math
import operator
import sys
from typing import Any

import numpy as np

from .. import shapes
from ..api.core.ufunc import device_of
from ..api.standard.elementwise import subtract
from ..array import ndarray, type_key, unchecked_array
from ..array_convert import asarray, asnumpy
from ..array_hooks import is_foreign, operation
from ..driver.base import get_device
from ..dtypes import DType, bool_, float64, int64, uint64
from ..kernels.random import variates
from ..kernels.workspace import unchecked_empty
from ..typing import ArrayLike, DeviceLike
from .bit_generator import Philox4x3210

_LARGEST = 2.0**53  # counts that float64 tells apart
_RANGES = {  # how the name of a parameter ends: lowest, highest, whether the lowest is left out
    "0": (0.0, math.inf, False),
    "finite": (0.0, sys.float_info.max, False),
    "positive": (0.0, sys.float_info.max, True),
    "count": (0.0, _LARGEST, False),
    "probability": (0.0, 1.0, False),
    "share": (0.0, 1.0, True),
    "part": (0.0, math.nextafter(1.0, 0.0), False),
    "above": (1.0, sys.float_info.max, True),
    "population": (0.0, 1e9, False),
}


def is_number(x: Any) -> bool:
    """Whether a parameter is one number of the host."""
    return isinstance(x, (bool, int, float, np.generic)) or (isinstance(x, np.ndarray) and not x.ndim)


def integer_parameter(name: str, parameter: str, x: Any) -> int:
    """An integer. Raises `TypeError` for what is none, and for floats with a fraction."""
    if isinstance(x, float) and x.is_integer():
        return int(x)
    try:
        return operator.index(x)  # pyright: ignore
    except TypeError:
        raise TypeError(f"{name}(): {parameter} is an integer, got {type(x).__name__} {x!r}") from None


def parameters(name: str, **by_name: Any) -> list[Any]:
    """Python floats, or float64 arrays. A name may end in one of `_RANGES`; raises `ValueError` for values
    outside it, NaN among them where there is a range, `TypeError` for what is no real number."""
    values: list[Any] = []
    device = device_of(by_name.values())
    for key, x in by_name.items():
        word, _, ending = key.partition("_")
        value: Any = float(x) if is_number(x) else _array(name, word, x, device)
        if ending:
            low, high, open_end = _RANGES[ending]
            inside = (value > low if open_end else value >= low) & (value <= high)
            if not (inside if isinstance(inside, bool) else operation("asnumpy")(inside).all()):
                legal = f"more than {low:g}" if open_end else f"from {low:g} to {high:g}"
                legal += "" if not open_end else f", and at most {high:g}" if high == 1.0 else " and finite"
                raise ValueError(f"{name}(): {word} is {legal}, got {x!r}")
        values.append(value)
    return values


def _array(name: str, parameter: str, x: Any, device: Any) -> ndarray:
    a = asarray(x) if isinstance(x, ndarray) or is_foreign(x) else asarray(x, device=device)
    if a._dtype.kind not in "biuf":
        raise TypeError(f"{name}(): {parameter} is real, got {a._dtype}")
    return a.astype(float64, copy=False)


def common(name: str, size: Any, device: Any, operands: list[Any]) -> tuple[tuple[int, ...], Any]:
    """Shape and device of a result with these parameters. Raises `ValueError` where they don't fit."""
    arrays = [x for x in operands if isinstance(x, ndarray)]
    target = arrays[0].device if arrays else get_device(device)
    if any(x.device is not target for x in arrays) or (device is not None and get_device(device) is not target):
        raise ValueError(f"{name}(): all parameters must be on the device of the result; use .to_device(...)")
    together = shapes.broadcast_shapes(*(x.shape for x in arrays))
    if size is None:
        return together, target
    shape = shapes.resolve_shape(size)
    if shapes.broadcast_shapes(together, shape) != shape:
        raise ValueError(f"{name}(): parameters of shape {together} don't broadcast to size {shape}")
    return shape, target


def column(x: ArrayLike, shape: tuple[int, ...], kind: DType, device: DeviceLike) -> ndarray:
    """A parameter as a contiguous 1-D array: of one element, or of as many as `shape` has."""
    if not isinstance(x, ndarray):
        return asarray([x], kind, device=device)
    x = x.astype(kind, copy=False)
    if x.size != 1:
        x = x._view(0, shape, shapes.broadcast_strides(x.shape, x.strides, shape))
    flat: ndarray = operation("contiguous")(x)
    return flat.reshape(flat.size)


def cast(x: ArrayLike, kind: DType) -> Any:
    """A parameter as what an operator on arrays of `kind` takes."""
    return x.astype(kind, copy=False) if isinstance(x, ndarray) else x


def target(size: Any, kind: DType, out: Any, device: DeviceLike, multiple: int) -> tuple[ndarray, ndarray]:
    """The result, and the flat array that is filled: on the same memory, with elements after the end up to a
    multiple. Raises `ValueError` and `TypeError` for an `out` that doesn't fit."""
    if out is not None:
        out_device = _check_out(out, size, kind, device)
        if out.flags.c_contiguous and out.size % multiple == 0:
            return out, out.reshape(out.size)
        shape = out.shape
    else:
        shape, out_device = (() if size is None else shapes.resolve_shape(size)), get_device(device)
    count = math.prod(shape)
    more = -(-count // multiple) * multiple
    if more == count:
        result = unchecked_empty(shape, kind, out_device)
        return result, result if len(shape) == 1 else result.reshape(count)
    padded = unchecked_empty((more,), kind, out_device)
    key = type_key(kind, len(shape), False, True, out_device)
    strides = shapes.contiguous_strides(shape, kind.itemsize)
    return unchecked_array(padded._buffer, shape, strides, count, kind, key), padded


def _check_out(out: Any, size: Any, kind: DType, device: Any) -> Any:
    if not isinstance(out, ndarray):
        raise TypeError(f"out= is a pyarray array, got {type(out).__name__}")
    if out._dtype is not kind:
        raise TypeError(f"out= has dtype {out._dtype}, the result {kind}; pass dtype={out._dtype}")
    if size is not None and shapes.resolve_shape(size) != out.shape:
        raise ValueError(f"out= has shape {out.shape}, size is {size!r}; leave size out")
    if not out.flags.writeable:
        raise ValueError("out= is read-only; pass a copy")
    if device is not None and get_device(device) is not out.device:
        raise ValueError(f"out= is on {out.device}, the result on {device}")
    return out.device


def store_out(result: ndarray, out: Any) -> ndarray:
    """`out`, with the result in it, where one is given."""
    if out is None or result is out:
        return result
    operation("assign")(out, result)
    return out


def check_bounds(first: int, last: int, kind: DType) -> None:
    """Raises `ValueError` unless there is an integer from `first` to `last` and `kind` holds both."""
    width = 8 * kind.itemsize
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind.kind == "i" else (0, (1 << width) - 1)
    high = 1 if kind is bool_ else high
    if first > last:
        raise ValueError(f"integers(): no integer is from {first} up to {last}; low must be below high")
    if first < low or last > high:
        wrong = first if first < low else last
        raise ValueError(f"integers(): {wrong} is out of bounds for {kind}; name a wider dtype")


def integers_between(
    source: Philox4x3210,
    low: ArrayLike,
    high: ArrayLike,
    size: Any,
    kind: DType,
    endpoint: bool,
    device: DeviceLike,
) -> ndarray:
    """`Generator.integers` where a bound is an array."""
    out_device = device_of((low, high)) or device
    bounds = [asarray(x, device=out_device) for x in (low, high)]
    for x in bounds:
        if x._dtype.kind not in "biu":
            raise TypeError(f"integers(): bounds are integers, got {x._dtype}")
    shape, out_device = common("integers", size, device, bounds)
    below, above = np.broadcast_arrays(*(asnumpy(x).astype(object) for x in bounds))
    above = above - (not endpoint)
    if below.size and (bad := np.flatnonzero(np.ravel(below > above))).size:
        check_bounds(int(below.flat[bad[0]]), int(above.flat[bad[0]]), kind)
    if below.size:
        check_bounds(int(below.min()), int(above.max()), kind)
    result, padded = target(shape, kind, None, out_device, 1)
    if padded.size:
        wide = [x.astype(int64).view(uint64) if x._dtype.kind == "i" else x.astype(uint64) for x in bounds]
        limits = subtract(subtract(wide[1], wide[0]), 0 if endpoint else 1)
        columns = [column(x, shape, uint64, result.device) for x in (wide[0], limits)]
        variates.fill_between(padded, source.reserve(padded.size), *columns)
    return result


def probabilities(p: ArrayLike, count: int) -> np.ndarray[Any, Any]:
    """`p` on the host. Raises `ValueError` unless they are `count` numbers of 0 or more that add up to 1."""
    odds = np.asarray(asnumpy(p), dtype=np.float64)
    if odds.shape != (count,):
        raise ValueError(f"choice(): p has a probability for each of {count} elements, got shape {odds.shape}")
    if not (odds >= 0).all() or abs(odds.sum() - 1.0) > 1e-8:
        raise ValueError("choice(): p holds probabilities of 0 or more whose sum is 1; divide by p.sum()")
    return odds
