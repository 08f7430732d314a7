"""From the graph of a traced function to launches: which nodes one kernel computes, and its text."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import shapes
from ..api.core.ufunc import result_layout
from ..api.numpy.array_queries import may_share_memory
from ..api.standard.manipulation import broadcast_to
from ..array import STRIDED, ndarray
from . import axis_split, fused_launch
from .axis_split import Spread
from .fused_launch import Result
from .kernel_text import Element, number_types
from .tracing import Apply, Leaf, Node, NumberTracer, Reduce, Trace, View

Chain = tuple[Node, ...]  # how an operand is seen: views, and operations to whose shape it is broadcast


class NotFusable(Exception):
    """A launch that the plain function must answer: empty arrays, numbers and shapes that don't fit."""


class Environment:
    """The arrays and numbers of one launch."""

    def __init__(self, arrays: list[ndarray], numbers: Sequence[Any], place: Callable[[Node], int]):
        self.arrays, self.numbers, self.place = arrays, numbers, place
        # Of one launch, whose arrays and numbers don't change.
        self._shapes: dict[Node, tuple[int, ...]] = {}

    def shape(self, node: Node) -> tuple[int, ...]:
        """Sizes of a node's axes."""
        if node not in self._shapes:
            self._shapes[node] = self._shape(node)
        return self._shapes[node]

    def _shape(self, node: Node) -> tuple[int, ...]:
        if isinstance(node, Leaf):
            return self.arrays[self.place(node)]._shape
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
        return tuple(self._known(x) for x in view.items)

    def _known(self, item: Any) -> Any:
        if isinstance(item, slice):
            return slice(self._known(item.start), self._known(item.stop), self._known(item.step))
        return item.value(self) if isinstance(item, NumberTracer) else item

    def spread(self, leaf: Node, chain: Chain) -> Spread | None:
        """An operand's elements as its chain shows them; None where that takes a copy."""
        array = self.arrays[self.place(leaf)]
        seen: Spread | None = axis_split.spread(array._shape, array._strides)
        for step in chain:
            if seen is None:
                return None
            if not isinstance(step, View) or step.how == "broadcast":
                seen = axis_split.broadcast(seen, self.shape(step))
            elif step.how == "permute":
                seen = Spread(seen.offset, tuple(seen.axes[k] for k in step.items))
            elif step.how == "index":
                seen = axis_split.indexed(seen, self.items(step))
            else:
                seen = axis_split.reshaped(seen, self.shape(step))
        return seen

    def operands(self, lowering: Lowering, places: Sequence[int | None]) -> list[ndarray]:
        """The arrays that a kernel is given."""
        return [
            self.arrays[position] if position is not None else self.copied(*lowering.operands[k])
            for k, position in enumerate(places)
        ]

    def values(self, lowering: Lowering) -> list[Any]:
        """The numbers that a kernel is given."""
        return [x.value(self) for x in lowering.numbers]

    def copied(self, leaf: Node, chain: Chain) -> ndarray:
        """An operand as its chain shows it, by views and copies of arrays."""
        array: Any = self.arrays[self.place(leaf)]
        for step in chain:
            if not isinstance(step, View) or step.how == "broadcast":
                array = broadcast_to(array, self.shape(step))
            elif step.how == "permute":
                array = array.transpose(step.items)
            elif step.how == "index":
                array = array[(*self.items(step), ...)]
            else:
                array = array.reshape(self.shape(step))
        seen: ndarray = array
        return seen


class Lowering:
    """The text of what one kernel computes: `nodes` from `operands` and `numbers`."""

    def __init__(self, name: str, nodes: Sequence[Node]):
        self.operands: list[tuple[Node, Chain]] = []
        self.numbers: list[NumberTracer] = []
        self.operations: list[str] = []  # names of what is computed, one after the other
        self._lines: list[str] = []
        # Of one lowering.
        self._scope: dict[str, Any] = {}
        self._known: dict[tuple[Node, Chain], str] = {}
        self._fresh = itertools.count()
        results = tuple(f"{self._dtype(x.dtype)}({self._value(x, ())})" for x in nodes)
        types = tuple(x._weak_type for x in self.numbers)
        self._scope |= number_types(types)
        self.element = Element(
            f"fused_{name}" if name.isidentifier() else "fused",
            tuple(self._lines),
            results,
            len(self.operands),
            types,
            self._scope,
        )

    def _dtype(self, dtype: Any) -> str:
        self._scope[f"{dtype.name}_t"] = dtype
        return f"{dtype.name}_t"

    def _value(self, node: Node, chain: Chain) -> str:
        if (node, chain) not in self._known:
            self._known[node, chain] = self._made(node, chain)
        return self._known[node, chain]

    def _made(self, node: Node, chain: Chain) -> str:
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
    """One launch. `places` are those of the operands among a launch's arrays, None for one that is copied;
    `divided` are numbers of operands whose elements are found by divisions, `short` of those that are copied
    since that takes less time; `result` is what it makes, where it can be written elsewhere."""

    lowering: Lowering
    places: tuple[int | None, ...]
    run: Callable[..., list[ndarray]]
    divided: Collection[int] = ()
    short: Collection[int] = ()
    result: Result | None = None

    def __call__(self, environment: Environment, out: ndarray | None = None) -> list[ndarray]:
        """What it makes: in `out` where that is laid out so, and is no operand's memory."""
        operands = environment.operands(self.lowering, self.places)
        values = environment.values(self.lowering)
        if out is None or not out._writeable or self.result != (out._shape, out._strides, out._dtype):
            return self.run(operands, values)
        if out.device is operands[0].device and not any(may_share_memory(out, x) for x in operands):
            return self.run(operands, values, out)
        return self.run(operands, values)


