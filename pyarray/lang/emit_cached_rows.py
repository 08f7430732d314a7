"""C text that keeps a row in registers, for an iteration in which a team runs over one row several times.

What several of its unordered loops load is loaded once, in vectors of 16 bytes. Each thread has the same
elements of the row in every loop. Rows that are too long for the registers are loaded again in each loop;
rows that aren't dense or aligned take the general text. What one loop stores and later ones load (the
exponentials of a softmax) is forwarded in registers, and not stored if a later loop stores there."""

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

MAX_ELEMENTS = 64  # elements of a row that a thread keeps at most
MIN_BLOCKS = 3  # of a processor at a time: 80 registers for a thread
_BYTES = 128  # of all that a thread keeps, half of them: a block of 256 has rows of 8192 float32
_IN_FLIGHT = 4  # vectors of an array in flight at once, of a row that isn't cached

Ref = tuple[str, tuple[str, ...]]  # an array and the variables of an index; "" is that of the row's loop


@dataclass(frozen=True)
class CachedRow:
    """`loops` run over the row; `loads` are the elements that each loads unconditionally, `stores` those that it
    fills. An element in `cached` is first loaded by the loop of that number. One in `registers_of` is stored by
    that loop instead; its value there says whose registers hold it: its own, or those of an element last used
    there. Arrays in `reloaded` are read after those in `stored` are written, so they must not alias."""

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
    """The row that an iteration of a parallel loop keeps in registers; None if there is nothing to keep."""
    inner = [s for s in loop.body if isinstance(s, ir.For) and any(s is x for x in shared)]
    loops = [s for s in inner if _is_invariant(s, loop)]
    nodes = list(ir.walk(*loop.body))
    if len(loops) < 2 or any(isinstance(n, ir.Atomic) for n in nodes):
        return None
    order = [n for s in loop.body for n in _in_order(s, loops)]
    first = next((k for k, n in enumerate(order) if isinstance(n, ir.Store)), len(order))
    written = {n.array.name if isinstance(n.array, ir.Local) else "" for n in order if isinstance(n, ir.Store)}
    inside = ir.assigned(*code.kernel.body)
    params = {n: k for n, k in code.kernel.params if n not in inside}
    known = written <= params.keys()
    before = {id(n) for n in order[:first]}
    kinds, reloaded = dict[Ref, Any](), set[str]()
    loaded, refused = list[set[Ref]](), set[Ref]()
    for s in loops:
        sure, own = {id(n) for st in s.body for n in always_evaluated(st)}, set[Ref]()
        for n in _loads(s):
            ref = _ref(code, n, s, loop, params)
            if ref is None:
                continue
            if id(n) not in before and (not known or ref[0] in written):
                refused.add(ref)
            elif id(n) in sure:
                own.add(ref)
                kinds[ref] = n.array.type
                reloaded |= set() if id(n) in before else {ref[0]}
        loaded.append(own)
    loaded = [own - refused for own in loaded]
    stores = []
    for s, own in zip(loops, loaded, strict=True):
        last = _last_stores(code, s, loop, params, own) if known else ()
        refs = {p: n.array.type for n, p in last}
        kinds |= refs
        stores.append(tuple(refs))
    elsewhere = {id(n) for n in nodes if isinstance(n, (ir.Load, ir.Invoke))} - before
    for own, s in zip(loaded, loops, strict=True):
        found = own.union(*stores)
        elsewhere -= {id(n) for n in _loads(s) if _ref(code, n, s, loop, params) in found}
    forwarded = {} if elsewhere else _forwarded_stores(code, loop, loops, stores, params)
    for ref, k in forwarded.items():
        reloaded.add(ref[0])
        for own, s in zip(loaded[k + 1 :], loops[k + 1 :], strict=True):
            own |= {ref} & {_ref(code, n, s, loop, params) for n in _loads(s)}
    times = Counter(ref for own in loaded for ref in sorted(own))  # in an order that no hash changes
    again = [ref for ref, n in times.items() if n > 1]
    cached = {ref: next(k for k, own in enumerate(loaded) if ref in own) for ref in again} | forwarded
    owners = _register_owners(cached, forwarded, loaded, kinds)
    elements = MAX_ELEMENTS
    while elements * sum(kinds[p].dtype.itemsize for p in cached if owners.get(p, p) == p) > _BYTES:
        elements //= 2
    if not cached or elements < 8:
        return None
    loads = tuple(tuple(sorted(own)) for own in loaded)
    kinds = {p: k for p, k in kinds.items() if p in times or any(p in refs for refs in stores)}
    reloaded &= {p[0] for p in times}
    stored = tuple(sorted(written)) if reloaded else ()
    late = tuple(sorted(reloaded))
    return CachedRow(tuple(loops), cached, owners, loads, tuple(stores), kinds, stored, late, elements)


