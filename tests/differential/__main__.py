"""python -m tests.differential --calls 100000 --device cpu --seed 1 --processes 8"""

from __future__ import annotations

import sys
from functools import partial

from tests.drawn import Clock, arguments, run_parts

from .part import part


def main() -> int:
    """Prints how many calls ran, and each difference as a line; fails if there are any."""
    parser = arguments("tests.differential", __doc__, "calls", 10_000)
    parser.add_argument("--dtypes", type=int, default=2, help="of each function at a time")
    parser.add_argument("--only", default="", help="functions whose names match this pattern, such as 'nan*'")
    args = parser.parse_args()
    clock = Clock()
    report = run_parts(partial(part, args), range(args.processes), args.processes, args.stop_after)
    meant = ", ".join(f"{count} {what}" for what, count in report.meant.most_common())
    print(
        f"{report.calls} calls of {report.functions} functions ({report.cases} cases) on {args.device}, "
        f"seed {args.seed}: {len(report.differences)} differences in {clock}. Meant: {meant or 'none'}"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
