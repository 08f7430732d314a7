"""Ufuncs: operands, promotion, broadcasting, `out=` and the launch, for all elementwise functions.
`ufunc_functions.py` has the public functions."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes, shapes
from ...array import STRIDED, empty, ndarray, type_key, unchecked_array
from ...array_convert import asarray
from ...array_hooks import ScalarTracer, Tracer, is_foreign, on_several_devices
from ...array_views import repetition
from ...dtypes import DType, bool_, float64, real_of
from ...jit.functions import Func, func
from ...kernels.elementwise.elementwise import MapOp, launch_map
from ...lang.markers import kernel_math as language
from ...memory.buffer import Buffer

PYTHON = (bool, int, float, complex)
ARRAYS = (ndarray, Tracer)
_ORDER = "buifc"
_LARGEST_FLOAT = int(sys.float_info.max)  # as numbers are passed in float64


@dataclass(frozen=True, eq=False)
class Ufunc:
    """An elementwise function. `kinds` are the kinds of types it is defined over; where `promote_to` is set,
    bools and integers are computed as that type. `result` is "same", "bool", or "real" (the component type of
    complex numbers). `op` casts its operands to the domain; `exact` takes them as they are."""

    name: str
    kinds: str
    function: Func
    result: str = "same"
    promote_to: DType | None = None
    doc: str = ""
    by_number: Mapping[DType, Func] = field(default_factory=dict)
    op: MapOp = field(init=False)
    exact: MapOp = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "op", MapOp(self.name, self.function, by_number=self.by_number))
        object.__setattr__(self, "exact", MapOp(self.name, self.function, raw=(0, 1)))

    @property
    def arity(self) -> int:
        """Number of operands."""
        return int(self.function.__wrapped__.__code__.co_argcount)

    def domain(self, operands: Sequence[Any]) -> DType | None:
        """The type that the operands are cast to; None: they are compared by value, each in its own type (uint64
        with a signed integer). Raises `TypeError` for types outside `kinds`."""
        return _domain(self, tuple([_type_of(x) for x in operands]))

    def dtype_of_result(self, domain: DType | None) -> DType:
        """Element type of the result for operands of type `domain`."""
        if self.result == "bool" or domain is None:
            return bool_
        return real_of(domain) if self.result == "real" else domain


def _type_of(x: Any) -> Any:
    """The code of an array's dtype, or the type of a Python number."""
    return getattr(x, "_weak_type", None) or (x._dtype.code if isinstance(x, ARRAYS) else type(x))


# A function of the ufunc and the types alone; values are tested before.
@functools.lru_cache(maxsize=4096)
def _domain(ufunc: Ufunc, types: tuple[Any, ...]) -> DType | None:
    """`types` are codes of dtypes and Python's types of numbers."""
    samples = [dtypes.ALL[t] if isinstance(t, int) else t() for t in types]
    names = " and ".join(str(x) if isinstance(x, DType) else type(x).__name__ for x in samples)
    try:
        dtype = dtypes.result_type(*samples)
    except TypeError:
        if ufunc.result == "bool":
            return None
        what = f"{ufunc.name}(): {names} have no common type"
        raise TypeError(f"{what}; cast one of them with astype") from None
    if dtype.kind in ufunc.kinds:
        return dtype
    if ufunc.promote_to is not None and dtype.kind in "biu":
        return ufunc.promote_to
    legal = ", ".join(d.name for d in dtypes.of_kinds(ufunc.kinds))
    raise TypeError(f"{ufunc.name}() is not defined for {names}; it takes {legal}")


def as_operands(name: str, inputs: Sequence[Any]) -> list[Any]:
    """`operand` of each. NumPy's arrays and numbers, and sequences, are put on the first array's device."""
    device = device_of(inputs)
    return [operand(name, x, device) for x in inputs]


def device_of(inputs: Iterable[Any]) -> Any:
    """The device of the first array, None without one."""
    return next((x.device for x in inputs if isinstance(x, ndarray)), None)


def as_arrays(name: str, *inputs: Any) -> list[ndarray]:
    """`as_operands`, numbers as arrays, too."""
    operands = as_operands(name, inputs)
    device = device_of(operands)
    return [x if isinstance(x, ndarray) else asarray(x, device=device) for x in operands]


def as_array_like(*values: Any) -> list[ndarray]:
    """All as arrays: what isn't one, of this or another library, is put on the first array's device."""
    arrays = [asarray(x) if is_foreign(x) else x for x in values]
    device = device_of(arrays)
    return [x if isinstance(x, ndarray) else asarray(x, device=device) for x in arrays]


def axis_or_flat(x: ndarray, axis: Any) -> tuple[ndarray, int]:
    """The array and its axis, counted from the front; for None the flattened array."""
    return (x.reshape(x.size), 0) if axis is None else (x, shapes.normalize_axis(axis, x.ndim))


