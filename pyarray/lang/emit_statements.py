"""C text of the statements of one function. `emit` adds functions, parallel loops and the entry."""

from __future__ import annotations

from typing import Any

from ..dtypes import DType
from . import emit_views as views
from .collapse_loops import sole_inner_loop
from .delinearization import unit_step
from .emit_delinearized import CountedLoop, delinearized_loop, missed
from .emit_expressions import ExprEmitter, literal
from .emit_expressions import begin_iteration as begin_iteration
from .emit_expressions import cname as cname
from .emit_expressions import ctype as ctype
from .emit_expressions import sites_of as sites_of
from .ir import (
    Assign,
    Atomic,
    Break,
    Const,
    Continue,
    Evaluate,
    For,
    If,
    Invoke,
    Let,
    Load,
    Local,
    Range,
    Return,
    ScalarType,
    Stmt,
    Store,
    While,
    walk,
)
from .promotion import binary, call
from .write_mask import mask_itemsize

# Accumulators of an unordered reduction: four AVX2 registers of float32, and short sums for accuracy. Where
# the loop reads elements of one byte, as many as a register has of them: gcc vectorises over no fewer.
LANES, BYTE_LANES = 16, 32


def lane_count(s: For) -> int:
    """How many accumulators a reduction has side by side."""
    loads = (n for st in s.body for n in walk(st) if isinstance(n, Load))
    return BYTE_LANES if any(n.type.dtype.itemsize == 1 for n in loads) else LANES


def reduction_start(accumulator: str, op: str, dtype: DType) -> str:
    """What a part of a reduction starts from, as C text: of min, max, and, or the value itself."""
    return literal({"mul": 1}.get(op, 0), dtype) if op in ("add", "mul", "xor") else cname(accumulator)


