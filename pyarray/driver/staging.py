"""Staging: large copies between pageable host memory and a GPU go through pinned memory.

The vendor's driver stages such copies on one core. Here all cores fill or empty one piece while the device
copies the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..locks import new_lock
from .base import get_device
from .gpu_calls import GpuCalls

if TYPE_CHECKING:
    from .cpu import CpuDriver

PIECE = 4 << 20
DIRECT = 16 << 20  # bytes up to which the vendor's own copy is as fast


class Staging:
    """Two pinned pieces of a device, made at the first large copy; one copy at a time uses them."""

    def __init__(self, driver: GpuCalls):
        self._driver = driver
        self._pieces: list[tuple[int, int]] = []  # address, and event of the last use
        self.lock = new_lock()

    def _make_pieces(self) -> list[tuple[int, int]]:
        while len(self._pieces) < 2:
            self._pieces.append((self._driver.pinned(PIECE), self._driver.event_create(timing=False)))
        return self._pieces

    def copy_in(self, ptr: int, host: int, nbytes: int, stream: int) -> None:
        """Host to device; the host memory may change after the return."""
        driver = self._driver
        if nbytes <= DIRECT:
            driver.call("copy_in", ptr, host, nbytes, stream)
            if driver.is_pinned(host):
                driver.call("stream_synchronize", stream)
            return
        with self.lock:
            pieces, copy = self._make_pieces(), _host().copy_disjoint
            for number, start in enumerate(range(0, nbytes, PIECE)):
                piece, event = pieces[number % 2]
                size = min(PIECE, nbytes - start)
                driver.event_synchronize(event)
                copy(piece, host + start, size)
                driver.call("copy_in", ptr + start, piece, size, stream)
                driver.event_record(event, stream)

    def copy_out(self, host: int, ptr: int, nbytes: int, stream: int) -> None:
        """Device to host; all of it is there at the return."""
        driver = self._driver
        with self.lock:
            pieces, copy = self._make_pieces(), _host().copy_disjoint
            starts = range(0, nbytes, PIECE)
            for number in range(len(starts) + 1):
                if number < len(starts):
                    piece, event = pieces[number % 2]
                    driver.event_synchronize(event)  # an earlier upload may still read it
                    size = min(PIECE, nbytes - starts[number])
                    driver.call("copy_out", piece, ptr + starts[number], size, stream)
                    driver.event_record(event, stream)
                if number:
                    piece, event = pieces[(number - 1) % 2]
                    start = starts[number - 1]
                    driver.event_synchronize(event)
                    copy(host + start, piece, min(PIECE, nbytes - start))


def _host() -> CpuDriver:
    driver = get_device("cpu").driver
    return cast("CpuDriver", driver)
