"""Index arrays and masks: `a[key]` and `a[key] = value` where the key is no basic one, `nonzero`, `take_along_axis`.

A key is taken apart once into a `Plan`: a view with the basic part applied, and one index array per remaining axis. Masks become
index arrays by `nonzero`. What is left is one kernel text per number of index arrays and ranks. Elements are moved as unsigned
integers of their size, so that all dtypes share a few artifacts.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import array_host
from .. import shape as shapes
from ..array import empty, ndarray, operations
from ..array_convert import asarray
from ..array_hooks import operation
from ..dtypes import DType, bool_, int64, uint8, uint16, uint32, uint64
from ..jit.kernel import Kernel, from_text, mode
from ..lang.markers import ndrange

BLOCK = 128  # elements that one iteration of a scan counts
BLOCKS = 1 << 14  # the blocks' results are added up by one thread
ROW = 256  # elements of a row that one iteration copies on the CPU; elsewhere neighbours are neighbouring threads

_BITS = {1: uint8, 2: uint16, 4: uint32, 8: uint64}
_SCOPE = {"ndrange": ndrange, "int64": int64}


class Item(NamedTuple):
    """An index array or mask of a key; `checked` says that the host has seen its values to be in range, or that they are by their
    making."""

    array: ndarray
    mask: bool
    host: np.ndarray[Any, Any] | None = None


@dataclass(frozen=True)
class Plan:
    """`view` has the axes before + one per index array + after; the result has the axes before + `broadcast` + after."""

    view: ndarray
    before: int
    indices: tuple[ndarray, ...]
    broadcast: tuple[int, ...]
    distinct: bool  # no element is met twice

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of `a[key]`."""
        sizes = self.view._shape
        return sizes[: self.before] + self.broadcast + sizes[self.before + len(self.indices) :]


# ---- the operations


def take(a: ndarray, key: Any) -> ndarray:
    """`a[key]` with index arrays, lists or masks in the key: a fresh array.

    Raises `IndexError` for an index out of range (off the CPU only in debug mode; else it is clamped), a mask of another shape,
    index arrays that don't broadcast, or an index of another type.
    """
    plan = _plan(a, key)
    out = empty(plan.shape, a._dtype, a.device)
    _move("gather", plan, out)
    return out


def put(a: ndarray, key: Any, value: Any) -> None:
    """`a[key] = value`; the value broadcasts and is cast to `a`'s dtype. Of several values for one element the last one stays on
    the CPU, any one of them elsewhere.

    Raises as `take` does, before anything is written, and `ValueError` for a value that doesn't broadcast.
    """
    mask = _only_mask(a, key)
    if mask is not None and (not isinstance(value, ndarray) or value._size == 1):
        source = _source(a, value)
        if source._size == 1:
            return _fill_where(a, mask, source)
        value = source
    plan = _plan(a, key)
    source = _broadcast(_source(a, value), plan.shape)
    kept = tuple(i.copy() if _overlap(i, a) else i for i in plan.indices)
    plan = Plan(plan.view, plan.before, kept, plan.broadcast, plan.distinct)
    _move("scatter" if plan.distinct or not array_host.on_host(a) else "scatter_in_order", plan, source)


def nonzero(a: ndarray) -> tuple[ndarray, ...]:
    """Positions of the elements that are not zero, in C order: one 1-D int64 array per axis. Waits for the device.

    Raises `ValueError` for a 0-d array.
    """
    if not a._shape:
        raise ValueError("nonzero() takes an array of 1 or more dimensions, got a 0-d array; use a.reshape(1)")
    return _positions(a, a._shape)


def count_nonzero(a: ndarray) -> int:
    """How many elements are not zero, as a Python number. Waits for the device."""
    return _counted(_flat_bits(a))[1] if a._size else 0


