"""Infers loops: what they run over, their variables, `else`."""

from __future__ import annotations

import ast
from typing import Any

from ..dtypes import uint64
from ..errors import with_article
from . import ir
from .aggregates import is_records
from .builtins import advice_for
from .infer_aggregates import unpack
from .infer_array_functions import unrolled, unrolled_values
from .infer_assign import assign, assign_name
from .infer_conditions import infer_condition
from .infer_flow import ends_in_jump, infer_block, leaves_by_break
from .infer_records import record_sequence
from .infer_reductions import reducing_loop, reductions_of
from .infer_scope import Scope, rule
from .infer_sequences import Sequence, array_sequence, range_sequence, sequence_of
from .infer_temporaries import assign_temporary, has_side_effect, new_temporary
from .infer_tile_loops import tile_loop
from .infer_values import Method, advice_for_captured, is_array, is_local_array
from .loop_exits import Loop, has_break, has_return, set_flag, unless
from .promotion import binary
from .tile_values import is_tile


@rule(ast.While)
def _while(scope: Scope, node: ast.While) -> list[ir.Stmt]:
    pending = len(scope.pending)
    condition = infer_condition(scope, node.test)
    scope.refuse_pending(node.test, pending)
    scope.assigned = condition.when_true
    loop = _enter_loop(scope, node)
    body = _infer_loop_body(scope, node.body)
    scope.assigned = condition.when_false
    endless = isinstance(condition.value, ir.Const) and bool(condition.value.value)
    return _leave_loop(scope, node, loop, [ir.While(scope.loc(node), condition.value, body)], endless)


def _infer_loop_body(scope: Scope, body: list[ast.stmt]) -> tuple[ir.Stmt, ...]:
    """What the body assigns may be unassigned after the loop, which may run zero times."""
    entry = set(scope.assigned)
    scope.loop_depth += 1
    result = infer_block(scope, body)
    scope.loop_depth -= 1
    scope.assigned = entry
    return result


def _enter_loop(scope: Scope, node: ast.For | ast.While) -> Loop:
    flagged = bool(node.orelse) and has_break(node.body)
    scope.loops.append(Loop(new_temporary(scope, ir.BOOL) if flagged else None))
    loop: Loop = scope.loops[-1]
    return loop


def _leave_loop(
    scope: Scope, node: ast.For | ast.While, loop: Loop, statements: list[ir.Stmt], endless: bool = False
) -> list[ir.Stmt]:
    """The loop with its `else`. Behind it those names have a value that have one at each `break`, and where the loop
    ends by itself, unless it is `endless`."""
    scope.loops.pop()
    orelse = infer_block(scope, node.orelse)
    ends = [] if endless or ends_in_jump(orelse) else [scope.assigned]
    if loop.at_breaks:
        scope.assigned = set.intersection(*loop.at_breaks, *ends)
    if loop.flag is None or not loop.at_breaks:
        return [*statements, *orelse]
    loc = scope.loc(node)
    return [set_flag(loc, loop.flag, False), *statements, unless(loc, loop.flag, orelse)]


# ---- for


@rule(ast.For)
def _for(scope: Scope, node: ast.For) -> list[ir.Stmt]:
    if (values := unrolled_values(scope, node)) is not None:
        return unrolled(scope, node, values, infer_block)
    before: list[ir.Stmt] = []
    stored = set[str]().union(*(scope.source.stored_in(s) for s in (node.target, node.iter, *node.body)))
    tiles = tile_loop(scope, node, before)
    if tiles is not None:
        ranges, sequence, unordered = tiles.ranges, None, False
    else:
        ranges, sequence, unordered = _iteration_space(scope, node.iter, before, stored)
    entry = set(scope.assigned)
    parallel = scope.is_kernel and not scope.loop_depth and not scope.branch_depth
    number = scope.parallel_loops if parallel else None
    effects = any(x is not None and has_side_effect(x) for r in ranges for x in (r.start, r.stop, r.step))
    if effects and (parallel or len(ranges) > 1):  # a loop evaluates its bounds in another order than Python
        ranges = tuple(_assign_bounds(scope, r, before) for r in ranges)
    if parallel:
        scope.before_parallel, scope.reduced = entry | set(scope.params), {}
        scope.parallel_loops += 1
    starts: list[ir.Expr | None] = [None] * len(ranges)
    if len(ranges) > 1 and any(r.start is not None for r in ranges):
        ranges = tuple(_assign_bounds(scope, r, before) if r.start else r for r in ranges)
        starts, ranges = [r.start for r in ranges], tuple(map(_from_zero, ranges))
    loop = _enter_loop(scope, node)
    if tiles is not None:
        names, prefix = tiles.variables(scope, node)
    else:
        names, prefix = _loop_variables(scope, node, len(ranges), sequence, starts)
    body = (*prefix, *_infer_loop_body(scope, node.body))
    scope.assigned = entry
    if parallel:
        scope.before_parallel = None
    if len(ranges) > 1 and (leaves_by_break(body) or (scope.is_kernel and has_return(*body))):
        what = f"{'break' if leaves_by_break(body) else 'return'!r} in a loop over ndrange"
        scope.fail(node, f"{what} is not part of the kernel language", "write nested for loops")
    if parallel:
        made = reducing_loop(scope, ir.For(scope.loc(node), names, ranges, body, number))
    else:
        reductions = reductions_of(scope, node, body, entry) if unordered else ()
        made = [ir.For(scope.loc(node), names, ranges, body, number, reductions, unordered=unordered)]
    return _leave_loop(scope, node, loop, [*before, *made])


