"""A team's iteration that runs over one row several times: what several of its unordered loops load is loaded
once, in vectors of 16 bytes, and kept in registers.

Each thread has the same elements of the row in every loop. Rows that are too long for the registers are
loaded anew in each loop; those that aren't dense or aligned take the text of every team. What one loop stores
and later ones load, as the exponentials of a softmax, is kept likewise, and not stored if a later loop stores
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import emit_views as views
from .emit_noalias import byte_range
from .emit_statements import Code, cname
from .emit_vectorized import always
from .ir import (
    Atomic,
    For,
    Function,
    Invoke,
    Load,
    Local,
    Size,
    Store,
    Stride,
    While,
    assigned,
    children,
    walk,
)
from .loop_dependences import key_of

SLOTS = 64  # elements of a row that a thread keeps at most
BLOCKS = 3  # of a processor at a time: 80 registers for a thread
_BYTES = 128  # of all that a thread keeps, half of them: a block of 256 has rows of 8192 float32
_STREAMED = 4  # vectors of an array that are on their way at once, of a row that isn't kept

Place = tuple[str, tuple[str, ...]]  # an array and the variables of an index; "" is that of the row's loop


@dataclass(frozen=True)
class Row:
    """`loops` run over the row; `uses` are the elements that each loads whatever comes, `stores` those that
    it fills. What is `kept` is first loaded by the loop of that number, or stored by it if it is in `made`,
    which says whose registers it takes: of a place that is last used there, or its own. The arrays in `late`
    are read after those in `early` are written, so they must not share memory."""

    loops: tuple[For, ...]
    kept: dict[Place, int]
    made: dict[Place, Place]
    uses: tuple[tuple[Place, ...], ...]
    stores: tuple[tuple[Place, ...], ...]
    kinds: dict[Place, Any]
    early: tuple[str, ...]
    late: tuple[str, ...]
    slots: int

    @property
    def share(self) -> int:
        """Elements of a vector."""
        return min(16 // min(16, *(kind.dtype.itemsize for kind in self.kinds.values())), 8)


def find_row(code: Code, kernel: Function, loop: For, shared: list[For]) -> Row | None:
    """What a parallel loop's iteration keeps of its row; None where it keeps nothing."""
    loops = [s for s in loop.body if any(s is x for x in shared) and isinstance(s, For) and _plain(s, loop)]
    nodes = [n for s in loop.body for n in walk(s)]
    if len(loops) < 2 or any(isinstance(n, Atomic) for n in nodes):
        return None
    order = [n for s in loop.body for n in _order(s, loops)]
    first = next((k for k, n in enumerate(order) if isinstance(n, Store)), len(order))
    written = {n.array.name if isinstance(n.array, Local) else "" for n in order if isinstance(n, Store)}
    inside = assigned(*kernel.body)
    params = {n: k for n, k in kernel.params if n not in inside}
    known = written <= params.keys()
    before = {id(n) for n in order[:first]}
    kinds, late = dict[Place, Any](), set[str]()
    found, refused = list[set[Place]](), set[Place]()
    for s in loops:
        sure = {id(n) for st in s.body for n in always(st)}
        own = set()
        for n in _loads(s):
            place = _place(code, n, s, loop, params)
            if place is None:
                continue
            if id(n) not in before and (not known or place[0] in written):
                refused.add(place)
            elif id(n) in sure:
                own.add(place)
                kinds[place] = n.array.type
                late |= set() if id(n) in before else {place[0]}
        found.append(own)
    found = [own - refused for own in found]
    stores = []
    for s, own in zip(loops, found, strict=True):
        last = _last_stores(code, s, loop, params, own) if known else ()
        places = {p: n.array.type for n, p in last}
        kinds |= places
        stores.append(tuple(places))
    elsewhere = {id(n) for n in nodes if isinstance(n, (Load, Invoke))} - before
    for own, s in zip(found, loops, strict=True):
        known_places = own.union(*stores)
        elsewhere -= {id(n) for n in _loads(s) if _place(code, n, s, loop, params) in known_places}
    made = {} if elsewhere else _made(code, kernel, loop, loops, stores, params)
    for place, k in made.items():
        late.add(place[0])
        for own, s in zip(found[k + 1 :], loops[k + 1 :], strict=True):
            own |= {place} & {_place(code, n, s, loop, params) for n in _loads(s)}
    times = Counter(place for own in found for place in own)
    kept = {p: next(k for k, own in enumerate(found) if p in own) for p, n in times.items() if n > 1} | made
    homes = _homes(kept, made, found, kinds)
    slots = SLOTS
    while slots * sum(kinds[p].dtype.itemsize for p in kept if homes.get(p, p) == p) > _BYTES:
        slots //= 2
    if not kept or slots < 8:
        return None
    uses = tuple(tuple(sorted(own)) for own in found)
    kinds = {p: k for p, k in kinds.items() if p in times or any(p in places for places in stores)}
    late &= {p[0] for p in times}
    early = tuple(sorted(written)) if late else ()
    return Row(tuple(loops), kept, homes, uses, tuple(stores), kinds, early, tuple(sorted(late)), slots)


