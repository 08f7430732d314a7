"""A grid's loop over several axes whose arrays are dense along the last one: a thread takes a vector of
16 bytes of a line. That is told while the kernel runs, from strides and addresses."""

from __future__ import annotations

from typing import Any

from . import emit_views as views
from .emit_loop import bounds
from .emit_statements import Code, cname
from .emit_vectorized import body, own_loads, target
from .ir import For, Function, Store

_MOST = 32  # bytes of an array that a thread takes at once


def line_loop(code: Code, kernel: Function, loop: For, store: Store) -> str:
    """Text that ends the kernel where it has run the loop; none where vectors have no two elements."""
    kinds, last = dict(kernel.params), loop.variables[-1]
    loads = own_loads(code, kernel, loop)
    filled = target(store)
    wide = {p: kinds[p[0]] for p in (filled, *loads) if last in p[1]}
    sizes = [kind.dtype.itemsize for kind in wide.values()]
    share = min(16 // min(*sizes, 16), _MOST // max(sizes))
    if share < 2 or code.debug:
        return ""
    held, text = dict[Any, str](), ""
    pad = "            "
    for number, (place, kind) in enumerate(loads.items()):
        element, at = kind.dtype.ctype, views.address(kind, cname(place[0]), [cname(v) for v in place[1]])
        vector = f"pa_vector<{element}, {share}>"
        if place in wide:
            text += f"{pad}const {vector} line{number} = *(const {vector} *)({at});\n"
        else:
            text += f"{pad}const {element} line{number} = *({at});\n"
        held[place] = f"line{number}.v[k]" if place in wide else f"line{number}"
    return _frame(code, kernel, loop, filled, share, _tests(wide, last, share), text, held)


def _tests(wide: dict[Any, Any], last: str, share: int) -> list[str]:
    """What makes all lines dense and aligned."""
    tests = []
    for (name, place), kind in wide.items():
        size, array = kind.dtype.itemsize, cname(name)
        steps = {v: f"({views.stride(kind, array, n)})" for n, v in enumerate(place)}
        parts = " | ".join(
            [f"(uint64_t){array}.data", *(f"(uint64_t){s}" for v, s in steps.items() if v != last)]
        )
        tests += [f"{steps[last]} == {size}", f"(({parts}) & {min(size * share, 16) - 1}) == 0"]
    return tests


def _frame(
    code: Code, kernel: Function, loop: For, filled: Any, share: int, tests: list[str], loads: str, held: Any
) -> str:
    fields, names = [field for field, _ in bounds(loop)], [cname(v) for v in loop.variables]
    kind = dict(kernel.params)[filled[0]]
    vector = f"pa_vector<{kind.dtype.ctype}, {share}>"
    tests = [f"{fields[-1]} % {share} == 0", *dict.fromkeys(tests)]
    joined = "\n        && ".join(tests)
    place = f"            const int64_t line = pa_split(&rest, across, vectors) * {share};\n"
    for name, field in reversed(list(zip(names[1:-1], fields[1:-1], strict=True))):
        place += f"            const int64_t {name} = pa_split(&rest, {field}, vectors);\n"
    place += f"            const int64_t {names[0]} = rest;\n"
    at = views.address(kind, cname(filled[0]), [cname(v) for v in filled[1]])
    inner = body(code, kernel, loop, None, held)
    return f"""\
    if ({joined}) {{
        const int64_t across = {fields[-1]} / {share}, vectors = count / {share};
        for (int64_t t = pa_thread(); t < vectors; t += pa_threads()) {{
            int64_t rest = t;
{place}            {vector} result;
            {kind.dtype.ctype} *value = result.v;
            {{
            const int64_t {names[-1]} = line;
{loads}            #pragma unroll
            for (int k = 0; k < {share}; ++k) {{
                const int64_t {names[-1]} = line + k;
{inner}            }}
            *({vector} *)({at}) = result;
            }}
        }}
        return;
    }}
"""
