"""python -m tests.warm_calls --calls 100000 --device cpu --seed 1 --processes 2"""

from __future__ import annotations

import sys

from tests.drawn import run_functions


def main() -> int:
    """Prints how many calls ran, and each difference as a line; fails if there are any."""
    report, args, clock = run_functions("warm_calls", __doc__, 20_000)
    unstable = ", ".join(f"{count} of {name}" for name, count in report.unstable.most_common())
    print(
        f"{report.calls} calls of {report.functions} functions ({report.families} families, "
        f"{sum(report.refused.values())} calls refused) on {args.device}, seed {args.seed}: "
        f"{len(report.differences)} differences in {clock}. Not the same when cold: {unstable or 'none'}"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
