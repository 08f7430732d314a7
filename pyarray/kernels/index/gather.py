"""Gather and scatter by index arrays and masks: advanced indexing and `take_along_axis`.

A kernel's text depends on the number of index arrays and the ranks. Elements are moved as unsigned integers
of their size, so that all dtypes share a few artifacts.
"""

from __future__ import annotations

import functools
from typing import Any

from ... import jit, shapes
from ...array import STRIDED, empty, ndarray, operations
from ...array_convert import assigned
from ...array_hooks import operation
from ...array_views import overlaps
from ...dtypes import int64
from ...jit.launch_state import launch_state
from ...lang.markers import ndrange
from ...memory.host_access import on_host
from ..elementwise.elementwise import assigned_number, check_device
from ..reduce.reduce import on_grid
from ..scan.nonzero import check_range, nonzero, reinterpret_unsigned, select_by_mask, unsigned_view
from .fill_where_gpu import fill_where_dense
from .index_key import IndexPlan, index_plan, single_mask

# Elements of a row that one iteration copies on CPUs; on GPUs neighbouring threads copy neighbours.
ROW = 256

NUMBERS = bool, int, float, complex

_SCOPE = {"ndrange": ndrange, "int64": int64}


def take(a: ndarray, key: Any) -> ndarray:
    """`a[key]` with index arrays, lists or masks in the key: a new array.

    Raises `IndexError` for an index out of range (off the CPU only in debug mode; else it is clamped), a mask
    of another shape, index arrays that don't broadcast, or an index of another type.
    """
    mask = single_mask(a, key) if on_grid(a) else None
    if mask is not None and mask._shape == a._shape:
        return select_by_mask(a, mask)
    plan = index_plan(a, key)
    out = empty(plan.shape, a._dtype, a.device)
    _move("gather", plan, out)
    return out


def put(a: ndarray, key: Any, value: Any) -> None:
    """`a[key] = value`; the value broadcasts and is cast to `a`'s dtype. Of several values for one element
    the last one stays on the CPU, any one of them elsewhere.

    Raises as `take` does, before anything is written, and `ValueError` for a value that doesn't broadcast.
    """
    mask = single_mask(a, key)
    if mask is not None and type(value) in NUMBERS and (dense := _dense_runs(a, mask)):
        return fill_where_dense(*dense, assigned_number(a, value))
    if mask is not None and (not isinstance(value, ndarray) or value._size == 1):
        source = _converted_value(a, value)
        if source._size == 1:
            if dense := _dense_runs(a, mask):
                return fill_where_dense(*dense, source._view(0, (1,), (a.itemsize,)))
            return _fill_where(a, mask, source)
        value = source
    plan = index_plan(a, key)
    source = _broadcast(_converted_value(a, value), plan.shape)
    indices = tuple(i.copy() if overlaps(i, a) else i for i in plan.indices)
    plan = IndexPlan(plan.view, plan.before, indices, plan.broadcast, plan.distinct)
    _move("scatter" if plan.distinct or not on_host(a) else "scatter_in_order", plan, source)


def take_along_axis(a: ndarray, indices: ndarray, axis: int) -> ndarray:
    """`out[..., k, ...] = a[..., indices[..., k, ...], ...]` along `axis` (0 to ndim - 1); the other axes
    broadcast.

    Raises `IndexError` for an index out of range (off the CPU only in debug mode; else it is clamped) or of
    another type than integer, `ValueError` for ranks that differ or shapes that don't broadcast.
    """
    if indices._dtype.kind not in "iu":
        raise IndexError(f"indices of take_along_axis are integers, got {indices._dtype}; cast them with astype")
    if indices.ndim != a.ndim:
        raise ValueError(
            "take_along_axis needs indices with as many dimensions as the array, "
            f"got {indices._shape} for {a._shape}; "
            "insert axes of size 1"
        )
    other_axes = shapes.broadcast_shapes(*(s[:axis] + s[axis + 1 :] for s in (a._shape, indices._shape)))
    shape = other_axes[:axis] + indices._shape[axis : axis + 1] + other_axes[axis:]
    source = _broadcast(a, other_axes[:axis] + a._shape[axis : axis + 1] + other_axes[axis:])
    index = _broadcast(indices, shape)
    out = empty(shape, a._dtype, a.device)
    if not out._size:
        return out
    check_range(indices, a._shape[axis], axis)
    arrays = unsigned_view(out), unsigned_view(source), index
    cut = [slice(0, axis), slice(axis, axis + 1), slice(axis + 1, None)]
    groups = [shapes.collapse(shape[c], *(x._strides[c] for x in arrays)) for c in (cut[0], cut[2])]
    views = []
    for n, x in enumerate(arrays):
        sizes = groups[0][0] + x._shape[cut[1]] + groups[1][0]
        views.append(x._view(0, sizes, groups[0][1][n] + x._strides[cut[1]] + groups[1][1][n]))
    _along_kernel(len(groups[0][0]), len(groups[1][0]))(*views)
    return out


