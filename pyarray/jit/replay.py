"""Capture and replay of library calls: launches are recorded once and run again with other addresses.

Most functions launch the same kernels on the same windows for operands of equal types, shapes and strides; only
addresses differ. An observer (`jit.launch_state`) captures the launches of such a call, and they become
straight-line code: allocate, launch, make the result. The function must depend on its arguments only. A call with
host access to array memory, or with memory that outlives it, is never replayed. A replay that writes to an operand
is not used where an operand's memory is another library's: whether it overlaps depends on addresses.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import jit
from ..array import ndarray, unchecked_array
from ..array_host import host
from ..array_marks import MARKED
from ..buffer_view import BufferView
from ..dtypes import ALL, DType
from ..keywords import checked
from ..memory.buffer import Buffer
from ..memory.host_access import host_access, on_host, reader
from .launch_state import Launch, fast_path_table, launch_state, observing
from .text_kernel import Address

CAPTURED_AT = 4  # of equal calls, the one that is captured: capture takes longer than the call
MAX_REPLAYS = 1024  # of one function; then its table starts anew
OPERANDS = 8  # of a call; one with more isn't replayed
_ARRAYS = frozenset((ndarray, BufferView))
# equal ones of a type are the same; NumPy has a class per dtype
_EXACT = frozenset((bool, int, str, type(None), type, DType, *(type(row.numpy) for row in ALL)))
_Function = TypeVar("_Function", bound=Callable[..., Any])


_NOT_REPLAYED = object()  # what a replay returns that has launched nothing


class _NotReplayable(Exception):
    """Raised during a capture: the call can't be replayed."""


def replayable(function: _Function) -> _Function:
    """`function`, whose results depend on its arguments only, with its launches replayed where possible.

    They are captured at one of the first calls with operands of equal types, shapes and strides and equal other
    arguments. A call with an argument that can't be compared runs the function.

    The key is complete: it has an operand's type key (dtype, rank, device, read-only, marks), shape and
    strides, how operands alias (`_aliases`), and other arguments with their types, floats by their bits. Debug
    mode and observers bypass the table. A call could depend on elements, too, but reads them by host access;
    and on where other libraries' memory lies, for which a replay that writes tests.
    """
    # Complete as the docstring says; both are of this one function.
    replays: dict[Any, Any] = fast_path_table()
    counts: dict[Any, int] = fast_path_table()

    function = checked(function)  # type: ignore[assignment]  # says what is wrong with keywords

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if launch_state.key is False:
            if len(args) == 1 and not kwargs and type(x := args[0]) in _ARRAYS:  # as below, but faster
                replay = replays.get(((x._key, x._shape, x._strides),))
                if replay and (result := replay(x)) is not _NOT_REPLAYED:
                    return result
            operands: list[ndarray] = []
            key_parts: list[Any] = []
            try:
                for x in args:
                    if type(x) is ndarray or type(x) is BufferView:
                        key_parts.append((x._key, x._shape, x._strides))
                        operands.append(x)
                    else:
                        key_parts.append(_key_part(x, operands))
                for name, x in kwargs.items():
                    key_parts.append(name)
                    key_parts.append(_key_part(x, operands))
                if len(operands) > 1:
                    _aliases(operands, key_parts)
                replay = replays.get(key := tuple(key_parts))
            except (_NotReplayable, TypeError):  # TypeError: not hashable
                return function(*args, **kwargs)
            if replay:
                result = replay(*operands)
                if result is not _NOT_REPLAYED:
                    return result
            elif replay is None and operands:
                counts[key] = count = counts.get(key, 0) + 1
                if count == CAPTURED_AT:
                    counts.pop(key, None)
                    return _captured(function, args, kwargs, operands, replays, key)
                if len(counts) > MAX_REPLAYS:
                    counts.clear()
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def _key_part(x: Any, operands: list[ndarray]) -> Any:
    """The part of the key for an argument. Raises `_NotReplayable` where arguments can't be compared."""
    kind = type(x)
    if kind in _EXACT:
        return kind, x
    if kind in _ARRAYS:
        operands.append(x)
        return x._key, x._shape, x._strides
    if kind is float:
        return kind, x.hex()  # 0.0 and -0.0 are equal, and NaN isn't
    if kind is tuple or kind is list:
        return (kind, *[_key_part(item, operands) for item in x])
    raise _NotReplayable


