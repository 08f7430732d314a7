"""Choosing and replacing elements: by conditions, masks and positions, in place or as copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import shapes
from ...array import empty, ndarray
from ...array_convert import asarray
from ...array_hooks import operation
from ...dtypes import bool_, int64, result_type
from ...jit.replay import replayable
from ...kernels.index import gather
from ...typing import ArrayLike
from ..core.registry import method
from ..core.ufunc import as_arrays, as_operands, device_of
from ..standard.creation import arange
from ..standard.elementwise import not_equal
from ..standard.indexing import take, within
from ..standard.manipulation import stack
from ..standard.searching import nonzero, where
from ..standard.searching import where as chosen

__all__ = [
    "argwhere", "choose", "compress", "copyto", "extract", "fill_diagonal", "flatnonzero", "piecewise",
    "place", "put", "put_along_axis", "putmask", "select",
]  # fmt: skip


def _mask(x: ndarray) -> ndarray:
    return x if x._dtype is bool_ else not_equal(x, 0)


def argwhere(x: ArrayLike, /) -> ndarray:
    """Indices (int64) of the elements that are not zero, a row each, in C order. Waits for the device.

    >>> pa.argwhere(pa.asarray([[0, 5], [7, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    x = asarray(x)
    return stack(nonzero(x), axis=1) if x.ndim else empty((int(bool(x)), 0), int64, x.device)


def flatnonzero(x: ArrayLike, /) -> ndarray:
    """Flat positions, in C order, of the elements that are not zero. Waits for the device.

    >>> pa.flatnonzero(pa.asarray([[0, 5], [7, 0]])).tolist()
    [1, 2]
    """
    return nonzero(asarray(x).ravel())[0]


def extract(condition: ArrayLike, x: ArrayLike, /) -> ndarray:
    """Elements of `x`, in C order, where `condition` (of as many elements) is true, as a 1-D array.

    >>> pa.extract([True, False, True], [1, 2, 3]).tolist()
    [1, 3]
    """
    x, condition = as_arrays("extract", x, condition)
    return take(x.ravel(), nonzero(condition.ravel())[0])


def compress(condition: ArrayLike, x: ArrayLike, /, axis: int | None = None) -> ndarray:
    """Slices of `x` along `axis` (None: elements of the flattened one) where the 1-D `condition`, which may
    be shorter, is true.

    >>> pa.compress([False, True], [[1, 2], [3, 4]], axis=0).tolist()
    [[3, 4]]
    """
    x, condition = as_arrays("compress", x, condition)
    if condition.ndim != 1:
        raise ValueError(f"compress(): the condition is 1-D, got shape {condition.shape}")
    return take(x, nonzero(condition)[0], axis=axis)


@replayable
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: ArrayLike = 0) -> ndarray:
    """For each element the choice of the first condition that is true, else `default`; all broadcast.

    Raises `ValueError` for no conditions, or lists of different lengths, `TypeError` for conditions that
    aren't bool.

    >>> x = pa.arange(4)
    >>> pa.select([x < 1, x > 2], [x, x * 10], -1).tolist()
    [0, -1, -1, 30]
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(f"select() takes as many choices as conditions, got {len(choicelist)} and {len(condlist)}")
    operands = as_operands("select", (*condlist, *choicelist, default))
    conditions, choices = operands[: len(condlist)], operands[len(condlist) :]
    if any(c._dtype is not bool_ if isinstance(c, ndarray) else not isinstance(c, bool) for c in conditions):
        raise TypeError("select(): conditions are bool; compare with something")
    device = device_of(operands)
    shape = shapes.broadcast_shapes(*(x.shape for x in operands if isinstance(x, ndarray)))
    out = asarray(choices[-1], result_type(*choices), device=device, copy=True)
    if out.shape != shape:
        out = out._view(0, shape, shapes.broadcast_strides(out.shape, out.strides, shape)).copy()
    for condition, choice in reversed(list(zip(conditions, choices[:-1], strict=True))):
        out = where(asarray(condition, device=device), asarray(choice, out._dtype, device=device), out)
    return out


@method
@replayable
def choose(a: ArrayLike, choices: Sequence[ArrayLike] | ndarray, mode: str = "raise") -> ndarray:
    """For each integer i of `a`, the element at its position in `choices[i]`; all broadcast.

    Numbers out of range: `mode` "raise" (`ValueError`), "wrap" around, or "clip" to the ends.

    >>> pa.choose([1, 0, 1], [[1, 2, 3], 10]).tolist()
    [10, 2, 10]
    """
    selector, *options = as_arrays("choose", a, *choices)
    if selector._dtype.kind not in "iub":
        raise TypeError(f"choose(): the numbers of choices are integers, got {selector._dtype}")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"choose(): mode is raise, wrap or clip, got {mode!r}")
    number: Any = selector.astype(int64, copy=False)
    if mode == "raise" and number.size and bool(((number < 0) | (number >= len(options))).any()):
        raise ValueError(f"choose(): a number is out of range for {len(options)} choices; pass mode='clip'")
    number = number % len(options) if mode == "wrap" else number.clip(0, len(options) - 1)
    kind = result_type(*options)
    result: Any = options[-1].astype(kind, copy=False)
    for n in reversed(range(len(options) - 1)):
        result = where(number == n, options[n].astype(kind, copy=False), result)
    return result if len(options) > 1 else where(number >= 0, result, result)


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> ndarray:
    """For each element of `x`, the value of the function (or the number) of the last condition that is true there,
    in the dtype of `x`; a further function is for elements without a true condition. `args` and `kw` go to the
    functions. Waits for the device.

    >>> x = pa.asarray([-2.0, 0.0, 3.0])
    >>> pa.piecewise(x, [x < 0, x > 0], [lambda v: -v, 10.0]).tolist()
    [2.0, 0.0, 10.0]
    """
    x = asarray(x)
    one = isinstance(condlist, (bool, ndarray)) and getattr(condlist, "ndim", 0) <= x.ndim
    conditions: Any = [condlist] if one else condlist
    masks: list[Any] = [_mask(asarray(c, device=x.device)) for c in conditions]
    if len(funclist) == len(masks) + 1:
        otherwise: Any = masks[0]
        for mask in masks[1:]:
            otherwise = otherwise | mask
        masks.append(~otherwise)
    if len(funclist) != len(masks):
        raise ValueError(f"piecewise(): {len(masks)} conditions take as many functions, got {len(funclist)}")
    out = x.copy()
    out[...] = 0
    for mask, function in zip(masks, funclist, strict=True):
        if not callable(function):
            out[mask] = function
        elif (chosen := x[mask]).size:
            out[mask] = function(chosen, *args, **kw)
    return out


# ---- in place


def _target(name: str, a: Any) -> ndarray:
    if not isinstance(a, ndarray):
        raise TypeError(f"{name}() writes into a pyarray array, got {type(a).__name__}")
    a._check_writeable()  # also where there is nothing to write
    return a


@method
def put(a: ndarray, ind: ArrayLike, v: ArrayLike, /, mode: str = "raise") -> None:
    """Writes `v`, repeated as needed, at the flat positions `ind` of `a`. Positions out of range: `mode`
    "raise" (`IndexError`; on a GPU in debug mode), "wrap" around, or "clip" to the ends.

    >>> a = pa.zeros(4); pa.put(a, [1, -1], [7, 8]); a.tolist()
    [0.0, 7.0, 0.0, 8.0]
    """
    a = _target("put", a)
    index: Any = asarray(ind, device=a.device).ravel()
    index = index if index._dtype.kind in "iu" else index.astype(int64)
    index = within("put", index, a.size, mode)
    values = asarray(v, device=a.device).ravel()
    if not index.size or not values.size:
        return
    if values.size not in (1, index.size):
        values = take(values, arange(index.size, device=a.device) % values.size)
    flat = a.reshape(a.size)
    flat[index] = values
    if not a.flags.c_contiguous:
        a[...] = flat.reshape(a.shape)


def put_along_axis(a: ndarray, indices: ArrayLike, values: ArrayLike, /, axis: int | None = -1) -> None:
    """Writes `values` at `indices` along `axis` (None: of the flattened array), where the other axes run
    along: what `take_along_axis` reads. Values broadcast to the indices.

    >>> a = pa.zeros((2, 2)); pa.put_along_axis(a, [[1], [0]], 5, axis=1); a.tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    a = _target("put_along_axis", a)
    index = asarray(indices, device=a.device)
    if axis is None:
        put(a, index, values)
        return
    k = shapes.normalize_axis(axis, a.ndim)
    if index.ndim != a.ndim:
        raise ValueError(f"put_along_axis(): indices have as many axes as the array, got {index.shape} for {a.shape}")
    lines = [arange(n, device=a.device).reshape(shapes.column_shape(axis, a.ndim)) for axis, n in enumerate(a.shape)]
    gather.put(a, tuple(index if d == k else line for d, line in enumerate(lines)), values)


def _positions(name: str, a: ndarray, mask: Any) -> ndarray:
    chosen = asarray(mask, device=a.device)
    if chosen.size != a.size:
        raise ValueError(f"{name}(): the mask has shape {chosen.shape}, the array {a.shape}")
    return nonzero(chosen.ravel())[0]


def place(a: ndarray, mask: ArrayLike, vals: ArrayLike, /) -> None:
    """Writes `vals` in order, repeated as needed, where `mask` (of the shape of `a`) is true. Waits for
    the device. Raises `ValueError` for no values, and a mask of another size.

    >>> a = pa.arange(4); pa.place(a, a > 1, [7]); a.tolist()
    [0, 1, 7, 7]
    """
    a = _target("place", a)
    where_true = _positions("place", a, mask)
    values = asarray(vals, device=a.device).ravel()
    if not values.size and where_true.size:
        raise ValueError("place(): there are no values to write")
    put(a, where_true, values)


def putmask(a: ndarray, mask: ArrayLike, values: ArrayLike, /) -> None:
    """Writes `values` where `mask` (of the shape of `a`) is true: each element gets the value at its own
    position, repeated where there are fewer.

    >>> a = pa.arange(4); pa.putmask(a, a > 1, [7, 8]); a.tolist()
    [0, 1, 7, 8]
    """
    a = _target("putmask", a)
    where_true = _positions("putmask", a, mask)
    flat_values = asarray(values, device=a.device).ravel()
    if where_true.size and flat_values.size:
        put(a, where_true, take(flat_values, where_true % flat_values.size))


def copyto(dst: ndarray, src: ArrayLike, *, where: ArrayLike = True) -> None:
    """`dst[...] = src`, where `where` is true.

    >>> a = pa.zeros(2); pa.copyto(a, 5, where=pa.asarray([True, False])); a.tolist()
    [5.0, 0.0]
    """
    dst = _target("copyto", dst)
    if where is True:
        dst[...] = src
        return
    mask = _mask(asarray(where, device=dst.device))
    value = asarray(src, device=dst.device).astype(dst._dtype, copy=False)
    operation("assign")(dst, chosen(mask, value, dst))


def fill_diagonal(a: ndarray, val: ArrayLike, /, wrap: bool = False) -> None:
    """Writes `val`, a number or values repeated as needed, on the main diagonal of `a`; with `wrap` again after a
    tall matrix's last column, as NumPy. Raises `ValueError` for fewer than 2 dimensions, or more of different
    sizes.

    >>> a = pa.zeros((2, 2)); pa.fill_diagonal(a, 3); a.tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    a = _target("fill_diagonal", a)
    if a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) != 1):
        raise ValueError(f"fill_diagonal() takes a matrix, or more dimensions of one size, got shape {a.shape}")
    step = 1 + sum(shapes.contiguous_strides(a.shape, 1)[:-1])
    end = a.size if a.ndim > 2 or wrap else a.shape[1] * a.shape[1]
    put(a, arange(0, min(end, a.size), step, device=a.device), val)