def _loads(s: For) -> Iterator[Load]:
    return (n for st in s.body for n in walk(st) if isinstance(n, Load))


def _made(
    code: Code,
    kernel: Function,
    loop: For,
    loops: list[For],
    stores: list[tuple[Place, ...]],
    params: dict[str, Any],
) -> dict[Place, int]:
    """Places that one loop stores and later ones load, and the number of the first that stores there. In the
    iteration the array is loaded and stored nowhere else, and it has no other name."""
    nodes = [n for st in loop.body for n in walk(st) if isinstance(n, (Load, Store))]
    touched = Counter(n.array.name for n in nodes if isinstance(n.array, Local))
    named = Counter(n.name for st in kernel.body for n in walk(st) if isinstance(n, Local))
    parts = [n for st in kernel.body for n in walk(st) if isinstance(n, (Load, Store, Size, Stride))]
    named -= Counter(n.array.name for n in parts if isinstance(n.array, Local))
    made = {}
    for place in {p for places in stores for p in places if not named[p[0]]}:
        first = next(k for k, places in enumerate(stores) if place in places)
        loads = [
            n for s in loops[first + 1 :] for n in _loads(s) if _place(code, n, s, loop, params) == place
        ]
        if loads and touched[place[0]] == len(loads) + sum(place in places for places in stores):
            made[place] = first
    return made


def _homes(
    kept: dict[Place, int], made: dict[Place, int], found: list[set[Place]], kinds: dict[Place, Any]
) -> dict[Place, Place]:
    """Whose registers hold what a loop makes: of a kept place that no later loop uses, if there is one."""
    last = {p: max(k for k, own in enumerate(found) if p in own) for p in kept}
    homes, taken = dict[Place, Place](), set[Place]()
    for place, first in sorted(made.items(), key=lambda item: item[1]):
        ended = (p for p in kept if p != place and last[p] == first and p not in taken)
        free = next((p for p in ended if kinds[p].dtype == kinds[place].dtype), place)
        taken.add(free)
        homes[place] = homes.get(free, free)
    return homes


def _plain(s: For, loop: For) -> bool:
    """Whether the bounds of a loop are the same in all iterations."""
    changing = assigned(*loop.body) | set(loop.variables)
    parts = [x for x in (s.ranges[0].start, s.ranges[0].stop) if x is not None]
    nodes = [n for x in parts for n in walk(x)]
    names = {n.name for n in nodes if isinstance(n, Local)}
    return not names & changing and not any(isinstance(n, (Load, Invoke, Atomic)) for n in nodes)


def _order(node: Any, loops: list[For]) -> Iterator[Any]:
    """Loads, calls and stores as they come. What a loop stores comes before what it loads, but in one over
    the row, whose iterations have nothing to do with each other."""
    nodes = [n for n in walk(node) if isinstance(n, (For, While)) and not any(n is x for x in loops)]
    if nodes and nodes[0] is node:
        stores = [n for n in walk(node) if isinstance(n, Store)]
        yield from stores
        yield from (n for n in walk(node) if isinstance(n, (Load, Invoke)))
        return
    if isinstance(node, Store):
        yield from (
            n for part in (node.value, *node.index) for n in walk(part) if isinstance(n, (Load, Invoke))
        )
        yield node
        return
    if isinstance(node, (Load, Invoke)):
        yield from (n for n in walk(node) if isinstance(n, (Load, Invoke)))
        return
    for part in getattr(node, "body", ()) if isinstance(node, For) else children(node):
        yield from _order(part, loops)


def _place(code: Code, n: Load | Store, s: For, loop: For, params: dict[str, Any]) -> Place | None:
    """The place of an access to a parameter's row, if it is known to be inside."""
    if not isinstance(n.array, Local) or n.array.name not in params:
        return None
    if n.site is not None and n.site not in code.hoisted:
        return None
    inner = {v for st in loop.body for x in walk(st) if isinstance(x, For) for v in x.variables}
    changing, (variable,) = assigned(*loop.body) | inner, s.variables
    names = [i.name if isinstance(i, Local) else None for i in n.index]
    if None in names or names.count(variable) != 1 or set(names) - {variable} & changing:
        return None
    return n.array.name, tuple("" if name == variable else str(name) for name in names)


