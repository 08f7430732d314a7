"""CPU text of nests over a tile whose rows lie across the memory of an array: loops over rows would touch a line for
each element. Copies into tiles are calls of csrc/device/pa_transposed_copy.h, stores are loops over bands of rows."""

from __future__ import annotations

from typing import Any

from . import ir
from .emit_expressions import cname
from .emit_tile_across import Across, find_across
from .tile_nests import copied_elements, nest_of

_COPIED = 2, 4, 8  # bytes of the elements that calls copy
_LINE = 64  # bytes of memory that a band of rows writes together
_ORDERED = ir.Load, ir.Invoke, ir.Atomic, ir.Print, ir.Assert  # to which the order of iterations may matter


def write_transposed_nest(code: Any, s: ir.For) -> bool:
    """Whether a nest copies from an array to a tile, or stores to an array, and nothing else, and is printed: for
    arrays whose neighbours in memory are across rows, and with its loops for others."""
    if not s.capacity or s is code.looped_nest:
        return False
    loops, body = nest_of(s)
    copied = copied_elements(s)
    if copied is not None:
        accessed, write = copied[1], _write_copy
    elif len(loops) == 2 and len(body) == 1 and isinstance(body[0], ir.Store) and _is_free(body[0]):
        accessed, write = body[0], _write_store
    else:
        return False
    if any(getattr(n, "site", None) not in (None, *code.hoisted) for n in ir.walk(*body)):
        return False
    across = find_across(code, s, accessed)
    if across is None or (copied is not None and accessed.array.type.dtype.itemsize not in _COPIED):
        return False
    with code.out.block():
        with code.out.block(f"if ({across.test})" if across.test else ""):
            write(code, loops, body[0], across)
        if across.test:
            with code.out.orelse():
                code.looped_nest = s
                code.write_loop(s)
                code.looped_nest = None
    return True


def _is_free(store: ir.Store) -> bool:
    """Whether elements may be stored in any order: no other element is read from an array meanwhile."""
    return not store.marks and not any(isinstance(n, _ORDERED) for n in ir.walk(store.value))


def _bounds(code: Any, loop: ir.For) -> tuple[str, str]:
    return code.expr(loop.ranges[0].start), code.expr(loop.ranges[0].stop)


def _write_copy(code: Any, loops: list[ir.For], store: Any, across: Across) -> None:
    out, lengths, size = code.out, [], store.value.array.type.dtype.itemsize
    for loop in loops:
        start, stop = _bounds(code, loop)
        out.line(f"const int64_t {cname(loop.variables[0])} = {start};")
        lengths.append(f"{stop} - {start}")
    to = code.element(cname(store.name), store.shape, store.index, None)
    places = f"&{to}, {store.shape[1]}, &{code.lvalue(store.value)}, {across.step}"
    out.line(f"pa_transposed_copy_{8 * size}({places}, {', '.join(lengths)});")


def _write_store(code: Any, loops: list[ir.For], store: Any, across: Across) -> None:
    (row, column), out = (cname(loop.variables[0]) for loop in loops), code.out
    (first, last), (start, stop) = (_bounds(code, loop) for loop in loops)
    rows = _LINE // store.array.type.dtype.itemsize
    with out.block(f"for (int64_t band = {first}, rows_stop = {last}; band < rows_stop; band += {rows})"):
        out.line(f"const int64_t band_stop = band + {rows} < rows_stop ? band + {rows} : rows_stop;")
        with (
            out.block(f"for (int64_t {column} = {start}, columns_stop = {stop}; {column} < columns_stop; ++{column})"),
            out.block(f"for (int64_t {row} = band; {row} < band_stop; ++{row})"),
        ):
            code.write((store,))
