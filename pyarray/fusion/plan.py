"""From the graph of a traced function to launches: which nodes one kernel computes, and its text."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import shapes
from ..api.core.ufunc import result_layout
from ..api.standard.manipulation import broadcast_to
from ..array import STRIDED, ndarray
from ..array_convert import to_device
from ..jit.replay import Capture
from . import axis_split, fused_launch
from .axis_split import SplitLayout
from .fused_launch import Result
from .kernel_text import Element, number_types
from .tracing import Apply, Leaf, Node, NumberTracer, Reduce, Trace, View

Chain = tuple[Node, ...]  # views of an operand, and operations to whose shape it is broadcast, in order


class NotFusable(Exception):
    """Not fusable for these arguments (empty arrays, numbers or shapes that don't fit); run eagerly."""


class Environment:
    """The arrays and numbers of one call; `computed` are numbers that its launches compute of these."""

    def __init__(self, arrays: list[ndarray], numbers: Sequence[Any], position_of: Callable[[Node], int]):
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
        layout: SplitLayout | None = axis_split.split_layout(array._shape, array._strides)
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


class Lowering:
    """The text of what one kernel computes: `nodes` from `operands` and `numbers`."""

    def __init__(self, name: str, nodes: Sequence[Node]):
        self.operands: list[tuple[Node, Chain]] = []
        self.numbers: list[NumberTracer] = []
        self.operations: list[str] = []  # names of what is computed, one after the other
        self._lines: list[str] = []
        # Of one lowering.
        self._scope: dict[str, Any] = {}
        self._variables: dict[tuple[Node, Chain], str] = {}
        self._fresh = itertools.count()
        results = tuple(f"{self._dtype(x.dtype)}({self._value(x, ())})" for x in nodes)
        types = tuple(x._weak_type for x in self.numbers)
        self._scope |= number_types(types)
        name = f"fused_{name}" if name.isidentifier() else "fused"
        self.element = Element(name, tuple(self._lines), results, len(self.operands), types, self._scope)

    def _dtype(self, dtype: Any) -> str:
        self._scope[f"{dtype.name}_t"] = dtype
        return f"{dtype.name}_t"

    def _value(self, node: Node, chain: Chain) -> str:
        if (node, chain) not in self._variables:
            self._variables[node, chain] = self._emit(node, chain)
        return self._variables[node, chain]

    def _emit(self, node: Node, chain: Chain) -> str:
        if isinstance(node, View):
            return self._value(node.source, (node, *chain))
        if not isinstance(node, Apply):
            self.operands.append((node, chain))
            return f"v{len(self.operands) - 1}"
        operands = [self._operand(node, k, x, chain) for k, x in enumerate(node.operands)]
        self.operations.append(node.op.name)
        function = node.op.function
        names = [n for n, f in self._scope.items() if f is function]
        called = names[0] if names else f"f{next(self._fresh)}"
        self._scope[called] = function
        name = f"t{next(self._fresh)}"
        self._lines.append(f"{name} = {self._dtype(node.dtype)}({called}({', '.join(operands)}))")
        return name

    def _operand(self, node: Apply, position: int, x: Any, chain: Chain) -> str:
        if isinstance(x, Node):
            value = self._value(x, (node, *chain) if chain else ())
        elif isinstance(x, NumberTracer):
            value = self._number(x)
        else:
            value = f"c{next(self._fresh)}"
            self._scope[value] = x
        return value if position in node.op.raw else f"{self._dtype(node.domain)}({value})"

    def _number(self, x: NumberTracer) -> str:
        for k, number in enumerate(self.numbers):
            if number is x:
                return f"s{k}"
        self.numbers.append(x)
        return f"s{len(self.numbers) - 1}"


@dataclass(frozen=True, eq=False)
class Step:
    """What one launch did: `divided` are numbers of operands whose index is divided, `unseen` of those that are
    copied since no strides show them, `short` since their rows are short. `reduction` ends it."""

    lowering: Lowering
    reduction: Reduce | None
    divided: Collection[int]
    unseen: Collection[int]
    short: Collection[int]


class Plan:
    """What a function does with arguments of these types."""

    def __init__(self, trace: Trace, outputs: Sequence[Node]):
        self._trace, self._outputs = trace, tuple(outputs)
        needed = _needed(outputs)
        self._reductions = [r for r in trace.reductions if r in needed]
        first = trace.arguments + len(trace.captured)
        self._positions: dict[Node, int] = {r: first + k for k, r in enumerate(self._reductions)}
        # Of one plan: nodes are compared by identity and hold what the text is made of.
        self._lowered = functools.cache(lambda *nodes: Lowering(trace.name, nodes))
        parts = [p for n in needed if isinstance(n, View) for item in n.items for p in _parts(item)]
        self.captured, self._ranks = trace.captured, [x.ndim for x in trace.captured]
        self.shaped_by_numbers = any(isinstance(x, NumberTracer) and x.scalars for x in parts)

    def _position(self, node: Node) -> int:
        if not isinstance(node, Leaf):
            return self._positions[node]
        return node.position if node.position >= 0 else self._trace.arguments - node.position - 1

    def is_current(self) -> bool:
        """Whether captured arrays still have the ranks with which the function was traced: `resize` changes them."""
        return [x.ndim for x in self.captured] == self._ranks

    def name_of(self, leaf: Node, arguments: Sequence[str]) -> str:
        """The name of an operand in a report."""
        position, count = self._position(leaf), len(arguments) + len(self._trace.captured)
        if position < len(arguments):
            return arguments[position]
        return "a captured array" if position < count else f"the result of {position - count + 1}"

    def environment(self, arrays: Sequence[ndarray], numbers: Sequence[Any]) -> Environment:
        """The environment of a call with these arguments. Raises `NotFusable`."""
        captured = [to_device(x, self._trace.device) for x in self._trace.captured]
        environment = Environment([*arrays, *captured], numbers, self._position)
        _test(self._trace.limits, environment)
        return environment

    def run(
        self, environment: Environment, out: ndarray | None = None, capture: Capture | None = None
    ) -> tuple[list[ndarray], list[Step]]:
        """The outputs for these arguments and what was launched. The only output is written to
        `out`, where that has its layout and is no operand's memory. `capture` is told which numbers the launches are
        given. Raises `NotFusable`."""
        steps: list[Step] = []
        for reduction in self._reductions:
            results = self._launch(environment, [reduction.source], reduction, steps, None, capture)
            environment.arrays += results
        made: dict[int, ndarray] = {}
        for k, node in enumerate(self._outputs):
            if chain := _of_reduction(node):
                made[k] = environment.copied(*chain)
        for group in self._groups(environment, made):
            into = out if len(self._outputs) == 1 else None
            results = self._launch(environment, [self._outputs[k] for k in group], None, steps, into, capture)
            made |= zip(group, results, strict=True)
        if capture is not None:
            capture.computed = self._computed(environment)
        return [made[k] for k in range(len(self._outputs))], steps

    def _computed(self, environment: Environment) -> tuple[Callable[..., tuple[Any, ...]], int] | None:
        """The function that tests the numbers of a call and computes further ones, for arrays of these shapes."""
        computed, limits = tuple(environment.computed), [x for x in self._trace.limits if x[0].scalars]
        if not computed and not limits:
            return None

        def compute(*numbers: Any) -> tuple[Any, ...]:
            given = environment.with_numbers(numbers)
            _test(limits, given)
            return tuple([x.value(given) for x in computed])

        environment = environment.with_numbers(())
        return compute, len(computed)

    def _groups(self, environment: Environment, views: Container[int]) -> list[list[int]]:
        """Numbers of the outputs that are computed together: those of one shape."""
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for k, node in enumerate(self._outputs):
            if k not in views:
                by_shape.setdefault(environment.shape(node), []).append(k)
        return list(by_shape.values())

    def _launch(
        self,
        environment: Environment,
        nodes: Sequence[Node],
        reduction: Reduce | None,
        steps: list[Step],
        out: ndarray | None,
        capture: Capture | None,
    ) -> list[ndarray]:
        """Computes nodes of one shape, or the reduction of one."""
        lowering, shape = self._lowered(*nodes), environment.shape(nodes[0])
        if 0 in shape or not lowering.operands:
            raise NotFusable
        device, element = self._trace.device, lowering.element
        operands = _Operands(environment, lowering)
        unseen = operands.copy(k for k, x in enumerate(operands.layouts) if x is None)
        split, divided, short = fused_launch.split_axes(shape, operands.layouts), set[int](), set[int]()
        if split is None:  # an axis can't be cut for all of these
            cut = {k for k, x in enumerate(operands.layouts) if any(len(axis) > 1 for axis in x.axes)}
            grid = device.driver.grid
            if reduction is None:
                cheap = fused_launch.divides_cheaply(operands.layouts, grid)
            else:
                cheap = fused_launch.divides_rarely(shape, reduction.axes, operands.layouts, grid)
            if cheap:
                divided = cut
            else:
                short = operands.copy(cut)
                split = fused_launch.split_axes(shape, operands.layouts)
        layouts = operands.layouts
        offsets = [x.offset for x in layouts]
        if reduction is None:
            results = [Result(shape, *_layout(shape, x, lowering, environment), x.dtype) for x in nodes]
            if split is None:
                launch = fused_launch.divided_launch(element, results, layouts, device)
            else:
                sizes = [leaf.dtype.itemsize for leaf, _ in lowering.operands]
                launch = fused_launch.map_launch(element, results, split, offsets, sizes, device)
        else:
            kept = environment.shape(reduction)
            result = Result(kept, shapes.contiguous_strides(kept, reduction.dtype.itemsize), reduction.dtype)
            what = fused_launch.Reduction(element, reduction.op, reduction.axes, result, reduction.kind, device)
            if split is None:
                launch = fused_launch.divided_reduction(what, shape, layouts)
            else:
                launch = fused_launch.reduce_launch(what, split, offsets)
        steps.append(Step(lowering, reduction, divided, unseen, short))
        numbers = [x.value(environment) for x in lowering.numbers]
        if capture is not None:
            capture.numbers = [environment.number_of(x) for x in lowering.numbers]
        into = out if reduction is None and launch.can_write_to(out, operands.arrays) else None
        return launch.run(operands.arrays, numbers, into)


class _Operands:
    """The arrays that a kernel is launched with, and their layouts: None where no strides show one."""

    def __init__(self, environment: Environment, lowering: Lowering):
        self._environment, self._operands = environment, lowering.operands
        self.arrays = [environment.arrays[environment.position_of(leaf)] for leaf, _ in lowering.operands]
        self.layouts: list[Any] = [environment.split_layout(*x) for x in lowering.operands]

    def copy(self, positions: Iterable[int]) -> set[int]:
        """Copies operands behind their chains; their positions."""
        copied = set(positions)
        for k in copied:
            self.arrays[k] = array = self._environment.copied(*self._operands[k])
            self.layouts[k] = axis_split.split_layout(array._shape, array._strides)
        return copied


def _test(limits: Iterable[tuple[NumberTracer, float, float]], environment: Environment) -> None:
    """Raises `NotFusable` where a number is out of its limits."""
    if not all(low <= number.value(environment) <= high for number, low, high in limits):
        raise NotFusable


def _layout(shape: tuple[int, ...], node: Node, lowering: Lowering, environment: Environment) -> tuple[tuple[int, ...]]:
    """Strides of an output: as the operands of its shape are laid out where all of them agree."""
    arrays = [environment.arrays[environment.position_of(leaf)] for leaf, chain in lowering.operands if not chain]
    same_shape = [a for a in arrays if a._shape == shape]
    like = tuple(a._strides for a in same_shape) if all(a._key & STRIDED for a in same_shape) else ()
    return (result_layout(shape, node.dtype.itemsize, like)[0],)


def _needed(outputs: Sequence[Node]) -> set[Node]:
    needed: set[Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node not in needed:
            needed.add(node)
            stack += [x for x in getattr(node, "operands", ()) if isinstance(x, Node)]
            stack += [node.source] if isinstance(node, (View, Reduce)) else []
    return needed


def _of_reduction(node: Node) -> tuple[Node, Chain] | None:
    """A reduction and the views of it that `node` is; None for other nodes."""
    chain: Chain = ()
    while isinstance(node, View):
        node, chain = node.source, (node, *chain)
    return (node, chain) if isinstance(node, Reduce) else None


def _parts(item: Any) -> tuple[Any, ...]:
    return (item.start, item.stop, item.step) if isinstance(item, slice) else (item,)
