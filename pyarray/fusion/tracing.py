"""Tracers stand for arrays and numbers while a function is traced, and record what it does as a graph.

Functions of the namespace come to a tracer in `asarray`, `ufunc.compute` and `statistical.reduction`, which call
its methods; so every function made of these can be traced. Sizes are numbers that are not known yet.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from .. import shapes
from .._core import Dispatcher
from ..api.core.ufunc import PYTHON
from ..api.methods.operators import general_operators
from ..array import ndarray
from ..array_hooks import ScalarTracer, Tracer, call_function, call_ufunc
from ..dtypes import DType, asdtype, result_type
from ..errors import CompileError
from ..jit.report import caller, is_internal
from ..kernels.elementwise.elementwise import COPY, MapOp
from ..kernels.reduce.reduce import ReduceOp

_FULL = slice(None)
_WRAPPERS = ("keywords.py", "replay.py", "torch_compile.py")  # files of what is around functions of the library


@dataclass(frozen=True, eq=False)
class Node:
    """An array in the graph of a traced function."""

    dtype: DType
    ndim: int


@dataclass(frozen=True, eq=False)
class Leaf(Node):
    """The array at `position` of a launch: arguments, then captured arrays, then results of reductions."""

    position: int


@dataclass(frozen=True, eq=False)
class Apply(Node):
    """`op` of operands cast to `domain`: nodes, numbers not known yet, and Python's numbers."""

    op: MapOp
    domain: DType
    operands: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class View(Node):
    """The same elements under other axes: `how` is "reshape" or "broadcast" (`items` are sizes), "permute"
    (axes) or "index" (an item per axis, None for a new one)."""

    source: Node
    how: str
    items: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Reduce(Node):
    """`source` over `axes`; the others are the axes of the result."""

    source: Node
    op: ReduceOp
    axes: tuple[int, ...]
    kind: DType


_PRODUCTS = frozenset(("matmul", "dot", "inner", "vecdot", "tensordot", "einsum"))
_NO_PRODUCT = "can't be traced: products of matrices have kernels of their own"
_NO_KERNEL = "can't be traced: it stores into arrays, and a fused function makes new ones of its arguments"
_AROUND = "call it before or after the fused function"
_OUTSIDE = (
    "multiply outside and pass the product as an argument; "
    "pyarray.gemm adds a bias and applies an activation in the product's own kernel"
)


@dataclass(eq=False)
class Trace:
    """One run of a function on tracers, on one device. `arguments` is how many arrays it was given."""

    name: str
    device: Any
    arguments: int
    captured: list[ndarray] = field(default_factory=list)
    reductions: list[Reduce] = field(default_factory=list)
    # a number, its lowest and highest value: for others the function runs eagerly, for its errors
    limits: list[tuple[NumberTracer, float, float]] = field(default_factory=list)
    is_explained: bool = False  # whether the exception already says what is wrong

    def fail(self, what: str, instead: str) -> NoReturn:
        """Raises `CompileError` with the user's line."""
        raise self.error(caller() or ("", 0), what, instead)

    def error(self, location: tuple[str, int], what: str, instead: str) -> CompileError:
        """The exception for what the line at `location` does."""
        path, line = location
        return CompileError(f"{path}:{line}: {self.name}(): {what}; {instead}", path, line)

    def explained(self, error: Exception) -> CompileError | None:
        """The exception for a library function that can't be traced. None where the user's own line failed, or
        the exception says what is wrong."""
        if isinstance(error, CompileError) and self.is_explained:
            return None
        trace, location, called, owner = error.__traceback__, None, None, None
        while trace is not None:
            code = trace.tb_frame.f_code
            if not is_internal(code.co_filename):
                location, called = (code.co_filename, trace.tb_lineno), None
            elif called is None and not code.co_filename.endswith(_WRAPPERS):
                called, owner = code, trace.tb_frame.f_locals.get("self")
                if isinstance(owner, Dispatcher):
                    break  # what it calls in turn may be anybody's
            trace = trace.tb_next
        if location is None or called is None or called.co_filename == __file__:
            return None
        if isinstance(owner, Dispatcher):
            return self.error(location, f"the kernel {owner.__name__} {_NO_KERNEL}", _AROUND)
        name = called.co_name.lstrip("_")
        if name in _PRODUCTS:
            return self.error(location, f"{name}() {_NO_PRODUCT}", _OUTSIDE)
        what = f"{name}() can't be traced: it isn't elementwise, and no reduction that fuse knows"
        return self.error(location, what, _AROUND)

    def capture(self, array: ndarray) -> Leaf:
        """An array that is no argument: from a global or a closure."""
        self.captured.append(array)
        return Leaf(array._dtype, array.ndim, -len(self.captured))  # resolved by Plan._position


