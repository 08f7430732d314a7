"""Matrix products of a graph that are computed here, each with its epilogue of pointwise nodes."""

from __future__ import annotations

import math

import torch
from torch.fx import Node

from . import product_cost, views
from .can_fuse import NodeFusion
from .fusion import Fusion, users
from .fusion_group import ProductGroup
from .operator_support import unsupported_reason, unsupported_tensors
from .operators import CREATIONS, REDUCTIONS, argument, tensor
from .product_cost import ProductProblem
from .product_epilogue import NotAnEpilogue, operands_of, product_text
from .sizes import hint

aten = torch.ops.aten
PRODUCTS = {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default}
TYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
MAX_EPILOGUE = 12  # pointwise nodes behind a product


def start_product(fusion: Fusion, node: Node) -> ProductGroup | None:
    """The product that begins at a node, with the nodes of its epilogue; None if the node is no product, or if it
    is left to torch: `fusion.eager` then has the reason."""
    if node.target not in PRODUCTS:
        return None
    why = _refused(node)
    if why is not None:
        fusion.eager[node] = why
        return None
    product = ProductGroup.over(len(fusion.groups), views.shape_of(node), tensor(node).device, [node])
    fusion.of[node] = product
    _fuse_epilogue(fusion, product)
    is_chosen, why = product_cost.choose(_problem(fusion, product))
    try:
        text = product_text(fusion, product) if is_chosen else None
    except NotAnEpilogue as reason:  # what a product adds may be cut by a reshape
        text, why = None, str(reason)
    if text is None:
        for n in product.nodes:
            del fusion.of[n]
        fusion.eager[node] = why
        return None
    product.why = why
    product.reads = tuple(dict.fromkeys(a.node for a in text.inputs if a.node is not None))
    return product


def _refused(node: Node) -> str | None:
    why = unsupported_tensors(node)
    if why is not None:
        return why
    values = [x.meta["val"] for x in (node, *node.all_input_nodes)]
    kinds = {x.dtype for x in values if isinstance(x, torch.Tensor)}
    if len(kinds) != 1 or not kinds <= TYPES:
        return f"no product here is of {', '.join(sorted(map(str, kinds)))}"
    for position, name in ((3, "beta"), (4, "alpha")):
        factor = argument(node, position, name, 1)
        if not isinstance(factor, (int, float)) or not math.isfinite(factor):
            return f"its {name} is known at run time only"
    return None


def _fuse_epilogue(fusion: Fusion, product: ProductGroup) -> None:
    """As many nodes as can be computed with it, such that others need the last of them alone."""
    kind = tensor(product.nodes[0]).dtype
    count, state = 1, product.state()
    while len(product.nodes) <= MAX_EPILOGUE:
        node = min(_outside(product), key=fusion.order.__getitem__, default=None)
        if node is None or not _pointwise(node):
            break
        trial = NodeFusion(fusion, product, node)
        if not trial.fits():
            break
        trial.commit()
        if tensor(node).dtype == kind and _closed(product) and _fits(fusion, product):
            count, state = len(product.nodes), product.state()
    for node in product.nodes[count:]:
        del fusion.of[node]
    del product.nodes[count:]
    product.restore(state)


def _outside(product: ProductGroup) -> set[Node]:
    return {u for n in product.nodes for u in users(n)}.difference(product.nodes)


def _closed(product: ProductGroup) -> bool:
    members = set(product.nodes)
    return all(u in members for n in product.nodes[:-1] for u in users(n))


def _pointwise(node: Node) -> bool:
    if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    return node.target not in REDUCTIONS and node.target not in CREATIONS and unsupported_reason(node) is None


def _fits(fusion: Fusion, product: ProductGroup) -> bool:
    try:
        product_text(fusion, product)
    except NotAnEpilogue:
        return False
    return True


def _problem(fusion: Fusion, product: ProductGroup) -> ProductProblem:
    first = product.nodes[0]
    *batch, m, n = (hint(x, fusion.hints) for x in views.shape_of(first))
    k = hint(views.shape_of(operands_of(first)[0])[-1], fusion.hints)
    steps = len(product.nodes) - 1 + (len(first.args) > 2)
    value = tensor(first)
    threads = torch.get_num_threads()
    return ProductProblem(value.device, value.dtype, math.prod(batch), m, n, k, steps, threads)
