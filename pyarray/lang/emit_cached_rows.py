"""GPU text that caches a row in registers, for an iteration that reads one row in several unordered loops.

Elements that several loops load are loaded once, in vectors of 16 bytes: each thread has the same elements
of the row in every loop. Rows that are too long for the registers are loaded again in each loop; rows that
aren't contiguous or aligned take the general text. Stores of one loop that later ones load (the exponentials
of a softmax) are forwarded in registers, and left out if a later loop stores there again."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import emit_views as views
from . import ir
from .emit_noalias import byte_range
from .emit_statements import Emitter, cname
from .emit_vectorized import always_evaluated
from .loop_dependences import structural_key
from .printer import Printer, conjunction
from .summaries import assigned_in

MAX_ELEMENTS = 64  # elements of a row in a thread's registers
MIN_BLOCKS = 3  # blocks of a multiprocessor at a time: 80 registers for a thread
_CACHED_BYTES = 128  # of a thread's registers, about half of them: a block of 256 caches rows of 8192 float32
_IN_FLIGHT = 4  # vectors that a thread loads at once from a row that isn't cached

Ref = tuple[str, tuple[str, ...]]  # an element: its array, and the variables of its index; "": the row's loop variable


@dataclass(frozen=True)
class CachedRow:
    """The loops over the row, with the elements that each loads unconditionally (`loads`) and stores (`stores`).

    `cached`: cached elements, with the number of the loop that first loads them, or that stores them if they are
    in `registers_of`. `registers_of`: the element whose registers hold a forwarded store: its own, or those of
    an element that no later loop uses. `reloaded`: arrays that are read after `stored` ones are written, so they
    must not alias."""

    loops: tuple[ir.For, ...]
    cached: dict[Ref, int]
    registers_of: dict[Ref, Ref]
    loads: tuple[tuple[Ref, ...], ...]
    stores: tuple[tuple[Ref, ...], ...]
    kinds: dict[Ref, Any]
    stored: tuple[str, ...]
    reloaded: tuple[str, ...]
    elements: int

    def number(self, loop: ir.For) -> int:
        """Which of the loops it is."""
        return next(k for k, x in enumerate(self.loops) if x is loop)

    @property
    def width(self) -> int:
        """Elements of a vector."""
        return min(16 // min(16, *(kind.dtype.itemsize for kind in self.kinds.values())), 8)


def find_cached_row(code: Emitter, loop: ir.For, shared: list[ir.For]) -> CachedRow | None:
    """The row that an iteration of a parallel loop caches in registers; None if there is nothing to cache."""
    inner = [s for s in loop.body if isinstance(s, ir.For) and any(s is x for x in shared)]
    loops = [s for s in inner if _is_invariant(s, loop)]
    nodes = list(ir.walk(*loop.body))
    if len(loops) < 2 or any(isinstance(n, ir.Atomic) for n in nodes):
        return None
    order = [n for s in loop.body for n in _in_order(s, loops)]
    first = next((k for k, n in enumerate(order) if isinstance(n, ir.Store)), len(order))
    written = {n.array.name if isinstance(n.array, ir.Local) else "" for n in order if isinstance(n, ir.Store)}
    inside = assigned_in(*code.kernel.body)
    params = {n: k for n, k in code.kernel.params if n not in inside}
    only_params = written <= params.keys()
    before = {id(n) for n in order[:first]}
    kinds, reloaded = dict[Ref, Any](), set[str]()
    loaded, refused = list[set[Ref]](), set[Ref]()
    for s in loops:
        unconditional, refs = {id(n) for st in s.body for n in always_evaluated(st)}, set[Ref]()
        for n in _loads(s):
            ref = _element_ref(code, n, s, loop, params)
            if ref is None:
                continue
            if id(n) not in before and (not only_params or ref[0] in written):
                refused.add(ref)
            elif id(n) in unconditional:
                refs.add(ref)
                kinds[ref] = n.array.type
                reloaded |= set() if id(n) in before else {ref[0]}
        loaded.append(refs)
    loaded = [refs - refused for refs in loaded]
    stores = []
    for s, refs in zip(loops, loaded, strict=True):
        last = _last_stores(code, s, loop, params, refs) if only_params else ()
        types = {p: n.array.type for n, p in last}
        kinds |= types
        stores.append(tuple(types))
    other_loads = {id(n) for n in nodes if isinstance(n, (ir.Load, ir.Invoke))} - before
    for refs, s in zip(loaded, loops, strict=True):
        in_registers = refs.union(*stores)
        other_loads -= {id(n) for n in _loads(s) if _element_ref(code, n, s, loop, params) in in_registers}
    forwarded = {} if other_loads else _forwarded_stores(code, loop, loops, stores, params)
    for ref, k in forwarded.items():
        reloaded.add(ref[0])
        for refs, s in zip(loaded[k + 1 :], loops[k + 1 :], strict=True):
            refs |= {ref} & {_element_ref(code, n, s, loop, params) for n in _loads(s)}
    load_counts = Counter(ref for refs in loaded for ref in sorted(refs))  # in an order that no hash changes
    reused = [ref for ref, n in load_counts.items() if n > 1]
    cached = {ref: next(k for k, refs in enumerate(loaded) if ref in refs) for ref in reused} | forwarded
    owners = _register_owners(cached, forwarded, loaded, kinds)
    elements = MAX_ELEMENTS
    while elements * sum(kinds[p].dtype.itemsize for p in cached if owners.get(p, p) == p) > _CACHED_BYTES:
        elements //= 2
    if not cached or elements < 8:
        return None
    loads = tuple(tuple(sorted(refs)) for refs in loaded)
    kinds = {p: k for p, k in kinds.items() if p in load_counts or any(p in refs for refs in stores)}
    reloaded &= {p[0] for p in load_counts}
    stored = tuple(sorted(written)) if reloaded else ()
    reloaded_arrays = tuple(sorted(reloaded))
    return CachedRow(tuple(loops), cached, owners, loads, tuple(stores), kinds, stored, reloaded_arrays, elements)


def _loads(s: ir.For) -> Iterator[ir.Load]:
    return (n for n in ir.walk(*s.body) if isinstance(n, ir.Load))


def _forwarded_stores(
    code: Emitter, loop: ir.For, loops: list[ir.For], stores: list[tuple[Ref, ...]], params: dict[str, Any]
) -> dict[Ref, int]:
    """Stores that later loops load, with the number of the first loop that stores there: those to arrays that
    nothing else in the iteration loads or stores, and that have no other name."""
    nodes = [n for n in ir.walk(*loop.body) if isinstance(n, (ir.Load, ir.Store))]
    touched = Counter(n.array.name for n in nodes if isinstance(n.array, ir.Local))
    named = Counter(n.name for n in ir.walk(*code.kernel.body) if isinstance(n, ir.Local))
    parts = [n for n in ir.walk(*code.kernel.body) if isinstance(n, (ir.Load, ir.Store, ir.Size, ir.Stride))]
    named -= Counter(n.array.name for n in parts if isinstance(n.array, ir.Local))
    forwarded = {}
    for ref in dict.fromkeys(p for refs in stores for p in refs if not named[p[0]]):
        first = next(k for k, refs in enumerate(stores) if ref in refs)
        loads = [n for s in loops[first + 1 :] for n in _loads(s) if _element_ref(code, n, s, loop, params) == ref]
        if loads and touched[ref[0]] == len(loads) + sum(ref in refs for refs in stores):
            forwarded[ref] = first
    return forwarded


def _register_owners(
    cached: dict[Ref, int], forwarded: dict[Ref, int], loaded: list[set[Ref]], kinds: dict[Ref, Any]
) -> dict[Ref, Ref]:
    """The element whose registers hold a forwarded store: a cached one that no later loop uses, or itself."""
    last = {p: max(k for k, refs in enumerate(loaded) if p in refs) for p in cached}
    owners, used = dict[Ref, Ref](), set[Ref]()
    for ref, first in sorted(forwarded.items(), key=lambda item: item[1]):
        ended = (p for p in cached if p != ref and last[p] == first and p not in used)
        free = next((p for p in ended if kinds[p].dtype == kinds[ref].dtype), ref)
        used.add(free)
        owners[ref] = owners.get(free, free)
    return owners


def _is_invariant(s: ir.For, loop: ir.For) -> bool:
    """Whether the bounds of a loop are invariant in the parallel loop."""
    changing = assigned_in(*loop.body) | set(loop.variables)
    parts = [x for x in (s.ranges[0].start, s.ranges[0].stop) if x is not None]
    nodes = list(ir.walk(*parts))
    names = {n.name for n in nodes if isinstance(n, ir.Local)}
    return not names & changing and not any(isinstance(n, (ir.Load, ir.Invoke, ir.Atomic)) for n in nodes)


def _in_order(node: Any, loops: list[ir.For]) -> Iterator[Any]:
    """Loads, calls and stores in order of execution. Of other loops than those over the row, whose iterations are
    independent, stores come first: they may reach the loads of the next iteration."""
    nodes = [n for n in ir.walk(node) if isinstance(n, (ir.For, ir.While)) and not any(n is x for x in loops)]
    if nodes and nodes[0] is node:
        stores = [n for n in ir.walk(node) if isinstance(n, ir.Store)]
        yield from stores
        yield from (n for n in ir.walk(node) if isinstance(n, (ir.Load, ir.Invoke)))
        return
    if isinstance(node, ir.Store):
        yield from (n for n in ir.walk(node.value, *node.index) if isinstance(n, (ir.Load, ir.Invoke)))
        yield node
        return
    if isinstance(node, (ir.Load, ir.Invoke)):
        yield from (n for n in ir.walk(node) if isinstance(n, (ir.Load, ir.Invoke)))
        return
    for part in getattr(node, "body", ()) if isinstance(node, ir.For) else ir.children(node):
        yield from _in_order(part, loops)


def _element_ref(code: Emitter, n: ir.Load | ir.Store, s: ir.For, loop: ir.For, params: dict[str, Any]) -> Ref | None:
    """The element of an access to a row of a parameter, if the access is known to be in range."""
    if not isinstance(n.array, ir.Local) or n.array.name not in params:
        return None
    if n.site is not None and n.site not in code.hoisted:
        return None
    inner = {v for x in ir.walk(*loop.body) if isinstance(x, ir.For) for v in x.variables}
    changing, (variable,) = assigned_in(*loop.body) | inner, s.variables
    names = [i.name if isinstance(i, ir.Local) else None for i in n.index]
    if None in names or names.count(variable) != 1 or set(names) - {variable} & changing:
        return None
    return n.array.name, tuple("" if name == variable else str(name) for name in names)


def _last_stores(
    code: Emitter, s: ir.For, loop: ir.For, params: dict[str, Any], refs: set[Ref]
) -> Iterator[tuple[ir.Store, Ref]]:
    """The stores at the end of a loop's body, each the only one into its array. They read only elements that are
    loaded already."""
    stores = Counter(n.array.name for n in ir.walk(*s.body) if isinstance(n, ir.Store))  # type: ignore[union-attr]
    for st in reversed(s.body):
        if not isinstance(st, ir.Store) or st.marks:
            return
        ref = _element_ref(code, st, s, loop, params)
        if ref is None or stores[ref[0]] > 1:
            return
        yield st, ref
        reads = [n for n in ir.walk(st.value, *st.index) if isinstance(n, (ir.Load, ir.Invoke))]
        if not all(isinstance(n, ir.Load) and _element_ref(code, n, s, loop, params) in refs for n in reads):
            return


# ---- text


def index_variables(ref: Ref, variable: str) -> tuple[str, ...]:
    return tuple(name or variable for name in ref[1])


def row_tests(code: Emitter, row: CachedRow) -> Iterator[str]:
    """C tests whether all rows can be read in vectors (`wide`) and cached in registers (`fits`)."""
    (range_,) = row.loops[0].ranges
    yield f"const int64_t row_low = {code.start(range_)};"
    yield f"const int64_t row_size = {code.expr(range_.stop)} - row_low;"  # type: ignore[arg-type]
    tests = [f"row_size % {row.width} == 0"]
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
        mask = min(size * row.width, 16) - 1
        tests.append(f"(({' | '.join([f'(uint64_t)({first})', *others])}) & {mask}) == 0")
    pairs = [(a, b) for a in row.reloaded for b in row.stored if b != a]
    kinds = {p[0]: k for p, k in row.kinds.items()} | {n: k for n, k in code.kernel.params if n in row.stored}
    for n in sorted({n for pair in pairs for n in pair}):
        yield from byte_range(cname(n), kinds[n])
    for a, b in pairs:
        tests.append(f"(high_{cname(a)} <= low_{cname(b)} || high_{cname(b)} <= low_{cname(a)})")
    yield from conjunction("const bool wide = ", tests, ";")
    yield "int bits = few ? 8 : PA_WARP_BITS; /* 1 << bits threads cache a row */"
    yield f"while (bits < 8 && row_size > ({row.elements} << bits)) bits += PA_TEAM_STEP;"
    yield f"const bool fits = wide && row_size <= ({row.elements} << bits);"


def cached_row_team(row: CachedRow) -> str:
    """The team of a cached row: no more warps than it needs, so that a block has several rows in flight. Each
    warp has a contiguous part of the row. The strides between a thread's elements are constants, whatever the
    number of warps; otherwise their addresses would take registers."""
    return f"""\