@dataclass(frozen=True, eq=False)
class Run:
    """All launches for arguments of known shapes and strides. An output is what a step made (its place in
    `order`), or a view of a reduction (`shown`)."""

    steps: tuple[Step, ...]
    shown: dict[int, tuple[Node, Chain]]
    order: tuple[int, ...]

    def __call__(self, environment: Environment, out: ndarray | None = None) -> list[ndarray]:
        arrays = environment.arrays
        for step in self.steps:
            arrays += step(environment, out if step is self.steps[-1] else None)
        shown = self.shown
        return [
            environment.copied(*shown[k]) if k in shown else arrays[place]
            for k, place in enumerate(self.order)
        ]


class Plan:
    """What a function does with arguments of these types."""

    def __init__(self, trace: Trace, outputs: Sequence[Node]):
        self._trace, self._outputs = trace, tuple(outputs)
        needed = _needed(outputs)
        self._reductions = [r for r in trace.reductions if r in needed]
        first = trace.arguments + len(trace.captured)
        self._places: dict[Node, int] = {r: first + k for k, r in enumerate(self._reductions)}
        # Of one plan: nodes are compared by identity and hold what the text is made of.
        self._lowered = functools.cache(lambda *nodes: Lowering(trace.name, nodes))
        parts = [p for n in needed if isinstance(n, View) for item in n.items for p in _parts(item)]
        self.shaped_by_numbers = any(isinstance(x, NumberTracer) and x.scalars for x in parts)

    def _place(self, node: Node) -> int:
        if not isinstance(node, Leaf):
            return self._places[node]
        return node.place if node.place >= 0 else self._trace.arguments - node.place - 1

    def name_of(self, leaf: Node, arguments: Sequence[str]) -> str:
        """What a reader calls an operand."""
        position, count = self._place(leaf), len(arguments) + len(self._trace.captured)
        if position < len(arguments):
            return arguments[position]
        return "a captured array" if position < count else f"the result of {position - count + 1}"

    def ends(self, run: Run) -> list[Reduce | None]:
        """The reduction that ends each launch, None for an elementwise one."""
        return [*self._reductions, *[None] * (len(run.steps) - len(self._reductions))]

    def environment(self, arrays: Sequence[ndarray], numbers: Sequence[Any]) -> Environment:
        """For these arguments. Raises `NotFusable`."""
        environment = Environment([*arrays, *self._trace.captured], numbers, self._place)
        for number, low, high in self._trace.limits:
            if not low <= number.value(environment) <= high:
                raise NotFusable
        return environment

    def prepare(self, environment: Environment) -> Run:
        """What computes the outputs of arguments of these shapes and strides. Raises `NotFusable`."""
        steps: list[Step] = []
        for node in self._reductions:
            steps.append(self._step(environment, [node.source], node))
            environment.arrays += steps[-1](environment)
        last = len(environment.arrays)
        shown = {k: chain for k, node in enumerate(self._outputs) if (chain := _of_reduction(node))}
        order: dict[int, int] = {}
        for group in self._groups(environment, shown):
            steps.append(self._step(environment, [self._outputs[k] for k in group], None))
            order |= {k: last + n for n, k in enumerate(group, len(order))}

        return Run(tuple(steps), shown, tuple(order.get(k, -1) for k in range(len(self._outputs))))

    def quick(self, run: Run, args: Sequence[Any]) -> Callable[[Sequence[Any]], list[ndarray]] | None:
        """The way for plain arguments: the launch itself, where there is but one and it takes them as they
        are."""
        step = run.steps[0]
        is_direct = [chain for _, chain in run.shown.values()] == [()] if run.shown else True
        if len(run.steps) > 1 or self._trace.limits or self._trace.captured or not is_direct:
            return None
        if not all(isinstance(x, ndarray) or type(x) in (int, float, complex) for x in args):
            return None
        arrays = [k for k, x in enumerate(args) if isinstance(x, ndarray)]
        numbers = [k for k, x in enumerate(args) if not isinstance(x, ndarray)]
        names = [x.argument for x in step.lowering.numbers]
        if None in step.places or None in names:
            return None
        picked = ", ".join(f"args[{arrays[position]}]" for position in step.places if position is not None)
        passed = ", ".join(f"args[{numbers[k]}]" for k in names if k is not None)
        text = f"lambda args: run(({picked},), ({passed}{',' if passed else ''}))"
        function: Callable[[Sequence[Any]], list[ndarray]] = eval(text, {"run": step.run})
        return function

    def _groups(self, environment: Environment, shown: Container[int]) -> list[list[int]]:
        """Numbers of the outputs that are computed together: those of one shape."""
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for k, node in enumerate(self._outputs):
            if k not in shown:
                by_shape.setdefault(environment.shape(node), []).append(k)
        return list(by_shape.values())

    def _step(self, environment: Environment, nodes: Sequence[Node], reduction: Reduce | None) -> Step:
        """How nodes of one shape are computed, or the reduction of one."""
        lowering, shape = self._lowered(*nodes), environment.shape(nodes[0])
        if 0 in shape or not lowering.operands:
            raise NotFusable
        device, element = self._trace.device, lowering.element
        spreads: list[Any] = [environment.spread(*x) for x in lowering.operands]
        copied = {k for k, x in enumerate(spreads) if x is None}  # no strides show them
        _copy(copied, spreads, lowering, environment)
        columns, divided, short = fused_launch.columns_of(shape, spreads), set[int](), set[int]()
        if columns is None:  # an axis can't be cut for all of these
            cut = {k for k, x in enumerate(spreads) if any(len(axis) > 1 for axis in x.axes)}
            grid = device.driver.grid
            if reduction is None:
                cheap = fused_launch.divides_cheaply(spreads, grid)
            else:
                cheap = fused_launch.divides_rarely(shape, reduction.axes, spreads, grid)
            divided, short = (cut, short) if cheap else (divided, cut)
            if not cheap:
                _copy(short, spreads, lowering, environment)
                columns = fused_launch.columns_of(shape, spreads)
        places = [
            None if k in copied | short else self._place(leaf)
            for k, (leaf, _) in enumerate(lowering.operands)
        ]
        offsets = [x.offset for x in spreads]
        sizes = [leaf.dtype.itemsize for leaf, _ in lowering.operands]
        if reduction is None:
            results = [Result(shape, *_layout(shape, x, lowering, environment), x.dtype) for x in nodes]
            if columns is None:
                launch = fused_launch.divided_launch(element, results, spreads, device)
            else:
                launch = fused_launch.map_launch(element, results, columns, offsets, sizes, device)
        else:
            out = environment.shape(reduction)
            result = Result(out, shapes.contiguous_strides(out, reduction.dtype.itemsize), reduction.dtype)
            what = element, reduction.op, reduction.axes, result, reduction.kind
            if columns is None:
                launch = fused_launch.divided_reduction(*what, shape, spreads, device)
            else:
                launch = fused_launch.reduce_launch(*what, columns, offsets, device)
        operands, numbers = environment.operands(lowering, places), environment.values(lowering)
        only = launch.results[0] if reduction is None and len(nodes) == 1 else None
        run = launch.prepared(operands, numbers)
        return Step(lowering, tuple(places), run, divided, short, only)


def _copy(which: Iterable[int], spreads: list[Any], lowering: Lowering, environment: Environment) -> None:
    """Copies operands as they are seen."""
    for k in which:
        array = environment.copied(*lowering.operands[k])
        spreads[k] = axis_split.spread(array._shape, array._strides)


def _layout(
    shape: tuple[int, ...], node: Node, lowering: Lowering, environment: Environment
) -> tuple[tuple[int, ...]]:
    """Strides of an output: as the operands of its shape are laid out where all of them agree."""
    arrays = [environment.arrays[environment.place(leaf)] for leaf, chain in lowering.operands if not chain]
    alike = [a for a in arrays if a._shape == shape]
    like = tuple(a._strides for a in alike) if all(a._key & STRIDED for a in alike) else ()
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
