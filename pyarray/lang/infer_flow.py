"""Control flow of `infer`: blocks, conditions, loops, returns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeGuard

from ..dtypes import uint64
from .aggregates import is_aggregate, leaves
from .builtins import advice_for
from .collapse_loops import alone
from .infer_assign import Assignments
from .infer_names import advice_for_captured
from .infer_temporaries import has_effect
from .ir import (
    INDEX,
    Assign,
    Atomic,
    Binary,
    Break,
    Builtin,
    Cast,
    Const,
    Continue,
    Evaluate,
    Expr,
    For,
    If,
    Invoke,
    Let,
    Local,
    Pack,
    Range,
    Return,
    ScalarType,
    Size,
    Static,
    Stmt,
    TupleType,
    Type,
    While,
    walk,
)
from .parse import FunctionSource
from .promotion import binary

if TYPE_CHECKING:
    from .infer import Instances

_REDUCING = ("add", "mul", "and", "or", "xor", "min", "max")


class FunctionBody(Assignments):
    """One pass over one function."""

    def __init__(
        self,
        program: Instances,
        source: FunctionSource,
        params: dict[str, Any],
        types: dict[str, Type],
        declared: dict[str, ScalarType],
        groups: dict[str, Any],
        is_kernel: bool,
    ):
        super().__init__(program, source, params, types, declared, groups)
        self.is_kernel = is_kernel
        self.loops = 0  # parallel ones
        self.depth = 0  # of loops around the statement at hand
        self.rebound = source.rebound

    def run(self) -> tuple[Stmt, ...]:
        node = self.source.node
        if isinstance(node, ast.Lambda):
            if self.is_kernel:
                self.source.fail(
                    node, "a lambda returns a value, and a kernel returns nothing", "write def k(v): ..."
                )
            return tuple(self.returned(node.body, self.value(node.body)))
        body = self.block(node.body, top=True)
        if ("return" in self.types or "return" in self.groups) and not always_returns(body):
            advice = "end with a return that gives the value for the other cases"
            self.source.fail(node, f"{self.source.name}() returns a value on some paths only", advice)
        return body

    def block(self, statements: list[ast.stmt], top: bool = False) -> tuple[Stmt, ...]:
        """`top`: the body of the function itself, where the loops of a kernel are parallel."""
        result: list[Stmt] = []
        for statement in statements:
            handler = getattr(self, f"do_{type(statement).__name__}")
            nested = isinstance(statement, (ast.For, ast.If))
            result += handler(statement, top) if nested else handler(statement)
        return tuple(result)

    # ---- simple statements

    def do_Break(self, node: ast.Break) -> list[Stmt]:
        if self.parallel is not None and self.depth == 1:
            what = "'break' can't leave a parallel loop: its iterations run at the same time"
            self.source.fail(node, what, "skip with continue")
        return [Break(self.loc(node))]

    def do_Continue(self, node: ast.Continue) -> list[Stmt]:
        return [Continue(self.loc(node))]

    def do_Pass(self, node: ast.Pass) -> list[Stmt]:
        return []

    def do_Expr(self, node: ast.Expr) -> list[Stmt]:
        if isinstance(node.value, ast.Constant):  # a docstring
            return []
        value = self.value(node.value)
        if not isinstance(value, (Atomic, Invoke, Let)):
            self.source.fail(node, "this statement has no effect")
        return [Evaluate(self.loc(node), value)]

    def do_Return(self, node: ast.Return) -> list[Stmt]:
        if self.is_kernel:
            advice = "store results into an array parameter; skip an iteration with continue"
            self.source.fail(node, "a kernel returns nothing", advice)
        bare = node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
        return self.returned(node, None if bare or node.value is None else self.value(node.value))

    def returned(self, node: ast.AST, value: Any) -> list[Stmt]:
        loc = self.loc(node)
        if value is None:
            return [Return(loc, None)]
        result: list[Stmt] = []
        value = self.unpacked(value, result)
        if getattr(value, "type", value) is None:
            self.source.fail(node, "this call returns nothing that could be returned")
        self.set_group(node, "return", value)
        parts: list[Expr] = []
        for path, part in leaves("return", value):
            if isinstance(part, Static) and is_aggregate(value):
                continue
            part = part if self.is_array(part) else self.number(node, part)
            parts.append(self.coerce(node, part, self.set_type(node, path, part.type)))  # pyright: ignore
        if not is_aggregate(value):
            return [*result, Return(loc, parts[0])]
        if not parts:
            self.source.fail(node, f"{self.describe(value)} without numbers or arrays can't be returned")
        return [*result, Return(loc, Pack(loc, TupleType(tuple(p.type for p in parts)), tuple(parts)))]

    # ---- conditions and while

    def do_If(self, node: ast.If, top: bool) -> list[Stmt]:
        condition = self.truth(node.test, self.value(node.test))
        if isinstance(condition, Const):  # what isn't compiled needn't fit: the way to write variants
            return list(self.block(node.body if condition.value else node.orelse, top))
        entry = set(self.assigned)
        then = self.block(node.body)
        after_then, self.assigned = self.assigned, set(entry)
        orelse = self.block(node.orelse)
        if orelse and _leaves(orelse):
            self.assigned = after_then
        elif not _leaves(then):
            self.assigned &= after_then
        return [If(self.loc(node), condition, then, orelse)]

    def do_While(self, node: ast.While) -> list[Stmt]:
        condition = self.truth(node.test, self.value(node.test))
        return [While(self.loc(node), condition, self.looped(node.body))]

    def looped(self, body: list[ast.stmt]) -> tuple[Stmt, ...]:
        """The body of a loop: what it assigns may be unassigned after it, since it may run zero times."""
        entry = set(self.assigned)
        self.depth += 1
        made = self.block(body)
        self.depth -= 1
        self.assigned = entry
        return made

    # ---- for

    def do_For(self, node: ast.For, top: bool) -> list[Stmt]:
        before: list[Stmt] = []
        stored = {n.id for s in node.body for n in ast.walk(s) if _is_stored(n)}
        ranges, array, unordered = self.iteration(node.iter, before, stored)
        entry = set(self.assigned)
        number = None
        if top and self.is_kernel:
            ranges = tuple(self.held_range(r, before) for r in ranges)
            self.parallel, number = entry | set(self.params), self.loops
            self.loops += 1
        starts: list[Expr | None] = [None] * len(ranges)
        if len(ranges) > 1 and any(r.start is not None for r in ranges):
            ranges = tuple(self.held_range(r, before, bool(r.start)) for r in ranges)
            starts, ranges = [r.start for r in ranges], tuple(map(_from_zero, ranges))
        names, prefix = self.loop_variables(node, len(ranges), array, starts)
        body = (*prefix, *self.looped(node.body))
        self.assigned = entry
        if number is not None:
            self.parallel = None
        if len(ranges) > 1 and _breaks(body):
            what = "'break' in a loop over ndrange is not part of the kernel language"
            self.source.fail(node, what, "write nested for loops")
        reductions = self.reductions(node, body, entry) if unordered else ()
        free = unordered and number is None
        return [*before, For(self.loc(node), names, ranges, body, number, reductions, unordered=free)]

    def loop_variables(
        self, node: ast.For, count: int, array: Expr | None, starts: list[Expr | None]
    ) -> tuple[tuple[str, ...], list[Stmt]]:
        """Names that the loop counts in, and assignments that begin its body.

        A name that is also a variable (it has a value here, or is assigned somewhere) is set from a counter
        of its own, so that assigning it doesn't steer the loop; so is one that begins at one of `starts`.
        """
        if array is not None:
            hidden = self.fresh(INDEX)
            index = Local(self.loc(node.target), INDEX, hidden)
            return (hidden,), self.assign(node.target, self.element(node.target, array, (index,)))
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        if len(targets) != count or not all(isinstance(t, ast.Name) for t in targets):
            advice = "a tuple alone is a shape; of bounds write range(start, stop)" if count > 1 else ""
            self.source.fail(node.target, f"this loop needs {count} name{'s' * (count > 1)}", advice)
        names: list[str] = []
        prefix: list[Stmt] = []
        given = [t.id for t in targets if isinstance(t, ast.Name)]
        for target, start in zip(targets, starts, strict=True):
            assert isinstance(target, ast.Name)
            name, loc = target.id, self.loc(target)
            if start is not None and count > 1:
                counter = Local(loc, INDEX, self.fresh(INDEX))
                names.append(counter.name)
                prefix += self.bind(target, name, binary(loc, "add", start, counter))
            elif name in self.assigned or name in self.rebound or given.count(name) > 1:
                names.append(self.fresh(INDEX))
                prefix += self.bind(target, name, Local(loc, INDEX, names[-1]))
            else:
                self.set_type(target, name, INDEX)
                self.assigned.add(name)
                names.append(name)
        return tuple(names), prefix

    def reductions(
        self, node: ast.For, body: tuple[Stmt, ...], outer: set[str]
    ) -> tuple[tuple[str, str], ...]:
        """Variables of an unordered loop that carry a value from one iteration to the next, with the operator
        that combines them. A body that is another unordered loop has that one's."""
        found: dict[str, str] = {}
        while (inner := alone(body)) is not None:
            body = inner.body
        changed = [n for s in body for n in walk(s) if isinstance(n, Assign) and n.name in outer]
        for statement in changed:
            value = _uncast(statement.value)
            operands: tuple[Expr, ...] = ()
            if isinstance(value, (Binary, Builtin)):
                operands = (value.a, value.b) if isinstance(value, Binary) else value.args
            op = getattr(value, "op", getattr(value, "name", ""))
            own = [n for s in body for n in walk(s) if isinstance(n, Local) and n.name == statement.name]
            first = _uncast(operands[0]) if operands else None
            plain = op in _REDUCING and len(own) == 1 and own[0] is first
            if not plain or statement not in body or statement.name in found:
                what = f"{statement.name!r} is not a plain reduction, so the loop's order matters"
                self.source.fail(node, what, "use range alone")
            found[statement.name] = op
        if any(isinstance(n, (Break, Continue)) for s in body for n in walk(s)):
            self.source.fail(node, "an unordered loop runs all of its iterations", "use range alone")
        return tuple(found.items())

    # ---- what a loop runs over

    def iteration(
        self, node: ast.expr, before: list[Stmt], names: set[str]
    ) -> tuple[tuple[Range, ...], Expr | None, bool]:
        """Ranges of a loop; the array of `for x in v`; whether the order is free. `names` are set in the
        body, and the array is the one from before."""
        if isinstance(node, ast.Call):
            callee = self.value(node.func)
            marked = (
                getattr(callee.value, "__pyarray_builtin__", None) if isinstance(callee, Static) else None
            )
            if marked == "unordered" and len(node.args) == 1:
                ranges, array, _ = self.iteration(node.args[0], before, names)
                if len(ranges) != 1 or ranges[0].step is not None:
                    self.source.fail(node, "an unordered loop runs over range(n) or range(m, n)")
                return ranges, array, True
            if marked == "ndrange":
                return self.nd_ranges(node), None, False
            if isinstance(callee, Static) and callee.value is range:
                return (self.range_of(node, node.args),), None, False
        if not isinstance(node, ast.Call) or (
            isinstance(callee, Static) and hasattr(callee.value, "__pyarray_func__")  # pyright: ignore
        ):
            value = self.value(node)
            if self.is_array(value):
                if value.type.ndim != 1:
                    what = f"a loop over a {value.type} is not part of the kernel language"
                    self.source.fail(node, what, "loop over range(a.shape[0])")
                if not isinstance(value, Local) or value.name.partition(".")[0].partition("[")[0] in names:
                    value = self.held(value, before)
                return (Range(None, Size(self.loc(node), INDEX, value, 0), None),), value, False
        known = isinstance(node, ast.Call) and isinstance(callee, Static)  # pyright: ignore
        advice = advice_for(callee.value) if known else ""  # pyright: ignore
        if not isinstance(node, ast.Call):
            advice = advice_for_captured(value)  # pyright: ignore
        self.source.fail(node, "a loop runs over range(...), pa.ndrange(...) or a 1-D array", advice)

    def held_range(self, reach: Range, into: list[Stmt], always: bool = False) -> Range:
        """The bounds of a loop that reads them in an order of its own: those with an effect come before, in
        Python's."""
        parts = (reach.start, reach.stop, reach.step)
        if not always and not any(x is not None and has_effect(x) for x in parts):
            return reach
        return Range(*(None if x is None else self.held(x, into) for x in parts))

    def range_of(self, node: ast.AST, args: list[ast.expr]) -> Range:
        if len(args) not in (1, 2, 3):
            self.source.fail(node, f"range() takes 1 to 3 arguments, got {len(args)}")
        values: list[Expr] = []
        for k, argument in enumerate(args):
            last = k == len(args) - 1 and all(isinstance(x, Const) for x in values) and len(args) < 3
            values.append(self.bound(argument, self.value(argument), "a range bound", last))
        start, stop = (None, values[0]) if len(values) == 1 else values[:2]
        step = values[2] if len(values) == 3 else None
        if isinstance(step, Const) and step.value == 0:
            self.source.fail(node, "the step of range() must not be 0")
        zero = isinstance(start, Const) and start.value == 0
        one = isinstance(step, Const) and step.value == 1
        return Range(None if zero else start, stop, None if one else step)

    def bound(self, node: ast.AST, value: Any, what: str, last: bool) -> Expr:
        """An integer as a bound of a loop, whose variable is an int64: a uint64 may not fit. That is harmless
        in the last bound of a loop that counts one by one from a constant, which never gets to 2**63."""
        value = self.number(node, value)
        if value.type.dtype is not uint64 or isinstance(value, Const) or last:
            return self.integer(node, value, what, saturating=True)
        self.source.fail(
            node, f"{what} is a uint64, and the loop's variable an int64", "convert it with int(...)"
        )

    def nd_ranges(self, node: ast.Call) -> tuple[Range, ...]:
        values = [self.value(argument) for argument in node.args]
        if len(values) == 1:  # a shape
            values = list(self.items(node, values[0]) or values)
        if not values:
            advice = "write pa.ndrange(a.shape[0], a.shape[1])"
            self.source.fail(node, "ndrange() takes one size per loop variable", advice)
        return tuple(self.nd_range(node, value) for value in values)

    def nd_range(self, node: ast.Call, value: Any) -> Range:
        """Of a size, or of a pair of bounds."""
        pair = self.items(node, value)
        if pair is not None and len(pair) != 2:
            advice = "a shape stands alone; write pa.ndrange(n, m.shape[0], m.shape[1])"
            self.source.fail(
                node, "of several arguments of ndrange() each is a size or (start, stop)", advice
            )
        bounds: list[Expr] = []
        for v in pair or (value,):
            last = (not pair or len(bounds) == 1) and all(isinstance(x, Const) for x in bounds)
            bounds.append(self.bound(node, v, "a size of ndrange", last))
        return Range(bounds[0] if pair else None, bounds[-1], None)


