"""A fair race in one process: candidates take turns, so that a busy machine slows them all alike.

A *sample* is a loop of calls long enough for the clock. Before it the process falls silent: OpenBLAS's
workers spin for 0.1 s after a product, OpenMP's for some ms, and would take a core from whoever comes next.
Loops that aren't counted then wake the candidate's own threads, fill the caches and bring the cores to speed:
after 0.1 s without arithmetic their first 2 ms of vector instructions are up to twice as slow. The *minimum*
over samples is what the code costs; the *median* is what a user of this machine at this hour sees. Only
ratios within a race mean a thing.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import platform
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SUBJECT = "pyarray"
SAMPLE = 2e-3  # seconds a sample should last: 10^4 times what the clock resolves
WARM = 5e-3  # seconds of loops that aren't counted before a sample
ROUNDS = (5, 30)  # fewest and most samples of a candidate
PAUSE = 1e-3  # seconds between two looks whether the workers of the candidate before are asleep
TICK = 2e-2  # seconds in which the system's account of processor time is certain to move
PATIENCE = 0.5  # seconds after which a candidate that never sleeps isn't waited for


@dataclass(frozen=True)
class Times:
    """Seconds per call over `samples` samples of `calls` calls each."""

    min: float
    median: float
    samples: int
    calls: int


class Race(dict[str, Times | None]):
    """Candidate → `Times`, or None where it is missing; `why` says what it raised."""

    def __init__(self, times: Mapping[str, Times | None], why: Mapping[str, str]):
        super().__init__(times)
        self.why = dict(why)


@dataclass(frozen=True)
class Row:
    """One case: candidate → `Times`, or None where it is missing, with what it raised in `why`.

    `ratio` is best peer's minimum / pyarray's: above 1 pyarray is faster. `target` is the ratio to reach,
    `work` the operations of one call, `n` the size, `against` the peers that count, where not all do (none:
    the candidates are parts of a whole). Cases of one `series` (the case itself, if None) differ in `n`.
    `multiples`: tables show the inverse, pyarray's time in times of the peer's, with the most it is to be.
    """

    group: str
    case: str
    times: Mapping[str, Times | None]
    target: float | None = None
    work: float | None = None
    n: int | None = None
    against: tuple[str, ...] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    series: str | None = None
    why: dict[str, str] = field(default_factory=dict)
    multiples: bool = False

    @property
    def key(self) -> tuple[str, str, int | None]:
        """What finds this case again in another run of its part."""
        return self.group, self.case, self.n

    @property
    def peers(self) -> dict[str, Times]:
        """Those that count and have times."""
        names = [n for n in self.times if not n.startswith(SUBJECT)] if self.against is None else self.against
        return {n: t for n in names if (t := self.times.get(n)) is not None}

    @property
    def missed(self) -> bool:
        """Whether it misses its target in minimum and median both."""
        ratios = self.ratio(), self.ratio("median")
        return self.target is not None and all(r is not None and r < self.target for r in ratios)

    def best_peer(self, figure: str = "min", among: Collection[str] | None = None) -> str | None:
        """The fastest candidate that isn't pyarray; only of those in `among`, if given."""
        peers = {n: getattr(t, figure) for n, t in self.peers.items() if among is None or n in among}
        return min(peers, key=lambda n: peers[n]) if peers else None

    def ratio(self, figure: str = "min", among: Collection[str] | None = None) -> float | None:
        """Best peer's time over pyarray's."""
        best, own = self.best_peer(figure, among), self.times.get(SUBJECT)
        if best is None or own is None:
            return None
        return float(getattr(self.times[best], figure) / getattr(own, figure))

    def multiple(self, figure: str = "min") -> float | None:
        """Pyarray's time over best peer's."""
        ratio = self.ratio(figure)
        return 1 / ratio if ratio else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        times = {name: t and asdict(t) for name, t in self.times.items()}
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        ratios = {
            "best_peer": self.best_peer(),
            "ratio_min": self.ratio(),
            "ratio_median": self.ratio("median"),
        }
        return plain | {"times": times, "why": self.why or getattr(self.times, "why", {})} | ratios

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Row:
        """What `as_dict` gave, perhaps by an earlier version of this file."""
        fields = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        fields["times"] = {
            name: t and Times(**{k: t[k] for k in Times.__dataclass_fields__}) for name, t in data["times"].items()
        }
        if data.get("against") is not None:
            fields["against"] = tuple(data["against"])
        return cls(**fields)


@dataclass(frozen=True)
class Figure:
    """A number that is no ratio to a peer, with the bound that it should keep."""

    name: str
    value: float | str
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def missed(self) -> bool:
        if isinstance(self.value, str):
            return False
        return (self.at_most is not None and self.value > self.at_most) or (
            self.at_least is not None and self.value < self.at_least
        )

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, str) else f"{self.value:.4g}"
        bounds = [f"{sign} {b:g}" for sign, b in (("≤", self.at_most), ("≥", self.at_least)) if b is not None]
        wanted = f" (to be {' and '.join(bounds)}){' <' if self.missed else ''}" if bounds else ""
        return f"{self.name}: {value}{' ' if self.unit else ''}{self.unit}{wanted}"


