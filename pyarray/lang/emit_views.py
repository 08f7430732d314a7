"""C text of views: structs, slots, element access, slices and sub-views."""

from __future__ import annotations

from typing import Any

from . import ir
from .printer import conjunction, function_text
from .types import lasting_sizes


def view_name(kind: ir.ArrayType) -> str:
    return f"view_{kind.dtype.suffix}_{_layout(kind)}"


def _layout(kind: ir.ArrayType) -> str:
    name = f"{kind.ndim}{'s' if kind.strided else 'c'}"
    return name if kind.reshape_of is None else f"{name}_of_{_layout(kind.reshape_of)}"


def struct_fields(kind: ir.ArrayType, debug: bool) -> list[tuple[str, str]]:
    """(C type, name) of the struct, which are also the slots of a parameter, in order."""
    pairs = [(f"{kind.dtype.ctype} *", "data")]
    if debug:
        pairs.append(("int64_t ", "offset"))
    pairs += [("int64_t ", f"n{axis}") for axis in range(kind.ndim)]
    if kind.strided:
        pairs += [("int64_t ", f"s{axis}") for axis in range(kind.ndim)]
    if kind.reshape_of is not None:  # where the strides don't fit they count elements of `of`, from `at` on
        pairs += [(f"{view_name(kind.reshape_of)} ", "of"), ("int64_t ", "at"), ("bool ", "fits")]
    return pairs


def struct(kind: ir.ArrayType, debug: bool) -> str:
    body = " ".join(f"{ctype}{name};" for ctype, name in struct_fields(kind, debug))
    return f"typedef struct {{ {body} }} {view_name(kind)};\n"


def constant_sizes(kind: Any, view: str, debug: bool) -> list[str]:
    """Statements that tell the compiler which sizes of a view are constant."""
    sizes = () if not isinstance(kind, ir.ArrayType) else lasting_sizes(kind) if debug else kind.sizes
    return [f"{view}.n{axis} = {n};" for axis, n in enumerate(sizes) if n is not None]


def stride(kind: ir.ArrayType, view: str, axis: int) -> str:
    """Bytes between neighbours along an axis."""
    if kind.strided:
        return f"{view}.s{axis}"
    sizes = [f"{view}.n{k}" for k in range(axis + 1, kind.ndim)]
    return " * ".join([*sizes, f"(int64_t)sizeof({kind.dtype.ctype})"])


def address(kind: ir.ArrayType, view: str, index: list[str]) -> str:
    """`&view[index]`, without a check."""
    if not index and kind.reshape_of is None:
        return f"{view}.data"
    if not kind.strided:
        position = index[0]
        for axis, i in enumerate(index[1:], 1):
            position = f"({position}) * {view}.n{axis} + {i}"
        return f"{view}.data + ({position})"
    offset = " + ".join(f"{i} * {view}.s{axis}" for axis, i in enumerate(index)) or "0"
    pointer = f"({kind.dtype.ctype} *)((char *){view}.data + ({offset}))"
    if kind.reshape_of is None:
        return pointer
    return f"({view}.fits ? {pointer} : {flat_name(kind.reshape_of)}({view}.of, {view}.at + ({offset})))"


def flat_name(kind: ir.ArrayType) -> str:
    """The function that finds an element by its number in C order (`emit_reshape`)."""
    return f"numbered_{view_name(kind).removeprefix('view_')}"


def element(kind: ir.ArrayType, view: str, index: list[str]) -> str:
    """`view[index]` as an lvalue, without a check."""
    if not index:
        return f"{view}.data[0]"
    if kind.strided:
        return f"*({address(kind, view, index)})"
    return f"{view}.data[{address(kind, view, index).removeprefix(f'{view}.data + ')[1:-1]}]"


def element_count(kind: ir.ArrayType, view: str) -> str:
    return " * ".join(f"{view}.n{axis}" for axis in range(kind.ndim)) or "1"


WHERE = "const bool inside, pa_at *at, const pa_frame *up, int32_t site"


