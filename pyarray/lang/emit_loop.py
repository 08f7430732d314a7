"""C text of parallel loops on CPUs: their shared environment, and a function per loop for a block of iterations."""

from __future__ import annotations

from typing import Any

from . import emit_views as views
from .emit_delinearized import CountedLoop, delinearized_loop, missed
from .emit_noalias import noalias_arrays, noalias_call, noalias_function
from .emit_privatized import privatized_arrays, privatized_block, used_arrays
from .emit_statements import Emitter, begin_iteration, cname, ctype, sites_of
from .hoisted_checks import Hoisting
from .ir import ArrayType, Const, For, Function, Invoke, Local, Range, ScalarType, Size, Stmt, assigned, walk
from .loop_extents import extents
from .nontemporal_stores import nontemporal_array


def is_parallel(statement: Stmt) -> bool:
    return isinstance(statement, For) and statement.loop is not None


def outer_variables(kernel: Function) -> tuple[tuple[str, Any], ...]:
    """Variables assigned outside the parallel loops: these see their last value."""
    outside = [part for s in kernel.body for part in (s.ranges if is_parallel(s) else (s,))]  # type: ignore[union-attr]
    names = assigned(*outside)
    return tuple((n, t) for n, t in kernel.variables if n in names)


def strided_params(kernel: Function) -> list[tuple[str, ArrayType]]:
    return [(n, k) for n, k in kernel.params if isinstance(k, ArrayType) and k.strided and k.ndim]


def environment(code: Emitter, kernel: Function, symbol: str, outer: tuple[tuple[str, Any], ...]) -> str:
    lines = [f"    {ctype(kind)} {cname(name)};\n" for name, kind in (*kernel.params, *outer)]
    for loop in kernel.body:
        if isinstance(loop, For) and loop.loop is not None:
            lines += [f"    int64_t {name};\n" for name, _ in bound_fields(loop)]
    if strided_params(kernel):
        lines.append("    bool unit; /* every strided array has neighbours along its last axis */\n")
    if noalias_params(code, kernel):
        lines.append("    bool no_alias; /* what is written shares no memory with the others */\n")
    return f"typedef struct {{\n    pa_runtime *rt;\n{''.join(lines)}}} {symbol}_env;\n"


def noalias_params(code: Emitter, kernel: Function) -> list[tuple[str, ArrayType]]:
    """The arrays whose ranges the entry compares: those of all loops that ask for it."""
    loops = [s for s in kernel.body if isinstance(s, For) and is_parallel(s)]
    found = {n: k for loop in loops for n, k in noalias_arrays(code, kernel, loop)}
    for loop in loops:
        if privatized_arrays(code, kernel, loop) and len(used_arrays(kernel, loop)) > 1:
            found |= used_arrays(kernel, loop)
    return [(n, k) for n, k in kernel.params if n in found]


def bound_fields(loop: For) -> list[tuple[str, Range | Any]]:
    """Fields of the environment that a loop's ranges need, with what they hold: the iterations see the bounds
    as they were before the first one. A `Range` stands for its length."""
    if len(loop.ranges) > 1:
        return [(f"size{loop.loop}_{axis}", range_) for axis, range_ in enumerate(loop.ranges)]
    range_ = loop.ranges[0]  # pyright: ignore[reportGeneralTypeIssues]
    fields = (("from", range_.start), ("step", range_.step))
    return [(f"{name}{loop.loop}", x) for name, x in fields if x is not None and not isinstance(x, Const)]


def bound_text(code: Emitter, loop: For, field: str, x: Range | Any) -> str:
    """What one of the `bound_fields` is, as C text."""
    if isinstance(x, Range):
        return trip_count(code, x)
    return code.step(loop) if field == f"step{loop.loop}" else code.expr(x)


def trip_count(code: Emitter, range_: Range, start: str | None = None, step: str | None = None) -> str:
    """Number of iterations; `start` and `step` where they have been evaluated already."""
    if (
        range_.start is None
        and range_.step is None
        and (isinstance(range_.stop, Size) or _is_natural(range_.stop))
    ):
        return code.expr(range_.stop)  # type: ignore[arg-type]
    first = start or (code.expr(range_.start) if range_.start is not None else "0")
    by = step or (code.expr(range_.step) if range_.step is not None else "1")
    return f"pa_range_len({first}, {code.expr(range_.stop)}, {by})"  # type: ignore[arg-type]


def collapsed_trip_count(code: Emitter, kernel: Function, loop: For, sizes: list[str]) -> str:
    """Number of iterations of several ranges: none where one of them is empty, or where there would be more
    than 64 bits hold. A launch tests that if the sizes follow from arguments."""
    tested = code.dialect.blocks or all(found.loop != loop.loop for found in extents(kernel))
    function = views.size_product(len(sizes), code.dialect.function, tested, loop.site is not None)
    return f"{code.helper(function)}({', '.join([*code.check_args(loop.site), *sizes])})"


