"""Typed tree → C text: slots, environment, helper functions, parallel loops, the entry.

The text holds no name, line or path of the user's file: those live in the site table, so that a cached artifact stays true when
lines move.
"""

from __future__ import annotations

import re
from typing import Any

from . import emit_views as views
from .cost import cost
from .dialect import Dialect
from .emit_code import Code, cname, ctype
from .ir import ArrayType, Assign, Const, For, Function, Invoke, Local, Range, Size, Stmt, Tree, walk

_AT = """\
/* where a thread is, for the failure record; a failed access lands in `scrap` */
typedef struct { pa_runtime *rt; int32_t loop; int64_t tid; pa_c128 scrap; } pa_at;
"""
_HEADERS = (  # header, and what its functions end with; the order is that of their dependence
    ("pa_check.h", r"pa_(check|slice)_\w+"),
    ("pa_int.h", r"pa_\w+_[iu](8|16|32|64)\b|pa_\w+_b\b"),
    ("pa_real.h", r"pa_\w+_f(32|64)\b|pa_cast_\w+"),
    ("pa_half.h", r"pa_\w*b?f16\w*"),
    ("pa_complex.h", r"pa_\w+_c(64|128)\b|pa_\w+_from_c\w+|pa_make_\w+|pa_cast_c(64|128)_\w+"),
    ("pa_atomic.h", r"pa_atomic_\w+"),
)


def emit(tree: Tree, dialect: Dialect, debug: bool) -> tuple[str, str]:
    """(text, symbol of the entry)."""
    code = Code(dialect, debug)
    kernel = tree.kernel
    symbol = f"kernel_{kernel.symbol}"
    functions = {f.symbol: f for f in tree.functions}
    helpers = "\n".join(_function(code, f) for f in tree.functions)
    for _, kind in (*kernel.params, *kernel.variables):
        code.use(kind)
    outer = _outer_variables(kernel)
    loops = "\n".join(
        _loop(code, kernel, s, symbol, outer, functions)
        for s in kernel.body
        if isinstance(s, For) and s.loop is not None
    )
    entry = _entry(code, kernel, symbol, outer, functions)
    parts = [
        "".join(code.structs.values()),
        _slots(kernel, symbol, debug),
        _environment(kernel, symbol, outer),
        "\n".join(code.helpers.values()),
        helpers,
        loops,
        entry,
    ]
    body = "\n".join(part for part in parts if part)
    includes = "".join(
        f'#include "{name}"\n' for name, pattern in _HEADERS if re.search(rf"\b(?:{pattern})", body)
    )
    if debug and "pa_check.h" not in includes:
        includes = '#include "pa_check.h"\n' + includes
    return f'#include "pa_base.h"\n{includes}\n{dialect.prelude}\n{_AT if debug else ""}{body}', symbol


def _signature(code: Code, function: Function) -> str:
    hidden = ["pa_at *at", "const pa_frame *up"] if code.debug else []
    params = [*hidden, *(f"{ctype(kind)} {cname(name)}" for name, kind in function.params)]
    return f"{code.dialect.function} {ctype(function.result)} func_{function.symbol}({', '.join(params) or 'void'})"


def _function(code: Code, function: Function) -> str:
    for _, kind in (*function.params, *function.variables):
        code.use(kind)
    body = code.block(function.body, 1)
    return f"{_signature(code, function)}\n{{\n{_frames(code, function.body, 'up')}{_declarations(function.variables, '    ')}{body}}}\n"


def _frames(code: Code, body: Any, up: str) -> str:
    """One link of the call stack per call in the body."""
    if not code.debug:
        return ""
    calls = [n.site for s in body for n in walk(s) if isinstance(n, Invoke)]
    return "".join(f"    pa_frame call{site} = {{{up}, {site}}};\n" for site in calls)


def _declarations(variables: Any, pad: str) -> str:
    lines = []
    for name, kind in variables:
        initial = (
            "" if isinstance(kind, ArrayType) else " = {0}" if kind.dtype.ctype.startswith("pa_") else " = 0"
        )
        lines.append(f"{pad}{ctype(kind)} {cname(name)}{initial};\n")
    return "".join(lines)


