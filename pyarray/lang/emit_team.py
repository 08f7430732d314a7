"""GPU text of an iteration that a team of threads shares: a block, a warp, or a part of a warp.

All threads run it with the same values. They share out the iterations of the innermost `unordered` loops;
reductions are combined at the end. Elsewhere the first thread stores. `pa_team_sync` stands between a store
and the loads of other threads before and after it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from . import emit_cached_rows as row_text
from . import emit_team_width as team_width
from . import ir
from .cached_rows import CachedRow, Ref, find_loop_row, find_row
from .collapse_loops import is_collapsible, loop_nest
from .delinearization import Split, find_split
from .emit_block_rows import BlockShape, streamed_elements
from .emit_delinearized import missed, thread_digits
from .emit_quotients import NARROW_WIDTH, dividing_functions, divisor_line, find_row_quotient, write_parts
from .emit_statements import Emitter, cname, reduction_start
from .emit_vector_extremes import EXTREME, VectorExtreme, find_vector_extreme
from .shared_loops import does_something, has_side_effects, shared_loops
from .short_rows import short_forms
from .summaries import has_any, kinds_in
from .team_versions import CachedVersion, TeamVersions

# a team that isn't the block takes one of all barriers that a block can have: then fewer blocks run at a time
_TEAM_SYNC, _BLOCK_SYNC = "pa_team_sync(warps, lanes);", "__syncthreads();"
_SHARED = "a team of threads shares the iteration around it"
_IN_FLIGHT = 16  # loads of a thread in a shared loop, before it waits for the first
_AT_ONCE = 4  # loads of a thread in a short loop that only reads, for which it waits together
_UNROLLED, _SHORT = 8, 48  # iterations of a loop that reads and stores nothing, and nodes of its body


def _is_short_read(s: ir.For) -> bool:
    """Whether an iteration loads elements, and does little else."""
    kinds = kinds_in(*s.body)
    others = {ir.Store, ir.Atomic, ir.Invoke, ir.For, ir.While, ir.Break, ir.Return}
    return ir.Load in kinds and not kinds & others and len(list(ir.walk(*s.body))) <= _SHORT


def _unrolled(loads: int) -> int:
    """How often a shared loop that loads so many elements is unrolled."""
    return max(1, min(8, _IN_FLIGHT // max(loads, 1)))


def _lanes(s: ir.For) -> dict[str, str]:
    """A thread's accumulators in a shared loop, by the variables they are of."""
    return {acc: f"lane_{cname(acc)}" for acc, _ in s.reductions}


