"""Methods of ufuncs: `add.at`, `maximum.accumulate`, `multiply.outer`, `add.reduceat`, `logaddexp.reduce`.

Methods with a kernel of their own (`sum`, `cumsum` and the like) use it. Others fold a line of elements from the
left by the ufunc's expression; `at` applies it to the values of one index one after the other, so that the
result is the same on every device.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ... import jit, shapes
from ...array import empty, ndarray
from ...array_convert import asarray, asnumpy
from ...array_hooks import operation
from ...array_views import overlaps
from ...dtypes import ALL, DType, asdtype, bool_, int64
from ...kernels.reduce.reduce import SUM, on_grid
from ...lang.markers import ndrange
from ...typing import ArrayLike, AxisLike, DTypeLike
from ..core.ufunc import Ufunc, as_operands, compute_out, operand, store_out
from ..core.ufunc_functions import UFUNC_METHODS
from ..standard import scans, statistical, utility
from ..standard.creation import arange
from ..standard.manipulation import broadcast_to
from ..standard.sorting import argsort, from_lines, lines
from ..standard.statistical import total_dtype

_REDUCTIONS: dict[str, Any] = {
    "add": statistical.sum, "multiply": statistical.prod, "minimum": statistical.min,
    "maximum": statistical.max, "logical_and": utility.all, "logical_or": utility.any,
}  # fmt: skip
_SCANS: dict[str, Any] = {"add": scans.cumsum, "multiply": scans.cumprod}
# what a fold of no elements gives
_IDENTITY: dict[str, Any] = {
    "add": 0, "multiply": 1, "logical_and": True, "logical_or": False, "logical_xor": False,
    "bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0, "hypot": 0, "logaddexp": -math.inf,
    "logaddexp2": -math.inf, "gcd": 0,
}  # fmt: skip
_REORDERABLE = frozenset(_IDENTITY) | {"minimum", "maximum", "fmin", "fmax"}  # over several axes
_ASSOCIATIVE = _REORDERABLE | {"lcm"}  # groups of neighbours may be combined first
_NOT_NEGATIVE = frozenset({"hypot", "gcd"})  # of one element, too, which is combined with the identity


def reduce(
    function: Any,
    ufunc: Ufunc,
    array: ArrayLike,
    axis: AxisLike = 0,
    dtype: DTypeLike = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> ndarray:
    """The elements over `axis` (None: all axes) combined from the left."""
    name = f"{ufunc.name}.reduce"
    x = asarray(operand(name, array))
    if not x.ndim and axis in (0, -1):
        axis = None  # a number is reduced by the default axis, too
    if ufunc.name in _REDUCTIONS:
        options: dict[str, Any] = {"axis": axis, "keepdims": keepdims, "out": out, "where": where}
        if ufunc.name in ("add", "multiply"):
            options |= {"dtype": dtype, "initial": initial}
        elif ufunc.name in ("minimum", "maximum"):
            options["initial"] = initial
        return _REDUCTIONS[ufunc.name](x, **options)
    if initial is not None or where is not True:
        raise TypeError(f"{name}() takes no initial= and where=; replace what is to be left out first")
    axes = shapes.normalize_axes(axis, x.ndim)
    if len(axes) > 1 and ufunc.name not in _REORDERABLE:
        raise ValueError(f"{name}() goes along one axis, since the order of its elements matters, got {axis}")
    kind = _kind(ufunc, x, dtype)
    reduced_shape, full = shapes.reduced(x._shape, axes)
    result = compute_out(name, out, full if keepdims else reduced_shape, kind, x.device)
    other_axes = [k for k in range(x.ndim) if k not in axes]
    count = math.prod(x._shape[k] for k in axes)
    if not count and ufunc.name not in _IDENTITY:
        raise ValueError(f"{name}() over no elements has no answer: shape {x._shape}, axes {axes}")
    rows = x.transpose([*other_axes, *axes]).reshape(math.prod(reduced_shape), count)
    folded = empty((rows._shape[0],), kind, x.device)
    if not count:
        folded[...] = _start(ufunc, kind)
    elif folded._size:
        _fold_kernel(ufunc, kind.code, "reduce")(folded, rows)
    result[...] = folded.reshape(result._shape)
    return result


def accumulate(
    function: Any,
    ufunc: Ufunc,
    array: ArrayLike,
    axis: int = 0,
    dtype: DTypeLike = None,
    out: ndarray | None = None,
) -> ndarray:
    """The elements up to each one along `axis`, combined from the left."""
    x = asarray(operand(f"{ufunc.name}.accumulate", array))
    along = shapes.normalize_axis(axis, x.ndim)
    if ufunc.name in _SCANS:
        return _SCANS[ufunc.name](x, axis=along, dtype=dtype, out=out)
    kind = _kind(ufunc, x, dtype)
    rows = lines(x, along)
    if on_grid(x) and ufunc.name in _ASSOCIATIVE:
        result = _doubled(function, rows.astype(kind))
    else:
        result = empty(rows._shape, kind, x.device)
        if result._size:
            _fold_kernel(ufunc, kind.code, "accumulate")(result, rows)
    return store_out(f"{ufunc.name}.accumulate", from_lines(result, x._shape, along), out)


def _doubled(function: Any, rows: ndarray) -> ndarray:
    """A parallel scan (Hillis and Steele): each pass combines elements with those at a distance, which doubles
    with each pass."""
    distance = 1
    while distance < rows._shape[1]:
        ends = function(rows[:, :-distance], rows[:, distance:])
        rows[:, distance:] = ends
        distance *= 2
    return rows


def reduceat(
    function: Any,
    ufunc: Ufunc,
    array: ArrayLike,
    indices: ArrayLike,
    axis: int = 0,
    dtype: DTypeLike = None,
    out: ndarray | None = None,
) -> ndarray:
    """The elements along `axis` from each of `indices` up to the next one, combined; the element alone where
    the next is no larger. `indices` are read from their device. Raises `IndexError` for one out of range."""
    name = f"{ufunc.name}.reduceat"
    x = asarray(operand(name, array))
    along = shapes.normalize_axis(axis, x.ndim)
    starts = np.asarray(asnumpy(indices))
    if starts.ndim != 1 or (starts.dtype.kind not in "iu" and starts.size):
        raise TypeError(f"{name}() takes a 1-D array of integers, got {starts.dtype} of shape {starts.shape}")
    count = x._shape[along]
    if ((starts < 0) | (starts >= count)).any():
        raise IndexError(f"{name}(): indices are from 0 to {count - 1}, got {starts.tolist()}")
    starts = starts.astype(np.int64)
    stops = np.append(starts[1:], count)[: starts.size]
    kind = _kind(ufunc, x, dtype)
    rows = lines(x, along)
    result = empty((rows._shape[0], starts.size), kind, x.device)
    if result._size:
        bounds = (asarray(v, device=x.device) for v in (starts, np.maximum(stops, starts + 1)))
        wide = total_kind(ufunc, kind)
        _segment_kernel(ufunc, wide.code)(result, rows, *bounds)
    return store_out(name, from_lines(result, x._shape, along), out)


def outer(function: Any, ufunc: Ufunc, x1: ArrayLike, x2: ArrayLike, /, **options: Any) -> ndarray:
    """The function of each element of `x1` with each of `x2`: the axes of the first come first."""
    first, second = as_operands(f"{ufunc.name}.outer", (x1, x2))
    if isinstance(first, ndarray) and isinstance(second, ndarray):
        first = first.reshape(*first._shape, *(1,) * second.ndim)
    return function(first, second, **options)


def at(function: Any, ufunc: Ufunc, a: ndarray, indices: ArrayLike, b: ArrayLike | None = None, /) -> None:
    """`a[indices] = function(a[indices], b)` in place, where an element that `indices` name several times is
    changed as often, in their order. Raises as indexing and in-place operators do."""
    name = f"{ufunc.name}.at"
    if not isinstance(a, ndarray):
        raise TypeError(f"{name}() changes a pyarray array, got {type(a).__name__}")
    if (b is None) != (ufunc.arity == 1):
        raise TypeError(f"{name}() takes {'no' if ufunc.arity == 1 else 'a'} second operand")
    a._check_writeable()
    kind, values = a._dtype, None
    if b is not None:
        values = b if isinstance(b, ndarray) else asarray(b, device=a.device)
        kind = _common(ufunc, a, b)
    compute_out(name, a, a._shape, ufunc.dtype_of_result(kind), a.device)
    flat_indices = arange(a._size, device=a.device).reshape(a._shape)[indices]
    if values is not None:
        values = broadcast_to(values, flat_indices._shape).reshape(flat_indices._size)
        values = values.copy() if overlaps(values, a) else values
    flat_indices = flat_indices.reshape(flat_indices._size)
    if not flat_indices._size:
        return
    flat = a.reshape(a._size)  # of other layouts a copy
    grid = on_grid(a)
    if grid:
        order = argsort(flat_indices)
        flat_indices, values = flat_indices[order], None if values is None else values[order]
    args = (flat, flat_indices) if values is None else (flat, flat_indices, values)
    _at_kernel(ufunc, kind.code, grid)(*args)
    if flat._ptr != a._ptr or flat._buffer is not a._buffer:
        operation("assign")(a, flat.reshape(a._shape))


# ---- types


def _kind(ufunc: Ufunc, x: ndarray, dtype: Any) -> DType:
    """The type of a fold's accumulator: the type of the function's results if that differs from its operands'."""
    if dtype is not None:
        return asdtype(dtype)
    if ufunc.name in ("add", "multiply"):
        return total_dtype(x, None)
    if ufunc.result == "bool":
        if x._dtype is not bool_ and not ufunc.name.startswith("logical"):
            raise TypeError(f"{ufunc.name} gives bools, which can't be combined with {x._dtype}")
        return bool_
    domain = ufunc.domain((x, x))
    assert domain is not None
    return domain


