"""GPU text of rows that a team reads in vectors (`cached_rows.py`), cached in registers or not.

Vectors have 16 bytes. Contiguous rows that fit into the registers, and into shared memory where a block has a row, are
cached; others are loaded in each loop, in vectors if they are contiguous, else one by one. Of rows that begin or end
between vectors, the first and last elements are edges, of which a thread has one; short ones have forms of their own
(`short_rows.py`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ..driver.kernel_step import THREADS
from . import emit_views as views
from . import ir
from .cached_rows import CachedRow, Ref, index_variables
from .emit_noalias import byte_range
from .emit_statements import Emitter, cname
from .emit_team_width import team
from .loop_dependences import structural_key
from .printer import Printer, conjunction
from .short_rows import short_forms

MIN_BLOCKS = 3  # blocks of a multiprocessor at a time: 80 registers for a thread
_IN_FLIGHT = 4  # vectors that a thread loads at once from a row that isn't cached; half where the kernel caches rows
_LEAST_VECTORS = 4  # of a row that doesn't begin and end with whole ones
_WARP = 32  # threads, at least


def row_tests(code: Emitter, row: CachedRow) -> Iterator[str]:
    """C tests whether all rows are contiguous (`dense`), begin and end with vectors (`whole`), and are long enough for
    vectors (`long_rows`); where it matters, whether elements lie at multiples of their size (`aligned`), and rows are
    pairs of elements that lie at multiples of theirs (`even`)."""
    (range_,) = row.loops[0].ranges
    start, stop = code.start(range_), code.expr(range_.stop)  # type: ignore[arg-type]
    yield f"const int64_t row_low = {start};"
    yield f"const int64_t row_size = {stop if start == '0' else f'pa_range_len(row_low, {stop}, 1)'};"
    tests, whole, aligned = ["row_size > 0"], [f"row_size % {row.width} == 0"], ["true"]
    even = ["row_size % 2 == 0"]
    compared = {structural_key((range_.start, range_.stop))}
    for s in row.loops[1:]:
        (other,) = s.ranges
        if structural_key((other.start, other.stop)) not in compared:
            compared.add(structural_key((other.start, other.stop)))
            tests.append(f"{code.start(other)} == row_low && {code.expr(other.stop)} - row_low == row_size")  # type: ignore[arg-type]
    for ref, kind in row.kinds.items():
        name, size = cname(ref[0]), kind.dtype.itemsize
        steps = [views.stride(kind, name, axis) for axis in range(len(ref[1]))]
        others = [f"(uint64_t)({s})" for s, v in zip(steps, ref[1], strict=True) if v]
        first = views.address(kind, name, ["0" if v else "row_low" for v in ref[1]])
        tests.append(f"{steps[ref[1].index('')]} == (int64_t)sizeof({kind.dtype.ctype})")
        bits = " | ".join([f"(uint64_t)({first})", *others])
        whole.append(f"(({bits}) & {min(size * row.width, 16) - 1}) == 0")
        even.append(f"(({bits}) & {min(size * 2, 16) - 1}) == 0")
        # complex numbers may lie where their parts may
        (tests if ref == _most(row) else aligned).append(f"(({bits}) & {size - 1}) == 0")
    pairs = [(a, b) for a in row.reloaded for b in row.stored if b != a]
    kinds = {p[0]: k for p, k in row.kinds.items()} | {n: k for n, k in code.kernel.params if n in row.stored}
    for n in sorted({n for pair in pairs for n in pair}):
        yield from byte_range(cname(n), kinds[n])
    for a, b in pairs:
        tests.append(f"(high_{cname(a)} <= low_{cname(b)} || high_{cname(b)} <= low_{cname(a)})")
    yield from conjunction("const bool whole = ", whole, ";")
    yield from conjunction("const bool dense = ", tests, ";")
    if row.cached and any(short_forms(row)):
        yield from conjunction("const bool aligned = ", aligned, ";")
        yield from conjunction("const bool even = ", even, ";")
    yield f"const bool long_rows = whole || row_size >= {_LEAST_VECTORS * row.width};"


def short_row(row: CachedRow) -> CachedRow:
    """A row of whole vectors that a warp or a part of one caches, in half as many registers as a longer one: more of
    them are in flight then."""
    return replace(row, elements=max(row.elements // 2, row.width))


def row_sizes(row: CachedRow) -> tuple[int, int]:
    """Elements of a row that a warp or a part of one caches, at least and at most."""
    return 1, _WARP * row.elements


def edged_row_sizes(row: CachedRow) -> tuple[int, int]:
    """The same of a row that a warp caches, with edges or without."""
    most = _WARP * row.elements
    return most // 8, most


def long_row_sizes(row: CachedRow) -> tuple[int, int]:
    """The same of a row of whole vectors that is longer than those, and that a team of warps caches."""
    others = edged_row_sizes(row) if may_have_edges(row) else row_sizes(short_row(row))
    return others[1] + 1, THREADS * row.elements


def may_have_edges(row: CachedRow) -> bool:
    """Whether warps cache rows with edges."""
    return 1 < row.width <= 4


def long_row_team(row: CachedRow) -> str:
    """The team of a long row, and the part that a thread has of it. Teams have no more warps than they need, so that a
    block has several rows in flight. Each warp has a contiguous part of the row. The strides between the elements of a
    warp's threads are constants, whatever the number of warps; otherwise their addresses would take registers."""
    return f"""\
int row_bits = few ? 8 : PA_WARP_BITS;
while (row_bits < 8 && row_size > ({row.elements} << row_bits)) row_bits += PA_TEAM_STEP;
{team("row_bits")}\
const int stride = PA_WARP * {row.width}; /* of a thread's vectors */
const int vectors = ((int)row_size / {row.width} + team - 1) >> bits; /* of a thread */
const int part = vectors * stride;
const int begin = rank / PA_WARP * part + rank % PA_WARP * {row.width};
const int end = (int)pa_less((rank / PA_WARP + 1) * part, row_size);
"""


