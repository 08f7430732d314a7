"""Text of sums along an axis that isn't a tile's last one: products, and reductions of the first axes.

In the tree an element's whole sum is computed before the next one. Here the loop along the axis is outside of the
elements, each of which has a sum, in the same order: what is read along the axis serves several elements, and on CPUs
they are vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import ir
from .emit_expressions import cname
from .tile_layout import Product, axes_of, is_contraction, nest_of, run_names

DEPTH = 4  # neighbours along the axis that are taken at once


def write_contraction(code: Any, loops: list[ir.For], body: Any) -> None:
    """GPU text: a thread's elements, whose sums are in registers."""
    begin, along, result = body
    layout, name, out = code.plan.layout(axes_of(loops)), begin.name, code.out
    code.order(code.effects((loops[0],)))
    code.declare_lengths(loops)
    zero_new_registers(code, body)
    out.line(f"{code.type_of(name).dtype.ctype} sums[{layout.elements}];")
    code.renamed[name] = f"sums[(row_step * {layout.column_steps} + column_step) * {layout.vector} + v]"
    code.each_element(loops, (), lambda: code.write((begin,)))
    (variable,), (range_,), (update,) = along.variables, along.ranges, along.body
    reads = any(isinstance(n, (ir.Load, ir.Invoke, ir.Atomic)) for n in ir.walk(update))
    start, stop = code.expr(range_.start), code.expr(range_.stop)
    out.line(f"const int length = (int)({stop} - {start});")
    out.line("int along = 0;")
    heads = (DEPTH, f"for (; along + {DEPTH} <= length; along += {DEPTH})"), (1, "for (; along < length; ++along)")
    for step, head in heads:
        with out.block(head):
            write = _steps(code, step, variable, start, update)
            code.each_element(loops, (), write, guarded=reads or not layout.is_exact)
    code.each_element(loops, (), lambda: code.write((result,)))
    del code.renamed[name]


def write_product(code: Any, loops: list[ir.For], body: Any, product: Product) -> None:
    """GPU text of a product by matrix instructions, onto sums that are fragments."""
    begin, along, result = body
    layout, name, out = code.plan.layout(axes_of(loops)), begin.name, code.out
    code.order(code.effects((loops[0],)))
    out.line(f"float sums[{layout.elements}];")
    code.renamed[name] = f"sums[(row_step * {layout.column_steps} + column_step) * {layout.vector} + v]"
    code.each_element(loops, (), lambda: code.write((begin,)), guarded=False)
    start, stop = code.expr(along.ranges[0].start), code.expr(along.ranges[0].stop)
    out.line(f"const int depth = (int)({stop} - {start});")
    a, b = product.a, product.b
    sizes = f"{layout.row_steps // 2}, {layout.column_steps}, {product.depth}"
    turned = [str(x).lower() for x in (product.transposed_a, product.transposed_b)]
    if a.array.name in code.plan.registers:
        call = f"pa_tile_product_rows<{sizes}, {turned[1]}>(sums, {cname(a.array.name)}, {_operand(code, b)}"
    else:
        call = f"pa_tile_product<{sizes}, {', '.join(turned)}>(sums, {_operand(code, a)}, {_operand(code, b)}"
    out.line(f"{call}, depth, rank);")
    code.each_element(loops, (), lambda: code.write((result,)), guarded=False)
    del code.renamed[name]


def _operand(code: Any, x: Any) -> str:
    """The tile, and the elements between its rows."""
    return f"{cname(x.array.name)}, {code.plan.pitch(x.array.name, x.array.type.shape[-1])}"


def zero_new_registers(code: Any, body: Any) -> None:
    """Before a nest that sets the elements that exist alone: zeros in the registers of those that don't, with which
    nests without tests compute, too. What a nest also reads isn't new."""
    read = {getattr(n.array, "name", "") for n in ir.walk(*body) if isinstance(n, ir.Element)}
    new = {n.name: n.value.type.dtype.ctype for n in ir.walk(*body) if isinstance(n, ir.SetElement)}
    for name, kind in new.items():
        if name in code.plan.registers and name not in read:
            code.out.line("#pragma unroll")
            count = code.plan.registers[name].elements
            code.out.line(f"for (int e = 0; e < {count}; ++e) {cname(name)}[e] = {kind}();")


def zero_operands(code: Any, loops: list[ir.For], body: Any) -> None:
    """After a nest: zeros where the operands of products that it sets have no elements, since matrix instructions
    compute with whole tiles."""
    lengths = {s.variables[0]: f"length_{cname(s.variables[0])}" for s in loops}
    for x in ir.walk(*body):
        names = (run_names(x.index) or ()) if isinstance(x, ir.SetElement) and x.name in code.plan.shared else ()
        if len(names) != 2 or x.name not in code.plan.operands or not set(names) <= set(lengths):
            continue
        (rows, columns), (high, wide) = (lengths[v] for v in names), x.shape
        tile = f"{cname(x.name)}, {code.plan.pitch(x.name, wide)}"
        with code.out.block(f"if ({rows} < {high} || {columns} < {wide})"):
            code.out.line(f"pa_tile_clear<{high}, {wide}>({tile}, {rows}, {columns}, rank, {code.plan.threads});")