def _loop_variables(
    scope: Scope, node: ast.For, count: int, sequence: Sequence | None, starts: list[ir.Expr | None]
) -> tuple[tuple[str, ...], list[ir.Stmt]]:
    """Loop counters, and the assignments that begin the body.

    A name that is also a variable (it has a value here, or is assigned somewhere) is assigned from a temporary
    counter, so that assigning it doesn't change the loop; so is one that begins at one of `starts`.
    """
    if sequence is not None:
        return _sequence_variables(scope, node, sequence)
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if len(targets) != count or not all(isinstance(t, ast.Name) for t in targets):
        advice = "a tuple alone is a shape; of bounds write range(start, stop)" if count > 1 else ""
        scope.fail(node.target, f"this loop needs {count} name{'s' * (count > 1)}", advice)
    names: list[str] = []
    prefix: list[ir.Stmt] = []
    for target, start in zip(targets, starts, strict=True):
        assert isinstance(target, ast.Name)
        name, loc = target.id, scope.loc(target)
        if start is not None and count > 1:
            names.append(new_temporary(scope, ir.INDEX))
            counter = ir.Local(loc, ir.INDEX, names[-1])
            prefix += assign_name(scope, target, name, binary(loc, "add", start, counter))
        elif not _is_counter(scope, target, targets):
            names.append(new_temporary(scope, ir.INDEX))
            prefix += assign_name(scope, target, name, ir.Local(loc, ir.INDEX, names[-1]))
        else:
            scope.set_type(target, name, ir.INDEX)
            scope.assigned.add(name)
            names.append(name)
    return tuple(names), prefix


def _is_counter(scope: Scope, target: ast.Name, targets: list[ast.expr]) -> bool:
    """Whether the variable may be the loop's own counter: nothing else gives it a value."""
    twice = sum(isinstance(t, ast.Name) and t.id == target.id for t in targets) > 1
    return target.id not in scope.assigned and target.id not in scope.source.rebound and not twice


def _sequence_variables(scope: Scope, node: ast.For, sequence: Sequence) -> tuple[tuple[str, ...], list[ir.Stmt]]:
    """The counter of the items. Of `for i, x in enumerate(v)` it is `i`, where that may be."""
    target, loc = node.target, scope.loc(node.target)
    targets = list(target.elts) if isinstance(target, ast.Tuple) else []
    first = targets[0] if sequence.is_numbered and len(targets) == 2 else None
    plain = not isinstance(targets[1], ast.Name) or targets[1].id != getattr(first, "id", "") if first else False
    if isinstance(first, ast.Name) and plain and _is_counter(scope, first, targets):
        scope.set_type(first, first.id, ir.INDEX)
        scope.assigned.add(first.id)
        item = sequence.item(ir.Local(loc, ir.INDEX, first.id))
        return (first.id,), assign(scope, targets[1], item[1])
    index = ir.Local(loc, ir.INDEX, new_temporary(scope, ir.INDEX))
    return (index.name,), assign(scope, target, sequence.item(index))


# ---- iteration spaces


def _iteration_space(
    scope: Scope, node: ast.expr, before: list[ir.Stmt], names: set[str]
) -> tuple[tuple[ir.Range, ...], Sequence | None, bool]:
    """Ranges of a loop; the items of a loop over something else than ranges; whether the loop is unordered. The loop
    assigns `names`; the items are those of arrays and ranges from before the loop."""
    callee = scope.infer(node.func) if isinstance(node, ast.Call) else None
    function = callee.value if isinstance(callee, ir.Static) else None
    if isinstance(node, ast.Call):
        marker = getattr(function, "__pyarray_builtin__", None)
        if marker == "unordered" and len(node.args) == 1:
            ranges, sequence, _ = _iteration_space(scope, node.args[0], before, names)
            if len(ranges) != 1 or ranges[0].step is not None:
                scope.fail(node, "an unordered loop runs over range(n) or range(m, n)")
            return ranges, sequence, True
        if marker == "ndrange":
            return _nd_ranges(scope, node), None, False
        if function is range:
            return (_range_of(scope, node, node.args),), None, False
    sequence = _sequence(scope, node, before, names, function)
    return (ir.Range(None, sequence.length, None),), sequence, False


