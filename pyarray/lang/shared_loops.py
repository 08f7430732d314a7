"""The loops of an iteration that a team of a GPU's threads shares out."""

from __future__ import annotations

from . import ir
from .summaries import has_any


def has_side_effects(function: ir.Function) -> bool:
    """Whether it stores, or calls a function that may."""
    return has_any(function.body, ir.Store, ir.Atomic, ir.Invoke)


def shared_loops(parts: tuple[ir.Stmt, ...], pure: set[str]) -> list[ir.For]:
    """The innermost unordered loops that do something. `pure` functions change nothing."""
    innermost: list[ir.For] = []
    for part in parts:
        for n in ir.walk(part) if has_any((part,), ir.For) else ():
            if isinstance(n, ir.For) and n.unordered and (n.reductions or does_something(n.body, pure)):
                innermost += [] if shared_loops(n.body, pure) else [n]
    return innermost


def runs_by_teams(loop: ir.For, pure: set[str]) -> bool:
    """Whether a team can share each iteration: there is something to share, and outside of that there are no
    atomics and no functions that store."""
    shared_loop = shared_loops(loop.body, pure)
    inside = sum(_side_effect_count(n.body, pure) for n in shared_loop)
    return bool(shared_loop) and inside == _side_effect_count(loop.body, pure)


def does_something(body: tuple[ir.Stmt, ...], pure: set[str]) -> bool:
    """Whether it stores, or calls a function that may."""
    return _side_effect_count(body, pure) > 0 or has_any(body, ir.Store)


def _side_effect_count(body: tuple[ir.Stmt, ...], pure: set[str]) -> int:
    """How many effects there are other than stores."""
    nodes = ir.walk(*body) if has_any(body, ir.Atomic, ir.Invoke) else ()
    return sum(isinstance(n, ir.Atomic) or (isinstance(n, ir.Invoke) and n.function not in pure) for n in nodes)