def take_along_axis(a: ndarray, indices: ndarray, axis: int) -> ndarray:
    """`out[..., k, ...] = a[..., indices[..., k, ...], ...]` along `axis` (0 to ndim - 1); the other axes broadcast.

    Raises `IndexError` for an index out of range (off the CPU only in debug mode; else it is clamped) or of another type than
    integer, `ValueError` for ranks that differ or shapes that don't broadcast.
    """
    if indices._dtype.kind not in "iu":
        raise IndexError(f"indices of take_along_axis are integers, got {indices._dtype}; cast them with astype")
    if indices.ndim != a.ndim:
        raise ValueError(
            f"take_along_axis needs indices with as many dimensions as the array, got {indices._shape} for {a._shape}; "
            "insert axes of size 1"
        )
    rest = shapes.broadcast_shapes(*(s[:axis] + s[axis + 1 :] for s in (a._shape, indices._shape)))
    shape = rest[:axis] + indices._shape[axis : axis + 1] + rest[axis:]
    source = _broadcast(a, rest[:axis] + a._shape[axis : axis + 1] + rest[axis:])
    index = _broadcast(indices, shape)
    out = empty(shape, a._dtype, a.device)
    if not out._size:
        return out
    _check_range(indices, a._shape[axis], axis)
    arrays = bits(out), bits(source), index
    cut = [slice(0, axis), slice(axis, axis + 1), slice(axis + 1, None)]
    groups = [shapes.collapse(shape[c], *(x._strides[c] for x in arrays)) for c in (cut[0], cut[2])]
    views = []
    for n, x in enumerate(arrays):
        sizes = groups[0][0] + x._shape[cut[1]] + groups[1][0]
        views.append(x._view(0, sizes, groups[0][1][n] + x._strides[cut[1]] + groups[1][1][n]))
    _along_kernel(len(groups[0][0]), len(groups[1][0]))(*views)
    return out


# ---- taking a key apart


def _plan(a: ndarray, key: Any) -> Plan:
    items = _expanded(a, key)
    basic: list[Any] = []
    roles: list[Any] = []  # per axis of the view: None where it stays, else the number of its item
    found: list[tuple[int, Item]] = []  # (axis of `a`, item)
    axis = 0
    for item in items:
        if item is Ellipsis:
            continue
        if not isinstance(item, Item):
            basic.append(item)
            axis += item is not None
            if not _is_integer(item):
                roles.append(None)
            continue
        consumed = item.array.ndim if item.mask else 1
        if item.mask:
            _check_mask(item.array, a._shape, axis)
        roles += [len(found)] * consumed
        basic += [slice(None)] * consumed
        found.append((axis, item))
        axis += consumed
    offset, sizes, steps = shapes.basic_index(a._shape, a._strides, tuple(basic))
    split = [isinstance(item, Item) or _is_integer(item) for item in items]
    first, last = split.index(True), len(split) - split[::-1].index(True)
    before = sum(item is None or isinstance(item, slice) for item in items[:first]) if all(split[first:last]) else 0

    axes: list[tuple[int, int]] = []  # size and stride of each indexed axis of the view
    indices: list[ndarray] = []
    scalars: list[tuple[int, ...]] = []
    for number, (place, item) in enumerate(found):
        at = [k for k, role in enumerate(roles) if role == number]
        if not item.mask:
            n = sizes[at[0]]
            _check_item(item, n, place)
            axes.append((n, steps[at[0]]))
            indices.append(item.array)
        elif not at:  # a 0-d mask: an axis of size 0 or 1
            scalars.append((int(bool(item.array)),))
        else:
            made = _mask_axes(item.array, [sizes[k] for k in at], [steps[k] for k in at], a._dtype.itemsize)
            axes += made[0]
            indices += made[1]
    kept = [(n, s) for n, s, role in zip(sizes, steps, roles, strict=True) if role is None]
    order = kept[:before] + axes + kept[before:]
    view = a._view(offset, tuple(n for n, _ in order), tuple(s for _, s in order))
    return Plan(view, before, tuple(indices), _broadcast_indices(indices, scalars), all(i.mask for _, i in found) and len(found) == 1)


