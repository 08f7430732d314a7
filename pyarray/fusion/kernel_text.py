"""Text of fused kernels: one loop computes all operations of an element, then stores or reduces it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..dtypes import DType, complex128, float64, int64, uint16
from ..jit.kernel import Kernel, from_text, func
from ..kernels.elementwise.elementwise import loop_nest
from ..kernels.reduce.reduce_text import ELEMENT, ReduceOp, columns_text, rows_text, teams_text, threads_text
from ..lang.markers import ndrange, unordered
from ..lang.parse import function_from_text

_TYPES: dict[type, DType] = {int: int64, float: float64, complex: complex128}
_SIZE = re.compile(r"\bx\.shape\[(\d+)\]")


class Digit(NamedTuple):
    """An axis of an operand that is a digit of the loop over `axis`. The digits are the operand's axes from
    `first` up to `end`, the last one fastest."""

    axis: int
    first: int
    end: int


Axes = tuple[int | Digit, ...]  # those that an array really has
Patterns = tuple[Axes, ...]


@dataclass(frozen=True, eq=False)
class Element:
    """The computation of one element: `lines` of the kernel language over the operands' elements v0, v1, ... and
    the numbers s0, s1, ... (of the types `numbers`), then the `results`. `scope` has their globals."""

    name: str
    lines: tuple[str, ...]
    results: tuple[str, ...]
    arrays: int
    numbers: tuple[type, ...]
    scope: dict[str, Any]
    _kernels: dict[Any, Kernel] = field(default_factory=dict)
    _reductions: dict[Any, tuple[Kernel, tuple[int, ...]]] = field(default_factory=dict)

    def map_kernel(self, ndim: int, patterns: Patterns, tiled: bool, grid: bool) -> Kernel:
        """`(out, further outputs, operands, numbers)`: `patterns` are of all but the first."""
        key = ndim, patterns, tiled, grid
        if key not in self._kernels:
            self._kernels[key] = self._compiled(self.name, self._map_text(*key), {})
        return self._kernels[key]

    def reduce_kernel(
        self, op: ReduceOp, keep: int, reduced: int, schedule: str, patterns: Patterns, kind: DType
    ) -> tuple[Kernel, tuple[int, ...]]:
        """`(out, operands, sizes, numbers)` as the kernels of `reduce.py` with this `schedule`, and the axes
        of the `sizes`: those that no operand has as a whole, kept axes first."""
        key = op, keep, reduced, schedule, patterns, kind
        if key not in self._reductions:
            scope = {
                "acc_t": op.accumulator_type(kind), "kind": kind, "unordered": unordered, "uint16": uint16,
                "quad_t": kind.arithmetic,
                "element": func(self._function()),
            }  # fmt: skip
            name = f"{self.name}_{op.name}"
            text, sizes = self._reduce_text(name, *key)
            self._reductions[key] = self._compiled(name, text, scope), sizes
        return self._reductions[key]

    def _compiled(self, name: str, text: str, scope: dict[str, Any]) -> Kernel:
        return from_text(name, text, self.scope | scope | {"ndrange": ndrange})

    def _scalars(self) -> list[str]:
        return [f"s{n}: s{n}_t" for n in range(len(self.numbers))]

    def _map_text(self, ndim: int, patterns: Patterns, tiled: bool, grid: bool) -> str:
        extra = len(self.results) - 1
        outs = ["out", *(f"out{n}" for n in range(1, extra + 1))]
        arrays = [f"x{n}" for n in range(self.arrays)]
        head = f"def {self.name}({', '.join([*outs, *arrays, *self._scalars()])}):\n"
        names = [*outs[1:], *arrays]
        loops = [f"i{k}" for k in range(ndim)]
        indices = [_index(name, axes, loops) for name, axes in zip(names, patterns, strict=True)]
        all_indices = ", ".join(f"i{k}" for k in range(ndim)) or "()"
        body = []
        for n, index in enumerate(indices[extra:]):
            line = f"v{n} = x{n}[{index}]"
            if index == "()":
                head += f"    {line}\n"
            else:
                body.append(line)
        stores = zip(outs, [all_indices, *indices[:extra]], self.results, strict=True)
        body += [*self.lines, *(f"{out}[{index}] = {value}" for out, index, value in stores)]
        return head + loop_nest(ndim, tiled, grid, body)

    def _function(self) -> Any:
        names = [f"v{n}" for n in range(self.arrays)] + [f"s{n}" for n in range(len(self.numbers))]
        text = f"def element({', '.join(names)}):\n"
        text += "".join(f"    {line}\n" for line in (*self.lines, f"return {self.results[0]}"))
        return function_from_text("element", text, dict(self.scope))

    def _reduce_text(
        self, name: str, op: ReduceOp, keep: int, reduced: int, schedule: str, patterns: Patterns, kind: DType
    ) -> tuple[str, tuple[int, ...]]:
        texts = {"rows": rows_text, "teams": teams_text, "columns": columns_text, "threads": threads_text}
        lines = texts[schedule](op, keep, reduced, kind).splitlines(keepends=True)[1:]
        arrays, sizes = [f"x{n}" for n in range(self.arrays)], set[int]()
        indices = [(k, next((n for n, axes in enumerate(patterns) if k in axes), None)) for k in range(64)]

        def size(match: re.Match[str]) -> str:
            k, n = indices[int(match[1])]
            if n is not None:
                return f"x{n}.shape[{patterns[n].index(k)}]"
            sizes.add(k)
            return f"n{k}"

        def element(match: re.Match[str]) -> str:
            index = match[1].split(", ")
            read = [f"x{n}[{_index(f'x{n}', a, index)}]" for n, a in enumerate(patterns)]
            return f"element({', '.join([*read, *(f's{n}' for n in range(len(self.numbers)))])})"

        text = ELEMENT.sub(element, _SIZE.sub(size, "".join(lines)))
        parameters = [*arrays, *(f"n{k}: n_t" for k in sorted(sizes)), *self._scalars()]
        return f"def {name}({', '.join(['out', *parameters])}):\n{text}", tuple(sorted(sizes))


def _index(name: str, axes: Axes, loops: Sequence[str]) -> str:
    """An array's index as text, by the loops' variables."""
    index = []
    for k, axis in enumerate(axes):
        if isinstance(axis, Digit):
            faster = " * ".join(f"{name}.shape[{n}]" for n in range(k + 1, axis.end))
            loop_index = loops[axis.axis] if loops[axis.axis].isidentifier() else f"({loops[axis.axis]})"
            text = f"{loop_index} // ({faster})" if faster else loop_index
            index.append(text if k == axis.first else f"{text} % {name}.shape[{k}]")
        else:
            index.append(loops[axis])
    return ", ".join(index) or "()"


def number_types(numbers: Sequence[type]) -> dict[str, DType]:
    """Names in the scope of an `Element` for the types of its numbers."""
    return {f"s{n}_t": _TYPES[t] for n, t in enumerate(numbers)} | {"n_t": int64}


def pattern(strides: Sequence[int]) -> tuple[int, ...]:
    """Axes with a stride."""
    return tuple(k for k, step in enumerate(strides) if step)
