"""The results of a tuner in memory and on disk; what is missing is searched once, by one thread of one
process."""

from __future__ import annotations

import os
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..errors import AutotuneError, CompileError, DeviceError
from ..jit.launch_state import unobserved
from ..locks import new_lock
from .config import Config
from .search import Options, Progress, Result, Search, Task
from .store import Store, locked
from .tuning_key import TuningKey, digest_of

MARGIN = 0.98  # of the default's time: what a winner must reach
MAX_KEYS = 1024  # keys in memory; those known longest go first
WRITE_INTERVAL = 0.25  # seconds between two writes of a search that goes on
TIMING_WAIT = 60.0  # seconds for another process that takes times on the device


Text = Callable[[Config], str]  # hash of what a candidate is compiled from
Compiles = Callable[[Config], Any]  # compiles it, or raises


class Choice(NamedTuple):
    """`source`: search, winner (on disk), artifact, default, model, only, first, budget (it was over)."""

    config: Config
    source: str


class _Searching(threading.local):
    on: bool = False


searching = _Searching()


@dataclass
class Offline:
    """The state of `python -m pyarray tune`: while it is `on`, keys without a winner are searched, in spite of
    defaults and artifacts. `on_progress` is called for each candidate; `decided` has identity, config and median of
    each key with a name to ship under."""

    on: bool = False
    on_progress: Progress | None = None
    decided: list[tuple[dict[str, Any], Config, float | None]] = field(default_factory=list)


offline = Offline()


@dataclass
class KeyResults:
    """Of a key: results by candidate, tiles by candidate for the cost model."""

    key: TuningKey
    results: dict[Config, Result] = field(default_factory=dict)
    work: dict[Config, float] = field(default_factory=dict)


class Chooser:
    """A tuner's results in memory, over its file, which `kernel` and `digest` name."""

    def __init__(self, kernel: str, digest: str, options: Options):
        self.name, self.options = kernel, options
        self.store = Store(kernel, digest)
        self.counts: Counter[str] = Counter()
        self._searched: Counter[str] = Counter()  # searches of each key that found something
        # By the digest of the tuner's whole key (`key.key_of`); locks alike.
        self._results: dict[str, KeyResults] = {}
        self._locks: weakref.WeakValueDictionary[str, threading.RLock] = weakref.WeakValueDictionary()
        self._guard = new_lock()

    # ---- what is known

    def results(self, key: TuningKey, candidates: Sequence[Config], text: Text) -> dict[Config, Result]:
        """The results of this process, then those on disk, for the kernel's current text."""
        rows = self.store.entry(key.digest)["timings"]
        in_memory = self._results.get(key.digest)
        saved = in_memory.results if in_memory else {}
        results = {}
        for config in candidates:
            row = rows.get(config.identity())
            result = saved.get(config) or (Result.of_row(config, row) if row is not None else None)
            if result is not None and result.text == text(config):
                results[config] = result
        return results

    def winner(
        self,
        key: TuningKey,
        candidates: Sequence[Config],
        default: Config | None,
        text: Text,
        compiles: Compiles,
    ) -> Choice | None:
        """The winner on disk. One that doesn't compile here is forgotten, with a warning."""
        entry = self.store.entry(key.digest)
        name = entry["winners"].get(_set(candidates, default))
        row = entry["timings"].get(name, {})
        every = with_default(candidates, default)
        named = (c for c in every if c.identity() == name)
        config = next(named, None) if "median" in row else None
        if config is None or row.get("text", "") != text(config):
            results = self.results(key, every, text)
            if len(results) < len(every) or any(r.rough or r.median is None for r in results.values()):
                return None
            config = best(results.values(), default)
        if config is None:
            return None
        try:
            compiles(config)
        except (CompileError, DeviceError) as error:
            self.store.forget(key.digest, str(config.identity()))
            self._results.pop(key.digest, None)
            what = f"{self.name}: the tuned choice {config!r} doesn't compile any more"
            warnings.warn(f"{what}; it is forgotten ({error})", RuntimeWarning, stacklevel=4)
            return None
        self.counts["disk_hits"] += 1
        return Choice(config, "winner")

    def results_of_group(self, key: TuningKey) -> Iterator[tuple[dict[str, Result], dict[str, float]]]:
        """Results and tiles, by the candidates' identities, at each size of the key's group that is known."""
        digests = set()
        for digest, results in list(self._results.items()):
            if results.key.group_digest == key.group_digest and results.work:
                digests.add(digest)
                named = {c: str(c.identity()) for c in results.results}
                yield (
                    {named[c]: r for c, r in results.results.items()},
                    {named[c]: w for c, w in results.work.items() if c in named},
                )
        for digest, entry in self.store.entries().items():
            if digest not in digests and entry.get("group") == key.group_digest:
                work = entry.get("work")
                rows = {n: Result.of_row(Config(), row) for n, row in entry["timings"].items()}
                yield rows, work if isinstance(work, dict) else {}

    # ---- searching

    def search(
        self,
        key: TuningKey,
        task: Task,
        default: Config | None,
        *,
        force: bool = False,
        stored: Callable[[], Choice | None] = lambda: None,
        work: Mapping[Config, float] | None = None,
    ) -> Choice:
        """Search, unless `stored()` has a result of another process meanwhile. With `force`, only a result that
        another thread finds while this one waits for it is used. Raises `AutotuneError` when no candidate runs,
        `RuntimeError` inside another search."""
        if searching.on:
            raise RuntimeError(
                f"{self.name}: a search inside a hook of another one; call the kernel, which then takes what is known"
            )
        before = self._searched[key.digest]
        with self._lock(key.digest), locked(f"search-{key.digest[:2]}"):
            choice = stored() if not force or self._searched[key.digest] > before else None
            if choice is not None:
                return choice
            results = {} if force else self.results(key, task.candidates, task.text)
            saver = _Saver(self.store, key, work or {})
            search = Search(task, self.options, results.values(), saver.add)
            if offline.on_progress is not None:
                search.on_progress = offline.on_progress
            self.counts["searches"] += 1
            try:
                rows = _run(search)
            finally:
                self.counts["timed"] += sum(
                    r.source == "timed" for c, r in search.results.items() if c not in search.duplicates
                )
                self._remember(key, search.results, work or {})
                saver.flush()
            chosen = self._chosen(key, task, rows, default)
            self._searched[key.digest] += 1
            return chosen

    def timed(self, task: Task) -> Result:
        """A task's only candidate in a few runs, after which the arguments are as before. Nothing of it is
        kept: its results weren't compared."""
        options = replace(self.options, check=False, warmup=1, rep=3)
        (row,) = _run(Search(task, options, (), lambda results: None))
        return row

    def _remember(self, key: TuningKey, results: Mapping[Config, Result], work: Mapping[Config, float]) -> None:
        of_key = self._results.pop(key.digest, None) or KeyResults(key)
        if len(self._results) >= MAX_KEYS:
            del self._results[next(iter(self._results))]
        self._results[key.digest] = of_key
        # an exception would keep the arguments alive
        of_key.results |= {c: replace(r, error=None) for c, r in results.items()}
        of_key.work |= work

    def _chosen(self, key: TuningKey, task: Task, rows: Sequence[Result], default: Config | None) -> Choice:
        winner, untimed = best(rows, default), [r for r in rows if r.is_over_budget]
        if winner is not None:
            is_complete = not untimed and not any(r.rough for r in rows)
            if is_complete and winner.identity() is not None:  # else the next process goes on
                change = {"winners": {_set(task.candidates, default): winner.identity()}}
                self.store.merge(key.digest, change)
            return Choice(winner, "search")
        if untimed:
            fallback = default or untimed[0].config
            what = f"{self.name}: no candidate was timed: {untimed[0].reason}"
            warnings.warn(f"{what}; {fallback!r} is used", RuntimeWarning, stacklevel=6)
            return Choice(fallback, "budget")
        lines = "".join(f"\n  {r.config!r}: {r.reason}" for r in rows)
        raise AutotuneError(f"{self.name}: all {len(rows)} candidates failed:{lines}") from next(
            (r.error for r in rows if r.error is not None), None
        )

    @contextmanager
    def _lock(self, digest: str) -> Iterator[None]:
        with self._guard:
            lock = self._locks.setdefault(digest, new_lock())
        with lock:
            yield


