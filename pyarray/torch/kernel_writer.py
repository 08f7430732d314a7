"""Writes the statements of a fused kernel, and collects the arrays and numbers of its launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.fx import Node

from ..dtypes import BY_NAME
from ..jit.bounded_cache import BoundedCache
from ..lang.markers import kernel_math, ndrange, unordered
from . import operators, views
from .fusion import Fusion
from .fusion_group import FusionGroup
from .index import Index, broadcast
from .loop_collapse import (
    ArrayLayout,
    Axis,
    Factors,
    LoopNest,
    array_layout,
    collapse_loops,
    fit_loop_nest,
)
from .operator_support import range_of
from .operators import CREATIONS, FLOAT_FUNCTIONS, POINTWISE, dtype_of, library_dtype, number_text, tensor
from .sizes import ZERO, expression, expressions, nonempty_strides, python

CHUNK = 2048  # elements of a sum in sixteen accumulators before they are added up
COLUMNS = 1024  # of a block: their accumulators stay in the first-level cache


@dataclass(eq=False)
class Array:
    """An array parameter. `node` is what it holds and `index` the element of an iteration; None for partial
    results of a reduction. `address` is that element's in memory: along the digits it has the strides `factors`
    from `offset` on, in elements. `flat`: the text computes the place, of as many elements."""

    name: str
    node: Node | None
    kind: str
    index: Index = ()
    address: sympy.Expr = ZERO
    factors: Factors = field(default_factory=dict)
    offset: sympy.Expr = ZERO
    flat: sympy.Expr | None = None
    layout: ArrayLayout | None = None
    strided: bool | None = None  # the layout class that its artifact was compiled for


# Loop nests of kernels, by their statements with placeholders for indices, and the types of their arrays.
_loop_nests: BoundedCache[Any, list[LoopNest]] = BoundedCache(1024)


@dataclass(eq=False)
class Section:
    """Statements of one loop body, and the variables that they compute."""

    lines: list[str] = field(default_factory=list)
    variables: dict[Any, str] = field(default_factory=dict)


@dataclass(eq=False)
class KernelText:
    """The text of a fused kernel, for CPUs or GPUs (`grid`), and its names (`scope`). Its parameters are
    `outputs`, `partials`, `inputs`, `numbers`. `loops` are the sizes of its outer loops, `row` that of a
    reduction, which is cut into pieces along `pieces`."""

    name: str
    text: str
    scope: dict[str, Any]
    outputs: list[Array]
    partials: list[Array]
    inputs: list[Array]
    numbers: list[sympy.Expr]
    loops: tuple[sympy.Expr, ...]
    schedule: str
    pieces: sympy.Expr | None = None
    row: sympy.Expr | None = None
    early: bool = False  # an output is stored into before all inputs are read


class KernelWriter:
    """Writes the text of one group."""

    def __init__(self, fusion: Fusion, group: FusionGroup, realized: Sequence[Node], grid: bool):
        self.fusion, self.group, self.grid = fusion, group, grid
        self.realized = [n for n in group.nodes if n in realized]
        self.per_element = [n for n in self.realized if n not in group.rows]
        self.inputs: list[Array] = []
        self.numbers: list[sympy.Expr] = []
        self.parameter_index: dict[Any, int] = {}  # of numbers, by what they are
        self.floats: set[sympy.Expr] = set()
        self.scope: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "ndrange": ndrange, "unordered": unordered}
        self.loads: dict[Any, Array] = {}
        self.stored: dict[Node, Array] = {}  # values that an earlier pass over a row has stored
        self.not_collapsible: set[sympy.Symbol] = set()
        self.count = 0
        self.row = Section()
        self.section = self.row
        self.computed_indices: list[sympy.Expr] = []  # expressions of indices that the text computes
        self.splits = -1
        self.outputs = [self._array(f"out{k}", n, group.index[n]) for k, n in enumerate(self.realized)]
        self.axes: list[Axis] = []
        self.names: dict[sympy.Symbol, str] = {}

    @property
    def inner(self) -> set[sympy.Symbol]:
        """The digits of the reductions."""
        if self.splits != len(self.group.digits.replaced):
            self.group.current()
            self.splits = len(self.group.digits.replaced)
        return set(self.group.inner or ())

    # ---- arrays

    def _array(self, name: str, node: Node, index: Index) -> Array:
        return Array(name, node, dtype_of(node).name, index)

    def _compute_address(self, array: Array) -> None:
        """Computes the offset and strides of an array along the digits after all splits."""
        digits, node = self.group.digits, array.node
        assert node is not None
        sizes = expressions(tensor(node).shape)
        strides = nonempty_strides(tensor(node).shape, tensor(node).stride())
        index = digits.current(array.index)
        array.address = sympy.expand(sum((i * s for i, s in zip(index, strides, strict=True)), ZERO))
        linear = digits.linear(array.address)
        if linear is not None:
            array.factors, array.offset = linear
            return
        extent = sum(((n - 1) * s for n, s in zip(sizes, strides, strict=True)), sympy.Integer(1))
        array.flat = sympy.expand(extent)
        self.not_collapsible |= array.address.free_symbols & digits.sizes.keys()

    def _type(self, name: str) -> str:
        self.scope[f"{name}_t"] = BY_NAME[name]
        return f"{name}_t"

    def _new_variable(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def _number(self, x: sympy.Expr) -> str:
        return str(int(x)) if x.is_Integer else self._parameter(x, x)

    def _parameter(self, key: Any, x: sympy.Expr) -> str:
        if key not in self.parameter_index:
            self.parameter_index[key] = len(self.numbers)
            self.numbers.append(x)
        return f"n{self.parameter_index[key]}"

    def extent(self, axis: int | str, size: sympy.Expr) -> str:
        """The size of an axis, or a product of sizes. It is an argument even if it is known, so that graphs of
        other sizes have the same kernel."""
        return self._parameter(("extent", axis), size)

    def _symbol_argument(self, x: torch.SymInt | torch.SymFloat) -> str:
        """The name of a number that is an argument of the launch."""
        if isinstance(x, torch.SymFloat):
            self.floats.add(x.node.expr)
        return self._number(x.node.expr)

    def _symbolic(self, x: sympy.Expr) -> str:
        """An index as text: digits are loop variables, size symbols numbers."""
        text = {d: sympy.Symbol(f"<{d.name}>", integer=True, nonnegative=True) for d in self.group.digits.sizes}
        sizes = {s: sympy.Symbol(self._number(s), integer=True, positive=True) for s in x.free_symbols if s not in text}
        return f"({python(x.xreplace(text | sizes))})"

    # ---- values

    def value(self, node: Node, index: Index) -> tuple[str, str]:
        """Variable and dtype of an element of a node."""
        while views.is_view(node):
            index = views.source_index(node, self.group.digits, index)
            node = views.source_of(node)
        index = self.group.digits.current(index)
        in_group = self.fusion.of.get(node) is self.group
        key = node if in_group else (node, index)
        section = self._section(node, index, in_group)
        if key not in section.variables:
            assert not in_group or node not in self.group.source, f"{node} isn't reduced yet"
            if in_group and node in self.stored:
                text = "{0}[<{0}>]".format(self.stored[node].name)
            else:
                write = self._computed if in_group or self.inlines(node) else self._loaded
                text = write(node, index)
            section.variables[key] = name = self._new_variable()
            section.lines.append(f"{name} = {text}")
        return section.variables[key], dtype_of(node).name

    def stores(self, per_row: bool) -> list[str]:
        """The statements that store results with one element per row (`per_row`), or all other results, but for
        those that are stored already."""
        pairs = [p for p in zip(self.outputs, self.realized, strict=True) if (p[1] in self.group.rows) == per_row]
        pairs = [(array, node) for array, node in pairs if self.stored.get(node) is not array]
        return [f"{a.name}[<{a.name}>] = {self.value(node, self.group.index[node])[0]}" for a, node in pairs]

    def inlines(self, node: Node) -> bool:
        """Whether a node of no kernel is computed where it is read."""
        return node in self.fusion.inlined

    def _section(self, node: Node, index: Index, in_group: bool) -> Section:
        if self.section is self.row:
            return self.row
        if in_group:
            return self.row if node in self.group.rows else self.section
        used = set().union(*(x.free_symbols for x in index)) if index else set()
        return self.section if used & self.inner else self.row

    def _loaded(self, node: Node, index: Index) -> str:
        key = node, index
        if key not in self.loads:
            self.loads[key] = self._array(f"x{len(self.inputs)}", node, index)
            self.inputs.append(self.loads[key])
        return "{0}[<{0}>]".format(self.loads[key].name)

    def _operand(self, node: Node, x: Any, index: Index, kind: str, rounded: torch.dtype | None = None) -> str:
        """An operand cast to `kind`, rounded to another type first if one is given."""
        cast, dtype_name = self._type(kind), ""
        if isinstance(x, Node) and isinstance(x.meta["val"], torch.Tensor):
            text, dtype_name = self.value(x, broadcast(index, views.shape_of(node), views.shape_of(x)))
        else:
            number = x.meta["val"] if isinstance(x, Node) else x
            is_symbolic = isinstance(number, (torch.SymInt, torch.SymFloat))
            text = self._symbol_argument(number) if is_symbolic else number_text(number)
        if rounded is not None and (to := library_dtype(rounded)) is not None:
            text, dtype_name = f"{self._type(to.name)}({text})", to.name
        return text if dtype_name == kind else f"{cast}({text})"

    def _computed(self, node: Node, index: Index) -> str:
        cast = self._type(dtype_of(node).name)
        if node.target in CREATIONS:
            return f"{cast}({self._creation(node, index)})"
        row = POINTWISE[node.target]
        text = operators.pointwise_text(node)
        assert text is not None
        kind = library_dtype(operators.compute_dtype(node, row))
        assert kind is not None
        low, high = operators.bounds(node)
        alpha = operators.argument(node, 2, "alpha", 1)
        named = {"alpha": alpha, "low": low, "high": high, "one": 1.0, "zero": 0.0, "half": 0.5}
        values: dict[str, str] = {}
        positional: list[str] = []
        for k, x in enumerate(node.args):
            used = f"{{{k}}}" in text
            rounded = operators.rounded_dtype(node, row, k) if used and k < 2 else None
            positional.append(self._operand(node, x, index, kind.name, rounded) if used else "")
        for name, x in named.items():
            if f"{{{name}}}" in text:
                x = int(x) if kind.kind in "iu" and isinstance(x, float) and x == int(x) else x
                values[name] = self._operand(node, x, index, kind.name)
        if "{c}" in text:
            values["c"] = self._operand(node, node.args[0], index, "bool")
        for name in _called(text):
            self.scope[name] = getattr(kernel_math, name)
        return f"{cast}({text.format(*positional, **values)})"

    def _creation(self, node: Node, index: Index) -> str:
        name = _operator_name(node)
        if name.startswith(("arange", "iota")):
            start, step = (expression(x.meta["val"] if isinstance(x, Node) else x) for x in range_of(node))
            self.computed_indices.append(sympy.expand(start + step * index[0]))
            return f"<e{len(self.computed_indices) - 1}>"
        if name.startswith(("zeros", "ones")):
            return str(int(name.startswith("ones")))
        value = node.args[0] if name.startswith("scalar_tensor") else node.args[1]
        if isinstance(value, Node):
            value = value.meta["val"]
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            return self._symbol_argument(value)
        return number_text(value)  # pyright: ignore[reportArgumentType]

    # ---- loops

    def compute_addresses(self) -> None:
        """To be called when all values are written: no digit is split from here on."""
        for array in (*self.outputs, *self.inputs):
            self._compute_address(array)

    def _collapse_axes(self, order: list[list[sympy.Symbol]]) -> list[list[Axis]]:
        """Axes from the digits of each part of `order`; layouts of all arrays along them."""
        self.computed_indices = list(self.group.digits.current(self.computed_indices))
        for x in self.computed_indices:
            self.not_collapsible |= x.free_symbols & self.group.digits.sizes.keys()
        arrays = [a.factors for a in (*self.outputs, *self.inputs) if a.flat is None]
        parts = [collapse_loops(self.group.digits, digits, arrays, self.not_collapsible) for digits in order]
        self.arrange([axis for part in parts for axis in part])
        return parts

    def arrange(self, axes: list[Axis]) -> None:
        """Sets the order of the loops; the last one is the innermost."""
        self.axes = axes
        for array in (*self.outputs, *self.inputs):
            if array.flat is None:
                array.layout = array_layout(array.factors, array.offset, self.axes, self.group.digits)
            else:
                array.layout = ArrayLayout(ZERO, (), (array.flat,), (sympy.Integer(1),))

    def reuse_loop_nest(
        self, parts: list[list[Axis]], tiled: bool, lines: Sequence[str]
    ) -> tuple[list[list[Axis]], bool]:
        """Uses the loops of an earlier kernel with the same lines, if these loops can be expressed by them."""
        arrays = [*self.outputs, *self.inputs]
        if self.not_collapsible or any(a.flat is not None for a in arrays):
            return parts, tiled
        key = (*lines, tuple(a.kind for a in arrays), self.grid, len(parts))
        layouts = [a.layout for a in arrays if a.layout is not None]
        nests = _loop_nests.get(key) or _loop_nests.add(key, [])
        for nest in nests:
            fit = fit_loop_nest(nest, parts, layouts)
            if fit is not None:
                for array, layout in zip(arrays, fit[1], strict=True):
                    array.layout = layout
                    array.strided = not nest.contiguous[arrays.index(array)]
                self.axes = [axis for part in fit[0] for axis in part]
                return fit[0], nest.tiled
        patterns, contiguous = tuple(w.axes for w in layouts), tuple(w.contiguous for w in layouts)
        nests.append(LoopNest(tuple(map(len, parts)), patterns, contiguous, tiled))
        return parts, tiled

    def _named(self, lines: Sequence[str], variables: Sequence[str]) -> list[str]:
        """Lines with their placeholders replaced by indices."""
        marks = {}
        for array in (*self.outputs, *self.inputs):
            assert array.layout is not None
            index = ", ".join(variables[k] for k in array.layout.axes) or "()"
            marks[f"<{array.name}>"] = index if array.flat is None else self._symbolic(array.address)
        marks |= {f"<e{k}>": self._symbolic(x) for k, x in enumerate(self.computed_indices)}
        for k, axis in enumerate(self.axes):
            if len(axis.digits) == 1:
                marks[f"<{axis.digits[0].name}>"] = variables[k]
        return [_replaced(line, marks) for line in lines]

    def size(self, axis: int) -> str:
        """The size of an axis, from the shape of an array that has it."""
        for array in (*self.outputs, *self.inputs):
            if array.flat is None and array.layout is not None and axis in array.layout.axes:
                return f"{array.name}.shape[{array.layout.axes.index(axis)}]"
        return self.extent(axis, self.axes[axis].size)

    def _head(self, name: str, partials: Sequence[Array]) -> str:
        arrays = [a.name for a in (*self.outputs, *partials, *self.inputs)]
        types = [self._type("float64" if x in self.floats else "int64") for x in self.numbers]
        numbers = [f"n{k}: {kind}" for k, kind in enumerate(types)]
        return f"def {name}({', '.join([*arrays, *numbers])}):\n"

    def kernel_text(
        self, name: str, loops: str, axes: Sequence[Axis], schedule: str, partials: Sequence[Array] = (), **fields: Any
    ) -> KernelText:
        """The text of the kernel, whose outer loops are `axes`. Called last, since its parameters are what the
        statements use."""
        text, sizes = self._head(name, partials) + loops, tuple(a.size for a in axes)
        arrays = self.outputs, list(partials), self.inputs
        return KernelText(name, text, self.scope, *arrays, self.numbers, sizes, schedule, **fields)

    def name(self) -> str:
        """The name of the kernel, from what it computes."""
        names = [_operator_name(n).partition(".")[0].strip("_") for n in self.group.nodes]
        return "fused_" + "_".join(dict.fromkeys(n for n in names if n not in ("clone", "to_copy")))[:60].rstrip("_")


def _operator_name(node: Node) -> str:
    """Without the namespace of its library: "add.Tensor"."""
    return node.target.name().rpartition("::")[2]  # pyright: ignore[reportAttributeAccessIssue, reportFunctionMemberAccess]


def _called(text: str) -> list[str]:
    return [name for name in _FUNCTION_NAMES if f"{name}(" in text]


_FUNCTION_NAMES = (
    *FLOAT_FUNCTIONS, "atan2", "floor", "ceil", "trunc", "round", "sign", "copysign", "hypot", "fmod", "isnan", "isinf",
)  # fmt: skip


def _replaced(line: str, marks: dict[str, str]) -> str:
    for mark, text in marks.items():
        if mark in line:
            line = line.replace(mark, text)
    return line