def _dense_runs(a: ndarray, mask: ndarray) -> tuple[ndarray, ndarray] | None:
    """`a` and the mask as contiguous 1-D arrays that share no memory, where a grid takes them by
    vectors."""
    if not on_grid(a) or launch_state.debug or not a._size or mask._shape != a._shape:
        return None
    if (a._key | mask._key) & STRIDED:
        return None
    mask = mask.copy() if overlaps(mask, a) else mask
    return a._view(0, (a._size,), (a.itemsize,)), mask._view(0, (a._size,), (1,))


def _fill_where(a: ndarray, mask: ndarray, source: ndarray) -> None:
    """`a[mask] = scalar`, without computing positions."""
    if not a._size or not mask._size:
        return
    mask = mask.copy() if overlaps(mask, a) else mask
    lead = mask._view(0, mask._shape + (1,) * (a.ndim - mask.ndim), mask._strides + (0,) * (a.ndim - mask.ndim))
    target, lead = unsigned_view(a), _broadcast(lead, a._shape)
    shape, steps = shapes.collapse(a._shape, target._strides, lead._strides)
    kernel = _fill_kernel(len(shape))
    kernel(
        target._view(0, shape, steps[0]),
        lead._view(0, shape, steps[1]),
        unsigned_view(source)._view(0, (), ()),
    )


# The rank is all that differs in the text; dtypes are in its variants' keys.
@functools.cache
def _fill_kernel(rank: int) -> jit.kernel.Kernel:
    names = [f"k{n}" for n in range(rank)]
    at = ", ".join(names) or "()"
    text = "def fill_where(a, mask, x):\n    value = x[()]\n"
    if rank:
        text += f"    for {at} in ndrange({', '.join(f'a.shape[{n}]' for n in range(rank))}):\n    "
    text += f"    if mask[{at}]:\n    {'    ' * bool(rank)}    a[{at}] = value\n"
    return jit.kernel.from_text("fill_where", text, dict(_SCOPE))


def _broadcast(x: ndarray, shape: tuple[int, ...]) -> ndarray:
    """`x` read as an array of `shape`; leading axes of size 1 that are too many are dropped, as in an
    assignment.
    """
    extra = x.ndim - len(shape)
    sizes, steps = x._shape, x._strides
    if extra > 0 and set(sizes[:extra]) <= {1}:
        sizes, steps = sizes[extra:], steps[extra:]
    try:
        steps = shapes.broadcast_strides(sizes, steps, shape)
    except ValueError:
        raise ValueError(
            f"shape mismatch: value array of shape {x._shape} could not be broadcast "
            f"to indexing result of shape {shape}; "
            "sizes must be equal or 1"
        ) from None
    view: ndarray = x._view(0, shape, steps)
    return view


def _converted_value(a: ndarray, value: Any) -> ndarray:
    """The value as an array of `a`'s dtype that doesn't alias it."""
    if isinstance(value, ndarray):
        check_device(a, value)
        if value._dtype is a._dtype:
            return value.copy() if overlaps(value, a) else value
    elif type(value) not in NUMBERS:
        return _converted_value(a, assigned(a, value))
    source = empty(value._shape if isinstance(value, ndarray) else (), a._dtype, a.device)
    operation("assign")(source, value)
    return source


def _move(name: str, plan: IndexPlan, x: ndarray) -> None:
    """Moves elements between `plan.view` and `x`, which has the shape of the plan's result."""
    if not x._size:
        return
    view, indices = plan.view, plan.indices
    if not view.ndim and not indices:  # one element, which masks of no axes let through
        target, source = (x, view) if name == "gather" else (view, x.reshape(()))
        operation("assign")(target, source)
        return
    kernel, *windows = _layout(
        name, plan.before, plan.broadcast, view._shape, view._strides, x._shape, x._strides,
        tuple((i._shape, i._strides) for i in indices),
    )  # fmt: skip
    source, target, *positions = (a._view(0, *window) for a, window in zip((view, x, *indices), windows, strict=True))
    kernel(
        reinterpret_unsigned(source),
        reinterpret_unsigned(target),
        *positions,
        ROW if on_host(view) else 1,
    )


