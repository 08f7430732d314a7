"""Stores that iterations of a parallel loop send to one element: of updates some get lost, of other values
it is chance which one stays. Refused is what is a race for sure: an index that a variable of the loop doesn't
enter, directly or by way of variables, views and functions.

Left alone are stores of one and the same value, those that a condition leaves to one iteration (`if i == k`),
those of any value where a condition depends on the iteration, and indices that come from memory which the
loop writes, or from atomics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from .builtins import ATOMICS
from .directions import result_roots, root, view_roots
from .ir import (
    INDEX,
    ArrayType,
    Assign,
    Atomic,
    Binary,
    Break,
    Cast,
    Compare,
    Const,
    Continue,
    Evaluate,
    For,
    Function,
    If,
    Invoke,
    Let,
    Load,
    Local,
    Logic,
    Range,
    Reshape,
    Return,
    Size,
    Slice,
    Stmt,
    Store,
    Stride,
    SubView,
    Tree,
    Unary,
    While,
    assigned,
    children,
    walk,
)
from .parse import FunctionSource
from .promotion import SWAPPED_COMPARISON

Names = frozenset[str]
NONE: Names = frozenset()
ANY = "*"  # stands for all variables of the loop: what an atomic gives, and what others may have written


@dataclass(frozen=True, slots=True)
class Fact:
    """Of a value: the loop's variables that it depends on, those of them that it determines, and the arrays
    of which it has seen an element that several iterations share. Of an array also the parameters that it may
    be a view of, and what its extents depend on."""

    deps: Names = NONE
    one: Names = NONE
    seen: Names = NONE
    roots: Names = NONE
    extent: Names = NONE

    def joined(self, *others: Fact) -> Fact:
        """What holds of something made of both."""
        deps, seen, roots, extent = self.deps, self.seen, self.roots, self.extent
        for o in others:
            deps, seen, roots, extent = deps | o.deps, seen | o.seen, roots | o.roots, extent | o.extent
        return Fact(deps, NONE, seen, roots, extent)

    def under(self, control: Fact) -> Fact:
        """The same, where it depends on a condition whether it is."""
        return replace(self, deps=self.deps | control.deps, seen=self.seen | control.seen)


@dataclass(frozen=True, slots=True)
class Context:
    """What decides whether a statement runs, and the variables of which that leaves one value."""

    control: Fact = Fact()
    pinned: Names = NONE

    def narrowed(self, condition: Fact, pinned: Names = NONE) -> Context:
        return Context(self.control.joined(condition), self.pinned | pinned)


def refuse_races(tree: Tree, sources: Mapping[str, FunctionSource]) -> None:
    """Raises `CompileError` for a store that is a race for sure."""
    storing = {f.symbol for f in tree.functions if any(isinstance(n, Store) for s in f.body for n in walk(s))}
    for f in tree.functions:  # callees first
        if any(isinstance(n, Invoke) and n.function in storing for s in f.body for n in walk(s)):
            storing.add(f.symbol)
    for loop in tree.kernel.body:
        if isinstance(loop, For) and loop.loop is not None and not _plainly_apart(loop, storing):
            Races(tree, tree.kernel, sources, loop).check()


def _needed(loop: For) -> Names:
    """The variables of a loop that take several values."""
    pairs = zip(loop.variables, loop.ranges, strict=True)
    return frozenset(name for name, reach in pairs if not _single(reach))


def _from_zero(loop: For) -> dict[str, int]:
    """The variables whose least value is 0, and how far apart their values are."""
    found = {}
    for name, reach in zip(loop.variables, loop.ranges, strict=True):
        start = 0 if reach.start is None else getattr(reach.start, "value", None)
        step = 1 if reach.step is None else getattr(reach.step, "value", 0)
        if start == 0 and step > 0:
            found[name] = step
    return found


def _single(reach: Range) -> bool:
    start = 0 if reach.start is None else getattr(reach.start, "value", None)
    stop = getattr(reach.stop, "value", None)
    return reach.step is None and start is not None and stop is not None and stop - start <= 1


def _plainly_apart(loop: For, storing: set[str]) -> bool:
    """Whether all of the loop's variables stand in the index of each store, which is quickly seen."""
    needed = _needed(loop)
    nodes = [n for s in loop.body for n in walk(s)]
    if any(isinstance(n, Invoke) and n.function in storing for n in nodes):
        return False
    stores = [n for n in nodes if isinstance(n, Store)]
    return all(needed <= {n.name for i in s.index for n in walk(i) if isinstance(n, Local)} for s in stores)


