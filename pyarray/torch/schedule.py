"""Schedules kernels and torch's operators in topological order, and finds the nodes that need memory."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sympy
import torch
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from . import views
from .fusion import Fusion
from .fusion_group import FusionGroup, ProductGroup
from .multipass import stored_between_passes
from .sizes import expression

Unit: TypeAlias = FusionGroup | Node


@dataclass(eq=False)
class Schedule:
    """`units` in the order in which they run; `realized` are the nodes of groups that others need."""

    fusion: Fusion
    units: list[Unit] = field(default_factory=list)
    realized: set[Node] = field(default_factory=set)
    _needed: set[Node] = field(default_factory=set)  # nodes that are run by torch
    _groups: dict[int, FusionGroup] = field(default_factory=dict)
    _defining_nodes: dict[sympy.Symbol, Node] = field(default_factory=dict)  # of numbers that depend on data

    def run(self) -> Schedule:
        """Computes the order."""
        graph = self.fusion.graph
        for node in graph.nodes:
            if node.op == "call_function":
                for symbol in _unbacked_symbols(node):
                    self._defining_nodes.setdefault(symbol, node)
        stack = [n for n in graph.nodes if n.op == "output" or (n.op == "call_function" and n.is_impure())]
        while stack:
            node = stack.pop()
            if node in self._needed:
                continue
            group = self._group_of(node)
            if group is not None:
                self.realized.add(node)
                if group.number not in self._groups:
                    self._groups[group.number] = group
                    stack += [*self.operands(group), *self._numbers(group)]
                continue
            self._needed.add(node)
            stack += [x for x in node.all_input_nodes if not is_size(x)]
            stack += self._numbers(node)
        for group in self._groups.values():
            self.realized.update(stored_between_passes(self.fusion, group, self.realized).values())
        self._order()
        return self

    def _group_of(self, node: Node) -> FusionGroup | None:
        """The group that computes a node; a constant that is needed as a tensor gets one of its own."""
        fusion = self.fusion
        if node in fusion.inlined and node not in fusion.of:
            group = FusionGroup.over(len(fusion.groups), views.shape_of(node), node.meta["val"].device, [node])
            fusion.groups.append(group)
            fusion.of[node] = group
        return fusion.of.get(node)

    def operands(self, group: FusionGroup) -> list[Node]:
        """What a group's kernel reads from memory, without the views of it."""
        return list(group.reads) if isinstance(group, ProductGroup) else self._reads(group)[0]

    def _reads(self, group: FusionGroup) -> tuple[list[Node], list[Node]]:
        """The operands of a group's kernel, and the nodes of no kernel or others' that it computes anew."""
        operands, recomputed = dict[Node, None](), list[Node]()
        stack, visited = [x for n in group.nodes for x in n.all_input_nodes], set[Node]()
        while stack:
            x = stack.pop()
            if x in visited or not isinstance(x.meta.get("val"), torch.Tensor):
                continue
            visited.add(x)
            base = self.fusion.base(x)
            if self.fusion.of.get(base) is group:
                continue
            if base in self.fusion.inlined:
                recomputed.append(base)
                stack += base.all_input_nodes
            else:
                operands[base] = None
        return list(operands), recomputed

    def _numbers(self, unit: Unit) -> list[Node]:
        """The nodes whose data-dependent numbers occur in a unit's sizes or arguments."""
        if not self._defining_nodes:
            return []
        nodes = [*unit.nodes, *self._reads(unit)[1]] if isinstance(unit, FusionGroup) else [unit]
        used = {s for n in nodes for x in (n, *n.all_input_nodes) for s in _unbacked_symbols(x)}
        nodes_of_symbols = (self._defining_nodes[s] for s in used if s in self._defining_nodes)
        return [node for node in nodes_of_symbols if node is not unit]

    def _order(self) -> None:
        order = self.fusion.order
        units: list[Unit] = [*self._groups.values(), *(n for n in self._needed if n.op == "call_function")]
        units.sort(key=lambda u: max(map(order.__getitem__, u.nodes)) if isinstance(u, FusionGroup) else order[u])
        positions = {id(u): k for k, u in enumerate(units)}
        before: list[set[int]] = [set() for _ in units]
        random: int | None = None
        for k, unit in enumerate(units):
            inputs = self.operands(unit) if isinstance(unit, FusionGroup) else unit.all_input_nodes
            for x in (*inputs, *self._numbers(unit)):
                source = self.fusion.of.get(x) if x in self.fusion.of else x
                if source is not None and id(source) in positions and positions[id(source)] != k:
                    before[k].add(positions[id(source)])
            if isinstance(unit, Node) and _is_random(unit):
                before[k] |= {random} if random is not None else set()
                random = k
            if isinstance(unit, Node) and _changes_memory(unit):
                first = order[unit]
                before[k] |= {j for j, u in enumerate(units) if j != k and _first(u, order) < first}
        after: list[list[int]] = [[] for _ in units]
        for k, earlier in enumerate(before):
            for j in earlier:
                after[j].append(k)
        waiting = [len(b) for b in before]
        ready = [k for k, n in enumerate(waiting) if not n]
        heapq.heapify(ready)
        while ready:
            k = heapq.heappop(ready)
            self.units.append(units[k])
            for j in after[k]:
                waiting[j] -= 1
                if not waiting[j]:
                    heapq.heappush(ready, j)
        assert len(self.units) == len(units), "kernels wait for each other"


def _first(unit: Unit, order: dict[Node, int]) -> int:
    return min(map(order.__getitem__, unit.nodes)) if isinstance(unit, FusionGroup) else order[unit]


def _unbacked_symbols(node: Node) -> set[sympy.Symbol]:
    value = node.meta.get("val")
    symbolic = isinstance(value, (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, tuple, list))
    return set(free_unbacked_symbols(value)) if symbolic else set()


def is_size(node: Node) -> bool:
    """Whether a node is an integer of size symbols that are known without it."""
    value: Any = node.meta.get("val")
    if node.op != "call_function" or not isinstance(value, (int, torch.SymInt)) or isinstance(value, bool):
        return False
    if isinstance(value, torch.SymInt) and free_unbacked_symbols(value):
        return not expression(value).is_Symbol
    return True


def _is_random(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags


def _changes_memory(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
