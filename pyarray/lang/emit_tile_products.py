"""Text of sums along an axis that isn't a tile's last one: products, and reductions of the first axes.

In the tree an element's whole sum is computed before the next one. Here the loop along the axis is outside of the
elements, each of which has a sum, in the same order: what is read along the axis serves several elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from . import ir
from .element_layout import WARP
from .emit_expressions import cname
from .tile_nests import Product, axes_of, run_names

DEPTH = 4  # neighbours along the axis that are taken at once


def write_contraction(code: Any, loops: list[ir.For], body: Any) -> None:
    """GPU text: a thread's elements, whose sums are in registers, those of the tile that they are added to if they are
    no more than that."""
    begin, along, result = body
    layout, name, out = code.plan.layout(axes_of(loops)), begin.name, code.out
    code.order(code.effects((loops[0],)))
    code.declare_lengths(loops)
    sums = sums_in_place(code, loops, body)
    code.renamed[name] = f"{sums or 'sums'}[(row_step * {layout.column_steps} + column_step) * {layout.vector} + v]"
    if not sums:
        zero_new_registers(code, body)
        out.line(f"{code.type_of(name).dtype.ctype} sums[{layout.elements}];")
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
    if not sums:
        code.each_element(loops, (), lambda: code.write((result,)))
    del code.renamed[name]


def write_product(code: Any, loops: list[ir.For], body: Any, product: Product) -> None:
    """GPU text of a product by matrix instructions, onto sums that are fragments."""
    begin, along, result = body
    layout, name, out = code.plan.layout(axes_of(loops)), begin.name, code.out
    code.order(code.effects((loops[0],)))
    sums = sums_in_place(code, loops, body)
    if not sums:
        out.line(f"float sums[{layout.elements}];")
        code.renamed[name] = f"sums[(row_step * {layout.column_steps} + column_step) * {layout.vector} + v]"
        code.each_element(loops, (), lambda: code.write((begin,)), guarded=False)
    start, stop = code.expr(along.ranges[0].start), code.expr(along.ranges[0].stop)
    out.line(f"const int depth = (int)({stop} - {start});")
    a, b = product.a.array.name, product.b.array.name
    if code.plan.waves:
        ways = ((a, product.transposed_a), (b, product.transposed_b))
        turned = ", ".join(str(across and name not in code.plan.turned).lower() for name, across in ways)
        sizes = f"{layout.rows}, {layout.columns}, {product.depth}, {layout.threads}"
        out.line(f"pa_tile_waves<{sizes}, {turned}>({sums or 'sums'}, {cname(a)}, {cname(b)}, depth, rank);")
    else:
        _start_product(code, product, layout, sums or "sums")
    if code.meanwhile is not None:
        code.meanwhile()
        code.meanwhile = None
    if code.in_flight:
        out.line("pa_tile_finish_before();")
        code.in_flight = False
        return
    if not code.plan.waves:
        out.line(f"pa_tile_finish<{layout.elements}>({sums or 'sums'});")
    if not sums:
        code.each_element(loops, (), lambda: code.write((result,)), guarded=False)
        del code.renamed[name]


def _start_product(code: Any, product: Product, layout: Any, sums: str) -> None:
    """By instructions whose operands may be transposed, by flags at run time, or the first one in registers."""
    a, b, out = product.a.array.name, product.b.array.name, code.out
    sizes = f"{layout.row_steps // 2}, {layout.column_steps}, {product.depth}, {layout.threads // WARP}"
    operands: tuple[tuple[str, bool], ...] = (a, product.transposed_a), (b, product.transposed_b)
    rows = ""
    if a in code.plan.registers:
        operands, rows = operands[1:], "_rows"
    ways = [code.across.get(name, "false") for name, _ in operands]
    flags = [way for way in ways if way not in ("true", "false")]
    for values in itertools.product((True, False), repeat=len(flags)):
        test = " && ".join(flag if value else f"!{flag}" for flag, value in zip(flags, values, strict=True))
        across = {"true": True, "false": False, **dict(zip(flags, values, strict=True))}
        turned = [str(x != across[way]).lower() for (_, x), way in zip(operands, ways, strict=True)]
        with out.block(f"if ({test})") if flags else nullcontext():
            call = f"pa_tile_start{rows}<{', '.join([sizes, *turned])}>"
            out.line(f"{call}({sums}, {cname(a)}, {cname(b)}, depth, rank);")


def sums_in_place(code: Any, loops: list[ir.For], body: Any) -> str:
    """The registers of the tile that a product is added to, if it is no more than that."""
    begin, _, result = body
    tile, own = begin.value, tuple(v for v, _ in axes_of(loops))
    if not isinstance(tile, ir.Element) or not isinstance(tile.array, ir.Local):
        return ""
    same = tile.array.name == result.name and run_names(tile.index) == own == run_names(result.index)
    return cname(result.name) if same and result.name in code.plan.registers else ""


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
        names = (run_names(x.index) or ()) if isinstance(x, ir.SetElement) and x.name in code.plan.exchanged else ()
        if len(names) != 2 or x.name not in code.plan.operands or not set(names) <= set(lengths):
            continue
        (rows, columns), (high, wide) = (lengths[v] for v in names), x.shape
        with code.out.block(f"if ({rows} < {high} || {columns} < {wide})"):
            if x.name in code.plan.turned:
                rows, columns, high, wide = columns, rows, wide, high
            there = f"{rows}, {columns}, rank, {code.plan.threads}"
            code.out.line(f"pa_tile_clear<{high}, {wide}>({cname(x.name)}, {there});")


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
