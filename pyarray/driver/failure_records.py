"""The failure records of a GPU's checked launches."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

from .._runtime import ffi
from ..errors import DeviceError
from .base import CheckedLauncher, Failure, Launcher, read_failure

if TYPE_CHECKING:
    from .gpu import GpuDriver


class FailureRecords:
    """Free records: a `pa_failure` in memory that host and device see, and a `pa_gate` of the device
    (csrc/device/pa_check.h), both for the life of the process. A launch has its own, since two threads may
    launch the same kernel."""

    def __init__(self, driver: GpuDriver):
        self._driver = driver
        self._free: list[tuple[Any, int]] = []

    def checked(self, launch: Launcher) -> CheckedLauncher:
        """As `launch`, which it waits for; its value is the launch's first failure."""
        driver, free = self._driver, self._free

        def checked(slots: bytes) -> Failure | None:
            try:
                record, gate = free.pop()
            except IndexError:
                record, gate = self._new()
            launch(slots + struct.pack("QQ", int(ffi.cast("uintptr_t", record)), gate))
            driver.synchronize()  # a device that failed keeps the record: it may still write
            failure = read_failure(record) if record.set else None
            if failure is not None:
                record.set = 0
                driver.fill(gate, 0xFF, 8)
                driver.synchronize()  # the next launch may be in another stream
            free.append((record, gate))
            return failure

        return checked

    def _new(self) -> tuple[Any, int]:
        driver, nbytes = self._driver, ffi.sizeof("pa_failure")
        place = driver.pinned(nbytes)
        ctypes.memset(place, 0, nbytes)
        gate = driver.allocate(64)
        if not gate:
            where = f"{driver.kind}:{driver.index}"
            raise DeviceError(
                f"{where} has no 64 bytes for a launch with bounds checks; free arrays there, "
                "or leave debug mode"
            )
        driver.fill(gate, 0, 64)
        driver.fill(gate, 0xFF, 8)
        return ffi.cast("pa_failure *", place), gate
