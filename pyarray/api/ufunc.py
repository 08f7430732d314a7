"""What all elementwise functions share: operands, promotion, broadcasting, `out=`, and the short way for the common case."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import dtypes
from .. import shape as shapes
from ..array import empty, fresh, ndarray, type_key
from ..array_convert import asarray
from ..buffer_view import BufferView
from ..dtypes import DType, bool_, float32, float64
from ..jit.kernel import Func, Variant, mode
from ..kernels.map import MapOp, apart, launch_map, map_kernel
from ..memory.buffer import Buffer

_PYTHON = (bool, int, float, complex)
_ORDER = "biufc"


@dataclass(frozen=True, eq=False)
class Row:
    """An elementwise function. `kinds` are the kinds of types it is defined over; where `lift` is set, bools and integers are
    computed as that type. `result` is "same", "bool", or "real" (the component type of complex numbers)."""

    name: str
    kinds: str
    function: Func
    result: str = "same"
    lift: DType | None = None
    doc: str = ""
    op: MapOp = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "op", MapOp(self.name, self.function))

    @property
    def arity(self) -> int:
        """Number of operands."""
        return int(self.function.__wrapped__.__code__.co_argcount)

    def domain(self, operands: Sequence[Any]) -> DType:
        """Type that the operands are cast to. Raises `TypeError` for types outside `kinds`."""
        try:
            dtype = dtypes.result_type(*operands)
        except TypeError:
            if self.result != "bool":
                raise TypeError(f"{self.name}(): {_types(operands)} have no common type; cast one of them with astype") from None
            dtype = float64  # uint64 compared with a signed integer, as NumPy does
        if dtype.kind not in self.kinds:
            if self.lift is not None and dtype.kind in "biu":
                return self.lift
            legal = ", ".join(d.name for d in dtypes.of_kinds(self.kinds))
            raise TypeError(f"{self.name}() is not defined for {_types(operands)}; it takes {legal}")
        if self.result == "bool" and dtype.kind in "iu":
            return _widened(dtype, operands)
        return dtype

    def dtype_of_result(self, domain: DType) -> DType:
        """Element type of the result for operands of type `domain`."""
        if self.result == "bool":
            return bool_
        if self.result == "real" and domain.kind == "c":
            return float32 if domain.itemsize == 8 else float64
        return domain


def _types(operands: Sequence[Any]) -> str:
    return " and ".join(str(x._dtype) if isinstance(x, ndarray) else type(x).__name__ for x in operands)


def _widened(dtype: DType, operands: Sequence[Any]) -> DType:
    """For comparisons: a Python integer outside the array's type is compared by value, not refused."""
    for x in operands:
        if type(x) is int and not np.iinfo(dtype.numpy).min <= x <= np.iinfo(dtype.numpy).max:
            return dtypes.int64 if -(1 << 63) <= x < 1 << 63 and dtype is not dtypes.uint64 else float64
    return dtype


def operand(name: str, x: Any) -> Any:
    """An array, or a Python number, from what a user may pass. Raises `TypeError` for anything else."""
    if isinstance(x, ndarray) or type(x) in _PYTHON:
        return x
    if isinstance(x, (np.ndarray, np.generic)) or hasattr(x, "__dlpack__"):
        return asarray(x)
    if isinstance(x, _PYTHON):  # subclasses: enumerations of integers and the like
        return next(t(x) for t in _PYTHON if isinstance(x, t))  # type: ignore[arg-type]
    raise TypeError(f"{name}() takes arrays and numbers, got {type(x).__name__}; convert it with pyarray.asarray")


def common_device(name: str, arrays: Sequence[ndarray]) -> Any:
    """The device of all of them. Raises `ValueError` when they are on several."""
    devices = {a.device for a in arrays}
    if len(devices) > 1:
        where = ", ".join(sorted(map(str, devices)))
        raise ValueError(f"{name}(): all arrays must be on one device, got {where}; move them with .to_device(...)")
    return next(iter(devices))


