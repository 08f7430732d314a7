"""Loop collapse: directly nested unordered loops as one loop over the product of their ranges."""

from __future__ import annotations

from . import ir
from .summaries import assigned_in


def loop_nest(loop: ir.For) -> tuple[ir.For, ...]:
    """An unordered loop and those in it, outermost first, down to the first body that is more."""
    nest = [loop]
    while loop.unordered and (inner := sole_inner_loop(nest[-1].body)) is not None:
        nest.append(inner)
    return tuple(nest)


def sole_inner_loop(body: tuple[ir.Stmt, ...]) -> ir.For | None:
    """The unordered loop that a body consists of."""
    return body[0] if len(body) == 1 and isinstance(body[0], ir.For) and body[0].unordered else None


def is_collapsible(loops: tuple[ir.For, ...]) -> bool:
    """Whether the bounds of all loops of a nest are the same throughout."""
    changing = {v for s in loops for v in s.variables} | assigned_in(*loops[-1].body)
    bounds = [x for s in loops for r in s.ranges for x in (r.start, r.stop) if x is not None]
    nodes = list(ir.walk(*bounds))
    names = {n.name for n in nodes if isinstance(n, ir.Local)}
    return not names & changing and not any(isinstance(n, (ir.Load, ir.Invoke)) for n in nodes)
