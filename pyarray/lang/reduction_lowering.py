"""Reductions of parallel loops as loops over chunks of iterations.

The chunks depend on the number of iterations alone, so that a sum has the same bits on any number of threads and for
any grid. Each chunk reduces into an element of an array of partial results, a further parameter of the kernel; a loop
of one iteration reduces these. Within a chunk order is free, as in an unordered loop: vectors on CPUs, a team of
threads on GPUs. Records keep the order: the chunk's best is that of its first iteration, and chunks are looked at in
order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..dtypes import DType, float64
from . import ir
from .infer_sequences import length_and_last
from .parallel_reductions import record_comparison
from .promotion import binary, call, cast, compare, constant, identity_of

CHUNKS = 1024  # at most
MIN_CHUNK = 256  # iterations; one, where they have loops of their own
PARTIAL = ".partial"  # what parameters for partial results are called, before their number


def lower_reductions(tree: ir.Tree, checked: bool, rows: bool = False) -> ir.Tree:
    """The tree whose parallel loops have no reductions; arrays of partial results, of CHUNKS + 1 elements, are further
    parameters. `rows`: a chunk of a loop over several axes walks in rows of the last one, and divides once for each;
    else the threads of a team find their indices by dividing."""
    kernel = tree.kernel
    if not any(isinstance(s, ir.For) and s.loop is not None and s.reductions for s in kernel.body):
        return tree
    lowering = _Lowering(kernel, checked, rows)
    body: list[ir.Stmt] = []
    for s in kernel.body:
        reduces = isinstance(s, ir.For) and s.loop is not None and s.reductions
        body += lowering.loop(s) if reduces else (s,)  # type: ignore[arg-type]
    numbers = iter(range(len(body)))
    numbered = [replace(s, loop=next(numbers)) if isinstance(s, ir.For) and s.loop is not None else s for s in body]
    params = (*kernel.params, *((name, ir.ArrayType(dtype, 1, False)) for name, dtype in lowering.partials))
    variables = (*kernel.variables, *lowering.added)
    made = replace(kernel, params=params, variables=variables, body=tuple(numbered))
    return ir.Tree(made, tree.functions)


class _Lowering:
    def __init__(self, kernel: ir.Function, checked: bool, rows: bool):
        self.types, self.checked, self.rows = dict(kernel.variables), checked, rows
        self.partials: list[tuple[str, DType]] = []
        self.added: list[tuple[str, Any]] = []

    def variable(self, loc: ir.Loc, kind: Any = ir.INDEX) -> ir.Local:
        name = f".r{len(self.added)}"
        self.added.append((name, kind))
        return ir.Local(loc, kind, name)

    def partial(self, loc: ir.Loc, dtype: DType) -> ir.Local:
        name = f"{PARTIAL}{len(self.partials)}"
        self.partials.append((name, dtype))
        return ir.Local(loc, ir.ArrayType(dtype, 1, False), name)

    def loop(self, s: ir.For) -> Iterator[ir.Stmt]:
        loc, names = s.loc, [name for name, _ in s.reductions]
        records = [name for name, op in s.reductions if op == "record"]
        count, t = self.variable(loc), self.variable(loc)
        setup, assignments = self.iterations(s, count, t)
        yield from setup
        size, chunks, c = (self.variable(loc) for _ in range(3))
        most = constant(loc, CHUNKS - 1)
        even = binary(loc, "floordiv", binary(loc, "add", count, most), constant(loc, CHUNKS))
        least = 1 if any(isinstance(n, ir.For) for n in ir.walk(*s.body)) else MIN_CHUNK
        yield ir.Assign(loc, size.name, call(loc, "max", [even, constant(loc, least)]))
        less = binary(loc, "sub", size, constant(loc, 1))
        yield ir.Assign(loc, chunks.name, binary(loc, "floordiv", binary(loc, "add", count, less), size))
        before = {name: self.variable(loc, self.types[name]) for name in names}
        for name in names:
            yield ir.Assign(loc, before[name].name, self.local(loc, name))
        partials = {name: self.partial(loc, self.types[name].dtype) for name in names}
        flag = self.variable(loc, ir.BOOL) if records else None
        found = self.partial(loc, ir.BOOL.dtype) if records else None

        # the chunks
        low = binary(loc, "mul", c, size)
        lo, hi = self.variable(loc), self.variable(loc)
        start = [ir.Assign(loc, name, self.start(loc, name, op, before)) for name, op in s.reductions]
        body = s.body
        if flag is not None:
            body = tuple(self.flagged(x, set(records), flag) for x in body)
            start.append(ir.Assign(loc, flag.name, ir.Const(loc, ir.BOOL, False)))
        operators = tuple(s.reductions) if not records else ()
        if self.rows and len(s.ranges) > 1:
            inner = self.walk_rows(s, t, lo, hi, body, operators)
        else:
            body = (*([ir.BeginIteration(loc, t)] if self.checked else []), *assignments, *body)
            inner = ir.For(loc, (t.name,), (ir.Range(lo, hi, None),), body, None, operators, unordered=not records)
        ends: list[ir.Stmt] = [ir.Store(loc, partials[n], (c,), self.local(loc, n)) for n in names]
        if flag is not None and found is not None:
            ends.append(ir.Store(loc, found, (c,), flag))
        last = call(loc, "min", [binary(loc, "add", lo, size), count])
        bounds = [ir.Assign(loc, lo.name, low), ir.Assign(loc, hi.name, last)]
        yield ir.For(loc, (c.name,), (ir.Range(None, chunks, None),), (*bounds, *start, inner, *ends), 0)

        # their results
        q, z, end = self.variable(loc), self.variable(loc), constant(loc, CHUNKS)
        combined = tuple(self.combination(s, q, partials, found))
        inner = ir.For(
            loc, (q.name,), (ir.Range(None, chunks, None),), combined, None, operators, unordered=not records
        )
        again = [ir.Assign(loc, name, self.start(loc, name, op, before)) for name, op in s.reductions]
        results = [ir.Store(loc, partials[n], (end,), self.local(loc, n)) for n in names]
        yield ir.For(loc, (z.name,), (ir.Range(None, constant(loc, 1), None),), (*again, inner, *results), 0)
        for name, op in s.reductions:
            total = self.element(partials[name], end, self.types[name])
            has_identity = identity_of(op, self.types[name].dtype) is not None
            value = self.combine(loc, op, before[name], total) if has_identity else total
            yield ir.Assign(loc, name, value)

    def local(self, loc: ir.Loc, name: str) -> ir.Local:
        return ir.Local(loc, self.types[name], name)

    def element(self, array: ir.Local, index: ir.Expr, kind: ir.ScalarType) -> ir.Expr:
        load = ir.Load(array.loc, ir.ScalarType(kind.dtype), array, (index,))
        return cast(load, kind.dtype, kind.weak)

    def combine(self, loc: ir.Loc, op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        made = call(loc, op, [a, b]) if op in ("min", "max") else binary(loc, op, a, b)
        return cast(made, a.type.dtype, a.type.weak)

    def start(self, loc: ir.Loc, name: str, op: str, before: dict[str, ir.Local]) -> ir.Expr:
        """What a part starts from: the value before the loop, where the operation has no identity."""
        kind = self.types[name]
        identity = identity_of(op, kind.dtype)
        return before[name] if identity is None else ir.Const(loc, kind, identity)

    def iterations(self, s: ir.For, count: ir.Local, t: ir.Local) -> tuple[list[ir.Stmt], list[ir.Stmt]]:
        """Statements that set the number of iterations, and those that set the loop's variables in iteration `t`."""
        loc, zero = s.loc, constant(s.loc, 0)
        if len(s.ranges) == 1:
            (range_,) = s.ranges
            first, stop = (self.variable(loc) for _ in range(2))
            setup: list[ir.Stmt] = [ir.Assign(loc, first.name, zero if range_.start is None else range_.start)]
            setup.append(ir.Assign(loc, stop.name, range_.stop))  # type: ignore[arg-type]
            assert range_.step is None or isinstance(range_.step, ir.Const)  # inference refuses others
            step = 1 if range_.step is None else range_.step.value
            if range_.start is None and step == 1:
                setup.append(ir.Assign(loc, count.name, call(loc, "max", [stop, zero])))
                return setup, [ir.Assign(loc, s.variables[0], t)]
            setup.append(ir.Assign(loc, count.name, length_and_last(loc, first, stop, step)[0]))
            walked = t if step == 1 else binary(loc, "mul", t, constant(loc, step))
            return setup, [ir.Assign(loc, s.variables[0], binary(loc, "add", first, walked))]
        sizes = self.sizes = [self.variable(loc) for _ in s.ranges]
        setup = [
            ir.Assign(loc, size.name, call(loc, "max", [range_.stop, zero]))  # type: ignore[list-item]
            for size, range_ in zip(sizes, s.ranges, strict=True)
        ]
        product: ir.Expr = sizes[0]
        estimate: ir.Expr = cast(sizes[0], float64)
        for size in sizes[1:]:
            product = binary(loc, "mul", product, size)
            estimate = binary(loc, "mul", estimate, cast(size, float64))
        fits = compare(loc, "lt", estimate, ir.Const(loc, ir.ScalarType(float64), 2.0**63))
        setup.append(ir.Assign(loc, count.name, ir.Select(loc, ir.INDEX, fits, product, zero)))
        rest = self.variable(loc)
        assignments: list[ir.Stmt] = [ir.Assign(loc, rest.name, t)]
        for name, size in list(zip(s.variables, sizes, strict=True))[:0:-1]:
            assignments.append(ir.Assign(loc, name, binary(loc, "mod", rest, size)))
            assignments.append(ir.Assign(loc, rest.name, binary(loc, "floordiv", rest, size)))
        return setup, [*assignments, ir.Assign(loc, s.variables[0], rest)]

    def walk_rows(
        self, s: ir.For, t: ir.Local, lo: ir.Local, hi: ir.Local, body: tuple[ir.Stmt, ...], operators: Any
    ) -> ir.For:
        """The iterations from `lo` to before `hi` of a loop over several axes, as rows of the last one."""
        loc, size = s.loc, self.sizes[-1]
        row, begin, end, rest = (self.variable(loc) for _ in range(4))
        before = binary(loc, "mul", row, size)
        statements: list[ir.Stmt] = [
            ir.Assign(loc, begin.name, call(loc, "max", [binary(loc, "sub", lo, before), constant(loc, 0)])),
            ir.Assign(loc, end.name, call(loc, "min", [binary(loc, "sub", hi, before), size])),
            ir.Assign(loc, rest.name, row),
        ]
        for name, extent in list(zip(s.variables, self.sizes, strict=True))[-2:0:-1]:
            statements.append(ir.Assign(loc, name, binary(loc, "mod", rest, extent)))
            statements.append(ir.Assign(loc, rest.name, binary(loc, "floordiv", rest, extent)))
        statements.append(ir.Assign(loc, s.variables[0], rest))
        last = self.local(loc, s.variables[-1])
        if self.checked:
            body = (ir.BeginIteration(loc, binary(loc, "add", before, last)), *body)
        ranges = (ir.Range(begin, end, None),)
        inner = ir.For(loc, (last.name,), ranges, body, None, operators, unordered=bool(operators))
        first = binary(loc, "floordiv", lo, size)
        ceiling = binary(
            loc, "add", binary(loc, "floordiv", binary(loc, "sub", hi, constant(loc, 1)), size), constant(loc, 1)
        )
        return ir.For(loc, (row.name,), (ir.Range(first, ceiling, None),), (*statements, inner), None)

    def flagged(self, s: ir.Stmt, names: set[str], flag: ir.Local) -> ir.Stmt:
        """The statement, in which a record that is made sets the flag."""

        def change(node: Any) -> Any:
            is_record = isinstance(node, ir.If) and any(isinstance(x, ir.Assign) and x.name in names for x in node.then)
            if not is_record:
                return node
            return replace(node, then=(*node.then, ir.Assign(node.loc, flag.name, ir.Const(node.loc, ir.BOOL, True))))

        made: ir.Stmt = ir.rewrite(s, change)
        return made

    def combination(
        self, s: ir.For, q: ir.Local, partials: dict[str, ir.Local], found: ir.Local | None
    ) -> Iterator[ir.Stmt]:
        """What takes up the results of chunk `q`."""
        loc = s.loc
        for name, op in s.reductions:
            if op != "record":
                element = self.element(partials[name], q, self.types[name])
                yield ir.Assign(loc, name, self.combine(loc, op, self.local(loc, name), element))
        names = {name for name, op in s.reductions if op == "record"}
        for node in (n for n in ir.walk(*s.body) if isinstance(n, ir.If)):
            record = record_comparison(node, names)
            targets = [x.name for x in node.then if isinstance(x, ir.Assign) and x.name in names]
            if record is None or not targets or found is None:
                continue
            best, op = record
            new = self.element(partials[best], q, self.types[best])
            better = compare(loc, op, new, self.local(loc, best))
            made = ir.Logic(loc, ir.BOOL, "and", self.element(found, q, ir.BOOL), better)
            then = [ir.Assign(loc, x, self.element(partials[x], q, self.types[x])) for x in targets]
            yield ir.If(loc, made, tuple(then), ())
