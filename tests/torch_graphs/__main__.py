"""python -m tests.torch_graphs --graphs 10000 --device cpu --seed 1"""

from __future__ import annotations

import argparse
import sys
import time


def main() -> int:
    """Prints each graph whose results differ, and how many ran; fails if any differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.torch_graphs", description=__doc__)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first graph")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dynamo", type=float, default=0.05, help="share that goes through torch.compile")
    parser.add_argument("--stop-after", type=int, default=50, help="differences")
    given = parser.parse_args()
    from .run import Report, check

    began = time.perf_counter()

    def progress(report: Report) -> None:
        seconds = time.perf_counter() - began
        print(f"{report.graphs} graphs, {len(report.differences)} differ, {seconds:.0f} s", file=sys.stderr)

    report = check(
        given.graphs, given.seed, given.device,
        dynamo=given.dynamo, stop_after=given.stop_after, first=given.first, progress=progress,
        found=lambda line: print(line, flush=True),
    )  # fmt: skip
    seconds = time.perf_counter() - began
    print(
        f"{report.graphs} graphs ({report.traces} traces, {report.calls} calls, "
        f"{len(report.nodes)} operators) on {given.device}, seed {given.seed}: "
        f"{len(report.differences)} differ, {seconds:.0f} s. "
        f"Skipped calls: {dict(report.skipped)}"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