def total_kind(ufunc: Ufunc, kind: DType) -> DType:
    """The accumulator's type: that of a wider float for sums and products of floats."""
    return SUM.accumulator_type(kind) if ufunc.name in ("add", "multiply") else kind


def _common(ufunc: Ufunc, a: ndarray, b: Any) -> DType:
    domain = ufunc.domain((a, b if type(b) in (bool, int, float, complex) else asarray(b, device=a.device)))
    if domain is None:
        raise TypeError(f"{ufunc.name}.at() has no common type for {a._dtype} and its operand; cast it")
    return domain


def _start(ufunc: Ufunc, kind: DType) -> Any:
    start = _IDENTITY[ufunc.name]
    return (1 << 8 * kind.itemsize) - 1 if start == -1 and kind.kind == "u" else start


# ---- kernels


def _scope(ufunc: Ufunc, kind: int) -> dict[str, Any]:
    return {"op": ufunc.function, "kind": ALL[kind], "int64": int64, "ndrange": ndrange}


# The text is made of the ufunc, compared by identity, its type and the form; dtypes are in its variants' keys.
@functools.cache
def _fold_kernel(ufunc: Ufunc, kind: int, method: str) -> jit.kernel.Kernel:
    """The kernel that folds the lines of a matrix, one for each iteration."""
    first, each = ("out[i, 0] = acc", "out[i, j] = acc") if method == "accumulate" else ("", "")
    last = "" if method == "accumulate" else "        out[i] = acc"
    start = "op(kind(0), kind(x[i, 0]))" if method == "reduce" and ufunc.name in _NOT_NEGATIVE else "x[i, 0]"
    text = f"""def {ufunc.name}_{method}(out, x):
    for i in range(x.shape[0]):
        acc = kind({start})
        {first}
        for j in range(1, x.shape[1]):
            acc = kind(op(acc, kind(x[i, j])))
            {each}
{last}
"""
    text = "\n".join(line for line in text.split("\n") if line.strip()) + "\n"
    return jit.kernel.from_text(f"{ufunc.name}_{method}", text, _scope(ufunc, kind))


