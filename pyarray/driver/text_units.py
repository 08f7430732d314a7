"""One text compiled as several units at once: the first call of a kernel waits for its compiler.

The functions that are shared out, and what each takes to compile beside the others, are marked in the text
(`lang/emit_units.py`)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .base import cores

# What a unit more costs is reading the headers and a link. A function of this weight takes about twice as long.
MIN_WEIGHT = 2500
MAX_UNITS = 4
_SHARED = re.compile(r"^#if PA_IN_UNIT\((\d+), (\d+)\)$", re.MULTILINE)
_SEVERAL = b"pyarray units "


def unit_sets(text: str, at_once: int = 0, most: int = MAX_UNITS) -> list[int]:
    """The functions of each unit, as bits, the units taking about as long; a single one where the text has little to
    share out.

    >>> unit_sets("#if PA_IN_UNIT(0, 3000)\\n#if PA_IN_UNIT(1, 900)\\n#if PA_IN_UNIT(2, 2500)\\n", at_once=8)
    [1, 6]
    """
    weights = [(int(weight), int(number)) for number, weight in _SHARED.findall(text)]
    worth = min(sum(weight for weight, _ in weights) // MIN_WEIGHT, len(weights), most)
    sets = [[0, 0] for _ in range(min(worth, at_once or cores()) or 1)]
    for weight, number in sorted(weights, reverse=True):
        lightest = min(sets)
        lightest[0] += weight
        lightest[1] |= 1 << number
    return [bits for _, bits in sets]


def packed(binaries: Sequence[bytes]) -> bytes:
    """Binaries that nothing links, as one.

    >>> unpacked(packed([b"first", b"second"]))
    [b'first', b'second']
    """
    return _SEVERAL + " ".join(str(len(binary)) for binary in binaries).encode() + b"\n" + b"".join(binaries)


def unpacked(binary: bytes) -> list[bytes]:
    """The binaries that were packed, or the binary if it is a single one."""
    if not binary.startswith(_SEVERAL):
        return [binary]
    head, _, rest = binary.partition(b"\n")
    binaries, at = list[bytes](), 0
    for size in map(int, head.removeprefix(_SEVERAL).split()):
        binaries.append(rest[at : at + size])
        at += size
    return binaries
