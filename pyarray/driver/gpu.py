"""What GPUs have in common: launches of several steps, the failure record, what a fork does.

A vendor's driver fills a `pa_gpu_device` with the addresses of its own entry points; the launch itself is C
(csrc/runtime/gpu.c), since a call through a binding takes longer than the launch.
"""

from __future__ import annotations

import os
import struct
import weakref
from abc import abstractmethod
from typing import Any, ClassVar, NoReturn

from .._runtime import ffi, lib
from ..errors import DeviceError
from .base import CheckedLauncher, Driver, Failure, Launcher, read_failure

THREADS = 256  # of a block
BLOCKS = 32  # of a processor in a full grid: enough that the last ones to finish leave little idle


class GpuDriver(Driver):
    """A device whose work is asynchronous, on one stream, in order."""

    end_mark: ClassVar[int]
    warp: int  # lanes
    grid = True

    def __init__(self, index: int):
        super().__init__(index)
        self._steps: list[tuple[Any, int]] = []
        self._records: list[Any] = []  # free failure records, in memory that host and device see
        self._gpu = ffi.new("pa_gpu_device *")
        self._gpu.end_mark = self.end_mark
        _drivers.add(self)

    @abstractmethod
    def symbol(self, module: int, name: str) -> int:
        """Handle of a kernel by its symbol."""

    @abstractmethod
    def shared_record(self, nbytes: int) -> int:
        """Address of zeroed memory that host and device see, for the life of the process."""

    @abstractmethod
    def fail(self, what: str, code: int) -> NoReturn:
        """Raises `DeviceError` for an error code of the vendor."""

    def function(self, module: int, name: str) -> int:
        """Handle of a launch. `name` lists its kernels as lang/emit_gpu.py writes them: `symbol=` and the
        slots whose product is the number of iterations, * if only the device knows it, . for one thread; a w
        behind them says that each iteration is a warp's."""
        parts = [part.rpartition("=") for part in name.split(";")]
        steps = ffi.new("pa_gpu_step[]", len(parts))
        for step, (symbol, _, factors) in zip(steps, parts, strict=True):
            step.function = self.symbol(module, symbol)
            step.width = self.warp if factors.endswith("w") else 1
            factors = factors.removesuffix("w")
            step.threads = 0 if factors == "." else THREADS
            slots = [] if factors in ("*", ".") else [int(f) for f in factors.split(",") if f]
            step.factors = -1 if factors == "*" else len(slots)
            step.slot[0 : len(slots)] = slots
        self._steps.append((steps, len(parts)))
        return len(self._steps) - 1

    def launcher(self, function: int) -> Launcher:
        run, gpu, fail, length = lib.pa_gpu_launch, self._gpu, self.fail, len
        steps, count = self._steps[function]
        stream = self.queue

        def launch(slots: bytes) -> None:
            code = run(gpu, steps, count, slots, length(slots), stream)
            if code:
                fail("a launch", code)

        return launch

    def checked_launcher(self, function: int) -> CheckedLauncher:
        launch, records = self.launcher(function), self._records

        def checked(slots: bytes) -> Failure | None:
            # A record per launch: two threads may launch the same kernel.
            try:
                record = records.pop()
            except IndexError:
                record = ffi.cast("pa_failure *", self.shared_record(ffi.sizeof("pa_failure")))
            record.set = 0
            launch(slots + struct.pack("Q", int(ffi.cast("uintptr_t", record))))
            self.synchronize()  # a device that failed keeps the record: it may still write
            failure = read_failure(record) if record.set else None
            records.append(record)
            return failure

        return checked

    @property
    def queue(self) -> int:
        """The stream's handle; 0 is the default stream."""
        return 0

    def after_fork(self) -> None:
        """A child has no device: its handles belong to the parent's context."""
        self._gpu.context = 0

    def check_process(self) -> None:
        if not self._gpu.context:
            raise DeviceError(
                f"{self.kind}:{self.index} can't be used in a process forked from one that used it; start "
                "processes with multiprocessing.get_context('spawn'), or touch the device after the fork only"
            )


_drivers: weakref.WeakSet[GpuDriver] = weakref.WeakSet()


def _after_fork() -> None:
    for driver in list(_drivers):
        driver.after_fork()


os.register_at_fork(after_in_child=_after_fork)
