"""python -m tests.warm_calls --calls 100000 --device cpu --seed 1 --processes 2"""

from __future__ import annotations

import sys
from functools import partial

from tests.drawn import Clock, arguments, run_parts

from .part import part


def main() -> int:
    """Prints how many calls ran, and each difference as a line; fails if there are any."""
    parser = arguments("tests.warm_calls", __doc__, "calls", 20_000)
    parser.add_argument("--dtypes", type=int, default=2, help="of each function at a time")
    parser.add_argument("--only", default="*", help="functions whose names match this pattern, such as 'nan*,kernel.*'")
    args = parser.parse_args()
    clock = Clock()
    report = run_parts(partial(part, args), range(args.processes), args.processes, args.stop_after)
    unstable = ", ".join(f"{count} of {name}" for name, count in report.unstable.most_common())
    print(
        f"{report.calls} calls of {report.functions} functions ({report.families} families, "
        f"{sum(report.refused.values())} calls refused) on {args.device}, seed {args.seed}: "
        f"{len(report.differences)} differences in {clock}. Not the same when cold: {unstable or 'none'}"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
