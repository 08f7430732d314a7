"""`python -m bench [--quick] [--threads N] [--json FOLDER] [PART ...]`: a JSON file for each part."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

from . import peers
from .timing import machine, write_json

PARTS = ("launch", "elementwise", "functions", "gemm", "pinned", "debug", "gpu", "gpu_launch")
# read by the libraries when they are imported
THREADS = (
    "PYARRAY_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
OUT = Path(__file__).resolve().parent / "out"


def measure(part: str, quick: bool, path: Path) -> None:
    """Run one part and write what it found."""
    print(f"== {part}", flush=True)
    rows, more = importlib.import_module(f"bench.{part}").run(quick)
    write_json(path, rows, versions=peers.versions(), **more)
    print(f"({path})\n", flush=True)


def alone(part: str) -> None:
    """The command line of one part."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{part}")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    parser.add_argument("--json", type=Path, default=OUT / f"{part}.json", help="where to write the figures")
    options = parser.parse_args()
    measure(part, options.quick, options.json)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    parser.add_argument("--json", type=Path, default=OUT, metavar="FOLDER", help="where to write the figures")
    parser.add_argument("--threads", type=int, help="of every library; default: what each takes by itself")
    options = parser.parse_args()
    if options.threads:
        os.environ.update(dict.fromkeys(THREADS, str(options.threads)))
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    print("  ".join(f"{k} {v}" for k, v in {**machine(), **peers.versions()}.items()))
    for part in options.parts or PARTS:
        measure(part, options.quick, options.json / f"{part}.json")


if __name__ == "__main__":
    main()