def _loads(s: ir.For) -> Iterator[ir.Load]:
    return (n for n in ir.walk(*s.body) if isinstance(n, ir.Load))


def _forwarded_stores(
    code: Emitter, loop: ir.For, loops: list[ir.For], stores: list[tuple[Ref, ...]], params: dict[str, Any]
) -> dict[Ref, int]:
    """Elements that one loop stores and later ones load, with the number of the first loop that stores there.
    The iteration loads and stores the array nowhere else, and the array has no other name."""
    nodes = [n for n in ir.walk(*loop.body) if isinstance(n, (ir.Load, ir.Store))]
    touched = Counter(n.array.name for n in nodes if isinstance(n.array, ir.Local))
    named = Counter(n.name for n in ir.walk(*code.kernel.body) if isinstance(n, ir.Local))
    parts = [n for n in ir.walk(*code.kernel.body) if isinstance(n, (ir.Load, ir.Store, ir.Size, ir.Stride))]
    named -= Counter(n.array.name for n in parts if isinstance(n.array, ir.Local))
    forwarded = {}
    for ref in dict.fromkeys(p for refs in stores for p in refs if not named[p[0]]):
        first = next(k for k, refs in enumerate(stores) if ref in refs)
        loads = [n for s in loops[first + 1 :] for n in _loads(s) if _ref(code, n, s, loop, params) == ref]
        if loads and touched[ref[0]] == len(loads) + sum(ref in refs for refs in stores):
            forwarded[ref] = first
    return forwarded


def _register_owners(
    cached: dict[Ref, int], forwarded: dict[Ref, int], loaded: list[set[Ref]], kinds: dict[Ref, Any]
) -> dict[Ref, Ref]:
    """Whose registers hold what a loop stores: those of a cached element that no later loop uses, if there is one."""
    last = {p: max(k for k, own in enumerate(loaded) if p in own) for p in cached}
    owners, used = dict[Ref, Ref](), set[Ref]()
    for ref, first in sorted(forwarded.items(), key=lambda item: item[1]):
        ended = (p for p in cached if p != ref and last[p] == first and p not in used)
        free = next((p for p in ended if kinds[p].dtype == kinds[ref].dtype), ref)
        used.add(free)
        owners[ref] = owners.get(free, free)
    return owners


def _is_invariant(s: ir.For, loop: ir.For) -> bool:
    """Whether the bounds of a loop are invariant in the parallel loop."""
    changing = ir.assigned(*loop.body) | set(loop.variables)
    parts = [x for x in (s.ranges[0].start, s.ranges[0].stop) if x is not None]
    nodes = list(ir.walk(*parts))
    names = {n.name for n in nodes if isinstance(n, ir.Local)}
    return not names & changing and not any(isinstance(n, (ir.Load, ir.Invoke, ir.Atomic)) for n in nodes)


def _in_order(node: Any, loops: list[ir.For]) -> Iterator[Any]:
    """Loads, calls and stores in order. What a loop stores comes before what it loads, except in a loop over the
    row, whose iterations are independent."""
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