def check_index(kind: ir.ArrayType, axis: int) -> str:
    where = f"at->rt, up, site + {axis}, at->loop, at->tid"
    return f"pa_check_index({where}, i{axis}, v.n{axis}, v.offset, {element_count(kind, 'v')})"


def accessor(kind: ir.ArrayType, function: str, checked: bool) -> tuple[str, str]:
    """(name, text) of the function that returns an element's address; a checked one returns the scrap element
    when it is outside, and is told by `inside` when that can't be."""
    name = f"{'checked' if checked else 'at'}_{view_name(kind).removeprefix('view_')}"
    index = [f"i{axis}" for axis in range(kind.ndim)]
    params = [f"const {view_name(kind)} v", *(f"int64_t {i}" for i in index)]
    ctype = kind.dtype.ctype
    if not checked:
        head = f"{function} {ctype} *{name}({', '.join(params)})"
        return name, function_text(head, [f"return {address(kind, 'v', index)};"])
    tests = [check_index(kind, axis) for axis in range(kind.ndim)]
    start, end = ("(", ")") if kind.ndim > 1 else ("", "")
    head = f"{function} {ctype} *{name}({WHERE}, {', '.join(params)})"
    scrap = f"(at->failed = true, ({ctype} *)PA_SCRAP(at))"
    lines = conjunction(f"return inside || {start}", tests, end)
    return name, function_text(head, [*lines, f"    ? {address(kind, 'v', index)} : {scrap};"])


def subview(e: ir.SubView, function: str, debug: bool) -> tuple[str, str]:
    """(name, text) of the strict sub-range of a 1-D view; a checked one that is outside is empty."""
    kind, checked = e.type, e.site is not None
    name = f"{'checked_' if checked else ''}subview_{view_name(kind).removeprefix('view_')}"
    extra = f"{WHERE}, " if checked else ""
    lines = []
    if checked:
        where = "at->rt, up, PA_FAIL_SUBVIEW, site, at->loop, at->tid"
        test = f"pa_check_view({where}, offset, size, v.n0, v.offset)"
        lines.append(f"if (!inside && !{test}) {{ offset = size = 0; at->failed = true; }}")
    step = "v.s0" if kind.strided else f"(int64_t)sizeof({kind.dtype.ctype})"
    lines += _offset_view(kind, "v", "v", f"offset * {step}", debug)
    params = f"{extra}{view_name(kind)} v, int64_t offset, int64_t size"
    head = f"{function} {view_name(kind)} {name}({params})"
    return name, function_text(head, [*lines, "v.n0 = size;", "return v;"])


def _offset_view(kind: ir.ArrayType, result: str, view: str, by: str, debug: bool) -> list[str]:
    """Statements that set where a part of a view begins, `by` bytes after it."""
    data = f"({kind.dtype.ctype} *)((char *){view}.data + {by})"
    offset = f"{view}.offset + {by} / (int64_t)sizeof({kind.dtype.ctype})"
    if kind.reshape_of is None:
        return [f"{result}.data = {data};", *([f"{result}.offset = {offset};"] if debug else [])]
    lines = [f"{result}.offset = {view}.fits ? {offset} : {view}.offset;"] if debug else []
    return [
        *lines,
        f"{result}.at = {view}.at + {by};",
        f"{result}.data = {view}.fits ? {data} : {view}.data;",
        *(f"{result}.{field} = {view}.{field};" for field in ("fits", "of") if result != view),
    ]


def slice_pattern(parts: tuple[object, ...]) -> str:
    """Name of a slicing pattern: i an index; a range is r, with a letter for each bound it has."""
    return "_".join(f"r{p.present}" if isinstance(p, ir.Range) else "i" for p in parts)


