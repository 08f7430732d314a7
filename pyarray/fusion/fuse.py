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
from ..jit.replay import Capture as Captured
from ..jit.replay import captured_by
from ..lang.ir import static_key
from ..lang.parse import Capture
from ..locks import new_lock
from .plan import NotFusable, Plan
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
        # By types: what the function does has no sizes. Captured values are compared at each call.
        self._plans: dict[Any, Any] = {}
        # numbers are operands, but for those that are compiled in
        operands = sum(1 << k for k in range(64) if k not in self._static)
        self._call_plans = PlanTable(self._call, self._learn, operands, tuple(static))
        self._planned = PlannedFunction(self._call_plans)
        self._captures: tuple[Capture | Contents, ...] | None = None
        self._captured: tuple[ndarray, ...] = ()  # arrays among their values, operands of each call
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
        return cast(R, self._planned(*args, self._captured, **options))

    def _call(self, *args: Any, **options: Any) -> Any:
        """A call without a plan; the last of `args` are the captured arrays."""
        return self._computed(args[:-1], options, None)

    def _learn(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        operands: tuple[ndarray, ...],
    ) -> tuple[Any, CallPlan | str]:
        """The results of a call, and its plan or why it has none."""
        capture = Captured(operands, False)
        return captured_by(capture, self._computed, (args[:-1], options, capture), {})

    def _computed(self, args: tuple[Any, ...], options: dict[str, Any], capture: Captured | None) -> Any:
        out = None if self._has_out else options.pop("out", None)
        arguments = [*enumerate(args), *options.items()]
        tracer: Any = next((x for _, x in arguments if isinstance(x, Tracer)), None)
        if tracer is not None:  # inside another one
            no_out(tracer._trace, out)
            return self.__wrapped__(*args, **options)
        results = self._results(_Call(self, args, arguments, tuple(options)), out, capture)
        return results if out is None or results is out else _stored(self.__name__, out, results)

    def _results(self, call: _Call, out: Any, capture: Captured | None) -> Any:
        """The results, in `out` where the last launch can write there."""
        try:
            if not call.arrays or any(x.device is not call.arrays[0].device for x in call.arrays):
                raise NotFusable("there are no arrays, or they are on several devices")
            plan, results = self._plan(call)
            if capture is not None and call.numbers and plan.shaped_by_numbers:
                capture.refuse("a shape depends on a number")
            environment = plan.environment(call.arrays, call.numbers)
            return results(plan.run(environment, out if type(out) in _ARRAYS else None, capture)[0])
        except _REFUSED as error:
            if capture is not None:
                capture.refuse(f"the function isn't fused: {error}")
            return self._eager(call)

    def _eager(self, call: _Call) -> Any:
        """Without fusing: of empty arrays, and of what doesn't fit, for the error."""
        self._counts["unfused"] += 1
        return self.__wrapped__(*call.args, **call.options)

    def _plan(self, call: _Call) -> tuple[Plan, Callable[[list[ndarray]], Any]]:
        with self._lock:
            plan: tuple[Plan, Callable[[list[ndarray]], Any]] | None = self._plans.get(call.types)
            if plan is None or not plan[0].is_current():
                self._plans[call.types] = plan = self._traced(call)
                self._counts["traces"] += 1
                new = [x for x in plan[0].captured if not any(x is y for y in self._captured)]
                self._captured = (*self._captured, *new)
            return plan

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
                self._captured = ()
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
            steps = plan.run(environment)[1]
        except CompileError as error:
            return f"{self.__name__}: can't be fused, a call raises: {error}"
        except _REFUSED as error:
            empty = any(not x._size for x in call.arrays)
            why = "an array is empty" if empty else str(error) or "a number or a shape doesn't fit"
            return f"{self.__name__}: not fused, since {why}"
        return report(self.__name__, plan, steps, environment, call.names_of_arrays(self._names))

    def cache_info(self) -> dict[str, int]:
        """`traces` (runs of the function on tracers), `unfused` (calls that the plain function answered),
        and those of a library function: `plans`, `hits`, `misses`, `captures`."""
        return {**self._counts, **self._call_plans.cache_info()}


class _Call:
    """The flattened arguments of one call: `arrays` and `numbers` in order, and the key of their types, of which other
    values are part."""

    __slots__ = ("_names", "_order", "_values", "args", "arrays", "numbers", "options", "types")

    def __init__(self, fused: Fused, args: tuple[Any, ...], arguments: list[tuple[Any, Any]], names: tuple[str, ...]):
        self.arrays: list[ndarray] = []
        self.numbers: list[Any] = []
        self._values: list[Any] = []
        kinds: list[Any] = [names]
        device = next((x.device for _, x in arguments if isinstance(x, ndarray)), None)
        for position, x in arguments:
            kind = type(x)
            if isinstance(x, np.generic):  # a number, wherever the arrays are
                x = asarray(x, device=device)
            elif not isinstance(x, ndarray) and (isinstance(x, np.ndarray) or is_foreign(x)):
                x = asarray(x)
            if isinstance(x, ndarray):
                x = unmarked(x)
                self.arrays.append(x)
                kinds.append(x._key & _TYPE)
            elif kind in (int, float, complex) and position not in fused._static:
                self.numbers.append(x)
                kinds.append(kind)
            else:
                kinds.append(_value_key(fused, position, x))
            self._values.append(x)
        self.types = tuple(kinds)
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
        got = f"{with_article(type(out).__name__)}{f' of {len(out)}' if isinstance(out, (tuple, list)) else ''}"
        raise ValueError(f"{name}(): out= is a tuple of {len(results)} arrays, one for each result; got {got}")
    for k, (target, result) in enumerate(zip(targets, results, strict=True)):
        which = f"result {k} of {name}" if is_tuple else name
        compute_out(which, target, result._shape, result._dtype, result.device)[...] = result
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
    reductions `sum prod min max mean var std any all`. What is elementwise is one kernel and gives what the
    function gives by itself (`sin`, `exp` and the like to a few units in the last place). So are reductions along
    the same rows and what follows in these, as a softmax: a row is read once. Other reductions end a kernel.
    No size is compiled in. It returns an array, or a tuple of them, all of them new; with `out=` (of an
    array, or a tuple of them) they are written there, as functions of the namespace do. `explain(...)` of
    arguments says which kernels a call becomes, and why.

    Python numbers among the arguments are passed at the launch; bools, strings, None and the parameters named
    in `static` are compiled in, and so is what the function reads from globals and closures by name,
    attribute or constant index, until it changes. The elements of arrays among that are read at each call; from another
    device they are copied each time. What it gets in other ways (objects that it puts into a
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
