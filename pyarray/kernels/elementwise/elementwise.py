"""Elementwise kernels: ufuncs, assignments and casts over broadcast operands.

A kernel's text depends on the rank and on each operand's *pattern*: the axes that it is not broadcast along.
Axes are merged before, as far as strides allow, so most launches are 1-D and contiguous. An operand whose
fastest axis isn't the output's (a transpose) is read in tiles, so that each cache line is used whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ... import jit, shapes
from ..._core import Map, aliases, register_assignment
from ...array import _INHERITED, STRIDED, empty, ndarray, unchecked_array
from ...dtypes import ALL, DType
from ...jit.functions import Func, func
from ...lang.markers import ndrange

TILE = 32  # elements: 32 rows of 32 float64 are 8 KiB, well inside the first-level cache
TILED_FROM = 1 << 14  # elements; smaller operands stay in the cache without tiles


@dataclass(frozen=True, eq=False)
class MapOp:
    """`function` computes one element. Operands in `raw` are not cast to the common dtype. `by_number`:
    faster functions for CPUs, by the common dtype, where the second operand is a scalar."""

    name: str
    function: Func
    raw: tuple[int, ...] = ()
    by_number: Mapping[DType, Func] = field(default_factory=dict)


def launch_map(op: MapOp, compute: DType, out: ndarray, operands: Sequence[Any], fresh: bool = False) -> None:
    """`out[...] = op(*operands)` over `out`'s shape; operands are arrays that broadcast to it, or Python
    numbers.

    Arrays are cast to `compute` first. An operand that aliases `out` in another layout is copied first, as in
    NumPy; with `fresh`, `out` is a new array that no operand aliases. Raises `ValueError` when a shape
    doesn't broadcast.
    """
    if not fresh:
        operands = [copy_if_aliased(x, out) if isinstance(x, ndarray) else x for x in operands]
    columns = tuple([(x._shape, x._strides, x._dtype.itemsize) if isinstance(x, ndarray) else None for x in operands])
    merged = map_layout(out._shape, out._strides, out._dtype.itemsize, columns)
    if merged is None:
        return
    layouts, patterns, tiled = merged
    views = [
        x if layout is None else _merged_view(x, layout) for x, layout in zip((out, *operands), layouts, strict=True)
    ]
    grid = out._buffer.device.driver.grid
    _map_kernel(op, compute.code, len(layouts[0].shape), patterns, tiled, grid)(*views)


def make_map(op: MapOp, resolve: Callable[[tuple[Any, ...], Any], tuple[int, int] | None]) -> Map:
    """The plans of an operation. `resolve(operands, out)` says, of their types alone, the codes of the common dtype
    and of the result's; None: calls of these types have no plan."""

    def compile(
        operands: tuple[Any, ...], out: ndarray, compute: int, views: tuple[Any, ...], ndim: int, tiled: bool
    ) -> tuple[int, int, Any, Any]:
        patterns = tuple(None if view is None else view[2] for view in views[1:])
        arrays = [
            type(x)(1) if view is None else _merged_view(x, _merged_layout(view[0], view[1], x._dtype.itemsize))
            for x, view in zip((out, *operands), views, strict=True)
        ]
        kernel = _map_kernel(op, compute, ndim, patterns, bool(tiled), out._buffer.device.driver.grid)
        return jit.launch.native_launch(kernel.variant(tuple(arrays), checked=False))

    return Map(resolve, compile)


