"""Parses a key with index arrays or masks into an `IndexPlan`.

The rules are NumPy's: masks stand for the index arrays that `nonzero` gives, integers count as index arrays
beside others, all of them broadcast together, and the axes of that shape come first unless the index arrays
are adjacent in the key.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ... import shapes
from ...array import ndarray
from ...array_convert import asarray
from ...array_hooks import is_foreign
from ...dtypes import DType, bool_
from ..scan.nonzero import check_range, positions, raise_outside


class IndexItem(NamedTuple):
    """An index array or mask of a key; `host`: its values, if they came from the host."""

    array: ndarray
    mask: bool
    host: np.ndarray[Any, Any] | None = None


@dataclass(frozen=True)
class IndexPlan:
    """`view` has the axes before + one per index array + after; the result has the axes before + `broadcast`
    + after.
    """

    view: ndarray
    before: int
    indices: tuple[ndarray, ...]
    broadcast: tuple[int, ...]
    distinct: bool  # no element is indexed twice

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of `a[key]`."""
        sizes = self.view._shape
        return sizes[: self.before] + self.broadcast + sizes[self.before + len(self.indices) :]


def index_plan(a: ndarray, key: Any) -> IndexPlan:
    """The plan for `a[key]`. Raises `IndexError` for a key that doesn't fit, and for indices out of range
    where their values are on the host; GPUs are waited for in debug mode and for masks only.
    """
    if isinstance(key, ndarray) and key._dtype.kind in "iu" and key._shape and a._shape and key.device is a.device:
        check_range(key, a._shape[0], 0)  # the common case, which the code below handles too
        return IndexPlan(a, 0, (key,), key._shape, False)
    items = _expand_ellipsis(a, key)
    basic, roles, arrays = _split_key(a, items)
    offset, sizes, steps = shapes.basic_index(a._shape, a._strides, basic)
    before = _leading_axes(items)
    axes: list[tuple[int, int]] = []  # size and stride of each indexed axis of the view
    indices: list[ndarray] = []
    scalars: list[tuple[int, ...]] = []
    for number, (axis, item) in enumerate(arrays):
        at = [k for k, role in enumerate(roles) if role == number]
        if not item.mask:
            n = sizes[at[0]]
            _check_item(item, n, axis)
            axes.append((n, steps[at[0]]))
            indices.append(item.array)
        elif not at:  # a 0-d mask: an axis of size 0 or 1
            scalars.append((int(bool(item.array)),))
        else:
            masked = _mask_axes(item.array, [sizes[k] for k in at], [steps[k] for k in at], a._dtype.itemsize)
            axes += masked[0]
            indices += masked[1]
    sliced = [(n, s) for n, s, role in zip(sizes, steps, roles, strict=True) if role is None]
    order = sliced[:before] + axes + sliced[before:]
    view = a._view(offset, tuple(n for n, _ in order), tuple(s for _, s in order))
    return IndexPlan(
        view,
        before,
        tuple(indices),
        _broadcast_indices(indices, scalars),
        all(i.mask for _, i in arrays) and len(arrays) == 1,
    )


def _split_key(
    a: ndarray, items: Sequence[Any]
) -> tuple[tuple[Any, ...], list[int | None], list[tuple[int, IndexItem]]]:
    """The basic part of a key; for each axis of its view the number of the item that indexes it, or None; and
    each item with its first axis of `a`.
    """
    basic: list[Any] = []
    roles: list[int | None] = []
    found: list[tuple[int, IndexItem]] = []
    axis = 0
    for item in items:
        if item is Ellipsis:
            continue
        if not isinstance(item, IndexItem):
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
    return tuple(basic), roles, found


def _leading_axes(items: Sequence[Any]) -> int:
    """Axes before those of the index arrays: none unless arrays and integers are adjacent."""
    split = [isinstance(item, IndexItem) or _is_integer(item) for item in items]
    first, last = split.index(True), len(split) - split[::-1].index(True)
    together = all(split[first:last])
    return sum(item is None or isinstance(item, slice) for item in items[:first]) if together else 0


def _broadcast_indices(indices: Sequence[ndarray], scalars: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    sizes = [i._shape for i in indices] + list(scalars)
    try:
        return shapes.broadcast_shapes(*sizes)
    except ValueError:
        shown = " ".join(str(s).replace(" ", "") for s in sizes)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shown}; "
            "sizes must be equal or 1"
        ) from None