def _is_natural(expr: Any) -> bool:
    return isinstance(expr, Const) and expr.value >= 0


def frames(code: Emitter, parts: Any, up: str) -> str:
    """One link of the call stack per call."""
    if not code.debug:
        return ""
    calls = [n.site for part in parts for n in walk(part) if isinstance(n, Invoke)]
    return "".join(f"    pa_frame call{site} = {{{up}, {site}}};\n" for site in calls)


def declarations(variables: Any, pad: str) -> str:
    lines = []
    for name, kind in variables:
        initial = (
            ""
            if not isinstance(kind, ScalarType)
            else " = {0}"
            if kind.dtype.ctype.startswith("pa_")
            else " = 0"
        )
        lines.append(f"{pad}{ctype(kind)} {cname(name)}{initial};\n")
    return "".join(lines)


def parallel_loop(
    code: Emitter,
    kernel: Function,
    loop: For,
    symbol: str,
    outer: tuple[tuple[str, Any], ...],
    hoisted_checks: Hoisting | None,
) -> str:
    """A parallel loop: its body over a block of iterations, and the frame that the runtime calls.

    The body is compiled in several versions: with strided arrays for the common case
    that last axes are dense, which vectorises; in debug mode for blocks that are known to be inside; where it
    gains something, for arguments that don't overlap.
    """
    unit, lines = bool(strided_params(kernel)), list[str]()
    code.hoisted = frozenset()
    if hoisted_checks is not None:
        inside = assigned(*loop.body)
        fields = {n: t for n, t in (*kernel.params, *outer) if n not in inside}
        code.hoisted, lines = hoisted_checks.loop(loop, fields)
    code.sites = sites_of(loop.body)
    versions = f"{', const bool unit' if unit else ''}{', const bool inside' if lines else ''}"
    text = _body(code, kernel, loop, f"{symbol}_env", f"{symbol}_body{loop.loop}", versions, outer)
    target = nontemporal_array(kernel, loop) if code.dialect.nontemporal else None
    last = loop.body[-1].site if target is not None else None  # type: ignore[union-attr]
    if last is not None and last not in code.hoisted:  # it may leave the array
        target = None
    whole, factor = "env, begin, end", trip_count_factor(code, loop)
    if factor > 1:  # the compiler sees that no iterations are left over after its vectors
        whole = f"env, begin & -{factor}, end & -{factor}"
    call = f"{symbol}_body{loop.loop}("
    calls = _choose_version(call + (whole if target is None else "&local, from, to"), unit, bool(lines))
    if target is not None:
        plain_calls = _choose_version(call + whole, unit, bool(lines)) if factor > 1 else ""
        calls = _nontemporal_loop(
            kernel, *target, symbol, calls, plain_calls, "inside && " if last is not None else ""
        )
    if arrays := noalias_arrays(code, kernel, loop):
        text += noalias_function(symbol, loop.loop, arrays, ", true" if unit else "")
        calls = noalias_call(symbol, loop.loop, arrays, whole, unit) + calls
    if target is None and (sums := privatized_arrays(code, kernel, loop)):
        code.privatized = frozenset(n for n, _ in sums)
        text += _body(code, kernel, loop, f"{symbol}_env", f"{symbol}_sums{loop.loop}", versions, outer)
        code.privatized = frozenset()
        sums_call = _choose_version(f"{symbol}_sums{loop.loop}(&local, begin, end", unit, bool(lines))
        calls = privatized_block(sums, symbol, len(used_arrays(kernel, loop)) == 1, sums_call) + calls
    calls = "".join(f"    {line}\n" for line in lines) + calls
    return text + code.dialect.loop.format(symbol=symbol, number=loop.loop, calls=calls)


def _body(
    code: Emitter,
    kernel: Function,
    loop: For,
    environment: str,
    symbol: str,
    versions: str,
    outer: tuple[tuple[str, Any], ...],
) -> str:
    """The function of a block of iterations."""
    text = f"{code.dialect.body} void {symbol}(const {environment} *env, int64_t begin, int64_t end{versions})\n{{\n"
    if code.debug:
        text += f"    pa_at here = {{env->rt, {loop.loop}, 0, {{0, 0}}}};\n"
        text += "    pa_at *at = &here;\n    const pa_frame *up = 0;\n" + frames(code, loop.body, "0")
    text += _arguments(code, kernel, loop, outer)
    return text + (_single(code, loop) if len(loop.ranges) == 1 else _product(code, loop)) + "}\n"


