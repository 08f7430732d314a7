"""Drawn calls of all rows, each case several times among others."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from . import compare, meant
from .draw import Draw
from .operands import Case
from .rows import ROWS, Row

TIMES = 9  # runs of a case: more than a short way needs to be learnt, and some in it
AT_ONCE = 24  # cases that are run in turns
ALL = tuple(ROWS)


@dataclass
class Report:
    """What came of it, of how many `functions`. `refused` counts the calls, by function, for which both sides
    raise an exception; `meant` the differences that the table of deviations names."""

    calls: int = 0
    cases: int = 0
    functions: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    meant: Counter[str] = field(default_factory=Counter)


def dtypes_for(row: Row, seed: int, most: int, number: int = 0) -> list[str]:
    """The dtypes of a row's case number `number`: few, since each is kernels of its own, and others from one
    case to the next until all had their turn. Another seed has another order."""
    rng = np.random.default_rng([seed, zlib.crc32(row.name.encode())])
    names = [row.dtypes[k] for k in rng.permutation(len(row.dtypes))]
    if not row.few or most >= len(names):
        return names
    return [names[(number * most + k) % len(names)] for k in range(most)]


def cases(rows: Sequence[Row], seed: int, dtypes: int) -> Iterator[tuple[Case, str]]:
    """Cases of the rows in turn, each followed by some that differ in layouts or in what shares memory."""
    number = 0
    while True:
        for row in rows:
            rng = np.random.default_rng([seed, zlib.crc32(row.name.encode()), number])
            draw = Draw(rng, dtypes_for(row, seed, dtypes, number))
            args, kwargs = row.draw(draw)
            case = draw.case(row, args, kwargs)
            yield case, f"seed {seed}, {row.name} {number}"
            for k in range(draw.integer(0, 5)):
                again = draw.chance(0.6) or not row.shares
                case = draw.relaid(case) if again else draw.related(case)
                yield case, f"seed {seed}, {row.name} {number}.{k}"
        number += 1


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
    """Runs `calls` drawn calls. Each case of the working set is run `TIMES` times, in mixed order."""
    report, rng = Report(), np.random.default_rng([seed, 1])
    source = cases([row for row in rows or ALL if row.there], seed, dtypes)
    working: list[list] = []
    reported: set[tuple[str, ...]] = set()
    while report.calls < calls and len(report.differences) < stop_after:
        while len(working) < AT_ONCE:
            working.append([*next(source), TIMES])
            report.cases += 1
        k = int(rng.integers(len(working)))
        case, name, left = working[k]
        if started is not None:
            started(name)
        differences = compare.run(case, rng, device)
        report.refused[case.row.name] += differences is None
        for difference in differences or ():
            if what := meant.by(case, difference):
                report.meant[what] += 1
            elif (key := (case.row.name, case.function, difference.aspect)) not in reported:
                reported.add(key)
                text = f"{compare.shown(case, name, device)} {difference.aspect}: {difference.text}"
                report.differences.append(f"{text} (run {TIMES - left + 1})")
                if found is not None:
                    found(report.differences[-1])
        report.calls += 1
        if progress is not None and report.calls % 1000 == 0:
            progress(report)
        working[k][2] = left - 1
        if left == 1:
            working[k] = working[-1]
            working.pop()
    return report
