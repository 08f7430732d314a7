"""Code generation for reductions. A *row* kernel runs through a row once for each reduction that follows another, and
once more for what it stores of every element; `multipass` says what one pass keeps for the next. Reductions alone
are cut into pieces, whose results a second loop of the same kernel puts together; *columns* are those whose
neighbours in memory belong to different results."""

from __future__ import annotations

from collections.abc import Sequence

import sympy
from torch.fx import Node

from ..lang.printer import PythonPrinter
from .can_fuse import FEW, ROW_FITS, row_extents
from .index import Index
from .kernel_writer import CHUNK, COLUMNS, Array, KernelText, KernelWriter, Section
from .loop_collapse import Axis, by_stride
from .multipass import stored_between_passes
from .operators import REDUCTIONS, Reduction, dtype_of, opmath_dtype_of
from .sizes import ONE, product

TOGETHER = 32  # pieces of columns: of many sums, each in one accumulator
SHORT = 512  # elements of a row that isn't worth a cut on a CPU


def write(w: KernelWriter) -> KernelText:
    """The text of a group with reductions."""
    return _in_pieces(w) if w.group.columns or _cuts(w) else _rows(w)


def _cuts(w: KernelWriter) -> bool:
    """Whether rows are cut into pieces: if no element needs the results, and rows aren't short for all sizes. On a
    GPU, many rows are left to teams, and pieces may store elements as well."""
    group = w.group
    if max(group.level[r] for r in group.reductions()) > 1:
        return False
    if not w.grid:
        row = product(n for d, n in group.digits.sizes.items() if d in w.inner)
        return not w.per_element and not (row.is_Integer and row <= SHORT)
    count, row = row_extents(group, w.fusion.hints)
    return (count < FEW or row > ROW_FITS) and not any(group.level[n] for n in w.per_element)


def _accumulator(w: KernelWriter, node: Node) -> tuple[Reduction, str, str]:
    """The reduction's entry in the table of operators, and its accumulator's type and initial value."""
    row, kind = REDUCTIONS[node.target], opmath_dtype_of(node)
    name = "int32" if row.boolean else kind.name
    return row, name, f"{w._type(name)}({row.identity(kind)})"


def _element(w: KernelWriter, node: Node, index: Index, kind: str, boolean: bool) -> str:
    source = node.args[0]
    assert isinstance(source, Node)
    text, dtype_name = w.value(source, index)
    if boolean:
        text = text if dtype_name == "bool" else f"({text} != {w._type(dtype_name)}(0))"
    return text if dtype_name == kind else f"{w._type(kind)}({text})"


def _finished(w: KernelWriter, node: Node, acc: str, count: sympy.Expr) -> str:
    """The result of a reduction from its accumulator: a mean is divided by the count."""
    out, row = dtype_of(node), REDUCTIONS[node.target]
    if row.boolean:
        return f"{acc} != 0" if out.name == "bool" else f"{w._type(out.name)}({acc} != 0)"
    if row.mean:
        acc = f"{acc} / {w._type(opmath_dtype_of(node).name)}({w.extent('count', count)})"
    return f"{w._type(out.name)}({acc})"


def _orders(w: KernelWriter) -> tuple[list[sympy.Symbol], list[sympy.Symbol]]:
    """The outer and the inner digits, each in the order of the strides of the array that has most of them."""
    group = w.group
    w.compute_addresses()
    inner = [d for d in group.digits.sizes if d in w.inner]
    outer = [d for d in group.digits.sizes if d not in w.inner]
    arrays = [a for a in (*w.outputs, *w.inputs) if a.flat is None]
    main = max(arrays, key=lambda a: sum(f != 0 for f in a.factors.values()), default=None)
    if main is None:
        return outer, inner
    return by_stride(outer, main.factors, w.fusion.hints), by_stride(inner, main.factors, w.fusion.hints)


