"""`attention` of tensors: operators of torch, with gradients, that run `pyarray.nn.attention`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pyarray import nn

from .op_calls import array, in_torch_stream


@torch.compiler.allow_in_graph  # nothing else of the package is traced
def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False, scale: float | None = None
) -> Tensor:
    """softmax(scale q kᵀ + mask) v of tensors, as `pyarray.nn.attention`, with gradients for `q`, `k` and `v`.

    It is an operator that `torch.compile` keeps in its graphs. Heads are an axis of their own, as for
    `torch.nn.functional.scaled_dot_product_attention`. A mask gets no gradient.

    Parameters
    ----------
    q : Tensor
        (..., queries, head)
    k : Tensor
        (..., keys, head)
    v : Tensor
        (..., keys, value head)
    mask : Tensor, optional
        Booleans, or numbers of the type of `q` that are added to the scores.
    causal : bool
    scale : float, optional
        Default: 1 / sqrt(head).

    Raises
    ------
    TypeError
        For what is no tensor.
    ValueError
        For a mask that requires grad.

    >>> import torch, pyarray as pa
    >>> q = k = v = torch.ones(1, 2, 3, 4, requires_grad=True)
    >>> pa.torch.attention(q, k, v, causal=True).sum().backward()
    >>> v.grad.shape
    torch.Size([1, 2, 3, 4])
    """
    for what, x in (("q", q), ("k", k), ("v", v), ("mask", mask)):
        if not isinstance(x, Tensor) and not (x is None and what == "mask"):
            kind = type(x).__name__
            raise TypeError(f"attention(): {what} is a tensor, got {kind}; arrays are for pyarray.nn.attention")
    if mask is not None and mask.requires_grad:
        raise ValueError("attention(): the mask requires grad, and gets no gradient here; pass mask.detach()")
    factor = float(scale) if scale is not None else 1 / math.sqrt(max((1, *q.shape[-1:])))
    out: Tensor = _forward(q, k, v, mask, bool(causal), factor)[0]
    return out


def _run_forward(q: Tensor, k: Tensor, v: Tensor, mask: Any, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    arrays: list[Any] = [None if x is None else array(x) for x in (q, k, v, mask)]
    out, logsumexp = nn.attention(*arrays, causal=causal, scale=scale, return_logsumexp=True)
    return torch.from_dlpack(out), torch.from_dlpack(logsumexp)


def _run_backward(*operands: Any) -> tuple[Tensor, Tensor, Tensor]:
    *tensors, causal, scale = operands
    arrays: list[Any] = [None if x is None else array(x) for x in tensors]
    first, second, third = nn.attention_backward(*arrays, causal=causal, scale=scale)
    return torch.from_dlpack(first), torch.from_dlpack(second), torch.from_dlpack(third)


@torch.library.custom_op("pyarray::attention", mutates_args=())
def _forward(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    run = in_torch_stream(_run_forward) if q.is_cuda else _run_forward
    result: tuple[Tensor, Tensor] = run(q, k, v, mask, causal, scale)
    return result


@torch.library.custom_op("pyarray::attention_backward", mutates_args=())
def _backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp: Tensor, mask: Tensor | None, causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    run = in_torch_stream(_run_backward) if q.is_cuda else _run_backward
    result: tuple[Tensor, Tensor, Tensor] = run(grad, q, k, v, out, logsumexp, mask, causal, scale)
    return result


def _shape(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Any:
    others = [] if mask is None else [mask.shape[:-2]]
    batch = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2], *others)
    wide = q.dtype if q.dtype is torch.float64 else torch.float32
    lines = (*batch, q.shape[-2])
    return q.new_empty((*lines, v.shape[-1])), q.new_empty(lines, dtype=wide)


def _grad_shapes(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, *others: Any) -> Any:
    return tuple(x.new_empty(x.shape) for x in (q, k, v))


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, mask, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(q, k, v, *output, mask)


def _gradients(ctx: Any, grad: Tensor, grad_logsumexp: Any) -> Any:
    *saved, mask = ctx.saved_tensors
    return *_backward(grad, *saved, mask, ctx.causal, ctx.scale), None, None, None


_forward.register_fake(_shape)
_backward.register_fake(_grad_shapes)
_forward.register_autograd(_gradients, setup_context=_setup_context)
