"""CUDA and HIP text of a program: one kernel per parallel loop, one iteration per thread.

Statements outside the loops run once. If they only compute with sizes and numbers, each thread computes them
anew; otherwise a kernel of one thread computes them into the module's frame, which the loops read. An
iteration with an unordered loop belongs to a team (`emit_team.py`): a block, or a warp where there is little
to do. Debug mode tests each loop as a whole; if all of its indices are in range it runs as in release."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from ..driver.kernel_step import MOST_SIZES, KernelStep
from ..dtypes import int64
from . import emit_views as views
from .dialect import Dialect
from .emit import assemble, helper_functions, may_fail
from .emit_block_rows import block_row_guards, block_row_head, streamed_elements
from .emit_cached_rows import MIN_BLOCKS
from .emit_delinearized import missed, thread_digits
from .emit_loop import (
    bound_fields,
    bound_text,
    collapsed_trip_count,
    declarations,
    frames,
    is_parallel,
    outer_variables,
    slots,
    trip_count,
    unpack_slot,
    variable_at,
)
from .emit_statements import begin_iteration, cname, ctype, sites_of
from .emit_team import GridEmitter, has_side_effects, runs_by_teams
from .emit_tile import ROWS, is_tileable, tile_loop
from .emit_vectorized import elementwise_store, per_thread, vector_arrays, vector_loop
from .emit_vectorized_rows import vectorized_rows_loop
from .hoisted_checks import Hoisting
from .ir import (
    ArrayType,
    Atomic,
    Cast,
    Const,
    Expr,
    For,
    Invoke,
    Load,
    Local,
    ScalarType,
    Size,
    Store,
    Tree,
    assigned,
    walk,
)
from .reshape_indexing import Remarks
from .specializations import Specializations

_FRAME = "frame"
_THREADS = 256  # of a block
_BLOCKS_WORTH = 1024  # elements of an iteration that keep a block busy
_FEW_ITERATIONS = 512  # iterations whose blocks all run at once
_FEW_WORTH = 64  # elements of one of these that are worth a block
_TEAM = f"""\
        const bool whole = few || count < most / {_BLOCKS_WORTH};
        const int rank = whole ? (int)threadIdx.x : pa_lane(), team = whole ? PA_BLOCK_SIZE : PA_WARP;
        const int warps = team >> PA_WARP_BITS;
        const int64_t first_team = whole ? blockIdx.x : pa_thread() >> PA_WARP_BITS;
        const int64_t teams = whole ? gridDim.x : pa_threads() >> PA_WARP_BITS;
