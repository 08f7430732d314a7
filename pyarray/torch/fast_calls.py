"""Functions of torch that dispatch faster than its operators, for the same operators and for allocation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._C._dynamo import guards

aten = torch.ops.aten

# with the operator's parameters, in its order
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    aten.mm.default: torch.mm,
    aten.addmm.default: torch.addmm,
    aten.bmm.default: torch.bmm,
    aten.baddbmm.default: torch.baddbmm,
    aten.cat.default: torch.cat,
    aten.convolution.default: torch.convolution,
}
# always dense, and in the order of their axes, whatever their operands are
DENSE = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}

_ALLOCATE = {
    "cpu": getattr(guards, "_empty_strided_cpu", None),
    "cuda": getattr(guards, "_empty_strided_cuda", None),
}


def allocator(device: torch.device) -> Callable[..., torch.Tensor]:
    """A function of shape, strides and dtype."""
    quick: Callable[..., torch.Tensor] | None = _ALLOCATE.get(device.type)
    if quick is not None and (device.type == "cpu" or torch.cuda.device_count() == 1):  # on the current one
        return quick
    return lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device=device)


def function_of(target: Any) -> Any:
    """The function that an operator is called by."""
    function = _FUNCTIONS.get(target)
    return function if function is not None else getattr(target, "_op", target)
