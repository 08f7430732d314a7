"""Reductions along the same rows, and what is computed of them: one kernel, which reads each row once.

The reductions of a function that go over the same axes are a group. It is computed by rows if its sources have one
shape, if each of its results is used in the row that it is of, and if the elements of a row are neighbours in memory;
otherwise each reduction is a kernel of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import shapes
from ..driver.kernel_step import ROW_REGISTERS, ROW_SHARED
from . import axis_split
from .axis_split import SplitLayout
from .environment import Environment
from .fused_launch import Launch, Result, Window, concatenated, smallest_stride, split_axes, strides_along
from .kernel_text import pattern
from .lowering import Chain, Lines, kernel_name
from .row_kernel import RowElement, RowReduction, RowResult, is_reducible
from .tracing import Apply, Leaf, Node, Reduce, View

# Elements of a row, at most, if a block doesn't keep more: others are cut into pieces. On a grid a block has a row, and
# fewer rows don't fill it.
_MOST = 1 << 16
_MOST_OF_A_BLOCK, _MANY_ROWS = 1 << 14, 256


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Reductions over the same axes of arrays of one rank, in order."""

    reductions: tuple[Reduce, ...]
    _kept: dict[Node, View] = field(default_factory=dict)

    @property
    def axes(self) -> tuple[int, ...]:
        return self.reductions[0].axes

    @property
    def ndim(self) -> int:
        return self.reductions[0].source.ndim

    def can_be_rows(self) -> bool:
        """Whether row kernels have these reductions."""
        return bool(self.axes) and all(is_reducible(r.op, r.kind) for r in self.reductions)

    def chain(self, node: Node) -> Chain:
        """The view of a node of as many axes as are kept under which it goes with the elements."""
        if node.ndim == self.ndim:
            return ()
        if node not in self._kept:
            items = tuple(None if k in self.axes else slice(None) for k in range(self.ndim))
            self._kept[node] = View(node.dtype, self.ndim, node, "index", items)
        return (self._kept[node],)

    def shape(self, environment: Environment) -> tuple[int, ...] | None:
        """The shape of all sources whose rows are computed together; None where they aren't."""
        shape: tuple[int, ...] = environment.shape(self.reductions[0].source)
        sources = [r.source for r in self.reductions]
        if any(environment.shape(x) != shape for x in sources) or 0 in shape:
            return None
        return shape if all(self.is_by_rows(environment, x, ()) for x in sources) else None

    def is_by_rows(self, environment: Environment, node: Node, chain: Chain) -> bool:
        """Whether a node behind a chain uses the group's results in the rows that they are of."""
        full = environment.shape(self.reductions[0].source)
        for reduction, behind in self.uses(node, chain):
            shape = environment.shape(reduction)
            strides = shapes.contiguous_strides(shape, 1)
            start = axis_split.split_layout(shape, strides)
            kept = iter(start.axes)
            own = SplitLayout(0, tuple(() if k in self.axes else next(kept) for k in range(self.ndim)))
            found = environment.behind(start, behind)
            if found is None or axis_split.broadcast(found, full) != axis_split.broadcast(own, full):
                return False
        return True

    def uses(self, node: Node, chain: Chain) -> Iterator[tuple[Reduce, Chain]]:
        """The group's reductions that a node behind a chain is computed of, behind theirs."""
        visited, stack = set[tuple[Node, Chain]](), [(node, chain)]
        while stack:
            x, behind = stack.pop()
            if (x, behind) in visited:
                continue
            visited.add((x, behind))
            if isinstance(x, Reduce) and x in self.reductions:
                yield x, behind
            elif isinstance(x, View):
                stack.append((x.source, (x, *behind)))
            elif isinstance(x, Apply):
                inner = (x, *behind) if behind else ()
                stack += [(y, inner) for y in x.operands if isinstance(y, Node)]

    def pays(self, shape: tuple[int, ...], driver: Any, outputs: int) -> bool:
        """Whether one kernel is faster than one for each reduction."""
        row, grid = math.prod(shape[k] for k in self.axes), driver.grid
        many = not grid or row <= _MOST_OF_A_BLOCK or math.prod(shape) // row >= _MANY_ROWS
        short = row <= _MOST or (grid and row * self._itemsize() <= _kept_bytes(driver))
        return short and many and (outputs > 0 or len(self.reductions) > 1)

    def _itemsize(self) -> int:
        """Bytes of an element of each array of rows, of which a block keeps no more elements than of halves."""
        nodes = _computed_of(r.source for r in self.reductions)
        rows = [node for node in nodes if isinstance(node, Leaf) and node.ndim == self.ndim]
        return sum(max(node.dtype.itemsize, 2) for node in rows) or 2


def _kept_bytes(driver: Any) -> int:
    """Bytes that a block keeps of a row."""
    return ROW_REGISTERS + (ROW_SHARED if driver.most_shared() >= ROW_SHARED else 0)


