"""CPU text of sums along an axis that isn't a tile's last one: products, and reductions of the first axes.

In the tree an element's whole sum is computed before the next one. Here the loop along the axis is outside of the
elements, each of which has a sum, in the same order: what is read along the axis serves several elements, which are
vectors. Products of floats are a function's (csrc/device/pa_products.h), which meanwhile prefetches the operands of the
next iteration of the loop around. Operands that are cast are cast once, into tiles of their own; those of bfloat16 make
pairs there, where the processor has an instruction for them (csrc/device/pa_products_pairs.h), and narrow integers do
so on every processor (csrc/device/pa_products_words.h); float16 is cast by instructions
(csrc/device/pa_products_float16.h)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from ..dtypes import DType, bfloat16, float16, float32, float64, int8, int16, int32, uint8, uint32
from . import ir
from .emit_cast import cast
from .emit_expressions import cname, ctype
from .emit_tile_prefetches import leading_copies, write_next
from .tile_layout import MOST_STACK, stack_bytes
from .tile_nests import is_contraction, nest_of, run_names
from .traversal import rewrite

DEPTH = 4  # neighbours along the axis that are taken at once
FEWEST_ROWS, FEWEST_BYTES = 4, 64  # of a product that a function computes, and of its rows
FEWEST_USES = 4  # of an element that is cast ahead
MOST_CAST = 128 << 10  # bytes of a tile of what an operand is cast to
_ROWS = 8  # of a block of sums
_COLUMNS = 32  # more than gcc unrolls before it looks for vectors
_WORDS, _SUMS_OF_WORDS = (int8, uint8, int16), (int32, uint32)  # what fits 16-bit words with a sign
_IN_BLOCKS = ("float", "int32_t", "uint32_t")  # with wider ones blocks have more registers than AVX2


def is_cpu_contraction(s: Any) -> bool:
    if not isinstance(s, ir.For) or not s.capacity:
        return False
    body = nest_of(s)[1]
    return is_contraction(body) and not any(isinstance(n, (ir.Atomic, ir.Invoke)) for n in ir.walk(*body))


def write_cpu_contraction(code: Any, s: ir.For) -> None:
    """CPU text: blocks of rows and columns, whose sums stay in registers for the whole depth; and for the rest vectors
    along the last axis, whose elements' sums are those of the result."""
    loops, (begin, along, result) = nest_of(s)
    loop, tiles = _cast_operands(code, loops, along)
    product = _product(loops, (begin, loop, result), tiles)
    with _written_casts(code, (*loops, along), tiles, product):
        if product is not None:
            _write_product(code, product, tiles)
        else:
            _write_sums(code, loops, (begin, loop, result))


# By the name of a tile of what an operand is cast to: the element that is cast, and the tile's type.
_Casts = dict[str, tuple[Any, Any]]


def _cast_operands(code: Any, loops: list[ir.For], along: ir.For) -> tuple[ir.For, _Casts]:
    """The loop along the axis, with tiles in place of elements that are cast to a wider type and serve several sums: to
    cast them for each takes longer than the sums."""
    tiles: _Casts = {}
    taken = stack_bytes(dict(code.kernel.variables))

    def change(x: Any) -> Any:
        element = _cast_element(x)
        if element is None:
            return x
        names = run_names(element.index)
        if names is None or math.prod(s.capacity for s in loops if s.variables[0] not in names) < FEWEST_USES:
            return x
        own = replace(element.array.type, dtype=x.type.dtype)
        nbytes = stack_bytes({name: kind for name, (_, kind) in tiles.items()} | {"": own})
        if own.size * own.dtype.itemsize > MOST_CAST or taken + nbytes > MOST_STACK:
            return x
        name = f".{cname(element.array.name)}_{own.dtype.name}"
        tiles[name] = element, own
        return replace(element, array=replace(element.array, name=name, type=own), type=x.type)

    loop: ir.For = rewrite(along, change)
    return loop, tiles