def operand(name: str, x: Any, device: Any = None) -> Any:
    """An array, or a Python number, from what a user may pass. Raises `TypeError` for anything else."""
    if isinstance(x, ndarray) or type(x) in PYTHON:
        return x
    if isinstance(x, (np.ndarray, np.generic, list, tuple)):
        return asarray(x, device=device)
    if isinstance(x, Tracer):
        return x
    if is_foreign(x):
        return asarray(x)
    if isinstance(x, PYTHON):  # of a subclass, like an enumeration of integers
        return next(t(x) for t in PYTHON if isinstance(x, t))  # type: ignore[arg-type]
    advice = "pass a field, a['x']" if hasattr(x, "__pyarray_layout__") else "convert it with pyarray.asarray"
    raise TypeError(f"{name}() takes arrays and numbers, got {type(x).__name__}; {advice}")


def common_device(name: str, operands: Sequence[Any], names: Sequence[str] = ("x1", "x2")) -> Any:
    """The device of the arrays among the operands, which are called `names`. Raises `ValueError` when they
    are on several."""
    arrays = [(what, x) for what, x in zip(names, operands, strict=False) if isinstance(x, ndarray)]
    device = arrays[0][1]._buffer.device
    if any(x._buffer.device is not device for _, x in arrays):
        raise on_several_devices(name, arrays)
    return device


def call(ufunc: Ufunc, inputs: Sequence[Any], out: ndarray | None) -> ndarray:
    """The general call of a ufunc, without a fast path."""
    operands = as_operands(ufunc.name, inputs)
    if not any(isinstance(x, ARRAYS) and not isinstance(x, ScalarTracer) for x in operands):
        operands[0] = asarray(operands[0])
    domain = ufunc.domain(operands)
    if domain is None:
        return compute(ufunc.exact, float64, bool_, operands, out)
    for k, x in enumerate(operands):
        if type(x) is int and not can_hold(domain, x):
            if ufunc.result != "bool":
                what = f"{ufunc.name}(): {x} is out of range for {domain}"
                raise OverflowError(f"{what}; cast the array with astype first")
            # It compares with all values of the type as infinity does.
            operands[k], domain = math.inf if x > 0 else -math.inf, float64
    if ufunc.name == "pow" and domain.kind in "iu" and type(operands[1]) is int and operands[1] < 0:
        what = "an integer to a negative integer power is no integer"
        raise ValueError(f"pow(): {what}; cast the array to a floating type first")
    if ufunc.name == "pow" and domain.kind in "fiu":
        exponent = operands[1]
        if type(exponent) in (int, float) and exponent in (POWERS if domain.kind == "f" else (2,)):
            return compute(POWERS[exponent].op, domain, domain, operands[:1], out)
        if isinstance(exponent, ScalarTracer) and domain.kind == "f":
            return compute(_ANY_POWER, domain, domain, operands, out)
    return compute(ufunc.op, domain, ufunc.dtype_of_result(domain), operands, out)


class Power(NamedTuple):
    """How floats are raised to one exponent: the operation, and its public function, such as `square`."""

    op: MapOp
    function: Callable[..., Any]


# by exponent, as in NumPy's `**`: rounded once, and quicker. `elementwise` fills it.
POWERS: dict[float, Power] = {}


def _by_exponent(x: Any, y: Any) -> Any:
    return x * x if y == 2 else 1 / x if y == -1 else language.sqrt(x) if y == 0.5 else x**y


_ANY_POWER = MapOp("pow", func(_by_exponent))  # of a number that is known at the launch: the same bits


def can_hold(dtype: DType, value: int) -> bool:
    """Whether the type can represent the Python integer; floats always can, if only as infinity."""
    if dtype.kind not in "iu":
        return -_LARGEST_FLOAT <= value <= _LARGEST_FLOAT
    bits = 8 * dtype.itemsize
    return 0 <= value < 1 << bits if dtype.kind == "u" else -1 << bits - 1 <= value < 1 << bits - 1


def compute(
    op: MapOp,
    domain: DType,
    dtype: DType,
    operands: Sequence[Any],
    out: ndarray | None,
    names: Sequence[str] = ("x1", "x2"),
    larger: bool = True,
) -> ndarray:
    """Broadcast, find or check the output, launch. With `larger`, the result is broadcast into an output that
    has more axes or elements. Raises `ValueError` and `TypeError` for an output that doesn't fit."""
    tracer = next((x for x in operands if isinstance(x, Tracer)), None)
    if tracer is not None:
        return tracer._compute(op, domain, dtype, operands, out)
    arrays = [x for x in operands if isinstance(x, ndarray)]
    device = common_device(op.name, operands, names)
    if out is None:
        result = result_like(arrays, dtype, device)
    else:
        shape = _broadcast(tuple([a._shape for a in arrays]))
        result = compute_out(op.name, out, shape, dtype, device, larger)
    launch_map(op, domain, result, operands, fresh=out is None)
    return result


