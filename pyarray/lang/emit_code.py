"""C text of expressions and statements of one function. `emit` adds the frames: functions, loops, the
entry."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import DType
from . import emit_views as views
from .dialect import Dialect
from .emit_cast import cast
from .ir import (
    ArrayType,
    Assign,
    Atomic,
    Binary,
    Break,
    Builtin,
    Cast,
    Compare,
    Const,
    Continue,
    Evaluate,
    Expr,
    For,
    If,
    Invoke,
    Item,
    Let,
    Load,
    Local,
    Logic,
    Pack,
    Range,
    Return,
    ScalarType,
    Select,
    Size,
    Slice,
    Stmt,
    Store,
    Stride,
    SubView,
    TupleType,
    Unary,
    While,
    walk,
)
from .pins import Pins, fold
from .scalar import binary, call
from .written import grain

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
LANES = (
    16  # accumulators of an unordered reduction: four AVX2 registers of float32, and short sums for accuracy
)


def cname(name: str) -> str:
    """The variable's name in C. The prefix keeps all that users write apart from words of C, macros,
    functions of the headers and our own names, none of which begin like that; the escape tells `é` from the
    letters of its code, and writes the paths of fields: `p.v`, `t[0]`."""
    if name.startswith("."):
        return f"t_{name[1:]}"
    if name.isascii() and name.isidentifier():
        return f"v_{name}"
    return "u_" + "".join(
        c if c.isascii() and c.isalnum() else "__" if c == "_" else f"_{ord(c):x}_" for c in name
    )


def ctype(kind: Any) -> str:
    if kind is None:
        return "void"
    if isinstance(kind, TupleType):
        return "tuple" + "".join(f"_{ctype(item).removesuffix('_t')}" for item in kind.items)
    return views.view_name(kind) if isinstance(kind, ArrayType) else str(kind.dtype.ctype)


def start_of(accumulator: str, op: str, dtype: DType) -> str:
    """What a part of a reduction starts from, as C text: of min, max, and, or the value itself."""
    return constant({"mul": 1}.get(op, 0), dtype) if op in ("add", "mul", "xor") else cname(accumulator)


def constant(value: Any, dtype: DType) -> str:
    """A number as C text of that type."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "c":
        part = "f32" if dtype.itemsize == 8 else "f64"
        return f"pa_make_{dtype.suffix}({_real(value.real, part)}, {_real(value.imag, part)})"
    if dtype.kind == "f":
        if dtype.itemsize == 2:
            return f"pa_{dtype.suffix}_from_f64({_real(value, 'f64')})"
        return _real(value, dtype.suffix)
    if dtype.kind == "u":
        return f"{value}u" if value < 1 << 31 else f"{value}ull"
    return (
        str(value)
        if -(1 << 31) < value < 1 << 31
        else "(-9223372036854775807ll - 1)"
        if value == -(1 << 63)
        else f"{value}ll"
    )


def _real(value: float, suffix: str) -> str:
    if suffix == "f32":
        with np.errstate(over="ignore"):
            value = float(
                np.float32(value)
            )  # rounded once: the decimal text of the double would be rounded again
    if math.isnan(value):
        return f"PA_NAN_{suffix.upper()}"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}PA_INF_{suffix.upper()}"
    text = repr(float(value))
    text = text if "." in text or "e" in text else text + ".0"
    return text + "f" if suffix == "f32" else text


