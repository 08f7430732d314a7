"""One text compiled as several translation units at the same time, since the first call of a kernel waits for its
compiler. Those of C are linked, those of a GPU are loaded one by one.

The functions that are shared out, and what each takes to compile beside the others, are marked in the text
(`lang/emit_units.py`)."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence

from ..errors import DeviceError
from .base import cores

# What a unit more costs is reading the headers, and of C a link. A function of this weight takes about twice as long.
MIN_WEIGHT = 2500
_SHARED = re.compile(r"^#if PA_IN_UNIT\((\d+), (\d+)\)$", re.MULTILINE)
_SEVERAL = b"pyarray units "


def unit_sets(text: str, most: int, at_once: int = 0) -> list[int]:
    """The functions of each of the units, which are `most` at most, as bits, the units taking about as long; a single
    one where the text has little to share out.

    >>> unit_sets("#if PA_IN_UNIT(0, 3000)\\n#if PA_IN_UNIT(1, 900)\\n#if PA_IN_UNIT(2, 2500)\\n", 4, at_once=8)
    [1, 6]
    """
    totals = Counter[int]()
    for number, weight in _SHARED.findall(text):
        totals[int(number)] += int(weight)
    weights = [(weight, number) for number, weight in totals.items()]
    worth = min(totals.total() // MIN_WEIGHT, len(weights), most)
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
    """The binaries that were packed, or the binary if it is a single one. Raises `DeviceError` for damaged ones."""
    if not binary.startswith(_SEVERAL):
        return [binary]
    head, _, rest = binary.partition(b"\n")
    listed = head.removeprefix(_SEVERAL).split()
    sizes = [int(size) for size in listed if size.isdigit()]
    if not sizes or len(sizes) != len(listed) or sum(sizes) != len(rest):
        raise DeviceError(f"a binary of several units is damaged: {len(rest)} bytes for those of {head[:80]!r}")
    ends = list(itertools.accumulate(sizes))
    return [rest[end - size : end] for size, end in zip(sizes, ends, strict=True)]