def _last_stores(
    code: Code, s: For, loop: For, params: dict[str, Any], own: set[Place]
) -> Iterator[tuple[Store, Place]]:
    """The stores that end a loop's body, each the only one into its array, behind which nothing is read but
    what is loaded already."""
    stores = Counter(n.array.name for st in s.body for n in walk(st) if isinstance(n, Store))  # type: ignore[union-attr]
    for st in reversed(s.body):
        if not isinstance(st, Store) or st.marks:
            return
        place = _place(code, st, s, loop, params)
        if place is None or stores[place[0]] > 1:
            return
        yield st, place
        reads = [n for part in (st.value, *st.index) for n in walk(part) if isinstance(n, (Load, Invoke))]
        if not all(isinstance(n, Load) and _place(code, n, s, loop, params) in own for n in reads):
            return


# ---- text


def index_of(place: Place, variable: str) -> tuple[str, ...]:
    return tuple(name or variable for name in place[1])


def prepare(code: Code, kernel: Function, row: Row, pad: str) -> str:
    """Whether all rows are taken in vectors, and kept."""
    (reach,) = row.loops[0].ranges
    text = f"{pad}const int64_t row_low = {code.expr(reach.start) if reach.start is not None else '0'};\n"
    text += f"{pad}const int64_t row_size = {code.expr(reach.stop)} - row_low;\n"  # type: ignore[arg-type]
    tests = [f"row_size % {row.share} == 0"]
    seen = {key_of((reach.start, reach.stop))}
    for s in row.loops[1:]:
        (other,) = s.ranges
        if key_of((other.start, other.stop)) not in seen:
            seen.add(key_of((other.start, other.stop)))
            low = code.expr(other.start) if other.start is not None else "0"
            tests.append(f"{low} == row_low && {code.expr(other.stop)} - row_low == row_size")  # type: ignore[arg-type]
    for place, kind in row.kinds.items():
        name, size = cname(place[0]), kind.dtype.itemsize
        steps = [views.stride(kind, name, axis) for axis in range(len(place[1]))]
        others = [f"(uint64_t)({s})" for s, v in zip(steps, place[1], strict=True) if v]
        first = views.address(kind, name, ["0" if v else "row_low" for v in place[1]])
        tests.append(f"{steps[place[1].index('')]} == (int64_t)sizeof({kind.dtype.ctype})")
        mask = min(size * row.share, 16) - 1
        tests.append(f"(({' | '.join([f'(uint64_t)({first})', *others])}) & {mask}) == 0")
    pairs = [(a, b) for a in row.late for b in row.early if b != a]
    kinds = {p[0]: k for p, k in row.kinds.items()} | {n: k for n, k in kernel.params if n in row.early}
    text += "".join(byte_range(cname(n), kinds[n]) for n in sorted({n for pair in pairs for n in pair}))
    for a, b in pairs:
        tests.append(f"(high_{cname(a)} <= low_{cname(b)} || high_{cname(b)} <= low_{cname(a)})")
    joined = f"\n{pad}    && ".join(tests)
    text += f"{pad}const bool wide = {joined};\n"
    text += f"{pad}int bits = few ? 8 : PA_WARP_BITS; /* 1 << bits threads keep a row */\n"
    text += f"{pad}while (bits < 8 && row_size > ({row.slots} << bits)) bits += PA_TEAM_STEP;\n"
    return f"{text}{pad}const bool fits = wide && row_size <= ({row.slots} << bits);\n"


def kept_team(row: Row, pad: str) -> str:
    """The team of a row that is kept: no more warps than it takes, so that a block has several rows on their
    way at once. Each warp has a part of the row without gaps, in which a thread's places are constants apart
    whatever the number of warps: otherwise they are kept in registers."""
    return f"""\
{pad}const int team = 1 << bits, warps = team >> PA_WARP_BITS, rank = (int)threadIdx.x & (team - 1);
{pad}const int64_t teams = (int64_t)gridDim.x << (8 - bits);
{pad}const int64_t first_team = ((int64_t)blockIdx.x << (8 - bits)) + ((int)threadIdx.x >> bits);
{pad}const int vectors = ((int)row_size / {row.share} + team - 1) >> bits; /* of a thread */
{pad}const int part = vectors * PA_WARP * {row.share};
{pad}const int begin = rank / PA_WARP * part + rank % PA_WARP * {row.share};
{pad}const int end = (int)pa_less((rank / PA_WARP + 1) * part, row_size);
"""