def _broadcast_indices(indices: Sequence[ndarray], scalars: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    sizes = [i._shape for i in indices] + list(scalars)
    try:
        return shapes.broadcast_shapes(*sizes)
    except ValueError:
        shown = " ".join(str(s).replace(" ", "") for s in sizes)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shown}; sizes must be equal or 1"
        ) from None


def _expanded(a: ndarray, key: Any) -> list[Any]:
    """Items of a key, in order: slices, None, ints and `Item`s, which together cover each axis of `a`."""
    items = [_item(a, x) for x in (key if isinstance(key, tuple) else (key,))]
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum((item.array.ndim if item.mask else 1) if isinstance(item, Item) else item is not None for item in items) - len(dots)
    if used > a.ndim:
        raise IndexError(f"too many indices for array: array is {a.ndim}-dimensional, but {used} were indexed")
    place = dots[0] if dots else len(items)
    # an Ellipsis that stands for no axis stays: it separates index arrays, as in NumPy
    fill: list[Any] = [slice(None)] * (a.ndim - used) or [Ellipsis]
    items[place : place + len(dots)] = fill
    return items


def _is_integer(item: Any) -> bool:
    return item is not None and item is not Ellipsis and not isinstance(item, (slice, Item))


def _item(a: ndarray, x: Any) -> Any:
    if x is None or x is Ellipsis or isinstance(x, slice):
        return x
    if isinstance(x, (bool, np.bool_)):
        return Item(asarray(bool(x)), True)
    if isinstance(x, ndarray):
        return _array_item(a, x, None)
    if not isinstance(x, (np.ndarray, list, tuple)):
        try:
            return operator.index(x)
        except TypeError:
            if not hasattr(x, "__dlpack__"):
                raise _not_an_index(x) from None
            return _array_item(a, asarray(x), None)
    if isinstance(x, (list, tuple)) and _holds_arrays(x):
        return _array_item(a, asarray(x, device=a.device), None)
    values = np.asarray(x)
    if not values.size and isinstance(x, (list, tuple)):
        values = values.astype(np.intp)
    if values.dtype.kind not in "biu":
        raise _not_an_index(x if isinstance(x, list) else values.dtype)
    return _array_item(a, asarray(values, device=a.device), values)


def _holds_arrays(x: Any) -> bool:
    return any(_holds_arrays(item) if isinstance(item, (list, tuple)) else isinstance(item, ndarray) for item in x)


def _array_item(a: ndarray, x: ndarray, host: Any) -> Any:
    if x._dtype.kind not in "biu":
        raise _not_an_index(x._dtype)
    if x._dtype is bool_:
        if x.device is not a.device and x.ndim:
            raise _elsewhere(a, x)
        return Item(x, True)
    if not x._shape:
        return x.item()
    if x.device is not a.device:
        raise _elsewhere(a, x)
    return Item(x, False, host)


def _elsewhere(a: ndarray, x: ndarray) -> ValueError:
    return ValueError(f"an index array must be where the array is, got one on {x.device} for {a.device}; move it with .to_device(...)")


def _not_an_index(x: Any) -> IndexError:
    what = str(x) if isinstance(x, (DType, np.dtype)) else f"{type(x).__name__} {x!r}"
    return IndexError(
        f"arrays used as indices must be of integer (or boolean) type, got {what}; "
        "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays are valid indices"
    )


# ---- masks


def _check_mask(mask: ndarray, shape: tuple[int, ...], axis: int) -> None:
    for k, n in enumerate(mask._shape):
        if shape[axis + k] != n:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + k}; size of axis is {shape[axis + k]} "
                f"but size of corresponding boolean axis is {n}; a mask has the shape of the axes it stands for"
            )


def _mask_axes(
    mask: ndarray, sizes: list[int], steps: list[int], itemsize: int
) -> tuple[list[tuple[int, int]], list[ndarray]]:
    """The axes a mask stands for and an index array for each; one axis where they can be merged."""
    step = shapes.reshape_strides(sizes, steps, (mask._size,), itemsize)
    if step is not None:
        return [(mask._size, step[0])], list(_positions(mask, (mask._size,)))
    return list(zip(sizes, steps, strict=True)), list(_positions(mask, mask._shape))


