"""Concatenation without copies: kernels store its operands directly in the result."""

from __future__ import annotations

import sympy
import torch
from torch.fx import Graph, Node

from .fusion import Fusion
from .fusion_group import ProductGroup
from .operators import argument
from .sizes import ZERO, expression

_cat = torch.ops.aten.cat.default


def operands_in_result(graph: Graph, fusion: Fusion) -> dict[Node, tuple[Node, sympy.Expr]]:
    """Maps a kernel's node to the concatenation that is its only user, and to its offset in the result, in
    elements. All operands of such a concatenation are in the map. They get its strides."""
    operands: dict[Node, tuple[Node, sympy.Expr]] = {}
    for node in graph.nodes:
        if node.target is not _cat:
            continue
        parts, value = node.args[0], node.meta["val"]
        if len(set(parts)) < len(parts) or not all(_fits(fusion, part, node) for part in parts):
            continue
        axis = argument(node, 1, "dim", 0) % value.dim()
        step, offset = expression(value.stride(axis)), ZERO
        for part in parts:
            part_value = part.meta["val"]
            operands[part] = node, sympy.expand(offset)
            offset += expression(part_value.shape[axis]) * step
            part.meta["val"] = value.as_strided(part_value.shape, value.stride())
    return operands


def _fits(fusion: Fusion, part: Node, node: Node) -> bool:
    part_value, value, group = part.meta["val"], node.meta["val"], fusion.of.get(part)
    if group is None or isinstance(group, ProductGroup) or part in fusion.inlined or set(part.users) != {node}:
        return False
    return value.device.type == "cpu" and part_value.dtype == value.dtype and part_value.dim() == value.dim()
