"""C text of the parallel loops of a kernel: the environment that they share, and one function for a block of
iterations."""

from __future__ import annotations

from typing import Any

from . import emit_views as views
from .emit_delinearized import Span, digits, why_not
from .emit_noalias import noalias_arrays, noalias_call, noalias_function
from .emit_privatized import collected, collecting, users
from .emit_statements import Code, cname, ctype, iteration, sites_of
from .hoisted_checks import Hoist
from .ir import ArrayType, Const, For, Function, Invoke, Local, Range, ScalarType, Size, Stmt, assigned, walk
from .loop_extents import extents
from .nontemporal_stores import streamed


def is_parallel(statement: Stmt) -> bool:
    return isinstance(statement, For) and statement.loop is not None


def outer_variables(kernel: Function) -> tuple[tuple[str, Any], ...]:
    """Variables assigned outside the parallel loops: these see their last value."""
    outside = [part for s in kernel.body for part in (s.ranges if is_parallel(s) else (s,))]  # type: ignore[union-attr]
    names = assigned(*outside)
    return tuple((n, t) for n, t in kernel.variables if n in names)


def strided(kernel: Function) -> list[tuple[str, ArrayType]]:
    return [(n, k) for n, k in kernel.params if isinstance(k, ArrayType) and k.strided and k.ndim]


def environment(code: Code, kernel: Function, symbol: str, outer: tuple[tuple[str, Any], ...]) -> str:
    lines = [f"    {ctype(kind)} {cname(name)};\n" for name, kind in (*kernel.params, *outer)]
    for loop in kernel.body:
        if isinstance(loop, For) and loop.loop is not None:
            lines += [f"    int64_t {name};\n" for name, _ in bounds(loop)]
    if strided(kernel):
        lines.append("    bool unit; /* every strided array has neighbours along its last axis */\n")
    if noalias_params(code, kernel):
        lines.append("    bool no_alias; /* what is written shares no memory with the others */\n")
    return f"typedef struct {{\n    pa_runtime *rt;\n{''.join(lines)}}} {symbol}_env;\n"


def noalias_params(code: Code, kernel: Function) -> list[tuple[str, ArrayType]]:
    """The arrays whose ranges the entry compares: those of all loops that ask for it."""
    loops = [s for s in kernel.body if isinstance(s, For) and is_parallel(s)]
    found = {n: k for loop in loops for n, k in noalias_arrays(code, kernel, loop)}
    for loop in loops:
        if collected(code, kernel, loop) and len(users(kernel, loop)) > 1:
            found |= users(kernel, loop)
    return [(n, k) for n, k in kernel.params if n in found]


def bounds(loop: For) -> list[tuple[str, Range | Any]]:
    """Fields of the environment that a loop's ranges need, with what they hold: the iterations see the bounds
    as they were before the first one. A `Range` stands for its length."""
    if len(loop.ranges) > 1:
        return [(f"size{loop.loop}_{axis}", reach) for axis, reach in enumerate(loop.ranges)]
    reach = loop.ranges[0]  # pyright: ignore[reportGeneralTypeIssues]
    known = (("from", reach.start), ("step", reach.step))
    return [(f"{name}{loop.loop}", x) for name, x in known if x is not None and not isinstance(x, Const)]


def held(code: Code, loop: For, field: str, x: Range | Any) -> str:
    """What one of the `bounds` is, as C text."""
    if isinstance(x, Range):
        return length(code, x)
    return code.step(loop) if field == f"step{loop.loop}" else code.expr(x)


def length(code: Code, reach: Range, start: str | None = None, step: str | None = None) -> str:
    """Number of iterations; `start` and `step` where they have been evaluated already."""
    if (
        reach.start is None
        and reach.step is None
        and (isinstance(reach.stop, Size) or _is_natural(reach.stop))
    ):
        return code.expr(reach.stop)  # type: ignore[arg-type]
    first = start or (code.expr(reach.start) if reach.start is not None else "0")
    by = step or (code.expr(reach.step) if reach.step is not None else "1")
    return f"pa_range_len({first}, {code.expr(reach.stop)}, {by})"  # type: ignore[arg-type]