def call(row: Row, inputs: Sequence[Any], out: ndarray | None) -> ndarray:
    """The function of a row, the general way."""
    operands = [operand(row.name, x) for x in inputs]
    arrays = [x for x in operands if isinstance(x, ndarray)]
    if not arrays:
        operands[0] = asarray(operands[0])
        arrays = [operands[0]]
    domain = row.domain(operands)
    if row.result == "same" and domain.kind in "iu":
        _check_integers(row, domain, operands)
    return compute(row.op, domain, row.dtype_of_result(domain), operands, out)


def _check_integers(row: Row, domain: DType, operands: Sequence[Any]) -> None:
    for x in operands:
        if type(x) is int and not np.iinfo(domain.numpy).min <= x <= np.iinfo(domain.numpy).max:
            raise OverflowError(f"{row.name}(): {x} is out of range for {domain}; cast the array with astype first")
    if row.name == "pow" and type(operands[1]) is int and operands[1] < 0:
        raise ValueError("pow(): an integer to a negative integer power is no integer; cast the array to a floating type first")


def compute(op: MapOp, domain: DType, dtype: DType, operands: Sequence[Any], out: ndarray | None) -> ndarray:
    """Broadcast, find or check the output, launch. Raises `ValueError` and `TypeError` for an output that doesn't fit."""
    arrays = [x for x in operands if isinstance(x, ndarray)]
    device = common_device(op.name, arrays if out is None else [*arrays, out])
    shape = shapes.broadcast_shapes(*(a._shape for a in arrays))
    result = compute_out(op.name, out, shape, dtype, device)
    launch_map(op, domain, result, operands, fresh=out is None)
    return result


def compute_out(name: str, out: Any, shape: tuple[int, ...], dtype: DType, device: Any) -> ndarray:
    """`out` if it fits a result of this shape and type, or a fresh array. Raises `ValueError` or `TypeError` if it doesn't."""
    if out is None:
        return empty(shape, dtype, device)
    if not isinstance(out, ndarray):
        raise TypeError(f"{name}(): out= must be a pyarray array, got {type(out).__name__}")
    if out._shape != shape:
        raise ValueError(f"{name}(): out= has shape {out._shape}, the result has shape {shape}")
    if not out._writeable:
        raise ValueError(f"{name}(): out= is read-only; pass a copy")
    if 0 in out._strides and any(n > 1 and s == 0 for n, s in zip(out._shape, out._strides, strict=True)):
        raise ValueError(f"{name}(): out= is broadcast (stride 0), so elements would be written more than once; pass a copy")
    if _ORDER.index(dtype.kind) > _ORDER.index(out._dtype.kind) and not (dtype.kind == "u" and out._dtype.kind == "i"):
        raise TypeError(f"{name}(): a result of {dtype} can't be stored in out= of {out._dtype}; cast with astype")
    return out


# ---- the short way: contiguous operands of one shape, seen before


_plans_made = 0


def _type_of(x: Any) -> Any:
    return x._key if isinstance(x, ndarray) else type(x)


def make_plan(row: Row, operands: Sequence[Any]) -> Callable[..., Any] | None:
    """A function for these types, if all arrays are contiguous: takes operands, gives the result, or None if shapes differ."""
    arrays = [x for x in operands if isinstance(x, ndarray)]
    if not arrays or any(x._key >> 16 & 1 for x in arrays) or any(not isinstance(x, ndarray) and type(x) not in _PYTHON for x in operands):
        return None
    domain = row.domain(operands)
    dtype, first = row.dtype_of_result(domain), arrays[0]
    if any(type(x) is int for x in operands) and (row.result == "bool" or row.name == "pow"):
        return None  # the value of the integer matters
    sample = empty(first._shape, dtype, first.device)
    patterns = tuple((0,) if isinstance(x, ndarray) else None for x in operands)
    flat = [x._view(0, (x._size,), (x._dtype.itemsize,)) if isinstance(x, ndarray) else x for x in (sample, *operands)]
    variant = map_kernel(row.op, domain, 1, patterns).variant(tuple(flat))
    return _plan(row, variant, dtype, tuple(isinstance(x, ndarray) for x in operands), sample._key, patterns, domain)


