"""Common subexpression elimination: nodes of a graph that compute the same become one.

torch's own pass does that for graphs with gradients alone, before they are cut in two, and loads all of
Inductor for it. So it is turned off, and this one runs for every graph.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._functorch import config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import Graph, GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

from ..errors import with_article
from . import views
from .operators import POINTWISE, computed_once
from .sizes import expressions

_settings: Any = config
_COMPARISONS = {getattr(getattr(torch.ops.aten, name), o) for name in ("eq", "ne") for o in ("Tensor", "Scalar")}
_NAMESPACES = ("aten", "prims")  # what others' operators do is theirs to know
_MODULES = ("operator", "_operator", "math", "torch")  # of functions of sizes
_UNINITIALIZED = ("empty", "new_empty", "resize", "_resize")  # prefixes of operators that leave memory as it was
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class NotComparable(Exception):
    """A graph or an argument can't be compared."""


def partition(module: GraphModule, inputs: Any, **named: Any) -> tuple[GraphModule, GraphModule]:
    """A graph with gradients as torch cuts it: forward and backward."""
    eliminate_common_subexpressions(module.graph)
    _save_compared(module.graph)
    with _settings.patch(cse=False):
        graphs: tuple[GraphModule, GraphModule] = min_cut_rematerialization_partition(module, inputs, **named)
    return graphs


def _save_compared(graph: Graph) -> None:
    """Makes the forward pass save what the backward pass compares and what may be computed only once: gradients of
    `amax` go to the elements that equal it."""
    stack = [x for n in graph.nodes if n.target in _COMPARISONS for x in n.all_input_nodes]
    visited = set[Node]()
    while stack:
        node = stack.pop()
        if node in visited or not isinstance(node.meta.get("val"), torch.Tensor):
            continue
        visited.add(node)
        if computed_once(node):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
        elif node.target in POINTWISE or views.is_view(node):
            stack += node.all_input_nodes


def eliminate_common_subexpressions(graph: Graph) -> None:
    """Replaces nodes by an earlier equal one. Nodes whose memory is returned stay, since the caller may write to
    it, and so do random numbers and uninitialized memory. A node that mutates memory is a barrier: no node
    before it replaces one after it."""
    returned = _storages(next(n for n in graph.nodes if n.op == "output").all_input_nodes)
    first_of: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if not _pure(node.target):
            first_of.clear()
            continue
        if _is_nondeterministic(node) or _storages([node]) & returned:
            continue
        try:
            key = node.target, _key(node.args), _key(node.kwargs), _result_key(node.meta.get("val"))
        except NotComparable:
            continue
        first = first_of.setdefault(key, node)
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)


def _storages(nodes: list[Node]) -> set[int]:
    """The memory behind tensors of nodes."""
    values = [x for n in nodes for x in _leaves(n.meta.get("val")) if isinstance(x, torch.Tensor)]
    return {x.untyped_storage()._cdata for x in values if x.layout == torch.strided}


def _leaves(value: Any) -> list[Any]:
    return [x for y in value for x in _leaves(y)] if isinstance(value, (tuple, list)) else [value]


def _pure(target: Any) -> bool:
    """Whether an operator mutates no argument."""
    if isinstance(target, torch._ops.OpOverload):
        return target.namespace in _NAMESPACES and not target._schema.is_mutable
    return _of_sizes(target)


def _of_sizes(target: Callable[..., Any] | str) -> bool:
    return target is operator.getitem or getattr(target, "__module__", None) in _MODULES


def _is_nondeterministic(node: Node) -> bool:
    """Whether two calls may have different results, or the node is there for its side effect."""
    target, value = node.target, node.meta.get("val")
    if value is None:
        return True
    if not isinstance(target, torch._ops.OpOverload):
        return False
    random = torch.Tag.nondeterministic_seeded in target.tags
    return random or target.name().partition("::")[2].startswith(_UNINITIALIZED)


def _key(x: Any) -> Any:
    """A hashable form of an argument; 1, 1.0 and True differ in it, and so do 0.0 and -0.0."""
    if isinstance(x, (tuple, list)):
        return tuple(map(_key, x))
    if isinstance(x, dict):
        return tuple((name, _key(y)) for name, y in sorted(x.items()))
    if isinstance(x, slice):
        return "slice", _key(x.start), _key(x.stop), _key(x.step)
    if isinstance(x, SYMBOLIC):
        return type(x), x.node.expr
    if isinstance(x, (bool, int, float, complex)):
        return type(x), repr(x)
    settings = (torch.dtype, torch.device, torch.layout, torch.memory_format)
    if x is None or isinstance(x, (Node, str, *settings)):
        return x
    raise NotComparable(f"an argument is {with_article(type(x).__name__)}")


def _result_key(value: Any) -> Any:
    """Shapes and types of a result for comparison; sizes that depend on data differ from node to node."""
    if isinstance(value, (tuple, list)):
        return tuple(map(_result_key, value))
    if not isinstance(value, torch.Tensor):
        return _key(value)
    if value.layout != torch.strided:
        raise NotComparable(f"a tensor is {value.layout}")
    sizes = *value.shape, *value.stride(), value.storage_offset()
    return (expressions(sizes), value.dim(), value.dtype, value.device, value.is_conj(), value.is_neg())
