"""The driver that CUDA and HIP share: memory, copies, launches of several steps, forks.

A vendor's driver has a table, `CALLS`, of its names for the calls made here, and its own discovery and
properties. Launches are C (csrc/runtime/gpu.c) and call the vendor's entry points by address: a call through a
binding takes longer than the launch.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from .. import config
from .._runtime import ffi, lib
from ..errors import DeviceError
from ..weak_set import ThreadSafeWeakSet
from .base import CheckedLauncher, Driver, GridLauncher, Launcher, Operand
from .failure_records import FailureRecords
from .gpu_graph import GpuGraph
from .gpu_streams import GpuStreams
from .graph import GraphLaunch
from .kernel_step import BLOCKS, KernelStep
from .serialized_launch import SerializedLaunches
from .staging import DIRECT, Staging
from .text_units import unpacked

NOT_FOUND = 500  # of both vendors: a module has no such symbol


class GpuDriver(GpuStreams):
    """A device whose work is asynchronous, in order on each stream."""

    OUT_OF_MEMORY: ClassVar[int]
    LAUNCH_PARAM_END: ClassVar[int]
    warp: int  # lanes
    grid = True

    def __init__(self, index: int):
        super().__init__(index)
        self._gpu.param_end = self.LAUNCH_PARAM_END
        self._gpu.is_default_context = index == 0
        self._gpu.blocking = config.get("PYARRAY_LAUNCH_BLOCKING")
        self._gpu.ordered = config.get("PYARRAY_STREAM_ORDER")
        self._gpu.only_stream = ffi.addressof(self._gpu, "default_stream")
        self._failure_records = FailureRecords(self)
        self._modules: dict[int, list[Any]] = {}  # what the vendor has loaded, of each of the text's units
        self._module_functions: dict[int, list[int]] = {}  # functions by module
        self._without_fallbacks: dict[int, int] = {}  # by functions: the same without such steps
        self._handles = itertools.count(1)
        self._peers: set[int] = set()  # devices that copies came from
        self._staging = Staging(self)
        self._read_blocks: list[tuple[int, int]] = []  # free pinned blocks, each with an event
        self._serialized = SerializedLaunches(self)
        self._gpu.alive = 1
        self._open_device(index)
        self._fill_addresses()
        self._gpu.id = device_id = next(_device_ids)  # last: what is above may fail and be tried again
        if device_id >= lib.PA_GPU_DEVICES:
            raise DeviceError(f"a process can use {lib.PA_GPU_DEVICES} GPUs, and this is one more")
        self._gpu.resident_blocks = self.properties()["processors"] * BLOCKS
        self._gpu.l2_bytes = self.properties()["l2_bytes"]
        self._pool = self._create_pool()
        self._gpu.staging = self.pinned(64 * lib.PA_GPU_STAGING)
        _drivers.add(self)

    # ---- what a vendor's driver defines

    @abstractmethod
    def _open_device(self, index: int) -> None:
        """Finds the device and fills the context of `self._gpu`."""

    @abstractmethod
    def _create_pool(self) -> Any:
        """The stream-ordered pool that memory comes from; None where there is none."""

    # ---- memory and copies

    def memory_info(self) -> tuple[int, int]:
        free, total = self.call("memory_info")
        return int(free), int(total)

    def allocate(self, nbytes: int) -> int:
        code, ptr = self._allocate(nbytes)
        if code == self.OUT_OF_MEMORY:
            self.trim()  # the driver's pool may be fragmented
            code, ptr = self._allocate(nbytes)
            if code == self.OUT_OF_MEMORY:
                self.trim()  # the attempt may have left all free memory in the pool
        if code and code != self.OUT_OF_MEMORY:
            self.fail("an allocation", code)
        return 0 if code else int(ptr)

    def _allocate(self, nbytes: int) -> tuple[int, Any]:
        if self._pool is None:
            return self.try_call("allocate", nbytes)
        stream = self.current_stream()
        code, ptr = self.try_call("allocate_ordered", nbytes, self._pool, stream)
        if not code and len(self._streams) > 1:
            self.call("stream_synchronize", stream)  # so that other streams may use it at once
        return code, ptr

    def free(self, ptr: int, nbytes: int) -> None:
        if not self._gpu.alive:  # in the child of a fork, and at the end of the process
            return
        if self._pool is None:
            self.call("free", ptr)
            return
        self.wait_for(self.work_count())
        self.call("free_ordered", ptr, self.current_stream())

    def trim(self) -> None:
        self.synchronize_all()
        if self._pool is not None:
            self.call("trim", self._pool, 0)

    def fill(self, ptr: int, byte: int, nbytes: int) -> None:
        with self._enqueuing(ptr, nbytes, True) as stream:
            self.call("fill", ptr, byte, nbytes, stream)

    def copy_in(self, ptr: int, host: int, nbytes: int) -> None:
        with self._enqueuing(ptr, nbytes, True) as stream:
            self._staging.copy_in(ptr, host, nbytes, stream)

    def copy_out(self, host: int, ptr: int, nbytes: int) -> None:
        launched = self._launched()
        if nbytes <= DIRECT:
            code = lib.pa_gpu_copy_out(self._gpu, ffi.cast("void *", host), ptr, nbytes)
            if code:
                self.fail("a copy to the host", code)
        else:
            self.before_access(ptr, nbytes, False)  # no `after_access`: the copy is done at the return
            self._staging.copy_out(host, ptr, nbytes, self.current_stream())
        self._succeeded = max(self._succeeded, launched)

    def read_async(self, ptr: int, nbytes: int) -> Callable[[], bytes]:
        """Copies up to 64 bytes to the host, after the work of the current stream so far. The function that
        this returns waits for the copy, but not for later work, and gives the bytes."""
        try:
            block, event = self._read_blocks.pop()
        except IndexError:
            block, event = self.pinned(lib.PA_GPU_STAGING), self.event_create(timing=False)
        with self._enqueuing(ptr, nbytes, False) as stream:
            self.call("copy_out", block, ptr, nbytes, stream)
            self.event_record(event, stream)

        def read() -> bytes:
            self.event_synchronize(event)  # after a failure the block may still be written: it isn't reused
            data = ctypes.string_at(block, nbytes)
            self._read_blocks.append((block, event))
            return data

        return read

    def copy_peer(self, ptr: int, other: Driver, source: int, nbytes: int) -> bool:
        if type(other) is not type(self):
            return False
        assert isinstance(other, GpuDriver)
        if other.index not in self._peers:
            self._peers.add(other.index)
            self._enable_peer_access(other)
        source_stream = other.current_stream()
        other.before_access(source, nbytes, False)
        with self._enqueuing(ptr, nbytes, True) as stream:
            self.stream_wait_event(stream, other.order_event(source_stream))
            self.call("copy_peer", ptr, self._peer_name(), source, other._peer_name(), nbytes, stream)
            # the source is not written before it is read
            other.stream_wait_event(source_stream, self.order_event(stream))
        other.after_access(source, nbytes, False)
        return True

    def _enable_peer_access(self, other: GpuDriver) -> None:
        """Lets two devices access each other's memory, where they can, before the first copy from `other`."""

    @abstractmethod
    def _peer_name(self) -> Any:
        """How a copy between devices names this one."""

    # ---- modules and launches

    def load(self, artifact: bytes) -> int:
        module, loaded = next(self._handles), list[Any]()
        try:
            for binary in unpacked(artifact):
                loaded.append(self.call("load", binary))
        except BaseException:
            self._unload(loaded)
            raise
        self._modules[module] = loaded
        return module

    def _unload(self, loaded: Iterable[Any]) -> None:
        for handle in loaded:
            self.call("unload", handle)

    def unload(self, module: int) -> None:
        if self._gpu.alive:
            self.synchronize_all()
            self._unload(self._modules.pop(module))
            for number in self._module_functions.pop(module, ()):
                del self._functions[number]
                self._without_fallbacks.pop(number, None)

    def function(self, module: int, steps: Sequence[KernelStep]) -> int:
        # another step does what a step with guards does, whose blocks ask for more than there is
        steps = [step for step in steps if not step.guards or step.shared <= self.most_shared()]
        c_steps = ffi.new("pa_gpu_step[]", len(steps))  # of none: a kernel that does nothing
        for c_step, step in zip(c_steps, steps, strict=True):
            c_step.function, c_step.shared = self.symbol(module, step.symbol), self._shared_of(step)
            if c_step.shared:
                self._allow_shared(c_step.function, c_step.shared)
            c_step.team, c_step.row_elements, c_step.per_thread = step.team, step.row_elements, step.per_thread
            c_step.row_slot = -1 if step.row_slot is None else step.row_slot
            c_step.threads = 0 if step.single else step.threads
            c_step.dependent_launch = step.dependent_launch and self._has_dependent_launch()
            slots = step.size_slots or ()
            c_step.size_count = -1 if step.size_slots is None else len(slots)
            c_step.size_slots[0 : len(slots)] = slots
            c_step.row_bytes, c_step.guard_count = step.row_bytes, len(step.guards)
            c_step.guards[0 : len(step.guards)] = list(map(tuple, step.guards))
        number = self._register(module, c_steps, len(steps), steps[0].symbol if steps else "nothing")
        if any(step.fallback for step in steps):
            self._without_fallbacks[number] = self.function(module, [step for step in steps if not step.fallback])
        return number

    def add_graph(self, functions: Iterable[int]) -> int:
        """A number for a graph of these kernels, by which errors name it, until `remove_graph`."""
        number = next(self._handles)
        names = dict.fromkeys(self._functions[function][2] for function in functions)
        self._functions[number] = (None, 0, f"a graph of {', '.join(names)}")
        return number

    def remove_graph(self, graph: Any) -> None:
        """Frees a graph when its work is done."""
        if self._gpu.alive:
            with contextlib.suppress(DeviceError):  # of a device that has failed
                self.synchronize_all()
            lib.pa_gpu_graph_destroy(graph)
            self._functions.pop(graph.function, None)

    def symbol(self, module: int, name: str) -> int:
        """Address of a kernel by its symbol, as the vendor's launch takes it."""
        code, address = NOT_FOUND, 0
        for loaded in self._modules[module]:
            if code == NOT_FOUND:
                code, address = self.try_call("symbol", loaded, name.encode())
        if code:
            self.fail(self.CALLS["symbol"], code)
        return int(address)

    def _has_dependent_launch(self) -> bool:
        """Whether a kernel's blocks may start before the kernel ahead of them has ended, and wait for that by
        themselves."""
        return False

    def _shared_of(self, step: KernelStep) -> int:
        """The bytes of dynamic shared memory that a block gets; a kernel that asks for them makes do with fewer."""
        return min(step.shared, self.properties()["shared_bytes"]) if step.shared_most else step.shared

    def most_shared(self) -> int:
        """Bytes of shared memory that a block may have, at most."""
        return int(self.properties()["shared_bytes"])

    def _allow_shared(self, function: int, nbytes: int) -> None:
        """Raises a kernel's limit of dynamic shared memory, where the vendor asks for that."""

    def _register(self, module: int, steps: Any, count: int, name: str) -> int:
        number = next(self._handles)
        self._module_functions.setdefault(module, []).append(number)
        name = re.sub(r"(_once|_block)?_?\d+$", "", name.removeprefix("kernel_"))
        self._functions[number] = (steps, count, name)
        return number

    def launcher(self, function: int, operands: Sequence[Operand] = ()) -> Launcher:
        run, fail, length = lib.pa_gpu_launch, self.fail, len
        plan, memory = self.plan(function, operands)

        def launch(slots: bytes) -> None:
            code = run(plan, slots, length(slots))
            if code:
                fail("a launch", code)

        vars(launch)["holds"] = function, memory  # the module, and the memory that the plan points to
        return self.serialized(launch) if self.is_serialized(function) else launch

    def serialized(self, launch: Launcher) -> Launcher:
        return self._serialized.serialized(launch)

    def graph(self, launches: Sequence[GraphLaunch]) -> GpuGraph:
        return GpuGraph(self, launches)

    def checked_launcher(
        self, function: int, operands: Sequence[Operand] = (), inside: Callable[[Any], bool] | None = None
    ) -> CheckedLauncher:
        proven = self.launcher(self._without_fallbacks.get(function, function), operands)
        return self._failure_records.checked(self.launcher(function, operands), proven, inside)

    def grid_launcher(self, module: int, name: str) -> GridLauncher:
        kernel = self.symbol(module, name)
        number = self._register(module, None, 0, name)
        run, gpu = lib.pa_gpu_launch_grid, self._gpu

        def launch(grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, slots: bytes) -> None:
            code = run(gpu, kernel, grid, block, shared, slots, len(slots), number)
            if code:
                self.fail(f"a launch of {name} with grid {grid} and block {block}", code)

        return launch

    def after_fork(self) -> None:
        """A child has no device: its handles belong to the parent's context."""
        self._gpu.alive = 0


_device_ids = itertools.count()
_drivers = ThreadSafeWeakSet[GpuDriver]()


def _after_fork() -> None:
    for driver in _drivers:
        driver.after_fork()


os.register_at_fork(after_in_child=_after_fork)
