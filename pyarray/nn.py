"""Functions of neural networks: attention, and products of groups of rows.

>>> import pyarray as pa
>>> q = k = v = pa.ones((2, 3, 4), dtype=pa.float32)
>>> pa.nn.attention(q, k, v, causal=True).shape
(2, 3, 4)
"""

from __future__ import annotations

import math
import sys
from typing import Any

from . import docstrings, keywords, shapes
from .api.core import missing_names
from .api.core.ufunc import as_array_like
from .api.standard.creation import asarray
from .api.standard.manipulation import broadcast_to
from .api.standard.statistical import sum as total
from .array import ndarray
from .array_host import host
from .kernels.attention import attention as kernels
from .kernels.matmul import grouped, grouped_gradients
from .kernels.workspace import unchecked_empty
from .memory.host_access import on_host
from .typing import ArrayLike

__all__ = ["attention", "attention_backward", "grouped_matmul", "grouped_matmul_backward"]


def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    return_logsumexp: bool = False,
) -> ndarray | tuple[ndarray, ndarray]:
    """softmax(scale q kᵀ + mask) v, without the matrix of scores in memory.

    A query that sees no key gives zeros, as in torch, and no gradient; its logsumexp is minus infinity. Scores and sums
    are float32, of float64 operands float64. They are computed to base 2, so that a mask from 0.69 times the least
    float32 down hides a key as minus infinity does.

    Raises `TypeError` for other types, or several, `ValueError` for shapes that don't fit.

    >>> q = pa.asarray([[[1.0, 0.0]]]); k = pa.asarray([[[9.0, 0.0], [0.0, 9.0]]])
    >>> pa.nn.attention(q, k, k, scale=1000.0).tolist()
    [[[9.0, 0.0]]]
    """
    queries, keys, values, bias, batch = _operands("attention", q, k, v, mask)
    factor, dtype, device = _scale("attention", queries, scale), queries._dtype, queries._buffer.device
    out = unchecked_empty((*batch, queries._shape[-2], values._shape[-1]), dtype, device)
    logsumexp = unchecked_empty((*batch, queries._shape[-2]), kernels.sums_dtype(dtype), device)
    queries, keys, values, bias = _few_axes(batch, queries, keys, values, bias)
    kernels.forward(out, logsumexp, queries, keys, values, bias, factor, bool(causal))
    return (out, logsumexp) if return_logsumexp else out


