"""Compiles, checks and times candidates. It knows no kernels: a `Task` compiles them."""

from __future__ import annotations

import contextvars
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, replace
from typing import Any

from .. import config as settings
from ..array import ndarray
from ..driver.base import Device, cores
from ..errors import OutOfMemoryError
from . import result_comparison
from .config import Config
from .restore import SavedArguments, union_of_directions
from .timing import Stopwatch, Times

log = logging.getLogger("pyarray")
Progress = Callable[[int, int, str, bool], None]  # candidates done, all, what to say, whether it is the last
ROUGH = 4  # samples of every candidate
FINE_RATIO = 1.5  # times the best rough median: one whose quickest sample is below that is timed finely
CLOSE = 1.1  # times the best median: a candidate above that is dropped on the way
FINAL = 4  # times as many samples are taken at the end, of those that are still as near
LONG = 0.3  # seconds for a candidate, and in the end for all, after which few samples are enough
MIN_SAMPLES = 5  # of a slow candidate
SHORT = 2.0  # milliseconds: a sample of a shorter run is the least of three
SLOW = 4.0  # times the quickest run: what takes longer, and more than HEAVY, is timed no further
HEAVY = 100.0  # milliseconds, above which a slow run is no accident of the machine
LATE = "not timed"  # how the reason begins of a candidate that was left out


@dataclass(frozen=True)
class CompiledCandidate:
    """A compiled candidate: `run()` launches it, `checked()` does so with bounds checks and raises what they
    find (None: it has none). `directions` are those of its arrays, by name; `write_only` it writes and never
    reads."""

    run: Callable[[], Any]
    checked: Callable[[], Any] | None
    directions: Mapping[str, str]
    write_only: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Result:
    """The result for a candidate: milliseconds (`median`, `least`; `spread` is the middle half's width relative to
    the median; `runs` samples), or the `reason` why it is out of the question, or why it has no time. `source` is
    "timed", "stored" (by an earlier search) or "predicted".

    Reasons are kept for the reader only. What made a candidate fail may be the data, a hook, `check` or a
    full disk, none of which is in the key: a later search tries it again."""

    config: Config
    median: float | None = None
    least: float | None = None
    spread: float | None = None
    runs: int = 0
    reason: str | None = None
    source: str = "timed"
    rough: bool = False
    text: str = ""  # hash of what was compiled
    error: BaseException | None = None

    @property
    def is_over_budget(self) -> bool:
        """Whether there was no time, or no memory, to time it."""
        return self.reason is not None and self.reason.startswith(LATE)

    def row(self) -> dict[str, Any]:
        """For the store."""
        if self.median is None:
            return {"config": repr(self.config), "reason": self.reason or "", "text": self.text}
        row = {"median": self.median, "least": self.least, "spread": self.spread, "runs": self.runs}
        return {"config": repr(self.config), **row, "rough": self.rough, "text": self.text}

    @staticmethod
    def of_row(config: Config, row: Mapping[str, Any]) -> Result:
        """A result from its entry in the store."""
        text = str(row.get("text", ""))
        if "reason" in row:
            return Result(config, reason=row["reason"], source="stored", text=text)
        median, least, spread = (float(row[name]) for name in ("median", "least", "spread"))
        rough = bool(row.get("rough"))
        return Result(config, median, least, spread, int(row["runs"]), source="stored", rough=rough, text=text)


@dataclass(frozen=True)
class Options:
    """How a tuner searches; `warmup` and `rep` are counts of runs, `budget` seconds."""

    warmup: int = 5
    rep: int = 25
    budget: float | None = None
    check: Any = True
    restore: tuple[str, ...] | None = None
    zeroed: tuple[str, ...] = ()
    pre_hook: Callable[[dict[str, Any]], Any] | None = None
    post_hook: Callable[[dict[str, Any]], Any] | None = None
    bench: Callable[[Callable[[], Any]], float] | None = None


