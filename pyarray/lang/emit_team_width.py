"""GPU text of how many threads share an iteration: a block, a warp, or of many short iterations a part of a warp."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from . import emit_views as views
from . import ir
from .cached_rows import is_invariant
from .emit_statements import Emitter, cname
from .summaries import has_any

_WIDE_BITS = 5  # 1 << so many elements of an iteration are for one thread of several warps, up to a block
_FEW_ITERATIONS = 512  # up to so many blocks run at the same time
_FEW_ELEMENTS = 64  # the same if there are few iterations
_EACH_BITS = 5  # 1 << so many elements of an iteration are for one thread of a part of a warp
_STORED_BITS = 4  # the same of elements that are stored, one by one or by a single thread: far apart, stores are slow
_MANY_BITS = 17  # 1 << so many threads fill a device


def team(bits: str = "few ? 8 : wide", warps: str = "team >> PA_WARP_BITS") -> str:
    """The names that an iteration's text uses: its team has 1 << bits threads. `warps` is 1 where it has no more."""
    return f"""\
const int bits = {bits}, team = 1 << bits, warps = {warps}, rank = (int)threadIdx.x & (team - 1);
const pa_lanes lanes = pa_lanes_of(team);
const int64_t teams = (int64_t)gridDim.x << (8 - bits);
const int64_t first_team = ((int64_t)blockIdx.x << (8 - bits)) + ((int)threadIdx.x >> bits);
"""


def width_lines(code: Emitter) -> Iterator[str]:
    """What widths follow from: the `most` elements of an array, and whether there are `few` iterations."""
    sizes = (views.element_count(k, cname(n)) for n, k in code.kernel.params if isinstance(k, ir.ArrayType))
    yield f"const int64_t most = {_greatest(sizes)};"
    yield f"const bool few = count <= {_FEW_ITERATIONS} && count < most / {_FEW_ELEMENTS};"
    yield "int wide = PA_WARP_BITS;"
    yield f"while (wide < 8 && count < most >> ({_WIDE_BITS} + wide)) wide += PA_TEAM_STEP;"


def may_be_narrow(loop: ir.For, shared: list[ir.For]) -> bool:
    """Whether a team may be a part of a warp: shared loops are as long in all iterations."""
    return all(is_invariant(s, loop) for s in shared)


def narrow_lines(code: Emitter, shared: list[ir.For], vectors: bool) -> Iterator[str]:
    """1 << narrow threads are the part of a warp that takes a short iteration, of loops that `may_be_narrow`. In a nest
    of shared loops the arrays tell that an iteration has more elements than its last loop."""
    yield f"const int64_t longest = {_greatest(_trip_count(code, s) for s in shared)};"
    yield "int narrow = PA_WARP_BITS;"
    each = str(_EACH_BITS)
    if any(has_any(s.body, ir.Store) for s in shared):
        each = f"(dense && long_rows && narrow > 1 ? {_EACH_BITS} : {_STORED_BITS})" if vectors else str(_STORED_BITS)
    yield "for (; narrow > 0; --narrow) {"
    yield f"    const bool full = count >= (int64_t)1 << ({_MANY_BITS} + 1 - narrow);"
    yield f"    const int of_half = narrow - 1 + {each};"
    yield "    if (!full || longest > (int64_t)1 << of_half || most >> of_half > count) break;"
    yield "}"
    yield "wide = narrow < PA_WARP_BITS ? narrow : wide;"


def _greatest(values: Iterable[str]) -> str:
    return functools.reduce(lambda a, b: f"pa_more({a}, {b})", ["0", *dict.fromkeys(values)])


def _trip_count(code: Emitter, s: ir.For) -> str:
    (range_,) = s.ranges
    start, stop = code.start(range_), code.expr(range_.stop)  # type: ignore[arg-type]
    return stop if start == "0" else f"pa_range_len({start}, {stop}, 1)"