def product(code: Code, kernel: Function, loop: For, sizes: list[str]) -> str:
    """Number of iterations of several ranges: none where one of them is empty, or where there would be more
    than 64 bits hold, which a launch has seen to if the sizes follow from arguments."""
    tested = code.dialect.blocks or all(found.loop != loop.loop for found in extents(kernel))
    made = views.product(len(sizes), code.dialect.function, tested, loop.site is not None)
    return f"{code.helper(made)}({', '.join([*code.where(loop.site), *sizes])})"


def _is_natural(expr: Any) -> bool:
    return isinstance(expr, Const) and expr.value >= 0


def frames(code: Code, parts: Any, up: str) -> str:
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
    code: Code,
    kernel: Function,
    loop: For,
    symbol: str,
    outer: tuple[tuple[str, Any], ...],
    hoist: Hoist | None,
) -> str:
    """A parallel loop: its body over a block of iterations, and the frame that the runtime calls.

    The body is compiled once for each way in which a block can run: with strided arrays for the common case
    that last axes are dense, which vectorises; in debug mode for blocks that are known to be inside; where it
    gains something, for arguments that don't overlap.
    """
    unit, lines = bool(strided(kernel)), list[str]()
    code.hoisted = frozenset()
    if hoist is not None:
        inside = assigned(*loop.body)
        known = {n: t for n, t in (*kernel.params, *outer) if n not in inside}
        code.hoisted, lines = hoist.loop(loop, known)
    code.sites = sites_of(loop.body)
    ways = f"{', const bool unit' if unit else ''}{', const bool inside' if lines else ''}"
    text = _body(code, kernel, loop, f"{symbol}_env", f"{symbol}_body{loop.loop}", ways, outer)
    filled = streamed(kernel, loop) if code.dialect.streams else None
    last = loop.body[-1].site if filled is not None else None  # type: ignore[union-attr]
    if last is not None and last not in code.hoisted:  # it may leave the array
        filled = None
    whole, factor = "env, begin, end", promised_factor(code, loop)
    if factor > 1:  # the compiler sees that no iterations are left over after its vectors
        whole = f"env, begin & -{factor}, end & -{factor}"
    call = f"{symbol}_body{loop.loop}("
    choose = _choose(call + (whole if filled is None else "&local, from, to"), unit, bool(lines))
    if filled is not None:
        small = _choose(call + whole, unit, bool(lines)) if factor > 1 else ""
        choose = _streaming(kernel, *filled, symbol, choose, small, "inside && " if last is not None else "")
    if arrays := noalias_arrays(code, kernel, loop):
        text += noalias_function(symbol, loop.loop, arrays, ", true" if unit else "")
        choose = noalias_call(symbol, loop.loop, arrays, whole, unit) + choose
    if filled is None and (sums := collected(code, kernel, loop)):
        code.collected = frozenset(n for n, _ in sums)
        text += _body(code, kernel, loop, f"{symbol}_env", f"{symbol}_sums{loop.loop}", ways, outer)
        code.collected = frozenset()
        own = _choose(f"{symbol}_sums{loop.loop}(&local, begin, end", unit, bool(lines))
        choose = collecting(sums, symbol, len(users(kernel, loop)) == 1, own) + choose
    choose = "".join(f"    {line}\n" for line in lines) + choose
    return text + code.dialect.loop.format(symbol=symbol, number=loop.loop, choose=choose)


