"""One library's first launch, alone in a process: `python -m bench.first_call LIBRARY CACHE_DIR`.

Prints a line of JSON, in seconds: `import`, `launch` from there to the end of the first launch, `second`.

`python -m bench.first_call functions` prints the first use of common functions: fresh processes with an empty
cache of the user's, without and with what is compiled with the package.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import kernels
from .timing import SUBJECT, Row, Times, table

ROOT = Path(__file__).resolve().parent.parent
WARMED = ROOT / "pyarray" / "_warmed"  # what is compiled with the package
Start = Callable[[], tuple[Any, Callable[[], Any], Any]]  # → kernel, what makes an array, factor


def use_pyarray(cache: str) -> Start:
    os.environ["PYARRAY_CACHE_DIR"] = cache
    import pyarray as pa

    return lambda: (kernels.of_pyarray(pa), lambda: pa.asarray(np.ones(32, np.float32)), 2.0)


def use_quadrants(cache: str) -> Start:
    qd = importlib.import_module("quadrants")

    def start() -> tuple[Any, Callable[[], Any], Any]:
        qd.init(arch=qd.cpu, log_level=qd.ERROR, offline_cache_file_path=cache)
        return kernels.of_quadrants(qd), lambda: qd.ndarray(qd.f32, shape=(32,)), 2.0

    return start


def use_warp(cache: str) -> Start:
    wp: Any = importlib.import_module("warp")

    def start() -> tuple[Any, Callable[[], Any], Any]:
        wp.config.quiet = True
        wp.config.kernel_cache_dir = cache
        wp.init()
        return (
            kernels.of_warp(wp),
            lambda: wp.array(np.ones(32, np.float32), dtype=wp.float32, device="cpu"),
            2.0,
        )

    return start


def use_numba(cache: str) -> Start:
    os.environ["NUMBA_CACHE_DIR"] = cache
    nb = importlib.import_module("numba")

    return lambda: (kernels.of_numba(nb), lambda: np.ones(32, np.float32), np.float32(2))


LIBRARIES = {"pyarray": use_pyarray, "quadrants": use_quadrants, "warp": use_warp, "numba": use_numba}


# ---- common functions

FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {  # of the namespace, a flat array, a square one
    "add": lambda pa, a, m: a + a,
    "sum": lambda pa, a, m: pa.sum(a),
    "mean axis 0": lambda pa, a, m: pa.mean(m, axis=0),
    "cumsum": lambda pa, a, m: pa.cumulative_sum(a),
    "sort": lambda pa, a, m: pa.sort(a),
    "argsort": lambda pa, a, m: pa.argsort(a),
    "unique": lambda pa, a, m: pa.unique_values(a),
    "quantile": lambda pa, a, m: pa.quantile(a, 0.3),
    "einsum": lambda pa, a, m: pa.einsum("ij,jk->ik", m, m),
    "a[a > 0]": lambda pa, a, m: a[a > 0],
}


def first_uses(processes: int = 3) -> list[Row]:
    """First calls with what is compiled with the package, next to those that compile; the call after it."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench-warmed-") as made:
        warmed = str(WARMED)
        if not WARMED.is_dir():
            warmed = made
            _python("-m", "pyarray", "cache", "warm", made)
        for name in FUNCTIONS:
            then, ahead = _first_use(name, "0", processes), _first_use(name, warmed, processes)
            times = {
                SUBJECT: _times(ahead, "first"),
                "compiled then": _times(then, "first"),
                "again": _times(ahead, "second"),
            }
            facts = {"compiled": f"{ahead[0]['compiles']} of {ahead[0]['kernels']} kernels"}
            rows.append(Row("first use", name, times, against=("compiled then",), facts=facts))
    return rows


def _times(processes: list[dict[str, float]], name: str) -> Times:
    seconds = [facts[name] for facts in processes]
    return Times(min(seconds), statistics.median(seconds), len(seconds), 1)


def _first_use(name: str, warmed: str, processes: int) -> list[dict[str, float]]:
    """What each process says."""
    found = []
    for _ in range(processes):
        with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
            output = _python("-m", "bench.first_call", "function", name, PYARRAY_CACHE_DIR=cache, PYARRAY_WARMED=warmed)
            found.append(json.loads(output.splitlines()[-1]))
    return found


def _python(*arguments: str, **settings: str) -> str:
    command, environment = [sys.executable, *arguments], os.environ | settings
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def function(name: str) -> None:
    """The part of `first_uses` that is a process of its own."""
    import pyarray as pa

    a = pa.asarray(np.random.default_rng(0).standard_normal(1000, dtype=np.float32))
    m, call = a[:900].reshape(30, 30), FUNCTIONS[name]
    before, start = pa.cache_info(), time.perf_counter()
    call(pa, a, m)
    first = time.perf_counter()
    call(pa, a, m)
    second, after = time.perf_counter(), pa.cache_info()
    compiles, on_disk = (after[count] - before[count] for count in ("compiles", "disk_hits"))
    facts = {"first": first - start, "second": second - first, "compiles": compiles}
    print(json.dumps(facts | {"kernels": compiles + on_disk}))


def main() -> None:
    if sys.argv[1] == "functions":
        print(table(first_uses()))
        return
    library, cache = sys.argv[1:3]
    if library == "function":
        function(cache)
        return
    began = time.perf_counter()
    start = LIBRARIES[library](cache)
    imported = time.perf_counter()
    kernel, array, factor = start()
    a, b, c = array(), array(), array()
    kernel(a[2:18], b[1:17], c[:16], factor)
    first = time.perf_counter()
    kernel(a[2:18], b[1:17], c[:16], factor)
    second = time.perf_counter()
    print(json.dumps({"import": imported - began, "launch": first - imported, "second": second - first}))


if __name__ == "__main__":
    main()
