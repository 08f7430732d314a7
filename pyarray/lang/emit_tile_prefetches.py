"""CPU text that prefetches into the second-level cache what an iteration of a loop over tiles is about to need: the
hardware begins each row of a tile anew, and memory would have nothing to do while an iteration computes.

It is about what the iterations begin with copying into tiles, and about what they store at the end. A product
prefetches rows of the next iteration's copies between its blocks. The last reduction of rows prefetches, element by
element, the next iteration's rows and those that are stored. In debug mode there is nothing of it: an address is tested
before it is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import emit_views as views
from . import ir
from .emit_expressions import cname, literal
from .emit_tile_across import find_across
from .summaries import assigned_in, has_any, names_in
from .tile_layout import leading_statements
from .tile_nests import axes_of, copied_elements, is_reduction, nest_of

Access = tuple[ir.For, Any]  # a nest over rows and columns, and the load or store of its element
LINE = 64


class Prefetches(NamedTuple):
    """What a reduction prefetches."""

    copies: list[Access]
    stores: list[Access]


def leading_copies(code: Any) -> list[Access]:
    """What the iterations of the loop at hand begin with loading, where rows of the nest are rows of an array."""
    s = code.turn
    if s is None or code.debug or s.ranges[-1].step is not None:
        return []
    leading = leading_statements(s)
    if has_any([x for x in leading if isinstance(x, ir.Assign)], ir.Atomic, ir.Invoke):
        return []  # what must be computed once
    copies = [(x, copied_elements(x)) for x in leading if isinstance(x, ir.For)]
    return [(x, copied[1]) for x, copied in copies if copied is not None and _has_rows(copied[1], x)]


def _has_rows(access: Any, nest: ir.For) -> bool:
    """Whether the index has the variables by themselves, the last one last, and needs no memory."""
    variables = [name for name, _ in axes_of(nest_of(nest)[0])]
    alone = [getattr(x, "name", "") for x in access.index]
    if len(variables) != 2 or not isinstance(access.array, ir.Local) or access.array.type.reshape_of is not None:
        return False
    others = [n for x, name in zip(access.index, alone, strict=True) if not name for n in ir.walk(x)]
    if any(isinstance(n, (ir.Load, ir.Element, ir.Invoke, ir.Atomic)) for n in others):
        return False
    used = {n.name for n in others if isinstance(n, ir.Local)}
    return alone.count(variables[0]) == 1 and alone[-1] == variables[1] and not used & set(variables)


def _write_in_next(code: Any, write: Callable[[], None]) -> None:
    """What `write` prints, where the loop's variable and the numbers at its beginning are those of the next
    iteration."""
    out, turn = code.out, cname(code.turn.variables[-1])
    numbers = [x for x in leading_statements(code.turn) if isinstance(x, ir.Assign)]
    kinds = dict(code.kernel.variables)
    with out.block():
        out.line(f"const int64_t turn = {turn} + 1;")
        with out.block():
            out.line(f"const int64_t {turn} = turn;")
            for name in dict.fromkeys(x.name for x in numbers):
                kind = kinds[name].dtype
                out.line(f"{kind.ctype} {cname(name)} = {literal(0, kind)};")
            code.write(numbers)
            write()


def _write_first(code: Any, access: Access, line: str) -> None:
    """A line with the address of the first element, and the numbers of rows and columns."""
    loops, out, lengths = nest_of(access[0])[0], code.out, []
    with out.block():
        for loop in loops:
            start, stop = (code.expr(x) for x in (loop.ranges[0].start, loop.ranges[0].stop))
            out.line(f"const int64_t {cname(loop.variables[0])} = {start};")
            lengths.append(f"({stop} - {start})")
        out.line(line.format(at=f"(const char *)&{code.lvalue(access[1])}", rows=lengths[0], columns=lengths[1]))


def _steps(code: Any, access: Access) -> list[str]:
    """Bytes between neighbours along rows and columns."""
    load, names = access[1], [getattr(x, "name", "") for x in access[1].index]
    axes = (names.index(loop.variables[0]) for loop in nest_of(access[0])[0])
    return [f"({views.stride(load.array.type, code.expr(load.array), axis)})" for axis in axes]


def write_next(code: Any, copies: Sequence[Access]) -> str:
    """Declares a list of the next iteration's rows, for pa_prefetch_lines; C text of a pointer to it."""
    code.out.line(f"pa_prefetch_next next[{len(copies) + 1}] = {{{{0}}}};")

    def write() -> None:
        for k, copy in enumerate(copies):
            step, itemsize = _steps(code, copy)[0], copy[1].type.dtype.itemsize
            value = f"(pa_prefetch_next){{{{{{at}}, {step}, {{rows}}, {{columns}} * {itemsize}}}}}"
            if across := find_across(code, *copy):
                turned = f"(pa_prefetch_next){{{{{{at}}, {across.step}, {{columns}}, {{rows}} * {itemsize}}}}}"
                value = f"{across.test} ? {turned} : {value}" if across.test else turned
            _write_first(code, copy, f"next[{k}] = {value};")

    _write_in_next(code, write)
    return "next"


