"""Removes what no gradient needs: of the forward pass most loops, stores and values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .. import ir

_EFFECTS = (ir.Store, ir.Evaluate)


def prune(body: tuple[Any, ...]) -> tuple[Any, ...]:
    """The statements that a store or an atomic depends on, by names: what assigns a name that is read is kept."""
    live: set[str] = set()
    while True:
        before = len(live)
        _mark(body, live)
        if len(live) == before:
            return _kept(body, live)


def _names(nodes: Iterable[Any]) -> set[str]:
    return {n.name for n in ir.walk(*nodes) if isinstance(n, ir.Local)}


def _mark(body: tuple[Any, ...], live: set[str]) -> bool:
    """Whether one of the statements is needed; adds the names that these read."""
    found = False
    for s in reversed(body):
        if isinstance(s, _EFFECTS) or (isinstance(s, (ir.Assign, ir.SetElement)) and s.name in live):
            live |= _names(ir.children(s))
            found = True
        elif isinstance(s, ir.If):
            inside = [_mark(s.then, live), _mark(s.orelse, live)]
            if any(inside):
                live |= _names((s.condition,))
                found = True
        elif isinstance(s, (ir.For, ir.While)) and _mark(s.body, live):
            parts: list[Any] = [x for r in s.ranges for x in ir.children(r)] if isinstance(s, ir.For) else [s.condition]
            exits = [x.condition for x in s.body if isinstance(x, ir.If) and _is_exit(x)]
            live |= _names([*parts, *exits])
            found = True
    return found


def _is_exit(s: Any) -> bool:
    return isinstance(s, ir.If) and any(isinstance(x, ir.Break) for x in s.then)


def _kept(body: tuple[Any, ...], live: set[str]) -> tuple[Any, ...]:
    made: list[Any] = []
    for s in body:
        if isinstance(s, _EFFECTS) or (isinstance(s, (ir.Assign, ir.SetElement)) and s.name in live):
            made.append(s)
        elif _is_exit(s):
            made.append(s)  # of a loop that is kept
        elif isinstance(s, ir.If):
            then, orelse = _kept(s.then, live), _kept(s.orelse, live)
            if then or orelse:
                made.append(replace(s, then=then, orelse=orelse))
        elif isinstance(s, (ir.For, ir.While)):
            inner = _kept(s.body, live)
            if not all(map(_is_exit, inner)):
                names = {n.name for n in ir.walk(*inner) if isinstance(n, (ir.Assign, ir.SetElement))}
                s = replace(s, body=inner)
                if isinstance(s, ir.For):
                    s = replace(s, reductions=tuple(x for x in s.reductions if x[0] in names))
                made.append(s)
    return tuple(made)