const int team = 1 << bits, warps = team >> PA_WARP_BITS, rank = (int)threadIdx.x & (team - 1);
const int64_t teams = (int64_t)gridDim.x << (8 - bits);
const int64_t first_team = ((int64_t)blockIdx.x << (8 - bits)) + ((int)threadIdx.x >> bits);
const int vectors = ((int)row_size / {row.width} + team - 1) >> bits; /* of a thread */
const int part = vectors * PA_WARP * {row.width};
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
    first, test = f"begin + c * (PA_WARP * {row.width})", "first < end"
    if streamed is not None:
        first = f"c * (team * {row.width})"
        test = f"{f'c < {count // 2} || ' if count > 1 else ''}first < row_size"

    def each_vector(inner: Callable[[], None]) -> None:
        out.line("#pragma unroll")
        with out.block(f"for (int c = 0; c < {count}; ++c)"):
            out.line(f"const int first = {first};")
            with out.block(f"if ({test})"):
                inner()

    for ref in (p for p in row.loads[k] if row.cached.get(p) == k):  # all loads are in flight at once
        load = _load(row, ref, ref in (streamed or ()))
        each_vector(functools.partial(out.line, f"cached{_number(row, ref)}[c] = {load};"))
    others = [p for p in row.loads[k] if p not in row.cached]
    each_vector(lambda: _elements(out, row, k, others, vector, True, streamed or frozenset()))


