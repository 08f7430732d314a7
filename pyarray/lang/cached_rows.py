"""Rows of an iteration that a team of a GPU's threads reads in vectors, and caches in registers if several unordered
loops load the same elements.

Elements that several loops load are loaded once: each thread has the same elements of the row in every loop. Stores of
one loop that later ones load (the exponentials of a softmax) are forwarded in registers, and left out if a later loop
stores there again. The text is in `emit_cached_rows.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from . import ir
from .assertions import unasserted
from .delinearization import Split, find_split
from .emit_statements import Emitter
from .emit_vectorized import always_evaluated
from .summaries import assigned_in, changing_in, has_any

WIDEST = 8  # elements of a vector, at most
MAX_ELEMENTS = 64  # elements of a row in a thread's registers
_CACHED_BYTES = 128  # of a thread's registers, about half of them: a block of 256 caches rows of 8192 float32

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
    plain: bool = False  # whether all elements are loaded and stored where they are used
    widest: int = WIDEST  # elements of a vector, at most
    ends_early: bool = False  # whether it may be much shorter than what its team could cache

    def number(self, loop: ir.For) -> int:
        """Which of the loops it is."""
        return next(k for k, x in enumerate(self.loops) if x is loop)

    @property
    def width(self) -> int:
        """Elements of a vector."""
        return min(16 // min(16, *(kind.dtype.itemsize for kind in self.kinds.values())), self.widest)


def find_row(code: Emitter, loop: ir.For, shared: list[ir.For]) -> CachedRow | None:
    """The row that an iteration of a parallel loop caches in registers, or reads in vectors; None if there is none.

    Assertions change nothing of it: sums have the same order in debug mode. Those that load elements find them in
    memory, as all of the loop's do then: the row is `plain`."""
    bare = replace(loop, body=unasserted(loop.body))
    loops = [s for s in loop.body if isinstance(s, ir.For)]
    of_bare = dict(zip((id(s) for s in loops), (s for s in bare.body if isinstance(s, ir.For)), strict=True))
    row = _find_row(code, bare, [of_bare[id(s)] for s in loops if any(s is x for x in shared)])
    if row is None:
        return None
    asserted = (n for n in ir.walk(*loop.body) if isinstance(n, ir.Assert))
    plain = has_any(asserted, ir.Load, ir.Invoke)
    return replace(row, loops=tuple(s for s in loops if any(of_bare[id(s)] is x for x in row.loops)), plain=plain)


def _find_row(code: Emitter, loop: ir.For, inner: list[ir.For]) -> CachedRow | None:
    """The same of a loop without assertions, of these unordered loops in its body."""
    loops = [s for s in inner if is_invariant(s, loop)]
    nodes = list(ir.walk(*loop.body))
    if not loops or any(isinstance(n, ir.Atomic) for n in nodes):
        return None
    order = [n for s in loop.body for n in _in_order(s, loops)]
    first = next((k for k, n in enumerate(order) if isinstance(n, ir.Store)), len(order))
    written = {n.array.name if isinstance(n.array, ir.Local) else "" for n in order if isinstance(n, ir.Store)}
    params = _constant_params(code)
    only_params = written <= params.keys()
    before = {id(n) for n in order[:first]}
    kinds, reloaded = dict[Ref, Any](), set[str]()
    loaded, refused = list[set[Ref]](), set[Ref]()
    for s in loops:
        unconditional, refs = {id(n) for st in s.body for n in always_evaluated(st)}, set[Ref]()
        for n in _loads(s):
            ref = element_ref(code, n, s, loop, params)
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
        other_loads -= {id(n) for n in _loads(s) if element_ref(code, n, s, loop, params) in in_registers}
    forwarded = {} if other_loads else _forwarded_stores(code, loop, loops, stores, params)
    for ref, k in forwarded.items():
        reloaded.add(ref[0])
        for refs, s in zip(loaded[k + 1 :], loops[k + 1 :], strict=True):
            refs |= {ref} & {element_ref(code, n, s, loop, params) for n in _loads(s)}
    load_counts = Counter(ref for refs in loaded for ref in sorted(refs))  # in an order that no hash changes
    reused = [ref for ref, n in load_counts.items() if n > 1]
    cached = {ref: next(k for k, refs in enumerate(loaded) if ref in refs) for ref in reused} | forwarded
    owners = _register_owners(cached, forwarded, loaded, kinds)
    elements = MAX_ELEMENTS
    while elements * sum(kinds[p].dtype.itemsize for p in cached if owners.get(p, p) == p) > _CACHED_BYTES:
        elements //= 2
    loads = tuple(tuple(sorted(refs)) for refs in loaded)
    kinds = {p: k for p, k in kinds.items() if p in load_counts or any(p in refs for refs in stores)}
    reloaded &= {p[0] for p in load_counts}
    stored = tuple(sorted(written)) if reloaded else ()
    reloaded_arrays = tuple(sorted(reloaded))
    row = CachedRow(tuple(loops), cached, owners, loads, tuple(stores), kinds, stored, reloaded_arrays, elements)
    return row if elements >= 8 and (cached or (kinds and row.width > 1)) else None


