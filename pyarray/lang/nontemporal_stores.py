"""Finds loops whose result can be written past the cache: iteration t stores element t, and nothing reads it.

This looks at the tree alone; the running kernel decides by the array's size (csrc/device/pa_stream.h)."""

from __future__ import annotations

from . import ir
from .summaries import has_any


def nontemporal_array(kernel: ir.Function, loop: ir.For) -> tuple[str, ir.ArrayType] | None:
    """The array that the loop fills, element t in iteration t, as a parameter's name and type; None if it is
    not such a loop."""
    if len(loop.ranges) != 1 or loop.ranges[0].step is not None:
        return None
    start = loop.ranges[0].start
    if start is not None and not (isinstance(start, ir.Const) and start.value == 0):
        return None
    if has_any(loop.body, ir.Continue, ir.Break, ir.Return):
        return None
    nodes = list(ir.walk(*loop.body))
    stores = [n for n in nodes if isinstance(n, ir.Store)]
    # the last statement: an iteration that goes on could read its own element under another name
    if len(stores) != 1 or stores[0] is not loop.body[-1]:
        return None
    return _filled(kernel, loop, stores[0], nodes)


def _filled(kernel: ir.Function, loop: ir.For, store: ir.Store, nodes: list[object]) -> tuple[str, ir.ArrayType] | None:
    array, index = store.array, store.index
    if not isinstance(array, ir.Local) or len(index) != 1 or not isinstance(index[0], ir.Local):
        return None
    kind = dict(kernel.params).get(array.name)
    if index[0].name != loop.variables[0] or not isinstance(kind, ir.ArrayType) or kind.strided:
        return None
    uses = sum(isinstance(n, ir.Local) and n.name == array.name for n in nodes)
    sizes = sum(isinstance(n, ir.Size) and n.array == array for n in nodes)
    return (array.name, kind) if kind.ndim == 1 and uses == 1 + sizes else None
