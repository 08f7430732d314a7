"""CUDA and HIP text of a program: one kernel per parallel loop, one iteration per thread.

Statements outside the loops run once. If they only compute with sizes and numbers, each thread recomputes
them; otherwise a kernel of one thread stores their values to a frame in global memory, which the loops read. An
iteration with an unordered loop is run by a team (`emit_team.py`): a block, a warp, or a part of one.
Debug mode checks the indices of each loop before it runs; if all are in range, the loop runs without checks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..driver.kernel_step import THREADS, KernelStep
from . import emit_loop, ir
from .dialect import Dialect
from .emit import assemble, helper_functions, may_fail
from .emit_adjacent_stores import write_body_with_adjacent_stores
from .emit_block_rows import block_row_head, block_row_step, block_shapes, cached_row_step
from .emit_cached_rows import MIN_BLOCKS
from .emit_delinearized import missed, thread_digits
from .emit_statements import begin_iteration, cname, ctype
from .emit_tile import is_tileable, tile_loop, tile_rows
from .emit_tiles import TileEmitter
from .emit_units import kernels_in_units
from .emit_vectorized import elementwise_store, per_thread, uneven_functions, vector_arrays, vector_loop
from .emit_vectorized_rows import vectorized_rows_loop
from .hoisted_checks import Hoisting
from .host_tests import HostTest, LoopTest, host_test
from .launch_shape import UNSHAPED, LaunchShape
from .printer import Printer
from .reshape_indexing import Remarks
from .shared_loops import runs_by_teams
from .size_slots import SizeSlots
from .specializations import Specializations
from .summaries import assigned_in, sites_in
from .team_versions import CachedVersion, Version
from .tile_layout import TilePlan
from .tile_nests import has_tiles

_FRAME = "frame"


def emit_gpu(
    tree: ir.Tree,
    dialect: Dialect,
    debug: bool,
    specs: dict[str, Specializations] | None = None,
    shape: LaunchShape = UNSHAPED,
) -> tuple[str, tuple[KernelStep, ...], Remarks, HostTest | None]:
    """(text, the kernels to launch, remarks on reshaped indices, the test that no access can fail)."""
    code, kernel = TileEmitter(tree.kernel, dialect, debug, specs), tree.kernel
    hoisted_checks = Hoisting(tree) if debug else None
    program = _GridProgram(code, tree, hoisted_checks, shape)
    # the threads of a team take the same branches, whichever of them fails: they wait for each other
    code.may_fail = may_fail(tree) and not any(
        runs_by_teams(loop, code.pure) or has_tiles(loop) for loop in emit_loop.parallel_loops(kernel)
    )
    helpers = helper_functions(code, tree, hoisted_checks)
    code.hoisted = code.sites = frozenset()
    for _, kind in (*kernel.params, *kernel.variables):
        code.declare(kind)
    text = code.printed(program.write)
    parts = [emit_loop.slots(kernel, code.symbol, debug, grid=True), "\n".join(code.helpers.values()), helpers, text]
    return assemble(code, parts), tuple(program.steps), code.remarks, program.host_test()


class _GridProgram:
    """The kernels of one program, in order."""

    def __init__(self, code: TileEmitter, tree: ir.Tree, hoisted_checks: Hoisting | None, shape: LaunchShape):
        self.code, self.kernel, self.hoisted_checks, self.shape = code, tree.kernel, hoisted_checks, shape
        code.take_functions(tree.functions)
        self.even = code.pure - uneven_functions(tree.functions)
        code.outer = emit_loop.outer_variables(tree.kernel)
        self.slots = SizeSlots(tree.kernel, code.debug)
        self.steps: list[KernelStep] = []
        self.cached_rows: list[tuple[KernelStep, str, int]] = []  # the loop's other kernels: of rows that teams cache
        self.tests: list[LoopTest] | None = []  # None: accesses may fail that they don't cover
        self.uses_frame = not all(map(emit_loop.is_recomputable, emit_loop.outside_loops(tree.kernel)))

    def write(self) -> None:
        before = list[Any]()
        body = Printer()
        outer, self.code.out = self.code.out, body
        for statement in self.kernel.body:
            if emit_loop.is_parallel(statement):
                if self.uses_frame:
                    self.setup_kernel(before, statement)
                self.loop(statement, [] if self.uses_frame else list(before))
                before = [] if self.uses_frame else before
            else:
                before.append(statement)
        if before and self.uses_frame:
            self.setup_kernel(before, None)
        self.code.out = outer
        if self.uses_frame:
            self.frame(outer)  # one variable of all kernels, which units would each have
        outer.text(str(body) if self.uses_frame else kernels_in_units(str(body)))

    def frame(self, out: Printer) -> None:
        """Declares the frame: outer variables and loop bounds, in global memory."""
        lines = [f"{ctype(kind)} {cname(name)};" for name, kind in self.code.outer]
        lines += [f"int64_t {name};" for s in emit_loop.parallel_loops(self.kernel) for name, _ in _frame_fields(s)]
        out.open("__device__ struct")
        out.lines(lines or ["int64_t unused;"])
        out.close(f" {_FRAME};")
        out.line("")

    def kernel_function(self, step: KernelStep, loop: int, blocks: int = 0) -> Printer:
        """The head of a kernel: its arguments as locals, and in debug mode its location. `blocks`: how many a
        multiprocessor runs at a time, which limits registers."""
        code, out = self.code, self.code.out
        self.steps.append(step)
        head = code.dialect.entry.format(symbol=step.symbol, slots=f"{code.symbol}_slots")
        bounds = f"{step.threads}, {blocks}" if blocks else step.threads
        head = head.replace(f"__launch_bounds__({THREADS})", f"__launch_bounds__({bounds})")
        out.text(head)
        function = out.inside()
        for param, kind in self.kernel.params:
            name = cname(param)
            out.line(f"{ctype(kind)} {name};")
            out.lines(emit_loop.unpack_slot(name, name, kind, code.debug))
            out.line(f"(void){name};")
            out.lines(code.assumptions(param, kind, name))
        if code.debug:
            out.line("pa_runtime run = slots->run;")
            out.lines([*emit_loop.debug_state(code, "&run", loop, -1), "(void)at; (void)up;"])
        return function

    def setup_kernel(self, statements: list[Any], loop: ir.For | None) -> None:
        """The kernel of one thread that runs the statements before a loop and computes the loop's bounds."""
        code, out, number = self.code, self.code.out, len(self.steps)
        at = loop.loop if loop is not None and loop.loop is not None else len(emit_loop.parallel_loops(self.kernel))
        with self.kernel_function(KernelStep(f"{code.symbol}_once{number}", single=True), at):
            parts = [*statements, *(loop.ranges if loop is not None else ())]
            out.lines([*emit_loop.frames(code, parts, "0"), *self.load_frame()])
            code.write(statements)
            out.lines(f"{_FRAME}.{cname(n)} = {cname(n)};" for n, _ in self.code.outer)
            for field, x in emit_loop.bound_fields(loop) if loop is not None else ():
                out.line(f"{_FRAME}.{field} = {emit_loop.bound_text(code, loop, field, x)};")  # type: ignore[arg-type]
            if loop is not None and len(loop.ranges) == 1:
                out.line(f"{_FRAME}.{_count_field(loop)} = {self.trip_count(loop, f'{_FRAME}.')};")
        out.line("")

    def load_frame(self) -> list[str]:
        return [f"{ctype(k)} {cname(n)} = {_FRAME}.{cname(n)};" for n, k in self.code.outer]

    def loop(self, loop: ir.For, before: list[Any]) -> None:
        code, out, number = self.code, self.code.out, loop.loop
        assert number is not None
        if has_tiles(loop):
            self.tile_program(loop, before)
            return
        code.hoisted, lines = self.hoists(loop) if self.hoisted_checks is not None else (frozenset(), list[str]())
        code.sites = sites_in(*loop.body)
        self.note_tests(loop, lines)
        code.cached_row, self.cached_rows = None, []
        digits, code.digit_lines, code.digits = thread_digits(code, loop) or ([], "", {})
        fields: dict[str, Any] = {}
        versions = code.printed(lambda: fields.update(self.write_loop(loop)), depth=0)
        step = self.step(loop, fields)
        self.block_rows(loop, step, before, digits)
        for of_cached, text, blocks in self.cached_rows:
            with self.rows_kernel(of_cached, blocks, loop, before, digits):
                out.text(text)
        code.digit_lines, code.digits = "", {}
        with self.kernel_function(step, number, MIN_BLOCKS if code.cached_row else 0):
            self.write_bounds(loop, before)
            out.lines(digits)
            if not digits:
                missed(code, loop)
            with self.where_inside(lines):
                out.text(versions)
        out.line("")
        if lines:
            code.hoisted = frozenset()
            with self.checked_kernel(loop, lines, before, THREADS, 0):
                self.thread_loop(loop)
            out.line("")

    def step(self, loop: ir.For, fields: dict[str, Any]) -> KernelStep:
        """A loop's step, with these fields besides its name and sizes."""
        size_slots = None if self.uses_frame else self.slots.of_loop(loop)
        return KernelStep(f"{self.code.symbol}_{loop.loop}", size_slots, **fields)

    def tile_program(self, loop: ir.For, before: list[Any]) -> None:
        """The kernel of a loop with tiles: a block for each iteration."""
        code, out, lines = self.code, self.code.out, list[str]()
        assert loop.loop is not None
        if self.hoisted_checks is not None:
            code.hoisted, lines = self.hoists(loop)
        code.sites = sites_in(*loop.body)
        self.note_tests(loop, lines)
        text, plan, shared, most = self.tile_block(loop)
        if self.shape.of_loop(loop.loop)[0] != THREADS:
            what = f"threads have no effect: a block of {plan.threads} follows from the sizes of the tiles"
            code.remarks[loop.loc.line, what] = None
        name, sizes = f"{code.symbol}_{loop.loop}", None if self.uses_frame else self.slots.of_loop(loop)
        step = KernelStep(name, sizes, team=True, shared=shared, threads=plan.threads, shared_most=most)
        with self.kernel_function(step, loop.loop, plan.blocks):
            self.write_bounds(loop, before)
            with self.where_inside(lines):
                out.text(text)
        out.line("")
        code.hoisted = frozenset()
        if lines:
            text, plan, shared, most = self.tile_block(loop)
            with self.checked_kernel(loop, lines, before, plan.threads, shared, most):
                out.text(text)
            out.line("")

    def tile_block(self, loop: ir.For) -> tuple[str, TilePlan, int, int]:
        """A block's text, how it keeps its tiles, and the bytes of shared memory that it needs, and at most uses."""
        text, plan = self.code.tile_iteration(loop)
        lines = self.code.tile_declarations(plan, dict(self.kernel.variables))
        return self.code.printed(self.block_loop, loop, lines, text), plan, *plan.shared_in_all(self.code.scratch_bytes)

    @contextmanager
    def checked_kernel(
        self, loop: ir.For, lines: list[str], before: list[Any], threads: int, shared: int, most: int = 0
    ) -> Iterator[None]:
        """The kernel that runs a loop with its checks where an index may be outside. It is one of its own, since the
        loop's would have the registers of both; it ends at once where all are inside, so its blocks are few."""
        number = loop.loop
        assert number is not None
        name, team = f"{self.code.symbol}_checked{number}", shared > 0
        step = KernelStep(name, None, team=team, shared=shared, threads=threads, fallback=True, shared_most=most)
        with self.kernel_function(step, number):
            self.write_bounds(loop, before)
            with self.where_inside(lines, "!"):
                yield

    def note_tests(self, loop: ir.For, lines: list[str]) -> None:
        """Keeps the tests of a loop for the host, if they are for all accesses."""
        if not self.code.sites <= self.code.hoisted:
            self.tests = None
        elif self.tests is not None:
            self.tests.append(LoopTest(loop, lines, self.slots.of_loop(loop)))

    def host_test(self) -> HostTest | None:
        """The test of the kernel's accesses for the host; None if accesses may fail that it doesn't cover."""
        hoisting, outside = self.hoisted_checks, tuple(emit_loop.outside_loops(self.kernel))
        if (
            hoisting is None
            or self.tests is None
            or self.uses_frame
            or sites_in(*outside)
            or not hoisting.covers_calls()
        ):
            return None
        return host_test(self.kernel, self.tests, self.slots.first())

    @contextmanager
    def where_inside(self, lines: list[str], inverted: str = "") -> Iterator[None]:
        """A block that is run where these tests of a loop's indices hold, or where they don't; without tests always."""
        out = self.code.out
        if not lines:
            yield
            return
        out.lines(["if (count <= 0) return;", "const int64_t begin = 0, end = count;"])
        out.lines(line.replace("env->", "") for line in lines)
        with out.block(f"if ({inverted}inside)"):
            out.lines(() if inverted else ["const bool inside = true;"])
            yield

    def block_loop(self, loop: ir.For, declarations: list[str], text: str) -> None:
        self.code.out.lines(declarations)
        with self.code.out.block("for (int64_t t = blockIdx.x; t < count; t += gridDim.x)"):
            self.iteration_head(loop)
            self.code.out.text(text)

    def hoists(self, loop: ir.For) -> tuple[frozenset[int], list[str]]:
        """The sites that are tested once, and the tests."""
        assert self.hoisted_checks is not None
        inside = assigned_in(*loop.body)
        invariant = {n: t for n, t in (*self.kernel.params, *self.code.outer) if n not in inside}
        return self.hoisted_checks.loop(loop, invariant)

    def block_rows(self, loop: ir.For, step: KernelStep, before: list[Any], digits: list[str]) -> None:
        """The kernels of a loop for rows that a block caches, if there are any: their steps precede the loop's."""
        code, out, row = self.code, self.code.out, self.code.cached_row
        stop = row.loops[0].ranges[0].stop if row is not None else None
        if row is None or stop is None or code.debug:
            return
        for shape in block_shapes(row, loop, code.dialect.shared_rows):
            of_block = block_row_step(row, loop, step, shape, self.slots.first())
            if of_block is None:
                continue
            with self.rows_kernel(of_block, shape.blocks, loop, before, digits):
                out.text(block_row_head(row, shape, code.expr(stop)))
                body = code.block_row_version(row, loop, shape)
                if shape.shared_bytes:  # elsewhere blocks have less, and the step is left out
                    out.line("#if !PA_CUDA || __CUDA_ARCH__ >= 900")
                with out.block("if (t < count)"):
                    self.iteration_head(loop)
                    out.text(body)
                if shape.shared_bytes:
                    out.line("#endif")

    @contextmanager
    def rows_kernel(
        self, step: KernelStep, blocks: int, loop: ir.For, before: list[Any], digits: list[str]
    ) -> Iterator[None]:
        """A kernel for some of a loop's rows, up to its versions."""
        assert loop.loop is not None
        with self.kernel_function(step, loop.loop, blocks):
            self.write_bounds(loop, before)
            self.code.out.lines(digits)
            yield
        self.code.out.line("")

    def write_bounds(self, loop: ir.For, before: list[Any]) -> None:
        """Prints the statements before the loop, its bounds and the number of its iterations."""
        code, out = self.code, self.code.out
        if self.uses_frame:
            out.lines(self.load_frame())
            out.lines(f"const int64_t {f} = {_FRAME}.{f};" for f, _ in _frame_fields(loop))
        else:
            code.hoisted, hoisted = frozenset(), code.hoisted
            out.lines(emit_loop.declarations(self.code.outer))
            code.write(before)
            code.hoisted = hoisted
            for field, x in emit_loop.bound_fields(loop):
                out.line(f"const int64_t {field} = {emit_loop.bound_text(code, loop, field, x)};")
        fields = [field for field, _ in emit_loop.bound_fields(loop)]
        single = _count_field(loop) if self.uses_frame else self.trip_count(loop)
        total = emit_loop.collapsed_trip_count(code, loop, fields) if len(loop.ranges) > 1 else single
        out.line(f"const int64_t count = {total};")

    def write_loop(self, loop: ir.For) -> dict[str, Any]:
        """Prints the loop. Returns the fields of its step that differ from a thread for each iteration."""
        code = self.code
        assert loop.loop is not None
        threads, most = self.shape.of_loop(loop.loop)
        if runs_by_teams(loop, code.pure):
            if threads != THREADS:
                remark = f"threads={threads} has no effect: an iteration belongs to a team, of a block of {THREADS}"
                code.remarks[loop.loc.line, remark] = None
            return self.team_loop(loop, {"team": True, "per_thread": most or 1})
        store = elementwise_store(code, loop, self.even)
        if store is None or (len(loop.ranges) > 1 and not is_tileable(loop)):
            self.thread_loop(loop)
            return {"threads": threads, "per_thread": most or 1}
        if len(loop.ranges) > 1:
            width = vectorized_rows_loop(code, loop, store)
            tile_loop(code, loop, store, self.thread_loop, threads)
            return {"threads": threads, "per_thread": most or max(width, tile_rows(threads))}
        size = per_thread(code, store, vector_arrays(code, loop), most)
        if size == 1:
            self.thread_loop(loop)
        else:
            vector_loop(code, loop, store, size)
        return {"threads": threads, "per_thread": most or size}

    def team_loop(self, loop: ir.For, fields: dict[str, Any]) -> dict[str, Any]:
        """Prints a loop whose iterations are run by teams. Returns the fields of its step. Rows that teams cache have
        kernels of their own, if the host can tell that all rows are such: they are in `cached_rows`."""
        code, versions = self.code, self.code.team_versions(loop)
        main, fields = list[Version](), fields | self.row()
        for version in versions.cached:
            apart = self.cached_row_step(version, self.step(loop, fields))
            if apart is None:
                main.append((version.test, version.head, version.text))
            else:
                tested = [("", version.head, version.text)]
                text = code.printed(self.write_versions, loop, versions.before, tested, depth=0)
                self.cached_rows.append((apart, text, version.blocks))
        self.write_versions(loop, versions.before, [*main, *versions.others])
        return fields

    def cached_row_step(self, version: CachedVersion, step: KernelStep) -> KernelStep | None:
        """The step of the kernel for rows that teams cache, if they have one of their own."""
        if self.code.debug:
            return None
        return cached_row_step(version.row, version.name, version.sizes, version.edges, step, self.slots.first())

    def write_versions(self, loop: ir.For, before: list[str], versions: list[Version]) -> None:
        out = self.code.out
        out.lines(before)
        for k, (test, head, body) in enumerate(versions):
            with out.orelse(test) if k else out.block(test and f"if ({test})"):
                out.text(head)
                with out.block("for (int64_t t = first_team; t < count; t += teams)"):
                    self.iteration_head(loop)
                    out.text(body)

    def row(self) -> dict[str, int]:
        """The slot of a cached row's length and the elements that a block caches, if the loop has such a row."""
        row = self.code.cached_row
        range_ = row.loops[0].ranges[0] if row is not None else None
        slot = self.slots.of_bound(range_.stop) if range_ is not None and range_.start is None else None
        return {} if row is None or slot is None else {"row_slot": slot, "row_elements": THREADS * row.elements}

    def thread_loop(self, loop: ir.For) -> None:
        """A grid-stride loop over the iterations."""
        with self.code.out.block("for (int64_t t = pa_thread(); t < count; t += pa_threads())"):
            self.iteration_head(loop)
            write_body_with_adjacent_stores(self.code, loop.body, self.code.pure)

    def iteration_head(self, loop: ir.For) -> None:
        code, out, inner = self.code, self.code.out, assigned_in(*loop.body)
        if code.debug:
            out.lines([begin_iteration("t"), *emit_loop.frames(code, loop.body, "0")])
        out.lines(self.loop_variables(loop))
        if code.digit_lines:
            out.line(code.digit_lines)
        scalars = ((n, k) for n, k in self.kernel.variables if n in inner and not isinstance(k, ir.TileType))
        out.lines(emit_loop.declarations(scalars))

    def trip_count(self, loop: ir.For, prefix: str = "") -> str:
        """The number of iterations; names of `bound_fields` get the `prefix`."""
        fields = dict(emit_loop.bound_fields(loop))
        first, step = (prefix + f if f in fields else None for f in (f"from{loop.loop}", f"step{loop.loop}"))
        return emit_loop.trip_count(self.code, loop.ranges[0], first, step)

    def loop_variables(self, loop: ir.For) -> list[str]:
        """Declarations of the loop's variables, from the number of the iteration."""
        names, fields = [cname(v) for v in loop.variables], dict(emit_loop.bound_fields(loop))
        if len(names) == 1:
            first, step = emit_loop.start_and_step(self.code, loop, "")
            return [f"const int64_t {names[0]} = {emit_loop.variable_at('t', first, step)};"]
        inner = reversed(list(zip(names[1:], list(fields)[1:], strict=True)))
        strips = self.code.strips(loop, list(fields))
        kind = "int64_t" if strips else "const int64_t"
        lines = [f"{kind} {name} = pa_split(&rest, {field}, count);" for name, field in inner]
        return ["int64_t rest = t;", *lines, f"{kind} {names[0]} = rest;", *strips]


def _count_field(loop: ir.For) -> str:
    return f"count{loop.loop}"


def _frame_fields(loop: ir.For) -> list[tuple[str, Any]]:
    """The fields of a loop in the frame: its bounds and, of a single range, the number of iterations, which
    stores of other threads must not change."""
    count = [(_count_field(loop), loop.ranges[0])] if len(loop.ranges) == 1 else []
    return [*emit_loop.bound_fields(loop), *count]
