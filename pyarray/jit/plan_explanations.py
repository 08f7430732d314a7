"""Why a call of a library function would run no plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import CAPTURED_AT, PlannedFunction
from ..array import ndarray
from ..dtypes import DType
from .launch_state import launch_state, observed

_STRIDED, _READONLY = 1 << 16, 1 << 17  # of a type key


def explain_miss(function: PlannedFunction, args: Sequence[Any], options: dict[str, Any]) -> str | None:
    """As `PlannedFunction.explain_miss`."""
    name = f"{function.__name__}()"
    if observed():
        return f"{name}: plans don't run while launches are observed"
    if launch_state.debug:
        return f"{name}: plans don't run in debug mode"
    what, found = function.plan_table.find(*args, **options)
    if isinstance(what, str):
        return f"{name}: {_without_key(what, found)}"
    if isinstance(found, str):
        return f"{name}: calls with these arguments have no plan, since {found}"
    if found is not None:
        return None
    plans = [key for key, plan in function.plan_table.keys() if not isinstance(plan, str)]
    when = f"a plan is made at the {CAPTURED_AT}th of equal calls"
    if not plans:
        return f"{name} has no plan yet: {when}"
    rows = min((_differences(what, key) for key in plans), key=len)
    count = f"{len(plans)} plan{'s' if len(plans) > 1 else ''}"
    head = f"{name} has no plan for these arguments ({when}); against the nearest of its {count}:"
    return "\n  ".join((head, *(rows or ["nothing differs but sizes that the plan is not for"])))


def _without_key(why: str, what: Any) -> str:
    if what is None:
        return f"{why}, so that the call has no plan"
    kind = "an array" if isinstance(what, ndarray) else f"an argument of type {type(what).__name__}"
    return f"{kind} {why}, so that the call has no plan"


def _differences(mine: list[Any], theirs: list[Any]) -> list[str]:
    """In words: what the arguments are, in order, and those of a plan."""
    ours, others = [_shown(x) for x in mine], [_shown(x) for x in theirs]
    ours += ["nothing"] * (len(others) - len(ours))
    others += ["nothing"] * (len(ours) - len(others))
    rows = enumerate(zip(ours, others, strict=True))
    return [f"argument {k}: {x}, there {y}" for k, (x, y) in rows if not _fits(x, y)]


def _fits(x: str, y: str) -> bool:
    """Whether two are the same, or differ in sizes that a plan by types leaves open."""
    return x == y or (y.endswith(_ANY_LAYOUT) and x.startswith(y.removesuffix(_ANY_LAYOUT)))


_ANY_LAYOUT = " of any shape"


def _shown(x: Any) -> str:
    if isinstance(x, tuple) and len(x) == 4 and isinstance(x[0], DType):
        row, key, shape, strides = x
        how = "strided " * bool(key & _STRIDED) + "read-only " * bool(key & _READONLY)
        kind = f"{how}array of {row}, {key >> 8 & 0xFF} axes, device {key >> 20 & 0xFFF}"
        return f"{kind}{_ANY_LAYOUT}" if shape is None else f"{kind} of shape {shape}, strides {strides}"
    if isinstance(x, tuple) and len(x) == 4:
        k, distance, first, same = x
        return f"operand {k} {f'{distance} bytes behind' if same == k else 'the same array as'} operand {first}"
    return repr(x)
