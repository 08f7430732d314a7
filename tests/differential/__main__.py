"""python -m tests.differential --calls 100000 --device cpu --seed 1 --processes 8"""

from __future__ import annotations

import sys

from tests.drawn import run_functions


def main() -> int:
    """Prints how many calls ran, and each difference as a line; fails if there are any."""
    report, args, clock = run_functions("differential", __doc__, 10_000)
    meant = ", ".join(f"{count} {what}" for what, count in report.meant.most_common())
    print(
        f"{report.calls} calls of {report.functions} functions ({report.cases} cases) on {args.device}, "
        f"seed {args.seed}: {len(report.differences)} differences in {clock}. Meant: {meant or 'none'}"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
