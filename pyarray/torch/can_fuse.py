"""Fusion rules: whether a node, or a producer group, can be fused into a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import sympy
import torch
from torch.fx import Node

from . import operators, views
from .fusion_group import FusionGroup, is_gpu
from .index import Index, Shape, broadcast, reshaped
from .operators import REDUCTIONS, reduced_axes, tensor
from .sizes import ZERO, expression, hint, product, same_shape

MAX_NODES = 96  # of a kernel
ROW_FITS = 1 << 16  # elements of a row that is read again after its reduction
# on a GPU rows of more than LONG elements, of which there are less than FEW, leave most of it idle
LONG, FEW = 1 << 11, 1 << 8


class Grouping(Protocol):
    """What is decided so far: the groups of nodes, the graph's order, the sizes that were traced."""

    of: dict[Node, FusionGroup]
    order: dict[Node, int]
    hints: dict[sympy.Symbol, int]

    def base(self, node: Node) -> Node:
        """The node at the start of a chain of views."""
        ...

    def depends(self, node: Node, group: FusionGroup) -> bool:
        """Whether `node` needs a result of `group`, through nodes outside of it."""
        ...


def row_extents(group: FusionGroup, hints: Mapping[sympy.Symbol, int]) -> tuple[int, int]:
    """How many rows the group's reductions have, and of how many elements, in the call that was traced."""
    inner = set(group.inner or ())
    parts = [[n for d, n in group.digits.sizes.items() if (d in inner) == side] for side in (False, True)]
    return hint(product(parts[0]), hints), hint(product(parts[1]), hints)


class NotFusable(Exception):
    """A node can't be fused into a group; the message says why."""


