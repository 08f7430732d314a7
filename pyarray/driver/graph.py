"""Launches that are repeated together: `Driver.graph` makes them, as a driver's graph where a device has such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class GraphLaunch(NamedTuple):
    """A launch of a graph: the kernel's handle, what it reads and writes (`driver.base.Operand`), and the packed
    arguments."""

    function: int
    operands: Sequence[Any]
    slots: bytes


class LaunchSequence:
    """Launches one after the other, on the current stream. One thread at a time may use it."""

    def __init__(self, launches: Sequence[GraphLaunch], launchers: Sequence[Callable[[bytes], None]] = ()):
        self._launchers = launchers
        self._slots = [x.slots for x in launches]

    def update(self, slots: Sequence[bytes]) -> None:
        """Sets the packed arguments of all launches, from the next `launch` on."""
        self._slots = list(slots)

    def launch(self) -> None:
        for launch, slots in zip(self._launchers, self._slots, strict=True):
            launch(slots)
