"""What one process runs. A module of its own: another process can't import `__main__` of a package."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .run import Report


def part(args: argparse.Namespace, numbers: range) -> Report:
    """The graphs of these numbers."""
    from .run import check

    return check(
        len(numbers), args.seed, args.device,
        dynamo=args.dynamo, stop_after=args.stop_after, first=numbers.start,
        found=lambda line: print(line, flush=True),
    )  # fmt: skip