def _body(
    code: Code,
    kernel: Function,
    loop: For,
    environment: str,
    symbol: str,
    ways: str,
    outer: tuple[tuple[str, Any], ...],
) -> str:
    """The function of a block of iterations."""
    text = (
        f"{code.dialect.body} void {symbol}(const {environment} *env, int64_t begin, int64_t end{ways})\n{{\n"
    )
    if code.debug:
        text += f"    pa_at here = {{env->rt, {loop.loop}, 0, {{0, 0}}}};\n"
        text += "    pa_at *at = &here;\n    const pa_frame *up = 0;\n" + frames(code, loop.body, "0")
    text += _arguments(code, kernel, loop, outer)
    return text + (_single(code, loop) if len(loop.ranges) == 1 else _product(code, loop)) + "}\n"


def _choose(call: str, unit: bool, inside: bool) -> str:
    """Calls of the body, the best way first. What isn't known to be inside isn't fast, whatever its strides:
    one text does for it."""
    if not unit and not inside:
        return f"    {call});"
    ways = [("env->unit", "true")] if not inside else [("inside", "true")]
    if unit and inside:
        ways = [("inside && env->unit", "true, true"), ("inside", "false, true")]
    calls = [f"if ({test}) {call}, {way});" for test, way in ways]
    rest = ", ".join(["false"] * (unit + inside))
    return "    " + "\n    else ".join([*calls, f"{call}, {rest});"])


def promised_factor(code: Code, loop: For) -> int:
    """A power of two that divides the number of iterations of a parallel loop for sure, by what its array
    promises; 1 without a promise."""
    reach = loop.ranges[0]
    from_zero = reach.start is None or (isinstance(reach.start, Const) and reach.start.value == 0)
    if not code.dialect.blocks or len(loop.ranges) != 1 or reach.step is not None or not from_zero:
        return 1
    size = reach.stop
    if not isinstance(size, Size) or not isinstance(size.array, Local):
        return 1
    promises = code.specializations.get(size.array.name, ())
    return next((p.factor for p in promises if p.axis == size.axis), 1)


def _streaming(
    kernel: Function, name: str, kind: ArrayType, symbol: str, choose: str, small: str, condition: str
) -> str:
    """A large result is computed block by block into memory of the loop's own and streamed out. In-place
    loops, whose lines are in the cache already, are left alone. `small` is the call without blocks, where it
    is worth its own text."""
    out, element = f"env->{cname(name)}", kind.dtype.ctype
    others = [n for n, k in kernel.params if isinstance(k, ArrayType) and n != name]
    distinct = "".join(f" && (char *){out}.data != (char *)env->{cname(n)}.data" for n in others)
    body = choose.replace("\n", "\n    ")
    alone = ""
    if small:
        inner = small.replace("\n", "\n    ")
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


def _arguments(code: Code, kernel: Function, loop: For, outer: tuple[tuple[str, Any], ...]) -> str:
    """What the body uses of the environment, and its own variables."""
    used = {n.name for s in loop.body for n in walk(s) if isinstance(n, Local)}
    inner = assigned(*loop.body)
    text = ""
    for name, kind in (*kernel.params, *outer):
        if name not in used or name in inner:
            continue
        cut = isinstance(kind, ArrayType) and kind.strided and (name, kind) in kernel.params
        told = code.promised(name, kind, cname(name))  # of parameters, which are never assigned
        text += f"    {'' if cut or told else 'const '}{ctype(kind)} {cname(name)} = env->{cname(name)};\n"
        if cut:
            text += f"    if (unit) {cname(name)}.s{kind.ndim - 1} = (int64_t)sizeof({kind.dtype.ctype});\n"
        text += "".join(f"    {s}\n" for s in told)
    return text + declarations(((n, t) for n, t in kernel.variables if n in inner), "    ")


def walked(t: str, first: str | None, step: str | None) -> str:
    """The loop's variable in iteration `t`. A product with a step may be beyond 64 bits on the way."""
    if step is None:
        return t if first is None else f"{first} + {t}"
    product = f"pa_mul_i64({t}, {step})"
    return product if first is None else f"pa_add_i64({first}, {product})"


