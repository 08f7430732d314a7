"""Buffer reuse: kernels that store into memory they read, of mutated inputs and of operands that die there."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from .fusion import Fusion
from .fusion_group import ProductGroup
from .kernel_writer import KernelText
from .sizes import equal, expressions, nonempty_strides, product, same_shape

_copy = torch.ops.aten.copy_.default


def mutated_inputs(graph: Graph, fusion: Fusion) -> dict[Node, Node]:
    """Maps a kernel's node to the node that copies it into a mutated input, if the kernel can store there itself."""
    output = next(n for n in graph.nodes if n.op == "output")
    returned = set(output.all_input_nodes)
    copies: dict[Node, Node] = {}
    for copy in (n for n in graph.nodes if n.target is _copy):
        into, value = copy.args[:2]
        group = fusion.of.get(value)
        if into.op != "placeholder" or group is None or isinstance(group, ProductGroup) or {into, value} & returned:
            continue
        readers = [n for n in into.users if n is not copy]
        if value in copies or any(fusion.of.get(n) is not group or n in fusion.inlined for n in readers):
            continue
        if same_layout(into, value):
            copies[value] = copy
    return copies


def same_layout(x: Node, y: Node) -> bool:
    """Whether two tensors have the same dtype, device, sizes and strides."""
    a, b = x.meta["val"], y.meta["val"]
    similar = a.dtype == b.dtype and a.device == b.device
    return similar and _same(a.shape, b.shape) and _same(a.stride(), b.stride())


def fits_memory(x: Node, y: Node) -> bool:
    """Whether the memory of one tensor can hold the other, with the other's sizes and strides."""
    a, b = x.meta["val"], y.meta["val"]
    dense = a.dtype == b.dtype and a.device == b.device and _dense(a) and _dense(b)
    return same_layout(x, y) or (dense and product(expressions(a.shape)) == product(expressions(b.shape)))


def _dense(x: torch.Tensor) -> bool:
    sizes = expressions(x.shape)
    return all(
        n == 1 or equal(s, product(sizes[k + 1 :]))
        for k, (n, s) in enumerate(zip(sizes, nonempty_strides(x.shape, x.stride()), strict=True))
    )


def _same(a: torch.Size | tuple[int, ...], b: torch.Size | tuple[int, ...]) -> bool:
    return same_shape(expressions(a), expressions(b))


def reads_only_stored_element(text: KernelText, value: Node, into: Node) -> bool:
    """Whether each iteration reads only that element of the array `into` that it stores of the node `value`."""
    (out,) = (a for a in text.outputs if a.node is value)
    read = [a for a in text.inputs if a.node is into]
    early = text.early and bool(read)
    return out.flat is None and not early and all(a.flat is None and a.layout == out.layout for a in read)
