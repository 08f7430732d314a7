"""GPU text of an iteration with tiles: a block of threads runs it.

All threads run the statements between the nests of loops over tile axes with the same values, and share the elements of
each nest by its layout (`tile_layout.py`). A barrier stands before a nest that reads what other threads may have
written since the last one, or writes what they may have read (`emit_tile_barriers.py`). The bits of a result depend on
the text alone: partial results are combined by lanes of 32, and those of such lanes in order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from . import ir
from .element_layout import WARP, Layout, Rows
from .emit_statements import cname
from .emit_tile_barriers import BarrierEmitter, Pending
from .emit_tile_products import write_contraction, write_product, zero_new_registers, zero_operands
from .emit_tile_quads import is_for_quads, quad_test, write_quads
from .emit_tile_vectors import Vectors, find_vectors, load_vectors, store_vectors, vector_test
from .tile_layout import SWIZZLE, TilePlan, plan_of
from .tile_nests import (
    Axes,
    Product,
    axes_of,
    has_tiles,
    is_contraction,
    is_product_of_tiles,
    is_reduction,
    nest_of,
    product_of,
)

_MOST_UNROLLED = 128


class TileEmitter(BarrierEmitter):
    """Statements of a grid's loop; of a block's iteration with tiles while there is a `plan`."""

    offsets: dict[str, str]  # variable that runs over an axis → C text of its distance from the tile's start
    rolled: bool = False  # loops over a thread's elements stay loops, for less text where speed doesn't count
    register: str = ""  # C text of which element of a thread's registers is at hand
    meanwhile: Callable[[], None] | None = None  # prints what threads do while matrix units compute the next product
    across: dict[str, str]  # tile that may be kept transposed → C name of whether it is, or "true"
    in_flight: bool = False  # the next product goes on when its iteration ends

    # ---- the iteration

    def tile_iteration(self, loop: ir.For) -> tuple[str, TilePlan]:
        """The text of an iteration, and how its tiles are kept."""
        # with checks iterations are in order, so that the first failure is reported
        ahead = self.dialect.copies_ahead and self.sites <= self.hoisted
        plan = plan_of(loop, dict(self.kernel.variables), self.dialect.matrix_units, ahead, frozenset(self.pure))
        self.plan, self.offsets, self.scratch_bytes = plan, {}, plan.shared_bytes
        self.across = {}
        self.pending = self.whole(loop.body)
        text = self.printed(self.write, loop.body)
        self.plan = None
        return text, plan

    def strips(self, loop: ir.For, sizes: list[str]) -> list[str]:
        """Another order of a loop's iterations, if they are tiles of a product, whose numbers in the last axes are less
        than the last `sizes`. Debug mode reports the first failure by their number."""
        if self.debug or not (self.dialect.matrix_units and has_tiles(loop) and is_product_of_tiles(loop)):
            return []
        row, column = (cname(v) for v in loop.variables[-2:])
        return [f"pa_tile_in_strip(&{row}, &{column}, {', '.join(sizes[-2:])});"]

    def tile_declarations(self, plan: TilePlan, variables: dict[str, Any]) -> list[str]:
        lines = ["const int rank = (int)threadIdx.x;", "(void)rank;"]
        if self.scratch_bytes or plan.staged:
            align = SWIZZLE if plan.operands else 16
            lines.append(f"extern __shared__ __align__({align}) unsigned char tile_memory[];")
        if plan.staged:
            first = plan.stages_at(self.scratch_bytes)
            lines.append(f"unsigned char *const staged = tile_memory + {first};")
            lines.append(f"const int stages = pa_tile_stages({first}, {plan.stage_bytes});")
        for name, offset in plan.shared.items():
            dtype = variables[name].dtype.ctype
            lines.append(f"{dtype} *const {cname(name)} = ({dtype} *)(tile_memory + {offset});")
        for name, layout in plan.registers.items():
            lines.append(f"{variables[name].dtype.ctype} {cname(name)}[{layout.elements}];")
        return lines

    # ---- statements between nests

    def write_statement(self, s: ir.Stmt) -> None:
        if self.plan is None or self.offsets or self.register:
            super().write_statement(s)
        elif isinstance(s, ir.For) and s.capacity:
            self.write_nest(s)
        elif isinstance(s, (ir.For, ir.While, ir.If)):
            self.write_control(s)
        else:
            if isinstance(s, ir.Continue):
                self.order(self.effects(self.asked))
            self.write_uniform(s)

    def write_uniform(self, s: ir.Stmt) -> None:
        """A statement that stands for all threads: one of them does what has an effect."""
        effects = self.effects((s,))
        if isinstance(s, ir.Assign) and effects.written:  # by an atomic or a call
            self.out.line(f"{cname(s.name)} = {self.value_of_one(s.value)};")
            return
        is_local = False  # an element of a local array, which each thread has
        if isinstance(s, ir.SetElement) and not isinstance(self.type_of(s.name), ir.TileType):
            is_local = True
            if effects.written:
                s, effects = replace(s, value=self.variable_of_one(s.value)), Pending()
        self.order(effects)
        if (isinstance(s, (ir.Store, ir.SetElement)) and not is_local) or effects.written:
            with self.out.block("if (rank == 0)"):
                super().write_statement(s)
        else:
            super().write_statement(s)

    # ---- nests

    def write_nest(self, s: ir.For) -> None:
        loops, body = nest_of(s)
        with self.out.block():
            if loops[-1].reductions:
                self.write_full_reduction(loops, body)
            elif is_reduction(body):
                self.write_reduction(loops, body)
            elif product := self.matrix_product(loops, body):
                write_product(self, loops, body, product)
            elif is_contraction(body):
                write_contraction(self, loops, body)
            else:
                self.order(self.effects((s,)))
                self.declare_lengths(loops)
                if guarded := not self.is_harmless(loops, body):
                    zero_new_registers(self, body)
                self.each_element(loops, body, lambda: self.write(body), guarded)
            zero_operands(self, loops, body)

    def matrix_product(self, loops: list[ir.For], body: Any) -> Product | None:
        """The product that a nest is, if matrix instructions compute it."""
        assert self.plan is not None
        return product_of(loops, body) if axes_of(loops) in self.plan.products else None

    def is_harmless(self, loops: list[ir.For], body: Any) -> bool:
        """Whether elements that don't exist may be computed, too: of tiles of which each thread has its own."""
        assert self.plan is not None
        kinds = (ir.Store, ir.Atomic, ir.Invoke, ir.If, ir.For)
        unwritten = self.effects(body).read - self.plan.operands  # arrays and tiles in shared memory
        is_plain = not unwritten and not any(isinstance(n, kinds) for n in ir.walk(*body))
        of_registers = all(isinstance(s, ir.SetElement) and s.name in self.plan.registers for s in body)
        return is_plain and of_registers and self.plan.layout(axes_of(loops)).is_exact

    def declare_lengths(self, loops: list[ir.For]) -> None:
        for s in loops:
            start, stop = self.expr(s.ranges[0].start), self.expr(s.ranges[0].stop)  # type: ignore[arg-type]
            self.out.line(f"const int {_length(s)} = (int)({stop} - {start});")

    def each_element(self, loops: list[ir.For], body: Any, write: Any, guarded: bool = True) -> None:
        """What `write` prints, for each of a thread's elements; in vectors, where the arrays of `body` allow it."""
        assert self.plan is not None
        layout = self.plan.layout(axes_of(loops))
        if isinstance(layout, Rows):
            self.each_row(layout, loops[0], body, write, guarded)
            return
        found = find_vectors(self, loops, body, layout.vector) if guarded else None
        if found is None:
            self.rows_of_elements(layout, loops, write, guarded, None)
            return
        quads = is_for_quads(layout, found)
        with self.out.block(f"if ({(quad_test if quads else vector_test)(self, loops, found)})"):
            if quads:
                write_quads(self, layout, loops, write, found, _length(loops[-1]))
            else:
                self.rows_of_elements(layout, loops, write, guarded, found)
        with self.out.orelse():
            self.rows_of_elements(layout, loops, write, guarded, None)

    def each_row(self, layout: Rows, loop: ir.For, body: Any, write: Any, guarded: bool) -> None:
        """An element for each row of fragments. What isn't set in registers is the first lane's."""
        assert self.plan is not None
        with self.row_loop(layout):
            tests = self.row_positions(layout, axes_of([loop]), [loop]) if guarded else []
            self.offsets[loop.variables[0]] = "row"
            self.register = "row_step"
            if not (isinstance(body[0], ir.SetElement) and body[0].name in self.plan.registers):
                tests = ["rank % 4 == 0", *tests]
            with self.out.block(f"if ({' && '.join(tests)})" if tests else ""):
                self.bind_variables([loop])
                write()
        self.register, self.offsets = "", {}

    def rows_of_elements(
        self, layout: Layout, loops: list[ir.For], write: Any, guarded: bool, vectors: Vectors | None
    ) -> None:
        with self.row_loop(layout):
            tests = self.row_positions(layout, axes_of(loops[:-1]), loops[:-1])
            with self.out.block(f"if ({' && '.join(tests)})" if guarded and tests else ""), self.column_loop(layout):
                self.columns_of_elements(layout, loops, write, guarded, vectors)
        self.register, self.offsets = "", {}

    def columns_of_elements(
        self, layout: Layout, loops: list[ir.For], write: Any, guarded: bool, vectors: Vectors | None
    ) -> None:
        """A thread's neighbours along a row."""
        variable, out = loops[-1].variables[0], self.out
        at, last = f"at_{cname(variable)}", _length(loops[-1])
        first = f"(rank % {layout.lanes} + column_step * {layout.lanes}) * {layout.vector}"
        self.offsets[variable] = at
        self.register = f"(row_step * {layout.column_steps} + column_step) * {layout.vector} + v"
        if vectors is None:
            out.line("#pragma unroll")
            with out.block(f"for (int v = 0; v < {layout.vector}; ++v)"):
                out.line(f"const int {at} = {first} + v;")
                with out.block(f"if ({at} < {last})" if guarded else ""):
                    self.bind_variables(loops)
                    write()
            return
        out.line(f"const int first = {first};")
        with out.block(f"if (first < {last})"):
            load_vectors(self, loops, vectors, at)
            out.line("#pragma unroll")
            with out.block(f"for (int v = 0; v < {layout.vector}; ++v)"):
                out.line(f"const int {at} = first + v;")
                self.bind_variables(loops)
                self.registers, self.results = vectors.registers(), vectors.results()
                write()
                self.registers, self.results = {}, {}
            store_vectors(self, loops, vectors, at)

    def row_loop(self, layout: Layout) -> Any:
        self.unroll(layout)
        block = self.out.block(f"for (int row_step = 0; row_step < {layout.row_steps}; ++row_step)")
        self.out.line(f"const int row = {layout.row};")
        self.out.line("(void)row;")
        return block

    def column_loop(self, layout: Layout) -> Any:
        self.unroll(layout)
        return self.out.block(f"for (int column_step = 0; column_step < {layout.column_steps}; ++column_step)")

    def unroll(self, layout: Layout) -> None:
        if self.rolled:
            self.out.line("#pragma unroll 1")
        elif layout.elements <= _MOST_UNROLLED:
            self.out.line("#pragma unroll")

    def row_positions(self, layout: Layout, axes: Axes, loops: list[ir.For]) -> list[str]:
        """Declares where the row is along its axes; the tests that it is inside."""
        rest = math.prod(n for _, n in axes)
        tests = ["row < 1"] if not axes and layout.groups > 1 else []
        for (variable, capacity), s in zip(axes, loops, strict=True):
            rest //= capacity
            name = f"at_{cname(variable)}"
            digit = "row" if rest == 1 else f"row / {rest}"
            self.out.line(f"const int {name} = {digit if s is loops[0] else f'{digit} % {capacity}'};")
            self.offsets[variable] = name
            tests.append(f"{name} < {_length(s)}")
        return tests

    def bind_variables(self, loops: list[ir.For]) -> None:
        for s in loops:
            variable = s.variables[0]
            start = self.expr(s.ranges[0].start)  # type: ignore[arg-type]
            self.out.line(f"const int64_t {cname(variable)} = {start} + {self.offsets[variable]};")
            self.out.line(f"(void){cname(variable)};")

    # ---- reductions

    def write_full_reduction(self, loops: list[ir.For], body: Any) -> None:
        """All elements of a nest into a number, which all threads get."""
        ((name, op),) = loops[-1].reductions
        kind = self.type_of(name)
        partial = self.scratch(self.plan.threads // WARP, kind.dtype)  # type: ignore[union-attr]
        self.order(self.effects(body), uses_scratch=True)
        self.declare_lengths(loops)
        self.each_element(loops, body, lambda: self.write(body))
        self.combine_lanes_of_block(name, op, kind, loops[0].loc, WARP)
        with self.out.block(f"if (rank % {WARP} == 0)"):
            self.out.line(f"{partial}[rank / {WARP}] = {cname(name)};")
        self.barrier()
        warps = self.plan.threads // WARP  # type: ignore[union-attr]
        self.combine_partials(name, op, kind, loops[0].loc, partial, "0", warps)
        self.pending |= Pending(scratch=True)

    def write_reduction(self, loops: list[ir.For], body: Any) -> None:
        """Rows into their results, by the lanes of each row."""
        inner, update = nest_of(body[1])
        ((name, op),) = inner[-1].reductions
        kind, kept, gone = self.type_of(name), axes_of(loops), axes_of(inner)
        threads = self.plan.threads  # type: ignore[union-attr]
        layout = Layout(math.prod(n for _, n in kept), math.prod(n for _, n in gone), threads)
        vectors = None
        if len(gone) == 1:  # as the tiles of these axes are in registers
            layout = self.plan.layout((*kept, *gone))  # type: ignore[union-attr]
            vectors = find_vectors(self, [*loops, *inner], update, layout.vector)
        warps = max(layout.lanes // WARP, 1)
        partial = self.scratch(layout.row_steps * layout.groups * warps, kind.dtype) if warps > 1 else ""
        effects = self.effects(loops[-1].body)
        self.order(Pending(effects.read) if partial else effects, bool(partial))
        self.declare_lengths([*loops, *inner])
        if vectors is not None:
            self.out.line(f"const bool in_vectors = {vector_test(self, [*loops, *inner], vectors)};")
        with self.row_loop(layout):
            tests = self.row_positions(layout, kept, loops)
            self.bind_variables(loops)
            self.register = "0"
            self.write((body[0],))
            if vectors is not None:
                with self.out.block(f"if (in_vectors && {' && '.join(tests)})"), self.column_loop(layout):
                    self.reduce_columns(layout, inner, update, vectors)
                tests = ["!in_vectors", *tests]
            with self.out.block(f"if ({' && '.join(tests)})"), self.column_loop(layout):
                self.reduce_columns(layout, inner, update, None)
            self.register = "0"
            tests = tests[1:] if vectors is not None else tests
            self.combine_lanes_of_block(name, op, kind, body[1].loc, min(layout.lanes, WARP))
            if partial:
                with self.out.block(f"if (rank % {WARP} == 0)"):
                    self.out.line(f"{partial}[row * {warps} + rank % {layout.lanes} / {WARP}] = {cname(name)};")
            else:
                self.store_row(layout, tests, body[2])
        self.register, self.offsets = "", {}
        if partial:
            self.barrier()
            with self.row_loop(layout):
                tests = self.row_positions(layout, kept, loops)
                self.bind_variables(loops)
                self.register = "0"
                self.combine_partials(name, op, kind, body[1].loc, partial, f"row * {warps}", warps)
                self.store_row(layout, tests, body[2])
            self.register, self.offsets = "", {}
            self.pending |= Pending(written=effects.written, scratch=True)

    def reduce_columns(self, layout: Layout, inner: list[ir.For], update: Any, vectors: Vectors | None) -> None:
        """A row's elements of a thread."""
        if len(inner) == 1:
            self.columns_of_elements(layout, inner, lambda: self.write(update), True, vectors)
            return
        self.out.line(f"const int column = rank % {layout.lanes} + column_step * {layout.lanes};")
        rest, tests = math.prod(s.capacity for s in inner), []
        for s in inner:
            rest //= s.capacity
            digit = "column" if rest == 1 else f"column / {rest}"
            name = f"at_{cname(s.variables[0])}"
            self.out.line(f"const int {name} = {digit if s is inner[0] else f'{digit} % {s.capacity}'};")
            self.offsets[s.variables[0]] = name
            tests.append(f"{name} < {_length(s)}")
        with self.out.block(f"if ({' && '.join(tests)})"):
            self.bind_variables(inner)
            self.write(update)

    def store_row(self, layout: Layout, tests: list[str], store: Any) -> None:
        assert self.plan is not None
        if isinstance(store, ir.SetElement) and isinstance(self.plan.registers.get(store.name), Rows):
            self.write((store,))
            return
        with self.out.block(f"if ({' && '.join([f'rank % {layout.lanes} == 0', *tests])})"):
            self.write((store,))

    def combine_lanes_of_block(self, name: str, op: str, kind: Any, loc: Any, lanes: int) -> None:
        """The accumulators of neighbouring threads, so many at a time; each gets the result."""
        if lanes > 1:
            with self.out.block(f"for (int d = {lanes // 2}; d > 0; d /= 2)"):
                x = cname(name)
                self.out.line(f"{x} = {self.combined(op, kind, loc, x, f'pa_shuffle({x}, d)')};")

    def combine_partials(self, name: str, op: str, kind: Any, loc: Any, partial: str, first: str, count: int) -> None:
        x = cname(name)
        self.out.line(f"{x} = {partial}[{first}];")
        if count > 1:
            with self.out.block(f"for (int w = 1; w < {count}; ++w)"):
                self.out.line(f"{x} = {self.combined(op, kind, loc, x, f'{partial}[{first} + w]')};")

    def type_of(self, name: str) -> Any:
        return dict(self.kernel.variables)[name]

    # ---- elements

    def emit_Element(self, e: ir.Element) -> str:
        if self.plan is None or not isinstance(e.array.type, ir.TileType):
            return super().emit_Element(e)
        return self.tile_element(e.array.name, e.array.type.shape, e.index)  # type: ignore[union-attr]

    def write_SetElement(self, s: ir.SetElement) -> None:
        if self.plan is None or (s.name not in self.plan.exchanged and s.name not in self.plan.registers):
            super().write_SetElement(s)
            return
        value = self.expr(s.value)
        self.out.line(f"{self.tile_element(s.name, s.shape, s.index)} = {value};")

    def tile_element(self, name: str, shape: tuple[int, ...], index: tuple[ir.Expr, ...]) -> str:
        assert self.plan is not None
        if name in self.plan.registers:
            by_row = isinstance(self.plan.registers[name], Rows)
            return f"{cname(name)}[{'row_step' if by_row else self.register}]"
        positions = ["0"] * len(shape)
        for k, position in enumerate(index):
            if isinstance(position, ir.Binary) and isinstance(position.a, ir.Local):
                positions[k] = self.offsets.get(position.a.name) or f"(int)({self.expr(position)})"
        if name in self.plan.operands:
            extents = [str(n) for n in shape]
            if name in self.plan.turned:
                extents, positions = extents[::-1], positions[::-1]
            return f"{cname(name)}[pa_tile_at<{', '.join(extents)}>({', '.join(positions)})]"
        text, sizes = "0", (*shape[:-1], shape[-1] + self.plan.padding(name))
        for n, at in zip(sizes, positions, strict=True):
            text = at if text == "0" else f"({text}) * {n} + {at}"
        return f"{cname(name)}[{text}]"


def _length(s: ir.For) -> str:
    return f"length_{cname(s.variables[0])}"
