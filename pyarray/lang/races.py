"""Race detection: refuses stores that several iterations of a parallel loop certainly make to one element.

Of such updates some get lost; of other values it is chance which one stays. A store is refused if a variable
of the loop doesn't enter its index, directly or through variables, views and functions.

Allowed are stores of one and the same value, those that a condition leaves to one iteration (`if i == k`),
those of any value where a condition depends on the iteration, and indices that come from atomics, or from
memory that the loop writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from . import ir
from .builtins import ATOMICS
from .directions import bases_of, result_bases, view_bases
from .loop_exits import unless_returned
from .parse import FunctionSource
from .promotion import NEGATED_COMPARISON, SWAPPED_COMPARISON
from .summaries import assigned_in, called_in, has_any, names_in

Names = frozenset[str]
NONE: Names = frozenset()
ANY = "*"  # all variables of the loop: of values from atomics, and of what other iterations may have written


@dataclass(frozen=True, slots=True)
class Dependence:
    """What a value depends on: `deps` are variables of the loop, of which it `determines` some. `shared` are arrays
    from which it loaded an element that several iterations read. Of an array: `bases` are the parameters that it
    may be a view of, `extent_deps` the variables that its extents depend on."""

    deps: Names = NONE
    determines: Names = NONE
    shared: Names = NONE
    bases: Names = NONE
    extent_deps: Names = NONE

    def join(self, *others: Dependence) -> Dependence:
        """The dependence of a value computed from all of them."""
        deps, shared, bases, extent = self.deps, self.shared, self.bases, self.extent_deps
        for o in others:
            deps, shared = deps | o.deps, shared | o.shared
            bases, extent = bases | o.bases, extent | o.extent_deps
        return Dependence(deps, NONE, shared, bases, extent)

    def controlled_by(self, control: Dependence) -> Dependence:
        """The same for a value that a condition selects."""
        return replace(self, deps=self.deps | control.deps, shared=self.shared | control.shared)


@dataclass(frozen=True, slots=True)
class Context:
    """What decides whether a statement runs, and the loop variables of which that leaves a single value."""

    control: Dependence = Dependence()
    fixed: Names = NONE

    def narrowed(self, condition: Dependence, fixed: Names = NONE) -> Context:
        return Context(self.control.join(condition), self.fixed | fixed)


def refuse_races(tree: ir.Tree, sources: Mapping[str, FunctionSource]) -> None:
    """Raises `CompileError` for a store that is a race for sure."""
    storing = {f.symbol for f in tree.functions if has_any(f.body, ir.Store)}
    for f in tree.functions:  # callees first
        if called_in(*f.body) & storing:
            storing.add(f.symbol)
    for loop in tree.kernel.body:
        if isinstance(loop, ir.For) and loop.loop is not None and not _is_trivially_safe(loop, storing):
            RaceCheck(tree, tree.kernel, sources, loop).check()


def _varying_variables(loop: ir.For) -> Names:
    """The variables of a loop that take several values."""
    pairs = zip(loop.variables, loop.ranges, strict=True)
    return frozenset(name for name, range_ in pairs if not _is_single(range_))


def _zero_based(loop: ir.For) -> dict[str, int]:
    """The variables whose least value is 0, and how far apart their values are."""
    steps = {}
    for name, range_ in zip(loop.variables, loop.ranges, strict=True):
        start = 0 if range_.start is None else getattr(unless_returned(range_.start), "value", None)
        step = 1 if range_.step is None else getattr(unless_returned(range_.step), "value", 0)
        if start == 0 and step > 0:
            steps[name] = step
    return steps


def _is_single(range_: ir.Range) -> bool:
    start = 0 if range_.start is None else getattr(unless_returned(range_.start), "value", None)
    stop = getattr(unless_returned(range_.stop), "value", None)
    return range_.step is None and start is not None and stop is not None and stop - start <= 1


def _is_trivially_safe(loop: ir.For, storing: set[str]) -> bool:
    """Whether the index of each store has all of the loop's variables: a quick test."""
    varying = _varying_variables(loop)
    if called_in(*loop.body) & storing:
        return False
    return all(varying <= names_in(*s.index) for s in ir.walk(*loop.body) if isinstance(s, ir.Store))


