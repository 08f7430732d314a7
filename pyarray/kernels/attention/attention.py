"""Launches of attention: operands of any batch as arrays of four axes, and which kernel computes them."""

from __future__ import annotations

from collections.abc import Sequence

from ... import shapes
from ...array import READONLY, WATCHED, ndarray, type_key, unchecked_array
from ...dtypes import DType, float32
from ..workspace import unchecked_empty
from . import tile_text, wgmma
from .tile_text import Problem, head_width

_AXES = 2  # of the batch, in a kernel


def problem_of(q: ndarray, v: ndarray, mask: ndarray | None, causal: bool) -> Problem:
    kind = "" if mask is None else "bool" if mask._dtype.kind == "b" else "add"
    return Problem(q._dtype, causal, kind, head_width(q._shape[-1]), head_width(v._shape[-1]))


def sums_dtype(dtype: DType) -> DType:
    """The type in which scores are summed, and that of their logarithms."""
    return float32 if dtype.itemsize < 8 else dtype


def forward(
    out: ndarray, logsumexp: ndarray, q: ndarray, k: ndarray, v: ndarray, mask: ndarray | None, scale: float,
    causal: bool,
) -> None:  # fmt: skip
    """`out[...]` and `logsumexp[...]`, which are new and have the batch that the others broadcast to."""
    if not out._size and not logsumexp._size:
        return
    arrays = _batched(logsumexp._shape[:-1], (out, 2), (logsumexp, 1), (q, 2), (k, 2), (v, 2), (mask, 2))
    masks = _masks_of_wgmma([arrays[0], *arrays[2:5]], arrays[5:], scale)
    if masks is not None:
        wgmma.forward(arrays[:5], masks, scale, causal)
    else:
        tile_text.forward(problem_of(q, v, mask, causal))(*arrays, scale)


def backward(
    grads: Sequence[ndarray], grad: ndarray, out: ndarray, logsumexp: ndarray, q: ndarray, k: ndarray,
    v: ndarray, mask: ndarray | None, scale: float, causal: bool,
) -> None:  # fmt: skip
    """`grads[...]`, those of q, k and v, which are new and have the batch that all broadcast to."""
    batch, problem = logsumexp._shape[:-1], problem_of(q, v, mask, causal)
    operands = *((x, 2) for x in grads), (grad, 2), (out, 2), (logsumexp, 1), (q, 2), (k, 2), (v, 2), (mask, 2)
    arrays = _batched(batch, *operands)
    masks = _masks_of_wgmma([*arrays[:5], *arrays[6:9]], arrays[9:], scale)
    if masks is not None:
        wgmma.backward(arrays[:9], masks, scale, causal)
        return
    delta = unchecked_empty(logsumexp._shape, logsumexp._dtype, logsumexp._buffer.device)
    delta, grad_q, grad_k, grad_v, grad, out, logsumexp, *others = _batched(batch, (delta, 1), *operands)
    if logsumexp._size:
        tile_text.backward_queries(problem)(grad_q, delta, grad, out, logsumexp, *others, scale)
    if grad_k._size or grad_v._size:
        tile_text.backward_keys(problem)(grad_k, grad_v, delta, grad, logsumexp, *others, scale)


def _masks_of_wgmma(arrays: Sequence[ndarray], masks: Sequence[ndarray], scale: float) -> list[ndarray] | None:
    """The mask, if there is one, for the kernels of `wgmma`; None if these can't take it or the other arrays."""
    if not wgmma.fits(arrays, scale):
        return None
    aligned = [wgmma.aligned_mask(x) for x in masks]
    return None if any(x is None for x in aligned) else [x for x in aligned if x is not None]


def _batched(batch: tuple[int, ...], *operands: tuple[ndarray | None, int]) -> list[ndarray]:
    """Views of the operands with two axes of batch before so many of their own; None is left out. Copies of all with
    a batch of one axis, where strides don't allow that."""
    arrays = [(x, own) for x, own in operands if x is not None]
    steps = [shapes.broadcast_strides(x._shape[:-own], x._strides[:-own], batch) for x, own in arrays]
    sizes, merged = shapes.collapse(batch, *steps) if batch else ((), ((),) * len(steps))
    if len(sizes) > _AXES:
        what = f"attention(): the batch {batch} has more than two axes that strides keep apart"
        raise ValueError(f"{what}; pass contiguous arrays")
    lead = (1,) * (_AXES - len(sizes))
    return [
        _viewed(x, (*lead, *sizes, *x._shape[-own:]), (*(0 for _ in lead), *step, *x._strides[-own:]))
        for (x, own), step in zip(arrays, merged, strict=True)
    ]


def _viewed(x: ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> ndarray:
    """The view; on grids, whose kernels test strides as they run, one of any strides to the compiler, so that one
    variant serves all."""
    device = x._buffer.device
    if not device.driver.grid:
        return x._view(0, shape, strides)
    key = type_key(x._dtype, len(shape), True, not x._key & READONLY, device) | x._key & WATCHED
    return unchecked_array(x._buffer, shape, strides, shapes.size(shape), x._dtype, key, x._ptr)


def needs_copies(batch: tuple[int, ...], *operands: ndarray | None) -> bool:
    """Whether the strides of the batch take more axes than a kernel has."""
    arrays = [x for x in operands if x is not None]
    steps = [shapes.broadcast_strides(x._shape[:-2], x._strides[:-2], batch) for x in arrays]
    return bool(batch) and len(shapes.collapse(batch, *steps, shapes.contiguous_strides(batch, 1))[0]) > _AXES