def _symbolic(compute: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: NumberTracer, other: Any) -> Any:
        if isinstance(other, NumberTracer) or type(other) in PYTHON:
            return NumberTracer.of(self._trace, compute, self, other)
        return NotImplemented

    return method


class NumberTracer(ScalarTracer):
    """A Python number that is known at the launch: an argument, a size, or computed from them."""

    __slots__ = ("_trace", "_weak_type", "argument", "scalars", "value")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(self, trace: Trace, kind: type, value: Callable[[Any], Any], scalars: bool):
        self._trace, self._weak_type, self.value, self.scalars = trace, kind, value, scalars
        self.argument: int | None = None  # its number among those of a launch, where it is one of them

    @classmethod
    def of(cls, trace: Trace, compute: Callable[..., Any], *operands: Any) -> NumberTracer:
        """`compute` of numbers, known or not."""
        kinds = [x._weak_type if isinstance(x, NumberTracer) else type(x) for x in operands]
        kind = type(compute(*(t(1) for t in kinds)))

        def value(environment: Any) -> Any:
            result = compute(*(x.value(environment) if isinstance(x, NumberTracer) else x for x in operands))
            if type(result) is not kind:
                raise TypeError(f"expected {kind.__name__}, got {type(result).__name__}")
            return result

        return cls(trace, kind, value, any(x.scalars for x in operands if isinstance(x, NumberTracer)))

    @classmethod
    def of_argument(cls, trace: Trace, kind: type, argument: int) -> NumberTracer:
        """The argument of the launch with this number."""
        number = cls(trace, kind, lambda environment: environment.numbers[argument], True)
        number.argument = argument
        return number

    def _as_array(self) -> ArrayTracer:
        kind = result_type(self._weak_type(1))
        return ArrayTracer(self._trace, Apply(kind, 0, COPY, kind, (self,)))

    def _compute(self, op: MapOp, domain: DType, dtype: DType, operands: Sequence[Any], out: Any) -> ArrayTracer:
        return apply(self._trace, op, domain, dtype, operands, out)

    def __neg__(self) -> NumberTracer:
        return NumberTracer.of(self._trace, operator.neg, self)

    def __pos__(self) -> NumberTracer:
        return self

    def __abs__(self) -> NumberTracer:
        return NumberTracer.of(self._trace, abs, self)

    def _value_unknown(self, *_: Any) -> NoReturn:
        what = "the value of a number or a size is not known while the function is traced"
        instead = "name the parameter in fuse(static=...), which compiles one kernel for each of its values"
        self._trace.fail(what, f"{instead}, or use pa.where")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = __round__ = _value_unknown
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _value_unknown


def _array_operator(name: str) -> Callable[..., Any]:
    def method(self: ArrayTracer, *others: Any) -> Any:
        compute = general_operators.get(name) or getattr(ndarray, name)
        return compute(self, *others)

    return method


