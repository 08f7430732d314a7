"""One part, alone in a process: `python -m bench.gemm [--quick] [--json FILE]`.

A part is a module with `ABOUT` (a sentence or two for the page: what is measured against what) and
`run(quick)`, which yields a `Row` for each case and a `Figure` for what is no ratio, and prints tables.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import peers
from .timing import Row, machine

PARTS = (
    "launch",
    "elementwise",
    "rows",
    "functions",
    "small_arrays",
    "programs",
    "gemm",
    "pinned",
    "debug",
    "tuner",
    "splits",
    "ports",
    "tiles",
    "gpu",
    "gpu_tiles",
    "gpu_launch",
)
OUT = Path(__file__).resolve().parent / "out"
UNFINISHED = "did not end"  # what a part is said to be until it has ended


def measure(part: str, quick: bool, note: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run one part. `note` gets what is known so far after each row, so that a crash loses little."""
    result: dict[str, Any] = {
        "about": "", "machine": machine(), "versions": peers.versions(), "quick": quick,
        "threads": os.environ.get("PYARRAY_NUM_THREADS"),
        "rows": [], "figures": [], "missing": peers.missing, "failed": UNFINISHED, "seconds": 0.0,
    }  # fmt: skip
    began = time.perf_counter()
    try:
        module = importlib.import_module(f"bench.{part}")
        result["about"] = " ".join(module.ABOUT.split())
        for item in module.run(quick):
            if isinstance(item, Row):
                result["rows"].append(item.as_dict())
            else:
                result["figures"].append(asdict(item))
            result["seconds"] = time.perf_counter() - began
            note(result)
        result["failed"] = None
    except Exception:  # whatever it is, the other parts are measured, and the page says it
        result["failed"] = traceback.format_exc()
        print(result["failed"], flush=True)
    result["seconds"] = time.perf_counter() - began
    note(result)
    return result


def write(path: Path, content: dict[str, Any]) -> None:
    """JSON, all of it or nothing; folders are made as needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".tmp")
    beside.write_text(json.dumps(content, indent=1, default=str) + "\n")
    beside.replace(path)


def alone(part: str) -> None:
    """The command line of one part."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{part}")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    parser.add_argument("--json", type=Path, default=OUT / f"{part}.json", help="where to write the figures")
    options = parser.parse_args()
    result = measure(part, options.quick, lambda known: write(options.json, {"parts": {part: known}}))
    raise SystemExit(1 if result["failed"] else 0)
