"""What is done with array memory other than by launches that observers see: by the host itself, by drivers'
copies, by launches that are hidden. A call with any of it isn't the sum of its observed launches, so that it
can't be repeated by doing those again (`jit.replay`). Whoever does such a thing sets `touch.seen`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class _Touch(threading.local):
    """Of this thread. `seen`: memory of an array was read or written out of the sight of observers. `guards`
    collects, where it is a list, arrays that the host reads for nothing but a test, with the test."""

    seen: bool = False
    guards: list[tuple[Any, Callable[..., None]]] | None = None


touch = _Touch()
