"""C text of expressions. `emit_statements` adds the statements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import DType, uint32, uint64
from . import emit_views as views
from . import ir
from .dialect import Dialect
from .emit_cast import bitcast, cast, saturate
from .emit_local_arrays import (
    builder,
    checked_position,
    filler,
    flat_position,
    local_name,
    local_struct,
    position_text,
)
from .emit_reshape import flat_accessor, reshaper
from .printer import Printer, function_text
from .promotion import SWAPPED_COMPARISON
from .reshape_indexing import Remarks
from .specializations import Specializations, fold
from .speculation import may_speculate
from .summaries import assigned_in, names_in

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
MOST_IN_REGISTERS = 64  # elements of a local array, of which compilers may make variables
TestsAhead = Callable[[ir.For, Callable[[str], str], str, str], tuple[frozenset[int], list[str]]]


def cname(name: str) -> str:
    """The variable's name in C. The prefix keeps all that users write apart from words of C, macros,
    functions of the headers and our own names, none of which begin like that; the escape tells `é` from the
    letters of its code, and writes the paths of fields: `p.v`, `t[0]`."""
    if name.startswith("."):
        return f"t_{name[1:]}"
    if name.isascii() and name.isidentifier():
        return f"v_{name}"
    return "u_" + "".join(c if c.isascii() and c.isalnum() else "__" if c == "_" else f"_{ord(c):x}_" for c in name)


def ctype(kind: Any) -> str:
    if kind is None:
        return "void"
    if isinstance(kind, ir.TupleType):
        return "tuple" + "".join(f"_{ctype(item).removesuffix('_t')}" for item in kind.items)
    if isinstance(kind, ir.LocalArrayType):
        return local_name(kind)
    return views.view_name(kind) if isinstance(kind, ir.ArrayType) else str(kind.dtype.ctype)


def literal(value: Any, dtype: DType) -> str:
    """A number as C text of that type."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "c":
        part = "f32" if dtype.itemsize == 8 else "f64"
        re, im = (_float_literal(x, part) for x in (value.real, value.imag))
        return f"pa_make_{dtype.suffix}({re}, {im})"
    if dtype.kind == "f":
        if dtype.is_narrow:
            return f"pa_{dtype.suffix}_from_f64({_float_literal(value, 'f64')})"
        return _float_literal(value, dtype.suffix)
    if dtype.kind == "u":
        return f"{value}u" if value < 1 << 31 else f"{value}ull"
    if value == -(1 << 63):
        return "(-9223372036854775807ll - 1)"
    return str(value) if -(1 << 31) < value < 1 << 31 else f"{value}ll"


def _float_literal(value: float, suffix: str) -> str:
    if suffix == "f32":
        with np.errstate(over="ignore"):
            value = float(np.float32(value))  # rounded once: the decimal text of the double would be rounded again
    if math.isnan(value):
        return f"PA_NAN_{suffix.upper()}"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}PA_INF_{suffix.upper()}"
    text = repr(float(value))
    text = text if "." in text or "e" in text else text + ".0"
    return text + "f" if suffix == "f32" else text


def begin_iteration(number: str) -> str:
    """Statements that begin an iteration in debug mode."""
    return f"at->tid = {number}; at->failed = false;"


