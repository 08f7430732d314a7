"""python -m tests.torch_graphs --graphs 10000 --device cpu --seed 1 --processes 8"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from tests.drawn import Clock, arguments, run_parts

from .part import part

if TYPE_CHECKING:
    from .run import Report

AT_ONCE = 50  # graphs of a part: a process takes the next part when it has done one


def main() -> int:
    """Prints each graph whose results differ, and how many ran; fails if any differs."""
    parser = arguments("tests.torch_graphs", __doc__, "graphs", 1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first graph")
    parser.add_argument("--dynamo", type=float, default=0.05, help="share that goes through torch.compile")
    args = parser.parse_args()
    clock = Clock()

    def progress(report: Report) -> None:
        print(f"{report.graphs} graphs, {len(report.differences)} differ, {clock}", file=sys.stderr)

    end = args.first + args.graphs
    parts = [range(n, min(n + AT_ONCE, end)) for n in range(args.first, end, AT_ONCE)]
    report = run_parts(partial(part, args), parts, args.processes, args.stop_after, progress)
    print(
        f"{report.graphs} graphs ({report.traces} traces, {report.calls} calls, "
        f"{len(report.nodes)} operators) on {args.device}, seed {args.seed}: "
        f"{len(report.differences)} differ, {clock}. Skipped calls: {dict(report.skipped)}"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
