"""C text of a `restrict` version of a loop, selected when its arguments don't alias.

Where an inner loop loads and stores, a compiler that must expect overlap repeats its loads. Other loops need no
version: the compiler compares the ranges itself (docs/design/language.md). A caller whose arguments never alias sets
the flag `NO_ALIAS`: the general version isn't compiled then."""

from __future__ import annotations

from typing import Any

from . import ir
from .emit_statements import Emitter, cname
from .emit_units import COLD, shared_function
from .printer import conjunction
from .summaries import assigned_in, has_any

NO_ALIAS = "-DPA_NO_ALIAS=1"
Arrays = list[tuple[str, ir.ArrayType]]


def noalias_arrays(code: Emitter, loop: ir.For) -> Arrays:
    """The parameters that the loop uses, if a no-alias version is worth its text, else none."""
    if not code.dialect.blocks or not has_any(loop.body, ir.For, ir.While):
        return []
    inner = (n for n in ir.walk(*loop.body) if isinstance(n, (ir.For, ir.While)))
    if not any(has_any((n,), ir.Store) and has_any((n,), ir.Load, ir.Invoke) for n in inner):
        return []
    used = {n.name: n.type for n in ir.walk(*loop.body) if isinstance(n, ir.Local)}
    inside = {name for name, _ in code.kernel.params} | assigned_in(*loop.body)
    if any(isinstance(kind, ir.ArrayType) and name not in inside for name, kind in used.items()):
        return []  # a view from before the loop, of an unknown array
    arrays = [(n, k) for n, k in code.kernel.params if isinstance(k, ir.ArrayType) and n in used]
    return arrays if len(arrays) > 1 and code.written & dict(arrays).keys() else []


def noalias_test(arrays: Arrays, written: frozenset[str]) -> list[str]:
    """Statements of the entry that set `env.no_alias`: no bytes of an array that is written are another's."""
    names = [name for name, _ in arrays]
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :] if a in written or b in written]
    ends = [(cname(a), cname(b)) for a, b in pairs]
    tests = [f"(high_{a} <= low_{b} || high_{b} <= low_{a})" for a, b in ends]
    lines = [line for name, kind in arrays for line in byte_range(cname(name), kind)]
    return [*lines, *conjunction("env.no_alias = ", tests, ";")]


def byte_range(name: str, kind: ir.ArrayType) -> list[str]:
    """The bytes between `low` and `high` hold all elements of the array; none if it is empty."""
    size = f"(int64_t)sizeof({kind.dtype.ctype})"
    begin = f"const char *low_{name} = (const char *){name}.data, *high_{name} = low_{name};"
    sizes = [f"{name}.n{axis}" for axis in range(kind.ndim)]
    if not kind.strided:
        return [begin, f"high_{name} += {' * '.join([*sizes, size])};"]
    steps = [(f"{name}.s{axis}", f"({n} - 1) * {name}.s{axis}") for axis, n in enumerate(sizes)]
    return [
        begin,
        f"if ({' && '.join(f'{n} > 0' for n in sizes)}) {{",
        f"    high_{name} += {size};",
        *(f"    if ({s} < 0) low_{name} += {by}; else high_{name} += {by};" for s, by in steps),
        "}",
    ]


def noalias_function(code: Emitter, number: Any, arrays: Arrays, versions: str, weight: float) -> None:
    """The function that runs a block for such arguments. It isn't inlined: GCC takes the word `restrict` of
    parameters, and forgets it with the function."""
    symbol, pointers = code.symbol, "".join(f", {k.dtype.ctype} *__restrict__ p_{cname(n)}" for n, k in arrays)
    head = f"void {symbol}_noalias{number}(const {symbol}_env *env, int64_t begin, int64_t end{pointers})"
    with shared_function(code, "__attribute__((noinline)) ", head, weight) as out:
        out.line(f"{symbol}_env local = *env;")
        if code.turn is not None and has_any(code.turn.body, ir.NoAlias):
            out.line("local.no_alias = true;")  # which the compiler knows then
        out.lines(f"local.{cname(n)}.data = p_{cname(n)};" for n, _ in arrays)
        out.line(f"{symbol}_body{number}(&local, begin, end{versions});")


def noalias_call(symbol: str, number: Any, arrays: Arrays, arguments: str, conditions: tuple[str, ...]) -> list[str]:
    """The call of that function where the conditions hold, before the other versions."""
    pointers = "".join(f", env->{cname(n)}.data" for n, _ in arrays)
    alone = "PA_NO_ALIAS || env->no_alias"
    test = " && ".join([f"({alone})", *conditions]) if conditions else alone
    return [f"if ({test}) {symbol}_noalias{number}({arguments}{pointers});", "else"]


def overlap_function(code: Emitter, number: Any, versions: str, weight: float) -> None:
    """The function that runs a block for arguments that may alias. It is compiled as code that hardly runs is, in a
    third of the time: where arrays do overlap, vectors are out of the question."""
    head = f"void {code.symbol}_overlap{number}(const {code.symbol}_env *env, int64_t begin, int64_t end)"
    with shared_function(code, "__attribute__((noinline, cold)) ", head, COLD * weight) as out:
        out.line(f"{code.symbol}_body{number}(env, begin, end{versions});")


def overlap_calls(symbol: str, number: Any, arguments: str, unit: bool) -> list[str]:
    """What comes behind `noalias_call`. Arrays whose last axes aren't dense don't overlap for that alone."""
    call = f"{symbol}_overlap{number}({arguments});"
    return [f"if (env->unit) {call}", f"else {symbol}_body{number}({arguments}, false);"] if unit else [call]
