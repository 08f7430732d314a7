"""GPU text of loops that load the next iterations' operands of products while they compute with those at hand.

These tiles have a place in each of several stages of shared memory, which take turns; how many there are depends on the
memory of the GPU. Copies of 16 bytes are asynchronous: threads wait for them, and for each other, where an iteration
begins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from . import ir
from .emit_statements import cname
from .emit_tile_products import sums_in_place, zero_operands
from .emit_tile_vectors import find_vectors, vector_test
from .summaries import assigned_in, names_in
from .tile_layout import Layout, copied_tile, leading_statements, loaded_ahead
from .tile_nests import axes_of, nest_of


class _Copy(NamedTuple):
    """A nest that copies a tile of an array. With `size` and `end`, its axis number `axis` is a tile of `size` elements
    of `end`, whose number is that of the iteration: addresses follow from those of the iteration before."""

    nest: ir.For
    number: int
    axis: int = 0
    size: int = 0
    end: Any = None


def write_loop_with_loads(code: Any, s: ir.For) -> bool:
    """Whether the loop is one, and printed."""
    names, (range_,) = loaded_ahead(s, code.plan), s.ranges
    if not names:
        return False
    out, leading = code.out, leading_statements(s)
    variable, number = cname(s.variables[0]), f"turn_{cname(s.variables[0])}"
    nests = [x for x in leading if (copied := copied_tile(x, code.plan)) and copied[0].name in names]
    copies = [_copy_of(x, k, s, leading) for k, x in enumerate(nests)]
    rest = tuple(x for x in s.body if x not in nests)

    def write_copies(turn: str, stage: str) -> None:
        out.lines([f"const int64_t {variable} = {turn};", f"const int stage = {stage};"])
        out.lines(_places(code, names))
        _write_numbers(code, leading)
        for x in copies:
            with out.block():
                _write_copy(code, x, variable)

    def write_ahead() -> None:
        out.line("#if PA_TILE_ASYNCHRONOUS")
        with out.block(f"if ({number} + ahead < past_turn)"):
            write_copies(f"{number} + ahead", "at_stage + ahead < stages ? at_stage + ahead : at_stage + ahead - stages")
        out.lines(["pa_tile_commit();", "#endif"])

    with out.block():
        start = code.expr(range_.start) if range_.start is not None else "0"
        out.line(f"const int64_t first_turn = {start}, past_turn = {code.expr(range_.stop)};")
        product = _first_product(code, rest)
        sums = _accumulated(code, rest, product)
        out.lines([f"const int ahead = stages - 1{' - PA_TILE_IN_FLIGHT' if sums else ''};", "int at_stage = 0;"])
        for x in copies:
            _write_first_address(code, x, leading, variable)
        code.barrier()
        out.lines(["#if PA_TILE_ASYNCHRONOUS", "#pragma unroll 1"])
        with out.block("for (int first = 0; first < ahead; ++first)"):
            with out.block("if (first_turn + first < past_turn)"):
                write_copies("first_turn + first", "first")
            out.line("pa_tile_commit();")
        out.line("#endif")
        with out.block("if (first_turn < past_turn)"):  # else no product is in flight
            with out.block(f"for (int64_t {number} = first_turn; {number} < past_turn; ++{number})"):
                out.line("#if !PA_TILE_ASYNCHRONOUS")
                code.barrier()
                with out.block():
                    write_copies(number, "0")
                out.lines(["#endif", "pa_tile_wait(ahead - 1);"])
                code.barrier(fenced=_stores_operands(code, rest))
                out.lines([f"const int64_t {variable} = {number};", "const int stage = at_stage;", *_places(code, names)])
                if product is not None:
                    code.meanwhile, code.in_flight = write_ahead, bool(sums)
                else:
                    with out.block():
                        write_ahead()
                code.write(rest)
                out.line("at_stage = at_stage + 1 == stages ? 0 : at_stage + 1;")
            out.lines([f"pa_tile_finish<{code.plan.registers[name].elements}>({cname(name)});" for name in sums])
    code.pending |= code.whole((s,))
    return True


def _first_product(code: Any, body: tuple[Any, ...]) -> Any:
    """The nest of the product that a body begins with, behind numbers: threads can copy while it is computed."""
    first = next((x for x in body if not isinstance(x, ir.Assign)), None)
    is_nest = isinstance(first, ir.For) and first.capacity
    return first if is_nest and code.matrix_product(*nest_of(first)) is not None else None


def _accumulated(code: Any, body: tuple[Any, ...], product: Any) -> list[str]:
    """The tile of sums, if a body does no more than to add a product of operands in shared memory: then the product of
    the next iteration begins before it is finished."""
    if product is None or body[-1] is not product or not code.plan.has_four_stages(code.scratch_bytes):
        return []
    loops, inner = nest_of(product)
    in_registers = code.matrix_product(loops, inner).a.array.name in code.plan.registers
    return [inner[2].name] if sums_in_place(code, loops, inner) and not in_registers else []


def _stores_operands(code: Any, body: tuple[Any, ...]) -> bool:
    """Whether threads store in operands of products."""
    tiles = code.plan.operands & code.plan.exchanged
    return any(isinstance(n, ir.SetElement) and n.name in tiles for n in ir.walk(*body))


def _copy_of(nest: ir.For, number: int, loop: ir.For, leading: list[Any]) -> _Copy:
    """What is known about the addresses of a copy."""
    values = {x.name: x.value for x in leading if isinstance(x, ir.Assign)}
    loops, (store,) = nest_of(nest)
    changed = assigned_in(*loop.body) | {loop.variables[0]}
    moving = [axis for axis, s in enumerate(loops) if names_in(s.ranges[0]) & changed]
    if len(moving) != 1 or names_in(store.value) & changed - {s.variables[0] for s in loops}:
        return _Copy(nest, number)
    start, stop = loops[moving[0]].ranges[0].start, loops[moving[0]].ranges[0].stop
    size, end = loops[moving[0]].capacity, None
    match values.get(getattr(start, "name", "")), values.get(getattr(stop, "name", "")):
        case (
            ir.Builtin(name="min", args=(ir.Binary(op="mul", a=ir.Local(name=turn), b=ir.Const(value=step)), first_end)),
            ir.Builtin(name="min", args=(ir.Binary(op="add", a=ir.Local(name=begin), b=ir.Const(value=length)), last_end)),
        ) if turn == loop.variables[0] and begin == start.name and step == length == size:
            same = replace(first_end, loc=last_end.loc) == last_end
            end = first_end if same and not names_in(first_end) & changed else None
    return _Copy(nest, number, moving[0], size, end) if end is not None else _Copy(nest, number)


def _write_numbers(code: Any, leading: list[Any]) -> None:
    """The numbers that an iteration begins with, as variables of their own."""
    numbers = [x for x in leading if isinstance(x, ir.Assign)]
    for name in dict.fromkeys(x.name for x in numbers):
        code.out.line(f"{code.type_of(name).dtype.ctype} {cname(name)} = 0;")
    code.write(numbers)


def _places(code: Any, names: list[str]) -> list[str]:
    lines = []
    for name in names:
        kind, plan = code.type_of(name).dtype.ctype, code.plan
        place = f"staged + stage * {plan.stage_bytes} + {plan.staged[name]}"
        lines.append(f"{kind} *const {cname(name)} = ({kind} *)({place});")
    return lines


class _Vectors(NamedTuple):
    """How threads take a tile in vectors of 16 bytes."""

    test: str
    layout: Layout
    at: str  # a thread's first column, and how it is computed
    column: str


def _vectors_of(code: Any, copy: _Copy) -> _Vectors | None:
    loops, body = nest_of(copy.nest)
    store, load = copied_tile(copy.nest, code.plan)
    each = 16 // load.array.type.dtype.itemsize
    vectors = find_vectors(code, loops, body, each)
    if vectors is None or not vectors.loads:
        return None
    (_, rows), (variable, columns) = axes_of(loops)
    layout = Layout(rows, columns, code.plan.threads, each)
    column = f"(rank % {layout.lanes} + column_step * {layout.lanes}) * {each}"
    return _Vectors(vector_test(code, loops, vectors), layout, f"at_{cname(variable)}", column)


def _write_address(code: Any, copy: _Copy, v: _Vectors, name: str, row_step: int, below: int = 0) -> None:
    """Sets a variable to the address of a thread's first vector in a row, or so many rows below."""
    loops, _ = nest_of(copy.nest)
    _, load = copied_tile(copy.nest, code.plan)
    axes, out = axes_of(loops), code.out
    with out.block():
        row = f"{v.layout.row} + {below}" if below else v.layout.row
        out.line(f"const int row_step = {row_step}, column_step = 0, row = {row}, {v.at} = {v.column};")
        code.row_positions(v.layout, axes[:1], loops[:1])
        code.offsets[axes[1][0]] = v.at
        code.bind_variables(loops)
        out.line(f"{name} = (const char *)&{code.lvalue(load)};")
    code.register, code.offsets = "", {}