@dataclass(frozen=True)
class Task:
    """One call to be tuned. `prepare(config)` compiles, in any thread; `arrays` are the live arrays by name,
    `arguments` all arguments by parameter, `text(config)` the hash of what a candidate is compiled from."""

    name: str
    device: Device
    candidates: tuple[Config, ...]
    prepare: Callable[[Config], CompiledCandidate]
    arrays: Mapping[str, ndarray]
    arguments: Mapping[str, Any]
    text: Callable[[Config], str] = lambda config: ""


class Search:
    """`previous` are earlier results, which are not timed again; `save(results)` is called with new ones as they
    come."""

    def __init__(self, task: Task, options: Options, previous: Iterable[Result], save: Callable[[list[Result]], Any]):
        self.task, self.options, self._save = task, options, save
        timed = (r for r in previous if r.median is not None and r.config in task.candidates)
        self.results: dict[Config, Result] = {r.config: r for r in timed}
        budget = options.budget if options.budget is not None else settings.get("PYARRAY_AUTOTUNE_BUDGET")
        self._budget = budget
        self._end = 0.0
        # Of one search, whose arguments and mode don't change: by candidate.
        self._prepared: dict[Config, CompiledCandidate] = {}
        self._samples: dict[Config, list[float]] = {}
        self._repeats: dict[Config, int] = {}
        self._first_run: dict[Config, float] = {}  # milliseconds of the first run
        self.duplicates: dict[Config, Config] = {}  # candidates that have the result of an equal one
        self.on_progress: Progress | None = None
        self._untimed_reason = ""  # nothing is timed

    def run(self) -> list[Result]:
        """Results of all candidates, in their order. The budget begins now."""
        self._end = time.monotonic() + self._budget
        self.duplicates = self._duplicates()
        unknown = [c for c in self.task.candidates if c not in self.results and c not in self.duplicates]
        rough = [r.config for r in self.results.values() if r.rough]
        if unknown or len(rough) > 1 or (rough and len(self.results) > 1):
            anchor = self._stored_reference() if unknown and self.options.check is True else None
            self._compile([*unknown, *(c for c in (anchor,) if c), *rough])
            self._on_arguments(unknown, anchor)
        for c, same in self.duplicates.items():
            if c not in self.results and same in self.results:
                self.results[c] = replace(self.results[same], config=c)
                self._save([self.results[c]])
        for c in self.task.candidates:
            if c not in self.results:
                text = f"{LATE}: {self._untimed_reason or f'the budget of {self._budget:g} s was over'}"
                self.results[c] = Result(c, reason=text, text=self.task.text(c))
        return self._report_fastest([self.results[c] for c in self.task.candidates])

    def _duplicates(self) -> dict[Config, Config]:
        """Candidates that are compiled to the same as an earlier one, as shapes of a launch are on CPUs."""
        first, duplicates = dict[Any, Config](), dict[Config, Config]()
        for c in self.task.candidates:
            text = self.task.text(c)
            same = first.setdefault((c.without_shape(), text), c)
            if text and same is not c:
                duplicates[c] = same
        return duplicates

    def _stored_reference(self) -> Config | None:
        """A candidate that was found right before, to compare new ones with."""
        right = [r for r in self.results.values() if r.median is not None]
        return min(right, key=lambda r: r.median or 0.0).config if right else None

    def _out_of_time(self) -> bool:
        return time.monotonic() >= self._end

    def _drop(self, c: Config, reason: str, error: BaseException | None = None) -> None:
        self._prepared.pop(c, None)
        if c in self.results and self.results[c].source == "stored":
            return  # known to be good: it only couldn't be compared with
        self.results[c] = result = Result(c, reason=reason, text=self.task.text(c), error=error)
        self._report_result(result)
        self._save([result])

    def _report_result(self, r: Result) -> None:
        done = sum(1 for c in self.task.candidates if c in self.results)
        outcome = f"{r.median:.4g} ms" if r.median is not None else r.reason
        self._report(done, f"{self.task.name}: {r.config!r}: {outcome}", last=False)

    def _report(self, done: int, text: str, last: bool) -> None:
        log.info("tuner: %s", text)
        if settings.get("PYARRAY_AUTOTUNE_VERBOSE"):
            print(f"tuner: {text}", file=sys.stderr)
        if self.on_progress is not None:
            self.on_progress(done, len(self.task.candidates), text, last)

    def _report_fastest(self, rows: list[Result]) -> list[Result]:
        timed = [r for r in rows if r.median is not None]
        if timed:
            best = min(timed, key=lambda r: r.median or 0.0)
            text = f"{best.config!r} is the fastest of {len(timed)}: {best.median:.4g} ms"
        else:
            text = "no candidate was timed"
        self._report(len(rows), f"{self.task.name}: {text}", last=True)
        return rows

    # ---- compiling

    def _compile(self, candidates: Sequence[Config]) -> None:
        """By as many threads as there are cores: the compiler is a process of its own."""
        if self._out_of_time():
            return
        pool = ThreadPoolExecutor(max(1, min(cores(), len(candidates))), thread_name_prefix="pyarray-tune")
        try:
            futures = {c: pool.submit(contextvars.copy_context().run, self.task.prepare, c) for c in candidates}
            for c, future in futures.items():
                self._collect(c, future)
        finally:
            pool.shutdown(wait=not self._out_of_time(), cancel_futures=True)

    def _collect(self, c: Config, future: Future[CompiledCandidate]) -> None:
        try:
            seconds = max(0.0, self._end - time.monotonic())
            self._prepared[c] = future.result(min(seconds, threading.TIMEOUT_MAX))
        except Late:
            return
        except Exception as error:
            self._drop(c, _reason(error), error)

    # ---- running

    def _on_arguments(self, unknown: Sequence[Config], anchor: Config | None) -> None:
        if not self._prepared or self._out_of_time():
            return
        directions = union_of_directions(p.directions for p in self._prepared.values())
        options = self.options
        write_only = frozenset.intersection(*(p.write_only for p in self._prepared.values()))
        arguments = SavedArguments(self.task.arrays, directions, options.restore, options.zeroed, write_only)
        try:
            arguments.save()
        except OutOfMemoryError as error:
            size = arguments.saved_bytes
            self._untimed_reason = f"there is no memory for a copy of {size} bytes, of what candidates change ({error})"
            return
        try:
            if options.check:
                self._check([c for c in unknown if c in self._prepared], anchor, arguments)
            watch = Stopwatch(self.task.device, options.bench, arguments.repeatable and not self._hooked())
            self._rough([c for c in unknown if c in self._prepared], arguments, watch)
            self._fine(arguments, watch)
        finally:
            arguments.restore_all()
            self.task.device.driver.synchronize()

    def _hooked(self) -> bool:
        hooks = [self.options.pre_hook, self.options.post_hook, *(c.pre_hook for c in self._prepared)]
        return any(hook is not None for hook in hooks)

    def _before(self, c: Config, arguments: SavedArguments) -> None:
        arguments.prepare()
        for hook in (c.pre_hook, self.options.pre_hook):
            if hook is not None:
                hook({**self.task.arguments, **c.values})

    def _after(self, c: Config) -> None:
        if self.options.post_hook is not None:
            self.options.post_hook({**self.task.arguments, **c.values})

    def _check(self, unknown: Sequence[Config], anchor: Config | None, arguments: SavedArguments) -> None:
        reference = self._reference(anchor, arguments)
        votes = result_comparison.MajorityVote(arguments.arrays, reference) if arguments.comparable else None
        for number, c in enumerate(unknown):
            if self._out_of_time():
                break
            results = self._run_and_copy(c, arguments)
            if results is not None and votes is not None:
                votes.add(number, results)
        for number, what in votes.wrong().items() if votes is not None else ():
            self._drop(unknown[number], what)

    def _reference(self, anchor: Config | None, arguments: SavedArguments) -> result_comparison.Results | None:
        if callable(self.options.check):
            arguments.prepare()
            call_arguments = dict(self.task.arguments)
            call_arguments |= {
                n: result_comparison.copies_of({n: a}, [n])[n]
                for n, a in call_arguments.items()
                if isinstance(a, ndarray)
            }
            reference = self.options.check(**call_arguments)
            if reference is not None and not any(
                reference is value for value in call_arguments.values()
            ):  # as `out=` gives
                what = "check writes what is right into its arguments, and gives nothing"
                raise TypeError(f"{self.task.name}: {what}; it gave {str(reference)[:60]}")
            inside = [n for n in arguments.written if n not in call_arguments]
            outputs = {n: call_arguments[n] for n in arguments.written if n in call_arguments}
            return outputs | result_comparison.copies_of(arguments.arrays, inside)
        if anchor is not None and anchor in self._prepared:
            return self._run_and_copy(anchor, arguments)
        return None

    def _run_and_copy(self, c: Config, arguments: SavedArguments) -> result_comparison.Results | None:
        """What a candidate computes; None, and the candidate dropped, where it fails."""
        prepared = self._prepared[c]
        try:
            for run in filter(None, (prepared.checked, prepared.run)):
                self._before(c, arguments)
                arguments.fill()
                start = time.perf_counter()
                run()
                self.task.device.driver.synchronize()
                self._first_run[c] = 1e3 * (time.perf_counter() - start)
                self._after(c)
                self.task.device.driver.synchronize()
            return result_comparison.copies_of(arguments.arrays, arguments.written)
        except Exception as error:
            self._drop(c, _reason(error), error)
            return None

    def _rough(self, unknown: Sequence[Config], arguments: SavedArguments, watch: Stopwatch) -> None:
        """A few samples of each: the first as it comes, so that a search that is killed leaves them, the
        others in turns."""
        for c in unknown:
            if not self._out_of_time():
                self._drop_on_error(c, lambda c=c: self._first(c, arguments, watch))  # type: ignore[misc]
            elif c in self._first_run and self.options.bench is None:
                self._use_first_run(c, self._first_run[c])
        slow = {c for c in unknown if self._is_slow(c)}
        start = time.monotonic()
        for _ in range(min(ROUGH, self.options.rep) - 1):
            for c in unknown:
                if c in self._samples and c not in slow and not self._out_of_time():
                    self._drop_on_error(c, lambda c=c: self._sample(c, arguments, watch))  # type: ignore[misc]
            if time.monotonic() - start > LONG * len(unknown) / 2:
                break
        for c in unknown:
            if c in self._samples:
                self._record(c, rough=True)

    def _drop_on_error(self, c: Config, run: Callable[[], Any]) -> None:
        """What fails while it is timed is dropped."""
        try:
            run()
        except Exception as error:
            self._samples.pop(c, None)
            self._drop(c, _reason(error), error)

    def _is_slow(self, c: Config) -> bool:
        """Whether its first run has shown that it needn't be timed."""
        best = min((ms for other, ms in self._first_run.items() if other in self._prepared), default=0.0)
        return self.options.bench is None and self._first_run.get(c, 0.0) > max(HEAVY, SLOW * best)

    def _use_first_run(self, c: Config, took: float) -> None:
        self._samples[c] = [took]
        self._record(c, rough=True)
        self._report_result(self.results[c])

    def _first(self, c: Config, arguments: SavedArguments, watch: Stopwatch) -> None:
        if c not in self._first_run and self.options.bench is None:
            self._first_run[c] = self._once(c, arguments, watch, 1)
        if self._is_slow(c):
            self._use_first_run(c, self._first_run[c])
            return
        start = time.monotonic()
        for _ in range(self.options.warmup):
            self._once(c, arguments, watch, 1)
            if time.monotonic() - start > LONG / 4:
                break
        self._sample(c, arguments, watch)
        self._record(c, rough=True)
        self._report_result(self.results[c])

    def _sample(self, c: Config, arguments: SavedArguments, watch: Stopwatch) -> None:
        if c not in self._repeats:
            self._repeats[c] = watch.repeats(lambda repeats: self._once(c, arguments, watch, repeats))
        repeats = self._repeats[c]
        took = self._once(c, arguments, watch, repeats)
        if took * repeats < SHORT and self.options.bench is None:  # what else ran meanwhile is no part of it
            took = min(took, *(self._once(c, arguments, watch, repeats) for _ in range(2)))
        self._samples.setdefault(c, []).append(took)

    def _once(self, c: Config, arguments: SavedArguments, watch: Stopwatch, repeats: int) -> float:
        """Milliseconds of a run, with what stands around it."""
        took = watch.time(self._prepared[c].run, lambda: self._before(c, arguments), repeats)
        self._after(c)
        return took

    def _record(self, c: Config, rough: bool) -> None:
        times = Times.of(self._samples[c])
        measured = (times.median, times.least, times.spread, times.runs)
        self.results[c] = Result(c, *measured, rough=rough, text=self.task.text(c))
        self._save([self.results[c]])

    def _fine(self, arguments: SavedArguments, watch: Stopwatch) -> None:
        """Those near the best, in turns, and then those that still are for longer."""
        best = min((r.median for r in self.results.values() if r.median is not None), default=0.0)
        rough = [r for r in self.results.values() if r.rough]
        near = [r.config for r in rough if (r.least or 0.0) <= FINE_RATIO * best and r.config in self._prepared]
        times = self._interleave(near, self.options.rep, LONG, arguments, watch)
        least = min((t.median for t in times.values()), default=0.0)
        last = [c for c, t in times.items() if t.median <= CLOSE * least]
        if len(last) > 1:
            self._interleave(last, FINAL * self.options.rep, LONG / len(last), arguments, watch)
        for r in rough:
            if self._samples.get(r.config):
                self._record(r.config, rough=self._out_of_time() and len(self._samples[r.config]) == 1)
            elif self.results[r.config].rough and not self._out_of_time():
                self.results[r.config] = replace(r, rough=False)
                self._save([self.results[r.config]])

    def _interleave(
        self, near: list[Config], samples: int, seconds: float, arguments: SavedArguments, watch: Stopwatch
    ) -> dict[Config, Times]:
        """Until each has that many samples, or had that many seconds. Those that stayed near the best."""
        start, few = time.monotonic(), min(MIN_SAMPLES, self.options.rep)
        for turn in range(samples):
            done = True
            for c in near:
                most = few if time.monotonic() - start > seconds * len(near) else samples
                enough = len(self._samples.get(c, ())) >= most or self._out_of_time()
                if not enough and self.results[c].median is not None:
                    self._drop_on_error(c, lambda c=c: self._sample(c, arguments, watch))  # type: ignore[misc]
                    done = False
            if done:
                break
            if turn % 4 == 3:
                near = self._still_near(near)
        return {c: Times.of(self._samples[c]) for c in self._still_near(near)}

    def _still_near(self, candidates: list[Config]) -> list[Config]:
        times = {c: Times.of(self._samples[c]) for c in candidates if self._samples.get(c)}
        least = min((t.median for t in times.values()), default=0.0)
        return [c for c, t in times.items() if t.least <= CLOSE * least]


def _reason(error: BaseException) -> str:
    """An exception on one line, without marks below a line of code."""
    lines = (line for line in str(error).splitlines() if line.strip("^~ "))
    text = " ".join(" ".join(lines).split())
    return f"{type(error).__name__}: {text[:300]}"
