"""Aggregates: tuples, named tuples, dataclasses and objects as values and types of kernels.

Their leaves are numbers, arrays and `Static`s. Each leaf is a variable or a parameter of its own, named by
its path: `p.inner.v`, `t[0]`. The same structure holds the leaves of a value (expressions) or of a type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from . import ir


@dataclass(frozen=True)
class Aggregate:
    """A named tuple, a dataclass or another object of class `kind`; plain tuples are Python tuples.
    `complete`: the names are all that it has, not just those that a kernel's text reads."""

    kind: type
    names: tuple[str, ...]
    items: tuple[Any, ...]
    complete: bool = True


@dataclass(frozen=True)
class UnreadableField:
    """Stands for a field that no kernel can read; an error when one does."""

    kind: type

    def __repr__(self) -> str:
        return f"of type {self.kind.__name__}"


def is_aggregate(value: Any) -> bool:
    """Whether it has parts."""
    return isinstance(value, (tuple, Aggregate))


def as_tuple(value: Any) -> tuple[Any, ...] | None:
    """The items of what Python would take as a tuple, else None."""
    if isinstance(value, Aggregate):
        return value.items if issubclass(value.kind, tuple) else None
    return value if isinstance(value, tuple) else None


def fields_of(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(path, item) of a group, in order."""
    if isinstance(value, Aggregate):
        yield from ((f"{path}.{name}", item) for name, item in zip(value.names, value.items, strict=True))
    else:
        yield from ((f"{path}[{k}]", item) for k, item in enumerate(value))


def leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(path, leaf) of a group, in order; of anything else, itself."""
    if not is_aggregate(value):
        yield path, value
        return
    for name, item in fields_of(path, value):
        yield from leaves(name, item)


def transform(path: str, value: Any, change: Callable[[str, Any], Any]) -> Any:
    """The same structure with `change(path, leaf)` in place of each leaf."""
    if not is_aggregate(value):
        return change(path, value)
    items = tuple(transform(name, item, change) for name, item in fields_of(path, value))
    return Aggregate(value.kind, value.names, items, value.complete) if isinstance(value, Aggregate) else items


def skeleton(value: Any) -> Any:
    """The structure alone: None for each leaf that lives in a variable, `Static`s as they are."""
    return transform("", value, lambda _, leaf: leaf if isinstance(leaf, ir.Static) else None)


def key(kind: Any) -> Any:
    """What distinguishes instances of a function for parameters of these types."""
    if isinstance(kind, Aggregate):
        return (kind.kind, kind.names, kind.complete, *map(key, kind.items))
    if isinstance(kind, tuple):
        return (tuple, *map(key, kind))
    return kind.key() if isinstance(kind, ir.Static) else kind
