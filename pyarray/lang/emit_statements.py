"""C text of the statements of one function. `emit` adds functions, parallel loops and the entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import config
from ..dtypes import DType
from . import emit_views as views
from . import ir
from .assertions import unasserted
from .delinearization import Split, unit_step
from .emit_cpu_products import is_cpu_contraction, write_cpu_contraction
from .emit_cpu_transposes import write_transposed_nest
from .emit_delinearized import CountedLoop, delinearized_loop, find_rows, missed
from .emit_expressions import ExprEmitter, TestsAhead, literal
from .emit_expressions import begin_iteration as begin_iteration
from .emit_expressions import cname as cname
from .emit_expressions import ctype as ctype
from .emit_index_sets import write_index_sets
from .emit_tile_prefetches import Prefetches, row_prefetches, write_prefetches, write_row_prefetches
from .printer import Printer
from .promotion import binary, call, identity_of
from .speculation import constant_ranges
from .summaries import assigned_in, called_in, has_any
from .tile_fusion import joined
from .write_mask import mask_itemsize

# Accumulators of an unordered reduction: four AVX2 registers of float32, and short sums for accuracy. Where
# the loop reads elements of one byte, as many as a register has of them: gcc vectorises over no fewer.
LANES, BYTE_LANES = 16, 32
MOST_TWICE = 100  # nodes of a body that debug mode writes twice


def lane_count(s: ir.For) -> int:
    """How many accumulators a reduction has side by side."""
    loads = (n for n in ir.walk(*unasserted(s.body)) if isinstance(n, ir.Load))
    return BYTE_LANES if any(n.type.dtype.itemsize == 1 for n in loads) else LANES


def reduction_start(accumulator: str, op: str, dtype: DType) -> str:
    """What a part of a reduction starts from, as C text: of min, max, and, or the value itself."""
    identity = identity_of(op, dtype)
    return cname(accumulator) if identity is None else literal(identity, dtype)


def looping_functions(functions: Iterable[ir.Function]) -> frozenset[str]:
    """Those that have loops, or call one that has; callees come first."""
    found: set[str] = set()
    for f in functions:
        body = unasserted(f.body)
        if _contains_loop(body) or called_in(*body) & found:
            found.add(f.symbol)
    return frozenset(found)


def _contains_loop(body: tuple[ir.Stmt, ...]) -> bool:
    """One that isn't unrolled for sure."""
    if has_any(body, ir.While):
        return True
    loops = (n for n in ir.walk(*body) if isinstance(n, ir.For)) if has_any(body, ir.For) else ()
    return any(len(constant_ranges(n)) < len(n.variables) for n in loops)


