"""GPU text of an iteration that a team of threads shares: a block, or a warp.

All threads run it with the same values. They share out the iterations of the innermost `unordered` loops;
reductions are combined at the end. Elsewhere the first thread stores. `pa_team_sync` stands between a store
and the loads of other threads before and after it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .collapse_loops import is_collapsible, loop_nest
from .delinearization import Split, find_split
from .emit_block_rows import streamed_elements
from .emit_cached_rows import (
    CachedRow,
    Ref,
    cached_row_loop,
    cached_row_team,
    find_cached_row,
    loaded_registers,
    only_forwards,
    register_lines,
    row_pointers,
    row_tests,
    stored_registers,
    uncached_row_loop,
)
from .emit_delinearized import missed, thread_digits
from .emit_statements import Emitter, cname, reduction_start
from .ir import Atomic, Break, For, Function, Invoke, Load, Local, Return, Stmt, Store, While, walk

_SHARED = "a team of threads shares the iteration around it"
_IN_FLIGHT = 16  # loads of a thread in a shared loop, before it waits for the first
_UNROLLED, _SHORT = 8, 48  # iterations of a loop that reads and stores nothing, and nodes of its body


def has_side_effects(function: Function) -> bool:
    """Whether it stores, or calls a function that may."""
    return any(isinstance(n, (Store, Atomic, Invoke)) for s in function.body for n in walk(s))


def shared_loops(parts: tuple[Stmt, ...], pure: set[str]) -> list[For]:
    """The innermost unordered loops that do something. `pure` functions change nothing."""
    found: list[For] = []
    for part in parts:
        for n in walk(part):
            if isinstance(n, For) and n.unordered and (n.reductions or _does_something(n.body, pure)):
                found += [] if shared_loops(n.body, pure) else [n]
    return found


def runs_by_teams(loop: For, pure: set[str]) -> bool:
    """Whether a team can share each iteration: there is something to share, and outside of that there are no
    atomics and no functions that store."""
    shared_loop = shared_loops(loop.body, pure)
    inside = sum(_side_effect_count(n.body, pure) for n in shared_loop)
    return bool(shared_loop) and inside == _side_effect_count(loop.body, pure)


def _does_something(body: tuple[Stmt, ...], pure: set[str]) -> bool:
    return _side_effect_count(body, pure) > 0 or any(isinstance(n, Store) for s in body for n in walk(s))


def _side_effect_count(body: tuple[Stmt, ...], pure: set[str]) -> int:
    """How many effects there are other than stores."""
    nodes = [n for s in body for n in walk(s)]
    return sum(isinstance(n, Atomic) or (isinstance(n, Invoke) and n.function not in pure) for n in nodes)


def _only_reads(nodes: list[Any]) -> bool:
    kinds = {type(n) for n in nodes}
    return Load in kinds and not kinds & {Store, Atomic, Invoke, For, While, Break, Return}


class GridEmitter(Emitter):
    """Statements of a grid's loop; of a `team` while one is set."""

    team = False
    unsynced_reads = False  # whether a thread of the team may have read memory since the last barrier
    row: CachedRow | None = None  # that is taken in vectors, in the text at hand
    row_is_cached = True  # whether it is kept in registers there
    streamed: frozenset[Ref] | None = None  # in the text of a block that keeps one row: its own elements
    cached_row: CachedRow | None = None  # such a row of the loop at hand
    results: Mapping[Ref, str] = MappingProxyType({})  # what stores of the row's elements go to
    pure: set[str]  # functions that change nothing

    def team_versions(
        self, kernel: Function, loop: For, indent: int
    ) -> tuple[str, list[tuple[str, str, str]]]:
        """What comes before, and the versions of an iteration: its condition, its declarations, its text. Each has
        its own loop over the iterations; otherwise each would take the registers of all."""
        self.team, self.unsynced_reads = True, False
        text, pad = self.block(loop.body, indent), "        "
        row = find_cached_row(self, kernel, loop, shared_loops(loop.body, self.pure))
        if row is None:
            self.team = False
            return "", [("", "", text)]
        self.row, self.cached_row, before = row, row, row_tests(self, kernel, row, "    ")
        versions = []
        for self.row_is_cached in (True, False):
            self.unsynced_reads = False
            versions.append(row_pointers(self, row, "    " * indent) + self.block(loop.body, indent))
        cached = register_lines(row, "    " * indent) + versions[0]
        self.row, self.team = None, False
        return before, [
            ("fits", cached_row_team(row, pad), cached),
            ("wide", "", versions[1]),
            ("", "", text),
        ]

    def block_row_version(self, row: CachedRow, loop: For, indent: int) -> str:
        """An iteration whose row a block keeps as a whole."""
        pad = "    " * indent
        self.team, self.unsynced_reads, self.row, self.row_is_cached = True, False, row, True
        self.streamed = streamed_elements(row, loop)
        text = register_lines(row, pad) + row_pointers(self, row, pad) + self.block(loop.body, indent)
        self.team, self.row, self.streamed = False, None, None
        return text.removesuffix(f"{pad}pa_team_sync(warps);\n")  # it is the block's only row

    def statement(self, s: Stmt, indent: int) -> str:
        reads = self.team and not self.syncs(s) and any(isinstance(n, (Load, Invoke)) for n in walk(s))
        self.unsynced_reads |= reads
        text = super().statement(s, indent)
        self.unsynced_reads |= reads
        return text

    def syncs(self, s: Stmt) -> bool:
        """Whether its text is for the team as a whole, with its own barriers."""
        return isinstance(s, Store) or (isinstance(s, For) and self.is_fully_shared(s))

    def is_fully_shared(self, s: For) -> bool:
        """Whether the threads share out all of a loop, or of the product of a nest."""
        loops = loop_nest(s)
        return shared_loops((s,), self.pure) == [loops[-1]] and (len(loops) == 1 or is_collapsible(loops))

    def sync_reads(self, pad: str) -> str:
        """A barrier, if a thread may have read what is stored next."""
        text = f"{pad}pa_team_sync(warps);\n" if self.unsynced_reads else ""
        self.unsynced_reads = False
        return text

    def write_Store(self, s: Store, pad: str, indent: int) -> str:
        ref = getattr(s.array, "name", ""), tuple(getattr(i, "name", "") for i in s.index)
        if ref in self.results:
            return f"{pad}{self.results[ref]} = {self.expr(s.value)};\n"
        text = super().write_Store(s, pad, indent)
        if not self.team:
            return text
        return f"{self.sync_reads(pad)}{pad}if (rank == 0) {{\n{text}{pad}}}\n{pad}pa_team_sync(warps);\n"

    def write_For(self, s: For, pad: str, indent: int) -> str:
        if self.team and self.syncs(s):
            return self.shared_loop(s, pad, indent)
        text = super().write_For(s, pad, indent)
        nodes = [n for st in s.body for n in walk(st)]
        if not text.startswith(f"{pad}for (") or len(nodes) > _SHORT or not _only_reads(nodes):
            return text
        return f"{pad}#pragma unroll {_UNROLLED}\n{text}"

    def split_rows(self, s: For, first: str, last: str, indent: int) -> str | None:
        """None for teams: two texts of one body would differ in their barriers."""
        if not self.team:
            return super().split_rows(s, first, last, indent)
        if not self.debug and isinstance(find_split(s), Split):
            self.remarks[s.loc.line, f"loop over {s.variables[-1]}: its divisions stay: {_SHARED}"] = None
        return None

    def shared_loop(self, s: For, pad: str, indent: int) -> str:
        """A loop whose iterations the threads share out, each `team`-th to one of them."""
        nodes = [n for st in s.body for n in walk(st)]
        types = {n.name: n.type for n in nodes if isinstance(n, Local)}
        kept = self.row if self.row_is_cached else None
        stores = _does_something(s.body, self.pure) and not (kept and only_forwards(kept, s))
        inner = pad + "    "
        text = (self.sync_reads(pad) if stores else "") + f"{pad}{{\n"
        lanes = {acc: f"lane_{cname(acc)}" for acc, _ in s.reductions}
        for acc, op in s.reductions:
            dtype = types[acc].dtype
            text += f"{inner}{dtype.ctype} {lanes[acc]} = {reduction_start(acc, op, dtype)};\n"
        saved = dict(self.renamed)
        self.renamed |= lanes
        self.team = False
        if self.row is not None and any(s is x for x in self.row.loops):
            self.registers = loaded_registers(self.row, s, self.row_is_cached)
            self.results = stored_registers(self.row, s)
            body = self.block(s.body, indent + (4 if self.row_is_cached else 3))
            if self.row_is_cached:
                text += cached_row_loop(self.row, s, body, inner, self.streamed)
            else:
                text += uncached_row_loop(self.row, s, body, inner)
            self.registers, self.results = {}, {}
        else:
            strided = self.strided_loop if len(loop_nest(s)) == 1 else self.strided_nest
            text += strided(s, inner, indent + 1)
        self.team = True
        text += self.combine_team(s, lanes, types, inner) if s.reductions else ""
        self.renamed = saved
        self.unsynced_reads &= not stores and not s.reductions  # the barriers come after the reads
        return f"{text}{pad}}}\n" + (f"{pad}pa_team_sync(warps);\n" if stores else "")

    def strided_loop(self, s: For, pad: str, indent: int) -> str:
        """Single elements: neighbouring threads have neighbours."""
        (variable,), (range_,) = s.variables, s.ranges
        start = self.expr(range_.start) if range_.start is not None else "0"
        stop = self.expr(range_.stop)  # type: ignore[arg-type]
        self.counters += 1
        k, loads = f"k{self.counters}", sum(isinstance(n, Load) for st in s.body for n in walk(st))
        head, declarations, terms = thread_digits(self, s) or (missed(self, s, 1), "", {})
        text = f"{pad}const int64_t {k}_stop = {stop};\n{head}"
        text += f"{pad}#pragma unroll {max(1, min(8, _IN_FLIGHT // max(loads, 1)))}\n"
        text += f"{pad}for (int64_t {k} = {start} + rank; {k} < {k}_stop; {k} += team) {{\n"
        text += f"{pad}    const int64_t {cname(variable)} = {k};{declarations and ' '}{declarations}\n"
        outer, self.digits = self.digits, self.digits | terms
        text += f"{self.block(s.body, indent + 1)}{pad}}}\n"
        self.digits = outer
        return text

    def strided_nest(self, root: For, pad: str, indent: int) -> str:
        """The same over a product: a thread's next element is `team` further, which is added to the
        variables digit by digit, the last one fastest."""
        self.counters += 1
        loops, text = loop_nest(root), ""
        k, last = f"k{self.counters}", len(loops) - 1
        for n, s in enumerate(loops):
            (range_,) = s.ranges
            start = self.expr(range_.start) if range_.start is not None else "0"
            text += f"{pad}const int64_t {k}_low{n} = {start};\n"
            text += f"{pad}const int64_t {k}_size{n} = {self.expr(range_.stop)} - {k}_low{n};\n"  # type: ignore[arg-type]
        sizes = [f"{k}_size{n}" for n in range(last + 1)]
        text += f"{pad}if ({' && '.join(f'{n} > 0' for n in sizes)}) {{\n"
        inner = pad + "    "
        text += f"{inner}const int64_t {k}_count = {' * '.join(sizes)};\n"
        for name, value in (("at", "rank"), ("by", "team")):
            text += f"{inner}int64_t {k}_{name}0 = {value};\n"
            for n in range(last, 0, -1):
                split = f"pa_split(&{k}_{name}0, {k}_size{n}, {k}_size{n})"
                text += f"{inner}{'' if name == 'at' else 'const '}int64_t {k}_{name}{n} = {split};\n"
        loads = sum(isinstance(n, Load) for st in loops[-1].body for n in walk(st))
        text += f"{inner}#pragma unroll {max(1, min(8, _IN_FLIGHT // max(loads, 1)))}\n"
        text += f"{inner}for (int64_t {k} = rank; {k} < {k}_count; {k} += team) {{\n"
        for n, s in enumerate(loops):
            text += f"{inner}    const int64_t {cname(s.variables[0])} = {k}_low{n} + {k}_at{n};\n"
        text += self.block(loops[-1].body, indent + 2)
        for n in range(last, -1, -1):
            text += f"{inner}    {k}_at{n} += {k}_by{n};\n"
        for n in range(last, 0, -1):
            carry = f"{k}_at{n} -= {k}_size{n}; ++{k}_at{n - 1};"
            text += f"{inner}    if ({k}_at{n} >= {k}_size{n}) {{ {carry} }}\n"
        return f"{text}{inner}}}\n{pad}}}\n"

    def combine_team(self, s: For, lanes: dict[str, str], types: dict[str, Any], pad: str) -> str:
        """The threads' accumulators into the variables: by shuffles, beyond a warp through shared memory."""

        def each(make: Any) -> str:
            return "".join(make(acc, op, lanes[acc], types[acc]) for acc, op in s.reductions)

        def both(op: str, kind: Any, a: str, b: str) -> str:
            return self.combined(op, kind, s.loc, a, b)

        text = f"{pad}for (int d = PA_WARP / 2; d > 0; d /= 2) {{\n"
        text += each(lambda _, op, x, kind: f"{pad}    {x} = {both(op, kind, x, f'pa_shuffle({x}, d)')};\n")
        text += f"{pad}}}\n{pad}if (warps > 1) {{\n"
        text += each(lambda _, op, x, kind: f"{pad}    __shared__ {kind.dtype.ctype} all_{x}[PA_WARPS];\n")
        text += f"{pad}    const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;\n"
        if self.streamed is None or not any(s is x for x in self.row.loops):  # type: ignore[union-attr]
            text += f"{pad}    pa_team_sync(warps); /* the ones before have been read */\n"
        text += f"{pad}    if (pa_lane() == 0) {{\n"
        text += each(lambda _, op, x, kind: f"{pad}        all_{x}[threadIdx.x >> PA_WARP_BITS] = {x};\n")
        text += f"{pad}    }}\n{pad}    pa_team_sync(warps);\n"
        text += each(lambda _, op, x, kind: f"{pad}    {x} = all_{x}[first_warp];\n")
        text += f"{pad}    for (int w = first_warp + 1; w < first_warp + warps; ++w) {{\n"
        text += each(lambda _, op, x, kind: f"{pad}        {x} = {both(op, kind, x, f'all_{x}[w]')};\n")
        text += f"{pad}    }}\n{pad}}}\n"
        return text + each(lambda acc, op, x, kind: f"{pad}{cname(acc)} = {both(op, kind, cname(acc), x)};\n")
