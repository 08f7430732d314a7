"""Times of calls on a GPU, between events of the device."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from .timing import Times


def seconds(torch: Any, call: Callable[[], Any], calls: int) -> float:
    """Of a call on the device, of so many one after the other."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / calls


def timer(torch: Any, quick: bool, calls: int = 1) -> Callable[[Callable[[], Any]], Times]:
    """Seconds of a call on the device, of so many one after the other: least and median of several."""

    def measure(call: Callable[[], Any]) -> Times:
        for _ in range(calls):
            call()
        found = [seconds(torch, call, calls) for _ in range(5 if quick else 15)]
        return Times(min(found), statistics.median(found), len(found), calls)

    return measure


def in_turns(torch: Any, quick: bool, calls: int, named: dict[str, Callable[[], Any]]) -> dict[str, Times]:
    """As `timer` measures, each a burst in turn: all of them on a device as hot as the others', whose clock depends on
    its temperature and power."""
    found = {who: list[float]() for who in named}
    for _ in range(5 if quick else 15):
        for who, call in named.items():
            call()
            found[who].append(seconds(torch, call, calls))
    return {who: Times(min(t), statistics.median(t), len(t), calls) for who, t in found.items()}
