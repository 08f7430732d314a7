"""Launches of fused kernels: operands are split along the output's axes, which are then merged as far as all
of them allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import shapes
from ..array import WATCHED, ndarray, type_key, unchecked_array
from ..dtypes import DType
from ..jit.kernel import Kernel
from ..jit.launch import make_bound_launch
from ..jit.launch_state import launch_state
from ..kernels.elementwise.elementwise import map_layout
from ..kernels.reduce.reduce import COLUMNS, ReduceOp, piece_count, reduce_into
from ..memory.buffer import Buffer
from . import axis_split
from .axis_split import Spread
from .kernel_text import Axes, Digit, Element, pattern

Place = tuple[tuple[int, ...], tuple[int, ...]]  # shape and strides of a window


class Result(NamedTuple):
    """An array that a launch makes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType

    def made(self, device: Any) -> ndarray:
        """A fresh one."""
        size = shapes.size(self.shape)
        strided = not shapes.is_contiguous(self.shape, self.strides, self.dtype.itemsize)
        key = type_key(self.dtype, len(self.shape), strided, True, device)
        buffer = Buffer.allocate(device, size * self.dtype.itemsize)
        return unchecked_array(buffer, self.shape, self.strides, size, self.dtype, key)


LONG = 32  # steps of a row
_RUN = "def run(operands, numbers, into=None):\n"


