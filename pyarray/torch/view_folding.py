"""View folding: a chain of views that torch's operators or the caller get becomes one `reinterpret_tensor`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch._C._dynamo import guards
from torch.fx import GraphModule, Node

from . import views
from .fusion import Fusion
from .sizes import expression, expressions, python, same_shape

StridedView = tuple[tuple[sympy.Expr, ...], tuple[sympy.Expr, ...], sympy.Expr]


def _by_dispatch(x: torch.Tensor, sizes: Any, strides: Any, offset: int) -> torch.Tensor:
    return torch.as_strided(x, sizes, strides, x.storage_offset() + offset)


# a tensor's memory with other sizes and strides, from so many elements after its first on
reinterpret_tensor: Callable[..., torch.Tensor] = getattr(guards, "_reinterpret_tensor", _by_dispatch)


def fold_views(module: GraphModule, fusion: Fusion) -> None:
    """Give users of views that are no kernels one view of the memory itself."""
    nodes: dict[Node, Node] = {}
    for user in list(module.graph.nodes):
        if user.op not in ("call_function", "output"):
            continue
        if user in fusion.of or user in fusion.inlined or views.is_view(user) or views.is_split(user):
            continue
        for x in user.all_input_nodes:
            if not views.is_view(x) or (view := _strided_view(x, base := fusion.base(x))) is None:
                continue
            same = user.op != "output" and _is_all(view, base)  # a result is a tensor of its own
            if not same and x not in nodes:
                nodes[x] = _node(module, fusion, x, view)
            user.replace_input_with(x, base if same else nodes[x])


def _is_all(view: StridedView, base: Node) -> bool:
    """Whether a view has all elements of its base, in the same layout."""
    shape, strides, offset = view
    value = base.meta["val"]
    return (
        offset == 0 and same_shape(shape, expressions(value.shape)) and same_shape(strides, expressions(value.stride()))
    )


def _node(module: GraphModule, fusion: Fusion, node: Node, view: StridedView) -> Node:
    """Inserts a node that makes the view `node`, with the layout `view`, from its base."""
    with module.graph.inserting_after(node):
        node_of_view = module.graph.call_function(reinterpret_tensor, (fusion.base(node),))
    node_of_view.meta["val"], node_of_view.meta["strided_view"] = node.meta["val"], view
    fusion.order[node_of_view] = fusion.order[node]
    return node_of_view


def _strided_view(node: Node, base: Node) -> StridedView | None:
    """Sizes, strides and offset of a view in its base's memory. Views that negate or conjugate what is read are
    torch's own: AOTAutograd makes such a result anew from its base, and needs the chain of views for it."""
    view, value = node.meta["val"], base.meta.get("val")
    if view.is_neg() or view.is_conj():
        return None
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or view.dtype != value.dtype:
        return None
    chain = node
    while chain is not base:
        if chain.target in views.COPIES:
            return None
        chain = views.source_of(chain)
    if view.untyped_storage()._cdata != value.untyped_storage()._cdata:
        return None
    offset = sympy.expand(expression(view.storage_offset()) - expression(value.storage_offset()))
    return expressions(view.shape), expressions(view.stride()), offset


def call_text(node: Node, base: str, text: Callable[[Any], str]) -> str:
    """The call that makes a folded view; `text` is that of sizes or strides."""
    shape, strides, offset = node.meta["strided_view"]
    return f"reinterpret_tensor({base}, {text(shape)}, {text(strides)}, {python(offset)})"
