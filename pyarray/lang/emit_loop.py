"""C text of parallel loops on CPUs: their shared environment, and a function per loop for a block of iterations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from . import emit_views as views
from . import ir
from .emit_delinearized import CountedLoop, delinearized_loop, find_rows, missed
from .emit_index_sets import write_index_sets
from .emit_noalias import noalias_arrays, noalias_call, noalias_function, overlap_calls, overlap_function
from .emit_privatized import privatized_arrays, privatized_block, used_arrays
from .emit_statements import Emitter, begin_iteration, cname, ctype
from .emit_units import COLD, shared_function
from .hoisted_checks import Hoisting
from .loop_extents import extents
from .nontemporal_stores import nontemporal_array
from .printer import struct_text
from .reduction_lowering import PARTIAL
from .summaries import assigned_in, called_in, has_any, names_in, sites_in


def is_parallel(statement: ir.Stmt) -> TypeGuard[ir.For]:
    return isinstance(statement, ir.For) and statement.loop is not None


def parallel_loops(kernel: ir.Function) -> list[ir.For]:
    return [s for s in kernel.body if is_parallel(s)]


def outside_loops(kernel: ir.Function) -> list[Any]:
    """What runs once: statements, and the ranges of parallel loops."""
    return [part for s in kernel.body for part in (s.ranges if is_parallel(s) else (s,))]


def is_recomputable(node: Any) -> bool:
    """Whether a node is pure and reads no memory, so that each thread may recompute it."""
    return not has_any((node,), ir.Load, ir.Store, ir.Atomic, ir.Invoke)


def outer_variables(kernel: ir.Function) -> tuple[tuple[str, Any], ...]:
    """Variables assigned outside the parallel loops: these see their last value."""
    names = assigned_in(*outside_loops(kernel))
    return tuple((n, t) for n, t in kernel.variables if n in names)


def strided_params(kernel: ir.Function) -> list[tuple[str, ir.ArrayType]]:
    return [(n, k) for n, k in kernel.params if isinstance(k, ir.ArrayType) and k.strided and k.ndim]


def environment(code: Emitter) -> str:
    names = (*code.kernel.params, *code.outer)
    lines = ["pa_runtime *rt;", *(f"{ctype(kind)} {cname(name)};" for name, kind in names)]
    lines += [f"int64_t {name};" for loop in parallel_loops(code.kernel) for name, _ in bound_fields(loop)]
    if strided_params(code.kernel):
        lines.append("bool unit; /* every strided array has neighbours along its last axis */")
    if noalias_params(code):
        lines.append("bool no_alias; /* what is written shares no memory with the others */")
    return struct_text(f"{code.symbol}_env", lines)


def has_several_functions(code: Emitter) -> bool:
    """Whether more than one function of the text takes long to compile."""
    loops = parallel_loops(code.kernel)
    return code.dialect.blocks and (len(loops) > 1 or any(noalias_arrays(code, loop) for loop in loops))


def noalias_params(code: Emitter) -> list[tuple[str, ir.ArrayType]]:
    """The arrays whose ranges the entry compares: those of all loops that ask for it."""
    loops = parallel_loops(code.kernel)
    names = {n: k for loop in loops for n, k in noalias_arrays(code, loop)}
    for loop in loops:
        if privatized_arrays(code, loop) and len(used_arrays(code.kernel, loop)) > 1:
            names |= used_arrays(code.kernel, loop)
    return [(n, k) for n, k in code.kernel.params if n in names]


def bound_fields(loop: ir.For) -> list[tuple[str, ir.Range | Any]]:
    """Fields of the environment that a loop's ranges need, with what they hold: the iterations see the bounds
    as they were before the first one. A `Range` stands for its length."""
    if len(loop.ranges) > 1:
        return [(f"size{loop.loop}_{axis}", range_) for axis, range_ in enumerate(loop.ranges)]
    range_ = loop.ranges[0]  # pyright: ignore[reportGeneralTypeIssues]
    fields = (("from", range_.start), ("step", range_.step))
    return [(f"{name}{loop.loop}", x) for name, x in fields if x is not None and not isinstance(x, ir.Const)]


def start_and_step(code: Emitter, loop: ir.For, prefix: str) -> Iterator[str | None]:
    """Of a single range as C text, None where it has none; what `bound_fields` hold is read from `prefix`."""
    fields, range_ = dict(bound_fields(loop)), loop.ranges[0]
    for field, x in ((f"from{loop.loop}", range_.start), (f"step{loop.loop}", range_.step)):
        yield None if x is None else f"{prefix}{field}" if field in fields else code.expr(x)


def bound_text(code: Emitter, loop: ir.For, field: str, x: ir.Range | Any) -> str:
    """What one of the `bound_fields` is, as C text."""
    if isinstance(x, ir.Range):
        return trip_count(code, x)
    return code.step(loop) if field == f"step{loop.loop}" else code.expr(x)


def trip_count(code: Emitter, range_: ir.Range, start: str | None = None, step: str | None = None) -> str:
    """Number of iterations; `start` and `step` where they have been evaluated already."""
    if range_.start is None and range_.step is None and (isinstance(range_.stop, ir.Size) or _is_natural(range_.stop)):
        return code.expr(range_.stop)  # type: ignore[arg-type]
    first = start or code.start(range_)
    by = step or (code.expr(range_.step) if range_.step is not None else "1")
    return f"pa_range_len({first}, {code.expr(range_.stop)}, {by})"  # type: ignore[arg-type]


def collapsed_trip_count(code: Emitter, loop: ir.For, sizes: list[str]) -> str:
    """Number of iterations of several ranges: none where one of them is empty, or where there would be more
    than 64 bits hold. A launch tests that if the sizes follow from arguments."""
    tested = code.dialect.blocks or all(loop_extents.loop != loop.loop for loop_extents in extents(code.kernel))
    function = views.size_product(len(sizes), code.dialect.function, tested, loop.site is not None)
    return f"{code.helper(function)}({', '.join([*code.check_args(loop.site), *sizes])})"


def _is_natural(expr: Any) -> bool:
    return isinstance(expr, ir.Const) and expr.value >= 0


def frames(code: Emitter, parts: Any, up: str) -> list[str]:
    """One link of the call stack per call."""
    if not code.debug or not called_in(*parts):
        return []
    calls = [n.site for n in ir.walk(*parts) if isinstance(n, ir.Invoke)]
    return [f"pa_frame call{site} = {{{up}, {site}}};" for site in calls]


def debug_state(code: Emitter, runtime: str, loop: Any, tid: int) -> list[str]:
    """In debug mode, where the thread is, for failure records."""
    if not code.debug:
        return []
    here = f"pa_at here = {{{runtime}, {loop}, {tid}, scrap}};"
    return ["PA_SCRAP_ROOM;", here, "pa_at *at = &here;", "const pa_frame *up = 0;"]


def declarations(variables: Any) -> Iterator[str]:
    for name, kind in variables:
        initial = ""
        if isinstance(kind, ir.TileType):
            initial = " __attribute__((aligned(64))) = {{0}}"
        elif isinstance(kind, ir.LocalArrayType):
            initial = " = {{0}}"
        elif isinstance(kind, ir.ScalarType):
            initial = " = {0}" if kind.dtype.ctype.startswith("pa_") else " = 0"
        yield f"{ctype(kind)} {cname(name)}{initial};"


def parallel_loop(code: Emitter, loop: ir.For, hoisted_checks: Hoisting | None) -> None:
    """A parallel loop: its body over a block of iterations, and the frame that the runtime calls.

    The body is compiled in several versions: with strided arrays for the common case
    that last axes are dense, which vectorises; in debug mode for blocks that are known to be inside; where it
    gains something, for arguments that don't overlap.
    """
    unit, lines, symbol = bool(strided_params(code.kernel)), list[str](), code.symbol
    code.hoisted, code.turn = frozenset(), loop
    code.no_alias = "(PA_NO_ALIAS || env->no_alias)" if noalias_arrays(code, loop) else "false"
    if hoisted_checks is not None:
        inside = assigned_in(*loop.body)
        fields = {n: t for n, t in (*code.kernel.params, *code.outer) if n not in inside}
        code.hoisted, lines = hoisted_checks.loop(loop, fields)
    code.sites = sites_in(*loop.body)
    versions = f"{', const bool unit' if unit else ''}{', const bool inside' if lines else ''}"
    params = f"(const {symbol}_env *env, int64_t begin, int64_t end{versions})"
    weight = _body(code, loop, f"{symbol}_body{loop.loop}{params}")
    target = nontemporal_array(code.kernel, loop) if code.dialect.nontemporal else None
    last = loop.body[-1].site if target is not None else None  # type: ignore[union-attr]
    if last is not None and last not in code.hoisted:  # it may leave the array
        target = None
    passed, factor = "env, begin, end", trip_count_factor(code, loop)
    if factor > 1:  # the compiler sees that no iterations are left over after its vectors
        passed = f"env, begin & -{factor}, end & -{factor}"
    # a checked block has one only where it is known to be inside
    arrays = noalias_arrays(code, loop) if lines or not code.debug else []
    if arrays:
        noalias_function(code, loop.loop, arrays, ", true" * (unit + bool(lines)), weight)
        if not code.debug:
            overlap_function(code, loop.loop, ", true" * unit, weight)
    sums = privatized_arrays(code, loop) if target is None else []
    if sums:
        code.privatized = frozenset(n for n, _ in sums)
        weight += _body(code, loop, f"{symbol}_sums{loop.loop}{params}")
        code.privatized = frozenset()

    def calls(function: str, arguments: str) -> list[str]:
        return _choose_version(f"{symbol}_{function}{loop.loop}({arguments}", unit, bool(lines))

    cold = combines_chunks(code.kernel, loop)
    inlined = COLD if cold else 1 + unit + bool(lines) - bool(arrays)  # versions of the body that end in this function
    head, qualifiers = code.dialect.loop.format(symbol=symbol, number=loop.loop), "__attribute__((cold)) " * cold
    with shared_function(code, qualifiers, head, inlined * weight) as out:
        out.line(f"const {symbol}_env *env = (const {symbol}_env *)context;")
        out.lines(lines)
        if sums:
            alone = len(used_arrays(code.kernel, loop)) == 1
            privatized_block(out, sums, symbol, loop, alone, calls("sums", "&local, begin, end"))
        if arrays:
            fast = ("env->unit",) * unit + ("inside",) * bool(lines)
            out.lines(noalias_call(symbol, loop.loop, arrays, passed, fast))
        if arrays and target is None and not code.debug:
            out.lines(overlap_calls(symbol, loop.loop, passed, unit))
        elif target is None:
            out.lines(calls("body", passed))
        else:
            plain = calls("body", passed) if factor > 1 else []
            condition = "inside && " if last is not None else ""
            _nontemporal_loop(code, *target, calls("body", "&local, from, to"), plain, condition)


def combines_chunks(kernel: ir.Function, loop: ir.For) -> bool:
    """Whether it combines a reduction's partial results: so few that it is compiled as code that hardly runs is, in a
    third of the time."""
    once, arrays = loop.ranges[0].stop, used_arrays(kernel, loop)
    alone = bool(arrays) and all(name.startswith(PARTIAL) for name, _ in arrays)
    return alone and isinstance(once, ir.Const) and once.value == 1


def _body(code: Emitter, loop: ir.For, head: str) -> int:
    """Prints the C function that runs a block of iterations; the length of its text."""
    text = code.printed(_body_function, code, loop, head)
    code.out.text(text)
    return len(text)


def _body_function(code: Emitter, loop: ir.For, head: str) -> None:
    with code.out.function(f"{code.dialect.body} void {head}"):
        code.out.lines([*debug_state(code, "env->rt", loop.loop, 0), *frames(code, loop.body, "0")])
        code.out.lines(_arguments(code, loop))
        (_single if len(loop.ranges) == 1 else _product)(code, loop)


def _choose_version(call: str, unit: bool, inside: bool) -> list[str]:
    """Calls of the body's versions, the fastest first. Checked blocks are slow with any strides: they have one
    version."""
    if not unit and not inside:
        return [f"{call});"]
    versions = [("env->unit", "true")] if not inside else [("inside", "true")]
    if unit and inside:
        versions = [("inside && env->unit", "true, true"), ("inside", "false, true")]
    calls = [f"if ({test}) {call}, {flags});" for test, flags in versions]
    rest = ", ".join(["false"] * (unit + inside))
    first, *more = [*calls, f"{call}, {rest});"]
    return [first, *(f"else {line}" for line in more)]


def trip_count_factor(code: Emitter, loop: ir.For) -> int:
    """A power of two that divides the number of iterations of a parallel loop for sure, by what its array
    promises; 1 without a promise."""
    range_ = loop.ranges[0]
    from_zero = range_.start is None or (isinstance(range_.start, ir.Const) and range_.start.value == 0)
    if not code.dialect.blocks or len(loop.ranges) != 1 or range_.step is not None or not from_zero:
        return 1
    size = range_.stop
    if not isinstance(size, ir.Size) or not isinstance(size.array, ir.Local):
        return 1
    promises = code.specializations.get(size.array.name, ())
    return next((p.factor for p in promises if p.axis == size.axis), 1)


def _nontemporal_loop(
    code: Emitter, name: str, kind: ir.ArrayType, calls: list[str], plain_calls: list[str], condition: str
) -> None:
    """A large result is computed block by block into a buffer and stored past the cache from there. In-place
    loops, whose lines are in the cache already, are left alone. `plain_calls` is the call without blocks, where it
    is worth its own text."""
    array, element, out = f"env->{cname(name)}", kind.dtype.ctype, code.out
    others = [n for n, k in code.kernel.params if isinstance(k, ir.ArrayType) and n != name]
    distinct = "".join(f" && (char *){array}.data != (char *)env->{cname(n)}.data" for n in others)
    out.line(f"const int64_t size = sizeof({element});")
    out.line(f"const bool large = {condition}PA_CAN_STREAM && {array}.n0 * size >= PA_STREAM_MIN{distinct};")
    if plain_calls:
        with out.block("if (!large)"):
            out.lines([*plain_calls, "return;"])
    out.line("const int64_t step = large ? PA_STREAM_BLOCK / size : end - begin;")
    out.line(f"{element} block[PA_STREAM_BLOCK / sizeof({element})] __attribute__((aligned(64)));")
    out.line(f"{code.symbol}_env local = *env;")
    with out.block("for (int64_t from = begin, to; from < end; from = to)"):
        out.line("/* blocks end where a line of the cache does */")
        out.line(f"const int64_t skew = large ? ((int64_t)((uint64_t)({array}.data + from) & 63)) / size : 0;")
        out.line("to = end - from < step - skew ? end : from + step - skew;")
        data = f"({element} *)((uint64_t)block - (uint64_t)(from * size))"
        out.line(f"if (large) local.{cname(name)}.data = {data};")
        out.lines(calls)
        out.line(f"if (large) pa_stream_copy({array}.data + from, block, (to - from) * size);")
    out.line("if (large) PA_STREAM_END();")


def _arguments(code: Emitter, loop: ir.For) -> Iterator[str]:
    """What the body uses of the environment, and its own variables."""
    used = names_in(*loop.body)
    inner = assigned_in(*loop.body)
    for name, kind in (*code.kernel.params, *code.outer):
        if name not in used or name in inner:
            continue
        strided_array = isinstance(kind, ir.ArrayType) and kind.strided and (name, kind) in code.kernel.params
        assumed = code.assumptions(name, kind, cname(name))  # of parameters, which are never assigned
        const = "" if strided_array or assumed else "const "
        yield f"{const}{ctype(kind)} {cname(name)} = env->{cname(name)};"
        if strided_array:
            yield f"if (unit) {cname(name)}.s{kind.ndim - 1} = (int64_t)sizeof({kind.dtype.ctype});"
        yield from assumed
    yield from declarations((n, t) for n, t in code.kernel.variables if n in inner)


def variable_at(t: str, first: str | None, step: str | None) -> str:
    """The loop's variable in iteration `t`. A product with a step may be beyond 64 bits on the way."""
    if step is None:
        return t if first is None else f"{first} + {t}"
    product = f"pa_mul_i64({t}, {step})"
    return product if first is None else f"pa_add_i64({first}, {product})"