def pointers(code: Code, row: Row, pad: str) -> str:
    """Where an iteration's rows begin."""
    text = ""
    for number, (place, kind) in enumerate(row.kinds.items()):
        index = ["row_low" if not v else code.renamed.get(v) or cname(v) for v in place[1]]
        at = views.address(kind, cname(place[0]), index)
        text += f"{pad}{kind.dtype.ctype} *const row{number} = {at};\n"
    return text


def registers(row: Row, pad: str) -> str:
    """What a thread keeps."""
    count = row.slots // row.share
    places = [p for p in row.kept if row.made.get(p, p) == p]
    return "".join(f"{pad}{_vector(row, p)} {_kept(row, p)}[{count}];\n" for p in places)


def _vector(row: Row, place: Place) -> str:
    return f"pa_vector<{row.kinds[place].dtype.ctype}, {row.share}>"


def _number(row: Row, place: Place) -> int:
    return list(row.kinds).index(place)


def _kept(row: Row, place: Place) -> str:
    """The vectors of a kept place."""
    return f"keep{_number(row, row.made.get(place, place))}"


def loaded(row: Row, s: For, fits: bool) -> dict[Place, str]:
    """What the loop's body finds in registers: array and variables → C text. `fits`: the row is kept."""
    k = next(k for k, x in enumerate(row.loops) if x is s)
    (variable,) = s.variables
    texts = {
        p: f"{_kept(row, p)}[c].v[j]" if fits and p in row.kept else f"take{_number(row, p)}.v[j]"
        for p in row.uses[k]
    }
    return {(p[0], index_of(p, variable)): text for p, text in texts.items()}


def filled_places(row: Row, s: For) -> dict[Place, str]:
    """What it fills: array and variables → C text."""
    k = next(k for k, x in enumerate(row.loops) if x is s)
    (variable,) = s.variables
    return {(p[0], index_of(p, variable)): f"give{_number(row, p)}.v[j]" for p in row.stores[k]}


def kept_loop(row: Row, s: For, body: str, pad: str) -> str:
    """The loop over a thread's elements of a row that is kept, around the text of one, which is indented by
    twelve more."""
    k = next(k for k, x in enumerate(row.loops) if x is s)
    head = f"{pad}#pragma unroll\n{pad}for (int c = 0; c < {row.slots // row.share}; ++c) {{\n"
    head += f"{pad}    const int first = begin + c * (PA_WARP * {row.share});\n{pad}    if (first < end) {{\n"
    tail = f"{pad}    }}\n{pad}}}\n"
    text = ""
    for place in (p for p in row.uses[k] if row.kept.get(p) == k):  # all of it is on its way at once
        n, inner = _number(row, place), f"{pad}        "
        text += f"{head}{inner}keep{n}[c] = *(const {_vector(row, place)} *)(row{n} + first);\n{tail}"
    others = [p for p in row.uses[k] if p not in row.kept]
    return text + head + _elements(row, k, others, body, pad + "    ", kept=True) + tail


def streamed_loop(row: Row, s: For, body: str, pad: str) -> str:
    """The same of a row that isn't kept."""
    k = next(k for k, x in enumerate(row.loops) if x is s)
    unrolled = max(1, _STREAMED // max(len(row.uses[k]), 1))
    text = f"{pad}#pragma unroll {unrolled}\n"
    text += (
        f"{pad}for (int64_t first = rank * {row.share}; first < row_size; first += team * {row.share}) {{\n"
    )
    return f"{text}{_elements(row, k, row.uses[k], body, pad)}{pad}}}\n"


def _elements(row: Row, k: int, taken: Sequence[Place], body: str, pad: str, kept: bool = False) -> str:
    """The elements of one vector: loads of those `taken`, the body for each, stores."""
    (variable,), inner = row.loops[k].variables, f"{pad}    "
    text = ""
    for place in taken:
        vector, at = _vector(row, place), f"row{_number(row, place)} + first"
        load = f"pa_load_past<{vector}>({at})" if place in row.kept else f"*(const {vector} *)({at})"
        text += f"{inner}const {vector} take{_number(row, place)} = {load};\n"
    text += "".join(f"{inner}{_vector(row, p)} give{_number(row, p)};\n" for p in row.stores[k])
    text += f"{inner}#pragma unroll\n{inner}for (int j = 0; j < {row.share}; ++j) {{\n"
    text += f"{inner}    const int64_t {cname(variable)} = row_low + first + j;\n{body}{inner}}}\n"
    for place in row.stores[k]:
        n, made = _number(row, place), kept and place in row.made
        if made and any(place in own for own in row.uses[k + 1 :]):
            text += f"{inner}{_kept(row, place)}[c] = give{n};\n"
        if not made or not any(place in places for places in row.stores[k + 1 :]):
            text += f"{inner}*({_vector(row, place)} *)(row{n} + first) = give{n};\n"
    return text
