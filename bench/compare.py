"""Which cases moved between two runs: ratios to peers, beyond the noise of the timings. Never times: what a
machine does in an hour is not known, but its other programs slow all candidates of a race alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .timing import SUBJECT, Row, Times

# A process places memory and code anew, and meets other programs: that moves the same code by about as much.
FLOOR, QUICK = 0.10, 0.25
FEW = 5  # samples, of which fewer say nothing about their own spread
UNKNOWN = 0.25  # what is taken for it then


@dataclass(frozen=True)
class Change:
    """One case in two runs: the ratio to the best of the peers that both had, `noise` as a fraction."""

    part: str
    row: Row
    before: float
    now: float
    noise: float
    typical: float  # the change of the ratio of medians

    @property
    def factor(self) -> float:
        """Above 1, pyarray has become faster in relation to its peers."""
        return self.now / self.before

    @property
    def moved(self) -> bool:
        """Whether minima and medians both moved, the same way, by more than the noise."""
        least, typical, noise = math.log(self.factor), math.log(self.typical), math.log1p(self.noise)
        return least * typical > 0 and min(abs(least), abs(typical)) > noise


def spread(times: Times) -> float:
    """How far the minimum may be off, as a logarithm: half of the way from there to the median."""
    distance = math.log(times.median / times.min) / 2
    return distance if times.samples >= FEW else max(distance, UNKNOWN)


def noise(times: Iterable[Times], floor: float) -> float:
    """Of a change that these are part of, as a fraction: they are independent of each other."""
    logs = [math.log1p(floor), *map(spread, times)]
    return math.expm1(math.sqrt(sum(x * x for x in logs)))


def change(part: str, now: Row, before: Row, floor: float = FLOOR) -> Change | None:
    """None where there is nothing to compare: no time of ours, no peer that both have."""
    common, runs = now.peers.keys() & before.peers.keys(), (before, now)
    least = [r for row in runs if (r := row.ratio("min", common)) is not None]
    typical = [r for row in runs if (r := row.ratio("median", common)) is not None]
    if len(least) < 2 or len(typical) < 2:
        return None
    names = [(row, name) for row in runs for name in (SUBJECT, row.best_peer("min", common)) if name]
    times = [t for row, name in names if (t := row.times[name]) is not None]
    return Change(part, now, least[0], least[1], noise(times, floor), typical[1] / typical[0])


def rows_of(part: Mapping[str, Any]) -> list[Row]:
    """Of one part's JSON."""
    return [Row.from_dict(row) for row in part.get("rows", ())]


def changes(part: str, now: Sequence[Row], before: Sequence[Row], quick: bool = False) -> list[Change]:
    """Of all cases that both runs have; `quick`: if one of them was."""
    known = {row.key: row for row in before}
    pairs = [(row, known[row.key]) for row in now if row.key in known]
    return [moved for row, old in pairs if (moved := change(part, row, old, QUICK if quick else FLOOR)) is not None]


def differences(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """What else differs between two runs of a part, which may be why its ratios do."""
    told = []
    for name in ("processor", "cores", "python"):
        pair = [run.get("machine", {}).get(name) for run in (before, now)]
        if pair[0] != pair[1]:
            told.append(f"{name} {pair[0]} → {pair[1]}")
    old, new = before.get("versions", {}), now.get("versions", {})
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            told.append(f"{name} {old.get(name, 'absent')} → {new.get(name, 'absent')}")
    for name, words in (("quick", ("full", "quick")), ("threads", None)):
        pair = [run.get(name) for run in (before, now)]
        if pair[0] != pair[1]:
            described = [words[bool(x)] if words else f"{name} {x or 'by default'}" for x in pair]
            told.append(" → ".join(described))
    return told
