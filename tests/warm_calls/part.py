"""What one process runs. A module of its own: another process can't import `__main__` of a package."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.drawn import Clock, set_status

if TYPE_CHECKING:
    from warm_calls.run import Report

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def part(args: argparse.Namespace, index: int) -> Report:
    """The calls of one process: of its own functions, in turn."""
    if args.device.startswith("hip"):
        from hip_emulator.build import use_emulator

        use_emulator()
    from warm_calls.run import Report, check, matching

    clock = Clock()

    def progress(report: Report) -> None:
        if report.families % 100 == 0:
            text = f"{report.families} families, {report.calls} calls, {len(report.differences)} differences, {clock}"
            print(text if args.processes == 1 else f"process {index}: {text}", file=sys.stderr)

    rows = matching(args.only)[index :: args.processes]
    if not rows:
        return Report()
    calls = args.calls // args.processes + (index < args.calls % args.processes)
    report = check(
        calls, args.device, args.seed,
        rows=rows, dtypes=args.dtypes, stop_after=args.stop_after, progress=progress, started=set_status,
        found=lambda line: print(line, flush=True),
    )  # fmt: skip
    report.functions = len(rows)
    return report
