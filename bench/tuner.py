"""The tuner: what a tuned call costs on a hit, how long a search takes and how good its choice is.

`python -m bench.tuner [--json PATH]`; `python -m bench.tuner search NAME` is a process of its own, which
calls one tuned kernel and prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarray as pa

from .timing import Figure, Row, Times, race, table

ABOUT = """A tuned call that finds its choice next to the plain kernel with the same constants; what a search
of 20 candidates chose next to the best of all 20, timed at length; searches in fresh processes, with an empty
cache and then with the same one."""
ROOT = Path(__file__).resolve().parent.parent
OVERHEAD = 1e-6  # seconds that a hit may cost
LONGEST = 5.0  # seconds of a first call that searches 20 candidates, on 2 cores
WITHIN = 0.97  # of the best candidate's speed
SIZES = {"sums": (300, 4000), "smooth": (10**5, 10**6), "product": (64, 200)}


@pa.autotune(configs=[pa.Config(rows=r, step=s) for r in (1, 4, 16, 64, 256) for s in (1, 2, 4, 8)], key=["out"])
@pa.kernel
def sums(out, a, rows: pa.constexpr, step: pa.constexpr):
    for block in range((out.size + rows - 1) // rows):
        for i in range(block * rows, min(out.size, (block + 1) * rows)):
            total = pa.float32(0)
            for k in range(a.shape[1] // step):
                for u in range(step):
                    total += a[i, k * step + u]
            out[i] = total


@pa.autotune(configs=[pa.Config(block=2**k) for k in range(20)], key=["out"])
@pa.kernel
def smooth(out, v, block: pa.constexpr):
    for b in range((out.size + block - 1) // block):
        for i in range(max(1, b * block), min(out.size - 1, (b + 1) * block)):
            out[i] = pa.float32(0.5) * v[i] + pa.float32(0.25) * (v[i - 1] + v[i + 1])


@pa.autotune(configs=[pa.Config(m=m, k=k) for m in (1, 2, 4, 8, 16) for k in (4, 16, 64, 256)], key=["c"])
@pa.kernel
def product(c, a, b, m: pa.constexpr, k: pa.constexpr):
    for block in range((c.shape[0] + m - 1) // m):
        for start in range(0, a.shape[1], k):
            for i in range(block * m, min(c.shape[0], (block + 1) * m)):
                for t in range(start, min(a.shape[1], start + k)):
                    for j in range(c.shape[1]):
                        c[i, j] += a[i, t] * b[t, j]


BLOCK = 1024


@pa.kernel
def smooth_fixed(out, v):
    for b in range((out.size + BLOCK - 1) // BLOCK):
        for i in range(max(1, b * BLOCK), min(out.size - 1, (b + 1) * BLOCK)):
            out[i] = pa.float32(0.5) * v[i] + pa.float32(0.25) * (v[i - 1] + v[i + 1])


KERNELS = {"sums": sums, "smooth": smooth, "product": product}


def arguments(name: str, n: int) -> tuple[Any, ...]:
    """Of a call, in memory of ours: NumPy's is aligned otherwise in each process, which is in the key."""
    shapes = {"sums": ((n,), (n, 64)), "smooth": ((n,), (n,)), "product": ((n, n),) * 3}[name]
    return tuple(pa.full(shape, 1e-3, dtype="float32") for shape in shapes)


def hits(budget: float) -> list[Row]:
    """Calls that find their choice, next to the plain kernel with the constants of that choice, and to one
    that has no such parameters."""
    rows = []
    for name, n in (("smooth", 16), ("sums", 1), ("product", 2)):
        tuned, args = KERNELS[name], arguments(name, n)
        tuned(*args)
        plain_args = (*args, *tuned.choice(*args).config.values.values())
        calls = {
            "pyarray": lambda tuned=tuned, args=args: tuned(*args),
            "plain kernel": lambda plain=tuned.kernel, plain_args=plain_args: plain(*plain_args),
        }
        if name == "smooth":
            calls["without constants"] = lambda args=args: smooth_fixed(*args)
        against = tuple(calls)[1:]
        rows.append(Row("call on a hit", f"{name}, n = {n}", race(calls, budget), against=against))
    return rows


