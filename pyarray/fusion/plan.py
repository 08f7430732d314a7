"""From the graph of a traced function to launches: which nodes one kernel computes, and its text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import shapes
from ..api.core.ufunc import result_layout
from ..array import STRIDED, ndarray
from ..array_convert import to_device
from ..jit.replay import Capture
from . import axis_split, fused_launch
from .environment import Environment, NotFusable
from .fused_launch import Result
from .lowering import Chain, Lines, Lowering
from .row_groups import RowGroup, RowLowering, groups_of, nearest_reductions, row_launch
from .tracing import Leaf, Node, NumberTracer, Reduce, Trace, View


@dataclass(frozen=True, eq=False)
class Step:
    """What one launch did: `divided` are numbers of operands whose index is divided, `unseen` of those that are
    copied since no strides show them, `short` since their rows are short. `reductions` end it, or if it goes by
    `rows`, stand in it."""

    lowering: Lines
    reductions: tuple[Reduce, ...]
    rows: bool
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
        self._lowered_rows = functools.cache(functools.partial(RowLowering, trace.name))
        self._groups_of_rows = groups_of(self._reductions)
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

    def name_of(self, leaf: Node, arguments: Sequence[str], steps: Sequence[Step]) -> str:
        """The name of an operand in a report."""
        if isinstance(leaf, Reduce):
            return f"the result of {next(k for k, step in enumerate(steps, 1) if leaf in step.reductions)}"
        position = self._position(leaf)
        return arguments[position] if position < len(arguments) else "a captured array"

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
        run = _Run(environment, out, capture)
        environment.arrays += [None] * len(self._reductions)  # those whose results are needed in memory
        for group in self._groups_of_rows:
            if not self._run_rows(run, group):
                for r in group.reductions:
                    (environment.arrays[self._positions[r]],) = self._launch(run, [r.source], r)
        run.made |= {
            k: environment.copied(*chain) for k, node in enumerate(self._outputs) if (chain := _of_reduction(node))
        }
        for numbers in self._groups(environment, run.made):
            results = self._launch(run, [self._outputs[k] for k in numbers], None)
            run.made |= zip(numbers, results, strict=True)
        if capture is not None:
            capture.computed = self._computed(environment)
        return [run.made[k] for k in range(len(self._outputs))], run.steps

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

    def _run_rows(self, run: _Run, group: RowGroup) -> bool:
        """Computes a group of reductions by one kernel, with the outputs that it can give. Whether it could."""
        environment, device = run.environment, self._trace.device
        shape = group.shape(environment) if group.can_be_rows() else None
        if shape is None:
            return False
        last = self._reductions.index(group.reductions[-1])
        given = {
            k: node
            for k, node in enumerate(self._outputs)
            if k not in run.made and not _of_reduction(node) and self._is_of_rows(environment, group, node, last)
        }
        if not group.pays(shape, device.driver, len(given)):
            return False
        others = [node for k, node in enumerate(self._outputs) if k not in given]
        used = nearest_reductions([*others, *(r.source for r in self._reductions[last + 1 :])])
        stored = tuple(r for r in group.reductions if r in used)
        outputs = tuple((node, environment.shape(node) == shape) for node in given.values())
        lowering = self._lowered_rows(group, stored, outputs)
        operands = _Operands(environment, lowering)
        unseen = operands.copy(k for k, x in enumerate(operands.layouts) if x is None)
        results = [
            Result(kept := environment.shape(r), shapes.contiguous_strides(kept, r.dtype.itemsize), r.dtype)
            for r in stored
        ]
        results += [_result(environment, node, lowering) for node in given.values()]
        launch = row_launch(lowering.element, results, shape, group.axes, operands.layouts, device)
        if launch is None:
            return False
        run.steps.append(Step(lowering, group.reductions, True, (), unseen, ()))
        arrays = run.launch(launch, lowering, operands, len(self._outputs) == len(results) == 1)
        for r, array in zip(stored, arrays, strict=False):
            environment.arrays[self._positions[r]] = array
        run.made |= zip(given, arrays[len(stored) :], strict=True)
        return True

    def _is_of_rows(self, environment: Environment, group: RowGroup, node: Node, last: int) -> bool:
        """Whether a node is computed of each element or each row of a group, when the reductions up to `last` are."""
        if node.ndim > group.ndim or next(group.uses(node, chain := group.chain(node)), None) is None:
            return False
        shape = environment.shape(group.reductions[0].source)
        if environment.shape(node) not in (shape, *shapes.reduced(shape, group.axes)):
            return False
        is_known = all(r in self._reductions[: last + 1] for r in nearest_reductions([node]))
        return is_known and group.is_by_rows(environment, node, chain)

    def _groups(self, environment: Environment, views: Container[int]) -> list[list[int]]:
        """Numbers of the outputs that are computed together: those of one shape."""
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for k, node in enumerate(self._outputs):
            if k not in views:
                by_shape.setdefault(environment.shape(node), []).append(k)
        return list(by_shape.values())

    def _launch(self, run: _Run, nodes: Sequence[Node], reduction: Reduce | None) -> list[ndarray]:
        """Computes nodes of one shape, or the reduction of one."""
        environment = run.environment
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
            results = [_result(environment, x, lowering) for x in nodes]
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
        reductions = () if reduction is None else (reduction,)
        run.steps.append(Step(lowering, reductions, False, divided, unseen, short))
        return run.launch(launch, lowering, operands, reduction is None and len(self._outputs) == 1)


class _Operands:
    """The arrays that a kernel is launched with, and their layouts: None where no strides show one."""

    def __init__(self, environment: Environment, lowering: Lines):
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


@dataclass
class _Run:
    """One call: `steps` are what was launched, `made` the outputs that there are, by their numbers. The only output is
    written to `out`, where that has its layout and is no operand's memory. `capture` is told the launch's numbers."""

    environment: Environment
    out: ndarray | None
    capture: Capture | None
    steps: list[Step] = field(default_factory=list)
    made: dict[int, ndarray] = field(default_factory=dict)

    def launch(self, launch: fused_launch.Launch, lowering: Lines, operands: _Operands, is_only: bool) -> list[ndarray]:
        """The results of a launch; `is_only`: it has that of the call."""
        environment = self.environment
        numbers = [x.value(environment) for x in lowering.numbers]
        if self.capture is not None:
            self.capture.numbers = [environment.number_of(x) for x in lowering.numbers]
        out = self.out if is_only and launch.can_write_to(self.out, operands.arrays) else None
        return launch.run(operands.arrays, numbers, out)


def _test(limits: Iterable[tuple[NumberTracer, float, float]], environment: Environment) -> None:
    """Raises `NotFusable` where a number is out of its limits."""
    if not all(low <= number.value(environment) <= high for number, low, high in limits):
        raise NotFusable


def _result(environment: Environment, node: Node, lowering: Lines) -> Result:
    """An output, laid out as the operands of its shape are where all of them agree."""
    shape = environment.shape(node)
    arrays = [environment.arrays[environment.position_of(leaf)] for leaf, chain in lowering.operands if not chain]
    same_shape = [a for a in arrays if a._shape == shape]
    like = tuple(a._strides for a in same_shape) if all(a._key & STRIDED for a in same_shape) else ()
    return Result(shape, result_layout(shape, node.dtype.itemsize, like)[0], node.dtype)


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
