"""Text of fused row kernels: an iteration for each row, and in it loops over the row's elements.

A reduction needs all elements, so what follows from its result is in a later loop. Loads and operations stand in each
loop that needs them: the elements are the same, so on GPUs they stay in registers (`lang/emit_cached_rows.py`), on
CPUs in the cache. What is the same for all of a row is computed once, before the loops that need it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..api.standard.data_types import iinfo
from ..dtypes import DType, float32, float64
from ..jit.kernel import Kernel, from_text
from ..kernels.reduce.reduce import ALL, ANY, MAX, MIN, PROD, SUM, ReduceOp
from ..lang.markers import ndrange, unordered
from ..lang.printer import PythonPrinter
from .lowering import Line

_CHUNK = 4096  # elements that are summed in their own type on a CPU before they are added to the sum of a row
# operations whose last bits are the same in each loop, and which take less time than a load from the cache
_CHEAP = frozenset((
    "add", "subtract", "multiply", "negative", "abs", "where", "copy", "maximum", "minimum", "square", "clip",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_not",
    "divide", "sqrt", "positive", "sign", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite",
))  # fmt: skip


class RowReduction(NamedTuple):
    """The variable `name`, of this dtype, is what `value`, cast to `kind`, is reduced to by `op`."""

    name: str
    value: str
    op: ReduceOp
    kind: DType
    dtype: DType

    def accumulator(self, grid: bool) -> DType:
        """Sums of narrow floats are in float32 on a grid: threads add a few elements each, as in pairwise summation."""
        narrow = self.op.double_accumulator and self.kind.kind == "f" and self.kind.itemsize < 8
        return float32 if grid and narrow else self.op.accumulator_type(self.kind)

    @property
    def start(self) -> Any:
        """What changes no element."""
        if self.op.identity is not None:
            return self.op.identity
        if self.kind.kind == "f":
            return -math.inf if self.op is MAX else math.inf
        limits = iinfo(self.kind)
        return limits.min if self.op is MAX else limits.max

    @property
    def sums_in_own_type(self) -> bool:
        return (
            self.op.double_accumulator and self.kind is self.op.accumulator_type(self.kind) and self.kind.kind in "fc"
        )


def is_reducible(op: ReduceOp, kind: DType) -> bool:
    """Whether row kernels have the reduction."""
    if op in (SUM, PROD):
        return True
    if op in (ANY, ALL):
        return kind.kind == "b"
    return op in (MIN, MAX) and kind.kind in "iuf" and kind.name != "uint64"  # whose limits are no literals


class RowResult(NamedTuple):
    """What is stored: the variable `value`, of each element or of each row."""

    value: str
    dtype: DType
    of_elements: bool


@dataclass(frozen=True, eq=False)
class RowElement:
    """What is computed of a row: `lines` over the operands' elements v0, v1 ..., the numbers s0, s1 ... and results of
    `reductions`. `scope` has the globals of the lines."""

    name: str
    lines: tuple[Line, ...]
    reductions: tuple[RowReduction, ...]
    results: tuple[RowResult, ...]
    arrays: int
    numbers: int
    scope: dict[str, Any]
    _kernels: dict[Any, tuple[Kernel, tuple[int, ...]]] = field(default_factory=dict)

    def kernel(self, outer: int, patterns: tuple[tuple[int, ...], ...], grid: bool) -> tuple[Kernel, tuple[int, ...]]:
        """`(results, operands, sizes, numbers)` and the axes of the `sizes`, which no array has. `patterns` are the
        axes of the arrays: `outer` ones of rows, then that of the elements."""
        key = outer, patterns, grid
        if key not in self._kernels:
            text = _RowText(self, outer, patterns, grid)
            self._kernels[key] = from_text(self.name, text.written(), text.scope), text.missing
        return self._kernels[key]


class _RowText:
    def __init__(self, element: RowElement, outer: int, patterns: tuple[tuple[int, ...], ...], grid: bool):
        self._element, self._outer, self._grid = element, outer, grid
        self.scope = {**element.scope, "ndrange": ndrange, "unordered": unordered, "inf": math.inf}
        outs = [f"out{k}" for k in range(len(element.results))]
        self._arrays = dict(zip([*outs, *(f"x{k}" for k in range(element.arrays))], patterns, strict=True))
        has = {axis for axes in patterns for axis in axes}
        self.missing = tuple(k for k in range(outer + 1) if k not in has)
        loads = [Line(f"v{k}", f"x{k}[{self._index(f'x{k}')}]", (), "", None) for k in range(element.arrays)]
        self._lines = {line.name: self._narrowed(line) for line in (*loads, *element.lines)}
        self._level, self._varies = dict[str, int](), dict[str, bool]()
        self._place()
        self._written = set[str]()  # variables of a row
        self._kept = dict[str, str]()  # of an element, by results in whose memory they are, once they are
        self._hosts = self._find_hosts()

    def _narrowed(self, line: Line) -> Line:
        """A mean of float32, which is the sum in float64 by the count. Where the sum is computed in float32, a
        quotient in float32 is the same, for float64 has more than twice the digits; and each thread divides."""
        sums = {r.name: r.accumulator(self._grid) for r in self._element.reductions if r.dtype is float64}
        if line.op != "divide" or line.dtype is not float32 or [sums.get(x) for x in line.used] != [float32]:
            return line
        return line._replace(text=line.text.replace("float64_t(", "float32_t("))

    def _index(self, array: str) -> str:
        names = [*(f"i{k}" for k in range(self._outer)), "j"]
        return ", ".join(names[k] for k in self._arrays[array]) or "()"

    def _place(self) -> None:
        """How many loops each variable needs before it, and whether it differs in the elements of a row."""
        reductions = {r.name: r for r in self._element.reductions}

        def visit(name: str) -> None:
            if name in self._level:
                return
            if name in reductions:
                source = reductions[name].value
                visit(source)
                self._level[name], self._varies[name] = self._level[source] + 1, False
                return
            used = self._lines[name].used
            for x in used:
                visit(x)
            self._level[name] = max((self._level[x] for x in used), default=0)
            is_along = name[0] == "v" and self._outer in self._arrays[f"x{name[1:]}"]
            self._varies[name] = is_along or any(self._varies[x] for x in used)

        for name in (*self._lines, *reductions):
            visit(name)

    def _needed(self, names: Iterable[str]) -> list[Line]:
        """The lines of variables that differ in the elements, and of what they are computed of, in order."""
        needed, stack = set[str](), list(names)
        while stack:
            name = stack.pop()
            if name not in needed and self._varies[name]:
                needed.add(name)
                stack += () if name in self._kept else self._lines[name].used
        return [line for name, line in self._lines.items() if name in needed]

    def _loops(self) -> list[list[str]]:
        """What each loop over the row computes: sources of reductions, and at last the results of elements."""
        levels = sorted({self._level[r.value] for r in self._element.reductions})
        loops = [[r.value for r in self._element.reductions if self._level[r.value] == k] for k in levels]
        results = [r.value for r in self._element.results if r.of_elements]
        return [*loops, results] if results else loops

    def _find_hosts(self) -> dict[str, str]:
        """Variables of elements that are computed once, in the first loop that needs them, with the results in whose
        memory they wait for the last one. On a grid it is faster to compute all but halves again."""
        loops = [[line.name for line in self._needed(values)] for values in self._loops()]
        free = {f"out{k}": r.dtype for k, r in enumerate(self._element.results) if r.of_elements}
        hosts, before = dict[str, str](), set[str]()  # what the hosted ones are computed of
        for name, line in reversed(self._lines.items()):
            if name in before:
                before.update(line.used)
                continue
            if not free or not line.op or line.op in _CHEAP or sum(name in loop for loop in loops) < 2:
                continue
            if name not in loops[-1] or (self._grid and line.dtype.itemsize > 2):
                continue
            host = next((out for out, dtype in free.items() if dtype is line.dtype), None)
            if host is not None:
                del free[host]
                hosts[name] = host
                before.update(line.used)
        return hosts

    # ---- text

    def written(self) -> str:
        element, out = self._element, PythonPrinter(1)
        rows = [f"i{k}" for k in range(self._outer)]
        sizes = [self._size(k) for k in range(self._outer)]
        head = "once in range(1)" if not rows else f"{rows[0]} in range({sizes[0]})"
        if len(rows) > 1:
            head = f"{', '.join(rows)} in ndrange({', '.join(sizes)})"
        with out.block(f"for {head}"):
            for level in sorted({self._level[r.value] for r in element.reductions}):
                out.lines(self._row_lines(level))
                self._reduce(out, [r for r in element.reductions if self._level[r.value] == level])
            out.lines(self._row_lines(len(element.reductions)))
            stores = [(f"out{k}", r) for k, r in enumerate(element.results)]
            if elements := [(name, r) for name, r in stores if r.of_elements]:
                self._loop(
                    out, self._needed(r.value for _, r in elements), lambda: out.lines(map(self._store, elements))
                )
            out.lines(self._store(x) for x in stores if not x[1].of_elements)
        sizes = [f"n{k}: n_t" for k in self.missing]
        numbers = [f"s{k}: s{k}_t" for k in range(element.numbers)]
        return f"def {element.name}({', '.join([*self._arrays, *sizes, *numbers])}):\n{out}"

    def _size(self, axis: int) -> str:
        array = next((name for name, axes in self._arrays.items() if axis in axes), None)
        return f"n{axis}" if array is None else f"{array}.shape[{self._arrays[array].index(axis)}]"

    def _store(self, stored: tuple[str, RowResult]) -> str:
        name, result = stored
        return f"{name}[{self._index(name)}] = {self._type(result.dtype)}({result.value})"

    def _type(self, dtype: DType) -> str:
        self.scope[f"{dtype.name}_t"] = dtype
        return f"{dtype.name}_t"

    def _row_lines(self, level: int) -> Iterable[str]:
        """The lines of variables of the row that this many loops allow."""
        for name, line in self._lines.items():
            if not self._varies[name] and self._level[name] <= level and name not in self._written:
                self._written.add(name)
                yield f"{name} = {line.text}"

    def _reduce(self, out: PythonPrinter, reductions: list[RowReduction]) -> None:
        """The loop of these reductions, and what stands around it."""
        numbers = [r.name[1:] for r in reductions]
        types = [self._type(r.accumulator(self._grid)) for r in reductions]
        starts = [f"{t}({_literal(r.start)})" for t, r in zip(types, reductions, strict=True)]
        out.lines(f"acc{n} = {start}" for n, start in zip(numbers, starts, strict=True))
        lines = self._needed(r.value for r in reductions)

        def updates(accumulator: str) -> Iterable[str]:
            for n, r, t in zip(numbers, reductions, types, strict=True):
                value = f"{t}({self._type(r.kind)}({r.value}))"
                yield f"{accumulator}{n} = {r.op.expression.format(f'{accumulator}{n}', value)}"

        if self._grid or not any(r.sums_in_own_type for r in reductions):
            self._loop(out, lines, lambda: out.lines(updates("acc")))
        else:
            size = self._size(self._outer)
            with out.block(f"for c in range(0, {size}, {_CHUNK})"):
                out.lines(f"part{n} = {start}" for n, start in zip(numbers, starts, strict=True))
                self._loop(out, lines, lambda: out.lines(updates("part")), f"c, min(c + {_CHUNK}, {size})")
                for n, r in zip(numbers, reductions, strict=True):
                    out.line(f"acc{n} = {r.op.expression.format(f'acc{n}', f'part{n}')}")
        out.lines(f"{r.name} = {self._type(r.dtype)}(acc{n})" for n, r in zip(numbers, reductions, strict=True))

    def _loop(self, out: PythonPrinter, lines: list[Line], body: Callable[[], None], bounds: str = "") -> None:
        """A loop over the row, of these lines and a body. Variables that have a host are stored there, and read from
        there by later loops."""
        with out.block(f"for j in unordered(range({bounds or self._size(self._outer)}))"):
            for line in lines:
                host = self._hosts.get(line.name)
                at = f"{host}[{self._index(host)}]" if host is not None else ""
                out.line(f"{line.name} = {at if line.name in self._kept else line.text}")
            body()
            for line in lines:
                host = self._hosts.get(line.name)
                if host is not None and line.name not in self._kept:
                    self._kept[line.name] = host
                    out.line(f"{host}[{self._index(host)}] = {line.name}")


def _literal(x: Any) -> str:
    if x in (math.inf, -math.inf):
        return "inf" if x > 0 else "-inf"
    return repr(x)
