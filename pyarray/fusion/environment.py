"""The arrays and numbers of one call of a fused function, and the shapes and layouts of its nodes with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import shapes
from ..api.standard.manipulation import broadcast_to
from ..array import ndarray
from . import axis_split
from .axis_split import SplitLayout
from .lowering import Chain
from .tracing import Apply, Leaf, Node, NumberTracer, Reduce, View


class NotFusable(Exception):
    """Not fusable for these arguments (empty arrays, numbers or shapes that don't fit); run eagerly."""


class Environment:
    """The arrays and numbers of one call; `computed` are numbers that its launches compute of these."""

    def __init__(self, arrays: list[Any], numbers: Sequence[Any], position_of: Callable[[Node], int]):
        self.arrays, self.numbers, self.position_of = arrays, numbers, position_of
        self.computed: list[NumberTracer] = []
        # Of one call, whose arrays and numbers don't change.
        self._shapes: dict[Node, tuple[int, ...]] = {}

    def with_numbers(self, numbers: Sequence[Any]) -> Environment:
        """That of other numbers for arrays of the same shapes, without the arrays."""
        other = Environment([], numbers, self.position_of)
        other._shapes = self._shapes
        return other

    def shape(self, node: Node) -> tuple[int, ...]:
        """Sizes of a node's axes."""
        if node not in self._shapes:
            self._shapes[node] = self._shape(node)
        return self._shapes[node]

    def _shape(self, node: Node) -> tuple[int, ...]:
        if isinstance(node, Leaf):
            return self.arrays[self.position_of(node)]._shape
        if isinstance(node, Apply):
            return shapes.broadcast_shapes(*(self.shape(x) for x in node.operands if isinstance(x, Node)))
        if isinstance(node, Reduce):
            return shapes.reduced(self.shape(node.source), node.axes)[0]
        assert isinstance(node, View)
        shape, items = self.shape(node.source), self.items(node)
        if node.how == "permute":
            return tuple(shape[k] for k in items)
        if node.how == "index":
            return shapes.basic_index(shape, (0,) * len(shape), items)[1]
        if node.how == "broadcast":
            shapes.broadcast_strides(shape, (0,) * len(shape), items)
            return items
        return shapes.resolve_shape(items, shapes.size(shape))

    def items(self, view: View) -> tuple[Any, ...]:
        """What a view is made with, now that sizes are known."""
        return tuple(self._resolved(x) for x in view.items)

    def _resolved(self, item: Any) -> Any:
        if isinstance(item, slice):
            return slice(self._resolved(item.start), self._resolved(item.stop), self._resolved(item.step))
        return item.value(self) if isinstance(item, NumberTracer) else item

    def split_layout(self, leaf: Node, chain: Chain) -> SplitLayout | None:
        """The layout of an operand behind its chain; None where that takes a copy."""
        array = self.arrays[self.position_of(leaf)]
        return self.behind(axis_split.split_layout(array._shape, array._strides), chain)

    def behind(self, layout: SplitLayout | None, chain: Chain) -> SplitLayout | None:
        """A layout behind a chain; None where that takes a copy."""
        for step in chain:
            if layout is None:
                return None
            if not isinstance(step, View) or step.how == "broadcast":
                layout = axis_split.broadcast(layout, self.shape(step))
            elif step.how == "permute":
                layout = SplitLayout(layout.offset, tuple(layout.axes[k] for k in step.items))
            elif step.how == "index":
                layout = axis_split.indexed(layout, self.items(step))
            else:
                layout = axis_split.reshape(layout, self.shape(step))
        return layout

    def number_of(self, x: NumberTracer) -> int | None:
        """Which of the call's numbers, then of those that are computed, this is; None: it depends on none of them."""
        if x.argument is not None or not x.scalars:
            return x.argument
        for k, computed in enumerate(self.computed):
            if computed is x:
                return len(self.numbers) + k
        self.computed.append(x)
        return len(self.numbers) + len(self.computed) - 1

    def copied(self, leaf: Node, chain: Chain) -> ndarray:
        """An operand behind its chain, by views and copies of arrays."""
        array: Any = self.arrays[self.position_of(leaf)]
        for step in chain:
            if not isinstance(step, View) or step.how == "broadcast":
                array = broadcast_to(array, self.shape(step))
            elif step.how == "permute":
                array = array.transpose(step.items)
            elif step.how == "index":
                array = array[(*self.items(step), ...)]
            else:
                array = array.reshape(self.shape(step))
        result: ndarray = array
        return result
