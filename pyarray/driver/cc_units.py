"""The units of one C text (`text_units.py`): a compiler for each, at the same time, and a link."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

MAX_UNITS = 4


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