class GridEmitter(Emitter):
    """Statements of a grid's loop; of a `team` while one is set."""

    team = False
    may_be_narrow = False  # whether a team may be a part of a warp
    unsynced_reads = False  # whether a thread of the team may have read memory since the last barrier
    row: CachedRow | None = None  # that is taken in vectors, in the text at hand
    row_is_cached = True  # whether it is cached in registers there
    row_has_edges = False  # whether it may begin or end between vectors there
    row_in_shared = False  # whether a part of it is cached in shared memory there
    row_loops: tuple[ir.For, ...] = ()  # of a row that iterations of the loop at hand take in vectors
    streamed: frozenset[Ref] | None = None  # in the text of a block that keeps one row: its own elements
    cached_row: CachedRow | None = None  # such a row of the loop at hand
    results: Mapping[Ref, str] = MappingProxyType({})  # what stores of the row's elements go to
    pure: set[str]  # functions that change nothing
    dividing: dict[str, tuple[int, int]]  # those that only divide, and by which of their parameters

    def take_functions(self, functions: tuple[ir.Function, ...]) -> None:
        """Learns what the program's functions do."""
        self.pure = {f.symbol for f in functions if not has_side_effects(f)}
        self.dividing = dividing_functions(functions)

    def team_versions(self, loop: ir.For) -> TeamVersions:
        """The texts of a loop whose iterations are run by teams."""
        shared = shared_loops(loop.body, self.pure)
        self.team, self.unsynced_reads, self.may_be_narrow = True, False, team_width.may_be_narrow(loop, shared)
        row, before = find_row(self, loop, shared), list(team_width.width_lines(self))
        self.row_loops = () if row is None else row.loops
        general = "", team_width.team(), self.printed(self.write, loop.body)
        if row is None:
            self.team = False
            return TeamVersions([*before, *self.narrow_lines(shared, False)], [general])
        self.row = row
        before += [*row_text.row_tests(self, row), *self.narrow_lines(shared, True)]
        dense = "dense && long_rows", team_width.team(), self.printed(self.write_row, row, loop, False)
        cached = tuple(self.cached_versions(row, loop)) if row.cached else ()
        self.row, self.team = None, False
        return TeamVersions(before, [dense, general], cached)

    def cached_versions(self, row: CachedRow, loop: ir.For) -> Iterator[CachedVersion]:
        """The versions of rows that teams cache."""
        self.cached_row, blocks = row, row_text.MIN_BLOCKS

        def text(of: CachedRow) -> str:
            self.row = of
            return self.printed(self.write_row, of, loop, True)

        half = row_text.short_row(row)
        sizes, long_sizes = row_text.row_sizes(half), row_text.long_row_sizes(row)
        # an iteration with other loops, too, has other uses for registers
        alone = sum(isinstance(n, ir.For) for n in ir.walk(*loop.body)) == len(row.loops)
        short, more = (half, 1) if alone else (row, 0)
        head = row_text.short_row_team(short)
        yield CachedVersion("short", row, False, "whole", sizes, head, text(short), blocks + more)
        yield CachedVersion("long", row, False, "whole", long_sizes, row_text.long_row_team(row), text(row), blocks)
        for form in short_forms(row) if self.may_be_narrow else ():
            own, self.row_has_edges, anywhere = form.row(row), form.edges, form.condition == "aligned"
            yield CachedVersion(form.name, own, anywhere, form.condition, form.sizes, form.head, text(own), blocks)
        if row_text.may_have_edges(row):
            self.row_has_edges, head = True, team_width.team("PA_WARP_BITS", "1")
            yield CachedVersion("edged", row, True, "true", row_text.edged_row_sizes(row), head, text(row), blocks)
        self.row, self.row_has_edges = row, False

    def narrow_lines(self, shared: list[ir.For], vectors: bool) -> list[str]:
        if not self.may_be_narrow:
            return ["const int narrow = PA_WARP_BITS;"]
        return list(team_width.narrow_lines(self, shared, vectors))

    def block_row_version(self, row: CachedRow, loop: ir.For, shape: BlockShape) -> str:
        """An iteration whose row a block keeps as a whole."""
        self.team, self.row, self.streamed = True, row, streamed_elements(row, loop)
        self.row_has_edges, self.row_in_shared = shape.edges, shape.shared_vectors > 0
        text = self.printed(self.write_row, row, loop, True)
        self.team, self.row, self.streamed, self.row_has_edges, self.row_in_shared = False, None, None, False, False
        return text.removesuffix(f"{_BLOCK_SYNC}\n")  # it is the block's only row

    def write_row(self, row: CachedRow, loop: ir.For, fits: bool) -> None:
        """An iteration over a row, which is cached if it `fits`."""
        self.row_is_cached, self.unsynced_reads = fits, False
        edges = self.row_has_edges
        self.out.lines(row_text.register_lines(row, edges) if fits else ())
        self.out.lines(row_text.row_pointers(self, row))
        self.out.lines(() if fits and not edges else row_text.edge_lines(row))
        self.out.lines(row_text.cached_edge_lines(row) if fits and edges else ())
        self.write(loop.body)

    def write_statement(self, s: ir.Stmt) -> None:
        if not self.team or self.syncs(s):
            super().write_statement(s)
            return
        reads = has_any((s,), ir.Load, ir.Invoke)
        # barriers in a branch that isn't taken, or in a loop without iterations, are for nobody
        stays = reads or (self.unsynced_reads and isinstance(s, (ir.If, ir.For, ir.While)))
        self.unsynced_reads |= reads
        super().write_statement(s)
        self.unsynced_reads |= stays

    def syncs(self, s: ir.Stmt) -> bool:
        """Whether its text is for the team as a whole, with its own barriers."""
        return isinstance(s, ir.Store) or (isinstance(s, ir.For) and self.is_fully_shared(s))

    def is_fully_shared(self, s: ir.For) -> bool:
        """Whether the threads share out all of a loop, or of the product of a nest."""
        loops = loop_nest(s)
        return shared_loops((s,), self.pure) == [loops[-1]] and (len(loops) == 1 or is_collapsible(loops))

    def sync(self, why: str = "") -> None:
        self.out.line(f"{_TEAM_SYNC if self.streamed is None else _BLOCK_SYNC}{why and f' /* {why} */'}")

    def sync_reads(self) -> None:
        """A barrier, if a thread may have read what is stored next."""
        if self.unsynced_reads:
            self.sync()
        self.unsynced_reads = False

    def write_Store(self, s: ir.Store) -> None:
        result = self.results.get(self.element_ref(s)) if self.results else None
        if result is not None:
            self.out.line(f"{result} = {self.expr(s.value)};")
            return
        if not self.team:
            super().write_Store(s)
            return
        self.sync_reads()
        with self.out.block("if (rank == 0)"):
            super().write_Store(s)
        self.sync()

    def write_If(self, s: ir.If) -> None:
        before = self.unsynced_reads
        with self.out.block(f"if ({self.expr(s.condition)})"):
            self.write(s.then)
        if s.orelse:
            self.unsynced_reads |= before
            with self.out.orelse():
                self.write(s.orelse)

    def write_For(self, s: ir.For) -> None:
        if self.team and self.syncs(s):
            self.shared_loop(s)
        else:
            super().write_For(s)

    def write_pragma(self, s: ir.For) -> None:
        if _is_short_read(s):
            self.out.line(f"#pragma unroll {_UNROLLED}")

    def row_split(self, s: ir.For) -> Split | None:
        """None for teams: two texts of one body would differ in their barriers."""
        if not self.team:
            return super().row_split(s)
        if not self.debug and isinstance(find_split(s), Split):
            self.remarks[s.loc.line, f"loop over {s.variables[-1]}: its divisions stay: {_SHARED}"] = None
        return None

    def shared_loop(self, s: ir.For) -> None:
        """A loop whose iterations the threads share out, each `team`-th to one of them."""
        nodes = list(ir.walk(*s.body))
        types = {n.name: n.type for n in nodes if isinstance(n, ir.Local)}
        cached_row = self.row if self.row is not None and self.row_is_cached and not self.row.plain else None
        stores = does_something(s.body, self.pure) and not (cached_row and row_text.only_forwards(cached_row, s))
        if stores:
            self.sync_reads()
        with self.out.block():
            lanes = _lanes(s)
            for acc, op in s.reductions:
                dtype = types[acc].dtype
                self.out.line(f"{dtype.ctype} {lanes[acc]} = {reduction_start(acc, op, dtype)};")
            saved = dict(self.renamed)
            self.renamed |= lanes
            self.team = False
            if self.row is not None and any(s is x for x in self.row.loops):
                self.vectorized_row(s, self.row, self.row_is_cached, types)
            elif len(loop_nest(s)) > 1:
                self.strided_nest(s)
            elif any(s is x for x in self.row_loops):
                self.strided_loop(s)
            else:
                self.single_loop(s, types)
            self.team = True
            if s.reductions:
                self.combine_team(s, lanes, types)
            self.renamed = saved
            self.unsynced_reads &= not stores and not s.reductions  # the barriers come after the reads
        if stores:
            self.sync()

    def vectorized_row(self, s: ir.For, row: CachedRow, cached: bool, types: dict[str, Any]) -> None:
        """A loop over a row in vectors, of which each thread has some. `types`: of its variables."""
        if not row.plain:
            self.registers = row_text.loaded_registers(row, s, cached)
            self.results = row_text.stored_registers(row, s)
        vector = self.vector_writer(s, row.width, cached)
        if cached:
            streamed, edges = self.streamed, self.row_has_edges
            row_text.cached_row_loop(self.out, row, s, vector, streamed, edges, self.row_in_shared)
            if self.row_has_edges:
                row_text.cached_edge(self.out, row, s, functools.partial(self.write_element, s))
        else:
            with self.two_accumulators(s, types):
                row_text.uncached_row_loop(self.out, row, s, vector, lambda: self.write_element(s, {}, {}))
        self.registers, self.results = {}, {}

    @contextmanager
    def two_accumulators(self, s: ir.For, types: dict[str, Any]) -> Iterator[None]:
        """Elements of vectors are reduced into two accumulators in turn, as each waits for the result before."""
        lanes = _lanes(s)
        for acc, op in s.reductions:
            dtype = types[acc].dtype
            start = reduction_start(acc, op, dtype)
            self.out.line(f"{dtype.ctype} both_{lanes[acc]}[2] = {{{start}, {start}}};")
        self.renamed |= {acc: f"both_{lane}[j & 1]" for acc, lane in lanes.items()}
        yield
        self.renamed |= lanes
        for number in range(2):
            for acc, op in s.reductions:
                lane = lanes[acc]
                both = f"both_{lane}[{number}]"
                self.out.line(f"{lane} = {self.combined(op, types[acc], s.loc, lane, both)};")

    def single_loop(self, s: ir.For, types: dict[str, Any]) -> None:
        """A loop over a row of its own, in vectors if it is contiguous."""
        row = find_loop_row(self, s, self.pure)
        if row is None:
            self.strided_loop(s)
            return
        self.out.lines(row_text.row_tests(self, row))
        with self.out.block("if (dense && long_rows)"):
            self.out.lines(row_text.row_pointers(self, row))
            self.out.lines(row_text.edge_lines(row))
            self.vectorized_row(s, row, False, types)
        with self.out.orelse():
            self.strided_loop(s)

    def write_element(self, s: ir.For, loads: dict[Ref, str], stores: dict[Ref, str]) -> None:
        """An iteration outside the vectors of a row. `loads` and `stores`: elements that are in registers, with their
        C texts."""
        registers, results, self.registers, self.results = self.registers, self.results, loads, stores
        renamed, self.renamed = self.renamed, self.renamed | _lanes(s)
        self.write(s.body)
        self.registers, self.results, self.renamed = registers, results, renamed

    def vector_writer(self, s: ir.For, width: int, cached: bool) -> Callable[[], None]:
        """Prints what a loop over a row needs before it. Returns what prints the iterations of one vector."""
        (variable,), out = s.variables, self.out
        # as numbers, the indices of all elements would be kept in registers from row to row
        first = "pa_opaque(first)" if cached and self.is_used_as_number(variable, s) else "first"

        def each_element(write: Callable[[], None]) -> None:
            out.line("#pragma unroll")
            with out.block(f"for (int j = 0; j < {width}; ++j)"):
                out.line(f"const int64_t {cname(variable)} = row_low + {first} + j;")
                write()

        narrow = cached and width >= NARROW_WIDTH
        extreme = find_vector_extreme(s) if narrow else None
        if extreme is not None and self.element_ref(extreme.load) in self.registers:
            return functools.partial(self.write_extreme, extreme)
        quotient = find_row_quotient(s, self.dividing) if narrow else None
        if quotient is None:
            return lambda: each_element(lambda: self.write(s.body))
        out.line(divisor_line(self, quotient))
        return lambda: write_parts(self, quotient, width, each_element)

    def write_extreme(self, extreme: VectorExtreme) -> None:
        """The iterations of one vector, whose maximum or minimum is all that they are for."""
        vector = self.registers[self.element_ref(extreme.load)].removesuffix(".v[j]")
        self.out.line(extreme.line(vector, "extreme"))
        saved, self.renamed = self.renamed, self.renamed | {EXTREME: "extreme"}
        self.write(extreme.body)
        self.renamed = saved

    def is_used_as_number(self, variable: str, s: ir.For) -> bool:
        """Whether a loop over a row uses its variable for more than for elements that are in registers."""
        nodes = list(ir.walk(*s.body))
        uses = sum(isinstance(n, ir.Local) and n.name == variable for n in nodes)
        refs = (self.element_ref(n) for n in nodes if isinstance(n, (ir.Load, ir.Store)))
        return uses > sum(ref in self.registers or ref in self.results for ref in refs)

    def strided_loop(self, s: ir.For) -> None:
        """Single elements: neighbouring threads have neighbours."""
        (variable,), (range_,), out = s.variables, s.ranges, self.out
        start, stop = self.start(range_), self.expr(range_.stop)  # type: ignore[arg-type]
        self.counters += 1
        k = number = f"k{self.counters}"
        if start != "0":  # the threads count from 0: a late start and `team` may be 2**63 and more
            out.line(f"const int64_t {k}_first = {start};")
            stop, number = f"pa_range_len({k}_first, {stop}, 1)", f"{k}_first + {k}"
        out.line(f"const int64_t {k}_stop = {stop};")
        head, declarations, terms = thread_digits(self, s) or ([], "", {})
        if not terms:
            missed(self, s)
        out.lines(head)

        def iteration(at: str) -> None:
            index = at if number == k else f"{k}_first + {at}"
            out.line(f"const int64_t {cname(variable)} = {index};{declarations and ' '}{declarations}")
            outer, self.digits = self.digits, self.digits | terms
            self.write(s.body)
            self.digits = outer

        out.line(f"int64_t {k} = rank;")
        loads = sum(isinstance(n, ir.Load) for n in ir.walk(*s.body))
        # loops that start later are pieces of long rows: a device has so many that loads needn't be in flight together
        together = start == "0" and not declarations and _is_short_read(s)
        count = max(1, _AT_ONCE // max(loads, 1)) if together else 1
        if count > 1:
            # a test before each load would make it wait for the one before
            out.line(f"const int64_t {k}_full = {k}_stop > 0 ? {k}_stop - {count - 1} * (int64_t)team : 0;")
            test = f"{k} < {k}_full; {k} += {count} * (int64_t)team"
            with out.block(f"for (; {test})"):
                out.line("#pragma unroll")
                with out.block(f"for (int ahead = 0; ahead < {count}; ++ahead)"):
                    iteration(f"{k} + ahead * (int64_t)team")
        out.line(f"#pragma unroll {1 if count > 1 else _unrolled(loads)}")
        with out.block(f"for (; {k} < {k}_stop; {k} += team)"):
            iteration(k)

    def strided_nest(self, root: ir.For) -> None:
        """The same over a product: a thread's next element is `team` further, which is added to the
        variables digit by digit, the last one fastest."""
        self.counters += 1
        loops, out = loop_nest(root), self.out
        k, last = f"k{self.counters}", len(loops) - 1
        for n, s in enumerate(loops):
            (range_,) = s.ranges
            out.line(f"const int64_t {k}_low{n} = {self.start(range_)};")
            out.line(f"const int64_t {k}_size{n} = {self.expr(range_.stop)} - {k}_low{n};")  # type: ignore[arg-type]
        sizes = [f"{k}_size{n}" for n in range(last + 1)]
        with out.block(f"if ({' && '.join(f'{n} > 0' for n in sizes)})"):
            out.line(f"const int64_t {k}_count = {' * '.join(sizes)};")
            for name, value, const in (("at", "rank", ""), ("by", "team", "const ")):
                out.line(f"int64_t {k}_{name}0 = {value};")
                for n in range(last, 0, -1):
                    split = f"pa_split(&{k}_{name}0, {k}_size{n}, {k}_size{n})"
                    out.line(f"{const}int64_t {k}_{name}{n} = {split};")
            loads = sum(isinstance(n, ir.Load) for n in ir.walk(*loops[-1].body))
            out.line(f"#pragma unroll {_unrolled(loads)}")
            with out.block(f"for (int64_t {k} = rank; {k} < {k}_count; {k} += team)"):
                for n, s in enumerate(loops):
                    out.line(f"const int64_t {cname(s.variables[0])} = {k}_low{n} + {k}_at{n};")
                self.write(loops[-1].body)
                out.lines(f"{k}_at{n} += {k}_by{n};" for n in range(last, -1, -1))
                for n in range(last, 0, -1):
                    carry = f"{k}_at{n} -= {k}_size{n}; ++{k}_at{n - 1};"
                    out.line(f"if ({k}_at{n} >= {k}_size{n}) {{ {carry} }}")

    def combine_team(self, s: ir.For, lanes: dict[str, str], types: dict[str, Any]) -> None:
        """The threads' accumulators into the variables: by shuffles, beyond a warp through shared memory."""
        out, rows = self.out, [(cname(acc), op, lanes[acc], types[acc]) for acc, op in s.reductions]

        def combine(other: str) -> None:
            for _, op, x, kind in rows:
                out.line(f"{x} = {self.combined(op, kind, s.loc, x, other.format(x))};")

        # the mask of a whole warp is a constant: one that isn't takes several instructions for each shuffle
        narrow = self.streamed is None and self.may_be_narrow
        with out.block("if (team >= PA_WARP)" if narrow else ""), out.block("for (int d = PA_WARP / 2; d > 0; d /= 2)"):
            combine("pa_shuffle({}, d, PA_ALL_LANES)")
        if narrow:
            with out.orelse(), out.block("for (int d = team / 2; d > 0; d /= 2)"):
                combine("pa_shuffle({}, d, lanes)")
        with out.block("if (warps > 1)"):
            out.lines(f"__shared__ {kind.dtype.ctype} all_{x}[PA_WARPS];" for _, _, x, kind in rows)
            out.line("const int first_warp = ((int)threadIdx.x - rank) >> PA_WARP_BITS;")
            if self.streamed is None or not any(s is x for x in self.row.loops):  # type: ignore[union-attr]
                self.sync("the ones before have been read")
            with out.block("if (pa_lane() == 0)"):
                out.lines(f"all_{x}[threadIdx.x >> PA_WARP_BITS] = {x};" for _, _, x, _ in rows)
            self.sync()
            out.lines(f"{x} = all_{x}[first_warp];" for _, _, x, _ in rows)
            with out.block("for (int w = first_warp + 1; w < first_warp + warps; ++w)"):
                combine("all_{}[w]")
        for acc, op, x, kind in rows:
            out.line(f"{acc} = {self.combined(op, kind, s.loc, acc, x)};")
