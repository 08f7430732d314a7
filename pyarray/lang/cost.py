"""What one iteration of a loop costs, in units of about one vectorised addition: decides when a launch is
worth several threads."""

from __future__ import annotations

from typing import Any

from .builtins import FUNCTIONS
from .ir import Atomic, Binary, Builtin, For, Function, Invoke, Load, Store, While, children

UNKNOWN_TRIPS = 32  # of an inner loop; a guess, since sizes are not known here


def cost(node: Any, functions: dict[str, Function]) -> int:
    """Sum over the node; inner loops count `UNKNOWN_TRIPS` times."""
    total = sum(cost(child, functions) for child in children(node))
    if isinstance(node, (For, While)):
        return 1 + total * (1 if isinstance(node, For) and node.loop is not None else UNKNOWN_TRIPS)
    if isinstance(node, Builtin):
        return total + FUNCTIONS[node.name].cost * (4 if node.domain.kind == "c" else 1)
    if isinstance(node, Binary):
        return total + {"div": 4, "floordiv": 8, "mod": 8, "pow": 20}.get(node.op, 1)
    if isinstance(node, (Load, Store)):
        return total + max(node.array.type.dtype.itemsize // 4, 1)
    if isinstance(node, Atomic):
        return total + 20
    if isinstance(node, Invoke):
        return total + sum(cost(s, functions) for s in functions[node.function].body)
    return total
