"""`kernel.grad`: calls of a kernel's adjoint, which `lang.gradient` makes of the kernel's tree.

Its parameters are those of the kernel, and by keyword a gradient for each, None where there is none."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from ..annotations import ArrayAnnotation, field_names, is_structure
from ..array import ndarray
from ..array_views import memory_range, overlaps
from ..dtypes import PYTHON_KIND
from ..lang.gradient.adjoint import PREFIX
from ..lang.parse import attributes_read
from ..lang.pipeline import Program, lower
from ..memory.host_access import outline
from .argument_errors import Binder
from .binding import BoundArguments
from .pytree import Pytree, Struct, leaves_of
from .signature import Constant, Parameter

_MOST_WORK = 10_000  # of NumPy's search for a common element


def gradient_parameters(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """The parameters of an adjoint behind those of the kernel: one each, of whatever type."""
    fixed = (p for p in parameters if not p.constant)
    return tuple(Parameter(PREFIX + p.name, None, None, keyword_only=True) for p in fixed)


class Adjoint:
    """What an adjoint does in another way than its kernel, `of`. `required` are gradients that come first, by position
    as well, and have no default; there are no others then."""

    __name__: str
    of: Any
    parameters: Any
    required: tuple[str, ...] = ()

    def _gradients(self) -> tuple[Parameter, ...]:
        if not self.required:
            return gradient_parameters(self.of.parameters)
        arrays = (p for p in self.of.parameters if PREFIX + p.name in self.required)
        plain = ((p.name, p.annotation) for p in arrays)
        return tuple(
            Parameter(PREFIX + name, replace(kind, direction=None) if isinstance(kind, ArrayAnnotation) else None)
            for name, kind in plain
        )

    def _own_parameters(self) -> tuple[Parameter, ...]:
        return (*self._gradients(), *self.of.parameters) if self.required else (*self.of.parameters, *self._gradients())

    def call_signature(self) -> inspect.Signature:
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [inspect.Parameter(p.name, kinds[p.keyword_only], default=p.default) for p in self._own_parameters()]
        )

    def attributes(self) -> dict[str, Any]:
        """What the kernel's text reads of objects, and of the objects that hold their gradients."""
        read = attributes_read(self.of.source_text)
        return {**read, **{PREFIX + name: inner for name, inner in read.items()}}

    @functools.cached_property
    def _binder(self) -> Binder:
        return Binder(self.__name__, self.parameters)

    @functools.cached_property
    def _pairs(self) -> list[tuple[str, str]]:
        """The kernel's parameters with those of their gradients."""
        return [(p.name, g.name) for g in self._gradients() for p in self.of.parameters if g.name == PREFIX + p.name]

    def bound_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call, by name; for arrays that are passed without a gradient those that they carry."""
        named = self._binder(args, kwargs)
        for name, of in self._pairs:
            a = named[name]
            if named[of] is None and isinstance(a, ndarray) and a._buffer.gradient is not None:
                named[of] = a.grad
        return named

    def is_quick(self, named: Mapping[str, Any]) -> bool:
        """Whether nothing is wrong with the arrays for sure, and there are no structures: a test that costs little."""
        ranges = []
        for p in self.parameters:
            value = named[p.name]
            if isinstance(value, ndarray):
                ranges.append(memory_range(value))
            elif value is not None and type(value) not in PYTHON_KIND and not p.constant:
                return False
        for name, of in self._pairs:
            a, g = named[name], named[of]
            if isinstance(g, ndarray) and isinstance(a, ndarray) and (a._shape != g._shape or may_repeat(g)):
                return False
        ranges.sort()
        return all(a[1] <= b[0] for a, b in pairwise(ranges))

    def _flatten(self, args: tuple[Any, ...]) -> tuple[Pytree, list[Any]]:
        """The leaves. Those of gradients are of whatever type: that of a number is an array of one element."""
        pytree, values = super()._flatten(args)  # type: ignore[misc]
        if self.required:
            return pytree, values
        leaves = iter(values)
        count = len(self.of.parameters)
        own = {item.name: [next(leaves) for _ in leaves_of(item)] for item in pytree.items[:count]}
        items, made = list(pytree.items[:count]), [x for group in own.values() for x in group]
        for item in pytree.items[count:]:
            given = [next(leaves) for _ in leaves_of(item)]
            of = item.name.removeprefix(PREFIX)
            if isinstance(item, Parameter) and given[0] is None:
                given = [x.grad if isinstance(x, ndarray) else None for x in own[of]]
                item = _renamed(next(x for x in items if x.name == of))
            items.append(_unannotated(item, iter(given)))
            made += given
        return Pytree(tuple(items)), made

    def _lower(self, types: list[tuple[str, Any]], kind: str, checked: bool, declared: Mapping[str, str]) -> Program:
        of, names = self.of, {p.name for p in self.of.parameters}
        own = [pair for pair in types if pair[0] in names]
        gradients = [pair for pair in types if pair[0] not in names]
        return lower(of.source_text, own, kind, checked, of.wraparound, declared, gradients=gradients)


def attached_gradients(x: Any) -> Any:
    """What holds the gradients that arrays carry, in the structure of an argument; None where none carries one."""
    return _twin(x) if _carries(x) else None


def _carries(x: Any) -> bool:
    if isinstance(x, ndarray):
        return x._buffer.gradient is not None
    if is_structure(type(x)):
        return any(_carries(getattr(x, name)) for name in field_names(type(x)))
    return isinstance(x, tuple) and any(map(_carries, x))


def _twin(x: Any) -> Any:
    if isinstance(x, tuple):
        parts = map(_twin, x)
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    if is_structure(type(x)):
        twin = copy.copy(x)
        for name in field_names(type(x)):
            object.__setattr__(twin, name, _twin(getattr(x, name)))
        return twin
    return x.grad if _carries(x) else None


def _renamed(item: Any) -> Any:
    """What holds the gradients of an item's leaves."""
    if isinstance(item, Struct):
        return replace(item, name=PREFIX + item.name, items=tuple(map(_renamed, item.items)))
    return Parameter(PREFIX + item.name, None, None)