def geometric_mean(rows: Sequence[Row], figure: str = "min") -> float | None:
    """Of the ratios that there are."""
    ratios = [r for row in rows if (r := row.ratio(figure)) is not None]
    return statistics.geometric_mean(ratios) if ratios else None


def race(candidates: Mapping[str, Callable[[], Any] | None], budget: float = 0.5, most: int = ROUNDS[1]) -> Race:
    """Times of each candidate, taking turns for about `budget` seconds of calls each, `most` samples at most.

    A candidate that is None, or whose first call raises, has None; why is printed, and in the result.
    """
    why = {name: error for name, call in candidates.items() if call is not None and (error := _complaint(call))}
    for name, error in why.items():
        print(f"  ({name}: {error})")
    runners = {name: call for name, call in candidates.items() if call is not None and name not in why}
    calls = {name: _calls_per_sample(call) for name, call in runners.items()}
    samples: dict[str, list[float]] = {name: [] for name in runners}
    order = list(runners)
    left = budget * len(order)
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for turn in range(most):
            if turn >= ROUNDS[0] and left <= 0:
                break
            for name in order:
                samples[name].append(_sample(runners[name], calls[name]))
                spent = calls[name] * samples[name][-1]
                left -= spent + max(spent, WARM)
            order = order[::-1] if turn % 2 else order[1:] + order[:1]  # nobody always comes after the same
    finally:
        if collecting:
            gc.enable()
    times = {name: _times(samples[name], calls[name]) if name in runners else None for name in candidates}
    return Race(times, why)


def _complaint(call: Callable[[], Any]) -> str | None:
    try:
        call()
    except Exception as error:  # a peer may refuse a case for any reason: that is a result, too
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return None


def _times(seconds: list[float], calls: int) -> Times:
    return Times(min(seconds), statistics.median(seconds), len(seconds), calls)


def _loop(call: Callable[[], Any], count: int) -> float:
    turns = itertools.repeat(None, count)
    start = time.perf_counter()
    for _ in turns:
        call()
    return time.perf_counter() - start


def _sample(call: Callable[[], Any], count: int) -> float:
    _fall_silent()
    warm = time.perf_counter() + WARM
    _loop(call, count)
    while time.perf_counter() < warm:
        _loop(call, count)
    return _loop(call, count) / count


def _fall_silent() -> None:
    """Returns once no other thread of this process computed, two times in a row."""
    end, silent = time.monotonic() + PATIENCE, 0
    while silent < 2 and time.monotonic() < end:
        silent = 0 if _others_compute() else silent + 1
        time.sleep(PAUSE)


def _others_compute() -> bool:
    own, tasks = Path("/proc/thread-self"), Path("/proc/self/task")
    if not own.exists():
        used = time.process_time()
        time.sleep(TICK)
        return time.process_time() - used > TICK / 4
    name = own.readlink().name
    for thread in tasks.iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if thread.name != name and (thread / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                return True
    return False


def _calls_per_sample(call: Callable[[], Any]) -> int:
    count = 1
    while (spent := _loop(call, count)) < SAMPLE / 4:
        count *= 4
    return max(1, min(round(count * SAMPLE / spent), 1 << 20))


# ---- tables


def text_of(seconds: float | None) -> str:
    """A time with three digits and its unit.

    >>> text_of(1.5e-6), text_of(None)
    ('1.50 µs', '-')
    """
    if seconds is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}" if seconds < 999.5 * scale else f"{seconds / scale:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def table(rows: Sequence[Row]) -> str:
    """Rows of one group: minimum (median) of each candidate, ratio of the best peer to pyarray, target.

    A `<` marks a ratio below its target in minimum and median both, a `>` a multiple above it.
    """
    names = list(dict.fromkeys(name for row in rows for name in row.times))
    last = ["times peer's", "at most"] if any(r.multiples for r in rows) else ["ratio", "target"]
    lines = [["", *names, *(["Gop/s"] if any(r.work for r in rows) else []), *last]]
    for row in rows:
        cells = [row.case]
        for name in names:
            t = row.times.get(name)
            cells.append("-" if t is None else f"{text_of(t.min)} ({text_of(t.median)})")
        own = row.times.get(SUBJECT)
        if any(r.work for r in rows):
            cells.append(f"{row.work / own.min / 1e9:.1f}" if row.work and own else "-")
        shown = row.multiple if row.multiples else row.ratio
        ratio, mark = shown(), ">" if row.multiples else "<"
        cells.append("-" if ratio is None else f"{ratio:.2f} ({shown('median'):.2f}) {mark if row.missed else ' '}")
        cells.append("" if row.target is None else f"{1 / row.target if row.multiples else row.target:.2g}")
        lines.append(cells)
    return aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = (
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
    return "\n".join(line.rstrip() for line in shown)


# ---- machine


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    facts: dict[str, Any] = {
        "machine": platform.machine(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    return facts


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )
