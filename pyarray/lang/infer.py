"""`FunctionSource` + parameter types → typed `Tree`.

Types flow from the parameters through the assignments; a variable's type is the join of its assignments,
found by inferring the body again until nothing changes. It leaves to others: what is in range (`check`), who
writes what (`directions`), text (`emit`). Expressions are in `infer_expr`, `infer_access`, `infer_call`,
statements in `infer_assign`, `infer_flow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .aggregates import key as type_key
from .aggregates import leaves
from .infer_flow import FunctionBody
from .infer_names import is_trackable
from .ir import Function, Invoke, ScalarType, Static, Tree, TupleType, Type, walk
from .parse import Capture, FunctionSource


def infer(
    source: FunctionSource, params: Sequence[tuple[str, Any]], wraparound: bool = False
) -> tuple[Tree, tuple[Capture, ...], dict[str, FunctionSource]]:
    """Typed tree of the kernel for these parameters, (name, type), the Python values that were compiled in,
    and the source of each function by its symbol. A `Static` is a compile-time constant; a tuple or `Aggregate`
    of types becomes a parameter per leaf.

    Raises `CompileError` with the place in the source.
    """
    program = Instances(wraparound)
    kernel = program.function(source, tuple(params), is_kernel=True)
    tree = Tree(kernel, _reachable(kernel, tuple(program.done.values())))
    return tree, tuple(program.captures.values()), program.sources


def _reachable(kernel: Function, functions: tuple[Function, ...]) -> tuple[Function, ...]:
    """What the kernel calls, callees first; earlier passes may have made instances for types that were then
    widened."""
    needed: set[str] = set()
    for function in (kernel, *reversed(functions)):
        if function is kernel or function.symbol in needed:
            needed |= {n.function for s in function.body for n in walk(s) if isinstance(n, Invoke)}
    return tuple(f for f in functions if f.symbol in needed)


class Instances:
    """The functions met so far, one instance per function and argument types, and what they took from
    Python."""

    def __init__(self, wraparound: bool):
        self.wraparound = wraparound
        self.done: dict[Any, Function] = {}
        self.active: list[FunctionSource] = []
        self.symbols: set[str] = set()
        self.captures: dict[tuple[int, Any], Capture] = {}
        self.sources: dict[str, FunctionSource] = {}
        self.results: dict[str, Any] = {}  # function → structure of the tuple that it returns

    def capture(self, owner: Any, name: Any, value: Any) -> None:
        if is_trackable(value):
            self.captures[id(owner), name] = Capture(owner, name, value)  # the capture keeps its owner alive

    def function(
        self, source: FunctionSource, params: tuple[tuple[str, Any], ...], is_kernel: bool = False
    ) -> Function:
        key = (source, tuple((name, type_key(p)) for name, p in params))
        if key in self.done:
            return self.done[key]
        self.active.append(source)
        symbol = self._symbol(source.name)
        self.sources[symbol] = source
        types: dict[str, Type] = {}
        declared: dict[str, ScalarType] = {}
        groups: dict[str, Any] = {}
        while True:
            body = FunctionBody(self, source, dict(params), types, declared, groups, is_kernel)
            statements = body.run()
            if not body.changed:
                break
        self.active.pop()
        flat = [n for name, p in params for n, leaf in leaves(name, p) if not isinstance(leaf, Static)]
        live = tuple((n, types[n]) for n in flat)  # a parameter that is assigned may have been widened
        result = types.get("return")
        if "return" in groups:
            self.results[symbol] = groups["return"]
            result = TupleType(tuple(types[n] for n, x in leaves("return", groups["return"]) if x is None))
        taken = {*flat, "return", *(n for n, _ in leaves("return", groups.get("return")))}
        variables = tuple((n, t) for n, t in types.items() if n not in taken)
        loc = source.loc(source.node)
        made = Function(source.name, symbol, loc, live, variables, statements, result)
        if not is_kernel:
            self.done[key] = made
        return made

    def _symbol(self, name: str) -> str:
        symbol = base = name if name.isidentifier() else "function"
        while symbol in self.symbols:
            symbol = f"{base}_{len(self.symbols)}"
        self.symbols.add(symbol)
        return symbol
