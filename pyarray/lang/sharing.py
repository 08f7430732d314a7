"""Refuses programs in which it would show that local arrays are copied where Python shares memory.

`q = p`, `row = m[0]` and `p = positions[i]` copy elements here; in Python both names stand for one memory. That is the
same until one of them is changed. This pass follows, statement by statement, which variables share memory in Python;
reading a copy whose original has changed is refused, and so is changing a copy of what belongs to an array parameter
or to the caller. `.copy()` says that a copy is meant. The pass removes `ir.Shared`, by which `infer` says what is
shared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from . import ir
from .directions import Accesses, accesses_of, bases_of, result_bases, view_bases
from .parse import FunctionSource
from .summaries import Summary, rewrite_where

# What memory a variable may have: (kind, which). Of the kind "array" a parameter's, "param" a local array's of the
# caller; "new" is what an expression last made, "old" what it made before.
Token = tuple[str, Any]
Tokens = frozenset[Token]
NONE: Tokens = frozenset()


class _State:
    """`tokens` of variables, and which variables are `stale`, with the place of the change."""

    def __init__(self, tokens: dict[str, Tokens], stale: dict[str, ir.Loc]):
        self.tokens, self.stale = tokens, stale

    def copy(self) -> _State:
        return _State(dict(self.tokens), dict(self.stale))

    def merged(self, others: Iterable[_State]) -> _State:
        result = self.copy()
        for other in others:
            for name, tokens in other.tokens.items():
                result.tokens[name] = result.tokens.get(name, NONE) | tokens
            for name, loc in other.stale.items():
                result.stale.setdefault(name, loc)
        return result

    def same_as(self, other: _State) -> bool:
        return self.tokens == other.tokens and self.stale.keys() == other.stale.keys()

    def changed(self, tokens: Tokens, loc: ir.Loc, by: str = "") -> None:
        """Memory has changed; `by` is the variable that has the change."""
        for name, own in self.tokens.items():
            if name != by and own & tokens:
                self.stale.setdefault(name, loc)


def resolve_sharing(tree: ir.Tree, sources: Mapping[str, FunctionSource]) -> ir.Tree:
    """The tree without `ir.Shared`. Raises `CompileError` where a copy would be another value than in Python."""
    functions = (*tree.functions, tree.kernel)
    if not any(_has_local_arrays(f) for f in functions):
        return tree
    accesses, results = accesses_of(tree), result_bases(tree)
    returned: dict[str, frozenset[str]] = {}
    by_symbol = {f.symbol: f for f in functions}
    for function in functions:
        analysis = _Analysis(function, by_symbol, sources[function.symbol], accesses, results, returned)
        returned[function.symbol] = analysis.run()
    *changed, kernel = (replace(f, body=tuple(rewrite_where(s, _plain, _shares) for s in f.body)) for f in functions)
    return ir.Tree(kernel, tuple(changed))


def _has_local_arrays(function: ir.Function) -> bool:
    return any(isinstance(kind, ir.LocalArrayType) for _, kind in (*function.params, *function.variables))


def _shares(found: Summary) -> bool:
    return ir.Shared in found.kinds


def _plain(node: Any) -> Any:
    return node.value if isinstance(node, ir.Shared) else node


class _Analysis:
    def __init__(
        self,
        function: ir.Function,
        functions: dict[str, ir.Function],
        source: FunctionSource,
        accesses: Mapping[str, Accesses],
        results: dict[str, frozenset[int]],
        returned: dict[str, frozenset[str]],
    ):
        self.function, self.functions, self.source = function, functions, source
        self.accesses, self.results, self.returned = accesses, results, returned
        self.bases = view_bases(function, results)
        self.exits: list[tuple[list[_State], list[_State]]] = []  # of the loops around: at break, at continue
        self.flows_out: set[str] = set()

    def run(self) -> frozenset[str]:
        """The parameters whose memory the result may have."""
        params = {n: frozenset({("param", n)}) for n, k in self.function.params if isinstance(k, ir.LocalArrayType)}
        self.block(self.function.body, _State(params, {}))
        return frozenset(self.flows_out)

    # ---- statements

    def block(self, body: Iterable[Any], state: _State) -> _State | None:
        """The state behind; None if the end is never reached."""
        for s in body:
            if isinstance(s, ir.If):
                self.value(s.condition, state)
                ends = [self.block(s.then, state.copy()), self.block(s.orelse, state)]
                reached = [end for end in ends if end is not None]
                if not reached:
                    return None
                state = reached[0].merged(reached[1:])
            elif isinstance(s, (ir.For, ir.While)):
                state = self.loop(s, state)
            elif isinstance(s, (ir.Break, ir.Continue)):
                self.exits[-1][isinstance(s, ir.Continue)].append(state)
                return None
            elif isinstance(s, ir.Return):
                if s.value is not None:
                    self.flows_out |= {str(which) for kind, which in self.value(s.value, state) if kind in _FOREIGN}
                return None
            else:
                self.simple(s, state)
        return state

    def loop(self, s: ir.For | ir.While, state: _State) -> _State:
        if isinstance(s, ir.For):
            for range_ in s.ranges:
                for x in ir.children(range_):
                    self.value(x, state)
        while True:
            inside = state.copy()
            if isinstance(s, ir.While):
                self.value(s.condition, inside)
            self.exits.append(([], []))
            end = self.block(s.body, inside)
            broken, continued = self.exits.pop()
            again = state.merged([*continued, *([end] if end is not None else [])])
            if again.same_as(state):
                return state.merged(broken)
            state = again

    def simple(self, s: Any, state: _State) -> None:
        if isinstance(s, ir.Assign):
            self.assign(s.name, s.value, state)
        elif isinstance(s, ir.SetElement):
            for x in (s.value, *s.index):
                self.value(x, state)
            self.change(s, state)
        elif isinstance(s, ir.Store):
            for x in (s.value, s.array, *s.index):
                self.value(x, state)
            self.stored(s.array, s.loc, state)
        else:
            for x in ir.children(s):
                self.value(x, state)

    def assign(self, name: str, value: Any, state: _State) -> None:
        tokens = self.value(value, state)
        if not isinstance(value.type, (ir.LocalArrayType, ir.TupleType)):
            return
        made = {which for kind, which in tokens if kind == "new" and which == id(value)}
        for which in made:  # what others have of the same expression was made before
            for other, own in state.tokens.items():
                if ("new", which) in own:
                    state.tokens[other] = own - {("new", which)} | {("old", which)}
        state.tokens[name] = tokens
        state.stale.pop(name, None)

    def change(self, s: ir.SetElement, state: _State) -> None:
        tokens = state.tokens.get(s.name, NONE)
        for kind, which in sorted(t for t in tokens if t[0] in _FOREIGN):
            name = s.name if not s.name.startswith(".") else "this"
            advice = f"change a copy: {name} = {name}.copy()"
            if kind == "param":
                what = f"{name!r} may be the caller's array {which!r}, and a copy of it here"
                self.source.fail(s.loc, f"{what}: it can't be changed", f"{advice}, and return that")
            what = f"{name!r} may be a view of {which!r} in Python, and is a copy here"
            self.source.fail(s.loc, f"{what}: it can't be changed", f"{advice}, or store into {which!r} by its index")
        state.changed(tokens, s.loc, s.name)

    def stored(self, array: Any, loc: ir.Loc, state: _State) -> None:
        names = bases_of(array, self.bases, self.results)
        state.changed(frozenset(("array", name) for name in names), loc)

    # ---- expressions

    def value(self, e: Any, state: _State) -> Tokens:
        """What memory an array may have; all that is read is tested."""
        if isinstance(e, ir.Local):
            if e.name in state.stale:
                self.refuse(e, state.stale[e.name])
            return state.tokens.get(e.name, NONE)
        if isinstance(e, ir.Let):
            self.assign(e.name, e.value, state)
            return self.value(e.body, state)
        if isinstance(e, ir.Shared):
            self.value(e.value, state)
            return NONE.union(*(self.memory(e, name, state) for name in e.names))
        parts = [self.value(x, state) for x in self.operands(e)]
        if isinstance(e, ir.Atomic):
            self.stored(e.array, e.loc, state)
        if isinstance(e, ir.Invoke):
            return self.call(e, parts, state)
        if isinstance(e, ir.Select):
            return parts[1] | parts[2]
        if isinstance(e, (ir.Convert, ir.Item)):
            return parts[0]
        if isinstance(e, ir.Pack):
            return NONE.union(*parts)
        made = isinstance(getattr(e, "type", None), ir.LocalArrayType)
        return frozenset({("new", id(e))}) if made else NONE

    @staticmethod
    def operands(e: Any) -> list[Any]:
        if isinstance(e, ir.Slice):
            parts = ((ir.children(p) if isinstance(p, ir.Range) else [p]) for p in e.parts)
            return [e.array, *(x for part in parts for x in part)]
        return ir.children(e)

    def memory(self, e: ir.Shared, name: str, state: _State) -> Tokens:
        kind = dict((*self.function.params, *self.function.variables)).get(name)
        if not isinstance(kind, ir.ArrayType):
            return state.tokens.get(name, NONE)
        bases = bases_of(ir.Local(e.loc, kind, name), self.bases, self.results)
        return frozenset(("array", base) for base in bases)

    def call(self, e: ir.Invoke, parts: list[Tokens], state: _State) -> Tokens:
        callee = self.functions[e.function]
        shared = {("new", id(e))}
        for (name, kind), argument, tokens in zip(callee.params, e.args, parts, strict=True):
            if isinstance(kind, ir.ArrayType):
                bases = bases_of(argument, self.bases, self.results)
                found = frozenset(("array", base) for base in bases)
                if any(a.mode == "w" for a in self.accesses[e.function].get(name, ())):
                    state.changed(found, e.loc)
                tokens = found
            if name in self.returned[e.function]:
                shared |= tokens
        return frozenset(shared)

    def refuse(self, e: ir.Local, loc: ir.Loc) -> None:
        name = repr(e.name) if not e.name.startswith(".") else "this array"
        what = f"{name} is a copy here, and shares memory in Python with what line {loc.line} changes"
        advice = "say which is meant: assign a copy, " + (
            "p.copy()" if e.name.startswith(".") else f"{e.name} = ….copy()"
        )
        self.source.fail(e.loc, what, f"{advice}, or read it again after the change")


_FOREIGN = ("array", "param")  # kinds of memory that isn't this function's own