class ArrayTracer(Tracer):
    """Stands for an array: dtype and rank are known, sizes and elements are not."""

    __slots__ = ("_node", "_trace")
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 200.0
    __array_ufunc__ = call_ufunc
    __array_function__ = call_function
    _key = None  # under which nothing is found

    def __init__(self, trace: Trace, node: Node):
        self._trace, self._node = trace, node

    # what is known

    @property
    def _dtype(self) -> DType:
        return self._node.dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._node.dtype.numpy

    @property
    def ndim(self) -> int:
        return self._node.ndim

    @property
    def device(self) -> Any:
        return self._trace.device

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(self._size(k) for k in range(self.ndim))

    _shape = shape

    def _size(self, axis: int) -> NumberTracer:
        node = self._node
        return NumberTracer(self._trace, int, lambda environment: environment.shape(node)[axis], False)

    @property
    def size(self) -> Any:
        return math.prod(self.shape)

    # what functions of the namespace ask for

    def _compute(self, op: MapOp, domain: DType, dtype: DType, operands: Sequence[Any], out: Any) -> ArrayTracer:
        return apply(self._trace, op, domain, dtype, operands, out)

    def _reduce(self, op: ReduceOp, axis: Any, keepdims: bool, dtype: DType, kind: DType, out: Any) -> ArrayTracer:
        no_out(self._trace, out)
        axes = shapes.normalize_axes(axis, self.ndim)
        node = Reduce(dtype, self.ndim - len(axes), self._node, op, axes, kind)
        self._trace.reductions.append(node)
        result = ArrayTracer(self._trace, node)
        if not keepdims or not axes:
            return result
        return result._view("index", tuple(None if k in axes else _FULL for k in range(self.ndim)), self.ndim)

    def _view(self, how: str, items: tuple[Any, ...], ndim: int) -> ArrayTracer:
        return ArrayTracer(self._trace, View(self._dtype, ndim, self._node, how, items))

    def _broadcast(self, shape: Any) -> ArrayTracer:
        sizes = _sizes(shape)
        return self._view("broadcast", sizes, len(sizes))

    def _refuse_product(self, other: Any) -> NoReturn:
        self._trace.fail(f"@ {_NO_PRODUCT}", _OUTSIDE)

    # the methods of arrays that give views

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> ArrayTracer:
        sizes = _sizes(shape[0] if len(shape) == 1 else shape)
        if order == "F":
            return self.transpose().reshape(sizes[::-1]).transpose()
        self._in_c_order(order)
        return self._view("reshape", sizes, len(sizes))

    def _in_c_order(self, order: str) -> None:
        if order != "C":
            what = f"order={order!r} goes by strides, which are not known while the function is traced"
            self._trace.fail(what, "write order='C' or order='F'")

    def transpose(self, *axes: Any) -> ArrayTracer:
        order = axes[0] if len(axes) == 1 and (axes[0] is None or hasattr(axes[0], "__iter__")) else axes
        permuted = shapes.permute(order or None, range(self.ndim))[0]
        return self._view("permute", tuple(permuted), self.ndim)

    def swapaxes(self, axis1: int, axis2: int) -> ArrayTracer:
        order = list(range(self.ndim))
        first, second = (shapes.normalize_axis(axis, self.ndim) for axis in (axis1, axis2))
        order[first], order[second] = second, first
        return self.transpose(order)

    @property
    def T(self) -> ArrayTracer:
        return self.transpose()

    @property
    def mT(self) -> ArrayTracer:
        return self.swapaxes(-1, -2)

    def ravel(self, order: str = "C") -> ArrayTracer:
        return self.reshape(-1, order=order)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> ArrayTracer:
        if axis is None:
            self._trace.is_explained = True
            self._trace.fail("which sizes are 1 is not known", "name the axes: squeeze(axis=...)")
        axes = shapes.normalize_axes(axis, self.ndim)
        sizes = tuple(1 if k in axes else self._size(k) for k in range(self.ndim))
        index = tuple(0 if k in axes else _FULL for k in range(self.ndim))
        return self._view("broadcast", sizes, self.ndim)._view("index", index, self.ndim - len(axes))

    def astype(self, dtype: Any, *, copy: bool = True) -> ArrayTracer:
        kind = asdtype(dtype)
        if self._dtype.kind == "c" and kind.kind not in "cb":
            raise TypeError(f"{self._dtype} can't be cast to {kind}: take .real, .imag or abs() first")
        return self if kind is self._dtype else apply(self._trace, COPY, self._dtype, kind, (self,), None)

    def copy(self, order: str = "K") -> ArrayTracer:
        return self  # the layout of results is fuse's own

    def __getitem__(self, key: Any) -> ArrayTracer:
        items = list(key) if isinstance(key, tuple) else [key]
        for item in items:
            plain = item is None or item is Ellipsis or isinstance(item, (int, slice))
            if not plain or isinstance(item, bool):
                self._trace.fail(
                    f"an index by {type(item).__name__} can't be traced",
                    "index before or after, or use pa.where",
                )
        used = sum(item is not None and item is not Ellipsis for item in items)
        if used > self.ndim:
            raise IndexError(f"too many indices: {used} for an array of {self.ndim} dimensions")
        at = items.index(Ellipsis) if Ellipsis in items else len(items)
        items[at : at + 1] = [_FULL] * (self.ndim - used)
        return self._view("index", tuple(items), sum(not isinstance(item, int) for item in items))

    # what can't be

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        method = getattr(ndarray, name, None)
        if name in _METHODS and method is not None:
            return lambda *args, **options: method(self, *args, **options)
        self._trace.fail(
            f".{name} can't be traced: it isn't elementwise, and no reduction that fuse knows",
            "call it before or after the fused function",
        )

    def _elements_unknown(self, *_: Any, **__: Any) -> NoReturn:
        self._trace.fail(
            "elements are not known while the function is traced, so that Python can't decide by them",
            "write pa.where(condition, a, b) in the place of if, and loops over arrays outside",
        )

    def __len__(self) -> NoReturn:
        self._trace.fail(
            "len() has no value while the function is traced, since no size is compiled in",
            "write .shape[0], which is a number known at the launch",
        )

    __bool__ = __int__ = __float__ = __complex__ = __index__ = __iter__ = __contains__ = _elements_unknown
    item = tolist = get = __array__ = __dlpack__ = _elements_unknown

    def _refuse_change(self, *_: Any) -> NoReturn:
        self._trace.fail("a fused function changes no array", "write x = x + y, or pa.where(...)")

    __setitem__ = _refuse_change


