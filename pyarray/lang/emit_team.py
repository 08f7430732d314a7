"""Text of an iteration that the threads of a team share: a block, or a warp.

All of them run it with the same values. They share out the iterations of the innermost `unordered` loops, in
which each does what its own iterations say; reductions are joined at the end. Elsewhere the first thread
stores. Nobody stores what another thread of the team may still have to read, nor reads what another one may
still have to store: `pa_team_sync` stands between.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .emit_code import Code, cname, start_of
from .emit_digits import thread_digits, why_not
from .emit_row import Place, Row, chunks, filled_places, find_row, loaded, prepare
from .ir import Atomic, For, Function, Invoke, Load, Local, Stmt, Store, walk
from .split import Split, find_split

_SHARED = "a team of threads shares the iteration around it"
_IN_FLIGHT = 16  # loads of a thread in a shared loop, before it waits for the first


def changes(function: Function) -> bool:
    """Whether it stores, or calls a function that may."""
    return any(isinstance(n, (Store, Atomic, Invoke)) for s in function.body for n in walk(s))


def shared_loops(parts: tuple[Stmt, ...], pure: set[str]) -> list[For]:
    """The innermost unordered loops that do something. `pure` functions change nothing."""
    found: list[For] = []
    for part in parts:
        for n in walk(part):
            if isinstance(n, For) and n.unordered and (n.reductions or _effects(n.body, pure)):
                found += [] if shared_loops(n.body, pure) else [n]
    return found


def by_teams(loop: For, pure: set[str]) -> bool:
    """Whether a team can share each iteration: there is something to share, and outside of that there are no
    atomics and no functions that store."""
    shared = shared_loops(loop.body, pure)
    inside = sum(_others(n.body, pure) for n in shared)
    return bool(shared) and inside == _others(loop.body, pure)


def _effects(body: tuple[Stmt, ...], pure: set[str]) -> bool:
    return _others(body, pure) > 0 or any(isinstance(n, Store) for s in body for n in walk(s))


def _others(body: tuple[Stmt, ...], pure: set[str]) -> int:
    """How many effects there are other than stores."""
    nodes = [n for s in body for n in walk(s)]
    return sum(isinstance(n, Atomic) or (isinstance(n, Invoke) and n.function not in pure) for n in nodes)


class GridCode(Code):
    """Statements of a grid's loop; of a `team` while one is set."""

    team = False
    read = False  # whether a thread of the team may have read memory since they last met
    row: Row | None = None  # that is kept in registers, in the text at hand
    keeps = False  # whether the loop at hand has such a row
    fills: Mapping[Place, str] = MappingProxyType({})  # what stores of the row's elements go to
    pure: set[str]  # functions that change nothing

    def iteration_of_team(self, kernel: Function, loop: For, indent: int) -> str:
        self.team, self.read = True, False
        text = self.block(loop.body, indent)
        row = find_row(self, kernel, loop, shared_loops(loop.body, self.pure))
        if row is not None:
            self.row, self.read, self.keeps, pad = row, False, True, "    " * indent
            kept = prepare(self, kernel, row, pad) + f"{pad}if (wide) {{\n{self.block(loop.body, indent)}"
            text = f"{kept}{pad}}} else {{\n{text}{pad}}}\n"
            self.row = None
        self.team = False
        return text

    def statement(self, s: Stmt, indent: int) -> str:
        reads = self.team and not self.owned(s) and any(isinstance(n, (Load, Invoke)) for n in walk(s))
        self.read |= reads
        text = super().statement(s, indent)
        self.read |= reads
        return text

    def owned(self, s: Stmt) -> bool:
        """Whether it is written for the team as a whole, and says itself when the threads meet."""
        return isinstance(s, Store) or (isinstance(s, For) and shared_loops((s,), self.pure) == [s])

    def met(self, pad: str) -> str:
        """The threads meet, if one of them may have read what is stored next."""
        text = f"{pad}pa_team_sync(whole);\n" if self.read else ""
        self.read = False
        return text

    def write_Store(self, s: Store, pad: str, indent: int) -> str:
        place = getattr(s.array, "name", ""), tuple(getattr(i, "name", "") for i in s.index)
        if place in self.fills:
            return f"{pad}{self.fills[place]} = {self.expr(s.value)};\n"
        text = super().write_Store(s, pad, indent)
        if not self.team:
            return text
        return f"{self.met(pad)}{pad}if (rank == 0) {{\n{text}{pad}}}\n{pad}pa_team_sync(whole);\n"

    def write_For(self, s: For, pad: str, indent: int) -> str:
        return (
            self.shared(s, pad, indent) if self.team and self.owned(s) else super().write_For(s, pad, indent)
        )

    def split_rows(self, s: For, first: str, last: str, indent: int) -> str | None:
        """Two texts of one body would differ in where the threads of a team meet."""
        if not self.team:
            return super().split_rows(s, first, last, indent)
        if not self.debug and isinstance(find_split(s), Split):
            self.notes[s.loc.line, f"loop over {s.variables[-1]}: its divisions stay: {_SHARED}"] = None
        return None

    def shared(self, s: For, pad: str, indent: int) -> str:
        """A loop whose iterations the threads share out, each `team`-th to one of them."""
        nodes = [n for st in s.body for n in walk(st)]
        types = {n.name: n.type for n in nodes if isinstance(n, Local)}
        stores = _effects(s.body, self.pure)
        inner = pad + "    "
        text = (self.met(pad) if stores else "") + f"{pad}{{\n"
        lanes = {acc: f"lane_{cname(acc)}" for acc, _ in s.reductions}
        for acc, op in s.reductions:
            dtype = types[acc].dtype
            text += f"{inner}{dtype.ctype} {lanes[acc]} = {start_of(acc, op, dtype)};\n"
        saved = dict(self.renamed)
        self.renamed |= lanes
        self.team = False
        if self.row is not None and any(s is x for x in self.row.loops):
            self.at, self.fills = loaded(self.row, s), filled_places(self.row, s)
            text += chunks(self.row, s, self.block(s.body, indent + 5), inner)
            self.at, self.fills = {}, {}
        else:
            text += self.strided_loop(s, inner, indent + 1)
        self.team = True
        text += self.joined(s, lanes, types, inner) if s.reductions else ""
        self.renamed = saved
        self.read = False  # for who has an other's part of a reduction has waited for its reads
        return f"{text}{pad}}}\n" + (f"{pad}pa_team_sync(whole);\n" if stores else "")

    def strided_loop(self, s: For, pad: str, indent: int) -> str:
        """Single elements: neighbouring threads have neighbours."""
        (variable,), (reach,) = s.variables, s.ranges
        start = self.expr(reach.start) if reach.start is not None else "0"
        stop = self.expr(reach.stop)  # type: ignore[arg-type]
        self.counters += 1
        k, loads = f"k{self.counters}", sum(isinstance(n, Load) for st in s.body for n in walk(st))
        head, taken, terms = thread_digits(self, s) or (why_not(self, s, 1), "", {})
        text = f"{pad}const int64_t {k}_stop = {stop};\n{head}"
        text += f"{pad}#pragma unroll {max(1, min(8, _IN_FLIGHT // max(loads, 1)))}\n"
        text += f"{pad}for (int64_t {k} = {start} + rank; {k} < {k}_stop; {k} += team) {{\n"
        text += f"{pad}    const int64_t {cname(variable)} = {k};{taken and ' '}{taken}\n"
        outer, self.digits = self.digits, self.digits | terms
        text += f"{self.block(s.body, indent + 1)}{pad}}}\n"
        self.digits = outer
        return text

    def joined(self, s: For, lanes: dict[str, str], types: dict[str, Any], pad: str) -> str:
        """The threads' accumulators into the variables: by shuffles, beyond a warp through shared memory."""

        def each(make: Any) -> str:
            return "".join(make(acc, op, lanes[acc], types[acc]) for acc, op in s.reductions)

        def both(op: str, kind: Any, a: str, b: str) -> str:
            return self.merged(op, kind, s.loc, a, b)

        text = f"{pad}for (int d = warpSize / 2; d > 0; d /= 2) {{\n"
        text += each(lambda _, op, x, kind: f"{pad}    {x} = {both(op, kind, x, f'pa_shuffle({x}, d)')};\n")
        text += f"{pad}}}\n{pad}if (whole) {{\n"
        text += each(lambda _, op, x, kind: f"{pad}    __shared__ {kind.dtype.ctype} all_{x}[PA_WARPS];\n")
        text += f"{pad}    __syncthreads(); /* the ones before have been read */\n"
        text += f"{pad}    if (pa_lane() == 0) {{\n"
        text += each(lambda _, op, x, kind: f"{pad}        all_{x}[threadIdx.x / warpSize] = {x};\n")
        text += f"{pad}    }}\n{pad}    __syncthreads();\n"
        text += each(lambda _, op, x, kind: f"{pad}    {x} = all_{x}[0];\n")
        text += f"{pad}    for (int w = 1; w < (int)(blockDim.x / warpSize); ++w) {{\n"
        text += each(lambda _, op, x, kind: f"{pad}        {x} = {both(op, kind, x, f'all_{x}[w]')};\n")
        text += f"{pad}    }}\n{pad}}}\n"
        return text + each(lambda acc, op, x, kind: f"{pad}{cname(acc)} = {both(op, kind, cname(acc), x)};\n")