def short_row_team(row: CachedRow) -> str:
    """The same of a short row."""
    return f"""\
int row_bits = narrow;
while (row_bits < PA_WARP_BITS && row_size > ({row.elements} << row_bits)) ++row_bits;
{team("row_bits", "1")}\
const int stride = team * {row.width}, begin = rank * {row.width}, end = (int)row_size;
"""


def row_pointers(code: Emitter, row: CachedRow) -> Iterator[str]:
    """Pointers to the beginnings of an iteration's rows."""
    for number, (ref, kind) in enumerate(row.kinds.items()):
        index = ["row_low" if not v else code.renamed.get(v) or cname(v) for v in ref[1]]
        yield f"{kind.dtype.ctype} *const row{number} = {views.address(kind, cname(ref[0]), index)};"


def register_lines(row: CachedRow, edges: bool) -> Iterator[str]:
    """Declares the registers of a thread, for vectors and an edge."""
    count = row.elements // row.width
    for p in _owners(row):
        yield f"{_vector(row, p)} {_register(row, p)}[{count}];"
        if edges:
            yield f"{row.kinds[p].dtype.ctype} {_edge(row, p)};"


def _owners(row: CachedRow) -> list[Ref]:
    """The cached elements that have registers."""
    return [p for p in row.cached if row.registers_of.get(p, p) == p]


def vector_bytes(row: CachedRow) -> int:
    """Bytes of a vector of each cached element."""
    return sum(row.width * row.kinds[p].dtype.itemsize for p in _owners(row))


def shared_memory_lines(row: CachedRow, threads: int, vectors: int) -> str:
    """Declares where a thread has vectors for which there are no registers: so many of each cached element in shared
    memory. No other thread accesses them."""
    lines, offset = ["extern __shared__ __align__(16) unsigned char row_memory[];"], 0
    for p in _owners(row):
        kind = _vector(row, p)
        lines.append(f"{kind} *const {_shared(row, p)} = ({kind} *)(row_memory + {offset}) + rank;")
        offset += threads * vectors * row.width * row.kinds[p].dtype.itemsize
    return "".join(f"{line}\n" for line in lines)


def _shared(row: CachedRow, ref: Ref) -> str:
    return f"shared{_number(row, ref)}"


