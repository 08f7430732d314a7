"""Gives contiguous strides to new results that torch traced with strides of 0, and to their views."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from . import views
from .sizes import expression


def replace_zero_strides(graph: Graph) -> None:
    """Give new results that were traced with strides of 0 those of contiguous ones: an operator's own result
    has all its elements, which may differ. Some versions of torch copy the strides of an expanded operand."""
    changed: set[Node] = set()
    for node in graph.nodes:
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor):
            continue
        if views.is_view(node) or not _owns_memory(node):
            if changed.isdisjoint(node.all_input_nodes):
                continue
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda x: x.meta["val"])
            node.meta["val"] = node.target(*args, **kwargs)
        elif value.layout == torch.strided and any(map(_is_expanded, value.shape, value.stride())):
            node.meta["val"] = torch.empty_like(value, memory_format=torch.contiguous_format)
        else:
            continue
        changed.add(node)


def _owns_memory(node: Node) -> bool:
    """Whether an operator's results have memory of their own."""
    target = node.target
    if target is views._getitem:
        source = node.args[0]
        return isinstance(source, Node) and _owns_memory(source)
    return isinstance(target, torch._ops.OpOverload) and not any(r.alias_info for r in target._schema.returns)


def _is_expanded(size: Any, stride: Any) -> bool:
    return expression(stride) == 0 and expression(size) != 1
