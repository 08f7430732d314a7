"""GPU text of copies of tiles from arrays into a stage of shared memory, for the iterations of a loop one by one.

Where an array's rows are aligned, each thread copies vectors of 16 bytes asynchronously. In a loop over tiles of an
axis, their addresses are those of the iteration before, some bytes on; the last tile need not be whole, so it has
another text."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

from . import ir
from .element_layout import Layout
from .emit_statements import cname
from .emit_tile_elements import (
    declare_elements,
    is_contracted,
    set_first_element,
    steps_of,
    write_elements,
    write_whole_elements,
)
from .emit_tile_products import zero_operands
from .emit_tile_vectors import find_vectors, vector_test
from .summaries import assigned_in, names_in
from .tile_nests import axes_of, copied_elements, nest_of

MOST_LOADED = 4  # vectors of a thread that are loaded before they are stored


class Copy(NamedTuple):
    """A nest that copies a tile of an array, element for element. With `size` and `end`, its axis number `axis` is a
    tile of `size` elements of `end`, whose number is that of the iteration. `across` is the same copy of a tile that is
    kept transposed, which is done where `test` holds; C text."""

    nest: ir.For
    store: Any
    load: Any
    ordinal: int
    axis: int = 0
    size: int = 0
    end: Any = None
    across: Copy | None = None
    test: str = ""

    @property
    def flag(self) -> str:
        """The name of what the test gives."""
        return f"across_{cname(self.store.name)}"

    @property
    def loops(self) -> list[ir.For]:
        return nest_of(self.nest)[0]


def copy_of(nest: ir.For, ordinal: int, loop: ir.For, leading: list[Any]) -> Copy:
    """The copy of a nest of a loop, whose iterations begin with the statements `leading`."""
    copied = copied_elements(nest)
    assert copied is not None
    copy, changed = Copy(nest, *copied, ordinal), assigned_in(*loop.body) | {loop.variables[0]}
    moving = [axis for axis, s in enumerate(copy.loops) if names_in(s.ranges[0]) & changed]
    if len(moving) != 1 or names_in(copy.load) & changed - {s.variables[0] for s in copy.loops}:
        return copy
    axis = copy.loops[moving[0]]
    end = _end_of_tiles(axis, loop.variables[0], {x.name: x.value for x in leading if isinstance(x, ir.Assign)})
    if end is None or names_in(end) & changed:
        return copy
    return copy._replace(axis=moving[0], size=axis.capacity, end=end)


def _end_of_tiles(s: ir.For, number: str, values: dict[str, Any]) -> Any:
    """What the tiles end at of which an axis is the one with a number: its start is min(number * size, end), its stop
    min(start + size, end). None of another axis."""
    (start, stop), size = (s.ranges[0].start, s.ranges[0].stop), s.capacity
    match start, values.get(getattr(start, "name", "")), values.get(getattr(stop, "name", "")):
        case (
            ir.Local(name=first),
            ir.Builtin(name="min", args=(ir.Binary(op="mul", a=ir.Local(name=n), b=ir.Const(value=step)), end)),
            ir.Builtin(name="min", args=(ir.Binary(op="add", a=ir.Local(name=begin), b=ir.Const(value=length)), same)),
        ) if (n, begin, step, length) == (number, first, size, size) and replace(end, loc=same.loc) == same:
            return end
    return None


def _both_ways(code: Any, copy: Copy, write: Callable[[Copy], None]) -> None:
    """What `write` prints of the copy, and of the other one where its test holds."""
    if copy.across is None:
        write(copy)
        return
    with code.out.block(f"if ({copy.flag})"):
        write(copy.across)
    with code.out.orelse():
        write(copy)


class _Vectors(NamedTuple):
    """How threads take a tile in vectors of 16 bytes: whether the array allows it, aligned or not, and a thread's first
    column."""

    test: str
    unaligned: str
    layout: Layout
    at: str  # the name of the column, and its text
    column: str


def _vectors_of(code: Any, copy: Copy) -> _Vectors | None:
    loops, body = nest_of(copy.nest)
    each = 16 // copy.load.array.type.dtype.itemsize
    vectors = find_vectors(code, loops, body, each)
    if vectors is None or not vectors.loads or not _is_linear(copy):
        return None
    (_, rows), (variable, columns) = axes_of(loops)
    layout = Layout(rows, columns, code.plan.threads, each)
    column = f"(rank % {layout.lanes} + column_step * {layout.lanes}) * {each}"
    test, unaligned = (vector_test(code, loops, vectors, aligned) for aligned in (True, False))
    return _Vectors(test, unaligned, layout, f"at_{cname(variable)}", column)


def _is_linear(copy: Copy) -> bool:
    """Whether an axis of the copy is a position of the array by itself, which is no other array's elements in another
    shape: rows then are as far from each other as the first two."""
    axes, reshaped = {s.variables[0] for s in copy.loops}, copy.load.array.type.reshape_of is not None
    return not reshaped and all(isinstance(i, ir.Local) or not names_in(i) & axes for i in copy.load.index)


def write_first_address(code: Any, copy: Copy, write_numbers: Any) -> None:
    """Before the loop: where a thread's first vector is, and how far its next row and the next iteration are. All
    iterations below `whole` copy whole tiles. `write_numbers` prints the numbers of the first iteration."""
    k, out = copy.ordinal, code.out
    if not copy.size or (_vectors_of(code, copy) is None and not _has_whole_elements(code, copy)):
        return
    out.line(f"const char *from{k} = 0;")
    out.line(f"int64_t pitch{k} = 0, step{k} = 0, whole{k} = first_iteration;")
    if is_contracted(code, copy):
        declare_elements(code, copy)
    with out.block("if (first_iteration < past_iterations)"):
        write_numbers()
        code.declare_lengths(copy.loops)
        _both_ways(code, copy, lambda way: _set_first_address(code, way))


def _has_whole_elements(code: Any, copy: Copy) -> bool:
    """Whether elements of whole tiles, which no matrix instruction reads, are as far from each other as the first."""
    return is_contracted(code, copy) and steps_of(code, copy) is not None and _is_linear(copy)


def _set_first_address(code: Any, copy: Copy) -> None:
    v, k, out, other = _vectors_of(code, copy), copy.ordinal, code.out, copy.loops[1 - copy.axis]
    is_whole = f"length_{cname(other.variables[0])} == {other.capacity}"
    if v is not None:
        with out.block(f"if ({is_whole} && {v.test})"):
            _set_first_vector(code, copy, v)
    if _has_whole_elements(code, copy):
        with out.block(f"{'if' if v is None else 'else if'} ({is_whole})"):
            set_first_element(code, copy)
            out.line(f"whole{k} = {code.expr(copy.end)} / {copy.size};")


def _set_first_vector(code: Any, copy: Copy, v: _Vectors) -> None:
    k, out = copy.ordinal, code.out
    out.line("const char *next;")
    _write_address(code, copy, v, f"from{k}", 0)
    _write_address(code, copy, v, "next", 1)
    out.line(f"pitch{k} = next - from{k}, whole{k} = {code.expr(copy.end)} / {copy.size};")
    if copy.axis:
        out.line(f"step{k} = {copy.size * copy.load.array.type.dtype.itemsize};")
    else:
        _write_address(code, copy, v, "next", 0, copy.size)
        out.line(f"step{k} = next - from{k};")
    if is_contracted(code, copy):
        out.line(f"is_vectors{k} = true;")


def write_copy(code: Any, copy: Copy, number: str) -> None:
    """Into the stage at hand, in the iteration with this number."""
    code.declare_lengths(copy.loops)
    _both_ways(code, copy, lambda way: _write_one_way(code, way, number))


def _write_one_way(code: Any, copy: Copy, number: str) -> None:
    k, out, v = copy.ordinal, code.out, _vectors_of(code, copy)
    by_elements = _has_whole_elements(code, copy)
    if not copy.size or (v is None and not by_elements):
        _write_any_copy(code, copy, v)
        return
    with out.block(f"if ({number} < whole{k})"):
        if v is not None:
            with out.block(f"if (is_vectors{k})") if by_elements else nullcontext():
                _write_vectors(code, copy, v, f"from{k}", f"pitch{k}", guarded=False)
        if by_elements:
            with out.orelse() if v is not None else nullcontext():
                write_whole_elements(code, copy)
        out.line(f"from{k} += step{k};")
    with out.orelse():
        rolled, code.rolled = code.rolled, True
        _write_any_copy(code, copy, v)
        code.rolled = rolled


def _write_any_copy(code: Any, copy: Copy, v: _Vectors | None) -> None:
    """Of a tile that need not be whole, with zeros where one for matrix instructions has no elements."""
    (loops, body), out = nest_of(copy.nest), code.out
    if is_contracted(code, copy):
        _write_vectors_or_elements(code, copy, v)
    elif v is None:
        code.each_element(loops, body, lambda: code.write(body))
        out.line("pa_tile_fence();")
    else:
        with out.block(f"if ({v.test})"):
            _write_guarded_vectors(code, copy, v)
        rows, columns = (f"length_{cname(x.variables[0])}" for x in loops)
        with out.block(f"else if ({v.unaligned} && {rows} > 0 && {columns} > 0)"):
            _write_unaligned(code, copy, v, f"{rows}", f"{columns}")
            out.line("pa_tile_fence();")
        with out.orelse():
            rolled, code.rolled = code.rolled, True
            code.rows_of_elements(code.plan.layout(axes_of(loops)), loops, lambda: code.write(body), True, None)
            code.rolled = rolled
            out.line("pa_tile_fence();")
    zero_operands(code, loops, body)


def _write_guarded_vectors(code: Any, copy: Copy, v: _Vectors) -> None:
    code.out.line("const char *from, *next;")
    _write_address(code, copy, v, "from", 0)
    _write_address(code, copy, v, "next", 1)
    _write_vectors(code, copy, v, "from", "(next - from)", guarded=True)


def _write_vectors_or_elements(code: Any, copy: Copy, v: _Vectors | None) -> None:
    """The same of a tile that no matrix instruction reads: where there are no vectors, elements are copied one by one,
    asynchronously as well."""
    if v is not None:
        with code.out.block(f"if ({v.test})"):
            _write_guarded_vectors(code, copy, v)
    with code.out.orelse() if v is not None else code.out.block():
        write_elements(code, copy)


def _write_address(code: Any, copy: Copy, v: _Vectors, name: str, row_step: int, below: int = 0) -> None:
    """Sets a variable to the address of a thread's first vector in a row, or so many rows below."""
    (rows, columns), out = axes_of(copy.loops), code.out
    with out.block():
        row = f"{v.layout.row} + {below}" if below else v.layout.row
        out.line(f"const int row_step = {row_step}, column_step = 0, row = {row}, {v.at} = {v.column};")
        code.row_positions(v.layout, (rows,), copy.loops[:1])
        code.offsets[columns[0]] = v.at
        code.bind_variables(copy.loops)
        out.line(f"{name} = (const char *)&{code.lvalue(copy.load)};")
    code.register, code.offsets = "", {}