@contextmanager
def _written_casts(code: Any, loops: tuple[ir.For, ...], tiles: _Casts, product: _Product | None) -> Iterator[None]:
    """In a block with the tiles, which have what is cast unless the product makes pairs of it."""
    if not tiles:
        yield
        return
    of_axis, out = {s.variables[0]: s for s in loops}, code.out
    with out.block():
        for name, (_, own) in tiles.items():
            code.declare(own)
            out.line(f"{ctype(own)} {cname(name)} __attribute__((aligned(64)));")
        pairs = product.pairs if product is not None else ""
        if pairs == "bf16":
            out.line("#if !PA_PRODUCTS_PAIRS")
        for name, (element, own) in tiles.items() if pairs != "words" else ():
            _write_cast(code, cname(name), element, own, [of_axis[v] for v in run_names(element.index) or ()])
        if pairs == "bf16":
            out.line("#endif")
        yield


def _write_cast(code: Any, name: str, element: Any, own: Any, axes: list[ir.For]) -> None:
    """Casts to a tile the elements that exist of another one."""
    position, source = code.position(own.shape, element.index, None), element.array.type.dtype
    given = f"{cname(element.array.name)}.m[{position}]"
    # the variable of a row's neighbours, which a function casts
    rows = [loop for loop in axes[-1:] if _steps_of(own.shape, element.index, loop.variables) == [1]]
    if source is not float16 or own.dtype is not float32:
        rows = []
    for loop in axes[: len(axes) - len(rows)]:
        code.out.open(_head(code, loop))
    for loop in rows:
        (start, stop), row = _bounds(code, loop), cname(loop.variables[0])
        code.out.open()
        code.out.line(f"const int64_t {row} = {start};")
        code.out.line(f"pa_products_cast_f16(&{name}.m[{position}], &{given}, {stop} - {row});")
    if not rows:
        code.out.line(f"{name}.m[{position}] = {cast(given, source, own.dtype)};")
    for _ in axes:
        code.out.close()


def _cast_element(x: Any) -> Any:
    """The element of a tile that is cast to a wider type; None of anything else."""
    if not isinstance(x, ir.Cast) or not isinstance(x.a, ir.Element) or not isinstance(x.a.array, ir.Local):
        return None
    kind = x.a.array.type
    return x.a if isinstance(kind, ir.TileType) and kind.dtype.itemsize < x.type.dtype.itemsize else None


def _write_sums(code: Any, loops: list[ir.For], body: tuple[Any, Any, Any]) -> None:
    begin, along, result = body
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
    inner_head = _head(code, inner)
    if blocks:
        row, (start, stop) = cname(outer[-1].variables[0]), _bounds(code, inner)
        out.line(f"const int64_t rest = {row} < rows_past ? columns_past : {start};")
        out.line(f"if (rest >= {stop}) continue;")
        inner_head = _head(code, inner, "rest")
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


class _Product(NamedTuple):
    """A product of two tiles onto a third. Steps are numbers of elements between neighbours of a tile along the rows,
    the columns and the depth. `pairs`: what two elements of an operand that are adjacent along the depth can be for an
    instruction, "bf16" or "words"; else ""."""

    outer: list[ir.For]
    loops: tuple[ir.For, ir.For, Any]
    begin: Any
    result: Any
    a: Any
    b: Any
    steps: list[list[int]]
    pairs: str


def _product(loops: list[ir.For], body: tuple[Any, Any, Any], tiles: _Casts) -> _Product | None:
    """The product that a contraction is, if a function computes it."""
    begin, along, result = body
    value, operands = along.body[0].value, _factors(along.body[0].value, begin.name)
    if len(loops) < 2 or not operands:
        return None
    *outer, row, column = loops
    kind, (i, j) = value.type.dtype, (row.variables[0], column.variables[0])
    if row.capacity < FEWEST_ROWS or column.capacity * kind.itemsize < FEWEST_BYTES:
        return None
    if not all(_is_operand(x, kind) for x in operands):
        return None
    pairs = _pairs(kind, [tiles[x.array.name][0].array.type.dtype for x in operands if x.array.name in tiles])
    used = [run_names(x.index) or () for x in operands]
    if j in used[0]:
        operands, used = operands[::-1], used[::-1]
    names = i, j, along.variables[0]
    places = ((result.shape, result.index), *((x.array.type.shape, x.index) for x in operands))
    steps = [_steps_of(*place, names) for place in places]
    if j in used[0] or i in used[1] or not all(names[2] in x for x in used) or steps[0][1] != 1:
        return None
    if kind in _SUMS_OF_WORDS and pairs != "words":
        return None
    return _Product(outer, (row, column, along), begin, result, operands[0], operands[1], steps, pairs)


