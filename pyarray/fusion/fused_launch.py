"""Launches of fused kernels: the operands' axes are split alike, then merged as far as all of them allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import shapes
from ..api.numpy.array_queries import may_share_memory
from ..array import ndarray, type_key, unchecked_array
from ..dtypes import DType
from ..jit.kernel import Kernel
from ..kernels.elementwise.elementwise import map_layout
from ..kernels.reduce.reduce import COLUMN_PIECES, COLUMNS, ReduceOp, piece_count, reduce_into
from ..memory.buffer import Buffer
from . import axis_split
from .axis_split import SplitLayout
from .kernel_text import Axes, Digit, Element, pattern

Window = tuple[tuple[int, ...], tuple[int, ...]]  # shape and strides of a window


class Result(NamedTuple):
    """Layout and dtype of an array that a launch writes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType

    def allocate(self, device: Any) -> ndarray:
        """A new one."""
        size = shapes.size(self.shape)
        strided = not shapes.is_contiguous(self.shape, self.strides, self.dtype.itemsize)
        key = type_key(self.dtype, len(self.shape), strided, True, device)
        buffer = Buffer.allocate(device, size * self.dtype.itemsize)
        return unchecked_array(buffer, self.shape, self.strides, size, self.dtype, key)


MIN_ROW = 32  # elements of a row from which a division for each row is cheaper than a copy