def _write_first_address(code: Any, copy: _Copy, leading: list[Any], variable: str) -> None:
    """Before the loop: where a thread's first vector is, and how far its next row and the next iteration are. All
    iterations below `whole` copy whole tiles in vectors."""
    loops, _ = nest_of(copy.nest)
    v, k, out = _vectors_of(code, copy) if copy.size else None, copy.number, code.out
    if v is None:
        return
    out.line(f"const char *at{k} = 0;")
    out.line(f"int64_t down{k} = 0, step{k} = 0, whole{k} = first_turn;")
    with out.block("if (first_turn < past_turn)"):
        out.line(f"const int64_t {variable} = first_turn;")
        _write_numbers(code, leading)
        code.declare_lengths(loops)
        other = loops[1 - copy.axis]
        test = f"length_{cname(other.variables[0])} == {other.capacity} && {v.test}"
        with out.block(f"if ({test})"):
            out.line(f"const char *next;")
            _write_address(code, copy, v, f"at{k}", 0)
            _write_address(code, copy, v, "next", 1)
            out.line(f"down{k} = next - at{k}, whole{k} = {code.expr(copy.end)} / {copy.size};")
            if copy.axis:
                _, load = copied_tile(copy.nest, code.plan)
                out.line(f"step{k} = {copy.size * load.array.type.dtype.itemsize};")
            else:
                _write_address(code, copy, v, "next", 0, copy.size)
                out.line(f"step{k} = next - at{k};")