def _slots(kernel: Function, symbol: str, debug: bool) -> str:
    """The packed arguments, 8 bytes each, in the order in which the host writes them."""
    lines = []
    for name, kind in kernel.params:
        if isinstance(kind, ArrayType):
            lines += [f"    {c}{cname(name)}_{field};\n" for c, field in views.fields(kind, debug)]
        elif kind.dtype.kind == "c":
            lines.append(f"    double {cname(name)}_re, {cname(name)}_im;\n")
        else:
            wide = "double" if kind.dtype.kind == "f" else kind.dtype.ctype
            fill = 8 - (8 if kind.dtype.kind == "f" else kind.dtype.itemsize)
            lines.append(f"    {wide} {cname(name)};{f' char {cname(name)}_fill[{fill}];' if fill else ''}\n")
    return f"typedef struct {{\n{''.join(lines) or '    int64_t unused;'}}} {symbol}_slots;\n"


def _outer_variables(kernel: Function) -> tuple[tuple[str, Any], ...]:
    """Variables assigned outside the parallel loops: these see their last value."""
    names = {n.name for s in kernel.body if not _is_loop(s) for n in walk(s) if isinstance(n, Assign)}
    return tuple((n, t) for n, t in kernel.variables if n in names)


def _is_loop(statement: Stmt) -> bool:
    return isinstance(statement, For) and statement.loop is not None


def _strided(kernel: Function) -> list[tuple[str, ArrayType]]:
    return [(n, k) for n, k in kernel.params if isinstance(k, ArrayType) and k.strided and k.ndim]


def _environment(kernel: Function, symbol: str, outer: tuple[tuple[str, Any], ...]) -> str:
    lines = [f"    {ctype(kind)} {cname(name)};\n" for name, kind in (*kernel.params, *outer)]
    if _strided(kernel):
        lines.append("    bool unit; /* every strided array has neighbours along its last axis */\n")
    return f"typedef struct {{\n    pa_runtime *rt;\n{''.join(lines)}}} {symbol}_env;\n"


def _loop(
    code: Code,
    kernel: Function,
    loop: For,
    symbol: str,
    outer: tuple[tuple[str, Any], ...],
    functions: dict[str, Function],
) -> str:
    """A parallel loop: its body over a block of iterations, and the frame that the runtime calls.

    With strided arrays the body is compiled twice, once for the common case that last axes are dense, which vectorises.
    """
    strided = _strided(kernel)
    used = {n.name for n in walk(loop) if isinstance(n, Local)}
    inner = {n.name for n in walk(loop) if isinstance(n, Assign)}
    text = f"{code.dialect.body} void {symbol}_body{loop.loop}(const {symbol}_env *env, int64_t begin, int64_t end"
    text += (", const bool unit" if strided else "") + ")\n{\n"
    if code.debug:
        text += f"    pa_at here = {{env->rt, {loop.loop}, 0, {{0, 0}}}};\n    pa_at *at = &here;\n    const pa_frame *up = 0;\n"
        text += _frames(code, (loop,), "0")
    for name, kind in (*kernel.params, *outer):
        if name in used:
            dense = (name, kind) in strided
            text += f"    {'' if dense else 'const '}{ctype(kind)} {cname(name)} = env->{cname(name)};\n"
            if dense:
                text += (
                    f"    if (unit) {cname(name)}.s{kind.ndim - 1} = (int64_t)sizeof({kind.dtype.ctype});\n"
                )
    text += _declarations(((n, t) for n, t in kernel.variables if n in inner), "    ")
    text += _single(code, loop) if len(loop.ranges) == 1 else _product(code, loop)
    call = f"{symbol}_body{loop.loop}(env, begin, end"
    choose = f"    if (env->unit) {call}, true);\n    else {call}, false);" if strided else f"    {call});"
    return text + "}\n" + code.dialect.loop.format(symbol=symbol, number=loop.loop, choose=choose)


def _single(code: Code, loop: For) -> str:
    name, reach = cname(loop.variables[0]), loop.ranges[0]
    first = code.expr(reach.start) if reach.start is not None else None
    step = code.expr(reach.step) if reach.step is not None else None
    value = "t" if step is None else f"t * {step}"
    value = value if first is None else f"{first} + {value}"
    at = "        at->tid = t;\n" if code.debug else ""
    text = f"    for (int64_t t = begin; t < end; ++t) {{\n{at}        int64_t {name} = {value};\n"
    return text + code.block(loop.body, 2) + "    }\n"