@functools.lru_cache(maxsize=4096)
def strides_of(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """`shape.contiguous_strides`, remembered."""
    return shapes.contiguous_strides(shape, itemsize)


def _plan(row: Row, variant: Variant, dtype: DType, which: tuple[bool, ...], key: int, patterns: Any, domain: DType) -> Callable[..., Any]:
    launch, itemsize = variant.launch, dtype.itemsize
    allocate, kernel = Buffer.allocate, map_kernel(row.op, domain, 1, patterns)

    def output(like: ndarray) -> ndarray:
        shape, size = like._shape, like._size
        return fresh(allocate(like._buffer.device, size * itemsize), shape, strides_of(shape, itemsize), size, dtype, key)

    def unary(x: ndarray) -> ndarray:
        out = output(x)
        if failure := launch(out, x):
            kernel._report(failure, launch)
        return out

    def arrays(x: ndarray, y: ndarray) -> ndarray | None:
        if x._shape != y._shape:
            return None
        out = output(x)
        if failure := launch(out, x, y):
            kernel._report(failure, launch)
        return out

    def scalar_right(x: ndarray, y: Any) -> ndarray:
        out = output(x)
        if failure := launch(out, x, y):
            kernel._report(failure, launch)
        return out

    def scalar_left(x: Any, y: ndarray) -> ndarray:
        out = output(y)
        if failure := launch(out, x, y):
            kernel._report(failure, launch)
        return out

    if len(which) == 1:
        return unary
    return arrays if all(which) else scalar_right if which[0] else scalar_left


def make_function(row: Row) -> Callable[..., ndarray]:
    """The public function of a row."""
    made = (_make_unary if row.arity == 1 else _make_binary)(row, foreign=False)
    made.__name__ = made.__qualname__ = row.name
    made.__doc__ = row.doc
    made.__module__ = "pyarray"
    made.__pyarray_builtin__ = row.name  # type: ignore[attr-defined]
    made.row = row  # type: ignore[attr-defined]
    return made


def _make_unary(row: Row, foreign: bool) -> Callable[..., Any]:
    plans: dict[Any, Any] = {}

    def function(x: Any, /, *, out: ndarray | None = None) -> Any:
        if out is None:
            try:
                return plans[mode.debug, x._key](x)
            except (KeyError, AttributeError):
                if isinstance(x, ndarray) and x._size:
                    plan = make_plan(row, (x,))
                    if plan is not None:
                        plans[mode.debug, x._key] = plan
        return call(row, (x,), out)

    return function


def _make_binary(row: Row, foreign: bool) -> Callable[..., Any]:
    """`foreign`: answer NotImplemented for operands that aren't ours, as operators must."""
    plans: dict[Any, Any] = {}

    def function(x1: Any, x2: Any, /, *, out: ndarray | None = None) -> Any:
        t1, t2 = type(x1), type(x2)
        k1 = x1._key if t1 is ndarray or t1 is BufferView else t1
        k2 = x2._key if t2 is ndarray or t2 is BufferView else t2
        if out is None:
            plan = plans.get((mode.debug, k1, k2))
            if plan is not None:
                try:
                    result = plan(x1, x2)
                except (OverflowError, TypeError, ValueError, ArithmeticError, _struct_error):
                    result = None  # the general way says what is wrong
                if result is not None:
                    return result
        if foreign and not (known(t1) and known(t2)):
            return NotImplemented
        result = call(row, (x1, x2), out)
        if out is None and (mode.debug, k1, k2) not in plans:
            plans[mode.debug, k1, k2] = make_plan(row, (x1, x2)) if result._size else None
        return result

    return function


def make_operator(row: Row) -> Callable[..., Any]:
    """The function of a row as a dunder method."""
    return (_make_unary if row.arity == 1 else _make_binary)(row, foreign=True)


def known(kind: type) -> bool:
    """Whether operators take operands of this type."""
    return issubclass(kind, (ndarray, np.ndarray, np.generic, bool, int, float, complex)) or hasattr(kind, "__dlpack__")


_struct_error = __import__("struct").error
__all__ = ["Row", "apart", "call", "compute", "make_function", "make_operator", "operand", "type_key"]
