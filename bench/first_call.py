"""One library's first launch, alone in a process: `python -m bench.first_call LIBRARY CACHE_DIR`.

Prints a line of JSON, in seconds: `import`, `launch` from there to the end of the first launch, `second`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import kernels

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


def main() -> None:
    library, cache = sys.argv[1:3]
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
