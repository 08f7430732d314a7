"""Estimates the cost of a loop's iteration, in units of about one vectorised addition.

It decides how many threads a launch is worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .builtins import FUNCTIONS
from .ir import Atomic, Binary, Builtin, For, Function, Invoke, Load, Store, While, children

UNKNOWN_TRIPS = "64"  # of an inner loop whose bounds are computed inside; a guess


def cost(node: Any, functions: dict[str, Function], trips: Callable[[For], str | None]) -> str:
    """C expression of the sum over the node; `trips` returns how often an inner loop runs, or None."""
    constant, parts = _sum(node, functions, trips)
    return " + ".join([str(constant), *parts])


def _sum(node: Any, functions: dict[str, Function], trips: Callable[[For], str | None]) -> tuple[int, list[str]]:
    """The constant part and the terms of the inner loops."""
    constant, parts = _node_cost(node), []
    below = [*children(node)]
    if isinstance(node, Invoke):
        below += functions[node.function].body
        trips = _unknown  # its bounds are named after its own parameters
    for child in below:
        number, terms = _sum(child, functions, trips)
        constant += number
        parts += terms
    if isinstance(node, While) or (isinstance(node, For) and node.loop is None):
        count = (trips(node) if isinstance(node, For) else None) or UNKNOWN_TRIPS
        return 1, [f"{count} * ({' + '.join([str(constant), *parts])})"]
    return constant, parts


def _unknown(loop: For) -> None:
    return None


def _node_cost(node: Any) -> int:
    if isinstance(node, Builtin):
        return FUNCTIONS[node.name].cost * (4 if node.domain.kind == "c" else 1)
    if isinstance(node, Binary):
        return {"div": 4, "floordiv": 8, "mod": 8, "pow": 20}.get(node.op, 1)
    if isinstance(node, (Load, Store)):
        return max(node.array.type.dtype.itemsize // 4, 1)
    return 20 if isinstance(node, Atomic) else 1 if isinstance(node, For) else 0
