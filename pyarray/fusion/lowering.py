"""From nodes of a traced function to lines of the kernel language that compute an element."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..kernels.elementwise.elementwise import COPY, MapOp
from .kernel_text import Element, number_types
from .tracing import Apply, Node, NumberTracer, View

Chain = tuple[Node, ...]  # views of an operand, and operations to whose shape it is broadcast, in order


class Line(NamedTuple):
    """`name` = `text`, an operation `op` whose result has this dtype; `used` are the variables in it."""

    name: str
    text: str
    used: tuple[str, ...]
    op: str
    dtype: Any


class Lines:
    """The lines that compute nodes from `operands` (v0, v1 ...) and `numbers` (s0, s1 ...)."""

    def __init__(self) -> None:
        self.operands: list[tuple[Node, Chain]] = []
        self.numbers: list[NumberTracer] = []
        self.lines: list[Line] = []
        # Of one lowering, whose nodes don't change.
        self.scope: dict[str, Any] = {}
        self._variables: dict[tuple[Node, Chain], str] = {}
        self._fresh = itertools.count()

    @property
    def operations(self) -> list[str]:
        """Names of what is computed, one after the other."""
        return [line.op for line in self.lines]

    def types_of_numbers(self) -> tuple[type, ...]:
        """Those of the numbers, which the scope names from now on."""
        types = tuple(x._weak_type for x in self.numbers)
        self.scope |= number_types(types)
        return types

    def dtype(self, dtype: Any) -> str:
        """Its name in the text."""
        self.scope[f"{dtype.name}_t"] = dtype
        return f"{dtype.name}_t"

    def value(self, node: Node, chain: Chain = ()) -> str:
        """The variable with a node's element behind a chain."""
        if (node, chain) not in self._variables:
            self._variables[node, chain] = self._emit(node, chain)
        return self._variables[node, chain]

    def _emit(self, node: Node, chain: Chain) -> str:
        if isinstance(node, View):
            return self.value(node.source, (node, *chain))
        if not isinstance(node, Apply):
            self.operands.append((node, chain))
            return f"v{len(self.operands) - 1}"
        used = list[str]()
        operands = [self._operand(node, k, x, chain, used) for k, x in enumerate(node.operands)]
        value = operands[0] if node.op is COPY else f"{self._called(node.op)}({', '.join(operands)})"
        name, text = f"t{next(self._fresh)}", f"{self.dtype(node.dtype)}({value})"
        self.lines.append(Line(name, text, tuple(used), node.op.name, node.dtype))
        return name

    def _called(self, op: MapOp) -> str:
        """The name of an operation's function."""
        names = [n for n, f in self.scope.items() if f is op.function]
        name = names[0] if names else f"f{next(self._fresh)}"
        self.scope[name] = op.function
        return name

    def _operand(self, node: Apply, position: int, x: Any, chain: Chain, used: list[str]) -> str:
        if isinstance(x, Node):
            value = self.value(x, (node, *chain) if chain else ())
            used.append(value)
        elif isinstance(x, NumberTracer):
            value = self._number(x)
        else:
            value = f"c{next(self._fresh)}"
            self.scope[value] = x
        return value if position in node.op.raw else f"{self.dtype(node.domain)}({value})"

    def _number(self, x: NumberTracer) -> str:
        for k, number in enumerate(self.numbers):
            if number is x:
                return f"s{k}"
        self.numbers.append(x)
        return f"s{len(self.numbers) - 1}"


class Lowering(Lines):
    """The text of what one kernel computes of each element: `nodes` of one shape."""

    def __init__(self, name: str, nodes: Sequence[Node]):
        super().__init__()
        results = tuple(f"{self.dtype(x.dtype)}({self.value(x)})" for x in nodes)
        types, lines = self.types_of_numbers(), tuple(f"{x.name} = {x.text}" for x in self.lines)
        self.element = Element(kernel_name(name), lines, results, len(self.operands), types, self.scope)


def kernel_name(function: str) -> str:
    """The name of the kernels of a function."""
    return f"fused_{function}" if function.isidentifier() else "fused"
