"""GPU text of rows that a team reads in vectors (`cached_rows.py`), cached in registers or not.

Vectors have 16 bytes. Rows that begin and end with whole vectors and fit into the registers are cached. Others are
loaded in each loop: in vectors but for a row's first and last elements if they are contiguous, else one by one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping

from . import emit_views as views
from . import ir
from .cached_rows import CachedRow, Ref, index_variables
from .emit_noalias import byte_range
from .emit_statements import Emitter, cname
from .loop_dependences import structural_key
from .printer import Printer, conjunction

MIN_BLOCKS = 3  # blocks of a multiprocessor at a time: 80 registers for a thread
_IN_FLIGHT = 4  # vectors that a thread loads at once from a row that isn't cached; half where the kernel caches rows
_LEAST_VECTORS = 4  # of a row that doesn't begin and end with whole ones


def row_tests(code: Emitter, row: CachedRow) -> Iterator[str]:
    """C tests whether all rows are contiguous, and long enough for vectors (`dense`), and whether these begin and end
    with them (`whole`)."""
    (range_,) = row.loops[0].ranges
    start, stop = code.start(range_), code.expr(range_.stop)  # type: ignore[arg-type]
    yield f"const int64_t row_low = {start};"
    yield f"const int64_t row_size = {stop if start == '0' else f'pa_range_len(row_low, {stop}, 1)'};"
    tests, whole = ["row_size > 0"], [f"row_size % {row.width} == 0"]
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
        if ref == _most(row):  # complex numbers may lie where their parts may
            tests.append(f"(({bits}) & {size - 1}) == 0")
    pairs = [(a, b) for a in row.reloaded for b in row.stored if b != a]
    kinds = {p[0]: k for p, k in row.kinds.items()} | {n: k for n, k in code.kernel.params if n in row.stored}
    for n in sorted({n for pair in pairs for n in pair}):
        yield from byte_range(cname(n), kinds[n])
    for a, b in pairs:
        tests.append(f"(high_{cname(a)} <= low_{cname(b)} || high_{cname(b)} <= low_{cname(a)})")
    yield from conjunction("const bool whole = ", whole, ";")
    long = f"(whole || row_size >= {_LEAST_VECTORS * row.width})"
    yield from conjunction("const bool dense = ", [*tests, long], ";")


def cached_row_width(row: CachedRow) -> Iterator[str]:
    """1 << bits threads, of a part of a warp or of a few, cache a row."""
    yield "int cached_bits = few ? 8 : narrow;"
    yield f"for (; cached_bits < 8 && row_size > ({row.elements} << cached_bits);)"
    yield "    cached_bits += cached_bits < PA_WARP_BITS ? 1 : PA_TEAM_STEP;"
    yield f"const bool fits = dense && whole && row_size <= ({row.elements} << cached_bits);"


def cached_row_part(row: CachedRow, narrow: bool) -> str:
    """The part of a cached row that a thread has. Teams have no more warps than they need, so that a block has several
    rows in flight. Each warp has a contiguous part of the row. The strides between the elements of a warp's threads are
    constants, whatever the number of warps; otherwise their addresses would take registers. Those of `narrow` teams,
    which are parts of a warp, aren't."""
    return f"""\
const int stride = {"team" if narrow else "PA_WARP"} * {row.width}; /* of a thread's vectors */
const int vectors = ((int)row_size / {row.width} + team - 1) >> bits; /* of a thread */
const int part = vectors * stride;
const int begin = rank / PA_WARP * part + rank % PA_WARP * {row.width};
const int end = (int)pa_less((rank / PA_WARP + 1) * part, row_size);
"""


def row_pointers(code: Emitter, row: CachedRow) -> Iterator[str]:
    """Pointers to the beginnings of an iteration's rows."""
    for number, (ref, kind) in enumerate(row.kinds.items()):
        index = ["row_low" if not v else code.renamed.get(v) or cname(v) for v in ref[1]]
        yield f"{kind.dtype.ctype} *const row{number} = {views.address(kind, cname(ref[0]), index)};"