def _only_mask(a: ndarray, key: Any) -> ndarray | None:
    """The mask, when the key is nothing but one mask of leading axes."""
    mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if isinstance(mask, (list, np.ndarray)):
        host = np.asarray(mask)
        mask = asarray(host, device=a.device) if host.dtype.kind == "b" else None
    if not isinstance(mask, ndarray) or mask._dtype is not bool_ or not 0 < mask.ndim <= a.ndim or mask.device is not a.device:
        return None
    _check_mask(mask, a._shape, 0)
    return mask


def _fill_where(a: ndarray, mask: ndarray, source: ndarray) -> None:
    """`a[mask] = scalar`, without looking for positions."""
    if not a._size:
        return
    mask = mask.copy() if _overlap(mask, a) else mask
    lead = mask._view(0, mask._shape + (1,) * (a.ndim - mask.ndim), mask._strides + (0,) * (a.ndim - mask.ndim))
    target, lead = bits(a), _broadcast(lead, a._shape)
    shape, steps = shapes.collapse(a._shape, target._strides, lead._strides)
    kernel = _fill_kernel(len(shape))
    kernel(target._view(0, shape, steps[0]), lead._view(0, shape, steps[1]), bits(source)._view(0, (), ()))


@functools.cache
def _fill_kernel(rank: int) -> Kernel:
    names = [f"k{n}" for n in range(rank)]
    at = ", ".join(names) or "()"
    text = "def fill_where(a, mask, x):\n    value = x[()]\n"
    if rank:
        text += f"    for {at} in ndrange({', '.join(f'a.shape[{n}]' for n in range(rank))}):\n    "
    text += f"    if mask[{at}]:\n    {'    ' * bool(rank)}    a[{at}] = value\n"
    return from_text("fill_where", text, dict(_SCOPE))


def _flat_bits(a: ndarray) -> ndarray:
    """All elements in C order as a 1-D array; integers of one size share an artifact."""
    flat = operation("contiguous")(a).reshape(a._size)
    return bits(flat) if a._dtype.kind in "iu" else flat


