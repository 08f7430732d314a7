"""C text of reshaped views: their strides, and the address of an element by its flat index."""

from __future__ import annotations

from . import emit_views as views
from . import ir
from .printer import function_text


def flat_accessor(kind: ir.ArrayType, function: str) -> tuple[str, str]:
    """(name, text) of the function that finds an element of a strided array by its number in C order."""
    name, last = views.flat_name(kind), kind.ndim - 1
    lines = [f"int64_t i{last} = number;"]
    for axis in range(last, 0, -1):
        lines.append(f"int64_t i{axis - 1} = pa_shape_over(i{axis}, v.n{axis});")
        lines.append(f"i{axis} -= i{axis - 1} * v.n{axis};")
    element = views.address(kind, "v", [f"i{axis}" for axis in range(kind.ndim)])
    head = f"{function} {kind.dtype.ctype} *{name}(const {views.view_name(kind)} v, int64_t number)"
    return name, function_text(head, [*lines, f"return {element};"])


def reshaper(e: ir.Reshape, function: str, debug: bool) -> tuple[str, str]:
    """(name, text) of the function that gives a view another shape; the axis `missing` gets what the others
    leave. One that hasn't as many elements is empty, which a checked one records."""
    kind, result, missing, checked = e.array.type, e.type, e.missing, e.site is not None
    layout = views.view_name(result).removeprefix(f"view_{kind.dtype.suffix}_")
    name = f"{'checked_' if checked else ''}reshape_{views.view_name(kind).removeprefix('view_')}_{layout}"
    name += "" if missing is None else f"_{missing}"
    count, length = result.ndim, max(result.ndim, 1)
    sizes = ["0" if k == missing else f"m{k}" for k in range(count)] or ["0"]
    params = [views.WHERE] * checked + [f"const {views.view_name(kind)} v"]
    params += [f"int64_t m{k}" for k in range(count) if k != missing]
    size = views.element_count(kind, "v")
    lines = [
        f"{views.view_name(result)} r;",
        f"int64_t m[{length}] = {{{', '.join(sizes)}}}, all = {size}, requested;",
        f"const bool sizes_fit = pa_shape_fits(m, {count}, {-1 if missing is None else missing}, all, &requested);",
    ]
    if checked:
        lines += [
            "if (!inside && !sizes_fit) {",
            "    pa_fail(at->rt, up, PA_FAIL_SHAPE, site, at->loop, at->tid, requested, all, v.offset, 0);",
            "    at->failed = true;",
            "}",
        ]
    else:
        lines.append("(void)sizes_fit;")
    lines.append("r.data = v.data;")
    lines += ["r.offset = v.offset;"] if debug else []
    lines += [f"r.n{k} = m[{k}];" for k in range(count)]
    lines += _strides(kind, result) if result.strided else []
    head = f"{function} {views.view_name(result)} {name}({', '.join(params)})"
    return name, function_text(head, [*lines, "return r;"])


def _strides(kind: ir.ArrayType, result: ir.ArrayType) -> list[str]:
    """Statements for the strides of a result: bytes where they fit, else numbers of elements."""
    count, axes = result.ndim, range(kind.ndim)
    length = max(kind.ndim, 1)
    sizes, steps = (", ".join(f"v.{c}{k}" for k in axes) or "0" for c in "ns")
    lines = [
        f"int64_t n[{length}] = {{{sizes}}}, s[{length}] = {{{steps}}}, t[{max(count, 1)}] = {{0}};",
        f"const bool fits = !sizes_fit || pa_shape_strides(n, s, {kind.ndim}, m, t, {count});",
    ]
    if result.reshape_of is None or result.reshape_of == kind.reshape_of:  # of one axis, which always fits
        lines.append("(void)fits;")
        lines += ["r.of = v.of;", "r.at = v.at;", "r.fits = v.fits;"] if result.reshape_of else []
    else:
        fits = "fits && v.fits" if kind.reshape_of else "fits"
        lines += [f"r.fits = {fits};", "r.of = v;", "r.at = 0;"]
        lines.append(f"for (int64_t k = {count} - 1, step = 1; !r.fits && k >= 0; step *= m[k--]) t[k] = step;")
    return [*lines, *(f"r.s{k} = t[{k}];" for k in range(count))]
