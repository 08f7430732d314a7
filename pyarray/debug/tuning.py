"""`python -m pyarray tune`: runs searches ahead of an application, and shows what searches found."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import math
import runpy
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from .. import config
from ..errors import AutotuneError
from ..tune import shipped, store
from ..tune.choice import offline
from ..tune.restore import is_part_of
from ..tune.tuned import Tuned, all_tuned

WIDTH = 24  # of a bar
NO_FOLDER = "PYARRAY_CACHE is 0, or there is no folder for the cache that can be written to"


class Bar:
    """A search's progress on one line of a terminal; elsewhere, a line per search."""

    def __init__(self, stream: TextIO):
        self._stream, self._live = stream, stream.isatty()
        self.searches = 0

    def update(self, done: int, total: int, text: str, last: bool) -> None:
        """Shows that another candidate was timed, or, `last`, that the search is over."""
        self.searches += last
        line = f"{bar(done / total)} {done}/{total} {text}"
        if self._live:
            columns = shutil.get_terminal_size().columns
            self._stream.write("\r" + line[: columns - 1].ljust(columns - 1))
        elif last:
            self._stream.write(line + "\n")
        self._stream.flush()

    def close(self) -> None:
        if self._live and self.searches:
            self._stream.write("\n")


def bar(part: float) -> str:
    """A bar of text.

    >>> bar(0.5)
    '############............'
    """
    filled = round(max(0.0, min(1.0, part)) * WIDTH)
    return "#" * filled + "." * (WIDTH - filled)


# ---- searching


def tune(target: str, out: Path | None, fresh: bool, arguments: Sequence[str]) -> int:
    """Run `target` (a script, or a module that is imported), searching for the keys of its tuned kernels' calls,
    then for the `cases` of its tuned kernels; write artifacts to `out`. Keys with a winner are not searched
    again, so that an interrupted run can go on. 0, 1 if a search or the script failed, or what
    was chosen can't be shipped, 130 where it was interrupted."""
    start, progress = time.monotonic(), Bar(sys.stderr)
    before = set(all_tuned())
    try:
        with _offline(progress, fresh), _running(target, arguments) as (_alive, failures):
            new_tuners = [t for t in all_tuned() if t not in before]
            failures += [text for t in new_tuners for text in _cases(t)]
            progress.close()
            decided = list(offline.decided)
    except KeyboardInterrupt:
        progress.close()
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    for text in failures:
        print(text, file=sys.stderr)
    unfit = list(_shipped(decided, out))
    for text in unfit:
        print(text, file=sys.stderr)
    if new_tuners or not (failures or progress.searches):
        print(*_left_out(target, new_tuners, out is not None), sep="", end="")
    shipped = range(len(decided) - len(unfit))
    if out is not None and shipped:
        print(f"{len(shipped)} artifact{_s(shipped)} in {out}; set PYARRAY_AUTOTUNE_CONFIG_DIR to it")
    count = progress.searches
    print(f"{count} search{'' if count == 1 else 'es'} in {time.monotonic() - start:.1f} s")
    return 1 if failures or unfit else 0


def _shipped(decided: Sequence[tuple[dict[str, Any], Any, float | None]], out: Path | None) -> Iterator[str]:
    """Prints and writes each choice; yields a message for what is none, or can't be written."""
    for identity, chosen, median in decided:
        named = f"{identity['name']} {shipped.shown_sizes(identity['key'])}".rstrip()
        if median is None:
            over = "the budget was over, or memory was short; give more: PYARRAY_AUTOTUNE_BUDGET is in seconds"
            barred = "PYARRAY_RUN_ONLY forbids the search; unset it"
            why = barred if config.get("PYARRAY_RUN_ONLY") else over
            yield f"{named}: no candidate was timed, so none is chosen: {why}"
            continue
        print(f"{named}: {chosen!r}, {median:.4g} ms")
        try:
            if out is not None:
                shipped.emit(out, identity, chosen, median)
        except (ValueError, OSError) as error:
            yield f"{named}: no artifact is written: {error}"


