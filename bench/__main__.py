"""Runs the parts, each in a process of its own; writes results.json, and report.html for reading. Figures of
parts that are not run stay; those that a run replaces are kept in previous.json, for the comparison."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import page, peers
from .part import OUT, PARTS, UNFINISHED, write
from .timing import machine

# read by the libraries when they are imported
THREADS = (
    "PYARRAY_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
ROOT = Path(__file__).resolve().parent.parent
Parts = dict[str, dict[str, Any]]


def measured(part: str, quick: bool) -> tuple[dict[str, Any], bool]:
    """What a part found in its own process, which may crash; and whether the user has ended it."""
    print(f"== {part}", flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path, ended, code = Path(folder) / f"{part}.json", False, 0
        command = [sys.executable, "-m", f"bench.{part}", "--json", str(path)]
        command += ["--quick"] if quick else []
        try:
            code = subprocess.run(command, cwd=ROOT, check=False).returncode
        except KeyboardInterrupt:
            ended = True
        nothing = {"machine": machine(), "versions": peers.versions(), "quick": quick, "failed": UNFINISHED}
        result = read(path).get(part, nothing) if path.is_file() else nothing
    if result["failed"] == UNFINISHED:
        result["failed"] = "ended by the user" if ended else f"its process ended with {_name(code)}"
    return result, ended


def _name(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def read(path: Path) -> Parts:
    """The parts of a results.json; ValueError, which names the file, if it is something else."""
    try:
        parts = json.loads(path.read_text())["parts"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no results.json: {type(error).__name__}: {error}") from None
    if not isinstance(parts, dict):
        raise ValueError(f"{path} is no results.json: its parts are {type(parts).__name__}, not an object")
    return parts


def known(path: Path) -> Parts:
    """As `read`, of a file of ours: nothing, if it isn't there or is damaged, which is said."""
    try:
        return read(path) if path.is_file() else {}
    except ValueError as error:
        print(f"({error}: it is not used)", file=sys.stderr)
        return {}


def before(previous: Parts, current: Parts, parts: list[str]) -> Parts:
    """What the next run of `parts` is compared with: their last figures; those of the others stay."""
    return previous | {name: current[name] for name in parts if current.get(name, {}).get("rows")}


def report(out: Path, against: Parts | None) -> None:
    """Writes the page, from the files."""
    earlier = known(out / "previous.json") if against is None else against
    target = out / "report.html"
    current = known(out / "results.json")
    target.write_text(page.page({name: current[name] for name in PARTS if name in current}, earlier))
    print(page.said(current, earlier))
    print(f"{out / 'results.json'}\n{target}", flush=True)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    parser.add_argument("--threads", type=int, help="of every library; default: what each takes by itself")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER", help="where to write")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with this results.json")
    parser.add_argument("--report", action="store_true", help="measure nothing: write the page anew")
    parsed = parser.parse_args()
    if unknown := set(parsed.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if parsed.against:  # read now: it may be the file that is written later
        try:
            parsed.against = read(parsed.against)
        except (OSError, ValueError) as error:
            parser.error(str(error))
    return parsed


def main() -> None:
    args = options()
    if args.threads:
        os.environ.update(dict.fromkeys(THREADS, str(args.threads)))
    parts, results, ended = list(args.parts or PARTS), args.out / "results.json", False
    if not args.report:
        print("  ".join(f"{k} {v}" for k, v in {**machine(), **peers.versions()}.items()))
        current = known(results)
        previous = args.out / "previous.json"
        write(previous, {"parts": before(known(previous), current, parts)})
        for part in parts:
            current[part], ended = measured(part, args.quick)
            write(results, {"parts": current})
            if ended:
                break
    report(args.out, args.against)
    if ended:
        raise SystemExit(130)


if __name__ == "__main__":
    main()
