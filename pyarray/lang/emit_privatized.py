"""C text of privatized sums: a block of iterations adds up integers in memory of its own.

If a loop only adds to an array, atomically, a block may add its sums at its end: no iteration sees the
difference, and wrapping integers have the same sum in every order. Within the block no atomic instruction is
needed; those would wait for each other's cache lines."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .emit_noalias import Arrays
from .emit_statements import Emitter, cname
from .ir import ArrayType, Atomic, Evaluate, For, Function, Local, Size, assigned, walk

MAX_BYTES = 1 << 15  # bytes of sums, which are to stay in the first-level cache
MIN_ITERATIONS = 8  # iterations for each sum that is cleared before and added up after them


def privatized_arrays(code: Emitter, kernel: Function, loop: For) -> Arrays:
    """The arrays of integers that the loop doesn't touch but by atomic additions whose old values aren't
    read; none where it uses views of an unknown array."""
    if code.debug or not code.dialect.blocks:
        return []
    nodes: list[Any] = [n for s in loop.body for n in walk(s)]
    used = {n.name: n.type for n in nodes if isinstance(n, Local)}
    inside = {name for name, _ in kernel.params} | assigned(*loop.body)
    if any(isinstance(kind, ArrayType) and name not in inside for name, kind in used.items()):
        return []
    sums: list[Any] = [n.value for n in nodes if isinstance(n, Evaluate) and _is_atomic_sum(n.value)]
    sizes = [n for n in nodes if isinstance(n, Size)]
    known = Counter(n.array.name for n in (*sums, *sizes) if isinstance(n.array, Local))
    every = Counter(n.name for n in nodes if isinstance(n, Local))
    names = {n.array.name for n in sums if known[n.array.name] == every[n.array.name]}
    return [
        (n, k)
        for n, k in kernel.params
        if n in names - assigned(*loop.body) and not k.strided and k.dtype.kind in "iu"
    ]


def _is_atomic_sum(value: Any) -> bool:
    return isinstance(value, Atomic) and value.op in ("add", "sub") and isinstance(value.array, Local)


def used_arrays(kernel: Function, loop: For) -> Arrays:
    """The array parameters that a loop uses."""
    used = {n.name for s in loop.body for n in walk(s) if isinstance(n, Local)}
    return [(n, k) for n, k in kernel.params if isinstance(k, ArrayType) and n in used]


def privatized_block(arrays: Arrays, symbol: str, alone: bool, calls: str) -> str:
    """The text of a block with sums of its own, before the other versions; `calls` runs the iterations in the
    environment `local`. Where it isn't `alone`, other arrays may share the memory: `env->no_alias` tells."""
    names = [cname(n) for n, _ in arrays]
    counts = [
        " * ".join([f"env->{n}.n{k}" for k in range(t.ndim)]) or "1"
        for n, (_, t) in zip(names, arrays, strict=True)
    ]
    sizes = [f"(int64_t)sizeof({k.dtype.ctype})" for _, k in arrays]
    text = "".join(f"    const int64_t sums_{n} = {count};\n" for n, count in zip(names, counts, strict=True))
    total = " + ".join(f"(sums_{n} * {size} + 63) / 64 * 64" for n, size in zip(names, sizes, strict=True))
    text += f"    const int64_t sums_size = {total};\n    char *sums = 0;\n"
    few = " && ".join(f"sums_{n} <= (end - begin) / {MIN_ITERATIONS}" for n in names)
    noalias = "" if alone else "env->no_alias && "
    text += f"    if ({noalias}{few} && sums_size <= {MAX_BYTES})\n"
    text += "        sums = (char *)env->rt->scratch(env->rt, (size_t)sums_size);\n"
    text += f"    if (sums) {{\n        {symbol}_env local = *env;\n"
    text += "        __builtin_memset(sums, 0, (size_t)sums_size);\n"
    for n, size, (_, kind) in zip(names, sizes, arrays, strict=True):
        text += f"        local.{n}.data = ({kind.dtype.ctype} *)sums;\n"
        text += f"        sums += (sums_{n} * {size} + 63) / 64 * 64;\n"
    text += "    " + calls.replace("\n", "\n    ") + "\n"
    for n, (_, kind) in zip(names, arrays, strict=True):
        text += f"        for (int64_t k = 0; k < sums_{n}; ++k) {{\n"
        add = f"pa_atomic_add_{kind.dtype.suffix}(env->{n}.data + k, local.{n}.data[k])"
        text += f"            if (local.{n}.data[k]) {add};\n        }}\n"
    return text + "        return;\n    }\n"
