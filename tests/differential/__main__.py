"""python -m tests.differential --calls 100000 --device cpu --seed 1"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> int:
    """Prints how many calls ran, and each difference as a line; fails if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtypes", type=int, default=2, help="of each function at a time")
    parser.add_argument("--only", default="", help="functions whose names match this pattern, such as 'nan*'")
    parser.add_argument("--stop-after", type=int, default=50, help="differences")
    given = parser.parse_args()
    if given.device.startswith("hip"):
        from hip_emulator.build import use_emulator

        use_emulator()
    from .rows import ROWS, matching
    from .run import Report, check

    began = time.perf_counter()

    def progress(report: Report) -> None:
        seconds = time.perf_counter() - began
        print(
            f"{report.calls} calls, {len(report.differences)} differences, {seconds:.0f} s", file=sys.stderr
        )

    rows = matching(given.only) if given.only else ROWS
    report = check(
        given.calls, given.device, given.seed,
        rows=rows, dtypes=given.dtypes, stop_after=given.stop_after, progress=progress,
        found=lambda line: print(line, flush=True),
    )  # fmt: skip
    meant = ", ".join(f"{count} {what}" for what, count in report.meant.most_common())
    seconds = time.perf_counter() - began
    print(
        f"{report.calls} calls of {len(rows)} functions ({report.cases} cases) on {given.device}, "
        f"seed {given.seed}: "
        f"{len(report.differences)} differences in {seconds:.0f} s. Meant: {meant or 'none'}"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
