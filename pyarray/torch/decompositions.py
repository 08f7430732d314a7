"""What operators are made of before they are fused: torch's decompositions, and ours where a reduction is
to be one that kernels here compute."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._decomp import _core_aten_decompositions_post_autograd, get_decompositions
from torch._prims_common import is_contiguous_or_false
from torch.fx.experimental.symbolic_shapes import statically_known_true

from .fusion_group import is_gpu

aten = torch.ops.aten
WINDOW = 9  # elements of a pool's window that is written out

_TAKEN = [
    aten._softmax, aten._log_softmax, aten._softmax_backward_data, aten._log_softmax_backward_data,
    aten.native_layer_norm_backward, aten.native_group_norm_backward, aten.native_batch_norm_backward,
    aten.gelu_backward, aten.leaky_relu_backward, aten.hardtanh_backward, aten.native_dropout_backward,
    aten.silu,
]  # fmt: skip
# torch's own kernels for these are better than what they are made of
_KEPT = (
    "scaled_dot_product", "_scaled_dot_product", "embedding_dense_backward", "upsample", "grid_sampler",
    "addmm",
    "baddbmm", "addmv", "addbmm", "rms_norm",
)  # fmt: skip


@cache  # there is one table
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions by operator. Composite operators aren't in it: torch decomposes them itself, and their table
    takes long to make."""
    table = {
        op: function for op, function in _core_aten_decompositions_post_autograd().items()
        if not str(op).removeprefix("aten.").startswith(_KEPT)
    }  # fmt: skip
    return table | get_decompositions(_TAKEN) | _OURS


def _axes(x: torch.Tensor, dim: Any) -> list[int]:
    axes = list(range(x.dim())) if dim is None or dim == [] else [dim] if isinstance(dim, int) else list(dim)
    return [k % max(x.dim(), 1) for k in axes]


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _moments(x: torch.Tensor, axes: list[int]) -> tuple[torch.Tensor, torch.Tensor, Any]:
    """Mean, sum of squared distances from it, and count, along axes that stay with size 1. GPUs read float32
    once: sums of it and of its squares in float64 lose nothing that a float32 result has."""
    count: Any = 1
    for k in axes:
        count = count * x.shape[k]
    if is_gpu(x.device) and x.dtype == torch.float32:
        exact = x.double()
        square = torch.sum(exact * exact, axes, True)
        total = torch.sum(exact, axes, True)  # joins the kernel of the one before
        mean = total / count
        return mean.float(), torch.clamp_min(square - total * mean, 0).float(), count
    mean = torch.mean(x, axes, True)
    return mean, torch.sum((x - mean) * (x - mean), axes, True), count