class ExprEmitter:
    """Text of the expressions of one program. `helpers` collects the access, slice and sub-view functions
    that they use."""

    def __init__(
        self, kernel: ir.Function, dialect: Dialect, debug: bool, specs: dict[str, Specializations] | None = None
    ):
        self.kernel, self.symbol = kernel, f"kernel_{cname(kernel.symbol)[2:]}"
        self.outer: tuple[tuple[str, Any], ...] = ()  # variables outside the parallel loops
        self.dialect, self.debug, self.specializations = dialect, debug, specs or {}
        self.structs: dict[str, str] = {}
        self.has_odd_vectors = False  # vectors of three floats, or matrices with odd sizes (see PA_NO_SLP)
        self.helpers: dict[str, str] = {}
        self.no_alias = "false"  # text of `ir.NoAlias`
        self.renamed: dict[str, str] = {}
        self.digits: dict[Any, str] = {}  # divisions of a loop's variable, in terms of its digits
        # what expressions are in the current text: `emit_index_sets`
        self.known: dict[ir.Expr, ir.Expr | bool | str] = {}
        self.ranges: dict[str, range] = {}  # of the variables of loops of constant length around the current text
        self.digit_lines = ""  # statements behind the variable of a GPU's loop, which make its digits
        self.written: frozenset[str] = frozenset()  # parameters of the kernel that something is stored into
        self.hoisted: frozenset[int] = frozenset()  # sites that `inside` covers in the current text
        self.ahead: frozenset[int] = frozenset()  # sites that were tested before the current loop
        # sites of a loop's body that a test before it covers, and the test, where loops have one: `tests_ahead`
        self.tests_ahead: TestsAhead | None = None
        self.privatized: frozenset[str] = frozenset()  # arrays that are privatized in the current text
        self.sites: frozenset[int] = frozenset()  # all sites of the current function or parallel loop
        self.may_fail = False  # whether an access is tested at all
        # elements in registers, by `element_ref` → C text
        self.registers: dict[tuple[str, tuple[str, ...]], str] = {}
        self.looping: frozenset[str] = frozenset()  # functions that have loops
        self.remarks: Remarks = {}
        self.counters = 0
        self.shares_functions, self.shared = False, 0  # by several units (`emit_units.py`); how many so far
        self.out = Printer()  # where statements go

    def assumptions(self, name: str, kind: Any, view: str) -> list[str]:
        """Statements that tell the compiler what the parameter `name` promises of its sizes."""
        specs = self.specializations.get(name)
        return fold(specs, view, kind.ndim, kind.dtype.itemsize, kind.strided) if specs else []

    def declare(self, kind: Any) -> None:
        """Declare the struct of an array type, or of several values."""
        if isinstance(kind, ir.ArrayType):
            if kind.reshape_of is not None:
                self.declare(kind.reshape_of)
                self.helper(flat_accessor(kind.reshape_of, self.dialect.function))
            self.structs.setdefault(views.view_name(kind), views.struct(kind, self.debug))
        elif isinstance(kind, ir.LocalArrayType):
            self.structs.setdefault(local_name(kind), local_struct(kind))
            self.has_odd_vectors |= kind.dtype.name == "float32" and kind.size % 2 == 1 < kind.size
        elif isinstance(kind, ir.TupleType):
            for item in kind.items:
                self.declare(item)
            members = " ".join(f"{ctype(item)} m{k};" for k, item in enumerate(kind.items))
            self.structs.setdefault(ctype(kind), f"typedef struct {{ {members} }} {ctype(kind)};\n")

    def helper(self, function: tuple[str, str]) -> str:
        self.helpers.setdefault(*function)
        return function[0]

    @staticmethod
    def function_name(symbol: str) -> str:
        return f"func_{cname(symbol)[2:]}"

    # ---- expressions

    def expr(self, e: ir.Expr) -> str:
        if self.digits and isinstance(e, ir.Binary) and e in self.digits:
            return self.digits[e]
        if self.known and isinstance(e, (ir.Compare, ir.Builtin, ir.Binary)) and e in self.known:
            known = self.known[e]
            if isinstance(known, bool):
                return str(int(known))
            return known if isinstance(known, str) else self.expr(known)
        text: str = getattr(self, f"emit_{type(e).__name__}")(e)
        return text

    def emit_Const(self, e: ir.Const) -> str:
        text = literal(e.value, e.type.dtype)
        return f"({text})" if text.startswith("-") else text

    def emit_Local(self, e: ir.Local) -> str:
        return self.renamed.get(e.name) or cname(e.name)

    def emit_Unary(self, e: ir.Unary) -> str:
        a, dtype = self.expr(e.a), e.type.dtype
        if e.op == "invert":
            return f"pa_not({a})" if dtype.kind == "b" else f"(({dtype.ctype})~{a})"
        if dtype.kind == "f" and dtype.itemsize > 2:
            return f"(-{a})"
        return f"pa_neg_{dtype.suffix}({a})"

    def emit_Binary(self, e: ir.Binary) -> str:
        dtype, op = e.type.dtype, e.op
        if op == "mul" and dtype is uint64 and not self.dialect.blocks:
            words = [self.word_of(x) for x in (e.a, e.b)]
            if None not in words:
                return f"pa_mul_wide_u32({words[0]}, {words[1]})"
        a, b = self.expr(e.a), self.expr(e.b)
        if dtype.kind == "b":
            symbol = {"add": "|", "mul": "&"}.get(op) or INFIX[op]
            return f"((bool)({a} {symbol} {b}))"
        infix = op in INFIX and (dtype.kind == "f" or op in ("and", "or", "xor"))
        if infix and dtype.kind in "iu" and dtype.itemsize < 4:
            return f"(({dtype.ctype})({a} {INFIX[op]} {b}))"
        return f"({a} {INFIX[op]} {b})" if infix else f"pa_{op}_{dtype.suffix}({a}, {b})"

    def word_of(self, e: ir.Expr) -> str | None:
        """The text of a uint64 as a uint32 if it is one that was cast, or such a constant; else None."""
        if isinstance(e, ir.Cast) and e.a.type is not None and e.a.type.dtype is uint32:
            return self.expr(e.a)
        return literal(e.value, uint32) if isinstance(e, ir.Const) and 0 <= e.value < 1 << 32 else None

    def emit_Compare(self, e: ir.Compare) -> str:
        a, b = self.expr(e.a), self.expr(e.b)
        if e.a.type.dtype.kind == "c":
            return f"pa_{e.op}_{e.a.type.dtype.suffix}({a}, {b})"
        if e.a.type.dtype is not e.b.type.dtype:
            op = e.op
            if e.a.type.dtype.kind == "u":
                a, b, op = b, a, SWAPPED_COMPARISON.get(op, op)
            name = self.helper(views.mixed_compare(op, INFIX[op], self.dialect.function))
            return f"{name}({a}, {b})"
        return f"({a} {INFIX[e.op]} {b})"

    def emit_Let(self, e: ir.Let) -> str:
        return f"({cname(e.name)} = {self.expr(e.value)}, {self.expr(e.body)})"

    def emit_Logic(self, e: ir.Logic) -> str:
        symbol = "&" if e.op == "and" else "|"
        is_cheap = self.dialect.blocks and may_speculate(e.b, self.ranges)
        if not is_cheap or assigned_in(e.a) & names_in(e.b):  # C evaluates the operands of & in any order
            symbol *= 2
        return f"({self.expr(e.a)} {symbol} {self.expr(e.b)})"

    def emit_Select(self, e: ir.Select) -> str:
        return f"({self.expr(e.condition)} ? {self.expr(e.a)} : {self.expr(e.b)})"

    def emit_Cast(self, e: ir.Cast) -> str:
        return cast(self.expr(e.a), e.a.type.dtype, e.type.dtype)

    def emit_Builtin(self, e: ir.Builtin) -> str:
        args, dtype = [self.expr(a) for a in e.args], e.domain
        constants = {"imag": literal(0, dtype)} if dtype.kind in "biuf" else {}
        constants |= {"isnan": "false", "isinf": "false", "isfinite": "true"} if dtype.kind in "biu" else {}
        if (constant := constants.get(e.name)) is not None:
            return constant if isinstance(e.args[0], (ir.Local, ir.Const)) else f"((void){args[0]}, {constant})"
        if dtype.kind in "biu":
            if e.name in ("floor", "ceil", "trunc", "round", "conj", "real") or (e.name == "abs" and dtype.kind != "i"):
                return args[0]
            if e.name == "square":
                return self.square(args[0], dtype)
            if dtype.kind == "b":
                return f"((bool)({args[0]} {'&' if e.name == 'min' else '|'} {args[1]}))"
        if dtype.kind == "f" and e.name in ("real", "conj"):
            return args[0]
        if dtype.kind == "f" and e.name == "angle":
            return f"pa_atan2_{dtype.suffix}(0, {args[0]})"
        return f"pa_{e.name}_{dtype.suffix}({', '.join(args)})"

    def square(self, text: str, dtype: DType) -> str:
        product = f"pa_mul_{dtype.suffix}"
        if text.isidentifier():
            return f"{product}({text}, {text})"
        head = f"{self.dialect.function} {dtype.ctype} square_{dtype.suffix}({dtype.ctype} x)"
        function = (f"square_{dtype.suffix}", function_text(head, [f"return {product}(x, x);"]))
        return f"{self.helper(function)}({text})"

    def emit_Size(self, e: ir.Size) -> str:
        return f"{self.expr(e.array)}.n{e.axis}"

    def emit_NoAlias(self, e: ir.NoAlias) -> str:
        return self.no_alias

    def emit_Stride(self, e: ir.Stride) -> str:
        return f"({views.stride(e.array.type, self.expr(e.array), e.axis)})"

    def element_ref(self, node: Any) -> tuple[str, tuple[str, ...]]:
        """What element an access is of: the array, and of each position the variable's name, or else its C text."""
        positions = tuple(i.name if isinstance(i, ir.Local) else self.expr(i) for i in node.index)
        return getattr(node.array, "name", ""), positions

    def lvalue(self, node: ir.Load | ir.Store | ir.Atomic) -> str:
        """The element as an lvalue, checked if it has a site."""
        kind, index = node.array.type, [self.expr(i) for i in node.index]
        if self.registers and isinstance(node, ir.Load) and isinstance(node.array, ir.Local):
            register = self.registers.get(self.element_ref(node))
            if register is not None:
                return register
        self.declare(kind)
        if node.site is not None:
            name = self.helper(views.accessor(kind, self.dialect.function, checked=True))
            return f"*{name}({', '.join([*self.check_args(node.site), self.expr(node.array), *index])})"
        if isinstance(node.array, ir.Local) and kind.reshape_of is None:
            return views.element(kind, self.expr(node.array), index)
        name = self.helper(views.accessor(kind, self.dialect.function, checked=False))
        return f"*{name}({', '.join([self.expr(node.array), *index])})"

    def emit_Load(self, e: ir.Load) -> str:
        text = self.lvalue(e)
        if self.dialect.blocks and e.type.dtype.kind == "b":  # gcc vectorises no loop that loads a _Bool
            return f"(*(const uint8_t *)&{text} != 0)"
        return f"({text})" if text.startswith("*") else text

    def emit_Atomic(self, e: ir.Atomic) -> str:
        lvalue = self.lvalue(e)
        pointer = lvalue[1:] if lvalue.startswith("*") else f"&{lvalue}"
        values = ", ".join(self.expr(x) for x in (e.value, e.desired) if x is not None)
        prefix = "own_" if isinstance(e.array, ir.Local) and e.array.name in self.privatized else ""
        return f"pa_atomic_{prefix}{e.op}_{e.type.dtype.suffix}({pointer}, {values})"

    def check_args(self, site: int | None) -> list[str]:
        return [f"{self.inside(site)}, at, up, {site}"] if site is not None else []

    @property
    def loop_guard(self) -> str:
        """What a loop's condition ends with in debug mode: after a failure the values are anything, and a
        loop that waits for one would never end."""
        if not self.may_fail:
            return ""
        return " && (inside || !at->failed)" if self.is_tested else " && !at->failed"

    @property
    def is_tested(self) -> bool:
        """Whether a test of the whole block, `inside`, covers all accesses."""
        return bool(self.sites) and self.sites <= self.hoisted

    def start(self, range_: ir.Range) -> str:
        return "0" if range_.start is None else self.expr(range_.start)

    def step(self, loop: ir.For) -> str:
        """The step of a loop's one range, checked if it has a site."""
        step = self.expr(loop.ranges[0].step)  # type: ignore[arg-type]
        if loop.site is None:
            return step
        name = self.helper(views.step_checker(self.dialect.function))
        return f"{name}({', '.join([*self.check_args(loop.site), step])})"

    def emit_Convert(self, e: ir.Convert) -> str:
        if e.how == "reshape":  # structs don't tell shapes apart
            return self.expr(e.a)
        make = saturate if e.how == "saturate" else bitcast
        return f"{self.helper(make(self.dialect.function, e.a.type.dtype, e.type.dtype))}({self.expr(e.a)})"

    def inside(self, site: int | None) -> str:
        return "true" if site in self.ahead else "inside" if site in self.hoisted else "false"

    def emit_SubView(self, e: ir.SubView) -> str:
        self.declare(e.type)
        name = self.helper(views.subview(e, self.dialect.function, self.debug))
        args = [*self.check_args(e.site), *(self.expr(x) for x in (e.array, e.offset, e.size))]
        return f"{name}({', '.join(args)})"

    def emit_Reshape(self, e: ir.Reshape) -> str:
        self.declare(e.array.type)
        self.declare(e.type)
        sizes = [self.expr(n) for k, n in enumerate(e.shape) if k != e.missing]
        name = self.helper(reshaper(e, self.dialect.function, self.debug))
        return f"{name}({', '.join([*self.check_args(e.site), self.expr(e.array), *sizes])})"

    def emit_Slice(self, e: ir.Slice) -> str:
        self.declare(e.type)
        self.declare(e.array.type)
        name = self.helper(views.slicer(e, self.dialect.function, self.debug))
        args = [*self.check_args(e.site), self.expr(e.array)]
        for p in e.parts:
            args += map(self.expr, ir.children(p) if isinstance(p, ir.Range) else (p,))
        return f"{name}({', '.join(args)})"

    def emit_Build(self, e: ir.Build) -> str:
        self.declare(e.type)
        name = self.helper(builder(e.type, self.dialect.function))
        return f"{name}({', '.join(map(self.expr, e.items))})"

    def emit_Fill(self, e: ir.Fill) -> str:
        self.declare(e.type)
        return f"{self.helper(filler(e.type, self.dialect.function))}({self.expr(e.value)})"

    def emit_Element(self, e: ir.Element) -> str:
        self.declare(e.array.type)
        if isinstance(e.array, ir.Local):
            return self.element(self.expr(e.array), e.array.type.shape, e.index, e.site)
        return f"{self.expr(e.array)}.m[{self.position(e.array.type.shape, e.index, e.site)}]"

    def element(self, array: str, shape: tuple[int, ...], index: tuple[ir.Expr, ...], site: int | None) -> str:
        """An element of a local array, whose variable is given as C text."""
        position = self.position(shape, index, site)
        # A place that gcc computes from a pointer: its vectors of an array's elements might be any memory's, so that
        # the accumulators of a reduction of them wouldn't stay in registers.
        behind_pointer = self.dialect.blocks and math.prod(shape) > MOST_IN_REGISTERS
        return f"(&{array}.m[0])[{position}]" if behind_pointer else f"{array}.m[{position}]"

    def position(self, shape: tuple[int, ...], index: tuple[ir.Expr, ...], site: int | None) -> str:
        """The number of an element in C order, checked if it has a site."""
        constants = [i.value for i in index if isinstance(i, ir.Const)]
        if len(constants) == len(index):
            return str(flat_position(shape, constants))
        texts = [self.tile_position(i) or self.expr(i) for i in index]
        if site is None:
            return position_text(shape, texts)
        name = self.helper(checked_position(shape, self.dialect.function))
        return f"{name}({', '.join([*self.check_args(site), *texts])})"

    def tile_position(self, index: ir.Expr) -> str:
        """A position within a tile, which can't wrap: so compilers know its neighbours. "" of another index."""
        if not isinstance(index, ir.Binary) or not isinstance(index.a, ir.Local) or not isinstance(index.b, ir.Local):
            return ""
        is_position = index.op == "sub" and index.a.name.startswith(".x") and index.b.name.startswith(".a")
        return f"({self.expr(index.a)} - {self.expr(index.b)})" if is_position else ""

    def emit_Invoke(self, e: ir.Invoke) -> str:
        hidden = [f"{self.inside(e.site)}, at, &call{e.site}"] if self.debug else []
        return f"{self.function_name(e.function)}({', '.join([*hidden, *(self.expr(a) for a in e.args)])})"

    def emit_Assert(self, e: ir.Assert) -> str:
        """What it says is evaluated where it fails."""
        words = [word for x in e.args for word in self.words(x)]
        name = self.helper(views.assertion(self.dialect.function))
        args = ", ".join(["at", "up", str(e.site), *words, *["0"] * (4 - len(words))])
        return f"({self.expr(e.condition)} ? (void)0 : {name}({args}))"

    def words(self, x: ir.Expr) -> list[str]:
        """A number as int64 words."""
        text, kind = self.expr(x), x.type.dtype.kind
        if kind == "c":
            return [f"(int64_t)pa_bits_f64(pa_{part}_c128({text}))" for part in ("real", "imag")]
        return [f"(int64_t)pa_bits_f64({text})" if kind == "f" else f"(int64_t)({text})"]

    def emit_Pack(self, e: ir.Pack) -> str:
        self.declare(e.type)
        kinds, name = [ctype(item) for item in e.type.items], ctype(e.type)
        params = ", ".join(f"{kind} m{k}" for k, kind in enumerate(kinds))
        lines = (f"t.m{k} = m{k};" for k in range(len(kinds)))
        head = f"{self.dialect.function} {name} make_{name}({params})"
        text = function_text(head, [f"{name} t;", *lines, "return t;"])
        return f"{self.helper((f'make_{name}', text))}({', '.join(map(self.expr, e.items))})"

    def emit_Item(self, e: ir.Item) -> str:
        return f"{self.expr(e.pack)}.m{e.number}"