def attention_backward(
    grad: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    out: ArrayLike,
    logsumexp: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[ndarray, ndarray, ndarray]:
    """Gradients of `attention` with respect to `q`, `k` and `v`, from that of its result.

    They have the shapes of `q`, `k` and `v`: along axes that were broadcast, they are sums. A mask has no gradient.

    Raises as `attention` does.

    >>> q = k = v = pa.ones((1, 2, 2), dtype=pa.float32)
    >>> out, logsumexp = pa.nn.attention(q, k, v, return_logsumexp=True)
    >>> grads = pa.nn.attention_backward(pa.ones_like(out), q, k, v, out, logsumexp)
    >>> grads[2].tolist()
    [[[1.0, 1.0], [1.0, 1.0]]]
    """
    name = "attention_backward"
    queries, keys, values, bias, batch = _operands(name, q, k, v, mask)
    change, result, sums = as_array_like(grad, out, logsumexp)
    shape, dtype = (*batch, queries._shape[-2], values._shape[-1]), queries._dtype
    for what, x, expected, kind in (
        ("grad", change, shape, dtype), ("out", result, shape, dtype),
        ("logsumexp", sums, shape[:-1], kernels.sums_dtype(dtype)),
    ):  # fmt: skip
        if x._shape != expected or x._dtype != kind or x._buffer.device != queries._buffer.device:
            wanted = f"{kind} of shape {expected} on {queries.device}"
            raise ValueError(f"{name}(): {what} is {wanted}, got {x._dtype} of shape {x._shape} on {x.device}")
    inputs = queries, keys, values
    grads = [unchecked_empty((*batch, *x._shape[-2:]), dtype, x._buffer.device) for x in inputs]
    if not _is_contiguous(sums):
        sums = sums.copy()
    factor = _scale(name, queries, scale)
    change, result, queries, keys, values, bias = _few_axes(batch, change, result, *inputs, bias)
    kernels.backward(grads, change, result, sums, queries, keys, values, bias, factor, bool(causal))
    first, second, third = (_unbroadcast(g, x) for g, x in zip(grads, inputs, strict=True))
    return first, second, third


def grouped_matmul(a: ArrayLike, b: ArrayLike, ends: ArrayLike) -> ndarray:
    """Products of groups of the rows of `a` with matrices of their own, as a mixture of experts has them.

    Row i of group g gives `a[i] @ b[g]`, with sums in float32, of float64 operands in float64; rows behind the last
    group give zeros. Ends on a GPU aren't read by the host: groups that overlap, or go further than the rows, have no
    defined products.

    Raises `TypeError` for other types, or several, `ValueError` for shapes that don't fit and for other ends, where
    these are on the host.

    >>> a = pa.asarray([[1.0], [2.0], [3.0]]); b = pa.asarray([[[10.0]], [[100.0]]])
    >>> pa.nn.grouped_matmul(a, b, [1, 3]).tolist()
    [[10.0], [200.0], [300.0]]
    """
    x, matrices = as_array_like(a, b)
    stops = _check_groups("grouped_matmul", x, matrices, ends)
    out = unchecked_empty((x._shape[0], matrices._shape[2]), x._dtype, x._buffer.device)
    grouped.multiply(out, x, matrices, stops)
    return out


def grouped_matmul_backward(grad: ArrayLike, a: ArrayLike, b: ArrayLike, ends: ArrayLike) -> tuple[ndarray, ndarray]:
    """Gradients of `grouped_matmul` for `a` and `b`, from the result's.

    Row i of group g gives `grad[i] @ b[g].T`, rows behind the last group give zeros; `b[g]` gets the group's rows of
    `a`, transposed, times those of `grad`, an empty group zeros. Sums, and what is undefined, are those of
    `grouped_matmul`.

    Raises as `grouped_matmul` does.

    >>> a = pa.asarray([[1.0], [2.0], [3.0]]); b = pa.asarray([[[10.0]], [[100.0]]])
    >>> grad_a, grad_b = pa.nn.grouped_matmul_backward(pa.ones((3, 1)), a, b, [1, 3])
    >>> grad_a.tolist(), grad_b.tolist()
    ([[10.0], [100.0], [100.0]], [[[1.0]], [[5.0]]])
    """
    name = "grouped_matmul_backward"
    x, matrices, change = as_array_like(a, b, grad)
    stops = _check_groups(name, x, matrices, ends)
    shape, device = (x._shape[0], matrices._shape[2]), x._buffer.device
    if change._shape != shape or change._dtype != x._dtype or change._buffer.device != device:
        wanted = f"{x._dtype} of shape {shape} on {x.device}"
        raise ValueError(f"{name}(): grad is {wanted}, got {change._dtype} of shape {change._shape} on {change.device}")
    of_rows, of_matrices = (unchecked_empty(v._shape, x._dtype, device) for v in (x, matrices))
    grouped.multiply(of_rows, change, matrices.mT, stops)
    grouped_gradients.multiply(of_matrices, x, change, stops)
    return of_rows, of_matrices


def _check_groups(name: str, x: ndarray, matrices: ndarray, ends: Any) -> ndarray:
    """The ends of groups on the device of the rows `x`. Raises `TypeError` and `ValueError` for operands that can't be
    multiplied."""
    if x._dtype.kind != "f" or x._dtype != matrices._dtype or x.itemsize < 2:
        what = "a and b are of one floating type of 16 bits or more"
        raise TypeError(f"{name}(): {what}, got {x._dtype} and {matrices._dtype}; cast them with astype")
    if x.ndim != 2 or matrices.ndim != 3 or x._shape[1] != matrices._shape[1]:
        what = "a is (rows, depth) and b (groups, depth, columns)"
        raise ValueError(f"{name}(): {what}, got {x._shape} and {matrices._shape}")
    if x._buffer.device != matrices._buffer.device:
        raise ValueError(f"{name}(): a is on {x.device}, and b on {matrices.device}; move one with to_device")
    return _ends(name, ends, x, matrices._shape[0])


def _ends(name: str, ends: Any, a: ndarray, groups: int) -> ndarray:
    """The ends of groups on the device of `a`. Raises `TypeError` and `ValueError`."""
    found: ndarray = ends if isinstance(ends, ndarray) else asarray(ends, device="cpu")
    if found._dtype.kind not in "iu" and found._size:
        raise TypeError(f"{name}(): ends are integers, got {found._dtype}")
    if found._shape != (groups,):
        raise ValueError(f"{name}(): ends has an end for each of the {groups} groups, got shape {found._shape}")
    if on_host(found):
        given = host(found).tolist()
        if given != sorted(given) or (given and not 0 <= given[0] <= given[-1] <= a._shape[0]):
            what = f"ends don't decrease and are from 0 to the number of rows, {a._shape[0]}"
            raise ValueError(f"{name}(): {what}, got {given}")
    elif found._buffer.device != a._buffer.device:
        raise ValueError(f"{name}(): a is on {a.device}, and ends on {found.device}; move them with to_device")
    return found.to_device(a.device)


def _is_contiguous(x: ndarray) -> bool:
    return x._strides == shapes.contiguous_strides(x._shape, x.itemsize)


def _operands(
    name: str, q: Any, k: Any, v: Any, mask: Any
) -> tuple[ndarray, ndarray, ndarray, ndarray | None, tuple[int, ...]]:
    """The operands as arrays, and the shape of their batch. Raises `TypeError` and `ValueError`."""
    given = [q, k, v] if mask is None else [q, k, v, mask]
    q, k, v, *masks = as_array_like(*given)
    mask = masks[0] if masks else None
    if q._dtype.kind != "f" or {k._dtype, v._dtype} != {q._dtype}:
        types = ", ".join(str(x._dtype) for x in (q, k, v))
        raise TypeError(f"{name}(): q, k and v are of one floating type, got {types}; cast them with astype")
    if mask is not None and mask._dtype.kind != "b" and mask._dtype != q._dtype:
        raise TypeError(f"{name}(): mask is of bool or of {q._dtype}, as q is, got {mask._dtype}; cast it with astype")
    for what, x in (("q", q), ("k", k), ("v", v), ("mask", mask)):
        if x is not None and x._buffer.device != q._buffer.device:
            raise ValueError(f"{name}(): q is on {q.device}, and {what} on {x.device}; move one with to_device")
        if x is not None and what != "mask" and x.ndim < 2:
            raise ValueError(f"{name}(): {what} has two axes or more, (..., length, head), got shape {x._shape}")
    if q._shape[-1] != k._shape[-1] or k._shape[-2] != v._shape[-2]:
        what = "q and k have heads of one size, and k and v are as long"
        raise ValueError(f"{name}(): {what}, got {q._shape}, {k._shape} and {v._shape}")
    try:
        batch = shapes.broadcast_shapes(*(x._shape[:-2] for x in (q, k, v, *masks)))
    except ValueError as error:
        raise ValueError(f"{name}(): of q, k, v{' and mask' * len(masks)} without the last two axes, {error}") from None
    if mask is not None:
        scores = q._shape[-2], k._shape[-2]
        if any(n not in (1, m) for n, m in zip(mask._shape[::-1], scores[::-1], strict=False)):
            what = f"mask broadcasts to (..., queries, keys), here to (..., {scores[0]}, {scores[1]})"
            raise ValueError(f"{name}(): {what}, got shape {mask._shape}")
        mask = broadcast_to(mask, (*mask._shape[:-2], *scores))
    return q, k, v, mask, batch


def _scale(name: str, q: ndarray, scale: float | None) -> float:
    if scale is None:
        return 1 / math.sqrt(q._shape[-1]) if q._shape[-1] else 1.0
    try:
        return float(scale)
    except (TypeError, ValueError):
        raise TypeError(f"{name}(): scale is a number, got {type(scale).__name__} {scale!r}") from None


def _few_axes(batch: tuple[int, ...], *operands: ndarray | None) -> tuple[Any, ...]:
    """The operands, or copies whose batch has one axis in memory where kernels can't take the strides."""
    if not kernels.needs_copies(batch, *operands):
        return operands
    return tuple(None if x is None else broadcast_to(x, (*batch, *x._shape[-2:])).copy() for x in operands)


def _unbroadcast(grad: ndarray, x: ndarray) -> ndarray:
    """The sums over the axes along which `x` was broadcast."""
    lead = grad.ndim - x.ndim
    repeated = [lead + axis for axis, n in enumerate(x._shape) if n == 1 != grad._shape[lead + axis]]
    axes = (*range(lead), *repeated)
    return total(grad, axis=axes, keepdims=True).reshape(x._shape) if axes else grad


keywords.install(globals())
docstrings.install(globals())
missing_names.list_public(sys.modules[__name__])