def _over(variables: Sequence[str], sizes: Sequence[str]) -> str:
    if not variables:
        return "for once in range(1)"
    if len(variables) == 1:
        return f"for {variables[0]} in range({sizes[0]})"
    return f"for {', '.join(variables)} in ndrange({', '.join(sizes)})"


Part = tuple[list[str], Section | None, list[str]]  # what stands before a loop over a row, and in it


def _rows(w: KernelWriter) -> KernelText:
    group = w.group
    count = product(group.digits.sizes[d] for d in w.inner)
    last = max(group.level[r] for r in group.reductions())
    parts: list[Part] = []
    arrays = dict(zip(w.realized, w.outputs, strict=True))
    kept = {n: arrays[at] for n, at in stored_between_passes(w.fusion, group, w.realized).items()}
    accumulators = 0
    for level in range(1, last + 1):
        section, starts, updates, ends = Section(), list[str](), list[str](), list[str]()
        w.section = section
        for node in (r for r in group.reductions() if group.level[r] == level):
            row, kind, start = _accumulator(w, node)
            element = _element(w, node, group.source[node], kind, row.boolean)
            acc = f"acc{accumulators}"
            accumulators += 1
            starts.append(f"{acc} = {start}")
            updates.append(f"{acc} = {row.update.format(acc, element)}")
            name = w._new_variable()
            ends.append(f"{name} = {_finished(w, node, acc, count)}")
            w.row.variables[node] = name
        for node in (n for n in kept if n in section.variables and n not in w.stored):
            w.stored[node] = kept[node]
            updates.append(f"{kept[node].name}[<{kept[node].name}>] = {section.variables[node]}")
        parts.append((w.row.lines + starts, section, updates))
        w.row.lines = ends
    w.section = section = Section()
    stores = w.stores(False)
    w.section = w.row
    more = w.stores(True)
    parts.append((w.row.lines, section if stores else None, stores))
    raw = [
        line
        for before, block, updates in parts
        for line in (*before, *(("<inner>", *block.lines) if block is not None else ()), *updates)
    ]  # with marks: what is in a loop of one schedule may be before it in another
    (outer, inner), _ = w.reuse_loop_nest(w._collapse_axes(list(_orders(w))), False, [*raw, "<row>", *more])
    variables = [f"i{k}" for k in range(len(outer))] + [f"j{k}" for k in range(len(inner))]
    js = variables[len(outer) :]
    sizes = [w.extent(k, axis.size) for k, axis in enumerate((*outer, *inner))]
    name, out = w.name(), PythonPrinter(1)
    with out.block(_over(variables[: len(outer)], sizes[: len(outer)])):
        for before, block, updates in parts:
            out.lines(w._named(before, variables))
            if block is not None:
                lines = w._named([*block.lines, *updates], variables)
                _inner(out, w, js, sizes[len(outer) :], lines)
        out.lines(w._named(more, variables))
    return w.kernel_text(name, str(out), outer, "rows", early=_stores_early(w, parts))


def _stores_early(w: KernelWriter, parts: Sequence[Part]) -> bool:
    """Whether an input is read after the first pass that stores."""
    stored = False
    for before, block, updates in parts:
        lines = [*before, *(block.lines if block is not None else ())]
        if stored and any(f"{a.name}[" in line for a in w.inputs for line in lines):
            return True
        stored = stored or any(line.startswith("out") for line in updates)
    return False


def _inner(
    out: PythonPrinter, w: KernelWriter, variables: Sequence[str], sizes: Sequence[str], lines: Sequence[str]
) -> None:
    """Loops over a row; the last one in any order, on a GPU all of them."""
    headers = [f"for {j} in range({n})" for j, n in zip(variables, sizes, strict=True)]
    for k, (j, n) in enumerate(zip(variables, sizes, strict=True), 1):
        if w.grid or k == len(variables):
            headers[k - 1] = f"for {j} in unordered(range({n}))"
    with out.nest(headers or ["for once in range(1)"]):
        out.lines(lines)