def _sequence(scope: Scope, node: ast.expr, before: list[ir.Stmt], names: set[str], function: Any) -> Sequence:
    """What a loop runs over, or one of the arguments of `zip` and the like."""

    def inner(argument: ast.expr) -> Sequence:
        callee = scope.infer(argument.func) if isinstance(argument, ast.Call) else None
        return _sequence(scope, argument, before, names, callee.value if isinstance(callee, ir.Static) else None)

    if isinstance(node, ast.Call):
        if function is range:
            return range_sequence(scope, node, _range_of(scope, node, node.args), before, names)
        sequence = sequence_of(scope, node, function, inner)
        if sequence is not None:
            return sequence
    value = None
    of_arrays = isinstance(function, Method) or (getattr(function, "__module__", "") or "").startswith(
        ("pyarray", "numpy")
    )
    own = function is None or hasattr(function, "__pyarray_func__")  # None: defined in the kernel
    if not isinstance(node, ast.Call) or own or of_arrays:
        value = scope.infer(node)
        if is_records(value):
            return record_sequence(scope, node, value, before, names)
        if is_array(value) or is_local_array(value):
            if value.type.ndim != 1 and is_array(value):
                what = f"a loop over {with_article(value.type)} is not part of the kernel language"
                scope.fail(node, what, "loop over range(a.shape[0])")
            return array_sequence(scope, node, value, before, names)
    advice = advice_for(function) if isinstance(node, ast.Call) else advice_for_captured(value)
    if is_tile(value):
        advice = "loop over the numbers of a tile index by range(i.start, i.stop); tiles are computed as a whole"
    what = "a loop runs over range(...), pa.ndrange(...), a 1-D array, or enumerate, zip or reversed of such"
    scope.fail(node, what, advice)


def _assign_bounds(scope: Scope, range_: ir.Range, into: list[ir.Stmt]) -> ir.Range:
    """Loop bounds as temporaries."""
    parts = (range_.start, range_.stop, range_.step)
    return ir.Range(*(None if x is None else assign_temporary(scope, x, into) for x in parts))


def _range_of(scope: Scope, node: ast.AST, args: list[ast.expr]) -> ir.Range:
    if len(args) not in (1, 2, 3):
        scope.fail(node, f"range() takes 1 to 3 arguments, got {len(args)}")
    values: list[ir.Expr] = []
    for k, argument in enumerate(args):
        last = k == len(args) - 1 and all(isinstance(x, ir.Const) for x in values) and len(args) < 3
        values.append(_loop_bound(scope, argument, scope.infer(argument), "a range bound", last))
    start, stop = (None, values[0]) if len(values) == 1 else values[:2]
    step = values[2] if len(values) == 3 else None
    if isinstance(step, ir.Const) and step.value == 0:
        scope.fail(node, "the step of range() must not be 0")
    zero = isinstance(start, ir.Const) and start.value == 0
    one = isinstance(step, ir.Const) and step.value == 1
    return ir.Range(None if zero else start, stop, None if one else step)


def _loop_bound(scope: Scope, node: ast.AST, value: Any, what: str, last: bool) -> ir.Expr:
    """An integer as the bound of a loop, whose counter is an int64: a uint64 may not fit. That is harmless in the
    last bound of a loop with step 1 from a constant, which never reaches 2**63."""
    value = scope.number(node, value)
    if value.type.dtype is not uint64 or isinstance(value, ir.Const) or last:
        return scope.integer(node, value, what, saturating=True)
    scope.fail(node, f"{what} is a uint64, and the loop's variable an int64", "convert it with int(...)")


def _nd_ranges(scope: Scope, node: ast.Call) -> tuple[ir.Range, ...]:
    values = [scope.infer(argument) for argument in node.args]
    if len(values) == 1:  # a shape
        values = list(unpack(scope, node, values[0]) or values)
    if not values:
        scope.fail(node, "ndrange() takes one size per loop variable", "write pa.ndrange(a.shape[0], a.shape[1])")
    return tuple(_nd_range(scope, node, value) for value in values)


def _nd_range(scope: Scope, node: ast.Call, value: Any) -> ir.Range:
    """The range of a size, or of a pair of bounds."""
    pair = unpack(scope, node, value)
    if pair is not None and len(pair) != 2:
        advice = "a shape stands alone; write pa.ndrange(n, m.shape[0], m.shape[1])"
        scope.fail(node, "of several arguments of ndrange() each is a size or (start, stop)", advice)
    bounds: list[ir.Expr] = []
    for v in pair or (value,):
        last = (not pair or len(bounds) == 1) and all(isinstance(x, ir.Const) for x in bounds)
        bounds.append(_loop_bound(scope, node, v, "a size of ndrange", last))
    return ir.Range(bounds[0] if pair else None, bounds[-1], None)


def _from_zero(range_: ir.Range) -> ir.Range:
    """A range of the same length from 0."""
    if range_.start is None or range_.stop is None:
        return range_
    return ir.Range(None, binary(range_.stop.loc, "sub", range_.stop, range_.start), None)