def _vector(row: CachedRow, ref: Ref) -> str:
    return f"pa_vector<{row.kinds[ref].dtype.ctype}, {row.width}>"


def _number(row: CachedRow, ref: Ref) -> int:
    return list(row.kinds).index(ref)


def _register(row: CachedRow, ref: Ref) -> str:
    """The variable that holds the vectors of a cached element."""
    return f"cached{_number(row, row.registers_of.get(ref, ref))}"


def _edge(row: CachedRow, ref: Ref) -> str:
    """The variable that holds a thread's edge of a cached element."""
    return f"edge{_number(row, row.registers_of.get(ref, ref))}"


def loaded_registers(row: CachedRow, s: ir.For, fits: bool) -> dict[Ref, str]:
    """The registers of the elements that the loop's body loads, as C text. `fits`: the row is cached."""
    k, (variable,) = row.number(s), s.variables
    texts = {
        p: f"{_register(row, p)}[c].v[j]" if fits and p in row.cached else f"loaded{_number(row, p)}.v[j]"
        for p in row.loads[k]
    }
    return {(p[0], index_variables(p, variable)): text for p, text in texts.items()}


def stored_registers(row: CachedRow, s: ir.For) -> dict[Ref, str]:
    """The registers of the elements that the loop's body stores, as C text."""
    k, (variable,) = row.number(s), s.variables
    return {(p[0], index_variables(p, variable)): f"stored{_number(row, p)}.v[j]" for p in row.stores[k]}


def only_forwards(row: CachedRow, s: ir.For) -> bool:
    """Whether a loop over the cached row stores nothing to memory."""
    k = next((k for k, x in enumerate(row.loops) if x is s), None)
    stores = sum(isinstance(n, ir.Store) for n in ir.walk(*s.body))
    return k is not None and stores == len(row.stores[k]) and not any(_is_stored(row, p, k) for p in row.stores[k])


def _is_stored(row: CachedRow, ref: Ref, k: int) -> bool:
    """Whether loop `k` over the cached row stores the element to memory: no later one does."""
    return ref not in row.registers_of or not any(ref in refs for refs in row.stores[k + 1 :])


def each_cached_vector(
    out: Printer, row: CachedRow, streamed: bool, edges: bool, in_shared: bool
) -> Callable[[Callable[[], None]], None]:
    """A function that prints a loop over a thread's vectors of a cached row around what its argument prints: `c` is a
    vector's number and `first` its first element. Vectors for which there are no registers, `in_shared` memory, take
    the names of registers in a second loop. `streamed`: a block caches the row, more than half of its registers."""
    count, end, full = row.elements // row.width, "end", 0
    place = "begin + {} * stride"
    if edges or streamed:
        place = f"{'begin + ' * edges}{{}} * (team * {row.width})"
    if streamed:
        # vectors that each thread has: edges take less than one of each
        full = count // (1 if in_shared else 2) - edges
        end = end if edges else "row_size"
    test = f"{f'c < {full} || ' if full > 0 else ''}first < {end}"

    def each_vector(inner: Callable[[], None]) -> None:
        out.line("#pragma unroll")
        with out.block(f"for (int c = 0; c < {count}; ++c)"):
            if row.ends_early:
                out.line(f"if (c * team * {row.width} >= end) break;")
            out.line(f"const int first = {place.format('c')};")
            with out.block(f"if ({test})"):
                inner()
        if not in_shared:
            return
        out.line("#pragma unroll 2")
        with out.block(f"for (int n = {count}; {place.format('n')} < {end}; ++n)"):
            out.line(f"const int first = {place.format('n')}, c = 0;")
            for p in _owners(row):
                out.line(f"{_vector(row, p)} *const {_register(row, p)} = {_shared(row, p)} + (n - {count}) * team;")
            inner()

    return each_vector