class Emitter(ExprEmitter):
    """Adds statements to `ExprEmitter`, which are printed to `out`."""

    turn: ir.For | None = None  # the innermost loop at hand but for those over axes of tiles
    prefetches: Prefetches | None = None  # of the reduction at hand
    looped_nest: ir.For | None = None  # a nest over a tile that is being printed as loops

    def printed(self, write: Callable[..., None], *args: Any, depth: int = 0) -> str:
        """The text of what `write(*args)` prints."""
        outer, self.out = self.out, Printer(depth)
        write(*args)
        text, self.out = str(self.out), outer
        return text

    def block(self, statements: tuple[ir.Stmt, ...], indent: int) -> str:
        return self.printed(self.write, statements, depth=indent)

    def write(self, statements: Iterable[ir.Stmt]) -> None:
        for s in joined(statements, self.debug) if self.dialect.blocks else statements:
            self.write_statement(s)

    def write_statement(self, s: ir.Stmt) -> None:
        getattr(self, f"write_{type(s).__name__}")(s)

    def write_Assign(self, s: ir.Assign) -> None:
        self.out.line(f"{self.renamed.get(s.name) or cname(s.name)} = {self.expr(s.value)};")

    def write_Store(self, s: ir.Store) -> None:
        is_pure = not has_any((s.array, *s.index, s.value), ir.Invoke, ir.Atomic, ir.Let)
        if is_pure and s.site is None and not s.marks:
            self.out.line(f"{self.lvalue(s)} = {self.expr(s.value)};")
            return
        # Python evaluates the value before the lvalue, and so the first failure is that of the value
        value = f"const {s.array.type.dtype.ctype} value = {self.expr(s.value)};"
        if not s.marks:
            self.out.line(f"{{ {value} {self.lvalue(s)} = value; }}")
            return
        target, dtype = self.lvalue(s), s.array.type.dtype
        name = self.helper(views.mark(self.dialect.function))
        marks = "".join(
            f" {name}(element, {self.expr(low)}, {mask_itemsize(dtype.itemsize, dtype.kind)}, {self.expr(mask)});"
            for low, mask in zip(s.marks[::2], s.marks[1::2], strict=True)
        )
        element = f"{dtype.ctype} *const element = {target[1:] if target.startswith('*') else f'&{target}'};"
        self.out.line(f"{{ {value} {element} *element = value;{marks} }}")

    def write_BeginIteration(self, s: ir.BeginIteration) -> None:
        self.out.line(begin_iteration(self.expr(s.number)))

    def guard_of(self, s: ir.For) -> str:
        """`loop_guard`, but for a loop over iterations of a parallel one: each of these begins without a failure."""
        return "" if s.body and isinstance(s.body[0], ir.BeginIteration) else self.loop_guard

    def write_SetElement(self, s: ir.SetElement) -> None:
        place = self.element(self.renamed.get(s.name) or cname(s.name), s.shape, s.index, s.site)
        is_plain = all(isinstance(n, (ir.Const, ir.Local)) for n in s.index)
        if s.site is None and is_plain and not has_any((s.value,), ir.Let):
            self.out.line(f"{place} = {self.expr(s.value)};")
            return
        # Python evaluates the value before the index
        self.out.line(f"{{ const {s.value.type.dtype.ctype} value = {self.expr(s.value)}; {place} = value; }}")

    def write_Evaluate(self, s: ir.Evaluate) -> None:
        self.out.line(f"{'' if s.value.type is None else '(void)'}{self.expr(s.value)};")

    def write_Return(self, s: ir.Return) -> None:
        self.out.line("return;" if s.value is None else f"return {self.expr(s.value)};")

    def write_Break(self, s: ir.Break) -> None:
        self.out.line("break;")

    def write_Continue(self, s: ir.Continue) -> None:
        self.out.line("continue;")

    def write_While(self, s: ir.While) -> None:
        condition = f"{self.expr(s.condition)}{self.loop_guard}"
        if s.site is None:
            with self.out.block(f"while ({condition})"):
                self.write(s.body)
            return
        check = self.helper(views.turn_checker(self.dialect.function, config.get("PYARRAY_DEBUG_TURNS")))
        with self.out.block():
            self.out.line("int64_t turns = 0;")
            with self.out.block(f"while ({condition} && {check}(at, up, {s.site}, ++turns))"):
                self.write(s.body)

    def write_If(self, s: ir.If) -> None:
        with self.out.block(f"if ({self.expr(s.condition)})"):
            self.write(s.then)
        if s.orelse:
            with self.out.orelse():
                self.write(s.orelse)

    def write_For(self, s: ir.For) -> None:
        outer, turn = self.ranges, self.turn
        self.ranges = {name: r for name, r in outer.items() if name not in s.variables} | constant_ranges(s)
        self.turn = turn if s.capacity else s
        prefetches = row_prefetches(self, s) if s.capacity and self.dialect.blocks else None
        if prefetches is None:
            self.write_loop(s)
        else:
            self.write_with_prefetches(s, prefetches)
        self.ranges, self.turn = outer, turn

    def write_with_prefetches(self, s: ir.For, prefetches: Prefetches) -> None:
        with self.out.block():
            self.prefetches = prefetches
            write_row_prefetches(self, prefetches)
            self.write_loop(s)
            self.prefetches = None

    def write_loop(self, s: ir.For) -> None:
        if self.dialect.blocks and is_cpu_contraction(s):
            write_cpu_contraction(self, s)
        elif self.dialect.blocks and write_transposed_nest(self, s):
            pass
        elif s.reductions and self.dialect.lanes and not self.has_loops(s.body):
            self.write_unordered(s)
        elif len(s.ranges) > 1:
            self.write_product(s)
        elif (split := self.split_of(s)) is not None:
            self.write_digits(s, split)
        else:
            if not missed(self, s):
                self.write_pragma(s)
            tested = self.tests_ahead is not None and self.write_tested(s, self.tests_ahead)
            if not tested and not self.write_sets(s):
                with self.loop_head(s):
                    self.write(s.body)

    def write_sets(self, s: ir.For) -> bool:
        """A plain loop whose iterations at the ends are a loop of their own. False where there is no need."""
        (range_,), name = s.ranges, cname(s.variables[0])
        if not self.dialect.blocks or not unit_step(range_):
            return False
        span = CountedLoop(name, self.start(range_), self.expr(range_.stop))  # type: ignore[arg-type]
        return write_index_sets(self, s, span, lambda: self.write(s.body))

    def write_tested(self, s: ir.For, tests_ahead: TestsAhead) -> bool:
        """In debug mode an innermost loop twice: without the checks that a test before it covers, where that holds.
        False where there is nothing to cover."""
        (range_,), (variable,) = s.ranges, s.variables
        nodes = list(ir.walk(*s.body))
        fits = len(nodes) <= MOST_TWICE and not any(isinstance(n, (ir.For, ir.While, ir.BeginIteration)) for n in nodes)
        if not fits or not unit_step(range_) or variable in assigned_in(*s.body) or constant_ranges(s):
            return False
        k, out = f"k{self.counters + 1}", self.out
        sites, lines = tests_ahead(s, lambda name: self.renamed.get(name) or cname(name), f"{k}_first", f"{k}_stop")
        if sites <= self.hoisted | self.ahead:
            return False
        self.counters += 1
        with out.block():
            out.line(f"const int64_t {k}_first = {self.start(range_)}, {k}_stop = {self.expr(range_.stop)};")  # type: ignore[arg-type]
            out.line(f"bool ahead_{k};")
            with out.block():
                out.lines([*lines, f"ahead_{k} = inside;"])
            head = f"for (int64_t {{0}} = {k}_first; {{0}} < {k}_stop{self.guard_of(s)}; ++{{0}})".format(
                cname(variable)
            )
            outer = self.ahead
            for tested, before in ((outer | sites, f"if (ahead_{k})"), (outer, "else")):
                self.ahead = tested
                with out.block(before), out.block(head):
                    self.write(s.body)
            self.ahead = outer
        return True

    def has_loops(self, body: tuple[ir.Stmt, ...]) -> bool:
        """Whether a loop stands in a body, or in a function that it calls: compilers vectorise the innermost alone."""
        body = unasserted(body)
        return _contains_loop(body) or bool(called_in(*body) & self.looping)

    def write_digits(self, s: ir.For, split: Split) -> None:
        """A loop that counts the digits of its variable."""
        range_, k = s.ranges[0], f"k{self.counters + 1}"  # `delinearized_loop` counts one up
        start, stop = self.start(range_), self.expr(range_.stop)  # type: ignore[arg-type]
        with self.out.block():
            self.out.line(f"const int64_t {k}_first = {start}, {k}_stop = {stop};")
            self.write_rows(s, split, f"{k}_first", f"{k}_stop")

    def write_pragma(self, s: ir.For) -> None:
        """What stands before a plain loop: nothing on CPUs."""

    def split_of(self, s: ir.For) -> Split | None:
        """How a loop counts the digits of its variable; None of others."""
        (range_,) = s.ranges
        if not unit_step(range_) or isinstance(range_.stop, ir.Const):
            return None  # loops of a constant length unroll, and fold their divisions
        return self.row_split(s)

    def row_split(self, s: ir.For) -> Split | None:
        return find_rows(self, s)

    def write_rows(self, s: ir.For, split: Split, first: str, last: str) -> None:
        """The loop over its last variable in rows."""

        def body(span: CountedLoop) -> None:
            with span.block(self.out):
                self.write(s.body)

        delinearized_loop(self, s, split, first, last, body)

    def write_product(self, s: ir.For) -> None:
        """Nested loops, whose bounds are all evaluated before the first."""
        headers = []
        for variable, range_ in zip(s.variables, s.ranges, strict=True):
            self.counters += 1
            name, k = cname(variable), f"k{self.counters}"
            self.out.line(f"const int64_t {k}_stop = {self.expr(range_.stop)};")  # type: ignore[arg-type]
            headers.append(f"for (int64_t {name} = 0; {name} < {k}_stop{self.loop_guard}; ++{name})")
        split, stop = self.row_split(s), f"k{self.counters}_stop"
        if split is None:
            missed(self, s)
        for header in headers[:-1]:
            self.out.open(header)
        if split is not None:  # in place of the innermost loop
            self.write_rows(s, split, "0", stop)
        else:
            with self.out.block(headers[-1]):
                self.write(s.body)
        for _ in headers[:-1]:
            self.out.close()

    def loop_head(self, s: ir.For) -> Printer:
        """Opens a C loop with Python's meaning: bounds are evaluated once, in order."""
        self.counters += 1
        name, k, range_ = cname(s.variables[0]), f"k{self.counters}", s.ranges[0]
        start, stop = self.start(range_), self.expr(range_.stop)  # type: ignore[arg-type]
        if unit_step(range_):
            hoisted = ""
            if not isinstance(range_.stop, ir.Const):
                hoisted, stop = f", {k}_stop = {stop}", f"{k}_stop"
            return self.out.block(
                f"for (int64_t {name} = {start}{hoisted}; {name} < {stop}{self.guard_of(s)}; ++{name})"
            )
        head = f"{k}_first = {start}, {k}_last = {stop}, {k}_step = {self.step(s)}"
        count = f"{k}_count = pa_range_len({k}_first, {k}_last, {k}_step)"
        self.out.open(f"for (int64_t {k} = 0, {head}, {count}; {k} < {k}_count{self.guard_of(s)}; ++{k})")
        self.out.line(f"const int64_t {name} = pa_add_i64({k}_first, pa_mul_i64({k}, {k}_step));")
        return self.out

    def write_unordered(self, s: ir.For) -> None:
        """A reduction whose order is free: `lane_count` accumulators side by side, combined at the end. For
        step 1."""
        (variable,), (range_,), out = s.variables, s.ranges, self.out
        types = {n.name: n.type for n in ir.walk(*s.body) if isinstance(n, ir.Local)}
        self.counters += 1
        k = f"k{self.counters}"
        start, stop = self.start(range_), self.expr(range_.stop)  # type: ignore[arg-type]
        with out.block():
            out.line(f"const int64_t {k}_first = {start}, {k}_stop = {stop};")
            lanes, count = {acc: f"lane_{cname(acc)}" for acc, _ in s.reductions}, lane_count(s)
            for acc, op in s.reductions:
                dtype = types[acc].dtype
                first = reduction_start(acc, op, dtype)
                out.line(f"{dtype.ctype} {lanes[acc]}[{count}];")
                out.line(f"for (int lane = 0; lane < {count}; ++lane) {lanes[acc]}[lane] = {first};")
            saved = dict(self.renamed)
            self.renamed |= {acc: f"{lane}[lane]" for acc, lane in lanes.items()}

            def body(span: CountedLoop) -> None:
                self.lane_loop(s, span)

            split = find_rows(self, s)
            if split is not None:
                delinearized_loop(self, s, split, f"{k}_first", f"{k}_stop", body)
            else:
                missed(self, s)
                body(CountedLoop(cname(variable), f"{k}_first", f"{k}_stop"))
            self.combine_lanes(s, lanes, types)
            self.renamed = saved

    def lane_loop(self, s: ir.For, span: CountedLoop) -> None:
        """The span, `lane_count` iterations at a time."""
        self.counters += 1
        count, out = lane_count(s), self.out
        k = f"k{self.counters}"
        declared = f" {span.declared}" if span.declared else ""
        out.line(f"int64_t {k} = {span.first};")
        out.line(f"const int64_t {k}_past = {span.past};")
        if span.number:
            self.lane_row(s, span, k)
            return
        rest = f"(int64_t)(((uint64_t){k}_past - (uint64_t){k}) % {count})"  # `k + count` may be 2**63 and more
        out.line(f"const int64_t {k}_full = {k} < {k}_past ? {k}_past - {rest} : {k};")
        with out.block(f"for (; {k} < {k}_full{self.guard_of(s)}; {k} += {count})"):
            if self.prefetches is not None:
                write_prefetches(self, self.prefetches, k, count)
            out.line(self.dialect.lanes)
            with out.block(f"for (int lane = 0; lane < {count}; ++lane)"):
                out.line(f"const int64_t {span.k} = {k} + lane;{declared}")
                self.write(s.body)
        with out.block(f"for (int lane = 0; {k} < {k}_past{self.guard_of(s)}; ++{k}, ++lane)"):
            out.line("PA_NOVECTOR;")
            out.line(f"const int64_t {span.k} = {k};{declared}")
            self.write(s.body)

    def lane_row(self, s: ir.For, span: CountedLoop, k: str) -> None:
        """A row, whose iterations have the lanes that they have in the loop as a whole: debug mode, which has no rows,
        sums in the same order. The text of what comes before whole runs of lanes is also that of what comes behind."""
        count, out = lane_count(s), self.out
        declared = f" {span.declared}" if span.declared else ""
        out.line(f"int lane = (int)(({span.number}) % {count});")
        out.line(f"int64_t {k}_end = {k}_past - {k} > (-lane & {count - 1}) ? {k} + (-lane & {count - 1}) : {k}_past;")
        with out.block(f"for (int part = 0; part < 2; ++part, {k}_end = {k}_past)"):
            with out.block(f"for (; {k} < {k}_end; ++{k}, ++lane)"):
                out.line("PA_NOVECTOR;")
                out.line(f"const int64_t {span.k} = {k};{declared}")
                self.write(s.body)
            out.line("lane = 0;")
            with out.block(f"for (; {k}_past - {k} >= {count}; {k} += {count})"):
                out.line(self.dialect.lanes)
                with out.block(f"for (int lane = 0; lane < {count}; ++lane)"):
                    out.line(f"const int64_t {span.k} = {k} + lane;{declared}")
                    self.write(s.body)

    def combine_lanes(self, s: ir.For, lanes: dict[str, str], types: dict[str, Any]) -> None:
        out, half = self.out, lane_count(s) // 2
        while half:  # a loop of each length, which compilers vectorise
            with out.block(f"for (int lane = 0; lane < {half}; ++lane)"):
                for acc, op in s.reductions:
                    both = self.combined(op, types[acc], s.loc, f"{lanes[acc]}[lane]", f"{lanes[acc]}[lane + {half}]")
                    out.line(f"{lanes[acc]}[lane] = {both};")
            half //= 2
        for acc, op in s.reductions:
            out.line(f"{cname(acc)} = {self.combined(op, types[acc], s.loc, cname(acc), f'{lanes[acc]}[0]')};")

    def combined(self, op: str, kind: ir.ScalarType, loc: Any, a: str, b: str) -> str:
        """Two accumulators, given as C text, into one."""
        self.renamed |= {"#a": a, "#b": b}
        pair = (ir.Local(loc, kind, "#a"), ir.Local(loc, kind, "#b"))
        node = call(loc, op, list(pair)) if op in ("min", "max") else binary(loc, op, *pair)
        return self.expr(node)