def _steps(code: Any, count: int, variable: str, start: str, update: ir.Stmt) -> Callable[[], None]:
    """Prints an element's update at so many neighbours along the axis, which one vector loads."""

    def write() -> None:
        code.out.line("#pragma unroll")
        with code.out.block(f"for (int q = 0; q < {count}; ++q)"):
            code.out.line(f"const int64_t {cname(variable)} = {start} + along + q;")
            code.out.line(f"(void){cname(variable)};")
            code.offsets[variable] = "along + q"
            code.write((update,))

    return write


_ROWS = 8  # of a block of sums
_COLUMNS = 32  # more than gcc unrolls before it looks for vectors
_IN_BLOCKS = ("float", "int32_t", "uint32_t")  # with wider ones blocks have more registers than AVX2


def is_cpu_contraction(s: ir.For) -> bool:
    body = nest_of(s)[1]
    return is_contraction(body) and not any(isinstance(n, (ir.Atomic, ir.Invoke)) for n in ir.walk(*body))


def write_cpu_contraction(code: Any, s: ir.For) -> None:
    """CPU text: blocks of rows and columns, whose sums stay in registers for the whole depth; and for the rest vectors
    along the last axis, whose elements' sums are those of the result."""
    loops, (begin, along, result) = nest_of(s)
    (variable,), (range_,), (update,) = along.variables, along.ranges, along.body
    place = code.element(cname(result.name), result.shape, result.index, None)
    kind, out, k = result.value.type.dtype.ctype, code.out, cname(variable)
    *outer, inner = loops
    out.open()
    for loop in outer[:-1]:
        out.open(_head(code, loop))
    blocks = bool(outer) and kind in _IN_BLOCKS
    if blocks:
        _write_blocks(code, (outer[-1], along, inner), (place, code.expr(begin.value), begin.name))
    for loop in outer[-1:]:
        out.open(_head(code, loop))
    first = f"{cname(outer[-1].variables[0])} < rows_past ? columns_past : " if blocks else ""
    inner_head = _head(code, inner, first)
    if not isinstance(begin.value, ir.Element) or getattr(begin.value.array, "name", "") != result.name:
        with out.block(inner_head):
            out.line(f"{place} = {code.expr(begin.value)};")
    out.line(f"int64_t along = {code.expr(range_.start)};")
    out.line(f"const int64_t past = {code.expr(range_.stop)};")
    code.renamed[begin.name] = "sum"
    heads = (DEPTH, f"for (; along + {DEPTH} <= past; along += {DEPTH})"), (1, "for (; along < past; ++along)")
    for count, head in heads:
        with out.block(head), out.block(inner_head):
            out.line(f"{kind} sum = {place};")
            for q in range(count):
                out.line(f"{{ const int64_t {k} = along + {q}; sum = {code.expr(update.value)}; }}")
            out.line(f"{place} = sum;")
    del code.renamed[begin.name]
    for _ in (*outer, ""):
        out.close()


def _write_blocks(code: Any, loops: tuple[ir.For, Any, ir.For], sums: tuple[str, str, str]) -> None:
    """The blocks that fit in, from the first row and column on; `rows_past` and `columns_past` are where they end.
    `sums`: the place of one, what it begins with, and the name of the sum in the update."""
    (row, along, column), (place, begin, name), out = loops, sums, code.out
    (update,) = along.body
    i, j = cname(row.variables[0]), cname(column.variables[0])
    for what, loop, count in (("rows", row, _ROWS), ("columns", column, _COLUMNS)):
        start, stop = code.expr(loop.ranges[0].start), code.expr(loop.ranges[0].stop)
        out.line(f"const int64_t {what}_first = {start}, {what}_length = {stop} - {what}_first;")
        out.line(f"const int64_t {what}_past = {what}_first + ({what}_length > 0 ? {what}_length & -{count} : 0);")
    each = (
        f'_Pragma("GCC unroll {_ROWS}") for (int r = 0; r < {_ROWS}; ++r) for (int w = 0; w < {_COLUMNS}; ++w) '
        f"{{ const int64_t {i} = row + r, {j} = column + w; "
    )
    with (
        out.block(f"for (int64_t row = rows_first; row < rows_past; row += {_ROWS})"),
        out.block(f"for (int64_t column = columns_first; column < columns_past; column += {_COLUMNS})"),
    ):
        out.line(f"{update.value.type.dtype.ctype} sums[{_ROWS}][{_COLUMNS}];")
        out.line(f"{each}sums[r][w] = {begin}; }}")
        code.renamed[name] = "sums[r][w]"
        with out.block(_head(code, along)):
            out.line(f"{each}sums[r][w] = {code.expr(update.value)}; }}")
        del code.renamed[name]
        out.line(f"{each}{place} = sums[r][w]; }}")


def _head(code: Any, loop: ir.For, start: str = "") -> str:
    name, range_ = cname(loop.variables[0]), loop.ranges[0]
    first = f"{start}{code.expr(range_.start)}"
    return f"for (int64_t {name} = {first}; {name} < {code.expr(range_.stop)}; ++{name})"
