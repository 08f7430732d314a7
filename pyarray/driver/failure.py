"""`Failure`: what a checked launch says went wrong."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Failure:
    """The failure record of a checked launch: the first access out of bounds, as numbers that the host has names for.

    `kind` is a PA_FAIL_ constant of csrc/device/pa_check.h. `site` and `frames` (innermost first) are numbers
    of the launch's site table. `depth` counts all frames, of which the record keeps at most 64.
    """

    kind: int
    loop: int
    site: int
    tid: int
    index: int
    extent: int
    offset: int
    size: int
    depth: int
    frames: tuple[int, ...]


def read_failure(record: Any) -> Failure:
    """The numbers of a `pa_failure` of csrc/runtime/pyarray.h."""
    numbers: dict[str, Any] = {field.name: getattr(record, field.name) for field in fields(Failure)}
    numbers["frames"] = tuple(record.frames[0 : max(0, min(record.depth, 64))])
    return Failure(**numbers)
