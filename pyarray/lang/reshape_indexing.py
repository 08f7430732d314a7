"""Rewrites accesses to reshaped views as accesses to the array itself, where no division is needed for it.

`t = a.reshape(n, -1)` of a strided array has strides that are found when the kernel runs, or else its
elements are found by dividing their flat index. Where an access has all indices, groups of axes with the same
number of elements are matched symbolically (`delinearization.reshape_groups`). An axis that isn't merged
needs no division. Merged axes are divided here if their index is a loop's variable, whose digits
`delinearization` counts; other accesses are left to the strides. Release mode only: an index outside the
view isn't seen here."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from . import ir
from .delinearization import ONE, Product, Symbol, Symbols, has_cheap_divisions, reshape_groups
from .promotion import binary, constant
from .summaries import has_any

Remarks = dict[tuple[int, str], None]  # (line, what became of what stands there), in order
_NUMBERED = "an element of a reshape, by its strides where they fit, else its number is divided: "
_UNEVEN, _OTHER = (
    "the sizes don't divide each other",
    "an index of merged axes is no loop variable that has digits",
)
_AWAY, _EFFECT = "it was cut, reshaped again or handed on", "an index calls a function"


def index_base_arrays(tree: ir.Tree, blocks: bool) -> tuple[ir.Tree, Remarks]:
    """The tree with accesses to the arrays themselves where that needs no division but of loop variables, and
    what to say about each of them. `blocks`: iterations come in blocks, not in threads of their own."""
    remarks: Remarks = {}
    functions = (*tree.functions, tree.kernel)
    rewritten = [_Rewriter(f, remarks, blocks).rewritten() if _may_reshape(f) else f for f in functions]
    return ir.Tree(rewritten[-1], tuple(rewritten[:-1])), remarks


def _may_reshape(function: ir.Function) -> bool:
    """Whether something may be a view of a reshape."""
    kinds = (kind for _, kind in (*function.params, *function.variables))
    known = any(getattr(kind, "reshape_of", None) is not None for kind in kinds)
    return known or has_any(function.body, ir.Reshape, ir.Invoke, ir.Item)


class _Rewriter:
    def __init__(self, function: ir.Function, remarks: Remarks, blocks: bool):
        self.function, self.remarks = function, remarks
        nodes = list(ir.walk(*function.body))
        self.some = any(getattr(getattr(n, "type", None), "reshape_of", None) is not None for n in nodes)
        sets = Counter(n.name for n in nodes if isinstance(n, (ir.Assign, ir.Let)))
        params = {name for name, _ in function.params}
        self.loops = {v for n in nodes if isinstance(n, ir.For) for v in n.variables}
        loops = [n for n in nodes if isinstance(n, ir.For)]
        self.digits = {n.variables[-1] for n in loops if has_cheap_divisions(n, blocks)}
        self.digits -= {n.variables[-1] for n in loops if not has_cheap_divisions(n, blocks)}
        self.changing = {n for n, count in sets.items() if count > 1 or n in params} | self.loops
        self.values = {
            n.name: n.value for n in nodes if isinstance(n, (ir.Assign, ir.Let)) and n.name not in self.changing
        }

    def rewritten(self) -> ir.Function:
        if not self.some:
            return self.function
        return replace(self.function, body=tuple(ir.rewrite(s, self.change) for s in self.function.body))

    def change(self, node: Any) -> Any:
        if not isinstance(node, (ir.Load, ir.Store, ir.Atomic)) or node.array.type.reshape_of is None:
            return node
        array, index = node.array, tuple(node.index)
        while isinstance(array, ir.Slice):
            inner = _compose_index(array, index)
            if inner is None:
                break
            array, index = array.array, inner
        reshape = self.reshape(array)
        if reshape is None:
            indices: Any = _AWAY
        else:
            indices = _EFFECT if any(map(_has_effect, index)) else self.indices(reshape, array, index)
        numbered = isinstance(indices, str)
        remark = f"{_NUMBERED}{indices}" if numbered else "an element of a reshape, by the indices of the array"
        self.remarks[node.loc.line, remark] = None
        return node if numbered else replace(node, array=reshape.array, index=indices)  # type: ignore[union-attr]

    def reshape(self, array: Any) -> ir.Reshape | None:
        """What the array is, if it is a reshape of a variable that stays as it is."""
        while isinstance(array, ir.Local):
            array = self.values.get(array.name)
        if not isinstance(array, ir.Reshape) or not isinstance(array.array, ir.Local):
            return None
        fits = array.array.name not in self.changing and array.array.type.reshape_of is None
        return array if fits and array.type.reshape_of is not None else None

    def indices(self, e: ir.Reshape, view: Any, index: tuple[Any, ...]) -> tuple[Any, ...] | str:
        """Those of the array that `e` reshapes; why they aren't used."""
        symbols, loc = Symbols(self.changing), e.loc
        axis_sizes = [ir.Size(loc, ir.INDEX, e.array, k) for k in range(e.array.type.ndim)]
        sizes = [symbols.product(n) for n in axis_sizes]
        source = [n for n in sizes if n is not None]
        target = _target(symbols, e, source)
        indices_of_array: list[Any] = []
        for left, right in reshape_groups(source, target, _total, Product.divided_by):
            axes, group = axis_sizes[left], index[right]
            if len(axes) == 1:
                indices_of_array.append(self.flat_index(e, view, right, group))
            elif len(group) == 1 and isinstance(group[0], ir.Local) and group[0].name in self.digits:
                indices_of_array += _digits(loc, group[0], axes)
            elif axes:
                return _UNEVEN if len(group) > 1 else _OTHER
        return tuple(indices_of_array)

    def flat_index(self, e: ir.Reshape, view: Any, axes: slice, index: Sequence[Any]) -> Any:
        """Of the element of these axes alone, in C order."""
        total = index[0] if index else constant(e.loc, 0)
        for k, i in zip(range(axes.start + 1, axes.stop), index[1:], strict=True):
            size = e.shape[k] if isinstance(view, ir.Reshape) else ir.Size(e.loc, ir.INDEX, view, k)
            if isinstance(size, ir.Const) and size.value == -1:
                size = _inferred_size(e)
            total = binary(e.loc, "add", binary(e.loc, "mul", total, size), i)
        return total


