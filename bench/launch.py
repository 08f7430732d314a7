"""Host time: cached launches and their parts, the first of a process, imports; memory over many launches.

`python -m bench.launch [--json PATH]`
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pyarray as pa
from pyarray.jit.launch import packer

from . import first_call, kernels, peers
from .timing import Figure, Row, Times, aligned, race, table, text_of

ABOUT = """Host time: a cached launch of `c[i] = f * a[i] + b[i]` on 16 elements next to Quadrants, and what
it consists of; first calls and imports in fresh processes; first uses of common functions with and without
what is compiled with the package."""
N, ROOT = 16, Path(__file__).resolve().parent.parent


scaled_sum = kernels.of_pyarray(pa)


def _empty(a: Any, b: Any, c: Any, f: Any) -> None:
    pass


def _arrays() -> list[Any]:
    return [pa.asarray(np.ones(2 * N, np.float32)) for _ in range(3)]


def _calls(k: Callable[..., Any] | None, arrays: Callable[[], list[Any]], f: Any = 2.0) -> dict[str, Callable[[], Any]]:
    """Calls of `k` with no, one and three fresh views, by name."""
    if k is None:
        return {}
    a, b, c = arrays()
    u, v, w = a[2:18], b[1:17], c[:16]
    return {
        "held": lambda: k(u, v, w, f),
        "one fresh": lambda: k(a[2:18], v, w, f),
        "three fresh": lambda: k(a[2:18], b[1:17], c[:16], f),
    }


def cached(budget: float = 1.0) -> list[Row]:
    """Launches with held and with fresh views. Numba's and NumPy's arrays are NumPy's: their slices are C."""
    nb, qd, wp = peers.peer("numba"), peers.quadrants(), peers.warp()
    host: Callable[[], list[Any]] = lambda: [np.ones(2 * N, np.float32) for _ in range(3)]  # noqa: E731
    calls = {
        "pyarray": _calls(scaled_sum, _arrays),
        "numba": _calls(nb and kernels.of_numba(nb), host, np.float32(2)),
        "quadrants": _calls(
            qd and kernels.of_quadrants(qd), lambda: [qd.ndarray(qd.f32, shape=(2 * N,)) for _ in range(3)]
        ),
        "warp": _calls(
            wp and kernels.of_warp(wp),
            lambda: [wp.array(np.ones(2 * N, np.float32), device="cpu") for _ in range(3)],
        ),
        "np.add": _calls(lambda a, b, c, f: np.add(a, b, out=c), host),
        "empty call": _calls(_empty, host),
    }
    rows = []
    for case in ("held", "one fresh", "three fresh"):
        times = race({name: those.get(case) for name, those in calls.items()}, budget)
        own, empty = times["pyarray"], times["empty call"]
        facts = {"over the call itself": own.min - empty.min} if own and empty else {}
        rows.append(Row("launch", f"k(a, b, c, 2.0), {case}", times, 37 / 5, against=("quadrants",), facts=facts))
    return rows


def parts(budget: float = 1.0) -> list[Row]:
    """What a launch is made of, each alone."""
    a, b, c = _arrays()
    u, v, w = a[2:18], b[1:17], c[:16]
    scaled_sum(u, v, w, 2.0)
    variant = scaled_sum.variant((u, v, w, 2.0))
    pack_only = packer(variant.program.params)
    slots = pack_only(u, v, w, 2.0)
    run = variant.device.driver.launcher(variant.artifact.function)
    times = race(
        {
            "all": lambda: scaled_sum(a[2:18], b[1:17], c[:16], 2.0),
            "three slices": lambda: (a[2:18], b[1:17], c[:16]),
            "one slice": lambda: a[2:18],
            "held": lambda: scaled_sum(u, v, w, 2.0),
            "pack + driver": lambda: variant.launch(u, v, w, 2.0),
            "pack": lambda: pack_only(u, v, w, 2.0),
            "driver": lambda: run(slots),
            "empty lambda": lambda: None,
        },
        budget,
    )
    return [
        Row(
            "launch parts",
            "k(a[2:18], b[1:17], c[:16], 2.0)",
            {"pyarray": times.pop("all"), **times},
            against=(),
        )
    ]