def _aliases(operands: list[ndarray], key_parts: list[Any]) -> None:
    """Adds to the key which operands share a buffer, with their distances in it, and which are one array. A
    replay addresses a buffer from its first operand and returns an operand where the call did, so equal keys
    must mean equal aliasing."""
    if len(operands) > OPERANDS:
        raise _NotReplayable
    first: dict[Buffer, tuple[int, int]] = {}
    for k, x in enumerate(operands):
        j, start = first.setdefault(x._buffer, (k, x._ptr))
        if j != k:
            key_parts.append((k, j, x._ptr - start, next(i for i, y in enumerate(operands) if y is x)))


def _captured(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    operands: list[ndarray],
    replays: dict[Any, Any],
    key: Any,
) -> Any:
    """Runs the call and puts its replay into the table, False where it can't be replayed."""
    if len(replays) >= MAX_REPLAYS:
        replays.clear()
    if any(x._key & MARKED for x in operands):
        replays[key] = False
        return function(*args, **kwargs)
    capture = _Capture(operands)
    before, host_access.occurred, host_access.guards = host_access.occurred, False, []
    try:
        with observing(capture.observe):
            result = function(*args, **kwargs)
        try:
            if host_access.occurred:
                raise _NotReplayable
            replays[key] = capture.make_replay(function.__name__, result, host_access.guards)
        except _NotReplayable:
            replays[key] = False
    finally:
        host_access.occurred, host_access.guards = before, None
    return result


def guard(flag: ndarray, check: Callable[..., None]) -> None:
    """Calls `check` with the elements of `flag`, a 1-D array of integers. A replay makes the test again."""
    before, guards = host_access.occurred, host_access.guards
    check(*host(flag).tolist())
    if guards is not None and on_host(flag):
        host_access.occurred = before
        guards.append((flag, check))


