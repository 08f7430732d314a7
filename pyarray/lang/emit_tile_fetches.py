"""CPU text that fetches into the second-level cache what an iteration of a loop over tiles is about to need: the
hardware begins each row of a tile anew, and memory would have nothing to do while an iteration computes.

It is about what the iterations begin with copying into tiles: a product fetches rows of the next iteration's copies
between its blocks. In debug mode there is nothing of it: an address is tested before it is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import emit_views as views
from . import ir
from .emit_expressions import cname
from .summaries import has_any
from .tile_layout import axes_of, copied_elements, leading_statements, nest_of

Access = tuple[ir.For, Any]  # a nest over rows and columns, and the load or store of its element


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
                out.line(f"{kinds[name].dtype.ctype} {cname(name)} = 0;")
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
    """Declares a list of the next iteration's rows, for pa_fetch_rows; C text of a pointer to it."""
    code.out.line(f"pa_fetch_next next[{len(copies) + 1}] = {{{{0}}}};")

    def write() -> None:
        for k, copy in enumerate(copies):
            step, itemsize = _steps(code, copy)[0], copy[1].type.dtype.itemsize
            value = f"{{{{{{at}}, {step}, {{rows}}, {{columns}} * {itemsize}}}}}"
            _write_first(code, copy, f"next[{k}] = (pa_fetch_next){value};")

    _write_in_next(code, write)
    return "next"
