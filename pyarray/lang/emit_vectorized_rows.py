"""GPU text of an elementwise loop over several axes, in vectors of 16 bytes along the last one.

Strides and addresses decide when the kernel runs whether all rows are dense and aligned."""

from __future__ import annotations

from typing import Any

from . import emit_views as views
from .emit_loop import bound_fields
from .emit_statements import Emitter, cname
from .emit_vectorized import body_text, stored_element, unconditional_loads
from .ir import For, Function, Store

_MAX_BYTES = 32  # bytes of an array that a thread takes at once


def vectorized_rows_loop(code: Emitter, kernel: Function, loop: For, store: Store) -> str:
    """Text that ends the kernel where it has run the loop; none where vectors have no two elements."""
    kinds, last = dict(kernel.params), loop.variables[-1]
    loads = unconditional_loads(code, kernel, loop)
    stored = stored_element(store)
    vector = {p: kinds[p[0]] for p in (stored, *loads) if last in p[1]}
    sizes = [kind.dtype.itemsize for kind in vector.values()]
    width = min(16 // min(*sizes, 16), _MAX_BYTES // max(sizes))
    if width < 2 or code.debug:
        return ""
    registers, text = dict[Any, str](), ""
    pad = "            "
    for number, (ref, kind) in enumerate(loads.items()):
        element, at = kind.dtype.ctype, views.address(kind, cname(ref[0]), [cname(v) for v in ref[1]])
        line = f"pa_vector<{element}, {width}>"
        if ref in vector:
            text += f"{pad}const {line} line{number} = *(const {line} *)({at});\n"
        else:
            text += f"{pad}const {element} line{number} = *({at});\n"
        registers[ref] = f"line{number}.v[k]" if ref in vector else f"line{number}"
    return _row_loop(code, kernel, loop, stored, width, _row_tests(vector, last, width), text, registers)


def _row_tests(vector: dict[Any, Any], last: str, width: int) -> list[str]:
    """What makes all lines dense and aligned."""
    tests = []
    for (name, ref), kind in vector.items():
        size, array = kind.dtype.itemsize, cname(name)
        steps = {v: f"({views.stride(kind, array, n)})" for n, v in enumerate(ref)}
        parts = " | ".join(
            [f"(uint64_t){array}.data", *(f"(uint64_t){s}" for v, s in steps.items() if v != last)]
        )
        tests += [f"{steps[last]} == {size}", f"(({parts}) & {min(size * width, 16) - 1}) == 0"]
    return tests


def _row_loop(
    code: Emitter,
    kernel: Function,
    loop: For,
    stored: Any,
    width: int,
    tests: list[str],
    loads: str,
    registers: Any,
) -> str:
    fields, names = [field for field, _ in bound_fields(loop)], [cname(v) for v in loop.variables]
    kind = dict(kernel.params)[stored[0]]
    vector = f"pa_vector<{kind.dtype.ctype}, {width}>"
    tests = [f"{fields[-1]} % {width} == 0", *dict.fromkeys(tests)]
    joined = "\n        && ".join(tests)
    line_and_digits = f"            const int64_t line = pa_split(&rest, across, vectors) * {width};\n"
    for name, field in reversed(list(zip(names[1:-1], fields[1:-1], strict=True))):
        line_and_digits += f"            const int64_t {name} = pa_split(&rest, {field}, vectors);\n"
    line_and_digits += f"            const int64_t {names[0]} = rest;\n"
    at = views.address(kind, cname(stored[0]), [cname(v) for v in stored[1]])
    inner = body_text(code, kernel, loop, None, registers)
    return f"""\
    if ({joined}) {{
        const int64_t across = {fields[-1]} / {width}, vectors = count / {width};
        for (int64_t t = pa_thread(); t < vectors; t += pa_threads()) {{
            int64_t rest = t;
{line_and_digits}            {vector} result;
            {kind.dtype.ctype} *value = result.v;
            {{
            const int64_t {names[-1]} = line;
{loads}            #pragma unroll
            for (int k = 0; k < {width}; ++k) {{
                const int64_t {names[-1]} = line + k;
{inner}            }}
            *({vector} *)({at}) = result;
            }}
        }}
        return;
    }}
"""
