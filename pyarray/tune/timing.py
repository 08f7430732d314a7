"""Times launches by events of the current stream; on the CPU by wall clock."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..driver.base import Device
from ..driver.stream import Event

SHORTEST = 0.1  # milliseconds that a timed stretch should take, where runs may be repeated in it
MAX_RUNS = 256  # in one stretch


@dataclass(frozen=True)
class Times:
    """Milliseconds of one run: median, least, and the middle half's width relative to the median."""

    median: float
    least: float
    spread: float
    runs: int

    @staticmethod
    def of(samples: list[float]) -> Times:
        ordered = sorted(samples)
        median, n = statistics.median(ordered), len(ordered)
        width = ordered[(3 * n) // 4 if n > 1 else 0] - ordered[n // 4]
        return Times(median, ordered[0], width / median if median else 0.0, n)


class Stopwatch:
    """Times runs on a device: `prepare` before each is not timed. `bench(fn)`, if given, says the
    milliseconds of `fn()` instead, which is then all of a run."""

    def __init__(self, device: Device, bench: Callable[[Callable[[], Any]], float] | None, repeatable: bool):
        self._start, self._end = Event(device), Event(device)
        self._device, self._bench = device, bench
        self._repeatable = repeatable and bench is None

    def repeats(self, time: Callable[[int], float]) -> int:
        """How many runs one stretch should hold; `time(repeats)` times one."""
        if not self._repeatable:
            return 1
        first = time(1)
        return max(1, min(MAX_RUNS, int(SHORTEST / first) if first > 0 else MAX_RUNS))

    def time(self, run: Callable[[], Any], prepare: Callable[[], Any], repeats: int) -> float:
        """Milliseconds of one run."""
        if self._bench is not None:
            return _milliseconds(self._bench(lambda: (prepare(), run())[1]))
        prepare()
        self._start.record()
        for _ in range(repeats):
            run()
        self._end.record()
        self._end.synchronize()
        return max(self._start.elapsed(self._end), 1e-6) / repeats


def _milliseconds(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"bench(fn) gives milliseconds, got {value!r}") from None
    if not 0 <= number < math.inf:
        raise ValueError(f"bench(fn) gives milliseconds, got {value!r}")
    return number
