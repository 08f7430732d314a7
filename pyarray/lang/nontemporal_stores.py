"""Finds loops whose result can be written past the cache: iteration t stores element t, and nothing reads it.

This looks at the tree alone; the running kernel decides by the array's size (csrc/device/pa_stream.h)."""

from __future__ import annotations

from .ir import ArrayType, Break, Const, Continue, For, Function, Local, Return, Size, Store, walk


def nontemporal_array(kernel: Function, loop: For) -> tuple[str, ArrayType] | None:
    """The array that the loop fills, element t in iteration t, as a parameter's name and type; None if it is
    not such a loop."""
    if len(loop.ranges) != 1 or loop.ranges[0].step is not None:
        return None
    start = loop.ranges[0].start
    if start is not None and not (isinstance(start, Const) and start.value == 0):
        return None
    nodes = [n for s in loop.body for n in walk(s)]
    if any(isinstance(n, (Continue, Break, Return)) for n in nodes):
        return None
    stores = [n for n in nodes if isinstance(n, Store)]
    # the last statement: an iteration that goes on could read its own element under another name
    if len(stores) != 1 or stores[0] is not loop.body[-1]:
        return None
    return _filled(kernel, loop, stores[0], nodes)


def _filled(kernel: Function, loop: For, store: Store, nodes: list[object]) -> tuple[str, ArrayType] | None:
    array, index = store.array, store.index
    if not isinstance(array, Local) or len(index) != 1 or not isinstance(index[0], Local):
        return None
    kind = dict(kernel.params).get(array.name)
    if index[0].name != loop.variables[0] or not isinstance(kind, ArrayType) or kind.strided:
        return None
    uses = sum(isinstance(n, Local) and n.name == array.name for n in nodes)
    sizes = sum(isinstance(n, Size) and n.array == array for n in nodes)
    return (array.name, kind) if kind.ndim == 1 and uses == 1 + sizes else None
