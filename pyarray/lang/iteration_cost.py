"""Estimates the cost of a loop's iteration, in units of about one vectorised addition.

It decides how many threads a launch is worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import ir
from .builtins import FUNCTIONS

UNKNOWN_TRIPS = "64"  # of an inner loop whose bounds are computed inside; a guess


def cost(node: Any, functions: dict[str, ir.Function], trips: Callable[[ir.For], str | None]) -> str:
    """C expression of the sum over the node; `trips` returns how often an inner loop runs, or None."""
    constant, parts = _sum(node, functions, trips)
    return " + ".join([str(constant), *parts])


def _sum(node: Any, functions: dict[str, ir.Function], trips: Callable[[ir.For], str | None]) -> tuple[int, list[str]]:
    """The constant part and the terms of the inner loops."""
    constant, parts = _node_cost(node), []
    below = [*ir.children(node)]
    if isinstance(node, ir.If) and isinstance(node.condition, ir.NoAlias):
        below = [*node.then]  # the other branch hardly ever runs
    if isinstance(node, ir.Invoke):
        below += functions[node.function].body
        trips = constant_trips  # other bounds are named after its own parameters
    for child in below:
        number, terms = _sum(child, functions, trips)
        constant += number
        parts += terms
    if isinstance(node, ir.While) or (isinstance(node, ir.For) and node.loop is None):
        count = (trips(node) if isinstance(node, ir.For) else None) or UNKNOWN_TRIPS
        return 1, [f"{count} * ({' + '.join([str(constant), *parts])})"]
    return constant, parts


def constant_trips(loop: ir.For) -> str | None:
    """The trip count of an inner loop, if it follows from constants."""
    counts = []
    for r in loop.ranges:
        ends = [
            default if x is None else getattr(x, "value", None)
            for x, default in ((r.start, 0), (r.stop, None), (r.step, 1))
        ]
        if not all(isinstance(x, int) for x in ends):
            return None
        counts.append(len(range(*ends)))  # type: ignore[arg-type]
    return str(math.prod(counts))


def _node_cost(node: Any) -> int:
    if isinstance(node, ir.Builtin):
        return FUNCTIONS[node.name].cost * (4 if node.domain.kind == "c" else 1)
    if isinstance(node, ir.Binary):
        return {"div": 4, "floordiv": 8, "mod": 8, "pow": 20}.get(node.op, 1)
    if isinstance(node, (ir.Load, ir.Store)):
        return max(node.array.type.dtype.itemsize // 4, 1)
    return 20 if isinstance(node, ir.Atomic) else 1 if isinstance(node, ir.For) else 0