def _unannotated(item: Struct | Parameter, values: Iterator[Any]) -> Struct | Parameter:
    """The item without the annotations of its leaves, whose values come next."""
    if isinstance(item, Struct):
        return replace(item, items=tuple(_unannotated(part, values) for part in item.items))
    value = next(values)
    if isinstance(item.annotation, Constant) and value is not None:
        return item
    return replace(item, annotation=Constant(type(None)) if value is None else None)


def check_arrays(kernel: str, bound: BoundArguments, program: Program) -> None:
    """Raises `ValueError`, if the program is an adjoint, for a gradient of another shape than its array's, and for
    arrays that share memory where their gradients couldn't."""
    if program.overwritten is None:
        return
    named = {name: a for name, a in bound.named.items() if isinstance(a, ndarray)}
    for name, g in named.items():
        a = named.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
        if a is not None and g._shape != a._shape:
            what = f"{name!r} has the shape {g._shape}, and the array it is the gradient of {a._shape}"
            raise ValueError(f"{kernel}(): {what}; pass one of the same shape")
    for name, g in named.items():
        if name.startswith(PREFIX) and may_repeat(g):
            what = f"elements of {name!r} may share memory (shape {g._shape}, strides {g._strides})"
            raise ValueError(f"{kernel}(): {what}, and each gets a gradient of its own; pass an array without overlaps")
    changed = {n for n in named if n.startswith(PREFIX)} | program.overwritten
    for x, y in combinations(named, 2):
        if (x in changed or y in changed) and share_elements(named[x], named[y]):
            what = f"{x!r} and {y!r} share memory, and one of them is written"
            raise ValueError(f"{kernel}(): {what}: their gradients would be wrong; pass a copy")


def may_repeat(a: ndarray) -> bool:
    """Whether two elements may share memory: an axis is narrower than what is inside it."""
    extent = a._dtype.itemsize
    for step, n in sorted((abs(s), n) for s, n in zip(a._strides, a._shape, strict=True)):
        if n > 1 and step < extent:
            return a._size > 0
        extent += (n - 1) * step
    return False


def share_elements(a: ndarray, b: ndarray) -> bool:
    """Whether an element of one shares memory with one of the other; True where that takes long to find out."""
    if not overlaps(a, b):
        return False
    try:
        most: Any = _MOST_WORK
        return bool(np.shares_memory(outline(a), outline(b), max_work=most))
    except np.exceptions.TooHardError:
        return True
