"""Views of arrays: other axes, another shape or another dtype. `array` takes these functions as its methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyarray import shapes
from pyarray.dtypes import asdtype
from pyarray.keywords import quick
from pyarray.typing import AxisLike, DTypeLike, ShapeLike

if TYPE_CHECKING:
    from pyarray.array import ndarray


@quick("T")
def reversed_axes(a: ndarray) -> ndarray:
    """View with the axes reversed."""
    return a._view(0, a._shape[::-1], a._strides[::-1])


@quick("mT")
def matrix_transpose(a: ndarray) -> ndarray:
    """View with the last two axes exchanged. Raises `ValueError` for fewer than two."""
    if len(a._shape) < 2:
        raise ValueError(f"mT needs an array of 2 or more dimensions, got shape {a._shape}")
    return a.swapaxes(-1, -2)


@quick("ndarray.transpose", 1)
def transpose(a: ndarray, *axes: AxisLike) -> ndarray:
    """View with the axes in the given order, reversed without one. Raises `ValueError` unless each axis
    comes once."""
    order: Any = axes[0] if len(axes) == 1 and (axes[0] is None or hasattr(axes[0], "__iter__")) else axes or None
    shape, strides = shapes.permute(order, a._shape, a._strides)
    return a._view(0, shape, strides)


@quick("swapaxes", 1)
def swapaxes(a: ndarray, axis1: int, axis2: int) -> ndarray:
    """View with two axes exchanged. Raises `AxisError` for an axis out of range."""
    order = list(range(len(a._shape)))
    first, second = (shapes.normalize_axis(axis, len(order)) for axis in (axis1, axis2))
    order[first], order[second] = second, first
    return a.transpose(order)


@quick("squeeze", 1)
def squeeze(a: ndarray, axis: AxisLike = None) -> ndarray:
    """View without the axes of size 1, or without those given: `ValueError` when one has another size."""
    sizes = a._shape
    ones = tuple(k for k, n in enumerate(sizes) if n == 1)
    drop = ones if axis is None else shapes.normalize_axes(axis, len(sizes))
    for k in drop:
        if sizes[k] != 1:
            raise ValueError(f"squeeze needs axes of size 1, but axis {k} of shape {sizes} has {sizes[k]}")
    axes = [k for k in range(len(sizes)) if k not in drop]
    return a._view(0, tuple(sizes[k] for k in axes), tuple(a._strides[k] for k in axes))


@quick("ndarray.reshape", 1)
def reshape(a: ndarray, *shape: ShapeLike, order: str = "C", copy: bool | None = None) -> ndarray:
    """The same elements in another shape, one size of which may be -1; a view where strides allow, else a
    copy.

    Raises `ValueError` when the sizes don't fit, or when `copy=False` and only a copy can.

    >>> from pyarray.array import empty
    >>> empty((4, 6)).reshape(3, -1).shape
    (3, 8)
    """
    if order not in ("C", "F", "A"):
        raise ValueError(f"order is 'C', 'F' or 'A', got {order!r}")
    try:
        target = shapes.resolve_shape(shape[0] if len(shape) == 1 else shape, a._size)
    except ValueError as error:
        raise ValueError(f"{error}; the array has shape {a._shape}") from None
    if order == "F" or (order == "A" and a.flags.f_contiguous and not a.flags.c_contiguous):
        return a.T.reshape(target[::-1], copy=copy).T
    strides = None if copy else shapes.reshape_strides(a._shape, a._strides, target, a._dtype.itemsize)
    if strides is not None:
        return a._view(0, target, strides)
    if copy is False:
        raise ValueError(f"reshaping {a._shape} with strides {a._strides} to {target} needs a copy; pass copy=None")
    return a.copy().reshape(target)


@quick("ravel", 1)
def ravel(a: ndarray, order: str = "C") -> ndarray:
    """All elements as a contiguous 1-D array: a view where they follow each other in memory, else a copy.

    `order` is "C" (the last axis fastest), "F" (the first), "A" ("F" where only that is a view), or "K"
    (as they lie in memory).

    >>> from pyarray.array import empty
    >>> empty((2, 3)).ravel().shape
    (6,)
    """
    a = ordered(a, order)
    return (a if shapes.is_contiguous(a._shape, a._strides, a._dtype.itemsize) else a.copy()).reshape(a._size)


@quick("flatten", 1)
def flatten(a: ndarray, order: str = "C") -> ndarray:
    """All elements as a fresh contiguous 1-D array, in an `order` as of `ravel`."""
    return ordered(a, order).copy().reshape(a._size)


def ordered(a: ndarray, order: str) -> Any:
    """The view of `a` whose elements in C order are those of `a` in the memory order "C", "F", "A" or "K"."""
    if order == "C":
        return a
    if order == "K":
        return a.transpose(shapes.iteration_order(a._shape, a._strides))
    return a.transpose(shapes.axis_order(a._shape, a._strides, a._dtype.itemsize, order))


def lay_out(a: ndarray, order: str, like: Any = None) -> Any:
    """`a`, new and in C order, with its axes laid out in memory order "C" or "F", or
    "A" or "K": as those of the array `like` where it has as many."""
    if order == "C":
        return a
    like = a if like is None or len(like._shape) != len(a._shape) else like
    axes = shapes.axis_order(like._shape, like._strides, like._dtype.itemsize, order)
    packed = shapes.contiguous_strides([a._shape[k] for k in axes], a._dtype.itemsize)
    strides = tuple(packed[axes.index(k)] for k in range(len(axes)))
    contiguous = shapes.is_contiguous(a._shape, strides, a._dtype.itemsize)
    a._relayout(a._buffer, a._ptr, a._shape, strides, a._key | (not contiguous) << 16)
    return a


def view(a: ndarray, dtype: DTypeLike = None) -> ndarray:
    """The same bytes as another dtype; the last axis must be contiguous when the item size differs.

    Raises `ValueError` where the bytes don't divide, or the address is not aligned for the new dtype.

    >>> from pyarray.array import empty
    >>> empty(4, "float32").view("int16").shape
    (8,)
    """
    kind = a._dtype if dtype is None else asdtype(dtype)
    shape, strides = a._shape, a._strides
    old, new = a._dtype.itemsize, kind.itemsize
    if old != new:
        if not shape or (strides[-1] != old and shape[-1] != 1 and a._size):
            raise ValueError(f"a view as {kind} needs a contiguous last axis, got strides {strides}; copy")
        if shape[-1] * old % new:
            raise ValueError(f"the last axis has {shape[-1] * old} bytes, no multiple of the {new} of {kind}")
        shape, strides = shape[:-1] + (shape[-1] * old // new,), strides[:-1] + (new,)
    if a._ptr % kind.numpy.alignment or any(step % kind.numpy.alignment for step in strides):
        raise ValueError(f"the memory is not aligned for {kind}; view a copy, a.copy().view({kind})")
    result = a._view(0, shape, strides, dtype=kind)
    if (a._ptr - result._base._ptr) % new:
        result._base = None  # offsets count elements: what starts inside one counts from itself
    return result


def memory_range(a: ndarray) -> tuple[int, int]:
    """Addresses of the first byte that `a` shows, and of the byte after the last."""
    low, high = shapes.byte_bounds(a._shape, a._strides, a._dtype.itemsize)
    return a._ptr + low, a._ptr + high


def overlaps(a: ndarray, b: ndarray) -> bool:
    """Whether two arrays may share bytes. Gaps between strided elements count as covered."""
    if a._buffer.device is not b._buffer.device:
        return False
    return shapes.may_overlap(memory_range(a), memory_range(b))


def repetition(a: ndarray) -> str:
    """Why `a` can't be written, for messages, where it has an element at several indices; "" elsewhere."""
    if not shapes.repeats(a._shape, a._strides):
        return ""
    return f"elements repeat (strides {a._strides}), and each would be written more than once"


def check_may_write(a: ndarray) -> None:
    """Raises `ValueError` for a read-only array that can't be made writeable."""
    is_owner = a._base._writeable if a._base is not None else a._writeable or a._buffer.owner is None
    if (why := repetition(a)) or not is_owner:
        why = why or "the memory belongs to a read-only array"
        raise ValueError(f"cannot set writeable: {why}; assign to a copy, a.copy()")