def _block(count: int) -> int:
    return max(BLOCK, -(-count // BLOCKS))


def _counted(flat: ndarray) -> tuple[ndarray, int]:
    """Nonzero elements before each block of `flat`, and their total."""
    block = _block(flat._size)
    found = empty(-(-flat._size // block) + 1, int64, flat.device)
    _count_kernel()(found, flat, block)
    return found, int(array_host.host(found[-1:])[0])


def _positions(a: ndarray, shape: tuple[int, ...]) -> tuple[ndarray, ...]:
    """Positions of `a`'s nonzero elements in an array of `shape`, which has as many elements."""
    if not a._size:
        return tuple(empty(0, int64, a.device) for _ in shape)
    flat = _flat_bits(a)
    found, total = _counted(flat)
    out = empty((len(shape), total), int64, a.device)
    if total:
        _positions_kernel(len(shape))(out, flat, found, _block(flat._size), *shape[1:])
    return tuple(out[k] for k in range(len(shape)))


@functools.cache
def _count_kernel() -> Kernel:
    text = """def count_nonzero(found, x, block: int):
    for b in range(found.shape[0] - 1):
        n = 0
        for t in range(b * block, min(b * block + block, x.shape[0])):
            if x[t]:
                n += 1
        found[b + 1] = n
    for zero in range(1):
        found[zero] = 0
        for b in range(2, found.shape[0]):
            found[b] += found[b - 1]
"""
    return from_text("count_nonzero", text, dict(_SCOPE))


@functools.cache
def _positions_kernel(rank: int) -> Kernel:
    sizes = [f"n{k}" for k in range(1, rank)]
    text = f"""def nonzero(out, x, found, {', '.join(f'{n}: int' for n in ['block', *sizes])}):
    for b in range(found.shape[0] - 1):
        at = found[b]
        if found[b + 1] > at:
            for t in range(b * block, min(b * block + block, x.shape[0])):
                if x[t]:
                    left = t
"""
    pad = "    " * 5
    for k in reversed(range(1, rank)):
        text += f"{pad}out[{k}, at] = left % n{k}\n{pad}left = left // n{k}\n"
    text += f"{pad}out[0, at] = left\n{pad}at += 1\n"
    return from_text("nonzero", text, dict(_SCOPE))


# ---- the range of indices


def _check_item(item: Item, size: int, axis: int) -> None:
    if item.host is None:
        _check_range(item.array, size, axis)
    elif item.host.size:
        _raise_outside(int(item.host.min()), int(item.host.max()), size, axis)


def _check_range(index: ndarray, size: int, axis: int) -> None:
    """Raises `IndexError` unless all indices are in range. Off the CPU, where the answer is waited for, only in debug mode."""
    if not index._size:
        return
    if not size:
        _raise_outside(0, 0, size, axis)
    if array_host.on_host(index) or mode.debug:
        flat = operation("contiguous")(index).reshape(index._size)
        block = _block(flat._size)
        found = empty((2, -(-flat._size // block)), int64, index.device)
        _extremes_kernel()(found, flat, block)
        low, high = array_host.host(found)[:, 0].tolist()
        _raise_outside(low, high, size, axis)


def _raise_outside(low: int, high: int, size: int, axis: int) -> None:
    if low < -size or high >= size:
        wrong = low if low < -size else high
        legal = f"indices run from {-size} to {size - 1}" if size else "there is nothing to index"
        raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {size}; {legal}")


@functools.cache
def _extremes_kernel() -> Kernel:
    text = """def extremes(found, index, block: int):
    for b in range(found.shape[1]):
        low = int64(index[b * block])
        high = low
        for t in range(b * block + 1, min(b * block + block, index.shape[0])):
            x = int64(index[t])
            low = min(low, x)
            high = max(high, x)
        found[0, b] = low
        found[1, b] = high
    for zero in range(1):
        for b in range(1, found.shape[1]):
            found[0, zero] = min(found[0, zero], found[0, b])
            found[1, zero] = max(found[1, zero], found[1, b])
"""
    return from_text("extremes", text, dict(_SCOPE))


# ---- moving elements


def bits(a: ndarray) -> ndarray:
    """`a` as unsigned integers of its item size; 16 bytes have no integer and stay what they are."""
    kind = _BITS.get(a._dtype.itemsize)
    if kind is None or kind is a._dtype:
        return a
    view: ndarray = a._view(0, a._shape, a._strides)
    view._dtype = kind
    view._key = view._key & ~0xFF | kind.code
    return view


def _broadcast(x: ndarray, shape: tuple[int, ...]) -> ndarray:
    """`x` read as an array of `shape`; leading axes of size 1 that are too many are dropped, as in an assignment."""
    extra = x.ndim - len(shape)
    sizes, steps = x._shape, x._strides
    if extra > 0 and set(sizes[:extra]) <= {1}:
        sizes, steps = sizes[extra:], steps[extra:]
    try:
        steps = shapes.broadcast_strides(sizes, steps, shape)
    except ValueError:
        raise ValueError(
            f"shape mismatch: value array of shape {x._shape} could not be broadcast to indexing result of shape {shape}; "
            "sizes must be equal or 1"
        ) from None
    view: ndarray = x._view(0, shape, steps)
    return view


def _source(a: ndarray, value: Any) -> ndarray:
    """What is written into `a`: an array of its dtype that shares no memory with it."""
    if isinstance(value, ndarray):
        if value.device is not a.device:
            raise ValueError(
                f"assignment between devices: target on {a.device}, value on {value.device}; move it with .to_device(...)"
            )
        if value._dtype is a._dtype:
            return value.copy() if _overlap(value, a) else value
    elif type(value) not in (bool, int, float, complex):
        return _source(a, asarray(value, device=a.device))
    source = empty(value._shape if isinstance(value, ndarray) else (), a._dtype, a.device)
    operation("assign")(source, value)
    return source


def _overlap(x: ndarray, y: ndarray) -> bool:
    ranges = []
    for a in (x, y):
        low, high = shapes.byte_bounds(a._shape, a._strides, a._dtype.itemsize)
        ranges.append((a._ptr + low, a._ptr + high))
    return x.device is y.device and shapes.may_overlap(ranges[0], ranges[1])


def _move(name: str, plan: Plan, x: ndarray) -> None:
    """Moves elements between `plan.view` and `x`, which has the shape of the plan's result."""
    if not x._size:
        return
    view, count = plan.view, len(plan.indices)
    a, x = bits(view), bits(x)
    behind, end = plan.before + count, plan.before + len(plan.broadcast)
    before = shapes.collapse(x._shape[: plan.before], a._strides[: plan.before], x._strides[: plan.before])
    after = shapes.collapse(x._shape[end:], a._strides[behind:], x._strides[end:])
    steps = [shapes.broadcast_strides(i._shape, i._strides, plan.broadcast) for i in plan.indices]
    middle = shapes.collapse(plan.broadcast, x._strides[plan.before : end], *steps)
    if not middle[0]:
        middle = (1,), ((0,),) * (count + 1)
    source = a._view(
        0,
        before[0] + a._shape[plan.before : behind] + after[0],
        before[1][0] + a._strides[plan.before : behind] + after[1][0],
    )
    target = x._view(0, before[0] + middle[0] + after[0], before[1][1] + middle[1][0] + after[1][1])
    indices = [i._view(0, middle[0], middle[1][n + 1]) for n, i in enumerate(plan.indices)]
    kernel = _move_kernel(name, len(before[0]), len(middle[0]), len(after[0]), count)
    kernel(source, target, *indices, ROW if array_host.on_host(a) else 1)


@functools.cache
def _move_kernel(name: str, before: int, middle: int, after: int, count: int) -> Kernel:
    return from_text(name, _move_text(name, before, middle, after, count), dict(_SCOPE))


def _move_text(name: str, before: int, middle: int, after: int, count: int) -> str:
    """`x[p..., b..., q...] = a[p..., i0[b...], i1[b...], ..., q...]` or the other way round.

    Indices are looked up outside the loop over the last axis where they don't depend on it.
    """
    ps, bs, qs = ([f"{letter}{n}" for n in range(rank)] for letter, rank in (("p", before), ("b", middle), ("q", after)))
    js = [f"j{n}" for n in range(count)]
    sizes = [f"x.shape[{n}]" for n in range(before + middle + after)]
    lookups = []
    for n, j in enumerate(js):
        size = f"a.shape[{before + n}]"
        lookups.append(f"{j} = int64(i{n}[{', '.join(bs)}])")
        lookups.append(f"{j} = max(0, min({j} + {size} if {j} < 0 else {j}, {size} - 1))")
    here, there = f"x[{', '.join(ps + bs + qs)}]", f"a[{', '.join(ps + js + qs) or '()'}]"
    body = f"{here} = {there}" if name == "gather" else f"{there} = {here}"
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


@functools.cache
def _along_kernel(before: int, after: int) -> Kernel:
    ps, qs = [f"p{n}" for n in range(before)], [f"q{n}" for n in range(after)]
    names = [*ps, "t", *qs]
    size = f"a.shape[{before}]"
    text = f"""def take_along_axis(out, a, index):
    for {', '.join(names)} in ndrange({', '.join(f'out.shape[{n}]' for n in range(len(names)))}):
        j = int64(index[{', '.join(names)}])
        j = max(0, min(j + {size} if j < 0 else j, {size} - 1))
        out[{', '.join(names)}] = a[{', '.join([*ps, 'j', *qs])}]
"""
    return from_text("take_along_axis", text, dict(_SCOPE))


operations.update(take=take, put=put, nonzero=nonzero)