def _run(search: Search) -> list[Result]:
    """Alone on its device as far as other processes ask, and seen by no observer."""
    searching.on = True
    try:
        with locked(f"timing-{search.task.device}".replace(":", "-"), TIMING_WAIT), unobserved():
            return search.run()
    finally:
        searching.on = False


def with_default(candidates: Sequence[Config], default: Config | None) -> tuple[Config, ...]:
    """The candidates, and the default after them where it is none."""
    return (*candidates, *((default,) if default is not None and default not in candidates else ()))


def best(rows: Iterable[Result], default: Config | None) -> Config | None:
    """The candidate with the least median, of equals the first; the default, unless that is 2 % better."""
    times = {r.config: r.median for r in rows if r.median is not None}
    if not times:
        return None
    fastest = min(times, key=times.__getitem__)
    if default is not None and default in times and times[fastest] > MARGIN * times[default]:
        return default
    return fastest


def _set(candidates: Sequence[Config], default: Config | None) -> str:
    """The name of a set of candidates."""
    names = [c.identity() or repr(c) for c in candidates]
    return digest_of([sorted(names), None if default is None else default.identity()])[:16]


class _Saver:
    """Writes what a search finds, not too often, so that a search that is killed can go on."""

    def __init__(self, store: Store, key: TuningKey, work: Mapping[Config, float]):
        self._store, self._key, self._work = store, key, work
        # Of one search, by candidate.
        self._rows: dict[str, Any] = {}
        self._last = 0.0

    def add(self, results: Sequence[Result]) -> None:
        for r in results:
            identity = r.config.identity()
            if identity is not None:
                self._rows[identity] = r.row()
        if time.monotonic() - self._last > WRITE_INTERVAL:
            self.flush()

    def flush(self) -> None:
        if not self._rows:
            return
        shown = {"group": self._key.group, "sizes": self._key.sizes}
        named = {str(c.identity()): n for c, n in self._work.items()}
        change = {"timings": self._rows, "group": self._key.group_digest, "key": shown, "work": named}
        self._store.merge(self._key.digest, change)
        self._rows, self._last = {}, time.monotonic()


def _after_fork() -> None:
    searching.on = False


os.register_at_fork(after_in_child=_after_fork)