class _Capture:
    """The launches of a call as they are captured, with the buffers of operands and of temporaries."""

    def __init__(self, operands: Sequence[ndarray]):
        self.operands = operands
        self.device = operands[0]._buffer.device
        self.buffers: list[tuple[weakref.ref[Buffer], int]] = []  # of temporaries, with their bytes
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {
            "allocate": Buffer.allocate,
            "unchecked_array": unchecked_array,
            "device": self.device,
        }
        self.replayable = True
        self.writes_operand = False

    def observe(self, launch: Launch) -> None:
        """Runs a launch of this thread and captures it."""
        launch.run()
        try:
            self._add(launch)
        except _NotReplayable:
            self.replayable = False

    def _add(self, launch: Launch) -> None:
        variant = launch.variant
        program = getattr(variant, "program", None)
        if program is None or variant.checked or variant.device is not self.device:
            raise _NotReplayable
        addresses: list[str] = []
        layouts: list[tuple[tuple[int, ...], tuple[int, ...]] | None] = []
        for k, (name, _) in enumerate(program.params):
            value = launch.args.get(name)
            if isinstance(value, ndarray):
                writes = program.directions.get(name) in ("OUT", "INOUT")
                addresses.append(self._address(value, writes))
                layouts.append((value._shape, value._strides))
            elif value is None or isinstance(value, Address):  # of this call's memory
                raise _NotReplayable
            else:
                self.scope[f"value{len(self.lines)}_{k}"] = value
                addresses.append(f"value{len(self.lines)}_{k}")
                layouts.append(None)
        launch_again = jit.launch.make_bound_launch(variant, layouts)
        vars(launch_again)["variant"] = variant  # which keeps the loaded module alive
        self.scope[f"launch{len(self.lines)}"] = launch_again
        self.lines.append(f"launch{len(self.lines)}({', '.join(addresses)})")

    def _address(self, x: ndarray, writes: bool) -> str:
        """An expression for the array's address in a replay."""
        for k, operand in enumerate(self.operands):
            if operand._buffer is x._buffer:
                self.writes_operand |= writes
                return _plus(f"x{k}._ptr", x._ptr - operand._ptr)
        return _plus(f"b{self._number(x._buffer)}.ptr", x._ptr - x._buffer.ptr)

    def _number(self, buffer: Buffer) -> int:
        """The number of a temporary's buffer."""
        for n, (buffer_ref, _) in enumerate(self.buffers):
            if buffer_ref() is buffer:
                return n
        if buffer.owner is not None or buffer.device is not self.device:
            raise _NotReplayable
        self.buffers.append((weakref.ref(buffer), buffer.nbytes))
        return len(self.buffers) - 1

    def make_replay(
        self, name: str, result: Any, guards: Sequence[tuple[ndarray, Callable[..., None]]]
    ) -> Callable[..., Any]:
        """A function of the operands that runs the launches again. Raises `_NotReplayable`."""
        if not self.replayable or not self.lines:
            raise _NotReplayable
        lines = [f"b{n} = allocate(device, {nbytes})" for n, (_, nbytes) in enumerate(self.buffers)]
        lines += self.lines
        if self.writes_operand:
            foreign = " or ".join(f"x{k}._buffer.owner is not None" for k in range(len(self.operands)))
            lines.insert(0, f"if {foreign}: return in_full")
            self.scope["in_full"] = _NOT_REPLAYED
        for k, (flag, check) in enumerate(guards):
            if not on_host(flag):
                raise _NotReplayable
            self.scope |= {f"check{k}": check, f"read{k}": reader(flag._dtype.name, flag._size)}
            lines.append(f"check{k}(*read{k}({self._address(flag, False)}))")
        returned: set[int] = set()
        lines.append(f"return {self._result(result, returned)}")
        alive = {n for n, (buffer, _) in enumerate(self.buffers) if buffer() is not None}
        guarded = {self._number(flag._buffer) for flag, _ in guards if self._is_temporary(flag)}
        if alive - returned - guarded:
            raise _NotReplayable  # memory that somebody keeps from call to call
        names = ", ".join(f"x{k}" for k in range(len(self.operands)))
        text = f"def repeat({names}):\n" + "".join(f"    {line}\n" for line in lines)
        exec(compile(text, f"<pyarray {name}>", "exec"), self.scope)
        replay: Callable[..., Any] = self.scope["repeat"]
        return replay

    def _is_temporary(self, x: ndarray) -> bool:
        return all(x._buffer is not operand._buffer for operand in self.operands)

    def _result(self, result: Any, returned: set[int]) -> str:
        """An expression for the call's result; its buffers go into `returned`."""
        kind = type(result)
        if kind in _ARRAYS:
            same = next((k for k, operand in enumerate(self.operands) if operand is result), None)
            return self._array(result, returned) if same is None else f"x{same}"
        if result is None:
            return "None"
        if kind is list:
            return f"[{', '.join(self._result(item, returned) for item in result)}]"
        if isinstance(result, tuple):
            items = "".join(f"{self._result(item, returned)}, " for item in result)
            if kind is tuple:
                return f"({items})"
            self.scope[variable := f"kind_of_{kind.__name__}"] = kind  # a named tuple
            return f"{variable}({items})"
        raise _NotReplayable

    def _array(self, x: ndarray, returned: set[int]) -> str:
        n = next((n for n, (buffer_ref, _) in enumerate(self.buffers) if buffer_ref() is x._buffer), None)
        if n is None:
            raise _NotReplayable
        returned.add(n)
        base = x if x._base is None else x._base
        if base._ptr != base._buffer.ptr or not (x._writeable and base._writeable):
            raise _NotReplayable
        self.scope[fields := f"fields{len(self.scope)}"] = (
            base._shape,
            base._strides,
            base._size,
            base._dtype,
            base._key,
        )
        text = f"unchecked_array(b{n}, *{fields})"
        if x is base:
            return text
        self.scope[view := f"view{len(self.scope)}"] = (
            x._ptr - base._ptr, x._shape, x._strides, type(x), x._dtype
        )  # fmt: skip
        return f"{text}._view(*{view})"


def _plus(base: str, offset: int) -> str:
    return f"{base} + {offset}" if offset else base