class _MergedLayout(NamedTuple):
    """Shape and strides of an array's merged axes, the number of elements, and their bits of the type key."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    bits: int


def _merged_layout(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> _MergedLayout:
    strided = not shapes.is_contiguous(shape, strides, itemsize)
    return _MergedLayout(shape, strides, shapes.size(shape), len(shape) << 8 | strided << 16)


def _merged_view(x: ndarray, layout: _MergedLayout) -> ndarray:
    shape, strides, size, bits = layout
    view = unchecked_array(
        x._buffer, shape, strides, size, x._dtype, x._key & _INHERITED | x._dtype.code | bits, x._ptr
    )
    view._base = x if x._base is None else x._base
    return view


Column = tuple[tuple[int, ...], tuple[int, ...], int] | None  # shape, strides, itemsize; None: a number
Patterns = tuple[tuple[int, ...] | None, ...]


# A function of its arguments alone: shapes, strides and sizes of elements, no array.
@functools.lru_cache(maxsize=4096)
def map_layout(
    shape: tuple[int, ...], steps: tuple[int, ...], itemsize: int, operands: tuple[Column, ...]
) -> tuple[tuple[Any, ...], Patterns, bool] | None:
    """The merged layouts of the output and of each operand, the operands' patterns, and whether to tile. None
    for no elements."""
    columns = [steps, *(shapes.broadcast_strides(x[0], x[1], shape) for x in operands if x is not None)]
    if 0 in shape:
        return None
    shape, columns = _output_order(shape, columns)
    shape, merged = shapes.collapse(shape, *columns)
    shape, columns, tiled = _tiling(shape, list(merged))
    columns_left = iter(columns[1:])
    layouts: list[Any] = [_merged_layout(shape, columns[0], itemsize)]
    patterns: list[Any] = []
    for x in operands:
        column = next(columns_left) if x is not None else ()
        axes = tuple(k for k, step in enumerate(column) if step)
        patterns.append(None if x is None else axes)
        sizes, strides = tuple(shape[k] for k in axes), tuple(column[k] for k in axes)
        layouts.append(None if x is None else _merged_layout(sizes, strides, x[2]))
    return tuple(layouts), tuple(patterns), tiled


def copy_if_aliased(x: ndarray, out: ndarray) -> ndarray:
    """`x`, or a copy of it if it aliases `out` in another layout: writing `out` would change elements of `x`
    that are read later."""
    if not aliases(x, out):
        return x
    copied = empty(x._shape, x._dtype, x.device)
    launch_map(COPY, x._dtype, copied, (x,))
    return copied


def _output_order(
    shape: tuple[int, ...], columns: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Axes sorted by the output's strides, longest first, so that it is written front to back."""
    order = sorted(range(len(shape)), key=lambda k: -abs(columns[0][k]))
    if order == list(range(len(shape))):
        return shape, columns
    return tuple(shape[k] for k in order), [tuple(c[k] for k in order) for c in columns]


def _tiling(
    shape: tuple[int, ...], columns: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]], bool]:
    """Whether to tile; then the axes of the tile are moved to the end."""
    last = len(shape) - 1
    for column in columns[1:]:
        steps = [(abs(s), k) for k, s in enumerate(column) if s]
        if not steps or not column[last] or min(steps)[1] == last:
            continue
        fast = min(steps)[1]
        if shape[fast] * shape[last] < TILED_FROM or min(shape[fast], shape[last]) < 4:
            continue
        order = [k for k in range(last) if k != fast] + [fast, last]
        return tuple(shape[k] for k in order), [tuple(c[k] for k in order) for c in columns], True
    return shape, columns, False


# Made of the operation (by identity), its type and the axes; dtypes are in its variants' keys.
@functools.cache
def _map_kernel(
    op: MapOp, compute: int, ndim: int, patterns: Patterns, tiled: bool, grid: bool = False
) -> jit.kernel.Kernel:
    text, kind, function = _text(op.name, ndim, patterns, op.raw, tiled, grid), ALL[compute], op.function
    if not grid and len(patterns) == 2 and patterns[0] and not patterns[1]:
        function = op.by_number.get(kind, function)
    return jit.kernel.from_text(op.name, text, {"op": function, "kind": kind, "ndrange": ndrange})


def map_kernel(op: MapOp, compute: DType, ndim: int, patterns: Patterns, grid: bool = False) -> jit.kernel.Kernel:
    """The kernel `(out, *operands)` of an operation for one rank and patterns; None is a number, () a 0-d
    array."""
    return _map_kernel(op, compute.code, ndim, patterns, False, grid)


def _text(name: str, ndim: int, patterns: Patterns, raw: tuple[int, ...], tiled: bool, grid: bool) -> str:
    params = [f"x{n}: kind" if axes is None and n not in raw else f"x{n}" for n, axes in enumerate(patterns)]
    head = f"def {name}(out, {', '.join(params)}):\n"
    args = []
    for n, axes in enumerate(patterns):
        value = f"x{n}"
        if axes == ():
            head += f"    c{n} = x{n}[()]\n"
            value = f"c{n}"
        elif axes is not None:
            value = f"x{n}[{', '.join(f'i{k}' for k in axes)}]"
        args.append(value if n in raw else f"kind({value})")
    index = ", ".join(f"i{k}" for k in range(ndim)) or "()"
    return head + loop_nest(ndim, tiled, grid, [f"out[{index}] = op({', '.join(args)})"])