def register_lines(row: CachedRow) -> Iterator[str]:
    """Declares the registers of a thread."""
    count = row.elements // row.width
    refs = [p for p in row.cached if row.registers_of.get(p, p) == p]
    return (f"{_vector(row, p)} {_register(row, p)}[{count}];" for p in refs)


def _vector(row: CachedRow, ref: Ref) -> str:
    return f"pa_vector<{row.kinds[ref].dtype.ctype}, {row.width}>"


def _number(row: CachedRow, ref: Ref) -> int:
    return list(row.kinds).index(ref)


def _register(row: CachedRow, ref: Ref) -> str:
    """The variable that holds the vectors of a cached element."""
    return f"cached{_number(row, row.registers_of.get(ref, ref))}"


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


def cached_row_loop(
    out: Printer, row: CachedRow, s: ir.For, vector: Callable[[], None], streamed: frozenset[Ref] | None
) -> None:
    """The loop over a thread's elements of a cached row; `vector` prints the code of one vector. `streamed`: the
    elements that bypass the L1 cache; given if a block caches the row, which has more than half of the block's
    capacity."""
    k, count = row.number(s), row.elements // row.width
    first, test = "begin + c * stride", "first < end"
    if streamed is not None:
        first = f"c * (team * {row.width})"
        test = f"{f'c < {count // 2} || ' if count > 1 else ''}first < row_size"

    def each_vector(inner: Callable[[], None]) -> None:
        out.line("#pragma unroll")
        with out.block(f"for (int c = 0; c < {count}; ++c)"):
            out.line(f"const int first = {first};")
            with out.block(f"if ({test})"):
                inner()

    if row.plain:
        each_vector(vector)
        return
    for ref in (p for p in row.loads[k] if row.cached.get(p) == k):  # all loads are in flight at once
        load = _load(row, ref, ref in (streamed or ()))
        each_vector(functools.partial(out.line, f"cached{_number(row, ref)}[c] = {load};"))
    passing = streamed or frozenset()
    others = {p: _load(row, p, p in passing) for p in row.loads[k] if p not in row.cached}
    each_vector(lambda: _elements(out, row, k, others, vector, True, passing))


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

        def each_vector(inner: Callable[[], None]) -> None:
            out.line("#pragma unroll")
            with out.block(f"for (int c = 0; c < {count}; ++c)"):
                out.line(f"const int64_t first = nearest + c * {step};")
                with out.block("if (first < vectors_end)"):
                    inner()

        ahead = {ref: f"ahead{_number(row, ref)}[c]" for ref in used}

        def loads() -> None:
            for ref in used:
                _load_anywhere(out, row, ref, ahead[ref])

        each_vector(loads)
        each_vector(vector if row.plain else lambda: _elements(out, row, k, ahead, vector))
    with out.block("for (int edge = rank; edge < head + (int)(row_size - vectors_end); edge += team)"):
        out.line(f"const int64_t {cname(variable)} = row_low + (edge < head ? edge : vectors_end - head + edge);")
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
) -> None:
    """The elements of one vector: those `used`, with where they come from, the `vector`'s code, stores."""
    out.lines(f"const {_vector(row, ref)} loaded{_number(row, ref)} = {source};" for ref, source in used.items())
    out.lines(f"{_vector(row, p)} stored{_number(row, p)};" for p in row.stores[k])
    vector()
    for ref in row.stores[k]:
        n = _number(row, ref)
        if cached and ref in row.registers_of and any(ref in refs for refs in row.loads[k + 1 :]):
            out.line(f"{_register(row, ref)}[c] = stored{n};")
        if not cached or _is_stored(row, ref, k):
            at = f"row{n} + first"
            plain = f"*({_vector(row, ref)} *)({at}) = stored{n};"
            if cached or ref == _most(row):
                out.line(f"pa_store_streamed({at}, stored{n});" if ref in streamed else plain)
            else:
                with out.block(f"if (aligned{n})"):
                    out.line(plain)
                with out.orelse():
                    out.line("#pragma unroll")
                    out.line(f"for (int j = 0; j < {row.width}; ++j) row{n}[first + j] = stored{n}.v[j];")