def unusable(out: str) -> str | None:
    """Why no artifacts can be written to a folder, which is made if need be, and what to do; None where they
    can."""
    if not out:
        return "--out is empty; name a folder"
    try:
        shipped.make_folder(Path(out))
        with tempfile.TemporaryFile(dir=out):
            return None
    except OSError as error:
        return f"no artifact can be written to --out {out}: {error.strerror}; name another folder"


def _s(things: Sequence[Any]) -> str:
    return "" if len(things) == 1 else "s"


def _left_out(target: str, tuners: Sequence[Tuned], shipping: bool) -> Iterator[str]:
    """Lines about kernels that a user may have expected to be tuned, and why they weren't."""
    if not tuners:
        yield f"{target} has no tuned kernel; they are made by pa.autotune\n"
    for t in tuners:
        counts = t.cache_info()
        if not counts["misses"] + counts["hits"]:
            yield f"{t.__name__} was not called: run a script that does, or give autotune cases=...\n"
        elif shipping and t.artifact_name is None:
            yield f"{t.__name__} has no artifact_name, so nothing of it is shipped\n"
    if store.folder() is None:
        yield f"nothing is kept: {NO_FOLDER}\n"


@contextlib.contextmanager
def _offline(progress: Bar, fresh: bool) -> Iterator[None]:
    offline.on, offline.on_progress = True, progress.update
    offline.decided.clear()
    config.set("PYARRAY_AUTOTUNE", "force" if fresh else "search")  # which drops fast paths
    try:
        yield
    finally:
        offline.on, offline.on_progress = False, None
        config.set("PYARRAY_AUTOTUNE", None)


@contextlib.contextmanager
def _running(target: str, arguments: Sequence[str]) -> Iterator[tuple[Any, list[str]]]:
    """Runs the script, or imports the module, with its arguments. What it defines is alive inside the block. Yields
    that, and messages of failures: a script that exits or fails has tuned what it called before."""
    argv, path, failures = sys.argv, sys.path, []
    script = target.endswith(".py")
    sys.argv = [target, *arguments]
    sys.path = [str(Path(target).resolve().parent) if script else "", *path]
    alive: Any
    try:
        try:
            alive = runpy.run_path(target, run_name="__main__") if script else importlib.import_module(target)
        except SystemExit as error:
            alive = error  # and with it what was defined
            if error.code not in (None, 0):
                failures.append(f"{target} ended with {error.code!r}")
        except Exception as error:
            alive = error
            failures.append(failure_text(target, script, error, __file__))
        yield alive, failures
    finally:
        sys.argv, sys.path = argv, path


