"""C text of privatized sums: a block of iterations adds up numbers in memory of its own.

If a loop only adds to an array, atomically, a block may add its sums at its end: no iteration sees the difference.
Wrapping integers have the same sum in every order, and floats are added in any order already. Within the block no
atomic instruction is needed; those would wait for each other's cache lines, and for themselves: one on a float takes as
long as five additions even where no other thread runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from . import emit_views as views
from . import ir
from .emit_noalias import Arrays
from .emit_statements import Emitter, cname
from .iteration_cost import constant_trips
from .printer import Printer, function_text
from .summaries import assigned_in, has_any, names_in

MAX_BYTES = 1 << 18  # bytes of sums, which are to stay in the second-level cache
MIN_UPDATES = 4  # for each sum, which is cleared before and added up after them
_LARGER = (
    "pa_larger_blocks",
    function_text(
        "static inline int64_t pa_larger_blocks(const pa_runtime *rt, int64_t count, int64_t grain, int64_t least)",
        [
            "/* blocks of `least` iterations, as many on each thread, if there are so many */",
            "const int64_t each = (count - 1) / rt->threads + 1;",
            "if (grain >= least || each < least) return grain;",
            "return (each - 1) / (each / least) + 1;",
        ],
    ),
)


def privatized_arrays(code: Emitter, loop: ir.For) -> Arrays:
    """The arrays that the loop doesn't touch but by atomic additions whose old values aren't read; none where it uses
    views of an unknown array."""
    if not code.dialect.blocks or not has_any(loop.body, ir.Atomic):
        return []
    nodes: list[Any] = list(ir.walk(*loop.body))
    sums: list[Any] = [n.value for n in nodes if isinstance(n, ir.Evaluate) and _is_atomic_sum(n.value)]
    if not sums:
        return []
    used = {n.name: n.type for n in nodes if isinstance(n, ir.Local)}
    inside = {name for name, _ in code.kernel.params} | assigned_in(*loop.body)
    if any(isinstance(kind, ir.ArrayType) and name not in inside for name, kind in used.items()):
        return []
    sizes = [n for n in nodes if isinstance(n, ir.Size)]
    counted = Counter(n.array.name for n in (*sums, *sizes) if isinstance(n.array, ir.Local))
    every = Counter(n.name for n in nodes if isinstance(n, ir.Local))
    names = {n.array.name for n in sums if counted[n.array.name] == every[n.array.name]}
    return [
        (n, k)
        for n, k in code.kernel.params
        if n in names - assigned_in(*loop.body) and not k.strided and _has_own_sums(k.dtype)
    ]


def _has_own_sums(dtype: Any) -> bool:
    """Not of halves: a sum that each block rounds to them would be another one for each number of blocks."""
    return dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize > 2)


def _is_atomic_sum(value: Any) -> bool:
    return isinstance(value, ir.Atomic) and value.op in ("add", "sub") and isinstance(value.array, ir.Local)


def updates(nodes: Any) -> int:
    """Atomic additions of an iteration, at least where each branch is taken and each inner loop runs once."""
    count = 0
    for node in nodes:
        inner = updates(ir.children(node))
        if isinstance(node, ir.For) and node.loop is None:
            inner *= max(int(constant_trips(node) or 1), 1)
        count += inner + (isinstance(node, ir.Evaluate) and _is_atomic_sum(node.value))
    return count


def grain_of_sums(code: Emitter, loop: ir.For, grain: str) -> str:
    """Iterations of a block: those of other loops, or as many as make sums of its own worth their while."""
    sums = privatized_arrays(code, loop)
    if not sums:
        return grain
    count = " + ".join(views.element_count(kind, f"env.{cname(n)}") for n, kind in sums)
    least = f"({count}) * {MIN_UPDATES} / {updates(loop.body)} + 1"
    return f"{code.helper(_LARGER)}(rt, count, {grain}, {least})"


def used_arrays(kernel: ir.Function, loop: ir.For) -> Arrays:
    """The array parameters that a loop uses."""
    used = names_in(*loop.body)
    return [(n, k) for n, k in kernel.params if isinstance(k, ir.ArrayType) and n in used]


def privatized_block(out: Printer, arrays: Arrays, symbol: str, loop: ir.For, alone: bool, calls: list[str]) -> None:
    """A block with sums of its own, before the other versions; `calls` runs the iterations in the
    environment `local`. Where it isn't `alone`, other arrays may share the memory: `env->no_alias` tells."""
    names = [cname(n) for n, _ in arrays]
    rows = list(zip(names, (k for _, k in arrays), strict=True))
    for n, kind in rows:
        out.line(f"const int64_t sums_{n} = {views.element_count(kind, f'env->{n}')};")
    sizes = [f"(sums_{n} * (int64_t)sizeof({kind.dtype.ctype}) + 63) / 64 * 64" for n, kind in rows]
    out.line(f"const int64_t sums_size = {' + '.join(sizes)};")
    out.line("char *sums = 0;")
    few = f"({' + '.join(f'sums_{n}' for n in names)}) * {MIN_UPDATES} <= (end - begin) * {updates(loop.body)}"
    out.line(f"if ({'' if alone else 'env->no_alias && '}sums_size <= {MAX_BYTES} && {few})")
    out.line("    sums = (char *)env->rt->scratch(env->rt, (size_t)sums_size);")
    with out.block("if (sums)"):
        out.line(f"{symbol}_env local = *env;")
        out.line("__builtin_memset(sums, 0, (size_t)sums_size);")
        for (n, kind), size in zip(rows, sizes, strict=True):
            out.line(f"local.{n}.data = ({kind.dtype.ctype} *)sums;")
            out.line(f"sums += {size};")
        out.lines(calls)
        for n, kind in rows:
            add = f"pa_atomic_add_{kind.dtype.suffix}(env->{n}.data + k, local.{n}.data[k])"
            with out.block(f"for (int64_t k = 0; k < sums_{n}; ++k)"):
                out.line(f"if (local.{n}.data[k]) {add};")
        out.line("return;")
