"""C text of a whole program for CPUs: slots, environment, helper functions, parallel loops, the entry.

The text has no line or path of the user's file. Those are in the site table, so that a cached artifact stays
right when lines move."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from ..driver.kernel_step import KernelStep
from . import emit_loop, ir
from .dialect import Dialect
from .directions import written
from .emit_noalias import noalias_test
from .emit_privatized import grain_of_sums
from .emit_statements import Emitter, cname, ctype, looping_functions
from .emit_units import shared_entry
from .emit_views import constant_sizes
from .hoisted_checks import Hoisting, tests_ahead
from .iteration_cost import cost
from .reshape_indexing import Remarks
from .specializations import Specializations
from .summaries import assigned_in, kinds_in, names_in, sites_in

_AT = """\
/* where a thread is, for the failure record; a failure lands in `scrap` and ends its iteration's loops */
typedef struct { pa_runtime *rt; int32_t loop; int64_t tid; pa_c128 *scrap; bool failed; } pa_at;
"""
_NAME = re.compile(r"\bpa_\w+")
_HEADERS = (  # header, and what its functions end with; the order is that of their dependence
    ("pa_check.h", re.compile(r"\b(?:pa_(check|slice|bound|shape)_\w+)")),
    ("pa_shape.h", re.compile(r"\b(?:pa_shape_\w+)")),
    ("pa_int.h", re.compile(r"\b(?:pa_\w+_[iu](8|16|32|64)\b|pa_\w+_b\b)")),
    ("pa_real.h", re.compile(r"\b(?:pa_\w+_f(32|64)\b|pa_cast_\w+)")),
    ("pa_half.h", re.compile(r"\b(?:pa_\w*b?f16\w*)")),
    ("pa_float8.h", re.compile(r"\b(?:pa_\w*e[45]m[23]\w*)")),
    ("pa_complex.h", re.compile(r"\b(?:pa_\w+_c(64|128)\b|pa_\w+_from_c\w+|pa_make_\w+|pa_cast_c(64|128)_\w+)")),
    ("pa_atomic.h", re.compile(r"\b(?:pa_atomic_\w+)")),
    ("pa_tile_mma.h", re.compile(r"\b(?:pa_tile_\w+)")),
    ("pa_tile_waves.h", re.compile(r"\bpa_tile_waves\b")),
    ("pa_quotients_gpu.h", re.compile(r"\bpa_quotients\b")),
    ("pa_extremes_gpu.h", re.compile(r"\bpa_vector_(?:max|min)_\w+")),
    ("pa_prefetch.h", re.compile(r"\b(?:pa_prefetch_\w+)")),
    ("pa_transposed_copy.h", re.compile(r"\b(?:pa_transposed_copy_\w+)")),
    ("pa_products.h", re.compile(r"\b(?:pa_products_\w+)")),
    ("pa_products_float16.h", re.compile(r"\bpa_products_cast_f16\b")),
    ("pa_products_pairs.h", re.compile(r"\bpa_products_\w*bf16\b")),
    ("pa_products_words.h", re.compile(r"\bpa_products_\w*words\w*")),
    ("pa_stream.h", re.compile(r"\b(?:pa_stream_copy)")),
)
# what an estimate may evaluate before its time: it reads no memory, has no effect and can't fail
_PLAIN = {ir.Binary, ir.Builtin, ir.Cast, ir.Const, ir.Local, ir.Range, ir.Size, ir.Unary}


def emit(
    tree: ir.Tree, dialect: Dialect, debug: bool, specs: dict[str, Specializations] | None = None
) -> tuple[str, tuple[KernelStep, ...], Remarks]:
    """(text, the function to call, what became of divided loops)."""
    kernel = tree.kernel
    code = Emitter(kernel, dialect, debug, specs)
    code.written, code.outer = written(tree), emit_loop.outer_variables(kernel)
    functions, code.looping = {f.symbol: f for f in tree.functions}, looping_functions(tree.functions)
    hoisted_checks = Hoisting(tree) if debug else None
    code.tests_ahead = tests_ahead if debug else None
    code.may_fail = may_fail(tree)
    code.shares_functions = emit_loop.has_several_functions(code)
    helpers = helper_functions(code, tree, hoisted_checks)
    for _, kind in (*kernel.params, *kernel.variables):
        code.declare(kind)
    printed = (code.printed(emit_loop.parallel_loop, code, s, hoisted_checks) for s in emit_loop.parallel_loops(kernel))
    loops = "\n".join(printed)
    body = code.printed(_entry, code, functions, depth=1)
    entry = shared_entry(code, code.dialect.entry.format(symbol=code.symbol, body=body))
    parts = [
        emit_loop.slots(kernel, code.symbol, debug),
        emit_loop.environment(code),
        "\n".join(code.helpers.values()),
        helpers,
        loops,
        entry,
    ]
    return assemble(code, parts), (KernelStep(code.symbol),), code.remarks


def may_fail(tree: ir.Tree) -> bool:
    """Whether an access of the program is tested."""
    bodies = [s for f in (tree.kernel, *tree.functions) for s in f.body if sites_in(s)]
    nodes = (n for n in ir.walk(*bodies) if not isinstance(n, ir.Invoke))
    return any(getattr(n, "site", None) is not None for n in nodes)


def helper_functions(code: Emitter, tree: ir.Tree, hoisted_checks: Hoisting | None) -> str:
    """The functions that the kernel calls, callees first."""
    bodies = (*tree.kernel.body, *(s for f in tree.functions for s in f.body)) if tree.functions else ()
    calls = Counter(n.function for n in ir.walk(*bodies) if isinstance(n, ir.Invoke))
    printed = (code.printed(_function, code, f, hoisted_checks, calls[f.symbol] == 1) for f in tree.functions)
    return "\n".join(printed)


def assemble(code: Emitter, parts: list[str]) -> str:
    """The whole text: the headers that its functions come from, array structs, and `parts` in order."""
    body = "\n".join(part for part in ("".join(code.structs.values()), *parts) if part)
    names = " ".join(dict.fromkeys(_NAME.findall(body)))
    includes = "".join(f"#include <{name}>\n" for name, pattern in _HEADERS if pattern.search(names))
    if code.debug and "pa_check.h" not in includes:
        includes = "#include <pa_check.h>\n" + includes
    first = "#define PA_NO_SLP\n" if code.dialect.blocks and code.has_odd_vectors else ""
    if code.dialect.blocks and any(isinstance(kind, ir.TileType) for _, kind in code.kernel.variables):
        first += "#define PA_NO_PATTERNS\n"
    return f"{first}#include <pa_base.h>\n{includes}\n{code.dialect.prelude}\n{_AT if code.debug else ''}{body}"


def _function(code: Emitter, function: ir.Function, hoisted_checks: Hoisting | None, once: bool) -> None:
    """`once`: it is called from one place. The C compiler inlines such a function by itself, unless checked blocks make
    two places of it."""
    code.hoisted = hoisted_checks.hoistable[function.symbol] if hoisted_checks else frozenset()
    code.sites = sites_in(*function.body)
    for _, kind in (*function.params, *function.variables):
        code.declare(kind)
    hidden = ["const bool inside", "pa_at *at", "const pa_frame *up"] if code.debug else []
    params = [*hidden, *(f"{ctype(kind)} {cname(name)}" for name, kind in function.params)]
    qualifiers = code.dialect.body if once and code.debug else code.dialect.function
    head = f"{qualifiers} {ctype(function.result)} {code.function_name(function.symbol)}"
    local_names = assigned_in(*function.body)
    with code.out.function(f"{head}({', '.join(params) or 'void'})"):
        code.out.lines(emit_loop.frames(code, function.body, "up"))
        for name, kind in function.params:
            code.out.lines(constant_sizes(kind, cname(name), code.debug))
        code.out.lines(emit_loop.declarations((n, t) for n, t in function.variables if n in local_names))
        code.write(function.body)


def _entry(code: Emitter, functions: dict[str, ir.Function]) -> None:
    """Unpacks the slots, runs the statements outside the loops, starts the loops."""
    code.hoisted = code.sites = frozenset()
    out, params = code.out, [(cname(name), name, kind) for name, kind in code.kernel.params]
    out.line("env.rt = rt;")
    for c, _, kind in params:
        out.lines(emit_loop.unpack_slot(f"env.{c}", c, kind, code.debug))
    for c, name, kind in params:
        out.lines(code.assumptions(name, kind, f"env.{c}"))
    out.lines(f"{ctype(kind)} {c} = env.{c};" for c, _, kind in params)
    out.lines(f"(void){c};" for c, _, _ in params)
    if dense := emit_loop.strided_params(code.kernel):
        tests = (f"{cname(n)}.s{k.ndim - 1} == (int64_t)sizeof({k.dtype.ctype})" for n, k in dense)
        out.line(f"env.unit = {' && '.join(tests)};")
    if arrays := emit_loop.noalias_params(code):
        out.lines(noalias_test(arrays, code.written))
    if code.debug:
        out.lines([*emit_loop.debug_state(code, "rt", 0, -1), "(void)at; (void)up;"])
        out.lines(emit_loop.frames(code, emit_loop.outside_loops(code.kernel), "0"))
    out.lines(emit_loop.declarations(code.outer))
    changed: set[str] = set()
    visible = {name for name, _ in (*code.kernel.params, *code.outer)}
    for statement in code.kernel.body:
        if emit_loop.is_parallel(statement):
            changed |= assigned_in(*statement.ranges)
            copied = [n for n, _ in (*code.outer, *code.kernel.params) if n in changed]
            cost_text = cost(statement, functions, _trip_counts(code, visible))
            _start(code, statement, copied, cost_text)
            continue
        code.write_statement(statement)
        changed |= assigned_in(statement)


def _trip_counts(code: Emitter, visible: set[str]) -> Callable[[ir.For], str | None]:
    """Iterations of an inner loop as C text, where the entry knows its bounds."""

    def trips(loop: ir.For) -> str | None:
        if not names_in(*loop.ranges) <= visible or not kinds_in(*loop.ranges) <= _PLAIN:
            return None
        return " * ".join(f"(double){emit_loop.trip_count(code, r)}" for r in loop.ranges)

    return trips


def _start(code: Emitter, loop: ir.For, copied: list[str], weight: str) -> None:
    """Fills the loop's part of the environment and starts it. In debug mode, what stands between two loops
    counts as before the first iteration of the second."""
    fields, out = {field: f"env.{field}" for field, _ in emit_loop.bound_fields(loop)}, code.out
    for f, x in emit_loop.bound_fields(loop):
        out.line(f"{fields[f]} = {emit_loop.bound_text(code, loop, f, x)};")
    if len(loop.ranges) > 1:
        count = emit_loop.collapsed_trip_count(code, loop, list(fields.values()))
    else:
        (range_,) = loop.ranges  # pyright: ignore
        count = emit_loop.trip_count(code, range_, fields.get(f"from{loop.loop}"), fields.get(f"step{loop.loop}"))
    out.lines(f"env.{cname(n)} = {cname(n)};" for n in copied)
    factor = emit_loop.trip_count_factor(code, loop)
    rounding = f" / {factor} * {factor} + {factor}" if factor > 1 else ""
    grain = grain_of_sums(code, loop, f"pa_grain(rt, count, {weight})")
    texts = {"symbol": code.symbol, "number": loop.loop, "count": count, "grain": grain + rounding}
    out.text(code.dialect.start.format(**texts))
    if code.debug and loop.loop is not None:
        out.line(f"at->loop = {loop.loop + 1};")
