"""`break`, `continue` and `return` as flags, for a body that is run again from its values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import ir
from ..loop_exits import set_flag, unless


def has_exit(body: tuple[Any, ...]) -> bool:
    """Whether a `break` or `continue` of this loop stands in its body."""
    return any(
        isinstance(s, (ir.Break, ir.Continue)) or (isinstance(s, ir.If) and (has_exit(s.then) or has_exit(s.orelse)))
        for s in body
    )


def lower_exits(body: tuple[Any, ...], skip: str, left: str) -> tuple[Any, ...]:
    """The body of a loop with flags: what follows a `continue` runs unless `skip`, and `break` sets `left`, too."""
    for k, s in enumerate(body):
        if isinstance(s, ir.Continue):
            return (*body[:k], set_flag(s.loc, skip, True))
        if isinstance(s, ir.Break):
            return (*body[:k], set_flag(s.loc, skip, True), set_flag(s.loc, left, True))
        if isinstance(s, ir.If) and has_exit((s,)):
            made = replace(s, then=lower_exits(s.then, skip, left), orelse=lower_exits(s.orelse, skip, left))
            rest = lower_exits(body[k + 1 :], skip, left)
            return (*body[:k], made, *((unless(s.loc, skip, rest),) if rest else ()))
    return body


def expand_returns(body: tuple[Any, ...], result: str) -> tuple[Any, ...]:
    """The body of a function in which a return assigns its value to `result` first."""
    made: list[Any] = []
    for s in body:
        if isinstance(s, ir.Return):
            made += [] if s.value is None else [ir.Assign(s.loc, result, s.value)]
            made.append(ir.Return(s.loc, None))
        elif isinstance(s, ir.If):
            then, orelse = expand_returns(s.then, result), expand_returns(s.orelse, result)
            made.append(replace(s, then=then, orelse=orelse))
        elif isinstance(s, (ir.For, ir.While)):
            made.append(replace(s, body=expand_returns(s.body, result)))
        else:
            made.append(s)
    return tuple(made)
