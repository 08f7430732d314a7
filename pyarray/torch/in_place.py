"""Inputs that a graph changes: a kernel stores the new values into them itself, where nothing else reads the
old ones."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from .fusion import Fusion
from .group import Product
from .sizes import expressions, same_shape
from .writer import KernelText

_copy = torch.ops.aten.copy_.default


def changed_inputs(graph: Graph, fusion: Fusion) -> dict[Node, Node]:
    """Node of a kernel → the copy of it into an input, which the kernel may do."""
    output = next(n for n in graph.nodes if n.op == "output")
    kept = set(output.all_input_nodes)
    found: dict[Node, Node] = {}
    for copy in (n for n in graph.nodes if n.target is _copy):
        into, value = copy.args[:2]
        group = fusion.of.get(value)
        if into.op != "placeholder" or group is None or isinstance(group, Product) or {into, value} & kept:
            continue
        readers = [n for n in into.users if n is not copy]
        if value in found or any(fusion.of.get(n) is not group or n in fusion.inlined for n in readers):
            continue
        a, b = into.meta["val"], value.meta["val"]
        alike = a.dtype == b.dtype and a.device == b.device
        if alike and _same(a.shape, b.shape) and _same(a.stride(), b.stride()):
            found[value] = copy
    return found


def _same(a: torch.Size | tuple[int, ...], b: torch.Size | tuple[int, ...]) -> bool:
    return same_shape(expressions(a), expressions(b))


def reads_its_own(text: KernelText, value: Node, into: Node) -> bool:
    """Whether an iteration reads no element of an input but the one that it stores of a node."""
    (out,) = (a for a in text.outputs if a.node is value)
    return out.flat is None and all(
        a.flat is None and a.window == out.window for a in text.inputs if a.node is into
    )