def _choose_version(call: str, unit: bool, inside: bool) -> str:
    """Calls of the body's versions, the fastest first. Checked blocks are slow with any strides: they have one
    version."""
    if not unit and not inside:
        return f"    {call});"
    versions = [("env->unit", "true")] if not inside else [("inside", "true")]
    if unit and inside:
        versions = [("inside && env->unit", "true, true"), ("inside", "false, true")]
    calls = [f"if ({test}) {call}, {flags});" for test, flags in versions]
    rest = ", ".join(["false"] * (unit + inside))
    return "    " + "\n    else ".join([*calls, f"{call}, {rest});"])


def trip_count_factor(code: Emitter, loop: For) -> int:
    """A power of two that divides the number of iterations of a parallel loop for sure, by what its array
    promises; 1 without a promise."""
    range_ = loop.ranges[0]
    from_zero = range_.start is None or (isinstance(range_.start, Const) and range_.start.value == 0)
    if not code.dialect.blocks or len(loop.ranges) != 1 or range_.step is not None or not from_zero:
        return 1
    size = range_.stop
    if not isinstance(size, Size) or not isinstance(size.array, Local):
        return 1
    promises = code.specializations.get(size.array.name, ())
    return next((p.factor for p in promises if p.axis == size.axis), 1)


def _nontemporal_loop(
    kernel: Function, name: str, kind: ArrayType, symbol: str, calls: str, plain_calls: str, condition: str
) -> str:
    """A large result is computed block by block into a buffer and stored past the cache from there. In-place
    loops, whose lines are in the cache already, are left alone. `plain_calls` is the call without blocks, where it
    is worth its own text."""
    out, element = f"env->{cname(name)}", kind.dtype.ctype
    others = [n for n, k in kernel.params if isinstance(k, ArrayType) and n != name]
    distinct = "".join(f" && (char *){out}.data != (char *)env->{cname(n)}.data" for n in others)
    body = calls.replace("\n", "\n    ")
    alone = ""
    if plain_calls:
        inner = plain_calls.replace("\n", "\n    ")
        alone = f"    if (!large) {{\n    {inner}\n        return;\n    }}\n"
    return f"""\
    const int64_t size = sizeof({element});
    const bool large = {condition}PA_CAN_STREAM && {out}.n0 * size >= PA_STREAM_MIN{distinct};
{alone}    const int64_t step = large ? PA_STREAM_BLOCK / size : end - begin;
    {element} block[PA_STREAM_BLOCK / sizeof({element})] __attribute__((aligned(64)));
    {symbol}_env local = *env;
    for (int64_t from = begin, to; from < end; from = to) {{
        /* blocks end where a line of the cache does */
        const int64_t skew = large ? ((int64_t)((uint64_t)({out}.data + from) & 63)) / size : 0;
        to = end - from < step - skew ? end : from + step - skew;
        if (large) local.{cname(name)}.data = ({element} *)((uint64_t)block - (uint64_t)(from * size));
    {body}
        if (large) pa_stream_copy({out}.data + from, block, (to - from) * size);
    }}
    if (large) PA_STREAM_END();"""


def _arguments(code: Emitter, kernel: Function, loop: For, outer: tuple[tuple[str, Any], ...]) -> str:
    """What the body uses of the environment, and its own variables."""
    used = {n.name for s in loop.body for n in walk(s) if isinstance(n, Local)}
    inner = assigned(*loop.body)
    text = ""
    for name, kind in (*kernel.params, *outer):
        if name not in used or name in inner:
            continue
        strided_array = isinstance(kind, ArrayType) and kind.strided and (name, kind) in kernel.params
        assumed = code.assumptions(name, kind, cname(name))  # of parameters, which are never assigned
        text += f"    {'' if strided_array or assumed else 'const '}{ctype(kind)} {cname(name)} = env->{cname(name)};\n"
        if strided_array:
            text += f"    if (unit) {cname(name)}.s{kind.ndim - 1} = (int64_t)sizeof({kind.dtype.ctype});\n"
        text += "".join(f"    {s}\n" for s in assumed)
    return text + declarations(((n, t) for n, t in kernel.variables if n in inner), "    ")


def variable_at(t: str, first: str | None, step: str | None) -> str:
    """The loop's variable in iteration `t`. A product with a step may be beyond 64 bits on the way."""
    if step is None:
        return t if first is None else f"{first} + {t}"
    product = f"pa_mul_i64({t}, {step})"
    return product if first is None else f"pa_add_i64({first}, {product})"


