"""Shared by the programs that draw random cases: command-line options, and processes that each run a part; and by
those of them whose cases are calls of functions, what a part is."""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

# The packages' modules import each other as the tests do; reports that processes send name them so.
sys.path.insert(0, str(Path(__file__).resolve().parent))
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYARRAY_NUM_THREADS")
_status_file: int | None = None  # the descriptor of this process's status file


def arguments(program: str, doc: str | None, counted: str, count: int) -> argparse.ArgumentParser:
    """A parser of the options that these programs share; `--counted` says how many cases."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=doc)
    parser.add_argument(f"--{counted}", type=int, default=count)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stop-after", type=int, default=50, help="differences")
    parser.add_argument("--processes", type=int, default=1, help="each computes in one thread")
    return parser


class Clock:
    """Prints as the seconds since it was made."""

    def __init__(self) -> None:
        self.began = time.perf_counter()

    def __str__(self) -> str:
        return f"{time.perf_counter() - self.began:.0f} s"


def merge(report: Any, other: Any) -> None:
    """Add a report's counts and lists to another's."""
    for field in fields(report):
        mine, theirs = getattr(report, field.name), getattr(other, field.name)
        if isinstance(mine, Counter):
            mine.update(theirs)
        else:
            setattr(report, field.name, mine + theirs)


def run_parts(
    check: Callable[[Any], Any], parts: Sequence[Any], processes: int, stop_after: int,
    progress: Callable[[Any], None] = lambda report: None,
) -> Any:  # fmt: skip
    """Runs `check` on each part and returns the merged report. Stops after `stop_after` differences."""
    found: Any = None
    with _reports(check, parts, processes) as reports:
        for report in reports:
            if found is None:
                found = report
            else:
                merge(found, report)
            progress(found)
            if len(found.differences) >= stop_after:
                break
    return found


def run_functions(package: str, doc: str | None, count: int) -> tuple[Any, argparse.Namespace, Clock]:
    """The program of tests/differential and of tests/warm_calls, by the command line: the report of drawn
    calls, `count` where none are asked for, with the arguments and the time that it took."""
    parser = arguments(f"tests.{package}", doc, "calls", count)
    parser.add_argument("--dtypes", type=int, default=2, help="of each function at a time")
    parser.add_argument("--only", default="*", help="functions whose names match this pattern, such as 'nan*,linalg.*'")
    args = parser.parse_args()
    clock = Clock()
    part = partial(calls_of_functions, package, args)
    return run_parts(part, range(args.processes), args.processes, args.stop_after), args, clock


def calls_of_functions(package: str, args: argparse.Namespace, index: int) -> Any:
    """The report of one process: calls of its own functions, in turn. Of this module, since another process can't
    import `__main__` of a package."""
    if args.device.startswith("hip"):
        from hip_emulator.build import use_emulator

        use_emulator()
    run, clock = importlib.import_module(f"{package}.run"), Clock()

    def progress(report: Any) -> None:
        text = f"{report.calls} calls, {len(report.differences)} differences, {clock}"
        print(text if args.processes == 1 else f"process {index}: {text}", file=sys.stderr)

    patterns = args.only.split(",")
    rows = [row for row in run.ALL if any(fnmatchcase(row.name, pattern) for pattern in patterns)]
    if not (rows := rows[index :: args.processes]):
        return run.Report()
    calls = args.calls // args.processes + (index < args.calls % args.processes)
    report = run.check(
        calls, args.device, args.seed,
        rows=rows, dtypes=args.dtypes, stop_after=args.stop_after, progress=progress, started=set_status,
        found=lambda line: print(line, flush=True),
    )  # fmt: skip
    report.functions = len(rows)
    return report


def set_status(what: str) -> None:
    """Write what this process does now to its status file, which the parent prints if the process is killed."""
    if _status_file is not None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        os.pwrite(_status_file, f"{what}, at most {peak:.0f} MiB".ljust(200).encode(), 0)


def _start_process(folder: str, memory: int) -> None:
    global _status_file
    faulthandler.enable()
    # More is an error that says where it was asked for; else the system kills the process.
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    _status_file = os.open(Path(folder) / str(os.getpid()), os.O_WRONLY | os.O_CREAT, 0o600)


@contextlib.contextmanager
def _reports(check: Callable[[Any], Any], parts: Sequence[Any], processes: int) -> Iterator[Iterator[Any]]:
    if processes <= 1:
        yield map(check, parts)
        return
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # this process computes nothing
    with tempfile.TemporaryDirectory() as folder:
        # Not by fork: that copies a process in which torch has threads, or a GPU. One that crashes says where.
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // processes
        pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _start_process, (folder, memory))
        try:
            yield (done.result() for done in as_completed([pool.submit(check, x) for x in parts]))
        except BrokenProcessPool:
            for path in Path(folder).iterdir():
                print(f"process {path.name}: {path.read_text().strip()}", file=sys.stderr)
            raise
        finally:
            pool.shutdown(cancel_futures=True)
