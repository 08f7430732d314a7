"""Graphs of a GPU: a chain of kernel nodes (csrc/runtime/gpu_graph.c), whose parameters are updated in place."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Protocol

from .._runtime import ffi, lib
from .graph import GraphLaunch, LaunchSequence, Place


class Gpu(Protocol):
    """The part of `GpuDriver` that this module needs."""

    def plan(self, function: int, operands: Sequence[Any]) -> tuple[Any, Any]: ...

    def is_serialized(self, function: int) -> bool: ...

    def serialized(self, launch: Any) -> Any: ...

    def add_graph(self, functions: Iterable[int]) -> int: ...

    def remove_graph(self, graph: Any) -> None: ...

    def synchronize_all(self) -> None: ...

    def fail(self, what: str, code: int) -> NoReturn: ...

    @property
    def gpu(self) -> Any: ...


class GpuGraph(LaunchSequence):
    """A launch of several steps has a node for each; one without an iteration has none. If a launch gets other steps
    by an update, the graph is made anew: an update of nodes can't add or remove one."""

    def __init__(self, driver: Gpu, launches: Sequence[GraphLaunch]):
        self._driver = driver
        self._plans = [driver.plan(x.function, x.operands) for x in launches]
        self._functions = [x.function for x in launches]  # which keep the modules
        self._graph = ffi.new("pa_gpu_graph *", {"device": driver.gpu, "function": driver.add_graph(self._functions)})
        self._serialized: Any = None
        if any(driver.is_serialized(x.function) for x in launches):
            self._serialized = driver.serialized(self._launch_graph)
        weakref.finalize(self, driver.remove_graph, self._graph).atexit = False
        self._fill([x.slots for x in launches])
        self._make()

    def _fill(self, slots: Sequence[bytes]) -> None:
        """Gives the graph its launches, and room for nodes and ranges."""
        plans = [plan for plan, _ in self._plans]
        self._rooms = [ffi.new("int64_t[]", len(packed) // 8) for packed in slots]
        self._launches = ffi.new("pa_gpu_member[]", len(plans))
        self._nodes = ffi.new("pa_gpu_node[]", sum(plan.step_count for plan in plans))
        self._ranges = ffi.new("pa_gpu_range[]", sum(plan.operand_count for plan in plans))
        for launch, plan, room, packed in zip(self._launches, plans, self._rooms, slots, strict=True):
            launch.plan, launch.slots, launch.nbytes = plan, ffi.cast("char *", room), len(packed)
        graph = self._graph
        graph.launches, graph.launch_count = self._launches, len(plans)
        graph.nodes, graph.ranges = self._nodes, self._ranges
        self.update(slots)

    def update(self, slots: Sequence[bytes]) -> None:
        for launch, packed in zip(self._launches, slots, strict=True):
            if ffi.buffer(launch.slots, launch.nbytes)[:] != packed:
                ffi.memmove(launch.slots, packed, launch.nbytes)
                launch.changed = 1

    def places(self, places: Sequence[Place]) -> Any:
        return ffi.new("pa_gpu_place[]", list(places)), len(places)

    def move(self, places: Any, address: int) -> None:
        lib.pa_gpu_graph_move(self._graph, *places, address)

    def launch(self) -> None:
        if self._serialized is None:
            self._launch_graph(b"")
        else:
            self._serialized(b"")

    def _launch_graph(self, _: bytes) -> None:
        code = lib.pa_gpu_graph_launch(self._graph)
        if code:
            if code == lib.PA_GPU_REMAKE:
                self._make()
                code = lib.pa_gpu_graph_launch(self._graph)
            self._check("a launch of a graph", code)

    def _make(self) -> None:
        if self._graph.exec:
            self._driver.synchronize_all()  # HIP doesn't say that an executable graph may be destroyed while it runs
        self._check("destroying a graph", lib.pa_gpu_graph_destroy(self._graph))
        self._check("making a graph", lib.pa_gpu_graph_make(self._graph))

    def _check(self, what: str, code: int) -> None:
        if code:
            self._driver.fail(what, code)
