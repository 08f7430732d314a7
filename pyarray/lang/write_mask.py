"""Debug mode: marks the elements that a kernel stores into an array declared `Out` in a mask.

The element's address finds its place in the mask, so that views and called functions don't matter. Array and
mask are two hidden parameters per `Out`, passed on to every function. The host makes and reads the mask
(`jit.write_masks`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..dtypes import bool_, uint64
from . import ir

LOW, MASK = "!low", "!mask"  # what hidden parameters are called after the array's name
_LOW, _MASK = ir.ScalarType(uint64), ir.ArrayType(bool_, 1, False)


def mask_itemsize(itemsize: int, kind: str) -> int:
    """Bytes per entry of a mask: elements start at multiples of it."""
    return itemsize // 2 if kind == "c" else itemsize


def mark_stores(tree: ir.Tree, outs: Sequence[str]) -> ir.Tree:
    """The tree with marks at stores that may go into one of the kernel's parameters `outs`."""
    kinds = dict(tree.kernel.params)
    hidden = tuple((f"{name}{end}", kind) for name in outs for end, kind in ((LOW, _LOW), (MASK, _MASK)))

    def locals_of(loc: ir.Loc, names: Sequence[str]) -> tuple[ir.Local, ...]:
        return tuple(ir.Local(loc, kind, name) for name, kind in hidden if name.partition("!")[0] in names)

    def change(node: Any) -> Any:
        if isinstance(node, ir.Invoke):
            return replace(node, args=(*node.args, *locals_of(node.loc, outs)))
        if isinstance(node, ir.Store):
            same = [name for name in outs if kinds[name].dtype is node.array.type.dtype]
            return replace(node, marks=locals_of(node.loc, same))
        return node

    def changed(function: ir.Function) -> ir.Function:
        body = tuple(ir.rewrite(s, change) for s in function.body)
        return replace(function, params=(*function.params, *hidden), body=body)

    return ir.Tree(changed(tree.kernel), tuple(map(changed, tree.functions)))