class RaceCheck:
    """The analysis of one loop of `function`, whose iterations run at the same time. It makes two passes, since
    only the first finds out what the loop writes; inner loops are repeated until nothing changes."""

    def __init__(self, tree: ir.Tree, function: ir.Function, sources: Mapping[str, FunctionSource], loop: ir.For):
        self.functions, self.sources, self.loop = {f.symbol: f for f in tree.functions}, sources, loop
        self.varying = _varying_variables(loop)
        self.zero_based = _zero_based(loop)
        self.symbol = function.symbol
        self.written: set[str] = set()
        self.checking = False
        self.exits = Dependence()  # what decides whether an inner loop or a function is left
        self.returned: list[Dependence] = []
        self.call_results: dict[Any, Dependence] = {}
        results = result_bases(tree)
        bases = view_bases(function, results)
        self.env: dict[str, Dependence] = {
            name: Dependence(bases=bases_of(ir.Local(loop.loc, kind, name), bases, results))
            for name, kind in (*function.params, *function.variables)
            if isinstance(kind, ir.ArrayType)
        }

    def check(self) -> None:
        if not self.varying:
            return
        for name in self.loop.variables:
            self.env[name] = Dependence(frozenset((name,)), frozenset((name,)))
        before = dict(self.env)
        for checking in (False, True):
            self.env, self.checking, self.call_results = dict(before), checking, {}
            self.block(self.loop.body, Context())

    # ---- statements

    def block(self, statements: tuple[ir.Stmt, ...], context: Context) -> bool:
        """Whether all paths leave it."""
        for s in statements:
            if isinstance(s, (ir.Break, ir.Continue)):
                self.exits = self.exits.join(context.control)
                return True
            if isinstance(s, ir.Return):
                self.exits = self.exits.join(context.control)
                if s.value is not None:
                    self.returned.append(self.value(s.value, context).controlled_by(context.control))
                return True
            if isinstance(s, ir.If):
                leaves, context = self.branches(s, context)
                if leaves:
                    return True
            elif isinstance(s, (ir.For, ir.While)):
                context = self.inner(s, context)
            elif isinstance(s, ir.Assign):
                self.env[s.name] = self.value(s.value, context)
            elif isinstance(s, ir.Store):
                self.store(s, context)
            elif isinstance(s, ir.SetElement):
                parts = (self.value(x, context) for x in (s.value, *s.index))
                self.env[s.name] = self.env.get(s.name, Dependence()).join(*parts)
            elif isinstance(s, ir.Evaluate):
                self.value(s.value, context)
        return False

    def branches(self, s: ir.If, context: Context) -> tuple[bool, Context]:
        condition = self.value(s.condition, context)
        before, exits = dict(self.env), self.exits
        fixed_by = [self.fixed_by(s.condition, truth, context) for truth in (True, False)]
        then_leaves = self.block(s.then, context.narrowed(condition, fixed_by[0]))
        after, self.env = self.env, before
        else_leaves = self.block(s.orelse, context.narrowed(condition, fixed_by[1]))
        if then_leaves != else_leaves:  # what follows is the other branch's rest
            self.env = self.env if then_leaves else after
            return False, context.narrowed(condition, fixed_by[then_leaves])
        for name in assigned_in(*s.then, *s.orelse):
            values = [env[name] for env in (after, self.env) if name in env]
            self.env[name] = values[0].join(*values[1:]).controlled_by(condition)
        if self.exits is not exits:  # part of a branch leaves
            context = context.narrowed(condition)
        return then_leaves and else_leaves, context

    def inner(self, s: ir.For | ir.While, context: Context) -> Context:
        checking, exits = self.checking, self.exits
        self.checking = False
        while True:
            before = dict(self.env)
            self.iteration(s, context)
            if self.env == before:
                break
        self.checking, self.exits = checking, exits
        if checking:
            self.iteration(s, context)
        self.exits = exits
        waits = isinstance(s, ir.While) and has_any((s.condition,), ir.Atomic)
        return context.narrowed(Dependence(), self.varying) if waits else context  # a lock

    def iteration(self, s: ir.For | ir.While, context: Context) -> None:
        """One pass over the body; joins the environments before and after it."""
        before = dict(self.env)
        if isinstance(s, ir.For):
            parts = [x for r in s.ranges for x in ir.children(r)]
            control = Dependence().join(*(self.value(x, context) for x in parts))
            self.env.update(dict.fromkeys(s.variables, control))
        else:
            control = self.value(s.condition, context)
        self.exits = Dependence()
        self.block(s.body, context.narrowed(control))
        control = control.join(self.exits)
        for name in assigned_in(s):
            values = [env[name] for env in (before, self.env) if name in env]
            if values:
                self.env[name] = values[0].join(*values[1:]).controlled_by(control)

    # ---- expressions

    def value(self, e: Any, context: Context) -> Dependence:
        if isinstance(e, ir.Local):
            return self.env.get(e.name, Dependence())
        if isinstance(e, ir.Let):
            self.env[e.name] = self.value(e.value, context)
            return self.value(e.body, context)
        if isinstance(e, (ir.Size, ir.Stride)):
            return Dependence(self.value(e.array, context).extent_deps)
        if isinstance(e, ir.Invoke):
            return self.call(e, context)
        parts = [self.value(part, context) for part in _operands(e)]
        if isinstance(e, (ir.Load, ir.Atomic)):
            array = parts[0]
            if isinstance(e, ir.Atomic):
                self.written |= array.bases
                return Dependence(frozenset((ANY,)))
            deps = Dependence().join(*parts).deps
            shared = array.bases if self.varying - deps and ANY not in deps else NONE
            others = frozenset((ANY,)) if array.bases & self.written else NONE
            return Dependence(deps | others, NONE, Dependence().join(*parts).shared | shared)
        if isinstance(e, (ir.Slice, ir.SubView, ir.Reshape)):
            return self.view(e, parts)
        determines = _determined_by(e, parts)
        return replace(Dependence().join(*parts), determines=determines)

    def view(self, e: ir.Slice | ir.SubView | ir.Reshape, parts: list[Dependence]) -> Dependence:
        array = parts[0]
        if isinstance(e, ir.SubView):
            extent_deps = parts[2].deps
        elif isinstance(e, ir.Reshape):
            extent_deps = array.extent_deps.union(*(x.deps for x in parts[1:]))
        else:
            bounds = zip([p for p in e.parts for _ in _bounds(p)], parts[1:], strict=True)
            extent_deps = array.extent_deps.union(*(x.deps for p, x in bounds if isinstance(p, ir.Range)))
        return replace(Dependence().join(*parts), bases=array.bases, extent_deps=extent_deps)

    def call(self, e: ir.Invoke, context: Context) -> Dependence:
        args = [self.value(a, context) for a in e.args]
        function = self.functions[e.function]
        key = e.function, tuple(args), context, self.checking
        if key not in self.call_results:
            outer = self.env, self.exits, self.returned, self.symbol
            self.env = dict(zip((name for name, _ in function.params), args, strict=True))
            self.exits, self.returned, self.symbol = Dependence(), [], function.symbol
            self.block(function.body, context)
            self.call_results[key] = Dependence().join(*self.returned)
            self.env, self.exits, self.returned, self.symbol = outer
        return self.call_results[key]

    def fixed_by(self, condition: Any, truth: bool, context: Context) -> Names:
        """The variables of the loop of which a condition leaves one value."""
        if has_any((condition,), ir.Atomic):
            return self.varying  # the last one to come, or the one that has the lock
        if isinstance(condition, ir.Unary) and condition.op == "invert":
            return self.fixed_by(condition.a, not truth, context)
        if isinstance(condition, ir.Logic):
            first, second = (self.fixed_by(x, truth, context) for x in (condition.a, condition.b))
            return first | second if (condition.op == "and") == truth else first & second
        if isinstance(condition, ir.Cast):
            return NONE if truth else self.value(condition.a, context).determines
        if not isinstance(condition, ir.Compare):
            return NONE
        a, b = self.value(condition.a, context), self.value(condition.b, context)
        op, left, right = condition.op if truth else NEGATED_COMPARISON[condition.op], condition.a, condition.b
        if isinstance(left, ir.Const):
            op, left, right, a = SWAPPED_COMPARISON.get(op, op), right, left, b
        bound = right.value if isinstance(right, ir.Const) else None
        if op in ("lt", "le", "gt", "ge") and isinstance(bound, int):
            return self.first_only(op, left, bound, a)
        same = (condition.op, truth) in (("eq", True), ("ne", False))
        return (a.determines or b.determines) if same and not a.deps & b.deps else NONE

    def first_only(self, op: str, value: Any, bound: int, dependence: Dependence) -> Names:
        """The variables of which `value op bound` leaves the first value at most."""
        name, factor, number = _linear(value) or ("", 0, 0)
        if name not in self.zero_based or not factor:  # a sum of several: its least value is taken for 0
            least = (op, bound) in (("lt", 1), ("le", 0))
            return dependence.determines & self.zero_based.keys() if least else NONE
        if factor < 0:
            op, factor, number, bound = SWAPPED_COMPARISON[op], -factor, -number, -bound
        most = (bound - (op == "lt") - number) // factor
        return frozenset((name,)) if op in ("lt", "le") and most < self.zero_based[name] else NONE

    # ---- what is refused

    def store(self, s: ir.Store, context: Context) -> None:
        value = self.value(s.value, context)
        array, *index = (self.value(x, context) for x in (s.array, *s.index))
        self.written |= array.bases
        deps = array.deps.union(*(i.deps for i in index))
        missing = self.varying - deps - context.fixed
        if not self.checking or not missing or ANY in deps:
            return
        varies = bool(value.deps & missing)
        shared = value.shared | (context.control.shared if varies else NONE)
        if shared & array.bases:
            self.refuse(s, array, missing, update=True, compared=not value.shared & array.bases)
        decided = context.control.deps & missing or ANY in context.control.deps
        if varies and not decided:
            self.refuse(s, array, missing, update=False)

    def refuse(self, s: ir.Store, array: Dependence, missing: Names, update: bool, compared: bool = False) -> NoReturn:
        name = " or ".join(repr(n) for n in sorted(array.bases))
        names = sorted(n for n in missing if not n.startswith("."))
        which = repr(names[0]) if names else "the loop's variable"
        source, parallel = self.sources[self.symbol], self.loop.loop is not None
        kind = "parallel" if parallel else "unordered"
        if not update:
            what = f"iterations of the {kind} loop store different values into one element of {name}"
            advice = f"which one stays is chance: let the index depend on {which}, or choose an iteration with =="
            source.fail(s.loc, f"{what}: its index doesn't depend on {which}", advice)
        what = f"iterations of the {kind} loop update one element of {name} at the same time"
        atomic, host = _suggested_atomic(s.value, compared)
        advice = "store one result per iteration, with an inner loop"
        if not parallel:
            advice = "update a variable, and store it behind the loop"
        elif atomic:
            target = min(array.bases)
            field = re.sub(r"\.(\w+)", r"['\1']", target)  # of an array of records
            advice = f"write pa.{atomic}({field}, index, x), or one iteration per result{host}"
            if (place := _hindrance(self.loop, s)) is not None:
                alone = f"it is a reduction if the loop doesn't use {target!r} otherwise, as in line {place.line}"
                advice = f"{alone}; or {advice}"
        source.fail(s.loc, f"{what}: its index doesn't depend on {which}", advice)