def _factors(value: Any, total: str) -> list[Any]:
    """Of a product that is added to the number with this name, in a type that a function has; else none."""
    if isinstance(value, ir.Builtin) and value.name == "fma" and value.type.dtype in (float32, float64):
        *factors, added = value.args
    elif isinstance(value, ir.Binary) and value.op == "add" and value.type.dtype in _SUMS_OF_WORDS:
        product, added = (value.b, value.a) if isinstance(value.b, ir.Binary) else (value.a, value.b)
        factors = [product.a, product.b] if isinstance(product, ir.Binary) and product.op == "mul" else []
    else:
        return []
    return factors if getattr(added, "name", "") == total else []


def _pairs(kind: DType, cast: list[DType]) -> str:
    """See `_Product`. `kind` of the sums, and what is cast to it."""
    if len(cast) < 2:
        return ""
    if kind is float32 and all(x is bfloat16 for x in cast):
        return "bf16"
    return "words" if kind in _SUMS_OF_WORDS and all(x in _WORDS for x in cast) else ""


def _is_operand(x: Any, kind: DType) -> bool:
    in_tile = isinstance(x, ir.Element) and isinstance(x.array, ir.Local) and isinstance(x.array.type, ir.TileType)
    return in_tile and x.type.dtype is kind and run_names(x.index) is not None


def _steps_of(shape: tuple[int, ...], index: tuple[Any, ...], names: tuple[str, ...]) -> list[int]:
    """For each of these variables; 0 where it isn't used."""
    steps = dict.fromkeys(names, 0)
    for k, position in enumerate(index):
        if isinstance(position, ir.Binary) and isinstance(position.a, ir.Local):
            steps[position.a.name] = math.prod(shape[k + 1 :])
    return [steps[name] for name in names]


def _write_product(code: Any, p: _Product, tiles: _Casts) -> None:
    result, out = p.result, code.out
    place = code.element(cname(result.name), result.shape, result.index, None)
    row, column, _ = p.loops
    for loop in p.outer:
        out.open(_head(code, loop))
    if not isinstance(p.begin.value, ir.Element) or getattr(p.begin.value.array, "name", "") != result.name:
        with out.block(_head(code, row)), out.block(_head(code, column)):
            out.line(f"{place} = {code.expr(p.begin.value)};")
    with out.block():
        operands = {tiles[x.array.name][0].array.name if x.array.name in tiles else x.array.name for x in (p.a, p.b)}
        copies = [copy for copy in leading_copies(code) if nest_of(copy[0])[1][0].name in operands]
        prefetched = write_next(code, copies) if copies else "0"
        for name, loop in zip(("rows", "columns", "depth"), p.loops, strict=True):
            start, stop = _bounds(code, loop)
            out.line(f"const int64_t {cname(loop.variables[0])} = {start}, {name} = {stop} - {start};")
        sums = f"&{place}, {p.steps[0][0]}"
        if p.pairs == "words":
            _write_words(code, p, tiles, (sums, prefetched))
        elif p.pairs == "bf16":
            out.line("#if PA_PRODUCTS_PAIRS")
            _write_pairs(code, p, tiles, (sums, prefetched))
            out.line("#else")
            _write_numbers(code, p, (sums, prefetched))
            out.line("#endif")
        else:
            _write_numbers(code, p, (sums, prefetched))
    for _ in p.outer:
        out.close()


