"""One output element from the elements at the same place: the device code of every elementwise function,
assignment and cast.

The kernel's text is made per rank and per *pattern* (which axes each operand really has), after the axes have
been merged as far as strides allow. Most launches end up 1-D and contiguous. Where an operand's fastest axis
is not the output's (a transpose), both are walked in tiles, so that each cache line is used whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ... import shapes
from ...array import _INHERITED, STRIDED, WATCHED, empty, ndarray
from ...array import unchecked_array as fresh_array
from ...array_marks import MARKED
from ...array_views import overlaps
from ...dtypes import ALL, DType
from ...jit.kernel import Func, Kernel, from_text, func
from ...jit.launch import make_bound_launch
from ...jit.launch_state import fast_path_table, launch_state
from ...lang.markers import ndrange

TILE = 32  # elements: 32 rows of 32 float64 are 8 KiB, well inside the first-level cache
TILED_FROM = 1 << 14  # elements; below, all of it is in cache anyway


@dataclass(frozen=True, eq=False)
class MapOp:
    """`function` computes one element; operands in `raw` are passed in their own dtype instead of the common
    one. `by_number` has the functions, by the common dtype, that processors without a grid are faster with
    where the second operand is one number for all elements."""

    name: str
    function: Func
    raw: tuple[int, ...] = ()
    by_number: Mapping[DType, Func] = field(default_factory=dict)


def launch_map(op: MapOp, compute: DType, out: ndarray, operands: Sequence[Any], fresh: bool = False) -> None:
    """`out[...] = op(*operands)` over `out`'s shape; operands are arrays that broadcast to it, or Python
    numbers.

    Arrays are cast to `compute` first. An operand that overlaps `out` in another arrangement is copied first,
    so that the answer is NumPy's; `fresh` says that nothing else knows `out`. Raises `ValueError` when a
    shape doesn't broadcast.
    """
    if not fresh:
        operands = [apart(x, out) if isinstance(x, ndarray) else x for x in operands]
    columns = tuple(
        [(x._shape, x._strides, x._dtype.itemsize) if isinstance(x, ndarray) else None for x in operands]
    )
    layout = walk_layout(out._shape, out._strides, out._dtype.itemsize, columns)
    if layout is None:
        return
    places, patterns, tiled = layout
    views = [
        x if place is None else _window(x, place) for x, place in zip((out, *operands), places, strict=True)
    ]
    grid = out._buffer.device.driver.grid
    _map_kernel(op, compute.code, len(places[0].shape), patterns, tiled, grid)(*views)


def walk_launcher(
    op: MapOp, compute: DType, out: ndarray, operands: Sequence[Any]
) -> Callable[..., Any] | None:
    """The launch for arrays of these types, shapes and strides, as a function of their addresses (output
    first) and the numbers, without checks; None where there is nothing to do, or an owner is to be told."""
    if out._key & WATCHED:
        return None
    columns = tuple(
        [(x._shape, x._strides, x._dtype.itemsize) if isinstance(x, ndarray) else None for x in operands]
    )
    layout = walk_layout(out._shape, out._strides, out._dtype.itemsize, columns)
    if layout is None:
        return None
    places, patterns, tiled = layout
    views = [
        type(x)(1) if place is None else _window(x, place)
        for x, place in zip((out, *operands), places, strict=True)
    ]
    grid = out._buffer.device.driver.grid
    kernel = _map_kernel(op, compute.code, len(places[0].shape), patterns, tiled, grid)
    known = [None if place is None else (place.shape, place.strides) for place in places]
    return make_bound_launch(kernel.variant(tuple(views), checked=False), known)


class _Place(NamedTuple):
    """What a launch sees of an array: shape and strides of the merged axes, number of elements, and their
    part of the key."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    bits: int


