"""The slots of a kernel's packed arguments that hold sizes: what the host knows of its loops."""

from __future__ import annotations

from typing import Any

from ..driver.kernel_step import MOST_SIZES
from ..dtypes import int64
from . import emit_views as views
from . import ir
from .summaries import assigned_in


class SizeSlots:
    """The slots of a kernel's parameters, in debug mode or not."""

    def __init__(self, kernel: ir.Function, debug: bool):
        self.kernel, self.debug = kernel, debug

    def of_loop(self, loop: ir.For) -> tuple[int, ...] | None:
        """Slots whose product is the number of iterations; None if it isn't such a product."""
        slots = []
        for range_ in loop.ranges:  # a start above 0 or a step leave iterations out
            if not all(x is None or (isinstance(x, ir.Const) and x.value >= 0) for x in (range_.start, range_.step)):
                return None
            slot = self.of_bound(range_.stop)
            if slot is None:
                return None
            slots.append(slot)
        return tuple(slots) if len(slots) <= MOST_SIZES else None

    def first(self) -> dict[str, int]:
        """The first slot of each parameter."""
        first, position = {}, 0
        for name, kind in self.kernel.params:
            first[name] = position
            position += _slot_count(kind, self.debug)
        return first

    def of_bound(self, stop: ir.Expr | None) -> int | None:
        """The slot that holds a loop's bound, if there is one."""
        first = self.first()
        while isinstance(stop, ir.Cast) and stop.type.dtype is int64 and stop.a.type.dtype is int64:
            stop = stop.a
        if isinstance(stop, ir.Size) and isinstance(stop.array, ir.Local) and stop.array.name in first:
            return first[stop.array.name] + 1 + self.debug + stop.axis
        inside = assigned_in(*self.kernel.body)
        kinds = {n: k for n, k in self.kernel.params if n not in inside}
        if not isinstance(stop, ir.Local):
            return None
        kind = kinds.get(stop.name)
        return first[stop.name] if isinstance(kind, ir.ScalarType) and kind.dtype is int64 else None


def _slot_count(kind: Any, debug: bool) -> int:
    return len(views.struct_fields(kind, debug)) if hasattr(kind, "ndim") else 1 + (kind.dtype.kind == "c")