class NodeFusion:
    """Whether `node` can join `group`, and what becomes of the group then."""

    def __init__(self, fusion: Grouping, group: FusionGroup, node: Node):
        self.fusion, self.group, self.node = fusion, group, node
        self.why = ""
        self.index: Index | None = None
        self.source: Index | None = None
        self.inner = group.inner
        self.row = False

    def fits(self) -> bool:
        """Whether the node can be fused; if not, `why` is the reason."""
        before = self.group.state()
        try:
            self._try()
        except NotFusable as reason:
            self.why = str(reason)
            self.group.restore(before)
            return False
        return True

    def _try(self) -> None:
        group, node, fusion = self.group, self.node, self.fusion
        if len(group.nodes) >= MAX_NODES:
            raise NotFusable("the kernel is long enough")
        if group.nodes and tensor(node).device != group.device:
            raise NotFusable("another device")
        for x in node.all_input_nodes:
            base = fusion.base(x)
            if fusion.of.get(base) is not group and group.nodes and fusion.depends(base, group):
                raise NotFusable("it needs a result of the kernel through another one")
        if node.target in REDUCTIONS:
            self._reduction()
        else:
            self._pointwise()

    def _chains(self) -> list[tuple[list[Node], Node]]:
        """Views from the node down to each operand, nearest first."""
        chains: list[tuple[list[Node], Node]] = []
        for x in self.node.all_input_nodes:
            if not isinstance(x.meta.get("val"), torch.Tensor):
                continue
            chain: list[Node] = []
            while views.is_view(x):
                chain.append(x)
                x = views.source_of(x)
            chains.append((chain, x))
        return chains

    def _index(self, shape: Shape) -> Index:
        """The index of an iteration's element in an array of `shape`."""
        group = self.group
        for chain, base in self._chains():  # where the operands lead
            if self.fusion.of.get(base) is not group or base in group.rows:
                continue
            index = self._through(chain, base)
            is_whole = product(shape) == product(group.shape)  # not of fewer elements, that are broadcast
            if index is not None and len(index) == len(shape) and is_whole:
                return group.digits.current(index)
        if same_shape(shape, group.shape):
            return group.digits.current(group.canonical)
        if product(shape) == product(group.shape):
            return reshaped(group.digits, group.canonical, group.shape, shape)
        raise NotFusable("another number of elements")

    def _through(self, chain: list[Node], base: Node) -> Index | None:
        """The index, through a chain of views of `base`, of the element that an iteration computes."""
        digits = self.group.digits
        index: Index | None = digits.current(self.group.index[base])
        for view in reversed(chain):
            index = views.view_index(view, digits, index) if index is not None else None
        return index

    def _pointwise(self) -> None:
        group, node = self.group, self.node
        shape = views.shape_of(node)
        if group.reductions() and (row := self._row_index(shape)) is not None:
            self.index, self.row = row, True
        else:
            self.index = self._index(shape)
            if group.reductions():
                self._check_row_size()
        self._check_same_iteration(self.index, shape)

    def _row_index(self, shape: Shape) -> Index | None:
        """The index of a node with one element per row: that of its operands in the group."""
        group = self.group
        chains = [pair for pair in self._chains() if self.fusion.of.get(pair[1]) is group]
        if any(base not in group.rows for _, base in chains):
            return None  # of every element, even where a row has one: it is known inside the loop only
        for chain, base in chains:
            index = self._through(chain, base)
            if (
                index is not None
                and len(index) == len(shape)
                and all((x == 0) == (n == 1) or x != 0 for x, n in zip(index, shape, strict=True))
                and product(shape) == product(group.digits.sizes[d] for d in self._outer())
            ):
                return index
        return None

    def _outer(self) -> list[sympy.Symbol]:
        self.group.current()
        return [d for d in self.group.digits.sizes if d not in (self.group.inner or ())]

    def _check_row_size(self) -> None:
        """Raises `NotFusable` for an elementwise node in a kernel that reduces, unless a pass over the same row
        can compute it after the reduction, or on a GPU each piece of a row before it."""
        group = self.group
        group.current()
        if group.columns:
            raise NotFusable("the reduction is by columns")
        if is_gpu(group.device) and not self._level():
            return
        count, row = row_extents(group, self.fusion.hints)
        if row > ROW_FITS:
            raise NotFusable("a row doesn't fit in the cache")
        if is_gpu(group.device) and row > LONG and count < FEW:
            raise NotFusable("a few long rows don't fill the device")

    def _check_same_iteration(self, index: Index, shape: Shape) -> None:
        """Raises `NotFusable` if an operand in the group is computed by another iteration."""
        group = self.group
        for chain, base in self._chains():
            if self.fusion.of.get(base) is not group:
                continue
            first = chain[0] if chain else base
            other = broadcast(index, shape, views.shape_of(first))
            for view in chain:
                other = views.source_index(view, group.digits, other)
            index_here = group.digits.current(group.index[base])
            other = group.digits.current(other)
            if any(sympy.expand(a - b) != 0 for a, b in zip(other, index_here, strict=True)):
                raise NotFusable("it reads another iteration's element")

    def _reduction(self) -> None:
        group, node = self.group, self.node
        read = node.args[0]
        assert isinstance(read, Node)
        shape, axes = views.shape_of(read), reduced_axes(node)
        index = self._index(shape)
        self._check_same_iteration(index, shape)
        index = group.digits.current(index)
        inner = set().union(*(index[k].free_symbols for k in axes)) & group.digits.sizes.keys()
        outer = set().union(*(x.free_symbols for k, x in enumerate(index) if k not in axes))
        if inner & outer:
            raise NotFusable("an iteration's axes are cut by the reduction")
        if inner != set(group.digits.sizes) - outer:
            raise NotFusable("other axes")
        ordered = tuple(d for d in group.digits.sizes if d in inner)
        group.current()
        if group.inner is not None and set(group.inner) != inner:
            raise NotFusable("another reduction")
        sides = bool(inner) and len(inner) < len(group.digits.sizes)  # axes without digits have one element
        by_columns = sides and self._by_columns(read, axes)
        if group.nodes and group.inner is not None and by_columns != group.columns:
            raise NotFusable("a reduction by another schedule")
        if by_columns:
            self._columns_fit()
        reduced = [x if k not in axes else ZERO for k, x in enumerate(index)]
        if not operators.keeps_dims(node):
            reduced = [x for k, x in enumerate(reduced) if k not in axes]
        self.source, self.index, self.row, self.inner = index, tuple(reduced), True, ordered
        self.columns = by_columns

    def _columns_fit(self) -> None:
        """Raises `NotFusable` unless one loop over all elements can do for columns. On a CPU, which goes through
        columns row by row, it may also store what is computed of each element."""
        group = self.group
        if is_gpu(group.device) and any(n not in group.source and n not in group.rows for n in group.nodes):
            raise NotFusable("elements would be stored by columns")
        if any(base in group.rows for _, base in self._chains() if self.fusion.of.get(base) is group):
            raise NotFusable("a reduction by columns of another")
        if group.rows - group.source.keys() or any(group.level[n] for n in set(group.nodes) - group.rows):
            raise NotFusable("the kernel needs the results of reductions for each element")

    def _by_columns(self, read: Node, axes: tuple[int, ...]) -> bool:
        # of axes with equal strides, one of which has one element, the last is meant
        steps = [(hint(expression(s), self.fusion.hints), -k) for k, s in enumerate(tensor(read).stride())]
        nearest = -min((x for x in steps if x[0]), default=(0, -axes[-1]))[1]
        return nearest not in axes

    def _level(self) -> int:
        """How many reductions of the group follow each other before the node."""
        group = self.group
        levels = [group.level.get(base, 0) for _, base in self._chains() if self.fusion.of.get(base) is group]
        return max(levels, default=0)

    def commit(self) -> None:
        """Adds the node to the group."""
        group, node = self.group, self.node
        assert self.index is not None
        group.nodes.append(node)
        group.index[node] = self.index
        group.level[node] = self._level() + (self.source is not None)
        if self.source is not None:
            group.source[node] = self.source
            group.inner, group.columns = self.inner, self.columns
        if self.row:
            group.rows.add(node)
        self.fusion.of[node] = group
        group.current()