def slicer(e: ir.Slice, function: str, debug: bool) -> tuple[str, str]:
    """(name, text) of the function that takes a view apart by one pattern of indices and ranges; if the slice is
    `transposed`, the axes it has left are in reverse order."""
    kind, result, checked = e.array.type, e.type, e.site is not None
    name = f"slice_{view_name(kind).removeprefix('view_')}_{slice_pattern(e.parts)}{'_turned' if e.transposed else ''}"
    lasting = lasting_sizes(result) or (None,) * result.ndim
    if checked:
        name = "_".join(["checked", name, *(f"{axis}is{n}" for axis, n in enumerate(lasting) if n is not None)])
    params = [WHERE] if checked else []
    params.append(f"const {view_name(kind)} v")
    lines = [f"{view_name(result)} r;", "int64_t bytes = 0;"]
    indexed = checked and not all(isinstance(p, ir.Range) for p in e.parts)
    if indexed:
        lines.append("bool valid = true;")
    out = 0
    for axis, p in enumerate(e.parts):
        n, s = f"v.n{axis}", stride(kind, "v", axis)
        if not isinstance(p, ir.Range):
            params.append(f"int64_t i{axis}")
            if checked:
                test = f"!inside && !{check_index(kind, axis)}"
                lines.append(f"if ({test}) {{ i{axis} = 0; valid = false; at->failed = true; }}")
            lines.append(f"bytes += i{axis} * {s};")
            continue
        lines += _slice_range(p, axis, n, s, params, checked)
        target_axis = result.ndim - 1 - out if e.transposed else out
        lines.append(f"r.n{target_axis} = count{axis};")
        if result.strided:
            step = s if p.step is None else f"pa_mul_i64({s}, step{axis})"  # of one element it is any number
            lines.append(f"r.s{target_axis} = {step};")
        out += 1
    lines += _offset_view(kind, "r", "v", "bytes", debug)
    if checked:
        lines += [f"r.n{axis} = {n};" for axis, n in enumerate(lasting) if n is not None]
    if indexed:
        lines.append(f"if (!valid) {_failed(result, lasting)}")
    head = f"{function} {view_name(result)} {name}({', '.join(params)})"
    return name, function_text(head, [*lines, "return r;"])


def _failed(result: ir.ArrayType, lasting: tuple[int | None, ...]) -> str:
    """Makes a slice `r` that is outside one that touches nothing else: an empty view, or a row of scrap memory."""
    if None in lasting:
        return " = ".join(f"r.n{axis}" for axis, n in enumerate(lasting) if n is None) + " = 0;"
    fields = [f"r.s{axis}" for axis in range(result.ndim)] if result.strided else []
    lines = [f"r.data = ({result.dtype.ctype} *)PA_SCRAP(at);", *(f"{field} = 0;" for field in fields)]
    return f"{{ {' '.join(lines)} }}"


def _slice_range(p: ir.Range, axis: int, n: str, s: str, params: list[str], checked: bool) -> list[str]:
    """Clamped start and count of one range, as Python's slice.indices gives them."""
    for letter, x in zip(("start", "stop", "step"), (p.start, p.stop, p.step), strict=True):
        if x is not None:
            params.append(f"int64_t {letter}{axis}")
    lines = []
    if p.step is None:
        first = f"pa_slice_start(start{axis}, {n})" if p.start is not None else "0"
        last = f"pa_slice_stop(stop{axis}, {n})" if p.stop is not None else n
        step = "1"
    else:
        step = f"step{axis}"
        if checked:
            test = f"pa_check_step(at->rt, up, site + {axis}, at->loop, at->tid, {step})"
            lines.append(f"if (!inside && !{test}) at->failed = true;")
        first, last = slice_ends(p.start and f"start{axis}", p.stop and f"stop{axis}", n, step)
    lines.append(f"const int64_t first{axis} = {first};")
    lines.append(f"const int64_t count{axis} = pa_slice_len(first{axis}, {last}, {step});")
    lines.append(f"if (count{axis} > 0) bytes += first{axis} * {s};")
    return lines


def slice_ends(start: Any, stop: Any, n: str, step: str) -> tuple[str, str]:
    """The clamped bounds of a slice with a step."""
    first = f"pa_slice_start_step({start}, {n}, {step})" if start else f"pa_slice_start_none({n}, {step})"
    last = f"pa_slice_stop_step({stop}, {n}, {step})" if stop else f"pa_slice_stop_none({n}, {step})"
    return first, last


