"""python -m tests.random_programs --programs 10000 --device cpu --seed 1 --processes 8"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from typing import TYPE_CHECKING

from tests.drawn import Clock, arguments, run_parts

from .part import part

if TYPE_CHECKING:
    from .run import Report

AT_ONCE = 20  # programs of a part: a process takes the next part when it has done one


def main() -> int:
    """Prints each program that differs, and how many ran; fails if any differs."""
    parser = arguments("tests.random_programs", __doc__, "programs", 1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--emulate", action="store_true", help="AMD GPUs are the emulated one")
    args = parser.parse_args()
    clock = Clock()

    def progress(report: Report) -> None:
        refused = sum(report.refused.values())
        print(
            f"{report.programs} programs, {refused} refused, {len(report.differences)} differ, {clock}", file=sys.stderr
        )

    end = args.first + args.programs
    parts = [range(n, min(n + AT_ONCE, end)) for n in range(args.first, end, AT_ONCE)]
    with tempfile.TemporaryDirectory() as cache:  # no program comes again
        os.environ.setdefault("PYARRAY_CACHE_DIR", cache)
        report = run_parts(partial(part, args), parts, args.processes, args.stop_after, progress)
    print(
        f"{report.programs} programs ({report.launches} launches) on {args.device}, seed {args.seed}: "
        f"{len(report.differences)} differ, {clock}. Refused: {dict(report.refused)}"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