def _ref(code: Emitter, n: ir.Load | ir.Store, s: ir.For, loop: ir.For, params: dict[str, Any]) -> Ref | None:
    """The element reference of an access to a parameter's row, if it is known to be in range."""
    if not isinstance(n.array, ir.Local) or n.array.name not in params:
        return None
    if n.site is not None and n.site not in code.hoisted:
        return None
    inner = {v for x in ir.walk(*loop.body) if isinstance(x, ir.For) for v in x.variables}
    changing, (variable,) = ir.assigned(*loop.body) | inner, s.variables
    names = [i.name if isinstance(i, ir.Local) else None for i in n.index]
    if None in names or names.count(variable) != 1 or set(names) - {variable} & changing:
        return None
    return n.array.name, tuple("" if name == variable else str(name) for name in names)


def _last_stores(
    code: Emitter, s: ir.For, loop: ir.For, params: dict[str, Any], own: set[Ref]
) -> Iterator[tuple[ir.Store, Ref]]:
    """The stores that end a loop's body, each the only one into its array. After them only elements are read
    that are loaded already."""
    stores = Counter(n.array.name for n in ir.walk(*s.body) if isinstance(n, ir.Store))  # type: ignore[union-attr]
    for st in reversed(s.body):
        if not isinstance(st, ir.Store) or st.marks:
            return
        ref = _ref(code, st, s, loop, params)
        if ref is None or stores[ref[0]] > 1:
            return
        yield st, ref
        reads = [n for n in ir.walk(st.value, *st.index) if isinstance(n, (ir.Load, ir.Invoke))]
        if not all(isinstance(n, ir.Load) and _ref(code, n, s, loop, params) in own for n in reads):
            return


# ---- text


def index_variables(ref: Ref, variable: str) -> tuple[str, ...]:
    return tuple(name or variable for name in ref[1])


def row_tests(code: Emitter, row: CachedRow) -> Iterator[str]:
    """C tests whether all rows can be read in vectors (`wide`) and kept in registers (`fits`)."""
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
    yield "int bits = few ? 8 : PA_WARP_BITS; /* 1 << bits threads keep a row */"
    yield f"while (bits < 8 && row_size > ({row.elements} << bits)) bits += PA_TEAM_STEP;"
    yield f"const bool fits = wide && row_size <= ({row.elements} << bits);"


def cached_row_team(row: CachedRow) -> str:
    """The team of a cached row: no more warps than it needs, so that a block has several rows in flight. Each
    warp has a contiguous part of the row. A thread's elements in it are constants apart, whatever the number of
    warps; otherwise their addresses would take registers."""
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
    return f"keep{_number(row, row.registers_of.get(ref, ref))}"


def loaded_registers(row: CachedRow, s: ir.For, fits: bool) -> dict[Ref, str]:
    """Elements that the loop's body finds in registers, as C text. `fits`: the row is cached."""
    k, (variable,) = row.number(s), s.variables
    texts = {
        p: f"{_register(row, p)}[c].v[j]" if fits and p in row.cached else f"take{_number(row, p)}.v[j]"
        for p in row.loads[k]
    }
    return {(p[0], index_variables(p, variable)): text for p, text in texts.items()}


def stored_registers(row: CachedRow, s: ir.For) -> dict[Ref, str]:
    """The registers that take the elements which the loop fills, as C text."""
    k, (variable,) = row.number(s), s.variables
    return {(p[0], index_variables(p, variable)): f"give{_number(row, p)}.v[j]" for p in row.stores[k]}


def only_forwards(row: CachedRow, s: ir.For) -> bool:
    """Whether a loop over the cached row stores registers at most."""
    k = next((k for k, x in enumerate(row.loops) if x is s), None)
    stores = sum(isinstance(n, ir.Store) for n in ir.walk(*s.body))
    return k is not None and stores == len(row.stores[k]) and not any(_is_stored(row, p, k) for p in row.stores[k])


