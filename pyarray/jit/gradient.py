"""`kernel.grad`: calls of a kernel's adjoint, which `lang.gradient` makes of the kernel's tree.

Its parameters are those of the kernel, and by keyword a gradient for each, None where there is none."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from ..array import ndarray
from ..array_views import overlaps
from ..lang.gradient.adjoint import PREFIX
from ..lang.parse import attributes_read
from ..lang.pipeline import Program, lower
from ..memory.host_access import outline
from .binding import BoundArguments
from .pytree import Pytree, Struct, leaves_of
from .signature import Constant, Parameter

_MOST_WORK = 10_000  # of NumPy's search for a common element


def gradient_parameters(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """The parameters of an adjoint behind those of the kernel: one each, of whatever type."""
    fixed = (p for p in parameters if not p.constant)
    return tuple(Parameter(PREFIX + p.name, None, None, keyword_only=True) for p in fixed)


class Adjoint:
    """What an adjoint does in another way than its kernel, `of`."""

    of: Any

    def _own_parameters(self) -> tuple[Parameter, ...]:
        own = self.of.parameters
        return (*own, *gradient_parameters(own))

    def call_signature(self) -> inspect.Signature:
        signature = self.of.call_signature()
        added = [
            inspect.Parameter(p.name, inspect.Parameter.KEYWORD_ONLY, default=None)
            for p in gradient_parameters(self.of.parameters)
        ]
        return signature.replace(parameters=[*signature.parameters.values(), *added])

    def attributes(self) -> dict[str, Any]:
        """What the kernel's text reads of objects, and of the objects that hold their gradients."""
        read = attributes_read(self.of.source_text)
        return {**read, **{PREFIX + name: inner for name, inner in read.items()}}

    def _flatten(self, args: tuple[Any, ...]) -> tuple[Pytree, list[Any]]:
        """The leaves. Those of gradients are of whatever type: that of a number is an array of one element."""
        pytree, values = super()._flatten(args)  # type: ignore[misc]
        leaves = iter(values)
        count = len(self.of.parameters)
        own = [_skip(item, leaves) for item in pytree.items[:count]]
        return Pytree((*own, *(_unannotated(item, leaves) for item in pytree.items[count:]))), values

    def _lower(self, types: list[tuple[str, Any]], kind: str, checked: bool, declared: Mapping[str, str]) -> Program:
        count, of = len(self.of.parameters), self.of
        own, gradients = types[:count], types[count:]
        return lower(of.source_text, own, kind, checked, of.wraparound, declared, gradients=gradients)


def _skip(item: Struct | Parameter, values: Iterator[Any]) -> Struct | Parameter:
    for _ in leaves_of(item):
        next(values)
    return item


def _unannotated(item: Struct | Parameter, values: Iterator[Any]) -> Struct | Parameter:
    """The item without the annotations of its leaves, whose values come next."""
    if isinstance(item, Struct):
        return replace(item, items=tuple(_unannotated(part, values) for part in item.items))
    value = next(values)
    if isinstance(item.annotation, Constant):
        return item
    return replace(item, annotation=Constant(type(None)) if value is None else None)


def check_arrays(kernel: str, bound: BoundArguments, overwritten: frozenset[str]) -> None:
    """Raises `ValueError` for a gradient of another shape than its array's, and for arrays that share memory where
    their gradients couldn't."""
    named = {name: a for name, a in bound.named.items() if isinstance(a, ndarray)}
    for name, g in named.items():
        a = named.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
        if a is not None and g._shape != a._shape:
            what = f"{name!r} has the shape {g._shape}, and the array it is the gradient of {a._shape}"
            raise ValueError(f"{kernel}(): {what}; pass one of the same shape")
    changed = {n for n in named if n.startswith(PREFIX)} | overwritten
    for x, y in combinations(named, 2):
        if (x in changed or y in changed) and share_elements(named[x], named[y]):
            what = f"{x!r} and {y!r} share memory, and one of them is written"
            raise ValueError(f"{kernel}(): {what}: their gradients would be wrong; pass a copy")


def share_elements(a: ndarray, b: ndarray) -> bool:
    """Whether an element of one shares memory with one of the other; True where that takes long to find out."""
    if not overlaps(a, b):
        return False
    try:
        return bool(np.shares_memory(outline(a), outline(b), max_work=_MOST_WORK))
    except np.exceptions.TooHardError:
        return True