def _from_zero(reach: Range) -> Range:
    """As many iterations, counted from 0."""
    if reach.start is None or reach.stop is None:
        return reach
    return Range(None, binary(reach.stop.loc, "sub", reach.stop, reach.start), None)


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _uncast(expr: Expr) -> Expr:
    while isinstance(expr, Cast):
        expr = expr.a
    return expr


def _leaves(block: tuple[Stmt, ...]) -> bool:
    return bool(block) and isinstance(block[-1], (Return, Break, Continue))


def _breaks(body: tuple[Stmt, ...]) -> bool:
    """Whether a `break` leaves this very loop."""
    return any(
        isinstance(s, Break) or (isinstance(s, If) and (_breaks(s.then) or _breaks(s.orelse))) for s in body
    )


def always_returns(body: tuple[Stmt, ...]) -> bool:
    """Whether no path runs off the end, or returns nothing."""
    if any(isinstance(n, Return) and n.value is None for s in body for n in walk(s)):
        return False
    for s in body:
        if isinstance(s, Return):
            return True
        if isinstance(s, If) and always_returns(s.then) and always_returns(s.orelse):
            return True
        if (
            isinstance(s, While)
            and isinstance(s.condition, Const)
            and s.condition.value
            and not _breaks(s.body)
        ):
            return True
    return False
