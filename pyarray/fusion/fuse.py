"""`pa.fuse`: a function of array expressions as one kernel."""

from __future__ import annotations

import inspect
import struct
import types
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

import numpy as np

from .._core import CallPlan, PlannedFunction, PlanTable
from ..api.core.ufunc import compute_out
from ..array import ndarray
from ..array_convert import asarray
from ..array_hooks import Tracer, is_foreign
from ..array_marks import unmarked
from ..buffer_view import BufferView
from ..errors import CompileError, with_article
from ..jit.captures import Contents, captures, memory, same_constant
from ..jit.kernel import Func
from ..jit.launch_state import fast_path_table, launch_state
from ..jit.replay import captured
from ..lang.ir import static_key
from ..lang.parse import Capture
from ..locks import new_lock
from .plan import NotFusable, Plan, Run
from .report import report
from .trace_restrictions import tracing
from .tracing import ArrayTracer, Leaf, NumberTracer, Trace, no_out

if TYPE_CHECKING:
    from ..jit.functions import P
    from ..jit.typed_calls import TypedFused

__all__ = ["fuse"]

R = TypeVar("R")
_TYPE = 0xFFFFF | 0xFFF << 20  # of a key: dtype, rank, layout and device
_ARRAYS = frozenset((ndarray, BufferView))
_LAYOUTS = 4096
# raised by a launch for numbers, sizes and shapes that don't fit: the unfused function's errors say it better
_REFUSED = (NotFusable, struct.error, ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError)


