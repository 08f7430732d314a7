"""Rematerialization: nodes that several kernels compute anew instead of reading them from memory.

A pointwise node that several kernels need would be stored by one and read by the others. Where these can
compute it from what they read anyway, or from no more bytes than are saved, nobody stores it. On CPUs this leaves
out functions whose last bits depend on the loop around them (`operators.computed_once`).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.fx import Node

from . import views
from .fusion import Fusion
from .fusion_group import FusionGroup, ProductGroup
from .operator_support import CASTS
from .operators import CREATIONS, REDUCTIONS, computed_once, tensor
from .sizes import expressions, hint, product

MAX_OPERATORS = 12  # operators that are computed once more


def recompute(fusion: Fusion) -> None:
    """Adds to `fusion.inlined` the nodes that are cheaper to recompute, users before their operands."""
    for node in sorted(fusion.of, key=fusion.order.__getitem__, reverse=True):
        group = fusion.of[node]
        if isinstance(group, ProductGroup) or node in group.source or node in fusion.inlined | fusion.tables:
            continue
        users = list(_users(fusion, node))
        others = {id(u): u for u in users if isinstance(u, FusionGroup) and u is not group}
        if others and all(isinstance(u, FusionGroup) and not isinstance(u, ProductGroup) for u in users):
            leaves = _leaves(fusion, node, group)
            if leaves is not None and _pays(fusion, node, leaves, list(others.values())):
                fusion.inlined.add(node)


def _users(fusion: Fusion, node: Node) -> Iterator[FusionGroup | Node]:
    """The users of a node: groups, and nodes that are left to torch."""
    for user in node.users:
        if views.is_view(user):
            yield from _users(fusion, user)
        elif user in fusion.inlined and user in fusion.of:
            yield fusion.of[user]
            yield from _users(fusion, user)
        elif user in fusion.inlined:
            yield from _users(fusion, user)
        else:
            yield fusion.of.get(user, user)


def _leaves(fusion: Fusion, node: Node, group: FusionGroup) -> set[Node] | None:
    """The nodes to read from memory when a node is recomputed with the other elementwise nodes of its group; None
    if that takes too many operators, or one that may be computed only once."""
    leaves, visited, stack, count = set[Node](), {node}, [node], 0
    while stack:
        x = stack.pop()
        count += x.target not in CREATIONS and x.target not in CASTS
        if count > MAX_OPERATORS or computed_once(x):
            return None
        for y in x.all_input_nodes:
            if not isinstance(y.meta.get("val"), torch.Tensor) or (base := fusion.base(y)) in visited:
                continue
            visited.add(base)
            recomputed = base in fusion.inlined or (fusion.of.get(base) is group and base.target not in REDUCTIONS)
            if recomputed:
                stack.append(base)
            else:
                leaves.add(base)
    return leaves


def _pays(fusion: Fusion, node: Node, leaves: set[Node], others: list[FusionGroup]) -> bool:
    """Whether recomputing reads fewer additional bytes in the other groups than storing and loading the node would
    move."""
    saved = (1 + len(others)) * _bytes(fusion, node)
    for group in others:
        read = set[Node]().union(*map(fusion.read, group.nodes))
        saved -= sum(_bytes(fusion, x) for x in leaves - read)
    return saved >= 0


def _bytes(fusion: Fusion, node: Node) -> int:
    value = tensor(node)
    return hint(product(expressions(value.shape)), fusion.hints) * value.itemsize
