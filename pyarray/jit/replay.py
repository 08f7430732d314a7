"""Capture and replay of library calls: launches are recorded once and run again with other addresses.

Most functions launch the same kernels on the same windows for operands of equal types, shapes and strides; only
addresses differ. An observer (`jit.launch_state`) captures the launches of such a call, and they become a
`CallPlan`, which C runs (`csrc/core/call_plan.c`): allocate, launch, make the result. The function must depend on its
arguments only. A call with host access to array memory, or with memory that outlives it, is never replayed. Where a
plan writes to an operand, memory of other libraries is compared at each call: whether it overlaps depends on addresses.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import jit
from .._core import CallPlan, PlannedFunction, PlanTable
from ..array import ndarray
from ..array_host import host
from ..array_marks import MARKED
from ..buffer_view import BufferView
from ..keywords import checked
from ..memory.buffer import Buffer
from ..memory.host_access import host_access, on_host
from .launch_state import Launch, observing
from .text_kernel import Address

BUFFERS = 32  # that a plan allocates
_ARRAYS = (ndarray, BufferView)
_Function = TypeVar("_Function", bound=Callable[..., Any])
Source = tuple[str, int, int]  # an address: of an operand or buffer, with bytes from there


class _NotReplayable(Exception):
    """Raised during a capture: the call can't be replayed, and why."""


def replayable(function: _Function) -> _Function:
    """`function`, whose results depend on its arguments only, with its launches replayed where possible.

    They are captured at one of the first calls with operands of equal types, shapes and strides and equal other
    arguments. A call with an argument that can't be compared runs the function.

    The key is complete (`csrc/core/call_key.c`): it has an operand's type key (dtype, rank, device, read-only), shape
    and strides, how operands alias, and other arguments with their types, floats by their bits. Debug mode and
    observers bypass the table. A call could depend on elements, too, but reads them by host access; and on where
    other libraries' memory lies, for which a plan that writes tests.
    """
    return _planned(function, captured)


def replayable_by_types(function: _Function) -> _Function:
    """As `replayable`, of a function that itself offers plans for all operands of some types (`Capture.offer`): what
    it does for these depends on nothing but the conditions of the plan."""
    return _planned(function, functools.partial(captured, by_types=True))


def _planned(function: Any, learn: Callable[..., Any]) -> Any:
    plain = checked(function)  # says what is wrong with keywords
    return functools.update_wrapper(PlannedFunction(PlanTable(plain, learn, 0, ())), plain)


def captured(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    operands: tuple[ndarray, ...],
    by_types: bool = False,
) -> tuple[Any, CallPlan | str]:
    """The call's result, and its plan or why it has none."""
    return captured_by(Capture(operands, by_types), function, args, options)


def captured_by(
    capture: Capture, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, CallPlan | str]:
    """The call's result, and the plan of what this captures or why there is none."""
    before, host_access.occurred, host_access.capture = host_access.occurred, False, capture
    try:
        with observing(capture.observe):
            result = function(*args, **options)
        try:
            return result, capture.make_plan(result, host_access.occurred)
        except _NotReplayable as refusal:
            return result, str(refusal)
    finally:
        host_access.occurred, host_access.capture = before, None


def guard(flag: ndarray, check: Callable[..., None]) -> None:
    """Calls `check` with the elements of `flag`, a 1-D array of integers. A plan makes the test again."""
    before, capture = host_access.occurred, host_access.capture
    check(*host(flag).tolist())
    if capture is not None and on_host(flag):
        host_access.occurred = before
        capture.add_check(flag, check)