def _var_mean(x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    if not x.dtype.is_floating_point or not x.dim():
        return NotImplemented
    axes, one = _axes(x, dim), 1 if correction is None else correction
    mean, squares, count = _moments(_wide(x), axes)
    var = squares / _at_least_zero(count, one)
    if not statically_known_true(count == 1):
        mean = mean + (mean - mean)  # torch's running mean is NaN behind an infinity
    if not keepdim:
        var, mean = torch.squeeze(var, axes), torch.squeeze(mean, axes)
    return var.to(x.dtype), mean.to(x.dtype)


def _at_least_zero(count: Any, correction: Any) -> Any:
    return torch.sym_max(count - correction, 0)


def _var(x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    var_mean = _var_mean(x, dim, correction=correction, keepdim=keepdim)
    return var_mean if var_mean is NotImplemented else var_mean[0]


def _std(x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    var_mean = _var_mean(_wide(x), dim, correction=correction, keepdim=keepdim)
    return var_mean if var_mean is NotImplemented else torch.sqrt(var_mean[0]).to(x.dtype)


def _affine(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None) -> torch.Tensor:
    x = x * _wide(weight) if weight is not None else x
    return x + _wide(bias) if bias is not None else x


def _layer_norm(x: torch.Tensor, shape: Any, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> Any:
    axes = list(range(x.dim() - len(shape), x.dim()))
    mean, squares, count = _moments(_wide(x), axes)
    scale = torch.rsqrt(squares / count + eps)
    result = _affine((_wide(x) - mean) * scale, weight, bias)
    if not is_contiguous_or_false(result):  # as it is in eager torch, where a view of it may follow
        result = result.clone(memory_format=torch.contiguous_format)
    if x.device.type == "cpu":  # what torch saves for the backward pass has the input's type there
        mean, scale = mean.to(x.dtype), scale.to(x.dtype)
    return result.to(x.dtype), mean, scale


def _group_norm(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, n: Any, channels: Any,
    points: Any,
    groups: int, eps: float,
) -> Any:  # fmt: skip
    grouped = _wide(x).reshape(n, groups, channels // groups, points)
    mean, squares, count = _moments(grouped, [2, 3])
    scale = torch.rsqrt(squares / count + eps)
    result = ((grouped - mean) * scale).reshape(x.shape)
    sizes = [1, channels, *[1] * (x.dim() - 2)]
    weight = weight.reshape(sizes) if weight is not None else None
    bias = bias.reshape(sizes) if bias is not None else None
    mean, scale = torch.squeeze(mean, [2, 3]), torch.squeeze(scale, [2, 3])
    return _affine(result, weight, bias).to(x.dtype), mean.to(x.dtype), scale.to(x.dtype)


def _batch_norm(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None, training: bool, momentum: float, eps: float,
) -> Any:  # fmt: skip
    """Batch normalization: the result, what is saved for the backward pass, the new running mean and variance."""
    axes = [0, *range(2, x.dim())]
    sizes = [1, x.shape[1], *[1] * (x.dim() - 2)]
    if training:
        mean, squares, count = _moments(_wide(x), axes)
        var = squares / count
        scale = torch.rsqrt(var + eps)
        saved = torch.squeeze(mean, axes), torch.squeeze(scale, axes)
        if running_mean is not None:
            running_mean = running_mean + momentum * (saved[0] - running_mean)
        if running_var is not None:
            unbiased = torch.squeeze(squares, axes) / (count - 1)
            running_var = running_var + momentum * (unbiased - running_var)
    else:
        assert running_mean is not None
        assert running_var is not None
        mean, scale = _wide(running_mean).reshape(sizes), torch.rsqrt(_wide(running_var) + eps).reshape(sizes)
        saved = (x.new_zeros((0,)), x.new_zeros((0,)))
    result = _affine(
        (_wide(x) - mean) * scale,
        weight.reshape(sizes) if weight is not None else None,
        bias.reshape(sizes) if bias is not None else None,
    )
    return result.to(x.dtype), *saved, running_mean, running_var


def _native_batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: Any, momentum: Any, eps: Any
) -> Any:
    if training and (mean is not None or var is not None):
        return NotImplemented  # it changes the running values in place
    return _batch_norm(x, weight, bias, mean, var, training, momentum, eps)[:3]


def _no_stats(x: Any, weight: Any, bias: Any, training: Any, momentum: Any, eps: Any) -> Any:
    return _batch_norm(x, weight, bias, None, None, True, momentum, eps)[:3]


def _no_training(x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: Any, eps: Any) -> Any:
    return _batch_norm(x, weight, bias, mean, var, False, momentum, eps)[:3]


def _select_scatter(x: torch.Tensor, src: torch.Tensor, dim: int, index: Any) -> torch.Tensor:
    """`x` stands first, so that its strides are those of the result, as in eager torch."""
    dim %= x.dim()
    indices = torch.arange(x.shape[dim], device=x.device).reshape([-1, *[1] * (x.dim() - 1 - dim)])
    return torch.where(indices != (index + x.shape[dim] if index < 0 else index), x, src.unsqueeze(dim))


def _max_pool(
    x: torch.Tensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> Any:
    """Max pooling of contiguous tensors on CPUs by small windows without padding, which torch computes one element
    at a time; other pooling is left to torch."""
    kernel, stride, padding, dilation = map(_pair, (kernel, stride or kernel, padding, dilation))
    small = math.prod(kernel) <= WINDOW and not ceil and padding == (0, 0) and dilation == (1, 1)
    if not small or is_gpu(x.device) or not x.dtype.is_floating_point or not x.is_contiguous():
        return NotImplemented
    windows = x.unfold(-2, kernel[0], stride[0]).unfold(-2, kernel[1], stride[1])
    width = x.shape[-1]
    rows, columns = (
        torch.arange(n, device=x.device) * step for n, step in zip(windows.shape[-4:-2], stride, strict=True)
    )
    largest, beyond = windows[..., 0, 0], torch.zeros((), dtype=torch.int64, device=x.device)
    for k in range(1, math.prod(kernel)):  # no element is chosen by a branch: nobody could predict it
        i, j = divmod(k, kernel[1])
        window = windows[..., i, j]
        later = (window > largest) | (window != window)
        largest = torch.maximum(largest, window)
        beyond = torch.maximum(beyond, later.long() * (i * width + j))
    return largest.clone(), rows[:, None] * width + columns + beyond


def _pair(x: Any) -> tuple[int, int]:
    x = (x,) if isinstance(x, int) else tuple(x)
    return x if len(x) == 2 else (x[0], x[0])


_OURS: dict[Any, Callable[..., Any]] = {
    aten.var_mean.correction: _var_mean,
    aten.var.correction: _var,
    aten.std.correction: _std,
    aten.native_layer_norm.default: _layer_norm,
    aten.native_group_norm.default: _group_norm,
    aten._native_batch_norm_legit_functional.default: _batch_norm,
    aten._native_batch_norm_legit.no_stats: _no_stats,
    aten._native_batch_norm_legit_no_training.default: _no_training,
    aten.native_batch_norm.default: _native_batch_norm,
    aten.max_pool2d_with_indices.default: _max_pool,
    aten.select_scatter.default: _select_scatter,
}
