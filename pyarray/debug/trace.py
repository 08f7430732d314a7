"""Traces: launches with sizes, bytes and times, for the timelines of Chrome and Perfetto."""

from __future__ import annotations

import itertools
import json
import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, overload

from .. import shapes
from ..api.numpy import products
from ..array import ndarray
from ..jit.launch_cost import Cost, cost_of, layouts, total
from ..jit.launch_state import Launch, add_observer, remove_observer
from ..lang.ir import ArrayType
from . import record


@dataclass(frozen=True)
class TracedLaunch:
    """One launch. `sizes` maps array parameters to shapes; `bytes_read` and `bytes_written` count each array
    once by its direction; `start` (since the trace began) and `duration` are seconds. `key` names the
    compiled code, `error` is what the launch raised."""

    number: int
    kernel: str
    key: str
    device: str
    thread: str
    thread_id: int
    sizes: dict[str, tuple[int, ...]]
    bytes_read: int
    bytes_written: int
    start: float
    duration: float
    error: str | None = None
    _counted: Callable[[], Cost] = field(default=Cost, repr=False, compare=False)

    @cached_property
    def cost(self) -> Cost:
        """What it did, counted when it is first asked for: operations, bytes, loads and stores."""
        return self._counted()


@overload
def trace() -> Trace: ...
@overload
def trace(
    x: Any,
    /,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: ndarray | None = None,
) -> ndarray: ...
def trace(
    x: Any = None,
    /,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: ndarray | None = None,
) -> Trace | ndarray:
    """Record every launch inside the block, of all threads: user kernels, the library's own, and the calls
    of other libraries that `linalg` and `fft` make, under their names (`numpy.linalg.svd`).

    Of an array it is NumPy's function: the sum of the diagonal `offset` of the matrices in two axes.

    `t.launches` lists them, `t.summary()` is a table by kernel, `t.cost` what all did, `t.save(path)` writes
    JSON for chrome://tracing and ui.perfetto.dev. Times are those of the launch with the device's work;
    compiling isn't in them, nor is a `dump` that runs at the same time.

    >>> a = pa.ones(1000)
    >>> with pa.trace() as t:
    ...     b = a + a
    >>> t.launches[0].sizes["out"], t.launches[0].bytes_written
    ((1000,), 8000)
    >>> pa.trace(pa.asarray([[1, 2], [3, 4]]), offset=1).item()
    2
    """
    if x is not None:
        return products.trace(x, offset, axis1, axis2, dtype, out)
    if (offset, axis1, axis2, dtype, out) != (0, 0, 1, None, None):
        raise TypeError("trace(): the sum of a diagonal needs an array; without one, trace() takes nothing")
    return Trace()


class Trace:
    """A trace of the launches in its `with` block; entered again, it continues."""

    def __init__(self) -> None:
        self.launches: list[TracedLaunch] = []
        self._numbers = itertools.count()
        self._began: int | None = None

    def __enter__(self) -> Trace:
        if self._began is None:
            self._began = time.perf_counter_ns()
        add_observer(self._observe, inner=True)
        return self

    def __exit__(self, *exception: object) -> None:
        remove_observer(self._observe)

    def _observe(self, launch: Launch) -> None:
        synchronize = launch.variant.device.driver.synchronize
        number, error = next(self._numbers), None
        synchronize()
        start = time.perf_counter_ns()
        try:
            launch.run()
            synchronize()
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
            raise
        finally:
            self._add(launch, number, start, time.perf_counter_ns(), error)

    def _add(self, launch: Launch, number: int, start: int, end: int, error: str | None) -> None:
        sizes, moved = {}, {"IN": 0, "OUT": 0, "INOUT": 0, "UNUSED": 0}
        directions, live = {}, {}
        for g in (*record.arguments(launch), *record.results(launch, 0)):
            live[g.name], directions[g.name] = g.value, g.direction
            if isinstance(g.type, ArrayType):
                sizes[g.name] = g.value._shape
                shown = shapes.stored_shape(g.value._shape, g.value._strides)
                moved[g.direction] += math.prod(shown) * g.value._dtype.itemsize
        count = getattr(launch.variant.program, "count_operations", None)
        cost = partial(cost_of, launch.kernel, count, layouts(live), directions)
        thread, began = threading.current_thread(), self._began or 0
        self.launches.append(
            TracedLaunch(
                number, launch.kernel, launch.variant.artifact.key, str(launch.variant.device), thread.name,
                thread.ident or 0, sizes, moved["IN"] + moved["INOUT"], moved["OUT"] + moved["INOUT"],
                (start - began) / 1e9, (end - start) / 1e9, error, cost,
            )
        )  # fmt: skip

    def save(self, path: Any) -> None:
        """Write the launches as trace events, in microseconds, a row per thread."""
        process = os.getpid()
        events: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": "pyarray"}}
        ]
        for thread_id, name in {row.thread_id: row.thread for row in self.launches}.items():
            events.append({"name": "thread_name", "ph": "M", "pid": process, "tid": thread_id, "args": {"name": name}})
        for row in sorted(self.launches, key=lambda row: row.start):
            head = {
                "number": row.number, "key": row.key, "device": row.device, "bytes_read": row.bytes_read,
                "bytes_written": row.bytes_written, "sizes": {n: list(s) for n, s in row.sizes.items()},
            }  # fmt: skip
            events.append(
                {
                    "name": row.kernel, "cat": "kernel", "ph": "X", "pid": process, "tid": row.thread_id,
                    "ts": row.start * 1e6, "dur": row.duration * 1e6,
                    "args": head if row.error is None else head | {"error": row.error},
                }
            )  # fmt: skip
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")

    @property
    def cost(self) -> Cost:
        """What all launches did."""
        return total(row.cost for row in self.launches)

    def summary(self) -> str:
        """A line per kernel, the one with the most time first. Operations that aren't exact have a `~`."""
        rows: dict[str, list[TracedLaunch]] = {}
        for row in self.launches:
            rows.setdefault(row.kernel, []).append(row)
        lines = [["kernel", "launches", "total ms", "mean us", "read MB", "written MB", "GB/s", "operations"]]
        for name, records in sorted(rows.items(), key=lambda item: -sum(r.duration for r in item[1])):
            seconds = sum(r.duration for r in records)
            read, stored = sum(r.bytes_read for r in records), sum(r.bytes_written for r in records)
            speed = (read + stored) / seconds / 1e9 if seconds else 0.0
            numbers = seconds * 1e3, seconds / len(records) * 1e6, read / 1e6, stored / 1e6, speed
            cost = total(row.cost for row in records)
            operations = f"{'' if cost.exact else '~'}{cost.operations}"
            lines.append([name, str(len(records)), *(f"{x:.3f}" for x in numbers), operations])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines]
        return "\n".join(text)