def _in_pieces(w: KernelWriter) -> KernelText:
    group = w.group
    count = product(group.digits.sizes[d] for d in w.inner)
    section, updates, starts = Section(), list[str](), list[str]()
    w.section = section
    partials, second, combined = list[Array](), list[str](), list[str]()
    for k, node in enumerate(group.reductions()):
        row, kind, start = _accumulator(w, node)
        element = _element(w, node, group.source[node], kind, row.boolean)
        partials.append(Array(f"part{k}", None, kind))
        starts.append(f"acc{k} = {start}")
        updates.append(f"acc{k} = {row.update.format(f'acc{k}', element)}")
        combined.append(f"acc{k} = {row.update.format(f'acc{k}', f'part{k}[<part>]')}")
    along = w.stores(False)
    before, w.row.lines = w.row.lines, []
    w.row.variables.clear()
    for k, node in enumerate(group.reductions()):
        name = w._new_variable()
        second.append(f"{name} = {_finished(w, node, f'acc{k}', count)}")
        w.row.variables[node] = name
    w.section = w.row
    stores = w.stores(True)
    block = [*before, *section.lines, *along]
    raw = [*block, *updates, *second, *w.row.lines, *stores]
    outer, inner = w._collapse_axes(list(_orders(w)))
    if group.columns:
        w.arrange([*outer[:-1], *inner, *outer[-1:]])
        (first, inner, final), _ = w.reuse_loop_nest([outer[:-1], inner, outer[-1:]], True, raw)
        outer = [*first, *final]
    else:
        (outer, inner), _ = w.reuse_loop_nest([outer, inner], False, raw)
    write_pieces = _columns if group.columns else _row_pieces
    name, out = w.name(), PythonPrinter(1)
    write_pieces(out, w, outer, inner, starts, block, updates, len(partials))
    variables = [f"i{k}" for k in range(len(outer))]
    sizes = [w.extent(k, axis.size) for k, axis in enumerate(outer)]
    lead, last = (variables[:-1], variables[-1:]) if group.columns else (variables, [])
    partial_index = ", ".join([*lead, "piece", *last])
    pieces = f"part0.shape[{len(lead)}]"
    with out.block(_over(variables, sizes)):
        out.lines(starts)
        combined = [x.replace("<part>", partial_index) for x in combined]
        if group.columns and not w.grid:
            _chunked(out, "piece", "0", pieces, combined, starts, updates, TOGETHER)
        else:
            with out.block(f"for piece in unordered(range({pieces}))"):
                out.lines(combined)
        named = [*lead, *[""] * len(inner), *last]
        out.lines(w._named([*second, *w.row.lines, *stores], named))
    cut = {"pieces": inner[0].size if inner else ONE, "row": product(a.size for a in inner)}
    return w.kernel_text(name, str(out), outer, "columns" if group.columns else "pieces", partials, **cut)


def _cut(w: KernelWriter, outer: Sequence[Axis], inner: Sequence[Axis], lead: int) -> tuple[str, list[str]]:
    """The step between pieces, and the bounds of one."""
    n = w.extent(len(outer), inner[0].size) if inner else "1"
    step = f"step = ({n} + part0.shape[{lead}] - 1) // part0.shape[{lead}]"
    return step, [f"low = min(piece * step, {n})", f"high = min(low + step, {n})"]


def _ranges(w: KernelWriter, outer: Sequence[Axis], inner: Sequence[Axis]) -> list[tuple[str, str]]:
    """The bounds of the inner loops; the first one is a piece of its axis."""
    return [("low", "high"), *(("0", w.extent(k, a.size)) for k, a in enumerate(inner[1:], len(outer) + 1))]