class Code:
    """Text of the bodies of one program. `helpers` collects the access, slice and sub-view functions that
    they use."""

    def __init__(self, dialect: Dialect, debug: bool, pins: dict[str, Pins] | None = None):
        self.dialect, self.debug, self.pins = dialect, debug, pins or {}
        self.structs: dict[str, str] = {}
        self.helpers: dict[str, str] = {}
        self.renamed: dict[str, str] = {}
        self.written: frozenset[str] = frozenset()  # parameters of the kernel that something is stored into
        self.hoisted: frozenset[int] = frozenset()  # sites that `inside` answers for, in the text at hand
        self.at: dict[tuple[str, tuple[str, ...]], str] = {}  # (array, variables): that element's place
        self.counters = 0

    def promised(self, name: str, kind: Any, view: str) -> list[str]:
        """Statements that tell the compiler what the parameter `name` promises of its sizes."""
        pins = self.pins.get(name)
        return fold(pins, view, kind.ndim, kind.dtype.itemsize, kind.strided) if pins else []

    def use(self, kind: Any) -> None:
        """Declare the struct of an array type, or of several values."""
        if isinstance(kind, ArrayType):
            self.structs.setdefault(views.view_name(kind), views.struct(kind, self.debug))
        elif isinstance(kind, TupleType):
            for item in kind.items:
                self.use(item)
            members = " ".join(f"{ctype(item)} m{k};" for k, item in enumerate(kind.items))
            self.structs.setdefault(ctype(kind), f"typedef struct {{ {members} }} {ctype(kind)};\n")

    def helper(self, made: tuple[str, str]) -> str:
        self.helpers.setdefault(*made)
        return made[0]

    @staticmethod
    def function_name(symbol: str) -> str:
        return f"func_{cname(symbol)[2:]}"

    # ---- expressions

    def expr(self, e: Expr) -> str:
        text: str = getattr(self, f"emit_{type(e).__name__}")(e)
        return text

    def emit_Const(self, e: Const) -> str:
        text = constant(e.value, e.type.dtype)
        return f"({text})" if text.startswith("-") else text

    def emit_Local(self, e: Local) -> str:
        return self.renamed.get(e.name) or cname(e.name)

    def emit_Unary(self, e: Unary) -> str:
        a, dtype = self.expr(e.a), e.type.dtype
        if e.op == "invert":
            return f"(!{a})" if dtype.kind == "b" else f"(({dtype.ctype})~{a})"
        if dtype.kind == "f" and dtype.itemsize > 2:
            return f"(-{a})"
        return f"pa_neg_{dtype.suffix}({a})"

    def emit_Binary(self, e: Binary) -> str:
        a, b, dtype, op = self.expr(e.a), self.expr(e.b), e.type.dtype, e.op
        if dtype.kind == "b":
            symbol = {"add": "|", "mul": "&"}.get(op) or INFIX[op]
            return f"((bool)({a} {symbol} {b}))"
        infix = op in INFIX and (dtype.kind == "f" or op in ("and", "or", "xor"))
        if infix and dtype.kind in "iu" and dtype.itemsize < 4:
            return f"(({dtype.ctype})({a} {INFIX[op]} {b}))"
        return f"({a} {INFIX[op]} {b})" if infix else f"pa_{op}_{dtype.suffix}({a}, {b})"

    def emit_Compare(self, e: Compare) -> str:
        a, b = self.expr(e.a), self.expr(e.b)
        if e.a.type.dtype.kind == "c":
            return f"pa_{e.op}_{e.a.type.dtype.suffix}({a}, {b})"
        if e.a.type.dtype is not e.b.type.dtype:
            name = self.helper(views.mixed_compare(e.op, INFIX[e.op], self.dialect.function))
            return f"{name}({a}, {b})"
        return f"({a} {INFIX[e.op]} {b})"

    def emit_Let(self, e: Let) -> str:
        return f"({cname(e.name)} = {self.expr(e.value)}, {self.expr(e.body)})"

    def emit_Logic(self, e: Logic) -> str:
        return f"({self.expr(e.a)} {'&&' if e.op == 'and' else '||'} {self.expr(e.b)})"

    def emit_Select(self, e: Select) -> str:
        return f"({self.expr(e.condition)} ? {self.expr(e.a)} : {self.expr(e.b)})"

    def emit_Cast(self, e: Cast) -> str:
        return cast(self.expr(e.a), e.a.type.dtype, e.type.dtype)

    def emit_Builtin(self, e: Builtin) -> str:
        args, dtype = [self.expr(a) for a in e.args], e.domain
        if dtype.kind in "biu":
            whole = {"isnan": "false", "isinf": "false", "isfinite": "true", "imag": "0"}.get(e.name)
            if whole is not None:
                return whole
            if e.name in ("floor", "ceil", "trunc", "round", "conj", "real") or (
                e.name == "abs" and dtype.kind != "i"
            ):
                return args[0]
            if e.name == "square":
                return f"pa_mul_{dtype.suffix}({args[0]}, {args[0]})"
            if dtype.kind == "b":
                return f"((bool)({args[0]} {'&' if e.name == 'min' else '|'} {args[1]}))"
        if dtype.kind == "f" and e.name in ("real", "conj"):
            return args[0]
        if dtype.kind == "f" and e.name == "angle":
            return f"pa_atan2_{dtype.suffix}(0, {args[0]})"
        if dtype.kind == "f" and e.name == "imag":
            return constant(0.0, dtype)
        return f"pa_{e.name}_{dtype.suffix}({', '.join(args)})"

    def emit_Size(self, e: Size) -> str:
        return f"{self.expr(e.array)}.n{e.axis}"

    def emit_Stride(self, e: Stride) -> str:
        return f"({views.stride(e.array.type, self.expr(e.array), e.axis)})"

    def place(self, node: Load | Store | Atomic) -> str:
        """The element as an lvalue, checked if it has a site."""
        kind, index = node.array.type, [self.expr(i) for i in node.index]
        if self.at and isinstance(node, Load) and isinstance(node.array, Local):
            held = self.at.get((node.array.name, tuple(getattr(i, "name", "") for i in node.index)))
            if held is not None:
                return held
        self.use(kind)
        if node.site is not None:
            name = self.helper(views.accessor(kind, self.dialect.function, checked=True))
            return f"*{name}({', '.join([*self.where(node.site), self.expr(node.array), *index])})"
        if isinstance(node.array, Local):
            return views.element(kind, self.expr(node.array), index)
        name = self.helper(views.accessor(kind, self.dialect.function, checked=False))
        return f"*{name}({', '.join([self.expr(node.array), *index])})"

    def emit_Load(self, e: Load) -> str:
        text = self.place(e)
        return f"({text})" if text.startswith("*") else text

    def emit_Atomic(self, e: Atomic) -> str:
        place = self.place(e)
        pointer = place[1:] if place.startswith("*") else f"&{place}"
        values = ", ".join(self.expr(x) for x in (e.value, e.desired) if x is not None)
        return f"pa_atomic_{e.op}_{e.type.dtype.suffix}({pointer}, {values})"

    def where(self, site: int | None) -> list[str]:
        return [f"{self.inside(site)}, at, up, {site}"] if site is not None else []

    def inside(self, site: int | None) -> str:
        return "inside" if site in self.hoisted else "false"

    def emit_SubView(self, e: SubView) -> str:
        self.use(e.type)
        name = self.helper(views.subview(e.type, self.dialect.function, self.debug, e.site is not None))
        args = [*self.where(e.site), *(self.expr(x) for x in (e.array, e.offset, e.size))]
        return f"{name}({', '.join(args)})"

    def emit_Slice(self, e: Slice) -> str:
        self.use(e.type)
        self.use(e.array.type)
        checked = e.site is not None
        made = views.slicer(e.array.type, e.type, e.parts, self.dialect.function, self.debug, checked)
        name = self.helper(made)
        args = [*self.where(e.site), self.expr(e.array)]
        for p in e.parts:
            args += [
                self.expr(x)
                for x in ((p.start, p.stop, p.step) if isinstance(p, Range) else (p,))
                if x is not None
            ]
        return f"{name}({', '.join(args)})"

    def emit_Invoke(self, e: Invoke) -> str:
        hidden = [f"{self.inside(e.site)}, at, &call{e.site}"] if self.debug else []
        return f"{self.function_name(e.function)}({', '.join([*hidden, *(self.expr(a) for a in e.args)])})"

    def emit_Pack(self, e: Pack) -> str:
        self.use(e.type)
        kinds, name = [ctype(item) for item in e.type.items], ctype(e.type)
        params = ", ".join(f"{kind} m{k}" for k, kind in enumerate(kinds))
        lines = "".join(f"    t.m{k} = m{k};\n" for k in range(len(kinds)))
        head = f"{self.dialect.function} {name} make_{name}({params})"
        text = f"{head}\n{{\n    {name} t;\n{lines}    return t;\n}}\n"
        return f"{self.helper((f'make_{name}', text))}({', '.join(map(self.expr, e.items))})"

    def emit_Item(self, e: Item) -> str:
        return f"{self.expr(e.pack)}.m{e.number}"

    # ---- statements

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
            return f"{pad}{self.place(s)} = {self.expr(s.value)};\n"
        # Python evaluates the value before the place, and so the first failure is that of the value
        value = f"const {s.array.type.dtype.ctype} value = {self.expr(s.value)};"
        if not s.marks:
            return f"{pad}{{ {value} {self.place(s)} = value; }}\n"
        place, dtype = self.place(s), s.array.type.dtype
        name = self.helper(views.mark(self.dialect.function))
        marks = "".join(
            f" {name}(element, {self.expr(low)}, {grain(dtype.itemsize, dtype.kind)}, {self.expr(mask)});"
            for low, mask in zip(s.marks[::2], s.marks[1::2], strict=True)
        )
        element = f"{dtype.ctype} *const element = {place[1:] if place.startswith('*') else f'&{place}'};"
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
        return f"{pad}while ({self.expr(s.condition)}) {{\n{self.block(s.body, indent + 1)}{pad}}}\n"

    def write_If(self, s: If, pad: str, indent: int) -> str:
        text = f"{pad}if ({self.expr(s.condition)}) {{\n{self.block(s.then, indent + 1)}{pad}}}"
        if s.orelse:
            text += f" else {{\n{self.block(s.orelse, indent + 1)}{pad}}}"
        return text + "\n"

    def write_For(self, s: For, pad: str, indent: int) -> str:
        if s.reductions and self.dialect.lanes:
            return self.write_unordered(s, pad, indent)
        head, tail = "", ""
        for variable, reach in zip(s.variables, s.ranges, strict=True):
            head += self.loop_head(variable, reach, "    " * indent)
            tail = "    " * indent + "}\n" + tail
            indent += 1
        return head + self.block(s.body, indent) + tail

    def loop_head(self, variable: str, reach: Range, pad: str) -> str:
        """Opens a C loop with Python's meaning: bounds are evaluated once, in order."""
        self.counters += 1
        name, k = cname(variable), f"k{self.counters}"
        start = self.expr(reach.start) if reach.start is not None else "0"
        stop = self.expr(reach.stop)  # type: ignore[arg-type]
        if reach.step is None or (isinstance(reach.step, Const) and reach.step.value == 1):
            hoisted = ""
            if not isinstance(reach.stop, Const):
                hoisted, stop = f", {k}_stop = {stop}", f"{k}_stop"
            return f"{pad}for (int64_t {name} = {start}{hoisted}; {name} < {stop}; ++{name}) {{\n"
        by = self.expr(reach.step)
        head = f"{k}_first = {start}, {k}_last = {stop}, {k}_step = {by}"
        count = f"{k}_count = pa_range_len({k}_first, {k}_last, {k}_step)"
        value = f"pa_add_i64({k}_first, pa_mul_i64({k}, {k}_step))"
        text = f"{pad}for (int64_t {k} = 0, {head}, {count}; {k} < {k}_count; ++{k}) {{\n"
        return text + f"{pad}    const int64_t {name} = {value};\n"

    def write_unordered(self, s: For, pad: str, indent: int) -> str:
        """A reduction whose order is free: `LANES` accumulators side by side, combined at the end. Restricted
        to step 1."""
        (variable,), (reach,) = s.variables, s.ranges
        name, types = (
            cname(variable),
            {n.name: n.type for st in s.body for n in walk(st) if isinstance(n, Local)},
        )
        start = self.expr(reach.start) if reach.start is not None else "0"
        self.counters += 1
        k, inner = f"k{self.counters}", pad + "    "
        stop = self.expr(reach.stop)  # type: ignore[arg-type]
        text = f"{pad}{{\n{inner}int64_t {k} = {start};\n{inner}const int64_t {k}_stop = {stop};\n"
        lanes = {acc: f"lane_{cname(acc)}" for acc, _ in s.reductions}
        for acc, op in s.reductions:
            dtype = types[acc].dtype
            first = start_of(acc, op, dtype)
            text += f"{inner}{dtype.ctype} {lanes[acc]}[{LANES}];\n"
            text += f"{inner}for (int lane = 0; lane < {LANES}; ++lane) {lanes[acc]}[lane] = {first};\n"
        saved = dict(self.renamed)
        self.renamed |= {acc: f"{lane}[lane]" for acc, lane in lanes.items()}
        body = self.block(s.body, indent + 3)
        text += (
            f"{inner}for (; {k} + {LANES} <= {k}_stop; {k} += {LANES}) {{\n{inner}    {self.dialect.lanes}\n"
        )
        text += f"{inner}    for (int lane = 0; lane < {LANES}; ++lane) {{\n"
        text += f"{inner}        const int64_t {name} = {k} + lane;\n{body}{inner}    }}\n{inner}}}\n"
        text += f"{inner}for (int lane = 0; {k} < {k}_stop; ++{k}, ++lane) {{\n"
        text += f"{inner}    const int64_t {name} = {k};\n"
        text += self.block(s.body, indent + 2) + f"{inner}}}\n"
        text += self.combine(s, lanes, types, inner)
        self.renamed = saved
        return text + f"{pad}}}\n"

    def combine(self, s: For, lanes: dict[str, str], types: dict[str, Any], pad: str) -> str:
        text = f"{pad}for (int half = {LANES // 2}; half > 0; half /= 2) {{\n"
        text += f"{pad}    for (int lane = 0; lane < half; ++lane) {{\n"
        tail = ""
        for acc, op in s.reductions:
            kind, lane = types[acc], lanes[acc]
            both = self.merged(op, kind, s.loc, f"{lane}[lane]", f"{lane}[lane + half]")
            text += f"{pad}        {lane}[lane] = {both};\n"
            tail += f"{pad}{cname(acc)} = {self.merged(op, kind, s.loc, cname(acc), f'{lane}[0]')};\n"
        return text + f"{pad}    }}\n{pad}}}\n{tail}"

    def merged(self, op: str, kind: ScalarType, loc: Any, a: str, b: str) -> str:
        """Two accumulators, given as C text, into one."""
        self.renamed |= {"#a": a, "#b": b}
        pair = (Local(loc, kind, "#a"), Local(loc, kind, "#b"))
        node = call(loc, op, list(pair)) if op in ("min", "max") else binary(loc, op, *pair)
        return self.expr(node)