def groups_of(reductions: Sequence[Reduce]) -> list[RowGroup]:
    """Those that follow each other over the same axes."""
    groups: list[list[Reduce]] = []
    for r in reductions:
        last = groups[-1][0] if groups else None
        if last is not None and (last.axes, last.source.ndim) == (r.axes, r.source.ndim):
            groups[-1].append(r)
        else:
            groups.append([r])
    return [RowGroup(tuple(group)) for group in groups]


def nearest_reductions(nodes: Iterable[Node]) -> set[Reduce]:
    """The reductions whose results nodes are computed of, or are."""
    return {node for node in _computed_of(nodes) if isinstance(node, Reduce)}


def _computed_of(nodes: Iterable[Node]) -> Iterator[Node]:
    """Nodes, and what they are computed of: not what reductions are."""
    visited, stack = set[Node](), list(nodes)
    while stack:
        node = stack.pop()
        if node in visited:
            continue
        visited.add(node)
        yield node
        if isinstance(node, View):
            stack.append(node.source)
        elif isinstance(node, Apply):
            stack += [x for x in node.operands if isinstance(x, Node)]


class RowLowering(Lines):
    """The text of what one kernel computes: the results of the `stored` reductions of a group, then `outputs`."""

    def __init__(self, name: str, group: RowGroup, stored: Sequence[Reduce], outputs: Sequence[tuple[Node, bool]]):
        super().__init__()
        self._group, reductions = group, list[RowReduction]()
        for r in group.reductions:
            reductions.append(RowReduction(self._name(r), self.value(r.source), r.op, r.kind, r.dtype))
        results = [RowResult(self._name(r), r.dtype, False) for r in stored]
        for x, of_elements in outputs:
            results.append(RowResult(self.value(x, group.chain(x)), x.dtype, of_elements))
        numbers, lines = len(self.types_of_numbers()), tuple(self.lines)
        arrays = len(self.operands)
        self.element = RowElement(
            kernel_name(name), lines, tuple(reductions), tuple(results), arrays, numbers, self.scope
        )

    def _name(self, r: Reduce) -> str:
        return f"r{self._group.reductions.index(r)}"

    def _emit(self, node: Node, chain: Chain) -> str:
        if isinstance(node, Reduce) and node in self._group.reductions:
            return self._name(node)
        return super()._emit(node, chain)


class _Rows(NamedTuple):
    """The sizes of the merged axes of rows and of elements, and the strides of each array along them."""

    sizes: tuple[int, ...]
    strides: list[tuple[int, ...]]


def row_launch(
    element: RowElement,
    results: Sequence[Result],
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    operands: Sequence[SplitLayout],
    device: Any,
) -> Launch | None:
    """The launch of a row kernel for rows along `axes` of arrays of this shape; None where the elements of a row
    aren't next to each other."""
    merged = _merged(element, results, shape, axes, operands)
    if merged is None:
        return None
    patterns = tuple(pattern(s) for s in merged.strides)
    kernel, missing = element.kernel(len(merged.sizes) - 1, patterns, device.driver.grid)
    windows: list[Window] = [
        (tuple(merged.sizes[k] for k in axes), tuple(s[k] for k in axes))
        for axes, s in zip(patterns, merged.strides, strict=True)
    ]
    sizes, offsets = tuple(merged.sizes[k] for k in missing), tuple(x.offset for x in operands)
    return Launch(kernel, device, tuple(results), tuple(windows), offsets, sizes)


def _merged(
    element: RowElement,
    results: Sequence[Result],
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    operands: Sequence[SplitLayout],
) -> _Rows | None:
    split = split_axes(shape, operands)
    if split is None:
        return None
    keep = [k for k in range(len(shape)) if k not in axes]
    outer_strides, inner_strides = list[tuple[int, ...]](), list[tuple[int, ...]]()
    inner_sizes = concatenated([split.digits[k] for k in axes])
    for stored, result in zip(element.results, results, strict=True):
        full = len(result.shape) == len(shape)
        steps = iter(result.strides)
        by_axis = [next(steps) if full or k in keep else 0 for k in range(len(shape))]
        layout = axis_split.split_layout(shape, by_axis)
        along = strides_along(layout, split.digits)
        outer_strides.append(concatenated([along[k] for k in keep]))
        inner_strides.append(concatenated([along[k] for k in axes]) if stored.of_elements else (0,) * len(inner_sizes))
    for s in split.strides:
        outer_strides.append(concatenated([s[k] for k in keep]))
        inner_strides.append(concatenated([s[k] for k in axes]))
    outer, outer_steps = shapes.collapse(concatenated([split.digits[k] for k in keep]), *outer_strides)
    inner, inner_steps = shapes.collapse(inner_sizes, *inner_strides)
    first = len(results)
    if len(inner) > 1 or smallest_stride(outer_steps[first:]) < smallest_stride(inner_steps[first:]):
        return None
    if not inner:
        inner, inner_steps = (1,), tuple((0,) for _ in inner_strides)
    return _Rows(outer + inner, [o + i for o, i in zip(outer_steps, inner_steps, strict=True)])
