"""GPU text of loops that load the next iterations' operands of products while they compute with those at hand.

These tiles have a place in each of several stages of shared memory, which take turns; how many there are depends on the
memory of the GPU. Copies are asynchronous: threads wait for them, and for each other, where an iteration begins. An
iteration that does no more than to add a product leaves it running while the next one is started. What products alone
read is kept transposed where its array has neighbours in memory across the rows of the tile."""

from __future__ import annotations

from typing import Any

from . import ir
from .emit_loop import declarations
from .emit_statements import cname
from .emit_tile_across import find_across
from .emit_tile_copies import Copy, copy_of, write_copy, write_first_address
from .emit_tile_products import sums_in_place
from .tile_layout import copied_tile, leading_statements, loaded_ahead
from .tile_nests import nest_of, transposed_copy


def write_loop_with_loads(code: Any, s: ir.For) -> bool:
    """Whether the loop is one, and printed."""
    names = loaded_ahead(s, code.plan)
    if names:
        _Loop(code, s, names).write()
        code.pending |= code.whole((s,))
    return bool(names)


class _Loop:
    """The loop, which loads the tiles with these names ahead."""

    def __init__(self, code: Any, s: ir.For, names: list[str]):
        self.code, self.loop, self.names, self.leading = code, s, names, leading_statements(s)
        self.variable, self.number = cname(s.variables[0]), f"iteration_{cname(s.variables[0])}"
        self.across: dict[str, str] = {}
        nests = [x for x in self.leading if (copied := copied_tile(x, code.plan)) and copied[0].name in names]
        self.rest = tuple(x for x in s.body if x not in nests)
        self.copies = [self.copy_of(x, k) for k, x in enumerate(nests)]
        self.product = _first_product(code, self.rest)
        self.sums = _accumulated(code, self.rest, self.product)

    def copy_of(self, nest: ir.For, ordinal: int) -> Copy:
        copy = copy_of(nest, ordinal, self.loop, self.leading)
        found = find_across(self.code, nest, copy.load)
        if found is None or not self.is_for_products_alone(copy.store.name):
            return copy
        across = copy_of(transposed_copy(nest), ordinal, self.loop, self.leading)
        self.across[copy.store.name] = copy.flag if found.test else "true"
        return copy._replace(across=across, test=found.test) if found.test else across

    def is_for_products_alone(self, name: str) -> bool:
        """Whether all that reads a tile are products by matrix instructions, which also take it transposed."""
        nests = [nest_of(x) for x in ir.walk(*self.rest) if isinstance(x, ir.For) and x.capacity]
        products = [p for loops, body in nests if (p := self.code.matrix_product(loops, body))]
        operands = [x for p in products for x in (p.a, p.b)]
        uses = [x for x in ir.walk(*self.rest) if isinstance(x, ir.Element) and getattr(x.array, "name", "") == name]
        return len(uses) == sum(x.array.name == name for x in operands)

    def write(self) -> None:
        code, out, (range_,) = self.code, self.code.out, self.loop.ranges
        with out.block():
            out.lines([f"const bool {x.flag} = {x.test};" for x in self.copies if x.across is not None])
            outer, code.across = code.across, code.across | self.across
            start = code.expr(range_.start) if range_.start is not None else "0"
            out.line(f"const int64_t first_iteration = {start}, past_iterations = {code.expr(range_.stop)};")
            out.line(f"const int ahead = stages - 1{' - PA_TILE_IN_FLIGHT' if self.sums else ''};")
            out.line("int current = 0;")
            for x in self.copies:
                write_first_address(code, x, lambda: self.write_numbers("first_iteration"))
            code.barrier()
            out.lines(["#if PA_TILE_ASYNCHRONOUS", "#pragma unroll 1"])
            with out.block("for (int first = 0; first < ahead; ++first)"):
                with out.block("if (first_iteration + first < past_iterations)"):
                    self.write_copies("first_iteration + first", "first")
                out.line("pa_tile_commit();")
            out.line("#endif")
            with out.block("if (first_iteration < past_iterations)"):  # else no product is in flight
                with out.block(
                    f"for (int64_t {self.number} = first_iteration; {self.number} < past_iterations; ++{self.number})"
                ):
                    self.write_iteration()
                for name in self.sums:
                    out.line(f"pa_tile_finish<{code.plan.registers[name].elements}>({cname(name)});")
        code.across = outer

    def write_iteration(self) -> None:
        code, out = self.code, self.code.out
        out.line("#if !PA_TILE_ASYNCHRONOUS")
        code.barrier()
        with out.block():
            self.write_copies(self.number, "0")
        out.lines(["#endif", "pa_tile_wait(ahead - 1);"])
        # what asynchronous copies have written needs no fence, as in other compilers' loops; it took up to a tenth
        code.barrier(fenced=_stores_operands(code, self.rest))
        out.lines([f"const int64_t {self.variable} = {self.number};", "const int stage = current;", *self.places()])
        if self.product is not None:
            code.meanwhile, code.in_flight = self.write_ahead, bool(self.sums)
        else:
            with out.block():
                self.write_ahead()
        code.write(self.rest)
        out.line("current = current + 1 == stages ? 0 : current + 1;")

    def write_ahead(self) -> None:
        """The copies of a later iteration, into the stage that was in use last."""
        out = self.code.out
        out.line("#if PA_TILE_ASYNCHRONOUS")
        with out.block(f"if ({self.number} + ahead < past_iterations)"):
            out.line("const int later = current + ahead < stages ? current + ahead : current + ahead - stages;")
            self.write_copies(f"{self.number} + ahead", "later")
        out.lines(["pa_tile_commit();", "#endif"])

    def write_copies(self, number: str, stage: str) -> None:
        """Those of the iteration with a number."""
        out = self.code.out
        out.lines([f"const int stage = {stage};", *self.places()])
        self.write_numbers(number)
        for x in self.copies:
            with out.block():
                write_copy(self.code, x, self.variable)

    def write_numbers(self, number: str) -> None:
        """The numbers that an iteration begins with, as variables of their own."""
        code, numbers = self.code, [x for x in self.leading if isinstance(x, ir.Assign)]
        code.out.line(f"const int64_t {self.variable} = {number};")
        code.out.lines(declarations((name, code.type_of(name)) for name in dict.fromkeys(x.name for x in numbers)))
        code.write(numbers)

    def places(self) -> list[str]:
        """Declarations of the tiles in a stage."""
        lines, plan = [], self.code.plan
        for name in self.names:
            kind = self.code.type_of(name).dtype.ctype
            place = f"staged + stage * {plan.stage_bytes} + {plan.staged[name]}"
            lines.append(f"{kind} *const {cname(name)} = ({kind} *)({place});")
        return lines


def _first_product(code: Any, body: tuple[Any, ...]) -> ir.For | None:
    """The nest of the product that a body begins with, behind numbers: threads can copy while it is computed."""
    first = next((x for x in body if not isinstance(x, ir.Assign)), None)
    if not isinstance(first, ir.For) or not first.capacity or code.matrix_product(*nest_of(first)) is None:
        return None
    return first


def _accumulated(code: Any, body: tuple[Any, ...], product: ir.For | None) -> list[str]:
    """The tile of sums, if a body does no more than to add a product of operands in shared memory, and there are
    stages for two products at a time."""
    if product is None or body[-1] is not product or not code.plan.has_two_in_flight(code.scratch_bytes):
        return []
    loops, inner = nest_of(product)
    in_registers = code.matrix_product(loops, inner).a.array.name in code.plan.registers
    return [inner[2].name] if sums_in_place(code, loops, inner) and not in_registers else []


def _stores_operands(code: Any, body: tuple[Any, ...]) -> bool:
    """Whether threads store in operands of products."""
    tiles = code.plan.operands & code.plan.exchanged
    return any(isinstance(n, ir.SetElement) and n.name in tiles for n in ir.walk(*body))
