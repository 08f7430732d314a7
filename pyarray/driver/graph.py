"""Launches that are repeated together: `Driver.graph` makes them, as a driver's graph where a device has such."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class GraphLaunch(NamedTuple):
    """A launch of a graph: the kernel's handle, what it reads and writes (`driver.base.Operand`), and the packed
    arguments."""

    function: int
    operands: Sequence[Any]
    slots: bytes


class Place(NamedTuple):
    """Where the address of an array goes, with `offset` bytes added to it: a slot of a launch's arguments."""

    launch: int
    slot: int
    offset: int


class LaunchSequence:
    """Launches one after the other, on the current stream. One thread at a time may use it."""

    def __init__(self, launches: Sequence[GraphLaunch], launchers: Sequence[Callable[[bytes], None]] = ()):
        self._launchers = launchers
        self._slots = [x.slots for x in launches]

    def update(self, slots: Sequence[bytes]) -> None:
        """Sets the packed arguments of all launches, from the next `launch` on."""
        self._slots = list(slots)

    def places(self, places: Sequence[Place]) -> Any:
        """These places as `move` takes them."""
        return places

    def move(self, places: Any, address: int) -> None:
        """Sets the address of an array, from the next `launch` on, and leaves all other arguments as they are."""
        for launch, slot, offset in places:
            slots, at = self._slots[launch], 8 * slot
            self._slots[launch] = b"%b%b%b" % (slots[:at], struct.pack("Q", address + offset), slots[at + 8 :])

    def launch(self) -> None:
        for launch, slots in zip(self._launchers, self._slots, strict=True):
            launch(slots)