def _row_pieces(
    out: PythonPrinter, w: KernelWriter, outer: Sequence[Axis], inner: Sequence[Axis], starts: list[str],
    block: list[str], updates: list[str], count: int,
) -> None:  # fmt: skip
    variables = [f"i{k}" for k in range(len(outer))]
    js = [f"j{k}" for k in range(len(inner))]
    step, bounds = _cut(w, outer, inner, len(outer))
    sizes = [f"part0.shape[{k}]" for k in range(len(outer) + 1)]
    out.line(step)
    with out.block(_over([*variables, "piece"], sizes)):
        out.lines([*bounds, *starts])
        lines = w._named([*block, *updates], [*variables, *js])
        ranges = _ranges(w, outer, inner)
        header = "for {} in unordered(range({}, {}))" if w.grid or not inner else "for {} in range({}, {})"
        headers = [header.format(j, *r) for j, r in zip(js or ["once"], ranges, strict=True)]
        if inner and not w.grid:
            with out.nest(headers[:-1]):
                _chunked(out, js[-1], *ranges[-1], lines, starts, updates)
        else:
            with out.nest(headers):
                out.lines(lines)
        out.lines(f"part{k}[{', '.join([*variables, 'piece'])}] = acc{k}" for k in range(count))


def _chunked(
    out: PythonPrinter, j: str, low: str, high: str, lines: list[str], starts: list[str], updates: list[str],
    chunk: int = CHUNK,
) -> None:  # fmt: skip
    """Sums of short runs, which are then added up: a long one in few accumulators loses digits."""
    with out.block(f"for c in range({low}, {high}, {chunk})"):
        out.lines(s.replace("acc", "run") for s in starts)
        loop_range = f"range(c, min(c + {chunk}, {high}))"
        if chunk == CHUNK:  # several accumulators, which cost more than a few elements
            loop_range = f"unordered({loop_range})"
        with out.block(f"for {j} in {loop_range}"):
            out.lines(line.replace("acc", "run") for line in lines)
        # acc = op(acc, element) with the run in the element's place
        out.lines(_join(update.partition(" = ")[0], update) for update in updates)


def _join(name: str, update: str) -> str:
    operation = update.partition(" = ")[2]
    run = name.replace("acc", "run")
    for call in ("max(", "min("):
        if operation.startswith(call):
            return f"{name} = {call}{name}, {run})"
    sign = "*" if operation.startswith(f"{name} *") else "+"
    return f"{name} = {name} {sign} {run}"


def _columns(
    out: PythonPrinter, w: KernelWriter, outer: Sequence[Axis], inner: Sequence[Axis], starts: list[str],
    block: list[str], updates: list[str], count: int,
) -> None:  # fmt: skip
    variables = [f"i{k}" for k in range(len(outer))]
    lead, last = variables[:-1], variables[-1]
    js = [f"j{k}" for k in range(len(inner))]
    step, bounds = _cut(w, outer, inner, len(lead))
    sizes = [f"part0.shape[{k}]" for k in range(len(outer) + 1)]
    lines = w._named([*block, *updates], [*lead, *js, last])
    partial_index = ", ".join([*lead, "piece", last])
    ranges = zip(js, _ranges(w, outer, inner), strict=True)
    headers = [f"for {j} in range({low}, {high})" for j, (low, high) in ranges]
    out.line(step)
    if w.grid:
        with out.block(_over([*lead, "piece", last], sizes)):
            out.lines([*bounds, *starts])
            with out.nest(headers):
                out.lines(lines)
            out.lines(f"part{k}[{partial_index}] = acc{k}" for k in range(count))
        return
    blocks = f"({sizes[-1]} + {COLUMNS - 1}) // {COLUMNS}"
    loop_range = f"for {last} in range(block * {COLUMNS}, min(block * {COLUMNS} + {COLUMNS}, {sizes[-1]}))"
    with out.block(_over([*lead, "piece", "block"], [*sizes[:-1], blocks])):
        out.lines(bounds)
        with out.block(loop_range):
            out.lines(f"part{k}[{partial_index}] = {s.partition(' = ')[2]}" for k, s in enumerate(starts))
        with out.nest([*headers, loop_range]):
            for line in lines:
                for k in range(count):
                    if line.startswith(f"acc{k} = "):
                        line = line.replace(f"acc{k}", f"part{k}[{partial_index}]")
                out.line(line)