# A function of its arguments alone: shapes and strides, no array.
@functools.lru_cache(maxsize=1024)
def _layout(
    name: str,
    before: int,
    broadcast: tuple[int, ...],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    x_shape: tuple[int, ...],
    x_strides: tuple[int, ...],
    indices: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...],
) -> tuple[Any, ...]:
    """The kernel, and the arguments of `_view` for each of its arrays, with axes merged as strides allow."""
    after, end = before + len(indices), before + len(broadcast)
    head, (a_head, x_head) = shapes.collapse(x_shape[:before], strides[:before], x_strides[:before])
    tail, (a_tail, x_tail) = shapes.collapse(x_shape[end:], strides[after:], x_strides[end:])
    steps = [shapes.broadcast_strides(sizes, step, broadcast) for sizes, step in indices]
    middle, (x_middle, *steps) = shapes.collapse(broadcast, x_strides[before:end], *steps)
    if not middle:
        middle, x_middle, steps = (1,), (0,), [(0,) for _ in indices]
    windows = [
        (head + shape[before:after] + tail, a_head + strides[before:after] + a_tail),
        (head + middle + tail, x_head + x_middle + x_tail),
        *((middle, step) for step in steps),
    ]
    return (_move_kernel(name, len(head), len(middle), len(tail), len(indices)), *windows)


# The text is made of the direction and the numbers of axes; dtypes are in its variants' keys.
@functools.cache
def _move_kernel(name: str, before: int, middle: int, after: int, count: int) -> jit.kernel.Kernel:
    return jit.kernel.from_text(name, _move_text(name, before, middle, after, count), dict(_SCOPE))


def _move_text(name: str, before: int, middle: int, after: int, count: int) -> str:
    """`x[p..., b..., q...] = a[p..., i0[b...], i1[b...], ..., q...]` or the reverse.

    Indices that don't depend on the last axis are loaded outside of its loop.
    """
    ps, bs, qs = (
        [f"{letter}{n}" for n in range(rank)] for letter, rank in (("p", before), ("b", middle), ("q", after))
    )
    js = [f"j{n}" for n in range(count)]
    sizes = [f"x.shape[{n}]" for n in range(before + middle + after)]
    lookups = []
    for n, j in enumerate(js):
        size = f"a.shape[{before + n}]"
        lookups.append(f"{j} = int64(i{n}[{', '.join(bs)}])")
        lookups.append(f"{j} = max(0, min({j} + {size} * int64({j} < 0), {size} - 1))")
    element, source = f"x[{', '.join(ps + bs + qs)}]", f"a[{', '.join(ps + js + qs) or '()'}]"
    body = f"{element} = {source}" if name == "gather" else f"{source} = {element}"
    lines = [f"def {name}({', '.join(['a', 'x', *(f'i{n}' for n in range(count)), 'width: int'])}):"]
    names = ps + bs + qs
    if name == "scatter_in_order":
        lines.append("    for once in range(1):")
        for depth, (variable, size) in enumerate(zip(names, sizes, strict=True)):
            lines.append(f"{'    ' * (2 + depth)}for {variable} in range({size}):")
            if depth == before + middle - 1:
                lines += ["    " * (3 + depth) + line for line in lookups]
        lines.append("    " * (2 + len(names)) + body)
    elif after:
        last = sizes[-1]
        loop = [*sizes[:-1], f"({last} + width - 1) // width"]
        lines.append(f"    for {', '.join([*names[:-1], 'c'])} in ndrange({', '.join(loop)}):")
        lines += ["        " + line for line in lookups]
        lines.append(f"        for {names[-1]} in range(c * width, min(c * width + width, {last})):")
        lines.append("            " + body)
    else:
        lines.append(f"    for {', '.join(names)} in ndrange({', '.join(sizes)}):")
        lines += ["        " + line for line in [*lookups, body]]
    return "\n".join(lines) + "\n"


# The numbers of axes are all that differs in the text; dtypes are in its variants' keys.
@functools.cache
def _along_kernel(before: int, after: int) -> jit.kernel.Kernel:
    ps, qs = [f"p{n}" for n in range(before)], [f"q{n}" for n in range(after)]
    names = [*ps, "t", *qs]
    size = f"a.shape[{before}]"
    text = f"""def take_along_axis(out, a, index):
    for {", ".join(names)} in ndrange({", ".join(f"out.shape[{n}]" for n in range(len(names)))}):
        j = int64(index[{", ".join(names)}])
        j = max(0, min(j + {size} * int64(j < 0), {size} - 1))
        out[{", ".join(names)}] = a[{", ".join([*ps, "j", *qs])}]
"""
    return jit.kernel.from_text("take_along_axis", text, dict(_SCOPE))


operations.update(take=take, put=put, nonzero=nonzero)
