"""Operator fusion: which nodes of a graph one kernel computes.

Nodes come in the graph's order. A node joins the group of an operand where every element that it reads there
is the one that the same iteration computes, and where no operand from outside the group needs the group's
results. Reductions join what they reduce, and what needs their results joins them where a row fits in a
cache.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.fx import Graph, Node

from . import views
from .can_fuse import MAX_NODES, NodeFusion, ProducerFusion
from .fusion_group import FusionGroup, ProductGroup
from .operator_support import CASTS, unsupported_reason
from .operators import CREATIONS, REDUCTIONS, computed_once, tensor
from .sizes import expressions, hint, product, same_shape

BROADCAST = 4  # elements for one, from which on what takes long isn't computed for each


def users(node: Node) -> Iterator[Node]:
    """The nodes that read a node, also through views."""
    for user in node.users:
        if views.is_view(user):
            yield from users(user)
        else:
            yield user


@dataclass(eq=False)
class Fusion:
    """The groups of a graph. `eager` says why nodes stay torch's own. `products` decides for each node first
    whether a matrix product begins there."""

    graph: Graph
    hints: dict[sympy.Symbol, int]
    products: Callable[[Fusion, Node], ProductGroup | None]
    groups: list[FusionGroup] = field(default_factory=list)
    of: dict[Node, FusionGroup] = field(default_factory=dict)
    inlined: set[Node] = field(default_factory=set)
    tables: set[Node] = field(default_factory=set)  # made of ranges alone, and read many times
    eager: dict[Node, str] = field(default_factory=dict)
    order: dict[Node, int] = field(default_factory=dict)
    _ends: tuple[int, list[tuple[int, int]]] | None = None

    def run(self) -> Fusion:
        """Assigns each node to a group, or leaves it to torch."""
        self.order = {node: k for k, node in enumerate(self.graph.nodes)}
        for node in self.graph.nodes:
            if node.op != "call_function" or views.is_view(node):
                continue
            if not isinstance(node.meta.get("val"), torch.Tensor):
                continue
            if node in self.of or self._product(node) or node in self.eager:
                continue
            why = unsupported_reason(node)
            if why is not None:
                self.eager[node] = why
            elif self._inline(node):
                self.inlined.add(node)
            else:
                self._assign_group(node)
        self._merge_producers()
        return self

    def base(self, node: Node) -> Node:
        """The node whose memory a chain of views shows."""
        while views.is_view(node):
            node = views.source_of(node)
        return node

    def _inline(self, node: Node) -> bool:
        """Whether each kernel that needs the node recomputes it: constants, ranges, what is made of them alone,
        and casts to wider types."""
        operands = [x for x in node.all_input_nodes if isinstance(x.meta.get("val"), torch.Tensor)]
        if node.target in REDUCTIONS:
            return False
        if node.target in CREATIONS or all(self.base(x) in self.inlined for x in operands):
            if self._is_table(node):
                self.tables.add(node)
            return not computed_once(node)
        if node.target in CASTS and len(operands) == 1:
            return self.base(operands[0]) not in self.of and tensor(operands[0]).itemsize <= tensor(node).itemsize
        return False

    def _is_table(self, node: Node) -> bool:
        """Whether a node takes long to compute, and is broadcast to many more elements than it has, like
        cosines of positions for all heads. On GPUs another kernel would take longer."""
        if not computed_once(node):
            return False
        return any(self._size(u) >= BROADCAST * self._size(node) for u in users(node) if u not in self._created_nodes)

    @functools.cached_property
    def _created_nodes(self) -> set[Node]:
        """The nodes that are made of ranges and constants alone."""
        created: set[Node] = set()
        for node in self.graph.nodes:
            operands = {x for x in node.all_input_nodes if isinstance(x.meta.get("val"), torch.Tensor)}
            if node.op != "call_function" or node.target in REDUCTIONS:
                continue
            if node.target in CREATIONS or (operands and operands <= created):
                created.add(node)
        return created

    def _size(self, node: Node) -> int:
        value = node.meta.get("val")
        shape = expressions(value.shape) if isinstance(value, torch.Tensor) else ()
        return hint(product(shape), self.hints)

    def _product(self, node: Node) -> bool:
        product = self.products(self, node)
        if product is not None:
            self.groups.append(product)
        return product is not None

    # ---- groups

    def _assign_group(self, node: Node) -> None:
        for group in self._candidates(node):
            trial = NodeFusion(self, group, node)
            if trial.fits():
                trial.commit()
                return
        self._start(node)

    def _candidates(self, node: Node) -> list[FusionGroup]:
        candidates: list[FusionGroup] = []
        for x in node.all_input_nodes:
            group = self.of.get(self.base(x))
            if group is not None and group not in candidates and not isinstance(group, ProductGroup):
                candidates.append(group)
        candidates.sort(key=lambda g: -g.number)
        shape = views.shape_of(node.args[0] if node.target in REDUCTIONS else node)  # pyright: ignore[reportArgumentType]
        bases = self.read(node)
        for group in reversed(self.groups[-8:]):  # others that read the same
            fits = group not in candidates and not isinstance(group, ProductGroup) and same_shape(group.shape, shape)
            if fits and any(bases & self.read(n) for n in group.nodes):
                candidates.append(group)
        return candidates

    def read(self, node: Node) -> set[Node]:
        """The nodes that a node reads, without views and nodes that are recomputed."""
        nodes, visited, stack = set[Node](), set[Node](), [node]
        while stack:
            bases = {self.base(x) for x in stack.pop().all_input_nodes} - visited
            visited |= bases
            stack += bases & self.inlined
            nodes |= bases - self.inlined
        return nodes

    def _start(self, node: Node) -> None:
        shape = views.shape_of(node.args[0] if node.target in REDUCTIONS else node)  # pyright: ignore[reportArgumentType]
        group = FusionGroup.over(len(self.groups), shape, tensor(node).device)
        self.groups.append(group)
        trial = NodeFusion(self, group, node)
        if not trial.fits():
            raise AssertionError(f"{node} doesn't fit a kernel of its own: {trial.why}")
        trial.commit()

    def depends(self, node: Node, group: FusionGroup) -> bool:
        """Whether `node` needs a result of `group`, through nodes outside of it."""
        first = self._first_before(group)
        visited: set[Any] = set()
        stack = [node]
        while stack:
            x = stack.pop()
            unit = self.of.get(x)
            if unit is group:
                return True
            key = unit if unit is not None else x
            if key in visited:
                continue
            visited.add(key)
            members = unit.nodes if unit is not None else [x]
            if max(self.order[m] for m in members) < first:
                continue
            stack += [p for m in members for p in m.all_input_nodes]
        return False

    def _first_before(self, group: FusionGroup) -> int:
        """The place in the graph's order before which nothing needs `group`: its first node's, or that of a
        kernel with nodes on both sides of it, which an earlier node may need."""
        if self._ends is None or self._ends[0] != len(self.of):
            order = self.order
            spans = [(order[g.nodes[-1]], order[g.nodes[0]]) for g in self.groups if g.nodes]
            self._ends = len(self.of), sorted(spans, reverse=True)
        first = self.order[group.nodes[0]] if group.nodes else len(self.order)
        for last, begin in self._ends[1]:
            if last < first:
                break
            first = min(first, begin)
        return first

    def _merge_producers(self) -> None:
        """An elementwise group that one reduction alone reads becomes part of its kernel."""
        for group in self.groups:
            if group.inner is None or not group.nodes:
                continue
            for other in {
                id(g): g
                for n in group.nodes
                for x in n.all_input_nodes
                if (g := self.of.get(self.base(x))) is not None and g is not group
            }.values():
                if other.inner is None and not isinstance(other, ProductGroup) and self._only_for(other, group):
                    self._absorb(group, other)

    def _only_for(self, other: FusionGroup, group: FusionGroup) -> bool:
        members = set(other.nodes)
        stack = [u for n in other.nodes for u in n.users]
        while stack:
            user = stack.pop()
            if user in members:
                continue
            if views.is_view(user):
                stack += list(user.users)
            elif self.of.get(user) is not group:
                return False
        return len(other.nodes) + len(group.nodes) <= MAX_NODES

    def _absorb(self, group: FusionGroup, other: FusionGroup) -> None:
        """Computes the nodes of `other` where the reductions of `group` read them, if that is one place."""
        trial = ProducerFusion(self, group, other)
        if trial.fits():
            trial.commit()