def _is_stored(row: CachedRow, ref: Ref, k: int) -> bool:
    """Whether loop `k` over the cached row stores the element to memory: no later one does."""
    return ref not in row.registers_of or not any(ref in refs for refs in row.stores[k + 1 :])


def cached_row_loop(
    out: Printer, row: CachedRow, s: ir.For, body: Callable[[], None], streamed: frozenset[Ref] | None
) -> None:
    """The loop over a thread's elements of a cached row; `body` prints what is done with one. `streamed`: a block
    keeps the row, which is longer than half of what it can keep, and these elements pass by the caches."""
    k, count = row.number(s), row.elements // row.width
    first, test = f"begin + c * (PA_WARP * {row.width})", "first < end"
    if streamed is not None:
        first = f"c * (PA_BLOCK_SIZE * {row.width})"
        test = f"{f'c < {count // 2} || ' if count > 1 else ''}first < row_size"

    def each_vector(inner: Callable[[], None]) -> None:
        out.line("#pragma unroll")
        with out.block(f"for (int c = 0; c < {count}; ++c)"):
            out.line(f"const int first = {first};")
            with out.block(f"if ({test})"):
                inner()

    for ref in (p for p in row.loads[k] if row.cached.get(p) == k):  # all loads are in flight at once
        load = _load(row, ref, ref in (streamed or ()))
        each_vector(functools.partial(out.line, f"keep{_number(row, ref)}[c] = {load};"))
    others = [p for p in row.loads[k] if p not in row.cached]
    each_vector(lambda: _elements(out, row, k, others, body, True, streamed or frozenset()))


def uncached_row_loop(out: Printer, row: CachedRow, s: ir.For, body: Callable[[], None]) -> None:
    """The same for a row that isn't cached."""
    k = row.number(s)
    out.line(f"#pragma unroll {max(1, _IN_FLIGHT // max(len(row.loads[k]), 1))}")
    step = f"first += team * {row.width}"
    with out.block(f"for (int64_t first = rank * {row.width}; first < row_size; {step})"):
        _elements(out, row, k, row.loads[k], body)


def _load(row: CachedRow, ref: Ref, streamed: bool) -> str:
    vector, at = _vector(row, ref), f"row{_number(row, ref)} + first"
    return f"pa_load_streamed<{vector}>({at})" if streamed else f"*(const {vector} *)({at})"


def _elements(
    out: Printer,
    row: CachedRow,
    k: int,
    used: Sequence[Ref],
    body: Callable[[], None],
    cached: bool = False,
    streamed: frozenset[Ref] = frozenset(),
) -> None:
    """The elements of one vector: loads of those `used`, the body for each, stores."""
    (variable,) = row.loops[k].variables
    for ref in used:
        vector, at = _vector(row, ref), f"row{_number(row, ref)} + first"
        load = f"pa_load_past<{vector}>({at})" if ref in row.cached else _load(row, ref, ref in streamed)
        out.line(f"const {vector} take{_number(row, ref)} = {load};")
    out.lines(f"{_vector(row, p)} give{_number(row, p)};" for p in row.stores[k])
    out.line("#pragma unroll")
    with out.block(f"for (int j = 0; j < {row.width}; ++j)"):
        out.line(f"const int64_t {cname(variable)} = row_low + first + j;")
        body()
    for ref in row.stores[k]:
        n = _number(row, ref)
        if cached and ref in row.registers_of and any(ref in own for own in row.loads[k + 1 :]):
            out.line(f"{_register(row, ref)}[c] = give{n};")
        if not cached or _is_stored(row, ref, k):
            at = f"row{n} + first"
            plain = f"*({_vector(row, ref)} *)({at}) = give{n};"
            out.line(f"pa_store_streamed({at}, give{n});" if ref in streamed else plain)
