"""Exits of loops: `else`, which runs where no `break` left the loop, and `return` in the kernel's own statements, as
flags that the statements behind them test.

Parallel loops have neither: their iterations run at the same time."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from . import ir
from .promotion import constant, unary
from .summaries import has_any


@dataclass
class Loop:
    """A loop during inference. `flag` is the variable that says that `break` left it, where something asks.
    `at_breaks`: names that have a value there."""

    flag: str | None = None
    at_breaks: list[set[str]] = field(default_factory=list)


def has_break(body: Iterable[ast.stmt]) -> bool:
    """Whether a `break` in the text of a loop's body leaves this loop; one in the `else` of an inner loop does."""
    for s in body:
        inner: list[Any] = [s] if isinstance(s, ast.Break) else []
        if isinstance(s, (ast.For, ast.While)):
            inner = s.orelse
        elif isinstance(s, ast.If):
            inner = [*s.body, *s.orelse]
        elif isinstance(s, ast.Match):
            inner = [x for case in s.cases for x in case.body]
        if inner and (inner[0] is s or has_break(inner)):
            return True
    return False


def set_flag(loc: ir.Loc, flag: str, value: bool) -> ir.Assign:
    return ir.Assign(loc, flag, ir.Const(loc, ir.BOOL, value))


def unless(loc: ir.Loc, flag: str, body: tuple[ir.Stmt, ...]) -> ir.If:
    return ir.If(loc, unary(loc, "invert", ir.Local(loc, ir.BOOL, flag)), body, ())


def has_return(*nodes: Any) -> bool:
    return has_any(nodes, ir.Return)


def unless_returned(bound: Any) -> Any:
    """A loop's bound as it was before `ReturnLowering` made it one of an empty range behind a return."""
    if not isinstance(bound, ir.Select) or not isinstance(bound.condition, ir.Local):
        return bound
    return bound.b if isinstance(bound.a, ir.Const) and bound.condition.name.startswith(".") else bound


class ReturnLowering:
    """Rewrites a kernel's body: a return sets the flag and leaves the loops around it. What follows runs unless
    the flag is set; a parallel loop is then empty, and reads none of its bounds."""

    def __init__(self, flag: str):
        self.flag = flag

    def kernel(self, loc: ir.Loc, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        result: list[ir.Stmt] = [set_flag(loc, self.flag, False)]
        may_have_returned = False
        for s in body:
            if isinstance(s, ir.For) and s.loop is not None:
                result.append(replace(s, ranges=tuple(map(self.range, s.ranges))) if may_have_returned else s)
                continue
            lowered = self.block((s,)) if has_return(s) else (s,)
            result += [unless(s.loc, self.flag, lowered)] if may_have_returned else lowered
            may_have_returned |= has_return(s)
        return tuple(result)

    def range(self, range_: ir.Range) -> ir.Range:
        def bound(x: ir.Expr | None, otherwise: int) -> ir.Expr | None:
            if x is None:
                return None
            flag = ir.Local(x.loc, ir.BOOL, self.flag)
            return ir.Select(x.loc, x.type, flag, replace(constant(x.loc, otherwise), type=x.type), x)

        step = range_.step if isinstance(range_.step, ir.Const) else bound(range_.step, 1)
        return ir.Range(bound(range_.start, 0), bound(range_.stop, 0), step)

    def block(self, body: tuple[ir.Stmt, ...], looped: bool = False) -> tuple[ir.Stmt, ...]:
        """Statements of which one returns."""
        for k, s in enumerate(body):
            if isinstance(s, ir.Return):
                leave = (ir.Break(s.loc),) if looped else ()
                return (*body[:k], set_flag(s.loc, self.flag, True), *leave)
            if not has_return(s):
                continue
            rest = body[k + 1 :]
            rest = self.block(rest, looped) if has_return(*rest) else rest
            if isinstance(s, ir.If):
                then, orelse = (self.block(x, looped) if has_return(*x) else x for x in (s.then, s.orelse))
                s = replace(s, then=then, orelse=orelse)
                # in a loop the return has left it
                behind = rest if looped else (unless(s.loc, self.flag, rest),) if rest else ()
                return (*body[:k], s, *behind)
            assert isinstance(s, (ir.For, ir.While))
            s = replace(s, body=self.block(s.body, True))
            flag = ir.Local(s.loc, ir.BOOL, self.flag)
            if looped:
                return (*body[:k], s, ir.If(s.loc, flag, (ir.Break(s.loc),), ()), *rest)
            return (*body[:k], s, *((unless(s.loc, self.flag, rest),) if rest else ()))
        return body
