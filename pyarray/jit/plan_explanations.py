"""Why a call of a library function would run no plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import CAPTURED_AT, Map, PlannedFunction
from ..array import ndarray
from ..dtypes import DType
from .launch_state import launch_state, observed

_ANY_LAYOUT = " of any shape"
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
    plans = [key for key, plan in function.plan_table.entries() if not isinstance(plan, str)]
    when = f"a plan is made at the {CAPTURED_AT}th of equal calls"
    if not plans:
        return f"{name} has no plan yet: {when}"
    rows = min((_differences(what, key) for key in plans), key=len)
    count = f"{len(plans)} plan{'s' if len(plans) > 1 else ''}"
    head = f"{name} has no plan for these arguments ({when}); against the nearest of its {count}:"
    return "\n  ".join((head, *(rows or ["nothing differs but sizes that the plan is not for"])))


def explain_ufunc_miss(name: str, plans: Map, operands: tuple[Any, ...], out: Any) -> str | None:
    """None where a call of a ufunc would run a plan, else why it wouldn't."""
    why = plans.explain(out, *operands)
    return why and f"{name}(): {why}, so that the call has no plan"


def _without_key(why: str, what: Any) -> str:
    if what is None:
        return f"{why}, so that the call has no plan"
    kind = "an array" if isinstance(what, ndarray) else f"an argument of type {type(what).__name__}"
    return f"{kind} {why}, so that the call has no plan"


def _differences(mine: list[Any], theirs: list[Any]) -> list[str]:
    """In words: where the arguments differ from those of a plan."""
    ours, others = _labelled(mine), _labelled(theirs)
    pairs = [(label, ours.get(label, "nothing"), others.get(label, "nothing")) for label in {**ours, **others}]
    return [f"{label}: {x}, there {y}" for label, x, y in pairs if not _fits(x, y)]


def _labelled(described: list[Any]) -> dict[str, str]:
    """What the arguments are, by position or keyword, and how operands alias."""
    found: dict[str, str] = {}
    keyword, position = None, 0
    for x in described:
        if isinstance(x, tuple) and len(x) == 1:
            keyword = x[0]
        elif isinstance(x, tuple) and not isinstance(x[0], DType):
            k, other, distance, same = x
            how = "one array" if same != k else f"one buffer, {distance} bytes apart"
            found[f"operands {other} and {k}"] = how
        else:
            found[f"argument {position}" if keyword is None else keyword] = _shown(x)
            keyword, position = None, position + 1
    return found


def _fits(x: str, y: str) -> bool:
    """Whether two are the same, or differ in sizes that a plan by types leaves open."""
    return x == y or (y.endswith(_ANY_LAYOUT) and x.startswith(y.removesuffix(_ANY_LAYOUT)))


def _shown(x: Any) -> str:
    if not isinstance(x, tuple):
        return repr(x)
    row, key, shape, strides = x
    how = "strided " * bool(key & _STRIDED) + "read-only " * bool(key & _READONLY)
    kind = f"{how}array of {row}, {key >> 8 & 0xFF} axes, on device {key >> 20 & 0xFFF},"
    return f"{kind}{_ANY_LAYOUT}" if shape is None else f"{kind} of shape {shape} and strides {strides}"
