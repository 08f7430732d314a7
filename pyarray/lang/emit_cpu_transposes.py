"""CPU text of transposing copies from arrays into tiles, by calls of csrc/device/pa_transposed_copy.h: loops over a
tile whose rows lie across memory would read a line for each element."""

from __future__ import annotations

from typing import Any

from . import ir
from .emit_expressions import cname
from .emit_tile_across import find_across
from .tile_nests import copied_elements, nest_of

_SIZES = 2, 4, 8  # bytes of an element


def write_transposed_copy(code: Any, s: ir.For) -> bool:
    """Whether a nest is such a copy, and printed, with its loops for arrays that lie otherwise."""
    copied = copied_elements(s) if s.capacity and s is not code.looped_copy else None
    if copied is None:
        return False
    (store, load), (loops, _) = copied, nest_of(s)
    checked = any(getattr(n, "site", None) not in (None, *code.hoisted) for n in ir.walk(store))
    size = load.array.type.dtype.itemsize
    across = find_across(code, s, load)
    if checked or size not in _SIZES or across is None:
        return False
    out, lengths = code.out, []
    with out.block():
        with out.block(f"if ({across.test})"):
            for loop in loops:
                start, stop = (code.expr(x) for x in (loop.ranges[0].start, loop.ranges[0].stop))
                out.line(f"const int64_t {cname(loop.variables[0])} = {start};")
                lengths.append(f"{stop} - {start}")
            to = code.element(cname(store.name), store.shape, store.index, None)
            places = f"&{to}, {store.shape[1]}, &{code.lvalue(load)}, {across.step}"
            out.line(f"pa_transposed_copy_{8 * size}({places}, {', '.join(lengths)});")
        with out.orelse():
            code.looped_copy = s
            code.write_loop(s)
            code.looped_copy = None
    return True