def row_prefetches(code: Any, s: ir.For) -> Prefetches | None:
    """What a nest prefetches, if it is the last reduction of rows in the body of the loop at hand: of nests over the
    same rows and columns, what is copied in the next iteration and what is stored in this one."""
    loops, body = nest_of(s)
    if code.turn is None or code.debug or len(loops) != 1 or not is_reduction(body):
        return None
    reductions = [k for k, x in enumerate(code.turn.body) if _is_nest(x) and is_reduction(nest_of(x)[1])]
    rest = code.turn.body[reductions[-1] :] if reductions else ()
    if not rest or nest_of(rest[0])[1][-1] is not body[-1]:
        return None
    axes, assigned = axes_of([*loops, body[1]]), assigned_in(*rest)
    direct: list[Any] = [
        x.then[0] if isinstance(x, ir.If) and isinstance(x.condition, ir.NoAlias) else x for x in rest[1:]
    ]
    nests = [x for x in direct if _is_nest(x) and axes_of(nest_of(x)[0]) == axes]
    stores = [(x, y) for x in nests for y in nest_of(x)[1] if isinstance(y, ir.Store) and _has_rows(y, x)]
    stores = [(x, y) for x, y in stores if not names_in(y.array, *y.index) & assigned]
    copies = [copy for copy in leading_copies(code) if axes_of(nest_of(copy[0])[0]) == axes]
    return Prefetches(copies, stores) if copies or stores else None


def _is_nest(x: Any) -> bool:
    return isinstance(x, ir.For) and bool(x.capacity)


def write_row_prefetches(code: Any, prefetches: Prefetches) -> None:
    """Declares what `write_prefetches` uses."""
    if not prefetches.copies:
        return
    code.out.line(f"const char *next[{len(prefetches.copies)}];")

    def write() -> None:
        for k, copy in enumerate(prefetches.copies):
            _write_first(code, copy, f"next[{k}] = {{at}};")

    _write_in_next(code, write)


def write_prefetches(code: Any, prefetches: Prefetches, column: str, count: int) -> None:
    """Prefetches so many elements of a row, from a column on."""
    for k, (nest, load) in enumerate(prefetches.copies):
        down, across = _steps(code, (nest, load))
        row, first = ((cname(x.variables[0]), code.expr(x.ranges[0].start)) for x in nest_of(nest)[0])
        at = f"next[{k}] + ({row[0]} - {row[1]}) * {down} + ({column} - {first[1]}) * {across}"
        _write_lines(code, at, load.type.dtype.itemsize * count, 0)
    for nest, store in prefetches.stores:
        with code.out.block():
            code.out.line(f"const int64_t {cname(nest_of(nest)[0][1].variables[0])} = {column};")
            _write_lines(code, f"(const char *)&{code.lvalue(store)}", store.array.type.dtype.itemsize * count, 1)


def _write_lines(code: Any, at: str, nbytes: int, for_store: int) -> None:
    for offset in range(0, nbytes, LINE):
        code.out.line(f"__builtin_prefetch({at}{f' + {offset}' if offset else ''}, {for_store}, 2);")
