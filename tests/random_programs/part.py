"""What one process runs. A module of its own: another process can't import `__main__` of a package."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .run import Report


def part(args: argparse.Namespace, numbers: range) -> Report:
    """The programs of these numbers."""
    if args.device.startswith("hip") and args.emulate:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        use_emulator = importlib.import_module("hip_emulator.build").use_emulator
        use_emulator()
    from .run import check

    found = lambda line: print(line, flush=True)  # noqa: E731
    return check(numbers, args.seed, args.device, args.stop_after, found)