"""


def emit_gpu(
    tree: Tree, dialect: Dialect, debug: bool, specs: dict[str, Specializations] | None = None
) -> tuple[str, tuple[KernelStep, ...], Remarks]:
    """(text, the kernels to launch, what became of divided loops)."""
    code, kernel = GridEmitter(dialect, debug, specs), tree.kernel
    hoisted_checks = Hoisting(tree) if debug else None
    program = _GridProgram(code, tree, hoisted_checks)
    # the threads of a team take the same branches, whichever of them fails: they wait for each other
    code.may_fail = may_fail(tree) and not any(runs_by_teams(loop, code.pure) for loop in program.loops())
    helpers = helper_functions(code, tree, hoisted_checks)
    code.hoisted = code.sites = frozenset()
    for _, kind in (*kernel.params, *kernel.variables):
        code.declare(kind)
    text = program.text()
    parts = [slots(kernel, program.symbol, debug, grid=True), "\n".join(code.helpers.values()), helpers, text]
    return assemble(code, parts), tuple(program.steps), code.remarks


def _is_recomputable(node: Any) -> bool:
    """Whether computing it twice, by any thread, gives the same and changes nothing."""
    return not any(isinstance(n, (Load, Store, Atomic, Invoke)) for n in walk(node))


class _GridProgram:
    """The kernels of one program, in order."""

    def __init__(self, code: GridEmitter, tree: Tree, hoisted_checks: Hoisting | None):
        self.code, self.kernel, self.hoisted_checks = code, tree.kernel, hoisted_checks
        kernel = self.kernel
        code.pure = {f.symbol for f in tree.functions if not has_side_effects(f)}
        self.symbol = "kernel_" + cname(kernel.symbol)[2:]
        self.outer = outer_variables(kernel)
        self.steps: list[KernelStep] = []
        outside: list[Any] = [
            part
            for s in kernel.body
            for part in (s.ranges if isinstance(s, For) and is_parallel(s) else (s,))
        ]
        self.uses_frame = not all(_is_recomputable(part) for part in outside)

    def loops(self) -> list[For]:
        return [s for s in self.kernel.body if isinstance(s, For) and is_parallel(s)]

    def text(self) -> str:
        out, before = "", list[Any]()
        for statement in self.kernel.body:
            if isinstance(statement, For) and is_parallel(statement):
                out += self.setup_kernel(before, statement) if self.uses_frame else ""
                out += self.loop(statement, [] if self.uses_frame else list(before))
                before = [] if self.uses_frame else before
            else:
                before.append(statement)
        if before and self.uses_frame:
            out += self.setup_kernel(before, None)
        return (self.frame() if self.uses_frame else "") + out

    def frame(self) -> str:
        """Outer variables and loop bounds, in the module's own memory."""
        lines = [f"    {ctype(kind)} {cname(name)};\n" for name, kind in self.outer]
        for s in self.kernel.body:
            if isinstance(s, For) and is_parallel(s):
                lines += [f"    int64_t {name};\n" for name, _ in _frame_fields(s)]
        return f"__device__ struct {{\n{''.join(lines) or '    int64_t unused;'}}} {_FRAME};\n\n"

    def open_kernel(self, step: KernelStep, loop: int, blocks: int = 0) -> str:
        """Head of a kernel: the arguments as locals, and in debug mode where we are. Registers are
        for so many `blocks` of a processor, if given."""
        self.steps.append(step)
        text = self.code.dialect.entry.format(symbol=step.symbol, slots=f"{self.symbol}_slots")
        if blocks:
            text = text.replace("__launch_bounds__(256)", f"__launch_bounds__(256, {blocks})")
        for param, kind in self.kernel.params:
            text += f"    {ctype(kind)} {cname(param)};\n"
            text += unpack_slot(cname(param), kind, self.code.debug).replace("    env.", "    ")
            text += f"    (void){cname(param)};\n"
            text += "".join(f"    {line}\n" for line in self.code.assumptions(param, kind, cname(param)))
        if self.code.debug:
            text += "    pa_runtime run = slots->run;\n"
            text += f"    pa_at here = {{&run, {loop}, -1, {{0, 0}}}};\n"
            text += "    pa_at *at = &here;\n    const pa_frame *up = 0;\n    (void)at; (void)up;\n"
        return text

    def setup_kernel(self, statements: list[Any], loop: For | None) -> str:
        """One thread that runs what stands before a loop, and the loop's bounds."""
        code, number = self.code, len(self.steps)
        numbered = [s.loop for s in self.kernel.body if isinstance(s, For) and s.loop is not None]
        at = loop.loop if loop is not None and loop.loop is not None else len(numbered)
        text = self.open_kernel(KernelStep(f"{self.symbol}_once{number}", single=True), at)
        parts = [*statements, *(loop.ranges if loop is not None else ())]
        text += frames(code, parts, "0") if code.debug else ""
        text += self.load_frame()
        text += "".join(code.statement(s, 1) for s in statements)
        text += "".join(f"    {_FRAME}.{cname(n)} = {cname(n)};\n" for n, _ in self.outer)
        for field, x in bound_fields(loop) if loop is not None else ():
            text += f"    {_FRAME}.{field} = {bound_text(code, loop, field, x)};\n"  # type: ignore[arg-type]
        if loop is not None and len(loop.ranges) == 1:
            text += f"    {_FRAME}.{_count_field(loop)} = {self.trip_count(loop, f'{_FRAME}.')};\n"
        return text + "}\n\n"

    def load_frame(self) -> str:
        return "".join(f"    {ctype(k)} {cname(n)} = {_FRAME}.{cname(n)};\n" for n, k in self.outer)

    def loop(self, loop: For, before: list[Any]) -> str:
        code, number = self.code, loop.loop
        assert number is not None
        lines = list[str]()
        if self.hoisted_checks is not None:
            inside = assigned(*loop.body)
            known = {n: t for n, t in (*self.kernel.params, *self.outer) if n not in inside}
            code.hoisted, lines = self.hoisted_checks.loop(loop, known)
        code.sites = sites_of(loop.body)
        code.cached_row = None
        digits, code.digit_lines, code.digits = thread_digits(code, loop) or (missed(code, loop, 1), "", {})
        versions, how = self.loop_text(loop)
        size_slots = None if self.uses_frame else self.size_slots(loop)
        step = KernelStep(f"{self.symbol}_{number}", size_slots, **how)
        block_rows = self.block_rows(loop, step, before, digits)
        code.digit_lines, code.digits = "", {}
        text = block_rows + self.open_loop(loop, step, before) + digits
        if not lines:
            return text + versions + "}\n\n"
        tests = "".join(f"    {line}\n" for line in lines).replace("env->", "")
        text += f"    if (count <= 0) return;\n    const int64_t begin = 0, end = count;\n{tests}"
        text += f"    if (inside) {{\n    const bool inside = true;\n{versions}    }} else {{\n"
        code.hoisted = frozenset()
        return f"{text}{self.thread_loop(loop)}    }}\n}}\n\n"

    def open_loop(self, loop: For, step: KernelStep, before: list[Any]) -> str:
        """Head of a loop's kernel, what comes before the loop, and the number of its iterations."""
        code = self.code
        assert loop.loop is not None
        text = self.open_kernel(step, loop.loop, MIN_BLOCKS if code.cached_row else 0)
        if self.uses_frame:
            text += self.load_frame()
            text += "".join(f"    const int64_t {f} = {_FRAME}.{f};\n" for f, _ in _frame_fields(loop))
        else:
            code.hoisted, hoisted = frozenset(), code.hoisted
            text += declarations(self.outer, "    ") + "".join(code.statement(s, 1) for s in before)
            code.hoisted = hoisted
            for field, x in bound_fields(loop):
                text += f"    const int64_t {field} = {bound_text(code, loop, field, x)};\n"
        fields = [field for field, _ in bound_fields(loop)]
        single = _count_field(loop) if self.uses_frame else self.trip_count(loop)
        trip_count = collapsed_trip_count(code, self.kernel, loop, fields) if len(loop.ranges) > 1 else single
        return f"{text}    const int64_t count = {trip_count};\n"

    def block_rows(self, loop: For, step: KernelStep, before: list[Any], digits: str) -> str:
        """The kernel of a loop for rows that a block keeps, if there is one: its step precedes the loop's."""
        row, row_slot = self.code.cached_row, step.row_slot
        if row is None or row_slot is None or step.size_slots is None or self.code.debug:
            return ""
        guards, streamed = block_row_guards(row, row_slot, self.first_slots()), streamed_elements(row, loop)
        stop = row.loops[0].ranges[0].stop
        if guards is None or not streamed or stop is None:
            return ""
        row_bytes = sum(row.kinds[ref].dtype.itemsize for ref in streamed)
        symbol = f"{self.symbol}_block{loop.loop}"
        text = self.open_loop(loop, replace(step, symbol=symbol, guards=guards, row_bytes=row_bytes), before)
        text += digits + block_row_head(row, self.code.expr(stop), "    ")
        body = self.code.block_row_version(row, loop, 2)
        return f"{text}    if (t < count) {{\n{self.iteration_text(loop, body)}    }}\n}}\n\n"

    def loop_text(self, loop: For) -> tuple[str, dict[str, Any]]:
        """The loop's text, and fields of its step: how its grid differs from a thread for each iteration."""
        code, kernel = self.code, self.kernel
        if runs_by_teams(loop, code.pure):
            return self.team_loop(loop), {"team": True} | self.row()
        store = elementwise_store(code, kernel, loop, self.code.pure)
        if store is None or (len(loop.ranges) > 1 and not is_tileable(loop)):
            return self.thread_loop(loop), {}
        if len(loop.ranges) > 1:
            lines = vectorized_rows_loop(code, kernel, loop, store)
            return lines + tile_loop(code, kernel, loop, store, self.thread_loop(loop)), {"per_thread": ROWS}
        vector = vector_arrays(code, kernel, loop)
        return vector_loop(code, kernel, loop, store), {"per_thread": per_thread(kernel, store, vector)}

    def team_loop(self, loop: For) -> str:
        """A block for each iteration if there are a thousand elements for each, or some where few iterations
        leave most of the device idle, else a warp."""
        sizes = [
            "0",
            *(views.element_count(k, cname(n)) for n, k in self.kernel.params if isinstance(k, ArrayType)),
        ]
        most = functools.reduce(lambda a, b: f"pa_more({a}, {b})", sizes)
        before, versions = self.code.team_versions(self.kernel, loop, 3)
        text = ""
        for test, head, body in versions:
            text += f" else if ({test}) {{\n" if test else " else {\n"
            text += f"{head or _TEAM}        for (int64_t t = first_team; t < count; t += teams) {{\n"
            text += f"{self.iteration_text(loop, body)}        }}\n    }}"
        return f"""\
    const int64_t most = {most};
    const bool few = count <= {_FEW_ITERATIONS} && count < most / {_FEW_WORTH};
{before}    {text.removeprefix(" else ")}
"""

    def row(self) -> dict[str, int]:
        """The slot of a cached row's length and the elements that a block keeps, if the loop has one."""
        row = self.code.cached_row
        range_ = row.loops[0].ranges[0] if row is not None else None
        slot = self.slot(range_.stop) if range_ is not None and range_.start is None else None
        return (
            {} if row is None or slot is None else {"row_slot": slot, "row_elements": _THREADS * row.elements}
        )

    def thread_loop(self, loop: For) -> str:
        """An iteration for each thread, and more where there are more."""
        return (
            "    for (int64_t t = pa_thread(); t < count; t += pa_threads()) {\n"
            + self.iteration_text(loop, self.code.block(loop.body, 2))
            + "    }\n"
        )

    def iteration_text(self, loop: For, body: str) -> str:
        code, inner = self.code, assigned(*loop.body)
        text = ""
        if code.debug:
            text += f"        {begin_iteration('t')}\n" + frames(code, loop.body, "0").replace(
                "    ", "        ", 1
            )
        text += self.loop_variables(loop) + (f"        {code.digit_lines}\n" if code.digit_lines else "")
        text += declarations(((n, k) for n, k in self.kernel.variables if n in inner), "        ")
        return text + body

    def trip_count(self, loop: For, prefix: str = "") -> str:
        """Number of iterations; what `bound_fields` hold is read from `prefix`."""
        fields = dict(bound_fields(loop))
        first, step = (prefix + f if f in fields else None for f in (f"from{loop.loop}", f"step{loop.loop}"))
        return trip_count(self.code, loop.ranges[0], first, step)

    def loop_variables(self, loop: For) -> str:
        """The loop's variables from the number of the iteration."""
        names, fields = [cname(v) for v in loop.variables], dict(bound_fields(loop))
        if len(names) == 1:
            range_ = loop.ranges[0]
            first, step = (
                None if x is None else field if field in fields else self.code.expr(x)
                for field, x in ((f"from{loop.loop}", range_.start), (f"step{loop.loop}", range_.step))
            )
            return f"        const int64_t {names[0]} = {variable_at('t', first, step)};\n"
        text = "        int64_t rest = t;\n"
        for name, field in reversed(list(zip(names[1:], list(fields)[1:], strict=True))):
            text += f"        const int64_t {name} = pa_split(&rest, {field}, count);\n"
        return text + f"        const int64_t {names[0]} = rest;\n"

    def size_slots(self, loop: For) -> tuple[int, ...] | None:
        """Slots whose product is the number of iterations, None where it isn't that simple."""
        found = []
        for range_ in loop.ranges:  # a start above 0 or a step leave iterations out
            if not all(
                x is None or (isinstance(x, Const) and x.value >= 0) for x in (range_.start, range_.step)
            ):
                return None
            slot = self.slot(range_.stop)
            if slot is None:
                return None
            found.append(slot)
        return tuple(found) if len(found) <= MOST_SIZES else None

    def first_slots(self) -> dict[str, int]:
        """The first slot of each parameter."""
        slots, position = {}, 0
        for name, kind in self.kernel.params:
            slots[name] = position
            position += _slot_count(kind, self.code.debug)
        return slots

    def slot(self, stop: Expr | None) -> int | None:
        """The slot that holds a loop's bound, if one does."""
        slots = self.first_slots()
        while isinstance(stop, Cast) and stop.type.dtype is int64 and stop.a.type.dtype is int64:
            stop = stop.a
        if isinstance(stop, Size) and isinstance(stop.array, Local) and stop.array.name in slots:
            return slots[stop.array.name] + 1 + self.code.debug + stop.axis
        inside = assigned(*self.kernel.body)
        kinds = {n: k for n, k in self.kernel.params if n not in inside}
        kind = kinds.get(stop.name) if isinstance(stop, Local) else None
        return slots[stop.name] if isinstance(kind, ScalarType) and kind.dtype is int64 else None  # type: ignore[union-attr]


def _count_field(loop: For) -> str:
    return f"count{loop.loop}"


def _frame_fields(loop: For) -> list[tuple[str, Any]]:
    """What the frame holds of a loop: its bounds and, of a single range, the number of iterations, which
    stores of other threads must not change."""
    single = len(loop.ranges) == 1
    return [*bound_fields(loop), (_count_field(loop), loop.ranges[0])] if single else bound_fields(loop)


def _slot_count(kind: Any, debug: bool) -> int:
    if hasattr(kind, "ndim"):
        return 1 + debug + kind.ndim * (2 if kind.strided else 1)
    return 2 if kind.dtype.kind == "c" else 1