def find_loop_row(code: Emitter, s: ir.For, pure: set[str]) -> CachedRow | None:
    """The row that a loop which only reads takes in vectors, by itself: its bounds may differ between iterations of the
    parallel loop. None if there is none. `pure` functions change nothing. In debug mode sums have the same order: where
    accesses are checked one by one, the row is `plain`."""
    body = unasserted(s.body)
    bare, nodes = replace(s, body=body), list(ir.walk(*body))
    impure = any(isinstance(n, ir.Invoke) and n.function not in pure for n in nodes)
    if impure or any(isinstance(n, (ir.Store, ir.Atomic)) for n in nodes) or isinstance(find_split(s), Split):
        return None
    params, unconditional = _constant_params(code), (n for st in body for n in always_evaluated(st))
    loads = [n for n in unconditional if isinstance(n, ir.Load)]
    found = ((_element(n, bare, bare, params), n.array.type) for n in loads)
    kinds = {ref: kind for ref, kind in found if ref is not None and _may_be_dense(kind, ref)}
    asserted = has_any((n for n in ir.walk(*s.body) if isinstance(n, ir.Assert)), ir.Load, ir.Invoke)
    plain = asserted or not all(_is_in_range(code, n) for n in loads)
    row = CachedRow((s,), {}, {}, (tuple(sorted(kinds)),), ((),), kinds, (), (), MAX_ELEMENTS, plain)
    return row if kinds and row.width > 1 else None


def _constant_params(code: Emitter) -> dict[str, Any]:
    """The parameters that the kernel doesn't assign, with their types."""
    inside = assigned_in(*code.kernel.body)
    return {n: k for n, k in code.kernel.params if n not in inside}


def _may_be_dense(kind: Any, ref: Ref) -> bool:
    """Whether elements along the loop's axis may be neighbours in memory."""
    return kind.strided or ref[1][-1] == ""


def _loads(s: ir.For) -> Iterator[ir.Load]:
    return (n for n in ir.walk(*s.body) if isinstance(n, ir.Load))


def _forwarded_stores(
    code: Emitter, loop: ir.For, loops: list[ir.For], stores: list[tuple[Ref, ...]], params: dict[str, Any]
) -> dict[Ref, int]:
    """Stores that later loops load, with the number of the first loop that stores there: those to arrays that
    nothing else in the iteration loads or stores, and that have no other name."""
    nodes = [n for n in ir.walk(*loop.body) if isinstance(n, (ir.Load, ir.Store))]
    touched = Counter(n.array.name for n in nodes if isinstance(n.array, ir.Local))
    kernel = unasserted(code.kernel.body)
    named = Counter(n.name for n in ir.walk(*kernel) if isinstance(n, ir.Local))
    parts = [n for n in ir.walk(*kernel) if isinstance(n, (ir.Load, ir.Store, ir.Size, ir.Stride))]
    named -= Counter(n.array.name for n in parts if isinstance(n.array, ir.Local))
    forwarded = {}
    for ref in dict.fromkeys(p for refs in stores for p in refs if not named[p[0]]):
        first = next(k for k, refs in enumerate(stores) if ref in refs)
        loads = [n for s in loops[first + 1 :] for n in _loads(s) if element_ref(code, n, s, loop, params) == ref]
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


def is_invariant(s: ir.For, loop: ir.For) -> bool:
    """Whether the bounds of a loop are invariant in the parallel loop."""
    changing = changing_in(*loop.body) | set(loop.variables)
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


def element_ref(code: Emitter, n: ir.Load | ir.Store, s: ir.For, loop: ir.For, params: dict[str, Any]) -> Ref | None:
    """The element of an access to a row of a parameter, if the access is known to be in range. The rest of its index
    is the same in an iteration of `loop`."""
    return _element(n, s, loop, params) if _is_in_range(code, n) else None


def _is_in_range(code: Emitter, n: ir.Load | ir.Store) -> bool:
    return n.site is None or n.site in code.hoisted


def _element(n: ir.Load | ir.Store, s: ir.For, loop: ir.For, params: dict[str, Any]) -> Ref | None:
    """The same of an access that may not be in range."""
    if not isinstance(n.array, ir.Local) or n.array.name not in params:
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
        ref = element_ref(code, st, s, loop, params)
        if ref is None or stores[ref[0]] > 1:
            return
        yield st, ref
        reads = [n for n in ir.walk(st.value, *st.index) if isinstance(n, (ir.Load, ir.Invoke))]
        if not all(isinstance(n, ir.Load) and element_ref(code, n, s, loop, params) in refs for n in reads):
            return


def index_variables(ref: Ref, variable: str) -> tuple[str, ...]:
    return tuple(name or variable for name in ref[1])
