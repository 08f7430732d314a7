"""Barriers of an iteration with tiles: what threads may have read and written since the last one is known at each
place of the text, so that one stands only where a step needs it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from . import ir
from .emit_expressions import ctype
from .emit_team import GridEmitter
from .emit_tile_loads import write_loop_with_loads
from .tile_layout import TilePlan, most_bytes

_MEMORY = "memory"  # of all arrays, among the tiles that barriers are for


@dataclass(frozen=True)
class Pending:
    """What threads may have read since the last barrier, and written; `scratch`: they may still read what a step has
    left in scratch memory."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    scratch: bool = False

    def __or__(self, other: Pending) -> Pending:
        return Pending(self.read | other.read, self.written | other.written, self.scratch or other.scratch)


class BarrierEmitter(GridEmitter):
    plan: TilePlan | None = None  # while the statements are those of a block's iteration with tiles
    pending = Pending()
    asked: tuple[ir.Expr, ...] = ()  # what the loop at hand evaluates before each of its iterations
    scratch_bytes = 0

    def effects(self, parts: Any) -> Pending:
        """What these statements read and write that threads share."""
        read, written = set[str](), set[str]()
        assert self.plan is not None
        for n in ir.walk(*parts):
            if isinstance(n, ir.Load):
                read.add(_MEMORY)
            elif isinstance(n, (ir.Store, ir.Atomic)):
                written.add(_MEMORY)
            elif isinstance(n, ir.Invoke):
                (read if n.function in self.pure else written).add(_MEMORY)
            elif isinstance(n, ir.Element) and getattr(n.array, "name", "") in self.plan.exchanged:
                read.add(n.array.name)  # type: ignore[union-attr]
            elif isinstance(n, ir.SetElement) and n.name in self.plan.exchanged:
                written.add(n.name)
        return Pending(frozenset(read), frozenset(written))

    def whole(self, parts: Any) -> Pending:
        """What may be pending after some of these statements."""
        return replace(self.effects(parts), scratch=True)

    def barrier(self, fenced: bool = True) -> None:
        """A barrier, `fenced` if matrix instructions may read behind it what threads have stored before."""
        assert self.plan is not None
        self.out.line("pa_tile_barrier();" if fenced and self.plan.operands else "__syncthreads();")
        self.pending = Pending()

    def order(self, step: Pending, uses_scratch: bool = False) -> None:
        """A barrier before a step, if it needs one."""
        read, written = self.pending.read, self.pending.written
        if step.read & written or step.written & (read | written) or (uses_scratch and self.pending.scratch):
            self.barrier()
        self.pending |= step

    def scratch(self, count: int, dtype: Any) -> str:
        """Shared memory of one step, declared here, which the next step that needs some takes, too."""
        return self.scratch_of(dtype.ctype, count * dtype.itemsize)

    def scratch_of(self, kind: str, nbytes: int) -> str:
        assert self.plan is not None
        self.counters += 1
        name, offset = f"scratch{self.counters}", self.plan.shared_bytes
        self.out.line(f"{kind} *const {name} = ({kind} *)(tile_memory + {offset});")
        self.scratch_bytes = max(self.scratch_bytes, offset + -(-nbytes // 16) * 16)
        return name

    def value_of_one(self, e: Any) -> str:
        """C text of an expression with an effect: one thread evaluates it, and all get the value."""
        self.order(self.effects((e,)), uses_scratch=True)
        name = self.scratch_of(ctype(e.type), most_bytes(e.type))
        with self.out.block("if (rank == 0)"):
            self.out.line(f"{name}[0] = {self.expr(e)};")
        self.barrier()
        self.pending |= Pending(scratch=True)
        return f"{name}[0]"

    def variable_of_one(self, e: Any) -> Any:
        """The same as a variable; what has no effect, too, since it may stand before or behind one."""
        if e is None or isinstance(e, ir.Const):
            return e
        value = self.value_of_one(e)
        self.counters += 1
        name = f"given{self.counters}"
        self.out.line(f"const {e.type.dtype.ctype} {name} = {value};")
        self.renamed[f".{name}"] = name
        return ir.Local(e.loc, e.type, f".{name}")

    def with_heads_of_one(self, s: Any) -> Any:
        """A loop or branch whose condition or ranges have an effect, with variables in their place."""
        if isinstance(s, ir.While):  # there is a value for each turn
            turn = ir.If(s.loc, s.condition, s.body, (ir.Break(s.loc),))
            return replace(s, condition=ir.Const(s.loc, ir.BOOL, True), body=(turn,))
        if isinstance(s, ir.If):
            return replace(s, condition=self.variable_of_one(s.condition))
        bounds = ([self.variable_of_one(x) for x in (r.start, r.stop, r.step)] for r in s.ranges)
        return replace(s, ranges=tuple(ir.Range(*x) for x in bounds))

    def write_control(self, s: Any) -> None:
        """A loop or branch that all threads take alike. A barrier in a branch that isn't taken, or in a loop without
        iterations, is for nobody."""
        if self.effects(_heads(s)).written:
            s = self.with_heads_of_one(s)
        heads = _heads(s)
        self.order(self.effects(heads))
        if isinstance(s, ir.If):
            before = self.pending
            with self.out.block(f"if ({self.expr(s.condition)})"):
                self.write(s.then)
            then, self.pending = self.pending, before
            if s.orelse:
                with self.out.orelse():
                    self.write(s.orelse)
            self.pending |= then
            return
        if isinstance(s, ir.For) and write_loop_with_loads(self, s):
            return
        outer, self.asked = self.asked, heads if isinstance(s, ir.While) else ()
        if self.effects(self.asked) != Pending():
            s = replace(s, body=(*s.body, ir.Continue(s.loc)))  # before which the condition's reads are ordered
        self.pending = before = self.pending | self.whole((s,))
        super().write_statement(s)
        self.pending |= before
        self.asked = outer


def _heads(s: Any) -> tuple[Any, ...]:
    return (s.condition,) if isinstance(s, (ir.If, ir.While)) else s.ranges