class Races:
    """The walk over one loop of `function`, whose iterations run at the same time. It is done twice, since
    what the loop writes is known only then; inner loops are walked until nothing changes."""

    def __init__(self, tree: Tree, function: Function, sources: Mapping[str, FunctionSource], loop: For):
        self.functions, self.sources, self.loop = {f.symbol: f for f in tree.functions}, sources, loop
        self.needed = _needed(loop)
        self.from_zero = _from_zero(loop)
        self.symbol = function.symbol
        self.written: set[str] = set()
        self.checking = False
        self.exits = Fact()  # what decides whether an inner loop, or a function, is left
        self.returned: list[Fact] = []
        self.known: dict[Any, Fact] = {}
        results = result_roots(tree)
        roots = view_roots(function, results)
        self.env: dict[str, Fact] = {
            name: Fact(roots=root(Local(loop.loc, kind, name), roots, results))
            for name, kind in (*function.params, *function.variables)
            if isinstance(kind, ArrayType)
        }

    def check(self) -> None:
        if not self.needed:
            return
        for name in self.loop.variables:
            self.env[name] = Fact(frozenset((name,)), frozenset((name,)))
        before = dict(self.env)
        for checking in (False, True):
            self.env, self.checking, self.known = dict(before), checking, {}
            self.block(self.loop.body, Context())

    # ---- statements

    def block(self, statements: tuple[Stmt, ...], context: Context) -> bool:
        """Whether all ways leave it."""
        for s in statements:
            if isinstance(s, (Break, Continue)):
                self.exits = self.exits.joined(context.control)
                return True
            if isinstance(s, Return):
                self.exits = self.exits.joined(context.control)
                if s.value is not None:
                    self.returned.append(self.value(s.value, context).under(context.control))
                return True
            if isinstance(s, If):
                leaves, context = self.branches(s, context)
                if leaves:
                    return True
            elif isinstance(s, (For, While)):
                context = self.inner(s, context)
            elif isinstance(s, Assign):
                self.env[s.name] = self.value(s.value, context)
            elif isinstance(s, Store):
                self.store(s, context)
            elif isinstance(s, Evaluate):
                self.value(s.value, context)
        return False

    def branches(self, s: If, context: Context) -> tuple[bool, Context]:
        condition = self.value(s.condition, context)
        before, exits = dict(self.env), self.exits
        pins = [self.pins(s.condition, truth, context) for truth in (True, False)]
        then_leaves = self.block(s.then, context.narrowed(condition, pins[0]))
        after, self.env = self.env, before
        else_leaves = self.block(s.orelse, context.narrowed(condition, pins[1]))
        if then_leaves != else_leaves:  # what follows is the other branch's rest
            self.env = self.env if then_leaves else after
            return False, context.narrowed(condition, pins[then_leaves])
        for name in assigned(*s.then, *s.orelse):
            ways = [env[name] for env in (after, self.env) if name in env]
            self.env[name] = ways[0].joined(*ways[1:]).under(condition)
        if self.exits is not exits:  # part of a branch leaves
            context = context.narrowed(condition)
        return then_leaves and else_leaves, context

    def inner(self, s: For | While, context: Context) -> Context:
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
        waits = isinstance(s, While) and any(isinstance(n, Atomic) for n in walk(s.condition))
        return context.narrowed(Fact(), self.needed) if waits else context  # a lock

    def iteration(self, s: For | While, context: Context) -> None:
        """One walk over the body; what holds before it and after it holds of each iteration."""
        before = dict(self.env)
        if isinstance(s, For):
            parts = [x for r in s.ranges for x in (r.start, r.stop, r.step) if x is not None]
            control = Fact().joined(*(self.value(x, context) for x in parts))
            self.env.update(dict.fromkeys(s.variables, control))
        else:
            control = self.value(s.condition, context)
        self.exits = Fact()
        self.block(s.body, context.narrowed(control))
        control = control.joined(self.exits)
        for name in assigned(s):
            ways = [env[name] for env in (before, self.env) if name in env]
            if ways:
                self.env[name] = ways[0].joined(*ways[1:]).under(control)

    # ---- expressions

    def value(self, e: Any, context: Context) -> Fact:
        if isinstance(e, Local):
            return self.env.get(e.name, Fact())
        if isinstance(e, Let):
            self.env[e.name] = self.value(e.value, context)
            return self.value(e.body, context)
        if isinstance(e, (Size, Stride)):
            return Fact(self.value(e.array, context).extent)
        if isinstance(e, Invoke):
            return self.call(e, context)
        parts = [self.value(part, context) for part in _operands(e)]
        if isinstance(e, (Load, Atomic)):
            array = parts[0]
            if isinstance(e, Atomic):
                self.written |= array.roots
                return Fact(frozenset((ANY,)))
            deps = Fact().joined(*parts).deps
            shared = array.roots if self.needed - deps and ANY not in deps else NONE
            others = frozenset((ANY,)) if array.roots & self.written else NONE
            return Fact(deps | others, NONE, Fact().joined(*parts).seen | shared)
        if isinstance(e, (Slice, SubView, Reshape)):
            return self.view(e, parts)
        one = _determined(e, parts)
        return replace(Fact().joined(*parts), one=one)

    def view(self, e: Slice | SubView | Reshape, parts: list[Fact]) -> Fact:
        array = parts[0]
        if isinstance(e, SubView):
            extent = parts[2].deps
        elif isinstance(e, Reshape):
            extent = array.extent.union(*(fact.deps for fact in parts[1:]))
        else:
            bounds = zip([p for p in e.parts for _ in _bounds(p)], parts[1:], strict=True)
            extent = array.extent.union(*(fact.deps for p, fact in bounds if isinstance(p, Range)))
        return replace(Fact().joined(*parts), roots=array.roots, extent=extent)

    def call(self, e: Invoke, context: Context) -> Fact:
        args = [self.value(a, context) for a in e.args]
        function = self.functions[e.function]
        key = e.function, tuple(args), context, self.checking
        if key not in self.known:
            outer = self.env, self.exits, self.returned, self.symbol
            self.env = dict(zip((name for name, _ in function.params), args, strict=True))
            self.exits, self.returned, self.symbol = Fact(), [], function.symbol
            self.block(function.body, context)
            self.known[key] = Fact().joined(*self.returned)
            self.env, self.exits, self.returned, self.symbol = outer
        return self.known[key]

    def pins(self, condition: Any, truth: bool, context: Context) -> Names:
        """The variables of the loop of which a condition leaves one value."""
        if any(isinstance(n, Atomic) for n in walk(condition)):
            return self.needed  # the last one to come, or the one that has the lock
        if isinstance(condition, Unary) and condition.op == "invert":
            return self.pins(condition.a, not truth, context)
        if isinstance(condition, Logic):
            first, second = (self.pins(x, truth, context) for x in (condition.a, condition.b))
            return first | second if (condition.op == "and") == truth else first & second
        if isinstance(condition, Cast):
            return NONE if truth else self.value(condition.a, context).one
        if not isinstance(condition, Compare):
            return NONE
        a, b = self.value(condition.a, context), self.value(condition.b, context)
        op, left, right = condition.op if truth else _NEGATED[condition.op], condition.a, condition.b
        if isinstance(left, Const):
            op, left, right, a = SWAPPED_COMPARISON.get(op, op), right, left, b
        bound = right.value if isinstance(right, Const) else None
        if op in ("lt", "le", "gt", "ge") and isinstance(bound, int):
            return self.limited(op, left, bound, a)
        same = (condition.op, truth) in (("eq", True), ("ne", False))
        return (a.one or b.one) if same and not a.deps & b.deps else NONE

    def limited(self, op: str, value: Any, bound: int, fact: Fact) -> Names:
        """The variables of which `value op bound` leaves the first value at most."""
        name, factor, number = _linear(value) or ("", 0, 0)
        if name not in self.from_zero or not factor:  # made of more: its least value is taken for 0
            return fact.one & self.from_zero.keys() if (op, bound) in (("lt", 1), ("le", 0)) else NONE
        if factor < 0:
            op, factor, number, bound = SWAPPED_COMPARISON[op], -factor, -number, -bound
        most = (bound - (op == "lt") - number) // factor
        return frozenset((name,)) if op in ("lt", "le") and most < self.from_zero[name] else NONE

    # ---- what is refused

    def store(self, s: Store, context: Context) -> None:
        value = self.value(s.value, context)
        array, *index = (self.value(x, context) for x in (s.array, *s.index))
        self.written |= array.roots
        deps = array.deps.union(*(i.deps for i in index))
        missing = self.needed - deps - context.pinned
        if not self.checking or not missing or ANY in deps:
            return
        varies = bool(value.deps & missing)
        seen = value.seen | (context.control.seen if varies else NONE)
        if seen & array.roots:
            self.refuse(s, array, missing, update=True, compared=not value.seen & array.roots)
        decided = context.control.deps & missing or ANY in context.control.deps
        if varies and not decided:
            self.refuse(s, array, missing, update=False)

    def refuse(self, s: Store, array: Fact, missing: Names, update: bool, compared: bool = False) -> NoReturn:
        name = " or ".join(repr(n) for n in sorted(array.roots))
        shown = sorted(n for n in missing if not n.startswith("."))
        which = repr(shown[0]) if shown else "the loop's variable"
        source, parallel = self.sources[self.symbol], self.loop.loop is not None
        kind = "parallel" if parallel else "unordered"
        if not update:
            what = f"iterations of the {kind} loop store different values into one element of {name}"
            advice = (
                f"which one stays is chance: let the index depend on {which}, or choose an iteration with =="
            )
            source.fail(s.loc, f"{what}: its index doesn't depend on {which}", advice)
        what = f"iterations of the {kind} loop update one element of {name} at the same time"
        atomic, host = _instead(s.value, compared)
        advice = "store one result per iteration, with an inner loop"
        if not parallel:
            advice = "update a variable, and store it behind the loop"
        elif atomic:
            place = min(array.roots)
            advice = f"write pa.{atomic}({place}, index, x), or one iteration per result{host}"
        source.fail(s.loc, f"{what}: its index doesn't depend on {which}", advice)


