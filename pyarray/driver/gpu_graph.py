"""Graphs of a GPU: a chain of kernel nodes (csrc/runtime/gpu_graph.c), whose parameters are updated in place."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Protocol

from .._runtime import ffi, lib
from .graph import GraphLaunch, LaunchSequence


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
        super().__init__(launches)
        self._driver = driver
        self._plans = [driver.plan(x.function, x.operands) for x in launches]
        self._functions = [x.function for x in launches]  # which keep the modules
        self._graph = ffi.new("pa_gpu_graph *", {"device": driver.gpu, "function": driver.add_graph(self._functions)})
        self._grids: list[list[tuple[Any, int]]] = []  # of each launch: steps and blocks
        self._ready = False
        self._launch: Any = self._launch_graph
        if any(driver.is_serialized(x.function) for x in launches):
            self._launch = driver.serialized(self._launch_graph)
        weakref.finalize(self, driver.remove_graph, self._graph).atexit = False
        self.update(self._slots)

    def update(self, slots: Sequence[bytes]) -> None:
        changed = [k for k, (old, new) in enumerate(zip(self._slots, slots, strict=True)) if old != new]
        if self._ready and not changed:
            return
        grids = self._grids or [[] for _ in slots]
        now = [self._grids_of(k, slots[k]) if k in changed or not self._ready else grids[k] for k in range(len(slots))]
        same_nodes = self._ready and all(len(a) == len(b) for a, b in zip(grids, now, strict=True))
        # what fails in between leaves a graph that the next update makes anew
        self._ready, self._slots, self._grids = False, list(slots), now
        self._set_ranges()
        if same_nodes:
            self._set_nodes(frozenset(changed))
        else:
            self._make()
        self._ready = True

    def launch(self) -> None:
        self._launch(b"")

    def _launch_graph(self, _: bytes) -> None:
        self._check("a launch of a graph", lib.pa_gpu_graph_launch(self._graph))

    def _grids_of(self, k: int, slots: bytes) -> list[tuple[Any, int]]:
        plan, _ = self._plans[k]
        grid, found, step = ffi.new("pa_gpu_grid *"), [], 0
        while (step := lib.pa_gpu_next_grid(plan, step, slots, grid)) >= 0:
            found.append((grid.step, int(grid.blocks)))
        return found

    def _make(self) -> None:
        if self._graph.exec:
            self._driver.synchronize_all()  # HIP doesn't say that an executable graph may be destroyed while it runs
        self._check("destroying a graph", lib.pa_gpu_graph_destroy(self._graph))
        count = sum(map(len, self._grids))
        self._nodes = ffi.new("pa_gpu_node[]", count)
        self._graph.nodes, self._graph.node_count = self._nodes, count
        self._fill_nodes()
        self._check("making a graph", lib.pa_gpu_graph_make(self._graph))

    def _set_nodes(self, changed: frozenset[int]) -> None:
        self._fill_nodes()
        node = 0
        for k, grids in enumerate(self._grids):
            for _ in grids:
                if k in changed:
                    self._check("an update of a graph", lib.pa_gpu_graph_set(self._graph, node))
                node += 1

    def _fill_nodes(self) -> None:
        self._packed = [ffi.from_buffer(slots) for slots in self._slots]
        node = 0
        for packed, grids in zip(self._packed, self._grids, strict=True):
            for step, blocks in grids:
                n = self._nodes[node]
                n.step, n.blocks, n.slots, n.nbytes = step, blocks, packed, len(packed)
                node += 1

    def _set_ranges(self) -> None:
        """What all launches read and write: ranges that overlap are one, and so are all beyond a limit."""
        found, room = [], ffi.new("pa_gpu_range[]", lib.PA_GPU_OPERANDS)
        for (plan, _), slots in zip(self._plans, self._slots, strict=True):
            count = lib.pa_gpu_ranges(plan, slots, room)
            found += [(x.low, x.high, x.writes) for x in room[0:count]]
        merged: list[tuple[int, int, int]] = []
        for low, high, writes in sorted(found):
            if merged and (low < merged[-1][1] or len(merged) == lib.PA_GPU_OPERANDS):
                first, last, written = merged.pop()
                merged.append((first, max(high, last), writes | written))
            else:
                merged.append((low, high, writes))
        self._ranges = ffi.new("pa_gpu_range[]", merged)
        self._graph.ranges, self._graph.range_count = self._ranges, len(merged)

    def _check(self, what: str, code: int) -> None:
        if code:
            self._driver.fail(what, code)