def loop_nest(ndim: int, tiled: bool, grid: bool, body: Sequence[str]) -> str:
    """Loops i0, i1, ... over `out`'s axes with these lines inside."""

    def inside(depth: int) -> str:
        return "".join(f"{'    ' * depth}{line}\n" for line in body)

    index = ", ".join(f"i{k}" for k in range(ndim))
    sizes = [f"out.shape[{k}]" for k in range(ndim)]
    if ndim == 0:
        return inside(1)
    if ndim == 1:
        return f"    for i0 in range({sizes[0]}):\n{inside(2)}"
    if not tiled or grid:  # lang/emit_tile.py makes the tiles of grids
        return f"    for {index} in ndrange({', '.join(sizes)}):\n{inside(2)}"
    outer = [f"i{k}" for k in range(ndim - 2)] + ["b0", "b1"]
    counts = sizes[:-2] + [f"({s} + {TILE - 1}) // {TILE}" for s in sizes[-2:]]
    text = f"    for {', '.join(outer)} in ndrange({', '.join(counts)}):\n"
    for depth, k in enumerate((ndim - 2, ndim - 1)):
        pad = "    " * (2 + depth)
        text += f"{pad}for i{k} in range(b{depth} * {TILE}, min(b{depth} * {TILE} + {TILE}, {sizes[k]})):\n"
    return text + inside(4)


@func
def _copy(x: Any) -> Any:
    return x


COPY = MapOp("copy", _copy)


def check_device(out: ndarray, value: ndarray) -> None:
    """Raises `ValueError` unless `value`, to be assigned to `out`, is on its device."""
    if value.device is not out.device:
        raise ValueError(
            f"assignment between devices: target on {out.device}, value on {value.device}; move it with .to_device(...)"
        )


def assign(out: ndarray, value: Any) -> None:
    """`out[...] = value` with NumPy's broadcasting and cast; `value` is an array or a Python number."""
    if isinstance(value, ndarray):
        check_device(out, value)
        if value._dtype.kind == "c" and out._dtype.kind != "c":
            raise TypeError(f"{value._dtype} can't be assigned to {out._dtype}: take .real, .imag or abs() first")
    else:
        value = assigned_number(out, value)
    _copy_into(out, value)


def assigned_number(out: ndarray, value: Any) -> Any:
    """A Python number as it is assigned to an array. Raises `TypeError`, and `OverflowError` for an integer that
    doesn't fit."""
    if isinstance(value, complex) and out._dtype.kind != "c":
        raise TypeError(f"a complex number can't be assigned to an array of {out._dtype}")
    return out._dtype(value).item() if out._dtype.kind in "iub" else value


def _resolve_copy(operands: tuple[Any, ...], out: ndarray | None) -> tuple[int, int] | None:
    (value,) = operands
    if out is None or not isinstance(value, ndarray):
        copied = value if out is None else out
        return copied._dtype.code, copied._dtype.code
    if value._dtype.kind == "c" and out._dtype.kind != "c":
        return None
    return value._dtype.code, out._dtype.code


COPY_MAP = make_map(COPY, _resolve_copy)


def _copy_into(out: ndarray, value: Any) -> None:
    """`out[...] = value`, cast and broadcast."""
    if COPY_MAP.assign(out, value) is NotImplemented:
        compute = value._dtype if isinstance(value, ndarray) else out._dtype
        launch_map(COPY, compute, out, (value,))


def astype(x: ndarray, dtype: DType) -> ndarray:
    """A fresh C-contiguous array of `dtype` with `x`'s elements cast. Raises `TypeError` for complex to
    real."""
    if x._dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(f"{x._dtype} can't be cast to {dtype}: take .real, .imag or abs() first")
    out = empty(x._shape, dtype, x.device)
    _copy_into(out, x)
    return out


def contiguous(x: ndarray) -> ndarray:
    """`x` if it is C-contiguous, else a copy that is."""
    return astype(x, x._dtype) if x._key & STRIDED else x


register_assignment(COPY_MAP)