class Fused(Generic[R]):
    """A function whose array expressions run as one kernel; made by `fuse`."""

    def __init__(self, function: Callable[..., Any], static: tuple[str, ...]):
        self.__wrapped__ = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self._signature = inspect.signature(function)
        for name in static:
            if name not in self._signature.parameters:
                listed = ", ".join(self._signature.parameters)
                raise ValueError(f"fuse(): {self.__name__}() has no parameter {name!r}; it has {listed}")
        names = list(self._signature.parameters)
        self._names = names
        self._has_out = "out" in names or any(p.kind is p.VAR_KEYWORD for p in self._signature.parameters.values())
        self._static = frozenset([*static, *(names.index(name) for name in static)])
        # By types: a plan has no sizes. The other by mode, type keys, shapes, strides, types of numbers, and other
        # values by `static_key`: addresses and numbers are passed at each launch, whose results are new arrays or are
        # tested against the operands. Captured values are compared at each call.
        self._plans: dict[Any, Any] = {}
        self._layouts: dict[Any, Any] = fast_path_table()
        # numbers are operands, but for those that are compiled in
        operands = sum(1 << k for k in range(64) if k not in self._static)
        self._call_plans = PlanTable(self._call, self._learn, operands)
        self._planned = PlannedFunction(self._call_plans)
        self._captures: tuple[Capture | Contents, ...] | None = None
        self._counts = {"traces": 0, "unfused": 0}
        self._lock = new_lock()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<fused {self.__name__}>"

    def __call__(self, *args: Any, **options: Any) -> R:
        """The function's results."""
        if self._captures:
            for c in self._captures:
                if c.current_value() is not c.value:
                    self._forget()
                    break
        return cast(R, self._planned(*args, **options))

    def _call(self, *args: Any, **options: Any) -> Any:
        out = None if self._has_out else options.pop("out", None)
        arguments = [*enumerate(args), *options.items()]
        tracer: Any = next((x for _, x in arguments if isinstance(x, Tracer)), None)
        if tracer is not None:  # inside another one
            no_out(tracer._trace, out)
            return self.__wrapped__(*args, **options)
        results = self._results(_Call(self, args, arguments, tuple(options)), out)
        return results if out is None or results is out else _stored(self.__name__, out, results)

    def _learn(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        operands: tuple[ndarray, ...],
    ) -> tuple[Any, CallPlan | str]:
        """The results of a call, and its plan or why it has none: what is launched, with numbers where the call has
        them; or all launches of a call without numbers."""
        call = _Call(self, args, [*enumerate(args), *options.items()], tuple(options))
        if not call.numbers:
            return captured(function, args, options, operands)
        results = function(*args, **options)
        if options or len(call.arrays) != len(operands) or call.layout not in self._layouts:
            return results, "of a call with numbers only one launch without keywords is planned"
        plan, _, run = self._layouts[call.layout]
        kind = None if isinstance(results, ndarray) else type(results)
        found = plan.call_plan(run, len(operands), kind)
        return results, found or "a call with numbers is more than one launch that takes them as they are"

    def _results(self, call: _Call, out: Any) -> Any:
        """The results, in `out` where the last launch can write there."""
        if not call.arrays or any(x.device is not call.arrays[0].device for x in call.arrays):
            return self._eager(call)
        into = out if type(out) in _ARRAYS else None
        steps_of_layout = self._layouts.get(call.layout)
        plan, results = steps_of_layout[:2] if steps_of_layout else self._plan(call)
        try:
            run = steps_of_layout[2] if steps_of_layout else self._prepared(call, plan, results)
            return results(run(plan.environment(call.arrays, call.numbers), into))
        except _REFUSED:
            return self._eager(call)

    def _eager(self, call: _Call) -> Any:
        """Without fusing: of empty arrays, and of what doesn't fit, for the error."""
        self._counts["unfused"] += 1
        return self.__wrapped__(*call.args, **call.options)

    def _plan(self, call: _Call) -> tuple[Plan, Callable[[list[ndarray]], Any]]:
        with self._lock:
            if call.types not in self._plans:
                self._plans[call.types] = self._traced(call)
                self._counts["traces"] += 1
            plan: tuple[Plan, Callable[[list[ndarray]], Any]] = self._plans[call.types]
            return plan

    def _prepared(self, call: _Call, plan: Plan, results: Callable[[list[ndarray]], Any]) -> Run:
        run = plan.prepare(plan.environment(call.arrays, call.numbers))
        if call.layout[0] is False and not plan.shaped_by_numbers:
            if len(self._layouts) >= _LAYOUTS:
                self._layouts.clear()
            self._layouts[call.layout] = plan, results, run
        return run

    def _traced(self, call: _Call) -> tuple[Plan, Callable[[list[ndarray]], Any]]:
        self._forget()  # names that came since the last trace are guarded from now on
        trace = Trace(self.__name__, call.arrays[0].device, len(call.arrays))
        args, options = call.tracers(trace)
        try:
            with tracing(trace, memory(self._captures or (), self.__module__)):
                returned = self.__wrapped__(*args, **options)
        except Exception as error:
            if (explained := trace.explained(error)) is None:
                raise
            self.__wrapped__(*call.args, **call.options)  # what it refuses it refuses in its own words
            raise explained from None
        is_tuple = type(returned) in (tuple, list)
        outputs = [x._as_array() if isinstance(x, NumberTracer) else x for x in (returned if is_tuple else (returned,))]
        for x in outputs:
            if not isinstance(x, ArrayTracer):
                trace.fail(
                    f"a result is {type(x).__name__}, which is no array expression of the arguments",
                    "return arrays, or a tuple of arrays",
                )
        kind = type(returned)
        plan = Plan(trace, [x._node for x in outputs])
        return plan, (lambda made: kind(made)) if is_tuple else (lambda made: made[0])

    def _forget(self) -> None:
        """Drop what was traced with captured values that have changed since."""
        with self._lock:
            if not all(same_constant(c.current_value(), c.value) for c in self._captures or ()):
                self._plans.clear()
                self._layouts.clear()
                self._call_plans.clear()
            self._captures = tuple(captures(self.__wrapped__, (Fused, Func)))

    def explain(self, *args: Any, **options: Any) -> str:
        """What a call with these arguments becomes: a line for each kernel, with what it computes and reads,
        and why it ends there; or why the function is not fused. Compiles what the call would compile.
        """
        if not self._has_out:
            options.pop("out", None)
        self._forget()
        call = _Call(self, args, [*enumerate(args), *options.items()], tuple(options))
        if not call.arrays:
            return f"{self.__name__}: not fused, since there is no array among the arguments"
        if any(x.device is not call.arrays[0].device for x in call.arrays):
            return f"{self.__name__}: not fused, since the arguments are on several devices"
        try:
            plan = self._plan(call)[0]
            environment = plan.environment(call.arrays, call.numbers)
            run = plan.prepare(environment)
        except CompileError as error:
            return f"{self.__name__}: can't be fused, a call raises: {error}"
        except _REFUSED as error:
            empty = any(not x._size for x in call.arrays)
            why = "an array is empty" if empty else str(error) or "a number or a shape doesn't fit"
            return f"{self.__name__}: not fused, since {why}"
        return report(self.__name__, plan, run, environment, call.names_of_arrays(self._names))

    def cache_info(self) -> dict[str, int]:
        """`traces` (runs of the function on tracers), `unfused` (calls that the plain function answered),
        `layouts` (combinations of shapes and strides whose launch is remembered), and those of a library function:
        `plans`, `hits`, `misses`, `captures`."""
        return {**self._counts, "layouts": len(self._layouts), **self._call_plans.cache_info()}