def cached_row_loop(
    out: Printer,
    row: CachedRow,
    s: ir.For,
    vector: Callable[[], None],
    streamed: frozenset[Ref] | None,
    edges: bool,
    in_shared: bool,
) -> None:
    """The loop over a thread's vectors of a cached row; `vector` prints the code of one. `streamed`: the elements that
    bypass the L1 cache; given if a block caches the row. `edges`: the row may have some. `in_shared`: it has vectors in
    shared memory."""
    k = row.number(s)
    each_vector = each_cached_vector(out, row, streamed is not None, edges, in_shared)
    if row.plain:
        each_vector(vector)
        return
    passing, most = streamed or frozenset(), _most(row)

    def load(ref: Ref, target: str) -> None:
        if edges and ref != most:
            _load_anywhere(out, row, ref, target)
        else:
            out.line(f"{target} = {_load(row, ref, ref in passing)};")

    for ref in (p for p in row.loads[k] if row.cached.get(p) == k):  # all loads are in flight at once
        each_vector(functools.partial(load, ref, f"cached{_number(row, ref)}[c]"))
        if edges:
            out.line(f"if (edge >= 0) {_edge(row, ref)} = row{_number(row, ref)}[edge];")
    others = [p for p in row.loads[k] if p not in row.cached]

    def elements() -> None:
        for ref in others if edges else ():
            out.line(f"{_vector(row, ref)} ahead{_number(row, ref)};")
            load(ref, f"ahead{_number(row, ref)}")
        used = {p: f"ahead{_number(row, p)}" if edges else _load(row, p, p in passing) for p in others}
        _elements(out, row, k, used, vector, True, passing, edges)

    each_vector(elements)


def cached_edge(
    out: Printer, row: CachedRow, s: ir.For, element: Callable[[dict[Ref, str], dict[Ref, str]], None]
) -> None:
    """A thread's edge of a cached row. `element` prints its code, given the registers that it loads and stores."""
    k, (variable,) = row.number(s), s.variables
    with out.block("if (edge >= 0)"):
        out.line(f"const int64_t {cname(variable)} = row_low + edge;")
        if row.plain:
            element({}, {})
            return
        out.lines(f"{row.kinds[p].dtype.ctype} stored{_number(row, p)};" for p in row.stores[k])
        loads = {(p[0], index_variables(p, variable)): _edge(row, p) for p in row.loads[k] if p in row.cached}
        element(loads, {(p[0], index_variables(p, variable)): f"stored{_number(row, p)}" for p in row.stores[k]})
        for ref in row.stores[k]:
            n = _number(row, ref)
            if _is_forwarded(row, ref, k):
                out.line(f"{_edge(row, ref)} = stored{n};")
            if _is_stored(row, ref, k):
                out.line(f"row{n}[edge] = stored{n};")


def _is_forwarded(row: CachedRow, ref: Ref, k: int) -> bool:
    """Whether what loop `k` over the cached row stores stays in registers: a later one loads it."""
    return ref in row.registers_of and any(ref in refs for refs in row.loads[k + 1 :])


def cached_edge_lines(row: CachedRow) -> Iterator[str]:
    """A thread's first vector of an iteration's cached row, where vectors end, and the thread's `edge`, -1 for none."""
    yield f"const int begin = head + rank * {row.width}, end = (int)vectors_end;"
    yield "const int edge = rank < head ? rank : rank < head + row_size - end ? end - head + rank : -1;"


def edge_lines(row: CachedRow) -> Iterator[str]:
    """The `head` of an iteration's row, before the vectors of the array that has most rows, where its vectors end, and
    which other arrays have aligned vectors there."""
    most = _most(row)
    n, (size, mask) = _number(row, most), _alignment(row, most)
    yield f"const int head = (int)pa_less((int)(-(uint64_t)row{n} & {mask}) / {size}, row_size);"
    yield f"const int64_t vectors_end = row_size - (row_size - head) % {row.width};"
    for ref in row.kinds:
        if ref != most:
            at = f"(uint64_t)(row{_number(row, ref)} + head)"
            yield f"const bool aligned{_number(row, ref)} = ({at} & {_alignment(row, ref)[1]}) == 0;"


def _most(row: CachedRow) -> Ref:
    """An element of the array with most rows, whose vectors are aligned."""
    return max(row.kinds, key=lambda ref: len(ref[1]))


def _alignment(row: CachedRow, ref: Ref) -> tuple[int, int]:
    """Bytes of an element, and the bits of an address that are zero where a vector begins."""
    size = row.kinds[ref].dtype.itemsize
    return size, min(size * row.width, 16) - 1


