"""Values that a row kernel on a CPU keeps from one pass over a row to the next.

A value that several passes need is computed anew by each, if it is exact. Others are stored by the first pass that
needs them and read by the rest: else `x == amax(x)` might hold for no element of a row.
"""

from __future__ import annotations

from collections.abc import Container

import torch
from torch.fx import Node

from .fusion import Fusion
from .fusion_group import FusionGroup
from .operators import computed_once, tensor


def stored_between_passes(fusion: Fusion, group: FusionGroup, realized: Container[Node]) -> dict[Node, Node]:
    """The nodes that several passes need and only one may compute, each with the node in whose memory it is kept:
    a result of the same type, which the last pass overwrites element by element, or its own."""
    if not group.reductions() or group.columns:
        return {}
    passes = _passes(fusion, group, realized)
    kept = [n for n in group.nodes if computed_once(n) and sum(n in needed for needed in passes) > 1]
    results = [n for n in group.nodes if n in realized and n not in group.rows and n not in kept]
    stored = dict[Node, Node]()
    for node in kept:
        hosts = (r for r in results if _same_memory(group, r, node)) if node not in realized else iter(())
        stored[node] = host = next(hosts, node)
        if host is not node:
            results.remove(host)
    return stored


def _same_memory(group: FusionGroup, result: Node, node: Node) -> bool:
    current = group.digits.current
    return tensor(result).dtype == tensor(node).dtype and current(group.index[result]) == current(group.index[node])


def _passes(fusion: Fusion, group: FusionGroup, realized: Container[Node]) -> list[set[Node]]:
    """What each pass over a row needs of the group's elements: one for each level of reductions, and the last one
    for what is stored of every element."""
    reductions = group.reductions()
    levels = sorted({group.level[r] for r in reductions})
    starts = [[x for r in reductions if group.level[r] == level for x in r.all_input_nodes] for level in levels]
    starts.append([n for n in group.nodes if n in realized and n not in group.rows and n not in group.source])
    return [_needed(fusion, group, stack) for stack in starts]


def _needed(fusion: Fusion, group: FusionGroup, stack: list[Node]) -> set[Node]:
    needed, visited = set[Node](), set[Node]()
    while stack:
        x = stack.pop()
        if not isinstance(x.meta.get("val"), torch.Tensor) or (base := fusion.base(x)) in visited:
            continue
        visited.add(base)
        of_group = fusion.of.get(base) is group and base not in group.rows and base not in group.source
        if of_group:
            needed.add(base)
        if of_group or base in fusion.inlined:
            stack += base.all_input_nodes
    return needed