class ProducerFusion:
    """Whether a kernel's reductions can compute what an elementwise group computes for them."""

    def __init__(self, fusion: Grouping, group: FusionGroup, other: FusionGroup):
        self.fusion, self.group, self.other = fusion, group, other
        self.index: dict[Node, Index] = {}

    def fits(self) -> bool:
        """Whether each element is read by exactly one iteration."""
        before = self.group.state()
        if self._each_read_once():
            return True
        self.group.restore(before)
        return False

    def _each_read_once(self) -> bool:
        group, other, fusion = self.group, self.other, self.fusion
        if other.device != group.device or not all(
            product(views.shape_of(n)) == product(group.shape) for n in other.nodes
        ):
            return False
        users = [n for n in group.nodes if n not in other.nodes]
        for node in reversed([*other.nodes, *users]):
            index = group.source.get(node) or group.index.get(node) or self.index.get(node)
            if index is None:
                return False
            top = views.shape_of(node.args[0] if node in group.source else node)  # pyright: ignore[reportArgumentType]
            for x in node.all_input_nodes:
                if not isinstance(x.meta.get("val"), torch.Tensor) or fusion.of.get(fusion.base(x)) is not other:
                    continue
                read_at = broadcast(group.digits.current(index), top, views.shape_of(x))
                while views.is_view(x):
                    read_at = views.source_index(x, group.digits, read_at)
                    x = views.source_of(x)
                read_at, previous = group.digits.current(read_at), self.index.get(x)
                if previous is not None and any(
                    sympy.expand(a - b) != 0 for a, b in zip(group.digits.current(previous), read_at, strict=True)
                ):
                    return False
                self.index[x] = read_at
        return all(n in self.index for n in other.nodes)

    def commit(self) -> None:
        """Adds the other group's nodes to this one."""
        group, other = self.group, self.other
        for node in other.nodes:
            group.index[node] = self.index[node]
            group.level[node] = 0
            self.fusion.of[node] = group
        group.nodes[:0] = other.nodes
        group.nodes.sort(key=self.fusion.order.__getitem__)
        other.nodes = []
        group.current()
