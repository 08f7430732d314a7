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
    known: dict[Node, Node] = {}
    for user in list(module.graph.nodes):
        if user.op not in ("call_function", "output"):
            continue
        if user in fusion.of or user in fusion.inlined or views.is_view(user) or views.is_split(user):
            continue
        for x in user.all_input_nodes:
            if not views.is_view(x) or (place := _place(x, base := fusion.base(x))) is None:
                continue
            same = user.op != "output" and _is_all(place, base)  # a result is a tensor of its own
            if not same and x not in known:
                known[x] = _node(module, fusion, x, place)
            user.replace_input_with(x, base if same else known[x])


def _is_all(place: StridedView, base: Node) -> bool:
    """Whether a view is its base once more."""
    shape, strides, offset = place
    own = base.meta["val"]
    return (
        offset == 0
        and same_shape(shape, expressions(own.shape))
        and same_shape(strides, expressions(own.stride()))
    )


def _node(module: GraphModule, fusion: Fusion, node: Node, place: StridedView) -> Node:
    """A node for the view that `node` is."""
    with module.graph.inserting_after(node):
        made = module.graph.call_function(reinterpret_tensor, (fusion.base(node),))
    made.meta["val"], made.meta["strided_view"] = node.meta["val"], place
    fusion.order[made] = fusion.order[node]
    return made


def _place(node: Node, base: Node) -> StridedView | None:
    """Sizes, strides and offset of a view in its base's memory."""
    mine, own = node.meta["val"], base.meta.get("val")
    if not isinstance(own, torch.Tensor) or own.layout != torch.strided or mine.dtype != own.dtype:
        return None
    chain = node
    while chain is not base:
        if chain.target in views.COPIES:
            return None
        chain = views.source_of(chain)
    if mine.untyped_storage()._cdata != own.untyped_storage()._cdata:
        return None
    offset = sympy.expand(expression(mine.storage_offset()) - expression(own.storage_offset()))
    return expressions(mine.shape), expressions(mine.stride()), offset


def call_text(node: Node, base: str, text: Callable[[Any], str]) -> str:
    """The call that makes a folded view; `text` is that of sizes or strides."""
    shape, strides, offset = node.meta["strided_view"]
    return f"reinterpret_tensor({base}, {text(shape)}, {text(strides)}, {python(offset)})"