def _single(code: Emitter, loop: ir.For) -> None:
    name, out = cname(loop.variables[0]), code.out
    first, step = start_and_step(code, loop, "env->")
    split = find_rows(code, loop) if step is None else None
    if split is not None:
        ends = [variable_at(t, first, None) for t in ("begin", "end")]
        out.line(f"const int64_t first = {ends[0]}, last = {ends[1]};")
        code.write_rows(loop, split, "first", "last")
        return
    missed(code, loop)
    with out.block("for (int64_t t = begin; t < end; ++t)"):
        if code.debug:
            out.line(begin_iteration("t"))
        out.line(f"const int64_t {name} = {variable_at('t', first, step)};")
        code.write(loop.body)


def _product(code: Emitter, loop: ir.For) -> None:
    """Several loop variables: the block's first index is delinearized once, then rows are counted like an
    odometer."""
    (*names, inner), out = [cname(v) for v in loop.variables], code.out
    for n, (field, _) in zip((*names, inner), bound_fields(loop), strict=True):
        out.line(f"const int64_t size_{n} = env->{field};")
    out.line("int64_t rest = begin;")
    for n in reversed((*names, inner)):
        out.lines([f"int64_t at_{n} = rest % size_{n};", f"rest /= size_{n};"])

    def statements() -> None:
        out.lines(f"const int64_t {n} = row_{n};" for n in names)
        if code.debug:
            out.line(begin_iteration("t + (k - first)"))
        code.write(loop.body)

    def body(span: CountedLoop) -> None:
        with span.block(out):
            statements()

    with out.block("for (int64_t t = begin; t < end;)"):
        out.line(f"const int64_t first = at_{inner};")
        row = f"size_{inner} - first"
        out.line(f"const int64_t row = {row} < end - t ? {row} : end - t;")
        out.lines(f"const int64_t row_{n} = at_{n};" for n in names)
        split = find_rows(code, loop)
        if split is None:
            missed(code, loop)
            span = CountedLoop("k", "first", "first + row", f"const int64_t {inner} = k;")
            if not write_index_sets(code, loop, span, statements, "0", f"size_{inner}"):
                body(span)
        else:
            out.line("const int64_t past = first + row;")
            delinearized_loop(code, loop, split, "first", "past", body)
        out.lines(["t += row;", f"at_{inner} = 0;"])
        for n in reversed(names):
            out.open(f"if (++at_{n} == size_{n})")
            out.line(f"at_{n} = 0;")
        for _ in names:
            out.close()


