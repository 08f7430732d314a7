"""Reuses the graph that was compiled for all sizes when Dynamo traces it again for a size of 1.

Dynamo takes a size of 1 for a constant and traces again. Where that gives the same operators on the same
operands, with 1 in the place of a symbol, the new graph is the known one called with 1: nothing is compiled.
It is the same program, whether or not its operators do something else with a size of 1: each known graph was
compiled without relying on 2 as the least size (`size_oblivious.py`), and what else it relies on is checked.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch._C._dynamo import guards
from torch._dynamo.eval_frame import innermost_fn
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule, Node

from ..errors import with_article
from ..jit.bounded_cache import BoundedCache
from .common_subexpressions import SYMBOLIC, NotComparable
from .restart_analysis import restart_if_specialized
from .size_oblivious import Call, compile_size_oblivious, conditions
from .sizes import expression, shape_env_of


@dataclass(frozen=True)
class ValueRef:
    """The tensor of a row of `GraphDescription`, as an argument."""

    number: int


@dataclass(eq=False)
class GraphDescription:
    """A graph as Dynamo traced it, without what computes sizes alone. `kinds` are the operators in order,
    `rows` their arguments with shapes and types of the results. `inputs` are in the order of the call:
    tensors' rows, and the expressions of sizes. `aliasing` says which rows share memory that is written, and
    which results share it with inputs or each other."""

    kinds: tuple[Any, ...]
    rows: list[Any]
    inputs: list[ValueRef | sympy.Expr]
    results: Any
    aliasing: tuple[Any, ...]


def describe(module: GraphModule) -> GraphDescription:
    """The description of a graph. Raises `NotComparable` for one that can't be compared."""
    kinds, rows, inputs = list[Any](), list[Any](), list[ValueRef | sympy.Expr]()
    values: dict[Node, Any] = {}
    memory: list[tuple[int, ...]] = []
    written: set[int] = set()
    results: Any = None
    for node in module.graph.nodes:
        value = node.meta.get("example_value")
        if node.op == "output":
            results = _argument(node.args[0], values)
            continue
        if node.op == "placeholder" and not isinstance(value, torch.Tensor):
            if not isinstance(value, torch.SymInt):
                raise NotComparable(f"an input is {with_article(type(value).__name__)}")
            values[node] = expression(value)
            inputs.append(values[node])
            continue
        if node.op == "get_attr":
            raise NotComparable("a module or tensor of its own")
        if _only_sizes(node, value):
            values[node] = _argument(value, values)
            continue
        kinds.append((node.op, node.target if node.op != "placeholder" else None))
        values[node] = ValueRef(len(rows))
        if node.op == "placeholder":
            inputs.append(values[node])
        tensors = _tensors(value)
        memory.append(tuple(x.untyped_storage()._cdata for x in tensors))
        written.update(c for x, c in zip(tensors, memory[-1], strict=True) if x._version)
        arguments = _argument((node.args, node.kwargs), values) if node.op != "placeholder" else _layout(value)
        rows.append((_meaning(value), arguments))  # shapes first: they say what symbols are
    return GraphDescription(tuple(kinds), rows, inputs, results, _aliasing(memory, written, inputs, results))


def _aliasing(
    memory: Sequence[tuple[int, ...]], written: set[int], inputs: Sequence[Any], results: Any
) -> tuple[Any, ...]:
    first: dict[int, int] = {}
    for number, parts in enumerate(memory):
        for part in parts:
            first.setdefault(part, number)
    input_memory = [memory[x.number][0] for x in inputs if isinstance(x, ValueRef)]
    if len(set(input_memory)) < len(input_memory):
        raise NotComparable("inputs share memory")
    result_memory = [part for r in results if isinstance(r, ValueRef) for part in memory[r.number]]
    shared = [part for part in result_memory if part in input_memory or result_memory.count(part) > 1]
    first_and_written = {part: (first[part], part in written) for part in (*shared, *written)}
    return (
        tuple(first_and_written.get(part) for part in result_memory),
        tuple((k, first_and_written[part]) for k, parts in enumerate(memory) for part in parts if part in written),
    )


def _only_sizes(node: Node, value: Any) -> bool:
    """Whether a node is computed from sizes alone, and its value is known as an expression."""
    if isinstance(value, torch.Tensor) or node.target == "item" or value is None:
        return False
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return all(isinstance(x, (int, float, *SYMBOLIC)) for x in parts)


def _number(value: Any) -> Any:
    """A number for comparison: integers as expressions of symbols, floats by value if it is known."""
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        expression_of = value.node.expr
        return float(expression_of) if expression_of.is_number and isinstance(value, torch.SymFloat) else expression_of
    is_int = isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool)
    return expression(value) if is_int else value


def _argument(x: Any, values: dict[Node, Any]) -> Any:
    if isinstance(x, Node):
        return values[x]
    if isinstance(x, (tuple, list)):
        return tuple(_argument(y, values) for y in x)
    if isinstance(x, dict):
        return tuple((name, _argument(y, values)) for name, y in sorted(x.items()))
    if isinstance(x, slice):
        return ("slice", *(_argument(y, values) for y in (x.start, x.stop, x.step)))
    if isinstance(x, (torch.Tensor, torch.nn.Module)):
        raise NotComparable("a tensor of its own")
    return _number(x)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, (tuple, list)):
        return [x for y in value for x in _tensors(y)]
    if isinstance(value, torch.Tensor) and (type(value) is not FakeTensor or value.layout != torch.strided):
        raise NotComparable(f"{with_article(type(value).__name__)} that is {value.layout}")
    return [value] if isinstance(value, torch.Tensor) else []