def _product(code: Code, loop: For) -> str:
    """Several loop variables: the block's first position is taken apart once, then rows are walked like an odometer."""
    names, last = [cname(v) for v in loop.variables], len(loop.variables) - 1
    text = "".join(
        f"    const int64_t {n}_size = {code.expr(r.stop)};\n"
        for n, r in zip(names, loop.ranges, strict=True)
    )  # type: ignore[arg-type]
    text += "    int64_t rest = begin;\n"
    for n in reversed(names):
        text += f"    int64_t {n}_at = rest % {n}_size;\n    rest /= {n}_size;\n"
    inner = names[last]
    text += f"    for (int64_t t = begin; t < end;) {{\n        const int64_t first = {inner}_at;\n"
    text += f"        const int64_t row = {inner}_size - first < end - t ? {inner}_size - first : end - t;\n"
    text += "".join(f"        const int64_t {n}_row = {n}_at;\n" for n in names[:last])
    text += f"        for (int64_t k = first; k < first + row; ++k) {{\n            int64_t {inner} = k;\n"
    text += "".join(f"            int64_t {n} = {n}_row;\n" for n in names[:last])
    text += "            at->tid = t + (k - first);\n" if code.debug else ""
    text += code.block(loop.body, 3) + f"        }}\n        t += row;\n        {inner}_at = 0;\n"
    carry = ""
    for depth, n in enumerate(reversed(names[:last])):
        pad = "        " + "    " * depth
        carry += f"{pad}if (++{n}_at == {n}_size) {{\n{pad}    {n}_at = 0;\n"
    for depth in reversed(range(last)):
        carry += "        " + "    " * depth + "}\n"
    return text + carry + "    }\n"


def _entry(
    code: Code,
    kernel: Function,
    symbol: str,
    outer: tuple[tuple[str, Any], ...],
    functions: dict[str, Function],
) -> str:
    text = "    env.rt = rt;\n"
    for name, kind in kernel.params:
        text += _unpack(cname(name), kind, code.debug)
    for name, kind in kernel.params:
        text += f"    {ctype(kind)} {cname(name)} = env.{cname(name)};\n"
    text += "".join(f"    (void){cname(name)};\n" for name, _ in kernel.params)
    if strided := _strided(kernel):
        tests = (f"{cname(n)}.s{k.ndim - 1} == (int64_t)sizeof({k.dtype.ctype})" for n, k in strided)
        text += f"    env.unit = {' && '.join(tests)};\n"
    if code.debug:
        text += "    pa_at here = {rt, -1, -1, {0, 0}};\n    pa_at *at = &here;\n    const pa_frame *up = 0;\n    (void)at; (void)up;\n"
        text += _frames(code, [s for s in kernel.body if not _is_loop(s)], "0")
    text += _declarations(outer, "    ")
    assigned: set[str] = set()
    for statement in kernel.body:
        if isinstance(statement, For) and statement.loop is not None:
            text += "".join(f"    env.{cname(n)} = {cname(n)};\n" for n, _ in outer if n in assigned)
            text += "".join(f"    env.{cname(n)} = {cname(n)};\n" for n, _ in kernel.params if n in assigned)
            count = " * ".join(_count(code, r) for r in statement.ranges)
            weight = cost(statement, functions)
            text += code.dialect.start.format(symbol=symbol, number=statement.loop, count=count, cost=weight)
            continue
        text += code.statement(statement, 1)
        assigned |= {n.name for n in walk(statement) if isinstance(n, Assign)}
    return code.dialect.entry.format(symbol=symbol, body=text)


def _unpack(name: str, kind: Any, debug: bool) -> str:
    if isinstance(kind, ArrayType):
        return "".join(
            f"    env.{name}.{field} = slots->{name}_{field};\n" for _, field in views.fields(kind, debug)
        )
    dtype = kind.dtype
    if dtype.kind == "c":
        part = "float" if dtype.itemsize == 8 else "double"
        return (
            f"    env.{name}.re = ({part})slots->{name}_re;\n    env.{name}.im = ({part})slots->{name}_im;\n"
        )
    if dtype.kind == "f" and dtype.itemsize == 2:
        return f"    env.{name} = pa_{dtype.suffix}_from_f64(slots->{name});\n"
    return f"    env.{name} = ({dtype.ctype})slots->{name};\n"


def _count(code: Code, reach: Range) -> str:
    if reach.start is None and reach.step is None and isinstance(reach.stop, (Size, Const)):
        return code.expr(reach.stop)
    start = code.expr(reach.start) if reach.start is not None else "0"
    step = code.expr(reach.step) if reach.step is not None else "1"
    return f"pa_range_len({start}, {code.expr(reach.stop)}, {step})"  # type: ignore[arg-type]
