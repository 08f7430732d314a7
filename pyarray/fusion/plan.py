"""From the graph of a traced function to launches: which nodes one kernel computes, and its text."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import shapes
from .._core import CallPlan
from ..api.core.ufunc import result_layout
from ..api.numpy.array_queries import may_share_memory
from ..api.standard.manipulation import broadcast_to
from ..array import STRIDED, ndarray
from . import axis_split, fused_launch
from .axis_split import SplitLayout
from .fused_launch import Result
from .kernel_text import Element, number_types
from .tracing import Apply, Leaf, Node, NumberTracer, Reduce, Trace, View

Chain = tuple[Node, ...]  # views of an operand, and operations to whose shape it is broadcast, in order


class NotFusable(Exception):
    """Not fusable for these arguments (empty arrays, numbers or shapes that don't fit); run eagerly."""


class Environment:
    """The arrays and numbers of one launch."""

    def __init__(self, arrays: list[ndarray], numbers: Sequence[Any], position_of: Callable[[Node], int]):
        self.arrays, self.numbers, self.position_of = arrays, numbers, position_of
        # Of one launch, whose arrays and numbers don't change.
        self._shapes: dict[Node, tuple[int, ...]] = {}

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

    def operands(self, lowering: Lowering, positions: Sequence[int | None]) -> list[ndarray]:
        """The arrays that a kernel is launched with."""
        return [
            self.arrays[position] if position is not None else self.copied(*lowering.operands[k])
            for k, position in enumerate(positions)
        ]

    def values(self, lowering: Lowering) -> list[Any]:
        """The numbers that a kernel is launched with."""
        return [x.value(self) for x in lowering.numbers]

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
    """One launch. `positions` are those of the operands among a launch's arrays, None for one that is copied;
    `divided` are numbers of operands whose index is divided, `short` of those that are copied since their rows
    are short; `result` is the only result of an elementwise step, which may be written to `out`."""

    lowering: Lowering
    positions: tuple[int | None, ...]
    run: Callable[..., list[ndarray]]
    divided: Collection[int] = ()
    short: Collection[int] = ()
    result: Result | None = None

    def __call__(self, environment: Environment, out: ndarray | None = None) -> list[ndarray]:
        """Its results: in `out` where that has the layout and is no operand's memory."""
        operands = environment.operands(self.lowering, self.positions)
        values = environment.values(self.lowering)
        if out is None or not out._writeable or self.result != (out._shape, out._strides, out._dtype):
            return self.run(operands, values)
        if out.device is operands[0].device and not any(may_share_memory(out, x) for x in operands):
            return self.run(operands, values, out)
        return self.run(operands, values)


@dataclass(frozen=True, eq=False)
class Run:
    """All launches for arguments of known shapes and strides. An output is a result of a step, the one whose
    position is in `order`, or a view of a reduction, in `views_of_reductions`."""

    steps: tuple[Step, ...]
    views_of_reductions: dict[int, tuple[Node, Chain]]
    order: tuple[int, ...]

    def __call__(self, environment: Environment, out: ndarray | None = None) -> list[ndarray]:
        arrays = environment.arrays
        for step in self.steps:
            arrays += step(environment, out if step is self.steps[-1] else None)
        views = self.views_of_reductions
        return [
            environment.copied(*views[k]) if k in views else arrays[position] for k, position in enumerate(self.order)
        ]


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
        self.shaped_by_numbers = any(isinstance(x, NumberTracer) and x.scalars for x in parts)

    def _position(self, node: Node) -> int:
        if not isinstance(node, Leaf):
            return self._positions[node]
        return node.position if node.position >= 0 else self._trace.arguments - node.position - 1

    def name_of(self, leaf: Node, arguments: Sequence[str]) -> str:
        """The name of an operand in a report."""
        position, count = self._position(leaf), len(arguments) + len(self._trace.captured)
        if position < len(arguments):
            return arguments[position]
        return "a captured array" if position < count else f"the result of {position - count + 1}"

    def ends(self, run: Run) -> list[Reduce | None]:
        """The reduction that ends each launch, None for an elementwise one."""
        return [*self._reductions, *[None] * (len(run.steps) - len(self._reductions))]

    def environment(self, arrays: Sequence[ndarray], numbers: Sequence[Any]) -> Environment:
        """The environment of a call with these arguments. Raises `NotFusable`."""
        environment = Environment([*arrays, *self._trace.captured], numbers, self._position)
        for number, low, high in self._trace.limits:
            if not low <= number.value(environment) <= high:
                raise NotFusable
        return environment

    def prepare(self, environment: Environment) -> Run:
        """The function that computes the outputs for arguments of these shapes and strides. Raises `NotFusable`."""
        steps: list[Step] = []
        for node in self._reductions:
            steps.append(self._step(environment, [node.source], node))
            environment.arrays += steps[-1](environment)
        last = len(environment.arrays)
        views = {k: chain for k, node in enumerate(self._outputs) if (chain := _of_reduction(node))}
        order: dict[int, int] = {}
        for group in self._groups(environment, views):
            steps.append(self._step(environment, [self._outputs[k] for k in group], None))
            order |= {k: last + n for n, k in enumerate(group, len(order))}

        return Run(tuple(steps), views, tuple(order.get(k, -1) for k in range(len(self._outputs))))

    def call_plan(self, run: Run, operands: int, kind: type | None) -> CallPlan | None:
        """The plan of calls whose arguments are these operands and numbers: one launch that takes them as they are.
        None where there is more to do. The outputs are returned as `kind`, None: the only one."""
        step = run.steps[0]
        views = run.views_of_reductions
        is_direct = not views or [chain for _, chain in views.values()] == [()]
        if len(run.steps) > 1 or self._trace.limits or self._trace.captured or not is_direct:
            return None
        positions = [k for k in step.positions if k is not None]
        numbers = [x.argument for x in step.lowering.numbers if x.argument is not None]
        everything = len(positions) == len(step.positions) and len(numbers) == len(step.lowering.numbers)
        if not everything or self.shaped_by_numbers or not isinstance(step.run, fused_launch.BoundRun):
            return None
        return step.run.plan(operands, positions, numbers, kind)

    def _groups(self, environment: Environment, views: Container[int]) -> list[list[int]]:
        """Numbers of the outputs that are computed together: those of one shape."""
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for k, node in enumerate(self._outputs):
            if k not in views:
                by_shape.setdefault(environment.shape(node), []).append(k)
        return list(by_shape.values())

    def _step(self, environment: Environment, nodes: Sequence[Node], reduction: Reduce | None) -> Step:
        """How nodes of one shape are computed, or the reduction of one."""
        lowering, shape = self._lowered(*nodes), environment.shape(nodes[0])
        if 0 in shape or not lowering.operands:
            raise NotFusable
        device, element = self._trace.device, lowering.element
        layouts: list[Any] = [environment.split_layout(*x) for x in lowering.operands]
        copied = {k for k, x in enumerate(layouts) if x is None}  # no strides show them
        _copy(copied, layouts, lowering, environment)
        split, divided, short = fused_launch.split_axes(shape, layouts), set[int](), set[int]()
        if split is None:  # an axis can't be cut for all of these
            cut = {k for k, x in enumerate(layouts) if any(len(axis) > 1 for axis in x.axes)}
            grid = device.driver.grid
            if reduction is None:
                cheap = fused_launch.divides_cheaply(layouts, grid)
            else:
                cheap = fused_launch.divides_rarely(shape, reduction.axes, layouts, grid)
            divided, short = (cut, short) if cheap else (divided, cut)
            if not cheap:
                _copy(short, layouts, lowering, environment)
                split = fused_launch.split_axes(shape, layouts)
        positions = [
            None if k in copied | short else self._position(leaf) for k, (leaf, _) in enumerate(lowering.operands)
        ]
        offsets = [x.offset for x in layouts]
        sizes = [leaf.dtype.itemsize for leaf, _ in lowering.operands]
        if reduction is None:
            results = [Result(shape, *_layout(shape, x, lowering, environment), x.dtype) for x in nodes]
            if split is None:
                launch = fused_launch.divided_launch(element, results, layouts, device)
            else:
                launch = fused_launch.map_launch(element, results, split, offsets, sizes, device)
        else:
            out = environment.shape(reduction)
            result = Result(out, shapes.contiguous_strides(out, reduction.dtype.itemsize), reduction.dtype)
            what = fused_launch.Reduction(element, reduction.op, reduction.axes, result, reduction.kind, device)
            if split is None:
                launch = fused_launch.divided_reduction(what, shape, layouts)
            else:
                launch = fused_launch.reduce_launch(what, split, offsets)
        operands, numbers = environment.operands(lowering, positions), environment.values(lowering)
        only = launch.results[0] if reduction is None and len(nodes) == 1 else None
        run = launch.prepared(operands, numbers)
        return Step(lowering, tuple(positions), run, divided, short, only)


def _copy(positions: Iterable[int], layouts: list[Any], lowering: Lowering, environment: Environment) -> None:
    """Copies operands behind their chains."""
    for k in positions:
        array = environment.copied(*lowering.operands[k])
        layouts[k] = axis_split.split_layout(array._shape, array._strides)


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