def _single(code: Emitter, loop: For) -> str:
    name, range_ = cname(loop.variables[0]), loop.ranges[0]
    fields = dict(bound_fields(loop))
    first, step = (
        None if x is None else f"env->{field}" if field in fields else code.expr(x)
        for field, x in ((f"from{loop.loop}", range_.start), (f"step{loop.loop}", range_.step))
    )
    if step is None:

        def body(span: CountedLoop, depth: int) -> str:
            return f"{span.head(depth)}{code.block(loop.body, depth)}{'    ' * (depth - 1)}}}\n"

        text = delinearized_loop(code, loop, "first", "last", 1, body)
        if text is not None:
            ends = [variable_at(t, first, None) for t in ("begin", "end")]
            return f"    const int64_t first = {ends[0]}, last = {ends[1]};\n{text}"
    value = variable_at("t", first, step)
    at = f"        {begin_iteration('t')}\n" if code.debug else ""
    text = missed(code, loop, 1)
    text += f"    for (int64_t t = begin; t < end; ++t) {{\n{at}        const int64_t {name} = {value};\n"
    return text + code.block(loop.body, 2) + "    }\n"


def _product(code: Emitter, loop: For) -> str:
    """Several loop variables: the block's first index is delinearized once, then rows are counted like an
    odometer."""
    names, last = [cname(v) for v in loop.variables], len(loop.variables) - 1
    text = "".join(
        f"    const int64_t size_{n} = env->{field};\n"
        for n, (field, _) in zip(names, bound_fields(loop), strict=True)
    )
    text += "    int64_t rest = begin;\n"
    for n in reversed(names):
        text += f"    int64_t at_{n} = rest % size_{n};\n    rest /= size_{n};\n"
    inner = names[last]
    text += f"    for (int64_t t = begin; t < end;) {{\n        const int64_t first = at_{inner};\n"
    text += f"        const int64_t row = size_{inner} - first < end - t ? size_{inner} - first : end - t;\n"
    text += "".join(f"        const int64_t row_{n} = at_{n};\n" for n in names[:last])
    row_variables = [f"const int64_t {n} = row_{n};\n" for n in names[:last]]

    def body(span: CountedLoop, depth: int) -> str:
        pad = "    " * depth
        at = [f"{begin_iteration('t + (k - first)')}\n"] if code.debug else []
        lines = "".join(pad + line for line in (*row_variables, *at))
        return f"{span.head(depth)}{lines}{code.block(loop.body, depth)}{pad[4:]}}}\n"

    split = delinearized_loop(code, loop, "first", "past", 2, body)
    if split is None:
        text += missed(code, loop, 2)
        text += body(CountedLoop("k", "first", "first + row", f"const int64_t {inner} = k;"), 3)
    else:
        text += f"        const int64_t past = first + row;\n{split}"
    text += f"        t += row;\n        at_{inner} = 0;\n"
    for depth, n in enumerate(reversed(names[:last])):
        pad = "        " + "    " * depth
        text += f"{pad}if (++at_{n} == size_{n}) {{\n{pad}    at_{n} = 0;\n"
    for depth in reversed(range(last)):
        text += "        " + "    " * depth + "}\n"
    return text + "    }\n"


def slots(kernel: Function, symbol: str, debug: bool, grid: bool = False) -> str:
    """The packed arguments, 8 bytes each, in the order in which the host writes them. A grid's failure record
    comes after them."""
    lines = []
    for name, kind in kernel.params:
        if isinstance(kind, ArrayType):
            lines += [f"    {c}{field}_{cname(name)};\n" for c, field in views.struct_fields(kind, debug)]
        elif kind.dtype.kind == "c":
            lines.append(f"    double re_{cname(name)}, im_{cname(name)};\n")
        else:
            wide = "double" if kind.dtype.kind == "f" else kind.dtype.ctype
            fill = 8 - (8 if kind.dtype.kind == "f" else kind.dtype.itemsize)
            lines.append(f"    {wide} {cname(name)};{f' char fill_{cname(name)}[{fill}];' if fill else ''}\n")
    if grid and debug:
        lines.append("    pa_runtime run;\n")
    return f"typedef struct {{\n{''.join(lines) or '    int64_t unused;'}}} {symbol}_slots;\n"


def unpack_slot(name: str, kind: Any, debug: bool) -> str:
    """One parameter from the slots into the environment."""
    if isinstance(kind, ArrayType):
        pairs = views.struct_fields(kind, debug)
        return "".join(f"    env.{name}.{field} = slots->{field}_{name};\n" for _, field in pairs)
    dtype = kind.dtype
    if dtype.kind == "c":
        part = "float" if dtype.itemsize == 8 else "double"
        return "".join(f"    env.{name}.{p} = ({part})slots->{p}_{name};\n" for p in ("re", "im"))
    if dtype.kind == "f" and dtype.itemsize == 2:
        return f"    env.{name} = pa_{dtype.suffix}_from_f64(slots->{name});\n"
    return f"    env.{name} = ({dtype.ctype})slots->{name};\n"
