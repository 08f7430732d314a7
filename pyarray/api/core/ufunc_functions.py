"""The public functions of ufuncs and what operators call: plans of warm calls (`csrc/core/map.c`) above the general
call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, Protocol

from ... import jit
from ..._core import Map
from ...array import ndarray
from ...jit.replay import replayable
from ...kernels.elementwise.elementwise import make_map
from ...keywords import checked, refuse
from ...lang.builtins import FUNCTIONS
from ...typing import ArrayLike
from .ufunc import _ORDER, POWERS, Ufunc, call, is_operand_type


# One for each ufunc, so that its function and its operators share plans.
@functools.cache
def ufunc_map(ufunc: Ufunc) -> Map:
    """The plans of a ufunc. They depend on types alone, so that a call whose operand's value decides what is computed
    has none."""

    def resolve(operands: tuple[Any, ...], out: Any) -> tuple[int, int] | None:
        if _value_matters(ufunc, operands):
            return None
        try:
            domain = ufunc.domain(operands)
        except TypeError:
            return None  # the general call says what is wrong
        if domain is None:
            return None
        dtype = ufunc.dtype_of_result(domain)
        if out is not None and _ORDER.index(dtype.kind) > _ORDER.index(out._dtype.kind):
            return None
        return domain.code, dtype.code

    return make_map(ufunc.op, resolve)


def _value_matters(ufunc: Ufunc, operands: tuple[Any, ...]) -> bool:
    """Whether a call depends on an operand's value: negative integer exponents are errors, and some exponents have
    a function of their own."""
    return ufunc.name == "pow" and type(operands[1]) in (int, float)


def general_call(ufunc: Ufunc, operands: tuple[Any, ...], out: ndarray | None) -> ndarray:
    """The call without a plan; some exponents are functions of their own, which have plans."""
    if _value_matters(ufunc, operands) and operands[1] in POWERS:
        x = operands[0]
        # errors of an output name this function
        if (out is None or out is x) and isinstance(x, ndarray) and x._dtype.kind == "f":
            return POWERS[operands[1]].function(x, out=out)
    return call(ufunc, operands, out)


class UfuncFunction(Protocol):
    """An elementwise function for type checkers: a call, and the methods of NumPy's ufuncs."""

    __name__: str

    def __call__(self, *operands: ArrayLike, out: ndarray | None = None) -> ndarray: ...
    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: ndarray | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> ndarray: ...
    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: ndarray | None = None) -> ndarray: ...
    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: ndarray | None = None
    ) -> ndarray: ...
    def outer(self, x1: Any, x2: Any, /, *, out: ndarray | None = None) -> ndarray: ...
    def at(self, a: ndarray, indices: Any, b: Any = None, /) -> None: ...
    def cache_info(self) -> dict[str, int]: ...
    def explain_miss(self, *operands: Any, out: Any = None) -> str | None: ...


def make_function(ufunc: Ufunc, foreign: bool = False) -> Any:
    """The public function of a ufunc. `foreign`: it returns NotImplemented for operands that operators must
    leave to others."""
    function = _make_unary(ufunc) if ufunc.arity == 1 else _make_binary(ufunc, foreign)
    function.__name__ = function.__qualname__ = ufunc.name
    function.__doc__ = ufunc.doc
    function.__module__ = "pyarray"
    # in the body operands are any objects, whose class is looked at first
    operands = ("x",) if ufunc.arity == 1 else ("x1", "x2")
    function.__annotations__ |= {**dict.fromkeys(operands, "ArrayLike"), "return": "ndarray"}
    checked(function)
    # in kernels it is the language's own function, or the ufunc's expression
    if ufunc.name in FUNCTIONS:
        function.__pyarray_builtin__ = ufunc.name  # type: ignore[attr-defined]
    else:
        function.__pyarray_func__ = ufunc.function.__pyarray_func__  # type: ignore[attr-defined]
    for method in ("reduce", "accumulate", "reduceat", "outer", "at") if ufunc.arity == 2 else ("at",):
        setattr(function, method, _method(function, ufunc, method))
    _add_plan_queries(function, ufunc)
    return function


def _add_plan_queries(function: Any, ufunc: Ufunc) -> None:
    """What functions with plans have: `cache_info` and `explain_miss`."""
    plans = ufunc_map(ufunc)

    def explain_miss(*operands: Any, out: Any = None) -> str | None:
        """None where a call with these arguments would run a plan, else why it wouldn't. It doesn't call it."""
        return jit.plan_explanations.explain_ufunc_miss(ufunc.name, plans, operands, out)

    function.cache_info, function.explain_miss = plans.cache_info, explain_miss


# the methods of ufuncs: name -> function of the function, its `Ufunc` and the arguments; `ufunc_methods` fills it
UFUNC_METHODS: dict[str, Callable[..., Any]] = {}


# One for each method of each function: all that it is made of is in the key.
@functools.cache
def _planned_method(name: str, made: Callable[..., Any], ufunc: Ufunc) -> Callable[..., Any]:
    """A method of a ufunc, with plans but for `at`, which changes its operand."""

    def method(*args: Any, **options: Any) -> Any:
        return UFUNC_METHODS[name](made, ufunc, *args, **options)

    return method if name == "at" else replayable(method)


def _method(made: Callable[..., Any], ufunc: Ufunc, name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        return _planned_method(name, made, ufunc)(*args, **options)

    call.__name__, call.__qualname__ = name, f"{ufunc.name}.{name}"
    call.__doc__ = f"`{name}` as NumPy's ufuncs have it, of this function."
    setattr(call, "__wrapped__", MethodType(getattr(UfuncFunction, name), made))  # noqa: B010  (its signature)
    return call


def _make_unary(ufunc: Ufunc) -> Callable[..., Any]:
    run = ufunc_map(ufunc).run

    def function(x: Any, /, *, out: ndarray | None = None, **unknown: Any) -> Any:
        if unknown:
            refuse(function, unknown)
        result = run(out, x)
        return general_call(ufunc, (x,), out) if result is NotImplemented else result

    return function


def _make_binary(ufunc: Ufunc, foreign: bool) -> Callable[..., Any]:
    run = ufunc_map(ufunc).run

    def function(x1: Any, x2: Any, /, *, out: ndarray | None = None, **unknown: Any) -> Any:
        if unknown:
            refuse(function, unknown)
        result = run(out, x1, x2)
        if result is not NotImplemented:
            return result
        if foreign and not (is_operand_type(type(x1)) and is_operand_type(type(x2))):
            return NotImplemented
        return general_call(ufunc, (x1, x2), out)

    return function


def in_place_function(ufunc: Ufunc) -> Callable[..., Any]:
    """`x1 += x2` as a function, for what calls no slots."""
    run = ufunc_map(ufunc).run

    def function(self: ndarray, other: Any) -> Any:
        result = run(self, self, other)
        if result is not NotImplemented:
            return result
        self._check_writeable()
        return general_call(ufunc, (self, other), self) if is_operand_type(type(other)) else NotImplemented

    return function