@dataclass(frozen=True, eq=False)
class Launch:
    """A launch for operands of known shapes and strides. `windows` are those of all arrays, results first;
    `offsets`, in bytes, are the operands'; `sizes` are further arguments. `finish` computes the results from
    partial ones."""

    kernel: Kernel
    device: Any
    results: tuple[Result, ...]
    windows: tuple[Window, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    finish: Callable[[list[ndarray]], list[ndarray]] | None = None

    def run(self, operands: Sequence[ndarray], numbers: Sequence[Any], into: ndarray | None = None) -> list[ndarray]:
        """The results for these operands; the only result is written to `into`, if that is given."""
        outputs = [result.allocate(self.device) for result in self.results] if into is None else [into]
        arrays, offsets = [*outputs, *operands], [*(0 for _ in outputs), *self.offsets]
        views = [x._view(offset, *window) for x, offset, window in zip(arrays, offsets, self.windows, strict=True)]
        self.kernel(*views, *self.sizes, *numbers)
        return outputs if self.finish is None else self.finish(outputs)

    def can_write_to(self, out: ndarray | None, operands: Sequence[ndarray]) -> bool:
        """Whether `out` has the layout of the only result, and is no operand's memory."""
        if out is None or not out._writeable or out.device is not self.device:
            return False
        same = [(out._shape, out._strides, out._dtype)] == list(self.results)
        return same and not any(may_share_memory(out, x) for x in operands)


class Reduction(NamedTuple):
    """What `element` computes, of `kind`, reduced by `op` over `axes`; the shape of `result` is that of the others."""

    element: Element
    op: ReduceOp
    axes: Sequence[int]
    result: Result
    kind: DType
    device: Any


class SplitAxes(NamedTuple):
    """The finest split of the axes that the operands have, and the operands' strides along it."""

    digits: tuple[tuple[int, ...], ...]  # sizes, per axis
    strides: tuple[tuple[tuple[int, ...], ...], ...]  # per operand and axis


def split_axes(shape: Sequence[int], operands: Sequence[SplitLayout]) -> SplitAxes | None:
    """None where two operands cut an axis in ways that don't fit."""
    layouts = [axis_split.broadcast(x, shape) for x in operands]
    digits: list[tuple[int, ...]] = []
    for k, n in enumerate(shape):
        sizes = axis_split.common_refinement([[n] if n != 1 else [], *([m for m, _ in x.axes[k]] for x in layouts)])
        if sizes is None:
            return None
        digits.append(sizes)
    return SplitAxes(tuple(digits), tuple(tuple(strides_along(x, digits)) for x in layouts))


def concatenated(parts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """All of them in one."""
    return tuple(n for part in parts for n in part)


def strides_along(x: SplitLayout, digits: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Strides of an array along the digits of its axes."""
    return [tuple(s for _, s in axis_split.refine(axis, sizes)) for axis, sizes in zip(x.axes, digits, strict=True)]


def _result_strides(result: Result, digits: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return concatenated(strides_along(axis_split.split_layout(result.shape, result.strides), digits))


def map_launch(
    element: Element,
    results: Sequence[Result],
    split: SplitAxes,
    offsets: Sequence[int],
    itemsizes: Sequence[int],
    device: Any,
) -> Launch:
    """The launch of an elementwise kernel. All results have one shape, whose axes are split by `split`."""
    sizes = concatenated(split.digits)
    first, *more = [_result_strides(r, split.digits) for r in results]
    extra_outputs = [(sizes, step, r.dtype.itemsize) for step, r in zip(more, results[1:], strict=True)]
    extra_outputs += [(sizes, concatenated(s), n) for s, n in zip(split.strides, itemsizes, strict=True)]
    layout = map_layout(sizes, first, results[0].dtype.itemsize, tuple(extra_outputs))
    assert layout is not None  # sizes of 0 don't come here
    merged, patterns, tiled = layout
    kernel = element.map_kernel(len(merged[0].shape), patterns, tiled, device.driver.grid)  # type: ignore[arg-type]
    windows = tuple((w.shape, w.strides) for w in merged)
    return Launch(kernel, device, tuple(results), windows, tuple(offsets), ())


def divides_cheaply(operands: Sequence[SplitLayout], grid: bool) -> bool:
    """Whether dividing the index takes less time than copies. A loop divides once per row, and rows end where
    a digit of an operand does (`lang/delinearization.py`), so they must be long. A thread of a grid divides once."""
    ends = sum(1 / axis[-1][0] for x in operands for axis in x.axes if len(axis) > 1)
    return grid or ends * MIN_ROW <= 1


def divides_rarely(shape: Sequence[int], axes: Sequence[int], operands: Sequence[SplitLayout], grid: bool) -> bool:
    """The same for a reduction over `axes`: the innermost loop's axis is not split."""
    if not axes:
        return False
    outer, reduced, by_columns = _order(shape, axes, operands)
    last = outer[-1] if by_columns else reduced[-1]
    return grid or all(len(axis_split.broadcast(x, shape).axes[last]) < 2 for x in operands)


def divided_launch(element: Element, results: Sequence[Result], operands: Sequence[SplitLayout], device: Any) -> Launch:
    """Of an elementwise kernel whose operands cut an axis in ways that don't fit: each axis has one loop, and
    an operand's digits of it are quotients and remainders of the loop's variable."""
    shape = results[0].shape
    loops = [k for k, n in enumerate(shape) if n != 1]
    sizes = tuple(shape[k] for k in loops)
    windows = [(sizes, tuple(r.strides[k] for k in loops)) for r in results]
    patterns: list[Any] = [tuple(range(len(loops))) for _ in results[1:]]
    for axes, window in _digit_windows(operands, shape, loops):
        patterns.append(axes)
        windows.append(window)
    kernel = element.map_kernel(len(loops), tuple(patterns), False, device.driver.grid)
    return Launch(kernel, device, tuple(results), tuple(windows), tuple(x.offset for x in operands), ())


def _digit_windows(
    operands: Sequence[SplitLayout], shape: Sequence[int], loops: Sequence[int]
) -> list[tuple[Axes, Window]]:
    """For each operand, its axes under these loops, one for each digit, and its window."""
    digits = []
    for x in operands:
        axes, window = list[int | Digit](), list[tuple[int, int]]()
        operand_axes = axis_split.broadcast(x, shape).axes
        for loop, k in enumerate(loops):
            first, end = len(window), len(window) + len(operand_axes[k])
            if len(operand_axes[k]) > 1:
                axes += [Digit(loop, first, end)] * (end - first)
                window += operand_axes[k]
            elif operand_axes[k] and operand_axes[k][0][1]:
                axes.append(loop)
                window += operand_axes[k]
        digits.append((tuple(axes), (tuple(n for n, _ in window), tuple(s for _, s in window))))
    return digits


def reduce_launch(x: Reduction, split: SplitAxes, offsets: Sequence[int]) -> Launch:
    """Of a reduction."""
    keep = [k for k in range(len(split.digits)) if k not in x.axes]
    kept = concatenated([split.digits[k] for k in keep])
    result_axes = _result_strides(x.result, [split.digits[k] for k in keep])
    outer, (steps, *x_outer) = shapes.collapse(
        kept, result_axes, *(concatenated([s[k] for k in keep]) for s in split.strides)
    )
    inner, x_inner = shapes.collapse(
        concatenated([split.digits[k] for k in x.axes]),
        *(concatenated([s[k] for k in x.axes]) for s in split.strides),
    )
    if not inner:
        inner, x_inner = (1,), tuple((0,) for _ in split.strides)
    by_columns = bool(outer) and smallest_stride(x_outer) < smallest_stride(x_inner)
    launches = _Launches(x, outer, steps, inner)
    if by_columns:
        strides = [o[:-1] + i + o[-1:] for o, i in zip(x_outer, x_inner, strict=True)]
        return launches.columns(_windows(outer[:-1] + inner + outer[-1:], strides), tuple(offsets))
    strides = [o + i for o, i in zip(x_outer, x_inner, strict=True)]
    return launches.rows(_windows(outer + inner, strides), tuple(offsets))


def divided_reduction(x: Reduction, shape: Sequence[int], operands: Sequence[SplitLayout]) -> Launch:
    """As `reduce_launch`, of operands that cut an axis in ways that don't fit (`divided_launch`)."""
    kept, reduced, by_columns = _order(shape, x.axes, operands)
    steps = dict(zip((k for k in range(len(shape)) if k not in x.axes), x.result.strides, strict=True))
    outer, inner = (tuple(shape[k] for k in part) for part in (kept, reduced))
    launches = _Launches(x, outer, tuple(steps[k] for k in kept), inner)
    offsets = tuple(operand.offset for operand in operands)
    if by_columns:
        return launches.columns(_digit_windows(operands, shape, [*kept[:-1], *reduced, kept[-1]]), offsets)
    return launches.rows(_digit_windows(operands, shape, [*kept, *reduced]), offsets)


def _order(
    shape: Sequence[int], axes: Sequence[int], operands: Sequence[SplitLayout]
) -> tuple[list[int], list[int], bool]:
    """The axes that are kept, those that are reduced, and whether a kept one is walked innermost,
    since the elements of an operand are nearest along it."""
    kept = [k for k, n in enumerate(shape) if k not in axes and n != 1]
    reduced = [k for k in axes if shape[k] != 1] or list(axes[:1])
    operand_axes = [axis_split.broadcast(x, shape).axes for x in operands]
    outer, inner = (
        smallest_stride([[x[k][-1][1] for k in part if x[k]] for x in operand_axes]) for part in (kept, reduced)
    )
    return kept, reduced, bool(kept) and outer < inner


def _windows(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[tuple[Axes, Window]]:
    """Of each operand the axes along which it has a stride, and its window."""
    windows = list[tuple[Axes, Window]]()
    for s in strides:
        axes = pattern(s)
        windows.append((axes, (tuple(shape[k] for k in axes), tuple(s[k] for k in axes))))
    return windows


def smallest_stride(strides: Sequence[Sequence[int]]) -> float:
    """The distance of neighbours, of any of the arrays."""
    return min((abs(s) for steps in strides for s in steps if s), default=math.inf)


@dataclass(frozen=True, eq=False)
class _Launches:
    """The launches of a reduction, whose kept and reduced axes have these sizes; `steps` are strides of its result."""

    reduction: Reduction
    outer: tuple[int, ...]
    steps: tuple[int, ...]
    inner: tuple[int, ...]

    @property
    def accumulator(self) -> DType:
        return self.reduction.op.accumulator_type(self.reduction.kind)

    def rows(self, windows: Sequence[tuple[Axes, Window]], offsets: tuple[int, ...]) -> Launch:
        outer, total = self.outer, math.prod(self.outer + self.inner)
        pieces = piece_count(self.inner[0], math.prod(outer), total, self.reduction.device.driver.grid)
        target: Window = ((*outer, 1), (*self.steps, 0))
        partial = None if pieces == 1 else (*outer, pieces)
        schedule = "teams" if self.reduction.device.driver.grid else "rows"
        return self._launch(schedule, len(outer), target, partial, outer + self.inner, windows, offsets)

    def columns(self, windows: Sequence[tuple[Axes, Window]], offsets: tuple[int, ...]) -> Launch:
        outer, inner, grid = self.outer, self.inner, self.reduction.device.driver.grid
        blocks = math.prod(outer[:-1]) * -(-outer[-1] // (32 if grid else COLUMNS))
        total = math.prod(outer + inner)
        pieces = min(piece_count(inner[0], blocks, total, grid, COLUMN_PIECES), max(inner[0] // 8, 1))
        pieces = -(-inner[0] // -(-inner[0] // pieces))
        target: Window = ((*outer[:-1], 1, outer[-1]), (*self.steps[:-1], 0, self.steps[-1]))
        fits = pieces == 1 and self.reduction.result.dtype is self.accumulator
        partial = None if fits else (*outer[:-1], pieces, outer[-1])
        schedule, shape = "threads" if grid else "columns", outer[:-1] + inner + outer[-1:]
        return self._launch(schedule, len(outer) - 1, target, partial, shape, windows, offsets)

    def _launch(
        self,
        schedule: str,
        keep: int,
        target: Window,
        partial: tuple[int, ...] | None,
        shape: tuple[int, ...],
        operands: Sequence[tuple[Axes, Window]],
        offsets: tuple[int, ...],
    ) -> Launch:
        patterns, windows = tuple(axes for axes, _ in operands), [window for _, window in operands]
        _, op, _, result, kind, device = self.reduction
        kernel, missing = self.reduction.element.reduce_kernel(op, keep, len(self.inner), schedule, patterns, kind)
        sizes = tuple(shape[k] for k in missing)
        if partial is None:
            return Launch(kernel, device, (result,), (target, *windows), offsets, sizes)
        accumulator = self.accumulator
        packed = shapes.contiguous_strides(partial, accumulator.itemsize)
        partials = Result(partial, packed, accumulator)

        def finish(parts: list[ndarray]) -> list[ndarray]:
            out = result.allocate(device)
            view = out._view(0, self.outer, self.steps)
            reduce_into(op, view, parts[0], (keep,), accumulator)
            return [out]

        return Launch(kernel, device, (partials,), ((partial, packed), *windows), offsets, sizes, finish)