def _operands(e: Any) -> list[Any]:
    """Sub-expressions in order, the bounds of ranges among them."""
    if isinstance(e, Slice):
        return [e.array, *(x for part in e.parts for x in _bounds(part))]
    return children(e)


def _bounds(part: Any) -> list[Any]:
    return (
        [x for x in (part.start, part.stop, part.step) if x is not None]
        if isinstance(part, Range)
        else [part]
    )


def _determined(e: Any, parts: list[Fact]) -> Names:
    """The variables that have one value only where the expression has one."""
    if isinstance(e, Cast) or (isinstance(e, Unary) and e.op == "neg"):
        return parts[0].one
    if not isinstance(e, Binary) or e.op not in ("add", "sub", "mul"):
        return NONE
    a, b = parts
    mixed = a.deps & b.deps or (e.op == "mul" and a.deps and b.deps)
    return NONE if mixed else a.one | b.one


_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def _linear(e: Any) -> tuple[str, int, int] | None:
    """(name, factor, number) of what is factor * name + number, as far as numbers are constants."""
    if isinstance(e, Local):
        return e.name, 1, 0
    if isinstance(e, Cast) and e.type.dtype is e.a.type.dtype is INDEX.dtype:  # which makes no number another
        return _linear(e.a)
    if isinstance(e, Unary) and e.op == "neg" and (found := _linear(e.a)):
        return found[0], -found[1], -found[2]
    if not isinstance(e, Binary) or e.op not in ("add", "sub", "mul"):
        return None
    swapped = isinstance(e.a, Const)
    found, by = _linear(e.b if swapped else e.a), getattr(e.a if swapped else e.b, "value", None)
    if found is None or type(by) is not int:
        return None
    name, factor, number = found
    if e.op == "mul":
        return name, factor * by, number * by
    sign = -1 if e.op == "sub" else 1
    return (name, sign * factor, by + sign * number) if swapped else (name, factor, number + sign * by)


_HOST = {"add": "sum", "sub": "sum", "min": "min", "max": "max"}


def _instead(value: Any, compared: bool) -> tuple[str, str]:
    """The atomic that does this update, and what the advice says of a reduction."""
    while isinstance(value, (Cast, Let)):
        value = value.a if isinstance(value, Cast) else value.body
    op = getattr(value, "op", getattr(value, "name", ""))
    if compared and isinstance(value, (Load, Local)):
        op = "max"
    host = f"; on the host pa.{_HOST[op]}(v) reduces" if op in _HOST else ""
    return (f"atomic_{op}", host) if f"atomic_{op}" in ATOMICS else ("", "")