def step_checker(function: str) -> tuple[str, str]:
    """(name, text) of the function that tests the step of a loop: with one of 0 the loop is empty."""
    test = "!inside && !pa_check_step(at->rt, up, site, at->loop, at->tid, step)"
    lines = [f"if ({test}) at->failed = true;", "return step;"]
    return "checked_step", function_text(f"{function} int64_t checked_step({WHERE}, int64_t step)", lines)


def turn_checker(function: str, limit: int) -> tuple[str, str]:
    """(name, text) of the function that says whether a `while` loop may take one more turn."""
    lines = [
        f"if (turns <= {limit}) return true;",
        f"pa_fail(at->rt, up, PA_FAIL_TURNS, site, at->loop, at->tid, turns - 1, {limit}, 0, 0);",
        "at->failed = true;",
        "return false;",
    ]
    head = f"{function} bool checked_turn(pa_at *at, const pa_frame *up, int32_t site, int64_t turns)"
    return "checked_turn", function_text(head, lines)


def assertion(function: str) -> tuple[str, str]:
    """(name, text) of the function that records a failed assertion."""
    lines = [
        "pa_fail(at->rt, up, PA_FAIL_ASSERT, site, at->loop, at->tid, a, b, c, d);",
        "at->failed = true;",
    ]
    params = "pa_at *at, const pa_frame *up, int32_t site, int64_t a, int64_t b, int64_t c, int64_t d"
    return "failed_assertion", function_text(f"{function} void failed_assertion({params})", lines)


_INT64_MAX = "0x7fffffffffffffffll"


# What records a product that isn't below 2**63; no test of a valid block stands for this one.
_FAILED = (
    "(void)inside;",
    f"pa_fail_index(at->rt, up, site, at->loop, at->tid, 0, {_INT64_MAX}, 0, 0);",
    "at->failed = true;",
)


def size_product(count: int, function: str, tested: bool, checked: bool) -> tuple[str, str]:
    """(name, text) of the function that multiplies sizes; 0 if one is not positive or, when it is `tested`,
    the product too large, which a `checked` one records."""
    kind = "checked_" if checked else "tested_" if tested else ""
    name, sizes = f"{kind}product_{count}", [f"n{k}" for k in range(count)]
    lines = [f"if ({' || '.join(f'{n} <= 0' for n in sizes)}) return 0;"]
    lines.append("int64_t all = n0;")
    for n in sizes[1:]:
        large = f"all > {_INT64_MAX} / {n}"
        if checked:
            lines += [f"if ({large}) {{", *(f"    {line}" for line in (*_FAILED, "return 0;")), "}"]
        elif tested:
            lines.append(f"if ({large}) return 0;")
        lines.append(f"all *= {n};")
    params = ", ".join([WHERE] * checked + [f"int64_t {n}" for n in sizes])
    return name, function_text(f"{function} int64_t {name}({params})", [*lines, "return all;"])


def mixed_compare(op: str, symbol: str, function: str) -> tuple[str, str]:
    """(name, text) of the comparison by value of an int64 with a uint64, which have no common type."""
    name, negative = f"{op}_i64_u64", "true" if op in ("lt", "le", "ne") else "false"
    body = f"return a < 0 ? {negative} : (uint64_t)a {symbol} b;"
    return name, function_text(f"{function} bool {name}(int64_t a, uint64_t b)", [body])


def mark(function: str) -> tuple[str, str]:
    """(name, text) of the function that marks an element as written, if it is in the array that begins at `low`."""
    params = "const void *element, uint64_t low, uint64_t grain, view_b_1c written"
    lines = [
        "const uint64_t at = ((uint64_t)element - low) / grain;",
        "if (at < (uint64_t)written.n0) written.data[at] = true;",
    ]
    return "mark", function_text(f"{function} void mark({params})", lines)