def _expand_ellipsis(a: ndarray, key: Any) -> list[Any]:
    """Items of a key, in order: slices, None, ints and `IndexItem`s, which together index each axis of `a`."""
    items = [_item(a, x) for x in (key if isinstance(key, tuple) else (key,))]
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(
        (item.array.ndim if item.mask else 1) if isinstance(item, IndexItem) else item is not None for item in items
    ) - len(dots)
    if used > a.ndim:
        raise IndexError(f"too many indices for array: array is {a.ndim}-dimensional, but {used} were indexed")
    position = dots[0] if dots else len(items)
    # an Ellipsis that stands for no axis is kept: it separates index arrays, as in NumPy
    fill: list[Any] = [slice(None)] * (a.ndim - used) or [Ellipsis]
    items[position : position + len(dots)] = fill
    return items


def _is_integer(item: Any) -> bool:
    return item is not None and item is not Ellipsis and not isinstance(item, (slice, IndexItem))


def _item(a: ndarray, x: Any) -> Any:
    if x is None or x is Ellipsis or isinstance(x, slice):
        return x
    if isinstance(x, (bool, np.bool_)):
        return IndexItem(asarray(bool(x)), True)
    if isinstance(x, ndarray):
        return _array_item(a, x, None)
    if isinstance(x, range):
        x = list(x)
    if not isinstance(x, (np.ndarray, list, tuple)):
        try:
            return operator.index(x)
        except TypeError:
            if not is_foreign(x):
                raise _not_an_index(x) from None
            return _array_item(a, asarray(x), None)
    if isinstance(x, (list, tuple)) and _contains_arrays(x):
        return _array_item(a, asarray(x, device=a.device), None)
    values = np.asarray(x)
    if not values.size and isinstance(x, (list, tuple)):
        values = values.astype(np.intp)
    if values.dtype.kind not in "biu":
        raise _not_an_index(x if isinstance(x, list) else values.dtype)
    return _array_item(a, asarray(values, device=a.device), values)


def _contains_arrays(x: Any) -> bool:
    return any(_contains_arrays(item) if isinstance(item, (list, tuple)) else isinstance(item, ndarray) for item in x)


def _array_item(a: ndarray, x: ndarray, host: Any) -> Any:
    if x._dtype.kind not in "biu":
        raise _not_an_index(x._dtype)
    if x._dtype is bool_:
        if x.device is not a.device and x.ndim:
            raise _device_mismatch(a, x)
        return IndexItem(x, True)
    if not x._shape:
        return x.item()
    if x.device is not a.device:
        raise _device_mismatch(a, x)
    return IndexItem(x, False, host)


def _device_mismatch(a: ndarray, x: ndarray) -> ValueError:
    return ValueError(
        f"an index array must be where the array is, got one on {x.device} for {a.device}; move it with .to_device(...)"
    )


def _not_an_index(x: Any) -> IndexError:
    what = str(x) if isinstance(x, (DType, np.dtype)) else f"{type(x).__name__} {x!r}"
    return IndexError(
        f"arrays used as indices must be of integer (or boolean) type, got {what}; "
        "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) "
        "and integer or boolean arrays are valid indices"
    )


def _check_mask(mask: ndarray, shape: tuple[int, ...], axis: int) -> None:
    for k, n in enumerate(mask._shape):
        if n not in (0, shape[axis + k]):  # 0: nothing is selected, whatever the size of the array's axis
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + k}; "
                f"size of axis is {shape[axis + k]} "
                f"but size of corresponding boolean axis is {n}; "
                "a mask has the shape of the axes it stands for"
            )


def _mask_axes(
    mask: ndarray, sizes: list[int], steps: list[int], itemsize: int
) -> tuple[list[tuple[int, int]], list[ndarray]]:
    """The axes that a mask indexes, with an index array for each; one axis where they can be merged."""
    step = shapes.reshape_strides(sizes, steps, (mask._size,), itemsize)
    if step is not None:
        return [(mask._size, step[0])], list(positions(mask, (mask._size,)))
    return list(zip(sizes, steps, strict=True)), list(positions(mask, mask._shape))


def single_mask(a: ndarray, key: Any) -> ndarray | None:
    """The mask, if the key is one mask of leading axes."""
    mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if isinstance(mask, (list, np.ndarray)):
        host = np.asarray(mask)
        mask = asarray(host, device=a.device) if host.dtype.kind == "b" else None
    if (
        not isinstance(mask, ndarray)
        or mask._dtype is not bool_
        or not 0 < mask.ndim <= a.ndim
        or mask.device is not a.device
    ):
        return None
    _check_mask(mask, a._shape, 0)
    return mask


def _check_item(item: IndexItem, size: int, axis: int) -> None:
    if item.host is None:
        check_range(item.array, size, axis)
    elif item.host.size:
        raise_outside(int(item.host.min()), int(item.host.max()), size, axis)
