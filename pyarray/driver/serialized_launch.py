"""Launches of several kernels, the first of which leaves values in memory of their module for the others."""

from __future__ import annotations

from typing import Protocol

from ..locks import new_lock
from .base import Launcher


class Streams(Protocol):
    """What is asked of a driver."""

    def current_stream(self) -> int: ...

    def follow(self, other: int) -> None: ...


class SerializedLaunches:
    """Lets such launches come one after the other: from the first kernel of one to its last, no thread
    launches another, and a launch waits, on the device, for the one before it if that was in another stream.

    One turn for the whole device, as they are rare: most loops get all that they need from their arguments.
    """

    def __init__(self, driver: Streams):
        self._driver, self._last = driver, 0
        self.lock = new_lock()

    def taken(self, launch: Launcher) -> Launcher:
        """The launch, in turn."""

        def in_turn(slots: bytes) -> None:
            with self.lock:
                here = self._driver.current_stream()
                if here != self._last:
                    self._driver.follow(self._last)
                    self._last = here
                launch(slots)

        return in_turn
