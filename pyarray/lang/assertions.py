"""Assertions in the typed tree: code without checks has none, as Python with -O."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from . import ir
from .summaries import has_any


def has_assertions(tree: ir.Tree) -> bool:
    return any(has_any(f.body, ir.Assert) for f in (tree.kernel, *tree.functions))


def without_assertions(tree: ir.Tree) -> ir.Tree:
    if not has_assertions(tree):
        return tree

    def function(f: ir.Function) -> ir.Function:
        return replace(f, body=unasserted(f.body))

    return ir.Tree(function(tree.kernel), tuple(map(function, tree.functions)))


def unasserted(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """The statements without assertions. How a sum is ordered depends on these alone, so that it has the same bits with
    assertions."""
    if not has_any(body, ir.Assert):
        return body

    def remaining(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        return tuple(s for s in body if not (isinstance(s, ir.Evaluate) and isinstance(s.value, ir.Assert)))

    def change(node: Any) -> Any:
        blocks = {n: remaining(getattr(node, n)) for n in ("body", "then", "orelse") if _is_block(node, n)}
        return replace(node, **blocks) if blocks else node

    return remaining(tuple(ir.rewrite(s, change) for s in body))


def _is_block(node: Any, name: str) -> bool:
    return isinstance(node, (ir.For, ir.While, ir.If)) and hasattr(node, name)