def slots(kernel: ir.Function, symbol: str, debug: bool, grid: bool = False) -> str:
    """The packed arguments, 8 bytes each, in the order in which the host writes them. A grid's failure record
    comes after them."""
    lines = []
    for name, kind in kernel.params:
        if isinstance(kind, ir.ArrayType):
            lines += [f"{c}{field}_{cname(name)};" for c, field in views.struct_fields(kind, debug)]
        elif kind.dtype.kind == "c":
            lines.append(f"double re_{cname(name)}, im_{cname(name)};")
        else:
            wide = "double" if kind.dtype.kind == "f" else kind.dtype.ctype
            fill = 8 - (8 if kind.dtype.kind == "f" else kind.dtype.itemsize)
            lines.append(f"{wide} {cname(name)};{f' char fill_{cname(name)}[{fill}];' if fill else ''}")
    if grid and debug:
        lines.append("pa_runtime run;")
    return struct_text(f"{symbol}_slots", lines)


def unpack_slot(target: str, name: str, kind: Any, debug: bool) -> list[str]:
    """Statements that set `target` from the slots of a parameter with that name in C."""
    if isinstance(kind, ir.ArrayType):
        pairs = views.struct_fields(kind, debug)
        return [f"{target}.{field} = slots->{field}_{name};" for _, field in pairs]
    dtype = kind.dtype
    if dtype.kind == "c":
        part = "float" if dtype.itemsize == 8 else "double"
        return [f"{target}.{p} = ({part})slots->{p}_{name};" for p in ("re", "im")]
    if dtype.is_narrow:
        return [f"{target} = pa_{dtype.suffix}_from_f64(slots->{name});"]
    return [f"{target} = ({dtype.ctype})slots->{name};"]
