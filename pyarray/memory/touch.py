"""What the host itself does with array memory, between launches: for whoever writes down what a call does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class _Touch(threading.local):
    """Of this thread. `seen`: the host has read or written memory of an array. `guards` collects, where it is
    a list, arrays that the host reads for nothing but a test, with the test."""

    seen: bool = False
    guards: list[tuple[Any, Callable[..., None]]] | None = None


touch = _Touch()