def first_calls(repeats: int = 3) -> list[Row]:
    """Fresh processes, from after the import to after the first launch: with an empty cache directory, then
    with that directory again. What a library starts up after its import is a part of it."""
    rows: dict[str, dict[str, Times | None]] = {"first call, cold": {}, "first call, from disk": {}}
    for library in ("pyarray", "numba", "quadrants", "warp"):
        if peers.peer(library) is None:
            continue
        measured: dict[str, list[float]] = {case: [] for case in rows}
        for _ in range(repeats if library == "pyarray" else 1):
            with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
                for case in rows:
                    facts = _first_call(library, cache)
                    if facts is not None:
                        measured[case].append(facts["launch"])
        for case, seconds in measured.items():
            rows[case][library] = Times(min(seconds), statistics.median(seconds), len(seconds), 1) if seconds else None
    return [Row("first call", case, times, 1.0) for case, times in rows.items()]


def _first_call(library: str, cache: str) -> dict[str, float] | None:
    result = subprocess.run(
        [sys.executable, "-m", "bench.first_call", library, cache],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        print(f"  ({library}: {result.stderr.strip().splitlines()[-1:]})")
        return None
    facts: dict[str, float] = json.loads(result.stdout.strip().splitlines()[-1])
    return facts


def imports(repeats: int = 5) -> list[Row]:
    """`import` in a fresh process; NumPy's is a part of most of the others."""
    names = ["pyarray", *(name for name in peers.NAMES if peers.peer(name) is not None)]
    measured: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repeats):
        for name in names:
            if name in ("pyarray", "numpy") or turn < 2:
                measured[name].append(_import_time(name))
    times: dict[str, Times | None] = {n: Times(min(s), statistics.median(s), len(s), 1) for n, s in measured.items()}
    return [Row("import", "import", times, against=())]


def _import_time(name: str) -> float:
    code = f"import time; t = time.perf_counter(); import {name}; t = time.perf_counter() - t; print(); print(t)"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return float(out.strip().splitlines()[-1])


def memory(launches: int = 100_000) -> list[Figure]:
    """Bytes before and after many launches with fresh views: Python's own, and the process's peak."""
    a, b, c = _arrays()
    scaled_sum(a[2:18], b[1:17], c[:16], 2.0)
    gc.collect()
    tracemalloc.start()
    _launch_many(a, b, c, 1000)
    python, peak = tracemalloc.get_traced_memory()[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    before = resident()
    _launch_many(a, b, c, launches)
    grown = {
        "Python's own": tracemalloc.get_traced_memory()[0] - python,
        "resident": resident() - before,
        "at its peak": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) << 10,
    }
    tracemalloc.stop()
    return [Figure(f"memory grown over {launches} launches, {name}", n, "bytes") for name, n in grown.items()]


def _launch_many(a: Any, b: Any, c: Any, count: int) -> None:
    for k in range(count):
        at = k % N  # another view each time
        scaled_sum(a[at : at + N], b[at : at + 8], c[:8], 2.0)


def resident() -> int:
    """Bytes of memory that the process holds now; 0 where the system doesn't say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes."""
    budget = 0.2 if quick else 1.0
    rows = cached(budget)
    print(f"Cached launch, n = {N}: minimum (median)\n{table(rows)}")
    for row in rows:
        for fact, seconds in row.facts.items():
            print(f"  {row.case}: {text_of(seconds)} {fact}")
    split = parts(budget)
    times = split[0].times
    yield from rows + split
    print("\nParts of a launch (an empty lambda is a part of each)")
    print(aligned([[n, text_of(t.min), f"({text_of(t.median)})"] for n, t in times.items() if t is not None]))
    held, fresh = rows[0].times["pyarray"], rows[2].times["pyarray"]
    if held and fresh:
        print(f"a fresh view costs {text_of((fresh.min - held.min) / 3)} more than a held one")
    began = time.perf_counter()
    first = first_calls(1 if quick else 3) + imports(2 if quick else 5)
    print(f"\nFresh processes ({time.perf_counter() - began:.0f} s)\n{table(first)}", flush=True)
    yield from first
    if quick and not first_call.WARMED.is_dir():  # to compile it all takes minutes
        yield Figure("first uses of functions", "left out: nothing is compiled with the package here")
    else:
        uses = first_call.first_uses(1 if quick else 3)
        print(f"\nFirst use of common functions, fresh processes\n{table(uses)}", flush=True)
        yield from uses
    for figure in memory(10_000 if quick else 100_000):
        print(figure, flush=True)
        yield figure


if __name__ == "__main__":
    from .part import alone

    alone("launch")
