"""Calls to a GPU vendor's driver API in the context of a device, and the errors of these calls."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn

from .._core import connect_gpu
from .._runtime import ffi, lib
from ..errors import DeviceError
from .base import Driver, NativeLaunch, Operand

RECENT = 256  # PA_GPU_RECENT
# Our names of calls, and the vendors' without "cu" and "hip", where these are the same.
_SHARED_CALLS = {
    "memory_info": "MemGetInfo",
    "trim": "MemPoolTrimTo",
    "fill": "MemsetD8Async",
    "copy_in": "MemcpyHtoDAsync",
    "copy_out": "MemcpyDtoHAsync",
    "copy_peer": "MemcpyPeerAsync",
    "load": "ModuleLoadData",
    "unload": "ModuleUnload",
    "symbol": "ModuleGetFunction",
    "stream_destroy": "StreamDestroy",
    "stream_synchronize": "StreamSynchronize",
    "stream_query": "StreamQuery",
    "stream_wait_event": "StreamWaitEvent",
    "event_destroy": "EventDestroy",
    "event_record": "EventRecord",
    "event_synchronize": "EventSynchronize",
    "event_query": "EventQuery",
    "event_elapsed": "EventElapsedTime",
    "graph_create": "GraphCreate",
    "graph_destroy": "GraphDestroy",
    "graph_add_kernel": "GraphAddKernelNode",
    "graph_instantiate": "GraphInstantiateWithFlags",
    "graph_set_kernel": "GraphExecKernelNodeSetParams",
    "graph_launch": "GraphLaunch",
    "graph_exec_destroy": "GraphExecDestroy",
}
# Fields of `pa_gpu_device` that hold the address of a call, and the call's name; the optional ones not for all vendors.
_SAME_NAMES = (
    "launch", "get_context", "set_context", "copy_out", "event_create", "event_record", "event_query", "event_destroy",
    "graph_create", "graph_destroy", "graph_add_kernel", "graph_instantiate", "graph_set_kernel", "graph_launch",
    "graph_exec_destroy",
)  # fmt: skip
_OPTIONAL = "launch_dependent", "is_capturing"
_ADDRESSES = {"synchronize": "stream_synchronize", "stream_wait": "stream_wait_event"} | {n: n for n in _SAME_NAMES}
FORKED = -1  # what C returns for a device that is not alive


def vendor_calls(prefix: str, **others: str) -> Mapping[str, str]:
    """`CALLS` of a vendor, whose names begin with `prefix`."""
    return MappingProxyType({name: prefix + call for name, call in (_SHARED_CALLS | others).items()})


class GpuCalls(Driver):
    """A vendor's driver API, bound to one device: the base of `GpuDriver`."""

    CALLS: ClassVar[Mapping[str, str]]  # our name → the vendor's; each call returns (code, *values)

    def __init__(self, index: int):
        super().__init__(index)
        self._gpu = ffi.new("pa_gpu_device *")
        self._functions: dict[int, tuple[Any, int, str]] = {}  # steps, how many, the kernel's name
        self._succeeded = 0  # launches that are known to have succeeded

    @abstractmethod
    def _vendor_function(self, name: str) -> Any:
        """The vendor's function of that name."""

    @abstractmethod
    def _address(self, name: str) -> int:
        """The address of the vendor's function of that name, for C."""

    def _fill_addresses(self) -> None:
        optional = {name: name for name in _OPTIONAL if name in self.CALLS}
        for field, name in (_ADDRESSES | optional).items():
            setattr(self._gpu, field, self._address(self.CALLS[name]))

    @abstractmethod
    def _error(self, code: int) -> str:
        """Name and description of an error code."""

    @abstractmethod
    def is_pinned(self, host: int) -> bool:
        """True if `host` is pinned, so copies are asynchronous."""

    def pinned(self, nbytes: int) -> int:
        """Address of host memory that the device sees, too."""
        return int(self.call("pinned", nbytes, 0))

    def call(self, name: str, *args: Any) -> Any:
        """A call of `CALLS`, in the context of this device: its value, or the tuple of its values."""
        code, value = self.try_call(name, *args)
        if code:
            self.fail(self.CALLS[name], code)
        return value

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        before = ffi.new("uintptr_t *")
        code = lib.pa_gpu_enter_context(self._gpu, before)
        if code:
            self.fail("entering the device", code)
        try:
            yield
        finally:
            lib.pa_gpu_leave_context(self._gpu, before[0])

    def try_call(self, name: str, *args: Any) -> tuple[int, Any]:
        """As `call`, but returns the vendor's error code beside the value."""
        with self.current():
            error, *values = self._vendor_function(self.CALLS[name])(*args)
        return int(error), values[0] if len(values) == 1 else tuple(values)

    def _call_without_context(self, name: str, *args: Any) -> Any:
        """A call that needs no context."""
        code, *values = self._vendor_function(name)(*args)
        if int(code):
            self.fail(name, int(code))
        return values[0] if len(values) == 1 else tuple(values)

    @property
    def gpu(self) -> Any:
        """What a launch needs of the device, for C."""
        return self._gpu

    def is_serialized(self, function: int) -> bool:
        """Whether one step of the kernel writes variables of the module for others."""
        steps, count, _ = self._functions[function]
        return any(not step.threads for step in steps[0:count])

    def plan(self, function: int, operands: Sequence[Operand]) -> tuple[Any, Any]:
        """All of a launch but its arguments, for C, and the memory that it points to."""
        steps, count, _ = self._functions[function]
        arrays = ffi.new("pa_gpu_operand[]", list(map(tuple, operands)))
        return ffi.new("pa_gpu_plan *", (self._gpu, steps, count, function, arrays, len(operands))), (steps, arrays)

    def native_launch(self, function: int, operands: Sequence[Operand] = ()) -> NativeLaunch:
        if self.is_serialized(function):
            return super().native_launch(function, operands)
        plan, memory = self.plan(function, operands)
        return int(ffi.cast("uintptr_t", plan)), 0, partial(self.fail, "a launch"), (function, plan, memory)

    def fail(self, what: str, code: int) -> NoReturn:
        """Raises `DeviceError` for an error code of the vendor, with the launches that may have caused it."""
        if code == FORKED or not self._gpu.alive:
            raise DeviceError(
                f"{self.kind}:{self.index} can't be used in a process forked from one that used it; start "
                "processes with multiprocessing.get_context('spawn'), or touch the device after the fork only"
            )
        raise DeviceError(f"{self.kind}:{self.index}: {what} failed: {self._error(code)}{self._suspected_launches()}")

    def _suspected_launches(self) -> str:
        """The part of a message that lists launches whose outcome isn't known yet."""
        last = self._gpu.launches
        if last == self._succeeded:
            return ""
        first = last - 1 if self._gpu.blocking else max(self._succeeded, last - RECENT)
        numbers = [self._gpu.recent_functions[n % RECENT] for n in range(first, last)]
        names = Counter(self._functions[n][2] if n in self._functions else "a kernel" for n in numbers)
        if last - first == 1:
            return f"; it is that of the launch of {next(iter(names))}"
        listed = ", ".join(f"{name} ({n} times)" if n > 1 else name for name, n in names.items())
        return (
            "; the device runs later than the host, so it may be that of any of the last "
            f"{last - first} launches: {listed}. PYARRAY_LAUNCH_BLOCKING=1 names the one, PYARRAY_DEBUG=1 "
            "its access out of bounds"
        )


connect_gpu(int(ffi.cast("uintptr_t", ffi.addressof(lib, "pa_gpu_launch"))))
