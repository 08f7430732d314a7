"""One C text compiled as several units at once, which are linked: the first call of a kernel waits for its compiler.

The functions that are shared out, and what each takes to compile beside the others, are marked in the text
(`lang/emit_units.py`)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from .base import cores

# What a unit more costs is reading the headers and a link. A function of this weight takes about twice as long.
MIN_WEIGHT = 2500
MAX_UNITS = 4
_SHARED = re.compile(r"^#if PA_IN_UNIT\((\d+), (\d+)\)$", re.MULTILINE)


def unit_sets(text: str, at_once: int = 0) -> list[int]:
    """The functions of each unit, as bits, the units taking about as long; a single one where the text has little to
    share out.

    >>> unit_sets("#if PA_IN_UNIT(0, 3000)\\n#if PA_IN_UNIT(1, 900)\\n#if PA_IN_UNIT(2, 2500)\\n", at_once=8)
    [1, 6]
    """
    weights = [(int(weight), int(number)) for number, weight in _SHARED.findall(text)]
    worth = min(sum(weight for weight, _ in weights) // MIN_WEIGHT, len(weights), MAX_UNITS)
    sets = [[0, 0] for _ in range(min(worth, at_once or cores()) or 1)]
    for weight, number in sorted(weights, reverse=True):
        lightest = min(sets)
        lightest[0] += weight
        lightest[1] |= 1 << number
    return [bits for _, bits in sets]


def compile_units(command: Sequence[str], link: Sequence[str], text: str, sets: Sequence[int], output: Path) -> bool:
    """Compiles the units side by side and links them to `output`. False where a compiler or the linker failed: how is
    said by a compiler of the whole text."""
    source = output.with_suffix(".c")
    source.write_text(text)
    parts = [output.with_suffix(f".{number}.o") for number in range(len(sets))]
    with ExitStack() as stack:
        running = [
            stack.enter_context(_started([*command, f"-DPA_UNIT={bits:#x}", "-c", str(source), "-o", str(part)]))
            for bits, part in zip(sets, parts, strict=True)
        ]
        ended = [process.wait() for process in running]
    if any(ended):
        return False
    linked = subprocess.run([*command, *map(str, parts), *link, "-o", str(output)], capture_output=True, check=False)
    return linked.returncode == 0


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
