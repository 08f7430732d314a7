"""CPU text of copies from arrays into tiles whose rows lie across memory, which is a function's
(csrc/device/pa_transposed_copy.h): the loops of such a nest would read a line for each element."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import ir
from .emit_expressions import cname
from .summaries import names_in
from .tile_nests import copied_elements, nest_of

_SIZES = 2, 4, 8  # bytes of an element


class Across(NamedTuple):
    """Whether an array has its neighbours in memory across the rows of a tile, and its stride along these; C text."""

    test: str
    step: str


def find_across(code: Any, s: ir.For, load: Any) -> Across | None:
    """Of the array that a nest copies to a tile; None where it has no such neighbours."""
    kind, variables = load.array.type, [loop.variables[0] for loop in nest_of(s)[0]]
    places = [[k for k, i in enumerate(load.index) if variable in names_in(i)] for variable in variables]
    plain = all(len(found) == 1 and isinstance(load.index[found[0]], ir.Local) for found in places)
    if not kind.strided or kind.reshape_of is not None or not isinstance(load.array, ir.Local) or not plain:
        return None
    array, size = code.expr(load.array), kind.dtype.itemsize
    along, step = (f"{array}.s{found[0]}" for found in places)
    return Across(f"{along} == {size} && {step} != {size}", step)


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
