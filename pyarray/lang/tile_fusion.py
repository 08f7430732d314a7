"""Joins the loops that set a tile with those of a reduction of it, for CPUs: an element is in a register when it is
reduced, and an array is read while numbers are added.

A tile's elements are set by a nest of loops over its axes, and a reduction of the last axis is one that begins with the
same loops. Where nothing stands between them, the element is set in the loop of the reduction. Each element and each
sum is computed as before, in the same order, with the same bits.

Functions of libraries have other last bits in vectors, and which elements are vectors depends on the loop, and on the
tests that stand in it. So loops with such functions are joined only where no array is read; then in debug mode, too,
which keeps others apart, so that failures come in Python's order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from . import ir
from .builtins import FUNCTIONS
from .summaries import has_any, names_in
from .tile_nests import axes_of, is_reduction, nest_of, run_names

MOST_COST = 6  # of a function that is one instruction or a few, whatever loop it stands in


def joined(statements: Iterable[Any], debug: bool) -> list[Any]:
    """Statements that stand one behind the other."""
    result = list[Any]()
    for s in statements:
        both = _both(result[-1], s, debug) if result else None
        result[-1:] = [both] if both is not None else [*result[-1:], s]
    return result


def _both(first: Any, second: Any, debug: bool) -> ir.For | None:
    """Two statements as one loop; None where they aren't such loops, or are to stay apart."""
    if not all(isinstance(s, ir.For) and s.capacity for s in (first, second)):
        return None
    (setting, (store, *others)), (kept, body) = nest_of(first), nest_of(second)
    if others or not isinstance(store, ir.SetElement) or not is_reduction(body) or kept[-1].reductions:
        return None
    begin, along, result = body
    loops = [*kept, along]
    if axes_of(loops) != axes_of(setting) or has_any((first, second), ir.Atomic, ir.Invoke, ir.Let, ir.Store):
        return None
    own = tuple(name for name, _ in axes_of(loops))
    if run_names(store.index) != own or not _is_at_hand(store, own, begin, along, result):
        return None
    if has_any((first, second), ir.Load) and (debug or not _is_exact(store)):
        return None
    whole: Any = (begin, replace(along, body=(store, *along.body)), result)
    for loop in reversed(kept):
        whole = (replace(loop, body=whole),)
    return whole[0]


def _is_at_hand(store: ir.SetElement, own: tuple[str, ...], begin: Any, along: ir.For, result: Any) -> bool:
    """Whether a reduction uses each element of a tile where it is set, and sets nothing that elements are computed
    of."""
    elements = [n for n in ir.walk(along) if isinstance(n, ir.Element) and getattr(n.array, "name", "") == store.name]
    if any(run_names(n.index) != own for n in elements) or store.name in names_in(begin, result):
        return False
    later = {n.name for n in ir.walk(begin, along, result) if isinstance(n, (ir.SetElement, ir.Assign))}
    return not later & names_in(store.value)


def _is_exact(store: ir.SetElement) -> bool:
    """Whether each loop that has this is compiled to the same values. Elements of bytes are added by more sums side by
    side."""
    for n in ir.walk(store):
        if isinstance(n, ir.Builtin):
            own = FUNCTIONS.get(n.name)
            if own is None or own.cost > MOST_COST or n.domain.kind == "c" or n.name.startswith("approx"):
                return False
        elif (isinstance(n, ir.Load) and n.type.dtype.itemsize == 1) or (isinstance(n, ir.Binary) and n.op == "pow"):
            return False
    return True