def _single(code: Code, loop: For) -> str:
    name, reach = cname(loop.variables[0]), loop.ranges[0]
    fields = dict(bounds(loop))
    first, step = (
        None if x is None else f"env->{field}" if field in fields else code.expr(x)
        for field, x in ((f"from{loop.loop}", reach.start), (f"step{loop.loop}", reach.step))
    )
    if step is None:

        def body(span: Span, depth: int) -> str:
            return f"{span.head(depth)}{code.block(loop.body, depth)}{'    ' * (depth - 1)}}}\n"

        text = digits(code, loop, "first", "last", 1, body)
        if text is not None:
            ends = [walked(t, first, None) for t in ("begin", "end")]
            return f"    const int64_t first = {ends[0]}, last = {ends[1]};\n{text}"
    value = walked("t", first, step)
    at = f"        {iteration('t')}\n" if code.debug else ""
    text = why_not(code, loop, 1)
    text += f"    for (int64_t t = begin; t < end; ++t) {{\n{at}        const int64_t {name} = {value};\n"
    return text + code.block(loop.body, 2) + "    }\n"


def _product(code: Code, loop: For) -> str:
    """Several loop variables: the block's first position is taken apart once, then rows are walked like an
    odometer."""
    names, last = [cname(v) for v in loop.variables], len(loop.variables) - 1
    text = "".join(
        f"    const int64_t size_{n} = env->{field};\n"
        for n, (field, _) in zip(names, bounds(loop), strict=True)
    )
    text += "    int64_t rest = begin;\n"
    for n in reversed(names):
        text += f"    int64_t at_{n} = rest % size_{n};\n    rest /= size_{n};\n"
    inner = names[last]
    text += f"    for (int64_t t = begin; t < end;) {{\n        const int64_t first = at_{inner};\n"
    text += f"        const int64_t row = size_{inner} - first < end - t ? size_{inner} - first : end - t;\n"
    text += "".join(f"        const int64_t row_{n} = at_{n};\n" for n in names[:last])
    held = [f"const int64_t {n} = row_{n};\n" for n in names[:last]]

    def body(span: Span, depth: int) -> str:
        pad = "    " * depth
        at = [f"{iteration('t + (k - first)')}\n"] if code.debug else []
        lines = "".join(pad + line for line in (*held, *at))
        return f"{span.head(depth)}{lines}{code.block(loop.body, depth)}{pad[4:]}}}\n"

    split = digits(code, loop, "first", "past", 2, body)
    if split is None:
        text += why_not(code, loop, 2)
        text += body(Span("k", "first", "first + row", f"const int64_t {inner} = k;"), 3)
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
            lines += [f"    {c}{field}_{cname(name)};\n" for c, field in views.fields(kind, debug)]
        elif kind.dtype.kind == "c":
            lines.append(f"    double re_{cname(name)}, im_{cname(name)};\n")
        else:
            wide = "double" if kind.dtype.kind == "f" else kind.dtype.ctype
            fill = 8 - (8 if kind.dtype.kind == "f" else kind.dtype.itemsize)
            lines.append(f"    {wide} {cname(name)};{f' char fill_{cname(name)}[{fill}];' if fill else ''}\n")
    if grid and debug:
        lines.append("    pa_runtime run;\n")
    return f"typedef struct {{\n{''.join(lines) or '    int64_t unused;'}}} {symbol}_slots;\n"


def unpack(name: str, kind: Any, debug: bool) -> str:
    """One parameter from the slots into the environment."""
    if isinstance(kind, ArrayType):
        pairs = views.fields(kind, debug)
        return "".join(f"    env.{name}.{field} = slots->{field}_{name};\n" for _, field in pairs)
    dtype = kind.dtype
    if dtype.kind == "c":
        part = "float" if dtype.itemsize == 8 else "double"
        return "".join(f"    env.{name}.{p} = ({part})slots->{p}_{name};\n" for p in ("re", "im"))
    if dtype.kind == "f" and dtype.itemsize == 2:
        return f"    env.{name} = pa_{dtype.suffix}_from_f64(slots->{name});\n"
    return f"    env.{name} = ({dtype.ctype})slots->{name};\n"
