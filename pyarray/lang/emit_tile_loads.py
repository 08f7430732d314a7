"""GPU text of loops that load the next iteration's operands of products while they compute with those at hand.

Each of these tiles has two places in shared memory, which take turns. Copies of 16 bytes are asynchronous: threads wait
for them, and for each other, where an iteration begins."""

from __future__ import annotations

import math
from typing import Any

from . import ir
from .emit_statements import cname
from .emit_tile_products import zero_operands
from .emit_tile_vectors import find_vectors, vector_test
from .tile_layout import Layout, axes_of, copied_tile, leading_statements, loaded_ahead, nest_of


def write_loop_with_loads(code: Any, s: ir.For) -> bool:
    """Whether the loop is one, and printed."""
    names, (range_,) = loaded_ahead(s, code.plan), s.ranges
    if not names or range_.step is not None:
        return False
    out, leading = code.out, leading_statements(s)
    variable, number = cname(s.variables[0]), f"turn_{cname(s.variables[0])}"
    copies = [x for x in leading if (copied := copied_tile(x, code.plan)) and copied[0].name in names]
    rest = tuple(x for x in s.body if x not in copies)
    with out.block():
        start = code.expr(range_.start) if range_.start is not None else "0"
        out.line(f"const int64_t first_turn = {start}, past_turn = {code.expr(range_.stop)};")
        code.barrier()
        with out.block("if (first_turn < past_turn)"):
            _write_copies(code, leading, copies, names, f"const int64_t {variable} = first_turn, turn = 0;")
        with out.block(f"for (int64_t {number} = first_turn; {number} < past_turn; ++{number})"):
            out.line(f"const int64_t turn = ({number} - first_turn) % 2;")
            out.line("pa_tile_wait();")
            code.barrier()
            with out.block(f"if ({number} + 1 < past_turn)"):
                out.line(f"const int64_t {variable} = {number} + 1;")
                _write_copies(code, leading, copies, names, "const int64_t next = 1 - turn, turn = next;")
            out.line(f"const int64_t {variable} = {number};")
            out.lines(_places(code, names))
            code.write(rest)
    code.pending |= code.whole((s,))
    return True


def _write_copies(code: Any, leading: list[Any], copies: list[Any], names: list[str], head: str) -> None:
    """The copies into the places of a turn, with their own variables."""
    out = code.out
    out.line(head)
    out.lines(_places(code, names))
    scalars = [x for x in leading if isinstance(x, ir.Assign)]
    for name in dict.fromkeys(x.name for x in scalars):
        out.line(f"{code.type_of(name).dtype.ctype} {cname(name)} = 0;")
    code.write(scalars)
    for x in copies:
        with out.block():
            _write_copy(code, x)
            zero_operands(code, *nest_of(x))


def _places(code: Any, names: list[str]) -> list[str]:
    lines = []
    for name in names:
        kind, plan = code.type_of(name).dtype.ctype, code.plan
        place = f"tile_memory + (turn ? {plan.second[name]} : {plan.shared[name]})"
        lines.append(f"{kind} *const {cname(name)} = ({kind} *)({place});")
    return lines


def _write_copy(code: Any, s: ir.For) -> None:
    loops, body = nest_of(s)
    copied = copied_tile(s, code.plan)
    assert copied is not None
    store, load = copied
    each = 16 // load.array.type.dtype.itemsize
    code.declare_lengths(loops)
    vectors = find_vectors(code, loops, body, each)
    if vectors is None or not vectors.loads:
        code.each_element(loops, body, lambda: code.write(body))
        return
    (*_, (variable, columns)), out = axes_of(loops), code.out
    layout = Layout(math.prod(n for _, n in axes_of(loops)[:-1]), columns, code.plan.threads, each)
    with out.block(f"if ({vector_test(code, loops, vectors)})"):
        with code.row_loop(layout):
            tests = code.row_positions(layout, axes_of(loops[:-1]), loops[:-1])
            at = f"at_{cname(variable)}"
            with out.block(f"if ({' && '.join(tests)})"), code.column_loop(layout):
                out.line(f"const int {at} = (rank % {layout.lanes} + column_step * {layout.lanes}) * {each};")
                code.offsets[variable] = at
                with out.block(f"if ({at} < length_{cname(variable)})"):
                    code.bind_variables(loops)
                    element = code.tile_element(store.name, store.shape, store.index)
                    out.line(f"pa_tile_copy(&{element}, &{code.lvalue(load)});")
        code.register, code.offsets = "", {}
    with out.orelse():
        code.rows_of_elements(code.plan.layout(axes_of(loops)), loops, lambda: code.write(body), True, None)