def uncached_row_loop(
    out: Printer, row: CachedRow, s: ir.For, vector: Callable[[], None], element: Callable[[], None]
) -> None:
    """The loop over a thread's elements of a row that isn't cached, in vectors of which several are loaded at once;
    `element` prints the code of one element, for those before and behind the vectors."""
    k, (variable,) = row.number(s), s.variables
    count = max(1, _IN_FLIGHT // (2 if row.cached else 1) // max(len(row.loads[k]), 1))
    used = () if row.plain else row.loads[k]
    step = f"(int64_t)team * {row.width}"
    head = f"int64_t nearest = head + rank * {row.width}; nearest < vectors_end; nearest += {count} * {step}"
    with out.block(f"for ({head})"):
        out.lines(f"{_vector(row, ref)} ahead{_number(row, ref)}[{count}];" for ref in used)

        # a test before each load would make it wait for the one before: loads past the row's end load its last vector
        if used:
            out.line("#pragma unroll")
            with out.block(f"for (int c = 0; c < {count}; ++c)"):
                out.line(f"const int64_t first = pa_less(nearest + c * {step}, vectors_end - {row.width});")
                for ref in used:
                    _load_anywhere(out, row, ref, f"ahead{_number(row, ref)}[c]")
        ahead = {ref: f"ahead{_number(row, ref)}[c]" for ref in used}
        out.line("#pragma unroll")
        with out.block(f"for (int c = 0; c < {count}; ++c)"):
            out.line(f"const int64_t first = nearest + c * {step};")
            with out.block("if (first < vectors_end)"):
                if row.plain:
                    vector()
                else:
                    _elements(out, row, k, ahead, vector)
    with out.block("for (int n = rank; n < head + (int)(row_size - vectors_end); n += team)"):
        out.line(f"const int64_t {cname(variable)} = row_low + (n < head ? n : vectors_end - head + n);")
        element()


def _load_anywhere(out: Printer, row: CachedRow, ref: Ref, target: str) -> None:
    """A load of a vector, of single elements where they aren't aligned."""
    n = _number(row, ref)
    load = _load(row, ref, False)
    if ref == _most(row):
        out.line(f"{target} = {load};")
        return
    with out.block(f"if (aligned{n})"):
        out.line(f"{target} = {load};")
    with out.orelse():
        out.line("#pragma unroll")
        out.line(f"for (int j = 0; j < {row.width}; ++j) {target}.v[j] = row{n}[first + j];")


def _load(row: CachedRow, ref: Ref, streamed: bool) -> str:
    vector, at = _vector(row, ref), f"row{_number(row, ref)} + first"
    return f"pa_load_streamed<{vector}>({at})" if streamed else f"*(const {vector} *)({at})"


def _elements(
    out: Printer,
    row: CachedRow,
    k: int,
    used: Mapping[Ref, str],
    vector: Callable[[], None],
    cached: bool = False,
    streamed: frozenset[Ref] = frozenset(),
    edges: bool = True,
) -> None:
    """The elements of one vector: those `used`, with where they come from, the `vector`'s code, stores."""
    out.lines(f"const {_vector(row, ref)} loaded{_number(row, ref)} = {source};" for ref, source in used.items())
    out.lines(f"{_vector(row, p)} stored{_number(row, p)};" for p in row.stores[k])
    vector()
    for ref in row.stores[k]:
        n = _number(row, ref)
        if cached and _is_forwarded(row, ref, k):
            out.line(f"{_register(row, ref)}[c] = stored{n};")
        if not cached or _is_stored(row, ref, k):
            at = f"row{n} + first"
            plain = f"*({_vector(row, ref)} *)({at}) = stored{n};"
            if not edges or ref == _most(row):
                out.line(f"pa_store_streamed({at}, stored{n});" if ref in streamed else plain)
            else:
                with out.block(f"if (aligned{n})"):
                    out.line(plain)
                with out.orelse():
                    out.line("#pragma unroll")
                    out.line(f"for (int j = 0; j < {row.width}; ++j) row{n}[first + j] = stored{n}.v[j];")