@dataclass(frozen=True, eq=False)
class Launch:
    """A launch for operands of known shapes and strides: `places` are the windows of all arrays, made ones
    first, `offsets` (bytes) those of the operands, `sizes` further arguments. `finish` makes the results
    from what was made."""

    kernel: Kernel
    device: Any
    results: tuple[Result, ...]
    places: tuple[Place, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    finish: Callable[[list[ndarray]], list[ndarray]] | None = None

    def run(
        self, operands: Sequence[ndarray], numbers: Sequence[Any], into: ndarray | None = None
    ) -> list[ndarray]:
        """The results for these operands; `into` is laid out as the only one, and takes its place. Every way
        in: debug checks, observers."""
        outputs = [result.made(self.device) for result in self.results] if into is None else [into]
        self.kernel(*self._windows(outputs, operands), *self.sizes, *numbers)
        return outputs if self.finish is None else self.finish(outputs)

    def _windows(self, outputs: Sequence[ndarray], operands: Sequence[ndarray]) -> list[ndarray]:
        arrays = [*outputs, *operands]
        offsets = [*(0 for _ in outputs), *self.offsets]
        return [
            x._view(offset, *place) for x, offset, place in zip(arrays, offsets, self.places, strict=True)
        ]

    def prepared(self, operands: Sequence[ndarray], numbers: Sequence[Any]) -> Callable[..., list[ndarray]]:
        """`run` without looking anything up, where nothing observes it."""
        outputs = [result.made(self.device) for result in self.results]
        windows = self._windows(outputs, operands)
        if launch_state.key is not False:
            self.kernel.variant((*windows, *self.sizes, *numbers))
            return self.run
        layouts = [*self.places, *(None for _ in (*self.sizes, *numbers))]
        bound_launch = make_bound_launch(
            self.kernel.variant((*windows, *self.sizes, *numbers), checked=False), layouts
        )
        scope: dict[str, Any] = {"walk": bound_launch, "allocate": Buffer.allocate, "device": self.device}
        text, scope["unchecked_array"] = _RUN, unchecked_array
        addresses = []
        for k, x in enumerate(outputs):
            scope[f"facts{k}"] = x._shape, x._strides, x._size, x._dtype, x._key
            text += f"    out{k} = unchecked_array(allocate(device, {x.nbytes}), *facts{k}) if into is None else into\n"
            addresses.append(f"out{k}._ptr")
        addresses += [f"operands[{k}]._ptr + {offset}" for k, offset in enumerate(self.offsets)]
        addresses += [*map(str, self.sizes), "*numbers"]
        text += f"    if into is not None and into._key & {WATCHED}:\n        into._buffer.before_write()\n"
        text += f"    walk({', '.join(addresses)})\n"
        outs = f"[{', '.join(f'out{k}' for k in range(len(outputs)))}]"
        text += f"    return finish({outs})\n" if self.finish else f"    return {outs}\n"
        scope["finish"] = self.finish
        exec(compile(text, f"<pyarray {self.kernel.__name__}>", "exec"), scope)
        run: Callable[..., list[ndarray]] = scope["run"]
        return run


class Columns(NamedTuple):
    """Digits of the axes that all operands have in common, and the operands' strides along them."""

    digits: tuple[tuple[int, ...], ...]  # sizes, per axis
    strides: tuple[tuple[tuple[int, ...], ...], ...]  # per operand and axis


def columns_of(shape: Sequence[int], operands: Sequence[Spread]) -> Columns | None:
    """None where two operands cut an axis in ways that don't fit."""
    spreads = [axis_split.broadcast(x, shape) for x in operands]
    digits: list[tuple[int, ...]] = []
    for k, n in enumerate(shape):
        sizes = axis_split.joined([[n] if n != 1 else [], *([m for m, _ in x.axes[k]] for x in spreads)])
        if sizes is None:
            return None
        digits.append(sizes)
    strides = tuple(
        tuple(
            tuple(s for _, s in axis_split.cut(axis, sizes))
            for axis, sizes in zip(x.axes, digits, strict=True)
        )
        for x in spreads
    )
    return Columns(tuple(digits), strides)


def _flat(parts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    return tuple(n for part in parts for n in part)


def _own(
    shape: Sequence[int], strides: Sequence[int], digits: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Strides of an array along the digits of its axes."""
    spread = axis_split.spread(shape, strides)
    return [
        tuple(s for _, s in axis_split.cut(axis, sizes))
        for axis, sizes in zip(spread.axes, digits, strict=True)
    ]


def map_launch(
    element: Element,
    results: Sequence[Result],
    columns: Columns,
    offsets: Sequence[int],
    itemsizes: Sequence[int],
    device: Any,
) -> Launch:
    """Of an elementwise kernel. All results have one shape, whose axes `columns` cuts."""
    sizes = _flat(columns.digits)
    first, *more = [_flat(_own(r.shape, r.strides, columns.digits)) for r in results]
    extra_outputs = [(sizes, step, r.dtype.itemsize) for step, r in zip(more, results[1:], strict=True)]
    extra_outputs += [(sizes, _flat(s), n) for s, n in zip(columns.strides, itemsizes, strict=True)]
    layout = map_layout(sizes, first, results[0].dtype.itemsize, tuple(extra_outputs))
    assert layout is not None  # sizes of 0 don't come here
    places, patterns, tiled = layout
    kernel = element.map_kernel(len(places[0].shape), patterns, tiled, device.driver.grid)  # type: ignore[arg-type]
    windows = tuple((place.shape, place.strides) for place in places)
    return Launch(kernel, device, tuple(results), windows, tuple(offsets), ())


def divides_cheaply(operands: Sequence[Spread], grid: bool) -> bool:
    """Whether digits of loops take less time than copies. A loop walks rows, which end where a digit of an
    operand does, without a division (`lang/delinearization.py`): they must be long. A thread of a grid divides once."""
    ends = sum(1 / axis[-1][0] for x in operands for axis in x.axes if len(axis) > 1)
    return grid or ends * LONG <= 1


def divides_rarely(shape: Sequence[int], axes: Sequence[int], operands: Sequence[Spread], grid: bool) -> bool:
    """The same of a reduction over `axes`: no axis that is taken apart is the innermost loop's."""
    if not axes:
        return False
    outer, reduced, by_columns = _order(shape, axes, operands)
    last = outer[-1] if by_columns else reduced[-1]
    return grid or all(len(axis_split.broadcast(x, shape).axes[last]) < 2 for x in operands)


def divided_launch(
    element: Element, results: Sequence[Result], operands: Sequence[Spread], device: Any
) -> Launch:
    """Of an elementwise kernel whose operands cut an axis in ways that don't fit: each axis has one loop, and
    an operand's digits of it are quotients and remainders of the loop's variable."""
    shape = results[0].shape
    loops = [k for k, n in enumerate(shape) if n != 1]
    sizes = tuple(shape[k] for k in loops)
    places = [(sizes, tuple(r.strides[k] for k in loops)) for r in results]
    patterns: list[Any] = [tuple(range(len(loops))) for _ in results[1:]]
    for axes, window in _digits(operands, shape, loops):
        patterns.append(axes)
        places.append(window)
    kernel = element.map_kernel(len(loops), tuple(patterns), False, device.driver.grid)
    return Launch(kernel, device, tuple(results), tuple(places), tuple(x.offset for x in operands), ())


def _digits(
    operands: Sequence[Spread], shape: Sequence[int], loops: Sequence[int]
) -> list[tuple[Axes, Place]]:
    """Of each operand the axes that it has under these loops, one for each digit, and its window."""
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


def reduce_launch(
    element: Element,
    op: ReduceOp,
    axes: Sequence[int],
    result: Result,
    kind: DType,
    columns: Columns,
    offsets: Sequence[int],
    device: Any,
) -> Launch:
    """Of a reduction of what `element` computes over `axes`; the shape of `result` is that of the others."""
    keep = [k for k in range(len(columns.digits)) if k not in axes]
    kept = _flat([columns.digits[k] for k in keep])
    result_axes = _flat(_own(result.shape, result.strides, [columns.digits[k] for k in keep]))
    outer, (steps, *x_outer) = shapes.collapse(
        kept, result_axes, *(_flat([s[k] for k in keep]) for s in columns.strides)
    )
    inner, x_inner = shapes.collapse(
        _flat([columns.digits[k] for k in axes]), *(_flat([s[k] for k in axes]) for s in columns.strides)
    )
    if not inner:
        inner, x_inner = (1,), tuple((0,) for _ in columns.strides)
    by_columns = bool(outer) and _nearest(x_outer) < _nearest(x_inner)
    work = _Reduction(element, op, result, kind, device, outer, steps, inner)
    if by_columns:
        strides = [o[:-1] + i + o[-1:] for o, i in zip(x_outer, x_inner, strict=True)]
        return work.columns(_windows(outer[:-1] + inner + outer[-1:], strides), tuple(offsets))
    strides = [o + i for o, i in zip(x_outer, x_inner, strict=True)]
    return work.rows(_windows(outer + inner, strides), tuple(offsets))


def divided_reduction(
    element: Element,
    op: ReduceOp,
    axes: Sequence[int],
    result: Result,
    kind: DType,
    shape: Sequence[int],
    operands: Sequence[Spread],
    device: Any,
) -> Launch:
    """As `reduce_launch`, of operands that cut an axis in ways that don't fit (`divided_launch`)."""
    kept, reduced, by_columns = _order(shape, axes, operands)
    steps = dict(zip((k for k in range(len(shape)) if k not in axes), result.strides, strict=True))
    outer, inner = (tuple(shape[k] for k in part) for part in (kept, reduced))
    work = _Reduction(element, op, result, kind, device, outer, tuple(steps[k] for k in kept), inner)
    offsets = tuple(x.offset for x in operands)
    if by_columns:
        return work.columns(_digits(operands, shape, [*kept[:-1], *reduced, kept[-1]]), offsets)
    return work.rows(_digits(operands, shape, [*kept, *reduced]), offsets)


def _order(
    shape: Sequence[int], axes: Sequence[int], operands: Sequence[Spread]
) -> tuple[list[int], list[int], bool]:
    """The axes that are kept, those that are reduced, and whether a kept one is walked innermost,
    since the elements of an operand are nearest along it."""
    kept = [k for k, n in enumerate(shape) if k not in axes and n != 1]
    reduced = [k for k in axes if shape[k] != 1] or list(axes[:1])
    operand_axes = [axis_split.broadcast(x, shape).axes for x in operands]
    outer, inner = (
        _nearest([[x[k][-1][1] for k in part if x[k]] for x in operand_axes]) for part in (kept, reduced)
    )
    return kept, reduced, bool(kept) and outer < inner


def _windows(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[tuple[Axes, Place]]:
    """Of each operand the axes along which it has a stride, and its window."""
    windows = list[tuple[Axes, Place]]()
    for s in strides:
        axes = pattern(s)
        windows.append((axes, (tuple(shape[k] for k in axes), tuple(s[k] for k in axes))))
    return windows


def _nearest(strides: Sequence[Sequence[int]]) -> float:
    return min((abs(s) for steps in strides for s in steps if s), default=math.inf)


@dataclass(frozen=True, eq=False)
class _Reduction:
    element: Element
    op: ReduceOp
    result: Result
    kind: DType
    device: Any
    outer: tuple[int, ...]
    steps: tuple[int, ...]
    inner: tuple[int, ...]

    def rows(self, windows: Sequence[tuple[Axes, Place]], offsets: tuple[int, ...]) -> Launch:
        outer, total = self.outer, math.prod(self.outer + self.inner)
        pieces = piece_count(self.inner[0], math.prod(outer), total, self.device.driver.grid)
        target: Place = ((*outer, 1), (*self.steps, 0))
        partial = None if pieces == 1 else (*outer, pieces)
        form = "teams" if self.device.driver.grid else "rows"
        return self._launch(form, len(outer), target, partial, outer + self.inner, windows, offsets)

    def columns(self, windows: Sequence[tuple[Axes, Place]], offsets: tuple[int, ...]) -> Launch:
        outer, inner, grid = self.outer, self.inner, self.device.driver.grid
        blocks = math.prod(outer[:-1]) * -(-outer[-1] // (32 if grid else COLUMNS))
        pieces = min(piece_count(inner[0], blocks, math.prod(outer + inner), grid), max(inner[0] // 8, 1))
        pieces = -(-inner[0] // -(-inner[0] // pieces))
        target: Place = ((*outer[:-1], 1, outer[-1]), (*self.steps[:-1], 0, self.steps[-1]))
        fits = pieces == 1 and self.result.dtype is self.op.accumulator_type(self.kind)
        partial = None if fits else (*outer[:-1], pieces, outer[-1])
        form, shape = "threads" if grid else "columns", outer[:-1] + inner + outer[-1:]
        return self._launch(form, len(outer) - 1, target, partial, shape, windows, offsets)

    def _launch(
        self,
        form: str,
        keep: int,
        target: Place,
        partial: tuple[int, ...] | None,
        shape: tuple[int, ...],
        given: Sequence[tuple[Axes, Place]],
        offsets: tuple[int, ...],
    ) -> Launch:
        patterns, windows = tuple(axes for axes, _ in given), [window for _, window in given]
        kernel, missing = self.element.reduce_kernel(
            self.op, keep, len(self.inner), form, patterns, self.kind
        )
        sizes = tuple(shape[k] for k in missing)
        if partial is None:
            return Launch(kernel, self.device, (self.result,), (target, *windows), offsets, sizes)
        accumulator = self.op.accumulator_type(self.kind)
        packed = shapes.contiguous_strides(partial, accumulator.itemsize)
        partials = Result(partial, packed, accumulator)

        def finish(parts: list[ndarray]) -> list[ndarray]:
            out = self.result.made(self.device)
            view = out._view(0, self.outer, self.steps)
            reduce_into(self.op, view, parts[0], (keep,), accumulator)
            return [out]

        return Launch(kernel, self.device, (partials,), ((partial, packed), *windows), offsets, sizes, finish)