def _write_copy(code: Any, copy: _Copy, variable: str) -> None:
    """By vectors that are copied asynchronously, where the array allows it, else by elements."""
    k, out = copy.number, code.out
    v = _vectors_of(code, copy)
    code.declare_lengths(nest_of(copy.nest)[0])
    if v is None or not copy.size:
        _write_any_copy(code, copy, v)
        return
    with out.block(f"if ({variable} < whole{k})"):
        _write_vectors(code, copy, v, f"at{k}", f"down{k}", guarded=False)
        out.line(f"at{k} += step{k};")
    with out.orelse():
        code.rolled = True
        _write_any_copy(code, copy, v)
        code.rolled = False


def _write_any_copy(code: Any, copy: _Copy, v: _Vectors | None) -> None:
    """Of a tile that need not be whole, with zeros where it has no elements."""
    (loops, body), out = nest_of(copy.nest), code.out
    if v is None:
        code.each_element(loops, body, lambda: code.write(body))
        out.line("pa_tile_fence();")
    else:
        with out.block(f"if ({v.test})"):
            out.line("const char *from, *next;")
            _write_address(code, copy, v, "from", 0)
            _write_address(code, copy, v, "next", 1)
            _write_vectors(code, copy, v, "from", "(next - from)", guarded=True)
        with out.orelse():
            rolled, code.rolled = code.rolled, True
            code.rows_of_elements(code.plan.layout(axes_of(loops)), loops, lambda: code.write(body), True, None)
            code.rolled = rolled
            out.line("pa_tile_fence();")
    zero_operands(code, loops, body)


def _write_vectors(code: Any, copy: _Copy, v: _Vectors, start: str, down: str, guarded: bool) -> None:
    """The copies of a thread's vectors, from an address on, with a distance between its rows."""
    loops, _ = nest_of(copy.nest)
    store, _ = copied_tile(copy.nest, code.plan)
    axes, out = axes_of(loops), code.out
    exact = v.layout.is_exact and not guarded
    with code.row_loop(v.layout):
        tests = [] if exact else code.row_positions(v.layout, axes[:1], loops[:1])
        if exact:
            code.row_positions(v.layout, axes[:1], loops[:1])
        with out.block(f"if ({' && '.join(tests)})" if tests else ""), code.column_loop(v.layout):
            out.line(f"const int {v.at} = {v.column};")
            code.offsets[axes[1][0]] = v.at
            with out.block("" if exact else f"if ({v.at} < length_{cname(axes[1][0])})"):
                element = code.tile_element(store.name, store.shape, store.index)
                distance = f"row_step * {down} + column_step * {16 * v.layout.lanes}"
                out.line(f"pa_tile_copy(&{element}, {start} + {distance});")
    code.register, code.offsets = "", {}
