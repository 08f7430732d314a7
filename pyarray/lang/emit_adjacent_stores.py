"""GPU text that merges consecutive stores at the end of an iteration, like those of four random variates, into one
vector store of 16 bytes where the address is aligned. Single ones of a warp would each write a part of every sector of
memory."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from . import ir
from .emit_statements import Emitter
from .summaries import called_in

VECTOR_BYTES = 16


def write_body_with_adjacent_stores(code: Emitter, body: tuple[ir.Stmt, ...], pure: Set[str]) -> None:
    """Prints the statements of an iteration. `pure` functions change nothing."""
    stores = () if code.debug else adjacent_stores(code, body, pure)
    code.write(body[: len(body) - len(stores)])
    if not stores:
        return
    first, out = stores[0], code.out
    element, count = first.array.type.dtype.ctype, len(stores)
    with out.block():
        out.line(f"pa_vector<{element}, {count}> adjacent;")
        for k, store in enumerate(stores):
            out.line(f"adjacent.v[{k}] = {code.expr(store.value)};")
        out.line(f"{element} *const to = &{code.lvalue(first)};")
        out.line(f"if (pa_aligned(to, {VECTOR_BYTES})) *(pa_vector<{element}, {count}> *)to = adjacent;")
        out.line(f"else for (int k = 0; k < {count}; ++k) to[k] = adjacent.v[k];")


def adjacent_stores(code: Emitter, body: tuple[ir.Stmt, ...], pure: Set[str]) -> tuple[ir.Store, ...]:
    """The stores at the end of an iteration that fill 16 bytes of a contiguous parameter, in order, and whose values
    read no memory; else none."""
    last = body[-1] if body else None
    if not isinstance(last, ir.Store) or not isinstance(last.array, ir.Local):
        return ()
    kind = dict(code.kernel.params).get(last.array.name)
    if kind is None or kind.strided or kind.ndim != 1:
        return ()
    count = VECTOR_BYTES // kind.dtype.itemsize
    stores = tuple(s for s in body[-count:] if isinstance(s, ir.Store))
    if not 1 < count == len(stores) or not all(_is_alike(s, last.array.name, pure) for s in stores):
        return ()
    places = [_place(code, s.index[0]) for s in stores]
    begin, offset = places[0]
    return stores if places == [(begin, offset + k) for k in range(count)] else ()


def _is_alike(store: ir.Store, name: str, pure: Set[str]) -> bool:
    """Whether a store is unchecked and of the array `name`, and its value is one of registers."""
    if store.site is not None or store.marks or not isinstance(store.array, ir.Local) or store.array.name != name:
        return False
    nodes = list(ir.walk(store.value, *store.index))
    reads = any(isinstance(n, (ir.Load, ir.Atomic, ir.Let)) or hasattr(getattr(n, "type", None), "ndim") for n in nodes)
    return not reads and called_in(store.value, *store.index) <= pure


def _place(code: Emitter, index: Any) -> tuple[str, int]:
    """The text of an index without the constant that is added to it, and that constant."""
    if isinstance(index, ir.Binary) and index.op == "add":
        for base, offset in ((index.a, index.b), (index.b, index.a)):
            if isinstance(offset, ir.Const):
                return code.expr(base), int(offset.value)
    return code.expr(index), 0