def _place(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> _Place:
    strided = not shapes.is_contiguous(shape, strides, itemsize)
    return _Place(shape, strides, shapes.size(shape), len(shape) << 8 | strided << 16)


def _window(x: ndarray, place: _Place) -> ndarray:
    shape, strides, size, bits = place
    view = fresh_array(x._buffer, shape, strides, size, x._dtype, x._key & _INHERITED | x._dtype.code | bits)
    view._ptr, view._base = x._ptr, x if x._base is None else x._base
    return view


Column = tuple[tuple[int, ...], tuple[int, ...], int] | None  # shape, strides, itemsize; None: a number
Patterns = tuple[tuple[int, ...] | None, ...]


# A function of its arguments alone: shapes, strides and sizes of elements, no array.
@functools.lru_cache(maxsize=4096)
def walk_layout(
    shape: tuple[int, ...], steps: tuple[int, ...], itemsize: int, operands: tuple[Column, ...]
) -> tuple[tuple[Any, ...], Patterns, bool] | None:
    """How a launch walks: the places of the output and of each operand, the operands' patterns, and whether
    in tiles. None where there is nothing to do."""
    columns = [steps, *(shapes.broadcast_strides(x[0], x[1], shape) for x in operands if x is not None)]
    if 0 in shape:
        return None
    shape, columns = _ordered(shape, columns)
    shape, merged = shapes.collapse(shape, *columns)
    shape, columns, tiled = _tiling(shape, list(merged))
    rest = iter(columns[1:])
    places: list[Any] = [_place(shape, columns[0], itemsize)]
    patterns: list[Any] = []
    for x in operands:
        column = next(rest) if x is not None else ()
        axes = tuple(k for k, step in enumerate(column) if step)
        patterns.append(None if x is None else axes)
        sizes, strides = tuple(shape[k] for k in axes), tuple(column[k] for k in axes)
        places.append(None if x is None else _place(sizes, strides, x[2]))
    return tuple(places), tuple(patterns), tiled


def may_share(x: ndarray, out: ndarray) -> bool:
    """Whether the memory of two arrays may be the same. Buffers of the library's own are apart; another
    library's may be part of any, as this library's arrays come back through others."""
    a, b = x._buffer, out._buffer
    return a is b or a.owner is not None or b.owner is not None


def apart(x: ndarray, out: ndarray) -> ndarray:
    """`x`, or a copy of it if writing `out` element by element would change elements of `x` that are still to
    be read."""
    if not may_share(x, out):
        return x
    same = (
        x._ptr == out._ptr
        and x._strides == out._strides
        and x._shape == out._shape
        and x.itemsize == out.itemsize
    )
    if same or not overlaps(x, out):
        return x
    copied = empty(x._shape, x._dtype, x.device)
    launch_map(COPY, x._dtype, copied, (x,))
    return copied


def _ordered(
    shape: tuple[int, ...], columns: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Axes in the order of the output's strides, longest first, so that it is written front to back."""
    order = sorted(range(len(shape)), key=lambda k: -abs(columns[0][k]))
    if order == list(range(len(shape))):
        return shape, columns
    return tuple(shape[k] for k in order), [tuple(c[k] for k in order) for c in columns]


def _tiling(
    shape: tuple[int, ...], columns: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]], bool]:
    """Whether to walk in tiles; then the two axes of the tile are the last ones."""
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
) -> Kernel:
    text, kind, function = _text(op.name, ndim, patterns, op.raw, tiled, grid), ALL[compute], op.function
    if not grid and len(patterns) == 2 and patterns[0] and not patterns[1]:
        function = op.by_number.get(kind, function)
    return from_text(op.name, text, {"op": function, "kind": kind, "ndrange": ndrange})


def map_kernel(op: MapOp, compute: DType, ndim: int, patterns: Patterns, grid: bool = False) -> Kernel:
    """The kernel `(out, *operands)` of an operation for one rank and pattern: the axes that an operand has;
    None is a number, () a 0-d array."""
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
    return head + nest(ndim, tiled, grid, [f"out[{index}] = op({', '.join(args)})"])


def nest(ndim: int, tiled: bool, grid: bool, body: Sequence[str]) -> str:
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
            f"assignment between devices: target on {out.device}, value on {value.device}; "
            "move it with .to_device(...)"
        )


def assign(out: ndarray, value: Any) -> None:
    """`out[...] = value` with NumPy's broadcasting and cast; `value` is an array or a Python number."""
    if isinstance(value, ndarray):
        check_device(out, value)
        if value._dtype.kind == "c" and out._dtype.kind != "c":
            raise TypeError(
                f"{value._dtype} can't be assigned to {out._dtype}: take .real, .imag or abs() first"
            )
    elif isinstance(value, complex) and out._dtype.kind != "c":
        raise TypeError(f"a complex number can't be assigned to an array of {out._dtype}")
    elif out._dtype.kind in "iub":
        value = out._dtype(value).item()
    _copy_into(out, value)


# How to launch `_copy_into` again. The key has mode, types, shapes and strides of both sides, or the type of
# a number; addresses and numbers are passed at each launch, and operands that overlap aren't looked up.
_walks = fast_path_table()
WALKS = 4096  # then the table starts anew


def _copy_into(out: ndarray, value: Any) -> None:
    """Elements of `value`, or the number, cast and broadcast."""
    facts: Any
    if not isinstance(value, ndarray):
        compute, facts, source = out._dtype, type(value), value
    else:
        compute, facts, source = value._dtype, (value._key, value._shape, value._strides), value._ptr
        if may_share(value, out) and overlaps(value, out):
            return launch_map(COPY, compute, out, (value,))
    if out._key & WATCHED:
        return launch_map(COPY, compute, out, (value,))
    key = launch_state.key
    place = key, out._key, out._shape, out._strides, facts
    walk = _walks.get(place)
    if walk:
        walk(out._ptr, source)
        return None
    launch_map(COPY, compute, out, (value,))
    if place in _walks:  # the second time
        _walks[place] = walk_launcher(COPY, compute, out, (value,))
    elif key is False and not (out._key | getattr(value, "_key", 0)) & MARKED:
        if len(_walks) >= WALKS:
            _walks.clear()
        _walks[place] = None
    return None


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