_METHODS = frozenset(("sum", "prod", "min", "max", "mean", "var", "std", "any", "all", "clip", "conj", "round"))


def _swapped(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda y, x: compute(x, y)


def _install() -> None:
    arithmetic = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
    bits = ("and", "or", "xor", "lshift", "rshift")
    for name in arithmetic + bits:
        setattr(ArrayTracer, f"__{name}__", _array_operator(f"__{name}__"))
        setattr(ArrayTracer, f"__r{name}__", _array_operator(f"__r{name}__"))
        setattr(ArrayTracer, f"__i{name}__", ArrayTracer._refuse_change)
        compute = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        setattr(NumberTracer, f"__{name}__", _symbolic(compute))
        setattr(NumberTracer, f"__r{name}__", _symbolic(_swapped(compute)))
    for name in ("matmul", "rmatmul", "imatmul"):
        setattr(ArrayTracer, f"__{name}__", ArrayTracer._refuse_product)
    others = ("neg", "pos", "abs", "invert", "divmod", "rdivmod", "round")
    for name in ("eq", "ne", "lt", "le", "gt", "ge", *others):
        setattr(ArrayTracer, f"__{name}__", _array_operator(f"__{name}__"))


_install()


def no_out(trace: Trace, out: Any) -> None:
    """Raises `CompileError` for an `out` that a traced function gives."""
    if out is not None:
        trace.is_explained = True
        trace.fail("out= has no meaning in a fused function", "return the result")


def _sizes(shape: Any) -> tuple[Any, ...]:
    sizes = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    return tuple(n if isinstance(n, NumberTracer) else operator.index(n) for n in sizes)


def apply(trace: Trace, op: MapOp, domain: DType, dtype: DType, operands: Sequence[Any], out: Any) -> ArrayTracer:
    """The node of an elementwise operation, as `ufunc.compute` was asked for it."""
    no_out(trace, out)
    nodes: list[Any] = []
    for k, x in enumerate(operands):
        if isinstance(x, NumberTracer):
            if x._weak_type is int and domain.kind in "iu" and k not in op.raw:
                bits = 8 * domain.itemsize
                low, high = (0, 1 << bits) if domain.kind == "u" else (-1 << bits - 1, 1 << bits - 1)
                trace.limits.append((x, max(low, 0) if op.name == "pow" else low, high - 1))
            nodes.append(x)
        elif isinstance(x, ArrayTracer):
            nodes.append(x._node)
        elif isinstance(x, ndarray):
            nodes.append(trace.capture(x))
        elif op.name == "pow" and k == 1 and domain.kind in "fc":
            nodes.append(NumberTracer.of(trace, operator.pos, x))  # compiled in, it rounds otherwise
        else:
            nodes.append(x)
    ndim = max((x.ndim for x in nodes if isinstance(x, Node)), default=0)
    return ArrayTracer(trace, Apply(dtype, ndim, op, domain, tuple(nodes)))
