"""GPU text of an elementwise loop over several axes, in vectors of 16 bytes along the last one.

Strides and addresses decide when the kernel runs whether all rows are dense and aligned."""

from __future__ import annotations

from typing import Any

from . import emit_views as views
from . import ir
from .emit_loop import bound_fields
from .emit_statements import Emitter, cname
from .emit_vectorized import stored_element, unconditional_loads, write_body
from .printer import conjunction

_MAX_BYTES = 32  # bytes of an array that a thread takes at once


def vectorized_rows_loop(code: Emitter, loop: ir.For, store: ir.Store) -> int:
    """Prints what ends the kernel where it has run the loop, and returns the iterations of a vector; prints nothing
    where these would be fewer than two."""
    kinds, last = dict(code.kernel.params), loop.variables[-1]
    loads = unconditional_loads(code, loop)
    stored = stored_element(store)
    vector = {p: kinds[p[0]] for p in (stored, *loads) if last in p[1]}
    sizes = [kind.dtype.itemsize for kind in vector.values()]
    width = min(16 // min(*sizes, 16), _MAX_BYTES // max(sizes))
    if width < 2 or code.debug:
        return 1
    registers, lines = dict[Any, str](), list[str]()
    for number, (ref, kind) in enumerate(loads.items()):
        at = views.address(kind, cname(ref[0]), [cname(v) for v in ref[1]])
        element = f"pa_vector<{kind.dtype.ctype}, {width}>" if ref in vector else kind.dtype.ctype
        access = f"*(const {element} *)({at})" if ref in vector else f"*({at})"
        lines.append(f"const {element} line{number} = {access};")
        registers[ref] = f"line{number}.v[k]" if ref in vector else f"line{number}"
    _row_loop(code, loop, stored, width, _row_tests(vector, last, width), lines, registers)
    return width


def _row_tests(vector: dict[Any, Any], last: str, width: int) -> list[str]:
    """What makes all lines dense and aligned."""
    tests = []
    for (name, ref), kind in vector.items():
        size, array = kind.dtype.itemsize, cname(name)
        steps = {v: f"({views.stride(kind, array, n)})" for n, v in enumerate(ref)}
        parts = " | ".join([f"(uint64_t){array}.data", *(f"(uint64_t){s}" for v, s in steps.items() if v != last)])
        tests += [f"{steps[last]} == {size}", f"(({parts}) & {min(size * width, 16) - 1}) == 0"]
    return tests


def _row_loop(
    code: Emitter, loop: ir.For, stored: Any, width: int, tests: list[str], loads: list[str], registers: Any
) -> None:
    fields, names = [field for field, _ in bound_fields(loop)], [cname(v) for v in loop.variables]
    kind, out = dict(code.kernel.params)[stored[0]], code.out
    vector = f"pa_vector<{kind.dtype.ctype}, {width}>"
    out.lines(conjunction("if (", [f"{fields[-1]} % {width} == 0", *dict.fromkeys(tests)], ") {"))
    with out.inside():
        out.line(f"const int64_t across = {fields[-1]} / {width}, vectors = count / {width};")
        with out.block("for (int64_t t = pa_thread(); t < vectors; t += pa_threads())"):
            out.line("int64_t rest = t;")
            out.line(f"const int64_t line = pa_split(&rest, across, vectors) * {width};")
            for name, field in reversed(list(zip(names[1:-1], fields[1:-1], strict=True))):
                out.line(f"const int64_t {name} = pa_split(&rest, {field}, vectors);")
            out.line(f"const int64_t {names[0]} = rest;")
            out.line(f"{vector} result;")
            out.line(f"{kind.dtype.ctype} *value = result.v;")
            with out.block():
                out.line(f"const int64_t {names[-1]} = line;")
                out.lines(loads)
                out.line("#pragma unroll")
                with out.block(f"for (int k = 0; k < {width}; ++k)"):
                    out.line(f"const int64_t {names[-1]} = line + k;")
                    write_body(code, loop, None, registers)
                at = views.address(kind, cname(stored[0]), [cname(v) for v in stored[1]])
                out.line(f"*({vector} *)({at}) = result;")
        out.line("return;")
