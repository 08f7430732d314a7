"""Infers the reductions of parallel loops: what `parallel_reductions` finds, or the error of what is none."""

from __future__ import annotations

from dataclasses import replace

from . import ir
from .infer_assign import refuse_assigned
from .infer_scope import Scope
from .infer_temporaries import new_temporary
from .parallel_reductions import Element, around, find_reductions, reduced_elements
from .promotion import compare, constant


def reducing_loop(scope: Scope, loop: ir.For) -> list[ir.Stmt]:
    """The parallel loop with its reductions, and the statements around it that those into elements need."""

    def new_name(kind: ir.ScalarType) -> str:
        return new_temporary(scope, kind)

    body, elements = loop.body, list[Element]()
    if _has_constant_steps(loop):
        body, elements = reduced_elements(loop.body, loop.variables, new_name)
    names = {*scope.reduced, *(e.name for e in elements)}
    if not names:
        return [loop]
    found = find_reductions(body, names)
    if isinstance(found, str):
        if found not in scope.reduced:
            return [loop]  # `races` says what is wrong
        refuse_assigned(scope, scope.reduced[found], found)
    if not _has_constant_steps(loop):
        what = "the step of a parallel loop that reduces is a constant"
        scope.fail(loop.loc, what, "write range(n), and compute the number from its variable")
    made = replace(loop, body=body, reductions=found.entries())
    if not elements:
        return [made]
    before, after = around(made, elements, _runs(loop))
    return [*before, made, *after]


def _has_constant_steps(loop: ir.For) -> bool:
    return all(r.step is None or isinstance(r.step, ir.Const) for r in loop.ranges)


def _runs(loop: ir.For) -> ir.Expr:
    """Whether a loop has an iteration."""
    loc, result = loop.loc, None
    for r in loop.ranges:
        start, stop = constant(loc, 0) if r.start is None else r.start, r.stop
        assert stop is not None
        down = isinstance(r.step, ir.Const) and r.step.value < 0
        runs = compare(loc, "gt" if down else "lt", start, stop)
        result = runs if result is None else ir.Logic(loc, ir.BOOL, "and", result, runs)
    assert result is not None
    return result