def _meaning(value: Any) -> Any:
    """A node's result by its shapes and types, for comparison."""
    if isinstance(value, torch.Tensor):
        shape = tuple(expression(n) for n in value.shape)
        return (shape, value.dtype, value.device, value.requires_grad)
    if isinstance(value, (tuple, list)):
        return tuple(map(_meaning, value))
    return _number(value) if isinstance(value, (int, float, *SYMBOLIC)) else None


def _layout(value: torch.Tensor) -> Any:
    """Of an input: whether it is a leaf, its offset, and its strides by axis."""
    sizes, strides = ([expression(n) for n in x] for x in (value.shape, value.stride()))
    steps = tuple(Stride(n, s) for n, s in zip(sizes, strides, strict=True))
    return (value.is_leaf, expression(value.storage_offset()), steps)


@dataclass(frozen=True)
class Stride:
    """The size and stride of an axis; strides of axes of size 1 are equal."""

    size: sympy.Expr
    stride: sympy.Expr


@dataclass(eq=False)
class ReusableGraph:
    """A graph that is compiled: `call` while Dynamo keeps it. `conditions` must hold for its symbols."""

    description: GraphDescription
    call: weakref.ref[Call]
    conditions: list[sympy.Basic]
    state: Any = field(default_factory=guards.GlobalStateGuard)

    def called_as(self, other: GraphDescription, env: Any) -> Call | None:
        """The compiled function of the known graph, taking the other graph's inputs; None if they are different
        programs."""
        call = self.call()
        if call is None or not self.state.check():
            return None
        match = SymbolMatch()
        description = self.description
        if not match.matches((description.rows, description.results), (other.rows, other.results)):
            return None
        values = match.values
        if description.aliasing != other.aliasing or not any(x == 1 for x in values.values()):
            return None
        used = [c for c in self.conditions if c.free_symbols & values.keys()]
        if not all(c.free_symbols <= values.keys() and _holds(c.xreplace(values), env) for c in used):
            return None
        names: dict[Any, str] = {x: f"a{k}" for k, x in enumerate(other.inputs)}
        arguments = []
        for x in description.inputs:
            value = x if isinstance(x, ValueRef) else values.get(x)
            if value not in names and not getattr(value, "is_Integer", False):
                return None
            arguments.append(names.get(value) or str(value))
        text = f"lambda {', '.join(names.values())}: call({', '.join(arguments)})"
        compiled: Call = eval(text, {"call": call})
        return compiled


def _holds(condition: sympy.Basic, env: Any) -> bool:
    """Whether a condition of the known graph holds; where sizes of the new one decide, it is guarded."""
    if condition in (sympy.true, sympy.false) or env is None:
        return condition is sympy.true
    return bool(env.create_symboolnode(condition))


class SymbolMatch:
    """Compares two graphs, of which one has `values` where the other has symbols."""

    def __init__(self) -> None:
        self.values: dict[sympy.Symbol, sympy.Expr] = {}

    def matches(self, a: Any, b: Any) -> bool:
        """Compare, and learn the values of symbols."""
        if isinstance(a, (tuple, list)):
            same_layout = isinstance(b, (tuple, list)) and len(a) == len(b)
            return same_layout and all(map(self.matches, a, b))
        if isinstance(a, Stride):
            return isinstance(b, Stride) and (self.matches(a.stride, b.stride) or b.size == 1)
        if isinstance(a, sympy.Expr):
            return self._equal(a, b)
        return type(a) is type(b) and bool(a == b)

    def _equal(self, a: sympy.Expr, b: Any) -> bool:
        if a.is_Symbol and a not in self.values:
            if not isinstance(b, sympy.Expr):
                return False
            self.values[a] = b
            return True
        if a.free_symbols - self.values.keys():
            return False
        replaced = a.xreplace(self.values)
        if isinstance(b, float):
            return bool(replaced.is_number) and float(replaced) == b
        return isinstance(b, sympy.Expr) and sympy.expand(replaced - b) == 0


_known: BoundedCache[Any, list[ReusableGraph]] = BoundedCache(256)


def reuse_or_compile(module: GraphModule, inputs: Sequence[Any], make: Call) -> Call:
    """A graph of Dynamo's as a function: a known graph with a size of 1, or else what `make` makes of it."""
    try:
        description = describe(module)
    except NotComparable:
        return compile_size_oblivious(module, inputs, make)[0]
    env = shape_env_of(inputs)
    for graph in _known.get(description.kinds, ()):
        reused = graph.called_as(description, env)
        if reused is not None:
            return reused
    restart_if_specialized()
    compiled, general = compile_size_oblivious(module, inputs, make)
    if general:
        table = _known.get(description.kinds) or _known.add(description.kinds, [])
        table[:] = [g for g in table if g.call() is not None]
        # Dynamo keeps what is inside of torch's wrapper
        table.append(ReusableGraph(description, weakref.ref(innermost_fn(compiled)), conditions(env)))
    return compiled