def _compose_index(e: ir.Slice, index: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The index into the array that a slice is of; None where it cuts a range."""
    if any(isinstance(p, ir.Range) and p != ir.WHOLE for p in e.parts):
        return None
    stack = list(reversed(index) if e.transposed else index)
    return tuple(stack.pop(0) if isinstance(p, ir.Range) else p for p in e.parts)


def _has_effect(index: Any) -> bool:
    return any(isinstance(n, (ir.Atomic, ir.Invoke, ir.Let)) for n in ir.walk(index))


def _target(symbols: Symbols, e: ir.Reshape, source: list[Product]) -> list[Product]:
    """The sizes of the new shape; a symbol of its own stands for one that isn't a product."""
    products = [symbols.product(n) for n in e.shape]
    if e.missing is not None:
        others = [n for k, n in enumerate(products) if k != e.missing]
        factors = [n for n in others if n is not None]
        products[e.missing] = _total(source).divided_by(_total(factors)) if len(factors) == len(others) else None
    return [Product(1, (Symbol(f"?{k}"),)) if n is None else n for k, n in enumerate(products)]


def _total(sizes: Sequence[Product]) -> Product:
    return functools.reduce(Product.times, sizes, ONE)


def _inferred_size(e: ir.Reshape) -> Any:
    """The size of the axis -1."""
    total: Any = constant(e.loc, 1)
    for k in range(e.array.type.ndim):
        total = binary(e.loc, "mul", total, ir.Size(e.loc, ir.INDEX, e.array, k))
    for n in (n for k, n in enumerate(e.shape) if k != e.missing):
        total = binary(e.loc, "floordiv", total, n)
    return total


def _digits(loc: ir.Loc, flat_index: Any, axes: Sequence[Any]) -> list[Any]:
    digits: list[Any] = []
    for size in reversed(axes[1:]):
        digits.insert(0, binary(loc, "mod", flat_index, size))
        flat_index = binary(loc, "floordiv", flat_index, size)
    return [flat_index, *digits]