class _Call:
    """The flattened arguments of one call: `arrays` and `numbers` in order, the key of their types and the key of
    their shapes and strides. Other values are part of both."""

    __slots__ = ("_names", "_order", "_values", "args", "arrays", "layout", "numbers", "options", "types")

    def __init__(self, fused: Fused, args: tuple[Any, ...], arguments: list[tuple[Any, Any]], names: tuple[str, ...]):
        self.arrays: list[ndarray] = []
        self.numbers: list[Any] = []
        self._values: list[Any] = []
        kinds: list[Any] = [names]
        layout: list[Any] = [launch_state.key, names]
        for position, x in arguments:
            kind = type(x)
            if not isinstance(x, ndarray) and (isinstance(x, (np.ndarray, np.generic)) or is_foreign(x)):
                x = asarray(x)
            if isinstance(x, ndarray):
                x = unmarked(x)
                self.arrays.append(x)
                kinds.append(x._key & _TYPE)
                layout.append((x._key, x._shape, x._strides))
            elif kind in (int, float, complex) and position not in fused._static:
                self.numbers.append(x)
                kinds.append(kind)
                layout.append(kind)
            else:
                kinds.append(_value_key(fused, position, x))
                layout.append(kinds[-1])
            self._values.append(x)
        self.types, self.layout = tuple(kinds), tuple(layout)
        self._names = names
        self._order = [position in fused._static for position, _ in arguments]
        count = len(args)
        self.args = self._values[:count]
        self.options = dict(zip(names, self._values[count:], strict=True))

    def names_of_arrays(self, parameters: Sequence[str]) -> list[str]:
        """What the function calls its arrays."""
        names = [
            *parameters[: len(self.args)],
            *(f"argument {k}" for k in range(len(parameters), len(self.args))),
        ]
        both = zip([*names, *self._names], self._values, strict=True)
        return [name for name, x in both if isinstance(x, ndarray)]

    def tracers(self, trace: Trace) -> tuple[list[Any], dict[str, Any]]:
        """The tracers with which the function is called for a trace."""
        tracers: list[Any] = []
        arrays = numbers = 0
        for x, static in zip(self._values, self._order, strict=True):
            if isinstance(x, ndarray):
                tracers.append(ArrayTracer(trace, Leaf(x._dtype, x.ndim, arrays)))
                arrays += 1
            elif type(x) in (int, float, complex) and not static:
                tracers.append(NumberTracer.of_argument(trace, type(x), numbers))
                numbers += 1
            else:
                tracers.append(x)
        count = len(tracers) - len(self._names)
        return tracers[:count], dict(zip(self._names, tracers[count:], strict=True))


def _stored(name: str, out: Any, computed: Any) -> Any:
    """`out`, to which the results were copied. Raises `ValueError` or `TypeError` where they don't fit."""
    is_tuple = isinstance(computed, (tuple, list))
    targets, results = (out, computed) if is_tuple else ((out,), (computed,))
    if not isinstance(targets, (tuple, list)) or len(targets) != len(results):
        raise ValueError(f"{name}(): out= is a tuple of {len(results)} arrays, one for each result; got {out!r}")
    for target, result in zip(targets, results, strict=True):
        compute_out(name, target, result._shape, result._dtype, result.device)[...] = result
    return out


def _value_key(fused: Fused, position: Any, x: Any) -> Any:
    try:
        hash(x)
    except TypeError:
        kind = with_article(type(x).__name__)
        what = f"argument {position!r} is {kind}, neither array nor number, and can't be hashed"
        raise TypeError(f"{fused.__name__}(): {what}; pass arrays one by one, other values as tuples") from None
    return type(x), static_key(x)


@overload
def fuse(function: Callable[P, R], *, static: Iterable[str] = ()) -> TypedFused[Callable[P, R]]: ...
@overload
def fuse(*, static: Iterable[str] = ()) -> Callable[[Callable[P, R]], TypedFused[Callable[P, R]]]: ...
def fuse(function: Any = None, *, static: Iterable[str] = ()) -> Any:
    """A function of array expressions as one kernel: elements are read once and go through all operations.

    The function runs once for each combination of dtypes and ranks, on tracers: elementwise functions and
    operators with broadcasting, `where`, `clip`, `astype`, `reshape`, transposes and basic indices, the
    reductions `sum prod min max mean any all`. What is elementwise is one kernel and gives what the function
    gives by itself (`sin`, `exp` and the like to a few units in the last place); a reduction ends a kernel.
    No size is compiled in. It returns an array, or a tuple of them, all of them new; with `out=` (of an
    array, or a tuple of them) they are written there, as functions of the namespace do. `explain(...)` of
    arguments says which kernels a call becomes, and why.

    Python numbers among the arguments are passed at the launch; bools, strings, None and the parameters named
    in `static` are compiled in, and so is what the function reads from globals and closures by name,
    attribute or constant index, until it changes. What it gets in other ways (objects that it puts into a
    variable first, attributes that methods read, properties, elements of NumPy's arrays, files, the clock) is
    read once: pass it. A function that decides by elements or sizes, changes arrays, draws random numbers,
    or calls what can't be fused raises `CompileError` with its line.

    >>> @pa.fuse
    ... def damped(x, t):
    ...     return pa.sum(pa.exp(-t * x) * x, axis=-1)
    >>> damped(pa.ones((2, 3)), 0.0).tolist()
    [3.0, 3.0]
    """

    def make(f: Any) -> Fused[Any]:
        plain = f.__wrapped__ if isinstance(f, (Fused, Func)) else f
        if not isinstance(plain, types.FunctionType):
            raise TypeError(f"fuse takes a Python function, got {type(f).__name__}")
        return Fused(plain, tuple([static] if isinstance(static, str) else static))

    return make if function is None else make(function)