# A function of its arguments alone.
@functools.lru_cache(maxsize=4096)
def _broadcast(sizes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return shapes.broadcast_shapes(*sizes)


def result_like(arrays: Sequence[ndarray], dtype: DType, device: Any) -> ndarray:
    """A new array for the result: in the common memory order of the operands that have its shape, else in C order.
    Raises `ValueError` for shapes that don't broadcast."""
    shape = arrays[0]._shape if len(arrays) == 1 else _broadcast(tuple([a._shape for a in arrays]))
    same_shape = [a for a in arrays if a._shape == shape]
    like = tuple([a._strides for a in same_shape]) if all(a._key & STRIDED for a in same_shape) else ()
    strides, size, strided = result_layout(shape, dtype.itemsize, like)
    key = type_key(dtype, len(shape), strided, True, device)
    return unchecked_array(Buffer.allocate(device, size * dtype.itemsize), shape, strides, size, dtype, key)


# A function of its arguments alone: shapes and strides, no array.
@functools.lru_cache(maxsize=4096)
def result_layout(
    shape: tuple[int, ...], itemsize: int, like: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], int, bool]:
    """Strides, size, and whether strided, of a result without gaps whose axes are ordered as those of all
    the strides in `like`."""
    size = shapes.size(shape)
    axes = range(len(shape))
    orders = {shapes.axis_order(shape, steps, itemsize, "K") for steps in like}
    strides = shapes.contiguous_strides(shape, itemsize)
    if len(orders) == 1 and 0 not in shape:
        order = next(iter(orders))
        packed = shapes.contiguous_strides([shape[k] for k in order], itemsize)
        strides = tuple(packed[order.index(k)] for k in axes)
    return strides, size, not shapes.is_contiguous(shape, strides, itemsize)


def compute_out(
    name: str, out: Any, shape: tuple[int, ...], dtype: DType, device: Any, larger: bool = False
) -> ndarray:
    """`out` if it fits a result of this shape and type, or a fresh array; with `larger`, one that the result
    broadcasts to fits, too. Raises `ValueError` or `TypeError` if it doesn't."""
    if out is None:
        return empty(shape, dtype, device)
    if not isinstance(out, ndarray):
        what = f"out= must be a pyarray array, got {type(out).__name__}"
        raise TypeError(f"{name}(): {what}; pass pyarray.asarray of it, or leave it out")
    if out.device is not device:
        what = f"out= is on {out.device}, the operands are on {device}"
        raise ValueError(f"{name}(): {what}; pass an array on {device}, or none")
    if out._shape != shape and not (larger and _broadcasts_to(shape, out._shape)):
        what = f"out= has shape {out._shape}, the result has shape {shape}"
        raise ValueError(f"{name}(): {what}; pass an array of shape {shape}, or none")
    if why := repetition(out):
        raise ValueError(f"{name}(): out= is read-only: {why}; pass a copy")
    if not out._writeable:
        raise ValueError(f"{name}(): out= is read-only; pass a copy")
    if _ORDER.index(dtype.kind) > _ORDER.index(out._dtype.kind):  # NumPy's "same_kind"
        what = f"a result of {dtype} can't be stored in out= of {out._dtype}"
        raise TypeError(f"{name}(): {what}; pass one of {dtype}, or cast the operands with astype")
    return out


def _broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of `shape` broadcasts to `target`."""
    ends = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(m in (1, n) for m, n in ends)


def store_out(name: str, result: ndarray, out: ndarray | None) -> ndarray:
    """`result`, copied to `out` if that is given. Raises as `compute_out`."""
    if out is None:
        return result
    compute_out(name, out, result._shape, result._dtype, result.device)[...] = result
    return out


class Strides(dict[tuple[int, ...], tuple[int, ...]]):
    """A cached mapping from shapes to their C-order strides, for elements of `itemsize` bytes."""

    __slots__ = ("itemsize",)

    def __init__(self, itemsize: int):
        super().__init__()
        self.itemsize = itemsize

    def __missing__(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if len(self) >= 4096:
            self.clear()
        strides = self[shape] = shapes.contiguous_strides(shape, self.itemsize)
        return strides


STRIDES = {size: Strides(size) for size in (1, 2, 4, 8, 16)}


def is_operand_type(kind: type) -> bool:
    """Whether operators take operands of this type."""
    legal = (ndarray, Tracer, np.ndarray, np.generic, list, tuple, *PYTHON)
    return issubclass(kind, legal) or is_foreign(kind)
