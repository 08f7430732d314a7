"""GPU text of copies of tiles element by element, for products that no matrix instruction computes: asynchronous, and
from arrays of any strides, where vectors can't be copied.

Lanes have neighbours of a row. Where an array has its neighbours in memory across the rows, they have eight of a
column, and four such columns: what they read fills sectors of memory, and what they write is in different banks, as
rows of the tile are padded (`TilePlan.padding`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from .emit_statements import cname
from .emit_tile_across import find_across
from .tile_nests import axes_of

_SECTOR = 8  # elements of 4 bytes that memory is read by


class Steps(NamedTuple):
    """Where a thread's elements of a whole tile are: its first row and column, and how far from them element `n` of
    `count` is; C text."""

    row: str
    column: str
    down: str
    along: str


def is_contracted(code: Any, copy: Any) -> bool:
    """Whether the tile is for products that no matrix instruction computes."""
    return copy.store.name in code.plan.contracted


def steps_of(code: Any, copy: Any) -> tuple[int, Steps, Steps] | None:
    """How many elements of a whole tile a thread has, and where: of neighbours along the rows, and across them. None
    if threads don't share it evenly."""
    ((_, high), (_, wide)), threads = axes_of(copy.loops), code.plan.threads
    rows = _steps(high, wide, threads, 1)
    columns = _steps(high // _SECTOR, wide, threads // _SECTOR, _SECTOR)
    if rows is None or columns is None or high % _SECTOR or threads % _SECTOR:
        return None
    return high * wide // threads, rows, columns


def _steps(high: int, wide: int, threads: int, each: int) -> Steps | None:
    """Of `high` x `wide` parts for so many groups of threads, each of which has `each` rows."""
    if not high or high * wide % threads or (threads % wide and wide % threads):
        return None
    group = f"rank / {each}" if each > 1 else "rank"
    first = f"rank % {each} + " if each > 1 else ""
    if threads % wide == 0:
        rows = threads // wide * each
        return Steps(f"{first}{group} / {wide} * {each}", f"{group} % {wide}", f"n * {rows}", "0")
    turns = wide // threads
    return Steps(f"{first}0", group, f"n / {turns} * {each}", f"n % {turns} * {threads}")


def _across(code: Any, copy: Any) -> str:
    found = find_across(code, copy.nest, copy.load)
    return "false" if found is None else found.test or "true"


def declare_elements(code: Any, copy: Any) -> None:
    """Before the loop: whether the copy takes vectors, and if not, how far neighbours are."""
    k = copy.ordinal
    code.out.line(f"bool is_vectors{k} = false;")
    code.out.line(f"const bool is_across{k} = {_across(code, copy)};")
    code.out.line(f"int64_t down{k} = 0, along{k} = 0;")


def set_first_element(code: Any, copy: Any) -> None:
    """Sets where a thread's first element is, and how far from it its neighbours are and the one of the next
    iteration."""
    found, k, out = steps_of(code, copy), copy.ordinal, code.out
    assert found is not None
    _, rows, columns = found
    next_tile = (0, copy.size) if copy.axis else (copy.size, 0)
    variables = [v for v, _ in axes_of(copy.loops)]
    names = [f"at_{cname(v)}" for v in variables]
    for variable, (down, along) in (("from", (0, 0)), ("down", (1, 0)), ("along", (0, 1)), ("step", next_tile)):
        with out.block():
            out.line(f"const int {names[0]} = (is_across{k} ? {columns.row} : {rows.row}) + {down};")
            out.line(f"const int {names[1]} = (is_across{k} ? {columns.column} : {rows.column}) + {along};")
            code.offsets = dict(zip(variables, names, strict=True))
            code.bind_variables(copy.loops)
            base = "" if variable == "from" else f" - from{k}"
            out.line(f"{variable}{k} = (const char *)&{code.lvalue(copy.load)}{base};")
    code.offsets = {}


def write_whole_elements(code: Any, copy: Any) -> None:
    """The copies of a thread's elements of a whole tile."""
    found, k, out = steps_of(code, copy), copy.ordinal, code.out
    assert found is not None
    count, rows, columns = found
    kind, variables = copy.load.array.type.dtype, [v for v, _ in axes_of(copy.loops)]
    names = [f"at_{cname(v)}" for v in variables]
    for test, steps, down in ((f"if (is_across{k})", columns, str(kind.itemsize)), ("else", rows, f"down{k}")):
        with out.block(test):
            out.line("#pragma unroll")
            with out.block(f"for (int n = 0; n < {count}; ++n)"):
                out.line(f"const int {names[0]} = {steps.row} + {steps.down};")
                out.line(f"const int {names[1]} = {steps.column} + {steps.along};")
                code.offsets = dict(zip(variables, names, strict=True))
                element = code.tile_element(copy.store.name, copy.store.shape, copy.store.index)
                distance = f"{steps.down} * {down} + {steps.along} * along{k}"
                out.line(f"pa_tile_copy_element(&{element}, (const {kind.ctype} *)(from{k} + {distance}));")
    code.offsets = {}


def write_elements(code: Any, copy: Any) -> None:
    """The copies of a thread's elements of a tile that need not be whole."""
    out, ((rows, high), (columns, wide)) = code.out, axes_of(copy.loops)
    names, threads = [f"at_{cname(x)}" for x in (rows, columns)], code.plan.threads
    total = -(-high // _SECTOR) * _SECTOR * wide
    out.line(f"const bool is_across = {_across(code, copy)};")
    out.line("#pragma unroll 1")
    with out.block(f"for (int e = rank; e < {total}; e += {threads})"):
        group = f"e / {_SECTOR}"
        out.line(f"const int {names[0]} = is_across ? e % {_SECTOR} + {group} / {wide} * {_SECTOR} : e / {wide};")
        out.line(f"const int {names[1]} = is_across ? {group} % {wide} : e % {wide};")
        with out.block(f"if ({' && '.join(f'{n} < length_{n[3:]}' for n in names)})"):
            code.offsets = dict(zip((rows, columns), names, strict=True))
            code.bind_variables(copy.loops)
            element = code.tile_element(copy.store.name, copy.store.shape, copy.store.index)
            out.line(f"pa_tile_copy_element(&{element}, &{code.lvalue(copy.load)});")
    code.offsets = {}
