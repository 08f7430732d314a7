"""Failure records of a GPU's checked launches: memory that the device writes and the host reads."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

from .._runtime import ffi
from ..errors import DeviceError
from .base import CheckedLauncher, Launcher
from .failure import Failure, read_failure
from .gpu_calls import GpuCalls


class FailureRecords:
    """A pool of records. Each is a `pa_failure` in pinned memory and a `pa_gate` on the device
    (csrc/device/pa_check.h), both kept for the life of the process. Each launch takes a record for itself:
    two threads may launch the same kernel."""

    def __init__(self, driver: GpuCalls):
        self._driver = driver
        self._free: list[tuple[Any, int]] = []
        self._unused = b""  # the slots of the record of launches that can't fail

    def checked(self, launch: Launcher, proven: Launcher, inside: Callable[[Any], bool] | None) -> CheckedLauncher:
        """`launch` with a record: it waits and returns the launch's first failure. Where `inside` of its slots says
        that there is none, it is `proven`, for which nobody waits."""
        driver, free = self._driver, self._free

        def checked(slots: bytes) -> Failure | None:
            if inside is not None and inside(memoryview(slots).cast("q")):
                proven(slots + (self._unused or self._make_unused()))
                return None
            try:
                record, gate = free.pop()
            except IndexError:
                record, gate = self._new()
            launch(slots + _record_slots(record, gate))
            driver.synchronize()  # where this raises, the record isn't reused: the device may still write it
            failure = read_failure(record) if record.set else None
            if failure is not None:
                record.set = 0
                driver.fill(gate, 0xFF, 8)
                driver.synchronize()  # the next launch may be in another stream
            free.append((record, gate))
            return failure

        return checked

    def _make_unused(self) -> bytes:
        self._unused = _record_slots(*self._new())
        return self._unused

    def _new(self) -> tuple[Any, int]:
        driver, nbytes = self._driver, ffi.sizeof("pa_failure")
        address = driver.pinned(nbytes)
        ctypes.memset(address, 0, nbytes)
        gate = driver.allocate(64)
        if not gate:
            where = f"{driver.kind}:{driver.index}"
            raise DeviceError(
                f"{where} has no 64 bytes for a launch with bounds checks; free arrays there, or leave debug mode"
            )
        driver.fill(gate, 0, 64)
        driver.fill(gate, 0xFF, 8)
        return ffi.cast("pa_failure *", address), gate


def _record_slots(record: Any, gate: int) -> bytes:
    """The argument slots with the addresses of a record."""
    return struct.pack("QQ", int(ffi.cast("uintptr_t", record)), gate)