def _write_vectors(code: Any, copy: Copy, v: _Vectors, start: str, pitch: str, guarded: bool, how: str = "") -> None:
    """The copies of a thread's vectors, from an address on, with a distance between its rows."""
    (rows, columns), out = axes_of(copy.loops), code.out
    guarded = guarded or not v.layout.is_exact
    with code.row_loop(v.layout):
        tests = code.row_positions(v.layout, (rows,), copy.loops[:1])
        with out.block(f"if ({' && '.join(tests)})" if guarded else ""), code.column_loop(v.layout):
            out.line(f"const int {v.at} = {v.column};")
            code.offsets[columns[0]] = v.at
            with out.block(f"if ({v.at} < length_{cname(columns[0])})" if guarded else ""):
                element = code.tile_element(copy.store.name, copy.store.shape, copy.store.index)
                distance = f"row_step * {pitch} + column_step * {16 * v.layout.lanes}"
                out.line(f"pa_tile_copy(&{element}, {start} + {distance});")
    code.register, code.offsets = "", {}


def _write_unaligned(code: Any, copy: Copy, v: _Vectors, rows: str, columns: str) -> None:
    """Copies of a thread's vectors, which aren't aligned: some are loaded before the first is stored. Those outside
    load the tile's first one."""
    out, layout = code.out, v.layout
    (first, _), (last, _) = axes_of(copy.loops)
    out.line("const char *from, *next, *corner;")
    _write_address(code, copy, v, "from", 0)
    _write_address(code, copy, v, "next", 1)
    with out.block():
        for s in copy.loops:
            out.line(f"const int64_t {cname(s.variables[0])} = {code.expr(s.ranges[0].start)};")
        out.line(f"corner = (const char *)&{code.lvalue(copy.load)};")
    code.offsets[first], code.offsets[last] = f"at_{cname(first)}", v.at
    element = code.tile_element(copy.store.name, copy.store.shape, copy.store.index)
    code.offsets = {}
    steps = [(row, column) for row in range(layout.row_steps) for column in range(layout.column_steps)]
    for k in range(0, len(steps), MOST_LOADED):
        some = steps[k : k + MOST_LOADED]
        with out.block():
            for n, (row, column) in enumerate(some):
                at = _step(layout.row, row=row), _step(v.column, column=column)
                out.line(f"const int row{n} = {at[0]}, column{n} = {at[1]};")
                out.line(f"const bool is{n} = row{n} < {rows} && column{n} < {columns};")
                address = f"from + {row} * (next - from) + {16 * layout.lanes * column}"
                out.line(f"const uint4 line{n} = pa_tile_load_unaligned(is{n} ? {address} : corner);")
            for n in range(len(some)):
                with out.block(f"if (is{n})"):
                    out.line(f"const int at_{cname(first)} = row{n}, {v.at} = column{n};")
                    out.line(f"*(uint4 *)&{element} = line{n};")


def _step(text: str, row: int = 0, column: int = 0) -> str:
    """The text of a thread's row or column at a step."""
    return text.replace("row_step", str(row)).replace("column_step", str(column))