def _hindrance(loop: ir.For, s: ir.Store) -> ir.Loc | None:
    """Where another statement of the loop uses the array of this store, which is else a reduction."""
    if not any(x is s for x in loop.body) or not isinstance(s.array, ir.Local):
        return None
    others = [x for x in loop.body if x is not s]
    uses = (n for n in ir.walk(*others) if isinstance(n, (ir.Load, ir.Store, ir.Atomic)))
    return next((n.loc for n in uses if getattr(n.array, "name", "") == s.array.name), None)


def _operands(e: Any) -> list[Any]:
    """Sub-expressions in order, the bounds of ranges among them."""
    if isinstance(e, ir.Slice):
        return [e.array, *(x for part in e.parts for x in _bounds(part))]
    return ir.children(e)


def _bounds(part: Any) -> list[Any]:
    return ir.children(part) if isinstance(part, ir.Range) else [part]


def _determined_by(e: Any, parts: list[Dependence]) -> Names:
    """The variables that have one value only where the expression has one."""
    if isinstance(e, ir.Cast) or (isinstance(e, ir.Unary) and e.op == "neg"):
        return parts[0].determines
    if not isinstance(e, ir.Binary) or e.op not in ("add", "sub", "mul"):
        return NONE
    a, b = parts
    mixed = a.deps & b.deps or (e.op == "mul" and a.deps and b.deps)
    return NONE if mixed else a.determines | b.determines


