"""Which ATen operators are compiled to kernels, and why the others stay torch's."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from . import operators
from .sizes import expression

CASTS = {torch.ops.aten._to_copy.default, torch.ops.prims.convert_element_type.default}


def unsupported_reason(node: Node) -> str | None:
    """Why a node stays an operator of torch; None where a kernel of ours computes it."""
    value = operators.tensor(node)
    is_supported = (
        node.target in operators.CREATIONS
        or node.target in operators.REDUCTIONS
        or operators.pointwise_text(node) is not None
    )
    if not is_supported:
        return "no kernel here computes it"
    why = unsupported_tensors(node)
    if why is not None:
        return why
    if node.target in operators.REDUCTIONS:
        asked = operators.argument(node, 3, "dtype")
        if value.dtype.is_complex or asked not in (None, value.dtype):
            return "its dtype"
        if asked and asked.itemsize < operators.tensor(node.args[0]).dtype.itemsize:
            return "its dtype, to which elements are rounded first"
        if not operators.reduced_axes(node):
            return "it reduces no axis"
        if operators.REDUCTIONS[node.target].order_dependent and value.dtype.is_floating_point:
            return "products in another order overflow elsewhere"
    if node.target in operators.CREATIONS and node.target in _RANGES:
        start, step = range_of(node)
        if any(isinstance(x, float) for x in (start, step)):
            return "a range of floats"
    if not _numbers_fit(node):
        return "a number doesn't fit the dtype that it is computed in"
    return None


def unsupported_tensors(node: Node) -> str | None:
    """The reason why kernels don't support a tensor that a node reads or writes; None if they support all."""
    value = operators.tensor(node)
    operands = [x.meta["val"] for x in node.all_input_nodes]
    for x in (value, *operands):
        if not isinstance(x, torch.Tensor):
            continue
        if x.layout != torch.strided or x.is_sparse or x.is_quantized or x.is_neg() or x.is_conj():
            return f"a tensor is {x.layout}, quantized or lazily changed"
        if operators.library_dtype(x.dtype) is None:
            return f"no kernel here computes with {x.dtype}"
        if x.device != value.device:
            return f"it reads from {x.device} and writes to {value.device}"
        if x.device.type not in ("cpu", "cuda"):
            return f"its tensors are on {x.device}"
        if any(expression(n) == 0 for n in x.shape):
            return "a tensor is empty"
    return None


def _numbers_fit(node: Node) -> bool:
    """Whether integer arguments are in the dtype's range; torch wraps those outside."""
    row = operators.POINTWISE.get(node.target)
    if row is None:
        dtype, numbers = operators.tensor(node).dtype, list(node.args[:2]) if node.target not in _RANGES else []
    else:
        dtype, numbers = operators.compute_dtype(node, row), [*node.args, *node.kwargs.values()]
    if dtype.is_floating_point or dtype == torch.bool:
        return True
    limits = torch.iinfo(dtype)
    return all(
        limits.min <= x <= limits.max for x in numbers if isinstance(x, (int, float)) and not isinstance(x, bool)
    )


_RANGES = {
    torch.ops.aten.arange.start_step, torch.ops.aten.arange.default, torch.ops.aten.arange.start,
    torch.ops.prims.iota.default,
}  # fmt: skip


def range_of(node: Node) -> tuple[Any, Any]:
    """First element and step of a range."""
    if node.target is torch.ops.prims.iota.default:
        return node.kwargs.get("start", 0), node.kwargs.get("step", 1)
    if node.target is torch.ops.aten.arange.default:
        return 0, 1
    step = operators.argument(node, 2, "step", 1) if node.target is torch.ops.aten.arange.start_step else 1
    return node.args[0], step