def _write_numbers(code: Any, p: _Product, ends: tuple[str, str]) -> None:
    """`ends`: the first arguments of the function, where sums are and how far their rows, and the last one, what it
    prefetches."""
    (sums, prefetched), kind = ends, p.result.value.type.dtype.suffix
    (a_rows, _, a_depth), (_, b_columns, b_depth) = p.steps[1:]
    code.out.line(f"const pa_products_matrix_{kind} a = {{&{code.expr(p.a)}, {a_rows}, {a_depth}}};")
    code.out.line(f"const pa_products_matrix_{kind} b = {{&{code.expr(p.b)}, {b_depth}, {b_columns}}};")
    code.out.line(f"pa_products_add_{kind}({sums}, a, b, rows, columns, depth, {prefetched});")


def _write_pairs(code: Any, p: _Product, tiles: _Casts, ends: tuple[str, str]) -> None:
    """Of bfloat16. The tiles have the pairs."""
    (sums, prefetched), (a_rows, _, a_depth), (_, b_columns, b_depth) = ends, *p.steps[1:]
    (x, _), (y, _) = (tiles[operand.array.name] for operand in (p.a, p.b))
    workspaces = ", ".join(f"{cname(operand.array.name)}.m" for operand in (p.a, p.b))
    code.out.line(f"const pa_products_bf16 a = {{&{code.expr(x)}, {a_rows}, {a_depth}}};")
    code.out.line(f"const pa_products_bf16 b = {{&{code.expr(y)}, {b_columns}, {b_depth}}};")
    code.out.line(f"pa_products_add_bf16({sums}, a, b, {workspaces}, rows, columns, depth, {prefetched});")


def _write_words(code: Any, p: _Product, tiles: _Casts, ends: tuple[str, str]) -> None:
    """Of narrow integers. The tiles have the pairs."""
    (sums, prefetched), out = ends, code.out
    (a_rows, _, a_depth), (_, b_columns, b_depth) = p.steps[1:]
    left, right = (f"(pa_products_two_words *){cname(x.array.name)}.m" for x in (p.a, p.b))
    x, y = (tiles[operand.array.name][0] for operand in (p.a, p.b))
    of_x, of_y = (f"pa_products_{element.array.type.dtype.suffix}" for element in (x, y))
    out.line("const int64_t pairs = (depth + 1) / 2;")
    out.line(f"const {of_x} x = {{&{code.expr(x)}, {a_rows}, {a_depth}}};")
    out.line(f"const {of_y} y = {{&{code.expr(y)}, {b_columns}, {b_depth}}};")
    out.line(f"{_maker(of_x)}({left}, pairs, 1, x, rows, depth);")
    out.line(f"{_maker(of_y)}({right}, 1, columns, y, columns, depth);")
    out.line(f"const pa_products_matrix_words a = {{{left}, pairs, 1}}, b = {{{right}, columns, 1}};")
    out.line(f"pa_products_add_words((pa_products_two_words *){sums}, a, b, rows, columns, pairs, {prefetched});")


def _maker(operand: str) -> str:
    """The function that makes pairs of an operand of this type."""
    return operand.replace("products_", "products_words_of_")


def _write_blocks(code: Any, loops: tuple[ir.For, Any, ir.For], sums: tuple[str, str, str]) -> None:
    """The blocks that fit in, from the first row and column on; `rows_past` and `columns_past` are where they end.
    `sums`: the place of one, what it begins with, and the name of the sum in the update."""
    (row, along, column), (place, begin, name), out = loops, sums, code.out
    (update,) = along.body
    i, j = cname(row.variables[0]), cname(column.variables[0])
    for what, loop, count in (("rows", row, _ROWS), ("columns", column, _COLUMNS)):
        start, stop = _bounds(code, loop)
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


def _head(code: Any, loop: ir.For, first: str = "") -> str:
    name, (start, stop) = cname(loop.variables[0]), _bounds(code, loop)
    return f"for (int64_t {name} = {first or start}; {name} < {stop}; ++{name})"


def _bounds(code: Any, loop: ir.For) -> tuple[str, str]:
    return code.expr(loop.ranges[0].start), code.expr(loop.ranges[0].stop)