def uncached_row_loop(out: Printer, row: CachedRow, s: ir.For, vector: Callable[[], None]) -> None:
    """The same for a row that isn't cached."""
    k = row.number(s)
    out.line(f"#pragma unroll {max(1, _IN_FLIGHT // max(len(row.loads[k]), 1))}")
    step = f"first += team * {row.width}"
    with out.block(f"for (int64_t first = rank * {row.width}; first < row_size; {step})"):
        _elements(out, row, k, row.loads[k], vector)


def _load(row: CachedRow, ref: Ref, streamed: bool) -> str:
    vector, at = _vector(row, ref), f"row{_number(row, ref)} + first"
    return f"pa_load_streamed<{vector}>({at})" if streamed else f"*(const {vector} *)({at})"


def _elements(
    out: Printer,
    row: CachedRow,
    k: int,
    used: Sequence[Ref],
    vector: Callable[[], None],
    cached: bool = False,
    streamed: frozenset[Ref] = frozenset(),
) -> None:
    """The elements of one vector: loads of those `used`, the `vector`'s code, stores."""
    for ref in used:
        kind, at = _vector(row, ref), f"row{_number(row, ref)} + first"
        load = f"pa_load_past<{kind}>({at})" if ref in row.cached else _load(row, ref, ref in streamed)
        out.line(f"const {kind} loaded{_number(row, ref)} = {load};")
    out.lines(f"{_vector(row, p)} stored{_number(row, p)};" for p in row.stores[k])
    vector()
    for ref in row.stores[k]:
        n = _number(row, ref)
        if cached and ref in row.registers_of and any(ref in refs for refs in row.loads[k + 1 :]):
            out.line(f"{_register(row, ref)}[c] = stored{n};")
        if not cached or _is_stored(row, ref, k):
            at = f"row{n} + first"
            plain = f"*({_vector(row, ref)} *)({at}) = stored{n};"
            out.line(f"pa_store_streamed({at}, stored{n});" if ref in streamed else plain)