class Capture:
    """The launches of a call as they are captured, with the buffers of operands and of temporaries. `by_types`: it
    takes plans for all operands of some types, which the function offers. `numbers` are which of the call's numbers the
    last ones of the next launch are, None for a constant: its values don't tell. `computed` is for the plan."""

    def __init__(self, operands: Sequence[ndarray], by_types: bool):
        self.operands, self.by_types = operands, by_types
        self.device = operands[0]._buffer.device
        self.buffers: list[tuple[weakref.ref[Buffer], int]] = []  # of temporaries, with their bytes
        self.steps: list[tuple[Any, ...]] = []
        self.written: set[int] = set()  # operands
        self.refusal: str | None = None
        self.launching = False
        self.numbers: Sequence[int | None] = ()
        self.computed: tuple[Callable[..., tuple[Any, ...]], int] | None = None
        self.plan_of_types: CallPlan | None = None

    def refuse(self, why: str) -> None:
        """The call has no plan."""
        self.refusal, self.numbers = why, ()

    def observe(self, launch: Launch) -> None:
        """Runs a launch of this thread and captures it."""
        inside, self.launching = self.launching, True
        try:
            launch.run()
        finally:
            self.launching = inside
        if inside:  # by an owner that is told of a write, whom plans tell themselves
            self.refuse(f"{launch.kernel} is launched inside another launch")
        if self.refusal is None:
            try:
                self.steps.append(self._step(launch))
            except _NotReplayable as refusal:
                self.refusal = str(refusal)

    def _step(self, launch: Launch) -> tuple[Any, ...]:
        variant = launch.variant
        program = getattr(variant, "program", None)
        if program is None or variant.returns_failures:
            raise _NotReplayable(f"{launch.kernel} is no kernel without bounds checks")
        if program.alignment > 1:
            raise _NotReplayable(f"{launch.kernel} relies on the alignment of addresses, which a plan doesn't test")
        if variant.device is not self.device:
            raise _NotReplayable(f"{launch.kernel} runs on another device, {variant.device}")
        layouts: list[tuple[tuple[int, ...], tuple[int, ...]] | None] = []
        numbers: list[Any] = []
        fills: list[tuple[int, Source]] = []
        params, passed = program.params, dict[str, int | None]()
        if self.numbers:
            passed = dict(zip((name for name, _ in params[-len(self.numbers) :]), self.numbers, strict=True))
            self.numbers = ()
        for slot, (name, kind) in zip(jit.bound_launch.first_slots(params), params, strict=True):
            value = launch.args.get(name)
            if (number := passed.get(name)) is not None:
                fills.append((slot, ("number", number, kind.dtype.code)))
            if isinstance(value, ndarray):
                fills.append((slot, self._address(value, program.directions.get(name) in ("OUT", "INOUT"))))
                layouts.append((value._shape, value._strides))
            elif value is None or isinstance(value, Address):
                raise _NotReplayable(f"{launch.kernel} takes an address of this call's memory")
            else:
                numbers.append(value)
                layouts.append(None)
        return jit.bound_launch.bind_launch(variant, layouts, numbers), tuple(fills), ()

    def add_check(self, flag: ndarray, check: Callable[..., None]) -> None:
        """A test of the elements of `flag`, after the launches so far."""
        if self.refusal is None:
            try:
                self.steps.append((check, self._address(flag, False), flag._dtype.code, flag._size))
            except _NotReplayable as refusal:
                self.refusal = str(refusal)

    def _address(self, x: ndarray, writes: bool) -> Source:
        """The array's address in a plan."""
        for k, operand in enumerate(self.operands):
            if operand._buffer is x._buffer:
                if writes:
                    self.written.add(k)
                return "operand", k, x._ptr - operand._ptr
        return "buffer", self._number(x._buffer), x._ptr - x._buffer.ptr

    def _number(self, buffer: Buffer) -> int:
        """The number of a temporary's buffer."""
        for n, (buffer_ref, _) in enumerate(self.buffers):
            if buffer_ref() is buffer:
                return n
        if buffer.owner is not None:
            raise _NotReplayable("it uses another library's memory that is no argument")
        if buffer.device is not self.device:
            raise _NotReplayable(f"it uses memory of another device, {buffer.device}")
        if len(self.buffers) == BUFFERS:
            raise _NotReplayable(f"it allocates more than {BUFFERS} arrays")
        self.buffers.append((weakref.ref(buffer), buffer.nbytes))
        return len(self.buffers) - 1

    def offer(self, operands: Sequence[ndarray], make: Callable[[], CallPlan | None]) -> None:
        """A plan for calls with operands of these types, where the call's operands are these. What it does must be all
        that the captured function does wherever the plan's conditions hold."""
        same = len(operands) == len(self.operands) and all(map(operator.is_, operands, self.operands))
        if self.by_types and same and not any(x._key & MARKED for x in operands):
            self.plan_of_types = make()

    def make_plan(self, result: Any, host_accessed: bool) -> CallPlan:
        """The plan of the call. Raises `_NotReplayable`."""
        if self.plan_of_types is not None:
            return self.plan_of_types
        if host_accessed:
            raise _NotReplayable("the host reads or writes elements")
        if self.refusal is not None:
            raise _NotReplayable(self.refusal)
        if not self.steps:
            raise _NotReplayable("nothing is launched")
        returned: dict[int, Any] = {}  # buffers by number; and arrays, each of which is returned once
        described = self._result(result, returned)
        if {n for n, (buffer, _) in enumerate(self.buffers) if buffer() is not None} - returned.keys():
            raise _NotReplayable("memory is kept from call to call")
        buffers = tuple((nbytes,) for _, nbytes in self.buffers)
        steps, written = tuple(self.steps), tuple(self.written)
        return CallPlan(len(self.operands), buffers, steps, described, written, None, self.computed)

    def _result(self, result: Any, returned: dict[int, Any]) -> Any:
        """The description of the call's result; its buffers go into `returned`."""
        kind = type(result)
        if kind in _ARRAYS:
            same = next((k for k, operand in enumerate(self.operands) if operand is result), None)
            return self._array(result, returned) if same is None else ("operand", same)
        if result is None:
            return None
        if kind is list:
            return "list", tuple(self._result(item, returned) for item in result)
        if isinstance(result, tuple):
            items = tuple(self._result(item, returned) for item in result)
            if kind is tuple:
                return "tuple", items
            return "named", kind, items
        raise _NotReplayable(f"a result is {kind.__name__}")

    def _array(self, x: ndarray, returned: dict[int, Any]) -> Any:
        n = next((n for n, (buffer_ref, _) in enumerate(self.buffers) if buffer_ref() is x._buffer), None)
        if n is None:
            raise _NotReplayable("a result shows memory that no launch writes")
        if any(x is y for arrays in returned.values() for y in arrays):
            raise _NotReplayable("an array is returned twice")
        returned.setdefault(n, []).append(x)
        base = x if x._base is None else x._base
        if base._ptr != base._buffer.ptr or not (x._writeable and base._writeable):
            raise _NotReplayable("a result is read-only, or a view of a part")
        view = None
        if x is not base:
            view = x._ptr - base._ptr, x._shape, x._strides, x._dtype.code, type(x) is BufferView
        return "array", n, base._key, base._shape, base._strides, view