def _linear(e: Any) -> tuple[str, int, int] | None:
    """(name, factor, number) of what is factor * name + number, as far as numbers are constants."""
    if isinstance(e, ir.Local):
        return e.name, 1, 0
    if isinstance(e, ir.Cast) and e.type.dtype is e.a.type.dtype is ir.INDEX.dtype:  # which makes no number another
        return _linear(e.a)
    if isinstance(e, ir.Unary) and e.op == "neg" and (linear := _linear(e.a)):
        return linear[0], -linear[1], -linear[2]
    if not isinstance(e, ir.Binary) or e.op not in ("add", "sub", "mul"):
        return None
    swapped = isinstance(e.a, ir.Const)
    linear, by = _linear(e.b if swapped else e.a), getattr(e.a if swapped else e.b, "value", None)
    if linear is None or type(by) is not int:
        return None
    name, factor, number = linear
    if e.op == "mul":
        return name, factor * by, number * by
    sign = -1 if e.op == "sub" else 1
    return (name, sign * factor, by + sign * number) if swapped else (name, factor, number + sign * by)


_HOST = {"add": "sum", "sub": "sum", "min": "min", "max": "max"}


def _suggested_atomic(value: Any, compared: bool) -> tuple[str, str]:
    """The atomic that does this update, and what the advice says of a reduction."""
    while isinstance(value, (ir.Cast, ir.Let)):
        value = value.a if isinstance(value, ir.Cast) else value.body
    op = getattr(value, "op", getattr(value, "name", ""))
    if compared and isinstance(value, (ir.Load, ir.Local)):
        op = "max"
    host = f"; on the host pa.{_HOST[op]}(v) reduces" if op in _HOST else ""
    return (f"atomic_{op}", host) if f"atomic_{op}" in ATOMICS else ("", "")