def quality(name: str, n: int, budget: float) -> Row:
    """The choice of a search, next to the best of all candidates by their own race: both raced again, since
    the least of twenty is lucky."""
    tuned, args = KERNELS[name], arguments(name, n)
    tuned(*args)
    chosen = tuned.choice(*args).config
    calls = {r.config: bound(tuned.kernel, args, r.config) for r in tuned.results(*args) if r.reason is None}
    times = race({str(config): call for config, call in calls.items()}, budget)
    best = min(calls, key=lambda config: times[str(config)].median)
    final = race({"pyarray": calls[chosen], "best of all": bound(tuned.kernel, args, best)}, 10 * budget, most=300)
    facts = {"chosen": str(chosen), "best": str(best)}
    return Row("choice of 20", f"{name}, n = {n}", final, WITHIN, against=("best of all",), facts=facts)


def bound(kernel: Any, args: tuple[Any, ...], config: Any) -> Callable[[], Any]:
    constants = config.values
    return lambda: kernel(*args, **constants)


def searches(repeats: int) -> tuple[list[Row], list[Figure]]:
    """First calls in fresh processes: with an empty cache, then with the same one."""
    rows, figures = [], []
    for name, sizes in SIZES.items():
        runs_of: dict[str, list[dict[str, Any]]] = {"first": [], "second": []}
        for _ in range(repeats):
            with tempfile.TemporaryDirectory(prefix="bench-tune-") as cache:
                for process in runs_of.values():
                    process.append(_process(name, cache))
        seconds = {which: [run["seconds"] for run in runs] for which, runs in runs_of.items()}
        times = {which: Times(min(s), statistics.median(s), len(s), 1) for which, s in seconds.items()}
        rows.append(
            Row(
                "first call, second process",
                f"{name}, n = {sizes[0]}",
                {"pyarray": times["second"], "with a search": times["first"]},
                against=("with a search",),
            )
        )
        told = f"{name}: first call, {runs_of['first'][0]['candidates']} candidates searched"
        figures.append(Figure(told, times["first"].median, "s", at_most=LONGEST))
        again = max(run["searches"] for run in runs_of["second"])
        figures.append(Figure(f"{name}: searches in the second process", again, at_most=0))
    return rows, figures


def _process(name: str, cache: str) -> dict[str, Any]:
    settings = os.environ | {"PYARRAY_CACHE_DIR": cache}
    command = [sys.executable, "-m", "bench.tuner", "search", name]
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def search(name: str) -> None:
    """The process of `searches`."""
    tuned, args = KERNELS[name], arguments(name, SIZES[name][0])
    start = time.perf_counter()
    tuned(*args)
    seconds = time.perf_counter() - start
    result = {"seconds": seconds, "searches": tuned.cache_info()["searches"]}
    print(json.dumps(result | {"candidates": len(tuned.results(*args))}))


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes. Searches are kept in a cache of their own, so that they happen."""
    rows, figures = searches(1 if quick else 3)
    yield from rows
    with tempfile.TemporaryDirectory(prefix="bench-tune-") as cache:
        kept = os.environ.get("PYARRAY_CACHE_DIR")
        os.environ["PYARRAY_CACHE_DIR"] = cache
        try:
            called = hits(0.2 if quick else 1.0)
            chosen = [quality(name, n, 0.05 if quick else 0.3) for name, sizes in SIZES.items() for n in sizes]
        finally:
            os.environ.pop("PYARRAY_CACHE_DIR")
            if kept is not None:
                os.environ["PYARRAY_CACHE_DIR"] = kept
    for row in called:
        best, own = row.best_peer(), row.times["pyarray"]
        if best and own:
            over = (own.min - row.peers[best].min) * 1e6
            figures.append(Figure(f"{row.case}: a hit over {best}", over, "µs", at_most=OVERHEAD * 1e6))
    yield from called + chosen
    for group in (rows, called, chosen):
        print(f"{group[0].group}: minimum (median)\n{table(group)}\n")
    for figure in figures:
        print(figure, flush=True)
        yield figure


if __name__ == "__main__":
    if sys.argv[1:2] == ["search"]:
        search(sys.argv[2])
    else:
        from .part import alone

        alone("tuner")