def failure_text(target: str, script: bool, error: Exception, runner: str) -> str:
    """What is told of a script or module that failed: its traceback, without the file that runs it."""
    if script and not Path(target).is_file():
        return f"there is no file {target}"
    if isinstance(error, ModuleNotFoundError) and error.name and is_part_of(error.name, target):
        return f"there is no module {target}; a script is named with its .py"
    report = traceback.TracebackException.from_exception(error)
    frozen = ("<frozen runpy>", "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
    own_files = (runner, runpy.__file__, importlib.__file__, *frozen)
    report.stack = traceback.StackSummary.from_list([f for f in report.stack if f.filename not in own_files])
    return "".join(report.format()).rstrip()


def _cases(tuned: Tuned) -> Iterator[str]:
    """Searches for each of a kernel's cases; yields messages of failures."""
    if tuned.cases is None:
        return
    try:
        for case in tuned.cases():
            try:
                if isinstance(case, dict):
                    tuned(**case)
                else:
                    tuned(*(case if isinstance(case, tuple) else (case,)))
            except AutotuneError as error:
                yield str(error)
            except Exception as error:
                yield f"{tuned.__name__}, of the case {_short(case)}: {type(error).__name__}: {error}"
    except Exception as error:
        yield f"{tuned.__name__}: cases() raised {type(error).__name__}: {error}"


def _short(case: Any) -> str:
    text = " ".join(repr(case).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


# ---- showing


def show(word: str | None, plot: Path | None) -> int:
    """Print what is on disk of each kernel whose name has `word` in it: the candidates of each key, the
    fastest first, with a bar for their times; with `plot`, a picture too. 1 if nothing is known, 2 if the
    picture can't be written."""
    entries = list(_entries(word))
    if not entries:
        where = store.folder()
        what = "nothing is known" + (f" of {word!r}" if word else "")
        print(f"{what} in {where}" if where is not None else f"{what}: {NO_FOLDER}")
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):  # a reason may name a file that is no text
        sys.stdout.reconfigure(errors="backslashreplace")
    for kernel, entry in entries:
        print("\n".join(table(kernel, entry)), end="\n\n")
    print("* is chosen; x: of the fastest; ±: half the width of the middle half of the samples")
    try:
        if plot is not None:
            draw(entries, plot)
    except (OSError, ValueError) as error:  # ValueError: a kind of picture that there is not
        why = error.strerror if isinstance(error, OSError) else error
        print(f"no picture can be written to --plot {plot}: {why}; name another file", file=sys.stderr)
        return 2
    return 0


def _entries(word: str | None) -> Iterator[tuple[str, store.Entry]]:
    folder = store.folder()
    for path in sorted(folder.glob("*.json")) if folder is not None else ():
        try:
            data = store.read(path)
        except OSError as error:
            print(f"{path} can't be read: {error}", file=sys.stderr)
            continue
        if data is not None and (word is None or word in data["kernel"]):
            for entry in sorted(data["entries"].values(), key=lambda e: -float(e.get("used", 0))):
                yield data["kernel"], entry


def table(kernel: str, entry: store.Entry) -> list[str]:
    """The lines of `show` about one key."""
    group = entry.get("key", {}).get("group", {})
    device = group.get("device", {})
    arrays = ", ".join(f"{n} {a.get('dtype')}[{a.get('steps')}]" for n, a in group.get("arrays", {}).items())
    lines = [
        _named(kernel, entry),
        f"  {device.get('model', '?')}, {device.get('threads', '?')} threads" + (f"; {arrays}" if arrays else ""),
    ]
    rows = entry["timings"]
    timed = sorted((r for r in rows.values() if "median" in r), key=lambda r: r["median"])
    width = max((len(r["config"]) for r in rows.values()), default=0)
    winners = set(entry["winners"].values())
    won = {rows[name]["config"] for name in winners if name in rows}
    for r in timed:
        mark = "*" if r["config"] in won else " "
        ratio = _ratio(r["median"], timed[0]["median"])
        times = f"{r['median']:10.4g} ms  {ratio:6.2f}x  ±{r['spread'] / 2:4.0%}"
        part = bar(_ratio(r["median"], timed[-1]["median"]))
        lines.append(f"{mark} {r['config']:{width}} {times} {part}")
    failed = (r for r in rows.values() if "median" not in r)
    return lines + [f"  {r['config']:{width}} {r['reason']}" for r in failed]


def _named(kernel: str, entry: store.Entry) -> str:
    return f"{kernel} {shipped.shown_sizes(entry.get('key', {}).get('sizes', {}))}".rstrip()


def _ratio(ms: float, other: float) -> float:
    """A `bench` may say that a run takes no time."""
    return ms / other if other else math.inf if ms else 1.0


def draw(entries: Sequence[tuple[str, store.Entry]], path: Path) -> None:
    """A picture of the candidates' times, key by key. Without matplotlib the bars of the tables are all."""
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture: pip install matplotlib")
        return
    figure_class = importlib.import_module("matplotlib.figure").Figure
    figure = figure_class(figsize=(8, 1 + 2.2 * len(entries)), layout="constrained")
    axes = figure.subplots(len(entries), 1, squeeze=False)[:, 0]
    for axis, (kernel, entry) in zip(axes, entries, strict=True):
        timed = sorted((r for r in entry["timings"].values() if "median" in r), key=lambda r: -r["median"])
        errors = [r["median"] * r["spread"] / 2 for r in timed]
        axis.barh([r["config"] for r in timed], [r["median"] for r in timed], xerr=errors, height=0.7)
        axis.set_title(_named(kernel, entry), fontsize=9)
        axis.set_xlabel("ms")
        axis.tick_params(labelsize=7)
    path = path if path.suffix else path.with_suffix(".png")  # as matplotlib has it
    figure.savefig(path)
    print(f"picture in {path}")
