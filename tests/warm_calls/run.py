"""Runs families: each call warm, in all orders, and each of them cold."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from differential.compare import shown
from differential.operands import Case
from differential.rows import ROWS, Row

from pyarray._core import clear_plans
from pyarray.jit.launch_state import observing

from .changes import family
from .outcomes import Made, described, difference, outcome
from .rows import FURTHER

AT_FIRST = 6  # runs of a family's first call before the others: more than are needed before it is captured
EACH = 5  # further runs of each
ALL = (*ROWS, *FURTHER)
TABLES: list[dict[Any, Any]] = []  # that planted functions keep from call to call


@dataclass
class Report:
    """What came of it. `unstable` counts, by function, calls of which two cold ones differ; `refused` those that
    raise."""

    calls: int = 0
    families: int = 0
    functions: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    unstable: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


HOW = ("fresh arrays", "same arrays", "observed", "cleared")  # a call is made: with the same, of other values
ODDS = (0.66, 0.25, 0.06, 0.03)


@dataclass
class Seen:
    """A warm call: the `turn` in which its case ran with these values, and what it gave."""

    case: int
    values: int
    turn: int
    how: str
    said: dict[str, Any]

    def __str__(self) -> str:
        return f"turn {self.turn}, {self.how}, case {self.case} of the family, values {self.values}"


def check(
    calls: int,
    device: str,
    seed: int = 0,
    *,
    rows: Sequence[Row] | None = None,
    dtypes: int = 2,
    stop_after: int = 50,
    progress: Callable[[Report], None] | None = None,
    started: Callable[[str], None] | None = None,
    found: Callable[[str], None] | None = None,
) -> Report:
    """Families of the rows in turn until `calls` warm calls were made; on GPUs some calls are on the CPU."""
    report, reported = Report(), set()
    devices = (device,) if device == "cpu" else (device, "cpu")
    rng = np.random.default_rng([seed, 2])
    for row, number in _turns(rows or ALL):
        if report.calls >= calls or len(report.differences) >= stop_after:
            return report
        if started is not None:
            started(f"seed {seed}, {row.name} {number}")
        cases = family(row, seed, number, dtypes, devices)
        for what, case, text in compared(cases, device, rng, report):
            if (key := (row.name, case.function, what)) not in reported:
                reported.add(key)
                line = f"{shown(case, f'seed {seed}, {row.name} {number}', device)} {what}: {text}"
                report.differences.append(line)
                if found is not None:
                    found(line)
        report.families += 1
        if progress is not None and report.families % 100 == 0:
            progress(report)
    return report


def _turns(rows: Sequence[Row]) -> Iterator[tuple[Row, int]]:
    number = 0
    while rows:
        yield from ((row, number) for row in rows)
        number += 1


def compared(
    cases: Sequence[Case], device: str, rng: np.random.Generator, report: Report
) -> Iterator[tuple[str, Case, str]]:
    """(what differs, the case, how) of a family's warm calls from cold ones."""
    warm = _warm(cases, device, rng)
    report.calls += len(warm.seen)
    if any(ref() is not None for ref in warm.buffers):
        gc.collect()
        if alive := sum(ref() is not None for ref in warm.buffers):
            yield "references", cases[0], f"{alive} buffers of operands live longer than all arrays"
    for call, text in warm.spoiled:
        yield "later", cases[call.case], f"{text} ({call})"
    cold: dict[tuple[int, int], dict[str, Any]] = {}
    for call in warm.seen:
        case, key = cases[call.case], (call.case, call.values)
        if key not in cold:
            cold[key] = _cold(case, call.values, device)
        report.refused[case.row.name] += bool(cold[key]["error"])
        where, text = difference(call.said, cold[key])
        if where and difference(_cold(case, call.values, device), cold[key])[0]:
            report.unstable[case.row.name] += 1
        elif where:
            yield where, case, f"{text} ({call})"


def forget() -> None:
    """Drops all plans, and what planted functions keep."""
    clear_plans()
    for table in TABLES:
        table.clear()


def _cold(case: Case, values: int, device: str) -> dict[str, Any]:
    made = Made(case, values, device)
    forget()
    return outcome(made)[1]


@dataclass
class _Warm:
    """The warm calls of a family. `spoiled`: whose results other calls have changed; `buffers`: of all operands."""

    seen: list[Seen] = field(default_factory=list)
    spoiled: list[tuple[Seen, str]] = field(default_factory=list)
    buffers: list[weakref.ref[Any]] = field(default_factory=list)


def _warm(cases: Sequence[Case], device: str, rng: np.random.Generator) -> _Warm:
    """All calls of a family in one order."""
    warm = _Warm()
    last: dict[int, Made] = {}  # by the number of the case: its arrays, for a call with the same ones
    kept: list[tuple[Seen, Any, Made]] = []
    forget()
    order = [0] * AT_FIRST + [int(k) for k in rng.permutation(np.repeat(np.arange(len(cases)), EACH))]
    for turn, number in enumerate(order):
        values, how = int(rng.integers(2)), str(rng.choice(HOW, p=ODDS))
        if how == "cleared":
            forget()
        made = last.pop(number, None) if how == "same arrays" else None
        if made is not None:
            kept = [item for item in kept if item[2] is not made]
        if made is None or not made.refill(values):
            made = Made(cases[number], values, device)
            warm.buffers += [weakref.ref(memory._buffer) for memory in made.ours]
        with observing(lambda launch: launch.run()) if how == "observed" else contextlib.nullcontext():
            result, said = outcome(made)
        warm.seen.append(Seen(number, values, turn, how, said))
        last[number] = made
        kept.append((warm.seen[-1], result, made))
    for call, result, made in kept:
        where, text = difference(described(result, made), call.said["result"], "result")
        if where:
            warm.spoiled.append((call, f"{where}: {text}"))
    return warm