class Emitter(ExprEmitter):
    """Adds statements to `ExprEmitter`."""

    def block(self, statements: tuple[Stmt, ...], indent: int) -> str:
        return "".join(self.statement(s, indent) for s in statements)

    def statement(self, s: Stmt, indent: int) -> str:
        text: str = getattr(self, f"write_{type(s).__name__}")(s, "    " * indent, indent)
        return text

    def write_Assign(self, s: Assign, pad: str, indent: int) -> str:
        return f"{pad}{self.renamed.get(s.name) or cname(s.name)} = {self.expr(s.value)};\n"

    def write_Store(self, s: Store, pad: str, indent: int) -> str:
        plain = s.site is None and not s.marks
        if plain and not any(isinstance(n, (Invoke, Atomic, Let)) for n in walk(s.value)):
            return f"{pad}{self.lvalue(s)} = {self.expr(s.value)};\n"
        # Python evaluates the value before the place, and so the first failure is that of the value
        value = f"const {s.array.type.dtype.ctype} value = {self.expr(s.value)};"
        if not s.marks:
            return f"{pad}{{ {value} {self.lvalue(s)} = value; }}\n"
        target, dtype = self.lvalue(s), s.array.type.dtype
        name = self.helper(views.mark(self.dialect.function))
        marks = "".join(
            f" {name}(element, {self.expr(low)}, {mask_itemsize(dtype.itemsize, dtype.kind)}, {self.expr(mask)});"
            for low, mask in zip(s.marks[::2], s.marks[1::2], strict=True)
        )
        element = f"{dtype.ctype} *const element = {target[1:] if target.startswith('*') else f'&{target}'};"
        return f"{pad}{{ {value} {element} *element = value;{marks} }}\n"

    def write_Evaluate(self, s: Evaluate, pad: str, indent: int) -> str:
        return (
            f"{pad}(void){self.expr(s.value)};\n"
            if s.value.type is not None
            else f"{pad}{self.expr(s.value)};\n"
        )

    def write_Return(self, s: Return, pad: str, indent: int) -> str:
        return f"{pad}return;\n" if s.value is None else f"{pad}return {self.expr(s.value)};\n"

    def write_Break(self, s: Break, pad: str, indent: int) -> str:
        return f"{pad}break;\n"

    def write_Continue(self, s: Continue, pad: str, indent: int) -> str:
        return f"{pad}continue;\n"

    def write_While(self, s: While, pad: str, indent: int) -> str:
        return f"{pad}while ({self.expr(s.condition)}{self.loop_guard}) {{\n{self.block(s.body, indent + 1)}{pad}}}\n"

    def write_If(self, s: If, pad: str, indent: int) -> str:
        text = f"{pad}if ({self.expr(s.condition)}) {{\n{self.block(s.then, indent + 1)}{pad}}}"
        if s.orelse:
            text += f" else {{\n{self.block(s.orelse, indent + 1)}{pad}}}"
        return text + "\n"

    def write_For(self, s: For, pad: str, indent: int) -> str:
        if s.reductions and self.dialect.lanes and sole_inner_loop(s.body) is None:
            return self.write_unordered(s, pad, indent)
        if len(s.ranges) > 1:
            return self.write_product(s, pad, indent)
        if (split := self.split_loop(s, pad, indent)) is not None:
            return split
        (variable,), (range_,) = s.variables, s.ranges  # pyright: ignore[reportAssignmentType]
        head = missed(self, s, indent) + self.loop_head(s, variable, range_, pad)
        return f"{head}{self.block(s.body, indent + 1)}{pad}}}\n"

    def split_loop(self, s: For, pad: str, indent: int) -> str | None:
        """A loop that counts the digits of its variable; None of others."""
        range_ = s.ranges[0]
        if not unit_step(range_) or isinstance(range_.stop, Const):
            return None  # loops of a constant length unroll, and fold their divisions
        first, last = (
            f"k{self.counters + 1}_first",
            f"k{self.counters + 1}_stop",
        )  # `delinearized_loop` counts one up
        text = self.split_rows(s, first, last, indent + 1)
        if text is None:
            return None
        start = self.expr(range_.start) if range_.start is not None else "0"
        bounds = f"{pad}    const int64_t {first} = {start}, {last} = {self.expr(range_.stop)};\n"  # type: ignore[arg-type]
        return f"{pad}{{\n{bounds}{text}{pad}}}\n"

    def split_rows(self, s: For, first: str, last: str, indent: int) -> str | None:
        """The loop over its last variable in rows; None of one that isn't split."""

        def body(span: CountedLoop, depth: int) -> str:
            return f"{span.head(depth)}{self.block(s.body, depth)}{'    ' * (depth - 1)}}}\n"

        return delinearized_loop(self, s, first, last, indent, body)

    def write_product(self, s: For, pad: str, indent: int) -> str:
        """Nested loops, whose bounds are all evaluated before the first."""
        head, opened, tail = "", list[str](), ""
        for depth, (variable, range_) in enumerate(zip(s.variables, s.ranges, strict=True)):
            self.counters += 1
            name, k, inner = cname(variable), f"k{self.counters}", pad + "    " * depth
            head += f"{pad}const int64_t {k}_stop = {self.expr(range_.stop)};\n"  # type: ignore[arg-type]
            opened.append(
                f"{inner}for (int64_t {name} = 0; {name} < {k}_stop{self.loop_guard}; ++{name}) {{\n"
            )
            tail = f"{inner}}}\n{tail}"
        last = indent + len(s.ranges) - 1
        rows = self.split_rows(s, "0", f"k{self.counters}_stop", last)
        if rows is not None:  # in place of the innermost loop
            return "".join([head, *opened[:-1], rows]) + tail.partition("\n")[2]
        return "".join([head, missed(self, s, indent), *opened, self.block(s.body, last + 1), tail])

    def loop_head(self, s: For, variable: str, range_: Range, pad: str) -> str:
        """Opens a C loop with Python's meaning: bounds are evaluated once, in order."""
        self.counters += 1
        name, k = cname(variable), f"k{self.counters}"
        start = self.expr(range_.start) if range_.start is not None else "0"
        stop = self.expr(range_.stop)  # type: ignore[arg-type]
        if unit_step(range_):
            hoisted = ""
            if not isinstance(range_.stop, Const):
                hoisted, stop = f", {k}_stop = {stop}", f"{k}_stop"
            return f"{pad}for (int64_t {name} = {start}{hoisted}; {name} < {stop}{self.loop_guard}; ++{name}) {{\n"
        head = f"{k}_first = {start}, {k}_last = {stop}, {k}_step = {self.step(s)}"
        count = f"{k}_count = pa_range_len({k}_first, {k}_last, {k}_step)"
        value = f"pa_add_i64({k}_first, pa_mul_i64({k}, {k}_step))"
        text = f"{pad}for (int64_t {k} = 0, {head}, {count}; {k} < {k}_count{self.loop_guard}; ++{k}) {{\n"
        return text + f"{pad}    const int64_t {name} = {value};\n"

    def write_unordered(self, s: For, pad: str, indent: int) -> str:
        """A reduction whose order is free: `lane_count` accumulators side by side, combined at the end. For
        step 1."""
        (variable,), (range_,) = s.variables, s.ranges
        types = {n.name: n.type for st in s.body for n in walk(st) if isinstance(n, Local)}
        self.counters += 1
        k, inner = f"k{self.counters}", pad + "    "
        start = self.expr(range_.start) if range_.start is not None else "0"
        stop = self.expr(range_.stop)  # type: ignore[arg-type]
        text = f"{pad}{{\n{inner}const int64_t {k}_first = {start}, {k}_stop = {stop};\n"
        lanes, count = {acc: f"lane_{cname(acc)}" for acc, _ in s.reductions}, lane_count(s)
        for acc, op in s.reductions:
            dtype = types[acc].dtype
            first = reduction_start(acc, op, dtype)
            text += f"{inner}{dtype.ctype} {lanes[acc]}[{count}];\n"
            text += f"{inner}for (int lane = 0; lane < {count}; ++lane) {lanes[acc]}[lane] = {first};\n"
        saved = dict(self.renamed)
        self.renamed |= {acc: f"{lane}[lane]" for acc, lane in lanes.items()}

        def body(span: CountedLoop, depth: int) -> str:
            return self.lane_loop(s, span, depth)

        rows = delinearized_loop(self, s, f"{k}_first", f"{k}_stop", indent + 1, body)
        full_range = CountedLoop(cname(variable), f"{k}_first", f"{k}_stop")
        text += missed(self, s, indent + 1) + body(full_range, indent + 2) if rows is None else rows
        text += self.combine_lanes(s, lanes, types, inner)
        self.renamed = saved
        return text + f"{pad}}}\n"

    def lane_loop(self, s: For, span: CountedLoop, depth: int) -> str:
        """The span, `lane_count` iterations at a time."""
        self.counters += 1
        count = lane_count(s)
        k, pad = f"k{self.counters}", "    " * (depth - 1)
        declared = f" {span.declared}" if span.declared else ""
        head = f"{pad}for (; {k} + {count} <= {k}_past{self.loop_guard}; {k} += {count}) {{\n"
        text = f"{pad}int64_t {k} = {span.first};\n{pad}const int64_t {k}_past = {span.past};\n{head}"
        text += f"{pad}    {self.dialect.lanes}\n"
        text += f"{pad}    for (int lane = 0; lane < {count}; ++lane) {{\n"
        text += f"{pad}        const int64_t {span.k} = {k} + lane;{declared}\n"
        text += f"{self.block(s.body, depth + 1)}{pad}    }}\n{pad}}}\n"
        text += f"{pad}for (int lane = 0; {k} < {k}_past; ++{k}, ++lane) {{\n"
        text += f"{pad}    const int64_t {span.k} = {k};{declared}\n"
        return text + f"{self.block(s.body, depth)}{pad}}}\n"

    def combine_lanes(self, s: For, lanes: dict[str, str], types: dict[str, Any], pad: str) -> str:
        text = f"{pad}for (int half = {lane_count(s) // 2}; half > 0; half /= 2) {{\n"
        text += f"{pad}    for (int lane = 0; lane < half; ++lane) {{\n"
        tail = ""
        for acc, op in s.reductions:
            kind, lane = types[acc], lanes[acc]
            both = self.combined(op, kind, s.loc, f"{lane}[lane]", f"{lane}[lane + half]")
            text += f"{pad}        {lane}[lane] = {both};\n"
            tail += f"{pad}{cname(acc)} = {self.combined(op, kind, s.loc, cname(acc), f'{lane}[0]')};\n"
        return text + f"{pad}    }}\n{pad}}}\n{tail}"

    def combined(self, op: str, kind: ScalarType, loc: Any, a: str, b: str) -> str:
        """Two accumulators, given as C text, into one."""
        self.renamed |= {"#a": a, "#b": b}
        pair = (Local(loc, kind, "#a"), Local(loc, kind, "#b"))
        node = call(loc, op, list(pair)) if op in ("min", "max") else binary(loc, op, *pair)
        return self.expr(node)
