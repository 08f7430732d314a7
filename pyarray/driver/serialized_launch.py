"""Serializes multi-kernel launches that share module-global state."""

from __future__ import annotations

from typing import Protocol

from ..locks import new_lock
from .base import Launcher


class Streams(Protocol):
    """The part of a driver's interface that this module needs."""

    def current_stream(self) -> int: ...

    def wait_for_stream(self, other: int) -> None: ...


class SerializedLaunches:
    """Runs such launches one after the other. A lock is held from the first kernel of a launch to its last, and
    the launch waits, on the device, for the one before it where that was in another stream.

    There is one lock per device. Such launches are rare: most loops need nothing but their arguments.
    """

    def __init__(self, driver: Streams):
        self._driver, self._last = driver, 0
        self.lock = new_lock()

    def serialized(self, launch: Launcher) -> Launcher:
        """`launch` under the lock."""

        def serialized_launch(slots: bytes) -> None:
            with self.lock:
                stream = self._driver.current_stream()
                if stream != self._last:
                    self._driver.wait_for_stream(self._last)
                    self._last = stream
                launch(slots)

        return serialized_launch
