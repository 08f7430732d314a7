"""`FunctionSource` + parameter types → typed `Tree`.

Types flow from the parameters through the assignments; a variable's type is the join of its assignments,
found by inferring the body again until nothing changes. It leaves to others: what is in range (`check`), who
writes what (`directions`), text (`emit`). Expressions are in `infer_expr`, `infer_access`, `infer_call`,
statements in `infer_assign`, `infer_flow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .infer_expr import is_trackable
from .infer_flow import FunctionBody
from .ir import Function, Invoke, ScalarType, Static, Tree, Type, walk
from .parse import Capture, FunctionSource


def infer(
    source: FunctionSource, params: Sequence[tuple[str, Any]], wraparound: bool = False
) -> tuple[Tree, tuple[Capture, ...]]:
    """Typed tree of the kernel for these parameters, (name, type) or (name, `Static`) for a compile-time
    constant, and the Python values that were compiled in.

    Raises `CompileError` with the place in the source.
    """
    program = Instances(wraparound)
    kernel = program.function(source, tuple(params), is_kernel=True)
    tree = Tree(kernel, _reachable(kernel, tuple(program.done.values())))
    return tree, tuple(program.captures.values())


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
        self.captures: dict[tuple[int, str], Capture] = {}

    def capture(self, owner: Any, name: str, value: Any) -> None:
        if is_trackable(value):
            self.captures[id(owner), name] = Capture(owner, name, value)  # the capture keeps its owner alive

    def function(
        self, source: FunctionSource, params: tuple[tuple[str, Any], ...], is_kernel: bool = False
    ) -> Function:
        key = (source, tuple((name, p.key() if isinstance(p, Static) else p) for name, p in params))
        if key in self.done:
            return self.done[key]
        self.active.append(source)
        symbol = self._symbol(source.name)
        types: dict[str, Type] = {}
        declared: dict[str, ScalarType] = {}
        while True:
            body = FunctionBody(self, source, dict(params), types, declared, is_kernel)
            statements = body.run()
            if not body.changed:
                break
        self.active.pop()
        live = tuple((n, p) for n, p in params if not isinstance(p, Static))
        live = tuple((n, types[n]) for n, _ in live)  # a parameter that is assigned may have been widened
        variables = tuple((n, t) for n, t in types.items() if n not in dict(live) and n != "return")
        loc = source.loc(source.node)
        made = Function(source.name, symbol, loc, live, variables, statements, types.get("return"))
        if not is_kernel:
            self.done[key] = made
        return made

    def _symbol(self, name: str) -> str:
        symbol = base = name if name.isidentifier() else "function"
        while symbol in self.symbols:
            symbol = f"{base}_{len(self.symbols)}"
        self.symbols.add(symbol)
        return symbol