# The text is made of the ufunc, compared by identity, and its type; dtypes are in its variants' keys.
@functools.cache
def _segment_kernel(ufunc: Ufunc, kind: int) -> jit.kernel.Kernel:
    text = f"""def {ufunc.name}_reduceat(out, x, starts, stops):
    for i, s in ndrange(out.shape[0], out.shape[1]):
        acc = kind(x[i, starts[s]])
        for j in range(starts[s] + 1, stops[s]):
            acc = kind(op(acc, kind(x[i, j])))
        out[i, s] = acc
"""
    return jit.kernel.from_text(f"{ufunc.name}_reduceat", text, _scope(ufunc, kind))


# The text is made of the ufunc, compared by identity, its type and the order; dtypes are in its variants' keys.
@functools.cache
def _at_kernel(ufunc: Ufunc, kind: int, is_sorted: bool) -> jit.kernel.Kernel:
    """The kernel of `at`. Of sorted positions (on a grid), the thread of the first of equal ones applies the
    function for all of them; else one thread goes through all in order."""
    binary = ufunc.arity == 2
    names = "a, positions, values" if binary else "a, positions"

    def applied(acc: str, n: str) -> str:
        return f"op(kind({acc}), kind(values[{n}]))" if binary else f"op(kind({acc}))"

    if is_sorted:
        text = f"""def {ufunc.name}_at({names}):
    for i in range(positions.shape[0]):
        p = positions[i]
        if i == 0 or positions[max(i - 1, 0)] != p:
            j = int64(i)
            while j < positions.shape[0] and positions[min(j, positions.shape[0] - 1)] == p:
                a[p] = {applied("a[p]", "j")}
                j += 1
"""
    else:
        text = f"""def {ufunc.name}_at({names}):
    for once in range(1):
        for i in range(positions.shape[0]):
            a[positions[i]] = {applied("a[positions[i]]", "i")}
"""
    return jit.kernel.from_text(f"{ufunc.name}_at", text, _scope(ufunc, kind))


UFUNC_METHODS.update(reduce=reduce, accumulate=accumulate, reduceat=reduceat, outer=outer, at=at)
